"""A model that amplifies rounding is told from a wrong file by what eager itself does."""

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
