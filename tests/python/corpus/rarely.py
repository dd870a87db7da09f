"""Operators that few models execute."""

import math

import torch
import torch.nn.functional as F

from . import Case

NAN = math.nan


def f(*shape):
    return lambda: (torch.randn(*shape),)


def holes():
    return (torch.tensor([[1.0, NAN, 2.0, 3.0], [NAN] * 4, [4.0, 3.0, 2.0, 1.0]]),)


torch.manual_seed(2)
BILINEAR = torch.nn.Bilinear(4, 3, 5)
BOUNDED = torch.randn(9, 4) * 2
SCALES, ZEROS = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2], dtype=torch.int32)
fake = torch.fake_quantize_per_tensor_affine

CASES = [
    Case("aten.nanmedian.default", torch.nanmedian, f(3, 4)),
    Case("aten.nanmedian.default", torch.nanmedian, holes, "nan", fixed=True),
    Case("aten.nanmedian.dim", lambda x: x.nanmedian(1)[0], f(3, 4)),
    Case("aten.nanmedian.dim", lambda x: x.nanmedian(1, keepdim=True)[0], holes, "nan", fixed=True),
    Case("aten.sinc.default", lambda x: torch.sinc(torch.cat([x, x * 0])), f(3, 4)),
    Case("aten.special_entr.default", torch.special.entr, f(3, 4)),
    Case("aten.ldexp.Tensor", lambda x: torch.ldexp(x, torch.tensor([1, 0, -3, 2])), f(3, 4)),
    Case("aten.renorm.default", lambda x: x.renorm(2, 0, 1.0), f(3, 4)),
    Case("aten.renorm.default", lambda x: x.renorm(1, -1, 1.0), f(3, 4, 2), "sums"),
    Case("aten._pdist_forward.default", F.pdist, f(5, 4)),
    Case("aten._pdist_forward.default", lambda x: F.pdist(x, 1), f(5, 4), "sums"),
    Case("aten._trilinear.default", lambda x, y: BILINEAR(x, y), lambda: (torch.randn(2, 4), torch.randn(2, 3))),
    Case("aten.rrelu_with_noise.default", lambda x: F.rrelu(x, training=False), f(3, 4)),
    Case("aten.embedding_renorm.default", lambda i: F.embedding(i, BOUNDED.clone(), max_norm=1.0), lambda: (torch.tensor([[1, 8], [0, 1]]),)),
    Case("aten.multi_margin_loss.default", F.multi_margin_loss, lambda: (torch.randn(3, 4), torch.tensor([0, 3, 1]))),
    Case("aten.fake_quantize_per_tensor_affine_cachemask.default", lambda x: fake(x, 0.1, 3, -128, 127), lambda: (torch.randn(3, 4) * 9,)),
    Case("aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default", lambda x: fake(x, SCALES[0], ZEROS[1], 0, 255), lambda: (torch.randn(3, 4) * 9,)),
    Case("aten.fake_quantize_per_channel_affine_cachemask.default", lambda x: torch.fake_quantize_per_channel_affine(x, SCALES, ZEROS, 1, -8, 7), lambda: (torch.randn(2, 3, 4),)),
]  # fmt: skip
