"""The observer's examples run as they are printed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fairlead

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Example -> a line that its output has to contain.
EXPECTED = {
    "observe_add": "arguments  (T1s2x6,T1s1x6)",
    "observe_llm": "call 3: SUCCESS=True",
    "observe_multimodal": "attention_mask.1 == input_ids.1 + past_key_values.0.key.2",
    "observe_gemma3": "pixel_values:T1s0x3x28x28",
    "observe_whisper": "decoder 8 calls",
}


@pytest.mark.parametrize("name", list(EXPECTED))
def test_example(name):
    path = os.pathsep.join([str(Path(fairlead.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert EXPECTED[name] in done.stdout


def test_every_example_is_run():
    assert {path.stem for path in EXAMPLES.glob("observe_*.py")} == set(EXPECTED)
