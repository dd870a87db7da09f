"""Files that are wrong: a table of what strangers may send, by kind, each made by one function.

`FILES` is name -> function(folder) -> path of the file or folder. None of them runs code (those of hostile_archives.py
do); each must end every command in one line.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostile_archives import read_archive

GOLDEN = Path(__file__).parent.parent / "golden"
FILES: dict[str, Callable[[Path], Path]] = {}


def row(name: str, make: Callable[..., Any], *args: Any) -> None:
    assert name not in FILES, name
    FILES[name] = lambda folder: make(folder, *args)


def put(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


# ---- anything ----------------------------------------------------------------------------------------------

SHAPELESS = {
    "empty": b"",
    "one zero": b"\0",
    "zeros": bytes(4096),
    "ones": b"\xff" * 4096,
    "text": b"hello\n" * 9,
    "an HTML page": b"<!doctype html><script>1</script>",
    "a pickle": b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.",
    "escape sequences": b"\x1b[2J\x1b]0;x\x07" * 20,
    "no UTF-8": b"\xff\xfe\xfd" * 100,
    "ELF": b"\x7fELF" + bytes(60),
}
for suffix in ("pt2", "onnx", "gguf"):
    for words, content in SHAPELESS.items():
        row(f"{suffix}: {words}", put, f"x.{suffix}", content)


def special(folder: Path, kind: str, suffix: str) -> Path:
    path = folder / f"x.{suffix}"
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a link to itself":
        path.symlink_to(path)
    elif kind == "a link to nothing":
        path.symlink_to(folder / "nothing")
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    else:
        path = folder / kind.encode().decode("unicode_escape")
        path.write_bytes(b"PK\3\4")
    return path


for suffix in ("pt2", "onnx", "gguf"):
    for kind in ("a folder", "a pipe", "a link to itself", "a link to nothing", "a device"):
        row(f"{suffix}: {kind}", special, kind, suffix)
    row(f"{suffix}: a name that moves the cursor", special, f"a\\x1b[2J\\u202eb.{suffix}", suffix)
    row(f"{suffix}: a name of two lines", special, f"a\\nerror: b.{suffix}", suffix)

# ---- zip ---------------------------------------------------------------------------------------------------


def mlp() -> dict[str, bytes]:
    return read_archive(GOLDEN / "mlp.pt2")


def stored(entries: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    import io
    import warnings

    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", method) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def zipped(folder: Path, change: Callable[[dict[str, bytes]], Any]) -> Path:
    entries = mlp()
    made = change(entries)
    return put(folder, "x.pt2", made if isinstance(made, bytes) else stored(list(entries.items())))


def patched(offset_of: bytes, at: int, value: bytes) -> Callable:
    """Bytes of the zip's own tables changed: `at` behind the last (or first) signature."""

    def change(entries: dict[str, bytes]) -> bytes:
        data = bytearray(stored(list(entries.items())))
        place = data.rindex(offset_of) + at
        data[place : place + len(value)] = value
        return bytes(data)

    return change


END, CENTRAL, LOCAL = b"PK\5\6", b"PK\1\2", b"PK\3\4"
BIG2, BIG4 = b"\xff\xff", b"\xff\xff\xff\xff"
for words, where, at, value in (
    ("65,535 entries of 8", END, 8, BIG2 + BIG2),
    ("a table beyond the end", END, 16, b"\xf0\xff\xff\x7f"),
    ("a table of 4 GB", END, 12, BIG4),
    ("a comment beyond the end", END, 20, b"\xff\x7f"),
    ("on disk 9", END, 4, b"\x09\0"),
    ("a table at 0", END, 16, b"\0\0\0\0"),
    ("an entry beyond the end", CENTRAL, 42, b"\xf0\xff\xff\x7f"),
    ("an entry of 4 GB", CENTRAL, 20, BIG4 + BIG4),
    ("an entry of another size", CENTRAL, 24, b"\1\0\0\0"),
    ("an encrypted entry", CENTRAL, 8, b"\1\0"),
    ("an unknown compression", CENTRAL, 10, b"\x63\0"),
    ("a name beyond the end", CENTRAL, 28, BIG2),
    ("an extra field beyond the end", CENTRAL, 30, BIG2),
    ("a local name beyond the end", LOCAL, 26, BIG2),
    ("a local size of 4 GB", LOCAL, 18, BIG4 + BIG4),
    ("another checksum", CENTRAL, 16, b"\1\2\3\4"),
    ("a table that is none", CENTRAL, 0, b"PK\7\7"),
):
    row(f"zip: {words}", zipped, patched(where, at, value))


