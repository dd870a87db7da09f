"""What ExecutorchExporter gives back: a written program that can be run, saved and looked at."""

from __future__ import annotations

import os
import tempfile
from typing import Any, BinaryIO

import torch

from fairlead._core import InvalidInput
from fairlead.base.staged import staged_file
from fairlead.contract import Contract
from fairlead.options import check_path
from fairlead.targets.executorch.session import ExecutorchSession
from fairlead.tree.leaves import get_leaf_tensors


class ExecutorchProgram:
    """A .pte program. Has what users of ExecutorchProgramManager use, and what is known about the export.

    program(**inputs)                runs it in the ExecuTorch runtime: the outputs by name
    program.buffer                   its bytes
    program.save("model.pte")        writes it; write_to_file(file) writes to an open file
    program.exported_program()       the torch.export.ExportedProgram it was lowered from
    program.contract                 symbols, sizes tried, maximal sizes, assumptions
    """

    def __init__(self, path: str, exported: torch.export.ExportedProgram, contract: Contract, arguments: list[str]):
        self.path, self.contract = path, contract
        self._exported = exported
        self._arguments = arguments
        self._bytes: bytes | None = None
        self._session: ExecutorchSession | None = None

    def keep(self, path: str | None) -> None:
        """The file gets this name, or none: then its bytes are kept."""
        if path is None:
            self._bytes = self.buffer
        self.path = path or ""

    @property
    def input_names(self) -> list[str]:
        return [row.name for row in self.contract.inputs]

    @property
    def output_names(self) -> list[str]:
        return [row.name for row in self.contract.outputs]

    @property
    def buffer(self) -> bytes:
        if self._bytes is not None:
            return self._bytes
        with open(self.path, "rb") as file:
            return file.read()

    def exported_program(self, method_name: str = "forward") -> torch.export.ExportedProgram:
        return self._exported

    def write_to_file(self, open_file: BinaryIO) -> None:
        open_file.write(self.buffer)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file beside its name and renames it."""
        with staged_file(check_path(path), "export") as staging:
            with staging.open() as file:
                self.write_to_file(file)
            staging.commit_file()

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, torch.Tensor]:
        """The outputs by name for what forward takes."""
        leaves = get_leaf_tensors(dict(zip(self._arguments, args, strict=False)) | kwargs)
        missing = [name for name in self.input_names if name not in leaves]
        if missing:
            raise InvalidInput(
                f"[ExecutorchProgram] Expected the inputs {', '.join(self.input_names)}, got no {missing[0]}."
            )
        if self._session is None:
            self._session = self._opened()
        outputs = self._session.tensors([leaves[name] for name in self.input_names])
        return dict(zip(self.output_names, outputs, strict=True))

    def _opened(self) -> ExecutorchSession:
        if self._bytes is None:
            return ExecutorchSession(self.path)
        with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
            path = os.path.join(folder, "model.pte")
            with open(path, "wb") as file:
                file.write(self._bytes)
            return ExecutorchSession(path)
