"""Other values for the example's inputs: what a model that looks at its values would decide otherwise by.

1. A variation changes every input at once, each by what it is: numbers (signs, magnitudes, zero), complex numbers,
   masks (rows of another length, everything, nothing), ids and lengths (others of the seen range), positions
   (reversed). Shapes and types stay.
2. Eager decides what is valid: values that it refuses (an index out of range) are left out by the caller, who then
   tries the inputs one at a time (`alone`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from fairlead.tree.calls import counts, moved


@dataclass
class Variation:
    """Tensors for one call, in words; `empty` where nothing is left of what they select."""

    words: str
    tensors: list[torch.Tensor]
    column: Column

    @property
    def empty(self) -> bool:
        return self.column.empty or any(t.numel() and kind_of(t) == MASK and nothing(t) for t in self.tensors)


MANY = 256  # inputs: each alone is a call with all of them

# PyTorch has few operators for these.
WIDE = (torch.uint16, torch.uint32, torch.uint64)


def variations(tensors: list[torch.Tensor], most: int | None = None) -> list[Variation]:
    """Calls of the same shapes and types and other values, the most telling first; none twice.

    >>> [v.words for v in variations([torch.rand(2, 3)])]
    ['signs flipped', '8 times as large', '1/64 as large', '8 times as large, signs flipped', 'zeros']
    """
    found = every_variation(tensors)
    return list(found if most is None else itertools.islice(found, most))


def every_variation(tensors: list[torch.Tensor]) -> Iterator[Variation]:
    """The same, each made when it is asked for."""
    kinds = dict.fromkeys(kind_of(t) for t in tensors if t.numel())
    seen = [tensors]
    for each in COLUMNS:
        changed = [one(t, each) for t in tensors]
        if not any(all(same(a, b) for a, b in zip(changed, old, strict=True)) for old in seen):
            words = ", ".join(dict.fromkeys(each.words[k] for k in kinds if each.words[k]))
            yield Variation(words, changed, each)
            seen.append(changed)


def alone(tensors: list[torch.Tensor], names: list[str], variation: Variation) -> list[Variation]:
    """The same, one input at a time, where all of them together are refused; not of hundreds."""
    if len(tensors) > MANY:
        return []
    found = []
    for k, (name, tensor) in enumerate(zip(names, variation.tensors, strict=True)):
        if not same(tensor, tensors[k]):
            changed = [tensor.clone() if i == k else t.clone() for i, t in enumerate(tensors)]
            words = variation.column.words[kind_of(tensors[k])]
            found.append(Variation(f"{words} in {name} alone", changed, variation.column))
    return found if len(found) > 1 else []


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())


# ---- kinds ----------------------------------------------------------------------------------------------

FLOATS, COMPLEX, MASK, IDS, POSITIONS = "floats", "complex", "mask", "ids", "positions"


def kind_of(tensor: torch.Tensor) -> str:
    if tensor.is_complex():
        return COMPLEX
    if tensor.dtype == torch.bool:
        return MASK
    if tensor.is_floating_point():
        return MASK if tensor.dim() > 1 and two_valued(tensor) else FLOATS
    if tensor.dtype in WIDE:
        tensor = tensor.to(torch.int64)
    if int(tensor.max()) <= 1 and int(tensor.min()) >= 0 and tensor.dim():
        return MASK
    return POSITIONS if tensor.dim() and counts(tensor, tensor.dim() - 1) else IDS


def two_valued(tensor: torch.Tensor) -> bool:
    """Whether floats are a mask: ones and zeros, or what is added to scores (zeros, and much less)."""
    places = tensor.detach().flatten()[:4096].float()  # of float8 nothing is known
    least, most = (float(end) for end in places.aminmax())
    if (least, most) != (0.0, 1.0) and not (most == 0.0 and least <= -1e4):
        return False
    return bool(((places == least) | (places == most)).all())


def levels(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What a mask has where it selects, and where not."""
    tensor = tensor.detach()
    if tensor.dtype == torch.bool or not tensor.is_floating_point() or float(tensor.min()) >= 0:
        return 1, 0
    return 0.0, float(tensor.min())


def nothing(mask: torch.Tensor) -> bool:
    return bool((mask == levels(mask)[1]).all())


# ---- what becomes of one tensor ---------------------------------------------------------------------------


