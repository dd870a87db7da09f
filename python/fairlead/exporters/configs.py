"""The configurations of the exporters: what can be asked for, checked when it is asked.

Fields and defaults are those of transformers.exporters; fields of Fairlead's own are keyword-only and come last.
"""

from __future__ import annotations

import copy
import dataclasses
import difflib
import functools
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from fairlead.exporters.refusals import InvalidKind, InvalidValue

TRACERS = ("observe", "torch.export")
BACKENDS = ("xnnpack", "cuda", "mlx", "portable", None)
METHODS = ("auto", "recorded", "torch.export")
NAMES = ("clients", "transformers")


class ExportFormat(Enum):
    """What a model is exported to."""

    EXECUTORCH = "executorch"
    OPENVINO = "openvino"
    DYNAMO = "dynamo"
    ONNX = "onnx"


if TYPE_CHECKING:  # to a type checker these are dataclasses like any other
    from dataclasses import dataclass as config
else:

    def config(cls: type) -> type:
        """A dataclass whose constructor says which fields there are when it meets one it does not know."""
        cls = dataclass(cls)
        made = cls.__init__

        @functools.wraps(made)
        def init(self, *args, **kwargs):
            if type(self) is cls:
                refuse_unknown(cls, kwargs)
            made(self, *args, **kwargs)

        cls.__init__ = init
        return cls


def refuse_unknown(cls: type, given: Mapping[str, Any]) -> None:
    known = [f.name for f in dataclasses.fields(cls) if f.init]
    unknown = [str(name) for name in given if name not in known]
    if unknown:
        near = [name for name in known if name.startswith(unknown[0])] or difflib.get_close_matches(
            unknown[0], known, 1
        )
        advice = f"Did you mean {near[0]}?" if near else "Leave it out."
        raise InvalidKind(
            f"[{cls.__name__}] Expected fields among {', '.join(known)}, got {', '.join(unknown)}. {advice}"
        )


@config
class ExportConfigMixin:
    """The base of every configuration: turned into a dict and back, iterated as (field, value)."""

    export_format: ExportFormat

    def __post_init__(self) -> None:
        # A string becomes the format it names; names of formats that users register stay strings.
        if isinstance(self.export_format, str) and self.export_format in {f.value for f in ExportFormat}:
            self.export_format = ExportFormat(self.export_format)
        if not isinstance(self.export_format, (ExportFormat, str)):
            raise InvalidKind(
                f"[{type(self).__name__}] Expected export_format as an ExportFormat or its name, got "
                f"{self.export_format!r}."
            )
        self.check()

    def check(self) -> None:
        """Refuses values that cannot be used. Subclasses add theirs and call this one."""
        default = next(f.default for f in dataclasses.fields(self) if f.name == "export_format")
        if isinstance(default, ExportFormat) and self.export_format is not default:
            raise InvalidValue(
                f"[{type(self).__name__}] Expected export_format {default.value!r}, got {format_name(self)!r}. "
                "Use the configuration of that format, or AutoExportConfig.from_dict."
            )

    @classmethod
    def from_dict(cls, config_dict: Mapping[str, Any]) -> ExportConfigMixin:
        """The configuration with these fields; the others keep their defaults."""
        if not isinstance(config_dict, Mapping):
            raise InvalidKind(f"[{cls.__name__}] Expected a dict of fields, got {type(config_dict).__name__}.")
        refuse_unknown(cls, config_dict)
        return cls(**config_dict)

    def to_dict(self) -> dict[str, Any]:
        """Every field by name, as a deep copy; `from_dict` gives an equal configuration back."""
        return {name: copy.deepcopy(value) for name, value in self}

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for each in dataclasses.fields(self):
            yield each.name, getattr(self, each.name)


