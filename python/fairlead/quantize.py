"""Formats of quantised weights, and what a contract says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlead._core import InvalidInput
from fairlead.contract import Row

BLOCKS = (16, 32, 64, 128, 256)
ACTIVATIONS = ("float32", "int8")


@dataclass(frozen=True)
class Blocks:
    """Weights of linear layers in blocks of small integers, each block of a row with a scale.

    block: how many weights share a scale. symmetric: without a zero point in each block.
    search: tries scales around the largest weight for the one with the least error.
    head: embeddings and the layer that makes an output as well.
    activations: "int8" also rounds what the weights are multiplied by: faster, and less exact.
    """

    block: int = 32
    head: bool = True
    symmetric: bool = True
    search: bool = True
    activations: str = "float32"

    bits = 0

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not isinstance(self.block, int) or self.block not in BLOCKS:
            raise InvalidInput(f"[{name}] Expected block as one of {', '.join(map(str, BLOCKS))}, got {self.block!r}.")
        for option in ("head", "symmetric", "search"):
            if not isinstance(getattr(self, option), bool):
                raise InvalidInput(f"[{name}] Expected {option} as True or False, got {getattr(self, option)!r}.")
        check_activations(self)


@dataclass(frozen=True)
class Int4(Blocks):
    __doc__ = Blocks.__doc__
    bits = 4


@dataclass(frozen=True)
class Int8(Blocks):
    __doc__ = Blocks.__doc__
    bits = 8


@dataclass(frozen=True)
class Keep:
    """Weights of a quantised checkpoint stay what they are there: the same integers and scales, repacked without loss.

    activations: "int8" also rounds what the weights are multiplied by: faster, and less exact.
    """

    activations: str = "float32"

    def __post_init__(self) -> None:
        check_activations(self)


def check_activations(how: Blocks | Keep) -> None:
    if how.activations not in ACTIVATIONS:
        name = type(how).__name__
        raise InvalidInput(f'[{name}] Expected activations "float32" or "int8", got {how.activations!r}.')


NAMED: dict[str, type[Blocks]] = {"int4": Int4, "int8": Int8}


def check_quantize(quantize: Any, fused: bool, opset: int) -> None:
    if quantize is None:
        return
    if not isinstance(quantize, Blocks) or not quantize.bits:
        raise InvalidInput(
            f"[export] Expected quantize as fairlead.Int4(...), fairlead.Int8(...) or None, got {quantize!r}."
        )
    if not fused and opset < 21:
        raise InvalidInput(
            f"[export] Expected opset 21 or newer for quantised weights in a portable file, got {opset}. Pass "
            "opset=21, or target=fairlead.OnnxRuntime()."
        )
    if not fused and quantize.activations != "float32":
        raise InvalidInput(
            "[export] Expected target=fairlead.OnnxRuntime() for activations in int8, got a portable file. Give the "
            "target."
        )


def check_kept(weights: Any, quantize: Any, dtype: str) -> None:
    if not isinstance(weights, Keep):
        raise InvalidInput(f"[export] Expected weights as fairlead.Keep(...) or None, got {weights!r}.")
    if quantize is not None:
        raise InvalidInput("[export] Expected weights that are kept, or quantize, got both. Leave one of them out.")
    if dtype != "float32":
        raise InvalidInput(f"[export] Expected dtype float32 for weights that are kept, got {dtype}. Leave dtype out.")


@dataclass(frozen=True, eq=False)
class Likelihood(Row):
    """How well a decoder predicts a text: negative log likelihood a token, with weights as floats and of the file."""

    tokens: int
    floats: float
    file: float
    agreement: float  # of the most likely next tokens

    def words(self) -> list[str]:
        return [
            f"  on a text of {self.tokens} tokens: negative log likelihood {self.file:.4f} a token, {self.floats:.4f} "
            f"with weights as floats; the most likely next token agrees at {self.agreement:.0%} of the places"
        ]


@dataclass(frozen=True, eq=False)
class Quantized(Row):
    """What became of a model's weights, and what that did to its outputs."""

    format: str  # "int4 in blocks of 32"
    layers: Mapping[str, float]  # weight -> |w - stored w| / |w|
    kept: Mapping[str, str]  # weights that stay floats, and why
    bytes_before: int
    bytes_after: int
    outputs: Mapping[str, float]  # output -> how far it is off at the example, in proportion to its largest value
    agreement: float | None = None  # of the most likely next tokens at the example
    likelihood: Likelihood | None = None  # of decoders with a tokenizer

    def words(self) -> list[str]:
        errors = sorted(self.layers.items(), key=lambda row: row[1])
        middle = errors[len(errors) // 2][1]
        mb = 1e6
        lines = [
            f"Quantised: {len(errors)} weights to {self.format}, "
            f"{self.bytes_before / mb:.1f} MB became {self.bytes_after / mb:.1f} MB",
            f"  relative error of a weight {errors[0][1]:.2g} to {errors[-1][1]:.2g}, {middle:.2g} in the middle; the "
            f"largest in {errors[-1][0]}",
        ]
        return lines + measured_words(self) + float_words(self.kept)


@dataclass(frozen=True, eq=False)
class Kept(Row):
    """Which weights a file has as its checkpoint stores them."""

    weights: Mapping[str, str]  # weight -> format
    floats: Mapping[str, str]  # weights that stay floats, and why
    unread: list[str]  # matrices of the checkpoint, by their names there, that none of these has
    bytes_before: int
    bytes_after: int
    outputs: Mapping[str, float]  # where activations are rounded: output -> how far it is off at the example
    agreement: float | None = None
    likelihood: Likelihood | None = None

    def words(self) -> list[str]:
        formats = Counter(self.weights.values())
        mb = 1e6
        lines = [
            f"Kept from the checkpoint: {len(self.weights)} weights "
            f"({', '.join(f'{count} in {name}' for name, count in formats.most_common())}), "
            f"{self.bytes_before / mb:.1f} MB of floats in {self.bytes_after / mb:.1f} MB",
        ]
        if self.outputs:
            lines.append("  activations are rounded to int8")
        lines += measured_words(self) + float_words(self.floats)
        if self.unread:
            more = f" and {len(self.unread) - 1} more" if len(self.unread) > 1 else ""
            lines.append(
                f"  of the checkpoint {self.unread[0]}{more} is not a matrix of the file: no weight has its rows"
            )
        return lines


@dataclass(frozen=True, eq=False)
class RoundedCache(Row):
    """A decoder's cache in int8, and what that did to its outputs."""

    tensors: int
    channels: int  # of one, each with a scale
    outputs: Mapping[str, float]  # output -> how far it is off at the example
    agreement: float | None = None
    likelihood: Likelihood | None = None

    def words(self) -> list[str]:
        line = f"Cache in int8: {self.tensors} tensors, a scale for each of {self.channels} channels"
        return [line, *measured_words(self)]


def measured_words(row: Quantized | Kept | RoundedCache) -> list[str]:
    text = row.likelihood.words() if row.likelihood is not None else []
    if not row.outputs:
        return text
    worst = max(row.outputs, key=lambda name: row.outputs[name])
    line = f"  outputs at the example differ by up to {row.outputs[worst]:.2g} (scaled), most {worst}"
    if row.agreement is not None:
        line += f"; the most likely next token agrees at {row.agreement:.0%} of the places"
    return [line, *text]


def float_words(floats: Mapping[str, str]) -> list[str]:
    lines = []
    for why in dict.fromkeys(floats.values()):
        names = [name for name, reason in floats.items() if reason == why]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        lines.append(f"  float32 stays: {names[0]}{more}, because {why}")
    return lines
