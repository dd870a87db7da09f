"""Mixtures of experts with weights in integers: QMoE in files for ONNX Runtime, said where they stay floats."""

import onnxruntime
import pytest
import torch
from test_fused import experts

import fairlead

OLD = "ONNX Runtime 1.30 is too old for experts of integers, 1.31 has them"
INT8 = 'experts of 8 bits round what they multiply: activations="int8" takes them'


def mixtral(**options):
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_local_experts": 5, "num_experts_per_tok": 2} | options
    model, inputs = experts("Mixtral", **sizes)
    return model.eval(), inputs


def put_levels(weight, low, high):
    """Blocks of 32 that integers from low to high and a scale give exactly."""
    levels = torch.randint(low, high + 1, weight.shape).float().unflatten(-1, (-1, 32))
    levels[..., 0], levels[..., 1] = low, high
    weight.data = (levels * torch.rand(*levels.shape[:-1], 1).mul(0.02).add(0.01)).flatten(-2)


@pytest.mark.parametrize(
    ("how", "low", "high"),
    [(fairlead.Int4(block=32, head=False), -8, 7), (fairlead.Int4(block=32, head=False, symmetric=False), -3, 12)],
    ids=repr,
)
def test_experts_of_four_bits_compute_what_their_integers_say(how, low, high, tmp_path):
    model, inputs = mixtral()
    for name, weight in model.named_parameters():
        if name.endswith(("_proj.weight", "gate.weight")) or ".experts." in name:
            put_levels(weight, low, high)
    result = fairlead.export(
        model, inputs(2, 7), tmp_path / "m.onnx", target=fairlead.OnnxRuntime(), quantize=how, external_data="never"
    )
    assert result.operators["QMoE"] == 2
    assert "MoE" not in result.operators
    layers = result.contract.quantized.layers
    assert len([name for name in layers if ".experts." in name]) == 4
    assert max(layers.values()) < 1e-6
    assert (tmp_path / "m.onnx").stat().st_size < 250_000  # floats take 1.2 MB
    session = onnxruntime.InferenceSession(result.path)
    for batch, length in ((1, 1), (3, 11)):
        call = inputs(batch, length)
        call["attention_mask"][:, -1] = 1
        got = session.run(None, {name: value.numpy() for name, value in call.items()})[0]
        torch.testing.assert_close(torch.from_numpy(got), model(**call).logits, atol=2e-4, rtol=1e-3)


def test_experts_of_eight_bits_need_activations_in_int8(tmp_path):
    model, inputs = mixtral()
    target = fairlead.OnnxRuntime()
    exact = fairlead.export(model, inputs(2, 7), tmp_path / "m.onnx", target=target, quantize=fairlead.Int8())
    assert exact.operators["MoE"] == 2
    assert set(exact.contract.quantized.kept.values()) == {INT8}
    assert f"experts.gate_up_proj.interleaved and 3 more, because {INT8}" in str(exact.contract)
    how = fairlead.Int8(activations="int8")
    rounded = fairlead.export(model, inputs(2, 7), tmp_path / "r.onnx", target=target, quantize=how)
    assert rounded.operators["QMoE"] == 2
    assert max(rounded.contract.quantized.layers.values()) < 0.01


@pytest.mark.parametrize(
    ("options", "target", "why"),
    [
        ({"intermediate_size": 48}, fairlead.OnnxRuntime(), "experts take whole blocks"),
        ({}, fairlead.OnnxRuntime(version="1.30"), OLD),
        ({"num_local_experts": 17}, None, "it is not the matrix of a linear layer"),
    ],
    ids=["blocks", "version", "portable"],
)  # fmt: skip
def test_experts_that_stay_floats_are_said(options, target, why, tmp_path):
    model, inputs = mixtral(**options)
    result = fairlead.export(
        model, inputs(2, 7), tmp_path / "m.onnx", target=target, quantize=fairlead.Int4(block=32), opset=21
    )
    kept = result.contract.quantized.kept
    assert [kept[name] for name in kept if ".experts." in name] == [why] * 4
