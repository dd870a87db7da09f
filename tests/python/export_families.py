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
    from fairlead.leaves import get_leaf_tensors
    from fairlead.patches import torch_export_patches

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


def filled_cache(model, kind, batch, past):
    """A cache with `past` tokens in it."""
    with torch.no_grad():
        return model(input_ids=ids(batch, past), use_cache=True).past_key_values


def with_cache(name, config_name, **config):
    def make():
        import transformers

        model = make_model(name, getattr(transformers, config_name)(**config))

        def call(batch, past, new):
            mask = torch.ones(batch, past + new, dtype=torch.int64)
            mask[0, :2] = 0
            return {
                "input_ids": ids(batch, new, seed=1),
                "attention_mask": mask,
                "past_key_values": filled_cache(model, None, batch, past),
            }

        first = call(2, 6, 3)
        return model, first, None, call(3, 5, 4)

    return make


MOE = small(num_key_value_heads=2, num_hidden_layers=1, num_experts_per_tok=2)
FAMILIES = {
    "llama": text("LlamaForCausalLM", "LlamaConfig", **small(num_key_value_heads=2)),
    "llama_dynamic_ntk": text(
        "LlamaForCausalLM",
        "LlamaConfig",
        sizes=((2, 9), (3, 37)),
        **small(num_key_value_heads=2, num_hidden_layers=1)
        | {"max_position_embeddings": 16, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}},
    ),
    "phi3_longrope": text(
        "Phi3ForCausalLM",
        "Phi3Config",
        sizes=((2, 9), (3, 37)),
        **small(num_key_value_heads=2, num_hidden_layers=1)
        | {
            "max_position_embeddings": 64,
            "original_max_position_embeddings": 16,
            "rope_scaling": {
                "type": "longrope",
                "rope_type": "longrope",
                "short_factor": [1.0, 1.1, 1.2, 1.3],
                "long_factor": [2.0, 2.5, 3.0, 3.5],
                "original_max_position_embeddings": 16,
            },
        },
    ),
    "mixtral": text("MixtralForCausalLM", "MixtralConfig", **MOE, num_local_experts=4),
    "qwen3_moe": text(
        "Qwen3MoeForCausalLM", "Qwen3MoeConfig", **MOE, head_dim=8, num_experts=4, moe_intermediate_size=16
    ),
    "qwen2_moe": text(
        "Qwen2MoeForCausalLM",
        "Qwen2MoeConfig",
        **MOE,
        num_experts=4,
        moe_intermediate_size=16,
        shared_expert_intermediate_size=16,
    ),
    "gemma3": text(
        "Gemma3ForCausalLM",
        "Gemma3TextConfig",
        **small(
            num_key_value_heads=2, head_dim=8, sliding_window=4, layer_types=["sliding_attention", "full_attention"]
        ),
    ),
    "funnel": text(
        "FunnelModel",
        "FunnelConfig",
        vocab_size=99,
        block_sizes=[1, 1],
        num_decoder_layers=1,
        d_model=16,
        n_head=2,
        d_head=8,
        d_inner=16,
        max_position_embeddings=64,
    ),
    "funnel_base": text(
        "FunnelBaseModel",
        "FunnelConfig",
        vocab_size=99,
        block_sizes=[1, 1, 1],
        num_decoder_layers=1,
        d_model=16,
        n_head=2,
        d_head=8,
        d_inner=16,
        max_position_embeddings=64,
    ),
    "funnel_factorized": text(
        "FunnelModel",
        "FunnelConfig",
        vocab_size=99,
        block_sizes=[1, 1],
        num_decoder_layers=1,
        d_model=16,
        n_head=2,
        d_head=8,
        d_inner=16,
        max_position_embeddings=64,
        attention_type="factorized",
    ),
}
