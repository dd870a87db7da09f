"""Quantizers in a configuration: what they make of a model, what it costs, and what is refused."""

import importlib.util
import sys

import pytest
import torch
from exporter_models import bert, ids, llama, llama_step
from fairlead.exporters import (
    ExportFormat,
    ExportQuantizer,
    NNCFOnnxQuantizer,
    NNCFOpenVINOQuantizer,
    NNCFTorchFXQuantizer,
    NNCFWeightCompressionConfig,
    OnnxConfig,
    OnnxExporter,
    OnnxRuntimeDynamicConfig,
    OnnxRuntimeQuantizer,
    OnnxRuntimeStaticConfig,
    OpenVINOConfig,
    PT2EQuantizer,
)
from fairlead.exporters.quantizers import CalibrationSet
from untouched import data_file, files, names

import fairlead

pytest.importorskip("onnx_ir", reason="the quantizers of ONNX models work on models of onnx-ir")

# 8 bits over the range of a tensor are steps of 1/255 of it; the outputs of these models are normalised, within 4 of 0.
STEP = 8 / 255


def needs(*packages):
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=f"pip install {' '.join(missing)}")


def calls() -> list[dict]:
    return [{"input_ids": ids(2, n), "attention_mask": torch.ones(2, n, dtype=torch.long)} for n in (7, 4)]


def refused(error, call, *args, **kwargs) -> str:
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "quantizer",
    [
        OnnxRuntimeQuantizer(OnnxRuntimeDynamicConfig()),
        OnnxRuntimeQuantizer(OnnxRuntimeStaticConfig(per_channel=True), calibration_dataset=calls()),
        pytest.param(NNCFOnnxQuantizer(calibration_dataset=calls()), marks=needs("nncf")),
        pytest.param(NNCFOnnxQuantizer(NNCFWeightCompressionConfig()), marks=needs("nncf")),
    ],
    ids=["dynamic", "static", "nncf", "nncf weights"],
)
def test_an_onnx_model_is_smaller_and_close(tmp_path, quantizer):
    model, inputs = bert()
    config = OnnxConfig(dynamic=True, output_path=tmp_path / "model.onnx", external_data=True, quantizer=quantizer)
    program = OnnxExporter().export(model, inputs, config=config)
    assert names(tmp_path) == ["model.onnx", "model.onnx.*.data"]
    weights = data_file(tmp_path / "model.onnx").stat().st_size
    plain = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True))
    plain.save(tmp_path / "plain.onnx", external_data=True)
    assert weights < 0.6 * data_file(tmp_path / "plain.onnx").stat().st_size
    other = {"input_ids": ids(3, 4), "attention_mask": torch.ones(3, 4, dtype=torch.long)}
    difference = (program(**other)[0] - model(**other)[0]).abs().max()
    assert 0 < difference < 4 * STEP
    row = program.discrepancies[-1]
    assert row["kind"] == "quantized"
    assert 0 < row["abs"] < 4 * STEP
    assert program.contract.notes[-1].startswith(f"quantized by {type(quantizer).__name__} after it was checked: ")
    text = "[OnnxProgram] Expected a quantized model to keep its weights"
    assert refused(ValueError, program.save, tmp_path / "x.onnx", include_initializers=False).startswith(text)


def test_without_calibration_data_the_sample_is_used_and_a_warning_says_so():
    model, inputs = bert()
    with pytest.warns(UserWarning, match="Calibrates with the sample of the export alone") as caught:
        OnnxExporter().export(model, inputs, config=OnnxConfig(quantizer=OnnxRuntimeQuantizer()))
    assert caught[0].filename == __file__


def test_a_calibration_call_that_lacks_an_input_is_refused():
    model, inputs = bert()
    quantizer = OnnxRuntimeQuantizer(calibration_dataset=[{"input_ids": ids()}])
    text = refused(fairlead.InvalidInput, OnnxExporter().export, model, inputs, config=OnnxConfig(quantizer=quantizer))
    assert text == (
        "[quantize] Expected calibration calls with the inputs input_ids, attention_mask, got one without "
        "attention_mask."
    )


