"""timm: one or two small models of every family, at small images."""

from __future__ import annotations

import torch
import torchvision_operators

torchvision_operators.install()
import timm  # noqa: E402

PLAIN = (  # take any image
    "resnet10t", "resnet26t", "resnest14d", "seresnext26d_32x4d", "res2net50_14w_8s", "skresnet18", "ecaresnet26t", "resnetv2_18",
    "mobilenetv2_050", "mobilenetv3_small_050", "mobilenetv4_conv_small_050", "efficientnet_b0", "tf_efficientnet_b0",
    "efficientnetv2_rw_t", "mixnet_s", "mnasnet_050", "lcnet_050", "tinynet_e", "ghostnet_050", "ghostnetv2_100",
    "convnext_atto", "convnextv2_atto", "regnetx_002", "regnety_002", "densenet121", "dla46_c", "dpn48b", "hrnet_w18_small",
    "vgg11", "vovnet39a", "ese_vovnet19b_dw", "xception41", "inception_v3", "inception_next_atto", "nfnet_f0", "nf_resnet26",
    "repvgg_a0", "mobileone_s0", "fastvit_t8", "repvit_m0_9", "rexnet_100", "cspresnet50", "darknet17", "darknet53", "hardcorenas_a",
    "fbnetc_100", "hgnet_tiny", "hgnetv2_b0", "selecsls42", "starnet_s1", "rdnet_tiny", "edgenext_xx_small", "poolformer_s12",
    "caformer_s18", "convformer_s18", "pvt_v2_b0", "efficientformerv2_s0", "mobilevit_xxs", "mobilevitv2_050", "nasnetalarge",
    "pnasnet5large", "tresnet_m", "visformer_tiny", "focalnet_tiny_srf", "shvit_s1", "swiftformer_xs", "mambaout_femto", "botnet26t_256",
    "halonet26t", "lambda_resnet26t", "gcresnext26ts", "lamhalobotnet50ts_256", "csatv2", "davit_tiny", "nextvit_small",
    "iformer_t", "efficientvit_b0", "efficientvit_m0", "tiny_vit_5m_224", "levit_128s", "crossvit_tiny_240", "twins_svt_small",
    "twins_pcpvt_small", "mvitv2_tiny", "hiera_tiny_224", "coatnet_nano_rw_224", "maxvit_pico_rw_256", "coat_lite_tiny",
    "convit_tiny", "gcvit_xxtiny", "pit_ti_224", "pit_s_224", "resmlp_12_224", "mixer_s32_224", "gmixer_12_224", "gmlp_ti16_224",
    "sequencer2d_s", "xcit_nano_12_p16_224", "tnt_s_patch16_224", "nest_tiny", "volo_d1_224", "cait_xxs24_224", "deit_tiny_patch16_224",
    "deit3_small_patch16_224", "beit_base_patch16_224", "eva02_tiny_patch14_224", "flexivit_small", "vit_tiny_patch16_224",
    "vit_relpos_small_patch16_224", "vit_small_patch14_dinov2", "samvit_base_patch16_224", "swin_tiny_patch4_window7_224",
    "swinv2_cr_tiny_ns_224", "swinv2_tiny_window8_256", "vitamin_small_224", "naflexvit_base_patch16_gap",
    "eca_nfnet_l0", "resnetaa34d", "sebotnet33ts_256", "sehalonet33ts", "bat_resnext26ts", "convnext_zepto_rms", "fastvit_sa12",
    "ghostnetv3_050", "levit_conv_128s", "maxxvit_rmlp_nano_rw_256", "coatnext_nano_rw_224", "mobilenetv4_hybrid_medium",
    "pit_xs_distilled_224", "pvt_v2_b1", "repghostnet_050", "resnetblur18", "sam2_hiera_tiny", "vit_pwee_patch16_reg1_gap_256",
    "xcit_tiny_12_p8_224", "swin_s3_tiny_224", "edgenext_x_small", "efficientnet_lite0", "mobileone_s1", "tiny_vit_11m_224",
    "convmixer_768_32", "cpubone_b0_bfrobust", "cspnext_tiny", "efficientformer_l1", "efficientvim_m1", "fasternet_t0",
    "inception_resnet_v2", "inception_v4", "lcnetv2_small", "legacy_seresnet18", "legacy_xception", "lowformer_b0",
    "qwen3_vit_88m", "gemma4_vit_167m", "vit_base_mci_224", "mobilenetv5_300m",
    "starnet_s050", "efficientvit_m1", "hrnet_w18_small_v2", "twins_pcpvt_base", "crossvit_9_240", "cspdarknet53", "res2next50",
    "repvit_m1", "starnet_s100", "resnest50d", "xception65", "resnet18", "pit_xs_224", "ese_vovnet19b_slim_dw",
    "hiera_small_abswin_256", "csatv2_21m", "repghostnet_111", "mobileone_s2", "swiftformer_l1", "sequencer2d_m",
    "crossvit_15_dagger_408", "swiftformer_l3", "vit_relpos_medium_patch16_cls_224", "dla60_res2net", "poolformerv2_s36",
    "gernet_m", "ghostnetv2_130", "caformer_s36", "resnest26d", "convit_small", "densenetblur121d",
    "halonet_h1", "efficientvit_m4", "focalnet_tiny_lrf", "mambaout_kobe", "res2net50_26w_6s", "test_convnext2", "lcnet_075",
    "selecsls60b",
)  # fmt: skip
DYNAMIC = {  # what the library itself offers for other sizes
    "vit_tiny_patch16_224": {"dynamic_img_size": True, "img_size": 64},
    "deit_tiny_patch16_224": {"dynamic_img_size": True, "img_size": 64},
    "flexivit_small": {"dynamic_img_size": True, "img_size": 64},
    "swin_tiny_patch4_window7_224": {"strict_img_size": False, "dynamic_img_pad": True, "img_size": 64},
}
SIZES = {
    "nasnetalarge": 96,
    "pnasnet5large": 96,
    "inception_v3": 96,
    "xception41": 96,
    "inception_resnet_v2": 96,
    "inception_v4": 96,
    "legacy_xception": 96,
    "swin_tiny_patch4_window7_224": 64,
}
FIXED = (  # their weights have the size of the image
    "crossvit", "mvitv2", "hiera", "coatnet", "maxvit", "convit", "gcvit", "pit_", "resmlp", "mixer", "gmixer", "gmlp", "tnt", "nest",
    "volo", "cait", "beit", "eva02", "vit_relpos", "swinv2", "vitamin", "levit", "deit3", "coat_lite", "tiny_vit", "efficientvit_m",
    "samvit", "vit_small_patch14", "botnet", "halonet", "lambda_", "lamhalobotnet", "visformer", "efficientformerv2", "xcit",
    "sebotnet", "qwen3_vit", "gemma4_vit", "vit_base_mci", "efficientformer_", "efficientvim", "mobilenetv5", "sehalonet", "bat_", "maxxvit", "coatnext", "sam2_", "vit_pwee", "swin_s3",
)  # fmt: skip


def builder(name: str):
    def build():
        given = DYNAMIC.get(name, {})
        size = given.get("img_size") or SIZES.get(name, 64)
        if name.startswith(FIXED):
            size = timm.get_pretrained_cfg(name).input_size[-1] if timm.get_pretrained_cfg(name) else 224
        model = timm.create_model(name, pretrained=False, num_classes=10, **given)
        return model, (torch.randn(2, 3, size, size),)

    return build


MODELS = {name: builder(name) for name in PLAIN}
