"""Modules whose weights are on a GPU, half of them there, offloaded or sharded: exported there, checked on the CPU.

python benchmarks/on_cuda.py                    # every case; needs a GPU, and torch that sees it
python benchmarks/on_cuda.py whole observed     # some of them
python benchmarks/on_cuda.py --gigabytes 16     # how much is streamed from the GPU in the case of that name

A line for each case: seconds, memory of the process above what it had before, memory of the GPU above the model, the
difference from the same model on the CPU at sizes that the export did not choose. What a case needs and this machine
lacks is said in its line. Ends with 1 where a case fails.
"""

from __future__ import annotations

import argparse
import copy
import ctypes
import gc
import importlib.util
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import fairlead

WIDTH, WORDS = 2048, 3000
TOLERANCE = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
RUNS = importlib.util.find_spec("onnxruntime") is not None
device = torch.device("cuda")
gigabytes = 8.0


class MissingError(Exception):
    """What is missing here."""


def needs(*modules: str) -> None:
    lacking = [name for name in modules if importlib.util.find_spec(name) is None]
    if lacking:
        raise MissingError(f"needs {', '.join(lacking)}, which {'is' if len(lacking) == 1 else 'are'} not here")


# ---- models ----------------------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.up, self.norm = nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.to(self.up.weight.device)  # sharded models carry what they compute from device to device
        return x + torch.relu(self.up(self.norm(x)))


class Net(nn.Module):
    """Tied weights, a buffer, a list of tensors of its own, a device that the code names."""

    def __init__(self, width: int = WIDTH, blocks: int = 4):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, WORDS, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("scale", torch.full((width,), 0.5))
        self.shifts = [torch.linspace(-1, 1, width), (torch.ones(1),)]
        self.made_on = torch.device("cpu")

    def to_device(self, where: torch.device) -> Net:
        self.to(where)
        self.shifts = [self.shifts[0].to(where), (self.shifts[1][0].to(where),)]
        self.made_on = where
        return self

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(ids.shape[1], device=self.made_on, dtype=self.scale.dtype)
        x = self.embed(ids.to(self.embed.weight.device)) + positions[:, None] / 64
        x = x + (self.shifts[0] * self.shifts[1][0]).to(x.dtype)
        for block in self.blocks:
            x = block(x)
        return self.head((x.to(self.scale.device) * self.scale).to(self.head.weight.device))


class Reads(nn.Module):
    """Its way follows from a weight, and from a value of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        y = self.linear(x) if self.linear.weight.abs().sum().item() > 0 else x
        return y * 2 if count.item() > 3 else y - 1


class Stack(nn.Module):
    """Large matrices and little else."""

    def __init__(self, width: int, count: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def ids_of(rows: int = 2, length: int = 5) -> torch.Tensor:
    return torch.randint(0, WORDS, (rows, length), generator=torch.Generator().manual_seed(rows * 100 + length))


def net(dtype: torch.dtype = torch.float32) -> tuple[Net, Net]:
    """On the device, and the same on the CPU."""
    torch.manual_seed(0)
    real = Net().eval().to(dtype)
    return copy.deepcopy(real).to_device(device), real


# ---- measures --------------------------------------------------------------------------------------------------


def memory(what: str) -> int:
    """Megabytes of the process, by a line of /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(what)).split()[1]) // 1000


class Measured:
    """Of one export: seconds, and memory above what was there before."""

    def __init__(self) -> None:
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
        self.on_gpu = device.type == "cuda"
        if self.on_gpu:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            self.gpu = torch.cuda.memory_allocated()
            self.drawn = torch.cuda.get_rng_state()
        self.before, self.start = memory("VmRSS"), time.perf_counter()

    def words(self) -> str:
        seconds, above = time.perf_counter() - self.start, memory("VmHWM") - self.before
        said = f"{seconds:6.1f} s  {above:6} MB above {self.before}"
        if self.on_gpu:
            assert torch.equal(torch.cuda.get_rng_state(), self.drawn), "random numbers of the GPU were drawn"
            said += f"  {(torch.cuda.max_memory_allocated() - self.gpu) // 1000000:5} MB more of the GPU"
        return said


def session_of(path: Path) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def difference(path: Path, real: nn.Module, feeds: dict[str, torch.Tensor], dtype: torch.dtype) -> str:
    if not RUNS:
        return "not run: onnxruntime is not here"
    with torch.no_grad():
        expected = real(**feeds).float()
    session = session_of(path)
    got = session.run_with_ort_values(None, {k: ort_value(v) for k, v in feeds.items()})[0]
    found = torch.from_numpy(got.numpy() if dtype != torch.bfloat16 else as_floats(got)).float()
    off = float((found - expected).abs().max() / expected.abs().max())
    assert off <= TOLERANCE[dtype], f"off by {off:.1e}"
    return f"off by {off:.1e}"


