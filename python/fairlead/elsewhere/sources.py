"""Where the tensors of a model are: here, on another device, in a checkpoint, or with somebody who reads them.

Offloaded modules are found by what `accelerate` puts on them: a hook with `weights_map`, which has their tensors by
name while the module itself has none, and the function that forward was before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from fairlead._core import InvalidInput, WeightFolder

PLAIN = (torch.Tensor, torch.nn.Parameter)


@dataclass
class Slot:
    """A place of the model that holds a tensor."""

    module: torch.nn.Module
    table: str  # "_parameters", "_buffers", or "__dict__" for an attribute
    name: str
    path: str  # of the tensor in the model
    tensor: torch.Tensor
    within: bool = False  # whether the attribute is a list, tuple or dict that has it somewhere

    def put(self, value: torch.Tensor) -> None:
        if not self.within:  # `replaced` makes the whole anew
            getattr(self.module, self.table)[self.name] = value

    @property
    def is_buffer(self) -> bool:
        return self.table != "_parameters"


@dataclass
class Source:
    """A tensor that is not here: `load` gives it, on any device."""

    load: Callable[[], torch.Tensor]
    shape: torch.Size
    dtype: torch.dtype
    where: str  # "on cuda:0", "offloaded", "in w.safetensors": for the contract
    here: torch.Tensor | None = None  # where it is in memory after all

    @property
    def bytes(self) -> int:
        return self.shape.numel() * self.dtype.itemsize


def is_here(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu"


def slots_of(model: torch.nn.Module) -> Iterator[Slot]:
    for prefix, module in model.named_modules():
        for table in ("_parameters", "_buffers", "__dict__"):
            for name, tensor in getattr(module, table).items():
                path = f"{prefix}.{name}" if prefix else name
                if isinstance(tensor, torch.Tensor):
                    yield Slot(module, table, name, path, tensor)
                elif table == "__dict__" and name not in OF_MODULES and type(tensor) in HOLDERS:
                    for each in held_in(tensor):
                        yield Slot(module, table, name, path, each, within=True)


# ---- tensors in lists of a module's own --------------------------------------------------------------------------

HOLDERS = (list, tuple, dict)
OF_MODULES = frozenset(vars(torch.nn.Module()))
DEEP = 8  # lists in lists


def held_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif type(value) in HOLDERS and depth < DEEP:
        for item in value.values() if isinstance(value, dict) else value:
            yield from held_in(item, depth + 1)


def replaced(value: Any, new: Mapping[int, torch.Tensor], depth: int = 0) -> Any:
    """The same around other tensors, by the ids of those that it has."""
    if isinstance(value, torch.Tensor):
        return new.get(id(value), value)
    if type(value) not in HOLDERS or depth >= DEEP:
        return value
    if isinstance(value, dict):
        return {key: replaced(item, new, depth + 1) for key, item in value.items()}
    return type(value)(replaced(item, new, depth + 1) for item in value)


# ---- hooks of accelerate -------------------------------------------------------------------------------------


def hooks_of(module: torch.nn.Module) -> list[Any]:
    """Those that move tensors to where a module is executed, and nothing else; [] where there are others, too."""
    hook = getattr(module, "_hf_hook", None)
    if hook is None or not hasattr(module, "_old_forward"):
        return []
    found = list(getattr(hook, "hooks", None) or [hook])
    moves = all(hasattr(each, "execution_device") for each in found)
    return found if moves else []


def offloaded(model: torch.nn.Module) -> dict[tuple[int, str], Source]:
    """By module and name of a tensor: where it comes from."""
    found: dict[tuple[int, str], Source] = {}
    for module in model.modules():
        for hook in hooks_of(module):
            weights = getattr(hook, "weights_map", None)
            if not getattr(hook, "offload", False) or weights is None:
                continue
            inner = module.named_modules() if getattr(hook, "place_submodules", False) else [("", module)]
            for prefix, part in inner:
                for table in (part._parameters, part._buffers):
                    for name, tensor in table.items():
                        if tensor is not None and tensor.is_meta:
                            key = f"{prefix}.{name}" if prefix else name
                            found.setdefault((id(part), name), source_of(weights, key, tensor))
    return found


def source_of(weights: Any, key: str, tensor: torch.Tensor) -> Source:
    """Of a mapping of accelerate's, which has tensors in memory, and reads others from a disk."""
    place, name = weights, key
    while hasattr(place, "dataset") and isinstance(getattr(place, "prefix", None), str):
        place, name = place.dataset, place.prefix + name
    held = getattr(place, "state_dict", place)
    here = held.get(name) if isinstance(held, dict) else None
    if here is not None and not (type(here) in PLAIN and is_here(here) and alike(here, tensor)):
        here = None
    return Source(lambda: weights[key], tensor.shape, tensor.dtype, "offloaded", here)


