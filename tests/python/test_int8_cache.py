"""A cache in int8: a quarter of the memory, tokens that are eager's where they are not close, and what it costs."""

import json

import numpy as np
import onnx
import pytest
import torch
import transformers
from checkpoints import saved
from fairlead.runtime import generator as generators
from test_fused import checkpoint  # noqa: F401

import fairlead

STEPS = 64


@pytest.fixture(scope="module")
def narrow(checkpoint):  # noqa: F811
    source, model = checkpoint
    target = fairlead.OnnxRuntime(cache="int8")
    return model, fairlead.export_checkpoint(source, source.parent / "int8", target=target)


def test_the_file_says_what_it_costs(narrow):
    _, result = narrow
    part = result.parts["model.onnx"]
    text = str(part.contract)
    assert "past_key_values.{0..1}.key: int8[batch, 2, past, 16]" in text
    assert "shared cache: 2 times" in text
    assert "Cache in int8: 4 tensors, a scale for each of 32 channels" in text
    cache = part.contract.quantized
    assert 0 < cache.outputs["logits"] < 0.05
    assert 0 < cache.outputs["present.1.value"] < 0.05
    assert abs(cache.likelihood.file - cache.likelihood.floats) < 0.02
    with open(f"{result.folder}/generation.json") as file:
        assert {(entry["dtype"], entry["shared"]) for entry in json.load(file)["cache"]} == {("int8", True)}
    graph = onnx.load(part.path).graph
    elements = {each.name: each.type.tensor_type.elem_type for each in [*graph.input, *graph.output]}
    assert {kind for name, kind in elements.items() if ".key" in name} == {onnx.TensorProto.INT8}


@pytest.mark.parametrize("rows", [1, 3])
def test_the_generator_follows_eager(rows, narrow, monkeypatch):
    """Fed with eager's tokens it expects the same next one wherever eager is sure of it."""
    model, result = narrow
    monkeypatch.setattr(generators, "ROOM", 20)  # the buffer is made longer on the way
    prompt = torch.from_numpy(np.random.default_rng(rows).integers(3, 128, (rows, 5)))
    with torch.no_grad():
        want = model.generate(prompt, max_new_tokens=STEPS, min_new_tokens=STEPS, do_sample=False)
        logits = model(want).logits
    run = generators.Run(fairlead.Generator.from_folder(result.folder), prompt.numpy(), None, {"max_new_tokens": STEPS})
    fed, compared = run.fed, 0
    for step in range(STEPS):
        got = run.forward(fed, run.parts_of(step))
        place = prompt.shape[1] + step
        top = logits[:, place - 1].topk(2).values
        sure = ((top[:, 0] - top[:, 1]) > 0.2 * top[:, 0].abs()).numpy()
        np.testing.assert_array_equal(got.argmax(-1)[sure], logits[:, place - 1].argmax(-1).numpy()[sure])
        compared += int(sure.sum())
        fed = run.take(want[:, place].numpy())
    assert compared >= 10 * rows
    assert run.pool["past_key_values.0.key"].numpy().dtype == np.int8


def test_with_quantised_weights_and_functions(checkpoint, tmp_path):  # noqa: F811
    source, _ = checkpoint
    result = fairlead.export_checkpoint(
        source, tmp_path / "out", target=fairlead.OnnxRuntime(cache="int8"), quantize=fairlead.Int4(), functions=True
    )
    part = result.parts["model.onnx"]
    text = str(part.contract)
    assert "int4 in blocks of 32" in text
    assert "Cache in int8: 4 tensors" in text
    assert "LlamaDecoderLayer is" in text
    tokens = fairlead.Generator.from_folder(result.folder).generate(np.array([[5, 9, 17]]), max_new_tokens=6)
    assert tokens.shape == (1, 9)


def test_positions_that_end_early_are_looked_at_as_far_as_they_go(tmp_path):
    """A table of 64 positions: 512 tokens are more than the model takes."""
    config = transformers.GPTBigCodeConfig(
        vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2
    )
    source = saved(transformers.GPTBigCodeForCausalLM(config), tmp_path / "source")
    result = fairlead.export_checkpoint(source, tmp_path / "out", target=fairlead.OnnxRuntime(cache="int8"))
    assert "Cache in int8: 4 tensors" in str(result.parts["model.onnx"].contract)


def test_what_cannot_be_says_why(tmp_path):
    class Scores(torch.nn.Module):
        def forward(self, x):
            return x @ x.transpose(-1, -2)

    target = fairlead.OnnxRuntime(cache="int8")
    result = fairlead.export(Scores().eval(), (torch.randn(2, 3, 4),), tmp_path / "m.onnx", target=target)
    assert "shared cache refused: no GroupQueryAttention reads a cache" in str(result.contract)
    with pytest.raises(
        fairlead.InvalidInput, match=r"Expected ONNX Runtime 1.31 or newer for a cache in int8, got 1.24"
    ):
        fairlead.OnnxRuntime(cache="int8", version="1.24")
