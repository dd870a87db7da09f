"""Idioms of real models: attention in chunks, positions, scans, frames of sound, steps of a beam, graphs, renderers."""

# ruff: noqa: N806, RUF007

import copy
import dataclasses
import functools
import math
import typing

import torch
import torch.nn.functional as F
from torch import nn

from ..rows import bools, floats, ids, lengths, mask, row, unit

X = floats(3, 6, 4)
M = floats(3, 7)


def table(family, rows, largest=65):
    for name, (model, *inputs) in rows.items():
        row(family, name, model, *inputs, largest=largest)


# ---- equal elements ----------------------------------------------------------------------------------------------------


def center_peak(h):
    m = F.max_pool2d(h, 3, 1, 1)
    k = h * (m == h)
    b, c, H, W = h.shape
    s, i = torch.topk(k.view(b, c, -1), min(4, H * W))
    s2, j = torch.topk(s.view(b, -1), min(4, H * W))
    return (s2, (j / min(4, H * W)).int(), i.view(b, -1).gather(1, j) % W)


def uncertain(m, k=4):
    u = -m.abs()
    _, i = u.flatten(1).topk(min(k, u.flatten(1).shape[1]), 1)
    w = m.shape[-1]
    return torch.stack([i % w / w, torch.div(i, w, rounding_mode="trunc") / m.shape[-2]], -1)


def beam_step(lp, scores):
    b, k, v = lp.shape
    t = scores[..., None] + lp.log_softmax(-1)
    s, i = t.view(b, k * v).topk(2 * k if 2 * k <= k * v else k, dim=1)
    beam = torch.div(i, v, rounding_mode="floor")
    tok = i % v
    eos = tok == 1
    s = s.masked_fill(eos, -1000000000.0)
    s2, j = s.topk(k, 1)
    return (s2, beam.gather(1, j), tok.gather(1, j))


def kept_half(x, scores):
    k = math.ceil(0.6 * x.shape[0])
    values, places = scores.topk(k)
    return x[places] * values.tanh()[:, None], places


