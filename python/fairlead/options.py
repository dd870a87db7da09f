"""What an export can be asked for, in one place, and what can be refused before any work is done: one sentence each."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import torch

from fairlead._core import InvalidInput, SharedWeights, Staging, StoredRows, Target, Unsupported, WriteError
from fairlead.base.plain_text import is_text
from fairlead.base.staged import check_name
from fairlead.quantize import Blocks, check_quantize
from fairlead.record.quantized_modules import MODULES, PACKED, is_packed
from fairlead.report.sources import note_exported

# What ONNX Runtime 1.31 runs best on CPU: Gelu is an operator, and its fusions know every form below 21.
DEFAULT_OPSET = 20
SMALLEST_OPSET = 18


CACHES = ("joined", "shared", "int8")
OLDEST_FUSED = 22  # of ONNX Runtime 1.x: before it GroupQueryAttention takes no mask
STATIC_CACHE_OPSET = 24
OLDEST_INT8_CACHE = 31  # whose GroupQueryAttention is known to take one on a CPU


@dataclass(frozen=True)
class OnnxRuntime:
    """ONNX Runtime as the only reader of a file: the file has fused operators that nobody else has.

    provider: whose kernels run it; "cpu" is known.
    version: of what will run it, such as "1.24"; None: what is installed.
    padding: decoders also take prompts whose rows begin at different positions (padded on the left); without it they
        stop there, and are faster.
    cache: of decoders; "joined" makes past and new keys one new tensor in each step, "shared" also takes one buffer for
        both, as long as the longest text, so that nothing is copied. The Generator and onnxruntime-genai do so then.
        "int8" is such a buffer of integers, a quarter as large, and what that changes is measured.

    >>> fairlead.export(model, inputs, "model.onnx", target=fairlead.OnnxRuntime())
    """

    provider: str = "cpu"
    version: str | None = None
    padding: bool = False
    cache: str = "joined"

    def __post_init__(self) -> None:
        if self.provider != "cpu":
            raise InvalidInput(
                f'[OnnxRuntime] Expected the provider "cpu", got {self.provider!r}. Leave the target out for a file '
                "that other providers run."
            )
        if not isinstance(self.padding, bool):
            raise InvalidInput(f"[OnnxRuntime] Expected padding as True or False, got {self.padding!r}.")
        if self.cache not in CACHES:
            raise InvalidInput(f'[OnnxRuntime] Expected the cache "joined", "shared" or "int8", got {self.cache!r}.')
        if self.version is not None and self.number() < OLDEST_FUSED:
            raise InvalidInput(
                f"[OnnxRuntime] Expected ONNX Runtime 1.{OLDEST_FUSED} or newer for fused operators, got "
                f"{self.version!r}. Leave the target out for a file that older ones run."
            )

        if self.cache == "int8" and 0 < self.number() < OLDEST_INT8_CACHE:
            raise InvalidInput(
                f"[OnnxRuntime] Expected ONNX Runtime 1.{OLDEST_INT8_CACHE} or newer for a cache in int8, got "
                f'1.{self.number()}. Use "shared".'
            )

    def number(self) -> int:
        """24 for 1.24; 0 where nothing is known."""
        if self.version is None:
            return installed_runtime()
        # A number is no version: 1.30 is 1.3.
        major, _, rest = self.version.partition(".") if isinstance(self.version, str) else ("", "", "")
        minor = rest.partition(".")[0]
        if major != "1" or not minor.isdigit():
            raise InvalidInput(f'[OnnxRuntime] Expected a version such as "1.24", or None, got {self.version!r}.')
        return int(minor)


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
    runtime: str = "onnxruntime-cpu"
    fused_for: OnnxRuntime | None = None
    quantize: Blocks | None = None
    stored: StoredRows | None = None  # of a checkpoint whose weights are kept
    stored_activations: str = "float32"
    own_examples: bool = False  # nobody gave the calls: a fused file need not take their sizes
    placed: Any = None  # weights that stay in files: the model is recorded without them
    checkpoint: Any = None  # of a model on meta
    checked: str = ""  # what was checked in place of the file, which is not run
    lora: str | None = None
    functions: bool = False
    static_cache: bool = False
    adapter: Any = None  # what `lora` makes of the model (fairlead.adapters)

    @property
    def cache(self) -> str:
        if self.static_cache:
            return "static"
        return "joined" if self.fused_for is None else self.fused_for.cache

    def target(self, left_out: Sequence[str] = ()) -> Target:
        """For the core: what is known of the runtime of an ONNX file; fusions without those of kinds left out."""
        if self.fused_for is None:
            return Target(self.runtime, installed_runtime(), self.optimize, left_out=list(left_out))
        return Target(
            self.runtime, self.fused_for.number(), self.optimize, True, self.fused_for.padding, list(left_out)
        )

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
    check_fused(options)
    if not isinstance(options.functions, bool):
        raise InvalidInput(f"[export] Expected functions as True or False, got {options.functions!r}.")
    check_quantize(options.quantize, options.fused_for is not None, options.opset)
    options.target()  # refuses a runtime that is not known
    for option in ("input_names", "output_names"):
        check_names(option, getattr(options, option))
    if isinstance(options.notes, str) or not all(map(is_text, options.notes)):
        raise InvalidInput(f"[export] Expected notes as a list of texts, got {options.notes!r:.80}.")
    both = set(options.input_names or ()) & set(options.output_names or ())
    if both:
        raise InvalidInput(
            f"[export] Expected different names for inputs and outputs, got {sorted(both)[0]!r} in both. Rename one."
        )
    checked = check_path(path)
    if options.verify:
        check_runtime()
    return checked


def check_fused(options: Options) -> None:
    target = options.fused_for
    if target is None:
        return
    if not isinstance(target, OnnxRuntime):
        raise InvalidInput(f"[export] Expected target as fairlead.OnnxRuntime(...) or None, got {target!r}.")
    if options.runtime != "onnxruntime-cpu" or not options.optimize:
        what = f'runtime="{options.runtime}"' if options.optimize else "optimize=False"
        raise InvalidInput(f"[export] Expected a fused target alone, got {what} as well. Leave one of them out.")
    if 0 < target.number() < OLDEST_FUSED:
        raise InvalidInput(
            f"[export] Expected ONNX Runtime 1.{OLDEST_FUSED} or newer for fused operators, got 1.{target.number()}. "
            "Install a newer one, or leave the target out."
        )


def check_cache(cache: Any, fused: bool, opset: int) -> bool:
    """Whether it is static."""
    if cache not in (None, "joined", "static"):
        raise InvalidInput(
            f'[export] Expected cache "joined" or "static", got {cache!r}. fairlead.OnnxRuntime(cache=...) has others.'
        )
    if cache != "static":
        return False
    if fused:
        raise InvalidInput(
            "[export] Expected a portable file with a static cache, got a target. Use its own: "
            'fairlead.OnnxRuntime(cache="shared").'
        )
    if opset < STATIC_CACHE_OPSET:
        raise InvalidInput(
            f"[export] Expected opset {STATIC_CACHE_OPSET} or newer for a static cache, which TensorScatter writes, "
            f"got {opset}. Pass opset={STATIC_CACHE_OPSET}."
        )
    return True


def in_training(model: torch.nn.Module, name: str = "") -> str | None:
    """The first module in training mode. What torch.export made has no modes (its `eval` refuses), a frozen script has
    no flag, and quantized modules compute in one way."""
    waiting = [(model, name)]
    while waiting:  # levels may be many
        module, at = waiting.pop()
        if "eval" in vars(module) or str(type(module).__module__).startswith(PACKED):
            continue
        if getattr(module, "training", False):
            return at
        inner = [(child, f"{at}.{child_name}".lstrip(".")) for child_name, child in module.named_children()]
        waiting += reversed(inner)
    return None


def check_modules(model: Any) -> None:
    """What nobody can go through, call or name."""
    if not isinstance(model, torch.nn.Module):
        return
    try:
        names = [name for name, _ in model.named_modules()]
        names += [name for name, _ in (*model.named_parameters(), *model.named_buffers())]
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        raise InvalidInput(
            f"[export] Expected modules that Python can put into a set, as PyTorch does, got one that cannot be "
            f"({error}). Give its class __hash__."
        ) from error
    except RecursionError:
        raise InvalidInput(
            "[export] Expected modules that are nested some hundred levels deep at most, got deeper ones."
        ) from None
    wrong = next((name for name in names if not is_text(name)), None)
    if wrong is not None:
        raise InvalidInput(f"[export] Expected names of modules and weights that are texts, got {wrong!a}. Rename it.")
    if inspect.iscoroutinefunction(model.forward):
        raise InvalidInput(
            f"[export] Expected a forward that computes, got that of {type(model).__name__}, which is a coroutine "
            "(async def). Wrap the model in one that computes."
        )


def check_model(model: Any) -> None:
    if not isinstance(model, torch.nn.Module):
        what = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        advice = "Make an object of it first." if isinstance(model, type) else "Wrap functions in a module."
        raise InvalidInput(f"[export] Expected a torch.nn.Module, got {what}. {advice}")
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if torch.nn.parameter.is_lazy(tensor):
            raise InvalidInput(
                f"[export] Expected a model whose parameters have sizes, got {name}, which has none yet. "
                "Call the model once: it finds them."
            )
    training = in_training(model)
    if training is not None:
        raise InvalidInput(
            f"[export] Expected a model in eval mode, got {training or type(model).__name__} in training mode. "
            "Call model.eval() first: dropout and batch norm behave differently in training."
        )
    for name, module in model.named_modules():
        if is_packed(module) and type(module).__name__ not in MODULES:
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
    return int(Target(version=installed_runtime()).newest_opset)


def installed_runtime() -> int:
    """22 for ONNX Runtime 1.22; 0 where there is none."""
    try:
        return int(metadata.version("onnxruntime").split(".")[1])
    except (metadata.PackageNotFoundError, ValueError, IndexError):
        return 0


def check_names(option: str, names: Any) -> None:
    if names is None:
        return
    if isinstance(names, str) or not isinstance(names, (list, tuple)):
        raise InvalidInput(f"[export] Expected {option} as a list of names, got {names!r}. Write [{names!r}] for one.")
    wrong = next((name for name in names if not is_text(name) or not name), None)
    if wrong is not None:
        raise InvalidInput(f"[export] Expected {option} made of names, got {wrong!r} in it.")
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise InvalidInput(f"[export] Expected different {option}, got {twice!r} twice. Rename one.")


def check_path(given: Any) -> str:
    """The path is tried with a folder beside it, as the writer will: a mistake costs no recording then."""
    try:
        path = os.fsdecode(given)
    except TypeError:
        raise InvalidInput(f"[export] Expected path as a string or os.PathLike, got {type(given).__name__}.") from None
    if not path:
        raise WriteError(
            "[export] Could not write '': the path is empty. Give the name of a file, such as 'model.onnx'."
        )
    check_name(path, "export")
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
