"""How often an export runs the model: once with its weights where runs without them serve, and twice to check."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import fairlead


@pytest.fixture
def lean_from_64_mb(monkeypatch):
    monkeypatch.setattr("fairlead.record.session.HEAVY", 64 << 20)


class Wide(torch.nn.Module):
    """80 MB of weights."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(1600, 1600) for _ in range(8))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return x


class Routed(Wide):
    """Reads what its weights decide: it cannot run without them."""

    def forward(self, x):
        x = super().forward(x)
        return x[:, : 1 + int(x.abs().sum() > 1e9)]


def large_llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=1024, intermediate_size=4096, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4,
        vocab_size=1000,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def test_a_large_model_runs_three_times_with_its_weights(tmp_path):
    model = large_llama()
    assert sum(p.numel() * 4 for p in model.parameters()) > 200 << 20
    ids = torch.randint(0, 1000, (2, 8))
    result = fairlead.export(model, {"input_ids": ids}, tmp_path / "model.onnx")
    assert [symbol["name"] for symbol in result.contract.symbols] == ["batch", "sequence"]
    assert result.passes["recorded"] + result.passes["checked"] <= 3
    assert result.passes["without weights"] >= 5
    assert [row["kind"] for row in result.discrepancies] == ["example", "unseen"]


def test_without_weights_and_with_them_the_same_file_comes_out(tmp_path, monkeypatch, lean_from_64_mb):
    torch.manual_seed(0)
    model, x = Wide().eval(), torch.randn(3, 1600)
    lean = fairlead.export(model, (x,), tmp_path / "lean.onnx", verify=False)
    monkeypatch.setattr("fairlead.record.session.HEAVY", 1 << 40)
    real = fairlead.export(model, (x,), tmp_path / "real.onnx", verify=False)
    assert lean.passes["without weights"] > real.passes["without weights"]
    assert str(lean.contract) == str(real.contract)
    assert lean.operators == real.operators


def test_what_needs_its_weights_has_them(lean_from_64_mb):
    torch.manual_seed(0)
    result = fairlead.export(Routed().eval(), (torch.randn(3, 1600),))
    assert result.passes["recorded"] > 3
    assert result.passes["without weights"] <= 2  # it is not tried again
    assert max(row["scaled"] for row in result.discrepancies) < 1e-4


@pytest.mark.parametrize("verify", [False, True])
def test_the_passes_are_said(verify):
    result = fairlead.export(torch.nn.Linear(4, 2).eval(), (torch.randn(3, 4),), verify=verify)
    assert set(result.passes) == {"recorded", "without weights", "checked"}
    assert (result.passes["checked"] > 0) == verify


class Stateful(torch.nn.Module):
    """Writes what its weights decide into a tensor that it is given."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3000, 6000)

    def forward(self, x, state):
        state.copy_(state + self.linear(x)[:, :4])
        return state * 2


def test_a_state_that_weights_decide_is_written_with_them(lean_from_64_mb):
    torch.manual_seed(0)
    result = fairlead.export(Stateful().eval(), (torch.randn(3, 3000), torch.zeros(3, 4)))
    assert [symbol["name"] for symbol in result.contract.symbols] == ["batch"]
    assert max(row["scaled"] for row in result.discrepancies) < 1e-4


class ByHand(torch.nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-3)


@pytest.mark.parametrize(
    "model", [torch.nn.RMSNorm(16), torch.nn.RMSNorm(16, eps=1e-3), ByHand()], ids=["no eps", "eps", "by hand"]
)
@pytest.mark.parametrize("optimize", [True, False])
def test_a_norm_of_doubles_keeps_its_epsilon(model, optimize, tmp_path):
    """ONNX Runtime's own fusion reads an epsilon of float32 alone."""
    x = torch.randn(2, 5, 16, dtype=torch.float64)
    result = fairlead.export(model.double().eval(), (x,), tmp_path / "m.onnx", optimize=optimize)
    assert all(row["ok"] for row in result.discrepancies)
