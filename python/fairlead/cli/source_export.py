"""`fairlead export` of any source: a checkpoint goes to a folder, a class or function of one's own to files."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairlead._core import InvalidInput
from fairlead.api import export_with
from fairlead.checkpoint.export import FORMATS, CheckpointExport, export_checkpoint
from fairlead.checkpoint.source import Checkpoint
from fairlead.cli import model_source
from fairlead.experiment.result import ExportResult
from fairlead.options import DEFAULT_OPSET, STATIC_CACHE_OPSET, OnnxRuntime, Options, check_cache
from fairlead.quantize import NAMED, Keep

KEPT = ("verify", "tolerance", "allow_random", "strict", "max_size")  # options of every format


@dataclass
class CommandOptions:
    """What the command line was given."""

    task: str | None = None
    formats: str | None = None
    dtype: str | None = None
    config: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()
    # opset, external_data, for_runtime, quantize, weights, activations,
    # no_verify, tolerance, allow_random, strict, layout, in_place, place, adapter, lora
    export: dict[str, Any] = field(default_factory=dict)

    def of_export(self) -> dict[str, Any]:
        given = dict(self.export)
        given["max_size"] = {name: size for name, size in self.named_dims().items() if "." not in name}
        quantize, activations = given.pop("quantize", None), given.pop("activations", "float32")
        weights = given.pop("weights", None)
        given["quantize"] = NAMED[quantize](activations=activations) if quantize else None
        given["weights"] = Keep(activations) if weights == "keep" else None
        if not quantize and not given["weights"] and activations != "float32":
            raise InvalidInput("[export] Expected --quantize with --activations, got none. Add --quantize int4.")
        cache = given.pop("cache", "joined")
        fused = given.pop("for_runtime", None) or given["weights"]
        if cache == "static":
            given["opset"] = given.get("opset") or STATIC_CACHE_OPSET
            given["cache"] = cache
        elif cache != "joined" and not fused:
            raise InvalidInput(
                f"[export] Expected --for onnxruntime with --cache {cache}, got a portable file. Add it."
            )
        given["target"] = OnnxRuntime(cache="joined" if cache == "static" else cache) if fused else None
        return {
            "verify": not given.pop("no_verify", False), "opset": given.pop("opset", None) or DEFAULT_OPSET, **given,
        }  # fmt: skip

    def named_dims(self) -> dict[str, Any]:
        return model_source.pairs("--dim", self.dims)

    def axes(self) -> tuple[str, ...]:
        """--dim INPUT.AXIS=NAME; without a dot it is SYMBOL=MAX."""
        return tuple(text for text in self.dims if "." in text.partition("=")[0])

    def kinds(self, output: str | None) -> tuple[str, ...]:
        """onnx, pt2, pte: those asked for, else that of the output's name."""
        if self.formats is None:
            ending = (output or "").rpartition(".")[2]
            return (ending,) if ending in FORMATS else ("onnx",)
        kinds = tuple(dict.fromkeys(word.strip() for word in self.formats.split(",") if word.strip()))
        wrong = next((kind for kind in kinds if kind not in FORMATS), None)
        if wrong is not None or not kinds:
            raise InvalidInput(f"[export] Expected --format among {', '.join(FORMATS)}, got '{wrong or self.formats}'.")
        return kinds


@dataclass
class SourceExport:
    checkpoint: CheckpointExport | None = None
    files: list[ExportResult] = field(default_factory=list)

    def report(self, wanted: bool | None) -> None:
        """report.html where it is wanted, and the times beside the files for a later one."""
        from fairlead.cli.report import success_reported
        from fairlead.report import write_report

        if self.checkpoint is None:
            for part in self.files:
                if part.path.endswith(".onnx"):
                    success_reported(part, wanted)
        elif wanted and any(name.endswith(".onnx") for name in self.checkpoint.parts):
            write_report(self.checkpoint.folder)
            self.checkpoint.files = sorted({*self.checkpoint.files, "report.html"})

    def as_dict(self) -> dict[str, Any]:
        if self.checkpoint is None:
            first, *rest = [result_as_dict(result) for result in self.files]
            return first | ({"others": rest} if rest else {})
        found = self.checkpoint
        return {
            "source": found.source, "folder": found.folder, "task": found.task, "architecture": found.architecture,
            "dtype": found.dtype, "worst_difference": found.worst, "files": found.files, "notes": found.notes,
            "timings": found.timings, "parts": {name: result_as_dict(part) for name, part in found.parts.items()},
        }  # fmt: skip


