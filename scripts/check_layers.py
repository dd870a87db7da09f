"""Checks what the compiler does not: who may include what, and that no file is left out of a list.

1. The core includes no Python, no torch and no bindings.
2. protozero is included in fairlead/onnx and in the tests alone.
3. A folder of the core includes itself and the folders before it in ORDER.
4. fairlead/fairlead.h is the list of public headers: each once, in that order, including no private one.
5. Every source file is named in the CMakeLists.txt of its folder, or of the one above it.
6. A folder or module of the Python package imports itself and what stands before it in PYTHON_ORDER; within functions
   too, but for UPWARD. What is at the root of the package is a dozen files at most.
7. The runtime imports no torch.
8. Operators are named in fairlead/aten and in the rows of the lowerings; elsewhere code asks the table.
9. No code compares our own sentences: several words that are looked for in a text stand in no literal elsewhere. Kinds
   of rows are codes.
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
    "weights",
    "tree",
    "symbol",
    "aten",
    "graph",
    "aten/rules",
    "observe",
    "probe",
    "trace",
    "experiment",
    "passes",
    "source",
    "onnx",
    "quant",
    "pt2",
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
    "quantize",
    "options",
    "elsewhere",
    "adapters",
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
# Operators by name: PyTorch's, and what graphs hold beside them.
OPERATOR = re.compile(
    r'"(?:(?:aten|higher_order|torchvision|quantized_decomposed)\.\w|fairlead\.(?:loop|require|tensor|tolist))'
)
NAMES_OPERATORS = ("fairlead/aten/", "fairlead/onnx/ops/")
LOOKED_FOR = re.compile(r'(?:\.(?:find|rfind|starts_with|ends_with|contains)\(|[=!]= *)"((?:[^"\\]|\\.)*)"')
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
SEVERAL_WORDS = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,}")
LOOKS = {
    "startswith", "endswith", "removeprefix", "removesuffix", "find", "rfind", "index", "split", "partition",
    "rpartition",
}  # fmt: skip
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
    if "/".join(parts[1:3]) in ORDER:
        return ORDER.index("/".join(parts[1:3]))
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
            readers = ("fairlead/pt2/", "fairlead/weights/", "fairlead/experiment/transcript")
            if name == "simdjson.h" and not str(path).startswith(readers):
                errors.append(f"{path}: includes {name}; simdjson belongs to {', '.join(readers)}")
            if first == "fairlead" and own is not None:
                other = layer(name)
                if other is None or other > own:
                    errors.append(f"{path}: includes {name}, which stands above {ORDER[own]}")


def check_names(errors: list[str]) -> None:
    for folder in ["fairlead", "python/src", "tools"]:
        for path in sources(folder):
            if str(path).startswith(NAMES_OPERATORS):
                continue
            for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
                if OPERATOR.search(line.split("//")[0]):
                    errors.append(f"{path}:{number}: names an operator; ask its row in fairlead/aten")


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


def looked_for(node: ast.AST) -> list[ast.expr]:
    """What an expression compares a text with, or looks for in it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOOKS:
        return [item for a in node.args for item in (a.elts if isinstance(a, ast.Tuple) else [a])]
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
        sides = [node.left, *node.comparators]
        return [] if any(isinstance(s, ast.Subscript) and ast.unparse(s.slice) == "'kind'" for s in sides) else sides
    if isinstance(node, ast.comprehension) and isinstance(node.iter, ast.Tuple):  # any(words in text for words in (..))
        return node.iter.elts
    return []


def check_sentences(errors: list[str]) -> None:
    said: list[str] = []  # every literal, but for those that are looked for
    asked: list[tuple[str, str]] = []  # (place, words)
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(ROOT)
        compared = set()
        nodes = list(ast.walk(ast.parse(path.read_text())))
        for node in nodes:
            for part in looked_for(node):
                for text in [part, *(part.values if isinstance(part, ast.JoinedStr) else [])]:
                    if isinstance(text, ast.Constant) and isinstance(text.value, str):
                        compared.add(text)
                        asked.append((f"{place}:{text.lineno}", text.value))
        docs = {node.value for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in compared | docs:
                said.append(node.value)
    for folder in ["fairlead", "python/src", "tools"]:
        for path in sources(folder):
            for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
                code = line.split("// ")[0]
                asked += [(f"{path}:{number}", words) for words in LOOKED_FOR.findall(code)]
                said += LITERAL.findall(LOOKED_FOR.sub("", code))
    for place, words in asked:
        if SEVERAL_WORDS.search(words) and any(words in text for text in said):
            errors.append(f"{place}: looks for {words!r}, which we say ourselves; compare a code")


def main() -> int:
    errors: list[str] = []
    for path in sources("python/src"):
        errors += [f"{path}: includes {n}" for n in includes(path) if n.startswith("protozero/")]
    check_core(errors)
    check_names(errors)
    check_umbrella(errors)
    check_lists(errors)
    check_package(errors)
    check_sentences(errors)
    print("\n".join(errors) if errors else "every include and import goes downward and every file is listed")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
