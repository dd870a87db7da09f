"""How the stages after recording grow with the number of recorded operators, up to 20,000 of them.

    python benchmarks/lowering.py

A Llama of small layers and its cache at four depths; the deepest records 20,000 operators. Writes
benchmarks/results/lowering.md.
"""

from __future__ import annotations

import platform
import tempfile
import time
from pathlib import Path

import torch
from llama import Shape, make_inputs, make_model

import fairlead

RESULTS = Path(__file__).parent / "results" / "lowering.md"
LAYERS = (43, 86, 172, 345)
HEADINGS = ["layers", "recorded operators", "solve, s", "lower, s", "write, s", "lower, µs an operator", "nodes"]


def row(layers: int, path: str) -> list[str]:
    shape = Shape(layers=layers, hidden=32, intermediate=48, heads=4, key_heads=2, vocabulary=100)
    model = make_model(shape)
    result = fairlead.export(model, make_inputs(model, 2, 3, 7), path, verify=False)
    count = result.recorded_count
    stages = result.timings
    return [
        str(layers), f"{count:,}", f"{stages['solve']:.3f}", f"{stages['lower']:.3f}", f"{stages['write']:.3f}",
        f"{stages['lower'] / count * 1e6:.1f}", str(result.nodes),
    ]  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        lines = [HEADINGS, ["---:"] * len(HEADINGS)]
        lines += [row(layers, f"{folder}/{layers}.onnx") for layers in LAYERS]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    about = f"python {platform.python_version()}, torch {torch.__version__}"
    text += f"\n\nOne thread, {time.perf_counter() - start:.0f} s in all. {about}.\n"
    print(text)
    RESULTS.write_text(text)


if __name__ == "__main__":
    main()
