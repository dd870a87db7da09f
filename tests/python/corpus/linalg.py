"""Linear systems, determinants and factors."""

import torch

from . import Case

L = torch.linalg


def square():
    return (torch.randn(2, 3, 3) + 2 * torch.eye(3),)


def tall():
    return (torch.randn(2, 5, 3),)


def whole(x):
    """What is left of the factors where no sign counts."""
    u, s, v = L.svd(x, full_matrices=False)
    return u @ torch.diag_embed(s) @ v, s


def symmetric(x):
    values, vectors = L.eigh(x + x.mT)
    return values, vectors @ torch.diag_embed(values.exp()) @ vectors.mT


def positive(x):
    return x @ x.mT + torch.eye(3)


CASES = [
    Case("aten.linalg_inv_ex.default", L.inv, square),
    Case("aten.linalg_inv_ex.default", lambda x: torch.inverse(x[0]), square, "one matrix"),
    Case("aten._linalg_check_errors.default", L.inv, lambda: (torch.randn(4, 4),), "four rows"),
    Case("aten._linalg_solve_ex.default", lambda x: L.solve(x, x.mT), square),
    Case("aten._linalg_solve_ex.default", lambda x: L.solve(x[0], x[..., 0].mT), square, "broadcast"),
    Case("aten._linalg_solve_ex.default", lambda x: L.solve(x, x[..., 0]), square, "vectors"),
    Case("aten._linalg_det.default", L.det, square),
    Case("aten._linalg_det.default", lambda x: L.det(torch.ones_like(x)), square, "singular"),
    Case("aten._linalg_slogdet.default", L.slogdet, square),
    Case("aten.linalg_cholesky_ex.default", lambda x: L.cholesky(positive(x)), square),
    Case("aten.linalg_cholesky_ex.default", lambda x: L.cholesky(positive(x), upper=True), square, "upper"),
    Case("aten.cholesky_inverse.default", lambda x: torch.cholesky_inverse(L.cholesky(positive(x))), square),
    Case("aten.cholesky_inverse.default", lambda x: torch.cholesky_inverse(positive(x).triu(), upper=True), square, "upper"),
    Case("aten._linalg_eigh.default", symmetric, square, fixed=True),
    Case("aten._linalg_eigh.default", lambda x: L.eigvalsh(x, "U"), square, "values, of the upper half", fixed=True),
    Case("aten._linalg_eigh.default", lambda x: L.eigvalsh(torch.zeros_like(x)), square, "zeros", fixed=True),
    Case("aten._linalg_svd.default", whole, tall, fixed=True),
    Case("aten._linalg_svd.default", lambda x: whole(x.mT), tall, "wide", fixed=True),
    Case("aten._linalg_svd.default", lambda x: L.svdvals(x[0, :1] * x[0, :, :1]), tall, "of rank 1", fixed=True),
    Case("aten._linalg_svd.default", lambda x: L.svd(x.mT)[2].mT[..., -1].abs(), lambda: (torch.randn(2, 4, 3),), "what no row touches", fixed=True),
    Case("aten._linalg_svd.default", lambda x: L.svd(x)[0].abs(), tall, "all left vectors", error="all left vectors"),
    Case("aten.linalg_lstsq.default", lambda x: L.lstsq(x, x[..., :2]).solution, tall, fixed=True),
    Case("aten.linalg_pinv.atol_rtol_tensor", L.pinv, tall, fixed=True),
    Case("aten.linalg_pinv.atol_rtol_tensor", lambda x: L.pinv(x.mT @ x[..., :1] @ x[..., :1].mT @ x), tall, "of rank 1", fixed=True),
    Case("aten.linalg_qr.default", L.qr, tall, fixed=True),
    Case("aten.linalg_qr.default", lambda x: L.qr(x.mT), tall, "wide", fixed=True),
    Case("aten.linalg_qr.default", lambda x: L.qr(x, "complete"), tall, "complete", fixed=True),
    Case("aten.linalg_qr.default", lambda x: L.qr(x, "r")[1], tall, "upper half alone", fixed=True),
    Case("aten.cholesky_solve.default", lambda x: torch.cholesky_solve(x, L.cholesky(positive(x))), square),
    Case("aten.cholesky_solve.default", lambda x: torch.cholesky_solve(x, x.triu(), upper=True), square, "upper"),
    Case("aten.linalg_solve_triangular.default", lambda x: L.solve_triangular(x, x.mT, upper=True), square),
    Case("aten.linalg_solve_triangular.default", lambda x: L.solve_triangular(x, x, upper=False, unitriangular=True), square, "ones"),
]  # fmt: skip
