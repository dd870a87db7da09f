"""Tabular models: rtdl's, and TabNet."""

from __future__ import annotations

import rtdl_num_embeddings as embeddings
import rtdl_revisiting_models as rtdl
import torch
from pytorch_tabnet import tab_network

ROWS = 5


def numbers():
    return (torch.randn(ROWS, 6),)


def both():
    return torch.randn(ROWS, 3), torch.randint(0, 4, (ROWS, 2))


def bins():
    return [torch.linspace(-2, 2, 5) for _ in range(6)]


BLOCK = rtdl.FTTransformer.get_default_kwargs(n_blocks=1)
NETWORKS = {
    "MLP": (lambda: rtdl.MLP(d_in=6, d_out=2, n_blocks=2, d_block=8, dropout=0.1), numbers),
    "ResNet": (lambda: rtdl.ResNet(d_in=6, d_out=2, n_blocks=2, d_block=8, d_hidden=16, d_hidden_multiplier=None, dropout1=0.1,
                                   dropout2=0.0), numbers),
    "FTTransformer": (lambda: rtdl.FTTransformer(n_cont_features=3, cat_cardinalities=[4, 4], d_out=2, **BLOCK), both),
    "FTTransformer of numbers": (lambda: rtdl.FTTransformer(n_cont_features=6, cat_cardinalities=[], d_out=2, **BLOCK),
                                 lambda: (*numbers(), None)),
    "linear embeddings": (lambda: embeddings.LinearReLUEmbeddings(6, 4), numbers),
    "periodic embeddings": (lambda: embeddings.PeriodicEmbeddings(6, 4, lite=False), numbers),
    "piecewise encoding": (lambda: embeddings.PiecewiseLinearEncoding(bins()), numbers),
    "piecewise embeddings": (lambda: embeddings.PiecewiseLinearEmbeddings(bins(), 4, activation=True), numbers),
    "TabNet": (lambda: tab_network.TabNet(6, 2, n_d=4, n_a=4, n_steps=2, group_attention_matrix=torch.eye(6)), numbers),
    "TabNet with entmax": (lambda: tab_network.TabNet(6, 2, n_d=4, n_a=4, n_steps=2, mask_type="entmax",
                                                      group_attention_matrix=torch.eye(6)), numbers),
}  # fmt: skip


def builder(name: str):
    return lambda: (NETWORKS[name][0](), NETWORKS[name][1]())


MODELS = {name: builder(name) for name in NETWORKS}
