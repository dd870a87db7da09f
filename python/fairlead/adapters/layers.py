"""Layers with an adapter, found by what they hold: lora_A, lora_B and scaling beside a base layer.

So PEFT need not be imported, and another library's layers, or one's own, are found as well. What is computed there is
taken to be `base_layer(x) + lora_B(lora_A(x)) * scaling`; that it is so is checked with the whole model.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from fairlead._core import InvalidInput, Unsupported
from fairlead.base.alone import taken_back
from fairlead.patches.attributes import patch_attributes

# PEFT keeps the model there; names begin where the model itself begins, wrapped or not.
WRAPPED = "base_model.model."
UNMERGED = "Export with lora=None, or call merge_and_unload() on the model and export what it returns."


@dataclass
class AdaptedLayer:
    name: str  # of the module, in the model without PEFT's wrappers
    module: Any
    base: Any
    adapters: list[str]  # that are active, of those it holds
    embedding: bool

    @property
    def down(self) -> torch.Tensor:
        """[in, rank]: what its input is multiplied with first."""
        return self.matrices(self.adapters[0])[0]

    @property
    def up(self) -> torch.Tensor:
        """[rank, out], with everything that scales the result."""
        return self.matrices(self.adapters[0])[1]

    def matrices(self, adapter: str) -> tuple[torch.Tensor, torch.Tensor]:
        a, b = (held(self.module, name, adapter, self.embedding) for name in ("A", "B"))
        scale = scaling(self.module, adapter)
        if self.embedding and (of_embedding := getattr(self.base, "embed_scale", None)) is not None:
            scale *= float(of_embedding)
        sizes = sorted(sizes_of(self.base))
        if a.dim() != 2 or b.dim() != 2 or sorted((a.shape[1], b.shape[0])) != sizes:
            raise Unsupported(
                f"[export] Expected linear layers and embeddings with lora_A as [rank, in] and lora_B as [out, rank], "
                f"got {list(a.shape)} and {list(b.shape)} at {self.name}, a {type(self.base).__name__}. {UNMERGED}"
            )
        down, up = a.detach().t().contiguous(), (b.detach() * scale).t().contiguous()
        if down.shape[1] != up.shape[0]:
            raise InvalidInput(
                f"[export] Expected lora_A and lora_B of one rank, got {down.shape[1]} and {up.shape[0]} in "
                f"{self.name}. Repair the adapter."
            )
        return down, up

    def delta(self) -> torch.Tensor:
        """What its adapters add to the weight of the base layer."""
        made = getattr(self.module, "get_delta_weight", None)
        total: torch.Tensor | None = None
        for adapter in self.adapters:
            if made is not None:
                one = made(adapter).detach()
            else:
                down, up = (t.double() for t in self.matrices(adapter))
                one = down @ up if self.embedding else (down @ up).t()
            total = one if total is None else total + one
        assert total is not None
        shape = list(getattr(getattr(self.base, "weight", None), "shape", ()))
        if list(total.shape) != shape:
            raise Unsupported(
                f"[export] Expected an adapter of the size of its weight at {self.name}, got {list(total.shape)} for "
                f"{shape}, of a {type(self.base).__name__}. {UNMERGED}"
            )
        return total


def sizes_of(base: Any) -> tuple[int, ...]:
    """Of the weight that it multiplies with, which a quantised layer stores otherwise."""
    weight = getattr(base, "weight", None)
    stored_otherwise = not (isinstance(weight, torch.Tensor) and weight.is_floating_point())
    if stored_otherwise and hasattr(base, "in_features"):
        return base.in_features, base.out_features
    return tuple(getattr(weight, "shape", ()))


def chosen(value: Any, adapter: str) -> Any:
    """Of a table by adapter, or the thing itself."""
    return value[adapter] if holds_several(value) else value


def held(module: Any, name: str, adapter: str, embedding: bool) -> torch.Tensor:
    """The matrix of lora_A or lora_B, as PEFT has it: [rank, in], [out, rank]."""
    found = chosen(getattr(module, f"lora_embedding_{name}" if embedding else f"lora_{name}"), adapter)
    weight = found if isinstance(found, torch.Tensor) else found.weight
    assert isinstance(weight, torch.Tensor)
    return weight


def scaling(module: Any, adapter: str) -> float:
    return float(chosen(module.scaling, adapter))


def adapted_layers(model: torch.nn.Module) -> list[AdaptedLayer]:
    """Every layer with an active adapter. Raises where one does something else than an adapter of two matrices."""
    found, seen = [], False
    for path, module in model.named_modules():
        name = path.rpartition(WRAPPED)[2]
        if not is_adapted(module):
            refuse_other(name, module)
            continue
        seen = True
        layer = taken(name, module)
        if layer is not None:
            found.append(layer)
    if not found:
        what = "with none that is active" if seen else "without one"
        advice = "Activate one with set_adapter()" if seen else "Leave lora out"
        raise InvalidInput(
            f"[export] Expected a model with a LoRA adapter (modules with lora_A, lora_B and scaling beside a base "
            f"layer), got {type(model).__name__} {what}. {advice}."
        )
    return found


@contextlib.contextmanager
def without_adapters(model: torch.nn.Module) -> Iterator[None]:
    """Its layers compute what their base layers do."""
    patches = [(layer.module, "forward", functools.partial(of_base, layer)) for layer in adapted_layers(model)]
    with patch_attributes(patches), taken_back():
        yield


def of_base(layer: AdaptedLayer, original: Any) -> Any:
    @functools.wraps(original)
    def forward(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return layer.base(x, *args, **kwargs)

    return forward


def is_adapted(module: torch.nn.Module) -> bool:
    has = all(hasattr(module, name) for name in ("lora_A", "lora_B", "scaling"))
    return has and isinstance(getattr(module, "base_layer", None), torch.nn.Module)


def refuse_other(name: str, module: torch.nn.Module) -> None:
    """What an adapter may hold beside its matrices, which are other weights of the base."""
    if isinstance(getattr(module, "original_module", None), torch.nn.Module) and hasattr(module, "active_adapters"):
        raise Unsupported(
            f"[export] Expected an adapter of matrices A and B alone, got {name}, a module that is trained as a whole "
            f"beside it ({type(module).__name__}). {UNMERGED}"
        )


def taken(name: str, module: Any) -> AdaptedLayer | None:
    """A layer as it will be exported; None where no adapter of it is active."""
    if getattr(module, "merged", False):
        raise InvalidInput(
            f"[export] Expected an adapter beside its base layer, got one that is merged into it at {name}. Call "
            "unmerge_adapter() first, or leave lora out."
        )
    names = [[*t] for t in (module.lora_A, getattr(module, "lora_embedding_A", ())) if holds_several(t)]
    every = [each for row in names for each in row] if holds_several(module.lora_A) else [""]
    active = getattr(module, "active_adapters", every)
    adapters = [each for each in active if each in every]
    if not adapters or getattr(module, "disable_adapters", False):
        return None
    for adapter in adapters:
        refuse_variant(name, module, adapter)
    embedding = holds_several(module.lora_A) and adapters[0] not in module.lora_A
    return AdaptedLayer(name, module, module.base_layer, adapters, embedding)


def holds_several(value: Any) -> bool:
    return isinstance(value, (Mapping, torch.nn.ModuleDict, torch.nn.ParameterDict))


def refuse_variant(name: str, module: Any, adapter: str) -> None:
    variant = getattr(module, "lora_variant", {}).get(adapter)
    dora = adapter in getattr(module, "lora_magnitude_vector", ()) or getattr(module, "use_dora", {}).get(adapter)
    if variant is not None or dora:
        kind = "DoRA" if dora else type(variant).__name__ if not isinstance(variant, type) else variant.__name__
        raise Unsupported(f"[export] Expected plain LoRA, got {kind} at {name}. {UNMERGED}")
    up = module.lora_B
    if holds_several(up):
        up = dict(up.items()).get(adapter)  # of an embedding there is none
    bias = getattr(up, "bias", None)
    if isinstance(bias, torch.Tensor):
        raise Unsupported(f"[export] Expected matrices A and B alone, got a bias of lora_B at {name}. {UNMERGED}")
