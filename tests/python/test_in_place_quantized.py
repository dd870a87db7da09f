"""Quantised checkpoints that nobody loads: their weights are made floats while they are streamed into one more file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import checkpoints
import numpy as np
import onnx
import pytest
import torch
from fairlead._core import InvalidInput
from quantized_checkpoints import FLOAT8, METHODS, folder_of, mxfp4
from safetensors.torch import load_file, save_file
from test_in_place import SIZES, hashes, made, run_both

import fairlead

transformers = pytest.importorskip("transformers", minversion="5.0")
T: Any = transformers


def initializers(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    found = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(str(path)).graph.initializer}
    return {name: tensor for name, tensor in found.items() if tensor.ndim > 1}


def eager(folder: Path, floats: dict[str, Any], cls: Any, dtype: torch.dtype = torch.float32) -> Any:
    """A model with these weights, and with those of the folder that are floats there."""
    config = T.AutoConfig.from_pretrained(folder)
    del config.quantization_config
    model = cls(config).eval()
    held = {k: v for k, v in load_file(folder / "model.safetensors").items() if k in model.state_dict()}
    model.load_state_dict(held | {k: torch.as_tensor(v) for k, v in floats.items()}, strict=True)
    return model.to(dtype)


PLACES = [*((name, "in_place") for name in (*METHODS, *FLOAT8)), ("fp8 in blocks", "copy"), ("AWQ", "copy")]


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_weights_are_those_that_the_checkpoint_stands_for(tmp_path: Path, name: str, place: str) -> None:
    folder = tmp_path / "folder"
    floats = folder_of(folder, name)
    before = hashes(folder)
    if place == "in_place":
        out, result = folder, fairlead.export_checkpoint(folder, in_place=True)
    else:
        out, result = tmp_path / "out", fairlead.export_checkpoint(folder, tmp_path / "out", place=place)
    assert result.worst is not None
    assert result.worst < 1e-5
    assert result.parts["model.onnx"].external_bytes == 0, "what is not in the checkpoint was streamed"
    assert {file: after for file, after in hashes(folder).items() if file in before} == before
    (data,) = [file for file in result.files if file.endswith(".data")]
    assert f"converted into {data}" in result.notes[-1]
    found = {row.tobytes() for tensor in initializers(out / "model.onnx").values() for row in tensor}
    for key, weight in floats.items():
        assert {row.tobytes() for row in weight} <= found, key
    assert run_both(out, eager(folder, floats, T.LlamaForCausalLM), 2, 5, 3) < 1e-5


def experts() -> Any:
    more = {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 8, "sliding_window": 16}
    kinds = {"layer_types": ["sliding_attention", "full_attention"]}
    return T.GptOssForCausalLM(T.GptOssConfig(**SIZES | {"intermediate_size": 64} | more | kinds))


@pytest.mark.parametrize("dtype", [None, "float32"])
def test_experts_of_four_bits(tmp_path: Path, dtype: str | None) -> None:
    folder = tmp_path / "folder"
    floats = mxfp4(folder, experts())
    result = fairlead.export_checkpoint(folder, in_place=True, dtype=dtype)
    assert result.dtype == dtype or result.dtype == "bfloat16"
    assert result.parts["model.onnx"].external_bytes == 0
    if dtype == "float32":
        assert result.worst is not None
        assert result.worst < 1e-5
        assert run_both(folder, eager(folder, floats, T.GptOssForCausalLM), 2, 5, 3) < 1e-5
    rows = {
        part.astype(np.float32).tobytes() for t in initializers(folder / "model.onnx").values() for part in (t, *t)
    }  # experts stand together, or each by itself
    for key, weight in floats.items():  # exact in 16 bits, too
        assert {row.tobytes() for row in weight.numpy()} <= rows, key


def test_loaded_ones_are_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    floats = mxfp4(folder, experts())
    fairlead.export_checkpoint(folder, tmp_path / "out")
    assert run_both(tmp_path / "out", eager(folder, floats, T.GptOssForCausalLM), 2, 5, 3) < 1e-5


# ---- what is refused -----------------------------------------------------------------------------------------


def with_tensors(folder: Path, change: Any) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def with_method(folder: Path, **settings: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] |= settings
    (folder / "config.json").write_text(json.dumps(config))


KEY = "model.layers.0.mlp.up_proj.weight"
WRONG: dict[str, tuple[Any, str]] = {
    "a method of others": (
        lambda folder: with_method(folder, quant_method="bitsandbytes"),
        "Expected floats, or weights quantised by gptq, awq, compressed-tensors, hqq, fp8, fbgemm_fp8, modelopt, "
        "mxfp4, "
        "where none is loaded, got bitsandbytes in",
    ),
    "a method of nobody": (lambda folder: with_method(folder, quant_method="sevenbits"), "got sevenbits in"),
    "scales of another name": (
        lambda folder: with_tensors(folder, lambda t: t.update({"x.scale": t.pop(f"{KEY}_scale_inv")})),
        f"Expected scales of {KEY} in .* as fp8 stores them, got float8_e4m3fn without. Save it as floats",
    ),
    "a scale less": (
        lambda folder: with_tensors(folder, lambda t: t.update({f"{KEY}_scale_inv": t[f"{KEY}_scale_inv"][1:]})),
        f"Expected {KEY} in .* as fp8 stores it, got ValueError: scales",
    ),
    "blocks of nothing": (
        lambda folder: with_method(folder, weight_block_size=[0, 0]), f"Expected {KEY[:14]}.* got ZeroDivisionError",
    ),
    "no blocks": (lambda folder: with_method(folder, weight_block_size=7), "as fp8 stores it, got TypeError"),
    "scales of integers": (
        lambda folder: with_tensors(folder, lambda t: t.update({f"{KEY}_scale_inv": t[f"{KEY}_scale_inv"].int()})),
        "as fp8 stores it, got ValueError: torch.float8_e4m3fn",
    ),
}  # fmt: skip


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_read_is_one_error(tmp_path: Path, what: str, in_place: bool) -> None:
    folder = tmp_path / "folder"
    folder_of(folder, "fp8 in blocks")
    change, words = WRONG[what]
    change(folder)
    before = hashes(folder)
    if what == "a method of others" and not in_place:
        pytest.skip("Transformers loads it, with the library of that method")
    with pytest.raises(InvalidInput, match=words) as caught:
        fairlead.export_checkpoint(folder, None if in_place else tmp_path / "out", in_place=in_place, verify=False)
    assert "\n" not in str(caught.value)
    assert hashes(folder) == before
    assert not (tmp_path / "out").exists()


def test_what_is_computed_with_when_it_is_loaded_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small tensors would fill the memory as a large one does."""
    folder = made("llama tied", tmp_path / "twin")
    kept = T.LlamaForCausalLM.from_pretrained.__func__

    def doubled(cls: Any, *args: Any, state_dict: Any, **kwargs: Any) -> Any:
        return kept(cls, *args, state_dict={k: v[...] * 1.0 for k, v in state_dict.items()}, **kwargs)

    monkeypatch.setattr(T.LlamaForCausalLM, "from_pretrained", classmethod(doubled))
    monkeypatch.setattr("fairlead.checkpoint.parts.SMALL", 20_000)
    with pytest.raises(InvalidInput, match=r"with those before it\) is computed with when it is loaded. Export"):
        fairlead.export_checkpoint(folder, in_place=True)


