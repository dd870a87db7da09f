"""What every quantizer is: formats it works on, packages it needs, data it calibrates with."""

from __future__ import annotations

import copy
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from fairlead._core import FairleadError, Unsupported
from fairlead.exporters.configs import ExportFormat
from fairlead.exporters.packages import check_packages
from fairlead.exporters.refusals import InvalidValue, warn


class ExportQuantizer(ABC):
    """Quantizes what an exporter made. A subclass says on what it works and implements `quantize`.

    quantizes_fx_graph: it takes the graph of torch.export, before it becomes anything else; otherwise the export:
        an onnx_ir.Model or an openvino.Model.
    calibration_dataset: calls to calibrate with, each a dict of forward's arguments; a list, or anything that can be
        iterated more than once. None calibrates with the sample of the export, and warns.
    """

    quantizes_fx_graph: ClassVar[bool] = False
    supported_formats: ClassVar[tuple[ExportFormat, ...]] = ()
    required_packages: ClassVar[tuple[str, ...]] = ()
    min_versions: ClassVar[dict[str, str]] = {}
    tested_versions: ClassVar[dict[str, str]] = {}

    def __init__(self, calibration_dataset: Iterable[Mapping[str, Any]] | None = None):
        self.calibration_dataset = calibration_dataset

    def with_calibration(self, calibration_dataset: Iterable[Mapping[str, Any]] | None) -> ExportQuantizer:
        """A copy that calibrates with other data."""
        other = copy.copy(self)
        other.calibration_dataset = calibration_dataset
        return other

    def validate_environment(self, export_format: ExportFormat) -> None:
        """Raises where this quantizer does not work on the format, or lacks a package."""
        if export_format not in self.supported_formats:
            known = ", ".join(f.value for f in self.supported_formats)
            name = export_format.value if isinstance(export_format, ExportFormat) else export_format
            raise InvalidValue(
                f"[{type(self).__name__}] Expected an export to {known}, got one to {name}. Use another quantizer."
            )
        check_packages(type(self).__name__, self.required_packages, self.min_versions, self.tested_versions)

    @abstractmethod
    def quantize(self, model: Any, sample_inputs: dict[str, Any], export_format: ExportFormat) -> Any:
        """The quantized model, of the same kind as the one that was given."""


def quantized_by(quantizer: ExportQuantizer, model: Any, inputs: dict[str, Any], export_format: ExportFormat) -> Any:
    """What the quantizer makes of a model; where its library fails, one line says so."""
    try:
        return quantizer.quantize(model, inputs, export_format)
    except FairleadError:
        raise
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise Unsupported(
            f"[{type(quantizer).__name__}] Expected a model that it can quantize, but its library raised "
            f"{type(error).__name__}: {reason.rstrip('.')}. Use another quantizer, or other options of this one."
        ) from error


class CalibrationSet:
    """Calibration calls as a quantizer takes them; made one at a time, each time it is iterated."""

    def __init__(
        self,
        calibration_dataset: Iterable[Mapping[str, Any]] | None,
        sample_inputs: Mapping[str, Any],
        transform: Callable[[Mapping[str, Any]], Any],
    ):
        self.calibration_dataset = calibration_dataset
        self.sample_inputs = sample_inputs
        self.transform = transform

    def __iter__(self) -> Iterator[Any]:
        if self.calibration_dataset is None:
            warn(
                "[quantize] Calibrates with the sample of the export alone, which can cost accuracy. "
                "Give the quantizer a calibration_dataset."
            )
            return iter([self.transform(self.sample_inputs)])
        return (self.transform(call) for call in self.calibration_dataset)


@dataclasses.dataclass
class LibraryArguments:
    """A dataclass of the arguments of a library's function, in which None leaves the library's default."""

    def to_kwargs(self) -> dict[str, Any]:
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in given.items() if value is not None}
