"""What OnnxExporter gives back: an ONNX model in memory that can be saved, run and looked at.

The weights stay where the PyTorch model holds them; they are written when the program is saved or first run.
"""

from __future__ import annotations

import math
import os
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from fairlead.base.staged import staged_file
from fairlead.contract import Check, Contract
from fairlead.experiment.result import ExportResult
from fairlead.exporters.configs import ExportFormat
from fairlead.exporters.prepare import OUTPUT_FLAGS
from fairlead.exporters.quantizers.base import quantized_by
from fairlead.exporters.refusals import InvalidValue
from fairlead.options import check_path
from fairlead.tree.attribute_paths import attribute_paths, by_attributes
from fairlead.tree.leaves import get_leaf_tensors
from fairlead.verify.ort_values import to_tensor
from fairlead.verify.runtime_check import OnnxSession, compare

LARGEST_INSIDE = 256 << 20  # of weights in one file with the model, as the core's writer has it


class Outputs(tuple[Any, ...]):
    """The outputs of a run in the order of the file, also by name: outputs[0], outputs["logits"]."""

    names: Sequence[str] = ()

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(f"Expected an output among {', '.join(self.names)}, got {key!r}.")
            key = list(self.names).index(key)
        return super().__getitem__(key)

    def keys(self) -> list[str]:
        return list(self.names)


class OnnxProgram:
    """An exported model. Has what users of torch.onnx.ONNXProgram use, and what is known about the export.

    program.save("model.onnx")          writes it
    program(**inputs)                   runs it in ONNX Runtime on the forward kwargs
    program.model_proto                 an onnx.ModelProto
    program.contract, .discrepancies    symbols, sizes tried, assumptions; one row per check against PyTorch
    """

    def __init__(self, result: ExportResult, model: torch.nn.Module, sample: Mapping[str, Any]):
        self.result = result
        self.path = result.path  # of the complete file, where one was written
        self._arguments = list(sample)  # in order: positional arguments are named by them
        self._also_called = also_called(self.input_names, sample)
        # What a checkpoint holds: buffers that are not saved stay in the file.
        self._weights = [(n, list(t.shape)) for n, t in model.state_dict().items() if isinstance(t, torch.Tensor)]
        self._session: OnnxSession | None = None
        self._quantized: Any = None  # an onnx_ir.Model that stands for the exported one

    def __repr__(self) -> str:
        return (
            f"OnnxProgram({self.result.nodes} nodes, opset {self.result.opset}, inputs {', '.join(self.input_names)})"
        )

    # ---- what is known ------------------------------------------------------------------------------

    @property
    def contract(self) -> Contract:
        return self.result.contract

    @property
    def discrepancies(self) -> list[Check]:
        return self.result.discrepancies

    @property
    def quantized(self) -> bool:
        return self._quantized is not None

    @property
    def input_names(self) -> list[str]:
        return [row.name for row in self.contract.inputs]

    @property
    def output_names(self) -> list[str]:
        return [row.name for row in self.contract.outputs]

    # ---- writing --------------------------------------------------------------------------------

    def save(
        self,
        destination: str | os.PathLike[str],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | str | None = None,
    ) -> None:
        """Writes the model; nothing is under the final name before it is complete.

        include_initializers: False leaves the weights out and lists them as inputs, by the names of the parameters.
        keep_initializers_as_inputs: lists the weights as inputs too.
        external_data: True for weights in `<destination>.data`, False for one file, None or "auto" by their size.
        """
        path = check_path(destination)
        external = external_words(external_data)
        as_inputs = keep_initializers_as_inputs or not include_initializers
        if self._quantized is not None:
            if as_inputs:
                raise InvalidValue(
                    "[OnnxProgram] Expected a quantized model to keep its weights, got include_initializers=False or "
                    "keep_initializers_as_inputs=True. Leave them out, or export without a quantizer."
                )
            write_ir(self._quantized, path, external)
            return
        model = self.result.model
        if as_inputs:
            model = model.weights_as_inputs(self._weights, include_initializers)
        staged = model.write(path, external)
        try:
            staged.commit()
        finally:
            staged.discard()

    @property
    def model_proto(self) -> Any:
        """The model as an onnx.ModelProto, weights included."""
        import onnx

        with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
            path = os.path.join(folder, "model.onnx")
            self.save(path)
            return onnx.load(path)

    @property
    def model(self) -> Any:
        """The model as an onnx_ir.Model."""
        import onnx_ir

        return self._quantized if self._quantized is not None else onnx_ir.from_proto(self.model_proto)

    def quantize(self, quantizer: Any, sample_inputs: dict[str, Any]) -> None:
        """Replaces the model by what the quantizer makes of it."""
        import onnx_ir

        with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
            path = os.path.join(folder, "model.onnx")
            self.save(path, external_data=True)
            # The weights are mapped from the file, and none is read before the quantizer asks for it.
            quantized = quantized_by(quantizer, onnx_ir.load(path), sample_inputs, ExportFormat.ONNX)
            onnx_ir.external_data.load_to_model(quantized)  # what it left as it was
            self._quantized = quantized
        self.path, self._session = "", None

    def note_difference(self, quantizer: str, sample_inputs: dict[str, Any], expected: Sequence[torch.Tensor]) -> None:
        """Says in the contract, and in a row of its own, what a quantizer costs at the sample."""
        got = self._loaded().run(get_leaf_tensors(sample_inputs))
        row = compare(self.output_names, list(expected), got, math.inf)
        self.discrepancies.append(Check(kind="quantized", sizes={}, **row))
        when = "after it was checked" if self.quantized else "before it was exported"
        self.contract.notes.append(
            f"quantized by {quantizer} {when}: at the example output {row['output']!r} differs by {row['abs']:.2g} "
            "from PyTorch"
        )

    # ---- running --------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Outputs:
        """Runs the model in ONNX Runtime on what forward takes. The outputs are tensors, in order and by name."""
        if len(args) > len(self._arguments):
            raise InvalidValue(
                f"[OnnxProgram] Expected at most {len(self._arguments)} positional arguments "
                f"({', '.join(self._arguments)}), got {len(args)}."
            )
        given = dict(zip(self._arguments, args, strict=False)) | kwargs
        found = get_leaf_tensors({k: v for k, v in given.items() if k not in OUTPUT_FLAGS})
        leaves = {self._also_called.get(name, name): tensor for name, tensor in found.items()}
        leaves.pop("", None)
        missing = [name for name in self.input_names if name not in leaves]
        unknown = [name for name in leaves if name not in self.input_names]
        if missing or unknown:
            wrong = [f"no {shown(missing)}"] * bool(missing) + [f"{shown(unknown)} besides"] * bool(unknown)
            raise InvalidValue(
                f"[OnnxProgram] Expected the inputs {shown(self.input_names)}, got {' and '.join(wrong)}. "
                "Pass what the model was exported with."
            )
        outputs = Outputs(to_tensor(v) for v in self._loaded().run(leaves))
        outputs.names = self.output_names
        return outputs

    def _loaded(self) -> OnnxSession:
        if self._session is None:
            self.initialize_inference_session()
        assert self._session is not None
        return self._session

    def initialize_inference_session(self) -> None:
        """Loads the model into ONNX Runtime; the first run does it otherwise."""
        if self.path and os.path.exists(self.path):
            self._session = OnnxSession(self.path)
            return
        with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
            path = os.path.join(folder, "model.onnx")
            self.save(path)
            self._session = OnnxSession(path)  # maps the weights: the file may go

    def release(self) -> None:
        """Gives the memory of ONNX Runtime back; the next run loads the model again."""
        self._session = None


