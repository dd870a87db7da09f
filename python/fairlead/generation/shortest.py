"""The shortest prompt that a file serves, by trying: a convolution's state of four tokens needs four."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlead._core import Diverged
from fairlead.generation.plan import PartPlan
from fairlead.generation.watch import untouched
from fairlead.tree.leaves import get_leaf_tensors
from fairlead.verify.runtime_check import OnnxSession, compare


def shortest_length(part: PartPlan, program: Any) -> int:
    """The length from which on the file agrees with eager; all that a call has of it is cut to that length."""
    contract = {row.name: row.shape for row in program.contract.inputs}
    shortest = part.shortest or "input_ids"
    symbol = contract[shortest][1]
    if symbol.isdigit():
        raise Diverged(
            f"[export_for_generation] Expected prompts of any length, but {type(part.module.model).__name__} executes "
            f"other operators at every length: the prompt would be fixed at {symbol} tokens. "
            "Use another implementation of the model's layers."
        )
    session = OnnxSession(program.path)
    longest = min(call[shortest].shape[1] for call in part.calls)
    agreed = int(longest)
    while agreed > 1 and agrees(part, session, contract, symbol, agreed - 1):
        agreed -= 1
    return agreed


def agrees(part: PartPlan, session: OnnxSession, contract: dict[str, Sequence[str]], symbol: str, length: int) -> bool:
    call = {}
    for name, tensor in get_leaf_tensors(part.calls[0]).items():
        for axis, text in enumerate(contract.get(name, [])):
            if text == symbol:  # from the end: padding is on the left
                tensor = tensor.narrow(axis, tensor.shape[axis] - length, length)
        call[name] = tensor.clone()
    try:
        with untouched(part.module):
            expected = list(get_leaf_tensors(part.module(**call)).values())
        return bool(compare(session.outputs, expected, session.run(call), None)["ok"])
    except Exception:  # eager or the runtime refuses it
        return False
