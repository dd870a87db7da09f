"""Users' own lowerings: operators that Fairlead does not know, lowered by functions registered from Python."""

import numpy as np
import pytest
import torch

import fairlead


@torch.library.custom_op("fairlead_test::scaled_tanh", mutates_args=())
def scaled_tanh(x: torch.Tensor, scale: float) -> torch.Tensor:
    return torch.tanh(x) * scale


@torch.library.custom_op("fairlead_test::halves", mutates_args=())
def halves(x: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    a, b = x.chunk(2, dim)
    return a.clone(), b.clone()


@torch.library.custom_op("fairlead_test::add_table", mutates_args=())
def add_table(x: torch.Tensor) -> torch.Tensor:
    return x.flatten(1) + torch.arange(6.0)


class Model(torch.nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x)


@pytest.fixture
def lowering():
    """register_lowering whose registrations end with the test."""
    names = []

    def register(name):
        names.append(name)
        return fairlead.lowerings.register_lowering(name)

    yield register
    for name in names:
        fairlead.lowerings.unregister_lowering(name)


def test_operator_without_lowering_is_refused_by_name(tmp_path):
    with pytest.raises(fairlead.Unsupported, match=r"fairlead_test.scaled_tanh.default"):
        fairlead.export(Model(lambda x: scaled_tanh(x, 2.0)).eval(), (torch.randn(3, 4),), tmp_path / "m.onnx")


@pytest.mark.parametrize("name", ["fairlead_test.scaled_tanh.default", "fairlead_test::scaled_tanh", scaled_tanh])
def test_nodes_numbers_and_names(lowering, name, tmp_path):
    seen = {}

    @lowering(name)
    def lower(b):
        seen.update(operator=b.operator, dtype=b.dtype(0), rank=b.rank(0), result=b.result_dtype())
        b.result(b.op("Mul", b.op("Tanh", b.input(0)), b.number(1)))

    result = fairlead.export(Model(lambda x: scaled_tanh(x, 2.5)).eval(), (torch.randn(3, 4),), tmp_path / "m.onnx")
    assert max(row["scaled"] for row in result.discrepancies) < 1e-5
    assert seen == {
        "operator": "fairlead_test.scaled_tanh.default",
        "dtype": "float32",
        "rank": 2,
        "result": "float32",
    }


def test_several_results_and_attributes(lowering, tmp_path):
    @lowering("fairlead_test.halves.default")
    def lower(b):
        dtype = b.dtype(0)
        parts = b.op("Split", b.input(0), axis=b.axis(1), num_outputs=2, dtypes_=[dtype, dtype])
        b.result(parts[0])
        b.result(parts[1], 1)

    result = fairlead.export(Model(lambda x: halves(x, -1)).eval(), (torch.randn(3, 8),), tmp_path / "m.onnx")
    assert max(row["scaled"] for row in result.discrepancies) == 0


@pytest.mark.not_compared("the operators of the test hold a module that cannot be copied")
def test_constants_and_shapes(lowering, tmp_path):
    @lowering("fairlead_test.add_table.default")
    def lower(b):
        assert b.shape(0)[1:] == [2, 3]
        flat = b.op("Reshape", b.input(0), b.result_shape_tensor())
        b.result(b.op("Add", flat, b.constant(np.arange(6, dtype=np.float32))))

    result = fairlead.export(
        Model(add_table).eval(), (torch.randn(5, 2, 3),), tmp_path / "m.onnx", dynamic_shapes=({0: "batch"},)
    )
    assert max(row["scaled"] for row in result.discrepancies) < 1e-5


def test_registered_lowering_goes_before_the_own_one(lowering, tmp_path):
    calls = []

    @lowering(torch.ops.aten.tanh.default)
    def lower(b):
        calls.append(b.opset)
        b.result(b.op("Tanh", b.input(0)))

    fairlead.export(Model(torch.tanh).eval(), (torch.randn(3, 4),), tmp_path / "m.onnx")
    assert calls


def test_error_of_the_function_is_the_error_of_the_export(lowering, tmp_path):
    kept = []

    @lowering("fairlead_test.scaled_tanh.default")
    def lower(b):
        kept.append(b)
        raise KeyError("mine")

    model = Model(lambda x: scaled_tanh(x, 2.5)).eval()
    with pytest.raises(KeyError, match="mine"):
        fairlead.export(model, (torch.randn(3, 4),), tmp_path / "m.onnx")
    with pytest.raises(fairlead.InvalidInput, match="has returned"):
        kept[0].input(0)


def test_unsupported_names_operator_and_line(lowering, tmp_path):
    @lowering("fairlead_test.scaled_tanh.default")
    def lower(b):
        b.unsupported("only on Sundays")

    model = Model(lambda x: scaled_tanh(x, 2.5)).eval()
    with pytest.raises(fairlead.Unsupported, match=r"scaled_tanh.default: only on Sundays .*test_custom_operators.py"):
        fairlead.export(model, (torch.randn(3, 4),), tmp_path / "m.onnx")


def test_name_that_is_none_is_refused():
    with pytest.raises(fairlead.InvalidInput, match=r"mylib.myop.default"):
        fairlead.lowerings.register_lowering("tanh")
