"""segmentation_models_pytorch: every decoder on small encoders."""

from __future__ import annotations

import torch
import torchvision_operators

torchvision_operators.install()
import segmentation_models_pytorch as smp  # noqa: E402

DECODERS = (
    "Unet", "UnetPlusPlus", "MAnet", "Linknet", "FPN", "PSPNet", "PAN", "DeepLabV3", "DeepLabV3Plus", "UPerNet", "Segformer",
)  # fmt: skip
ENCODERS = ("resnet18", "mobilenet_v2", "mit_b0", "timm-mobilenetv3_small_minimal_100", "vgg11")


def builder(decoder: str, encoder: str, **given):
    def build():
        model = getattr(smp, decoder)(encoder_name=encoder, encoder_weights=None, classes=3, **given)
        return model, (torch.randn(2, 3, 64, 96),)

    return build


MODELS = {decoder: builder(decoder, "resnet18") for decoder in DECODERS}
MODELS |= {f"Unet on {encoder}": builder("Unet", encoder) for encoder in ENCODERS[1:]}
MODELS |= {f"FPN on {encoder}": builder("FPN", encoder) for encoder in ENCODERS[1:3]}
MODELS["Unet with attention"] = builder("Unet", "resnet18", decoder_attention_type="scse")
MODELS["Unet with a label"] = builder("Unet", "resnet18", aux_params={"classes": 4, "pooling": "avg"})
