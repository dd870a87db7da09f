"""Checks what the compiler does not: who may include what, and that no file is left out of a list.

1. The core includes no Python, no torch and no bindings.
2. protozero is included in fairlead/onnx and in the tests alone.
3. A folder of the core includes itself and the folders before it in ORDER.
4. fairlead/fairlead.h is the list of public headers: each once, in that order, including no private one.
5. Every source file is named in the CMakeLists.txt of its folder, or of the one above it.
6. A folder or module of the Python package imports itself and what stands before it in PYTHON_ORDER; within functions
   too, but for UPWARD. What is at the root of the package is a dozen files at most.
7. The runtime imports no torch.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ORDER = [
    "base",
    "files",
    "tree",
    "symbol",
    "graph",
    "aten",
    "observe",
    "probe",
    "trace",
    "experiment",
    "passes",
    "source",
    "onnx",
    "pt2",
    "executorch",
    "verify",
    "report",
]
PACKAGE = ROOT / "python/fairlead"
# Folders of the package and modules at its root. Before all stands the extension, _core.
PYTHON_ORDER = [
    "base",
    "contract",
    "runtime",
    "lowerings",
    "tree",
    "patches",
    "record",
    "verify",
    "observer",
    "report",
    "options",
    "experiment",
    "programs",
    "targets",
    "api",
    "exporters",
    "generation",
    "checkpoint",
    "cli",
]
# Imports within functions that go up, and why.
UPWARD = {
    ("exporters/base.py", "generation"): "a method of every exporter, done by parts that are exporters' work each",
}
NO_TORCH = ["contract", "runtime"]
MOST_AT_THE_ROOT = 12
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
UMBRELLA = Path("fairlead/fairlead.h")


def includes(path: Path) -> list[str]:
    return INCLUDE.findall((ROOT / path).read_text())


def sources(folder: str) -> list[Path]:
    return sorted(p.relative_to(ROOT) for p in (ROOT / folder).rglob("*") if p.suffix in {".h", ".cpp"})


def layer(path: str) -> int | None:
    """Where in ORDER a path such as fairlead/graph/graph.h stands; None for fairlead/fairlead.h."""
    parts = path.split("/")
    if len(parts) < 3:
        return None
    if parts[1] not in ORDER:
        raise SystemExit(f"{path}: folder {parts[1]!r} is not in ORDER of scripts/check_layers.py")
    return ORDER.index(parts[1])


def check_core(errors: list[str]) -> None:
    for path in sources("fairlead"):
        own = layer(str(path))
        for name in includes(path):
            first = name.split("/")[0]
            if first in {"Python.h", "torch", "ATen", "c10", "nanobind", "pybind11"}:
                errors.append(f"{path}: includes {name}; the core knows no Python and no torch")
            if first == "protozero" and not str(path).startswith("fairlead/onnx/"):
                errors.append(f"{path}: includes {name}; protozero belongs to fairlead/onnx")
            if name == "simdjson.h" and not str(path).startswith(("fairlead/pt2/", "fairlead/experiment/transcript")):
                errors.append(f"{path}: includes {name}; simdjson belongs to fairlead/pt2 and to transcripts")
            if first == "fairlead" and own is not None:
                other = layer(name)
                if other is None or other > own:
                    errors.append(f"{path}: includes {name}, which stands above {ORDER[own]}")


def check_umbrella(errors: list[str]) -> None:
    listed = [name for name in includes(UMBRELLA) if name.startswith("fairlead/")]
    errors += [f"{UMBRELLA}: lists {name} twice" for name in sorted(set(listed)) if listed.count(name) > 1]
    layers = [layer(name) for name in listed]
    if layers != sorted(layers):
        errors.append(f"{UMBRELLA}: not in the order {' '.join(ORDER)}")
    for header in listed:
        for name in includes(Path(header)):
            if name.startswith("fairlead/") and name not in listed:
                errors.append(f"{header}: is public and includes {name}, which {UMBRELLA} does not list")


def check_lists(errors: list[str]) -> None:
    for folder in ["fairlead", "python/src", "tests/cpp"]:
        for path in sources(folder):
            if path.suffix != ".cpp":
                continue
            words = []
            for above in list(path.parents)[:2]:
                cmake = ROOT / above / "CMakeLists.txt"
                if cmake.exists() and str(path.relative_to(above)) in re.split(r"[\s()]+", cmake.read_text()):
                    break
                words.append(f"{above}/CMakeLists.txt")
            else:
                errors.append(f"{path}: named in neither {' nor '.join(words)}")


def imports(tree: ast.AST, inside: bool = False) -> Iterator[tuple[str, bool]]:
    """Modules that are imported, and whether within a function. `if TYPE_CHECKING:` imports nothing."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            below = node.module == "fairlead"  # from fairlead import cli
            yield from ((f"fairlead.{a.name}" if below else node.module, inside) for a in node.names)
        yield from imports(node, inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))


def check_package(errors: list[str]) -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    at_root = [path.name for path in files if path.parent == PACKAGE]
    if len(at_root) > MOST_AT_THE_ROOT:
        errors.append(f"python/fairlead: {len(at_root)} files; more than {MOST_AT_THE_ROOT} hide the folders")
    used = set()
    for path in files:
        relative = path.relative_to(PACKAGE)
        own = relative.parts[0].removesuffix(".py")
        if own not in PYTHON_ORDER and own not in ("__init__", "__main__"):
            errors.append(f"python/fairlead/{relative}: {own!r} is not in PYTHON_ORDER of scripts/check_layers.py")
            continue
        for name, inside in set(imports(ast.parse(path.read_text()))):
            parts = name.split(".")
            if parts[0] == "torch" and own in NO_TORCH:
                errors.append(f"python/fairlead/{relative}: imports {name}; {own} needs no torch")
            if parts[0] != "fairlead" or len(parts) < 2 or parts[1] not in PYTHON_ORDER:
                continue
            if own == "__init__":  # the others are imported on first use
                if not inside and parts[1] != "base":
                    errors.append(f"python/fairlead/{relative}: imports {name}, for every user of the package")
            elif own != "__main__" and PYTHON_ORDER.index(parts[1]) > PYTHON_ORDER.index(own):
                key = (str(relative), parts[1])
                used.add(key)
                if not inside or key not in UPWARD:
                    errors.append(f"python/fairlead/{relative}: imports {name}, which stands above {own}")
    errors += [f"UPWARD has {' -> '.join(key)}, which nobody needs" for key in UPWARD if key not in used]


def main() -> int:
    errors: list[str] = []
    for path in sources("python/src"):
        errors += [f"{path}: includes {n}" for n in includes(path) if n.startswith("protozero/")]
    check_core(errors)
    check_umbrella(errors)
    check_lists(errors)
    check_package(errors)
    print("\n".join(errors) if errors else "every include and import goes downward and every file is listed")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
