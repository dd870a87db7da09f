"""Loops over sizes, caches keyed by sizes, state that calls change, threads and subclasses."""

import functools
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F

from ..rows import floats, ids, row

# fmt: off

# ---- loops -------------------------------------------------------------------------------------------------------------


def halves(x):
    n = x.shape[1]
    while n > 4:
        x = x[:, : (n + 1) // 2] * 2
        n = x.shape[1]
    return x


def stepped(x):
    out = []
    for start in range(0, x.shape[1], 5):
        out.append(x[:, start : start + 5].softmax(1))
    return torch.cat(out, 1)


def state_loop(x):
    h = torch.zeros(x.shape[0], x.shape[2])
    for t in range(x.shape[1]):
        h = torch.tanh(h + x[:, t])
    return h


def outputs_loop(x):
    h, out = torch.zeros(x.shape[0], x.shape[2]), []
    for t in reversed(range(x.shape[1])):
        h = h * 0.5 + x[:, t]
        out.append(h)
    return torch.stack(out[::-1], 1)


def nested(x):
    out = torch.zeros(x.shape[0], x.shape[1])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, : j + 1].sum()
    return out


def triangle(x):
    total = x.sum() * 0
    for i in range(x.shape[1]):
        for j in range(i):
            total = total + x[0, i] * x[0, j]
    return total


def doubled(x):
    k = 1
    while k < x.shape[1]:
        x = x + x.roll(k, 1)
        k *= 2
    return x


def broken(x):
    total = x.sum(1) * 0
    for t in range(x.shape[1]):
        if t == 10:
            break
        total = total + x[:, t] * t
    return total


def skipping(x):
    total = x.sum(1) * 0
    for t in range(x.shape[1]):
        if t % 3 == 2:
            continue
        total = total + x[:, t]
    return total


def pairs(x):
    return sum(a * b for a, b in zip(x.unbind(1)[:-1], x.unbind(1)[1:], strict=True))


