"""Encoder-decoders: the encoder with the keys and values of cross attention, and a decoder that is given them.

The encoder runs once and gives what every decoder layer computes from its result, so the decoder executes the same
operators for its first token as for every other: one file, and no weight is stored twice.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch

from fairlead._core import InvalidInput
from fairlead.generation.decoder import copy_of, entries
from fairlead.generation.plan import PartPlan, Plan
from fairlead.generation.watch import BATCH, NEW, PAST, Watched, untouched, watch
from fairlead.tree.caches import make_encoder_decoder_cache
from fairlead.tree.caches.kinds import Kind, kind_of
from fairlead.tree.calls import resized
from fairlead.tree.leaves import get_leaf_tensors, replace_leaf_tensors

CACHE, MASK = "past_key_values", "decoder_attention_mask"
KNOWN = ("decoder_input_ids", MASK, "decoder_position_ids", "attention_mask")
ENCODED = 11  # tokens of the encoder in the calls that are made: apart from BATCH, PAST and NEW


class Encoder(torch.nn.Module):
    """The encoder and the cross attention's keys and values, in the order of the cache's leaves.

    They are taken from a step of the decoder; what else that step computes is not in the result, and so not in the
    file.
    """

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, **inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        from transformers import DynamicCache

        model: Any = self.model
        encoded = model.get_encoder()(**inputs, return_dict=True)
        mask = {"attention_mask": inputs["attention_mask"]} if "attention_mask" in inputs else {}
        start = torch.zeros((encoded[0].shape[0], 1), dtype=torch.int64)
        out = self.model(
            encoder_outputs=encoded, decoder_input_ids=start, **mask, use_cache=True, return_dict=True,
            past_key_values=make_encoder_decoder_cache(DynamicCache(), DynamicCache()),
        )  # fmt: skip
        return tuple(t for name, t in get_leaf_tensors(out.past_key_values).items() if is_cross(name))


class Decoder(torch.nn.Module):
    """One step: logits, and the keys and values of self attention."""

    def __init__(self, model: torch.nn.Module, width: int):
        super().__init__()
        self.model, self.width = model, width

    def forward(self, past_key_values: Any, **inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        from transformers.modeling_outputs import BaseModelOutput

        # The decoder asks the encoder's result for its sizes only: its keys and values are in the cache.
        keys = next(t for name, t in get_leaf_tensors(past_key_values).items() if is_cross(name))
        encoded = BaseModelOutput(last_hidden_state=keys.new_zeros(keys.shape[0], keys.shape[2], self.width))
        out = self.model(
            past_key_values=past_key_values, encoder_outputs=encoded, **inputs, use_cache=True, return_dict=True
        )
        own = [t for name, t in get_leaf_tensors(out.past_key_values).items() if not is_cross(name)]
        return (out.logits, *own)


def is_cross(name: str) -> bool:
    return ".encoder." in name


@dataclass
class EncoderDecoder:
    """What a short generation of an encoder-decoder shows."""

    model: Any
    inputs: dict[str, Any]
    watched: Watched
    past: Any  # the cache after the prompt

    @property
    def arguments(self) -> list[str]:
        """Of the decoder, without its cache."""
        left_out: tuple[str, ...] = (CACHE, "encoder_outputs", "cache_position")
        if "attention_mask" not in self.inputs:  # one that generate made for an encoder that does not look at it
            left_out = (*left_out, "attention_mask")
        names = dict.fromkeys([*self.watched.prompt, *self.watched.later])
        found = [n for n in names if n not in left_out]
        if MASK in inspect.signature(self.model.forward).parameters and MASK not in found:
            found.append(MASK)  # with one, the model makes its causal mask at every length, also for one token
        unknown = [n for n in found if n not in KNOWN and n not in self.watched.also]
        if unknown:
            raise InvalidInput(
                f"[export_for_generation] Expected a decoder that takes {', '.join(KNOWN)} and a cache, "
                f"got {type(self.model).__name__} with {unknown[0]} as well. Export its parts with fairlead.export."
            )
        return found

    def tokens(self, length: int) -> torch.Tensor:
        size = self.model.get_output_embeddings().weight.shape[0]
        ids = resized(self.watched.later["decoder_input_ids"], [BATCH, length])
        return torch.remainder(ids + torch.arange(length), size)

    def start(self, sample: dict[str, Any]) -> list[int] | None:
        """The tokens that the decoder starts with, where they are the model's and not the sample's."""
        return self.watched.prompt["decoder_input_ids"][0].tolist() if "decoder_input_ids" not in sample else None


def observed(
    model: Any, sample: dict[str, Any], generation_config: Any = None, encoded: int = ENCODED
) -> EncoderDecoder:
    inputs = batch_from(model, sample, encoded)
    seen = watch(model, inputs, generation_config, also=model.get_encoder())
    if seen.cache != CACHE or kind_of(seen.later[CACHE]) is not Kind.PAIR:
        raise InvalidInput(
            f"[export_for_generation] Expected {type(model).__name__} to decode with a cache for self and cross "
            "attention, got none. Set use_cache=True in its generation config."
        )
    return EncoderDecoder(model, inputs, seen, copy_of(seen.later[CACHE]))


def plan_encoder_decoder(model: Any, sample: dict[str, Any], generation_config: Any = None) -> Plan:
    seen = observed(model, sample, generation_config)
    encoder, past = Encoder(model).eval(), seen.past
    decoder = Decoder(model, seen.watched.later["encoder_outputs"][0].shape[-1]).eval()
    calls = decoder_calls(decoder, seen)
    leaves = list(get_leaf_tensors({CACHE: past}))
    own, cross = [n for n in leaves if not is_cross(n)], [n for n in leaves if is_cross(n)]
    tokens = {"input": "decoder_input_ids", "start": seen.start(sample)}
    cache = [entry for entry in entries(past, CACHE, [[2]] * len(leaves)) if entry["past"] in own]
    return Plan(
        "encoder_decoder",
        [
            PartPlan("encoder", encoder, [{n: v for n, v in seen.watched.also.items() if n in seen.inputs}], cross),
            PartPlan("decoder", decoder, calls, ["logits", *(entry["present"] for entry in cache)]),
        ],
        {"encoder": "encoder", "prefill": "decoder", "decode": "decoder"},
        ["decoder"], ["decoder"], seen.inputs, once=["encoder"], cache=cache, tokens=tokens,
    )  # fmt: skip


def batch_from(model: Any, sample: dict[str, Any], encoded: int) -> dict[str, Any]:
    """The sample with two rows, the second with padding, where it has tokens; audio keeps its length."""
    made = {k: resized(v, [BATCH, *v.shape[1:]]) if is_batch(v) else v for k, v in sample.items()}
    ids = sample.get("input_ids")
    if isinstance(ids, torch.Tensor):
        size = model.get_input_embeddings().weight.shape[0]
        made["input_ids"] = resized(ids, [BATCH, encoded])
        if ids.shape[1] < encoded:
            made["input_ids"] = (made["input_ids"] + torch.arange(encoded)) % size
        mask = torch.ones_like(made["input_ids"])
        mask[1, -2:] = 0
        made["attention_mask"] = mask
    return made


def is_batch(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() > 0


def decoder_calls(decoder: Decoder, seen: EncoderDecoder) -> list[dict[str, Any]]:
    """Several tokens after a past, the first token, one token later: the same arguments at other sizes."""
    names, past, ids = seen.arguments, seen.past, seen.tokens(PAST + NEW)

    def call(first: int, last: int, cache: Any) -> dict[str, Any]:
        made = {
            "decoder_input_ids": ids[:, first:last].clone(),
            MASK: torch.ones(BATCH, last, dtype=torch.int64),
            "decoder_position_ids": torch.arange(first, last)[None].repeat(BATCH, 1),
        }
        return {n: made[n] if n in made else seen.watched.prompt[n].clone() for n in names} | {CACHE: cache}

    empty = cut(past, 0)
    with untouched(seen.model):
        own = decoder(**call(0, PAST, copy_of(empty)))[1:]
    names_own = [n for n in get_leaf_tensors(past) if not is_cross(n)]
    filled = replace_leaf_tensors(past, dict(zip(names_own, (t.clone() for t in own), strict=True)))
    return [
        call(PAST, PAST + NEW, filled),
        call(0, PAST, empty),
        call(PAST, PAST + 1, copy_of(filled)),
        call(0, 1, copy_of(empty)),
    ]


def cut(cache: Any, own: int, cross: int | None = None) -> Any:
    """The cache with this much left of self and of cross attention; None keeps all."""
    leaves = get_leaf_tensors(cache)
    kept = {n: (t.shape[2] if cross is None else cross) if is_cross(n) else own for n, t in leaves.items()}
    return replace_leaf_tensors(cache, [t.narrow(2, 0, kept[n]).clone() for n, t in leaves.items()])
