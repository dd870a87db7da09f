"""The same tests with every supported Transformers, each in its folder; what a release lacks is printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from releases import ROOT, install_versions

import fairlead

TESTS = [
    "test_leaves.py",
    "test_caches.py",
    "test_string_type.py",
    "test_observer.py",
    "test_observer_weaknesses.py",
    "test_onnx_exporter.py",
    "test_decompose.py",
    "test_patches.py",
]
LACKS = "from fairlead.tree.caches import describe_support; print(describe_support())"


VERSIONS = list(install_versions().VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
def test_observer_and_caches_with(version, capsys):
    folder = install_versions().install(version)
    package = Path(fairlead.__file__).parent.parent
    environment = {
        **os.environ,
        "PYTHONPATH": f"{folder}{os.pathsep}{package}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment.pop("PYTEST_XDIST_WORKER", None)
    run = {"capture_output": True, "text": True, "env": environment, "cwd": ROOT, "timeout": 550}
    lacks = subprocess.run([sys.executable, "-c", LACKS], check=True, **run).stdout
    assert f"transformers {version}" in lacks
    files = [str(ROOT / "tests" / "python" / name) for name in TESTS]
    command = [sys.executable, "-m", "pytest", "-q", "-rsx", "--tb=short", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, **run)
    summary = [line for line in done.stdout.splitlines() if re.match(r"(SKIPPED|XFAIL|.* passed)", line)]
    with capsys.disabled():
        print("\n" + lacks + "\n".join(f"  {line}" for line in summary))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
