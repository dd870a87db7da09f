"""Slices, splits, padding, interpolation: integers computed from sizes that decide how much of a tensor is used."""

import math

import torch
import torch.nn.functional as F

from ..rows import floats, row

# fmt: off

# ---- slices: bounds beyond the example, negative, fractions, both ends -------------------------------------------------

row("slices", "last twelve of six", lambda x: x[:, -12:].mean(1), floats(3, 6, 4))
row("slices", "last twelve of twenty", lambda x: x[:, -12:].mean(1), floats(3, 20, 4))
row("slices", "first twenty of six", lambda x: x[:, :20].mean(1), floats(3, 6, 4))
row("slices", "from five on", lambda x: x[:, 5:].sum(1), floats(3, 6, 4))
row("slices", "from fifty on, empty at the example", lambda x: x[:, 50:].sum(1), floats(3, 6, 4))
row("slices", "between", lambda x: x[:, 2:18], floats(3, 6, 4))
row("slices", "negative both", lambda x: x[:, -9:-3].sum(1), floats(3, 6, 4))
row("slices", "all but the last nine", lambda x: x[:, :-9].sum(1), floats(3, 12, 4))
row("slices", "at least one half", lambda x: x[: max(1, len(x) // 2)], floats(7, 3))
row("slices", "three tenths", lambda x: x[:, : int(x.shape[1] * 0.3)], floats(3, 10))
row("slices", "seven tenths by round", lambda x: x[:, : round(x.shape[1] * 0.7)], floats(3, 10))
row("slices", "half rounded to even", lambda x: x[:, : round(x.shape[1] / 2)], floats(3, 7))
row("slices", "ceil of a third", lambda x: x[:, : math.ceil(x.shape[1] / 3)], floats(3, 7))
row("slices", "square root", lambda x: x[:, : int(x.shape[1] ** 0.5)], floats(3, 10))
row("slices", "isqrt", lambda x: x[:, : math.isqrt(x.shape[1])], floats(3, 10))
row("slices", "bit length", lambda x: x[:, : x.shape[1].bit_length()], floats(3, 10))
row("slices", "log2", lambda x: x[:, : 1 + int(math.log2(x.shape[1]))], floats(3, 10))
row("slices", "step two", lambda x: x[:, ::2], floats(3, 7))
row("slices", "step from one", lambda x: x[:, 1::3], floats(3, 7))
row("slices", "step of a size", lambda x: x[:, :: max(1, x.shape[1] // 4)], floats(3, 9))
row("slices", "multiple of four", lambda x: x[:, : x.shape[1] // 4 * 4], floats(3, 9))
row("slices", "remainder of four", lambda x: x[:, : x.shape[1] % 4].sum(1), floats(3, 9))
row("slices", "the larger of two", lambda x: x[:, : max(x.shape[0], x.shape[1] - 2)], floats(3, 9))
row("slices", "the smaller of two", lambda x, y: x[:, : min(x.shape[1], y.shape[1])], floats(3, 9), floats(3, 5))
row("slices", "the smaller of two, other order", lambda x, y: x[:, : min(x.shape[1], y.shape[1])], floats(3, 5), floats(3, 9))
row("slices", "distance of two", lambda x, y: x[:, : abs(x.shape[1] - y.shape[1])], floats(3, 9), floats(3, 5))
row("slices", "cut to the other", lambda x, y: x[:, : y.shape[1]], floats(3, 9), floats(3, 5))
row("slices", "cut from the other on", lambda x, y: x[:, y.shape[1] :].sum(1), floats(3, 9), floats(3, 5))
row("slices", "the last of the other", lambda x, y: x[:, -y.shape[1] :], floats(3, 9), floats(3, 5))
row("slices", "narrow by a fraction", lambda x: x.narrow(1, x.shape[1] // 3, x.shape[1] // 2), floats(3, 9))
row("slices", "middle element", lambda x: x[:, x.shape[1] // 2], floats(3, 9))
row("slices", "select from the end", lambda x: x.select(1, -2), floats(3, 9))
row("slices", "flip of a slice", lambda x: x.flip(1)[:, :5], floats(3, 9))
row("slices", "roll by a third", lambda x: x.roll(x.shape[1] // 3, 1), floats(3, 10))
row("slices", "roll by ten", lambda x: x.roll(10, 1), floats(3, 7))
row("slices", "roll back by a size", lambda x, y: x.roll(-y.shape[0], 1), floats(3, 7), floats(4))
row("slices", "sixteen of a window", lambda x: x[:, max(0, x.shape[1] - 16) :].sum(1), floats(3, 6, 4))
row("slices", "clip to thirty-two", lambda x: x[:, : min(32, x.shape[1])].cumsum(1), floats(3, 6, 4))
row("slices", "clamp to ten to thirty", lambda x: x[:, : min(30, max(10, x.shape[1] // 2))], floats(3, 20, 4))
row("slices", "slice with negative remainder", lambda x: x[:, -x.shape[1] % 7 :], floats(3, 20))
row("slices", "divmod", lambda x: x[:, : sum(divmod(x.shape[1], 7))], floats(3, 20))
row("slices", "from both ends", lambda x: x[:, x.shape[1] // 8 : -(x.shape[1] // 8) or None], floats(3, 20))
row("slices", "or none", lambda x: x[:, : -(x.shape[1] % 3) or None], floats(3, 9))
row("slices", "numel over rows", lambda x: x.reshape(-1)[: x.numel() // 3], floats(3, 9))
row("slices", "slice object", lambda x: x[(slice(None), slice(1, x.shape[1] - 1))], floats(3, 9))
row("slices", "ellipsis from the end", lambda x: x[..., -40:, :], floats(3, 9, 2))
row("slices", "square", lambda x: x[:, : x.shape[0] ** 2], floats(3, 12))
row("slices", "triangle", lambda x: x[:, : x.shape[0] * (x.shape[0] - 1) // 2], floats(4, 12))
row("slices", "shift and mask", lambda x: x[:, : (x.shape[1] >> 1) & ~1], floats(3, 13))
row("slices", "places counted down", lambda x: x[:, torch.arange(x.shape[1] - 1, -1, -1)], floats(3, 12))
row("slices", "places counted down by two", lambda x: x[:, torch.arange(x.shape[1] - 1, 0, -2)], floats(3, 12))
row("slices", "places from below zero", lambda x: x[:, torch.arange(-4, 0)], floats(3, 12))
row("slices", "places around zero", lambda x: x[:, torch.arange(-2, 3)], floats(3, 12))
row("slices", "a reversed list of places", lambda x: x[:, list(range(x.shape[1]))[::-1]], floats(3, 12))
row("slices", "a number of torch.div", lambda x: x[:, : torch.div(x.shape[1], 2, rounding_mode="trunc")] * torch.div(x.shape[1], 3, rounding_mode="floor"), floats(3, 12))
row("slices", "a step that is one at some sizes", lambda x, y: x[:, :: 1 + (y.shape[1] // 4) % 4] + y.sum(), floats(3, 12), floats(3, 5))
row("slices", "a power below one", lambda x: x.sum(1) * 2 ** -x.shape[1], floats(3, 12))

# ---- splits ------------------------------------------------------------------------------------------------------------

row("splits", "first of twenty", lambda x: x.split(20, 1)[0], floats(3, 6))
row("splits", "last of four", lambda x: x.split(4, 1)[-1], floats(3, 6))
row("splits", "sum of tens", lambda x: sum(c.sum(0) for c in x.split(10)), floats(6, 3))
row("splits", "tens, joined", lambda x: torch.cat([c.cumsum(0) for c in x.split(10)]), floats(25, 3))
row("splits", "list of tens", lambda x: x.split(10), floats(6, 3))
row("splits", "chunk in two", lambda x: x.chunk(2, 1)[1], floats(3, 6))
row("splits", "chunk in three", lambda x: x.chunk(3, 1)[0], floats(3, 7))
row("splits", "chunk in four, swapped", lambda x: torch.cat(x.chunk(4, 1)[::-1], 1), floats(3, 8))
row("splits", "chunk in eight of six", lambda x: torch.stack([c.sum(1) for c in x.chunk(8, 1)]).amax(0), floats(3, 6))
row("splits", "halves by sizes", lambda x: x.split([x.shape[1] // 2, x.shape[1] - x.shape[1] // 2], 1)[1], floats(3, 7))
row("splits", "by the other's size", lambda x, y: x.split(y.shape[1], 1)[0], floats(3, 8), floats(3, 4))
row("splits", "tensor_split", lambda x: x.tensor_split(3, 1)[0], floats(3, 8))
row("splits", "tensor_split, last", lambda x: x.tensor_split(3, 1)[-1], floats(3, 8))
row("splits", "tensor_split at places", lambda x: x.tensor_split((2, 5), 1)[1], floats(3, 8))
row("splits", "unbind rows", lambda x: torch.stack([r.softmax(0) for r in x.unbind(0)]), floats(3, 8))
row("splits", "unbind columns", lambda x: sum(x.unbind(1)), floats(3, 8))
row("splits", "iterate over a tensor", lambda x: torch.stack([r * k for k, r in enumerate(x)]), floats(4, 3))
row("splits", "unfold by four", lambda x: x.unfold(1, 4, 2).mean(-1), floats(3, 11))
row("splits", "unfold, step beyond", lambda x: x.unfold(1, 3, 5).sum(-1), floats(3, 11))
row("splits", "quarter as a split", lambda x: x.split(math.ceil(x.shape[1] / 4), 1)[0], floats(3, 11))
row("splits", "number of chunks", lambda x: x * len(x.split(4, 1)), floats(3, 11))
row("splits", "number of chunks of chunk", lambda x: x * len(x.chunk(4, 1)), floats(3, 11))
row("splits", "hsplit in two", lambda x: torch.hsplit(x, 2)[1], floats(3, 8))

# ---- padding -----------------------------------------------------------------------------------------------------------

row("padding", "to sixteen", lambda x: F.pad(x, (0, -x.shape[1] % 16)), floats(3, 6))
row("padding", "to sixteen, at a multiple", lambda x: F.pad(x, (0, -x.shape[1] % 16)), floats(3, 32))
row("padding", "to eight by subtraction", lambda x: F.pad(x, (0, 8 - x.shape[1] % 8)), floats(3, 6))
row("padding", "to eight if needed", lambda x: F.pad(x, (0, 8 - x.shape[1] % 8)) if x.shape[1] % 8 else x, floats(3, 6))
row("padding", "to eight twice modulo", lambda x: F.pad(x, (0, (8 - x.shape[1] % 8) % 8)), floats(3, 6))
row("padding", "to a window in two axes", lambda x: F.pad(x, (0, -x.shape[3] % 7, 0, -x.shape[2] % 7)), floats(1, 2, 9, 10))
row("padding", "to at least thirty", lambda x: F.pad(x, (0, max(0, 30 - x.shape[1]))), floats(3, 6))
row("padding", "to at least thirty, beyond", lambda x: F.pad(x, (0, max(0, 30 - x.shape[1]))), floats(3, 40))
row("padding", "to the other", lambda x, y: F.pad(x, (0, max(0, y.shape[1] - x.shape[1]))), floats(3, 6), floats(3, 9))
row("padding", "cut or pad to the other", lambda x, y: F.pad(x, (0, y.shape[1] - x.shape[1])) + y, floats(3, 6), floats(3, 9))
row("padding", "negative", lambda x: F.pad(x, (-2, 3)), floats(3, 6))
row("padding", "half on both sides", lambda x: F.pad(x, (x.shape[1] // 2, (x.shape[1] + 1) // 2)), floats(3, 6))
row("padding", "reflect by two", lambda x: F.pad(x, (2, 2), mode="reflect"), floats(3, 2, 6))
row("padding", "replicate by a third", lambda x: F.pad(x, (x.shape[2] // 3, 1), mode="replicate"), floats(3, 2, 6))
row("padding", "circular", lambda x: F.pad(x, (2, 1), mode="circular"), floats(3, 2, 6))
row("padding", "same as tensorflow", lambda x: F.pad(x, (0, max((math.ceil(x.shape[-1] / 3) - 1) * 3 + 5 - x.shape[-1], 0))), floats(3, 2, 10))
row("padding", "to a power of two", lambda x: F.pad(x, (0, 2 ** math.ceil(math.log2(x.shape[1])) - x.shape[1])), floats(3, 6))
row("padding", "to a power of two by bits", lambda x: F.pad(x, (0, (1 << (x.shape[1] - 1).bit_length()) - x.shape[1])), floats(3, 6))
row("padding", "by a constant value of a size", lambda x: F.pad(x, (1, 1), value=float(x.shape[1])), floats(3, 6))
row("padding", "to a square", lambda x: F.pad(x, (0, max(x.shape[2] - x.shape[3], 0), 0, max(x.shape[3] - x.shape[2], 0))), floats(1, 2, 6, 9))
row("padding", "to a square, other side", lambda x: F.pad(x, (0, max(x.shape[2] - x.shape[3], 0), 0, max(x.shape[3] - x.shape[2], 0))), floats(1, 2, 9, 6))


def padded_windows(x):
    b, n, c = x.shape
    p = (5 - n % 5) % 5
    y = F.pad(x, (0, 0, 0, p))
    y = y.view(b, (n + p) // 5, 5, c).softmax(2)
    return y.view(b, n + p, c)[:, :n]


def padded_windows_2d(x):
    b, h, w, c = x.shape
    ph, pw = -h % 4, -w % 4
    y = F.pad(x, (0, 0, 0, pw, 0, ph))
    hh, ww = h + ph, w + pw
    y = y.view(b, hh // 4, 4, ww // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
    y = y - y.mean(1, keepdim=True)
    y = y.view(b, hh // 4, ww // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(b, hh, ww, c)
    return y[:, :h, :w]


def shifted_windows(x):
    _, h, w, _ = x.shape
    shift = 0 if min(h, w) <= 4 else 2
    y = x.roll((-shift, -shift), (1, 2)) if shift else x
    y = F.pad(y, (0, 0, 0, -w % 4, 0, -h % 4)).cumsum(1)[:, :h, :w]
    return y.roll((shift, shift), (1, 2)) if shift else y


def overlapping(x):
    n = x.shape[1]
    count = math.ceil(max(n - 6, 0) / 4) + 1
    y = F.pad(x, (0, (count - 1) * 4 + 6 - n))
    return torch.stack([y[:, k * 4 : k * 4 + 6].sum(1) for k in range(count)], 1)


row("padding", "windows of five", padded_windows, floats(2, 7, 3))
row("padding", "windows of five, at a multiple", padded_windows, floats(2, 10, 3))
row("padding", "windows in two axes", padded_windows_2d, floats(1, 6, 9, 2), largest=65)
row("padding", "shifted windows", shifted_windows, floats(1, 6, 9, 2), largest=65)
row("padding", "overlapping windows", overlapping, floats(2, 15))

# ---- interpolation -----------------------------------------------------------------------------------------------------

row("interpolate", "scale 0.37", lambda x: F.interpolate(x, scale_factor=0.37), floats(1, 2, 12))
row("interpolate", "scale 1.7", lambda x: F.interpolate(x, scale_factor=1.7), floats(1, 2, 12))
row("interpolate", "scale 0.37, linear", lambda x: F.interpolate(x, scale_factor=0.37, mode="linear"), floats(1, 2, 12))
row("interpolate", "scale 2.5 in two axes", lambda x: F.interpolate(x, scale_factor=2.5, mode="bilinear"), floats(1, 2, 5, 7), largest=65)
row("interpolate", "scale recomputed", lambda x: F.interpolate(x, scale_factor=0.6, recompute_scale_factor=True), floats(1, 2, 12))
row("interpolate", "two thirds as a size", lambda x: F.interpolate(x, size=x.shape[2] * 2 // 3), floats(1, 2, 12))
row("interpolate", "int of a fraction as a size", lambda x: F.interpolate(x, size=int(x.shape[2] * 0.3)), floats(1, 2, 12))
row("interpolate", "to the other", lambda x, y: F.interpolate(x, size=y.shape[2:], mode="bilinear", align_corners=False) + y, floats(1, 2, 5, 7), floats(1, 2, 8, 9), largest=65)
row("interpolate", "to the larger", lambda x: F.interpolate(x, size=max(x.shape[2:]), mode="nearest"), floats(1, 2, 5, 7), largest=65)
row("interpolate", "to a fixed size", lambda x: F.interpolate(x, size=(6, 6), mode="bilinear", align_corners=True), floats(1, 2, 5, 7), largest=65)
row("interpolate", "bicubic half", lambda x: F.interpolate(x, scale_factor=0.5, mode="bicubic", align_corners=False), floats(1, 2, 9, 7), largest=65)
row("interpolate", "area", lambda x: F.interpolate(x, size=x.shape[2] // 2, mode="area"), floats(1, 2, 9))
row("interpolate", "nearest-exact", lambda x: F.interpolate(x, scale_factor=0.7, mode="nearest-exact"), floats(1, 2, 9))
row("interpolate", "antialias", lambda x: F.interpolate(x, size=(4, 5), mode="bilinear", antialias=True), floats(1, 2, 9, 8), largest=65)
row("interpolate", "if larger than eight", lambda x: F.interpolate(x, size=8) if x.shape[2] > 8 else x, floats(1, 2, 5))
row("interpolate", "shorter side to twelve", lambda x: F.interpolate(x, size=(12 * x.shape[2] // min(x.shape[2:]), 12 * x.shape[3] // min(x.shape[2:]))), floats(1, 2, 5, 7), largest=65)
# fmt: on
