"""Torch's dtypes and the names that the core has for them."""

from __future__ import annotations

import torch

from fairlead.base.element_types import CODES

# Those that the installed torch has.
DTYPES = {getattr(torch, name): name for name in CODES if isinstance(getattr(torch, name, None), torch.dtype)}
BY_NAME = {name: dtype for dtype, name in DTYPES.items()}
