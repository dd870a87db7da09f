"""Text in, text out, from an exported folder alone: the tokenizer's own file, the chat template, and a Generator.

Needs numpy, onnxruntime and tokenizers; jinja2 where the folder has a chat template. Neither PyTorch nor Transformers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from fairlead._core import InvalidInput
from fairlead.base.panics import panics_raised
from fairlead.runtime.chat_template import render
from fairlead.runtime.generator import Generator
from fairlead.runtime.tokenizer_limits import refuse_growth


class TextGenerator:
    """text = TextGenerator("out/").generate("The capital of France is", max_new_tokens=16)"""

    def __init__(self, folder: Any, **options: Any):
        self.folder = os.fsdecode(folder)
        self.generator = Generator.from_folder(self.folder, **options)
        self.tokenizer = load_tokenizer(self.folder)
        self.template = chat_template(self.folder)
        self.longest = most_positions(read_json(os.path.join(self.folder, "config.json")))

    def tokens(self, prompt: str, chat: bool = False, system: str | None = None) -> list[int]:
        """The tokens of a text that is to be continued, or with `chat` of a user's message in the chat template."""
        if not chat and system is not None:
            raise InvalidInput("[generate] Expected a system message with --chat alone, got one without. Add --chat.")
        if not chat:
            ids = self.encoded(prompt, True)
        elif self.template is None:
            raise InvalidInput(
                f"[generate] Expected a chat template in '{self.folder}', got none. Leave --chat out: the prompt is "
                "given to the model as it is."
            )
        else:
            # The template writes the special tokens itself.
            ids = self.encoded(self.conversation(prompt, system), False)
        if not ids:
            raise InvalidInput("[generate] Expected a prompt, got one without a token. Write some text.")
        if self.longest is not None and len(ids) > self.longest:
            raise InvalidInput(
                f"[generate] Expected a prompt of at most {self.longest:,} tokens, as many as config.json says that "
                f"the model has positions, got {len(ids):,}. Shorten it."
            )
        return ids

    def encoded(self, text: str, special: bool) -> list[int]:
        try:
            with panics_raised():
                return list(self.tokenizer.encode(text, add_special_tokens=special).ids)
        except Exception as error:  # the library raises plain Exception
            raise InvalidInput(
                f"[generate] Expected a tokenizer that takes this prompt in '{self.folder}', but it raised: {error}."
            ) from error

    def decoded(self, tokens: list[int]) -> str:
        try:
            with panics_raised():
                return str(self.tokenizer.decode(tokens))
        except Exception as error:  # as above
            raise InvalidInput(
                f"[generate] Expected tokens of the tokenizer in '{self.folder}', got others: {error}."
            ) from error

    def conversation(self, prompt: str, system: str | None) -> str:
        messages = [{"role": "system", "content": system}] if system is not None else []
        messages.append({"role": "user", "content": prompt})
        settings = read_json(os.path.join(self.folder, "tokenizer_config.json"))
        special = {
            name: value.get("content") if isinstance(value, dict) else value
            for name, value in settings.items()
            if name.endswith("_token") and value
        }
        assert self.template is not None
        return render(self.template, self.folder, messages=messages, add_generation_prompt=True, **special)

    def stream(self, prompt: str, *, chat: bool = False, system: str | None = None, **settings: Any) -> Iterator[str]:
        """Pieces of text as soon as they are whole characters."""
        from tokenizers.decoders import DecodeStream

        decoder = DecodeStream(skip_special_tokens=True)
        for step in self.generator.stream([self.tokens(prompt, chat, system)], **settings):
            try:
                with panics_raised():
                    piece = decoder.step(self.tokenizer, int(step[0]))
            except Exception as error:  # as above; a token beyond 32 bits too
                raise InvalidInput(
                    f"[generate] Expected tokens of the tokenizer in '{self.folder}', got {int(step[0])}: {error}."
                ) from error
            if piece:
                yield piece

    def generate(self, prompt: str, **settings: Any) -> str:
        return "".join(self.stream(prompt, **settings))


# What configurations call the number of positions a model was made for.
POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length")


def most_positions(config: dict[str, Any]) -> int | None:
    """Of config.json, or of the part of it about text; None where it does not say."""
    text = config.get("text_config")
    for found in (config, text if isinstance(text, dict) else {}):
        for name in POSITIONS:
            value = found.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


def load_tokenizer(folder: str) -> Any:
    path = os.path.join(folder, "tokenizer.json")
    if not os.path.isfile(path):
        raise InvalidInput(
            f"[generate] Expected tokenizer.json in '{folder}', got none. Export a checkpoint that has a tokenizer, or "
            "use fairlead.runtime.Generator with tokens of your own."
        )
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ImportError(
            f"[generate] Expected the package tokenizers, but it cannot be imported ({error}). "
            "Install it with pip install tokenizers."
        ) from None
    try:
        with panics_raised():
            found = Tokenizer.from_file(path)
        refuse_growth(found)
        return found
    except Exception as error:  # the library raises plain Exception
        raise InvalidInput(f"[generate] Expected a tokenizer in '{path}', got {error}.") from error


def chat_template(folder: str) -> str | None:
    """Of chat_template.jinja, or of tokenizer_config.json; among several named ones the default."""
    path = os.path.join(folder, "chat_template.jinja")
    if os.path.isfile(path):
        try:
            with open(path, encoding="utf-8") as file:
                return file.read()
        except (OSError, ValueError) as error:
            raise InvalidInput(f"[generate] Expected text in '{path}', got {error}.") from error
    path = os.path.join(folder, "tokenizer_config.json")
    found = read_json(path).get("chat_template")
    if isinstance(found, list):
        rows = [row for row in found if isinstance(row, dict) and row.get("name") == "default"]
        found = rows[0].get("template") if rows else None
    if found is not None and not isinstance(found, str):
        raise InvalidInput(f"[generate] Expected a chat_template that is text in '{path}', got {type(found).__name__}.")
    return found


def read_json(path: str) -> dict[str, Any]:
    if not os.path.isfile(path):
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"[generate] Expected JSON in '{path}', got {error}.") from error
    if not isinstance(found, dict):
        raise InvalidInput(f"[generate] Expected an object in '{path}', got a {type(found).__name__}.")
    return found
