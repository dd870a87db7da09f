"""Every write is one step: old or new whatever stops it, and nothing stays behind.

A shim, preloaded into a process that writes, kills it or makes a call fail at every call in turn: opening, writing,
syncing, renaming, removing, making folders, locking. See write_driver.py, commit_driver.py and write_shim.c.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from commit_driver import KINDS

ROOT = Path(__file__).parent
COMPILER = next((found for name in (os.environ.get("CC", "cc"), "gcc", "clang") if (found := shutil.which(name))), None)
needs_shim = pytest.mark.skipif(
    COMPILER is None or not sys.platform.startswith("linux"), reason="the shim needs a C compiler and Linux"
)


def python(*words: str | Path, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *map(str, words)], cwd=ROOT, capture_output=True, text=True, timeout=600,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | env,
    )  # fmt: skip


@pytest.fixture(scope="module")
def shim(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("shim") / "write_shim.so"
    words = ["-std=gnu11", "-shared", "-fPIC", "-O1", "-w", "-o", made, ROOT / "write_shim.c", "-ldl"]
    subprocess.run([COMPILER, *words], check=True)
    return made


@needs_shim
@pytest.mark.parametrize(
    "kinds", [["onnx", "onnx with data", "page"], ["large onnx with data"], ["folder"], ["pt2", "pte"]], ids=",".join
)
def test_a_write_that_is_killed_or_fails_at_any_call_leaves_the_old_or_the_new(tmp_path, shim, kinds):
    if importlib.util.find_spec("executorch") is None:
        kinds = [kind for kind in kinds if kind != "pte"]
    done = python("write_driver.py", shim, tmp_path, *kinds, LD_PRELOAD=str(shim))
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert list(found) == kinds
    for seen in found.values():
        assert seen["calls"] >= 20  # the shim sees what is done
        assert seen["killed"] == seen["calls"]
        assert seen["refused"] >= 8
        assert min(seen["old"], seen["new"]) >= 3


# Kinds that go through every way of putting files into their place; the others with FAIRLEAD_KINDS=all.
COMMITTED = ["several parts", "linked files", "kept weights", "in place, converted", "an adapter of inputs"]


@needs_shim
def test_an_export_of_a_checkpoint_that_dies_or_fails_at_any_call_leaves_the_old_or_the_new(tmp_path, shim):
    """Each call is looked at as a process that dies there leaves it; some fail, and some are exported again."""
    kinds = list(KINDS) if os.environ.get("FAIRLEAD_KINDS") == "all" else COMMITTED
    every = os.environ.get("FAIRLEAD_EVERY", "40")
    done = python("commit_driver.py", shim, tmp_path, every, *kinds, LD_PRELOAD=str(shim))
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = {kind: seen for row in rows for kind, seen in row.items()}
    assert list(found) == kinds
    for seen in found.values():
        assert seen["calls"] >= 100
        assert seen["states"] >= 20
        assert min(seen["old"], seen["new"]) >= 3
        assert seen["refused"] >= 1


def test_a_full_disk_refuses_a_pt2_file_in_one_line(tmp_path):
    """Torch's own writer of archives ends the process there."""
    done = python(
        "-c",
        textwrap.dedent(
            f"""
            import os, resource, signal, torch, fairlead
            os.chdir({str(tmp_path)!r})
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            open("model.pt2", "w").write("older")
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
            for size in (200, 2000):  # the first write fails, or a later one
                try:
                    fairlead.export(torch.nn.Linear(size, size).eval(), (torch.rand(3, size),), "model.pt2")
                except fairlead.WriteError as error:
                    print(error)
            print(os.listdir("."), open("model.pt2").read())
            """
        ),
    )
    refusal = (
        "[export] Could not write 'model.pt2': File too large. Raise the limit on file sizes (ulimit -f), or choose "
        "another disk."
    )
    assert done.stdout.splitlines() == [refusal, refusal, "['model.pt2'] older"], done.stderr[-2000:]


