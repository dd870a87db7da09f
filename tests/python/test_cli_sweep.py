"""`fairlead sweep`: a row per model whatever it does, going on after an interruption, on one machine and on Ray."""

from __future__ import annotations

import html.parser
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import checkpoints
import pytest
from fairlead.cli.sweep import run as sweep

pytest.importorskip("transformers", minversion="5.0")

SCRIPT = """
import os, time
import torch
def good():
    return torch.nn.Linear(4, 2), (torch.rand(3, 4),)
def dies():
    os.kill(os.getpid(), 11)
def hangs():
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (tmp_path / "m.py").write_text(SCRIPT)
    return tmp_path


def rows_of(out: Path) -> dict[str, dict]:
    return {row["name"]: row for row in map(json.loads, (out / "results.jsonl").read_text().splitlines())}


def test_every_model_is_a_row_whatever_it_does(folder, run):
    checkpoints.bert(folder / "bert")
    (folder / "list.txt").write_text(
        "# three kinds\nbert - float16\nm.py:dies   # crashes\n\nnowhere\nbert - float16\n"
    )
    code, out, err = run("sweep", "list.txt", "-o", "out", "-j", 2)
    assert code == 1
    rows = rows_of(folder / "out")
    assert {name: row["status"] for name, row in rows.items()} == {
        "bert-float16": "ok", "m.py_dies": "crashed", "nowhere": "refused",
    }  # fmt: skip
    good = rows["bert-float16"]
    assert (good["task"], good["dtype"], good["parts"]) == ("text-classification", "float16", ["model.onnx"])
    assert good["worst_difference"] < 2e-2
    assert rows["m.py_dies"]["error"] == "SIGSEGV while loading m.py:dies"
    assert "got 'nowhere', and there is no such folder or file." in rows["nowhere"]["error"]
    assert (folder / "out" / "bert-float16" / "model.onnx").exists()
    assert out == "1 of 3 models exported and checked: out/index.html\n"
    assert "/3] bert-float16: " in err
    assert "\x1b[" not in err

    page = (folder / "out" / "index.html").read_text()
    html.parser.HTMLParser().feed(page)
    assert "1 of 3 models exported and checked." in page
    assert page.index("nowhere") < page.index("bert-float16"), "failures first"
    assert "://" not in page, "no network"
    for name in ("bert-float16", "nowhere"):
        assert f'href="{name}/report.html"' in page
        assert (folder / "out" / name / "report.html").stat().st_size > 1000


ENDS = """
import os, subprocess, sys
import torch
def make():
    return torch.nn.Linear(4, 2), (torch.rand(3, 4),)
def leaves():
    os._exit(0)
def exits():
    sys.exit(0)
def by_a_number():
    os.kill(os.getpid(), 40)
def prints():
    print("a result?")
    os.write(2, b"\\xff\\xfe" * 9000)
    return make()
def starts():  # holds the pipe of what is said
    child = subprocess.Popen(["sleep", "300"], start_new_session=True)
    open("started", "w").write(str(child.pid))
    return make()
