"""The corners of the operators that models execute most: every element type, sizes of 0 and 1, NaN and infinities, values
at the end of the range, negative dimensions. Each row names an operator and the corners that its inputs have.
"""

import math

import torch
import torch.nn.functional as F

from . import Case

NAN, INF = math.nan, math.inf
TYPES = {
    "h": torch.float16, "b": torch.bfloat16, "d": torch.float64, "i": torch.int64, "j": torch.int32, "u": torch.uint8,
    "B": torch.bool,
}  # fmt: skip
LOOSE = {"h": 1e-2, "b": 1e-1}  # of a few sums in 11 and 8 bits of mantissa


def filled(shape, corner: str) -> torch.Tensor:
    """Numbers of a corner: a type of TYPES, N: not finite, X: infinite, L: large, I: integers at the end of their range."""
    count = math.prod(shape)
    if corner == "N":
        return torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1.5, -2.0]).repeat(count // 7 + 1)[:count].reshape(shape)
    if corner == "X":
        return torch.tensor([1.0, INF, -INF, 0.5, -2.0]).repeat(count // 5 + 1)[:count].reshape(shape)
    if corner == "L":
        return torch.tensor([3e38, -3e38, 1e30, -1e-30, 7.0]).repeat(count // 5 + 1)[:count].reshape(shape)
    if corner == "I":
        return torch.tensor([2**62, -(2**62), 2**53 + 1, -1, 0]).repeat(count // 5 + 1)[:count].reshape(shape)
    plain = torch.randn(shape)
    dtype = TYPES.get(corner, torch.float32)
    if dtype == torch.bool:
        return plain > 0
    return plain.to(dtype) if dtype.is_floating_point else (plain * 20).abs().to(dtype)


def named(corner: str) -> str:
    words = {"N": "nan and infinity", "X": "infinity", "L": "large", "I": "large int64", "0": "empty", "1": "size 1"}
    return words.get(corner) or str(TYPES[corner]).removeprefix("torch.")


def over(op, corners, fn, *shapes, fixed=False, name="", cut=9):
    """A case per letter: 0 empties the first dimension of the first `cut` inputs inside the model (an example itself
    cannot be empty), 1 makes every size 1, the others say what the inputs hold.
    """

    def emptied(*inputs):
        return fn(*[x[:0] if k < cut else x for k, x in enumerate(inputs)])

    cases = []
    for corner in corners:
        sized = [tuple(1 for _ in s) for s in shapes] if corner == "1" else shapes

        def make(sized=sized, corner=corner):
            return tuple(filled(s, corner) for s in sized)

        title = f"{name}, {named(corner)}" if name else named(corner)
        called = emptied if corner == "0" else fn
        still = fixed or corner in "1NXLI"
        cases.append(Case(op, called, make, title, still, LOOSE.get(corner, 1e-4)))
    return cases


IMAGE, ROW = (2, 3, 4), (3, 4)
ANY = "hbdijuB01NI"

VIEWS = [
    *over("aten.view.default", ANY, lambda x: x.view(-1), ROW),
    *over("aten.view.default", "0", lambda x: x.view(x.shape[0], 2, -2 + 4), ROW, name="split"),
    *over("aten.t.default", ANY, lambda x: x.t() + x.t(), ROW),
    *over("aten.transpose.int", ANY, lambda x: x.transpose(-1, -3), IMAGE),
    *over("aten.permute.default", ANY, lambda x: x.permute(-1, 0, -2), IMAGE),
    *over("aten.expand.default", "hbdijuB0NI", lambda x: x.unsqueeze(-2).expand(-1, 5, -1), ROW),
    *over("aten.unsqueeze.default", ANY, lambda x: x.unsqueeze(-1), ROW),
    *over("aten.squeeze.dim", "hbdijuB0N", lambda x: x.unsqueeze(-2).squeeze(-2), ROW),
    *over("aten.squeeze.dim", "B", lambda x: x.squeeze(-1), ROW, name="not of size 1"),
    *over("aten.slice.Tensor", ANY, lambda x: x[:, -3:-1], ROW),
    *over("aten.slice.Tensor", "0i", lambda x: x[5:, 1:99:2], ROW, fixed=True, name="past the end"),
    *over("aten.select.int", "hbdijuB0NI", lambda x: x.select(-1, -2), ROW),
    *over("aten.split.Tensor", "hbdijuB0N", lambda x: x.split(3, -1), ROW),
    *over("aten.split_with_sizes.default", "hbdijuB0N", lambda x: x.split([1, 3], -1), ROW),
    *over("aten.unbind.int", "hbdijuB0N", lambda x: x.unbind(-1), ROW, fixed=True),
    *over("aten.cat.default", "hbdju1NI", lambda x, y: torch.cat([x, y], -1), ROW, ROW),
    *over("aten.cat.default", "0", lambda x: torch.cat([x, x, x[:0]], 0), ROW, name="of nothing"),
    *over("aten.stack.default", "hbdjuB01NI", lambda x, y: torch.stack([x, y], -1), ROW, ROW),
    *over("aten.repeat.default", "hbdiju01NI", lambda x: x.repeat(2, 1, 3), ROW),
    *over("aten.clone.default", ANY, lambda x: x.clone(), ROW),
    *over("aten.flip.default", "hbdiju01NI", lambda x: x.flip(-1, 0), ROW),
    *over("aten.unfold.default", "hbdijuBN", lambda x: x.unfold(-1, 2, 1), ROW),
    *over("aten.tril.default", "hbdiju01N", lambda x: x.tril(-1), ROW),
    *over("aten.triu.default", "bdjuB01N", lambda x: x.triu(1), ROW),
]

INDEXING = [
    *over("aten.index.Tensor", "bdjuN1I", lambda x: x[:, torch.tensor([0, -1, 0])], ROW),
    *over("aten.index.Tensor", "0", lambda x: x[torch.zeros(0, dtype=torch.int64)], ROW, name="no rows"),
    *over("aten.index_select.default", "hbdjuNI", lambda x: x.index_select(-1, torch.tensor([1, 0, 1])), ROW),
    *over("aten.gather.default", "bdjuNI", lambda x: x.gather(-1, torch.zeros(3, 2, dtype=torch.int64)), ROW, fixed=True),
    *over("aten.embedding.default", "hbdN", lambda w: F.embedding(torch.tensor([[0, 2], [1, 2]]), w), (3, 4)),
    *over("aten.embedding.default", "1", lambda w: F.embedding(torch.zeros(0, 2, dtype=torch.int64), w), (3, 4), name="no ids"),
    *over("aten.masked_fill.Scalar", "hbdjuB01NI", lambda x: x.masked_fill(x == x[:, :1], 1), ROW),
    *over("aten.masked_fill.Scalar", "hbd", lambda x: x.masked_fill(x > 0, -INF), ROW, name="-inf"),
    *over("aten.where.self", "bdjuB01NI", lambda x, y: torch.where(x > y if x.dtype != torch.bool else x, x, y), ROW, ROW),
    *over("aten.topk.default", "bdju1NXI", lambda x: x.topk(1, -1)[0], ROW),
    *over("aten.sort.default", "hbdju01NXI", lambda x: x.sort(-1, descending=True)[0], ROW),
    *over("aten.argmax.default", "hbdju1NXI", lambda x: x.argmax(-1, keepdim=True), ROW),
    *over("aten.nonzero.default", "hbjuBN", lambda x: x.nonzero(), ROW),
    *over("aten.masked_scatter.default", "hbdjuN", lambda x, y: x.masked_scatter(x == x[:, :1], y), ROW, ROW, fixed=True),
]  # fmt: skip

PRODUCTS = [
    *over("aten.mm.default", "hbdij01N", torch.mm, (3, 4), (4, 5), cut=1),
    *over("aten.bmm.default", "hbdij01N", torch.bmm, (2, 3, 4), (2, 4, 5)),
    *over("aten.addmm.default", "hbdj1N", torch.addmm, (5,), (3, 4), (4, 5)),
    *over("aten.addmm.default", "hbd", lambda b, x, y: torch.addmm(b, x, y, beta=0.5, alpha=2), (3, 5), (3, 4), (4, 5), name="factors"),
    *over("aten.native_layer_norm.default", "hbd1N", lambda x: torch.native_layer_norm(x, [x.shape[-1]], None, None, 1e-5)[0], IMAGE),
    *over("aten.native_group_norm.default", "hd", lambda x: torch.ops.aten.native_group_norm(x, None, None, x.shape[0], 4, x.shape[2], 2, 1e-5)[0], (2, 4, 5), fixed=True),
    *over("aten._softmax.default", "hbd01NL", lambda x: F.softmax(x, -1), ROW),
    *over("aten._log_softmax.default", "hbd01NL", lambda x: F.log_softmax(x, -1), ROW),
    *over("aten.convolution.default", "1N", lambda x: F.conv1d(x, torch.ones(2, x.shape[1], 1)), (2, 3, 4)),
    *over("aten.glu.default", "hbdN", lambda x: F.glu(x, -1), ROW),
]  # fmt: skip

REDUCTIONS = [
    *over("aten.mean.dim", "hbd1N", lambda x: x.mean((-1, 0), keepdim=True), ROW),
    *over("aten.sum.dim_IntList", "hbdjuB1NI", lambda x: x.sum(-1, keepdim=True), ROW),
    *over("aten.sum.default", "hbdiju01NI", lambda x: x.sum(), ROW),
    *over("aten.cumsum.default", "bdju01NI", lambda x: x.cumsum(-1), ROW),
    *over("aten.max.default", "dju1NI", lambda x: x.max(), ROW),
    *over("aten.max.dim", "bdju1NXI", lambda x: x.max(-1, keepdim=True)[0], ROW),
    *over("aten.prod.dim_int", "ju1N", lambda x: x.prod(-1, keepdim=True), ROW),
    *over("aten.linalg_vector_norm.default", "bd1N", lambda x: torch.linalg.vector_norm(x, 2, -1, keepdim=True), ROW),
    *over("aten.var.correction", "hbd", lambda x: x.var(-1, keepdim=True), ROW),
    *over("aten.any.dim", "hijuB01N", lambda x: x.any(-1, keepdim=True), ROW),
    *over("aten.all.dim", "hijuB01N", lambda x: x.all(-1, keepdim=True), ROW),
    *over("aten.amax.default", "hbdijuB1NI", lambda x: x.amax((-1, 0), keepdim=True), ROW),
    *over("aten.amin.default", "hbdijuB1NI", lambda x: x.amin((-1, 0), keepdim=True), ROW),
]

ARITHMETIC = [
    *over("aten.add.Tensor", "juLI", lambda x, y: x + y, ROW, ROW),
    *over("aten.sub.Tensor", "juLI", lambda x, y: x - y, ROW, ROW),
    *over("aten.mul.Tensor", "juLI", lambda x, y: x * y, ROW, ROW),
    *over("aten.div.Tensor", "juBL", lambda x, y: x / y, ROW, ROW),
    *over("aten.mul.Scalar", "hbdijuBN", lambda x: torch.ops.aten.mul.Scalar(x, 3), ROW),
    *over("aten.rsub.Scalar", "hbdjuNI", lambda x: 1 - x, ROW),
    *over("aten.remainder.Scalar", "hbdju1", lambda x: x % 3, ROW),
    *over("aten.pow.Scalar", "hbdj", lambda x: 2**x if x.is_floating_point() else 2 ** (x % 5), ROW),
    *over("aten.clamp_min.default", "hbdij1I", lambda x: x.clamp_min(1), ROW),
    *over("aten.clamp.default", "dju01I", lambda x: x.clamp(1, 3), ROW),
    *over("aten.minimum.default", "ju0I", torch.minimum, ROW, ROW),
    *over("aten.maximum.default", "ju0I", torch.maximum, ROW, ROW),
    *[
        each
        for op, fn in {
            "eq": lambda x: x == 1, "ne": lambda x: x != 1, "lt": lambda x: x < 1, "le": lambda x: x <= 1,
            "gt": lambda x: x > 1, "ge": lambda x: x >= 1,
        }.items()
        for each in over(f"aten.{op}.Scalar", "hbdju01NI", fn, ROW)
    ],
    *over("aten.bitwise_and.Tensor", "juI", torch.bitwise_and, ROW, ROW),
    *over("aten.bitwise_or.Tensor", "juI", torch.bitwise_or, ROW, ROW),
    *over("aten.bitwise_not.default", "juI", torch.bitwise_not, ROW),
    *over("aten.erf.default", "hbdN", torch.erf, ROW),
    *over("aten.leaky_relu.default", "hbdN", lambda x: F.leaky_relu(x, 0.1), ROW),
    *over("aten.hardtanh.default", "hbdN", lambda x: F.hardtanh(x, -0.5, 0.5), ROW),
]  # fmt: skip

CREATION = [
    *over("aten.zeros_like.default", "hbdijuB01", torch.zeros_like, ROW),
    *over("aten.ones_like.default", "hdijuB01", torch.ones_like, ROW),
    *over("aten.full_like.default", "hbdijuB01", lambda x: torch.full_like(x, 1), ROW),
    *over("aten.full_like.default", "hbd", lambda x: torch.full_like(x, -INF), ROW, name="-inf"),
    *over("aten.new_ones.default", "hbdijuB0", lambda x: x.new_ones(x.shape[0], 2), ROW),
    *over("aten.new_zeros.default", "hbdijuB0", lambda x: x.new_zeros(x.shape[0], 2), ROW),
    *over("aten.zeros.default", "hijB", lambda x: torch.zeros(x.shape[0], dtype=x.dtype), ROW),
    *over("aten.ones.default", "hijB", lambda x: torch.ones(x.shape[0], dtype=x.dtype), ROW),
]

CASES = VIEWS + INDEXING + PRODUCTS + REDUCTIONS + ARITHMETIC + CREATION
