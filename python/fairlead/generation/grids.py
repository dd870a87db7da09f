"""Image encoders that take images of any size: what they compute from the grid of patches becomes inputs of the file.

The helpers of transformers.vision_utils loop over images and read values; their results can be given to the encoder
instead. Which helpers a model calls, and with which settings, is watched; the runtime has the same in numpy, and what
it makes is compared with what was seen before anything is exported.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.export import Dim

from fairlead._core import Unsupported
from fairlead.exporters.model_settings import attention_configs, set_attention
from fairlead.generation.cuts import result_of
from fairlead.generation.plan import PartPlan
from fairlead.generation.watch import copied, untouched
from fairlead.runtime.grids import grid_inputs

GRID, PATCHES = "image_grid_thw", "pixel_values"
PACKED = "fairlead_flash_packed"  # models give boundaries instead of cutting where the name has "flash" in it
TOKENS = 6  # image tokens of the call that is recorded; apart from the sizes of its other inputs


@dataclass(frozen=True)
class Helper:
    """A helper of Transformers and the maker of the runtime that does the same."""

    maker: str
    gives: tuple[str, ...]  # the encoder's keyword arguments
    settings: Callable[[dict[str, Any]], dict[str, Any]]
    blocked: tuple[str, ...] = ()  # those with one row per patch


HELPERS = {
    "get_vision_position_ids": Helper(
        "position_ids", ("position_ids",),
        lambda a: {"merge": a["spatial_merge_size"], "temporal": a.get("include_temporal", False)}, ("position_ids",),
    ),
    "get_vision_attention_seqlens": Helper(
        "seqlens", ("cu_seqlens",), lambda a: {"merge_temporal": a.get("merge_temporal", False)}
    ),
    "get_vision_cu_seqlens": Helper(
        "seqlens", ("cu_seqlens",), lambda a: {"merge_temporal": a.get("merge_temporal", False)}
    ),
    "get_vision_window_index": Helper(
        "windows", ("window_index", "cu_window_seqlens"),
        lambda a: {"merge": a["spatial_merge_size"], "window": a["window_size"], "patch": a["patch_size"]},
    ),
    "get_vision_interpolation_indices_and_weights": Helper(
        "interpolation", ("interp_indices", "interp_weights"),
        lambda a: {
            "side": a["num_grid_per_side"], "merge": a["spatial_merge_size"], "align_corners": a["align_corners"]
        },
        ("interp_indices", "interp_weights"),
    ),
}  # fmt: skip


def takes_grid(call: dict[str, Any]) -> bool:
    return GRID in call and PATCHES in call and call[PATCHES].dim() == 2


class GridEncoder(torch.nn.Module):
    """The vision tower on blocks of patches, attention over packed images in one piece."""

    def __init__(self, base: Any, tower: torch.nn.Module, windows: bool, blocked: list[str]):
        super().__init__()
        self.base, self._tower, self.blocked = base, (tower,), blocked
        self.longest = {"image_max_seqlen": 1} | ({"image_max_window_seqlen": 1} if windows else {})

    def forward(self, pixel_values: torch.Tensor, **made: torch.Tensor) -> dict[str, torch.Tensor]:
        from fairlead.generation.images import flat_features

        given = {name: value.flatten(0, 1) if name in self.blocked else value for name, value in made.items()}
        grid = torch.zeros(1, 3, dtype=torch.int64)

        def run() -> Any:
            base: Any = self.base
            return base.get_image_features(pixel_values.flatten(0, 1), grid, **given, **self.longest)

        with packed_attention(self._tower[0]):
            return flat_features(result_of(self._tower[0], run))


def packed(module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: Any = None,
           scaling: float | None = None, cu_seq_lens_q: Any = None, **_: Any) -> tuple[torch.Tensor, None]:  # fmt: skip
    """Patches attend to those of their own segment: a mask made from the boundaries."""
    places = torch.arange(query.shape[2])
    segment = (places[:, None] >= cu_seq_lens_q[None, 1:]).sum(-1)
    mask = (segment[:, None] == segment[None, :])[None, None]
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling)
    return out.transpose(1, 2), None


@contextlib.contextmanager
def packed_attention(tower: torch.nn.Module) -> Iterator[None]:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    before = [(config, config._attn_implementation) for config, _ in attention_configs(tower)]
    ALL_ATTENTION_FUNCTIONS[PACKED] = packed
    try:
        for config, _ in before:
            set_attention(config, PACKED)
        yield
    finally:
        for config, name in before:
            set_attention(config, name)
        del ALL_ATTENTION_FUNCTIONS[PACKED]


def grid_part(
    model: Any, tower: torch.nn.Module, call: dict[str, Any], outputs: list[str]
) -> tuple[PartPlan, dict[str, Any]]:
    """The image encoder, and what the runtime has to make for it."""
    rows = seen_helpers(model, tower, call)
    merge = model.config.vision_config.spatial_merge_size
    blocked = [f"image_{name}" for helper, _, _ in rows for name in helper.blocked]
    makes = [{"helper": h.maker, "settings": s, "names": [f"image_{name}" for name in h.gives]} for h, s, _ in rows]
    how = {"grid": GRID, "patches": PATCHES, "merge": merge, "blocked": blocked, "makes": makes}
    check(model, how, rows, call)
    windows = any(row["helper"] == "windows" for row in makes)
    module = GridEncoder(model.base_model, tower, windows, blocked).eval()
    inputs, shapes = made_up(how, call)
    return PartPlan("image_encoder", module, [inputs], outputs, dynamic_shapes=shapes, optional=PATCHES), how


def seen_helpers(
    model: Any, tower: torch.nn.Module, call: dict[str, Any]
) -> list[tuple[Helper, dict[str, Any], list[Any]]]:
    """The helpers that the encoder calls, their settings and results."""
    space = sys.modules[type(tower).__module__].__dict__
    found: list[tuple[Helper, dict[str, Any], list[Any]]] = []
    names = [n for n, f in space.items() if getattr(f, "__module__", "") == "transformers.vision_utils"]

    def watching(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(plain)
        def call_and_note(*args: Any, **kwargs: Any) -> Any:
            result = plain(*args, **kwargs)
            helper = HELPERS.get(name)
            if helper is None:
                raise Unsupported(
                    f"[export_for_generation] Expected an image encoder whose grid the Generator understands, got "
                    f"{type(tower).__name__}, which calls {name}. Export its parts with fairlead.export."
                )
            bound = inspect.signature(plain).bind(*args, **kwargs)
            bound.apply_defaults()
            given = bound.arguments
            if given.get("mode", "bilinear") != "bilinear" or given.get("padding", "border") != "border":
                raise Unsupported(
                    f"[export_for_generation] Expected positions that are interpolated bilinearly, got "
                    f"{given.get('mode')} in {type(tower).__name__}. Export its parts with fairlead.export."
                )
            results = [r for r in (result if isinstance(result, tuple) else (result,)) if isinstance(r, torch.Tensor)]
            found.append((helper, helper.settings(given), results))
            return result

        return call_and_note

    plain = {name: space[name] for name in names}
    try:
        for name, function in plain.items():
            space[name] = watching(name, function)
        with untouched(model):
            model.base_model.get_image_features(**copied(call), return_dict=True)
    finally:
        space.update(plain)
    return found


def check(model: Any, how: dict[str, Any], rows: list[Any], call: dict[str, Any]) -> None:
    """That the runtime makes what the model's own helpers made."""
    made = grid_inputs(how, {GRID: call[GRID].numpy(), PATCHES: call[PATCHES].numpy()})
    for helper, _, results in rows:
        for name, expected in zip(helper.gives, results, strict=True):
            got = made[f"image_{name}"].reshape(expected.shape)
            # Weights are of float32 arithmetic in another order of the same operations.
            if not np.allclose(got, expected.numpy(), rtol=0, atol=1e-5):
                raise Unsupported(
                    f"[export_for_generation] Expected the Generator to make {name} as {type(model).__name__} does, "
                    "but they differ. Export its parts with fairlead.export."
                )


