"""Encoders, encoder-decoders, experts and state spaces, portable and fused, and a peer: results/families.md.

python benchmarks/families.py --folder build/families
python benchmarks/families.py --only bert,mixtral --sizes tiny --rounds 1          # a quick look

Models have random weights, and every file takes the same call. "with ONNX Runtime's optimizer" is the file of
transformers.exporters after onnxruntime.transformers.optimizer, whose patterns are by architecture. Each file is made
once, in a process of its own, and stays in the folder; times are as in `run.py`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from served import Feed, timed
from zoos.environments import python_of

HERE = Path(__file__).resolve().parent
SIZES = ("tiny", "medium")
# Name -> what it is, and whether it is made in the environment of the peers.
ROWS = {
    "portable": ("Fairlead, portable", False),
    "fused": ("Fairlead, target=OnnxRuntime()", False),
    "transformers": ("transformers.exporters", True),
    "optimized": ("the same with ONNX Runtime's optimizer", True),
}


def ids(rows: int, length: int) -> Feed:
    return {"shape": [rows, length], "dtype": "int64", "integers": [5, 90]}


def ones(rows: int, length: int) -> Feed:
    return {"shape": [rows, length], "dtype": "int64", "filled": 1}


def real(*shape: int) -> Feed:
    return {"shape": list(shape), "dtype": "float32"}


# Family -> class, configuration by size, inputs, and the patterns of ONNX Runtime's optimizer.
FAMILIES: dict[str, tuple[str, dict[str, dict[str, Any]], dict[str, dict[str, Feed]], str]] = {
    "bert": (
        "BertModel",
        {
            "tiny": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128},
            "medium": {"hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8, "intermediate_size": 2048},
        },
        {
            "tiny": {"input_ids": ids(2, 32), "attention_mask": ones(2, 32)},
            "medium": {"input_ids": ids(2, 128), "attention_mask": ones(2, 128)},
        },
        "bert",
    ),
    "vit": (
        "ViTModel",
        {
            "tiny": {
                "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
                "image_size": 64,
            },
            "medium": {
                "hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6, "intermediate_size": 1536,
            },
        },
        {"tiny": {"pixel_values": real(2, 3, 64, 64)}, "medium": {"pixel_values": real(1, 3, 224, 224)}},
        "vit",
    ),
    "whisper": (
        "WhisperModel",
        {
            "tiny": {
                "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
                "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128,
                "max_source_positions": 100, "use_cache": False,
            },
            "medium": {
                "d_model": 384, "encoder_layers": 4, "decoder_layers": 4, "encoder_attention_heads": 6,
                "decoder_attention_heads": 6, "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536,
                "max_source_positions": 500, "use_cache": False,
            },
        },
        {
            "tiny": {"input_features": real(1, 80, 200), "decoder_input_ids": ids(1, 8)},
            "medium": {"input_features": real(1, 80, 1000), "decoder_input_ids": ids(1, 32)},
        },
        "bart",
    ),
    "t5": (
        "T5Model",
        {
            "tiny": {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4, "use_cache": False},
            "medium": {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8, "use_cache": False},
        },
        {
            size: {"input_ids": ids(2, n), "attention_mask": ones(2, n), "decoder_input_ids": ids(2, n // 2)}
            for size, n in zip(SIZES, (32, 128), strict=True)
        },
        "t5",
    ),
    "clip": (
        "CLIPModel",
        {
            "tiny": {
                "text_config": {
                    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
                    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
                },
                "vision_config": {
                    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
                    "image_size": 64, "patch_size": 16,
                },
                "projection_dim": 32,
            },
            "medium": {
                "text_config": {
                    "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 1024,
                    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
                },
                "vision_config": {
                    "hidden_size": 384, "num_hidden_layers": 8, "num_attention_heads": 6, "intermediate_size": 1536,
                    "image_size": 224, "patch_size": 16,
                },
                "projection_dim": 256,
            },
        },
        {
            "tiny": {"input_ids": ids(2, 16), "attention_mask": ones(2, 16), "pixel_values": real(2, 3, 64, 64)},
            "medium": {"input_ids": ids(2, 64), "attention_mask": ones(2, 64), "pixel_values": real(1, 3, 224, 224)},
        },
        "clip",
    ),
    "mixtral": (
        "MixtralForCausalLM",
        {
            "tiny": {
                "vocab_size": 256, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
                "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 4, "use_cache": False,
            },
            "medium": {
                "vocab_size": 4096, "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
                "num_attention_heads": 8, "num_key_value_heads": 2, "num_local_experts": 8, "use_cache": False,
            },
        },
        {size: {"input_ids": ids(1, n), "attention_mask": ones(1, n)} for size, n in zip(SIZES, (32, 64), strict=True)},
        "gpt2",
    ),
    "mamba2": (
        "Mamba2ForCausalLM",
        {
            "tiny": {
                "vocab_size": 256, "hidden_size": 64, "state_size": 16, "num_hidden_layers": 2, "num_heads": 8,
                "head_dim": 16, "n_groups": 1, "chunk_size": 16, "use_cache": False,
            },
            "medium": {
                "vocab_size": 4096, "hidden_size": 384, "state_size": 64, "num_hidden_layers": 6, "num_heads": 12,
                "head_dim": 64, "n_groups": 1, "chunk_size": 64, "use_cache": False,
            },
        },
        {size: {"input_ids": ids(1, n)} for size, n in zip(SIZES, (32, 128), strict=True)},
        "gpt2",
    ),
}  # fmt: skip


def model_of(family: str, size: str) -> tuple[Any, dict[str, Any]]:
    import torch
    import transformers
    from served import array

    kind, configurations, inputs, _ = FAMILIES[family]
    made = getattr(transformers, kind)
    torch.manual_seed(0)
    model = made(made.config_class(**configurations[size])).eval()
    return model, {name: torch.from_numpy(array(feed).copy()) for name, feed in inputs[size].items()}


def make(family: str, size: str, row: str, path: str) -> None:
    """Writes one file; in a process of its own."""
    model, inputs = model_of(family, size)
    if row in ("portable", "fused"):
        import fairlead

        target = fairlead.OnnxRuntime() if row == "fused" else None
        result = fairlead.export(model, inputs, path, target=target)
        Path(path).with_suffix(".txt").write_text(str(result.contract))
    elif row == "transformers":
        from transformers.exporters import OnnxConfig, OnnxExporter

        OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True, output_path=path))
    else:
        from onnxruntime.transformers import optimizer

        plain = str(Path(path).parent.parent / "transformers" / "model.onnx")
        heads, hidden = heads_of(model.config)
        kind = FAMILIES[family][3]
        optimizer.optimize_model(plain, kind, heads, hidden, opt_level=1).save_model_to_file(path)


def heads_of(config: Any) -> tuple[int, int]:
    config = getattr(config, "vision_config", config)
    return getattr(config, "num_attention_heads", 0) or config.num_heads, config.hidden_size


def made_file(family: str, size: str, row: str, folder: Path) -> tuple[Path, str]:
    """The file of a row, and why there is none."""
    path = folder / f"{family}-{size}" / row / "model.onnx"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        python = str(python_of("peers", folder / "environments")) if ROWS[row][1] else sys.executable
        command = [python, __file__, "--make", family, size, row, str(path)]
        found = subprocess.run(command, capture_output=True, text=True)
        if found.returncode or not path.is_file():
            return path, (found.stderr.strip().splitlines() or ["it wrote no file"])[-1][:200]
    return path, ""


def nodes_of(path: Path) -> int:
    import onnx

    return len(onnx.load(path, load_external_data=False).graph.node)


def inputs_of(path: Path, inputs: dict[str, Feed]) -> dict[str, Feed]:
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    return {given.name: inputs[given.name] for given in graph.input}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("build/families"), help="where the files go, and stay")
    parser.add_argument("--only", default=",".join(FAMILIES), help="families, with commas between")
    parser.add_argument("--rows", default=",".join(ROWS), help="rows, with commas between")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--rounds", type=int, default=5, help="how often every file gets a new process")
    parser.add_argument("--seconds", type=float, default=4, help="for a model in a round, all files together")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "families.md")
    parser.add_argument("--make", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make(*options.make)
        return
    rows = options.rows.split(",")
    lines = [
        "# Files of other families in ONNX Runtime", "",
        "Milliseconds of CPU on one thread, fastest and median, with the number of nodes; each file in a process of "
        f"its own, all of a model in turn, {options.rounds} rounds of new processes (`benchmarks/families.py`).", "",
        f"| model | {' | '.join(ROWS[row][0] for row in rows)} | fused / portable |",
        f"| --- |{' ---: |' * (len(rows) + 1)}",
    ]  # fmt: skip
    missing = []
    for family in options.only.split(","):
        for size in options.sizes.split(","):
            files = {}
            for row in rows:
                path, why = made_file(family, size, row, options.folder)
                if why:
                    missing.append(f"{family}, {size}, {ROWS[row][0]}: {why}")
                else:
                    files[row] = path
            calls = {size: {row: inputs_of(path, FAMILIES[family][2][size]) for row, path in files.items()}}
            try:
                times = timed(files, calls, options.rounds, options.seconds)
            except RuntimeError as error:
                missing.append(f"{family}, {size}: {error}")
                continue
            found = {row: times[row][size] for row in files}
            cells = [
                f"{min(ms):.2f}, {statistics.median(ms):.2f} ({nodes_of(files[row])})" if (ms := found.get(row)) else ""
                for row in rows
            ]  # fmt: skip
            ratio = ""
            if {"portable", "fused"} <= set(found):
                ratio = f"{min(found['fused']) / min(found['portable']):.2f}, " + (
                    f"{statistics.median(found['fused']) / statistics.median(found['portable']):.2f}"
                )
            lines.append(f"| {family}, {size} | {' | '.join(cells)} | {ratio} |")
            print(lines[-1], flush=True)
    lines += ["", *(f"Missing: {each}." for each in missing)]
    options.output.write_text("\n".join(lines).rstrip() + "\n")
    print(json.dumps(missing, indent=1))


if __name__ == "__main__":
    main()
