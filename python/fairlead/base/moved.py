"""Names and modules that have moved: they work as before, with a DeprecationWarning that says where they are now."""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from fairlead.base.lazy import load

# Modules that the documentation has named -> where they are. What was internal is gone.
MODULES = {
    "fairlead.caches": "fairlead.tree.caches",
    "fairlead.checkpoint_export": "fairlead.checkpoint.export",
    "fairlead.executorch": "fairlead.targets.executorch",
    "fairlead.leaves": "fairlead.tree.leaves",
    "fairlead.pipeline": "fairlead.api",
    "fairlead.structure_text": "fairlead.tree.structure_text",
}


def moved(name: str, home: str) -> Any:
    """fairlead.`name`, for a caller's caller that finds it in `home`."""
    warnings.warn(f"fairlead.{name} has moved: from {home} import {name}", DeprecationWarning, stacklevel=3)
    return load("fairlead", name, home)


def home_of(module: str) -> str | None:
    """Where a module is now, and those below it."""
    for old, new in MODULES.items():
        if module == old or module.startswith(f"{old}."):
            return new + module.removeprefix(old)
    return None


class MovedModules(MetaPathFinder, Loader):
    """The module of the new name under the old one: one module, so that it has one state."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname.startswith("fairlead.") and home_of(fullname) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        home = home_of(spec.name) or spec.name
        warnings.warn(f"{spec.name} has moved: import {home}", DeprecationWarning, stacklevel=2)
        module = importlib.import_module(home)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It ran under its own name; importlib has given it the spec of the old one."""
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state


def find_moved_modules() -> None:
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())
