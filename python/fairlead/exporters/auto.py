"""Which exporter and which configuration belong to a format, and how to add a format."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from fairlead.exporters.base import HfExporter
from fairlead.exporters.configs import (
    DynamoConfig,
    ExecutorchConfig,
    ExportConfigMixin,
    OnnxConfig,
    OpenVINOConfig,
    format_name,
    of_transformers,
)
from fairlead.exporters.refusals import InvalidKind, InvalidValue, warn

# Format -> exporter. A text is "module.Class" of this package, imported when the format is asked for.
AUTO_EXPORTER_MAPPING: dict[str, str | type[HfExporter]] = {
    "dynamo": "dynamo.DynamoExporter",
    "executorch": "executorch.ExecutorchExporter",
    "onnx": "onnx.OnnxExporter",
    "openvino": "openvino.OpenVINOExporter",
}

AUTO_EXPORT_CONFIG_MAPPING: dict[str, type[ExportConfigMixin]] = {
    "dynamo": DynamoConfig,
    "executorch": ExecutorchConfig,
    "onnx": OnnxConfig,
    "openvino": OpenVINOConfig,
}


def exporter_class(name: str) -> type[HfExporter]:
    found = AUTO_EXPORTER_MAPPING[name]
    if isinstance(found, str):
        module, _, attribute = found.rpartition(".")
        found = AUTO_EXPORTER_MAPPING[name] = getattr(
            importlib.import_module(f"fairlead.exporters.{module}"), attribute
        )
    return found


def problem_of(config: Any) -> str | None:
    """Why no exporter can be made for a configuration; None where one can."""
    if not isinstance(config, (Mapping, ExportConfigMixin)):
        return f"Expected a configuration or a dict with export_format, got {type(config).__name__}."
    name = format_name(config)
    known = ", ".join(sorted(set(AUTO_EXPORTER_MAPPING) & set(AUTO_EXPORT_CONFIG_MAPPING)))
    if name is None:
        return f"Expected export_format in the configuration, got none. It is one of {known}."
    if name not in AUTO_EXPORTER_MAPPING and name not in AUTO_EXPORT_CONFIG_MAPPING:
        return f"Expected export_format among {known}, got {name!r}."
    if name not in AUTO_EXPORT_CONFIG_MAPPING:
        return (
            f"Expected a configuration class for {name!r}, got only an exporter. Add @register_export_config({name!r})."
        )
    if name not in AUTO_EXPORTER_MAPPING:
        return f"Expected an exporter for {name!r}, got only a configuration class. Add @register_exporter({name!r})."
    return None


class AutoExportConfig:
    """Makes the configuration that a dict is for."""

    @classmethod
    def from_dict(cls, export_config_dict: Mapping[str, Any]) -> ExportConfigMixin:
        """The configuration of the class that export_format names."""
        name = format_name(export_config_dict) if isinstance(export_config_dict, Mapping) else None
        if name not in AUTO_EXPORT_CONFIG_MAPPING:
            known = ", ".join(sorted(AUTO_EXPORT_CONFIG_MAPPING))
            found = repr(name) if isinstance(export_config_dict, Mapping) else type(export_config_dict).__name__
            raise InvalidValue(f"[AutoExportConfig] Expected a dict with export_format among {known}, got {found}.")
        return AUTO_EXPORT_CONFIG_MAPPING[name].from_dict(export_config_dict)


class AutoHfExporter:
    """Makes the exporter that a configuration is for."""

    @classmethod
    def from_config(cls, export_config: ExportConfigMixin | Mapping[str, Any], **kwargs: Any) -> HfExporter:
        """The exporter of the configuration's format; kwargs go to its constructor."""
        export_config = of_transformers(export_config)
        problem = problem_of(export_config)
        if problem is not None:
            raise InvalidValue(f"[AutoHfExporter] {problem}")
        return exporter_class(format_name(export_config))(**kwargs)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, **kwargs: Any) -> HfExporter:
        """Not there: no model repository publishes an export configuration yet."""
        raise NotImplementedError(
            "[AutoHfExporter] Expected a configuration: repositories do not carry one yet. "
            "Use AutoHfExporter.from_config(config)."
        )

    @staticmethod
    def supports_export_format(export_config_dict: Mapping[str, Any]) -> bool:
        """Whether the format has a configuration class and an exporter; a warning says what is missing."""
        problem = problem_of(export_config_dict)
        if problem is not None:
            warn(f"[AutoHfExporter] {problem}")
        return problem is None


def get_hf_exporter(export_config: ExportConfigMixin | Mapping[str, Any]) -> HfExporter:
    """AutoHfExporter.from_config as a function."""
    return AutoHfExporter.from_config(export_config)


def register_exporter(name: str) -> Callable[[type], type]:
    """Decorator: this class exports the format `name`."""
    return _register("register_exporter", name, AUTO_EXPORTER_MAPPING, HfExporter)


def register_export_config(name: str) -> Callable[[type], type]:
    """Decorator: this class is the configuration of the format `name`."""
    return _register("register_export_config", name, AUTO_EXPORT_CONFIG_MAPPING, ExportConfigMixin)


def _register(function: str, name: str, table: dict[str, Any], base: type) -> Callable[[type], type]:
    if not isinstance(name, str) or not name:
        raise InvalidKind(f"[{function}] Expected the name of a format, got {name!r}.")

    def register(cls: type) -> type:
        if not isinstance(cls, type) or not issubclass(cls, base):
            found = cls.__name__ if isinstance(cls, type) else type(cls).__name__
            raise InvalidKind(f"[{function}] Expected a subclass of {base.__name__}, got {found}.")
        if name in table:
            warn(f"[{function}] {name!r} was registered before and is replaced.")
        table[name] = cls
        return cls

    return register
