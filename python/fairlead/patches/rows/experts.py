"""Mixture-of-experts blocks that loop over the experts that were hit."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from fairlead.patches.table import innermost, methods, names_in, register_patch

HIT = {"expert_hit", "expert_hitted"}


class EveryExpert(TorchFunctionMode):
    """The list of experts that were hit is the list of all experts.

    Rules: 1. `nonzero()` of a vector of flags gives the numbers 0 ... n-1, a column, as if every flag were set.
    2. A loop over them, or over what squeeze and [:] make of them, gets numbers that are known while tracing.
    An expert without tokens computes on no rows and adds nothing, so results are the same bits.
    """

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[int, tuple[torch.Tensor, list[Any]]] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        first: Any = args[0] if args else None
        if func is torch.Tensor.nonzero and first.dim() == 1 and not kwargs.get("as_tuple", False):
            count = first.shape[0]
            return self._remember(torch.arange(count, device=first.device).unsqueeze(1), [[n] for n in range(count)])
        if func is torch.Tensor.__format__ and first.dim() == 0:  # Switch: self[f"expert_{number}"]
            return format(first.item(), args[1])
        known = self.known.get(id(first)) if isinstance(first, torch.Tensor) else None
        if known is None:
            return func(*args, **kwargs)
        if func is torch.Tensor.unbind:
            return tuple(torch.tensor(item, device=first.device) for item in known[1])
        result = func(*args, **kwargs)
        if func is torch.Tensor.squeeze:
            return self._remember(result, [item[0] for item in known[1]])
        if func is torch.Tensor.__getitem__ and args[1] == slice(None):
            return self._remember(result, known[1])
        return result

    def _remember(self, tensor: torch.Tensor, values: Any) -> Any:
        self.known[id(tensor)] = (tensor, values)
        return tensor


class EveryExpertRecorded(EveryExpert):
    """The same for a recording, which has real values: 3. an expert without tokens does not skip its loop either.
    `if token_idx.numel() == 0: continue` saves time alone, and would make the runs part.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.Tensor.numel and args[0].dim() == 1 and args[0].dtype == torch.int64:
            with torch._C.DisableTorchFunction():  # a size that remembers would be a question about the tokens
                return max(1, args[0].shape[0])
        if func in (torch.Tensor.item, torch.Tensor.__int__, torch.Tensor.__index__) and id(args[0]) in self.known:
            value = self.known[id(args[0])][1]
            return value[0] if isinstance(value, list) else value
        if func is torch.Tensor.unbind and id(args[0]) in self.known:
            values = self.known[id(args[0])][1]
            return tuple(self._remember(torch.tensor(item, device=args[0].device), item) for item in values)
        return super().__torch_function__(func, types, args, kwargs)


def _loops(cls: Any, name: str, function: Any) -> bool:
    names = names_in(innermost(function))
    return name == "forward" and "nonzero" in names and bool(HIT & names)


def _without_fallback() -> bool:
    """True where the grouped matrix product is torch._grouped_mm alone, which is traced for bfloat16 only."""
    try:
        from transformers.integrations import moe
    except ImportError:
        return False
    return hasattr(moe, "grouped_mm_experts_forward") and not hasattr(moe, "_grouped_mm_fallback")


def under(mode: Any, original: Any, loop: Any) -> Any:
    """`loop` in place of `original`, run under a mode of its own."""

    @functools.wraps(original)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        with mode():
            return loop(self, *args, **kwargs)

    return forward


@register_patch(
    "dynamo",
    lambda: methods(_loops),
    name="every_expert",
    problem="`for expert_idx in expert_hit` goes round as often as a value says: GuardOnDataDependentSymNode: Could "
    "not guard on data-dependent expression Eq(u0, 0). In 5.0 the grouped product that replaces the loop fails: "
    "RuntimeError: Expected inputs of BF16 type but got mat_a.dtype=torch.float32.",
    remedy="The loop goes over every expert; one without tokens adds nothing. In 5.0 the loop is taken.",
    versions="4.53 and later (4.51 loops over every expert itself)",
    looked_for="loops over expert_hit (Mixtral, Qwen2-MoE, Qwen3-MoE, DBRX, Switch since 5.0 ...)",
    tolerance=1e-6,
)
def every_expert(original: Any) -> Any:
    return under(EveryExpert, original, innermost(original) if _without_fallback() else original)


@register_patch(
    "observe",
    lambda: methods(_loops),
    name="every_expert_recorded",
    problem="`for expert_idx in expert_hit` executes the operators of the experts that were hit, so two runs part: "
    "Expected the model to execute the same operators at every size.",
    remedy="The loop goes over every expert; one without tokens adds nothing.",
    versions="4.53 and later",
    looked_for="loops over expert_hit (DBRX, LongCat-Flash, NLLB-MoE, Switch ...)",
    tolerance=1e-6,
)
def every_expert_recorded(original: Any) -> Any:
    return under(EveryExpertRecorded, original, original)


def _casts_classifier(cls: Any, name: str, function: Any) -> bool:
    names = names_in(function) if cls.__name__.endswith("Router") else set()
    return name in ("forward", "_cast_classifier") and {"classifier", "to", "dtype"} <= names


@register_patch(
    "dynamo",
    lambda: methods(_casts_classifier),
    name="classifier_is_cast_already",
    problem="A router casts its weights at every call, `self.classifier = self.classifier.to(self.dtype)`: "
    "RuntimeError: _apply(): Couldn't swap Linear.weight.",
    remedy="A classifier that has the dtype already is left alone; one that has not still fails: cast it before.",
    versions="all",
    looked_for="routers of Switch Transformers and NLLB-MoE",
)
def classifier_is_cast_already(original: Any) -> Any:
    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        classifier = self.classifier
        if classifier.weight.dtype != self.dtype:
            return original(self, *args, **kwargs)
        vars(classifier)["to"] = lambda *_, **__: classifier
        try:
            return original(self, *args, **kwargs)
        finally:
            vars(classifier).pop("to", None)

    return method
