"""Corners of PyTorch's functions: arguments that are rarely given, sizes near a limit, results that are rarely used."""

# ruff: noqa: B007, B905

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ..rows import bools, floats, ids, lengths, mask, row

# fmt: off
X = floats(3, 9)
Y = floats(4, 9)
IMG = floats(2, 3, 8, 10)
T = ids(3, 9, high=5)


def table(family, largest, rows, *inputs, **fields):
    for name, fn in rows.items():
        fn, given = fn if isinstance(fn, tuple) else (fn, inputs)
        row(family, name, fn, *given, largest=largest, **fields)


# ---- writes of every form ----------------------------------------------------------------------------------------------


def out_argument(x):
    y = torch.empty(x.shape[1])
    torch.sum(x, 0, out=y)
    torch.mul(y, 2, out=y[:])
    return y


def out_resized(x):
    y = torch.empty(0)
    torch.add(x, 1, out=y)
    return y.sum(1)


def out_pair(x):
    v, i = torch.empty(0), torch.empty(0, dtype=torch.long)
    torch.max(x, 1, out=(v, i))
    return v, i


def resized(x):
    y = x.clone()
    y.resize_(x.shape[1], x.shape[0])
    return y * 2


def set_to(x):
    y = torch.empty(0)
    y.set_(x[:, 2:])
    return y + 1


def through_chunks(x):
    x = x.clone()
    for k, c in enumerate(x.chunk(3, 1)):
        c.mul_(k + 1)
    return x


def through_unbind(x):
    x = x.clone()
    for k, r in enumerate(x.unbind(0)):
        r[k % x.shape[1]] = k
    return x


def through_stack(x):
    rows = list(x.clone())
    y = torch.stack(rows)
    rows[0].zero_()
    return y + rows[0]


def through_diagonal(x):
    x = x.clone()
    x.diagonal().copy_(x.diagonal().flip(0))
    x.diagonal(1).add_(1)
    return x


def through_unfold(x):
    x = x.clone()
    x.unfold(1, 3, 3)[..., 1] = 0
    return x


def through_expand(x):
    y = torch.zeros(x.shape[0], 1).expand(-1, x.shape[1]).clone()
    y[:, ::2] += x[:, ::2]
    y.T[0] -= 1
    return y


def through_real(x):
    c = torch.zeros(x.shape, dtype=torch.complex64)
    c.real = x
    torch.view_as_real(c)[..., 1].copy_(x.flip(1))
    return c.abs()


def through_bits(x):
    y = x.clone()
    y.view(torch.int32).bitwise_and_(0x7FFFFFFF)
    return y


def swapped(x):
    x = x.clone()
    x[0], x[-1] = x[-1].clone(), x[0].clone()
    x[:, 0], x[:, -1] = x[:, -1], x[:, 0]
    return x


def shifted_on_itself(x):
    x = x.clone()
    x[:, :-1] = x[:, 1:].clone()
    x[1:] -= x[:-1].clone()
    return x


def put_accumulate(x, t):
    return x.clone().put_(t % x.numel(), torch.ones(t.shape), accumulate=True)


def copied_cast(x):
    y = torch.zeros(x.shape, dtype=torch.int16)
    y.copy_(x * 100)
    y += 7
    return y


def broadcast_copy(x):
    y = torch.empty(x.shape[0], 2, x.shape[1])
    y[:] = x[:, None]
    y[..., -1:] = torch.arange(2.0)[:, None]
    return y


def scatter_ops(x, t):
    y = torch.ones(x.shape[0], 5)
    y.scatter_(1, t, x, reduce="multiply")
    return y.scatter_(1, t[:, :1], -2.0)


def index_reduce(x, t):
    return torch.ones(5, x.shape[1]).index_reduce_(0, t[0, : x.shape[0]] if t.shape[1] >= x.shape[0] else t[:, 0], x, "prod")


def slice_scatter(x):
    y = torch.slice_scatter(x, torch.zeros(x.shape[0], len(range(1, x.shape[1], 2))), 1, 1, None, 2)
    return torch.select_scatter(y, torch.ones(x.shape[0]), 1, -1)


def diagonal_scatter(x):
    return torch.diagonal_scatter(x, torch.zeros(min(x.shape)), 0)


def nested_views(x):
    y = x.clone()
    y.view(-1)[::2].view(-1)[1:].mul_(3)
    y.unsqueeze(0).transpose(1, 2)[0, 1:, 0].zero_()
    return y


def mask_chain(x):
    y = x.clone()
    y[y > 0] *= 2
    y[y < -1] = y[y < -1].abs()
    y[0, y[0] > 1] = 0
    return y


def masked_rows(x, m):
    y = x.clone()
    y[m, 1:] = -1
    y[~m, :1] += x[~m, -1:]
    return y


def index_mixed(x, t):
    y = x[None].expand(2, -1, -1).clone()
    y[1, :, t[0] % x.shape[1]] = 4.0
    y[..., 0] = x.sum(1)
    return y


def accumulate_twice(x, t):
    y = torch.zeros(5)
    y.index_put_((t.flatten(),), x.flatten(), accumulate=True)
    y.index_add_(0, t.flatten(), torch.ones(t.numel()), alpha=-2)
    return y


def view_kept(x):
    y = x.clone()
    v = y[:, 1:-1]
    w = v.mT
    y += 1
    w *= 2
    return y, v, w


def in_place_types(t):
    y = t.clone()
    y += 2
    y //= 2
    y <<= 1
    y ^= 3
    y **= 2
    y %= 7
    return y


def fill_loop(x):
    y = torch.zeros(x.shape[1], x.shape[1])
    for i in range(x.shape[1]):
        y[i, : i + 1] = x[0, : i + 1]
    return y


def fill_loop_back(x):
    y = x.clone()
    for i in range(x.shape[1] - 2, -1, -1):
        y[:, i] += 0.5 * y[:, i + 1]
    return y


def fill_by_two(x):
    y = torch.zeros(2 * x.shape[1])
    for i in range(x.shape[1]):
        y[2 * i] = x[0, i]
        y[2 * i + 1] = -x[-1, i]
    return y


table("corners: writes", 40, {
    "out=": out_argument, "out= of nothing": out_resized, "out= of two": out_pair, "resize_": resized, "set_": set_to, "chunks": through_chunks, "rows of unbind": through_unbind, "a stack is a copy": through_stack,
    "diagonals": (through_diagonal, (floats(6, 6),)), "unfold": through_unfold, "expand": through_expand, "real and imaginary": through_real, "bits of floats": through_bits, "swapped": swapped,
    "shifted": shifted_on_itself, "put_ that adds": (put_accumulate, (X, ids(6, high=9))), "copied with a cast": copied_cast, "copied wide": broadcast_copy, "scatter_ that multiplies": (scatter_ops, (X, ids(3, 1, high=5))),
    "index_reduce_": (index_reduce, (X, T)), "slice_scatter": slice_scatter, "diagonal_scatter": diagonal_scatter, "views of views": nested_views, "masks in a chain": mask_chain, "rows of a mask": (masked_rows, (X, bools(3))),
    "places and slices": (index_mixed, (X, T)), "accumulated twice": (accumulate_twice, (X, T)), "views that stay": view_kept, "operators in place": (in_place_types, (T,)), "triangle in a loop": fill_loop,
    "backwards in a loop": fill_loop_back, "every second in a loop": fill_by_two,
    "map_like where_": lambda x: x.clone().where(x > 0, -x.clone()).mul_(2), "masked_scatter_": (lambda x, m, y: x.clone().masked_scatter_(m, y), (X, bools(3, 9), X)), "index_fill_ by argsort": lambda x: x.clone().index_fill_(1, x[0].argsort()[:2], 0.0),
    "index_copy_ reversed": lambda x: torch.zeros_like(x).index_copy_(1, torch.arange(x.shape[1] - 1, -1, -1), x), "lerp_": lambda x: x.clone().lerp_(x.flip(1), 0.25), "cumsum_": lambda x: x.clone().cumsum_(1), "transpose_": lambda x: x.clone().transpose_(0, 1) * 2,
    "squeeze_ and unsqueeze_": lambda x: x.clone().unsqueeze_(1).squeeze_(1) + 1, "swapaxes_": lambda x: x.clone().swapaxes_(0, 1)[0], "t_ then write": lambda x: x.clone().t_().add_(torch.arange(x.shape[0])), "addmm_": lambda x: torch.zeros(x.shape[0], x.shape[0]).addmm_(x, x.T, beta=0.5, alpha=2),
}, X)

