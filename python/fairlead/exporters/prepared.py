"""A model and its sample as an exporter works with them, for the duration of an export."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from fairlead.exporters.model_settings import accepted, exportable
from fairlead.exporters.prepare import prepare_for_export
from fairlead.tree.capture import Capture
from fairlead.verify.runtime_check import eager


@dataclass
class Prepared:
    """model: set for an export; inputs: of our own, without flags; constants: flags that forward takes; notes: what was
    changed, in words, for the contract.
    """

    model: torch.nn.Module
    inputs: dict[str, Any]
    constants: dict[str, Any]
    notes: list[str]

    @property
    def call(self) -> dict[str, Any]:
        return self.inputs | self.constants

    def outputs(self) -> list[torch.Tensor]:
        """What PyTorch answers; caches are written into by a call, and are copies."""
        return eager(self.model, (), Capture().arguments(self.call))


@contextlib.contextmanager
def prepared(model: Any, sample_inputs: Any, tracing: bool = False) -> Iterator[Prepared]:
    """The model in eval mode with attention that can be exported, the sample in its dtype; put back afterwards.

    tracing: for torch.export, see prepare_for_export.
    """
    model, inputs, flags = prepare_for_export(model, sample_inputs, tracing=tracing)
    constants = accepted(model, flags)
    with exportable(model, {name: value for name, value in flags.items() if name not in constants}) as notes:
        yield Prepared(model, inputs, constants, notes)
