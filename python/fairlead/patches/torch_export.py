"""The block for those who call torch.export.export or torch.onnx.export(dynamo=True) themselves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from fairlead.patches.apply import Applied, apply_patches
from fairlead.patches.model_state import reset_model_state
from fairlead.tree.caches import register_flattening_functions


@contextlib.contextmanager
def torch_export_patches(
    patch_transformers: Any = True,
    patch_torch: bool = True,
    *,
    model: torch.nn.Module | None = None,
    verbose: int = 0,
) -> Iterator[Applied]:
    """Inside the block models of Transformers can be exported: caches are tree nodes, and the patches are in place.

    >>> with torch_export_patches(patch_transformers=True) as applied:
    ...     program = torch.export.export(model, (), inputs, dynamic_shapes=shapes)
    >>> print(applied.report())

    Make the model before the block: patches are looked for in the modeling files that are loaded. With `model=`, what
    the export leaves on it is put back. `verbose=1` prints the report.
    """
    with contextlib.ExitStack() as undo:
        undo.enter_context(register_flattening_functions(patch_transformers=patch_transformers))
        from fairlead.tree.caches.register import NOTHING

        choice = patch_transformers.lower() if isinstance(patch_transformers, str) else patch_transformers
        wanted = ({"transformers"} if choice not in NOTHING else set()) | ({"torch"} if patch_torch else set())
        if model is not None:
            undo.enter_context(reset_model_state(model))
        applied = undo.enter_context(
            apply_patches("dynamo", select=lambda patch: patch.library in wanted or not patch.ours)
        )
        if verbose:
            print(applied.report())
        yield applied
