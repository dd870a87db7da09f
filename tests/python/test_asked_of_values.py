"""What models ask of values and of numbers that were read: truths, lists, caches, defaults; and what PyTorch or the
runtime does otherwise at some of them. Each was exported wrong, refused, or ended the process once.
"""

import copy
import functools

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from wrapped import Wrap

import fairlead


def exported(function, tmp_path, *example):
    """The file as a function, and its contract."""
    path = tmp_path / "model.onnx"
    model = function if isinstance(function, nn.Module) else Wrap(function)
    result = fairlead.export(model.eval(), example, path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]

    def run(*tensors) -> torch.Tensor:
        return torch.from_numpy(session.run(None, {n: t.numpy() for n, t in zip(names, tensors, strict=True)})[0])

    return run, result.contract


def agree(function, run, *tensors) -> None:
    torch.testing.assert_close(run(*tensors), function(*tensors), rtol=1e-4, atol=1e-5)


def stop_of(function, run, *tensors) -> str:
    try:
        run(*tensors)
    except Exception as error:
        return str(error)
    agree(function, run, *tensors)
    return ""


POSITIVE, NEGATIVE, MIXED = torch.full((3, 4), 0.5), torch.full((3, 4), -0.5), torch.tensor([[0.5, -0.5]])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 if (x > 0).sum() else x * 3,
        lambda x: x * 2 if bool(x.relu().sum()) else x * 3,
        lambda x: x * 2 if torch.is_nonzero((x > 0).sum()) else x * 3,
        lambda x: x * 2 if not (x > 0).any() else x * 3,
        lambda x: x * (2 + int((x > 0).any())),
        lambda x: x * 2 if torch.equal(x, x.abs()) else x * 3,
    ],
    ids=["an integer", "a float", "is_nonzero", "not", "int of a bool", "equal"],
)
def test_the_truth_of_a_tensor_chooses_a_number(function, tmp_path):
    run, _ = exported(function, tmp_path, torch.randn(3, 9))
    for x in (POSITIVE, NEGATIVE, MIXED):
        agree(function, run, x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, t: x[:, : max(t.tolist())],
        lambda x, t: x[:, : min(t.tolist())],
        lambda x, t: x * sum(t.tolist()) / len(t.tolist()),
        lambda x, t: x[:, : t.tolist()[-1]],
        lambda x, t: x[:, : t.tolist()[0]],
        lambda x, t: x[:, : sorted(t.tolist(), reverse=True)[0]],
    ],
    ids=["max", "min", "mean", "last", "first", "sorted"],
)
def test_a_list_of_numbers_is_read_at_every_length(function, tmp_path):
    run, contract = exported(function, tmp_path, torch.randn(3, 9), torch.tensor([5, 7, 6]))
    assert not contract.assumptions
    for lengths in ([5, 7, 6], [1], [9, 2], [3, 4, 5, 6, 7]):
        agree(function, run, torch.randn(len(lengths), 9), torch.tensor(lengths))


def test_a_list_whose_tensor_was_written_since_is_not_asked_of_it(tmp_path):
    def written(x, t):
        t = t.clone()
        read = t.tolist()
        t.add_(1)
        return x * max(read) + t.sum()

    with pytest.raises(fairlead.Discrepancy, match="read a list of numbers from a tensor"):
        exported(written, tmp_path, torch.randn(3, 9), torch.tensor([5, 7, 6]))


@functools.cache
def cached(n):
    return n * 3 // 2 + 1


def test_a_function_that_keeps_its_results_is_asked_of_a_value(tmp_path):
    def model(x, t):
        return x * cached(int(t.max()))

    before = cached.cache_info().currsize
    run, contract = exported(model, tmp_path, torch.randn(3, 9), torch.tensor([5, 7, 6]))
    assert "requires" not in str(contract)
    assert cached.cache_info().currsize < before + 20
    for longest in (0, 1, 2, 7, 50):
        agree(model, run, torch.randn(3, 9), torch.tensor([longest, 0, 0]))


