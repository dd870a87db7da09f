"""Softmax and attention."""

import torch
import torch.nn.functional as F

from . import Case


def f(*shape, dtype=torch.float32):
    return lambda: (torch.randn(*shape).to(dtype),)


def qkv(heads=3, keys=3, length=5, dtype=torch.float32):
    return lambda: (
        torch.randn(2, heads, length, 8).to(dtype),
        torch.randn(2, keys, 7, 8).to(dtype),
        torch.randn(2, keys, 7, 8).to(dtype),
    )


def masked(dtype=torch.bool, dead=False):
    def make():
        q, k, v = qkv()()
        mask = torch.rand(2, 1, 5, 7) > 0.4
        mask[..., 0] = True
        if dead:
            mask[:, :, 2] = False
        if dtype != torch.bool:
            mask = torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, float("-inf"))
        return q, k, v, mask

    return make


def infinite():
    x = torch.randn(3, 4, 5)
    x[1, 2] = float("-inf")
    x[0, 1, 2] = float("-inf")
    return (x,)


SDPA = "aten.scaled_dot_product_attention.default"
FLASH = "aten._scaled_dot_product_flash_attention_for_cpu.default"
flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
sdpa = F.scaled_dot_product_attention

CASES = [
    Case("aten._softmax.default", lambda x: F.softmax(x, -1), f(3, 4, 5)),
    Case("aten._softmax.default", lambda x: F.softmax(x, 0), f(3, 4), "first dimension"),
    Case("aten._softmax.default", lambda x: F.softmax(x * 50, 1), f(3, 4), "large"),
    Case("aten._softmax.default", lambda x: F.softmax(x[0, 0], 0), f(3, 4), "no dimensions"),
    Case(
        "aten._softmax.default",
        lambda x: F.softmax(x, -1, torch.float32),
        f(3, 4, dtype=torch.float16),
        "float16 to float32",
        tolerance=1e-3,
    ),
    Case("aten._log_softmax.default", lambda x: F.log_softmax(x, -1), f(3, 4, 5)),
    Case("aten._log_softmax.default", lambda x: F.log_softmax(x * 50, 0), f(3, 4), "large"),
    Case("aten._log_softmax.default", lambda x: F.log_softmax(x[0, 0], -1), f(3, 4), "no dimensions"),
    Case("aten._safe_softmax.default", lambda x: torch._safe_softmax(x, -1), infinite),
    Case("aten._safe_softmax.default", lambda x: torch._safe_softmax(x, 1), infinite, "other dimension"),
    Case("aten._safe_softmax.default", lambda x: torch._safe_softmax(x, -1, torch.float64), infinite, "dtype"),
    Case(SDPA, sdpa, qkv()),
    Case(SDPA, lambda q, k, v: sdpa(q, k, v, is_causal=True), qkv(length=7), "causal"),
    Case(SDPA, lambda q, k, v: sdpa(q, k, v, scale=0.3), qkv(), "scale"),
    Case(SDPA, lambda q, k, v: sdpa(q, k, v, enable_gqa=True), qkv(heads=4, keys=2), "grouped", fixed=True),
    Case(SDPA, sdpa, masked(), "mask"),
    Case(SDPA, sdpa, masked(dead=True), "row that sees nothing", fixed=True),
    Case(SDPA, sdpa, masked(torch.float32), "additive mask"),
    Case(SDPA, sdpa, masked(torch.float32, dead=True), "additive, row that sees nothing", fixed=True),
    Case(SDPA, sdpa, qkv(dtype=torch.float16), "float16", tolerance=1e-2),
    Case(SDPA, sdpa, qkv(dtype=torch.bfloat16), "bfloat16", tolerance=3e-2),
    Case(FLASH, lambda q, k, v: flash(q, k, v), qkv()),
    Case(FLASH, lambda q, k, v: flash(q, k, v, 0.0, True)[0], qkv(length=7), "causal"),
    Case(
        FLASH,
        lambda q, k, v, m: flash(q, k, v, attn_mask=m, scale=0.3)[0],
        masked(torch.float32),
        "mask",
    ),
]
