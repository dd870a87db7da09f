"""Vision towers that pack images of different sizes into one sequence and attend within each of its segments."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from fairlead.patches.table import bindings, methods, names_in, register_patch

SPLIT_ERROR = "GuardOnDataDependentSymNode: Could not guard on data-dependent expression Eq(u8, 0)"
WINDOW_ERROR = "GuardOnDataDependentSymNode: Could not extract specialized integer from data-dependent expression u9"


class OneSegment:
    """Stands for boundaries of segments, as if the whole were one: `tolist` and loops over pairs see [0, size]."""

    def __init__(self, size: Any) -> None:
        self.bounds = [0, size]

    def __len__(self) -> Any:
        return 2

    def __getitem__(self, index: int) -> Any:
        return self if isinstance(index, slice) else self.bounds[index]

    def __sub__(self, other: Any) -> Any:
        return self

    def tolist(self) -> Any:
        return [self.bounds[1]]


def same_segment(boundaries: torch.Tensor, size: Any) -> torch.Tensor:
    """True where two tokens are in the same segment."""
    # Every boundary raises the number of the tokens after it; the one at the end falls on a place that is cut off.
    marks = torch.zeros(size + 1, dtype=torch.int64, device=boundaries.device)
    marks = marks.scatter_add(0, boundaries.long(), torch.ones_like(boundaries, dtype=torch.int64))
    segment = marks.cumsum(0)[:size]
    return segment[:, None] == segment[None, :]


class WithinSegments(TorchFunctionMode):
    """Attention that is computed inside the block sees only keys of its own segment."""

    def __init__(self, boundaries: Any, size: Any) -> None:
        super().__init__()
        self.mask = same_segment(boundaries, size)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.nn.functional.scaled_dot_product_attention:
            bound = dict(zip(("query", "key", "value", "attn_mask", "dropout_p", "is_causal"), args, strict=False))
            return func(**(bound | kwargs | {"attn_mask": self.mask, "is_causal": False}))
        if func in (torch.nn.functional.softmax, torch.softmax, torch.Tensor.softmax):
            scores, *rest = args
            return func(scores.masked_fill(~self.mask, torch.finfo(scores.dtype).min), *rest, **kwargs)
        return func(*args, **kwargs)


def _packed_attention(cls: Any, name: str, function: Any) -> bool:
    """A forward that takes `cu_seqlens` and goes through segments one by one: split, or a loop that fills a mask."""
    if name != "forward" or not inspect.isfunction(function):
        return False
    names = names_in(function)
    if not {"cu_seqlens", "hidden_states"} <= set(inspect.signature(function).parameters):
        return False
    return {"split", "tolist"} <= names or {"range", "len", "attention_mask", "softmax"} <= names or {
        "range", "len", "attention_mask", "scaled_dot_product_attention"
    } <= names  # fmt: skip


@register_patch(
    "dynamo",
    lambda: methods(_packed_attention),
    name="attention_within_segments",
    problem="Images are split into segments at positions that are values, and attended to one by one: "
    f"torch.split(tensor, lengths.tolist()): {SPLIT_ERROR}. In 4.51 a loop fills a mask.",
    remedy="One attention with a mask that lets a token see its own segment. Segments may differ in length.",
    versions="all",
    looked_for="vision attention that takes cu_seqlens (Qwen2-VL, Qwen2.5-VL, Qwen3-VL, GLM-4V ...)",
    tolerance=1e-5,
)
def attention_within_segments(original: Any) -> Any:
    takes = inspect.signature(original)

    @functools.wraps(original)
    def forward(*args: Any, **kwargs: Any) -> Any:
        call = takes.bind(*args, **kwargs)
        boundaries, states = call.arguments["cu_seqlens"], call.arguments["hidden_states"]
        size = states.shape[-2]
        call.arguments["cu_seqlens"] = OneSegment(size)
        with WithinSegments(boundaries, size):
            return original(*call.args, **call.kwargs)

    return forward


def _fills_mask(cls: Any, name: str, function: Any) -> bool:
    wanted = {"inputs_tensor", "cu_seqlens", "range", "len", "attention_mask"}
    return name == "_prepare_attention_mask" and wanted <= names_in(function)


@register_patch(
    "dynamo",
    lambda: methods(_fills_mask),
    name="mask_of_segments",
    problem="A loop fills a mask segment by segment, as many as a value says: `for i in range(1, len(cu_seqlens))`: "
    "GuardOnDataDependentSymNode: Could not extract specialized integer from data-dependent expression u1 + 1.",
    remedy="The mask compares the numbers of the segments of two tokens.",
    versions="4.53",
    looked_for="_prepare_attention_mask(inputs_tensor, cu_seqlens) of vision towers",
)
def mask_of_segments(original: Any) -> Any:
    def _prepare_attention_mask(self: Any, inputs_tensor: Any, cu_seqlens: Any) -> Any:
        size = inputs_tensor.shape[0]
        mask = original(self, inputs_tensor, OneSegment(size))
        if mask is None:
            return None
        return mask.masked_fill(~same_segment(cu_seqlens, size), torch.finfo(inputs_tensor.dtype).min)

    return _prepare_attention_mask


def tokens_of(grid_thw: torch.Tensor, merge: int = 1) -> Any:
    """For each token of the packed images: its image, and its number in it, then height and width of that image."""
    thw = grid_thw.long()
    height, width = thw[:, 1] // merge, thw[:, 2] // merge
    sizes = thw[:, 0] * height * width
    image = torch.repeat_interleave(torch.arange(thw.shape[0], device=thw.device), sizes)
    start = (sizes.cumsum(0) - sizes)[image]
    number = torch.arange(image.shape[0], device=thw.device) - start
    return number, start, height[image], width[image]


def patch_positions(grid_thw: torch.Tensor, merge: int | torch.Tensor, include_temporal: bool = False) -> torch.Tensor:
    """Row and column of every patch, in the order of blocks of merge x merge; with the frame before them on request."""
    number, _, height, width = tokens_of(grid_thw)
    if isinstance(merge, torch.Tensor):
        sizes = grid_thw.long().prod(1)
        merge = torch.repeat_interleave(merge.long(), sizes, output_size=number.shape[0])
    place = number % (height * width)
    block, inside = place // (merge * merge), place % (merge * merge)
    row = block // (width // merge) * merge + inside // merge
    column = block % (width // merge) * merge + inside % merge
    axes = [number // (height * width), row, column] if include_temporal else [row, column]
    return torch.stack(axes, dim=-1)


def windows_of(grid_thw: torch.Tensor, merge: int, window: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Merged patches in the order of windows of `window` x `window`, and the boundaries of the windows in patches.

    The place of a patch in that order is the number of patches before it: of frames before, of bands of windows above,
    of windows to the left (as high as this band), of rows of its own window (as wide as it is).
    """
    number, start, height, width = tokens_of(grid_thw, merge)
    frame = number // (height * width) * (height * width)
    row, column = (number - frame) // width, (number - frame) % width
    top, left = row // window * window, column // window * window
    high, wide = torch.clamp(height - top, max=window), torch.clamp(width - left, max=window)
    place = start + frame + top * width + left * high + (row - top) * wide + (column - left)
    order = torch.zeros_like(place).scatter(0, place, torch.arange(place.shape[0], device=place.device))
    first = ((row == top) & (column == left))[order]
    boundaries = torch.nonzero(first).squeeze(1)
    end = torch.full((1,), place.shape[0], dtype=boundaries.dtype, device=boundaries.device)
    return order, torch.cat([boundaries, end]) * merge**2


