"""The same tokens as model.generate with older releases of Transformers, each in its folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from releases import ROOT, install_versions

import fairlead

# Release -> the models that it generates with here. The others need what the release lacks: caches that grow
# (Gemma 3 and BART in 4.51), experts without a loop over those that were hit (Mixtral before 5.0), images
# that are encoded before the first step (vision-language models before 5.22), padding that is masked in a batch
# of one too (Mamba2 up to 5.0 does not: the export is refused, because the model branches there).
MODELS = {
    "4.51.3": ["llama", "qwen3", "t5", "whisper"],
    "5.0.0": ["llama", "gemma3_text", "qwen3", "mixtral", "t5", "bart", "whisper"],
}


@pytest.mark.parametrize("version", MODELS)
def test_generation_with(version):
    path = os.pathsep.join([str(install_versions().install(version)), str(Path(fairlead.__file__).parent.parent)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    file = ROOT / "tests" / "python" / "test_generation.py"
    tests = [f"{file}::test_tokens_equal_those_of_generate[{name}]" for name in MODELS[version]]
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=550)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{len(MODELS[version])} passed" in done.stdout
