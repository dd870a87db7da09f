"""The flat names of tensors in nested inputs and outputs, and the way back: the same structure around other
tensors.

    get_leaf_tensors({"input_ids": t, "past_key_values": cache})
    -> {"input_ids": t, "past_key_values.0.key": k0, "past_key_values.0.value": v0, "past_key_values.1.key":
    ...}

Rules:
1. Paths are dotted: dict keys, dataclass fields, attributes, indices. None, numbers, strings, types, enums
   are skipped.
2. Caches: `0.key`, `0.value`, then other state by its attribute name (`0.conv_states`); an encoder-decoder
   cache gives
   `0.decoder.key`, `0.decoder.value`, `0.encoder.key`, `0.encoder.value` per layer.
3. A bare tensor is "output", a bare cache "past_key_values".
4. Reading and replacing walk in the same order, so a list of tensors can stand for the names.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from fairlead.tree.caches.kinds import Kind, kind_of
from fairlead.tree.caches.state import SYMBOLIC, leaf_names_and_tensors, put_together, take_apart

# What holds no tensor although it has attributes. Symbolic numbers would lead into the internals of torch.
SKIPPED = (
    type(None), bool, int, float, complex, str, bytes, type, enum.Enum, torch.dtype, torch.device,
    torch.nn.Module,
    types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType, torch.Generator,
    *SYMBOLIC,
)  # fmt: skip

Put = Callable[[str, torch.Tensor], torch.Tensor]


def get_leaf_tensors(obj: Any) -> dict[str, torch.Tensor]:
    """Every tensor of a nested structure by its dotted path, in the order that replace_leaf_tensors uses.

    >>> list(get_leaf_tensors({"x": torch.zeros(2), "y": [torch.zeros(3), None, torch.zeros(4)]}))
    ['x', 'y.0', 'y.2']
    """
    found: dict[str, torch.Tensor] = {}
    if isinstance(obj, torch.Tensor):
        return {"output": obj}
    _read(obj, "past_key_values" if kind_of(obj) is not Kind.NOT else "", found, set())
    return found


def leaf_tensors(obj: Any) -> list[torch.Tensor]:
    """The same tensors in the same order, without their names: a call may have thousands."""
    found: list[torch.Tensor] = []
    _collect(obj, found, set())
    return found


def replace_leaf_tensors(obj: Any, tensors: Mapping[str, torch.Tensor] | Sequence[torch.Tensor]) -> Any:
    """The same structure, made of new containers and new cache objects, around other tensors.

    `tensors` is a mapping by the names of get_leaf_tensors (names left out keep their tensor) or a list with
    one tensor
    per name. Numbers that a cache keeps about its tensors (batch size, length so far) follow the new tensors.
    """
    if isinstance(tensors, Mapping):
        names = get_leaf_tensors(obj)
        unknown = [name for name in tensors if name not in names]
        if unknown:
            raise ValueError(
                f"[replace_leaf_tensors] Expected names of the structure, got {', '.join(unknown)} "
                f"(known: {', '.join(names)})."
            )
        given = {**names, **tensors}
        if isinstance(obj, torch.Tensor):
            return given["output"]
        return _Rebuild(given).run(obj, "past_key_values" if kind_of(obj) is not Kind.NOT else "")
    walk = _RebuildInOrder(tensors)
    try:
        made = walk.run(obj, "")
    except _TooFewError:
        made = None
    if walk.taken != len(tensors):
        names = get_leaf_tensors(obj)
        raise ValueError(
            f"[replace_leaf_tensors] Expected {len(names)} tensors, got {len(tensors)} (names: {', '.join(names)})."
        )
    return made


def with_numbers(obj: Any) -> Any:
    """The same structure with the numbers in its dicts, lists, tuples, dataclasses and objects beside tensors as
    tensors of no dimension: what a file can give back of them.

    >>> with_numbers((torch.zeros(2), 3))
    (tensor([0., 0.]), tensor(3))
    """
    if isinstance(obj, bool):
        return torch.tensor(int(obj)) != 0
    if isinstance(obj, (int, float)) and not isinstance(obj, enum.Enum):
        return torch.tensor(obj) if isinstance(obj, float) or -(2**63) <= obj < 2**63 else obj
    if type(obj) is complex:
        return torch.tensor(obj)
    plain = isinstance(obj, (Mapping, list, tuple)) or (dataclasses.is_dataclass(obj) and not isinstance(obj, type))
    plain = plain or (not isinstance(obj, (torch.Tensor, *SKIPPED)) and holds_a_tensor(obj))
    if not plain or kind_of(obj) is not Kind.NOT:
        return obj
    inner = children(obj) or []
    values = {name: with_numbers(child) for name, child in inner}
    if all(values[name] is child for name, child in inner):
        return obj
    return tuple(values.values()) if isinstance(obj, torch.Size) else with_children(obj, values)


def holds_a_tensor(obj: Any) -> bool:
    """Whether it is an object of a class of one's own with a tensor among its attributes."""
    attributes = getattr(obj, "__dict__", None)
    return type(attributes) is dict and any(isinstance(value, torch.Tensor) for value in attributes.values())


