"""Models whose weights are not in this process: on meta with a checkpoint, offloaded by accelerate, too large."""

from __future__ import annotations

import copy
import gc
import json
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairlead.elsewhere.sources as sources
import fairlead.elsewhere.stand_ins as stand_ins
import numpy as np
import onnxruntime
import pytest
import torch
from safetensors.torch import save_file

import fairlead
from fairlead import InvalidInput

accelerate = pytest.importorskip("accelerate")

WIDTH = 640  # a matrix is more than what is fetched at once


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.Linear(WIDTH, WIDTH)
        self.norm = torch.nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.relu(self.up(self.norm(x)))


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(700, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))
        self.head = torch.nn.Linear(WIDTH, 700, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("scale", torch.full((WIDTH,), 0.5))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x * self.scale)


IDS = {"ids": torch.randint(0, 700, (2, 5), generator=torch.Generator().manual_seed(1))}


def whole() -> Net:
    torch.manual_seed(0)
    return Net().eval()


def on_meta() -> Net:
    with torch.device("meta"):
        return Net().eval()


def stored(model: torch.nn.Module, path: Path, dtype: torch.dtype | None = None) -> Path:
    kept = {k: v.contiguous().to(dtype or v.dtype) for k, v in model.state_dict().items() if k != "head.weight"}
    save_file(kept, path)
    return path