def alike(tensor: torch.Tensor, wanted: torch.Tensor) -> bool:
    return tensor.shape == wanted.shape and tensor.dtype == wanted.dtype


# ---- checkpoints ---------------------------------------------------------------------------------------------


class Checkpoint:
    """Tensors of safetensors files by their names in a state dict, mapped and not read."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = os.fsdecode(path)
        folder, file = (self.path, "") if os.path.isdir(self.path) else os.path.split(self.path)
        self.files = WeightFolder(folder or os.curdir, file)
        self.numbers = {name: number for number, name in enumerate(self.files.tensor_names())}

    def sources(self, slots: list[Slot], model: torch.nn.Module) -> dict[int, Source]:
        """By id of a tensor of the model. Tensors that are tied are found by any of their names."""
        names: dict[int, list[Slot]] = {}
        for slot in slots:
            names.setdefault(id(slot.tensor), []).append(slot)
        found: dict[int, Source] = {}
        missing = []
        for key, places in names.items():
            number = next((self.numbers[s.path] for s in places if s.path in self.numbers), None)
            if number is None:
                missing.append(places[0].path)
            else:
                found[key] = self.source(number, places[0])
        if missing:
            self.refuse(missing, model)
        return found

    def source(self, number: int, slot: Slot) -> Source:
        sizes, file, begin = self.files.place(number)
        dtype, wanted = getattr(torch, self.files.dtype(number)), slot.tensor
        if tuple(sizes) != tuple(wanted.shape):
            raise InvalidInput(
                f"[export] Expected {slot.path} as {list(wanted.shape)} in '{self.path}', got {sizes}. Give the "
                "checkpoint of this model."
            )
        raw = torch.from_numpy(self.files.memory(file))[begin : begin + wanted.numel() * dtype.itemsize]

        def load() -> torch.Tensor:
            whole = raw if raw.data_ptr() % dtype.itemsize == 0 else raw.clone()
            return whole.view(dtype).view(wanted.shape).to(wanted.dtype)

        as_it_is = dtype == wanted.dtype and raw.data_ptr() % dtype.itemsize == 0
        return Source(load, wanted.shape, wanted.dtype, f"in {self.files.names[file]}", load() if as_it_is else None)

    def refuse(self, missing: list[str], model: torch.nn.Module) -> None:
        kept = model.state_dict().keys()
        computed = [path for path in missing if path not in kept]
        if len(computed) == len(missing):
            raise InvalidInput(
                f"[export] Expected tensors on meta that a checkpoint has, got {len(missing)} that none has, "
                f"{missing[0]} among them: the model computes them when it is made. Make it with parameters alone on "
                "meta, as accelerate.init_empty_weights() does."
            )
        first = next(path for path in missing if path in kept)
        raise InvalidInput(
            f"[export] Expected every tensor of the model in '{self.path}', but it lacks "
            f"{len(missing) - len(computed)}, {first} among them. Give the checkpoint of this model, with its names."
        )
