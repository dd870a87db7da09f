"""A checkpoint as a model in memory with real inputs: what is exported, and what an export is checked against."""

from __future__ import annotations

import contextlib
import copy
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.modules.module import register_module_module_registration_hook

from fairlead._core import FairleadError, InvalidInput, WeightFolder
from fairlead.base.alone import during
from fairlead.base.memory import raise_if_memory_lacks
from fairlead.checkpoint import tasks
from fairlead.checkpoint.in_place import InPlace
from fairlead.checkpoint.merged_adapter import with_adapter
from fairlead.checkpoint.sample_inputs import Samples
from fairlead.checkpoint.sentence_embedding import SentenceEmbedding, pooling_of
from fairlead.checkpoint.source import Checkpoint, custom_code, one_line, quiet, reading, size_of, weights
from fairlead.checkpoint.stored import check_method, is_taken_apart, state_dict
from fairlead.generation.export import plan_for
from fairlead.generation.plan import PartPlan, Plan
from fairlead.record.light import needs_data
from fairlead.record.session import place_of
from fairlead.record.stand_in import without_weights

DEFERRED = "HF_DEACTIVATE_ASYNC_LOAD"
WEIGHT_DTYPES = {name: getattr(torch, name) for name in ("float32", "float16", "bfloat16", "float64")}


