"""Weights that stay where they are: a checkpoint is exported without being loaded, and the file refers to its bytes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import checkpoints
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from click.testing import CliRunner
from fairlead._core import Discrepancy, InvalidInput, WriteError
from fairlead.checkpoint import in_place as placing
from fairlead.cli.commands import fairlead as command
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import fairlead

transformers = pytest.importorskip("transformers", minversion="5.0")
T: Any = transformers

SIZES = {
    "vocab_size": 128, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
ENDS = {name: SIZES[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
MIXED = {"num_local_experts": 4, "num_experts_per_tok": 2}


def llama(**more: Any) -> Any:
    return T.LlamaForCausalLM(T.LlamaConfig(**SIZES | more))


def deepseek() -> Any:
    return T.DeepseekV3ForCausalLM(
        T.DeepseekV3Config(
            **SIZES | {"num_key_value_heads": 4},
            n_routed_experts=8,
            n_group=2,
            topk_group=1,
            num_experts_per_tok=2,
            moe_intermediate_size=24,
            kv_lora_rank=16,
            q_lora_rank=16,
            qk_rope_head_dim=8,
            qk_nope_head_dim=8,
            v_head_dim=8,
            first_k_dense_replace=1,
        )
    )


def gpt_oss() -> Any:
    kinds = ["sliding_attention", "full_attention"]
    return T.GptOssForCausalLM(T.GptOssConfig(**SIZES, **MIXED, head_dim=8, sliding_window=16, layer_types=kinds))


# Twins of two layers, by what is special about their weights.
TWINS: dict[str, Callable[[], Any]] = {
    "llama": llama,  # in shards
    "llama tied": lambda: llama(tie_word_embeddings=True),
    "mixtral": lambda: T.MixtralForCausalLM(T.MixtralConfig(**SIZES, **MIXED)),  # experts are stacked
    "qwen3_moe": lambda: T.Qwen3MoeForCausalLM(
        T.Qwen3MoeConfig(**SIZES, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, head_dim=8)
    ),
    "deepseek_v3": deepseek,
    "gpt_oss": gpt_oss,
    "falcon": lambda: T.FalconForCausalLM(  # a fused projection, taken apart by lists of numbers
        T.FalconConfig(vocab_size=128, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, **ENDS)
    ),
    "gpt2": lambda: T.GPT2LMHeadModel(T.GPT2Config(vocab_size=128, n_embd=32, n_layer=2, n_head=4, n_positions=256)),
}


def made(name: str, folder: Path) -> Path:
    return checkpoints.saved(TWINS[name](), folder, **({"max_shard_size": "20KB"} if name == "llama" else {}))


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


def references(folder: Path) -> list[tuple[str, str, int, int]]:
    """(initializer, file, offset, length) of what lies outside of the model's file."""
    model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    rows = []
    for tensor in model.graph.initializer:
        at = {entry.key: entry.value for entry in tensor.external_data}
        if at:
            rows.append((tensor.name, at["location"], int(at["offset"]), int(at["length"])))
    return rows


def stored(folder: Path) -> dict[tuple[str, int, int], str]:
    """(file, offset, length) of every tensor of the checkpoint, as its headers say."""
    found = {}
    for path in folder.glob("*.safetensors"):
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        for name, row in json.loads(content[8 : 8 + length]).items():
            if name != "__metadata__":
                begin, end = row["data_offsets"]
                found[path.name, 8 + length + begin, end - begin] = name
    return found


