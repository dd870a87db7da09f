"""What the core is told about an operator, read once from its schema.

Fields of a definition: name, functional name (for operators that write), parameters with defaults, position of the
first written argument, whether the functional form drops it (out= variants), how results alias arguments, whether it
draws random numbers, whether its first argument's strides matter, how many arguments are written (-1: what it returns
is not what it writes).
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import torch

from fairlead import _core
from fairlead._core import SizeInt

NEVER, VIEW, OBSERVED = 0, 1, 2

# Operators that change only what a tensor looks like: a view that takes the tensor's place.
RESHAPED_IN_PLACE = {"unsqueeze_", "squeeze_", "transpose_", "t_", "swapaxes_", "swapdims_", "as_strided_"}

# as_strided_ is seen when it has already changed the strides: its tensor is taken to have been contiguous.
NEEDS_STRIDES = {"as_strided", "as_strided_copy", "as_strided_scatter"}


# Operators that draw numbers, and write them down, in training alone, which lowering refuses.
ONLY_IN_TRAINING = {"rrelu_with_noise"}


def define(func: Any) -> tuple[Any, ...]:
    """The definition of an OpOverload, or of a function that is kept whole."""
    if isinstance(func, Kept):
        return (func.name, "", func.params, -1, False, func.alias, False, False, 1)
    schema = func._schema
    base = schema.name.split("::")[1]
    drawn = base not in ONLY_IN_TRAINING
    params = [(a.name, a.has_default_value(), default_of(a)) for a in schema.arguments]
    name = f"{schema.name.replace('::', '.')}.{schema.overload_name or 'default'}"
    written = [
        k for k, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write and drawn
    ]
    alias = VIEW if any(r.alias_info is not None for r in schema.returns) and not written else NEVER
    if base in RESHAPED_IN_PLACE:
        name = name.replace(f".{base}.", f".{base[:-1]}.").replace("transpose.default", "transpose.int")
        return (name, "", params, -1, False, VIEW, False, base in NEEDS_STRIDES, 1)
    functional, drops, count = "", False, 1
    if written:
        returned = [r for r in schema.returns if r.alias_info is not None and r.alias_info.is_write]
        count = len(written) if len(schema.returns) == len(returned) == len(written) else -1
        functional, drops = functional_form(func, schema, name)
    # The chance in kernels of attention is their dropout, which lowering refuses.
    random = torch.Tag.nondeterministic_seeded in func.tags and "attention" not in base and drawn
    return (
        name,
        functional,
        params,
        written[0] if written else -1,
        drops,
        alias,
        random,
        base in NEEDS_STRIDES,
        count,
    )


_PARTS: dict[Any, Any] = {}  # by operator
_KNOWN: set[str] = set()  # operators with a row


def parts_of(func: Any) -> Any:
    """What an operator that no file has is executed as: gradients by PyTorch's own decompositions, and composites,
    which come whole where a function of PyTorch's is run below autograd. None: as it is."""
    if func in _PARTS:
        return _PARTS[func]
    if not _KNOWN:
        _KNOWN.update(name for name, _, _ in _core.operator_rows())
    found = None
    if isinstance(func, torch._ops.OpOverload) and func.namespace == "aten" and not func._schema.is_mutable:
        name = f"aten.{func._schema.name.removeprefix('aten::')}.{func._overloadname}"
        if name not in _KNOWN and "_backward" in func._schema.name:
            found = torch._decomp.decomposition_table.get(func)
        if name not in _KNOWN and found is None and func._can_decompose():
            found = func.decompose
    _PARTS[func] = found
    return found


# What schemas write as numbers; as a number it would be taken for a size of 4.
TYPES = {4: torch.int64, 6: torch.float32, 7: torch.float64, 11: torch.bool}


def default_of(argument: Any) -> Any:
    value: Any = argument.default_value if argument.has_default_value() else None
    return TYPES.get(value, value) if "ScalarType" in str(argument.real_type) else value


def functional_form(func: Any, schema: Any, name: str) -> tuple[str, bool]:
    """The operator without the write: add_.Tensor -> add.Tensor, add.out -> add.Tensor (its out argument dropped)."""
    base = schema.name.split("::")[1]
    space = schema.name.split("::")[0]
    if base.endswith("_") and not base.endswith("__"):
        return f"{space}.{base[:-1]}.{schema.overload_name or 'default'}", False
    if base.startswith("__i") and base.endswith("__"):  # y <<= 1
        return f"{space}.__{base[3:]}.{schema.overload_name or 'default'}", False
    kept = [(a.name, str(a.type)) for a in schema.arguments if not (a.alias_info is not None and a.alias_info.is_write)]
    packet = getattr(getattr(torch.ops, space), base)
    for overload in packet.overloads():
        other = getattr(packet, overload)._schema
        if [(a.name, str(a.type)) for a in other.arguments] == kept and overload != schema.overload_name:
            return f"{space}.{base}.{overload}", True
    return name, False


