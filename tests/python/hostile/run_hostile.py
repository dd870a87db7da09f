"""The table of hostile models and any number of random formulas, checked; a summary and every bad row.

    python tests/python/hostile/run_hostile.py                      # the table
    python tests/python/hostile/run_hostile.py --formulas 5000 --seed 7 --no-table --json rows.jsonl
    python tests/python/hostile/run_hostile.py --only "slices" --show refused,narrow

Rows are checked in a process of their own, which is started again where it ends or hangs.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hostile.check import BAD, KINDS, SECONDS, Verdict, check
from hostile.formulas import formula
from hostile.models import all_rows


def chosen_rows(options) -> list[tuple[str, int | str]]:
    """(kind, key) of what is to be checked: keys, not rows, go to the worker."""
    table = not options.no_table and not options.formula
    rows = [("row", r.id) for r in all_rows() if options.only in r.id] if table else []
    rows += [("formula", seed) for seed in options.formula]
    return rows + [("formula", options.seed * 1_000_000 + k) for k in range(options.formulas)]


def made(kind: str, key):
    return formula(key) if kind == "formula" else next(r for r in all_rows() if r.id == key)


def work(keys, pipe, seconds: float) -> None:
    for kind, key in keys:
        pipe.send(("begins", (kind, key)))
        pipe.send(("verdict", check(made(kind, key), seconds)))
    pipe.send(("end", None))


def verdicts(keys: list, seconds: float):
    """Every key once; a worker that ends or does not answer costs the row that it was at."""
    context = multiprocessing.get_context("fork")
    while keys:
        here, there = context.Pipe()
        worker = context.Process(target=work, args=(keys, there, seconds))
        worker.start()
        there.close()
        running, end = None, "abort"
        try:
            while True:
                if not here.poll(4 * seconds):
                    end = "hang"
                    break
                what, value = here.recv()
                if what == "end":
                    keys = []
                    break
                if what == "begins":
                    running, keys = value, keys[1:]
                else:
                    running = None
                    yield value
        except EOFError:
            pass
        worker.kill()
        worker.join()
        if running is not None:
            row = made(*running)
            yield Verdict(row.id, end, f"the process ended with {worker.exitcode}", source=row.source)


def summary(found: list[Verdict]) -> str:
    """Counts by kind and by family."""
    families = collections.defaultdict(collections.Counter)
    for v in found:
        families[v.id.partition(":")[0]][v.kind] += 1
        families["all"][v.kind] += 1
    shown = [k for k in KINDS if families["all"][k]]
    lines = [f"{'family':<24}" + "".join(f"{k:>10}" for k in shown) + f"{'rows':>8}"]
    for name, counts in families.items():
        lines.append(f"{name:<24}" + "".join(f"{counts[k]:>10}" for k in shown) + f"{counts.total():>8}")
    seconds = sorted(v.seconds for v in found) or [0.0]
    middle = seconds[len(seconds) // 2]
    lines.append(f"median {middle:.2f} s a row, longest {seconds[-1]:.1f} s, {sum(seconds):.0f} s in all")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--formulas", type=int, default=0, help="how many random formulas")
    parser.add_argument("--formula", type=int, nargs="*", default=[], help="these formulas, by the seed in their name")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    parser.add_argument("--only", default="", help="rows whose id contains this")
    parser.add_argument("--no-table", action="store_true")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="limit of one export")
    parser.add_argument("--json", help="a file for the verdicts, one line each")
    parser.add_argument("--show", default="", help="kinds to print besides the bad ones, with commas; or all")
    options = parser.parse_args()
    show = KINDS if options.show == "all" else (*BAD, *options.show.split(","))
    keys = chosen_rows(options)
    print(f"{len(keys)} rows, seed {options.seed}", flush=True)
    found: list[Verdict] = []
    out = open(options.json, "w") if options.json else None  # noqa: SIM115
    for verdict in verdicts(keys, options.seconds):
        found.append(verdict)
        if out:
            print(json.dumps(dataclasses.asdict(verdict)), file=out, flush=True)
        if verdict.kind in show:
            print(verdict.text(), flush=True)
    print(summary(found))
    return int(any(v.kind in BAD for v in found))


if __name__ == "__main__":
    sys.exit(main())