def test_memory_stays_bounded(tmp_path: Path) -> None:
    """0.4 GB of weights in 8 bits, 0.8 GB as they are written."""
    sizes = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 6, "vocab_size": 1024}
    heads = {"num_attention_heads": 16, "num_key_value_heads": 16}
    with torch.device("meta"):
        model = T.LlamaForCausalLM(T.LlamaConfig(**SIZES | sizes | heads))
    model.config.architectures, model.config.dtype = ["LlamaForCausalLM"], torch.bfloat16
    model.config.save_pretrained(tmp_path)
    with_settings = json.loads((tmp_path / "config.json").read_text())
    with_settings["quantization_config"] = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    (tmp_path / "config.json").write_text(json.dumps(with_settings))
    held: dict[str, torch.Tensor] = {}
    for name, tensor in model.state_dict().items():
        if not name.endswith("proj.weight"):
            held[name] = torch.ones(tensor.shape, dtype=torch.bfloat16)
            continue
        held[name] = torch.full(tensor.shape, 0x38, dtype=torch.uint8).view(torch.float8_e4m3fn)
        held[f"{name}_scale_inv"] = torch.ones(tensor.shape[0] // 128, tensor.shape[1] // 128)
    save_file(held, tmp_path / "model.safetensors")
    written = sum(2 * t.numel() for name, t in held.items() if name.endswith("proj.weight"))
    held.clear()
    assert written > 800e6
    assert checkpoints.memory_in_place(tmp_path) < 300, "megabytes above interpreter and torch"
    (data,) = tmp_path.glob("*.data")
    assert os.path.getsize(data) >= written
    onnx.checker.check_model(str(tmp_path / "model.onnx"))


LARGE = """
import json, re, struct, sys
from pathlib import Path
import numpy as np
import torch
from fairlead._core import ConvertedFile, PlacedWeights, StoredMatrix, WeightFolder, add_decoded

peak = lambda: int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1]) >> 10
folder, kind, rows, columns = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
sizes = {"F16": (2, [rows, columns])}
if kind != "turned":
    words = {"I32": (4, [columns // 8, rows] if kind == "GPTQ 4 bits" else [columns, rows // 8])}
    sizes = words | {"F16": (2, [columns // 128, rows]), "U8": (1, [columns // 128, rows // 2])}
header, at, places = {}, 0, []
for word, (size, shape) in sizes.items():
    places.append((at, at + size * int(np.prod(shape))))
    header[word] = {"dtype": word, "shape": shape, "data_offsets": list(places[-1])}
    at = places[-1][1]
text = json.dumps(header).encode()
with open(folder / "model.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    file.truncate(8 + len(text) + at)
files = WeightFolder(folder)
number, begin = 0, 8 + len(text)
if kind != "turned":
    memory = files.memory(0)
    integers, scales, zeros = (memory[begin + a : begin + b] for a, b in places)
    matrix = StoredMatrix.of_groups("w", kind, rows, columns, 128, integers, scales, "float16", zeros)
    number = add_decoded(files, "w", [rows, columns], matrix)
before = peak()
blocks = files.blocks(number)
file = ConvertedFile(files, folder / "made", "made", 2)
PlacedWeights(files).add_converted(file, blocks.permuted([1, 0]) if kind == "turned" else blocks, "float16")
file.close()
assert (folder / "made").stat().st_size == 2 * rows * columns
print(peak() - before)
"""


@pytest.mark.parametrize("kind", ["GPTQ 4 bits", "AWQ", "turned"])
def test_memory_does_not_grow_with_a_matrix(tmp_path: Path, kind: str) -> None:
    """Rows of these formats, and of a matrix that is transposed, are spread over all of its bytes: 67 and 134 MB."""
    took = []
    for rows, columns in ((1024, 2048), (8192, 16384)):
        where = tmp_path / str(rows)
        where.mkdir()
        words = [sys.executable, "-c", LARGE, str(where), kind, str(rows), str(columns)]
        took.append(int(subprocess.run(words, capture_output=True, text=True, check=True).stdout))
    assert took[1] - took[0] < 40, f"megabytes: {took}"
