"""Runs without weights: what touches a parameter becomes a tensor without data, everything else is computed.

Masks, positions and lengths stay real, so that what a model reads of them is right, and a run costs Python alone, at
any number of parameters and at any size. A model that reads what its weights decide (the experts of a token, a
predicted length) raises, and is run for real.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from fairlead import _core
from fairlead.record.light_grouped import GROUPED, grouped
from fairlead.record.light_recurrent import LAYERS, recurrent

META, CPU = torch.device("meta"), torch.device("cpu")
FRESH = 64 << 20  # bytes from which on memory is always new from the system


class NeedsWeightsError(RuntimeError):
    """A run without weights cannot go on."""


class Light:
    """The parameters of a model without their data, and calls with them."""

    def __init__(self, model: torch.nn.Module):
        self.parameters = {id(p): p for p in model.parameters()}  # held, so that no id is used again
        self.twins: dict[int, torch.Tensor] = {}
        self.calls = _core.LightCalls(
            list(self.parameters.values()), torch.Tensor, torch.nn.Parameter, torch.device,
            [torch.dtype, torch.layout, torch.memory_format], torch.empty_strided, META,
        )  # fmt: skip
        self.bytes = sum(p.numel() * p.element_size() for p in self.parameters.values())

    def without_data(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_meta:
            return tensor
        if id(tensor) not in self.parameters:
            return tensor.to("meta")
        twin = self.twins.get(id(tensor))
        if twin is None:
            twin = self.twins[id(tensor)] = torch.empty_strided(
                tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"
            )
        return twin

    def convert(self, value: Any, tensors: list[torch.Tensor]) -> Any:
        """An argument with its tensors without data, which are added to the list."""
        if isinstance(value, torch.Tensor):
            tensors.append(self.without_data(value))
            return tensors[-1]
        if isinstance(value, torch.device):
            return META
        if type(value) in (list, tuple):
            return type(value)([self.convert(item, tensors) for item in value])
        if not isinstance(value, (list, tuple, dict)) or isinstance(value, torch.Size):
            return value
        leaves, form = pytree.tree_flatten(value)
        return pytree.tree_unflatten([leaf if leaf is value else self.convert(leaf, tensors) for leaf in leaves], form)

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """The function on tensors without data where one of its tensors has none."""
        known = self.calls.look(func, args, kwargs)
        if known is not None:
            return known
        kwargs = kwargs or {}
        key, touches = self.calls.key, self.calls.touches
        if not key:  # it holds what the core does not know: tensors may be anywhere
            tensors = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
            touches = any(t.is_meta or id(t) in self.parameters for t in tensors)
        if not touches:
            return func(*args, **kwargs)
        if any(not tensor.is_meta for tensor in written(func, args, kwargs)):
            raise NeedsWeightsError("what the weights decide is written into a tensor that has data")
        given: list[torch.Tensor] = []
        asked = args, kwargs
        args = tuple(self.convert(each, given) for each in args)
        kwargs = {name: self.convert(each, given) for name, each in kwargs.items()}
        versions = [t._version for t in given]
        out: Any = recurrent(func, args) if func in LAYERS and not kwargs else None
        if func is GROUPED:
            out = grouped(args, kwargs)
        if out is None:
            try:
                out = func(*args, **kwargs)
            except Exception as error:
                raise refusal(func, *asked, error) from error
        unchanged = versions == [t._version for t in given]
        if key and unchanged:
            self.calls.keep(key, func, out if is_fresh(out, given) else None)
        return out


def refusal(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Exception:
    """What to raise for an operator that failed without data: its own error where it fails with zeros as well, since
    sizes and types alone are wrong then. Integers that have data keep it: they may be the sizes of a reshape."""
    leaves, form = pytree.tree_flatten((args, kwargs))
    try:
        given = [CPU if isinstance(leaf, torch.device) else stand_in(leaf) for leaf in leaves]
    except RuntimeError:  # no addresses for so many
        return NeedsWeightsError(str(error))
    try:
        args, kwargs = pytree.tree_unflatten(given, form)
        func(*args, **kwargs)
    except Exception as own:
        return own
    return NeedsWeightsError(str(error))


def stand_in(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    if not (leaf.is_meta or leaf.is_floating_point() or leaf.is_complex()):
        return leaf.clone()
    found = torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype)
    # Many come from the system, as zeros that take no memory until somebody writes them.
    return found.zero_() if found.numel() * found.element_size() < FRESH else found


def written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The arguments that an operator writes to."""
    schema = getattr(func, "_schema", None)
    if schema is None or not schema.is_mutable:
        return []
    names = {a.name: a for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write}
    given = {a.name: value for a, value in zip(schema.arguments, args, strict=False)} | kwargs
    return [value for name, value in given.items() if name in names and isinstance(value, torch.Tensor)]


def is_fresh(out: Any, given: list[torch.Tensor]) -> bool:
    """Whether a result can be made again for the same operator in the next layer: it is of tensors without data that
    share no memory with what was given."""
    results = out if type(out) in (tuple, list) else [out]
    if not all(type(t) is torch.Tensor and t.is_meta for t in results):
        return False
    held = {t.untyped_storage()._cdata for t in given}
    return not any(t.untyped_storage()._cdata in held for t in results)


def needs_data(error: BaseException) -> bool:
    """Whether a run without weights stopped where it needs them. PyTorch has no class of errors for that."""
    return isinstance(error, (NeedsWeightsError, NotImplementedError)) or "meta" in str(error).lower()


def device_of(session: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> torch.device:
    """`x.device` as it is in a run with weights."""
    found = func(*args, **kwargs or {})
    return CPU if session.light is not None and found.type == "meta" else found


def stays(session: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """`x.to(device)` of a tensor without data: there is one device only."""
    session.core.note_call(func, args, kwargs)
    kwargs = dict(kwargs or {})
    if session.light is not None and args[0].is_meta:
        if kwargs.get("device") is not None:
            kwargs["device"] = META
        rest = [META if is_device(a) else a for a in args[1:]]
        rest = [a.dtype if isinstance(a, torch.Tensor) else a for a in rest]
        if func in (torch.Tensor.cpu, torch.Tensor.cuda):
            return args[0]
        args = (args[0], *rest)
    return func(*args, **kwargs)


def is_device(value: Any) -> bool:
    return isinstance(value, (str, torch.device))
