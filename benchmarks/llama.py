"""The model of the export benchmark: a Llama with random weights and its cache, at any size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Shape:
    """How large the model is. The defaults are the benchmark's."""

    layers: int = 32
    hidden: int = 256
    intermediate: int = 688
    heads: int = 8
    key_heads: int = 4
    vocabulary: int = 32_000


# About 250 million weights of four bytes.
GIGABYTE = Shape(layers=16, hidden=1024, intermediate=2752, heads=8, key_heads=4)
# 1.3 billion: writing them is most of what is left to do.
LARGE = Shape(layers=24, hidden=2048, intermediate=5632, heads=16, key_heads=8)


def make_model(shape: Shape) -> torch.nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_heads,
        vocab_size=shape.vocabulary,
        max_position_embeddings=2048,
    )
    return LlamaForCausalLM(config).eval()


def make_inputs(model: torch.nn.Module, batch: int, sequence: int, past: int) -> dict[str, Any]:
    """New tokens, the mask over old and new ones, and a filled cache."""
    from transformers import DynamicCache

    config = model.config
    generator = torch.Generator().manual_seed(batch * 10_000 + sequence * 100 + past)
    cache = DynamicCache(config=config)
    shape = (batch, config.num_key_value_heads, past, config.hidden_size // config.num_attention_heads)
    for layer in range(config.num_hidden_layers):
        cache.update(torch.randn(shape, generator=generator), torch.randn(shape, generator=generator), layer)
    return {
        "input_ids": torch.randint(0, config.vocab_size, (batch, sequence), generator=generator),
        "attention_mask": torch.ones(batch, past + sequence, dtype=torch.int64),
        "past_key_values": cache,
    }


def flat(inputs: dict[str, Any]) -> list[torch.Tensor]:
    """input_ids, attention_mask, then key and value of every layer: the order of every file's inputs."""
    tensors = [inputs["input_ids"], inputs["attention_mask"]]
    for layer in inputs["past_key_values"].layers:
        tensors += [layer.keys, layer.values]
    return tensors


class Flat(torch.nn.Module):
    """The model with its cache as plain tensors, for exporters that know no cache classes."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, past):
        from transformers import DynamicCache

        cache = DynamicCache(config=self.model.config)
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache)
        present = [t for layer in out.past_key_values.layers for t in (layer.keys, layer.values)]
        return (out.logits, *present)


def eager(model: torch.nn.Module, inputs: dict[str, Any]) -> list[torch.Tensor]:
    with torch.no_grad():
        out = model(**inputs)
    return [out.logits, *(t for layer in out.past_key_values.layers for t in (layer.keys, layer.values))]
