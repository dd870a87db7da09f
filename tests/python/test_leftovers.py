"""What an earlier call left on a model for its sizes does not fix them."""

import onnxruntime
import pytest
import torch

import fairlead


class Grid(torch.nn.Module):
    """Keeps a grid for the sizes of the last call."""

    def __init__(self):
        super().__init__()
        self.grid, self.sizes = None, None

    def forward(self, x):
        if self.grid is None or self.sizes != x.shape[1:]:
            self.grid = [torch.linspace(0, 1, x.shape[1])[:, None], torch.linspace(0, 1, x.shape[2])[None]]
            self.sizes = x.shape[1:]
        return x + self.grid[0] * self.grid[1]


class Table(torch.nn.Module):
    """Keeps what belongs to the first call's sizes, whatever comes then."""

    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x):
        if self.table is None:
            self.table = torch.arange(x.shape[1]).float()
        return x[:, : len(self.table)] * self.table[: x.shape[1]]


def test_a_grid_of_the_last_sizes_is_made_anew(tmp_path):
    model = Grid().eval()
    model(torch.randn(2, 6, 7))  # as who tries a model first
    grid = model.grid
    result = fairlead.export(model, (torch.randn(2, 6, 7),), str(tmp_path / "model.onnx"))
    assert result.contract.fixed == []
    assert model.grid is grid
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    for sizes in ((1, 6, 7), (3, 11, 4), (2, 18, 21)):
        x = torch.randn(sizes)
        (got,) = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(got), model(x))


def test_a_table_that_stays_is_the_models_own(tmp_path):
    model = Table().eval()
    model(torch.randn(2, 6))
    fairlead.export(model, (torch.randn(2, 6),), str(tmp_path / "model.onnx"))
    assert len(model.table) == 6
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    x = torch.randn(3, 4)
    try:
        (got,) = session.run(None, {"x": x.numpy()})
    except Exception:
        return  # a file for 6 columns alone is right, too
    torch.testing.assert_close(torch.from_numpy(got), model(x))


class Rebuilt(torch.nn.Module):
    """Makes a module when it is called, and gives it weights that it has: BigBird does for short inputs."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        made = torch.nn.Linear(4, 4)
        made.weight, made.bias = self.inner.weight, self.inner.bias
        return made(x)


def test_weights_that_are_made_and_not_used_fix_nothing(tmp_path):
    result = fairlead.export(Rebuilt().eval(), {"x": torch.randn(3, 4)}, tmp_path / "model.onnx")
    assert [symbol.name for symbol in result.contract.symbols] == ["batch"]
    assert result.contract.assumptions == []


def test_weights_that_are_made_and_used_are_drawn(tmp_path):
    class Drawn(torch.nn.Module):
        def forward(self, x):
            return torch.nn.Linear(4, 4)(x)

    with pytest.raises(fairlead.Discrepancy, match=r"It draws with aten\.uniform\.default"):
        fairlead.export(Drawn().eval(), {"x": torch.randn(3, 4)}, tmp_path / "model.onnx")
