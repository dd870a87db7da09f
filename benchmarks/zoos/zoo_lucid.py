"""vit-pytorch and x-transformers: small models of most of their modules; and attention and codes of their relatives."""

from __future__ import annotations

import importlib

import torch
import torchvision_operators

torchvision_operators.install()

IMAGE = {"image_size": 64, "patch_size": 8, "num_classes": 10, "dim": 32, "depth": 2, "heads": 2, "mlp_dim": 64}
VITS = {
    "vit.ViT": IMAGE,
    "simple_vit.SimpleViT": IMAGE,
    "deepvit.DeepViT": IMAGE,
    "vit_1d.ViT": {"seq_len": 64, "patch_size": 8, "num_classes": 10, "dim": 32, "depth": 2, "heads": 2, "mlp_dim": 64},
    "na_vit.NaViT": None,
    "cait.CaiT": {**IMAGE, "cls_depth": 2},
    "t2t.T2TViT": {"dim": 32, "image_size": 64, "depth": 2, "heads": 2, "mlp_dim": 64, "num_classes": 10,
                   "t2t_layers": ((7, 4), (3, 2), (3, 2))},
    "cct.CCT": {"img_size": 64, "embedding_dim": 32, "n_input_channels": 3, "num_layers": 2, "num_heads": 2, "num_classes": 10,
                "mlp_ratio": 2.0, "n_conv_layers": 1, "kernel_size": 7, "stride": 2, "padding": 3, "pooling_kernel_size": 3,
                "pooling_stride": 2, "pooling_padding": 1, "positional_embedding": "learnable"},
    "cross_vit.CrossViT": {"image_size": 64, "num_classes": 10, "depth": 2, "sm_dim": 32, "sm_patch_size": 8, "sm_enc_depth": 1,
                           "sm_enc_heads": 2, "sm_enc_mlp_dim": 64, "lg_dim": 48, "lg_patch_size": 16, "lg_enc_depth": 1,
                           "lg_enc_heads": 2, "lg_enc_mlp_dim": 64, "cross_attn_depth": 1, "cross_attn_heads": 2},
    "pit.PiT": {**IMAGE, "depth": (1, 1, 1)},
    "levit.LeViT": {"image_size": 64, "num_classes": 10, "stages": 3, "dim": (32, 48, 64), "depth": 1, "heads": (2, 3, 4),
                    "mlp_mult": 2},
    "cvt.CvT": {"num_classes": 10, "s1_emb_dim": 16, "s1_emb_kernel": 7, "s1_emb_stride": 4, "s1_heads": 1, "s1_depth": 1,
                "s2_emb_dim": 32, "s2_heads": 2, "s2_depth": 1, "s3_emb_dim": 48, "s3_heads": 2, "s3_depth": 1},
    "twins_svt.TwinsSVT": {"num_classes": 10, "s1_emb_dim": 16, "s1_patch_size": 4, "s1_local_patch_size": 4, "s1_global_k": 4,
                           "s1_depth": 1, "s2_emb_dim": 16, "s2_patch_size": 2, "s2_local_patch_size": 4, "s2_global_k": 4,
                           "s2_depth": 1, "s3_emb_dim": 32, "s3_patch_size": 2, "s3_local_patch_size": 4, "s3_global_k": 4,
                           "s3_depth": 1, "s4_emb_dim": 32, "s4_patch_size": 2, "s4_local_patch_size": 2, "s4_global_k": 2,
                           "s4_depth": 1},
    "crossformer.CrossFormer": {"num_classes": 10, "dim": (16, 32, 48, 64), "depth": (1, 1, 1, 1), "global_window_size": (8, 4, 2, 1),
                                "local_window_size": 4},
    "regionvit.RegionViT": {"dim": (16, 32, 48, 64), "depth": (1, 1, 1, 1), "window_size": 4, "num_classes": 10, "tokenize_local_3_conv": False,
                            "use_peg": False},
    "scalable_vit.ScalableViT": {"num_classes": 10, "dim": 16, "heads": (1, 2, 2, 4), "depth": (1, 1, 1, 1), "ssa_dim_key": (8, 8, 8, 8),
                                 "reduction_factor": (8, 4, 2, 1), "window_size": (16, 8, None, None), "dropout": 0.1},
    "sep_vit.SepViT": {"num_classes": 10, "dim": 16, "dim_head": 16, "heads": (1, 2, 2, 4), "depth": (1, 1, 1, 1), "window_size": 4,
                       "dropout": 0.1},
    "max_vit.MaxViT": {"num_classes": 10, "dim_conv_stem": 16, "dim": 16, "dim_head": 8, "depth": (1, 1), "window_size": 4,
                       "mbconv_expansion_rate": 2, "mbconv_shrinkage_rate": 0.25, "dropout": 0.1},
    "nest.NesT": {"image_size": 64, "patch_size": 4, "dim": 16, "heads": 2, "num_hierarchies": 3, "block_repeats": (1, 1, 1),
                  "num_classes": 10},
    "mobile_vit.MobileViT": {"image_size": (64, 64), "dims": [32, 48, 64], "channels": [8, 8, 16, 16, 16, 16, 24, 24, 32, 32, 64],
                             "num_classes": 10},
    "xcit.XCiT": {**IMAGE, "cls_depth": 1, "local_patch_kernel_size": 3},
    "parallel_vit.ViT": {**IMAGE, "num_parallel_branches": 2},
    "vit_for_small_dataset.ViT": IMAGE,
    "vit_3d.ViT": {"image_size": 32, "frames": 8, "image_patch_size": 8, "frame_patch_size": 2, "num_classes": 10, "dim": 32, "depth": 1,
                   "heads": 2, "mlp_dim": 64},
    "simple_vit_3d.SimpleViT": {"image_size": 32, "frames": 8, "image_patch_size": 8, "frame_patch_size": 2, "num_classes": 10, "dim": 32,
                                "depth": 1, "heads": 2, "mlp_dim": 64},
    "vivit.ViT": {"image_size": 32, "frames": 8, "image_patch_size": 8, "frame_patch_size": 2, "num_classes": 10, "dim": 32,
                  "spatial_depth": 1, "temporal_depth": 1, "heads": 2, "mlp_dim": 64},
    "simple_vit_with_register_tokens.SimpleViT": IMAGE,
    "simple_vit_with_fft.SimpleViT": {**IMAGE, "freq_patch_size": 8},
    "simple_flash_attn_vit.SimpleViT": IMAGE,
    "vit_with_patch_dropout.ViT": IMAGE,
    "look_vit.LookViT": {"dim": 32, "image_size": 64, "num_classes": 10, "depth": 1, "patch_size": 8, "heads": 2, "highres_patch_size": 8},
    "learnable_memory_vit.ViT": IMAGE,
    "efficient.ViT": None,
    "rvt.RvT": IMAGE,
    "ats_vit.ViT": {**IMAGE, "max_tokens_per_depth": (32, 16)},
    "jumbo_vit.JumboViT": {**IMAGE, "num_jumbo_cls": 1, "jumbo_cls_k": 2, "jumbo_ff_mult": 2},
    "normalized_vit.nViT": {"image_size": 64, "patch_size": 8, "num_classes": 10, "dim": 32, "depth": 2, "heads": 2},
    "local_vit.LocalViT": IMAGE,
    "vit_with_decorr.ViT": IMAGE,
    "simple_vit_with_qk_norm.SimpleViT": IMAGE,
    "simple_vit_with_patch_dropout.SimpleViT": IMAGE,
    "simple_vit_with_value_residual.SimpleViT": IMAGE,
    "simple_vit_with_hyper_connections.SimpleViT": {**IMAGE, "num_residual_streams": 2},
    "simple_uvit.SimpleUViT": IMAGE,
    "mp3.ViT": IMAGE,
    "vit_with_patch_merger.ViT": {**IMAGE, "patch_merge_layer": 0, "patch_merge_num_tokens": 4},
    "vit_with_keel_post_ln.ViT": IMAGE,
    "cct_3d.CCT": {"img_size": 32, "num_frames": 8, "embedding_dim": 32, "n_conv_layers": 1, "frame_kernel_size": 3, "kernel_size": 7,
                   "stride": 2, "padding": 3, "pooling_kernel_size": 3, "pooling_stride": 2, "pooling_padding": 1, "num_layers": 1,
                   "num_heads": 2, "mlp_ratio": 2.0, "num_classes": 5, "positional_embedding": "learnable"},
}  # fmt: skip