@config
class DynamoConfig(ExportConfigMixin):
    """What every exporter understands.

    dynamic: False keeps every size of the sample; True lets vary what the model lets vary.
    strict: a value that the model reads, and that was therefore assumed, is an error. With tracer="torch.export" and
        in DynamoExporter it is the strict mode of torch.export.
    dynamic_shapes: as torch.export takes them; wins over dynamic.
    prefer_deferred_runtime_asserts_over_guards: passed to torch.export where it is used.
    quantizer: an ExportQuantizer, applied to what is exported.
    output_path: where the result is saved (Dynamo: .pt2, ONNX: .onnx, ExecuTorch: .pte, OpenVINO: .xml); None keeps it
        in memory. For export_for_generation a folder, or a pattern with {component} in it.
    tracer: "observe" runs the model at several sizes; "torch.export" imports an ExportedProgram.
    verify: run what was exported and compare with eager at sizes that were never tried.
    allow_random: outputs that differ from run to run, because the model draws random numbers, are no error.
    method: where DynamoExporter and ExecutorchExporter take the program from: "recorded" rebuilds it from the recorded
        operators, "torch.export" traces the model itself, "auto" takes the first of these that works.
    """

    export_format: ExportFormat = ExportFormat.DYNAMO
    dynamic: bool = False
    strict: bool = False
    dynamic_shapes: Any = None
    prefer_deferred_runtime_asserts_over_guards: bool = False
    quantizer: Any = None
    output_path: str | os.PathLike[str] | None = field(default=None, kw_only=True)
    tracer: str = field(default="observe", kw_only=True)
    verify: bool = field(default=True, kw_only=True)
    allow_random: bool = field(default=False, kw_only=True)
    method: str = field(default="auto", kw_only=True)

    def check(self) -> None:
        super().check()
        self.check_booleans(
            "dynamic", "strict", "prefer_deferred_runtime_asserts_over_guards", "verify", "allow_random"
        )
        self.check_choice("tracer", TRACERS)
        self.check_choice("method", METHODS)
        shapes = self.dynamic_shapes
        if shapes is not None and not isinstance(shapes, (Mapping, tuple, list)):
            raise InvalidKind(
                f"[{type(self).__name__}] Expected dynamic_shapes as a dict, a tuple or None, got "
                f'{type(shapes).__name__}. Write {{"input_ids": {{0: "batch"}}}} for a dynamic first axis.'
            )
        path = self.output_path
        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise InvalidKind(
                f"[{type(self).__name__}] Expected output_path as a string, an os.PathLike or None, got {path!r}."
            )
        if self.quantizer is not None and not callable(getattr(self.quantizer, "quantize", None)):
            raise InvalidKind(
                f"[{type(self).__name__}] Expected quantizer as an ExportQuantizer or None, got "
                f"{type(self.quantizer).__name__}."
            )

    def check_booleans(self, *names: str) -> None:
        for name in names:
            if not isinstance(getattr(self, name), bool):
                raise InvalidKind(
                    f"[{type(self).__name__}] Expected {name} as True or False, got {getattr(self, name)!r}."
                )

    def check_choice(self, name: str, choices: tuple[Any, ...]) -> None:
        if getattr(self, name) not in choices:
            shown = ", ".join(repr(c) for c in choices)
            raise InvalidValue(f"[{type(self).__name__}] Expected {name} among {shown}, got {getattr(self, name)!r}.")


@config
class OnnxConfig(DynamoConfig):
    """How a model is written to ONNX.

    output_path: the .onnx file; None keeps the program in memory.
    opset_version: 18 or newer; None for the default of fairlead.export.
    external_data: True puts weights in `<output_path>.data`, False keeps them in the file (up to 2 GB), "auto" decides
        by their size.
    optimize: simplify the graph before it is written.
    export_params: False writes a file whose weights are inputs without values.
    keep_initializers_as_inputs: lists the weights as inputs too, so that they can be overridden.
    names: "clients" calls tensors of a cache as the clients of ONNX Runtime expect them (past_key_values.0.key,
        present.0.key), "transformers" as transformers.exporters does (input.past_key_values.layers.0.keys).
    """

    export_format: ExportFormat = ExportFormat.ONNX
    output_path: str | os.PathLike[str] | None = None
    opset_version: int | None = None
    external_data: bool | str = True
    optimize: bool = True
    export_params: bool = True
    keep_initializers_as_inputs: bool = False
    names: str = field(default="clients", kw_only=True)

    def check(self) -> None:
        super().check()
        self.check_booleans("optimize", "export_params", "keep_initializers_as_inputs")
        self.check_choice("names", NAMES)
        if self.names == "transformers" and self.tracer != "observe":
            raise InvalidValue(
                f'[OnnxConfig] Expected tracer="observe" with names="transformers", got {self.tracer!r}: a program of '
                "torch.export has its inputs in an order of its own."
            )
        if self.names == "transformers" and self.quantizer is not None:
            raise InvalidValue(
                '[OnnxConfig] Expected no quantizer with names="transformers", got one: calibration calls are fed by '
                "the names of clients. Leave names out, or quantize the file."
            )
        self.check_choice("external_data", (True, False, "auto", "always", "never"))
        opset = self.opset_version
        if opset is not None and (isinstance(opset, bool) or not isinstance(opset, int)):
            raise InvalidKind(f"[OnnxConfig] Expected opset_version as a number or None, got {opset!r}.")