def test_a_quantizer_of_ones_own():
    seen = []

    class Nothing(ExportQuantizer):
        supported_formats = (ExportFormat.ONNX,)

        def quantize(self, model, sample_inputs, export_format):
            seen.append((type(model).__name__, list(sample_inputs), export_format))
            return model

    model, inputs = bert()
    program = OnnxExporter().export(model, inputs | {"use_cache": False}, config=OnnxConfig(quantizer=Nothing()))
    assert seen == [("Model", ["input_ids", "attention_mask"], ExportFormat.ONNX)]
    torch.testing.assert_close(program(**inputs)[0], model(**inputs)[0], rtol=1e-4, atol=1e-5)


def test_a_library_that_fails_is_one_line():
    class Broken(ExportQuantizer):
        supported_formats = (ExportFormat.ONNX,)

        def quantize(self, model, sample_inputs, export_format):
            raise IndexError("tuple index\nout of range")

    model, inputs = bert()
    text = refused(fairlead.Unsupported, OnnxExporter().export, model, inputs, config=OnnxConfig(quantizer=Broken()))
    assert text == (
        "[Broken] Expected a model that it can quantize, but its library raised IndexError: tuple index. "
        "Use another quantizer, or other options of this one."
    )


def test_calibration_calls_are_made_each_time_and_one_by_one():
    made = []
    calls = CalibrationSet([{"n": 1}, {"n": 2}], {}, lambda call: made.append(call["n"]) or call["n"])
    assert (list(calls), list(calls), made) == ([1, 2], [1, 2], [1, 2, 1, 2])
    base = OnnxRuntimeQuantizer(calibration_dataset=[{"n": 1}])
    other = base.with_calibration([])
    assert (base.calibration_dataset, other.calibration_dataset) == ([{"n": 1}], [])


def test_what_quantizers_refuse():
    assert refused(ValueError, OnnxRuntimeQuantizer().validate_environment, ExportFormat.DYNAMO) == (
        "[OnnxRuntimeQuantizer] Expected an export to onnx, got one to dynamo. Use another quantizer."
    )
    model, inputs = bert()
    config = OnnxConfig(quantizer=NNCFOpenVINOQuantizer())
    assert refused(ValueError, OnnxExporter().export, model, inputs, config=config) == (
        "[NNCFOpenVINOQuantizer] Expected an export to openvino, got one to onnx. Use another quantizer."
    )
    assert refused(TypeError, OnnxRuntimeQuantizer, {"per_channel": True}) == (
        "[OnnxRuntimeQuantizer] Expected an OnnxRuntimeStaticConfig or an OnnxRuntimeDynamicConfig, got dict."
    )
    assert refused(TypeError, NNCFOnnxQuantizer, 3) == (
        "[NNCFOnnxQuantizer] Expected an NNCFQuantizationConfig or an NNCFWeightCompressionConfig, got int."
    )
    assert refused(TypeError, PT2EQuantizer, "int8").startswith("[PT2EQuantizer] Expected a quantizer of torchao")


def test_a_library_that_is_missing_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "nncf", None)
    model, inputs = bert()
    config = OnnxConfig(quantizer=NNCFOnnxQuantizer())
    assert refused(ImportError, OnnxExporter().export, model, inputs, config=config) == (
        '[NNCFOnnxQuantizer] Expected nncf>=2.18, got no nncf. Install with: pip install "nncf>=2.18"'
    )


@needs("torchao")
def test_a_graph_is_quantized_before_it_is_exported(tmp_path):
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    chosen = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    model, inputs = bert()
    quantizer = PT2EQuantizer(chosen, calibration_dataset=calls())
    config = OnnxConfig(dynamic=True, output_path=tmp_path / "model.onnx", quantizer=quantizer)
    program = OnnxExporter().export(model, inputs | {"use_cache": False}, config=config)
    operators = program.result.operators
    assert operators["QuantizeLinear"] >= 9
    assert operators["DequantizeLinear"] > operators["QuantizeLinear"]  # weights are stored as int8
    assert len(program.discrepancies) > 4  # the example and unseen calls, against the quantized graph, in value
    assert all(row["ok"] for row in program.discrepancies[:-1])
    assert "worst difference" in program.contract.verified
    assert program.contract.notes[-1].startswith("quantized by PT2EQuantizer before it was exported: ")
    other = {"input_ids": ids(3, 4), "attention_mask": torch.ones(3, 4, dtype=torch.long)}
    assert 0 < (program(**other)[0] - model(**other)[0]).abs().max() < 4 * STEP
    step = llama_step(llama())
    text = refused(fairlead.InvalidInput, OnnxExporter().export, llama(), step, config=OnnxConfig(quantizer=quantizer))
    assert text.startswith("[PT2EQuantizer] Expected inputs that are tensors, got past_key_values made of several")


