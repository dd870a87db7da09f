"""What an export can be asked for, in one place, and what can be refused before any work is done: one sentence each."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import torch

from fairlead._core import InvalidInput, SharedWeights, Staging, Unsupported, WriteError
from fairlead.report.sources import note_exported

# What ONNX Runtime 1.31 runs best on CPU: Gelu is an operator, and its fusions know every form below 21.
DEFAULT_OPSET = 20
SMALLEST_OPSET = 18
# ONNX Runtime -> the newest opset it runs. An unknown version is taken for the one before it.
NEWEST_OPSETS = {(1, 20): 21, (1, 21): 22, (1, 22): 23, (1, 23): 23, (1, 24): 24, (1, 25): 25, (1, 31): 26}


PACKED = ("torch.ao.nn.quantized.", "torch.ao.nn.intrinsic.quantized.", "torch.nn.quantized.")


@dataclass(frozen=True)
class Options:
    """What fairlead.export takes beside model, inputs and path; its docstring says what each means. Configurations of
    exporters and the command line are turned into one of these."""

    dynamic_shapes: Any = None
    input_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None
    opset: int = DEFAULT_OPSET
    external_data: str = "auto"
    verify: bool = True
    strict: bool = False
    tolerance: float | None = None
    allow_random: bool = False
    max_size: Mapping[str, int] | None = None
    optimize: bool = True
    notes: Sequence[str] = ()
    shared_weights: SharedWeights | None = None

    def given(self, names: Sequence[str]) -> list[str]:
        """Those of `names` that are not what they are by default."""
        return [name for name in names if getattr(self, name) != getattr(type(self), name)]


def check_request(model: Any, path: Any, options: Options) -> str:
    """Refuses what cannot work; the path as a string. `model` is None for a program: its reader says what is wrong."""
    if model is not None:
        check_model(model)
    check_opset(options.opset)
    if options.external_data not in ("auto", "always", "never"):
        raise InvalidInput(
            f'[export] Expected external_data "auto", "always" or "never", got {options.external_data!r}.'
        )
    check_tolerance(options.tolerance)
    for option in ("input_names", "output_names"):
        check_names(option, getattr(options, option))
    both = set(options.input_names or ()) & set(options.output_names or ())
    if both:
        raise InvalidInput(
            f"[export] Expected different names for inputs and outputs, got {sorted(both)[0]!r} in both. Rename one."
        )
    path = check_path(path)
    if options.verify:
        check_runtime()
    return path


def check_model(model: Any) -> None:
    if not isinstance(model, torch.nn.Module):
        what = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        advice = "Make an object of it first." if isinstance(model, type) else "Wrap functions in a module."
        raise InvalidInput(f"[export] Expected a torch.nn.Module, got {what}. {advice}")
    training = next((name for name, m in model.named_modules() if m.training), None)
    if training is not None:
        raise InvalidInput(
            f"[export] Expected a model in eval mode, got {training or type(model).__name__} in training mode. "
            "Call model.eval() first: dropout and batch norm behave differently in training."
        )
    for name, module in model.named_modules():
        where = type(module).__module__
        if where.startswith(PACKED) and ".reference." not in where:
            raise Unsupported(
                f"[export] Expected modules that compute with tensors, got {name or 'the model'}, a quantized "
                f"{type(module).__name__} of torch.ao: its weights are packed for one kernel of this CPU. Export the "
                "float model and quantize the file (onnxruntime.quantization), or quantize with torchao's PT2E flow, "
                "whose operators a file has."
            )
    note_exported(model)


def check_tolerance(tolerance: Any) -> None:
    if tolerance is not None and not (isinstance(tolerance, (int, float)) and tolerance >= 0):
        raise InvalidInput(f"[export] Expected a tolerance of 0 or more, or None, got {tolerance!r}.")


def check_opset(opset: Any) -> None:
    newest = newest_opset()
    if isinstance(opset, bool) or not isinstance(opset, int) or not SMALLEST_OPSET <= opset <= newest:
        raise InvalidInput(
            f"[export] Expected an opset from {SMALLEST_OPSET} to {newest}, got {opset!r}. "
            f"Leave it out for {DEFAULT_OPSET}; newer ones need a newer ONNX Runtime."
        )


def newest_opset() -> int:
    """The newest opset that the installed ONNX Runtime runs; without one, the newest that is known."""
    try:
        version = tuple(int(part) for part in metadata.version("onnxruntime").split(".")[:2])
    except (metadata.PackageNotFoundError, ValueError):
        return max(NEWEST_OPSETS.values())
    known = [opset for release, opset in NEWEST_OPSETS.items() if release <= version]
    return known[-1] if known else DEFAULT_OPSET


def check_names(option: str, names: Any) -> None:
    if names is None:
        return
    if isinstance(names, str) or not isinstance(names, (list, tuple)):
        raise InvalidInput(f"[export] Expected {option} as a list of names, got {names!r}. Write [{names!r}] for one.")
    wrong = next((name for name in names if not isinstance(name, str) or not name), None)
    if wrong is not None:
        raise InvalidInput(f"[export] Expected {option} made of names, got {wrong!r} in it.")
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise InvalidInput(f"[export] Expected different {option}, got {twice!r} twice. Rename one.")


def check_path(path: Any) -> str:
    """The path is tried with a folder beside it, as the writer will: a mistake costs no recording then."""
    try:
        path = os.fsdecode(path)
    except TypeError:
        raise InvalidInput(f"[export] Expected path as a string or os.PathLike, got {type(path).__name__}.") from None
    if not path:
        raise WriteError(
            "[export] Could not write '': the path is empty. Give the name of a file, such as 'model.onnx'."
        )
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path) or path.endswith(os.sep):
        raise WriteError(
            f"[export] Could not write '{path}': it is a folder. Give the name of a file in it, such as 'model.onnx'."
        )
    if os.path.exists(path) and not os.path.isfile(path):
        raise WriteError(
            f"[export] Could not write '{path}': it is a device, a pipe or a socket. Give the name of a file."
        )
    if not os.path.isdir(folder):
        what = "is a file" if os.path.exists(folder) else "does not exist"
        raise WriteError(f"[export] Could not write '{path}': the folder {folder} {what}. Create it first.")
    Staging(path, "export").discard()  # also removes what a process that was killed left here
    return path


def check_runtime() -> None:
    try:
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise InvalidInput(
            f"[export] Expected ONNX Runtime for verification, but it cannot be imported ({error}). "
            "Install it with pip install onnxruntime, or pass verify=False."
        ) from None
