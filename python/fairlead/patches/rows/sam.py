"""SAM up to 4.53: whether there are prompts is read from a value."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from fairlead.patches.table import methods, names_in, register_patch

ABSENT = "_fairlead_no_prompt"


class Promised(TorchFunctionMode):
    """A number that is read while tracing is zero, or is not; the program checks it when it runs."""

    def __init__(self, zero: bool):
        super().__init__()
        self.zero = zero

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is torch.Tensor.item and isinstance(result, (torch.SymFloat, torch.SymInt)):
            torch._check(result == 0 if self.zero else result != 0)
        return result


@register_patch(
    "dynamo",
    lambda: methods(lambda cls, name, f: name == "forward" and cls.__name__ == "SamPromptEncoder" and _has_zeros(f)),
    name="prompts_are_marked",
    problem="A call without points and boxes is told apart by a sum of zero (see prompts_without_a_value).",
    remedy="The zeros that stand for no prompt are marked.",
    versions="up to 4.53",
    looked_for="SamPromptEncoder.forward",
)
def prompts_are_marked(original: Any) -> Any:
    @functools.wraps(original)
    def forward(self: Any, input_points: Any, input_labels: Any, input_boxes: Any, input_masks: Any) -> Any:
        sparse, dense = original(self, input_points, input_labels, input_boxes, input_masks)
        if input_points is None and input_boxes is None:
            setattr(sparse, ABSENT, True)
        return sparse, dense

    return forward


def _has_zeros(function: Any) -> bool:
    return {"sparse_embeddings", "zeros"} <= names_in(function)


@register_patch(
    "dynamo",
    lambda: methods(lambda cls, name, f: name == "forward" and cls.__name__ == "SamMaskDecoder" and _reads_sum(f)),
    name="prompts_without_a_value",
    problem="`if sparse_prompt_embeddings.sum().item() != 0`: GuardOnDataDependentSymNode: Could not guard on "
    "data-dependent expression Ne(zuf0, 0.0).",
    remedy="Whether there are prompts is known from the call; the program checks the sum when it runs.",
    versions="up to 4.53",
    looked_for="SamMaskDecoder.forward",
)
def prompts_without_a_value(original: Any) -> Any:
    @functools.wraps(original)
    def forward(
        self: Any,
        image_embeddings: Any,
        image_positional_embeddings: Any,
        sparse_prompt_embeddings: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        with Promised(zero=getattr(sparse_prompt_embeddings, ABSENT, False)):
            return original(
                self, image_embeddings, image_positional_embeddings, sparse_prompt_embeddings, *args, **kwargs
            )

    return forward


def _reads_sum(function: Any) -> bool:
    return {"sparse_prompt_embeddings", "sum", "item"} <= names_in(function)
