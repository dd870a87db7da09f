"""Shared set-up: one thread per test process, because the processes are what runs in parallel; the command line."""

import os
import sys

import pytest

# Before torch or onnxruntime is imported anywhere.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture
def run(monkeypatch, capsys):
    """The command line in this process: (exit code, stdout, stderr)."""
    from fairlead import cli

    def run(*words) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fairlead", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run
