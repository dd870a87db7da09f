"""Writes the .pt2 programs beside it: small ones for the tests that run without Python. Made with torch 2.13.

Lines of the models are kept, folders of the machine they were made on are not.
"""

import re
from pathlib import Path

import torch
from torch._higher_order_ops import while_loop

HERE = Path(__file__).parent


class Mlp(torch.nn.Module):
    """A dynamic batch, a buffer that is written, a write through a slice."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, scale):
        self.calls.add_(1)
        y = self.layers(x)
        padded = torch.zeros(x.shape[0] + 1, 2)
        padded[1:] = y
        return {"padded": padded * self.calls, "scaled": y * scale["by"]}


class Control(torch.nn.Module):
    """A branch on a value and a loop that another value ends."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x, steps):
        y = torch.cond(x.sum() > 0, lambda x: self.linear(x), lambda x: x - 1, (x,))
        return while_loop(lambda n, y: n > 0, lambda n, y: (n - 1, y * 2), (steps, y))


def without_folders(graph_module: torch.fx.GraphModule) -> None:
    for module in graph_module.modules():
        for node in getattr(getattr(module, "graph", None), "nodes", ()):
            trace = node.meta.get("stack_trace")
            if trace:
                node.meta["stack_trace"] = re.sub(r'File "[^"]*?/(torch/[^"]*|[^/"]*)"', r'File "\1"', trace)


def save(name: str, model: torch.nn.Module, args: tuple, dynamic_shapes: tuple) -> None:
    torch.manual_seed(0)
    program = torch.export.export(model.eval(), args, dynamic_shapes=dynamic_shapes)
    without_folders(program.graph_module)
    torch.export.save(program, HERE / name)


def main() -> None:
    torch.manual_seed(0)
    batch = torch.export.Dim("batch", min=2, max=64)
    save("mlp.pt2", Mlp(), (torch.rand(3, 4), {"by": torch.rand(2)}), ({0: batch}, {"by": None}))
    save("control.pt2", Control(), (torch.rand(5, 3), torch.tensor(3)), ({0: batch}, None))


if __name__ == "__main__":
    main()
