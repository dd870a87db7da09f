"""Forms in which a model comes: scripted, compiled, exported, with quantized weights, with gradients in its forward."""

import onnx
import onnxruntime
import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import fairlead


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(64, 128), torch.nn.Linear(128, 64)

    def forward(self, x):
        return self.second(torch.nn.functional.gelu(self.first(x)))


def exported(model, path, example, *others):
    """The contract; the file agrees with the model at other sizes."""
    result = fairlead.export(model, (example,), path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for x in (example, *others):
        (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        torch.testing.assert_close(torch.from_numpy(got), model(x).detach(), rtol=1e-4, atol=1e-4)
    return result.contract


def test_a_module_of_torch_export_has_no_modes(tmp_path):
    shapes = ({0: torch.export.Dim("rows")},)
    program = torch.export.export(Layers().eval(), (torch.randn(4, 64),), dynamic_shapes=shapes)
    exported(program.module(), tmp_path / "m.onnx", torch.randn(4, 64), torch.randn(7, 64))


def test_a_frozen_script_has_no_flag(tmp_path):
    exported(torch.jit.freeze(torch.jit.script(Layers().eval())), tmp_path / "m.onnx", torch.randn(4, 64))


def test_what_is_compiled_in_place_runs_as_it_is(tmp_path):
    """Compiling for every size that is tried takes half a minute, and a compiler."""
    model = Layers().eval()
    model.second = torch.compile(model.second, backend=refuse)
    model.compile(backend=refuse)
    result = fairlead.export(model, (torch.randn(4, 64),), tmp_path / "m.onnx")
    assert result.contract.inputs[0]["shape"] == ["batch", "64"]


def refuse(graph, inputs):
    raise AssertionError("compiled")


def test_a_model_in_parallel_is_the_model(tmp_path):
    exported(torch.nn.DataParallel(Layers()).eval(), tmp_path / "m.onnx", torch.randn(4, 64), torch.randn(3, 64))


@pytest.mark.parametrize("kind", ["int8", "int4", "both"])
def test_quantized_weights_of_torchao_stay_small(tmp_path, kind):
    quantization = pytest.importorskip("torchao.quantization")
    group = quantization.PerGroup(32)
    config = {
        "int8": lambda: quantization.Int8WeightOnlyConfig(),
        "int4": lambda: quantization.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=group),
        "both": lambda: quantization.Int8DynamicActivationInt8WeightConfig(),
    }[kind]()
    model, path = Layers().eval(), tmp_path / "m.onnx"
    quantization.quantize_(model, config)
    exported(model, path, torch.randn(4, 64), torch.randn(7, 64))
    kinds = {i.data_type for i in onnx.load(path).graph.initializer if len(i.raw_data) > 8000}
    assert kinds == {onnx.TensorProto.INT8}


def test_float8_weights_of_torchao_are_turned_as_floats(tmp_path):
    quantization = pytest.importorskip("torchao.quantization")
    model = Layers().eval()
    quantization.quantize_(model, quantization.Float8WeightOnlyConfig())
    exported(model, tmp_path / "m.onnx", torch.randn(4, 64), torch.randn(7, 64))


def test_flex_attention_is_what_it_computes(tmp_path):
    class Relative(torch.nn.Module):
        def forward(self, q):
            return flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score + (i - j) * 0.1)

    class Causal(torch.nn.Module):
        def forward(self, q):
            n = q.shape[2]
            return flex_attention(
                q, q, q, block_mask=create_block_mask(lambda b, h, i, j: i >= j, None, None, n, n, "cpu")
            )

    for model in (Relative(), Causal()):
        contract = exported(model.eval(), tmp_path / "m.onnx", torch.randn(2, 2, 16, 16), torch.randn(3, 2, 21, 16))
        assert "q_dim_2" in contract.inputs[0]["shape"]


def test_slices_in_vmap(tmp_path):
    class Rows(torch.nn.Module):
        def forward(self, x):
            return torch.vmap(lambda row: row[1:4].softmax(0) * row[:3].sum())(x)

    exported(Rows().eval(), tmp_path / "m.onnx", torch.randn(4, 9), torch.randn(2, 12))


def test_gradients_of_activations(tmp_path):
    class Forces(Layers):
        def forward(self, x):
            energy = lambda y: super(Forces, self).forward(y).tanh().pow(2).sum()  # noqa: E731
            return torch.func.grad(energy)(x)

    exported(Forces().eval(), tmp_path / "m.onnx", torch.randn(4, 64), torch.randn(3, 64))
