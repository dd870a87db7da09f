"""Cases of rows that PyTorch takes apart before a recording sees them: reached in programs of torch.export, which keep
such operators whole.
"""

import math

import torch
import torch.nn.functional as F

from . import Case

a = torch.ops.aten
NAN, INF = math.nan, math.inf
HALF, DOUBLE, LONG = torch.float16, torch.float64, torch.int64


def f(*shapes, dtype=torch.float32):
    return lambda: tuple(torch.randn(*s).to(dtype) for s in shapes)


def c(*shape, dtype=torch.complex64):
    return lambda: (torch.randn(*shape, dtype=dtype),)


def case(op, fn, make, name="", **options):
    return Case(op, fn, make, name, traced=True, **options)


corners = lambda: (torch.tensor([[NAN, INF, -INF, 1.0, 0.0], [-1.0, 2.0, 3e38, -3e38, 1e-30]]),)  # noqa: E731
infinite = lambda: (torch.tensor([[-INF, 1.0, 2.0], [-INF, -INF, 3.0], [1e4, -1e4, 0.0]]),)  # noqa: E731
steps = lambda: (torch.randint(-9, 9, (3, 4)),)  # noqa: E731
bits = lambda: (torch.rand(3, 4) > 0.5,)  # noqa: E731

LINEAR, MATMUL, EINSUM = "aten.linear.default", "aten.matmul.default", "aten.einsum.default"
PRODUCTS = [
    case(LINEAR, F.linear, f((3, 4), (5, 4), (5,)), "bias"),
    case(LINEAR, F.linear, f((3, 4), (5, 4))),
    case(LINEAR, F.linear, f((2, 3, 6, 4), (5, 4), (5,)), "four dimensions"),
    case(LINEAR, F.linear, f((4,), (5, 4), (5,)), "vector"),
    case(LINEAR, F.linear, f((4,), (4,)), "vectors"),
    case(LINEAR, F.linear, f((0, 4), (5, 4)), "empty", fixed=True),
    case(LINEAR, F.linear, f((1, 1), (1, 1), (1,)), "size 1", fixed=True),
    case(LINEAR, F.linear, f((3, 4), (5, 4), (5,), dtype=HALF), "float16", tolerance=1e-2),
    case(LINEAR, F.linear, f((3, 4), (5, 4), dtype=DOUBLE), "float64"),
    case(LINEAR, lambda x, y: F.linear(x * 1e18, y), f((3, 4), (5, 4)), "large"),
    case(LINEAR, F.linear, lambda: (torch.randint(-9, 9, (3, 4)), torch.randint(-9, 9, (5, 4))), "int64"),
    case(MATMUL, torch.matmul, f((3, 4), (4, 5))),
    case(MATMUL, torch.matmul, f((4,), (4,)), "vectors"),
    case(MATMUL, torch.matmul, f((4,), (4, 5)), "vector and matrix"),
    case(MATMUL, torch.matmul, f((2, 3, 4), (4,)), "batch and vector"),
    case(MATMUL, torch.matmul, f((2, 1, 3, 4), (6, 4, 5)), "broadcast"),
    case(MATMUL, torch.matmul, f((0, 3, 4), (4, 5)), "empty", fixed=True),
    case(MATMUL, torch.matmul, f((3, 0), (0, 5)), "sum of nothing", fixed=True),
    case(MATMUL, torch.matmul, f((3, 4), (4, 5), dtype=HALF), "float16", tolerance=1e-2),
    case(MATMUL, torch.matmul, lambda: (torch.randint(-9, 9, (3, 4)), torch.randint(-9, 9, (4, 5))), "int64"),
    case(
        MATMUL, torch.matmul, lambda: (torch.tensor([[INF, 1.0], [NAN, 0.0]]), torch.ones(2, 3)), "infinite", fixed=True
    ),
    case(EINSUM, lambda x, y: torch.einsum("bij,bjk->bik", x, y), f((2, 3, 4), (2, 4, 5))),
    case(EINSUM, lambda x, y: torch.einsum("bhld,bhmd->bhlm", x, y), f((2, 3, 5, 4), (2, 3, 7, 4)), "attention"),
    case(EINSUM, lambda x, y: torch.einsum("...i,ij->...j", x, y), f((2, 3, 4), (4, 5)), "ellipsis"),
    case(EINSUM, lambda x, y: torch.einsum("i,j->ij", x, y), f((3,), (4,)), "outer"),
    case(EINSUM, lambda x, y: torch.einsum("bij,bij->", x, y), f((2, 3, 4), (2, 3, 4)), "to a number"),
    case(EINSUM, lambda x: torch.einsum("ij->ji", x), f((3, 4)), "transpose"),
    case(EINSUM, lambda x: torch.einsum("ij->j", x), f((3, 4)), "sum"),
    case(EINSUM, lambda x: torch.einsum("ii->i", x), f((4, 4)), "diagonal"),
    case(EINSUM, lambda x, y: torch.einsum("ij,jk", x, y), f((3, 4), (4, 5)), "no arrow"),
    case(EINSUM, lambda x, y: torch.einsum("bd,bd->b", x, y), f((3, 1), (3, 4)), "broadcast"),
    case(EINSUM, lambda x, y, z: torch.einsum("ij,jk,kl->il", x, y, z), f((3, 4), (4, 5), (5, 2)), "three"),
    case(EINSUM, lambda x, y: torch.einsum("ij,jk->ik", x, y), f((3, 4), (4, 5), dtype=HALF), "float16", tolerance=1e-2),
    case(
        EINSUM,
        lambda x, y: torch.einsum("ij,jk->ik", x, y),
        lambda: (torch.randint(-9, 9, (3, 4)), torch.randint(-9, 9, (4, 5))),
        "int64",
    ),
]  # fmt: skip

