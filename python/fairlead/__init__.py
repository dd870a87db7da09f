"""Fairlead takes PyTorch models out of PyTorch, by experiment.

Importing this package needs only numpy: torch, transformers and onnxruntime are imported by the
functions that use them.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public name -> the module that defines it, imported on first use.
_LAZY: dict[str, str] = {
    "InputObserver": "fairlead.observer",
    "get_leaf_tensors": "fairlead.leaves",
    "make_dynamic_cache": "fairlead.caches",
    "make_encoder_decoder_cache": "fairlead.caches",
    "make_static_cache": "fairlead.caches",
    "observe": "fairlead.observer",
    "output_names": "fairlead.leaves",
    "register_flattening_functions": "fairlead.caches",
    "replace_leaf_tensors": "fairlead.leaves",
    "string_type": "fairlead.string_type",
}

__all__ = ["__version__", *_LAZY]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