GRID_LOOPS: dict[str, Any] = {
    "problem": "A loop over the images makes positions and windows with sizes read from grid_thw: "
    f"`int(grid_h)`: {WINDOW_ERROR}. The number of images becomes a constant.",
    "remedy": "The same integers by arithmetic on all tokens at once, for any number of images.",
}


@register_patch(
    "dynamo",
    lambda: bindings("transformers.vision_utils", "get_vision_position_ids"),
    name="vision_positions",
    looked_for="transformers.vision_utils.get_vision_position_ids",
    versions="later than 5.0 (there in 5.22)",
    **GRID_LOOPS,
)
def vision_positions(original: Any) -> Any:
    def get_vision_position_ids(
        grid_thw: Any, spatial_merge_size: Any, include_temporal: Any = False, kwargs: dict[str, Any] | None = None
    ) -> Any:
        if kwargs is not None and kwargs.get("position_ids") is not None:
            return kwargs.pop("position_ids")
        return patch_positions(grid_thw, spatial_merge_size, include_temporal)

    return get_vision_position_ids


@register_patch(
    "dynamo",
    lambda: bindings("transformers.vision_utils", "get_vision_window_index"),
    name="vision_windows",
    looked_for="transformers.vision_utils.get_vision_window_index",
    versions="later than 5.0 (there in 5.22)",
    **GRID_LOOPS,
)
def vision_windows(original: Any) -> Any:
    def get_vision_window_index(
        grid_thw: Any, spatial_merge_size: Any, window_size: Any, patch_size: Any, kwargs: dict[str, Any] | None = None
    ) -> Any:
        if kwargs is not None and kwargs.get("window_index") is not None:
            return original(grid_thw, spatial_merge_size, window_size, patch_size, kwargs)
        order, boundaries = windows_of(grid_thw, spatial_merge_size, window_size // spatial_merge_size // patch_size)
        return order, boundaries.to(torch.int32)

    return get_vision_window_index


def _rotary_loop(cls: Any, name: str, function: Any) -> bool:
    """The method of Qwen2-VL, Qwen2.5-VL, ERNIE-4.5-VL: a table of frequencies, looked up by row and column."""
    wanted = {"hpos_ids", "wpos_ids", "max_grid_size", "rotary_pos_emb_full", "spatial_merge_size", "flatten"}
    return name == "rot_pos_emb" and wanted <= names_in(function)


@register_patch(
    "dynamo",
    lambda: methods(_rotary_loop),
    name="vision_positions_of_a_tower",
    looked_for="rot_pos_emb(grid_thw) of vision towers",
    versions="up to 5.0",
    **GRID_LOOPS,
)
def vision_positions_of_a_tower(original: Any) -> Any:
    def rot_pos_emb(self: Any, grid_thw: Any) -> Any:
        # The original multiplies a range of positions and looks the rows up: the product of each is the same.
        frequencies = self.rotary_pos_emb.inv_freq
        positions = patch_positions(grid_thw, self.spatial_merge_size).to(frequencies.device, frequencies.dtype)
        return (positions[..., None] * frequencies).flatten(1)

    return rot_pos_emb


def _window_loop(cls: Any, name: str, function: Any) -> bool:
    return name == "get_window_index" and {"cu_window_seqlens", "index_padded", "window_size"} <= names_in(function)


@register_patch(
    "dynamo",
    lambda: methods(_window_loop),
    name="vision_windows_of_a_tower",
    looked_for="get_window_index(grid_thw) of vision towers",
    versions="up to 5.0",
    **GRID_LOOPS,
)
def vision_windows_of_a_tower(original: Any) -> Any:
    def get_window_index(self: Any, grid_thw: Any) -> Any:
        window = self.window_size // self.spatial_merge_size // self.patch_size
        return windows_of(grid_thw, self.spatial_merge_size, window)

    return get_window_index
