"""The wheel: what is in it, that it works with numpy alone, that its types hold; and the sdist, that it is complete."""

import ast
import fcntl
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import fairlead._core
import numpy
import pytest

import fairlead

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "python"

pytest.importorskip("build")
pytest.importorskip("scikit_build_core")


def run(*words, **more):
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MYPYPATH")}
    environment = {**clean, **more.pop("env", {})}
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, env=environment, **more)


def build(kind, out, *settings):
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build" / "wheel.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests of this file may run in two processes
        # From another folder: in the repository's own the folder build/ would be the module `build`.
        done = run(sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "-o", out, *settings, ROOT, cwd=out)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (found,) = out.iterdir()
    return found


def settings_of_a_build():
    """A build folder that is there is built in, with the settings it has, so that little is compiled again."""
    for folder in ("build/test", "build/python", "build/dev"):
        cache = ROOT / folder / "CMakeCache.txt"
        if cache.exists():
            kept = re.findall(r"^(FAIRLEAD_(?:BUILD_\w+|WERROR)):BOOL=(\w+)$", cache.read_text(), re.MULTILINE)
            defines = [f"-Ccmake.define.{name}={value}" for name, value in kept]
            return [f"-Cbuild-dir={folder}", f"-Ccmake.build-type={build_type(cache)}", *defines]
    return []


def build_type(cache):
    return re.search(r"^CMAKE_BUILD_TYPE:\w+=(\w*)$", cache.read_text(), re.MULTILINE)[1] or "Release"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build("wheel", tmp_path_factory.mktemp("wheel"), *settings_of_a_build())


@pytest.fixture(scope="module")
def clean(wheel, tmp_path_factory):
    """A Python with the wheel and numpy, nothing else: not even pip."""
    home = tmp_path_factory.mktemp("clean") / "env"
    assert run(sys.executable, "-m", "venv", "--without-pip", home).returncode == 0
    python = home / "bin" / "python"
    done = run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel)
    assert done.returncode == 0, done.stderr
    (packages,) = home.glob("lib/python*/site-packages")
    for part in Path(numpy.__file__).parents[1].glob("numpy*"):
        (packages / part.name).symlink_to(part)
    return home


