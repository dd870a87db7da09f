"""generation.json: what lies in a folder of exported parts, and how the parts hang together.

{
  "format": 1,
  "model": "LlamaForCausalLM",
  "kind": "decoder",                    decoder | encoder_decoder | multimodal
  "parts": {                            every part: its file, the names of its inputs and outputs
    "decode": {"file": "model.onnx", "inputs": ["input_ids", ...], "outputs": ["logits", ...]}
  },
  "once": [],                           parts run once per prompt, in order (encoders)
  "prefill": ["decode"],                parts run for the prompt
  "step": ["decode"],                   parts run for every further token
  "cache": [{"past": "past_key_values.0.key", "present": "present.0.key", "dtype": "float32",
             "shape": ["batch", 2, "past", 8]}],     a dim that is a name other than "batch" starts empty
  "prompt_only": {"image_features": {"dtype": "float32", "shape": [0, 32]}},   after the prompt: this, empty
  "grid": null,                         what is made from the sizes of images, see grids.py
  "positions": {"kind": "mask"},        how position_ids are made; null where the model takes none
  "tokens": {"input": "input_ids", "start": null},
  "settings": {"eos_token_id": [2], "pad_token_id": 0, ...}      defaults of Generator.generate
}

A part may have "last": the input of which it is only given the last place (the head), "optional": the input without
which it is not run (an image encoder), "gives": outputs that go on under another name, "takes": inputs of the file that
are given what has another name, "shortest": the fewest tokens it takes (shorter prompts are padded).

Parts are joined by name: the output `inputs_embeds` of one part is the input `inputs_embeds` of the next.
"""

from __future__ import annotations

import json
import os
from typing import Any

from fairlead._core import InvalidInput, ParseError, write_file

FILE = "generation.json"
FORMAT = 1
KEYS = ("format", "model", "kind", "parts", "once", "prefill", "step", "cache", "prompt_only", "positions", "tokens",
        "settings")  # fmt: skip


def write(folder: str, manifest: dict[str, Any]) -> str:
    """Written beside and renamed: a reader finds the old file or the new one."""
    path = os.path.join(folder, FILE)
    write_file(path, f"{json.dumps(manifest, indent=1)}\n".encode(), "export_for_generation")
    return path


def read(folder: Any) -> dict[str, Any]:
    folder = os.fsdecode(folder)
    path = os.path.join(folder, FILE)
    if not os.path.isfile(path):
        what = "no such file" if os.path.isdir(folder) else "no such folder"
        raise InvalidInput(
            f"[Generator] Expected {path}, but there is {what}. Give the folder that export_for_generation wrote."
        )
    try:
        with open(path) as file:
            manifest = json.load(file)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ParseError(f"[Generator] Expected JSON in {path}, but {error}. Export the model again.") from None
    check(manifest, path)
    return manifest


def check(manifest: Any, path: str) -> None:
    missing = [key for key in KEYS if not isinstance(manifest, dict) or key not in manifest]
    if missing:
        raise ParseError(f"[Generator] Expected {', '.join(missing)} in {path}, got none. Export the model again.")
    if manifest["format"] != FORMAT:
        raise ParseError(
            f"[Generator] Expected format {FORMAT} in {path}, got {manifest['format']!r}. "
            "Export the model again, or use the release of Fairlead that wrote it."
        )
    if not isinstance(manifest["parts"], dict):
        raise ParseError(f"[Generator] Expected parts by name in {path}, got {type(manifest['parts']).__name__}.")
    for key in ("once", "prefill", "step", "cache"):
        if not isinstance(manifest[key], list):
            raise ParseError(f"[Generator] Expected a list under {key} in {path}, got {type(manifest[key]).__name__}.")
    for name, part in manifest["parts"].items():
        file = part.get("file") if isinstance(part, dict) else None
        # Parts lie in the folder: a manifest does not choose among the files of the machine.
        if not isinstance(file, str) or os.path.isabs(file) or ".." in file.split("/"):
            raise ParseError(
                f"[Generator] Expected the file of part {name!r} within the folder of {path}, got {file!r}."
            )
    for name in [*manifest["once"], *manifest["prefill"], *manifest["step"]]:
        if name not in manifest["parts"]:
            raise ParseError(f"[Generator] Expected the part {name!r} in {path}, got none. Export the model again.")