def run_both(folder: Path, model: Any, batch: int, sequence: int, past: int) -> float:
    """The largest difference of the logits, with a cache of numbers that nobody exported with."""
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    torch.manual_seed(batch)
    ids = torch.randint(3, 128, (batch, sequence))
    mask = torch.ones(batch, past + sequence, dtype=torch.int64)
    feeds: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
    positions = torch.arange(past, past + sequence).expand(batch, -1)
    cache, layers = T.DynamicCache(), {}
    for row in session.get_inputs():
        if row.name.startswith("past_key_values."):
            sizes = [batch, row.shape[1], past, row.shape[3]]
            layers[row.name] = feeds[row.name] = torch.randn(sizes) / 4
        elif row.name == "position_ids":
            feeds[row.name] = positions
    for k in range(len(layers) // 2):
        cache.update(layers[f"past_key_values.{k}.key"], layers[f"past_key_values.{k}.value"], k)
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache).logits
    names = {row.name for row in session.get_inputs()}
    got = session.run(["logits"], {name: value.numpy() for name, value in feeds.items() if name in names})[0]
    return float(np.abs(got - expected.numpy()).max() / expected.abs().max())


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_in_place_computes_what_eager_does(tmp_path: Path, name: str) -> None:
    folder = made(name, tmp_path / "twin")
    before = hashes(folder)
    result = fairlead.export_checkpoint(folder, in_place=True)
    part = result.parts["model.onnx"]
    assert result.worst is not None
    assert result.worst < 1e-5
    assert part.external_bytes == 0, "no weight is copied"
    after = hashes(folder)
    assert {file: after[file] for file in before} == before, "the checkpoint is as it was"
    assert sorted(set(after) - set(before)) == sorted(result.files), "what was added is named"
    assert all(entry.is_file() for entry in folder.iterdir()), "nothing else is left"
    # Every tensor of the checkpoint is referred to, whole or expert by expert, and nothing but these.
    tensors, parts = stored(folder), {}
    for _, file, offset, length in references(folder):
        (holder,) = [t for t in tensors if t[0] == file and t[1] <= offset and offset + length <= t[1] + t[2]]
        parts.setdefault(holder, set()).add((offset, length))
    assert set(parts) == set(tensors)
    assert all(sum(length for _, length in found) == holder[2] for holder, found in parts.items())
    onnx.checker.check_model(str(folder / "model.onnx"))
    eager = getattr(T, result.architecture).from_pretrained(folder, dtype=torch.float32).eval()
    for sizes in ((1, 1, 0), (3, 5, 4), (2, 13, 11)):
        assert run_both(folder, eager, *sizes) < 1e-5


def test_without_verification_no_weight_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = SIZES | {"hidden_size": 256, "intermediate_size": 512}
    folder = checkpoints.saved(T.MixtralForCausalLM(T.MixtralConfig(**sizes, **MIXED)), tmp_path / "twin")
    assert (folder / "model.safetensors").stat().st_size > 10 << 20
    seen: list[Any] = []
    kept = placing.InPlace.check

    def check(self: Any) -> None:
        seen.append((self.placed.touched, resident_kilobytes(self.memory[0]) <= 1024))
        kept(self)

    monkeypatch.setattr(placing.InPlace, "check", check)
    fairlead.export_checkpoint(folder, in_place=True, verify=False)
    assert seen == [(False, True)], "a header alone, and what the system reads around it"
    eager = T.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    assert run_both(folder, eager, 3, 5, 4) < 1e-5


def resident_kilobytes(memory: torch.Tensor) -> int:
    """What of mapped memory was looked at."""
    address, rows = f"{memory.data_ptr():x}-", Path("/proc/self/smaps").read_text().splitlines()
    at = next(k for k, row in enumerate(rows) if row.startswith(address))
    return next(int(row.split()[1]) for row in rows[at:] if row.startswith("Rss:"))


def test_memory_does_not_grow_with_the_model(tmp_path: Path) -> None:
    """Weights of 4 GB in a file without blocks."""
    folder = tmp_path / "large"
    sizes = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 14, "vocab_size": 32000}
    with torch.device("meta"):
        model = llama(**sizes, num_attention_heads=16, num_key_value_heads=16)
    model.config.architectures, model.config.dtype = ["LlamaForCausalLM"], torch.float32
    model.config.save_pretrained(folder)
    rows, at = {}, 0
    for name, tensor in model.state_dict().items():
        rows[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at := at + 4 * tensor.numel()]}
    header = json.dumps(rows).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + at)
    assert at > 4e9
    assert checkpoints.memory_in_place(folder) < 300, "megabytes above interpreter and torch"
    onnx.checker.check_model(str(folder / "model.onnx"))


