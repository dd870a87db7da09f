"""Fairlead takes PyTorch models out of PyTorch, by experiment.

    import fairlead
    result = fairlead.export(model, inputs, "model.onnx")
    print(result.contract)

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
from fairlead.lazy import load, load_module

# Name -> module: imported on first use.
_LAZY = {
    "export": "fairlead.pipeline",
    "export_checkpoint": "fairlead.checkpoint_export",
    "ExportResult": "fairlead.pipeline",
    "Contract": "fairlead.contract",
    "InputObserver": "fairlead.observer",
    "get_leaf_tensors": "fairlead.leaves",
    "make_dynamic_cache": "fairlead.caches",
    "make_encoder_decoder_cache": "fairlead.caches",
    "make_static_cache": "fairlead.caches",
    "observe": "fairlead.observer",
    "output_names": "fairlead.leaves",
    "register_flattening_functions": "fairlead.caches",
    "register_lowering": "fairlead.lowerings",
    "replace_leaf_tensors": "fairlead.leaves",
    "report_failure": "fairlead.report",
    "string_type": "fairlead.structure_text",
    "unregister_lowering": "fairlead.lowerings",
    "Generator": "fairlead.runtime",
    # The interface of transformers.exporters.
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
    "OpenVINOConfig": "fairlead.exporters",
    "OnnxProgram": "fairlead.exporters",
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
    "write_report": "fairlead.report",
    "apply_fx_node_fixes": "fairlead.patches",
    "apply_fx_program_fixes": "fairlead.patches",
    "apply_patches": "fairlead.patches",
    "patch_attribute": "fairlead.patches",
    "patch_attributes": "fairlead.patches",
    "patch_model_config": "fairlead.patches",
    "register_additional_serialization_functions": "fairlead.caches",
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


# Packages that are reached without an import of their own: fairlead.runtime.Generator.
_PACKAGES = ("exporters", "generation", "runtime")


def _report(self: FairleadError, path: Any) -> str:
    """Writes a page about this failure: where, why, what to try. See fairlead.report_failure."""
    from fairlead.report import report_failure

    return report_failure(self, path)


FairleadError.report = _report


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return load_module(f"fairlead.{name}", f"fairlead.{name}")
    if name in _LAZY:
        value = load(__name__, name, _LAZY[name])
        globals()[name] = value
        return value
    raise AttributeError(f"module 'fairlead' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_LAZY))
