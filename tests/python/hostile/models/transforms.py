"""Fourier transforms of lengths that are given, and questions of closeness."""

import torch

from ..rows import floats, row

X = floats(3, 9)
I = floats(2, 6, 8)


def fft(name, fn, *inputs, largest=70):
    row("transforms", name, fn, *(inputs or (X,)), largest=largest)


def p2(n):
    k = 1
    while k < n:
        k *= 2
    return k


def up(n):
    return 1 << (n - 1).bit_length()


fft("rfft p2 loop", lambda x: torch.fft.rfft(x, p2(2 * x.shape[1])).abs())
fft(
    "conv p2",
    lambda x, k: torch.fft.irfft(
        torch.fft.rfft(x, n=p2(x.shape[1] + k.shape[1])) * torch.fft.rfft(k, n=p2(x.shape[1] + k.shape[1])),
        n=p2(x.shape[1] + k.shape[1]),
    )[..., : x.shape[1]],
    floats(3, 9),
    floats(1, 5),
    largest=40,
)
fft(
    "conv 2n",
    lambda x, k: torch.fft.irfft(
        torch.fft.rfft(x, n=2 * x.shape[1]) * torch.fft.rfft(k, n=2 * x.shape[1]), n=2 * x.shape[1]
    )[..., : x.shape[1]],
    floats(3, 9),
    floats(1, 9),
)
fft("cut", lambda x: torch.fft.fft(x, n=5).abs())
fft("cut or pad", lambda x: torch.fft.fft(x, n=12, dim=1, norm="ortho").real)
fft("cut 0", lambda x: torch.fft.ifft(x, n=4, dim=0).imag)
fft("n of batch", lambda x: torch.fft.rfft(x, x.shape[0]).imag)
fft("irfft odd", lambda x: torch.fft.irfft(torch.fft.rfft(x), n=x.shape[1]))
fft("irfft n-1", lambda x: torch.fft.irfft(torch.fft.rfft(x), n=max(1, x.shape[1] - 1)))
fft("irfft fixed", lambda x: torch.fft.irfft(torch.fft.rfft(x), n=14))
fft("hfft", lambda x: torch.fft.hfft(torch.fft.rfft(x), n=x.shape[1]))
fft("fft2 s", lambda x: torch.fft.fft2(x, s=(up(x.shape[1]), up(x.shape[2]))).abs(), I, largest=20)
fft("rfft2 irfft2 s", lambda x: torch.fft.irfft2(torch.fft.rfft2(x), s=x.shape[-2:]), I, largest=20)
fft("irfft2 s sizes", lambda x: torch.fft.irfft2(torch.fft.rfft2(x), s=(x.size(-2) + 1, x.size(-1) + 2)), I, largest=20)
fft("fftn s", lambda x: torch.fft.fftn(x, s=(5, x.shape[2] * 2)).abs(), I, largest=20)
fft("fftn dims", lambda x: torch.fft.fftn(x, s=(5, -1), dim=(0, 2)).abs(), I, largest=20)
fft(
    "rfftn",
    lambda x: torch.fft.irfftn(torch.fft.rfftn(x, dim=(1, 2)), s=(x.shape[1], x.shape[2]), dim=(1, 2)),
    I,
    largest=20,
)


def fno(x):
    h = torch.fft.rfft2(x)
    out = torch.zeros(x.shape[0], x.shape[1], x.shape[2], x.shape[3] // 2 + 1, dtype=torch.cfloat)
    out[:, :, :3, :3] = h[:, :, :3, :3] * (1 + 0.5j)
    out[:, :, -3:, :3] = h[:, :, -3:, :3] * (0.5 - 1j)
    return torch.fft.irfft2(out, s=(x.size(-2), x.size(-1)))


fft("fno", fno, floats(2, 3, 10, 12), largest=24)


def fno1(x):
    h = torch.fft.rfft(x)
    out = torch.zeros_like(h)
    out[..., :4] = h[..., :4] * 2
    return torch.fft.irfft(out, n=x.size(-1))


fft("fno1", fno1)
fft("interp by fft", lambda x: torch.fft.irfft(torch.fft.rfft(x), n=2 * x.shape[1]) * 2)
fft("allclose kw", lambda x, y: x if torch.allclose(x, y, atol=1e-2) else y, X, X)
fft("allclose self", lambda x: x.cos() if torch.allclose(x, x.abs()) else x.sin())
fft("allclose method", lambda x: x.cos() if x.allclose(torch.zeros(()).expand_as(x)) else x.sin())