SOFTMAX, LOG_SOFTMAX = "aten.softmax.int", "aten.log_softmax.int"
NORMS = [
    *[
        each
        for op, fn in ((SOFTMAX, F.softmax), (LOG_SOFTMAX, F.log_softmax))
        for each in (
            case(op, lambda x, fn=fn: fn(x, -1), f((3, 4, 5))),
            case(op, lambda x, fn=fn: fn(x, 0), f((3, 4)), "first dimension"),
            case(op, lambda x, fn=fn: fn(x * 1e4, 1), f((3, 4)), "large"),
            case(op, lambda x, fn=fn: fn(x, -1), infinite, "infinite"),
            case(op, lambda x, fn=fn: fn(x, -1), f((3, 4), dtype=HALF), "float16", tolerance=1e-2),
            case(op, lambda x, fn=fn: fn(x, -1, dtype=torch.float32), f((3, 4), dtype=HALF), "dtype", tolerance=1e-3),
            case(op, lambda x, fn=fn: fn(x, -1, dtype=torch.float32), steps, "int64 to float32"),
            case(op, lambda x, fn=fn: fn(x, -1), f((0, 4)), "empty", fixed=True),
            case(op, lambda x, fn=fn: fn(x, -1), f((3, 1)), "size 1", fixed=True),
            case(op, lambda x, fn=fn: fn(x.sum(), 0), f((3, 4)), "no dimensions"),
        )
    ],
    case("aten.batch_norm.default", lambda x, m, v: F.batch_norm(x, m, v.abs() + 0.1), f((2, 3, 4), (3,), (3,))),
    case(
        "aten.batch_norm.default",
        lambda x, m, v, w, b: F.batch_norm(x, m, v.abs() + 0.1, w, b, eps=1e-3),
        f((2, 3, 4, 5), (3,), (3,), (3,), (3,)),
        "weight and bias",
    ),
    case("aten.batch_norm.default", lambda x, m, v: F.batch_norm(x, m, v.abs() + 1), f((5, 3), (3,), (3,)), "2-d"),
    case(
        "aten.batch_norm.default",
        lambda x, m, v: F.batch_norm(x, m, v.abs() + 1),
        f((2, 3, 4), (3,), (3,), dtype=HALF),
        "float16",
        tolerance=1e-2,
    ),
    case("aten.batch_norm.default", lambda x: F.batch_norm(x, None, None, training=True), f((4, 3, 5)), "own figures"),
]

# ---- windows ---------------------------------------------------------------------------------------------

