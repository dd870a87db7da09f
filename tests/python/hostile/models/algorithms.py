"""Small algorithms as a stranger writes them: decoding, selection, dynamic programs, windows, graphs, quantisation."""

# ruff: noqa: B007, B905, RUF059

import math

import torch
import torch.nn.functional as F

from ..rows import bools, floats, ids, mask, row, unit

# fmt: off
X = floats(3, 9)
T = ids(3, 9, high=7)

# ---- decoding ----------------------------------------------------------------------------------------------------------


def top_p(x, p=0.7):
    values, order = x.softmax(-1).sort(-1, descending=True)
    drop = values.cumsum(-1) - values > p
    return x.masked_fill(torch.zeros_like(drop).scatter(-1, order, drop), -1e4)


def repetition(x, t):
    score = x.gather(1, t)
    return x.scatter(1, t, torch.where(score < 0, score * 1.3, score / 1.3))


def ngrams(x, t):
    """Bans what has followed the last id before."""
    banned = torch.zeros_like(x, dtype=torch.bool)
    last = t[:, -1:]
    for k in range(t.shape[1] - 1):
        hit = t[:, k : k + 1] == last
        banned = banned.scatter(1, t[:, k + 1 : k + 2], banned.gather(1, t[:, k + 1 : k + 2]) | hit)
    return x.masked_fill(banned, -1e4)


def ctc_greedy(x):
    best = x.argmax(-1)
    keep = torch.ones_like(best, dtype=torch.bool)
    keep[:, 1:] = best[:, 1:] != best[:, :-1]
    keep &= best != 0
    return [b[k] for b, k in zip(best, keep)]


def ctc_counts(x):
    best = x.argmax(-1)
    rows = []
    for b in best:
        b = torch.unique_consecutive(b)
        rows.append((b != 0).sum())
    return torch.stack(rows)


def viterbi(x):
    trans = torch.arange(25.0).view(5, 5).sin()
    score, back = x[:, 0], []
    for t in range(1, x.shape[1]):
        total = score[:, :, None] + trans[None]
        score, best = total.max(1)
        score = score + x[:, t]
        back.append(best)
    path = [score.argmax(1)]
    for best in reversed(back):
        path.append(best.gather(1, path[-1][:, None])[:, 0])
    return torch.stack(path[::-1], 1)


def forward_algorithm(x, m):
    trans = torch.arange(16.0).view(4, 4).cos()
    alpha = x[:, 0]
    for t in range(1, x.size(1)):
        new = torch.logsumexp(alpha.unsqueeze(2) + trans, 1) + x[:, t]
        alpha = torch.where(m[:, t].bool().unsqueeze(1), new, alpha)
    return alpha.logsumexp(1)


def beam(x):
    batch, beams, vocab = x.shape
    score, flat = (x.log_softmax(-1).view(batch, -1) + torch.arange(beams * vocab) / 7).topk(min(3, beams * vocab), -1)
    return score, flat // vocab, flat % vocab


def greedy_loop(x):
    table = torch.arange(49.0).view(7, 7).sin()
    token, out = x.argmax(-1), []
    for _ in range(4):
        token = (table[token] + x).argmax(-1)
        out.append(token)
    return torch.stack(out, -1)


def stop_at_end(t):
    """Everything behind the first 3 is padding."""
    seen = (t == 3).cumsum(1)
    return t.masked_fill((seen - (t == 3).long()) > 0, 0)


def first_end(t):
    hit = t == 3
    return torch.where(hit.any(1), hit.int().argmax(1), torch.full((t.shape[0],), t.shape[1]))


def speculative(x, y):
    agree = (x.argmax(-1) == y.argmax(-1)).int()
    n = agree.cumprod(-1).sum(-1)
    return n, x.argmax(-1).gather(1, n.clamp(max=x.shape[1] - 1)[:, None])


