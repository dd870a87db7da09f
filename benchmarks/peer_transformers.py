"""transformers.exporters as a program: python peer_transformers.py decoder CHECKPOINT OUT."""

from __future__ import annotations

import sys
from pathlib import Path

import torch


def decoder(checkpoint: str, out: str) -> None:
    """A decoder with its cache in and out."""
    from transformers import AutoModelForCausalLM, DynamicCache
    from transformers.exporters import OnnxConfig, OnnxExporter

    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval()
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model(input_ids=torch.ones(2, 5, dtype=torch.int64), past_key_values=cache)
    inputs = {
        "input_ids": torch.ones(2, 3, dtype=torch.int64),
        "attention_mask": torch.ones(2, 8, dtype=torch.int64),
        "position_ids": torch.arange(5, 8).repeat(2, 1),
        "past_key_values": cache,
    }
    path = str(Path(out) / "model.onnx")
    OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True, output_path=path))


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"decoder": decoder}[sys.argv[1]](*sys.argv[2:])
