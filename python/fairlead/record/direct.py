"""Which functions of PyTorch are one operator, whatever the values: their calls need not go through the dispatch mode.

The core learns from a call that went through it (python/src/direct.cpp); what types alone cannot tell is asked here.
"""

from __future__ import annotations

from typing import Any

import torch

# Kernels that make other operators of one: always, or where the precision is chosen for the model.
OTHERS = (
    "CompositeImplicitAutograd",
    "CompositeImplicitAutogradNestedTensor",
    "AutocastCPU",
    "AutocastCUDA",
)


def one_operator(op: Any) -> bool:
    """Whether a call of this operator is always seen as this operator alone."""
    if not isinstance(op, torch._ops.OpOverload) or op.namespace != "aten":
        return False
    has: Any = torch._C._dispatch_has_kernel_for_dispatch_key
    return not any(has(op.name(), key) for key in OTHERS)


def set_direct(core: Any) -> None:
    core.set_direct(
        one_operator,
        torch._C._DisableTorchDispatch,
        torch._C._len_torch_dispatch_stack,
        torch._C._functorch.maybe_current_level,
        torch.nn.Parameter,
    )
