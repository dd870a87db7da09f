"""Random operators in ONNX Runtime: drawn anew at each run, from the distribution that PyTorch draws from."""

import numpy as np
import onnxruntime
import pytest
import torch

import fairlead

N = 20000
a = torch.ops.aten

# name, model of a vector of N numbers, mean and standard deviation of what it draws (None: look at eager's)
CASES = {
    "rand": lambda x: torch.rand(x.shape[0]),
    "rand_like": lambda x: torch.rand_like(x),
    "randn": lambda x: torch.randn(x.shape[0]),
    "randint": lambda x: torch.randint(-3, 9, (x.shape[0],)),
    "randint_like": lambda x: torch.randint_like(x, 4),
    "bernoulli": lambda x: torch.bernoulli(x * 0 + 0.3),
    "bernoulli_p": lambda x: torch.bernoulli(x, 0.7),
    "normal": lambda x: torch.normal(x * 0 + 2, 3.0),
    "normal_": lambda x: x.clone().normal_(1, 0.5),
    "uniform_": lambda x: x.clone().uniform_(-1, 3),
    "exponential_": lambda x: x.clone().exponential_(2),
    "geometric_": lambda x: x.clone().geometric_(0.4),
    "log_normal_": lambda x: x.clone().log_normal_(0, 0.5),
    "random_": lambda x: x.clone().random_(2, 11),
    "randperm": lambda x: torch.randperm(x.shape[0]),
    "multinomial": lambda x: torch.multinomial(torch.stack([x * 0 + 1, x * 0 + 3, x * 0 + 6], 1), 1),
    "multinomial_replacement": lambda x: torch.multinomial(torch.stack([x * 0 + 1, x * 0 + 3, x * 0 + 6], 1), 2, True),
    "dropout": lambda x: a.native_dropout(x * 0 + 1, 0.4, True)[0],
}


class Wrap(torch.nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x)


@pytest.mark.parametrize("name", CASES)
def test_draws_have_the_distribution_of_eager(name, tmp_path):
    path = tmp_path / "model.onnx"
    model = Wrap(CASES[name]).eval()
    result = fairlead.export(model, (torch.rand(7),), path, verify=False)
    assert "random" in str(result.contract).lower()
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(0).random(N, dtype=np.float32)
    feeds = {i.name: x for i in session.get_inputs()}
    first, second = (session.run(None, feeds)[0].astype(np.float64) for _ in range(2))
    assert (first != second).any(), "the same numbers twice"
    torch.manual_seed(0)
    eager = model(torch.from_numpy(x)).double().numpy()
    assert first.shape == eager.shape
    # Two samples of 20,000. Means: six standard errors. Deviations: 8 %, six standard errors of a tail like the
    # exponential's. Shares below five quantiles: six standard errors at the widest, whatever the distribution.
    error = eager.std() * np.sqrt(2 / eager.size)
    assert abs(first.mean() - eager.mean()) < 6 * error + 1e-9
    assert abs(first.std() - eager.std()) < 0.08 * eager.std() + 1e-9
    for q in (0.05, 0.25, 0.5, 0.75, 0.95):
        at = np.quantile(eager, q) * (1 + 1e-6)  # draws of two libraries round differently
        assert abs((first <= at).mean() - (eager <= at).mean()) < 6 * np.sqrt(2 * 0.25 / eager.size)
    assert first.min() >= eager.min() - 6 * eager.std()


def test_permutation_has_every_number_once(tmp_path):
    path = tmp_path / "model.onnx"
    fairlead.export(Wrap(lambda x: torch.randperm(x.shape[0])).eval(), (torch.rand(7),), path, verify=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {i.name: np.zeros(50, np.float32) for i in session.get_inputs()}
    assert sorted(session.run(None, feeds)[0].tolist()) == list(range(50))


def test_draws_without_replacement_are_different(tmp_path):
    path = tmp_path / "model.onnx"
    model = Wrap(lambda x: torch.multinomial(x, 4)).eval()
    fairlead.export(model, (torch.rand(3, 6),), path, verify=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    drawn = session.run(None, {session.get_inputs()[0].name: np.ones((200, 6), np.float32)})[0]
    assert all(len(set(row)) == 4 for row in drawn.tolist())