def layers_by_size(x):
    for _ in range(x.shape[1] // 4):
        x = x.tanh() + 1
    return x


def folded(x):
    while x.shape[1] > 1:
        if x.shape[1] % 2:
            x = F.pad(x, (0, 1))
        x = x[:, ::2] + x[:, 1::2]
    return x


def growing(x):
    y = x[:, :1]
    for t in range(1, x.shape[1]):
        y = torch.cat([y, (y[:, -1:] + x[:, t : t + 1]).tanh()], 1)
    return y


def summed(n):
    k = 0
    for i in range(n):
        k += i
    return k


def powers(n):
    k = 1
    for _ in range(n):
        k = k * 2 + 1
    return k


row("loops", "halved until four", halves, floats(3, 11))
row("loops", "steps of five", stepped, floats(3, 11))
row("loops", "state over time", state_loop, floats(3, 5, 2))
row("loops", "outputs in reverse", outputs_loop, floats(3, 5, 2))
row("loops", "doubling", doubled, floats(3, 11))
row("loops", "broken at ten", broken, floats(3, 6))
row("loops", "skips every third", skipping, floats(3, 7))
row("loops", "neighbours", pairs, floats(3, 6))
row("loops", "layers by a size", layers_by_size, floats(3, 9))
row("loops", "folded to one", folded, floats(3, 11))
row("loops", "a list that grows", growing, floats(3, 6))
row("loops", "count of a loop", lambda x: x * sum(1 for _ in range(0, x.shape[1], 3)), floats(3, 8))
row("loops", "sum of a range", lambda x: x * sum(range(x.shape[1])), floats(3, 8))
row("loops", "product of a range", lambda x: x * functools.reduce(lambda a, b: a * b, range(1, min(8, x.shape[1]) + 1)), floats(3, 5))
row("loops", "enumerate", lambda x: torch.stack([r * k for k, r in enumerate(x.unbind(1))], 1), floats(3, 5))
row("loops", "over batch with cat", lambda x: torch.cat([x[k : k + 1].flip(1) for k in range(x.shape[0])]), floats(3, 5))
row("loops", "sum of a loop decides", lambda x: x * 2 if summed(x.shape[1] // 5) > 200 else x, floats(2, 6))
row("loops", "powers of a loop decide", lambda x: x * 2 if powers(x.shape[1] % 8) > 4 else x, floats(3, 10))
row("nested loops", "prefix sums", nested, floats(3, 5), largest=20)
row("nested loops", "triangle", triangle, floats(2, 6), largest=20)
row("nested loops", "blocks", lambda x: torch.cat([torch.cat([x[i : i + 2, j : j + 3].cumsum(0) for j in range(0, x.shape[1], 3)], 1) for i in range(0, x.shape[0], 2)]), floats(5, 7), largest=41)
row("nested loops", "inner fixed", lambda x: sum(x[:, t] * (k + 1) for t in range(x.shape[1]) for k in range(3)), floats(3, 5))

# ---- caches and state --------------------------------------------------------------------------------------------------


@functools.lru_cache
def cached_length(n):
    return n * 3 // 2


@functools.cache
def cached_table(n):
    return torch.arange(n, dtype=torch.float32) / n


MEMO: dict = {}


def memoised(x):
    n = x.shape[1]
    if n not in MEMO:
        MEMO[n] = torch.linspace(0, 1, n)
    return x * MEMO[n]


class Table(torch.nn.Module):
    """Positions that grow where a longer input comes."""

    def __init__(self):
        super().__init__()
        self.table = self.made(8)

    def made(self, n):
        return torch.sin(torch.arange(n, dtype=torch.float32)[:, None] / torch.arange(1, 5))

    def forward(self, x):
        if x.shape[1] > self.table.shape[0]:
            self.table = self.made(x.shape[1])
        return x + self.table[: x.shape[1]]


class BufferTable(Table):
    def __init__(self):
        torch.nn.Module.__init__(self)
        self.register_buffer("table", self.made(8))


class LastLength(torch.nn.Module):
    """Rotary tables kept for the last length."""

    def __init__(self):
        super().__init__()
        self.length, self.cos = None, None

    def forward(self, x):
        if x.shape[1] != self.length:
            self.length = x.shape[1]
            self.cos = torch.cos(torch.arange(self.length, dtype=torch.float32))[None, :, None]
        return x * self.cos


class Rescaled(torch.nn.Module):
    """As dynamic NTK: another base where the input is longer than what was trained."""

    def forward(self, x):
        n = x.shape[1]
        base = 100.0 if n <= 16 else 100.0 * (2 * n / 16 - 1) ** (4 / 2)
        frequency = base ** -(torch.arange(2, dtype=torch.float32) / 2)
        return x * torch.cos(torch.arange(n)[:, None] * frequency.repeat(2))


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0

    def forward(self, x):
        self.n += 1
        return x * self.n


class Seen(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x):
        self.seen.append(x)
        return sum(s.sum() for s in self.seen) + x


class Running(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean.mul_(0.5).add_(x.mean((0, 1)) * 0.5)
        return x - self.mean


class Previous(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        out = x if self.last is None else x + self.last
        self.last = x.sum()
        return out


class MaxNorm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(50, 4, max_norm=0.5)

    def forward(self, t):
        return self.embed(t)


class FirstCall(torch.nn.Module):
    """Sets itself up at its first call, from what it sees."""

    def __init__(self):
        super().__init__()
        self.scale = None

    def forward(self, x):
        if self.scale is None:
            self.scale = x.abs().max()
        return x / self.scale


row("caches", "lru_cache of a size", lambda x: torch.zeros(x.shape[0], cached_length(x.shape[1])) + x.sum(), floats(3, 6))
row("caches", "a cached table", lambda x: x * cached_table(x.shape[1]), floats(3, 6))
row("caches", "a dict of tables", memoised, floats(3, 6))
row("caches", "positions that grow", Table, floats(3, 6, 4))
row("caches", "positions that grow, from beyond", Table, floats(3, 12, 4))
row("caches", "positions that grow in a buffer", BufferTable, floats(3, 6, 4))
row("caches", "tables of the last length", LastLength, floats(3, 6, 4))
row("caches", "another base where longer", Rescaled, floats(3, 6, 4))
row("state", "counter", Counter, floats(3, 6))
row("state", "list that grows", Seen, floats(3, 6))
row("state", "running mean", Running, floats(3, 6, 4))
row("state", "last call", Previous, floats(3, 6))
row("state", "max_norm", MaxNorm, ids(3, 6))
row("state", "set up by the first call", FirstCall, floats(3, 6))


# ---- threads, subclasses -----------------------------------------------------------------------------------------------


class Threads(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        with ThreadPoolExecutor(2) as pool:
            return torch.stack(list(pool.map(lambda layer: layer(x).detach(), self.layers)))


class Tagged(torch.Tensor):
    pass


class Wrapped(torch.nn.Module):
    def forward(self, x):
        return (x.as_subclass(Tagged) * 2).cumsum(1).as_subclass(torch.Tensor)


class Scripted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()))

    def forward(self, x):
        return self.inner(x) * x.shape[1]


row("outside", "threads", Threads, floats(3, 6, 4))
row("outside", "a subclass inside", Wrapped, floats(3, 6, 4))
row("outside", "a scripted part", Scripted, floats(3, 6, 4))
# fmt: on
