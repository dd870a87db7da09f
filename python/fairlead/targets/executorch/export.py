"""fairlead.export to a .pte file: a program of flat tensors and bounded sizes, written, run in the runtime, named."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from fairlead._core import InvalidInput, Staging
from fairlead.contract import LARGEST, Contract
from fairlead.experiment.progress import Progress
from fairlead.options import Options
from fairlead.targets.executorch.program import ExecutorchProgram
from fairlead.targets.executorch.session import ExecutorchSession
from fairlead.targets.executorch.write import WriteOptions, Written, check_backend, write
from fairlead.targets.pt2.export import Pt2Export

DEFAULT_MAX = 128


class StagedFile:
    """A written file without its final name."""

    external_bytes = 0

    def __init__(self, final: str):
        self.staging = Staging(final, "export")
        self.path = self.staging.path
        self.model_bytes = 0

    def commit(self) -> None:
        self.staging.commit_file()

    def discard(self) -> None:
        self.staging.discard()


class ExecutorchExport(Pt2Export):
    suffix = ".pte"
    runtime = "ExecuTorch"
    flat = True

    def __init__(
        self, model: Any, inputs: Any, path: Any, options: Options, progress: Progress, method: str = "auto",
        export_options: dict[str, Any] | None = None, write_options: WriteOptions | None = None,
        max_size: int | dict[str, int] = DEFAULT_MAX,
    ):  # fmt: skip
        super().__init__(model, inputs, path, options, progress, method, export_options)
        self.write_options, self.max_size = write_options or WriteOptions(), max_size

    def checked_path(self, path: str) -> str:
        check_backend(self.write_options.backend)
        try:
            import executorch.runtime  # noqa: F401
        except ImportError as error:
            raise InvalidInput(
                f"[export] Expected the package executorch for a .pte file, but it cannot be imported ({error}). "
                "Install it with pip install executorch."
            ) from None
        return super().checked_path(path)

    def bounds(self) -> dict[str, tuple[int, int]]:
        """Every symbol has a maximum: the user's, else that of the configuration, and never less than what was run."""
        result = {}
        for symbol in self.probed.symbols:
            asked = self.max_size.get(symbol.name, DEFAULT_MAX) if isinstance(self.max_size, dict) else self.max_size
            most = symbol.max if symbol.max < LARGEST else max(asked, *self.largest(symbol.name))
            result[symbol.name] = (max(1, symbol.min), most)
        return result

    def largest(self, name: str) -> list[int]:
        """The sizes of a symbol at which the file is going to be run."""
        at = [s.name for s in self.probed.symbols].index(name)
        settings = [*self.probed.run_values, *self.probed.unseen_settings(8)]
        return [values[at] for values in settings]

    def make(self, program: Any, contract: Contract) -> StagedFile:
        bounds = self.bounds()
        contract.symbols = [replace(symbol, max=bounds[symbol.name][1]) for symbol in contract.symbols]
        self.exported = self.exported_program(program, contract)
        staged = self.staged = StagedFile(self.path)
        with self.progress.stage("write", f"writing {self.path}"), staged.staging.open() as file:
            self.written = write(self.exported, file, self.write_options)
        staged.model_bytes = os.path.getsize(staged.path)
        contract.notes.append(in_words(self.written, self.write_options))
        self.made = {
            "nodes": self.written.instructions, "opset": 0,
            "model": ExecutorchProgram(staged.path, self.exported, contract, list(self.call.named)),
        }  # fmt: skip
        return staged

    def open(self, path: str) -> ExecutorchSession:
        return ExecutorchSession(path)

    def note_checked(self, contract: Contract, record: str) -> None:
        self.made["model"].keep(self.path if self.final else None)


def in_words(written: Written, options: WriteOptions) -> str:
    by = f"{written.delegates} delegates to {options.backend}" if options.backend else "no delegates"
    return f"ExecuTorch plans {written.planned_bytes} bytes of memory for the largest sizes; {by}"
