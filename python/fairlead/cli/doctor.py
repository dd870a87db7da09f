"""What is installed, what works with it, what to install: the table behind `fairlead doctor`."""

from __future__ import annotations

import importlib
import platform
from importlib import metadata
from typing import Any

# Package, what it is for, whether an export that is checked needs it, how to install it.
PACKAGES = [
    ("torch", "models to export", True, "pip install torch"),
    ("onnxruntime", "checking what was written against PyTorch", True, "pip install onnxruntime"),
    ("numpy", "handing tensors to ONNX Runtime", True, "pip install numpy"),
    ("transformers", "exporting its models and caches", False, "pip install transformers"),
    ("onnx", "onnx.checker on written files", False, "pip install onnx"),
    ("tokenizers", "fairlead generate", False, "pip install tokenizers"),
    ("jinja2", "chat templates in fairlead generate", False, "pip install jinja2"),
    ("gguf", "reading GGUF files", False, "pip install gguf"),
    ("accelerate", "reading GGUF files", False, "pip install accelerate"),
    ("ray", "fairlead sweep --ray", False, "pip install ray"),
    ("rich", "progress on a terminal", False, "pip install rich"),
    ("jinja2", "the report", False, "pip install jinja2"),
]


def examine() -> dict[str, Any]:
    """One row per package: name, version or None, purpose, problem, advice."""
    from fairlead import _core

    rows = []
    for name, purpose, needed, install in PACKAGES:
        version, problem = None, ""
        try:
            version = metadata.version(name)
            importlib.import_module(name)
        except metadata.PackageNotFoundError:
            problem = "not installed"
        except Exception as error:  # installed, and broken: a wrong CUDA, a missing library
            problem = (str(error) or type(error).__name__).splitlines()[0][:160]
        rows.append(
            {"name": name, "version": version, "purpose": purpose, "needed": needed, "problem": problem,
             "advice": install if problem else ""}
        )  # fmt: skip
    broken = {row["name"] for row in rows if row["problem"]}
    report = {
        "fairlead": _core.__version__,
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
        "packages": rows,
        "can_export": "torch" not in broken,
        "can_verify": not broken & {"torch", "onnxruntime", "numpy"},
        "operators": len(_core.operator_rows()),
    }
    if "torch" not in broken:
        from fairlead.options import DEFAULT_OPSET, SMALLEST_OPSET, newest_opset

        report["opsets"] = {"smallest": SMALLEST_OPSET, "default": DEFAULT_OPSET, "newest": newest_opset()}
    return report
