"""What a forward pass leaves on a model (cached tensors, counters, replaced or written buffers) is put back."""

from __future__ import annotations

import contextlib
from collections import OrderedDict

import torch

# Attributes that modules fill in place: self.seen.append(x), self.cache["mask"] = m; also their tables of hooks, which
# Transformers fills at the first call that records hidden states.
CONTAINERS = (list, dict, set, OrderedDict)


class ModelState:
    """The attributes of every submodule as they were; `restore` puts back what changed.

    Buffers are copied, because a forward pass may write into them (running statistics, static caches). Parameters are
    not: they are large, and a forward pass that writes them without autograd is unheard of.
    """

    def __init__(self, model: torch.nn.Module):
        self._saved = [
            (module, dict(module.__dict__), dict(module._buffers), dict(module._parameters))
            for module in model.modules()
            if not isinstance(module, torch.jit.ScriptModule)  # its tables are fixed, and not Python's
        ]
        containers = [
            value
            for _, attributes, _, _ in self._saved
            for name, value in attributes.items()
            if type(value) in CONTAINERS and name not in ("_buffers", "_parameters", "_modules")
        ]
        # Most are empty tables of hooks: thousands, looked at after every run.
        self._empty = [value for value in containers if not value]
        self._containers = [(value, type(value)(value)) for value in containers if value]
        self._written = {
            id(buffer): (buffer, buffer._version, buffer.detach().clone())
            for buffer in model.buffers()
            if not buffer.is_inference() and buffer.device.type != "meta"
        }

    def restore(self) -> None:
        for module, attributes, buffers, parameters in self._saved:
            _put_back(module.__dict__, attributes)
            _put_back(module._buffers, buffers)
            _put_back(module._parameters, parameters)
        for container in self._empty:
            if container:
                container.clear()
        for container, before in self._containers:
            if not _same(container, before):
                container.clear()
                container.extend(before) if isinstance(container, list) else container.update(before)
        for key, (buffer, version, before) in self._written.items():
            if buffer._version != version:
                with torch.no_grad():
                    buffer.copy_(before)
                self._written[key] = (buffer, buffer._version, before)


def _same(now, before) -> bool:
    """By identity: elements may be tensors, which do not compare to one answer."""
    if len(now) != len(before):
        return False
    if isinstance(now, dict):
        return all(key in now and now[key] is value for key, value in before.items())
    if isinstance(now, set):
        return now == before
    return all(a is b for a, b in zip(now, before, strict=True))


def _put_back(now: dict, before: dict) -> None:
    # The comparison of dicts looks at identity first: fast where nothing changed, which is nearly always.
    with contextlib.suppress(Exception):  # tensors that differ do not compare to one answer
        if now == before:
            return
    for key in [k for k in now if k not in before]:
        del now[key]
    for key, value in before.items():
        if now.get(key) is not value:
            now[key] = value
