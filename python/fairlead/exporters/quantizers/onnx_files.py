"""What quantizers of ONNX models share: the model as a file beside its weights, and calls as its inputs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.exporters.refusals import InvalidValue
from fairlead.tree.leaves import get_leaf_tensors


def saved(model: Any, folder: str) -> str:
    """The path of an onnx_ir.Model, written with its weights beside it: no limit of 2 GB."""
    import onnx_ir

    path = os.path.join(folder, "model.onnx")
    onnx_ir.save(model, path, external_data="model.onnx.data")
    return path


def loaded(path: str) -> Any:
    """The onnx_ir.Model of a file that is about to go away."""
    import onnx_ir

    model = onnx_ir.load(path)
    onnx_ir.external_data.load_to_model(model)
    return model


def feed(names: Sequence[str], call: Mapping[str, Any]) -> dict[str, Any]:
    """The tensors of a call as numpy arrays, by the names of the model's inputs."""
    leaves = get_leaf_tensors({name: call[name] for name in call})
    missing = [name for name in names if name not in leaves]
    if missing:
        raise InvalidValue(
            f"[quantize] Expected calibration calls with the inputs {', '.join(names)}, got one without "
            f"{', '.join(missing)}."
        )
    return {name: leaves[name].detach().cpu().numpy() for name in names}