def sharded(model: torch.nn.Module, folder: Path) -> Path:
    folder.mkdir()
    kept = {k: v.contiguous() for k, v in model.state_dict().items() if k != "head.weight"}
    places = {}
    for number, some in enumerate((list(kept)[:3], list(kept)[3:])):
        file = f"model-0000{number + 1}-of-00002.safetensors"
        save_file({k: kept[k] for k in some}, folder / file)
        places |= dict.fromkeys(some, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return folder


def difference(path: Path, model: torch.nn.Module, rows: int = 3, length: int = 11) -> float:
    ids = torch.randint(0, 700, (rows, length), generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        expected = model(ids).numpy()
    (got,) = onnxruntime.InferenceSession(str(path)).run(None, {"ids": ids.numpy()})
    return float(np.abs(got - expected).max() / np.abs(expected).max())


def size_of(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.glob(path.name + "*"))


# ---- on meta -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["file", "shards"])
def test_a_model_on_meta_has_its_weights_from_a_checkpoint(tmp_path: Path, place: str) -> None:
    real, model = whole(), on_meta()
    checkpoint = stored(real, tmp_path / "w.safetensors") if place == "file" else sharded(real, tmp_path / "shards")
    result = fairlead.export(model, IDS, tmp_path / "m.onnx", checkpoint=checkpoint)
    assert difference(tmp_path / "m.onnx", real) < 1e-5
    assert result.discrepancies
    assert all(p.is_meta for p in model.parameters())
    assert model.head.weight is model.embed.weight
    fairlead.export(real, IDS, tmp_path / "loaded.onnx")
    assert abs(size_of(tmp_path / "m.onnx") - size_of(tmp_path / "loaded.onnx")) < 5000  # what is tied is there once


def test_a_checkpoint_of_another_dtype_is_converted_while_it_is_streamed(tmp_path: Path) -> None:
    real = whole()
    checkpoint = stored(real, tmp_path / "w.safetensors", torch.float16)
    result = fairlead.export(on_meta(), IDS, tmp_path / "m.onnx", checkpoint=checkpoint)
    assert difference(tmp_path / "m.onnx", real.half().float()) < 1e-5
    assert "streamed from where they are (in w.safetensors)" in result.contract.verified


def test_the_weights_of_a_program_are_read(tmp_path: Path) -> None:
    real = whole()
    checkpoint = stored(real, tmp_path / "w.safetensors", torch.float16)
    fairlead.export(on_meta(), IDS, tmp_path / "m.pt2", checkpoint=checkpoint)
    loaded = torch.export.load(tmp_path / "m.pt2").module()
    with torch.no_grad():
        assert torch.allclose(loaded(**IDS), real.half().float()(**IDS), atol=1e-4)


def test_quantised_weights_are_those_of_the_checkpoint(tmp_path: Path) -> None:
    checkpoint = stored(whole(), tmp_path / "w.safetensors", torch.float16)
    fairlead.export(on_meta(), IDS, tmp_path / "m.onnx", checkpoint=checkpoint, quantize=fairlead.Int8(), opset=21)
    assert difference(tmp_path / "m.onnx", whole().half().float()) < 0.05


def without(name: str) -> Callable[[Net, Path], Path]:
    def store(model: Net, path: Path) -> Path:
        save_file({k: v for k, v in model.state_dict().items() if k not in (name, "head.weight")}, path)
        return path

    return store


def of_other_sizes(model: Net, path: Path) -> Path:
    model.blocks[1].up = torch.nn.Linear(WIDTH, 2 * WIDTH)
    return stored(model, path)


def truncated(model: Net, path: Path) -> Path:
    stored(model, path)
    path.write_bytes(path.read_bytes()[:-1000])
    return path


def pickled(model: Net, path: Path) -> Path:
    torch.save(model.state_dict(), path.with_suffix(".bin"))
    return path.with_suffix(".bin")


@pytest.mark.parametrize(
    ("store", "said"),
    [
        (without("blocks.1.up.weight"), "lacks 1, blocks.1.up.weight among them"),
        (of_other_sizes, r"blocks.1.up.weight as \[640, 640\] .* got \[1280, 640\]"),
        (truncated, "w.safetensors"),
        (pickled, "w.bin"),
        (lambda model, path: path, "no such file"),
    ],
)
def test_a_checkpoint_that_is_not_the_models_is_refused(tmp_path: Path, store: Any, said: str) -> None:
    checkpoint = store(whole(), tmp_path / "w.safetensors")
    model = on_meta()
    with pytest.raises(InvalidInput, match=said) as caught:
        fairlead.export(model, IDS, tmp_path / "m.onnx", checkpoint=checkpoint)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("m.onnx*"))
    assert all(p.is_meta for p in model.parameters())


def test_a_checkpoint_that_changes_meanwhile_is_refused(tmp_path: Path) -> None:
    checkpoint = stored(whole(), tmp_path / "w.safetensors")

    def change(what: str) -> None:
        size = checkpoint.stat().st_size
        with open(checkpoint, "r+b") as file:
            file.truncate(size // 2)

    with pytest.raises(fairlead.FairleadError, match=r"w\.safetensors"):
        fairlead.export(on_meta(), IDS, tmp_path / "m.onnx", checkpoint=checkpoint, progress=change)
    assert not list(tmp_path.glob("m.onnx*"))


def test_what_has_no_values_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="15 tensors on meta, scale among them, which have no values"):
        fairlead.export(on_meta(), IDS, tmp_path / "m.onnx")
    with pytest.raises(InvalidInput, match="got one that has its weights"):
        fairlead.export(whole(), IDS, tmp_path / "m.onnx", checkpoint="w.safetensors")

    model = on_meta()
    model.register_buffer("scale", torch.empty(WIDTH, device="meta"), persistent=False)
    real = without("scale")(whole(), tmp_path / "w.safetensors")
    with pytest.raises(InvalidInput, match=r"1 that none has, scale among them.*init_empty_weights"):
        fairlead.export(model, IDS, tmp_path / "m.onnx", checkpoint=real)


# ---- offloaded -----------------------------------------------------------------------------------------------


def offload(kind: str, model: Net, folder: Path) -> Net:
    if kind == "memory":
        accelerate.cpu_offload(model, torch.device("cpu"))
    elif kind == "disk":
        accelerate.disk_offload(model, folder, torch.device("cpu"))
    else:
        places = {"embed": "cpu", "head": "cpu", "scale": "cpu", "blocks.0": "cpu"}
        places |= {"blocks.1": "disk", "blocks.2": "disk"}
        accelerate.dispatch_model(model, places, main_device="cpu", offload_dir=folder, force_hooks=True)
    return model


@pytest.mark.filterwarnings("ignore:The following device_map keys")
@pytest.mark.parametrize("kind", ["memory", "disk", "half"])
def test_an_offloaded_model_is_exported_where_it_is(tmp_path: Path, kind: str) -> None:
    model = offload(kind, whole(), tmp_path / "offloaded")
    before = {name: (id(t), t.device.type) for name, t in model.state_dict(keep_vars=True).items()}
    forwards = [module.forward for module in model.modules()]
    result = fairlead.export(model, IDS, tmp_path / "m.onnx")
    assert difference(tmp_path / "m.onnx", whole()) < 1e-5
    assert ("streamed from where they are (offloaded)" in result.contract.verified) == (kind != "memory")
    assert {name: (id(t), t.device.type) for name, t in model.state_dict(keep_vars=True).items()} == before
    assert [module.forward for module in model.modules()] == forwards
    with torch.no_grad():
        assert torch.equal(model(**IDS), whole()(**IDS))


def test_a_model_on_another_device_is_streamed_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = whole()
    there = {id(t) for t in model.state_dict(keep_vars=True).values()}  # as if they were
    for module in (sources, stand_ins):
        monkeypatch.setattr(module, "is_here", lambda t: id(t) not in there)
    result = fairlead.export(model, IDS, tmp_path / "m.onnx")
    assert "streamed from where they are (on cpu)" in result.contract.verified
    assert {id(t) for t in model.state_dict(keep_vars=True).values()} == there
    assert difference(tmp_path / "m.onnx", model) < 1e-5


def test_sizes_that_a_large_matrix_refuses_read_no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = torch.nn.Linear(5000, 4000, bias=False).eval()
    for module in (sources, stand_ins):
        monkeypatch.setattr(module, "is_here", lambda t: t is not model.weight)
    read: list[str] = []
    monkeypatch.setattr(stand_ins.Elsewhere, "read", lambda self, why: read.append(why))
    result = fairlead.export(model, (torch.rand(2, 5000),), tmp_path / "m.onnx", verify=False)
    assert not read
    assert [(dim.axis, dim.size) for dim in result.contract.fixed] == [(1, 5000)]
    x = torch.rand(3, 5000)
    (found,) = onnxruntime.InferenceSession(str(tmp_path / "m.onnx")).run(None, {"input": x.numpy()})
    assert torch.allclose(torch.from_numpy(found), model(x), atol=1e-4)


class Named(Net):
    """It keeps tensors in lists of its own, and its code says where it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.shifts = [torch.linspace(-1, 1, WIDTH), (torch.ones(1), {"up": torch.full((), 2.0)})]
        self.first = [self.embed.weight, "a word"]
        self.made_on = torch.device("cuda", 0)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(ids.shape[1], device=self.made_on) + torch.zeros((), device="cuda")
        one, other = self.shifts[1]
        x = torch.nn.functional.embedding(ids.cuda(), self.first[0]).to("cuda:0")
        x = (x + positions[:, None].to(self.made_on, torch.float32)) * one + self.shifts[0] * other["up"]
        for block in self.blocks:
            x = block(x)
        return self.head(x.to(device="cuda") * self.scale)


def test_devices_that_the_code_names_and_tensors_in_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = Named().eval()
    held = [model.shifts[0], model.shifts[1][0], model.shifts[1][1]["up"]]
    lists = (model.shifts, model.first)
    there = {id(t) for t in [*model.state_dict(keep_vars=True).values(), *held]}
    for module in (sources, stand_ins):
        monkeypatch.setattr(module, "is_here", lambda t: id(t) not in there)
    with fairlead.observe(model) as seen, torch.no_grad(), stand_ins.OneDevice():
        model(**IDS)
    result = fairlead.export(model, seen, tmp_path / "m.onnx")
    assert "streamed from where they are (on cpu)" in result.contract.verified
    assert (model.shifts, model.first) == lists
    assert model.shifts is lists[0]
    assert model.first[0] is model.embed.weight
    with stand_ins.OneDevice():
        assert difference(tmp_path / "m.onnx", model) < 1e-5


def test_a_default_device_is_not_where_an_export_computes(tmp_path: Path) -> None:
    model = whole()
    with torch.device("meta"):
        fairlead.export(model, IDS, tmp_path / "m.onnx")
    assert difference(tmp_path / "m.onnx", model) < 1e-5


def test_what_does_not_fit_is_checked_layer_by_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = offload("disk", whole(), tmp_path / "offloaded")
    monkeypatch.setattr(stand_ins, "free_memory", lambda: 1_000_000)
    told: list[str] = []
    result = fairlead.export(model, IDS, tmp_path / "m.onnx", progress=told.append)
    assert "checking layer 1 of 3" in told
    assert "layers 0, 1, 2 of 3 (Block), each by itself in ONNX Runtime" in result.contract.verified
    assert "was not run" in result.contract.verified
    assert difference(tmp_path / "m.onnx", whole()) < 1e-5
    with pytest.raises(InvalidInput, match="more than fit into memory here"):
        fairlead.export(model, IDS, tmp_path / "m.pt2")


class Curious(torch.nn.Module):
    """Its way follows from a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)
        self.apart = torch.empty(3, device="meta")  # nobody reads it

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) if self.linear.weight.abs().sum().item() > 0 else x


