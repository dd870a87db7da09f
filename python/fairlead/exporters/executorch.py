"""ExecutorchExporter: a .pte file for the ExecuTorch runtime."""

from __future__ import annotations

from typing import Any, ClassVar

from fairlead.exporters.configs import ExecutorchConfig
from fairlead.exporters.dynamo import DynamoExporter
from fairlead.targets.executorch.export import ExecutorchExport
from fairlead.targets.executorch.write import WriteOptions


class ExecutorchExporter(DynamoExporter):
    """Exports to ExecuTorch.

    >>> config = ExecutorchConfig(dynamic=True, max_size=64, output_path="model.pte")
    >>> program = ExecutorchExporter().export(model, inputs, config=config)
    >>> outputs = program(**inputs)
    """

    required_packages: ClassVar[list[str]] = ["torch", "executorch"]
    min_versions: ClassVar[dict[str, str]] = {"torch": "2.6", "executorch": "1.0"}
    config_class = ExecutorchConfig
    target = ExecutorchExport

    def target_options(self, config: Any) -> dict[str, Any]:
        return {
            "write_options": WriteOptions(
                backend=None if config.backend == "portable" else config.backend,
                alloc_graph_input=config.alloc_graph_input,
                alloc_graph_output=config.alloc_graph_output,
                alloc_mutable_buffers=config.alloc_mutable_buffers,
            ),
            "max_size": config.max_size,
        }
