"""Tiny random models that generate: (model, function that makes generate's arguments for a batch) by name.

Weights are drawn wide, so that the best two logits of a step lie apart by far more than the runtime's rounding, and no
token ends a generation early.
"""

from __future__ import annotations

import torch

VOCABULARY = 99


def common(**more):
    return {
        "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "pad_token_id": 0,
        "bos_token_id": 1, "eos_token_id": None, "initializer_range": 0.5, "tie_word_embeddings": False,
    } | more  # fmt: skip


def text(batch: int, length: int = 9) -> dict[str, torch.Tensor]:
    """Prompts of different lengths, padded on the left."""
    ids = torch.randint(3, VOCABULARY - 9, (batch, length), generator=torch.Generator().manual_seed(batch))
    mask = torch.ones_like(ids)
    for row in range(1, batch):
        mask[row, : 2 * row] = 0
    return {"input_ids": ids * mask, "attention_mask": mask}


def decoder(name: str, config: str, **more):
    def make():
        import transformers

        torch.manual_seed(0)
        return getattr(transformers, name)(getattr(transformers, config)(**common(**more))).eval(), text

    return make


MODELS = {
    "llama": decoder("LlamaForCausalLM", "LlamaConfig"),
    # Shorter than what is generated: the window moves.
    "gemma3_text": decoder(
        "Gemma3ForCausalLM", "Gemma3TextConfig", head_dim=8, sliding_window=8,
        layer_types=["sliding_attention", "full_attention"],
    ),
    "qwen3": decoder("Qwen3ForCausalLM", "Qwen3Config", head_dim=8),
    "mixtral": decoder("MixtralForCausalLM", "MixtralConfig", num_local_experts=4),
}  # fmt: skip