def test_half_a_gigabyte_in_place_and_one_step(tmp_path: Path) -> None:
    """benchmarks/weights.py --real, small enough for every run of the tests."""
    sizes = {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 9, "vocab_size": 4096}
    model = llama(**sizes, num_attention_heads=16, num_key_value_heads=16).eval()
    folder = checkpoints.saved(model, tmp_path / "large", max_shard_size="200MB")
    weights = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    assert weights > 480e6
    result = fairlead.export_checkpoint(folder, in_place=True, verify=False)
    assert result.parts["model.onnx"].external_bytes == 0
    assert (folder / "model.onnx").stat().st_size < 2e6
    assert sum(length for _, _, _, length in references(folder)) == weights - headers(folder)
    assert run_both(folder, model, 1, 1, 7) < 1e-5


def headers(folder: Path) -> int:
    """Bytes of the safetensors files that are no weights."""
    return sum(8 + struct.unpack("<Q", path.open("rb").read(8))[0] for path in folder.glob("*.safetensors"))


# ---- dtypes and places ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("same", [True, False])
def test_tied_weights_that_are_stored_twice(tmp_path: Path, same: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transformers ties them where they are equal; that is looked at piece by piece, whatever their size."""
    folder = made("llama tied", tmp_path / "twin")
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    tensors["lm_head.weight"][-1, -1] += not same
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    monkeypatch.setattr("fairlead.checkpoint.parts.SMALL", 0)
    monkeypatch.setattr("fairlead.checkpoint.parts.PIECE", 100)
    fairlead.export_checkpoint(folder, in_place=True)
    assert len(references(folder)) == len(tensors) - same
    eager = T.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    assert run_both(folder, eager, 3, 5, 4) < 1e-5


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_are_converted_as_pytorch_does(tmp_path: Path, dtype: str) -> None:
    folder = made("llama tied", tmp_path / "twin")
    result = fairlead.export_checkpoint(folder, in_place=True, dtype=dtype, verify=False)
    (data,) = [name for name in result.files if name.endswith(".data")]
    wanted = {
        hashlib.sha256(tensor.to(getattr(torch, dtype)).view(torch.uint8).numpy().tobytes()).hexdigest()
        for tensor in load_file(folder / "model.safetensors").values()
    }
    content = (folder / data).read_bytes()
    rows = references(folder)
    assert {row[1] for row in rows} == {data}
    assert {hashlib.sha256(content[offset : offset + length]).hexdigest() for _, _, offset, length in rows} == wanted
    # The next export in place needs none of it.
    fairlead.export_checkpoint(folder, in_place=True, verify=False)
    assert not list(folder.glob("*.data"))


def test_a_checkpoint_of_bfloat16_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = checkpoints.saved(llama().to(torch.bfloat16), tmp_path / "twin")
    result = fairlead.export_checkpoint(folder, in_place=True)
    assert result.dtype == "bfloat16"
    assert {row[1] for row in references(folder)} == {"model.safetensors"}


def test_experts_in_float16_differ_only_where_the_router_ties(tmp_path: Path) -> None:
    """Two experts a rounding step apart: file and eager may take different ones. Every other token is within the
    tolerance, and so are those before it."""
    folder = checkpoints.saved(TWINS["mixtral"]().half(), tmp_path / "twin")
    result = fairlead.export_checkpoint(folder, in_place=True)
    assert result.dtype == "float16"
    half, single = (
        T.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval() for dtype in (torch.float16, torch.float32)
    )
    margins: list[torch.Tensor] = []

    def watch(gate: Any, args: Any, _: Any) -> None:
        logits = torch.nn.functional.linear(args[0].reshape(-1, 32), gate.weight).sort(-1, descending=True).values
        margins.append(logits[:, 1] - logits[:, 2])  # of the last that is taken and the first that is not

    for layer in single.model.layers:
        layer.mlp.gate.register_forward_hook(watch)
    batch, sequence, past, differing = 64, 12, 0, 0
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    for seed in range(3):
        torch.manual_seed(seed)
        margins.clear()
        ids = torch.randint(3, 128, (batch, sequence))
        feeds = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        with torch.no_grad():
            single(**feeds)
            expected = half(**feeds).logits.float()
        feeds["position_ids"] = torch.arange(sequence).expand(batch, -1).contiguous()
        given = {name: tensor.numpy() for name, tensor in feeds.items()}
        given |= {
            row.name: np.zeros((batch, row.shape[1], past, row.shape[3]), np.float16)
            for row in session.get_inputs()
            if row.name.startswith("past_key_values.")
        }
        got = torch.from_numpy(session.run(["logits"], given)[0]).float()
        off = (got - expected).abs().amax(-1) / expected.abs().max()
        ties = (torch.stack(margins).amin(0).reshape(batch, sequence) < 4e-3).cummax(-1).values  # later tokens see it
        assert off[~ties].max() < 2e-2
        differing += int((off > 2e-2).sum())
    assert differing < 0.02 * 3 * batch * sequence


@pytest.mark.parametrize("place", ["copy", "link"])
def test_weights_are_placed_in_another_folder(tmp_path: Path, place: str) -> None:
    folder, out = made("mixtral", tmp_path / "twin"), tmp_path / "out"
    before = hashes(folder)
    result = fairlead.export_checkpoint(folder, out, place=place)
    assert result.worst is not None
    assert result.worst < 1e-5
    assert hashes(folder) == before
    assert hashes(out)["model.safetensors"] == before["model.safetensors"]
    assert (os.stat(out / "model.safetensors").st_nlink > 1) == (place == "link")
    assert sum(note.startswith("weights: ") for note in result.notes) == 1
    eager = T.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    assert run_both(out, eager, 2, 3, 5) < 1e-5


def test_every_reference_is_a_tensor_and_the_contract_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made("llama tied", tmp_path / "twin")
    count = len(stored(folder))

    def checked(*places: Any, **options: Any) -> str:
        return fairlead.export_checkpoint(folder, *places, **options).parts["model.onnx"].contract.verified

    said = f"all {count} references are tensors of the checkpoint"
    assert checked(in_place=True).endswith(f"{said}, in its own files")
    assert f"{said}, {count} of them (" in checked(tmp_path / "out", place="copy")
    assert checked(in_place=True, dtype="float16").endswith("compared by the hash of their bytes")
    assert checked(tmp_path / "out", place="copy", verify=False) == f"not verified; {said}"
    # A layer by layer check is followed by that of all bytes.
    monkeypatch.setattr(placing, "free_memory", lambda: 10_000)
    assert checked(tmp_path / "out", place="copy").endswith("compared by the hash of their bytes")


def place_of(name: str, path: str) -> tuple[str, int]:
    """Where the bytes of an initializer are."""
    model = onnx.load(path, load_external_data=False)
    (found,) = [each for each in model.graph.initializer if each.name == name]
    entries = {each.key: each.value for each in found.external_data}
    return entries["location"], int(entries["offset"])


@pytest.mark.parametrize("dtype", [None, "float16"])
def test_bytes_that_are_not_those_of_the_tensor_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str | None
) -> None:
    """A disk that loses a bit of a norm's weight, which no check of the whole would see."""
    folder = made("llama", tmp_path / "twin")
    kept = placing.InPlace.check_file

    def check_file(self: Any, path: str, bytes_too: bool) -> str:
        file, at = place_of("model.model.norm.weight", path)
        with open(Path(self.staged) / file, "r+b") as content:
            content.seek(at)
            first = content.read(1)[0]
            content.seek(at)
            content.write(bytes([first ^ 1]))
        return kept(self, path, bytes_too)

    monkeypatch.setattr(placing.InPlace, "check_file", check_file)
    with pytest.raises(
        WriteError, match=r"Expected the bytes of model.norm.weight of .* got others at \d+ of model"
    ) as caught:
        fairlead.export_checkpoint(folder, tmp_path / "out", place="copy", dtype=dtype)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_what_does_not_fit_into_memory_is_placed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made("llama", tmp_path / "twin")
    monkeypatch.setattr("fairlead.checkpoint.beside.free_memory", lambda: 10_000)
    result = fairlead.export_checkpoint(folder, tmp_path / "out")
    assert len([name for name in result.files if name.endswith(".safetensors")]) == 6


def test_the_command_line(tmp_path: Path) -> None:
    folder = made("llama", tmp_path / "twin")

    def said(*words: str) -> str:
        run = CliRunner().invoke(command, ["export", str(folder), *words, "--quiet"])
        assert run.exit_code == 0, run.output
        return run.output

    assert "in 6 files of the checkpoint, referred to where they are" in said("--in-place")
    assert "hard links" in said(str(tmp_path / "out"), "--link", "--no-verify")
    assert "converted into model.onnx." in said("--in-place", "--dtype", "float16", "--no-verify")


# ---- what is wrong with a checkpoint -------------------------------------------------------------------------


def with_header(folder: Path, change: Callable[[dict[str, Any]], None], data: int = 0) -> None:
    path = folder / "model.safetensors"
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :] + bytes(data))


