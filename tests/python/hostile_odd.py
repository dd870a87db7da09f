"""More rows of hostile_files.py: what few use of zip, numbers and names of .pt2 programs, ONNX that is absurd, lies
about data beside a file, trees of modules."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostile_files import program, put, row, stored, zipped
from hostile_models import (
    ADD,
    RELU,
    external,
    message,
    model,
    onnx_row,
    tensor,
)
from onnx import AttributeProto, helper

# ---- zip -----------------------------------------------------------------------------------------------------------


class Unseekable(io.BytesIO):
    """What a pipe is: sizes come behind the bytes."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: Any) -> int:
        raise OSError("a pipe")

    def tell(self) -> int:
        raise OSError("a pipe")


def written_zip(buffer: io.BytesIO, entries: dict[str, bytes], **how: Any) -> bytes:
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            info = zipfile.ZipInfo(name)
            for key, value in how.items():
                setattr(info, key, value)
            with archive.open(info, "w", force_zip64=True) as file:
                file.write(content)
    return buffer.getvalue()


def commented(entries: dict[str, bytes], comment: bytes) -> bytes:
    buffer = io.BytesIO(stored(list(entries.items())))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = comment
    return buffer.getvalue()


def inner_end(entries: dict[str, bytes]) -> bytes:
    """A second table, of another archive, in the comment behind the first one."""
    other = stored([(name.replace("mlp/", "other/"), content) for name, content in entries.items()])
    return commented(entries, other[-60_000:])


LINK = 0o120777 << 16
row("zip: sizes of 64 bits everywhere", zipped, lambda e: written_zip(io.BytesIO(), e))
row("zip: sizes behind the bytes", zipped, lambda e: written_zip(Unseekable(), e))
row("zip: links", zipped, lambda e: written_zip(io.BytesIO(), e, external_attr=LINK))
row("zip: folders", zipped, lambda e: written_zip(io.BytesIO(), e, external_attr=0o40755 << 16 | 0x10))
row("zip: made on a system that is none", zipped, lambda e: written_zip(io.BytesIO(), e, create_system=255))
row("zip: for a version that is none", zipped, lambda e: written_zip(io.BytesIO(), e, extract_version=255))
row("zip: comments of entries", zipped, lambda e: written_zip(io.BytesIO(), e, comment=b"\x1b[2J" * 5000))
row("zip: a long extra field", zipped, lambda e: written_zip(io.BytesIO(), e, extra=b"\x99\x99\xf8\xff" + b"x" * 65000))
row("zip: an extra field that is cut", zipped, lambda e: written_zip(io.BytesIO(), e, extra=b"\x01\x00\xff\xff"))
row("zip: a name of unicode beside", zipped, lambda e: written_zip(
    io.BytesIO(), e, extra=struct.pack("<HHBI", 0x7075, 9, 1, 0) + b"x/y/"))  # fmt: skip
row("zip: another archive in the comment", zipped, inner_end)
row("zip: many ends in the comment", zipped, lambda e: commented(e, b"PK\5\6" * 16_000))
row("zip: a root without a name", zipped, lambda e: stored([(n.replace("mlp/", "/"), c) for n, c in e.items()]))
row("zip: a root of dots", zipped, lambda e: stored([(n.replace("mlp/", "../"), c) for n, c in e.items()]))
row("zip: no root", zipped, lambda e: stored([(n.removeprefix("mlp/"), c) for n, c in e.items()]))
row("zip: a root of control characters", zipped, lambda e: stored(
    [(n.replace("mlp/", "\x1b[2J\u202e/"), c) for n, c in e.items()]))  # fmt: skip
row("zip: a root of 30,000 letters", zipped, lambda e: stored(
    [(n.replace("mlp/", "m" * 30_000 + "/"), c) for n, c in e.items()]))  # fmt: skip
row("zip: names that differ in their case", zipped, lambda e: stored(
    [*e.items(), *((n.upper(), c) for n, c in e.items())]))  # fmt: skip
row("zip: two programs", zipped, lambda e: stored(
    [*e.items(), ("mlp/models/other.json", next(c for n, c in e.items() if n.endswith("model.json")))]))  # fmt: skip
for bomb in (bytes(1 << 20), b"[" * (1 << 24)):
    row(f"zip: weights that are {len(bomb)} bytes longer", zipped, lambda e, bomb=bomb: stored(
        [(n, c + bomb if n.endswith("weight_0") else c) for n, c in e.items()]))  # fmt: skip
