"""Weights that stay where they are, at the sizes of published models: how long `--in-place` takes, and how much memory.

python benchmarks/weights.py                      # shapes of six published models, in files that take no disk
python benchmarks/weights.py mixtral-8x22b        # of one of them
python benchmarks/weights.py --real               # a Llama of 3 billion float32 weights, written, exported and run
python benchmarks/weights.py --peers 3 8          # Llamas of so many of its layers (2 and 4 GB), beside other exporters
python benchmarks/weights.py --places 8           # such a Llama in place, copied, linked and converted
python benchmarks/weights.py --matrices           # matrices of a 405B, quantised or transposed
python benchmarks/weights.py --all                # all of it, in 20 minutes

The files of the first kind have a header and no blocks: what is not read need not be there. Weights are bfloat16;
those that DeepSeek-V3 and gpt-oss publish in blocks of 8 and 4 bits are taken as bfloat16 too.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

from zoos.environments import python_of

SHARD = 5 << 30
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip
# Sizes from the published configurations: (class, settings).
PUBLISHED: dict[str, tuple[str, dict[str, Any]]] = {
    "llama-3.1-70b": ("Llama", {
        "vocab_size": 128256, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
        "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 131072,
        "rope_parameters": LLAMA3,
    }),
    "llama-3.1-405b": ("Llama", {
        "vocab_size": 128256, "hidden_size": 16384, "intermediate_size": 53248, "num_hidden_layers": 126,
        "num_attention_heads": 128, "num_key_value_heads": 8, "max_position_embeddings": 131072,
        "rope_parameters": LLAMA3,
    }),
    "mixtral-8x22b": ("Mixtral", {
        "vocab_size": 32768, "hidden_size": 6144, "intermediate_size": 16384, "num_hidden_layers": 56,
        "num_attention_heads": 48, "num_key_value_heads": 8, "max_position_embeddings": 65536, "num_local_experts": 8,
        "num_experts_per_tok": 2,
    }),
    "deepseek-v3": ("DeepseekV3", {
        "vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
        "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "n_routed_experts": 256,
        "n_shared_experts": 1, "n_group": 8, "topk_group": 4, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
        "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
        "max_position_embeddings": 163840,
    }),
    "qwen3-235b-a22b": ("Qwen3Moe", {
        "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 94,
        "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
        "num_experts_per_tok": 8, "moe_intermediate_size": 1536, "max_position_embeddings": 40960,
    }),
    "gpt-oss-120b": ("GptOss", {
        "vocab_size": 201088, "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 36,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "num_local_experts": 128,
        "num_experts_per_tok": 4, "sliding_window": 128,
    }),
}  # fmt: skip
# About the sizes of Llama-3.2-3B, with a head of its own.
REAL = {
    "vocab_size": 32000, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28,
    "num_attention_heads": 24, "num_key_value_heads": 8, "max_position_embeddings": 4096,
}  # fmt: skip


def peak() -> int:
    """Megabytes that this process had at most; getrusage would count those of its parent."""
    rows = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(rows["VmHWM"].split()[0]) >> 10


def write(folder: Path, kind: str, settings: dict[str, Any], dtype: str, random: bool) -> int:
    """A checkpoint as save_pretrained names and orders it; without blocks, or with random numbers. Its bytes."""
    import torch
    import transformers
    from transformers.core_model_loading import revert_weight_conversion

    library: Any = transformers
    settings = settings | {"tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    config = getattr(library, f"{kind}Config")(**settings)
    config.architectures, config.dtype = [f"{kind}ForCausalLM"], getattr(torch, dtype)
    with torch.device("meta"):
        model = getattr(library, f"{kind}ForCausalLM")(config).to(config.dtype)
    config.save_pretrained(folder)
    word, size = {"float32": ("F32", 4), "bfloat16": ("BF16", 2)}[dtype]
    shards: list[tuple[dict[str, Any], int]] = [({}, 0)]
    for name, tensor in revert_weight_conversion(model, model.state_dict()).items():
        rows, at = shards[-1]
        if rows and at + tensor.numel() * size > SHARD:
            rows, at = {}, 0
            shards.append((rows, at))
        end = at + tensor.numel() * size
        rows[name] = {"dtype": word, "shape": list(tensor.shape), "data_offsets": [at, end]}
        shards[-1] = (rows, end)
    where = {}
    generator = torch.Generator().manual_seed(0)
    for k, (rows, data) in enumerate(shards):
        file = f"model-{k + 1:05}-of-{len(shards):05}.safetensors"
        header = json.dumps(rows).encode()
        header += b" " * (-(len(header) + 8) % 64)
        with open(folder / file, "wb") as out:
            out.write(struct.pack("<Q", len(header)) + header)
            for row in rows.values() if random else ():
                for numbers in random_numbers(row["shape"], generator):
                    out.write(numbers.numpy().tobytes())
            out.truncate(8 + len(header) + data)
        where |= dict.fromkeys(rows, file)
    total = sum(data for _, data in shards)
    index = {"metadata": {"total_size": total}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return total


def random_numbers(shape: list[int], generator: Any) -> Any:
    """Float32, a few rows at a time: ones for a norm, and small numbers for a matrix."""
    import torch

    if len(shape) == 1:
        yield torch.ones(shape)
        return
    for row in range(0, shape[0], 1024):
        yield torch.randn((min(1024, shape[0] - row), *shape[1:]), generator=generator) * 0.02


def export_one(folder: str, options: dict[str, Any] | None = None) -> None:
    """In a process of its own: seconds and megabytes. `options` of export_checkpoint: in place where there are none."""
    start = time.perf_counter()
    import torch  # noqa: F401
    import transformers
    from fairlead.checkpoint import export as _  # noqa: F401

    import fairlead

    bare = peak()
    # What Transformers imports with a model (torch._dynamo, torch.distributed, scipy) is there whoever loads it.
    (name,) = json.loads((Path(folder) / "config.json").read_text())["architectures"]
    getattr(transformers, name)
    imported, before = time.perf_counter() - start, peak()
    result = fairlead.export_checkpoint(folder, **(options or {"in_place": True, "verify": False}))
    print(json.dumps({
        "imports": imported, "seconds": time.perf_counter() - start - imported, "bare": bare, "before": before,
        "peak": peak(), "file": result.parts["model.onnx"].model_bytes,
        "copied": result.parts["model.onnx"].external_bytes, "notes": result.notes[-1],
    }))  # fmt: skip


def peer(name: str, folder: str, out: str) -> None:
    """Another exporter, in a process of its own: the same figures."""
    start = time.perf_counter()
    import torch
    import transformers

    model_class: Any = transformers.LlamaForCausalLM
    if name == "transformers.exporters":
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
        from transformers.exporters import OnnxConfig, OnnxExporter
    elif name == "mobius":
        import mobius.__main__  # noqa: F401
    else:
        import onnxruntime_genai.models.builder  # noqa: F401
    imported, before = time.perf_counter() - start, peak()
    if name == "transformers.exporters":
        model = model_class.from_pretrained(folder, dtype=torch.float32).eval()
        ids = torch.randint(3, 1000, (2, 8))
        config = OnnxConfig(dynamic=True, output_path=f"{out}/model.onnx")
        OnnxExporter().export(model, {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, config=config)
    elif name == "mobius":
        words = ["mobius", "build", "--model", folder, out, "--ep", "cpu", "--dtype", "f32"]
        with mock.patch.object(sys, "argv", words):
            runpy.run_module("mobius", run_name="__main__")
    else:
        words = ["builder", "-m", "model", "-i", folder, "-o", out, "-p", "fp32", "-e", "cpu"]
        with tempfile.TemporaryDirectory(dir=out) as cache, mock.patch.object(sys, "argv", [*words, "-c", cache]):
            runpy.run_module("onnxruntime_genai.models.builder", run_name="__main__")
    written = sum(path.stat().st_size for path in Path(out).rglob("*") if path.is_file())
    seconds = time.perf_counter() - start - imported
    print(json.dumps({"seconds": seconds, "before": before, "peak": peak(), "written": written}))


# Those that are not in this environment have one of their own (zoos/environments.py).
PEERS = {"transformers.exporters": "peers", "onnxruntime-genai's builder": None, "mobius": "peers"}
ENVIRONMENTS = Path(__file__).resolve().parent.parent / "build" / "run" / "environments"
PATIENCE = 1200  # seconds


def beside(layers: list[int], where: str | None) -> None:
    """In place, and what others take for the same model."""
    for count in layers:
        with tempfile.TemporaryDirectory(prefix="fairlead-weights-", dir=where) as made:
            folder = Path(made) / f"llama-{count}-layers"
            folder.mkdir()
            total = write(folder, "Llama", REAL | {"num_hidden_layers": count}, "float32", random=True)
            row = measured(folder)
            rows = {"fairlead --in-place": row | {"written": row["file"] + row["copied"]}}
            add_tokenizer(folder)
            for name, environment in PEERS.items():
                out = Path(made) / "out"
                out.mkdir()
                words = ["--peer", name, str(folder), str(out)]
                try:
                    python = python_of(environment, ENVIRONMENTS) if environment else None
                    rows[name] = process(words, PATIENCE, python)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    rows[name] = {"failed": str(error)}
                shutil.rmtree(out)
            for name, row in rows.items():
                print(f"{total / 1e9:5.1f} GB  {name:28} {figures(row)}", flush=True)


PLACES: dict[str, dict[str, Any]] = {
    "in place": {"in_place": True},
    "in another folder": {"place": "copy"},
    "linked": {"place": "link"},
    "in place, float16": {"in_place": True, "dtype": "float16"},
    "in another folder, bfloat16": {"place": "copy", "dtype": "bfloat16"},
}


def places(layers: int, where: str | None) -> None:
    """Every way to place the same weights; nothing is run, as with a model that does not fit."""
    with tempfile.TemporaryDirectory(prefix="fairlead-weights-", dir=where) as made:
        folder, out = Path(made) / "checkpoint", Path(made) / "out"
        folder.mkdir()
        total = write(folder, "Llama", REAL | {"num_hidden_layers": layers}, "float32", random=True)
        before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
        for name, options in PLACES.items():
            given = options | {"verify": False} | ({} if "in_place" in options else {"folder": str(out)})
            row = process(["--one", str(folder), json.dumps(given)])
            print(
                f"{total / 1e9:5.1f} GB  {name:28} {row['seconds']:6.1f} s  {row['peak'] - row['before']:4} MB above "
                f"{row['before']} MB of imports ({row['peak'] - row['bare']} above torch and Transformers)  "
                f"{row['notes']}",
                flush=True,
            )
            shutil.rmtree(out, ignore_errors=True)
            for path in folder.iterdir():
                if path.name not in before:
                    path.unlink()
        assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before, "nobody writes there"


# Of one layer: its matrices as GPTQ, AWQ and fp8 store them, [sizes of the codes, of the scales, of the zero points].
Sizes = tuple[str, list[int]]


def gptq_sizes(rows: int, columns: int) -> dict[str, Sizes]:
    groups = columns // 128
    scales = {"scales": ("F16", [groups, rows]), "qzeros": ("I32", [groups, rows // 8])}
    return {"qweight": ("I32", [columns // 8, rows])} | scales


def awq_sizes(rows: int, columns: int) -> dict[str, Sizes]:
    return gptq_sizes(rows, columns) | {"qweight": ("I32", [columns, rows // 8])}


def fp8_sizes(rows: int, columns: int) -> dict[str, Sizes]:
    return {"weight": ("F8_E4M3", [rows, columns]), "weight_scale_inv": ("F32", [rows // 128, columns // 128])}


def turned_sizes(rows: int, columns: int) -> dict[str, Sizes]:
    return {"weight": ("F16", [rows, columns])}


BYTES = {"I32": 4, "F16": 2, "F32": 4, "F8_E4M3": 1}
GROUPS = {"bits": 4, "group_size": 128}
STORED: dict[str, tuple[Any, dict[str, Any] | None]] = {
    "GPTQ": (gptq_sizes, {"quant_method": "gptq", "desc_act": False} | GROUPS),
    "AWQ": (awq_sizes, {"quant_method": "awq", "version": "gemm"} | GROUPS),
    "fp8": (fp8_sizes, {"quant_method": "fp8", "weight_block_size": [128, 128]}),
    "float16, transposed": (turned_sizes, None),
}


def matrices(where: str | None) -> None:
    """The largest matrices that are published, decoded and transposed while they are streamed; files have no blocks."""
    import torch
    import transformers

    large = PUBLISHED["llama-3.1-405b"][1] | {"num_hidden_layers": 1, "vocab_size": 1024, "dtype": "float16"}
    beyond = []
    for name, (sizes_of, method) in STORED.items():
        with tempfile.TemporaryDirectory(prefix="fairlead-weights-", dir=where) as made:
            folder = Path(made)
            if method is None:
                # GPT-2 keeps its matrices as [in, out], and its checkpoint is read so; a Llama stores [out, in].
                row = process(["--turned", str(folder)])
            else:
                config = transformers.LlamaConfig(**large)
                config.architectures = ["LlamaForCausalLM"]
                with torch.device("meta"):
                    model = transformers.LlamaForCausalLM(config)
                config.save_pretrained(folder)
                settings = json.loads((folder / "config.json").read_text()) | {"quantization_config": method}
                (folder / "config.json").write_text(json.dumps(settings))
                rows: dict[str, Sizes] = {}
                for key, tensor in model.state_dict().items():
                    stem = key.removesuffix(".weight")
                    shape = list(tensor.shape)
                    parts = sizes_of(*shape) if stem.endswith("proj") else {"weight": ("F16", shape)}
                    rows |= {f"{stem}.{last}": size for last, size in parts.items()}
                without_blocks(folder / "model.safetensors", rows)
                row = process(["--one", str(folder)])
            print(
                f"{name:20} {row['seconds']:6.1f} s  {row['peak'] - row['before']:4} MB above {row['before']} MB of "
                f"imports ({row['peak'] - row['bare']} above torch and Transformers)  {row['notes']}",
                flush=True,
            )
            if row["peak"] - row["bare"] > MOST_ABOVE:
                beyond.append(name)
    if beyond:
        raise SystemExit(f"more than {MOST_ABOVE} MB above torch and Transformers: {', '.join(beyond)}")


def without_blocks(path: Path, rows: dict[str, Sizes]) -> None:
    """A safetensors file of zeros that takes no disk."""
    import math

    header, at = {}, 0
    for name, (word, shape) in rows.items():
        end = at + BYTES[word] * math.prod(shape)
        header[name] = {"dtype": word, "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.truncate(8 + len(text) + at)


def turned_one(folder: str) -> None:
    """A matrix of 1.7 GB, transposed while it is streamed, in a process of its own."""
    start = time.perf_counter()
    import torch  # noqa: F401
    import transformers  # noqa: F401
    from fairlead._core import ConvertedFile, PlacedWeights, WeightFolder

    before = peak()
    sizes = PUBLISHED["llama-3.1-405b"][1]
    shape = [sizes["intermediate_size"], sizes["hidden_size"]]
    without_blocks(Path(folder) / "model.safetensors", {"weight": ("F16", shape)})
    files = WeightFolder(folder)
    placed = PlacedWeights(files)
    file = ConvertedFile(files, Path(folder) / "made", "made", os.cpu_count() or 1)
    _, size = placed.add_converted(file, files.blocks(0).permuted([1, 0]), "float16")
    file.close()
    print(json.dumps({
        "seconds": time.perf_counter() - start, "bare": before, "before": before, "peak": peak(),
        "notes": f"{size / 1e9:.2f} GB written",
    }))  # fmt: skip


def add_tokenizer(folder: Path) -> None:
    """The builder copies one."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"<unk>": 0, "a": 1}, unk_token="<unk>"))
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>").save_pretrained(folder)


