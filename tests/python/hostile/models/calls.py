"""How a model is called and what it gives back: containers, defaults, views of its inputs, writes to them, state."""

import collections
import dataclasses
import enum
import functools
import typing

import torch
import torch.nn.functional as F
from torch import nn

from ..rows import floats, ids, lengths, row

# fmt: off
X = floats(4, 9)


# ---- writes and aliases ------------------------------------------------------------------------------------------------


def written(x, *steps):
    """A copy of x after `steps`, each a function that writes to it."""
    x = x.clone()
    for step in steps:
        step(x)
    return x


def put(x, place, value):
    x[place] = value


ALL = slice(None)
for name, step in {
    "a column": lambda x: put(x, (ALL, 0), 1.0), "a row": lambda x: put(x, 0, 2.0), "the last row": lambda x: put(x, -1, 2.0), "every other": lambda x: put(x, (ALL, slice(None, None, 2)), 0.0), "every third from one": lambda x: put(x, (ALL, slice(1, None, 3)), 0.5), "a slice beyond": lambda x: put(x, (ALL, slice(5, 500)), 3.0), "a negative slice": lambda x: put(x, (ALL, slice(-3, None)), 3.0), "a negative slice beyond": lambda x: put(x, (ALL, slice(-300, 2)), 3.0), "an empty slice": lambda x: put(x, (ALL, slice(4, 4)), 3.0), "a mask": lambda x: put(x, x > 0, -1.0), "a mask of rows": lambda x: put(x, x[:, 0] > 0, -1.0), "places": lambda x: put(x, (ALL, torch.tensor([0, -1])), 9.0), "places twice": lambda x: put(x, torch.tensor([0, 0]), 9.0), "a row from another": lambda x: put(x, 0, x[-1]), "a slice from another": lambda x: put(x, (ALL, slice(0, 2)), x[:, -2:].clone()), "half of it": lambda x: put(x, (ALL, slice(x.shape[1] // 2, None)), 0.0), "none and more": lambda x: put(x, (Ellipsis, None, 0), 1.0) if False else put(x, (Ellipsis, 0), 1.0), "a diagonal": lambda x: x.diagonal().fill_(1.0), "an offset diagonal": lambda x: x.diagonal(1).zero_(), "a transposed view": lambda x: x.mT[0].add_(1.0), "a reshaped view": lambda x: x.view(-1)[::2].mul_(2.0), "a view of a view": lambda x: x[1:][:, 1:][0].mul_(3.0), "an unbound row": lambda x: x.unbind(0)[0].add_(5.0), "a chunk": lambda x: x.chunk(2, 1)[1].add_(5.0), "a split": lambda x: x.split(4, 1)[0].add_(5.0), "a narrow": lambda x: x.narrow(1, 1, 2).add_(5.0), "a select": lambda x: x.select(1, 2).sub_(5.0), "an expanded sum": lambda x: x.add_(x[:1].clone()), "squeezed": lambda x: x.unsqueeze(0).squeeze(0).mul_(2), "a permuted 3-d view": lambda x: x[None].permute(2, 0, 1)[0].neg_(), "flattened": lambda x: x.flatten()[1:3].zero_(), "unfolded": lambda x: x.unfold(1, 2, 2)[..., 0].mul_(10.0), "as_strided": lambda x: x.as_strided((2, 2), (1, 1)).sum() and x.as_strided((2,), (1,)).fill_(7.0),
    "clamp_": lambda x: x.clamp_(-0.5, 0.5), "relu_": lambda x: x.relu_(), "masked_fill_": lambda x: x.masked_fill_(x > 0, 0.0), "index_fill_": lambda x: x.index_fill_(1, torch.tensor([0, 2]), 4.0), "index_add_": lambda x: x.index_add_(0, torch.tensor([0, 0]), torch.ones(2, x.shape[1])), "index_copy_": lambda x: x.index_copy_(0, torch.tensor([1, 0]), torch.ones(2, x.shape[1])), "scatter_": lambda x: x.scatter_(1, torch.zeros(x.shape[0], 1, dtype=torch.long), 4.0), "scatter_add_": lambda x: x.scatter_add_(1, torch.zeros(x.shape, dtype=torch.long), x.clone()), "copy_": lambda x: x.copy_(x.flip(1)), "copy_ of another type": lambda x: x.copy_(torch.arange(x.shape[1])), "swap": lambda x: put(x, ALL, x.flip(0).clone()), "tril_": lambda x: x.tril_(), "cumsum_": lambda x: x.cumsum_(1), "sort into": lambda x: x.copy_(x.sort(1).values), "addcmul_": lambda x: x.addcmul_(x.clone(), x.clone(), value=0.5), "lerp_": lambda x: x.lerp_(torch.ones_like(x), 0.3), "pow_": lambda x: x.pow_(2), "div_ with rounding": lambda x: x.div_(0.3, rounding_mode="floor"), "floor_divide_": lambda x: x.floor_divide_(0.3), "remainder_": lambda x: x.remainder_(0.3), "fill_diagonal_": lambda x: x.fill_diagonal_(2.0), "t_": lambda x: x.t_().t_(), "zero_": lambda x: x[:, :3].zero_(), "exchanged": lambda x: (x[:, 0].add_(x[:, 1]), x[:, 1].sub_(x[:, 0])), "two views of one": lambda x: (x[:, :4].add_(1.0), x[:, 2:6].mul_(2.0)), "read between writes": lambda x: (x[:, 0].add_(1.0), x.add_(x.sum()), x[:, 0].add_(1.0)), "a loop of writes": lambda x: [put(x, (ALL, k), x[:, k] * k) for k in range(min(5, x.shape[1]))], "a loop over all": lambda x: [put(x, (ALL, k), x[:, k - 1] + x[:, k]) for k in range(1, x.shape[1])], "index_put_ accumulate": lambda x: x.index_put_((torch.tensor([0, 0, 1]),), torch.ones(x.shape[1]), accumulate=True), "put_": lambda x: x.put_(torch.tensor([1, 3]), torch.tensor([7.0, 8.0])), "set by a size": lambda x: put(x, (ALL, x.shape[1] - 1), float(x.shape[0])), "baddbmm_": lambda x: x[None].baddbmm_(x[None, :, :1].clone(), x[None, :1].clone()), "out=": lambda x: torch.add(x, 1, out=x), "out= of a slice": lambda x: torch.mul(x[:, :3], 2, out=x[:, :3]),
}.items():
    row("writes", name, lambda x, step=step: written(x, step), X, largest=30 if "loop" in name else 70)

for name, fn in {
    "the input, then a view of it": lambda x: (x, x[:, 1:]), "two views": lambda x: (x[:, :3], x[:, 3:]), "the same twice": lambda x: (x * 2,) * 2, "a view and its base written": lambda x: view_and_base(x), "an input written": lambda x: x.mul_(2), "an input written through a view": lambda x: (x[:, 0].zero_(), x)[1], "an input written and not returned": lambda x: (x.add_(1), x.sum())[1], "written after it was read": lambda x: read_first(x), "detach and write": lambda x: (x.detach().mul_(2), x)[1], "alias of a constant": lambda x: (torch.ones(3).add_(x.sum()), x)[0], "expand then clone": lambda x: x[:, None].expand(-1, 3, -1).clone().mul_(2), "contiguous is a copy": lambda x: (x.mT.contiguous().zero_(), x)[1], "contiguous is the same": lambda x: (x.contiguous().zero_(), x)[1], "reshape is a view": lambda x: (x.reshape(-1).zero_(), x)[1], "reshape is a copy": lambda x: (x.mT.reshape(-1).zero_(), x)[1], "to is the same": lambda x: (x.to(torch.float32).zero_(), x)[1], "float is the same": lambda x: (x.float().add_(1), x)[1], "dropout in eval is the same": lambda x: (F.dropout(x, 0.5, False).add_(1), x)[1], "flatten of a view": lambda x: (x.mT.flatten().add_(1), x)[1], "a list of rows": lambda x: rows_written(x), "x += in a function": lambda x: augmented(x), "zip of views": lambda x: [a.add_(k) for k, a in enumerate(x.unbind(1)[:2])] and x, "real of complex": lambda x: complex_parts(x), "view_as_real": lambda x: torch.view_as_real(torch.complex(x, x)).mul_(2), "a bool view": lambda x: (x > 0).logical_not_(), "in place on a result of where": lambda x: torch.where(x > 0, x, 0).add_(1), "split and joined": lambda x: torch.cat([a.mul_(k + 1) for k, a in enumerate(x.clone().split(4, 1)[:2])], 1), "chained": lambda x: x.clone().mul_(2).add_(1).relu_()[:, 1:].sub_(1), "identity": lambda x: nn.Identity()(x), "an input twice": lambda x: (x, x), "views with steps": lambda x: x[:, ::2][:, ::2], "views from behind": lambda x: x[:, -5:][:, :2], "a step beyond": lambda x: x[:, ::100], "a start beyond": lambda x: x[:, 100:], "an end before the start": lambda x: x[:, 5:2], "negative end beyond": lambda x: x[:, :-100], "negative end": lambda x: x[:, : -(x.shape[1] // 2)], "minus zero": lambda x: x[:, : -(x.shape[1] % 1)], "a step by a size": lambda x: x[:, :: max(1, x.shape[1] // 4)], "ellipsis": lambda x: x[..., None, 2:4], "none everywhere": lambda x: x[None, :, None], "a place from behind": lambda x: x[:, -1] - x[:, -x.shape[1]], "two lists": lambda x: x[[0, 1], [1, 2]], "list and slice": lambda x: x[[0, 1], 1:3], "tensor and none": lambda x: x[:, None, torch.tensor([0, 2])], "bool list": lambda x: x[:, [True] + [False] * (x.shape[1] - 1)], "a 0-d place": lambda x: x[:, torch.tensor(2)], "a bool 0-d": lambda x: x[torch.tensor(True)], "unfold with a step": lambda x: x.unfold(1, 3, 2), "as_strided by sizes": lambda x: x.as_strided((x.shape[0], x.shape[1] - 1), (x.shape[1], 1), 1), "swapaxes and movedim": lambda x: x[None].swapaxes(0, 2).movedim(0, -1), "tensor_split": lambda x: x.tensor_split(4, 1)[1], "tensor_split at places": lambda x: x.tensor_split((2, 5), 1)[2], "hsplit": lambda x: torch.hsplit(x[:, : x.shape[1] // 3 * 3], 3)[1] if x.shape[1] >= 3 else x, "unflatten": lambda x: x[:, : x.shape[1] // 2 * 2].unflatten(1, (2, -1)), "view by -1": lambda x: x.view(-1, 1), "view_as": lambda x: x.view_as(x.mT.contiguous()), "ravel": lambda x: x.mT.ravel(), "rot90": lambda x: x.rot90(), "rot90 thrice": lambda x: x.rot90(3), "fliplr": lambda x: x.fliplr(), "roll back": lambda x: x.roll(-3, 1), "roll beyond": lambda x: x.roll(1000, 1), "roll flat": lambda x: x.roll(2), "repeat more dims": lambda x: x.repeat(2, 1, 3), "tile": lambda x: x.tile(2), "repeat_interleave by values": lambda x: x.repeat_interleave(torch.arange(x.shape[1]) % 2 + 1, 1), "expand_as": lambda x: x[:, :1].expand_as(x), "broadcast_to": lambda x: torch.broadcast_to(x[0], (3, x.shape[1])), "broadcast_tensors": lambda x: torch.broadcast_tensors(x[:, None], x[None])[0], "meshgrid": lambda x: torch.meshgrid(x[0], x[:, 0], indexing="xy")[1], "cartesian_prod": lambda x: torch.cartesian_prod(x[0], x[:, 0]), "combinations": lambda x: torch.combinations(x[0, :4]), "block_diag": lambda x: torch.block_diag(x, x[:2]), "diag_embed": lambda x: x.diag_embed(), "diagflat": lambda x: x[0].diagflat(1), "trace": lambda x: x.trace() if x.shape[0] == x.shape[1] else x.diagonal().sum(), "triu_indices": lambda x: torch.triu_indices(x.shape[0], x.shape[1]), "kron": lambda x: torch.kron(x, torch.ones(2, 2)), "vander": lambda x: torch.vander(x[0], 3), "take_along_dim": lambda x: x.take_along_dim(x.argmax(1, keepdim=True), 1), "pixel_shuffle": lambda x: F.pixel_shuffle(x[:, None, None, :].expand(-1, 4, 3, -1), 2), "pixel_unshuffle": lambda x: F.pixel_unshuffle(x[None, None, :4, :8], 2) if x.shape[0] >= 4 and x.shape[1] >= 8 else x, "channel_shuffle": lambda x: F.channel_shuffle(x[:, None, None].expand(-1, 4, -1, -1), 2),
}.items():
    row("views", name, fn, X, largest=40)


def view_and_base(x):
    y = x * 1
    v = y[:, 1:]
    y.mul_(2)
    return v, y


def read_first(x):
    s = x.sum(1)
    x.zero_()
    return s + x.sum(1)


def rows_written(x):
    rows = [r.clone() for r in x[:2]]
    rows[0] += rows[-1]
    return rows


def augmented(x):
    y = x
    y = y + 1
    y += x
    y[:, 0] *= 3
    return y


def complex_parts(x):
    c = torch.complex(x, x * 0)
    c.real.mul_(2)
    c.imag.add_(1)
    return torch.view_as_real(c)


# ---- containers --------------------------------------------------------------------------------------------------------

Pair = collections.namedtuple("Pair", "left right")


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


@dataclasses.dataclass
class Out:
    value: torch.Tensor
    count: int = 0
    extra: typing.Optional[torch.Tensor] = None  # noqa: UP045


row("containers", "namedtuple in", lambda p: p.left * 2 + p.right.sum(), Pair(X, X))
row("containers", "list in", lambda xs: torch.cat(xs), [X, X])
row("containers", "list of two lengths", lambda xs: torch.cat(xs, 1), [floats(4, 9), floats(4, 5)])
row("containers", "dict in", lambda d: d["a"] * d["b"].mean(), {"d": {"a": X, "b": floats(4, 5)}})
row("containers", "nested", lambda d: d["a"][0] + d["a"][1][0], {"d": {"a": [X, (X,)]}})
row("containers", "the same twice", lambda a, b: a + b, X, X)
row("containers", "by keyword", lambda *, a, b=None: a * 2 if b is None else a + b, {"a": X})
row("containers", "both keywords", lambda *, a, b=None: a * 2 if b is None else a + b, {"a": X, "b": X})
row("containers", "args", lambda *xs: sum(xs), X, X, X)
row("containers", "kwargs", lambda **kw: kw["x"] * kw["y"].sum(), {"x": X, "y": floats(5)})
row("containers", "None among them", lambda x, y, z: x * 2 if y is None else z, X, None, X)
row("containers", "an int", lambda x, k: x[:, :k], X, 3)
row("containers", "an int equal to a size", lambda x, k: x[:, :k], X, 9)
row("containers", "a float", lambda x, f: x * f, X, 0.37)
row("containers", "a bool", lambda x, f: x.relu() if f else x, X, True)
row("containers", "a string", lambda x, s: getattr(x, s)(), X, "tanh")
row("containers", "an enum", lambda x, m: x * 2 if m is Mode.FAST else x, X, Mode.FAST)
row("containers", "a tuple of ints", lambda x, s: x.sum(s), X, (0, 1))
row("containers", "a type", lambda x, t: x.to(t), X, torch.float64)
row("containers", "a list of ints", lambda x, s: x[:, s], X, [0, 2])
row("containers", "out: dict", lambda x: {"a": x, "b": [x * 2, None]}, X)
row("containers", "out: namedtuple", lambda x: Pair(x * 2, x.sum()), X)
row("containers", "out: dataclass", lambda x: Out(x * 2, 3), X)
row("containers", "out: dataclass with a size", lambda x: Out(x * 2, x.shape[1] * 2), X)
row("containers", "out: nested", lambda x: ((x,), {"b": (x * 2, [x * 3])}), X)
row("containers", "out: a size and a flag", lambda x: (x, x.shape[1] > 20, len(x)), X)
row("containers", "out: a float of a size", lambda x: (x, x.shape[1] / 7), X)
row("containers", "out: the sizes", lambda x: (x, tuple(x.shape), list(x.shape)), X)
row("containers", "out: a read value", lambda x, l: (x, int(l.max()) + 1), X, lengths(4))
row("containers", "out: a read float", lambda x: (x, float(x[0, 0])), X)
row("containers", "out: a rounded read", lambda x: (x, round(float(x[0, 0]))), X)
row("containers", "out: a literal", lambda x: (x, 3, 2.5, True, "s", None), X)
row("containers", "out: tolist of sizes", lambda x: (x, torch.tensor(x.shape).tolist()), X)
row("containers", "out: min of sizes", lambda x: (x, min(x.shape), max(x.shape), sum(x.shape)), X)
row("containers", "out: a branch", lambda x: (x, "many" if x.shape[1] > 50 else "few", 5 if x.shape[1] > 50 else 6), X)
row("containers", "out: an empty list", lambda x: (x, [], {}), X)
row("containers", "out: set of one", lambda x: {"only": x.mean()}, X)
row("containers", "out: generator", lambda x: tuple(x * k for k in range(3)), X)
row("containers", "out: a scalar tensor", lambda x: torch.tensor(x.shape[1]) * 2, X)
row("containers", "out: parameter", nn.Sequential, X)
row("containers", "out: size of a selection", lambda x: (x[x > 0].shape[0], x), X)
row("containers", "out: numel", lambda x: (x.numel(), x.dim(), x.element_size(), x), X)
row("containers", "out: dtype dependent", lambda x: (x.sum(), int(x.is_floating_point())), X)


# ---- modules -----------------------------------------------------------------------------------------------------------


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(9, 9)


class Tied(Base):
    def __init__(self):
        super().__init__()
        self.other = nn.Linear(9, 9)
        self.other.weight = self.linear.weight

    def forward(self, x):
        return self.other(self.linear(x)) @ self.linear.weight.T


class Shared(Base):
    def forward(self, x):
        for _ in range(3):
            x = self.linear(x).relu()
        return x


class ByName(Base):
    def forward(self, x):
        return functools.reduce(lambda v, n: getattr(self, n)(v), ["linear", "linear"], x)


class Hooked(Base):
    def __init__(self):
        super().__init__()
        self.linear.register_forward_hook(lambda m, i, o: o * 2)
        self.linear.register_forward_pre_hook(lambda m, i: (i[0] + 1,))

    def forward(self, x):
        return self.linear(x)


class Parametrized(Base):
    def __init__(self):
        super().__init__()
        nn.utils.parametrizations.weight_norm(self.linear)

    def forward(self, x):
        return self.linear(x)


class Spectral(Base):
    def __init__(self):
        super().__init__()
        nn.utils.parametrizations.spectral_norm(self.linear)

    def forward(self, x):
        return self.linear(x)


class Attribute(Base):
    def forward(self, x):
        self.last = x.sum()
        return self.linear(x) + self.last


class Counted(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.steps += 1
        return x * self.steps


class Lists(Base):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(9, 9) for _ in range(4))

    def forward(self, x):
        for k, layer in enumerate(self.layers[::2]):
            x = layer(x) * (k + 1)
        return x


class LayerBySize(Lists):
    def forward(self, x):
        return self.layers[min(3, len(x) // 10)](x)


class LayersBySize(Lists):
    def forward(self, x):
        for layer in self.layers[: 1 + (len(x) > 20)]:
            x = layer(x)
        return x


class LayerByName(Lists):
    def forward(self, x):
        return getattr(self.layers, str(len(x) // 64 % 4))(x)


class ParameterBySize(Base):
    def forward(self, x):
        return x * self.linear.weight[len(x) % 9] + self.linear.bias[len(x) // 50 % 9]


class Sliced(Base):
    def forward(self, x):
        k = min(9, max(1, len(x) // 3))
        return F.linear(x[:, :k], self.linear.weight[:, :k], self.linear.bias)


class Grown(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(16, 9))

    def forward(self, x):
        if len(x) <= 16:
            return x + self.table[: len(x)]
        return x + F.interpolate(self.table.T[None], size=len(x), mode="linear")[0].T


class Training(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(9)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.norm(x)) + self.training


class Recursive(nn.Module):
    def forward(self, x, depth=3):
        return x if depth == 0 else self.forward(x * 0.5 + depth, depth - 1)


class RecursiveBySize(nn.Module):
    def forward(self, x):
        if x.shape[1] <= 2:
            return x.sum(1)
        middle = x.shape[1] // 2
        return self.forward(x[:, :middle]) - self.forward(x[:, middle:])


class Gated(Base):
    def forward(self, x):
        with torch.no_grad():
            y = self.linear(x)
        with torch.enable_grad():
            z = y * 2
        return z.detach() + y.requires_grad_(False)


class Autocast(Base):
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x)
        return y.float() + x


class AutocastBySize(Base):
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=len(x) > 20):
            return self.linear(x).float()


class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(64, 64).tril().bool())
        self.register_buffer("hidden", torch.arange(64.0), persistent=False)

    def forward(self, x):
        n = x.shape[1]
        return x.masked_fill(~self.mask[len(x) - 1, :n], 0) + self.hidden[:n] if n <= 64 and len(x) <= 64 else x


class LazyBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x):
        if self.table is None or self.table.shape[0] < x.shape[1]:
            self.table = torch.arange(x.shape[1]).float()
        return x + self.table[: x.shape[1]]


class LargestSeen(nn.Module):
    def __init__(self):
        super().__init__()
        self.largest = 0

    def forward(self, x):
        self.largest = max(self.largest, x.shape[1])
        return x * self.largest


class Toggled(nn.Module):
    flag = False

    def forward(self, x):
        self.flag = not self.flag
        return x if self.flag else -x


class Global(nn.Module):
    seen: typing.ClassVar[list] = []

    def forward(self, x):
        Global.seen.append(len(x))
        return x * len(Global.seen)


class Property(Base):
    @property
    def scale(self):
        return self.linear.weight.abs().max()

    def forward(self, x):
        return x / self.scale


class Slots(Base):
    def forward(self, x):
        kernel = {8: "even", 9: "odd"}.get(x.shape[1], "other")
        return {"even": x.cos, "odd": x.sin, "other": x.tanh}[kernel]()


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = [0.5, 1.5, 2.5]

    def forward(self, x):
        return x * self.scales[len(x) % 3] + self.scales[min(len(x) // 100, 2)]


for cls in (Tied, Shared, ByName, Hooked, Parametrized, Spectral, Attribute, Counted, Lists, LayerBySize, LayersBySize, LayerByName, ParameterBySize, Sliced, Grown, Training, Recursive, RecursiveBySize, Gated, Autocast, AutocastBySize, Buffers, LazyBuffer, LargestSeen, Toggled, Global, Property, Slots, Weighted):
    row("modules", cls.__name__, cls, X, largest=40 if cls is RecursiveBySize else 1025, tolerance=100.0 if "Autocast" in cls.__name__ else 1.0)

# ---- ids ---------------------------------------------------------------------------------------------------------------

IDS = ids(4, 9, high=20)
TABLE = torch.randn(20, 5, generator=torch.Generator().manual_seed(1))
for name, fn in {
    "embedding": lambda t: F.embedding(t, TABLE), "embedding with padding": lambda t: F.embedding(t, TABLE, padding_idx=0), "embedding_bag": lambda t: F.embedding_bag(t, TABLE), "embedding_bag sums": lambda t: F.embedding_bag(t, TABLE, mode="sum"), "embedding_bag largest": lambda t: F.embedding_bag(t, TABLE, mode="max"), "embedding_bag with padding": lambda t: F.embedding_bag(t, TABLE, padding_idx=3), "embedding_bag with offsets": lambda t: F.embedding_bag(t.flatten(), TABLE, torch.arange(0, t.numel(), t.shape[1])), "one_hot": lambda t: F.one_hot(t, 20), "one_hot of what is there": lambda t: F.one_hot(t), "cross_entropy": lambda t: F.cross_entropy(TABLE[t[0] % 5].repeat(1, 2), t[0] % 5), "cross_entropy with ignored": lambda t: F.cross_entropy(TABLE[t[0] % 5], t[0] % 5, ignore_index=2), "nll_loss": lambda t: F.nll_loss(TABLE[t[0]].log_softmax(1), t[0] % 5, reduction="sum"), "label smoothing": lambda t: F.cross_entropy(TABLE[t[0]], t[0] % 5, label_smoothing=0.1, reduction="none"), "gather logits": lambda t: TABLE[t].gather(2, (t % 5)[..., None]).squeeze(-1), "shifted": lambda t: F.pad(t[:, :-1], (1, 0), value=1), "first of a token": lambda t: (t == 3).int().argmax(1), "last of a token": lambda t: t.shape[1] - 1 - (t == 3).flip(1).int().argmax(1), "rows of the last token": lambda t: TABLE[t][torch.arange(t.shape[0]), (t != 0).sum(1) - 1], "lengths as a mask": lambda t: (torch.arange(t.shape[1])[None] < (t != 0).sum(1, keepdim=True)), "positions of tokens": lambda t: (t != 0).cumsum(1) * (t != 0), "counted pairs": lambda t: torch.zeros(20, 20).index_put((t[:, :-1].flatten(), t[:, 1:].flatten()), torch.tensor(1.0), accumulate=True), "sampled greedily": lambda t: (TABLE[t] @ TABLE.T).argmax(-1), "top five": lambda t: (TABLE[t] @ TABLE.T).topk(5, -1).values, "nucleus": lambda t: (TABLE[t].softmax(-1).sort(-1, descending=True).values.cumsum(-1) < 0.8).sum(-1), "longest row": lambda t: TABLE[t[:, : int((t != 0).sum(1).max())]].sum(1), "packed": lambda t: TABLE[t[t != 0]], "by group": lambda t: torch.zeros(4, 5).index_add(0, t.flatten() % 4, TABLE[t.flatten()]), "segments": lambda t: torch.segment_reduce(TABLE[t[0]], "sum", lengths=torch.tensor([2, t.shape[1] - 2])), "permuted": lambda t: TABLE[t[0].argsort(stable=True)], "inverse permutation": lambda t: t[0].argsort(stable=True).argsort(), "binned": lambda t: torch.bucketize(t, torch.tensor([2, 5, 11])), "bits of ids": lambda t: (t[..., None] >> torch.arange(5)) & 1, "hashed": lambda t: (t * 2654435761) % 97, "hashed with wrap": lambda t: (t * 0x9E3779B97F4A7C15 % 2**63 if False else t * 6364136223846793005) % 97, "compared pairs": lambda t: (t[:, :, None] == t[:, None]).sum(2), "first seen": lambda t: ((t[:, :, None] == t[:, None]).int().argmax(2) == torch.arange(t.shape[1])), "diff": lambda t: t.diff(dim=1).clamp(min=0), "parity": lambda t: t % 2 == t.flip(1) % 2, "running count": lambda t: ((t[:, :, None] == t[:, None]).tril()).sum(2),
}.items():
    row("token ids", name, fn, IDS, largest=40)
# fmt: on
