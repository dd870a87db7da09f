"""Results of recurrent layers without data: PyTorch itself would go through every step of the sequence in Python."""

from __future__ import annotations

from typing import Any

import torch

LAYERS = tuple(getattr(torch._C._VariableFunctions, name) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"))
LSTM = LAYERS[0]


def recurrent(func: Any, args: tuple[Any, ...]) -> tuple[torch.Tensor, ...] | None:
    """Of a call on tensors without data; None where PyTorch has to say what is wrong with it.

    Padded: input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first. Packed sequences have
    data and batch_sizes in the place of the input, and no batch_first.
    """
    packed = isinstance(args[1], torch.Tensor) and (func is LSTM or isinstance(args[2], torch.Tensor))
    if len(args) != 9:
        return None
    data, (hx, params, biases, layers, _, _, both) = args[0], args[2 if packed else 1 :][:7]
    states = list(hx) if func is LSTM else [hx]
    ways = 2 if both else 1
    per_layer = (4 if biases else 2) + (1 if func is LSTM and states[0].shape[-1] != states[-1].shape[-1] else 0)
    first = not packed and args[8]
    batch = states[0].shape[1] if packed else data.shape[0 if first else 1]
    fits = (
        data.dim() == (2 if packed else 3)
        and data.shape[-1] == params[0].shape[1]
        and len(params) == layers * ways * per_layer
        and all(t.dim() == 3 and t.shape[0] == layers * ways and t.shape[1] == batch for t in states)
        and states[-1].shape[-1] == params[1].shape[0] // (4 if func is LSTM else 3 if func is LAYERS[1] else 1)
        and 0 not in data.shape
    )
    if not fits:
        return None
    sizes = [*data.shape[:-1], ways * states[0].shape[-1]]
    if first:
        sizes[:2] = sizes[1::-1]
    out = data.new_empty(sizes)
    return (out.transpose(0, 1) if first else out, *(state.new_empty(state.shape) for state in states))
