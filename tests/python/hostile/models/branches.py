"""Branches over one size and over two."""

import torch
import torch.nn.functional as F
from torch.export import Dim

from ..rows import floats, row

# fmt: off

# ---- branches by one size ----------------------------------------------------------------------------------------------

BOUNDED = {"dynamic_shapes": ({0: Dim("b", max=64)},)}
row("branches by size", "above twenty, bounded", lambda x: x.relu() if x.shape[0] > 20 else x.tanh(), floats(5, 3), options=BOUNDED)
row("branches by size", "above twenty", lambda x: x.relu() if x.shape[0] > 20 else x.tanh(), floats(5, 3))
row("branches by size", "above twenty, from above", lambda x: x.relu() if x.shape[0] > 20 else x.tanh(), floats(30, 3))
row("branches by size", "above 64", lambda x: x * 2 if x.shape[1] > 64 else x, floats(3, 6))
row("branches by size", "above 500", lambda x: x.cos() if x.shape[1] > 500 else x.sin(), floats(3, 6))
row("branches by size", "from 1024 on", lambda x: x.cos() if x.shape[1] >= 1024 else x.sin(), floats(3, 6))
row("branches by size", "below four", lambda x: x.cos() if x.shape[1] < 4 else x.sin(), floats(3, 6))
row("branches by size", "one", lambda x: x.cos() if x.shape[1] == 1 else x.sin(), floats(3, 6))
row("branches by size", "exactly 37", lambda x: x.cos() if x.shape[1] == 37 else x.sin(), floats(3, 6))
row("branches by size", "37 or 41", lambda x: x.cos() if x.shape[1] in (37, 41) else x.sin(), floats(3, 6))
row("branches by size", "a set of sizes", lambda x: x.cos() if x.shape[1] in {8, 16, 100} else x.sin(), floats(3, 6))
row("branches by size", "even", lambda x: x.cos() if x.shape[1] % 2 == 0 else x.sin(), floats(3, 6))
row("branches by size", "odd takes one more", lambda x: x[:, :-1] if x.shape[1] % 2 else x, floats(3, 7))
row("branches by size", "multiple of seven", lambda x: x.cos() if not x.shape[1] % 7 else x.sin(), floats(3, 6))
row("branches by size", "remainder of eight as truth", lambda x: F.pad(x, (0, 8 - x.shape[1] % 8)) if x.shape[1] % 8 else x.relu(), floats(3, 6))
row("branches by size", "between", lambda x: x.cos() if 10 < x.shape[1] <= 40 else x.sin(), floats(3, 6))
row("branches by size", "between, from inside", lambda x: x.cos() if 10 < x.shape[1] <= 40 else x.sin(), floats(3, 20))
row("branches by size", "three ways", lambda x: x.cos() if x.shape[1] < 8 else x.sin() if x.shape[1] < 50 else x.tanh(), floats(3, 6))
row("branches by size", "five ways", lambda x: [x.cos, x.sin, x.tanh, x.relu, x.sigmoid][min(4, x.shape[1] // 16)](), floats(3, 6))
row("branches by size", "seven ways by remainder", lambda x: x * [1.0, 0.5, 2.0, -1.0, 3.0, 0.1, 7.0][x.shape[1] % 7], floats(3, 6))
row("branches by size", "and", lambda x: x.cos() if x.shape[1] > 8 and x.shape[0] > 4 else x.sin(), floats(3, 6))
row("branches by size", "or", lambda x: x.cos() if x.shape[1] > 30 or x.shape[0] > 30 else x.sin(), floats(3, 6))
row("branches by size", "numel", lambda x: x.cos() if x.numel() > 100 else x.sin(), floats(3, 6))
row("branches by size", "quotient", lambda x: x.cos() if x.shape[1] // 5 > 3 else x.sin(), floats(3, 6))
row("branches by size", "a float of it", lambda x: x.cos() if x.shape[1] * 0.7 > 21 else x.sin(), floats(3, 6))
row("branches by size", "square", lambda x: x.cos() if x.shape[1] ** 2 > 1000 else x.sin(), floats(3, 6))
row("branches by size", "by len", lambda x: x.cos() if len(x) > 12 else x.sin(), floats(3, 6))
row("branches by size", "by size()", lambda x: x.cos() if x.size(1) > 12 else x.sin(), floats(3, 6))
row("branches by size", "by tuple equality", lambda x: x.cos() if tuple(x.shape) == (3, 9) else x.sin(), floats(3, 6))
row("branches by size", "by shape equality", lambda x: x.cos() if x.shape == torch.Size([7, 8]) else x.sin(), floats(3, 6))
row("branches by size", "other shape of result", lambda x: x.sum(1) if x.shape[1] > 30 else x.sum(1) * 0 + x[:, 0], floats(3, 6))
row("branches by size", "other rank of result", lambda x: x.sum(1) if x.shape[1] > 30 else x, floats(3, 6))
row("branches by size", "other number of results", lambda x: (x, x * 2) if x.shape[1] > 30 else (x,), floats(3, 6))
row("branches by size", "refuses above 50", lambda x: refuses(x), floats(3, 6))
row("branches by size", "asserts a multiple", lambda x: asserts(x), floats(3, 8))
row("branches by size", "a constant that differs", lambda x: x * (0.5 if x.shape[1] > 16 else 0.25), floats(3, 6))
row("branches by size", "a slope", lambda x: x / max(1.0, x.shape[1] / 16), floats(3, 6))
row("branches by size", "a scale by size", lambda x: x * x.shape[1] ** -0.5, floats(3, 6))
row("branches by size", "a scale by log", lambda x: x * __import__("math").log(x.shape[1] + 1), floats(3, 6))
row("branches by size", "try and except", lambda x: tries(x), floats(3, 6))
row("branches by size", "truth of a size", lambda x: x.cos() if x.shape[1] - 9 else x.sin(), floats(3, 6))
row("branches by size", "dict of sizes", lambda x: x * {6: 2.0, 7: 3.0}.get(x.shape[1], 1.0), floats(3, 6))
row("branches by size", "match", lambda x: matched(x), floats(3, 6))
row("branches by size", "bool as a number", lambda x: x[:, : 3 + (x.shape[1] > 20)], floats(3, 6))
row("branches by size", "any of", lambda x: x.cos() if any(d > 24 for d in x.shape) else x.sin(), floats(3, 6))
row("branches by size", "sorted sizes", lambda x: x * sorted(x.shape)[0] + sorted(x.shape)[-1], floats(3, 6))
row("branches by size", "type(n) is int", lambda x: x[:, : x.shape[1] // 2] if type(x.shape[1]) is int else x, floats(3, 6))
row("branches by size", "with a bound and a minimum", lambda x: x.relu() if x.shape[0] > 20 else x.tanh(), floats(8, 3), options={"dynamic_shapes": ({0: Dim("b", min=4, max=32)},)})
row("branches by size", "bounded below the branch", lambda x: x.relu() if x.shape[0] > 20 else x.tanh(), floats(8, 3), options={"dynamic_shapes": ({0: Dim("b", max=20)},)})
row("branches by size", "bounded by max_size", lambda x: x.relu() if x.shape[0] > 20 else x.tanh(), floats(3, 4), options={"max_size": {"batch": 16}})
row("branches by size", "max_size of four", lambda x: refuses_batch(x), floats(3, 6), options={"max_size": {"batch": 4}})
row("branches by size", "string dim", lambda x: x.relu() if x.shape[1] > 20 else x.tanh(), floats(3, 6), options={"dynamic_shapes": ({1: "n"},)})
row("branches by size", "fixed, nothing varies", lambda x: x.relu() if x.shape[1] > 20 else x.tanh(), floats(3, 6), options={"dynamic_shapes": ({},)})


def refuses(x):
    if x.shape[1] > 50:
        raise ValueError("at most 50")
    return x * 2


def refuses_batch(x):
    if x.shape[0] > 4:
        raise ValueError("at most four")
    return x * 2


def asserts(x):
    assert x.shape[1] % 4 == 0
    return x.view(x.shape[0], -1, 4).sum(2)


def tries(x):
    try:
        return x.view(x.shape[0], -1, 3).sum(2)
    except RuntimeError:
        return x


def matched(x):
    match x.shape[1]:
        case 6:
            return x * 2
        case 12 | 100:
            return x * 3
        case _:
            return x * 4


# ---- arguments that a size chooses -------------------------------------------------------------------------------------

ONE, OTHER, WEIGHTS = torch.tensor(1.5), torch.tensor(2.5), torch.randn(5, generator=torch.Generator().manual_seed(0))
row("chosen arguments", "a factor", lambda x: x * (1.5 if x.shape[1] > 40 else 2.5), floats(3, 33))
row("chosen arguments", "a factor by parity", lambda x: x * (1.5 if x.shape[1] % 2 else 2.5), floats(3, 33))
row("chosen arguments", "a factor of three", lambda x: x * (1.5 if x.shape[1] > 100 else 2.5 if x.shape[1] > 40 else 3.25), floats(3, 33))
row("chosen arguments", "float of a comparison", lambda x: x * float(1 + (x.shape[1] > 300)), floats(3, 33))
row("chosen arguments", "a comparison over seven", lambda x: x + (x.shape[1] % 16 > 0) / 7, floats(3, 33))
row("chosen arguments", "the larger of two floats", lambda x: x / max(1.0, x.shape[1] / 16), floats(3, 33))
row("chosen arguments", "the smaller of two floats", lambda x: x * min(0.5, 8 / x.shape[1]), floats(3, 6))
row("chosen arguments", "a clamp", lambda x: x.clamp(max=1.5 if x.shape[1] > 40 else 0.5), floats(3, 33))
row("chosen arguments", "a padding value", lambda x: F.pad(x, (0, 1), value=1.5 if x.shape[1] > 40 else 0.5), floats(3, 33))
row("chosen arguments", "a temperature", lambda x: (x / (0.5 if x.shape[1] > 40 else 2.0)).softmax(-1), floats(3, 33))
row("chosen arguments", "an epsilon", lambda x: F.layer_norm(x, x.shape[1:], eps=1e-1 if x.shape[1] > 40 else 1e-5), floats(3, 33))
row("chosen arguments", "a shift", lambda x: x.roll(5 if x.shape[1] > 40 else 2, 1), floats(3, 33))
row("chosen arguments", "an axis", lambda x: x.cumsum(0 if x.shape[1] > 40 else 1), floats(3, 33))
row("chosen arguments", "a flag", lambda x: x.std(1, unbiased=x.shape[1] > 40), floats(3, 33))
row("chosen arguments", "a type", lambda x: x.to(torch.float64 if x.shape[1] > 40 else torch.float32) * 2, floats(3, 33))
row("chosen arguments", "a name", lambda x: F.gelu(x, approximate="tanh" if x.shape[1] > 40 else "none"), floats(3, 33))
row("chosen arguments", "a mode", lambda x: F.pad(x[None], (1, 1), mode="reflect" if x.shape[1] > 40 else "replicate"), floats(3, 33))
row("chosen arguments", "the largest or the smallest", lambda x: x.topk(1, 1, largest=x.shape[1] > 40).values, floats(3, 33))
row("chosen arguments", "numbers of a tensor", lambda x: x + torch.tensor([1.5 if x.shape[1] > 40 else 0.5]), floats(3, 33))
row("chosen arguments", "integers of a tensor", lambda x: x.sum(1) * torch.tensor([2 if x.shape[1] > 40 else 1]), floats(3, 33))
row("chosen arguments", "places of a tensor", lambda x: x[:, torch.tensor([0, x.shape[1] - 1 if x.shape[1] > 40 else 1])], floats(3, 33))
row("chosen arguments", "places of a tensor, slowly", lambda x: x[:, torch.tensor([min(3, x.shape[1] // 48), 0])], floats(4, 4))
row("chosen arguments", "one of two weights", lambda x: x * (ONE if x.shape[1] > 40 else OTHER), floats(3, 33))
row("chosen arguments", "one of two weights by parity", lambda x: x * [ONE, OTHER][x.shape[1] % 2], floats(3, 33))
row("chosen arguments", "a weight by its number", lambda x: x * WEIGHTS[x.shape[1] % 5], floats(3, 33))

# ---- branches by two sizes ---------------------------------------------------------------------------------------------

TWO = (floats(4, 3), floats(7, 3))
SWAPPED = (floats(7, 3), floats(4, 3))
SAME = (floats(5, 3), floats(5, 3))
for title, pair in (("first shorter", TWO), ("first longer", SWAPPED), ("of one size", SAME)):
    row("branches by two sizes", f"len x < len y, {title}", lambda x, y: x.sum() if len(x) < len(y) else y.sum() * 2, *pair)
    row("branches by two sizes", f"n < m, {title}", lambda x, y: x.sum() if x.shape[0] < y.shape[0] else y.sum() * 2, *pair)
    row("branches by two sizes", f"n + m > 12, {title}", lambda x, y: x.sum() if x.shape[0] + y.shape[0] > 12 else y.sum() * 2, *pair)
    row("branches by two sizes", f"n == m, {title}", lambda x, y: x.sum() if x.shape[0] == y.shape[0] else y.sum() * 2, *pair)
    row("branches by two sizes", f"min, {title}", lambda x, y: x[: min(len(x), len(y))] + y[: min(len(x), len(y))], *pair)
    row("branches by two sizes", f"abs, {title}", lambda x, y: torch.zeros(abs(x.shape[0] - y.shape[0]) + 1) + x.sum() + y.sum(), *pair)
row("branches by two sizes", "n * m > 30", lambda x, y: x.sum() if x.shape[0] * y.shape[0] > 30 else y.sum() * 2, *TWO)
row("branches by two sizes", "n > 2 * m", lambda x, y: x.sum() if x.shape[0] > 2 * y.shape[0] else y.sum() * 2, *TWO)
row("branches by two sizes", "n % m", lambda x, y: x.sum() if x.shape[0] % y.shape[0] == 0 else y.sum() * 2, *SWAPPED)
row("branches by two sizes", "n // m as a size", lambda x, y: torch.zeros(x.shape[0] // y.shape[0] + 1) + x.sum() + y.sum(), *SWAPPED)
row("branches by two sizes", "n % m as a size", lambda x, y: torch.zeros(x.shape[0] % y.shape[0] + 1) + x.sum() + y.sum(), *SWAPPED)
row("branches by two sizes", "wider than high", lambda x: x.cumsum(3) if x.shape[2] < x.shape[3] else x.cumsum(2), floats(1, 2, 5, 7), largest=65)
row("branches by two sizes", "wider than high, other", lambda x: x.cumsum(3) if x.shape[2] < x.shape[3] else x.cumsum(2), floats(1, 2, 7, 5), largest=65)
row("branches by two sizes", "square or not", lambda x: x.mT if x.shape[1] == x.shape[2] else x.cos(), floats(2, 5, 7))
row("branches by two sizes", "square or not, from square", lambda x: x + x.mT if x.shape[1] == x.shape[2] else x.cos(), floats(2, 5, 5))
row("branches by two sizes", "broadcast if one", lambda x, y: x + y if y.shape[0] == 1 else x - y, floats(4, 3), floats(4, 3))
row("branches by two sizes", "batch or not", lambda x, y: x.expand(y.shape[0], -1) if x.shape[0] == 1 and y.shape[0] != 1 else x * 2, floats(1, 3), floats(4, 3))
# fmt: on
