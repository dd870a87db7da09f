"""`dynamic_shapes` as torch.export takes them, spread over the flat leaves of the inputs.

A request per dim is (kind, name, min, max): "auto" is to be found out.

    ({0: "batch", 1: Dim("seq", min=2)}, None)      one entry per argument, in order; None: static
    {"x": ("batch", None), "cache": [{0: "batch"}, {0: "batch"}]}      by name; a cache is a flat list
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import torch

from fairlead._core import DimRequest, InvalidInput, Leaf
from fairlead.base.plain_text import is_text
from fairlead.contract import LARGEST
from fairlead.tree.leaves import get_leaf_tensors

AUTO, STATIC, DYNAMIC = "auto", "static", "dynamic"
KINDS = {"AUTO": AUTO, "STATIC": STATIC, "DYNAMIC": DYNAMIC}
ACCEPTED = "a name, a Dim, Dim.DYNAMIC, Dim.AUTO, Dim.STATIC, its own size or None"


class UnknownSymbol(InvalidInput):
    """A largest size for something that is no symbol; `names` are those."""

    def __init__(self, text: str, names: list[str] | None = None):
        super().__init__(text)
        self.names = names or []


def check_sizes(sizes: Any) -> None:
    if not isinstance(sizes, Mapping) or not all(map(is_text, sizes)):
        raise InvalidInput(f"[export] Expected max_size as sizes by name of a symbol, got {sizes!r:.80}.")
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size < 1 << 62:
            raise InvalidInput(f"[export] Expected max_size with a number of 1 or more for {name}, got {size!r:.40}.")


def unknown_symbol(probed: Any, unknown: list[str]) -> UnknownSymbol:
    known = ", ".join(symbol.name for symbol in probed.symbols) or "none: every dimension is fixed"
    return UnknownSymbol(
        f"[export] Expected max_size for symbols of the model ({known}), got {unknown[0]!r}. "
        "fairlead inspect shows the symbols of a file.", unknown
    )  # fmt: skip


def requests(call: Any, dynamic_shapes: Any) -> list[list[tuple[Any, ...]]]:
    if dynamic_shapes is None:
        return [[(AUTO, "", 0, LARGEST)] * t.dim() for t in call.tensors]
    named = call.named
    by_name = by_argument(named, dynamic_shapes)
    result = []
    for name, value in named.items():
        leaves = get_leaf_tensors({name: value})
        specs = flat_specs(by_name.get(name), leaves, name, isinstance(value, torch.Tensor))
        for (leaf, tensor), spec in zip(leaves.items(), specs, strict=True):
            dims = by_axis(leaf, tensor, spec)
            result.append([one_dim(leaf, axis, tensor.shape[axis], given) for axis, given in enumerate(dims)])
    return result


def leaves_of(call: Any, asked: list[list[tuple[Any, ...]]]) -> list[Leaf]:
    @functools.cache  # a call may have thousands of tensors
    def request(kind: Any, name: str, low: int, high: int) -> DimRequest:
        return DimRequest(kind=kind, name=name, min=low, max=high)

    return [
        Leaf(name=name, requests=[request(*dim) for dim in dims]) for name, dims in zip(call.names, asked, strict=True)
    ]


def by_argument(named: dict[str, Any], dynamic_shapes: Any) -> dict[str, Any]:
    arguments = ", ".join(named)
    if isinstance(dynamic_shapes, dict):
        unknown = [str(k) for k in dynamic_shapes if k not in named]
        if unknown:
            raise InvalidInput(
                f"[export] Expected dynamic_shapes for the arguments {arguments}, got {', '.join(unknown)}. "
                "Use the names of the call."
            )
        return dynamic_shapes
    if isinstance(dynamic_shapes, (tuple, list)):
        if len(dynamic_shapes) != len(named):
            raise InvalidInput(
                f"[export] Expected dynamic_shapes with one entry per argument ({len(named)}: {arguments}), "
                f"got {len(dynamic_shapes)}. Use None for an argument that is static."
            )
        return dict(zip(named, dynamic_shapes, strict=True))
    raise InvalidInput(
        f"[export] Expected dynamic_shapes as a tuple or a dict, got {type(dynamic_shapes).__name__}. "
        f'Write {{"{next(iter(named))}": {{0: "batch"}}}} for a dynamic first axis.'
    )


def is_leaf_spec(spec: Any) -> bool:
    if spec is None:
        return True
    if isinstance(spec, dict):
        return all(isinstance(k, int) for k in spec)
    return isinstance(spec, (tuple, list)) and len(spec) > 0 and all(is_dim(d) for d in spec)


def is_dim(d: Any) -> bool:
    return not isinstance(d, (dict, tuple, list))


def flat_specs(spec: Any, leaves: dict[str, Any], name: str, bare: bool) -> list[Any]:
    """Specs of one argument, one per leaf: nested containers are flattened, a cache is a flat list."""
    if spec is None:
        return [None] * len(leaves)
    if len(leaves) == 1 and is_leaf_spec(spec):
        return [spec]
    flat: list[Any] = []

    def walk(item: Any) -> None:
        if is_leaf_spec(item):
            flat.append(item)
        elif isinstance(item, (dict, tuple, list)) and not bare:
            for inner in item.values() if isinstance(item, dict) else item:
                walk(inner)
        else:
            keys = f" with keys {', '.join(map(repr, item))}" if isinstance(item, dict) else ""
            raise InvalidInput(
                f"[export] Expected {{axis: dim}} or one dim per axis for {name} in dynamic_shapes, "
                f"got a {type(item).__name__}{keys}. Axes are integers."
            )

    walk(spec)
    if len(flat) != len(leaves):
        some = ", ".join(list(leaves)[:4]) + (", ..." if len(leaves) > 4 else "")
        raise InvalidInput(
            f"[export] Expected {len(leaves)} entries for {name} in dynamic_shapes (one per tensor: {some}), "
            f"got {len(flat)}."
        )
    return flat


def by_axis(leaf: str, tensor: torch.Tensor, spec: Any) -> list[Any]:
    """What was given for each axis. Negative axes count from the end."""
    rank = tensor.dim()
    if spec is None:
        return [None] * rank
    if isinstance(spec, dict):
        wrong = [k for k in spec if not -rank <= k < rank]
        if wrong:
            raise InvalidInput(
                f"[export] Expected axes 0 to {rank - 1} for {leaf} in dynamic_shapes, got {wrong[0]} "
                f"(its shape is {list(tensor.shape)})."
            )
        dims: list[Any] = [None] * rank
        for axis, given in spec.items():
            dims[axis] = given
        return dims
    if len(spec) != rank:
        raise InvalidInput(
            f"[export] Expected {rank} entries for {leaf} in dynamic_shapes, one per axis of {list(tensor.shape)}, "
            f"got {len(spec)}."
        )
    return list(spec)


def one_dim(leaf: str, axis: int, size: int, given: Any) -> tuple[Any, ...]:
    where = f"axis {axis} of {leaf} in dynamic_shapes"
    if given is None:
        return (STATIC, "", 0, LARGEST)
    if isinstance(given, int) and not isinstance(given, bool):
        if given != size:
            raise InvalidInput(
                f"[export] Expected {where} to be {size} as in the example, got {given}. Use a name or None."
            )
        return (STATIC, "", 0, LARGEST)
    if isinstance(given, str):
        return (DYNAMIC, checked_name(where, given), 0, LARGEST)
    hint = getattr(getattr(given, "type", None), "name", "")
    if hint in KINDS:
        return (KINDS[hint], "", *bounds(where, size, given))
    name = getattr(given, "__name__", None)
    if name is None or (isinstance(given, type) and not hasattr(given, "max")):
        raise InvalidInput(f"[export] Expected {ACCEPTED} for {where}, got {given!r}.")
    if hasattr(given, "root"):  # 2*Dim("n"): it must vary, and how is found by trying
        return (DYNAMIC, "", 0, LARGEST)
    return (DYNAMIC, checked_name(where, name), *bounds(where, size, given))


def checked_name(where: str, name: str) -> str:
    if not name.isidentifier():
        raise InvalidInput(
            f"[export] Expected a name of letters, digits and _ for {where}, got {name!r}. Sums and products "
            ""
            "are found by "
            "themselves: use Dim.DYNAMIC for them."
        )
    return name


def bounds(where: str, size: int, given: Any) -> tuple[int, int]:
    low, high = getattr(given, "min", None), getattr(given, "max", None)
    low = low if isinstance(low, int) else 0
    high = high if isinstance(high, int) and high < LARGEST else LARGEST
    if not low <= size <= high:
        upper = f" to {high}" if high < LARGEST else " or more"
        raise InvalidInput(f"[export] Expected the example within the bounds of {where}, {low}{upper}, got {size}.")
    return (low, high)
