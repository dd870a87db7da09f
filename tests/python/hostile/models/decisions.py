"""Values that decide: which number, which operator, how often; and places that values name."""

# ruff: noqa: B007, C416

import math

import numpy as np
import torch
import torch.nn.functional as F

from ..rows import floats, ids, row

# fmt: off

X = floats(3, 9)
T = ids(3, 9, high=12)
XT = (floats(3, 9), ids(3, 9, high=5))

# values decide which constant, which operator, which slice
for name, fn in {
    "factor by any": lambda x: x * (2.0 if (x > 1).any() else 3.0),
    "factor by all": lambda x: x * (2 if (x > -1).all() else 3),
    "factor by a count": lambda x: x * int((x > 0).sum()),
    "factor by a truth": lambda x: x * (1 + bool((x > 1).any())),
    "factor by a float of a truth": lambda x: x * float((x > 1).any()),
    "slice by a truth": lambda x: x[:, : 3 + 2 * int((x > 1).any())],
    "axis by a truth": lambda x: x.sum(int((x > 1).any())),
    "pad by a truth": lambda x: F.pad(x, (0, 1 if x.mean() > 0 else 2)),
    "two truths": lambda x: x * 2 if (x > 1).any() and (x < -1).any() else x * 3,
    "either truth": lambda x: x * 2 if (x > 2).any() or (x < -2).any() else x * 3,
    "not a truth": lambda x: x * 2 if not (x > 1).any() else x * 3,
    "three ways": lambda x: x * 2 if x.sum() > 3 else x * 3 if x.sum() < -3 else x * 4,
    "chosen from a list": lambda x: x * [2.0, 3.0][int(x.sum() > 0)],
    "chosen from a dict": lambda x: x * {True: 2.0, False: 3.0}[bool(x.sum() > 0)],
    "chosen by a name": lambda x: getattr(x, "cos" if x.sum() > 0 else "sin")(),
    "chosen weights": lambda x: x @ (torch.ones(1, 2) if x.sum() > 0 else -torch.ones(1, 2)).expand(x.shape[1], -1),
    "chosen rows": lambda x: x[0] if x[0, 0] > x[1, 0] else x[1],
    "the larger tensor": lambda x: max(x.sum(), x.mean()),
    "the smaller tensor": lambda x: min(x[0].sum(), x[1].sum()),
    "compared with a size": lambda x: x * 2 if (x > 0).sum() > x.numel() // 2 else x * 3,
    "compared with a half": lambda x: x * 2 if (x > 0).float().mean() > 0.5 else x * 3,
    "value and size": lambda x: x * 2 if x.sum() > 0 and x.shape[1] > 20 else x * 3,
    "value or size": lambda x: x * 2 if x.shape[1] > 20 or x.sum() > 0 else x * 3,
    "nested": lambda x: (x * 2 if x[0, 0] > 0 else x * 3) if x.shape[1] > 20 else x * 4,
    "truth kept": lambda x: kept_truth(x),
    "assert on values": lambda x: asserted(x),
    "a value in an f-string": lambda x: x * len(f"{int(x.abs().max())}"),
    "argmax as a place": lambda x: x[:, int(x.sum(0).argmax())],
    "argmax as a bound": lambda x: x[:, : int(x[0].argmax()) + 1],
    "first above": lambda x: x[:, int((x[0] > 0).int().argmax()) :],
    "nonzero count": lambda x: x * (x > 0).nonzero().shape[0],
    "unique count": lambda x: x * x.round().unique().numel(),
    "numel of a mask": lambda x: x[x > 0].numel() + x,
    "size of a mask": lambda x: x.sum() / max(1, x[x > 0].shape[0]),
    "if anything is selected": lambda x: x[x > 2].mean() if x[x > 2].numel() else x.mean(),
    "if nothing is selected": lambda x: x.mean() if len(x[x > 2]) == 0 else x[x > 2].mean(),
    "while large": lambda x: halved_while(x),
    "for and break": lambda x: broken(x),
    "retry": lambda x: retried(x),
    "item compared": lambda x: x * 2 if x.max().item() > 1.5 else x,
    "item in a tuple": lambda x: x * 2 if int(x.max()) in (0, 1) else x,
    "item rounded": lambda x: x * round(x.max().item(), 1),
    "item through math": lambda x: x * math.floor(x.max().item() * 2) / 2,
    "item through max": lambda x: x * max(1.0, x.max().item()),
    "item through min and max": lambda x: x / max(min(x.abs().max().item(), 2.0), 0.5),
    "item as a slope": lambda x: F.leaky_relu(x, x.abs().mean().item()),
    "item as a bound of clamp": lambda x: x.clamp(max=x.mean().item()),
    "item as an exponent": lambda x: x.abs() ** (1 + abs(x.mean().item())),
    "item as a fill": lambda x: x.masked_fill(x > 0, x.min().item()),
    "item as an eps": lambda x: F.layer_norm(x, x.shape[1:], eps=abs(x.mean().item()) + 1e-3),
    "two items": lambda x: (x - x.min().item()) / (x.max().item() - x.min().item() + 1e-6),
    "item to int": lambda x: x[:, : 1 + int(abs(x[0, 0].item()) * 2)],
    "items as a list": lambda x: x * torch.tensor([v for v in x[0, :3].tolist()]).sum(),
    "linspace of items": lambda x: torch.linspace(x.min().item(), x.max().item(), 5),
    "arange to an item": lambda x: torch.arange(int(x.abs().max().item()) + 2) + x.sum(),
    "full of an item": lambda x: torch.full((x.shape[1],), x.max().item()),
    "quantile by an item": lambda x: x > torch.quantile(x, 0.5).item(),
    "histogram over items": lambda x: torch.histc(x, 5, x.min().item(), x.max().item()),
    "bucketize by items": lambda x: torch.bucketize(x, torch.linspace(-1, 1, 5)),
    "python sum of items": lambda x: x * sum(x[0, :3].tolist()),
    "python max of items": lambda x: x * max(x[0, :3].tolist()),
    "python sorted of items": lambda x: x * sorted(x[0, :3].tolist())[1],
    "python mean of items": lambda x: x * (sum(x[0].tolist()) / len(x[0].tolist())),
}.items():
    row("values decide", name, fn, X, largest=70)

