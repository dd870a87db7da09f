"""Vision-language models in parts, each recorded from the model's own Python.

image_encoder   pixel values (and what goes with them) -> what the projector takes, or image_features [tokens, width]
projector       -> image_features, where the model has one
embedding       input_ids -> inputs_embeds
merge           input_ids, inputs_embeds, image_features -> inputs_embeds with the images in their places
language_model  inputs_embeds, attention_mask, position_ids, a cache -> last_hidden_state and the cache
lm_head         last_hidden_state -> logits

Features that go into deeper layers (Qwen3-VL) are spread over the whole text by `merge`: zero where there is no image.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch.export import Dim

from fairlead._core import InvalidInput
from fairlead.generation.cuts import arguments_of, as_first_step, replaced, without_checks
from fairlead.generation.decoder import LENGTH, copy_of, empty_like, entries
from fairlead.generation.images import INNER, flat_features, image_parts
from fairlead.generation.plan import PartPlan, Plan, present_names
from fairlead.generation.position_rules import rule_for
from fairlead.generation.watch import BATCH, NEW, PAST, Watched, untouched, watch
from fairlead.tree.leaves import get_leaf_tensors

CACHE = "past_key_values"
NAMED = ("inputs_embeds", "attention_mask", "position_ids", CACHE)
TEXT = {0: "batch", 1: "sequence"}
SPARE = 257  # rows of features in made-up calls: more than any text of theirs has image tokens


def encodes_images(model: Any) -> bool:
    """Whether generate() encodes images for it."""
    base = getattr(model, "base_model", model)
    return callable(getattr(base, "get_image_features", None))


def plan_multimodal(model: Any, sample: dict[str, Any], generation_config: Any = None) -> Plan:
    if "mm_encoder_outputs" not in inspect.signature(model.forward).parameters:
        raise InvalidInput(
            f"[export_for_generation] Expected {type(model).__name__}.forward to take mm_encoder_outputs, which "
            "Transformers 5.22 has. Update transformers, or export its parts with fairlead.export."
        )
    return Parts(model, sample, generation_config).plan()


class Pieces:
    """The modules of the model between which it is cut."""

    def __init__(self, model: Any):
        self.model, self.base, self.language = model, model.base_model, model.get_decoder()
        self.embedding = model.get_input_embeddings()


class Embedding(torch.nn.Module):
    def __init__(self, pieces: Pieces, positions: int):
        super().__init__()
        self.base, self.rank, self._language = pieces.base, positions, [pieces.language]

    def forward(self, input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        positions = input_ids if self.rank == 2 else input_ids[None].repeat(3, 1, 1)
        call = arguments_of(self._language[0], lambda: self.base(input_ids=input_ids, position_ids=positions))
        return {"inputs_embeds": call["inputs_embeds"]}


class Merge(torch.nn.Module):
    """The model's forward up to its language model, its embedding being given and its images encoded."""

    def __init__(self, pieces: Pieces, positions: int, encoded: Any):
        super().__init__()
        self.base, self.rank, self.encoded = pieces.base, positions, encoded
        self._inner = [pieces.language, pieces.embedding]

    def forward(self, input_ids: torch.Tensor, inputs_embeds: torch.Tensor, **features: torch.Tensor) -> dict[str, Any]:
        language, embedding = self._inner
        positions = input_ids if self.rank == 2 else input_ids[None].repeat(3, 1, 1)
        encoded = {"image": as_encoded(self.encoded, features)}

        def run() -> Any:
            return self.base(input_ids=input_ids, position_ids=positions, mm_encoder_outputs=encoded)

        with without_checks(), replaced(embedding, "forward", lambda *_, **__: inputs_embeds):
            call = arguments_of(language, run)
        return {"merged_embeds": call["inputs_embeds"]} | spread_features(call)


def as_encoded(like: Any, features: dict[str, torch.Tensor]) -> Any:
    """An encoder's result like the one that was seen, of these features."""
    made = type(like)()
    for field, value in like.items():
        if field in INNER or value is None:
            continue
        if field == "pooler_output":
            flat = features["image_features"]
            made[field] = flat if isinstance(value, torch.Tensor) else (flat,)
        else:
            flats = [features[f"{field}.{k}"] for k in range(len(value))]
            made[field] = [f if isinstance(v, torch.Tensor) else (f,) for f, v in zip(flats, value, strict=True)]
    return made


def spread_features(call: Mapping[Any, Any]) -> dict[str, torch.Tensor]:
    """Features of deeper layers over the whole text, [batch, sequence, width]."""
    embeds, mask = call.get("deepstack_visual_embeds"), call.get("visual_pos_masks")
    if not embeds or mask is None:
        return {}
    return {
        f"deepstack_visual_embeds.{k}": torch.zeros(*mask.shape, one.shape[-1], dtype=one.dtype).masked_scatter(
            mask[..., None], one
        )
        for k, one in enumerate(embeds)
    }


