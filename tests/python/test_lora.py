"""LoRA adapters: as inputs of a file, swapped at run time, merged, and as they stand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from click.testing import CliRunner
from fairlead._core import Discrepancy, InvalidInput, Unsupported
from fairlead.cli.commands import fairlead as command
from safetensors.torch import load_file, save_file

import fairlead

transformers = pytest.importorskip("transformers", minversion="5.0")
peft: Any = pytest.importorskip("peft")
T: Any = transformers

SIZES = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128,
}  # fmt: skip


def llama(**more: Any) -> Any:
    torch.manual_seed(0)
    return T.LlamaForCausalLM(T.LlamaConfig(**SIZES | more)).eval()


def adapter(rank: int, modules: tuple[str, ...] = ("q_proj", "v_proj"), **more: Any) -> Any:
    # Weights that are not zero, which untrained adapters have.
    return peft.LoraConfig(r=rank, lora_alpha=3 * rank, target_modules=list(modules), init_lora_weights=False, **more)


def tuned(rank: int = 4, **more: Any) -> Any:
    return peft.get_peft_model(llama(), adapter(rank, **more)).eval()


def inputs(batch: int = 2, sequence: int = 5) -> dict[str, Any]:
    torch.manual_seed(batch)
    ids = torch.randint(0, 64, (batch, sequence))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "use_cache": False}


def eager(model: Any, call: dict[str, Any]) -> np.ndarray[Any, Any]:
    with torch.no_grad():
        return np.asarray(model(**call).logits)


def run(session: Any, call: dict[str, Any], file: Path | None = None) -> np.ndarray[Any, Any]:
    options = onnxruntime.RunOptions()
    if file is not None:
        loaded = onnxruntime.LoraAdapter()
        loaded.Load(str(file))
        options.add_active_adapter(loaded)
    feeds = {name: value.numpy() for name, value in call.items() if isinstance(value, torch.Tensor)}
    return np.asarray(session.run(["logits"], feeds, options)[0])


def off(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> float:
    return float(np.abs(got - want).max() / np.abs(want).max())


def opened(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def data_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.data")}


def test_two_adapters_of_different_rank_in_one_session(tmp_path: Path) -> None:
    model = tuned(4)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    result = fairlead.export(model, inputs(), tmp_path / "model.onnx", lora="inputs")
    assert "lora_rank" in {symbol.name for symbol in result.contract.symbols}
    assert "with the adapter's file against the model as it stands" in result.contract.verified
    onnx.checker.check_model(str(tmp_path / "model.onnx"), full_check=True)
    model.add_adapter("other", adapter(7, lora_dropout=0.1))
    model.set_adapter("other")
    model.eval()
    assert fairlead.adapters.export_adapter(model, tmp_path / "other.onnx_adapter") == str(
        tmp_path / "other.onnx_adapter"
    )
    session = opened(tmp_path / "model.onnx")
    for sizes in ((1, 1), (3, 11)):
        call = inputs(*sizes)
        found = {}
        for name, file in (("default", "model"), ("other", "other"), ("default", "model")):
            model.set_adapter(name)
            model.eval()
            found[name] = eager(model, call)
            assert off(run(session, call, tmp_path / f"{file}.onnx_adapter"), found[name]) < 1e-5
        with model.disable_adapter():
            found["base"] = eager(model, call)
        assert off(run(session, call), found["base"]) < 1e-5, "without an adapter"
        assert min(off(found["default"], found["other"]), off(found["default"], found["base"])) > 1e-2
    after = {name: tensor for name, tensor in model.state_dict().items() if name in before}
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items()), "the model is as it was"
    assert not any("forward" in vars(module) for module in model.modules())


def test_weights_are_those_of_the_base_file(tmp_path: Path) -> None:
    for name in ("base", "tuned"):
        (tmp_path / name).mkdir()
    fairlead.export(llama(), inputs(), tmp_path / "base/model.onnx", external_data="always")
    fairlead.export(tuned(), inputs(), tmp_path / "tuned/model.onnx", external_data="always", lora="inputs")
    assert data_of(tmp_path / "base")
    assert data_of(tmp_path / "tuned") == data_of(tmp_path / "base"), "the same bytes under the same name"


def test_an_adapter_with_a_cache_names_and_shapes_of_ones_own(tmp_path: Path) -> None:
    """Layers of different rank, an embedding, positional arguments, dynamic_shapes and names."""
    model = tuned(
        4, modules=("q_proj", "down_proj", "embed_tokens"), rank_pattern={"down_proj": 6}, use_rslora=True,
    )  # fmt: skip
    call = inputs()
    given = (call["input_ids"], call["attention_mask"])
    result = fairlead.export(
        model, given, tmp_path / "model.onnx", lora="inputs", input_names=["ids", "mask"],
        dynamic_shapes=({0: "n", 1: "length"}, {0: "n", 1: "length"}),
    )  # fmt: skip
    assert {symbol.name for symbol in result.contract.symbols} == {"n", "length", "lora_rank_4", "lora_rank_6"}
    session = opened(tmp_path / "model.onnx")
    names = [row.name for row in session.get_overridable_initializers()]
    assert [row.name for row in session.get_inputs()] == ["ids", "mask"]
    assert "model.embed_tokens.lora_A.weight" in names
    assert len(names) == 10
    assert any(output.name == "present.0.key" for output in session.get_outputs())
    other = inputs(3, 8)
    feeds = {"ids": other["input_ids"], "mask": other["attention_mask"]}
    assert off(run(session, feeds, tmp_path / "model.onnx_adapter"), eager(model, other)) < 1e-5


def test_merged_and_as_it_stands(tmp_path: Path) -> None:
    model = tuned(4, modules=("q_proj", "embed_tokens"))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for how, words in (("merge", "with merged weights against the model as it stands"), (None, "worst difference")):
        path = tmp_path / f"{how}.onnx"
        result = fairlead.export(model, inputs(), path, lora=how)
        assert words in result.contract.verified
        other = inputs(3, 8)
        assert off(run(opened(path), other), eager(model, other)) < 1e-5
    assert not list(tmp_path.glob("*.onnx_adapter"))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    nodes = [len(onnx.load(str(tmp_path / f"{how}.onnx")).graph.node) for how in ("merge", None)]
    base = fairlead.export(llama(), inputs(), tmp_path / "base.onnx")
    assert nodes[0] == base.nodes < nodes[1], "nothing of the adapter is left to compute"


def test_several_active_adapters_are_merged(tmp_path: Path) -> None:
    model = tuned(4)
    model.add_adapter("other", adapter(2, ("q_proj", "k_proj")))
    model.base_model.set_adapter(["default", "other"])
    model.eval()
    with pytest.raises(InvalidInput, match=r"Expected one active adapter, got 2 \(default, other\)"):
        fairlead.export(model, inputs(), tmp_path / "model.onnx", lora="inputs")
    assert not list(tmp_path.iterdir())
    fairlead.export(model, inputs(), tmp_path / "model.onnx", lora="merge")
    other = inputs(3, 8)
    assert off(run(opened(tmp_path / "model.onnx"), other), eager(model, other)) < 1e-5


class OwnLinear(torch.nn.Module):
    """As many write it themselves: nothing of PEFT's."""

    def __init__(self, base_layer: torch.nn.Linear, rank: int, wrong: float = 1.0):
        super().__init__()
        self.base_layer, self.scaling, self.wrong = base_layer, 0.5, wrong
        self.lora_A = torch.nn.Linear(base_layer.in_features, rank, bias=False)
        self.lora_B = torch.nn.Linear(rank, base_layer.out_features, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base_layer(x) + self.lora_B(self.lora_A(x)) * self.scaling * self.wrong


def own(wrong: float = 1.0) -> Any:
    return torch.nn.Sequential(OwnLinear(torch.nn.Linear(8, 6), 3, wrong), torch.nn.Tanh()).eval()


@pytest.mark.parametrize("how", ["inputs", "merge"])
def test_layers_are_found_by_structure(tmp_path: Path, how: str) -> None:
    model = own()
    fairlead.export(model, (torch.randn(4, 8),), tmp_path / "model.onnx", lora=how)
    with pytest.raises(Discrepancy, match=r"Expected layers that compute base_layer\(x\) \+ lora_B\(lora_A\(x\)\)"):
        fairlead.export(own(2.0), (torch.randn(4, 8),), tmp_path / "wrong.onnx", lora=how, verify=False)
    assert not list(tmp_path.glob("wrong*"))


class Packed(torch.nn.Module):
    """A layer whose weights are integers, two of them in a byte."""

    def __init__(self, given: torch.nn.Linear):
        super().__init__()
        self.in_features, self.out_features = given.in_features, given.out_features
        integers = (given.weight / 0.1).round().clamp(-8, 7).int() + 8
        self.weight = torch.nn.Parameter(
            (integers[:, ::2] + 16 * integers[:, 1::2]).to(torch.uint8).reshape(-1, 1), requires_grad=False
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        packed = self.weight.reshape(self.out_features, -1)
        weight = torch.stack([packed & 15, packed >> 4], -1).reshape(self.out_features, -1).float() - 8
        return torch.nn.functional.linear(x, weight * 0.1)


def quantised() -> Any:
    return torch.nn.Sequential(OwnLinear(Packed(torch.nn.Linear(8, 6)), 3)).eval()  # type: ignore[arg-type]


def test_an_adapter_of_a_quantised_layer_is_inputs_beside_it(tmp_path: Path) -> None:
    model, x = quantised(), torch.randn(4, 8)
    fairlead.export(model, (x,), tmp_path / "model.onnx", lora="inputs")
    session, options = opened(tmp_path / "model.onnx"), onnxruntime.RunOptions()
    loaded = onnxruntime.LoraAdapter()
    loaded.Load(str(tmp_path / "model.onnx_adapter"))
    options.add_active_adapter(loaded)
    (row,) = session.get_inputs()
    with torch.no_grad():
        assert off(session.run(None, {row.name: x.numpy()}, options)[0], np.asarray(model(x))) < 1e-5


def merged_already() -> Any:
    model = tuned()
    model.merge_adapter()
    return model


def without_active() -> Any:
    model = tuned()
    model.base_model.disable_adapter_layers()
    return model


def uneven() -> Any:
    model = own()
    model[0].lora_B = torch.nn.Linear(2, 6, bias=False)
    return model.eval()


REFUSED: dict[str, tuple[Callable[[], Any], str, str, type[Exception], str]] = {
    "no adapter": (llama, "inputs", "model.onnx", InvalidInput, "got LlamaForCausalLM without one. Leave lora out"),
    "none active": (without_active, "merge", "model.onnx", InvalidInput, "with none that is active"),
    "merged": (merged_already, "inputs", "model.onnx", InvalidInput, "merged into it at model.layers.0.self_attn"),
    "dora": (lambda: tuned(use_dora=True), "inputs", "model.onnx", Unsupported, "Expected plain LoRA, got DoRA at"),
    "a bias": (lambda: tuned(lora_bias=True), "merge", "model.onnx", Unsupported, "got a bias of lora_B at"),
    "another module": (
        lambda: tuned(modules_to_save=["lm_head"]), "inputs", "model.onnx", Unsupported, "got lm_head, a module that",
    ),
    "two ranks": (uneven, "inputs", "model.onnx", InvalidInput, "of one rank, got 3 and 2 in 0"),
    "integers": (
        quantised, "merge", "model.onnx", Unsupported, "weights of floats to merge an adapter into, got uint8 at 0",
    ),
    "another word": (tuned, "input", "model.onnx", InvalidInput, "Expected lora as one of None, 'inputs', 'merge'"),
    "another target": (tuned, "inputs", "model.pt2", InvalidInput, "Expected a path that ends in .onnx"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_one_error(tmp_path: Path, what: str) -> None:
    make, how, name, kind, words = REFUSED[what]
    model = make()
    call = (torch.randn(4, 8),) if isinstance(model, torch.nn.Sequential) else inputs()
    with pytest.raises(kind) as caught:
        fairlead.export(model, call, tmp_path / name, lora=how)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_no_file_no_adapter() -> None:
    with pytest.raises(InvalidInput, match="Expected a path with lora='inputs'"):
        fairlead.export(tuned(), inputs(), lora="inputs")


# ---- checkpoints ---------------------------------------------------------------------------------------------


def saved(tmp_path: Path, **more: Any) -> Any:
    """A checkpoint and an adapter in folders; the model of both."""
    base = llama(bos_token_id=1, eos_token_id=2, pad_token_id=0)
    base.save_pretrained(tmp_path / "base")
    model = peft.get_peft_model(base, adapter(4, **more)).eval()
    model.save_pretrained(tmp_path / "adapter")
    return model


def test_a_checkpoint_with_an_adapter_in_a_folder(tmp_path: Path) -> None:
    model = saved(tmp_path, use_dora=True)  # which PEFT merges
    said = CliRunner().invoke(
        command, ["export", f"{tmp_path}/base", f"{tmp_path}/out", "--adapter", f"{tmp_path}/adapter", "--quiet"]
    )
    assert said.exit_code == 0, said.output
    assert "is merged into the weights" in said.output
    session = opened(tmp_path / "out/model.onnx")
    call = inputs(3, 7)
    want = eager(model, call)
    past = {
        row.name: torch.zeros(3, row.shape[1], 0, row.shape[3])
        for row in session.get_inputs()
        if row.name.startswith("past_key_values.")
    }
    positions = {"position_ids": torch.arange(7).expand(3, -1).contiguous()}
    names = {row.name for row in session.get_inputs()}
    feeds = {name: value for name, value in (call | positions | past).items() if name in names}
    assert off(run(session, feeds), want) < 1e-4
    with model.disable_adapter():
        assert off(eager(model, call), want) > 1e-2


def with_past(session: Any, call: dict[str, Any], batch: int, sequence: int) -> dict[str, Any]:
    """The call as a decoder takes it, after nothing."""
    known = call | {"position_ids": torch.arange(sequence).expand(batch, -1).contiguous()}
    for row in session.get_inputs():
        if row.name.startswith("past_key_values."):
            known[row.name] = torch.zeros(batch, row.shape[1], 0, row.shape[3])
    return {row.name: known[row.name] for row in session.get_inputs()}


def test_a_checkpoint_with_an_adapter_as_inputs(tmp_path: Path) -> None:
    """One file for two adapters of different rank, both from folders; without one it is the base model."""
    model = saved(tmp_path)
    model.add_adapter("other", adapter(7))
    model.save_pretrained(tmp_path / "adapters", selected_adapters=["other"])
    made = {}
    for name, folder in (("default", "adapter"), ("other", "adapters/other")):
        words = ["export", f"{tmp_path}/base", f"{tmp_path}/{name}", "--adapter", f"{tmp_path}/{folder}", "--quiet"]
        said = CliRunner().invoke(command, [*words, "--lora", "inputs"])
        assert said.exit_code == 0, said.output
        assert "is inputs of the file, and a file beside it" in said.output
        made[name] = tmp_path / name / "model.onnx_adapter"
    fairlead.export_checkpoint(tmp_path / "base", tmp_path / "out")
    assert data_of(tmp_path / "out") == data_of(tmp_path / "default") == data_of(tmp_path / "other")
    weights = [initializers(tmp_path / name / "model.onnx") for name in ("out", "default")]
    assert set(weights[0].values()) <= set(weights[1].values()), "those of the base, byte for byte"
    session, call = opened(tmp_path / "default" / "model.onnx"), inputs(3, 7)
    feeds = with_past(session, call, 3, 7)
    for name, file in made.items():
        model.set_adapter(name)
        model.eval()
        assert off(run(session, feeds, file), eager(model, call)) < 1e-4
    with model.disable_adapter():
        assert off(run(session, feeds), eager(model, call)) < 1e-4


@pytest.mark.parametrize("fits", [True, False])
def test_a_base_in_place_with_an_adapter_as_inputs(tmp_path: Path, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = saved(tmp_path)
    weights = (tmp_path / "base" / "model.safetensors").read_bytes()
    if not fits:
        monkeypatch.setattr("fairlead.checkpoint.in_place.free_memory", lambda: 10_000)
    words = ["export", f"{tmp_path}/base", "--in-place", "--adapter", f"{tmp_path}/adapter", "--lora", "inputs"]
    said = CliRunner().invoke(command, [*words, "--quiet"])
    assert said.exit_code == 0, said.output
    assert "referred to where they are" in said.output
    assert (tmp_path / "base" / "model.safetensors").read_bytes() == weights
    assert not list((tmp_path / "base").glob("*.data"))
    session, call = opened(tmp_path / "base" / "model.onnx"), inputs(3, 7)
    feeds = with_past(session, call, 3, 7)
    assert off(run(session, feeds, tmp_path / "base" / "model.onnx_adapter"), eager(model, call)) < 1e-4
    with model.disable_adapter():
        assert off(run(session, feeds), eager(model, call)) < 1e-4
    model.add_adapter("other", adapter(7))
    model.save_pretrained(tmp_path / "adapters", selected_adapters=["other"])
    made = fairlead.export_checkpoint(
        tmp_path / "base", in_place=True, adapter=tmp_path / "adapters" / "other", lora="inputs", verify=False
    )
    assert "model.onnx_adapter" in made.files
    model.set_adapter("other")
    assert off(run(session, feeds, tmp_path / "base" / "model.onnx_adapter"), eager(model.eval(), call)) < 1e-4


def initializers(path: Path) -> dict[str, bytes]:
    return {t.name: onnx.numpy_helper.to_array(t).tobytes() for t in onnx.load(str(path)).graph.initializer if t.dims}


def test_the_base_file_is_that_of_the_base_model(tmp_path: Path) -> None:
    fairlead.export(llama(), inputs(), tmp_path / "base.onnx")
    fairlead.export(tuned(), inputs(), tmp_path / "tuned.onnx", lora="inputs")
    base, own = initializers(tmp_path / "base.onnx"), initializers(tmp_path / "tuned.onnx")
    # Names say which wrappers a weight is in; the rest of an adapter's file is empty, of rank 0.
    assert sorted(base.values()) == sorted(content for content in own.values() if content)


def test_an_adapter_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path)
    kept = peft.PeftModel.from_pretrained.__func__

    def slow(cls: Any, *args: Any, **kwargs: Any) -> Any:
        found = kept(cls, *args, **kwargs)
        path = tmp_path / "adapter" / "adapter_model.safetensors"
        save_file({name: tensor + 1 for name, tensor in load_file(path).items()}, path)
        return found

    monkeypatch.setattr(peft.PeftModel, "from_pretrained", classmethod(slow))
    with pytest.raises(InvalidInput, match=r"to stay as it is, got files that changed while they were read. Export"):
        fairlead.export_checkpoint(tmp_path / "base", tmp_path / "out", adapter=tmp_path / "adapter")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lora": "inputs"}, "Expected the folder of an adapter with lora, got none"),
        ({"lora": "input", "adapter": "adapter"}, "Expected lora as one of None, 'inputs', 'merge', got 'input'"),
        ({"lora": "inputs", "adapter": "adapter", "formats": ("pt2",)}, "Expected a portable .onnx file in a flat"),
        ({"lora": "inputs", "adapter": "adapter", "quantize": fairlead.Int4()}, "target or quantize. Leave one of"),
    ],
)
def test_what_does_not_go_with_inputs(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    saved(tmp_path)
    if "adapter" in options:
        options = options | {"adapter": tmp_path / "adapter"}
    with pytest.raises(InvalidInput, match=words):
        fairlead.export_checkpoint(tmp_path / "base", tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def in_folder(name: str, content: str | None) -> Callable[[Path], Any]:
    def change(folder: Path) -> None:
        path = folder / "adapter" / name
        path.unlink() if content is None else path.write_text(content)

    return change


def of_another_model(folder: Path) -> None:
    other = T.LlamaForCausalLM(T.LlamaConfig(**SIZES | {"hidden_size": 64}))
    peft.get_peft_model(other, adapter(4)).save_pretrained(folder / "adapter")


def without_one(folder: Path) -> None:
    path = folder / "adapter" / "adapter_model.safetensors"
    tensors = load_file(path)
    tensors.pop(next(name for name in tensors if "layers.1" in name))
    save_file(tensors, path)


WRONG: dict[str, tuple[Callable[[Path], Any], dict[str, Any], str]] = {
    "no weights": (in_folder("adapter_model.safetensors", None), {}, "without adapter_model.safetensors"),
    "no JSON": (in_folder("adapter_config.json", "{"), {}, "Expected JSON in"),
    "another kind": (in_folder("adapter_config.json", '{"peft_type": "IA3"}'), {}, "peft_type LORA in .* got 'IA3'"),
    "code": (
        in_folder("adapter_config.json", '{"peft_type": "LORA", "megatron_config": {}}'), {}, "without megatron_config",
    ),
    "another model": (of_another_model, {}, "Expected an adapter of LlamaForCausalLM in .* but peft raised"),
    "a weight less": (without_one, {}, r"got one without base_model\.model\.model\.layers\.1"),
    "in place": (lambda folder: None, {"in_place": True}, "Expected no in_place with an adapter"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_an_adapter_that_cannot_be_merged_is_one_error(tmp_path: Path, what: str) -> None:
    saved(tmp_path)
    change, options, words = WRONG[what]
    change(tmp_path)
    out = () if options else (tmp_path / "out",)
    with pytest.raises(InvalidInput, match=words) as caught:
        fairlead.export_checkpoint(tmp_path / "base", *out, adapter=tmp_path / "adapter", **options)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()