def output_names(names: Iterable[str], inputs: Iterable[str] = ()) -> list[str]:
    """The names of outputs: `past_key_values.0.key` -> `present.0.key`; a name that is an input too gets
    `present.`.

    >>> output_names(["logits", "past_key_values.0.key"])
    ['logits', 'present.0.key']
    """
    taken = set(inputs)
    result = []
    for name in names:
        parts = ["present" if part == "past_key_values" else part for part in name.split(".")]
        renamed = ".".join(parts)
        while renamed in taken:
            renamed = "present." + renamed.partition(".")[2] if "." in renamed else "present." + renamed
            if renamed in taken:
                renamed = "output." + renamed
        taken.add(renamed)
        result.append(renamed)
    return result


def cache_leaves(cache: Any) -> tuple[list[str], list[torch.Tensor]]:
    """Names (without prefix) and tensors of one cache, in the order of rule 2."""
    names, tensors = leaf_names_and_tensors(cache)
    if kind_of(cache) is Kind.PAIR:
        order = pair_order(names)
        return [_pair_name(names[i]) for i in order], [tensors[i] for i in order]
    return names, tensors


def pair_order(names: list[str]) -> list[int]:
    """Order of an encoder-decoder cache: by layer, then decoder before encoder; what belongs to no layer
    comes last.
    """

    def rank(index: int) -> tuple[int, int, int]:
        part, _, rest = names[index].partition(".")
        layer = rest.partition(".")[0]
        if part not in ("decoder", "encoder") or not layer.isdigit():
            return (1 << 30, 0, index)
        return (int(layer), 0 if part == "decoder" else 1, index)

    return sorted(range(len(names)), key=rank)


def _pair_name(name: str) -> str:
    part, _, rest = name.partition(".")
    layer, _, tail = rest.partition(".")
    return f"{layer}.{part}.{tail}" if layer.isdigit() else name


def join(prefix: str, name: object) -> str:
    return f"{prefix}.{name}" if prefix else str(name)


def _unique(found: Mapping[str, Any], name: str) -> str:
    # {"a.b": t, "a": {"b": t}} has one path twice; dropping a tensor would be worse than a longer name.
    number = 2
    while f"{name}_{number}" in found:
        number += 1
    return f"{name}_{number}"


def children(obj: Any) -> list[tuple[object, Any]] | None:
    """(name, child) of a container that is not a cache; None when the object is not one."""
    if isinstance(obj, Mapping):
        if dataclasses.is_dataclass(obj):  # ModelOutput: fields that are set, in the order of the fields
            return [(name, value) for name, value in obj.items() if value is not None]
        return list(obj.items())
    if isinstance(obj, (list, tuple)):
        fields = getattr(obj, "_fields", None)
        return list(zip(fields, obj, strict=True)) if fields else list(enumerate(obj))
    if isinstance(obj, (set, frozenset)):
        return list(enumerate(obj))
    if dataclasses.is_dataclass(obj):
        return [(field.name, getattr(obj, field.name, None)) for field in dataclasses.fields(obj)]
    node = pytree.SUPPORTED_NODES.get(type(obj))
    if node is not None:
        if node.flatten_with_keys_fn is not None:
            return [(_key_name(key), child) for key, child in node.flatten_with_keys_fn(obj)[0]]
        return list(enumerate(node.flatten_fn(obj)[0]))
    if hasattr(obj, "__dict__"):
        return list(vars(obj).items())
    return None


def _key_name(key: Any) -> object:
    for attribute in ("name", "key", "idx"):
        if hasattr(key, attribute):
            return getattr(key, attribute)
    return str(key)


