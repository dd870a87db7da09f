"""What the builders of several zoos share."""

from __future__ import annotations

from collections.abc import Callable

import torch


def of_shape(shape: tuple[int, ...], make: Callable[[], torch.nn.Module]) -> Callable[[], tuple]:
    """Builds a model and its example of one tensor, each time anew."""
    return lambda: (make(), (torch.randn(shape),))
