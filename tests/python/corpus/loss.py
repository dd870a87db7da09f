"""Losses."""

import torch
import torch.nn.functional as F

from . import Case


def two(*shape, dtype=torch.float32):
    return lambda: (torch.randn(*shape).to(dtype), torch.randn(*shape).to(dtype))


def probabilities():
    return torch.rand(3, 4), torch.rand(3, 4).round()


def classes(*shape, ignored=False):
    def make():
        x = torch.randn(*shape)
        target = torch.randint(0, shape[1], (shape[0], *shape[2:]))
        if ignored:
            target.view(-1)[::3] = -100
        return x.log_softmax(1), target

    return make


NLL, NLL2 = "aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default"
MSE, SMOOTH, HUBER = "aten.mse_loss.default", "aten.smooth_l1_loss.default", "aten.huber_loss.default"
BCE, LOGITS = "aten.binary_cross_entropy.default", "aten.binary_cross_entropy_with_logits.default"
MARGIN = "aten.soft_margin_loss.default"
W = torch.tensor([0.5, 1.0, 2.0, 1.5])

CASES = [
    Case(MSE, F.mse_loss, two(3, 4)),
    Case(MSE, lambda x, y: F.mse_loss(x, y, reduction="none"), two(3, 4), "none"),
    Case(MSE, lambda x, y: F.mse_loss(x, y, reduction="sum"), two(3, 4, 5), "sum"),
    Case(MSE, F.mse_loss, two(3, 4, dtype=torch.float16), "float16", tolerance=1e-2),
    Case(MSE, lambda x, y: F.mse_loss(x[0], y[0]), two(3), "no dimensions"),
    Case(SMOOTH, F.smooth_l1_loss, two(3, 4)),
    Case(SMOOTH, lambda x, y: F.smooth_l1_loss(x, y, reduction="none", beta=0.3), two(3, 4), "none, beta"),
    Case(HUBER, F.huber_loss, two(3, 4)),
    Case(HUBER, lambda x, y: F.huber_loss(x, y, reduction="sum", delta=0.3), two(3, 4), "sum, delta"),
    Case(BCE, F.binary_cross_entropy, probabilities),
    Case(
        BCE,
        lambda x, y: F.binary_cross_entropy(x.round(), y, W, reduction="none"),
        probabilities,
        "saturated",
    ),
    Case(LOGITS, F.binary_cross_entropy_with_logits, lambda: (torch.randn(3, 4), torch.rand(3, 4))),
    Case(
        LOGITS,
        lambda x, y: F.binary_cross_entropy_with_logits(x * 100, y, W, pos_weight=W, reduction="sum"),
        lambda: (torch.randn(3, 4), torch.rand(3, 4)),
        "weights, large",
    ),
    Case(MARGIN, F.soft_margin_loss, lambda: (torch.randn(3, 4), torch.randn(3, 4).sign())),
    Case(NLL, F.nll_loss, classes(6, 4)),
    Case(NLL, lambda x, t: F.nll_loss(x, t, W), classes(6, 4, ignored=True), "weights, ignored"),
    Case(NLL, lambda x, t: F.nll_loss(x, t, reduction="none"), classes(6, 4, ignored=True), "none"),
    Case(NLL, lambda x, t: F.nll_loss(x, t, reduction="sum", ignore_index=2), classes(6, 4), "sum"),
    Case(NLL, lambda x, t: F.nll_loss(x[0], t[0]), classes(6, 4), "one sample"),
    Case(
        NLL,
        lambda x, t: F.cross_entropy(x, t, W, label_smoothing=0.1),
        classes(6, 4, ignored=True),
        "smoothed",
    ),
    Case(NLL2, F.nll_loss, classes(2, 4, 3, 5)),
    Case(NLL2, lambda x, t: F.nll_loss(x, t, W, reduction="none"), classes(2, 4, 3, 5, ignored=True), "none"),
    Case(NLL2, lambda x, t: F.cross_entropy(x, t, W), classes(2, 4, 3, 5, ignored=True), "cross entropy"),
]
