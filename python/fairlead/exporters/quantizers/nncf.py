"""Quantization and compression of weights with NNCF, of ONNX and OpenVINO models and of graphs of torch.export."""

from __future__ import annotations

import copy
import dataclasses
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.exporters.configs import ExportFormat
from fairlead.exporters.quantizers.base import CalibrationSet, ExportQuantizer, LibraryArguments
from fairlead.exporters.quantizers.onnx_files import feed, saved
from fairlead.exporters.quantizers.traced import traced_call
from fairlead.exporters.refusals import InvalidKind


@dataclass
class NNCFQuantizationConfig(LibraryArguments):
    """Arguments of nncf.quantize: weights and activations, calibrated. model_type is TRANSFORMER unless it is set."""

    mode: Any = None
    preset: Any = None
    target_device: Any = None
    subset_size: int | None = None
    fast_bias_correction: bool | None = None
    model_type: Any = None
    ignored_scope: Any = None
    advanced_parameters: Any = None


@dataclass
class NNCFWeightCompressionConfig(LibraryArguments):
    """Arguments of nncf.compress_weights: weights only, as 8 or 4 bits."""

    mode: Any = None
    ratio: float | None = None
    group_size: int | None = None
    ignored_scope: Any = None
    all_layers: bool | None = None
    sensitivity_metric: Any = None
    subset_size: int | None = None
    awq: bool | None = None
    scale_estimation: bool | None = None
    gptq: bool | None = None
    lora_correction: bool | None = None
    backup_mode: Any = None
    compression_format: Any = None
    advanced_parameters: Any = None


class NNCFQuantizer(ExportQuantizer):
    """nncf.quantize with an NNCFQuantizationConfig (the default), nncf.compress_weights with the other one."""

    min_versions = {"nncf": "2.18"}  # noqa: RUF012 - a ClassVar of the base

    def __init__(
        self,
        config: NNCFQuantizationConfig | NNCFWeightCompressionConfig | None = None,
        calibration_dataset: Iterable[Mapping[str, Any]] | None = None,
    ):
        super().__init__(calibration_dataset)
        self.config = NNCFQuantizationConfig() if config is None else config
        if not isinstance(self.config, (NNCFQuantizationConfig, NNCFWeightCompressionConfig)):
            raise InvalidKind(
                f"[{type(self).__name__}] Expected an NNCFQuantizationConfig or an NNCFWeightCompressionConfig, got "
                f"{type(config).__name__}."
            )

    def run(self, model: Any, calls: CalibrationSet, backend: dict[str, Any] | None = None) -> Any:
        import nncf

        config = self.config
        if backend:
            made = nncf.AdvancedQuantizationParameters
            if isinstance(config, NNCFWeightCompressionConfig):
                made = nncf.AdvancedCompressionParameters
            advanced = copy.deepcopy(config.advanced_parameters) or made()
            advanced.backend_params.update(backend)
            config = dataclasses.replace(config, advanced_parameters=advanced)
        if isinstance(config, NNCFQuantizationConfig):
            options = {"model_type": nncf.ModelType.TRANSFORMER, **config.to_kwargs()}
            return nncf.quantize(model, nncf.Dataset(calls), **options)
        # The modes of 8 bits look at the weights alone, and refuse data.
        modes = nncf.CompressWeightsMode
        without_data = config.mode in (None, modes.INT8_SYM, modes.INT8_ASYM)
        return nncf.compress_weights(model, dataset=None if without_data else nncf.Dataset(calls), **config.to_kwargs())


class NNCFOnnxQuantizer(NNCFQuantizer):
    """On the exported ONNX model."""

    supported_formats = (ExportFormat.ONNX,)
    required_packages = ("nncf", "onnx", "onnx_ir", "onnxruntime")

    def quantize(self, model: Any, sample_inputs: dict[str, Any], export_format: ExportFormat) -> Any:
        import onnx
        import onnx_ir
        from nncf.onnx.quantization.backend_parameters import BackendParameters

        names = [value.name for value in model.graph.inputs]
        calls = CalibrationSet(self.calibration_dataset, sample_inputs, lambda call: feed(names, call))
        with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
            proto = onnx.load(saved(model, folder), load_external_data=False)
            return onnx_ir.from_proto(self.run(proto, calls, {BackendParameters.EXTERNAL_DATA_DIR: folder}))


class NNCFOpenVINOQuantizer(NNCFQuantizer):
    """On the exported OpenVINO model."""

    supported_formats = (ExportFormat.OPENVINO,)
    required_packages = ("nncf", "openvino")

    def quantize(self, model: Any, sample_inputs: dict[str, Any], export_format: ExportFormat) -> Any:
        names = [port.get_any_name() for port in model.inputs]
        return self.run(model, CalibrationSet(self.calibration_dataset, sample_inputs, lambda call: feed(names, call)))


class NNCFTorchFXQuantizer(NNCFQuantizer):
    """On the graph of torch.export."""

    quantizes_fx_graph = True
    supported_formats = (ExportFormat.DYNAMO, ExportFormat.ONNX, ExportFormat.OPENVINO, ExportFormat.EXECUTORCH)
    required_packages = ("nncf", "torch")

    def quantize(self, model: Any, sample_inputs: dict[str, Any], export_format: ExportFormat) -> Any:
        import torch

        names = list(sample_inputs)
        calls = CalibrationSet(self.calibration_dataset, sample_inputs, lambda call: traced_call(names, call))
        with torch.no_grad():
            return self.run(model, calls)
