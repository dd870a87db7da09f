"""Tasks: which class of Transformers a checkpoint is for, and what it is given. One row per kind of head.

The task is found from `architectures` in the configuration (the first row whose classes hold it), else from the files
and the model type; `--task` chooses the row. Names are those of Transformers' pipelines.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from fairlead._core import InvalidInput
from fairlead.checkpoint.source import Checkpoint, custom_code


@dataclass(frozen=True)
class Task:
    name: str
    mapping: str  # of transformers.models.auto.modeling_auto: model type -> class names
    takes: tuple[str, ...]  # text, image, sound; none: as the model's main input says
    parts: str = "model"  # "model": one file from calls of forward; "generation": what a generation shows


# Rows in the order in which an architecture is looked up: what appears in several mappings belongs to the first.
TASKS = [
    Task("automatic-speech-recognition", "SPEECH_SEQ_2_SEQ", ("sound",), "generation"),
    Task("automatic-speech-recognition", "CTC", ("sound",)),
    Task("image-text-to-text", "IMAGE_TEXT_TO_TEXT", ("image", "text"), "generation"),
    Task("text2text-generation", "SEQ_TO_SEQ_CAUSAL_LM", ("text",), "generation"),
    Task("text-generation", "CAUSAL_LM", ("text",), "generation"),
    Task("fill-mask", "MASKED_LM", ("text",)),
    Task("text-classification", "SEQUENCE_CLASSIFICATION", ("text",)),
    Task("token-classification", "TOKEN_CLASSIFICATION", ("text",)),
    Task("question-answering", "QUESTION_ANSWERING", ("text",)),
    Task("image-classification", "IMAGE_CLASSIFICATION", ("image",)),
    Task("object-detection", "OBJECT_DETECTION", ("image",)),
    Task("image-segmentation", "SEMANTIC_SEGMENTATION", ("image",)),
    Task("image-segmentation", "UNIVERSAL_SEGMENTATION", ("image",)),
    Task("depth-estimation", "DEPTH_ESTIMATION", ("image",)),
    Task("image-to-image", "IMAGE_TO_IMAGE", ("image",)),
    Task("masked-image-modeling", "MASKED_IMAGE_MODELING", ("image",)),
    Task("audio-classification", "AUDIO_CLASSIFICATION", ("sound",)),
    Task("audio-frame-classification", "AUDIO_FRAME_CLASSIFICATION", ("sound",)),
    Task("audio-xvector", "AUDIO_XVECTOR", ("sound",)),
    Task("zero-shot-image-classification", "ZERO_SHOT_IMAGE_CLASSIFICATION", ("image", "text")),
    Task("feature-extraction", "", ()),
]  # fmt: skip

ALIASES = {
    "causal-lm": "text-generation", "seq2seq": "text2text-generation", "summarization": "text2text-generation",
    "translation": "text2text-generation", "speech": "automatic-speech-recognition",
    "asr": "automatic-speech-recognition",
    "embeddings": "feature-extraction", "sentence-similarity": "feature-extraction",
    "image-feature-extraction": "feature-extraction", "classification": "text-classification",
}  # fmt: skip


def names() -> list[str]:
    return list(dict.fromkeys(task.name for task in TASKS))


def classes(task: Task) -> dict[str, tuple[str, ...]]:
    """Model type -> names of classes."""
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    name = f"MODEL_FOR_{task.mapping}_MAPPING_NAMES" if task.mapping else "MODEL_MAPPING_NAMES"
    table = getattr(auto, name, {})
    return {kind: (found,) if isinstance(found, str) else tuple(found) for kind, found in table.items()}


def detect(checkpoint: Checkpoint, wanted: str | None = None) -> tuple[Task, str]:
    """(task, name of the class to load)."""
    config = checkpoint.config
    kind, architectures = config.model_type, named_architectures(checkpoint, config)
    if wanted is not None:
        return chosen(checkpoint, kind, architectures, wanted)
    if architectures:
        name = architectures[0]
        for task in TASKS:
            if any(name in found for found in classes(task).values()):
                return task, name
        import transformers

        if getattr(transformers, name, None) is None and (auto := custom_auto_class(config, name)) is not None:
            if not checkpoint.trust_remote_code:
                raise custom_code(checkpoint)
            return task_of_auto_class(auto), name
        if getattr(transformers, name, None) is None:
            raise InvalidInput(
                f"[export] Expected an architecture of Transformers {transformers.__version__}, got {name} in "
                f"'{checkpoint.folder}'. A newer one may have it; for a class of your own use SCRIPT.py:FUNCTION."
            )
        return TASKS[-1], name
    # GGUF files and bare checkpoints say no architecture: generation for the former, features for the latter.
    order = [t for t in TASKS if t.name in ("text2text-generation", "text-generation")] if checkpoint.gguf_file else []
    for task in [*order, TASKS[-1]]:
        if kind in classes(task):
            return task, classes(task)[kind][0]
    raise InvalidInput(
        f"[export] Expected a model type of Transformers, got '{kind}' in '{checkpoint.folder}'. Name its --task."
    )


def named_architectures(checkpoint: Checkpoint, config: Any) -> list[str]:
    found = getattr(config, "architectures", None) or []
    if not isinstance(found, (list, tuple)) or not all(isinstance(name, str) and name.isidentifier() for name in found):
        raise InvalidInput(
            f"[export] Expected names of classes under architectures in '{checkpoint.folder}/config.json', "
            f"got {found!r:.120}. Correct the file."
        )
    return list(found)


def chosen(checkpoint: Checkpoint, kind: str, architectures: list[str], wanted: str) -> tuple[Task, str]:
    wanted = ALIASES.get(wanted, wanted)
    if wanted not in names():
        raise InvalidInput(f"[export] Expected --task as one of {', '.join(names())}, got '{wanted}'.")
    rows = [task for task in TASKS if task.name == wanted]
    for task in rows:
        if any(architectures and architectures[0] in found for found in classes(task).values()):
            return task, architectures[0]
    for task in rows:
        if kind in classes(task):
            return task, classes(task)[kind][0]
    possible = list(dict.fromkeys(task.name for task in TASKS if kind in classes(task)))
    raise InvalidInput(
        f"[export] Expected a task that a {kind} model has ({', '.join(possible) or 'none'}), got --task {wanted} "
        f"for '{checkpoint.source}'."
    )


def custom_auto_class(config: Any, architecture: str) -> str | None:
    """The Auto class for which a checkpoint brings this class as code of its own; "" where it names none for it."""
    brought = getattr(config, "auto_map", None)
    if not isinstance(brought, dict) or not brought:
        return None
    names = (auto for auto, where in brought.items() if str(where).rpartition(".")[2] == architecture)
    return next((auto for auto in names if auto.startswith("AutoModel")), "")


def task_of_auto_class(auto: str) -> Task:
    """AutoModelForCausalLM -> text-generation"""
    what = auto.removeprefix("AutoModel").removeprefix("For").lower()
    return next((task for task in TASKS if what and task.mapping.replace("_", "").lower() == what), TASKS[-1])
