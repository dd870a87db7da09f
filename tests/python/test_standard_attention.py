"""Portable files from opset 23: Attention, RotaryEmbedding and RMSNormalization of the standard."""

import numpy as np
import onnxruntime
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import LlamaConfig, LlamaForCausalLM

import fairlead


class Attention(torch.nn.Module):
    """Of inputs [batch, sequence, heads * size]."""

    def __init__(self, heads, **options):
        super().__init__()
        self.heads = heads
        self.options = options

    def forward(self, q, k, v, mask=None):
        parts = [x.unflatten(2, sizes).transpose(1, 2) for x, sizes in zip((q, k, v), self.heads, strict=True)]
        return scaled_dot_product_attention(*parts, attn_mask=mask, **self.options)


def heads(rows, count, length, size=8):
    return torch.randn(rows, length, count, size)


def hidden(*shape):
    """Half of the keys, and all keys of the first query."""
    seen = torch.rand(shape) > 0.5
    seen[..., 0, :] = False
    return seen


def added(*shape):
    return torch.zeros(shape).masked_fill(~hidden(*shape), -torch.inf)


# Name -> options, inputs of a length, whether it is one operator.
CALLS = {
    "plain": ({}, lambda b, n: (heads(b, 4, n), heads(b, 4, n + 3), heads(b, 4, n + 3)), True),
    "sizes": ({}, lambda b, n: (heads(b, 4, n), heads(b, 4, n + 3), heads(b, 4, n + 3, 12)), True),
    "scaled": ({"scale": 0.3}, lambda b, n: (heads(b, 4, n), heads(b, 4, n), heads(b, 4, n)), True),
    "negative": ({"scale": -0.3}, lambda b, n: (heads(b, 4, n), heads(b, 4, n), heads(b, 4, n)), False),
    "causal": ({"is_causal": True}, lambda b, n: (heads(b, 4, n), heads(b, 4, n + 3), heads(b, 4, n + 3)), False),
    "grouped": ({"enable_gqa": True}, lambda b, n: (heads(b, 4, n), heads(b, 2, n), heads(b, 2, n)), True),
    "one_head": ({}, lambda b, n: (heads(b, 4, n), heads(b, 1, n), heads(b, 1, n)), True),
    "batch": ({}, lambda b, n: (heads(b, 4, n), heads(1, 4, n), heads(1, 4, n)), False),
    "mask": ({}, lambda b, n: (heads(b, 4, n), heads(b, 4, n), heads(b, 4, n), hidden(b, 1, n, n)), True),
    "mask_row": ({}, lambda b, n: (heads(b, 4, n), heads(b, 4, n), heads(b, 4, n), hidden(b, 1, 1, n)), True),
    "mask_of_two": ({}, lambda b, n: (heads(b, 4, n), heads(b, 4, n), heads(b, 4, n), hidden(n, n)), True),
    "mask_of_three": ({}, lambda b, n: (heads(b, 4, n), heads(b, 4, n), heads(b, 4, n), hidden(4, n, n)), True),
    "added": ({}, lambda b, n: (heads(b, 4, n), heads(b, 4, n), heads(b, 4, n), added(b, 4, n, n)), True),
    "added_row": ({}, lambda b, n: (heads(b, 4, n), heads(b, 4, n), heads(b, 4, n), added(1, 1, 1, n)), True),
    "added_column": ({}, lambda b, n: (heads(b, 4, n), heads(b, 4, n), heads(b, 4, n), added(1, 1, n, 1)), True),
}  # fmt: skip


