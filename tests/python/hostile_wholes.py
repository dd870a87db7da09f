"""More rows of hostile_files.py: files that are right in every part, and wrong as a whole or when they are run.

Entries of a zip that lie in each other, programs that make far more than they are, loops without end, checkpoints whose
settings lead elsewhere.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from hostile_archives import read_archive
from hostile_files import CENTRAL, LOCAL, at, places, put, replaced, row, stored, zipped
from hostile_models import ADD, RELU, changed_checkpoint, model, onnx_row, tensor
from onnx import helper

GOLDEN = Path(__file__).parent.parent / "golden"

# ---- zip: entries that share their bytes ---------------------------------------------------------------------


def entry_of(data: bytes, suffix: str) -> int:
    """Where the row of an entry is in the table at the end."""
    place = data.index(CENTRAL)
    while True:
        size = struct.unpack_from("<H", data, place + 28)[0]
        if data[place + 46 : place + 46 + size].endswith(suffix.encode()):
            return place
        place = data.index(CENTRAL, place + 46)


def moved_entry(suffix: str, other: str, shift: int = 0) -> Callable:
    """An entry whose bytes are said to be where those of another are."""

    def change(entries: dict[str, bytes]) -> bytes:
        data = bytearray(stored(list(entries.items())))
        mine, theirs = entry_of(bytes(data), suffix), entry_of(bytes(data), other)
        offset = struct.unpack_from("<I", data, theirs + 42)[0]
        struct.pack_into("<I", data, mine + 42, offset + shift)
        return bytes(data)

    return change


row("zip: weights where the program is", zipped, moved_entry("weight_0", "model.json"))
row("zip: the program where its weights are", zipped, moved_entry("model.json", "weight_0"))
row("zip: an entry in the middle of another", zipped, moved_entry("weight_0", "model.json", 10))
row("zip: an entry at an odd place", zipped, moved_entry("weights_config.json", "weights_config.json", 1))


def inner_entry(entries: dict[str, bytes]) -> bytes:
    """A whole entry within the bytes of another one."""
    name = next(n for n in entries if n.endswith("weight_0"))
    inside = LOCAL + struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 0, 0, 32, 32, len(name), 0) + name.encode() + bytes(32)
    data = bytearray(stored([*entries.items(), ("mlp/data/extra/holder", inside)]))
    struct.pack_into("<I", data, entry_of(bytes(data), "weight_0") + 42, bytes(data).rindex(inside))
    return bytes(data)


row("zip: an entry within another", zipped, inner_entry)


def twins(suffix: str, content: bytes, last: bool) -> Callable:
    def change(entries: dict[str, bytes]) -> bytes:
        name = next(n for n in entries if n.endswith(suffix))
        pairs = [*entries.items(), (name, content)] if last else [(name, content), *entries.items()]
        return stored(pairs)

    return change


for suffix in ("model.json", "weights_config.json", "weight_0", "archive_format"):
    for last in (True, False):
        words = "the last" if last else "the first"
        row(f"zip: two of {suffix}, {words} is empty", zipped, twins(suffix, b"", last))


def local_name(entries: dict[str, bytes]) -> bytes:
    data = stored(list(entries.items()))
    place = data.index(b"weight_0")
    return data[:place] + b"weight_9" + data[place + 8 :]


row("zip: names that are not those of the table", zipped, local_name)


def renamed(old: str, new: str) -> Callable:
    return lambda entries: stored([(name.replace(old, new), content) for name, content in entries.items()])


row("zip: doubled slashes", zipped, renamed("/models/", "//models//"))
row("zip: backslashes", zipped, renamed("/", "\\"))
row("zip: capital letters", zipped, renamed("models", "MODELS"))


def large_sizes(size: int) -> Callable:
    """Sizes and offset of an entry as 64 bits, which they are not."""

    def change(entries: dict[str, bytes]) -> bytes:
        data = bytearray(stored(list(entries.items())))
        place = entry_of(bytes(data), "weight_0")
        name, extra = struct.unpack_from("<HH", data, place + 28)
        struct.pack_into("<II", data, place + 20, 0xFFFFFFFF, 0xFFFFFFFF)
        field = struct.pack("<HHQQ", 1, 16, size, size)
        struct.pack_into("<H", data, place + 30, extra + len(field))
        data[place + 46 + name : place + 46 + name] = field
        end = bytes(data).rindex(b"PK\5\6")
        struct.pack_into("<I", data, end + 12, struct.unpack_from("<I", data, end + 12)[0] + len(field))
        return bytes(data)

    return change


for size in (2**63, 2**64 - 1, 2**40, 0):
    row(f"zip: an entry of {size} bytes in 64 bits", zipped, large_sizes(size))


def spaces(entries: dict[str, bytes]) -> bytes:
    """A program behind half a gigabyte of nothing, in half a megabyte."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, b" " * (1 << 29) + content if name.endswith("model.json") else content)
    return buffer.getvalue()


row("zip: a program of half a gigabyte of spaces", zipped, spaces)

# ---- .pt2: small programs that make much -----------------------------------------------------------------------


