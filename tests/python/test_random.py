"""Random operators in ONNX Runtime: drawn anew at each run, from the distribution that PyTorch draws from; and models
whose outputs therefore differ from run to run, which are refused unless that is allowed.
"""

import sys

import numpy as np
import onnxruntime
import pytest
import torch

import fairlead
from fairlead import cli

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


# ---- outputs that differ from run to run ---------------------------------------------------------------


class Noisy(torch.nn.Module):
    """One output that repeats, one that is drawn, and one that draws and repeats all the same."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x):
        y = self.layer(x)
        return {"plain": y, "noisy": y + torch.rand_like(y), "still": y + 0 * torch.rand_like(y)}


noisy = lambda x: x + torch.rand_like(x)  # noqa: E731
EXAMPLE = (torch.rand(5, 4),)


def refused(model, path, **options) -> str:
    with pytest.raises(fairlead.Discrepancy) as caught:
        fairlead.export(model.eval(), EXAMPLE, path, **options)
    assert not path.exists()
    return str(caught.value)


@pytest.mark.parametrize("suffix", ["onnx", "pt2"])
def test_outputs_that_differ_from_run_to_run_are_refused(suffix, tmp_path):
    path = tmp_path / f"model.{suffix}"
    stages = []
    text = refused(Noisy(), path, progress=stages.append)
    assert "\n" not in text
    assert text.startswith(
        "[verify] Expected a model whose outputs repeat, but eager differs from itself: output 'noisy' differs by "
    )
    assert "between two runs at the same inputs. It draws with aten.rand_like.default in the model at " in text
    assert f"test_random.py:{Noisy.forward.__code__.co_firstlineno + 2}" in text
    assert text.endswith(
        f"No file was written under {path}. Pass what it draws as an input where the model has one (noise), or export "
        "with allow_random=True (--allow-random): the file then draws anew at each run, and only shapes and types of "
        "such outputs are checked."
    )
    assert sum("probing" in stage for stage in stages) == 1, "no other size would help"


def test_drawn_sizes_and_integers_are_refused(tmp_path):
    path = tmp_path / "model.onnx"
    chosen = Wrap(lambda x: x[torch.rand(x.shape[0]) > 0.5])
    assert "output 'output' has other sizes, [" in refused(chosen, path)
    assert "int64 values differ between two runs" in refused(Wrap(lambda x: torch.randperm(x.shape[0])), path)


@pytest.mark.parametrize(("suffix", "options"), [("onnx", {}), ("pt2", {}), ("onnx", {"tracer": "torch.export"})])
def test_allowed_draws_leave_the_other_outputs_to_be_compared(suffix, options, tmp_path):
    path = tmp_path / f"model.{suffix}"
    result = fairlead.export(Noisy().eval(), EXAMPLE, path, allow_random=True, **options)
    assert path.exists()
    assert result.contract.drawn == {"noisy": []}
    assert "; shapes and types only of noisy, drawn anew at each run" in result.contract.verified
    assert {row["output"] for row in result.discrepancies} <= {"plain", "still"}
    assert "aten.rand_like.default draws random numbers" in str(result.contract)


def test_an_output_that_repeats_is_compared_although_others_are_drawn(tmp_path):
    fairlead.lowerings.register_lowering("aten.tanh.default")(lambda b: b.result(b.op("Identity", b.input(0))))  # wrong
    try:
        model = Wrap(lambda x: {"noisy": torch.rand_like(x), "plain": torch.tanh(x)})
        text = refused(model, tmp_path / "model.onnx", allow_random=True)
    finally:
        fairlead.lowerings.unregister_lowering("aten.tanh.default")
    assert "Expected ONNX Runtime to agree with eager, but output 'plain' differs by " in text


def test_outputs_that_repeat_although_the_model_draws_are_compared(tmp_path):
    result = fairlead.export(Wrap(lambda x: x + 0 * torch.rand_like(x)).eval(), EXAMPLE, tmp_path / "model.onnx")
    assert result.contract.drawn == {}
    assert "worst difference 0 in " in result.contract.verified
    assert result.contract.verified.endswith("runs; it draws random numbers, but its outputs repeat")
    assert [a["kind"] for a in result.contract.assumptions] == ["random"]


def test_a_generator_with_a_seed_of_its_own_is_said(tmp_path):
    def forward(x):
        return x + torch.rand(x.shape[0], 1, generator=torch.Generator().manual_seed(3))

    for options in ({}, {"allow_random": True}):
        text = refused(Wrap(forward), tmp_path / "model.onnx", **options)
        assert "It draws with aten.rand.generator in the model at " in text
        assert "Draw ahead, and keep the numbers in a buffer." in text


def test_unverified_draws_are_flagged(tmp_path):
    result = fairlead.export(Wrap(noisy).eval(), EXAMPLE, tmp_path / "model.onnx", verify=False)
    assert result.contract.verified == "not verified"
    assert "aten.rand_like.default draws random numbers" in str(result.contract)


def test_the_generator_of_the_caller_is_left_as_it_was(tmp_path):
    model = Noisy().eval()
    before = torch.get_rng_state()
    fairlead.export(model, EXAMPLE, tmp_path / "model.onnx", allow_random=True)
    assert (torch.get_rng_state() == before).all()
    refused(model, tmp_path / "other.onnx")
    assert (torch.get_rng_state() == before).all()


def test_exporters_pass_it_on():
    model = Wrap(noisy).eval()
    with pytest.raises(fairlead.Discrepancy, match="whose outputs repeat"):
        fairlead.exporters.OnnxExporter().export(model, {"x": EXAMPLE[0]})
    for exporter in (fairlead.exporters.OnnxExporter(), fairlead.exporters.DynamoExporter()):
        program = exporter.export(model, {"x": EXAMPLE[0]}, {"allow_random": True})
        assert program.contract.drawn == {"output": []}


def test_the_command_line_passes_it_on(tmp_path, capsys, monkeypatch):
    def command(*words) -> int:
        monkeypatch.setattr(sys, "argv", ["fairlead", *map(str, words), "--quiet"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code

    script, path, saved = (tmp_path / name for name in ("model.py", "model.onnx", "model.pt2"))
    script.write_text(
        "import torch\n\nclass Noisy(torch.nn.Module):\n    def forward(self, x):\n"
        "        return x + torch.rand_like(x)\n\ndef make():\n    return Noisy().eval(), (torch.rand(5, 4),)\n"
    )
    source = f"{script}:make"
    assert command("export", source, path, "--no-report") == 1
    assert "allow_random=True (--allow-random)" in " ".join(capsys.readouterr().err.split())
    assert command("export", source, path, "--allow-random", "--report") == 0
    assert "output: shapes and types only, drawn anew at each run" in (tmp_path / "report.html").read_text()
    assert command("verify", path, "--against", source) == 0
    torch.export.save(torch.export.export(Wrap(noisy).eval(), EXAMPLE), saved)
    assert command("convert", saved, path) == 1
    assert command("convert", saved, path, "--allow-random") == 0