pool = lambda dims, kind: getattr(F, f"{kind}_pool{dims}d")  # noqa: E731
SPACE = {1: (9,), 2: (8, 9), 3: (5, 6, 7)}
WINDOWS = []
for dims, size in SPACE.items():
    image, name = (2, 3, *size), f"aten.max_pool{dims}d.default"
    largest, mean = pool(dims, "max"), pool(dims, "avg")
    WINDOWS += [
        case(name, lambda x, fn=largest: fn(x, 2), f(image)),
        case(name, lambda x, fn=largest: fn(x, 3, 2, 1, 2), f(image), "padded, dilated"),
        case(name, lambda x, fn=largest: fn(x, 3, 2, 1, ceil_mode=True), f(image), "ceil"),
        case(name, lambda x, fn=largest: fn(x, 2), f(image[1:]), "without batch"),
        case(name, lambda x, fn=largest: fn(x, 2, padding=1), f(image, dtype=HALF), "float16"),
        case(name, lambda x, fn=largest: fn(x, 1), f((1, 1, *[1] * dims)), "size 1", fixed=True),
        case(name, lambda x, fn=largest: fn(torch.where(x > 5, INF, x), 3, 1, 1), f(image), "infinite"),
        case(
            name,
            lambda x, fn=largest: fn(torch.where(x > INF, x, -INF), 3, 1, 1),
            f(image),
            "windows of -inf alone",
            differs="are NaN or infinite on one side only",  # ONNX Runtime starts from the lowest number
        ),
        case(f"aten.adaptive_avg_pool{dims}d.default", lambda x, k=dims: pool(k, "adaptive_avg")(x, 3), f(image)),
        case(
            f"aten.adaptive_avg_pool{dims}d.default",
            lambda x, k=dims: pool(k, "adaptive_avg")(x, 1),
            f(image[1:]),
            "one, without batch",
        ),
        case(
            f"aten.adaptive_avg_pool{dims}d.default",
            lambda x, k=dims: pool(k, "adaptive_avg")(x, 4),
            f(image, dtype=HALF),
            "float16",
            tolerance=1e-2,
        ),
    ]
WINDOWS += [
    case("aten.avg_pool1d.default", lambda x: F.avg_pool1d(x, 2), f((2, 3, 9))),
    case("aten.avg_pool1d.default", lambda x: F.avg_pool1d(x, 3, 2, 1, True, False), f((2, 3, 10)), "ceil, not counted"),
    case("aten.avg_pool1d.default", lambda x: F.avg_pool1d(x, 2), f((3, 9), dtype=HALF), "float16", tolerance=1e-2),
    case("aten.adaptive_max_pool1d.default", lambda x: F.adaptive_max_pool1d(x, 4, True), f((2, 3, 9)), "indices"),
    case("aten.adaptive_max_pool1d.default", lambda x: F.adaptive_max_pool1d(x, 5), f((3, 9), dtype=HALF), "float16"),
    case("aten.max_pool1d_with_indices.default", lambda x: F.max_pool1d(x, 3, 2, 1, return_indices=True), f((2, 3, 9))),
    case(
        "aten.max_pool1d_with_indices.default",
        lambda x: F.max_pool1d(x, 3, 2, 1, 2, True, True),
        f((3, 10)),
        "ceil, dilated, without batch",
    ),
    case("aten._convolution.deprecated", *(
        lambda x, w: a._convolution.deprecated(x, w, None, [2], [1], [1], False, [0], 1, False, False, False),
        f((2, 4, 9), (6, 4, 3)),
    )),
    case("aten._convolution.deprecated", *(
        lambda x, w: a._convolution.deprecated(x, w, None, [1], [0], [1], True, [0], 1, False, False, False),
        f((2, 4, 9), (4, 6, 3)),
    ), name="transposed"),
    case("aten.native_channel_shuffle.default", lambda x: a.native_channel_shuffle(x, 2), f((2, 6, 4, 5)), fixed=True),
    case("aten.native_channel_shuffle.default", lambda x: a.native_channel_shuffle(x, 3), f((2, 6, 4), dtype=HALF), "3-d", fixed=True),
]  # fmt: skip

