"""What an export gives back: the file, its contract, the differences that were found, times."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from fairlead.contract import Check, Contract
from fairlead.options import DEFAULT_OPSET


@dataclass
class ExportResult:
    """What fairlead.export gives back."""

    path: str
    contract: Contract
    discrepancies: list[Check] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    nodes: int = 0
    operators: dict[str, int] = field(default_factory=dict)
    recorded_operators: set[str] = field(default_factory=set)
    recorded_count: int = 0
    runs: int = 0
    passes: dict[str, int] = field(default_factory=dict)  # runs of the model: with weights, without, to check the file
    model_bytes: int = 0
    external_bytes: int = 0
    opset: int = DEFAULT_OPSET
    model: Any = field(default=None, repr=False)  # the lowered model, from which it can be written again
    record: dict[str, Any] = field(default_factory=dict)  # what the file itself carries for its report

    def report(self, path: str | os.PathLike[str]) -> str:
        """Writes a page about this export, one HTML file that needs nothing else; see docs/report.md."""
        from fairlead.report import report_result

        return report_result(self, path)

    def __str__(self) -> str:
        opset = f", opset {self.opset}" if self.opset else ""
        return f"{self.path or 'in memory'}: {self.nodes} nodes{opset}\n{self.contract}"
