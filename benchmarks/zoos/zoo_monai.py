"""MONAI: small networks of most of its families, in two and three dimensions."""

from __future__ import annotations

import torch
from builders import of_shape
from monai.networks import nets

PLANE, VOLUME = (2, 1, 64, 64), (1, 1, 32, 32, 32)
SMALL = {"channels": (4, 8, 16), "strides": (2, 2)}
NETWORKS = {
    "UNet 2d": (PLANE, lambda: nets.UNet(2, 1, 2, **SMALL, num_res_units=1)),
    "UNet 3d": (VOLUME, lambda: nets.UNet(3, 1, 2, **SMALL, num_res_units=1)),
    "AttentionUnet 2d": (PLANE, lambda: nets.AttentionUnet(2, 1, 2, **SMALL)),
    "BasicUNet 2d": (PLANE, lambda: nets.BasicUNet(2, 1, 2, features=(4, 4, 8, 8, 16, 4))),
    "BasicUNet 3d": (VOLUME, lambda: nets.BasicUNet(3, 1, 2, features=(4, 4, 8, 8, 16, 4))),
    "BasicUNetPlusPlus 2d": (PLANE, lambda: nets.BasicUNetPlusPlus(2, 1, 2, features=(4, 4, 8, 8, 16, 4))),
    "DynUNet 2d": (PLANE, lambda: nets.DynUNet(2, 1, 2, (3, 3, 3), (1, 2, 2), (2, 2), filters=(4, 8, 16))),
    "DynUNet 3d": (VOLUME, lambda: nets.DynUNet(3, 1, 2, (3, 3, 3), (1, 2, 2), (2, 2), filters=(4, 8, 16))),
    "SegResNet 2d": (PLANE, lambda: nets.SegResNet(2, 8, 1, 2, blocks_down=(1, 1, 1), blocks_up=(1, 1))),
    "SegResNet 3d": (VOLUME, lambda: nets.SegResNet(3, 8, 1, 2, blocks_down=(1, 1, 1), blocks_up=(1, 1))),
    "SegResNetDS 2d": (PLANE, lambda: nets.SegResNetDS(2, 8, 1, 2, blocks_down=(1, 1, 1))),
    "VNet 3d": (VOLUME, lambda: nets.VNet(3, 1, 2)),
    "VNet 2d": (PLANE, lambda: nets.VNet(2, 1, 2)),
    "HighResNet 2d": (PLANE, lambda: nets.HighResNet(2, 1, 2)),
    "UNETR 2d": (PLANE, lambda: nets.UNETR(1, 2, 64, feature_size=4, hidden_size=24, mlp_dim=48, num_heads=3, spatial_dims=2)),
    "SwinUNETR 2d": (PLANE, lambda: nets.SwinUNETR(1, 2, feature_size=12, depths=(1, 1, 1, 1), spatial_dims=2)),
    "SwinUNETR 3d": (VOLUME, lambda: nets.SwinUNETR(1, 2, feature_size=12, depths=(1, 1, 1, 1), spatial_dims=3)),
    "FlexibleUNet": ((2, 3, 64, 64), lambda: nets.FlexibleUNet(3, 2, "efficientnet-b0", pretrained=False)),
    "MedNeXt 2d": (PLANE, lambda: nets.MedNeXt(2, 4, 1, 2, blocks_down=(1, 1, 1, 1), blocks_bottleneck=1, blocks_up=(1, 1, 1, 1))),
    "DenseNet121 2d": (PLANE, lambda: nets.DenseNet(2, 1, 3, init_features=8, growth_rate=4, block_config=(2, 2, 2))),
    "DenseNet 3d": (VOLUME, lambda: nets.DenseNet(3, 1, 3, init_features=8, growth_rate=4, block_config=(2, 2))),
    "ResNet 2d": (PLANE, lambda: nets.ResNet("basic", [1, 1, 1, 1], [4, 8, 16, 32], spatial_dims=2, n_input_channels=1)),
    "ResNet 3d": (VOLUME, lambda: nets.ResNet("basic", [1, 1, 1, 1], [4, 8, 16, 32], spatial_dims=3, n_input_channels=1)),
    "SEResNet50 2d": (PLANE, lambda: nets.SEResNet50(spatial_dims=2, in_channels=1, num_classes=3)),
    "EfficientNetBN": (PLANE, lambda: nets.EfficientNetBN("efficientnet-b0", pretrained=False, spatial_dims=2, in_channels=1)),
    "ViT": (PLANE, lambda: nets.ViT(1, 64, 16, 24, 48, 1, 3, classification=True, spatial_dims=2)),
    "ViTAutoEnc": (PLANE, lambda: nets.ViTAutoEnc(1, 64, 16, hidden_size=24, mlp_dim=48, num_layers=1, num_heads=3, spatial_dims=2)),
    "AutoEncoder": (PLANE, lambda: nets.AutoEncoder(2, 1, 1, channels=(4, 8), strides=(2, 2))),
    "AutoencoderKL": (PLANE, lambda: nets.AutoencoderKL(2, 1, 1, num_res_blocks=(1, 1), channels=(8, 8), attention_levels=(False, True),
                                                        norm_num_groups=4)),
    "VQVAE": (PLANE, lambda: nets.VQVAE(2, 1, 1, channels=(8, 8), num_res_layers=1, num_res_channels=(8, 8), num_embeddings=16,
                                        embedding_dim=8, downsample_parameters=((2, 4, 1, 1),) * 2,
                                        upsample_parameters=((2, 4, 1, 1, 0),) * 2)),
    "Regressor": (PLANE, lambda: nets.Regressor((1, 64, 64), 2, channels=(4, 8), strides=(2, 2))),
    "Discriminator": (PLANE, lambda: nets.Discriminator((1, 64, 64), channels=(4, 8), strides=(2, 2))),
    "PatchDiscriminator": (PLANE, lambda: nets.PatchDiscriminator(2, 8, 1, num_layers_d=2)),
    "HoVerNet": ((1, 3, 256, 256), lambda: nets.HoVerNet("fast", 3, 3)),
    "AHNet 2d": (PLANE, lambda: nets.AHNet(layers=(1, 1, 1, 1), spatial_dims=2, in_channels=1, out_channels=2)),
    "VoxelMorphUNet": ((1, 2, 32, 32), lambda: nets.VoxelMorphUNet(2, 2, 8, channels=(4, 4, 8, 8, 8, 4), final_conv_channels=(4, 4))),
    "AttentionUnet 3d": (VOLUME, lambda: nets.AttentionUnet(3, 1, 2, **SMALL)),
    "UNETR 3d": (VOLUME, lambda: nets.UNETR(1, 2, 32, feature_size=4, hidden_size=24, mlp_dim=48, num_heads=3, spatial_dims=3)),
    "SegResNetVAE": (PLANE, lambda: nets.SegResNetVAE((64, 64), 8, spatial_dims=2, init_filters=8, in_channels=1, blocks_down=(1, 1, 1),
                                                      blocks_up=(1, 1), vae_default_std=0.3, vae_estimate_std=False)),
    "DynUNet with residuals": (PLANE, lambda: nets.DynUNet(2, 1, 2, (3, 3, 3), (1, 2, 2), (2, 2), filters=(4, 8, 16), res_block=True)),
    "HighResNet 3d": (VOLUME, lambda: nets.HighResNet(3, 1, 2)),
    "QuickNat": (PLANE, lambda: nets.Quicknat(num_classes=2, num_channels=1, num_filters=8)),
    "RegUNet": (PLANE, lambda: nets.RegUNet(2, 1, 4, depth=2)),
    "LocalNet": (PLANE, lambda: nets.LocalNet(2, 1, 4, extract_levels=(0, 1, 2))),
    "Restormer": (PLANE, lambda: nets.Restormer(2, 1, 1, dim=8, num_refinement_blocks=1, heads=(1, 1, 2, 2))),
    "ResNet with shortcut A": (PLANE, lambda: nets.ResNet("basic", [1, 1, 1, 1], [4, 8, 16, 32], spatial_dims=2, n_input_channels=1,
                                                          shortcut_type="A")),
    "Classifier": (PLANE, lambda: nets.Classifier((1, 64, 64), 3, channels=(4, 8), strides=(2, 2))),
    "VarAutoEncoder": (PLANE, lambda: Mean(nets.VarAutoEncoder(2, (1, 64, 64), 1, 4, channels=(4, 8), strides=(2, 2)))),
    "Critic": (PLANE, lambda: nets.Critic((1, 64, 64), channels=(4, 8), strides=(2, 2))),
    "FullyConnectedNet": ((2, 8), lambda: nets.FullyConnectedNet(8, 2, (16, 8))),
    "GlobalNet": ((1, 2, 32, 32), lambda: nets.GlobalNet([32, 32], 2, 2, 4, depth=2)),
    "MaskedAutoEncoderViT": (PLANE, lambda: nets.MaskedAutoEncoderViT(1, 64, 16, 24, 48, 1, 3, decoder_hidden_size=24, decoder_mlp_dim=48,
                                                                      decoder_num_layers=1, decoder_num_heads=3, spatial_dims=2)),
    "MultiScalePatchDiscriminator": (PLANE, lambda: nets.MultiScalePatchDiscriminator(2, 2, 8, 1, num_layers_d=2)),
    "SENet 2d": (PLANE, lambda: nets.SEResNext50(spatial_dims=2, in_channels=1, num_classes=3)),
    "MedNeXt 3d": (VOLUME, lambda: nets.MedNeXt(3, 4, 1, 2, blocks_down=(1, 1, 1, 1), blocks_bottleneck=1, blocks_up=(1, 1, 1, 1))),
    "DAF3D": ((1, 1, 32, 32, 32), lambda: nets.DAF3D(1, 2)),
    "SegResNetDS2": ((1, 1, 32, 32, 32), lambda: nets.SegResNetDS2(3, 8, 1, 2, blocks_down=(1, 1, 1))),
    "EfficientNetBNFeatures": (PLANE, lambda: nets.EfficientNetBNFeatures("efficientnet-b0", pretrained=False, spatial_dims=2, in_channels=1)),
    "Generator": ((2, 8), lambda: nets.Generator((8,), (4, 8, 8), (8, 1), (2, 2))),
}  # fmt: skip


class Mean(torch.nn.Module):
    """An autoencoder without what it draws."""

    def __init__(self, of):
        super().__init__()
        self.of = of

    def forward(self, x):
        return self.of.decode_forward(self.of.encode_forward(x)[0])


def tokens():
    model = nets.DecoderOnlyTransformer(
        num_tokens=20, max_seq_len=32, attn_layers_dim=16, attn_layers_depth=2, attn_layers_heads=2
    )
    return model, (torch.randint(0, 20, (2, 12)),)


def diffusion():
    model = nets.DiffusionModelUNet(
        2,
        1,
        1,
        num_res_blocks=1,
        channels=(8, 8),
        attention_levels=(False, True),
        norm_num_groups=4,
        num_head_channels=4,
    )
    return model, {"x": torch.randn(2, 1, 32, 32), "timesteps": torch.tensor([3, 7])}


MODELS = {name: of_shape(*given) for name, given in NETWORKS.items()}
MODELS["DiffusionModelUNet"] = diffusion
MODELS["DecoderOnlyTransformer"] = tokens
