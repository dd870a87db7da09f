"""docs/command_line.md: every command and every snippet in it runs, with a tiny checkpoint in the place of SmolLM2."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import checkpoints
import pytest
from fairlead.checkpoint import tasks

from fairlead import cli

pytest.importorskip("transformers", minversion="5.0")
PAGE = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text()


def blocks(language: str) -> list[str]:
    return [text for kind, text in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.S | re.M) if kind == language]


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    checkpoints.llama(tmp_path / "SmolLM2-135M", checkpoints.TEMPLATE)
    (tmp_path / "models.txt").write_text(blocks("")[0])
    monkeypatch.chdir(tmp_path)
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) > 12
    for line in commands:
        words = shlex.split(line.partition(" > ")[0], comments=True)
        assert words[0] == "fairlead", line
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 0, f"{line}: {capsys.readouterr().err}"
    for block in blocks("python"):
        exec(block, {})


def test_the_page_names_the_tasks_and_exit_codes():
    for name in ("text-generation", "text2text-generation", "image-text-to-text", "feature-extraction"):
        assert name in tasks.names()
        assert f"`{name}`" in PAGE
    for code in ("0", "1", "2", "130"):
        assert f"| {code} |" in PAGE
