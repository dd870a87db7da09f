"""A model that is elsewhere is recorded on the CPU: its inputs are taken there, and so is what it makes elsewhere."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from fairlead.tree.calls import too_deep
from fairlead.tree.leaves import leaf_tensors, replace_leaf_tensors

HERE = torch.device("cpu")


def moved(value: Any, names_devices: bool = False) -> Any:
    """A device, or in a call that takes one by position its name, as the one that there is here."""
    if names_devices and isinstance(value, int):  # the number of an accelerator
        return HERE
    if names_devices and isinstance(value, str):
        value = torch.device(value)
    elsewhere = isinstance(value, torch.device) and value.type not in ("cpu", "meta")
    return HERE if elsewhere else value


def made_here() -> contextlib.AbstractContextManager[Any]:
    """Whatever torch.set_default_device says."""
    return contextlib.nullcontext() if torch.get_default_device().type == "cpu" else HERE


class OneDevice(TorchFunctionMode):
    """`torch.arange(n, device="cuda")`, `x.to(self.device)` and `x.cuda()` in the code of a model whose tensors stand
    on the CPU meanwhile."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.Tensor.cuda:
            return args[0]
        if kwargs and kwargs.get("device") is not None:
            kwargs = kwargs | {"device": moved(kwargs["device"], names_devices=True)}
        if func is torch.Tensor.to and len(args) > 1 and isinstance(args[1], (str, torch.device)):
            args = (args[0], moved(args[1], names_devices=True), *args[2:])
        elif any(isinstance(each, torch.device) for each in args):
            args = tuple(map(moved, args))
        return func(*args, **kwargs) if kwargs else func(*args)


def here(inputs: Any) -> Any:
    """Inputs on the CPU; those without values are refused where they are looked at."""
    if isinstance(inputs, torch.Tensor):
        return inputs if inputs.is_meta else inputs.cpu()
    if callable(getattr(inputs, "calls", None)):
        return Observed(inputs)
    if isinstance(inputs, list):
        return [here(call) for call in inputs]
    if hasattr(inputs, "keys") and hasattr(inputs, "__getitem__"):  # dict, BatchEncoding, BatchFeature
        inputs = {key: inputs[key] for key in inputs.keys()}  # noqa: SIM118
    try:
        found = leaf_tensors(inputs) if isinstance(inputs, (tuple, dict)) else []
    except RecursionError:
        raise too_deep() from None
    if all(t.device.type in ("cpu", "meta") for t in found):
        return inputs
    return replace_leaf_tensors(inputs, [t if t.is_meta else t.cpu() for t in found])


class Observed:
    """What an observer saw, on the CPU."""

    def __init__(self, observer: Any):
        self.observer = observer

    def calls(self, *args: Any, **kwargs: Any) -> Any:
        return here(self.observer.calls(*args, **kwargs))

    def example(self) -> Any:
        return here(self.observer.example())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.observer, name)
