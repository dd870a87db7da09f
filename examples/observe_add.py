"""Observes a model that adds two tensors, and exports what was seen."""

import torch

from fairlead import InputObserver
from fairlead.tree import string_type


class AddModel(torch.nn.Module):
    """Adds two tensors element-wise (broadcasting on the batch dimension)."""

    def forward(self, x, y):
        return x + y


def main() -> None:
    model = AddModel()
    observer = InputObserver()
    with observer(model):
        for batch, length in ((2, 6), (3, 7), (4, 8)):
            model(torch.randn(batch, length), torch.randn(1, length))
    shapes, args = observer.infer_dynamic_shapes(), observer.infer_arguments()
    print("calls     ", observer.num_obs())
    print("shapes    ", string_type(shapes))
    print("arguments ", string_type(args, with_shape=True))
    print("relations ", observer.relations())
    program = torch.export.export(model, args, dynamic_shapes=shapes)
    x, y = torch.randn(5, 9), torch.randn(1, 9)
    assert torch.equal(program.module()(x, y), model(x, y))
    print("exported")


if __name__ == "__main__":
    main()
