"""Layouts: triangles, diagonals, windows, strides, turns; and the views."""

import torch

from . import Case
from .indexing import f, i, m

CASES = [
    Case("aten.tril.default", torch.tril, lambda: (f(5, 7),)),
    Case("aten.tril.default", lambda x: x.tril(-1), lambda: (f(2, 5, 7),), "below, batch"),
    Case(
        "aten.tril.default", lambda x: x.tril(x.shape[1] - x.shape[0]), lambda: (m(5, 7),), "symbolic, bools"
    ),
    Case("aten.triu.default", lambda x: x.triu(1), lambda: (f(5, 7),)),
    Case("aten.triu.default", torch.triu, lambda: (i(9, 5, 7),), "integers"),
    Case("aten.triu.default", torch.triu, lambda: (i(9, 5, 7, dtype=torch.uint8),), "uint8"),
    Case("aten.triu.default", torch.triu, lambda: (f(5, 7).half(),), "half"),
    Case(
        "aten.triu.default",
        lambda x: torch.ones(x.shape[0], x.shape[0]).triu(1) + x,
        lambda: (f(5, 5),),
        "of ones",
    ),
    Case(
        "aten.tril_indices.default",
        lambda x: x[torch.tril_indices(5, 5).unbind(0)],
        lambda: (f(5, 5),),
        fixed=True,
    ),
    Case(
        "aten.triu_indices.default",
        lambda x: x[torch.triu_indices(5, 5, 1).unbind(0)],
        lambda: (f(5, 5),),
        fixed=True,
    ),
    Case("aten.diagonal.default", torch.diagonal, lambda: (f(5, 5),)),
    Case(
        "aten.diagonal.default", lambda x: x.diagonal(1, 0, -1), lambda: (f(4, 3, 6),), "offset", fixed=True
    ),
    Case("aten.diagonal.default", lambda x: x.diagonal(-1, -2, -1), lambda: (f(2, 5, 5),), "below"),
    Case("aten.diagonal_copy.default", torch.diagonal_copy, lambda: (f(5, 5),)),
    Case("aten.diag_embed.default", torch.diag_embed, lambda: (f(3, 5),)),
    Case("aten.diag_embed.default", lambda x: torch.diag_embed(x, 2, 0, 2), lambda: (f(3, 5),), "offset"),
    Case("aten.diag_embed.default", lambda x: torch.diag(x, -1), lambda: (i(9, 5),), "diag"),
    Case("aten.trace.default", torch.trace, lambda: (f(5, 5),)),
    Case("aten.block_diag.default", torch.block_diag, lambda: (f(2, 3), f(4, 5))),
    Case("aten.unfold.default", lambda x: x.unfold(1, 3, 1), lambda: (f(2, 7, 3),)),
    Case("aten.unfold.default", lambda x: x.unfold(-1, 4, 2), lambda: (f(2, 9),), "step"),
    Case(
        "aten.unfold.default", lambda x: x.unfold(1, 2, 2).unfold(2, 2, 2), lambda: (f(2, 8, 6),), "patches"
    ),
    Case(
        "aten.as_strided.default",
        lambda x: x.as_strided((x.shape[0] - 2, 3), (1, 1)),
        lambda: (f(9),),
        "windows",
    ),
    Case(
        "aten.as_strided.default",
        lambda x: x.as_strided(
            (x.shape[0], x.shape[1] // 2 - 1, 4, x.shape[2]),
            (x.stride(0), 2 * x.stride(1), x.stride(1), x.stride(2)),
        ),
        lambda: (f(2, 8, 3),),
        "overlapping chunks",
    ),
    Case(
        "aten.as_strided.default",
        lambda x: x.as_strided((3, 2), (4, 1), 2),
        lambda: (f(3, 4),),
        "offset",
        fixed=True,
    ),
    Case(
        "aten.as_strided.default",
        lambda x: x.t().as_strided((4, 3), (1, 4)),
        lambda: (f(3, 4),),
        "transposed",
        fixed=True,
    ),
    Case(
        "aten.as_strided.default",
        lambda x: x[:, ::2].as_strided((3, 2), (4, 2)),
        lambda: (f(3, 4),),
        "gaps",
        fixed=True,
        error="gaps",
    ),
    Case("aten.unfold_copy.default", lambda x: torch.unfold_copy(x, 1, 3, 1), lambda: (f(2, 7, 3),)),
    Case(
        "aten.as_strided_copy.default",
        lambda x: torch.as_strided_copy(x.t(), (4, 3), (1, 4)),
        lambda: (f(3, 4),),
        fixed=True,
    ),
    Case(
        "aten.as_strided.default",
        lambda x: torch.nn.functional.adaptive_avg_pool2d(x.contiguous(memory_format=torch.channels_last), 1),
        lambda: (f(2, 3, 4, 5),),
        "as a pool makes it",
    ),
    Case("aten.flip.default", lambda x: x.flip(0), lambda: (f(3, 7),)),
    Case("aten.flip.default", lambda x: x.flip(-1, 0), lambda: (m(3, 7),), "two, bools"),
    Case("aten.rot90.default", lambda x: torch.rot90(x), lambda: (f(3, 7),)),
    Case("aten.rot90.default", lambda x: torch.rot90(x, -1, (1, 2)), lambda: (f(2, 3, 7),), "back"),
    Case("aten.rot90.default", lambda x: torch.rot90(x, 2), lambda: (f(3, 7),), "twice"),
    Case("aten.roll.default", lambda x: x.roll(2, 1), lambda: (f(3, 7),)),
    Case("aten.roll.default", lambda x: x.roll((-1, 3), (0, 1)), lambda: (f(3, 7),), "two"),
    Case("aten.roll.default", lambda x: x.roll(1), lambda: (i(9, 3, 7),), "of all"),
    Case(
        "aten.roll.default",
        lambda x: x.roll((-2, 1), (0, 1)),
        lambda: (f(3, 7),),
        "constant sizes",
        fixed=True,
    ),
]
