"""Structural mutants of the JSON that Python reads: generation.json, the record and contract in an ONNX file,
fairlead.json, tokenizer_config.json, the times beside a file. Nothing but our own errors may come of them.

python fuzz/mutate_texts.py --count 2000 --seed 1

Each mutant is written into a folder that was exported, and read as the commands read it: report, inspect, a Generator
with three tokens. Exits with 1 where something else was raised, and prints the first mutant of each kind.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "python")]

from mutate_pt2 import Mutator  # noqa: E402

VALUES = (
    None, 0, -1, 7, 2**31, 2**63, 2**70, 0.5, float("nan"), "", "x", "a\x00b", "\x1b[2J", "../x", "/etc/passwd", [], {},
    [[]], [7], ["x"], {"a": 1}, True, "9" * 400,
)  # fmt: skip


class Texts(Mutator):
    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def mutant(self, value: Any) -> Any:
        value = json.loads(json.dumps(value))
        for _ in range(self.random.choice((1, 1, 1, 2, 3, 5))):
            self.change(value)
        return value

    def replace(self, holder: Any, key: Any, places: list) -> None:
        holder[key] = json.loads(json.dumps(self.random.choice(VALUES)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()

    import checkpoints
    import click
    import onnx
    from fairlead.cli.inspect import inspect
    from fairlead.runtime.text import TextGenerator

    import fairlead

    root = Path(tempfile.mkdtemp(prefix="fairlead-texts-"))
    fairlead.export_checkpoint(checkpoints.llama(root / "source"), root / "out", verify=False)
    out = root / "out"
    model = onnx.load(out / "model.onnx", load_external_data=False)
    entry = next(prop for prop in model.metadata_props if prop.key == "fairlead.report")
    record, page = json.loads(entry.value), str(root / "page.html")

    def in_file(name: str) -> tuple[Any, Callable[[Any], None]]:
        path = out / name
        text = path.read_text() if path.exists() else "{}"

        def put(value: Any) -> None:
            path.write_text(text if value is None else json.dumps(value))

        return json.loads(text), put

    def in_metadata(value: Any) -> None:
        entry.value = json.dumps(record if value is None else value)
        (out / "model.onnx").write_bytes(model.SerializeToString())

    def generates() -> None:
        text = TextGenerator(out)
        for _ in text.stream("the rain", chat=text.template is not None, max_new_tokens=3):
            pass

    def inspects() -> None:
        inspect.main([str(out)], standalone_mode=False)

    def reports() -> None:
        fairlead.report.write_report(str(out), page)

    targets = [
        ("generation.json", *in_file("generation.json"), (generates,)),
        ("tokenizer_config.json", *in_file("tokenizer_config.json"), (generates,)),
        ("fairlead.json", *in_file("fairlead.json"), (inspects, reports)),
        ("the record", record, in_metadata, (reports, inspects)),
    ]
    mutator, found, start = Texts(given.seed), {}, time.time()
    for number in range(given.count):
        name, value, put, readers = targets[number % len(targets)]
        mutant = mutator.mutant(value)
        put(mutant)
        for reader in readers:
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    reader()
            except (fairlead.FairleadError, click.ClickException):
                pass
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                kind = f"{name}: {type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
                if kind not in found:
                    print(f"{kind}: {str(error)[:100]!r}: {json.dumps(mutant)[:1500]}", flush=True)
                found[kind] = found.get(kind, 0) + 1
        put(None)
    print(f"{given.count} mutants of seed {given.seed} in {time.time() - start:.0f} s: {len(found)} kinds of findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
