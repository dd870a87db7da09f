"""Tiny models of the families that patches are for: (model, inputs, dynamic shapes, inputs of other sizes) by name."""

from __future__ import annotations

import copy

import torch
from zoo import small

AUTO = torch.export.Dim.AUTO
BOTH = {0: AUTO, 1: AUTO}


def ids(batch, sequence, seed=0, low=5, high=99):
    return torch.randint(low, high, (batch, sequence), generator=torch.Generator().manual_seed(seed))


def make_model(name, config):
    import transformers

    torch.manual_seed(0)
    return getattr(transformers, name)(config).eval()


def text_call(batch, sequence):
    mask = torch.ones(batch, sequence, dtype=torch.int64)
    mask[0, :2] = 0
    return {"input_ids": ids(batch, sequence), "attention_mask": mask}


def text(name, config_name, sizes=((2, 9), (3, 13)), **config):
    def make():
        import transformers

        model = make_model(name, getattr(transformers, config_name)(**config))
        first, other = (text_call(*size) for size in sizes)
        return model, first, {"input_ids": BOTH, "attention_mask": BOTH}, other

    return make


def exported(model, inputs, shapes, **options):
    """The program of torch.export within the block, and the account of the block."""
    from fairlead.patches import torch_export_patches

    with torch_export_patches(model=model) as applied, torch.no_grad():
        return torch.export.export(model, (), copy.deepcopy(inputs), dynamic_shapes=shapes, **options), applied


def differences(program, model, inputs):
    """The largest difference between a program and its model at some inputs; names and dtypes must agree."""
    from fairlead.patches import torch_export_patches
    from fairlead.tree.leaves import get_leaf_tensors

    with torch.no_grad():
        wanted = get_leaf_tensors(model(**copy.deepcopy(inputs)))
        with torch_export_patches():
            got = get_leaf_tensors(program.module()(**copy.deepcopy(inputs)))
    assert {name: (t.dtype, t.shape) for name, t in got.items()} == {
        name: (t.dtype, t.shape) for name, t in wanted.items()
    }
    return max(
        (got[name].double() - wanted[name].double()).abs().max().item() for name in wanted if wanted[name].numel()
    )


def cache_shapes(cache):
    """Batch and length of every tensor of a cache, as torch.export wants them: a list for each cache."""
    from fairlead.tree.caches import register_flattening_functions

    if hasattr(cache, "cross_attention_cache"):
        return [cache_shapes(cache.self_attention_cache), cache_shapes(cache.cross_attention_cache)]
    with register_flattening_functions():
        leaves = torch.utils._pytree.tree_leaves(cache)
    return [{0: AUTO, 2: AUTO} if leaf.dim() == 4 else {} for leaf in leaves]


def with_cache(name, config_name, cache_class="DynamicCache", sizes=((2, 6, 3), (3, 5, 4)), **config):
    """The call that decodes some tokens after some that are in a cache."""

    def make():
        import transformers

        model = make_model(name, getattr(transformers, config_name)(**config))

        def call(batch, past, new):
            given = {}  # the model makes a cache of its own kind, with a window where it has one
            if cache_class == "StaticCache":
                given["past_key_values"] = transformers.StaticCache(config=model.config, max_cache_len=16)
            with torch.no_grad():
                cache = model(input_ids=ids(batch, past), use_cache=True, **given).past_key_values
            mask = torch.ones(batch, past + new, dtype=torch.int64)
            mask[0, :2] = 0
            return {"input_ids": ids(batch, new, seed=1), "attention_mask": mask, "past_key_values": cache}

        first, other = (call(*size) for size in sizes)
        shapes = {"input_ids": BOTH, "attention_mask": BOTH, "past_key_values": cache_shapes(first["past_key_values"])}
        if cache_class == "StaticCache":
            shapes["past_key_values"] = [{0: AUTO} if axes else {} for axes in shapes["past_key_values"]]
        return model, first, shapes, other

    return make


def seq2seq_with_cache(name, config_name, **config):
    def make():
        import transformers

        model = make_model(name, getattr(transformers, config_name)(**config))

        def call(batch, source, past, new):
            given = {"input_ids": ids(batch, source), "attention_mask": torch.ones(batch, source, dtype=torch.int64)}
            with torch.no_grad():
                out = model(**given, decoder_input_ids=ids(batch, past, seed=1), use_cache=True)
            return {
                "encoder_outputs": (out.encoder_last_hidden_state,),
                "attention_mask": given["attention_mask"],
                "decoder_input_ids": ids(batch, new, seed=2),
                "past_key_values": out.past_key_values,
            }

        first, other = call(2, 7, 4, 3), call(3, 5, 6, 2)
        shapes = {
            "encoder_outputs": (BOTH,),
            "attention_mask": BOTH,
            "decoder_input_ids": BOTH,
            "past_key_values": cache_shapes(first["past_key_values"]),
        }
        return model, first, shapes, other

    return make


