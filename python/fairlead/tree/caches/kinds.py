"""Which objects are caches or cache layers, told by what the installed Transformers has and what the object
holds.

No version number is compared anywhere: a class is a cache because it derives from one of the bases that
exist, or
because it is named like one and its instances hold per-layer state.
"""

from __future__ import annotations

import sys
from enum import Enum


class Kind(Enum):
    NOT = "not a cache"
    PAIR = "encoder-decoder"  # two caches: self_attention_cache and cross_attention_cache
    LAYERS = "layers"  # a cache with a list of layer objects
    LISTS = "lists"  # a cache with one list of tensors per kind of state (key_cache, value_cache, conv_states)
    LAYER = "layer"  # one layer on its own


# Names of base classes in transformers.cache_utils; which of them exist depends on the release.
CACHE_BASES = ("Cache", "MambaCache")
LAYER_BASES = ("CacheLayerMixin", "LinearAttentionCacheLayerMixin")

# Attributes that only a cache has, used for classes that derive from none of the bases (xLSTM, Mamba2, user
# classes).
LIST_STATE = ("key_cache", "value_cache", "conv_states", "ssm_states", "recurrent_states", "rnn_state")

_kinds: dict[type, Kind] = {}


def _named_bases(names: tuple[str, ...]) -> tuple[type, ...]:
    module = sys.modules.get("transformers.cache_utils")
    found = (getattr(module, name, None) for name in names)
    return tuple(base for base in found if isinstance(base, type))


def cache_bases() -> tuple[type, ...]:
    """The cache base classes of the installed Transformers; () when it is not imported (no cache can exist
    then).
    """
    return _named_bases(CACHE_BASES)


def layer_bases() -> tuple[type, ...]:
    """The layer base classes of the installed Transformers; () where caches are lists of tensors."""
    return _named_bases(LAYER_BASES)


def named_like_a_cache(cls: type) -> bool:
    # The name alone is not enough (functools caches, user tables): it has to be a plain class of that name.
    return "Cache" in cls.__name__ and not issubclass(cls, (dict, list, tuple, type)) and not hasattr(cls, "forward")


def kind_of(obj: object) -> Kind:
    """kind_of(DynamicCache()) is Kind.LAYERS in the layer-based layout, Kind.LISTS in the list-based one."""
    cls = type(obj)
    kind = _kinds.get(cls)
    if kind is None:
        kind, certain = _classify(cls, obj)
        if certain:
            _kinds[cls] = kind
    return kind


def _classify(cls: type, obj: object) -> tuple[Kind, bool]:
    """The kind, and whether it holds for every instance of the class (so that it may be remembered)."""
    layers = layer_bases()
    if layers and issubclass(cls, layers):
        return Kind.LAYER, True
    bases = cache_bases()
    derived = bool(bases) and issubclass(cls, bases)
    if not derived and not named_like_a_cache(cls):
        return Kind.NOT, True
    state = getattr(obj, "__dict__", None)
    if state is None:
        return Kind.NOT, True
    if "self_attention_cache" in state and "cross_attention_cache" in state:
        return Kind.PAIR, derived
    if isinstance(state.get("layers"), list):
        return Kind.LAYERS, derived
    if any(name in state for name in LIST_STATE):
        return Kind.LISTS, derived
    # A class of ours to judge again: an instance without state today may carry some tomorrow.
    return (Kind.LISTS if derived else Kind.NOT), False
