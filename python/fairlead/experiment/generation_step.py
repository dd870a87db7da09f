"""The call that comes after a call in generation: the cache that the model gave back, and one new token."""

from __future__ import annotations

from typing import Any

import torch

from fairlead.patches.model_state import ModelState
from fairlead.tree.calls import Call, one_call, shown

CACHE = "past_key_values"
TOKENS = ("input_ids", "inputs_embeds", "decoder_input_ids", "decoder_inputs_embeds", "token_type_ids")
POSITIONS = ("position_ids", "cache_position")
MASKS = ("attention_mask", "decoder_attention_mask")


def role_of(name: str) -> str:
    """What an input is in a call of generation, for an experiment."""
    return "cache" if name.startswith(CACHE) else "tokens" if name in TOKENS else "other"


def apart(before: Call, after: Call) -> str:
    """What tells two calls apart: "input_ids [13, 1], past_key_values.0.key [13, 1, 6, 32], ..." """
    differing = [
        f"{name} {list(t.shape)}"
        for name, t in zip(after.names, after.tensors, strict=True)
        if list(t.shape) != list(before.tensor(name).shape)
    ]
    return shown(differing, 3)


def next_call(model: torch.nn.Module, call: Call) -> Call | None:
    """None where a call has no cache, gives none back of the same parts, or is refused with one more token."""
    named = call.named
    if named.get(CACHE) is None:
        return None
    state = ModelState(model)
    try:
        args, kwargs = call.with_tensors([t.clone() for t in call.tensors])
        with torch.no_grad():
            cache = getattr(model(*args, **kwargs), CACHE, None)
        if cache is None:
            return None
        state.restore()
        values = {name: advanced(name, value) for name, value in named.items()} | {CACHE: cache}
        args = tuple(values[name] for name in call.positional)
        found = one_call(model, (args, {name: values[name] for name in call.kwargs}))
        if found.names != call.names or any(
            a.dim() != b.dim() or a.dtype != b.dtype for a, b in zip(found.tensors, call.tensors, strict=True)
        ):
            return None
        args, kwargs = found.with_tensors([t.clone() for t in found.tensors])
        with torch.no_grad():
            model(*args, **kwargs)
    except Exception:  # whatever the model raises: there is no such call
        return None
    finally:
        state.restore()
    return found


def advanced(name: str, value: Any) -> Any:
    """An argument of the next call, made of the example's values."""
    if not isinstance(value, torch.Tensor) or not value.dim():
        return value
    if name in TOKENS and value.dim() > 1:
        return value[:, :1].clone()
    if name in POSITIONS:
        return value[..., -1:] + 1
    if name in MASKS and value.dim() == 2:
        return torch.cat([value, value[:, -1:]], 1)
    return value
