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
             "shape": ["batch", 2, "past", 8]}],     a dim that is a name other than "batch" starts empty;
                                        "shared": true where past and present may be one buffer
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
from fairlead.base.json_form import problem
from fairlead.runtime.manifest_form import FORM

FILE = "generation.json"
FORMAT = 1


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
        with open(path, encoding="utf-8") as file:
            manifest: dict[str, Any] = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise ParseError(f"[Generator] Expected JSON in {path}, but {error}. Export the model again.") from None
    check(manifest, path)
    return manifest


def check(manifest: Any, path: str) -> None:
    if isinstance(manifest, dict) and manifest.get("format", FORMAT) != FORMAT:
        raise ParseError(
            f"[Generator] Expected format {FORMAT} in {path}, got {shown(manifest['format'])}. "
            "Export the model again, or use the release of Fairlead that wrote it."
        )
    expected = problem(manifest, FORM)
    if not expected:
        expected = next((f"the part {n!r}" for n in names_in(manifest) if n not in manifest["parts"]), "")
    if not expected and not (manifest["prefill"] and manifest["step"]):
        expected = "parts under prefill and step"
    if not expected and manifest["kind"] == "encoder_decoder" and not manifest["once"]:
        expected = "a part under once, which is the encoder"
    if expected:
        raise ParseError(f"[Generator] Expected {expected} in {path}, got another. Export the model again.")


def names_in(manifest: dict[str, Any]) -> list[str]:
    return [*manifest["once"], *manifest["prefill"], *manifest["step"]]


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