def vit(name):
    def build():
        module, of = name.split(".")
        model = getattr(importlib.import_module(f"vit_pytorch.{module}"), of)(**VITS[name])
        shape = (
            (2, 3, 64)
            if module == "vit_1d"
            else (1, 3, 8, 32, 32)
            if "3d" in module or module == "vivit"
            else (2, 3, 64, 64)
        )
        return model, (torch.randn(shape),)

    return build


MODELS = {f"vit_pytorch.{name}": vit(name) for name in VITS if VITS[name] is not None}

DECODERS = {
    "plain": {},
    "rotary": {"rotary_pos_emb": True},
    "alibi": {"alibi_pos_bias": True, "alibi_num_heads": 2},
    "t5 bias": {"rel_pos_bias": True},
    "dynamic position bias": {"dynamic_pos_bias": True, "dynamic_pos_bias_log_distance": False},
    "swiglu": {"ff_swish": True, "ff_glu": True},
    "rmsnorm": {"use_rmsnorm": True},
    "qk norm": {"attn_qk_norm": True},
    "grouped heads": {"attn_kv_heads": 1},
    "talking heads": {"attn_pre_talking_heads": True, "attn_post_talking_heads": True},
    "sparse topk": {"attn_sparse_topk": 4},
    "memory keys": {"attn_num_mem_kv": 4},
    "flash": {"attn_flash": True},
    "sandwich": {"sandwich_coef": 1},
    "macaron": {"macaron": True},
    "shift tokens": {"shift_tokens": 1},
    "residual attention": {"residual_attn": True},
    "gated residual": {"gate_residual": True},
    "xpos": {"rotary_xpos": True},
    "hyper connections": {"num_residual_streams": 2},
}


