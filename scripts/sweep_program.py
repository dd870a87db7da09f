"""The program of the sweep and the checkout that it runs on, for the scripts that ask them."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings


def load(path: str):
    """The sweep as a module, from its file."""
    spec = importlib.util.spec_from_file_location("sweep", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def use_checkout(path: str) -> None:
    """Makes the tests of the checkout importable, quietly and without a hub."""
    warnings.filterwarnings("ignore")
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
    sys.path.insert(0, path)
    import tests.causal_lm_tester
    import tests.generation.test_utils
    import tests.test_modeling_common  # noqa: F401
