"""The ops as Python functions. Shapes: q (B, H, N, D), k (B, Hk, M, D), v (B, Hk, M, Dv)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, overload

import torch
from torch import Tensor

Scope = Literal["sequence", "prefix"]
Scaling = Literal["max", "mean", "none"]
Estimator = str  # a name of ESTIMATORS


@dataclass(frozen=True)
class EstimatorRow:
    """What the library's table says about an estimator of the metric; docs/ops.md has it all."""

    name: str
    reads: frozenset[str]  # tensors beside v
    options: tuple[str, ...]
    streams: bool  # tokens can be fed one by one


def _estimators() -> dict[str, EstimatorRow]:
    words = torch.ops.elliptical._metric_estimators()
    rows = zip(words[::4], words[1::4], words[2::4], words[3::4], strict=True)
    return {
        name: EstimatorRow(name, frozenset(reads.split()), tuple(options.split()), streams == "streams")
        for name, reads, options, streams in rows
    }


ESTIMATORS = _estimators()


def _dropout_seed(dropout_p: float) -> Tensor | None:
    """A tensor, not a number, so that torch.compile draws a fresh one in every call."""
    return torch.randint(2**63 - 1, (1,), dtype=torch.int64) if dropout_p > 0 else None


@overload
def attention(q: Tensor, k: Tensor, v: Tensor, metric: Tensor | None = ..., *,
              attn_mask: Tensor | None = ..., is_causal: bool = ..., scale: float | None = ...,
              dropout_p: float = ..., key_lengths: Tensor | None = ...,
              return_lse: Literal[False] = ...) -> Tensor: ...  # fmt: skip


@overload
def attention(q: Tensor, k: Tensor, v: Tensor, metric: Tensor | None = ..., *,
              attn_mask: Tensor | None = ..., is_causal: bool = ..., scale: float | None = ...,
              dropout_p: float = ..., key_lengths: Tensor | None = ...,
              return_lse: Literal[True]) -> tuple[Tensor, Tensor]: ...  # fmt: skip


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    metric: Tensor | None = None,
    *,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    dropout_p: float = 0.0,
    key_lengths: Tensor | None = None,
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """softmax(scale * (q * metric) k^T + mask) v, differentiable with respect to all four tensors.

    Args:
        metric: (B|1, H|1, 1|N, D), not negative; None is plain attention.
        attn_mask: broadcastable to (B, H, N, M); bool (True = attend) or additive in q's dtype.
        is_causal: query n sees keys j <= n + (M - N), so that a key cache works.
        scale: of the logits; 1 / sqrt(D) when None.
        dropout_p: chance of dropping a probability, in [0, 1).
        key_lengths: (B) int64; keys from there on are padding, and so are queries when N = M.
        return_lse: also return the logsumexp of the logits, (B, H, N), differentiable too.

    Returns (B, H, N, Dv). A query that sees no key gives 0 with gradient 0.

    >>> import torch, elliptical
    >>> q, k, v = torch.randn(3, 1, 2, 5, 4)
    >>> m = torch.rand(1, 2, 1, 4, requires_grad=True)
    >>> elliptical.attention(q, k, v, m, is_causal=True).sum().backward()
    >>> m.grad.shape
    torch.Size([1, 2, 1, 4])
    """
    out, lse = torch.ops.elliptical.attention(
        q, k, v, metric, attn_mask, key_lengths, _dropout_seed(dropout_p),
        is_causal=is_causal, scale=scale, dropout_p=dropout_p, need_lse=return_lse,
    )  # fmt: skip
    return (out, lse) if return_lse else out


