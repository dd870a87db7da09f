"""Inputs for the short real run: text, a picture and a sound through the checkpoint's own tokenizer and processor.

Where the checkpoint has none, tensors of the sizes that its configuration says. Every call comes twice, with another
number of rows and other lengths, so that sizes which only look alike are told apart.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import torch

from fairlead._core import InvalidInput
from fairlead.base.panics import panics_raised
from fairlead.checkpoint.source import Checkpoint, quiet, reading
from fairlead.checkpoint.tasks import Task
from fairlead.runtime.chat_template import limited
from fairlead.runtime.tokenizer_limits import refuse_growth

SENTENCES = [
    ["The lighthouse keeper counted seven ships.", "Rain."],
    ["Bread rises because yeast makes gas.", "Two rivers meet below the old town.", "Read it aloud."],
]
SOUND_SECONDS = [(0.9, 0.6), (0.7, 0.5, 0.3)]
TEXT_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "spiece.model", "tokenizer.model")
IMAGE_FILES = SOUND_FILES = ("preprocessor_config.json", "processor_config.json")
SAMPLING_RATE = 16000
LONGEST_TOKEN = 1024  # that a processor repeats for every part of a picture


class Samples:
    """Tokenizer and processors of a checkpoint, loaded when something needs them."""

    def __init__(self, checkpoint: Checkpoint, model: torch.nn.Module, task: Task):
        self.checkpoint, self.model, self.task = checkpoint, model, task
        self.config: Any = model.config
        self.notes: list[str] = []
        self.parameters = inspect.signature(model.forward).parameters
        self.generator = torch.Generator().manual_seed(0)
        self.tokenizer = self.load("AutoTokenizer", "a tokenizer", TEXT_FILES, checkpoint.gguf_file is not None)
        if self.tokenizer is not None and self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token or self.tokenizer.unk_token

    def load(self, auto: str, what: str, files: tuple[str, ...], always: bool = False) -> Any:
        if not always and not self.checkpoint.has(*files):
            return None
        with reading(self.checkpoint, what), panics_raised():
            import transformers

            found = getattr(transformers, auto).from_pretrained(**self.checkpoint.arguments())
            if auto == "AutoTokenizer" and not hasattr(found, "pad_token_id"):  # a class of Transformers, but which
                raise TypeError(f"{type(found).__name__} is no class of tokenizers")
            if getattr(found, "backend_tokenizer", None) is not None:
                refuse_growth(found.backend_tokenizer)
            for name, value in list(vars(found).items()):
                if name.endswith("_token") and isinstance(value, str) and len(value) > LONGEST_TOKEN:
                    raise ValueError(f"{name} has {len(value):,} characters, {LONGEST_TOKEN:,} at most")
            return found

    def calls(self) -> list[dict[str, Any]]:
        """Two calls of forward."""
        with reading(self.checkpoint, "a tokenizer and processors that make inputs"), panics_raised():
            return self.made_calls()

    def made_calls(self) -> list[dict[str, Any]]:
        takes = self.task.takes or self.kinds_of_main_input()
        found = []
        for which in range(2):
            call: dict[str, Any] = {}
            if takes == ("image", "text"):
                call = self.image_and_text(which)
            else:
                for kind in takes:
                    call |= getattr(self, kind)(which)
            if "use_cache" in self.parameters:
                call["use_cache"] = False
            found.append(call)
        return found

    def generation(self, which: int = 0) -> dict[str, Any]:
        """One call of generate."""
        with reading(self.checkpoint, "a tokenizer and processors that make inputs"), panics_raised():
            if self.task.takes == ("image", "text"):
                return self.image_and_text(which)
            return dict(getattr(self, self.task.takes[0])(which))

    def decodes(self) -> bool:
        """Whether new text is put after the prompt: then it is padded before it."""
        return self.task.parts == "generation" and not getattr(self.config, "is_encoder_decoder", False)

    def kinds_of_main_input(self) -> tuple[str, ...]:
        main = getattr(self.model, "main_input_name", "input_ids")
        if main in ("input_values", "input_features"):
            return ("sound",)
        image = "pixel_values" in self.parameters
        if "input_ids" in self.parameters:
            return ("image", "text") if image and main == "input_ids" and self.has_vision() else ("text",)
        if image:
            return ("image",)
        raise InvalidInput(
            f"[export] Expected a model that takes text, a picture or a sound, got {type(self.model).__name__}, which "
            f"takes {', '.join(list(self.parameters)[:4])}. Call it yourself in a SCRIPT.py:FUNCTION."
        )

    def has_vision(self) -> bool:
        return getattr(self.config, "vision_config", None) is not None

    # ---- text ------------------------------------------------------------------------------------

    def text(self, which: int) -> dict[str, torch.Tensor]:
        sentences = SENTENCES[which]
        if self.tokenizer is None:
            return self.fitting(self.drawn_text(which))
        side = {"padding_side": "left"} if self.decodes() else {}
        encoded = dict(self.tokenizer(sentences, return_tensors="pt", padding=True, **side))
        top = self.text_config().vocab_size
        if int(encoded["input_ids"].max()) >= top:
            raise InvalidInput(
                f"[export] Expected a tokenizer for {top} tokens, got id {int(encoded['input_ids'].max())} from that "
                f"in '{self.checkpoint.folder}'. It belongs to another model."
            )
        return self.fitting(encoded)

    def text_config(self) -> Any:
        return self.config.get_text_config()

    def drawn_text(self, which: int) -> dict[str, torch.Tensor]:
        self.note("the checkpoint has no tokenizer: token ids were drawn")
        rows, length = ((2, 7), (3, 5))[which]
        special = {getattr(self.text_config(), f"{k}_token_id", None) for k in ("pad", "bos", "eos")}
        top = self.text_config().vocab_size
        usable = torch.tensor([i for i in range(min(top, 64)) if i not in special])
        ids = usable[torch.randint(0, len(usable), (rows, length), generator=self.generator)]
        mask = torch.ones_like(ids)
        if self.decodes():
            mask[1, :2] = 0
        else:
            mask[1, length - 2 :] = 0
        return {"input_ids": ids, "attention_mask": mask}

    def fitting(self, call: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in call.items() if name in self.parameters}

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    # ---- picture ---------------------------------------------------------------------------------

    def image(self, which: int) -> dict[str, torch.Tensor]:
        rows = 2 + which
        processor = self.image_processor()
        if processor is None:
            self.note("the checkpoint has no image processor: pixels were drawn at the size of its configuration")
            return {"pixel_values": self.drawn_pixels(rows)}
        with quiet():
            made = processor(images=[picture(k) for k in range(rows)], return_tensors="pt")
        return self.fitting(dict(made))

    def image_processor(self) -> Any:
        if not hasattr(self, "_image_processor"):
            self._image_processor = self.load("AutoImageProcessor", "an image processor", IMAGE_FILES)
        return self._image_processor

    def drawn_pixels(self, rows: int) -> torch.Tensor:
        config = getattr(self.config, "vision_config", None) or self.config
        size = getattr(config, "image_size", None) or 224
        height, width = (size, size) if isinstance(size, int) else tuple(size)
        channels = getattr(config, "num_channels", 3)
        return torch.rand(rows, channels, height, width, generator=self.generator) * 2 - 1

    def image_and_text(self, which: int) -> dict[str, torch.Tensor]:
        """One picture in each text; models like CLIP take them side by side."""
        rows = 2 + which
        processor = self.load("AutoProcessor", "a processor", ("processor_config.json", "preprocessor_config.json"))
        if processor is None or self.tokenizer is None:
            if self.task.parts == "generation":
                raise InvalidInput(
                    f"[export] Expected a processor and a tokenizer in '{self.checkpoint.folder}', got "
                    f"{'no tokenizer' if processor is not None else 'no processor'}: where a picture stands "
                    "in the text is theirs to say. Save them with processor.save_pretrained."
                )
            return self.text(which) | self.image(which)
        texts, images = list(SENTENCES[which]), [picture(k) for k in range(rows)]
        if self.task.parts == "generation":
            texts = [self.with_picture(processor, text) for text in texts]
            images = [[image] for image in images]
            processor.tokenizer.padding_side = "left"
        with quiet():
            made = processor(images=images, text=texts, return_tensors="pt", padding=True)
        return self.fitting(dict(made))

    def with_picture(self, processor: Any, text: str) -> str:
        if getattr(processor, "chat_template", None):
            content = [{"type": "image"}, {"type": "text", "text": text}]
            messages = [{"role": "user", "content": content}]
            with limited():
                return str(processor.apply_chat_template(messages, add_generation_prompt=True))
        token = getattr(processor, "image_token", None) or getattr(processor, "boi_token", None)
        return f"{token} {text}" if token else text

    # ---- sound -----------------------------------------------------------------------------------

    def sound(self, which: int) -> dict[str, torch.Tensor]:
        extractor = self.load("AutoFeatureExtractor", "a feature extractor", SOUND_FILES)
        if extractor is None:
            self.note("the checkpoint has no feature extractor: sound was drawn at the size of its configuration")
            return self.fitting(self.drawn_sound(2 + which))
        rate = getattr(extractor, "sampling_rate", SAMPLING_RATE)
        waves = [tone(seconds, rate).numpy() for seconds in SOUND_SECONDS[which]]
        # Whisper's encoder takes 30 seconds whatever was said: its extractor pads by itself.
        fixed = type(extractor).__name__.startswith("Whisper")
        made = extractor(waves, sampling_rate=rate, return_tensors="pt", **({} if fixed else {"padding": True}))
        return self.fitting(dict(made))

    def drawn_sound(self, rows: int) -> dict[str, torch.Tensor]:
        if "input_features" in self.parameters:
            bins: Any = getattr(self.config, "num_mel_bins", None) or getattr(self.config, "feature_size", 80)
            frames = 2 * getattr(self.config, "max_source_positions", 150)
            return {"input_features": torch.rand(rows, bins, frames, generator=self.generator) - 0.5}
        waves = [tone(0.4 + 0.1 * rows, SAMPLING_RATE) * (1 + k) for k in range(rows)]
        return {"input_values": torch.stack(waves)}


def picture(number: int) -> Any:
    """A photo-sized gradient with a bright square; each number another one."""
    import numpy as np
    from PIL import Image

    y, x = np.mgrid[0:240, 0:320]
    pixels = np.stack([x * 255 / 319, y * 255 / 239, (x + y + 40 * number) % 256], axis=-1)
    pixels[60 + 10 * number : 120 + 10 * number, 80:160] = 255
    return Image.fromarray(pixels.astype("uint8"))


def tone(seconds: float, rate: int) -> torch.Tensor:
    """A tone that rises from 200 to 800 Hz."""
    t = torch.arange(int(seconds * rate)) / rate
    return 0.4 * torch.sin(2 * math.pi * (200 * t + 300 * t * t / max(seconds, 1e-3)))