for name in ("archive_version", "archive_format", "byteorder", ".data/serialization_id", "version"):
    for content in (b"", b"99", b"big", b"\xff\xfe", b"x" * 100_000, b"\x1b[2J", b"-1", b"0"):
        row(f"zip: {name} is {content[:8]!r}", zipped, lambda e, name=name, content=content: stored(
            [*((n, c) for n, c in e.items() if not n.endswith("/" + name)), (f"mlp/{name}", content)]))  # fmt: skip


def ended(**fields: int) -> Callable:
    """An end of 64 bits with such fields; what it is about comes from the one of 32 bits."""

    def change(entries: dict[str, bytes]) -> bytes:
        data = stored(list(entries.items()))
        end = data.rindex(b"PK\5\6")
        count, size, offset = struct.unpack_from("<HII", data, end + 10)
        f = {"size": 44, "count": count, "bytes": size, "offset": offset, "at": end, "disk": 0, "disks": 1} | fields
        large = b"PK\6\6" + struct.pack(
            "<QHHIIQQQQ", f["size"], 45, 45, f["disk"], f["disk"], f["count"], f["count"], f["bytes"], f["offset"]
        )
        locator = b"PK\6\7" + struct.pack("<IQI", f["disk"], f["at"], f["disks"])
        return data[:end] + large + locator + b"PK\5\6" + b"\0\0\0\0" + b"\xff" * 12 + b"\0\0"

    return change


row("zip: an end of 64 bits", zipped, ended())
for name, values in {
    "size": (0, 1, 2**32, 2**64 - 1, 2**63), "count": (0, 1, 2**32, 2**64 - 1, 2**60), "bytes": (0, 2**64 - 1, 2**40),
    "offset": (0, 2**64 - 1, 2**63, 2**40), "at": (0, 2**64 - 1, 2**63, 5), "disk": (1, 2**32 - 1), "disks": (0, 9),
}.items():  # fmt: skip
    for value in values:
        row(f"zip: an end of 64 bits whose {name} is {value}", zipped, ended(**{name: value}))

# ---- .pt2: whole numbers, names, versions ------------------------------------------------------------------------


def in_graph(change: Callable[[dict[str, Any]], Any]) -> Callable:
    return lambda value: change(value["graph_module"]["graph"])


def expression(text: str, hint: Any = None) -> dict[str, Any]:
    return {"as_expr": {"expr_str": text, "hint": hint}}


for words, found in (
    ("zoo", "zoo"), ("oo", "oo"),
    ("a power of powers", "Pow(Integer(9), Pow(Integer(9), Pow(Integer(9), Integer(9))))"),
    ("a factorial", "factorial(Integer(100000000))"), ("10,000 digits", f"Integer({'9' * 10_000})"),
    ("a symbol that is none", "Symbol('\\x1b[2J', integer=True)"), ("a lambda", "Lambda(Symbol('x'), Symbol('x'))"),
    ("a name of Python", "__import__"), ("a call of a call", "Add(Integer)(1)"), ("a string", "'x' * 999999999"),
    ("100,000 terms", "Add(" + ", ".join(["Integer(1)"] * 100_000) + ")"), ("brackets", "(" * 10_000 + ")" * 10_000),
    ("a fraction", "Rational(1, 3)"), ("nan", "nan"), ("a piecewise", "Piecewise((Integer(1), True))"),
    ("deep sums", "Add(Integer(1), " * 5000 + "Integer(1)" + ")" * 5000),
):  # fmt: skip
    row(f"pt2: a size that is {words}", program, in_graph(lambda g, found=found: [
        t.update(sizes=[expression(found), *t["sizes"][1:]]) for t in g["tensor_values"].values()]))  # fmt: skip
    row(f"pt2: a sym_int that is {words}", program, in_graph(
        lambda g, found=found: g["sym_int_values"].update(s9=expression(found))))  # fmt: skip
for words, bounds in (
    ("that are turned around", {"min_val": 9, "max_val": 2}), ("of texts", {"min_val": "x", "max_val": []}),
    ("of 2 to the 70", {"min_val": 2**70, "max_val": 2**71}), ("below zero", {"min_val": -(2**63), "max_val": -5}),
    ("of null", {"min_val": None, "max_val": None}), ("of fractions", {"min_val": 0.5, "max_val": 1e400}),
    ("of nothing", {}),
):  # fmt: skip
    row(f"pt2: range constraints {words}", program, lambda value, bounds=bounds: value.update(
        range_constraints={"s0": bounds, "s77": bounds, "\x1b[2J": bounds, "nothing": bounds}))  # fmt: skip
