"""Quantized layers of torch.ao, whose weights are packed for one kernel: recorded as arithmetic on whole numbers.

1. A quantized tensor is recorded as the whole numbers that it stores, in floats, which add and multiply them exactly;
   the scale and the zero point that go with it are remembered here.
2. A layer is the same layer over these numbers, multiplied, rounded and clipped as PyTorch's kernels do it.
3. What is not in the tables here is refused by name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from fairlead._core import Unsupported

PACKED = ("torch.ao.nn.quantized.", "torch.ao.nn.intrinsic.quantized.", "torch.nn.quantized.")
# Modules of torch.ao that compute by operators of the tables below, by the name of their class.
MODULES = {
    "Linear", "LinearPackedParams", "LinearReLU", "Conv1d", "Conv2d", "Conv3d", "ConvReLU1d", "ConvReLU2d",
    "ConvReLU3d",
    "Quantize", "DeQuantize", "QFunctional", "FXFloatFunctional", "ReLU6", "Hardswish", "LeakyReLU", "Sigmoid",
    "BatchNorm2d", "BatchNorm3d", "BNReLU2d", "BNReLU3d",
}  # fmt: skip
RANGES = {torch.quint8: (0, 255), torch.qint8: (-128, 127), torch.qint32: (-(2**31), 2**31 - 1)}


def is_packed(module: torch.nn.Module) -> bool:
    where = str(type(module).__module__)
    return where.startswith(PACKED) and ".reference." not in where


@dataclass
class Stored:
    """What a tensor of whole numbers stands for: (number - zero) * scale."""

    tensor: Any
    scale: float
    zero: int
    dtype: torch.dtype

    @property
    def steps(self) -> Any:
        return self.tensor - self.zero if self.zero else self.tensor

    @property
    def value(self) -> Any:
        return self.steps * self.scale


class Quantized(TorchFunctionMode):
    """While it is on, quantized tensors are recorded as the numbers that they store."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[int, Stored] = {}
        self.weights: dict[int, tuple[Any, ...]] = {}
        self.factors: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        form = FORMS.get(name_of(func))
        if form is not None:
            return form(self, *args, **kwargs)
        first = args[0] if args else kwargs.get("input")
        stored = self.stored(first[0] if isinstance(first, (list, tuple)) and first else first)
        if stored is None:
            return func(*args, **kwargs)
        name = name_of(func)
        if name in KEEPS:
            return self.remember(func(*args, **kwargs), stored.scale, stored.zero, stored.dtype)
        if name in AVERAGES:  # of the numbers, zero points and all: which way a half goes follows them
            numbers = func(stored.tensor, *args[1:], **kwargs).round()
            return self.remember(numbers, stored.scale, stored.zero, stored.dtype)
        if name in COMPUTED:
            scale, zero = COMPUTED[name] or (stored.scale, stored.zero)
            return self.quantized(func(stored.value, *args[1:], **kwargs), scale, zero, stored.dtype)
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor):
            raise Unsupported(
                f"[record] Expected operators on quantized tensors that have a form in a file, got {name}. Dequantize "
                "before it and quantize after it, or quantize the file of the float model instead."
            )
        return result

    def stored(self, tensor: Any) -> Stored | None:
        return self.known.get(id(tensor)) if isinstance(tensor, torch.Tensor) else None

    def needed(self, tensor: Any) -> Stored:
        stored = self.stored(tensor)
        if stored is None:
            raise Unsupported("[record] Expected a quantized tensor, got one whose scale is not known.")
        return stored

    def remember(self, tensor: Any, scale: float, zero: int, dtype: torch.dtype) -> Any:
        if isinstance(tensor, (tuple, list)):
            return type(tensor)(self.remember(each, scale, zero, dtype) for each in tensor)
        self.known[id(tensor)] = Stored(tensor, scale, zero, dtype)
        return tensor

    def clipped(self, numbers: Any, scale: float, zero: int, dtype: torch.dtype, relu: bool = False) -> Any:
        least, most = RANGES[dtype]
        return self.remember(numbers.clamp(max(least, zero) if relu else least, most), scale, zero, dtype)

    def quantized(self, value: Any, scale: float, zero: int, dtype: torch.dtype, relu: bool = False) -> Any:
        return self.clipped((value * inverse(scale)).round() + float(zero), scale, zero, dtype, relu)

    def unpacked(self, packed: Any, unpack: Callable[[Any], tuple[Any, Any]]) -> tuple[Any, Any, Any]:
        """Weights as whole numbers, their scales (by row), the bias: the same tensors in every run."""
        found = self.weights.get(id(packed))
        if found is None:
            with torch._C._DisableTorchDispatch():
                weight, bias = unpack(packed)
                numbers = weight.int_repr().float()
                rows = [-1] + [1] * (weight.dim() - 1)
                if weight.qscheme() in (torch.per_channel_affine, torch.per_channel_symmetric):
                    scales = weight.q_per_channel_scales().float()
                    numbers = numbers - weight.q_per_channel_zero_points().float().reshape(rows)
                else:
                    scales = torch.full((weight.shape[0],), weight.q_scale())
                    numbers = numbers - weight.q_zero_point()
                bias = None if bias is None else bias.detach().clone()
            found = self.weights[id(packed)] = (packed, numbers.contiguous(), scales, bias)
        return found[1], found[2], found[3]


