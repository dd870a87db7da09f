"""Mixtures of experts whose Python loops over the experts that were hit: recorded over every expert."""

import pytest
import torch
from fairlead.patches.rows.experts import EveryExpertRecorded

import fairlead

transformers = pytest.importorskip("transformers")


class Loop(torch.nn.Module):
    """Skips experts without tokens, as LongCat-Flash does."""

    def __init__(self, experts=5):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(experts, 4, 4))

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        mask = torch.nn.functional.one_hot(chosen, num_classes=len(self.weight)).permute(2, 1, 0)
        for number in torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero():
            expert = int(number.item())
            place, token = torch.where(mask[expert])
            if token.numel() == 0:
                continue
            out.index_add_(0, token, x[token] @ self.weight[expert] * (place[:, None] + 1))
        return out


def test_the_loop_over_every_expert_gives_the_same_bits():
    torch.manual_seed(0)
    model, x, chosen = Loop(), torch.randn(6, 4), torch.tensor([[0, 3]] * 6)
    expected = model(x, chosen)
    with EveryExpertRecorded():
        assert torch.equal(model(x, chosen), expected)


def test_a_model_that_loops_over_hit_experts_is_dynamic(tmp_path):
    torch.manual_seed(0)
    config = transformers.SwitchTransformersConfig(
        vocab_size=50,
        d_model=16,
        d_kv=4,
        d_ff=24,
        num_layers=2,
        num_sparse_encoder_layers=1,
        num_heads=4,
        num_experts=4,
        expert_capacity=64,
    )
    model = transformers.SwitchTransformersEncoderModel(config).eval()
    inputs = {"input_ids": torch.randint(2, 50, (3, 7)), "attention_mask": torch.ones(3, 7, dtype=torch.int64)}
    result = fairlead.export(model, inputs, tmp_path / "m.onnx")
    assert {"batch", "sequence"} <= {s["name"] for s in result.contract.symbols}
    assert all(row["ok"] for row in result.discrepancies)
