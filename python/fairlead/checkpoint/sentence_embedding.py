"""Sentence embeddings: the pooling that sentence-transformers writes beside a model, as part of the exported file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from fairlead._core import InvalidInput
from fairlead.checkpoint.source import Checkpoint

KINDS = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean", "pooling_mode_max_tokens": "max"}


@dataclass(frozen=True)
class Pooling:
    kind: str  # cls, mean, max
    normalise: bool


def pooling_of(checkpoint: Checkpoint) -> Pooling | None:
    """From modules.json; None where there is none, or a step in it that is not known here (a note says so)."""
    if checkpoint.gguf_file is not None or not checkpoint.has("modules.json"):
        return None
    modules = checkpoint.read_json("modules.json")
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise InvalidInput(f"[export] Expected a list of steps in '{checkpoint.folder}/modules.json', got another.")
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        checkpoint.notes.append(f"modules.json has {', '.join(kinds)}: sentence_embedding is left to the client")
        return None
    step = str(modules[1].get("path", ""))
    settings = checkpoint.read_json(f"{step}/config.json") if step.isidentifier() or step[:1].isdigit() else None
    if not isinstance(settings, dict) or "/" in step or ".." in step:
        raise InvalidInput(f"[export] Expected a folder with the pooling in modules.json, got {step!r}.")
    chosen = [key for key, value in settings.items() if key.startswith("pooling_mode_") and value is True]
    if len(chosen) != 1 or chosen[0] not in KINDS:
        checkpoint.notes.append(f"the pooling {', '.join(chosen)} is left to the client")
        return None
    return Pooling(KINDS[chosen[0]], "Normalize" in kinds)


class SentenceEmbedding(torch.nn.Module):
    """last_hidden_state as before, and sentence_embedding: one vector per row."""

    def __init__(self, model: torch.nn.Module, pooling: Pooling):
        super().__init__()
        self.model, self.pooling = model, pooling

    def forward(self, **inputs: Any) -> dict[str, torch.Tensor]:
        hidden = self.model(**inputs).last_hidden_state
        mask = inputs["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        if self.pooling.kind == "cls":
            pooled = hidden[:, 0]
        elif self.pooling.kind == "max":
            pooled = hidden.masked_fill(mask == 0, -1e9).amax(1)
        else:
            pooled = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        if self.pooling.normalise:
            pooled = torch.nn.functional.normalize(pooled, p=2, dim=1)
        return {"last_hidden_state": hidden, "sentence_embedding": pooled}
