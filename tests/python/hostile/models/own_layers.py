"""Layers of one's own as a stranger writes them: caches, memories, schedules, iterators."""

import functools
import itertools

import torch
import torch.nn.functional as F
from torch import nn

from ..rows import floats, ids, lengths, row

# fmt: off
X = floats(3, 9)
T = ids(3, 9, high=7)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.out = nn.Linear(4, 3)


class Highway(Net):
    def forward(self, x):
        g = self.lin(x).sigmoid()
        return g * self.lin(x).relu() + (1 - g) * x


class Pointer(Net):
    def forward(self, x, l):
        s = (self.lin(x) @ x.mT).masked_fill(torch.arange(x.shape[1]) >= l[:, None, None], -torch.inf)
        return s.argmax(-1), s.softmax(-1).amax(-1)


class Recursive(Net):
    def forward(self, x):
        return self.tree(x.unbind(1))

    def tree(self, parts):
        if len(parts) == 1:
            return self.out(parts[0])
        half = len(parts) // 2
        return self.tree(parts[:half]) - 0.5 * self.tree(parts[half:])


class Adaptive(Net):
    """Halting: a step for who is not done."""

    def forward(self, x):
        total, out = torch.zeros(x.shape[:-1]), torch.zeros_like(x)
        for _ in range(5):
            p = self.lin(x).mean(-1).sigmoid()
            still = total < 0.95
            if not still.any():
                break
            p = torch.where(still, torch.minimum(p, 1 - total), 0.0)
            total = total + p
            out = out + p[..., None] * x
            x = self.lin(x).tanh()
        return out


class Early(Net):
    def forward(self, x):
        for layer in (self.lin, self.lin, self.lin):
            x = layer(x).tanh()
            if x.abs().mean() < 0.35:
                return self.out(x)
        return self.out(x)


class Cached(Net):
    @functools.lru_cache(maxsize=4)  # noqa: B019
    def table(self, n):
        return torch.arange(n).float().sin()[:, None]

    def forward(self, x):
        return self.lin(x + self.table(x.shape[1]))


class Property(Net):
    @property
    def scale(self):
        return self.lin.weight.abs().max()

    def __getattr__(self, name):
        if name.startswith("times_"):
            return lambda x: x * int(name[6:])
        return super().__getattr__(name)

    def forward(self, x):
        return getattr(self, f"times_{x.shape[1]}")(x) / self.scale


class Capsules(Net):
    def forward(self, x):
        b = torch.zeros(x.shape[:2])
        u = self.lin(x)
        for k in range(3):
            s = (b.softmax(1)[..., None] * u).sum(1)
            v = s * s.norm(dim=-1, keepdim=True) / (1 + s.square().sum(-1, keepdim=True))
            if k < 2:
                b = b + (u * v[:, None]).sum(-1)
        return v


class Hyper(Net):
    """Weights made by data."""

    def forward(self, x):
        w = self.lin(x.mean(1)).view(-1, 2, 2)
        return torch.einsum("bnk,bkj->bnj", x[..., :2], w)


class PerSample(Net):
    """A convolution with kernels of its own for each of the batch."""

    def forward(self, x, k):
        b, c, n = x.shape
        return F.conv1d(x.reshape(1, b * c, n), k.reshape(b * c, 1, -1), groups=b * c, padding=1).view(b, c, n)


class Memory(Net):
    def forward(self, x):
        m = torch.zeros(x.shape[0], 3, 4)
        outs = []
        for t in range(x.shape[1]):
            y = x[:, t].clamp(-1, 1)  # of larger ones a difference grows with every step
            w = (m @ y[..., None]).softmax(1)
            m = m * (1 - w * 0.5) + w * self.lin(y)[:, None]
            outs.append((w * m).sum(1))
        return torch.stack(outs, 1)


class Scheduled(Net):
    def forward(self, x):
        prev, outs = torch.zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            prev = self.lin(x[:, t] if t % 2 == 0 else prev)
            outs.append(prev)
        return torch.stack(outs, 1)


class Chunked(Net):
    def forward(self, x):
        return torch.cat([self.lin(c).cumsum(1) for c in x.split(4, 1)], 1)


class ChunkedState(Net):
    def forward(self, x):
        state, outs = torch.zeros(x.shape[0], 4), []
        for c in x.split(4, 1):
            outs.append(self.lin(c) + state[:, None])
            state = state * 0.5 + c.mean(1)
        return torch.cat(outs, 1)


class LinearAttention(Net):
    def forward(self, x):
        q, k = F.elu(self.lin(x)) + 1, F.elu(x) + 1
        kv = torch.einsum("bnd,bne->bnde", k, x).cumsum(1)
        return torch.einsum("bnd,bnde->bne", q, kv) / (q * k.cumsum(1)).sum(-1, keepdim=True)


class StateSpace(Net):
    def forward(self, x):
        a = -torch.arange(1, 5).float()
        dt = F.softplus(self.lin(x))
        h, outs = torch.zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            h = torch.exp(dt[:, t] * a) * h + dt[:, t] * x[:, t]
            outs.append(h)
        return self.out(torch.stack(outs, 1))


