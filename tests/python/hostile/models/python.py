"""Integers on their way through Python: builtins, the standard library, strings, lists, and what forgets where it came from."""

import bisect
import collections
import dataclasses
import fractions
import itertools
import json
import math
import operator
import struct
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from ..rows import floats, ids, lengths, row

# fmt: off

# ---- the standard library ----------------------------------------------------------------------------------------------

row("python", "gcd", lambda x: x[:, : math.gcd(x.shape[1], 12)], floats(3, 8))
row("python", "lcm", lambda x: torch.zeros(math.lcm(x.shape[1], 4)) + x.sum(), floats(3, 6))
row("python", "choose two", lambda x: torch.zeros(math.comb(min(x.shape[1], 30), 2)) + x.sum(), floats(3, 6))
row("python", "prod of a shape", lambda x: x.reshape(math.prod(x.shape)), floats(3, 6))
row("python", "floor of a quotient", lambda x: x[:, : math.floor(x.shape[1] / 3.5)], floats(3, 9))
row("python", "log of a size", lambda x: x * math.log(x.shape[1]), floats(3, 9))
row("python", "exponential of a size", lambda x: x * math.exp(-x.shape[1] / 10), floats(3, 9))
row("python", "cosine of a size", lambda x: x * math.cos(x.shape[1]), floats(3, 9))
row("python", "power of a fraction", lambda x: x * x.shape[1] ** 0.25, floats(3, 9))
row("python", "inverse", lambda x: x * (1 / x.shape[1]), floats(3, 9))
row("python", "ratio of two", lambda x, y: x * (x.shape[1] / y.shape[1]), floats(3, 9), floats(2, 5))
row("python", "ratio of two less one", lambda x, y: x * ((x.shape[1] - 1) / (y.shape[1] + 1)), floats(3, 9), floats(2, 5))
row("python", "two to the size", lambda x: x * 2.0 ** -x.shape[1], floats(3, 9))
row("python", "float floor division", lambda x: x[:, : int(x.shape[1] // 0.7)], floats(3, 9))
row("python", "float remainder", lambda x: x * (x.shape[1] % 0.7), floats(3, 9))
row("python", "rounded to a digit", lambda x: x * round(x.shape[1] / 3, 1), floats(3, 9))
row("python", "third by floats", lambda x: x[:, : int(x.shape[1] * (1 / 3))], floats(3, 9))
row("python", "negative floor division", lambda x: x[:, : -(-x.shape[1] // 2)], floats(3, 9))
row("python", "negated quotient", lambda x: x[:, -x.shape[1] // 2 :], floats(3, 9))
row("python", "inverted bits", lambda x: x[:, : ~x.shape[1]].sum(1), floats(3, 9))
row("python", "odd by or", lambda x: torch.zeros(x.shape[1] | 1) + x.sum(), floats(3, 8))
row("python", "neighbour by xor", lambda x: torch.zeros(x.shape[1] ^ 1) + x.sum(), floats(3, 8))
row("python", "ones of its bits", lambda x: x * bin(x.shape[1]).count("1"), floats(3, 9))
row("python", "bit_count", lambda x: x * int(x.shape[1]).bit_count(), floats(3, 9))
row("python", "digits", lambda x: x * len(str(x.shape[1])), floats(3, 9))
row("python", "int of a string", lambda x: x[:, : int(str(x.shape[1])) // 2], floats(3, 9))
row("python", "int of a format", lambda x: x[:, : int(f"{x.shape[1]:d}") - 2], floats(3, 9))
row("python", "json and back", lambda x: x[:, : json.loads(json.dumps({"n": x.shape[1]}))["n"] // 2], floats(3, 9))
row("python", "struct and back", lambda x: x[:, : struct.unpack("q", struct.pack("q", x.shape[1]))[0] - 3], floats(3, 9))
row("python", "operator.index", lambda x: x[:, : operator.index(x.shape[1]) // 3], floats(3, 9))
row("python", "int of int", lambda x: x[:, : int(x.shape[1]) // 3], floats(3, 9))
row("python", "hash", lambda x: x * (hash(x.shape[1]) % 5), floats(3, 9))
row("python", "fraction", lambda x: x[:, : int(fractions.Fraction(x.shape[1], 3))], floats(3, 9))
row("python", "fraction, rounded", lambda x: x[:, : round(fractions.Fraction(2 * x.shape[1], 5))], floats(3, 9))
row("python", "length of a list", lambda x: x[:, : len([0] * x.shape[1]) // 2], floats(3, 9))
row("python", "length of a string", lambda x: x[:, : len("ab" * x.shape[1]) // 3], floats(3, 9))
row("python", "length of a filtered list", lambda x: x * len([k for k in range(x.shape[1]) if k % 3 == 1]), floats(3, 9))
row("python", "last of a range", lambda x: x[:, range(x.shape[1])[-2]], floats(3, 9))
row("python", "list of every third", lambda x: x[:, list(range(x.shape[1]))[::3]], floats(3, 9))
row("python", "list in reverse", lambda x: x[:, list(reversed(range(x.shape[1])))], floats(3, 9))
row("python", "places by a rule", lambda x: x[:, [k for k in range(x.shape[1]) if k % 4 != 1]], floats(3, 9))
row("python", "zip of two ranges", lambda x, y: torch.stack([x[0, a] * y[0, b] for a, b in zip(range(x.shape[1]), range(y.shape[1]))]), floats(2, 5), floats(2, 7))  # noqa: B905
row("python", "zip of two tensors", lambda x, y: torch.stack([a + b for a, b in zip(x, y)]), floats(5, 2), floats(7, 2))  # noqa: B905
row("python", "pairwise", lambda x: sum(a * b for a, b in itertools.pairwise(x.unbind(1))), floats(2, 5))
row("python", "combinations", lambda x: torch.stack([x[:, i] * x[:, j] for i, j in itertools.combinations(range(x.shape[1]), 2)], 1), floats(2, 5), largest=16)
row("python", "islice", lambda x: torch.stack(list(itertools.islice(x.unbind(1), 3)), 1), floats(2, 5))
row("python", "accumulate", lambda x: torch.stack(list(itertools.accumulate(x.unbind(1))), 1), floats(2, 5))
row("python", "deque of four", lambda x: torch.stack(list(collections.deque(x.unbind(1), maxlen=4)), 1), floats(2, 6))
row("python", "deque of four, short", lambda x: torch.stack(list(collections.deque(x.unbind(1), maxlen=4)), 1), floats(2, 3))
row("python", "Counter", lambda x: x * max(collections.Counter(k % 3 for k in range(x.shape[1])).values()), floats(2, 6))
row("python", "map over a shape", lambda x: x.reshape(*map(int, reversed(x.shape))), floats(3, 9))
row("python", "shape joined", lambda x: x.new_zeros(x.shape[:-1] + (7,)) + x.sum(), floats(3, 4, 9))
row("python", "shape unpacked", lambda x: x.reshape(*x.shape[:1], -1, 3), floats(4, 2, 9))
row("python", "numel of a part of a shape", lambda x: x.reshape(x.shape[0], x.shape[1:].numel()), floats(3, 4, 5))
row("python", "shape as a list", lambda x: x.reshape([x.shape[0] * x.shape[1], *list(x.shape)[2:]]), floats(3, 4, 5))
row("python", "negative index in a shape", lambda x: x[..., : x.shape[-2]], floats(3, 4, 9))
row("python", "stride as a size", lambda x: x.contiguous().view(-1)[: x.contiguous().stride(0)], floats(3, 9))
row("python", "bytes", lambda x: x * (x.nbytes // 8), floats(3, 9))
row("python", "nelement", lambda x: x / x.nelement(), floats(3, 9))
row("python", "dims", lambda x: x * x.ndim + x.dim(), floats(3, 9))
row("python", "sum of ones, read", lambda x: x[:, : int(torch.ones(x.shape[1]).sum().item()) // 2], floats(3, 9))
row("python", "tensor of a shape, read", lambda x: x[:, : int(torch.tensor(x.shape).min())], floats(3, 9))
row("python", "tensor of a size, halved", lambda x: x[:, : int(torch.tensor(x.shape[1]) / 2)], floats(3, 9))
row("python", "ceil of a tensor of a size", lambda x: x[:, : int(torch.ceil(torch.tensor(x.shape[1] / 4)))], floats(3, 9))
row("python", "where of sizes", lambda x: x[:, : int(torch.where(torch.tensor(x.shape[1]) > 16, 8, 3))], floats(3, 9))
row("python", "dataclass", lambda x: x[:, : Config(x.shape[1]).half], floats(3, 9))
row("python", "dict keyed by sizes", lambda x, y: {x.shape[1]: x.sum(), y.shape[1]: y.sum() * 2}[x.shape[1]], floats(3, 9), floats(3, 5))
row("python", "set of sizes", lambda x, y: x.sum() * len({x.shape[0], x.shape[1], y.shape[1]}) + y.sum(), floats(3, 9), floats(3, 5))
row("python", "index in a list", lambda x: x * [8, 9, 10, 64].index(x.shape[1]) if x.shape[1] in [8, 9, 10, 64] else x, floats(3, 9))
row("python", "compared to a float", lambda x: x.cos() if x.shape[1] > 12.5 else x.sin(), floats(3, 9))
row("python", "cmp by subtraction", lambda x: x * ((x.shape[1] > 20) - (x.shape[1] < 5)), floats(3, 9))
row("python", "all even", lambda x: x.cos() if all(s % 2 == 0 for s in x.shape) else x.sin(), floats(3, 9))
row("python", "any large", lambda x: x.cos() if max(x.shape) > 24 else x.sin(), floats(3, 9))
row("python", "assertion", lambda x: checked(x), floats(3, 9))
row("python", "global that changes", lambda x: counted(x), floats(3, 9))
row("python", "time", lambda x: x * (time.time() % 100), floats(3, 9))
row("python", "id of a tensor", lambda x: x * (id(x) % 1009), floats(3, 9))
row("python", "exception as a branch", lambda x: indexed(x), floats(3, 9))
row("python", "recursion", lambda x: merged(x), floats(3, 9))
row("python", "generator", lambda x: sum(windows(x)), floats(3, 9))
row("python", "walrus", lambda x: x[:, :k] if (k := x.shape[1] // 3) > 2 else x[:, :1], floats(3, 9))
row("python", "early return", lambda x: early(x), floats(3, 9))


@dataclasses.dataclass
class Config:
    n: int

    @property
    def half(self):
        return self.n // 2 if self.n > 4 else self.n


def checked(x):
    if not x.shape[1] >= 4:
        raise ValueError("too short")
    return x[:, :4]


CALLS = [0]


def counted(x):
    CALLS[0] += 1
    return x * CALLS[0]


def indexed(x):
    try:
        return x[:, 20]
    except IndexError:
        return x[:, 0]


def merged(x):
    if x.shape[1] == 1:
        return x
    half = x.shape[1] // 2
    return torch.maximum(merged(x[:, :half]), merged(x[:, half:]))


def windows(x):
    for start in range(0, x.shape[1] - 2, 2):
        yield x[:, start : start + 3].mean(1)


def early(x):
    if x.shape[1] < 3:
        return x
    y = x.cumsum(1)
    if y.shape[1] > 33:
        return y[:, :33]
    return y * 2


# ---- buckets: the next of a list of sizes ------------------------------------------------------------------------------

BUCKETS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
row("buckets", "next of a list", lambda x: F.pad(x, (0, next(s for s in BUCKETS if s >= x.shape[1]) - x.shape[1])), floats(3, 6))
row("buckets", "bisect", lambda x: x * bisect.bisect(BUCKETS, x.shape[1]), floats(3, 6))
row("buckets", "bisect_left", lambda x: F.pad(x, (0, BUCKETS[bisect.bisect_left(BUCKETS, x.shape[1])] - x.shape[1])), floats(3, 6))
row("buckets", "nearest", lambda x: x * min(BUCKETS, key=lambda s: abs(s - x.shape[1])), floats(3, 6))
row("buckets", "count below", lambda x: x * sum(x.shape[1] > s for s in BUCKETS), floats(3, 6))
row("buckets", "next power of two by a loop", lambda x: F.pad(x, (0, power(x.shape[1]) - x.shape[1])), floats(3, 6))
row("buckets", "chunks of a power", lambda x: x[:, : 2 ** (x.shape[1] // 4).bit_length()], floats(3, 9))
row("buckets", "padded where short", lambda x: F.pad(x, (0, 16 - x.shape[1])) if x.shape[1] < 16 else x, floats(3, 6))
row("buckets", "cut where long", lambda x: x[:, :16] if x.shape[1] > 16 else x, floats(3, 6))
row("buckets", "padded or cut", lambda x: fitted(x), floats(3, 6))
row("buckets", "halved where long", lambda x: x[:, ::2] if x.shape[1] > 40 else x, floats(3, 6))
row("buckets", "twice halved", lambda x: down(down(x)) * down(x).shape[1], floats(3, 13))
row("buckets", "chunks of frames", lambda x: chunked(x), floats(2, 9))
row("buckets", "first frame alone", lambda x: frames(x), floats(2, 9))


def power(n):
    p = 1
    while p < n:
        p *= 2
    return p


def fitted(x, size=20):
    n = x.shape[1]
    if n == size:
        return x
    return x[:, :size] if n > size else F.pad(x, (0, size - n))


def down(x):
    return F.max_pool1d(F.pad(x, (0, x.shape[1] % 2)), 2)


def chunked(x):
    count = (x.shape[1] - 1) // 4 + 1
    return torch.cat([x[:, 4 * k : 4 * (k + 1)].cumsum(1) for k in range(count)], 1)


def frames(x):
    out = [x[:, :1] * 2]
    for k in range((x.shape[1] - 1) // 4):
        out.append(x[:, 1 + 4 * k : 5 + 4 * k].mean(1, keepdim=True))
    return torch.cat(out, 1)


# ---- what is asked of the sizes ----------------------------------------------------------------------------------------


class Slice(nn.Module):
    """A parameter of sixteen positions: eager refuses longer inputs."""

    def __init__(self):
        super().__init__()
        self.position = nn.Parameter(torch.randn(16, 4))

    def forward(self, x):
        return x + self.position[: x.shape[1]]


class Resized(Slice):
    """As vision transformers: positions interpolated unless the grid is the trained one."""

    def forward(self, x):
        if x.shape[1] == 16:
            return x + self.position
        table = F.interpolate(self.position.T[None], size=x.shape[1], mode="linear", align_corners=False)[0].T
        return x + table


class Grid(Slice):
    def forward(self, x):
        side = int(math.sqrt(x.shape[1]))
        table = self.position.T.reshape(1, 4, 4, 4)
        if side * side == x.shape[1] and side != 4:
            table = F.interpolate(table, size=(side, side), mode="bilinear", align_corners=False)
        return x + table.flatten(2).mT if table.shape[2] ** 2 == x.shape[1] else x


class Looked(Slice):
    """An embedding of positions, clamped."""

    def forward(self, x):
        return x + self.position[torch.arange(x.shape[1]).clamp(max=15)]


class Wrapped(Slice):
    def forward(self, x):
        return x + self.position[torch.arange(x.shape[1]) % 16]


class Repeated(Slice):
    def forward(self, x):
        times = math.ceil(x.shape[1] / 16)
        return x + self.position.repeat(times, 1)[: x.shape[1]]


row("tables", "sixteen positions", Slice, floats(3, 6, 4))
row("tables", "interpolated unless sixteen", Resized, floats(3, 6, 4))
row("tables", "interpolated unless sixteen, from sixteen", Resized, floats(3, 16, 4))
row("tables", "grid by a square root", Grid, floats(3, 9, 4))
row("tables", "grid by a square root, from sixteen", Grid, floats(3, 16, 4))
row("tables", "clamped", Looked, floats(3, 6, 4))
row("tables", "wrapped", Wrapped, floats(3, 6, 4))
row("tables", "repeated", Repeated, floats(3, 6, 4))

N, AUTO = Dim("n", min=2, max=64), Dim.AUTO
row("dims", "shared by two inputs", lambda x, y: x + y.flip(1), floats(3, 6), floats(3, 6), options={"dynamic_shapes": ({1: N}, {1: N})})
row("dims", "two of one example size", lambda x, y: x.sum(1) * y.shape[1] + y.sum(1), floats(3, 6), floats(3, 6), options={"dynamic_shapes": ({1: Dim("n")}, {1: Dim("m")})})
row("dims", "bounded before a branch", lambda x: x.cos() if x.shape[1] > 100 else x.sin(), floats(3, 6), options={"dynamic_shapes": ({1: N},)})
row("dims", "from nine on", lambda x: x.cos() if x.shape[1] < 8 else x.sin(), floats(3, 12), options={"dynamic_shapes": ({1: Dim("n", min=9)},)})
row("dims", "auto", lambda x: x.cos() if x.shape[1] > 30 else x.sin(), floats(3, 6), options={"dynamic_shapes": ({0: AUTO, 1: AUTO},)})
row("dims", "dynamic", lambda x: x[:, : x.shape[1] // 3], floats(3, 6), options={"dynamic_shapes": ({1: Dim.DYNAMIC},)})
row("dims", "padding within bounds", lambda x: F.pad(x, (0, 64 - x.shape[1])), floats(3, 6), options={"dynamic_shapes": ({1: N},)})
row("dims", "max_size of a sequence", lambda x: F.pad(x, (0, 32 - x.shape[1])), floats(3, 6), options={"max_size": {"x_dim_1": 32}})
row("dims", "max_size below the far sizes", lambda x: x + torch.arange(24)[: x.shape[1]], floats(3, 6), options={"max_size": {"x_dim_1": 10}})
row("dims", "a step that a view wants", lambda x: x[:, : x.shape[1] // 5 * 5].reshape(x.shape[0], -1, 5).sum(2), floats(3, 10))
row("dims", "a step of twenty", lambda x: x.view(x.shape[0], -1, 20).sum(2), floats(3, 40))
row("dims", "a list of calls", lambda x: x.cos() if x.shape[1] > 20 else x.sin(), floats(3, 6), options={"dynamic_shapes": ({0: "b", 1: Dim("n", min=1, max=40)},)})

# ---- what comes out ----------------------------------------------------------------------------------------------------

row("results", "a number", lambda x: (x * 2, x.shape[1]), floats(3, 9))
row("results", "a number computed", lambda x: (x * 2, x.shape[1] // 2 + 1), floats(3, 9))
row("results", "a number that was read", lambda x, l: (x * 2, int(l.max())), floats(3, 9), lengths(3))
row("results", "a float", lambda x: (x * 2, x.shape[1] / 7), floats(3, 9))
row("results", "a shape", lambda x: (x * 2, tuple(x.shape)), floats(3, 9))
row("results", "a constant", lambda x: (x * 2, torch.arange(3)), floats(3, 9))
row("results", "the input itself", lambda x: (x, x * 2), floats(3, 9))
row("results", "the same twice", lambda x: (x * 2,) * 2, floats(3, 9))
row("results", "none among them", lambda x: (x * 2, None, x + 1), floats(3, 9))
row("results", "a dict", lambda x: {"b": x * 2, "a": x[:, : x.shape[1] // 2]}, floats(3, 9))
row("results", "a list as long as a size", lambda x: list(x.unbind(1)), floats(3, 9))
row("results", "a list as long as a quotient", lambda x: list(x.split(4, 1)), floats(3, 9))
row("results", "a view of the input", lambda x: x.view(-1)[1:], floats(3, 9))
row("results", "an input that is not used", lambda x, y: x * x.shape[1], floats(3, 9), floats(2, 4))
row("results", "an input used by its size", lambda x, y: x * y.shape[1], floats(3, 9), floats(2, 4))
row("results", "an integer argument", lambda x, k: x[:, :k], floats(3, 9), 4, mentions=r"k = 4")
row("results", "a float argument", lambda x, scale: x * scale, floats(3, 9), 0.5, mentions=r"scale = 0\.5")
row("results", "a string argument", lambda x, mode: x.relu() if mode == "relu" else x, floats(3, 9), "relu", mentions=r"mode = 'relu'")
row("results", "a flag argument", lambda x, flip: x.flip(1) if flip else x, floats(3, 9), True, mentions=r"flip = True")
row("results", "an integer equal to a size", lambda x, k: x[:, :k] * x.shape[1], floats(3, 9), 9, mentions=r"k = 9")
row("results", "an integer in a dict", lambda d: d["x"][:, : d["k"]], {"d": {"x": floats(3, 9), "k": 4}}, mentions=r"k = 4")
row("results", "ids as sizes of the vocabulary", lambda t: F.one_hot(t, 50).float().sum(1), ids(3, 6))
# fmt: on
