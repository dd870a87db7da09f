"""torch.export.export with our sizes, flattening and patches, and its refusals in one line."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from fairlead._core import Unsupported
from fairlead.base.errors import caused
from fairlead.targets.pt2.shapes import dynamic_shapes_of
from fairlead.tree.caches import register_flattening_functions
from fairlead.tree.leaves import get_leaf_tensors


def export_module(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dims: list[dict[int, Any]],
    options: dict[str, Any] | None = None,
) -> torch.export.ExportedProgram:
    """The ExportedProgram of a call; `dims` has {axis: Dim} for every tensor in it."""
    # Choosing a faster kernel for attention asks whether sizes are 1.
    plain = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)
    with register_flattening_functions(), quiet(), torch.no_grad(), one_is_a_size(), plain:
        by_id = {id(t): d for t, d in zip(get_leaf_tensors((list(args), kwargs)).values(), dims, strict=True)}
        shapes: Any = None
        if any(dims):
            given = [dynamic_shapes_of(a, by_id) for a in args]
            shapes = named(module, given) | {k: dynamic_shapes_of(v, by_id) for k, v in kwargs.items()}
        return torch.export.export(module, args, kwargs, dynamic_shapes=shapes, **(options or {}))


def named(module: torch.nn.Module, given: list[Any]) -> dict[str, Any]:
    """Specifications of positional arguments by parameter; those beyond the parameters are a tuple under *args."""
    result: dict[str, Any] = {}
    rest = list(given)
    for parameter in inspect.signature(module.forward).parameters.values():
        if not rest:
            break
        if parameter.kind is parameter.VAR_POSITIONAL:
            result[parameter.name] = tuple(rest)
            break
        result[parameter.name] = rest.pop(0)
    return result


@contextlib.contextmanager
def one_is_a_size() -> Iterator[None]:
    """Sizes are not taken to be 2 or more: a program serves a batch of 1 as well."""
    _config: Any = importlib.import_module("torch.fx.experimental._config")
    if not hasattr(_config, "backed_size_oblivious"):
        yield
        return
    with _config.patch(backed_size_oblivious=True):
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without warnings and log lines about torch's own insides: what fails is raised, and said once."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def patches() -> Any:
    """The patches that make model families exportable."""
    from fairlead.patches import torch_export_patches

    return torch_export_patches(patch_transformers=True)


def reason(error: BaseException) -> str:
    """What torch.export raised, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    return f"{type(error).__name__}: {text}"[:300].rstrip(". ")


def refusal(what: str, error: BaseException) -> Unsupported:
    cause = f"it raised {reason(error)}"
    return caused(Unsupported(f"[export] Expected torch.export to take {what}, but {cause}."), cause)
