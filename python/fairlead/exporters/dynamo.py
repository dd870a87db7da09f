"""DynamoExporter: a torch.export.ExportedProgram, from the recorded operators or through torch.export."""

from __future__ import annotations

from typing import Any, ClassVar

from fairlead.experiment.progress import Progress
from fairlead.experiment.result import ExportResult
from fairlead.exporters.base import HfExporter
from fairlead.exporters.configs import DynamoConfig
from fairlead.exporters.onnx import shapes_asked
from fairlead.exporters.prepared import prepared
from fairlead.exporters.refusals import InvalidValue
from fairlead.options import Options
from fairlead.targets.pt2.export import Pt2Export


class DynamoExporter(HfExporter):
    """Exports to torch.export.ExportedProgram.

    >>> program = DynamoExporter().export(model, inputs, config=DynamoConfig(dynamic=True, output_path="model.pt2"))
    >>> outputs = program.module()(**inputs)
    >>> print(program.contract)
    """

    required_packages: ClassVar[list[str]] = ["torch"]
    min_versions: ClassVar[dict[str, str]] = {"torch": "2.6"}
    config_class = DynamoConfig

    def export(self, model: Any, sample_inputs: Any, config: Any = None) -> Any:
        """The model as an ExportedProgram that takes the sample's arguments; `contract` on it says what is known."""
        return self.result(model, sample_inputs, self.configured(config)).model

    def result(self, model: Any, sample_inputs: Any, config: DynamoConfig) -> ExportResult:
        if config.quantizer is not None:
            raise InvalidValue(
                f"[{type(self).__name__}] Expected no quantizer, got {type(config.quantizer).__name__}. "
                "Quantize the ExportedProgram that comes back."
            )
        method = config.method if config.tracer == "observe" else "torch.export"
        # `strict` is torch.export's own here: operators that were recorded have no such mode.
        export_options = {
            "strict": config.strict,
            "prefer_deferred_runtime_asserts_over_guards": config.prefer_deferred_runtime_asserts_over_guards,
        }
        with prepared(model, sample_inputs, tracing=method == "torch.export") as sample:
            options = Options(
                dynamic_shapes=shapes_asked(config), verify=config.verify, notes=sample.notes,
                allow_random=config.allow_random,
            )  # fmt: skip
            return self.target(
                sample.model, sample.call, config.output_path, options, Progress(None), method, export_options,
                **self.target_options(config),
            ).run()  # fmt: skip

    target: ClassVar[type[Pt2Export]] = Pt2Export

    def target_options(self, config: Any) -> dict[str, Any]:
        return {}
