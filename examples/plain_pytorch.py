"""A module that has nothing to do with Transformers: what may vary is found out, or said."""

import tempfile
from pathlib import Path

import onnxruntime
import torch

import fairlead


class Detector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, stride=2, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, padding=1)
        )
        self.scores = torch.nn.Conv2d(8, 2, 1)

    def forward(self, images: torch.Tensor, threshold: torch.Tensor) -> dict[str, torch.Tensor]:
        scores = self.scores(self.backbone(images)).sigmoid()
        return {"scores": scores, "kept": (scores > threshold).sum(dim=(1, 2, 3))}


def main() -> None:
    torch.manual_seed(0)
    model = Detector().eval()
    inputs = {"images": torch.rand(2, 3, 32, 48), "threshold": torch.tensor(0.5)}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "detector.onnx")
        print(fairlead.export(model, inputs, path).contract)

        batch = torch.export.Dim("batch", max=16)
        shapes = {"images": {0: batch}, "threshold": {}}
        print(fairlead.export(model, inputs, str(Path(folder) / "batches.onnx"), dynamic_shapes=shapes).contract)

        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        other = {"images": torch.rand(1, 3, 65, 20), "threshold": torch.tensor(0.1)}
        scores, kept = session.run(None, {name: tensor.numpy() for name, tensor in other.items()})
        expected = model(**other)
        torch.testing.assert_close(torch.from_numpy(scores), expected["scores"])
        assert kept.tolist() == expected["kept"].tolist()
        print("another size:", scores.shape, "kept", kept)


if __name__ == "__main__":
    main()