for name, (fn, inputs) in {
    "top p": (top_p, (X,)), "top k by a threshold": (lambda x: x.masked_fill(x < x.topk(min(4, x.shape[-1])).values[..., -1:], -1e4), (X,)),
    "min p": (lambda x: x.masked_fill(x.softmax(-1) < 0.1 * x.softmax(-1).amax(-1, keepdim=True), -torch.inf), (X,)),
    "repetition penalty": (repetition, (floats(3, 7), T)), "ngrams": (ngrams, (floats(3, 7), T)),
    "ctc greedy": (ctc_greedy, (floats(2, 9, 4),)), "ctc counts": (ctc_counts, (floats(2, 9, 4),)), "viterbi": (viterbi, (floats(2, 6, 5),)),
    "forward algorithm": (forward_algorithm, (floats(3, 6, 4), mask(3, 6))), "beam": (beam, (floats(2, 3, 7),)), "greedy loop": (greedy_loop, (floats(3, 7),)),
    "stop at the end": (stop_at_end, (T,)), "first end": (first_end, (T,)), "speculative": (speculative, (floats(3, 6, 5), floats(3, 6, 5))),
    "last id that is no padding": (lambda t: t.gather(1, ((t != 0).long() * torch.arange(t.shape[1])).argmax(1, keepdim=True)), (T,)),
    "shift right": (lambda t: torch.cat([t.new_full((t.shape[0], 1), 2), t[:, :-1]], 1).masked_fill(t == -100, 0), (T,)),
    "pooled at the end id": (lambda x, t: x[torch.arange(x.shape[0]), (t == t.max()).int().argmax(-1)], (floats(3, 9, 4), T)),
    "positions of RoBERTa": (lambda t: (t.ne(1).int().cumsum(1).type_as(t) * t.ne(1).int()).long() + 1, (T,)),
    "left padding to right": (lambda t, m: t.gather(1, (torch.arange(t.shape[1]) + (t.shape[1] - m.sum(1, keepdim=True))) % t.shape[1]), (T, mask(3, 9))),
}.items():
    row("algorithms: decoding", name, fn, *inputs, largest=40)

# ---- dynamic programs and numeric loops --------------------------------------------------------------------------------


def edit_distance(a, b):
    previous = torch.arange(b.shape[0] + 1)
    for i in range(a.shape[0]):
        cost = (a[i] != b).long()
        best = torch.minimum(previous[1:] + 1, previous[:-1] + cost)
        best = torch.cat([torch.full((1,), i + 1), best])
        k = torch.arange(best.shape[0])
        previous = (best - k).cummin(0).values + k
    return previous[-1]


