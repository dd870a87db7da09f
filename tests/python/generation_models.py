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


def spread(model):
    """Weights drawn so that the model does not say one token for ever."""
    generator = torch.Generator().manual_seed(1)
    head = model.get_output_embeddings()
    if head.weight is model.get_input_embeddings().weight:
        head.weight = torch.nn.Parameter(head.weight.clone())
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                std = 1.0 if "embed" in name or "shared" in name or "head" in name else weight[0].numel() ** -0.5
                weight.normal_(0, std, generator=generator)
    return model.eval()


def decoder(name: str, config: str, **more):
    def make():
        import transformers

        torch.manual_seed(0)
        return getattr(transformers, name)(getattr(transformers, config)(**common(**more))).eval(), text

    return make


def encoder_text(batch: int) -> dict[str, torch.Tensor]:
    """Texts of different lengths, padded on the right."""
    return {name: tensor.flip(1) for name, tensor in text(batch).items()}


def wide(name: str, config: str, inputs, **more):
    def make():
        import transformers

        torch.manual_seed(0)
        return spread(getattr(transformers, name)(getattr(transformers, config)(**more))), inputs

    return make


def features(batch: int) -> dict[str, torch.Tensor]:
    return {"input_features": torch.randn(batch, 8, 60, generator=torch.Generator().manual_seed(batch))}


SPEECH = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "vocab_size": VOCABULARY,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None, "decoder_start_token_id": 2, "init_std": 0.5,
    "tie_word_embeddings": False,
}  # fmt: skip
IMAGE = VOCABULARY - 1  # the token that stands for a piece of an image
VISION = {
    "hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 12,
    "patch_size": 4,
}  # fmt: skip


def picture(tokens: int, channels_first=(3, 12, 12), types: int | None = None, **more):
    """Every row has one image and a text of its own length, padded on the left; `types`: what an image token is."""

    def make(batch: int) -> dict[str, torch.Tensor]:
        words = text(batch)
        ids = torch.cat([words["input_ids"], torch.full((batch, tokens), IMAGE), words["input_ids"][:, -2:]], 1)
        mask = torch.cat([words["attention_mask"], torch.ones(batch, tokens + 2).long()], 1)
        pixels = torch.randn(batch, *channels_first, generator=torch.Generator().manual_seed(batch))
        made = {"input_ids": ids, "attention_mask": mask, "pixel_values": pixels}
        if types is not None:
            made["token_type_ids"] = (ids == IMAGE).long() * types
        return made | {name: one(batch) for name, one in more.items()}

    return make


def patches(batch: int) -> dict[str, torch.Tensor]:
    """An image of its own size per row, in patches, for models that take them so."""
    sizes = torch.tensor([[1, 4, 4], [1, 8, 4], [1, 4, 12]])[:batch]
    words = text(batch)
    rows = []
    longest = 12
    for row, (_, height, width) in enumerate(sizes.tolist()):
        tokens = height * width // 4
        ids = [*words["input_ids"][row].tolist(), *[IMAGE] * tokens, 7, 8 + row]
        mask = [*words["attention_mask"][row].tolist(), *[1] * (tokens + 2)]
        rows.append(([0] * (longest - tokens) + ids, [0] * (longest - tokens) + mask))
    ids, mask = torch.tensor([r[0] for r in rows]), torch.tensor([r[1] for r in rows])
    return {
        "input_ids": ids, "attention_mask": mask, "mm_token_type_ids": (ids == IMAGE).int(), "image_grid_thw": sizes,
        "pixel_values": torch.randn(sizes.prod(1).sum(), 24, generator=torch.Generator().manual_seed(batch)),
    }  # fmt: skip