class LanguageModel(torch.nn.Module):
    """The model's forward on embeddings: masks and positions are its own, deeper features go into every place."""

    def __init__(self, pieces: Pieces):
        super().__init__()
        self.base, self._language = pieces.base, [pieces.language]

    def forward(self, inputs_embeds: torch.Tensor, past_key_values: Any, **inputs: Any) -> dict[str, Any]:
        deeper = inputs.pop("deepstack_visual_embeds", None)
        language = self._language[0]
        plain = language.forward

        def with_features(*args: Any, **kwargs: Any) -> Any:
            kwargs["visual_pos_masks"] = torch.ones(inputs_embeds.shape[:2], dtype=torch.bool)
            kwargs["deepstack_visual_embeds"] = [one.reshape(-1, one.shape[-1]) for one in deeper]
            return plain(*args, **kwargs)

        def run() -> Any:
            return self.base(
                inputs_embeds=inputs_embeds, past_key_values=past_key_values, **inputs, use_cache=True, return_dict=True
            )

        with as_first_step():
            if deeper is None:
                out = run()
            else:
                with replaced(language, "forward", with_features):
                    out = run()
        return {"last_hidden_state": out.last_hidden_state, CACHE: out.past_key_values}


class Head(torch.nn.Module):
    """The model's forward after its base model: projection to the vocabulary, and what a model adds to it."""

    def __init__(self, pieces: Pieces, result: type):
        super().__init__()
        self.model, self.result = pieces.model, result

    def forward(self, last_hidden_state: torch.Tensor) -> dict[str, torch.Tensor]:
        given = self.result(last_hidden_state=last_hidden_state)
        with replaced(self.model.base_model, "forward", lambda *_, **__: given):
            return {"logits": self.model(inputs_embeds=last_hidden_state, return_dict=True).logits}