# ---- several at once ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["onnx with data", "folder"])
def test_writers_of_one_name_end_with_one_export_and_readers_find_one(tmp_path, kind):
    """Four processes write two models in turn, for a few seconds; this one reads all the while."""
    done = python(
        "-c",
        textwrap.dedent(
            f"""
            import os, time
            from pathlib import Path
            import write_driver as d
            make, external = d.KINDS[{kind!r}]
            case = make(Path({str(tmp_path)!r}), external)
            case.write("old")
            clean = d.files({str(tmp_path)!r})
            d.computes = d.loaded  # every time anew
            end = time.monotonic() + 3
            children = []
            for k in range(4):
                children.append(os.fork())
                if children[-1] == 0:
                    written = 0
                    while written < 3 or time.monotonic() < end:
                        case.write(("old", "new")[(k + written) % 2])
                        written += 1
                    os._exit(0)
            reads = again = 0
            while reads < 5 or time.monotonic() < end:
                before = os.stat(case.name).st_ino
                try:
                    case.state()
                    reads += 1
                except StopIteration:
                    raise SystemExit("a file that is neither the one model nor the other")
                except Exception:  # it was replaced between two of its files: then, and only then, read it again
                    if os.stat(case.name).st_ino == before:
                        raise
                    again += 1
            assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0] * 4
            case.state()
            case.write("old")
            assert d.files({str(tmp_path)!r}) == clean
            print(reads, again)
            """
        ),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    reads, again = map(int, done.stdout.split())
    assert reads >= 5
    if kind != "folder":  # a single model waits for its readers
        assert again <= reads / 5


# ---- SIGTERM -----------------------------------------------------------------------------------------------

STOPPED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import torch, fairlead
from untouched import torch_state
before = torch_state()
model, x = torch.nn.Linear(8, 8).eval(), torch.rand(3, 8)

def show(what):
    if what.startswith({stage!r}):
        assert {stage!r} != "verifying" or len(os.listdir(".")) == 1  # staged
        os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.mark.parametrize("stage", ["solving", "verifying"])
def test_sigterm_ends_the_process_as_ever_and_nothing_stays(tmp_path, stage):
    script = (
        STOPPED
        + """
try:
    fairlead.export(model, (x,), "model.onnx", progress=show)
except BaseException:
    print("not reached")
"""
    )
    done = subprocess.run(
        [sys.executable, "-c", script.format(tests=str(ROOT), stage=stage)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == -signal.SIGTERM, done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_sigterm_is_left_to_who_handles_it(tmp_path):
    script = (
        STOPPED
        + """
came = []
signal.signal(signal.SIGTERM, lambda *_: came.append(1))
fairlead.export(model, (x,), "model.onnx", progress=show)
assert torch_state() == before
print(came)
"""
    )
    done = subprocess.run(
        [sys.executable, "-c", script.format(tests=str(ROOT), stage="solving")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[1]", done.stderr
    assert os.listdir(tmp_path) == ["model.onnx"]


def test_sigterm_stops_a_command_as_control_c_does(tmp_path):
    (tmp_path / "model.py").write_text(
        "import os, signal, torch\n"
        "class Slow(torch.nn.Linear):\n"
        "    calls = 0\n"
        "    def forward(self, x):\n"
        "        Slow.calls += 1\n"
        "        if Slow.calls == 3: os.kill(os.getpid(), signal.SIGTERM)\n"
        "        return super().forward(x)\n"
        "def make(): return Slow(8, 8).eval(), (torch.rand(3, 8),)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "fairlead", "export", "model.py:make", "model.onnx", "--quiet"], cwd=tmp_path,
        capture_output=True, text=True, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 143, done.stderr
    assert done.stderr.strip().endswith("interrupted, nothing was written")
    assert os.listdir(tmp_path) == ["model.py"]
