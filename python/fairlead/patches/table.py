"""The table of patches: one row for one problem, with the places where it occurs and how to know them.

A row is looked up in the order of registration. Its targets are dotted paths, or found among the modeling files that
are loaded (a model that exists has loaded its own), by what the code there looks like and not by a version number.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from fairlead._core import InvalidInput
from fairlead.patches.slots import original_of


@dataclass(frozen=True)
class Patch:
    """A row.

    `targets`: dotted paths, or a function that returns those found. `needed(original)` says why the row is not needed
    for an original, or None. `tolerance` is 0 where patched and unpatched results are the same bits.
    """

    name: str
    backend: str
    library: str
    targets: tuple[str, ...] | Callable[[], Iterable[str]]
    factory: Callable[[Any], Any]
    problem: str
    remedy: str
    versions: str
    looked_for: str
    needed: Callable[[Any], str | None] | None
    tolerance: float
    ours: bool

    def found(self) -> list[str]:
        return list(self.targets() if callable(self.targets) else self.targets)


_rows: list[Patch] = []
Factory = TypeVar("Factory", bound=Callable[[Any], Any])


def register_patch(
    backend: str,
    *targets: str | Callable[[], Iterable[str]],
    name: str | None = None,
    problem: str = "",
    remedy: str = "",
    versions: str = "any",
    looked_for: str = "",
    needed: Callable[[Any], str | None] | None = None,
    tolerance: float = 0.0,
) -> Callable[[Factory], Factory]:
    """Adds the decorated `factory(original) -> replacement` to the table, for every dotted path.

    >>> @register_patch("dynamo", "torch.Tensor.unfold", problem="has no symbolic form")
    ... def unfold_by_index(original):
    ...     return lambda self, dimension, size, step: ...

    A path is resolved when the row is applied; what cannot be found is in the report of `apply_patches`.
    """
    finders = [target for target in targets if callable(target)]
    paths = tuple(target for target in targets if isinstance(target, str))
    if not targets or (finders and len(targets) > 1) or not all(callable(t) or _dotted(t) for t in targets):
        raise InvalidInput(
            "[register_patch] Expected dotted paths such as 'torch.Tensor.unfold' (or one function that returns "
            f"them), got {', '.join(repr(target) for target in targets) or 'none'}."
        )

    def add(factory: Factory) -> Factory:
        first = paths[0] if not finders else f"transformers.{factory.__name__}"
        row = Patch(
            name=name or factory.__name__.strip("_"),
            backend=backend,
            library=first.partition(".")[0],
            targets=finders[0] if finders else paths,
            factory=factory,
            problem=problem or (factory.__doc__ or "").strip().split("\n")[0],
            remedy=remedy,
            versions=versions,
            looked_for=looked_for,
            needed=needed,
            tolerance=tolerance,
            ours=factory.__module__.startswith("fairlead.patches."),
        )
        _rows.append(row)
        return factory

    return add


def unregister_patch(backend: str, factory: Callable[[Any], Any]) -> None:
    """Takes every row of that factory out of the table; blocks that hold it keep it until they end."""
    kept = [row for row in _rows if not (row.backend == backend and row.factory is factory)]
    if len(kept) == len(_rows):
        given = getattr(factory, "__name__", factory)
        raise InvalidInput(f"[unregister_patch] Expected a factory registered for {backend!r}, got {given!r}.")
    _rows[:] = kept


def patch_rows(*backends: str) -> list[Patch]:
    """The rows of some backends in order, of all without a name."""
    import fairlead.patches.rows  # noqa: F401 - our own rows are registered there

    return [row for row in _rows if not backends or row.backend in backends]


def _dotted(path: Any) -> bool:
    return isinstance(path, str) and path.count(".") >= 1 and all(part.isidentifier() for part in path.split("."))


def resolve(path: str) -> tuple[Any, str]:
    """The owner of a dotted path and the name of the attribute; LookupError with the part that is missing."""
    parts = path.split(".")
    try:
        owner: Any = importlib.import_module(parts[0])
    except Exception as error:  # a package that is broken raises whatever it likes
        raise LookupError(f"{parts[0]} cannot be imported ({type(error).__name__}: {_line(error)})") from None
    for place, part in enumerate(parts[1:-1], 1):
        if not hasattr(owner, part):
            _import(".".join(parts[: place + 1]))
        # A lazy package that was made anew does not know the modules that were loaded before.
        found = getattr(owner, part, None) or sys.modules.get(".".join(parts[: place + 1]))
        if found is None:
            raise LookupError(f"{'.'.join(parts[:place])} has no {part}")
        owner = found
    if not hasattr(owner, parts[-1]):
        raise LookupError(f"{'.'.join(parts[:-1])} has no {parts[-1]}")
    return owner, parts[-1]


def _import(module: str) -> None:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module and not module.startswith(f"{error.name}."):
            raise LookupError(f"{module} cannot be imported ({_line(error)})") from None
    except Exception as error:  # the module is there and broken: say so, and go on with the other rows
        raise LookupError(f"{module} cannot be imported ({type(error).__name__}: {_line(error)})") from None


def _line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:200]


def _modeling_files() -> list[tuple[str, Any]]:
    return [(name, sys.modules[name]) for name in _modeling_names(tuple(sys.modules)) if name in sys.modules]


@functools.lru_cache(1)
def _modeling_names(loaded: tuple[str, ...]) -> list[str]:
    """Asked at every run, of thousands of modules."""
    homes = ("transformers.models.", "transformers_modules.")
    return [name for name in loaded if ".modeling_" in name and name.startswith(homes)]


def methods(select: Callable[[type, str, Any], bool]) -> list[str]:
    """Dotted paths of the methods in loaded modeling files for which `select(class, name, function)` is true."""
    return [path for name, module in _modeling_files() for path in _methods_of(select, name, module)]


@functools.cache
def _methods_of(select: Callable[[type, str, Any], bool], module_name: str, module: Any) -> tuple[str, ...]:
    """Looked for once: a recording asks at every export, and modeling files do not change."""
    found = []
    for attribute, cls in list(vars(module).items()):
        if isinstance(cls, type) and cls.__module__ == module_name:
            for name, raw in list(vars(cls).items()):
                if callable(raw) and not isinstance(raw, type) and select(cls, name, original_of(cls, name)):
                    found.append(f"{module_name}.{attribute}.{name}")
    return tuple(found)


def bindings(home: str, name: str) -> list[str]:
    """Dotted paths of a function whose module is loaded: there, and in the modeling files that import it."""
    module = sys.modules.get(home)
    if module is None or not hasattr(module, name):
        return []
    function = original_of(module, name)
    found = [f"{home}.{name}"]
    for module_name, module in _modeling_files():
        if module_name != home and hasattr(module, name) and original_of(module, name) is function:
            found.append(f"{module_name}.{name}")
    return found


def innermost(function: Any) -> Any:
    """The function below its decorators."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def names_in(function: Any) -> set[str]:
    """Every name that a function's code uses: variables, attributes, globals, also in what is nested in it."""
    names: set[str] = set()
    codes = [function.__code__] if hasattr(function, "__code__") else []
    while codes:
        code = codes.pop()
        names.update(code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        codes += [constant for constant in code.co_consts if hasattr(constant, "co_names")]
    return names
