"""Sizes that leave Python's integers unnoticed and decide later; what a call leaves behind; views that are copies elsewhere."""

import fractions
import functools
import math
import types

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ..rows import floats, ids, row

# fmt: off
X, Y, S = floats(3, 9), floats(3, 5), floats(2, 6, 4)

# ---- numbers that forget, and decide -----------------------------------------------------------------------------------


def prime_factors(x):
    found, n, p = [], x.shape[1], 2
    while n > 1 and len(found) < 8:
        while n % p == 0:
            found.append(p)
            n //= p
        p += 1
    return x * len(found)


def leading_digit(x, y):
    sizes = sorted([int(str(x.shape[1])[0]), int(str(x.shape[1])[0]), 8])
    return x.sum((sizes[1] - sizes[0]) % 2) + y.sum()


def stride_by_bits(x, y):
    k = (y.shape[1] * y.shape[1] // 3) ^ 50
    return F.max_pool1d(F.pad(x, (0, 8)), 2, 1 + (k if 0 <= k <= 3 else 0), ceil_mode=True) + y.sum()


def start_by_a_mean(x):
    n, b = x.shape[1], x.shape[0]
    if functools.reduce(lambda s, k: s * 2 + k, (n % 3, n % 2, 1)) <= 8:
        k = min(n, 50)
    elif any(k > 16 for k in ((b << 1) - n, b)):
        k = int(np.mean([b, n]))
    else:
        k = int(math.log(n + 1) * 25)
    return x[:, k % 6 :]


def collatz(x):
    k, n = 0, x.shape[1]
    while n > 1 and k < 30:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        k += 1
    return x * k


for name, fn in {
    "prime factors": prime_factors, "collatz": collatz, "start by a mean": start_by_a_mean,
    "or": lambda x: x.cos() if x.shape[1] | 3 > 20 else x.sin(), "xor": lambda x: x.cos() if x.shape[1] ^ 5 > 20 else x.sin(),
    "power and modulus": lambda x: x.cos() if pow(x.shape[1], 2, 13) > 6 else x.sin(), "digits": lambda x: x.cos() if len(str(x.shape[1])) > 1 else x.sin(),
    "digit sum": lambda x: x.cos() if sum(map(int, str(x.shape[1]))) > 8 else x.sin(), "bits": lambda x: x.cos() if bin(x.shape[1]).count("1") > 2 else x.sin(),
    "bit_count": lambda x: x.cos() if x.shape[1].bit_count() > 2 else x.sin(), "a list as long": lambda x: x.cos() if len([0] * x.shape[1]) > 20 else x.sin(),
    "a text as long": lambda x: x.cos() if "ab" * x.shape[1] > "ab" * 20 else x.sin(), "an array": lambda x: x.cos() if np.array([x.shape[1], 3]).max() > 20 else x.sin(),
    "a mean": lambda x: x.cos() if np.mean(x.shape) > 20 else x.sin(), "gcd": lambda x: x.cos() if math.gcd(x.shape[1], 12) > 3 else x.sin(),
    "fmod": lambda x: x.cos() if math.fmod(x.shape[1], 7) > 3 else x.sin(), "log10": lambda x: x.cos() if math.log10(x.shape[1]) > 1.3 else x.sin(),
    "remainder": lambda x: x.cos() if math.remainder(x.shape[1], 7) > 1 else x.sin(), "cbrt": lambda x: x.cos() if x.shape[1] ** (1 / 3) > 2.5 else x.sin(),
    "sine": lambda x: x.cos() if math.sin(x.shape[1]) > 0 else x.sin(), "dist": lambda x: x.cos() if math.dist(x.shape, (3, 3)) > 20 else x.sin(),
    "fraction": lambda x: x.cos() if fractions.Fraction(x.shape[1], 4) > 5 else x.sin(), "isclose": lambda x: x.cos() if math.isclose(x.shape[1] / 4, 5, abs_tol=1) else x.sin(),
    "index": lambda x: x[:, : x.shape[1].__index__() // 2], "ratio": lambda x: x.cos() if (x.shape[1] / 8).as_integer_ratio()[1] == 1 else x.sin(),
}.items():
    row("forgotten", name, fn, X, largest=300)
row("forgotten", "leading digit", leading_digit, floats(3, 24), floats(2, 24), largest=300)
row("forgotten", "stride by bits", stride_by_bits, floats(3, 8), floats(3, 5), largest=300)

# ---- what is asked of a number that was read ---------------------------------------------------------------------------

for name, fn in {
    "isnan": lambda x: x * 2 if math.isnan(x.log().sum().item()) else x, "not isnan": lambda x: x * 2 if math.isnan(x.abs().log().sum().item()) else x,
    "isinf": lambda x: x * 2 if math.isinf((x.abs() + 1).exp().prod().item()) else x, "isfinite": lambda x: x * 2 if math.isfinite((x / x.abs().min().round()).sum().item()) else x,
    "isclose": lambda x: x * 2 if math.isclose(x[0, 0].item(), 0, abs_tol=0.5) else x, "isclose of two": lambda x: x * 2 if math.isclose(x[0, 0].item(), x[1, 0].item(), rel_tol=0.5) else x,
    "is_integer": lambda x: x * 2 if x.round()[0, 0].item().is_integer() else x,
}.items():
    row("asked of a read", name, fn, X, largest=65)

# ---- what a call leaves for the next -----------------------------------------------------------------------------------


class Hysteresis(nn.Module):
    def __init__(self):
        super().__init__()
        self.on = False

    def forward(self, x):
        self.on = x.shape[1] > 8 or (self.on and x.shape[1] > 4)
        return x * 2 if self.on else x


class LongSeen(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 1.0

    def forward(self, x):
        if x.shape[1] > 20:
            self.scale = 2.0
        return x * self.scale


class Largest(nn.Module):
    def __init__(self):
        super().__init__()
        self.most, self.table = -1, None

    def forward(self, x):
        if x.shape[1] > self.most:
            self.most, self.table = x.shape[1], torch.arange(x.shape[1]).float().cos()
        return x + self.table[: x.shape[1], None]


row("left behind", "hysteresis", Hysteresis, S, largest=41)
row("left behind", "once long", LongSeen, S, largest=41)
row("left behind", "the largest table", Largest, S, largest=41)

# ---- views here that are copies there ----------------------------------------------------------------------------------


def written(make, write=lambda v: v.zero_()):
    def forward(x):
        x = x * 1
        v = make(x)
        write(v)
        return x

    return forward


for name, fn, shape in (
    ("reshape of permuted", written(lambda x: x.permute(1, 0, 2).reshape(-1), lambda v: v[1:].zero_()), S), ("from one", written(lambda x: x.permute(1, 0, 2).reshape(-1), lambda v: v[1:].zero_()), floats(1, 6, 4)),
    ("contiguous of transposed", written(lambda x: x.mT.contiguous()), X), ("contiguous, from one", written(lambda x: x.mT.contiguous()), floats(1, 9)), ("flatten of a slice", written(lambda x: x[:, :4].flatten()), X),
    ("reshape of a slice", written(lambda x: x[:, :, 1:].reshape(x.shape[0], -1)), S), ("base written", lambda x: base_written(x), S), ("written and not seen", lambda x: not_seen(x), S),
):
    row("views or copies", name, fn, shape, largest=24)


def base_written(x):
    x = x * 1
    v = x.permute(1, 0, 2).reshape(-1)
    x.add_(1)
    return v


def not_seen(x):
    v = (x * 2).permute(1, 0, 2).reshape(-1)
    v += 1
    return v


def experts(x, t):
    out = torch.zeros_like(x)
    for e in range(6):
        i, j = torch.where(t == e)
        if i.numel() == 0:
            continue
        out[i, j] = x[i, j] * (e + 1)
    return out


row("views or copies", "places one by one", experts, X, ids(3, 9, high=6), largest=65)

# ---- results beside tensors, numbers at their edges --------------------------------------------------------------------


class Result:
    def __init__(self, value, count):
        self.value, self.count = value, count


for name, fn in {
    "complex number": lambda x: (x, complex(1, 2)), "namespace": lambda x: types.SimpleNamespace(a=x * 2, b=3), "class of one's own": lambda x: Result(x * 2, x.shape[1]),
    "tiny remainder": lambda x: (x * 1e-30) % -7e-31, "tiny floor division": lambda x: (x * 1e-30) // -7e-31, "running product": lambda x: x.cumprod(1), "vander": lambda x: torch.linalg.vander(x.tanh()),
    "fftfreq": lambda x: torch.fft.fftfreq(x.shape[1], d=0.5) + x, "rfftfreq": lambda x: torch.fft.rfftfreq(x.shape[1]) * x.sum(), "spectrum cut": lambda x: cut_spectrum(x),
}.items():
    row("edges", name, fn, X, largest=65)


def cut_spectrum(x):
    s = torch.fft.rfft(x)
    s[:, s.shape[1] // 2 :] = 0
    return torch.fft.irfft(s, n=x.shape[1])
# fmt: on
