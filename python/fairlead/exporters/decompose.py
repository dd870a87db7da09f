"""A generative or multimodal model taken apart into (module, forward kwargs) pairs, by watching it work.

1. One short generation is run with everything watched that may become a part: the model itself, and what its own
   accessors name as encoders, decoder, projector and head. A part that was not called is not a part.
2. What was passed is kept as copies: neither the caller's inputs nor the caches that a generation fills are shared.
3. An attention mask of ones that `generate` left out is put back, so that the parts of a model take the same inputs
   whatever the sample was.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from fairlead.exporters.model_settings import exportable
from fairlead.exporters.prepare import named_inputs
from fairlead.exporters.refusals import InvalidValue
from fairlead.patches.model_state import ModelState
from fairlead.tree.caches.kinds import Kind, kind_of
from fairlead.tree.capture import Capture, Parameters

Components = dict[str, tuple[torch.nn.Module, dict[str, Any]]]

# What stands between an encoder and the language model has no accessor: its usual names.
PROJECTORS = ("multi_modal_projector", "connector", "embed_vision", "embed_audio")
HEADS = ("lm_head",)
# Where a version of Transformers has no get_encoder(modality=...), the usual names again.
ENCODERS = {
    "image": ("vision_tower", "visual", "vision_model", "vision_encoder", "image_encoder"),
    "audio": ("audio_tower", "audio_encoder", "audio_model"),
}
# The axis along which the tokens of consecutive steps stand beside each other.
TOKEN_AXES = {
    "input_ids": 1, "inputs_embeds": 1, "decoder_input_ids": 1, "decoder_inputs_embeds": 1,
    "cache_position": 0, "position_ids": -1, "decoder_position_ids": -1,
}  # fmt: skip
MASKS = ("attention_mask", "decoder_attention_mask")


def decompose_prefill_decode(
    model: Any, inputs: Mapping[str, Any], generation_config: Any = None, multi_token_decode: bool = False
) -> Components:
    """{"prefill": (model, kwargs of the prompt), "decode": (model, kwargs of a token after it)}.

    inputs: what model.generate(**inputs) takes.
    generation_config: for the generation; one with cache_implementation="static" gives a cache of fixed size.
    multi_token_decode: the kwargs of decode hold two tokens after the prompt instead of one.
    """
    prompt, later, _ = watched_generation(model, inputs, generation_config, multi_token_decode, {})
    return {"prefill": (model, prompt), "decode": (model, later)}


def decompose_multimodal(model: Any, inputs: Mapping[str, Any]) -> Components:
    """{part: (module, kwargs)} of the encoders, projector, language model and head that one forward pass calls.

    The step that puts the encoded images or sounds among the embedded tokens is in none of them.
    """
    parts = multimodal_parts(model)
    if not parts:
        raise InvalidValue(
            f"[decompose_multimodal] Expected a model with an image or audio encoder and a language model, got "
            f"{type(model).__name__}. Use decompose_prefill_decode, or export it as a whole."
        )
    with contextlib.ExitStack() as stack:
        quiet(stack, model)
        calls = {name: stack.enter_context(capture_forward(module, keep=1)) for name, module in parts.items()}
        refused(model, "forward", inputs, lambda own: model(**own))
    return {name: (parts[name], seen[0]) for name, seen in calls.items() if seen}


def decompose_for_generation(
    model: Any, inputs: Mapping[str, Any], generation_config: Any = None, multi_token_decode: bool = False
) -> Components:
    """{part: (module, kwargs)}: the parts that a generation needs, each to be exported for itself.

    Text: prefill and decode. Encoder-decoder: encoder, prefill and decode. Multimodal: the encoders, projector,
    language model and head of the prompt, and decode.
    """
    parts = multimodal_parts(model) if is_multimodal(model) else encoder_part(model)
    prompt, later, calls = watched_generation(model, inputs, generation_config, multi_token_decode, parts)
    found: Components = {name: (parts[name], seen[0]) for name, seen in calls.items() if seen}
    if not is_multimodal(model):
        found["prefill"] = (model, prompt)
    found["decode"] = (model, later)
    return found


def is_multimodal(model: Any) -> bool:
    """Whether the model has an image or audio encoder beside a language model."""
    return bool(multimodal_parts(model))


# ---- the parts of a model ---------------------------------------------------------------------------


def multimodal_parts(model: Any) -> dict[str, torch.nn.Module]:
    """The parts by name; empty for a model that is not multimodal."""
    if not isinstance(model, torch.nn.Module):
        return {}
    found: dict[str, torch.nn.Module] = {}
    for modality in ENCODERS:
        encoder = encoder_of(model, modality)
        if encoder is not None:
            found[f"{modality}_encoder"] = encoder
    decoder = decoder_of(model)
    if not found or decoder is None:
        return {}
    for root in roots(model):
        for name in PROJECTORS:
            module = getattr(root, name, None)
            if isinstance(module, torch.nn.Module):
                found.setdefault(name, module)
    found["language_model"] = decoder
    for root in roots(model):
        for name in HEADS:
            module = getattr(root, name, None)
            if isinstance(module, torch.nn.Module):
                found.setdefault(name, module)
    return found


def decoder_of(model: Any) -> torch.nn.Module | None:
    """The language model beside the encoders; by its name where a release has no getter for it."""
    getter = getattr(model, "get_decoder", None)
    decoder = getter() if getter is not None else None
    if not isinstance(decoder, torch.nn.Module) or decoder is model:  # 4.53 returns a method
        decoder = next((r.language_model for r in roots(model) if hasattr(r, "language_model")), None)
    return decoder if isinstance(decoder, torch.nn.Module) and decoder is not model else None


def encoder_of(model: Any, modality: str) -> torch.nn.Module | None:
    getter = getattr(model, "get_encoder", None)
    if getter is not None and "modality" in inspect.signature(getter).parameters:
        encoder = getter(modality=modality)
        return encoder if isinstance(encoder, torch.nn.Module) and encoder is not model else None
    for root in roots(model):
        for name in ENCODERS[modality]:
            module = getattr(root, name, None)
            if isinstance(module, torch.nn.Module):
                return module
    return None


def roots(model: Any) -> list[Any]:
    base = getattr(model, "base_model", model)
    return [model] if base is model else [model, base]


def encoder_part(model: Any) -> dict[str, torch.nn.Module]:
    """The encoder of an encoder-decoder."""
    if not getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        return {}
    encoder = model.get_encoder() if hasattr(model, "get_encoder") else None
    return {"encoder": encoder} if isinstance(encoder, torch.nn.Module) and encoder is not model else {}


# ---- watching ---------------------------------------------------------------------------------------


def watched_generation(
    model: Any, inputs: Mapping[str, Any], generation_config: Any, multi_token_decode: bool, parts: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """kwargs of the prompt, kwargs of what follows, and the first call of every part."""
    if not callable(getattr(model, "generate", None)):
        raise InvalidValue(
            f"[decompose_for_generation] Expected a model with generate, got {type(model).__name__}. "
            "Use export for a model that does not generate."
        )
    tokens = 3 if multi_token_decode else 2
    config = copy.deepcopy(model.generation_config if generation_config is None else generation_config)
    config.max_new_tokens = config.min_new_tokens = tokens
    with contextlib.ExitStack() as stack:
        quiet(stack, model)
        calls = stack.enter_context(capture_forward(model, keep=tokens))
        by_part = {name: stack.enter_context(capture_forward(part, keep=1)) for name, part in parts.items()}
        refused(model, "generate", inputs, lambda own: model.generate(**own, generation_config=config))
    if len(calls) < tokens:
        raise InvalidValue(
            f"[decompose_for_generation] Expected {type(model).__name__}.generate to call forward {tokens} times for "
            f"{tokens} tokens, got {len(calls)}: it works through an inner model. Take that one apart instead."
        )
    for call in calls:
        call.pop("logits_to_keep", None)  # a shortcut of generate, not an input of the model
    if inputs.get("attention_mask") is not None:
        for call in calls:
            put_mask_back(model, call)
        for call in by_part.get("language_model", []):
            put_mask_back(parts["language_model"], call)
    return calls[0], merged(calls[1:]) if multi_token_decode else calls[1], by_part


def quiet(stack: contextlib.ExitStack, model: torch.nn.Module) -> None:
    """Without gradients, in eval mode; what the runs leave on the model is put back."""
    stack.enter_context(torch.no_grad())
    stack.callback(ModelState(model).restore)
    stack.enter_context(exportable(model))


def refused(model: Any, method: str, inputs: Any, call: Any) -> None:
    own = Capture().arguments(named_inputs(inputs))
    try:
        call(own)
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InvalidValue(
            f"[decompose_for_generation] Expected {type(model).__name__}.{method} to take {', '.join(own)}, but it "
            f"raised {type(error).__name__}: {reason.rstrip('.')}. Pass what model.{method} takes."
        ) from error


@contextlib.contextmanager
def capture_forward(module: torch.nn.Module, keep: int) -> Iterator[list[dict[str, Any]]]:
    """The kwargs of the first `keep` calls of a module's forward; arguments by position are named."""
    calls: list[dict[str, Any]] = []
    original = module.forward
    parameters = Parameters.of(original)

    @functools.wraps(original)
    def forward(*args: Any, **kwargs: Any) -> Any:
        if len(calls) < keep:
            calls.append(Capture().arguments(parameters.named(args, kwargs)))
        return original(*args, **kwargs)

    own = vars(module).get("forward")
    module.forward = forward
    try:
        yield calls
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own


