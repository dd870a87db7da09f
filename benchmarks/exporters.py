"""The exporters that are compared, each as a function that writes a file. Imports are done before the clock starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from llama import Flat, flat

Export = Callable[[torch.nn.Module, dict[str, Any], str], dict[str, Any]]


def fairlead_exporter(verify: bool) -> Export:
    import onnxruntime  # noqa: F401

    import fairlead

    fairlead.export  # noqa: B018  imported on first use

    def run(model, inputs, path):
        result = fairlead.export(model, inputs, path, verify=verify)
        return {"stages": result.timings, "runs": result.runs}

    return run


def transformers_exporter() -> Export:
    import onnx  # noqa: F401
    import onnxscript  # noqa: F401
    from transformers.exporters import OnnxConfig, OnnxExporter

    exporter = OnnxExporter()

    def run(model, inputs, path):
        exporter.export(model, inputs, config=OnnxConfig(dynamic=True, output_path=path))
        return {}

    return run


def torch_exporter() -> Export:
    import onnx  # noqa: F401
    import onnxscript  # noqa: F401
    from torch.export import Dim

    def run(model, inputs, path):
        tensors = flat(inputs)
        names = ["input_ids", "attention_mask"]
        names += [f"past.{k // 2}.{'key' if k % 2 == 0 else 'value'}" for k in range(len(tensors) - 2)]
        every = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
        torch.onnx.export(
            Flat(model).eval(),
            (tensors[0], tensors[1], tensors[2:]),
            path,
            dynamo=True,
            dynamic_shapes=(every, every, [{0: Dim.DYNAMIC, 2: Dim.DYNAMIC} for _ in tensors[2:]]),
            input_names=names,
            verbose=False,
        )
        return {}

    return run


def yobx_exporter() -> Export:
    from torch.export import Dim
    from yobx.torch import to_onnx

    def run(model, inputs, path):
        tensors = flat(inputs)
        every = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
        shapes = (every, every, [{0: Dim.DYNAMIC, 2: Dim.DYNAMIC} for _ in tensors[2:]])
        artifact = to_onnx(Flat(model).eval(), (tensors[0], tensors[1], tensors[2:]), dynamic_shapes=shapes)
        artifact.save(path)
        return {}

    return run


# Key, what the table calls it, its maker.
EXPORTERS: dict[str, tuple[str, Callable[[], Export]]] = {
    "fairlead": ("Fairlead, not verified", lambda: fairlead_exporter(False)),
    "fairlead-verified": ("Fairlead, verified", lambda: fairlead_exporter(True)),
    "transformers": ("transformers.exporters.OnnxExporter", transformers_exporter),
    "torch": ("torch.onnx.export(dynamo=True)", torch_exporter),
    "yobx": ("yobx.torch.to_onnx", yobx_exporter),
}
