"""Watches a short real generation: which arguments the model gets for the prompt and for a token after it."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from fairlead._core import InvalidInput
from fairlead.observer import InputObserver, observe
from fairlead.patches.model_state import ModelState
from fairlead.tree.caches.kinds import Kind, kind_of
from fairlead.tree.leaves import get_leaf_tensors, replace_leaf_tensors

BATCH, PAST, NEW = 2, 7, 3  # of the calls that are made: different, and none is 1


@dataclass
class Watched:
    """The arguments of the prompt's call and of a later one, without the numbers and flags among them."""

    prompt: dict[str, Any]
    later: dict[str, Any]
    cache: str  # the argument that holds the cache; "" where there is none
    also: dict[str, Any] = field(default_factory=dict)  # the arguments of another module that was watched


def copied(sample: Any) -> dict[str, Any]:
    """The user's arguments around tensors of our own: nothing of theirs is changed."""
    if not hasattr(sample, "keys"):
        raise InvalidInput(
            f"[export_for_generation] Expected the arguments of model.generate as a dict, got {type(sample).__name__}."
        )
    named = {key: sample[key] for key in sample.keys()}  # noqa: SIM118 (BatchEncoding)
    tensors = [tensor.detach().clone() for tensor in get_leaf_tensors(named).values()]
    return dict(replace_leaf_tensors(named, tensors))


def config_for(model: Any, generation_config: Any) -> Any:
    """A copy of the generation config that generates two tokens, whatever they are, without beams or dice."""
    config = copy.deepcopy(generation_config if generation_config is not None else model.generation_config)
    for name, value in {
        "max_new_tokens": 2, "min_new_tokens": 2, "max_length": None, "min_length": None, "do_sample": False,
        "num_beams": 1, "num_return_sequences": 1, "use_cache": True, "return_dict_in_generate": False,
        "cache_implementation": None, "eos_token_id": None, "forced_eos_token_id": None,
    }.items():  # fmt: skip
        if hasattr(config, name):
            setattr(config, name, value)
    if config.pad_token_id is None:
        config.pad_token_id = 0
    return config


def watch(
    model: Any,
    inputs: dict[str, Any],
    generation_config: Any = None,
    *,
    also: Any = None,
    method: str = "forward",
    **more: Any,
) -> Watched:
    """One generation of two tokens; `also` is a module of the model, of which the first call of a method is wanted."""
    config = config_for(model, generation_config)
    other = InputObserver()
    with untouched(model), contextlib.ExitStack() as stack:
        seen = stack.enter_context(observe(model, store_n_calls=2))
        if also is not None:
            stack.enter_context(other(also, store_n_calls=1, method_name=method))
        try:
            model.generate(**copied(inputs), generation_config=config, **more)
        except Exception as error:
            text = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InvalidInput(
                f"[export_for_generation] Expected {type(model).__name__}.generate to take the sample, but it raised "
                f"{type(error).__name__}: {text.rstrip('.')}. Pass what model.generate takes."
            ) from error
    calls = [named for _, named in seen.calls()] if seen.num_obs() else []
    if len(calls) < 2:
        raise InvalidInput(
            f"[export_for_generation] Expected {type(model).__name__}.generate to call the model once per token, got "
            f"{len(calls)} calls for two tokens. Export its parts with fairlead.export."
        )
    prompt, later = (tensors_of(call) for call in calls)
    caches = [name for name, value in later.items() if kind_of(value) is not Kind.NOT]
    beside = tensors_of(other.calls()[0][1]) if also is not None and other.num_obs() else {}
    return Watched(prompt, later, caches[0] if caches else "", beside)


def tensors_of(call: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in call.items()
        if isinstance(value, torch.Tensor) or kind_of(value) is not Kind.NOT or get_leaf_tensors({name: value})
    }


@contextlib.contextmanager
def untouched(model: Any) -> Iterator[None]:
    """State that a call leaves on the model is put back."""
    state = ModelState(model)
    try:
        with torch.no_grad():
            yield
    finally:
        state.restore()