def bomb(entries: dict[str, bytes]) -> bytes:
    """1 GB of zeros in 1 MB."""
    content = dict(entries)
    return stored([*content.items(), ("mlp/data/weights/bomb", bytes(1 << 28))], zipfile.ZIP_DEFLATED)


def named(name: str) -> Callable:
    def change(entries: dict[str, bytes]) -> bytes:
        return stored([*entries.items(), (name, b"x")])

    return change


row("zip: deflated, with a bomb", zipped, bomb)
row("zip: deflated", zipped, lambda e: stored(list(e.items()), zipfile.ZIP_DEFLATED))
row("zip: no entry", zipped, lambda e: stored([]))
row("zip: 60,000 entries", zipped, lambda e: stored([*e.items(), *((f"mlp/x/{k}", b"") for k in range(60000))]))
row("zip: every entry twice", zipped, lambda e: stored([*e.items(), *e.items()]))
row(
    "zip: two folders",
    zipped,
    lambda e: stored([*e.items(), *((f"other/{n.split('/', 1)[1]}", c) for n, c in e.items())]),
)
row("zip: a zip in a zip", zipped, lambda e: stored([("x.pt2", stored(list(e.items())))]))
row("zip: something before it", zipped, lambda e: b"#!/bin/sh\n" * 50 + stored(list(e.items())))
row("zip: something behind it", zipped, lambda e: stored(list(e.items())) + b"\0" * 70000)
for name in (
    "../../../../tmp/out",
    "/etc/passwd",
    "mlp/../../x",
    "mlp\\..\\x",
    "",
    "mlp/",
    "x" * 60000,
    "mlp/a\x1b[2J",
    "mlp/\u202e",
    "con",
    "mlp/data/weights/../../../x",
    "./x",
    "mlp/models/model.json/x",
):
    row(f"zip: a name {name[:30]!r}", zipped, named(name))
