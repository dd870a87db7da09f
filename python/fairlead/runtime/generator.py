"""Generator: the parts of an exported model, run one after the other in ONNX Runtime until the text ends.

A pool holds values by name. A step runs its parts in order; each takes its inputs from the pool and puts its outputs
back. Then `present.*` becomes `past_key_values.*`, the mask and the positions grow, and the next step begins. The cache
stays in ONNX Runtime's own memory.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fairlead._core import FairleadError, InvalidInput, ParseError
from fairlead.runtime import manifest as manifests
from fairlead.runtime.grids import grid_inputs
from fairlead.runtime.part import Part
from fairlead.runtime.positions import positions_for
from fairlead.runtime.sampling import Chooser, Settings
from fairlead.runtime.values import TYPES, ort_value, to_numpy

ROOM = 64  # tokens that a shared cache has room for beyond those that are there


def state_of(folder: str) -> tuple[Any, ...] | None:
    """Changes when another folder gets this name, or a file of it is replaced."""
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


class Generator:
    """Generates tokens from what export_for_generation returned, or from the folder it wrote.

    generator = Generator(parts)                    # or Generator.from_folder("out/")
    tokens = generator.generate(input_ids, attention_mask=mask, max_new_tokens=32)
    for step in generator.stream(input_ids, max_new_tokens=32, do_sample=True, top_p=0.9, seed=0): ...

    Needs numpy and ONNX Runtime. `providers` and `session_options` are handed to ONNX Runtime.
    """

    def __init__(self, parts: Any, *, providers: list[Any] | None = None, session_options: Any = None):
        self.folder = folder_of(parts)
        for last in (False, False, True):
            before = state_of(self.folder)
            try:
                self.load(providers, session_options)
                if last or state_of(self.folder) == before:
                    break
            except FairleadError:  # of a folder that is replaced meanwhile no two files need to belong together
                if last or state_of(self.folder) == before:
                    raise

    def load(self, providers: list[Any] | None, session_options: Any) -> None:
        self.manifest = manifests.read(self.folder)
        files: dict[str, Part] = {}  # a file that serves two parts is loaded once
        self.parts: dict[str, Part] = {}
        for name, part in self.manifest["parts"].items():
            file = part["file"]
            if file not in files:
                files[file] = Part(os.path.join(self.folder, file), session_options, providers, part.get("takes"))
            self.parts[name] = files[file]

    @classmethod
    def from_folder(cls, folder: Any, **options: Any) -> Generator:
        """The generator of a folder that export_for_generation wrote: .onnx files and generation.json."""
        return cls(os.fsdecode(folder), **options)

    # ---- what a user calls

    def generate(
        self,
        input_ids: Any = None,
        attention_mask: Any = None,
        *,
        callback: Callable[[np.ndarray], Any] | None = None,
        **given: Any,
    ) -> np.ndarray:
        """The tokens as model.generate returns them: int64[batch, length], prompt first (for an encoder-decoder the
        decoder's start). `callback` is called with int64[batch] after every step.

        Settings: max_new_tokens, do_sample, temperature, top_k, top_p, seed, eos_token_id, pad_token_id,
        repetition_penalty, no_repeat_ngram_size, min_new_tokens, ... Everything else is an input of the model, by the
        name it has there (pixel_values, input_features, token_type_ids).
        """
        run = Run(self, input_ids, attention_mask, given)
        for step in run:
            if callback is not None:
                callback(step)
        return run.tokens

    def stream(self, input_ids: Any = None, attention_mask: Any = None, **given: Any) -> Iterator[np.ndarray]:
        """Yields int64[batch] per step, as soon as it is known; a row that has ended gives the padding token."""
        yield from Run(self, input_ids, attention_mask, given)


def folder_of(parts: Any) -> str:
    """Where the parts lie: a folder, or what export_for_generation returned."""
    if isinstance(parts, (str, os.PathLike)):
        return os.fsdecode(parts)
    if isinstance(parts, dict) and parts:
        paths = {name: getattr(program, "path", None) or "" for name, program in parts.items()}
        unwritten = next((name for name, path in paths.items() if not path), None)
        if unwritten is not None:
            raise InvalidInput(
                f"[Generator] Expected parts that were written to files, got {unwritten} without a path. "
                "Export with OnnxConfig(output_path=...)."
            )
        return os.path.dirname(os.path.abspath(os.fsdecode(next(iter(paths.values())))))
    raise InvalidInput(
        f"[Generator] Expected what export_for_generation returned, or a folder, got {type(parts).__name__}."
    )


@contextlib.contextmanager
def fitting(folder: str) -> Iterator[None]:
    """Manifest and files may each be right and not belong together: then a name is missing, or an array is of another
    form, somewhere below."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        if isinstance(error, FairleadError):
            raise
        raise ParseError(
            f"[generate] Expected parts and a generation.json that belong together in {folder}, but there was "
            f"{type(error).__name__}: {str(error)[:200]}. Export the model again."
        ) from error


class Run:
    """One generation: the pool of values, and what was generated so far."""

    def __init__(self, generator: Generator, input_ids: Any, attention_mask: Any, given: dict[str, Any]):
        self.manifest, self.parts, self.folder = generator.manifest, generator.parts, generator.folder
        with fitting(self.folder):
            self.begin(input_ids, attention_mask, given)

    def begin(self, input_ids: Any, attention_mask: Any, given: dict[str, Any]) -> None:
        names = {name for part in self.parts.values() for name in part.inputs} | set(self.extra_inputs())
        inputs = {name: given.pop(name) for name in list(given) if name in names and given[name] is not None}
        given = {name: value for name, value in given.items() if name not in names}
        self.settings = Settings.of(self.manifest["settings"], given)
        self.pool: dict[str, Any] = {name: as_array(name, value) for name, value in inputs.items()}
        if self.manifest["kind"] == "encoder_decoder":
            self.encode(input_ids, attention_mask)
        else:
            self.prompt(input_ids, attention_mask)
        self.choose = Chooser(self.settings, self.tokens.shape[1], self.settings.steps(self.tokens.shape[1]))
        pad = self.settings.pad_token_id
        if pad is None:
            pad = self.settings.eos_token_id[0] if self.settings.eos_token_id else 0
        self.pad: int = pad

    def extra_inputs(self) -> list[str]:
        """Names that no part takes, but that positions and other inputs are made from."""
        grid = self.manifest.get("grid")
        return [*(self.manifest["positions"] or {}).get("inputs", []), *([grid["grid"]] if grid else [])]

    # ---- before the first step

    def prompt(self, input_ids: Any, attention_mask: Any) -> None:
        padding = self.settings.pad_token_id
        ids, mask = padded(input_ids, attention_mask, 0 if padding is None else padding)
        if not mask[:, -1].all():
            raise InvalidInput(
                "[generate] Expected prompts padded on the left, got a row whose last place is masked. "
                "Set tokenizer.padding_side = 'left', or pass a list of prompts."
            )
        self.tokens, self.mask = ids, mask
        shortest = self.manifest["parts"][self.manifest["prefill"][0]].get("shortest", 1)
        if ids.shape[1] < shortest:  # padding that the mask hides
            more = ((0, 0), (shortest - ids.shape[1], 0))
            ids, self.mask = np.pad(ids, more), np.pad(mask, more)
        self.start(ids)

    def encode(self, input_ids: Any, attention_mask: Any) -> None:
        """The encoder's inputs; the decoder starts with its own token, or with decoder_input_ids."""
        if input_ids is not None:
            padding = self.settings.pad_token_id
            ids, mask = padded(input_ids, attention_mask, 0 if padding is None else padding, left=False)
            self.pool |= {"input_ids": ids, "attention_mask": mask}
        elif attention_mask is not None:
            self.pool["attention_mask"] = as_array("attention_mask", attention_mask)
        first = next((n for n in self.parts[self.manifest["once"][0]].inputs if n in self.pool), None)
        if first is None:
            wanted = ", ".join(self.parts[self.manifest["once"][0]].inputs)
            raise InvalidInput(f"[generate] Expected {wanted}, got none. Pass what model.generate takes.")
        batch = self.pool[first].shape[0]
        name = self.manifest["tokens"]["input"]
        given = self.pool.pop(name, None)
        start = self.manifest["tokens"]["start"]
        if given is None and start is None:
            raise InvalidInput(f"[generate] Expected {name}, got none: the model has no decoder_start_token_id.")
        ids = given if given is not None else np.tile(np.asarray(start, np.int64).reshape(1, -1), (batch, 1))
        self.tokens, self.mask = ids, np.ones_like(ids)
        self.start(ids)

    def start(self, ids: np.ndarray) -> None:
        batch = ids.shape[0]
        self.shared = {entry["present"]: entry["past"] for entry in self.manifest["cache"] if entry.get("shared")}
        for entry in self.manifest["cache"]:
            shape = [batch if d == "batch" else 0 if isinstance(d, str) else d for d in entry["shape"]]
            self.pool[entry["past"]] = ort_value(np.zeros(shape, TYPES[entry["dtype"]]), entry["dtype"])
        self.fed = ids
        self.make_empty(ids.shape[1], missing_only=True)
        self.positions = positions_for(self.manifest["positions"], ids, self.mask, self.pool)
        self.complete = all(self.wanted(name) for name in self.manifest["once"])
        if self.complete:
            if self.manifest.get("grid"):
                self.pool |= grid_inputs(self.manifest["grid"], self.pool)
            for name in self.manifest["once"]:
                self.pool |= self.parts[name].run(self.pool)

    def wanted(self, name: str) -> bool:
        """Whether a part that runs once has anything to do: an image encoder without images has not."""
        part = self.manifest["parts"][name]
        return not part.get("optional") or part["optional"] in self.pool

    def make_empty(self, length: int, missing_only: bool) -> None:
        """What only the prompt has (features of images) is zero from then on, or where there is none."""
        for name, entry in self.manifest["prompt_only"].items():
            if missing_only and name in self.pool:
                continue
            sizes = {"batch": len(self.tokens), "sequence": length}
            shape = [sizes.get(d, 0) if isinstance(d, str) else d for d in entry["shape"]]
            self.pool[name] = np.zeros(shape, TYPES[entry["dtype"]])

    # ---- the steps

    def __iter__(self) -> Iterator[np.ndarray]:
        ended = np.zeros(len(self.tokens), bool)
        fed = self.fed
        for step in range(self.choose.last - self.choose.prompt + 1):
            with fitting(self.folder):
                logits = self.forward(fed, self.parts_of(step))
                chosen = np.where(ended, self.pad, self.choose(logits, self.tokens)).astype(np.int64)
                fed = self.take(chosen)
                ended |= np.isin(chosen, self.settings.eos_token_id)
            yield chosen
            if ended.all():
                return

    def parts_of(self, step: int) -> list[str]:
        return list(self.manifest["step" if step or not self.complete else "prefill"])

    def forward(self, fed: np.ndarray, parts: list[str]) -> np.ndarray:
        """Runs the parts of one step; the logits of the last place, [batch, vocabulary]."""
        return self.logits(fed, parts)[:, -1]

    def logits(self, fed: np.ndarray, parts: list[str]) -> np.ndarray:
        """Those of every place that the parts give."""
        pool = self.pool
        pool[self.manifest["tokens"]["input"]] = fed
        if self.manifest["kind"] != "encoder_decoder":
            pool["attention_mask"] = self.mask
        else:
            pool["decoder_attention_mask"] = self.mask
        if self.positions is not None:
            pool["position_ids"] = self.positions
        if self.shared:
            self.make_room(self.mask.shape[1])
        for name in parts:
            last = self.manifest["parts"][name].get("last")
            if last is not None:  # the head is only asked about the last place
                pool = {**pool, last: np.ascontiguousarray(to_numpy(pool[last])[:, -1:])}
            given = self.manifest["parts"][name].get("gives", {})
            pool = pool | {given.get(key, key): value for key, value in self.parts[name].run(pool, self.shared).items()}
        for entry in self.manifest["cache"]:
            self.pool[entry["past"]] = pool[entry["present"]]
        return to_numpy(pool["logits"])

    def make_room(self, length: int) -> None:
        """Shared buffers that are too short are made anew, twice as long: what is copied is little for each token."""
        for entry in self.manifest["cache"]:
            if not entry.get("shared"):
                continue
            shape = list(self.pool[entry["past"]].shape())
            axis = next(k for k, size in enumerate(entry["shape"]) if isinstance(size, str) and size != "batch")
            if shape[axis] >= length:
                continue
            shape[axis] = max(length + ROOM, 2 * shape[axis])
            held = to_numpy(self.pool[entry["past"]])
            made = np.zeros(shape, held.dtype)
            made[tuple(slice(0, size) for size in held.shape)] = held
            self.pool[entry["past"]] = ort_value(made, entry["dtype"])

    def take(self, chosen: np.ndarray) -> np.ndarray:
        """One token per row is chosen; what is fed next, and everything that grows with it."""
        self.tokens = np.concatenate([self.tokens, chosen[:, None]], 1)
        self.mask = np.concatenate([self.mask, np.ones_like(self.mask[:, :1])], 1)
        if self.positions is not None:
            self.positions = self.positions[..., -1:] + 1
        self.make_empty(1, missing_only=False)
        return chosen[:, None]


def as_array(name: str, value: Any) -> np.ndarray:
    """Lists, numpy arrays, and tensors of other libraries (through numpy)."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidInput(f"[generate] Expected {name} as an array, got {type(value).__name__} ({error}).") from None
    if array.dtype == object:
        raise InvalidInput(f"[generate] Expected {name} as an array of numbers, got {type(value).__name__}.")
    return array


def padded(ids: Any, mask: Any, pad: int, left: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and mask as int64[batch, length]; a list of prompts of different lengths is padded."""
    if ids is None:
        raise InvalidInput("[generate] Expected input_ids, got none. Pass the tokens of the prompt.")
    rows = ids if isinstance(ids, (list, tuple)) else None
    if rows and all(isinstance(row, (list, tuple, np.ndarray)) for row in rows) and len({len(r) for r in rows}) > 1:
        if mask is not None:
            raise InvalidInput("[generate] Expected no attention_mask beside prompts of different lengths, got one.")
        longest = max(len(row) for row in rows)
        array, mask = np.full((len(rows), longest), pad, np.int64), np.zeros((len(rows), longest), np.int64)
        for k, row in enumerate(rows):
            places = slice(longest - len(row), None) if left else slice(0, len(row))
            array[k, places], mask[k, places] = row, 1
    else:
        array = as_array("input_ids", ids)
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2 or array.shape[1] < 1 or array.dtype.kind not in "iu":
        raise InvalidInput(
            f"[generate] Expected input_ids as integers [batch, length], got {array.dtype}{list(array.shape)}."
        )
    array = array.astype(np.int64, copy=False)
    mask = np.ones_like(array) if mask is None else as_array("attention_mask", mask).astype(np.int64)
    mask = mask[None] if mask.ndim == 1 else mask
    if mask.shape != array.shape:
        raise InvalidInput(
            f"[generate] Expected an attention_mask of the shape of input_ids, {list(array.shape)}, "
            f"got {list(mask.shape)}."
        )
    return array, mask
