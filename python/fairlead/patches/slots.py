"""One replaced attribute: what stood there, the replacements on top of it in order, and how each comes off again.

Rules:
1. The first replacement keeps what `vars(owner)` held, the very object; when the last one comes off it is put back,
   or the attribute is deleted where it had only been inherited.
2. Replacements stack: each is made from the one below it, the first from the original. One that comes off below
   others is cut out, and those above it are made again.
3. A static or class method is handed over as its function, and its replacement is wrapped alike.
4. Everything happens under one lock; replacements are seen by every thread of the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

ABSENT = object()
lock = threading.RLock()


class Layer:
    """A replacement in its place: the factory that made it, and how many blocks hold it."""

    def __init__(self, key: Any, factory: Callable[[Any], Any]):
        self.key = key
        self.factory = factory
        self.value: Any = None
        self.holders = 1


class Slot:
    """The attribute `name` of `owner`."""

    def __init__(self, owner: Any, name: str):
        self.owner = owner
        self.name = name
        self.raw = vars(owner).get(name, ABSENT) if hasattr(owner, "__dict__") else getattr(owner, name)
        wrapped = isinstance(self.raw, (staticmethod, classmethod))
        self.original = self.raw.__func__ if wrapped else getattr(owner, name)
        self.kind = type(self.raw) if wrapped else None
        self.layers: list[Layer] = []

    def find(self, key: Any) -> Layer | None:
        return next((layer for layer in self.layers if layer.key == key), None)

    def add(self, key: Any, factory: Callable[[Any], Any]) -> Layer:
        layer = Layer(key, factory)
        layer.value = factory(self.layers[-1].value if self.layers else self.original)
        self.layers.append(layer)
        self._set()
        return layer

    def remove(self, layer: Layer) -> None:
        place = self.layers.index(layer)
        del self.layers[place]
        for position in range(place, len(self.layers)):
            below = self.layers[position - 1].value if position else self.original
            self.layers[position].value = self.layers[position].factory(below)
        self._set()

    def _set(self) -> None:
        if self.layers:
            value = self.layers[-1].value
            setattr(self.owner, self.name, self.kind(value) if self.kind else value)
        elif self.raw is ABSENT:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.raw)


_slots: dict[tuple[int, str], Slot] = {}


def put_on(owner: Any, name: str, key: Any, factory: Callable[[Any], Any]) -> tuple[Slot, Layer]:
    """Replaces an attribute, or counts one more holder where the same key is already in place."""
    with lock:
        slot = _slots.get((id(owner), name))
        if slot is None:
            slot = Slot(owner, name)
        layer = slot.find(key)
        if layer is None:
            layer = slot.add(key, factory)
        else:
            layer.holders += 1
        _slots[id(owner), name] = slot
        return slot, layer


def take_off(slot: Slot, layer: Layer) -> None:
    with lock:
        layer.holders -= 1
        if layer.holders == 0:
            slot.remove(layer)
            if not slot.layers:
                del _slots[id(slot.owner), slot.name]


def original_of(owner: Any, name: str) -> Any:
    """What stands at an attribute when nothing is replaced: features are looked for there."""
    with lock:
        slot = _slots.get((id(owner), name))
        return slot.original if slot else Slot(owner, name).original
