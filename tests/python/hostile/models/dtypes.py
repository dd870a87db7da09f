"""Element types: integers that wrap, divisions of negatives, halves, complex numbers, numbers without dimensions."""

import torch

from ..rows import bools, floats, ids, row, unit

# fmt: off

# ---- dtypes ------------------------------------------------------------------------------------------------------------


def autocast_inside(x):
    with torch.autocast("cpu", torch.bfloat16):
        return x @ x.mT


def autocast_off(x):
    with torch.autocast("cpu", enabled=False):
        return x @ x.mT


row("dtypes", "autocast inside", autocast_inside, floats(2, 5, 4))
row("dtypes", "autocast off inside", autocast_off, floats(2, 5, 4))
row("dtypes", "int8 floor division", lambda t: t // 3, ids(3, 6, high=128, low=-128, dtype=torch.int8))
row("dtypes", "int8 overflow", lambda t: t * 2 + 100, ids(3, 6, high=128, low=-128, dtype=torch.int8))
row("dtypes", "uint8 below zero", lambda t: t - 200, ids(3, 6, high=256, dtype=torch.uint8))
row("dtypes", "remainder of negatives", lambda t: (t % 7, t.fmod(7), t // 7), ids(3, 6, high=40, low=-40))
row("dtypes", "remainder of floats", lambda x: (x % 0.7, x.fmod(0.7), x // 0.7), floats(3, 6))
row("dtypes", "int over int", lambda t: t / 3 + t.sum(), ids(3, 6))
row("dtypes", "int sum of bools", lambda m: m.sum(1) / m.shape[1], bools(3, 6))
row("dtypes", "half sums", lambda x: x.half().sum(1), floats(3, 6))
row("dtypes", "double mean", lambda x: x.double().mean(1), floats(3, 6))
row("dtypes", "to int of a float", lambda x: (x * 10).long().sum(1), floats(3, 6))
row("dtypes", "rounding to even", lambda x: (x * 2).round() + (x * 4).trunc(), floats(3, 6))
row("dtypes", "mixed where", lambda x, t: torch.where(t > 3, x, t), floats(3, 6), ids(3, 6))
row("dtypes", "shift", lambda t: (t << 2) | (t >> 1), ids(3, 6))
row("dtypes", "complex", lambda x: torch.fft.fft(x).abs(), floats(3, 8))
row("dtypes", "rfft of a size", lambda x: torch.fft.rfft(x).abs().sum(1), floats(3, 9))
row("dtypes", "irfft to a size", lambda x: torch.fft.irfft(torch.fft.rfft(x), n=x.shape[-1]), floats(3, 9))
row("dtypes", "complex input", lambda x: (x * x.conj()).real.sum(1), floats(3, 6, dtype=torch.complex64))
row("dtypes", "float64 input", lambda x: x.cumsum(1) / x.shape[1], floats(3, 6, dtype=torch.float64))
row("dtypes", "float16 input", lambda x: x.softmax(-1), floats(3, 6, dtype=torch.float16))
row("dtypes", "bfloat16 input", lambda x: x * 2 + x.shape[1], floats(3, 6, dtype=torch.bfloat16))
row("dtypes", "int32 ids", lambda t: t.cumsum(1) * t.shape[1], ids(3, 6, dtype=torch.int32))
row("dtypes", "clamp with NaN bounds", lambda x: x.clamp(min=float("nan")), floats(3, 6))
row("dtypes", "clamp by tensors", lambda x, y: x.clamp(y, y + 1), floats(3, 6), floats(3, 6))
row("dtypes", "softmax of twenty thousand", lambda x: (x / 0.07).softmax(-1), floats(1, 20000), largest=8)
row("dtypes", "log of zeros", lambda x: x.log() + x.rsqrt(), unit(3, 6))
row("dtypes", "nan_to_num", lambda x: (x / x.round()).nan_to_num(1.0, 2.0, 3.0), floats(3, 6))
row("dtypes", "0-d input", lambda x, s: x * s + x.shape[1], floats(3, 6), floats())
row("dtypes", "0-d integer", lambda x, s: x[:, : int(s)].sum(1), floats(3, 9), ids(high=9, low=1))
# fmt: on
