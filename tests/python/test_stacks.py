"""Calls of many tensors: what is changed as a stack is what each would be by itself."""

from __future__ import annotations

import gc

import pytest
import torch
from fairlead.tree.calls import all_varied, one_call, resized
from fairlead.tree.stacks import MANY

import fairlead


class Sum(torch.nn.Module):
    def forward(self, xs):
        return torch.cat([x.reshape(-1).float() for x in xs]).sum()


def tensors(kind: str) -> list[torch.Tensor]:
    torch.manual_seed(0)
    count = MANY + 6
    return {
        "floats": [torch.rand(2, 3) for _ in range(count)],
        "halves": [torch.rand(2, 3).half() for _ in range(count)],
        "no dimension": [torch.rand(()) for _ in range(count)],
        "positions and ids": [torch.arange(k % 2, 6 + k % 2).reshape(2, 3) * (1 + k % 3) for k in range(count)],
        "strided": [torch.rand(3, 2).T for _ in range(count)],
        "two shapes": [torch.rand(2, 3 + k % 2) for k in range(2 * count)],
        "few of each": [torch.rand(2, k + 1) for k in range(count)],
    }[kind]


KINDS = ["floats", "halves", "no dimension", "positions and ids", "strided", "two shapes", "few of each"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", [(0, 0), (1, 0), (3, 2), (-1, -1), (-1, 4)])
def test_tensors_of_other_sizes(kind, change):
    call = one_call(Sum(), (tensors(kind),))
    sizes = [tuple(max(1, n + d) for n, d in zip(t.shape, change, strict=False)) for t in call.tensors]
    made = call.at(sizes)
    for tensor, size, new in zip(call.tensors, sizes, made, strict=True):
        alone = resized(tensor, list(size))
        assert torch.equal(new, alone)
        assert new.stride() == alone.stride()
    assert len({t.untyped_storage().data_ptr() for t in made}) == len(made)
    assert not {t.data_ptr() for t in made} & {t.data_ptr() for t in call.tensors}


def test_other_values_of_many_tensors():
    given = tensors("floats")
    given[3], given[4], given[5] = torch.zeros(2, 3), torch.full((2, 3), -1e9), torch.tensor([[0.0, 1, 1], [0, 1, 0]])
    made = all_varied(given, 7)
    assert torch.equal(made[4], given[4]), "a constant"
    assert torch.equal(made[5], given[5]), "a mask"
    assert made[3].min() > 0, "zeros may be a state that is empty yet"
    for k in (0, 1, 6, len(given) - 1):
        assert not torch.equal(made[k], given[k])
        ratio = made[k] / given[k]
        assert ratio.min() >= 0.75
        assert ratio.max() <= 1.25
    assert not torch.allclose(made[0] / given[0], made[1] / given[1]), "noise of its own"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_thousands_of_inputs(dtype, tmp_path):
    inputs = [(torch.rand(2, 3) * 4).to(dtype) for _ in range(1200)]
    before = gc.get_threshold()
    result = fairlead.export(Sum().eval(), (inputs,), tmp_path / "many.onnx")
    assert gc.get_threshold() == before
    assert len(result.contract.inputs) == 1200
    assert all(row.ok for row in result.discrepancies)
    assert {row.kind for row in result.discrepancies} >= {"example", "unseen"}