class Kept:
    """A function that is recorded as one operator although PyTorch would take it apart.

    `arrange(*args, **kwargs)` puts a call's arguments into schema order; `check` refuses what PyTorch should.
    """

    def __init__(
        self, name: str, params: str, alias: int = NEVER, arrange: Any = None, check: Any = None, applies: Any = None
    ) -> None:
        self.name = name
        self.params = []
        for text in params.split(", "):
            param, _, default = text.partition("=")
            self.params.append((param, bool(default), eval(default, {}) if default else None))
        self.alias = alias
        self.names = [p[0] for p in self.params]
        self.arrange = arrange
        self.check = check
        self.applies = applies  # whether a call is kept whole; None: every one
        self.packed: Kept | None = None  # what a recurrent layer is called on packed sequences

    def form(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Kept | None:
        """The operator of this call; None where it is taken apart. Of recurrent layers both forms have nine arguments,
        and the packed one has its batch sizes second."""
        if self.applies is not None and not self.applies(*args, **kwargs or {}):
            return None
        return self.packed if self.packed and len(args) > 3 and isinstance(args[3], (list, tuple)) else self

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.arrange is not None:
            return self.arrange(*args, **(kwargs or {})), None
        return args, kwargs


def _shape_last(self: Any, *shape: Any, **kwargs: Any) -> Any:
    """reshape(2, 3) and reshape((2, 3)) alike."""
    if "shape" in kwargs:
        return (self, tuple(kwargs["shape"]))
    if len(shape) == 1 and not isinstance(shape[0], int):
        return (self, tuple(shape[0]))
    return (self, shape)


def _sizes_last(input: Any, output_size: Any) -> Any:
    return (input, tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,))


def _swapped(self: Any, other: Any) -> Any:
    return (other, self)


def _check_attention(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> None:
    """PyTorch's CPU kernel reads past the end instead of refusing keys and values of different lengths."""
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"attention needs as many values as keys, got {value.shape[-2]} and {key.shape[-2]}")


def _as_long_as_asked(data: Any, batch_sizes: Any, batch_first: Any, padding_value: Any, total_length: Any) -> Any:
    """pad_packed_sequence fills in the length of the longest sequence where none was asked for: that is -1 here, since
    the longest of another call is another one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not torch.nn.utils.rnn.pad_packed_sequence.__code__:
        frame = frame.f_back
    if frame is not None and frame.f_locals.get("total_length") is None:
        total_length = -1
    return (data, batch_sizes, batch_first, padding_value, total_length)


def _is_whole(equation: Any, tensors: list[torch.Tensor], path: Any = None) -> bool:
    """An equation that ONNX has. PyTorch asks for sizes of 1 while it takes one apart, and does another thing there.
    Of complex tensors it is one equation for each choice of their parts."""
    if any(t.dtype == torch.bool for t in tensors):
        return False
    return sum(t.is_complex() for t in tensors) <= 3


def _to_a_size(input: Any, output_size: Any) -> bool:
    """A pool to a size that is known by memory alone: below Python it is another operator where that is 1."""
    sizes = output_size if isinstance(output_size, (tuple, list)) else (output_size,)
    return any(isinstance(size, SizeInt) for size in sizes)


def kept_functions() -> dict[Any, Kept]:
    """Function -> Kept, for the functions that a lowering has a better form for than their parts."""
    nn, tensor = torch._C._nn, torch.Tensor
    functions: Any = torch._C._VariableFunctions
    matmul = Kept("aten.matmul.default", "input, other")
    reshape = Kept("aten.reshape.default", "self, shape", OBSERVED, _shape_last)
    flatten = Kept("aten.flatten.using_ints", "self, start_dim=0, end_dim=-1", OBSERVED)
    contiguous = Kept("aten.contiguous.default", "self, memory_format=None", OBSERVED)
    table = {
        nn.linear: Kept("aten.linear.default", "input, weight, bias=None"),
        nn.scaled_dot_product_attention: Kept(
            "aten.scaled_dot_product_attention.default",
            "query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False",
            check=_check_attention,
        ),
        torch.layer_norm: Kept(
            "aten.layer_norm.default",
            "input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True",
        ),
        torch.rms_norm: Kept("aten.rms_norm.default", "input, normalized_shape, weight=None, eps=None"),
        torch.group_norm: Kept(
            "aten.group_norm.default",
            "input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True",
        ),
        torch.instance_norm: Kept(
            "aten.instance_norm.default",
            "input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled",
        ),
        torch.matmul: matmul,
        tensor.matmul: matmul,
        tensor.__matmul__: matmul,
        tensor.__rmatmul__: Kept("aten.matmul.default", "input, other", NEVER, _swapped),
        torch.reshape: Kept("aten.reshape.default", "input, shape", OBSERVED),
        tensor.reshape: reshape,
        torch.flatten: flatten,
        tensor.flatten: flatten,
        tensor.contiguous: contiguous,
        functions.adaptive_avg_pool1d: Kept(
            "aten.adaptive_avg_pool1d.default", "input, output_size", arrange=_sizes_last, applies=_to_a_size
        ),
        nn.adaptive_avg_pool2d: Kept("aten.adaptive_avg_pool2d.default", "input, output_size", applies=_to_a_size),
        nn.adaptive_avg_pool3d: Kept("aten.adaptive_avg_pool3d.default", "input, output_size", applies=_to_a_size),
        functions.einsum: Kept("aten.einsum.default", "equation, tensors, path=None", applies=_is_whole),
    }
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        padded = Kept(
            f"aten.{name}.input",
            "input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first",
        )
        padded.packed = Kept(
            f"aten.{name}.data",
            "data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional",
        )
        table[getattr(torch._C._VariableFunctions, name)] = padded
    table[torch._C._VariableFunctions._pad_packed_sequence] = Kept(
        "aten._pad_packed_sequence.default",
        "data, batch_sizes, batch_first, padding_value, total_length",
        arrange=_as_long_as_asked,
    )
    return table
