"""What the clients of an exported model need beside it: configuration, tokenizer, processor, genai_config.json.

Files of a checkpoint folder are copied as they are, so that older libraries read what they always read; those of a
GGUF file are written from what was read. Only the tokenizer's settings are changed, where Transformers 5 wrote them in
words that its releases before do not know, with which clients such as Optimum come.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import Any

from fairlead._core import InvalidInput, __version__
from fairlead.base.panics import panics_raised
from fairlead.checkpoint import layouts
from fairlead.checkpoint.genai_config import genai_config
from fairlead.checkpoint.source import Checkpoint, one_line, quiet, reading

SUMMARY = "fairlead.json"
COPIED = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "vocab.txt", "merges.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "source.spm", "target.spm",
    "chat_template.jinja", "chat_template.json", "preprocessor_config.json", "processor_config.json",
    "image_processor_config.json", "video_preprocessor_config.json", "normalizer.json", "generation_config.json",
    "modules.json", "config_sentence_transformers.json", "sentence_bert_config.json", "1_Pooling/config.json",
)  # fmt: skip


def write(checkpoint: Checkpoint, model: Any, tokenizer: Any, result: Any, folder: str) -> None:
    if checkpoint.gguf_file is None:
        copy(checkpoint, folder)
    with quiet():
        if tokenizer is not None and not os.path.exists(os.path.join(folder, "tokenizer.json")):
            with reading(checkpoint, "a tokenizer"), panics_raised():
                tokenizer.save_pretrained(folder)  # also a fast tokenizer for clients that read nothing else
        generation = getattr(model, "generation_config", None)
        if generation is not None and not os.path.exists(os.path.join(folder, "generation_config.json")):
            generation.save_pretrained(folder)
    write_tokenizer_config(os.path.join(folder, "tokenizer_config.json"))
    write_json(
        os.path.join(folder, "config.json"),
        configuration(checkpoint, model) | layouts.settings(result.layout, result.dtype),
    )
    write_json(os.path.join(folder, SUMMARY), summary(result))
    file = layouts.file_of("model", "onnx", result.layout, result.dtype)
    if file in result.parts and result.task == "text-generation":
        settings = genai_config(model, result.parts[file].contract, file)
        if settings is not None:
            write_json(os.path.join(folder, "genai_config.json"), settings)


def summary(result: Any) -> dict[str, Any]:
    """fairlead.json: what was exported from what, and how far it is from PyTorch. `verify` reads task and dtype."""
    return {
        "fairlead": __version__, "source": result.source, "task": result.task, "architecture": result.architecture,
        "dtype": result.dtype, "layout": result.layout, "parts": list(result.parts), "worst_difference": result.worst,
    }  # fmt: skip


def copy(checkpoint: Checkpoint, folder: str) -> None:
    for name in COPIED:
        path = os.path.join(checkpoint.folder, name)
        if os.path.isfile(path):
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            shutil.copyfile(path, os.path.join(folder, name))


def write_tokenizer_config(path: str) -> None:
    """In words of Transformers 4, which 5 reads too."""
    if not os.path.isfile(path):
        return
    try:
        with open(path, encoding="utf-8") as file:
            settings = json.load(file)
        changed = dict(settings)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InvalidInput(f"[export] Expected an object of JSON in '{path}', got {one_line(error)}.") from error
    if settings.get("tokenizer_class") == "TokenizersBackend":
        changed["tokenizer_class"] = "PreTrainedTokenizerFast"
        changed.setdefault("model_input_names", ["input_ids", "attention_mask"])  # what 5 gives unless told otherwise
    if isinstance(settings.get("extra_special_tokens"), list):
        changed["additional_special_tokens"] = changed.pop("extra_special_tokens")
    if changed != settings:
        write_json(path, changed)


def configuration(checkpoint: Checkpoint, model: Any) -> dict[str, Any]:
    """config.json as the checkpoint has it, for the class that was exported."""
    if checkpoint.gguf_file is None:
        settings: dict[str, Any] = checkpoint.read_json("config.json")
    else:
        settings = json.loads(model.config.to_json_string())
        settings.pop("quantization_config", None)  # the exported weights are plain numbers
    return settings | {"architectures": [type(model).__name__]}


def write_json(path: str, value: Any) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")
