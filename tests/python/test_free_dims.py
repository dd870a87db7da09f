"""No dimension costs an export: what a file cannot hold free is fixed and said, and examples may have empty tensors."""

import sys

import pytest
import torch
import torch.nn.functional as F
from test_unseen_sizes import Wrap, assert_same, exported

import fairlead


def blurred(x):
    """A large filter for each channel: too many taps to be added up one by one."""
    return F.conv2d(x, torch.ones(x.shape[1], 1, 9, 9) / 81, padding=4, groups=x.shape[1])


def blurred_flat(x):
    batch, channels, height, width = x.shape
    flat = x.reshape(1, batch * channels, height, width)
    return F.conv2d(flat, torch.ones(batch * channels, 1, 9, 9), padding=4, groups=batch * channels).reshape(x.shape)


def smoothed(x):
    """A filter for each channel, as image libraries write it."""
    weight = torch.arange(6.0).reshape(1, 1, 2, 3).expand(x.shape[1], 1, 2, 3) * x.mean((0, 2, 3))[:, None, None, None]
    bias = x.amax((0, 2, 3))
    return F.conv2d(x, weight, bias, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=x.shape[1])


def smoothed_rows(x):
    """Every row a channel of its own, as filters of speech write it."""
    flat = x.reshape(1, -1, x.shape[-1])
    return F.conv1d(F.pad(flat, (2, 2), "replicate"), torch.ones(flat.shape[1], 1, 5), groups=flat.shape[1]).reshape(
        x.shape
    )


@pytest.mark.parametrize("fn", [smoothed, smoothed_rows])
def test_a_small_filter_for_each_channel_takes_any_number_of_them(fn, tmp_path):
    result = shapes_of(fn, (torch.randn(2, 3, 8, 9),), f"{tmp_path}/model.onnx")
    assert not result.contract.fixed
    model, run = exported(fn, (torch.randn(2, 3, 8, 9),), f"{tmp_path}/model.onnx")
    for shape in [(1, 3, 8, 9), (5, 7, 20, 6), (2, 1, 5, 8)]:
        x = torch.randn(shape)
        assert_same(run(x), model(x))


def shapes_of(fn, inputs, path, **options):
    return fairlead.export(Wrap(fn).eval(), inputs, path, **options)


def test_a_number_of_groups_fixes_the_channels(tmp_path):
    result = shapes_of(blurred, (torch.randn(2, 3, 8, 9),), f"{tmp_path}/model.onnx")
    (row,) = result.contract.fixed
    assert (row["axis"], row["size"]) == (1, 3)
    assert "argument 8 must be constant, it is args_0_dim_1" in row["reason"]
    model, run = exported(blurred, (torch.randn(2, 3, 8, 9),), f"{tmp_path}/model.onnx")
    for shape in [(1, 3, 3, 3), (5, 3, 20, 7)]:
        x = torch.randn(shape)
        assert_same(run(x), model(x))


def test_a_product_fixes_both_of_its_sizes(tmp_path):
    result = shapes_of(blurred_flat, (torch.randn(2, 3, 8, 9),), f"{tmp_path}/model.onnx")
    assert [(row["axis"], row["size"]) for row in result.contract.fixed] == [(0, 2), (1, 3)]


def test_a_dim_that_the_user_asked_for_is_not_fixed(tmp_path):
    dims = ({0: torch.export.Dim.AUTO, 1: torch.export.Dim.DYNAMIC},)
    with pytest.raises(fairlead.Unsupported, match="argument 8 must be constant, it is args_0_dim_1"):
        shapes_of(blurred, (torch.randn(2, 3, 8, 9),), f"{tmp_path}/model.onnx", dynamic_shapes=dims)


def without_last(x):
    """Heads of a sequence whose last element is left out: nothing is left of one."""
    batch, length, _ = x[:, :-1].shape
    heads = x[:, :-1].reshape(batch, length, 2, 4).transpose(1, 2).reshape(2 * batch, length, 4)
    return heads @ heads.transpose(1, 2)


def test_what_a_slice_leaves_may_be_nothing(tmp_path):
    model, run = exported(without_last, (torch.randn(2, 5, 8),), f"{tmp_path}/model.onnx")
    for shape in [(1, 1, 8), (3, 1, 8), (2, 9, 8)]:
        x = torch.randn(shape)
        assert_same(run(x), model(x))


def up_to_the_largest(x):
    return x[:, : min(x.shape[1], sys.maxsize)] * (2 if x.shape[1] < sys.maxsize else 3)


def test_the_largest_number_is_no_threshold(tmp_path):
    model, run = exported(up_to_the_largest, (torch.randn(2, 5),), f"{tmp_path}/model.onnx")
    x = torch.randn(3, 11)
    assert_same(run(x), model(x))


def with_past(past, mask, x):
    keys = torch.cat([past, x], 1)
    return (keys * mask[..., None]).cumsum(1)[:, -x.shape[1] :]


def only_empty(x, y):
    if x.shape[1]:
        raise ValueError("x must be empty")
    return torch.cat([x, y], 1) * 2


EMPTY = {
    "joined": (lambda x, y: torch.cat([x, y], 1) * 2, [(2, 0, 4), (2, 5, 4)], [(3, 7, 4), (3, 2, 4)]),
    "summed over": (lambda x: x.sum(1), [(3, 0)], [(2, 5)]),
    "a batch of none": (lambda x: x.sum(1), [(0, 3)], [(2, 5)]),
    "a mask that is longer": (with_past, [(2, 0, 4), (2, 5), (2, 5, 4)], [(3, 6, 4), (3, 8), (3, 2, 4)]),
    "refused otherwise": (only_empty, [(2, 0, 4), (2, 5, 4)], [(3, 0, 4), (3, 2, 4)]),
}


@pytest.mark.parametrize("name", EMPTY)
def test_an_example_may_have_an_empty_tensor(name, tmp_path):
    fn, example, other = EMPTY[name]
    model, run = exported(fn, tuple(torch.randn(s) for s in example), f"{tmp_path}/model.onnx")
    for shapes in (example, other):
        tensors = [torch.randn(s) for s in shapes]
        assert_same(run(*tensors), model(*tensors))


def test_a_size_that_stays_0_is_said(tmp_path):
    result = shapes_of(only_empty, (torch.zeros(2, 0, 4), torch.randn(2, 5, 4)), f"{tmp_path}/model.onnx")
    (row,) = result.contract.fixed
    assert row["reason"] == "its size is 0, and at 3 the model raises x must be empty"


def test_a_compiled_model_is_exported_as_what_was_compiled(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()).eval()
    result = fairlead.export(torch.compile(model), (torch.randn(2, 8),), f"{tmp_path}/model.onnx")
    assert result.contract.inputs[0]["shape"] == ["batch", "8"]


class Backwards(torch.nn.Module):
    def forward(self, x):
        return x[:, 1:] * torch.tensor(list(range(x.shape[1] - 1))[::-1])


def test_a_range_that_counts_down_does_so_at_every_size():
    result = fairlead.export(Backwards().eval(), (torch.randn(2, 8),))
    assert [symbol["name"] for symbol in result.contract.symbols] == ["batch", "x_dim_1"]
