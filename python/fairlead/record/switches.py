"""Switches that are thrown while a model is recorded, and thrown back whatever happens.

1. torch.compiler's "am I being traced" flags, which Transformers asks before it looks at values (are all masks one?).
2. The checks in torch.nn.functional that hand a whole function to a function mode: with them off, the modes see the
   functions that are called inside, so that layer_norm within multi_head_attention_forward is seen too.
3. PyTorch's fused fast path for transformer encoders, which would hide the layer in one operator.
4. torch.compile, which torch.cond and its like start: under a mode it cannot, and what it would make is the same.
5. Patches registered for "observe" (fairlead/patches): loops over the experts that were hit go over every expert.
"""

from __future__ import annotations

import contextlib

import torch


@contextlib.contextmanager
def tracing_switches(flags: bool = True):
    undo = contextlib.ExitStack()
    with undo:
        for flag in ("_is_compiling_flag", "_is_exporting_flag"):
            if flags and hasattr(torch.compiler, flag):
                undo.callback(setattr, torch.compiler, flag, getattr(torch.compiler, flag))
                setattr(torch.compiler, flag, True)
        for module in (torch.nn.functional, torch.functional):
            for check in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
                if hasattr(module, check):
                    undo.callback(setattr, module, check, getattr(module, check))
                    setattr(module, check, _no_mode)
        undo.callback(torch.backends.mha.set_fastpath_enabled, torch.backends.mha.get_fastpath_enabled())
        torch.backends.mha.set_fastpath_enabled(False)
        undo.callback(setattr, torch, "compile", torch.compile)
        torch.compile = _uncompiled
        from fairlead.patches.apply import apply_patches  # which needs this package

        undo.enter_context(apply_patches("observe"))
        yield


def _uncompiled(model=None, **options):
    return model if model is not None else lambda function: function


def _no_mode(*args) -> bool:
    return False
