"""OnnxExporter: fairlead.export behind the interface of transformers.exporters."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from fairlead.api import export_with
from fairlead.exporters.base import HfExporter
from fairlead.exporters.configs import ExportFormat, OnnxConfig
from fairlead.exporters.prepared import prepared
from fairlead.exporters.program import OnnxProgram, external_words
from fairlead.exporters.quantizers.traced import quantized_before
from fairlead.options import DEFAULT_OPSET, Options, check_path
from fairlead.patches.model_state import ModelState
from fairlead.tree.attribute_paths import attribute_paths, told_apart
from fairlead.tree.capture import Capture
from fairlead.tree.leaves import with_numbers


class OnnxExporter(HfExporter):
    """Exports to ONNX.

    >>> program = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True, output_path="model.onnx"))
    >>> outputs = program(**inputs)
    """

    required_packages: ClassVar[list[str]] = ["torch", "onnxruntime"]
    min_versions: ClassVar[dict[str, str]] = {"torch": "2.6", "onnxruntime": "1.20"}
    config_class = OnnxConfig

    def export(self, model: Any, sample_inputs: Any, config: Any = None) -> OnnxProgram:
        """The model as an OnnxProgram, written to config.output_path where that is set."""
        config = self.configured(config)
        path = None if config.output_path is None else check_path(config.output_path)
        quantizer = config.quantizer
        if quantizer is not None:
            quantizer.validate_environment(ExportFormat.ONNX)
        graph_first = quantizer is not None and quantizer.quantizes_fx_graph
        # A file without its weights cannot be verified: it is written from the program that was.
        plain = config.export_params and not config.keep_initializers_as_inputs and (quantizer is None or graph_first)
        with (
            prepared(model, sample_inputs, tracing=config.tracer == "torch.export") as sample,
            quantized_before(sample, quantizer, ExportFormat.ONNX, shapes_asked(config) != {}) as (target, call),
        ):
            named = names_of_transformers(target, call) if config.names == "transformers" else {}
            options = options_of(config, notes=sample.notes, **named)
            result = export_with(options, target, call, path if plain else None, config.tracer)
            program = OnnxProgram(result, target, sample.inputs)
            if quantizer is not None and not graph_first:
                program.quantize(quantizer, sample.inputs)
            if quantizer is not None:
                program.note_difference(type(quantizer).__name__, sample.inputs, sample.outputs())
        if path is not None and not plain:
            program.save(
                path,
                include_initializers=config.export_params,
                keep_initializers_as_inputs=config.keep_initializers_as_inputs,
                external_data=config.external_data,
            )
        return program


def names_of_transformers(model: torch.nn.Module, call: dict[str, Any]) -> dict[str, list[str]]:
    """input_names and output_names as transformers.exporters writes them; what the model returns has to be seen."""
    state = ModelState(model)
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            returned = with_numbers(model(**Capture().arguments(call)))
    finally:
        state.restore()
    inputs, outputs = told_apart([*attribute_paths(call).values()], [*attribute_paths(returned).values()])
    return {"input_names": inputs, "output_names": outputs}


def shapes_asked(config: Any) -> Any:
    """dynamic_shapes for fairlead.export: those of the config, None to find out, {} for sizes as in the sample."""
    if config.dynamic_shapes is not None:
        return config.dynamic_shapes
    return None if config.dynamic else {}


def options_of(config: OnnxConfig, **more: Any) -> Options:
    """What a configuration asks for, as fairlead.export takes it."""
    given = {
        "dynamic_shapes": shapes_asked(config), "external_data": external_words(config.external_data),
        "opset": DEFAULT_OPSET if config.opset_version is None else config.opset_version, "verify": config.verify,
        "allow_random": config.allow_random, "strict": config.strict, "optimize": config.optimize,
    }  # fmt: skip
    return Options(**(given | more))
