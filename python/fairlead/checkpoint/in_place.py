"""A model whose weights stay in the files of its checkpoint: made from its configuration, and never loaded.

1. The core reads the headers of the safetensors files and maps them: a tensor there is an address, and no memory.
2. Transformers loads the model as it always does, by its own rules for names, experts and dtypes, from tensors that
   remember which parts of which files they are (parts.py).
3. A parameter that is one part of one file lies where the file is mapped. One that is several parts in order (experts
   that are stacked) has addresses with nothing behind them, and becomes several references in the ONNX file. What is
   neither is converted, part by part, into one more file.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Any

import torch

from fairlead._core import InvalidInput, ReservedMemory, SharedWeights, WeightFolder
from fairlead.base.units import size_text
from fairlead.checkpoint.parts import Block, Stored, in_order

TYPES = {
    name: getattr(torch, name)
    for name in (
        "bool", "uint8", "int8", "uint16", "int16", "float16", "bfloat16", "uint32", "int32", "float32", "uint64",
        "int64", "float64", "complex64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    )
}  # fmt: skip


def free_memory() -> int:
    """Bytes that could be used now; what files have in memory can be given back."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file)
        return int(rows["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return 4 << 30


@dataclass
class Joined:
    """A parameter that several parts make up, at its place among the reserved addresses."""

    at: int
    blocks: list[Block]


@dataclass
class InPlace:
    """The files of a checkpoint, and what of a model lies in them."""

    folder: str
    files: WeightFolder
    memory: list[torch.Tensor] = field(default_factory=list)  # by file
    reserved: Any = None
    joined: list[Joined] = field(default_factory=list)
    bytes: int = 0  # of the parameters
    filled: bool = False

    @staticmethod
    def of(folder: str) -> InPlace:
        files = WeightFolder(folder)
        for name in files.names:
            if os.path.islink(os.path.join(folder, name)):
                raise InvalidInput(
                    f"[export] Expected plain files in '{folder}' to refer to, got {name}, a symbolic link, which ONNX "
                    "Runtime does not follow. Give another folder to export to."
                )
        found = InPlace(folder, files)
        found.memory = [torch.from_numpy(files.memory(k)) for k in range(len(files.names))]
        return found

    # ---- what Transformers loads --------------------------------------------------------------------

    def state_dict(self) -> dict[str, torch.Tensor]:
        made: dict[str, torch.Tensor] = {}
        for name, kind, dtype, sizes, file, begin, _ in self.files.tensors:
            if dtype is None:
                raise InvalidInput(
                    f"[export] Expected weights of types that PyTorch has, got {kind} for {name} in '{self.folder}'. "
                    "Export without in_place."
                )
            shape, strides, known = tuple(sizes), torch.empty(tuple(sizes), device="meta").stride(), TYPES[dtype]
            block = Block((0,) * len(shape), shape, name, file, begin, known, 0, tuple(strides))
            made[name] = Stored(shape, known, [block] if math.prod(shape) else [], self.whole)
        return made

    def whole(self, block: Block) -> torch.Tensor:
        """All that follows the first element of a block's tensor in its file, which is mapped."""
        rest = self.memory[block.file][block.begin :]
        return rest[: rest.numel() // block.dtype.itemsize * block.dtype.itemsize].view(block.dtype)

    # ---- parameters ---------------------------------------------------------------------------------

    def place(self, model: torch.nn.Module) -> None:
        """Every parameter that is Stored gets its place; buffers are read, because a forward pass may write them."""
        known: dict[int, torch.Tensor] = {}
        waiting: list[tuple[Stored, list[Block]]] = []
        stored = [t for _, t in slots(model, "_parameters") if isinstance(t, Stored)]
        for tensor in {id(t): t for t in stored}.values():
            blocks = list(in_order(tensor.blocks, tuple(tensor.shape)))
            self.bytes += tensor.numel() * tensor.dtype.itemsize
            if not blocks:
                known[id(tensor)] = torch.empty(tuple(tensor.shape), dtype=tensor.dtype)
            elif not all(self.is_plain(b, tensor.dtype) for b in blocks):
                known[id(tensor)] = self.converted(tensor)
            elif len(blocks) == 1:
                known[id(tensor)] = self.mapped(blocks[0], tuple(tensor.shape))
            else:
                waiting.append((tensor, blocks))
        self.reserve(waiting, known)
        for (table, name), tensor in slots(model, "_parameters"):
            if isinstance(tensor, Stored):
                table[name] = torch.nn.Parameter(known[id(tensor)], requires_grad=False)
        parameters: dict[int, torch.nn.Parameter] = {}
        for (table, name), tensor in slots(model, "_parameters"):  # those that are tied stay one
            table[name] = parameters.setdefault(tensor.data_ptr() or id(tensor), tensor)
        for (table, name), tensor in slots(model, "_buffers"):
            if isinstance(tensor, Stored):
                table[name] = tensor.computed()

    def is_plain(self, block: Block, dtype: torch.dtype) -> bool:
        return block.dtype == dtype and block.in_order and block.offset % dtype.itemsize == 0

    def mapped(self, block: Block, shape: tuple[int, ...]) -> torch.Tensor:
        return self.memory[block.file][block.offset : block.offset + block.bytes].view(block.dtype).view(shape)

    def converted(self, tensor: Stored) -> torch.Tensor:
        return tensor.computed()

    def reserve(self, waiting: list[tuple[Stored, list[Block]]], known: dict[int, torch.Tensor]) -> None:
        at = 0
        for tensor, blocks in waiting:
            self.joined.append(Joined(at, blocks))
            at += -(-sum(b.bytes for b in blocks) // 64) * 64
        if not at:
            return
        self.reserved = ReservedMemory(at)
        memory = torch.from_numpy(self.reserved.memory)
        for (tensor, blocks), joined in zip(waiting, self.joined, strict=True):
            whole = memory[joined.at : joined.at + sum(b.bytes for b in blocks)]
            known[id(tensor)] = whole.view(tensor.dtype).view(tuple(tensor.shape))

    def shared(self, folder: str) -> SharedWeights:
        """Which memory stands for which bytes of the files, which are in `folder` under their names."""
        rows = []
        for k, name in enumerate(self.files.names):
            rows.append((self.memory[k].data_ptr(), name, 0, self.memory[k].numel()))
        for joined in self.joined:
            at = torch.from_numpy(self.reserved.memory).data_ptr() + joined.at
            for block in joined.blocks:
                rows.append((at, self.files.names[block.file], block.offset, block.bytes))
                at += block.bytes
        made = SharedWeights()
        made.declare_files(folder, rows)
        return made

    # ---- reading ------------------------------------------------------------------------------------

    @property
    def fits(self) -> bool:
        return self.bytes <= free_memory() // 3

    def read(self, why: str) -> None:
        """What has addresses alone gets its bytes: from now on the model can compute."""
        if not self.fits:
            raise InvalidInput(
                f"[export] Expected a model that says what it does without its weights ({size_text(self.bytes)}, more "
                f"than fit into memory here), but it reads what they decide: {why}. Export it loaded, without "
                "in_place, on a machine with more memory."
            )
        if self.filled or self.reserved is None:
            return
        self.check()
        for joined in self.joined:
            at = joined.at
            for block in joined.blocks:
                self.reserved.fill(at, self.files, block.file, block.offset, block.bytes)
                at += block.bytes
        self.filled = True

    def check(self) -> None:
        """The files are as they were, and nobody took addresses for numbers."""
        self.files.check_unchanged()
        if self.reserved is not None and not self.filled and self.reserved.touched:
            raise InvalidInput(
                "[export] Expected a model that is recorded without its weights, but the values of experts were read. "
                "Export without in_place."
            )


def slots(model: torch.nn.Module, table: str) -> list[tuple[tuple[dict[str, Any], str], Any]]:
    """Every place of the model that holds a tensor."""
    return [
        ((held, name), tensor)
        for module in model.modules()
        for held in [getattr(module, table)]
        for name, tensor in held.items()
        if tensor is not None
    ]
