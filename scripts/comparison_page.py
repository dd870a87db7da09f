#!/usr/bin/env python3
"""Writes the end of docs/comparison.md: classes that Transformers' own exporter leaves out, exported here, with times
side by side.

    python sweep.py --transformers CHECKOUT --classes docs/peer_skips.txt --modes forward --out ours.jsonl
    python sweep.py --transformers CHECKOUT --classes docs/peer_skips.txt --modes forward --exporter hf --out peer.jsonl
    python scripts/comparison_page.py --sweep sweep.py --ours ours.jsonl --peer peer.jsonl

docs/peer_skips.txt and docs/peer_not_exportable.txt hold `folder Class` lines: the classes on the skip lists of the
tests of transformers.exporters, and those of test classes that are marked as not exportable, as far as they run on a
small machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

from sweep_program import load

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "comparison.md"
HEADING = "## What the peer leaves out"  # from here on the page is generated
INTRODUCTION = """\
{heading}

The tests of `transformers.exporters` keep lists of classes that its exporters cannot do, or not in reasonable time, and
mark whole test classes as not exportable. Below are those that run on a small machine, each with the tiny model and the
inputs of its own tests: exported to ONNX with dynamic shapes, then compared with eager at the example's sizes, at a
smaller batch and at a shorter sequence. A dim that a loop in the model fixes is refused by the file, and counted as
refused. {times}
"""
GROUPS = {
    "peer_skips.txt": "On its skip lists",
    "peer_not_exportable.txt": "In tests marked as not exportable, and others",
}
GROUP = """
### {title}

**{dynamic} of {count} ({share}) export with dynamic shapes and equal eager wherever the file takes the sizes; {good} of
them take every size that is tried.** {wrong} of {count} give another value than eager.

| architecture | class | here | seconds | the peer | seconds |
| --- | --- | --- | ---: | --- | ---: |
"""


def rows_of(path: str | None) -> dict[tuple[str, str], dict]:
    if path is None:
        return {}
    rows = [json.loads(line) for line in Path(path).read_text().splitlines() if line]
    return {(row["model"], row["cls"]): row for row in rows if row.get("mode") == "forward"}


def refused(value) -> bool:
    return isinstance(value, str) and "invalid dimensions" in value


def equal(sweep, value) -> bool:
    return isinstance(value, float) and value <= sweep.TOLERANCE


def is_dynamic(sweep, row: dict) -> bool:
    """Equal at the example and at another size, and refused rather than wrong elsewhere."""
    others = [row.get(name) for name in ("batch", "seq") if row.get(name) not in (None, "n/a")]
    if sweep.passed(row):
        return True
    fine = row.get("export") == "ok" and equal(sweep, row.get("same"))
    fine = fine and all(equal(sweep, value) or refused(value) for value in others)
    return fine and any(equal(sweep, value) for value in others)


def is_wrong(sweep, row: dict) -> bool:
    return any(isinstance(row.get(n), float) and row[n] > sweep.TOLERANCE for n in ("same", "batch", "seq"))


def verdict(sweep, row: dict | None) -> str:
    if row is None:
        return "not measured"
    if sweep.passed(row):
        return "equal to eager"
    if row["export"] != "ok":
        return "timeout" if "timeout" in row["export"] else row["export"].partition(":")[0].removeprefix("fail ")
    names = (("same", "the example"), ("batch", "another batch"), ("seq", "a shorter sequence"))
    for name, words in names:
        value = row.get(name)
        if refused(value):
            return ("equal; " if is_dynamic(sweep, row) else "") + f"refuses {words}"
        if isinstance(value, str) and value != "n/a":
            return f"fails at {words}"
        if isinstance(value, float) and value > sweep.TOLERANCE:
            return f"differs at {words}"
    return "fails"


def seconds(row: dict | None) -> str:
    return f"{row['seconds']:.1f}" if row and "seconds" in row else ""


def group(sweep, name: str, ours: dict, peer: dict) -> str:
    keys = [tuple(line.split()) for line in (ROOT / "docs" / name).read_text().splitlines()]
    keys = [key for key in keys if key in ours]
    dynamic = sum(is_dynamic(sweep, ours[key]) for key in keys)
    text = GROUP.format(
        title=GROUPS[name], count=len(keys), dynamic=dynamic, share=f"{100 * dynamic / len(keys):.0f} %",
        good=sum(sweep.passed(ours[key]) for key in keys), wrong=sum(is_wrong(sweep, ours[key]) for key in keys),
    )  # fmt: skip
    for key in keys:
        mine, other = ours[key], peer.get(key)
        cells = [*key, verdict(sweep, mine), seconds(mine), verdict(sweep, other), seconds(other)]
        text += "| " + " | ".join(cells) + " |\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweep", required=True)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--peer")
    options = parser.parse_args()
    sweep, ours, peer = load(options.sweep), rows_of(options.ours), rows_of(options.peer)
    both = [(ours[k]["seconds"], peer[k]["seconds"]) for k in ours.keys() & peer.keys() if "seconds" in peer[k]]
    times = ""
    if both:
        ratio = statistics.median(b / a for a, b in both)
        times = f"Where both were timed ({len(both)} classes) the peer took {ratio:.0f} times as long (median)."
    text = PAGE.read_text().partition(HEADING)[0].rstrip() + "\n\n" + INTRODUCTION.format(heading=HEADING, times=times)
    PAGE.write_text(text + "".join(group(sweep, name, ours, peer) for name in GROUPS))


if __name__ == "__main__":
    main()