class Parts:
    def __init__(self, model: Any, sample: dict[str, Any], generation_config: Any):
        self.model, self.pieces = model, Pieces(model)
        self.sample = doubled(sample)
        self.seen: Watched = watch(
            model, self.sample, generation_config, also=self.pieces.base, method="get_image_features"
        )
        images = (self.seen.prompt.get("mm_encoder_outputs") or {}).get("image")
        if images is None:
            raise InvalidInput(
                f"[export_for_generation] Expected a sample with images for {type(model).__name__}, got "
                f"{', '.join(self.sample)}. Pass what the processor returns for a text with an image."
            )
        self.encoded = images
        positions = self.seen.prompt.get("position_ids")
        self.rank = 2 if positions is None else positions.dim()
        self.position_rows = 0 if positions is None or self.rank == 2 else positions.shape[0]

    def plan(self) -> Plan:
        images, grid = image_parts(self.model, self.seen.also)
        parts = [*images, *self.embedding_and_merge()]
        language, cache, prompt_only = self.language_model()
        parts += [language, self.head()]
        names = [part.name for part in parts]
        return Plan(
            "multimodal", parts, {name: name for name in names},
            ["embedding", "merge", "language_model", "lm_head"], ["embedding", "language_model", "lm_head"],
            self.sample, once=[part.name for part in images], cache=cache, prompt_only=prompt_only,
            positions=rule_for(self.model, self.sample, self.seen), grid=grid,
        )  # fmt: skip

    def tokens(self) -> torch.Tensor:
        """[2, 10], three image tokens per row among tokens of the sample."""
        text, image = self.sample["input_ids"], self.model.config.image_token_id
        others = text[text != image]
        ids: torch.Tensor = others[torch.arange(BATCH * LENGTH) % len(others)].reshape(BATCH, LENGTH).clone()
        ids[:, 4:7] = image
        return ids

    def embedding_and_merge(self) -> list[PartPlan]:
        ids = self.tokens()
        embedding = Embedding(self.pieces, self.rank).eval()
        merge = Merge(self.pieces, self.rank, self.encoded).eval()
        features = {name: one[torch.arange(SPARE) % one.shape[0]] for name, one in flat_features(self.encoded).items()}
        with untouched(self.model):
            embeds = embedding(ids)["inputs_embeds"]
            call = {"input_ids": ids, "inputs_embeds": embeds, **features}
            self.merged = merge(**call)
        return [
            PartPlan("embedding", embedding, [{"input_ids": ids}]),
            PartPlan(
                "merge",
                merge,
                [call],
                list(self.merged),
                gives={"merged_embeds": "inputs_embeds"},
                dynamic_shapes={"input_ids": TEXT, "inputs_embeds": TEXT}
                | {name: {0: "image_tokens"} for name in features},
            ),
        ]

    def language_model(self) -> tuple[PartPlan, list[dict[str, Any]], dict[str, Any]]:
        from transformers import DynamicCache

        module = LanguageModel(self.pieces).eval()
        with untouched(self.model):
            filled = module(**self.language_call(0, PAST, DynamicCache()))
        past = copy_of(filled[CACHE])
        calls = [
            self.language_call(PAST, LENGTH, copy_of(past)),
            self.language_call(0, PAST, empty_like(past)),
            self.language_call(PAST, PAST + 1, copy_of(past)),
        ]
        outputs = ["last_hidden_state", *present_names(past)]
        cache = entries(past, CACHE, [[2]] * len(present_names(past)))
        only = {
            name: {"dtype": str(t.dtype).removeprefix("torch."), "shape": ["batch", "sequence", *t.shape[2:]]}
            for name, t in get_leaf_tensors(calls[0]).items()
            if name.partition(".")[0] not in NAMED
        }
        self.hidden = filled["last_hidden_state"]
        return PartPlan("language_model", module, calls, outputs, self.language_shapes(calls[0])), cache, only

    def language_shapes(self, call: dict[str, Any]) -> dict[str, Any]:
        """Which dims are one: types of tokens would also run at another length than the tokens have."""
        shapes: dict[str, Any] = {"attention_mask": {0: "batch", 1: Dim.AUTO}}
        shapes["position_ids"] = TEXT if self.rank == 2 else {1: "batch", 2: "sequence"}
        shapes[CACHE] = [{0: "batch", 2: "past"} for _ in get_leaf_tensors(call[CACHE])]
        for name, value in call.items():
            if name not in shapes:
                shapes[name] = TEXT if isinstance(value, torch.Tensor) else [TEXT for _ in value]
        return shapes

    def language_call(self, first: int, last: int, cache: Any) -> dict[str, Any]:
        mask = torch.ones(BATCH, LENGTH, dtype=torch.int64)
        mask[1, :2] = 0
        positions = (mask.cumsum(-1) - 1).masked_fill(mask == 0, 0)[:, first:last]
        if self.rank == 3:
            positions = positions[None].repeat(self.position_rows, 1, 1)
        call = {
            "inputs_embeds": self.merged["merged_embeds"][:, first:last].clone(),
            "attention_mask": mask[:, :last].clone(),
            "position_ids": positions.clone(),
            CACHE: cache,
        }
        deeper = [t[:, first:last].clone() for n, t in self.merged.items() if n.startswith("deepstack")]
        if deeper:
            call["deepstack_visual_embeds"] = deeper
        if "token_type_ids" in self.seen.prompt:
            types = torch.zeros(BATCH, LENGTH, dtype=self.seen.prompt["token_type_ids"].dtype)
            types[:, 4:7] = 1
            call["token_type_ids"] = types[:, first:last].clone()
        return call

    def head(self) -> PartPlan:
        module = Head(self.pieces, self.result_class()).eval()
        call = {"last_hidden_state": self.hidden[:, :NEW].clone()}
        return PartPlan("lm_head", module, [call], dynamic_shapes=dict.fromkeys(call, TEXT), last="last_hidden_state")

    def result_class(self) -> type:
        """The class of what the base model returns: the head's forward looks at its fields."""
        call = {name: value for name, value in self.language_call(0, PAST, None).items() if name in NAMED}
        with untouched(self.model):
            return type(self.pieces.base(**call, return_dict=True))


def doubled(sample: dict[str, Any]) -> dict[str, Any]:
    """Two of every row, the later ones padded on the left: every argument shows itself."""
    made = {
        name: torch.cat([value, value]) if isinstance(value, torch.Tensor) and value.dim() else value
        for name, value in sample.items()
    }
    ids = made.get("input_ids")
    if not isinstance(ids, torch.Tensor) or ids.dim() != 2:
        raise InvalidInput(
            "[export_for_generation] Expected input_ids as a tensor [batch, length] among the sample inputs, got "
            f"{type(ids).__name__}. Pass what model.generate takes."
        )
    shape = ids.shape
    mask = made.get("attention_mask", torch.ones_like(ids))
    for name, value in made.items():
        if isinstance(value, torch.Tensor) and value.shape == shape:
            made[name] = torch.cat([value[:, -1:].repeat(1, 2), value], 1)
    before = torch.ones(len(ids), 2, dtype=mask.dtype)
    before[1:] = 0
    made["attention_mask"] = torch.cat([before, mask], 1)
    return made
