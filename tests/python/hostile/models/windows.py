"""Windows, resampling and their kin in every mode, over sizes that do not divide."""

import itertools

import torch
import torch.nn.functional as F
from torch import nn

from ..rows import floats, row, unit

# fmt: off
LINE, IMAGE, BLOCK = floats(2, 3, 11), floats(2, 3, 9, 11), floats(1, 2, 5, 6, 7)

# ---- resampling --------------------------------------------------------------------------------------------------------

for mode, align in (("nearest", None), ("nearest-exact", None), ("bilinear", False), ("bilinear", True), ("bicubic", False), ("bicubic", True), ("area", None)):
    title = mode + ("" if align is None else f", corners {align}")
    for name, how in {"to a size": {"size": (7, 5)}, "up by two": {"scale_factor": 2}, "by 1.5": {"scale_factor": 1.5}, "by 0.37": {"scale_factor": 0.37}, "two factors": {"scale_factor": (0.6, 2.3)}, "factor computed anew": {"scale_factor": 1.7, "recompute_scale_factor": True}}.items():
        if mode == "area" and "recompute_scale_factor" in how:
            continue
        row("resampling", f"{title}, {name}", lambda x, mode=mode, align=align, how=how: F.interpolate(x, mode=mode, align_corners=align, **how), IMAGE, largest=20, tolerance=10.0)
    row("resampling", f"{title}, to half", lambda x, mode=mode, align=align: F.interpolate(x, size=(x.shape[2] // 2 + 1, x.shape[3] // 2 + 1), mode=mode, align_corners=align), IMAGE, largest=20, tolerance=10.0)
for mode, align in (("bilinear", False), ("bicubic", True)):
    row("resampling", f"{mode} antialias, corners {align}", lambda x, mode=mode, align=align: F.interpolate(x, size=(5, 6), mode=mode, align_corners=align, antialias=True), IMAGE, largest=20, tolerance=10.0)
for mode, align in (("nearest", None), ("linear", False), ("linear", True), ("area", None), ("nearest-exact", None)):
    row("resampling", f"1-d {mode}, corners {align}", lambda x, mode=mode, align=align: F.interpolate(x, scale_factor=0.7, mode=mode, align_corners=align), LINE, largest=70, tolerance=10.0)
    row("resampling", f"1-d {mode}, corners {align}, to one", lambda x, mode=mode, align=align: F.interpolate(x, size=1, mode=mode, align_corners=align), LINE, largest=70, tolerance=10.0)
for mode, align in (("nearest", None), ("trilinear", False), ("trilinear", True), ("area", None)):
    row("resampling", f"3-d {mode}, corners {align}", lambda x, mode=mode, align=align: F.interpolate(x, scale_factor=1.4, mode=mode, align_corners=align), BLOCK, largest=12, tolerance=10.0)
for mode, padding, align in itertools.product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)):
    row("resampling", f"grid_sample {mode} {padding} {align}", lambda x, g, mode=mode, padding=padding, align=align: F.grid_sample(x, g * 2.6 - 1.3, mode=mode, padding_mode=padding, align_corners=align), IMAGE, unit(2, 4, 5, 2), largest=30, tolerance=30.0)
row("resampling", "affine_grid", lambda x: F.grid_sample(x, F.affine_grid(torch.tensor([[[0.9, 0.1, 0.0], [0.0, 1.1, 0.1]]]).expand(x.shape[0], -1, -1), list(x.shape), align_corners=False), align_corners=False), IMAGE, largest=20, tolerance=30.0)
row("resampling", "grid_sample 3-d", lambda x, g: F.grid_sample(x, g * 2 - 1, align_corners=False), BLOCK, unit(1, 3, 2, 4, 3), largest=12, tolerance=30.0)
row("resampling", "upsample module", lambda x: nn.Upsample(scale_factor=2.5, mode="bilinear")(x), IMAGE, largest=20, tolerance=10.0)

# ---- pools -------------------------------------------------------------------------------------------------------------

for name, how in {"2": (2, None, 0), "3 by 2": (3, 2, 0), "3 by 2 padded": (3, 2, 1), "3 by 1 padded": (3, 1, 1), "5 by 3 padded": (5, 3, 2), "2 by 3": (2, 3, 0), "4 by 3 padded": (4, 3, 2)}.items():
    kernel, stride, padding = how
    for up in (False, True):
        title = name + (", rounded up" if up else "")
        row("pools", f"max {title}", lambda x, k=kernel, s=stride, p=padding, up=up: F.max_pool2d(x, k, s, p, ceil_mode=up), IMAGE, largest=20)
        row("pools", f"avg {title}", lambda x, k=kernel, s=stride, p=padding, up=up: F.avg_pool2d(x, k, s, p, ceil_mode=up), IMAGE, largest=20)
        row("pools", f"avg without padding {title}", lambda x, k=kernel, s=stride, p=padding, up=up: F.avg_pool1d(x, k, s, p, ceil_mode=up, count_include_pad=False), LINE, largest=70)
        row("pools", f"max 1-d {title}", lambda x, k=kernel, s=stride, p=padding, up=up: F.max_pool1d(x, k, s, p, ceil_mode=up), LINE, largest=70)
for name, fn in {
    "max dilated": lambda x: F.max_pool2d(x, 3, 1, 1, dilation=2), "max dilated, rounded up": lambda x: F.max_pool2d(x, 2, 3, dilation=3, ceil_mode=True), "max of two kernels": lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0)), "max with places": lambda x: F.max_pool2d(x, 2, return_indices=True), "unpooled": lambda x: unpooled(x), "avg with a divisor": lambda x: F.avg_pool2d(x, 2, divisor_override=3), "lp": lambda x: F.lp_pool2d(x.abs(), 2, 2), "lp of one": lambda x: F.lp_pool2d(x.abs(), 1, 3, 2), "adaptive avg to one": lambda x: F.adaptive_avg_pool2d(x, 1), "adaptive avg": lambda x: F.adaptive_avg_pool2d(x, (4, 3)), "adaptive avg of one side": lambda x: F.adaptive_avg_pool2d(x, (None, 3)), "adaptive max": lambda x: F.adaptive_max_pool2d(x, (4, 3)), "adaptive max with places": lambda x: F.adaptive_max_pool2d(x, 2, return_indices=True)[1], "adaptive to a part": lambda x: F.adaptive_avg_pool2d(x, (x.shape[2] // 2, x.shape[3] // 3 + 1)), "global by mean": lambda x: x.mean((2, 3), keepdim=True), "fractional": lambda x: x.unfold(2, 2, 2).amax(-1), "unfold": lambda x: F.unfold(x, 3, padding=1, stride=2), "unfold dilated": lambda x: F.unfold(x, 2, dilation=2), "fold": lambda x: F.fold(F.unfold(x, 2, stride=2), (x.shape[2] // 2 * 2, x.shape[3] // 2 * 2), 2, stride=2), "fold of overlaps": lambda x: F.fold(F.unfold(x, 3, padding=1), x.shape[2:], 3, padding=1), "patches": lambda x: x.unfold(2, 3, 3).unfold(3, 3, 3).flatten(2, 3).sum((-1, -2)), "avg by a size": lambda x: F.avg_pool2d(x, (x.shape[2], x.shape[3])), "max by a size": lambda x: F.max_pool2d(x, (x.shape[2], 1)), "stride by a size": lambda x: F.avg_pool2d(x, 2, max(1, x.shape[2] // 4)), "local response": lambda x: F.local_response_norm(x, 3), "lp 1-d": lambda x: F.lp_pool1d(x.abs().flatten(2), 2, 2),
}.items():
    row("pools", name, fn, IMAGE, largest=20)
row("pools", "max 3-d", lambda x: F.max_pool3d(x, 2, 2, 1, ceil_mode=True), BLOCK, largest=14)
row("pools", "avg 3-d", lambda x: F.avg_pool3d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), BLOCK, largest=14)
row("pools", "adaptive 3-d", lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)), BLOCK, largest=14)
row("pools", "a mean over all", lambda x: F.avg_pool2d(x, x.shape[2:]), floats(2, 3, 6, 8))
row("pools", "a mean over rows", lambda x: F.avg_pool2d(x, (1, x.shape[3])), floats(2, 3, 6, 8))
row("pools", "a mean over columns without a batch", lambda x: F.avg_pool2d(x, (x.shape[1], 1)), floats(3, 6, 8))
row("pools", "a maximum over all", lambda x: F.max_pool2d(x, kernel_size=x.size()[2:]), floats(2, 3, 6, 8))
row("pools", "a maximum over the sequence", lambda x: F.max_pool1d(x, x.shape[2]), floats(2, 3, 9))
row("pools", "a mean over all of three axes", lambda x: F.avg_pool3d(x, x.shape[2:]), floats(2, 3, 4, 5, 6))
row("pools", "every second place of all rows", lambda x: F.avg_pool2d(x, (x.shape[2], 1), stride=(1, 2)), floats(2, 3, 6, 8))