for part in range(1, 20):
    row(f"zip: cut at {part} of 20", zipped, lambda e, part=part: (d := stored(list(e.items())))[: len(d) * part // 20])

# ---- .pt2 --------------------------------------------------------------------------------------------------


def program(folder: Path, change: Callable[[dict[str, Any]], Any], suffix: str = "models/model.json") -> Path:
    """mlp.pt2 with one of its texts changed."""
    entries = mlp()
    name = next(n for n in entries if n.endswith(suffix))
    value = json.loads(entries[name])
    made = change(value)
    entries[name] = made if isinstance(made, bytes) else json.dumps(value if made is None else made).encode()
    return put(folder, "x.pt2", stored(list(entries.items())))


def dropped(suffix: str) -> Callable:
    def change(entries: dict[str, bytes]) -> None:
        del entries[next(n for n in entries if n.endswith(suffix))]

    return change


for suffix in (
    "models/model.json",
    "weights_config.json",
    "constants_config.json",
    "archive_format",
    "weights/weight_0",
    "byteorder",
):
    if any(n.endswith(suffix) for n in mlp()):
        row(f"pt2: without {suffix}", zipped, dropped(suffix))


def places(value: Any, path: tuple = ()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key), item
        yield from places(item, (*path, key))


def replaced(where: Callable[[tuple, Any], bool], by: Any, which: int = 0) -> Callable:
    """The first place that `where` accepts gets another value."""

    def change(value: Any) -> None:
        found = [path for path, item in places(value) if where(path, item)]
        if not found:
            return
        path = found[which % len(found)]
        for key in path[:-1]:
            value = value[key]
        value[path[-1]] = by

    return change


def at(key: str) -> Callable:
    return lambda path, item: path[-1] == key


JSONS = {
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "a list": b"[]",
    "a number": b"7",
    "a string": b'"x"',
    "null": b"null",
    "no UTF-8": b'{"a": "\xff\xfe"}',
    "NaN": b'{"graph_module": NaN}',
    "cut": b'{"graph_module": {"gra',
    "a surrogate": b'{"graph_module": "\\ud800"}',
    "twice": b'{"a": 1, "a": 2}',
    "a huge number": b'{"a": 1' + b"0" * 5000 + b"}",
    "empty": b"",
    "an object": b"{}",
    "a comment": b"{} // x",
    "zeros": bytes(100),
    "a BOM": b"\xef\xbb\xbf{}",
}
for words, content in JSONS.items():
    row(f"pt2: model.json is {words}", program, lambda value, content=content: content)
    row(f"pt2: weights_config.json is {words}", program, lambda value, content=content: content, "weights_config.json")

for words, where, value in (
    ("no nodes", at("nodes"), []),
    ("nodes that are null", at("nodes"), None),
    ("no inputs", at("inputs"), []),
    ("an operator that is a number", at("target"), 7),
    ("an operator of torch itself", at("target"), "torch.save"),
    ("an unknown operator", at("target"), "torch.ops.aten.nothing.default"),
    ("an operator of os", at("target"), "os.system"),
    ("an operator with escapes", at("target"), "torch.ops.\x1b[2J.x"),
    ("a long operator", at("target"), "a" * 100_000),
    ("a negative size", at("as_int"), -5),
    ("a huge size", at("as_int"), 2**63 - 1),
    ("a size that is a text", at("as_int"), "x"),
    ("a size beyond 64 bits", at("as_int"), 2**70),
    ("a size with a fraction", at("as_int"), 1.5),
    ("a dtype 99", at("dtype"), 99),
    ("a dtype -1", at("dtype"), -1),
    ("a dtype that is a text", at("dtype"), "float"),
    ("a layout 99", at("layout"), 99),
    ("sizes that are null", at("sizes"), None),
    ("a thousand sizes", at("sizes"), [{"as_int": 1}] * 1000),
    ("sizes that overflow", at("sizes"), [{"as_int": 2**40}] * 4),
    ("strides that are negative", at("strides"), [{"as_int": -1}] * 2),
    ("a device that is a text", at("device"), "cpu"),
    ("a device cuda:99", at("device"), {"type": "cuda", "index": 99}),
    ("the offset -1", at("storage_offset"), {"as_int": -1}),
    ("a huge offset", at("storage_offset"), {"as_int": 2**62}),
    ("a name that is not there", at("name"), "nothing"),
    ("an empty name", at("name"), ""),
    ("a name with a zero", at("name"), "a\0b"),
    ("schema version 99", at("schema_version"), {"major": 99, "minor": 0}),
    ("schema version null", at("schema_version"), None),
    ("opset -1", at("opset_version"), {"aten": -1}),
    ("range constraints that are lists", at("range_constraints"), []),
    ("a tree that is a text", at("in_spec"), "[1, {"),
    ("a deep tree", at("in_spec"), "[1, " * 5000),
    ("a metadata of metadata", at("metadata"), {"stack_trace": "\x1b[2J" * 100}),
    ("null everywhere", at("graph"), None),
    ("a graph in itself", at("graph_module"), {"graph": {"graph_module": {}}}),
    ("guards", at("guards_code"), ["__import__('os').system('true')"]),
):
    row(f"pt2: {words}", program, replaced(where, value))
    row(f"pt2: {words}, second", program, replaced(where, value, 1))


def reversed_nodes(value: dict) -> None:
    value["graph_module"]["graph"]["nodes"].reverse()


def repeated_nodes(value: dict) -> None:
    value["graph_module"]["graph"]["nodes"] *= 2


def many_nodes(value: dict) -> None:
    graph = value["graph_module"]["graph"]
    graph["nodes"] = graph["nodes"] * 3000


row("pt2: nodes in reverse", program, reversed_nodes)
row("pt2: nodes twice", program, repeated_nodes)
row("pt2: nodes 3,000 times", program, many_nodes)

for words, where, value in (
    ("a path out of the archive", at("path_name"), "../../../etc/passwd"),
    ("an absolute path", at("path_name"), "/etc/passwd"),
    ("a path that is a number", at("path_name"), 7),
    ("no path", at("path_name"), ""),
    ("a pickle", at("use_pickle"), True),
    ("a pickle that is a text", at("use_pickle"), "yes"),
    ("a parameter that is a text", at("is_param"), "yes"),
    ("sizes beyond the bytes", at("sizes"), [{"as_int": 1 << 20}, {"as_int": 1 << 20}]),
    ("no sizes", at("sizes"), []),
    ("negative sizes", at("sizes"), [{"as_int": -4}, {"as_int": 4}]),
    ("symbolic sizes", at("sizes"), [{"as_expr": {"expr_str": "s0"}}]),
    ("strides beyond the bytes", at("strides"), [{"as_int": 1 << 40}, {"as_int": 1}]),
    ("an unknown dtype", at("dtype"), 77),
    ("an offset beyond the bytes", at("storage_offset"), {"as_int": 1 << 40}),
    ("a tensor that is null", at("tensor_meta"), None),
):
    row(f"weights: {words}", program, replaced(where, value), "weights_config.json")
    row(f"weights: {words}, last", program, replaced(where, value, -1), "weights_config.json")
