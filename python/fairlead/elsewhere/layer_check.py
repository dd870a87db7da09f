"""A model that does not fit into memory, checked layer by layer: the first, the last and one between.

Each is exported by itself, with the weights of the checkpoint where they are, and compared with eager in ONNX Runtime
at sizes that were not used to make it. What is around the layers is referred to and not run.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch

from fairlead._core import Discrepancy, FairleadError
from fairlead.base.errors import reworded, sentence_of
from fairlead.base.memory import free_memory
from fairlead.base.units import size_text
from fairlead.options import Options
from fairlead.record.stand_in import without_weights
from fairlead.tree.caches.kinds import Kind, kind_of
from fairlead.tree.leaves import get_leaf_tensors, leaf_tensors, replace_leaf_tensors

# Weights, the same in float32 in ONNX Runtime, and as its kernels pack them.
TIMES = 6


class Placed(Protocol):
    """Weights of which some have addresses alone."""

    bytes: int

    def shared(self, folder: str) -> Any: ...
    def fill(self, parameters: list[torch.nn.Parameter]) -> None: ...
    def forget(self, parameters: list[torch.nn.Parameter]) -> None: ...
    def check_file(self, path: str, bytes_too: bool) -> str: ...


class Layer(torch.nn.Module):
    """A layer with the arguments that the model gave it."""

    def __init__(self, layer: torch.nn.Module, constants: dict[str, Any]):
        super().__init__()
        self.layer, self.constants = layer, constants

    def forward(self, **inputs: Any) -> Any:
        return self.layer(**inputs, **self.constants)


@dataclass
class LayerWeights:
    """As Options.placed: what of the weights has addresses alone is read for this layer."""

    placed: Placed
    layer: torch.nn.Module

    def read(self, why: str) -> None:
        self.placed.fill(list(self.layer.parameters()))

    def check_file(self, path: str, bytes_too: bool) -> str:
        return self.placed.check_file(path, False)  # its bytes are looked at with the whole


def bytes_of(layer: torch.nn.Module) -> int:
    return sum(p.numel() * p.element_size() for p in layer.parameters())


def layers_of(model: torch.nn.Module) -> tuple[str, list[torch.nn.Module]] | None:
    """The list of modules that holds most of the weights."""
    lists = [(name, list(m)) for name, m in model.named_modules() if isinstance(m, torch.nn.ModuleList) and len(m) > 1]
    return max(lists, key=lambda row: sum(map(bytes_of, row[1])), default=None)


def check_layers(
    model: torch.nn.Module,
    call: Callable[[], Any],
    placed: Placed,
    options: Options,
    staged: str,
    show: Any,
    export: Any,
) -> str:
    """What was checked, in words for the contract. Raises Discrepancy where a layer differs. `call` calls the model, or
    what it is a part of, without its weights; `export` is fairlead.export_with; files go to `staged` and go again."""
    whole = f"the whole, with {size_text(placed.bytes)} of weights, was not run"
    found = layers_of(model)
    if found is None:
        return f"nothing but where the weights are: {whole}"
    name, layers = found
    chosen = sorted({0, len(layers) // 2, len(layers) - 1})
    given = arguments_of(call, [layers[k] for k in chosen])
    worst, runs, checked, others = 0.0, 0, [], []
    for k, arguments in zip(chosen, given, strict=True):
        layer = layers[k]
        if arguments is None or TIMES * bytes_of(layer) > free_memory():
            why = "it is not called" if arguments is None else f"its {size_text(bytes_of(layer))} do not fit either"
            others.append(f"{k} ({why})")
            continue
        show(f"checking layer {k} of {len(layers)}")
        path = os.path.join(staged, f"layer-{k}.onnx")
        part = replace(
            options, placed=LayerWeights(placed, layer), shared_weights=placed.shared(staged), input_names=None,
            output_names=None, dynamic_shapes=None, max_size=None, own_examples=True, allow_random=False,
        )  # fmt: skip
        inputs, constants = arguments
        try:
            result = export(part, Layer(layer, constants).eval(), [inputs], path)
        except Discrepancy as error:
            reworded(error, f"[export] In {name}.{k}, checked by itself: {sentence_of(error)}")
            raise
        except FairleadError as error:
            others.append(f"{k} ({sentence_of(error).rstrip('.')})")
            continue
        finally:
            placed.forget(list(layer.parameters()))
            if os.path.exists(path):
                os.unlink(path)
        checked.append(k)
        runs += len(result.discrepancies)
        worst = max([worst, *(row.scaled for row in result.discrepancies)])
    unchecked = f"; not layer {', '.join(others)}" if others else ""
    if not checked:
        return f"nothing but where the weights are: {whole}{unchecked}"
    numbers = ", ".join(map(str, checked))
    kind = type(layers[checked[0]]).__name__
    return (
        f"layers {numbers} of {len(layers)} ({kind}), each by itself in ONNX Runtime: worst difference {worst:.2g} in "
        f"{runs} runs; {whole}{unchecked}"
    )


def arguments_of(
    call: Callable[[], Any], layers: list[torch.nn.Module]
) -> list[tuple[dict[str, Any], dict[str, Any]] | None]:
    """(tensors, constants) with which the model calls each layer, without a cache; numbers of ours for what its weights
    decide."""
    seen: dict[int, tuple[Any, ...]] = {}

    def watch(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        seen.setdefault(id(module), (args, kwargs))

    hooks = [layer.register_forward_pre_hook(watch, with_kwargs=True) for layer in layers]
    try:
        call()
    finally:
        for hook in hooks:
            hook.remove()
    return [named(layer, *seen[id(layer)]) if id(layer) in seen else None for layer in layers]


def call_without_past(module: torch.nn.Module, calls: list[dict[str, Any]]) -> None:
    """Calls it without its weights, and with a cache that is empty, where there is one."""
    with torch.no_grad(), without_weights(module):
        module(**without_past(calls))


def without_past(calls: list[dict[str, Any]]) -> dict[str, Any]:
    """A call whose cache is empty, where there is one; a copy, because a cache is written."""

    def past(call: dict[str, Any]) -> int:
        return sum(t.numel() for value in call.values() if kind_of(value) is not Kind.NOT for t in leaf_tensors(value))

    call = min(calls, key=past)
    return dict(replace_leaf_tensors(call, [t.clone() for t in get_leaf_tensors(call).values()]))


def named(
    layer: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    bound = inspect.signature(layer.forward).bind(*args, **kwargs).arguments
    values: dict[str, Any] = {}
    for name, value in bound.items():
        parameter = inspect.signature(layer.forward).parameters[name]
        values |= value if parameter.kind is inspect.Parameter.VAR_KEYWORD else {name: value}
    inputs: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    generator = torch.Generator().manual_seed(0)

    def with_numbers(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_meta:
            return tensor.clone()
        if not tensor.is_floating_point():
            return torch.zeros(tensor.shape, dtype=tensor.dtype)
        return torch.randn(tensor.shape, generator=generator).to(tensor.dtype)

    for name, value in values.items():
        if kind_of(value) is not Kind.NOT:
            constants[name] = None
        elif leaves := leaf_tensors({name: value}):
            inputs |= replace_leaf_tensors({name: value}, [with_numbers(t) for t in leaves])
        else:
            constants[name] = False if name == "use_cache" else value
    return inputs, constants
