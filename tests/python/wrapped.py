"""A function as a model: what most tests of operators export."""

import torch


class Wrap(torch.nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn
        self.eval()

    def forward(self, *args):
        return self.fn(*args)
