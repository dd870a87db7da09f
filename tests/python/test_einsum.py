"""torch.einsum is one operator of the file at every size."""

import random
import types

import pytest
import torch
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


def test_random_equations_are_what_pytorch_computes(tmp_path):
    chosen = list(equations(60))
    counts = [equation.split("->")[0].count(",") + 1 for equation in chosen]
    operands = [
        torch.randn([7, 8] * ("..." in own) + [SIZES[c] for c in own.strip(".")])
        for equation in chosen
        for own in equation.split("->")[0].split(",")
    ]

    def fn(*tensors):
        left = list(tensors)
        return [torch.einsum(e, *(left.pop(0) for _ in range(n))) for e, n in zip(chosen, counts, strict=True)]

    model, run = exported(
        fn, tuple(operands), f"{tmp_path}/model.onnx", dynamic_shapes=(None,) * len(operands), verify=False
    )
    assert_same(run(*operands), model(*operands))


@pytest.mark.parametrize(
    ("equation", "dtype"), [("ij,jk->ik", torch.int64), ("iJ,Jk->ik", torch.float32), ("ij,jk->ik", torch.float16)]
)
def test_other_letters_and_numbers(equation, dtype, tmp_path):
    def call(n):
        return torch.ones(n, 3).to(dtype), torch.arange(12).reshape(3, 4).to(dtype)

    model, run = exported(lambda x, y: torch.einsum(equation, x, y), call(2), f"{tmp_path}/model.onnx")
    for n in (3, 7):
        assert_same(run(*call(n)), model(*call(n)))


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


def test_where_a_library_chooses_the_order_of_the_operands(tmp_path, monkeypatch):
    def contract_path(equation, *operands, optimize):
        return ([(0, 2), (0, 1)] if operands[0].shape[0] > 5 else [(0, 1), (0, 1)],)

    settings = torch.backends.opt_einsum.m
    monkeypatch.setattr(settings, "_opt_einsum", types.SimpleNamespace(contract_path=contract_path))
    monkeypatch.setattr(settings, "is_available", lambda: True)
    monkeypatch.setattr(settings, "enabled", True)

    def call(n):
        return torch.randn(n, 3), torch.randn(3, 4), torch.randn(4, n)

    model, run = exported(lambda *of: torch.einsum("ij,jk,kl->il", *of), call(4), f"{tmp_path}/model.onnx")
    assert settings.enabled is True
    for n in (2, 9):
        tensors = call(n)
        assert_same(run(*tensors), model(*tensors))
