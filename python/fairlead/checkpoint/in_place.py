"""A model whose weights stay in the files of its checkpoint: made from its configuration, and never loaded.

1. The core reads the headers of the safetensors files and maps them: a tensor there is an address, and no memory.
2. Transformers loads the model as it always does, by its own rules for names, experts and dtypes, from tensors that
   remember which parts of which files they are (parts.py).
3. A parameter that is one part of one file lies where the file is mapped. One that is several parts in order (experts
   that are stacked) has addresses with nothing behind them, and becomes several references in the ONNX file. What is
   neither is converted, part by part, into one more file.
"""

from __future__ import annotations

import gc
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from fairlead._core import (
    ConvertedFile,
    InvalidInput,
    PlacedWeights,
    SharedWeights,
    WeightFile,
    WeightFolder,
    add_decoded,
    give_back_memory,
)
from fairlead.base.memory import free_memory
from fairlead.base.units import size_text
from fairlead.checkpoint.codes import METHODS as CODES
from fairlead.checkpoint.parts import Files, Stored, Unread
from fairlead.checkpoint.source import Checkpoint
from fairlead.checkpoint.stored import METHODS, is_taken_apart, method_of, taken_apart
from fairlead.tree.dtypes import DTYPES


@dataclass
class InPlace:
    """The files of a checkpoint, and what of a model lies in them."""

    folder: str
    files: WeightFolder
    placed: PlacedWeights  # which parameter is which part of which file
    origin: Files
    memory: list[torch.Tensor] = field(default_factory=list)  # by file
    extra: Any = None  # the file of converted weights, mapped
    extra_name: str = ""
    bytes: int = 0  # of the parameters
    converted: int = 0  # bytes of them that are in the extra file
    staged: str = ""  # the folder in which an ONNX file finds the files
    filled: bool = False
    ways: list[str] = field(default_factory=list)  # how its files came into another folder

    @staticmethod
    def of(folder: str) -> InPlace:
        files = WeightFolder(folder)
        found = InPlace(folder, files, PlacedWeights(files), Files(files))
        found.memory = [torch.from_numpy(files.memory(k)) for k in range(len(files.names))]
        return found

    # ---- what Transformers loads --------------------------------------------------------------------

    def state_dict(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """By the names that its files have. Quantised ones are floats, which nobody has computed yet."""
        names = self.files.tensor_names()
        if method_of(checkpoint) is None:
            return {name: Unread(self.stored, number) for number, name in enumerate(names)}
        if not is_taken_apart(checkpoint):
            known = ", ".join(dict.fromkeys([*METHODS, *CODES]))
            raise InvalidInput(
                f"[export] Expected floats, or weights quantised by {known}, where none is loaded, got "
                f"{method_of(checkpoint)} in '{self.folder}'. Export it without in_place and place, where the library "
                "of that method is installed."
            )
        found, used = taken_apart(checkpoint, Mapped(self, {name: number for number, name in enumerate(names)}))
        made = {name: Unread(self.stored, number) for number, name in enumerate(names) if name not in used}
        for each in found:
            number = add_decoded(self.files, each.name, each.dims, each.tensor)
            make = self.stored if each.order is None else partial(self.stored, order=each.order)
            made[each.name] = Unread(make, number)
        return made

    def stored(self, number: int, order: Sequence[int] | None = None) -> Stored:
        blocks = self.files.blocks(number)
        blocks = blocks if order is None else blocks.permuted(list(order))
        return Stored(blocks, getattr(torch, self.files.dtype(number)), self.origin)

    # ---- parameters ---------------------------------------------------------------------------------

    def place(self, model: torch.nn.Module, folder: str, show: Any = None) -> None:
        """Every parameter and buffer that is Stored gets its place. What has to be converted goes to a file in
        `folder`. Runs without weights read buffers all the same: one that is put together is, and is small."""
        known: dict[int, torch.Tensor] = {}
        joined: list[tuple[Stored, int, int]] = []
        other: list[Stored] = []
        buffers = {id(t) for _, t in slots(model, "_buffers")}
        stored = [t for _, t in [*slots(model, "_parameters"), *slots(model, "_buffers")] if isinstance(t, Stored)]
        for tensor in {id(t): t for t in stored}.values():
            self.bytes += tensor.numel() * tensor.dtype.itemsize
            if tensor.blocks.count > 1 and id(tensor) in buffers:
                known[id(tensor)] = tensor.computed()
                continue
            way, file, offset, size = self.placed.add(tensor.blocks, DTYPES[tensor.dtype])
            if way == "mapped":
                known[id(tensor)] = as_tensor(self.memory[file][offset : offset + size], tensor)
            elif way == "joined":
                joined.append((tensor, offset, size))
            elif way == "other":
                other.append(tensor)
            else:
                known[id(tensor)] = torch.empty(tuple(tensor.shape), dtype=tensor.dtype)
        self.placed.reserve()
        for tensor, at, size in joined:
            known[id(tensor)] = as_tensor(torch.from_numpy(self.placed.memory)[at : at + size], tensor)
        self.convert(other, known, folder, show)
        made = {key: torch.nn.Parameter(tensor, requires_grad=False) for key, tensor in known.items()}
        for (table, name), tensor in slots(model, "_parameters"):
            table[name] = made.get(id(tensor), tensor)  # those that are tied stay one
        for (table, name), tensor in slots(model, "_buffers"):
            table[name] = known.get(id(tensor), tensor)

    def convert(self, waiting: list[Stored], known: dict[int, torch.Tensor], folder: str, show: Any) -> None:
        if not waiting:
            return
        path = os.path.join(folder, "converted")
        file = ConvertedFile(self.files, path, os.path.join(self.folder, "model.onnx"), os.cpu_count() or 1)
        whole = sum(tensor.numel() * tensor.dtype.itemsize for tensor in waiting)
        places, told = [], 0.0
        for tensor in waiting:
            places.append(self.placed.add_converted(file, tensor.blocks, DTYPES[tensor.dtype]))
            self.converted += places[-1][1]
            if show is not None and time.monotonic() - told > 1:
                told = time.monotonic()
                show(f"converting weights: {size_text(self.converted)} of {size_text(whole)}")
        self.extra_name = f"model.onnx.{file.close()}.data"
        self.files.check_unchanged()
        os.rename(path, os.path.join(folder, self.extra_name))
        self.extra = WeightFile(os.path.join(folder, self.extra_name))
        memory = torch.from_numpy(self.extra.memory)
        for tensor, (begin, size) in zip(waiting, places, strict=True):
            known[id(tensor)] = as_tensor(memory[begin : begin + size], tensor)

    def shared(self, folder: str) -> SharedWeights:
        """Which memory stands for which bytes of the files, which are in `folder` under their names."""
        gc.collect()
        give_back_memory()  # what loading and observing took
        made = SharedWeights()
        made.declare_placed(folder, self.placed, self.extra, self.extra_name)
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
        if self.filled or self.placed.memory is None:
            return
        self.check()
        self.placed.fill_all()
        self.filled = True

    def fill(self, parameters: list[torch.nn.Parameter]) -> None:
        """The same for these parameters alone."""
        for at in self.joined_in(parameters):
            self.placed.fill(at)

    def joined_in(self, parameters: list[torch.nn.Parameter]) -> list[int]:
        """Where those begin that have addresses alone."""
        if self.placed.memory is None:
            return []
        first = self.placed.memory.ctypes.data
        return sorted({p.data_ptr() - first for p in parameters if self.placed.is_joined(p.data_ptr() - first)})

    def forget(self, parameters: list[torch.nn.Parameter]) -> None:
        """What was read of these parameters need not stay in memory."""
        if not self.filled and self.joined_in(parameters):
            self.placed.forget()
        for parameter in parameters:
            for k, memory in enumerate(self.memory):
                offset = parameter.data_ptr() - memory.data_ptr()
                if 0 <= offset < memory.numel():
                    self.files.forget(k, offset, parameter.numel() * parameter.element_size())

    def check_file(self, path: str, bytes_too: bool) -> str:
        """Every initializer of a written model that lies in another file is a tensor there, or what was made of one;
        with `bytes_too` its bytes are that tensor's, by their hashes, where they are not in the checkpoint's own file.
        In words for the contract."""
        count, compared, size = self.placed.check(path, self.staged, self.extra_name, bytes_too)
        words = f"all {count} references are tensors of the checkpoint"
        if not bytes_too:
            return words
        if not compared:
            return f"{words}, in its own files"
        return f"{words}, {compared} of them ({size_text(size)}) compared by the hash of their bytes"

    def check(self) -> None:
        """The files are as they were, and nobody took addresses for numbers."""
        self.files.check_unchanged()
        if not self.filled and self.placed.touched:
            raise InvalidInput(
                "[export] Expected a model that is recorded without its weights, but the values of experts were read. "
                "Export without in_place."
            )


class Mapped(Mapping[str, torch.Tensor]):
    """The tensors of the files by name, where they are mapped; each is made when it is asked for."""

    def __init__(self, placed: InPlace, numbers: dict[str, int]):
        self.placed, self.numbers = placed, numbers

    def __getitem__(self, name: str) -> torch.Tensor:
        files, number = self.placed.files, self.numbers[name]
        sizes, file, begin = files.place(number)
        dtype = getattr(torch, files.dtype(number))
        found = self.placed.memory[file][begin : begin + math.prod(sizes) * dtype.itemsize]
        return (found if found.data_ptr() % dtype.itemsize == 0 else found.clone()).view(dtype).view(sizes)

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


def as_tensor(memory: torch.Tensor, like: Stored) -> torch.Tensor:
    return memory.view(like.dtype).view(tuple(like.shape))


def slots(model: torch.nn.Module, table: str) -> list[tuple[tuple[dict[str, Any], str], Any]]:
    """Every place of the model that holds a tensor."""
    return [
        ((held, name), tensor)
        for module in model.modules()
        for held in [getattr(module, table)]
        for name, tensor in held.items()
        if tensor is not None
    ]
