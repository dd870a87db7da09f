"""A model that amplifies rounding is told from a wrong file by what eager itself does."""

import onnx
import onnxruntime
import pytest
import torch

import fairlead


class Cancels(torch.nn.Module):
    """A matrix product whose large terms cancel: the order of the sum decides the last digits."""

    def __init__(self, scale):
        super().__init__()
        weight = torch.randn(512, 8, generator=torch.Generator().manual_seed(0))
        self.weight = torch.nn.Parameter(torch.cat([weight, -weight]) * scale)

    def forward(self, x):
        return torch.cat([x, x + 1e-3], 1) @ self.weight


@pytest.mark.not_compared("eager itself is as far from exact")
def test_an_ill_conditioned_model_is_accepted_and_the_contract_says_so(tmp_path):
    x = torch.randn(3, 512, generator=torch.Generator().manual_seed(1))
    result = fairlead.export(Cancels(8.0).eval(), (x,), tmp_path / "m.onnx", dynamic_shapes={"x": {0: "rows"}})
    worst = max(row["scaled"] for row in result.discrepancies)
    assert worst <= 1e-2
    assert (worst > 1e-4) == any("rounded otherwise" in note for note in result.contract.notes)


def test_a_tolerance_that_was_given_is_kept(tmp_path):
    x = torch.randn(3, 512, generator=torch.Generator().manual_seed(1))
    shapes = {"x": {0: "rows"}}
    with pytest.raises(fairlead.Discrepancy, match="more than 1e-09"):
        fairlead.export(Cancels(8.0).eval(), (x,), tmp_path / "m.onnx", dynamic_shapes=shapes, tolerance=1e-9)


class Tails(torch.nn.Module):
    """What is left of a sigmoid close to 0 and to 1, and a sum over thousands of steps."""

    def forward(self, x, t):
        p = x.sigmoid()
        phase = torch.cumsum(t.abs(), 1)
        return p.log(), (1 - p).clamp(min=1e-5).log(), torch.nn.functional.binary_cross_entropy(p, t), phase % 1


def test_digits_that_a_logarithm_or_a_remainder_shows(tmp_path):
    """ONNX Runtime's Sigmoid is right to 1e-7 of 1, and its CumSum adds in float32; PyTorch's are closer."""
    model, path = Tails().eval(), tmp_path / "m.onnx"
    result = fairlead.export(model, (torch.randn(3, 8), torch.rand(3, 8)), path)
    assert [s["max"] > 4000 for s in result.contract.symbols] == [True, True]
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x, t = torch.linspace(-40, 40, 6000).reshape(2, 3000), torch.rand(2, 3000)
    for got, expected in zip(session.run(None, {"x": x.numpy(), "t": t.numpy()}), model(x, t), strict=True):
        torch.testing.assert_close(torch.from_numpy(got), expected, rtol=1e-5, atol=1e-5)


def test_a_sigmoid_that_only_multiplies_stays_one(tmp_path):
    class Gate(torch.nn.Module):
        def forward(self, x):
            return x * x.sigmoid(), x.log_softmax(-1)

    fairlead.export(Gate().eval(), (torch.randn(3, 8),), tmp_path / "m.onnx")
    assert "Sigmoid" in [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node]
