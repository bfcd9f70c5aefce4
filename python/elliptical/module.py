"""Multi-head self-attention as a module, with the metric between layers."""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor, nn

from .functional import ESTIMATORS, Estimator, Scaling, Scope, attention, metric
from .visible import find_visible, keep_of_mask, visible_metric

# Estimators that one layer can feed: the others read more than its q, k, v and v_prev, or must be told a value.
_ESTIMATORS = tuple(
    row.name for row in ESTIMATORS.values() if row.reads <= {"v_prev", "q", "k"} and "value" not in row.options
)

# Those that read no tokens, so that there is nothing to hide, and those that are sums of what each token's values
# changed by, which is what streams: `visible_metric` computes them.
_BLIND = tuple(name for name in _ESTIMATORS if not ESTIMATORS[name].reads)
_TOKENWISE = tuple(name for name, row in ESTIMATORS.items() if row.reads == {"v_prev"} and row.streams)


class EllipticalAttention(nn.Module):
    """Self-attention (B, N, dim) -> (B, N, dim) that hands its values to the next layer.

    The first layer is called without ``v_prev`` and is plain attention; each other one measures its
    metric from the values of the layer before. Parameter names are those of timm and DeiT
    (``qkv.weight``, ``proj.weight``), so published weights load by name.

    Args:
        causal: tokens see only the past; the metric then has ``scope="prefix"``.
        scope: "sequence" or "prefix"; by default what ``causal`` implies.
        metric_lookahead: allows scope="sequence" in a causal layer, which sees the future.
        differentiable: let gradients flow through the metric too.

    >>> import torch, elliptical
    >>> layers = [elliptical.EllipticalAttention(32, num_heads=4) for _ in range(3)]
    >>> x, v = torch.randn(2, 10, 32), None
    >>> for layer in layers:
    ...     y, v = layer(x, v)
    ...     x = x + y
    >>> x.shape, v.shape
    (torch.Size([2, 10, 32]), torch.Size([2, 4, 10, 8]))
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        qkv_bias: bool = True,
        causal: bool = False,
        *,
        estimator: Estimator = "difference",
        scope: Scope | None = None,
        scaling: Scaling = "max",
        delta: float = 1.0,
        differentiable: bool = False,
        metric_lookahead: bool = False,
        scale: float | None = None,
        attn_drop: float = 0.0,
        proj_bias: bool = True,
        proj_drop: float = 0.0,
    ) -> None:
        super().__init__()
        scope = scope or ("prefix" if causal else "sequence")
        if num_heads < 1 or dim % num_heads != 0:
            raise ValueError(
                f"EllipticalAttention: dim must be a multiple of num_heads, got {dim} and {num_heads}"
            )
        if scope not in get_args(Scope):
            raise ValueError(
                f'EllipticalAttention: scope must be "sequence" or "prefix", got "{scope}"'
            )
        if estimator not in _ESTIMATORS:
            raise ValueError(
                f'EllipticalAttention: estimator must be one of {", ".join(_ESTIMATORS)}, '
                f'got "{estimator}"'
            )
        if causal and scope == "sequence" and not metric_lookahead:
            raise ValueError(
                'EllipticalAttention: a causal layer must have scope="prefix", got "sequence", whose '
                "metric sees the future (to allow that: metric_lookahead=True)"
            )
        self.num_heads = num_heads
        self.causal = causal
        self.estimator: Estimator = estimator
        self.scope: Scope = scope
        self.scaling: Scaling = scaling
        self.delta = delta
        self.differentiable = differentiable
        self.scale = scale
        self.attn_drop = attn_drop
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim, bias=proj_bias)
        self.proj_drop = nn.Dropout(proj_drop)

    def forward(
        self,
        x: Tensor,
        v_prev: Tensor | None = None,
        *,
        attn_mask: Tensor | None = None,
        key_lengths: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """(B, N, dim) and the values (B, H, N, D) for the next layer.

        Tokens that ``attn_mask`` hides from a query are not in its metric either.
        """
        B, N, dim = x.shape
        qkv = self.qkv(x).view(B, N, 3, self.num_heads, dim // self.num_heads)
        q, k, v = (t.transpose(1, 2) for t in qkv.unbind(2))  # (B, H, N, D)
        m = None
        if v_prev is not None:
            m = self._metric(q, k, v, v_prev, attn_mask, key_lengths)
        out = attention(
            q, k, v, m, attn_mask=attn_mask, is_causal=self.causal, scale=self.scale,
            dropout_p=self.attn_drop if self.training else 0.0, key_lengths=key_lengths,
        )  # fmt: skip
        out = out.transpose(1, 2).reshape(B, N, dim)
        return self.proj_drop(self.proj(out)), v

    def _metric(
        self, q: Tensor, k: Tensor, v: Tensor, v_prev: Tensor, attn_mask: Tensor | None, key_lengths: Tensor | None
    ) -> Tensor:
        if attn_mask is None or self.estimator in _BLIND:
            return metric(
                v, v_prev, q=q, k=k, estimator=self.estimator, scope=self.scope,
                scaling=self.scaling, delta=self.delta, lengths=key_lengths,
                differentiable=self.differentiable, is_causal=self.causal, scale=self.scale,
            )  # fmt: skip
        if self.estimator not in _TOKENWISE:
            raise ValueError(
                f"EllipticalAttention: attn_mask must be None with estimator={self.estimator!r}, which would "
                f"read hidden tokens, got one (for padding: key_lengths; with a mask: {', '.join(_TOKENWISE)})"
            )
        N = v.shape[2]
        keep = keep_of_mask(attn_mask).broadcast_to(torch.broadcast_shapes(attn_mask.shape, (1, 1, N, N)))
        if self.scope == "prefix":
            keep = keep.tril()
        if key_lengths is not None:
            keep = keep & (torch.arange(N, device=v.device) < key_lengths.view(-1, 1, 1, 1))
        m = visible_metric(
            v, v_prev, find_visible(keep), scaling=self.scaling, delta=self.delta,
            differentiable=self.differentiable,
        )  # fmt: skip
        return m.mean(-1, keepdim=True).expand_as(m) if self.estimator == "isotropic" else m

    def extra_repr(self) -> str:
        return (
            f"num_heads={self.num_heads}, causal={self.causal}, estimator={self.estimator}, "
            f"scope={self.scope}, scaling={self.scaling}"
        )
