"""Corners of searches, scattering, logic, losses and tensors made of numbers; see corners.py."""

import torch
import torch.nn.functional as F

from .corners import over

a = torch.ops.aten
ROW, SQUARE = (3, 4), (4, 4)
n = lambda x: x.shape[0]  # noqa: E731
places = torch.tensor([[0, 2, 1, 0], [2, 1, 0, 0], [1, 1, 2, 0]])
where = torch.tensor([2, 0])


def added(x, y):
    return x.index_add(0, where, y[:2])


MADE = [
    *over("aten.arange.default", "hij", lambda x: torch.arange(n(x), dtype=x.dtype), ROW),
    *over("aten.arange.default", "0", lambda x: torch.arange(n(x)), ROW),
    *over("aten.arange.start", "hdij", lambda x: torch.arange(-2, n(x), dtype=x.dtype), ROW),
    *over("aten.arange.start_step", "hdij", lambda x: torch.arange(n(x), -3, -2, dtype=x.dtype), ROW),
    *over("aten.linspace.default", "hd", lambda x: torch.linspace(-1, 1, n(x), dtype=x.dtype), ROW),
    *over("aten.scalar_tensor.default", "hbdijB", lambda x: torch.scalar_tensor(1, dtype=x.dtype) + x, ROW),
    *over("aten.eye.default", "hdij", lambda x: torch.eye(n(x), dtype=x.dtype), ROW),
    *over("aten.full.default", "bdju", lambda x: torch.full((n(x), 2), 3, dtype=x.dtype), ROW),
    *over("aten.new_full.default", "hbdijuB0", lambda x: x.new_full((n(x), 2), 1), ROW),
    *over("aten.squeeze.default", "hbdijuB0N", lambda x: x.unsqueeze(0).unsqueeze(-1).squeeze(), ROW, fixed=True),
    *over("aten.roll.default", "hbdjuB0NI", lambda x: x.roll((1, -2), (0, -1)), ROW),
    *over("aten.as_strided.default", "hbdijuBN", lambda x: x.as_strided((2, 2), (1, 2), 1), ROW, fixed=True),
]

SEARCHES = [
    *over("aten.aminmax.default", "hbdjuXN1I", lambda x: torch.aminmax(x, dim=-1, keepdim=True), ROW),
    *over("aten.min.default", "hbdju1NI", lambda x: x.min(), ROW),
    *over("aten.min.dim", "hbdjuXNI", lambda x: x.min(-1, keepdim=True)[0], ROW),
    *over("aten.argmin.default", "hbdjuXNI", lambda x: x.argmin(-1), ROW),
    *over("aten.cummax.default", "hbdj0", lambda x: x.cummax(-1), ROW),
    *over("aten.cummin.default", "hbdj0", lambda x: x.cummin(-1), ROW),
    *over("aten.bucketize.Tensor", "hdj01", lambda x: torch.bucketize(x, x.new_tensor([-1, 0, 5])), ROW),
    *over("aten.searchsorted.Tensor", "hdij0", lambda x: torch.searchsorted(x.new_tensor([-1, 0, 5]), x), ROW),
    *over("aten.isin.Tensor_Tensor", "hdj0", lambda x, y: torch.isin(x, y), ROW, (2,), cut=1),
    *over("aten.unique_consecutive.default", "ij", lambda x: torch.unique_consecutive(x.flatten()), ROW, fixed=True),
    *over("aten.mode.default", "0", lambda x: x.mode(-1)[0], ROW),
    *over("aten.cumprod.default", "0", lambda x: x.cumprod(-1), ROW),
    *over("aten.logcumsumexp.default", "0", lambda x: x.logcumsumexp(-1), ROW),
    *over("aten.repeat_interleave.Tensor", "0", lambda x: torch.repeat_interleave(x.flatten().long().abs()), ROW),
    *over("aten.histc.default", "d", lambda x: torch.histc(x, 4, -1, 1), ROW),
    *over("aten.bincount.default", "j", lambda x: torch.bincount(x.flatten() % 5, minlength=7), ROW, fixed=True),
]

