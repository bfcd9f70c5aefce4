"""Elliptical attention for Hugging Face transformers: ``attn_implementation="elliptical"``.

``import elliptical`` never imports transformers. It registers the implementation at once if
transformers is imported already, else as soon as it is; ``register_transformers()`` does so by hand.

Each layer measures its metric from the values that the layer before handed to its own attention call
in the same forward pass; layer 0 is plain attention. Causal layers use the prefix scope over the cached
and new tokens, so generation with a key cache equals full evaluation; others the sequence scope.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
import threading
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..functional import attention, metric

if TYPE_CHECKING:
    from types import ModuleType

NAME = "elliptical"
_MODELS = "transformers.modeling_utils"  # where the registry of attention functions lives


class _PreviousValues(threading.local):
    """The values of the last attention call of this thread: what the next layer compares with."""

    config: Any = None
    layer: int = -1
    value: Tensor | None = None


_previous = _PreviousValues()


def _take_previous(module: torch.nn.Module, value: Tensor) -> Tensor | None:
    """The values of the layer before, None for layer 0; remembers ``value`` for the next layer."""
    layer = getattr(module, "layer_idx", None)
    if layer is None:
        raise ValueError(
            f"elliptical: {type(module).__name__} must have a layer_idx, got none: without the order of "
            "the layers there is no metric"
        )
    previous = _previous.value
    in_order = _previous.config is module.config and _previous.layer == layer - 1
    if layer > 0 and (previous is None or not in_order or previous.shape != value.shape):
        raise RuntimeError(
            f"elliptical: layer {layer} must run right after layer {layer - 1} on the same tokens, "
            f"got layer {_previous.layer} (gradient checkpointing and skipped layers are not supported)"
        )
    _previous.config, _previous.layer, _previous.value = module.config, layer, value.detach()
    return previous if layer > 0 else None


def _keep(mask: Tensor) -> Tensor:
    """True where an attention mask, boolean or additive, lets a query see a key."""
    return mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2


def elliptical_attention_forward(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """The signature of the registry: query (B, H, N, D), key and value (B, Hk, M, D) -> (B, N, H, D)."""
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    N, M = query.shape[2], key.shape[2]
    if attention_mask is not None:
        attention_mask = attention_mask[:, :, :, :M]

    m = None
    value_prev = _take_previous(module, value)
    if value_prev is not None:
        if attention_mask is not None:  # a token that nobody sees changes by nothing
            seen = _keep(attention_mask).any(dim=-2).unsqueeze(-1)  # (B, 1, M, 1)
            value_prev = torch.where(seen, value_prev, value)
        m = metric(value, value_prev, scope="prefix" if causal else "sequence")
        if causal and N != M:  # the rows of the new tokens
            position = kwargs.get("cache_position")
            m = m[:, :, -N:] if position is None else m[:, :, position]
        m = m.repeat_interleave(query.shape[1] // m.shape[1], dim=1)

    out = attention(
        query, key, value, m, attn_mask=attention_mask, scale=scaling, dropout_p=dropout,
        is_causal=causal and attention_mask is None,
    )  # fmt: skip
    return out.transpose(1, 2).contiguous(), None


def register_transformers() -> None:
    """Makes ``attn_implementation="elliptical"`` known to transformers, importing it if need be."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, elliptical_attention_forward)
    AttentionMaskInterface.register(NAME, sdpa_mask)


class _RegisterAfterImport(importlib.abc.MetaPathFinder):
    """Waits for the import of transformers' models, lets it happen, then registers; once."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != _MODELS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            register_transformers()

        spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def register_when_imported() -> None:
    """Registers now if transformers' models are imported, else when they are."""
    if _MODELS in sys.modules:
        register_transformers()
    elif not any(isinstance(finder, _RegisterAfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _RegisterAfterImport())
