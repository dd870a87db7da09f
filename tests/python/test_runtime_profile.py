"""What a file assumes of the runtime that executes it goes by `runtime`."""

from collections import Counter

import onnx
import pytest
import torch

import fairlead


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x):
        return self.second(torch.relu(self.first(x))) + x


def counts(path) -> Counter:
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return Counter(node.op_type for node in model.graph.node)


@pytest.mark.not_compared("ONNX Runtime on the CPU has no such kernels")
def test_a_portable_file_computes_in_the_types_of_the_model(tmp_path):
    model = Block().to(torch.bfloat16).eval()
    x = torch.randn(3, 8, dtype=torch.bfloat16)
    fairlead.export(model, (x,), tmp_path / "cpu.onnx")
    fairlead.export(model, (x,), tmp_path / "portable.onnx", runtime="portable", verify=False)
    assert counts(tmp_path / "cpu.onnx")["Cast"] > 0
    portable = counts(tmp_path / "portable.onnx")
    assert portable["Cast"] == 0
    assert portable["MatMul"] + portable["Gemm"] == 2


def test_a_portable_file_of_plain_types_is_the_same(tmp_path):
    model = Block().eval()
    x = torch.randn(3, 8)
    for runtime in ("onnxruntime-cpu", "portable"):
        fairlead.export(model, (x,), tmp_path / f"{runtime}.onnx", runtime=runtime)  # verified in ONNX Runtime
    assert counts(tmp_path / "portable.onnx") == counts(tmp_path / "onnxruntime-cpu.onnx")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("m.onnx", r'\[export\] Expected runtime "onnxruntime-cpu" or "portable", got "tpu"\.'),
        ("m.pt2", r"\[export\] Expected runtime for \.onnx files only, got it for a \.pt2 file"),
    ],
)
def test_a_runtime_that_is_not_known_is_refused(tmp_path, path, message):
    with pytest.raises(fairlead.InvalidInput, match=message):
        fairlead.export(Block().eval(), (torch.randn(3, 8),), tmp_path / path, runtime="tpu")
    assert list(tmp_path.iterdir()) == []
