"""What image encoders that take images of any size (Qwen-VL) are told about the grid of patches of every image.

grid is int64[images, 3]: frames, height and width in patches. Patches come in blocks of merge x merge, which become one
token: every array has one row per token, then one per patch of its block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fairlead._core import InvalidInput


def grid_inputs(how: dict[str, Any], pool: dict[str, Any]) -> dict[str, np.ndarray]:
    """The encoder's inputs by name: the patches in blocks, and what is made from the grid."""
    grid, patches = np.asarray(pool[how["grid"]]), np.asarray(pool[how["patches"]])
    unit = how["merge"] ** 2
    if grid.ndim != 2 or grid.shape[1] != 3 or grid.prod(1).sum() != len(patches):
        raise InvalidInput(
            f"[generate] Expected {how['grid']} as [images, 3] whose products add up to the {len(patches)} rows of "
            f"{how['patches']}, got {grid.tolist() if grid.size < 30 else list(grid.shape)}."
        )
    made = {how["patches"]: patches.reshape(-1, unit, patches.shape[-1])}
    for row in how["makes"]:
        arrays = MAKERS[row["helper"]](grid, **row["settings"])
        for name, array in zip(row["names"], arrays, strict=True):
            made[name] = array.reshape(-1, unit, array.shape[-1]) if name in how["blocked"] else array
    return made


def position_ids(grid: np.ndarray, merge: int, temporal: bool = False) -> list[np.ndarray]:
    """Row and column of every patch, blocks of merge x merge one after the other."""
    found = []
    for t, h, w in grid.tolist():
        blocks = (h // merge, merge, w // merge, merge)
        rows, columns = np.meshgrid(np.arange(h), np.arange(w), indexing="ij")
        places = [np.tile(a.reshape(blocks).swapaxes(1, 2).ravel(), t) for a in (rows, columns)]
        if temporal:
            places.insert(0, np.arange(t).repeat(h * w))
        found.append(np.stack(places, -1))
    return [np.concatenate(found)]


def seqlens(grid: np.ndarray, merge_temporal: bool = False) -> list[np.ndarray]:
    """Where the patches of each frame begin, and the end: they attend to each other only."""
    lengths = grid.prod(1) if merge_temporal else (grid[:, 1] * grid[:, 2]).repeat(grid[:, 0])
    return [np.concatenate([[0], lengths.cumsum()]).astype(np.int64)]


def windows(grid: np.ndarray, merge: int, window: int, patch: int) -> list[np.ndarray]:
    """The order of tokens window by window, and where the patches of each window begin."""
    side = window // merge // patch
    order, ends, first = [], [0], 0
    for t, h, w in grid.tolist():
        h, w = h // merge, w // merge
        more_h, more_w = side - h % side, side - w % side
        index = np.pad(np.arange(t * h * w).reshape(t, h, w), ((0, 0), (0, more_h), (0, more_w)), constant_values=-1)
        cut = index.reshape(t, (h + more_h) // side, side, (w + more_w) // side, side).transpose(0, 1, 3, 2, 4)
        lengths = (cut >= 0).sum((3, 4)).ravel()
        order.append(cut[cut >= 0] + first)
        ends += (lengths.cumsum() * merge * merge + ends[-1]).tolist()
        first += t * h * w
    kept = np.asarray(ends, np.int64)
    kept = kept[np.concatenate([[True], kept[1:] != kept[:-1]])]  # windows of padding alone are none
    return [np.concatenate(order), kept]


def interpolation(grid: np.ndarray, side: int, merge: int, align_corners: bool) -> list[np.ndarray]:
    """Four places of a square table of positions per patch, and their weights: bilinear."""
    found_places, found_weights = [], []
    for t, h, w in grid.tolist():
        places = position_ids(np.array([[t, h, w]]), merge)[0]
        taps = [axis_taps(places[:, k], size, side, align_corners) for k, size in enumerate((h, w))]
        (rows, row_weights), (columns, column_weights) = taps
        found_places.append((rows[:, :, None] * side + columns[:, None, :]).reshape(-1, 4))
        found_weights.append((row_weights[:, :, None] * column_weights[:, None, :]).reshape(-1, 4))
    return [np.concatenate(found_places), np.concatenate(found_weights).astype(np.float32)]


def axis_taps(index: np.ndarray, size: int, side: int, align_corners: bool) -> tuple[np.ndarray, np.ndarray]:
    index = index.astype(np.float32)
    if align_corners:
        source = index * np.float32(side - 1) / np.float32(max(size - 1, 1))
    else:
        source = (index + np.float32(0.5)) * np.float32(side) / np.float32(size) - np.float32(0.5)
    floor = np.floor(source)
    offsets = np.arange(2)
    taps = (floor.astype(np.int64)[:, None] + offsets).clip(0, side - 1)
    distance = np.abs(source[:, None] - floor[:, None] - offsets.astype(np.float32))
    return taps, (1 - distance).clip(0)


MAKERS: dict[str, Callable[..., list[np.ndarray]]] = {
    "position_ids": position_ids,
    "seqlens": seqlens,
    "windows": windows,
    "interpolation": interpolation,
}
