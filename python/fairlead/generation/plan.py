"""What is to be exported for a generative model: its parts, and how they hang together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from fairlead.tree.leaves import get_leaf_tensors


@dataclass
class PartPlan:
    """One file: a module, and the calls that tell its dimensions apart; the first has every size at 2 or more."""

    name: str
    module: torch.nn.Module
    calls: list[dict[str, Any]]
    output_names: list[str] | None = None
    dynamic_shapes: Any = None  # as fairlead.export takes them; None: found out
    shortest: str | None = None  # the input whose smallest length is to be found out
    gives: dict[str, str] | None = None  # outputs that go on under another name
    takes: dict[str, str] | None = None  # inputs that are something else by another name
    last: str | None = None  # the input of which only the last place is needed
    optional: str | None = None  # the input without which the part has nothing to do


@dataclass
class Plan:
    kind: str  # decoder, encoder_decoder, multimodal
    parts: list[PartPlan]
    components: dict[str, str]  # what is returned: component -> part
    prefill: list[str]
    step: list[str]
    sample: dict[str, Any] = field(default_factory=dict)  # arguments of generate, with padding
    once: list[str] = field(default_factory=list)
    cache: list[dict[str, Any]] = field(default_factory=list)
    prompt_only: dict[str, Any] = field(default_factory=dict)
    positions: dict[str, Any] | None = None
    grid: dict[str, Any] | None = None  # inputs that are made from the grid of an image's patches
    tokens: dict[str, Any] = field(default_factory=lambda: {"input": "input_ids", "start": None})


class Step(torch.nn.Module):
    """One step of a generation: logits and cache, whatever else the model returns."""

    def __init__(self, model: torch.nn.Module, cache: str, constants: dict[str, Any] | None = None):
        super().__init__()
        self.model, self.cache = model, cache
        self.constants = {"use_cache": True, "return_dict": True} | (constants or {})

    def forward(self, **inputs: Any) -> dict[str, Any]:
        out = self.model(**inputs, **self.constants)
        return {"logits": out.logits, "past_key_values": out[self.cache]}


def present_names(cache: Any) -> list[str]:
    """`0.key` -> `present.0.key`, in the order of the cache's leaves."""
    return [name.replace("past_key_values.", "present.", 1) for name in get_leaf_tensors(cache)]
