"""One program of a model, as the driver of an experiment holds it: its example, its recordings, what was built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from fairlead.tree.calls import Call, other_floats, other_integers
from fairlead.tree.values import variations

if TYPE_CHECKING:
    from fairlead.record.session import RecordingSession
    from fairlead.verify.verification import Verification


@dataclass
class Program:
    number: int
    call: Call  # its example
    session: RecordingSession
    outputs: Any = None  # names of its first run's
    names: list[str] = field(default_factory=list)  # as the file has them
    built: Any = None
    flips: list[Any] = field(default_factory=list)  # where its questions have other answers
    others: list[Any] | None = None  # the example with other values
    verification: Verification | None = None
    later: Any = None  # the next call of generation

    def at(self, sizes: Sequence[tuple[int, ...]]) -> list[torch.Tensor]:
        """The example's tensors, repeated or cut to sizes."""
        return self.call.at(sizes)

    def with_other_values(self, sizes: Sequence[tuple[int, ...]], number: int) -> Any:
        """The same with other integers, or floats at other places, in one input, or other values in all of them; None
        where there is no such way."""
        if self.others is None or number == 0:
            base = self.at(sizes)
            self.others = [
                [other if i == k else t for i, t in enumerate(base)]
                for k, tensor in enumerate(base)
                for other in [*other_integers(tensor), *other_floats(tensor)]
            ]
            self.others += [variation.tensors for variation in variations(base)]
        return [t.clone() for t in self.others[number]] if number < len(self.others) else None
