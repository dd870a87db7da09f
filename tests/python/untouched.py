"""What an export must leave as it was: files, hooks, modes, switches of torch, the model itself."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

import pytest
import torch
from torch.nn.modules import module as modules
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

import fairlead

HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_forward_hooks_always_called")
CHECKS = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


class Fn(torch.nn.Module):
    """A function as a module in eval mode."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn
        self.eval()

    def forward(self, x, *more):
        return self.fn(x, *more)


def files(folder: str | os.PathLike) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b"" for p in sorted(Path(folder).rglob("*"))}


def names(folder: str | os.PathLike) -> list[str]:
    """What lies in a folder; the hash in the name of a data file as `*`."""
    return [re.sub(r"\.[0-9a-f]{16}\.data$", ".*.data", name) for name in files(folder)]


def data_file(model: str | os.PathLike) -> Path:
    """The one data file beside a model."""
    (found,) = Path(model).parent.glob(f"{Path(model).name}.????????????????.data")
    return found


def torch_state() -> dict:
    state: dict = {name: dict(getattr(modules, name)) for name in HOOKS if hasattr(modules, name)}
    state["function modes"] = list(_get_current_function_mode_stack())
    state["dispatch modes"] = list(_get_current_dispatch_mode_stack())
    state["grad"] = torch.is_grad_enabled()
    state["compiling"] = torch.compiler.is_compiling(), torch.compiler.is_exporting()
    state["fast path"] = torch.backends.mha.get_fastpath_enabled()
    for owner in (torch.nn.functional, torch.functional):
        state |= {f"{owner.__name__}.{name}": getattr(owner, name, None) for name in CHECKS}
    return state


def model_state(model) -> dict:
    if not isinstance(model, torch.nn.Module):
        return {}
    state = {}
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            kept = list(value) if isinstance(value, (list, dict, set)) else id(value)
            state[f"{path}.{name}"] = kept
        state[f"{path} training"] = module.training
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        state[f"tensor {name}"] = (
            id(tensor),
            tensor.requires_grad,
            tensor.detach().tolist() if not tensor.is_meta else None,
        )
    return state


@contextlib.contextmanager
def untouched(model=None, folder: str | os.PathLike | None = None):
    """Nothing changes in torch, in the model, and under the folder."""
    before = torch_state(), model_state(model), files(folder) if folder else None
    try:
        yield
    finally:
        after = torch_state(), model_state(model), files(folder) if folder else None
        assert after[0] == before[0]
        assert after[1] == before[1]
        assert after[2] == before[2]


def refusal(error: type[BaseException], model, inputs, folder, **options) -> str:
    """The text of the error that this export raises; nothing else may have happened."""
    path = options.pop("path", Path(folder) / "model.onnx")
    with untouched(model, folder), pytest.raises(error) as caught:
        fairlead.export(model, inputs, path, **options)
    text = str(caught.value)
    assert "\n" not in text, "an error is one line"
    return text


def line_of(fn, fragment: str) -> str:
    """`file:line` of the first line of a function that holds the fragment."""
    code = fn.__code__
    with open(code.co_filename) as source:
        for number, line in enumerate(source, 1):
            if number >= code.co_firstlineno and fragment in line:
                return f"{code.co_filename}:{number}"
    raise AssertionError(f"{fragment!r} is not in {fn}")
