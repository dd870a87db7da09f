"""Loops in loops: dynamic programs over two sizes, cells, pairs and blocks that are visited one by one."""

import torch

from ..rows import floats, row

# fmt: off

X, Y = floats(3, 5), floats(2, 4)


def nest(name, fn, *inputs, largest=20, **options):
    row("nested loops", name, fn, *inputs, largest=largest, **options)


def warping(x, y):
    n, m = x.shape[0], y.shape[0]
    cost = torch.cdist(x, y)
    d = torch.full((n + 1, m + 1), 1e6)
    d[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d[i, j] = cost[i - 1, j - 1] + torch.min(torch.min(d[i - 1, j], d[i, j - 1]), d[i - 1, j - 1])
    return d[1:, 1:]


def edits(x, y):
    n, m = x.shape[0], y.shape[0]
    d = torch.zeros(n + 1, m + 1)
    d[:, 0] = torch.arange(n + 1)
    d[0] = torch.arange(m + 1)
    for i in range(n):
        for j in range(m):
            other = (x[i, 0] > y[j, 0]).float()
            d[i + 1, j + 1] = torch.stack([d[i, j] + other, d[i, j + 1] + 1, d[i + 1, j] + 1]).min()
    return d[n, m]


def filled(x):
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * i - j
    return out


def listed(x):
    out = []
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out.append(x[i] * x[i, j])
    return torch.stack(out)


def crossed(x, y):
    out = []
    for a in x:
        for b in y:
            out.append((a * b).sum())
    return torch.stack(out).reshape(x.shape[0], y.shape[0])


def inner_first(x):
    total = x.sum() * 0
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            total = total * 0.5 + x[i, j]
    return total


def offset(x):
    out = x.clone()
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            out[i, j] = out[i - 1, j - 1] + out[i, j]
    return out


def inside(x):
    out = x.clone()
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            out[i, j] = (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) / 4
    return out


def rotating(x):
    out = torch.zeros(x.shape[0], x.shape[1])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, (j + i) % x.shape[1]] = x[i, j]
    return out


def triples(x):
    total = x.sum() * 0
    for a in range(x.shape[0]):
        for b in range(x.shape[1]):
            for c in range(x.shape[2]):
                total = total * 0.9 + x[a, b, c]
    return total


def squares(x):
    out = torch.zeros(x.shape[0], x.shape[0])
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            out[i, j] = (x[i] * x[j]).sum()
    return out


def halved(x):
    out = []
    for i in range(x.shape[0]):
        for j in range(x.shape[1] // 2):
            out.append(x[i, 2 * j] - x[i, 2 * j + 1])
    return torch.stack(out)


def windows(x):
    out = []
    for i in range(x.shape[0] - 1):
        for j in range(x.shape[1] - 2):
            out.append(x[i : i + 2, j : j + 3].max())
    return torch.stack(out)


def columns_in_threes(x):
    out = []
    for i in range(x.shape[0]):
        for j in range(3):
            out.append(x[i].roll(j, 0).cumsum(0))
    return torch.cat(out)


def diagonal_apart(x):
    out = torch.zeros(x.shape[0], x.shape[0])
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            out[i, j] = x[i, 0] if i == j else x[i, 0] * x[j, 0]
    return out


def wrapped(x):
    out = torch.zeros_like(x)
    n, m = x.shape
    for i in range(n):
        for j in range(m):
            out[i, j] = x[(i + 1) % n, (j + 1) % m]
    return out


def rows_after(x):
    out = []
    for i in range(x.shape[0]):
        h = x[i, 0]
        for j in range(x.shape[1]):
            h = torch.tanh(h + x[i, j])
        out.append(h)
    return torch.stack(out)


nest("warping of two series", warping, floats(4, 2), floats(3, 2))
nest("edit distance", edits, floats(4, 1), floats(3, 1))
nest("cells one by one", filled, X)
nest("a list of rows", listed, X)
nest("pairs of two inputs", crossed, X, floats(4, 5))
nest("columns outside", inner_first, X)
nest("from the second", offset, X)
nest("without the border", inside, floats(4, 5))
nest("a column that rotates", rotating, X)
nest("three levels", triples, floats(3, 4, 5), largest=9)
nest("pairs of one input", squares, floats(4, 3))
nest("half of the columns", halved, floats(3, 6))
nest("windows", windows, floats(4, 6))
nest("a fixed loop inside", columns_in_threes, X)
nest("a branch on the diagonal", diagonal_apart, floats(4, 3))
nest("the next of a ring", wrapped, X)
nest("a state for every row", rows_after, X)
