"""Recording: operators with module and source line, nothing kept alive, everything put back."""

import gc
import weakref

import pytest
import torch
from fairlead.record import RecordingSession

import fairlead


class Inner(torch.nn.Module):
    def forward(self, x):
        return torch.sin(x) * 2


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Inner(), Inner()])
        self.norm = torch.nn.LayerNorm(4)
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        q = self.linear(self.norm(x)).unsqueeze(0)
        return torch.nn.functional.scaled_dot_product_attention(q, q, q).sum()


def operators(model, *args):
    with RecordingSession(model.eval()) as session:
        outcome = session.run(args, {})
        assert outcome.ok, outcome.error
        return [session.core.describe(outcome.run, k) for k in range(session.core.op_count(outcome.run))]


def test_every_operator_has_its_module_and_the_models_source_line():
    found = operators(Outer(), torch.randn(3, 4))
    assert all("test_record.py:" in text for text in found), found
    assert any(text.startswith("aten.sin.default in blocks.1 at ") for text in found)


def test_attention_linear_and_norms_are_kept_whole():
    names = [text.split(" ")[0] for text in operators(Outer(), torch.randn(3, 4))]
    assert names.count("aten.layer_norm.default") == 1
    assert names.count("aten.linear.default") == 1
    assert names.count("aten.scaled_dot_product_attention.default") == 1
    assert not any("flash" in n or "addmm" in n or "native_layer_norm" in n for n in names)


class Keeps(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        self.ref = weakref.ref(y)
        z = y + 1
        del y
        gc.collect()
        assert self.ref() is None, "the recording keeps an intermediate tensor alive"
        return z


def test_intermediates_are_not_kept_alive():
    model = Keeps()
    assert len(operators(model, torch.randn(3))) == 2


class Reads(torch.nn.Module):
    def forward(self, x):
        n = int(x.sum().item())
        first = x.tolist()[0]
        return x + n + first


def test_reads_of_values_are_recorded():
    names = [text.split(" ")[0] for text in operators(Reads(), torch.ones(3))]
    assert "aten._local_scalar_dense.default" in names
    assert "fairlead.tolist" in names


class Boom(torch.nn.Module):
    def forward(self, x):
        assert torch.compiler.is_compiling()
        self.left_behind = x
        raise RuntimeError("boom")


def test_switches_and_state_are_restored_after_an_exception():
    functional = torch.nn.functional.has_torch_function_unary
    fast = torch.backends.mha.get_fastpath_enabled()
    hooks = len(torch.nn.modules.module._global_forward_hooks)
    model = Boom().eval()
    with RecordingSession(model) as session:
        outcome = session.run((torch.ones(2),), {})
        assert outcome.error.startswith("RuntimeError: boom (at ")
    assert not torch.compiler.is_compiling()
    assert torch.nn.functional.has_torch_function_unary is functional
    assert torch.backends.mha.get_fastpath_enabled() == fast
    assert len(torch.nn.modules.module._global_forward_hooks) == hooks
    assert not hasattr(model, "left_behind")
    with pytest.raises(fairlead.InvalidInput, match="RuntimeError: boom"):
        fairlead.export(model, (torch.ones(2),), "never.onnx")


class InPlace(torch.nn.Module):
    def forward(self, x):
        y = x.clone()
        y[:, 1:] += 1
        y.mul_(2)
        return y


def test_in_place_operators_become_functional(tmp_path):
    x = torch.randn(3, 4)
    result = fairlead.export(InPlace().eval(), (x,), tmp_path / "m.onnx")
    assert {"aten.add_.Tensor", "aten.mul_.Tensor"} <= result.recorded_operators
    assert all(row["ok"] for row in result.discrepancies)
    assert len(result.discrepancies) >= 4


class Nonzero(torch.nn.Module):
    def forward(self, x):
        rows = x[x[:, 0] > 0]
        return rows.view(rows.shape[0] * 2, 2)


def test_sizes_that_data_decides_are_symbols(tmp_path):
    torch.manual_seed(0)
    result = fairlead.export(Nonzero().eval(), (torch.randn(8, 4),), tmp_path / "m.onnx")
    shape = result.contract.outputs[0]["shape"]
    assert "count_0" in shape[0]
    assert all(row["ok"] for row in result.discrepancies)
