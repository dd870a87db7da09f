"""Floats that a model computes of its sizes with Python's `//`, `%` and divmod, and integers in their place."""

import numpy as np
import pytest
import torch
from test_size_branches import agrees

import fairlead


class Limits(torch.nn.Module):
    """The limit is the integer 1 at small sizes, and a float at larger ones."""

    def forward(self, x):
        return x.clamp(max=max(0.75 * x.shape[1] // 2, 1)), x * max(x.shape[0] * 0.37 // 0.1, 2)


class Rests(torch.nn.Module):
    def forward(self, x):
        quotient, rest = divmod(x.shape[1] * 0.7, 1.5)
        return x * quotient + rest, x + x.shape[1] * 0.1 % 0.25, x - (3.5 - x.shape[1]) // 0.3


class ReshapedAs(torch.nn.Module):
    """It is copied where several rows are, and not where there is one."""

    def forward(self, x):
        return x.transpose(1, 2).reshape_as(x) + 1, x.transpose(1, 2).ravel()[1:]


class Corners(torch.nn.Module):
    def forward(self, x):
        y = x.clone()
        y[:, :: x.shape[1] - 1] = y[:, :: x.shape[1] - 1] * 2
        return y.relu()


CASES = {Limits: (3, 4), Rests: (3, 7), ReshapedAs: (2, 3, 4), Corners: (2, 5)}


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
def test_every_size(tmp_path, kind):
    shape = CASES[kind]
    result = fairlead.export(kind().eval(), (torch.randn(shape),), tmp_path / "m.onnx")
    assert not result.contract.fixed
    least = 2 if kind is Corners else 1
    others = [tuple(size + more for size in shape) for more in (1, 2, 8, 29)]
    agrees(kind().eval(), tmp_path / "m.onnx", shape, *others, (1, *shape[1:]), (2, least, *shape[2:]))


class Windows(torch.nn.Module):
    """Padded to windows that NumPy counts, as Swin UNETR does."""

    def forward(self, x):
        length = int(np.ceil(x.shape[1] / 7)) * 7
        count = np.floor(np.float64(0.5) * x.shape[1]).astype(int) + np.int64(1)
        x = torch.nn.functional.pad(x, (0, length - x.shape[1]))
        return x.unflatten(1, (-1, 7)).mean(2), x * float(np.sqrt(x.shape[0])), x[:, :count]


def test_numpy_counts(tmp_path):
    result = fairlead.export(Windows().eval(), (torch.randn(2, 10),), tmp_path / "m.onnx")
    assert not result.contract.fixed
    assert not result.contract.assumptions
    agrees(Windows().eval(), tmp_path / "m.onnx", *[(3, size) for size in range(1, 30)])
