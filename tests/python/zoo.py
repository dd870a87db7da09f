"""Tiny models of the architectures that every change must keep exporting: (model, example call) by name.

Configs are small and random; sizes in the example are chosen apart from each other so that a contract can be read.
"""

from __future__ import annotations

import torch


def text(batch=2, sequence=9, vocabulary=99):
    return {
        "input_ids": torch.randint(3, vocabulary, (batch, sequence)),
        "attention_mask": torch.ones(batch, sequence, dtype=torch.int64),
    }


def small(**more):
    base = {
        "vocab_size": 99, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip
    return base | more


def decoder(name: str, config_name: str, **config):
    def make():
        import transformers

        config_class = getattr(transformers, config_name)
        return getattr(transformers, name)(config_class(**config)).eval(), text()

    return make


def with_cache(make, past=7, new=3):
    """The call that decodes `new` tokens after `past` ones."""

    def made():
        model, _inputs = make()
        ids = torch.randint(3, 99, (2, past + new))
        with torch.no_grad():
            cache = model(input_ids=ids[:, :past], use_cache=True).past_key_values
        return model, {
            "input_ids": ids[:, past:],
            "attention_mask": torch.ones(2, past + new, dtype=torch.int64),
            "past_key_values": cache,
        }

    return made


LLAMA_LIKE = small(num_key_value_heads=2)
DECODERS = {
    "llama": decoder("LlamaForCausalLM", "LlamaConfig", **LLAMA_LIKE),
    "qwen3": decoder("Qwen3ForCausalLM", "Qwen3Config", **LLAMA_LIKE, head_dim=8),
    "gemma3": decoder(
        "Gemma3ForCausalLM",
        "Gemma3TextConfig",
        **LLAMA_LIKE,
        head_dim=8,
        sliding_window=64,
        sliding_window_pattern=2,
        layer_types=["sliding_attention", "full_attention"],
    ),
    "mistral": decoder("MistralForCausalLM", "MistralConfig", **LLAMA_LIKE, sliding_window=64),
    "gpt2": decoder(
        "GPT2LMHeadModel",
        "GPT2Config",
        vocab_size=99,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=128,
        bos_token_id=1,
        eos_token_id=2,
    ),
    "phi3": decoder("Phi3ForCausalLM", "Phi3Config", **LLAMA_LIKE),
    "mixtral": decoder("MixtralForCausalLM", "MixtralConfig", **LLAMA_LIKE, num_local_experts=4, num_experts_per_tok=2),
    "qwen3_moe": decoder(
        "Qwen3MoeForCausalLM",
        "Qwen3MoeConfig",
        **LLAMA_LIKE,
        head_dim=8,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
    ),
}


def encoder(name: str, config_name: str, **config):
    def make():
        import transformers

        model = getattr(transformers, name)(getattr(transformers, config_name)(**config)).eval()
        return model, text()

    return make


def seq2seq(name: str, config_name: str, **config):
    def make():
        import transformers

        model = getattr(transformers, name)(getattr(transformers, config_name)(**config)).eval()
        inputs = text() | {"decoder_input_ids": torch.randint(3, 99, (2, 5))}
        return model, inputs

    return make


def seq2seq_with_cache(make, past=4, new=3):
    def made():
        model, inputs = make()
        inputs.pop("decoder_input_ids", None)
        ids = torch.randint(3, 99, (2, past + new))
        with torch.no_grad():
            out = model(**inputs, decoder_input_ids=ids[:, :past], use_cache=True)
        call = {"decoder_input_ids": ids[:, past:], "past_key_values": out.past_key_values}
        call["encoder_outputs"] = (out.encoder_last_hidden_state,)
        if "attention_mask" in inputs:
            call["attention_mask"] = inputs["attention_mask"]
        return model, call

    return made


def pixels(name: str, config_name: str, size=32, **config):
    def make():
        import transformers

        model = getattr(transformers, name)(getattr(transformers, config_name)(**config)).eval()
        return model, {"pixel_values": torch.randn(2, 3, size, size)}

    return make


def whisper():
    import transformers

    config = transformers.WhisperConfig(
        vocab_size=99,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        num_mel_bins=16,
        max_source_positions=30,
        max_target_positions=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    model = transformers.WhisperForConditionalGeneration(config).eval()
    return model, {"input_features": torch.randn(2, 16, 60), "decoder_input_ids": torch.randint(3, 99, (2, 5))}


def two_towers(name: str, config_name: str):
    def make():
        import transformers

        config = getattr(transformers, config_name)(
            text_config=small(projection_dim=24, max_position_embeddings=64),
            vision_config={
                "hidden_size": 32,
                "intermediate_size": 48,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "image_size": 32,
                "patch_size": 8,
                "projection_dim": 24,
            },
        )
        if hasattr(config, "projection_dim"):
            config.projection_dim = 24
        model = getattr(transformers, name)(config).eval()
        return model, text(batch=3, sequence=7) | {"pixel_values": torch.randn(2, 3, 32, 32)}

    return make


def wav2vec2():
    import transformers

    config = transformers.Wav2Vec2Config(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        conv_dim=(16, 16),
        vocab_size=40,
        conv_stride=(4, 2),
        conv_kernel=(8, 4),
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
        num_feat_extract_layers=2,
    )
    return transformers.Wav2Vec2ForCTC(config).eval(), {"input_values": torch.randn(2, 1000)}


def detr():
    import transformers

    backbone = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 24], depths=[1, 1], layer_type="basic", out_features=["stage2"]
    )
    config = transformers.DetrConfig(
        use_timm_backbone=False,
        backbone=None,
        backbone_config=backbone,
        use_pretrained_backbone=False,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        num_queries=7,
        num_labels=5,
    )
    model = transformers.DetrForObjectDetection(config).eval()
    return model, {"pixel_values": torch.randn(2, 3, 64, 72), "pixel_mask": torch.ones(2, 64, 72, dtype=torch.int64)}


