"""A compact text of nested structures: string_type({"x": t}, with_shape=True) == "dict(x:T7s2x3)".

Grammar of a tensor: [device C or G][kind][ONNX dtype code](r<rank> | s<d0>x<d1>...)[statistics]
kind: T torch, F fake, A numpy, OV a value of onnxruntime. The rows of other objects are the functions below,
in the
order in which they are tried.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fairlead.base.element_types import CODES
from fairlead.tree.caches.kinds import Kind, kind_of


@dataclasses.dataclass(frozen=True)
class _Style:
    with_shape: bool
    with_min_max: bool
    with_device: bool
    ignore: bool
    limit: int


def string_type(
    obj: Any,
    with_shape: bool = False,
    with_min_max: bool = False,
    with_device: bool = False,
    ignore: bool = False,
    limit: int = 20,
) -> str:
    """The text of any nested structure of tensors, numbers, containers, caches, configs of shapes.

    `ignore=True` prints an object of unknown type as `Name(...)` instead of raising; `limit` cuts long
    sequences.
    """
    return _text(obj, _Style(with_shape, with_min_max, with_device, ignore, limit))


def _text(obj: Any, style: _Style) -> str:
    if obj is None:
        return "None"
    for write in _WRITERS:
        written = write(obj, style)
        if written is not None:
            return written
    if style.ignore:
        return f"{type(obj).__name__}(...)"
    raise TypeError(
        f"[string_type] Expected a tensor, number or container, got {type(obj)} (ignore=True prints its name)."
    )


def _torch() -> Any:
    return sys.modules.get("torch")


# ---- numbers and names


def _number(obj: Any, style: _Style) -> str | None:
    if isinstance(obj, enum.Enum) and not isinstance(obj, (int, float, str)):
        return None
    for cls in (bool, int, float, complex):
        if isinstance(obj, cls) and not isinstance(obj, np.generic):
            return f"{cls.__name__}={obj}" if style.with_min_max else cls.__name__
    if isinstance(obj, str) and not isinstance(obj, np.generic):
        return "str"
    return "slice" if isinstance(obj, slice) else None


def _torch_names(obj: Any, style: _Style) -> str | None:
    torch = _torch()
    if torch is None:
        return None
    for cls in (torch.SymInt, torch.SymFloat, torch.SymBool):
        if isinstance(obj, cls):
            return str(cls.__name__)
    if isinstance(obj, torch.dtype):
        return f"dtype({obj})"
    if isinstance(obj, torch.device):
        return f"device({obj})"
    if isinstance(obj, torch.nn.Module):
        return f"{type(obj).__name__}(...)"
    if isinstance(obj, torch.fx.Node):
        return f"%{obj.target if isinstance(obj.target, str) else obj.name}"
    if isinstance(obj, torch.utils._pytree.TreeSpec):
        return f"TreeSpec({obj.num_leaves})"
    return None


def _dimension(obj: Any, style: _Style) -> str | None:
    """Dimensions as torch.export names them."""
    name = type(obj).__name__
    if name in ("_DimHint", "DimHint"):
        kind = getattr(getattr(obj, "type", obj), "name", str(obj))
        return kind if kind in ("DYNAMIC", "AUTO") else f"DimHint({kind})"
    if name in ("_DimHintType", "DimHintType"):
        return obj.name if obj.name in ("DYNAMIC", "AUTO") else f"DimHint({obj.name})"
    if name in ("_DerivedDim", "DerivedDim"):
        return "DerivedDim"
    if name in ("Dim", "_Dim", "StaticDim", "_StaticDim") and hasattr(obj, "__name__"):
        return f"Dim({obj.__name__})"
    return None


# ---- tensors


def _shape(rank: int, shape: Any, style: _Style) -> str:
    return "s" + "x".join(str(dim) for dim in shape) if style.with_shape else f"r{rank}"


def _tensor(obj: Any, style: _Style) -> str | None:
    torch = _torch()
    if torch is None or not isinstance(obj, torch.Tensor):
        return None
    kind = "F" if type(obj).__name__ == "FakeTensor" else "T"
    device = ("C" if obj.device.type == "cpu" else "G") if style.with_device else ""
    code = CODES.get(str(obj.dtype).removeprefix("torch."), "?")
    text = f"{device}{kind}{code}{_shape(obj.dim(), obj.shape, style)}"
    if not style.with_min_max or kind == "F" or obj.device.type == "meta":
        return text
    if obj.numel() == 0:
        return f"{text}[empty]"
    values = obj.detach().cpu()
    values = values.abs() if values.is_complex() else values
    values = values.to(torch.float64)
    if obj.dim() == 0:
        return f"{text}={obj.item()}"
    holes = int(values.isnan().sum())
    known = values[~values.isnan()] if holes else values
    if not known.numel():
        return f"{text}[N{holes}nans]"
    return text + _statistics(float(known.min()), float(known.max()), float(values.mean()), holes)


def _statistics(low: float, high: float, mean: float, holes: int) -> str:
    return f"[{low},{high}:A{mean}{f'N{holes}nans' if holes else ''}]"


def _array(obj: Any, style: _Style) -> str | None:
    if not isinstance(obj, (np.ndarray, np.generic)):
        return None
    array = np.asarray(obj)
    name = array.dtype.name
    code = 8 if array.dtype.kind in "USO" else CODES.get(name, "?")
    text = f"A{code}{_shape(array.ndim, array.shape, style)}"
    if not style.with_min_max or array.dtype.kind in "USO":
        return text
    if array.size == 0:
        return f"{text}[empty]"
    if array.ndim == 0:
        return f"{text}={array.item()}"
    values = np.abs(array) if array.dtype.kind == "c" else array
    values = values.astype(np.float64)
    known = values[~np.isnan(values)]
    holes = values.size - known.size
    if not known.size:
        return f"{text}[N{holes}nans]"
    return text + _statistics(float(known.min()), float(known.max()), float(known.mean()), holes)


def _ort_value(obj: Any, style: _Style) -> str | None:
    if type(obj).__name__ not in ("OrtValue", "C_OrtValue"):
        return None
    if style.with_min_max:
        return f"OV({_text(obj.numpy(), style)})"
    shape = list(obj.shape())
    device = ("C" if obj.device_name().lower() == "cpu" else "G") if style.with_device else ""
    return f"{device}OV{obj.element_type()}{_shape(len(shape), shape, style)}"


# ---- containers


def _numbers(obj: Any) -> bool:
    return all(isinstance(item, (bool, int, float)) for item in obj)


def _mean(obj: Any) -> float:
    return math.fsum(float(item) for item in obj) / len(obj)


def _tuple(obj: Any, style: _Style) -> str | None:
    if not isinstance(obj, tuple):
        return None
    if len(obj) == 1:
        return f"({_text(obj[0], style)},)"
    if len(obj) < style.limit:
        return f"({','.join(_text(item, style) for item in obj)})"
    text = f"#{len(obj)}({_text(obj[0], style)},...)"
    if style.with_min_max and _numbers(obj):
        text += f"[{min(obj)},{max(obj)}:A[{_mean(obj)}]]"
    return text


def _list(obj: Any, style: _Style) -> str | None:
    if not isinstance(obj, list):
        return None
    if len(obj) < style.limit:
        return f"#{len(obj)}[{','.join(_text(item, style) for item in obj)}]"
    text = f"#{len(obj)}[{_text(obj[0], style)},...]"
    if style.with_min_max and _numbers(obj):
        text += f"[{min(obj)},{max(obj)}:{_mean(obj)}]"
    return text


def _set(obj: Any, style: _Style) -> str | None:
    if not isinstance(obj, (set, frozenset)):
        return None
    if len(obj) < 10:
        return f"{{{','.join(_text(item, style) for item in obj)}}}"
    if style.with_min_max and _numbers(obj):
        return f"{{...}}#{len(obj)}[{min(obj)},{max(obj)}:A{_mean(obj)}]"
    return f"{{...}}#{len(obj)}" if style.with_shape else "{...}"


def _dict(obj: Any, style: _Style) -> str | None:
    if not isinstance(obj, dict) or dataclasses.is_dataclass(obj):
        return None
    if not obj:
        return "{}"
    if all(isinstance(key, int) for key in obj):
        return f"{{{','.join(f'{key}:{_axis(value, style)}' for key, value in obj.items())}}}"
    return f"dict({','.join(f'{key}:{_text(value, style)}' for key, value in obj.items())})"


def _axis(value: Any, style: _Style) -> str:
    # {0: "batch"} is a dynamic axis with a label; a plain string elsewhere is just "str".
    return f"DYN({value})" if isinstance(value, str) else _text(value, style)


def _fields(obj: Any, style: _Style) -> str | None:
    if not dataclasses.is_dataclass(obj) or isinstance(obj, type):
        return None
    if isinstance(obj, Mapping):
        pairs = list(obj.items())
    else:
        pairs = [(field.name, getattr(obj, field.name, None)) for field in dataclasses.fields(obj)]
    inner = ",".join(f"{name}:{_text(value, style)}" for name, value in pairs if value is not None)
    return f"{type(obj).__name__}({inner})"


def _batch(obj: Any, style: _Style) -> str | None:
    """BatchEncoding, BatchFeature and other mappings around a dict."""
    data = getattr(obj, "data", None)
    if isinstance(obj, Mapping) and isinstance(data, dict):
        return f"{type(obj).__name__}(data={_text(data, style)})"
    return None


# ---- caches


def _cache(obj: Any, style: _Style) -> str | None:
    kind = kind_of(obj)
    if kind is Kind.NOT:
        return None
    name = type(obj).__name__
    if kind is Kind.PAIR:
        first, second = _text(obj.self_attention_cache, style), _text(obj.cross_attention_cache, style)
        return f"{name}(self_attention_cache={first}, cross_attention_cache={second})"
    if kind is Kind.LAYER:
        parts = ", ".join(f"{part}={_text(value, style)}" for part, value in _layer_tensors(obj).items())
        return f"{name}({parts})"
    if kind is Kind.LISTS:
        states = [f"{part}={_text(value, style)}" for part, value in _list_states(obj).items()]
        return f"{name}({', '.join(states)})"
    plain = all(type(layer).__name__ in ("DynamicLayer", "StaticLayer") for layer in obj.layers)
    if plain:
        keys = [layer.keys for layer in obj.layers if layer.keys is not None]
        values = [layer.values for layer in obj.layers if layer.values is not None]
        return f"{name}(key_cache={_text(keys, style)}, value_cache={_text(values, style)})"
    layers = []
    for layer in obj.layers:
        tensors = _layer_tensors(layer)
        if set(tensors) <= {"keys", "values"}:
            inner = ", ".join(_text(value, style) for value in tensors.values())
        else:
            inner = ", ".join(f"{part}={_text(value, style)}" for part, value in tensors.items())
        layers.append(f"{type(layer).__name__}({inner})")
    return f"{name}({', '.join(layers)})"


def _layer_tensors(layer: Any) -> dict[str, Any]:
    """Keys, values and other states; counters and the window belong to the layer, not to its text."""
    torch = _torch()
    found = {}
    for name, value in vars(layer).items():
        states = list(value.values()) if isinstance(value, dict) else None
        if isinstance(value, torch.Tensor) and (value.dim() or not name.endswith(("_length", "_tensor"))):
            found[name] = value
        elif states and any(isinstance(state, torch.Tensor) for state in states):
            found[name] = states[0] if len(states) == 1 else states
        elif isinstance(value, tuple) and value and isinstance(value[0], torch.Tensor):
            found[name.lstrip("_")] = value
    return found


def _list_states(cache: Any) -> dict[str, Any]:
    torch = _torch()
    found = {name: getattr(cache, name) for name in ("key_cache", "value_cache") if hasattr(cache, name)}
    for name, value in vars(cache).items():
        items = list(value.values()) if isinstance(value, dict) else value
        if name not in found and isinstance(items, list) and any(isinstance(item, torch.Tensor) for item in items):
            found[name] = items
    return found


# ---- objects of other libraries


def _foreign(obj: Any, style: _Style) -> str | None:
    name, module = type(obj).__name__, type(obj).__module__
    if name == "DataFrame" and module.startswith("pandas"):
        return f"DataFrame({_text({column: obj[column].values for column in obj.columns}, style)})"
    if module.startswith("onnx"):
        if name == "ValueInfoProto":
            return f"OT{obj.type.tensor_type.elem_type}"
        if name == "TypeProto":
            return f"OT{obj.tensor_type.elem_type}"
        if name.endswith("Proto"):
            return f"{name}(...)"
    if name.startswith("Batch") and hasattr(obj, "data"):
        return f"{name}(data={_text(obj.data, style)})"
    if isinstance(obj, (enum.Enum, type)):
        return f"{name}({getattr(obj, 'name', None) or getattr(obj, '__name__', '')})"
    return None


def _registered(obj: Any, style: _Style) -> str | None:
    torch = _torch()
    node = torch.utils._pytree.SUPPORTED_NODES.get(type(obj)) if torch is not None else None
    if node is None:
        return None
    return f"{type(obj).__name__}[serialized]({_text(list(node.flatten_fn(obj)[0]), style)})"


_WRITERS: tuple[Callable[[Any, _Style], str | None], ...] = (
    _number,
    _tensor,
    _array,
    _tuple,
    _list,
    _set,
    _dict,
    _torch_names,
    _dimension,
    _fields,
    _batch,
    _cache,
    _ort_value,
    _foreign,
    _registered,
)