def seq2seq(name, config_name, **config):
    def make():
        import transformers

        model = make_model(name, getattr(transformers, config_name)(**config))

        def call(batch, source, target):
            return text_call(batch, source) | {"decoder_input_ids": ids(batch, target, seed=1)}

        return (
            model,
            call(2, 9, 4),
            dict.fromkeys(("input_ids", "attention_mask", "decoder_input_ids"), BOTH),
            call(3, 13, 5),
        )

    return make


def vision_tower(family):
    """Qwen2-VL and Qwen2.5-VL: images and clips of different sizes in one call."""

    def make():
        import importlib

        module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
        configs = importlib.import_module(f"transformers.models.{family}.configuration_{family}")
        torch.manual_seed(0)
        if family == "qwen2_vl":
            config = configs.Qwen2VLVisionConfig(
                depth=2, embed_dim=32, hidden_size=48, num_heads=4, mlp_ratio=2, patch_size=4, spatial_merge_size=2
            )
            cls = module.Qwen2VisionTransformerPretrainedModel
        else:
            config = configs.Qwen2_5_VLVisionConfig(
                depth=2, hidden_size=32, intermediate_size=48, out_hidden_size=48, num_heads=4, patch_size=4,
                spatial_merge_size=2, window_size=16, fullatt_block_indexes=[1],
            )  # fmt: skip
            cls = module.Qwen2_5_VisionTransformerPretrainedModel
        config._attn_implementation = "sdpa"
        model = cls(config).eval()

        def call(*grids):
            grid = torch.tensor(grids)
            patches = int(grid.prod(1).sum())
            generator = torch.Generator().manual_seed(0)
            size = config.in_channels * config.temporal_patch_size * config.patch_size**2
            return {"hidden_states": torch.randn(patches, size, generator=generator), "grid_thw": grid}

        first, other = call((1, 4, 6), (2, 8, 4)), call((1, 6, 6), (3, 4, 10), (1, 2, 2))
        return model, first, {"hidden_states": {0: AUTO}, "grid_thw": {0: AUTO}}, other

    return make


def idefics(version):
    def make():
        import transformers

        vision = {
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "image_size": 16,
            "patch_size": 4,
        }
        text = {
            "model_type": "llama",
            "vocab_size": 99,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 128,
            "pad_token_id": 0,
        }
        if version == 2:
            perceiver = {
                "hidden_size": 32,
                "resampler_n_latents": 4,
                "resampler_depth": 1,
                "resampler_n_heads": 2,
                "resampler_head_dim": 8,
                "num_key_value_heads": 1,
            }
            text["model_type"] = "mistral"
            config = transformers.Idefics2Config(
                vision_config=vision, perceiver_config=perceiver, text_config=text, image_token_id=98
            )
            name, per_image = "Idefics2ForConditionalGeneration", 4
        else:
            config = transformers.Idefics3Config(
                vision_config=vision, text_config=text, image_token_id=98, scale_factor=2, pad_token_id=0
            )
            name, per_image = "Idefics3ForConditionalGeneration", 4
        model = make_model(name, config)

        def call(images, sequence):
            """`images`: how many real images each row has; the others are padding, all zero."""
            batch, most = len(images), max(images)
            tokens = ids(batch, sequence, high=98)
            pixels = torch.zeros(batch, most, 3, 16, 16)
            mask = torch.zeros(batch, most, 16, 16, dtype=torch.int64)
            generator = torch.Generator().manual_seed(0)
            for row, count in enumerate(images):
                tokens[row, : count * per_image] = 98
                for image in range(count):
                    wide = 16 - 4 * ((row + image) % 2)
                    pixels[row, image, :, :, :wide] = torch.randn(3, 16, wide, generator=generator)
                    mask[row, image, :, :wide] = 1
            return {
                "input_ids": tokens,
                "attention_mask": torch.ones(batch, sequence, dtype=torch.int64),
                "pixel_values": pixels,
                "pixel_attention_mask": mask,
            }

        shapes = {"input_ids": BOTH, "attention_mask": BOTH, "pixel_values": BOTH, "pixel_attention_mask": BOTH}
        return model, call([2, 1], 14), shapes, call([1, 3, 2], 17)

    return make


