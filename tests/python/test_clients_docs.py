"""docs/clients.md: every command and every Python snippet in it runs, with tiny checkpoints for real ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import checkpoints
from test_clients import exported, optimum_environment

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text()


def blocks(language: str) -> list[str]:
    return [text for kind, text in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.S | re.M) if kind == language]


def test_the_page_runs(tmp_path, monkeypatch):
    checkpoints.decoder(tmp_path / "SmolLM2-135M", "LlamaForCausalLM")
    checkpoints.t5(tmp_path / "t5-small")
    checkpoints.whisper(tmp_path / "whisper-tiny")
    checkpoints.bert(tmp_path / "all-MiniLM-L6-v2", head="BertModel")
    monkeypatch.chdir(tmp_path)
    for line in "".join(blocks("sh")).splitlines():
        command, verb, source, out, *more = line.split()
        assert (command, verb) == ("fairlead", "export")
        exported(Path(source), Path(out), *more)
    optimum, others = [], []
    for block in blocks("python"):
        (optimum if "optimum" in block else others).append(block)
    assert (len(optimum), len(others)) == (2, 1)
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(optimum)], capture_output=True, text=True, env=optimum_environment()
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for block in others:
        exec(block, {})
