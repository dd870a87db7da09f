"""Wrong files end every command in one line: a part of what try_files.py tries."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PARTS = 10  # each is every tenth file: all kinds are among them


def test_wrong_files_are_one_line_each():
    part = os.environ.get("FAIRLEAD_PART", f"3/{PARTS}")
    tried("--part", part)


def test_calls_that_are_wrong_in_other_ways():
    tried("--calls", "--part", os.environ.get("FAIRLEAD_PART", f"3/{PARTS}"))


def test_wrong_files_that_found_something():
    tried("--found")


def tried(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "try_files.py"), *words], capture_output=True, text=True, timeout=1500
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " 0 wrong" in done.stdout.splitlines()[-1]
