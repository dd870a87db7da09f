"""A static cache in a portable file: TensorScatter writes into a buffer, and the tokens are eager's."""

import numpy as np
import onnx
import pytest
import torch
from fairlead.checkpoint.folder_check import check_folder
from fairlead.checkpoint.source import find
from fairlead.runtime import generator as generators
from test_fused import checkpoint  # noqa: F401

import fairlead

STEPS = 64


@pytest.fixture(scope="module")
def static(checkpoint):  # noqa: F811
    source, model = checkpoint
    return model, fairlead.export_checkpoint(source, source.parent / "static", cache="static", opset=24)


def test_the_file_has_operators_of_the_standard_alone(static):
    _, result = static
    part = result.parts["model.onnx"]
    found = onnx.load(part.path)
    assert {each.domain for each in found.opset_import} == {""}
    onnx.checker.check_model(found, full_check=True)
    assert part.operators["TensorScatter"] == 4
    assert part.operators["Attention"] == 2
    assert part.operators["Pad"] == 1
    text = str(part.contract)
    assert "past_key_values.{0..1}.key: float32[batch, 2, cache, 16]" in text
    assert "The cache of 2 layers is static" in text


@pytest.mark.parametrize("rows", [1, 3])
def test_the_generator_writes_into_one_buffer(rows, static, monkeypatch):
    model, result = static
    monkeypatch.setattr(generators, "ROOM", 20)  # it is made longer on the way
    tokens = np.random.default_rng(rows).integers(3, 128, (rows, 5))
    with torch.no_grad():
        want = model.generate(torch.from_numpy(tokens), max_new_tokens=STEPS, min_new_tokens=STEPS, do_sample=False)
    run = generators.Run(
        fairlead.Generator.from_folder(result.folder), tokens, None, {"max_new_tokens": STEPS, "min_new_tokens": STEPS}
    )
    buffers = [run.pool["past_key_values.0.key"].data_ptr() for _ in run]
    np.testing.assert_array_equal(run.tokens, want.numpy())
    assert len(set(buffers)) <= 3


def test_verify_gives_the_file_its_buffer(static, checkpoint):  # noqa: F811
    rows = check_folder(static[1].folder, find(str(checkpoint[0])))
    assert len(rows) > 3
    assert all(row["ok"] for row in rows), rows


class Scores(torch.nn.Module):
    def forward(self, x):
        return x @ x.transpose(-1, -2)


def test_what_cannot_be_static_says_why(tmp_path):
    given = (torch.randn(2, 3, 4),)
    result = fairlead.export(Scores().eval(), given, tmp_path / "m.onnx", cache="static", opset=24)
    assert "The cache is not static: no Attention of the standard reads a cache that is joined" in str(result.contract)
    with pytest.raises(fairlead.InvalidInput, match="Expected opset 24 or newer for a static cache"):
        fairlead.export(Scores().eval(), given, tmp_path / "m.onnx", cache="static")
    with pytest.raises(fairlead.InvalidInput, match="Expected a portable file with a static cache, got a target"):
        fairlead.export(
            Scores().eval(), given, tmp_path / "m.onnx", cache="static", opset=24, target=fairlead.OnnxRuntime()
        )
    with pytest.raises(fairlead.InvalidInput, match='Expected cache "joined" or "static", got \'shared\''):
        fairlead.export(Scores().eval(), given, tmp_path / "m.onnx", cache="shared")
