"""Quantization of the graph of torch.export with torchao."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairlead.exporters.configs import ExportFormat
from fairlead.exporters.quantizers.base import CalibrationSet, ExportQuantizer
from fairlead.exporters.quantizers.traced import traced_call
from fairlead.exporters.refusals import InvalidKind


class PT2EQuantizer(ExportQuantizer):
    """prepare_pt2e, the calibration calls, convert_pt2e.

    quantizer: a quantizer of torchao for the target: X86InductorQuantizer for PyTorch and ONNX, XNNPACKQuantizer for
        ExecuTorch.
    """

    quantizes_fx_graph = True
    supported_formats = (ExportFormat.DYNAMO, ExportFormat.ONNX, ExportFormat.OPENVINO, ExportFormat.EXECUTORCH)
    required_packages = ("torch", "torchao")
    min_versions = {"torchao": "0.11"}  # noqa: RUF012 - a ClassVar of the base

    def __init__(self, quantizer: Any, calibration_dataset: Iterable[Mapping[str, Any]] | None = None):
        super().__init__(calibration_dataset)
        if not callable(getattr(quantizer, "annotate", None)):
            raise InvalidKind(
                f"[PT2EQuantizer] Expected a quantizer of torchao, with annotate, got {type(quantizer).__name__}. "
                "Use X86InductorQuantizer or XNNPACKQuantizer."
            )
        self.quantizer = quantizer

    def quantize(self, model: Any, sample_inputs: dict[str, Any], export_format: ExportFormat) -> Any:
        import torch
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

        names = list(sample_inputs)
        calls = CalibrationSet(self.calibration_dataset, sample_inputs, lambda call: traced_call(names, call))
        prepared = prepare_pt2e(model, self.quantizer)
        with torch.no_grad():
            for call in calls:
                prepared(**call)
        # OpenVINO stores a weight's pair of quantize and dequantize itself, and has no form for a lone dequantize.
        return convert_pt2e(prepared, fold_quantize=export_format is not ExportFormat.OPENVINO)