def vision_language(name: str, config: str, inputs, text_config: dict, vision_config: dict, **more):
    def make():
        import transformers

        torch.manual_seed(0)
        made = getattr(transformers, config)(
            text_config=text_config, vision_config=vision_config, image_token_id=IMAGE, pad_token_id=0,
            eos_token_id=None, bos_token_id=1, tie_word_embeddings=False, **more,
        )  # fmt: skip
        return spread(getattr(transformers, name)(made)), inputs

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
    "mamba2": wide(
        "Mamba2ForCausalLM", "Mamba2Config", text, vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2,
        num_heads=8, head_dim=8, state_size=8, n_groups=2, chunk_size=8, pad_token_id=0, bos_token_id=1,
        eos_token_id=None, tie_word_embeddings=False,
    ),
    # A state, and a cache that grows beside it.
    "lfm2": decoder("Lfm2ForCausalLM", "Lfm2Config", layer_types=["conv", "full_attention"]),
    "t5": wide(
        "T5ForConditionalGeneration", "T5Config", encoder_text, vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=48,
        num_layers=2, num_heads=4, pad_token_id=0, eos_token_id=None, decoder_start_token_id=0, initializer_factor=1.0,
        tie_word_embeddings=False,
    ),
    "bart": wide(
        "BartForConditionalGeneration", "BartConfig", encoder_text, **SPEECH, max_position_embeddings=64,
        forced_eos_token_id=None,
    ),
    "whisper": wide(
        "WhisperForConditionalGeneration", "WhisperConfig", features, **SPEECH, num_mel_bins=8,
        max_source_positions=30, max_target_positions=64,
    ),
    "llava": vision_language(
        "LlavaForConditionalGeneration", "LlavaConfig", picture(9),
        common(model_type="llama"), VISION | {"model_type": "clip_vision_model", "projection_dim": 24},
    ),
    "gemma3": vision_language(
        "Gemma3ForConditionalGeneration", "Gemma3Config", picture(4, channels_first=(3, 16, 16), types=1),
        common(model_type="gemma3_text", head_dim=8, sliding_window=8,
               layer_types=["sliding_attention", "full_attention"]),
        VISION | {"model_type": "siglip_vision_model", "image_size": 16}, mm_tokens_per_image=4,
    ),
    "paligemma": vision_language(
        "PaliGemmaForConditionalGeneration", "PaliGemmaConfig", picture(9, types=0),
        common(model_type="gemma", head_dim=8), VISION | {"model_type": "siglip_vision_model", "projection_dim": 32},
        projection_dim=32,
    ),
    "qwen2_5_vl": vision_language(
        "Qwen2_5_VLForConditionalGeneration", "Qwen2_5_VLConfig", patches,
        common(model_type="qwen2_5_vl_text", rope_parameters={"rope_type": "default", "mrope_section": [1, 1, 2]}),
        {"depth": 2, "hidden_size": 16, "intermediate_size": 24, "num_heads": 2, "out_hidden_size": 32,
         "patch_size": 2, "window_size": 8, "fullatt_block_indexes": [1], "temporal_patch_size": 2},
        video_token_id=VOCABULARY - 2, vision_start_token_id=VOCABULARY - 3, vision_end_token_id=VOCABULARY - 4,
    ),
    "qwen3_vl": vision_language(
        "Qwen3VLForConditionalGeneration", "Qwen3VLConfig", patches,
        common(model_type="qwen3_vl_text", head_dim=8,
               rope_parameters={"rope_type": "default", "mrope_section": [1, 1, 2], "mrope_interleaved": True}),
        {"depth": 2, "hidden_size": 16, "intermediate_size": 24, "num_heads": 2, "out_hidden_size": 32,
         "patch_size": 2, "temporal_patch_size": 2, "num_position_embeddings": 16, "deepstack_visual_indexes": [0]},
        video_token_id=VOCABULARY - 2, vision_start_token_id=VOCABULARY - 3, vision_end_token_id=VOCABULARY - 4,
    ),
    "smolvlm": vision_language(
        "SmolVLMForConditionalGeneration", "SmolVLMConfig", picture(4, channels_first=(1, 3, 16, 16)),
        common(model_type="llama"), VISION | {"model_type": "smolvlm_vision", "image_size": 16}, scale_factor=2,
    ),
}  # fmt: skip
