"""A cache that is one buffer for past and present: the same tokens as eager's, in the Generator and in genai."""

import json

import numpy as np
import onnx
import pytest
import torch
from fairlead.runtime import generator as generators
from test_fused import checkpoint  # noqa: F401

import fairlead

STEPS = 64


@pytest.fixture(scope="module")
def shared(checkpoint):  # noqa: F811
    source, model = checkpoint
    target = fairlead.OnnxRuntime(cache="shared")
    return model, fairlead.export_checkpoint(source, source.parent / "shared", target=target)


def eager(model, tokens):
    given = {"input_ids": torch.from_numpy(tokens), "attention_mask": torch.ones(tokens.shape, dtype=torch.int64)}
    with torch.no_grad():
        made = model.generate(**given, max_new_tokens=STEPS, min_new_tokens=STEPS, do_sample=False)
    return made.numpy()


@pytest.mark.parametrize("rows", [1, 3])
def test_the_generator_writes_into_one_buffer(rows, shared, monkeypatch):
    model, result = shared
    monkeypatch.setattr(generators, "ROOM", 20)  # it is made longer on the way
    tokens = np.random.default_rng(rows).integers(3, 128, (rows, 5))
    generator = fairlead.Generator.from_folder(result.folder)
    run = generators.Run(generator, tokens, None, {"max_new_tokens": STEPS, "min_new_tokens": STEPS})
    buffers = []
    for _ in run:
        buffers.append(run.pool["past_key_values.0.key"].data_ptr())
    np.testing.assert_array_equal(run.tokens, eager(model, tokens))
    assert run.pool["past_key_values.0.key"].shape()[2] > tokens.shape[1] + STEPS - 1
    assert len(set(buffers)) <= 3  # not one of its own for each token


def test_the_file_takes_a_past_of_its_own_length_too(shared):
    """And says so in the contract, in generation.json and in genai_config.json."""
    _, result = shared
    part = result.parts["model.onnx"]
    assert "shared cache: 2 times" in str(part.contract)
    readers = [n.op_type for n in onnx.load(part.path).graph.node if any(i.startswith("past") for i in n.input)]
    assert readers == ["GroupQueryAttention"] * 2
    with open(f"{result.folder}/genai_config.json") as file:
        assert json.load(file)["search"]["past_present_share_buffer"] is True


def test_genai_runs_the_folder(shared):
    genai = pytest.importorskip("onnxruntime_genai")
    model, result = shared
    tokens = np.array([[5, 9, 17, 33]])
    settings = genai.GeneratorParams(run := genai.Model(result.folder))
    settings.set_search_options(max_length=tokens.shape[1] + STEPS, min_length=tokens.shape[1] + STEPS, do_sample=False)
    generator = genai.Generator(run, settings)
    generator.append_tokens(tokens.astype(np.int32))
    while not generator.is_done():
        generator.generate_next_token()
    np.testing.assert_array_equal(generator.get_sequence(0), eager(model, tokens)[0])


class Scores(torch.nn.Module):
    def forward(self, x):
        return x @ x.transpose(-1, -2)


def test_what_has_no_such_cache_says_so(tmp_path):
    target = fairlead.OnnxRuntime(cache="shared")
    result = fairlead.export(Scores().eval(), (torch.randn(2, 3, 4),), tmp_path / "m.onnx", target=target)
    assert "shared cache refused: no GroupQueryAttention reads a cache" in str(result.contract)
    with pytest.raises(fairlead.InvalidInput, match='Expected the cache "joined", "shared" or "int8", got \'static\''):
        fairlead.OnnxRuntime(cache="static")
