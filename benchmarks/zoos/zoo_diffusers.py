"""Diffusers: tiny configurations of UNets, autoencoders and transformers."""

from __future__ import annotations

import diffusers
import torch

UNET = {"block_out_channels": (16, 32), "layers_per_block": 1, "norm_num_groups": 8, "sample_size": 16}
TIME = torch.tensor([10])


def unet2d():
    model = diffusers.UNet2DModel(**UNET, in_channels=3, out_channels=3, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                                  up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8)  # fmt: skip
    return model, {"sample": torch.randn(1, 3, 16, 16), "timestep": TIME}


def unet_condition():
    model = diffusers.UNet2DConditionModel(**UNET, in_channels=4, out_channels=4, cross_attention_dim=32, attention_head_dim=8,
                                           down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
                                           up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"))  # fmt: skip
    return model, {
        "sample": torch.randn(2, 4, 16, 16),
        "timestep": TIME,
        "encoder_hidden_states": torch.randn(2, 7, 32),
    }


def unet_xl():
    model = diffusers.UNet2DConditionModel(**UNET, in_channels=4, out_channels=4, cross_attention_dim=32, attention_head_dim=(2, 4),
                                           use_linear_projection=True, addition_embed_type="text_time", addition_time_embed_dim=8,
                                           projection_class_embeddings_input_dim=80, transformer_layers_per_block=(1, 2),
                                           down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
                                           up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"))  # fmt: skip
    more = {"text_embeds": torch.randn(2, 32), "time_ids": torch.randn(2, 6)}
    return model, {"sample": torch.randn(2, 4, 16, 16), "timestep": TIME, "encoder_hidden_states": torch.randn(2, 7, 32),
                   "added_cond_kwargs": more}  # fmt: skip


def unet_1d():
    model = diffusers.UNet1DModel(block_out_channels=(8, 16, 16), in_channels=4, out_channels=4, time_embedding_type="positional",
                                  down_block_types=("DownResnetBlock1D",) * 3, up_block_types=("UpResnetBlock1D",) * 2,
                                  mid_block_type="MidResTemporalBlock1D", out_block_type="OutConv1DBlock", flip_sin_to_cos=False,
                                  use_timestep_embedding=True, freq_shift=1.0, act_fn="mish", layers_per_block=1)  # fmt: skip
    return model, {"sample": torch.randn(2, 4, 16), "timestep": torch.tensor([10, 10])}


def unet_3d():
    model = diffusers.UNet3DConditionModel(**UNET, in_channels=4, out_channels=4, cross_attention_dim=16, attention_head_dim=8,
                                           down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
                                           up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"))  # fmt: skip
    return model, {
        "sample": torch.randn(1, 4, 4, 16, 16),
        "timestep": TIME,
        "encoder_hidden_states": torch.randn(1, 7, 16),
    }


def controlnet():
    model = diffusers.ControlNetModel(block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=8, in_channels=4,
                                      cross_attention_dim=32, attention_head_dim=8, conditioning_embedding_out_channels=(16, 32),
                                      down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"))  # fmt: skip
    return model, {"sample": torch.randn(1, 4, 16, 16), "timestep": TIME, "encoder_hidden_states": torch.randn(1, 7, 32),
                   "controlnet_cond": torch.randn(1, 3, 32, 32)}  # fmt: skip


def vae():
    model = diffusers.AutoencoderKL(block_out_channels=(8, 16), norm_num_groups=4, layers_per_block=1, sample_size=16,
                                    down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)  # fmt: skip
    return model, {"sample": torch.randn(2, 3, 16, 16)}


def tiny_vae():
    model = diffusers.AutoencoderTiny(encoder_block_out_channels=(8, 8), decoder_block_out_channels=(8, 8),
                                      num_encoder_blocks=(1, 1), num_decoder_blocks=(1, 1))  # fmt: skip
    return model, {"sample": torch.randn(2, 3, 16, 16)}


def vq():
    model = diffusers.VQModel(block_out_channels=(8, 16), norm_num_groups=4, layers_per_block=1,
                              down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)  # fmt: skip
    return model, {"sample": torch.randn(2, 3, 16, 16)}


def asymmetric():
    model = diffusers.AsymmetricAutoencoderKL(down_block_out_channels=(8, 16), up_block_out_channels=(8, 16), norm_num_groups=4,
                                              down_block_types=("DownEncoderBlock2D",) * 2, sample_size=16,
                                              up_block_types=("UpDecoderBlock2D",) * 2)  # fmt: skip
    return model, {"sample": torch.randn(2, 3, 16, 16)}


def dc_ae():
    model = diffusers.AutoencoderDC(in_channels=3, latent_channels=4, attention_head_dim=4, encoder_block_types=("ResBlock", "EfficientViTBlock"),
                                    decoder_block_types=("ResBlock", "EfficientViTBlock"), encoder_block_out_channels=(8, 8),
                                    decoder_block_out_channels=(8, 8), encoder_qkv_multiscales=((), (5,)), decoder_qkv_multiscales=((), (5,)),
                                    encoder_layers_per_block=(1, 1), decoder_layers_per_block=(1, 1))  # fmt: skip
    return model, {"sample": torch.randn(2, 3, 32, 32)}


def wan_vae():
    model = diffusers.AutoencoderKLWan(base_dim=4, z_dim=4, dim_mult=[1, 1, 1, 1], num_res_blocks=1,
                                       temperal_downsample=[False, True, True])  # fmt: skip
    return model, {"sample": torch.randn(1, 3, 5, 16, 16)}


def cog_vae():
    model = diffusers.AutoencoderKLCogVideoX(block_out_channels=(8, 8, 8, 8), norm_num_groups=2, layers_per_block=1, latent_channels=4,
                                             down_block_types=("CogVideoXDownBlock3D",) * 4,
                                             up_block_types=("CogVideoXUpBlock3D",) * 4)  # fmt: skip
    return model, {"sample": torch.randn(1, 3, 9, 16, 16)}


def dit():
    model = diffusers.DiTTransformer2DModel(num_attention_heads=2, attention_head_dim=8, in_channels=4, num_layers=2, sample_size=8,
                                            patch_size=2, num_embeds_ada_norm=10, out_channels=8)  # fmt: skip
    return model, {
        "hidden_states": torch.randn(2, 4, 8, 8),
        "timestep": torch.tensor([5, 5]),
        "class_labels": torch.tensor([1, 2]),
    }


def pixart():
    model = diffusers.PixArtTransformer2DModel(num_attention_heads=2, attention_head_dim=8, in_channels=4, num_layers=2, sample_size=8,
                                               patch_size=2, caption_channels=16, cross_attention_dim=16, out_channels=8,
                                               use_additional_conditions=False)  # fmt: skip
    return model, {"hidden_states": torch.randn(2, 4, 8, 8), "encoder_hidden_states": torch.randn(2, 7, 16), "timestep": torch.tensor([5, 5]),
                   "added_cond_kwargs": {"aspect_ratio": None, "resolution": None}}  # fmt: skip


def sd3():
    model = diffusers.SD3Transformer2DModel(sample_size=16, patch_size=2, in_channels=4, num_layers=2, attention_head_dim=8,
                                            num_attention_heads=2, joint_attention_dim=16, caption_projection_dim=16,
                                            pooled_projection_dim=24, out_channels=4, pos_embed_max_size=32)  # fmt: skip
    return model, {"hidden_states": torch.randn(2, 4, 16, 16), "encoder_hidden_states": torch.randn(2, 7, 16),
                   "pooled_projections": torch.randn(2, 24), "timestep": torch.tensor([5.0, 5.0])}  # fmt: skip


def flux():
    model = diffusers.FluxTransformer2DModel(patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16,
                                             num_attention_heads=2, joint_attention_dim=16, pooled_projection_dim=16,
                                             axes_dims_rope=(4, 4, 8))  # fmt: skip
    return model, {"hidden_states": torch.randn(2, 16, 4), "encoder_hidden_states": torch.randn(2, 7, 16), "pooled_projections": torch.randn(2, 16),
                   "timestep": torch.tensor([0.5, 0.5]), "img_ids": torch.randn(16, 3), "txt_ids": torch.zeros(7, 3)}  # fmt: skip


def sana():
    model = diffusers.SanaTransformer2DModel(in_channels=4, out_channels=4, num_attention_heads=2, attention_head_dim=8, num_layers=1,
                                             num_cross_attention_heads=2, cross_attention_head_dim=8, cross_attention_dim=16,
                                             caption_channels=16, sample_size=16, patch_size=1)  # fmt: skip
    return model, {
        "hidden_states": torch.randn(2, 4, 16, 16),
        "encoder_hidden_states": torch.randn(2, 7, 16),
        "timestep": torch.tensor([5, 5]),
    }


def cogvideo():
    model = diffusers.CogVideoXTransformer3DModel(num_attention_heads=2, attention_head_dim=8, in_channels=4, out_channels=4, num_layers=1,
                                                  time_embed_dim=8, text_embed_dim=16, sample_width=8, sample_height=8, sample_frames=9,
                                                  patch_size=2, temporal_compression_ratio=4, max_text_seq_length=8)  # fmt: skip
    return model, {
        "hidden_states": torch.randn(1, 3, 4, 8, 8),
        "encoder_hidden_states": torch.randn(1, 8, 16),
        "timestep": TIME,
    }


def wan():
    model = diffusers.WanTransformer3DModel(patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=12, in_channels=4, out_channels=4,
                                            text_dim=16, freq_dim=16, ffn_dim=32, num_layers=1, rope_max_seq_len=32)  # fmt: skip
    return model, {
        "hidden_states": torch.randn(1, 4, 2, 8, 8),
        "timestep": TIME,
        "encoder_hidden_states": torch.randn(1, 7, 16),
    }


def ltx():
    model = diffusers.LTXVideoTransformer3DModel(in_channels=8, out_channels=8, num_attention_heads=2, attention_head_dim=16, num_layers=1,
                                                 cross_attention_dim=32, caption_channels=16)  # fmt: skip
    return model, {"hidden_states": torch.randn(1, 32, 8), "encoder_hidden_states": torch.randn(1, 7, 16), "timestep": TIME,
                   "encoder_attention_mask": torch.ones(1, 7, dtype=torch.bool), "num_frames": 2, "height": 4, "width": 4}  # fmt: skip


def prior():
    model = diffusers.PriorTransformer(num_attention_heads=2, attention_head_dim=8, num_layers=1, embedding_dim=16, num_embeddings=7,
                                       additional_embeddings=4)  # fmt: skip
    return model, {"hidden_states": torch.randn(2, 16), "timestep": torch.tensor([5]), "proj_embedding": torch.randn(2, 16),
                   "encoder_hidden_states": torch.randn(2, 7, 16)}  # fmt: skip


def uvit():
    model = diffusers.UVit2DModel(hidden_size=32, cond_embed_dim=16, micro_cond_encode_dim=8, micro_cond_embed_dim=40, encoder_hidden_size=16,
                                  vocab_size=32, codebook_size=24, in_channels=16, block_out_channels=16, num_hidden_layers=1,
                                  num_attention_heads=2, block_num_heads=2, intermediate_size=64)  # fmt: skip
    return model, {"input_ids": torch.randint(0, 24, (2, 8, 8)), "encoder_hidden_states": torch.randn(2, 7, 16),
                   "pooled_text_emb": torch.randn(2, 16), "micro_conds": torch.randn(2, 5)}  # fmt: skip


def t2i_adapter():
    return diffusers.T2IAdapter(in_channels=3, channels=[8, 8, 16, 16], num_res_blocks=1, downscale_factor=8), (
        torch.randn(2, 3, 64, 64),
    )


def aura():
    model = diffusers.AuraFlowTransformer2DModel(sample_size=8, patch_size=2, in_channels=4, num_mmdit_layers=1, num_single_dit_layers=1,
                                                 attention_head_dim=8, num_attention_heads=2, joint_attention_dim=16,
                                                 caption_projection_dim=16, pos_embed_max_size=64)  # fmt: skip
    return model, {
        "hidden_states": torch.randn(2, 4, 8, 8),
        "encoder_hidden_states": torch.randn(2, 7, 16),
        "timestep": torch.tensor([0.5, 0.5]),
    }


def latte():
    model = diffusers.LatteTransformer3DModel(num_attention_heads=2, attention_head_dim=8, in_channels=4, out_channels=8, num_layers=1,
                                              cross_attention_dim=16, attention_bias=True, sample_size=8, patch_size=2,
                                              activation_fn="gelu-approximate", num_embeds_ada_norm=1000, norm_type="ada_norm_single",
                                              norm_elementwise_affine=False, caption_channels=8, video_length=2)  # fmt: skip
    return model, {"hidden_states": torch.randn(2, 4, 2, 8, 8), "encoder_hidden_states": torch.randn(2, 5, 8), "timestep": torch.tensor([5, 5]),
                   "enable_temporal_attentions": True}  # fmt: skip


def mochi():
    model = diffusers.MochiTransformer3DModel(patch_size=2, num_attention_heads=2, attention_head_dim=8, num_layers=2, pooled_projection_dim=16,
                                              in_channels=4, text_embed_dim=16, time_embed_dim=4, max_sequence_length=16)  # fmt: skip
    return model, {"hidden_states": torch.randn(2, 4, 2, 16, 16), "encoder_hidden_states": torch.randn(2, 16, 16),
                   "timestep": torch.tensor([5, 5]), "encoder_attention_mask": torch.ones(2, 16, dtype=torch.bool)}  # fmt: skip


def stable_audio():
    model = diffusers.StableAudioDiTModel(sample_size=4, in_channels=3, num_layers=2, attention_head_dim=4, num_attention_heads=2,
                                          num_key_value_attention_heads=2, out_channels=3, cross_attention_dim=4, time_proj_dim=8,
                                          global_states_input_dim=8, cross_attention_input_dim=4)  # fmt: skip
    return model, {"hidden_states": torch.randn(2, 3, 4), "timestep": torch.tensor([5, 5]), "encoder_hidden_states": torch.randn(2, 5, 4),
                   "global_hidden_states": torch.randn(2, 1, 8), "rotary_embedding": (torch.randn(5, 2), torch.randn(5, 2))}  # fmt: skip


def cogview():
    model = diffusers.CogView4Transformer2DModel(patch_size=2, in_channels=4, out_channels=4, num_layers=2, attention_head_dim=4,
                                                 num_attention_heads=4, text_embed_dim=8, time_embed_dim=8, condition_dim=4,
                                                 rope_axes_dim=(8, 8), sample_size=8)  # fmt: skip
    two = torch.tensor([[20, 20]])
    return model, {"hidden_states": torch.randn(1, 4, 8, 8), "encoder_hidden_states": torch.randn(1, 8, 8), "timestep": torch.tensor([5]),
                   "original_size": two, "target_size": two, "crop_coords": torch.tensor([[0, 0]])}  # fmt: skip


def lumina2():
    model = diffusers.Lumina2Transformer2DModel(sample_size=16, patch_size=2, in_channels=4, hidden_size=24, num_layers=2, num_refiner_layers=1,
                                                num_attention_heads=3, num_kv_heads=1, multiple_of=2, axes_dim_rope=(4, 2, 2),
                                                axes_lens=(128, 128, 128), cap_feat_dim=32)  # fmt: skip
    return model, {"hidden_states": torch.randn(2, 4, 16, 16), "encoder_hidden_states": torch.randn(2, 16, 32), "timestep": torch.rand(2),
                   "encoder_attention_mask": torch.ones(2, 16, dtype=torch.bool)}  # fmt: skip


def chroma():
    model = diffusers.ChromaTransformer2DModel(patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16,
                                               num_attention_heads=2, joint_attention_dim=32, axes_dims_rope=(4, 4, 8),
                                               approximator_hidden_dim=32, approximator_layers=1, approximator_num_channels=16)  # fmt: skip
    return model, {"hidden_states": torch.randn(1, 16, 4), "encoder_hidden_states": torch.randn(1, 48, 32), "timestep": torch.tensor([1.0]),
                   "img_ids": torch.randn(16, 3), "txt_ids": torch.randn(48, 3), "attention_mask": torch.ones(1, 64)}  # fmt: skip


def hunyuan_video():
    model = diffusers.HunyuanVideoTransformer3DModel(in_channels=4, out_channels=4, num_attention_heads=2, attention_head_dim=10, num_layers=1,
                                                     num_single_layers=1, num_refiner_layers=1, patch_size=1, patch_size_t=1,
                                                     guidance_embeds=True, text_embed_dim=16, pooled_projection_dim=8,
                                                     rope_axes_dim=(2, 4, 4))  # fmt: skip
    return model, {"hidden_states": torch.randn(1, 4, 1, 16, 16), "timestep": torch.tensor([5]), "encoder_hidden_states": torch.randn(1, 12, 16),
                   "pooled_projections": torch.randn(1, 8), "encoder_attention_mask": torch.ones(1, 12), "guidance": torch.tensor([5.0])}  # fmt: skip


def unet_video():
    model = diffusers.UNetSpatioTemporalConditionModel(block_out_channels=(32, 64), layers_per_block=1, sample_size=16, in_channels=8,
                                                       out_channels=4, cross_attention_dim=32, num_attention_heads=8, addition_time_embed_dim=32,
                                                       projection_class_embeddings_input_dim=96,
                                                       down_block_types=("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"),
                                                       up_block_types=("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"))  # fmt: skip
    return model, {"sample": torch.randn(2, 2, 8, 16, 16), "timestep": TIME, "encoder_hidden_states": torch.randn(2, 1, 32),
                   "added_time_ids": torch.tensor([[6.0, 127.0, 0.02]]).repeat(2, 1)}  # fmt: skip


def unet_motion():
    model = diffusers.UNetMotionModel(block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=8, sample_size=16, in_channels=4,
                                      out_channels=4, cross_attention_dim=16, num_attention_heads=2, motion_num_attention_heads=2,
                                      down_block_types=("CrossAttnDownBlockMotion", "DownBlockMotion"),
                                      up_block_types=("UpBlockMotion", "CrossAttnUpBlockMotion"))  # fmt: skip
    return model, {
        "sample": torch.randn(1, 4, 4, 16, 16),
        "timestep": TIME,
        "encoder_hidden_states": torch.randn(1, 7, 16),
    }


def kandinsky():
    model = diffusers.Kandinsky3UNet(in_channels=4, time_embedding_dim=4, groups=2, attention_head_dim=4, layers_per_block=3,
                                     block_out_channels=(32, 64), cross_attention_dim=4, encoder_hid_dim=32)  # fmt: skip
    return model, {"sample": torch.randn(2, 4, 8, 8), "timestep": torch.tensor([10]), "encoder_hidden_states": torch.randn(2, 36, 32),
                   "encoder_attention_mask": torch.ones(2, 36)}  # fmt: skip


def oobleck():
    model = diffusers.AutoencoderOobleck(encoder_hidden_size=8, downsampling_ratios=[2, 4], channel_multiples=[1, 2], decoder_channels=8,
                                         decoder_input_channels=4, audio_channels=2)  # fmt: skip
    return model, {"sample": torch.randn(2, 2, 160)}


def temporal_vae():
    model = diffusers.AutoencoderKLTemporalDecoder(block_out_channels=(32, 32), in_channels=3, out_channels=3, latent_channels=4, layers_per_block=1,
                                                   down_block_types=("DownEncoderBlock2D",) * 2)  # fmt: skip
    return model, {"sample": torch.randn(3, 3, 16, 16), "num_frames": 3}


def ltx_vae():
    model = diffusers.AutoencoderKLLTXVideo(in_channels=3, out_channels=3, latent_channels=8, block_out_channels=(8, 8, 8, 8),
                                            decoder_block_out_channels=(8, 8, 8, 8), layers_per_block=(1, 1, 1, 1, 1),
                                            decoder_layers_per_block=(1, 1, 1, 1, 1), spatio_temporal_scaling=(True, True, False, False),
                                            decoder_spatio_temporal_scaling=(True, True, False, False), patch_size=1, patch_size_t=1,
                                            encoder_causal=True, decoder_causal=False)  # fmt: skip
    return model, {"sample": torch.randn(1, 3, 9, 16, 16)}


def mochi_vae():
    model = diffusers.AutoencoderKLMochi(in_channels=15, out_channels=3, latent_channels=4, encoder_block_out_channels=(8, 8, 8, 8),
                                         decoder_block_out_channels=(8, 8, 8, 8), layers_per_block=(1, 1, 1, 1, 1))  # fmt: skip
    return model, {"sample": torch.randn(1, 3, 7, 16, 16)}


def temporal_transformer():
    model = diffusers.models.TransformerTemporalModel(
        num_attention_heads=2, attention_head_dim=8, in_channels=16, norm_num_groups=4
    )
    return model, {"hidden_states": torch.randn(4, 16, 6, 6), "num_frames": 2}


def transformer2d():
    model = diffusers.models.Transformer2DModel(num_attention_heads=2, attention_head_dim=8, in_channels=16, norm_num_groups=4,
                                                cross_attention_dim=12)  # fmt: skip
    return model, {"hidden_states": torch.randn(2, 16, 6, 8), "encoder_hidden_states": torch.randn(2, 5, 12)}


def sd3_control():
    model = diffusers.SD3ControlNetModel(sample_size=16, patch_size=2, in_channels=4, num_layers=1, attention_head_dim=8, num_attention_heads=2,
                                         joint_attention_dim=16, caption_projection_dim=16, pooled_projection_dim=24, out_channels=4,
                                         pos_embed_max_size=32)  # fmt: skip
    return model, {"hidden_states": torch.randn(2, 4, 16, 16), "controlnet_cond": torch.randn(2, 4, 16, 16),
                   "encoder_hidden_states": torch.randn(2, 7, 16), "pooled_projections": torch.randn(2, 24),
                   "timestep": torch.tensor([5.0, 5.0])}  # fmt: skip


BUILDERS = (unet2d, unet_condition, unet_xl, unet_1d, unet_3d, controlnet, vae, tiny_vae, vq, asymmetric, dc_ae, wan_vae, cog_vae, dit, pixart,
            sd3, flux, sana, cogvideo, wan, ltx, prior, uvit, t2i_adapter, aura, latte, mochi, stable_audio, cogview, lumina2, chroma,
            hunyuan_video, unet_video, unet_motion, kandinsky, oobleck, temporal_vae, ltx_vae, mochi_vae, temporal_transformer, transformer2d,
            sd3_control)  # fmt: skip
MODELS = {build.__name__: build for build in BUILDERS}