def ort_value(tensor: torch.Tensor) -> Any:
    import onnxruntime

    return onnxruntime.OrtValue.ortvalue_from_numpy(tensor.numpy())


def as_floats(value: Any) -> Any:
    """numpy has no bfloat16."""
    import numpy as np

    raw = np.ctypeslib.as_array((ctypes.c_uint16 * int(np.prod(value.shape()))).from_address(value.data_ptr()))
    return (raw.astype(np.uint32) << 16).view(np.float32).reshape(value.shape())


def exported(model: nn.Module, inputs: Any, path: Path, **options: Any) -> tuple[Any, str]:
    """The model is as it was afterwards."""
    before = [(name, id(t), t.device) for name, t in model.state_dict(keep_vars=True).items()]
    measured = Measured()
    result = fairlead.export(model, inputs, path, **({"verify": RUNS} | options))
    said = measured.words()
    assert [(name, id(t), t.device) for name, t in model.state_dict(keep_vars=True).items()] == before, "it was changed"
    return result, said


# ---- cases -----------------------------------------------------------------------------------------------------


def whole(folder: Path, dtype: torch.dtype = torch.float32) -> str:
    model, real = net(dtype)
    result, said = exported(model, {"ids": ids_of().to(device)}, folder / "m.onnx")
    assert model.head.weight is model.embed.weight
    if device.type == "cuda":
        assert f"on {model.embed.weight.device}" in result.contract.verified, result.contract.verified
    once = sum(p.numel() * p.element_size() for p in real.parameters())
    written = sum(file.stat().st_size for file in folder.glob("m.onnx*"))
    assert written < once * 1.05 + 1e6, "what is tied is there once"
    return f"{said}  {difference(folder / 'm.onnx', real, {'ids': ids_of(3, 11)}, dtype)}"


def in_float16(folder: Path) -> str:
    return whole(folder, torch.float16)


def in_bfloat16(folder: Path) -> str:
    return whole(folder, torch.bfloat16)


def half_on_cpu(folder: Path) -> str:
    """Sharded by hand: some blocks here, some there."""
    model, real = net()
    for block in model.blocks[2:]:
        block.cpu()
    _, said = exported(model, {"ids": ids_of().to(device)}, folder / "m.onnx")
    return f"{said}  {difference(folder / 'm.onnx', real, {'ids': ids_of(3, 11)}, torch.float32)}"


def inputs_on_cpu(folder: Path) -> str:
    model, real = net()
    _, said = exported(model, (ids_of(),), folder / "m.onnx")
    return f"{said}  {difference(folder / 'm.onnx', real, {'ids': ids_of(3, 11)}, torch.float32)}"


def observed(folder: Path) -> str:
    """Real calls, on the GPU."""
    model, real = net()
    with fairlead.observe(model) as seen, torch.no_grad():
        for rows, length in ((2, 5), (3, 7)):
            model(ids_of(rows, length).to(device))
    _, said = exported(model, seen, folder / "m.onnx")
    return f"{said}  {difference(folder / 'm.onnx', real, {'ids': ids_of(1, 13)}, torch.float32)}"


def values_read(folder: Path) -> str:
    torch.manual_seed(0)
    real = Reads().eval()
    model = copy.deepcopy(real).to(device)
    call = {"x": torch.rand(2, WIDTH, device=device), "count": torch.tensor(5, device=device)}
    _, said = exported(model, call, folder / "m.onnx")
    feeds = {"x": torch.rand(4, WIDTH), "count": torch.tensor(9)}
    return f"{said}  {difference(folder / 'm.onnx', real, feeds, torch.float32)}"


