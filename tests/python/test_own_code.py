"""Code and options of the user's own that are wrong, outputs that nobody reads: one line and the right exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fairlead.runtime.sampling import Chooser, Settings

SCRIPT = """
import sys, torch
class Base(BaseException): pass
class Mute(Exception):
    def __str__(self): raise RuntimeError("no words")
class Odd(torch.nn.Module):
    def forward(self, x): return x * 2
class Stays(Odd):
    def eval(self): raise ValueError("not now")
class Ends(Odd):
    def forward(self, x): sys.exit(0)
class Raises(Odd):
    def forward(self, x): raise Base("of its own")
class Says(Odd):
    def forward(self, x): print("from the model"); return x * 2
class Asks(Odd):
    def __getattr__(self, name): raise RuntimeError(f"no {name}")
x = (torch.rand(3, 4),)
def exits(): sys.exit("done")
def base(): raise Base("a" + chr(10) + "b")
def stops(): raise StopIteration(3)
def mute(): raise Mute
def stays(): return Stays(), x
def ends(): return Ends().eval(), x
def raises(): return Raises().eval(), x
def asks(): return Asks().eval(), x
def says(): print("from the script"); return Says().eval(), x
"""
WRONG = {
    "exits": "[fairlead] Expected code that gives a model and returns, got one that ends Python with sys.exit('done').",
    "base": "[fairlead] Expected code that runs, but it raised Base: a b at {0}:19.",
    "stops": "[export] Expected m.py:stops to run, but it raised StopIteration: 3 at {0}:20.",
    "mute": "[export] Expected m.py:mute to run, but it raised Mute: an error without words at {0}:21.",
    "stays": "[export] Expected eval() of Stays to run, but it raised ValueError: not now at {0}:8.",
    "ends": "[fairlead] Expected code that gives a model and returns, got one that ends Python with sys.exit(0).",
    "raises": "[fairlead] Expected code that runs, but it raised Base: of its own at {0}:12.",
    "asks": "[fairlead] Expected code that runs, but it raised RuntimeError: no _orig_mod at {0}:16.",
}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    (tmp_path / "m.py").write_text(SCRIPT.lstrip())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", WRONG)
def test_code_that_does_not_give_a_model_is_one_line(folder, run, name):
    code, out, err = run("export", f"m.py:{name}", "m.onnx", "--quiet")
    assert (code, out) == (2, "")
    assert err.splitlines() == ["error: " + WRONG[name].format(folder / "m.py")]
    assert not (folder / "m.onnx").exists()


def test_what_a_model_prints_is_no_result(folder, run):
    import json

    code, out, err = run("export", "m.py:says", "m.onnx", "--json", "--quiet")
    assert code == 0, err
    assert json.loads(out)["path"] == "m.onnx"
    assert "from the script\n" in err
    assert "from the model\n" in err


OPTIONS = {
    "a size that is no 64 bits": ["--dim", f"batch={10**30}"],
    "an axis that is no digit": ["--dim", "x.²=b"],
    "sizes that are no 64 bits": ["--inputs", f"{10**30}x4"],
    "types that cannot be drawn": ["--inputs", "quint8[2,4]"],
    "a device that is not there": ["--inputs", "2x4", "--config", "device=cuda:77"],
    "a negative width": ["--inputs", "2x4", "--config", "in_features=-4"],
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_a_wrong_option_is_one_line(folder, run, kind):
    words = OPTIONS[kind]
    source = ["m.py:says"] if words[0] == "--dim" else ["torch.nn:Linear", "--config", "out_features=2"]
    if (len(words) == 2 and words[0] == "--inputs") or ("in_features=-4" not in words and words[0] == "--inputs"):
        source += ["--config", "in_features=4"]
    code, _, err = run("export", *source, "m.onnx", "--quiet", *words)
    lines = [line for line in err.splitlines() if "from the" not in line]
    assert code == 2, err
    assert len(lines) == 1
    assert lines[0].startswith("error: [export] Expected")


@pytest.mark.parametrize("source", [".:c", "..a:c", "this is none:x"])
def test_what_is_no_module_is_one_line(folder, run, source):
    code, _, err = run("export", source, "m.onnx", "--quiet")
    where = source.partition(":")[0]
    assert (code, err) == (
        2, f"error: [export] Expected the name of a module, got '{where}'. For example torch.nn:Linear.\n"
    )  # fmt: skip


def shell(line: str, folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["bash", "-c", line.replace("fairlead", f"{sys.executable} -m fairlead", 1)], cwd=folder, capture_output=True,
        text=True, timeout=120, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip


FULL = "error: [fairlead] Could not write to standard output: No space left on device.\n"
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")


@needs_full
def test_outputs_that_nobody_reads(folder, run):
    assert run("export", "m.py:says", "m.onnx", "--quiet")[0] == 0
    for line, code, err in (
        ("fairlead inspect m.onnx > /dev/full", 1, FULL),
        ("fairlead inspect --help > /dev/full", 1, FULL),
        ("fairlead inspect m.onnx >&-", 0, ""),
        ("fairlead inspect m.onnx <&- >&- 2>&-", 0, ""),
        ("fairlead inspect m.py 2> /dev/full", 1, ""),
        ("fairlead inspect m.onnx | true; exit ${PIPESTATUS[0]}", 0, ""),
    ):
        done = shell(line, folder)
        assert (done.returncode, done.stderr) == (code, err), line


def test_a_temperature_near_zero_is_a_number():
    import numpy as np

    chooser = Chooser(Settings(do_sample=True, temperature=1e-320, seed=0), 1, 1)
    with np.errstate(all="raise"):
        scores = chooser.warped(np.array([[1.0, 3.0, -np.inf, 2.0]], np.float32))
    assert chooser.draw(scores).tolist() == [1]