def result_as_dict(result: ExportResult) -> dict[str, Any]:
    return {
        "path": result.path,
        "nodes": result.nodes,
        "operators": result.operators,
        "opset": result.opset,
        "model_bytes": result.model_bytes,
        "external_bytes": result.external_bytes,
        "runs": result.runs,
        "timings": result.timings,
        "contract": dataclasses.asdict(result.contract),
        "discrepancies": result.discrepancies,
    }


def export_source(
    source: str,
    checkpoint: Checkpoint | None,
    output: str | None,
    options: CommandOptions,
    show: Callable[[str], None] | None = None,
) -> SourceExport:
    """`checkpoint` is what find(source) gave."""
    if checkpoint is None:
        return SourceExport(files=of_class(source, output, options, show))
    axes = ("--dim INPUT.AXIS", options.axes())
    for name, given in (("--config", options.config), ("--inputs", options.inputs), axes):
        if given:
            raise InvalidInput(
                f"[export] Expected no {name} for a checkpoint, got '{given[0]}': it is found out from the checkpoint. "
                "For a model of your own use SCRIPT.py:FUNCTION."
            )
    if output is None:
        raise InvalidInput(
            f"[export] Expected a folder to write to, got none. For example: fairlead export {source} out/."
        )
    result = export_checkpoint(
        checkpoint, output, task=options.task, formats=options.kinds(None), dtype=options.dtype, progress=show,
        **options.of_export(),
    )  # fmt: skip
    return SourceExport(result)


def of_class(source: str, output: str | None, options: CommandOptions, show: Any) -> list[ExportResult]:
    layout = options.export.get("layout", "flat")
    in_place = "asked for" if options.export.get("in_place") else None
    asked = (
        ("--task", options.task), ("--layout", layout if layout != "flat" else None), ("--in-place", in_place),
        ("--place", options.export.get("place")), ("--adapter", options.export.get("adapter")),
        ("--lora", options.export.get("lora")),
    )  # fmt: skip
    for name, given in asked:
        if given is not None:
            raise InvalidInput(f"[export] Expected no {name} for {source}, got {given}: it is for checkpoints.")
    kinds = options.kinds(output)
    model, example = model_source.load(source, model_source.pairs("--config", options.config), list(options.inputs))
    output = output or f"model.{kinds[0]}"
    if os.path.isdir(output) or output.endswith(os.sep):
        os.makedirs(output, exist_ok=True)
        output = os.path.join(output, f"model.{kinds[0]}")
    shapes = model_source.named_dims(model, example, options.axes())
    found = []
    for kind in kinds:
        given = options.of_export()
        given.pop("layout", None)
        given.pop("in_place", None)
        given.pop("place", None)
        given.pop("adapter", None)
        given.pop("lora", None)
        if given.pop("weights") is not None:
            raise InvalidInput(f"[export] Expected a checkpoint with --weights keep, got '{source}'. Leave it out.")
        given["fused_for"] = given.pop("target")
        given["static_cache"] = check_cache(given.pop("cache", None), given["fused_for"] is not None, given["opset"])
        if kind != "onnx":
            given = {name: given[name] for name in KEPT if name in given}
        stem, ending = os.path.splitext(output)
        path = output if len(kinds) == 1 else f"{stem if ending[1:] in FORMATS else output}.{kind}"
        found.append(export_with(Options(dynamic_shapes=shapes, **given), model, example, path, progress=show))
    return found
