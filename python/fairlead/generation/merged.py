"""Encoder-decoders with the inputs and outputs that other clients know: encoder_model and decoder_model_merged.

Optimum and transformers.js run the encoder once for `last_hidden_state` and give it to the decoder with every token,
beside a cache that is empty at first, that of cross attention too. So the decoder itself computes keys and values of
those places of the encoder's result that the cache does not have yet: all of them for the first token, none later.
That takes no branch, and no `use_cache_branch`; both clients give one only to files that have it.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.export import Dim
from torch.overrides import TorchFunctionMode

from fairlead.generation.decoder import copy_of, entries
from fairlead.generation.encoder_decoder import CACHE, MASK, EncoderDecoder, cut, is_cross, observed
from fairlead.generation.plan import PartPlan, Plan
from fairlead.generation.watch import NEW, PAST, untouched
from fairlead.tree.leaves import get_leaf_tensors, replace_leaf_tensors

STATES, STATES_MASK = "encoder_hidden_states", "encoder_attention_mask"
KNOWN = 5  # places of the encoder that the cache has already, in the call that is to tell the sizes apart
ENCODED = 43  # places of the encoder there: more than KNOWN is tried with, because a cache never has more


class ExplicitSizes(TorchFunctionMode):
    """Says what -1 in a view means: of no places at all (every token but the first) torch cannot know."""

    VIEWS = (torch.Tensor.view, torch.Tensor.reshape, torch.reshape)

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in self.VIEWS and len(args) > 1 and not kwargs:
            tensor, *sizes = args
            if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
                sizes = list(sizes[0])
            if -1 in sizes:
                # Where the others have the empty axis, -1 is what those that are not empty leave; else it is that axis.
                numbers = [size for size in tensor.shape if size] if 0 in sizes else tensor.shape
                sizes[sizes.index(-1)] = math.prod(numbers) // math.prod(size for size in sizes if size > 0)
                args = (tensor, sizes)
        return function(*args, **(kwargs or {}))


class Encoder(torch.nn.Module):
    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, **inputs: torch.Tensor) -> torch.Tensor:
        model: Any = self.model
        encoded: torch.Tensor = model.get_encoder()(**inputs, return_dict=True)[0]
        return encoded


class Decoder(torch.nn.Module):
    """One step: logits and the whole cache. What the model takes beside its tokens is made from sizes."""

    def __init__(self, model: torch.nn.Module, arguments: list[str]):
        super().__init__()
        self.model, self.arguments = model, arguments

    def forward(
        self,
        input_ids: torch.Tensor,
        encoder_hidden_states: torch.Tensor,
        past_key_values: Any,
        encoder_attention_mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        leaves = get_leaf_tensors(past_key_values)
        known = next(t for name, t in leaves.items() if is_cross(name)).shape[2]
        past = next(t for name, t in leaves.items() if not is_cross(name)).shape[2]
        total = past + input_ids.shape[1]
        mask = {} if encoder_attention_mask is None else {"attention_mask": encoder_attention_mask}
        rest = encoder_hidden_states.narrow(1, known, encoder_hidden_states.shape[1] - known)
        added = self.cross(rest, {name: m.narrow(1, known, m.shape[1] - known) for name, m in mask.items()})
        cross = {name: torch.cat([leaves[name], new], 2) for name, new in added.items()}
        made = {
            MASK: torch.ones(input_ids.shape[0], total, dtype=torch.int64),
            "decoder_position_ids": torch.arange(past, total)[None].repeat(input_ids.shape[0], 1),
            "cache_position": torch.arange(past, total),
        }
        out = self.model(
            decoder_input_ids=input_ids,
            encoder_outputs=as_output(encoder_hidden_states),
            past_key_values=replace_leaf_tensors(past_key_values, leaves | cross),
            **mask,
            **{name: made[name] for name in self.arguments if name in made},
            use_cache=True,
            return_dict=True,
        )
        own = get_leaf_tensors(out.past_key_values)
        return (out.logits, *(cross.get(name, tensor) for name, tensor in own.items()))

    def cross(self, states: torch.Tensor, mask: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Keys and values of these places. They are taken from a step of the decoder; what else that step computes is
        not in the result, and so not in the file.
        """
        start = torch.zeros((states.shape[0], 1), dtype=torch.int64)
        with ExplicitSizes():
            out = self.model(
                encoder_outputs=as_output(states), decoder_input_ids=start, **mask, use_cache=True, return_dict=True
            )
        return {name: t for name, t in get_leaf_tensors(out.past_key_values).items() if is_cross(name)}


