"""Quantization with ONNX Runtime's own tools."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.exporters.configs import ExportFormat
from fairlead.exporters.quantizers.base import CalibrationSet, ExportQuantizer, LibraryArguments
from fairlead.exporters.quantizers.onnx_files import feed, loaded, saved
from fairlead.exporters.refusals import InvalidKind


@dataclass
class OnnxRuntimeStaticConfig(LibraryArguments):
    """Arguments of onnxruntime.quantization.quantize_static: weights and activations, calibrated."""

    quant_format: Any = None
    op_types_to_quantize: list[str] | None = None
    per_channel: bool | None = None
    reduce_range: bool | None = None
    activation_type: Any = None
    weight_type: Any = None
    nodes_to_quantize: list[str] | None = None
    nodes_to_exclude: list[str] | None = None
    calibrate_method: Any = None
    calibration_providers: list[str] | None = None
    extra_options: dict[str, Any] | None = None


@dataclass
class OnnxRuntimeDynamicConfig(LibraryArguments):
    """Arguments of onnxruntime.quantization.quantize_dynamic: weights only, activations when the model runs."""

    op_types_to_quantize: list[str] | None = None
    per_channel: bool | None = None
    reduce_range: bool | None = None
    weight_type: Any = None
    nodes_to_quantize: list[str] | None = None
    nodes_to_exclude: list[str] | None = None
    extra_options: dict[str, Any] | None = None


class OnnxRuntimeQuantizer(ExportQuantizer):
    """quantize_static with an OnnxRuntimeStaticConfig (the default), quantize_dynamic with an OnnxRuntimeDynamicConfig.

    >>> OnnxConfig(quantizer=OnnxRuntimeQuantizer(OnnxRuntimeDynamicConfig()))
    """

    supported_formats = (ExportFormat.ONNX,)
    required_packages = ("onnx", "onnx_ir", "onnxruntime")
    min_versions = {"onnxruntime": "1.21"}  # noqa: RUF012 - a ClassVar of the base

    def __init__(
        self,
        config: OnnxRuntimeStaticConfig | OnnxRuntimeDynamicConfig | None = None,
        calibration_dataset: Iterable[Mapping[str, Any]] | None = None,
    ):
        super().__init__(calibration_dataset)
        self.config = OnnxRuntimeStaticConfig() if config is None else config
        if not isinstance(self.config, (OnnxRuntimeStaticConfig, OnnxRuntimeDynamicConfig)):
            raise InvalidKind(
                "[OnnxRuntimeQuantizer] Expected an OnnxRuntimeStaticConfig or an OnnxRuntimeDynamicConfig, got "
                f"{type(config).__name__}."
            )

    def quantize(self, model: Any, sample_inputs: dict[str, Any], export_format: ExportFormat) -> Any:
        from onnxruntime.quantization import quantize_dynamic, quantize_static

        names = [value.name for value in model.graph.inputs]
        with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
            path, quantized = saved(model, folder), os.path.join(folder, "quantized.onnx")
            options = {"use_external_data_format": True, **self.config.to_kwargs()}
            if isinstance(self.config, OnnxRuntimeDynamicConfig):
                quantize_dynamic(path, quantized, **options)
            else:
                calls = CalibrationSet(self.calibration_dataset, sample_inputs, lambda call: feed(names, call))
                quantize_static(path, quantized, Reader(calls), **options)
            return loaded(quantized)


class Reader:
    """The interface through which quantize_static reads its calls."""

    def __init__(self, calls: CalibrationSet):
        self._calls = iter(calls)

    def get_next(self) -> dict[str, Any] | None:
        return next(self._calls, None)
