"""Probing finds by itself which dims vary and how they hang together."""

import re

import pytest
import torch
import zoo

import fairlead


def contract_of(name, tmp_path):
    torch.manual_seed(0)
    model, inputs = zoo.MODELS[name]()
    return fairlead.export(model, inputs, tmp_path / "model.onnx").contract


def shape_of(contract, name):
    return next(row["shape"] for row in contract.inputs if row["name"] == name)


def test_one_decode_call_of_a_llama_tells_batch_sequence_past_and_their_sum(tmp_path):
    contract = contract_of("llama_decode", tmp_path)  # 2 rows, 3 new tokens, 7 cached
    assert {s["name"] for s in contract.symbols} == {"batch", "sequence", "past"}
    assert shape_of(contract, "input_ids") == ["batch", "sequence"]
    assert shape_of(contract, "attention_mask") in (["batch", "sequence + past"], ["batch", "past + sequence"])
    assert shape_of(contract, "past_key_values.1.value") == ["batch", "2", "past", "8"]
    fixed = {(row["name"], row["axis"]) for row in contract.fixed}
    assert {("past_key_values.0.key", 1), ("past_key_values.0.key", 3)} <= fixed


def test_fixed_dims_quote_the_models_own_error(tmp_path):
    contract = contract_of("llama_decode", tmp_path)
    heads = next(row for row in contract.fixed if (row["name"], row["axis"]) == ("past_key_values.0.key", 1))
    assert "RuntimeError: Sizes of tensors must match except in dimension 2" in heads["reason"]
    assert "axis 1 of past_key_values.{0..1}.key = 2: RuntimeError" in str(contract)
    assert "(at transformers/cache_utils.py:" in heads["reason"]


def test_the_two_towers_of_clip_have_batches_of_their_own(tmp_path):
    contract = contract_of("clip", tmp_path)
    text, image = shape_of(contract, "input_ids")[0], shape_of(contract, "pixel_values")[0]
    assert text != image
    assert shape_of(contract, "attention_mask")[0] == text
    assert [row["shape"] for row in contract.outputs if row["name"] == "logits_per_image"] == [[image, text]]


class Together(torch.nn.Module):
    def forward(self, x, y):
        return x + y


def test_dims_that_the_model_adds_up_share_a_symbol(tmp_path):
    contract = fairlead.export(Together().eval(), (torch.randn(3, 5), torch.randn(3, 5)), tmp_path / "m.onnx").contract
    assert shape_of(contract, "x") == shape_of(contract, "y")


class Stubborn(torch.nn.Module):
    def forward(self, x):
        if x.shape != (3, 5):
            raise ValueError("this model was made for 3 rows of 5")
        return x * 2


def test_a_model_that_refuses_every_other_size_exports_with_fixed_dims(tmp_path):
    contract = fairlead.export(Stubborn().eval(), (torch.randn(3, 5),), tmp_path / "m.onnx").contract
    assert contract.symbols == []
    assert shape_of(contract, "x") == ["3", "5"]
    (reason,) = {row["reason"] for row in contract.fixed}
    assert reason.startswith("ValueError: this model was made for 3 rows of 5 (at ")
    assert re.search(r"test_probing\.py:\d+\)$", reason)


def test_a_size_of_one_in_the_example_freezes_nothing(tmp_path):
    torch.manual_seed(0)
    model, _ = zoo.DECODERS["llama"]()
    ids = torch.randint(3, 99, (1, 6))
    with torch.no_grad():
        cache = model(input_ids=ids[:, :5], use_cache=True).past_key_values
    call = {
        "input_ids": ids[:, 5:],
        "attention_mask": torch.ones(1, 6, dtype=torch.int64),
        "past_key_values": cache,
    }
    contract = fairlead.export(model, call, tmp_path / "m.onnx").contract
    assert shape_of(contract, "input_ids") == ["batch", "sequence"]
    assert sorted(shape_of(contract, "attention_mask")[1].split(" + ")) == ["past", "sequence"]
    assert shape_of(contract, "past_key_values.0.key") == ["batch", "2", "past", "8"]


