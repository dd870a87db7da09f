"""fairlead.export to ONNX: lowered and streamed by the core, run in ONNX Runtime. Programs of torch.export too."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from fairlead import _core
from fairlead._core import Discrepancy, FairleadError, InvalidInput, ReadAhead
from fairlead.base.errors import caused
from fairlead.base.memory import free_memory, raise_if_memory_lacks
from fairlead.base.plain_json import plain_json
from fairlead.contract import SHARED_CACHE, Contract, Function, Fusion
from fairlead.experiment.job import Job
from fairlead.experiment.result import ExportResult
from fairlead.options import check_request
from fairlead.programs.export import ProgramExport
from fairlead.quantize import Kept, Quantized
from fairlead.report.failure import explain
from fairlead.targets.rounded_cache import Scales, note_rounded, rounded, scales_of
from fairlead.targets.static_cache import note_static
from fairlead.tree.calls import Call, resized, with_other_tensors
from fairlead.verify.ort_values import to_tensor
from fairlead.verify.runtime_check import LARGE, OnnxSession
from fairlead.verify.static_cache import STATIC_CACHE, StaticSession
from fairlead.verify.verification import first_line, nothing_written

PACKED = "packed projections"


class OnnxExport(Job):
    suffix = ".onnx"
    runtime = "ONNX Runtime"
    several = True
    rolls = True
    keeps_numbers = True
    keep_writes = False
    shared: tuple[int, str] | None = None  # layers whose cache is one buffer, or why not
    cache_pairs: Sequence[tuple[str, str]] = ()  # of such a cache: inputs and outputs
    mask, mask_axis = "", 0  # of a static cache: the input that is as long as past and new tokens
    has_integers = False  # the file has quantised weights, whose kernels need them packed

    def checked_path(self, path: str) -> str:
        return check_request(self.model, path, self.options)

    def note_checked(self, contract: Contract, record: str) -> None:
        for each in (self.made["model"], self.staged):
            each.add_metadata("fairlead.checked", contract.verified)
            each.add_metadata("fairlead.report", record)

    def make(self, program: Any, contract: Contract) -> Any:
        with self.progress.stage("lower", "lowering to ONNX"):
            self.program = program
            model = self.lowered(program) if self.options.stored is None else self.kept(program, contract)
            if self.options.fused_for is not None:
                self.note_fused(model, contract)
            if self.options.static_cache:
                note_static(contract, self.shared or (0, ""), dict(self.cache_pairs))
                if self.mask:
                    facts = {"pairs": dict(self.cache_pairs), "mask": self.mask, "axis": self.mask_axis}
                    model.add_metadata(STATIC_CACHE, plain_json(facts))
            self.fold(model, contract)
            model.add_metadata("fairlead.contract", contract.text(checked=False))
        self.made = {
            "nodes": model.node_count, "operators": model.operators, "opset": self.options.opset, "model": model,
        }  # fmt: skip
        with self.progress.stage("write", f"writing {self.path}"):
            return model.write(self.path, self.options.external_data, self.options.shared_weights)

    def fold(self, model: Any, contract: Contract) -> None:
        """Repeated modules become functions of the file, where that was asked for."""
        if self.options.functions:
            modules = self.model.named_modules() if isinstance(self.model, torch.nn.Module) else ()
            rows = model.fold_functions({name: type(module).__name__ for name, module in modules})
            contract.functions = [Function(*row) for row in rows]

    def lowered(self, program: Any) -> Any:
        """Without fusions that do not take the sizes of an example."""
        options = self.options
        joined = len(self.experiment.programs) > 1  # then it has bounds of its own
        bounds = [] if joined else self.experiment.bounds(0)
        while True:
            target = options.target(list(self.left_out))
            model = program.lower(options.opset, target, bounds, options.shared_weights)
            refused = {kind: sizes for sizes in self.example_sizes() for kind in model.fusions_refused_at(sizes)}
            if not refused:
                if options.adapter is not None:
                    model.default_inputs(options.adapter.defaults)
                if options.static_cache:
                    *found, self.mask, self.mask_axis = model.static_cache()
                    self.shared, self.cache_pairs = (found[0], found[1]), model.cache_pairs
                elif options.cache != "joined":
                    self.shared, self.cache_pairs = model.share_cache(), model.cache_pairs
                return model
            requires = dict(model.fusion_requirements)
            for kind, sizes in refused.items():
                at = ", ".join(f"{name} = {size}" for name, size in sizes.items())
                self.left_out[kind] = f"it is for {requires[kind]}, and an example has {at}"

    def example_sizes(self) -> list[dict[str, int]]:
        """Of the calls that somebody gave, by symbol."""
        return [] if self.options.own_examples else [self.sizes_of(call) for call in self.calls]

    def sizes_of(self, call: Call) -> dict[str, int]:
        return {name: call.tensor(self.call.names[leaf]).shape[axis] for name, (leaf, axis) in self.places.items()}

    def checked_calls(self) -> list[Call]:
        """The examples; our own at sizes that the file takes."""
        return [self.cut(call) for call in self.calls] if self.options.own_examples else self.calls

    def cut(self, call: Call) -> Call:
        sizes = self.sizes_of(call)
        taken = self.within(sizes)
        if taken == sizes:
            return call
        shapes = self.probed.sizes_at([taken[symbol.name] for symbol in self.probed.symbols])
        return with_other_tensors(call, [resized(t, list(s)) for t, s in zip(call.tensors, shapes, strict=True)])

    def note_fused(self, model: Any, contract: Contract) -> None:
        requires = dict(model.fusion_requirements)
        rows = {kind: Fusion(kind, count, refused, requires.get(kind)) for kind, count, refused in model.fusions}
        rows |= {kind: Fusion(kind, 0, {why: 1}) for kind, why in self.left_out.items() if kind != _core.PLAIN_ORDER}
        if self.shared is not None:
            layers, why = self.shared
            rows[SHARED_CACHE] = Fusion(SHARED_CACHE, layers, {why: 1} if why else {})
        contract.fused = list(rows.values())
        contract.required += requires.values()

    # ---- quantised weights --------------------------------------------------------------------------

    def kept(self, program: Any, contract: Contract, rounded: bool = False) -> Any:
        """With weights as the checkpoint stores them; `rounded`: activations in int8."""
        while True:
            model = self.lowered(program)
            found, mixed = model.keep(self.options.stored, rounded, os.cpu_count() or 1)
            if not mixed or PACKED in self.left_out:
                contract.quantized = Kept(**found, outputs={})
                self.has_integers = True
                return model
            self.left_out[PACKED] = "the checkpoint holds queries, keys and values in different formats"

    def quantized(self, contract: Contract) -> Any:
        how = self.options.quantize
        assert how is not None
        model = self.lowered(self.program)
        runtime = self.options.fused_for
        found = model.quantize(
            how.bits, how.block, how.symmetric, how.search, how.head, runtime is not None, how.activations == "int8",
            os.cpu_count() or 1, runtime.number() if runtime is not None else 0,
        )  # fmt: skip
        words = f"int{how.bits} in blocks of {how.block}" + ("" if how.symmetric else " with zero points")
        words += ", activations in int8" if how.activations == "int8" else ""
        contract.quantized = Quantized(words, **found, outputs={})
        return model

    def finish(self, contract: Contract) -> None:
        """The file is right: the same again with what loses something, measured against it."""
        if self.options.adapter is not None and self.options.verify:
            contract.verified += f"; {self.options.adapter.finish(self, contract)}"
        if self.options.placed is not None:
            deep = self.options.verify or bool(self.options.checked)
            contract.verified += f"; {self.options.placed.check_file(self.staged.path, deep)}"
        rounds = self.options.stored is not None and self.options.stored_activations == "int8"
        narrow = self.options.cache == "int8" and self.shared is not None and self.shared[0] > 0
        if self.options.quantize is None and not rounds and not narrow:
            return
        exact = self.run_example() if self.options.verify else None
        with self.progress.stage("quantize", "quantising"):
            scales = scales_of(self, contract) if narrow else {}
            if self.options.quantize is not None:
                model = self.quantized(contract)
            elif self.options.stored is not None:
                model = self.kept(self.program, contract, rounds)
            else:
                model = self.lowered(self.program)
            if scales:
                note_rounded(model, contract, scales)
            self.fold(model, contract)
        self.discard()
        self.opened = ("", None)
        self.has_integers = True
        self.staged = model.write(self.path, self.options.external_data, self.options.shared_weights)
        if exact is not None:
            contract.quantized = replace(contract.quantized, **measured_by(exact, self.run_example(scales)))
        # Its metadata is that of the file that was checked, and what is known since.
        for each in (model, self.staged):
            each.add_metadata("fairlead.contract", contract.text(checked=False))
        self.made |= {"nodes": model.node_count, "operators": model.operators, "model": model}

    def run_example(self, scales: Scales | None = None) -> dict[str, Any]:
        """`scales`: of a cache in int8."""
        call, known = self.checked_calls()[0], scales or {}
        feeds = dict(zip(self.input_names, call.tensors, strict=True))
        feeds |= {name: rounded(feeds[name], known[name]) for name in feeds if name in known}
        try:
            values = self.open_once(self.staged.path).run(feeds)
        except Exception as error:
            raise_if_memory_lacks(error)
            cause = f"Expected a file that {self.runtime} runs, got: {first_line(error)}"
            raise caused(Discrepancy(f"[quantize] {cause}. {nothing_written(self.path)}"), cause) from error
        found = dict(zip(self.driver.programs[0].names, map(to_tensor, values), strict=True))
        return found | {name: found[name].float() * known[name] for name in found if name in known}

    # ---- fusions that differ ------------------------------------------------------------------------

    def suspects(self) -> list[str]:
        model = self.made["model"]
        return [kind for kind, count, _ in model.fusions if count] + [_core.PLAIN_ORDER] * (model.plain_orders > 0)

    def within(self, values: dict[str, int]) -> dict[str, int]:
        """Sizes that the fused operators take: one of these is 1 instead, not always the same."""
        model = self.made["model"]
        if not model.fusions_refused_at(values):
            return values
        fewer = [values | {name: 1} for name in values if not model.fusions_refused_at(values | {name: 1})]
        return fewer[sum(values.values()) % len(fewer)] if fewer else values

    def open(self, path: str) -> OnnxSession:
        weights = self.session.weightless.bytes if self.has_begun else self.staged.external_bytes
        packs = self.has_integers or max(weights, os.path.getsize(path)) < LARGE
        # It begins before the session is made, while eager computes the first outputs.
        data = os.path.join(os.path.dirname(path), os.path.basename(self.staged.external_path))
        ahead = ReadAhead(data) if 0 < self.staged.external_bytes < free_memory() else None
        session: OnnxSession
        if self.mask:
            session = StaticSession(path, dict(self.cache_pairs), self.mask, self.mask_axis, packs=packs)
        else:
            session = OnnxSession(path, packs=packs)
        session.ahead = ahead
        return session

    def run_program(self, model: torch.nn.Module | None) -> ExportResult:
        """The second way in: a program that torch.export made, or is asked to make."""
        if self.options.fused_for is not None or self.options.quantize is not None:
            what = "target" if self.options.fused_for is not None else "quantize"
            raise InvalidInput(
                f"[export] Expected a model that is observed with {what}, got a program of torch.export. Export the "
                f"model itself, or leave {what} out."
            )
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


def measured_by(floats: dict[str, torch.Tensor], got: dict[str, torch.Tensor]) -> dict[str, Any]:
    """How far outputs are off, in proportion to the largest value, and whether logits have the same largest place."""
    outputs = {}
    for name, expected in floats.items():
        if expected.is_floating_point() and expected.numel():
            off = (expected.double() - got[name].double()).abs().max()
            outputs[name] = float(off / expected.double().abs().max().clamp(min=1e-30))
    agreement = None
    if "logits" in outputs and floats["logits"].dim() > 1:
        same = floats["logits"].argmax(-1) == got["logits"].argmax(-1)
        agreement = float(same.double().mean())
    return {"outputs": outputs, "agreement": agreement}