def name_of(func: Any) -> str:
    name = getattr(func, "__name__", "") or str(func)
    space = getattr(func, "_qualified_op_name", "") or str(getattr(func, "__module__", ""))
    return f"quantized.{name.partition('.')[0]}" if "quantized" in space else name.rstrip("_").removeprefix("__")


def inverse(scale: float) -> float:
    """As the kernels have it, in float32."""
    return float(torch.tensor(1.0, dtype=torch.float32).item() / torch.tensor(scale, dtype=torch.float32).item())


# Operators that move numbers, or choose among them.
KEEPS = {
    "view", "reshape", "flatten", "unflatten", "permute", "transpose", "t", "unsqueeze", "squeeze", "contiguous",
    "clone", "detach", "getitem", "select", "narrow", "chunk", "split", "unbind", "expand", "repeat", "movedim",
    "max_pool1d", "max_pool2d", "max_pool3d", "boolean_dispatch", "dropout", "pixel_shuffle", "channel_shuffle",
    "flip", "roll", "max_pool1d_with_indices", "index_select", "amax", "identity",
}  # fmt: skip
AVERAGES = {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool1d", "avg_pool2d",
            "avg_pool3d", "mean", "interpolate", "upsample", "upsample_nearest1d", "upsample_nearest2d",
            "upsample_nearest3d", "upsample_bilinear2d"}  # fmt: skip
# Computed in floats and quantized again; with the scale and zero point that PyTorch has for all of them.
COMPUTED: dict[str, tuple[float, int] | None] = {
    "sigmoid": (1 / 256, 0), "tanh": (2 / 256, 128), "hardsigmoid": (1 / 256, 0), "hardswish": None,
    "leaky_relu": None, "elu": None, "threshold": None,
}  # fmt: skip


def quantize(mode: Quantized, x: Any, scale: Any, zero_point: Any, dtype: torch.dtype) -> Any:
    return mode.quantized(x, number(scale), int(number(zero_point)), dtype)


def number(value: Any) -> float:
    if not isinstance(value, torch.Tensor):
        return float(value)
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
        return float(value)


def relu(mode: Quantized, x: Any, *args: Any, **kwargs: Any) -> Any:
    stored = mode.stored(x)
    if stored is None:
        return torch.relu(x)
    return mode.remember(x.clamp(min=float(stored.zero)), stored.scale, stored.zero, stored.dtype)


def hardtanh(mode: Quantized, x: Any, min_val: float = -1.0, max_val: float = 1.0, *args: Any, **kwargs: Any) -> Any:
    stored = mode.stored(x)
    if stored is None:
        return F.hardtanh(x, min_val, max_val)
    low, high = RANGES[stored.dtype]
    ends = [min(max(round(end / stored.scale) + stored.zero, low), high) for end in (min_val, max_val)]
    return mode.remember(x.clamp(*map(float, ends)), stored.scale, stored.zero, stored.dtype)


