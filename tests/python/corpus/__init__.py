"""The corpus of operators: one row per case, grouped by family; test_operators.py exports and runs each.

    Case("aten.select.int", lambda x: x.select(-1, 0), lambda: (torch.randn(3, 4, 5),))

`fn` calls the operator (as a model would), `make` gives example inputs. The harness wraps `fn` in a module, exports it
with every dim free that the operator lets vary, and compares ONNX Runtime with eager at the example and at sizes that
were never probed. `fixed=True` exports without probing (for cases whose point is a size of 0 or 1).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Case:
    op: str  # the ATen overload whose row this exercises
    fn: Callable
    make: Callable
    name: str = ""  # what corner it reaches
    fixed: bool = False
    tolerance: float = 1e-4  # scaled by max(1, |reference|); float32 rounding of a few operators
    random: bool = False  # only shapes and dtypes are compared; the distribution has its own test
    error: str = ""  # expected text of the Unsupported error, for what ONNX cannot express
    differs: str = ""  # expected text of the Discrepancy, for what ONNX Runtime computes otherwise than PyTorch
    min_opset: int = 18
    traced: bool = False  # through torch.export, whose programs keep operators that a recording sees taken apart
    keep: Callable | None = None  # a torch function recorded as `op`, which PyTorch would take apart

    @property
    def id(self) -> str:
        return f"{self.op}-{self.name}" if self.name else self.op


def all_cases() -> list[Case]:
    """Every case of every family module in this folder."""
    cases = []
    for module in pkgutil.iter_modules(__path__):
        cases += importlib.import_module(f"{__name__}.{module.name}").CASES
    return cases
