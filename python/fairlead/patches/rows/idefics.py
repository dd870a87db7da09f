"""Idefics2, Idefics3 and SmolVLM: images of different sizes, and batches with different numbers of images."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from fairlead.patches.table import innermost, methods, names_in, register_patch


def _embeds_one_by_one(cls: Any, name: str, function: Any) -> bool:
    wanted = {"p_attn_mask", "patch_attention_mask", "num_patches_per_side", "bucketize", "position_embedding"}
    return name == "forward" and cls.__name__.startswith(("Idefics", "SmolVLM")) and wanted <= names_in(function)


def _buckets(side: int, most: int, by_index: bool, dtype: torch.dtype) -> list[list[int]]:
    """Row n: the positions of n patches along an axis, as the model itself computes them for an image of that size."""
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        boundaries = torch.arange(1 / side, 1.0, 1 / side)
        rows = [[0] * most]
        for count in range(1, most + 1):
            number = torch.tensor(count)
            if by_index:
                places = torch.arange(count, dtype=dtype) / number * (1 - 1e-6)
            else:
                places = torch.arange(0, 1 - 1e-6, 1 / number)  # type: ignore[call-overload]  # as the model has it
            row = torch.bucketize(places, boundaries, right=True).tolist()
            rows.append((row + [0] * most)[:most])
        return rows


@register_patch(
    "dynamo",
    lambda: methods(_embeds_one_by_one),
    name="patches_of_all_images",
    problem="Positions are made image by image, as many as a value says: `for batch_idx, p_attn_mask in "
    "enumerate(patch_attention_mask)`: GuardOnDataDependentSymNode: Could not guard on data-dependent expression "
    "Eq(u0, 0).",
    remedy="Positions along an axis depend on a number of patches alone: they are looked up in a table that the "
    "model's own formula fills.",
    versions="up to 4.57",
    looked_for="vision embeddings that loop over patch_attention_mask",
)
def patches_of_all_images(original: Any) -> Any:
    by_index = "h_indices" in names_in(original)

    @functools.wraps(original)
    def forward(self: Any, pixel_values: Any, patch_attention_mask: Any) -> Any:
        side = self.num_patches_per_side
        embeddings = self.patch_embedding(pixel_values).flatten(2).transpose(1, 2)
        batch, height, width = patch_attention_mask.shape
        most = max([side, *(size for size in (height, width) if isinstance(size, int))])
        table = torch.tensor(_buckets(side, most, by_index, pixel_values.dtype), device=pixel_values.device)
        rows = table[patch_attention_mask[:, :, 0].sum(dim=1)][:, :height]
        columns = table[patch_attention_mask[:, 0, :].sum(dim=1)][:, :width]
        positions = rows[:, :, None] * side + columns[:, None, :]
        positions = torch.where(patch_attention_mask, positions, 0).reshape(batch, height * width)
        return embeddings + self.position_embedding(positions)

    return forward


class SomePadded(TorchFunctionMode):
    """`torch.any` says yes."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.any and args[0].dtype == torch.bool and len(args) == 1 and not kwargs:
            return torch.tensor(True)
        return func(*args, **(kwargs or {}))


def _asks_for_padding(cls: Any, name: str, function: Any) -> bool:
    names = names_in(innermost(function))
    return name == "forward" and {"any", "patch_attention_mask", "_prepare_4d_attention_mask"} <= names


@register_patch(
    "dynamo",
    lambda: methods(_asks_for_padding),
    name="padding_is_masked",
    problem="Whether any patch is padding is read: `if not torch.any(~patch_attention_mask)`: "
    "GuardOnDataDependentSymNode: Could not guard on data-dependent expression Eq(u1, 1).",
    remedy="The mask is always made; without padding it adds zeros.",
    versions="up to 4.57",
    looked_for="vision transformers that make a mask from patch_attention_mask",
    tolerance=1e-6,
)
def padding_is_masked(original: Any) -> Any:
    @functools.wraps(original)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        with SomePadded():
            return original(self, *args, **kwargs)

    return forward


class Counts:
    """Stands for the numbers of images of the rows, which nobody needs to know."""

    def sum(self, dim: Any) -> Any:
        return self

    def tolist(self) -> Any:
        return self


class NotSplit(TorchFunctionMode):
    """The flags of real images, seen by rows and counted, are Counts; a split by Counts gives the tensor whole.

    `tolist` itself cannot be caught: it is a method of the tensors of a trace, which goes through them one by one.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.Tensor.view and args[0].dtype == torch.bool and args[0].dim() == 1:
            return Counts()
        if func is torch.Tensor.split and len(args) > 1 and isinstance(args[1], Counts):
            return (args[0],)
        return func(*args, **(kwargs or {}))


def _splits_images(cls: Any, name: str, function: Any) -> bool:
    names = names_in(innermost(function))
    return name == "get_image_features" and {"num_real_images_per_batch", "split", "tolist"} <= names


@register_patch(
    "dynamo",
    lambda: methods(_splits_images),
    name="images_in_one_piece",
    problem="Features are split by the number of images of each row, `split(num_real_images_per_batch.tolist())`: the "
    "batch becomes a constant (AssertionError: Guard failed: pixel_values.size()[0] == 2).",
    remedy="While exporting they stay in one piece, as the model joins them again at once.",
    versions="later than 5.0 (there in 5.22)",
    looked_for="get_image_features that splits by num_real_images_per_batch",
)
def images_in_one_piece(original: Any) -> Any:
    @functools.wraps(original)
    def get_image_features(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not torch.compiler.is_compiling():  # who calls it from outside gets the pieces
            return original(self, *args, **kwargs)
        with NotSplit():
            return original(self, *args, **kwargs)

    return get_image_features
