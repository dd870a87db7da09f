"""Recurrent layers without data have the results that PyTorch's own have."""

import itertools

import pytest
import torch
from fairlead.record.light import Light
from fairlead.record.light_recurrent import LAYERS, recurrent
from torch.nn.utils.rnn import pack_padded_sequence
from torch.overrides import TorchFunctionMode


class Compared(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func in LAYERS:
            found = recurrent(func, args)
            assert [(t.shape, t.stride(), t.dtype) for t in found] == [(t.shape, t.stride(), t.dtype) for t in out]
            self.calls += 1
        return out


@pytest.mark.parametrize(
    ("make", "more"),
    [(torch.nn.LSTM, {}), (torch.nn.LSTM, {"proj_size": 3}), (torch.nn.GRU, {}), (torch.nn.RNN, {})],
)
@torch.no_grad()
def test_sizes_and_strides_are_those_of_pytorch(make, more):
    for layers, both, first, bias in itertools.product((1, 2), (False, True), (False, True), (False, True)):
        layer = make(4, 6, layers, bias=bias, bidirectional=both, batch_first=first, **more).eval()
        x = torch.randn(2, 5, 4)
        with Compared() as compared:
            layer(x)
            layer(x[0])
            layer(pack_padded_sequence(x, [5, 3] if first else [2] * 5, batch_first=first))
        assert compared.calls == 3


@torch.no_grad()
def test_what_does_not_fit_is_left_to_pytorch():
    layer = torch.nn.LSTM(4, 6, batch_first=True).eval()
    state = torch.zeros(1, 3, 6)
    light = Light(layer)
    for x in (torch.zeros(2, 5, 4), torch.zeros(3, 5, 7)):
        args = (x, (state, state), layer._flat_weights, True, 1, 0.0, False, False, True)
        assert recurrent(LAYERS[0], args) is None
        with pytest.raises(RuntimeError):
            light.call(LAYERS[0], args, None)
