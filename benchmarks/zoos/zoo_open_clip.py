"""open_clip: small towers of each kind."""

from __future__ import annotations

import torch
import torchvision_operators

torchvision_operators.install()
from open_clip import coca_model, model  # noqa: E402

VISION = {"layers": 2, "width": 32, "head_width": 16, "patch_size": 8, "image_size": 32}
TEXT = {"context_length": 12, "vocab_size": 60, "width": 32, "heads": 2, "layers": 2}
CLIPS = {
    "vit": ({}, {}),
    "resnet": ({"layers": [1, 1, 1, 1], "width": 8, "image_size": 32}, {}),
    "quick gelu": ({}, {}),
    "attentional pool": ({"attentional_pool": True, "attn_pooler_queries": 4, "attn_pooler_heads": 2}, {}),
    "average pool": ({"pool_type": "avg"}, {}),
    "text without mask": ({}, {"no_causal_mask": True, "pool_type": "last"}),
    "layer scale": ({"ls_init_value": 0.1}, {"ls_init_value": 0.1}),
    "timm tower": ({"timm_model_name": "convnext_atto", "timm_pool": "", "timm_proj": "linear", "image_size": 32}, {}),
}


def clip(name: str):
    def build():
        vision, text = CLIPS[name]
        made = model.CLIP(
            32,
            model.CLIPVisionCfg(**VISION | vision),
            model.CLIPTextCfg(**TEXT | text),
            quick_gelu=name == "quick gelu",
        )
        return made, {"image": torch.randn(2, 3, 32, 32), "text": torch.randint(1, 60, (2, 12))}

    return build


def custom():
    made = model.CustomTextCLIP(32, VISION, TEXT)
    return made, {"image": torch.randn(2, 3, 32, 32), "text": torch.randint(1, 60, (2, 12))}


def coca():
    made = coca_model.CoCa(
        32, coca_model.MultimodalCfg(**TEXT | {"mlp_ratio": 2}), model.CLIPTextCfg(**TEXT | {"embed_cls": True, "output_tokens": True}),
        model.CLIPVisionCfg(**VISION | {"attentional_pool": True, "attn_pooler_heads": 2, "output_tokens": True}),
    )  # fmt: skip
    return made, {"image": torch.randn(2, 3, 32, 32), "text": torch.randint(1, 60, (2, 11))}


MODELS = {name: clip(name) for name in CLIPS} | {"custom text": custom, "coca": coca}
