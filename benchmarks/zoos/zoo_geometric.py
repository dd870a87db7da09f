"""torch_geometric: one layer of most of its kinds, and its models, on a graph of 8 nodes and 20 edges."""

from __future__ import annotations

import torch
from torch_geometric import nn

NODES, EDGES = 8, 20
PLAIN = {
    "GCNConv": {}, "SAGEConv": {}, "GraphConv": {}, "ResGatedGraphConv": {}, "GATConv": {"heads": 2}, "GATv2Conv": {"heads": 2},
    "TransformerConv": {"heads": 2}, "TAGConv": {}, "ARMAConv": {}, "SGConv": {}, "SSGConv": {"alpha": 0.1}, "ChebConv": {"K": 3},
    "LEConv": {}, "ClusterGCNConv": {}, "GENConv": {}, "FiLMConv": {}, "SuperGATConv": {}, "EGConv": {}, "GeneralConv": {},
    "FeaStConv": {}, "MFConv": {}, "MixHopConv": {}, "HypergraphConv": {},
}  # fmt: skip


def edges():
    return torch.randint(0, NODES, (2, EDGES), generator=torch.Generator().manual_seed(0))


def layer(name: str):
    return lambda: (getattr(nn, name)(6, 8, **PLAIN[name]), (torch.randn(NODES, 6), edges()))


def two(make):
    return lambda: (make(), (torch.randn(NODES, 6), edges()))


