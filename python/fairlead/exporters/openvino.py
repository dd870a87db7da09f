"""OpenVINOExporter: OpenVINO reads the ONNX file that was verified; caches become its state where asked for."""

from __future__ import annotations

import math
import os
import tempfile
from typing import Any, ClassVar

from fairlead._core import Discrepancy
from fairlead.base.staged import staged_file
from fairlead.exporters.base import HfExporter
from fairlead.exporters.configs import ExportFormat, OnnxConfig, OpenVINOConfig
from fairlead.exporters.onnx import OnnxExporter
from fairlead.exporters.prepared import Prepared, prepared
from fairlead.exporters.program import OnnxProgram
from fairlead.exporters.quantizers.base import quantized_by
from fairlead.exporters.quantizers.onnx_files import feed
from fairlead.exporters.refusals import InvalidValue
from fairlead.options import check_path
from fairlead.runtime.values import ort_value
from fairlead.verify.runtime_check import compare

# What both configurations have, and what concerns the export to ONNX.
COMMON = (
    "dynamic", "strict", "dynamic_shapes", "prefer_deferred_runtime_asserts_over_guards", "tracer", "verify",
    "allow_random",
)  # fmt: skip
BEAMS = "beam_idx"


class OpenVINOExporter(HfExporter):
    """Exports to OpenVINO.

    >>> model = OpenVINOExporter().export(model, inputs, config=OpenVINOConfig(dynamic=True, output_path="model.xml"))
    """

    required_packages: ClassVar[list[str]] = ["torch", "onnxruntime", "openvino"]
    min_versions: ClassVar[dict[str, str]] = {"torch": "2.6", "onnxruntime": "1.20", "openvino": "2024.0"}
    config_class = OpenVINOConfig

    def export(self, model: Any, sample_inputs: Any, config: Any = None) -> Any:
        """The model as an openvino.Model, written to config.output_path where that is set."""
        import openvino

        config = self.configured(config)
        path = None if config.output_path is None else checked_path(config.output_path)
        quantizer = config.quantizer
        if quantizer is not None:
            quantizer.validate_environment(ExportFormat.OPENVINO)
        common = {name: value for name, value in config if name in COMMON}
        graph_quantizer = quantizer if quantizer is not None and quantizer.quantizes_fx_graph else None
        with prepared(model, sample_inputs) as sample, tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
            program = OnnxExporter().export(model, sample_inputs, OnnxConfig(**common, quantizer=graph_quantizer))
            program.contract.notes[:0] = sample.notes
            file = os.path.join(folder, "model.onnx")
            program.save(file)
            converted = openvino.convert_model(file)
            if config.verify:
                check(converted, program, sample, graph_quantizer is None)
            if quantizer is not None and graph_quantizer is None:
                converted = quantized_by(quantizer, converted, sample.inputs, ExportFormat.OPENVINO)
        if config.stateful:
            keep_state(converted, program.input_names, program.output_names)
        converted.set_rt_info(str(program.contract), ["fairlead", "contract"])
        if path is not None:
            save(converted, path, config.compress_to_fp16)
        return converted


def check(model: Any, program: OnnxProgram, sample: Prepared, equal: bool) -> None:
    """Runs the converted model at the sample, in full precision, and compares with PyTorch; `equal` unless a quantizer
    has changed it.
    """
    import openvino

    compiled = openvino.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(feed(program.input_names, sample.inputs))
    got = [ort_value(results[name], results[name].dtype.name) for name in program.output_names]
    row = compare(program.output_names, sample.outputs(), got, None if equal else math.inf, program.contract.drawn)
    if equal and not row["ok"]:
        raise Discrepancy(
            f"[OpenVINOExporter] Expected OpenVINO to agree with eager, but output {row['output']!r} {row['problem']} "
            "at the sample. The ONNX model agreed: export to ONNX, or pass verify=False."
        )
    program.contract.notes.append(f"checked in OpenVINO at the example: worst difference {row['scaled']:.2g}")


def checked_path(given: Any) -> str:
    path = check_path(given)
    if not path.endswith(".xml"):
        raise InvalidValue(f"[OpenVINOExporter] Expected output_path to end in .xml, got '{path}'.")
    return path


def save(model: Any, path: str, compress: bool) -> None:
    """Both files get their names when they are complete, the weights first."""
    import openvino

    with staged_file(path, "OpenVINOExporter") as staging:
        openvino.save_model(model, staging.path, compress_to_fp16=compress)
        staging.commit_pair(os.path.basename(path).removesuffix(".xml") + ".bin")


def keep_state(model: Any, inputs: list[str], outputs: list[str]) -> None:
    """Cache tensors that come in as `past_key_values.0.key` and go out as `present.0.key` become variables, and a new
    input, beam_idx, says for each row of the batch which row of the state it continues.
    """
    import openvino
    from openvino import opset13
    from openvino._offline_transformations import apply_make_stateful_transformation

    pairs = {name: name.replace("past_key_values", "present", 1) for name in inputs if "past_key_values" in name}
    pairs = {before: after for before, after in pairs.items() if after in outputs}
    if not pairs:
        return
    beams = opset13.parameter([-1], openvino.Type.i32, BEAMS)
    beams.output(0).get_tensor().add_names({BEAMS})
    for name in pairs:
        state = model.input(name)
        targets = state.get_target_inputs()
        chosen = opset13.gather(state, beams, opset13.constant(0, openvino.Type.i64))
        for target in targets:
            target.replace_source_output(chosen.output(0))
    model.add_parameters([beams])
    model.validate_nodes_and_infer_types()
    apply_make_stateful_transformation(model, pairs)
