"""Torchvision: classifiers, segmentation, detection, video, optical flow."""

from __future__ import annotations

import torch
import torchvision_operators

torchvision_operators.install()
import torchvision.models as models  # noqa: E402

CLASSIFIERS = (
    "alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet", "inception_v3", "mnasnet0_5",
    "mobilenet_v2", "mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf", "resnet18", "resnet50", "resnext50_32x4d",
    "shufflenet_v2_x0_5", "squeezenet1_1", "swin_t", "swin_v2_t", "vgg11", "vgg11_bn", "wide_resnet50_2", "maxvit_t", "vit_b_32",
    "efficientnet_b1", "mnasnet1_3", "regnet_y_800mf", "shufflenet_v2_x1_5", "squeezenet1_0", "densenet161",
)  # fmt: skip
SEGMENTATION = ("deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large", "deeplabv3_resnet50")
DETECTION = (
    "fasterrcnn_mobilenet_v3_large_320_fpn", "ssdlite320_mobilenet_v3_large", "retinanet_resnet50_fpn", "fcos_resnet50_fpn",
    "maskrcnn_resnet50_fpn", "keypointrcnn_resnet50_fpn", "ssd300_vgg16",
    "fasterrcnn_mobilenet_v3_large_fpn", "retinanet_resnet50_fpn_v2",
)  # fmt: skip
VIDEO = ("r3d_18", "mc3_18", "r2plus1d_18", "s3d", "swin3d_t", "mvit_v2_s", "mvit_v1_b")


def classifier(name):
    size = {"inception_v3": 96, "maxvit_t": 224, "vit_b_32": 224, "vgg11": 64}.get(name, 64)

    def build():
        return models.get_model(name, weights=None), (torch.randn(2, 3, size, size),)

    return build


def segmentation(name):
    def build():
        return models.get_model(name, weights=None, weights_backbone=None), (torch.randn(2, 3, 64, 80),)

    return build


def detection(name):
    def build():
        sizes = {} if "ssd" in name else {"min_size": 64, "max_size": 96}
        model = models.get_model(name, weights=None, weights_backbone=None, **sizes)
        return model, ([torch.rand(3, 64, 80)],)

    return build


def video(name):
    frames, size = (16, 224) if name.startswith("mvit") else (16, 32) if name == "s3d" else (8, 32)

    def build():
        return models.get_model(name, weights=None), (torch.randn(1, 3, frames, size, size),)

    return build


def raft():
    return models.get_model("raft_small", weights=None), (
        torch.randn(1, 3, 128, 128),
        torch.randn(1, 3, 128, 136)[..., :128],
    )


MODELS = {name: classifier(name) for name in CLASSIFIERS}
MODELS |= {name: segmentation(name) for name in SEGMENTATION}
MODELS |= {name: detection(name) for name in DETECTION}
MODELS |= {name: video(name) for name in VIDEO}
MODELS |= {"raft_small": raft}
