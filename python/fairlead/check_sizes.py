"""Sizes to check a file at, besides those next to what ran: far ones, round ones, swapped ones, the largest."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from fairlead.dynamic_shapes import LARGEST

LONGEST = 4096  # of a declared maximum that is run
FAR_FIRST, FAR = 3, 5  # times the example: of the first symbol, which most often is the batch, and of the others
CLOSE = 8  # times apart: sizes that are swapped; a batch as large as an image is wide is nothing that anyone asks for
ALONE = (37, 2, 100, 13, 64, 257, 1024, 6)  # of one symbol, where a run costs nothing
ROUND = 8  # kernels and models that pad take other ways at multiples of it


def more_settings(probed: Any, base: list[int], most_elements: int, largest: dict[str, int]) -> Iterator[list[int]]:
    """Settings within the bounds of every symbol, none twice, none with more elements than that."""
    seen = [base]
    for values in candidates(probed, base):
        bounded = within(probed, values, largest)
        if bounded not in seen and elements(probed, bounded) <= most_elements:
            seen.append(bounded)
            yield bounded


def candidates(probed: Any, base: list[int]) -> Iterator[list[int]]:
    symbols = range(len(base))
    yield [size * (FAR if k else FAR_FIRST) for k, size in enumerate(base)]
    yield [ROUND * (-(-size // ROUND) + k) for k, size in enumerate(base)]
    for k in symbols:
        for other in range(k + 1, len(base)):
            least, most = sorted((base[k], base[other]))
            if least < most <= CLOSE * least:
                yield [base[other] if i == k else base[k] if i == other else base[i] for i in symbols]
    for k, symbol in enumerate(probed.symbols):
        if symbol.max <= LONGEST:
            yield [symbol.max if i == k else base[i] for i in symbols]
    for size in ALONE:
        for k in symbols:
            yield [size if i == k else base[i] for i in symbols]
    yield [2 + k for k in symbols]
    yield [9 - min(k, 7) for k in symbols]


def apart(base: list[int], values: list[int]) -> list[list[int]]:
    """The same, one symbol at a time, where all together are refused."""
    moved = [k for k, size in enumerate(values) if size != base[k]]
    if len(moved) < 2:
        return []
    return [[values[k] if i == k else size for i, size in enumerate(base)] for k in moved]


def within(probed: Any, values: list[int], largest: dict[str, int]) -> list[int]:
    return [
        min(max(size, symbol.min, 1), symbol.max, largest.get(symbol.name, LARGEST))
        for size, symbol in zip(values, probed.symbols, strict=True)
    ]


def elements(probed: Any, values: list[int]) -> int:
    return sum(math.prod(shape) for shape in probed.sizes_at(values))
