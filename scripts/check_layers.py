"""Checks what the compiler does not: who may include what, and that no file is left out of a list.

1. The core includes no Python, no torch and no bindings.
2. protozero is included in fairlead/onnx and in the tests alone.
3. A folder of the core includes itself and the folders before it in ORDER.
4. fairlead/fairlead.h is the list of public headers: each once, in that order, including no private one.
5. Every source file is named in the CMakeLists.txt of its folder, or of the one above it.
"""

import re
import sys
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


def main() -> int:
    errors: list[str] = []
    for path in sources("python/src"):
        errors += [f"{path}: includes {n}" for n in includes(path) if n.startswith("protozero/")]
    check_core(errors)
    check_umbrella(errors)
    check_lists(errors)
    print("\n".join(errors) if errors else "every include goes downward and every file is listed")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
