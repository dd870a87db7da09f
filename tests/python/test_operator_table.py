"""The table of lowerings, its page and the corpus agree."""

import importlib.util
from pathlib import Path

import torch
from corpus import all_cases

from fairlead import _core

ROOT = Path(__file__).parent.parent.parent

spec = importlib.util.spec_from_file_location("operators_page", ROOT / "scripts" / "operators_page.py")
operators_page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(operators_page)

ROWS = {row[0]: row for row in _core.operator_rows()}

# Rows that no recording of eager PyTorch can reach although PyTorch does not take them apart, with the reason.
NO_CASE = {
    "aten._convolution.default": "inside convolution, which is what is recorded",
    "aten._index_put_impl.default": "inside index_put",
    "aten._native_batch_norm_legit.default": "written for exported programs; eager calls native_batch_norm",
    "aten._neg_view.default": "inside imag of a conjugate",
    "aten.as_strided_copy.default": "made by functionalization only",
    "aten.cudnn_batch_norm.default": "CUDA only",
    "aten.fused_rms_norm.default": "inside rms_norm, which is recorded whole",
    "aten._fused_rms_norm.default": "inside rms_norm, which is recorded whole",
    "aten.unfold_copy.default": "made by functionalization only",
    "higher_order.cond": "control flow of exported programs: test_exported_program.py",
    "higher_order.map_impl": "control flow of exported programs: test_exported_program.py",
    "higher_order.scan": "control flow of exported programs: test_exported_program.py",
    "higher_order.while_loop": "control flow of exported programs: test_exported_program.py",
    "fairlead.loop": "Python loops that were rolled: test_loops.py",
    "fairlead.tensor": "made by the solver from aten.lift_fresh, whose cases reach it",
}


def taken_apart(name: str) -> bool:
    """PyTorch replaces the operator by others before a recording can see it; programs made by torch.export have it."""
    space, base, overload = name.split(".")
    full = f"{space}::{base}" + ("" if overload == "default" else f".{overload}")
    if overload.startswith("prim_"):  # of TorchScript's graphs
        return True
    return torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd")


def exists(name: str) -> bool:
    if name.count(".") != 2:
        return False
    space, base, overload = name.split(".")
    packet = getattr(getattr(torch.ops, space), base, None)
    return packet is not None and overload in packet.overloads()


def test_every_row_has_a_case():
    cases = {case.op for case in all_cases()}
    missing = [
        name
        for name in ROWS
        if name not in cases
        and name not in NO_CASE
        and not name.endswith("generator")
        and not (exists(name) and taken_apart(name))
    ]
    assert not missing, f"rows without a case in tests/python/corpus: {missing}"


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
