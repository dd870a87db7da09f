"""Names that are imported on first use; a package that is missing is one line with the pip command."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

# Module -> (what it is called, what pip installs).
_PACKAGES = {
    "accelerate": ("Accelerate", "gguf accelerate"),
    "click": ("click", "click rich"),
    "executorch": ("ExecuTorch", "executorch"),
    "gguf": ("gguf", "gguf accelerate"),
    "jinja2": ("jinja2", "jinja2"),
    "onnx": ("onnx", "onnx"),
    "onnxruntime": ("ONNX Runtime", "onnxruntime"),
    "openvino": ("OpenVINO", "openvino"),
    "ray": ("Ray", "ray"),
    "rich": ("rich", "click rich"),
    "tokenizers": ("tokenizers", "tokenizers"),
    "torch": ("PyTorch", "torch"),
    "transformers": ("Transformers", "transformers"),
}


def lazy_names(owner: str, names: dict[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """__getattr__ and __dir__ of the module `owner`, which imports its names on first use: name -> module."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {owner!r} has no attribute {name!r}")
        value = load(owner, name, names[name])
        setattr(sys.modules[owner], name, value)
        return value

    return find, lambda: sorted({*vars(sys.modules[owner]), *names})


def load(owner: str, name: str, module: str) -> Any:
    """`name` of `module`, for `owner.name`. Raises ImportError where a package of the extras is missing."""
    return getattr(load_module(f"{owner}.{name}", module), name)


def load_module(wanted: str, module: str) -> ModuleType:
    """The module; `wanted` is what it is imported for."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (explained := explain(error, wanted)) is error:
            raise
        raise explained from None


def explain(error: ImportError, wanted: str) -> ImportError:
    """The error with the command that installs what is missing; the same one where that is not known."""
    known = _PACKAGES.get((error.name or "").partition(".")[0])
    if known is None or not isinstance(error, ModuleNotFoundError):
        return error
    return ImportError(
        f"[fairlead] Expected {known[0]} for {wanted}, but it cannot be imported ({error}). "
        f"Install it with pip install {known[1]}.",
        name=error.name,
    )
