"""Text decoders: one file that serves the prompt and every token after it.

The file takes a cache of any length, also none. A model whose state does not grow with the text (Mamba) executes other
operators for the prompt than for a token: it gets two files.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.export import Dim

from fairlead._core import InvalidInput
from fairlead.generation.plan import PartPlan, Plan, Step, present_names
from fairlead.generation.watch import BATCH, NEW, PAST, Watched, untouched, watch
from fairlead.tree.calls import resized
from fairlead.tree.dtypes import DTYPES
from fairlead.tree.leaves import get_leaf_tensors, replace_leaf_tensors

LENGTH = PAST + NEW


def plan_decoder(model: Any, sample: dict[str, Any], generation_config: Any = None) -> Plan:
    ids, mask = prompt_from(model, sample)
    inputs = {"input_ids": ids[:, :PAST], "attention_mask": mask[:, :PAST]}
    seen = watch(model, inputs, generation_config)
    if not seen.cache:
        raise InvalidInput(
            f"[export_for_generation] Expected {type(model).__name__} to be given a cache for the second token, "
            "got none. Set use_cache=True in its generation config, or export it with fairlead.export."
        )
    whole = without_window(seen.later[seen.cache])
    if whole is not None:
        seen = watch(model, inputs, generation_config, **{seen.cache: whole})
    calls = Calls(model, seen, ids, mask)
    plan = one_file if calls.grows() else two_files
    return plan(calls, inputs)


def prompt_from(model: Any, sample: dict[str, Any], wanted: int = LENGTH) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens [2, wanted] made from the sample's, and their mask, with padding: every argument shows itself."""
    ids = sample.get("input_ids", sample.get("inputs"))
    if not isinstance(ids, torch.Tensor) or ids.dim() != 2 or not ids.numel():
        raise InvalidInput(
            "[export_for_generation] Expected input_ids as a tensor [batch, length] among the sample inputs, got "
            f"{type(ids).__name__}. Pass what model.generate takes."
        )
    length = ids.shape[1]
    made = resized(ids, [BATCH, wanted])
    if length < wanted:  # different tokens, so that the sample of one token is as good as a long one
        size = model.get_input_embeddings().weight.shape[0]
        made = (made + torch.arange(wanted)) % size
    mask = torch.ones_like(made)
    mask[1, :2] = 0
    return made, mask


def without_window(cache: Any) -> Any:
    """An empty cache like this one whose layers keep everything, where some keep a window only; else None.

    A window is then kept by the mask, which hides what is outside: the numbers are the same, and the length of every
    layer is one symbol.
    """
    layers = getattr(cache, "layers", None)
    if layers is None or not any(getattr(layer, "is_sliding", False) for layer in layers):
        return None
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    if any(type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers):
        return None
    return DynamicCache()


class Calls:
    """Calls of the model as generate makes them, at other sizes and after other lengths."""

    def __init__(self, model: Any, seen: Watched, ids: torch.Tensor, mask: torch.Tensor):
        self.model, self.seen, self.ids, self.mask = model, seen, ids, mask
        self.step = Step(model, seen.cache).eval()
        # Releases before 5.20 tell a state that it has begun by the place of the token; others find it by themselves.
        place = {"cache_position": torch.tensor([PAST])} if "cache_position" in seen.later else {}
        self.token = Step(model, seen.cache, place).eval()
        with untouched(model):
            # A state is begun by the model itself; a cache that grows is the one that generate made.
            given = seen.cache in seen.prompt and seen.cache != "cache_params"
            start = {seen.cache: seen.prompt[seen.cache]} if given else {}
            self.after_past = self.step(**self.named(seen.prompt, 0, PAST, start))["past_key_values"]
            self.after_past = copy_of(self.after_past)
            alone = {name: t[:1] for name, t in self.named(seen.prompt, 0, PAST, {}).items()}
            self.after_one_row = get_leaf_tensors(self.step(**alone)["past_key_values"])

    def named(self, names: Any, first: int, last: int, cache: dict[str, Any]) -> dict[str, Any]:
        """The arguments with these names for the tokens from `first` to `last`."""
        positions = (self.mask.cumsum(-1) - 1).masked_fill(self.mask == 0, 0)
        made = {
            "input_ids": self.ids[:, first:last].clone(),
            "attention_mask": self.mask[:, :last].clone(),
            "position_ids": positions[:, first:last].clone(),
        }
        unknown = [name for name in names if name not in (*made, self.seen.cache, "cache_position")]
        if unknown:
            raise InvalidInput(
                f"[export_for_generation] Expected a text decoder that takes {', '.join(made)} and a cache, got "
                f"{type(self.model).__name__} with {unknown[0]} as well. Export it with fairlead.export."
            )
        return {name: made[name] for name in names if name in made} | cache

    def batches(self) -> list[int]:
        """Per tensor of the cache the axis of the batch: some have that of the layers before it."""
        return [
            next((axis for axis in range(t.dim()) if t.shape[axis] != self.after_one_row[name].shape[axis]), 0)
            for name, t in get_leaf_tensors(self.after_past).items()
        ]

    def grows(self) -> bool:
        """Whether everything in the cache grows with the text."""
        return all(self.growing)

    @functools.cached_property
    def growing(self) -> list[dict[int, Any]]:
        """Per tensor of the cache the axis that grows with the text, {} where none does: by experiment."""
        before = get_leaf_tensors(self.after_past)
        with untouched(self.model):
            call = self.named(self.seen.later, PAST, PAST + 1, {self.seen.cache: copy_of(self.after_past)})
            after = get_leaf_tensors(self.token(**call)["past_key_values"])
        return [
            {axis: Dim.AUTO for axis in range(t.dim()) if t.shape[axis] != after[name].shape[axis]}
            for name, t in before.items()
        ]

    def names(self) -> list[str]:
        """Inputs of the one file: the mask stays, also where generate left it out because it was all ones."""
        return list(dict.fromkeys([*self.seen.prompt, *self.seen.later]))