def dtw(x, y):
    d = (x[:, None] - y[None, :]).abs()
    n, m = d.shape
    acc = torch.full((n + 1, m + 1), float("inf"))
    acc[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            acc[i, j] = d[i - 1, j - 1] + torch.min(torch.stack([acc[i - 1, j], acc[i, j - 1], acc[i - 1, j - 1]]))
    return acc[n, m]


def sinkhorn(x):
    for _ in range(4):
        x = x - x.logsumexp(0, keepdim=True)
        x = x - x.logsumexp(1, keepdim=True)
    return x.exp()


def power_iteration(x):
    v = torch.ones(x.shape[1]) / x.shape[1] ** 0.5
    for _ in range(5):
        v = x.T @ (x @ v)
        v = v / (v.norm() + 1e-9)
    return (x @ v).norm()


def kmeans(x):
    centers = x[:2].clone()
    for _ in range(3):
        near = torch.cdist(x, centers).argmin(1)
        centers = torch.stack([torch.where((near == k)[:, None], x, 0.0).sum(0) / (near == k).sum().clamp(min=1) for k in range(2)])
    return centers


def farthest(x):
    chosen, dist = [torch.zeros((), dtype=torch.long)], torch.full((x.shape[0],), 1e9)
    for _ in range(3):
        dist = torch.minimum(dist, (x - x[chosen[-1]]).square().sum(1))
        chosen.append(dist.argmax())
    return torch.stack(chosen)


def nms(boxes, scores):
    order = scores.argsort(descending=True, stable=True)
    b = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:].abs()], 1)[order]
    area = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    lt, rb = torch.maximum(b[:, None, :2], b[None, :, :2]), torch.minimum(b[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(2)
    iou = inter / (area[:, None] + area[None] - inter + 1e-6)
    keep = torch.ones(len(b), dtype=torch.bool)
    for i in range(len(b)):
        keep = keep & ~((iou[i] > 0.3) & keep[i] & (torch.arange(len(b)) > i))
    return order[keep]


def bubble(x):
    x = x.clone()
    for i in range(x.shape[0]):
        for j in range(x.shape[0] - 1 - i):
            a, b = torch.minimum(x[j], x[j + 1]), torch.maximum(x[j], x[j + 1])
            x[j], x[j + 1] = a, b
    return x


def odd_even(x):
    x = x.clone()
    for i in range(x.shape[1]):
        s = i % 2
        n = (x.shape[1] - s) // 2 * 2
        pair = x[:, s : s + n].reshape(x.shape[0], -1, 2)
        x[:, s : s + n] = torch.stack([pair.amin(2), pair.amax(2)], 2).reshape(x.shape[0], -1)
    return x


def scan_doubling(x):
    """A prefix sum in log steps."""
    step = 1
    while step < x.shape[1]:
        x = x + F.pad(x, (step, 0))[:, : x.shape[1]]
        step *= 2
    return x


def tree_reduce(x):
    while x.shape[1] > 1:
        if x.shape[1] % 2:
            x = F.pad(x, (0, 1))
        x = x[:, ::2] + x[:, 1::2]
    return x[:, 0]


def horner(x):
    y = torch.zeros(x.shape[0])
    for c in x.unbind(1)[::-1]:
        y = y * 0.5 + c
    return y


def fibonacci(x):
    a, b = x[:, 0], x[:, -1]
    for _ in range(x.shape[1]):
        a, b = b, (a + b) / 2
    return a - b


def euler(x):
    dt = 1 / x.shape[1]
    y = x[:, 0]
    for k in range(x.shape[1]):
        y = y + dt * torch.sin(y + k * dt)
    return y


def leaky(x):
    v, spikes = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        v = 0.9 * v + x[:, t]
        s = (v > 1.0).float()
        v = v - s
        spikes.append(s)
    return torch.stack(spikes, 1).mean(1)


def ema(x):
    out = [x[:, 0]]
    for t in range(1, x.shape[1]):
        out.append(0.3 * x[:, t] + 0.7 * out[-1])
    return torch.stack(out, 1)


def pascal(x):
    rows = [torch.ones(1)]
    for _ in range(x.shape[1] - 1):
        rows.append(F.pad(rows[-1], (1, 0)) + F.pad(rows[-1], (0, 1)))
    return rows[-1] * x


def life(x):
    b = (x > 0).float()[None, None]
    for _ in range(3):
        n = F.conv2d(F.pad(b, (1, 1, 1, 1), mode="circular"), torch.ones(1, 1, 3, 3)) - b
        b = ((n == 3) | ((n == 2) & (b > 0))).float()
    return b[0, 0]


def newton(x):
    a = x.abs() + 1
    y = a
    for _ in range(6):
        y = 0.5 * (y + a / y)
    return y


def newton_schulz(x):
    x = x / (x.norm() + 1e-7)
    flip = x.shape[0] > x.shape[1]
    x = x.T if flip else x
    for _ in range(3):
        a = x @ x.T
        x = 3.4 * x - 4.7 * a @ x + 2.0 * a @ (a @ x)
    return x.T if flip else x


def converge(x):
    y, old = x, None
    for k in range(20):
        old, y = y, (y + x.mean(1, keepdim=True)) / 2
        if (y - old).abs().max() < 1e-2:
            break
    return y


def gauss(x):
    a = x @ x.T + 3 * torch.eye(x.shape[0])
    n = a.shape[0]
    for k in range(n):
        factor = a[k + 1 :, k] / a[k, k]
        a = torch.cat([a[: k + 1], a[k + 1 :] - factor[:, None] * a[k]], 0)
    return a.diagonal().log().sum()


def cholesky(x):
    a = x @ x.T + x.shape[0] * torch.eye(x.shape[0])
    l = torch.zeros_like(a)
    for j in range(a.shape[0]):
        v = a[j:, j] - (l[j:, :j] @ l[j, :j] if j else 0)
        l[j:, j] = v / v[0].sqrt()
    return l


def gram_schmidt(x):
    basis = []
    for v in x.T:
        for b in basis:
            v = v - (v @ b) * b
        basis.append(v / (v.norm() + 1e-6))
    return torch.stack(basis)[0] + len(basis)


for name, (fn, inputs, most) in {
    "edit distance": (edit_distance, (ids(6, high=4), ids(9, high=4)), 24), "time warping": (dtw, (floats(4), floats(5)), 8),
    "sinkhorn": (sinkhorn, (floats(5, 7),), 65), "power iteration": (power_iteration, (floats(5, 7),), 65), "k means": (kmeans, (floats(9, 3),), 65),
    "farthest points": (farthest, (floats(9, 3),), 65), "non-maximum suppression": (nms, (floats(9, 4), floats(9)), 24), "bubble sort": (bubble, (floats(5),), 9),
    "odd-even sort": (odd_even, (floats(3, 6),), 21), "prefix sum by doubling": (scan_doubling, (X,), 130), "sum by halves": (tree_reduce, (X,), 70), "horner": (horner, (X,), 70),
    "fibonacci": (fibonacci, (X,), 70), "euler": (euler, (X,), 70), "leaky neurons": (leaky, (X,), 70), "moving average": (ema, (X,), 70), "pascal": (pascal, (floats(2, 6),), 12), "life": (life, (floats(6, 8),), 41),
    "newton": (newton, (X,), 70), "newton-schulz": (newton_schulz, (floats(4, 7),), 65), "until it converges": (converge, (X,), 70), "gauss": (gauss, (floats(4, 6),), 12),
    "cholesky by columns": (cholesky, (floats(4, 6),), 12), "gram-schmidt": (gram_schmidt, (floats(8, 4),), 12),
}.items():
    row("algorithms: loops", name, fn, *inputs, largest=most, tolerance=10.0)

# ---- windows, blocks and grids -----------------------------------------------------------------------------------------


def window_attention(x, w=4):
    b, n, d = x.shape
    pad = (w - n % w) % w
    y = F.pad(x, (0, 0, 0, pad)).view(b, -1, w, d)
    valid = (torch.arange(n + pad) < n).view(1, -1, 1, w)
    s = (y @ y.mT).masked_fill(~valid, -1e9).softmax(-1)
    return (s @ y).reshape(b, n + pad, d)[:, :n]


def shifted_windows(x, w=3):
    b, h, wd, c = x.shape
    x = torch.roll(x, (-1, -1), (1, 2))
    ph, pw = -h % w, -wd % w
    x = F.pad(x, (0, 0, 0, pw, 0, ph))
    y = x.view(b, x.shape[1] // w, w, x.shape[2] // w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, c)
    y = y - y.mean(1, keepdim=True)
    y = y.view(b, (h + ph) // w, (wd + pw) // w, w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h + ph, wd + pw, c)
    return torch.roll(y[:, :h, :wd], (1, 1), (1, 2))


def patch_merge(x):
    b, h, w, c = x.shape
    if h % 2 == 1 or w % 2 == 1:
        x = F.pad(x, (0, 0, 0, w % 2, 0, h % 2))
    return torch.cat([x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], -1)


def patchify(x, p=4):
    b, c, h, w = x.shape
    x = x[:, :, : h // p * p, : w // p * p]
    return x.reshape(b, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5).flatten(1, 2).flatten(2)


def overlap_add(x, hop=3):
    frames = x.unfold(1, 6, hop)
    n = frames.shape[1]
    out = torch.zeros(x.shape[0], (n - 1) * hop + 6)
    for k in range(n):
        out[:, k * hop : k * hop + 6] += frames[:, k]
    return out


def overlap_fold(x):
    f = x.unfold(1, 6, 3).mT
    n = (f.shape[2] - 1) * 3 + 6
    return F.fold(f, (1, n), (1, 6), stride=(1, 3)).flatten(1) / F.fold(torch.ones_like(f), (1, n), (1, 6), stride=(1, 3)).flatten(1)


def relative_shift(x):
    b, h, n, m = x.shape
    x = F.pad(x, (1, 0)).view(b, h, m + 1, n)
    return x[:, :, 1:].view(b, h, n, m)


def sliding_mask(x, w=3):
    n = x.shape[1]
    i = torch.arange(n)
    m = (i[None] <= i[:, None]) & (i[:, None] - i[None] < w)
    return (x @ x.mT).masked_fill(~m, -torch.inf).softmax(-1) @ x


def dilated_blocks(x, r=2):
    n = x.shape[1]
    x = F.pad(x, (0, 0, 0, -n % (2 * r)))
    parts = [x[:, k::r].sum(1) for k in range(r)]
    return torch.stack(parts, 1)


def pixel_unshuffle(x):
    return F.pixel_unshuffle(x[..., : x.shape[-2] // 2 * 2, : x.shape[-1] // 2 * 2], 2)


def roi_align(x, b):
    x0, y0 = b[:, 0] * (x.shape[-1] - 1), b[:, 1] * (x.shape[-2] - 1)
    grid = torch.linspace(0, 1, 3)
    gx = (x0[:, None] + grid * 2).clamp(0, x.shape[-1] - 1)
    gy = (y0[:, None] + grid * 2).clamp(0, x.shape[-2] - 1)
    lx, ly = gx.floor().long(), gy.floor().long()
    hx, hy = (lx + 1).clamp(max=x.shape[-1] - 1), (ly + 1).clamp(max=x.shape[-2] - 1)
    wx, wy = gx - lx, gy - ly
    at = lambda yy, xx: x[:, yy[:, :, None], xx[:, None, :]]  # noqa: E731
    top = at(ly, lx) * (1 - wx[:, None, :]) + at(ly, hx) * wx[:, None, :]
    low = at(hy, lx) * (1 - wx[:, None, :]) + at(hy, hx) * wx[:, None, :]
    return top * (1 - wy[:, :, None]) + low * wy[:, :, None]


def pyramid(x):
    levels = [x]
    while min(levels[-1].shape[-2:]) > 3 and len(levels) < 3:
        levels.append(F.avg_pool2d(levels[-1], 2, ceil_mode=True))
    out = levels[-1]
    for lower in reversed(levels[:-1]):
        out = F.interpolate(out, size=lower.shape[-2:], mode="nearest") + lower
    return out


def anchors(x):
    h, w = x.shape[-2:]
    ys, xs = torch.meshgrid((torch.arange(h) + 0.5) * 8, (torch.arange(w) + 0.5) * 8, indexing="ij")
    base = torch.tensor([[-4.0, -4, 4, 4], [-8, -4, 8, 4]])
    return (torch.stack([xs, ys, xs, ys], -1).view(-1, 1, 4) + base).view(-1, 4) + x.mean()


def warp(x, f):
    h, w = x.shape[-2:]
    ys, xs = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
    grid = torch.stack([xs, ys], -1)[None] + f.permute(0, 2, 3, 1) * torch.tensor([2 / max(w - 1, 1), 2 / max(h - 1, 1)])
    return F.grid_sample(x, grid, align_corners=True, padding_mode="border")


def cost_volume(x, y):
    out = []
    for d in range(4):
        if d == 0:
            out.append((x * y).mean(1))
        else:
            out.append(F.pad((x[..., d:] * y[..., :-d]).mean(1), (d, 0)))
    return torch.stack(out, 1)


def integral(x):
    s = F.pad(x.cumsum(-1).cumsum(-2), (1, 0, 1, 0))
    return s[..., 3:, 3:] - s[..., :-3, 3:] - s[..., 3:, :-3] + s[..., :-3, :-3]


def sobel(x):
    k = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    y = F.conv2d(F.pad(x.flatten(0, 1)[:, None], (1, 1, 1, 1), mode="replicate"), torch.stack([k, k.T])[:, None])
    return y.square().sum(1).sqrt().view_as(x)


def soft_argmax(x):
    b, c, h, w = x.shape
    p = x.flatten(2).softmax(-1).view_as(x)
    return torch.stack([(p.sum(2) * torch.arange(w)).sum(-1), (p.sum(3) * torch.arange(h)).sum(-1)], -1)


def center_crop(x, y):
    dh, dw = x.shape[-2] - y.shape[-2], x.shape[-1] - y.shape[-1]
    return F.pad(y, (dw // 2, dw - dw // 2, dh // 2, dh - dh // 2)) + x


def tiles(x, t=4):
    h, w = x.shape[-2:]
    out = torch.zeros_like(x)
    for i in range(0, h, t):
        for j in range(0, w, t):
            part = x[..., i : i + t, j : j + t]
            out[..., i : i + t, j : j + t] = part - part.mean((-1, -2), keepdim=True)
    return out


def strided_view(x):
    x = x.contiguous()
    return x.as_strided((x.shape[0], (x.shape[1] - 3) // 2 + 1, 3), (x.stride(0), 2, 1)).amax(-1)


def toeplitz(x):
    n = x.shape[1]
    return F.pad(x, (n - 1, 0)).unfold(1, n, 1).flip(1)


def circulant(x):
    n = x.shape[-1]
    at = (torch.arange(n)[:, None] - torch.arange(n)) % n
    return x[:, at]


def skew(x):
    b, n, m = x.shape
    return F.pad(x, (0, n)).flatten(1)[:, : -n].view(b, n, n + m - 1)


IMG, MAP = floats(2, 3, 8, 10), floats(2, 6, 8, 3)
for name, (fn, inputs, most) in {
    "attention in windows": (window_attention, (floats(2, 10, 4),), 65), "shifted windows": (shifted_windows, (MAP,), 24), "merged patches": (patch_merge, (floats(2, 7, 8, 3),), 24), "patches": (patchify, (IMG,), 65),
    "overlap and add": (overlap_add, (floats(2, 18),), 65), "overlap by fold": (overlap_fold, (floats(2, 18),), 65), "relative shift": (relative_shift, (floats(2, 2, 5, 7),), 24), "sliding mask": (sliding_mask, (floats(2, 7, 4),), 65),
    "dilated blocks": (dilated_blocks, (floats(2, 10, 3),), 65), "pixel unshuffle of what divides": (pixel_unshuffle, (IMG,), 41), "regions": (roi_align, (floats(3, 8, 10), unit(4, 2)), 41), "pyramid": (pyramid, (IMG,), 41),
    "anchors": (anchors, (IMG,), 41), "warp": (warp, (IMG, floats(2, 2, 8, 10)), 24), "cost volume": (cost_volume, (IMG, IMG), 41), "integral image": (integral, (IMG,), 41), "sobel": (sobel, (IMG,), 41),
    "soft argmax": (soft_argmax, (IMG,), 41), "padded to the other": (center_crop, (floats(2, 3, 11, 12), IMG), 41), "tiles": (tiles, (floats(1, 9, 10),), 18), "strided view": (strided_view, (X,), 65),
    "toeplitz": (toeplitz, (X,), 65), "circulant": (circulant, (X,), 65), "skewed": (skew, (floats(2, 5, 4),), 41),
}.items():
    row("algorithms: windows", name, fn, *inputs, largest=most, tolerance=3.0)

# ---- graphs, experts, sets ---------------------------------------------------------------------------------------------


def message(x, e):
    src, dst = e % x.shape[0]
    out = torch.zeros_like(x).index_add_(0, dst, x[src])
    degree = torch.zeros(x.shape[0]).scatter_add_(0, dst, torch.ones(e.shape[1]))
    return out / degree.clamp(min=1)[:, None]


def edge_softmax(x, e):
    src, dst = e % x.shape[0]
    s = (x[src] * x[dst]).sum(1)
    top = torch.full((x.shape[0],), -torch.inf).scatter_reduce(0, dst, s, "amax", include_self=True)
    p = (s - top[dst]).exp()
    return p / torch.zeros(x.shape[0]).index_add(0, dst, p)[dst]


def adjacency(x, e):
    a = torch.zeros(x.shape[0], x.shape[0])
    a[e[0] % x.shape[0], e[1] % x.shape[0]] = 1
    a = a + a.T + torch.eye(x.shape[0])
    d = a.sum(1).rsqrt()
    return d[:, None] * a * d @ x


def components(x, e):
    label = torch.arange(x.shape[0])
    src, dst = e % x.shape[0]
    for _ in range(x.shape[0]):
        label = label.scatter_reduce(0, dst, label[src], "amin").scatter_reduce(0, src, label[dst], "amin")
    return label


def graph_pool(x, b):
    n = int(b.max()) + 1
    return torch.zeros(n, x.shape[1]).index_add(0, b, x) / torch.bincount(b, minlength=n).clamp(min=1)[:, None]


def neighbours(x):
    d = torch.cdist(x, x) + torch.eye(x.shape[0]) * 1e6
    return d.topk(min(2, x.shape[0]), largest=False).values.sum(1)


def dense_batch(x, l):
    out = torch.zeros(l.shape[0], int(l.max()), x.shape[1])
    start = F.pad(l.cumsum(0), (1, 0))
    for k in range(l.shape[0]):
        out[k, : int(l[k])] = x[int(start[k]) : int(start[k + 1])]
    return out


def dense_by_places(x, l):
    seq = torch.repeat_interleave(torch.arange(l.shape[0]), l)
    pos = torch.arange(int(l.sum())) - F.pad(l.cumsum(0), (1, 0))[:-1][seq]
    out = x.new_zeros(l.shape[0], int(l.max()), x.shape[1])
    out[seq, pos] = x[: seq.shape[0]]
    return out


def capacity(x, t):
    """Experts take at most two."""
    one = F.one_hot(t, 4)
    pos = (one.cumsum(0) * one).sum(1) - 1
    keep = pos < 2
    slots = torch.zeros(4, 2, x.shape[1])
    slots[t[keep], pos[keep]] = x[keep]
    return slots


def experts_sorted(x, t):
    order = t.argsort(stable=True)
    counts = torch.bincount(t, minlength=4).tolist()
    parts = [p * (k + 1) for k, p in enumerate(x[order].split(counts))]
    out = torch.empty_like(x)
    out[order] = torch.cat(parts)
    return out


def experts_where(x, w):
    weight, index = w.softmax(-1).topk(2)
    out = torch.zeros_like(x)
    hit = F.one_hot(index, w.shape[1]).permute(2, 1, 0)
    for k in range(w.shape[1]):
        at, token = torch.where(hit[k])
        if token.numel() == 0:
            continue
        out.index_add_(0, token, x[token].tanh() * (k + 1) * weight[token, at, None])
    return out


def dense_fill(x, l):
    out, start = torch.zeros(l.shape[0], int(l.max()), x.shape[1]), F.pad(l.cumsum(0), (1, 0))
    for k in range(l.shape[0]):
        out[k, : l[k]] = x[start[k] : start[k + 1]].sum(0)
    return out


def run_lengths(t):
    change = torch.cat([torch.tensor([True]), t[1:] != t[:-1]])
    at = change.nonzero()[:, 0]
    return t[at], torch.diff(at, append=torch.tensor([t.shape[0]]))


def run_decode(t, l):
    return t.repeat_interleave(l)


def dedup(t):
    seen, order = t.unique(return_inverse=True)
    first = torch.full((seen.shape[0],), t.shape[0]).scatter_reduce(0, order, torch.arange(t.shape[0]), "amin")
    return t[first.sort().values]


def histogram_equal(x):
    t = (x * 15).long().clamp(0, 15)
    c = torch.bincount(t.flatten(), minlength=16).cumsum(0)
    return c[t].float() / t.numel()


def pairwise_rank(x):
    return (x[:, :, None] > x[:, None, :]).sum(2)


def jaccard(m):
    a = m.float()
    inter = a @ a.T
    return inter / (a.sum(1)[:, None] + a.sum(1) - inter).clamp(min=1)


def group_argmax(x, t):
    top = torch.full((7,), -1e9).scatter_reduce(0, t, x, "amax")
    return (x == top[t]).nonzero()[:, 0]


for name, (fn, inputs, most) in {
    "messages": (message, (floats(5, 3), ids(2, 9)), 65), "softmax over edges": (edge_softmax, (floats(5, 3), ids(2, 9)), 65), "adjacency": (adjacency, (floats(5, 3), ids(2, 9)), 65),
    "components": (components, (floats(5, 3), ids(2, 9)), 24), "pooled graphs": (graph_pool, (floats(9, 3), ids(9, high=4)), 65), "neighbours": (neighbours, (floats(7, 3),), 65),
    "sums of parts by a loop": (dense_fill, (floats(30, 3), ids(4, high=7, low=1)), 65), "dense by a loop": (dense_batch, (floats(30, 3), ids(4, high=7, low=1)), 65), "dense by places": (dense_by_places, (floats(30, 3), ids(4, high=7, low=1)), 65), "capacity": (capacity, (floats(9, 3), ids(9, high=4)), 65),
    "experts sorted": (experts_sorted, (floats(9, 3), ids(9, high=4)), 65), "experts where": (experts_where, (floats(7, 3), floats(7, 4)), 24), "run lengths": (run_lengths, (ids(12, high=3),), 65),
    "runs decoded": (run_decode, (ids(6), ids(6, high=4)), 65), "first of each": (dedup, (ids(12, high=5),), 65), "equalised": (histogram_equal, (unit(4, 9),), 65), "ranks": (pairwise_rank, (X,), 65), "jaccard": (jaccard, (bools(4, 9),), 65),
    "best of each group": (group_argmax, (floats(12), ids(12, high=7)), 65),
}.items():
    row("algorithms: sets", name, fn, *inputs, largest=most, tolerance=3.0)

# ---- quantisation and bits ---------------------------------------------------------------------------------------------


def fake_quant(x):
    scale = (x.amax(1, keepdim=True) - x.amin(1, keepdim=True)).clamp(min=1e-5) / 255
    zero = (-x.amin(1, keepdim=True) / scale).round()
    return ((x / scale + zero).round().clamp(0, 255) - zero) * scale


def grouped_int8(x, g=4):
    n = x.shape[1]
    y = F.pad(x, (0, -n % g)).view(x.shape[0], -1, g)
    s = y.abs().amax(-1, keepdim=True).clamp(min=1e-8) / 127
    return ((y / s).round().to(torch.int8).float() * s).flatten(1)[:, :n]


def packed4(t):
    low, high = t[:, : t.shape[1] // 2], t[:, t.shape[1] // 2 : t.shape[1] // 2 * 2]
    p = (low.to(torch.uint8) & 15) | (high.to(torch.uint8) << 4)
    return torch.cat([p & 15, p >> 4], 1).to(torch.int8) - 8


def bits_of(t):
    return (t.unsqueeze(-1) & (1 << torch.arange(5))).ne(0).float()


def gray(t):
    return t ^ (t >> 1)


def crc(t):
    h = torch.full((t.shape[0],), 5381)
    for k in range(t.shape[1]):
        h = ((h << 5) + h + t[:, k]) & 0xFFFFFF
    return h


def wrapped_hash(t):
    h = torch.full((t.shape[0],), 5381)
    for k in range(t.shape[1]):
        h = h * 1000003 ^ t[:, k]
    return h


def lcg(t):
    s = t[:, 0].to(torch.int32)
    for _ in range(5):
        s = s * 1664525 + 1013904223
    return s


def mulaw(x):
    y = x.clamp(-1, 1)
    return ((y.sign() * torch.log1p(255 * y.abs()) / math.log(256) + 1) / 2 * 255 + 0.5).to(torch.uint8)


def decimal_digits(t):
    return torch.stack([(t // 10**k) % 10 for k in range(4)], -1)


def morton(t):
    x, y = t[:, 0], t[:, 1]
    return sum(((x >> k & 1) << (2 * k)) | ((y >> k & 1) << (2 * k + 1)) for k in range(6))


for name, (fn, inputs) in {
    "fake quantised": (fake_quant, (X,)), "groups of int8": (grouped_int8, (X,)), "packed nibbles": (packed4, (ids(3, 8, high=16),)), "bits": (bits_of, (T,)), "gray code": (gray, (T,)), "hash": (crc, (T,)),
    "hash that wraps": (wrapped_hash, (T,)), "congruential": (lcg, (ids(3, 4, high=2**31 - 1),)), "mu law": (mulaw, (X,)), "decimal digits": (decimal_digits, (ids(3, 4, high=9999, low=-9999),)), "morton code": (morton, (ids(5, 2, high=64),)),
}.items():
    row("algorithms: bits", name, fn, *inputs, largest=41)