def test_the_wheel_has_stubs_templates_and_license(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    info = f"fairlead-{fairlead.__version__}.dist-info"
    for name in ("py.typed", "_core.pyi", "__init__.pyi", "exporters/__init__.pyi", "report/templates/page.html"):
        assert f"fairlead/{name}" in names
    assert f"{info}/licenses/LICENSE" in names
    package = {p for p in (ROOT / "python" / "fairlead").rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    wanted = {str(p.relative_to(ROOT / "python")) for p in package if p.suffix not in (".so", ".pyi")}
    assert wanted <= names
    extensions = [n for n in names if n.startswith("fairlead/_core.") and n.endswith(".so")]
    assert len(extensions) == 1
    assert {n.partition("/")[0] for n in names} == {"fairlead", info}


def test_the_wheel_says_what_was_compiled_into_it(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/sboms/fairlead.cdx.json")]
        found = json.loads(archive.read(name))
    assert (found["bomFormat"], found["metadata"]["component"]["version"]) == ("CycloneDX", fairlead.__version__)
    versions = {row["name"]: row["version"] for row in found["components"]}
    assert sorted(versions) == ["nanobind", "protozero", "simdjson"]
    assert all(re.fullmatch(r"\d+\.\d+(\.\d+)*", version) for version in versions.values()), versions


def test_the_same_input_gives_the_same_wheel(wheel, tmp_path):
    (ROOT / "python" / "fairlead" / "py.typed").touch()
    (ROOT / "README.md").touch()
    assert build("wheel", tmp_path, *settings_of_a_build()).read_bytes() == wheel.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        (core,) = [n for n in archive.namelist() if n.endswith(".so")]
        assert str(ROOT).encode() not in archive.read(core)


def test_the_metadata_says_what_it_is(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = (n for n in archive.namelist() if n.endswith("/METADATA"))
    fields = Parser().parsestr(archive.read(name).decode())
    assert fields["License-Expression"] == "Apache-2.0"
    assert re.fullmatch(r"\d+\.\d+\.\d+", fields["Version"]), "a semantic version"
    assert fields["Version"] in (ROOT / "CHANGELOG.md").read_text()
    required = [r for r in fields.get_all("Requires-Dist") if "extra ==" not in r]
    assert len(required) == 1
    assert required[0].startswith("numpy")
    for extra in ("torch", "transformers", "onnx", "executorch", "cli", "report", "docs"):
        assert extra in fields.get_all("Provides-Extra")


NAMES = """
import fairlead, fairlead.exporters, fairlead.exporters.utils
worked = 0
for module in (fairlead, fairlead.exporters, fairlead.exporters.utils):
    for name in [*module.__all__, *getattr(module, "_PACKAGES", ())]:
        try:
            getattr(module, name)
            worked += 1
        except ImportError as error:
            text = str(error)
            assert "\\n" not in text and text.startswith("[") and "pip install" in text, (name, text)
print(worked, "of them work")
"""


def test_with_numpy_alone_every_name_works_or_says_what_to_install(clean, tmp_path):
    done = run(clean / "bin" / "python", "-c", NAMES, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 20


def test_with_numpy_alone_the_command_line_says_what_to_install(clean, tmp_path):
    done = run(clean / "bin" / "fairlead", "--help", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "pip install click rich" in done.stderr


def test_with_click_too_a_command_that_needs_pytorch_says_so(clean, tmp_path):
    (tmp_path / "click").symlink_to(Path(pytest.importorskip("click").__file__).parent)
    words = ("export", "torch.nn:Linear", "model.onnx", "--inputs", "3x4")
    done = run(clean / "bin" / "fairlead", *words, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 2
    assert "Install it with pip install torch." in done.stderr
    assert "Traceback" not in done.stderr


def test_a_typed_program_is_accepted_and_a_wrong_one_is_not(clean, tmp_path):
    pytest.importorskip("mypy")
    # Every public name is one that a type checker finds.
    names = tmp_path / "names.py"
    names.write_text("".join(f"from fairlead import {name} as {name}\n" for name in fairlead.__all__))
    done = run(
        sys.executable, "-m", "mypy", "--python-executable", clean / "bin" / "python", "--ignore-missing-imports",
        "--warn-unused-ignores", "--cache-dir", tmp_path / "cache", HERE / "typed_example.py", names, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def members(body):
    """Names that a stub defines, and for each class those in it."""
    found = {}
    for node in body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = set(members(node.body))
        elif isinstance(node, ast.FunctionDef):
            found[node.name] = None
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = None
    return found


def public(thing):
    return {name for name in vars(thing) if not name.startswith("_")}


def test_the_stub_of_the_extension_is_what_it_has(wheel, tmp_path):
    """Every name on both sides; stubtest of mypy cannot read the functions of nanobind."""
    pytest.importorskip("mypy")
    stub = tmp_path / "_core.pyi"
    stub.write_bytes(zipfile.ZipFile(wheel).read("fairlead/_core.pyi"))
    done = run(sys.executable, "-m", "mypy", "--cache-dir", tmp_path / "cache", stub, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    written = members(ast.parse(stub.read_text()).body)
    there = public(fairlead._core)
    assert {name for name in written if not name.startswith("_")} == there
    for name, inside in written.items():
        if inside is not None and name not in ("SizeInt", "SizeFloat"):  # they have what int and float have
            wanted = public(getattr(fairlead._core, name))
            assert {n for n in inside if not n.startswith("_")} == wanted, name


def test_the_sdist_has_every_source(tmp_path):
    """A wheel that builds from the repository builds from the sdist: it has the same files."""
    listed = run("git", "ls-files", cwd=ROOT)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    with tarfile.open(build("sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {name for name in listed.stdout.splitlines() if not name.startswith(".ci/") and (ROOT / name).exists()}
    assert wanted - names == set()
    made = {name for name in names if name.startswith(("build/", ".venv")) or name.endswith((".so", ".onnx"))}
    assert made == {f"fuzz/corpus/read_onnx/{name}.onnx" for name in ("control", "layers")}  # what fuzzing begins with