def put_mask_back(model: Any, call: dict[str, Any]) -> None:
    """Ones for past and new tokens, where a decoder takes a mask and the call has none."""
    tokens = call.get("input_ids") if call.get("input_ids") is not None else call.get("inputs_embeds")
    if call.get("attention_mask") is not None or not isinstance(tokens, torch.Tensor) or tokens.dim() < 2:
        return
    if "attention_mask" not in inspect.signature(model.forward).parameters:
        return
    past = next((v for v in call.values() if kind_of(v) is not Kind.NOT and hasattr(v, "get_seq_length")), None)
    length = tokens.shape[1] + (int(past.get_seq_length()) if past is not None else 0)
    call["attention_mask"] = torch.ones(tokens.shape[0], length, dtype=torch.long, device=tokens.device)


# ---- several tokens at once -------------------------------------------------------------------------


def merged(calls: list[dict[str, Any]]) -> dict[str, Any]:
    """Consecutive steps of one token each as one step of several: the cache is that of the first. Steps that are longer
    already (a model without a cache) are not merged; the last one is taken.
    """
    for call in calls:
        lengths = [
            call[name].shape[axis] for name, axis in TOKEN_AXES.items() if axis == 1 and call.get(name) is not None
        ]
        if lengths != [1]:
            return calls[-1]
    together = dict(calls[0])
    for name, axis in TOKEN_AXES.items():
        steps = [step for step in (call.get(name) for call in calls) if isinstance(step, torch.Tensor)]
        if len(steps) == len(calls):
            together[name] = torch.cat(steps, dim=axis)
    for name in MASKS:
        if all(call.get(name) is not None for call in calls):
            together[name] = merged_masks([call[name] for call in calls])
    return together


def merged_masks(masks: list[Any]) -> Any:
    """Rows of masks that say per query what it sees stand below each other; of the others the last says it all."""
    last = masks[-1]
    if isinstance(last, Mapping):
        return {name: merged_masks([mask[name] for mask in masks]) for name in last}
    if isinstance(last, torch.Tensor) and last.dim() == 4 and all(m.shape[3] == last.shape[3] for m in masks):
        return torch.cat(masks, dim=2)
    return last
