"""A .pte file in the ExecuTorch runtime, fed with and giving torch tensors."""

from __future__ import annotations

import torch

from fairlead.targets.pt2.torch_export import quiet
from fairlead.verify.runtime_check import TensorValue


class ExecutorchSession:
    """`run` takes tensors in the order of the file's inputs, by name."""

    guarded = False  # see ProgramSession

    def __init__(self, path: str):
        with quiet():
            from executorch.runtime import Runtime, Verification

            self.program = Runtime.get().load_program(path, verification=Verification.InternalConsistency)
            self.method = self.program.load_method("forward")

    def tensors(self, given: list[torch.Tensor]) -> list[torch.Tensor]:
        # A tensor of no elements is contiguous by any strides for PyTorch, and ends the process here.
        plain = [t.detach().contiguous() if t.numel() else t.new_empty(t.shape) for t in given]
        return [t.clone() for t in self.method.execute(plain)]

    def run(self, feeds: dict[str, torch.Tensor]) -> list[TensorValue]:
        return [TensorValue(t) for t in self.tensors(list(feeds.values()))]
