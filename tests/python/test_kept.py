"""Weights of quantised checkpoints that stay what they are: the file has the same numbers, bit for bit."""

import collections
import json
import re
import struct

import checkpoints
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from fairlead.checkpoint.loaded import load_model
from fairlead.checkpoint.source import find
from quantized_checkpoints import METHODS, folder_of
from safetensors.torch import load_file, save_file
from transformers import LlamaForCausalLM

import fairlead
from fairlead import _core

gguf = pytest.importorskip("gguf")
pytest.importorskip("accelerate")


def stored(path):
    """Matrices of a file by their stored integers, scales and offsets, by the definition of the operators."""
    model = onnx.load(path)
    tensors = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    found = {}
    for name in [name.removesuffix(".scales") for name in tensors if name.endswith(".scales")]:
        scales = tensors[f"{name}.scales"].astype(np.float64)

        def halves(packed, scales=scales):
            return np.stack([packed & 15, packed >> 4], -1).reshape(len(scales), -1).astype(np.float64)

        values = 0
        for part, factor in ((".packed", 1), (".high", 16), (".low", 1)):
            if f"{name}{part}" not in tensors:
                continue
            integers = halves(tensors[f"{name}{part}"]).reshape(*scales.shape, -1)
            zeros = np.full(scales.shape, 8.0)
            if f"{name}{part}.zero_points" in tensors:
                zeros = halves(tensors[f"{name}{part}.zero_points"])[:, : scales.shape[1]]
            values += factor * scales[..., None] * (integers - zeros[..., None])
        if f"{name}.offsets" in tensors:
            offsets = tensors[f"{name}.offsets"].astype(np.float64)
            offsets = offsets if offsets.shape == scales.shape else offsets.T
            values += offsets[..., None]
        found[name] = values.reshape(len(scales), -1).astype(np.float32)
    return found


def defined(path):
    """Rows of a GGUF file as the format's own library takes them apart."""
    rows = collections.Counter()
    for tensor in gguf.GGUFReader(path).tensors:
        if tensor.tensor_type.name != "F32":
            rows.update(rows_of(gguf.dequantize(tensor.data, tensor.tensor_type)))
    return rows


def rows_of(matrix):
    """As bytes; a zero has no sign."""
    return [row.tobytes() for row in matrix + np.float32(0)]


def logits(path, tokens):
    session = onnxruntime.InferenceSession(path)
    feeds = {"input_ids": tokens.numpy(), "attention_mask": np.ones_like(tokens.numpy())}
    for given in session.get_inputs():
        if given.name.startswith("past"):
            feeds[given.name] = np.zeros((1, given.shape[1], 0, given.shape[3]), np.float32)
        elif given.name == "position_ids":
            feeds[given.name] = np.arange(tokens.shape[1])[None]
    return session.run(["logits"], feeds)[0]


@pytest.mark.parametrize("kinds", [tuple(_core.stored_formats()), ("Q4_1",)], ids=["all", "Q4_1"])
def test_every_matrix_is_what_the_checkpoint_says(kinds, tmp_path):
    source = checkpoints.gguf(tmp_path / "tiny.gguf", kinds, tied=len(kinds) == 1)
    model = LlamaForCausalLM.from_pretrained(tmp_path, gguf_file="tiny.gguf").eval()
    result = fairlead.export_checkpoint(source, tmp_path / "out", weights=fairlead.Keep(), external_data="never")
    part = result.parts["model.onnx"]
    text = str(part.contract)
    found = stored(part.path)
    assert set(found) == set(part.contract.quantized.weights)
    rows = collections.Counter(row for matrix in found.values() for row in rows_of(matrix))
    assert rows == defined(source)
    # In the order of the model, which is not that of the checkpoint.
    weights = dict(model.state_dict())
    for name, matrix in found.items():
        if name in weights:
            np.testing.assert_array_equal(matrix, weights[name].numpy(), err_msg=name)
    if len(kinds) == 1:
        assert "packed projections: 2 times" in text
        assert "Kept from the checkpoint: 11 weights (11 in Q4_1)" in text
    else:
        assert part.operators["MatMulNBits"] == 15 + 8  # of 8 bits: two each
        assert set(part.contract.quantized.weights.values()) == set(kinds)
        assert "refused: the checkpoint holds queries, keys and values in different formats" in text
    assert not part.contract.quantized.floats
    assert not part.contract.quantized.unread
    assert part.contract.quantized.likelihood.file == pytest.approx(part.contract.quantized.likelihood.floats, abs=1e-3)
    assert part.contract.quantized.likelihood.agreement == 1
    tokens = torch.randint(3, 300, (1, 9))
    with torch.no_grad():
        expected = model(tokens).logits.numpy()
    np.testing.assert_allclose(logits(part.path, tokens), expected, atol=1e-4 * np.abs(expected).max())