"""


def test_what_ends_prints_or_starts_others_is_a_row(folder, run):
    (folder / "m.py").write_text(ENDS)
    names = ["leaves", "exits", "by_a_number", "prints", "starts"]
    (folder / "list.txt").write_text("".join(f"m.py:{name}\n" for name in names))
    start = time.monotonic()
    code, _, err = run("sweep", "list.txt", "-o", "out", "-j", 2)
    assert code == 1, err
    rows = rows_of(folder / "out")
    assert {name: rows[f"m.py_{name}"]["status"] for name in names} == {
        "leaves": "crashed", "exits": "refused", "by_a_number": "crashed", "prints": "ok", "starts": "ok",
    }  # fmt: skip
    assert rows["m.py_leaves"]["error"] == "it ended without a result while loading m.py:leaves"
    assert "got one that ends Python with sys.exit(0)" in rows["m.py_exits"]["error"]
    assert rows["m.py_by_a_number"]["error"].startswith("signal 40 while")
    assert time.monotonic() - start < 200
    os.kill(int((folder / "started").read_text()), signal.SIGKILL)


def test_it_goes_on_where_it_stopped(folder, run):
    (folder / "list.txt").write_text("m.py:good\nnowhere\n")
    assert run("sweep", "list.txt", "-o", "out")[0] == 1
    path = folder / "out" / "results.jsonl"
    first = path.read_text().splitlines()
    assert [json.loads(line)["status"] for line in first] == ["ok", "refused"]

    # Cut off in the middle of the second row, as a full disk or a power cut leaves it.
    path.write_text(first[0] + "\n" + first[1][:20])
    code, _, err = run("sweep", "list.txt", "-o", "out")
    assert code == 1
    assert "going on, 1 of 2 are done" in err
    assert path.read_text().splitlines()[0] == first[0], "what was done is not done again"
    assert [json.loads(line)["status"] for line in path.read_text().splitlines()] == ["ok", "refused"]

    (folder / "nowhere").mkdir()
    assert run("sweep", "list.txt", "-o", "out")[0] == 1, "a row stays"
    code, out, _ = run("sweep", "list.txt", "-o", "out", "--again", "failed", "--json")
    assert code == 1
    assert "Expected a config.json" in json.loads(out)["rows"][1]["error"]
    assert len(path.read_text().splitlines()) == 3


def test_what_takes_too_long_is_stopped(folder):
    job = sweep.Job("m.py:hangs", None, None, "hangs")
    start = time.perf_counter()
    row = sweep.run_job(job, str(folder), 3, str(folder))
    assert row["status"] == "timeout"
    assert row["error"].startswith("not done after 3 s, while ")
    assert time.perf_counter() - start < 60


def test_an_interruption_leaves_no_process_and_says_how_to_go_on(folder):
    (folder / "list.txt").write_text("nowhere\nm.py:hangs\n")
    words = [sys.executable, "-c", UNIGNORED, "sweep", "list.txt", "-o", "out"]
    child = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    path = folder / "out" / "results.jsonl"
    until(lambda: path.exists() and path.read_text().count("\n") == 1)
    until(lambda: exporting(child.pid))
    grandchildren = exporting(child.pid)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=120)
    assert child.returncode == 130
    assert "error: interrupted with 1 of 2 models done. Run the same command to go on" in err
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in grandchildren))
    assert "1 not run yet" in (folder / "out" / "index.html").read_text()


# A shell that starts a command in the background makes it ignore Ctrl-C; Python then keeps it so.
UNIGNORED = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from fairlead.cli import main; main()"
)


def until(true, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def exporting(parent: int) -> list[int]:
    """Processes that `parent` started and that hang."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                words = Path(f"/proc/{entry}/cmdline").read_bytes()
            except OSError:
                continue
            if int(stat[1]) == parent and b"m.py:hangs" in words and stat[0] != "Z":
                found.append(int(entry))
    return found


def test_ray_spreads_the_models_over_two_workers(folder, run):
    pytest.importorskip("ray")
    (folder / "list.txt").write_text("m.py:good\nm.py:dies\nnowhere\n")
    code, out, err = run("sweep", "list.txt", "-o", "out", "-j", 2, "--ray", "--json")
    assert code == 1, err
    rows = {row["name"]: row["status"] for row in json.loads(out)["rows"]}
    assert rows == {"m.py_good": "ok", "m.py_dies": "crashed", "nowhere": "refused"}
    assert set(rows_of(folder / "out")) == set(rows)


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("# nothing\n", [], "Expected at least one source in 'list.txt', got none."),
        ("a b c d\n", [], "Expected SOURCE, task and dtype in line 1 of 'list.txt', got 4 columns."),
        ("- fill-mask\n", [], "Expected a SOURCE in line 1 of 'list.txt', got -."),
        ("a\n", ["-j", "0"], "Invalid value for '-j'"),
        ("a\n", ["-o", "list.txt"], "Could not write 'list.txt/results.jsonl'"),
    ],
)
def test_wrong_lists_are_one_line(folder, run, text, words, message):
    (folder / "list.txt").write_text(text)
    code, _, err = run("sweep", "list.txt", *words)
    assert code in (1, 2)
    assert message in err
    assert "Traceback" not in err


def test_folders_have_different_names():
    taken: set[str] = set()
    names = [sweep.folder_name(s, None, None, taken) for s in ("a/model", "b/model/", "package:x", "m.py:make", "...")]
    assert names == ["model", "model-2", "package_x", "m.py_make", "model-3"]


def test_results_of_strangers_are_no_results(run, tmp_path):
    """What does not have the form of a row is taken away, and is in no page."""
    (tmp_path / "list.txt").write_text("/nothing/at/all\n")
    row = {"source": "/nothing/at/all", "name": "all", "status": "<script>", "error": "", "seconds": 1}
    for bad in (row, row | {"status": "ok", "seconds": "x"}, {"source": [1]}, row | {"name": "../../x"}):
        (tmp_path / "out").mkdir(exist_ok=True)
        (tmp_path / "out" / "results.jsonl").write_text(json.dumps(bad) + "\n")
        code, _, err = run("sweep", tmp_path / "list.txt", "-o", tmp_path / "out")
        assert code == 1
        assert "refused" in err
        assert "<script>" not in (tmp_path / "out" / "index.html").read_text().partition("<tbody>")[2]
