#!/usr/bin/env python3
"""Writes docs/coverage.md from the results of a sweep over model classes: what passes, and why the others do not.

    python scripts/coverage_page.py --sweep sweep.py --transformers CHECKOUT results.jsonl [more.jsonl ...]

Each row that failed is exported once more, in a process of its own, to ask for what a row of results does not hold:
the whole text of the error, and the reasons for fixed dims in the contract. The same causes stand together.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import os
import re
import statistics
import sys
import tempfile
from pathlib import Path

from sweep_program import load, use_checkout

PAGE = Path(__file__).parent.parent / "docs" / "coverage.md"
SOURCE = re.compile(r"[\w/.\-]+\.py:\d+")

# In order: the first whose words are in the text names the cause. What matches none stands under the error's own class.
CAUSES = [
    ("fail before export", "The call of the example itself cannot be made: the sweep's preparation or eager refuses"),
    ("the model raised", "Eager refuses the example call itself"),
    ("the string", "A string is an input, and a file has tensors alone"),
    ("Got invalid dimensions", "A dim is fixed"),
    (
        "outputs repeat",
        "The model draws random numbers, and its outputs differ from run to run: refused unless asked for",
    ),
    ("Diverged", "The runs part: the model branches on a size or a value, or loops in Python over one"),
    ("Unsolved", "An integer of the runs has no expression in the sizes"),
    ("Unsupported", "An operator has no lowering"),
    ("Discrepancy", "Verification refused the file: ONNX Runtime and eager differ"),
]


def first_failure(row: dict, tolerance: float) -> str:
    for key in ("export", "same", "batch", "seq", "past"):
        value = row.get(key)
        if (isinstance(value, str) and value not in ("ok", "n/a")) or (isinstance(value, float) and value > tolerance):
            return f"{key}: {value}"
    return ""


def ask(queue, sweep, options, row: dict) -> None:
    """In a process of its own: the whole error, or what the contract says is fixed."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    import fairlead

    for model_class, test in sweep.testers(options.transformers, row["model"]):
        if model_class.__name__ != row["cls"]:
            continue
        try:
            model, inputs = sweep.build(test, model_class)
            if row["mode"] == "decode":
                inputs = sweep.with_cache(model, inputs, 4, 2)
            with tempfile.TemporaryDirectory() as folder:
                result = fairlead.export(model, inputs, os.path.join(folder, "model.onnx"))
            fixed = [(f"axis {f['axis']} of {f['name']}", f["reason"]) for f in result.contract.fixed]
            queue.put({"fixed": fixed})
        except BaseException as error:
            queue.put({"error": f"{type(error).__name__}: {error}"})
        return
    queue.put({"error": "the class was not found again"})


def more_about(sweep, options, row: dict) -> dict:
    queue = multiprocessing.Queue()
    process = multiprocessing.Process(target=ask, args=(queue, sweep, options, row))
    process.start()
    try:
        return queue.get(timeout=options.seconds)
    except Exception:
        return {"error": f"no answer within {options.seconds:.0f} s"}
    finally:
        process.kill()
        process.join()


def short(text: str) -> str:
    """A path as the model's own: from the package's folder on."""
    text = re.sub(r"[\w/.\-]*/(?=transformers/|torch/)", "", text)
    text = re.sub(r" No file was written under \S+", "", text)
    return " ".join(text.split())


def cause_of(failure: str, more: dict) -> tuple[str, str]:
    """The heading, and the detail with the line of the model."""
    if "Got invalid dimensions" in failure and "fixed" in more:
        name = re.search(r"for input: (\S+)", failure)
        index = re.search(r"index: (\d+)", failure)
        mine = f"axis {index.group(1)} of {name.group(1)}" if name and index else ""
        reasons = [reason for where, reason in more["fixed"] if where == mine] or [r for _w, r in more["fixed"]]
        return "A dim is fixed", short(reasons[0] if reasons else failure)
    text = more.get("error", failure) if "before export" not in failure else failure
    for words, heading in CAUSES:
        if words in text:
            return heading, short(text)
    if failure.startswith(("same", "batch", "seq", "past")):
        return "The sweep finds a difference that verification did not", short(failure)
    return "Another error", short(text)


def table_line(row: dict, detail: str) -> str:
    source = SOURCE.search(detail)
    words = re.sub(r"^\w+: \[\w+\] ", "", detail).replace("|", "\\|")
    if len(words) > 260:
        words = words[:257] + "..."
    return f"| {row['model']} | {row['cls']} | {row['mode']} | {source.group(0) if source else ''} | {words} |"


def page(rows: list[dict], sweep, options) -> str:
    bad = [row for row in rows if "mode" in row and not sweep.passed(row)]
    groups = collections.defaultdict(list)
    for n, row in enumerate(bad):
        print(f"\r{n + 1}/{len(bad)} {row['model']:40s}", end="", file=sys.stderr, flush=True)
        failure = first_failure(row, sweep.TOLERANCE)
        heading, detail = cause_of(failure, more_about(sweep, options, row))
        groups[heading].append((row, detail))
    print(file=sys.stderr)
    lines = [
        "# What exports, and why the rest does not", "",
        "Generated by `scripts/coverage_page.py` from a sweep over the model classes of Transformers: every class with",
        "the tiny model and the inputs of its own tests, exported with dynamic shapes, run in ONNX Runtime at the",
        "sizes of the example, at a smaller batch, at a shorter sequence and (decode) with another past, and compared",
        "with eager.", "",
        "| rows | pass | of | share | median export, s |", "| --- | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for mode in ("forward", "decode"):
        mine = [row for row in rows if row.get("mode") == mode]
        good = sum(sweep.passed(row) for row in mine)
        times = [row["seconds"] for row in mine if "seconds" in row]
        if mine:
            share = f"{100 * good / len(mine):.1f} %"
            lines.append(f"| {mode} | {good} | {len(mine)} | {share} | {statistics.median(times):.2f} |")
    lines += ["", "| cause | rows |", "| --- | ---: |"]
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    lines += [f"| {heading} | {len(found)} |" for heading, found in ordered]
    for heading, found in ordered:
        lines += ["", f"## {heading}", "", "| model | class | call | line | what |", "| --- | --- | --- | --- | --- |"]
        lines += [table_line(row, detail) for row, detail in sorted(found, key=lambda f: (f[1], f[0]["cls"]))]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="what the sweep wrote, one JSON object a line")
    parser.add_argument("--sweep", required=True, help="the program of the sweep")
    parser.add_argument("--transformers", required=True, help="the checkout it ran on")
    parser.add_argument("--seconds", type=float, default=120, help="for one class that failed, to ask it why")
    options = parser.parse_args()
    multiprocessing.set_start_method("fork")
    use_checkout(options.transformers)
    import torch

    import fairlead  # noqa: F401  imported once, before the forks

    torch.set_num_threads(1)
    rows = [json.loads(line) for path in options.results for line in Path(path).read_text().splitlines() if line]
    PAGE.write_text(page(rows, load(options.sweep), options))


if __name__ == "__main__":
    main()