def unpooled(x):
    y, places = F.max_pool2d(x, 2, return_indices=True)
    return F.max_unpool2d(y, places, 2, output_size=x.shape[2:])


# ---- convolutions and paddings -----------------------------------------------------------------------------------------

for name, build in {
    "plain": lambda: nn.Conv2d(3, 4, 3), "by two": lambda: nn.Conv2d(3, 4, 3, 2), "by two padded": lambda: nn.Conv2d(3, 4, 3, 2, 1), "same": lambda: nn.Conv2d(3, 4, 3, padding="same"), "same of even": lambda: nn.Conv2d(3, 4, 4, padding="same"), "same dilated": lambda: nn.Conv2d(3, 4, 2, padding="same", dilation=3), "valid": lambda: nn.Conv2d(3, 4, 2, padding="valid"), "groups": lambda: nn.Conv2d(3, 6, 3, groups=3, padding=1), "dilated": lambda: nn.Conv2d(3, 4, 3, dilation=(2, 1), padding=2), "reflected": lambda: nn.Conv2d(3, 4, 3, padding=2, padding_mode="reflect"), "replicated": lambda: nn.Conv2d(3, 4, 3, padding=(1, 2), padding_mode="replicate"), "circular": lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), "no bias": lambda: nn.Conv2d(3, 4, 1, bias=False), "oblong": lambda: nn.Conv2d(3, 4, (1, 5), (3, 2), (0, 2)), "transposed": lambda: nn.ConvTranspose2d(3, 4, 3), "transposed by two": lambda: nn.ConvTranspose2d(3, 4, 3, 2, 1, 1), "transposed dilated": lambda: nn.ConvTranspose2d(3, 4, 3, 2, 1, dilation=2), "transposed groups": lambda: nn.ConvTranspose2d(3, 6, 2, 2, groups=3), "transposed with holes": lambda: nn.ConvTranspose2d(3, 4, 2, 3, output_padding=2),
}.items():
    row("convolutions", name, lambda x, build=build: seeded(build)(x), IMAGE, largest=20)
