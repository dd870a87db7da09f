"""Recurrent layers, attention and the layers of torch.nn, as they are put together."""

# ruff: noqa: C408, RUF012, RUF059

import math

import torch
import torch.nn.functional as F
from torch import nn

from ..rows import floats, lengths, mask, row

# fmt: off

X = floats(3, 9)
IMG = floats(2, 3, 8, 10)

# --- recurrent
def rec(cls, **kw):
    class Rec(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = cls(4, 5, batch_first=True, **kw)
        def forward(self, x):
            out, h = self.inner(x)
            return (out, *h) if isinstance(h, tuple) else (out, h)
    return Rec
S = floats(2, 6, 4)
for cls in (nn.LSTM, nn.GRU, nn.RNN):
    for name, kw in {"two layers": dict(num_layers=2), "both ways": dict(bidirectional=True), "two layers both ways": dict(num_layers=2, bidirectional=True), "no bias": dict(bias=False)}.items():
        row("recurrent more", f"{cls.__name__} {name}", rec(cls, **kw), S, largest=65)
row("recurrent more", "LSTM projected", rec(nn.LSTM, proj_size=3), S, largest=65)
row("recurrent more", "RNN relu", rec(nn.RNN, nonlinearity="relu"), S, largest=65)

class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.GRU(4, 5, batch_first=True, bidirectional=True)
    def forward(self, x, l):
        p = nn.utils.rnn.pack_padded_sequence(x, l, batch_first=True, enforce_sorted=False)
        out, h = self.inner(p)
        return nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0], h
row("recurrent more", "packed both ways", Packed, S, lengths(2), largest=65)

class PackedTotal(Packed):
    def forward(self, x, l):
        p = nn.utils.rnn.pack_padded_sequence(x, l, batch_first=True, enforce_sorted=False)
        out, h = self.inner(p)
        return nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=x.shape[1], padding_value=-1.0)
row("recurrent more", "packed to its length", PackedTotal, S, lengths(2), largest=65)

class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.LSTMCell(4, 5)
    def forward(self, x):
        h = c = torch.zeros(x.shape[0], 5)
        outs = []
        for t in range(x.shape[1]):
            h, c = self.inner(x[:, t], (h, c))
            outs.append(h)
        return torch.stack(outs, 1), c
row("recurrent more", "LSTM cells", Cells, S, largest=41)

class CellsBack(Cells):
    def forward(self, x):
        h = c = torch.zeros(x.shape[0], 5)
        for t in reversed(range(x.shape[1])):
            h, c = self.inner(x[:, t], (h, c))
        return h
row("recurrent more", "LSTM cells backwards", CellsBack, S, largest=41)

class CellsMasked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.GRUCell(4, 5)
    def forward(self, x, m):
        h = torch.zeros(x.shape[0], 5)
        for t in range(x.shape[1]):
            new = self.inner(x[:, t], h)
            h = torch.where(m[:, t : t + 1] > 0, new, h)
        return h
row("recurrent more", "GRU cells under a mask", CellsMasked, S, mask(2, 6), largest=41)

class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.GRU(4, 5, batch_first=True)
    def forward(self, x, h=None):
        return self.inner(x, h)
row("recurrent more", "state left out", Stateful, S, largest=41)
row("recurrent more", "state given", Stateful, S, floats(1, 2, 5), largest=41)

class TimeFirst(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.LSTM(4, 5)
    def forward(self, x):
        return self.inner(x)[0][-1]
row("recurrent more", "time first, last step", TimeFirst, floats(6, 2, 4), largest=41)
row("recurrent more", "no batch", TimeFirst, floats(6, 4), largest=41)

# --- attention
class MHA(nn.Module):
    kw = {}
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, batch_first=True, **self.kw)
    def forward(self, q, k):
        return self.inner(q, k, k)
Q, K = floats(2, 5, 8), floats(2, 7, 8)
row("attention more", "cross with weights", MHA, Q, K, largest=65)
class MHAper(MHA):
    def forward(self, q, k):
        return self.inner(q, k, k, average_attn_weights=False)
row("attention more", "cross with every head's weights", MHAper, Q, K, largest=65)
class MHAcausal(MHA):
    def forward(self, q):
        m = nn.Transformer.generate_square_subsequent_mask(q.shape[1])
        return self.inner(q, q, q, attn_mask=m, is_causal=True, need_weights=False)[0]
row("attention more", "causal by torch", MHAcausal, Q, largest=65)
class MHApad(MHA):
    def forward(self, q, l):
        m = torch.arange(q.shape[1]) >= l[:, None]
        return self.inner(q, q, q, key_padding_mask=m, need_weights=False)[0]
