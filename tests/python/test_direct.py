"""Calls that are one operator do not go through the dispatch mode: what is recorded is what it would have shown."""

import pytest
import torch
from fairlead.record import RecordingSession
from torch.utils._python_dispatch import TorchDispatchMode

import fairlead


class Called(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function, self.weight = function, torch.nn.Parameter(torch.rand(4))

    def forward(self, *args):
        return self.function(self, *args)


def operators(session, *args):
    outcome = session.run(args, {})
    assert outcome.ok, outcome.error
    core = session.core
    found = [core.describe(outcome.run, k) for k in range(core.op_count(outcome.run))]
    return outcome.run, [text.rpartition(" at ")[0] or text for text in found], outcome.outputs


class Doubles(TorchDispatchMode):
    """A mode of the model's own."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **kwargs or {})
        return out * 2 if func is torch.ops.aten.sin.default else out


def in_lower_precision(m, x):
    y = torch.mm(x.bfloat16(), x.bfloat16().t())  # as it is
    with torch.autocast("cpu", torch.bfloat16):
        return torch.mm(x, x.t()) + y


def in_vmap(m, x):
    return torch.sin(x) + torch.vmap(lambda row: torch.sin(row) + x.sum())(x)


def under_a_mode(m, x):
    y = torch.sin(x)
    with Doubles():
        return torch.sin(x) + y


def conjugated(m, x):
    z = torch.complex(x, x)
    return torch.abs(z) + torch.abs(z.conj()) + torch.sin(z.conj().imag)


def numbers(m, x):
    y = x + 1 + 1.0 + True + m.weight
    return y * x.sum() + x.sum() * y + torch.pow(x, 2) + torch.pow(x, 2.0) + torch.pow(2, x) - x.new_tensor(3.0)


def views_and_writes(m, x):
    y = torch.sin(x).clone()
    y.add_(1)
    y[0].mul_(2)
    z = y.t()
    y.sin_()
    return z + y.t().contiguous(), torch.sum(x, 0), torch.softmax(x, 1, None), torch.cumsum(x, x.dim() - 1)


def sizes(m, x):
    return torch.cumsum(x, len(x.shape) - 1) * x.shape[0] + torch.sin(x) / x.shape[1] + torch.roll(x, x.shape[0] - 1, 1)


def with_grad(m, x):
    with torch.enable_grad():
        y = x.detach().requires_grad_()
        (g,) = torch.autograd.grad(torch.sin(torch.sin(y)).sum(), y)
    return g + torch.sin(x)


FUNCTIONS = [
    numbers, views_and_writes, sizes, in_vmap, under_a_mode, conjugated, in_lower_precision, with_grad,
    lambda m, x: torch.where(x > 0.5, x, torch.zeros(())) + torch.where(x > 0.5, x, 0.0),
    lambda m, x: torch.maximum(x, x.mean()).clamp(0, 1).clamp(0.0).to(torch.float64).to(torch.float64).float(),
    lambda m, x: torch.nn.functional.gelu(x) + torch.nn.functional.gelu(x, approximate="tanh") + x.reshape(x.shape),
    lambda m, x: (x.topk(2)[0], x.max(1)[0], x.sort(1, True)[0], torch.aminmax(x, dim=0)),
    lambda m, x: x[1:] + x[:-1] * x[0] - x.sum().item(),
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_is_recorded_is_what_the_dispatcher_shows(function):
    model = Called(function).eval()
    x = torch.rand(3, 4, generator=torch.Generator().manual_seed(0))
    with RecordingSession(model) as session:
        direct, seen, first = operators(session, x)
        again, seen_again, second = operators(session, x)
        session.call_directly = lambda func, args: None
        shown, told, third = operators(session, x)
        assert seen == seen_again == told
        for run in (direct, again):
            assert session.core.difference(shown, run) is None
            assert session.core.same_numbers(shown, run)
    torch.testing.assert_close(first, third)
    torch.testing.assert_close(second, third)


def test_most_calls_of_a_long_model_are_not_dispatched():
    model = Called(lambda m, x: [x := torch.sin(x) + 1.0 for _ in range(50)][-1]).eval()
    with RecordingSession(model) as session:
        direct, results = session.call_directly, []

        def counted(func, args):
            results.append(direct(func, args))
            return results[-1]

        session.call_directly = counted
        _, seen, _ = operators(session, torch.rand(2, 3))
    assert len(seen) == 100
    assert sum(r is not None for r in results) == 98


def test_an_error_of_a_direct_call_is_the_models(tmp_path):
    def function(m, x, y):
        z = torch.add(torch.add(x, x), x)
        return torch.add(z, y)

    result = fairlead.export(Called(function).eval(), (torch.rand(3, 4), torch.rand(3, 4)), tmp_path / "x.onnx")
    assert len(result.contract.symbols) == 2
    with RecordingSession(Called(function).eval()) as session:
        assert session.run((torch.rand(3, 4), torch.rand(3, 4)), {}).ok
        outcome = session.run((torch.rand(3, 4), torch.rand(5, 4)), {})
        assert "must match the size" in outcome.error
        assert "test_direct.py" in outcome.error
        assert torch._C._len_torch_dispatch_stack() == 0
        assert session.run((torch.rand(3, 4), torch.rand(3, 4)), {}).ok