for name, fn in {
    "functional with two paddings": lambda x: F.conv2d(x, W, padding=(1, 2), stride=(2, 1)), "by a kernel of the input": lambda x: F.conv2d(x[:1], x[:, :, :2, :2]), "padding by a size": lambda x: F.conv2d(x, W, padding=min(3, x.shape[2] // 3)), "stride by a size": lambda x: F.conv2d(x, W, stride=1 + (x.shape[3] > 20)), "padded to a multiple": lambda x: F.conv2d(F.pad(x, (0, -x.shape[3] % 4, 0, -x.shape[2] % 4)), W, stride=4), "output_size": lambda x: seeded(lambda: nn.ConvTranspose2d(3, 4, 3, 2, 1))(x, output_size=[2 * x.shape[2], 2 * x.shape[3]]), "depthwise by expand": lambda x: F.conv2d(x, W[:1, :1].expand(3, -1, -1, -1), groups=3), "causal 1-d": lambda x: F.conv1d(F.pad(x.flatten(2), (2, 0)), W[:, :, 0]), "1-d": lambda x: F.conv1d(x.flatten(2), W[:, :, 0], stride=3), "3-d of one": lambda x: F.conv3d(x[:, :, None], W[:, :, None], padding=(0, 1, 1)), "flipped kernel": lambda x: F.conv2d(x, W.flip(2, 3)), "grouped by batch": lambda x: F.conv2d(x.reshape(1, -1, *x.shape[2:]), W[:1, :1].expand(x.shape[0] * 3, -1, -1, -1), groups=x.shape[0] * 3), "bilinear": lambda x: F.bilinear(x, x, torch.ones(2, x.shape[3], x.shape[3])), "separable": lambda x: F.conv2d(F.conv2d(x, W[:, :, :1]), W[:3, :1, :, :1].repeat(1, 4, 1, 1)), "laplacian": lambda x: F.conv2d(x.flatten(0, 1)[:, None], torch.tensor([[[[0.0, 1, 0], [1, -4, 1], [0, 1, 0]]]])), "tbc": lambda x: torch.conv_tbc(x.flatten(2).permute(2, 0, 1).contiguous(), torch.ones(3, 3, 2), torch.zeros(2)),
}.items():
    row("convolutions", name, fn, IMAGE, largest=20)
W = torch.randn(4, 3, 3, 3, generator=torch.Generator().manual_seed(3))
for mode in ("constant", "reflect", "replicate", "circular"):
    for name, pads in {"one side": (1, 0), "both": (2, 3), "four": (1, 2, 0, 1), "cut": (-1, 2), "cut twice": (-2, -1)}.items():
        if mode in ("reflect", "replicate") and min(pads) < 0:
            continue
        if mode == "circular" and min(pads) < 0:
            continue
        row("paddings", f"{mode} {name}", lambda x, mode=mode, pads=pads: F.pad(x if len(pads) == 4 else x.flatten(2), pads, mode=mode), IMAGE, largest=20)
row("paddings", "of all dims", lambda x: F.pad(x, (1, 1, 2, 0, 0, 1, 1, 0), value=-1.0), IMAGE, largest=20)
row("paddings", "by sizes", lambda x: F.pad(x, (0, x.shape[2], x.shape[3] % 5, 0)), IMAGE, largest=20)
row("paddings", "to a square", lambda x: F.pad(x, (0, max(0, x.shape[2] - x.shape[3]), 0, max(0, x.shape[3] - x.shape[2]))), IMAGE, largest=20)
row("paddings", "cut to a square", lambda x: x[:, :, : min(x.shape[2:]), : min(x.shape[2:])], IMAGE, largest=20)
row("paddings", "cut in the middle", lambda x: x[:, :, (x.shape[2] - 4) // 2 : (x.shape[2] - 4) // 2 + 4], IMAGE, largest=20)
row("paddings", "of ints", lambda x: F.pad(x.long(), (2, 1), value=9), IMAGE, largest=20)
row("paddings", "reflect by a size", lambda x: F.pad(x[0], (x.shape[3] // 2, 0), mode="reflect"), IMAGE, largest=20)
row("paddings", "edge by half", lambda x: F.pad(x[0], (x.shape[3] // 2, x.shape[3] - x.shape[3] // 2), mode="replicate"), IMAGE, largest=20)
row("paddings", "pad_sequence", lambda x, y: nn.utils.rnn.pad_sequence([x, y], batch_first=True), floats(5, 3), floats(7, 3))
row("paddings", "pad_sequence from the left", lambda x, y: nn.utils.rnn.pad_sequence([x, y], padding_side="left"), floats(5, 3), floats(7, 3))
row("paddings", "windowed attention", lambda x: windowed(x, 4), IMAGE, largest=20)
row("paddings", "windowed and shifted", lambda x: windowed(x.roll((-2, -2), (2, 3)), 4), IMAGE, largest=20)


def seeded(build):
    torch.manual_seed(0)
    return build().eval()


def windowed(x, size):
    b, c, h, w = x.shape
    x = F.pad(x, (0, -w % size, 0, -h % size))
    hp, wp = x.shape[2:]
    x = x.view(b, c, hp // size, size, wp // size, size).permute(0, 2, 4, 3, 5, 1).reshape(-1, size * size, c)
    x = (x @ x.mT).softmax(-1) @ x
    x = x.view(b, hp // size, wp // size, size, size, c).permute(0, 5, 1, 3, 2, 4).reshape(b, c, hp, wp)
    return x[:, :, :h, :w]


# ---- spectra -----------------------------------------------------------------------------------------------------------

for name, fn in {
    "stft": lambda x: torch.view_as_real(torch.stft(x, 8, 4, window=torch.ones(8), return_complex=True)), "stft without centre": lambda x: torch.stft(x, 8, 3, window=torch.hann_window(8), center=False, return_complex=True).abs(), "stft of a short window": lambda x: torch.stft(x, 16, 4, 12, torch.hann_window(12), return_complex=True).abs(), "stft both sides": lambda x: torch.stft(x, 8, 4, window=torch.ones(8), onesided=False, return_complex=True).abs(), "stft normalized": lambda x: torch.stft(x, 8, 2, window=torch.ones(8), normalized=True, return_complex=True).real, "stft constant padding": lambda x: torch.stft(x, 8, 4, window=torch.ones(8), pad_mode="constant", return_complex=True).imag, "istft": lambda x: torch.istft(torch.stft(x, 8, 2, window=torch.hann_window(8), return_complex=True), 8, 2, window=torch.hann_window(8)), "fft": lambda x: torch.fft.fft(x).abs(), "fft to a length": lambda x: torch.fft.fft(x, 16).abs(), "rfft": lambda x: torch.fft.rfft(x).real, "rfft orthonormal": lambda x: torch.fft.rfft(x, norm="ortho").abs(), "irfft": lambda x: torch.fft.irfft(torch.fft.rfft(x), x.shape[-1]), "fft2": lambda x: torch.fft.fft2(x).abs(), "fftshift": lambda x: torch.fft.fftshift(x, 1), "fftfreq": lambda x: torch.fft.fftfreq(x.shape[1], 0.5), "convolution by fft": lambda x: torch.fft.irfft(torch.fft.rfft(x, 64) * torch.fft.rfft(x.flip(1), 64), 64)[:, : x.shape[1]] if x.shape[1] <= 32 else x, "hilbert": lambda x: torch.fft.ifft(torch.fft.fft(x) * (torch.fft.fftfreq(x.shape[1]) > 0) * 2).abs(), "frames": lambda x: x.unfold(1, 8, 4) * torch.hamming_window(8), "mel": lambda x: (torch.stft(x, 8, 4, window=torch.ones(8), return_complex=True).abs() ** 2).clamp(min=1e-5).log(), "autocorrelation": lambda x: torch.stack([(x[:, k:] * x[:, : x.shape[1] - k]).sum(1) for k in range(4)], 1), "dct": lambda x: x @ torch.cos(torch.pi / x.shape[1] * (torch.arange(x.shape[1])[:, None] + 0.5) * torch.arange(5)[None]), "kaiser": lambda x: x * torch.kaiser_window(x.shape[1]), "blackman": lambda x: x * torch.blackman_window(x.shape[1], periodic=False), "hann of a size": lambda x: x * torch.hann_window(x.shape[1]), "bartlett": lambda x: x * torch.bartlett_window(x.shape[1]), "cumulative": lambda x: x.cumsum(1) / torch.arange(1, x.shape[1] + 1),
}.items():
    row("spectra", name, fn, floats(2, 24), largest=70, tolerance=30.0)
# fmt: on
