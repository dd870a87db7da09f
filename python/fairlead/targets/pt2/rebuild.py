"""The recorded graph as a module: a straight line of ATen calls around the model's own parameters.

The core writes the line as Python text. Here it is executed once, the parameters and buffers are bound under their own
names without a copy, and forward gets the model's arguments and gives its kind of result.
"""

from __future__ import annotations

import contextlib
import keyword
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from fairlead._core import Unsupported
from fairlead.targets.pt2.replaced import REPLACED
from fairlead.tree.calls import Call
from fairlead.tree.leaves import get_leaf_tensors, replace_leaf_tensors

PLAIN = (torch.Tensor, type(None), bool, int, float, str, torch.dtype, torch.device)


class Recorded(torch.nn.Module):
    """The straight line. forward takes the input tensors in order and returns the outputs in order."""

    structure: Any = None  # an output of the model, as a pattern
    names: list[str]  # of the outputs

    def __init__(self, program: Any, model: torch.nn.Module) -> None:
        super().__init__()
        names = program.torch_operators()
        functions = [operator(name) for name in names]
        signatures = {name: signature(function) for name, function in zip(names, functions, strict=True)}
        self._text, held = program.torch_source(signatures)
        scope: dict[str, Any] = {"torch": torch}
        self._unguarded = Unguarded()
        called = [REPLACED.get(name, function) for name, function in zip(names, functions, strict=True)]
        scope.update({f"op{k}": self._unguarded.call(function) for k, function in enumerate(called)})
        exec(compile(self._text, "<the recorded program>", "exec"), scope)
        self._line = scope["forward"]
        self._places = self._bind(held, model)

    def _bind(self, held: list[tuple[Any, ...]], model: torch.nn.Module) -> list[tuple[torch.nn.Module, str]]:
        """(module, attribute) of every tensor that the line uses, under the model's names for them."""
        parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())
        places = []
        for number, (name, dtype, dims, strides, data) in enumerate(held):
            owner: Any = self
            *path, last = name.split(".") if name else [f"constant_{number}"]
            for part in path:
                if part not in owner._modules:
                    owner.add_module(part, torch.nn.Module())
                owner = owner._modules[part]
            if name in parameters:
                owner.register_parameter(last, parameters[name])
            else:
                tensor = buffers.get(name)
                if tensor is None:
                    tensor = constant(dtype, dims, strides, data)
                owner.register_buffer(last, tensor, persistent=name in buffers and is_saved(model, name))
            places.append((owner, last))
        return places

    def flat(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        with self._unguarded.tracing(tensors):
            return list(self._line(tensors, [getattr(owner, name) for owner, name in self._places]))

    def result(self, arguments: dict[str, Any]) -> Any:
        """The outputs for the model's own arguments, in the model's own structure, or by name where that is None."""
        outputs = self.flat(list(get_leaf_tensors(arguments).values()))
        if self.structure is None:
            return dict(zip(self.names, outputs, strict=True))
        return replace_leaf_tensors(self.structure, outputs)

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(self.flat(list(tensors)))


class Unguarded:
    """Calls operators so that torch.export does not restrict sizes by them.

    While it traces, an operator may ask whether a size is 1 or two are equal (to lay out memory, to broadcast), and the
    answer at the traced sizes becomes a condition of the program. Here the recorded runs and the verification show at
    which sizes the operators can be executed, so the answers are not kept.
    """

    def __init__(self) -> None:
        self._shapes: Any = None

    @contextlib.contextmanager
    def tracing(self, tensors: list[torch.Tensor]) -> Iterator[None]:
        mode = torch._guards.detect_fake_mode(tensors)
        before, self._shapes = self._shapes, mode.shape_env if mode is not None else None
        try:
            yield
        finally:
            self._shapes = before

    def call(self, function: Any) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            if self._shapes is None:
                return function(*args, **kwargs)
            with self._shapes.suppress_guards():
                return function(*args, **kwargs)

        return called


def operator(name: str) -> Any:
    """The function of "aten.add.Tensor"."""
    space, base, overload = name.split(".")
    packet = getattr(getattr(torch.ops, space), base, None)
    for known in (packet, getattr(getattr(torch.ops, space), f"{base}_functional", None)):
        if known is not None and overload in known.overloads():
            return getattr(known, overload)
    raise Unsupported(
        f"[export] Expected operators that torch has in a form that writes nothing, got {name}. "
        'Use method="torch.export", or write the model without the in-place operator.'
    )


def signature(function: Any) -> tuple[Any, ...]:
    schema = function._schema
    params = [(a.name, str(a.type), a.kwarg_only, a.has_default_value()) for a in schema.arguments]
    returns = schema.returns
    return params, len(returns) > 1 or (len(returns) == 1 and "List" in str(returns[0].type))


def constant(dtype: str, dims: list[int], strides: list[int], data: Any) -> torch.Tensor:
    """A tensor of a constant that is no parameter or buffer: a copy, because the bytes are the recording's."""
    kind = getattr(torch, dtype)
    if not len(data):
        return torch.empty(dims, dtype=kind)
    flat = torch.from_numpy(data).view(kind)
    return (torch.as_strided(flat, dims, strides) if strides else flat.reshape(dims)).clone()


def is_saved(model: torch.nn.Module, name: str) -> bool:
    """Whether a buffer is part of the state dict."""
    path, _, last = name.rpartition(".")
    return last not in model.get_submodule(path)._non_persistent_buffers_set


def with_arguments(program: Any, model: torch.nn.Module, call: Call, template: Any, names: list[str]) -> Recorded:
    """A module whose forward has the arguments of the call. Its results are the model's own structure where torch's
    trees know it, else a dict by output name.
    """
    wrong = [name for name in call.named if not name.isidentifier() or keyword.iskeyword(name)]
    if wrong:
        raise Unsupported(f"[export] Expected arguments with names that Python allows, got {wrong[0]!r}.")
    given = [*call.positional, *(f"{name}=None" for name in call.kwargs)]
    inner = ", ".join(f"{name!r}: {name}" for name in call.named)
    scope: dict[str, Any] = {}
    exec(f"def forward(self, {', '.join(given)}):\n    return self.result({{{inner}}})", scope)
    module: Recorded = type("Recorded", (Recorded,), {"forward": scope["forward"]})(program, model)
    module.structure = template if all(isinstance(leaf, PLAIN) for leaf in pytree.tree_leaves(template)) else None
    module.names = names
    return module
