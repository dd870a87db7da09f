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