def decoder(name):
    def build():
        from x_transformers import Decoder, TransformerWrapper

        layers = Decoder(dim=32, depth=2, heads=2, attn_dim_head=16, **DECODERS[name])
        return TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers), (torch.randint(0, 64, (2, 12)),)

    return build


def x_vit():
    from x_transformers import Encoder, ViTransformerWrapper

    layers = Encoder(dim=32, depth=2, heads=2)
    return ViTransformerWrapper(image_size=64, patch_size=8, num_classes=10, attn_layers=layers), (
        torch.randn(2, 3, 64, 64),
    )


def x_continuous():
    from x_transformers import ContinuousTransformerWrapper, Encoder

    model = ContinuousTransformerWrapper(
        dim_in=8, dim_out=4, max_seq_len=64, attn_layers=Encoder(dim=32, depth=2, heads=2)
    )
    return model, {"x": torch.randn(2, 12, 8), "mask": torch.ones(2, 12, dtype=torch.bool)}


def x_masked():
    from x_transformers import Encoder, TransformerWrapper

    model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=Encoder(dim=32, depth=2, heads=2))
    mask = torch.ones(2, 12, dtype=torch.bool)
    mask[1, 7:] = False
    return model, {"x": torch.randint(0, 64, (2, 12)), "mask": mask}


MODELS |= {f"x_transformers.{name}": decoder(name) for name in DECODERS}
MODELS |= {"x_transformers.vit": x_vit, "x_transformers.continuous": x_continuous, "x_transformers.masked": x_masked}


def x_encoder_decoder():
    from x_transformers import XTransformer

    given = {"num_tokens": 64, "depth": 1, "heads": 2, "max_seq_len": 32}
    model = XTransformer(
        dim=32, **{f"enc_{k}": v for k, v in given.items()}, **{f"dec_{k}": v for k, v in given.items()}
    )
    return Pair(model), (torch.randint(0, 64, (2, 9)), torch.randint(0, 64, (2, 7)))


class Pair(torch.nn.Module):
    """Encoder and decoder without the loss."""

    def __init__(self, of):
        super().__init__()
        self.of = of

    def forward(self, source, target):
        return self.of.decoder.net(target, context=self.of.encoder(source, return_embeddings=True))