def kept_truth(x):
    flag = bool((x > 1).any())
    y = x.cos() if flag else x
    return y * 2 if flag else y * 3

def asserted(x):
    assert (x.abs() < 1e6).all()
    return x * 2

def halved_while(x):
    while x.abs().max() > 4:
        x = x / 2
    return x

def broken(x):
    out = x
    for k in range(3):
        if out.sum() > 5:
            break
        out = out + 1
    return out

def retried(x):
    y = x.log()
    if y.isnan().any():
        y = x.abs().add(1).log()
    return y

# scatter, gather, indices
for name, fn in {
    "gather both ways": lambda x, t: x.gather(1, t).gather(0, t % x.shape[0]),
    "scatter add": lambda x, t: torch.zeros(x.shape[0], 5).scatter_add(1, t, x),
    "scatter mean": lambda x, t: torch.zeros(x.shape[0], 5).scatter_reduce(1, t, x, "mean", include_self=False),
    "scatter max": lambda x, t: torch.full((x.shape[0], 5), -9.0).scatter_reduce(1, t, x, "amax"),
    "scatter by rows": lambda x, t: torch.zeros(5, x.shape[1]).scatter_add(0, t, x),
    "index_add": lambda x, t: torch.zeros(x.shape[0], 5).index_add(1, t[0], x),
    "index_add with alpha": lambda x, t: torch.ones(x.shape[0], 5).index_add(1, t[0], x, alpha=0.5),
    "index_put accumulate": lambda x, t: torch.zeros(5, 5).index_put((t, t.flip(1)), x, accumulate=True),
    "index two axes": lambda x, t: x[t[:, 0] % x.shape[0], t[:, 1] % x.shape[1]],
    "index outer": lambda x, t: x[(t[:, 0] % x.shape[0])[:, None], t[0, :3] % x.shape[1]],
    "index with none": lambda x, t: x[:, None, t[0] % x.shape[1]],
    "index with a slice between": lambda x, t: x[None].expand(4, -1, -1)[t[0] % 4, :, t[0] % x.shape[1]],
    "index with two apart": lambda x, t: x[None, None].expand(2, 4, -1, -1)[:, t[0] % 4, :, t[0] % x.shape[1]],
    "index by a negative": lambda x, t: x[:, -1 - t[0] % x.shape[1]],
    "index by uint8": lambda x, t: x[:, (t[0] > 2).to(torch.uint8).bool()],
    "index by a list": lambda x, t: x[[0, -1, 0]],
    "index by nested lists": lambda x, t: x[[[0, 1], [1, 0]]],
    "index by a range": lambda x, t: x[:, range(1, 4)],
    "index by numpy": lambda x, t: x[:, np.array([0, 2])],
    "index by a bool list": lambda x, t: x[[True, False, True]] if x.shape[0] == 3 else x[:2],
    "index by a true": lambda x, t: x[True],
    "index by a false": lambda x, t: x[False],
    "index by 0-d": lambda x, t: x[:, t[0, 0]],
    "index by 0-d bool": lambda x, t: x[x[0, 0] > 0],
    "mask of two axes": lambda x, t: x[(t > 2) & (x > 0)],
    "mask of rows": lambda x, t: x[(t > 2).any(1)],
    "mask then index": lambda x, t: x[(t > 2).any(1)][:, t[0] % x.shape[1]],
    "mask and slice": lambda x, t: x[(t > 2).any(1), 1:4],
    "mask and index": lambda x, t: x[:, None].expand(-1, 2, -1)[(t > 2).any(1), :, 0],
    "mask written with rows": lambda x, t: written_rows(x, t),
    "mask written with a number": lambda x, t: written_number(x, t),
    "columns written by places": lambda x, t: written_columns(x, t),
    "cells written by places": lambda x, t: written_cells(x, t),
    "diagonal written": lambda x, t: written_diagonal(x),
    "written through a transpose": lambda x, t: written_transposed(x),
    "written by where": lambda x, t: torch.where(t > 2, x, x.mean(1, keepdim=True)),
    "written by an add": lambda x, t: written_add(x, t),
    "take": lambda x, t: x.take(t),
    "put": lambda x, t: x.put(t[0, :2], torch.ones(2)),
    "take_along_dim of argsort": lambda x, t: x.take_along_dim(x.argsort(dim=1, descending=True, stable=True), 1),
    "index_select both": lambda x, t: x.index_select(1, t[0] % x.shape[1]).index_select(0, t[:, 0] % x.shape[0]),
    "searchsorted in each row": lambda x, t: torch.searchsorted(x.sort(1).values, t.float(), right=True),
    "searchsorted with a sorter": lambda x, t: torch.searchsorted(x[0].contiguous(), x[1].contiguous(), sorter=x[0].argsort()),
    "bincount": lambda x, t: t.flatten().bincount(minlength=5) + x.sum().long() * 0,
    "bincount with weights": lambda x, t: t.flatten().bincount(x.flatten(), minlength=5),
    "bincount of more": lambda x, t: t.flatten().bincount(),
    "one_hot of all": lambda x, t: F.one_hot(t),
    "unique with all": lambda x, t: t.unique(return_inverse=True, return_counts=True),
    "unique of an axis": lambda x, t: t.unique(dim=1),
    "unique unsorted": lambda x, t: t.unique(sorted=False).sort().values,
    "unique_consecutive of an axis": lambda x, t: (t // 3).unique_consecutive(dim=1),
    "histogram by comparison": lambda x, t: (t[..., None] == torch.arange(5)).sum((0, 1)),
    "cumulative counts": lambda x, t: (t[:, :, None] == torch.arange(5)).cumsum(1).gather(2, t[..., None]).squeeze(2),
    "segment max by sort": lambda x, t: x.gather(1, t.argsort(dim=1, stable=True)).cummax(1).values,
    "embedding with padding": lambda x, t: F.embedding(t, torch.arange(20.0).view(5, 4), padding_idx=2),
    "embedding scaled by a size": lambda x, t: F.embedding(t, torch.arange(20.0).view(5, 4)) * math.sqrt(t.shape[1]),
    "embedding_bag with weights": lambda x, t: F.embedding_bag(t, torch.arange(20.0).view(5, 4), per_sample_weights=x, mode="sum"),
    "embedding_bag with offsets": lambda x, t: F.embedding_bag(t.flatten(), torch.arange(20.0).view(5, 4), torch.arange(0, t.numel(), t.shape[1])),
    "tril_indices": lambda x, t: x[:, : x.shape[0]][tuple(torch.tril_indices(x.shape[0], min(x.shape[0], x.shape[1])))] if x.shape[1] >= x.shape[0] else x,
    "block mask": lambda x, t: (t[:, :, None] == t[:, None, :]) & (torch.arange(t.shape[1])[:, None] >= torch.arange(t.shape[1])),
    "masked_select and back": lambda x, t: torch.zeros_like(x).masked_scatter(t > 2, x.masked_select(t > 2) * 2),
    "topk then scatter": lambda x, t: torch.zeros_like(x).scatter(1, (x + torch.arange(x.shape[1]) * 100).topk(min(2, x.shape[1]), 1).indices, 1.0),
    "argsort then inverse": lambda x, t: x.gather(1, x.argsort(1)).gather(1, x.argsort(1).argsort(1)),
    "nonzero as places": lambda x, t: x[tuple((t > 2).nonzero().T)],
    "where as places": lambda x, t: x[torch.where(t > 2)],
    "isin": lambda x, t: torch.isin(t, torch.tensor([1, 3]), invert=True),
    "mode": lambda x, t: t.mode(1).values,
    "median of ints": lambda x, t: t.median(1).values,
    "cummax of ints": lambda x, t: t.cummax(1),
    "cumprod of ints": lambda x, t: t.cumprod(1),
    "bits packed": lambda x, t: ((t > 2).long() << torch.arange(t.shape[1]).clamp(max=62)).sum(1),
    "bits unpacked": lambda x, t: (t[..., None] >> torch.arange(4)) & 1,
    "gcd": lambda x, t: torch.gcd(t, torch.tensor(4)),
    "lcm": lambda x, t: torch.lcm(t + 1, torch.tensor(4)),
    "popcount": lambda x, t: sum((t >> k) & 1 for k in range(4)),
    "float to bits": lambda x, t: (x.view(torch.int32) >> 23) & 255,
}.items():
    row("places", name, fn, *XT, largest=50)

def written_rows(x, t):
    x = x.clone()
    x[(t > 2).any(1)] = x[0].clone()
    return x
def written_number(x, t):
    x = x.clone()
    x[t > 2] = -1
    return x
def written_columns(x, t):
    x = x.clone()
    x[:, [0, -1]] = 5.0
    return x
def written_cells(x, t):
    x = x.clone()
    x[torch.arange(x.shape[0]), t[:, 0] % x.shape[1]] = 7.0
    return x
def written_diagonal(x):
    x = x.clone()
    x.fill_diagonal_(0)
    return x
def written_transposed(x):
    x = x.clone()
    x.T[1] = 3.0
    return x
def written_add(x, t):
    x = x.clone()
    x[:, 1:] += x[:, :-1].clone()
    x[0] *= 2
    return x
# fmt: on
