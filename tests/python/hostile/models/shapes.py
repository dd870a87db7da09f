"""Sizes that are equal by chance, sizes of one, views, ranges, writes through views."""

import torch
import torch.nn.functional as F
from torch import nn

from ..rows import floats, ids, row

# fmt: off

# ---- sizes that are equal by chance, sizes of one ----------------------------------------------------------------------


class Proj(nn.Module):
    """A hidden size that inputs may share by chance."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)


class RowsAsHidden(Proj):
    def forward(self, x):
        return self.linear(x) * x.shape[1] + self.linear.weight.shape[0]


class BiasByRows(Proj):
    def forward(self, x):
        return self.linear(x) + torch.arange(x.shape[1])[:, None]


row("equal sizes", "hidden as long as the sequence", RowsAsHidden, floats(2, 4, 4))
row("equal sizes", "hidden as long as the batch", RowsAsHidden, floats(4, 3, 4))
row("equal sizes", "positions, hidden as long", BiasByRows, floats(2, 4, 4))
row("equal sizes", "batch as long as the sequence", lambda x: x + torch.arange(x.shape[0])[:, None] * x.shape[1], floats(5, 5))
row("equal sizes", "batch as long as the sequence, reshaped", lambda x: x.reshape(x.shape[1], x.shape[0]), floats(5, 5))
row("equal sizes", "two inputs of one size", lambda x, y: x.sum(1) * y.shape[1] + y.sum(1) * x.shape[1], floats(3, 5), floats(3, 5))
row("equal sizes", "outer", lambda x, y: x[:, None] * y[None], floats(5), floats(5))
row("equal sizes", "as a constant", lambda x: x.reshape(-1, 8).sum(1) + 8, floats(3, 8))
row("equal sizes", "as a constant of ten", lambda x: F.pad(x, (0, 10)) * 10, floats(3, 10))
row("equal sizes", "three of one size", lambda x: x.permute(2, 0, 1) * x.shape[1], floats(4, 4, 4))
row("equal sizes", "twice another", lambda x, y: x[:, : y.shape[1]] * 2 + y, floats(3, 8), floats(3, 4))
row("equal sizes", "sum of two others", lambda x, y, z: x.sum() + torch.cat([y, z], 1).cumsum(1), floats(3, 9), floats(3, 5), floats(3, 4))
row("equal sizes", "of one: broadcast", lambda x, y: x + y, floats(3, 6), floats(1, 6))
row("equal sizes", "of one: both ways", lambda x, y: x * y, floats(3, 1), floats(1, 6))
row("equal sizes", "of one: example of one", lambda x: x.expand(x.shape[0], 5).cumsum(1), floats(3, 1))
row("equal sizes", "of one: squeezed", lambda x: x.squeeze(1).sum(-1), floats(3, 1, 4))
row("equal sizes", "of one: squeeze all", lambda x: x.squeeze(), floats(3, 5, 4))
row("equal sizes", "of one: batch of one", lambda x: x.cumsum(1) * x.shape[0], floats(1, 6))
row("equal sizes", "of one: everything", lambda x: x.cumsum(1) * x.shape[0] + x.shape[1], floats(1, 1))
row("equal sizes", "of one: std", lambda x: x.std(1), floats(3, 6))
row("equal sizes", "broadcast by chance", lambda x, y: x[:, None] + y[None, :], floats(4, 3), floats(4, 3))
row("equal sizes", "heads as long as the batch", lambda x: x.view(x.shape[0], x.shape[1], 2, 2).transpose(1, 2) @ x.view(x.shape[0], x.shape[1], 2, 2).transpose(1, 2).mT, floats(2, 2, 4))

# ---- shapes: views, expands, repeats, ranges ---------------------------------------------------------------------------

row("shapes", "view of a product", lambda x: x.view(x.shape[0] * x.shape[1], -1).cumsum(0), floats(3, 5, 2))
row("shapes", "view with a quotient", lambda x: x.reshape(x.shape[0], 2, x.shape[1] // 2), floats(3, 6))
row("shapes", "view by numel", lambda x: x.view(x.numel() // 3, 3), floats(4, 6))
row("shapes", "repeat by a size", lambda x: x.repeat(1, x.shape[0]), floats(3, 5))
row("shapes", "repeat by a difference", lambda x, y: x.repeat(1, y.shape[1] - x.shape[1]), floats(3, 4), floats(3, 9))
row("shapes", "expand by a sum", lambda x: x[:, None].expand(-1, x.shape[0] + x.shape[1], -1).cumsum(1), floats(3, 5))
row("shapes", "repeat_interleave by a constant", lambda x: x.repeat_interleave(3, 1), floats(3, 5))
row("shapes", "arange with a step", lambda x: torch.arange(0, x.shape[1], 3).float() + x.sum(), floats(3, 8))
row("shapes", "arange of floats", lambda x: torch.arange(0, x.shape[1] * 0.5, 0.3) + x.sum(), floats(3, 8))
row("shapes", "arange downwards", lambda x: x * torch.arange(x.shape[1], 0, -1), floats(3, 8))
row("shapes", "arange between two", lambda x, y: torch.arange(x.shape[1], x.shape[1] + y.shape[1]) + y.sum(), floats(3, 5), floats(3, 4))
row("shapes", "linspace of a size", lambda x: x * torch.linspace(-1, 1, x.shape[1]), floats(3, 8))
row("shapes", "full of a size", lambda x: torch.full((x.shape[1],), x.shape[0]) + x.sum().long(), floats(3, 8))
row("shapes", "eye", lambda x: torch.eye(x.shape[1])[: x.shape[0]] + x, floats(3, 8))
row("shapes", "eye of two sizes", lambda x: torch.eye(x.shape[0], x.shape[1]) * x, floats(5, 3))
row("shapes", "hann window", lambda x: x * torch.hann_window(x.shape[1]), floats(3, 8))
row("shapes", "meshgrid", lambda x: torch.stack(torch.meshgrid(torch.arange(x.shape[2]), torch.arange(x.shape[3]), indexing="ij")) + x.sum(), floats(1, 2, 4, 5), largest=65)
row("shapes", "normalised grid", lambda x: torch.linspace(-1 + 1 / x.shape[3], 1 - 1 / x.shape[3], x.shape[3]) + x, floats(1, 2, 4, 5), largest=65)
row("shapes", "one_hot of a size", lambda x: F.one_hot(torch.arange(x.shape[0]) % 3, x.shape[1]).float() + x, floats(4, 6))
row("shapes", "top k of a fraction", lambda x: x.topk(max(1, x.shape[1] // 4), 1).values, floats(3, 9))
row("shapes", "top five at most", lambda x: x.topk(min(5, x.shape[1]), 1).values, floats(3, 9))
row("shapes", "kth of a half", lambda x: x.sort(1).values[:, (x.shape[1] - 1) // 2], floats(3, 9))
row("shapes", "median", lambda x: x.median(1).values, floats(3, 9))
row("shapes", "quantile", lambda x: x.quantile(0.3, 1), floats(3, 9))
row("shapes", "fold channels", lambda x: x.view(x.shape[0], -1, 2, x.shape[2]).amax(1), floats(3, 6, 4))
row("shapes", "pixel shuffle", lambda x: F.pixel_shuffle(x, 2), floats(2, 8, 3, 4), largest=65)
row("shapes", "patches", lambda x: x.unfold(2, 2, 2).unfold(3, 2, 2).reshape(x.shape[0], x.shape[1], -1, 4), floats(1, 2, 6, 8), largest=65)
row("shapes", "flatten and back", lambda x: x.flatten(1).view(x.shape), floats(3, 4, 5))
row("shapes", "stacked rows and columns", lambda x: torch.cat([x.sum(0), x.sum(1)]), floats(3, 5))
row("shapes", "diagonal", lambda x: x.diagonal(1), floats(5, 8))
row("shapes", "diag embed", lambda x: torch.diag_embed(x, 1), floats(3, 5))
row("shapes", "circulant", lambda x: x[:, (torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])) % x.shape[1]], floats(3, 5))
row("shapes", "relative positions", lambda x: x @ (torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])).clamp(-4, 4).float(), floats(3, 6))
row("shapes", "relative shift", lambda x: F.pad(x, (1, 0)).view(x.shape[0], x.shape[2] + 1, x.shape[1])[:, 1:].reshape(x.shape), floats(2, 5, 5))
row("shapes", "float of a size in a mean", lambda x: x.sum(1) / float(x.shape[1]), floats(3, 6))
row("shapes", "float of a size less one", lambda x: x.sum(1) / (x.shape[1] - 1 + 1e-6), floats(3, 6))
row("shapes", "size as a result", lambda x: (x * 2, torch.tensor(x.shape[1])), floats(3, 6))
row("shapes", "empty inside", lambda x: torch.cat([x[:, :0], x, x[:, x.shape[1] :]], 1), floats(3, 6))
row("shapes", "empty joined", lambda x: torch.cat([torch.zeros(x.shape[0], 0), x.cumsum(1)], 1), floats(3, 6))
row("shapes", "max over what may be empty", lambda x: F.pad(x[:, 8:], (0, 1)).amax(1), floats(3, 12))

# ---- views and writes --------------------------------------------------------------------------------------------------


def written_prefix(x):
    y = torch.zeros(x.shape[0], 12)
    y[:, : min(12, x.shape[1])] = x[:, :12]
    return y


def written_last(x):
    x = x.clone()
    x[:, -1] = x[:, : x.shape[1] // 2].sum(1)
    return x


def written_view(x):
    y = x * 1
    v = y.view(-1)
    v[:: x.shape[1]] = 7
    return y


def written_input(x):
    x[:, 0] = 0
    return x.sum(1)


def written_diagonal(x):
    y = x.clone()
    y.diagonal().fill_(0)
    return y


def written_twice(x):
    y = torch.zeros_like(x)
    for k in range(3):
        y[:, k::3] = x[:, k::3] * (k + 1)
    return y


def written_where(x):
    y = x.clone()
    y[y > 0] = y.shape[1]
    return y


def ring(x):
    buffer = torch.zeros(x.shape[0], 8)
    for t in range(x.shape[1]):
        buffer[:, t % 8] = x[:, t]
    return buffer


def index_copied(x):
    y = torch.zeros(x.shape[0], x.shape[1] + 3)
    return y.index_copy(1, torch.arange(x.shape[1]) + 2, x)


row("writes", "prefix of a buffer", written_prefix, floats(3, 6))
row("writes", "last column", written_last, floats(3, 6))
row("writes", "through a view", written_view, floats(3, 6))
row("writes", "to the input", written_input, floats(3, 6))
row("writes", "diagonal", written_diagonal, floats(5, 7))
row("writes", "every third", written_twice, floats(3, 7))
row("writes", "by a condition", written_where, floats(3, 6))
row("writes", "ring buffer", ring, floats(3, 6), largest=100)
row("writes", "index_copy", index_copied, floats(3, 6))
row("writes", "in-place on a slice", lambda x: (x.clone(), x[:, : x.shape[1] // 2].clone().mul_(2))[1], floats(3, 7))
row("writes", "scatter_add", lambda x, t: torch.zeros(x.shape[0], 9).scatter_add(1, t, x), floats(3, 6), ids(3, 6, high=9))
row("writes", "index_add of rows", lambda x, t: torch.zeros(9, 2).index_add(0, t, x), floats(6, 2), ids(6, high=9))
row("writes", "swap halves", lambda x: torch.cat([x[:, (x.shape[1] + 1) // 2 :], x[:, : (x.shape[1] + 1) // 2]], 1), floats(3, 7))
# fmt: on
