"""Arguments put together again: the aligned tree, tensors for every slot, and objects of the calls as
patterns.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from fairlead.tree.caches.kinds import Kind, kind_of
from fairlead.tree.caches.state import put_together, take_apart
from fairlead.tree.leaves import _pair_name, children, get_leaf_tensors, replace_leaf_tensors, with_children


def fresh_copy(obj: Any) -> Any:
    """New containers and caches around the same tensors; tensors of caches are copied, for models write into
    them.
    """
    if isinstance(obj, torch.Tensor):
        return obj
    if kind_of(obj) is not Kind.NOT:
        return replace_leaf_tensors(obj, [tensor.clone() for tensor in get_leaf_tensors(obj).values()])
    if isinstance(obj, (Mapping, list, tuple)) or (dataclasses.is_dataclass(obj) and not isinstance(obj, type)):
        inner = children(obj)
        if inner:
            return with_children(obj, {name: fresh_copy(child) for name, child in inner})
        return obj if isinstance(obj, tuple) else copy.copy(obj)
    return obj


class Assembler:
    """Builds the arguments of one call. `calls`: stored arguments by name, the patterns for what the call
    lacks.
    """

    def __init__(self, tensors: list[torch.Tensor], calls: list[dict[str, Any]]):
        self._tensors = tensors
        self._calls = calls

    def arguments(self, tree: Any, given: dict[str, Any]) -> dict[str, Any]:
        _, names, nodes, _ = tree
        result = {}
        for name, node in zip(names, nodes, strict=True):
            patterns = [call[name] for call in reversed(self._calls) if call.get(name) is not None]
            result[name] = self._build(node, given.get(name), patterns)
        return result

    def _build(self, node: Any, given: Any, patterns: list[Any]) -> Any:
        kind = node[0]
        if kind == "tensor":
            return self._tensors[node[1]]
        if kind == "none":
            return None
        if kind == "constant":
            return given if given is not None else patterns[0]
        candidates = [obj for obj in (given, *patterns) if obj is not None and _fits(kind, obj)]
        if not candidates:
            return given
        if kind == "custom" and kind_of(candidates[0]) is not Kind.NOT:
            return self._cache(node, candidates)
        # The pattern with the most children carries the class; each child finds its own pattern among the
        # others.
        by_index = kind in ("tuple", "list")
        inner = [dict(enumerate(obj) if by_index else children(obj) or []) for obj in candidates]
        pattern = max(range(len(candidates)), key=lambda i: len(inner[i]))
        own = inner[0] if given is candidates[0] else {}
        values = {}
        for key, child in zip(node[1], node[2], strict=True):
            real = next((k for members in inner for k in members if str(k) == key), key)
            others = [members[real] for members in inner if members.get(real) is not None]
            values[real] = self._build(child, own.get(real), others)
        return with_children(candidates[pattern], values) if values else candidates[pattern]

    def _cache(self, node: Any, candidates: list[Any]) -> Any:
        if kind_of(candidates[0]) is Kind.PAIR:
            pattern = max(candidates, key=lambda cache: len(get_leaf_tensors(cache)))
            result = copy.copy(pattern)
            for key, child, side in zip(node[1], node[2], ("decoder", "encoder"), strict=True):
                attribute = key[1:]
                halves = [getattr(cache, attribute) for cache in candidates]
                setattr(
                    result,
                    attribute,
                    self._half(child, halves, lambda name, s=side: _pair_name(f"{s}.{name}")),
                )
            return result
        return self._half(node, candidates, lambda name: name)

    def _half(self, node: Any, candidates: list[Any], rename: Any) -> Any:
        wanted = {key: self._tensors[child[1]] for key, child in zip(node[1], node[2], strict=True)}
        for cache in candidates:
            names, _leaves, context = take_apart(cache)
            if len(names) == len(wanted):
                # Models write into caches: what is stored must not be what they write into.
                return _counted(put_together([wanted[rename(name)].clone() for name in names], context))
        cache = max(candidates, key=lambda c: len(take_apart(c)[0]))
        lacking = sorted(set(wanted) - {rename(name) for name in take_apart(cache)[0]})
        raise RuntimeError(
            f"[infer_arguments] Expected one call whose {type(cache).__name__} has every tensor, got none "
            "with all of "
            f"{', '.join(lacking)}."
        )


def _counted(cache: Any) -> Any:
    """An emptied layer has seen no tokens, whatever the layer it was modelled on had."""
    for layer in getattr(cache, "layers", []):
        keys = getattr(layer, "keys", None)
        if isinstance(keys, torch.Tensor) and keys.dim() == 4 and keys.shape[-2] == 0:
            for name in ("cumulative_length", "cumulative_length_int"):
                if isinstance(getattr(layer, name, None), int):
                    setattr(layer, name, 0)
    return cache


def _fits(kind: str, obj: Any) -> bool:
    if kind in ("tuple", "list"):
        return isinstance(obj, tuple if kind == "tuple" else list)
    if kind == "dict":
        return isinstance(obj, Mapping)
    return not isinstance(obj, torch.Tensor)
