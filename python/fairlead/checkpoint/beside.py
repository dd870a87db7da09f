"""The folder of a checkpoint as the place of what is made from it: only new files are added, when all of them are whole.

While they are made they lie in a hidden folder within it, where the weights have a second name each (a hard link), so
that ONNX Runtime finds them beside the model that is checked.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fairlead._core import InvalidInput, WriteError, is_data_name
from fairlead.base.errors import reworded
from fairlead.base.staged import staged_file
from fairlead.checkpoint.in_place import InPlace
from fairlead.checkpoint.loaded import Loaded
from fairlead.checkpoint.source import Checkpoint
from fairlead.options import Options

SUMMARY = "fairlead.json"
# What an export makes; of a folder that has none of ours, none of these may be there.
MADE = ("model.onnx", "generation.json", "genai_config.json", SUMMARY)


def check_in_place(
    checkpoint: Checkpoint, folder: Any, formats: Any, layout: str, target: Any, quantize: Any, weights: Any
) -> None:
    """Refuses what would need other bytes than those of the checkpoint."""
    if checkpoint.gguf_file is not None:
        raise InvalidInput(
            f"[export] Expected safetensors files with in_place, got '{checkpoint.gguf_file}'. Leave it out."
        )
    if folder is not None and os.path.realpath(folder) != os.path.realpath(checkpoint.folder):
        raise InvalidInput(
            f"[export] Expected no other folder with in_place, got '{folder}': files are added to '{checkpoint.folder}'. "
            "Leave one of the two out."
        )
    asked = {"formats": tuple(formats) != ("onnx",), "layout": layout != "flat", "target": target is not None}
    asked |= {"quantize": quantize is not None, "weights": weights is not None}
    for name, given in asked.items():
        if given:
            raise InvalidInput(
                f"[export] Expected no {name} with in_place, got one: the weights would not be those of the checkpoint. "
                "Leave one of the two out."
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
        try:
            yield staging.folder, added
        except (InvalidInput, WriteError) as error:
            reworded(error, str(error).replace(staging.folder, checkpoint.folder), staging.folder, checkpoint.folder)
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
        and (name in MADE or name.endswith(".onnx") or not os.path.lexists(os.path.join(folder, name)))
    ]


def with_placed(options: Options, loaded: Loaded, staged: str) -> Options:
    """Options for a model whose weights stay where they are; what cannot be checked is not, and said."""
    placed = loaded.placed
    assert placed is not None
    for name in placed.files.names:
        try:
            os.link(os.path.join(placed.folder, name), os.path.join(staged, name))
        except OSError as error:
            if options.verify:
                raise WriteError(
                    f"[export] Could not give '{os.path.join(placed.folder, name)}' a second name, by which the file is "
                    f"checked before it is there: {error.strerror}. Pass verify=False (--no-verify)."
                ) from error
    return replace(options, placed=placed)