def test_an_argument_that_the_call_left_out_is_not_a_number_of_it(tmp_path):
    """t + k has a factor of k, which is 1: so was k in every run."""

    def model(x, t):
        return torch.arange(4) + (int(t.max()) // 16 * 2 + 1) + x.long() * 0

    run, _ = exported(model, tmp_path, torch.randn(3, 4), torch.tensor([5, 7, 6]))
    agree(model, run, torch.randn(3, 4), torch.tensor([40, 1, 1]))


def test_a_step_that_is_a_value_or_a_number_of_the_source(tmp_path):
    def model(x, t):
        k = int(t.max()) >> 1
        return x[:, :: 1 + (k if 0 <= k < 4 else 2)]

    run, _ = exported(model, tmp_path, torch.randn(3, 33), torch.tensor([23, 15, 28]))
    for longest in (0, 1, 2, 5, 7, 8, 40):
        agree(model, run, torch.randn(3, 33), torch.tensor([longest, 0, 0]))


def test_a_start_that_counts_from_the_end_at_some_values(tmp_path):
    def model(x, t):
        return x.narrow(1, int(t.min()) - 1, 1)

    run, _ = exported(model, tmp_path, torch.randn(3, 9), torch.tensor([3, 5, 2]))
    for shortest in (0, 1, 7, -3):
        agree(model, run, torch.randn(3, 9), torch.tensor([shortest, 8, 9]))


def test_what_is_required_of_a_value_is_asked_before_it_is_used(tmp_path):
    def model(x, t):
        k = int(t.max()) // 16
        return F.one_hot(torch.arange(4) * 0 + min(k, 3), 4) + x.sum().long() * 0

    run, _ = exported(model, tmp_path, torch.randn(3, 4), torch.tensor([5, 7, 6]))
    agree(model, run, torch.randn(3, 4), torch.tensor([47, 1, 1]))
    assert "read_0" in stop_of(model, run, torch.randn(3, 4), torch.tensor([200, 1, 1]))


@pytest.mark.parametrize("sizes", [(1, 1), (3, 5), (20, 40)])
def test_a_pool_to_a_size_that_is_one_at_times(sizes, tmp_path):
    def model(x):
        return F.adaptive_avg_pool1d(x, 1 + x.shape[1] // 10)

    run, _ = exported(model, tmp_path, torch.randn(2, 17))
    agree(model, run, torch.randn(*sizes))


def test_the_other_side_of_a_question_that_two_sizes_answer_together(tmp_path):
    def model(x, y):
        return x.roll(sorted((y.shape[1] + 4, x.numel(), 9))[1], 1) + y.sum()

    run, _ = exported(model, tmp_path, torch.randn(2, 10), torch.randn(2, 8))
    for rows, columns, other in ((1, 8, 1), (2, 3, 2), (2, 4, 4), (4, 2, 1), (3, 30, 40)):
        agree(model, run, torch.randn(rows, columns), torch.randn(rows, other))


def test_numbers_where_two_sizes_are_equal_are_looked_at_beside(tmp_path):
    def model(x, y):
        k = sum(range(x.shape[1] % 4)) if x.shape[1] == y.shape[1] else y.shape[1] // 3
        return x.sum() * k + y.sum()

    run, contract = exported(model, tmp_path, torch.randn(3, 23), torch.randn(3, 5))
    bounds = {s["name"]: (s["min"], s["max"]) for s in contract.symbols}
    for size in (5, 6, 23, 24, 41):
        x, y = torch.randn(3, size), torch.randn(3, size)
        dims = zip(contract.inputs[0]["shape"] + contract.inputs[1]["shape"], (*x.shape, *y.shape), strict=True)
        if all(t == str(d) if t.isdigit() else bounds[t][0] <= d <= bounds[t][1] for t, d in dims):
            agree(model, run, x, y)


def test_an_integer_that_fits_is_looked_at_where_its_rest_is_at_its_ends(tmp_path):
    def model(x):
        return torch.zeros(len(str(5).zfill(x.shape[1])) % 50 + 1) + x.sum()

    run, contract = exported(model, tmp_path, torch.randn(3, 9))
    if "x_dim_1" in str(contract.inputs):
        for size in (48, 49, 50, 51, 99):
            agree(model, run, torch.randn(3, size))


class Inside(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.inner, self.how = nn.Linear(4, 4), how

    def forward(self, x):
        return self.how(self, x)


def named(self, x):
    with torch.profiler.record_function("inner"):
        return self.inner(x)


@pytest.mark.parametrize(
    "how",
    [
        lambda self, x: F.linear(x, nn.Parameter(self.inner.weight.detach() * 2)),
        lambda self, x: copy.deepcopy(self.inner)(x),
        named,
    ],
    ids=["a parameter made of another", "a copy of a module", "a name in a profile"],
)
def test_what_is_made_of_weights_outside_of_operators(how, tmp_path):
    model = Inside(how)
    run, _ = exported(model, tmp_path, torch.randn(3, 6, 4))
    x = torch.randn(2, 11, 4)
    torch.testing.assert_close(run(x), model(x).detach(), rtol=1e-4, atol=1e-5)


def test_integers_beyond_32_bits_are_compared_as_they_are(tmp_path):
    def model(t):
        return t.clamp(-(2**35), 2**35) + t.sign() + torch.minimum(t, t.flip(1)) + t.amax(1, keepdim=True)

    run, _ = exported(model, tmp_path, torch.randint(0, 9, (3, 6)))
    for seed in range(3):
        t = torch.from_numpy(np.random.default_rng(seed).integers(-(2**40), 2**40, (9, 400)))
        assert torch.equal(run(t), model(t))


LISTS = {
    "beside a list of numbers": lambda x, t: x[t.tolist(), [0, 1, 2]],
    "behind a list of numbers": lambda x, t: x[[0, 1, 2], t.tolist()],
    "beside a new axis": lambda x, t: x[t.tolist(), None],
    "beside a number": lambda x, t: x[t.tolist(), 0],
    "all of them": lambda x, t: x[t.tolist(), [0, 1, 2], None],
    "a number beside a new axis": lambda x, t: x[int(t[0]), None],
    "sums": lambda x, t: x[[int(t[0]), int(t[1]) + 1], [[0], [int(t[2])]]],
    "written": lambda x, t: x.clone().index_fill_(0, t, 1)[t.tolist(), None] + x[t.tolist(), 1:3, None].sum(1),
}


@pytest.mark.parametrize("how", LISTS)
def test_lists_of_what_was_read_are_indices(how, tmp_path):
    # A number that was read equals an axis of the example: 1.
    run, _ = exported(LISTS[how], tmp_path, torch.randn(6, 5), torch.tensor([1, 3, 0]))
    for rows, places in ((6, [1, 3, 0]), (9, [4, 4, 2]), (6, [0, 2, 4])):
        agree(LISTS[how], run, torch.randn(rows, 5), torch.tensor(places))
