"""Which operator of a file differs first from eager, where its outputs do.

1. The model is recorded once more at the failing call, and what each operator makes is kept (up to MOST_BYTES).
2. The nodes of the program are found among them by operator, module and line; a line whose operators are not as many on
   both sides (folded, fused) is left out.
3. The program is written with some of these values as outputs, spread evenly, and run; between the last that agrees and
   the first that does not, again, until no node lies between.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fairlead.base.element_types import ORT_TYPES
from fairlead.record.operators import define
from fairlead.record.session import RecordingSession, snapshot
from fairlead.tree.dtypes import DTYPES
from fairlead.verify.runtime_check import OnnxSession, difference, same_sizes

MOST_BYTES = 1 << 30
AT_ONCE = 64  # values looked at in one run of the file

Key = tuple[str, str]  # operator in its functional form; " in module at line"


@dataclass
class Made:
    """What an operator of eager made."""

    text: str  # aten.mul.Tensor in encoder at model.py:12
    tensor: torch.Tensor


def first_differing(held: Any, tensors: list[torch.Tensor], input_names: list[str], opset: int) -> str:
    """In words, for the end of an error; nothing where it cannot be told. `held` is a program of the driver."""
    made = made_by_eager(held.session, *held.call.with_tensors([t.clone() for t in tensors]))
    program = held.built
    pairs = paired(made, program.nodes)
    feeds = dict(zip(input_names, tensors, strict=True))

    def values(numbers: list[int]) -> list[Any]:
        model = program.observing(numbers).lower(opset)
        with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
            staged = model.write(os.path.join(folder, "values.onnx"), "auto")
            try:
                session = OnnxSession(staged.path)
                # An input that nothing reads any more is still one of the file.
                return session.run({name: feeds[name] for name in session.inputs})
            finally:
                staged.discard()

    found = first_of(pairs, values)
    if found is None:
        return ""
    at, problem = found
    return f"The first operator that differs is {at.text}: {problem}."


def made_by_eager(session: RecordingSession, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[Key, Made]]:
    rows: list[tuple[Key, Made]] = []
    left = MOST_BYTES
    add, call_directly = session.add, session.call_directly

    def keep(func: Any, given: tuple[Any, ...], named: dict[str, Any] | None, out: Any) -> None:
        nonlocal left
        add(func, given, named, out)
        tensor = out[0] if isinstance(out, (tuple, list)) and out else out
        if not isinstance(tensor, torch.Tensor) or left < 0:
            return
        left -= tensor.numel() * tensor.element_size()
        name, functional, *_ = define(func)
        text = session.core.describe_current()
        rows.append(((functional or name, text.removeprefix(name)), Made(text, snapshot(tensor)[0])))

    session.add = keep
    session.call_directly = lambda func, given: None  # such a call is not seen by `keep`
    try:
        with session:
            session.run(args, kwargs)
    finally:
        session.add, session.call_directly = add, call_directly
    return rows


def paired(made: list[tuple[Key, Made]], nodes: Sequence[tuple[int, str, str, str]]) -> list[tuple[int, Made]]:
    """(node, what eager made there), in the order of the nodes."""
    eager: dict[Key, list[Made]] = {}
    for key, one in made:
        eager.setdefault(key, []).append(one)
    ours: dict[Key, list[int]] = {}
    for number, op, module, source in nodes:
        place = (f" in {module}" if module else "") + (f" at {source}" if source else "")
        ours.setdefault((op, place), []).append(number)
    pairs = [
        pair
        for key, numbers in ours.items()
        if len(eager.get(key, [])) == len(numbers)
        for pair in zip(numbers, eager[key], strict=True)
    ]
    return sorted(pairs, key=lambda pair: pair[0])


def first_of(pairs: list[tuple[int, Made]], values: Callable[[list[int]], list[Any]]) -> tuple[Made, str] | None:
    found: tuple[Made, str] | None = None
    while pairs:
        step = max(1, len(pairs) // AT_ONCE)
        looked = pairs[step - 1 :: step]
        got = values([number for number, _ in looked])
        problems = [problem_of(one.tensor, value) for (_, one), value in zip(looked, got, strict=True)]
        k = next((k for k, problem in enumerate(problems) if problem), None)
        if k is None:
            pairs = pairs[len(looked) * step :] if step > 1 else []
            continue
        found = looked[k][1], problems[k]
        pairs = pairs[k * step : (k + 1) * step - 1]
    return found


def problem_of(want: torch.Tensor, value: Any) -> str:
    dtype = ORT_TYPES.get(value.data_type(), value.data_type())
    if want.is_complex():
        want = torch.view_as_real(want)
    if not same_sizes(value.shape(), want.shape, ()) or dtype != DTYPES.get(want.dtype):
        return f"is {dtype}{list(value.shape())}, eager has {DTYPES.get(want.dtype)}{list(want.shape)}"
    return difference(want, value, None).problem
