"""The package as it is installed: what importing it needs, and that its parts are of one version."""

import importlib
import runpy
import subprocess
import sys
import warnings
from importlib import metadata
from pathlib import Path

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


def test_few_names_are_at_the_top_and_none_of_them_warns():
    names = [name for name in fairlead.__all__ if name != "__version__"]
    assert len(names) <= 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(getattr(fairlead, name) is not None for name in names)


@pytest.mark.parametrize(("name", "home"), sorted(fairlead._MOVED.items()))
def test_a_name_that_was_at_the_top_works_and_says_where_it_is(name, home):
    with pytest.warns(DeprecationWarning, match=f"fairlead.{name} has moved: from {home} import {name}$") as caught:
        found = getattr(fairlead, name)
    assert found is getattr(importlib.import_module(home), name)
    assert caught[0].filename == __file__


def test_the_fast_selection_covers_every_folder():
    """scripts/fast_tests.py: each folder and module of the package has rows, and what they name exists."""
    root = Path(__file__).parents[2]
    table = runpy.run_path(str(root / "scripts" / "fast_tests.py"))["FAST"]
    package = root / "python" / "fairlead"
    parts = {p.name.removesuffix(".py") for p in package.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert set(table) == parts - {"__init__", "__main__"}
    for row in {row for rows in table.values() for row in rows}:
        file, _, test = row.partition("::")
        text = (root / "tests" / "python" / file).read_text()
        assert f"def {test}(" in text if test else "def test_" in text, row


OLD_MODULES = {
    "fairlead.caches": ("fairlead.tree.caches", "describe_support"),
    "fairlead.caches.build": ("fairlead.tree.caches.build", "make_dynamic_cache"),
    "fairlead.caches.register": ("fairlead.tree.caches.register", "register_flattening_functions"),
    "fairlead.checkpoint_export": ("fairlead.checkpoint.export", "export_checkpoint"),
    "fairlead.executorch.write": ("fairlead.targets.executorch.write", "write"),
    "fairlead.leaves": ("fairlead.tree.leaves", "get_leaf_tensors"),
    "fairlead.pipeline": ("fairlead.api", "export"),
    "fairlead.structure_text": ("fairlead.tree.structure_text", "string_type"),
}


def test_a_module_that_the_pages_named_is_the_module_that_it_became():
    lines = ["import warnings", "warnings.simplefilter('always')"]
    for old, (home, name) in OLD_MODULES.items():
        lines += [f"from {old} import {name} as before", f"import {home} as now"]
        lines += [f"assert now.{name} is before and now.__spec__.name == now.__name__ == {home!r}"]
    run = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    for number, (old, (home, _)) in enumerate(OLD_MODULES.items()):
        assert f"<string>:{3 * number + 3}: DeprecationWarning: {old} has moved: import {home}\n" in run.stderr
