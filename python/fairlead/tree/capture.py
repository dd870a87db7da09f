"""One model call taken apart: tokens of its structure for the core, its tensors, and a copy of the objects
to keep.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from fairlead.tree.caches.kinds import Kind, kind_of
from fairlead.tree.caches.state import put_together, take_apart
from fairlead.tree.dtypes import DTYPES
from fairlead.tree.leaves import _pair_name, children, with_children

# Tokens as python/src/observe.cpp reads them.
TENSOR = ...
TUPLE, LIST, DICT, RECORD, CUSTOM, OPAQUE = range(6)

SCALARS = (bool, int, float, str)


@dataclasses.dataclass
class Parameters:
    """The signature of a method, as far as arguments have to be named by it."""

    names: list[str]  # in the order of the signature, without *args and **kwargs
    positional: list[str]  # those that may be given by position
    positional_only: frozenset[str]
    defaults: dict[str, Any]
    args_name: str | None
    kwargs_name: str | None

    @classmethod
    def of(cls, method: Any) -> Parameters:
        kinds = inspect.Parameter
        result = cls([], [], frozenset(), {}, None, None)
        only = set()
        for name, parameter in inspect.signature(method).parameters.items():
            if parameter.kind is kinds.VAR_POSITIONAL:
                result.args_name = name
                continue
            if parameter.kind is kinds.VAR_KEYWORD:
                result.kwargs_name = name
                continue
            result.names.append(name)
            if parameter.kind is not kinds.KEYWORD_ONLY:
                result.positional.append(name)
            if parameter.kind is kinds.POSITIONAL_ONLY:
                only.add(name)
            if parameter.default is not kinds.empty:
                result.defaults[name] = parameter.default
        result.positional_only = frozenset(only)
        return result

    def named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by name; surplus positional ones are a tuple under the name of *args."""
        result = dict(zip(self.positional, args, strict=False))
        if len(args) > len(self.positional):
            result[self.args_name or "args"] = tuple(args[len(self.positional) :])
        result.update(kwargs)
        return result

    def is_default(self, name: str, value: Any) -> bool:
        """A number or string that says what the signature says anyway. 1 is not True, and 0 is not 0.0."""
        if name not in self.defaults or not isinstance(value, SCALARS):
            return False
        default = self.defaults[name]
        return type(default) is type(value) and default == value


class Capture:
    """Walks one structure. `run` returns a copy with cloned tensors (or the same ones, with clone=False)."""

    def __init__(self, clone: bool = True):
        self.tokens: list[Any] = []
        self.tensors: list[torch.Tensor] = []
        self._clone = clone
        self._open: set[int] = set()

    def arguments(self, named: dict[str, Any]) -> dict[str, Any]:
        """A whole call: its root is a dict of arguments by name."""
        stored = {name: self.run(value) for name, value in named.items()}
        self.tokens.append((DICT, list(named)))
        return stored

    def run(self, obj: Any) -> Any:
        if isinstance(obj, torch.Tensor):
            return self._tensor(obj)
        if obj is None or type(obj) in (bool, float, str) or (type(obj) is int and -(1 << 63) <= obj < 1 << 63):
            self.tokens.append(obj)
            return obj
        kind = kind_of(obj)
        if kind is Kind.PAIR:
            return self._pair(obj)
        if kind is not Kind.NOT:
            return self._cache(obj, lambda name: name)
        if id(obj) not in self._open and self._is_container(obj):
            self._open.add(id(obj))
            result = self._container(obj)
            self._open.discard(id(obj))
            return result
        self.tokens.append((OPAQUE, opaque_text(obj)))
        return obj

    @staticmethod
    def _is_container(obj: Any) -> bool:
        if isinstance(obj, (Mapping, list, tuple)):
            return True
        if isinstance(obj, type):
            return False
        return dataclasses.is_dataclass(obj) or type(obj) in pytree.SUPPORTED_NODES

    def _tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout is not torch.strided or tensor.dtype not in DTYPES:
            # No sizes and strides to speak of: kept and compared as a whole.
            self.tokens.append((OPAQUE, f"{tensor.layout} tensor of {tensor.dtype}, {tuple(tensor.shape)}"))
            return tensor
        self.tokens.append(TENSOR)
        kept = tensor.detach().clone() if self._clone else tensor
        self.tensors.append(kept)
        return kept

    def _container(self, obj: Any) -> Any:
        inner = children(obj) or []
        values = {name: self.run(child) for name, child in inner}
        self.tokens.append(self._container_token(obj, values))
        return with_children(obj, values) if values else obj

    @staticmethod
    def _container_token(obj: Any, values: dict[Any, Any]) -> Any:
        if dataclasses.is_dataclass(obj):
            return (RECORD, [str(name) for name in values], type(obj).__name__)
        if isinstance(obj, Mapping):
            return (DICT, [str(name) for name in values])
        if isinstance(obj, (list, tuple)):
            return (TUPLE if isinstance(obj, tuple) else LIST, len(values))
        return (CUSTOM, [str(name) for name in values], type(obj).__name__)

    def _cache(self, cache: Any, rename: Any) -> Any:
        names, leaves, context = take_apart(cache)
        kept = [self._tensor(leaf) for leaf in leaves]
        self.tokens.append((CUSTOM, [rename(name) for name in names], type(cache).__name__))
        return put_together(kept, context)

    def _pair(self, cache: Any) -> Any:
        # Both halves are nodes, as torch.export sees them; the names are those of get_leaf_tensors.
        stored = put_together([], take_apart_pair(cache))
        for side, attribute in (("decoder", "self_attention_cache"), ("encoder", "cross_attention_cache")):
            inner = self._cache(getattr(cache, attribute), lambda name, side=side: _pair_name(f"{side}.{name}"))
            setattr(stored, attribute, inner)
        self.tokens.append((CUSTOM, ["@self_attention_cache", "@cross_attention_cache"], type(cache).__name__))
        return stored


def take_apart_pair(cache: Any) -> Any:
    """The context of an encoder-decoder cache without its two caches."""
    from fairlead.tree.caches.register import PAIR, flatten_cache

    _, context = flatten_cache(cache)
    for name in PAIR:
        context.data["state"][name] = None
    return context


def opaque_text(obj: Any) -> str:
    """Text that is equal where two constants of a type unknown to the core are."""
    if isinstance(obj, np.ndarray):
        digest = hashlib.sha1(np.ascontiguousarray(obj).tobytes()).hexdigest()[:12]
        return f"array({obj.dtype}, {obj.shape}, {digest})"
    if isinstance(obj, (torch.dtype, torch.device, np.generic, complex, bytes, int, range, slice)):
        return repr(obj)
    return f"{type(obj).__module__}.{type(obj).__qualname__}"
