"""The calls of one method and what they say: dynamic shapes, arguments, relations between dims.

Aligning calls, finding what varies and shaping what is missing is done by the core
(`fairlead._core.ObservedCalls`); here
are the objects: tensors, caches, containers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from fairlead._core import Inference, ObservedCalls
from fairlead.observer.dim_labels import label_dims
from fairlead.tree.assemble import Assembler, fresh_copy
from fairlead.tree.capture import Capture, Parameters
from fairlead.tree.dtypes import DTYPES
from fairlead.tree.leaves import children, get_leaf_tensors, join
from fairlead.tree.structure_text import string_type


def none_paths(result: Any, path: str = "") -> list[str]:
    """Where a nested result has None: "1" in (tensor, None). Fields that a ModelOutput leaves out are no places."""
    if result is None:
        return [path or "the result"]
    if not isinstance(result, (tuple, list, dict)):
        return []
    return [found for key, item in children(result) or [] for found in none_paths(item, join(path, key))]


class InputCandidate:
    """One stored call: `args` and `kwargs` as they were given (tensors cloned), with what `value_if_missing`
    added.

    `named` holds the same by argument name, without None and without numbers that repeat a default;
    `flat_list` its tensors.
    """

    def __init__(
        self,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        clone: bool = True,
        cst_kwargs: dict[str, Any] | None = None,
        parameters: Parameters | None = None,
        missing: dict[str, Any] | None = None,
    ):
        if parameters is None:  # on its own: only what has a name can be told apart
            parameters = Parameters([], [], frozenset(), {}, "args", "kwargs")
        self.parameters = parameters
        self.n_positional = len(args)
        named = parameters.named(tuple(args), {**kwargs, **(cst_kwargs or {})})
        by_position = set(parameters.positional[: len(args)])
        for name, value in (missing or {}).items():
            if named.get(name) is None:
                named[name] = value
        kept = {
            name: value
            for name, value in named.items()
            if not parameters.is_default(name, value) and (value is not None or name in by_position)
        }
        self.given = named  # what the call said, before anything was left out
        self.capture = Capture(clone)
        self.named = self.capture.arguments(kept)
        self.flat_list = self.capture.tensors
        self.outputs: dict[str, torch.Tensor] | None = None
        self.outputs_text = ""
        self.none_outputs: list[str] = []  # where the result has None instead of a tensor
        self.latency = 0.0
        # The numbers and strings that were left out of `named` stay in what calls() gives back.
        self.given = {name: self.named.get(name, value) for name, value in named.items()}

    @property
    def args(self) -> tuple[Any, ...]:
        names = self.parameters.positional[: self.n_positional]
        surplus = self.given.get(self.parameters.args_name or "args", ()) if self.n_positional > len(names) else ()
        return (*(self.given.get(name) for name in names), *surplus)

    @property
    def kwargs(self) -> dict[str, Any]:
        by_position = {*self.parameters.positional[: self.n_positional]}
        if self.n_positional > len(by_position):
            by_position.add(self.parameters.args_name or "args")
        return {name: value for name, value in self.given.items() if name not in by_position}

    @property
    def cst_kwargs(self) -> dict[str, Any]:
        """Numbers and strings that the call set to something else than the default."""
        return {name: value for name, value in self.named.items() if isinstance(value, (bool, int, float, str))}

    def __len__(self) -> int:
        return len(self.flat_list)

    def str_obs(self) -> str:
        args, kwargs = (string_type(part, True, ignore=True) for part in (self.args, self.kwargs))
        return f"InputCandidate(args={args}, kwargs={kwargs})"

    __str__ = str_obs

    def remove_inputs(self, names: Sequence[str]) -> int:
        removed = [name for name in names if self.given.pop(name, None) is not None]
        kept = {name: value for name, value in self.named.items() if name not in names}
        self.n_positional = min(
            [self.n_positional, *(i for i, name in enumerate(self.parameters.positional) if name in names)]
        )
        self.capture = Capture(clone=False)
        self.named = self.capture.arguments(kept)
        self.flat_list = self.capture.tensors
        return len(removed)

    def needs_backed_size_oblivious(self, dynamic_shapes: Any) -> bool:
        """Whether an axis that these shapes call dynamic has size 0 or 1 here, where torch.export would fix
        it.
        """
        found = False

        def visit(spec: Any, value: Any) -> None:
            nonlocal found
            if isinstance(value, torch.Tensor):
                found = found or any(value.shape[axis] < 2 for axis, dim in (spec or {}).items() if dim is not None)
            elif isinstance(spec, dict) and isinstance(value, dict):
                for name in spec:
                    visit(spec[name], value.get(name))
            elif isinstance(spec, (list, tuple)):
                leaves = list(value) if isinstance(value, (list, tuple)) else list(get_leaf_tensors(value).values())
                flat = [s for s in spec if isinstance(s, dict)] if not isinstance(value, (list, tuple)) else spec
                for inner, leaf in zip(flat, leaves, strict=False):
                    visit(inner, leaf)

        if isinstance(dynamic_shapes, (tuple, list)):
            dynamic_shapes = dict(zip(self.named, dynamic_shapes, strict=False))
        visit(dynamic_shapes, self.named)
        return found


@dataclasses.dataclass(frozen=True)
class Relations:
    """Dims (name, axis) that move together in all calls, and sums of them; str() has one per line."""

    equal: list[list[tuple[str, int]]]
    sums: list[
        tuple[tuple[str, int], tuple[str, int], tuple[str, int]]
    ]  # total == first + second, one dim of each group
    groups: list[
        tuple[list[tuple[str, int]], list[int]]
    ]  # every group, alone ones too, with its size in each call (-1: absent)

    def __iter__(self) -> Iterator[str]:
        for members in self.equal:
            yield " == ".join(f"{name}.{axis}" for name, axis in members)
        for total, first, second in self.sums:
            yield "{}.{} == {}.{} + {}.{}".format(*total, *first, *second)

    def __str__(self) -> str:
        return "\n".join(self)


class InputObserverInfo:
    """Everything stored for one method."""

    def __init__(self, parameters: Parameters, value_if_missing: dict[str, Any] | None = None):
        self.parameters = parameters
        self.value_if_missing = dict(value_if_missing or {})
        self.inputs: list[InputCandidate] = []
        self.core = ObservedCalls(parameters.names, DTYPES)
        self._inference: Inference | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def signature_names(self) -> list[str]:
        return self.parameters.names

    @property
    def default_values(self) -> dict[str, Any]:
        return self.parameters.defaults

    @property
    def kwargs_name(self) -> str | None:
        return self.parameters.kwargs_name

    @property
    def flat_outputs(self) -> list[list[torch.Tensor]]:
        return [list((candidate.outputs or {}).values()) for candidate in self.inputs]

    @property
    def outputs_specs(self) -> list[list[str]]:
        return [list(candidate.outputs or {}) for candidate in self.inputs]

    @property
    def latencies(self) -> list[float]:
        return [candidate.latency for candidate in self.inputs]

    # ---- storing

    def add_inputs(self, args: Sequence[Any], kwargs: dict[str, Any]) -> InputCandidate:
        candidate = InputCandidate(args, kwargs, parameters=self.parameters, missing=self.value_if_missing)
        self.core.add(candidate.capture.tokens, candidate.flat_list)
        self.inputs.append(candidate)
        self._inference = None
        return candidate

    def add_outputs(self, result: Any, latency: float, candidate: InputCandidate | None = None) -> None:
        candidate = candidate or self.inputs[-1]
        candidate.outputs = {name: tensor.detach().clone() for name, tensor in get_leaf_tensors(result).items()}
        candidate.outputs_text = string_type(result, with_shape=True, ignore=True)
        candidate.none_outputs = none_paths(result)
        candidate.latency = latency

    def discard(self, candidate: InputCandidate) -> None:
        for index, stored in enumerate(self.inputs):
            if stored is candidate:
                self.core.discard(index)
                del self.inputs[index]
                self._inference = None
                return

    def remove_inputs(self, names: Sequence[str | int]) -> int:
        positional = self.parameters.positional
        wanted: list[Any] = [
            positional[name] if isinstance(name, int) and name < len(positional) else name for name in names
        ]
        special = [name for name in wanted if name in (self.parameters.args_name, self.parameters.kwargs_name)]
        if special:
            raise ValueError(f"[remove_inputs] Expected names of arguments, got {special[0]} (it stands for several).")
        removed = sum(candidate.remove_inputs(wanted) for candidate in self.inputs)
        keep = [name for name in self.parameters.names if name not in wanted]
        self.parameters = dataclasses.replace(
            self.parameters,
            names=keep,
            positional=[name for name in positional if name not in wanted],
            defaults={name: value for name, value in self.parameters.defaults.items() if name not in wanted},
        )
        self.value_if_missing = {name: value for name, value in self.value_if_missing.items() if name not in wanted}
        self.core = ObservedCalls(self.parameters.names, DTYPES)
        for candidate in self.inputs:
            candidate.parameters = self.parameters
            self.core.add(candidate.capture.tokens, candidate.flat_list)
        self._inference = None
        return removed

    # ---- inferring

    @property
    def inference(self) -> Inference:
        if self._inference is None:
            self._inference = self.core.infer()
        return self._inference

    def align_inputs_none_values(self) -> None:
        """Aligns all calls now; every question does so by itself."""
        _ = self.inference

    def _by_position(self) -> bool:
        """Every argument came by position wherever it came, without gaps: a tuple can hold them."""
        names = self.inference.tree[1]
        if self.parameters.args_name or names != self.parameters.positional[: len(names)]:
            return False
        for candidate in self.inputs:
            if not {*candidate.named} <= {*self.parameters.positional[: candidate.n_positional]}:
                return False
        return all(node[0] != "constant" for node in self.inference.tree[2])

    def infer_dynamic_shapes(
        self, set_batch_dimension_for: Any = None, return_flat: bool = False, dim_names: Any = None
    ) -> Any:
        inference = self.inference
        slots = inference.slots
        forced = self._forced_slots(set_batch_dimension_for)
        axes = [sorted({*row[2], *([0] if slot in forced and row[1] else [])}) for slot, row in enumerate(slots)]
        value_of = self._dim_values(axes, dim_names)
        specs = [{axis: value_of(slot, axis) for axis in axes[slot]} for slot in range(len(slots))]
        if return_flat:
            return specs
        _, names, nodes, _ = inference.tree
        shapes = {name: _spec(node, specs) for name, node in zip(names, nodes, strict=True)}
        constants = [name for name, node in zip(names, nodes, strict=True) if node[0] == "constant"]
        if self._by_position():
            return tuple(shapes.values())
        ordered = {name: spec for name, spec in shapes.items() if name not in constants and spec is not None}
        ordered.update(dict.fromkeys(constants))
        return self._wrap(ordered)

    def _wrap(self, named: dict[str, Any]) -> dict[str, Any]:
        """*args as a tuple under its name, surplus keywords as a dict under the name of **kwargs; where a call had none
        of them, neither has an entry, as torch.export wants it."""
        parameters = self.parameters
        known = {*parameters.names, parameters.args_name}
        result = {name: value for name, value in named.items() if name in parameters.positional}
        if parameters.args_name and named.get(parameters.args_name):
            result[parameters.args_name] = named[parameters.args_name]
        result.update({name: value for name, value in named.items() if name in known and name not in result})
        surplus = {name: value for name, value in named.items() if name not in known}
        if surplus:
            key = parameters.kwargs_name or "kwargs"
            if key in named:
                raise ValueError(f"[infer_dynamic_shapes] Expected no argument named {key} beside **{key}, got one.")
            result[key] = surplus
        return result

    def _forced_slots(self, wanted: Any) -> set[int]:
        if wanted is None or wanted is False:
            return set()
        count = len(self.inference.slots)
        if wanted is True:
            return set(range(count))
        wanted = {wanted} if isinstance(wanted, (str, int)) else set(wanted)
        positional = self.parameters.positional
        forced: set[int] = set()
        for name, node in zip(*self.inference.tree[1:3], strict=True):
            position = positional.index(name) if name in positional else None
            given = position is not None and any(position < c.n_positional for c in self.inputs)
            if name in wanted or (given and position in wanted):
                forced.update(_slots_in(node))
            elif name == self.parameters.args_name and node[0] == "tuple":
                for index, child in enumerate(node[2]):
                    if len(positional) + index in wanted:
                        forced.update(_slots_in(child))
        return forced

    def _dim_values(self, axes: list[list[int]], dim_names: Any) -> Any:
        dynamic = torch.export.Dim.DYNAMIC
        if not dim_names:
            return lambda slot, axis: dynamic
        paths = [row[0] for row in self.inference.slots]
        if dim_names is not True:
            positional = self.parameters.positional
            by_name = {
                (positional[key] if isinstance(key, int) and key < len(positional) else key): labels
                for key, labels in dim_names.items()
            }
            return lambda slot, axis: by_name.get(paths[slot].partition(".")[0], {}).get(axis, dynamic)
        groups = {(slot, axis): index for index, (dims, _) in enumerate(self.inference.groups) for slot, axis in dims}
        sizes = [self._first_shape(slot) for slot in range(len(paths))]
        # A dim that was forced and never moved can only be told from another by its one size.
        labels = label_dims(
            [(slot, axis) for slot in range(len(paths)) for axis in axes[slot]],
            paths,
            lambda dim: groups.get(dim, ("fixed", sizes[dim[0]][dim[1]])),
        )
        return lambda slot, axis: labels[(slot, axis)]

    def _first_shape(self, slot: int) -> tuple[int, ...]:
        return tuple(self.donor(slot, self.inference.slots[slot][4]).shape)

    def donor(self, slot: int, call: int | None = None) -> torch.Tensor:
        """The tensor of a slot in a call, by default the last that has it."""
        call = self.inference.slots[slot][5] if call is None else call
        return self.inputs[call].flat_list[self.core.slots_of(self.inference, call).index(slot)]

    def infer_arguments(
        self,
        index_or_candidate: Any = None,
        flat: bool = False,
        as_args_kwargs: bool = False,
        example: bool = False,
    ) -> Any:
        inference = self.inference
        if index_or_candidate is None:
            index_or_candidate = inference.fullest
        if isinstance(index_or_candidate, int) and not isinstance(index_or_candidate, bool):
            count = len(self.inputs)
            if not -count <= index_or_candidate < count:
                raise RuntimeError(f"[infer_arguments] Expected a call below {count}, got {index_or_candidate}.")
            call = index_or_candidate % count
            candidate = self.inputs[call]
            slots = self.core.slots_of(inference, call)
            shapes = self.core.fill(inference, call)
        else:
            candidate, slots, shapes = self._own_arguments(index_or_candidate)
        tensors: list[Any] = [None] * len(inference.slots)
        for slot, tensor in zip(slots, candidate.flat_list, strict=True):
            tensors[slot] = tensor
        if example:
            tensors = [self._filled_donor(slot, tensor) for slot, tensor in enumerate(tensors)]
        for slot, tensor in enumerate(tensors):
            if tensor is None:
                donor = self.donor(slot)
                tensors[slot] = torch.zeros(shapes[slot] or (), dtype=donor.dtype, device=donor.device)
        if flat:
            return tensors
        assembler = Assembler(tensors, [c.named for c in self.inputs])
        named = assembler.arguments(inference.tree, candidate.named)
        return self._form(named, candidate, as_args_kwargs)

    def _own_arguments(self, given: Any) -> tuple[InputCandidate, list[int], list[Any]]:
        if isinstance(given, InputCandidate):
            candidate = given
        elif (
            isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], tuple) and isinstance(given[1], dict)
        ):
            candidate = InputCandidate(*given, clone=False, parameters=self.parameters, missing=self.value_if_missing)
        elif isinstance(given, (tuple, dict)):
            args, kwargs = (given, {}) if isinstance(given, tuple) else ((), given)
            known = {*self.inference.tree[1], *self.parameters.names}
            kwargs = {name: value for name, value in kwargs.items() if name in known}
            # Numbers that every call had need not be repeated.
            for name, node in zip(*self.inference.tree[1:3], strict=True):
                if node[0] == "constant" and name not in kwargs and name not in self.parameters.positional[: len(args)]:
                    kwargs[name] = self.inputs[self.inference.fullest].named[name]
            missing = self.value_if_missing
            candidate = InputCandidate(args, kwargs, clone=False, parameters=self.parameters, missing=missing)
        else:
            raise ValueError(
                f"[infer_arguments] Expected the number of a call, a tuple or a dict, got {type(given).__name__}."
            )
        slots = self.inference.align(candidate.capture.tokens)
        return candidate, slots, self.core.fill_for(self.inference, slots, candidate.flat_list)

    def _form(self, named: dict[str, Any], candidate: InputCandidate, as_args_kwargs: bool) -> Any:
        """A tuple, a dict, or (args, kwargs)."""
        parameters = self.parameters
        if not as_args_kwargs:
            if self._by_position():
                return tuple(named.values())
            if parameters.args_name and named.get(parameters.args_name):
                raise RuntimeError(
                    f"[infer_arguments] Expected arguments that have names, got *{parameters.args_name}. "
                    "Use as_args_kwargs=True."
                )
            if parameters.positional_only & {*named}:
                name = next(iter(parameters.positional_only & {*named}))
                raise RuntimeError(
                    f"[infer_arguments] Expected arguments that may be named, got {name}, which is "
                    "positional only. "
                    "Use as_args_kwargs=True."
                )
            return {name: value for name, value in named.items() if value is not None and name != parameters.args_name}
        count = max([candidate.n_positional, *(c.n_positional for c in self.inputs if self._by_position())])
        count = min(count, len(parameters.positional))
        surplus = tuple(named.get(parameters.args_name, ())) if parameters.args_name else ()
        if surplus:
            count = len(parameters.positional)
        while count and parameters.positional[count - 1] not in named and not surplus:
            count -= 1
        args = tuple(self._positional_value(name, named, candidate) for name in parameters.positional[:count])
        taken = {*parameters.positional[:count], parameters.args_name}
        return (*args, *surplus), {n: v for n, v in named.items() if n not in taken and v is not None}

    def _positional_value(self, name: str, named: dict[str, Any], candidate: InputCandidate) -> Any:
        return named.get(name, candidate.given.get(name, self.parameters.defaults.get(name)))

    def _filled_donor(self, slot: int, tensor: torch.Tensor | None) -> torch.Tensor | None:
        """The tensor itself, or where it is missing or empty the last one of its slot that is not."""
        if tensor is not None and tensor.numel():
            return tensor
        for call in range(len(self.inputs) - 1, -1, -1):
            slots = self.core.slots_of(self.inference, call)
            found = self.inputs[call].flat_list[slots.index(slot)] if slot in slots else None
            if found is not None and found.numel():
                return found
        return tensor

    def example(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, kwargs = self.infer_arguments(as_args_kwargs=True, example=True)
        return args, kwargs

    def relations(self) -> Relations:
        paths = [row[0] for row in self.inference.slots]
        groups = [([(paths[s], axis) for s, axis in dims], sizes) for dims, sizes in self.inference.groups]
        sums = [(groups[t][0][0], groups[a][0][0], groups[b][0][0]) for t, a, b in self.inference.sums]
        return Relations([members for members, _ in groups if len(members) > 1], sums, groups)

    def calls(self, filled: bool = False) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        if filled:
            return [self.infer_arguments(i, as_args_kwargs=True) for i in range(len(self.inputs))]
        return [(fresh_copy(c.args), fresh_copy(c.kwargs)) for c in self.inputs]


def _slots_in(node: Any) -> Iterator[int]:
    if node[0] == "tensor":
        yield node[1]
    elif node[0] not in ("none", "constant"):
        for child in node[2]:
            yield from _slots_in(child)


def _spec(node: Any, specs: list[Any]) -> Any:
    """A node of the aligned tree as torch.export wants it: containers mirrored, classes as lists of their
    children.
    """
    kind = node[0]
    if kind == "tensor":
        return specs[node[1]]
    if kind in ("none", "constant"):
        return None
    inner = [_spec(child, specs) for child in node[2]]
    if kind == "tuple":
        return tuple(inner)
    if kind == "dict":
        return dict(zip(node[1], inner, strict=True))
    return inner