MORE = {
    "one kv head": {"attn_one_kv_head": True}, "rotary part": {"rotary_pos_emb": True, "rotary_emb_dim": 8},
    "laser": {"attn_laser": True}, "softclamp": {"attn_softclamp_logits": True}, "gated values": {"attn_gate_values": True},
    "attention on attention": {"attn_on_attn": True}, "zero kv": {"attn_add_zero_kv": True}, "cope": {"attn_use_cope": True},
    "relu squared": {"ff_relu_squared": True}, "scalenorm": {"use_scalenorm": True}, "layerscale": {"use_layerscale": True},
    "polar": {"polar_pos_emb": True}, "selective": {"attn_selective": True}, "differential": {"attn_differential": True},
    "sandwich norm": {"sandwich_norm": True}, "data dependent alibi": {"attn_data_dependent_alibi": True}, "sigmoid": {"attn_sigmoid": True},
    "dynamic tanh": {"use_dynamic_tanh": True}, "derf": {"use_derf": True}, "simple rmsnorm": {"use_simple_rmsnorm": True},
    "unet skips": {"unet_skips": True}, "soft clamped output": {"softclamp_output": True}, "looped": {"layers_execute_order": (0, 1, 0, 1)},
    "reinjected input": {"reinject_input": True}, "gated heads": {"attn_gate_value_heads": True},
    "orthogonal values": {"attn_orthog_projected_values": True}, "distances": {"attn_l2_distance": True},
    "grouped qk norm": {"attn_one_kv_head": True, "attn_qk_norm": True, "attn_qk_norm_groups": 2},
}  # fmt: skip
DECODERS |= MORE
MODELS |= {f"x_transformers.{name}": decoder(name) for name in MORE}
MODELS["x_transformers.encoder and decoder"] = x_encoder_decoder

SMALL = {"dim": 16, "heads": 2, "dim_head": 8}
CODES = {"dim": 16, "codebook_size": 32}
LATENTS = {"depth": 2, "num_latents": 8, "latent_dim": 16, "num_classes": 5, "num_freq_bands": 4, "max_freq": 10.0}
OTHERS = {  # class: arguments, and the shape of what goes in; of token ids for those that have a vocabulary
    "performer_pytorch.PerformerLM": ({"num_tokens": 20, "max_seq_len": 64, "dim": 32, "depth": 2, "heads": 2}, (2, 16)),
    "linformer.Linformer": ({"dim": 32, "seq_len": 64, "depth": 2, "heads": 2, "k": 16}, (2, 64, 32)),
    "axial_attention.AxialAttention": ({"dim": 16, "dim_index": 1, "heads": 2, "num_dimensions": 2}, (2, 16, 12, 14)),
    "perceiver_pytorch.Perceiver": ({"input_channels": 3, "input_axis": 2, **LATENTS}, (2, 24, 20, 3)),
    "perceiver_pytorch.PerceiverLM": ({"num_tokens": 20, "dim": 16, "depth": 1, "max_seq_len": 64, "num_latents": 8, "latent_dim": 16}, (2, 30)),
    "conformer.Conformer": ({**SMALL, "depth": 2, "conv_kernel_size": 7}, (2, 24, 16)),
    "lambda_networks.LambdaLayer": ({"dim": 16, "dim_out": 16, "r": 7, "dim_k": 8, "heads": 2, "dim_u": 2}, (2, 16, 16, 18)),
    "nystrom_attention.NystromAttention": ({**SMALL, "num_landmarks": 8, "pinv_iterations": 3}, (2, 32, 16)),
    "taylor_series_linear_attention.TaylorSeriesLinearAttn": ({"dim": 16, "dim_head": 4, "heads": 2}, (2, 16, 16)),
    "halonet_pytorch.HaloAttention": ({**SMALL, "block_size": 8, "halo_size": 4}, (2, 16, 24, 32)),
    "hourglass_transformer_pytorch.HourglassTransformerLM": (
        {**SMALL, "num_tokens": 20, "max_seq_len": 64, "shorten_factor": (2,), "depth": (1, 2, 1)}, (2, 24)),
    "agent_attention_pytorch.AgentSelfAttention": ({**SMALL, "num_agent_tokens": 4}, (2, 20, 16)),
    "deformable_attention.DeformableAttention2D": ({**SMALL, "offset_groups": 2}, (1, 16, 24, 32)),
    "vector_quantize_pytorch.VectorQuantize": (CODES, (2, 20, 16)),
    "vector_quantize_pytorch.ResidualVQ": ({**CODES, "num_quantizers": 3}, (2, 20, 16)),
    "vector_quantize_pytorch.FSQ": ({"levels": [8, 5, 5], "dim": 16}, (2, 20, 16)),
    "vector_quantize_pytorch.LFQ": ({"dim": 16, "codebook_size": 256}, (2, 16, 8, 6)),
}  # fmt: skip


def other(name):
    def build():
        given, shape = OTHERS[name]
        module, _, of = name.rpartition(".")
        model = getattr(importlib.import_module(module), of)(**given)
        return model, (torch.randint(0, 20, shape) if "num_tokens" in given else torch.randn(shape),)

    return build


MODELS |= {name: other(name) for name in OTHERS}
