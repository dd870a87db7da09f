"""Fairlead takes PyTorch models out of PyTorch, by experiment.

    import fairlead
    result = fairlead.export(model, inputs, "model.onnx")
    print(result.contract)

Here is what most programs need, and every error. The rest is in its home: fairlead.exporters, fairlead.runtime,
fairlead.adapters, fairlead.tree (leaves, caches), fairlead.patches, fairlead.lowerings, fairlead.report.

Importing this needs only numpy; torch is imported when a name that works on models is used.
"""

from __future__ import annotations

from typing import Any

from fairlead._core import (
    Discrepancy,
    Diverged,
    FairleadError,
    InternalError,
    InvalidInput,
    ParseError,
    Unsolved,
    Unsupported,
    WriteError,
    __version__,
)
from fairlead.base.lazy import load, load_module
from fairlead.base.moved import find_moved_modules, moved

# Name -> module: imported on first use.
_LAZY = {
    "Contract": "fairlead.contract",
    "ExportResult": "fairlead.experiment.result",
    "Generator": "fairlead.runtime",
    "InputObserver": "fairlead.observer",
    "Int4": "fairlead.quantize",
    "Int8": "fairlead.quantize",
    "Keep": "fairlead.quantize",
    "OnnxRuntime": "fairlead.options",
    "export": "fairlead.api",
    "export_checkpoint": "fairlead.checkpoint.export",
    "observe": "fairlead.observer",
}

# Names that once were here -> their home: they work, with a warning.
_MOVED = {
    "get_leaf_tensors": "fairlead.tree",
    "make_dynamic_cache": "fairlead.tree",
    "make_encoder_decoder_cache": "fairlead.tree",
    "make_static_cache": "fairlead.tree",
    "output_names": "fairlead.tree",
    "register_additional_serialization_functions": "fairlead.tree",
    "register_flattening_functions": "fairlead.tree",
    "replace_leaf_tensors": "fairlead.tree",
    "string_type": "fairlead.tree",
    "register_lowering": "fairlead.lowerings",
    "unregister_lowering": "fairlead.lowerings",
    "report_failure": "fairlead.report",
    "write_report": "fairlead.report",
    "AutoExportConfig": "fairlead.exporters",
    "AutoHfExporter": "fairlead.exporters",
    "DynamoConfig": "fairlead.exporters",
    "DynamoExporter": "fairlead.exporters",
    "ExecutorchConfig": "fairlead.exporters",
    "ExecutorchExporter": "fairlead.exporters",
    "ExportConfigMixin": "fairlead.exporters",
    "ExportFormat": "fairlead.exporters",
    "HfExporter": "fairlead.exporters",
    "OnnxConfig": "fairlead.exporters",
    "OnnxExporter": "fairlead.exporters",
    "OnnxProgram": "fairlead.exporters",
    "OpenVINOConfig": "fairlead.exporters",
    "OpenVINOExporter": "fairlead.exporters",
    "get_hf_exporter": "fairlead.exporters",
    "register_export_config": "fairlead.exporters",
    "register_exporter": "fairlead.exporters",
    "decompose_for_generation": "fairlead.exporters.utils",
    "decompose_multimodal": "fairlead.exporters.utils",
    "decompose_prefill_decode": "fairlead.exporters.utils",
    "is_multimodal": "fairlead.exporters.utils",
    "prepare_for_export": "fairlead.exporters.utils",
    "register_export_input_preparer": "fairlead.exporters.utils",
    "apply_fx_node_fixes": "fairlead.patches",
    "apply_fx_program_fixes": "fairlead.patches",
    "apply_patches": "fairlead.patches",
    "patch_attribute": "fairlead.patches",
    "patch_attributes": "fairlead.patches",
    "patch_model_config": "fairlead.patches",
    "register_fx_node_fix": "fairlead.patches",
    "register_fx_program_fix": "fairlead.patches",
    "register_patch": "fairlead.patches",
    "reset_model_state": "fairlead.patches",
    "torch_export_patches": "fairlead.patches",
    "unregister_patch": "fairlead.patches",
}

__all__ = [
    "Discrepancy", "Diverged", "FairleadError", "InternalError", "InvalidInput", "ParseError", "Unsolved",
    "Unsupported", "WriteError", "__version__", *sorted(_LAZY),
]  # fmt: skip


# The homes that are reached without an import of their own: fairlead.runtime.Generator.
_PACKAGES = ("adapters", "exporters", "generation", "lowerings", "patches", "report", "runtime", "tree")

find_moved_modules()


def _report(self: FairleadError, path: Any) -> str:
    """Writes a page about this failure: where, why, what to try. See fairlead.report.report_failure."""
    from fairlead.report import report_failure

    return report_failure(self, path)


FairleadError.report = _report  # type: ignore[method-assign]  # it is made in C++, and writes no pages


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return load_module(f"fairlead.{name}", f"fairlead.{name}")
    if name in _LAZY:
        value = load(__name__, name, _LAZY[name])
        globals()[name] = value
        return value
    if name in _MOVED:
        return moved(name, _MOVED[name])
    raise AttributeError(f"module 'fairlead' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_LAZY))
