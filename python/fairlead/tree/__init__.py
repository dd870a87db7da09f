"""The trees of tensors that models take and give: names of their leaves, calls, caches, structures in words."""

from __future__ import annotations

from fairlead.base.lazy import lazy_names

# Name -> module: imported on first use.
_LAZY = {
    "get_leaf_tensors": "fairlead.tree.leaves",
    "make_dynamic_cache": "fairlead.tree.caches",
    "make_encoder_decoder_cache": "fairlead.tree.caches",
    "make_static_cache": "fairlead.tree.caches",
    "output_names": "fairlead.tree.leaves",
    "register_additional_serialization_functions": "fairlead.tree.caches",
    "register_flattening_functions": "fairlead.tree.caches",
    "replace_leaf_tensors": "fairlead.tree.leaves",
    "string_type": "fairlead.tree.structure_text",
}

__all__ = sorted(_LAZY)

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
