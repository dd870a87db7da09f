"""Two axes whose sizes are the same in every run are still two axes."""

import onnxruntime
import torch

import fairlead


class Pooled(torch.nn.Module):
    """64 to 95 pixels are 2 rows and 2 columns: only the axis says which is which."""

    def __init__(self, between):
        super().__init__()
        self.pool = torch.nn.MaxPool2d(32)
        self.between = between
        self.bins = torch.nn.AdaptiveAvgPool2d((3, 3))

    def forward(self, x):
        return self.bins(self.between(self.pool(x)))


def session_of(model, args, path):
    fairlead.export(model, args, str(path), verify=False)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def check(model, tmp_path):
    model = model.eval()
    session = session_of(model, (torch.randn(2, 4, 64, 70),), tmp_path / "model.onnx")
    for sizes in ((1, 4, 48, 64), (2, 4, 64, 48), (3, 4, 130, 40)):
        x = torch.randn(sizes)
        (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        torch.testing.assert_close(torch.from_numpy(got), model(x))


def test_after_a_norm_and_an_activation(tmp_path):
    between = torch.nn.Sequential(torch.nn.BatchNorm2d(4), torch.nn.GELU())
    check(Pooled(between), tmp_path)


class Turned(torch.nn.Module):
    def forward(self, x):
        return torch.sigmoid(x.permute(0, 1, 3, 2)).transpose(1, 2).permute(0, 2, 1, 3)


def test_after_axes_changed_places(tmp_path):
    check(Pooled(Turned()), tmp_path)


class Multiplied(torch.nn.Module):
    def forward(self, x):
        return (x @ x.transpose(2, 3)) @ x * 0.01


def test_after_products_of_matrices(tmp_path):
    check(Pooled(Multiplied()), tmp_path)
