"""fairlead.export with lora="inputs" or lora="merge", and the files of adapters.

As inputs: each adapted layer computes `base_layer(x) + (x @ A) @ B`, where A [in, rank] and B [rank, out] are inputs of
the file, and what scales them is in B. An adapter is a file beside the model then, as ONNX Runtime's LoraAdapter takes
it; without one both are empty, and the file is that of the base model.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch

from fairlead._core import Discrepancy, InvalidInput, Unsupported
from fairlead.adapters.layers import AdaptedLayer, adapted_layers
from fairlead.base.alone import during, taken_back
from fairlead.base.staged import staged_file
from fairlead.contract import Contract
from fairlead.options import Options, check_model, check_path
from fairlead.patches.attributes import patch_attributes
from fairlead.tree.calls import Call, base_call, normalise
from fairlead.tree.dynamic_shapes import by_argument
from fairlead.tree.leaves import get_leaf_tensors
from fairlead.verify.ort_values import from_tensor
from fairlead.verify.runtime_check import TensorValue, compare, eager

WAYS = (None, "inputs", "merge")
PLAIN = (torch.Tensor, torch.nn.Parameter)
SUFFIX = ".onnx_adapter"
RANK = "lora_rank"
STANDS, BASE, CHANGED = "as it stands", "base", "changed"


def export_adapter(model: torch.nn.Module, path: str | os.PathLike[str]) -> str:
    """Writes the active LoRA adapter of a model to a file that onnxruntime.LoraAdapter loads, for a model of the same
    base that was exported with lora="inputs"; of any rank. Returns the path.

    >>> fairlead.export(model, inputs, "model.onnx", lora="inputs")      # and model.onnx_adapter
    >>> model.set_adapter("other")
    >>> fairlead.adapters.export_adapter(model, "other.onnx_adapter")
    """
    if not isinstance(model, torch.nn.Module):
        raise InvalidInput(f"[export_adapter] Expected a torch.nn.Module, got {type(model).__name__}.")
    checked = check_path(path)
    with staged_file(checked, "export_adapter") as staging:
        write(staging.path, tensors_of(one_adapter(adapted_layers(model))))
        staging.commit_file()
    return checked


def write(path: str, tensors: Mapping[str, torch.Tensor]) -> None:
    try:
        from onnxruntime import AdapterFormat
    except ImportError as error:
        raise InvalidInput(
            f"[export] Expected ONNX Runtime 1.20 or newer, which writes files of adapters, but it cannot be imported "
            f"({error}). Install it with pip install onnxruntime."
        ) from None
    file = AdapterFormat()
    file.set_adapter_version(1)
    file.set_model_version(1)
    file.set_parameters({name: from_tensor(tensor) for name, tensor in tensors.items()})
    file.export_adapter(path)


def one_adapter(layers: list[AdaptedLayer]) -> list[AdaptedLayer]:
    names = list(dict.fromkeys(name for layer in layers for name in layer.adapters))
    if len(names) > 1:
        raise InvalidInput(
            f"[export] Expected one active adapter, got {len(names)} ({', '.join(names)}). Choose one with "
            "set_adapter(), or export with lora='merge', which adds them up."
        )
    return layers


def tensors_of(layers: list[AdaptedLayer]) -> dict[str, torch.Tensor]:
    """By the name of the input."""
    found = {}
    for layer in layers:
        for name, tensor in zip(names_in(layer), layer.matrices(layer.adapters[0]), strict=True):
            found[name] = tensor
    return found


def names_in(layer: AdaptedLayer) -> tuple[str, str]:
    return f"{layer.name}.lora_A.weight", f"{layer.name}.lora_B.weight"


@contextlib.contextmanager
def adapted(options: Options, model: Any, inputs: Any, path: Any) -> Iterator[tuple[Options, Any]]:
    """Options and inputs with which the model is exported as `options.lora` asks; the model is changed meanwhile."""
    if options.lora not in WAYS:
        raise InvalidInput(f"[export] Expected lora as one of {', '.join(map(repr, WAYS))}, got {options.lora!r}.")
    if options.lora is None:
        yield options, inputs
        return
    check_model(model)
    layers = adapted_layers(model)
    calls = normalise(model, inputs)
    if options.lora == "merge":
        merged = Merged(model, layers, calls)
        with merged.changed():
            merged.check_same(options.tolerance, merged.call)
            yield replace(options, adapter=merged, notes=[*options.notes, merged.note]), inputs
        return
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidInput(
            "[export] Expected a path with lora='inputs', because the adapter is a file beside the model, got none."
        )
    beside = os.path.splitext(os.fspath(path))[0] + SUFFIX
    with staged_file(check_path(beside), "export") as staging:
        change = AsInputs(model, one_adapter(layers), calls, staging.path)
        write(staging.path, change.tensors)
        if options.placed is not None:
            check_each(layers, options.placed, options.tolerance)
        with change.changed():
            given = [(c.args, c.kwargs | change.tensors) for c in calls]
            if options.placed is None:
                change.check_same(options.tolerance, base_call(normalise(model, given)))
            yield change.options(options), given
        staging.commit_file()


OTHER = "[export] Expected layers that compute base_layer(x) + lora_B(lora_A(x)) * scaling, got other ones: "


def check_each(layers: list[AdaptedLayer], placed: Any, tolerance: float | None) -> None:
    """As Change.check_same, layer by layer, where the weights of all may be more than fit into memory."""
    generator = torch.Generator().manual_seed(0)
    for layer in layers:
        weights = list(layer.base.parameters())
        placed.fill(weights)
        down, up = layer.matrices(layer.adapters[0])
        if layer.embedding:
            x = torch.randint(0, down.shape[0], (2, 3), generator=generator)
            between = torch.nn.functional.embedding(x, down)
        else:
            x = torch.randn(2, 3, down.shape[0], generator=generator).to(weights[0].dtype)
            between = x.to(down.dtype) @ down
        with torch.no_grad():
            want, base = layer.module(x), layer.base(x)
            row = compare([layer.name], [want], [TensorValue((base + between @ up).to(base.dtype))], tolerance)
        placed.forget(weights)
        if not row["ok"]:
            raise Discrepancy(f"{OTHER}{row['output']} {row['problem']}. Export with lora=None.")


class Change:
    """Adapted layers that compute something else for a while; `how` says what."""

    defaults: list[str]  # inputs that a run may leave out

    def __init__(self, model: torch.nn.Module, layers: list[AdaptedLayer], calls: list[Call]):
        self.model, self.layers, self.call = model, layers, base_call(calls)
        self.how, self.defaults = CHANGED, []

    @contextlib.contextmanager
    def computing(self, how: str) -> Iterator[None]:
        def begin() -> tuple[str]:
            before, self.how = self.how, how
            return (before,)

        with during(begin, lambda before: setattr(self, "how", before)):
            yield

    def outputs(self, how: str, call: Call) -> list[torch.Tensor]:
        with torch.random.fork_rng(devices=[]), self.computing(how):
            args, kwargs = call.with_tensors([t.clone() for t in call.tensors])
            return eager(self.model, args, kwargs, True)

    def check_same(self, tolerance: float | None, call: Call) -> None:
        """What the layers compute now is what they compute as they stand. Also where no file is verified: whether they
        are what they look like is nothing that a file can show."""
        want, got = self.outputs(STANDS, self.call), self.outputs(CHANGED, call)
        row = compare([f"output {k}" for k in range(len(want))], want, [TensorValue(t) for t in got], tolerance)
        if not row["ok"]:
            raise Discrepancy(f"{OTHER}{row['output']} {row['problem']}. Export with lora=None.")

    def compared(self, job: Any, contract: Contract, how: str, run_options: Any, words: str) -> float:
        """The file against the model."""
        session = job.open_once(job.staged.path)
        feeds = dict(zip(job.input_names, job.call.tensors, strict=True))
        feeds = {name: tensor for name, tensor in feeds.items() if name not in self.defaults}
        got = session.run_with(feeds, run_options)
        names = job.driver.programs[0].names
        row = compare(
            names, self.outputs(how, job.call), got, job.options.tolerance, contract.drawn, contract.computed_in
        )
        if not row["ok"]:
            raise Discrepancy(
                f"[export] Expected the file {words}, got {row['output']}, which {row['problem']}. "
                f"{job.nothing_written}"
            )
        return float(row["scaled"])


class AsInputs(Change):
    def __init__(self, model: torch.nn.Module, layers: list[AdaptedLayer], calls: list[Call], path: str):
        super().__init__(model, layers, calls)
        self.path = path
        self.tensors = tensors_of(layers)
        self.defaults = list(self.tensors)
        self.given: Mapping[str, torch.Tensor] = {}
        taken = set(self.tensors) & {name for call in calls for name in call.named}
        if taken:
            raise InvalidInput(f"[export] Expected no input named {sorted(taken)[0]!r}, which is the adapter's.")

    def options(self, options: Options) -> Options:
        """With the adapter's inputs named, and their rank free."""
        ranks = sorted({layer.down.shape[1] for layer in self.layers})
        words = f"{len(self.layers)} layers, rank {', '.join(map(str, ranks))}"
        note = (
            f"the LoRA adapter ({words}) is {len(self.tensors)} inputs, of any rank; without them the file computes "
            "what the base model does"
        )
        symbols = {rank: RANK if len(ranks) == 1 else f"{RANK}_{rank}" for rank in ranks}
        shapes = self.user_shapes(options.dynamic_shapes)
        for layer in self.layers:
            down, up = names_in(layer)
            symbol = symbols[layer.down.shape[1]]
            shapes |= {down: {1: symbol}, up: {0: symbol}}
        names = options.input_names
        return replace(
            options, adapter=self, dynamic_shapes=shapes, notes=[*options.notes, note],
            input_names=None if names is None else [*names, *self.tensors],
        )  # fmt: skip

    def user_shapes(self, given: Any) -> dict[str, Any]:
        """For each argument of the user's; where nothing is said, it is to be found out."""
        if given is not None:
            return dict(by_argument(self.call.named, given))
        found: dict[str, Any] = {}
        for name, value in self.call.named.items():
            leaves = get_leaf_tensors({name: value}).values()
            specs = [dict.fromkeys(range(leaf.dim()), torch.export.Dim.AUTO) for leaf in leaves]
            found[name] = specs[0] if isinstance(value, torch.Tensor) else specs
        return found

    @contextlib.contextmanager
    def changed(self) -> Iterator[None]:
        patches = [(layer.module, "forward", functools.partial(self.of_layer, layer)) for layer in self.layers]
        with patch_attributes([*patches, (self.model, "forward", self.of_model)]), taken_back():
            yield

    def of_model(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def forward(*args: Any, **kwargs: Any) -> Any:
            self.given = {name: kwargs.pop(name) for name in self.tensors if name in kwargs}
            try:
                return original(*args, **kwargs)
            finally:
                self.given = {}

        return forward

    def of_layer(self, layer: AdaptedLayer, original: Callable[..., Any]) -> Callable[..., Any]:
        down_name, up_name = names_in(layer)

        @functools.wraps(original)
        def forward(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if self.how == STANDS:
                return original(x, *args, **kwargs)
            result = layer.base(x, *args, **kwargs)
            if self.how == BASE:
                return result
            down, up = self.given[down_name], self.given[up_name]
            if layer.embedding:
                between = torch.nn.functional.embedding(x, down)
            else:
                between = x.to(down.dtype) @ down
            return (result + between @ up).to(result.dtype)

        return forward

    def finish(self, job: Any, contract: Contract) -> str:
        """What was checked with the adapter's own file, in words."""
        import onnxruntime

        adapter = onnxruntime.LoraAdapter()
        adapter.Load(self.path)
        with_adapter = onnxruntime.RunOptions()
        with_adapter.add_active_adapter(adapter)
        own = self.compared(
            job, contract, STANDS, with_adapter, "with the adapter's file to compute what the model does"
        )
        base = self.compared(
            job, contract, BASE, onnxruntime.RunOptions(), "without an adapter to compute what the base model does"
        )
        words = f"with the adapter's file against the model as it stands {own:.2g}"
        return f"{words}, without it against its base {base:.2g}"


class Merged(Change):
    def __init__(self, model: torch.nn.Module, layers: list[AdaptedLayer], calls: list[Call]):
        super().__init__(model, layers, calls)
        names = list(dict.fromkeys(name for layer in layers for name in layer.adapters if name))
        which = f" {', '.join(names)}" if names else ""
        self.note = f"the LoRA adapter{which} ({len(layers)} layers) is merged into the weights"
        self.weights = {layer.name: merged_weight(layer) for layer in layers}

    @contextlib.contextmanager
    def changed(self) -> Iterator[None]:
        patches = [(layer.module, "forward", functools.partial(self.of_layer, layer)) for layer in self.layers]
        with patch_attributes(patches), during(self.swap, self.put_back), taken_back():
            yield

    def swap(self) -> tuple[list[tuple[AdaptedLayer, Any]]]:
        kept = [(layer, layer.base._parameters["weight"]) for layer in self.layers]
        for layer in self.layers:
            layer.base._parameters["weight"] = self.weights[layer.name]
        return (kept,)

    def put_back(self, kept: list[tuple[AdaptedLayer, Any]]) -> None:
        for layer, weight in kept:
            layer.base._parameters["weight"] = weight

    def of_layer(self, layer: AdaptedLayer, original: Callable[..., Any]) -> Callable[..., Any]:
        own = layer.base._parameters["weight"]

        @functools.wraps(original)
        def forward(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if self.how != STANDS:
                return layer.base(x, *args, **kwargs)
            layer.base._parameters["weight"] = own
            try:
                return original(x, *args, **kwargs)
            finally:
                layer.base._parameters["weight"] = self.weights[layer.name]

        return forward

    def finish(self, job: Any, contract: Contract) -> str:
        import onnxruntime

        words = "with merged weights to compute what the model does"
        found = self.compared(job, contract, STANDS, onnxruntime.RunOptions(), words)
        return f"with merged weights against the model as it stands {found:.2g}"


def merged_weight(layer: AdaptedLayer) -> torch.nn.Parameter:
    weight = layer.base._parameters.get("weight")
    if isinstance(weight, torch.Tensor) and not (type(weight) in PLAIN and weight.is_floating_point()):
        raise Unsupported(
            f"[export] Expected weights of floats to merge an adapter into, got "
            f"{str(weight.dtype).removeprefix('torch.')} at {layer.name}, a {type(layer.base).__name__}. Load the base "
            "model without quantisation, or export with lora='inputs'."
        )
    delta = layer.delta()  # refuses a base layer without a weight
    total = weight.detach().to(torch.promote_types(weight.dtype, delta.dtype)) + delta
    return torch.nn.Parameter(total.to(weight.dtype), requires_grad=False)
