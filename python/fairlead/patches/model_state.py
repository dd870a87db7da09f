"""What a forward pass leaves on a model (cached tensors, counters, replaced or written buffers) is put back, and said.

1. Attributes of every submodule, and what they hold: containers, and objects with attributes of their own (a cache,
   a namespace), to a few levels.
   A parameter that was given other memory (w.data = merged) gets its own again, a submodule that was put in the place
   of another (BigBird's attention, where a text is short) gives it back.
2. Buffers are copied, because a forward pass may write into them (running statistics, static caches). Of the parameters
   only those that nn.Embedding(max_norm=..) scales when it looks them up: the others are large, and a forward pass
   that writes them without autograd is unheard of.
"""

from __future__ import annotations

import contextlib
import types
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import torch

# Attributes that modules fill in place: self.seen.append(x), self.cache["mask"] = m; also their tables of hooks, which
# Transformers fills at the first call that records hidden states.
CONTAINERS = (list, dict, set, OrderedDict)
TABLES = ("_buffers", "_parameters", "_modules")
LEVELS = 4
_DATA: Any = torch._C.TensorBase.data  # as nobody watches it
CLOSED = (torch.Tensor, torch.nn.Module, type, types.ModuleType, types.FunctionType, types.MethodType)
# Attributes with which modules remember the last call: from a real call they would be taken for constants.
REMEMBERED = ("cached_rotary_positional_embedding", "cached_sequence_length")


class ModelState:
    """A model as it was; `restore` puts back what changed, `changes` names it."""

    def __init__(self, model: torch.nn.Module):
        self._saved = [
            (module, dict(module.__dict__), [dict(getattr(module, table)) for table in TABLES])
            for module in model.modules()
            if not isinstance(module, torch.jit.ScriptModule)  # its tables are fixed, and not Python's
        ]
        self._names = {id(module): name for name, module in model.named_modules()}
        # Most are empty tables of hooks: thousands, looked at after every run.
        self._empty: list[Any] = []
        self._containers: list[tuple[Any, Any]] = []
        self._paths: dict[int, str] = {}
        known: set[int] = set()
        for module, attributes, _ in self._saved:
            for name, value in attributes.items():
                if name not in TABLES:
                    self._keep(value, _path(self._names[id(module)], name), known, LEVELS)
        scaled = [
            m.weight for m in model.modules() if getattr(m, "max_norm", None) is not None and hasattr(m, "weight")
        ]
        self._written = {
            id(tensor): (tensor, tensor._version, tensor.detach().clone())
            for tensor in [*model.buffers(), *scaled]
            if isinstance(tensor, torch.Tensor) and not tensor.is_inference() and tensor.device.type != "meta"
        }

        self._memory = [
            (tensor, tensor.data_ptr(), tensor.detach())
            for tensor in model.parameters()
            if type(tensor) is torch.nn.Parameter and tensor.device.type == "cpu"
        ]

    def _keep(self, value: Any, path: str, known: set[int], levels: int) -> None:
        if id(value) in known or isinstance(value, CLOSED) or levels == 0:
            return
        if type(value) in CONTAINERS:
            known.add(id(value))
            if not value:
                self._empty.append(value)
            else:
                self._containers.append((value, type(value)(value)))
                items = value.items() if isinstance(value, dict) else enumerate(value)
                for key, item in () if isinstance(value, set) else items:
                    self._keep(item, f"{path}[{key!r}]", known, levels - 1)
            self._paths[id(value)] = path
        elif type(getattr(value, "__dict__", None)) is dict and not str(type(value).__module__).startswith("torch"):
            known.add(id(value))
            self._containers.append((value.__dict__, dict(value.__dict__)))
            self._paths[id(value.__dict__)] = path
            for name, item in value.__dict__.items():
                self._keep(item, f"{path}.{name}", known, levels - 1)

    def changes(self) -> list[str]:
        """The paths of attributes that are not as they were: self.n, self.encoder.seen. Buffers are not among them:
        what is written there is recorded."""
        found: list[str] = []
        for module, attributes, tables in self._saved:
            prefix = self._names[id(module)]
            for name in sorted(module.__dict__.keys() | attributes.keys(), key=str):
                if name in TABLES or name.startswith("_forward"):
                    continue
                if module.__dict__.get(name, found) is not attributes.get(name, found):
                    found.append(_path(prefix, name))
            modules = tables[TABLES.index("_modules")]
            for name in modules.keys() | module._modules.keys():
                if module._modules.get(name) is not modules.get(name):
                    found.append(_path(prefix, name))
        found += [self._paths[id(c)] for c in self._empty if c]
        for container, before in self._containers:
            if not _same(container, before):
                found.append(self._paths[id(container)])
        return list(dict.fromkeys(found))

    def restore(self) -> None:
        for module, attributes, tables in self._saved:
            _put_back(module.__dict__, attributes)
            for table, entries in zip(TABLES, tables, strict=True):
                now = module.__dict__[table]
                if entries or now:
                    _put_back(now, entries)
        for container in self._empty:
            if container:
                container.clear()
        for container, before in self._containers:
            if not _same(container, before):
                container.clear()
                container.extend(before) if isinstance(container, list) else container.update(before)
        for parameter, memory, own in self._memory:
            if parameter.data_ptr() != memory:
                _DATA.__set__(parameter, own)
        for key, (tensor, version, before) in self._written.items():
            if tensor._version != version:
                with torch.no_grad():
                    tensor.copy_(before)
                self._written[key] = (tensor, tensor._version, before)


def _path(module: str, name: str) -> str:
    return ".".join(part for part in ("self", module, name) if part)


def _same(now: Any, before: Any) -> bool:
    """By identity: elements may be tensors, which do not compare to one answer."""
    if len(now) != len(before):
        return False
    if isinstance(now, dict):
        return all(key in now and now[key] is value for key, value in before.items())
    if isinstance(now, set):
        return bool(now == before)
    return all(a is b for a, b in zip(now, before, strict=True))


def _put_back(now: dict[str, Any], before: dict[str, Any]) -> None:
    # The comparison of dicts looks at identity first: fast where nothing changed, which is nearly always.
    try:
        if now == before:
            return
    except Exception:  # tensors that differ do not compare to one answer
        pass
    for key in [k for k in now if k not in before]:
        del now[key]
    for key, value in before.items():
        if now.get(key) is not value:
            now[key] = value


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
