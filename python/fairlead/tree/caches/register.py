"""Caches as nodes of torch's trees: registered on entry, and on exit exactly what was there before comes
back.

Rules:
1. Every cache and layer class that exists on entry is registered, subclasses of the user included.
2. Blocks may be nested or overlap: a class is restored when the last block that covers it ends, after
   exceptions too.
3. What Transformers or the user had registered is put aside, not lost.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fx import _pytree as fx_pytree
from torch.utils import _pytree as pytree

from fairlead.base.alone import changed
from fairlead.tree.caches.kinds import Kind, cache_bases, kind_of, layer_bases, named_like_a_cache
from fairlead.tree.caches.state import CacheContext, Encoder, put_together, take_apart

# Values of `patch_transformers` that mean "nothing"; the others are the names its users know.
NOTHING = (False, None, "", "none")
EVERYTHING = (True, 1, "all", "yobx", "transformers", "yobx+transformers", "fairlead")

_ABSENT = object()
_lock = threading.RLock()
_holders: dict[type, int] = {}  # class -> blocks that cover it
_saved: dict[type, dict[str, Any]] = {}  # class -> what each registry held before the first of them

PAIR = ("self_attention_cache", "cross_attention_cache")


def flatten_cache(cache: Any) -> tuple[list[Any], CacheContext]:
    """Children and context of a cache or layer. An encoder-decoder cache has two children, its two caches."""
    if kind_of(cache) is Kind.PAIR:
        encoder = Encoder()
        state = {}
        for index, name in enumerate(PAIR):
            state[name] = {"tensor": index}
        for name, value in vars(cache).items():
            if name not in PAIR:
                state[name] = encoder._value(value, name)
        data = {"object": encoder._class(type(cache)), "state": state}
        return [getattr(cache, name) for name in PAIR], CacheContext(data, encoder.opaque, encoder.classes)
    _, leaves, context = take_apart(cache)
    return leaves, context


def unflatten_cache(children: Any, context: CacheContext) -> Any:
    return put_together(list(children), context)


def flatten_cache_with_keys(cache: Any) -> tuple[list[tuple[Any, Any]], CacheContext]:
    """The same with keys key_0, value_0, key_1 ...: input names such as past_key_values_key_0."""
    if kind_of(cache) is Kind.PAIR:
        children, context = flatten_cache(cache)
        return [(pytree.MappingKey(name), child) for name, child in zip(PAIR, children, strict=True)], context
    names, leaves, context = take_apart(cache)
    return [(pytree.MappingKey(_key(name)), leaf) for name, leaf in zip(names, leaves, strict=True)], context


def _key(name: str) -> str:
    layer, _, rest = name.partition(".")
    if not layer.isdigit():
        return name.replace(".", "_")
    what, _, tail = rest.partition(".")
    return f"{what}_{layer}" + (f"_{tail.replace('.', '_')}" if tail else "")


def dump_context(context: CacheContext) -> str:
    """JSON text of a context. Configs are written out; another object kept by reference cannot be, and is
    named.
    """

    def write(data: Any) -> Any:
        if isinstance(data, list):
            return [write(item) for item in data]
        if not isinstance(data, dict):
            return data
        if "opaque" not in data:
            return {key: write(item) for key, item in data.items()}
        value = context.opaque[data["opaque"]]
        if hasattr(value, "to_dict") and hasattr(type(value), "from_dict"):
            path = f"{type(value).__module__}:{type(value).__qualname__}"
            return {"config": path, "value": json.loads(json.dumps(value.to_dict(), default=str))}
        if isinstance(value, torch.Stream):
            return {"stream": True}
        raise NotImplementedError(
            f"[register_flattening_functions] Expected numbers, strings, dtypes, devices and configs "
            "beside the tensors "
            f"of a cache, got {type(value).__name__}, which has no JSON form."
        )

    return json.dumps(write(context.data))


def load_context(text: str) -> CacheContext:
    return CacheContext(json.loads(text))


def _subclasses(base: type[Any]) -> Iterator[type[Any]]:
    yield base
    for sub in base.__subclasses__():
        yield from _subclasses(sub)


def cache_classes() -> list[type]:
    """Every cache and layer class known now; [] without Transformers."""
    with contextlib.suppress(ImportError):
        import transformers.cache_utils  # noqa: F401 - the classes have to exist to be registered
    found = {cls: None for base in (*cache_bases(), *layer_bases()) for cls in _subclasses(base)}
    # Models with a cache class of their own that derives from nothing (xLSTM): in the modeling files loaded
    # so far.
    for name, module in list(sys.modules.items()):
        if name.startswith("transformers.models.") and ".modeling_" in name:
            for cls in list(vars(module).values()):
                if isinstance(cls, type) and cls.__module__ == name and named_like_a_cache(cls):
                    found[cls] = None
    return list(found)


def _registries() -> dict[str, dict[Any, Any]]:
    return {
        "nodes": pytree.SUPPORTED_NODES,
        "serialized": pytree.SUPPORTED_SERIALIZED_TYPES,
        "fx": fx_pytree.SUPPORTED_NODES,
        "fx_exact": fx_pytree.SUPPORTED_NODES_EXACT_MATCH,
    }


def _put_aside(cls: type) -> dict[str, Any]:
    saved = {name: registry.pop(cls, _ABSENT) for name, registry in _registries().items()}
    definition = saved["serialized"]
    if definition is not _ABSENT:
        name = definition.serialized_type_name
        saved["name"] = (name, pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.get(name, _ABSENT))
        if pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.get(name) is cls:
            del pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    return saved


def _restore(cls: type, saved: dict[str, Any]) -> None:
    _put_aside(cls)
    for name, registry in _registries().items():
        if saved[name] is not _ABSENT:
            registry[cls] = saved[name]
    if "name" in saved and saved["name"][1] is not _ABSENT:
        pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE[saved["name"][0]] = saved["name"][1]


def _cxx() -> Any:
    # Only where something else already uses the C++ tree: importing it costs, and needs optree.
    return sys.modules.get("torch.utils._cxx_pytree")


def _register(cls: type) -> None:
    pytree._private_register_pytree_node(
        cls,
        flatten_cache,
        unflatten_cache,
        serialized_type_name=f"{cls.__module__}.{cls.__qualname__}",
        to_dumpable_context=dump_context,
        from_dumpable_context=load_context,
        flatten_with_keys_fn=flatten_cache_with_keys,
    )
    fx_pytree.register_pytree_flatten_spec(cls, lambda cache, spec: flatten_cache(cache)[0])
    cxx = _cxx()
    if cxx is not None:
        with contextlib.suppress(ValueError):  # registered there by someone else: theirs stays
            cxx._private_register_pytree_node(cls, flatten_cache, unflatten_cache)
            _in_cxx.add(cls)


_in_cxx: set[type] = set()
_allowed: set[type] = set()


def _allow(cls: type) -> None:
    # torch.export.load reads the example inputs of a program with torch.load, which refuses classes it does
    # not know.
    if cls not in torch.serialization.get_safe_globals():
        torch.serialization.add_safe_globals([cls])
        _allowed.add(cls)


def _disallow(cls: type) -> None:
    if cls in _allowed:
        _allowed.discard(cls)
        torch._weights_only_unpickler._remove_safe_globals([cls])


def _unregister_cxx(cls: type) -> None:
    if cls in _in_cxx:
        _in_cxx.discard(cls)
        import optree

        with contextlib.suppress(ValueError):
            optree.unregister_pytree_node(cls, namespace="torch")


def _enter() -> list[type]:
    held = []
    with _lock:
        for cls in cache_classes():
            held.append(cls)
            _holders[cls] = _holders.get(cls, 0) + 1
            if _holders[cls] > 1:
                continue
            _saved[cls] = _put_aside(cls)
            _register(cls)
            _allow(cls)
    return held


def _exit(held: list[type]) -> None:
    with _lock:
        for cls in held:
            _holders[cls] -= 1
            if _holders[cls] == 0:
                del _holders[cls]
                _unregister_cxx(cls)
                _disallow(cls)
                _restore(cls, _saved.pop(cls))


_kept: list[list[type]] = []


def keep_registered() -> None:
    """Every cache class known now stays registered: a program that takes caches needs that when it is called."""
    with _lock:
        if any(cls not in held for held in _kept for cls in cache_classes()) or not _kept:
            _kept.append(_enter())


def forget_kept() -> None:
    """Takes keep_registered back."""
    with _lock:
        while _kept:
            _exit(_kept.pop())


@contextlib.contextmanager
def register_flattening_functions(patch_transformers: Any = True, verbose: int = 0) -> Iterator[Callable[[Any], Any]]:
    """Inside the block torch's trees, torch.export and torch.fx can take caches apart and put them together.

    >>> with register_flattening_functions(patch_transformers=True):
    ...     leaves, spec = torch.utils._pytree.tree_flatten(cache)

    `patch_transformers=False` (or "none") registers nothing. Yields a function that returns its argument:
    inputs need no
    replacement before exporting.
    """
    choice = getattr(patch_transformers, "name", patch_transformers)  # an enum of another project: by its name
    choice = choice.lower() if isinstance(choice, str) else choice
    names = {"yobx_patch": "yobx", "transformers_patch": "transformers"}
    choice = names.get(choice, choice) if isinstance(choice, str) else choice
    if choice not in NOTHING and choice not in EVERYTHING:
        allowed = ", ".join(repr(name) for name in (*EVERYTHING[2:], "none"))
        raise ValueError(
            f"[register_flattening_functions] Expected True, False or one of {allowed} for "
            "patch_transformers, "
            f"got {patch_transformers!r}."
        )
    if choice in NOTHING:
        yield lambda inputs: inputs
        return
    held = changed(lambda: (_enter(),), _exit)
    if verbose:
        shown = [cls.__name__ for cls in held.held[0][0]]
        print(f"[register_flattening_functions] {len(shown)} classes: {', '.join(shown)}")
    try:
        yield lambda inputs: inputs
    finally:
        held()
