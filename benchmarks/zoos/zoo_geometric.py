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


def graph(make, *more):
    return lambda: (make(), (torch.randn(NODES, 6), edges(), *(m() for m in more)))


ONE_OF_TWO = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])


def aggregated(make):
    return lambda: (make(), (torch.randn(NODES, 6), ONE_OF_TWO))


MODELS |= {
    f"{name}Aggregation": aggregated(lambda name=name: getattr(nn, f"{name}Aggregation")())
    for name in ("Sum", "Mean", "Max", "Min", "Mul", "Var", "Std", "Softmax", "PowerMean", "VariancePreserving")
}
MODELS |= {
    "QuantileAggregation": aggregated(lambda: nn.QuantileAggregation([0.25, 0.5])),
    "GRUAggregation": aggregated(lambda: nn.GRUAggregation(6, 8)),
    "SetTransformerAggregation": aggregated(lambda: nn.SetTransformerAggregation(6, 2, heads=2)),
    "GraphMultisetTransformer": aggregated(lambda: nn.GraphMultisetTransformer(6, 3, heads=2)),
    "DeepSetsAggregation": aggregated(lambda: nn.DeepSetsAggregation(torch.nn.Linear(6, 8), torch.nn.Linear(8, 4))),
    "MultiAggregation": aggregated(lambda: nn.MultiAggregation(["mean", "max", "std"])),
    "MemPooling": aggregated(lambda: nn.MemPooling(6, 8, 2, 3)),
    "InstanceNorm": aggregated(lambda: nn.InstanceNorm(6)),
    "graph LayerNorm": aggregated(lambda: nn.LayerNorm(6)),
    "GraphSizeNorm": aggregated(lambda: nn.GraphSizeNorm()),
    "MeanSubtractionNorm": aggregated(lambda: nn.MeanSubtractionNorm()),
    "PNA": graph(lambda: nn.PNA(6, 8, 2, 3, aggregators=["mean", "max"], scalers=["identity"], deg=torch.tensor([0, 2, 3, 3]))),
    "GraphUNet": graph(lambda: nn.GraphUNet(6, 8, 3, 2)),
    "DenseSAGEConv": lambda: (nn.DenseSAGEConv(6, 8), (torch.randn(2, NODES, 6), torch.rand(2, NODES, NODES))),
    "DenseGINConv": lambda: (nn.DenseGINConv(torch.nn.Linear(6, 8)), (torch.randn(2, NODES, 6), torch.rand(2, NODES, NODES))),
    "DenseGraphConv": lambda: (nn.DenseGraphConv(6, 8), (torch.randn(2, NODES, 6), torch.rand(2, NODES, NODES))),
    "DirGNNConv": graph(lambda: nn.DirGNNConv(nn.SAGEConv(6, 8))),
    "FastRGCNConv": graph(lambda: nn.FastRGCNConv(6, 8, 3), lambda: torch.randint(0, 3, (EDGES,))),
    "HEATConv": graph(lambda: nn.HEATConv(6, 8, 2, 3, 4, 5, 6, heads=2), lambda: torch.randint(0, 2, (NODES,)),
                      lambda: torch.randint(0, 3, (EDGES,)), lambda: torch.randn(EDGES, 5)),
    "WLConvContinuous": graph(lambda: nn.WLConvContinuous()),
    "PANConv": graph(lambda: Pooled(nn.PANConv(6, 8, 2))),
    "ASAPooling": graph(lambda: nn.ASAPooling(6)),
    "EdgePooling": graph(lambda: nn.EdgePooling(6), lambda: torch.zeros(NODES, dtype=torch.int64)),
    "DeepGCNLayer": graph(lambda: nn.DeepGCNLayer(nn.GCNConv(6, 6), nn.LayerNorm(6), torch.nn.ReLU())),
    "JumpingKnowledge": lambda: (nn.JumpingKnowledge("lstm", 6, 3), ([torch.randn(NODES, 6) for _ in range(3)],)),
    "LINKX": lambda: (nn.LINKX(NODES, 6, 8, 2, 2), (torch.randn(NODES, 6), edges())),
    "NeuralFingerprint": graph(lambda: nn.NeuralFingerprint(6, 8, 2, 2)),
    "SGFormer": graph(lambda: nn.SGFormer(6, 8, 2), lambda: torch.zeros(NODES, dtype=torch.int64)),
    "Polynormer": graph(lambda: nn.Polynormer(6, 8, 2), lambda: torch.zeros(NODES, dtype=torch.int64)),
    "RECT_L": graph(lambda: nn.RECT_L(6, 8)),
    "GAE": graph(lambda: nn.GAE(nn.GCNConv(6, 8))),
    "SchNet": lambda: (nn.SchNet(16, 8, 2, 8, interaction_graph=Everyone()), (torch.randint(1, 9, (NODES,)), torch.randn(NODES, 3), ONE_OF_TWO)),
    "MetaLayer": lambda: (nn.MetaLayer(Edge(), None, None), (torch.randn(NODES, 6), edges(), torch.randn(EDGES, 3), None, ONE_OF_TWO)),
    "PPFConv": lambda: (nn.PPFConv(torch.nn.Linear(10, 8)), (torch.randn(NODES, 6), torch.randn(NODES, 3), torch.randn(NODES, 3), edges())),
    "PointGNNConv": lambda: (nn.PointGNNConv(torch.nn.Linear(6, 3), torch.nn.Linear(9, 6), torch.nn.Linear(6, 6)),
                             (torch.randn(NODES, 6), torch.randn(NODES, 3), edges())),
    "SignedGCN": lambda: (nn.SignedGCN(6, 8, 2), (torch.randn(NODES, 6), edges(), edges())),
    "TransE": lambda: (nn.TransE(NODES, 3, 8), (torch.arange(4), torch.tensor([0, 1, 2, 0]), torch.arange(4) + 1)),
    "RotatE": lambda: (nn.RotatE(NODES, 3, 8), (torch.arange(4), torch.tensor([0, 1, 2, 0]), torch.arange(4) + 1)),
    "ComplEx": lambda: (nn.ComplEx(NODES, 3, 8), (torch.arange(4), torch.tensor([0, 1, 2, 0]), torch.arange(4) + 1)),
    "DistMult": lambda: (nn.DistMult(NODES, 3, 8), (torch.arange(4), torch.tensor([0, 1, 2, 0]), torch.arange(4) + 1)),
    "HeteroLinear": lambda: (nn.HeteroLinear(6, 8, 3), (torch.randn(NODES, 6), torch.randint(0, 3, (NODES,)))),
    "PositionalEncoding": lambda: (nn.PositionalEncoding(8), (torch.rand(NODES),)),
    "TemporalEncoding": lambda: (nn.TemporalEncoding(8), (torch.rand(NODES),)),
}  # fmt: skip


class Everyone(torch.nn.Module):
    """The edges between all nodes of the same graph, and their lengths."""

    def forward(self, places, batch):
        row, column = ((batch[:, None] == batch) & ~torch.eye(len(batch), dtype=torch.bool)).nonzero().t()
        return torch.stack([row, column]), (places[row] - places[column]).norm(dim=-1)


class Edge(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(15, 4)

    def forward(self, source, target, edge, u, batch):
        return self.linear(torch.cat([source, target, edge], 1))
