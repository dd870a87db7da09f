"""Integers beyond 2^53, which a double cannot hold, and places among no edges at all."""

import onnxruntime
import pytest
import torch

import fairlead


class RollingHash(torch.nn.Module):
    """Groups of bytes hashed by a polynomial that wraps around 64 bits."""

    def forward(self, ids):
        windows = torch.cat([torch.zeros(ids.shape[0], 2, dtype=torch.int64), ids], 1).unfold(1, 3, 1)
        powers = torch.tensor(1000000007) ** torch.arange(windows.shape[-1])
        return powers, (windows * powers).sum(-1) % 64


class Powers(torch.nn.Module):
    def forward(self, x, n):
        return x**n, 3**n


class Products(torch.nn.Module):
    def forward(self, x):
        chosen = x[x > 50]
        return x.prod(1), x.prod(0, keepdim=True), x.prod(), x.cumprod(1), chosen.prod(), chosen.cumprod(0)


class NoEdges(torch.nn.Module):
    def forward(self, x):
        edges = torch.arange(1.0, 1.0)
        return torch.bucketize(x, edges, right=True), torch.searchsorted(edges, x)


def at(model, example, others, path):
    fairlead.export(model.eval(), example, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for inputs in others:
        got = session.run(None, {i.name: t.numpy() for i, t in zip(session.get_inputs(), inputs, strict=True)})
        for g, e in zip(got, fairlead.tree.get_leaf_tensors(model(*inputs)).values(), strict=True):
            torch.testing.assert_close(torch.from_numpy(g), e)


def test_a_rolling_hash(tmp_path):
    ids = torch.randint(0, 256, (3, 7))
    at(RollingHash(), (ids,), [(ids,), (torch.randint(0, 256, (2, 12)),)], tmp_path / "m.onnx")


def test_powers(tmp_path):
    call = (torch.randint(-9, 9, (3, 5)), torch.randint(0, 20, (3, 5)))
    large = (torch.tensor([[3, -7, 2, 1]]), torch.tensor([[39, 22, 62, 63]]))
    at(Powers(), call, [call, large], tmp_path / "m.onnx")


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8])
def test_products_wrap_around(dtype, tmp_path):
    """Odd numbers: one even one in 64 and everything behind it is 0."""
    large = torch.randint(-50, 50, (3, 60)) * 2 + 1
    none = -torch.ones(2, 3)
    at(
        Products(),
        (torch.arange(21).reshape(3, 7).to(dtype),),
        [(large.to(dtype),), (none.to(dtype),)],
        tmp_path / "m.onnx",
    )


def test_no_edges(tmp_path):
    at(NoEdges(), (torch.randn(3, 5),), [(torch.randn(2, 4),)], tmp_path / "m.onnx")