for key in ("graph_module", "opset_version", "range_constraints", "schema_version", "verifiers", "torch_version",
            "guards_code"):  # fmt: skip
    row(f"pt2: without {key}", program, lambda value, key=key: value.pop(key, None) and None)
    for words, content in (("7", 7), ("a text", "\x1b[2J"), ("lists", [[[]]]), ("objects", {"a": {"b": {}}})):
        row(f"pt2: {key} is {words}", program, lambda value, key=key, content=content: value.update({key: content}))
for key in ("signature", "module_call_graph", "metadata", "graph", "treespec_namedtuple_fields"):
    row(f"pt2: a module without {key}", program, lambda value, key=key: value["graph_module"].pop(key, None) and None)
    for words, content in (("7", 7), ("a text", "\x1b[2J"), ("lists", [[[]]]), ("objects", {"a": {"b": {}}})):
        row(f"pt2: a module whose {key} is {words}", program,
            lambda value, key=key, content=content: value["graph_module"].update({key: content}))  # fmt: skip
for key in ("inputs", "outputs", "nodes", "tensor_values", "sym_int_values", "sym_bool_values", "sym_float_values",
            "custom_obj_values", "is_single_tensor_return"):  # fmt: skip
    row(f"pt2: a graph without {key}", program, in_graph(lambda g, key=key: g.pop(key, None) and None))
    for words, content in (("7", 7), ("a text", "x"), ("lists", [[[]]]), ("objects", {"a": {"b": {}}}), ("true", True)):
        row(f"pt2: a graph whose {key} is {words}", program,
            in_graph(lambda g, key=key, content=content: g.update({key: content})))  # fmt: skip


def inner_graph(levels: int) -> Callable:
    """A node with a graph in it, in which there is such a node."""

    def change(graph: dict[str, Any]) -> None:
        inner = json.loads(json.dumps(graph))
        for _ in range(levels):
            outer = json.loads(json.dumps(graph)) if levels < 100 else {**graph, "nodes": []}
            outer["nodes"] = [{"target": "torch.ops.higher_order.cond", "name": "c", "metadata": {}, "outputs": [],
                               "inputs": [{"name": "", "kind": 1, "arg": {"as_graph": {"name": "g", "graph": inner}}}],
                               "is_hop_single_tensor_return": None}]  # fmt: skip
            inner = outer
        graph["nodes"] += inner["nodes"]

    return change


for levels in (3, 70, 130):
    row(f"pt2: {levels} graphs in graphs", program, in_graph(inner_graph(levels)))


def weights_config(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], Path]:
    return lambda folder: program(folder, lambda value: change(value["config"]), "weights_config.json")


def first(config: dict[str, Any]) -> dict[str, Any]:
    return next(iter(config.values()))


