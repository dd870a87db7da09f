"""fairlead.export to a torch.export.ExportedProgram: two ways to make it, checked alike.

1. "recorded": the recorded graph as a straight-line module, then torch.export on that. Nothing in it branches, so what
   records can be exported, and sizes of 1 need no program of their own.
2. "torch.export": torch.export on the model itself, with the sizes that probing found, our flattening and patches.
3. "auto": the first that works, in that order. The contract says which it was, and why.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from fairlead._core import FairleadError, InvalidInput, WriteError
from fairlead.base.errors import sentence_of
from fairlead.base.staged import staged_file
from fairlead.contract import Contract
from fairlead.experiment.job import Job
from fairlead.experiment.progress import Progress
from fairlead.options import Options, check_model, check_path, check_tolerance
from fairlead.targets.pt2 import torch_export
from fairlead.targets.pt2.rebuild import Recorded, with_arguments
from fairlead.targets.pt2.session import ProgramSession
from fairlead.targets.pt2.shapes import bounds_of, dims_by_leaf, traced_setting
from fairlead.tree.caches import register_flattening_functions
from fairlead.tree.caches.kinds import Kind, kind_of
from fairlead.tree.caches.register import keep_registered

METHODS = ("auto", "recorded", "torch.export")
ONLY_ONNX = ("input_names", "output_names", "opset", "external_data", "shared_weights", "runtime")


class ProgramFile:
    """The file of a program that was checked in memory: it is written when it gets its name."""

    external_bytes = 0

    def __init__(self, program: torch.export.ExportedProgram, path: str):
        self.program, self.path = program, path
        self.extra: dict[str, str] = {}
        self.model_bytes = 0

    def add_metadata(self, key: str, value: str) -> None:
        self.extra[key] = value

    def commit(self) -> None:
        try:
            with staged_file(self.path, "export") as staging:
                with staging.open() as file:
                    sink: Any = Sink(file)
                    with register_flattening_functions(), torch_export.quiet():
                        torch.export.save(self.program, sink, extra_files=dict(self.extra))
                    sink.done()
                self.model_bytes = os.path.getsize(staging.path)
                staging.commit_file()
        except FairleadError:
            raise
        except (OSError, RuntimeError, NotImplementedError) as error:
            raise WriteError(f"[export] Could not write '{self.path}': {torch_export.reason(error)}.") from error

    def discard(self) -> None:
        """Nothing is written before it is committed."""


class Sink:
    """What torch writes an archive to. Its writer ends the process where a write fails while another error is on its
    way, so none does: the first error waits until the writer is done."""

    def __init__(self, file: Any):
        self.file = file
        self.error: BaseException | None = None

    def write(self, data: Any) -> int:
        if self.error is None:
            try:
                self.file.write(data)
            except BaseException as error:  # an interrupt too
                self.error = error
        return len(data)

    def flush(self) -> None:
        pass

    def done(self) -> None:
        if self.error is not None:
            raise self.error


class Pt2Export(Job):
    """`options` are those of fairlead.export; `method` and what torch.export takes come besides."""

    suffix = ".pt2"
    runtime = "PyTorch"
    several = False
    keep_writes = True
    keeps_numbers = False
    rolls = False  # a program of torch.export has no such loop
    flat = False  # the model's own arguments and results; True: tensors in the order of the contract

    def __init__(
        self, model: Any, inputs: Any, path: Any, options: Options, progress: Progress,
        method: str = "auto", export_options: dict[str, Any] | None = None,
    ):  # fmt: skip
        given = options.given(ONLY_ONNX)
        if given:
            raise InvalidInput(
                f"[export] Expected {given[0]} for .onnx files only, got it for a {self.suffix} file. Leave it out."
            )
        if method not in METHODS:
            raise InvalidInput(f"[export] Expected method among {', '.join(map(repr, METHODS))}, got {method!r}.")
        super().__init__(model, inputs, path, options, progress)
        self.method, self.export_options = method, export_options or {}
        self.way = ""  # the method that made the program
        self.attempt: Callable[[list[Any]], Any] | None = None  # the last one that failed, with other dimensions

    def checked_path(self, path: str) -> str:
        check_model(self.model)
        check_tolerance(self.options.tolerance)
        return check_path(path)

    def note_outputs(self, outputs: Any, program: int) -> list[Any]:
        self.template = outputs
        return super().note_outputs(outputs, program)

    def note_checked(self, contract: Contract, record: str) -> None:
        self.staged.add_metadata("fairlead.contract", contract.text())
        self.staged.add_metadata("fairlead.report", record)
        program: Any = self.exported
        program.contract = contract

    def is_guarded(self) -> bool:
        return self.way == "torch.export" and self.opened[1].guarded

    # ---- the program ------------------------------------------------------------------------------

    def make(self, program: Any, contract: Contract) -> Any:
        self.exported = self.exported_program(program, contract)
        leaves = pytree.tree_leaves((self.call.named, self.template), is_leaf=is_cache)
        if any(map(is_cache, leaves)):
            keep_registered()
            contract.notes.append("caches are registered with torch's trees in this process; a program that was loaded "
                                  "in another one needs fairlead.tree.register_flattening_functions()")  # fmt: skip
        calls = [n for n in self.exported.graph.nodes if n.op == "call_function"]
        self.made = {"nodes": len(calls), "operators": counted(calls), "opset": 0, "model": self.exported}
        return ProgramFile(self.exported, self.path)

    def open(self, path: str) -> Any:
        return ProgramSession(self.exported, self.model, self.call)

    def bounds(self) -> dict[str, tuple[int, int]]:
        """(min, max) by symbol."""
        return bounds_of(self.probed)

    def exported_program(self, program: Any, contract: Contract) -> torch.export.ExportedProgram:
        dims = self.dims = dims_by_leaf(self.probed, self.bounds())
        self.attempt = None
        tensors = self.call.at(self.probed.sizes_at(traced_setting(self.probed)))
        names = [row.name for row in contract.outputs]
        ways = {"recorded": self.from_recording, "torch.export": self.from_model}
        chosen = [self.method] if self.method != "auto" else list(ways)
        failed = ""
        for number, way in enumerate(chosen, 1):
            try:
                with self.progress.stage("program", f"making the program ({way})"):
                    exported = ways[way](program, tensors, dims, names)
            except FairleadError as error:
                if number == len(chosen):
                    self.attempt = lambda fewer, way=way: ways[way](program, tensors, fewer, names)
                    raise
                failed = f", because the other way failed: {sentence_of(error)}"
                continue
            why = failed or (", as asked" if self.method != "auto" else "")
            self.way = way
            contract.notes.append(f"{WORDS[way]} (method {way!r}{why})")
            return exported
        raise AssertionError("no way was tried")

    def culprit(self) -> int:
        """The first symbol without which torch.export takes the program."""
        attempt, self.attempt = self.attempt, None
        if attempt is None or self.options.dynamic_shapes is not None or self.options.strict:
            return -1
        shapes = self.probed.shapes
        for number, symbol in enumerate(self.probed.symbols):
            fewer = [
                {axis: dim for axis, dim in of.items() if not shape[axis].unit(symbol.name)}
                for shape, of in zip(shapes, self.dims, strict=True)
            ]
            try:
                attempt(fewer)
            except FairleadError:
                continue
            return number
        return -1

    def from_recording(
        self, program: Any, tensors: list[torch.Tensor], dims: Any, names: Any
    ) -> torch.export.ExportedProgram:
        if self.flat:
            module: Any = Recorded(program, self.model)
            args: tuple[Any, ...] = tuple(tensors)
            kwargs: dict[str, Any] = {}
        else:
            with register_flattening_functions():
                module = with_arguments(program, self.model, self.call, self.template, names)
            args, kwargs = self.call.with_tensors(tensors)
        module.eval()
        try:
            return torch_export.export_module(module, args, kwargs, dims)
        except FairleadError:
            raise
        except Exception as error:
            raise torch_export.refusal("the recorded program", error) from error

    def from_model(
        self, program: Any, tensors: list[torch.Tensor], dims: Any, names: Any
    ) -> torch.export.ExportedProgram:
        module, (args, kwargs) = self.model, self.call.with_tensors(tensors)
        if self.flat:
            module, args, kwargs = Flat(self.model, self.call), tuple(tensors), {}
        try:
            with torch_export.patches():
                return torch_export.export_module(module, args, kwargs, dims, self.export_options)
        except Exception as error:
            raise torch_export.refusal("the model", error) from error
        finally:
            self.session.state.restore()


WORDS = {
    "recorded": "the program was rebuilt from the recorded operators",
    "torch.export": "the program was made by torch.export from the model",
}


class Flat(torch.nn.Module):
    """A model behind flat tensors: those of the call in order, and the outputs in order."""

    def __init__(self, model: torch.nn.Module, call: Any) -> None:
        super().__init__()
        self.model = model
        self._call = call

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        from fairlead.tree.leaves import get_leaf_tensors

        args, kwargs = self._call.with_tensors(list(tensors))
        return tuple(get_leaf_tensors(self.model(*args, **kwargs)).values())


def is_cache(obj: Any) -> bool:
    return kind_of(obj) is not Kind.NOT


def counted(calls: list[Any]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for node in calls:
        name = str(getattr(node.target, "__name__", node.target))
        counts[name] = counts.get(name, 0) + 1
    return counts
