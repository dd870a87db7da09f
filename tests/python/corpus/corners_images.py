"""Corners of windows, norms, interpolation and padding; see corners.py."""

import torch
import torch.nn.functional as F

from .corners import over

a = torch.ops.aten
IMAGE, SOUND = (2, 4, 6, 8), (2, 4, 8)


def group_norm(x):
    return a.native_group_norm(x, None, None, x.shape[0], 4, x.shape[2], 2, 1e-5)[0]


def batch_norm(x, mean, var):
    return F.batch_norm(x, mean, var.abs() + 0.5)


def attention(q, k, v):
    return a._scaled_dot_product_flash_attention_for_cpu(q, k, v)[0]


HEADS = (1, 2, 3, 4)

CASES = [
    *over("aten.convolution.default", "0", lambda x: F.conv1d(x, torch.ones(2, 4, 3)), SOUND, fixed=True),
    *over("aten.max_pool2d_with_indices.default", "0", lambda x: F.max_pool2d(x, 2), IMAGE, fixed=True),
    *over("aten.avg_pool2d.default", "dN", lambda x: F.avg_pool2d(x, 2), IMAGE),
    *over("aten._adaptive_avg_pool2d.default", "hbd", lambda x: F.adaptive_avg_pool2d(x, 2), IMAGE, fixed=True),
    *over("aten.adaptive_max_pool2d.default", "hbd", lambda x: F.adaptive_max_pool2d(x, 2), IMAGE, fixed=True),
    *over("aten.native_group_norm.default", "b", group_norm, (2, 4, 5), fixed=True),
    *over("aten.native_batch_norm.default", "hbd", batch_norm, (2, 3, 4), (3,), (3,)),
    *over("aten._scaled_dot_product_flash_attention_for_cpu.default", "hbd", attention, HEADS, HEADS, HEADS),
    *over("aten._safe_softmax.default", "hbdL", lambda x: torch._safe_softmax(x, -1), (3, 4)),
    *over("aten._weight_norm_interface.default", "d", lambda v, g: torch._weight_norm(v, g, 0), (3, 4), (3, 1), fixed=True),
    *over("aten.upsample_bilinear2d.default", "1N", lambda x: F.interpolate(x, size=(3, 5), mode="bilinear"), IMAGE),
    *over("aten.upsample_nearest2d.default", "1uN", lambda x: F.interpolate(x, size=(3, 5)), IMAGE, fixed=True),
    *over("aten.upsample_bicubic2d.default", "h1", lambda x: F.interpolate(x, size=(3, 5), mode="bicubic"), IMAGE),
    *over("aten.upsample_linear1d.default", "hbd1", lambda x: F.interpolate(x, size=5, mode="linear"), SOUND),
    *over("aten.upsample_nearest1d.default", "hbd1", lambda x: F.interpolate(x, size=5), SOUND),
    *over("aten._upsample_bilinear2d_aa.default", "d", lambda x: F.interpolate(x, size=(3, 5), mode="bilinear", antialias=True), IMAGE),
    *over("aten.im2col.default", "hbdN", lambda x: F.unfold(x, 3), IMAGE),
    *over("aten.col2im.default", "hbd", lambda x: F.fold(x, (5, 6), 2), (2, 12, 20)),
    *over("aten.pixel_shuffle.default", "hbdijuB0N", lambda x: F.pixel_shuffle(x, 2), IMAGE),
    *over("aten.pixel_unshuffle.default", "hbdijuB0N", lambda x: F.pixel_unshuffle(x, 2), IMAGE),
    *over("aten.channel_shuffle.default", "hbdijuBN", lambda x: F.channel_shuffle(x, 2), IMAGE),
    *over("aten.constant_pad_nd.default", "dju1NI", lambda x: F.pad(x, (1, 2, -1, 1), value=3), (3, 4)),
    *over("aten.reflection_pad1d.default", "hbijN", lambda x: F.pad(x, (2, 1), "reflect"), SOUND),
    *over("aten.reflection_pad2d.default", "hbdijN", lambda x: F.pad(x, (2, 1, 1, 3), "reflect"), IMAGE),
    *over("aten.replication_pad1d.default", "hbd1N", lambda x: F.pad(x, (2, 9), "replicate"), SOUND),
    *over("aten.replication_pad2d.default", "hbd1N", lambda x: F.pad(x, (2, 9, 1, 0), "replicate"), IMAGE),
    *over("aten.grid_sampler_2d.default", "b", lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False), (2, 3, 5, 6), (2, 4, 4, 2), fixed=True),
]  # fmt: skip