T5 = seq2seq(
    "T5ForConditionalGeneration",
    "T5Config",
    vocab_size=99,
    d_model=32,
    d_kv=8,
    d_ff=48,
    num_layers=2,
    num_heads=4,
    decoder_start_token_id=0,
)
BART = seq2seq(
    "BartForConditionalGeneration",
    "BartConfig",
    vocab_size=99,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=48,
    decoder_ffn_dim=48,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=2,
)

MODELS = {
    **DECODERS,
    **{f"{name}_decode": with_cache(make) for name, make in DECODERS.items()},
    "bert_masked_lm": encoder("BertForMaskedLM", "BertConfig", **small()),
    "bert_classify": encoder("BertForSequenceClassification", "BertConfig", **small()),
    "modernbert": encoder(
        "ModernBertForMaskedLM",
        "ModernBertConfig",
        **small(),
        global_attn_every_n_layers=2,
        local_attention=64,
        cls_token_id=1,
        sep_token_id=2,
    ),
    "t5": T5,
    "t5_decode": seq2seq_with_cache(T5),
    "bart": BART,
    "bart_decode": seq2seq_with_cache(BART),
    "whisper": whisper,
    "whisper_decode": seq2seq_with_cache(whisper),
    "vit": pixels(
        "ViTForImageClassification",
        "ViTConfig",
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=32,
        patch_size=8,
    ),
    "swin": pixels(
        "SwinForImageClassification",
        "SwinConfig",
        size=32,
        image_size=32,
        patch_size=2,
        embed_dim=16,
        depths=[2, 2],
        num_heads=[2, 2],
        window_size=4,
    ),
    "convnext": pixels(
        "ConvNextForImageClassification", "ConvNextConfig", size=64, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]
    ),
    "clip": two_towers("CLIPModel", "CLIPConfig"),
    "siglip": two_towers("SiglipModel", "SiglipConfig"),
    "wav2vec2": wav2vec2,
    "detr": detr,
}


# ---- plain PyTorch, no Transformers ------------------------------------------------------------


class Mlp(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 4))


class ConvNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1),
            torch.nn.BatchNorm2d(8),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(8, 16, 3, stride=2),
            torch.nn.BatchNorm2d(16),
            torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1),
        )
        self.head = torch.nn.Linear(16, 5)

    def forward(self, image):
        return self.head(self.features(image).flatten(1))


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(50, 12)
        self.lstm = torch.nn.LSTM(12, 16, num_layers=2, bidirectional=True, batch_first=True)
        self.head = torch.nn.Linear(32, 6)

    def forward(self, tokens):
        return self.head(self.lstm(self.embed(tokens))[0])


class UNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        conv = torch.nn.Conv2d
        self.down1, self.down2 = conv(1, 8, 3, padding=1), conv(8, 16, 3, padding=1)
        self.up1, self.up2 = conv(24, 8, 3, padding=1), conv(8, 2, 1)

    def forward(self, image):
        f = torch.nn.functional
        a = f.relu(self.down1(image))
        b = f.relu(self.down2(f.max_pool2d(a, 2)))
        c = f.interpolate(b, size=a.shape[-2:], mode="bilinear", align_corners=False)
        return self.up2(f.relu(self.up1(torch.cat([a, c], 1))))


def encoder_layer():
    layer = torch.nn.TransformerEncoderLayer(32, 4, 48, batch_first=True).eval()
    return layer, (torch.randn(2, 7, 32),)


PLAIN = {
    "mlp": lambda: (Mlp().eval(), (torch.randn(3, 8),)),
    "convnet": lambda: (ConvNet().eval(), (torch.randn(2, 3, 32, 40),)),
    "tagger": lambda: (Tagger().eval(), (torch.randint(0, 50, (2, 7)),)),
    "encoder_layer": encoder_layer,
    "unet": lambda: (UNet().eval(), (torch.randn(2, 1, 24, 20),)),
}
