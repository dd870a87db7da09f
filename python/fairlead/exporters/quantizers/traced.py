"""What quantizers of graphs of torch.export share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from fairlead._core import Unsupported
from fairlead.exporters.configs import ExportFormat
from fairlead.exporters.model_settings import evaluating
from fairlead.exporters.prepared import Prepared
from fairlead.exporters.quantizers.base import quantized_by
from fairlead.exporters.refusals import InvalidValue
from fairlead.patches.attributes import patch_model_config
from fairlead.tree.caches import register_flattening_functions
from fairlead.tree.capture import Capture
from fairlead.tree.leaves import get_leaf_tensors


def traced_call(names: Sequence[str], call: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the arguments that the graph takes: caches are written into by the runs."""
    missing = [name for name in names if name not in call]
    if missing:
        raise InvalidValue(
            f"[quantize] Expected calibration calls with {', '.join(names)}, got one without {', '.join(missing)}."
        )
    return Capture().arguments({name: call[name] for name in names})


@contextlib.contextmanager
def quantized_before(
    sample: Prepared, quantizer: Any, export_format: ExportFormat, dynamic: bool
) -> Iterator[tuple[torch.nn.Module, dict[str, Any]]]:
    """What is exported and how it is called: the sample's model, or what a quantizer of graphs makes of it."""
    if quantizer is None or not quantizer.quantizes_fx_graph:
        yield sample.model, sample.call
        return
    with patch_model_config(sample.model, sample.constants):
        target = quantized_graph(sample.model, sample.inputs, quantizer, export_format, dynamic)
    with evaluating(target):
        yield target, sample.inputs


def quantized_graph(
    model: torch.nn.Module, inputs: dict[str, Any], quantizer: Any, export_format: ExportFormat, dynamic: bool
) -> torch.nn.Module:
    """The model as the quantizer left the graph of torch.export: a module that takes the same inputs by name."""
    caches = [name for name, value in inputs.items() if not isinstance(value, torch.Tensor) and get_leaf_tensors(value)]
    if caches:
        raise InvalidValue(
            f"[{type(quantizer).__name__}] Expected inputs that are tensors, got {', '.join(caches)} made of several: "
            "the graph would write into it. Use a quantizer of the exported model, such as OnnxRuntimeQuantizer."
        )
    auto = torch.export.Dim.AUTO
    shapes = {
        n: dict.fromkeys(range(v.dim()), auto) if isinstance(v, torch.Tensor) else None for n, v in inputs.items()
    }
    with register_flattening_functions(), torch.no_grad():
        try:
            program = torch.export.export(model, (), inputs, dynamic_shapes=shapes if dynamic else None, strict=False)
        except Exception as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise Unsupported(
                f"[{type(quantizer).__name__}] Expected a model that torch.export traces, but it raised "
                f"{type(error).__name__}: {reason.rstrip('.')}. Use a quantizer of the exported model, such as "
                "OnnxRuntimeQuantizer."
            ) from error
        quantized: torch.nn.Module = quantized_by(quantizer, program.module(), inputs, export_format)
        return quantized