# ---- indices -----------------------------------------------------------------------------------------------------------

V = floats(2, 4, 5, 6)
P = ids(3, high=4)
table("corners: indices", 24, {
    "array, slice, array": lambda v, p: v[p % v.shape[0], :, p % v.shape[2]], "slice, array, array": lambda v, p: v[:, p % v.shape[1], p % v.shape[2]], "array, None, array": lambda v, p: v[p % v.shape[0], None, p % v.shape[1]],
    "None, array, Ellipsis, array": lambda v, p: v[None, p % v.shape[0], ..., p % v.shape[3]], "Ellipsis, array": lambda v, p: v[..., p % v.shape[3], :], "number, slice, array": lambda v, p: v[0, 1:, p % v.shape[2]],
    "number between arrays": lambda v, p: v[p % v.shape[0], 0, p % v.shape[2]], "column and row": lambda v, p: v[:, (p % v.shape[1])[:, None], (p % v.shape[2])[None]], "wide against narrow": lambda v, p: v[(p % v.shape[0])[:, None], (p % v.shape[1])[None, :2]],
    "mask of two, then array": lambda v, p: v[(v[..., 0] > 0)][:, p % v.shape[3]], "mask of the middle": lambda v, p: v[:, v[0, :, :, 0] > 0], "mask of the last": lambda v, p: v[..., v[0, 0, 0] > 0], "mask and number": lambda v, p: v[:, v[0, :, 0, 0] > 0, -1],
    "mask and array": lambda v, p: v[v[:, 0, 0, 0] > -9, p[:1] % v.shape[1]], "two masks": lambda v, p: v[v[:, 0, 0, 0] > -9][:, v[0, :, 0, 0] > 0], "by a stack": lambda v, p: v[:, torch.stack([p, p.flip(0)]) % v.shape[1]], "negative numbers": lambda v, p: v[-1, -2, :, -3:],
    "steps in all": lambda v, p: v[::2, 1::2, ::3, -4::2], "a tuple of slices": lambda v, p: v[tuple(slice(None, s // 2 + 1) for s in v.shape)], "meshgrid": lambda v, p: v[0][torch.meshgrid(p % v.shape[1], p % v.shape[2], indexing="ij")],
    "by argmax kept": lambda v, p: v.take_along_dim(v.argmax(2, keepdim=True), 2), "gather in the middle": lambda v, p: v.gather(1, v.argsort(1)[:, :2]), "gather of fewer": lambda v, p: v.gather(3, (p % v.shape[3])[None, None, None].expand(1, 2, 3, -1)),
    "take of negative": lambda v, p: v.take(-1 - p), "index_select of an empty": lambda v, p: v.index_select(1, p[:0]), "empty list": lambda v, p: v[:, []].sum(1), "empty slice": lambda v, p: v[:, 3:1].sum(1), "slices beyond": lambda v, p: v[:, -100:100, 2:100],
    "a bool in an index": lambda v, p: v[:, True, 0], "0-d in an index": lambda v, p: v[p[0] % v.shape[0], p[1] % v.shape[1]], "0-d ends of slices": lambda v, p: v[:, p.min() % 3 :, : p.max() + 1], "uint8 as places": lambda v, p: v[:, (p % v.shape[1]).to(torch.int32)],
    "narrow by a tensor": lambda v, p: v.narrow(3, p.min() % 2, 2), "select by an item": lambda v, p: v.select(2, p.max().item() % v.shape[2]), "unravel": lambda v, p: torch.stack(torch.unravel_index(v.flatten().argmax(), v.shape)), "ravelled": lambda v, p: v.flatten()[(p % v.shape[0]) * v[0].numel() + p],
    "nonzero as a tuple": lambda v, p: v[(v > 1).nonzero(as_tuple=True)], "argwhere": lambda v, p: torch.argwhere(v[0, 0] > 0), "where of three": lambda v, p: torch.where(v > 0, v, torch.where(v < -1, -1.0, 0.0)),
}, V, P)

# ---- convolutions, pools and resampling near their limits --------------------------------------------------------------


def conv(cls, *a, **k):
    class Conv(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = cls(*a, **k)

        def forward(self, x):
            return self.inner(x)

    return Conv


def conv_size(cls, *a, **k):
    class Conv(conv(cls, *a, **k)):
        def forward(self, x, y):
            return self.inner(x, output_size=y.shape[2:])

    return Conv


LINE = floats(2, 4, 11)
for name, model, inputs in (
    ("same, even kernel", conv(nn.Conv1d, 4, 2, 4, padding="same"), (LINE,)), ("same, dilated", conv(nn.Conv2d, 3, 2, (2, 5), padding="same", dilation=(3, 2)), (IMG,)), ("reflect", conv(nn.Conv1d, 4, 2, 5, padding=3, padding_mode="reflect"), (LINE,)),
    ("circular", conv(nn.Conv2d, 3, 2, 3, padding=(2, 1), padding_mode="circular"), (IMG,)), ("replicate, stride", conv(nn.Conv2d, 3, 6, 3, 2, padding=2, padding_mode="replicate", groups=3), (IMG,)), ("depthwise, doubled", conv(nn.Conv1d, 4, 8, 3, groups=4, dilation=3), (LINE,)),
    ("transposed, grouped", conv(nn.ConvTranspose1d, 4, 6, 4, 3, padding=1, output_padding=2, groups=2), (LINE,)), ("transposed, dilated", conv(nn.ConvTranspose2d, 3, 2, 3, 2, dilation=2, output_padding=1), (IMG,)), ("transposed, large padding", conv(nn.ConvTranspose1d, 4, 2, 3, 2, padding=2), (LINE,)),
    ("transposed to the other's size", conv_size(nn.ConvTranspose2d, 3, 2, 3, 2, padding=1), (IMG, floats(1, 1, 16, 19))), ("unbatched", conv(nn.Conv2d, 3, 2, 3), (floats(3, 8, 10),)), ("3d", conv(nn.Conv3d, 2, 2, (1, 2, 3), (2, 1, 1), padding=(0, 1, 1)), (floats(1, 2, 4, 5, 6),)),
    ("lazy", conv(nn.Sequential, nn.Conv1d(4, 4, 3, 2), nn.ReLU(), nn.ConvTranspose1d(4, 4, 3, 2)), (LINE,)), ("unpool", type("Unpool", (nn.Module,), {"forward": lambda s, x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=x.shape)}), (IMG,)),
    ("unpool line", type("UnpoolLine", (nn.Module,), {"forward": lambda s, x: F.max_unpool1d(*F.max_pool1d(x, 3, 2, return_indices=True), 3, 2)}), (floats(2, 4, 11),)),
    ("lp_pool", type("Lp", (nn.Module,), {"forward": lambda s, x: F.lp_pool2d(x, 3, 2, stride=2, ceil_mode=True)}), (IMG,)), ("fractional", type("Adapt", (nn.Module,), {"forward": lambda s, x, y: F.adaptive_avg_pool2d(x, y.shape[-2:])}), (IMG, floats(1, 3, 4))),
    ("adaptive max, with places", type("AdaptMax", (nn.Module,), {"forward": lambda s, x: F.adaptive_max_pool2d(x, (3, None), return_indices=True)}), (IMG,)), ("adaptive to its half", type("AdaptHalf", (nn.Module,), {"forward": lambda s, x: F.adaptive_avg_pool1d(x, max(1, x.shape[-1] // 2))}), (LINE,)),
    ("kernel of its size", type("Global", (nn.Module,), {"forward": lambda s, x: F.avg_pool2d(x, x.shape[-2:])}), (IMG,)), ("kernel by a size", type("Ksize", (nn.Module,), {"forward": lambda s, x: F.max_pool1d(x, x.shape[-1] // 3, 1)}), (LINE,)), ("stride by a size", type("Stride", (nn.Module,), {"forward": lambda s, x: F.avg_pool1d(x, 2, max(1, x.shape[-1] // 4))}), (LINE,)),
    ("kernel of data", type("Cross", (nn.Module,), {"forward": lambda s, x, k: F.conv2d(x, k, padding="same")}), (IMG, floats(2, 3, 3, 3))), ("correlation of two", type("Corr", (nn.Module,), {"forward": lambda s, x, k: F.conv1d(x[None], k[:, None], groups=x.shape[0])}), (floats(4, 12), floats(4, 3))),
    ("dilation by a size", type("Dil", (nn.Module,), {"forward": lambda s, x: F.conv1d(x, torch.ones(1, 4, 2), dilation=x.shape[-1] // 2)}), (LINE,)), ("padding by a size", type("Pad", (nn.Module,), {"forward": lambda s, x: F.conv1d(x, torch.ones(1, 4, 3), padding=x.shape[-1] % 4)}), (LINE,)),
    ("blurred down", type("Blur", (nn.Module,), {"forward": lambda s, x: F.conv2d(F.pad(x, (1, 2, 1, 2), mode="reflect"), torch.ones(3, 1, 4, 4) / 16, stride=2, groups=3)}), (IMG,)), ("local response", conv(nn.LocalResponseNorm, 2), (IMG,)),
    ("unfold, dilated", conv(nn.Unfold, (2, 3), 2, 1, 2), (IMG,)), ("shuffled channels", conv(nn.ChannelShuffle, 3), (floats(2, 6, 4, 5),)), ("avg, divisor", type("Avg", (nn.Module,), {"forward": lambda s, x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False) + F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, divisor_override=2)}), (IMG,)),
):
    row("corners: convolutions", name, model, *inputs, largest=40, tolerance=3.0)

table("corners: resampling", 20, {
    "to the other's size, bicubic": lambda x, y: F.interpolate(x, y.shape[-2:], mode="bicubic", align_corners=True), "to the other's size, antialias": lambda x, y: F.interpolate(x, y.shape[-2:], mode="bilinear", antialias=True), "to the other's size, area": lambda x, y: F.interpolate(x, y.shape[-2:], mode="area"),
    "longest side of 12": lambda x, y: F.interpolate(x, scale_factor=12 / max(x.shape[-2:]), mode="bilinear"), "shortest side of 6": lambda x, y: F.interpolate(x, [int(s * 6 / min(x.shape[-2:])) for s in x.shape[-2:]], mode="nearest"), "to multiples of 4": lambda x, y: F.interpolate(x, [math.ceil(s / 4) * 4 for s in x.shape[-2:]], mode="bilinear"),
    "there and back": lambda x, y: F.interpolate(F.interpolate(x, scale_factor=0.5), x.shape[-2:], mode="nearest-exact"), "factor of two sizes": lambda x, y: F.interpolate(x, scale_factor=(y.shape[-2] / x.shape[-2], y.shape[-1] / x.shape[-1]), mode="bilinear"), "one axis": lambda x, y: F.interpolate(x, (x.shape[-2], y.shape[-1]), mode="bilinear", align_corners=True),
    "line": lambda x, y: F.interpolate(x.flatten(2), y.shape[-1] * 3, mode="linear"), "uint8": lambda x, y: F.interpolate((x.abs() * 50).clamp(max=255).to(torch.uint8), y.shape[-2:], mode="nearest"), "sampled by the other": lambda x, y: F.grid_sample(x, y.permute(0, 2, 3, 1)[..., :2].tanh(), align_corners=False),
    "sampled, reflected": lambda x, y: F.grid_sample(x, y.permute(0, 2, 3, 1)[..., :2] * 1.7, mode="bilinear", padding_mode="reflection", align_corners=True), "sampled, nearest": lambda x, y: F.grid_sample(x, y.permute(0, 2, 3, 1)[..., :2], mode="nearest", padding_mode="zeros", align_corners=False),
    "affine": lambda x, y: F.grid_sample(x, F.affine_grid(torch.tensor([[[0.9, 0.1, 0.05], [-0.1, 1.1, 0.0]]]).expand(x.shape[0], -1, -1), [x.shape[0], 1, y.shape[-2], y.shape[-1]], align_corners=False), align_corners=False), "padded and cut": lambda x, y: F.pad(x, (-1, 2, 1, -2)) * 2,
    "reflect by its size": lambda x, y: F.pad(x, (x.shape[-1] - 1, 0, 0, x.shape[-2] - 1), mode="reflect"), "circular by its size": lambda x, y: F.pad(x, (x.shape[-1], 0, 0, 0), mode="circular"), "padded to the larger": lambda x, y: F.pad(x, (0, max(0, y.shape[-1] - x.shape[-1]), 0, max(0, y.shape[-2] - x.shape[-2]))),
    "padded to a square": lambda x, y: F.pad(x, (0, max(x.shape) - x.shape[-1], 0, max(x.shape) - x.shape[-2]), value=-1.0), "constant of a value": lambda x, y: F.pad(x, (1, 1), value=float(y.max())), "pad of batch": lambda x, y: F.pad(x, (0, 0, 0, 0, 0, 1, 1, 0), value=2.0),
}, IMG, floats(2, 3, 5, 7), tolerance=10.0)

# ---- reductions, sorts, products ---------------------------------------------------------------------------------------

table("corners: reductions", 65, {
    "k of a size": lambda x: x.topk(x.shape[1] // 2 + 1).values, "k of another": lambda x: (x + torch.arange(x.shape[1]) / 7).topk(min(x.shape), 1, largest=False, sorted=True).indices, "kth of a size": lambda x: x.kthvalue((x.shape[1] + 1) // 2, 1).values, "quantiles": lambda x: x.quantile(torch.tensor([0.1, 0.5, 0.9]), 1), "nanquantile": lambda x: x.log().nanquantile(0.3, 1),
    "quantile, nearest": lambda x: x.quantile(0.37, 1, interpolation="nearest"), "quantile of all": lambda x: x.quantile(0.9, interpolation="higher"), "median of an axis": lambda x: x.median(0), "median of all": lambda x: x.median(), "mode": lambda x: x.round().mode(1).values, "aminmax": lambda x: torch.aminmax(x, dim=1),
    "var of one": lambda x: x[:, :1].var(1), "std, correction 2": lambda x: x.std(1, correction=2), "var_mean of all": lambda x: torch.var_mean(x, correction=0), "norm of zeros": lambda x: F.normalize(x * 0, dim=1), "norm of infinity": lambda x: x.norm(float("inf"), 1) + x.norm(-float("inf"), 1), "norm of a half": lambda x: torch.linalg.vector_norm(x, 0.5, 1),
    "nuclear norm": lambda x: torch.linalg.matrix_norm(x, 1) + torch.linalg.matrix_norm(x, float("inf")), "logsumexp of two axes": lambda x: x.logsumexp((0, 1)), "prod of two": lambda x: x.prod(1).prod(0), "all of floats": lambda x: x.all(1), "any of floats": lambda x: x.round().any(0), "cumprod": lambda x: x.tanh().cumprod(1), "cummin": lambda x: x.cummin(1),
    "logcumsumexp backwards": lambda x: x.flip(1).logcumsumexp(1).flip(1), "diff, appended": lambda x: x.diff(dim=1, prepend=x[:, :1] * 0, append=x[:, -1:]), "second difference": lambda x: torch.diff(x, 2, 1), "sum of int8": lambda x: x.to(torch.int8).sum(1), "mean of a double": lambda x: x.mean(1, dtype=torch.float64), "sum into a half": lambda x: x.sum(1, dtype=torch.float16),
    "argmax of all": lambda x: x.argmax(), "argmax kept": lambda x: x.argmax(0, keepdim=True), "argmin of a bool's int": lambda x: (x > 0).int().argmin(1), "max against a tensor": lambda x: torch.max(x, x.mean(1, keepdim=True)), "sort of bools": lambda x: (x > 0).int().sort(dim=1, stable=True), "sort by a key": lambda x: x[:, (x[0] * 10).round().argsort(stable=True, descending=True)],
    "lexsort": lambda x: x[x[:, 1].argsort(stable=True)][x[x[:, 1].argsort(stable=True)][:, 0].round().argsort(stable=True)], "msort": lambda x: x.msort(), "rank by two sorts": lambda x: x.argsort(1).argsort(1), "unique floats": lambda x: x.round().unique(), "histc": lambda x: x.histc(7), "histogram, density": lambda x: torch.histogram(x, 5, range=(-2.0, 2.0), density=True).hist,
    "histogramdd": lambda x: torch.histogram(x[0], torch.linspace(-3, 3, 7)).hist, "searchsorted of a row": lambda x: torch.searchsorted(x.sort(1).values[0].contiguous(), x, side="right"), "bucketize, int32": lambda x: torch.bucketize(x, torch.tensor([-1.0, 0, 1]), out_int32=True), "trapz with places": lambda x: torch.trapezoid(x, torch.arange(x.shape[1]).float() ** 2),
    "cov of columns": lambda x: torch.cov(x.T, correction=0), "weighted cov": lambda x: torch.cov(x, aweights=torch.arange(1, x.shape[1] + 1).float()), "softmax of an int": lambda x: (x * 3).int().softmax(1, dtype=torch.float32), "softmin": lambda x: F.softmin(x, 0), "gumbel's argmax": lambda x: F.one_hot(x.argmax(-1), x.shape[-1]).float() - x.softmax(-1) + x.softmax(-1),
    "glu": lambda x: F.glu(x[:, : x.shape[1] // 2 * 2], 1), "threshold": lambda x: F.threshold(x, 0.1, 20), "rrelu": lambda x: F.rrelu(x), "celu and friends": lambda x: F.celu(x, 0.7) + F.selu(x) + F.elu(x, 0.3) + F.mish(x) + F.softshrink(x) + F.hardshrink(x) + F.tanhshrink(x) + F.logsigmoid(x) + F.softsign(x) + F.softplus(x, 2, 1), "prelu": lambda x: F.prelu(x[None].mT, torch.linspace(0.1, 0.5, x.shape[1])),
    "count of true": lambda x: torch.count_nonzero(x > 0), "nan aware": lambda x: torch.nansum(x.sqrt(), 1) / (~x.sqrt().isnan()).sum(1), "cosine": lambda x: F.cosine_similarity(x[:, None], x[None], dim=-1), "pdist": lambda x: F.pdist(x), "cdist, p of 1": lambda x: torch.cdist(x, x + 1, p=1.0), "cdist, p of infinity": lambda x: torch.cdist(x, x.flip(0), p=float("inf")), "pairwise_distance": lambda x: F.pairwise_distance(x, x.flip(0), p=3.0),
    "multi_dot": lambda x: torch.linalg.multi_dot([x, x.T, x]), "chain_matmul": lambda x: x @ x.T @ x, "vecdot": lambda x: torch.linalg.vecdot(x, x.flip(1)), "outer, inner, dot": lambda x: (torch.outer(x[0], x[-1]), torch.inner(x, x), x[0].dot(x[-1])), "addmv and addr": lambda x: torch.addmv(x[:, 0], x, x[0], beta=0.5) .sum() + torch.addr(x, x[:, 0], x[0], alpha=2), "baddbmm of a beta of 0": lambda x: torch.baddbmm(x * float("nan"), x[None], torch.eye(x.shape[1])[None], beta=0),
    "tensordot of a number": lambda x: torch.tensordot(x, x, dims=2), "bilinear": lambda x: F.bilinear(x, x, torch.ones(2, x.shape[1], x.shape[1])), "matrix_exp": lambda x: torch.matrix_exp((x @ x.T) / x.numel()), "solve": lambda x: torch.linalg.solve(x @ x.T + 3 * torch.eye(x.shape[0]), x), "triangular": lambda x: torch.linalg.solve_triangular((x @ x.T).tril() + 3 * torch.eye(x.shape[0]), x, upper=False),
}, X, tolerance=5.0)

# ---- types -------------------------------------------------------------------------------------------------------------

table("corners: types", 40, {
    "int8 times a float": lambda t: t.to(torch.int8) * 0.5, "uint8 minus": lambda t: t.to(torch.uint8) - 9, "uint8 shift": lambda t: (t.to(torch.uint8) << 7) >> 3, "int8 abs of the least": lambda t: (t.to(torch.int8) - 128).abs(), "int16 product": lambda t: (t.to(torch.int16) * 300).square(), "int32 into float16": lambda t: (t.to(torch.int32) * 9000).to(torch.float16),
    "float into uint8": lambda t: (t * 40.7).to(torch.uint8), "bool minus by xor": lambda t: (t > 2) ^ (t < 4), "bool times bool": lambda t: (t > 2) * (t < 4), "bool sum as int": lambda t: (t > 2).sum(dtype=torch.int8), "bool over float": lambda t: (t > 2) / 2, "bool cumsum": lambda t: (t > 2).cumsum(1), "bool max": lambda t: (t > 2).max(1).values, "bool prod": lambda t: (t > 2).prod(1),
    "bool matmul": lambda t: ((t > 2).float() @ (t > 2).float().T).bool(), "float16 overflow": lambda t: (t.half() * 30000).sum(1), "bfloat16 sums": lambda t: (t.bfloat16() / 3).sum(1).float(), "half plus double": lambda t: t.half() + torch.tensor(0.1, dtype=torch.float64), "half times 0-d": lambda t: t.half() * torch.tensor(3), "double 0-d with float": lambda t: t.float() * torch.tensor(0.1, dtype=torch.float64),
    "float 0-d with int": lambda t: t + torch.tensor(0.5), "int 0-d with int8": lambda t: t.to(torch.int8) + torch.tensor(300), "result_type": lambda t: t.to(torch.result_type(t, 1.0)), "promote_types": lambda t: t.to(torch.promote_types(torch.int8, torch.uint8)), "type_as": lambda t: t.type_as(torch.ones(1, dtype=torch.float64)), "complex of ints": lambda t: torch.view_as_real(t * 1j),
    "complex power": lambda t: torch.view_as_real((t + 1j) ** 2), "complex division": lambda t: torch.view_as_real((t + 1j) / (t - 2j)), "polar": lambda t: torch.view_as_real(torch.polar(t.float() + 1, t.float())), "complex exp": lambda t: torch.view_as_real(torch.exp(1j * t.float())), "complex cumsum": lambda t: torch.view_as_real((t + 1j * t.flip(1)).cumsum(1)), "complex matmul": lambda t: torch.view_as_real((t + 1j) @ (t - 1j).T),
    "complex where": lambda t: torch.view_as_real(torch.where(t > 2, t * 1j, t + 0j)), "complex sqrt": lambda t: torch.view_as_real((t - 2 + 0.5j).sqrt()), "complex log": lambda t: torch.view_as_real((t - 2 + 0.5j).log()), "complex tanh": lambda t: torch.view_as_real((t * 0.3 + 0.5j).tanh()), "complex mean and var": lambda t: torch.view_as_real((t * 1j + t.flip(1)).mean(1)),
    "floor_divide of negatives": lambda t: torch.floor_divide(-t, 2) + torch.div(-t, 2, rounding_mode="trunc"), "divide by a size": lambda t: (-t) // t.shape[1] + (-t) % t.shape[1], "remainder by negatives": lambda t: torch.remainder(t, -3) + torch.fmod(-t, 3), "true division of int8": lambda t: t.to(torch.int8) / t.shape[1], "pow of ints": lambda t: t ** 3 + 2 ** t, "pow of a negative": lambda t: (-t.float()) ** 3.0,
    "float floor division": lambda t: (t * 0.1) // 0.1, "round half": lambda t: (t + 0.5).round() + (-t - 0.5).round(), "round to tens": lambda t: (t * 7.0).round(decimals=-1), "frac and trunc": lambda t: (-t / 3).frac() + (-t / 3).trunc(), "frexp": lambda t: torch.frexp(t.float() + 0.3), "nextafter": lambda t: torch.nextafter(t.float(), torch.tensor(9.0)) - t, "hypot and atan2": lambda t: torch.hypot(t.float(), t.flip(1).float()) + torch.atan2(t.float(), -t.flip(1).float()),
    "xlogy of zeros": lambda t: torch.xlogy(t, t) + torch.special.xlog1py(t, t), "erf family": lambda t: torch.erf(t / 3) + torch.erfc(t / 3) + torch.erfinv(t / 9), "gamma family": lambda t: torch.lgamma(t + 0.5) + torch.digamma(t + 0.5), "bessel": lambda t: torch.special.i0e(t.float()) + torch.special.i1(t / 5) + torch.sinc(t / 3), "logit": lambda t: torch.logit(t / 5, 1e-3) + torch.special.expit(t), "entr": lambda t: torch.special.entr(t / 5) + torch.special.ndtr(t / 5),
    "multigammaln": lambda t: torch.mvlgamma(t + 2.0, 2), "gcd with a size": lambda t: torch.gcd(t, torch.tensor(t.shape[1])), "bitwise of negatives": lambda t: (-t & 6) | (~t ^ 3), "shifts of negatives": lambda t: (-t >> 1) + (-t << 2), "isclose": lambda t: torch.isclose(t / 3, t * 0.3334, rtol=1e-3), "allclose as a factor": lambda t: t * (2 if torch.allclose(t.float(), t.flip(1).float()) else 3), "equal as a factor": lambda t: t * (2 if torch.equal(t, t.flip(1)) else 3),
    "iinfo and finfo": lambda t: t.clamp(max=torch.iinfo(torch.int8).max) + torch.finfo(torch.float32).eps, "full of the least": lambda t: torch.full((2, t.shape[1]), torch.finfo(torch.float16).min).half().softmax(1), "view of halves": lambda t: t.half().view(torch.int16) & 0x3FF, "view to wider": lambda t: t.to(torch.int8)[:, : t.shape[1] // 4 * 4].contiguous().view(torch.int32),
}, T, tolerance=3.0)

# ---- numbers of sizes --------------------------------------------------------------------------------------------------

table("corners: sizes", 65, {
    "divmod": lambda x: x[:, : divmod(x.shape[1], 4)[0] + 1] * divmod(x.shape[1], 4)[1], "closest square": lambda x: x[:, : math.isqrt(x.shape[1]) ** 2].reshape(x.shape[0], math.isqrt(x.shape[1]), -1).sum(2), "next power of two": lambda x: F.pad(x, (0, 2 ** math.ceil(math.log2(x.shape[1])) - x.shape[1])), "next power by bits": lambda x: F.pad(x, (0, (1 << (x.shape[1] - 1).bit_length()) - x.shape[1])),
    "largest divisor": lambda x: x.reshape(x.shape[0], max(d for d in range(1, 5) if x.shape[1] % d == 0), -1).sum(2), "heads that divide": lambda x: F.group_norm(x[None].mT, next(g for g in (8, 4, 3, 2, 1) if x.shape[1] % g == 0)), "rounded to even": lambda x: x[:, : round(x.shape[1] / 2)], "banker's": lambda x: x[:, : round(x.shape[1] * 0.25)], "percent": lambda x: x[:, : int(x.shape[1] * 0.8)], "at least one": lambda x: x[:, : max(1, x.shape[1] // 6)],
    "clamped k": lambda x: x.topk(max(1, min(5, x.shape[1] // 2)), 1).values, "difference of two": (lambda x, y: F.pad(x, (0, abs(x.shape[1] - y.shape[1]))), (X, floats(2, 6))), "signed difference": (lambda x, y: F.pad(x, (0, y.shape[1] - x.shape[1])) + y.mean(), (X, floats(2, 6))), "smaller of two": (lambda x, y: x[:, : min(x.shape[1], y.shape[1])] * y[:, : min(x.shape[1], y.shape[1])], (X, floats(3, 6))),
    "mean of two": (lambda x, y: torch.zeros((x.shape[1] + y.shape[1]) // 2) + x.sum() + y.sum(), (X, floats(3, 6))), "quotient of two": (lambda x, y: x.repeat_interleave(max(1, y.shape[1] // x.shape[1]), 1), (X, floats(3, 20))), "remainder of two": (lambda x, y: torch.cat([x, y[:, : x.shape[1] % y.shape[1]]], 1), (X, floats(3, 7))), "ratio rounded": (lambda x, y: x * round(y.shape[1] / x.shape[1], 2), (X, floats(3, 7))), "multiple of the other": (lambda x, y: F.pad(x, (0, -x.shape[1] % y.shape[1])).view(x.shape[0], -1, y.shape[1]) * y[0], (X, floats(3, 4))),
    "resized to the other by places": (lambda x, y: x[:, (torch.arange(y.shape[1]) * x.shape[1] / y.shape[1]).long()], (X, floats(3, 7))), "resized by linspace": (lambda x, y: x[:, torch.linspace(0, x.shape[1] - 1, y.shape[1]).round().long()], (X, floats(3, 7))), "strided to at most": (lambda x: x[:, :: max(1, math.ceil(x.shape[1] / 8))]), "ends of arange": lambda x: torch.arange(-x.shape[1] // 2, x.shape[1] // 2, 2) + x.sum(), "arange of floats": lambda x: torch.arange(0, 1, 1 / x.shape[1])[: x.shape[1] - 1] + x.mean(),
    "arange backwards": lambda x: torch.arange(x.shape[1], 0, -3) + x.sum(), "linspace of a size": lambda x: torch.linspace(-x.shape[1], x.shape[1], x.shape[1] + 1) + x.sum(), "logspace": lambda x: torch.logspace(0, -1, x.shape[1]) * x, "eye of two": lambda x: x @ torch.eye(x.shape[1], x.shape[1] + 2), "hann": lambda x: x * torch.hann_window(x.shape[1]), "hamming, symmetric": lambda x: x * torch.hamming_window(x.shape[1], periodic=False), "kaiser": lambda x: x * torch.kaiser_window(x.shape[1], True, 5.0), "blackman": lambda x: x * torch.blackman_window(x.shape[1]), "bartlett": lambda x: x * torch.bartlett_window(x.shape[1]),
    "tri by numpy": lambda x: x @ torch.from_numpy(np.tri(x.shape[1], dtype=np.float32)), "tensor of a list of sizes": lambda x: torch.tensor([x.shape[0], x.shape[1] // 2, -x.shape[1]]) * 3, "tensor of floats of sizes": lambda x: torch.tensor([1 / x.shape[1], x.shape[0] / 3]) + x.mean(), "tensor of a mixed list": lambda x: torch.tensor([[0.5, x.shape[1]], [x.shape[0], -1]]), "tensor of a range": lambda x: x * torch.tensor(range(x.shape[1])), "tensor of a formula": lambda x: x * torch.tensor([k ** 0.5 / x.shape[1] for k in range(x.shape[1])]),
    "tensor of pairs": lambda x: torch.tensor(list(itertools.product(range(x.shape[0]), range(x.shape[1])))) + x.sum().long() * 0, "alternating signs": lambda x: x * torch.tensor([(-1) ** k for k in range(x.shape[1])]), "dict of sizes": lambda x: {k: x * n for k, n in zip("ab", x.shape)}, "sum of sizes": lambda x: x * sum(x.shape) / math.prod(x.shape), "bit tricks": lambda x: x * (x.shape[1] & 3) + (x.shape[1] | 4), "lowest bit": lambda x: x * (x.shape[1] & -x.shape[1]), "is power of two": lambda x: x.cos() if x.shape[1] & (x.shape[1] - 1) == 0 else x.sin(),
    "float equal": lambda x: x.cos() if x.shape[1] / 3 == x.shape[1] // 3 else x.sin(), "between": lambda x: x.cos() if 5 <= x.shape[1] < 17 else x.sin(), "product above": lambda x: x.cos() if x.shape[0] * x.shape[1] > 100 else x.sin(), "difference above": lambda x: x.cos() if x.shape[1] - x.shape[0] > 10 else x.sin(), "twice the other": lambda x: x.cos() if x.shape[1] > 2 * x.shape[0] else x.sin(), "both even or both odd": lambda x: x.cos() if x.shape[0] % 2 == x.shape[1] % 2 else x.sin(), "square": lambda x: x.T @ x if x.shape[0] == x.shape[1] else x.sum(0), "larger first": lambda x: x if x.shape[0] >= x.shape[1] else x.T,
    "last chunk shorter": lambda x: [c.mean(1) for c in x.split(math.ceil(x.shape[1] / 3), 1)], "tensor_split": lambda x: [c.sum(1) for c in x.tensor_split(4, 1)], "split by parts of it": lambda x: x.split([x.shape[1] // 3, x.shape[1] - x.shape[1] // 3], 1), "tensor_split at": lambda x: [c.sum(1) for c in x.tensor_split((2, x.shape[1] // 2), 1)], "hsplit": lambda x: [c.sum(1) for c in x.hsplit([3, 5])], "chunk of more": lambda x: x[:, :2].chunk(5, 1), "unflatten of -1": lambda x: x.unflatten(1, (-1, 1)).flatten(0, 1), "repeat to at least": lambda x: x.repeat(1, math.ceil(20 / x.shape[1]))[:, :20], "tiled to the square": lambda x: x.repeat(math.ceil(x.shape[1] / x.shape[0]), 1)[: x.shape[1]] @ x.T,
}, X)

# ---- values read -------------------------------------------------------------------------------------------------------


def while_value(x):
    n = 0
    while x.norm() > 1 and n < 8:
        x, n = x * 0.7, n + 1
    return x, n


def until_sorted(x):
    x = x[0, :5].clone()
    while not bool((x[1:] >= x[:-1]).all()):
        x = torch.cat([torch.minimum(x[:-1], x[1:])[:1], x[1:].sort().values])
        x = x.sort().values
    return x


def each_found(x):
    total = torch.zeros(x.shape[0])
    for k in (x[0] > 0.5).nonzero().flatten().tolist():
        total = total + x[:, k]
    return total


def each_pair(x):
    total = torch.zeros(())
    for a, b in (x > 1).nonzero().tolist():
        total = total + x[a, b] * (a + 1)
    return total


def each_tensor_place(x):
    y = x.clone()
    for k in torch.nonzero(x[:, 0] > 0):
        y[k] = 0
    return y


def count_then_reshape(x):
    picked = x[:, (x > 0).any(0)]
    return picked.reshape(-1, x.shape[0]).sum(1)


def first_or_zero(x):
    places = (x[0] > 1).nonzero()
    return x[:, int(places[0])] if len(places) else x[:, 0] * 0


def histogram_peak(t):
    return t == int(t.flatten().bincount().argmax())


def longest_run(t):
    best = run = 0
    for hit in (t[0] > 1).tolist():
        run = run + 1 if hit else 0
        best = max(best, run)
    return t * best


def sequence_ends(x, l):
    ends = l.cumsum(0)
    return torch.stack([x.flatten()[: int(e)].sum() for e in ends])


def bucketed(x, l):
    n = int(l.max())
    n = 4 if n <= 4 else 8 if n <= 8 else 16
    return F.pad(x, (0, 16))[:, :n]


def trimmed(x, m):
    used = m.bool().any(0).nonzero().max().item() + 1
    return x[:, :used]


def scalar_chain(x):
    a, b = x.max().item(), x.min().item()
    mid = (a + b) / 2
    return x - mid if a - b > 1e-3 else x


def steps_counted(x, t):
    v, k = (t != 0).sum().item(), 0
    for i in range(0, v, 3):
        k += min(3, v - i) % 3
    return F.pad(x, (0, k if 0 <= k < 61 else 30))


def formatted(x, l):
    return x * float(f"{int(l.max()) / 4:.1f}")


def caught(x):
    try:
        return x[:, int(x.sum().abs()) + 3]
    except IndexError:
        return x[:, -1]


table("corners: reads", 24, {
    "while a norm": while_value, "until sorted": until_sorted, "each that is found": each_found, "each pair": each_pair, "each place as a tensor": each_tensor_place, "reshape of a count": count_then_reshape, "first or zero": first_or_zero, "most frequent": (histogram_peak, (T,)), "longest run": (longest_run, (T,)),
    "ends of sequences": (sequence_ends, (X, lengths(3))), "bucketed": (bucketed, (X, lengths(3))), "trimmed": (trimmed, (X, mask(3, 9))), "middle": scalar_chain, "steps counted": (steps_counted, (floats(3, 17), ids(3, 17, high=9))), "formatted": (formatted, (X, lengths(3))), "caught": caught,
    "one_hot of a read": (lambda x, l: F.one_hot(l, int(l.max()) + 1), (X, lengths(3))), "one_hot, open": (lambda x, l: F.one_hot(l).sum(0), (X, lengths(3))), "repeat by read": (lambda x, l: x.repeat_interleave(l, 0, output_size=int(l.sum())), (X, lengths(3))), "diag of counts": (lambda t: torch.diag(t.flatten().bincount()), (T,)), "counts of kinds": (lambda t: t.unique(return_counts=True)[1].max() * t, (T,)),
    "rows of unique": (lambda t: (t // 2).unique(dim=0).shape[0] * t, (T,)), "arange by a maximum": (lambda t: torch.arange(int(t.max()) + 1), (T,)), "eye by a maximum": (lambda t: torch.eye(int(t.max()) + 1)[t], (T,)), "pad by a minimum": (lambda x, t: F.pad(x, (int(t.min()), 0)), (X, T)), "roll by a value": (lambda x, t: x.roll(int(t[0, 0]), 1), (X, T)), "shift by each": (lambda x, t: torch.stack([r.roll(int(k)) for r, k in zip(x, t[:, 0])]), (X, T)),
    "flip if": lambda x: x.flip(1) if x[0, 0] > x[0, -1] else x, "transpose if": lambda x: x.T.sum(1) if x.sum() > 0 else x.sum(0), "ternary chain": lambda x: x * (1 if x.mean() > 0.1 else -1 if x.mean() < -0.1 else 0), "bool in arithmetic": lambda x: x * (x.sum() > 0).item() + int(x.mean() > 0), "max of items": lambda x: x / max(abs(x.max().item()), abs(x.min().item()), 1e-6), "sorted items": lambda x: x * sorted(x[:, 0].tolist())[-1],
    "set of items": (lambda t: t * len(set(t[0].tolist())), (T,)), "in a list of items": (lambda t: t * 2 if 3 in t[0].tolist() else t, (T,)), "all of a generator": lambda x: x * 2 if all(v > -1 for v in x[0].tolist()) else x, "python min with a size": (lambda x, t: x[:, : min(x.shape[1], int(t.max()) + 1)], (X, T)), "numpy argmax": lambda x: x[:, : int(np.argmax(x[0].numpy())) + 1], "item as a dim": (lambda x, t: x.sum(int(t[0, 0]) % 2), (X, T)), "isinstance of an item": lambda x: x * (2 if isinstance(x.max().item(), float) else 3),
}, X)

# ---- layers in modes of their own --------------------------------------------------------------------------------------


def layer(make, call=None):
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = make()

        def forward(self, *xs):
            return (call or (lambda m, *xs: m(*xs)))(self.inner, *xs)

    return Layer


S = floats(3, 6, 8)
for name, model, inputs in (
    ("batch norm of the batch", layer(lambda: nn.BatchNorm1d(8, track_running_stats=False), lambda m, x: m(x.mT)), (S,)), ("batch norm, training flag", layer(lambda: nn.BatchNorm1d(8), lambda m, x: F.batch_norm(x.mT, m.running_mean.clone(), m.running_var.clone(), training=True)), (S,)), ("instance norm", layer(lambda: nn.InstanceNorm1d(8, affine=True), lambda m, x: m(x.mT)), (S,)),
    ("group norm of one", layer(lambda: nn.GroupNorm(8, 8), lambda m, x: m(x.mT)), (S,)), ("rms norm", layer(lambda: nn.RMSNorm(8)), (S,)), ("layer norm without bias", layer(lambda: nn.LayerNorm(8, bias=False)), (S,)), ("layer norm over a size", layer(nn.Identity, lambda m, x: F.layer_norm(x, x.shape[1:])), (S,)), ("weight norm", layer(lambda: nn.utils.parametrizations.weight_norm(nn.Linear(8, 3), dim=1)), (S,)),
    ("orthogonal", layer(lambda: nn.utils.parametrizations.orthogonal(nn.Linear(8, 8))), (S,)), ("embedding, max_norm", layer(lambda: nn.Embedding(9, 4, max_norm=1.0)), (T,)), ("bag, max", layer(lambda: nn.EmbeddingBag(9, 4, mode="max")), (T,)), ("bag, padding", layer(lambda: nn.EmbeddingBag(9, 4, mode="sum", padding_idx=0)), (T,)), ("bag, last offset", layer(lambda: nn.EmbeddingBag(9, 4, include_last_offset=True), lambda m, t: m(t.flatten(), torch.tensor([0, 2, t.numel()]))), (T,)),
    ("one encoder layer", layer(lambda: nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)), (S,)), ("encoder, time first", layer(lambda: nn.TransformerEncoderLayer(8, 2, 12, norm_first=True)), (S,)), ("decoder, causal", layer(lambda: nn.TransformerDecoderLayer(8, 2, 12, batch_first=True), lambda m, x, y: m(x, y, tgt_mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1]), tgt_is_causal=True)), (S, floats(3, 4, 8))),
    ("transformer", layer(lambda: nn.Transformer(8, 2, 1, 1, 12, batch_first=True)), (S, floats(3, 4, 8))), ("attention, 3-d mask", layer(lambda: nn.MultiheadAttention(8, 2, batch_first=True), lambda m, x, k: m(x, x, x, attn_mask=k[:, None].expand(-1, x.shape[1], -1).repeat_interleave(2, 0))[0]), (S, bools(3, 6))), ("attention, float mask", layer(lambda: nn.MultiheadAttention(8, 2, batch_first=True), lambda m, x: m(x, x, x, attn_mask=-torch.arange(x.shape[1]).float().expand(x.shape[1], -1), need_weights=False)[0]), (S,)),
    ("attention, unbatched", layer(lambda: nn.MultiheadAttention(8, 2), lambda m, x: m(x[0], x[0], x[0])), (S,)), ("sdpa, bool mask", layer(nn.Identity, lambda m, x, k: F.scaled_dot_product_attention(x, x, x, attn_mask=k[:, None] | torch.eye(x.shape[1], dtype=torch.bool))), (S, bools(3, 6))), ("sdpa, scale", layer(nn.Identity, lambda m, x: F.scaled_dot_product_attention(x, x[:, ::2], x[:, ::2], scale=1 / x.shape[1])), (S,)),
    ("LSTM, three layers with states", layer(lambda: nn.LSTM(8, 4, 3, batch_first=True, bidirectional=True, dropout=0.1), lambda m, x: m(x, (torch.ones(6, x.shape[0], 4), torch.zeros(6, x.shape[0], 4)))), (S,)), ("LSTM, projected both ways", layer(lambda: nn.LSTM(8, 5, 2, batch_first=True, bidirectional=True, proj_size=3)), (S,)), ("GRU without bias", layer(lambda: nn.GRU(8, 4, bias=False)), (S,)),
    ("RNN, last state", layer(lambda: nn.RNN(8, 4, batch_first=True), lambda m, x: m(x)[1].squeeze(0)), (S,)), ("GRU packed, last", layer(lambda: nn.GRU(8, 4, batch_first=True), lambda m, x, l: m(nn.utils.rnn.pack_padded_sequence(x, l, batch_first=True, enforce_sorted=False))[1]), (S, lengths(3))), ("LSTM in chunks", layer(lambda: nn.LSTM(8, 4, batch_first=True), lambda m, x: lstm_chunks(m, x)), (S,)), ("GRU cell with attention", layer(lambda: nn.GRUCell(8, 8), lambda m, x: cell_attention(m, x)), (S,)),
    ("GRU backwards by flip", layer(lambda: nn.GRU(8, 4, batch_first=True), lambda m, x: m(x.flip(1))[0].flip(1)), (S,)), ("bilinear", layer(lambda: nn.Bilinear(8, 8, 3), lambda m, x: m(x, x.flip(1))), (S,)), ("cosine loss", layer(nn.Identity, lambda m, x: F.cosine_embedding_loss(x[:, 0], x[:, -1], torch.ones(x.shape[0]), reduction="none")), (S,)), ("smooth l1", layer(nn.Identity, lambda m, x: F.smooth_l1_loss(x, x.flip(1), beta=0.5) + F.huber_loss(x, x * 0, delta=0.3)), (S,)),
    ("cross entropy, smoothed", layer(nn.Identity, lambda m, x, t: F.cross_entropy(x.mT, t % 8, label_smoothing=0.1, weight=torch.arange(1, 9).float())), (S, ids(3, 6, high=8))), ("cross entropy of parts", layer(nn.Identity, lambda m, x: F.cross_entropy(x[:, 0], x[:, 1].softmax(-1))), (S,)), ("bce with weights", layer(nn.Identity, lambda m, x: F.binary_cross_entropy_with_logits(x, (x > 0).float(), pos_weight=torch.full((8,), 3.0))), (S,)), ("kl", layer(nn.Identity, lambda m, x: F.kl_div(x.log_softmax(-1), x.flip(1).log_softmax(-1), log_target=True, reduction="batchmean")), (S,)),
    ("triplet", layer(nn.Identity, lambda m, x: F.triplet_margin_loss(x[:, 0], x[:, 1], x[:, 2], swap=True, reduction="none")), (S,)), ("nll of images", layer(nn.Identity, lambda m, x, t: F.nll_loss(x.log_softmax(-1).mT, t, ignore_index=2)), (S, ids(3, 6, high=8))), ("multi margin", layer(nn.Identity, lambda m, x: F.multi_margin_loss(x[:, 0], torch.zeros(x.shape[0], dtype=torch.long), reduction="none")), (S,)), ("poisson and gaussian", layer(nn.Identity, lambda m, x: F.poisson_nll_loss(x, x.abs()) + F.gaussian_nll_loss(x, x * 0, x.abs() + 0.1)), (S,)),
    ("hinge and soft margin", layer(nn.Identity, lambda m, x: F.hinge_embedding_loss(x, x.sign()) + F.soft_margin_loss(x, x.sign())), (S,)), ("ctc loss", layer(nn.Identity, lambda m, x, l: F.ctc_loss(x.log_softmax(-1).transpose(0, 1), torch.ones(x.shape[0], 1, dtype=torch.long), l, torch.ones(x.shape[0], dtype=torch.long))), (S, lengths(3))), ("channel dropout", layer(lambda: nn.Sequential(nn.Dropout2d(0.5), nn.AlphaDropout(0.5), nn.FeatureAlphaDropout(0.2))), (S,)),
    ("module dict", layer(lambda: nn.ModuleDict({"odd": nn.Linear(8, 2), "even": nn.Linear(8, 3)}), lambda m, x: m["odd" if x.shape[1] % 2 else "even"](x)), (S,)), ("module list by a size", layer(lambda: nn.ModuleList(nn.Linear(8, 8) for _ in range(4)), lambda m, x: by_length(m, x)), (S,)), ("parameter list", layer(lambda: nn.ParameterList(torch.ones(8) * k for k in range(3)), lambda m, x: sum(x * p for p in m)), (S,)), ("table that is too short", layer(lambda: nn.Embedding(12, 8), lambda m, x: x + m(torch.arange(x.shape[1]).clamp(max=11))), (S,)),
):
    row("corners: layers", name, model, *inputs, largest=40, tolerance=3.0)


def lstm_chunks(m, x):
    state, outs = None, []
    for c in x.split(4, 1):
        out, state = m(c, state)
        outs.append(out)
    return torch.cat(outs, 1)


def cell_attention(m, x):
    h, outs = x[:, 0], []
    for t in range(x.shape[1]):
        a = (x @ h[:, :, None]).softmax(1)
        h = m((a * x).sum(1), h)
        outs.append(h)
    return torch.stack(outs, 1)


def by_length(m, x):
    for k, lin in enumerate(m):
        if k >= x.shape[1]:
            break
        x = lin(x)
    return x


# ---- spectra -----------------------------------------------------------------------------------------------------------


def fft_conv(x, k):
    n = x.shape[1] + k.shape[1] - 1
    return torch.fft.irfft(torch.fft.rfft(x, n) * torch.fft.rfft(k, n), n)


def mel(x):
    s = torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True, pad_mode="reflect").abs().square()
    return (s.mT @ torch.ones(9, 3)).clamp(min=1e-6).log10()


def griffin(x):
    s = torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True)
    return torch.istft(s, 16, 4, window=torch.hann_window(16), length=x.shape[1])


def low_pass(x):
    f = torch.fft.rfft(x)
    f[:, f.shape[1] // 2 :] = 0
    return torch.fft.irfft(f, x.shape[1])


def autocorrelation(x):
    n = x.shape[1]
    f = torch.fft.rfft(x, 2 * n)
    return torch.fft.irfft(f * f.conj())[:, :n]


def shift_center(x):
    return torch.fft.fftshift(torch.fft.fft2(x), (-1,)).abs().log1p()


def dct(x):
    n = x.shape[1]
    v = torch.cat([x, x.flip(1)], 1)
    return (torch.fft.fft(v)[:, :n] * torch.exp(-1j * torch.pi * torch.arange(n) / (2 * n))).real


def hilbert(x):
    n = x.shape[1]
    h = torch.zeros(n)
    h[0] = 1
    h[1 : (n + 1) // 2] = 2
    if n % 2 == 0:
        h[n // 2] = 1
    return torch.fft.ifft(torch.fft.fft(x) * h).abs()


table("corners: spectra", 65, {
    "convolution": (fft_conv, (X, floats(3, 5))), "mel": (mel, (floats(2, 40),)), "there and back": (griffin, (floats(2, 40),)), "low pass": low_pass, "autocorrelation": autocorrelation, "shifted": shift_center, "cosine transform": dct, "hilbert": hilbert, "mixing": lambda x: torch.fft.fft(torch.fft.fft(x, dim=-1), dim=0).real, "ortho": lambda x: torch.fft.rfft(x, norm="ortho").abs(),
    "hfft": lambda x: torch.fft.hfft(torch.complex(x, x.flip(1))), "ihfft": lambda x: torch.view_as_real(torch.fft.ihfft(x).resolve_conj()), "irfft, odd": lambda x: torch.fft.irfft(torch.complex(x, x * 0.5), 2 * x.shape[1] - 1), "rfft2": lambda x: torch.fft.rfft2(x, s=(4, 8)).abs(), "frequencies": lambda x: x[:, : x.shape[1] // 2 + 1] * torch.fft.rfftfreq(x.shape[1], 0.5), "phase": lambda x: torch.fft.fft(x + 3)[:, 0].angle() + torch.fft.fft(x).abs().argmax(1),
}, X, tolerance=10.0)

table("corners: parts", 100, {
    "tensor_split with a rest": lambda x: torch.stack([c.mean(1) for c in x.tensor_split(4, 1)], 1), "tensor_split of rows": lambda x: torch.cat([c * k for k, c in enumerate(torch.tensor_split(x, 2, dim=0))]),
    "tensor_split in place": lambda x: (y := x.clone(), [c.mul_(k) for k, c in enumerate(y.tensor_split(3, -1))])[0], "arange by fractions": lambda x: torch.arange(0, x.shape[1], 0.7) * x.mean(), "arange from a half": lambda x: torch.arange(0.5, x.shape[1]) * x.mean(),
    "other numbers where it is compiled": lambda x: x * 2 if torch.compiler.is_compiling() else x * 3, "other numbers where it is exported": lambda x: x * 2 if torch.compiler.is_exporting() else x * 3,
    "few columns, as many rows": lambda x: x.amax(1) if x.shape[1] > 5 else x.sum(1),
}, X)

# ---- transforms of functions -------------------------------------------------------------------------------------------

table("corners: transforms", 24, {
    "vmap over two": lambda x: torch.vmap(lambda a, b: a @ b, in_dims=(0, None))(x, x[0]), "vmap of an index": lambda x: torch.vmap(lambda r: r.topk(2).values)(x), "vmap of where": lambda x: torch.vmap(lambda r: torch.where(r > r.mean(), r, 0.0))(x), "vmap in the last": lambda x: torch.vmap(lambda c: c.cumsum(0), in_dims=1, out_dims=1)(x), "vmap in chunks": lambda x: torch.vmap(lambda r: r.sort().values, chunk_size=2)(x),
    "jacfwd": lambda x: torch.func.jacfwd(lambda v: v.sin() * v.sum())(x[0]), "jvp": lambda x: torch.func.jvp(lambda v: (v ** 2).cumsum(1), (x,), (torch.ones_like(x),))[1], "vjp": lambda x: torch.func.vjp(lambda v: v.softmax(1), x)[1](torch.ones_like(x) * x)[0], "hessian": lambda x: torch.func.hessian(lambda v: (v ** 3).sum())(x[0]), "grad_and_value": lambda x: torch.func.grad_and_value(lambda v: v.tanh().sum())(x), "vmap of grad": lambda x: torch.vmap(torch.func.grad(lambda v: v.square().sum().sqrt()))(x + 2),
    "linearize": lambda x: torch.func.linearize(lambda v: v.exp(), x)[1](x), "compiled": torch.compile(lambda x: x.softmax(1) * x.shape[1], backend="eager"), "functionalize": lambda x: torch.func.functionalize(lambda v: v.clone().mul_(2))(x), "einops by hand": lambda x: x.reshape(x.shape[0], 1, -1).expand(-1, 3, -1).flatten(0, 1).unflatten(0, (-1, 3)).permute(1, 0, 2).mean(0),
}, X, tolerance=3.0)
# fmt: on
