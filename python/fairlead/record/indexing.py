"""x[..., a:b], narrow and pad as the same operators at every size, with the numbers that the model gave.

PyTorch leaves out a slice that happens to cover its dimension, so that x[:, :8] is a slice where the dimension has 9
elements and nothing where it has 8. Recorded, that looks like another program. Here such slices are always executed,
and what was computed from sizes arrives as it was computed.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import torch

from fairlead._core import SizeInt, read_from
from fairlead.record.transforms import TRANSFORMS

SELECT = torch.ops.aten.select.int
SLICE = torch.ops.aten.slice.Tensor
PAD = torch.ops.aten.constant_pad_nd.default
SPLIT = torch.ops.aten.split.Tensor
INDEX_PUT = torch.ops.aten.index_put_.default


def cut(session: Any, tensor: torch.Tensor, index: Any) -> tuple[torch.Tensor, Any]:
    """The tensor with the slices of `index` that may cover everything and the numbers that remember applied, and the
    index that remains."""
    items = index if type(index) is tuple else (index,)
    if not any(may_cover(item) or isinstance(item, SizeInt) for item in items):
        return tensor, index
    dims = [size for size in map(dims_of, items) if size is not None]
    if len(dims) < len(items):
        return tensor, index
    rest = tensor.dim() - sum(dims)
    if rest < 0:
        return tensor, index  # too many: PyTorch says so
    left: list[Any] = []
    dim = 0
    for item, size in zip(items, dims, strict=True):
        if isinstance(item, SizeInt):
            tensor = session.execute(SELECT, tensor, dim, item)
            continue
        if may_cover(item):
            start = 0 if item.start is None else number(session, item.start)
            step = 1 if item.step is None else number(session, item.step)
            stop = None if item.stop is None else number(session, item.stop)
            tensor = session.execute(SLICE, tensor, dim, start, ENDLESS if stop is None else stop, step)
            item = slice(None)
        left.append(item)
        dim += rest if item is Ellipsis else size
    return tensor, tuple(left)


ENDLESS = (1 << 63) - 1  # as PyTorch writes "to the end"


def may_cover(item: Any) -> bool:
    """A slice that is executed whatever its sizes."""
    if type(item) is not slice:
        return False
    if item.step is not None and not (isinstance(item.step, int) and item.step.real > 0):
        return False
    return item.start is not None or item.stop is not None or item.step is not None


def number(session: Any, value: Any) -> int:
    """As it is, where it is a number; what else has an index becomes one, and a tensor one that was read."""
    if type(value) is torch.Tensor and value.dtype == torch.int64 and value.numel() == 1:
        read: int = session.core.read_result(value.item())
        return read
    return value if isinstance(value, int) else operator.index(value)


def dims_of(item: Any) -> int | None:
    """How many dimensions an index takes up; None where that is left to PyTorch."""
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, torch.Tensor):
        return item.dim() if item.dtype in (torch.bool, torch.uint8) else 1
    return 1 if isinstance(item, (int, slice)) else None


def with_data(session: Any, tensor: torch.Tensor, index: Any) -> Any:
    """The index with tensors for its lists of numbers: PyTorch makes those itself, on the device of the tensor, and
    where that has no data the numbers would be lost."""
    if session.light is None or not tensor.is_meta:
        return index
    items = index if type(index) is tuple else (index,)
    if not any(is_numbers(item) for item in items):
        return index
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():  # made below Python otherwise
        made = [torch.tensor(item) if is_numbers(item) else item for item in items]
    return tuple(made) if type(index) is tuple else made[0]


def is_numbers(item: Any) -> bool:
    """A list of plain integers or truths, or of such lists; sizes that remember are none."""
    if type(item) not in (list, tuple) or not item:
        return False
    return all(type(each) in (int, bool) or is_numbers(each) for each in item)


def remembers(item: Any) -> bool:
    """A list among whose numbers are sizes, or what was read."""
    return type(item) is list and any(isinstance(each, SizeInt) or remembers(each) for each in item)


def with_memory(session: Any, index: Any) -> Any:
    """The index with tensors for such lists: PyTorch takes their numbers one by one where nobody sees it."""
    items = index if type(index) is tuple else (index,)
    if not any(map(remembers, items)):
        return index
    made = [as_tensor(session, item) if remembers(item) else item for item in items]
    return tuple(made) if type(index) is tuple else made[0]


def as_tensor(session: Any, numbers: Any) -> torch.Tensor:
    session.core.note_call(torch.tensor, (numbers,), None)
    return torch.tensor(numbers)


def getitem(session: Any, tensor: torch.Tensor, index: Any) -> torch.Tensor:
    index = with_data(session, tensor, with_memory(session, index))
    left, rest = cut(session, tensor, index)
    if left is not tensor and all(item is Ellipsis or (type(item) is slice and item == slice(None)) for item in rest):
        return left  # nothing remains; x[:, 3:6], in the next step of a loop, is one operator, too
    # What has been applied is no number of what remains: an axis may happen to be equal to it.
    session.core.note_call(torch.Tensor.__getitem__, (left, rest), None)
    return left[rest]


def setitem(session: Any, tensor: torch.Tensor, index: Any, value: Any) -> None:
    tensor, index = cut(session, tensor, with_data(session, tensor, with_memory(session, index)))
    if session.light is not None and tensor.is_meta and isinstance(value, (int, float, complex)):
        # With data PyTorch fills from a tensor on the CPU, without it expands and copies one: another program.
        value = torch.tensor(value.real if isinstance(value, int) else value, dtype=tensor.dtype)
    found = selected(tensor, index, value)
    if found is None:
        tensor[index] = value
    else:
        session.execute(INDEX_PUT, *found, value)


def selected(tensor: torch.Tensor, index: Any, value: Any) -> tuple[torch.Tensor, list[torch.Tensor | None]] | None:
    """The view and the indices of x[mask] = values, or x[rows, columns] = values, where each selected element has a
    value of its own: PyTorch takes leading ones off the sizes of the values, so that it does another thing where one
    element happens to be selected."""
    items = index if type(index) is tuple else (index,)
    chosen = [item for item in items if isinstance(item, torch.Tensor)]
    if not chosen or type(value) is not torch.Tensor:
        return None
    if not (len(chosen) == 1 and chosen[0].dtype == torch.bool and chosen[0].dim() > 0) and not are_places(
        items, chosen
    ):
        return None
    if value.dtype != tensor.dtype or any(dims_of(item) is None or isinstance(item, bool) for item in items):
        return None
    rest = tensor.dim() - sum(dims_of(item) or 0 for item in items)
    added = sum(item is None for item in items) - sum(isinstance(item, int) for item in items)
    taken = sum(dims_of(item) or 0 for item in chosen)
    if rest < 0 or not 0 < value.dim() <= tensor.dim() + added - taken + 1:
        return None
    places: list[torch.Tensor | None] = []
    dim = 0
    for item in items:
        if isinstance(item, int):
            tensor = tensor.select(dim, item)
            continue
        if isinstance(item, torch.Tensor):
            places.append(item)
            dim += dims_of(item) or 0
            continue
        if item is None:
            tensor = tensor.unsqueeze(dim)
        elif item is not Ellipsis and item != slice(None):
            return None
        passed = rest if item is Ellipsis else 1
        places += [None] * passed
        dim += passed
    return tensor, places


def are_places(items: tuple[Any, ...], chosen: list[torch.Tensor]) -> bool:
    """Whether they are lists of integers side by side: what they select is then one dimension, where they stand."""
    if any(item.dtype != torch.int64 or item.dim() != 1 for item in chosen):
        return False
    first = next(k for k, item in enumerate(items) if isinstance(item, torch.Tensor))
    return all(isinstance(item, torch.Tensor) for item in items[first : first + len(chosen)])


def pad(session: Any, input: torch.Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    """torch.nn.functional.pad: by a constant it is one operator of its own."""
    if mode != "constant" or not isinstance(pad, (tuple, list)) or not all(isinstance(p, int) for p in pad):
        return torch._C._nn.pad(input, pad, mode, value)
    return session.execute(PAD, input, list(pad), 0 if value is None else value)


def narrow(session: Any, input: torch.Tensor, dim: int, start: Any, length: int) -> Any:
    """A slice by start and length, which PyTorch checks."""
    plain = torch._C._TensorBase.narrow
    if not isinstance(start, int) or (not isinstance(start, SizeInt) and not isinstance(length, SizeInt)):
        return plain(input, dim, start, length)
    # `real` is the number without its memory: what is asked here is not the model's question. Whether it counts from
    # the end is one.
    size, first = input.size(dim), start.real
    begin = first + size if first < 0 else first
    if length.real < 0 or begin < 0 or begin + length.real > size:
        return plain(input, dim, start, length)  # which says what is wrong
    if isinstance(start, SizeInt) and start < 0:
        start = start + (session.core.size_of(input, dim) or size)
    elif first < 0:
        return plain(input, dim, start, length)
    return session.execute(SLICE, input, dim, start, start + length, 1)


def chunk(session: Any, input: torch.Tensor, chunks: int, dim: int = 0) -> Any:
    """Parts of equal size, which PyTorch computes below Python."""
    size = session.core.size_of(input, dim)
    if not isinstance(size, SizeInt) or not isinstance(chunks, int) or chunks.real < 1 or size.real == 0:
        return torch._C._VariableFunctions.chunk(input, chunks, dim)
    return session.execute(SPLIT, input, (size + chunks - 1) // chunks, dim)


def tensor_split(session: Any, input: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """So many parts, of which the first are longer by one where there is a rest."""
    sections = args[0] if args and type(args[0]) is int else 0
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    size = session.core.size_of(input, dim) if sections > 0 else None
    if not isinstance(size, SizeInt) or not set(kwargs) <= {"dim"}:
        return torch._C._VariableFunctions.tensor_split(input, *args, **kwargs)
    ends: list[int] = [0]
    for k in range(sections):
        ends.append(ends[-1] + (size + (sections - 1 - k)) // sections)
    return tuple(session.execute(SLICE, input, dim, a, b, 1) for a, b in itertools.pairwise(ends))


def tensor_by(plain: Any) -> Callable[..., torch.Tensor]:
    """Of a list that was read from a tensor: that tensor, whatever its size."""

    def make(session: Any, data: Any, *more: Any, **options: Any) -> torch.Tensor:
        source = read_from(data) if type(data) is list and not more and set(options) <= {"dtype"} else None
        if source is None or source.dim() != 1:
            made: torch.Tensor = plain(data, *more, **options)
            return made
        dtype = torch.get_default_dtype() if source.is_floating_point() else torch.int64
        copied: torch.Tensor = source.to(options.get("dtype") or dtype, copy=True)
        return copied

    return make


MOST_SEQUENCES = 8  # whose lengths are compared one by one


def pad_sequence(
    session: Any, sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: Any = "right"
) -> Any:
    """The longest of some sequences is a question about their lengths, which PyTorch asks below Python."""
    plain: Any = torch._C._nn.pad_sequence
    alike = all(type(t) is torch.Tensor and t.dim() == sequences[0].dim() > 0 for t in sequences)
    lengths = [session.core.size_of(t, 0) for t in sequences] if alike and len(sequences) <= MOST_SEQUENCES else []
    if not any(isinstance(length, SizeInt) for length in lengths) or padding_side not in ("left", "right"):
        return plain(sequences, batch_first, padding_value, padding_side)
    lengths = [t.size(0) if length is None else length for t, length in zip(sequences, lengths, strict=True)]
    most = max(lengths)
    others = [0, 0] * (sequences[0].dim() - 1)
    padded = []
    for t, length in zip(sequences, lengths, strict=True):
        missing = [0, most - length] if padding_side == "right" else [most - length, 0]
        padded.append(session.execute(PAD, t, [*others, *missing], padding_value))
    return torch.stack(padded, 0 if batch_first else 1)


def allclose(
    session: Any,
    input: torch.Tensor,
    other: torch.Tensor,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> bool:
    """Its answer is read from a tensor."""
    return bool(torch.isclose(input, other, rtol, atol, equal_nan).all())


CANONICAL = {
    **TRANSFORMS,
    torch.Tensor.allclose: allclose,
    torch.allclose: allclose,
    torch.Tensor.chunk: chunk,
    torch.chunk: chunk,
    torch.Tensor.__getitem__: getitem,
    torch.Tensor.__setitem__: setitem,
    torch._C._nn.pad: pad,
    torch._C._nn.pad_sequence: pad_sequence,
    torch.tensor: tensor_by(torch.tensor),
    torch.as_tensor: tensor_by(torch.as_tensor),
    torch.Tensor.tensor_split: tensor_split,
    torch.tensor_split: tensor_split,
    torch.Tensor.narrow: narrow,
    torch.narrow: narrow,
}