row("attention more", "padded by lengths", MHApad, Q, lengths(2), largest=65)
class MHAbias(MHA):
    kw = dict(add_bias_kv=True, add_zero_attn=True)
row("attention more", "bias_kv and zeros", MHAbias, Q, K, largest=65)
class MHAdims(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, kdim=6, vdim=5, batch_first=True)
    def forward(self, q, k, v):
        return self.inner(q, k, v)[0]
row("attention more", "other widths", MHAdims, Q, floats(2, 7, 6), floats(2, 7, 5), largest=65)
class Enc(nn.Module):
    kw = {}
    def __init__(self):
        super().__init__()
        self.inner = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **self.kw), 2)
    def forward(self, x, l):
        padded = torch.arange(x.shape[1]) >= l[:, None]
        return self.inner(x, src_key_padding_mask=padded) * ~padded[..., None]
row("attention more", "encoder with padding", Enc, Q, lengths(2), largest=41)
class EncFirst(Enc):
    kw = dict(norm_first=True, activation="gelu")
row("attention more", "encoder, norm first", EncFirst, Q, lengths(2), largest=41)
class EncCausal(Enc):
    def forward(self, x):
        return self.inner(x, mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1]), is_causal=True)
row("attention more", "encoder, causal", EncCausal, Q, largest=41)
class Dec(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 1)
    def forward(self, x, m):
        return self.inner(x, m, tgt_mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1]))
row("attention more", "decoder", Dec, Q, K, largest=41)
class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    def forward(self, x, m):
        return self.inner(x, m)
row("attention more", "transformer", Whole, Q, K, largest=41)
H = floats(2, 4, 6, 8)
for name, fn in {
    "bool mask": lambda q: F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).tril()),
    "bool mask with an empty row": lambda q: F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).tril(-1)),
    "float mask with an empty row": lambda q: F.scaled_dot_product_attention(q, q, q, attn_mask=torch.full((q.shape[2], q.shape[2]), float("-inf")).triu(0)),
    "scale": lambda q: F.scaled_dot_product_attention(q, q, q, scale=0.1),
    "scale by a size": lambda q: F.scaled_dot_product_attention(q, q, q, scale=1 / math.sqrt(q.shape[2])),
    "grouped": lambda q: F.scaled_dot_product_attention(q, q[:, :2], q[:, :2], enable_gqa=True),
    "grouped of one": lambda q: F.scaled_dot_product_attention(q, q[:, :1], q[:, :1], enable_gqa=True),
    "broadcast keys": lambda q: F.scaled_dot_product_attention(q, q[:1], q[:1]),
    "causal of two lengths": lambda q: F.scaled_dot_product_attention(q[:, :, :3], q, q, is_causal=True),
    "causal of more queries": lambda q: F.scaled_dot_product_attention(q, q[:, :, :3], q[:, :, :3], is_causal=True),
    "window": lambda q: F.scaled_dot_product_attention(q, q, q, attn_mask=(torch.arange(q.shape[2])[:, None] - torch.arange(q.shape[2])).abs() < 4),
    "alibi": lambda q: F.scaled_dot_product_attention(q, q, q, attn_mask=-(torch.arange(q.shape[2])[:, None] - torch.arange(q.shape[2])).abs() * 2.0 ** -torch.arange(1, 5)[:, None, None]),
    "three axes": lambda q: F.scaled_dot_product_attention(q[0], q[0], q[0]),
    "five axes": lambda q: F.scaled_dot_product_attention(q[None], q[None], q[None]),
    "half": lambda q: F.scaled_dot_product_attention(q.half(), q.half(), q.half()),
    "by hand with softmax in float": lambda q: ((q.half() @ q.half().mT).float().softmax(-1).half() @ q.half()),
    "by hand, masked by min": lambda q: ((q @ q.mT) + torch.full((q.shape[2],) * 2, torch.finfo(q.dtype).min).triu(1)).softmax(-1) @ q,
    "heads by view": lambda q: q.transpose(1, 2).reshape(q.shape[0], q.shape[2], -1).view(q.shape[0], -1, 4, 8).transpose(1, 2),
    "rotary": lambda q: rotary(q),
    "relative positions": lambda q: relative(q),
    "top of the scores": lambda q: (q @ q.mT).topk(min(3, q.shape[2]), -1).values.softmax(-1),
    "linear attention": lambda q: (q.softmax(-1) @ (q.softmax(-2).mT @ q)),
    "cumulative attention": lambda q: torch.einsum("bhtd,bhte->bhtde", q, q).cumsum(2).sum(-1),
    "chunked attention": lambda q: torch.cat([F.scaled_dot_product_attention(c, q, q) for c in q.split(4, 2)], 2),
    "sink": lambda q: torch.cat([(q @ q.mT), torch.zeros(*q.shape[:3], 1)], -1).softmax(-1)[..., :-1] @ q,
}.items():
    row("attention more", name, fn, H, largest=41, tolerance=3.0)

