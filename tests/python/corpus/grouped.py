"""Bags of embeddings, and mixtures of experts."""

import torch
import torch.nn.functional as F
import transformers.integrations.moe  # noqa: F401  registers transformers::grouped_mm_fallback

from . import Case

BAG, FORWARD = "aten._embedding_bag.default", "aten._embedding_bag_forward_only.default"
MIXTURE = "transformers.grouped_mm_fallback.default"
TABLE = torch.linspace(-2, 2, 40).sin().reshape(10, 4)
LEARNT = torch.nn.Parameter(TABLE)


def bag(**options):
    return (
        lambda i, o: F.embedding_bag(i, LEARNT, o, **options),
        lambda: (torch.randint(0, 10, (9,)), torch.tensor([0, 3, 3, 7])),
    )


def mixture(experts, skew=0.0, dtype=torch.float32, op=torch.ops.transformers.grouped_mm_fallback):
    """Tokens sorted by the expert that scores highest, one product per expert, sorted back."""
    torch.manual_seed(1)
    weight = torch.randn(experts, 8, 6).to(dtype)

    def fn(x, scores):
        expert = scores.argmax(-1)
        order = expert.argsort(stable=True)
        counts = F.one_hot(expert, experts).sum(0)
        y = op(x[order], weight, offs=counts.cumsum(0).to(torch.int32))
        return y[order.argsort()]

    return fn, lambda: (torch.randn(7, 8).to(dtype), torch.randn(7, experts) + skew * torch.arange(experts))


CASES = [
    Case(BAG, *bag(), fixed=True),
    Case(BAG, *bag(mode="sum"), "sum", fixed=True),
    Case(BAG, *bag(mode="max"), "max", fixed=True),
    Case(BAG, *bag(mode="mean", padding_idx=3), "padding", fixed=True),
    Case(BAG, *bag(mode="sum", include_last_offset=True), "last offset", fixed=True),
    Case(
        FORWARD,
        lambda i, o, w: F.embedding_bag(i, TABLE, o, mode="sum", per_sample_weights=w),
        lambda: (torch.randint(0, 10, (9,)), torch.tensor([0, 3, 3, 7]), torch.rand(9)),
        "weights",
        fixed=True,
    ),
    Case(FORWARD, lambda i: F.embedding_bag(i, TABLE), lambda: (torch.randint(0, 10, (3, 4)),), "rows as bags"),
    Case(MIXTURE, *mixture(4)),
    Case(MIXTURE, *mixture(4, skew=10), "one expert takes all"),
    Case(MIXTURE, *mixture(16), "more experts than tokens"),
    Case(MIXTURE, *mixture(4, dtype=torch.float16), "float16", tolerance=2e-2),
    Case(MIXTURE, *mixture(4, dtype=torch.bfloat16), "bfloat16", tolerance=1e-1),
    Case(
        MIXTURE,
        lambda x: torch.ops.transformers.grouped_mm_fallback(x, torch.ones(3, 8, 6), offs=torch.tensor([2, 2, 4])),
        lambda: (torch.randn(7, 8),),
        "rows beyond the last group",
    ),
    Case(
        "aten._grouped_mm.default",
        lambda x: torch._grouped_mm(x, torch.ones(3, 8, 16), offs=torch.tensor([2, 2, 7], dtype=torch.int32)),
        lambda: (torch.randn(7, 8),),
        fixed=True,
    ),
]
