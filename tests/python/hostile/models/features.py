"""Parts of PyTorch that record otherwise than plain operators: hooks, transforms, scripted and traced parts, draws, layouts."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations

from ..rows import Kind, bools, floats, ids, lengths, mask, row

# fmt: off


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2 * x.shape[1]

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.inner.register_forward_hook(lambda module, args, out: out * args[0].shape[1])

    def forward(self, x):
        return self.inner(x)


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = parametrizations.weight_norm(nn.Linear(4, 4))

    def forward(self, x):
        return self.inner(x)


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x, m):
        return self.inner(x, x, x, key_padding_mask=m == 0)


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.EmbeddingBag(50, 4, mode="mean")

    def forward(self, t):
        return self.inner(t)


class BagsAt(Bags):
    def forward(self, t):
        return self.inner(t, torch.arange(0, t.shape[0], 3))


class Traced(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.jit.trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval(), torch.randn(2, 3, 4))

    def forward(self, x):
        return self.inner(x)


class Quantized(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 4)).eval(), {nn.Linear})

    def forward(self, x):
        return self.inner(x)


class Batched(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.BatchNorm1d(4)
        self.inner.running_mean.uniform_()

    def forward(self, x):
        return self.inner(x.mT).mT


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.LazyLinear(3)
        self.inner(torch.zeros(1, 4))

    def forward(self, x):
        return self.inner(x)


@torch.jit.script
def scripted(x: torch.Tensor) -> torch.Tensor:
    if x.shape[1] > 20:
        return x.relu()
    return x.tanh()


def conditional(x):
    return torch.cond(x.sum() > 0, lambda x: x.cos(), lambda x: x.sin(), (x,))


def conditional_on_size(x):
    return torch.cond(x.shape[1] > 20, lambda x: x.cos(), lambda x: x.sin(), (x,))


def repeated(x):
    from torch._higher_order_ops import while_loop

    return while_loop(lambda k, x: k < 3, lambda k, x: (k + 1, x * 0.5 + 1), (torch.tensor(0), x))[1]


def seeded(x):
    return x + torch.rand(x.shape, generator=torch.Generator().manual_seed(3))


def seeded_globally(x):
    torch.manual_seed(3)
    return x + torch.rand(x.shape)


row("features", "vmap", lambda x: torch.vmap(lambda r: r.cumsum(0) / r.shape[0])(x), floats(3, 6))
row("features", "checkpoint", lambda x: torch.utils.checkpoint.checkpoint(lambda y: y.cumsum(1) * y.shape[1], x, use_reentrant=False), floats(3, 6))
row("features", "autograd function", lambda x: Doubled.apply(x), floats(3, 6))
row("features", "gradient inside", lambda x: torch.func.grad(lambda y: (y ** 3).sum())(x), floats(3, 6))
row("features", "forward hook", Hooked, floats(3, 6, 4))
row("features", "weight norm", Normed, floats(3, 6, 4))
row("features", "multi-head attention with a mask", Heads, floats(3, 6, 4), mask(3, 6))
row("features", "embedding bag", Bags, ids(3, 6))
row("features", "embedding bag with offsets", BagsAt, ids(9))
row("features", "scripted function", scripted, floats(3, 6))
row("features", "traced part", Traced, floats(3, 6, 4))
row("features", "quantized part", Quantized, floats(3, 6, 4))
row("features", "batch norm", Batched, floats(3, 6, 4))
row("features", "lazy part", Lazy, floats(3, 6, 4))
row("features", "cond on a value", conditional, floats(3, 6))
row("features", "cond on a size", conditional_on_size, floats(3, 6))
row("features", "while_loop", repeated, floats(3, 6))
row("features", "dropout that draws", lambda x: F.dropout(x, 0.5, training=True), floats(3, 6))
row("features", "noise", lambda x: x + torch.randn(x.shape[1]), floats(3, 6))
row("features", "noise of its own seed", seeded, floats(3, 6))
row("features", "noise of a global seed", seeded_globally, floats(3, 6))
row("features", "sparse inside", lambda x: x.to_sparse().to_dense() * x.shape[1], floats(3, 6))
row("features", "sparse product", lambda x: torch.sparse.mm(torch.eye(x.shape[0]).to_sparse(), x), floats(3, 6))
row("features", "strides of a view", lambda x: x.as_strided((x.shape[0], x.shape[1] - 2, 3), (x.shape[1], 1, 1)).sum(2), floats(3, 6))
row("features", "channels last", lambda x: x.to(memory_format=torch.channels_last).flatten(1).cumsum(1), floats(2, 3, 4, 5), largest=65)
row("features", "contiguous or not", lambda x: x.mT.reshape(-1) if x.mT.is_contiguous() else x.mT.cumsum(1).reshape(-1), floats(3, 6))
row("features", "conjugated", lambda x: torch.view_as_real(x.conj().resolve_conj()), floats(3, 6, dtype=torch.complex64))
row("features", "imaginary part negated", lambda x: x.conj().imag * 2, floats(3, 6, dtype=torch.complex64))
row("features", "uint16", lambda t: t.to(torch.int32) * 2, ids(3, 6, dtype=torch.uint16))
row("features", "float8 inside", lambda x: x.to(torch.float8_e4m3fn).to(torch.float32), floats(3, 6))
row("features", "searchsorted", lambda x, y: torch.searchsorted(x.sort(1).values, y), floats(3, 6), floats(3, 4))
row("features", "histogram", lambda x: torch.histc(x, 5, -2, 2), floats(3, 6))
row("features", "cdist", lambda x, y: torch.cdist(x, y), floats(2, 5, 3), floats(2, 7, 3))
row("features", "logcumsumexp", lambda x: x.logcumsumexp(1), floats(3, 6))
row("features", "cummax", lambda x: x.cummax(1).values, floats(3, 6))
row("features", "inverse", lambda x: torch.linalg.inv(x + 9 * torch.eye(x.shape[-1])), floats(2, 4, 4), largest=20)
row("features", "determinant", lambda x: torch.linalg.det(x), floats(2, 3, 3), largest=8)
row("features", "kron", lambda x, y: torch.kron(x, y), floats(2, 3), floats(4, 5), largest=41)
row("features", "tensordot", lambda x, y: torch.tensordot(x, y, dims=([1], [0])), floats(2, 5, 3), floats(5, 4))
row("features", "block diagonal", lambda x, y: torch.block_diag(x, y), floats(2, 3), floats(4, 5), largest=100)
row("features", "cartesian product", lambda x, y: torch.cartesian_prod(x, y), floats(5), floats(4))
row("features", "combinations", lambda x: torch.combinations(x, 2), floats(5), largest=65)
row("features", "take along", lambda x, t: x.take_along_dim(t % x.shape[1], 1), floats(3, 6), ids(3, 6))
row("features", "bucketize by a range", lambda x: torch.bucketize(x, torch.linspace(-2, 2, x.shape[1])), floats(3, 6))
row("features", "cross entropy", lambda x, t: F.cross_entropy(x, t % x.shape[1], reduction="none"), floats(6, 5), ids(6))
row("features", "cross entropy, ignored", lambda x, t: F.cross_entropy(x, torch.where(t > 25, t % x.shape[1], -100)), floats(6, 5), ids(6))
row("features", "masked mean of nothing", lambda x, m: x.masked_fill(~m, 0).sum(1) / m.sum(1), floats(3, 6), bools(3, 6))
row("features", "segment sums", lambda x, l: torch.segment_reduce(x, "sum", lengths=l), floats(12, 2), Kind((3,), "ids", low=4, high=5, dtype=torch.int64))
row("features", "argsort, stable", lambda t: t.argsort(dim=1, stable=True), ids(3, 6, high=4))
row("features", "sort of lengths", lambda x, l: x[l.argsort(descending=True, stable=True)], floats(4, 6), lengths(4))
# fmt: on
