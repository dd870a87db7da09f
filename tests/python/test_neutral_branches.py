"""Models that leave out what would do nothing (`if pad > 0`): one program serves both sides, where that is proved."""

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F

import fairlead


class Windows(torch.nn.Module):
    """Windows of `width`, as Swin's: padded to a multiple and cropped, where the size is none."""

    def __init__(self, width=7):
        super().__init__()
        self.width = width
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        rows, height, width, channels = x.shape
        w = self.width
        below, right = (w - height % w) % w, (w - width % w) % w
        padding = below > 0 or right > 0
        if padding:
            x = F.pad(x, (0, 0, 0, right, 0, below))
        h, v = x.shape[1] // w, x.shape[2] // w
        y = x.view(rows, h, w, v, w, channels).transpose(2, 3).reshape(-1, w * w, channels)
        y = self.linear(y).softmax(1)
        y = y.view(rows, h, v, w, w, channels).transpose(2, 3).reshape(rows, h * w, v * w, channels)
        if padding:
            y = y[:, :height, :width].contiguous()
        return y


class TwoStages(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Windows(7), Windows(5)

    def forward(self, x):
        return self.second(self.first(x)[:, ::2, ::2])


class Frames(torch.nn.Module):
    """A signal that is padded to whole frames."""

    def forward(self, x):
        missing = -x.shape[1] % 16
        if missing:
            x = F.pad(x, (0, missing))
        return x.unfold(1, 16, 16).cumsum(2)


class Resized(torch.nn.Module):
    """As MobileViT does: to a size that patches divide, and back."""

    def forward(self, x):
        height, width = x.shape[2:]
        rows, columns = -(-height // 2) * 2, -(-width // 2) * 2
        if (rows, columns) != (height, width):
            x = F.interpolate(x, size=(rows, columns), mode="bilinear", align_corners=False)
        y = (x.unflatten(2, (-1, 2)).softmax(2).flatten(2, 3).tanh() + 1).relu()
        if (rows, columns) != (height, width):
            y = F.interpolate(y, size=(height, width), mode="bilinear", align_corners=False)
        return y


class Spectrum(torch.nn.Module):
    """What is kept of it is written into zeros, whole where there is no more."""

    def forward(self, x):
        out = torch.zeros_like(x)
        kept = slice(None, 6) if x.shape[1] > 6 else slice(None)
        out[:, kept] = x[:, kept].cumsum(1)
        return out + 1


def opened(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what the file refuses is looked at here
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def wrong_sizes(model, path, sizes, make):
    session = opened(path)
    wrong = []
    for size in sizes:
        x = make(*size)
        expected = model(x).detach().numpy()
        (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        if got.shape != expected.shape or not np.allclose(got, expected, atol=1e-5):
            wrong.append(size)
    return wrong


@pytest.mark.parametrize("model", [Windows, TwoStages])
@pytest.mark.parametrize("size", [(28, 28), (29, 33), (28, 33)], ids=str)
def test_padding_to_a_multiple_is_one_program_at_every_size(model, size, tmp_path):
    torch.manual_seed(0)
    model, path = model().eval(), str(tmp_path / "model.onnx")
    result = fairlead.export(model, (torch.randn(2, *size, 3),), path)
    assert "x: float32[batch, x_dim_1, x_dim_2, 3]" in str(result.contract)
    assert "another program" not in str(result.contract)
    assert "refuses" not in str(result.contract)
    sizes = [(h, w) for h in range(2, 41, 3) for w in (5, 7, 14, 20, 28, 33, 35)]
    assert wrong_sizes(model, path, sizes, lambda h, w: torch.randn(3, h, w, 3)) == []


@pytest.mark.parametrize("length", [64, 70])
def test_a_signal_is_padded_to_whole_frames(length, tmp_path):
    path = str(tmp_path / "model.onnx")
    result = fairlead.export(Frames().eval(), (torch.randn(2, length),), path)
    assert "x: float32[batch, x_dim_1]" in str(result.contract)
    assert wrong_sizes(Frames(), path, [(n,) for n in range(1, 130)], lambda n: torch.randn(2, n)) == []


@pytest.mark.parametrize("size", [(8, 8), (7, 8), (9, 5)], ids=str)
def test_resizing_to_the_same_size_is_nothing(size, tmp_path):
    path = str(tmp_path / "model.onnx")
    result = fairlead.export(Resized().eval(), (torch.randn(2, 3, *size),), path)
    assert "another program" not in str(result.contract)
    sizes = [(h, w) for h in range(1, 12) for w in range(1, 12)]
    assert wrong_sizes(Resized(), path, sizes, lambda h, w: torch.randn(2, 3, h, w)) == []


@pytest.mark.parametrize("length", [6, 9])
def test_what_is_written_to_a_view_of_everything_is_written_to_everything(length, tmp_path):
    path = str(tmp_path / "model.onnx")
    result = fairlead.export(Spectrum().eval(), (torch.randn(2, length),), path)
    assert "another program" not in str(result.contract)
    assert wrong_sizes(Spectrum(), path, [(n,) for n in range(1, 20)], lambda n: torch.randn(2, n)) == []


class Cut(torch.nn.Module):
    """Beyond 20 it cuts: at 20 that would do something, below 20 nothing."""

    def forward(self, x):
        if x.shape[1] > 20:
            x = x[:, :19]
        return x.cumsum(1)


class Written(torch.nn.Module):
    """Where nothing is padded, what is written is the tensor that is returned beside it."""

    def forward(self, x):
        x = x * 2
        y = F.pad(x, (0, -x.shape[1] % 4)) if x.shape[1] % 4 else x
        y += 1
        return y.sum(1), x


class Clamped(torch.nn.Module):
    """Equal for most values on both sides, and not the same."""

    def forward(self, x):
        return (x.clamp(max=50.0) if x.shape[1] > 20 else x) + 1


class Largest(torch.nn.Module):
    """What is compared for a number is not forced: min() would be another one."""

    def forward(self, x):
        n = min(x.shape[1], 12)
        if x.shape[1] % 8:
            x = F.pad(x, (0, -x.shape[1] % 8))
        return x[:, :n].cumsum(1) / n


@pytest.mark.parametrize("length", [16, 18, 30])
@pytest.mark.parametrize("model", [Cut, Written, Clamped, Largest])
def test_what_is_not_neutral_is_not_taken_for_it(model, length, tmp_path):
    path = str(tmp_path / "model.onnx")
    fairlead.export(model().eval(), (torch.randn(2, length),), path)
    session = opened(path)
    computed = 0
    for n in range(1, 65):
        x = torch.randn(2, n) * 100
        expected = model()(x)
        try:
            got = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        except Exception as error:
            if "out of data bounds" not in str(error) and "Got invalid dimensions" not in str(error):
                raise
            continue
        computed += 1
        for a, b in zip(expected if isinstance(expected, tuple) else [expected], got, strict=True):
            assert a.shape == b.shape
            assert np.allclose(a.numpy(), b, rtol=1e-4, atol=1e-3), n
    assert computed > (0 if model is Written else 40)
