"""Exports models of other libraries, each in a process of its own, and checks every file with a checker of its own.

.venv/bin/python benchmarks/zoos/run.py                      # every zoo: makes the environments, hours on two cores
.venv/bin/python benchmarks/zoos/run.py timm kornia          # some
.venv/bin/python benchmarks/zoos/run.py timm --only swin,pit # models whose name holds one of the texts
.venv/bin/python benchmarks/zoos/run.py --page docs/zoos.md  # the page, from the results of the last runs
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "build" / "zoos"
ZOOS = (
    "timm", "torchvision", "diffusers", "lucid", "kornia", "segmentation", "monai", "audio", "geometric", "spandrel",
    "operators", "open_clip", "tabular", "eeg", "yolo", "forecasting", "parts",
)  # fmt: skip
SECONDS = 90


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("zoos", nargs="*")
    parser.add_argument("--only", default="", help="models whose name holds one of these texts, by commas")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="of the processor for one model, checks included")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--page", help="write the page of all results to this file")
    options = parser.parse_args()
    if options.page:
        from page import write_page

        write_page(FOLDER, options.page)
    elif options.inside:
        run_models(options.inside, options.only, options.seconds)
    else:
        from environments import python_of

        for zoo in options.zoos or ZOOS:
            command = [str(python_of(zoo, FOLDER)), __file__, "--inside", zoo, "--only", options.only]
            subprocess.run([*command, "--seconds", str(options.seconds)], check=True)


def run_models(zoo: str, only: str, seconds: int) -> None:
    """In the zoo's environment. The process forks for each model: the library is imported once."""
    import torch

    torch.set_num_threads(1)
    import check  # noqa: F401  once, before the processes part

    models = importlib.import_module(f"zoo_{zoo}").MODELS
    results = FOLDER / f"{zoo}.jsonl"
    rows = {} if not results.exists() else {r["model"]: r for r in map(json.loads, results.open())}
    for name, build in models.items():
        if not any(text in name for text in only.split(",")):
            continue
        rows[name] = row = {"zoo": zoo, "model": name} | in_process(build, seconds)
        print(f"{zoo} {name}: {words(row)}", flush=True)
        results.write_text("".join(json.dumps(rows[n]) + "\n" for n in models if n in rows))


def in_process(build, seconds: int) -> dict:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        code = 1
        try:
            from check import checked

            for part in checked(build):  # what is known is told at once: a model may take too long
                os.write(writer, (json.dumps(part) + "\n").encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    end = time.monotonic() + 8 * seconds  # others may be busy, too
    ended = 0
    while not ended and time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0 if ended else 0.05)
    row: dict = {}
    if not ended:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with os.fdopen(reader) as pipe:
        for line in pipe:
            row |= json.loads(line)
    if not ended or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)):
        row |= {"outcome": "too slow", "error": f"no answer in {seconds} s, {row.get('stage', 'building')}"}
    elif "outcome" not in row:
        row |= {"outcome": "died", "error": f"the process ended with status {status}"}
    return row


def words(row: dict) -> str:
    if row["outcome"] in ("right", "right at the example"):
        dims = f"batch {row['batch']}, space {row['space']}"
        return (
            f"{row['outcome']} in {row['seconds']:.1f} s ({row['eager']:.3f} s eager), {dims}, {row['checked']} calls"
        )
    return f"{row['outcome'].upper()}: {row.get('error', '')[:400]}"


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