def _read(obj: Any, prefix: str, found: dict[str, torch.Tensor], open_objects: set[int]) -> None:
    if isinstance(obj, torch.Tensor):
        found[prefix if prefix not in found else _unique(found, prefix)] = obj
        return
    if isinstance(obj, SKIPPED):
        return
    if kind_of(obj) is not Kind.NOT:
        names, tensors = cache_leaves(obj)
        for name, tensor in zip(names, tensors, strict=True):
            if isinstance(tensor, torch.Tensor):
                name = join(prefix, name)
                found[name if name not in found else _unique(found, name)] = tensor
        return
    if id(obj) in open_objects:  # an object that holds itself
        return
    # A list may be long: no tuple for each of its items.
    inner = enumerate(obj) if type(obj) in (list, tuple) else children(obj)
    if inner:
        open_objects.add(id(obj))
        for key, child in inner:
            path = join(prefix, key)
            if isinstance(child, torch.Tensor):  # of a long list, without a call for each
                found[path if path not in found else _unique(found, path)] = child
            else:
                _read(child, path, found, open_objects)
        open_objects.discard(id(obj))


def are_tensors(obj: Any) -> bool:
    """Whether it is a plain list of plain tensors."""
    return type(obj) in (list, tuple) and set(map(type, obj)) == {torch.Tensor}


def _collect(obj: Any, found: list[torch.Tensor], open_objects: set[int]) -> None:
    """Walks as _read does."""
    if isinstance(obj, torch.Tensor):
        found.append(obj)
    elif are_tensors(obj):
        found.extend(obj)
    elif isinstance(obj, SKIPPED) or id(obj) in open_objects:
        return
    elif kind_of(obj) is not Kind.NOT:
        found.extend(tensor for tensor in cache_leaves(obj)[1] if isinstance(tensor, torch.Tensor))
    else:
        open_objects.add(id(obj))
        for _, child in children(obj) or []:
            _collect(child, found, open_objects)
        open_objects.discard(id(obj))


class _Rebuild:
    """Walks as _read does, and returns new containers around the given tensors."""

    def __init__(self, given: Mapping[str, torch.Tensor]):
        self._given = given
        self._used: dict[str, None] = {}
        self._open: set[int] = set()

    def _take(self, name: str) -> torch.Tensor:
        name = name if name not in self._used else _unique(self._used, name)
        self._used[name] = None
        return self._given[name]

    def run(self, obj: Any, prefix: str) -> Any:
        if isinstance(obj, torch.Tensor):
            return self._take(prefix)
        if isinstance(obj, SKIPPED) or id(obj) in self._open:
            return obj
        if kind_of(obj) is not Kind.NOT:
            return self._cache(obj, prefix)
        inner = children(obj)
        if not inner:
            return obj if inner is None or isinstance(obj, tuple) else copy.copy(obj)
        self._open.add(id(obj))
        values = {name: self.run(child, join(prefix, name)) for name, child in inner}
        self._open.discard(id(obj))
        return with_children(obj, values)

    def _cache(self, cache: Any, prefix: str) -> Any:
        names, leaves, context = take_apart(cache)
        pair = kind_of(cache) is Kind.PAIR
        order = pair_order(names) if pair else range(len(names))
        replaced = list(leaves)
        for index in order:
            if isinstance(leaves[index], torch.Tensor):
                name = _pair_name(names[index]) if pair else names[index]
                replaced[index] = self._take(join(prefix, name))
        return put_together(replaced, context)


class _TooFewError(Exception):
    pass


class _RebuildInOrder(_Rebuild):
    """The same with tensors in the order of rule 4, without a name for each."""

    def __init__(self, tensors: Sequence[torch.Tensor]):
        super().__init__({})
        self._tensors = tensors
        self.taken = 0

    def _take(self, name: str) -> torch.Tensor:
        self.taken += 1
        if self.taken > len(self._tensors):
            raise _TooFewError
        return self._tensors[self.taken - 1]

    def run(self, obj: Any, prefix: str) -> Any:
        # A long list of tensors, without a call or a name for each.
        if are_tensors(obj):
            made = self._tensors[self.taken : self.taken + len(obj)]
            self.taken += len(obj)
            if len(made) < len(obj):
                raise _TooFewError
            return type(obj)(made)
        return super().run(obj, prefix)


def with_children(obj: Any, values: dict[Any, Any]) -> Any:
    """A new object of the same class with these children (as `children` names them)."""
    cls = type(obj)
    if isinstance(obj, Mapping):
        if cls is dict:
            return values
        fresh: Any = copy.copy(obj)
        for name, value in values.items():
            fresh[name] = value
        return fresh
    if isinstance(obj, (list, tuple, set, frozenset)):
        items = list(values.values())
        if hasattr(obj, "_fields"):
            return cls(*items)
        return cls(items)
    node = pytree.SUPPORTED_NODES.get(cls)
    if node is not None and not dataclasses.is_dataclass(obj):
        return node.unflatten_fn(list(values.values()), node.flatten_fn(obj)[1])
    fresh = copy.copy(obj)
    for name, value in values.items():
        object.__setattr__(fresh, name, value)  # frozen dataclasses too
    return fresh
