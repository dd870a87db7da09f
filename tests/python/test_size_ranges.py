"""Models that execute another program beyond a size: held as well, or a file that refuses the rest."""

import onnxruntime
import pytest
import torch

import fairlead


class Chunks(torch.nn.Module):
    """One chunk of up to 8 rows in the example, then a loop: x is padded to whole chunks, with one step per chunk."""

    def forward(self, x):
        padded = torch.nn.functional.pad(x, (0, 0, 0, -x.shape[1] % 8))
        state = torch.zeros(x.shape[0], x.shape[2])
        parts = []
        for chunk in padded.split(8, 1):
            parts.append(chunk + state[:, None])
            state = state + chunk.sum(1)
        return torch.cat(parts, 1)[:, : x.shape[1]]


class Short(torch.nn.Module):
    """Below three rows there is nothing to smooth."""

    def forward(self, x):
        if x.shape[1] < 3:
            return x
        return (x[:, 2:] + x[:, 1:-1] + x[:, :-2]) / 3


class CoversAll(torch.nn.Module):
    """Slices that cut at some sizes and cover everything at others."""

    def forward(self, x):
        y = torch.zeros_like(x)
        y[:, :8] = x[:, :8]
        return y, x[..., None, :6], x[:9, 0]


def ran(path, x):
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x.numpy()})


def agrees(model, path, x):
    got = ran(path, x)
    for g, e in zip(got, fairlead.tree.get_leaf_tensors(model(x)).values(), strict=True):
        torch.testing.assert_close(torch.from_numpy(g), e)


def test_beyond_the_size_of_a_chunk(tmp_path):
    model, path = Chunks().eval(), tmp_path / "m.onnx"
    result = fairlead.export(model, (torch.randn(3, 7, 4),), path)
    assert not result.contract.fixed
    for length in (1, 2, 5, 7, 8, 9, 16, 17, 100):
        agrees(model, path, torch.randn(2, length, 4))


def test_down_to_the_size_where_the_model_branches(tmp_path):
    model, path = Short().eval(), tmp_path / "m.onnx"
    result = fairlead.export(model, (torch.randn(3, 7, 4),), path)
    for length in (1, 2, 3, 4, 20):  # and below it
        agrees(model, path, torch.randn(1, length, 4))
    assert [note.split(" the model")[0] for note in result.contract.notes] == ["at x_dim_1 = 2", "at x_dim_1 = 1"]
    with pytest.raises(Exception, match="x_dim_1 is 2, or x_dim_1 is 1, or x_dim_1 is at least 3"):
        ran(path, torch.randn(1, 0, 4))


def test_slices_that_cover_everything_at_some_sizes(tmp_path):
    model, path = CoversAll().eval(), tmp_path / "m.onnx"
    fairlead.export(model, (torch.randn(4, 7),), path)
    for size in (1, 6, 8, 12):
        agrees(model, path, torch.randn(10, size))


class Masked(torch.nn.Module):
    """Looks up the mask by row: one that is longer than the rows goes unnoticed."""

    def forward(self, x, mask):
        rows = torch.arange(x.shape[0])
        steps = [x[k].sum() if k in (0, 1, 3, 6, 10) else x[k].prod() for k in range(x.shape[0])]  # no two alike
        return x * mask[rows], torch.stack(steps)


def test_a_mask_that_is_too_long_is_not_a_size_of_its_own(tmp_path):
    result = fairlead.export(Masked().eval(), (torch.randn(3, 5), torch.ones(3, 5)), tmp_path / "m.onnx")
    assert ("mask", 0) in [(fixed["name"], fixed["axis"]) for fixed in result.contract.fixed]


class Cached(torch.nn.Module):
    """As many heads as there are tokens in the past, and a mask as long as past and new tokens together."""

    def forward(self, x, past, mask):
        new = x[:, None, :, None].expand(-1, past.shape[1], -1, past.shape[3])
        both = torch.cat([past, new], 2)
        return (both * mask[:, None, :, None]).sum(2), both


def test_a_past_as_long_as_there_are_heads(tmp_path):
    call = (torch.randn(3, 2), torch.randn(3, 4, 4, 5), torch.ones(3, 6))
    result = fairlead.export(Cached().eval(), call, tmp_path / "m.onnx")
    _, past, mask = [entry["shape"] for entry in result.contract.inputs]
    assert past[2] not in ("4", past[1])
    assert set(mask[1].split(" + ")) == {result.contract.inputs[0]["shape"][1], past[2]}


class SqueezedOne(torch.nn.Module):
    """One step is another program than several."""

    def forward(self, x, steps):
        return x[:, None] + (steps * 2 if steps.shape[1] > 1 else steps.squeeze(1)[:, None] + 1)


def test_an_example_of_one_step_keeps_its_own_program(tmp_path):
    model, path = SqueezedOne().eval(), tmp_path / "m.onnx"
    fairlead.export(model, (torch.randn(3), torch.randn(3, 1)), path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x, steps = torch.randn(5), torch.randn(5, 1)
    (got,) = session.run(None, {"x": x.numpy(), "steps": steps.numpy()})
    torch.testing.assert_close(torch.from_numpy(got), model(x, steps))


CALLS = []  # not in the model, whose state every run finds as it was


class Windows(torch.nn.Module):
    """Too small is refused, somewhat larger is a program of its own."""

    def forward(self, x):
        CALLS.append(tuple(x.shape))
        if x.shape[1] < 20:
            raise ValueError("too small")
        return x * 2 if x.shape[1] < 33 else (x + 1).sum(1)


def test_a_branch_below_what_ran_is_a_minimum(tmp_path):
    model, path = Windows().eval(), tmp_path / "model.onnx"
    result = fairlead.export(model, (torch.rand(2, 40),), path)
    symbol = result.contract.symbols[1]
    assert (symbol["min"], min(symbol["tried"])) == (33, 40)
    agrees(model, path, torch.rand(3, 33))
    with pytest.raises(Exception, match="x_dim_1 is at least 33"):
        ran(path, torch.rand(3, 32))


def test_what_was_tried_is_not_tried_again(tmp_path):
    """The branch below makes it start over: the runs of the first time are enough."""
    CALLS.clear()
    result = fairlead.export(Windows().eval(), (torch.rand(2, 40),), tmp_path / "model.onnx")
    batches = [shape for shape in CALLS if shape[1] == 40 and shape[0] in result.contract.symbols[0]["tried"][1:]]
    assert batches
    assert len(batches) == len(set(batches))


def test_a_largest_size_below_those_that_are_tried_by_themselves(tmp_path):
    """The user's largest size is a bound of what is tried."""
    path = tmp_path / "m.onnx"
    result = fairlead.export(torch.nn.Linear(3, 4).eval(), (torch.randn(2, 3),), path, max_size={"batch": 4})
    (symbol,) = result.contract.symbols
    assert symbol["max"] == 4
    assert max(symbol["tried"]) <= 4
    with pytest.raises(Exception, match="batch is at most 4"):
        onnxruntime.InferenceSession(path).run(None, {"input": torch.randn(5, 3).numpy()})
