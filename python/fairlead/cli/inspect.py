"""`fairlead inspect`: what is in an ONNX file, or in all files of an exported folder. Needs no PyTorch."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from fairlead import _core
from fairlead.base.units import size_text
from fairlead.cli.printing import heading, say, say_json, table
from fairlead.contract import Tensor, grouped

SUMMARY = "fairlead.json"


@click.command()
@click.argument("path", type=click.Path(exists=True))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def inspect(path: str, as_json: Any) -> None:
    """Shows what is in an ONNX file, or in a folder that export wrote: contract, inputs, outputs, operators, sizes,
    symbols. Needs no PyTorch.

    \b
    Examples:
      fairlead inspect out/
      fairlead inspect model.onnx
      fairlead inspect model.onnx --json | jq .operators
    """
    if not os.path.isdir(path):
        summary = _core.read_summary(path)
        say_json(summary) if as_json else print_summary(path, summary)
        return
    files = sorted(
        os.path.relpath(os.path.join(at, name), path)
        for at in (path, os.path.join(path, "onnx"))  # the layout of transformers.js
        if os.path.isdir(at)
        for name in os.listdir(at)
        if name.endswith(".onnx")
    )
    if not files:
        raise _core.InvalidInput(
            f"[inspect] Expected .onnx files in '{path}', got none. Give a file or another folder."
        )
    about, summaries = exported_from(path), {name: _core.read_summary(os.path.join(path, name)) for name in files}
    if as_json:
        say_json({"export": about, "files": summaries})
        return
    if about:
        heading("{architecture} from {source}: {task}, {dtype}".format(**about))
        named = {*files, *(file for summary in summaries.values() for file in summary["external_files"])}
        others = sorted(name for name in os.listdir(path) if name not in named)
        say(f"  {', '.join([*files, *others])}")
    for name, summary in summaries.items():
        print_summary(os.path.join(path, name), summary)


def exported_from(folder: str) -> dict[str, Any] | None:
    """fairlead.json, where it is whole."""
    path = os.path.join(folder, SUMMARY)
    if not os.path.isfile(path):  # a pipe would be waited for
        return None
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    whole = isinstance(found, dict) and {"architecture", "source", "task", "dtype"} <= set(found)
    return found if whole else None


def print_summary(path: str, summary: dict[str, Any]) -> None:
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in summary["opsets"].items())
    heading(f"{path}: {size_text(summary['file_bytes'])}, written by {summary['producer'] or 'unknown'} "
            f"{summary['producer_version']}".rstrip() + f", opset {opsets}")  # fmt: skip
    for title in ("inputs", "outputs"):
        heading(title.capitalize())
        rows = [Tensor(v["name"], v["dtype"] or "not a tensor", dims(v)) for v in summary[title]]
        table([(name, f"{dtype}[{', '.join(shape)}]") for name, dtype, shape in grouped(rows)])
    heading("Symbols")
    places = symbol_places(summary["inputs"])
    table([(name, f"axis {axis} of {where}") for name, (axis, where) in places.items()])
    if not places:
        say("  none: every dimension is fixed")
    heading(f"Operators: {summary['nodes']} nodes")
    for name, count in sorted(summary["operators"].items(), key=lambda item: (-item[1], item[0])):
        say(f"  {count:6}  {name}")
    outside = f", {size_text(summary['external_bytes'])} of it in {', '.join(summary['external_files'])}"
    heading("Weights")
    inside = f"{summary['weights']} tensors, {size_text(summary['weight_bytes'])}"
    say(f"  {inside}{outside if summary['external_bytes'] else ''}")
    metadata = summary["metadata"]
    if "fairlead.contract" in metadata:
        heading("Contract")
        for line in metadata["fairlead.contract"].splitlines():
            say(f"  {line}")
        say(f"  Checked: {metadata.get('fairlead.checked', 'unknown')}")


def dims(value: dict[str, Any]) -> list[str]:
    return ["?" if dim is None else str(dim) for dim in value["shape"] or ()]


def symbol_places(inputs: list[dict[str, Any]]) -> dict[str, tuple[int, str]]:
    """Each symbol with the first axis that has its size."""
    found: dict[str, tuple[int, str]] = {}
    for value in inputs:
        for axis, dim in enumerate(value["shape"] or ()):
            if isinstance(dim, str) and dim.isidentifier():
                found.setdefault(dim, (axis, value["name"]))
    return found
