"""An operator of one's own, and how it becomes ONNX nodes."""

import math
import tempfile
from pathlib import Path

import torch

import fairlead


@torch.library.custom_op("examples::smooth_step", mutates_args=())
def smooth_step(x: torch.Tensor, width: float) -> torch.Tensor:
    """A step of the given width with soft edges: the normal distribution."""
    return 0.5 * (1 + torch.erf(x / (width * math.sqrt(2))))


@fairlead.lowerings.register_lowering(smooth_step)
def lower_smooth_step(b):
    scaled = b.op("Div", b.input(0), b.number(1) * math.sqrt(2))
    b.result(b.op("Mul", b.op("Add", b.op("Erf", scaled), 1.0), 0.5))


class Gate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * smooth_step(self.linear(x), 0.5)


def main() -> None:
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        result = fairlead.export(Gate().eval(), (torch.randn(3, 4),), str(Path(folder) / "gate.onnx"))
        print(result.contract)  # checked against the operator itself, as every export is
        print("Erf in the file:", "Erf" in result.operators)
    fairlead.lowerings.unregister_lowering(smooth_step)


if __name__ == "__main__":
    main()
