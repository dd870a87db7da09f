"""genai_config.json: how onnxruntime-genai runs an exported decoder. Names and sizes are those of the file."""

from __future__ import annotations

import re
from typing import Any

from fairlead.contract import Contract, has_shared_cache

# Types that onnxruntime-genai treats as a decoder with a cache of keys and values. Others are given as "llama", which
# means the same to it: the type only chooses how inputs are named and fed.
DECODERS = {
    "chatglm", "ernie4_5", "gemma", "gemma2", "gemma3_text", "gpt_oss", "granite", "internlm2", "llama", "mistral",
    "nemotron", "olmo", "phi", "phi3", "phimoe", "phi3small", "qwen2", "qwen3", "smollm3",
}  # fmt: skip
NAMES = {"gpt_oss": "gptoss"}


def genai_config(model: Any, contract: Contract, file: str) -> dict[str, Any] | None:
    """None where the decoder keeps something else than keys and values, which genai has no names for."""
    inputs = {row.name: row for row in contract.inputs}
    keys = [name for name in inputs if re.fullmatch(r"past_key_values\.\d+\.key", name)]
    others = [name for name in inputs if "." in name and not re.fullmatch(r"past_key_values\.\d+\.(key|value)", name)]
    outputs = [row.name for row in contract.outputs]
    if not keys or others or "logits" not in outputs or "present.0.key" not in outputs:
        return None
    config, generation = model.config.get_text_config(), getattr(model, "generation_config", None)
    shape = inputs[keys[0]].shape
    heads, head_size = int(shape[1]), int(shape[3])
    length = getattr(config, "max_position_embeddings", None) or 2048

    def token(name: str) -> Any:
        found = getattr(generation, f"{name}_token_id", None)
        return found if found is not None else getattr(config, f"{name}_token_id", None)

    eos = token("eos")
    pad = token("pad")
    first_eos = eos[0] if isinstance(eos, (list, tuple)) and eos else eos
    kind = config.model_type if config.model_type in DECODERS else "llama"
    plain = [name for name in ("input_ids", "attention_mask", "position_ids") if name in inputs]
    return {
        "model": {
            "type": NAMES.get(kind, kind),
            "context_length": length,
            "vocab_size": config.vocab_size,
            "bos_token_id": token("bos") if token("bos") is not None else 0,
            "eos_token_id": eos if eos is not None else 0,
            "pad_token_id": pad if pad is not None else first_eos if first_eos is not None else 0,
            "decoder": {
                "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
                "filename": file,
                "hidden_size": config.hidden_size,
                "head_size": head_size,
                "num_attention_heads": config.num_attention_heads,
                "num_key_value_heads": heads,
                "num_hidden_layers": len(keys),
                "inputs": {
                    **{name: name for name in plain},
                    "past_key_names": "past_key_values.%d.key",
                    "past_value_names": "past_key_values.%d.value",
                },
                "outputs": {
                    "logits": "logits",
                    "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value",
                },
            },
        },
        "search": {
            "do_sample": False, "early_stopping": True, "max_length": length, "min_length": 0, "num_beams": 1,
            "num_return_sequences": 1, "past_present_share_buffer": has_shared_cache(contract),
            "repetition_penalty": 1.0, "temperature": 1.0, "top_k": 1, "top_p": 1.0, "length_penalty": 1.0,
            "no_repeat_ngram_size": 0, "diversity_penalty": 0.0,
        },
    }  # fmt: skip
