"""From an ExportedProgram to the bytes of a .pte file, through the executorch package.

This is the whole interface to what makes the file: `write(program, file, options)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from fairlead._core import InvalidInput, Unsupported
from fairlead.base.errors import caused
from fairlead.targets.pt2.torch_export import quiet


@dataclass
class WriteOptions:
    """backend: "xnnpack" delegates what that library can do; None leaves everything to the portable kernels.

    alloc_graph_input, alloc_graph_output, alloc_mutable_buffers: whether the file plans memory for them; False leaves
    it to the caller.
    """

    backend: str | None = "xnnpack"
    alloc_graph_input: bool = True
    alloc_graph_output: bool = True
    alloc_mutable_buffers: bool = True


@dataclass
class Written:
    planned_bytes: int  # memory that the runtime allocates to run it
    delegates: int
    instructions: int


NEEDS = {
    "cuda": "an NVIDIA GPU, nvcc, and an ExecuTorch built from source with EXECUTORCH_BUILD_CUDA=ON",
    "mlx": "a Mac with Apple silicon, and an ExecuTorch built from source with its MLX backend",
}


def check_backend(backend: str | None) -> None:
    """Refuses a backend that cannot be written for here, in one line that says what it needs."""
    if backend in NEEDS:
        raise InvalidInput(
            f"[export] Expected a backend that can be written for here, got {backend!r}, which needs {NEEDS[backend]}. "
            'Use backend="xnnpack" or backend=None.'
        )
    if backend not in ("xnnpack", None):
        raise InvalidInput(f'[export] Expected backend "xnnpack", "cuda", "mlx" or None, got {backend!r}.')


def write(program: torch.export.ExportedProgram, file: Any, options: WriteOptions) -> Written:
    """Lowers a program and writes it to an open file."""
    check_backend(options.backend)
    with quiet():
        from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower
        from executorch.exir.passes import MemoryPlanningPass

        try:
            edge = to_edge_transform_and_lower(
                program,
                partitioner=partitioners(options.backend),
                compile_config=EdgeCompileConfig(_check_ir_validity=False),
            )
            planning = MemoryPlanningPass(
                alloc_graph_input=options.alloc_graph_input,
                alloc_graph_output=options.alloc_graph_output,
                alloc_mutable_buffers=options.alloc_mutable_buffers,
            )
            lowered = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))
        except Exception as error:
            cause = f"it raised {one_line(error)}"
            raise caused(
                Unsupported(f"[export] Expected ExecuTorch to take the program, but {cause}."), cause
            ) from error
        lowered.write_to_file(file)
    plan = lowered.executorch_program.execution_plan[0]
    return Written(
        sum(plan.non_const_buffer_sizes), len(plan.delegates), sum(len(chain.instructions) for chain in plan.chains)
    )


def partitioners(backend: str | None) -> list[Any] | None:
    if backend is None:
        return None
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    return [XnnpackPartitioner()]


def one_line(error: BaseException) -> str:
    """The innermost cause in one line: the package wraps what its passes raise."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300].rstrip(". ")