@config
class ExecutorchConfig(DynamoConfig):
    """How a model is written for ExecuTorch.

    backend: "xnnpack", "cuda" or "mlx" delegate to that library; "portable" or None to none.
    alloc_graph_input, alloc_graph_output, alloc_mutable_buffers: False leaves that memory to the caller.
    max_size: the largest size of a dynamic dim for which dynamic_shapes has no maximum, for all or by name of the
        symbol ({"batch": 4, "sequence": 512}). ExecuTorch plans its memory for the largest sizes of all dims at once.
    """

    export_format: ExportFormat = ExportFormat.EXECUTORCH
    backend: str = "xnnpack"
    alloc_graph_input: bool = True
    alloc_graph_output: bool = True
    alloc_mutable_buffers: bool = True
    max_size: int | dict[str, int] = field(default=128, kw_only=True)

    def check(self) -> None:
        super().check()
        self.check_booleans("alloc_graph_input", "alloc_graph_output", "alloc_mutable_buffers")
        self.check_choice("backend", BACKENDS)
        sizes = list(self.max_size.values()) if isinstance(self.max_size, Mapping) else [self.max_size]
        if any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in sizes):
            raise InvalidValue(
                f"[ExecutorchConfig] Expected max_size as a number of 1 or more, or such numbers by name, got "
                f"{self.max_size!r}."
            )


@config
class OpenVINOConfig(DynamoConfig):
    """How a model is written for OpenVINO.

    output_path: the .xml file, with a .bin beside it; None keeps the model in memory.
    compress_to_fp16: weights as 16-bit floats in the saved file.
    stateful: cache tensors that go in and come out become state of the model.
    """

    export_format: ExportFormat = ExportFormat.OPENVINO
    output_path: str | os.PathLike[str] | None = None
    compress_to_fp16: bool = True
    stateful: bool = True

    def check(self) -> None:
        super().check()
        self.check_booleans("compress_to_fp16", "stateful")


# By the names that they have in transformers.exporters too.
OURS = {cls.__name__: cls for cls in (DynamoConfig, OnnxConfig, ExecutorchConfig, OpenVINOConfig)}


def format_name(config: ExportConfigMixin | Mapping[str, Any]) -> Any:
    """The name of the format a configuration is for: "onnx"; None where a dict says nothing."""
    found = config.get("export_format") if isinstance(config, Mapping) else config.export_format
    return found.value if isinstance(found, ExportFormat) else found


def coerce(owner: str, given: Any, wanted: Any) -> Any:
    """The configuration an exporter works with; `wanted` is its class.

    1. One of the wanted class, or made from it, is used as it is; None is one with every default.
    2. A dict is its fields; a format in it must be the exporter's.
    3. One of a class that the wanted class is made from gives its fields: a DynamoConfig for OnnxExporter.
    4. One of transformers.exporters is the configuration of that name here.
    """
    if given is None:
        return wanted()
    given = of_transformers(given)
    if isinstance(given, wanted):
        return given
    if isinstance(given, Mapping):
        own = format_name(wanted())
        if given.get("export_format") is not None and format_name(given) != own:
            raise InvalidKind(
                f"[{owner}] Expected a configuration for {own!r}, got one for {format_name(given)!r}. "
                f"Use {wanted.__name__}, or AutoHfExporter.from_config for the exporter of that format."
            )
        return wanted.from_dict(given)
    if isinstance(given, DynamoConfig) and issubclass(wanted, type(given)):
        return wanted(**{name: value for name, value in given if name != "export_format"})
    raise InvalidKind(f"[{owner}] Expected {wanted.__name__} or a dict of its fields, got {type(given).__name__}.")


def of_transformers(given: Any) -> Any:
    """A configuration of transformers.exporters, or of a class made from one, in ours; everything else as it is.

    The classes are not imported to ask: who has an object of them has done so.
    """
    theirs = getattr(sys.modules.get("transformers.exporters.configs"), "ExportConfigMixin", None)
    if theirs is None or not isinstance(given, theirs):
        return given
    own = next((OURS[cls.__name__] for cls in type(given).__mro__ if cls.__name__ in OURS), None)
    if own is None:
        return given
    quantizer = getattr(given, "quantizer", None)
    if type(quantizer).__module__.startswith("transformers."):
        raise InvalidKind(
            f"[{own.__name__}] Expected quantizer as an ExportQuantizer of fairlead.exporters, got "
            f"{type(quantizer).__name__} of Transformers. Import it from fairlead.exporters."
        )
    return own.from_dict({name: value for name, value in given if name != "export_format"})
