"""torch.einsum has one form at every size: against PyTorch's own, and in files at sizes of 1."""

import random

import pytest
import torch
from fairlead.record import einsum
from test_unseen_sizes import assert_same, exported

SIZES = dict(zip("abcdefgh", (2, 3, 4, 5, 6, 2, 3, 1), strict=True))


def equations(count):
    """Random equations of up to three operands, some with an ellipsis, some without a right side."""
    rng = random.Random(5)
    for _ in range(count):
        labels = ["".join(rng.sample("abcdefgh", rng.randint(0, 4))) for _ in range(rng.choice((1, 2, 2, 3)))]
        dots = ["..." if rng.random() < 0.2 else "" for _ in labels]
        letters = sorted(set("".join(labels)))
        result = ("..." if any(dots) else "") + "".join(rng.sample(letters, rng.randint(0, len(letters))))
        left = ",".join(d + own for d, own in zip(dots, labels, strict=True))
        yield left + (f"->{result}" if rng.random() < 0.8 else "")


def test_every_equation_is_what_pytorch_computes():
    checked = 0
    for equation in equations(500):
        shapes = [
            [7, 8] * ("..." in own) + [SIZES[c] for c in own.strip(".")] for own in equation.split("->")[0].split(",")
        ]
        operands = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
        parts = einsum.parts_of((equation, *operands))
        assert parts is not None, equation
        torch.testing.assert_close(einsum.einsum(*parts), torch.einsum(equation, *operands), msg=equation)
        checked += 1
    assert checked == 500


@pytest.mark.parametrize(
    "given",
    [
        ("ii->i", torch.ones(3, 3)),  # a diagonal
        ("ij,jk->ik", torch.ones(2, 1), torch.ones(3, 4)),  # a size of 1 that is repeated
        ("ij,jk->ik", torch.ones(2, 3, dtype=torch.int64), torch.ones(3, 4, dtype=torch.int64)),
        (torch.ones(2, 3), [0, 1], torch.ones(3, 2), [1, 2]),
    ],
    ids=["diagonal", "repeated", "integers", "numbers for letters"],
)
def test_what_is_left_to_pytorch(given):
    assert einsum.parts_of(given) is None
    torch.einsum(*given)


@pytest.mark.parametrize(
    "equation", ["bid,bjd->bij", "bhid,bhjd->bhij", "bid,bjd->ij", "bid,hd->bih", "bi,bj->bij", "...d,...d->..."]
)
def test_no_size_is_lost(equation, tmp_path):
    sizes = dict(zip("bhijd", (2, 3, 5, 6, 4), strict=True))

    def call(sizes):
        owns = equation.split("->")[0].split(",")
        return tuple(torch.randn([sizes[c] for c in own.replace("...", "bi")]) for own in owns)

    model, run = exported(lambda x, y: torch.einsum(equation, x, y), call(sizes), f"{tmp_path}/model.onnx")
    for other in [(1, 3, 1, 1, 4), (1, 3, 7, 2, 4), (3, 3, 1, 9, 4)]:
        tensors = call(dict(zip("bhijd", other, strict=True)))
        assert_same(run(*tensors), model(*tensors))
