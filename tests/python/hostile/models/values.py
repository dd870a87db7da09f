"""Values that are read, masks, selections, data that decides sizes or branches; tensors that come from outside of torch."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence, unpad_sequence

from ..rows import bools, floats, ids, lengths, mask, row, unit

# fmt: off

# ---- reads -------------------------------------------------------------------------------------------------------------

row("reads", "ceil of the longest", lambda x, l: x.sum(1) + math.ceil(int(l.max()) / 3), floats(3, 6), lengths(3))
row("reads", "cut to the longest", lambda x, l: x[:, : int(l.max())], floats(3, 6), lengths(3))
row("reads", "cut to the longest, by item", lambda x, l: x[:, : l.max().item()], floats(3, 6), lengths(3))
row("reads", "cut to the shortest", lambda x, l: x[:, : int(l.min())].sum(1), floats(3, 6), lengths(3))
row("reads", "cut ids to what is not padding", lambda t: t[:, : int((t != 0).sum(1).max())], ids(3, 6, high=9))
row("reads", "ids over the number of kinds", lambda t: t.float() / torch.unique(t).shape[0], ids(3, 6, high=9))
row("reads", "number of ones", lambda t: t.float() * (t != 0).sum().item(), ids(3, 6, high=4))
row("reads", "tolist as bounds", lambda x, l: torch.stack([r[:n].sum() for r, n in zip(x, l.tolist(), strict=True)]), floats(3, 6), lengths(3))
row("reads", "first length", lambda x, l: x[:, : l[0]], floats(3, 6), lengths(3))
row("reads", "first length, item", lambda x, l: x[:, : l[0].item()].sum(1), floats(3, 6), lengths(3))
row("reads", "mask of the longest", lambda l: torch.arange(int(l.max()))[None] < l[:, None], ids(4, high=9, low=1))
row("reads", "read equal to a size", lambda x, l: x[:, : int(l.max())] * x.shape[1], floats(3, 6), lengths(3, low=6))
row("reads", "half of the longest", lambda x, l: x[:, : int(l.max()) // 2].sum(1), floats(3, 8), lengths(3, low=2))
row("reads", "the longest, padded to eight", lambda x, l: F.pad(x[:, : int(l.max())], (0, -int(l.max()) % 8)), floats(3, 6), lengths(3))
row("reads", "read as a factor", lambda x, l: x * int(l.sum()), floats(3, 6), lengths(3))
row("reads", "float read as a factor", lambda x: x * x.max().item(), floats(3, 6))
row("reads", "float read, square root", lambda x: x * math.sqrt(x.abs().max().item() + 1), floats(3, 6))
row("reads", "mean read and subtracted", lambda x: x - float(x.mean()), floats(3, 6))
row("reads", "argmax as a place", lambda x: x[:, int(x[0].argmax())], floats(3, 6))
row("reads", "argmax as a cut", lambda t: t[:, : int(t[0].argmax()) + 1], ids(3, 6))
row("reads", "nonzero first", lambda t: t[:, int((t[0] > 2).nonzero()[0, 0]) :], ids(3, 12, high=9))
row("reads", "zeros by a value", lambda x, l: torch.zeros(int(l[0]), 2) + x.sum(), floats(3, 6), lengths(3))
row("reads", "arange by a value", lambda l: torch.arange(int(l.sum())).float(), ids(4, high=9, low=1))
row("reads", "one_hot by itself", lambda t: F.one_hot(t).sum(1), ids(3, 6, high=9))
row("reads", "bincount", lambda t: torch.bincount(t), ids(12, high=9))
row("reads", "repeat by counts", lambda x, l: x.repeat_interleave(l, 0), floats(4, 3), ids(4, high=4))
row("reads", "max of two reads", lambda x, l: x[:, : max(int(l[0]), int(l[-1]))], floats(3, 6), lengths(3))
row("reads", "read less size", lambda x, l: F.pad(x, (0, x.shape[1] - int(l.max()))), floats(3, 6), lengths(3))
row("reads", "image sizes", lambda x, s: x[:, : int(s[0, 0]), : int(s[0, 1])], floats(2, 5, 7), ids(2, 2, high=5, low=1))
row("reads", "product of a grid", lambda x, g: x[:, : int(g.prod())], floats(2, 20), ids(3, high=3, low=1), largest=30)
row("reads", "split by lengths", lambda x, l: torch.stack([p.sum(0) for p in x.split(l.tolist())]), floats(12, 2), ids(3, high=5, low=4))
row("reads", "cumulated lengths", lambda x, l: torch.stack([x[a:b].sum(0) for a, b in zip([0, *l.cumsum(0).tolist()[:-1]], l.cumsum(0).tolist(), strict=True)]), floats(40, 2), ids(4, high=5, low=1))
row("reads", "python sum of a list", lambda x, l: x * sum(l.tolist()), floats(3, 6), lengths(3))
row("reads", "string of a value", lambda x, l: x * len(str(int(l.max()))), floats(3, 20), lengths(3))
row("reads", "count of a mask", lambda x: x * int((x > 0).sum()), floats(3, 6))
row("reads", "top k of a count", lambda x, l: x.topk(int(l.min()), 1).values, floats(3, 6), lengths(3))
row("reads", "temperature over twenty thousand", lambda x, t: (x / (t.item() + 0.1)).softmax(-1), floats(1, 20000), unit(1), largest=8)
row("reads", "tensor of reads", lambda x: x * torch.tensor([x.max(), x.min()])[0], floats(3, 6))
row("reads", "tensor of reads, both", lambda x: x[:, :2] * torch.tensor([x.max(), x.min()]), floats(3, 6))
row("reads", "tensor of items", lambda x: x * torch.tensor(x.sum().item()), floats(3, 6))
row("reads", "tensor of sizes and reads", lambda x, l: torch.tensor([x.shape[1], int(l.max())]) * 2, floats(3, 6), lengths(3))
row("reads", "tensor of a list", lambda x, l: x[torch.tensor(sorted(range(len(l)), key=lambda k: l.tolist()[k]))], floats(4, 6), lengths(4))

# ---- branches by value -------------------------------------------------------------------------------------------------

row("branches by value", "if any", lambda x: x.relu() if (x > 2).any() else x.tanh(), floats(3, 6))
row("branches by value", "if the sum is positive", lambda x: x * 2 if x.sum() > 0 else x - 1, floats(3, 6))
row("branches by value", "if the mask is all ones", lambda x, m: x if m.all() else x * m, floats(3, 6), mask(3, 6))
row("branches by value", "if a flag", lambda x, f: x.relu() if bool(f) else x.tanh(), floats(3, 6), ids(1, high=2))
row("branches by value", "if the first id", lambda t: t * 2 if t[0, 0] == 3 else t + 1, ids(3, 6, high=5))
row("branches by value", "if a length is even", lambda x, l: x[:, ::2] if int(l[0]) % 2 == 0 else x[:, 1::2], floats(3, 6), lengths(3))
row("branches by value", "if isnan", lambda x: torch.zeros_like(x) if x.isnan().any() else x + 1, floats(3, 6))
row("branches by value", "while above one", lambda x: halved(x), floats(3, 6))
row("branches by value", "max with a read", lambda x: x[:, : max(2, int(x[0, 0]))], floats(3, 12))
row("branches by value", "sorted by item", lambda x: torch.stack(sorted(x.unbind(0), key=lambda r: r[0].item())), floats(3, 6))
row("branches by value", "python bool of a comparison", lambda x, y: x if x.mean() > y.mean() else y, floats(3, 6), floats(3, 6))
row("branches by value", "dict by value", lambda x, t: {0: x.relu, 1: x.tanh, 2: x.sigmoid}[int(t[0])](), floats(3, 6), ids(3, high=3))
row("branches by value", "experts by a loop", lambda x, t: experts(x, t), floats(6, 4), ids(6, high=3))
row("branches by value", "experts that are empty", lambda x, t: experts_if(x, t), floats(6, 4), ids(6, high=3))


def halved(x):
    while x.abs().max() > 1:
        x = x / 2
    return x


def experts(x, t):
    out = torch.zeros_like(x)
    for k in range(3):
        chosen = t == k
        out[chosen] = x[chosen] * (k + 1)
    return out


def experts_if(x, t):
    out = torch.zeros_like(x)
    for k in t.unique().tolist():
        out[t == k] = x[t == k] * (k + 1)
    return out


# ---- masks and selections ----------------------------------------------------------------------------------------------

row("masks", "mean of what is above .99", lambda x: x[x > 0.99].mean(), unit(3, 40))
row("masks", "mean of what is above 3", lambda x: x[x > 3].mean(), floats(3, 40))
row("masks", "sum of a selection", lambda x, m: x[m].sum(0), floats(6, 3), bools(6))
row("masks", "rows of a mask", lambda x, m: x[m], floats(6, 3), bools(6))
row("masks", "maximum of a selection", lambda x: x[x > 0].max(), floats(3, 6))
row("masks", "std of a selection", lambda x: x[x > 1.5].std(), floats(3, 12))
row("masks", "softmax under a mask", lambda x, m: x.masked_fill(m == 0, float("-inf")).softmax(-1), floats(3, 6), mask(3, 6))
row("masks", "softmax, nothing left", lambda x, m: x.masked_fill(~m, float("-inf")).softmax(-1), floats(3, 6), bools(3, 6))
row("masks", "mean under a mask", lambda x, m: (x * m[..., None]).sum(1) / m.sum(1, keepdim=True), floats(3, 6, 2), mask(3, 6))
row("masks", "last token", lambda x, m: x[torch.arange(x.shape[0]), m.sum(1) - 1], floats(3, 6, 2), mask(3, 6))
row("masks", "last token by flip", lambda x, m: x[torch.arange(x.shape[0]), m.shape[1] - 1 - m.flip(1).argmax(1)], floats(3, 6, 2), mask(3, 6))
row("masks", "positions by cumsum", lambda m: (m.cumsum(1) - 1).masked_fill(m == 0, 1), mask(3, 6))
row("masks", "nonzero", lambda x: torch.nonzero(x > 0), floats(3, 6))
row("masks", "where, three places", lambda x: torch.where(x > 0)[1], floats(3, 6))
row("masks", "masked_select over its count", lambda x: x.masked_select(x > 0) / x.masked_select(x > 0).shape[0], floats(3, 6))
row("masks", "masked_scatter", lambda x, m, y: x.masked_scatter(m, y), floats(3, 6), bools(3, 6), floats(3, 6))
row("masks", "written by mask", lambda x, m: written(x, m), floats(6, 3), bools(6))
row("masks", "reshape of a selection", lambda x, m: x[m].reshape(-1, 1), floats(6, 4), bools(6))
row("masks", "unique with counts", lambda t: torch.unique(t, return_counts=True), ids(3, 6, high=9))
row("masks", "unique inverse", lambda t: torch.unique(t, return_inverse=True)[1], ids(3, 6, high=9))
row("masks", "unique_consecutive", lambda t: torch.unique_consecutive(t), ids(12, high=3))
row("masks", "causal by tril", lambda x: x.masked_fill(~torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril(), -1e9).softmax(-1), floats(2, 6, 6))
row("masks", "band of three", lambda x: torch.ones(x.shape[1], x.shape[1]).tril(1).triu(-1) @ x[0], floats(2, 6, 3))
row("masks", "diagonal of a size", lambda x: x.tril(x.shape[1] // 2), floats(6, 7))


def written(x, m):
    y = x.clone()
    y[m] = 0
    y[~m] += 1
    return y


# ---- lists of tensors, sequences of several lengths --------------------------------------------------------------------

row("sequences", "pad two", lambda x, y: pad_sequence([x, y]), floats(5, 3), floats(8, 3))
row("sequences", "pad two, batch first", lambda x, y: pad_sequence([x, y], batch_first=True), floats(8, 3), floats(5, 3))
row("sequences", "pad two, of one size", lambda x, y: pad_sequence([x, y], batch_first=True), floats(5, 3), floats(5, 3))
row("sequences", "pad three with a value", lambda x, y, z: pad_sequence([x, y, z], batch_first=True, padding_value=-1.0), floats(5, 3), floats(8, 3), floats(2, 3))
row("sequences", "pad a list", lambda xs: pad_sequence(xs, batch_first=True), [floats(5, 3), floats(8, 3)])
row("sequences", "pad on the left", lambda x, y: pad_sequence([x, y], batch_first=True, padding_side="left"), floats(5, 3), floats(8, 3))
row("sequences", "unpad", lambda x, l: torch.cat(unpad_sequence(x, l, batch_first=True)), floats(3, 6, 2), lengths(3))
row("sequences", "pack and pad", lambda x, l: pad_packed_sequence(pack_padded_sequence(x, l, True, False), True)[0], floats(3, 6, 2), lengths(3))
row("sequences", "cat of a list", lambda xs: torch.cat(xs, 1).cumsum(1), [floats(3, 5), floats(3, 8), floats(3, 2)])
row("sequences", "sum of a list", lambda xs: sum(x.sum(1) for x in xs), [floats(3, 5), floats(3, 8)])
row("sequences", "longest of a list", lambda xs: max(xs, key=len) * 2, [floats(5), floats(8)])
row("sequences", "longest of two", lambda x, y: max(x.shape[0], y.shape[0]) * x.sum() + y.sum(), floats(5), floats(8))
row("sequences", "zeros of the longest", lambda xs: torch.zeros(max(len(x) for x in xs)) + sum(x.sum() for x in xs), [floats(5), floats(8)])
row("sequences", "dict of tensors", lambda d: d["a"] @ d["b"], {"d": {"a": floats(3, 5), "b": floats(5, 4)}})
row("sequences", "dict, by its keys", lambda d: torch.cat([d[k] for k in sorted(d)], 1), {"d": {"b": floats(3, 5), "a": floats(3, 4)}})
row("sequences", "nested", lambda d: d["a"][0] + d["a"][1][:, : d["b"].shape[1]], {"d": {"a": [floats(3, 4), floats(3, 9)], "b": floats(2, 4)}})
row("sequences", "nested_tensor", lambda x, y: torch.nested.to_padded_tensor(torch.nested.nested_tensor([x, y]), 0.0), floats(5, 3), floats(8, 3))

# ---- from outside of torch ---------------------------------------------------------------------------------------------

row("outside", "numpy tanh", lambda x: torch.from_numpy(np.tanh(x.numpy())), floats(3, 6))
row("outside", "numpy mean", lambda x: x - float(np.mean(x.numpy())), floats(3, 6))
row("outside", "numpy of sizes", lambda x: x * torch.from_numpy(np.arange(x.shape[1], dtype=np.float32)), floats(3, 6))
row("outside", "numpy linspace of sizes", lambda x: x * torch.tensor(np.linspace(0, 1, x.shape[1]), dtype=torch.float32), floats(3, 6))
row("outside", "numpy sort", lambda x: torch.tensor(np.sort(x.numpy(), 1)), floats(3, 6))
row("outside", "numpy integers", lambda x: x[:, : int(np.ceil(x.shape[1] * 0.4))], floats(3, 6))
row("outside", "numpy integer kept", lambda x: x[:, : np.int64(x.shape[1]) // 2], floats(3, 6))
row("outside", "numpy product of a shape", lambda x: x.reshape(int(np.prod(x.shape))), floats(3, 6))
row("outside", "list of python floats", lambda x: torch.tensor([v * 2 for v in x[0].tolist()]) + x, floats(3, 6))
row("outside", "tensor of a comprehension", lambda x: x + torch.tensor([k * 0.5 for k in range(x.shape[1])]), floats(3, 6))
row("outside", "tensor of a shape", lambda x: x.sum() * torch.tensor(x.shape), floats(3, 6))
row("outside", "as_tensor of a size", lambda x: x / torch.as_tensor(x.shape[-1]), floats(3, 6))
row("outside", "tensor of a nested list", lambda x: torch.tensor([[x.shape[0], x.shape[1]], [1, 2]]) * 2, floats(3, 6))
row("outside", "data_ptr copy", lambda x: torch.frombuffer(bytearray(x.numpy().tobytes()), dtype=torch.float32).view(x.shape), floats(3, 6))
row("outside", "python random seeded by a size", lambda x: x * np.random.RandomState(x.shape[1]).rand(), floats(3, 6))
row("outside", "numpy on a buffer", lambda x: x + torch.from_numpy(np.outer(np.arange(x.shape[0]), np.arange(x.shape[1])).astype("float32")), floats(3, 6))
# fmt: on
