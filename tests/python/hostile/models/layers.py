"""The layers in which integers of sizes hide: convolutions, pools, frames, attention, recurrence."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from ..rows import floats, lengths, mask, positions, row

# fmt: off

# ---- geometry ----------------------------------------------------------------------------------------------------------


class Conv(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, **options)

    def forward(self, x):
        y = self.conv(x)
        return y * y.shape[2] / x.shape[2]


def conv(**options):
    return type("Conv", (Conv,), {"__init__": lambda self: Conv.__init__(self, **options)})


row("geometry", "conv stride 3", conv(kernel_size=5, stride=3), floats(2, 2, 14))
row("geometry", "conv stride 3 padding", conv(kernel_size=4, stride=3, padding=2), floats(2, 2, 14))
row("geometry", "conv dilated", conv(kernel_size=3, dilation=4), floats(2, 2, 14))
row("geometry", "conv same", conv(kernel_size=4, padding="same"), floats(2, 2, 14))
row("geometry", "conv reflect", conv(kernel_size=5, padding=2, padding_mode="reflect"), floats(2, 2, 14))
row("geometry", "pool with ceil", lambda x: F.max_pool1d(x, 3, 2, ceil_mode=True), floats(2, 2, 14))
row("geometry", "average pool with ceil", lambda x: F.avg_pool1d(x, 4, 3, 1, ceil_mode=True), floats(2, 2, 14))
row("geometry", "average pool, not counted", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), floats(1, 2, 6, 9), largest=65)
row("geometry", "pool over everything", lambda x: F.avg_pool1d(x, x.shape[2]), floats(2, 2, 14))
row("geometry", "pool by a half", lambda x: F.max_pool1d(x, x.shape[2] // 2), floats(2, 2, 14))
row("geometry", "adaptive to five", lambda x: F.adaptive_avg_pool1d(x, 5), floats(2, 2, 14))
row("geometry", "adaptive to a half", lambda x: F.adaptive_avg_pool1d(x, x.shape[2] // 2), floats(2, 2, 14))
row("geometry", "adaptive to five at most", lambda x: F.adaptive_max_pool1d(x, min(5, x.shape[2])), floats(2, 2, 14))
row("geometry", "transposed to a size", lambda x: F.conv_transpose1d(x, torch.ones(2, 3, 4), stride=2)[..., : 2 * x.shape[2]], floats(2, 2, 6))
row("geometry", "fold", lambda x: F.fold(F.unfold(x, 3, padding=1), x.shape[2:], 3, padding=1), floats(1, 2, 5, 6), largest=65)
row("geometry", "group norm", lambda x: F.group_norm(x, 2), floats(2, 4, 6))
row("geometry", "instance norm", lambda x: F.instance_norm(x), floats(2, 4, 6))
row("geometry", "layer norm of a size", lambda x: F.layer_norm(x, x.shape[1:]), floats(2, 4, 6))
row("geometry", "down and up", lambda x: F.interpolate(F.max_pool1d(x, 2), size=x.shape[2]) + x, floats(2, 2, 9))
row("geometry", "down and up, cut", lambda x: F.interpolate(F.max_pool1d(x, 2, ceil_mode=True), scale_factor=2)[..., : x.shape[2]] + x, floats(2, 2, 9))
row("geometry", "U with crops", lambda x: crop(x), floats(1, 2, 12, 15), largest=65)
row("geometry", "grid_sample", lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False), floats(1, 2, 5, 6), floats(1, 4, 3, 2), largest=65)
row("geometry", "affine_grid of a shape", lambda x: F.grid_sample(x, F.affine_grid(torch.eye(2, 3)[None] * 0.9, [1, 2, x.shape[2], x.shape[3]], align_corners=False), align_corners=False), floats(1, 2, 5, 6), largest=65)


def crop(x):
    y = F.conv2d(x, torch.ones(2, 2, 3, 3), stride=2)
    y = F.conv_transpose2d(y, torch.ones(2, 2, 3, 3), stride=2)
    dh, dw = x.shape[2] - y.shape[2], x.shape[3] - y.shape[3]
    return F.pad(y, (dw // 2, dw - dw // 2, dh // 2, dh - dh // 2)) + x


# ---- frames ------------------------------------------------------------------------------------------------------------


def framed(x):
    count = 1 + (x.shape[1] - 8) // 3
    return torch.stack([x[:, k * 3 : k * 3 + 8] for k in range(count)], 1) * torch.hann_window(8)


def overlap_add(x):
    frames = x.unfold(1, 8, 4)
    out = torch.zeros(x.shape[0], (frames.shape[1] - 1) * 4 + 8)
    for k in range(frames.shape[1]):
        out[:, k * 4 : k * 4 + 8] += frames[:, k]
    return out


def centred(x):
    y = F.pad(x[:, None], (4, 4), mode="reflect")[:, 0]
    return y.unfold(1, 8, 3).pow(2).sum(-1)


row("frames", "by a loop", framed, floats(2, 20))
row("frames", "overlap and add", overlap_add, floats(2, 20), largest=257)
row("frames", "centred", centred, floats(2, 20))
row("frames", "stft", lambda x: torch.stft(x, 8, 3, window=torch.hann_window(8), return_complex=True).abs(), floats(2, 40))
row("frames", "stft, not centred", lambda x: torch.stft(x, 8, 3, window=torch.hann_window(8), center=False, return_complex=True).abs(), floats(2, 40))
row("frames", "frames of valid samples", lambda x, l: x.unfold(1, 8, 4).mean(-1)[:, : (int(l.max()) - 8) // 4 + 1], floats(2, 40), lengths(2, low=8))
row("frames", "lengths of strided convolutions", lambda x, l: torch.arange((x.shape[1] - 5) // 3 + 1)[None] < ((l - 5) // 3 + 1)[:, None], floats(2, 40), lengths(2, low=5))
row("frames", "downsampled by three, twice", lambda x: x[:, ::3][:, ::3] * math.ceil(math.ceil(x.shape[1] / 3) / 3), floats(2, 40))
row("frames", "mel to frames by a rate", lambda x: torch.zeros(x.shape[0], int(x.shape[1] * 22050 / 16000 / 10)) + x.sum(), floats(2, 40))

# ---- attention, einsum, recurrent --------------------------------------------------------------------------------------


def causal(q, k):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    keep = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(k.shape[1] - q.shape[1])
    return scores.masked_fill(~keep, float("-inf")).softmax(-1)


def sliding(x, window):
    n = x.shape[1]
    place = torch.arange(n)
    keep = (place[:, None] >= place) & (place[:, None] - place < window)
    return (x @ x.mT).masked_fill(~keep, float("-inf")).softmax(-1) @ x


def sliding_if(x):
    n = x.shape[1]
    scores = x @ x.mT
    if n > 12:
        scores = scores + torch.ones(n, n).tril(-12) * -1e4
    return scores.softmax(-1) @ x


def sliding_cache(x, past):
    both = torch.cat([past, x], 1)[:, -10:]
    return x @ both.mT, both


def blocks(x):
    b, n, c = x.shape
    p = -n % 4
    y = F.pad(x, (0, 0, 0, p)).view(b, -1, 4, c)
    around = torch.cat([F.pad(y, (0, 0, 0, 0, 1, 0))[:, :-1], y], 2)
    return (y @ around.mT).softmax(-1).matmul(around).view(b, -1, c)[:, :n]


def decode(x, past, m):
    keys = torch.cat([past, x], 1)
    scores = (x @ keys.mT).masked_fill(m[:, None] == 0, float("-inf"))
    return scores.softmax(-1) @ keys, keys


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)

    def forward(self, x, m):
        return self.encoder(x, src_key_padding_mask=m == 0) * m[..., None]


class Recurrent(nn.Module):
    kind, options = nn.LSTM, {}

    def __init__(self):
        super().__init__()
        self.inner = self.kind(2, 3, batch_first=True, **self.options)

    def forward(self, x):
        y, _ = self.inner(x)
        return y[:, -1] * x.shape[1], y


class BothWays(Recurrent):
    kind, options = nn.GRU, {"bidirectional": True, "num_layers": 2}


class WithState(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.GRU(2, 3)

    def forward(self, x, h):
        return self.inner(x, h[None])


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.LSTMCell(2, 3)

    def forward(self, x):
        h = c = torch.zeros(x.shape[0], 3)
        for t in range(x.shape[1]):
            h, c = self.inner(x[:, t], (h, c))
        return h


row("attention", "causal, two lengths", causal, floats(2, 3, 4), floats(2, 7, 4))
row("attention", "causal, of one length", causal, floats(2, 5, 4), floats(2, 5, 4))
row("attention", "window of twelve", lambda x: sliding(x, 12), floats(2, 6, 4))
row("attention", "window of half", lambda x: sliding(x, max(1, x.shape[1] // 2)), floats(2, 6, 4))
row("attention", "window where longer", sliding_if, floats(2, 6, 4))
row("attention", "window where longer, from longer", sliding_if, floats(2, 20, 4))
row("attention", "cache of ten", sliding_cache, floats(2, 2, 4), floats(2, 5, 4))
row("attention", "cache of ten, full", sliding_cache, floats(2, 2, 4), floats(2, 10, 4))
row("attention", "cache of ten, one token", sliding_cache, floats(2, 1, 4), floats(2, 5, 4))
row("attention", "blocks of four", blocks, floats(2, 6, 4))
row("attention", "decode with a mask", decode, floats(2, 2, 4), floats(2, 5, 4), mask(2, 7))
row("attention", "scaled dot product, causal", lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), floats(2, 2, 5, 4))
row("attention", "scaled dot product, causal, two lengths", lambda x, y: F.scaled_dot_product_attention(x, y, y, is_causal=True), floats(2, 2, 3, 4), floats(2, 2, 6, 4))
row("attention", "causal unless one", lambda x, y: F.scaled_dot_product_attention(x, y, y, is_causal=x.shape[2] > 1), floats(2, 2, 5, 4), floats(2, 2, 5, 4))
row("attention", "scaled dot product, masked", lambda x, m: F.scaled_dot_product_attention(x, x, x, m[:, None, None] != 0), floats(2, 2, 5, 4), mask(2, 5))
row("attention", "grouped heads", lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True), floats(2, 4, 5, 4), floats(2, 2, 5, 4), largest=65)
row("attention", "heads repeated by a quotient", lambda q, k: q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT, floats(2, 4, 5, 4), floats(2, 2, 5, 4), largest=65)
row("attention", "encoder with padding", Encoder, floats(2, 5, 4), mask(2, 5))
row("attention", "alibi", lambda x: (x @ x.mT + -torch.arange(x.shape[1]).flip(0) * 0.5).softmax(-1), floats(2, 5, 4))
row("attention", "rotary", lambda x, p: x * torch.cos(p[..., None] * 10000 ** (-torch.arange(4) / 4.0)), floats(2, 5, 4), positions(2, 5))
row("attention", "log-scaled", lambda x: (x @ x.mT * max(1.0, math.log(x.shape[1], 12))).softmax(-1), floats(2, 5, 4))
row("attention", "bucketed positions", lambda x: x @ buckets(x.shape[1]), floats(2, 6))
row("einsum", "two sizes", lambda x, y: torch.einsum("bnd,bmd->bnm", x, y), floats(2, 5, 4), floats(2, 7, 4))
row("einsum", "equal by chance", lambda x, y: torch.einsum("bnd,bmd->nm", x, y), floats(2, 5, 4), floats(2, 5, 4))
row("einsum", "diagonal", lambda x: torch.einsum("bii->bi", x), floats(2, 5, 5))
row("einsum", "outer of three", lambda x, y: torch.einsum("i,j,i->ij", x, y, x), floats(5), floats(5))
row("einsum", "ellipsis", lambda x: torch.einsum("...ij,...kj->...ik", x, x), floats(2, 3, 5, 4), largest=65)
row("recurrent", "lstm", Recurrent, floats(2, 5, 2))
row("recurrent", "gru both ways", BothWays, floats(2, 5, 2))
row("recurrent", "gru with a state", WithState, floats(5, 2, 2), floats(2, 3))
row("recurrent", "cells by a loop", Cells, floats(2, 5, 2), largest=257)


def buckets(n):
    distance = (torch.arange(n)[:, None] - torch.arange(n)).abs()
    far = 4 + (torch.log(distance.float().clamp(min=1) / 4) / math.log(16) * 4).long()
    return torch.where(distance < 4, distance, far.clamp(max=7)).float()
# fmt: on
