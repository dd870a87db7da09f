"""Layers once: repeated modules as functions of the file, which runs and verifies as the same without them."""

import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import transformers
from checkpoints import llama

import fairlead
from fairlead import cli

LAYERS = 4


def decoder():
    config = transformers.LlamaConfig(
        vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=LAYERS, num_attention_heads=4,
        num_key_value_heads=2, use_cache=False,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    inputs = {"input_ids": torch.randint(1, 99, (2, 7)), "attention_mask": torch.ones(2, 7, dtype=torch.int64)}
    return model, inputs, "LlamaDecoderLayer", "model.layers.*"


def encoder():
    config = transformers.BertConfig(
        vocab_size=99, hidden_size=32, num_hidden_layers=LAYERS, num_attention_heads=4, intermediate_size=37
    )
    model = transformers.BertModel(config).eval()
    inputs = {"input_ids": torch.randint(1, 99, (2, 7)), "attention_mask": torch.ones(2, 7, dtype=torch.int64)}
    return model, inputs, "BertLayer", "encoder.layer.*"


def run(path, inputs):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = {each.name for each in session.get_inputs()}
    return session.run(None, {name: value.numpy() for name, value in inputs.items() if name in names})


TARGETS = {
    "portable": {}, "standard": {"opset": 23}, "fused": {"target": fairlead.OnnxRuntime()},
    "int4": {"target": fairlead.OnnxRuntime(), "quantize": fairlead.Int4()},
}  # fmt: skip


@pytest.mark.parametrize("options", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("made", [decoder, encoder])
def test_equal_layers_are_one_function(made, options, tmp_path):
    torch.manual_seed(0)
    model, inputs, name, modules = made()
    plain = fairlead.export(model, inputs, tmp_path / "plain.onnx", **options)
    result = fairlead.export(model, inputs, tmp_path / "m.onnx", functions=True, **options)
    found = onnx.load(result.path)
    if "target" not in options:  # the checker does not know operators of ONNX Runtime
        onnx.checker.check_model(found, full_check=True)
    (function,) = found.functions
    assert function.name == name
    assert sum(node.op_type == name for node in found.graph.node) == LAYERS
    assert result.operators[name] == LAYERS
    assert result.nodes < plain.nodes
    # Weights are inputs of the function, each layer's own.
    calls = [node for node in found.graph.node if node.op_type == name]
    assert all(any(f".{k}." in given for given in call.input) for k, call in enumerate(calls))
    assert f"{name} is {modules}: {LAYERS} calls of {len(function.node)} nodes" in str(result.contract)
    for got, want in zip(run(result.path, inputs), run(plain.path, inputs), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)


class Apart(torch.nn.Module):
    """Two layers that compute different things."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(
            [torch.nn.Tanh(), torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU())]
        )

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def test_what_does_not_repeat_says_so(tmp_path):
    result = fairlead.export(Apart().eval(), (torch.randn(2, 4),), tmp_path / "m.onnx", functions=True)
    assert not onnx.load(result.path).functions
    assert "none: no two modules of a list compute the same of their inputs" in str(result.contract)


class Shared(torch.nn.Module):
    """One module that is called several times, as ALBERT does, within one that is called once."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Module()
        self.inner.block = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.Tanh(), torch.nn.Linear(6, 8))
        self.inner.forward = self.go

    def go(self, x):
        for _ in range(4):
            x = self.inner.block(x)
        return x

    def forward(self, x):
        return self.inner(x).relu()


def test_a_module_that_is_called_again_and_again_is_one_function(tmp_path):
    model = Shared().eval()
    result = fairlead.export(model, (torch.randn(2, 8),), tmp_path / "m.onnx", functions=True)
    assert [(f.name, f.modules, f.calls) for f in result.contract.functions] == [("Sequential", "inner.block", 4)]
    names = [node.name for node in onnx.load(result.path).graph.node]
    assert len(set(names)) == len(names)
    x = torch.randn(5, 8)
    got = onnxruntime.InferenceSession(result.path).run(None, {"x": x.numpy()})[0]
    np.testing.assert_allclose(got, model(x).detach().numpy(), atol=1e-6)


class Twice(torch.nn.Module):
    """Layers of two kinds in turn, and of different widths."""

    def __init__(self):
        super().__init__()
        sizes = [(8, 6), (8, 6), (8, 5), (8, 5)]
        self.blocks = torch.nn.ModuleList(
            [torch.nn.Sequential(torch.nn.Linear(a, b), torch.nn.ReLU(), torch.nn.Linear(b, a)) for a, b in sizes]
        )

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x


def test_layers_of_two_kinds_are_two_functions(tmp_path):
    model = Twice().eval()
    result = fairlead.export(model, (torch.randn(2, 8),), tmp_path / "m.onnx", functions=True)
    assert [(f.name, f.calls) for f in result.contract.functions] == [("Sequential", 2), ("Sequential_2", 2)]
    x = torch.randn(5, 8)
    got = onnxruntime.InferenceSession(result.path).run(None, {"x": x.numpy()})[0]
    np.testing.assert_allclose(got, model(x).detach().numpy(), atol=1e-6)


def test_a_checkpoint_from_the_command_line(tmp_path, monkeypatch):
    llama(tmp_path / "source")
    words = [
        "export",
        str(tmp_path / "source"),
        str(tmp_path / "out"),
        "--for",
        "onnxruntime",
        "--functions",
        "--quiet",
    ]
    monkeypatch.setattr(sys, "argv", ["fairlead", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    model = onnx.load(tmp_path / "out" / "model.onnx")
    assert [function.name for function in model.functions] == ["LlamaDecoderLayer"]
    tokens = fairlead.Generator.from_folder(tmp_path / "out").generate(np.array([[5, 9, 17]]), max_new_tokens=6)
    assert tokens.shape == (1, 9)


def test_other_formats_have_none(tmp_path):
    with pytest.raises(fairlead.InvalidInput, match=r"Expected a path that ends in .onnx with functions"):
        fairlead.export(Apart().eval(), (torch.randn(2, 4),), tmp_path / "m.pt2", functions=True)
    with pytest.raises(fairlead.InvalidInput, match="Expected functions as True or False, got 'yes'"):
        fairlead.export(Apart().eval(), (torch.randn(2, 4),), tmp_path / "m.onnx", functions="yes")
