"""Exports one Llama with every exporter, each in its own process, and prints one table.

    python benchmarks/export.py                      32 layers, all exporters, 64 layers and 1 GB for Fairlead: minutes
    python benchmarks/export.py --layers 2           a quick look
    python benchmarks/export.py --only fairlead      without the peers
    python benchmarks/export.py --size 5gb           24 layers of 2,048, beside transformers.exporters: 16 GB of memory

Writes benchmarks/results/export.json and export.md. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

from exporters import EXPORTERS
from llama import GIGABYTE, LARGE, Shape

HERE = Path(__file__).parent
OURS, OURS_VERIFIED = "fairlead", "fairlead-verified"


def run_script(name: str, timeout: float, *words: str) -> dict:
    """What the script printed after ROW; its failure as {"error": text}."""
    start = time.perf_counter()
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / name), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)
    except subprocess.TimeoutExpired:
        return {"error": f"stopped after {timeout:.0f} s"}
    finally:
        print(f"  {name} {words[0]}: {time.perf_counter() - start:.0f} s in all", file=sys.stderr)
    found = [line for line in done.stdout.splitlines() if line.startswith("ROW ")]
    if not found:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return {"error": f"exit code {done.returncode}: {last[:200]}"}
    return json.loads(found[-1][4:])


def run_row(how: str, shape: Shape, path: str, repeat: int, timeout: float, *flags: str) -> dict:
    """The median of `repeat` processes."""
    size = dataclasses.asdict(shape)
    tries = [run_script("export_row.py", timeout, how, json.dumps(size), path, *flags) for _ in range(repeat)]
    tries.sort(key=lambda row: row.get("seconds", float("inf")))
    every = [row.get("seconds") for row in tries]
    return {"how": how, "shape": size} | tries[len(tries) // 2] | {"tries": every}


def add_decode_steps(rows: list[dict], shape: Shape, folder: str, timeout: float) -> None:
    files = {row["how"]: os.path.join(folder, f"{row['how']}.onnx") for row in rows if "difference" in row}
    words = [f"{how}={path}" for how, path in files.items()]
    steps = run_script("decode_steps.py", timeout, json.dumps(dataclasses.asdict(shape)), *words) if words else {}
    for row in rows:
        row |= steps.get(row["how"], {})


def cell(row: dict, key: str, form: str, scale: float = 1.0) -> str:
    return format(row[key] * scale, form) if key in row else ""


def ratio(row: dict, base: dict | None) -> str:
    return f"{row['seconds'] / base['seconds']:.1f}" if base and "seconds" in base and "seconds" in row else ""


HEADINGS = [
    "exporter", "layers", "seconds", "CPU seconds", "times ours", "times ours, verified", "nodes",
    "memory above the model, MB", "worst difference", "decode step, ms", "fastest",
]  # fmt: skip


def table(rows: list[dict]) -> str:
    """Markdown. Ratios are to Fairlead's rows with as many layers."""
    lines = [HEADINGS, ["---"] + ["---:"] * (len(HEADINGS) - 1)]
    for row in rows:
        layers = row["shape"]["layers"]
        base = {r["how"]: r for r in rows if r["shape"] == row["shape"]}
        label = EXPORTERS[row["how"]][0]
        if row["shape"]["hidden"] != Shape().hidden:
            label += f" ({row.get('weights', 0) / 1e9:.2f} GB)"
        if "error" in row and "seconds" not in row:
            reason = f"failed: {row['error']}".replace("|", "\\|")
            lines.append([label, str(layers), reason, *[""] * (len(HEADINGS) - 3)])
            continue
        lines.append([
            label, str(layers), cell(row, "seconds", ".2f"), cell(row, "cpu", ".2f"), ratio(row, base.get(OURS)),
            ratio(row, base.get(OURS_VERIFIED)), cell(row, "nodes", ".0f"), cell(row, "memory", ".0f", 1e-6),
            cell(row, "difference", ".1e") or row.get("error", ""), cell(row, "decode", ".2f", 1e3),
            cell(row, "fastest_decode", ".2f", 1e3),
        ])  # fmt: skip
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def scaling(rows: list[dict], layers: int) -> str:
    plain = [r for r in rows if r["how"] == OURS and "seconds" in r and r["shape"]["hidden"] == Shape().hidden]
    times = {r["shape"]["layers"]: r["seconds"] for r in plain}
    if layers not in times or 2 * layers not in times:
        return ""
    return f"{2 * layers} layers take {times[2 * layers] / times[layers]:.2f} times as long as {layers}."


