"""Linear systems, determinants and factors."""

import torch

from . import Case

L = torch.linalg


def square():
    return (torch.randn(2, 3, 3) + 2 * torch.eye(3),)


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
    Case("aten.cholesky_solve.default", lambda x: torch.cholesky_solve(x, L.cholesky(positive(x))), square),
    Case("aten.cholesky_solve.default", lambda x: torch.cholesky_solve(x, x.triu(), upper=True), square, "upper"),
    Case("aten.linalg_solve_triangular.default", lambda x: L.solve_triangular(x, x.mT, upper=True), square),
    Case("aten.linalg_solve_triangular.default", lambda x: L.solve_triangular(x, x, upper=False, unitriangular=True), square, "ones"),
]  # fmt: skip