def overlap(header: dict[str, Any]) -> None:
    first, second = [row for name, row in header.items() if name != "__metadata__"][:2]
    size = second["data_offsets"][1] - second["data_offsets"][0]
    second["data_offsets"] = [first["data_offsets"][0], first["data_offsets"][0] + size]


def huge(header: dict[str, Any]) -> None:
    next(row for name, row in header.items() if name != "__metadata__")["shape"] = [1 << 40, 1 << 40]


def climb(header: dict[str, Any]) -> None:
    header["../../etc/passwd"] = header.pop(next(name for name in header if name != "__metadata__"))


def cut(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", (folder / "model.safetensors").stat().st_size - 100)


def absurd(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", 1 << 60) + path.read_bytes()[8:])


KEY = "model.layers.1.mlp.up_proj.weight"


def with_tensor(folder: Path, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors[KEY] = change(tensors[KEY]).contiguous()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


WRONG: dict[str, tuple[Callable[[Path], Any], str]] = {
    "other sizes": (lambda folder: with_tensor(folder, lambda t: t[:40]), rf"{KEY} as \[48, 32\] .* got \[40, 32\]"),
    "no element": (lambda folder: with_tensor(folder, lambda t: t[:0]), rf"{KEY} as \[48, 32\] .* got \[0, 32\]"),
    "integers": (
        lambda folder: with_tensor(folder, lambda t: (50 * t).to(torch.int8)),
        f"'{KEY}' in floats.* got int8",
    ),
    "truths": (lambda folder: with_tensor(folder, lambda t: t > 0), f"'{KEY}' in floats.* got bool"),
    "truncated": (cut, "within the"),
    "overlapping": (lambda folder: with_header(folder, overlap), "overlapping|without gaps"),
    "an absurd shape": (lambda folder: with_header(folder, huge), "absurd shape"),
    "a name that climbs": (lambda folder: with_header(folder, climb), "names of tensors"),
    "an absurd header": (absurd, "a header of at most 100000000 bytes"),
    "bytes of nobody": (lambda folder: with_header(folder, lambda header: None, 8), "8 bytes of no tensor"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_checkpoint_is_one_error_and_leaves_nothing(tmp_path: Path, what: str) -> None:
    folder = made("llama tied", tmp_path / "twin")
    change, words = WRONG[what]
    change(folder)
    before = hashes(folder)
    with pytest.raises(InvalidInput, match=words) as caught:
        fairlead.export_checkpoint(folder, in_place=True)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")
    assert hashes(folder) == before
    assert len(list(folder.iterdir())) == len(before)


def index_of(folder: Path, change: Callable[[dict[str, str]], None]) -> None:
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    change(index["weight_map"])
    path.write_text(json.dumps(index))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "model-00003-of-00006.safetensors").unlink(), "which the index names"),
        (lambda folder: index_of(folder, lambda m: m.update({"lm_head.weight": "../x.safetensors"})), "beside it"),
        (lambda folder: index_of(folder, lambda m: m.update({"none": "model-00001-of-00006.safetensors"})), "got none"),
        (lambda folder: (folder / "model.safetensors.index.json").write_text("{"), "a weight_map in"),
    ],
    ids=["a shard missing", "a shard elsewhere", "a tensor missing", "no index"],
)
def test_a_wrong_index_is_one_error(tmp_path: Path, change: Callable[[Path], Any], words: str) -> None:
    folder = made("llama", tmp_path / "twin")
    change(folder)
    before = sorted(os.listdir(folder))
    with pytest.raises(InvalidInput, match=words):
        fairlead.export_checkpoint(folder, in_place=True)
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "chat_template.jinja"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, name: str, in_place: bool) -> None:
    folder = made("llama", tmp_path / "twin")
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    before = sorted(os.listdir(folder))
    with pytest.raises(InvalidInput, match=rf"Expected plain files .* got '{name}', which is none"):
        fairlead.export_checkpoint(folder, None if in_place else tmp_path / "out", in_place=in_place)
    assert sorted(os.listdir(folder)) == before
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_that_changes_while_it_is_read(tmp_path: Path) -> None:
    folder = made("llama tied", tmp_path / "twin")
    before = sorted(os.listdir(folder))

    def progress(what: str) -> None:
        if what.startswith("writing configuration"):
            tensors = load_file(folder / "model.safetensors")
            save_file({name: tensor + 1 for name, tensor in tensors.items()}, folder / "model.safetensors")

    with pytest.raises(InvalidInput, match=r"changed while it was read. Export again when nothing writes to it"):
        fairlead.export_checkpoint(folder, in_place=True, verify=False, progress=progress)
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize("in_place", [True, False])
def test_streaming_that_is_interrupted_leaves_no_half_file(tmp_path: Path, in_place: bool) -> None:
    folder = made("llama tied", tmp_path / "twin")
    before = hashes(folder)

    def progress(what: str) -> None:
        if what.startswith("converting weights"):
            raise KeyboardInterrupt

    places = {"in_place": True} if in_place else {"folder": tmp_path / "out", "place": "copy"}
    with pytest.raises(KeyboardInterrupt):
        fairlead.export_checkpoint(folder, dtype="float16", verify=False, progress=progress, **places)
    assert hashes(folder) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["twin"]