def as_output(states: torch.Tensor) -> Any:
    from transformers.modeling_outputs import BaseModelOutput

    return BaseModelOutput(last_hidden_state=states)


def plan_merged(model: Any, sample: dict[str, Any], generation_config: Any = None) -> Plan:
    longest = getattr(model.config, "max_position_embeddings", None) or ENCODED
    seen: EncoderDecoder = observed(model, sample, generation_config, min(ENCODED, longest))
    encoder, decoder = Encoder(model).eval(), Decoder(model, seen.arguments).eval()
    tokens = seen.tokens(PAST + NEW)
    cache = entries(seen.past, CACHE, [[2]] * len(get_leaf_tensors(seen.past)))
    return Plan(
        "encoder_decoder",
        [
            PartPlan("encoder_model", encoder, [seen.watched.also], ["last_hidden_state"]),
            PartPlan(
                "decoder_model_merged", decoder, decoder_calls(model, decoder, seen, tokens),
                ["logits", *(entry["present"] for entry in cache)],
                dynamic_shapes=named_past(seen),
                takes={"input_ids": "decoder_input_ids", STATES: "last_hidden_state", STATES_MASK: "attention_mask"},
            ),
        ],
        {"encoder": "encoder_model", "prefill": "decoder_model_merged", "decode": "decoder_model_merged"},
        ["decoder_model_merged"], ["decoder_model_merged"], seen.inputs, once=["encoder_model"], cache=cache,
        tokens={"input": "decoder_input_ids", "start": seen.start(sample)},
    )  # fmt: skip


def named_past(seen: EncoderDecoder) -> dict[str, Any]:
    """Everything is found out; the two lengths of the cache get a name each."""
    leaves = get_leaf_tensors(seen.past)
    cache = [{0: Dim.AUTO, 1: Dim.AUTO, 2: "encoder_past" if is_cross(n) else "past", 3: Dim.AUTO} for n in leaves]
    mask = {STATES_MASK: {0: Dim.AUTO, 1: Dim.AUTO}} if "attention_mask" in seen.arguments else {}
    return {"input_ids": {0: Dim.AUTO, 1: Dim.AUTO}, STATES: {0: Dim.AUTO, 1: Dim.AUTO}, **mask, CACHE: cache}


def decoder_calls(model: Any, decoder: Decoder, seen: EncoderDecoder, tokens: torch.Tensor) -> list[dict[str, Any]]:
    """Several tokens after a past that has a part of the encoder's places; the first tokens; one token later."""
    states = seen.watched.later["encoder_outputs"][0]
    mask = {STATES_MASK: seen.watched.prompt["attention_mask"]} if "attention_mask" in seen.arguments else {}

    def call(first: int, last: int, cache: Any) -> dict[str, Any]:
        given = {"input_ids": tokens[:, first:last].clone(), STATES: states.clone()}
        return given | {name: value.clone() for name, value in mask.items()} | {CACHE: cache}

    empty = cut(seen.past, 0, 0)
    with untouched(model):
        whole = decoder(**call(0, PAST, copy_of(empty)))[1:]
    filled = replace_leaf_tensors(seen.past, [t.clone() for t in whole])
    return [
        call(PAST, PAST + NEW, cut(filled, PAST, KNOWN)),
        call(0, PAST, copy_of(empty)),
        call(PAST, PAST + 1, copy_of(filled)),
        call(0, 1, copy_of(empty)),
    ]
