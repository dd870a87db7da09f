"""fairlead.export: what is asked for, checked and handed to the target that the path names."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from fairlead import _core
from fairlead.adapters.export import adapted
from fairlead.base.alone import alone
from fairlead.elsewhere.one_device import made_here
from fairlead.elsewhere.stand_ins import where_it_is
from fairlead.experiment.job import Job
from fairlead.experiment.progress import Progress
from fairlead.experiment.result import ExportResult
from fairlead.options import DEFAULT_OPSET, OnnxRuntime, Options, check_cache, check_modules
from fairlead.programs.export import check_tracer, is_program
from fairlead.quantize import Blocks
from fairlead.record.control_flow import ControlFlow
from fairlead.targets.onnx import OnnxExport


def export(
    model: Any,
    inputs: Any = None,
    path: str | os.PathLike[str] | None = None,
    *,
    tracer: str = "observe",
    dynamic_shapes: Any = None,
    input_names: list[str] | None = None,
    output_names: list[str] | None = None,
    opset: int = DEFAULT_OPSET,
    external_data: str = "auto",
    verify: bool = True,
    strict: bool = False,
    tolerance: float | None = None,
    allow_random: bool = False,
    max_size: Mapping[str, int] | None = None,
    optimize: bool = True,
    notes: Sequence[str] = (),
    shared_weights: _core.SharedWeights | None = None,
    runtime: str = "onnxruntime-cpu",
    target: OnnxRuntime | None = None,
    quantize: Blocks | None = None,
    lora: str | None = None,
    functions: bool = False,
    cache: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[str], None] = False,
) -> ExportResult:
    """Exports a PyTorch module with every dimension dynamic that the model lets vary: to ONNX, or by the suffix of the
    path to a torch.export.ExportedProgram (.pt2) or to ExecuTorch (.pte).

    model: the module, in eval mode, wherever it is: what accelerate offloaded or is on another device is streamed from
        there, and the file is checked on the CPU; or a program of torch.export, or the name of a .pt2 file with one:
        then export(program, path), with no inputs.
    inputs: one example call (a tuple of positional or a dict of named arguments), or a list of several.
    path: the .onnx file; large weights go to a file beside it. None leaves no file: the result's model can be written.
    tracer: "observe" runs the model at several sizes and records it; "torch.export" traces it symbolically first.
    dynamic_shapes: as torch.export takes them; None finds out by itself. What is not mentioned stays fixed.
    input_names, output_names: names of the file's inputs and outputs, in order; by default the flat paths of the
        tensors (`input_ids`, `past_key_values.0.key`, `present.0.key`, `logits`).
    opset: 18 or newer, up to what the installed ONNX Runtime supports.
    external_data: "auto", "always" or "never".
    verify: run the file in ONNX Runtime and compare with eager at sizes that were never probed.
    strict: an assumption (a value the model read and that never varied) is an error.
    tolerance: largest difference allowed, in proportion to an output's largest value; None: 1e-4 for float32, by dtype.
    allow_random: outputs that differ from run to run, because the model draws random numbers, are no error: the file
        draws anew at each run, and of such outputs only shapes and types are checked.
    max_size: the largest size of a symbol of the contract, {"sequence": 2048}: a bound for the contract and for formats
        that plan memory (.pte).
    optimize: simplify and fuse the program before it is lowered.
    notes: sentences for the contract, about what was done to the model before.
    shared_weights: what files written before in the same folder hold; this one refers to them, and adds its own.
    runtime: what will execute the file. "onnxruntime-cpu" computes in another type where its kernels lack one (bfloat16
        in float32) and avoids what they do wrong; "portable" keeps every type that the ONNX standard has and takes its
        word, for other providers: with verify=False where the installed ONNX Runtime cannot run it.
    target: fairlead.OnnxRuntime() writes a file for it alone, with operators that only it has (docs/fast_files.md).
    quantize: fairlead.Int4() or fairlead.Int8() stores the weights of linear layers so; the file of floats is verified,
        and the quantised one measured against it.
    lora: "inputs" makes the active LoRA adapter of a model (of PEFT, or of the same structure) inputs of any rank, and
        writes it to a file with the suffix .onnx_adapter beside the .onnx file, for onnxruntime.LoraAdapter; "merge"
        adds it to the weights. None: the model as it stands.
    functions: modules of one list that compute the same (the layers of a transformer) stand in the file once, as a
        function of ONNX that is called for each of them.
    cache: of a decoder in a portable file: "joined" makes past and new keys one new tensor, "static" writes new ones
        into a buffer that is as long as the longest text (opset 24).
    checkpoint: of a model on meta, which has no values: a safetensors file, or a folder of them, with its tensors by
        their names.
    progress: True prints the stages, a function is called with each.

    >>> result = fairlead.export(model, {"input_ids": ids}, "model.onnx")
    >>> print(result.contract)
    """
    options = Options(
        dynamic_shapes=dynamic_shapes, input_names=input_names, output_names=output_names, opset=opset,
        external_data=external_data, verify=verify, strict=strict, tolerance=tolerance, allow_random=allow_random,
        max_size=max_size, optimize=optimize, notes=notes, shared_weights=shared_weights,
        runtime=runtime, fused_for=target, quantize=quantize, lora=lora, functions=functions,
        checkpoint=checkpoint, static_cache=check_cache(cache, target is not None, opset),
    )  # fmt: skip
    return export_with(options, model, inputs, path, tracer, progress)


@alone
def export_with(
    options: Options, model: Any, inputs: Any = None, path: str | os.PathLike[str] | None = None,
    tracer: str = "observe", progress: bool | Callable[[str], None] = False,
) -> ExportResult:  # fmt: skip
    """fairlead.export with its options in one object."""
    show = (
        progress if callable(progress) else (lambda what: print(f"fairlead: {what}", flush=True)) if progress else None
    )
    check_tracer(tracer)
    model = getattr(model, "_orig_mod", model)  # what torch.compile was given
    if isinstance(model, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
        model = model.module
    if is_program(model, inputs, path):
        if options.lora is not None:
            raise _core.InvalidInput(
                f"[export] Expected a model with lora={options.lora!r}, got a program of torch.export. Export the "
                "model itself, or leave lora out."
            )
        return OnnxExport(model, None, inputs if path is None else path, options, Progress(show)).run_program(None)
    target: Any = target_of(path)
    asked = (("target", options.fused_for), ("quantize", options.quantize), ("functions", options.functions or None))
    for name, given in asked:
        if target is not OnnxExport and given is not None:
            raise _core.InvalidInput(
                f"[export] Expected a path that ends in .onnx with {name}, got {str(path)!r}. Leave {name} out."
            )
    if options.lora == "inputs" and (target is not OnnxExport or tracer != "observe"):
        got = f"tracer={tracer!r}" if target is OnnxExport else repr(str(path))
        raise _core.InvalidInput(
            f"[export] Expected a path that ends in .onnx, and a model that is observed, with lora='inputs', got "
            f"{got}. Leave one of them out."
        )
    check_modules(model)
    with (
        uncompiled(),
        made_here(),
        where_it_is(options, model, inputs, is_lean(options, target, tracer), export_with, show) as (options, inputs),
        adapted(options, model, inputs, path) as (options, inputs),
    ):
        return run_target(target, options, model, inputs, path, tracer, show)


def uncompiled() -> contextlib.AbstractContextManager[Any]:
    """Parts that torch.compile was given run as they are: they would be compiled again for every size that is tried."""
    if "torch._dynamo" not in sys.modules or not hasattr(torch.compiler, "set_stance"):
        return contextlib.nullcontext()
    stance: contextlib.AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    return stance


def is_lean(options: Options, target: Any, tracer: str) -> bool:
    """Whether a file is made by recording alone: then nobody needs the weights until they are written."""
    others = (options.fused_for, options.quantize, options.stored, options.lora)
    return target is OnnxExport and tracer == "observe" and all(each is None for each in others)


def run_target(
    target: Any, options: Options, model: Any, inputs: Any, path: Any, tracer: str, show: Callable[[str], None] | None
) -> ExportResult:
    """By the tracer that was asked for, and by the other one where the model has control flow of its own."""
    result: ExportResult
    if target is not OnnxExport and tracer == "torch.export":  # the program itself is what is asked for
        result = target(model, inputs, path, options, Progress(show), method="torch.export").run()
        return result
    if tracer == "torch.export":
        return OnnxExport(model, inputs, path, options, Progress(show)).run_program(model)
    try:
        result = target(model, inputs, path, options, Progress(show)).run()
        return result
    except ControlFlow:  # torch.cond and its like, which the other tracer keeps
        if options.placed is not None:
            options.placed.read("it has control flow of torch's own")
        if target is not OnnxExport:
            result = target(model, inputs, path, options, Progress(show), method="torch.export").run()
            return result
        try:
            return OnnxExport(model, inputs, path, options, Progress(show)).run_program(model)
        except _core.Unsupported:
            # Some models use them only where they are told that they are traced.
            plain = OnnxExport(model, inputs, path, options, Progress(show))
            plain.plain = True
            try:
                return plain.run()
            except (ControlFlow, _core.FairleadError):
                pass  # the first error says more
            raise


def target_of(path: Any) -> type[Job]:
    """What writes a file of this name: the suffix decides."""
    suffix = os.path.splitext(os.fspath(path))[1].lower() if isinstance(path, (str, os.PathLike)) else ""
    if suffix == ".pt2":
        from fairlead.targets.pt2.export import Pt2Export

        return Pt2Export
    if suffix == ".pte":
        from fairlead.targets.executorch.export import ExecutorchExport

        return ExecutorchExport
    return OnnxExport
