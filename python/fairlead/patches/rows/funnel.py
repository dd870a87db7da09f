"""Funnel: relative positions of sequences that are pooled from block to block."""

from __future__ import annotations

import functools
from typing import Any

import torch

from fairlead.patches.table import bindings, methods, names_in, register_patch


class Positions:
    """The positions of the tokens of a block: the first, then `count - 1` more from `second` in steps of `step`."""

    def __init__(self, first: Any, second: Any, step: Any, count: Any) -> None:
        self.first, self.second, self.step, self.count = first, second, step, count

    @property
    def last(self) -> Any:
        return self.first if self.count == 1 else self.second + (self.count - 2) * self.step

    def pooled(self, block: int, separate_cls: bool, truncate_seq: bool) -> Positions:
        """Every second of them; with a token apart at the front, that one at a place of its own."""
        if not separate_cls:
            return Positions(self.first, self.first + 2 * self.step, 2 * self.step, (self.count + 1) // 2)
        rest = self.count - 2 if truncate_seq else self.count - 1
        return Positions(-(2**block) + 1, self.second, 2 * self.step, 1 + (rest + 1) // 2)


def _relative(positions: Positions, stride: int, pooled: Positions, shift: int, device: Any) -> torch.Tensor:
    most = pooled.first - positions.first + shift * pooled.count * stride
    least = pooled.first - positions.last
    return torch.arange(most, least - 1, -stride, dtype=torch.long, device=device)


def _lists_positions(cls: Any, name: str, function: Any) -> bool:
    return name == "get_position_embeds" and {"pooled_pos", "position_embeds_pooling", "seq_len"} <= names_in(function)


@register_patch(
    "dynamo",
    lambda: methods(_lists_positions),
    name="positions_by_arithmetic",
    problem="Positions are kept in a Python list of as many numbers as there are tokens (a tensor whose ends are read, "
    "up to 5.0): the length becomes a constant (AssertionError: Guard failed: input_ids.size()[1] == 9).",
    remedy="Positions are a first number, a step and a count, so that sizes stay expressions.",
    versions="all",
    looked_for="FunnelAttentionStructure.get_position_embeds",
)
def positions_by_arithmetic(original: Any) -> Any:
    @functools.wraps(original)
    def get_position_embeds(self: Any, seq_len: Any, dtype: Any, device: Any) -> Any:
        config = self.config
        if config.attention_type == "factorized":
            return original(self, seq_len, dtype, device)
        half = config.d_model // 2
        steps = torch.arange(0, half, 1.0, dtype=torch.int64, device=device).to(dtype)
        frequencies = 1 / (10000 ** (steps / half))
        distances = torch.arange(-seq_len * 2, seq_len * 2, 1.0, dtype=torch.int64, device=device).to(dtype)
        angles = distances[:, None] * frequencies[None]
        table = torch.cat([self.sin_dropout(torch.sin(angles)), self.cos_dropout(torch.cos(angles))], dim=-1)

        def embeds(relative: Any) -> Any:
            # A lookup of rows, as the original's gather of an index that is the same in every column.
            return table[relative + seq_len * 2]

        positions = Positions(0, 1, 1, seq_len)
        found = []
        for block in range(config.num_blocks):
            pooling = None
            if block > 0:
                pooled = positions.pooled(block, config.separate_cls, config.truncate_seq)
                pooling = embeds(_relative(positions, 2 ** (block - 1), pooled, 2, device))
                positions = pooled
            found.append([embeds(_relative(positions, 2**block, positions, 1, device)), pooling])
        return found

    return get_position_embeds


@register_patch(
    "dynamo",
    lambda: bindings("transformers.models.funnel.modeling_funnel", "_relative_shift_gather"),
    name="shift_by_lookup",
    problem="Scores are shifted by two reshapes with a cut between them, which is exported with a condition on the "
    "length (AssertionError: Guard failed: (1 + 2 * ((-1 + s) // 4) + (-1 + s) // 2) % (1 + (-1 + s) // 4) == 0).",
    remedy="The same elements are looked up at the places where the reshapes find them.",
    versions="all",
    looked_for="transformers.models.funnel.modeling_funnel._relative_shift_gather",
)
def shift_by_lookup(original: Any) -> Any:
    @functools.wraps(original)
    def _relative_shift_gather(positional_attn: Any, context_len: Any, shift: Any) -> Any:
        _, _, length, distances = positional_attn.shape
        row = torch.arange(length, device=positional_attn.device)[:, None]
        column = torch.arange(context_len, device=positional_attn.device)[None, :]
        return positional_attn.flatten(2)[:, :, shift * length + row * (distances - shift) + column]

    return _relative_shift_gather
