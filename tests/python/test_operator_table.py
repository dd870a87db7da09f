"""The table of lowerings, its page and the corpus agree."""

import importlib.util
from pathlib import Path

from corpus import all_cases

from fairlead import _core

ROOT = Path(__file__).parent.parent.parent

spec = importlib.util.spec_from_file_location("operators_page", ROOT / "scripts" / "operators_page.py")
operators_page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(operators_page)

ROWS = {row[0]: row for row in _core.operator_rows()}

# Rows that no case can reach, with the reason.
NO_CASE = {
    "aten.cudnn_batch_norm.default": "CUDA only",
    "aten.to.prim_Device": "of TorchScript's graphs; PyTorch records it as to.device",
    "aten.to.prim_dtype": "of TorchScript's graphs; PyTorch records it as to.dtype",
    "aten.to.prim_other": "of TorchScript's graphs; PyTorch records nothing",
    "torchvision.deform_conv2d.default": "of another library: test_vision_operators.py",
    "torchvision.nms.default": "of another library: test_vision_operators.py",
    "torchvision.roi_align.default": "of another library: test_vision_operators.py",
    "fairlead.require": "made where programs are joined: test_size_branches.py",
    "fairlead.loop": "Python loops that were rolled: test_loops.py",
    **dict.fromkeys((name for name in ROWS if name.startswith("onnxruntime.")), "made by fusions: test_fused.py"),
    "fairlead.tensor": "made by the solver from aten.lift_fresh, whose cases reach it",
}


def test_every_row_has_a_case():
    cases = {case.op for case in all_cases()}
    missing = [name for name in ROWS if name not in cases and name not in NO_CASE]
    assert not missing, f"rows without a case in tests/python/corpus: {missing}"


def test_every_row_without_a_case_is_one():
    cases = {case.op for case in all_cases()}
    assert [name for name in NO_CASE if name in cases or name not in ROWS] == []


def test_every_case_has_a_row_or_expects_an_error():
    unknown = {case.op for case in all_cases() if not case.error} - set(ROWS)
    assert not unknown, f"cases of operators without a row: {sorted(unknown)}"


def test_page_is_what_the_table_says():
    assert operators_page.PAGE.read_text() == operators_page.page(), "run scripts/operators_page.py"


def test_every_operator_of_the_sweep_is_on_the_page():
    names = (ROOT / "tests" / "python" / "data" / "sweep_operators.txt").read_text().split()
    missing = [name for name in names if name not in ROWS and name not in operators_page.WITHOUT_ROW]
    assert not missing, f"operators that models execute, with neither a row nor a reason: {missing}"


def test_every_row_says_what_it_becomes():
    assert [name for name, row in ROWS.items() if not row[1]] == []
