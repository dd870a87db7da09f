"""A full disk, Ctrl-C at every stage, and packages that are not installed: each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from untouched import Fn, refusal

ROOT = Path(__file__).parent

COMMON = """
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
sys.path.insert(0, {tests!r})
import torch, fairlead
from untouched import files, torch_state

class Wide(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(1024, 1024)
    def forward(self, x):
        return self.linear(x)

before = torch_state()
model, x = Wide().eval(), torch.rand(3, 1024)
"""


def child(script: str, folder: Path, check: bool = True) -> subprocess.CompletedProcess:
    """Runs a script after COMMON, in the folder; what it prints is the answer."""
    text = COMMON.format(tests=str(ROOT)) + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert not check or done.returncode == 0, done.stderr
    return done


# ---- a full disk -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("external", ["never", "always"])
def test_a_full_disk_is_one_line_and_leaves_the_older_file(tmp_path, external):
    (tmp_path / "model.onnx").write_bytes(b"older")
    (tmp_path / "model.onnx.data").write_bytes(b"older data")
    done = child(
        f"""
        import resource
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            fairlead.export(model, (x,), "model.onnx", external_data={external!r})
        except fairlead.WriteError as error:
            print(error)
        assert torch_state() == before
        """,
        tmp_path,
    )
    assert done.stdout.splitlines() == [
        "[write_model] Could not write 'model.onnx': File too large. "
        "Raise the limit on file sizes (ulimit -f), or choose another disk."
    ]
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {
        "model.onnx": b"older",
        "model.onnx.data": b"older data",
    }


# ---- Ctrl-C ----------------------------------------------------------------------------------------------


def test_an_interrupt_inside_the_model_passes_through(tmp_path):
    calls = []

    def interrupted(x):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return x * 2

    assert refusal(KeyboardInterrupt, Fn(interrupted), (torch.rand(3, 4),), tmp_path) == ""
    assert len(calls) == 3


def test_control_c_while_recording_leaves_nothing_behind(tmp_path):
    done = child(
        """
        class Slow(Wide):
            def forward(self, x):
                if os.path.exists("started"):
                    os.kill(os.getpid(), signal.SIGINT)   # arrives between two operators
                for k in range(100):
                    x = self.linear(x)
                open("started", "w").close()
                return x
        try:
            fairlead.export(Slow().eval(), (x,), "model.onnx")
        except KeyboardInterrupt:
            print("interrupted")
        assert torch_state() == before
        """,
        tmp_path,
    )
    assert done.stdout.split() == ["interrupted"]
    assert [p.name for p in tmp_path.iterdir()] == ["started"]


@pytest.mark.parametrize("stage", ["writing", "verifying"])
def test_control_c_while_writing_or_verifying_leaves_nothing_behind(tmp_path, stage):
    # The signal comes from a thread as soon as the stage has begun: while the core writes with the interpreter's
    # lock released, or while ONNX Runtime loads and runs.
    done = child(
        f"""
        class Large(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.ModuleList([torch.nn.Linear(1024, 1024) for _ in range(40)])
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x

        begun = threading.Event()
        def watch():
            begun.wait()
            if {stage!r} == "writing":
                while not any(name.startswith(".model.onnx") for name in os.listdir(".")):
                    time.sleep(0.0005)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=watch, daemon=True).start()
        try:
            fairlead.export(
                Large().eval(), (x,), "model.onnx",
                progress=lambda what: begun.set() if what.startswith({stage!r}) else None,
            )
            time.sleep(1)
        except KeyboardInterrupt:
            print("interrupted")
        assert torch_state() == before
        """,
        tmp_path,
    )
    assert done.stdout.split() == ["interrupted"]
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_that_nobody_catches_ends_the_process_and_leaves_nothing_behind(tmp_path):
    done = child(
        """
        def show(what):
            if what.startswith("verifying"):
                raise KeyboardInterrupt
        fairlead.export(model, (x,), "model.onnx", progress=show)
        """,
        tmp_path,
        check=False,
    )
    assert done.returncode == -signal.SIGINT
    assert list(tmp_path.iterdir()) == []


# ---- what is not installed ---------------------------------------------------------------------------------

BLOCK = """
class Hidden:  # as where a package is not installed: its finder finds nothing
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        hidden = name.partition(".")[0] in {names!r}
        return None if hidden else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)
sys.meta_path[:] = [Hidden(finder) for finder in sys.meta_path]
for name in [n for n in sys.modules if n.partition(".")[0] in {names!r}]:
    del sys.modules[name]
"""


def without(names: list[str], script: str, folder: Path) -> str:
    return child(BLOCK.format(names=names) + textwrap.dedent(script), folder).stdout.strip()


def test_without_onnx_runtime_the_check_says_what_to_install_before_any_work(tmp_path):
    out = without(
        ["onnxruntime"],
        """
        calls = []
        model.register_forward_hook(lambda *_: calls.append(1))
        try:
            fairlead.export(model, (x,), "model.onnx")
        except fairlead.InvalidInput as error:
            print(error, len(calls))
        assert not os.listdir(".")
        result = fairlead.export(model, (x,), "model.onnx", verify=False)
        print(str(result.contract).splitlines()[-1])
        """,
        tmp_path,
    )
    assert out.splitlines() == [
        "[export] Expected ONNX Runtime for verification, but it cannot be imported (No module named 'onnxruntime'). "
        "Install it with pip install onnxruntime, or pass verify=False. 0",
        "Checked: not verified",
    ]


def test_without_transformers_and_onnx_a_plain_model_exports(tmp_path):
    out = without(
        ["transformers", "onnx"],
        """
        print(len(fairlead.export(model, (x,), "model.onnx").discrepancies))
        """,
        tmp_path,
    )
    assert int(out) >= 4


def test_without_torch_export_says_what_to_install(tmp_path):
    script = BLOCK.format(names=["torch"]) + textwrap.dedent(
        """
        import fairlead
        print(fairlead.__version__)
        try:
            fairlead.export
        except ImportError as error:
            print(error)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", "import sys\n" + script], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1] == (
        "[fairlead] Expected PyTorch for fairlead.export, but it cannot be imported (No module named 'torch'). "
        "Install it with pip install torch."
    )
