"""The whole state of a cache as tensors, their names, and a JSON-like context from which the cache is
rebuilt.

Rules, for every cache class and every Transformers release:
1. A cache is its `__dict__`. Tensors are leaves, everything else is context; nothing is dropped.
2. Order of leaves: layer by layer, and in a layer keys, values, then other tensors in the order of its
   attributes.
3. A number, dtype or device that repeats what the tensors say (batch_size, num_heads, cumulative_length
   while the window
   is not full, dtype ...) is written as "derived". It follows the tensors when they are replaced by others
   of another
   size, and two caches that differ only in sizes have equal contexts, as torch.export needs.
4. Rebuilding calls no constructor: their signatures changed with almost every release, their attributes much
   less.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

import torch

from fairlead.tree.caches.kinds import Kind, cache_bases, kind_of, layer_bases, named_like_a_cache

# Attribute -> name in leaf paths; other attributes keep their name without leading underscores.
LEAF_NAMES = {"keys": "key", "values": "value", "key_cache": "key", "value_cache": "value"}
FIRST = ("keys", "values", "key_cache", "value_cache")

# Attribute -> (tensor it may repeat, axis). Only used where the value agrees when the cache is taken apart.
REPEATS = {
    "batch_size": ("keys", 0),
    "max_batch_size": ("keys", 0),
    "num_heads": ("keys", 1),
    "head_dim": ("keys", -1),
    "k_head_dim": ("keys", -1),
    "v_head_dim": ("values", -1),
    "cumulative_length": ("keys", -2),
    "_seen_tokens": ("key_cache", -2),
}
# Tensors that say which layer is of which kind: settings, not state.
SETTINGS = ("is_sliding",)
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


class CacheContext:
    """What a cache is besides its tensors. `data` is JSON-like; `opaque` holds objects kept by reference (a
    config).

    `classes` holds the classes by their path: one that is defined inside a function cannot be imported by
    its path.
    """

    __slots__ = ("_text", "classes", "data", "opaque")

    def __init__(self, data: Any, opaque: list[Any] | None = None, classes: dict[str, type] | None = None):
        self.data = data
        self.opaque = opaque or []
        self.classes = classes or {}
        self._text: str | None = None

    def text(self) -> str:
        if self._text is None:
            self._text = json.dumps(self.data, sort_keys=True)
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CacheContext) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.text())

    def __repr__(self) -> str:
        return f"CacheContext({_short(self.data)})"


def _short(data: Any) -> str:
    if isinstance(data, dict) and "object" in data:
        layers = data["state"].get("layers")
        inner = f", {len(layers['list'])} layers" if isinstance(layers, dict) and "list" in layers else ""
        return str(data["object"]).rpartition(":")[2] + inner
    return "..."


def class_at(path: str) -> type:
    """class_at("transformers.cache_utils:DynamicCache") is that class.

    The path may come from a file: only modules of Transformers and PyTorch are imported for it, and only caches are
    taken from others that the program has imported itself.
    """
    module, _, name = path.partition(":")
    if "<locals>" in name:
        raise TypeError(f"[class_at] Expected a class that can be imported, got {path} (defined inside a function).")
    known = module.partition(".")[0] in ("transformers", "torch", "collections", "builtins")
    found: Any = importlib.import_module(module) if known else sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type) or found.__module__ != module:
        raise TypeError(f"[class_at] Expected a class of a cache, got {path}. Import the module that has it first.")
    if not known and not issubclass(found, (*cache_bases(), *layer_bases())) and not named_like_a_cache(found):
        raise TypeError(f"[class_at] Expected a class of a cache, got {path}, which is none.")
    return found


def container_at(path: str, base: tuple[type, ...]) -> type:
    """A class that is called with items: a container, whatever else a file may name."""
    found = class_at(path)
    if not issubclass(found, base):
        raise TypeError(f"[class_at] Expected a container, got {path}, which is none.")
    return found


class Encoder:
    """Takes one cache apart. After `run`: names, leaves, opaque, and the returned context data."""

    def __init__(self, with_context: bool = True):
        self.names: list[str] = []
        self.leaves: list[Any] = []
        self.opaque: list[Any] = []
        self.classes: dict[str, type] = {}
        self.with_context = with_context
        self._objects: dict[int, int] = {}

    def run(self, cache: Any, prefix: str = "") -> Any:
        kind = kind_of(cache)
        if kind is Kind.LAYERS:
            return self._layered(cache, prefix)
        if kind is Kind.LISTS:
            return self._listed(cache, prefix)
        if kind is Kind.PAIR:
            return self._pair(cache, prefix)
        return self._object(cache, prefix)

    def _class(self, cls: type) -> str:
        path = f"{cls.__module__}:{cls.__qualname__}"
        self.classes[path] = cls
        return path

    # Each of the following returns the context of one object and appends its leaves.

    def _pair(self, cache: Any, prefix: str) -> Any:
        state: dict[str, Any] = {}
        for name, value in vars(cache).items():
            if name == "self_attention_cache":
                state[name] = self.run(value, f"{prefix}decoder.")
            elif name == "cross_attention_cache":
                state[name] = self.run(value, f"{prefix}encoder.")
            else:
                state[name] = self._value(value, prefix + name)
        return {"object": self._class(type(cache)), "state": state}

    def _layered(self, cache: Any, prefix: str) -> Any:
        layers = [self._object(layer, f"{prefix}{index}.") for index, layer in enumerate(cache.layers)]
        if not self.with_context and len(cache.__dict__) <= 3:
            return None
        state = {
            name: {"list": layers} if name == "layers" else self._value(value, prefix + name.lstrip("_"))
            for name, value in cache.__dict__.items()
        }
        return {"object": self._class(type(cache)), "state": state}

    def _listed(self, cache: Any, prefix: str) -> Any:
        attributes = vars(cache)
        per_layer = {name: value for name, value in _ordered(attributes) if _is_per_layer(value)}
        # Interleaved by layer: a list of keys and a list of values give key0, value0, key1, value1.
        collected: dict[str, list[Any]] = {name: [] for name in per_layer}
        indices: dict[int, None] = {}
        for value in per_layer.values():
            indices.update(dict.fromkeys(value if isinstance(value, dict) else range(len(value))))
        for index in sorted(indices):
            for name, value in per_layer.items():
                if (index in value) if isinstance(value, dict) else (index < len(value)):
                    path = f"{prefix}{index}.{LEAF_NAMES.get(name) or name.lstrip('_')}"
                    collected[name].append((index, self._value(value[index], path)))
        state: dict[str, Any] = {}
        for name, value in attributes.items():
            if name in SETTINGS and isinstance(value, torch.Tensor):
                state[name] = {"setting": value.tolist(), "as": str(value.dtype).removeprefix("torch.")}
            elif name not in per_layer:
                derived = _derived(name, value, attributes)
                state[name] = derived or self._value(value, prefix + name.lstrip("_"))
            elif isinstance(value, dict):
                state[name] = {"dict": [[index, item] for index, item in collected[name]]}
            else:
                state[name] = {"list": [item for _, item in collected[name]]}
        return {"object": self._class(type(cache)), "state": state}

    def _object(self, obj: Any, prefix: str) -> Any:
        known = self._objects.get(id(obj))
        if known is not None:  # the same layer object twice stays one object, and its tensors are listed once
            return {"ref": known}
        self._objects[id(obj)] = len(self._objects)
        attributes = obj.__dict__
        state: dict[str, Any] = {}
        for name in FIRST:
            value = attributes.get(name)
            if isinstance(value, torch.Tensor):
                state[name] = {"tensor": len(self.leaves)}
                self.leaves.append(value)
                self.names.append(prefix + LEAF_NAMES[name])
        with_context = self.with_context
        for name, value in attributes.items():
            if name in state:
                continue
            if value is None or value is True or value is False:
                state[name] = value
            elif name == "_sliding_window_tensor":
                # A constant of the layer, not a state: an input for it would be one that no caller can know.
                state[name] = {"window": str(value.dtype).removeprefix("torch.")}
            elif with_context or isinstance(value, (torch.Tensor, dict, list, tuple)):
                derived = _derived(name, value, attributes) if with_context else None
                state[name] = derived or self._value(value, prefix + name.lstrip("_"))
        return {"object": self._class(type(obj)), "state": state, "id": len(self._objects) - 1}

    def _value(self, value: Any, path: str) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, torch.Tensor):
            self.leaves.append(value)
            self.names.append(path)
            return {"tensor": len(self.leaves) - 1}
        if isinstance(value, (list, tuple, set, frozenset)):
            return self._sequence(value, path)
        if isinstance(value, dict):
            # One state needs no number in its name: 0.conv_states, and 0.conv_states.1 only where there are
            # several.
            alone = len(value) == 1
            items = [[key, self._value(item, path if alone else f"{path}.{key}")] for key, item in value.items()]
            return {"dict": items} if type(value) is dict else {"dict": items, "class": self._class(type(value))}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, type):
            return {"class": self._class(value)}
        if isinstance(value, SYMBOLIC):
            constant = _constant(value)
            if constant is not None:
                return constant
            self.leaves.append(value)
            self.names.append(path)
            return {"tensor": len(self.leaves) - 1}
        if kind_of(value) is not Kind.NOT:
            return self.run(value, f"{path}.")
        self.opaque.append(value)
        return {"opaque": len(self.opaque) - 1}

    def _sequence(self, value: Any, path: str) -> Any:
        items = [self._value(item, f"{path}.{index}") for index, item in enumerate(value)]
        if isinstance(value, torch.Size):
            return {"size": items}
        kind = next(base for base in (list, tuple, set, frozenset) if isinstance(value, base))
        plain = type(value) is kind
        return {kind.__name__: items} if plain else {kind.__name__: items, "class": self._class(type(value))}


def _ordered(attributes: dict[str, Any]) -> list[tuple[str, Any]]:
    first = [(name, attributes[name]) for name in FIRST if name in attributes]
    return first + [(name, value) for name, value in attributes.items() if name not in FIRST]


def _is_per_layer(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_holds_tensor, value))
    if isinstance(value, dict):
        return bool(value) and all(isinstance(k, int) for k in value) and any(map(_holds_tensor, value.values()))
    return False


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_holds_tensor, value))
    if isinstance(value, dict):
        return any(map(_holds_tensor, value.values()))
    return isinstance(value, torch.Tensor)


def _constant(value: Any) -> Any:
    """The plain number of a symbol that has only one value; None for one that can vary."""
    expression = getattr(value.node, "expr", None)
    if expression is not None and getattr(expression, "is_number", False):
        return bool(expression) if isinstance(value, torch.SymBool) else int(expression)
    return None


def _tensor_of(attributes: dict[str, Any], source: str) -> torch.Tensor | None:
    value = attributes.get(source)
    if value is None:  # list-based caches keep the same attribute names for the whole cache
        value = attributes.get({"keys": "key_cache", "values": "value_cache"}.get(source, ""))
    if isinstance(value, list):
        value = next((item for item in value if isinstance(item, torch.Tensor) and item.dim() > 1), None)
    return value if isinstance(value, torch.Tensor) else None


def _derived(name: str, value: Any, attributes: dict[str, Any]) -> Any:
    """{"derived": ...} where the attribute says the same as a tensor beside it, else None (rule 3)."""
    if name in ("dtype", "device", "_dtype"):
        keys = _tensor_of(attributes, "keys")
        if keys is None:
            return None
        what = "device" if name == "device" else "dtype"
        return {"derived": ["keys", what]} if getattr(keys, what) == value else None
    rule = REPEATS.get(name)
    if rule is None or isinstance(value, (bool, torch.Tensor)):
        return None
    tensor = _tensor_of(attributes, rule[0])
    if tensor is None or tensor.dim() < 3 or not isinstance(value, (int, torch.SymInt)):
        return None
    return {"derived": list(rule)} if _same(value, tensor.shape[rule[1]]) else None


def remember_sizes(cache: Any, size_of: Callable[[torch.Tensor, int], int | None]) -> None:
    """Numbers of a cache that repeat sizes of its tensors become what `size_of` gives for them: a size that remembers
    where it comes from, so that it is not taken for a number of its own."""
    attributes = getattr(cache, "__dict__", {})
    for name, value in list(attributes.items()):
        if name in REPEATS and isinstance(_derived(name, value, attributes), dict):
            tensor = _tensor_of(attributes, REPEATS[name][0])
            size = None if tensor is None else size_of(tensor, REPEATS[name][1] % tensor.dim())
            attributes[name] = value if size is None else size
        for inner in value if isinstance(value, list) else [value]:
            if kind_of(inner) is not Kind.NOT:
                remember_sizes(inner, size_of)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, torch.SymInt) or isinstance(right, torch.SymInt):
        # A plain == would put a guard into the program that is being exported.
        from torch.fx.experimental.symbolic_shapes import statically_known_true

        return statically_known_true(left == right)
    return bool(left.real == right.real)  # the numbers without their memory: this is not a question of the model


class Decoder:
    """Builds a cache from a context and tensors, the inverse of Encoder."""

    def __init__(self, leaves: list[Any], context: CacheContext):
        self.leaves = leaves
        self.opaque = context.opaque
        self.classes = context.classes
        self._objects: dict[int, Any] = {}

    def run(self, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        for tag, build in _BUILDERS.items():
            if tag in data:
                return build(self, data)
        raise ValueError(f"[caches] Expected a cache context, got keys {sorted(data)}.")

    def _class_at(self, path: str) -> Any:
        return self.classes.get(path) or class_at(path)

    def _container_at(self, path: str, *base: type) -> Any:
        return self.classes.get(path) or container_at(path, base)

    def _object(self, data: Any) -> Any:
        cls = self._class_at(data["object"])
        obj = cls.__new__(cls)
        if "id" in data:
            self._objects[data["id"]] = obj
        attributes = obj.__dict__
        late = []
        for name, item in data["state"].items():
            if isinstance(item, dict) and ("derived" in item or "window" in item):
                attributes[name] = None  # keeps the order of attributes
                late.append((name, item))
            else:
                attributes[name] = self.run(item)
        for name, item in late:
            attributes[name] = _window(attributes, item) if "window" in item else _follow(attributes, item["derived"])
        return obj

    def _dict(self, data: Any) -> Any:
        items = {key: self.run(item) for key, item in data["dict"]}
        return self._container_at(data["class"], dict)(items) if "class" in data else items

    def _sequence(self, data: Any) -> Any:
        name = next(name for name in ("list", "tuple", "set", "frozenset") if name in data)
        items = [self.run(item) for item in data[name]]
        if "class" not in data:
            return {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[name](items)
        cls = self._container_at(data["class"], list, tuple, set, frozenset)
        return cls(*items) if hasattr(cls, "_fields") else cls(items)

    def _config(self, data: Any) -> Any:
        from transformers import PretrainedConfig

        cls: Any = self.classes.get(data["config"]) or container_at(data["config"], (PretrainedConfig,))
        return cls.from_dict(data["value"])


_BUILDERS: dict[str, Callable[[Decoder, Any], Any]] = {
    "tensor": lambda self, data: self.leaves[data["tensor"]],
    "setting": lambda self, data: torch.tensor(data["setting"], dtype=getattr(torch, data["as"])),
    "object": Decoder._object,
    "ref": lambda self, data: self._objects[data["ref"]],
    "dict": Decoder._dict,
    "list": Decoder._sequence,
    "tuple": Decoder._sequence,
    "set": Decoder._sequence,
    "frozenset": Decoder._sequence,
    "size": lambda self, data: torch.Size([self.run(item) for item in data["size"]]),
    "dtype": lambda self, data: getattr(torch, data["dtype"]),
    "device": lambda self, data: torch.device(data["device"]),
    "opaque": lambda self, data: self.opaque[data["opaque"]],
    "config": Decoder._config,
    "stream": lambda self, data: torch.Stream(),
    "class": lambda self, data: self._class_at(data["class"]),
}


def _follow(attributes: dict[str, Any], rule: list[Any]) -> Any:
    tensor = _tensor_of(attributes, rule[0])
    if tensor is None:
        return None
    if rule[1] in ("dtype", "device"):
        return getattr(tensor, rule[1])
    return tensor.shape[rule[1]]


def _window(attributes: dict[str, Any], item: Any) -> torch.Tensor:
    keys = attributes.get("keys")
    device = keys.device if isinstance(keys, torch.Tensor) else None
    return torch.tensor(attributes["sliding_window"], dtype=getattr(torch, item["window"]), device=device)


def take_apart(cache: Any) -> tuple[list[str], list[Any], CacheContext]:
    """(names, leaves, context) of a cache or a layer: take_apart(cache)[0] == ["0.key", "0.value", "1.key",
    ...].
    """
    encoder = Encoder()
    data = encoder.run(cache)
    return encoder.names, encoder.leaves, CacheContext(data, encoder.opaque, encoder.classes)


def put_together(leaves: list[Any], context: CacheContext) -> Any:
    """The cache of `take_apart`, rebuilt as new objects around the given leaves."""
    return Decoder(list(leaves), context).run(context.data)


def leaf_names_and_tensors(cache: Any) -> tuple[list[str], list[Any]]:
    """Names and leaves only, without the cost of a context."""
    encoder = Encoder(with_context=False)
    encoder.run(cache)
    return encoder.names, encoder.leaves