def noise(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    """Numbers around 1, so that what is equal in the example is not."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(tensor.shape, generator=generator, dtype=torch.float64) * 0.5 + 0.75


def scaled(factor: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        if not bool(tensor.any()):  # a state that is empty yet
            tensor = torch.ones_like(tensor)
        changed = moved(tensor.to(torch.complex128 if tensor.is_complex() else torch.float64))
        return (changed * noise(tensor, int(abs(factor) * 64)) * factor).to(tensor.dtype)

    return change


def conjugated(tensor: torch.Tensor) -> torch.Tensor:
    return scaled(1 / 64)(tensor).conj().resolve_conj()


def rows_of(lengths: Callable[[int, int], int]) -> Callable[[torch.Tensor], torch.Tensor]:
    """A mask whose rows select as many places from the first on as the function of row and length says."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        on, off = levels(tensor)
        changed = torch.full_like(tensor, off)
        if not tensor.dim():
            return torch.full_like(tensor, on if bool(tensor == off) else off)
        width = tensor.shape[-1]
        for row, places in enumerate(changed.view(-1, width)):
            places[: lengths(row, width)] = on
        return changed

    return change


def swapped(tensor: torch.Tensor) -> torch.Tensor:
    """A mask that selects what the other does not."""
    on, off = levels(tensor)
    return torch.where(tensor == on, torch.full_like(tensor, off), torch.full_like(tensor, on))


def seen_range(tensor: torch.Tensor) -> tuple[int, int]:
    """Integers that are likely as valid as those that were seen. One number alone has its half below it."""
    least, most = int(tensor.min()), int(tensor.max())
    if least == most:
        least, most = (0, 1) if most == 0 else (max(1, most // 2), most) if most > 0 else (most, -1)
    return least, most


def drawn(tensor: torch.Tensor) -> torch.Tensor:
    least, most = seen_range(tensor)
    if tensor.numel() == 1:  # one number is a count or a place: one less, or the next where there is none
        value = int(tensor.flatten()[0])
        return torch.full_like(tensor, value - 1 if value > 1 else value + 1)
    generator = torch.Generator().manual_seed(7)
    return torch.randint(least, most + 1, tensor.shape, generator=generator).to(tensor.dtype)


def padded(tensor: torch.Tensor) -> torch.Tensor:
    """Rows of different lengths that end in zeros, none as long as the whole."""
    if not tensor.dim():
        return torch.zeros_like(tensor)
    width = tensor.shape[-1]
    changed = tensor.clone()
    for row, places in enumerate(changed.view(-1, width)):
        places[max(1, width - width // 3 - row % 2) :] = 0
    return changed


def least_of(tensor: torch.Tensor) -> torch.Tensor:
    return torch.full_like(tensor, seen_range(tensor)[0])


def most_of(tensor: torch.Tensor) -> torch.Tensor:
    least, most = seen_range(tensor)
    return torch.full_like(tensor, most + 1 if tensor.numel() == 1 and least != most else most)


def reversed_(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.flip(-1) if tensor.dim() else tensor


def kept(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


@dataclass
class Column:
    words: dict[str, str]
    change: dict[str, Callable[[torch.Tensor], torch.Tensor]]
    empty: bool = False


def column(empty: bool = False, **cells: tuple[str, Callable[..., Any]]) -> Column:
    return Column({k: words for k, (words, _) in cells.items()}, {k: change for k, (_, change) in cells.items()}, empty)


# One column per variation, one cell per kind of input.
# fmt: off
COLUMNS = [
    column(
        floats=("signs flipped", scaled(-1)), complex=("signs flipped", scaled(-1)),
        mask=("masks of shorter rows", rows_of(lambda row, width: max(1, width - width // 3 - row % 2))),
        ids=("other integers", drawn), positions=("", kept),
    ),
    column(
        floats=("8 times as large", scaled(8)), complex=("8 times as large", scaled(8)),
        mask=("masks that select everything", rows_of(lambda row, width: width)),
        ids=("the largest integer everywhere", most_of), positions=("positions reversed", reversed_),
    ),
    column(
        floats=("1/64 as large", scaled(1 / 64)), complex=("conjugated, 1/64 as large", conjugated),
        mask=("masks that select one place", rows_of(lambda row, width: 1)),
        ids=("integers padded with zeros", padded), positions=("each position twice", lambda t: t // 2),
    ),
    column(
        floats=("8 times as large, signs flipped", scaled(-8)), complex=("", kept),
        mask=("masks swapped", swapped), ids=("the smallest integer everywhere", least_of), positions=("", kept),
    ),
    column(
        True, floats=("zeros", torch.zeros_like), complex=("zeros", torch.zeros_like),
        mask=("nothing selected", rows_of(lambda row, width: 0)), ids=("zeros", torch.zeros_like),
        positions=("", kept),
    ),
]
# fmt: on


def one(tensor: torch.Tensor, of: Column) -> torch.Tensor:
    if not tensor.numel():
        return tensor.clone()
    kind = kind_of(tensor)
    if tensor.dtype in WIDE:
        return one(tensor.to(torch.int64), of).clamp(min=0).to(tensor.dtype)
    if tensor.is_floating_point() and tensor.element_size() == 1:
        return one(tensor.float(), of).to(tensor.dtype)
    changed = of.change[kind](tensor).clone()
    return changed.sort(-1).values if kind == IDS and is_sorted(tensor) else changed


def is_sorted(tensor: torch.Tensor) -> bool:
    """Offsets and boundaries: kernels do not look, and give anything where they are not."""
    return tensor.dim() > 0 and tensor.shape[-1] > 2 and bool((tensor.diff(dim=-1) >= 0).all())