@needs("nncf")
def test_nncf_quantizes_the_graph_of_torch(tmp_path):
    model, inputs = bert()
    config = OnnxConfig(output_path=tmp_path / "model.onnx", quantizer=NNCFTorchFXQuantizer())
    program = OnnxExporter().export(model, inputs | {"use_cache": False}, config=config)
    assert program.result.operators["QuantizeLinear"] + program.result.operators["DequantizeLinear"] >= 9
    assert "worst difference" in program.contract.verified
    assert program.contract.notes[-1].startswith("quantized by NNCFTorchFXQuantizer before it was exported: ")
    other = {"input_ids": ids(*inputs["input_ids"].shape), "attention_mask": torch.ones_like(inputs["attention_mask"])}
    assert 0 < (program(**other)[0] - model(**other)[0]).abs().max() < 4 * STEP


@needs("nncf", "openvino")
def test_nncf_quantizes_a_model_of_openvino():
    import openvino
    from fairlead.exporters import OpenVINOExporter

    model, inputs = bert()
    config = OpenVINOConfig(dynamic=True, quantizer=NNCFOpenVINOQuantizer(calibration_dataset=calls()))
    exported = OpenVINOExporter().export(model, inputs, config=config)
    assert sum(op.get_type_name() == "FakeQuantize" for op in exported.get_ops()) >= 9
    other = {"input_ids": ids(3, 4), "attention_mask": torch.ones(3, 4, dtype=torch.long)}
    compiled = openvino.compile_model(exported, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    got = torch.from_numpy(compiled({name: value.numpy() for name, value in other.items()})[0])
    assert 0 < (got - model(**other)[0]).abs().max() < 4 * STEP


# ---- OpenVINO ---------------------------------------------------------------------------------------


def test_without_openvino_its_exporter_is_one_line(monkeypatch):
    from fairlead.exporters import OpenVINOExporter

    monkeypatch.setitem(sys.modules, "openvino", None)
    assert refused(ImportError, OpenVINOExporter) == (
        '[OpenVINOExporter] Expected openvino>=2024.0, got no openvino. Install with: pip install "openvino>=2024.0"'
    )


@needs("openvino")
def test_openvino_computes_what_pytorch_computes(tmp_path):
    import openvino
    from fairlead.exporters import OpenVINOExporter

    model, inputs = bert()
    exported = OpenVINOExporter().export(
        model, inputs, config=OpenVINOConfig(dynamic=True, output_path=tmp_path / "model.xml")
    )
    assert list(files(tmp_path)) == ["model.bin", "model.xml"]
    other = {"input_ids": ids(3, 4), "attention_mask": torch.ones(3, 4, dtype=torch.long)}
    compiled = openvino.compile_model(exported, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    got = compiled({name: value.numpy() for name, value in other.items()})
    torch.testing.assert_close(torch.from_numpy(got[0]), model(**other)[0], rtol=1e-4, atol=1e-5)
    text = refused(ValueError, OpenVINOExporter().export, model, inputs, {"output_path": str(tmp_path / "model.onnx")})
    assert text.startswith("[OpenVINOExporter] Expected output_path to end in .xml")


@needs("openvino")
def test_openvino_keeps_the_cache_as_state():
    import numpy as np
    import openvino
    from fairlead.exporters import OpenVINOExporter

    model = llama()
    exported = OpenVINOExporter().export(model, llama_step(model), config=OpenVINOConfig(dynamic=True))
    assert [port.get_any_name() for port in exported.inputs] == ["input_ids", "attention_mask", "beam_idx"]
    request = openvino.compile_model(exported, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    tokens = ids(2, 9)
    steps = [
        request.infer(
            {
                "input_ids": tokens[:, start:end].numpy(),
                "attention_mask": np.ones((2, end), np.int64),
                "beam_idx": np.arange(2, dtype=np.int32),
            }
        )[0].copy()
        for start, end in ((0, 4), (4, 5), (5, 9))
    ]
    with torch.no_grad():
        expected = model(tokens).logits
    torch.testing.assert_close(torch.from_numpy(np.concatenate(steps, 1)), expected, rtol=1e-4, atol=1e-5)
