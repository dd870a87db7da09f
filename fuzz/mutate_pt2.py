"""Structural mutants of .pt2 archives, run in one process of a fuzz target built with sanitizers and GCC.

python fuzz/mutate_pt2.py build/sanitize/fuzz/fuzz_read_pt2 --count 20000 --seed 1

A mutant is a real program in which a few places of its JSON are changed: a number, a kind of argument, a name, a list;
something is swapped, dropped or repeated. What stops the target is kept in --keep (by default findings/), with the seed
in its name, and the target is started again. Exits with 1 where there was any.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus" / "read_pt2"
GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
NUMBERS = (
    0, 1, -1, 2, -2, 3, 5, 7, -7, 63, 64, 65, 255, 4096, 2**31 - 1, -(2**31), 2**31, 2**32, 2**62, 2**63 - 1,
    -(2**63),
)  # fmt: skip
KINDS = (
    ("as_none", True), ("as_int", 0), ("as_int", 2**62), ("as_ints", []), ("as_ints", [0, 0, 0]), ("as_ints", [1, -9]),
    ("as_float", 0.5), ("as_float", "NaN"), ("as_float", 1e300), ("as_floats", [1.0]), ("as_bool", True),
    ("as_bools", [True]), ("as_string", ""), ("as_string", "same"), ("as_tensors", []),
    ("as_scalar_type", 7), ("as_scalar_type", 99),
    ("as_optional_tensors", [{"as_none": True}]), ("as_strings", ["a"]), ("as_sym_int", {"as_int": -3}),
    ("as_sym_ints", [{"as_int": 2**40}]), ("as_memory_format", 9), ("as_device", {"type": "cpu", "index": None}),
)  # fmt: skip
EXPRESSIONS = (
    "Integer(0)", "Integer(-5)", "Symbol('u7', integer=True)", "Pow(Integer(9), Integer(99))", "", "(", "x",
    "Mul(Integer(9223372036854775807), Symbol('s0', integer=True))", "Max()",
    "FloorDiv(Integer(1), Integer(0))", "Mod(Symbol('s0'), Integer(0))",
    "Add(Integer(9223372036854775807), Integer(9223372036854775807))", "Rational(1, 0)", "Float('nan', precision=53)",
    "PowByNatural(Symbol('s0'), Integer(4611686018427387904))", "Mul(" * 300 + "Integer(1)" + ")" * 300,
)  # fmt: skip


class Mutator:
    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.archives = [read(path) for path in sorted([*CORPUS.glob("*.pt2"), *GOLDEN.glob("*.pt2")])]

    def mutant(self) -> bytes:
        entries = dict(self.random.choice(self.archives))
        draw = self.random.random()
        name = next(n for n in entries if n.endswith("models/model.json"))
        if draw < 0.08:
            name = next(n for n in entries if n.endswith("weights_config.json"))
        value = json.loads(entries[name])
        for _ in range(self.random.choice((1, 1, 1, 2, 2, 3, 5, 8))):
            self.change(value)
        entries[name] = json.dumps(value).encode()
        if draw > 0.98:
            name = self.random.choice(list(entries))
            entries[name] = entries[name][: self.random.randrange(len(entries[name]) + 1)]
        return packed(entries)

    # ---- one change ------------------------------------------------------------------------------------

    def change(self, root: Any) -> None:
        places = list(self.places(root))
        if not places:
            return
        # Arguments of nodes are what lowerings read: half of the changes are there.
        arguments = [place for place in places if place[2]]
        holder, key, _ = self.random.choice(arguments if arguments and self.random.random() < 0.5 else places)
        how = self.random.choice(
            (self.number, self.number, self.kind, self.swap, self.drop, self.repeat, self.text, self.replace)
        )
        how(holder, key, places)

    def places(self, root: Any, inside: bool = False):
        """(holder, key, whether it is an argument of a node) of everything."""
        items = root.items() if isinstance(root, dict) else enumerate(root) if isinstance(root, list) else ()
        for key, value in items:
            here = inside or key in ("inputs", "nodes", "outputs")
            yield root, key, here
            yield from self.places(value, here)

    def number(self, holder: Any, key: Any, places: list) -> None:
        numbers = [(h, k) for h, k, _ in places if type(h[k]) is int]
        if numbers:
            h, k = self.random.choice(numbers)
            h[k] = self.random.choice((h[k] + 1, h[k] - 1, -h[k], *NUMBERS)) if self.random.random() < 0.9 else 1e30

    def kind(self, holder: Any, key: Any, places: list) -> None:
        kinds = [(h, k) for h, k, _ in places if isinstance(k, str) and k.startswith("as_")]
        if kinds:
            h, k = self.random.choice(kinds)
            new, value = self.random.choice(KINDS)
            if self.random.random() < 0.3:
                value = h[k]
            del h[k]
            h[new] = json.loads(json.dumps(value))

    def swap(self, holder: Any, key: Any, places: list) -> None:
        other, place, _ = self.random.choice(places)
        mine, theirs = json.dumps(holder[key]), json.dumps(other[place])
        if len(mine) + len(theirs) < 20000:
            holder[key], other[place] = json.loads(theirs), json.loads(mine)

    def drop(self, holder: Any, key: Any, places: list) -> None:
        del holder[key]

    def repeat(self, holder: Any, key: Any, places: list) -> None:
        lists = [h[k] for h, k, _ in places if isinstance(h[k], list) and h[k]]
        if lists:
            chosen = self.random.choice(lists)
            item = json.loads(json.dumps(self.random.choice(chosen)))
            for _ in range(self.random.choice((1, 2, 70))):
                chosen.insert(self.random.randrange(len(chosen) + 1), item)

    def text(self, holder: Any, key: Any, places: list) -> None:
        texts = [(h, k) for h, k, _ in places if isinstance(h[k], str)]
        if not texts:
            return
        h, k = self.random.choice(texts)
        same = [a[b] for a, b in texts if b == k]
        if k == "expr_str" and self.random.random() < 0.7:
            h[k] = self.random.choice(EXPRESSIONS)
        elif self.random.random() < 0.85:
            h[k] = self.random.choice(same)  # another name, another operator
        else:
            h[k] = self.random.choice(
                ("", "é", "a\x00b", "torch.ops.aten.view.default", "x" * 300, h[k][:-1], "[", "{}")
            )

    def replace(self, holder: Any, key: Any, places: list) -> None:
        holder[key] = self.random.choice((None, 0, -1, "", [], {}, [[]], True, 0.5, {"as_int": 2**63 - 1}))


def read(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(entries: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


class Target:
    """The fuzz target as a process that is given inputs one after the other."""

    def __init__(self, path: str):
        self.path = path
        self.start()

    def start(self) -> None:
        self.said = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self.process = subprocess.Popen(
            [self.path, "--stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said
        )

    def run(self, data: bytes) -> str | None:
        """None where it goes on; what it said where it stopped."""
        try:
            self.process.stdin.write(struct.pack("<Q", len(data)) + data)
            self.process.stdin.flush()
            if self.process.stdout.read(1) == b"\n":
                return None
        except BrokenPipeError:
            pass
        self.process.wait()
        self.said.seek(0)
        text = self.said.read().decode(errors="replace")
        self.start()
        return text

    def end(self) -> None:
        """Waits for it, so that its time counts as ours."""
        self.process.stdin.close()
        self.process.wait()


def summary(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    named = [
        line for line in lines if "runtime error" in line or "SUMMARY" in line or "what():" in line or "[" in line[:2]
    ]
    return (named or lines or ["stopped"])[0][:200]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", default="findings")
    given = parser.parse_args()
    mutator, target, start = Mutator(given.seed), Target(given.target), time.time()
    found: dict[str, int] = {}
    for number in range(given.count):
        data = mutator.mutant()
        said = target.run(data)
        if said is None:
            continue
        what = summary(said)
        if what not in found:
            Path(given.keep).mkdir(parents=True, exist_ok=True)
            name = Path(given.keep) / f"{given.seed}-{number}"
            name.with_suffix(".pt2").write_bytes(data)
            name.with_suffix(".txt").write_text(said)
            print(f"{number}: {what}", flush=True)
        found[what] = found.get(what, 0) + 1
    target.end()
    took = f"{given.count} mutants of seed {given.seed} in {time.time() - start:.0f} s"
    print(f"{took}: {sum(found.values())} findings, {len(found)} kinds")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
