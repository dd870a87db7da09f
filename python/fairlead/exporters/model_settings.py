"""How a model is set while it is exported, and set back whatever happens: eval mode, attention, flags of its config."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from fairlead.exporters.refusals import warn
from fairlead.patches.attributes import patch_model_config

# Attention that runs in kernels of its own, which no exporter sees into. "flash_attention_2", "paged|flash_...",
# "kernels-community/flash-attn" and "flex_attention" all hold one of these.
CLOSED_ATTENTION = ("flash", "flex", "paged|")


@contextlib.contextmanager
def exportable(model: torch.nn.Module, flags: Mapping[str, Any] | None = None) -> Iterator[list[str]]:
    """The model as it can be exported, for the duration of the block: in eval mode, with attention that can be looked
    into, `flags` set on its config. Yields what was changed, in words.
    """
    notes: list[str] = []
    with contextlib.ExitStack() as undo:
        undo.enter_context(evaluating(model))
        notes += undo.enter_context(open_attention(model))
        undo.enter_context(patch_model_config(model, flags or {}))
        yield notes


@contextlib.contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Eval mode; afterwards every submodule is in the mode it was in."""
    training = [module for module in model.modules() if module.training]
    try:
        for module in training:
            module.training = False
        yield
    finally:
        for module in training:
            module.training = True


@contextlib.contextmanager
def open_attention(model: torch.nn.Module) -> Iterator[list[str]]:
    """Flash and flex attention replaced by sdpa, or eager where a model has no sdpa. Yields one note per change."""
    before: list[tuple[Any, str]] = []
    notes: list[str] = []
    try:
        for config, supports_sdpa in attention_configs(model):
            now = getattr(config, "_attn_implementation", None)
            if not isinstance(now, str) or not any(part in now for part in CLOSED_ATTENTION):
                continue
            chosen = "sdpa" if supports_sdpa else "eager"
            before.append((config, now))
            set_attention(config, chosen)
            note = f"attention {now} of {type(config).__name__} cannot be exported: {chosen} was used instead"
            if note not in notes:
                notes.append(note)
        for note in notes:
            warn(f"[export] {note}.")
        yield notes
    finally:
        for config, name in reversed(before):
            set_attention(config, name)


def attention_configs(model: torch.nn.Module) -> list[tuple[Any, bool]]:
    """(config, whether sdpa may be used) of every submodule and of the configs inside, each once."""
    found: dict[int, tuple[Any, bool]] = {}

    def add(config: Any, supports: bool) -> None:
        if config is None or not hasattr(config, "_attn_implementation"):
            return
        known = found.get(id(config))
        found[id(config)] = (config, supports and (known is None or known[1]))
        if known is None:
            for name in getattr(config, "sub_configs", None) or ():
                add(getattr(config, name, None), supports)

    for module in model.modules():
        add(getattr(module, "config", None), bool(getattr(module, "_supports_sdpa", True)))
    return list(found.values())


def set_attention(config: Any, name: str) -> None:
    # The property of later versions would also set the configs inside, which are set one by one here.
    if hasattr(config, "_attn_implementation_internal"):
        config._attn_implementation_internal = name
    else:
        config._attn_implementation = name


def accepted(model: torch.nn.Module, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags that forward takes itself; the others can only be set on the config."""
    parameters = inspect.signature(model.forward).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return dict(flags)
    names = {p.name for p in parameters}
    return {name: value for name, value in flags.items() if name in names}