def test_what_decides_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Curious().eval()
    real = copy.deepcopy(model)
    accelerate.disk_offload(model, tmp_path / "offloaded", torch.device("cpu"))
    x = torch.rand(3, WIDTH)
    fairlead.export(model, x, tmp_path / "m.onnx", verify=False)
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    with torch.no_grad():
        assert np.allclose(got, real(x).numpy(), atol=1e-5)
    monkeypatch.setattr(stand_ins, "free_memory", lambda: 1_000_000)
    with pytest.raises(InvalidInput, match=r"test_elsewhere.py:\d+"):
        fairlead.export(model, x, tmp_path / "m.onnx", verify=False)


def test_what_cannot_be_read_any_more_is_an_error(tmp_path: Path) -> None:
    model = offload("disk", whole(), tmp_path / "offloaded")
    (tmp_path / "offloaded" / "blocks.1.up.weight.dat").unlink()
    with pytest.raises(InvalidInput, match="Expected a weight offloaded, but it cannot be read"):
        fairlead.export(model, IDS, tmp_path / "m.onnx")
    assert not list(tmp_path.glob("m.onnx*"))


def test_nothing_keeps_a_model_that_was_exported(tmp_path: Path) -> None:
    model = offload("disk", whole(), tmp_path / "offloaded")
    fairlead.export(model, IDS, tmp_path / "m.onnx", verify=False)
    gone = weakref.ref(model.blocks[0].up)
    del model
    gc.collect()
    assert gone() is None


