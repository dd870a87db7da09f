"""Control flow, which programs of torch.export have as operators; test_exported_program.py looks at both ways of each."""

import torch
from torch._higher_order_ops import scan, while_loop
from torch._higher_order_ops.map import map as torch_map

from . import Case

HALF = torch.float16


def f(*shape, dtype=torch.float32, sign=1):
    return lambda: (torch.rand(*shape).to(dtype) * sign,)


def case(op, fn, make, name="", **options):
    return Case(op, fn, make, name, traced=True, **options)


def branch(x):
    return torch.cond(x.sum() > 0, lambda x: x.cos() + 1, lambda x: x * 2 - 1, (x,))


def largest_first(x):
    return torch.cond((x > 0).any(), lambda x: x.amax(-1), lambda x: x.amin(-1), (x,))


def doubled(x):
    start = torch.tensor(3)
    return while_loop(lambda n, y: n > 0, lambda n, y: (n - 1, y * 2 + 1), (start, x))[1]


def never(x):
    return while_loop(lambda n, y: n > 0, lambda n, y: (n - 1, y * 2), (x.long().sum() * 0, x))[1]


def running(x):
    return scan(lambda c, x: (c + x, c * x), torch.zeros(4, dtype=x.dtype), x, dim=0)


def softmaxes(x):
    return torch_map(lambda x, y: torch.softmax(x, -1) * y.sum(), x, x[0] + 1)


CASES = [
    case("higher_order.cond", branch, f(3, 4)),
    case("higher_order.cond", branch, f(3, 4, sign=-1), "the other way"),
    case("higher_order.cond", branch, f(3, 4, dtype=HALF), "float16", tolerance=1e-2),
    case("higher_order.cond", largest_first, lambda: (torch.randint(-5, 5, (3, 4)),), "int64"),
    case("higher_order.while_loop", doubled, f(3, 4)),
    case("higher_order.while_loop", doubled, f(3, 4, dtype=HALF), "float16", tolerance=1e-2),
    case("higher_order.while_loop", never, f(3, 4), "no round"),
    case("higher_order.scan", running, f(5, 4)),
    case("higher_order.scan", running, f(5, 4, dtype=HALF), "float16", tolerance=1e-2),
    case("higher_order.scan", running, f(1, 4), "one step", fixed=True),
    case("higher_order.map_impl", softmaxes, f(3, 2, 4)),
    case("higher_order.map_impl", softmaxes, f(3, 2, 4, dtype=HALF), "float16", tolerance=1e-2),
    case("higher_order.map_impl", softmaxes, f(1, 2, 4), "one", fixed=True),
]
