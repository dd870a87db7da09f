"""What a user's type checker sees of Fairlead: checked by test_wheel.py against the stubs in the wheel, never run."""

from typing import Any

import torch
from fairlead._core import Builder
from fairlead.exporters import OnnxConfig, OnnxExporter
from typing_extensions import assert_type

import fairlead
from fairlead import FairleadError, InputObserver


@fairlead.lowerings.register_lowering("mylib.scaled_tanh.default")
def lower(b: Builder) -> None:
    scaled = b.cast(b.op("Mul", b.op("Tanh", b.input(0)), b.number(1)), "float32")
    assert_type(b.shape(0), list[int | str])
    b.result(scaled)


def export(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> float:
    assert_type(fairlead.__version__, str)
    try:
        result = fairlead.export(model, inputs, "model.onnx", opset=20)
    except fairlead.Diverged as error:
        assert_type(error.facts, dict[str, Any] | None)
        assert_type(error.report("why.html"), str)
        raise
    except FairleadError:
        raise
    assert_type(result, fairlead.ExportResult)
    assert_type(result.contract, fairlead.Contract)
    return max(float(row.scaled) for row in result.discrepancies)


def observe(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> None:
    observer = InputObserver()
    with observer(model, store_n_calls=2):
        model(**inputs)
    OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True, output_path="model.onnx"))


fairlead.exprot  # type: ignore[attr-defined]  # noqa: B018
fairlead.export()  # type: ignore[call-arg]