class Makes(torch.nn.Module):
    def __init__(self, function: Callable):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@cache
def program_of(name: str) -> dict[str, bytes]:
    from tempfile import TemporaryDirectory

    functions = {
        "full": lambda x: x.sum() + torch.full((17, 19), 2.0),
        "arange": lambda x: x.sum() + torch.arange(17),
        "eye": lambda x: x.sum() + torch.eye(17, 19),
        "expand": lambda x: x[:, :1].expand(4, 17).clone(),
        "repeat": lambda x: x.repeat(17, 19),
        "pad": lambda x: torch.nn.functional.pad(x, (17, 19)),
        "upsample": lambda x: torch.nn.functional.interpolate(x[None, None], size=(17, 19)),
        "one_hot": lambda x: torch.nn.functional.one_hot(x.long().clamp(0, 1), 17),
        "linspace": lambda x: x.sum() + torch.linspace(0, 1, 17),
        "tril": lambda x: torch.ones(17, 19).tril() + x.sum(),
        "rand": lambda x: torch.zeros(17, 19).bernoulli() + x.sum(),
        "view": lambda x: x.reshape(2, 8),
        "unfold": lambda x: x.unfold(1, 2, 1),
        "cumsum": lambda x: torch.ones(17).cumsum(0) + x.sum(),
    }
    with TemporaryDirectory() as folder:
        program = torch.export.export(Makes(functions[name]).eval(), (torch.rand(4, 4),))
        torch.export.save(program, f"{folder}/mlp.pt2")
        return read_archive(Path(f"{folder}/mlp.pt2"))


def grown(folder: Path, name: str, sizes: dict[int, int]) -> Path:
    """A program in which every 17 and 19, of arguments and results, is another number."""
    entries = dict(program_of(name))
    path = next(n for n in entries if n.endswith("models/model.json"))
    value = json.loads(entries[path])
    found = [(keys, item) for keys, item in places(value["graph_module"]) if type(item) is int and item in sizes]
    assert found, name
    for keys, item in found:
        holder = value["graph_module"]
        for key in keys[:-1]:
            holder = holder[key]
        holder[keys[-1]] = sizes[item]
    entries[path] = json.dumps(value).encode()
    return put(folder, "x.pt2", stored(list(entries.items())))


for name in ("full", "arange", "eye", "expand", "repeat", "pad", "upsample", "one_hot", "linspace", "tril", "rand",
             "cumsum"):  # fmt: skip
    row(f"pt2: {name} of 2 to the 34", grown, name, {17: 1 << 17, 19: 1 << 17} if name in
        ("full", "eye", "repeat", "tril", "rand", "upsample") else {17: 1 << 34, 19: 1 << 34})  # fmt: skip
    row(f"pt2: {name} of 2 to the 30", grown, name, {17: 1 << 15, 19: 1 << 15} if name in
        ("full", "eye", "repeat", "tril", "rand", "upsample") else {17: 1 << 30, 19: 1 << 30})  # fmt: skip
    row(f"pt2: {name} of 2 to the 62", grown, name, {17: 1 << 62, 19: 3})
    row(f"pt2: {name} of -17", grown, name, {17: -17, 19: 19})


def large_inputs(folder: Path, size: int) -> Path:
    """Inputs of a size that the archive has no example of."""
    entries = {n: c for n, c in program_of("view").items() if "sample_inputs" not in n}
    path = next(n for n in entries if n.endswith("models/model.json"))
    text = entries[path].replace(b'"as_int": 4', b'"as_int": %d' % size).replace(b'"as_int":4', b'"as_int":%d' % size)
    entries[path] = text
    return put(folder, "x.pt2", stored(list(entries.items())))


for size in (1 << 17, 1 << 31, 1 << 40, 0, -4):
    row(f"pt2: an input of {size} by {size}", large_inputs, size)


def endless(folder: Path, name: str) -> Path:
    """control.pt2 with a loop that goes on: its test has another operator."""
    entries = dict(read_archive(GOLDEN / "control.pt2"))
    path = next(n for n in entries if n.endswith("models/model.json"))
    text = entries[path].decode()
    assert "torch.ops.aten.gt.Scalar" in text
    at_test = text.rindex("torch.ops.aten.gt.Scalar")
    entries[path] = (text[:at_test] + f"torch.ops.aten.{name}.Scalar" + text[at_test + 24 :]).encode()
    return put(folder, "x.pt2", stored(list(entries.items())))


for name in ("ne", "le", "lt"):
    row(f"pt2: a loop that ends where steps are {name} 0", endless, name)

# ---- ONNX: small files that make much --------------------------------------------------------------------------


def sized(operator: str, sizes: list[int], **attributes: Any) -> Callable:
    """A node that makes a tensor of sizes which a weight holds."""

    def make(folder: Path) -> Any:
        shape = tensor("s", [len(sizes)], data_type=7, raw_data=struct.pack(f"<{len(sizes)}q", *sizes))
        inputs = ["s"] if operator == "ConstantOfShape" else ["x", "s"]
        nodes = [helper.make_node(operator, inputs, ["z"], **attributes), helper.make_node("Relu", ["z"], ["y"])]
        return model(nodes, weights=[shape])

    return make


