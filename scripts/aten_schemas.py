"""Writes fairlead/pt2/aten_schemas.cpp: what the reader of .pt2 programs has to know about ATen operators; and
fairlead/graph/operator_kinds.cpp: of what kinds their arguments and results are, for the validation of graphs.

A program names the arguments it gives and leaves out the others, and says nothing of what an operator writes. PyTorch's
schemas have that, but the reader runs without PyTorch: this table is made from them. Run it after adding a lowering.
"""

import re
import sys
from pathlib import Path

import torch
from fairlead.record.operators import NEEDS_STRIDES, NEVER, OBSERVED, VIEW, define

from fairlead import _core

TARGET = Path(__file__).resolve().parent.parent / "fairlead/pt2/aten_schemas.cpp"

# Operators whose schema says view and that copy where a view is not possible.
MAYBE = re.compile(r"aten\.(reshape|reshape_as|contiguous|flatten|ravel|to)\.")
ALIASES = {NEVER: "kNever", VIEW: "kView", OBSERVED: "kObserved"}
# Composite operators that the reader writes out in terms of others: fairlead/pt2/composite.cpp.
COMPOSITE = TARGET.with_name("composite.cpp")

KINDS_TARGET = TARGET.parent.parent / "graph/operator_kinds.cpp"
KINDS_HEAD = """// Kinds of ATen arguments and results. Written by scripts/aten_schemas.py; do not edit.
#include "fairlead/graph/validate.h"

namespace fairlead {
namespace {

// clang-format off
constexpr OperatorKinds kRows[] = {
"""
KINDS_TAIL = """};
// clang-format on

}  // namespace

std::span<const OperatorKinds> operator_kinds() { return kRows; }

}  // namespace fairlead
"""
# Letters of fairlead/graph/validate.h, by the type in the schema; what is not here may be anything.
LETTERS = {
    "Tensor": "T", "Optional[Tensor]": "t", "List[Tensor]": "L", "List[Optional[Tensor]]": "l",
    "Optional[List[Tensor]]": "l",
    "int": "i", "Optional[int]": "o", "List[int]": "I", "Optional[List[int]]": "J",
    "float": "f", "Optional[float]": "g", "bool": "b", "Optional[bool]": "c", "number": "s", "Optional[number]": "q",
}  # fmt: skip
# Parameters that are axes of the first argument.
AXES = {"dim", "dims", "dim0", "dim1", "dim2", "start_dim", "end_dim", "axis", "axis0", "axis1", "source",
        "destination", "dimension"}  # fmt: skip
# Operators with one of these whose axes count otherwise: those of a broadcast shape are looked up by the lowering.
NO_AXES = {"tile", "cosine_similarity", "cross", "linalg_cross", "linalg_vecdot", "vecdot", "einsum", "tensordot"}
# Of the packed and the padded form alike: the lowering tells them apart.
TWO_FORMS = dict.fromkeys(
    ("lstm", "gru", "rnn_tanh", "rnn_relu"),
    ("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first"),
)
ONE_MORE = {
    "unsqueeze",
    "unsqueeze_copy",
    "stack",
    "diag_embed",
    "select_scatter_backward",
}  # axes of the result, which has one more

HEAD = """// Schemas of ATen operators. Written by scripts/aten_schemas.py; do not edit.
#include "fairlead/pt2/schemas.h"

namespace fairlead::pt2 {
namespace {

using enum Alias;

// clang-format off
constexpr SchemaRow kRows[] = {
"""
TAIL = """};
// clang-format on

}  // namespace

std::span<const SchemaRow> schema_rows() { return kRows; }

}  // namespace fairlead::pt2
"""


def default_text(value) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value).replace("'", "")
    return "[" + " ".join(default_text(v) for v in value) + "]"


def row(overload) -> tuple[str, str] | None:
    name, functional, params, writes, _, alias, random, *_ = define(overload)
    original = f"{overload._schema.name.replace('::', '.')}.{overload._schema.overload_name or 'default'}"
    if MAYBE.match(name):
        alias = OBSERVED
    texts = [p if not has else f"{p}={default_text(d)}" for p, has, d in params]
    if writes < 0 and name != original:  # unsqueeze_: a view that takes the tensor's place
        functional = name
    fields = f'{{"{original}", "{functional}", {writes}, {ALIASES[alias]}, {str(random).lower()}, '
    return original, fields + f'"{", ".join(texts)}"}},\n'


def letter_of(argument) -> str:
    # Element types, layouts and formats are integers to `type`.
    return LETTERS.get(str(argument.real_type).replace("SymInt", "int").replace("SymBool", "bool"), "x")


def kinds(overload) -> str:
    """ "T@i@ib": letters of the arguments, those that are axes marked with @ (^: of the result), a colon, those of the
    results. A parameter with a default has its letter after a dot."""
    schema = overload._schema
    base = schema.name.split("::")[1].rstrip("_")
    texts = []
    for argument in schema.arguments:
        letter = letter_of(argument) if argument.name not in TWO_FORMS.get(base, ()) else "x"
        mark = ""
        if argument.name in AXES and letter in "ioIJ" and base not in NO_AXES:
            mark = "^" if base in ONE_MORE else "%" if base.startswith("permute") else "~" if base == "roll" else "@"
        texts.append(("." if argument.has_default_value() else "") + mark + letter)
    if base in NEEDS_STRIDES:  # a recording adds those of the tensor that is read as raw storage
        texts.append(".x")
    results = "".join(letter_of(result) for result in schema.returns)
    return "".join(texts) + ":" + results


def write(target: Path, text: str) -> None:
    if "--check" not in sys.argv:
        target.write_text(text)
    elif target.read_text() != text:
        sys.exit(f"{target}: out of date, run scripts/aten_schemas.py")


def main() -> None:
    known = {name for name, _, _ in _core.operator_rows()}
    known |= set(re.findall(r'"(aten\.\w+\.\w+)"', COMPOSITE.read_text()) if COMPOSITE.exists() else ())
    rows, kind_rows = {}, {}
    for qualified in torch._C._dispatch_get_all_op_names():
        if not qualified.startswith("aten::"):
            continue
        base, _, overload = qualified.removeprefix("aten::").partition(".")
        packet = getattr(torch.ops.aten, base)
        made = getattr(packet, overload or "default", None)
        if made is None:
            continue
        try:
            definition = define(made)
        except (AttributeError, RuntimeError):
            continue
        if definition[4]:  # out= variants are not in exported programs
            continue
        if known & {f"aten.{base}.{overload or 'default'}", definition[0], definition[1]}:
            name, text = row(made)
            rows[name] = text
        if f"aten.{base}.{overload or 'default'}" in known | {definition[1]} & known:
            original = f"aten.{base}.{overload or 'default'}"
            kind_rows[original] = f'{{"{original}", "{kinds(made)}"}},\n'
    write(TARGET, HEAD + "".join(f"    {rows[name]}" for name in sorted(rows)) + TAIL)
    write(KINDS_TARGET, KINDS_HEAD + "".join(f"    {kind_rows[name]}" for name in sorted(kind_rows)) + KINDS_TAIL)


if __name__ == "__main__":
    main()
