"""The base class of the exporters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from fairlead.exporters.configs import DynamoConfig, ExportConfigMixin, coerce
from fairlead.exporters.packages import check_packages


class HfExporter(ABC):
    """Exports a model to one format. A subclass says what it needs, names its configuration, and implements `export`.

    Making one checks that its packages are installed, and costs nothing else.
    """

    required_packages: ClassVar[list[str]] = []
    min_versions: ClassVar[dict[str, str]] = {}
    tested_versions: ClassVar[dict[str, str]] = {}
    config_class: ClassVar[type[ExportConfigMixin]] = DynamoConfig

    def __init__(self) -> None:
        self.validate_environment()

    def validate_environment(self, *args: Any, **kwargs: Any) -> None:
        """Raises ImportError, in one line with the command to run, where a package is missing or too old."""
        check_packages(type(self).__name__, self.required_packages, self.min_versions, self.tested_versions)

    def configured(self, config: ExportConfigMixin | dict[str, Any] | None) -> Any:
        """The configuration in the class of this exporter; refused in one line where it is for something else."""
        return coerce(type(self).__name__, config, self.config_class)

    @abstractmethod
    def export(self, model: Any, sample_inputs: Any, config: Any = None) -> Any:
        """Exports a model.

        model: the module; it comes back as it was, in eval or training mode, with its attention and its state.
        sample_inputs: what model(**sample_inputs) takes; never changed.
        config: a configuration of this exporter, a dict of its fields, or one of DynamoConfig.
        """

    def export_for_generation(
        self,
        model: Any,
        sample_inputs: Any,
        config: Any = None,
        generation_config: Any = None,
        multi_token_decode: bool = False,
    ) -> dict[str, Any]:
        """Takes a generative model apart and exports every part: {component: what `export` returns}.

        sample_inputs: what model.generate(**sample_inputs) takes; never changed.
        config: one configuration for all, or a dict of them by component. One output path is a folder or a pattern with
            {component} in it, so that no part overwrites another.
        generation_config: for the generation that is watched; the model's own by default.
        multi_token_decode: decode takes several tokens at once.
        """
        from fairlead.generation import export_for_generation

        return export_for_generation(self, model, sample_inputs, config, generation_config, multi_token_decode)
