"""The examples of the guides run as they are printed; those of the observer are in test_observer_examples.py, those
that generate in the tests of generation."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fairlead

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Example -> (a line that its output has to contain, the package it needs).
EXPECTED = {
    "plain_pytorch": ("images: float32[batch, 3, ", "onnxruntime"),
    "custom_operator": ("Erf in the file: True", "onnxruntime"),
    "executorch_phone": ("allowed 1 to 64", "executorch"),
}


@pytest.mark.parametrize("name", list(EXPECTED))
def test_example(name, tmp_path):
    line, package = EXPECTED[name]
    pytest.importorskip(package)
    path = os.pathsep.join([str(Path(fairlead.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert line in done.stdout
    assert list(tmp_path.iterdir()) == []
