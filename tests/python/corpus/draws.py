"""Cases of random_ops.cpp: only shapes and types are compared here; test_random.py looks at the distributions."""

import torch

from . import Case


def f(*shape, dtype=torch.float32):
    return lambda: (torch.rand(*shape).to(dtype),)


n = lambda x: x.shape[0]  # noqa: E731


def case(op, fn, make=None, name=""):
    return Case(op, fn, make or f(5, 4), name, random=True)


a = torch.ops.aten
G = torch.Generator()
CASES = [
    case("aten.bernoulli.default", torch.bernoulli),
    case("aten.bernoulli.p", lambda x: torch.bernoulli(x, 0.3)),
    case("aten.bernoulli.Tensor", lambda x: a.bernoulli.Tensor(x, x)),
    case("aten.bernoulli.float", lambda x: x.clone().bernoulli_(0.3)),
    case("aten.cauchy.default", lambda x: x.clone().cauchy_()),
    case("aten.exponential.default", lambda x: x.clone().exponential_(2)),
    case("aten.geometric.default", lambda x: x.clone().geometric_(0.3)),
    case("aten.log_normal.default", lambda x: x.clone().log_normal_()),
    case("aten.multinomial.default", lambda x: torch.multinomial(x, 2)),
    case("aten.multinomial.default", lambda x: torch.multinomial(x, 9, replacement=True), name="replacement"),
    case("aten.multinomial.default", lambda x: torch.multinomial(x[0], 1), name="1-d"),
    case("aten.native_dropout.default", lambda x: a.native_dropout(x, 0.5, True)),
    case("aten.normal.Tensor_Tensor", lambda x: torch.normal(x, x)),
    case("aten.normal.Tensor_float", lambda x: torch.normal(x, 2.0)),
    case("aten.normal.default", lambda x: x.clone().normal_(1, 2)),
    case("aten.normal.float_float", lambda x: torch.normal(1.0, 2.0, (n(x), 3))),
    case("aten.normal.float_Tensor", lambda x: torch.normal(1.0, x)),
    case("aten.normal_functional.default", lambda x: a.normal_functional(x, 1, 2)),
    case("aten.rand.default", lambda x: torch.rand(n(x), 3)),
    case("aten.rand.default", lambda x: torch.rand(3, 4) + x[0, 0], name="constant"),
    case("aten.rand.default", lambda x: torch.rand(()) + x, name="0-d"),
    case("aten.rand.default", lambda x: torch.rand(n(x), dtype=torch.float64), name="float64"),
    case("aten.rand_like.default", lambda x: torch.rand_like(x), f(5, dtype=torch.float16)),
    case("aten.randint.default", lambda x: torch.randint(10, (n(x),))),
    case("aten.randint.low", lambda x: torch.randint(-3, n(x), (n(x), 2))),
    case("aten.randint_like.default", lambda x: torch.randint_like(x, 10)),
    case("aten.randint_like.Tensor", lambda x: torch.randint_like(x, torch.tensor(9))),
    case("aten.randint_like.low_dtype", lambda x: torch.randint_like(x, 2, 10)),
    case("aten.randn.default", lambda x: torch.randn(n(x), 3)),
    case("aten.randn_like.default", lambda x: torch.randn_like(x)),
    case("aten.random.default", lambda x: x.clone().random_()),
    case("aten.random.from", lambda x: x.clone().random_(2, 9)),
    case("aten.random.to", lambda x: x.clone().random_(9)),
    case("aten.randperm.default", lambda x: torch.randperm(n(x))),
    case("aten.uniform.default", lambda x: x.clone().uniform_(-1, 2)),
    case("aten.rand.generator", lambda x: torch.rand(n(x), 3, generator=G)),
    case("aten.randint.generator", lambda x: torch.randint(9, (n(x), 3), generator=G)),
    case("aten.randint.low_generator", lambda x: torch.randint(2, 9, (n(x),), generator=G)),
    case("aten.randn.generator", lambda x: torch.randn(n(x), 3, generator=G)),
    case("aten.randperm.generator", lambda x: torch.randperm(n(x), generator=G)),
    Case("aten.native_dropout.default", lambda x: a.native_dropout(x, 0.5, False), f(5, 4), "eval"),
]
