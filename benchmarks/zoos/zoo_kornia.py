"""Kornia: filters, colours, geometry, morphology, features and losses as modules."""

from __future__ import annotations

import kornia
import torch

IMAGE = (2, 3, 16, 20)
F = kornia.filters


class Of(torch.nn.Module):
    """A function as a module."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args)


ON_IMAGES = {
    "gaussian_blur": lambda x: F.gaussian_blur2d(x, (5, 5), (1.5, 1.5)),
    "box_blur": lambda x: F.box_blur(x, (3, 3)),
    "median_blur": lambda x: F.median_blur(x, (3, 3)),
    "motion_blur": lambda x: F.motion_blur(x, 5, 35.0, 0.5),
    "unsharp_mask": lambda x: F.unsharp_mask(x, (3, 3), (1.5, 1.5)),
    "sobel": F.sobel,
    "spatial_gradient": F.spatial_gradient,
    "laplacian": lambda x: F.laplacian(x, 3),
    "canny": lambda x: F.canny(x)[0],
    "bilateral_blur": lambda x: F.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)),
    "blur_pool": lambda x: F.blur_pool2d(x, 3, 2),
    "max_blur_pool": lambda x: F.max_blur_pool2d(x, 3),
    "pyrdown": kornia.geometry.pyrdown,
    "pyrup": kornia.geometry.pyrup,
    "resize": lambda x: kornia.geometry.resize(x, (10, 12)),
    "rescale": lambda x: kornia.geometry.rescale(x, (0.5, 0.5)),
    "hflip": kornia.geometry.hflip,
    "rot180": kornia.geometry.rot180,
    "center_crop": lambda x: kornia.geometry.center_crop(x, (8, 8)),
    "rotate": lambda x: kornia.geometry.rotate(x, torch.tensor([30.0])),
    "translate": lambda x: kornia.geometry.translate(x, torch.tensor([[2.0, 3.0]])),
    "rgb_to_grayscale": kornia.color.rgb_to_grayscale,
    "rgb_to_hsv": kornia.color.rgb_to_hsv,
    "rgb_to_hls": kornia.color.rgb_to_hls,
    "rgb_to_lab": kornia.color.rgb_to_lab,
    "rgb_to_luv": kornia.color.rgb_to_luv,
    "rgb_to_ycbcr": kornia.color.rgb_to_ycbcr,
    "rgb_to_xyz": kornia.color.rgb_to_xyz,
    "sepia": kornia.color.sepia,
    "equalize": kornia.enhance.equalize,
    "equalize_clahe": kornia.enhance.equalize_clahe,
    "adjust_brightness": lambda x: kornia.enhance.adjust_brightness(x, 0.2),
    "adjust_contrast": lambda x: kornia.enhance.adjust_contrast(x, 0.5),
    "adjust_gamma": lambda x: kornia.enhance.adjust_gamma(x, 0.7),
    "sharpness": lambda x: kornia.enhance.sharpness(x, 0.5),
    "posterize": lambda x: kornia.enhance.posterize(x, 3),
    "dilation": lambda x: kornia.morphology.dilation(x, torch.ones(3, 3)),
    "erosion": lambda x: kornia.morphology.erosion(x, torch.ones(3, 3)),
    "opening": lambda x: kornia.morphology.opening(x, torch.ones(3, 3)),
    "gradient": lambda x: kornia.morphology.gradient(x, torch.ones(3, 3)),
    "harris": lambda x: kornia.feature.harris_response(x),
    "gftt": lambda x: kornia.feature.gftt_response(x),
    "hessian": lambda x: kornia.feature.hessian_response(x),
    "total_variation": kornia.losses.total_variation,
}
ON_PAIRS = {
    "ssim": lambda x, y: kornia.metrics.ssim(x, y, 5),
    "psnr": lambda x, y: kornia.metrics.psnr(x, y, 1.0),
    "ssim_loss": lambda x, y: kornia.losses.ssim_loss(x, y, 5),
    "charbonnier": kornia.losses.charbonnier_loss,
}


def on_image(name):
    return lambda: (Of(ON_IMAGES[name]), (torch.rand(IMAGE),))


def on_pair(name):
    return lambda: (Of(ON_PAIRS[name]), (torch.rand(IMAGE), torch.rand(IMAGE)))


MODELS = {name: on_image(name) for name in ON_IMAGES} | {name: on_pair(name) for name in ON_PAIRS}
MODELS["warp_perspective"] = lambda: (
    Of(lambda x, m: kornia.geometry.warp_perspective(x, m, (16, 20))),
    (torch.rand(IMAGE), torch.eye(3).repeat(2, 1, 1) + 0.01),
)
MODELS["hynet"] = lambda: (kornia.feature.HyNet(pretrained=False), (torch.rand(2, 1, 32, 32),))
MODELS["hardnet"] = lambda: (kornia.feature.HardNet(pretrained=False), (torch.rand(2, 1, 32, 32),))
MODELS["tfeat"] = lambda: (kornia.feature.TFeat(pretrained=False), (torch.rand(2, 1, 32, 32),))
MODELS["sosnet"] = lambda: (kornia.feature.SOSNet(pretrained=False), (torch.rand(2, 1, 32, 32),))
MODELS["sift"] = lambda: (kornia.feature.SIFTDescriptor(32), (torch.rand(2, 1, 32, 32),))
