"""Post-training quantizers that a configuration can carry: OnnxConfig(quantizer=OnnxRuntimeQuantizer())."""

from __future__ import annotations

from fairlead.base.lazy import lazy_names

# Name -> module of this package: imported on first use; the libraries behind them when they quantize.
_LAZY = {
    "CalibrationSet": "fairlead.exporters.quantizers.base",
    "ExportQuantizer": "fairlead.exporters.quantizers.base",
    "NNCFOnnxQuantizer": "fairlead.exporters.quantizers.nncf",
    "NNCFOpenVINOQuantizer": "fairlead.exporters.quantizers.nncf",
    "NNCFQuantizationConfig": "fairlead.exporters.quantizers.nncf",
    "NNCFTorchFXQuantizer": "fairlead.exporters.quantizers.nncf",
    "NNCFWeightCompressionConfig": "fairlead.exporters.quantizers.nncf",
    "OnnxRuntimeDynamicConfig": "fairlead.exporters.quantizers.onnxruntime",
    "OnnxRuntimeQuantizer": "fairlead.exporters.quantizers.onnxruntime",
    "OnnxRuntimeStaticConfig": "fairlead.exporters.quantizers.onnxruntime",
    "PT2EQuantizer": "fairlead.exporters.quantizers.pt2e",
}

__all__ = sorted(_LAZY)

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
