"""How transformers.js loads a folder and feeds its sessions, in Python: there is no npm where the tests run.

Written after what release 4.2.0 of @huggingface/transformers does (packages/transformers/src): files in
models/session.js and models/session_config.js, the encoder in encoder_forward, decoders in decoder_forward and
seq2seq_forward, the cache in addPastKeyValues, resolveCacheShape and getPastKeyValues of models/modeling_utils.js.
Greedy search with no_repeat_ngram_size = 1 and without an end, whose processors do what those of Transformers do.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

SUFFIXES = {"fp32": "", "fp16": "_fp16", "q8": "_quantized"}
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64}


class TransformersJs:
    def __init__(self, folder: Path):
        config = json.loads((folder / "config.json").read_text())
        # In a browser the default is an 8-bit file; the configuration says otherwise.
        suffix = SUFFIXES[config.get("transformers.js_config", {}).get("dtype", "q8")]
        self.config = config
        names = ["encoder_model", "decoder_model_merged"] if config.get("is_encoder_decoder") else ["model"]
        # A browser is given the bytes of the one file, not its neighbours.
        read = [(folder / "onnx" / f"{name}{suffix}.onnx").read_bytes() for name in names]
        self.sessions = [onnxruntime.InferenceSession(data) for data in read]

    def generate(self, inputs: dict[str, np.ndarray], steps: int) -> np.ndarray:
        """The new tokens."""
        decoder, given = self.sessions[-1], dict(inputs)
        ids = given.get("input_ids")
        if len(self.sessions) > 1:
            states = self.encode(given)
            ids = np.full((len(states), 1), self.config["decoder_start_token_id"], np.int64)
            given = {"encoder_hidden_states": states}
            if "encoder_attention_mask" in names_of(decoder):
                given["encoder_attention_mask"] = inputs["attention_mask"]
        past = self.empty_cache(decoder, len(ids))
        tokens, prompt = ids, ids.shape[1]
        for step in range(steps):
            if len(self.sessions) == 1:
                if step:
                    mask = given["attention_mask"]
                    given["attention_mask"] = np.concatenate([mask, np.ones_like(mask[:, :1])], 1)
                positions = np.where(given["attention_mask"] == 0, 1, given["attention_mask"].cumsum(1) - 1)
                given["position_ids"] = positions[:, -ids.shape[1] :]
            outputs = [output.name for output in decoder.get_outputs()]
            results = dict(zip(outputs, run(decoder, given | {"input_ids": ids} | past, outputs), strict=True))
            for name, value in results.items():
                key = name.replace("present", "past_key_values")
                if name.startswith("present") and not (step and "encoder" in name):  # those of the first step stay
                    past[key] = value
            logits = results["logits"][:, -1].astype(np.float32)
            np.put_along_axis(logits, tokens, -np.inf, 1)
            logits[:, self.config["eos_token_id"]] = -np.inf
            ids = logits.argmax(-1)[:, None]
            tokens = np.concatenate([tokens, ids], 1)
        return tokens[:, prompt:]

    def encode(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        return run(self.sessions[0], inputs, ["last_hidden_state"])[0]

    def empty_cache(self, session: Any, batch: int) -> dict[str, np.ndarray]:
        """From the declared shapes: a number stays, batch_size is the batch, any other name is 0."""
        sizes = {"batch_size": batch}
        return {
            i.name: np.zeros([d if isinstance(d, int) else sizes.get(d, 0) for d in i.shape], TYPES[i.type])
            for i in session.get_inputs()
            if i.name.startswith("past_key_values.")
        }


def names_of(session: Any) -> list[str]:
    return [i.name for i in session.get_inputs()]


def run(session: Any, given: dict[str, np.ndarray], outputs: list[str]) -> list[np.ndarray]:
    """Only what the session takes is picked; a value of another type is given in its own."""
    feeds = {i.name: given[i.name].astype(TYPES[i.type], copy=False) for i in session.get_inputs()}
    return session.run(outputs, feeds)
