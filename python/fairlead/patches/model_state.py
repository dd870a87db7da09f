"""A model while it is exported: what a forward pass leaves on it is put back, its config is changed for a block."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from fairlead.patches.attributes import patch_attributes
from fairlead.record.state import ModelState

# Attributes with which modules remember the last call: from a real call they would be taken for constants.
REMEMBERED = ("cached_rotary_positional_embedding", "cached_sequence_length")


@contextlib.contextmanager
def reset_model_state(model: torch.nn.Module) -> Iterator[None]:
    """Inside the block nothing is remembered from the last call; afterwards the model is as it was.

    Attributes, buffers, lists and tables of every submodule are put back: an export leaves symbolic tensors in them,
    with which the next real call would fail.
    """
    state = ModelState(model)
    for module in model.modules():
        for name in REMEMBERED:
            if getattr(module, name, None) is not None:
                setattr(module, name, None)
    try:
        yield
    finally:
        state.restore()


@contextlib.contextmanager
def patch_model_config(model: Any, output_flags: Mapping[str, Any]) -> Iterator[None]:
    """Inside the block `model.config` has these flags. None and flags that the config does not know are left alone."""
    config = getattr(model, "config", None)
    given = {name: value for name, value in output_flags.items() if value is not None and hasattr(config, name)}
    with patch_attributes([(config, name, lambda original, v=value: v) for name, value in given.items()]):
        yield
