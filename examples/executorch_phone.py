"""A small tagger for a phone: a .pte file of sentences up to 64 tokens. Needs `pip install executorch`."""

import tempfile
from pathlib import Path

import torch

import fairlead


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(99, 16)
        self.mix = torch.nn.Linear(16, 16)
        self.head = torch.nn.Linear(16, 5)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(torch.nn.functional.gelu(self.mix(self.embed(ids)))).softmax(-1)


def main() -> None:
    torch.manual_seed(0)
    model = Tagger().eval()
    length = torch.export.Dim("length", min=1, max=64)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tagger.pte"
        result = fairlead.export(model, (torch.randint(0, 99, (1, 12)),), path, dynamic_shapes={"ids": {1: length}})
        print(result.contract)
        ids = torch.randint(0, 99, (1, 40))
        (scores,) = result.model(ids).values()  # in the ExecuTorch runtime
        torch.testing.assert_close(scores, model(ids), atol=1e-4, rtol=1e-4)
        print(f"{path.name}: {path.stat().st_size} bytes, scores {tuple(scores.shape)}")


if __name__ == "__main__":
    main()
