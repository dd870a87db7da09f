"""Caches built from tensors, with the classes and attributes of whatever Transformers is installed."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch

Pairs = Sequence[Any]


def _cache_utils(function: str) -> Any:
    try:
        from transformers import cache_utils
    except ImportError as error:
        raise ImportError(f"[{function}] Expected Transformers to be installed (pip install transformers).") from error
    return cache_utils


def as_pairs(function: str, key_value_pairs: Pairs) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """[(k0, v0), (k1, v1)] from pairs (tuples or lists) or from one flat list k0, v0, k1, v1."""
    items = list(key_value_pairs)
    if items and all(isinstance(item, torch.Tensor) for item in items):
        if len(items) % 2:
            raise ValueError(f"[{function}] Expected key, value, key, value ..., got {len(items)} tensors.")
        return [(items[i], items[i + 1]) for i in range(0, len(items), 2)]
    for index, item in enumerate(items):
        ok = isinstance(item, (tuple, list)) and len(item) == 2 and all(isinstance(x, torch.Tensor) for x in item)
        if not ok:
            raise ValueError(
                f"[{function}] Expected (key, value) tensors for layer {index}, got {type(item).__name__}."
            )
        if item[0].dim() != 4 or item[1].dim() != 4:
            raise ValueError(
                f"[{function}] Expected tensors [batch, heads, length, head_dim] for layer {index}, "
                f"got {tuple(item[0].shape)} and {tuple(item[1].shape)}."
            )
    return [(item[0], item[1]) for item in items]


def _layer_classes(function: str, utils: Any, cls_layers: Any, count: int, default: str) -> list[type]:
    if cls_layers is None:
        cls_layers = default
    if isinstance(cls_layers, (str, type)):
        cls_layers = [cls_layers] * count
    if len(cls_layers) != count:
        raise ValueError(f"[{function}] Expected {count} layer classes, one per pair, got {len(cls_layers)}.")
    classes = []
    for wanted in cls_layers:
        found = getattr(utils, wanted, None) if isinstance(wanted, str) else wanted
        if not isinstance(found, type):
            have = [name for name in dir(utils) if name.endswith("Layer")]
            raise ValueError(
                f"[{function}] Expected a layer class of the installed Transformers, got {wanted!r} "
                f"(it has: {', '.join(have) or 'none, its caches are lists of tensors'})."
            )
        classes.append(found)
    return classes


def _accepted(function: Any, values: dict[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters
    return {name: value for name, value in values.items() if name in parameters}


def _fill_layer(layer: Any, key: torch.Tensor, value: torch.Tensor, length: Any) -> Any:
    """Sets what `update` would have set; only attributes that this kind of layer has."""
    layer.keys, layer.values = key, value
    layer.dtype, layer.device = key.dtype, key.device
    layer.is_initialized = True
    counter = getattr(layer, "cumulative_length", None)
    if isinstance(counter, torch.Tensor):
        layer.cumulative_length = torch.as_tensor(length, dtype=counter.dtype, device=key.device)
    elif counter is not None:
        layer.cumulative_length = length
    if hasattr(layer, "cumulative_length_int"):
        layer.cumulative_length_int = length
    if isinstance(getattr(layer, "_sliding_window_tensor", None), torch.Tensor):
        layer._sliding_window_tensor = layer._sliding_window_tensor.to(key.device)
    if hasattr(layer, "max_cache_len"):
        layer.batch_size = layer.max_batch_size = key.shape[0]
        layer.num_heads = key.shape[1]
        layer.k_head_dim, layer.v_head_dim, layer.head_dim = key.shape[-1], value.shape[-1], key.shape[-1]
        reference = _static_attributes(type(layer))
        for name in ("batch_size", "max_batch_size", "num_heads", "k_head_dim", "v_head_dim", "head_dim"):
            if name not in reference:
                delattr(layer, name)
    return layer


_static_names: dict[type, set[str]] = {}


def _static_attributes(cls: type) -> set[str]:
    """The attributes that this release's static layers get from their lazy initialisation."""
    if cls not in _static_names:
        probe = cls(**_accepted(cls, {"max_cache_len": 1, "sliding_window": 1}))
        tensor = torch.zeros(1, 1, 1, 1)
        probe.lazy_initialization(*[tensor] * (2 if "value_states" in _parameters(probe) else 1))
        _static_names[cls] = set(vars(probe))
    return _static_names[cls]


def _parameters(layer: Any) -> Any:
    return inspect.signature(layer.lazy_initialization).parameters