@dataclass
class Loaded:
    checkpoint: Checkpoint
    task: tasks.Task
    model: torch.nn.Module
    samples: Samples
    dtype: torch.dtype
    placed: InPlace | None = None  # where its weights are, which nobody loaded

    @property
    def generates(self) -> bool:
        return self.task.parts == "generation"

    def plan(self, which: int = 0, merged: bool = True) -> Plan:
        """The parts and the calls that a short real run shows; `which` chooses among two samples, `merged` the parts
        of an encoder-decoder that other clients of ONNX files know.
        """
        if self.generates:
            sample = self.cast(self.samples.generation(which))
            plan: Plan = self.called(lambda **sample: plan_for(self.model, sample, merged=merged), sample)
            return plan
        model = self.model
        pooling = pooling_of(self.checkpoint) if self.task.name == "feature-extraction" else None
        if pooling is not None:
            model = SentenceEmbedding(self.model, pooling).eval()
        calls = [self.cast(call) for call in self.samples.calls()]
        for call in calls:
            self.called(model, call)
        return Plan("model", [PartPlan("model", model, calls)], {"model": "model"}, [], [])

    def called(self, function: Any, call: dict[str, Any]) -> Any:
        try:
            with torch.no_grad(), quiet():
                return function(**call) if self.placed is None else self.called_alone(self.placed, function, call)
        except FairleadError:
            raise
        except Exception as error:
            raise_if_memory_lacks(error)
            names = ", ".join(f"{k}{list(v.shape)}" for k, v in call.items() if isinstance(v, torch.Tensor))
            raise InvalidInput(
                f"[export] Expected {type(self.model).__name__} to run on inputs made for {self.task.name} ({names}), "
                f"but it raised {type(error).__name__}: {one_line(error).rstrip('.')}. "
                "Give inputs of your own with a SCRIPT.py:FUNCTION."
            ) from error

    def called_alone(self, placed: InPlace, function: Any, call: dict[str, Any]) -> Any:
        """Without weights, unless the model reads what they decide."""
        try:
            with without_weights(self.model):
                return function(**call)
        except Exception as error:
            first = error.__cause__ if isinstance(error, FairleadError) and error.__cause__ else error
            if not needs_data(first):
                raise
            placed.read(f"{one_line(first).rstrip('.')}{place_of(first)}")
        return function(**call)

    def cast(self, call: dict[str, Any]) -> dict[str, Any]:
        def fitting(value: Any) -> Any:
            return value.to(self.dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value

        return {name: fitting(value) for name, value in call.items()}


def load(
    checkpoint: Checkpoint, task: str | None, dtype: str, show: Any = None, adapter: str | None = None,
    merge: bool = True,
) -> Loaded:  # fmt: skip
    """`adapter`: the folder of one that is merged into the weights, or beside them."""
    if dtype not in WEIGHT_DTYPES:
        raise InvalidInput(f"[export] Expected --dtype as one of {', '.join(WEIGHT_DTYPES)}, got '{dtype}'.")
    found, architecture = tasks.detect(checkpoint, task)
    if show is not None:
        show(f"loading {architecture} for {found.name}")
    model = load_model(checkpoint, architecture, WEIGHT_DTYPES[dtype])
    if adapter is not None:
        model = beside(checkpoint, model, adapter, merge)
    return Loaded(checkpoint, found, model, Samples(checkpoint, model, found), WEIGHT_DTYPES[dtype])


def load_in_place(
    checkpoint: Checkpoint, task: str | None, dtype: str | None, folder: str, show: Any = None,
    adapter: str | None = None,
) -> Loaded:  # fmt: skip
    """The same with weights that stay where they are, and an adapter beside them; dtype None: that of the checkpoint.
    What has to be converted goes to a file in `folder`."""
    found, architecture = tasks.detect(checkpoint, task)
    if show is not None:
        show(f"making {architecture} for {found.name} without its weights")
    placed = InPlace.of(checkpoint.folder)
    wanted: Any = "auto" if dtype is None else WEIGHT_DTYPES[dtype]
    with one_by_one():
        model: Any = load_model(checkpoint, architecture, wanted, placed.state_dict(checkpoint))
    placed.place(model, folder, show)
    if adapter is not None:
        model = beside(checkpoint, model, adapter, False)
    kept = Samples(checkpoint, model, found)
    return Loaded(checkpoint, found, model, kept, model.dtype, placed)


def beside(checkpoint: Checkpoint, model: torch.nn.Module, adapter: str, merge: bool) -> torch.nn.Module:
    become = "merged into the weights" if merge else "inputs of the file, and a file beside it"
    checkpoint.notes.append(f"the LoRA adapter in {adapter} is {become}")
    with modules_for(checkpoint, held_bytes(checkpoint)):
        return with_adapter(model, adapter, merge)


@contextlib.contextmanager
def one_by_one() -> Iterator[None]:
    """Transformers makes a parameter when it is its turn. Otherwise threads of its own make all of them at first, which
    saves time where bytes are read, and takes kilobytes for each of tens of thousands of experts."""

    def begin() -> tuple[str | None]:
        before = os.environ.get(DEFERRED)
        os.environ[DEFERRED] = "1"
        return (before,)

    def end(before: str | None) -> None:
        os.environ.pop(DEFERRED, None)
        if before is not None:
            os.environ[DEFERRED] = before

    with during(begin, end):
        yield


def custom_class(checkpoint: Checkpoint, architecture: str) -> Any:
    """A class that the checkpoint brings as code of its own; asked for with --trust-remote-code."""
    if not checkpoint.trust_remote_code:
        raise custom_code(checkpoint)
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    brought = checkpoint.config.auto_map.values()
    where = next((str(each) for each in brought if str(each).rpartition(".")[2] == architecture), architecture)
    with reading(checkpoint, f"the code of {architecture}"):
        return get_class_from_dynamic_module(where, checkpoint.folder, local_files_only=True)


SMALL_FILES = 256 << 20
ELEMENTS_PER_BYTE = 32  # of the most quantised weights, taken apart
LEAST_MODULES = 5_000
BYTES_PER_MODULE = 64


def held_bytes(checkpoint: Checkpoint) -> int:
    gguf = checkpoint.gguf_file
    files = [os.path.join(checkpoint.folder, gguf)] if gguf is not None else weights(checkpoint.folder)
    return size_of(checkpoint, files)


@contextlib.contextmanager
def modules_for(checkpoint: Checkpoint, held: int) -> Iterator[None]:
    """A configuration may ask for layers, experts or codebooks without end, whatever it calls them: they are made one
    by one, and each has weights in the files."""
    left, thread = LEAST_MODULES + held // BYTES_PER_MODULE, threading.get_ident()

    def count(module: torch.nn.Module, name: str, submodule: torch.nn.Module | None) -> None:
        nonlocal left
        left -= threading.get_ident() == thread
        if left < 0:
            raise InvalidInput(
                f"[export] Expected as many modules as the weights in '{checkpoint.folder}' are for, {held:,} bytes, "
                f"got a configuration that asks for more than {LEAST_MODULES + held // BYTES_PER_MODULE:,}. Check that "
                "the files are complete."
            )

    hook = register_module_module_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def refuse_larger_than_files(checkpoint: Checkpoint, cls: Any, held: int) -> None:
    """What the files lack is made up by Transformers, however large: a file of a kilobyte may ask for all memory."""
    if held > SMALL_FILES:
        return
    try:
        with torch.device("meta"), quiet():
            asked = sum(p.numel() for p in cls(copy.deepcopy(checkpoint.config)).parameters())
    except FairleadError:
        raise
    except Exception as error:  # not every class can be made without memory; then it says itself what is wrong
        raise_if_memory_lacks(error)
        return
    if asked > ELEMENTS_PER_BYTE * held + (1 << 24):
        raise InvalidInput(
            f"[export] Expected weights for the {asked:,} parameters that the configuration in '{checkpoint.folder}' "
            f"asks for, got files of {held:,} bytes. Check that the files are complete."
        )


def refuse_other_sizes(checkpoint: Checkpoint, cls: Any) -> None:
    """Transformers only says in its log which tensor has other sizes than the model, and that is off."""
    if checkpoint.gguf_file is not None:
        return
    try:
        files = WeightFolder(checkpoint.folder)
        with torch.device("meta"), quiet():
            model = cls(copy.deepcopy(checkpoint.config))
    except Exception:  # what was raised before says what is wrong
        return
    prefix, wanted = f"{getattr(model, 'base_model_prefix', '')}.", model.state_dict()
    for number, name in enumerate(files.tensor_names()):
        for key in (name, prefix + name, name.removeprefix(prefix)):
            sizes = files.place(number)[0]
            if key in wanted and list(wanted[key].shape) != list(sizes):
                raise InvalidInput(
                    f"[export] Expected {name} as {list(wanted[key].shape)} in '{checkpoint.folder}', as its "
                    f"configuration says, got {list(sizes)}. Check that config.json is that of these weights."
                )


def load_model(
    checkpoint: Checkpoint, architecture: str, dtype: torch.dtype | str, tensors: dict[str, torch.Tensor] | None = None
) -> torch.nn.Module:
    """In eval mode; weights that the checkpoint does not have are an error, because they would be random. `tensors`
    are taken for those of its files."""
    import transformers

    cls = getattr(transformers, architecture, None) or custom_class(checkpoint, architecture)
    word = "dtype" if int(transformers.__version__.partition(".")[0]) >= 5 else "torch_dtype"
    arguments = checkpoint.arguments() | {"config": checkpoint.config, word: dtype, "output_loading_info": True}
    held = held_bytes(checkpoint)
    with modules_for(checkpoint, held):
        refuse_larger_than_files(checkpoint, cls, held)
    check_method(checkpoint)
    apart = is_taken_apart(checkpoint)
    if tensors is None and apart:
        tensors = state_dict(checkpoint)
    if tensors is not None:
        config = copy.deepcopy(checkpoint.config)
        if apart:
            del config.quantization_config
        arguments |= {"pretrained_model_name_or_path": None, "config": config, "state_dict": tensors}
    with reading(checkpoint, f"the weights of {architecture}"), modules_for(checkpoint, held):
        try:
            model, info = cls.from_pretrained(**arguments)
        except RuntimeError:
            if not apart:
                refuse_other_sizes(checkpoint, cls)
            raise
        missing = sorted(info["missing_keys"])
        if missing and all(key.startswith("pooler.") for key in missing):
            model, info = cls.from_pretrained(**arguments, add_pooling_layer=False)
            missing = sorted(info["missing_keys"])
            checkpoint.notes.append("the checkpoint has no weights of the pooler: its output is left out")
    if missing:
        raise InvalidInput(
            f"[export] Expected weights for all of {architecture}, but '{checkpoint.folder}' lacks {len(missing)}, "
            f"{missing[0]} among them. Name a task it was trained for with --task."
        )
    ready: torch.nn.Module = model.eval()
    return ready
