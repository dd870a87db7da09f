"""Writes fairlead/pt2/aten_schemas.cpp: what the reader of .pt2 programs has to know about ATen operators.

A program names the arguments it gives and leaves out the others, and says nothing of what an operator writes. PyTorch's
schemas have that, but the reader runs without PyTorch: this table is made from them. Run it after adding a lowering.
"""

import re
import sys
from pathlib import Path

import torch
from fairlead.record.operators import NEVER, OBSERVED, VIEW, define

from fairlead import _core

TARGET = Path(__file__).resolve().parent.parent / "fairlead/pt2/aten_schemas.cpp"

# Operators whose schema says view and that copy where a view is not possible.
MAYBE = re.compile(r"aten\.(reshape|reshape_as|contiguous|flatten|ravel|to)\.")
ALIASES = {NEVER: "kNever", VIEW: "kView", OBSERVED: "kObserved"}
# Composite operators that the reader writes out in terms of others: fairlead/pt2/composite.cpp.
COMPOSITE = TARGET.with_name("composite.cpp")

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


def main() -> None:
    known = {name for name, _, _ in _core.operator_rows()}
    known |= set(re.findall(r'"(aten\.\w+\.\w+)"', COMPOSITE.read_text()) if COMPOSITE.exists() else ())
    rows = {}
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
    text = HEAD + "".join(f"    {rows[name]}" for name in sorted(rows)) + TAIL
    if "--check" in sys.argv:
        sys.exit(0 if TARGET.read_text() == text else f"{TARGET}: out of date, run scripts/aten_schemas.py")
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