def copy_of(cache: Any) -> Any:
    return replace_leaf_tensors(cache, [t.detach().clone() for t in get_leaf_tensors(cache).values()])


def empty_like(cache: Any, axis: int = 2) -> Any:
    return replace_leaf_tensors(cache, [t.narrow(axis, 0, 0).clone() for t in get_leaf_tensors(cache).values()])


def entries(cache: Any, argument: str, growing: list[Any], batches: list[int] | None = None) -> list[dict[str, Any]]:
    """The cache's tensors for generation.json."""
    found = []
    leaves = get_leaf_tensors({argument: cache})
    rows = [0] * len(leaves) if batches is None else batches
    for (name, tensor), present, axes, row in zip(leaves.items(), present_names(cache), growing, rows, strict=True):
        shape: list[Any] = list(tensor.shape)
        shape[row] = "batch"
        for axis in axes:
            shape[axis] = "past"
        found.append({"past": name, "present": present, "dtype": DTYPES[tensor.dtype], "shape": shape})
    return found


def positions_of(names: list[str]) -> dict[str, Any] | None:
    return {"kind": "mask"} if "position_ids" in names else None


def one_file(calls: Calls, sample: dict[str, Any]) -> Plan:
    names, cache = calls.names(), calls.seen.cache
    past = calls.after_past
    made = [
        calls.named(names, PAST, LENGTH, {cache: copy_of(past)}),
        calls.named(names, 0, PAST, {cache: empty_like(past)}),
        calls.named(names, PAST, PAST + 1, {cache: copy_of(past)}),
    ]
    part = PartPlan("model", calls.step, made, ["logits", *present_names(past)])
    return Plan(
        "decoder", [part], {"prefill": "model", "decode": "model"}, ["model"], ["model"], sample,
        cache=entries(past, cache, calls.growing), positions=positions_of(names),
    )  # fmt: skip


def two_files(calls: Calls, sample: dict[str, Any]) -> Plan:
    """The prompt, which gives a state, and one token after it, which takes and gives one."""
    seen, cache, past = calls.seen, calls.seen.cache, calls.after_past
    outputs = ["logits", *present_names(past)]
    lengths = prompt_lengths(calls.model)
    longer = Calls(calls.model, seen, *prompt_from(calls.model, {"input_ids": calls.ids}, max(lengths)))
    prefill = [longer.named(seen.prompt, 0, length, {}) for length in lengths]
    decode = [calls.named(seen.later, PAST, PAST + 1, {cache: copy_of(past)})]
    # Below the shortest call a state may not be full yet, which is another program: it is tried afterwards.
    length = Dim("sequence", min=min(lengths))
    prompt = {name: {0: "batch", 1: length} for name in prefill[0]}
    shapes: dict[str, Any] = {name: {0: Dim.AUTO} for name in decode[0] if name != cache}
    if "attention_mask" in shapes:  # as long as the text, beside a state that is not
        shapes["attention_mask"][1] = Dim.AUTO
    shapes[cache] = [{row: Dim.AUTO} | grown for row, grown in zip(calls.batches(), calls.growing, strict=True)]
    return Plan(
        "decoder",
        [
            PartPlan("prefill", calls.step, prefill, outputs, prompt, shortest="input_ids"),
            PartPlan("decode", calls.token, decode, outputs, dynamic_shapes=shapes),
        ],
        {"prefill": "prefill", "decode": "decode"}, ["prefill"], ["decode"], sample,
        cache=entries(past, cache, calls.growing, calls.batches()), positions=positions_of(calls.names()),
    )  # fmt: skip


def prompt_lengths(model: Any) -> list[int]:
    """Lengths of several blocks, where a model works through the prompt in blocks, none of them whole; then short ones.

    Numbers of blocks that differ are what tells how many there are.
    """
    config = model.config.get_text_config()
    named = [v for k, v in config.to_dict().items() if k.endswith("chunk_size") and isinstance(v, int) and v > 0]
    block = max(named, default=8)
    return [2 * block + 3, 3 * block + 2, 4 * block + 3, 6 * block + 5, block, 8]