def made_up(how: dict[str, Any], call: dict[str, Any]) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """A call of a few tokens in two segments, and its dims. Inputs of other sizes are cut from it or count on: an order
    of tokens that counts stays one of tokens that exist.
    """
    unit, patches = how["merge"] ** 2, call[PATCHES]
    rows = TOKENS * unit
    sizes = {"position_ids": 2, "interp_indices": 4, "interp_weights": 4}
    temporal = any(row["settings"].get("temporal") for row in how["makes"])
    patch = {0: "image_tokens"}
    inputs = {PATCHES: patches[torch.arange(rows) % len(patches)].reshape(TOKENS, unit, -1)}
    shapes: dict[str, Any] = {PATCHES: patch}
    side = next((r["settings"]["side"] for r in how["makes"] if r["helper"] == "interpolation"), 1)
    for row in how["makes"]:
        for name in row["names"]:
            kind = name.removeprefix("image_")
            if kind == "window_index":
                inputs[name], shapes[name] = torch.arange(TOKENS), patch
            elif kind in ("cu_seqlens", "cu_window_seqlens"):
                parts = 3 if kind == "cu_seqlens" else 5
                inputs[name] = torch.linspace(0, rows, parts).long()
                shapes[name] = {0: Dim.DYNAMIC}
            else:
                width = sizes[kind] + (temporal and kind == "position_ids")
                many = torch.arange(rows * width).reshape(TOKENS, unit, width)
                inputs[name] = torch.rand(TOKENS, unit, width) if kind == "interp_weights" else many * 7 % (side * side)
                if kind == "position_ids":
                    inputs[name] = many * 5 % 11
                shapes[name] = patch
    return inputs, shapes
