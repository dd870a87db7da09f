"""Cases of the first families: views and arithmetic."""

import torch

from . import Case


def f(*shape):
    return lambda: (torch.randn(*shape),)


CASES = [
    Case("aten.select.int", lambda x: x.select(-1, 0), f(3, 4, 5)),
    Case("aten.view.default", lambda x: x.view(x.shape[0] * x.shape[1], -1), f(3, 4, 5)),
    Case("aten.add.Tensor", lambda x: torch.add(x, 3, alpha=2), f(3, 4)),
]
