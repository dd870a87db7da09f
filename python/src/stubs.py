"""Writes the type stubs of the wheel at build time: _core.pyi, and one for each module that imports lazily.

    python stubs.py <folder of the extension> <folder of nanobind's stubgen.py> <the package fairlead> <output folder>

A type checker cannot follow a module's __getattr__. Such a module has its names in a table _LAZY (name: module), those
that have moved in _MOVED, and its stub is made of them, so that there is no second list to keep.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

# Numbers that remember, made by hand in C.
NUMBERS = '''
class SizeInt(int):
    """A size that remembers where it comes from."""

class SizeFloat(float):
    """What is computed from sizes."""
'''
# What nanobind knows of Python's own containers is that they are some: their elements are as open as `object`.
OPEN = {"list": "list[Any]", "dict": "dict[Any, Any]", "set": "set[Any]", "tuple": "tuple[Any, ...]",
        "Callable": "Callable[..., Any]", "object": "Any", "os.PathLike": "os.PathLike[str]"}  # fmt: skip
# The base class of errors: made in C++, given `report` in Python.
ERROR = '''
class FairleadError(RuntimeError):
    """{doc}"""

    details: Sequence[dict[str, Any]]
    facts: dict[str, Any] | None
    cause: str

    def report(self, path: str | PathLike[str]) -> str:
        """Writes a page about this failure: where, why, what to try."""
'''


def open_types(line: str) -> str:
    """A line of a stub with Any for what is left open in a signature."""
    if not line.lstrip().startswith("def "):
        return line
    return re.sub(r"(: |-> |\| |\[)(os\.PathLike|\w+)\b(?!\[)", lambda m: m[1] + OPEN.get(m[2], m[2]), line)


def core_stub(core: ModuleType) -> str:
    """nanobind's stub, and what it leaves out: the version, and exceptions, which say that they live in fairlead."""
    from stubgen import StubGen

    generator = StubGen(core)
    generator.put(core)
    text = "\n".join(open_types(line) for line in generator.get().splitlines())
    text = text.replace("**kwargs)", "**kwargs: Any)")
    docstring, rest = text.split("\n", 1)
    lines = [docstring, "", "from os import PathLike", "from typing import Any", "from collections.abc import Sequence"]
    lines += [rest, NUMBERS, "__version__: str", ERROR.format(doc=inspect.getdoc(core.FairleadError))]
    for name, kind in vars(core).items():
        if inspect.isclass(kind) and issubclass(kind, BaseException) and kind is not core.FairleadError:
            lines.append(f'class {name}({kind.__base__.__name__}):\n    """{inspect.getdoc(kind)}"""\n')
    return "\n".join(lines)


def assigned(tree: ast.Module, name: str, default: object) -> object:
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == name:
            return ast.literal_eval(node.value)
    return default


def lazy_stub(path: Path, package: str) -> str | None:
    """The stub of a module with a table _LAZY, else None."""
    tree = ast.parse(path.read_text())
    table = assigned(tree, "_LAZY", None)
    if table is None:
        return None
    lines = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "fairlead._core":
            lines += [f"from {node.module} import {alias.name} as {alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import | ast.ImportFrom):  # what signatures refer to
            lines.append(ast.unparse(node))
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            node.body = [ast.Expr(ast.Constant(...))]
            lines.append(ast.unparse(node))
    for name in assigned(tree, "_PACKAGES", ()):
        lines.append(f"from {package} import {name} as {name}")
    for name, module in (table | assigned(tree, "_MOVED", {})).items():
        lines.append(f"from {module} import {name} as {name}")
    return "\n".join(lines) + "\n\n__all__: list[str]\n"


def main(extension: str, stubgen: str, package: str, output: str) -> None:
    sys.path[:0] = [extension, stubgen]
    root, target = Path(package), Path(output)
    stubs = {Path("_core.pyi"): core_stub(importlib.import_module("_core"))}
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        package_name = ".".join(["fairlead", *relative.parent.parts])
        text = lazy_stub(path, package_name)
        if text is not None:
            stubs[relative.with_suffix(".pyi")] = text
    for relative, text in stubs.items():
        (target / relative).parent.mkdir(parents=True, exist_ok=True)
        (target / relative).write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