SCATTERS = [
    *over("aten.scatter.value", "hbdijuBN", lambda x: x.scatter(0, places, 1), ROW, fixed=True),
    *over("aten.scatter.src", "hbdijuBN", lambda x, y: x.scatter(0, places[:1], y), ROW, ROW, fixed=True),
    *over("aten.scatter_add.default", "hbdij", lambda x, y: x.scatter_add(0, places, y), ROW, ROW, fixed=True),
    *over("aten.index_add.default", "bdj", added, ROW, ROW, fixed=True),
    *over("aten.index_copy.default", "hbdijuBN", lambda x, y: x.index_copy(0, where, y[:2]), ROW, ROW, fixed=True),
    *over("aten.index_fill.int_Scalar", "hbdijuBN", lambda x: x.index_fill(-1, where, 1), ROW, fixed=True),
    *over("aten.index_put.default", "hbdijuBNI", lambda x, y: x.index_put((where,), y[:2]), ROW, ROW, fixed=True),
    *over("aten.index_put.default", "hbdij", lambda x, y: x.index_put((where,), y[:2], True), ROW, ROW, fixed=True, name="accumulate"),
    *over("aten.masked_fill.Tensor", "hbdiju", lambda x: x.masked_fill(x > 1, torch.tensor(2, dtype=x.dtype)), ROW),
    *over("aten.select_scatter.default", "hbdijuBN", lambda x, y: x.select_scatter(y[0], 0, -1), ROW, ROW),
    *over("aten.slice_scatter.default", "hbdijuBN", lambda x, y: x.slice_scatter(y[:2], 0, 1), ROW, ROW, fixed=True),
]  # fmt: skip

LOGIC = [
    *over("aten.any.default", "hijuB", lambda x: x.any(), ROW),
    *over("aten.all.default", "hijuBN", lambda x: x.all(), ROW),
    *over("aten.logical_not.default", "hbdijuB0", torch.logical_not, ROW),
    *over("aten.logical_and.default", "hbdijuB0", torch.logical_and, ROW, ROW),
    *over("aten.logical_or.default", "hbdijuB0N", torch.logical_or, ROW, ROW),
    *over("aten.logical_xor.default", "hbdijuB0N", torch.logical_xor, ROW, ROW),
    *over("aten.clamp.Tensor", "hbdij", lambda x, y: x.clamp(y, y + 1), ROW, ROW),
    *over("aten.clamp_max.default", "hbdijI", lambda x: x.clamp_max(1), ROW),
    *over("aten.add.Scalar", "hbdijuI", lambda x: a.add.Scalar(x, 3), ROW),
    *over("aten.floor_divide.default", "bju", lambda x, y: x // (y.abs() + 1), ROW, ROW),
    *over("aten.div.Tensor_mode", "bju", lambda x, y: torch.div(x, y.abs() + 1, rounding_mode="trunc"), ROW, ROW),
    *over("aten.xlogy.Tensor", "hbd", lambda x, y: torch.xlogy(x, y.abs()), ROW, ROW),
    *over("aten.isnan.default", "hbdijB", torch.isnan, ROW),
    *over("aten.isinf.default", "hbdijBN", torch.isinf, ROW),
    *over("aten.sign.default", "jN", torch.sign, ROW),
    *over("aten.round.default", "hbdN", torch.round, ROW),
]

PRODUCTS = [
    *over("aten.baddbmm.default", "hbd01", torch.baddbmm, (2, 3, 5), (2, 3, 4), (2, 4, 5)),
    *over("aten.mv.default", "di0", torch.mv, (3, 4), (4,), cut=1),
    *over("aten.dot.default", "hdi", torch.dot, (4,), (4,)),
    *over("aten.prod.default", "hdj1N", lambda x: x.prod(), (4,)),
    *over("aten.mean.default", "d1N", lambda x: x.mean(), ROW),
    *over("aten.mse_loss.default", "d1N", F.mse_loss, ROW, ROW),
    *over("aten.binary_cross_entropy_with_logits.default", "hdL", lambda x: F.binary_cross_entropy_with_logits(x, (x > 0).to(x.dtype)), ROW),
    *over("aten._prelu_kernel.default", "hbdN", lambda x: F.prelu(x, x.new_tensor([0.1])), ROW),
    *over("aten.nll_loss_forward.default", "d", lambda x: F.nll_loss(x, torch.tensor([0, -100, 2])), ROW, fixed=True),
    *over("aten.linalg_cross.default", "hbdj", lambda x, y: torch.linalg.cross(x, y), (4, 3), (4, 3)),
    *over("aten._euclidean_dist.default", "d", lambda x, y: torch._euclidean_dist(x, y), ROW, ROW),
]  # fmt: skip

CASES = MADE + SEARCHES + SCATTERS + LOGIC + PRODUCTS