def without_weights(folder: Path) -> str:
    """A module that has no tensor, of inputs that are there."""

    class Mean(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.softmax(-1) + torch.arange(x.shape[1], device=x.device)

    _, said = exported(Mean().eval(), (torch.rand(3, 4, device=device),), folder / "m.onnx")
    return f"{said}  {difference(folder / 'm.onnx', Mean(), {'x': torch.rand(5, 9)}, torch.float32)}"


def on_meta(folder: Path) -> str:
    """A checkpoint, and inputs on the GPU."""
    needs("safetensors")
    from safetensors.torch import save_file

    torch.manual_seed(0)
    real = Stack(WIDTH, 3).eval()
    save_file(real.state_dict(), folder / "w.safetensors")
    with torch.device("meta"):
        model = Stack(WIDTH, 3).eval()
    call = (torch.rand(2, WIDTH, device=device),)
    _, said = exported(model, call, folder / "m.onnx", checkpoint=folder / "w.safetensors")
    return f"{said}  {difference(folder / 'm.onnx', real, {'x': torch.rand(5, WIDTH)}, torch.float32)}"


def default_device(folder: Path) -> str:
    model, real = net()
    call = (ids_of().to(device),)
    torch.set_default_device(device)
    try:
        _, said = exported(model, call, folder / "m.onnx")
    finally:
        torch.set_default_device(None)
    return f"{said}  {difference(folder / 'm.onnx', real, {'ids': ids_of(3, 11)}, torch.float32)}"


def layer_by_layer(folder: Path) -> str:
    """As if the weights did not fit into memory."""
    from unittest import mock

    model, real = net()
    with mock.patch("fairlead.elsewhere.stand_ins.free_memory", return_value=1_000_000):
        result, said = exported(model, (ids_of().to(device),), folder / "m.onnx")
    if device.type == "cuda" and RUNS:
        assert "each by itself in ONNX Runtime" in result.contract.verified, result.contract.verified
    return f"{said}  {difference(folder / 'm.onnx', real, {'ids': ids_of(3, 11)}, torch.float32)}"


def program(folder: Path) -> str:
    model, real = net()
    _, said = exported(model, (ids_of().to(device),), folder / "m.pt2", verify=True)
    loaded = torch.export.load(folder / "m.pt2").module()
    with torch.no_grad():
        off = float((loaded(ids_of(3, 11)) - real(ids_of(3, 11))).abs().max())
    assert off < 1e-3
    return f"{said}  off by {off:.1e}"


def quantised(folder: Path) -> str:
    needs("onnxruntime")
    model, real = net()
    _, said = exported(model, (ids_of().to(device),), folder / "m.onnx", quantize=fairlead.Int8(), opset=21)
    with torch.no_grad():
        expected = real(ids_of(3, 11))
    got = torch.from_numpy(session_of(folder / "m.onnx").run(None, {"ids": ids_of(3, 11).numpy()})[0])
    off = float((got - expected).abs().max() / expected.abs().max())
    assert off < 0.1
    return f"{said}  off by {off:.1e}"


def offloaded(folder: Path) -> str:
    """By accelerate: a block on the GPU, one in memory, two on a disk."""
    needs("accelerate")
    import accelerate

    model, real = net()
    model = copy.deepcopy(real)
    places: dict[str, Any] = {"embed": 0, "head": 0, "scale": 0, "blocks.0": 0, "blocks.1": "cpu"}
    places |= {"blocks.2": "disk", "blocks.3": "disk"}
    if device.type != "cuda":
        places = {name: "cpu" if where == 0 else where for name, where in places.items()}
    accelerate.dispatch_model(model, places, offload_dir=folder / "offloaded", force_hooks=True)
    if device.type == "cuda":
        model.shifts, model.made_on = [model.shifts[0].to(device), (torch.ones(1, device=device),)], device
    _, said = exported(model, {"ids": ids_of().to(device)}, folder / "m.onnx")
    return f"{said}  {difference(folder / 'm.onnx', real, {'ids': ids_of(3, 11)}, torch.float32)}"


def llama(**sizes: Any) -> Any:
    needs("transformers")
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    common = {"vocab_size": 512, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4}
    heads = {"num_attention_heads": 8, "num_key_value_heads": 4}
    return LlamaForCausalLM(LlamaConfig(**common | heads | sizes)).eval()


def generation(folder: Path) -> str:
    """A decoder of Transformers with its cache, by what generate() did on the GPU."""
    real = llama()
    model = copy.deepcopy(real).to(device)
    ids = torch.randint(3, 512, (2, 6), generator=torch.Generator().manual_seed(1))
    with fairlead.observe(model) as seen:
        model.generate(ids.to(device), max_new_tokens=4, do_sample=False)
    result, said = exported(model, seen, folder / "m.onnx")
    if not RUNS:
        return f"{said}  not run: onnxruntime is not here"
    return f"{said}  {len(result.discrepancies)} checks, worst {max(r.scaled for r in result.discrepancies):.1e}"


def device_map(folder: Path) -> str:
    """from_pretrained with a device map: layers on the GPU, in memory and on a disk."""
    needs("transformers", "accelerate")
    real = llama(tie_word_embeddings=True)
    real.save_pretrained(folder / "checkpoint")
    from transformers import LlamaForCausalLM

    places: dict[str, Any] = {"model.embed_tokens": 0, "model.norm": 0, "model.rotary_emb": 0, "lm_head": 0}
    places |= {"model.layers.0": 0, "model.layers.1": "cpu", "model.layers.2": "disk", "model.layers.3": "disk"}
    if device.type != "cuda":
        places = {name: "cpu" if where == 0 else where for name, where in places.items()}
    model = LlamaForCausalLM.from_pretrained(
        folder / "checkpoint", device_map=places, offload_folder=folder / "offloaded", dtype=torch.float32
    ).eval()
    ids = torch.randint(3, 512, (2, 6), generator=torch.Generator().manual_seed(1)).to(device)
    call = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "use_cache": False}
    _, said = exported(model, call, folder / "m.onnx")
    if not RUNS:
        return f"{said}  not run: onnxruntime is not here"
    other = torch.randint(3, 512, (3, 9))
    feeds = {"input_ids": other, "attention_mask": torch.ones_like(other)}
    with torch.no_grad():
        expected = real(**feeds, use_cache=False).logits
    session = session_of(folder / "m.onnx")
    got = session.run(["logits"], {i.name: feeds[i.name].numpy() for i in session.get_inputs()})[0]
    off = float((torch.from_numpy(got) - expected).abs().max() / expected.abs().max())
    assert off < 1e-4, f"off by {off:.1e}"
    return f"{said}  off by {off:.1e}"


