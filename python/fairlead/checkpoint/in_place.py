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
import time
from dataclasses import dataclass, field
from typing import Any

import torch

from fairlead._core import (
    ConvertedFile,
    InternalError,
    InvalidInput,
    ReservedMemory,
    SharedWeights,
    WeightFile,
    WeightFolder,
    WriteError,
    read_references,
)
from fairlead.base.units import size_text
from fairlead.checkpoint.parts import Block, Stored, Unread, dense, in_order
from fairlead.tree.dtypes import DTYPES

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
    extra: Any = None  # the file of converted weights, mapped
    extra_name: str = ""
    bytes: int = 0  # of the parameters
    converted: int = 0  # bytes of them that are in the extra file
    used: set[int] = field(default_factory=set)  # files of the checkpoint that are referred to
    parts: dict[tuple[str, int], tuple[str, int, str]] = field(default_factory=dict)  # where -> (dtype, bytes, name)
    hashes: dict[int, str] = field(default_factory=dict)  # of what was converted, by its place in the extra file
    staged: str = ""  # the folder in which an ONNX file finds the files
    filled: bool = False
    ways: list[str] = field(default_factory=list)  # how its files came into another folder

    @staticmethod
    def of(folder: str) -> InPlace:
        files = WeightFolder(folder)
        found = InPlace(folder, files)
        found.memory = [torch.from_numpy(files.memory(k)) for k in range(len(files.names))]
        return found

    # ---- what Transformers loads --------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for number in range(self.files.count):
            name, kind, dtype, *_ = self.files.tensor(number)
            if dtype is None:
                raise InvalidInput(
                    f"[export] Expected weights of types that PyTorch has, got {kind} for {name} in '{self.folder}'. "
                    "Export without in_place."
                )
            made[name] = Unread(self.stored, number)
        return made

    def stored(self, number: int) -> Stored:
        name, _, dtype, sizes, file, begin, _ = self.files.tensor(number)
        assert dtype is not None
        shape, known = tuple(sizes), TYPES[dtype]
        block = Block((0,) * len(shape), shape, name, file, begin, known, 0, dense(shape))
        return Stored(shape, known, [block] if math.prod(shape) else [], self.whole)

    def whole(self, block: Block) -> torch.Tensor:
        """The elements of a block's tensor, up to its last one."""
        last = block.first + sum((n - 1) * step for n, step in zip(block.sizes, block.strides, strict=True))
        found = self.memory[block.file][block.begin : block.begin + (last + 1) * block.dtype.itemsize]
        return (found if block.begin % block.dtype.itemsize == 0 else found.clone()).view(block.dtype)

    # ---- parameters ---------------------------------------------------------------------------------

    def place(self, model: torch.nn.Module, folder: str, show: Any = None) -> None:
        """Every parameter and buffer that is Stored gets its place. What has to be converted goes to a file in
        `folder`. Runs without weights read buffers all the same: one that is put together is, and is small."""
        known: dict[int, torch.Tensor] = {}
        waiting: list[tuple[Stored, list[Block]]] = []
        other: list[tuple[Stored, list[Block]]] = []
        buffers = {id(t) for _, t in slots(model, "_buffers")}
        stored = [t for _, t in [*slots(model, "_parameters"), *slots(model, "_buffers")] if isinstance(t, Stored)]
        for tensor in {id(t): t for t in stored}.values():
            blocks = list(in_order(tensor.blocks, tuple(tensor.shape)))
            self.bytes += tensor.numel() * tensor.dtype.itemsize
            if not all(self.is_plain(b, tensor.dtype) for b in blocks):
                other.append((tensor, blocks))
                continue
            if len(blocks) > 1 and id(tensor) in buffers:
                known[id(tensor)] = tensor.computed()
                continue
            self.used |= {b.file for b in blocks}
            for b in blocks:
                self.parts[self.files.names[b.file], b.offset] = (DTYPES[b.dtype], b.bytes, b.name)
            if len(blocks) > 1:
                waiting.append((tensor, blocks))
            elif blocks:
                known[id(tensor)] = self.mapped(blocks[0], tuple(tensor.shape))
            else:
                known[id(tensor)] = torch.empty(tuple(tensor.shape), dtype=tensor.dtype)
        self.reserve(waiting, known)
        self.convert(other, known, folder, show)
        made = {key: torch.nn.Parameter(tensor, requires_grad=False) for key, tensor in known.items()}
        for (table, name), tensor in slots(model, "_parameters"):
            table[name] = made.get(id(tensor), tensor)  # those that are tied stay one
        for (table, name), tensor in slots(model, "_buffers"):
            table[name] = known.get(id(tensor), tensor)

    def is_plain(self, block: Block, dtype: torch.dtype) -> bool:
        return block.dtype == dtype and block.in_order and block.offset % dtype.itemsize == 0

    def mapped(self, block: Block, shape: tuple[int, ...]) -> torch.Tensor:
        return self.memory[block.file][block.offset : block.offset + block.bytes].view(block.dtype).view(shape)

    def convert(
        self, waiting: list[tuple[Stored, list[Block]]], known: dict[int, torch.Tensor], folder: str, show: Any
    ) -> None:
        if not waiting:
            return
        path = os.path.join(folder, "converted")
        file = ConvertedFile(self.files, path, os.path.join(self.folder, "model.onnx"), os.cpu_count() or 1)
        sizes = [tensor.numel() * tensor.dtype.itemsize for tensor, _ in waiting]
        begins, told = [], 0.0
        for (tensor, blocks), size in zip(waiting, sizes, strict=True):
            parts = [(b.file, b.offset, DTYPES[b.dtype], list(b.sizes), list(b.strides)) for b in blocks]
            begin, self.hashes[begin] = file.add(DTYPES[tensor.dtype], parts)
            begins.append(begin)
            self.converted += size
            if show is not None and time.monotonic() - told > 1:
                told = time.monotonic()
                show(f"converting weights: {size_text(self.converted)} of {size_text(sum(sizes))}")
        self.extra_name = f"model.onnx.{file.close()}.data"
        self.files.check_unchanged()
        os.rename(path, os.path.join(folder, self.extra_name))
        self.extra = WeightFile(os.path.join(folder, self.extra_name))
        memory = torch.from_numpy(self.extra.memory)
        for (tensor, blocks), begin, size in zip(waiting, begins, sizes, strict=True):
            self.parts[self.extra_name, begin] = (DTYPES[tensor.dtype], size, blocks[0].name)
            known[id(tensor)] = memory[begin : begin + size].view(tensor.dtype).view(tuple(tensor.shape))

    def reserve(self, waiting: list[tuple[Stored, list[Block]]], known: dict[int, torch.Tensor]) -> None:
        at = 0
        for _, blocks in waiting:
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
        if self.extra is not None:
            memory = self.extra.memory
            rows.append((memory.ctypes.data, self.extra_name, 0, memory.size))
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
            self.fill_one(joined)
        self.filled = True

    def fill(self, parameters: list[torch.nn.Parameter]) -> None:
        """The same for these parameters alone."""
        for joined in self.joined_in(parameters):
            self.fill_one(joined)

    def fill_one(self, joined: Joined) -> None:
        at = joined.at
        for block in joined.blocks:
            self.reserved.fill(at, self.files, block.file, block.offset, block.bytes)
            at += block.bytes

    def joined_in(self, parameters: list[torch.nn.Parameter]) -> list[Joined]:
        if self.reserved is None:
            return []
        first = self.reserved.memory.ctypes.data
        places = {p.data_ptr() - first for p in parameters}
        return [joined for joined in self.joined if joined.at in places]

    def forget(self, parameters: list[torch.nn.Parameter]) -> None:
        """What was read of these parameters need not stay in memory."""
        if not self.filled and self.joined_in(parameters):
            self.reserved.forget()
        for parameter in parameters:
            for k, memory in enumerate(self.memory):
                offset = parameter.data_ptr() - memory.data_ptr()
                if 0 <= offset < memory.numel():
                    self.files.forget(k, offset, parameter.numel() * parameter.element_size())

    def check_file(self, path: str, bytes_too: bool) -> str:
        """Every initializer of a written model that lies in another file is a tensor there, or what was made of one;
        with `bytes_too` its bytes are that tensor's, by their hashes, where they are not in the checkpoint's own file.
        In words for the contract."""
        rows = read_references(path)
        compared: dict[tuple[str, int], int] = {}
        copies: dict[str, WeightFile | None] = {}
        for name, dtype, file, offset, size in rows:
            found = self.parts.get((file, offset))
            if found is None or found[:2] != (dtype, size):
                raise InternalError(
                    f"[export] Expected {name} to be a tensor of '{self.folder}', got {size} bytes of {dtype} at "
                    f"{offset} of {file}, where there is {'none' if found is None else found[2]}. This is a fault in "
                    "Fairlead; please report it."
                )
            if file not in copies:
                copies[file] = self.copy_of(file) if bytes_too else None
            copy = copies[file]
            if copy is None or (file, offset) in compared:
                continue
            compared[file, offset] = size
            got, wanted = copy.hash(offset, size), self.hash_of(file, offset, size)
            if got != wanted:
                raise WriteError(
                    f"[export] Expected the bytes of {found[2]} of '{self.folder}' for {name}, got others at {offset} "
                    f"of {file} (hash {got}, not {wanted}). Export again, and check the disk."
                )
        words = f"all {len(rows)} references are tensors of the checkpoint"
        if not bytes_too:
            return words
        if not compared:
            return f"{words}, in its own files"
        whole = size_text(sum(compared.values()))
        return f"{words}, {len(compared)} of them ({whole}) compared by the hash of their bytes"

    def copy_of(self, file: str) -> WeightFile | None:
        """A file that is not the checkpoint's own."""
        path, own = os.path.join(self.staged, file), os.path.join(self.folder, file)
        is_own = file != self.extra_name and (not os.path.exists(path) or os.path.samefile(path, own))
        return None if is_own else WeightFile(path)

    def hash_of(self, file: str, offset: int, size: int) -> str:
        """Of what bytes should be."""
        if file == self.extra_name:
            return self.hashes[offset]
        return self.files.hash(self.files.names.index(file), offset, size)

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
