"""Caches of Transformers: told apart by features, taken apart without loss, built from tensors."""

from fairlead.tree.caches.build import make_dynamic_cache, make_encoder_decoder_cache, make_static_cache
from fairlead.tree.caches.kinds import Kind, kind_of
from fairlead.tree.caches.register import cache_classes, register_flattening_functions
from fairlead.tree.caches.state import CacheContext, put_together, remember_sizes, take_apart
from fairlead.tree.caches.support import describe_support

# The name that the block has in the project it is known from.
register_additional_serialization_functions = register_flattening_functions

__all__ = [
    "CacheContext",
    "Kind",
    "cache_classes",
    "describe_support",
    "kind_of",
    "make_dynamic_cache",
    "make_encoder_decoder_cache",
    "make_static_cache",
    "put_together",
    "register_additional_serialization_functions",
    "register_flattening_functions",
    "remember_sizes",
    "take_apart",
]
