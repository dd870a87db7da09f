"""scripts/install_versions as a module: folders with other releases of the packages that Fairlead works with."""

import importlib.machinery
import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def install_versions():
    path = str(ROOT / "scripts" / "install_versions")
    loader = importlib.machinery.SourceFileLoader("install_versions", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("install_versions", loader))
    loader.exec_module(module)
    return module