def make_dynamic_cache(key_value_pairs: Pairs, cls_layers: Any = None, cls_kwargs: Any = None) -> Any:
    """A DynamicCache around these tensors (not copies), in every supported release.

    >>> make_dynamic_cache([(torch.rand(1, 2, 3, 4), torch.rand(1, 2, 3, 4))])

    `cls_layers`: one layer class (or its name) for all pairs, or one per pair; `cls_kwargs`: keyword
    arguments for all, or
    a list with one dict per layer. A sliding layer without `sliding_window` gets the length of its keys.
    """
    name = "make_dynamic_cache"
    utils = _cache_utils(name)
    pairs = as_pairs(name, key_value_pairs)
    cache = utils.DynamicCache()
    if hasattr(cache, "key_cache") and not hasattr(cache, "layers"):
        if cls_layers is not None:
            _layer_classes(name, utils, cls_layers, len(pairs), "")
        cache.key_cache = [key for key, _ in pairs]
        cache.value_cache = [value for _, value in pairs]
        if hasattr(cache, "_seen_tokens"):
            cache._seen_tokens = pairs[0][0].shape[-2] if pairs else 0
        return cache
    classes = _layer_classes(name, utils, cls_layers, len(pairs), "DynamicLayer")
    kwargs = cls_kwargs if isinstance(cls_kwargs, (list, tuple)) else [cls_kwargs or {}] * len(pairs)
    layers = []
    for (key, value), cls, given in zip(pairs, classes, kwargs, strict=True):
        defaults = {"sliding_window": key.shape[2], "max_cache_len": key.shape[2]}
        layer = cls(**{**_accepted(cls, defaults), **given})
        layers.append(_fill_layer(layer, key, value, key.shape[2]))
    cache.layers = layers
    if any(cls is not utils.DynamicLayer for cls in classes) and hasattr(cache, "layer_class_to_replicate"):
        cache.layer_class_to_replicate = None  # as Transformers does when the kinds of layers are given
    return cache


def make_static_cache(
    key_value_pairs: Pairs, max_cache_len: int | None = None, cls_layers: Any = None, cls_kwargs: Any = None
) -> Any:
    """A StaticCache of `max_cache_len` places (default: the length of the keys), filled from the left with
    these tensors.
    """
    name = "make_static_cache"
    utils = _cache_utils(name)
    pairs = as_pairs(name, key_value_pairs)
    if max_cache_len is None:
        if not pairs:
            raise ValueError(f"[{name}] Expected at least one pair or max_cache_len, got neither.")
        max_cache_len = max(key.shape[2] for key, _ in pairs)
    for index, (key, _) in enumerate(pairs):
        if key.shape[2] > max_cache_len and cls_layers is None:
            raise ValueError(
                f"[{name}] Expected at most max_cache_len={max_cache_len} tokens, got {key.shape[2]} in layer {index}."
            )
    cache = _empty_static(utils, pairs, max_cache_len)
    if hasattr(cache, "key_cache") and not hasattr(cache, "layers"):
        for index, (key, value) in enumerate(pairs):
            cache.key_cache[index] = _padded(key, max_cache_len)
            cache.value_cache[index] = _padded(value, max_cache_len)
        return cache
    classes = _layer_classes(name, utils, cls_layers, len(pairs), "StaticLayer")
    kwargs = cls_kwargs if isinstance(cls_kwargs, (list, tuple)) else [cls_kwargs or {}] * len(pairs)
    layers = []
    for (key, value), cls, given in zip(pairs, classes, kwargs, strict=True):
        defaults = {"sliding_window": max_cache_len, "max_cache_len": max_cache_len}
        layer = cls(**{**_accepted(cls, defaults), **given})
        places = layer.max_cache_len
        layers.append(_fill_layer(layer, _padded(key, places), _padded(value, places), key.shape[2]))
    cache.layers = layers
    return cache


def _padded(tensor: torch.Tensor, places: int) -> torch.Tensor:
    if tensor.shape[2] == places:
        return tensor
    if tensor.shape[2] > places:  # a sliding layer holds the last places only
        return tensor[:, :, -places:, :]
    room = tensor.new_zeros((tensor.shape[0], tensor.shape[1], places - tensor.shape[2], tensor.shape[3]))
    return torch.cat([tensor, room], dim=2)


def _empty_static(utils: Any, pairs: list[Any], max_cache_len: int) -> Any:
    """Made by the constructor with a real config: each release reads other fields of it."""
    from transformers import LlamaConfig

    batch, heads, _, dim = pairs[0][0].shape if pairs else (1, 1, 1, 1)
    config = LlamaConfig(
        num_hidden_layers=len(pairs), num_attention_heads=heads, num_key_value_heads=heads, head_dim=dim,
        hidden_size=heads * dim, intermediate_size=1, vocab_size=1,
    )  # fmt: skip
    values = {
        "config": config,
        "max_batch_size": batch,
        "max_cache_len": max_cache_len,
        "device": pairs[0][0].device if pairs else torch.device("cpu"),
        "dtype": pairs[0][0].dtype if pairs else torch.float32,
    }
    return utils.StaticCache(**_accepted(utils.StaticCache.__init__, values))


def make_encoder_decoder_cache(self_attention_cache: Any, cross_attention_cache: Any) -> Any:
    """An EncoderDecoderCache of two caches: the decoder's own and the one over the encoder's output."""
    utils = _cache_utils("make_encoder_decoder_cache")
    for cache in (self_attention_cache, cross_attention_cache):
        if not isinstance(cache, utils.Cache):
            raise ValueError(f"[make_encoder_decoder_cache] Expected two caches, got {type(cache).__name__}.")
    return utils.EncoderDecoderCache(self_attention_cache, cross_attention_cache)