PAD = "aten.pad.default"
PADS = [
    case(PAD, lambda x: F.pad(x, (1, 2)), f((3, 4))),
    case(PAD, lambda x: F.pad(x, (1, 2, 0, 3), value=1.5), f((2, 3, 4)), "value"),
    case(PAD, lambda x: F.pad(x, (-1, 2)), f((3, 4)), "negative"),
    case(PAD, lambda x: F.pad(x, (1, 1), value=-INF), f((3, 4), dtype=HALF), "infinity, float16"),
    case(PAD, lambda x: F.pad(x, (1, 1), value=7), steps, "int64"),
    case(PAD, lambda x: F.pad(x, (1, 1), value=True), bits, "bool"),
    case(PAD, lambda x: F.pad(x, (1, 1)), f((0, 4)), "empty", fixed=True),
    case(PAD, lambda x: F.pad(x, (2, 1), "reflect"), f((2, 3, 6)), "reflect"),
    case(PAD, lambda x: F.pad(x, (2, 1, 0, 3), "reflect"), f((2, 3, 6, 7)), "reflect, two dimensions"),
    case(PAD, lambda x: F.pad(x, (2, 8), "replicate"), f((2, 3, 6)), "replicate"),
    case(PAD, lambda x: F.pad(x, (2, 1), "circular"), f((2, 3, 6)), "circular"),
    case("aten._pad_circular.default", lambda x: a._pad_circular(x, [2, 1]), f((2, 3, 6))),
    case("aten._pad_circular.default", lambda x: a._pad_circular(x, [2, 1, 0, 3]), f((2, 3, 6, 7)), "two dimensions"),
    case("aten._pad_circular.default", lambda x: a._pad_circular(x, [1, 1]), f((3, 6), dtype=HALF), "float16"),
]

# ---- interpolation ---------------------------------------------------------------------------------------

MODES = {
    "aten.upsample_nearest1d.vec": ("nearest", 1),
    "aten.upsample_nearest2d.vec": ("nearest", 2),
    "aten.upsample_nearest3d.vec": ("nearest", 3),
    "aten._upsample_nearest_exact1d.vec": ("nearest-exact", 1),
    "aten._upsample_nearest_exact2d.vec": ("nearest-exact", 2),
    "aten._upsample_nearest_exact3d.vec": ("nearest-exact", 3),
    "aten.upsample_linear1d.vec": ("linear", 1),
    "aten.upsample_bilinear2d.vec": ("bilinear", 2),
    "aten.upsample_trilinear3d.vec": ("trilinear", 3),
    "aten.upsample_bicubic2d.vec": ("bicubic", 2),
}
RESIZES = []
for op, (mode, dims) in MODES.items():
    image = (2, 3, *(6, 7, 5)[:dims])
    resize = lambda x, m=mode, **given: F.interpolate(x, mode=m, **given)  # noqa: E731
    RESIZES += [
        case(op, lambda x, r=resize: r(x, scale_factor=2), f(image), "double"),
        case(op, lambda x, r=resize, k=dims: r(x, size=(9, 4, 8)[:k]), f(image), "size"),
        case(op, lambda x, r=resize, k=dims: r(x, size=(1, 1, 1)[:k]), f(image), "one"),
        case(op, lambda x, r=resize: r(x, scale_factor=1.7), f(image), "uneven", fixed=True),
    ]
    if dims < 3 and mode != "bicubic":
        half = lambda x, r=resize: r(x, scale_factor=2)  # noqa: E731
        RESIZES.append(case(op, half, f(image, dtype=HALF), "float16", tolerance=1e-2))
    if mode.endswith(("linear", "cubic")):
        RESIZES.append(
            case(op, lambda x, r=resize, k=dims: r(x, size=(9, 4, 8)[:k], align_corners=True), f(image), "corners")
        )
for op, mode in (("aten._upsample_bilinear2d_aa.vec", "bilinear"), ("aten._upsample_bicubic2d_aa.vec", "bicubic")):
    resize = lambda x, m=mode, **given: F.interpolate(x, mode=m, antialias=True, **given)  # noqa: E731
    RESIZES += [
        case(op, lambda x, r=resize: r(x, size=(3, 4)), f((2, 3, 6, 7)), "smaller"),
        case(op, lambda x, r=resize: r(x, size=(9, 4)), f((2, 3, 6, 7)), "one larger"),
        case(op, lambda x, r=resize: r(x, scale_factor=0.6), f((2, 3, 6, 7)), "scale", fixed=True),
    ]

# ---- types and complex numbers -----------------------------------------------------------------------------

