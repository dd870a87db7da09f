"""DynamoExporter: a torch.export.ExportedProgram, from the recorded operators or through torch.export."""

from __future__ import annotations

from typing import Any, ClassVar

from fairlead.exporters.base import HfExporter
from fairlead.exporters.configs import DynamoConfig
from fairlead.exporters.model_settings import accepted, exportable
from fairlead.exporters.onnx import shapes_asked
from fairlead.exporters.prepare import prepare_for_export
from fairlead.exporters.refusals import InvalidValue
from fairlead.pipeline import ExportResult, Progress
from fairlead.program.pipeline import ProgramExport


class DynamoExporter(HfExporter):
    """Exports to torch.export.ExportedProgram.

    >>> program = DynamoExporter().export(model, inputs, config=DynamoConfig(dynamic=True, output_path="model.pt2"))
    >>> outputs = program.module()(**inputs)
    >>> print(program.contract)
    """

    required_packages: ClassVar[list[str]] = ["torch"]
    min_versions: ClassVar[dict[str, str]] = {"torch": "2.6"}
    config_class = DynamoConfig

    def export(self, model: Any, sample_inputs: Any, config: DynamoConfig | dict | None = None) -> Any:
        """The model as an ExportedProgram that takes the sample's arguments; `contract` on it says what is known."""
        return self.result(model, sample_inputs, self.configured(config)).model

    def result(self, model: Any, sample_inputs: Any, config: DynamoConfig) -> ExportResult:
        if config.quantizer is not None:
            raise InvalidValue(
                f"[{type(self).__name__}] Expected no quantizer, got {type(config.quantizer).__name__}. "
                "Quantize the ExportedProgram that comes back."
            )
        model, inputs, flags = prepare_for_export(model, sample_inputs)
        constants = accepted(model, flags)
        options = {
            "dynamic_shapes": shapes_asked(config), "verify": config.verify,
            # `strict` is torch.export's own; where the operators were recorded there is no such mode.
        }  # fmt: skip
        with exportable(model, {k: v for k, v in flags.items() if k not in constants}) as notes:
            return self.target(
                model, inputs | constants, config.output_path, options | {"notes": notes}, Progress(None),
                config.method if config.tracer == "observe" else "torch.export",
                {
                    "strict": config.strict,
                    "prefer_deferred_runtime_asserts_over_guards": config.prefer_deferred_runtime_asserts_over_guards,
                },
                **self.target_options(config),
            ).run()  # fmt: skip

    target: ClassVar[type[ProgramExport]] = ProgramExport

    def target_options(self, config: DynamoConfig) -> dict[str, Any]:
        return {}
