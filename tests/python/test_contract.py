"""The rows of contract and result: typed, frozen, and mappings as well."""

import dataclasses
import json

import pytest
import torch
from fairlead.base.plain_json import plain_json
from fairlead.contract import Check, Contract, Expr, FixedDim, Symbol, Tensor

import fairlead


def test_rows_are_objects_and_mappings():
    row = Symbol("batch", [2, 3], 1, 8, "axis 0 of x")
    assert row.name == row["name"] == "batch"
    assert dict(row) == {"name": "batch", "tried": [2, 3], "min": 1, "max": 8, "where": "axis 0 of x"}
    assert row == dict(row)
    assert row != dataclasses.replace(row, max=9)
    assert "name" in row
    assert "size" not in row
    with pytest.raises(KeyError):
        row["size"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        row.name = "other"
    assert json.loads(plain_json(row)) == dict(row)


def test_what_a_row_does_not_have_is_not_among_its_keys():
    row = FixedDim("x", 1, 4, "asked for")
    assert list(row) == ["name", "axis", "size", "reason"]
    assert len(row) == 4
    assert row.branches is None
    assert row.get("branches") is None


def test_an_export_gives_them():
    result = fairlead.export(torch.nn.Linear(4, 2).eval(), {"input": torch.rand(3, 4)})
    contract = result.contract
    assert isinstance(contract, Contract)
    assert [type(row) for row in contract.symbols] == [Symbol]
    assert contract.inputs == [Tensor("input", "float32", [contract.symbols[0].name, "4"])]
    assert [(row.name, row.axis, row.size) for row in contract.fixed] == [("input", 1, 4)]
    assert result.discrepancies
    for row in result.discrepancies:
        assert isinstance(row, Check)
        assert row.ok
        assert row["scaled"] == row.scaled <= row.tolerance
    assert {row.kind for row in result.discrepancies} >= {"example", "unseen"}


def test_sizes_are_expressions():
    size = Expr("past + 2*batch")
    assert (size.text, str(size), repr(size)) == ("past + 2*batch", "past + 2*batch", "Expr('past + 2*batch')")
    assert size.symbols == ["past", "batch"]
    assert size.evaluate({"batch": 3, "past": 4}) == 10
    assert size.unit("batch") == 0  # a sum is no multiple
    assert Expr("4*batch").unit("batch") == 4
    assert Expr("batch").unit("past") == 0
    assert (Expr("7").value, size.value) == (7, None)
    assert len({Expr("2*n"), Expr("n + n")}) == 1
    with pytest.raises(fairlead.InvalidInput) as error:
        size.evaluate({"past": 4})
    assert str(error.value) == (
        "[evaluate] Expected a size for batch of past + 2*batch, got none. Give it by its name."
    )
    with pytest.raises(fairlead.ParseError):
        Expr("2 +")


def test_the_sizes_of_an_output_are_known_at_any_size(tmp_path):
    model = torch.nn.Flatten(0, 1).eval()
    contract = fairlead.export(model, {"input": torch.rand(3, 5, 2)}, tmp_path / "model.onnx").contract
    (output,) = contract.outputs
    assert output.at({symbol.name: 7 for symbol in contract.symbols})[0] == 49


def test_an_encoder_says_what_its_fast_path_does_otherwise(tmp_path):
    class Padded(torch.nn.Module):
        def __init__(self):
            super().__init__()
            layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.encoder = torch.nn.TransformerEncoder(layer, 1)

        def forward(self, x, mask):
            return self.encoder(x, src_key_padding_mask=mask)

    mask = torch.tensor([[False, False, False], [False, False, True]])
    contract = fairlead.export(Padded().eval(), (torch.rand(2, 3, 8), mask), tmp_path / "model.onnx").contract
    assert contract.notes[0] == (
        "encoder: nn.TransformerEncoder as without its fast path, which gives zeros at places that "
        "src_key_padding_mask leaves out"
    )


@pytest.mark.filterwarnings("error::UserWarning")
def test_inputs_that_ask_for_gradients_print_nothing(tmp_path):
    """A cache that was filled without no_grad has a history of gradients, in an input that may be a mask."""
    layer = torch.nn.Linear(3, 3)
    fairlead.export(torch.nn.Tanh().eval(), (layer(torch.rand(4, 3)),), tmp_path / "m.onnx")
