"""The metric of attention behind any mask: per query, over exactly the keys that it sees.

    s[n] = sum over the keys j that query n sees of |v[j] - v_prev[j]|,      m[n] = s[n] / max_i s[n, i]

With a causal mask this is ``metric(..., scope="prefix")``, with none "sequence"; under a sliding window it is the
mean over the window. As it depends on nothing a query does not see, neither padding nor unwritten slots of a
cache nor the future can enter, and it is the same however keys and values are stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .functional import Scaling, metric

# Additive masks hide by -inf, by the least number of their type or by some -1e9 or -1e4. A bias as low as
# that gives a key the weight 0 in any case; it must not be in the metric either.
_HIDDEN = -1e4


def keep_of_mask(mask: Tensor) -> Tensor:
    """True where an attention mask, boolean or additive, lets a query see a key."""
    return mask if mask.dtype == torch.bool else mask > _HIDDEN


@dataclass(frozen=True, eq=False)
class Visible:
    """Which keys each query sees, and what makes attention to them cheap."""

    keep: Tensor  # (B|1, H|1, N|1, M), True where seen; one row when all queries see the same
    is_full: bool = False  # every query sees every key
    is_causal: bool = False  # query n sees the keys up to n + (M - N), no more and no less
    runs: tuple[Tensor, Tensor] | None = None  # begin, end: query n sees the used keys in begin[n] <= j < end[n]

    @property
    def used(self) -> Tensor:
        """(B|1, H|1, M): True for keys that some query sees."""
        return self.keep.any(dim=-2)


def find_visible(keep: Tensor) -> Visible:
    """Looks for the common shapes of masks: full, causal, windows and packed sequences, padded or not."""
    N, M = keep.shape[-2:]
    if M == 0 or torch.compiler.is_compiling():  # looking at values would break the graph
        return Visible(keep)
    if N > 1 and torch.equal(keep, keep[..., :1, :].expand_as(keep)):
        keep = keep[..., :1, :]
    if keep.shape[-2] == 1:  # one row of sums needs no shortcut
        return Visible(keep, is_full=bool(keep.all()))
    bits = keep.to(torch.uint8)
    count = bits.sum(-1)  # (B, H, N)
    begin = bits.argmax(-1)  # the first True
    end = torch.where(count > 0, M - bits.flip(-1).argmax(-1), begin)
    used_before = F.pad(keep.any(-2).cumsum(-1), (1, 0))  # (B, H, M + 1)
    if not torch.equal(used_before.gather(-1, end) - used_before.gather(-1, begin), count):
        return Visible(keep)
    # Unbroken from the first key on and of the right length: what is_causal means.
    length = torch.arange(1, N + 1, device=keep.device) + (M - N)
    is_causal = M >= N and bool(((end == length) & (count == length)).all())
    return Visible(keep, is_causal=is_causal, runs=(begin, end))


def visible_in_both(visible: Visible, previous: Visible) -> tuple[Visible, Tensor | None]:
    """What queries see in this layer and in the previous one, and where the previous one has the keys of this one.

    Layers may store different keys (a window of them, or room for more to come). The latest key that any
    query sees is the same token in both, which tells where one layer's keys lie among the other's. None: at
    the same places.
    """
    M, M_prev = visible.keep.shape[-1], previous.keep.shape[-1]
    if M == M_prev:
        return find_visible(visible.keep & previous.keep), None
    index = torch.arange(M, device=visible.keep.device) + (_latest(previous) - _latest(visible))
    inside = (index >= 0) & (index < M_prev)
    index = index.clamp(0, M_prev - 1)
    return find_visible(visible.keep & previous.keep[..., index] & inside), index


def _latest(visible: Visible) -> Tensor:
    used = visible.used.flatten(0, -2).any(0)  # (M)
    return (used * torch.arange(1, used.shape[0] + 1, device=used.device)).max()


def visible_metric(
    v: Tensor,
    v_prev: Tensor,
    visible: Visible,
    *,
    scaling: Scaling = "max",
    delta: float = 1.0,
    differentiable: bool = False,
) -> Tensor:
    """Rows (B, H, N|1, D) of values (B, H, M, D); 1 where a query sees no change at all."""
    N, M = visible.keep.shape[-2:]
    if visible.is_causal:
        rows = metric(v, v_prev, scope="prefix", scaling=scaling, delta=delta, differentiable=differentiable)
        return rows[:, :, M - N :]
    dtype = v.dtype
    if not differentiable:
        v, v_prev = v.detach(), v_prev.detach()
    if dtype.itemsize < 4:
        v, v_prev = v.float(), v_prev.float()
    used = visible.used.unsqueeze(-1)
    # Hidden slots may hold anything, NaN too; left out before the difference, so that gradients are right.
    change = (torch.where(used, v, 0) - torch.where(used, v_prev, 0)).abs()
    if visible.runs is None:
        sums = visible.keep.to(change.dtype) @ change
    else:  # differences of running sums, in double: they cancel
        before = F.pad(change.double().cumsum(-2), (0, 0, 1, 0))  # (B, H, M + 1, D)
        begin, end = (
            edge.unsqueeze(-1).expand(*before.shape[:2], -1, before.shape[-1]) for edge in visible.runs
        )
        sums = (before.gather(-2, end) - before.gather(-2, begin)).clamp_min(0)
    if scaling == "none":
        unit = delta * visible.keep.sum(-1, keepdim=True).to(sums.dtype)
    elif scaling == "mean":
        unit = sums.mean(-1, keepdim=True)
    else:
        unit = sums.amax(-1, keepdim=True)
    changed = sums.amax(-1, keepdim=True) > 0
    return torch.where(changed, sums / torch.where(changed, unit, 1), 1).to(dtype)
