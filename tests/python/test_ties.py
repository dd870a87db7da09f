"""Equal elements come in the order of PyTorch's CPU kernels: a router that is still zero picks the same experts."""

import onnxruntime
import pytest
import torch

import fairlead


class TopK(torch.nn.Module):
    def __init__(self, k, largest=True, sorted=True):
        super().__init__()
        self.options = (k, -1, largest, sorted)

    def forward(self, x):
        return torch.topk(x, *self.options)


class Sort(torch.nn.Module):
    def forward(self, x):
        return torch.sort(x, descending=True)


class ZeroRouter(torch.nn.Module):
    """Zero weights, as a router has them before training: every token is a tie."""

    def __init__(self, experts=8):
        super().__init__()
        self.gate = torch.nn.Parameter(torch.zeros(experts, 6))
        self.experts = torch.nn.Parameter(torch.randn(experts, 6, 6))

    def forward(self, x):
        weights, chosen = torch.topk((x @ self.gate.T).softmax(-1), 2)
        return torch.einsum("tke,tk->te", torch.einsum("td,tkde->tke", x, self.experts[chosen]), weights)


def at(model, example, others, path):
    # The order is a table of the row's length, so that is fixed.
    fairlead.export(model.eval(), (example,), path, dynamic_shapes={"x": {0: torch.export.Dim("rows")}})
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for x in others:
        got = session.run(None, {"x": x.numpy()})
        for g, e in zip(got, fairlead.tree.get_leaf_tensors(model(x)).values(), strict=True):
            torch.testing.assert_close(torch.from_numpy(g), e)


SIZES = [(4, 2), (8, 2), (8, 8), (84, 30), (130, 2), (300, 1)]


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(
    ("n", "k", "sorted"),
    [(n, k, sorted) for n, k in SIZES for sorted in (True, False)],
)
def test_rows_of_equal_elements(n, k, sorted, largest, tmp_path):
    distinct = torch.stack([torch.randperm(n) for _ in range(3)]).float()
    at(TopK(k, largest, sorted), distinct, [torch.zeros(5, n), torch.full((2, n), -1.5), distinct], tmp_path / "m.onnx")


@pytest.mark.parametrize("k", [3, 30])
def test_rows_of_equal_elements_of_any_length(k, tmp_path):
    """As many as an image has places: a detector whose head is new picks the same of them.

    PyTorch leaves the order open, so it is in the file where a check tells the difference; with k = 1 none does."""
    path = tmp_path / "m.onnx"
    result = fairlead.export(TopK(k).eval(), (torch.zeros(3, 84),), path)
    assert not result.contract.fixed
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for n in (30, 31, 32, 63, 64, 84, 191, 192, 500, 1919, 1920, 3000):
        for x in (torch.zeros(2, n), torch.randn(2, n)):
            for got, expected in zip(session.run(None, {"x": x.numpy()}), torch.topk(x, k), strict=True):
                torch.testing.assert_close(torch.from_numpy(got), expected)


@pytest.mark.not_compared("PyTorch leaves the order of some equal elements among others open")
@pytest.mark.parametrize("n", [7, 17, 30, 200])
def test_sorts_of_equal_elements(n, tmp_path):
    at(Sort(), torch.randn(3, n), [torch.zeros(5, n), torch.randn(2, n)], tmp_path / "m.onnx")


def test_a_router_of_zeros(tmp_path):
    at(ZeroRouter(), torch.randn(7, 6), [torch.randn(4, 6)], tmp_path / "m.onnx")


class Orders(torch.nn.Module):
    """Some elements are equal, not all; how many are asked for follows from a size."""

    def forward(self, x, t):
        k = max(1, x.shape[1] * 3 // 5)
        return x.topk(k), t.topk(k, largest=False), x.argsort(0), t.argsort(-1, descending=True), (t > 3).sort(-1)


def test_some_equal_elements_of_rows_of_any_length(tmp_path):
    """Ids, flags and rectified numbers: as std::sort and std::nth_element leave them."""
    path = tmp_path / "m.onnx"
    made = torch.Generator().manual_seed(0)

    def call(rows, n):
        drawn = torch.randn(rows, n, generator=made)
        return (drawn * 2).round().relu(), torch.randint(0, 7, (rows, n), generator=made)

    result = fairlead.export(Orders().eval(), call(3, 9), path)
    assert not result.contract.fixed
    assert all(s["max"] > 1000 for s in result.contract.symbols)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for rows, n in ((1, 1), (2, 3), (17, 17), (40, 2), (3, 64), (2, 300), (50, 41)):
        x, t = call(rows, n)
        got = session.run(None, {"x": x.numpy(), "t": t.numpy()})
        for one, expected in zip(got, fairlead.tree.get_leaf_tensors(Orders()(x, t)).values(), strict=True):
            assert torch.equal(torch.from_numpy(one), expected), (rows, n)


class Grouped(torch.nn.Module):
    """What is sorted is put back: the order of equal elements makes no difference."""

    def forward(self, x, t):
        order = t.argsort()
        return torch.zeros_like(x).index_copy(0, order, x[order].relu())


def test_an_order_that_nobody_sees_takes_one_operator(tmp_path):
    """Experts sort the rows by their numbers, and put them back."""
    call = torch.randn(40, 3), torch.randint(0, 4, (40,))
    result = fairlead.export(Grouped().eval(), call, tmp_path / "m.onnx")
    assert result.operators["TopK"] == 1
    assert "Loop" not in result.operators
    assert result.discrepancies


class Unsorted(torch.nn.Module):
    """What is asked for in no order comes in that of eager's selection."""

    def forward(self, x, t):
        return x.topk(5, sorted=False), t.topk(x.shape[1] // 2, 1, False, False).indices, x.topk(3, 0, sorted=False)[0]


def test_an_order_of_no_sort_is_eagers(tmp_path):
    path = tmp_path / "m.onnx"
    made = torch.Generator().manual_seed(0)

    def call(rows, n):
        return torch.randn(rows, n, generator=made), torch.randint(0, 9, (rows, n), generator=made)

    result = fairlead.export(Unsorted().eval(), call(4, 12), path)
    assert not result.contract.fixed
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for rows, n in ((3, 5), (4, 31), (50, 64), (17, 300), (200, 400)):
        x, t = call(rows, n)
        got = session.run(None, {"x": x.numpy(), "t": t.numpy()})
        for one, expected in zip(got, fairlead.tree.get_leaf_tensors(Unsorted()(x, t)).values(), strict=True):
            assert torch.equal(torch.from_numpy(one), expected), (rows, n)
