"""fairlead.export to ONNX: lowered and streamed by the core, run in ONNX Runtime. Programs of torch.export too."""

from __future__ import annotations

import time
from typing import Any

import torch

from fairlead._core import FairleadError
from fairlead.contract import Contract
from fairlead.experiment.job import Job
from fairlead.experiment.result import ExportResult
from fairlead.options import check_request
from fairlead.programs.export import ProgramExport
from fairlead.report.failure import explain
from fairlead.verify.runtime_check import OnnxSession


class OnnxExport(Job):
    suffix = ".onnx"
    runtime = "ONNX Runtime"
    several = True
    rolls = True
    keeps_numbers = True
    keep_writes = False

    def checked_path(self, path: str) -> str:
        return check_request(self.model, path, self.options)

    def note_checked(self, contract: Contract, record: str) -> None:
        for each in (self.made["model"], self.staged):
            each.add_metadata("fairlead.checked", contract.verified)
            each.add_metadata("fairlead.report", record)

    def make(self, program: Any, contract: Contract) -> Any:
        with self.progress.stage("lower", "lowering to ONNX"):
            options = self.options
            joined = len(self.experiment.programs) > 1  # then it has bounds of its own
            bounds = [] if joined else self.experiment.bounds(0)
            model = program.lower(options.opset, bounds, options.shared_weights)
            model.add_metadata("fairlead.contract", contract.text(checked=False))
        self.made = {
            "nodes": model.node_count, "operators": model.operators, "opset": self.options.opset, "model": model,
        }  # fmt: skip
        with self.progress.stage("write", f"writing {self.path}"):
            return model.write(self.path, self.options.external_data, self.options.shared_weights)

    def open(self, path: str) -> OnnxSession:
        return OnnxSession(path)

    def run_program(self, model: torch.nn.Module | None) -> ExportResult:
        """The second way in: a program that torch.export made, or is asked to make."""
        start = time.perf_counter()
        self.final = self.path is not None
        with torch.random.fork_rng(devices=[]), self.folder() as folder:
            self.path = check_request(model, self.path if self.final else f"{folder}/model.onnx", self.options)
            try:
                found = ProgramExport(self).run(start)
            except FairleadError as error:
                explain(error, self)
                raise
            finally:
                self.discard()
        return ExportResult(
            path=self.path if self.final else "", timings=self.progress.timings, opset=self.options.opset, **found
        )
