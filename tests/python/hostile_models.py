"""More rows of hostile_files.py: ONNX files, exported folders, checkpoints, GGUF files, lists of models."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import checkpoints
import onnx
from hostile_files import FILES, JSONS, at, put, replaced, row
from onnx import TensorProto, helper

# ---- ONNX: bytes -------------------------------------------------------------------------------------------


def field(number: int, kind: int, payload: bytes) -> bytes:
    return varint(number << 3 | kind) + payload


def varint(value: int) -> bytes:
    made = bytearray()
    while True:
        made.append(value & 0x7F | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(made)


def message(number: int, payload: bytes) -> bytes:
    return field(number, 2, varint(len(payload)) + payload)


def deep_graphs(levels: int) -> bytes:
    """A node whose attribute is a graph with a node whose attribute is a graph.."""
    graph = b""
    for _ in range(levels):
        attribute = message(1, b"g") + message(6, graph)
        graph = message(1, message(5, attribute))
    return message(7, graph)


BAD = b"a\xff\xfe\x80"  # no UTF-8
NAMELESS = message(2, BAD) + message(
    7,
    message(1, message(2, BAD) + message(3, BAD) + message(4, BAD))
    + message(2, BAD)
    + message(11, message(1, BAD))
    + message(5, message(8, BAD)),
)
for words, content in (
    ("names without UTF-8", NAMELESS),
    ("metadata without UTF-8", message(14, message(1, BAD) + message(2, BAD)) + message(7, message(2, b"g"))),
    ("a length of 2 to the 63", field(7, 2, varint(2**63 - 1))),
    ("a length beyond the end", field(7, 2, varint(1000)) + b"x"),
    ("a varint without end", b"\x08" + b"\xff" * 50),
    ("an unknown wire type", b"\x0f\x0f\x0f"),
    ("field 0", b"\x00\x00"),
    ("groups", b"\x0b\x0c" * 50),
    ("200 graphs in graphs", deep_graphs(200)),
    ("3,000 graphs in graphs", deep_graphs(3000)),
    ("a graph that is a number", b"\x38\x01"),
    ("a million empty nodes", message(7, message(1, b"") * 1_000_000)),
    ("dims packed and cut", message(7, message(5, field(1, 2, varint(9)) + b"\xff\xff"))),
):
    row(f"onnx: {words}", put, "x.onnx", content)

# ---- ONNX: models ------------------------------------------------------------------------------------------

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])


def tensor(name: str, dims: list[int], **fields: Any) -> TensorProto:
    made = TensorProto(name=name, data_type=fields.pop("data_type", TensorProto.FLOAT))
    made.dims.extend(dims)
    for key, value in fields.items():
        setattr(made, key, value)
    return made


def external(name: str, dims: list[int], **entries: Any) -> TensorProto:
    made = tensor(name, dims, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        made.external_data.add(key=key, value=str(value))
    return made


def model(
    nodes: list, inputs=(X,), outputs=(Y,), weights=(), opset: int = 20, functions=(), **metadata: str
) -> onnx.ModelProto:
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), list(weights))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], functions=list(functions))
    made.ir_version = 10
    for key, value in metadata.items():
        made.metadata_props.add(key=key.replace("_", ".", 1), value=value)
    return made


def written(folder: Path, make: Callable[[Path], onnx.ModelProto]) -> Path:
    return put(folder, "x.onnx", make(folder).SerializeToString())


def onnx_row(words: str, make: Callable[[Path], onnx.ModelProto]) -> None:
    row(f"onnx: {words}", written, make)


RELU = helper.make_node("Relu", ["x"], ["y"])
ADD = helper.make_node("Add", ["x", "w"], ["y"])


def weighted(weight: TensorProto) -> Callable:
    return lambda folder: model([ADD], weights=[weight])


for words, dims, fields in (
    ("a weight with a negative size", [-2, 2], {"raw_data": b"1234"}),
    ("a weight of 2 to the 62", [2**62], {"raw_data": b"1234"}),
    ("a weight whose sizes overflow", [2**32, 2**32, 2**32], {}),
    ("a weight without its bytes", [1000, 2], {}),
    ("a weight with too many bytes", [2], {"raw_data": bytes(1000)}),
    ("a weight with too few bytes", [1000], {"raw_data": b"1234"}),
    ("a weight of an unknown type", [2], {"data_type": 99}),
    ("a weight of type -1", [2], {"data_type": -1}),
    ("a weight of type 0", [2], {"data_type": 0}),
    ("a weight of 1,000 axes", [1] * 1000, {"raw_data": b"1234"}),
    ("a weight of strings", [2], {"data_type": 8}),
):
    onnx_row(words, weighted(tensor("w", dims, **fields)))


def data_at(location: str, **entries: Any) -> Callable:
    def make(folder: Path) -> onnx.ModelProto:
        (folder / "real.data").write_bytes(bytes(8))
        (folder / "sub").mkdir()
        os.mkfifo(folder / "pipe.data")
        (folder / "link.data").symlink_to("/etc/passwd")
        (folder / "loop.data").symlink_to(folder / "loop.data")
        return model([ADD], weights=[external("w", [2], location=location.format(folder=folder), **entries)])

    return make


for words, location, entries in (
    ("data above the folder", "../../../../etc/passwd", {}),
    ("data at an absolute path", "/etc/passwd", {}),
    ("data in a folder", "sub", {}),
    ("data in a pipe", "pipe.data", {}),
    ("data behind a link", "link.data", {}),
    ("data behind a link to itself", "loop.data", {}),
    ("data that is not there", "nothing.data", {}),
    ("data without a name", "", {}),
    ("data in itself", "x.onnx", {}),
    ("data in a device", "/dev/zero", {}),
    ("data with escapes", "a\x1b[2J\u202e.data", {}),
    ("data with a zero in its name", "a\0b", {}),
    ("data of a long name", "a" * 5000, {}),
    ("data at -1", "real.data", {"offset": -1}),
    ("data at 2 to the 63", "real.data", {"offset": 2**63}),
    ("data at a text", "real.data", {"offset": "x"}),
    ("data of -1 bytes", "real.data", {"length": -1}),
    ("data of 2 to the 62 bytes", "real.data", {"length": 2**62}),
    ("data of half the bytes", "real.data", {"length": 4}),
):
    onnx_row(words, data_at(location, **entries))

onnx_row("no graph", lambda folder: onnx.ModelProto(ir_version=10))
onnx_row("no node", lambda folder: model([]))
onnx_row("no opset", lambda folder: clear(model([RELU]), "opset_import"))
for version in (0, -1, 1, 1_000_000_000, 2**62):
    onnx_row(f"opset {version}", lambda folder, version=version: model([RELU], opset=version))
for version in (0, -5, 10**9, 2**62):
    onnx_row(f"IR version {version}", lambda folder, version=version: with_field(model([RELU]), ir_version=version))
onnx_row(
    "nodes in a circle",
    lambda f: model([helper.make_node("Relu", ["y"], ["z"]), helper.make_node("Relu", ["z"], ["y"])]),
)
onnx_row(
    "nodes in reverse",
    lambda f: model([helper.make_node("Relu", ["z"], ["y"]), helper.make_node("Relu", ["x"], ["z"])]),
)
onnx_row("an output made twice", lambda f: model([RELU, RELU]))
onnx_row("an input that nobody makes", lambda f: model([helper.make_node("Relu", ["nobody"], ["y"])]))
onnx_row("an output that nobody makes", lambda f: model([helper.make_node("Relu", ["x"], ["z"])]))
onnx_row("an unknown operator", lambda f: model([helper.make_node("Nothing", ["x"], ["y"])]))
onnx_row("an unknown domain", lambda f: model([helper.make_node("Relu", ["x"], ["y"], domain="nowhere")]))
onnx_row("an input twice", lambda f: model([RELU], inputs=[X, X]))
onnx_row("an output twice", lambda f: model([RELU], outputs=[Y, Y]))
onnx_row("a weight twice", lambda f: model([ADD], weights=[tensor("w", [2], raw_data=bytes(8))] * 2))
onnx_row("a weight named as an input", lambda f: model([RELU], weights=[tensor("x", [2], raw_data=bytes(8))]))
onnx_row("a node without inputs and outputs", lambda f: model([helper.make_node("Relu", [], [])]))
onnx_row(
    "100,000 outputs of a node",
    lambda f: model([helper.make_node("Split", ["x"], [f"o{k}" for k in range(100_000)]), RELU]),
)
onnx_row("names of a megabyte", lambda f: model([helper.make_node("Relu", ["x"], ["y" * (1 << 20)]), RELU]))
onnx_row(
    "names that move the cursor",
    lambda f: model(
        [helper.make_node("Relu\x1b[2J", ["x"], ["y\r\n\x1b]0;t\x07"], name="\x9b1m\u202e", domain="\x1b[31m")]
    ),
)
onnx_row("sizes that are negative", lambda f: model([RELU], inputs=[helper.make_tensor_value_info("x", 1, [-5, 2])]))
onnx_row(
    "sizes of 2 to the 62", lambda f: model([RELU], inputs=[helper.make_tensor_value_info("x", 1, [2**62, 2**62])])
)
onnx_row("an input of type 99", lambda f: model([RELU], inputs=[helper.make_tensor_value_info("x", 99, [2])]))
onnx_row("an input without a type", lambda f: model([RELU], inputs=[onnx.ValueInfoProto(name="x")]))
onnx_row(
    "an input that is a sequence",
    lambda f: model([RELU], inputs=[helper.make_tensor_sequence_value_info("x", 1, None)]),
)
onnx_row(
    "a huge Expand",
    lambda f: model(
        [helper.make_node("Expand", ["x", "s"], ["y"])],
        weights=[helper.make_tensor("s", TensorProto.INT64, [2], [2**20, 2**20])],
    ),
)
onnx_row(
    "a constant of 2 to the 40",
    lambda f: model(
        [helper.make_node("ConstantOfShape", ["s"], ["y"])],
        weights=[helper.make_tensor("s", TensorProto.INT64, [2], [2**20, 2**20])],
    ),
)


def clear(made: onnx.ModelProto, name: str) -> onnx.ModelProto:
    made.ClearField(name)
    return made


def with_field(made: onnx.ModelProto, **fields: int) -> onnx.ModelProto:
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def calls_itself(folder: Path) -> onnx.ModelProto:
    node = helper.make_node("F", ["x"], ["y"], domain="local")
    function = helper.make_function(
        "local", "F", ["x"], ["y"], [node], [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    )
    made = model([node], functions=[function])
    made.opset_import.append(helper.make_opsetid("local", 1))
    return made


def loops(folder: Path) -> onnx.ModelProto:
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Relu", ["v"], ["w"])],
        "b",
        [
            helper.make_tensor_value_info("i", 7, []),
            helper.make_tensor_value_info("c", 9, []),
            helper.make_tensor_value_info("v", 1, None),
        ],
        [helper.make_tensor_value_info("d", 9, []), helper.make_tensor_value_info("w", 1, None)],
    )
    steps, go = helper.make_tensor("m", 7, [], [2**62]), helper.make_tensor("go", 9, [], [True])
    return model([helper.make_node("Loop", ["m", "go", "x"], ["y"], body=body)], weights=[steps, go])


def body_names_outside(folder: Path) -> onnx.ModelProto:
    body = helper.make_graph(
        [helper.make_node("Relu", ["later"], ["b"])], "b", [], [helper.make_tensor_value_info("b", 1, None)]
    )
    go = helper.make_tensor("go", 9, [], [True])
    return model(
        [
            helper.make_node("If", ["go"], ["y"], then_branch=body, else_branch=body),
            helper.make_node("Relu", ["x"], ["later"]),
        ],
        weights=[go],
    )


onnx_row("a function that calls itself", calls_itself)
onnx_row("a loop without end", loops)
onnx_row("a body that reads what comes later", body_names_outside)

for words, content in JSONS.items():
    text = content.decode(errors="replace")
    onnx_row(f"fairlead.report is {words}", lambda f, text=text: model([RELU], fairlead_report=text))
for words, value in (
    ("a contract of lists", {"contract": []}),
    ("a contract of texts", {"contract": {"symbols": "x", "inputs": 7, "outputs": None}}),
    ("symbols of numbers", {"contract": {"symbols": [1, 2]}}),
    ("differences of numbers", {"differences": [1, "x", None]}),
    ("differences of texts", {"differences": [{"scaled": "x", "sizes": 7, "kind": []}]}),
    ("versions of lists", {"versions": [1]}),
    ("an example of texts", {"example": {"n": "x"}, "contract": {}}),
    ("a huge example", {"example": {"n": 2**70}}),
    ("a negative example", {"example": {"n": -(2**62)}}),
    ("a script", {"model": "</script><script>alert(1)</script>"}),
    ("names that move the cursor", {"model": "\x1b[2J\u202e", "contract": {"notes": ["\x1b[31m"]}}),
    (
        "rows without their fields",
        {"contract": {"symbols": [{}], "inputs": [{}], "outputs": [{}], "fixed": [{}], "assumptions": [{}]}},
    ),
    (
        "rows of other kinds",
        {
            "contract": {
                "symbols": [{"name": 1, "tried": 2, "min": "x", "max": [], "where": {}}],
                "fixed": [{"name": 1}],
            }
        },
    ),
):
    onnx_row(f"a record with {words}", lambda f, value=value: model([RELU], fairlead_report=json.dumps(value)))
onnx_row(
    "a contract that moves the cursor",
    lambda f: model([RELU], fairlead_contract="\x1b[2J\r\x9b1m\u202e", fairlead_checked="\x1b[2J"),
)
onnx_row("metadata of 10 MB", lambda f: model([RELU], fairlead_contract="x" * 10_000_000))
onnx_row("a source of the machine", lambda f: sourced(model([RELU])))


def sourced(made: onnx.ModelProto) -> onnx.ModelProto:
    for key, value in (("fairlead.source", "/etc/passwd:1"), ("fairlead.module", "../../etc/passwd")):
        made.graph.node[0].metadata_props.add(key=key, value=value)
    return made


# ---- exported folders --------------------------------------------------------------------------------------


@cache
def exported() -> Path:
    """A folder that `fairlead export` wrote, made once."""
    import tempfile

    import fairlead

    root = Path(tempfile.mkdtemp(prefix="fairlead-hostile-"))
    fairlead.export_checkpoint(checkpoints.llama(root / "source"), root / "out", verify=False)
    return root / "out"


def changed_folder(folder: Path, name: str, change: Callable[[Any], Any]) -> Path:
    copy = folder / "out"
    shutil.copytree(exported(), copy)
    path = copy / name
    value = json.loads(path.read_text()) if path.exists() else {}
    made = change(value)
    path.write_bytes(made if isinstance(made, bytes) else json.dumps(value if made is None else made).encode())
    return copy


MANIFESTS = (
    "generation.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "fairlead.json",
    "config.json",
    "genai_config.json",
    "generation_config.json",
    "chat_template.jinja",
)
for name in MANIFESTS:
    for words, content in JSONS.items():
        row(f"folder: {name} is {words}", changed_folder, name, lambda value, content=content: content)
for name, words, where, value in (
    ("generation.json", "a file above the folder", at("file"), "../../../../etc/passwd"),
    ("generation.json", "an absolute file", at("file"), "/etc/passwd"),
    ("generation.json", "a file that is a number", at("file"), 7),
    ("generation.json", "a file that is not there", at("file"), "nothing.onnx"),
    ("generation.json", "a file with a zero", at("file"), "a\0b"),
    ("generation.json", "the folder itself as a file", at("file"), "."),
    ("generation.json", "parts that are lists", at("parts"), [1]),
    ("generation.json", "a part that is a list", at("decode"), [1]),
    ("generation.json", "no step", at("step"), []),
    ("generation.json", "a step that is a number", at("step"), [7]),
    ("generation.json", "a step that is a list", at("step"), [["decode"]]),
    ("generation.json", "a step without end", at("step"), ["decode"] * 100_000),
    ("generation.json", "a cache of numbers", at("cache"), [7]),
    ("generation.json", "a cache without names", at("cache"), [{}]),
    ("generation.json", "a cache of huge sizes", at("shape"), ["batch", 2**40, "past", 2**40]),
    ("generation.json", "a cache of negative sizes", at("shape"), [-1, -1, -1, -1]),
    ("generation.json", "a cache of a type that is none", at("dtype"), "float7"),
    ("generation.json", "a cache of fewer axes", at("shape"), ["batch"]),
    ("generation.json", "tokens that are a text", at("tokens"), "x"),
    ("generation.json", "an input that is a list", at("input"), ["x"]),
    ("generation.json", "positions that are a text", at("positions"), "x"),
    ("generation.json", "positions of a kind that is none", at("positions"), {"kind": "x"}),
    ("generation.json", "settings that are a list", at("settings"), [1]),
    (
        "generation.json",
        "settings of texts",
        at("settings"),
        {"max_new_tokens": "x", "temperature": "y", "eos_token_id": "z"},
    ),
    (
        "generation.json",
        "settings of NaN",
        at("settings"),
        {"temperature": float("nan"), "top_p": -1, "top_k": -9, "do_sample": True},
    ),
    ("generation.json", "an end that is nested", at("settings"), {"eos_token_id": [[[2]]]}),
    ("generation.json", "a huge end", at("settings"), {"eos_token_id": 2**80}),
    ("generation.json", "format 2", at("format"), 2),
    ("generation.json", "a format that is a list", at("format"), [1]),
    ("generation.json", "a kind that is none", at("kind"), "x"),
    ("generation.json", "a kind that is a list", at("kind"), ["decoder"]),
    ("generation.json", "prompt_only that is a list", at("prompt_only"), [1]),
    ("generation.json", "prompt_only of numbers", at("prompt_only"), {"x": 7}),
    ("generation.json", "a huge prompt_only", at("prompt_only"), {"x": {"dtype": "float32", "shape": [2**40, 2**20]}}),
    ("generation.json", "a grid that is a text", at("grid"), "x"),
    ("generation.json", "inputs that are numbers", at("inputs"), 7),
    ("tokenizer.json", "no model", at("model"), None),
    ("tokenizer.json", "a vocabulary that is a list", at("vocab"), [1]),
    ("tokenizer.json", "a huge token", at("vocab"), {"the": 2**31 - 2}),
    ("tokenizer.json", "a token of -1", at("vocab"), {"the": -1}),
    ("tokenizer.json", "a version of 9", at("version"), "9.0"),
    ("tokenizer.json", "added tokens of numbers", at("added_tokens"), [1]),
    ("tokenizer_config.json", "a template that is a number", at("tokenizer_class"), 7),
    ("fairlead.json", "a dtype that is none", at("dtype"), "float7"),
    ("fairlead.json", "a dtype that is a list", at("dtype"), [1]),
    ("fairlead.json", "a task that is a number", at("task"), 7),
    ("fairlead.json", "a layout that is a path", at("layout"), "../../x"),
    ("fairlead.json", "a source that moves the cursor", at("source"), "\x1b[2J\u202e"),
    ("fairlead.json", "an architecture of lists", at("architecture"), [[1]]),
):
    row(f"folder: {name}: {words}", changed_folder, name, replaced(where, value))
for words, template in (
    ("a number", 7),
    ("a list", [1, 2]),
    ("a list of names", [{"name": "default"}]),
    ("an object", {"a": 1}),
    ("no Jinja", "{% for"),
    ("a loop without end", "{% for a in range(10**9) %}{% for b in range(10**9) %}x{% endfor %}{% endfor %}"),
    ("a huge text", "{{ 'x' * 10**10 }}"),
    ("an include", "{% include '/etc/passwd' %}"),
    ("an import", "{% import 'os' as os %}"),
    ("an attribute of Python", "{{ messages.__class__.__mro__ }}"),
    ("a division by zero", "{{ 1 // 0 }}"),
    ("a power", "{{ 9 ** 9 ** 9 }}"),
    ("an undefined name", "{{ a.b.c.d }}"),
    ("recursion", "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}"),
    ("a wrong type", "{{ 'a' + 1 }}"),
    ("escapes", "\x1b[2J{{ messages[0]['content'] }}"),
    ("a format", "{{ '%999999999d' % 1 }}"),
    ("a wrong call", "{{ raise_exception(1, 2, 3) }}"),
):
    row(
        f"folder: a chat template of {words}",
        changed_folder,
        "tokenizer_config.json",
        lambda value, template=template: value.update(chat_template=template),
    )


def spoiled_folder(folder: Path, name: str, content: bytes) -> Path:
    copy = folder / "out"
    shutil.copytree(exported(), copy)
    (copy / name).unlink(missing_ok=True)
    put(copy, name, content)
    return copy


row("folder: model.onnx is empty", spoiled_folder, "model.onnx", b"")
row("folder: model.onnx is text", spoiled_folder, "model.onnx", b"hello")
row("folder: model.onnx is another model", spoiled_folder, "model.onnx", model([RELU]).SerializeToString())
row(
    "folder: model.onnx names data above",
    spoiled_folder,
    "model.onnx",
    model([ADD], weights=[external("w", [2], location="../../../etc/passwd")]).SerializeToString(),
)
row("folder: a second file that is wrong", spoiled_folder, "other.onnx", b"\xff\xff\xff")
row("folder: a name that moves the cursor", spoiled_folder, "a\x1b[2J.onnx", model([RELU]).SerializeToString())
row("folder: a name without UTF-8", spoiled_folder, os.fsdecode(b"a\xff.onnx"), model([RELU]).SerializeToString())
row(
    "folder: times that are wrong",
    spoiled_folder,
    "model.onnx.fairlead.json",
    b'{"model_bytes": {}, "timings": [1], "runs": "x"}',
)


def times_of_texts(folder: Path) -> Path:
    copy = folder / "out"
    shutil.copytree(exported(), copy)
    size = (copy / "model.onnx").stat().st_size
    times = {"model_bytes": size, "timings": {"\x1b[2J": "x", "a": None, "b": [1]}, "runs": "x"}
    put(copy, "model.onnx.fairlead.json", json.dumps(times).encode())
    return copy


row("folder: times of other kinds", times_of_texts)

# ---- checkpoints -------------------------------------------------------------------------------------------


@cache
def checkpoint() -> Path:
    import tempfile

    return Path(checkpoints.bert(Path(tempfile.mkdtemp(prefix="fairlead-hostile-")) / "source"))


def changed_checkpoint(folder: Path, name: str, change: Callable[[Any], Any]) -> Path:
    copy = folder / "source"
    shutil.copytree(checkpoint(), copy)
    path = copy / name
    value = json.loads(path.read_text()) if path.exists() and name.endswith(".json") else {}
    made = change(value)
    path.write_bytes(made if isinstance(made, bytes) else json.dumps(value if made is None else made).encode())
    return copy


for name in (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "generation_config.json",
    "preprocessor_config.json",
    "special_tokens_map.json",
    "model.safetensors.index.json",
    "modules.json",
):
    for words, content in JSONS.items():
        row(f"checkpoint: {name} is {words}", changed_checkpoint, name, lambda value, content=content: content)
for words, settings in (
    ("architectures of numbers", {"architectures": [7]}),
    ("no architectures", {"architectures": []}),
    ("architectures of objects", {"architectures": [{}]}),
    ("an architecture that is none", {"architectures": ["NothingModel"]}),
    ("an architecture with a path", {"architectures": ["../../x"]}),
    ("an architecture of another kind", {"architectures": ["PreTrainedModel"]}),
    ("a function as an architecture", {"architectures": ["is_torch_available"]}),
    ("a model type that is none", {"model_type": "nothing"}),
    ("a model type that is a list", {"model_type": ["bert"]}),
    ("no model type", {"model_type": None}),
    ("a huge width", {"hidden_size": 10**12}),
    ("a negative width", {"hidden_size": -8}),
    ("a width that is a text", {"hidden_size": "x"}),
    ("a width that is a fraction", {"hidden_size": 7.5}),
    ("a width of 0", {"hidden_size": 0}),
    ("heads that do not divide", {"num_attention_heads": 7}),
    ("heads of 0", {"num_attention_heads": 0}),
    ("a billion layers", {"num_hidden_layers": 10**9}),
    ("a huge vocabulary", {"vocab_size": 10**12}),
    ("a negative vocabulary", {"vocab_size": -1}),
    ("an activation that is none", {"hidden_act": "nothing"}),
    ("an activation of code", {"hidden_act": "os.system"}),
    ("a dtype that is none", {"dtype": "float7"}),
    ("a torch_dtype that is none", {"torch_dtype": "float7"}),
    ("a dtype that is code", {"dtype": "hub"}),
    ("a quantization that is none", {"quantization_config": {"quant_method": "nothing"}}),
    ("a quantization that is a text", {"quantization_config": "x"}),
    ("a quantization by bits", {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}),
    ("an attention that is none", {"_attn_implementation": "nothing"}),
    ("an attention from a hub", {"_attn_implementation": "kernels-community/x"}),
    ("labels of lists", {"id2label": [1, 2]}),
    ("a NaN", {"layer_norm_eps": float("nan")}),
    ("a setting that is a method", {"to_dict": 7}),
    ("an unknown position", {"max_position_embeddings": 10**12}),
    ("a pad token beyond", {"pad_token_id": 10**9}),
    ("a type of -1", {"type_vocab_size": -1}),
    ("an auto_map of numbers", {"auto_map": 7}),
    ("an auto_map of a hub", {"auto_map": {"AutoModel": "someone/x--y.Z"}}),
    ("a version of lists", {"transformers_version": [1]}),
):
    row(
        f"checkpoint: {words}",
        changed_checkpoint,
        "config.json",
        lambda value, settings=settings: value.update(settings),
    )


def safetensors(header: Any, body: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body


def real_weights() -> bytes:
    return (checkpoint() / "model.safetensors").read_bytes()


for words, make in (
    ("empty", lambda: b""),
    ("a header of 2 to the 63", lambda: safetensors(b"{}", length=2**63)),
    ("a header beyond the end", lambda: safetensors(b"{}", length=10**6)),
    ("a deep header", lambda: safetensors(b'{"a":' * 100_000)),
    ("an empty header", lambda: safetensors(b"{}")),
    ("no UTF-8", lambda: safetensors(b'{"\xff": 1}')),
    ("a list as a header", lambda: safetensors([])),
    ("a tensor of numbers", lambda: safetensors({"a": 7})),
    ("offsets beyond the end", lambda: safetensors({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 10**12]}})),
    (
        "offsets in reverse",
        lambda: safetensors({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}, bytes(4)),
    ),
    (
        "tensors that overlap",
        lambda: safetensors({k: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for k in "ab"}, bytes(4)),
    ),
    (
        "sizes that overflow",
        lambda: safetensors({"a": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 4]}}, bytes(4)),
    ),
    ("negative sizes", lambda: safetensors({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, bytes(4))),
    (
        "a dtype that is none",
        lambda: safetensors({"a": {"dtype": "F7", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
    ),
    ("cut in its header", lambda: real_weights()[:100]),
    ("cut in its bytes", lambda: real_weights()[:-100]),
    ("a pickle", lambda: b"\x80\x02]q\x00."),
    ("other tensors", lambda: safetensors({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(4))),
    (
        "metadata of numbers",
        lambda: safetensors({"__metadata__": 7, "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
    ),
    (
        "other sizes",
        lambda: safetensors(
            {"embeddings.word_embeddings.weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)
        ),
    ),
):
    row(f"safetensors: {words}", changed_checkpoint, "model.safetensors", lambda value, make=make: make())
for words, weights in (
    ("a path above", {"weight_map": {"a": "../../../etc/passwd"}}),
    ("an absolute path", {"weight_map": {"a": "/etc/passwd"}}),
    ("numbers", {"weight_map": {"a": 7}}),
    ("a list", {"weight_map": [1]}),
    ("nothing", {}),
    ("a file that is not there", {"weight_map": {"a": "no.safetensors"}}),
):

    def sharded(folder: Path, weights: Any) -> Path:
        copy = changed_checkpoint(folder, "model.safetensors.index.json", lambda value: {"metadata": {}} | weights)
        (copy / "model.safetensors").rename(copy / "model-00001-of-00001.safetensors")
        return copy

    row(f"safetensors: an index of {words}", sharded, weights)

# ---- GGUF --------------------------------------------------------------------------------------------------


def text(value: str | bytes) -> bytes:
    value = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(value)) + value


def gguf(
    tensors: int = 0,
    pairs: list[tuple[str, bytes]] | None = None,
    count: int | None = None,
    version: int = 3,
    rest: bytes = b"",
) -> bytes:
    pairs = pairs or []
    head = b"GGUF" + struct.pack("<IQQ", version, tensors, len(pairs) if count is None else count)
    return head + b"".join(text(key) + value for key, value in pairs) + rest


STRING, ARRAY, U32 = struct.pack("<I", 8), struct.pack("<I", 9), struct.pack("<I", 4)
ARCHITECTURE = ("general.architecture", STRING + text("llama"))
for words, content in (
    ("nothing behind its name", b"GGUF"),
    ("version 0", gguf(version=0)),
    ("version 99", gguf(version=99)),
    ("the other byte order", gguf(version=3 << 24)),
    ("2 to the 63 tensors", gguf(tensors=2**63)),
    ("2 to the 40 settings", gguf(count=2**40)),
    ("a million tensors", gguf(tensors=10**6, pairs=[ARCHITECTURE])),
    ("no setting", gguf()),
    ("only an architecture", gguf(pairs=[ARCHITECTURE])),
    ("an unknown architecture", gguf(pairs=[("general.architecture", STRING + text("nothing"))])),
    ("an architecture that is a number", gguf(pairs=[("general.architecture", U32 + struct.pack("<I", 7))])),
    ("an architecture with escapes", gguf(pairs=[("general.architecture", STRING + text("\x1b[2J"))])),
    ("a setting without UTF-8", gguf(pairs=[("general.architecture", STRING + text(b"\xff\xfe"))])),
    ("a setting of an unknown type", gguf(pairs=[("a", struct.pack("<I", 99))])),
    ("a text of 2 to the 62", gguf(pairs=[("a", STRING + struct.pack("<Q", 2**62))])),
    ("a list of 2 to the 62", gguf(pairs=[("a", ARRAY + U32 + struct.pack("<Q", 2**62))])),
    ("lists in lists", gguf(pairs=[("a", ARRAY + (ARRAY + struct.pack("<Q", 1)) * 5000)])),
    ("a setting twice", gguf(pairs=[ARCHITECTURE, ARCHITECTURE])),
    ("an empty key", gguf(pairs=[("", STRING + text("x"))])),
    ("a tensor of 2 to the 62", gguf(1, [ARCHITECTURE], rest=text("t") + struct.pack("<IQIQ", 1, 2**62, 0, 0))),
    ("a tensor of 1,000 axes", gguf(1, [ARCHITECTURE], rest=text("t") + struct.pack("<I", 1000))),
    ("a tensor of an unknown type", gguf(1, [ARCHITECTURE], rest=text("t") + struct.pack("<IQIQ", 1, 4, 99, 0))),
    ("a tensor beyond the end", gguf(1, [ARCHITECTURE], rest=text("t") + struct.pack("<IQIQ", 1, 4, 0, 2**40))),
    (
        "a billion layers",
        gguf(
            pairs=[
                ARCHITECTURE,
                ("llama.block_count", U32 + struct.pack("<I", 10**9)),
                ("llama.embedding_length", U32 + struct.pack("<I", 8)),
            ]
        ),
    ),
):
    row(f"gguf: {words}", put, "x.gguf", content)

# ---- lists for sweep ---------------------------------------------------------------------------------------

for words, content in (
    ("escapes", b"\x1b[2J\n"),
    ("a path that is not there", b"/nothing/at/all\n"),
    ("a zero", b"a\0b\n"),
    ("no UTF-8", b"\xff\xfe\n"),
    ("a long line", b"a" * 1_000_000 + b"\n"),
    ("options", b"--trust-remote-code\n-h\n"),
    ("a shell", b"$(true); `true` | true\n"),
):
    row(f"list: {words}", put, "list.txt", content)

assert len(FILES) > 300, len(FILES)
