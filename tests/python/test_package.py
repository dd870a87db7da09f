"""The package as it is installed: what importing it needs, and that its parts are of one version."""

import subprocess
import sys
from importlib import metadata

import fairlead._core
import pytest

import fairlead


def test_package_extension_and_metadata_have_one_version():
    assert fairlead.__version__ == fairlead._core.__version__ == metadata.version("fairlead")


def test_importing_needs_only_numpy():
    code = "import sys, fairlead; print(*{'torch', 'transformers', 'onnx', 'onnxruntime'} & {*sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'fairlead' has no attribute 'exprot'"):
        fairlead.exprot  # noqa: B018