def figures(row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"failed: {row['failed'][:160]}"
    above = f"{row['peak'] - row['before']:6} MB above {row['before']} MB of imports"
    return f"{row['seconds']:6.1f} s  {above}, {row['written'] / 1e6:8.2f} MB written"


def process(words: list[str], seconds: float | None = None, python: Path | None = None) -> dict[str, Any]:
    command = [str(python or sys.executable), __file__, *words]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    if run.returncode != 0:
        said = run.stderr.strip().splitlines()
        raise RuntimeError(said[-1] if said else f"it ended with {run.returncode}")
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def measured(folder: Path) -> dict[str, Any]:
    try:
        return process(["--one", str(folder)])
    except RuntimeError as error:
        raise SystemExit(f"{folder.name}: {error}") from None


def shown(name: str, total: int, row: dict[str, Any], more: str) -> None:
    print(
        f"{name:16} {total / 1e9:7.1f} GB  {row['seconds']:5.1f} s (and {row['imports']:.1f} s of imports)  "
        f"{row['peak'] - row['before']:4} MB above {row['before']} MB of imports ({row['bare']} MB without those of "
        f"the model's class)  model.onnx {row['file'] / 1e6:5.1f} MB, "
        f"{row['copied']} bytes copied  {more}",
        flush=True,
    )


MOST_SECONDS, MOST_MEGABYTES = 60, 2000  # of one export, imports included
MOST_ABOVE = 300  # megabytes above torch and Transformers


def published(names: list[str], where: str | None) -> None:
    import onnx

    beyond = []
    for name in names or PUBLISHED:
        with tempfile.TemporaryDirectory(prefix="fairlead-weights-", dir=where) as made:
            folder = Path(made) / name
            folder.mkdir()
            total = write(folder, *PUBLISHED[name], "bfloat16", random=False)
            row = measured(folder)
            onnx.checker.check_model(str(folder / "model.onnx"))
            shown(name, total, row, "passes onnx.checker")
            if row["seconds"] + row["imports"] > MOST_SECONDS or row["peak"] > MOST_MEGABYTES:
                beyond.append(name)
    if beyond:
        raise SystemExit(f"more than {MOST_SECONDS} s or {MOST_MEGABYTES} MB: {', '.join(beyond)}")


def real(where: str | None) -> None:
    """Also one decode step in ONNX Runtime and in eager."""
    import numpy as np
    import torch

    with tempfile.TemporaryDirectory(prefix="fairlead-weights-", dir=where) as made:
        folder = Path(made) / "llama-3b"
        folder.mkdir()
        total = write(folder, "Llama", REAL, "float32", random=True)
        row = measured(folder)
        ids = torch.arange(5, 6).reshape(1, 1)
        logits = {}
        for way in ("eager", "onnxruntime"):  # one after the other: each takes the memory of all weights
            run = subprocess.run(
                [sys.executable, __file__, "--step", way, str(folder)], capture_output=True, text=True, check=True
            )
            logits[way] = np.array(json.loads(run.stdout.splitlines()[-1]))
        off = np.abs(logits["eager"] - logits["onnxruntime"]).max() / np.abs(logits["eager"]).max()
        shown("llama-3b float32", total, row, f"one decode step of token {int(ids[0, 0])}: off by {off:.1e}")


def step(way: str, folder: str) -> None:
    """The logits of one token after three of a cache of given numbers."""
    import numpy as np

    layers, heads, size = REAL["num_hidden_layers"], REAL["num_key_value_heads"], 128
    rng = np.random.default_rng(0)
    cache = [rng.standard_normal((1, heads, 3, size), dtype=np.float32) / 4 for _ in range(2 * layers)]
    ids, mask, positions = np.array([[5]]), np.ones((1, 4), np.int64), np.array([[3]])
    if way == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.disable_prepacking", "1")  # the weights are used where they are
        session = onnxruntime.InferenceSession(f"{folder}/model.onnx", options, providers=["CPUExecutionProvider"])
        feeds = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
        for k in range(layers):
            feeds |= {f"past_key_values.{k}.key": cache[2 * k], f"past_key_values.{k}.value": cache[2 * k + 1]}
        names = {row.name for row in session.get_inputs()}
        logits = session.run(["logits"], {name: feeds[name] for name in names})[0]
    else:
        import torch
        from transformers import DynamicCache, LlamaForCausalLM

        model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        past = DynamicCache()
        for k in range(layers):
            past.update(torch.from_numpy(cache[2 * k]), torch.from_numpy(cache[2 * k + 1]), k)
        with torch.no_grad():
            given = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
            logits = model(**{n: torch.from_numpy(v) for n, v in given.items()}, past_key_values=past).logits.numpy()
    print(json.dumps(logits[0, -1].tolist()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *PUBLISHED])
    parser.add_argument("--real", action="store_true", help="12 GB of weights are written; they go again")
    parser.add_argument("--peers", nargs="+", type=int, metavar="LAYERS", help="beside other exporters")
    parser.add_argument("--places", type=int, metavar="LAYERS", help="in place, copied, linked, converted")
    parser.add_argument("--matrices", action="store_true", help="the largest matrices, decoded and transposed")
    parser.add_argument("--all", action="store_true", help="all of these, one after the other: 20 minutes")
    parser.add_argument("--in", dest="where", default=None, metavar="FOLDER", help="where checkpoints are made")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--turned", help=argparse.SUPPRESS)
    parser.add_argument("--peer", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if given.one:
        export_one(given.one[0], *map(json.loads, given.one[1:]))
    elif given.peer:
        peer(*given.peer)
    elif given.turned:
        turned_one(given.turned)
    elif given.step:
        step(*given.step)
    else:
        tables(given)


def tables(given: argparse.Namespace) -> None:
    if given.real or given.all:
        real(given.where)
    if given.places or given.all:
        places(given.places or 8, given.where)
    if given.matrices or given.all:
        matrices(given.where)
    if given.peers or given.all:
        beside(given.peers or [3, 8], given.where)
    if given.all or not (given.real or given.places or given.matrices or given.peers):
        published(given.names, given.where)  # the last, because it ends with an error where one took too much


if __name__ == "__main__":
    main()
