"""Numbers that were read from tensors, alone and as lists: t.tolist(), and where they are used."""

# ruff: noqa: B905

import functools
import math

import torch
import torch.nn.functional as F

from ..rows import floats, lengths, row

# fmt: off

X = floats(3, 9)
L = lengths(3)

# reads of lists
for name, fn in {
    "max of tolist": lambda x, l: x[:, : max(l.tolist())],
    "min of tolist": lambda x, l: x[:, : min(l.tolist())],
    "sum of tolist": lambda x, l: x.sum() * sum(l.tolist()),
    "last of tolist": lambda x, l: x[:, : l.tolist()[-1]],
    "first of tolist": lambda x, l: x[:, : l.tolist()[0]],
    "sorted tolist": lambda x, l: x[:, : sorted(l.tolist())[-1]],
    "mean of tolist": lambda x, l: x * (sum(l.tolist()) / len(l.tolist())),
    "len of tolist": lambda x, l: x * len(l.tolist()),
    "len of set of tolist": lambda x, l: x * len(set(l.tolist())),
    "count in tolist": lambda x, l: x * l.tolist().count(1),
    "index in tolist": lambda x, l: x[l.tolist().index(max(l.tolist()))],
    "rows cut by tolist": lambda x, l: torch.stack([x[i, :n].sum() for i, n in enumerate(l.tolist())]),
    "rows cut by zip": lambda x, l: torch.stack([r[:n].sum() for r, n in zip(x, l.tolist())]),
    "rows cut by iteration": lambda x, l: torch.stack([r[:n].sum() for r, n in zip(x, l)]),
    "split by tolist": lambda x, l: [p.sum() for p in x.flatten().split(l.tolist() + [x.numel() - sum(l.tolist())])],
    "torch.tensor of tolist": lambda x, l: x * torch.tensor(l.tolist())[:, None],
    "numpy of lengths": lambda x, l: x[:, : int(l.numpy().max())],
    "mask by a list": lambda x, l: torch.stack([torch.arange(x.shape[1]) < n for n in l.tolist()]),
    "padding of each": lambda x, l: torch.stack([F.pad(x[i, :n], (0, x.shape[1] - n)) for i, n in enumerate(l.tolist())]),
    "python loop to the longest": lambda x, l: sum(x[:, t] for t in range(int(l.max()))),
    "while below the longest": lambda x, l: grown(x, l),
    "last valid by index": lambda x, l: x[torch.arange(x.shape[0]), l - 1],
    "last valid by list": lambda x, l: torch.stack([x[i, l[i] - 1] for i in range(x.shape[0])]),
    "last valid by gather": lambda x, l: x.gather(1, (l - 1)[:, None]).squeeze(1),
    "mean to each length": lambda x, l: torch.stack([x[i, : int(l[i])].mean() for i in range(len(l))]),
    "clamped lengths": lambda x, l: x[:, : int(l.clamp(max=5).max())],
    "ratio of lengths": lambda x, l: x * (l.max() / l.min()).item(),
    "divmod of a read": lambda x, l: x * divmod(int(l.max()), 3)[0] + divmod(int(l.max()), 3)[1],
    "round of a ratio": lambda x, l: x[:, : round(l.float().mean().item())],
    "ceil of a mean": lambda x, l: x[:, : math.ceil(l.float().mean().item())],
    "int of a median": lambda x, l: x[:, : int(l.median())],
    "a read in a format": lambda x, l: x * int(f"{int(l.max())}"),
    "a read as a key": lambda x, l: x * {1: 5.0, 2: 6.0}.get(int(l[0]), 7.0),
    "a read in a range": lambda x, l: x * 2 if int(l.max()) in range(3, 7) else x,
    "a read compared chained": lambda x, l: x * 2 if 3 <= int(l.max()) < 7 else x,
    "lru_cache of a read": lambda x, l: x * cached(int(l.max())),
    "a read by len of arange": lambda x, l: x * len(torch.arange(int(l.max()))),
    "a table by a read": lambda x, l: x * [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0][min(int(l.max()), 9)],
    "zeros of a read": lambda x, l: torch.zeros(int(l.max()), int(l.min())) + x.sum(),
    "repeat of a read": lambda x, l: x[:1].repeat(int(l[0]), 1),
    "expand of a read": lambda x, l: x[:1].expand(int(l[0]), -1),
    "repeat_interleave of reads": lambda x, l: x.repeat_interleave(l, dim=0),
    "bool mask from lengths": lambda x, l: x[torch.arange(x.shape[1]) < l[:, None]],
    "cumsum of lengths": lambda x, l: torch.cat([torch.zeros(1, dtype=torch.long), l.cumsum(0)])[: int(l.max())],
    "arange between reads": lambda x, l: torch.arange(int(l.min()), int(l.max()) + 1) + x.sum().long() * 0,
    "if lengths are equal": lambda x, l: x[:, : int(l[0])] if bool((l == l[0]).all()) else x,
    "isinstance of item": lambda x, l: x * l.max().item() if isinstance(l.max().item(), int) else x,
    "hex of a read": lambda x, l: x * int(hex(int(l.max())), 16),
    "pow of a read": lambda x, l: x * 0.5 ** int(l.max()),
    "sqrt of a read": lambda x, l: x / math.sqrt(int(l.max())),
    "log of a read": lambda x, l: x * math.log(int(l.max()) + 1),
    "topk by a read": lambda x, l: x.topk(int(l.min()), 1).values,
    "kthvalue by a read": lambda x, l: x.kthvalue(int(l.min()), 1).values,
    "roll by a read": lambda x, l: x.roll(int(l.max()), 1),
    "select by a read": lambda x, l: x.select(1, int(l.max()) - 1),
    "narrow by reads": lambda x, l: x.narrow(1, int(l.min()) - 1, int(l.max()) - int(l.min()) + 1),
    "view by a read": lambda x, l: x[:, : x.shape[1] // int(l[0] % 3 + 1) * int(l[0] % 3 + 1)].reshape(x.shape[0], int(l[0] % 3 + 1), -1).sum(2),
    "chunks by a read": lambda x, l: x.chunk(int(l[0] % 3 + 1), 1)[0],
    "split by a read": lambda x, l: x.split(int(l.max()), 1)[0],
    "one_hot by a read": lambda x, l: F.one_hot(l, int(l.max()) + 1) + x.sum().long() * 0,
    "eye by a read": lambda x, l: torch.eye(int(l.max())) * x.sum(),
    "linspace by a read": lambda x, l: torch.linspace(0, 1, int(l.max())) * x.sum(),
    "interpolate by a read": lambda x, l: F.interpolate(x[None], size=int(l.max())),
    "pad by a read": lambda x, l: F.pad(x, (int(l.min()), 0)),
    "pool by a read": lambda x, l: F.avg_pool1d(x, int(l.min())),
    "unfold by a read": lambda x, l: x.unfold(1, int(l.min()), 1).sum(2),
    "tril by a read": lambda x, l: x.tril(int(l.min()) - 3),
    "diagonal by a read": lambda x, l: x.diagonal(int(l.min()) - 1),
    "softmax temperature by a read": lambda x, l: (x / l.max().item()).softmax(1),
    "layers by a read": lambda x, l: stepped(x, int(l.max())),
    "clamp by a read": lambda x, l: x.clamp(-l.max().item(), l.min().item()),
    "where by a read": lambda x, l: torch.where(x > 0, l.max().item(), x),
    "full by a read": lambda x, l: torch.full((2, 2), l.max().item()) + x.sum().long() * 0,
    "tensor of a read": lambda x, l: x + torch.tensor(l.max().item()),
    "tensor of two reads": lambda x, l: x.sum() + torch.tensor([l.max().item(), l.min().item()]),
    "as_tensor of reads": lambda x, l: torch.as_tensor([float(v) for v in (l.max(), l.min())]) + x.sum(),
    "new_tensor of a read": lambda x, l: x.new_tensor([int(l.max())]) + x,
    "arange by steps that were read": lambda x, l: torch.arange(0, 20, int(l.min())) + x.sum().long() * 0,
    "written from a place before a read": lambda x, l: x.slice_scatter(x[:, int(l[0]) - 1 :] * 0, 1, int(l[0]) - 1),
    "a number in a list": lambda x, l: x * 2 if 3 in l.tolist() else x * 3,
    "how often in a list": lambda x, l: x * l.tolist().count(2),
    "place in a list": lambda x, l: x * l.tolist().index(max(l.tolist())),
    "a float in a list": lambda x, l: x * 2 if 0.0 in x[0].tolist() else x * 3,
    "any of a list": lambda x, l: x * 2 if any((l - 2).tolist()) else x * 3,
    "all of a list": lambda x, l: x * 2 if all((l - 2).tolist()) else x * 3,
    "parts of a list": lambda x, l: x * sum(l.tolist()[:2]) - max(l.tolist()[:-1] + [0]) + min(l.tolist()[::2]),
    "tensor of a list": lambda x, l: x + torch.tensor(l.tolist())[:, None],
    "as_tensor of a list": lambda x, l: x + torch.as_tensor(l.tolist())[:, None],
    "tensor of a part of a list": lambda x, l: x + torch.tensor(l.tolist()[:2], dtype=torch.float64).sum(),
    "tensor of a sorted list": lambda x, l: x + torch.tensor(sorted(l.tolist()))[:, None],
    "tensor of a list of floats": lambda x, l: x + torch.tensor(x[0].double().tolist()),
    "smallest of floats": lambda x, l: x + min(x.flatten().tolist()),
    "largest of floats": lambda x, l: x * max(x[0].tolist()),
    "mean of floats": lambda x, l: x - sum(x[0].tolist()) / len(x[0].tolist()),
    "sorted floats": lambda x, l: x * sorted(x[0].tolist())[0],
    "smallest of floats one by one": lambda x, l: x + min(x[0, k].item() for k in range(6)),
}.items():
    row("list reads", name, fn, X, L, largest=70)

@functools.cache
def cached(n):
    return n * 2 + 1

def grown(x, l):
    t, out = 0, torch.zeros(x.shape[0])
    while t < int(l.max()):
        out = out * 0.5 + x[:, t]
        t += 1
    return out

def stepped(x, n):
    for _ in range(n):
        x = x * 0.5 + 1
    return x
# fmt: on