MODELS = {name: layer(name) for name in PLAIN}
MODELS |= {
    "GINConv": two(lambda: nn.GINConv(torch.nn.Linear(6, 8))),
    "EdgeConv": two(lambda: nn.EdgeConv(torch.nn.Linear(12, 8))),
    "APPNP": two(lambda: nn.APPNP(3, 0.1)),
    "AGNNConv": two(lambda: nn.AGNNConv()),
    "LGConv": two(lambda: nn.LGConv()),
    "SimpleConv": two(lambda: nn.SimpleConv()),
    "AntiSymmetricConv": two(lambda: nn.AntiSymmetricConv(6)),
    "GatedGraphConv": two(lambda: nn.GatedGraphConv(8, 2)),
    "GCN": two(lambda: nn.GCN(6, 8, 2, 3)),
    "GraphSAGE": two(lambda: nn.GraphSAGE(6, 8, 2, 3)),
    "GIN": two(lambda: nn.GIN(6, 8, 2, 3)),
    "GAT": two(lambda: nn.GAT(6, 8, 2, 3)),
    "EdgeCNN": two(lambda: nn.EdgeCNN(6, 8, 2, 3)),
    "GCN with jumps": two(lambda: nn.GCN(6, 8, 2, 3, jk="cat")),
    "GCN with lstm jumps": two(lambda: nn.GCN(6, 8, 2, 3, jk="lstm")),
    "PMLP": two(lambda: nn.PMLP(6, 8, 3, 2)),
}
MODELS |= {
    "NNConv": lambda: (nn.NNConv(6, 8, torch.nn.Linear(3, 48)), (torch.randn(NODES, 6), edges(), torch.randn(EDGES, 3))),
    "CGConv": lambda: (nn.CGConv(6, 3), (torch.randn(NODES, 6), edges(), torch.randn(EDGES, 3))),
    "GINEConv": lambda: (nn.GINEConv(torch.nn.Linear(6, 8), edge_dim=3), (torch.randn(NODES, 6), edges(), torch.randn(EDGES, 3))),
    "GMMConv": lambda: (nn.GMMConv(6, 8, 3, 2), (torch.randn(NODES, 6), edges(), torch.rand(EDGES, 3))),
    "RGCNConv": lambda: (nn.RGCNConv(6, 8, 3), (torch.randn(NODES, 6), edges(), torch.randint(0, 3, (EDGES,)))),
    "RGATConv": lambda: (nn.RGATConv(6, 8, 3), (torch.randn(NODES, 6), edges(), torch.randint(0, 3, (EDGES,)))),
    "PDNConv": lambda: (nn.PDNConv(6, 8, 3, 4), (torch.randn(NODES, 6), edges(), torch.rand(EDGES, 3))),
    "PointNetConv": lambda: (nn.PointNetConv(torch.nn.Linear(9, 8)), (torch.randn(NODES, 6), torch.randn(NODES, 3), edges())),
    "PointTransformerConv": lambda: (nn.PointTransformerConv(6, 8), (torch.randn(NODES, 6), torch.randn(NODES, 3), edges())),
    "FAConv": lambda: (nn.FAConv(6), (torch.randn(NODES, 6), torch.randn(NODES, 6), edges())),
    "AttentiveFP": lambda: (nn.AttentiveFP(6, 8, 2, 3, 2, 2), (torch.randn(NODES, 6), edges(), torch.randn(EDGES, 3),
                                                                torch.tensor([0, 0, 0, 1, 1, 1, 1, 1]))),
    "MLP": lambda: (nn.MLP([6, 8, 2]), (torch.randn(NODES, 6),)),
    "global_mean_pool": lambda: (Pooled(nn.global_mean_pool), (torch.randn(NODES, 6), torch.tensor([0, 0, 0, 1, 1, 1, 1, 1]))),
    "global_max_pool": lambda: (Pooled(nn.global_max_pool), (torch.randn(NODES, 6), torch.tensor([0, 0, 0, 1, 1, 1, 1, 1]))),
    "GCN2Conv": lambda: (nn.GCN2Conv(6, 0.1), (torch.randn(NODES, 6), torch.randn(NODES, 6), edges())),
    "PNAConv": lambda: (nn.PNAConv(6, 8, ["mean", "max", "std"], ["identity", "amplification"], torch.tensor([0, 2, 3, 3])),
                        (torch.randn(NODES, 6), edges())),
    "DNAConv": lambda: (nn.DNAConv(8, heads=2), (torch.randn(NODES, 3, 8), edges())),
    "GPSConv": lambda: (nn.GPSConv(8, nn.SAGEConv(8, 8), heads=2), (torch.randn(NODES, 8), edges())),
    "SignedConv": lambda: (nn.SignedConv(6, 8, True), (torch.randn(NODES, 6), edges(), edges())),
    "DenseGCNConv": lambda: (nn.DenseGCNConv(6, 8), (torch.randn(2, NODES, 6), torch.rand(2, NODES, NODES))),
    "DenseGATConv": lambda: (nn.DenseGATConv(6, 8), (torch.randn(2, NODES, 6), torch.rand(2, NODES, NODES).round())),
    "dense_diff_pool": lambda: (Pooled(lambda x, s: nn.dense_diff_pool(x, torch.eye(8), s)), (torch.randn(2, NODES, 6), torch.randn(2, NODES, 3))),
    "DMoNPooling": lambda: (nn.DMoNPooling(6, 3), (torch.randn(2, NODES, 6), torch.rand(2, NODES, NODES))),
    "TopKPooling": lambda: (Pooled(nn.TopKPooling(6)), (torch.randn(NODES, 6), edges())),
    "SAGPooling": lambda: (Pooled(nn.SAGPooling(6)), (torch.randn(NODES, 6), edges())),
    "GraphNorm": lambda: (nn.GraphNorm(6), (torch.randn(NODES, 6), torch.tensor([0, 0, 0, 1, 1, 1, 1, 1]))),
    "PairNorm": lambda: (nn.PairNorm(), (torch.randn(NODES, 6),)),
    "Set2Set": lambda: (nn.Set2Set(6, 2), (torch.randn(NODES, 6), torch.tensor([0, 0, 0, 1, 1, 1, 1, 1]))),
    "SortAggregation": lambda: (nn.SortAggregation(3), (torch.randn(NODES, 6), torch.tensor([0, 0, 0, 1, 1, 1, 1, 1]))),
    "AttentionalAggregation": lambda: (nn.AttentionalAggregation(torch.nn.Linear(6, 1)),
                                       (torch.randn(NODES, 6), torch.tensor([0, 0, 0, 1, 1, 1, 1, 1]))),
    "LSTMAggregation": lambda: (nn.LSTMAggregation(6, 8), (torch.randn(NODES, 6), torch.tensor([0, 0, 0, 1, 1, 1, 1, 1]))),
    "MedianAggregation": lambda: (nn.MedianAggregation(), (torch.randn(NODES, 6), torch.tensor([0, 0, 0, 1, 1, 1, 1, 1]))),
    "LightGCN": lambda: (nn.LightGCN(NODES, 8, 2), (edges(),)),
    "InnerProductDecoder": lambda: (nn.InnerProductDecoder(), (torch.randn(NODES, 6), edges())),
    "Node2Vec": lambda: (nn.Node2Vec(edges(), 8, 4, 2), (torch.arange(5),)),
}  # fmt: skip


class Pooled(torch.nn.Module):
    def __init__(self, pool):
        super().__init__()
        self.pool = pool

    def forward(self, x, batch):
        return self.pool(x, batch)