def pooled(axes: int) -> Callable[..., Any]:
    """Averages of everything, by the inverse of the count in float32, as the kernels have them."""

    def form(mode: Quantized, x: Any, output_size: Any) -> Any:
        stored, pool = mode.stored(x), getattr(F, f"adaptive_avg_pool{axes}d")
        whole = output_size == 1 or list(output_size if isinstance(output_size, (list, tuple)) else [0]) == [1] * axes
        if stored is None:
            return pool(x, output_size)
        if not whole:
            return mode.remember(pool(stored.tensor, output_size).round(), stored.scale, stored.zero, stored.dtype)
        count: Any = 1
        for size in x.shape[-axes:]:
            count = count * size
        total = stored.tensor.sum(tuple(range(-axes, 0)), keepdim=True)
        return mode.remember((total * (1.0 / count)).round(), stored.scale, stored.zero, stored.dtype)

    return form


def dequantize(mode: Quantized, x: Any) -> Any:
    stored = mode.stored(x)
    return x if stored is None else stored.value


def requantized(
    mode: Quantized, total: Any, x: Stored, scales: Any, bias: Any, to: tuple[float, int], relu: bool, axes: int
) -> Any:
    """Sums of products as the kernels scale them, in float32."""
    with torch._C._DisableTorchDispatch():
        key = (id(scales), x.scale, to)
        made = mode.factors.get(key)
        if made is None:
            both, shape = scales * x.scale, [-1] + [1] * axes
            offset = None if bias is None else (bias / both).reshape(shape)
            made = mode.factors[key] = ((both / to[0]).reshape(shape), offset)
    if made[1] is not None:
        total = total + made[1]
    # The zero point is added before: which way a half goes follows the sum.
    numbers = (total * made[0] + float(to[1])).round()
    return mode.clipped(numbers, to[0], to[1], x.dtype, relu)


def linear(mode: Quantized, x: Any, packed: Any, scale: Any, zero_point: Any, relu: bool = False) -> Any:
    stored = mode.needed(x)
    weight, scales, bias = mode.unpacked(packed, torch.ops.quantized.linear_unpack)
    total = F.linear(stored.steps, weight)
    return requantized(mode, total, stored, scales, bias, (float(scale), int(zero_point)), relu, 0)


def convolution(axes: int, relu: bool) -> Callable[..., Any]:
    def conv(mode: Quantized, x: Any, packed: Any, scale: Any, zero_point: Any) -> Any:
        stored = mode.needed(x)
        weight, scales, bias = mode.unpacked(packed, getattr(torch.ops.quantized, f"conv{axes}d_unpack"))
        last = slice(-axes, None)
        total = getattr(F, f"conv{axes}d")(
            stored.steps, weight, None, packed.stride()[last], packed.padding()[last], packed.dilation()[last],
            packed.groups(),
        )  # fmt: skip
        return requantized(mode, total, stored, scales, bias, (float(scale), int(zero_point)), relu, axes)

    return conv


def dynamic(mode: Quantized, x: Any, packed: Any, reduce_range: bool = False, relu: bool = False) -> Any:
    """Scale and zero point of all of the input, as the kernels choose them, in double."""
    weight, scales, bias = mode.unpacked(packed, torch.ops.quantized.linear_unpack)
    top = 127 if reduce_range else 255
    low, high = x.amin().double().clamp(max=0.0), x.amax().double().clamp(min=0.0)
    scale = (high - low) / top
    tiny = (scale.float() == 0) | torch.isinf(1.0 / scale)
    scale = torch.where(tiny, torch.full_like(scale, 0.1), scale)
    from_low, from_high = -(low / scale), top - high / scale
    nearer = (low / scale).abs() < top + (high / scale).abs()
    zero = torch.where(nearer, from_low, from_high).round().clamp(0, top).float()
    small = scale.float()
    numbers = (x * (1.0 / small)).round() + zero
    total = F.linear(numbers.clamp(0, 255) - zero, weight)
    out = total * (scales * small)
    if bias is not None:
        out = out + bias
    return out.relu() if relu else out


