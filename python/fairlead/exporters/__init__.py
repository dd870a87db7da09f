"""The exporter classes that users of transformers.exporters know, in front of Fairlead's own engine.

    from fairlead.exporters import OnnxConfig, OnnxExporter
    program = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True, output_path="model.onnx"))

docs/exporters.md lists every name, what it does here, and where it differs on purpose.
"""

from __future__ import annotations

from typing import Any

from fairlead.base.lazy import load

# Name -> module of this package: imported on first use, so that configs can be made without torch.
_LAZY = {
    "AutoExportConfig": "auto",
    "AutoHfExporter": "auto",
    "get_hf_exporter": "auto",
    "register_export_config": "auto",
    "register_exporter": "auto",
    "HfExporter": "base",
    "DynamoConfig": "configs",
    "ExecutorchConfig": "configs",
    "ExportConfigMixin": "configs",
    "ExportFormat": "configs",
    "OnnxConfig": "configs",
    "OpenVINOConfig": "configs",
    "DynamoExporter": "dynamo",
    "ExecutorchExporter": "executorch",
    "OnnxExporter": "onnx",
    "OnnxProgram": "program",
    "OpenVINOExporter": "openvino",
    "ExportQuantizer": "quantizers",
    "NNCFOnnxQuantizer": "quantizers",
    "NNCFOpenVINOQuantizer": "quantizers",
    "NNCFQuantizationConfig": "quantizers",
    "NNCFTorchFXQuantizer": "quantizers",
    "NNCFWeightCompressionConfig": "quantizers",
    "OnnxRuntimeDynamicConfig": "quantizers",
    "OnnxRuntimeQuantizer": "quantizers",
    "OnnxRuntimeStaticConfig": "quantizers",
    "PT2EQuantizer": "quantizers",
}

__all__ = sorted(_LAZY)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = load(__name__, name, f"fairlead.exporters.{_LAZY[name]}")
        globals()[name] = value
        return value
    raise AttributeError(f"module 'fairlead.exporters' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_LAZY))