def test_rounded_activations_are_measured(tmp_path):
    source = checkpoints.gguf(tmp_path / "tiny.gguf", ("Q4_0", "Q8_0"))
    result = fairlead.export_checkpoint(source, tmp_path / "out", weights=fairlead.Keep(activations="int8"))
    part = result.parts["model.onnx"]
    assert 0 < part.contract.quantized.outputs["logits"] < 0.2
    assert "activations are rounded to int8" in str(part.contract)
    assert part.contract.quantized.likelihood.file == pytest.approx(part.contract.quantized.likelihood.floats, abs=0.05)
    nodes = onnx.load(part.path, load_external_data=False).graph.node
    levels = {a.i for n in nodes if n.op_type == "MatMulNBits" for a in n.attribute if a.name == "accuracy_level"}
    assert levels == {4}


def kept(source, at, **options):
    return fairlead.export_checkpoint(source, at / "out", **({"weights": fairlead.Keep()} | options))


def cut(at):
    whole = checkpoints.gguf(at / "whole.gguf", ("Q4_0",)).read_bytes()
    (at / "cut.gguf").write_bytes(whole[: len(whole) * 2 // 3])
    return kept(at / "cut.gguf", at)


WRONG = {
    "floats": (
        lambda at: kept(checkpoints.gguf(at / "a.gguf"), at), "Expected quantised weights in .*, got floats alone"
    ),
    "a table of levels": (
        lambda at: kept(checkpoints.gguf(at / "a.gguf", ("Q4_0", "IQ4_NL")), at),
        "Expected weights in Q4_0, Q4_1, .*, got IQ4_NL in output.weight, which no kernel of ONNX Runtime holds "
        "without loss. Export it without keep, as floats or with quantize.",
    ),
    "cut": (cut, "Expected quantised weights in .*cut.gguf.* Check that the file is complete"),
    "a folder": (
        lambda at: kept(checkpoints.llama(at / "folder"), at),
        "Expected quantised weights to keep in .*, got floats alone",
    ),
    "both": (lambda at: kept("a.gguf", at, quantize=fairlead.Int4()), "or quantize, got both"),
    "halves": (lambda at: kept("a.gguf", at, dtype="float16"), "Expected dtype float32 for weights that are kept"),
    "a word": (lambda at: kept("a.gguf", at, weights="keep"), r"Expected weights as fairlead.Keep\(...\) or None"),
    "activations": (lambda at: fairlead.Keep("int4"), 'Expected activations "float32" or "int8"'),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_kept_is_said_before_anything_is_written(wrong, tmp_path):
    make, words = WRONG[wrong]
    with pytest.raises(fairlead.InvalidInput, match=words):
        make(tmp_path)
    assert not (tmp_path / "out").exists()


# ---- folders of other methods ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_folders_of_other_methods_are_kept_too(name, tmp_path):
    floats = folder_of(tmp_path / "folder", name)
    found = find(str(tmp_path / "folder"))
    model = load_model(found, "LlamaForCausalLM", torch.float32)
    for key, weight in floats.items():
        np.testing.assert_array_equal(model.state_dict()[key].numpy(), weight, err_msg=key)
    result = kept(tmp_path / "folder", tmp_path, external_data="never")
    part = result.parts["model.onnx"]
    assert set(part.contract.quantized.weights.values()) == {name}
    rows = {row for matrix in stored(part.path).values() for row in rows_of(matrix)}
    assert rows == {row for weight in floats.values() for row in rows_of(weight)}


FOLDERS = {
    "a method with a table": (
        {"quant_method": "bitsandbytes"},
        "Expected weights quantised by gptq, awq, compressed-tensors, hqq or in a GGUF file, got bitsandbytes in .*, "
        "which cannot be kept without loss: its levels come from a table",
    ),
    "columns by importance": ({"group_size": 64}, "columns in the order of their importance"),
    "three bits": ({"bits": 3}, "3 bits, not 4 or 8"),
    "no scales": ({"without": "scales"}, "in .* as gptq stores it, got KeyError: 'scales'"),
    "a wrong group": ({"group_size": 16, "without": "g_idx"}, "bytes of scales for .*, got"),
    "a group beyond 64 bits": ({"group_size": 2**70}, "as gptq stores it, got OverflowError"),
    "a group of 0": ({"group_size": 0}, "as gptq stores it, got|Expected"),
    "a group that no block divides": (
        {"group_size": 8, "without": "g_idx"},
        "that a block of 16 to 256 columns divides",
    ),
}


@pytest.mark.parametrize("kind", ["AWQ", "Q8_0", "F16"])
def test_weights_that_are_rounded_twice_are_said(kind, tmp_path):
    if kind == "AWQ":
        folder_of(source := tmp_path / "source", kind)
    else:
        source = checkpoints.gguf(tmp_path / "tiny.gguf", (kind,) if kind != "F16" else ())
    result = fairlead.export_checkpoint(
        source, tmp_path / "out", target=fairlead.OnnxRuntime(), quantize=fairlead.Int4(), functions=True
    )
    method = "awq" if kind == "AWQ" else "GGUF, Q8_0"
    words = f"The checkpoint is quantised already ({method}): its weights were taken apart and rounded a second time"
    assert (words in str(result.parts["model.onnx"].contract)) == (kind != "F16")


def test_formats_that_have_no_such_weights_are_refused(tmp_path):
    checkpoints.llama(tmp_path / "source")
    for options in ({"weights": fairlead.Keep()}, {"target": fairlead.OnnxRuntime()}, {"functions": True}):
        with pytest.raises(fairlead.InvalidInput, match=f"onnx among formats with {next(iter(options))}, got pt2, pte"):
            fairlead.export_checkpoint(tmp_path / "source", tmp_path / "out", formats=("pt2", "pte"), **options)


@pytest.mark.parametrize("wrong", FOLDERS)
def test_folders_that_cannot_be_kept_are_refused(wrong, tmp_path):
    changed, words = FOLDERS[wrong]
    folder_of(tmp_path / "folder", "GPTQ 4 bits", **changed)
    with pytest.raises(fairlead.InvalidInput, match=words):
        kept(tmp_path / "folder", tmp_path)
    assert not (tmp_path / "out").exists()


HQQ = {
    "axis": (lambda t: t * 0, "groups along axis 0, which are no blocks of a row"),
    "W_q": (lambda t: t[: len(t) // 2].clone(), "other integers than of 4 or 8 bits"),
    "zero": (lambda t: t.float(), "zero points of another type than scales"),
    "scale": (lambda t: t[1:].clone(), "bytes of scales for"),
    "shape": (lambda t: t.repeat(2), "too many values to unpack"),
}


@pytest.mark.parametrize("part", HQQ)
def test_other_forms_of_hqq_are_refused(part, tmp_path):
    changed, words = HQQ[part]
    folder_of(tmp_path / "folder", "HQQ 4 bits")
    (path,) = (tmp_path / "folder").glob("*.safetensors")
    tensors = load_file(path)
    name = next(name for name in tensors if name.endswith(f".{part}"))
    save_file(tensors | {name: changed(tensors[name])}, path, metadata={"format": "pt"})
    with pytest.raises(fairlead.InvalidInput, match=words):
        kept(tmp_path / "folder", tmp_path)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("groups", [7, [1], None, "x", {}, {"group_0": 7}, {"group_0": {"weights": [4]}}])
def test_settings_of_another_form_are_one_line(groups, run, tmp_path):
    folder_of(tmp_path / "folder", "compressed-tensors 4 bits", config_groups=groups)
    for more in ([], ["--weights", "keep"]):
        code, _, err = run("export", tmp_path / "folder", tmp_path / "out", "--no-verify", "--quiet", *more)
        assert code == 2
        assert re.fullmatch(r"error: \[export\] Expected \S+ in '.*' as compressed-tensors stores it, got .*\n", err)
    assert not (tmp_path / "out" / "model.onnx").exists()


def gguf_head(*settings, tensors=b"", count=0, order="<"):
    return b"GGUF" + struct.pack(f"{order}IQQ", 3, count, len(settings)) + b"".join(settings) + tensors


def setting(kind, rest, order="<"):
    return struct.pack(f"{order}Q", 1) + b"a" + struct.pack(f"{order}I", kind) + rest


HEADS = {
    "a list of 2 to the 62": (gguf_head(setting(9, struct.pack("<IQ", 4, 2**62))), "setting 0 beyond its end"),
    "texts of 2 to the 62": (gguf_head(setting(9, struct.pack("<IQ", 8, 2**62))), "setting 0 beyond its end"),
    "lists in lists": (gguf_head(setting(9, struct.pack("<IQ", 9, 1) * 50)), "setting 0 of lists in lists"),
    "a list in the other order": (
        gguf_head(setting(9, struct.pack(">IQ", 4, 2**62), ">"), order=">"), "setting 0 beyond its end"
    ),
    "a type that is none": (gguf_head(setting(99, b"")), "setting 0 of type 99"),
    "a tensor of many axes": (
        gguf_head(tensors=struct.pack("<Q", 1) + b"t" + struct.pack("<I", 1000), count=1), "tensor 0 of 1000 axes"
    ),
    "a tensor that is not there": (gguf_head(count=2**63), "tensor 0 beyond its end"),
    "nothing": (b"GGUF", "a version beyond its end"),
}  # fmt: skip


@pytest.mark.parametrize("kind", HEADS)
def test_a_gguf_file_that_names_more_than_it_holds_is_refused(kind, run, tmp_path):
    content, words = HEADS[kind]
    (tmp_path / "x.gguf").write_bytes(content)
    for more in ([], ["--weights", "keep"]):
        code, _, err = run("export", tmp_path / "x.gguf", tmp_path / "out", *more)
        assert code == 2
        assert f"error: [export] Expected a GGUF file that holds what it names, got {words} in '" in err


def test_an_index_that_names_a_link_to_itself_is_one_line(run, tmp_path):
    source = checkpoints.llama(tmp_path / "source")
    (source / "model.safetensors").rename(source / "a.safetensors")
    (source / "b.safetensors").symlink_to("b.safetensors")
    index = {"metadata": {}, "weight_map": {"a": "a.safetensors", "b": "b.safetensors"}}
    (source / "model.safetensors.index.json").write_text(json.dumps(index))
    code, _, err = run("export", source, tmp_path / "out", "--no-verify", "--quiet")
    assert code == 2
    words = r"error: \[export\] Expected plain files in '.*', got 'b.safetensors', which is none. Check that the .*\n"
    assert re.fullmatch(words, err)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            ["torch.nn:ReLU", "m.onnx", "--inputs", "3x4", "--weights", "keep"],
            "Expected a checkpoint with --weights keep",
        ),
        (["a.gguf", "out", "--activations", "int8"], "Expected a GGUF file, got 'a.gguf', which does not exist"),
        (["FLOATS", "out", "--activations", "int8"], "Expected --quantize with --activations, got none"),
        (["FLOATS", "out", "--cache", "shared"], "Expected --for onnxruntime with --cache shared, got a portable file"),
        (["FLOATS", "out", "--weights", "keep"], "Expected quantised weights to keep in"),
    ],
)
def test_the_command_line_says_what_does_not_go_together(given, words, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "FLOATS" in given:
        checkpoints.llama(tmp_path / "FLOATS")
    code, _, err = run("export", *given, "--quiet", "--no-report")
    assert code == 2
    assert words in err
    assert not (tmp_path / "out").exists()
