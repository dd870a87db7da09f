"""Quantized layers of torch.ao: files compute what their kernels compute, at other sizes too."""

import warnings

import numpy as np
import onnxruntime
import pytest
import torch
import torch.ao.quantization as quantization
from torch import nn
from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

import fairlead

warnings.filterwarnings("ignore", category=UserWarning)


class Net(nn.Module):
    """What networks for images are made of; quantized where `quantize` is called."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second, self.relu = nn.Conv2d(8, 8, 3, 2, 1, groups=2), nn.ReLU()
        self.sum, self.last = nn.quantized.FloatFunctional(), nn.Linear(8, 4)

    def forward(self, x):
        x = self.norm(self.conv(self.quant(x)))
        y = self.relu(self.second(x))
        y = self.sum.add(y, nn.functional.max_pool2d(x, 2))
        y = torch.cat([y, y], 1)[:, :8]
        return self.dequant(self.last(nn.functional.adaptive_avg_pool2d(y, 1).flatten(1)))


def stack():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


def static():
    model = Net().eval()
    model.qconfig = quantization.get_default_qconfig("x86")
    quantization.fuse_modules(model, [["conv", "norm"], ["second", "relu"]], inplace=True)
    quantization.prepare(model, inplace=True)
    model(torch.randn(8, 3, 8, 8))
    return quantization.convert(model)


def by_fx():
    example = torch.randn(8, 8)
    prepared = prepare_fx(stack(), quantization.get_default_qconfig_mapping("x86"), (example,))
    prepared(example)
    return convert_fx(prepared)


def trained(observes):
    model = stack().train()
    model.qconfig = quantization.get_default_qat_qconfig("x86")
    model = quantization.prepare_qat(model)
    model(torch.randn(8, 8))
    return model.eval() if observes else model.eval().apply(quantization.disable_observer)


MODELS = {
    "dynamic": (lambda: quantization.quantize_dynamic(stack(), {nn.Linear}), (3, 8)),
    "dynamic half": (lambda: quantization.quantize_dynamic(stack(), {nn.Linear}, torch.float16), (3, 8)),
    "static": (static, (2, 3, 8, 8)),
    "fx": (by_fx, (3, 8)),
    "trained for it": (lambda: trained(False), (3, 8)),
}


@pytest.mark.parametrize("name", MODELS)
def test_computes_what_the_kernels_compute(tmp_path, name):
    torch.manual_seed(0)
    make, shape = MODELS[name]
    model, path = make(), tmp_path / "model.onnx"
    result = fairlead.export(model, (torch.randn(shape),), path)
    assert "batch" in {symbol.name for symbol in result.contract.symbols}
    session = onnxruntime.InferenceSession(str(path))
    for rows in (1, 7, 30):
        x = torch.randn(rows, *shape[1:])
        got = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
        with torch.no_grad():
            np.testing.assert_allclose(got, model(x).numpy(), rtol=1e-5, atol=1e-5)


def test_what_has_no_form_is_refused_by_name(tmp_path):
    model = quantization.quantize_dynamic(nn.Sequential(nn.LSTM(4, 4)).eval(), {nn.LSTM})
    with pytest.raises(fairlead.Unsupported, match=r"quantized LSTM of torch\.ao"):
        fairlead.export(model, (torch.randn(3, 2, 4),), tmp_path / "model.onnx")
    with pytest.raises(fairlead.Unsupported, match=r"still observes .*disable_observer"):
        fairlead.export(trained(True), (torch.randn(3, 8),), tmp_path / "model.onnx")