def test_a_process_that_is_ended_while_it_streams(tmp_path: Path) -> None:
    """By SIGTERM, and by SIGKILL, whose folder the next export removes."""
    folder = made("llama tied", tmp_path / "twin")
    before = hashes(folder)
    script = (
        "import fairlead, os, signal, sys\n"
        "def progress(what):\n"
        "    if what.startswith('converting weights'):\n"
        "        os.kill(os.getpid(), getattr(signal, sys.argv[2]))\n"
        "fairlead.export_checkpoint(sys.argv[1], in_place=True, dtype='float16', verify=False, progress=progress)\n"
    )
    for name in ("SIGTERM", "SIGKILL"):
        run = subprocess.run([sys.executable, "-c", script, folder, name], capture_output=True, check=False)
        assert run.returncode != 0
        assert hashes(folder) == before, "no file under a final name"
        if name == "SIGTERM":
            assert len(list(folder.iterdir())) == len(before), "and no folder"
    fairlead.export_checkpoint(folder, in_place=True, verify=False)
    assert not [path for path in folder.iterdir() if path.is_dir()]


def test_pickles_and_links_and_files_of_others_are_refused(tmp_path: Path) -> None:
    folder = made("llama tied", tmp_path / "twin")
    weights = folder / "model.safetensors"
    (folder / "model.onnx").write_text("somebody's")
    with pytest.raises(InvalidInput, match=r"Expected no model.onnx in .* got one that Fairlead did not write"):
        fairlead.export_checkpoint(folder, in_place=True)
    assert (folder / "model.onnx").read_text() == "somebody's"
    (folder / "model.onnx").unlink()
    shutil.move(weights, tmp_path / "elsewhere.safetensors")
    weights.symlink_to(tmp_path / "elsewhere.safetensors")
    with pytest.raises(InvalidInput, match="a symbolic link, which ONNX Runtime does not follow"):
        fairlead.export_checkpoint(folder, in_place=True)
    assert fairlead.export_checkpoint(folder, tmp_path / "out", place="link").worst is not None
    weights.unlink()
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(InvalidInput, match=r"pytorch_model.*bin, which is not read. Convert it: python -c"):
        fairlead.export_checkpoint(folder, in_place=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"in_place": True, "folder": "elsewhere"}, "no other folder with in_place"),
        ({"in_place": True, "place": "link"}, "Expected no place with in_place"),
        ({"in_place": True, "quantize": fairlead.Int4()}, "Expected no quantize with in_place"),
        ({"in_place": True, "formats": ("pt2",)}, "Expected no formats with in_place"),
        ({"place": "move", "folder": "out"}, "Expected place as one of copy, link"),
        ({}, "a folder to write to, or in_place=True"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    folder = made("llama tied", tmp_path / "twin")
    with pytest.raises(InvalidInput, match=words):
        fairlead.export_checkpoint(folder, **options)


# ---- models that read what their weights decide --------------------------------------------------------------


def curious(monkeypatch: pytest.MonkeyPatch) -> None:
    """An MLP that looks at its numbers."""
    kept = T.models.llama.modeling_llama.LlamaMLP.forward

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = kept(self, x)
        return out if out.abs().max().item() < 1e9 else out * 0

    monkeypatch.setattr(T.models.llama.modeling_llama.LlamaMLP, "forward", forward)


def test_what_has_to_be_read_is_an_error_that_names_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made("llama", tmp_path / "twin")
    curious(monkeypatch)
    monkeypatch.setattr(placing, "free_memory", lambda: 10_000)
    with pytest.raises(InvalidInput, match=r"test_in_place.py:\d+") as caught:
        fairlead.export_checkpoint(folder, in_place=True)
    assert "more than fit into memory here" in str(caught.value)
    assert "without in_place" in str(caught.value)
    assert not (folder / "model.onnx").exists()


def test_what_has_to_be_read_is_read_where_it_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made("llama", tmp_path / "twin")
    curious(monkeypatch)
    result = fairlead.export_checkpoint(folder, in_place=True)
    assert result.worst is not None
    assert result.worst < 1e-5


@pytest.mark.parametrize("name", ["llama", "mixtral"])
def test_what_does_not_fit_is_checked_layer_by_layer(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(name, tmp_path / "twin")
    monkeypatch.setattr(placing, "free_memory", lambda: 10_000)
    result = fairlead.export_checkpoint(folder, in_place=True)
    said = result.parts["model.onnx"].contract.verified
    assert re.search(r"^layers 0, 1 of 2 \(\w+DecoderLayer\), each by itself in ONNX Runtime: worst difference", said)
    assert "was not run" in said
    assert not list(folder.glob("layer-*"))
    eager = T.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    assert run_both(folder, eager, 3, 5, 4) < 1e-5


def test_a_layer_that_differs_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made("mixtral", tmp_path / "twin")
    before = sorted(os.listdir(folder))
    monkeypatch.setattr(placing, "free_memory", lambda: 10_000)
    monkeypatch.setattr(placing.InPlace, "fill", lambda self, parameters: None)  # eager computes with zeros then
    with pytest.raises(Discrepancy, match=r"In model.layers.0, checked by itself: Expected"):
        fairlead.export_checkpoint(folder, in_place=True)
    assert sorted(os.listdir(folder)) == before


def test_a_folder_that_takes_no_second_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made("llama tied", tmp_path / "twin")

    def refuse(*_: Any) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr("fairlead.checkpoint.beside.os.link", refuse)
    with pytest.raises(WriteError, match=r"a second name.*Operation not permitted. Pass verify=False"):
        fairlead.export_checkpoint(folder, in_place=True)


def test_headers_are_those_of_safetensors(tmp_path: Path) -> None:
    folder = made("llama", tmp_path / "twin")
    for path in folder.glob("*.safetensors"):
        with safe_open(path, framework="pt") as file:
            assert set(file.keys()) == {name for (shard, *_), name in stored(folder).items() if shard == path.name}
