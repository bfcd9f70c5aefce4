"""Elliptical attention for Hugging Face transformers: ``attn_implementation="elliptical"``.

``import elliptical`` never imports transformers. It registers the implementation at once if
transformers is imported already, else as soon as it is; ``register_transformers()`` does so by hand.

Each layer measures its metric from the values that the layer before handed to its own attention call
in the same forward pass; layer 0 is plain attention. The metric of a query is a mean over the tokens that it
sees in this layer and in the one before: all of them in an encoder, those so far in a causal model, those of
the window in a sliding-window layer (and in a full layer right after one). All of these are in the cache,
whatever its kind, so generation with a cache equals full evaluation, and nothing hidden can enter: neither
the future nor padding nor the unwritten slots of a static cache.

What queries see is read from the mask alone, so there always is one, a byte for each query and key.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..functional import attention
from ..visible import Visible, find_visible, keep_of_mask, visible_in_both, visible_metric

if TYPE_CHECKING:
    from types import ModuleType

NAME = "elliptical"
_MODELS = "transformers.modeling_utils"  # where the registry of attention functions lives
_UNSUPPORTED = ("cache", "position_bias", "s_aux", "softcap")  # what some models ask of attention, too


class _Pass(threading.local):
    """What a forward pass hands from one attention call of this thread to the next."""

    config: Any = None
    module: torch.nn.Module | None = None
    layer: int = -1
    num_calls: int = 0  # of this layer
    num_queries: int = 0
    value: Tensor | None = None
    visible: Visible | None = None

    def __init__(self) -> None:
        self.found: dict[Any, Any] = {}  # what was found out about a mask or two: layers share them


_pass = _Pass()
_MAX_FOUND = 4  # of models whose layers make masks of their own, not all are kept alive


def _once(find: Callable[..., Any], *inputs: Any) -> Any:
    """find(*inputs), computed once in a forward pass; tensors are known by identity."""
    key = (find, *inputs)
    if key not in _pass.found:
        if len(_pass.found) == _MAX_FOUND:
            _pass.found.clear()
        _pass.found[key] = find(*inputs)
    return _pass.found[key]


def _enter_layer(
    module: torch.nn.Module, num_queries: int, value: Tensor, visible: Visible
) -> tuple[Tensor, Visible] | None:
    """Values of the layer before and what its queries saw, None for layer 0; remembers this one's."""
    layer = getattr(module, "layer_idx", None)
    if layer is None:
        raise ValueError(
            f"elliptical: {type(module).__name__} must have a layer_idx, got none: without the order of "
            "the layers there is no metric"
        )
    same_layer = _pass.config is module.config and _pass.layer == layer
    num_calls = _pass.num_calls + 1 if same_layer and _pass.module is not module else 1
    previous = None
    if layer > 0:
        in_order = _pass.config is module.config and _pass.layer == layer - 1
        if not in_order or _pass.value is None or _pass.visible is None or _pass.num_queries != num_queries:
            raise RuntimeError(
                f"elliptical: layer {layer} must run right after layer {layer - 1} on the same tokens, "
                f"got layer {_pass.layer} (gradient checkpointing and skipped layers are not supported)"
            )
        if _pass.num_calls > 1:
            raise RuntimeError(
                f"elliptical: layer {layer - 1} must call attention once, got {_pass.num_calls} calls "
                "(cross-attention is not supported)"
            )
        shape, before = ((t.shape[0], t.shape[1], t.shape[3]) for t in (value, _pass.value))
        if shape != before:
            raise RuntimeError(
                f"elliptical: values must have the same (B, H, D) in all layers, got {before} in layer "
                f"{layer - 1} and {shape} in layer {layer}"
            )
        previous = _pass.value, _pass.visible
    _pass.config, _pass.module, _pass.layer, _pass.num_calls = module.config, module, layer, num_calls
    _pass.num_queries, _pass.value, _pass.visible = num_queries, value.detach(), visible
    return previous