class Patches(torch.nn.Module):
    def forward(self, x):
        return x.reshape(x.shape[0], -1, 8).mean(-1)


def test_a_size_that_only_comes_in_multiples_is_one(tmp_path):
    contract = fairlead.export(Patches().eval(), (torch.randn(3, 24),), tmp_path / "m.onnx").contract
    symbol = contract.symbols[1]["name"]
    assert shape_of(contract, "x")[1] == f"8*{symbol}"


DIM = torch.export.Dim


@pytest.mark.parametrize(
    "given",
    [
        ({0: "rows"}, {0: "rows"}),
        {"x": {0: DIM("rows")}, "y": {0: DIM("rows")}},
        {"x": {0: DIM("rows", min=2, max=64)}, "y": {0: DIM("rows", min=2, max=64)}},
        ({0: DIM.DYNAMIC}, {0: DIM.DYNAMIC}),
        ({0: DIM.AUTO, 1: DIM.STATIC}, {0: DIM.AUTO, 1: None}),
    ],
    ids=["names", "Dim", "bounded", "DYNAMIC", "AUTO"],
)
def test_dynamic_shapes_as_torch_export_takes_them(given, tmp_path):
    inputs = (torch.randn(3, 5), torch.randn(3, 5))
    contract = fairlead.export(Together().eval(), inputs, tmp_path / "m.onnx", dynamic_shapes=given).contract
    assert len(contract.symbols) == 1
    assert shape_of(contract, "x")[0] == contract.symbols[0]["name"]
    assert shape_of(contract, "x")[1] == "5"


def test_a_cache_is_a_flat_list_in_dynamic_shapes(tmp_path):
    torch.manual_seed(0)
    model, call = zoo.MODELS["llama_decode"]()
    shapes = {
        "input_ids": {0: "rows", 1: "new"},
        "attention_mask": {0: "rows", 1: "all"},
        "past_key_values": [{0: "rows", 2: "cached"}] * 4,
    }
    contract = fairlead.export(model, call, tmp_path / "m.onnx", dynamic_shapes=shapes).contract
    assert shape_of(contract, "past_key_values.1.key") == ["rows", "2", "cached", "8"]


def test_several_calls_refine_what_varies(tmp_path):
    calls = [(torch.randn(4, 4), torch.randn(4, 4)), (torch.randn(2, 5), torch.randn(2, 5))]
    contract = fairlead.export(Together().eval(), calls, tmp_path / "m.onnx").contract
    assert len(contract.symbols) == 2
    assert len(set(shape_of(contract, "x"))) == 2


class Levels(torch.nn.Module):
    """What its weights made is given sizes that are elements of a tensor, as deformable attention does."""

    def __init__(self):
        super().__init__()
        self.project, self.scale = torch.nn.Linear(8, 8), torch.nn.Linear(7, 4)

    def forward(self, scale, image):
        scale = self.scale(scale)
        hidden = self.project(image.flatten(2).transpose(1, 2)).transpose(1, 2)
        shapes = torch.as_tensor([tuple(image.shape[-2:])])
        levels = [hidden.reshape(image.shape[0] * 2, 4, height, width) for height, width in shapes]
        return levels[0].sum(1) * scale.sum()


def test_sizes_read_of_a_tensor_stop_no_run_without_weights(tmp_path):
    # Large enough to be tried without weights, where the axis of `scale` refuses first.
    inputs = (torch.rand(7), torch.rand(2, 8, 150, 160))
    contract = fairlead.export(Levels().eval(), inputs, tmp_path / "model.onnx").contract
    assert [s["name"] for s in contract.symbols] == ["batch", "image_dim_2", "image_dim_3"]
    assert [(row["name"], row["axis"]) for row in contract.fixed] == [("scale", 0), ("image", 1)]


class Summed(torch.nn.Module):
    def forward(self, x):
        return x.sum((1, 3))


def test_axes_of_one_tensor_that_are_summed_up_are_free_of_each_other(tmp_path):
    contract = fairlead.export(Summed().eval(), (torch.randn(2, 3, 4, 3),), tmp_path / "m.onnx").contract
    assert len(set(shape_of(contract, "x"))) == 4
