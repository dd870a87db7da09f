"""Cases of complex_ops.cpp and fft_ops.cpp: complex numbers as pairs of real ones, and Fourier transforms."""

import torch

from . import Case


def c(*shapes, dtype=torch.complex64):
    return lambda: tuple(torch.randn(*s, dtype=dtype) for s in shapes)


def f(*shapes, dtype=torch.float32):
    return lambda: tuple(torch.randn(*s, dtype=dtype) for s in shapes)


def real(fn):
    """The result as real numbers, so that the file has no complex output."""
    return lambda *args: torch.view_as_real(fn(*args))


PAIR = f((3, 4, 2))
asc = torch.view_as_complex


def rotary(x, freqs):
    x_ = asc(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(x_ * torch.polar(torch.ones_like(freqs), freqs)).flatten(2)


CASES = [
    Case("aten.view_as_complex.default", lambda x: asc(x), PAIR),
    Case("aten.view_as_complex.default", lambda x: asc(x), f((3, 4, 2), dtype=torch.float64), "float64"),
    Case("aten.view_as_real.default", lambda x: torch.view_as_real(asc(x) * asc(x)), PAIR),
    Case("aten.complex.default", torch.complex, f((3, 4), (3, 4))),
    Case("aten.polar.default", torch.polar, f((3, 4), (3, 4))),
    Case("aten.polar.default", rotary, f((3, 4, 8), (4, 4)), "rotary"),
    Case("aten.abs.default", torch.abs, c((3, 4)), "complex input"),
    Case("aten.angle.default", torch.angle, c((3, 4)), "complex input"),
    Case("aten.add.Tensor", lambda x, y: asc(x) + y, f((3, 4, 2), (2, 1, 4)), "complex and real"),
    Case("aten.add.Tensor", lambda x, y: torch.add(asc(x), asc(y), alpha=2), f((3, 4, 2), (4, 2)), "complex"),
    Case("aten.sub.Tensor", lambda x, y: asc(x) - asc(y), f((3, 4, 2), (4, 2)), "complex"),
    Case("aten.mul.Tensor", lambda x, y: asc(x) * asc(y), f((3, 4, 2), (4, 2)), "complex"),
    Case("aten.mul.Tensor", lambda x: asc(x) * 2.5, PAIR, "complex by number"),
    Case("aten.mul.Tensor", lambda x, y: y * asc(x), f((3, 4, 2), (3, 1)), "complex by real"),
    Case("aten.div.Tensor", lambda x, y: asc(x) / asc(y), f((3, 4, 2), (4, 2)), "complex"),
    Case("aten.div.Tensor", lambda x: asc(x) / 2, PAIR, "complex by number"),
    Case("aten.reciprocal.default", lambda x: 1 / asc(x), PAIR, "complex"),
    Case("aten.neg.default", lambda x: -asc(x), PAIR, "complex"),
    Case("aten._conj.default", lambda x: torch.view_as_real(asc(x).conj().resolve_conj()), PAIR),
    Case("aten._conj.default", lambda x: asc(x).conj() * asc(x), PAIR, "times"),
    Case("aten.exp.default", lambda x: torch.exp(asc(x)), PAIR, "complex"),
    Case("aten.log.default", lambda x: torch.log(asc(x)), PAIR, "complex"),
    Case("aten.pow.Tensor_Scalar", lambda x: asc(x) ** 3, PAIR, "complex"),
    Case("aten.sgn.default", lambda x: torch.sgn(asc(x)), PAIR, "complex"),
    Case("aten.eq.Tensor", lambda x: asc(x) == asc(x.abs()), PAIR, "complex"),
    Case("aten.mm.default", lambda x, y: torch.mm(asc(x), asc(y)), f((3, 4, 2), (4, 5, 2)), "complex"),
    Case("aten.bmm.default", lambda x, y: torch.bmm(asc(x), asc(y)), f((2, 3, 4, 2), (2, 4, 5, 2)), "complex"),
    Case(
        "aten.einsum.default",
        lambda x, y: torch.einsum("bix,iox->box", asc(x), asc(y)),
        f((2, 3, 4, 2), (3, 5, 4, 2)),
        "complex",
    ),
    Case(
        "aten.einsum.default",
        lambda x, y, z: torch.einsum("bi,i,ij->bj", asc(x), y, asc(z)),
        f((2, 3, 2), (3,), (3, 4, 2)),
        "complex and real",
    ),
    Case("aten.tanh.default", lambda x: torch.tanh(asc(x) * 3), PAIR, "complex"),
    Case("aten.sigmoid.default", lambda x: torch.sigmoid(asc(x)), PAIR, "complex"),
    Case("aten.sin.default", lambda x: torch.sin(asc(x)), PAIR, "complex"),
    Case("aten.cos.default", lambda x: torch.cos(asc(x)), PAIR, "complex"),
    Case("aten.sqrt.default", lambda x: torch.sqrt(asc(x)), PAIR, "complex"),
    Case("aten.sum.dim_IntList", lambda x: asc(x).sum(-1), PAIR, "complex"),
    Case("aten.mean.dim", lambda x: asc(x).mean(0), PAIR, "complex"),
    Case("aten._to_copy.default", lambda x: x.to(torch.complex64), f((3, 4)), "real to complex"),
    Case("aten._to_copy.default", lambda x: asc(x).to(torch.complex128), PAIR, "complex to complex"),
    Case(
        "aten.ones.default",
        lambda x: torch.ones(x.shape[0], dtype=torch.complex64) * x.sum(),
        PAIR,
        "complex",
    ),
    Case("aten.zeros_like.default", lambda x: torch.zeros_like(asc(x)), PAIR, "complex"),
    Case("aten.select.int", lambda x: asc(x).select(-1, 0), PAIR, "complex real part"),
    Case("aten.select.int", lambda x: asc(x).imag, PAIR, "complex imaginary part"),
    Case("aten.slice.Tensor", lambda x: asc(x)[:, 1:-1], PAIR, "complex"),
    Case("aten.view.default", lambda x: asc(x).view(-1), PAIR, "complex"),
    Case("aten.unsqueeze.default", lambda x: asc(x).unsqueeze(-1), PAIR, "complex"),
    Case("aten.transpose.int", lambda x: asc(x).transpose(-1, 0), PAIR, "complex"),
    Case("aten.cat.default", lambda x: torch.cat([asc(x), asc(x)], -1), PAIR, "complex"),
    Case("aten.stack.default", lambda x: torch.stack([asc(x), asc(x)], -1), PAIR, "complex"),
    Case("aten.expand.default", lambda x: asc(x).unsqueeze(0).expand(2, -1, -1), PAIR, "complex"),
    Case(
        "aten.index.Tensor",
        lambda x, i: asc(x)[i],
        lambda: (torch.randn(3, 4, 2), torch.tensor([2, 0])),
        "complex",
    ),
    Case("aten.where.self", lambda x: torch.where(x[..., 0] > 0, asc(x), asc(-x)), PAIR, "complex"),
    Case("aten.acos.default", lambda x: torch.acos(asc(x)), PAIR, "complex", error="no form for complex"),
]

for norm in ("backward", "ortho", "forward"):
    for length in (8, 7, 12):
        CASES += [
            Case("aten._fft_c2c.default", lambda x, m=norm: torch.fft.fft(x, norm=m), c((3, length)), f"{norm} {length}"),
            Case("aten._fft_c2c.default", lambda x, m=norm: torch.fft.ifft(x, norm=m), c((3, length)), f"inverse {norm} {length}"),
            Case("aten._fft_r2c.default", lambda x, m=norm: torch.fft.rfft(x, norm=m), f((3, length)), f"{norm} {length}"),
            Case("aten._fft_c2r.default", lambda x, n=length, m=norm: torch.fft.irfft(x, n=n, norm=m), c((3, length // 2 + 1)), f"{norm} {length}", fixed=True),
        ]  # fmt: skip
CASES += [
    Case("aten._fft_r2c.default", lambda x: torch.fft.fft(x), f((3, 6)), "both sides"),
    Case("aten.fft_fftfreq.default", lambda x: x + torch.fft.fftfreq(x.shape[1], 0.5), f((3, 6))),
    Case("aten.fft_rfftfreq.default", lambda x: x[:, : x.shape[1] // 2 + 1] + torch.fft.rfftfreq(x.shape[1]), f((3, 7))),
    Case("aten._fft_r2c.default", lambda x: torch.fft.rfft2(x), f((2, 6, 5)), "two dims"),
    Case("aten._fft_r2c.default", lambda x: torch.fft.rfft(x), f((6,)), "1-d"),
    Case("aten._fft_r2c.default", lambda x: torch.fft.rfft(x, dim=1), f((3, 6, 4)), "inner"),
    Case("aten._fft_r2c.default", lambda x: torch.fft.rfft(x), f((3, 400)), "long"),
    Case("aten._fft_r2c.default", lambda x: torch.fft.rfft(x), f((3, 6), dtype=torch.float64), "float64"),
    Case("aten._fft_c2c.default", lambda x: torch.fft.fftn(x), c((2, 3, 4)), "all dims"),
    Case("aten._fft_c2c.default", lambda x: torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real, f((2, 5, 6)), "fnet"),
    Case("aten._fft_c2r.default", lambda x: torch.fft.irfft(torch.fft.rfft(x), n=x.shape[-1]), f((3, 8)), "back"),
    Case("aten._fft_c2r.default", lambda x: torch.fft.irfft2(torch.fft.rfft2(x), s=x.shape[-2:]), f((3, 8, 6)), "two dims"),
    Case("aten._fft_r2c.default", lambda x, w: torch.view_as_real(torch.stft(x, 8, 4, window=w, return_complex=True)), lambda: (torch.randn(2, 40), torch.hann_window(8)), "stft", fixed=True),
]  # fmt: skip
