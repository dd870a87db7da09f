"""More rows of hostile_files.py: checkpoints with quantised weights, and weights that stay in their files, that are
wrong."""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import checkpoints
import torch
from hostile_files import row
from quantized_checkpoints import folder_of
from safetensors.torch import load_file, save_file


@cache
def made(method: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fairlead-hostile-")) / "source"
    folder_of(folder, method)
    return folder


def with_tensors(folder: Path, method: str, change: Callable[[dict[str, torch.Tensor]], None]) -> Path:
    copy = Path(shutil.copytree(made(method), folder / "source"))
    tensors = load_file(copy / "model.safetensors")
    change(tensors)
    save_file({name: t.contiguous() for name, t in tensors.items()}, copy / "model.safetensors")
    return copy


def with_settings(folder: Path, method: str, change: Callable[[dict[str, Any]], Any]) -> Path:
    copy = Path(shutil.copytree(made(method), folder / "source"))
    config = json.loads((copy / "config.json").read_text())
    changed = change(config["quantization_config"])
    if changed is not None:
        config["quantization_config"] = changed
    (copy / "config.json").write_text(json.dumps(config))
    return copy


LAYER = "model.layers.0.mlp.up_proj."
PARTS = {
    "GPTQ 4 bits": ("qweight", "qzeros", "scales", "g_idx"),
    "AWQ": ("qweight", "qzeros", "scales"),
    "compressed-tensors 4 bits": ("weight_packed", "weight_scale", "weight_zero_point", "weight_shape"),
    "compressed-tensors int8": ("weight", "weight_scale"),
    "fp8 in blocks": ("weight", "weight_scale_inv"),
    "compressed-tensors fp8": ("weight", "weight_scale"),
}
CHANGES: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "none": lambda t: None,
    "empty": lambda t: torch.empty(0, dtype=t.dtype),
    "a number": lambda t: t.flatten()[0].clone(),
    "half of it": lambda t: t[: len(t) // 2].clone(),
    "twice": lambda t: torch.cat([t, t]),
    "one more axis": lambda t: t[None].clone(),
    "flat": lambda t: t.flatten().clone(),
    "turned": lambda t: t.t().contiguous() if t.dim() == 2 else t.flip(0),
    "floats": lambda t: t.double(),
    "bytes": lambda t: t.to(torch.int8),
    "true and false": lambda t: t.bool(),
    "complex": lambda t: t.to(torch.complex64),
    "negative": lambda t: (-t.float().abs() - 1).to(t.dtype) if t.itemsize == 1 else -t.abs() - 1,
    "large": lambda t: torch.full_like(t, 127 if t.itemsize == 1 else 2**31 - 1 if not t.is_floating_point() else 6e4),
    "no number": lambda t: torch.full_like(t, float("nan")) if t.is_floating_point() else torch.zeros_like(t),
}


def changed_part(part: str, change: Callable[[torch.Tensor], torch.Tensor | None]) -> Callable:
    def apply(tensors: dict[str, torch.Tensor]) -> None:
        value = change(tensors.pop(LAYER + part))
        if value is not None:
            tensors[LAYER + part] = value

    return apply


for method, parts in PARTS.items():
    for part in parts:
        for words, change in CHANGES.items():
            row(f"quantised: {method}: {part} is {words}", with_tensors, method, changed_part(part, change))

BAD: dict[str, Any] = {
    "0": 0, "-1": -1, "3": 3, "64": 64, "2 to the 70": 2**70, "a fraction": 4.5, "a text": "x", "a list": [4],
    "an object": {"a": 4}, "null": None, "true": True, "escapes": "\x1b[2J",
}  # fmt: skip
for method in ("GPTQ 4 bits", "AWQ"):
    for name in ("bits", "group_size", "quant_method", "desc_act", "checkpoint_format", "version", "sym",
                 "modules_to_not_convert"):  # fmt: skip
        for words, value in BAD.items():
            row(f"quantised: {method}: {name} is {words}", with_settings, method,
                lambda settings, name=name, value=value: settings.update({name: value}))  # fmt: skip
for words, value in (BAD | {"sizes of 0": [0, 0], "sizes below 0": [-1, 128], "three sizes": [1, 2, 3]}).items():
    for name in ("weight_block_size", "quant_method", "modules_to_not_convert", "activation_scheme"):
        row(f"quantised: fp8 in blocks: {name} is {words}", with_settings, "fp8 in blocks",
            lambda settings, name=name, value=value: settings.update({name: value}))  # fmt: skip
TENSORS = "compressed-tensors 4 bits"
for words, value in BAD.items():
    for name in ("format", "config_groups", "ignore", "quantization_status", "kv_cache_scheme"):
        row(f"quantised: {TENSORS}: {name} is {words}", with_settings, TENSORS,
            lambda settings, name=name, value=value: settings.update({name: value}))  # fmt: skip
    for name in ("num_bits", "group_size", "type", "strategy", "symmetric", "actorder"):
        row(f"quantised: {TENSORS}: {name} of weights is {words}", with_settings, TENSORS,
            lambda settings, name=name, value=value: settings["config_groups"]["group_0"]["weights"].update(
                {name: value}))  # fmt: skip
    row(f"quantised: {TENSORS}: group_0 is {words}", with_settings, TENSORS,
        lambda settings, value=value: settings["config_groups"].update(group_0=value))  # fmt: skip
    row(f"quantised: {TENSORS}: targets are {words}", with_settings, TENSORS,
        lambda settings, value=value: settings["config_groups"]["group_0"].update(targets=value))  # fmt: skip
    row(f"quantised: the settings are {words}", with_settings, TENSORS, lambda settings, value=value: value or [])

# ---- GGUF files that are whole but for a few bytes -------------------------------------------------------------


@cache
def whole_gguf() -> bytes:
    folder = Path(tempfile.mkdtemp(prefix="fairlead-hostile-"))
    return checkpoints.gguf(folder / "x.gguf", ("Q4_0", "Q8_0")).read_bytes()


def gguf_with(folder: Path, change: Callable[[bytearray], bytes | None]) -> Path:
    data = bytearray(whole_gguf())
    (folder / "x.gguf").write_bytes(change(data) or data)
    return folder / "x.gguf"


def after(key: bytes, at: int, value: bytes) -> Callable[[bytearray], None]:
    """Bytes behind a name."""

    def change(data: bytearray) -> None:
        place = bytes(data).index(key) + len(key) + at
        data[place : place + len(value)] = value

    return change


BLOCK = b"blk.0.ffn_up.weight"
for words, at, value in (
    ("no axis", 0, struct.pack("<I", 0)),
    ("five axes", 0, struct.pack("<I", 5)),
    ("a negative size", 4, struct.pack("<q", -64)),
    ("a size of 0", 4, struct.pack("<q", 0)),
    ("an odd size", 4, struct.pack("<q", 63)),
    ("a size of 2 to the 62", 4, struct.pack("<q", 2**62)),
    ("another size", 4, struct.pack("<q", 128)),
    ("another type", 20, struct.pack("<I", 0)),
    ("a type that is none", 20, struct.pack("<I", 77)),
    ("a type of 2 to the 32", 20, struct.pack("<I", 2**32 - 1)),
    ("an odd place", 24, struct.pack("<Q", 1)),
    ("a place beyond the end", 24, struct.pack("<Q", 2**50)),
    ("a place of 2 to the 64", 24, struct.pack("<Q", 2**64 - 1)),
    ("the place of another", 24, struct.pack("<Q", 0)),
):
    row(f"gguf: a tensor of {words} in a whole file", gguf_with, after(BLOCK, at, value))
for key in (b"llama.block_count", b"llama.attention.head_count", b"llama.embedding_length", b"llama.context_length",
            b"llama.feed_forward_length", b"llama.attention.head_count_kv", b"llama.rope.dimension_count"):  # fmt: skip
    for words, value in (("0", 0), ("2 to the 32", 2**32 - 1), ("7", 7), ("a million", 10**6)):

        def setting(data: bytearray, key: bytes = key, value: int = value) -> None:
            if key in data:
                after(key, 4, struct.pack("<I", value))(data)

        row(f"gguf: {key.decode()} of {words}", gguf_with, setting)
    row(f"gguf: {key.decode()} of a type that is none", gguf_with,
        lambda data, key=key: after(key, 0, struct.pack("<I", 99))(data) if key in data else None)  # fmt: skip
for part in range(1, 16):
    row(f"gguf: cut at {part} of 16", gguf_with, lambda data, part=part: bytes(data[: len(data) * part // 16]))

# ---- weights that stay in their files --------------------------------------------------------------------------


@cache
def plain() -> Path:
    return checkpoints.llama(Path(tempfile.mkdtemp(prefix="fairlead-hostile-")) / "source")


def with_header(folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """A header of safetensors in which something else is said of the same bytes."""
    copy = Path(shutil.copytree(plain(), folder / "source"))
    path = copy / "model.safetensors"
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    changed = change(header)
    text = json.dumps(header if changed is None else changed).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])
    return copy


def of_first(**values: Any) -> Callable:
    def change(header: dict[str, Any]) -> None:
        name = next(name for name in header if "up_proj" in name)
        header[name].update(values)

    return change


for words, values in (
    ("a type that is none", {"dtype": "F7"}), ("a type of numbers", {"dtype": 7}), ("another type", {"dtype": "I32"}),
    ("four bits", {"dtype": "F4"}), ("no size", {"shape": []}), ("a size of 2 to the 62", {"shape": [2**62, 4]}),
    ("a negative size", {"shape": [-1, -2048]}), ("sizes of texts", {"shape": ["x"]}), ("sizes 0", {"shape": [0, 0]}),
    ("sizes of fractions", {"shape": [1.5, 2]}), ("another order", {"shape": [4096]}),
    ("offsets turned around", {"data_offsets": [64, 0]}), ("offsets of -4", {"data_offsets": [-4, 0]}),
    ("offsets of 2 to the 64", {"data_offsets": [0, 2**64]}), ("one offset", {"data_offsets": [0]}),
    ("offsets of texts", {"data_offsets": ["a", "b"]}), ("offsets of another", {"data_offsets": [0, 256]}),
):  # fmt: skip
    row(f"placed: a weight of {words}", with_header, of_first(**values))
row("placed: a weight twice in memory", with_header, lambda h: h.update({f"{n}.again": v for n, v in list(h.items())}))
row("placed: no weight", with_header, lambda h: {})
row("placed: names that move the cursor", with_header, lambda h: {f"{n}\x1b[2J": v for n, v in h.items()})
row("placed: 50,000 weights", with_header, lambda h: h.update(
    {f"w{k}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for k in range(50_000)}))  # fmt: skip


def indexed(folder: Path, change: Callable[[dict[str, Any], Path], Any]) -> Path:
    """The same in a file that an index names."""
    copy = Path(shutil.copytree(plain(), folder / "source"))
    (copy / "model.safetensors").rename(copy / "model-00001-of-00001.safetensors")
    names = load_file(copy / "model-00001-of-00001.safetensors")
    index: dict[str, Any] = {
        "metadata": {"total_size": 0},
        "weight_map": dict.fromkeys(names, "model-00001-of-00001.safetensors"),
    }
    made = change(index, copy)
    (copy / "model.safetensors.index.json").write_text(json.dumps(index if made is None else made))
    return copy


def mapped(value: Any) -> Callable:
    return lambda index, copy: index["weight_map"].update({next(iter(index["weight_map"])): value})


def linked(target: str) -> Callable:
    def change(index: dict[str, Any], copy: Path) -> None:
        (copy / "linked.safetensors").symlink_to(target)
        mapped("linked.safetensors")(index, copy)

    return change


SHARD = "model-00001-of-00001.safetensors"
for words, change in (
    ("a path above", mapped("../../../../etc/passwd")), ("an absolute path", mapped("/etc/passwd")),
    ("a number", mapped(7)), ("a list", mapped(["x"])), ("the folder", mapped(".")), ("a zero", mapped("a\0b")),
    ("a surrogate", mapped("\ud800.safetensors")), ("the configuration", mapped("config.json")),
    ("a device", linked("/dev/zero")), ("a link to itself", linked("linked.safetensors")),
    ("a link elsewhere", linked("/etc/passwd")), ("a name of 5,000 letters", mapped("a" * 5000)),
    ("no weight", lambda index, copy: index.update(weight_map={})), ("a list of weights", lambda index, copy: []),
    ("weights that are not there", lambda index, copy: index["weight_map"].update(more=SHARD)),
    ("too few weights", lambda index, copy: index["weight_map"].popitem()),
):  # fmt: skip
    row(f"placed: an index with {words}", indexed, change)
