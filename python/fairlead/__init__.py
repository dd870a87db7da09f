"""Fairlead: takes a PyTorch model out of PyTorch by running it and looking."""

import importlib

# Public name -> module that holds it. Loaded on first use, so that importing fairlead imports no torch.
_LAZY = {
    "InputObserver": "fairlead.observer",
    "register_flattening_functions": "fairlead.caches",
    "make_dynamic_cache": "fairlead.caches",
    "make_static_cache": "fairlead.caches",
    "make_encoder_decoder_cache": "fairlead.caches",
    "string_type": "fairlead.string_type",
    "get_leaf_tensors": "fairlead.leaves",
    "replace_leaf_tensors": "fairlead.leaves",
    "output_names": "fairlead.leaves",
}


def __getattr__(name: str):
    if name not in _LAZY:
        raise AttributeError(f"module 'fairlead' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value
