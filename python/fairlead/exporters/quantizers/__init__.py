"""Post-training quantizers that a configuration can carry: OnnxConfig(quantizer=OnnxRuntimeQuantizer())."""

from __future__ import annotations

from typing import Any

from fairlead.base.lazy import load

# Name -> module of this package: imported on first use; the libraries behind them when they quantize.
_LAZY = {
    "CalibrationSet": "base",
    "ExportQuantizer": "base",
    "NNCFOnnxQuantizer": "nncf",
    "NNCFOpenVINOQuantizer": "nncf",
    "NNCFQuantizationConfig": "nncf",
    "NNCFTorchFXQuantizer": "nncf",
    "NNCFWeightCompressionConfig": "nncf",
    "OnnxRuntimeDynamicConfig": "onnxruntime",
    "OnnxRuntimeQuantizer": "onnxruntime",
    "OnnxRuntimeStaticConfig": "onnxruntime",
    "PT2EQuantizer": "pt2e",
}

__all__ = sorted(_LAZY)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = load(__name__, name, f"fairlead.exporters.quantizers.{_LAZY[name]}")
        globals()[name] = value
        return value
    raise AttributeError(f"module 'fairlead.exporters.quantizers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_LAZY))
