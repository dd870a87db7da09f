"""torch.einsum as the same operators at every size: one product after the other, from the left.

PyTorch leaves out, moves and sums dimensions by whether their size is 1: a batch of 1 would look like another program.
"""

from __future__ import annotations

from typing import Any

import torch

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def parts_of(args: tuple) -> tuple[list[str], str, list[torch.Tensor]] | None:
    """Letters of each operand and of the result, and the operands; None for what is left to PyTorch: lists of numbers
    for letters, a letter twice in an operand, sizes of 1 that are repeated, no operands."""
    if not args or not isinstance(args[0], str):
        return None
    equation = args[0].replace(" ", "")
    operands = list(args[1]) if len(args) == 2 and isinstance(args[1], (list, tuple)) else list(args[1:])
    left, arrow, result = equation.partition("->")
    labels = left.split(",")
    if not operands or len(labels) != len(operands):
        return None
    free = [letter for letter in LETTERS if letter not in equation]
    longest = 0
    for k, (letters, operand) in enumerate(zip(labels, operands, strict=True)):
        hidden = operand.dim() - len(letters.replace("...", ""))
        if hidden and ("..." not in letters or hidden < 0 or hidden > len(free)):
            return None
        longest = max(longest, hidden)
        labels[k] = letters.replace("...", "".join(free[-hidden:]) if hidden else "")
    if not arrow:
        once = sorted(letter for letter in set(left) - set(".,") if left.count(letter) == 1)
        result = ("..." if longest else "") + "".join(once)
    result = result.replace("...", "".join(free[-longest:]) if longest else "")
    sizes: dict[str, int] = {}
    for letters, operand in zip(labels, operands, strict=True):
        if len(set(letters)) != len(letters) or not operand.is_floating_point():
            return None
        for letter, size in zip(letters, tuple(operand.shape), strict=True):
            if sizes.setdefault(letter, size) != size:
                return None
    if len(set(result)) != len(result) or not set(result) <= set(sizes):
        return None
    return labels, result, operands


def einsum(labels: list[str], result: str, operands: list[torch.Tensor]) -> torch.Tensor:
    letters, tensor = labels[0], operands[0]
    for k in range(1, len(operands)):
        needed = result + "".join(labels[k + 1 :])
        letters, tensor = product(letters, tensor, labels[k], operands[k], needed)
    letters, tensor = summed(letters, tensor, result)
    return ordered(letters, tensor, result)


def summed(letters: str, tensor: torch.Tensor, needed: str) -> tuple[str, torch.Tensor]:
    gone = [k for k, letter in enumerate(letters) if letter not in needed]
    return "".join(c for c in letters if c in needed), tensor.sum(gone) if gone else tensor


def ordered(letters: str, tensor: torch.Tensor, wanted: str) -> torch.Tensor:
    return tensor if letters == wanted else tensor.permute([letters.index(c) for c in wanted])


def product(a: str, x: torch.Tensor, b: str, y: torch.Tensor, needed: str) -> tuple[str, torch.Tensor]:
    """Of two operands: a matrix product over the letters that end here, for each of those that both go on with."""
    a, x = summed(a, x, b + needed)
    b, y = summed(b, y, a + needed)
    both = [c for c in a if c in b and c in needed]
    inner = [c for c in a if c in b and c not in needed]
    rows = [c for c in a if c not in b]
    columns = [c for c in b if c not in a]
    x, y = ordered(a, x, "".join(both + rows + inner)), ordered(b, y, "".join(both + inner + columns))
    letters = "".join(both + rows + columns)
    if not inner:
        for _ in columns:
            x = x.unsqueeze(-1)
        for _ in rows:
            y = y.unsqueeze(len(both))
        return letters, x * y
    sizes = [*x.shape[: len(both) + len(rows)], *y.shape[len(both) + len(inner) :]]
    x = grouped(grouped(x, len(both) + len(rows), len(inner)), len(both), len(rows))
    y = grouped(grouped(y, len(both) + len(inner), len(columns)), len(both), len(inner))
    made = x @ y
    if len(rows) == 1 and len(columns) == 1:
        return letters, made
    if len(rows) > 1 or len(columns) > 1:
        return letters, made.reshape(sizes)
    if not columns:
        made = made.squeeze(-1)
    return letters, made if rows else made.squeeze(len(both))


def grouped(tensor: torch.Tensor, start: int, count: int) -> torch.Tensor:
    """So many dimensions as one."""
    if count == 1:
        return tensor
    return tensor.flatten(start, start + count - 1) if count else tensor.unsqueeze(start)


def canonical(session: Any, functions: Any, func: Any, args: tuple, kwargs: dict | None) -> torch.Tensor:
    parts = None if kwargs else parts_of(args)
    session.core.note_call(func, args, kwargs)
    if parts is None:
        return func(*args, **kwargs) if kwargs else func(*args)
    with functions(session):
        return einsum(*parts)