def also_called(input_names: Sequence[str], sample: Mapping[str, Any]) -> dict[str, str]:
    """Every name under which an input may be given, with that of the file: a cache is taken apart to our names, or by
    transformers.exporters to its own. "" for tensors that only they have: constants of a layer."""
    paths = attribute_paths(sample)
    if not {*input_names} <= {*paths}:  # the file has their names, in the order of ours
        paths = dict(zip(input_names, paths.values(), strict=True))
        names = dict(zip(get_leaf_tensors(sample), input_names, strict=True))
    else:
        names = {}
    by_path = {path: name for name, path in paths.items()} | {f"input.{path}": name for name, path in paths.items()}
    others = {path: "" for path, _ in by_attributes(sample) if path not in by_path}
    return others | by_path | names


def external_words(external_data: bool | str | None) -> str:
    """What the writer calls it: True "always", False "never", None "auto"."""
    if isinstance(external_data, str):
        return external_data
    return "auto" if external_data is None else "always" if external_data else "never"


def write_ir(model: Any, path: str, external: str) -> None:
    """Writes an onnx_ir.Model beside its name first, as the core does with its own."""
    import onnx_ir

    if external == "auto":
        weights = sum(v.const_value.nbytes for v in model.graph.initializers.values() if v.const_value is not None)
        external = "always" if weights > LARGEST_INSIDE else "never"
    # The name of the data has to be known before its content: no other export has this one either.
    data = f"{os.path.basename(path)}.{secrets.token_hex(8)}.data" if external == "always" else ""
    with staged_file(path, "export") as staging:
        onnx_ir.save(model, staging.path, external_data=data or None)
        staging.commit_model(data if os.path.exists(os.path.join(staging.folder, data)) else "")


def shown(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f", ... ({len(names)} in all)" if len(names) > 6 else "")
