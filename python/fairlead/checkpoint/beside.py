"""Where an ONNX file finds the weights of a checkpoint that nobody loads: in its own folder, or in another.

In place only new files are added, when all of them are whole. While they are made they lie in a hidden folder within
the checkpoint's, where the weights have a second name each (a hard link), so that ONNX Runtime finds them beside the
model that is checked.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fairlead._core import InvalidInput, WriteError, is_data_name, place_file
from fairlead.base.errors import reworded
from fairlead.base.memory import free_memory
from fairlead.base.staged import staged_file
from fairlead.base.units import size_text
from fairlead.checkpoint.in_place import InPlace
from fairlead.checkpoint.loaded import Loaded
from fairlead.checkpoint.source import Checkpoint, size_of
from fairlead.checkpoint.source import weights as weight_files
from fairlead.options import Options

SUMMARY = "fairlead.json"
# What an export makes; of a folder that has none of ours, none of these may be there.
MADE = ("model.onnx", "model.onnx_adapter", "generation.json", "genai_config.json", SUMMARY)
PLACES = ("copy", "link")


def is_too_large(checkpoint: Checkpoint, formats: Any, layout: str, *others: Any) -> bool:
    """Whether its weights are more than fit into memory, as floats and in ONNX Runtime, and can be placed."""
    if checkpoint.gguf_file is not None or tuple(formats) != ("onnx",) or layout != "flat" or any(others):
        return False
    files = weight_files(checkpoint.folder)
    if not all(file.endswith(".safetensors") for file in files):
        return False
    return size_of(checkpoint, files) > free_memory()


def check_placed(
    checkpoint: Checkpoint, folder: Any, in_place: bool, place: str | None, formats: Any, layout: str, others: Any
) -> None:
    """Refuses what would need other bytes than those of the checkpoint."""
    word = "in_place" if in_place else "place"
    if place not in (None, *PLACES):
        raise InvalidInput(f"[export] Expected place as one of {', '.join(PLACES)}, got {place!r}.")
    if checkpoint.gguf_file is not None:
        raise InvalidInput(
            f"[export] Expected safetensors files with {word}, got '{checkpoint.gguf_file}'. Leave it out."
        )
    target, quantize, weights = others
    asked = {"formats": tuple(formats) != ("onnx",), "layout": layout != "flat", "target": target is not None}
    asked |= {"quantize": quantize is not None, "weights": weights is not None, "place": in_place and place is not None}
    for name, given in asked.items():
        if given:
            raise InvalidInput(
                f"[export] Expected no {name} with {word}, got one: the weights would not be those of the checkpoint, "
                "where they are. Leave one of the two out."
            )
    if in_place:
        check_in_place(checkpoint, folder)


def check_in_place(checkpoint: Checkpoint, folder: Any) -> None:
    if folder is not None and os.path.realpath(folder) != os.path.realpath(checkpoint.folder):
        raise InvalidInput(
            f"[export] Expected no other folder with in_place, got '{folder}': files are added to "
            f"'{checkpoint.folder}'. Leave one of the two out."
        )
    for path in weight_files(checkpoint.folder):
        if os.path.islink(path):
            raise InvalidInput(
                f"[export] Expected plain files with in_place, got '{path}', a symbolic link, which ONNX Runtime does "
                "not follow. Give another folder to export to."
            )
    ours = os.path.exists(os.path.join(checkpoint.folder, SUMMARY))
    for name in () if ours else MADE:
        if os.path.lexists(os.path.join(checkpoint.folder, name)):
            raise InvalidInput(
                f"[export] Expected no {name} in '{checkpoint.folder}', got one that Fairlead did not write. Move it "
                "away, or give another folder to export to."
            )


@contextlib.contextmanager
def staged_in_place(checkpoint: Checkpoint) -> Iterator[tuple[str, list[str]]]:
    """A folder to fill, and a list of what of it is to be put into the checkpoint's folder when the block ends well."""
    added: list[str] = []
    with staged_file(os.path.join(os.path.realpath(checkpoint.folder), MADE[0]), "export") as staging:
        staged = staging.folder
        try:
            yield staged, added
        except (InvalidInput, WriteError) as error:
            reworded(error, str(error).replace(staged, checkpoint.folder), staged, checkpoint.folder)
            raise
        staging.commit_files(sorted(added, key=rank))


def rank(name: str) -> int:
    """Data before models, models before what lists them."""
    return 0 if is_data_name(name) else 1 if name.endswith(".onnx") else 3 if name == SUMMARY else 2


def new_files(folder: str, made: list[str], placed: InPlace) -> list[str]:
    """Those that the checkpoint has not, and those that an export of ours left there before."""
    links = set(placed.files.names)
    return [
        name
        for name in made
        if name not in links
        and (
            name in MADE
            or name.endswith((".onnx", ".onnx.fairlead.json"))
            or not os.path.lexists(os.path.join(folder, name))
        )
    ]


def with_placed(options: Options, loaded: Loaded, staged: str, placement: str, show: Any) -> Options:
    """Options for a model whose weights are not loaded; the files that it refers to are in the staged folder then."""
    placed = loaded.placed
    assert placed is not None
    placed.staged = staged
    names = [placed.files.names[k] for k in sorted(placed.placed.used)]
    for name in names:
        path, to = os.path.realpath(os.path.join(placed.folder, name)), os.path.join(staged, name)
        if placement != "in_place":
            whole = size_text(os.path.getsize(path))

            def tell(done: int, name: str = name, whole: str = whole) -> None:
                show(f"copying {name}: {size_text(done)} of {whole}")

            placed.ways.append(place_file(path, to, placement == "link", tell))
            continue
        try:
            os.link(path, to)
        except OSError as error:
            if options.verify:
                raise WriteError(
                    f"[export] Could not give '{path}' a second name, by which the model is checked before it is "
                    f"there: {error.strerror}. Pass verify=False (--no-verify)."
                ) from error
    placed.files.check_unchanged()
    return replace(options, placed=placed)


WAYS = {
    "shared": "blocks shared with the checkpoint",
    "linked": "hard links, which ONNX Runtime takes and checkers of onnx refuse",
    "kernel": "copied by the system",
    "copied": "copied",
}


def words_of(placed: InPlace, placement: str) -> str:
    """Where the weights are, and what became of them."""
    referred = size_text(placed.bytes - placed.converted)
    files = f"{len(placed.placed.used)} file{'s' * (len(placed.placed.used) != 1)}"
    where = f"weights: {referred} in {files} of the checkpoint, referred to where they are"
    if placement != "in_place" and placed.ways:
        how = ", ".join(WAYS[way] for way in dict.fromkeys(placed.ways))
        where = f"weights: {referred} in {files} ({how})"
    if not placed.converted:
        return where
    converted = f"{size_text(placed.converted)} converted into {placed.extra_name}"
    return f"weights: {converted}" if placed.converted == placed.bytes else f"{where}; {converted}"