table(
    "idioms: equal elements",
    {
        "peaks of a heat map": (center_peak, floats(1, 2, 5, 6)),
        "uncertain points": (uncertain, floats(2, 5, 6)),
        "twice as many as beams": (beam_step, floats(2, 3, 7), floats(2, 3)),
        "a part of the nodes": (kept_half, floats(8, 3), floats(8)),
        "argsort of ids": (lambda t: t.argsort(-1), ids(2, 9, high=5)),
        "argsort of many ids": (lambda t: t.argsort(-1), ids(2, 40, high=5)),
        "argsort of all ids": (lambda t: t.flatten().argsort(), ids(2, 9, high=5)),
        "sort": (lambda x: x.sort(-1), floats(2, 20)),
        "sort of columns": (lambda x: x.sort(0, descending=True), floats(20, 3)),
        "argsort of flags": (lambda t: t.int().argsort(-1, descending=True), bools(2, 20)),
        "half of them": (lambda x: x.topk(x.shape[1] // 2), floats(2, 20)),
        "half of the ids": (lambda t: t.topk(t.shape[1] // 2, largest=False), ids(2, 20, high=5)),
        "rectified": (lambda x: x.relu().topk(max(1, x.shape[1] - 2)), floats(2, 20)),
    },
    largest=129,
)


# ---- loops over parts --------------------------------------------------------------------------------------------------


def from_the_first(x):
    parts = x.unbind(1)
    found = parts[0]
    for part in parts[1:]:
        found = found * 0.5 + part
    return found


def from_none(x):
    found = None
    for part in x.unbind(1):
        found = part if found is None else torch.maximum(found, part)
    return found


def from_the_last(x):
    parts = x.unbind(0)
    found = parts[-1]
    for part in parts[:-1]:
        found = found * 0.5 + part
    return found


def backwards(x):
    found = torch.zeros(x.shape[0])
    for part in reversed(x.unbind(1)):
        found = found * 0.5 + part
    return found


def there_and_back(x):
    state, kept = torch.zeros(x.shape[0]), []
    for part in x.unbind(1):
        state = (state + part).tanh()
        kept.append(state)
    found = torch.zeros(x.shape[0])
    for state in reversed(kept):
        found = found * 0.5 + state
    return found


def neighbours(x):
    parts = x.unbind(1)
    return torch.stack([a * b for a, b in zip(parts[:-1], parts[1:], strict=True)], 1)


def the_first_again(x):
    parts = x.unbind(0)
    found = parts[0] * 1
    for part in parts:
        found = found * 0.5 + part
    return found


table(
    "idioms: loops over parts",
    {
        "from the first": (from_the_first, M),
        "from none": (from_none, M),
        "from the last": (from_the_last, M),
        "backwards": (backwards, M),
        "there and back": (there_and_back, M),
        "neighbours": (neighbours, M),
        "the first again": (the_first_again, M),
        "reduce": (lambda x: functools.reduce(torch.maximum, x.unbind(1)), M),
        "sum of rows": (lambda x: sum(list(x)), M),
        "sum of a generator": (lambda x: sum(r * 2 for r in x), M),
    },
    largest=129,
)


# ---- digits ------------------------------------------------------------------------------------------------------------


def phase(x):
    return torch.sin(torch.cumsum((x.abs() / 16) % 1, 1) * 2 * math.pi)


table(
    "idioms: digits",
    {
        "logarithms of sigmoids": (lambda x: (x.sigmoid().log(), (1 - x.sigmoid()).clamp(min=1e-6).log()), M),
        "cross entropy of sigmoids": (lambda x, t: F.binary_cross_entropy(x.sigmoid(), t.float()), M, bools(3, 7)),
        "entropy": (lambda x: torch.distributions.Bernoulli(logits=x).entropy(), M),
        "phase of a tone": (phase, M),
    },
    largest=1025,
)


# ---- copies ------------------------------------------------------------------------------------------------------------


class Tagged(torch.Tensor):
    pass


class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


@dataclasses.dataclass
class Out:
    mean: torch.Tensor
    twice: typing.Optional[torch.Tensor] = None  # noqa: UP045
    count: int = 0


def as_dict(x, y):
    out = dataclasses.replace(Out(x.sum(1)), twice=y * 2, count=len(y))
    return dataclasses.asdict(out)


def written_copy(x):
    y = copy.deepcopy([x, x])
    y[0][:, 0] = 5
    return y[1], x


table(
    "idioms: copies",
    {
        "a dataclass as a dict": (as_dict, M, floats(3, 2)),
        "deepcopy, written": (written_copy, M),
        "as a class of its own": (lambda x: (x.as_subclass(Tagged) * 2).sum(1), M),
        "as a class, and back": (lambda x: (x.as_subclass(Own) * 2).sum(1).as_subclass(torch.Tensor), M),
    },
)


# ---- models ------------------------------------------------------------------------------------------------------------


class T5Bias(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(16, 4)

    @staticmethod
    def bucket(rp, bidirectional=True, nb=16, md=40):
        rb = 0
        if bidirectional:
            nb //= 2
            rb += (rp > 0).to(torch.long) * nb
            rp = torch.abs(rp)
        else:
            rp = -torch.min(rp, torch.zeros_like(rp))
        me = nb // 2
        small = rp < me
        large = me + (torch.log(rp.float() / me) / math.log(md / me) * (nb - me)).to(torch.long)
        large = torch.min(large, torch.full_like(large, nb - 1))
        return rb + torch.where(small, rp, large)

    def forward(self, q, k):
        ctx = torch.arange(q.shape[1])[:, None]
        mem = torch.arange(k.shape[1])[None, :]
        both = self.emb(self.bucket(mem - ctx)).permute(2, 0, 1)
        one = self.emb(self.bucket(mem - ctx, False)).permute(2, 0, 1)
        return (q @ k.transpose(1, 2))[:, None] + both + one


def mask_lengths_chunk(x, l):
    n = x.size(1)
    chunk = 4
    pad = (chunk - n % chunk) % chunk
    xs = F.pad(x, (0, 0, 0, pad)).unflatten(1, (-1, chunk))
    m = F.pad(torch.arange(n)[None] < l[:, None], (0, pad)).unflatten(1, (-1, chunk))
    a = torch.einsum("bncd,bnmd->bncm", xs, xs).masked_fill(~m[:, :, None], torch.finfo(x.dtype).min).softmax(-1)
    prev = F.pad(xs[:, :-1], (0, 0, 0, 0, 1, 0))
    y = torch.einsum("bncm,bnmd->bncd", a, xs) + prev
    return y.flatten(1, 2)[:, :n]


def longformer_chunks(x, w=2):
    b, n, d = x.shape
    pad = -n % (2 * w)
    x = F.pad(x, (0, 0, 0, pad))
    n2 = x.shape[1]
    h = x.view(b, n2 // (w * 2), w * 2, d)
    size = list(h.size())
    size[1] = size[1] * 2 - 1
    st = list(h.stride())
    st[1] = st[1] // 2
    c = h.as_strided(size=size, stride=st)
    s = torch.einsum("bcxd,bcyd->bcxy", c, c)
    s = F.pad(s, (0, 0, 0, 1)).view(*s.shape[:2], s.size(-1), s.size(-2) + 1)
    return s[:, :, :, :-1].sum(-1)


def matrix_nms(sc, m):
    n = sc.shape[0]
    f = m.reshape(n, -1).float()
    inter = f @ f.T
    areas = f.sum(1).expand(n, n)
    iou = (inter / (areas + areas.T - inter).clamp(min=1)).triu(1)
    comp = iou.max(0).values.expand(n, n).T
    d = ((1 - iou) / (1 - comp).clamp(min=1e-06)).min(0).values
    return sc * d


class RotaryInterleave(nn.Module):
    def forward(self, x, pos):
        d = x.shape[-1]
        inv = 1 / 100 ** (torch.arange(0, d // 2) * 2 / d)
        f = pos[..., None].float() * inv
        c = torch.polar(torch.ones_like(f), f)
        xc = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2).contiguous())
        return torch.view_as_real(xc * c).flatten(-2).type_as(x)


class MRope(nn.Module):
    def forward(self, x, p):
        sec = [1, 1, 2]
        d = x.shape[-1]
        inv = 1 / 50 ** (torch.arange(0, d, 2).float() / d)
        f = p.float()[..., None] * inv
        f = torch.cat([f, f], -1)
        cos = torch.cat([m[i % 3] for i, m in enumerate(f.cos().split(sec * 2, dim=-1))], -1)
        sin = torch.cat([m[i % 3] for i, m in enumerate(f.sin().split(sec * 2, dim=-1))], -1)
        a, b = (x[..., : d // 2], x[..., d // 2 :])
        return x * cos + torch.cat((-b, a), -1) * sin


class PerceiverPos(nn.Module):
    def forward(self, x):
        sh = x.shape[1:-1]
        ax = [torch.linspace(-1.0, 1.0, steps=n) for n in sh]
        pos = torch.stack(torch.meshgrid(*ax, indexing="ij"), dim=-1)
        fr = torch.linspace(1.0, 5.0, 3) * math.pi
        e = pos[..., None] * fr
        e = torch.cat([e.sin(), e.cos()], -1).flatten(-2)
        e = torch.cat([pos, e], -1)
        return torch.cat([x, e[None].expand(x.shape[0], *e.shape)], -1).flatten(1, -2)


def fpn(a, b, c):
    p = c
    outs = [p]
    for l in (b, a):
        p = l + F.interpolate(p, size=l.shape[-2:], mode="nearest")
        outs.append(p)
    outs.append(F.max_pool2d(c, 1, 2, 0))
    return outs


def conformer_rel(x):
    n = x.shape[1]
    d = x.shape[2]
    pe_p = torch.zeros(n, d)
    pe_n = torch.zeros(n, d)
    p = torch.arange(0, n, dtype=torch.float32).unsqueeze(1)
    div = torch.exp(torch.arange(0, d, 2, dtype=torch.float32) * -(math.log(100.0) / d))
    pe_p[:, 0::2] = torch.sin(p * div)
    pe_p[:, 1::2] = torch.cos(p * div)
    pe_n[:, 0::2] = torch.sin(-1 * p * div)
    pe_n[:, 1::2] = torch.cos(-1 * p * div)
    pe = torch.cat([torch.flip(pe_p, [0]).unsqueeze(0), pe_n[1:].unsqueeze(0)], 1)
    s = x @ pe.transpose(1, 2)
    z = torch.zeros((s.size(0), s.size(1), 1))
    y = torch.cat([z, s], -1).view(s.size(0), s.size(2) + 1, s.size(1))
    return y[:, 1:].view_as(s)[:, :, : s.size(-1) // 2 + 1]


def melspec(x):
    n_fft, hop = (16, 4)
    s = torch.stft(x, n_fft, hop, window=torch.hann_window(n_fft), center=True, pad_mode="reflect", return_complex=True)
    p = s[..., :-1].abs() ** 2
    fb = torch.linspace(0, 1, 9 * 5).view(5, 9)
    m = fb @ p
    lm = torch.clamp(m, min=1e-10).log10()
    lm = torch.maximum(lm, lm.amax((-2, -1), keepdim=True) - 8.0)
    return (lm + 4) / 4


def ssd(x, a):
    cs = 4
    b, l, d = x.shape
    pad = (cs - l % cs) % cs
    x = F.pad(x, (0, 0, 0, pad))
    a = F.pad(a, (0, pad))
    x = x.reshape(b, -1, cs, d)
    a = a.reshape(b, -1, cs)
    ac = a.cumsum(-1)

    def segsum(t):
        T = t.size(-1)
        t = t[..., None].expand(*t.size(), T)
        m = torch.tril(torch.ones(T, T, dtype=torch.bool), -1)
        t = t.masked_fill(~m, 0)
        o = t.cumsum(-2)
        return o.masked_fill(~torch.tril(torch.ones(T, T, dtype=torch.bool)), -torch.inf)

    L = torch.exp(segsum(-a.abs()))
    y = torch.einsum("bcls,bcsd->bcld", L, x)
    st = x.sum(2)
    dc = torch.exp(segsum(F.pad(-ac[..., -1].abs(), (1, 0))))
    ns = torch.einsum("bzc,bcd->bzd", dc, F.pad(st, (0, 0, 1, 0)))[:, :-1]
    return (y + ns[:, :, None]).reshape(b, -1, d)[:, :l]


def rwkv(k, v, w):
    b, t, c = k.shape
    out = torch.zeros_like(k)
    num = den = torch.zeros(b, c)
    mx = torch.zeros(b, c) - 1e38
    for i in range(t):
        ck = k[:, i].float()
        cv = v[:, i]
        m = torch.maximum(mx, ck + w)
        e1 = torch.exp(mx - m)
        e2 = torch.exp(ck + w - m)
        out[:, i] = ((e1 * num + e2 * cv) / (e1 * den + e2)).to(out.dtype)
        m2 = torch.maximum(mx - w.exp(), ck)
        e1 = torch.exp(mx - w.exp() - m2)
        e2 = torch.exp(ck - m2)
        num = e1 * num + e2 * cv
        den = e1 * den + e2
        mx = m2
    return (out, (num, den, mx))


def delta(q, k, v, beta):
    b, l, d = q.shape
    cs = 3
    pad = -l % cs
    q, k, v = (F.pad(t, (0, 0, 0, pad)) for t in (q, k, v))
    beta = F.pad(beta, (0, pad)).sigmoid()
    k = F.normalize(k, dim=-1)
    n = (l + pad) // cs
    q, k, v, kb = (t.reshape(b, n, cs, d) for t in (q, k, v, k * beta[..., None]))
    vb = v * beta.reshape(b, n, cs, 1)
    m = torch.triu(torch.ones(cs, cs, dtype=torch.bool))
    a = -(kb @ k.transpose(-1, -2)).masked_fill(m, 0)
    for i in range(1, cs):
        a[..., i, :i] = a[..., i, :i].clone() + (a[..., i, :i, None].clone() * a[..., :i, :i].clone()).sum(-2)
    a = a + torch.eye(cs)
    u = a @ vb
    w = a @ kb
    S = torch.zeros(b, d, d)
    o = torch.zeros_like(v)
    m2 = torch.triu(torch.ones(cs, cs, dtype=torch.bool), 1)
    for i in range(n):
        qi, ki = (q[:, i], k[:, i])
        at = (qi @ ki.transpose(-1, -2)).masked_fill_(m2, 0)
        ui = u[:, i] - w[:, i] @ S
        o[:, i] = qi @ S + at @ ui
        S = S + ki.transpose(-1, -2) @ ui
    return o.reshape(b, -1, d)[:, :l]


def switch_capacity(x, g):
    n, e = g.shape
    cap = max(1, math.ceil(n / e * 1.25))
    p, i = g.softmax(-1).max(-1)
    oh = F.one_hot(i, e)
    pos = (oh.cumsum(0) * oh).sum(-1) - 1
    keep = pos < cap
    buf = x.new_zeros(e, cap, x.shape[1])
    buf[i[keep], pos[keep]] = x[keep]
    y = buf.mean(-1, keepdim=True) + buf
    out = x.new_zeros(x.shape)
    out[keep] = y[i[keep], pos[keep]] * p[keep, None]
    return out


def heat_dec(h):
    b, k, H, W = h.shape
    v, i = h.view(b, k, -1).max(2)
    px = torch.stack([(i % W).float(), torch.floor(i.float() / W)], -1)
    xs = px.long()
    x0 = xs[..., 0].clamp(1, max(1, W - 2))
    y0 = xs[..., 1].clamp(1, max(1, H - 2))
    bi = torch.arange(b)[:, None]
    ki = torch.arange(k)[None]
    d = torch.stack(
        [
            h[bi, ki, y0, (x0 + 1).clamp(max=W - 1)] - h[bi, ki, y0, x0 - 1],
            h[bi, ki, (y0 + 1).clamp(max=H - 1), x0] - h[bi, ki, y0 - 1, x0],
        ],
        -1,
    )
    return (px + d.sign() * 0.25, v)


def edge_softmax(s, dst):
    n = int(dst.max()) + 1
    m = torch.full((n,), -torch.inf).scatter_reduce(0, dst, s, "amax")
    e = (s - m[dst]).exp()
    return e / torch.zeros(n).index_add_(0, dst, e)[dst]


def gcn(x, ei):
    n = x.shape[0]
    ei = ei % n
    l = torch.arange(n)
    ei = torch.cat([ei, torch.stack([l, l])], 1)
    deg = torch.zeros(n).scatter_add_(0, ei[1], torch.ones(ei.shape[1]))
    di = deg.pow(-0.5)
    di.masked_fill_(di == float("inf"), 0)
    return torch.zeros_like(x).index_add_(0, ei[1], x[ei[0]] * (di[ei[0]] * di[ei[1]])[:, None])


def todense(x, batch):
    b = int(batch.max()) + 1
    n = torch.bincount(batch, minlength=b)
    cum = torch.cat([n.new_zeros(1), n.cumsum(0)])
    mx = int(n.max())
    i = torch.arange(len(batch)) - cum[batch] + batch * mx
    o = x.new_zeros(b * mx, x.shape[1])
    o[i] = x
    return o.view(b, mx, -1)


def crf_norm(e, t, m):
    s = e[:, 0]
    for i in range(1, e.shape[1]):
        n = torch.logsumexp(s[:, :, None] + t + e[:, i][:, None], 1)
        s = torch.where(m[:, i : i + 1].bool(), n, s)
    return s.logsumexp(1)


def mas(v):
    b, t, s = v.shape
    dp = torch.full((b, t), -1000000000.0)
    dp[:, 0] = 0
    d = torch.zeros(b, t, s, dtype=torch.bool)
    for j in range(s):
        a = F.pad(dp, (1, 0), value=-1000000000.0)[:, :-1]
        mm = dp >= a
        d[:, :, j] = mm
        dp = torch.where(mm, dp, a) + v[:, :, j]
    return (dp, d)


def lr_matrix(x, d):
    c = d.cumsum(1)
    n = int(c[:, -1].max())
    p = (torch.arange(n)[None, :, None] < c[:, None]).float()
    p = p - F.pad(p, (1, 0))[..., :-1]
    return p @ x


def vq(x, cb):
    f = x.reshape(-1, x.shape[-1])
    d = f.pow(2).sum(1, keepdim=True) - 2 * f @ cb.T + cb.pow(2).sum(1)
    i = d.argmin(1)
    q = cb[i].view_as(x)
    return (
        x + (q - x).detach(),
        i.view(x.shape[:-1]),
        torch.exp(
            -(F.one_hot(i, len(cb)).float().mean(0) * torch.log(F.one_hot(i, len(cb)).float().mean(0) + 1e-10)).sum()
        ),
    )


def fsq(x, levels=(8, 5, 5, 5)):
    l = torch.tensor(levels)
    h = (l - 1) * (1 - 0.001) / 2
    o = torch.where(l % 2 == 1, 0.0, 0.5)
    s = torch.tan(o / h)
    z = torch.tanh(x + s) * h - o
    q = z.round() / (l // 2)
    b = torch.cumprod(torch.tensor([1] + list(levels[:-1])), 0)
    return (q, ((q * (l // 2) + l // 2) * b).sum(-1).to(torch.int32))


def convexup(f, m):
    n, _, h, w = f.shape
    m = m.view(n, 1, 9, 2, 2, h, w).softmax(2)
    u = F.unfold(2 * f, [3, 3], padding=1).view(n, 2, 9, 1, 1, h, w)
    return (m * u).sum(2).permute(0, 1, 4, 2, 5, 3).reshape(n, 2, 2 * h, 2 * w)


def nerf(d, z):
    a = 1 - torch.exp(-F.relu(d) * F.pad(z.diff(dim=-1).abs(), (0, 1), value=1000.0))
    t = torch.cumprod(torch.cat([torch.ones_like(a[..., :1]), 1 - a + 1e-10], -1), -1)[..., :-1]
    w = a * t
    return ((w * z).sum(-1), w)


def samplepdf(b, w, n=5):
    p = (w + 1e-05) / (w + 1e-05).sum(-1, keepdim=True)
    c = torch.cat([torch.zeros_like(p[..., :1]), p.cumsum(-1)], -1)
    u = torch.linspace(0.0, 1.0, n).expand(list(c.shape[:-1]) + [n]).contiguous()
    i = torch.searchsorted(c, u, right=True)
    lo = (i - 1).clamp(min=0)
    hi = i.clamp(max=c.shape[-1] - 1)
    g = torch.stack([lo, hi], -1)
    cg = torch.gather(c.unsqueeze(1).expand(g.shape[0], g.shape[1], c.shape[-1]), 2, g)
    bg = torch.gather(b.unsqueeze(1).expand(g.shape[0], g.shape[1], b.shape[-1]), 2, g)
    d = cg[..., 1] - cg[..., 0]
    d = torch.where(d < 1e-05, torch.ones_like(d), d)
    return bg[..., 0] + (u - cg[..., 0]) / d * (bg[..., 1] - bg[..., 0])


table(
    "idioms: models",
    {
        "buckets of T5": (T5Bias, floats(2, 5, 4), floats(2, 7, 4)),
        "attention in chunks": (mask_lengths_chunk, floats(2, 10, 3), lengths(2, of=(0, 1))),
        "overlapping chunks": (longformer_chunks, floats(2, 12, 3)),
        "matrix suppression": (matrix_nms, unit(6), bools(6, 4, 5)),
        "complex rotary": (RotaryInterleave, floats(2, 5, 8), ids(2, 5, high=9)),
        "rotary in sections": (MRope, floats(2, 5, 8), ids(3, 2, 5, high=9)),
        "positions of axes": (PerceiverPos, floats(2, 3, 4, 2)),
        "features of Whisper": (melspec, floats(2, 40)),
        "segments of a scan": (ssd, floats(2, 10, 3), floats(2, 10)),
        "rwkv": (rwkv, floats(2, 5, 3), floats(2, 5, 3), floats(3)),
        "delta rule in chunks": (delta, floats(2, 7, 4), floats(2, 7, 4), floats(2, 7, 4), floats(2, 7)),
        "experts with a capacity": (switch_capacity, floats(9, 4), floats(9, 3)),
        "shift of a conformer": (conformer_rel, floats(2, 5, 6)),
        "feature pyramid": (fpn, floats(1, 3, 12, 16), floats(1, 3, 6, 8), floats(1, 3, 3, 4)),
        "partition of a field": (crf_norm, floats(2, 6, 4), floats(4, 4), mask(2, 6)),
        "length regulator": (lr_matrix, floats(2, 5, 3), ids(2, 5, high=4, low=1)),
        "dense batch": (lambda x, b: todense(x, b.sort().values), floats(7, 3), ids(7, high=3)),
        "softmax over edges": (edge_softmax, floats(9), ids(9, high=4)),
        "graph convolution": (gcn, floats(5, 3), ids(2, 8, high=5)),
        "inverse transform": (samplepdf, floats(3, 8), unit(3, 7)),
        "volume rendering": (nerf, M, M),
        "vector quantiser": (vq, X, floats(5, 4)),
        "finite scalars": (fsq, X),
        "convex upsampling": (convexup, floats(1, 2, 4, 5), floats(1, 36, 4, 5)),
        "heat maps": (heat_dec, floats(2, 3, 5, 6)),
        "monotonic search": (mas, floats(2, 4, 6)),
    },
)