for operator in ("ConstantOfShape", "Expand", "Tile", "Reshape"):
    onnx_row(f"{operator} of 2 to the 34", sized(operator, [1 << 17, 1 << 17]))
    onnx_row(f"{operator} of 2 to the 30", sized(operator, [1 << 15, 1 << 15]))
    onnx_row(f"{operator} of 2 to the 62", sized(operator, [1 << 31, 1 << 31]))
    onnx_row(f"{operator} of -5", sized(operator, [-5, 2]))
onnx_row("a weight that two nodes write", lambda f: model([ADD, RELU], weights=[tensor("w", [2], raw_data=bytes(8))]))

# ---- checkpoints -----------------------------------------------------------------------------------------------

for words, settings in (
    ("9,999 layers", {"num_hidden_layers": 9999}),
    ("1,000 layers of a large width", {"num_hidden_layers": 1000, "hidden_size": 1 << 14, "num_attention_heads": 128}),
    ("a width of 2 to the 17", {"hidden_size": 1 << 17, "num_attention_heads": 1}),
    ("an inner width of 2 to the 40", {"intermediate_size": 1 << 40}),
    ("positions of 2 to the 34", {"max_position_embeddings": 1 << 34}),
    ("a vocabulary of 2 to the 34", {"vocab_size": 1 << 34}),
    ("a model in itself", {"text_config": {"text_config": {"model_type": "bert"}}, "model_type": "clip"}),
    ("labels of 2 to the 34", {"num_labels": 1 << 34}),
    ("a name that is a path", {"_name_or_path": "/etc/passwd"}),
    ("a base that is elsewhere", {"base_model": "../other", "adapter_path": "/etc"}),
):
    row(
        f"checkpoint: {words}",
        changed_checkpoint,
        "config.json",
        lambda value, settings=settings: value.update(settings),
    )
for words, settings in (
    ("elsewhere", {"base_model_name_or_path": "/nothing/at/all", "peft_type": "LORA"}),
    ("in itself", {"base_model_name_or_path": ".", "peft_type": "LORA", "r": 8}),
    ("with code", {"base_model_name_or_path": ".", "auto_mapping": {"base_model_class": "X", "parent_library": "os"}}),
    ("of a type that is none", {"peft_type": 7}),
):

    def adapter(folder: Path, settings: Any) -> Path:
        copy = changed_checkpoint(folder, "adapter_config.json", lambda value: settings)
        put(copy, "adapter_model.safetensors", struct.pack("<Q", 2) + b"{}")
        return copy

    row(f"checkpoint: an adapter {words}", adapter, settings)
for words, settings in (
    ("a billion tokens", {"max_new_tokens": 10**9, "max_length": 10**9}),
    ("beams of 2 to the 31", {"num_beams": 2**31, "num_return_sequences": 2**31}),
    ("texts", {"eos_token_id": "x", "pad_token_id": [[1]], "bos_token_id": {}}),
    ("code", {"custom_generate": "evil", "trust_remote_code": True, "auto_map": {"a": "b.c"}}),
    ("an unknown setting", {"\x1b[2J": 7, "__class__": "os"}),
):
    row(f"checkpoint: a generation_config of {words}", changed_checkpoint, "generation_config.json",
        lambda value, settings=settings: settings)  # fmt: skip
for words, change in (
    ("20,000 added tokens", lambda v: v.update(added_tokens=[{"id": k, "content": f"t{k}", "special": True,
        "single_word": False, "lstrip": False, "rstrip": False, "normalized": False} for k in range(20_000)])),
    ("a pattern that never ends", lambda v: v.update(pre_tokenizer={"type": "Split", "pattern": {"Regex": "(a+)+$"},
        "behavior": "Isolated", "invert": False})),
    ("a pattern that is none", lambda v: v.update(pre_tokenizer={"type": "Split", "pattern": {"Regex": "(("},
        "behavior": "Isolated", "invert": False})),
    ("steps in steps", lambda v: v.update(normalizer=nested_steps(200))),
    ("an unknown model", lambda v: v.update(model={"type": "Nothing"})),
):  # fmt: skip
    row(f"checkpoint: a tokenizer of {words}", changed_checkpoint, "tokenizer.json", change)


def nested_steps(levels: int) -> dict[str, Any]:
    step: dict[str, Any] = {"type": "NFC"}
    for _ in range(levels):
        step = {"type": "Sequence", "normalizers": [step]}
    return step


# ---- weights of other types than the program says --------------------------------------------------------------

for words, code in (("whole numbers", 5), ("complex numbers", 10), ("bytes", 1), ("bool", 12), ("bfloat16", 13)):
    for which in (0, -1):
        row(f"weights: {words} in place of floats, {which}", lambda folder, code=code, which=which:
            weights_of(folder, code, which))  # fmt: skip


def weights_of(folder: Path, code: int, which: int) -> Path:
    from hostile_files import program

    return program(folder, replaced(at("dtype"), code, which), "weights_config.json")
