"""Real architectures, tiny and random, forward and decode: dynamic dims, and equal to eager at sizes never probed."""

import math
import subprocess
import sys

import pytest
import torch
import zoo

import fairlead

EVERYTHING = {**zoo.PLAIN, **zoo.MODELS}

# What each export must leave free. Batch is free everywhere; a decoder's past too.
SYMBOLS = {
    **{name: {"batch", "sequence"} for name in zoo.DECODERS},
    **{f"{name}_decode": {"batch", "sequence", "past"} for name in zoo.DECODERS},
    "bert_masked_lm": {"batch", "sequence"},
    "bert_classify": {"batch", "sequence"},
    "modernbert": {"batch", "sequence"},
    "t5": {"batch", "sequence", "decoder_sequence"},
    "bart": {"batch", "sequence", "decoder_sequence"},
    "whisper": {"batch", "decoder_sequence"},
    **{name: {"batch", "decoder_sequence", "past"} for name in ("t5_decode", "bart_decode", "whisper_decode")},
    "vit": {"batch"},
    "swin": {"batch", "height", "width"},
    "convnext": {"batch", "height", "width"},
    "clip": {"batch", "batch_1", "sequence"},
    "siglip": {"batch", "batch_1", "sequence"},
    "wav2vec2": {"batch", "samples"},
    "detr": {"batch", "height", "width"},
    "mlp": {"batch"},
    "convnet": {"batch", "image_dim_2", "image_dim_3"},
    "tagger": {"batch", "tokens_dim_1"},
    "encoder_layer": {"batch", "src_dim_1"},
    "unet": {"batch", "image_dim_2", "image_dim_3"},
}


def exported(name, tmp_path, dtype=None):
    torch.manual_seed(0)
    model, inputs = EVERYTHING[name]()
    if dtype is not None:
        model = model.to(dtype)
        nested = inputs if isinstance(inputs, dict) else list(inputs)
        leaves = fairlead.tree.get_leaf_tensors(nested)
        cast = [t.to(dtype) if t.is_floating_point() else t for t in leaves.values()]
        nested = fairlead.tree.replace_leaf_tensors(nested, cast)
        inputs = nested if isinstance(inputs, dict) else tuple(nested)
    return fairlead.export(model, inputs, tmp_path / "model.onnx")


@pytest.mark.parametrize("name", EVERYTHING)
def test_float32_matches_eager_at_unseen_sizes(name, tmp_path):
    result = exported(name, tmp_path)
    unseen = [row for row in result.discrepancies if row["kind"] == "unseen"]
    assert len(unseen) >= 3
    assert all(row["ok"] and row["scaled"] <= 1e-4 for row in result.discrepancies)
    assert SYMBOLS[name] <= {s["name"] for s in result.contract.symbols}, str(result.contract)
    smallest = unseen[0]["sizes"] == {s["name"]: s["min"] for s in result.contract.symbols}
    told = ("eager itself refuses", "the file holds both")
    assert smallest or any(words in note for words in told for note in result.contract.notes), result.contract


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", EVERYTHING)
def test_sixteen_bit_types_match_eager(name, dtype, tmp_path):
    result = exported(name, tmp_path, dtype)
    assert result.discrepancies
    assert all(row["ok"] and math.isfinite(row["scaled"]) for row in result.discrepancies)


@pytest.mark.parametrize("name", zoo.PLAIN)
def test_plain_pytorch_needs_no_transformers(name, tmp_path):
    """In a process in which Transformers cannot be imported."""
    script = f"""
import sys
sys.modules["transformers"] = None
sys.path.insert(0, {str(zoo.__file__.rsplit("/", 1)[0])!r})
import torch, zoo, fairlead
torch.manual_seed(0)
model, inputs = zoo.PLAIN[{name!r}]()
result = fairlead.export(model, inputs, {str(tmp_path / "model.onnx")!r})
assert all(row["ok"] for row in result.discrepancies) and len(result.discrepancies) >= 4
print("exported", result.nodes)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "exported" in done.stdout
