"""neuraloperator: Fourier neural operators and their relatives."""

from __future__ import annotations

from builders import of_shape
from neuralop import models

PLANE = (2, 1, 16, 16)
NETWORKS = {
    "FNO 1d": ((2, 1, 32), lambda: models.FNO((8,), 1, 1, 8, n_layers=2)),
    "FNO 2d": (PLANE, lambda: models.FNO((8, 8), 1, 1, 8, n_layers=2)),
    "FNO 3d": ((1, 1, 8, 8, 8), lambda: models.FNO((4, 4, 4), 1, 1, 8, n_layers=2)),
    "FNO with a norm": (PLANE, lambda: models.FNO((8, 8), 1, 1, 8, n_layers=2, norm="group_norm")),
    "FNO with padding": (PLANE, lambda: models.FNO((8, 8), 1, 1, 8, n_layers=2, domain_padding=0.25)),
    "FNO separable": (PLANE, lambda: models.FNO((8, 8), 1, 1, 8, n_layers=2, separable=True)),
    "FNO preactivated": (PLANE, lambda: models.FNO((8, 8), 1, 1, 8, n_layers=2, preactivation=True)),
    "FNO without mlp": (PLANE, lambda: models.FNO((8, 8), 1, 1, 8, n_layers=2, use_channel_mlp=False)),
    "TFNO": (PLANE, lambda: models.TFNO((8, 8), 1, 1, 8, n_layers=2)),
    "UNO": (PLANE, lambda: models.UNO(1, 1, 8, uno_out_channels=[8, 8, 8], uno_n_modes=[[4, 4]] * 3,
                                      uno_scalings=[[1.0, 1.0], [0.5, 0.5], [2.0, 2.0]], n_layers=3, channel_mlp_skip="linear")),
}  # fmt: skip


MODELS = {name: of_shape(*given) for name, given in NETWORKS.items()}
