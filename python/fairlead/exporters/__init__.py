"""The exporter classes that users of transformers.exporters know, in front of Fairlead's own engine.

    from fairlead.exporters import OnnxConfig, OnnxExporter
    program = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True, output_path="model.onnx"))

docs/exporters.md lists every name, what it does here, and where it differs on purpose.
"""

from __future__ import annotations

from fairlead.base.lazy import lazy_names

# Name -> module of this package: imported on first use, so that configs can be made without torch.
_LAZY = {
    "AutoExportConfig": "fairlead.exporters.auto",
    "AutoHfExporter": "fairlead.exporters.auto",
    "get_hf_exporter": "fairlead.exporters.auto",
    "register_export_config": "fairlead.exporters.auto",
    "register_exporter": "fairlead.exporters.auto",
    "HfExporter": "fairlead.exporters.base",
    "DynamoConfig": "fairlead.exporters.configs",
    "ExecutorchConfig": "fairlead.exporters.configs",
    "ExportConfigMixin": "fairlead.exporters.configs",
    "ExportFormat": "fairlead.exporters.configs",
    "OnnxConfig": "fairlead.exporters.configs",
    "OpenVINOConfig": "fairlead.exporters.configs",
    "DynamoExporter": "fairlead.exporters.dynamo",
    "ExecutorchExporter": "fairlead.exporters.executorch",
    "OnnxExporter": "fairlead.exporters.onnx",
    "OnnxProgram": "fairlead.exporters.program",
    "OpenVINOExporter": "fairlead.exporters.openvino",
    "ExportQuantizer": "fairlead.exporters.quantizers",
    "NNCFOnnxQuantizer": "fairlead.exporters.quantizers",
    "NNCFOpenVINOQuantizer": "fairlead.exporters.quantizers",
    "NNCFQuantizationConfig": "fairlead.exporters.quantizers",
    "NNCFTorchFXQuantizer": "fairlead.exporters.quantizers",
    "NNCFWeightCompressionConfig": "fairlead.exporters.quantizers",
    "OnnxRuntimeDynamicConfig": "fairlead.exporters.quantizers",
    "OnnxRuntimeQuantizer": "fairlead.exporters.quantizers",
    "OnnxRuntimeStaticConfig": "fairlead.exporters.quantizers",
    "PT2EQuantizer": "fairlead.exporters.quantizers",
}

__all__ = sorted(_LAZY)

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
