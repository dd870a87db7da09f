"""From logits to the next token: the rules of a generation config, then greedy choice or a draw."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from fairlead._core import InvalidInput

TINY = 1e-3  # of temperatures
NEVER = -np.inf


@dataclass
class Settings:
    """What steers a generation; the defaults come from generation.json, the caller's arguments go over them."""

    max_new_tokens: int | None = None
    max_length: int | None = None  # prompt and new tokens together, where max_new_tokens is not given
    min_new_tokens: int | None = None
    min_length: int | None = None
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    suppress_tokens: list[int] = field(default_factory=list)
    begin_suppress_tokens: list[int] = field(default_factory=list)
    forced_bos_token_id: int | None = None
    forced_eos_token_id: list[int] = field(default_factory=list)
    bos_token_id: int | None = None
    eos_token_id: list[int] = field(default_factory=list)
    pad_token_id: int | None = None
    num_beams: int = 1

    @classmethod
    def of(cls, defaults: dict[str, Any], given: dict[str, Any]) -> Settings:
        known = {f.name for f in fields(cls)}
        unknown = [name for name in given if name not in known]
        if unknown:
            raise InvalidInput(
                f"[generate] Expected settings among {', '.join(sorted(known))}, got {unknown[0]!r}. Leave it out."
            )
        values = {name: value for name, value in defaults.items() if name in known and value is not None}
        if "max_new_tokens" in given or "max_length" in given:
            values = {k: v for k, v in values.items() if k not in ("max_new_tokens", "max_length")}
        if "min_new_tokens" in given or "min_length" in given:
            values = {k: v for k, v in values.items() if k not in ("min_new_tokens", "min_length")}
        values |= {name: value for name, value in given.items() if value is not None or name in ("top_k", "seed")}
        for name in ("eos_token_id", "forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens"):
            if isinstance(values.get(name), (int, np.integer)):
                values[name] = [int(values[name])]
        if given.get("eos_token_id", ...) is None:  # said so: nothing ends it
            values["eos_token_id"] = []
        settings = cls(**values)
        settings.check()
        return settings

    def check(self) -> None:
        if self.num_beams != 1:
            raise InvalidInput(
                f"[generate] Expected num_beams=1, got {self.num_beams}. The Generator decodes greedily or samples: "
                "pass num_beams=1."
            )
        for name, right, expected in (
            ("max_new_tokens", self.max_new_tokens is None or self.max_new_tokens >= 1, "1 or more"),
            ("temperature", self.temperature > 0, "more than 0 (for the most likely token pass do_sample=False)"),
            ("top_k", self.top_k is None or self.top_k >= 0, "0 (off) or more"),
            ("top_p", 0 < self.top_p <= 1, "in (0, 1]"),
            ("repetition_penalty", self.repetition_penalty > 0, "more than 0"),
        ):
            if not right:
                raise InvalidInput(f"[generate] Expected {name} {expected}, got {getattr(self, name)!r}.")

    def steps(self, prompt: int) -> int:
        if self.max_new_tokens is not None:
            return int(self.max_new_tokens)
        if self.max_length is None:
            return 20  # as transformers has it
        if self.max_length <= prompt:
            raise InvalidInput(
                f"[generate] Expected a prompt shorter than max_length={self.max_length}, got {prompt} tokens. "
                "Pass max_new_tokens."
            )
        return int(self.max_length) - prompt


class Chooser:
    """Chooses one token per row. `tokens` is what was fed and generated so far, `prompt` the length it began with."""

    def __init__(self, settings: Settings, prompt: int, steps: int):
        self.settings, self.prompt, self.last = settings, prompt, prompt + steps - 1
        self.random = np.random.default_rng(settings.seed)
        least = max((settings.min_length or 0) - prompt if settings.min_length else 0, settings.min_new_tokens or 0, 0)
        self.least = prompt + least

    def __call__(self, logits: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        scores = self.processed(np.array(logits, np.float32), tokens)
        if not self.settings.do_sample:
            return np.asarray(scores.argmax(-1))
        return self.draw(self.warped(scores))

    # ---- rules, in the order in which transformers applies them

    def processed(self, scores: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        s, length = self.settings, tokens.shape[1]
        if s.repetition_penalty != 1.0:
            seen = np.take_along_axis(scores, tokens, 1)
            seen = np.where(seen < 0, seen * s.repetition_penalty, seen / s.repetition_penalty)
            np.put_along_axis(scores, tokens, seen, 1)
        if s.no_repeat_ngram_size:
            for row, banned in enumerate(banned_ngrams(tokens, s.no_repeat_ngram_size)):
                scores[row, banned] = NEVER
        if length < self.least and s.eos_token_id:
            suppress(scores, s.eos_token_id)
        if s.forced_bos_token_id is not None and length == 1:
            scores = forced(scores, [s.forced_bos_token_id])
        if s.forced_eos_token_id and length == self.last:
            scores = forced(scores, s.forced_eos_token_id)
        if s.suppress_tokens:
            suppress(scores, s.suppress_tokens)
        if s.begin_suppress_tokens and length == self.prompt:
            suppress(scores, s.begin_suppress_tokens)
        return scores

    def warped(self, scores: np.ndarray) -> np.ndarray:
        s = self.settings
        if s.temperature < TINY:  # they would be infinite, and the difference of two no number
            scores = (scores - scores.max(-1, keepdims=True)).astype(np.float64)
        with np.errstate(over="ignore"):
            scores = scores / s.temperature
        if s.top_k:
            k = min(s.top_k, scores.shape[1])
            threshold = np.partition(scores, -k, 1)[:, -k, None]
            scores = np.where(scores < threshold, NEVER, scores)
        if s.top_p < 1.0:
            order = np.argsort(scores, 1, kind="stable")
            ranked = np.take_along_axis(scores, order, 1)
            remove = softmax(ranked).cumsum(1) <= 1 - s.top_p
            remove[:, -1] = False  # the most likely one stays
            removed = np.zeros_like(remove)
            np.put_along_axis(removed, order, remove, 1)
            scores = np.where(removed, NEVER, scores)
        return scores

    def draw(self, scores: np.ndarray) -> np.ndarray:
        cumulative = softmax(scores).cumsum(1)
        points = self.random.random(len(scores))[:, None] * cumulative[:, -1:]
        return np.asarray((cumulative <= points).sum(1))


def suppress(scores: np.ndarray, tokens: list[int]) -> None:
    """In place; lists of a larger vocabulary than the model's are common."""
    scores[:, [token for token in tokens if token < scores.shape[1]]] = NEVER


def forced(scores: np.ndarray, tokens: list[int]) -> np.ndarray:
    result = np.full_like(scores, NEVER)
    result[:, tokens] = 0
    return result


def softmax(scores: np.ndarray) -> np.ndarray:
    exp = np.exp((scores - scores.max(-1, keepdims=True)).astype(np.float64))
    return np.asarray(exp / exp.sum(-1, keepdims=True))


def banned_ngrams(tokens: np.ndarray, size: int) -> list[list[int]]:
    """Per row the tokens that would repeat an n-gram of this size."""
    length = tokens.shape[1]
    if length + 1 < size:
        return [[] for _ in tokens]
    windows = np.lib.stride_tricks.sliding_window_view(tokens, size, 1) if length >= size else None
    if windows is None:
        return [[] for _ in tokens]
    tail = tokens[:, length - size + 1 :]
    same = (windows[:, :, :-1] == tail[:, None, :]).all(-1)
    return [windows[row, same[row], -1].tolist() for row in range(len(tokens))]
