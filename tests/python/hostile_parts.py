"""More rows of hostile_files.py: folders, checkpoints, safetensors, GGUF files and lists whose parts are other
than their names say. FOUND: rows of all files that once ended a command otherwise than in one line."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostile_checkpoints import changed, made, setting
from hostile_files import put, row
from hostile_models import (
    ARCHITECTURE,
    ARRAY,
    RELU,
    STRING,
    U32,
    exported,
    gguf,
    model,
    safetensors,
    text,
)

# ---- exported folders ----------------------------------------------------------------------------------------------


def folder_of(change: Callable[[Path], Any]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        copy = Path(shutil.copytree(exported(), folder / "out"))
        change(copy)
        return copy

    return make


def replaced_by(name: str, kind: str) -> Callable[[Path], None]:
    def change(copy: Path) -> None:
        (copy / name).unlink(missing_ok=True)
        if kind == "a folder":
            (copy / name).mkdir()
        elif kind == "a device":
            (copy / name).symlink_to("/dev/zero")
        elif kind == "a link to itself":
            (copy / name).symlink_to(copy / name)
        elif kind == "a link above":
            (copy / name).symlink_to("/etc/passwd")
        elif kind == "a terabyte of nothing":
            with open(copy / name, "wb") as file:
                file.truncate(1 << 40)
        elif kind == "a link to nothing":
            (copy / name).symlink_to("nothing")

    return change


for name in ("generation.json", "tokenizer.json", "tokenizer_config.json", "fairlead.json", "config.json", "model.onnx",
             "chat_template.jinja", "genai_config.json", "model.onnx.fairlead.json"):  # fmt: skip
    for kind in (
        "a folder",
        "a device",
        "a link to itself",
        "a link above",
        "a terabyte of nothing",
        "a link to nothing",
    ):
        row(f"folder: {name} is {kind}", folder_of(replaced_by(name, kind)))


def many(copy: Path) -> None:
    for k in range(300):
        shutil.copy(copy / "fairlead.json", copy / f"m{k}.onnx")


def below(copy: Path) -> None:
    deep = copy
    for _ in range(60):
        deep = deep / "a"
        deep.mkdir()
        (deep / "x.onnx").write_bytes(model([RELU]).SerializeToString())


row("folder: 300 files that are no models", folder_of(many))
row("folder: folders in folders", folder_of(below))
row("folder: a folder in itself", folder_of(lambda copy: (copy / "self").symlink_to(copy)))
row("folder: everything is a link elsewhere", folder_of(lambda copy: (copy / "all").symlink_to("/proc")))

# ---- checkpoints ---------------------------------------------------------------------------------------------------


def checkpoint_of(kind: str, change: Callable[[Path], Any]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        copy = Path(shutil.copytree(made(kind), folder / "source"))
        change(copy)
        return copy

    return make


for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json", "model.safetensors",
             "preprocessor_config.json", "chat_template.jinja", "special_tokens_map.json",
              "model.safetensors.index.json",
             "modules.json", "added_tokens.json", "README.md", "pytorch_model.bin",
              "video_preprocessor_config.json"):  # fmt: skip
    for kind in ("a folder", "a terabyte of nothing", "a link above", "a link to nothing"):
        row(f"checkpoint: {name} is {kind}", checkpoint_of("llama", replaced_by(name, kind)))
for words, templates in (
    ("names above", {"additional_chat_templates/../../x.jinja": b"x"}),
    ("no text", {"additional_chat_templates/a.jinja": b"\xff"}),
    ("200 of them", {f"additional_chat_templates/t{k}.jinja": b"{{ 1 }}" for k in range(200)}),
):  # fmt: skip
    row(f"checkpoint: more chat templates, {words}", checkpoint_of("llama", lambda copy, templates=templates: [
        put(copy, name, content) for name, content in templates.items()]))  # fmt: skip
for kind, values in (
    ("llama", {"hidden_size": True}), ("llama", {"vocab_size": 1e3}), ("llama", {"num_attention_heads": [4]}),
    ("llama", {"hidden_act": None}), ("llama", {"initializer_range": float("inf")}), ("llama", {"attention_bias": "x"}),
    ("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2**70}}), ("llama", {"rope_parameters": {}}),
    ("llama", {"rope_parameters": {"full_attention": {"rope_type": "default"}}}), ("llama", {"pretraining_tp": 0}),
    ("llama", {"pretraining_tp": HUGE} if (HUGE := 10**9) else {}), ("llama", {"partial_rotary_factor": 0.001}),
    ("llama", {"max_position_embeddings": 0}), ("llama", {"max_position_embeddings": -1}), ("llama", {"dtype": 7}),
    ("llama", {"dtype": "complex64"}), ("llama", {"dtype": "int8"}), ("llama", {"torch_dtype": {"a": 1}}),
    ("llama", {"auto_map": {"AutoConfig": "configuration_evil.EvilConfig"}}), ("llama", {"auto_map": [1]}),
    ("llama", {"quantization_config": []}), ("llama", {"quantization_config": {}}),
    ("llama", {"quantization_config": 7}),
    ("llama", {"is_encoder_decoder": True}), ("llama", {"add_cross_attention": True}),
    ("llama", {"cross_attention_hidden_size": HUGE}),
    ("llama", {"tie_encoder_decoder": True}), ("llama", {"sub_configs": {"a": "b"}}),
    ("llama", {"transformers_version": "99.0.0"}),
    ("llama", {"transformers_version": "\x1b[2J"}), ("llama", {"_commit_hash": "../../.."}),
    ("llama", {"_name_or_path": "\x00"}),
    ("llama", {"id2label": {"0": "\x1b[2J" * 1000}}), ("llama", {"finetuning_task": 7}), ("llama", {"num_labels": -1}),
    ("llama", {"num_labels": 2.5}), ("llama", {"prefix": "x" * 10**6}), ("llama", {"decoder_start_token_id": []}),
    ("llama", {"begin_suppress_tokens": list(range(100_000))}), ("llama", {"bad_words_ids": [[HUGE]]}),
    ("llama", {"attention_chunk_size": 0}), ("llama", {"keys_to_ignore_at_inference": 7}),
    ("llama", {"base_model_tp_plan": 7}),
    ("bert", {"position_embedding_type": "nothing"}), ("bert", {"classifier_dropout": "x"}),
    ("bert", {"type_vocab_size": 0}),
    ("bert", {"pad_token_id": "x"}), ("bert", {"is_decoder": True}),
    ("bert", {"problem_type": "regression", "num_labels": 0}),
    ("bert", {"hidden_dropout_prob": -1}), ("bert", {"layer_norm_eps": 0}), ("bert", {"layer_norm_eps": -1}),
    ("bert", {"layer_norm_eps": "1e-12"}), ("bert", {"intermediate_size": 0}), ("bert", {"chunk_size_feed_forward": 3}),
    ("t5", {"d_ff": 0}), ("t5", {"num_layers": 0}), ("t5", {"num_layers": -1}), ("t5", {"dense_act_fn": "nothing"}),
    ("t5", {"tie_word_embeddings": 7}), ("t5", {"vocab_size": 0}), ("t5", {"decoder_start_token_id": None}),
    ("whisper", {"decoder_start_token_id": HUGE}), ("whisper", {"d_model": 7}), ("whisper", {"vocab_size": 1}),
    ("whisper", {"encoder_layers": 0}), ("whisper", {"decoder_layers": 0}), ("whisper", {"max_source_positions": -1}),
    ("wav2vec2", {"conv_dim": "x"}), ("wav2vec2", {"conv_kernel": [0] * 7}), ("wav2vec2", {"conv_bias": "x"}),
    ("wav2vec2", {"hidden_size": 0}), ("wav2vec2", {"feat_extract_activation": "x"}),
    ("wav2vec2", {"do_stable_layer_norm": "x"}),
    ("clip", {"text_config": {"vocab_size": 0}}), ("clip", {"vision_config": {"patch_size": 0}}),
    ("clip", {"text_config": None}),
    ("clip", {"vision_config": {"num_channels": 0}}), ("clip", {"text_config": {"eos_token_id": HUGE}}),
    ("llava", {"vision_feature_layer": []}), ("llava", {"vision_feature_layer": [0, -99]}),
    ("llava", {"text_config": None}),
    ("llava", {"multimodal_projector_bias": "x"}), ("llava", {"image_seq_length": 0}),
    ("llava", {"image_seq_length": -1}),
):  # fmt: skip
    words = ", ".join(f"{name} = {str(value)[:60]!a}" for name, value in values.items())
    row(f"checkpoint: {kind}, odd: {words}", changed, kind, "config.json", setting(**values))
for values in (
    {"cache_implementation": "static"}, {"cache_implementation": 7}, {"cache_config": {"backend": "os"}},
     {"transformers_version": 7},
    {"eos_token_id": [2**31, -1]}, {"forced_decoder_ids": [["x"]]}, {"suppress_tokens": 7}, {"temperature": "x"},
    {"temperature": -1.0}, {"top_p": 7}, {"top_k": -1}, {"do_sample": "x"}, {"num_beams": 0}, {"length_penalty": []},
    {"watermarking_config": {"greenlist_ratio": "x"}}, {"compile_config": {"backend": "os"}},
     {"assistant_model": "/etc"},
    {"prompt_lookup_num_tokens": HUGE}, {"stop_strings": 7}, {"constraints": ["x"]}, {"penalty_alpha": "x", "top_k": 4},
    {"repetition_penalty": 0}, {"no_repeat_ngram_size": -1}, {"bad_words_ids": 7}, {"max_length": -5},
     {"min_length": HUGE},
    {"sequence_bias": {"x": 1}}, {"guidance_scale": "x"}, {"low_memory": 7}, {"return_dict_in_generate": True,
     "output_scores": True},
):  # fmt: skip
    words = ", ".join(f"{name} = {str(value)[:40]!a}" for name, value in values.items())
    row(f"checkpoint: a generation_config with {words}", changed, "llama", "generation_config.json", setting(**values))

# ---- safetensors ---------------------------------------------------------------------------------------------------


def own_weights(change: Callable[[dict[str, Any], bytes], Any]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        copy = Path(shutil.copytree(made("bert"), folder / "source"))
        data = (copy / "model.safetensors").read_bytes()
        size = struct.unpack_from("<Q", data)[0]
        header = json.loads(data[8 : 8 + size])
        result = change(header, data[8 + size :])
        (copy / "model.safetensors").write_bytes(
            result if isinstance(result, bytes) else safetensors(header, data[8 + size :])
        )
        return copy

    return make


def twice(header: dict[str, Any], body: bytes) -> bytes:
    text = json.dumps(header)
    name = next(name for name in header if name != "__metadata__")
    more = json.dumps({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})
    return safetensors((text[:-1] + ", " + more[1:]).encode(), body)


for words, change in (
    ("a name twice", twice), ("a gap", lambda h, b: safetensors(h, b + bytes(64))),
    ("blanks behind its header", lambda h, b:
     safetensors(json.dumps(h).encode() + b" " * 100_000, b)), ("a zero behind its header", lambda h, b: safetensors(
         json.dumps(h).encode() + b"\0", b)), ("NaN as a size", lambda h, b: safetensors(
         json.dumps(h).replace('"shape": [', '"shape": [NaN, ', 1).encode(), b)),
         ("a size of a fraction", lambda h, b: safetensors(
         json.dumps(h).replace('"shape": [', '"shape": [1.0, ', 1).encode(), b)),
         ("metadata of lists", lambda h, b: h.update(
         __metadata__={"format": ["pt"]})),
         ("another format", lambda h, b: h.update(__metadata__={"format": "\x1b[2J"})),
    ("no format", lambda h, b: h.pop("__metadata__", None) and None), ("metadata of a megabyte", lambda h, b: h.update(
        __metadata__={"format": "pt", "x": "\x1b" * 10**6})), ("a name of a megabyte", lambda h, b: h.update(
        {"a" * 10**6: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}})), ("types of 8 bits", lambda h, b: [
         v.update(dtype="F8_E4M3") for v in h.values() if "dtype" in v] and None), ("types of bool", lambda h, b: [
         v.update(dtype="BOOL") for v in h.values() if "dtype" in v] and None), ("sizes turned around", lambda h, b: [
         v.update(shape=v["shape"][::-1]) for v in h.values() if "shape" in v] and None),
         ("whole numbers", lambda h, b: [
         v.update(dtype="I32") for v in h.values() if v.get("dtype") == "F32"] and None),
         ("NaN everywhere", lambda h, b:
     safetensors(h, b"\xff" * len(b))),
     ("names of buffers", lambda h, b: h.update({f"x.{k}": h.pop(k) for k in list(h) if k[0] != "_"})),
    ("1,000 axes", lambda h, b: h.update(z={"dtype": "F32", "shape": [1] * 1000 + [0], "data_offsets": [0, 0]})),
):  # fmt: skip
    row(f"safetensors: with {words}", own_weights(change))

# ---- GGUF ----------------------------------------------------------------------------------------------------------

F32, BOOL, U64, I32 = (struct.pack("<I", kind) for kind in (6, 7, 10, 5))


def named(name: str, value: bytes) -> tuple[str, bytes]:
    return name, value


def array(kind: bytes, count: int, items: bytes) -> bytes:
    return ARRAY + kind + struct.pack("<Q", count) + items


SMALL = [
    ARCHITECTURE, named("llama.block_count", U32 + struct.pack("<I", 1)),
    named("llama.embedding_length", U32 + struct.pack("<I", 8)), named("llama.feed_forward_length",
     U32 + struct.pack("<I", 8)),
    named("llama.attention.head_count", U32 + struct.pack("<I", 2)), named("llama.context_length",
     U32 + struct.pack("<I", 8)),
]  # fmt: skip
TOKENS = named("tokenizer.ggml.tokens", array(STRING, 3, text("<unk>") + text("a") + text("b")))
for words, pairs in (
    ("heads of 0", [*SMALL[:4], named("llama.attention.head_count", U32 + bytes(4))]),
    ("a width of 2 to the 32", [*SMALL[:2], named("llama.embedding_length", U32 + b"\xff" * 4)]),
    ("a width of texts", [*SMALL[:2], named("llama.embedding_length", STRING + text("\x1b[2J"))]),
    ("a width of lists", [*SMALL[:2], named("llama.embedding_length", array(U32, 2, bytes(8)))]),
    ("a count of -1 layers", [ARCHITECTURE, named("llama.block_count", I32 + b"\xff" * 4)]),
    ("layers of NaN", [ARCHITECTURE, named("llama.block_count", F32 + struct.pack("<f", float("nan")))]),
    ("a bool of 7", [*SMALL, named("x", BOOL + b"\7")]),
    ("an alignment of 0", [*SMALL, named("general.alignment", U32 + bytes(4))]),
    ("an alignment of 7", [*SMALL, named("general.alignment", U32 + struct.pack("<I", 7))]),
    ("an alignment of 2 to the 31", [*SMALL, named("general.alignment", U32 + struct.pack("<I", 2**31))]),
    ("an alignment of texts", [*SMALL, named("general.alignment", STRING + text("x"))]),
    ("no tensor", [*SMALL, TOKENS]),
    ("a tokenizer that is none", [*SMALL, TOKENS, named("tokenizer.ggml.model", STRING + text("\x1b"))]),
    ("tokens of numbers", [*SMALL, named("tokenizer.ggml.tokens", array(U32, 3, bytes(12)))]),
    ("tokens without UTF-8", [*SMALL, named("tokenizer.ggml.tokens", array(STRING, 1, text(b"\xff\xfe")))]),
    ("scores of another count", [*SMALL, TOKENS, named("tokenizer.ggml.scores", array(F32, 1, bytes(4)))]),
    ("an end beyond the tokens", [*SMALL, TOKENS, named("tokenizer.ggml.model", STRING + text("llama")),
                                  named("tokenizer.ggml.eos_token_id", U32 + b"\xff" * 4)]),
    ("merges that are none", [*SMALL, TOKENS, named("tokenizer.ggml.model", STRING + text("gpt2")),
                              named("tokenizer.ggml.merges", array(STRING, 2, text("a") + text("a b c d")))]),
    ("a template that is code", [*SMALL, TOKENS, named("tokenizer.chat_template",
     STRING + text("{{ ''.__class__ }}"))]),
    ("quantised by version 99", [*SMALL, named("general.quantization_version", U32 + struct.pack("<I", 99))]),
    ("another file", [*SMALL, named("split.count", U32 + struct.pack("<I", 9)), named("split.no",
     U32 + struct.pack("<I", 3))]),
    ("a key of a megabyte", [*SMALL, named("k" * 10**6, U32 + bytes(4))]),
    ("a key that moves", [*SMALL, named("\x1b[2J", U32 + bytes(4))]),
):  # fmt: skip
    row(f"gguf: settings of {words}", put, "x.gguf", gguf(pairs=pairs))


def one_tensor(name: str, dims: list[int], kind: int, offset: int, body: bytes = bytes(4096)) -> bytes:
    head = (
        text(name)
        + struct.pack("<I", len(dims))
        + struct.pack(f"<{len(dims)}Q", *dims)
        + struct.pack("<IQ", kind, offset)
    )
    made = gguf(1, [*SMALL, TOKENS], rest=head)
    return made + bytes(-len(made) % 32) + body


for words, content in (
    ("a name that moves", one_tensor("\x1b[2J", [8], 0, 0)), ("no axis", one_tensor("output_norm.weight", [], 0, 0)),
    ("sizes 0", one_tensor("output_norm.weight", [0], 0, 0)),
    ("an odd place", one_tensor("output_norm.weight", [8], 0, 3)),
    ("blocks that are cut", one_tensor("token_embd.weight", [7, 3], 2, 0)), ("sizes that overflow", one_tensor(
        "token_embd.weight", [2**33, 2**33], 0, 0)), ("8 axes", one_tensor("token_embd.weight", [1] * 8, 0, 0)),
    ("a place at the end", one_tensor("token_embd.weight", [8, 3], 0, 4096)), ("a place of 2 to the 64", one_tensor(
        "token_embd.weight", [8, 3], 0, 2**64 - 32)),
        ("a type of counts", one_tensor("token_embd.weight", [8, 3], 26, 0)),
    ("a type that was removed", one_tensor("token_embd.weight", [32, 3], 4, 0)),
):  # fmt: skip
    row(f"gguf: a tensor with {words}", put, "x.gguf", content)

# ---- lists ---------------------------------------------------------------------------------------------------------

for words, content in (
    ("lines of other systems", b"/nothing\r\n/nothing2\r/nothing3\x0b/nothing4\x0c\n"),
    ("a BOM", b"\xef\xbb\xbf/nothing\n"),
    ("a name above", b"../../../../etc\n.. \n.\n/\n"), ("a device", b"/dev/zero\n/dev/null\n"),
    ("brackets", b"/[bold]x[/bold]\n"),
    ("a task that is none", b"/nothing \x1b[2J float7\n"), ("a dtype that is none", b"/nothing - float7\n"),
    ("names that are one", b"/a/x\n/b/x\n/c/x text-generation\n"), ("itself", b"list.txt\n"),
):  # fmt: skip
    row(f"list: {words}, odd", put, "list.txt", content)

FOUND = [
    "onnx: an error of ONNX Runtime's that is no text",
    "onnx: 40 functions that call the next 2 times",
    "onnx: modules 100,000 levels deep",
    "onnx: modules a thousand ways, 10,000 levels deep",
    "onnx: a record of differences without what may be left out",
    "checkpoint: preprocessor_config.json is a terabyte of nothing",
    "checkpoint: modules.json is a terabyte of nothing",
    "checkpoint: llama, odd: sub_configs = \"{'a': 'b'}\"",
]
