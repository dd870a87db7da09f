"""An ExportedProgram run like the sessions that verification knows: tensors by input name in, values to compare out."""

from __future__ import annotations

import torch

from fairlead.patches.model_state import ModelState
from fairlead.tree.caches import register_flattening_functions
from fairlead.tree.calls import Call
from fairlead.tree.leaves import get_leaf_tensors
from fairlead.verify.runtime_check import TensorValue

GUARD = "Guard failed"  # torch has no type for it: an AssertionError with these words


class ProgramSession:
    def __init__(self, program: torch.export.ExportedProgram, model: torch.nn.Module, call: Call):
        self.call = call
        self.state = ModelState(model)  # buffers are shared with the model: what the program writes is put back
        self.guarded = False  # whether the last run ended at a guard that torch.export put into the program
        with register_flattening_functions():
            self.module = program.module()

    def run(self, feeds: dict[str, torch.Tensor]) -> list[TensorValue]:
        args, kwargs = self.call.with_tensors([t.clone() for t in feeds.values()])
        self.guarded = False
        try:
            with torch.no_grad(), register_flattening_functions():
                outputs = self.module(*args, **kwargs)
            return [TensorValue(t.clone()) for t in get_leaf_tensors(outputs).values()]
        except AssertionError as error:
            self.guarded = GUARD in str(error)
            raise
        finally:
            self.state.restore()
