"""Recurrent layers."""

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from . import Case


def layer(kind, *shape, batch_first=True, given=False, states=1, dtype=torch.float32, **options):
    torch.manual_seed(1)
    module = kind(4, 5, batch_first=batch_first, **options).eval().to(dtype)
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)

    def inputs():
        batch = shape[0 if batch_first else 1]
        tensors = [torch.randn(*shape, 4)]
        if given:
            tensors += [torch.randn(count, batch, 5) for _ in range(states)]
        return tuple(t.to(dtype) for t in tensors)

    def fn(x, *state):
        return module(x, state if len(state) > 1 else state[0] if state else None)

    return fn, inputs


def packed(kind, total=None, **options):
    torch.manual_seed(1)
    module = kind(4, 5, batch_first=True, **options).eval()

    def fn(x, lengths):
        rows = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        rows, state = module(rows)
        padded, lengths = pad_packed_sequence(rows, True, -1.0, x.shape[1] if total else None)
        return padded, lengths, state

    return fn, lambda: (torch.randn(3, 6, 4), torch.tensor([2, 5, 3]))


def rows_alone(x, lengths):
    return pack_padded_sequence(x, lengths).data * 2


LSTM, GRU, RNN = torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN

CASES = [
    Case("aten.lstm.input", *layer(LSTM, 2, 6)),
    Case("aten.lstm.input", *layer(LSTM, 6, 2, batch_first=False), "sequence first"),
    Case("aten.lstm.input", *layer(LSTM, 2, 6, given=True, states=2, num_layers=2), "layers, states"),
    Case("aten.lstm.input", *layer(LSTM, 2, 6, bidirectional=True, num_layers=2), "both directions"),
    Case("aten.lstm.input", *layer(LSTM, 2, 6, bias=False), "no bias"),
    Case("aten.lstm.input", *layer(LSTM, 2, 6, dtype=torch.float64), "float64"),
    Case("aten.lstm.input", *layer(LSTM, 2, 6, proj_size=3), "projection"),
    Case("aten.lstm.input", *layer(LSTM, 2, 6, proj_size=3, bidirectional=True, num_layers=2), "projection, layers"),
    Case(
        "aten.lstm.input",
        layer(LSTM, 2, 6)[0],
        lambda: (torch.randn(6, 4),),
        "without batch",
    ),
    Case("aten.gru.input", *layer(GRU, 2, 6)),
    Case(
        "aten.gru.input",
        *layer(GRU, 2, 6, given=True, bidirectional=True, num_layers=2),
        "both directions, states",
    ),
    Case("aten.gru.input", *layer(GRU, 6, 2, batch_first=False, bias=False), "no bias"),
    Case("aten.lstm.data", *packed(LSTM)),
    Case("aten.lstm.data", *packed(LSTM, total=True, bidirectional=True, num_layers=2), "both directions, layers"),
    Case("aten.lstm.data", *packed(LSTM, proj_size=3), "projection"),
    Case("aten.lstm.data", *packed(LSTM, proj_size=3, bidirectional=True, num_layers=2), "projection, both directions"),
    Case("aten.gru.data", *packed(GRU, bidirectional=True)),
    Case("aten.rnn_tanh.data", *packed(RNN)),
    Case("aten.rnn_relu.data", *packed(RNN, nonlinearity="relu")),
    Case("aten._pack_padded_sequence.default", rows_alone, lambda: (torch.randn(6, 3, 4), torch.tensor([6, 4, 1]))),
    Case("aten._pad_packed_sequence.default", *packed(LSTM), "as long as the longest"),
    Case("aten.rnn_tanh.input", *layer(RNN, 2, 6, num_layers=2)),
    Case("aten.rnn_relu.input", *layer(RNN, 2, 6, nonlinearity="relu", bidirectional=True, given=True)),
]