for words, change in (
    ("all of one file", lambda c: [w.update(path_name=first(c)["path_name"]) for w in c.values()]),
    ("in each other's files", lambda c: [
        w.update(path_name=p) for w, p in zip(c.values(), [w["path_name"] for w in c.values()][::-1], strict=True)]),
    ("of the program's file", lambda c: first(c).update(path_name="../../models/model.json")),
    ("with a path of zeros", lambda c: first(c).update(path_name="weight_0\0")),
    ("with a long path", lambda c: first(c).update(path_name="../" * 20_000 + "x")),
    ("under other names", lambda c: c.update({f"{k}\x1b[2J": c.pop(k) for k in list(c)})),
    ("100,000 times", lambda c: c.update({f"w{k}": first(c) for k in range(100_000)})),
    ("none", lambda c: c.clear()),
    ("that are null", lambda c: c.update(dict.fromkeys(list(c)))),
    ("that are texts", lambda c: c.update(dict.fromkeys(list(c), "x"))),
    ("that are lists", lambda c: c.update({name: [] for name in c})),
    ("of the layout 2", lambda c: first(c)["tensor_meta"].update(layout=2)),
    ("that are on a device that is none", lambda c: first(c)["tensor_meta"].update(device={"type": "\x1b",
     "index": -1})),
    ("that ask for gradients", lambda c: first(c)["tensor_meta"].update(requires_grad="x")),
    ("with strides of 0", lambda c: first(c)["tensor_meta"].update(strides=[{"as_int": 0}, {"as_int": 0}])),
    ("with one stride", lambda c: first(c)["tensor_meta"].update(strides=[{"as_int": 1}])),
    ("with 100,000 strides", lambda c: first(c)["tensor_meta"].update(strides=[{"as_int": 1}] * 100_000)),
    ("of 65 axes", lambda c: first(c)["tensor_meta"].update(sizes=[{"as_int": 1}] * 65, strides=[{"as_int": 1}] * 65)),
    ("of half the rows", lambda c: first(c)["tensor_meta"].update(
        sizes=[{"as_int": first(c)["tensor_meta"]["sizes"][0]["as_int"] // 2}, *first(c)["tensor_meta"]["sizes"][1:]])),
):  # fmt: skip
    row(f"weights: {words}, odd", weights_config(change))

# ---- ONNX: data beside it ------------------------------------------------------------------------------------------


def beside(location: str, size: int = 8, dims: tuple[int, ...] = (2,), link: str = "", **entries: Any) -> Callable:
    def make(folder: Path) -> Any:
        with open(folder / "real.data", "wb") as file:
            file.truncate(size)  # without its blocks
        (folder / "sub").mkdir()
        (folder / "sub" / "real.data").write_bytes(bytes(8))
        (folder / "away").symlink_to("/etc")
        (folder / "loop").symlink_to(folder / "loop")
        if link:
            os.link(folder / "real.data", folder / link)
        return model([ADD], weights=[external("w", list(dims), location=location, **entries)])

    return make


for words, made_of in (
    ("a terabyte of data that is not on the disk", beside("real.data", 1 << 40, (1 << 37, 2))),
    ("a terabyte beyond what is read", beside("real.data", 1 << 40)),
    ("data at the end of a terabyte", beside("real.data", 1 << 40, offset=(1 << 40) - 8, length=8)),
    ("data that ends beyond the file", beside("real.data", 8, offset=4, length=8)),
    ("data at an odd place", beside("real.data", 64, offset=3, length=8)),
    ("data of another length", beside("real.data", 64, length=9)),
    ("data behind a folder that is a link", beside("away/passwd")),
    ("data behind a folder that leads to itself", beside("loop/x")),
    ("data below the folder", beside("sub/real.data")), ("data up and down", beside("sub/../real.data")),
    ("data with a dot", beside("./real.data")), ("data with a slash behind", beside("real.data/")),
    ("data with two slashes", beside("sub//real.data")), ("data with backslashes", beside("..\\..\\etc\\passwd")),
    ("data with a line end", beside("real.data\n")), ("data at an address", beside("file:///etc/passwd")),
    ("data in the home", beside("~/x")), ("data of a variable", beside("$HOME/x")), ("data that is a dot", beside(".")),
    ("data that is two dots", beside("..")), ("data with another name too", beside("other.data", link="other.data")),
    ("data that is the model's own name", beside("x.onnx/../x.onnx")),
    ("data of nothing", beside("real.data", 0, (0,))),
    ("data with a checksum", beside("real.data", checksum="\x1b[2J")),
    ("data with more", beside("real.data", offset="")),
    ("data with an offset of signs", beside("real.data", offset="+0")),
    ("data with blanks", beside("real.data", offset=" 0")),
    ("data in hexadecimal", beside("real.data", offset="0x0")),
    ("data at 10 to the 30", beside("real.data", offset=10**30)),
):  # fmt: skip
    onnx_row(words, made_of)


def repeated(folder: Path) -> Any:
    weight = external("w", [2], location="real.data")
    for key in ("location", "offset", "length", "offset", "location", "nothing", ""):
        weight.external_data.add(key=key, value="../../../../etc/passwd")
    (folder / "real.data").write_bytes(bytes(8))
    return model([ADD], weights=[weight])


def within(place: str) -> Callable:
    """Data elsewhere, named where readers look last."""

    def make(folder: Path) -> Any:
        weight = external("w", [2], location="../../../../../../etc/passwd")
        branch = helper.make_graph([helper.make_node("Identity", ["w"], ["b"])], "b", [],
                                   [helper.make_tensor_value_info("b", 1, [2])], [weight])  # fmt: skip
        go = helper.make_tensor("go", 9, [], [True])
        if place == "a branch":
            return model([helper.make_node("If", ["go"], ["y"], then_branch=branch, else_branch=branch)], weights=[go])
        constant = helper.make_node("Constant", [], ["w"])
        attribute = AttributeProto(name="value", type=AttributeProto.TENSOR)
        attribute.t.CopyFrom(weight)
        if place == "a list":
            attribute = AttributeProto(name="values", type=AttributeProto.TENSORS)
            attribute.tensors.append(weight)
        if place == "a sparse constant":
            attribute = AttributeProto(name="sparse_value", type=AttributeProto.SPARSE_TENSOR)
            attribute.sparse_tensor.values.CopyFrom(weight)
            attribute.sparse_tensor.indices.CopyFrom(tensor("i", [2], data_type=7, raw_data=struct.pack("<2q", 0, 1)))
            attribute.sparse_tensor.dims.append(2)
        constant.attribute.append(attribute)
        if place == "a function":
            function = helper.make_function("local", "F", ["x"], ["y"], [constant, ADD], [helper.make_opsetid("", 20)])
            made = model([helper.make_node("F", ["x"], ["y"], domain="local")], functions=[function])
            made.opset_import.append(helper.make_opsetid("local", 1))
            return made
        return model([constant, ADD])

    return make


onnx_row("data with every entry twice", repeated)
for place in ("a branch", "a constant", "a list", "a sparse constant", "a function"):
    onnx_row(f"data elsewhere, named in {place}", within(place))


def sparse(
    dims: list[int], values: list[int], indices: list[int], shape: list[int], data: bytes = bytes(8)
) -> Callable:
    def make(folder: Path) -> Any:
        made = model([ADD])
        found = made.graph.sparse_initializer.add()
        found.dims.extend(dims)
        found.values.CopyFrom(tensor("w", values, raw_data=data))
        found.indices.CopyFrom(tensor("i", shape, data_type=7, raw_data=struct.pack(f"<{len(indices)}q", *indices)))
        return made

    return make


for words, made_of in (
    ("right", sparse([2], [2], [0, 1], [2])), ("beyond the end", sparse([2], [2], [0, 99], [2])),
    ("below zero", sparse([2], [2], [-5, 1], [2])), ("of 2 to the 62", sparse([2**62], [2], [0, 1], [2])),
    ("of 2 to the 34", sparse([2**34], [2], [0, 1], [2])),
    ("with places of two axes", sparse([2], [2], [0, 0, 1, 1], [2, 2])),
    ("with more values", sparse([2], [2**40], [0, 1], [2])), ("with places that are cut", sparse([2], [2], [0], [2])),
    ("without sizes", sparse([], [2], [0, 1], [2])), ("of negative sizes", sparse([-2], [2], [0, 1], [2])),
    ("twice at one place", sparse([2], [2], [1, 1], [2])),
    ("with places of 3 axes", sparse([2], [2], [0, 1], [1, 1, 2])),
):  # fmt: skip
    onnx_row(f"a sparse weight {words}", made_of)


def unreadable(folder: Path) -> Path:
    """What ONNX Runtime says of it has bytes in it that are no text."""
    made = model([helper.make_node("Nothing", ["x"], ["y"], name="AAAA")])
    return put(folder, "x.onnx", made.SerializeToString().replace(b"AAAA", b"\xad\xad\xad\xad"))


row("onnx: an error of ONNX Runtime's that is no text", unreadable)

# ---- ONNX: functions, types, metadata ------------------------------------------------------------------------------


def laughs(levels: int, times: int) -> Callable:
    """Functions that call the next one several times: of a kilobyte, operators without end."""

    def make(folder: Path) -> Any:
        functions = []
        imports = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
        for level in range(levels):
            last = level == levels - 1
            nodes = [
                helper.make_node(
                    "Relu" if last else f"F{level + 1}", [f"v{k}"], [f"v{k + 1}"], domain="" if last else "local"
                )
                for k in range(times)
            ]
            functions.append(helper.make_function("local", f"F{level}", ["v0"], [f"v{times}"], nodes, imports))
        made = model([helper.make_node("F0", ["x"], ["y"], domain="local")], functions=functions)
        made.opset_import.append(helper.make_opsetid("local", 1))
        return made

    return make


for levels, times in ((40, 2), (9, 10), (2000, 1), (3, 3)):
    onnx_row(f"{levels} functions that call the next {times} times", laughs(levels, times))


def moduled(names: Callable[[int], str], count: int, key: str = "fairlead.module") -> Callable:
    def make(folder: Path) -> Any:
        nodes = [helper.make_node("Relu", [f"v{k}"], [f"v{k + 1}"]) for k in range(count)]
        for k, node in enumerate(nodes):
            node.metadata_props.add(key=key, value=names(k))
        nodes[0].input[0], nodes[-1].output[0] = "x", "y"
        return model(nodes)

    return make


for words, made_of in (
    ("100,000 levels deep", moduled(lambda k: "a." * 100_000, 1)),
    ("a thousand ways, 10,000 levels deep", moduled(lambda k: f"m{k}." + "a." * 10_000, 200)),
    ("of dots", moduled(lambda k: "." * (k + 1), 50)), ("of nothing", moduled(lambda k: "", 3)),
    ("of markup", moduled(lambda k: "</script><img src=x onerror=alert(1)>", 3)),
    ("named as what an object has", moduled(lambda k: ("__proto__", "constructor", "toString", "hasOwnProperty")[k],
     4)),
    ("of a megabyte", moduled(lambda k: "a" * 1_000_000, 5)), ("with slashes", moduled(lambda k: "../" * 99, 3)),
    ("50,000 of them", moduled(lambda k: f"m{k}", 50_000)),
):  # fmt: skip
    onnx_row(f"modules {words}", made_of)
for words, source in (
    ("a number without end", "x.py:" + "9" * 400), ("a line of -1", "x.py:-1"), ("no line", "x.py:"), ("a colon", ":"),
    ("markup", "</script>:1"), ("itself", __file__ + ":1"), ("a device", "/dev/zero:1"),
    ("a megabyte", "a" * 10**6 + ":1"),
):  # fmt: skip
    onnx_row(f"sources of {words}", moduled(lambda k, source=source: source, 3, "fairlead.source"))


def typed(levels: int, kind: str) -> Callable:
    def make(folder: Path) -> Any:
        made = model([RELU])
        value = made.graph.input[0].type
        value.Clear()
        for _ in range(levels):
            value = getattr(value, f"{kind}_type").elem_type if kind != "map" else value.map_type.value_type
        value.tensor_type.elem_type = 1
        return made

    return make


for kind in ("sequence", "optional", "map"):
    for levels in (1, 40):
        onnx_row(f"an input of {levels} times {kind}", typed(levels, kind))


def inner_types(levels: int) -> bytes:
    inner = message(1, b"\x08\x01")
    for _ in range(levels):
        inner = message(4, message(1, inner))
    return message(7, message(11, message(1, b"x") + message(2, inner)))


row("onnx: types in types, 5,000 levels", lambda folder: put(folder, "x.onnx", inner_types(5000)))


def named_dim(*names: Any) -> Callable:
    return lambda folder: model([RELU], inputs=[helper.make_tensor_value_info("x", 1, list(names))])


for words, names in (
    ("that move the cursor", ("\x1b[2J\u202e", 2)), ("of markup", ("<script>alert(1)</script>", 2)),
    ("of nothing", ("", 2)),
    ("of a megabyte", ("n" * 1_000_000, 2)), ("that are one", ("n", "n")), ("like numbers", ("7", "2**9")),
    ("like code", ("__import__('os').system('true')", 2)), ("with zeros", ("a\0b", 2)), ("of 70 axes", tuple("n" * 70)),
    ("that are expressions", ("n*1000000000000", 2)), ("that are divided", ("n//0", "n/0")),
    ("with lines", ("a\nb\rc", 2)),
):  # fmt: skip
    onnx_row(f"sizes with names {words}", named_dim(*names))


def attribute_of(change: Callable[[Any], Any]) -> Callable:
    def make(folder: Path) -> Any:
        node = helper.make_node("Softmax", ["x"], ["y"], axis=-1)
        change(node.attribute[0])
        return model([node])

    return make


for words, change in (
    ("without a type", lambda a: a.ClearField("type")), ("of type 99", lambda a: setattr(a, "type", 13)),
    ("of texts", lambda a: (a.ClearField("i"), setattr(a, "s", b"\xff\xfe"), setattr(a, "type", 3))),
    ("that refers to another", lambda a: setattr(a, "ref_attr_name", "\x1b[2J")),
    ("of 2 to the 62", lambda a: setattr(a, "i", 2**62)),
    ("with everything", lambda a: (a.ints.extend([1]), a.floats.extend([1.0]), a.strings.extend([b"x"]), setattr(a,
     "f", 1e30))),
    ("without a name", lambda a: a.ClearField("name")),
    ("of a name that moves", lambda a: setattr(a, "name", "\x1b[2J")),
    ("of a graph", lambda a: (a.g.SetInParent(), setattr(a, "type", 5))), ("of a tensor", lambda a: (
        a.t.CopyFrom(tensor("t", [2**40])), setattr(a, "type", 4))),
        ("of a type", lambda a: (a.tp.SetInParent(), setattr(a, "type", 13))),
    ("of a doc without end", lambda a: setattr(a, "doc_string", "\x1b[2J" * 100_000)),
):  # fmt: skip
    onnx_row(f"an attribute {words}", attribute_of(change))


def meta(count: int, key: str, value: str) -> Callable:
    def make(folder: Path) -> Any:
        made = model([RELU])
        for k in range(count):
            made.metadata_props.add(key=key.format(k), value=value)
        return made

    return make


RECORDS = {
    "differences without what may be left out": {"differences": [{"kind": "unseen", "sizes": {}, "scaled": 1.0,
     "output": "y"}]},
    "differences of infinities": {"differences": [
        {"kind": k, "sizes": {"n": 2**62}, "scaled": v, "output": "\x1b[2J</script>", "tolerance": v}
        for k in ("example", "values", "call", "unseen", "x") for v in ("nan", "inf", "-inf", 5e-324, 1e299, -1, 0)]},
    "sizes tried a million times": {"contract": {"symbols": [
        {"name": "n", "tried": [2**62] * 1_000_000, "min": 1, "max": 2, "where": "axis 0 of x"}]}},
    "10,000 symbols": {"contract": {"symbols": [
        {"name": f"n{k}", "tried": [1], "min": 1, "max": 2, "where": "</script>"} for k in range(10_000)]}},
    "sizes of ends": {"contract": {"symbols": [
        {"name": "n", "tried": [], "min": 2**63 - 1, "max": -(2**63), "where": ""}]}, "example": {"n": 2**63 - 1}},
    "names of Python": {"contract": {"inputs": [{"name": "__class__", "dtype": "{0.__class__}", "shape": ["%s", "{}",
     "{{7*7}}"]}],
                                     "notes": ["{{ 7 * 7 }}{% for a in b %}", "%n%s", "<b>x</b>"]}},
    "quantised of infinities": {"contract": {"quantized": {"format": "int4", "layers": {"a": "inf", "b": "nan",
     "c": -1, "</td>": 1e299},
                                                           "outputs": {}, "agreement": "nan"}}},
    "fixed 10,000 times": {"contract": {"fixed": [
        {"name": f"x{k}", "axis": 2**62, "size": -5, "reason": "\u202e" * 20} for k in range(10_000)]}},
    "no text of its own": {"model": "", "versions": {"": ""}, "contract": {"notes": [""],
     "verified": "", "drawn": {"": []}}},
}  # fmt: skip
for words, value in RECORDS.items():
    onnx_row(f"a record of {words}", lambda f, value=value: model([RELU], fairlead_report=json.dumps(value)))
for words, count, key, value in (
    ("a record 5,000 times", 5_000, "fairlead.report", '{"contract": {}}'), ("100,000 rows", 100_000, "k{}", "v"),
    ("keys without text", 10, "", ""), ("a layout that is none", 1, "fairlead.layout", "\x1b[2J"),
    ("a checked text of 10 MB", 1, "fairlead.checked", "\u202e" * 3_000_000),
    ("format signs", 1, "fairlead.contract", "{0.__class__} %s %n"),
):  # fmt: skip
    onnx_row(f"metadata of {words}", meta(count, key, value))
for words, change in (
    ("a version of an opset twice", lambda m: m.opset_import.append(helper.make_opsetid("", 7))),
    ("50,000 opsets", lambda m: m.opset_import.extend(helper.make_opsetid(f"d{k}", 1) for k in range(50_000))),
    ("an opset of a domain that moves", lambda m: m.opset_import.append(helper.make_opsetid("\x1b[2J\u202e", 1))),
    ("training", lambda m: m.training_info.add().algorithm.node.add(op_type="Nothing")),
    ("quantization notes", lambda m: m.graph.quantization_annotation.add(tensor_name="\x1b[2J")),
    ("values of other types", lambda m: m.graph.value_info.add(name="y").type.tensor_type.__setattr__("elem_type", 99)),
    ("a doc of 10 MB", lambda m: setattr(m, "doc_string", "\x1b[2J" * 2_000_000)),
    ("a model version of 2 to the 63", lambda m: setattr(m, "model_version", 2**63 - 1)),
    ("a producer that moves the cursor", lambda m: setattr(m, "producer_version", "\x1b[2J\r\n\u202e")),
    ("devices", lambda m: m.configuration.add(name="\x1b", num_devices=2**31 - 1)),
    ("functions twice", lambda m: m.functions.extend([helper.make_function("local", "F", ["a"], ["b"], [], [])] * 2)),
    ("a function without a name", lambda m: m.functions.add()),
    ("100,000 outputs", lambda m: m.graph.output.extend(
        helper.make_tensor_value_info(f"o{k}", 1, [2]) for k in range(100_000))),
    ("100,000 inputs", lambda m: m.graph.input.extend(
        helper.make_tensor_value_info(f"i{k}", 1, [2]) for k in range(100_000))),
    ("strings as an input", lambda m: m.graph.input[0].type.tensor_type.__setattr__("elem_type", 8)),
    ("bfloat16 as an input", lambda m: m.graph.input[0].type.tensor_type.__setattr__("elem_type", 16)),
    ("float8 as an output", lambda m: m.graph.output[0].type.tensor_type.__setattr__("elem_type", 17)),
    ("four bits as an input", lambda m: m.graph.input[0].type.tensor_type.__setattr__("elem_type", 22)),
    ("an input without sizes", lambda m: m.graph.input[0].type.tensor_type.ClearField("shape")),
    ("a scalar as an input", lambda m: m.graph.input[0].type.tensor_type.shape.ClearField("dim")),
    ("another name of the input", lambda m: (setattr(m.graph.input[0],
     "name", "z"), m.graph.node[0].input.__setitem__(0, "z"))),
    ("a name of the input that is none", lambda m: (setattr(m.graph.input[0],
     "name", ""), m.graph.node[0].input.__setitem__(0, ""))),
):  # fmt: skip
    onnx_row(words, lambda f, change=change: (m := model([RELU]), change(m))[0])


def several(**fields: Any) -> Callable:
    """A weight whose values are given in more than one way."""

    def make(folder: Path) -> Any:
        weight = tensor(
            "w", [2], **{k: v for k, v in fields.items() if k in ("data_type", "raw_data", "data_location")}
        )
        for name, values in fields.items():
            if name not in ("data_type", "raw_data", "data_location"):
                getattr(weight, name).extend(values)
        return model([ADD], weights=[weight])

    return make


for words, made_of in (
    ("in two ways", several(raw_data=bytes(8), float_data=[1.0, 2.0])), ("of another kind", several(int64_data=[1, 2])),
    ("of too many", several(float_data=[1.0] * 100_000)), ("of too few", several(float_data=[1.0])),
    ("of texts", several(
        string_data=[b"a", b"b"])), ("of NaN", several(float_data=[float("nan"), float("inf")])), ("that is not there",
     several(data_location=1)), ("that is elsewhere and here", several(data_location=1, raw_data=bytes(8))),
    ("of four bits", several(data_type=22, raw_data=b"\0")),
    ("of bool that is 7", several(data_type=9, raw_data=b"\7\7")),
    ("of complex", several(data_type=14, raw_data=bytes(16))), ("of float8", several(data_type=17, raw_data=bytes(2))),
):  # fmt: skip
    onnx_row(f"a weight given {words}", made_of)


def deep_branches(levels: int) -> Callable:
    def make(folder: Path) -> Any:
        graph = helper.make_graph(
            [helper.make_node("Relu", ["x"], ["b"])], "g", [], [helper.make_tensor_value_info("b", 1, None)]
        )
        for level in range(levels):
            node = helper.make_node("If", ["go"], [f"b{level}"], then_branch=graph, else_branch=graph)
            graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info(f"b{level}", 1, None)])
        node = helper.make_node("If", ["go"], ["y"], then_branch=graph, else_branch=graph)
        return model([node], weights=[helper.make_tensor("go", 9, [], [True])])

    return make


for levels in (10, 14):  # twice as much with each
    onnx_row(f"branches in branches, {levels} levels", deep_branches(levels))