def half(mode: Quantized, x: Any, packed: Any) -> Any:
    found = mode.weights.get(id(packed))
    if found is None:
        with torch._C._DisableTorchDispatch():
            weight, bias = packed.unpack()
            found = mode.weights[id(packed)] = (packed, weight.float(), bias)
    return F.linear(x, found[1], found[2])


def two(compute: Callable[[Any, Any], Any], relu: bool = False) -> Callable[..., Any]:
    def form(mode: Quantized, x: Any, y: Any, scale: Any, zero_point: Any) -> Any:
        one, other = mode.needed(x), mode.needed(y)
        return mode.quantized(compute(one.value, other.value), float(scale), int(zero_point), one.dtype, relu)

    return form


def cat(mode: Quantized, parts: list[Any], dim: int = 0, scale: Any = None, zero_point: Any = None) -> Any:
    every = [mode.needed(part) for part in parts]
    if scale is None:
        scale, zero_point = every[0].scale, every[0].zero
    return mode.quantized(torch.cat([e.value for e in every], dim), float(scale), int(zero_point), every[0].dtype)


def joined(mode: Quantized, parts: Any, dim: int = 0, **kwargs: Any) -> Any:
    """torch.cat: the scale is that of the first."""
    first = mode.stored(parts[0]) if len(parts) else None
    if first is None:
        return torch.cat(parts, dim, **kwargs)
    return cat(mode, parts, dim)


def computed(compute: Callable[..., Any]) -> Callable[..., Any]:
    def form(mode: Quantized, x: Any, *args: Any, **kwargs: Any) -> Any:
        scale = kwargs.pop("output_scale", kwargs.pop("scale", None))
        zero = kwargs.pop("output_zero_point", kwargs.pop("zero_point", None))
        if scale is None:
            *args, scale, zero = args  # type: ignore[assignment]
        stored = mode.needed(x)
        return mode.quantized(compute(stored.value, *args), float(scale), int(zero), stored.dtype)

    return form


def batch_norm(relu: bool) -> Callable[..., Any]:
    def form(
        mode: Quantized, x: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: float, scale: Any, zero: Any
    ) -> Any:
        stored = mode.needed(x)
        value = F.batch_norm(stored.value, mean, var, weight, bias, False, 0.0, eps)
        return mode.quantized(value, float(scale), int(zero), stored.dtype, relu)

    return form


FORMS: dict[str, Callable[..., Any]] = {
    "quantize_per_tensor": quantize, "dequantize": dequantize, "relu": relu, "hardtanh": hardtanh,
    "relu6": lambda mode, x, *args, **kwargs: hardtanh(mode, x, 0.0, 6.0), "cat": joined,
    **{f"adaptive_avg_pool{n}d": pooled(n) for n in (1, 2, 3)},
    "quantized.linear": linear,
    "quantized.linear_relu": functools.partial(linear, relu=True),
    "quantized.linear_dynamic": dynamic, "quantized.linear_dynamic_fp16": half,
    "quantized.linear_relu_dynamic": functools.partial(dynamic, relu=True),
    **{f"quantized.conv{n}d": convolution(n, False) for n in (1, 2, 3)},
    **{f"quantized.conv{n}d_relu": convolution(n, True) for n in (1, 2, 3)},
    "quantized.add": two(lambda x, y: x + y), "quantized.add_relu": two(lambda x, y: x + y, True),
    "quantized.mul": two(lambda x, y: x * y), "quantized.mul_relu": two(lambda x, y: x * y, True),
    "quantized.matmul": two(torch.matmul), "quantized.cat": cat,
    "quantized.hardswish": computed(F.hardswish), "quantized.sigmoid": computed(torch.sigmoid),
    "quantized.leaky_relu": computed(lambda x, slope, inplace=False: F.leaky_relu(x, slope)),
    **{f"quantized.batch_norm{n}d": batch_norm(False) for n in (2, 3)},
    **{f"quantized.batch_norm{n}d_relu": batch_norm(True) for n in (2, 3)},
}  # fmt: skip
