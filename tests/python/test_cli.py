"""The command line, mostly as users run it: `python -m fairlead`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead import cli

SCRIPT = """
import torch

class Tagger(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(4, width)
    def forward(self, x):
        return {"tags": self.linear(x)}

def make(width=6):
    return Tagger(width), {"x": torch.rand(3, 4)}

def branches():
    class Branches(torch.nn.Module):
        def forward(self, x):
            return x * 2 if x.sum() > 0 else x
    return Branches(), (torch.rand(3, 4),)

def fails():
    raise ValueError("no weights here")

def alone():
    return Tagger(2)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    (tmp_path / "model.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def process(*words: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "fairlead", *words], capture_output=True, text=True, timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1", **environment},
    )  # fmt: skip


@pytest.fixture
def here(monkeypatch, capsys):
    """The same in this process: (exit code, stdout, stderr)."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fairlead", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run


# ---- as users run it -------------------------------------------------------------------------------------


def test_demo_exports_end_to_end_and_says_where(folder):
    done = process("demo", "--tiny")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Llama, 2 layers, ")
    for part in ("Contract\n", "attention_mask: int64[batch, sequence + past]", "Times\n", "  verify ", "  total ",
                 "Differences from PyTorch\n  the example ", "Written demo.onnx: ",
                 "fairlead inspect demo.onnx"):  # fmt: skip
        assert part in done.stdout, done.stdout
    assert "\x1b[" not in done.stdout + done.stderr, "colour only on a terminal"
    assert "fairlead: importing PyTorch and Transformers" in done.stderr
    assert (folder / "demo.onnx").stat().st_size > 0


def test_export_of_a_script_and_inspect_of_what_it_wrote(folder):
    done = process(
        "export", "model.py:make", "out.onnx", "--config", "width=5", "--dim", "x.0=rows", "--json", "--quiet"
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    result = json.loads(done.stdout)
    assert result["path"] == "out.onnx"
    assert result["contract"]["inputs"] == [{"name": "x", "dtype": "float32", "shape": ["rows", "4"]}]
    assert result["contract"]["outputs"] == [{"name": "tags", "dtype": "float32", "shape": ["rows", "5"]}]
    assert all(row["ok"] for row in result["discrepancies"])
    assert set(result["timings"]) == {"probe", "solve", "lower", "write", "verify", "total"}

    shown = process("inspect", "out.onnx")
    assert shown.returncode == 0, shown.stderr
    for part in ("written by fairlead", "x  float32[rows, 4]", "tags  float32[rows, 5]", "MatMul",
                 "Symbols\n  rows  axis 0 of x\n",
                 "Checked: in ONNX Runtime at the example, with 5 other values and at rows=1; "):  # fmt: skip
        assert part in shown.stdout, shown.stdout


def test_without_click_the_command_line_says_what_to_install(folder):
    block = "import sys; sys.modules['click'] = None; from fairlead.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("fairlead: the command line needs click (")
    assert done.stderr.strip().endswith("): pip install click rich")


def test_without_torch_inspect_works_and_export_says_what_to_install(folder, here):
    assert here("export", "model.py:make", "out.onnx", "--quiet")[0] == 0
    block = "import sys; sys.modules['torch'] = None; from fairlead.cli import main; main()"

    def run(*words):
        return subprocess.run([sys.executable, "-c", block, *words], capture_output=True, text=True, timeout=60)

    assert run("inspect", "out.onnx").returncode == 0
    done = run("export", "model.py:make", "other.onnx")
    assert done.returncode == 2
    assert "error: " in done.stderr
    assert "torch" in done.stderr
    assert "Traceback" not in done.stderr
    done = run("doctor", "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["can_export"] is False
    assert report["packages"][0]["advice"] == "pip install torch"


def test_a_terminal_gets_colour_unless_no_color_is_set(folder):
    pytest.importorskip("rich")
    import pty

    def on_a_terminal(**environment: str) -> str:
        words = [sys.executable, "-m", "fairlead", "doctor"]
        env = os.environ | {"TERM": "xterm", **environment}
        ours, theirs = pty.openpty()
        child = subprocess.Popen(words, stdout=theirs, stderr=theirs, env=env)
        os.close(theirs)
        text = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break
            if not piece:
                break
            text += piece
        os.close(ours)
        assert child.wait(60) == 0
        return text.decode()

    assert "\x1b[1m" in on_a_terminal()
    assert "\x1b[1m" not in on_a_terminal(NO_COLOR="1")


# ---- usage and failures ------------------------------------------------------------------------------------


def test_help_has_examples_for_every_command(here):
    code, out, _ = here("--help")
    assert code == 0
    assert "Exit codes: 0 done, 1 the model cannot be exported or differs, 2 usage" in out
    for command in ("export", "inspect", "doctor", "demo", "generate", "verify", "report", "sweep", "completion"):
        assert command in out
        code, text, _ = here(command, "--help")
        assert code == 0
        assert f"fairlead {command}" in text.split("Example", 1)[1]
    assert here("--version")[1].startswith("fairlead, version ")


def test_export_of_a_class(folder, here):
    words = ["export", "torch.nn:Linear", "out.onnx", "--config", "in_features=4", "--config", "out_features=2"]
    code, out, err = here(
        *words, "--inputs", "input=float32[3,4]", "--no-verify", "--external-data", "always", "--opset", "18"
    )
    assert code == 0, err
    assert "float32[batch, 4]" in out
    assert "Checked: not verified" in out
    assert "Written out.onnx: 2 nodes, opset 18" in out


def test_an_axis_can_be_fixed(folder, here):
    code, out, _ = here("export", "model.py:make", "out.onnx", "--dim", "x.0=3", "--quiet")
    assert code == 0
    assert "x: float32[3, 4]" in out


def test_a_model_that_cannot_be_exported_exits_with_1(folder, here):
    code, out, err = here("export", "model.py:branches", "out.onnx", "--strict", "--quiet")
    assert (code, out) == (1, "")
    assert err.startswith("error: [export] Expected no assumption about values because strict=True, got 1: ")
    assert "model.py:17)" in err
    assert not (folder / "out.onnx").exists()


# ---- the report ------------------------------------------------------------------------------------------


def test_a_failed_export_leaves_a_report_that_says_why(folder, here):
    code, _, err = here("export", "model.py:branches", "out.onnx", "--strict", "--quiet")
    assert code == 1
    assert err.splitlines()[1] == "Where, why and what to try: report.html"
    assert "return x * 2 if x.sum() &gt; 0 else x" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_failed_export_leaves_nothing_where_no_report_is_wanted_or_the_request_was_wrong(folder, here):
    code, _, err = here("export", "model.py:branches", "out.onnx", "--strict", "--quiet", "--no-report")
    assert (code, len(err.splitlines())) == (1, 1)
    assert here("export", "model.py:make", "out.onnx", "--opset", "3", "--quiet")[0] == 2
    assert here("export", "model.py:make", "none/out.onnx", "--quiet")[0] == 1
    assert sorted(p.name for p in folder.iterdir() if p.name != "__pycache__") == ["model.py"]


def test_export_and_report_from_the_files_alone(folder, here):
    code, _, err = here("export", "model.py:make", "out.onnx", "--quiet", "--report")
    assert code == 0
    assert err == "fairlead: report: report.html\n"
    (folder / "report.html").unlink()
    assert here("report", "out.onnx") == (0, "Written report.html\n", "")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Tagger" in page
    assert "Time per stage: probe" in page
    assert here("report", ".", "-o", "page.html")[:2] == (0, "Written page.html\n")


def test_report_says_what_is_wrong_with_its_path(folder, here):
    code, _, err = here("report", ".")
    assert (code, err) == (2, "error: [report] Expected a folder with .onnx files, got none in '.'. "
                              "Give a file or another folder.\n")  # fmt: skip
    (folder / "bad.onnx").write_bytes(b"no model")
    code, _, err = here("report", "bad.onnx")
    assert code == 1
    assert err.startswith("error: [read_model_summary] Could not read 'bad.onnx': it is not an ONNX model")


def test_ctrl_c_exits_with_130(folder, here, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("fairlead.cli.model_source.load", interrupted)
    code, _, err = here("export", "model.py:make", "out.onnx", "--quiet")
    assert (code, err.strip()) == (130, "error: interrupted, nothing was written")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["export", "model.py"], "Expected MODULE:CLASS or SCRIPT.py:FUNCTION, got 'model.py'."),
        (["export", "none.py:make"], "Expected a Python file, got 'none.py', which does not exist."),
        (["export", "no_such:Model"], "Expected an importable module, got 'no_such' (No module named 'no_such')."),
        (["export", "model.py:mak"], "Expected a class or function mak in model.py, got none. It has: Tagger, make, "),
        (["export", "model.py:fails"], "Expected model.py:fails to run, but it raised ValueError: no weights here at"),
        (["export", "model.py:alone"], "Expected model.py:alone to return (model, inputs), got Tagger."),
        (["export", "model.py:Tagger", "--config", "width"], "Expected --config KEY=VALUE, got 'width'."),
        (["export", "model.py:Tagger", "--config", "width=2"], "Expected --inputs for a class, got none."),
        (
            ["export", "model.py:Tagger", "--config", "wide=2", "--inputs", "3x4"],
            "Expected --config that Tagger accepts",
        ),
        (
            ["export", "model.py:Tagger", "--config", "width=2", "--inputs", "x[a]"],
            "Expected --inputs as NAME=DTYPE[SIZES]",
        ),
        (["export", "model.py:Tagger", "--config", "width=2", "--inputs", "3x4", "--inputs", "x=3x4"], "got both."),
        (
            ["export", "model.py:Tagger", "--config", "width=2", "--inputs", "3x5"],
            "Expected an example call that the model",
        ),
        (
            ["export", "model.py:make", "--dim", "y.0=batch"],
            "Expected --dim INPUT.AXIS=NAME with one of the inputs x, got",
        ),
        (["export", "model.py:make", "--opset", "7"], "Expected an opset from 18 to"),
        (["export", "model.py:make", "--opset", "new"], "'new' is not a valid integer"),
        (["export"], "Missing argument 'SOURCE'"),
        (["inspect", "none.onnx"], "Path 'none.onnx' does not exist."),
        (["inspect", "."], "Expected .onnx files in '.', got none."),
        (["explain"], "No such command 'explain'."),
    ],
)
def test_usage_errors_exit_with_2_and_one_line(folder, here, words, text):
    code, out, err = here(*words)
    assert code == 2
    assert out == ""
    assert text in err
    assert not (folder / "model.onnx").exists()


def test_inspect_of_what_is_no_model_exits_with_1(folder, here):
    (folder / "model.onnx").write_bytes(b"\xff\xfe nothing")
    code, _, err = here("inspect", "model.onnx")
    assert code == 1
    assert err.startswith("error: [")
    assert err.count("\n") == 1


def test_doctor_says_what_works(here):
    code, out, _ = here("doctor")
    assert code == 0
    assert "Export: yes. Check in ONNX Runtime: yes." in out
    assert "ATen operators can be written to ONNX" in out
