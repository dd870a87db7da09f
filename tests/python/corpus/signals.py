"""Windows of signals whose length follows a size, and what puts windows together again."""

import torch
import torch.nn.functional as F

from . import Case


def window(op, **options):
    made = getattr(torch, op.partition(".")[0])
    return [
        Case(f"aten.{op}", lambda x: x * made(x.shape[1], **options), lambda: (torch.randn(2, 9),)),
        Case(
            f"aten.{op}", lambda x: x * made(x.shape[1], **options), lambda: (torch.randn(2, 1),), "size 1", fixed=True
        ),
    ]


def there_and_back(x):
    w = torch.hann_window(16)
    return torch.istft(torch.stft(x, 16, 4, window=w, return_complex=True) * 2, 16, 4, window=w)


def unpooled(x):
    return F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)


def unpooled_volume(x):
    return F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2)


CASES = [
    *window("hann_window.default"),
    *window("hann_window.periodic", periodic=False),
    *window("hamming_window.default"),
    *window("hamming_window.periodic", periodic=False),
    *window("hamming_window.periodic_alpha", periodic=True, alpha=0.5),
    *window("hamming_window.periodic_alpha_beta", periodic=True, alpha=0.5, beta=0.4),
    *window("blackman_window.default"),
    *window("blackman_window.periodic", periodic=False),
    *window("bartlett_window.default"),
    *window("bartlett_window.periodic", periodic=False),
    *window("kaiser_window.default"),
    *window("kaiser_window.periodic", periodic=False),
    *window("kaiser_window.beta", periodic=False, beta=5.0),
    Case("aten.unfold_backward.default", there_and_back, lambda: (torch.randn(2, 64),)),
    Case("aten.max_unpool2d.default", unpooled, lambda: (torch.randn(1, 2, 6, 8),)),
    Case("aten.max_unpool3d.default", unpooled_volume, lambda: (torch.randn(1, 2, 4, 6, 8),)),
]