# ---- constants that are made beside tensors without data -----------------------------------------------------


class Picks(torch.nn.Module):
    """Of the rows that its weights make, as `how` says."""

    def __init__(self, how: Callable[[torch.Tensor], torch.Tensor]):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(64, 48, generator=torch.Generator().manual_seed(0)))
        self.how = how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.how((x @ self.weight.T).view(x.shape[0], 8, 8))


def written(y: torch.Tensor) -> torch.Tensor:
    y[:, [1, 2]] = 0.5
    return y


PICKS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a list": lambda y: y[..., :-2, :] + y[..., [-2], :],
    "two lists": lambda y: y[:, [1, 2], [3, 4]],
    "lists in a list": lambda y: y[:, [[1, 2], [3, 4]]],
    "truths": lambda y: y[:, [True, False] * 4],
    "a tuple": lambda y: y[:, (1, 2)],
    "a range": lambda y: y[:, range(3)],  # type: ignore[index]
    "sizes": lambda y: y[:, [0, y.shape[1] - 1]],
    "written": written,
    "new_tensor": lambda y: y * y.new_tensor([1.0, 2, 3, 4, 5, 6, 7, 8]),
}


@pytest.mark.parametrize("how", PICKS)
def test_numbers_that_the_code_names_are_not_lost(tmp_path: Path, how: str) -> None:
    model = Picks(PICKS[how]).eval()
    save_file(model.state_dict(), tmp_path / "w.safetensors")
    with torch.device("meta"):
        away = Picks(PICKS[how]).eval()
    x = torch.rand(3, 48)
    fairlead.export(away, (x,), tmp_path / "model.onnx", checkpoint=tmp_path / "w.safetensors")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    other = torch.rand(5, 48)
    with torch.no_grad():
        np.testing.assert_allclose(session.run(None, {"x": other.numpy()})[0], model(other).numpy(), rtol=1e-5)


class Casts(torch.nn.Module):
    """What it computes of its weights alone: routers in float32 do."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(64, 48, generator=torch.Generator().manual_seed(0)).bfloat16())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x, self.weight.type(torch.float32)) * self.weight.float().sum(1)


def test_what_weights_alone_decide_stays_an_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Casts().eval()
    save_file(model.state_dict(), tmp_path / "w.safetensors")
    with torch.device("meta"):
        away = Casts().eval()
    monkeypatch.setattr(stand_ins, "free_memory", lambda: 1000)
    fairlead.export(away, (torch.rand(3, 48),), tmp_path / "m.onnx", checkpoint=tmp_path / "w.safetensors")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    other = torch.rand(5, 48)
    with torch.no_grad():
        np.testing.assert_allclose(session.run(None, {"x": other.numpy()})[0], model(other).numpy(), rtol=1e-5)


def test_where_it_does_not_fit_a_lost_constant_is_an_error_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_file(Picks(PICKS["new_tensor"]).state_dict(), tmp_path / "w.safetensors")
    with torch.device("meta"):
        away = Picks(PICKS["new_tensor"]).eval()
    monkeypatch.setattr(stand_ins, "free_memory", lambda: 1000)
    with pytest.raises(
        InvalidInput, match=r"a constant that it makes beside .* \(.*test_elsewhere.py:\d+.*more memory"
    ):
        fairlead.export(away, (torch.rand(3, 48),), tmp_path / "model.onnx", checkpoint=tmp_path / "w.safetensors")
    assert not (tmp_path / "model.onnx").exists()
