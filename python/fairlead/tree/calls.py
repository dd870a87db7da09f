"""What a user gives as inputs, made uniform: named arguments, their leaves, and copies of other sizes."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from fairlead._core import InvalidInput
from fairlead.base.plain_text import is_text
from fairlead.tree.caches.kinds import Kind, kind_of
from fairlead.tree.leaves import SKIPPED, children, get_leaf_tensors, replace_leaf_tensors
from fairlead.tree.stacks import Stacks


class NamedTensors:
    """The tensors of a call by their flat names, and the same at other sizes."""

    names: list[str]
    tensors: list[torch.Tensor]

    def tensor(self, name: str) -> torch.Tensor:
        return self.tensors[self.numbers[name]]

    @functools.cached_property
    def numbers(self) -> dict[str, int]:
        """Which one each is, by its name."""
        return {name: k for k, name in enumerate(self.names)}

    def in_order_of(self, other: NamedTensors) -> list[torch.Tensor]:
        """Its tensors by the names of another call."""
        return self.tensors if other is self else [self.tensor(name) for name in other.names]

    def at(self, sizes: Sequence[tuple[int, ...]]) -> list[torch.Tensor]:
        """Its tensors, repeated or cut to sizes."""
        return at_sizes(self.stacks, sizes)

    def varied_at(self, sizes: Sequence[tuple[int, ...]], seed: int) -> list[torch.Tensor]:
        """The same with other values, each with noise of its own."""
        return varied_at(self.stacks, sizes, seed)

    @functools.cached_property
    def stacks(self) -> Stacks:
        return Stacks(self.tensors)


@dataclass
class Call(NamedTensors):
    """One call of the model: positional and named arguments, and every tensor in them by its flat name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    names: list[str]
    tensors: list[torch.Tensor]
    positional: list[str]  # parameter names of `args`
    classes: list[type] = field(default_factory=list)  # of the tensors, where one is of a class of its own

    @property
    def named(self) -> dict[str, Any]:
        return dict(zip(self.positional, self.args, strict=True)) | self.kwargs

    def with_tensors(self, tensors: list[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments of the same structure around other tensors; nothing of the user's is shared."""
        both = replace_leaf_tensors(self.named, tensors)
        return tuple(both[name] for name in self.positional), {k: both[k] for k in self.kwargs}

    def of_own_classes(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """As the user gave them; recorded are plain tensors, of the same storage."""
        if not self.classes:
            return tensors
        return [t.as_subclass(of) if of is not torch.Tensor else t for t, of in zip(tensors, self.classes, strict=True)]


def at_sizes(stacks: Stacks, sizes: Sequence[tuple[int, ...]]) -> list[torch.Tensor]:
    return stacks.changed(
        sizes,
        lambda k: resized(stacks.tensors[k], list(sizes[k])),
        lambda stack, k: resized(stack, [len(stack), *sizes[k]]),
    )


def with_other_tensors(call: Call, tensors: list[torch.Tensor]) -> Call:
    args, kwargs = call.with_tensors(tensors)
    return Call(args, kwargs, list(call.names), tensors, list(call.positional), list(call.classes))


def normalise(model: torch.nn.Module, inputs: Any) -> list[Call]:
    """A tensor, tuple, dict, list of such calls, or an observer -> calls with named arguments."""
    if callable(getattr(inputs, "calls", None)):  # an observer: every call it stored, completed with what it lacks
        observer, inputs = inputs, inputs.calls(filled=True)
        if all(any(not t.numel() for t in get_leaf_tensors(call).values()) for call in inputs):
            inputs = [observer.example(), *inputs]  # sizes are varied from one without empty tensors
    if isinstance(inputs, list):
        if not inputs:
            raise InvalidInput(
                "[export] Expected at least one example call, got an empty list. Give one tuple or dict per call."
            )
        if all(isinstance(call, (tuple, dict)) for call in inputs):
            return [one_call(model, call) for call in inputs]
        raise InvalidInput(
            f"[export] Expected a list of calls, each a tuple or a dict, got a {type(inputs[0]).__name__} in it. "
            "Wrap the arguments of one call in a tuple."
        )
    return [one_call(model, inputs)]


def one_call(model: torch.nn.Module, call: Any) -> Call:
    try:
        return shallow_call(model, call)
    except RecursionError:
        raise too_deep() from None


def too_deep() -> InvalidInput:
    return InvalidInput(
        "[export] Expected inputs nested some hundred levels deep at most, got deeper ones. Flatten them."
    )


def shallow_call(model: torch.nn.Module, call: Any) -> Call:
    if isinstance(call, torch.Tensor):
        call = (call,)
    if isinstance(call, tuple) and len(call) == 2 and isinstance(call[0], tuple) and isinstance(call[1], dict):
        args, kwargs = call
    elif isinstance(call, tuple):
        args, kwargs = call, {}
    elif hasattr(call, "keys") and hasattr(call, "__getitem__"):  # dict, BatchEncoding, BatchFeature
        args, kwargs = (), {k: call[k] for k in call.keys()}  # noqa: SIM118
    else:
        raise InvalidInput(
            f"[export] Expected inputs as a tuple, a dict or a list of calls, got {type(call).__name__}. "
            "Pass (x,) for one positional argument."
        )
    positional = positional_names(model, args)
    named = dict(zip(positional, args, strict=True)) | kwargs
    check_kinds(named)
    leaves = get_leaf_tensors(named)
    check_tensors(leaves, model)
    found = Call(tuple(args), dict(kwargs), list(leaves), list(leaves.values()), positional)
    classes = [plain_class(name, tensor) for name, tensor in leaves.items()]
    if all(of is torch.Tensor for of in classes):
        return found
    plain = with_other_tensors(found, [t.as_subclass(torch.Tensor) for t in found.tensors])
    plain.classes = classes
    return plain


def plain_class(name: str, tensor: torch.Tensor) -> type:
    """The class of a tensor that can be taken off it. One that computes by itself (__torch_dispatch__) cannot."""
    of = type(tensor)
    if of in (torch.Tensor, torch.nn.Parameter):
        return torch.Tensor
    if of.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl:
        raise InvalidInput(
            f"[export] Expected plain tensors as inputs, got {name} of class {of.__module__}.{of.__qualname__}, which "
            "has operators of its own (__torch_dispatch__). Give the tensors that it is made of."
        )
    return of


def base_call(calls: list[Call]) -> Call:
    """The first call without an empty tensor: inputs of other sizes are made from it."""
    first = calls[0]
    for number, other in enumerate(calls[1:], 1):
        one_sided = [n for n in first.names if n not in other.names] + [n for n in other.names if n not in first.names]
        if one_sided:
            raise InvalidInput(
                f"[export] Expected calls with the same tensors, but {one_sided[0]} is in one of call 0 and "
                ""
                f"call {number} only. "
                "Give every call the same arguments."
            )
        for name, a, b in zip(first.names, first.tensors, other.in_order_of(first), strict=True):
            if a.dim() != b.dim() or a.dtype != b.dtype:
                raise InvalidInput(
                    f"[export] Expected calls that differ in sizes only, got {name} of {described(a)} in call 0 and of "
                    f"{described(b)} in call {number}. Export them separately."
                )
        ours, theirs = dict(constants(first.named)), dict(constants(other.named))
        path = next((p for p in [*ours, *theirs] if ours.get(p, MISSING) != theirs.get(p, MISSING)), None)
        if path is not None:
            raise InvalidInput(
                f"[export] Expected calls that differ in sizes only, got {path} = {ours.get(path, MISSING)} in call 0 "
                f"and {theirs.get(path, MISSING)} in call {number}. Export them separately: a file has one value of it."
            )
    for call in calls:
        if all(t.numel() for t in call.tensors):
            return call
    return first  # filled(), where the model accepts that


def filled(call: Call) -> list[Call]:
    """The call with a size of 3 for every argument's 0, and plain values in there: larger inputs are made from it. A
    cache may hold parts that are still empty; they stay so. Then the same with 3 more of one other dimension, which may
    be a sum (a mask over past and new tokens)."""
    arguments = call.named
    tensors = [
        larger_than_empty(t) if not t.numel() and isinstance(arguments.get(name), torch.Tensor) else t
        for name, t in zip(call.names, call.tensors, strict=True)
    ]
    calls = [with_other_tensors(call, tensors)]
    for leaf, axis in [(k, a) for k, t in enumerate(call.tensors) for a in range(1, t.dim()) if t.numel()][:MOST_SUMS]:
        sizes = list(tensors[leaf].shape)
        sizes[axis] += 3
        calls.append(with_other_tensors(call, [*tensors[:leaf], resized(tensors[leaf], sizes), *tensors[leaf + 1 :]]))
    return calls


MOST_SUMS = 16  # dimensions that are tried as sums with an empty one


def larger_than_empty(tensor: torch.Tensor) -> torch.Tensor:
    shape = [size or 3 for size in tensor.shape]
    if not tensor.is_floating_point() and not tensor.is_complex():
        return torch.ones(shape, dtype=tensor.dtype) if tensor.dtype is torch.bool else tensor.new_zeros(shape)
    return torch.linspace(-1, 1, math.prod(shape)).reshape(shape).to(tensor.dtype)


MISSING = "nothing"


def constants(value: Any, path: str = "") -> Iterator[Any]:
    """(path, value) of every number, string and None outside of caches: what the file will have built in."""
    if isinstance(value, torch.Tensor) or kind_of(value) is not Kind.NOT:
        return
    if isinstance(value, (type(None), bool, int, float, complex, str, torch.dtype)):
        yield path, value
    elif not isinstance(value, SKIPPED):
        for key, item in children(value) or []:
            if not isinstance(item, torch.Tensor):  # of a long list, without a call for each
                yield from constants(item, f"{path}.{key}" if path else str(key))


def described(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def positional_names(model: torch.nn.Module, args: tuple[Any, ...]) -> list[str]:
    try:
        parameters = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names: list[str] = []
    for k in range(len(args)):
        plain = parameters[k] if k < len(parameters) else None
        if plain is not None and plain.kind in (plain.POSITIONAL_ONLY, plain.POSITIONAL_OR_KEYWORD):
            names.append(plain.name)
        else:
            rest = next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), "input")
            names.append(f"{rest}_{k}")
    return names


PLAIN = (type(None), bool, int, float, complex, str, torch.dtype, torch.device, torch.Tensor)


def check_kinds(value: Any, path: str = "") -> None:
    """Objects that nothing knows how to take apart are refused, with their path."""
    if isinstance(value, (*PLAIN, *SKIPPED)) or kind_of(value) is not Kind.NOT:
        return
    inner = children(value)
    if inner is None:
        raise InvalidInput(
            "[export] Expected tensors, numbers, strings, None or containers of them as inputs, got "
            f"{type(value).__name__} at {path or 'the top'}. "
            "Register the class with torch.utils._pytree.register_pytree_node."
        )
    for key, item in inner:
        if not isinstance(item, torch.Tensor):
            check_kinds(item, f"{path}.{key}" if path else str(key))


def check_tensors(leaves: dict[str, torch.Tensor], model: torch.nn.Module) -> None:
    if not leaves:
        raise InvalidInput(
            "[export] Expected at least one tensor among the inputs, got none. Pass the model's tensors."
        )
    for name, tensor in leaves.items():
        if tensor.is_nested or tensor.layout is not torch.strided:
            what = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
            raise InvalidInput(
                f"[export] Expected dense tensors as inputs, got {name}, which is {what}. Make it dense."
            )
        if not is_text(name):
            raise InvalidInput(f"[export] Expected names of inputs that are texts, got {name!r}. Rename it.")
    first_name, first = next(iter(leaves.items()))
    placed: list[tuple[str, torch.Tensor]] = [(f"the model's {name}", p) for name, p in model.named_parameters()]
    placed += [(f"the model's {name}", b) for name, b in model.named_buffers()]
    what, owner = (placed or [(first_name, first)])[0]
    for name, tensor in [*placed, *leaves.items()]:
        if tensor.device != owner.device:
            raise InvalidInput(
                f"[export] Expected all tensors on one device, got {name} on {tensor.device} and {what} on "
                ""
                f"{owner.device}. "
                "Move model and inputs to the CPU with .cpu()"
                + META * ("meta" in (tensor.device.type, owner.device.type))
                + "."
            )
    if owner.device.type != "cpu":
        raise InvalidInput(
            f"[export] Expected model and inputs on the CPU, got {what} on {owner.device}. "
            "Move both with .cpu()" + META * (owner.device.type == "meta") + "."
        )


META = "; a tensor on meta has no values: load the weights first"


def resized(tensor: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """A copy of other sizes made of observed values: cut, tiled, or counted on where it counts (positions)."""
    given, fresh = tensor, False
    for axis, size in enumerate(sizes):
        now = tensor.shape[axis]
        if size == now:
            continue
        fresh = False
        if size < now:
            tensor = tensor.narrow(axis, 0, size)
        elif now == 0:
            raise InvalidInput("[export] Expected a non-empty example to make larger inputs from.")
        elif now > 1 and counts(tensor, axis):
            step = tensor.select(axis, 1) - tensor.select(axis, 0)
            more = torch.arange(1, size - now + 1, dtype=tensor.dtype)
            shape = [1] * tensor.dim()
            shape[axis] = -1
            last = tensor.narrow(axis, now - 1, 1)
            tensor = torch.cat([tensor, last + more.reshape(shape) * step.unsqueeze(axis)], axis)
        elif tensor.dtype in TILED:
            tensor, fresh = tensor.index_select(axis, over(now, size)), True
        else:
            repeats = [1] * tensor.dim()
            repeats[axis] = -(-size // now)
            tensor = tensor.repeat(repeats).narrow(axis, 0, size)
    if fresh:
        return tensor
    # A plain copy would keep strides of what was cut off where a size is 1: models read them (stft).
    return tensor.clone() if list(given.shape) == sizes else tensor.clone(memory_format=torch.contiguous_format)


# Of which index_select makes a tiled copy in one step.
TILED = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.bool)


@functools.lru_cache(maxsize=64)
def over(now: int, size: int) -> torch.Tensor:
    """Places 0 to now - 1, over and over."""
    return torch.arange(size) % now


# Of the unsigned integers PyTorch computes with uint8 alone.
COUNTED = (torch.int64, torch.int32, torch.int16, torch.int8)


def counts(tensor: torch.Tensor, axis: int) -> bool:
    """Whether integers grow by one along the axis: positions, not ids or masks."""
    if tensor.dtype not in COUNTED or tensor.shape[axis] < 2:
        return False
    return bool((tensor.diff(dim=axis) == 1).all())


def other_integers(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Copies with other integers that are likely as valid: in another order, and smaller. None of a mask."""
    if tensor.dtype not in (*COUNTED, torch.uint8) or not tensor.numel():
        return []
    if int(tensor.max()) <= 1 and int(tensor.min()) >= 0:
        return []
    smaller = [torch.where(tensor > least, tensor - least, tensor) for least in (1, 2)]
    moved = [tensor.flip(-1), tensor.roll(1, 0)] if tensor.dim() else []
    found: list[torch.Tensor] = []
    for other in [*moved, *smaller]:
        if not torch.equal(other, tensor) and not any(torch.equal(other, f) for f in found):
            found.append(other)
    return found


def moved(tensor: torch.Tensor) -> torch.Tensor:
    """The same floats at other places, so that what is found by its value (the largest, the first above a threshold)
    is found elsewhere."""
    if not tensor.is_floating_point() or tensor.dim() == 0:
        return tensor
    return tensor.roll([max(1, size // 3) for size in tensor.shape], list(range(tensor.dim())))


def other_floats(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Copies with the same floats at other places."""
    found: list[torch.Tensor] = []
    if tensor.is_floating_point() and tensor.dim():
        for other in (moved(tensor), tensor.flip(list(range(tensor.dim())))):
            if not torch.equal(other, tensor) and not any(torch.equal(other, f) for f in found):
                found.append(other)
    return found


def varied(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    """Other data of the same kind, for checking: noise in proportion on floats, and for zeros, the rows of integers in
    another order, the last places of a mask of ones cleared in its first row. Positions stay as they are.
    """
    if tensor.numel() == 0 or tensor.is_complex() or (tensor.numel() == 1 and not tensor.is_floating_point()):
        return tensor.clone()
    if tensor.is_floating_point() and tensor.element_size() == 1:  # PyTorch stores them, but does not compute with them
        return varied(tensor.float(), seed).to(tensor.dtype)
    generator = torch.Generator().manual_seed(seed)
    if tensor.is_floating_point():
        if not bool(tensor.any()):  # a state that is empty yet: whether it is read shows only where it is not
            return (torch.rand(tensor.shape, generator=generator) * 0.5).to(tensor.dtype)
        if len(set(tensor.flatten()[:64].tolist())) <= 2:
            return tensor.clone()
        noise = torch.rand(tensor.shape, generator=generator).to(tensor.dtype)
        return tensor * (noise * 0.5 + 0.75)
    if tensor.dim() == 0 or counts(tensor, tensor.dim() - 1):
        return tensor.clone()
    if bool((tensor == 1).all()):
        length = tensor.shape[-1]
        changed = tensor.clone()
        if tensor.dim() == 2 and length > 2:
            changed[0, length - length // 3 :] = 0
        return changed
    order = torch.randperm(tensor.shape[-1], generator=generator)
    return tensor.index_select(-1, order).clone()


def varied_at(stacks: Stacks, sizes: Sequence[tuple[int, ...]], seed: int) -> list[torch.Tensor]:
    return stacks.changed(
        sizes,
        lambda k: varied(resized(stacks.tensors[k], list(sizes[k])), seed + k),
        lambda stack, k: varied_rows(resized(stack, [len(stack), *sizes[k]]), seed + k),
    )


def all_varied(tensors: list[torch.Tensor], seed: int) -> list[torch.Tensor]:
    """Each varied, with noise of its own."""
    return varied_at(Stacks(tensors), [tuple(t.shape) for t in tensors], seed)


def varied_rows(stack: torch.Tensor, seed: int) -> torch.Tensor:
    """What `varied` does to floats, row by row."""
    noise = torch.rand(stack.shape, generator=torch.Generator().manual_seed(seed)).to(stack.dtype)
    rows = stack.flatten(1)
    some = rows[:, :64]
    low, high = some.aminmax(dim=1, keepdim=True)
    two_values, zeros = ((some == low) | (some == high)).all(1), ~rows.any(1)
    shape = [-1] + [1] * (stack.dim() - 1)
    kept = torch.where(two_values.reshape(shape), stack, stack * (noise * 0.5 + 0.75))
    return torch.where(zeros.reshape(shape), noise * 0.5, kept)


def rounded_otherwise(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    """Floats moved by up to one rounding step each; everything else as it is."""
    if not tensor.is_floating_point():
        return tensor.clone()
    generator = torch.Generator().manual_seed(seed)
    noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) * 2 - 1
    return (tensor.double() * (1 + noise * torch.finfo(tensor.dtype).eps)).to(tensor.dtype)


def nudged(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    """Floats moved by a few rounding steps of the largest, zeros too: off a tie, or across a threshold."""
    if not tensor.is_floating_point() or not tensor.numel():
        return tensor.clone()
    generator = torch.Generator().manual_seed(seed)
    noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) * 2 - 1
    finite = tensor.double().nan_to_num(0.0, 0.0, 0.0).abs().max().item()
    return (tensor.double() + noise * 4 * torch.finfo(tensor.dtype).eps * (finite or 1.0)).to(tensor.dtype)


def shown(words: list[str], most: int = 4) -> str:
    return ", ".join(words[:most]) + (", ..." if len(words) > most else "")