class FlashBlocks(Net):
    """Attention in blocks of keys with a running maximum."""

    def forward(self, x):
        top = torch.full(x.shape[:2], -torch.inf)
        norm, out = torch.zeros(x.shape[:2]), torch.zeros_like(x)
        for k in range(0, x.shape[1], 4):
            s = x @ x[:, k : k + 4].mT
            new = torch.maximum(top, s.amax(-1))
            p, old = (s - new[..., None]).exp(), (top - new).exp()
            norm = norm * old + p.sum(-1)
            out = out * old[..., None] + p @ x[:, k : k + 4]
            top = new
        return out / norm[..., None]


class RingCache(Net):
    def forward(self, x, cache, n):
        at = (n + torch.arange(x.shape[1])) % cache.shape[1]
        cache = cache.index_copy(1, at, self.lin(x))
        return cache, cache.mean(1)


class DynamicRope(Net):
    def forward(self, x):
        n, base = x.shape[1], 10000.0
        if n > 16:
            base = base * ((2 * n / 16) - 1) ** (4 / 2)
        f = torch.outer(torch.arange(n).float(), base ** -(torch.arange(0, 4, 2) / 4))
        c, s = f.cos(), f.sin()
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)


class Interpolated(Net):
    """A table of positions, resized to the image."""

    def __init__(self):
        super().__init__()
        self.pos = nn.Parameter(torch.randn(1, 1 + 16, 4))

    def forward(self, x):
        b, c, h, w = x.shape
        y = x.flatten(2).mT
        pos = self.pos
        if h * w != 16 or h != w:
            grid = pos[:, 1:].view(1, 4, 4, 4).permute(0, 3, 1, 2).contiguous()  # eager is wrong for other strides
            grid = F.interpolate(grid, size=(h, w), mode="bicubic", antialias=True).flatten(2).mT
            pos = torch.cat([pos[:, :1], grid], 1)
        return torch.cat([y.new_zeros(b, 1, c), y], 1) + pos


class SwitchByMode(Net):
    def forward(self, x):
        match x.shape:
            case (_, 1, _):
                return self.out(x)
            case (b, n, _) if n > 20 and b < 3:
                return self.out(x.cumsum(1))
            case (_, n, _):
                return self.out(x) * n


class Guarded(Net):
    def forward(self, x):
        try:
            return self.out(x[:, 12]) + self.out(x[:, 2])
        except IndexError:
            return self.out(x[:, -1])
        finally:
            self.seen = x.shape[1]


class Contexts(Net):
    def forward(self, x):
        with torch.no_grad(), torch.autocast("cpu", enabled=False), torch.autograd.profiler.record_function("a"):
            return self.out(x).double().cumsum(1).float()


class Iterators(Net):
    def forward(self, x):
        it = iter(x.unbind(1))
        first = next(it)
        return sum((a * first for a in it), start=first) + next(it, torch.zeros(()))


class ZipLongest(Net):
    def forward(self, x, y):
        parts = itertools.zip_longest(x.unbind(1), y.unbind(1), fillvalue=torch.ones(x.shape[0], 4))
        return torch.stack([a - b for a, b in parts], 1)


class Starred(Net):
    def forward(self, x):
        first, *middle, last = x.unbind(1)
        return torch.stack([first, torch.stack(middle).sum(0), last], 1)


class SortedParts(Net):
    def forward(self, xs):
        xs = sorted(xs, key=lambda t: -t.shape[0])
        return torch.cat([self.lin(t).mean(0, keepdim=True) for t in xs])


class DefaultList(Net):
    def forward(self, x, seen=[]):  # noqa: B006
        seen.append(x.shape[1])
        return self.lin(x) * seen[-1]


for model, inputs, most in (
    (Highway, (floats(3, 6, 4),), 65), (Pointer, (floats(3, 6, 4), lengths(3)), 65), (Recursive, (floats(3, 5, 4),), 12), (Adaptive, (floats(3, 6, 4),), 65), (Early, (floats(3, 6, 4),), 65), (Cached, (floats(3, 6, 4),), 65),
    (Property, (floats(3, 6, 4),), 65), (Capsules, (floats(3, 6, 4),), 65), (Hyper, (floats(3, 6, 4),), 65), (PerSample, (floats(3, 4, 9), floats(3, 4, 3)), 41), (Memory, (floats(2, 5, 4),), 41), (Scheduled, (floats(2, 5, 4),), 41),
    (Chunked, (floats(2, 10, 4),), 65), (ChunkedState, (floats(2, 10, 4),), 65), (LinearAttention, (floats(2, 6, 4),), 65), (StateSpace, (floats(2, 6, 4),), 41), (FlashBlocks, (floats(2, 10, 4),), 41),
    (RingCache, (floats(2, 3, 4), floats(2, 8, 4), ids(1, high=8)), 41), (DynamicRope, (floats(2, 6, 4),), 65), (Interpolated, (floats(2, 4, 5, 6),), 24), (SwitchByMode, (floats(3, 6, 4),), 65), (Guarded, (floats(3, 6, 4),), 65),
    (Contexts, (floats(3, 6, 4),), 65), (Iterators, (floats(3, 6, 4),), 41), (ZipLongest, (floats(3, 6, 4), floats(3, 8, 4)), 24), (Starred, (floats(3, 6, 4),), 41), (SortedParts, ([floats(6, 4), floats(8, 4), floats(3, 4)],), 24),
    (DefaultList, (floats(3, 6, 4),), 65),
):
    row("algorithms: modules", model.__name__, model, *inputs, largest=most, tolerance=3.0)
# fmt: on
