"""What a forward pass leaves on a model (cached tensors, counters, replaced buffers) is put back."""

from __future__ import annotations

import torch


class ModelState:
    """The attributes of every submodule as they were; `restore` puts back what changed."""

    def __init__(self, model: torch.nn.Module):
        self._saved = [
            (module, dict(module.__dict__), dict(module._buffers), dict(module._parameters)) for module in model.modules()
        ]

    def restore(self) -> None:
        for module, attributes, buffers, parameters in self._saved:
            _put_back(module.__dict__, attributes)
            _put_back(module._buffers, buffers)
            _put_back(module._parameters, parameters)


def _put_back(now: dict, before: dict) -> None:
    if len(now) == len(before) and all(now.get(k) is v for k, v in before.items()):
        return
    for key in [k for k in now if k not in before]:
        del now[key]
    for key, value in before.items():
        if now.get(key) is not value:
            now[key] = value