CASTS = [
    case("aten.to.dtype", lambda x: x.to(torch.int32), f((3, 4))),
    case("aten.to.dtype", lambda x: x.to(torch.bool), corners, "nan and infinity to bool"),
    case("aten.to.dtype", lambda x: x.to(HALF), f((3, 4)), "to float16"),
    case("aten.to.dtype", lambda x: x.to(torch.float32), bits, "from bool"),
    case("aten.to.dtype", lambda x: x.to(torch.uint8), lambda: (torch.tensor([-1, 256, 300, 7]),), "wraps"),
    case("aten.to.dtype", lambda x: x.to(LONG), f((0, 4)), "empty", fixed=True),
    case("aten.to.dtype_layout", lambda x: a.to.dtype_layout(x, dtype=DOUBLE, device="cpu"), f((3, 4))),
    case(
        "aten.to.dtype_layout", lambda x: a.to.dtype_layout(x, dtype=torch.bool, device="cpu"), steps, "int64 to bool"
    ),
    case("aten.to.device", lambda x: a.to.device(x, "cpu", torch.int64), f((3, 4))),
    case("aten.to.device", lambda x: a.to.device(x, "cpu", torch.float32), bits, "from bool"),
    case("aten.to.other", lambda x, y: a.to.other(x, y), lambda: (torch.randn(3, 4), torch.arange(3))),
    case("aten.to.other", lambda x, y: a.to.other(x, y), lambda: (torch.arange(4), torch.rand(3).half()), "to float16"),
    case("aten.conj.default", lambda x: torch.view_as_real(a.conj(x).resolve_conj()), c(3, 4)),
    case("aten.conj.default", lambda x: a.conj(x) + 1, f((3, 4)), "real"),
    case("aten.conj_physical.default", lambda x: torch.view_as_real(torch.conj_physical(x)), c(3, 4)),
    case("aten.conj_physical.default", lambda x: torch.conj_physical(x) + 1, f((3, 4)), "real"),
    case("aten.resolve_conj.default", lambda x: torch.view_as_real((x * 2).conj().resolve_conj()), c(3, 4)),
    case("aten.resolve_conj.default", lambda x: torch.resolve_conj(x) + 1, f((3, 4)), "real"),
    case("aten.resolve_neg.default", lambda x: torch.resolve_neg(x) + 1, f((3, 4))),
    case("aten.resolve_neg.default", lambda x: torch.resolve_neg(x.conj().imag) + 1, c(3, 4), "of a conjugate"),
    case("aten.real.default", lambda x: torch.real(x * 2) + 1, c(3, 4)),
    case("aten.real.default", lambda x: torch.real(x) + 1, f((3, 4)), "real"),
    case("aten.imag.default", lambda x: torch.imag(x * 2) + 1, c(3, 4)),
    case("aten.imag.default", lambda x: torch.imag(x * 2) + 1, c(3, 4, dtype=torch.complex128), "complex128"),
]

# ---- what eager PyTorch does not execute by itself -----------------------------------------------------------

LEGIT, RMS = "aten._native_batch_norm_legit.default", "aten._fused_rms_norm.default"


def legit(x, mean, var, *affine):
    weight, bias = affine or (None, None)
    return a._native_batch_norm_legit(x, weight, bias, mean, var.abs() + 0.1, False, 0.1, 1e-5)[0]


INSIDE = [
    case(LEGIT, legit, f((2, 3, 4), (3,), (3,))),
    case(LEGIT, legit, f((2, 3, 4, 5), (3,), (3,), (3,), (3,)), "weight and bias"),
    case(LEGIT, legit, f((2, 3, 4), (3,), (3,), dtype=HALF), "float16", tolerance=1e-2),
    case(RMS, lambda x, w: a._fused_rms_norm(x, [x.shape[-1]], w, 1e-5)[0], f((2, 3, 4), (4,))),
    case(
        RMS, lambda x: a._fused_rms_norm(x, [x.shape[-2], x.shape[-1]], None, 1e-5)[0], f((2, 3, 4)), "two dimensions"
    ),
    case(
        RMS, lambda x, w: a._fused_rms_norm(x, [4], w, 1e-5)[0], f((3, 4), (4,), dtype=HALF), "float16", tolerance=1e-2
    ),
    case("aten._neg_view.default", lambda x: a._neg_view(x) + 1, f((3, 4))),
    case("aten.lift_fresh_copy.default", lambda x: x + torch.tensor([1.0, 2.0, NAN, -INF]), f((3, 4))),
    case("aten.lift_fresh_copy.default", lambda x: x * torch.tensor(3), steps, "int64"),
    case("aten.lift_fresh_copy.default", lambda x: a.lift_fresh_copy(x), bits, "bool"),
    case("aten._neg_view.default", lambda x: torch.view_as_real(a._neg_view(x) * 2), c(3, 4), "complex"),
]

CASES = INSIDE + PRODUCTS + NORMS + WINDOWS + PADS + RESIZES + CASTS
