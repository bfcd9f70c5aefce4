"""Elliptical Attention: fused, trainable attention whose neighbourhoods have the shape of the data.

>>> import torch, elliptical
>>> q, k, v, v_prev = torch.randn(4, 2, 8, 128, 64)        # (B, H, N, D) each
>>> m = elliptical.metric(v, v_prev)                       # (B, H, 1, D)
>>> elliptical.attention(q, k, v, m).shape
torch.Size([2, 8, 128, 64])
>>> elliptical.explain(q, k, v, m).path
'fused'
"""

from importlib.metadata import PackageNotFoundError, version

from . import _library  # noqa: F401  loads the ops
from .functional import Explanation, PrefixMetric, attention, explain, metric
from .integrations.transformers import register_transformers, register_when_imported
from .module import EllipticalAttention

try:
    __version__ = version("elliptical")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "unknown"

__all__ = [
    "EllipticalAttention",
    "Explanation",
    "PrefixMetric",
    "__version__",
    "attention",
    "explain",
    "metric",
    "register_transformers",
]

register_when_imported()