def _visible_by_mask(mask: Tensor, num_keys: int) -> Visible:
    return find_visible(keep_of_mask(mask[..., :num_keys]))


def _visible_without_mask(causal: bool, num_keys: int, device: torch.device) -> Visible:
    keep = torch.ones(1, 1, num_keys if causal else 1, num_keys, dtype=torch.bool, device=device)
    return find_visible(keep.tril() if causal else keep)


def _visible(mask: Tensor | None, causal: bool, N: int, M: int, device: torch.device) -> Visible:
    if mask is not None:
        if mask.dim() != 4 or mask.shape[2] not in (1, N) or mask.shape[3] < M:
            raise ValueError(
                f"elliptical: attention_mask must be (B|1, H|1, N|1, M) with N, M = {N}, {M}, "
                f"got {tuple(mask.shape)}"
            )
        return _once(_visible_by_mask, mask, M)
    if causal and N != M:  # the new tokens may be the last ones, or lie in the middle of a static cache
        raise ValueError(
            f"elliptical: {N} causal queries and {M} keys must come with an attention_mask, got None "
            "(a model that makes its masks by hand can not use a cache)"
        )
    return _once(_visible_without_mask, causal, M, device)


def _metric(value: Tensor, visible: Visible, previous: tuple[Tensor, Visible], num_heads: int) -> Tensor:
    """(B, H, N|1, D), from the tokens that a query sees in both layers."""
    value_prev, visible_prev = previous
    if visible_prev is not visible:
        visible, index = _once(visible_in_both, visible, visible_prev)
        value_prev = value_prev if index is None else value_prev[:, :, index]
    if visible.keep.shape[1] > 1:  # a mask for each head of the queries
        value, value_prev = (t.repeat_interleave(num_heads // t.shape[1], dim=1) for t in (value, value_prev))
    m = visible_metric(value, value_prev, visible)
    return m.repeat_interleave(num_heads // m.shape[1], dim=1)


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
    for name in _UNSUPPORTED:
        if kwargs.get(name) is not None:
            raise ValueError(
                f"elliptical: {type(module).__name__} must do without {name}, got one (not supported)"
            )
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    N, M = query.shape[2], key.shape[2]
    if getattr(module, "layer_idx", None) == 0:
        _pass.found.clear()
    visible = _visible(attention_mask, causal, N, M, key.device)
    previous = _enter_layer(module, N, value, visible)
    m = None if previous is None else _metric(value, visible, previous, query.shape[1])
    if module.layer_idx + 1 == getattr(module.config, "num_hidden_layers", None):  # nobody comes after
        _pass.value = _pass.visible = None
        _pass.found.clear()

    if attention_mask is None or attention_mask.dtype == torch.bool:
        mask = None if visible.is_full or visible.is_causal else visible.keep
    else:  # hidden means not read, and a query without keys gives 0; a very negative number does neither
        mask = attention_mask[..., :M].to(query.dtype)
        mask = mask.masked_fill(~keep_of_mask(mask), -torch.inf)
    out = attention(
        query, key, value, m, attn_mask=mask, scale=scaling, dropout_p=dropout,
        is_causal=visible.is_causal and mask is None,
    )  # fmt: skip
    return out.transpose(1, 2).contiguous(), None


def elliptical_mask(*args: Any, **options: Any) -> Tensor:
    """The mask of "sdpa", always made: where that one leaves it out, it counts on torch's reading of is_causal,
    which differs from ours for a static cache."""
    from transformers.masking_utils import sdpa_mask

    options.update(allow_is_causal_skip=False, allow_is_bidirectional_skip=False)
    return sdpa_mask(*args, **options)


def register_transformers() -> None:
    """Makes ``attn_implementation="elliptical"`` known to transformers, importing it if need be."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, elliptical_attention_forward)
    AttentionMaskInterface.register(NAME, elliptical_mask)


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
