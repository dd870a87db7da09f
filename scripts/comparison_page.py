#!/usr/bin/env python3
"""Writes the end of docs/comparison.md: classes that Transformers' own exporter leaves out, exported here, with times
side by side.

    python sweep.py --transformers CHECKOUT --classes docs/peer_skips.txt --modes forward --out ours.jsonl
    python sweep.py --transformers CHECKOUT --classes docs/peer_skips.txt --modes forward --exporter hf --out peer.jsonl
    python scripts/comparison_page.py --sweep sweep.py --ours ours.jsonl --peer peer.jsonl

docs/peer_skips.txt holds `folder Class` lines: the classes on the skip lists of the tests of transformers.exporters,
and those of test classes that are marked as not exportable, as far as they run on a small machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "comparison.md"
HEADING = "## What the peer leaves out"  # from here on the page is generated
SKIPS = """\
{heading}

The tests of `transformers.exporters` keep lists of classes that its exporters cannot do, or not in reasonable time, and
mark whole test classes as not exportable. These are the {count} of them that run on a small machine, each with the tiny
model and the inputs of its own tests: exported to ONNX with dynamic shapes, then compared with eager at the example's
sizes, at a smaller batch and at a shorter sequence.

**{good} of {count} pass here ({share}).** {times}

| architecture | class | here | seconds | the peer | seconds |
| --- | --- | --- | ---: | --- | ---: |
"""


def load(path: str):
    spec = importlib.util.spec_from_file_location("sweep", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows_of(path: str | None) -> dict[tuple[str, str], dict]:
    if path is None:
        return {}
    rows = [json.loads(line) for line in Path(path).read_text().splitlines() if line]
    return {(row["model"], row["cls"]): row for row in rows if row.get("mode") == "forward"}


def verdict(sweep, row: dict | None) -> str:
    if row is None:
        return "not measured"
    if sweep.passed(row):
        return "equal to eager"
    if row["export"] != "ok":
        return (
            "timeout"
            if "timeout" in row["export"]
            else row["export"].partition(":")[0].removeprefix("fail ") or "fails"
        )
    for name, words in (("same", "the example"), ("batch", "another batch"), ("seq", "a shorter sequence")):
        value = row.get(name)
        if isinstance(value, str) and value != "n/a":
            return f"refuses {words}" if "invalid dimensions" in value else f"fails at {words}"
        if isinstance(value, float) and value > sweep.TOLERANCE:
            return f"differs at {words}"
    return "fails"


def seconds(row: dict | None) -> str:
    return f"{row['seconds']:.1f}" if row and "seconds" in row else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweep", required=True)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--peer")
    options = parser.parse_args()
    sweep, ours, peer = load(options.sweep), rows_of(options.ours), rows_of(options.peer)
    good = sum(sweep.passed(row) for row in ours.values())
    both = [(ours[k]["seconds"], peer[k]["seconds"]) for k in ours.keys() & peer.keys() if "seconds" in peer[k]]
    times = ""
    if both:
        ratio = statistics.median(b / a for a, b in both)
        times = f"Where both were timed ({len(both)} classes) the peer took {ratio:.0f} times as long (median)."
    text = PAGE.read_text().partition(HEADING)[0].rstrip() + "\n\n"
    text += SKIPS.format(
        heading=HEADING, count=len(ours), good=good, share=f"{100 * good / len(ours):.0f} %", times=times
    )
    for key in sorted(ours):
        mine, other = ours[key], peer.get(key)
        cells = [*key, verdict(sweep, mine), seconds(mine), verdict(sweep, other), seconds(other)]
        text += "| " + " | ".join(cells) + " |\n"
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
