"""Runs mypy --strict over the package, as `[tool.mypy]` in pyproject.toml sets it.

The stub of the extension is made when the extension is built, and lies where it was installed: both are put together in
build/typed, because a type checker does not look for one package in two folders. Lines of the output are those of
python/fairlead.
"""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TYPED = ROOT / "build" / "typed"


def main() -> int:
    extension = importlib.util.find_spec("fairlead._core")
    if extension is None or extension.origin is None:
        print("fairlead._core is not installed: pip install --no-build-isolation --no-deps -e .")
        return 2
    copy = TYPED / "fairlead"
    shutil.rmtree(copy, ignore_errors=True)
    # With the times of the files: mypy looks at what has changed since its last run.
    shutil.copytree(ROOT / "python" / "fairlead", copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(Path(extension.origin).parent / "_core.pyi", copy / "_core.pyi")
    words = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "-p", "fairlead"]
    done = subprocess.run([*words, *sys.argv[1:]], cwd=TYPED, capture_output=True, text=True)
    for line in (done.stdout + done.stderr).splitlines():
        print(f"python/{line}" if line.startswith("fairlead/") else line)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
