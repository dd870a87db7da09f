"""Quantised weights: what a file computes is what its stored numbers say, and the contract has measured it."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import transformers
from fairlead.checkpoint.likelihood import TEXT
from fairlead.targets.onnx import OnnxExport
from onnx.reference import ReferenceEvaluator
from test_fused import checkpoint  # noqa: F401

import fairlead


class Mlp(torch.nn.Module):
    def __init__(self, size=64):
        super().__init__()
        self.up, self.down = torch.nn.Linear(size, 96), torch.nn.Linear(96, size)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


def dequantised(model, name):
    """A weight by the definition of MatMulNBits, computed here: [rows, columns]. Eight bits are two of four each."""
    tensors = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    scales = tensors[f"{name}.scales"]
    total = 0
    for part, factor in ((".packed", 1), (".high", 16), (".low", 1)):
        if f"{name}{part}" not in tensors:
            continue
        node = next(n for n in model.graph.node if n.op_type == "MatMulNBits" and n.input[1] == f"{name}{part}")
        at = {a.name: a.i for a in node.attribute}
        packed = tensors[f"{name}{part}"]
        levels = np.stack([packed & 15, packed >> 4], -1).reshape(at["N"], -1, at["block_size"]).astype(np.float64)
        zero = np.full(scales.shape, 8.0)
        if len(node.input) > 3:
            stored = tensors[f"{name}{part}.zero_points"]
            zero = np.stack([stored & 15, stored >> 4], -1).reshape(at["N"], -1)
            zero = zero[:, : scales.shape[1]].astype(np.float64)
        total += factor * ((levels - zero[..., None]) * scales[..., None]).reshape(at["N"], -1)[:, : at["K"]]
    return total


@pytest.mark.parametrize(
    "how",
    [
        fairlead.Int4(), fairlead.Int4(block=16, symmetric=False), fairlead.Int4(block=64, search=False),
        fairlead.Int8(), fairlead.Int8(block=16, symmetric=False),
    ],
    ids=repr,
)  # fmt: skip
def test_a_file_computes_what_its_stored_numbers_say(how, tmp_path):
    torch.manual_seed(0)
    model = Mlp().eval()
    result = fairlead.export(
        model, (torch.randn(3, 64),), tmp_path / "m.onnx", target=fairlead.OnnxRuntime(), quantize=how,
        external_data="never",
    )  # fmt: skip
    assert result.operators["MatMulNBits"] == (2 if how.bits == 4 else 4)
    stored = onnx.load(result.path)
    for layer in (model.up, model.down):
        name = "up.weight" if layer is model.up else "down.weight"
        weight = dequantised(stored, name)
        error = np.linalg.norm(weight - layer.weight.detach().numpy()) / np.linalg.norm(layer.weight.detach().numpy())
        assert result.contract.quantized.layers[name] == pytest.approx(error, rel=1e-3)
        assert error < (0.12 if how.bits == 4 else 0.01)
        layer.weight.data = torch.from_numpy(weight).float()
    x = torch.randn(5, 64)
    got = onnxruntime.InferenceSession(result.path).run(None, {"x": x.numpy()})[0]
    np.testing.assert_allclose(got, model(x).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("how", [fairlead.Int8(), fairlead.Int4(), fairlead.Int4(block=16, symmetric=False)], ids=repr)
def test_a_portable_file_has_standard_operators(how, tmp_path):
    torch.manual_seed(0)
    model, x = Mlp().eval(), torch.randn(3, 64)
    result = fairlead.export(model, (x,), tmp_path / "m.onnx", opset=21, quantize=how)
    assert result.operators["DequantizeLinear"] == 2
    stored = onnx.load(result.path)
    assert {each.domain for each in stored.opset_import} == {""}
    onnx.checker.check_model(stored)
    # By the standard's own implementation; ONNX Runtime rounds activations where it makes MatMulNBits of it.
    got = ReferenceEvaluator(stored).run(None, {"x": x.numpy()})[0]
    errors = result.contract.quantized.layers
    for name, layer in (("up.weight", model.up), ("down.weight", model.down)):
        node = next(n for n in stored.graph.node if n.op_type == "DequantizeLinear" and name in n.name)
        inputs = [t for n in node.input for t in stored.graph.initializer if t.name == n]
        alone = onnx.helper.make_graph(
            [node], "one", [], [onnx.helper.make_tensor_value_info(node.output[0], 1, None)], inputs
        )
        weight = ReferenceEvaluator(onnx.helper.make_model(alone, opset_imports=stored.opset_import)).run(None, {})[0].T
        floats = layer.weight.detach().numpy()
        assert errors[name] == pytest.approx(np.linalg.norm(weight - floats) / np.linalg.norm(floats), rel=1e-3)
        layer.weight.data = torch.from_numpy(weight.copy())
    expected = model(x).detach().numpy()
    np.testing.assert_allclose(got, expected, atol=1e-5)
    run = onnxruntime.InferenceSession(result.path).run(None, {"x": x.numpy()})[0]
    assert np.abs(run - expected).max() < 0.02 * np.abs(expected).max()


def test_a_decoder_is_quantised_with_its_head(checkpoint, tmp_path):  # noqa: F811
    source, model = checkpoint
    result = fairlead.export_checkpoint(
        source, tmp_path / "out", target=fairlead.OnnxRuntime(), quantize=fairlead.Int4(activations="int8")
    )
    part = result.parts["model.onnx"]
    assert part.operators["MatMulNBits"] == 2 * 5 + 1
    assert part.operators["GatherBlockQuantized"] == 1
    assert part.model_bytes + part.external_bytes < 0.45 * sum(p.numel() * 4 for p in model.parameters())
    text = str(part.contract)
    assert "weights to int4 in blocks of 32, activations in int8" in text
    assert "the most likely next token agrees at" in text
    assert "on a text of 255 tokens: negative log likelihood" in text
    found = part.contract.quantized.likelihood
    tokens = transformers.AutoTokenizer.from_pretrained(source)(TEXT, return_tensors="pt").input_ids[:, :256]
    with torch.no_grad():  # by PyTorch's own loss
        assert found.floats == pytest.approx(float(model(tokens, labels=tokens).loss), rel=1e-4)
    assert found.floats != found.file == pytest.approx(found.floats, abs=0.2)
    assert "Quantised" in onnx.load(part.path, load_external_data=False).metadata_props[-1].value or "Quantised" in str(
        [p.value for p in onnx.load(part.path, load_external_data=False).metadata_props]
    )
    tokens = np.array([[5, 9, 17, 33]])
    generated = fairlead.Generator.from_folder(result.folder).generate(input_ids=tokens, max_new_tokens=8)
    assert generated.shape == (1, 12)


@pytest.mark.parametrize("how", [fairlead.Int4(), fairlead.Int8(activations="int8"), fairlead.Int8()])
def test_rows_are_looked_up_at_two_places(how, tmp_path):
    """As encoder-decoders do: one table, and each node its own name."""

    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = torch.nn.Embedding(40, 64), torch.nn.Linear(64, 40, bias=False)
            self.head.weight = self.table.weight

        def forward(self, a, b):
            return self.head(self.table(a).mean(1, keepdim=True) + self.table(b))

    torch.manual_seed(0)
    model, call = Twice().eval(), (torch.randint(0, 40, (2, 3)), torch.randint(0, 40, (2, 5)))
    result = fairlead.export(model, call, tmp_path / "m.onnx", target=fairlead.OnnxRuntime(), quantize=how)
    assert result.operators["GatherBlockQuantized"] == 2 * result.operators["MatMulNBits"]
    names = [node.name for node in onnx.load(result.path).graph.node]
    assert len(set(names)) == len(names)
    call = [torch.randint(0, 40, (3, 7)), torch.randint(0, 40, (3, 4))]
    session = onnxruntime.InferenceSession(result.path, providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {i.name: t.numpy() for i, t in zip(session.get_inputs(), call, strict=True)})
    expected = model(*call).detach().numpy()
    assert np.abs(got - expected).max() < 0.25 * np.abs(expected).max()


def test_a_file_that_does_not_run_is_one_error(tmp_path, monkeypatch):
    """The second file too, that of the quantised weights."""
    run = OnnxExport.quantized

    def broken(job, contract):
        job.open = lambda path: (_ for _ in ()).throw(RuntimeError("two nodes with same node name"))
        return run(job, contract)

    monkeypatch.setattr(OnnxExport, "quantized", broken)
    words = r"^\[quantize\] Expected a file that ONNX Runtime runs, got: .*two nodes with same node name"
    with pytest.raises(fairlead.Discrepancy, match=words):
        exported(path=tmp_path / "m.onnx", quantize=fairlead.Int8(), target=fairlead.OnnxRuntime())
    assert not list(tmp_path.iterdir())


def exported(model=None, path="m.onnx", **options):
    return fairlead.export(model or Mlp().eval(), (torch.ones(1, 64),), path, **options)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda at: fairlead.Int4(block=24), "Expected block as one of 16, 32, 64, 128, 256, got 24"),
        (lambda at: fairlead.Int4(block=32.0), "Expected block as one of 16, 32, 64, 128, 256, got 32.0"),
        (lambda at: fairlead.Int4(head=3), "Expected head as True or False, got 3"),
        (lambda at: fairlead.Int8(symmetric="yes"), "Expected symmetric as True or False, got 'yes'"),
        (lambda at: fairlead.Int8(activations="int4"), 'Expected activations "float32" or "int8", got'),
        (
            lambda at: exported(quantize="int4"),
            r"Expected quantize as fairlead.Int4\(...\), fairlead.Int8\(...\) or None",
        ),
        (lambda at: exported(quantize=fairlead.Int8()), "Expected opset 21 or newer for quantised weights"),
        (
            lambda at: exported(path="m.pt2", quantize=fairlead.Int8()),
            "Expected a path that ends in .onnx with quantize",
        ),
        (
            lambda at: exported(torch.nn.ReLU().eval(), at, quantize=fairlead.Int4(), target=fairlead.OnnxRuntime()),
            "Expected a model with linear layers of float32 weights, got none",
        ),
    ],
)
def test_what_cannot_be_quantised_is_said(wrong, words, tmp_path):
    with pytest.raises(fairlead.InvalidInput, match=words):
        wrong(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_weights_that_no_block_holds_stay_floats_and_are_said(wrong, tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Linear(32, 64)).eval()
    with torch.no_grad():
        model[1].weight[3, 5] = wrong
    x = torch.randn(2, 64)
    result = fairlead.export(model, (x,), tmp_path / "m.onnx", quantize=fairlead.Int4(), opset=21)
    assert result.operators["DequantizeLinear"] == 1
    assert "it has weights that are not finite" in str(result.contract)
    session = onnxruntime.InferenceSession(result.path, providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    with torch.no_grad():
        eager = model(x).numpy()
    assert (np.isfinite(got) == np.isfinite(eager)).all()


def test_the_report_shows_what_was_lost(tmp_path):
    result = fairlead.export(
        Mlp().eval(),
        (torch.randn(3, 64),),
        tmp_path / "m.onnx",
        target=fairlead.OnnxRuntime(),
        quantize=fairlead.Int4(),
    )
    with open(fairlead.report.write_report(result.path), encoding="utf-8") as file:
        page = file.read()
    shown = page[page.index("What quantising cost") : page.index(">Structure<")]
    assert "Weights in int4 in blocks of 32." in shown
    errors = result.contract.quantized.layers
    places = [shown.index(f">{name}<") for name in sorted(errors, key=lambda name: -errors[name])]
    assert places == sorted(places)  # the largest first
    assert f"{max(errors.values()):.2g}" in shown
    plain = fairlead.export(Mlp().eval(), (torch.randn(3, 64),), tmp_path / "plain.onnx")
    with open(fairlead.report.write_report(plain.path), encoding="utf-8") as file:
        assert "What quantising cost" not in file.read()