def sam():
    import transformers

    vision = transformers.SamVisionConfig(
        hidden_size=32, output_channels=16, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=4,
        window_size=3, global_attn_indexes=[1], mlp_dim=48, num_pos_feats=8,
    )  # fmt: skip
    prompt = transformers.SamPromptEncoderConfig(hidden_size=16, image_size=32, patch_size=4, mask_input_channels=8)
    decoder = transformers.SamMaskDecoderConfig(
        hidden_size=16, mlp_dim=32, num_hidden_layers=1, num_attention_heads=2, iou_head_hidden_dim=16
    )
    config = transformers.SamConfig(
        vision_config=vision.to_dict(), prompt_encoder_config=prompt.to_dict(), mask_decoder_config=decoder.to_dict()
    )
    model = make_model("SamModel", config)

    def call(batch, prompts, points):
        generator = torch.Generator().manual_seed(0)
        return {
            "pixel_values": torch.randn(batch, 3, 32, 32, generator=generator),
            "input_points": torch.rand(batch, prompts, points, 2, generator=generator) * 32,
            "input_labels": torch.randint(0, 2, (batch, prompts, points), generator=generator),
        }

    shapes = {
        "pixel_values": {0: AUTO},
        "input_points": {0: AUTO, 1: AUTO, 2: AUTO},
        "input_labels": {0: AUTO, 1: AUTO, 2: AUTO},
    }
    return model, call(2, 3, 4), shapes, call(3, 2, 5)


ONE = small(num_key_value_heads=2, num_hidden_layers=1)
MOE = ONE | {"num_experts_per_tok": 2}
EXPERTS = {"num_experts": 4, "moe_intermediate_size": 16}
SLIDING = small(num_key_value_heads=2, head_dim=8, layer_types=["sliding_attention", "full_attention"])
FUNNEL = {
    "vocab_size": 99, "num_decoder_layers": 1, "d_model": 16, "n_head": 2, "d_head": 8, "d_inner": 16,
    "max_position_embeddings": 64,
}  # fmt: skip
LONG = {
    "max_position_embeddings": 64,
    "original_max_position_embeddings": 16,
    "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.3], "long_factor": [2.0, 2.5, 3.0, 3.5]},
}
DYNAMIC = {"max_position_embeddings": 16, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}
ACROSS = ((2, 9), (3, 37))  # below and above the length at which frequencies change
BART = {
    "vocab_size": 99, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 64,
}  # fmt: skip
SWITCH = {
    "vocab_size": 99, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_decoder_layers": 1,
    "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1, "num_heads": 2, "num_experts": 3,
}  # fmt: skip

FAMILIES = {
    "llama": text("LlamaForCausalLM", "LlamaConfig", **ONE),
    "llama_dynamic_ntk": text("LlamaForCausalLM", "LlamaConfig", sizes=ACROSS, **ONE | DYNAMIC),
    "phi3_longrope": text("Phi3ForCausalLM", "Phi3Config", sizes=ACROSS, **ONE | LONG),
    "llama_cache": with_cache("LlamaForCausalLM", "LlamaConfig", **ONE),
    "llama_static_cache": with_cache("LlamaForCausalLM", "LlamaConfig", "StaticCache", **ONE),
    "gemma3_sliding_cache": with_cache("Gemma3ForCausalLM", "Gemma3TextConfig", **SLIDING, sliding_window=12),
    "gemma3_full_window": with_cache("Gemma3ForCausalLM", "Gemma3TextConfig", **SLIDING, sliding_window=4),
    "bart_cache": seq2seq_with_cache("BartForConditionalGeneration", "BartConfig", **BART),
    "mixtral": text("MixtralForCausalLM", "MixtralConfig", **MOE, num_local_experts=4),
    "mixtral_loop": text(
        "MixtralForCausalLM", "MixtralConfig", **MOE, num_local_experts=4, experts_implementation="eager"
    ),
    "qwen3_moe": text("Qwen3MoeForCausalLM", "Qwen3MoeConfig", **MOE | EXPERTS, head_dim=8),
    "switch": seq2seq("SwitchTransformersForConditionalGeneration", "SwitchTransformersConfig", **SWITCH),
    "funnel": text("FunnelBaseModel", "FunnelConfig", **FUNNEL, block_sizes=[1, 1, 1]),
    "qwen2_vl": vision_tower("qwen2_vl"),
    "qwen2_5_vl": vision_tower("qwen2_5_vl"),
    "idefics2": idefics(2),
    "idefics3": idefics(3),
    "sam": sam,
}
