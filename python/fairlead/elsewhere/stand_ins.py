"""A model whose weights are elsewhere is exported where it is: CPU tensors stand in for them meanwhile.

1. Small tensors and buffers are fetched. Larger ones have addresses with nothing behind them: the model is recorded
   without its weights, and they are streamed from where they are when the file is written.
2. Hooks that move tensors to where a module is executed are left out: here there is one device.
3. The file is checked on the CPU, against the model with its weights, where those fit into memory; otherwise a few of
   its layers are.
Whatever happens, the model is as it was afterwards.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from fairlead._core import FairleadError, FetchedWeights, InvalidInput, SharedWeights, check_data
from fairlead.base.alone import during, taken_back
from fairlead.base.memory import free_memory
from fairlead.base.units import size_text
from fairlead.elsewhere.layer_check import call_without_past, check_layers
from fairlead.elsewhere.one_device import OneDevice, here
from fairlead.elsewhere.sources import (
    PLAIN,
    Checkpoint,
    Slot,
    Source,
    hooks_of,
    is_here,
    offloaded,
    replaced,
    slots_of,
)
from fairlead.options import Options
from fairlead.tree.calls import normalise

SMALL = 1 << 20  # bytes of a tensor that is fetched at once
READ = 64 << 20  # of a buffer: runs without weights read those
TIMES = 3  # weights, and what ONNX Runtime makes of them


class Fetcher:
    """For the core: bytes of tensors."""

    def __init__(self, sources: list[Source]):
        self.sources = sources
        self.last: tuple[int, torch.Tensor] | None = None  # what was loaded: pieces of it are asked for

    def __call__(self, number: int, offset: int, into: Any) -> None:
        source = self.sources[number]
        if self.last is None or self.last[0] != number:
            self.last = None  # before the next one is there
            self.last = (number, loaded(source, f"a weight {source.where}").contiguous())
        found = self.last[1].reshape(-1).view(torch.uint8)[offset : offset + into.size]
        torch.from_numpy(into).copy_(found)
        if offset + into.size == source.bytes:
            self.last = None


class Elsewhere:
    """As Options.placed: weights that are fetched when somebody needs them."""

    def __init__(self, model: torch.nn.Module, checkpoint: Any = None):
        self.model = model
        away = [slot for slot in slots_of(model) if is_slot_away(slot)]
        self.before = [(slot, slot.tensor) for slot in away]
        self.forwards = [module for module in model.modules() if hooks_of(module)]
        self.checkpoint = None if checkpoint is None else Checkpoint(checkpoint)
        self.sources: list[Source] = []  # of those that are fetched
        self.new: dict[int, torch.Tensor] = {}  # by id of the tensor that it stands in for
        self.filled = False
        waiting = self.find(away)
        self.fetched = FetchedWeights([s.bytes for s in self.sources], Fetcher(self.sources)) if self.sources else None
        self.bytes = sum(t.numel() * t.element_size() for t in self.new.values())
        self.bytes += sum(s.bytes for s in self.sources)
        self.places = list(dict.fromkeys(s.where for s in self.sources))
        self.first = 0
        if self.fetched is not None:
            memory = torch.from_numpy(self.fetched.memory)
            self.first = memory.data_ptr()
            for number, (key, source) in enumerate(zip(waiting, self.sources, strict=True)):
                at = self.fetched.offset(number)
                self.new[key] = memory[at : at + source.bytes].view(source.dtype).view(source.shape)

    def find(self, away: list[Slot]) -> list[int]:
        """Tensors that are here by now; gives the ids of the others, whose sources are in `sources`."""
        known = offloaded(self.model)
        meta = [s for s in away if s.tensor.is_meta and (id(s.module), s.name) not in known]
        stored = {} if self.checkpoint is None else self.checkpoint.sources(meta, self.model)
        if self.checkpoint is None and meta:
            raise InvalidInput(
                f"[export] Expected weights, got {len(meta)} tensors on meta, {meta[0].path} among them, which have no "
                "values. Load the model's weights, or name a safetensors file that has them: checkpoint='FILE'."
            )
        waiting: dict[int, Source] = {}
        for slot in away:
            key = id(slot.tensor)
            if key in self.new or key in waiting:
                continue
            source = stored.get(key) or known.get((id(slot.module), slot.name)) or on_device(slot)
            if source.here is not None:
                self.new[key] = source.here.detach()
            elif source.bytes <= (READ if slot.is_buffer else SMALL):
                self.new[key] = plain(source, slot.path)
            elif slot.is_buffer:
                raise InvalidInput(
                    f"[export] Expected buffers of at most {size_text(READ)} with a model that is elsewhere, got "
                    f"{slot.path} of {size_text(source.bytes)}. Make it a parameter, or move the model with .cpu()."
                )
            else:
                waiting[key] = source
        self.sources = list(waiting.values())
        return list(waiting)

    # ---- as Options.placed -------------------------------------------------------------------------------

    @property
    def fits(self) -> bool:
        return TIMES * self.bytes <= free_memory()

    def read(self, why: str) -> None:
        if not self.fits:
            raise InvalidInput(
                f"[export] Expected a model that says what it does without its weights ({size_text(self.bytes)}, more "
                f"than fit into memory here), but they are needed: {why}. Export it on a machine with more memory."
            )
        if self.fetched is not None and not self.filled:
            self.check()
            self.fetched.fill_all()
            self.filled = True

    def fill(self, parameters: list[torch.nn.Parameter]) -> None:
        """These alone, for a layer."""
        places = {p.data_ptr() for p in parameters}
        if self.fetched is None or self.filled:
            return
        for number in range(len(self.sources)):
            if self.first + self.fetched.offset(number) in places:
                self.fetched.fill(number)

    def forget(self, parameters: list[torch.nn.Parameter]) -> None:
        if self.fetched is not None and not self.filled:
            self.fetched.forget()

    def check_file(self, path: str, bytes_too: bool) -> str:
        """Read again where nobody ran it: what was written is what was fetched."""
        size = check_data(path) if bytes_too and not self.filled else 0
        self.check()
        if not self.places:
            return "weights were taken from where they are"
        words = f"weights were streamed from where they are ({', '.join(self.places)})"
        return words + (f", and {size_text(size)} of them read again" if size else "")

    def check(self) -> None:
        if self.fetched is not None and self.fetched.touched:
            raise InvalidInput(
                "[export] Expected a model that is recorded without its weights, but their values were read. Move it "
                "to the CPU with .cpu()."
            )
        if self.checkpoint is not None:
            self.checkpoint.files.check_unchanged()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """What fails because a checkpoint changed says so."""
        try:
            yield
        except FairleadError:
            if self.checkpoint is not None:
                self.checkpoint.files.check_unchanged()
            raise

    def shared(self, folder: str = "", given: SharedWeights | None = None) -> SharedWeights:
        made = given or SharedWeights()
        made.declare_fetched(self.fetched)
        return made

    # ---- the model meanwhile -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def standing_in(self) -> Iterator[None]:
        within = {(id(slot.module), slot.name): slot for slot, _ in self.before if slot.within}.values()
        holders = [(slot.module.__dict__, slot.name, slot.module.__dict__[slot.name]) for slot in within]

        def begin() -> tuple[list[tuple[torch.nn.Module, Any]]]:
            floats = {key: t for key, t in self.new.items() if t.is_floating_point() or t.is_complex()}
            parameters = self.new | {key: torch.nn.Parameter(t, requires_grad=False) for key, t in floats.items()}
            kept = {id(tensor) for slot, tensor in self.before if not slot.is_buffer}
            for table, name, value in holders:  # of parameters, too, which stay the same ones
                table[name] = replaced(value, self.new | {key: parameters[key] for key in kept})
            for slot, tensor in self.before:  # those that are tied stay one
                slot.put((self.new if slot.is_buffer else parameters)[id(tensor)])
            hooked = [(module, module.__dict__.get("forward")) for module in self.forwards]
            for module in self.forwards:
                module.__dict__["forward"] = module._old_forward
            return (hooked,)

        def end(hooked: list[tuple[torch.nn.Module, Any]]) -> None:
            for module, forward in hooked:
                if forward is None:
                    module.__dict__.pop("forward", None)
                else:
                    module.__dict__["forward"] = forward
            for slot, tensor in self.before:
                slot.put(tensor)
            for table, name, value in holders:
                table[name] = value

        with during(begin, end), taken_back(), OneDevice():
            yield


def on_device(slot: Slot) -> Source:
    return Source(lambda: slot.tensor, slot.tensor.shape, slot.tensor.dtype, f"on {slot.tensor.device}")


def loaded(source: Source, what: str) -> torch.Tensor:
    """Of the sizes that the model has."""
    try:
        tensor = source.load()
    except (OSError, KeyError, RuntimeError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise InvalidInput(
            f"[export] Expected {what}, but it cannot be read ({type(error).__name__}: {first}). Load the model again."
        ) from error
    if type(tensor) not in PLAIN or tuple(tensor.shape) != tuple(source.shape):
        raise InvalidInput(
            f"[export] Expected {what} as a plain tensor {list(source.shape)}, got {type(tensor).__name__} "
            f"{list(tensor.shape)}. Move the model to the CPU first."
        )
    return tensor.detach().to(source.dtype)


def plain(source: Source, path: str) -> torch.Tensor:
    return loaded(source, path).cpu()


def is_slot_away(slot: Slot) -> bool:
    """An attribute on meta is no weight: who reads it finds out."""
    return not is_here(slot.tensor) and not (slot.tensor.is_meta and slot.table == "__dict__")


def is_away(model: Any) -> bool:
    if not isinstance(model, torch.nn.Module):
        return False
    return any(map(is_slot_away, slots_of(model))) or any(hooks_of(m) for m in model.modules())


def has_tensors(model: Any) -> bool:
    return not isinstance(model, torch.nn.Module) or next(slots_of(model), None) is not None


@contextlib.contextmanager
def where_it_is(
    options: Options, model: Any, inputs: Any, lean: bool, export: Callable[..., Any], show: Any
) -> Iterator[tuple[Options, Any]]:
    """Options and inputs with which a model is exported whose weights are not here; others are left as they are.
    `lean`: whether what is made can be made without them; `export` is fairlead.export_with, for a layer."""
    if options.placed is None and not has_tensors(model):
        inputs = here(inputs)  # it computes where they are
    if options.placed is not None or not is_away(model):
        if options.checkpoint is not None:
            raise InvalidInput(
                f"[export] Expected a model on meta with checkpoint={os.fsdecode(options.checkpoint)!r}, got one that "
                "has its weights. Leave checkpoint out."
            )
        yield options, inputs
        return
    placed = Elsewhere(model, options.checkpoint)
    options = replace(options, checkpoint=None)
    with placed.standing_in(), placed.watched():
        inputs = here(inputs)
        if not lean:
            placed.read("what is asked for is made of them")
            yield options, inputs
            placed.check()
            return
        shared = placed.shared(given=options.shared_weights)
        try:
            options = replace(options, placed=placed, shared_weights=shared)
            if options.verify and not placed.fits:
                options = layers_checked(options, model, inputs, placed, export, show)
            yield options, inputs
        finally:
            shared.declare_fetched(None)


def layers_checked(options: Options, model: Any, inputs: Any, placed: Elsewhere, export: Any, show: Any) -> Options:
    """In place of the whole, which cannot be run here."""
    calls = [call.named for call in normalise(model, inputs)]
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        call = partial(call_without_past, model, calls)
        words = check_layers(model, call, placed, options, folder, show or (lambda what: None), export)
    return replace(options, verify=False, checked=words)
