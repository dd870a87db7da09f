"""Limits of what a stranger's file may take: memory, time, entries of an archive that share their bytes."""

import json
import resource
import subprocess
import sys
import time

import checkpoints
import hostile_wholes
import onnxruntime
import pytest
import torch
from fairlead.base.memory import lacks_memory
from fairlead.checkpoint.source import find
from fairlead.cli.memory import bounded_by
from fairlead.verify.patience import TookTooLong, at_most
from hostile_files import FILES

import fairlead


@pytest.fixture
def own_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRLEAD_MEMORY", "1")
    file = tmp_path / "file"
    file.write_bytes(b"x")
    return str(file)


def test_memory_of_a_command_is_bounded(own_memory):
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with bounded_by(own_memory):
        torch.zeros(1 << 20)
        with pytest.raises(RuntimeError) as error:
            torch.zeros(1 << 30)
        assert lacks_memory(error.value)
        with pytest.raises(MemoryError):
            bytearray(3 << 30)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_nothing_is_bounded_without_a_file(own_memory, monkeypatch):
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with bounded_by("model.py:make"):
        assert resource.getrlimit(resource.RLIMIT_DATA) == before
    monkeypatch.setenv("FAIRLEAD_MEMORY", "0")
    with bounded_by(own_memory):
        assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_what_takes_too_long_ends():
    def runs_on():
        while True:
            pass

    start = time.monotonic()
    with pytest.raises(TookTooLong), at_most(0.2):
        runs_on()
    assert time.monotonic() - start < 20
    for _ in range(200):  # ends as the time does: the exception comes within, or not at all
        try:
            with at_most(0.001):
                time.sleep(0.001)
        except TookTooLong:
            pass
    time.sleep(0.05)
    with at_most(None):
        pass


TRACED = """
import sys, time
from fairlead.verify.patience import TookTooLong, at_most
for seconds in (60, *[0.001] * 50):
    try:
        with at_most(seconds):
            time.sleep(0.001)
    except TookTooLong:
        pass
def line(frame, event, what):
    return line
sys.settrace(line)
sum(n for n in range(9))
print("ended")
"""


def test_a_limit_of_time_leaves_nothing_behind():
    """An exception that was asked for and taken back stops whoever traces in Python 3.11: a debugger, coverage."""
    done = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, timeout=60)
    assert done.stdout == "ended\n", done.stderr


def test_a_program_without_an_end(tmp_path):
    path = hostile_wholes.endless(tmp_path, "le")
    with pytest.raises(fairlead.InvalidInput, match=r"within 5 s, got one that takes longer, or has no end\. Pass"):
        fairlead.export(path, tmp_path / "x.onnx")
    assert [p.name for p in tmp_path.iterdir()] == ["x.pt2"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("zip: two of model.json, the first is empty", "two entries 'mlp/models/model.json'"),
        ("zip: every entry twice", "two entries"),
        ("zip: an entry within another", "entries that overlap"),
        ("zip: weights where the program is", "has another name in front of its bytes"),
        ("zip: an entry of another size", "has two sizes"),
        ("pt2: full of 2 to the 62", "tensors of at most 288230376151711744 elements, got more"),
        ("pt2: an input of 131072 by 131072", "at most 268,435,456 elements, got 17,179,869,184"),
    ],
)
def test_an_archive_is_refused(name, words, tmp_path):
    path = FILES[name](tmp_path)
    with pytest.raises(fairlead.FairleadError, match=words):
        fairlead.export(path, tmp_path / "x.onnx")
    assert [p.name for p in tmp_path.iterdir()] == ["x.pt2"]


def test_an_adapter_is_no_model(tmp_path):
    folder = checkpoints.bert(tmp_path / "source")
    assert find(str(folder)) is not None
    (tmp_path / "source" / "adapter_config.json").write_text("{}")
    with pytest.raises(fairlead.InvalidInput, match=r"got an adapter \(adapter_config\.json\)\. Merge it"):
        find(str(folder))


def test_a_fault_that_ends_the_process_is_one_line(tmp_path):
    from hostile_checkpoints import least_by_minus_one

    (tmp_path / "x.onnx").write_bytes(least_by_minus_one(tmp_path).SerializeToString())
    (tmp_path / "m.py").write_text(
        "import torch\ndef make():\n    return torch.nn.ReLU().eval(), (torch.rand(3, 2),)\n"
    )
    command = [sys.executable, "-m", "fairlead", "verify", "x.onnx", "--against", "m.py:make", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "error: [fairlead] Expected a file that PyTorch and ONNX Runtime can run, got one by which they ended the "
        "process (SIGFPE). With FAIRLEAD_TRACEBACK=1 in the environment the system says more.\n"
    )


@pytest.mark.parametrize("name", ["encoder_layers", "decoder_layers"])
def test_modules_without_end_are_refused_whatever_they_are_called(name, tmp_path):
    checkpoints.bart(tmp_path / "source")
    config = tmp_path / "source" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {name: 10**9}))
    held = sum(file.stat().st_size for file in (tmp_path / "source").glob("*.safetensors"))
    most = f"asks for more than {5_000 + held // 64:,}\\. Check"  # 5,000, and one for 64 bytes of weights
    with pytest.raises(fairlead.InvalidInput, match=f"{held:,} bytes, got a configuration that {most}"):
        fairlead.export_checkpoint(tmp_path / "source", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_memory_that_lacks_while_a_file_is_checked_is_no_difference(tmp_path, monkeypatch):
    from fairlead.verify.runtime_check import OnnxSession

    def run(self, feeds):
        raise RuntimeError("Failed to allocate memory for requested buffer of size 8")

    monkeypatch.setattr(OnnxSession, "run", run)
    with pytest.raises(MemoryError, match="Failed to allocate memory"):
        fairlead.export(torch.nn.ReLU().eval(), (torch.rand(3, 2),), tmp_path / "x.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_trial_that_takes_all_memory_is_an_answer_and_not_the_end(tmp_path, monkeypatch):
    class Grows(torch.nn.Module):
        """As many elements as its length to the fourth."""

        def forward(self, x):
            n = x.shape[1]
            places = torch.arange(n)[:, None] + torch.arange(n)
            return x[places % x.shape[0]][:, places % n].sum((-1, -2)) * len(str(n))

    monkeypatch.setattr("fairlead.record.session.free_memory", lambda: 512 << 20)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    result = fairlead.export(Grows().eval(), (torch.randn(3, 5),), tmp_path / "m.onnx")
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    most = result.contract.symbols[1]["max"]
    assert most < 100  # where it takes 400 MB, and something else than below
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for length in (1, 9, 10, most):
        x = torch.randn(2, length)
        (got,) = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(got), Grows()(x), rtol=1e-4, atol=1e-4)