def metric(
    v: Tensor,
    v_prev: Tensor | None = None,
    *,
    scope: Scope = "sequence",
    scaling: Scaling = "max",
    delta: float = 1.0,
    lengths: Tensor | None = None,
    differentiable: bool = False,
    estimator: Estimator = "difference",
    q: Tensor | None = None,
    k: Tensor | None = None,
    q_prev: Tensor | None = None,
    temperature: Tensor | None = None,
    attenuation: float = 0.5,
    step: float | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    query_stride: int = 16,
    low: float = 0.0,
    seed: int = 0,
    value: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """How much the values change along each coordinate from the previous layer (v_prev) to this one.

    Args:
        v, v_prev: (B, H, N, D) values of this layer and of the one before.
        scope: "sequence" gives one row for all tokens, "prefix" row n from the tokens <= n (causal).
        scaling: rows divided by their largest entry, by their mean, or not at all.
        delta: distance between the layers; cancels when scaled.
        lengths: (B) int64; tokens from there on are padding.
        differentiable: let gradients through; otherwise the result is detached.
        estimator: "difference" is the paper's. The others, and the options after it, are
            described in docs/ops.md.

    Returns (B, H, 1, D) or, for scope="prefix", (B, H, N, D). No change at all gives 1.

    >>> import torch, elliptical
    >>> v_prev = torch.zeros(1, 1, 2, 3)
    >>> v = torch.tensor([[1.0, 2.0, 4.0], [1.0, 4.0, 0.0]]).view(1, 1, 2, 3)
    >>> elliptical.metric(v, v_prev).flatten().tolist()
    [0.3333333432674408, 1.0, 0.6666666865348816]
    >>> elliptical.metric(v, v_prev, scope="prefix")[0, 0, 0].tolist()
    [0.25, 0.5, 1.0]
    """
    # Transforms batch a function, or run it again: each time other numbers would be drawn.
    if estimator == "random" and torch._C._are_functorch_transforms_active():
        raise RuntimeError(
            "metric: estimator must not be random under torch.func, which may run a function more than once "
            "(draw the metric outside, or take random_fixed)"
        )
    return torch.ops.elliptical.metric(
        v, v_prev, q, k, q_prev, lengths, temperature,
        estimator=estimator, scope=scope, scaling=scaling, delta=delta,
        differentiable=differentiable, attenuation=attenuation, step=step, is_causal=is_causal,
        scale=scale, query_stride=query_stride, low=low, seed=seed, value=value,
        generator=generator,
    )  # fmt: skip


class PrefixMetric:
    """The prefix metric of a stream: one layer's running sum of |v - v_prev|.

    Feeding tokens in pieces gives the rows that ``metric(..., scope="prefix")`` gives for the whole
    sequence, to rounding; with cached keys and values, decoding then equals full evaluation.

    >>> import torch, elliptical
    >>> v, v_prev = torch.randn(2, 1, 2, 6, 4)
    >>> stream = elliptical.PrefixMetric()
    >>> rows = [stream.update(v[:, :, n:n + 1], v_prev[:, :, n:n + 1]) for n in range(6)]
    >>> torch.allclose(torch.cat(rows, 2), elliptical.metric(v, v_prev, scope="prefix"))
    True
    """

    def __init__(self, *, scaling: Scaling = "max", delta: float = 1.0) -> None:
        self.scaling: Scaling = scaling
        self.delta = delta
        self.sum: Tensor | None = None
        self.count = 0

    def update(self, v: Tensor, v_prev: Tensor) -> Tensor:
        """Rows (B, H, T, D) for the next T tokens, whose values are (B, H, T, D)."""
        rows, self.sum = torch.ops.elliptical._prefix_metric(
            v, v_prev, self.sum, self.count, self.scaling, self.delta
        )
        self.count += v.shape[2]
        return rows

    def reset(self) -> None:
        """Begins a new stream."""
        self.sum = None
        self.count = 0


@dataclass(frozen=True)
class Explanation:
    """Which path a call of ``attention`` takes, and for each other path why it does not."""

    path: str
    refused: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join([self.path, *(f"  not {p}: {why}" for p, why in self.refused.items())])


def explain(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    metric: Tensor | None = None,
    *,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    dropout_p: float = 0.0,
    key_lengths: Tensor | None = None,
    return_lse: bool = False,
) -> Explanation:
    """What ``attention`` with the same arguments would do; computes nothing.

    >>> import torch, elliptical
    >>> q = torch.zeros(1, 1, 2, 4, dtype=torch.float64)
    >>> print(elliptical.explain(q, q, q))
    composite
      not fused: q is Double, the kernel takes Float
      not sdpa: q is on cpu, SDPA is used on other devices only
    """
    seed = torch.zeros(1, dtype=torch.int64) if dropout_p > 0 else None
    path, *reasons = torch.ops.elliptical._explain(
        q, k, v, metric, attn_mask, key_lengths, seed,
        is_causal=is_causal, scale=scale, dropout_p=dropout_p, need_lse=return_lse,
    )  # fmt: skip
    return Explanation(path, dict(zip(reasons[::2], reasons[1::2], strict=True)))
