"""Parts of libraries that are used by themselves: boxes, transforms of images, recurrent layers, blocks, quantisers."""

from __future__ import annotations

import importlib

import torch
import torchvision_operators

torchvision_operators.install()
import torchvision.transforms.v2 as transforms  # noqa: E402
import torchvision.transforms.v2.functional as functional  # noqa: E402
from torchvision import ops  # noqa: E402


class Calls(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def boxes(count: int):
    corners = torch.rand(count, 2) * 30
    return torch.cat([corners, corners + torch.rand(count, 2) * 30 + 1], 1)


def given(make, *args):
    return lambda: (make(), tuple(arg() if callable(arg) else arg for arg in args))


BOXES = {
    "batched_nms": (lambda b, s, k: ops.batched_nms(b, s, k, 0.5), lambda: torch.rand(12), lambda: torch.randint(0, 3, (12,))),
    "nms": (lambda b, s: b[ops.nms(b, s, 0.4)], lambda: torch.rand(12)),
    "box_iou": (ops.box_iou, lambda: boxes(4)),
    "complete_box_iou": (ops.complete_box_iou, lambda: boxes(4)),
    "remove_small_boxes": (lambda b: b[ops.remove_small_boxes(b, 8.0)],),
    "box_convert": (lambda b: ops.box_convert(b, "xyxy", "cxcywh"),),
}  # fmt: skip
IMAGES = {
    "Resize": transforms.Resize((20, 20)),
    "Resize the shorter side": transforms.Resize(20),
    "Resize up to a size": transforms.Resize(20, max_size=28),
    "CenterCrop": transforms.CenterCrop(16),
    "CenterCrop of a larger one": transforms.CenterCrop(40),
    "Pad": transforms.Pad(3, padding_mode="reflect"),
    "TenCrop": transforms.TenCrop(12),
    "GaussianBlur": transforms.GaussianBlur(5, (1.0, 1.0)),
    "Autocontrast": transforms.RandomAutocontrast(1.0),
    "rotate": Calls(lambda x: functional.rotate(x, 30.0, expand=True)),
    "adjust_hue": Calls(lambda x: functional.adjust_hue(x, 0.2)),
    "resized_crop": Calls(lambda x: functional.resized_crop(x, 1, 2, 10, 12, [16, 16])),
}
LAYERS = {  # class: arguments, and sizes of what goes in
    "speechbrain.nnet.RNN.LSTM": ({"hidden_size": 8, "input_size": 12, "bidirectional": True}, (3, 20, 12)),
    "speechbrain.nnet.RNN.LiGRU": ({"hidden_size": 8, "input_shape": (3, 20, 12), "bidirectional": True}, (3, 20, 12)),
    "speechbrain.nnet.RNN.QuasiRNN": ({"hidden_size": 8, "input_shape": (3, 20, 12), "num_layers": 2}, (3, 20, 12)),
    "speechbrain.nnet.RNN.AttentionalRNNDecoder": (
        {"rnn_type": "gru", "attn_type": "content", "hidden_size": 8, "attn_dim": 6, "num_layers": 1, "enc_dim": 12, "input_size": 5},
        (2, 7, 5), (2, 10, 12), (2,)),
    "speechbrain.nnet.attention.RelPosMHAXL": ({"embed_dim": 12, "num_heads": 2}, (3, 20, 12), (3, 20, 12), (3, 20, 12), (1, 39, 12)),
    "speechbrain.nnet.CNN.SincConv": ({"out_channels": 6, "kernel_size": 11, "input_shape": (2, 200)}, (2, 200)),
    "speechbrain.nnet.CNN.GaborConv1d": ({"out_channels": 6, "kernel_size": 11, "stride": 2, "in_channels": 1}, (2, 200)),
    "speechbrain.nnet.pooling.AttentionPooling": ({"input_dim": 12}, (3, 20, 12)),
    "speechbrain.nnet.hypermixing.HyperMixing": ({"input_output_dim": 12, "hypernet_size": 16, "num_heads": 2}, *[(3, 20, 12)] * 3),
    "speechbrain.nnet.complex_networks.c_RNN.CLSTM": ({"hidden_size": 4, "input_shape": (3, 20, 12)}, (3, 20, 12)),
    "speechbrain.nnet.quaternion_networks.q_RNN.QLSTM": ({"hidden_size": 4, "input_shape": (3, 20, 12)}, (3, 20, 12)),
    "speechbrain.lobes.models.dual_path.SBRNNBlock": ({"input_size": 12, "hidden_channels": 8, "num_layers": 1}, (3, 20, 12)),
    "monai.networks.blocks.Warp": ({}, (1, 1, 12, 14), (1, 2, 12, 14)),
    "monai.networks.blocks.DVF2DDF": ({"num_steps": 3}, (1, 2, 12, 14)),
    "monai.networks.blocks.PatchEmbed": ({"patch_size": 2, "in_chans": 1, "embed_dim": 8, "norm_layer": torch.nn.LayerNorm,
                                          "spatial_dims": 2}, (2, 1, 15, 17)),
    "monai.networks.blocks.SubpixelUpsample": ({"spatial_dims": 2, "in_channels": 4, "out_channels": 2}, (2, 4, 8, 9)),
    "monai.networks.blocks.CABlock": ({"spatial_dims": 2, "dim": 8, "num_heads": 2, "bias": False}, (2, 8, 12, 14)),
    "vector_quantize_pytorch.GroupedResidualVQ": ({"dim": 16, "codebook_size": 32, "num_quantizers": 2, "groups": 2}, (2, 10, 16)),
    "vector_quantize_pytorch.ResidualFSQ": ({"dim": 16, "levels": [8, 5, 5], "num_quantizers": 2}, (2, 10, 16)),
    "vector_quantize_pytorch.SimVQ": ({"dim": 16, "codebook_size": 32}, (2, 10, 16)),
    "kornia.filters.EdgeAwareBlurPool2D": ({"kernel_size": 3}, (2, 3, 24, 28)),
    "kornia.filters.OtsuThreshold": ({}, (2, 3, 24, 28)),
    "kornia.geometry.ConvQuadInterp3d": ({}, (1, 1, 5, 10, 12)),
    "kornia.feature.DenseSIFTDescriptor": ({}, (1, 1, 32, 32)),
}  # fmt: skip


def layer(name: str):
    def build():
        options, *shapes = LAYERS[name]
        module, _, of = name.rpartition(".")
        model = getattr(importlib.import_module(module), of)(**options)
        return model, tuple(torch.rand(shape) for shape in shapes)

    return build


MODELS = {name: given(lambda fn=fn: Calls(fn), lambda: boxes(12), *more) for name, (fn, *more) in BOXES.items()}
MODELS |= {name: given(lambda of=of: of, lambda: torch.rand(2, 3, 24, 30)) for name, of in IMAGES.items()}
MODELS |= {name.rpartition(".")[2]: layer(name) for name in LAYERS}
