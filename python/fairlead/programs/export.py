"""The second way in: programs of torch.export, in memory or from a .pt2 file, and models that it traces first.

1. A program in memory is handed to the core as the JSON of torch's own serializer, with its tensors by address.
2. The core reads it (also straight from the archive), lowers it and writes the file.
3. The file is run in ONNX Runtime and compared with the program itself, at sizes within its range constraints.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import logging
import math
import os
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch.utils import _pytree as pytree

from fairlead import _core
from fairlead.base.errors import error_found
from fairlead.base.memory import raise_if_memory_lacks
from fairlead.contract import LARGEST, Check, Contract, FixedDim, Symbol, Tensor, merged
from fairlead.patches.model_state import ModelState
from fairlead.record.control_flow import compiled
from fairlead.record.session import RecordingSession, instead
from fairlead.tree.caches import register_flattening_functions
from fairlead.tree.calls import Call, NamedTensors, base_call, normalise
from fairlead.tree.dtypes import BY_NAME, DTYPES
from fairlead.tree.dynamic_shapes import DYNAMIC, STATIC, leaves_of, requests
from fairlead.verify.checked_rows import in_words, rows_of
from fairlead.verify.patience import TookTooLong, at_most, seconds_for
from fairlead.verify.runtime_check import OnnxSession
from fairlead.verify.verification import Verification, first_line

# What a file may name to be imported: modules of Transformers that have classes of outputs and caches.
TRANSFORMERS_OUTPUTS = re.compile(
    r"transformers\.(models\.\w+\.modeling_\w+|modeling_outputs|cache_utils|utils\.generic)\."
)

TRACERS = ("observe", "torch.export")

MOST_ELEMENTS = 1 << 28  # of the inputs that are made up to check a program


def is_program(model: Any, inputs: Any, path: Any) -> bool:
    """Whether this is export(program, path), with a program or the name of a file that has one."""
    if isinstance(model, torch.export.ExportedProgram) and inputs is not None and path is not None:
        raise _core.InvalidInput(
            "[export] Expected export(program, path), got inputs too. Leave them out: a program has its own example."
        )
    plain = inputs is None or path is None
    return isinstance(model, torch.export.ExportedProgram) or (plain and isinstance(model, (str, os.PathLike)))


def check_tracer(tracer: Any) -> None:
    if tracer not in TRACERS:
        raise _core.InvalidInput(f'[export] Expected tracer "observe" or "torch.export", got {tracer!r}.')


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """torch.export warns of what it specialises; the contract says it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def logged_errors(name: str) -> Iterator[Any]:
    """torch logs the reason and raises another error, or warns of what does not matter: the errors, without the log."""
    found: list[BaseException] = []
    log = logging.getLogger(name)

    def keep(record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[1] is not None:
            found.append(record.exc_info[1])
        return False

    log.addFilter(keep)
    try:
        yield found
    finally:
        log.removeFilter(keep)


# ---- a model, traced by torch.export ---------------------------------------------------------------------


def traced(
    model: torch.nn.Module, calls: list[Call], call: Call, shapes: list[list[str]], asked: list[list[tuple[Any, ...]]]
) -> Any:
    """The program of a model. `shapes`: by leaf, the size's name where it varies, else ""; `asked`: requests."""
    hints: dict[int, dict[int, Any]] = {}
    for tensor, texts, dims in zip(call.tensors, shapes, asked, strict=True):
        hints[id(tensor)] = {
            axis: dim_hint(*dim) for axis, (text, dim) in enumerate(zip(texts, dims, strict=True)) if text
        }
    with register_flattening_functions(), quiet(), torch.no_grad(), compiled():
        specs = with_rest(model, call, {name: spec_of(value, hints) for name, value in call.named.items()})
        try:
            return torch.export.export(model, call.args, call.kwargs, dynamic_shapes=specs, strict=False)
        except Exception as error:
            raise _core.Unsupported(
                f"[export] Expected a model that torch.export can trace, but it raised {type(error).__name__}: "
                f'{first_line(error)}. Export it with tracer="observe".'
            ) from error


def with_rest(model: torch.nn.Module, call: Call, specs: dict[str, Any]) -> dict[str, Any]:
    """What forward takes as *args is one argument for torch.export."""
    parameters = list(inspect.signature(model.forward).parameters.values())
    rest = next((k for k, p in enumerate(parameters) if p.kind is p.VAR_POSITIONAL), None)
    if rest is None or len(call.args) <= rest:
        return specs
    names = list(specs)
    taken = {name: specs[name] for name in names[:rest]}
    taken[parameters[rest].name] = tuple(specs[name] for name in names[rest : len(call.args)])
    return taken | {name: specs[name] for name in names[len(call.args) :]}


def dim_hint(kind: str, name: str, low: int, high: int) -> Any:
    hint = torch.export.Dim.DYNAMIC if kind == DYNAMIC else torch.export.Dim.AUTO
    bounds = {key: value for key, value in (("min", low), ("max", high)) if 0 < value < LARGEST}
    return hint(**bounds) if bounds else hint


def spec_of(value: Any, hints: dict[int, dict[int, Any]]) -> Any:
    """dynamic_shapes of one argument as torch.export takes them: a class of its own is the list of its leaves."""
    if isinstance(value, torch.Tensor):
        return hints.get(id(value), {})
    if isinstance(value, dict):
        return {key: spec_of(item, hints) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(spec_of(item, hints) for item in value)
    leaves = pytree.tree_leaves(value)
    if any(isinstance(leaf, torch.Tensor) for leaf in leaves):
        return [spec_of(leaf, hints) for leaf in leaves]
    return None


def varies(leaf: int, axis: int, kind: str, name: str, *_: int) -> str:
    return "" if kind == STATIC else name or f"input_{leaf}_dim_{axis}"


def dims_to_vary(job: Any) -> tuple[list[list[str]], list[list[tuple[Any, ...]]]]:
    """What varies, by leaf: as the user said, else found by running the model at other sizes."""
    asked = requests(job.call, job.options.dynamic_shapes)
    if job.options.dynamic_shapes is not None:
        shapes = []
        for leaf, dims in enumerate(asked):
            shapes.append([varies(leaf, axis, *dim) for axis, dim in enumerate(dims)])
        return shapes, asked
    with RecordingSession(job.model) as session:
        session.follows_functions = True

        def trial(sizes: list[tuple[int, ...]], reference: int) -> tuple[int, bool, str, bool]:
            args, kwargs = job.call.with_tensors(job.call.at(sizes))
            outcome = session.run(args, kwargs, reference, keep=reference < 0)
            _, before, now = outcome.parted or (0, "", "")
            words = f"the model executes {instead(before, now)}" if outcome.parted else outcome.error
            return outcome.run, outcome.parted is not None, words, outcome.visible

        ordered = [job.call] + [c for c in job.calls if c is not job.call]
        sizes = [[list(t.shape) for t in c.tensors] for c in ordered]
        probed = _core.probe(leaves_of(job.call, asked), sizes, trial)
    return [["" if size.value is not None else size.text for size in shape] for shape in probed.shapes], asked


# ---- importing -------------------------------------------------------------------------------------------


def imported(program: torch.export.ExportedProgram, shapes: list[list[str]]) -> Any:
    """The program in the core, which keeps the tensors that it borrows."""
    from torch._export.serde.serialize import serialize

    tensors = {**program.state_dict, **{k: v for k, v in program.constants.items() if isinstance(v, torch.Tensor)}}
    with register_flattening_functions(), quiet(), logged_errors("torch._export.serde.serialize"):
        try:
            json = serialize(
                program, serialize_state_dict=False, serialize_constants=False, serialize_example_inputs=False
            ).exported_program
        except Exception as error:
            raise _core.Unsupported(
                f"[export] Expected a program that torch can write out, but its serializer raised "
                f'{type(error).__name__}: {first_line(error)}. Export the model with tracer="observe".'
            ) from error
    held = {name: t.detach() for name, t in tensors.items()}
    given = [
        (
            name,
            DTYPES.get(t.dtype, str(t.dtype)),
            t.data_ptr(),
            list(t.shape),
            [] if t.is_contiguous() else list(t.stride()),
        )
        for name, t in held.items()
    ]
    return _core.import_program(json, given, shapes, held)


def to_take_apart(error: _core.Unsupported) -> dict[str, Any]:
    """The operators that have no lowering and that PyTorch can take apart, with its rules."""
    missing = {row["operator"] for row in error.details if row["kind"] == "missing operator"}
    table = torch.export.default_decompositions()
    return {op: rule for op, rule in table.items() if str(op) in missing}


def taken_apart(program: torch.export.ExportedProgram, rules: dict[str, Any]) -> Any:
    with register_flattening_functions(), quiet(), torch.no_grad():
        return program.run_decompositions(rules)


# ---- exporting -------------------------------------------------------------------------------------------


class ProgramCall(NamedTensors):
    """One call of a program: its flat inputs, and the way back to arguments."""

    def __init__(self, core: Any, spec: Any, leaves: list[Any]) -> None:
        self.spec, self.leaves = spec, leaves
        self.places = [k for k, number in enumerate(core.user_inputs) if number >= 0]
        self.names = list(core.input_names)
        self.tensors: list[torch.Tensor] = [leaves[k] for k in self.places]

    def of_own_classes(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        return tensors

    def with_tensors(self, tensors: list[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        with register_flattening_functions():
            args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return args, kwargs


class ProgramVerification(Verification):
    """Compares with the program instead of a model that could be recorded."""

    def run(self) -> list[dict[str, Any]]:
        """Sizes that were equal in the example may have to be, although the program does not say so: tried as well."""
        held = {t.data_ptr(): t.numel() * t.element_size() for t in [*self.model.parameters(), *self.model.buffers()]}
        made_at = [s.tried[0] if s.tried else 0 for s in self.probed.symbols]
        example = list(self.settings.symbols_of(self.settings.example).values())
        checks = _core.ProgramChecks(self.probed, sum(held.values()), example, made_at)
        while not checks.over:
            step, began = checks.step, time.perf_counter()
            answer = self.look(step) if isinstance(step, _core.Look) else self.check(step)
            checks.answer(answer, time.perf_counter() - began)
        if isinstance(checks.step, _core.Failed):
            nothing = f"No file was written under {self.path}."
            raise error_found(checks.step.finding, nothing, self.runtime, "the program")
        rows = rows_of(self.measured, checks.rows)
        self.contract.add_reserves(checks.reserves())
        self.contract.drawn = dict(self.draws.axes) if self.draws else {}
        self.contract.verified = in_words(rows, self.runtime, len(self.calls), len(self.output_names), self.draws)
        return rows

    seconds: float | None = None  # a call may take

    def run_eager(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
        with torch.no_grad(), register_flattening_functions(), at_most(self.seconds):
            leaves = pytree.tree_leaves(self.model(*args, **kwargs))
        return [t.clone() for t in leaves if isinstance(t, torch.Tensor)]


class ProgramExport:
    """fairlead.export for a program, a .pt2 file, or tracer="torch.export"."""

    def __init__(self, job: Any) -> None:
        self.job, self.options, self.progress = job, job.options, job.progress
        self.program: Any = None  # an ExportedProgram, where torch has loaded it
        self.core: Any = None  # the core's, when it is read

    def run(self, start: float) -> Any:
        with self.progress.stage("import", "reading the exported program"):
            self.load()
        self.rename()
        contract = self.contract()
        self.job.refuse_assumptions(contract)
        with self.progress.stage("lower", "lowering to ONNX"):
            model = self.lowered()
            self.job.fold(model, contract)
            model.add_metadata("fairlead.contract", contract.text(checked=False))
        with self.progress.stage("write", f"writing {self.job.path}"):
            staged = self.job.staged = model.write(self.job.path, self.options.external_data)
        rows = self.verify(staged, contract) if self.options.verify else []
        for each in (model, staged):
            each.add_metadata("fairlead.checked", contract.verified)
        if self.job.final:
            staged.commit()
        self.progress.timings["total"] = time.perf_counter() - start
        return {
            "contract": contract, "discrepancies": [Check(**row) for row in rows],
            "nodes": model.node_count, "operators": model.operators,
            "model_bytes": staged.model_bytes, "external_bytes": staged.external_bytes, "model": model,
        }  # fmt: skip

    def load(self) -> None:
        job, model = self.job, self.job.model
        self.shapes: list[list[str]] = []
        if isinstance(model, (str, os.PathLike)):
            self.core = _core.read_pt2(os.fsdecode(model))
            return
        if isinstance(model, torch.export.ExportedProgram):
            self.program = model
        else:
            job.calls = normalise(model, job.inputs)
            job.call = base_call(job.calls)
            shapes, asked = dims_to_vary(job)
            self.program = traced(model, job.calls, job.call, shapes, asked)
            self.shapes = self.by_user_input(job.call, shapes)
        self.core = imported(self.program, self.shapes)

    def by_user_input(self, call: Call, shapes: list[list[str]]) -> list[list[str]]:
        """Names of sizes in the order of the program's inputs, which is torch's and not always ours."""
        known = {id(tensor): texts for tensor, texts in zip(call.tensors, shapes, strict=True)}
        with register_flattening_functions():
            leaves = pytree.tree_leaves((call.args, call.kwargs))
        return [known.get(id(leaf), []) for leaf in leaves]

    def lowered(self) -> Any:
        """What has no lowering is taken apart by PyTorch, and so is what that gives, as long as there is something."""
        rules: dict[str, Any] = {}
        while True:
            try:
                return self.core.lower(self.options.opset, self.options.target())
            except _core.Unsupported as error:
                more = {op: rule for op, rule in to_take_apart(error).items() if op not in rules}
                if not more:
                    raise
                rules |= more
                self.open_program()
                self.core = imported(taken_apart(self.program, rules), self.shapes)
                self.rename()

    def open_program(self) -> None:
        """A program from a file is loaded by torch too where it has to run, or to be taken apart."""
        if self.program is not None:
            return
        # Transformers registers the classes of its outputs when the module that has them is imported.
        for name in self.core.classes:
            if TRANSFORMERS_OUTPUTS.match(name):
                with contextlib.suppress(ImportError):
                    importlib.import_module(name.rpartition(".")[0])
        from fairlead.programs.file import load_program  # and with it most of torch.compile: seconds

        unsaid = logged_errors("torch._export.serde.serialize")
        with register_flattening_functions(), quiet(), unsaid, logged_errors("torch.export") as reasons:
            try:
                self.program = load_program(self.core, os.fsdecode(self.job.model))
            except _core.FairleadError:
                raise
            except Exception as error:
                reason = reasons[-1] if reasons else error
                raise _core.InvalidInput(
                    f"[export] Expected a program that PyTorch reads, but it raised {type(reason).__name__}: "
                    f"{first_line(reason)}. Pass verify=False to convert it without a check."
                ) from error

    def rename(self) -> None:
        names = {"input_names": self.core.input_names, "output_names": self.core.output_names}
        for option, default in names.items():
            given = getattr(self.options, option)
            if given is None:
                continue
            if len(given) != len(default):
                raise _core.InvalidInput(
                    f"[export] Expected {len(default)} {option}, one per tensor ({', '.join(default[:6])}), "
                    f"got {len(given)}."
                )
            names[option] = list(given)
        self.core.rename(names["input_names"], names["output_names"])

    def contract(self) -> Contract:
        core, sizes = self.core, self.core.sizes
        contract = Contract(proven=True)
        for symbol in sizes.symbols:
            places = [
                f"axis {axis} of {name}"
                for name, shape in zip(core.input_names, sizes.shapes, strict=True)
                for axis, size in enumerate(shape)
                if size.unit(symbol.name) == 1
            ]
            where = places[0] if places else "multiples of an input size"
            contract.symbols.append(Symbol(symbol.name, symbol.tried, symbol.min, symbol.max, where))
        for name, dtype, shape in zip(core.input_names, core.input_dtypes, sizes.shapes, strict=True):
            contract.inputs.append(Tensor(name, dtype, [size.text for size in shape]))
            contract.fixed += [
                FixedDim(name, axis, size.value, "the exported program has it fixed")
                for axis, size in enumerate(shape)
                if size.value is not None
            ]
        for name, shape, dtype in zip(core.output_names, core.output_shapes, core.output_dtypes, strict=True):
            contract.outputs.append(Tensor(name, dtype, [size.text for size in shape]))
        contract.assumptions = merged(core.assumptions)
        contract.ignored = list(core.ignored_inputs)
        contract.written = list(core.written_inputs)
        contract.notes.append(f"from a program that torch.export {core.torch_version} made")
        return contract

    def verify(self, staged: Any, contract: Contract) -> list[dict[str, Any]]:
        with self.progress.stage("verify", "verifying in ONNX Runtime at other sizes"):
            self.open_program()
            core = self.core
            example = self.example()
            calls: list[Any] = [example]  # with what a Call has of it
            try:
                verification = ProgramVerification(
                    self.module(example), calls, core.sizes, list(core.input_names), list(core.output_names),
                    contract, self.options.tolerance, self.job.path, allow_random=self.options.allow_random,
                    staged=staged.path, open=partial(OnnxSession, seconds=self.patience),
                )  # fmt: skip
                verification.seconds = self.patience
                return verification.run()
            except _core.FairleadError:
                raise
            except TookTooLong:
                raise _core.InvalidInput(
                    f"[export] Expected a program of this size to run within {self.patience:.0f} s, got one that takes "
                    "longer, or has no end. Pass verify=False to convert it without a check."
                ) from None
            except Exception as error:  # a file may hold a program that does not run
                raise_if_memory_lacks(error)
                raise _core.InvalidInput(
                    f"[export] Expected a program that runs, but it raised {type(error).__name__}: "
                    f"{first_line(error)}. Pass verify=False to convert it without a check."
                ) from error

    @property
    def patience(self) -> float | None:
        """Seconds that a call of a stranger's program may take; None for a program of the user's own."""
        own = not isinstance(self.job.model, (str, os.PathLike))
        return None if own else seconds_for(os.fsdecode(self.job.model))

    def module(self, example: ProgramCall) -> torch.nn.Module:
        """The program as a module that checks its guards; without them where they refuse the program's own example
        (a guard on the tensor that the example was a view of).
        """
        with register_flattening_functions(), quiet(), torch.no_grad():
            module: torch.nn.Module = self.program.module()
            state = ModelState(module)  # its buffers are the program's own
            args, kwargs = example.with_tensors([t.clone() for t in example.tensors])
            try:
                with at_most(self.patience):
                    module(*args, **kwargs)
            except (AssertionError, AttributeError, TypeError):
                module = self.program.module(check_guards=False)
            finally:
                state.restore()
            return module

    def example(self) -> ProgramCall:
        """The program's own example; where it has none, made up at the sizes it was exported with."""
        program, core = self.program, self.core
        spec = program.call_spec.in_spec
        with register_flattening_functions():
            leaves = None if program.example_inputs is None else pytree.tree_leaves(program.example_inputs)
        if leaves is None:
            sizes = core.sizes.sizes_at([max(1, e) for e in core.examples])
            refuse_large(sizes)
            made = [made_up(list(s), BY_NAME[d]) for s, d in zip(sizes, core.input_dtypes, strict=True)]
            leaves = [made[number] if number >= 0 else None for number in core.user_inputs]
        elif isinstance(self.job.model, (str, os.PathLike)):  # a few bytes may be expanded to any size
            refuse_large([t.shape for t in leaves if isinstance(t, torch.Tensor)], os.path.getsize(self.job.model))
        return ProgramCall(core, spec, leaves)


def refuse_large(shapes: Sequence[Sequence[int]], stored: int = 0) -> None:
    count = sum(math.prod(shape) for shape in shapes)
    if count > MOST_ELEMENTS + stored:
        raise _core.InvalidInput(
            f"[export] Expected a program whose inputs have at most {MOST_ELEMENTS:,} elements, got {count:,}. "
            "Pass verify=False to convert it without a check."
        )


def made_up(sizes: list[int], dtype: torch.dtype) -> torch.Tensor:
    """Random numbers; integers are 0 and 1, which most models take as ids, positions and masks."""
    generator = torch.Generator().manual_seed(0)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.rand(sizes, generator=generator).to(dtype)
    return torch.randint(0, 2, sizes, generator=generator).to(dtype)
