"""Tiny models of Transformers and samples for them, for the tests of the exporters."""

from __future__ import annotations

import pytest
import torch

transformers = pytest.importorskip("transformers")


def ids(batch: int = 2, length: int = 7) -> torch.Tensor:
    return torch.randint(3, 90, (batch, length), generator=torch.Generator().manual_seed(0))


def bert():
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, vocab_size=100
    )
    tokens = ids()
    return transformers.BertModel(config).eval(), {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}


def llama_config():
    return transformers.LlamaConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, intermediate_size=64,
        vocab_size=100, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip


def llama():
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(llama_config()).eval()


def llama_step(model, past: int = 5, new: int = 3, batch: int = 2) -> dict:
    """The inputs of a step with a filled cache."""
    tokens = ids(batch, past + new)
    with torch.no_grad():
        cache = model(tokens[:, :past], use_cache=True).past_key_values
    return {"input_ids": tokens[:, past:], "attention_mask": torch.ones_like(tokens), "past_key_values": cache}


def vit():
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=16, patch_size=4
    )
    return transformers.ViTModel(config).eval(), {"pixel_values": torch.randn(2, 3, 16, 16)}


def t5():
    torch.manual_seed(0)
    config = transformers.T5Config(
        d_model=32, d_kv=16, d_ff=64, num_layers=1, num_decoder_layers=1, num_heads=2, vocab_size=100,
        decoder_start_token_id=0,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config).eval()


def llava():
    torch.manual_seed(0)
    vision = transformers.CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=8, patch_size=4
    )
    config = transformers.LlavaConfig(
        vision_config=vision, text_config=llama_config(), image_token_index=99, vision_feature_layer=-1,
        image_seq_length=4,
    )  # fmt: skip
    tokens = ids(2, 9)
    tokens[:, 2:6] = 99
    inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "pixel_values": torch.randn(2, 3, 8, 8)}
    return transformers.LlavaForConditionalGeneration(config).eval(), inputs
