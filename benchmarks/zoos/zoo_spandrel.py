"""spandrel: image restoration and upscaling, small networks of most of its architectures."""

from __future__ import annotations

import importlib

import torch
import torchvision_operators

torchvision_operators.install()

NETWORKS = {
    "Compact.SRVGG.SRVGGNetCompact": {"num_feat": 8, "num_conv": 2},
    "ESRGAN.RRDB.RRDBNet": {"num_filters": 8, "num_blocks": 1},
    "SPAN.span.SPAN": {"num_in_ch": 3, "num_out_ch": 3, "feature_channels": 8},
    "SwinIR.SwinIR.SwinIR": {"img_size": 32, "embed_dim": 12, "depths": [2, 2], "num_heads": [2, 2], "window_size": 8, "upscale": 2,
                             "upsampler": "pixelshuffle"},
    "Swin2SR.Swin2SR.Swin2SR": {"img_size": 32, "embed_dim": 12, "depths": [2, 2], "num_heads": [2, 2], "window_size": 8, "upscale": 2,
                                "upsampler": "pixelshuffle"},
    "DAT.DAT.DAT": {"img_size": 32, "embed_dim": 16, "split_size": [2, 4], "depth": [2], "num_heads": [2], "upscale": 2},
    "HAT.HAT.HAT": {"img_size": 32, "embed_dim": 12, "depths": (2,), "num_heads": (2,), "window_size": 8, "upscale": 2,
                    "upsampler": "pixelshuffle", "compress_ratio": 3, "squeeze_factor": 3},
    "DRCT.drct_arch.DRCT": {"img_size": 32, "embed_dim": 12, "depths": (2,), "num_heads": (2,), "window_size": 8, "upscale": 2,
                            "upsampler": "pixelshuffle", "gc": 4},
    "NAFNet.NAFNet_arch.NAFNet": {"width": 8, "enc_blk_nums": [1, 1], "middle_blk_num": 1, "dec_blk_nums": [1, 1]},
    "PLKSR.PLKSR.PLKSR": {"dim": 8, "n_blocks": 2, "kernel_size": 5},
    "PLKSR.RealPLKSR.RealPLKSR": {"dim": 8, "n_blocks": 2, "kernel_size": 5},
    "OmniSR.OmniSR.OmniSR": {"num_feat": 16, "res_num": 1, "up_scale": 2, "window_size": 8},
    "RCAN.rcan_arch.RCAN": {"n_resgroups": 1, "n_resblocks": 2, "n_feats": 8, "reduction": 4},
    "SAFMN.safmn.SAFMN": {"dim": 8, "n_blocks": 1, "upscaling_factor": 2},
    "DnCNN.network_dncnn.DnCNN": {"nc": 8, "nb": 3},
    "DRUNet.network_unet.DRUNet": {"in_nc": 3, "nc": [4, 8, 8, 16], "nb": 1},
    "SCUNet.SCUNet.SCUNet": {"config": [1, 1, 1, 1, 1, 1, 1], "dim": 16},
    "RealCUGAN.upcunet_v3.UpCunet2x": {},
    "SwiftSRGAN.SwiftSRGAN.Generator": {"num_channels": 8, "num_blocks": 2},
    "FBCNN.FBCNN.FBCNN": {"nc": [4, 8, 8, 512], "nb": 1},
    "MoSR.mosr_arch.MoSR": {"upscale": 2, "n_block": 2, "dim": 8},
    "ATD.atd_arch.ATD": {"img_size": 32, "embed_dim": 12, "depths": (2,), "num_heads": (2,), "window_size": 8, "num_tokens": 8,
                         "category_size": 32, "reducted_dim": 2, "convffn_kernel_size": 3, "upscale": 2, "upsampler": "pixelshuffle"},
    "CRAFT.CRAFT.CRAFT": {"embed_dim": 48, "depths": [2], "num_heads": [6], "split_size_0": 4, "split_size_1": 8, "upscale": 2},
    "DITN.DITN_Real.DITN_Real": {"dim": 12, "ITL_blocks": 1, "SAL_blocks": 1, "UFONE_blocks": 1, "upscale": 2, "patch_size": 8},
    "KBNet.kbnet_s.KBNet_s": {"width": 8, "middle_blk_num": 1, "enc_blk_nums": [1], "dec_blk_nums": [1]},
    "Uformer.Uformer.Uformer": {"img_size": 64, "embed_dim": 8, "depths": [1] * 9, "win_size": 4},
    "LaMa.LaMa.LaMa": {},
    "SeemoRe.seemore_arch.SeemoRe": {"scale": 2, "embedding_dim": 12, "num_layers": 1},
    "RGT.rgt_arch.RGT": {"img_size": 32, "embed_dim": 12, "depth": [2], "num_heads": [2], "split_size": [8, 8], "upscale": 2},
    "FDAT.fdat.FDAT": {"scale": 2, "embed_dim": 16, "num_groups": 1, "depth_per_group": 2, "num_heads": 2, "mid_dim": 16},
    "FFTformer.fftformer_arch.FFTformer": {"dim": 8, "num_blocks": [1, 1, 1], "num_refinement_blocks": 1},
    "MixDehazeNet.MixDehazeNet.MixDehazeNet": {"embed_dims": [8, 16, 24, 16, 8], "depths": [1, 1, 1, 1, 1]},
    "RetinexFormer.retinexformer_arch.RetinexFormer": {"n_feat": 8, "stage": 1, "num_blocks": [1, 1, 1]},
    "HVICIDNet.cidnet.CIDNet": {"channels": [8, 8, 16, 32], "heads": [1, 2, 4, 8]},
    "MoESR.MoESR.MoESR": {"scale": 2, "dim": 16, "n_blocks": 1, "n_block": 1, "upsample_dim": 16},
    "SAFMNBCIE.safmn_bcie.SAFMN_BCIE": {"dim": 8, "n_blocks": 1, "num_layers": 1},
    "DCTLSA.dctlsa.DCTLSA": {"nf": 20, "num_modules": 1, "upscale": 2, "num_head": 2},
    "GRL.grl.GRL": {"img_size": 32, "embed_dim": 16, "depths": [2], "num_heads_window": [2], "num_heads_stripe": [2], "window_size": 8,
                    "stripe_size": [8, 8], "upscale": 2, "upsampler": "pixelshuffle"},
}  # fmt: skip


def builder(name: str):
    def build():
        package, module, of = name.split(".")
        found = importlib.import_module(f"spandrel.architectures.{package}.__arch.{module}")
        shape = (1, 3, 64, 64) if package in ("Uformer", "SCUNet", "FFTformer") else (1, 3, 32, 40)
        return getattr(found, of)(**NETWORKS[name]), (torch.rand(shape),)

    return build


MODELS = {name: builder(name) for name in NETWORKS}
