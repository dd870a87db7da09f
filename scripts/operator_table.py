"""Writes the rows of PyTorch's operators in the table of fairlead/aten (operator_rows.cpp, and writing_rows.cpp for
those that write), and their names (ops.h).

A program names the arguments it gives and leaves out the others, and says nothing of what an operator writes. PyTorch's
schemas have that, but the core runs without PyTorch: the table is made from them. Every operator that has a lowering or
is named in fairlead/aten has a row, and so have those that write and become one of these. Run it after adding one.
"""

import keyword
import re
import sys
from pathlib import Path

import torch
from fairlead.record.operators import NEEDS_STRIDES, NEVER, OBSERVED, TYPES, VIEW, define

from fairlead import _core

FOLDER = Path(__file__).resolve().parent.parent / "fairlead/aten"
# File -> (what is in it, the function that gives it).
ROWS = {
    FOLDER / "operator_rows.cpp": ("operators", "operator_rows"),
    FOLDER / "writing_rows.cpp": ("operators that write into an argument", "writing_rows"),
}
NAMES = FOLDER / "ops.h"
OWN = FOLDER / "own_operators.cpp"

# Operators whose schema says view and that copy where a view is not possible.
MAYBE = re.compile(r"aten\.(reshape|reshape_as|contiguous|flatten|ravel|to)\.")
ALIASES = {NEVER: "kNever", VIEW: "kView", OBSERVED: "kObserved"}

# Letters of fairlead/aten/operators.h, by the type in the schema; what is not here may be anything.
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

HEAD = """// Rows of PyTorch's {what}. Written by scripts/operator_table.py; do not edit.
#include "fairlead/aten/operators_impl.h"

namespace fairlead {{
namespace {{

using enum Alias;

// clang-format off
constexpr OperatorRow kRows[] = {{
"""
TAIL = """}};
// clang-format on

}}  // namespace

std::span<const OperatorRow> {function}() {{ return kRows; }}

}}  // namespace fairlead
"""
NAMES_HEAD = """// Operators by name: add_Tensor is aten.add.Tensor, relu is aten.relu.default, higher_order_cond is
// another library's. Those that write have none: graphs do not hold them. Written by
// scripts/operator_table.py; do not edit.
#pragma once

#include <cstdint>

namespace fairlead {

// The value is the place of the row in operators().
// clang-format off
enum class Op : std::uint16_t {
"""
NAMES_TAIL = """};
// clang-format on

}  // namespace fairlead
"""
CPP_WORDS = {"and", "or", "not", "xor", "bool", "int", "float", "double", "long", "char", "union", "new", "delete"}


def default_text(value) -> str:
    if isinstance(value, torch.dtype):  # as the schema writes it
        value = next(code for code, dtype in TYPES.items() if dtype == value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value).replace("'", "")
    return "[" + " ".join(default_text(v) for v in value) + "]"


def row(overload, original: str) -> str:
    name, functional, params, writes, _, alias, random, *_ = define(overload)
    if MAYBE.match(name):
        alias = OBSERVED
    texts = [p if not has else f"{p}={default_text(d)}" for p, has, d in params]
    if writes < 0 and name != original:  # unsqueeze_: a view that takes the tensor's place
        functional = name
    if functional == original:  # a form that PyTorch has only as one that writes: floor_divide_.Tensor
        functional, writes = "", -1
    fields = f'{{"{original}", "{functional}", {writes}, {ALIASES[alias]}, {str(random).lower()}, '
    return fields + f'"{", ".join(texts)}", "{kinds(overload)}"}},\n'


def name_in_cpp(name: str) -> str | None:
    """ "aten.add.Tensor" -> "add_Tensor"; None for what has none."""
    text = name.removeprefix("aten.").removesuffix(".default").replace(".", "_")
    return None if "__" in text or keyword.iskeyword(text) or text in CPP_WORDS else text


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


def writes(name: str) -> bool:
    return name.split(".")[1].endswith("_")


def write(target: Path, text: str) -> None:
    if "--check" not in sys.argv:
        target.write_text(text)
    elif target.read_text() != text:
        sys.exit(f"{target}: out of date, run scripts/operator_table.py")


def main() -> None:
    known = {name for name, _, _ in _core.operator_rows()}
    for path in FOLDER.rglob("*.cpp"):
        if path not in ROWS:
            known |= set(re.findall(r'"(aten\.\w+(?:\.\w+)?)"', path.read_text()))  # without overload: all of them
    rows, writing = {}, {}
    for qualified in torch._C._dispatch_get_all_op_names():
        if not qualified.startswith("aten::"):
            continue
        base, _, overload = qualified.removeprefix("aten::").partition(".")
        name = f"aten.{base}.{overload or 'default'}"
        made = getattr(getattr(torch.ops.aten, base), overload or "default", None)
        if made is None:
            continue
        try:
            definition = define(made)
        except (AttributeError, RuntimeError):
            continue
        if definition[4]:  # out= variants are not in exported programs
            continue
        named = {name, definition[0], definition[1]}
        if known & (named | {each.rpartition(".")[0] for each in named}):
            rows[name] = row(made, name)
            writing[definition[1]] = made
    for name in (known & writing.keys()) - rows.keys():
        rows[name] = row(writing[name], name)
    kept, written = ([name for name in sorted(rows) if writes(name) == which] for which in (False, True))
    for (target, (what, function)), names in zip(ROWS.items(), (kept, written), strict=True):
        write(
            target, HEAD.format(what=what) + "".join(f"    {rows[n]}" for n in names) + TAIL.format(function=function)
        )
    own = re.findall(r'^    \{"([\w.]+)"', OWN.read_text(), re.MULTILINE)
    names = [(name_in_cpp(name), k) for k, name in enumerate(kept + own)]
    write(NAMES, NAMES_HEAD + "".join(f"  {name} = {k},\n" for name, k in names if name) + NAMES_TAIL)


if __name__ == "__main__":
    main()
