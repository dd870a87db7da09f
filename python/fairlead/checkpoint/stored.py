"""Weights of quantised checkpoints as they are stored there: for files that keep them, and as floats for PyTorch.

GGUF files are taken apart by Transformers; folders of other methods here, by the table METHODS.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from fairlead._core import FairleadError, InvalidInput, StoredMatrix, StoredRows
from fairlead.base.errors import reworded
from fairlead.checkpoint import codes
from fairlead.checkpoint.codes import Quantised, packed
from fairlead.checkpoint.source import Checkpoint, one_line, reading, weights

# Types of GGUF that hold numbers as they are.
PLAIN = ("F16", "F32", "F64", "BF16", "I8", "I16", "I32", "I64")
INSTEAD = "Leave --weights keep (weights=) out, or store floats in blocks with --quantize (quantize=)."


def stored_rows(checkpoint: Checkpoint) -> StoredRows:
    """Refuses what cannot be kept without loss, before anything else is read."""
    if checkpoint.gguf_file is None and method_of(checkpoint) is None:
        raise InvalidInput(
            f"[export] Expected quantised weights to keep in '{checkpoint.folder}', got floats alone. {INSTEAD}"
        )
    found = of_gguf(checkpoint) if checkpoint.gguf_file is not None else stored_matrices(checkpoint)
    return StoredRows(found, os.cpu_count() or 1)


def of_gguf(checkpoint: Checkpoint) -> list[StoredMatrix]:
    path = os.path.join(checkpoint.folder, checkpoint.gguf_file or "")
    with reading(checkpoint, "quantised weights"):
        import gguf

        tensors: list[Any] = [t for t in gguf.GGUFReader(path).tensors if t.tensor_type.name not in PLAIN]
    if not tensors:
        raise InvalidInput(f"[export] Expected quantised weights in '{path}', got floats alone. {INSTEAD}")
    found = []
    for tensor in tensors:
        columns, *others = [int(size) for size in tensor.shape]
        kind = tensor.tensor_type.name
        found.append(made(path, StoredMatrix.of_gguf, tensor.name, kind, math.prod(others), columns, tensor.data))
    return found


def quantised_as(checkpoint: Checkpoint) -> str | None:
    """In words; None where its weights are floats."""
    if checkpoint.gguf_file is None:
        return method_of(checkpoint)
    with reading(checkpoint, "quantised weights"):
        import gguf

        path = os.path.join(checkpoint.folder, checkpoint.gguf_file)
        kinds = {tensor.tensor_type.name for tensor in gguf.GGUFReader(path).tensors} - set(PLAIN)
    return f"GGUF, {', '.join(sorted(kinds))}" if kinds else None


def made(path: str, maker: Callable[..., StoredMatrix], *arguments: Any) -> StoredMatrix:
    try:
        return maker(*arguments)
    except InvalidInput as error:
        reworded(error, str(error).replace("[keep]", "[export]") + f" The checkpoint is '{path}'.")
        raise


# Methods that cannot be, and why.
TABLES = {"bitsandbytes": ": its levels come from a table (nf4, fp4), and no kernel looks them up"}


# ---- folders -----------------------------------------------------------------------------------------------

Tensors = Mapping[str, torch.Tensor]


def settings_of(checkpoint: Checkpoint) -> Any:
    """What the configuration of a folder says of quantisation; None where it says nothing."""
    settings = None if checkpoint.gguf_file is not None else checkpoint.read_json("config.json")
    return settings.get("quantization_config") if isinstance(settings, dict) else None


def method_of(checkpoint: Checkpoint) -> str | None:
    """The method of quantisation that the configuration of a folder names."""
    how = settings_of(checkpoint)
    return str(how.get("quant_method")) if isinstance(how, dict) else None


def is_taken_apart(checkpoint: Checkpoint) -> bool:
    """Whether its weights are made floats here, with no library of the method."""
    return method_of(checkpoint) in (*METHODS, *codes.METHODS)


def check_method(checkpoint: Checkpoint) -> None:
    """Of a method that it does not know Transformers warns, and takes the small numbers for the weights themselves."""
    settings, method = settings_of(checkpoint), method_of(checkpoint)
    if method is None or is_taken_apart(checkpoint) or settings.get("load_in_4bit") or settings.get("load_in_8bit"):
        return
    from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING

    if method not in AUTO_QUANTIZATION_CONFIG_MAPPING:
        raise InvalidInput(
            f"[export] Expected weights that are floats or quantised by a method that Transformers reads, got {method} "
            f"in '{checkpoint.folder}'. Save the model as floats with the library that quantised it."
        )


def stored_matrices(checkpoint: Checkpoint) -> list[StoredMatrix]:
    method = method_of(checkpoint) or "nothing"
    if method not in METHODS:
        known = ", ".join(METHODS)
        why = TABLES.get(method, "")
        raise InvalidInput(
            f"[export] Expected weights quantised by {known} or in a GGUF file, got {method} in "
            f"'{checkpoint.folder}', which cannot be kept without loss{why}. {INSTEAD}"
        )
    return matrices(checkpoint, tensors_of(checkpoint))[0]


def state_dict(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    """What the model has as floats."""
    held = tensors_of(checkpoint)
    found, used = taken_apart(checkpoint, held)
    rest = {name: tensor for name, tensor in held.items() if name not in used}
    return rest | {each.name: each.values() for each in found}


def tensors_of(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    """All that its files hold; read once."""
    if checkpoint.stored is None:
        held: dict[str, torch.Tensor] = {}
        with reading(checkpoint, "quantised weights"):
            from safetensors import safe_open

            for path in sorted(weights(checkpoint.folder)):
                with safe_open(path, framework="pt") as file:
                    held |= {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
        checkpoint.stored = held
    kept: dict[str, torch.Tensor] = checkpoint.stored
    return kept


def taken_apart(checkpoint: Checkpoint, held: Tensors) -> tuple[list[Quantised], set[str]]:
    """Tensors that the model has as floats, and the names of those that they are made of. Values are not looked at."""
    settings, method = settings_of(checkpoint), method_of(checkpoint) or ""
    with as_stored(checkpoint, method, "quantization_config"):
        as_codes = method in codes.METHODS and (method not in METHODS or codes.is_float(settings))
    if not as_codes:
        found, used = matrices(checkpoint, held)
        refuse_left_over(checkpoint, method, held, used)
        return [Quantised(f"{m.name}.weight", [m.rows, m.columns], m) for m in found], used
    made, used = [], set()
    for stem, names in codes.stems(method, held):
        with as_stored(checkpoint, method, stem):
            made.append(codes.quantised(method, settings, stem, *(held[name] for name in names)))
        used |= set(names)
    check_some(checkpoint, method, made)
    refuse_left_over(checkpoint, method, held, used)
    return made, used


def refuse_left_over(checkpoint: Checkpoint, method: str, held: Tensors, used: set[str]) -> None:
    """Small numbers without scales would be taken for the weights themselves."""
    for name in held:
        if name not in used and held[name].dtype in codes.SMALL:
            raise InvalidInput(
                f"[export] Expected scales of {name} in '{checkpoint.folder}' as {method} stores them, got "
                f"{str(held[name].dtype).removeprefix('torch.')} without. Save it as floats: load it with "
                "from_pretrained of Transformers, call dequantize(), then save_pretrained."
            )


def matrices(checkpoint: Checkpoint, held: Tensors) -> tuple[list[StoredMatrix], set[str]]:
    settings, method = settings_of(checkpoint), method_of(checkpoint) or ""
    marks, take = METHODS[method]
    modules = sorted({name.removesuffix(mark) for name in held for mark in marks if name.endswith(mark)})
    check_some(checkpoint, method, modules)
    parts: dict[str, dict[str, str]] = {module: {} for module in modules}
    for name in held:
        module, _, last = name.rpartition(".")
        if module in parts and last != "bias":
            parts[module][last] = name
    found = []
    for module, names in parts.items():
        with as_stored(checkpoint, method, module):
            tensors = {last: held[name] for last, name in names.items()}
            found.append(made(checkpoint.folder, StoredMatrix.of_groups, module, *take(settings, tensors)))
    return found, {name for names in parts.values() for name in names.values()}


def check_some(checkpoint: Checkpoint, method: str, found: Sequence[Any]) -> None:
    if not found:
        raise InvalidInput(
            f"[export] Expected weights quantised by {method} in '{checkpoint.folder}', got none. Check that the files "
            "are complete."
        )


@contextlib.contextmanager
def as_stored(checkpoint: Checkpoint, method: str, what: str) -> Iterator[None]:
    """Whatever is wrong with tensors of a module is one line."""
    try:
        yield
    except FairleadError:
        raise
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RuntimeError) as error:
        raise InvalidInput(
            f"[export] Expected {what} in '{checkpoint.folder}' as {method} stores it, got "
            f"{type(error).__name__}: {one_line(error)}. Check that the files are complete."
        ) from error


def scales_of(tensor: torch.Tensor) -> tuple[Any, str]:
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in ("float16", "bfloat16", "float32"):
        raise ValueError(f"scales in {name}")
    return packed(tensor), name


def gptq(settings: dict[str, Any], t: Tensors) -> tuple[Any, ...]:
    """qweight [columns / 8, rows], qzeros [groups, rows / 8], scales [groups, rows], g_idx [columns]."""
    bits, rows = int(settings["bits"]), t["qweight"].shape[1]
    if bits not in (4, 8):
        raise ValueError(f"{bits} bits, not 4 or 8")
    columns = t["qweight"].shape[0] * 32 // bits
    group = columns if settings["group_size"] == -1 else int(settings["group_size"])
    order = t.get("g_idx")
    if order is not None and not torch.equal(order, torch.arange(columns, dtype=order.dtype) // group):
        raise ValueError("columns in the order of their importance (desc_act), whose groups are no blocks")
    version = "v2 " if settings.get("checkpoint_format") == "gptq_v2" else ""
    return (
        f"GPTQ {version}{bits} bits", rows, columns, group, packed(t["qweight"]), *scales_of(t["scales"]),
        packed(t["qzeros"]),
    )  # fmt: skip


def awq(settings: dict[str, Any], t: Tensors) -> tuple[Any, ...]:
    """qweight [columns, rows / 8], qzeros [groups, rows / 8], scales [groups, rows]."""
    bits, version = int(settings.get("bits", 4)), str(settings.get("version", "gemm")).lower()
    if bits != 4 or version != "gemm":
        raise ValueError(f"{bits} bits of version {version}, not 4 of gemm")
    columns, rows = t["qweight"].shape[0], t["qweight"].shape[1] * 8
    group = columns if settings["group_size"] == -1 else int(settings["group_size"])
    return "AWQ", rows, columns, group, packed(t["qweight"]), *scales_of(t["scales"]), packed(t["qzeros"])


def compressed_tensors(settings: dict[str, Any], t: Tensors) -> tuple[Any, ...]:
    """weight_packed [rows, columns / 8] or weight [rows, columns] of int8, weight_scale [rows, groups],
    weight_zero_point [rows / 8, groups] where there are any."""
    kinds = list(settings["config_groups"].values())
    how = kinds[0]["weights"]
    bits = int(how["num_bits"])
    if len(kinds) > 1 or how.get("type", "int") != "int" or bits not in (4, 8):
        raise ValueError("other formats than one of 4 or 8 bits of integers")
    whole = settings["format"] == "int-quantized"
    if whole and (bits != 8 or "weight_zero_point" in t):
        raise ValueError("int-quantized weights with zero points, or not of 8 bits")
    integers = t["weight"] if whole else t["weight_packed"]
    rows, columns = integers.shape if whole else [int(size) for size in t["weight_shape"]]
    group = columns // t["weight_scale"].shape[-1] if t["weight_scale"].dim() > 1 else columns
    zeros = t.get("weight_zero_point")
    name = "compressed-tensors int8" if whole else f"compressed-tensors {bits} bits"
    if not whole and settings["format"] != "pack-quantized":
        raise ValueError(f"the format {settings['format']}, not pack-quantized or int-quantized")
    return (
        name, rows, columns, group, packed(integers), *scales_of(t["weight_scale"]),
        None if zeros is None else packed(zeros),
    )  # fmt: skip


def hqq(settings: dict[str, Any], t: Tensors) -> tuple[Any, ...]:
    """W_q [groups / 2, group] or [groups, group] of bytes, scale and zero [groups, 1], and shape, axis, nbits."""
    how = (settings.get("quant_config") or {}).get("weight_quant_params") or {}
    axis = int(t["axis"]) if "axis" in t else int(how["axis"])
    if axis != 1:
        raise ValueError(f"groups along axis {axis}, which are no blocks of a row")
    if t["W_q"].dtype != torch.uint8:
        raise ValueError(f"integers as {t['W_q'].dtype}, not as bytes")
    if t["zero"].dtype != t["scale"].dtype:
        raise ValueError("zero points of another type than scales")
    rows, columns = [int(size) for size in t["shape"]]
    bits = 8 * t["W_q"].numel() // max(1, rows * columns)
    if bits not in (4, 8) or int(t.get("nbits", torch.tensor(bits))) != bits:
        raise ValueError("other integers than of 4 or 8 bits")
    return (
        f"HQQ {bits} bits", rows, columns, t["W_q"].shape[1], packed(t["W_q"]), *scales_of(t["scale"]),
        packed(t["zero"]),
    )  # fmt: skip


# Method -> how the tensors end that tell a module, and the arguments of StoredMatrix.of_groups after the name.
METHODS: dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any], Tensors], tuple[Any, ...]]]] = {
    "gptq": ((".qweight",), gptq),
    "awq": ((".qweight",), awq),
    "compressed-tensors": ((".weight_packed", ".weight_scale"), compressed_tensors),
    "hqq": ((".W_q",), hqq),
}