def flat(call):
    return (*(each.flatten(2) for each in call[:3]), *call[3:])


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("name", CALLS)
def test_attention_of_the_standard_computes_what_eager_does(name, opset, tmp_path):
    torch.manual_seed(0)
    options, inputs, whole = CALLS[name]
    example = inputs(2, 5)
    model = Attention([tuple(each.shape[2:]) for each in example[:3]], **options).eval()
    result = fairlead.export(model, flat(example), tmp_path / "model.onnx", opset=opset)
    assert ("Attention" in result.operators) == whole, result.operators
    session = onnxruntime.InferenceSession(result.path, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    for rows, length in [(1, 1), (3, 7), (2, 1), (5, 16)]:
        call = flat(inputs(rows, length))
        (got,) = session.run(None, dict(zip(names, [each.numpy() for each in call], strict=True)))
        np.testing.assert_allclose(got, model(*call).numpy(), atol=1e-5, rtol=1e-5)


class Causal(torch.nn.Module):
    def forward(self, x):
        q, k, v = x.unflatten(2, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        return scaled_dot_product_attention(q, k, v, is_causal=True)


def test_causal_attention_of_as_many_keys_as_queries_is_one_operator(tmp_path):
    model = Causal().eval()
    result = fairlead.export(model, (torch.randn(2, 5, 96),), tmp_path / "model.onnx", opset=23)
    assert result.operators["Attention"] == 1
    session = onnxruntime.InferenceSession(result.path, providers=["CPUExecutionProvider"])
    for rows, length in [(1, 1), (3, 7), (2, 16)]:
        x = torch.randn(rows, length, 96)
        (got,) = session.run(None, {"x": x.numpy()})
        np.testing.assert_allclose(got, model(x).numpy(), atol=1e-5, rtol=1e-5)


def decoder():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=99, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, use_cache=False,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


@pytest.mark.parametrize("opset", [22, 23])
def test_a_decoder_has_one_operator_for_each_attention_rotation_and_norm(opset, tmp_path):
    model = decoder()

    def call(rows, length):
        mask = torch.ones(rows, length, dtype=torch.int64)
        mask[-1, :2] = 0  # on the left: its first queries see nothing
        return {"input_ids": torch.randint(1, 99, (rows, length)), "attention_mask": mask}

    result = fairlead.export(model, call(2, 7), tmp_path / "model.onnx", opset=opset)
    counts = {kind: result.operators.get(kind, 0) for kind in ("Attention", "RotaryEmbedding", "RMSNormalization")}
    assert counts == (
        {"Attention": 2, "RotaryEmbedding": 4, "RMSNormalization": 5} if opset == 23 else dict.fromkeys(counts, 0)
    )
    session = onnxruntime.InferenceSession(result.path, providers=["CPUExecutionProvider"])
    for rows, length in [(1, 9), (4, 5), (3, 3)]:
        given = call(rows, length)
        with torch.no_grad():
            eager = model(**given).logits.numpy()
        (got,) = session.run(["logits"], {name: each.numpy() for name, each in given.items()})
        np.testing.assert_allclose(got, eager, atol=1e-4 * np.abs(eager).max())


class Norm(torch.nn.Module):
    def __init__(self, shape, **options):
        super().__init__()
        self.norm = torch.nn.RMSNorm(shape, **options)
        if self.norm.weight is not None:
            torch.nn.init.normal_(self.norm.weight)

    def forward(self, x):
        return self.norm(x)


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((6,), {}),
        ((4, 6), {"eps": 1e-3}),
        ((6,), {"elementwise_affine": False}),
        ((4, 6), {"elementwise_affine": False}),
    ],
)
def test_norms_of_the_standard_compute_what_eager_does(shape, options, tmp_path):
    torch.manual_seed(0)
    model = Norm(shape, **options).eval()
    result = fairlead.export(model, (torch.randn(3, 5, 4, 6),), tmp_path / "model.onnx", opset=23)
    assert result.operators["RMSNormalization"] == 1
    session = onnxruntime.InferenceSession(result.path, providers=["CPUExecutionProvider"])
    for scale in (1.0, 1e-4):
        x = scale * torch.randn(2, 7, 4, 6)
        (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        with torch.no_grad():
            np.testing.assert_allclose(got, model(x).numpy(), atol=1e-5)