def adapters(folder: Path) -> str:
    needs("transformers", "peft", "onnxruntime")
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(llama(), LoraConfig(r=4, target_modules=["q_proj", "v_proj"])).eval().to(device)
    ids = torch.randint(3, 512, (2, 6)).to(device)
    call = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    _, said = exported(model, call, folder / "m.onnx", lora="inputs")
    return f"{said}  with m.onnx_adapter of {(folder / 'm.onnx_adapter').stat().st_size} bytes"


def streamed(folder: Path) -> str:
    """So many gigabytes on the GPU, nothing verified: what the process takes does not follow from them."""
    width = 16384
    count = max(1, round(gigabytes * 1e9 / (2 * width * width)))
    with torch.device("meta"):
        model = Stack(width, count).eval().to(torch.bfloat16)
    model = model.to_empty(device=device)
    for parameter in model.parameters():
        parameter.data.normal_(std=0.01)
    call = (torch.rand(2, width, device=device, dtype=torch.bfloat16),)
    _, said = exported(model, call, folder / "m.onnx", verify=False)
    size = sum(file.stat().st_size for file in folder.glob("m.onnx*"))
    checked = same_bytes(folder, model)
    return f"{said}  {size / 1e9:.1f} GB written{checked}"


def same_bytes(folder: Path, model: Stack) -> str:
    """What was written of the last matrix is what is on the GPU."""
    if importlib.util.find_spec("onnx") is None:
        return ", not compared: onnx is not here"
    import numpy as np
    import onnx

    wanted = {(p.view(torch.int16).long() & 0xFFFF).sum().item() for p in model.parameters()}
    found = set()
    for tensor in onnx.load(str(folder / "m.onnx"), load_external_data=False).graph.initializer:
        facts = {entry.key: entry.value for entry in tensor.external_data}
        if int(facts.get("length", 0)) < 1 << 20:
            continue
        words = np.memmap(
            folder / facts["location"], np.uint16, "r", int(facts.get("offset", 0)), (int(facts["length"]) // 2,)
        )
        found.add(int(words.sum(dtype=np.int64)))
    assert found == wanted, "other weights than those on the GPU"
    return f", the sums of all {len(found)} matrices are those on the device"


CASES: dict[str, Callable[[Path], str]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        whole, in_float16, in_bfloat16, half_on_cpu, inputs_on_cpu, observed, values_read, without_weights, on_meta,
        default_device, layer_by_layer, program, quantised, offloaded, generation, device_map, adapters, streamed,
    )
}  # fmt: skip


def main() -> None:
    global device, gigabytes
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *CASES])
    parser.add_argument("--device", default="cuda", help="cpu tries the cases where there is no GPU")
    parser.add_argument("--gigabytes", type=float, default=8.0)
    parser.add_argument("--in", dest="where", default=None, metavar="FOLDER", help="where files are made")
    parser.add_argument("--trace", action="store_true", help="show where a case fails")
    given = parser.parse_args()
    device, gigabytes = torch.device(given.device), given.gigabytes
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise SystemExit("on_cuda.py: torch sees no GPU here; --device cpu tries the cases without one.")
        device = torch.device("cuda", torch.cuda.current_device())
        print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, fairlead {fairlead.__version__}")
    failed = []
    for name in given.names or CASES:
        with tempfile.TemporaryDirectory(prefix="fairlead-cuda-", dir=given.where) as made:
            try:
                said = CASES[name](Path(made))
            except MissingError as why:
                said = str(why)
            except Exception as error:  # the next case may say more
                failed.append(name)
                said = f"FAILED: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
                if given.trace:
                    traceback.print_exc()
        print(f"{name:16} {said}", flush=True)
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
