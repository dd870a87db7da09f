"""Models that go by values (`if mask.any()`): the file holds both sides, and stops where it holds neither."""

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import fairlead


class Larger(nn.Module):
    def forward(self, x):
        if x.max() > 1:
            return x.tanh() * 2
        return x.relu()


class Masked(nn.Module):
    def forward(self, x, mask):
        if mask.any():
            x = x.masked_fill(mask, -1.0).cumsum(1)
        return x + 1


class Late(nn.Module):
    """What decides is behind weights, and used on both sides."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        y = self.first(x)
        total = y.sum()
        if total > 0:
            return self.second(y) + total
        return y - total


class Two(nn.Module):
    """Two questions: four programs."""

    def forward(self, x, mask):
        if mask.any():
            x = x.masked_fill(mask, 0.0)
        if x.max() > 1:
            x = x / 2
        return x.sum(1)


class Raising(nn.Module):
    """The other side is an error."""

    def forward(self, x):
        if x.min() < -50:
            raise ValueError("too small")
        return x.exp()


class Halved(nn.Module):
    """As often as values say."""

    def forward(self, x):
        while x.sum() > 10:
            x = x / 2
        return x


def compared(model, path, calls):
    """How many calls the file computed, all of them right; others it refused by a check of its own."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    computed = 0
    for call in calls:
        expected = model(*call).detach().numpy()
        try:
            (got,) = session.run(None, {name: t.numpy() for name, t in zip(names, call, strict=True)})
        except Exception as error:
            if "out of data bounds" not in str(error) and "invalid dimensions" not in str(error):
                raise
            continue
        computed += 1
        assert got.shape == expected.shape
        assert np.allclose(got, expected, rtol=1e-4, atol=1e-4)
    return computed


def calls_of(seed, with_mask, width=None):
    torch.manual_seed(seed)
    for rows in (1, 2, 5, 17):
        for columns in (1, 3, 8) if width is None else (width,):
            for scale in (0.1, 1.0, 30.0, -3.0):
                x = torch.rand(rows, columns) * scale
                if not with_mask:
                    yield (x,)
                    continue
                yield x, torch.rand(rows, columns) > 0.5
                yield x, torch.zeros(rows, columns, dtype=torch.bool)
                yield x, torch.ones(rows, columns, dtype=torch.bool)


@pytest.mark.parametrize("other", [False, True], ids=["one side", "the other side"])
@pytest.mark.parametrize("model", [Larger, Masked, Late])
def test_both_sides_of_a_question_about_values_are_in_the_file(model, other, tmp_path):
    torch.manual_seed(0)
    model, path = model().eval(), str(tmp_path / "model.onnx")
    x = torch.rand(3, 4) * (5 if other else 0.5)
    mask = torch.rand(3, 4) > (0.5 if other else 2.0)
    with_mask = isinstance(model, Masked)
    result = fairlead.export(model, (x, mask) if with_mask else (x,), path)
    assert "at other values the model executes another program" in str(result.contract)
    assert not [a for a in result.contract.assumptions if a["kind"] == "read"]
    assert not [note for note in result.contract.notes if "requires" in note]
    calls = list(calls_of(1, with_mask, 4 if isinstance(model, Late) else None))
    assert compared(model, path, calls) == len(calls)


def test_the_answers_to_two_questions_are_right_or_refused(tmp_path):
    path = str(tmp_path / "model.onnx")
    fairlead.export(Two().eval(), (torch.rand(3, 4), torch.zeros(3, 4, dtype=torch.bool)), path)
    calls = list(calls_of(2, True))
    assert compared(Two(), path, calls) > len(calls) * 3 // 4


def test_an_error_on_the_other_side_is_refused_by_the_file(tmp_path):
    path = str(tmp_path / "model.onnx")
    result = fairlead.export(Raising().eval(), (torch.rand(3, 4),), path)
    assert any("requires" in note for note in result.contract.notes)
    with pytest.raises(Exception, match="out of data bounds"):
        onnxruntime.InferenceSession(path).run(None, {"x": np.full((3, 4), -60.0, np.float32)})


def test_a_loop_by_values_is_right_or_refused(tmp_path):
    path = str(tmp_path / "model.onnx")
    try:
        fairlead.export(Halved().eval(), (torch.rand(3, 4) * 5,), path)
    except fairlead.Diverged as error:
        assert "branches on a value" in str(error)  # noqa: PT017  either is right
        return
    calls = [(torch.rand(3, 4) * scale,) for scale in (0.1, 1.0, 4.0, 5.0, 9.0, 100.0)]
    assert compared(Halved(), path, calls) > 0


def test_strict_takes_no_side():
    with pytest.raises(fairlead.Diverged, match="read"):
        fairlead.export(Larger().eval(), (torch.rand(3, 4),), strict=True)


class AskedOftener(torch.nn.Module):
    """Three questions about one value, the second of which decides; the result is reshaped last."""

    def forward(self, x, lengths):
        k = int(lengths.max()) // 7 % 16
        return torch.full((max(0, min(k, 3)) + 4 + max(0, min(k, 5)),), 2.0)[:4].view(2, 2) + x.mean()


def test_every_question_is_asked_by_the_file(tmp_path):
    """ONNX Runtime keeps one of several Reshapes in a row, and would drop the checks of the others."""
    path = tmp_path / "m.onnx"
    fairlead.export(AskedOftener().eval(), (torch.randn(1, 8), torch.tensor([3])), path, verify=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    x = np.zeros((1, 8), np.float32)
    session.run(None, dict(zip(names, [x, np.array([6])], strict=True)))
    for length in (7, 30, 50):
        with pytest.raises(Exception, match="running Gather node"):
            session.run(None, dict(zip(names, [x, np.array([length])], strict=True)))