def without_writing(rows: list[dict]) -> str:
    """What is left of an export where the weights are written by somebody else."""
    found = [r for r in rows if r["shape"] == dataclasses.asdict(LARGE) and "write" in r.get("stages", {})]
    words = [f"{r['seconds'] - r['stages']['write']:.2f} s ({EXPORTERS[r['how']][0]})" for r in found]
    return "Without writing the weights: " + ", ".join(words) + "." if words else ""


def by_processor_time(rows: list[dict]) -> str:
    """The ratios once more in CPU seconds, which hardly depend on what else the machine does."""
    base = {r["how"]: r["cpu"] for r in rows[: len(EXPORTERS)] if "cpu" in r}
    peers = {how: cpu for how, cpu in base.items() if how not in (OURS, OURS_VERIFIED)}
    if OURS not in base or not peers:
        return ""
    words = []
    for how, cpu in peers.items():
        verified = f" ({cpu / base[OURS_VERIFIED]:.0f} verified)" if OURS_VERIFIED in base else ""
        words.append(f"{EXPORTERS[how][0]} {cpu / base[OURS]:.0f}{verified}")
    return "Times ours by CPU seconds: " + ", ".join(words) + "."


def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "cpu": cpu_name(), "cores": str(os.cpu_count())}
    for name in ("fairlead", "torch", "transformers", "onnx", "onnxscript", "onnxruntime", "yobx"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed as a package" if name == "fairlead" else "not installed"
    return found


def cpu_name() -> str:
    with open("/proc/cpuinfo") as lines:
        return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--only", nargs="+", choices=list(EXPORTERS), help="these exporters, nothing else")
    parser.add_argument("--size", choices=["small", "1gb", "5gb"], help="at this size; 5gb beside Transformers")
    parser.add_argument("--no-scaling", action="store_true", help="without the rows of twice the layers and of 1 GB")
    parser.add_argument("--repeat", type=int, default=3, help="Fairlead's rows are the median of so many processes")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for each process")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder for export.json and export.md")
    options = parser.parse_args()

    shape = Shape(layers=options.layers)
    todo = [(how, shape, ()) for how in options.only or EXPORTERS]
    if options.size == "5gb":
        shape = LARGE
        todo = [(how, shape, ("--export-only",)) for how in options.only or (OURS, OURS_VERIFIED, "transformers")]
    elif options.size:
        todo = [(OURS, GIGABYTE if options.size == "1gb" else shape, ("--export-only",))]
    elif not options.only and not options.no_scaling:
        todo += [(OURS, Shape(layers=2 * options.layers), ()), (OURS, GIGABYTE, ("--export-only",))]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for how, size, flags in todo:
            path = os.path.join(folder, f"{how}.onnx" if size == shape else "other.onnx")
            times = options.repeat if how in (OURS, OURS_VERIFIED) else 1
            rows.append(run_row(how, size, path, times, options.timeout, *flags))
        add_decode_steps(
            [row for row in rows if row["shape"] == dataclasses.asdict(shape)], shape, folder, options.timeout
        )

    text = table(rows)
    notes = [line for line in (by_processor_time(rows), without_writing(rows), scaling(rows, options.layers)) if line]
    about = versions()
    notes.append("One thread each. " + ", ".join(f"{name} {version}" for name, version in about.items()) + ".")
    print("\n".join([text, "", *notes]))
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / "export.json").write_text(json.dumps({"versions": about, "rows": rows}, indent=2) + "\n")
    (options.results / "export.md").write_text("\n".join([text, "", *notes]) + "\n")


if __name__ == "__main__":
    main()
