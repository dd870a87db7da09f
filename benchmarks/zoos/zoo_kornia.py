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
    "guided_blur": lambda x: F.guided_blur(x, x, 3, 0.1),
    "dexined free edges": lambda x: F.spatial_gradient(x, order=2),
    "gaussian_discrete": lambda x: F.gaussian_blur2d(x, (3, 5), (0.5, 1.5), border_type="circular"),
    "rgb_to_yuv": kornia.color.rgb_to_yuv,
    "rgb_to_yuv420": kornia.color.rgb_to_yuv420,
    "rgb_to_linear_rgb": kornia.color.rgb_to_linear_rgb,
    "rgb_to_rgba": lambda x: kornia.color.rgb_to_rgba(x, 0.5),
    "hsv and back": lambda x: kornia.color.hsv_to_rgb(kornia.color.rgb_to_hsv(x)),
    "adjust_hue": lambda x: kornia.enhance.adjust_hue(x, 0.2),
    "adjust_saturation": lambda x: kornia.enhance.adjust_saturation(x, 1.5),
    "solarize": lambda x: kornia.enhance.solarize(x, 0.5),
    "invert": kornia.enhance.invert,
    "normalize": lambda x: kornia.enhance.normalize(x, torch.tensor([0.4, 0.5, 0.6]), torch.tensor([0.2, 0.3, 0.4])),
    "normalize_min_max": lambda x: kornia.enhance.normalize_min_max(x),
    "zca_whiten": lambda x: kornia.enhance.zca_whiten(x.flatten(1)[:, :6]),
    "jpeg": lambda x: kornia.enhance.jpeg_codec_differentiable(x, torch.tensor([50.0])),
    "histogram": lambda x: kornia.enhance.histogram(x[:, 0].flatten(1), torch.linspace(0, 1, 8), torch.tensor(0.1)),
    "shear": lambda x: kornia.geometry.shear(x, torch.tensor([[0.1, 0.2]])),
    "affine": lambda x: kornia.geometry.affine(x, torch.tensor([[[1.0, 0.1, 2.0], [0.0, 1.0, 1.0]]]).repeat(2, 1, 1)),
    "crop_by_boxes": lambda x: kornia.geometry.crop_and_resize(
        x, torch.tensor([[[1.0, 1.0], [8.0, 1.0], [8.0, 6.0], [1.0, 6.0]]]).repeat(2, 1, 1), (5, 6)
    ),
    "scale_pyramid": lambda x: kornia.geometry.ScalePyramid(3, 1.6, 8)(x)[0],
    "spatial_soft_argmax": lambda x: kornia.geometry.spatial_soft_argmax2d(x),
    "soft_nms": lambda x: kornia.geometry.subpix.nms2d(x, (3, 3)),
    "conv_soft_argmax": lambda x: kornia.geometry.conv_soft_argmax2d(x, (3, 3), (1, 1), (1, 1)),
    "distance_transform": lambda x: kornia.contrib.distance_transform((x > 0.5).float()),
    "connected_components": lambda x: kornia.contrib.connected_components((x[:, :1] > 0.5).float(), 5),
    "tensor_patches": lambda x: kornia.contrib.extract_tensor_patches(x, (4, 4), (2, 2)),
    "dog": lambda x: kornia.feature.dog_response(x[:, :, None].repeat(1, 1, 3, 1, 1)),
    "unsharp and quantile": lambda x: x.clamp(*x.flatten().quantile(torch.tensor([0.1, 0.9]))),
    "joint_bilateral": lambda x: F.joint_bilateral_blur(x, x.flip(-1), (3, 3), 0.1, (1.5, 1.5)),
    "in_range": lambda x: F.in_range(x, (0.2, 0.2, 0.2), (0.8, 0.8, 0.8), return_mask=True),
    "lab and back": lambda x: kornia.color.lab_to_rgb(kornia.color.rgb_to_lab(x)),
    "luv and back": lambda x: kornia.color.luv_to_rgb(kornia.color.rgb_to_luv(x)),
    "raw": lambda x: kornia.color.rgb_to_raw(x, kornia.color.CFA.BG),
    "adjust_log": lambda x: kornia.enhance.adjust_log(x),
    "adjust_sigmoid": lambda x: kornia.enhance.adjust_sigmoid(x),
    "equalize3d": lambda x: kornia.enhance.equalize3d(x[:, :, None].repeat(1, 1, 2, 1, 1)),
    "integral": lambda x: kornia.enhance.integral_image(x),
    "image_histogram": lambda x: kornia.enhance.image_histogram2d(x[:, 0]),
    "elastic": lambda x: kornia.geometry.elastic_transform2d(x, torch.ones(1, 2, 16, 20) * 0.01, (5, 5), (2.0, 2.0)),
    "resize_to": lambda x: kornia.geometry.resize(x, 24, side="short"),
    "vflip": kornia.geometry.vflip,
    "crop_by_indices": lambda x: kornia.geometry.crop_by_indices(
        x, torch.tensor([[[2, 2], [9, 2], [9, 8], [2, 8]]]).repeat(x.shape[0], 1, 1)
    ),
    "pyramid": lambda x: kornia.geometry.build_pyramid(x, 3),
    "laplacian pyramid": lambda x: kornia.geometry.build_laplacian_pyramid(x, 2),
    "warp_affine": lambda x: kornia.geometry.warp_affine(
        x, torch.tensor([[[1.0, 0.1, 2.0], [0.0, 1.0, 1.0]]]).repeat(x.shape[0], 1, 1), (12, 14)
    ),
    "remap": lambda x: kornia.geometry.remap(x, torch.rand(1, 8, 8) * 10, torch.rand(1, 8, 8) * 10),
    "undistort_image": lambda x: kornia.geometry.calibration.undistort_image(
        x, torch.eye(3), torch.tensor([0.1, 0.01, 0.0, 0.0])
    ),
    "depth_to_3d": lambda x: kornia.geometry.depth_to_3d(x[:, :1], torch.eye(3).repeat(x.shape[0], 1, 1)),
    "top_hat": lambda x: kornia.morphology.top_hat(x, torch.ones(3, 3)),
    "closing": lambda x: kornia.morphology.closing(x, torch.ones(3, 3)),
    "diamond_square": lambda x: kornia.contrib.diamond_square((1, 1, 9, 9), 1.0, random_fn=torch.ones) + x.mean(),
    "focal": lambda x: kornia.losses.focal_loss(x, (x[:, 0] > 0.5).long(), 0.5, reduction="mean"),
    "dice": lambda x: kornia.losses.dice_loss(x, (x[:, 0] > 0.5).long()),
    "tversky": lambda x: kornia.losses.tversky_loss(x, (x[:, 0] > 0.5).long(), 0.5, 0.5),
    "js_div": lambda x: kornia.losses.js_div_loss_2d(x.softmax(-1), x.flip(-1).softmax(-1)),
    "welsch": lambda x: kornia.losses.welsch_loss(x, x.flip(-1)),
    "inverse_depth": lambda x: kornia.losses.inverse_depth_smoothness_loss(x[:, :1], x),
    "bottom_hat": lambda x: kornia.morphology.bottom_hat(x, torch.ones(3, 3)),
}
ON_PAIRS = {
    "ssim": lambda x, y: kornia.metrics.ssim(x, y, 5),
    "psnr": lambda x, y: kornia.metrics.psnr(x, y, 1.0),
    "ssim_loss": lambda x, y: kornia.losses.ssim_loss(x, y, 5),
    "charbonnier": kornia.losses.charbonnier_loss,
    "ms_ssim": lambda x, y: kornia.losses.MS_SSIMLoss(sigmas=[0.5, 1.0, 2.0])(x, y),
    "match_nn": lambda x, y: kornia.feature.match_mnn(x[0, 0], y[0, 0])[0],
    "histogram_matching": kornia.contrib.histogram_matching
    if hasattr(kornia.contrib, "histogram_matching")
    else torch.add,
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
MODELS["tiny_vit"] = lambda: (kornia.models.tiny_vit.TinyViT.from_config("5m"), (torch.rand(1, 3, 224, 224),))
MODELS["xfeat"] = lambda: (kornia.feature.xfeat.XFeatModel(), (torch.rand(1, 3, 64, 96),))
MODELS["keynet"] = lambda: (kornia.feature.KeyNet(pretrained=False), (torch.rand(2, 1, 48, 64),))
MODELS["find_homography"] = lambda: (
    Of(lambda a, b: kornia.geometry.find_homography_dlt(a, b)),
    (torch.rand(2, 6, 2), torch.rand(2, 6, 2)),
)
MODELS["perspective_transform"] = lambda: (
    Of(kornia.geometry.get_perspective_transform),
    (torch.rand(2, 4, 2), torch.rand(2, 4, 2)),
)
MODELS["homography_warp"] = lambda: (
    Of(lambda x, m: kornia.geometry.homography_warp(x, m, (16, 20))),
    (torch.rand(IMAGE), torch.eye(3).repeat(2, 1, 1) + 0.01),
)
MODELS["undistort_points"] = lambda: (
    Of(kornia.geometry.calibration.undistort_points),
    (torch.rand(2, 5, 2), torch.eye(3).repeat(2, 1, 1), torch.rand(2, 4) / 10),
)
MODELS["rotation_vector"] = lambda: (Of(kornia.geometry.conversions.axis_angle_to_rotation_matrix), (torch.rand(2, 3),))
MODELS["fundamental"] = lambda: (
    Of(kornia.geometry.epipolar.sampson_epipolar_distance),
    (torch.rand(2, 5, 2), torch.rand(2, 5, 2), torch.rand(2, 3, 3)),
)
