"""Names for dims that vary: those that everyone uses, shared by dims that move together and by no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BATCH = "batch_size"
# Argument -> axis -> label.
WELL_KNOWN: dict[str, dict[int, str]] = {
    "input_ids": {0: BATCH, 1: "sequence_length"},
    "position_ids": {0: BATCH, 1: "sequence_length"},
    "token_type_ids": {0: BATCH, 1: "sequence_length"},
    "attention_mask": {0: BATCH, 1: "total_sequence_length"},
    "past_key_values": {0: BATCH, 2: "past_sequence_length"},
    "cache_position": {0: "sequence_length"},
    "pixel_values": {0: BATCH},
    "decoder_input_ids": {0: BATCH, 1: "decoder_sequence_length"},
    "decoder_attention_mask": {0: BATCH, 1: "decoder_sequence_length"},
}

DimId = tuple[int, int]  # slot, axis


def own_label(path: str, axis: int) -> str:
    return f"{path.replace('.', '_')}_dim_{axis}"


def _well_known(path: str, axis: int) -> str | None:
    argument, _, leaf = path.partition(".")
    label = WELL_KNOWN.get(argument, {}).get(axis)
    if label == "past_sequence_length" and leaf:
        if not leaf.endswith((".key", ".value")):  # a state of another shape
            return None
        if ".encoder." in leaf:
            return "encoder_sequence_length"
    return label


def label_dims(wanted: list[DimId], paths: list[str], group_of: Callable[[DimId], Any]) -> dict[DimId, str]:
    """A label for each wanted dim. `group_of` gives what moves together; dims of two groups never share a
    label.

    1. A well-known dim takes its own label; the first group to use a label keeps it, another says whose it
       is.
    2. Another dim takes the label of its group, if that has exactly one, or exactly one at its axis.
    3. What is left is named after the first dim of its group.
    """
    groups: dict[Any, list[DimId]] = {}
    for dim in wanted:
        groups.setdefault(group_of(dim), []).append(dim)
    labels: dict[DimId, str] = {}
    owner: dict[str, Any] = {}
    # A group whose members agree most on a label is the natural owner of it.
    for group in sorted(groups, key=lambda g: -len(groups[g])):
        for slot, axis in groups[group]:
            known = _well_known(paths[slot], axis)
            if known is None:
                continue
            if owner.setdefault(known, group) != group:
                known = f"{paths[slot].partition('.')[0]}_{known}"
                if owner.setdefault(known, group) != group:
                    known = own_label(paths[slot], axis)
            labels[(slot, axis)] = known
    for members in groups.values():
        names = {labels[dim] for dim in members if dim in labels}
        for slot, axis in members:
            if (slot, axis) in labels:
                continue
            here = {labels[dim] for dim in members if dim in labels and dim[1] == axis}
            if len(names) == 1:
                labels[(slot, axis)] = next(iter(names))
            elif len(here) == 1:
                labels[(slot, axis)] = next(iter(here))
            elif names:
                labels[(slot, axis)] = own_label(paths[slot], axis)
            else:
                labels[(slot, axis)] = own_label(paths[members[0][0]], members[0][1])
    return labels
