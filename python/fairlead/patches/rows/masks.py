"""Masks that Transformers makes by mapping a function over every position."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import overrides

from fairlead.patches.table import register_patch


def _names() -> list[str]:
    """The mapping function of this release: 4.53 to 4.57 have one, 5.0 the other, 4.51 makes its masks without."""
    try:
        from transformers import masking_utils
    except ImportError:
        return []
    known = ("_vmap_expansion_sdpa", "_vmap_for_bhqkv")
    return [f"transformers.masking_utils.{name}" for name in known if hasattr(masking_utils, name)]


@contextlib.contextmanager
def _plain_indexing() -> Iterator[None]:
    """Outside TransformGetItemToIndex, which vmap needs: it hides an index in a function that cannot be saved."""
    mode = overrides._get_current_function_mode()
    if type(mode).__name__ != "TransformGetItemToIndex":
        yield
        return
    overrides._pop_mode()
    try:
        yield
    finally:
        overrides._push_mode(mode)


@register_patch(
    "dynamo",
    _names,
    name="masks_by_broadcasting",
    problem="Masks are made with torch.vmap over batch, head, query and key. The program then holds calls that only "
    "PyTorch itself can run (`_vmap_increment_nesting`), and torch.export.save fails: SerializeError.",
    remedy="The function is called once with indices that broadcast. One that does not work on indices, which its "
    "result's shape shows, is mapped as before.",
    versions="4.53 and later",
    looked_for="transformers.masking_utils._vmap_expansion_sdpa, _vmap_for_bhqkv",
)
def masks_by_broadcasting(original: Any) -> Any:
    def expansion(mask_function: Any, *args: Any, **kwargs: Any) -> Any:
        mapped = original(mask_function, *args, **kwargs)

        def broadcast(*indices: Any) -> Any:
            present = [index for index in indices if index is not None]
            shaped = iter(
                index.reshape([-1 if at == place else 1 for at in range(len(present))])
                for place, index in enumerate(present)
            )
            try:
                with _plain_indexing():
                    mask = mask_function(*(None if index is None else next(shaped) for index in indices))
            except (RuntimeError, IndexError):
                return mapped(*indices)
            if not isinstance(mask, torch.Tensor) or mask.dim() > len(present):
                return mapped(*indices)
            return mask.expand([index.shape[0] for index in present])

        return broadcast

    return expansion