def rotary(q):
    n, d = q.shape[2], q.shape[3]
    f = 1.0 / 10000 ** (torch.arange(0, d, 2) / d)
    a = torch.arange(n)[:, None] * f
    c, s = a.cos().repeat(1, 2), a.sin().repeat(1, 2)
    r = torch.cat([-q[..., d // 2 :], q[..., : d // 2]], -1)
    return q * c + r * s

def relative(q):
    n = q.shape[2]
    p = torch.arange(n)[:, None] - torch.arange(n)
    big = 4 + (torch.log(p.abs().clamp(min=1) / 4) / math.log(16 / 4) * 4).long()
    b = torch.where(p.abs() < 4, p.abs(), big.clamp(max=7)) + (p > 0) * 8
    return (q @ q.mT) + torch.linspace(-1, 1, 16)[b]

# --- norms, embeddings, dropouts
for name, build in {
    "layer norm of two": lambda: nn.LayerNorm((8, 10)), "layer norm without affine": lambda: nn.LayerNorm(10, elementwise_affine=False), "layer norm without bias": lambda: nn.LayerNorm(10, bias=False), "rms norm": lambda: nn.RMSNorm(10), "group norm": lambda: nn.GroupNorm(3, 3), "group norm of one": lambda: nn.GroupNorm(1, 3), "instance norm": lambda: nn.InstanceNorm2d(3, affine=True), "instance norm with statistics": lambda: nn.InstanceNorm2d(3, track_running_stats=True), "batch norm": lambda: nn.BatchNorm2d(3), "batch norm without statistics": lambda: nn.BatchNorm2d(3, track_running_stats=False), "local response": lambda: nn.LocalResponseNorm(2), "alpha dropout": lambda: nn.AlphaDropout(0.3), "feature dropout": lambda: nn.Dropout2d(0.3), "softmax2d": lambda: nn.Softmax2d(), "prelu": lambda: nn.PReLU(3), "rrelu": lambda: nn.RReLU(), "threshold": lambda: nn.Threshold(0.1, 20.0), "hardtanh": lambda: nn.Hardtanh(-0.3, 0.7), "softmin": lambda: nn.Softmin(-1), "glu": lambda: nn.GLU(-1), "tanhshrink": lambda: nn.Tanhshrink(), "logsigmoid": lambda: nn.LogSigmoid(), "zero pad": lambda: nn.ZeroPad2d((1, 2, 0, -1)), "reflection pad": lambda: nn.ReflectionPad2d(2), "replication pad": lambda: nn.ReplicationPad2d((1, 0, 2, 3)), "circular pad": lambda: nn.CircularPad2d(1), "pixel unshuffle": lambda: nn.PixelUnshuffle(2), "flatten": lambda: nn.Flatten(2), "unflatten": lambda: nn.Unflatten(3, (2, 5)), "adaptive log": lambda: nn.AdaptiveAvgPool2d((None, 3)), "lp pool": lambda: nn.LPPool2d(2, 3, 2, ceil_mode=True), "fractional": lambda: nn.FractionalMaxPool2d(2, output_size=(3, 3)), "upsample": lambda: nn.Upsample(scale_factor=(1.5, 2)), "bilinear up": lambda: nn.UpsamplingBilinear2d(scale_factor=2), "channel shuffle": lambda: nn.ChannelShuffle(3), "fold of unfold": lambda: nn.Sequential(nn.Unfold(2, stride=2), nn.Fold((8, 10), 2, stride=2)), "cosine": lambda: Cos(), "parallel": lambda: Par(),
}.items():
    def make(build=build):
        class Seeded(nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(3)
                self.inner = build()
                for p in self.inner.parameters():
                    nn.init.normal_(p, 0.5)
            def forward(self, x):
                return self.inner(x)
        return Seeded
    row("layers more", name, make(), IMG, largest=24)
class Cos(nn.Module):
    def forward(self, x):
        return nn.CosineSimilarity(1)(x, x.flip(3)), nn.PairwiseDistance()(x, x.flip(3))
class Par(nn.Module):
    def __init__(self):
        super().__init__()
        self.ways = nn.ModuleDict({"a": nn.Conv2d(3, 2, 1), "b": nn.Conv2d(3, 2, 3, padding=1)})
    def forward(self, x):
        return {k: f(x) for k, f in self.ways.items()}
# fmt: on
