"""More rows of hostile_files.py: checkpoints of other kinds than text, whose processors, tokenizers, adapters and
configurations are wrong; folders and ONNX files that drive a library into a fault."""

from __future__ import annotations

import json
import os
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import checkpoints
from hostile_files import put, row
from hostile_models import changed_folder, exported, model, onnx_row, safetensors, tensor
from onnx import TensorProto, helper


@cache
def made(kind: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fairlead-hostile-")) / "source"
    getattr(checkpoints, kind)(folder)
    return folder


def changed(folder: Path, kind: str, name: str, change: Callable[[Any], Any]) -> Path:
    """A checkpoint of this kind in which one of its JSON files has other values, or is other bytes."""
    copy = Path(shutil.copytree(made(kind), folder / "source"))
    path = copy / name
    value = json.loads(path.read_text()) if path.exists() and name.endswith(".json") else {}
    result = change(value)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(result if isinstance(result, bytes) else json.dumps(value if result is None else result).encode())
    return copy


def setting(**values: Any) -> Callable[[Any], None]:
    return lambda value: value.update(values)


HUGE, DEEP = 10**9, 10**12

# ---- configurations: what is counted has many names ------------------------------------------------------------

for kind, values in (
    ("bart", {"encoder_layers": HUGE}), ("bart", {"decoder_layers": HUGE}), ("bart", {"d_model": HUGE}),
    ("bart", {"encoder_layers": -1}), ("bart", {"decoder_attention_heads": 0}), ("bart", {"encoder_layers": 2.5}),
    ("bart", {"is_encoder_decoder": False}), ("bart", {"decoder_start_token_id": HUGE}),
    ("bart", {"forced_eos_token_id": "x"}), ("bart", {"scale_embedding": "x"}), ("bart", {"encoder_ffn_dim": DEEP}),
    ("whisper", {"encoder_layers": HUGE}), ("whisper", {"num_mel_bins": HUGE}), ("whisper", {"num_mel_bins": 7}),
    ("whisper", {"max_source_positions": HUGE}), ("whisper", {"max_source_positions": 0}),
    ("whisper", {"max_target_positions": 1}), ("whisper", {"suppress_tokens": [HUGE]}),
    ("whisper", {"begin_suppress_tokens": "x"}), ("whisper", {"median_filter_width": -1}),
    ("t5", {"num_layers": HUGE}), ("t5", {"num_decoder_layers": HUGE}), ("t5", {"num_heads": HUGE}),
    ("t5", {"relative_attention_num_buckets": HUGE}), ("t5", {"feed_forward_proj": "gated-nothing"}),
    ("t5", {"feed_forward_proj": 7}), ("t5", {"d_kv": 0}), ("t5", {"relative_attention_max_distance": 0}),
    ("vit", {"image_size": HUGE}), ("vit", {"patch_size": 0}), ("vit", {"patch_size": -4}), ("vit", {"image_size": 7}),
    ("vit", {"num_channels": HUGE}), ("vit", {"image_size": [1, 2, 3]}), ("vit", {"image_size": "x"}),
    ("vit", {"hidden_act": ["gelu"]}), ("vit", {"encoder_stride": 0}), ("vit", {"patch_size": 10**6}),
    ("wav2vec2", {"conv_dim": [32] * 100_000}), ("wav2vec2", {"conv_kernel": [HUGE] * 7}),
    ("wav2vec2", {"conv_stride": [0] * 7}), ("wav2vec2", {"conv_dim": []}), ("wav2vec2",
     {"num_feat_extract_layers": HUGE}),
    ("wav2vec2", {"num_conv_pos_embeddings": HUGE}), ("wav2vec2", {"num_conv_pos_embedding_groups": 0}),
    ("wav2vec2", {"add_adapter": True, "num_adapter_layers": HUGE}), ("wav2vec2", {"mask_time_prob": "x"}),
    ("wav2vec2", {"feat_extract_norm": "nothing"}), ("wav2vec2", {"num_codevectors_per_group": HUGE}),
    ("clip", {"text_config": 7}), ("clip", {"vision_config": []}), ("clip", {"projection_dim": HUGE}),
    ("clip", {"text_config": {"num_hidden_layers": HUGE}}), ("clip", {"vision_config": {"num_hidden_layers": HUGE}}),
    ("clip", {"vision_config": {"image_size": HUGE}}), ("clip", {"logit_scale_init_value": "x"}),
    ("llava", {"image_token_index": HUGE}), ("llava", {"image_token_index": -5}), ("llava",
     {"vision_feature_layer": 99}),
    ("llava", {"vision_feature_layer": "x"}), ("llava", {"vision_feature_select_strategy": "nothing"}),
    ("llava", {"text_config": {"model_type": "nothing"}}), ("llava", {"vision_config": {"model_type": 7}}),
    ("llava", {"text_config": {"model_type": "llava", "text_config": {"model_type": "llava"}}}),
    ("llava", {"projector_hidden_act": "nothing"}), ("llava", {"image_seq_length": HUGE}),
    ("llama", {"num_key_value_heads": 0}), ("llama", {"num_key_value_heads": 3}), ("llama", {"head_dim": DEEP}),
    ("llama", {"head_dim": 0}), ("llama", {"head_dim": 7}), ("llama", {"rms_norm_eps": "x"}),
    ("llama", {"rope_theta": 0}), ("llama", {"rope_theta": "x"}), ("llama", {"rope_theta": float("inf")}),
    ("llama", {"rope_scaling": {"rope_type": "nothing", "factor": 2}}), ("llama", {"rope_scaling": 7}),
    ("llama", {"rope_scaling": {"rope_type": "linear", "factor": 0}}), ("llama", {"rope_scaling": []}),
    ("llama", {"rope_parameters": {"rope_type": "yarn", "factor": -1}}), ("llama", {"rope_parameters": 7}),
    ("llama", {"rope_parameters": {"rope_type": "longrope", "long_factor": [1], "short_factor": [1] * 100_000}}),
    ("llama", {"rope_parameters": {"rope_type": "llama3", "factor": 1e400}}), ("llama", {"sliding_window": -1}),
    ("llama", {"layer_types": ["nothing"] * 2}), ("llama", {"layer_types": ["full_attention"] * 1_000_000}),
    ("llama", {"layer_types": 7}), ("llama", {"cache_implementation": "nothing"}), ("llama", {"use_cache": "x"}),
    ("llama", {"pruned_heads": {"0": [HUGE]}}), ("llama", {"pruned_heads": 7}), ("llama", {"tie_word_embeddings": "x"}),
    ("llama", {"attention_dropout": 7}), ("llama", {"mlp_bias": 7}), ("llama", {"is_decoder": "x"}),
    ("llama", {"output_hidden_states": True, "output_attentions": True}), ("llama", {"return_dict": False}),
    ("llama", {"torchscript": True}), ("llama", {"chunk_size_feed_forward": HUGE}), ("llama", {"id2label": {"x": 7}}),
    ("llama", {"id2label": {str(k): "x" for k in range(200_000)}}), ("llama", {"label2id": {"a": {}}}),
    ("llama", {"problem_type": "nothing"}), ("llama", {"bos_token_id": [1, [2]]}), ("llama", {"eos_token_id": {}}),
    ("llama", {"eos_token_id": [2] * 100_000}), ("llama", {"pad_token_id": -7}), ("llama", {"task_specific_params": 7}),
    ("llama", {"transformers_weights": "../../../../etc/passwd"}), ("llama", {"transformers_weights": 7}),
    ("llama", {"tp_plan": "auto", "base_model_tp_plan": {"x": "y"}}), ("llama", {"device_map": "cuda:9"}),
    ("llama", {"_attn_implementation_internal": "flash_attention_9"}), ("llama", {"attn_implementation": 7}),
    ("llama", {"_attn_implementation": {"a": "b"}}), ("llama", {"_experts_implementation": "nothing"}),
    ("llama", {"__class__": "x", "__dict__": 7, "__init__": 8}), ("llama", {"from_pretrained": 7}),
    ("llama", {"model_type": "auto"}), ("llama", {"model_type": "../llama"}), ("llama", {"model_type": "__init__"}),
    ("llama", {"architectures": ["LlamaForCausalLM"] * 10_000}), ("llama", {"architectures": ["pipeline"]}),
    ("llama", {"architectures": ["AutoModel"]}), ("llama", {"architectures": ["LlamaConfig"]}),
    ("llama", {"architectures": ["BertModel"]}), ("llama", {"architectures": ["WhisperForConditionalGeneration"]}),
    ("llama", {"architectures": ["T5ForConditionalGeneration"], "model_type": "t5"}),
    ("llama", {"a" * 100_000: 7}), ("llama", {"\x1b[2J\u202e": "\x1b[2J", "\ud800": "\ud800"}),
):  # fmt: skip
    words = ", ".join(f"{str(name)[:30]!a} = {str(value)[:40]!a}" for name, value in values.items())
    row(f"checkpoint: {kind}: {words}", changed, kind, "config.json", setting(**values))

for method in (
    "aqlm", "auto-round", "awq", "bitnet", "bitsandbytes_4bit", "bitsandbytes_8bit", "compressed-tensors", "eetq",
    "fbgemm_fp8", "fp8", "gptq", "higgs", "hqq", "metal", "mxfp4", "quanto", "quark", "sinq", "spqr", "torchao",
    "vptq", "fouroversix", "fp_quant", "four_over_six",
):  # fmt: skip
    row(f"checkpoint: weights that are not quantised, by {method}", changed, "llama", "config.json",
        setting(quantization_config={"quant_method": method}))  # fmt: skip
    row(f"checkpoint: weights that are not quantised, by {method}, and more", changed, "llama", "config.json",
        setting(quantization_config={"quant_method": method, "bits": 4, "group_size": 32,
         "quant_type": "int4_weight_only",
                                     "weights": "int8", "modules_to_not_convert": ["(a+)+$"], "load_in_4bit": True,
                                     "quant_config": {"weight_quant_params": {"nbits": 4,
                                     "group_size": 8}}}))  # fmt: skip
row("checkpoint: torchao with a class of its own", changed, "llama", "config.json", setting(quantization_config={
    "quant_method": "torchao", "quant_type": {"default": {"_type": "subprocess.Popen", "_version": 1,
     "_data": {"args": "true"}}}}))  # fmt: skip

# ---- processors ------------------------------------------------------------------------------------------------

for kind, values in (
    ("vit", {"size": {"height": 10**6, "width": 10**6}}), ("vit", {"size": {"height": 0, "width": 0}}),
    ("vit", {"size": {"height": -1, "width": 5}}), ("vit", {"size": "x"}), ("vit", {"size": {"x": 1}}), ("vit",
     {"size": 7.5}),
    ("vit", {"resample": 99}), ("vit", {"resample": "x"}), ("vit", {"image_mean": [0.5]}), ("vit", {"image_mean": "x"}),
    ("vit", {"image_std": [0, 0, 0]}), ("vit", {"image_std": [float("nan")] * 3}), ("vit", {"rescale_factor": "x"}),
    ("vit", {"rescale_factor": 1e400}), ("vit", {"do_resize": "x"}), ("vit", {"do_resize": False}),
    ("vit", {"image_processor_type": "NothingProcessor"}), ("vit", {"image_processor_type": 7}),
    ("vit", {"image_processor_type": "os"}), ("vit", {"image_processor_type": "WhisperFeatureExtractor"}),
    ("vit", {"feature_extractor_type": "pipeline", "image_processor_type": None}), ("vit",
     {"processor_class": "AutoModel"}),
    ("vit", {"crop_size": {"height": HUGE, "width": HUGE}, "do_center_crop": True}), ("vit", {"data_format": "x"}),
    ("vit", {"auto_map": {"AutoImageProcessor": "someone/x--y.Z"}}), ("vit", {"size_divisor": 0, "do_pad": True}),
    ("vit", {"device": "cuda"}), ("vit", {"preprocess": 7}), ("vit", {"__class__": "x"}),
    ("whisper", {"chunk_length": HUGE}), ("whisper", {"n_fft": HUGE}), ("whisper", {"n_fft": 0}),
    ("whisper", {"hop_length": 0}), ("whisper", {"hop_length": -5}), ("whisper", {"feature_size": HUGE}),
    ("whisper", {"feature_size": 0}), ("whisper", {"sampling_rate": 0}), ("whisper", {"sampling_rate": DEEP}),
    ("whisper", {"sampling_rate": "x"}), ("whisper", {"padding_value": "x"}), ("whisper", {"n_samples": HUGE}),
    ("whisper", {"nb_max_frames": HUGE}), ("whisper", {"padding_side": "nothing"}), ("whisper", {"mel_filters": [[1]]}),
    ("whisper", {"feature_extractor_type": "os.system"}), ("whisper", {"feature_extractor_type": ["x"]}),
    ("whisper", {"dither": "x"}), ("whisper", {"return_attention_mask": "x"}),
    ("wav2vec2", {"feature_size": 7}), ("wav2vec2", {"sampling_rate": HUGE}), ("wav2vec2", {"sampling_rate": -1}),
    ("wav2vec2", {"do_normalize": "x"}), ("wav2vec2", {"padding_value": float("nan")}),
    ("wav2vec2", {"feature_extractor_type": "Wav2Vec2Processor"}),
    ("llava", {"size": {"shortest_edge": 10**6}}), ("llava", {"crop_size": {"height": 1, "width": 1}}),
    ("llava", {"size": {"shortest_edge": 0}}), ("llava", {"image_processor_type": "NothingProcessor"}),
):  # fmt: skip
    words = ", ".join(f"{name} = {str(value)[:40]!a}" for name, value in values.items())
    for name in ("preprocessor_config.json", "processor_config.json"):
        row(f"checkpoint: {kind}: {name} with {words}", changed, kind, name, setting(**values))
for words, values in (
    ("patches of 0", {"patch_size": 0}), ("patches of texts", {"patch_size": "x"}),
    ("another class", {"processor_class": "NothingProcessor"}), ("a class of os", {"processor_class": "os.system"}),
    ("a template that never ends",
     {"chat_template": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"}),
    ("a template of numbers", {"chat_template": 7}), ("a huge text for an image", {"image_token": "x" * 10**6}),
    ("no text for an image", {"image_token": ""}), ("more tokens for an image", {"num_additional_image_tokens": HUGE}),
    ("fewer tokens for an image", {"num_additional_image_tokens": -HUGE}), ("a strategy",
     {"vision_feature_select_strategy": 7}),
    ("an image processor of numbers", {"image_processor": 7}), ("a tokenizer of numbers", {"tokenizer": 7}),
    ("an image processor elsewhere", {"image_processor": {"image_processor_type": "../../x"}}),
):  # fmt: skip
    row(f"checkpoint: llava: a processor with {words}", changed, "llava", "processor_config.json", setting(**values))

# ---- tokenizers ------------------------------------------------------------------------------------------------

for words, values in (
    ("a class that is none", {"tokenizer_class": "NothingTokenizer"}), ("a class of lists", {"tokenizer_class": ["x"]}),
    ("a class of another model", {"tokenizer_class": "WhisperTokenizer"}), ("a class that is slow",
     {"tokenizer_class": "BertJapaneseTokenizer"}),
    ("a class of pieces", {"tokenizer_class": "LlamaTokenizer"}), ("a class of bytes",
     {"tokenizer_class": "ByT5Tokenizer"}),
    ("a class that is a model", {"tokenizer_class": "BertModel"}), ("a function as a class",
     {"tokenizer_class": "pipeline"}),
    ("a class with a path", {"tokenizer_class": "../../x.Y"}), ("a length of 10 to the 30",
     {"model_max_length": 10**30}),
    ("a length of 1", {"model_max_length": 1}), ("a length of -1", {"model_max_length": -1}), ("a length of text",
     {"model_max_length": "x"}),
    ("an unknown token of lists", {"unk_token": [1]}), ("an unknown token of objects", {"unk_token": {"content": 7}}),
    ("an end that is no token", {"eos_token": "\x1b[2J\u202e"}), ("a pad of a megabyte", {"pad_token": "x" * 10**6}),
    ("no pad", {"pad_token": None, "eos_token": None, "unk_token": None}), ("a pad that is a number", {"pad_token": 7}),
    ("added tokens at -1", {"added_tokens_decoder": {"-1": {"content": "x"}}}), ("added tokens of texts",
     {"added_tokens_decoder": {"x": "y"}}),
    ("added tokens far away", {"added_tokens_decoder": {"999999999999": {"content": "x", "special": True}}}),
    ("added tokens that are a list", {"added_tokens_decoder": [1]}), ("added tokens without content",
     {"added_tokens_decoder": {"5": {}}}),
    ("100,000 added tokens", {"added_tokens_decoder": {str(200 + k): {"content": f"t{k}"} for k in range(100_000)}}),
    ("extra tokens of numbers", {"extra_special_tokens": 7}), ("extra tokens of lists",
     {"extra_special_tokens": [[1]]}),
    ("additional tokens of numbers", {"additional_special_tokens": [7, {}]}), ("a side that is none",
     {"padding_side": "top"}),
    ("a truncation that is none", {"truncation_side": 7}), ("a vocabulary elsewhere", {"vocab_file": "/etc/passwd",
     "tokenizer_file": "/etc/passwd"}),
    ("a vocabulary above", {"vocab_file": "../../../../etc/passwd"}), ("names of inputs", {"model_input_names": 7}),
    ("names of inputs that are none", {"model_input_names": ["\x1b[2J"]}), ("a template that is code",
     {"chat_template": "{{ ''.__class__ }}"}),
    ("templates of lists", {"chat_template": [{"name": 7, "template": 8}]}), ("a backend", {"backend": "os"}),
    ("a method", {"encode": 7, "__call__": 8, "from_pretrained": 9}), ("clean_up of text",
     {"clean_up_tokenization_spaces": "x"}),
    ("a name elsewhere", {"name_or_path": "/etc", "special_tokens_map_file": "/etc/passwd"}),
    ("spm of another", {"sp_model_kwargs": {"enable_sampling": True, "alpha": "x"}}), ("do_lower_case of lists",
     {"do_lower_case": [1]}),
):  # fmt: skip
    for kind in ("bert", "llama"):
        row(
            f"checkpoint: {kind}: a tokenizer_config of {words}",
            changed,
            kind,
            "tokenizer_config.json",
            setting(**values),
        )


def only(folder: Path, kind: str, files: dict[str, bytes], settings: dict[str, Any]) -> Path:
    """A checkpoint whose tokenizer is other files than tokenizer.json."""
    copy = Path(shutil.copytree(made(kind), folder / "source"))
    (copy / "tokenizer.json").unlink(missing_ok=True)
    for name, content in files.items():
        put(copy, name, content)
    if settings:
        (copy / "tokenizer_config.json").write_text(json.dumps(settings))
    return copy


PIECES = b"\x0a\x0e\x0a\x05<unk>\x15\x00\x00\x00\x00\x18\x02"
for words, files, settings in (
    ("no file", {}, {}), ("an empty vocabulary", {"vocab.txt": b""}, {"tokenizer_class": "BertTokenizer"}),
    ("a vocabulary of zeros", {"vocab.txt": bytes(10_000)}, {"tokenizer_class": "BertTokenizer"}),
    ("a vocabulary without UTF-8", {"vocab.txt": b"\xff\xfe\n[UNK]\n"}, {"tokenizer_class": "BertTokenizer"}),
    ("a vocabulary of a million lines", {"vocab.txt": b"x\n" * 1_000_000}, {"tokenizer_class": "BertTokenizer"}),
    ("a vocabulary of one line", {"vocab.txt": b"x" * 10_000_000}, {"tokenizer_class": "BertTokenizer"}),
    ("pairs of nothing", {"vocab.json": b"{}", "merges.txt": b""}, {"tokenizer_class": "GPT2Tokenizer"}),
    ("pairs that are none", {"vocab.json": b'{"a": 0}', "merges.txt": b"#version\na\nb c d\n"},
     {"tokenizer_class": "GPT2Tokenizer"}),
    ("pairs of what is not there", {"vocab.json": b'{"a": 0}', "merges.txt": b"#v\nx y\n"},
     {"tokenizer_class": "GPT2Tokenizer"}),
    ("numbers of texts", {"vocab.json": b'{"a": "x"}', "merges.txt": b"#v\n"}, {"tokenizer_class": "GPT2Tokenizer"}),
    ("a deep vocabulary", {"vocab.json": b'{"a":' * 100_000, "merges.txt": b""}, {"tokenizer_class": "GPT2Tokenizer"}),
    ("a list as vocabulary", {"vocab.json": b"[1]", "merges.txt": b""}, {"tokenizer_class": "GPT2Tokenizer"}),
    ("pieces that are empty", {"tokenizer.model": b""}, {"tokenizer_class": "LlamaTokenizer"}),
    ("pieces that are text", {"tokenizer.model": b"hello" * 100}, {"tokenizer_class": "LlamaTokenizer"}),
    ("pieces that are zeros", {"tokenizer.model": bytes(5000)}, {"tokenizer_class": "LlamaTokenizer"}),
    ("pieces that are a pickle", {"tokenizer.model": b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R."},
     {"tokenizer_class": "LlamaTokenizer"}),
    ("one piece", {"tokenizer.model": PIECES}, {"tokenizer_class": "LlamaTokenizer"}),
    ("a piece of 2 to the 31", {"tokenizer.model": b"\x0a\xff\xff\xff\xff\x07" + b"x" * 100},
     {"tokenizer_class": "LlamaTokenizer"}),
    ("pieces of T5", {"spiece.model": b"\xff" * 100}, {"tokenizer_class": "T5Tokenizer"}),
    ("ranks that are none", {"tokenizer.model": b"aGVsbG8= x\n"}, {"tokenizer_class": "PreTrainedTokenizerFast"}),
    ("tekken that is none", {"tekken.json": b"{}"}, {"tokenizer_class": "MistralCommonTokenizer"}),
    ("tekken of numbers", {"tekken.json": b'{"vocab": 7, "config": []}'}, {"tokenizer_class": "MistralCommonBackend"}),
    ("a tokenizer that is a list", {"tokenizer.json": b"[]"}, {"tokenizer_class": "PreTrainedTokenizerFast"}),
    ("codes", {"vocab.json": b'{"a": 0}', "normalizer.json": b"[["}, {"tokenizer_class": "WhisperTokenizer"}),
    ("letters", {"vocab.json": b'{"en": {"a": 0}}'}, {"tokenizer_class": "Wav2Vec2CTCTokenizer"}),
):  # fmt: skip
    row(f"checkpoint: other files of a tokenizer: {words}", only, "llama", files, settings)


def steps(**parts: Any) -> Callable[[Any], None]:
    return lambda value: value.update(parts)


SLOW = r"(\w+\s?)+\d"  # every way to cut the words of a sentence is tried
for words, change in (
    ("a pattern that tries every way", steps(pre_tokenizer={"type": "Split", "pattern": {"Regex": SLOW},
     "behavior": "Isolated", "invert": False})),
    ("a replacement that tries every way", steps(normalizer={"type": "Replace", "pattern": {"Regex": SLOW},
     "content": "x"})),
    ("a replacement that grows", steps(normalizer={"type": "Sequence", "normalizers": [{"type": "Replace",
     "pattern": {"Regex": "."}, "content": "aaaaaaaaaaaaaaaa"}] * 7})),
    ("a text before all", steps(normalizer={"type": "Prepend", "prepend": "x" * 1_000_000})),
    ("precompiled bytes", steps(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAAAAA="})),
    ("precompiled bytes that are none", steps(normalizer={"type": "Precompiled", "precompiled_charsmap": "\x1b"})),
    ("a processor of numbers", steps(post_processor=7)),
    ("a template of what is not there", steps(post_processor={"type": "TemplateProcessing",
     "single": [{"SpecialToken": {"id": "nothing", "type_id": 0}}], "pair": [], "special_tokens": {}})),
    ("a template of huge tokens", steps(post_processor={"type": "TemplateProcessing",
     "single": [{"SpecialToken": {"id": "a", "type_id": 0}}], "pair": [], "special_tokens": {"a": {"id": "a",
      "ids": [2**32 - 1], "tokens": ["a"]}}})),
    ("a decoder that is none", steps(decoder={"type": "Nothing"})),
    ("a truncation of 0", steps(truncation={"max_length": 0, "strategy": "LongestFirst", "stride": 0,
     "direction": "Right"})),
    ("a truncation whose stride is longer", steps(truncation={"max_length": 2, "strategy": "LongestFirst", "stride": 9,
     "direction": "Right"})),
    ("a padding to 2 to the 40", steps(padding={"strategy": {"Fixed": 2**40}, "direction": "Right",
     "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "x"})),
    ("a padding to multiples of 0", steps(padding={"strategy": "BatchLongest", "direction": "Right",
     "pad_to_multiple_of": 0, "pad_id": 0, "pad_type_id": 0, "pad_token": "x"})),
    ("a padding to multiples of 2 to the 40", steps(padding={"strategy": "BatchLongest", "direction": "Right",
     "pad_to_multiple_of": 2**40, "pad_id": 0, "pad_type_id": 0, "pad_token": "x"})),
    ("pairs of what is not there", steps(model={"type": "BPE", "vocab": {"a": 0}, "merges": ["x y"]})),
    ("unigrams without an unknown one", steps(model={"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 9})),
    ("unigrams of nothing", steps(model={"type": "Unigram", "vocab": [], "unk_id": None})),
    ("words without an unknown one", steps(model={"type": "WordLevel", "vocab": {}, "unk_token": "x"})),
    ("pieces without an unknown one", steps(model={"type": "WordPiece", "vocab": {}, "unk_token": "x",
     "continuing_subword_prefix": "##", "max_input_chars_per_word": 0})),
    ("a normalizer of pickles", steps(normalizer={"type": "Custom", "data": "gASVBAA="})),
    ("templates in templates", steps(pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Sequence",
     "pretokenizers": []}] * 100_000})),
):  # fmt: skip
    row(f"checkpoint: a tokenizer.json with {words}", changed, "llama", "tokenizer.json", change)
    row(f"folder: a tokenizer.json with {words}", changed_folder, "tokenizer.json", change)

# ---- chat templates --------------------------------------------------------------------------------------------

for words, template in (
    ("a long text in every step",
     "{% set s = 'a' * 50000000 %}{% for a in range(99999) %}{% set y = s.count('b') %}{% endfor %}"),
    ("texts that are sorted",
     "{% for a in range(9999) %}{% set y = range(99999)|sort(reverse=true)|list %}{% endfor %}"),
    ("a format of a fraction", "{{ '%.99999999f' % 1.5 }}"), ("a format of floats", "{{ '{:>999999999}'.format(1) }}"),
    ("centred text", "{{ 'x'.center(999999999) }}"), ("lists", "{{ [1] * 999999999 }}"), ("joined lists",
     "{{ (range(99999)|list) * 9999 }}"),
    ("a date", "{{ strftime_now('%' * 1000000) }}"), ("a date of numbers", "{{ strftime_now(7) }}"),
     ("a date of zeros", "{{ strftime_now('\x00') }}"),
    ("lorem", "{{ lipsum(n=99999999) }}"), ("a cycle",
     "{% set c = cycler(*range(99999)) %}{% for a in range(99999) %}{{ c.next() }}{% endfor %}"),
    ("words that are wrapped", "{{ ('x ' * 10000000)|wordwrap(1) }}"), ("links",
     "{{ ('http://a.b ' * 1000000)|urlize }}"),
    ("tags", "{{ ('<' * 10000000)|striptags }}"), ("an index", "{{ messages[10**20] }}"), ("a slice",
     "{{ ('x' * 99)[::0] }}"),
    ("a surrogate", "\\ud800{{ '\\ud800' }}"), ("nothing", ""), ("a name of Python", "{{ self.__init__.__globals__ }}"),
    ("a filter that is none", "{{ 1|nothing }}"), ("a test that is none", "{{ 1 is nothing }}"), ("an extension",
     "{% do 1 %}"),
    ("a break outside", "{% break %}"), ("blocks", "{% block a %}{{ self.a() }}{% endblock %}"), ("deep parentheses",
     "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}"),
    ("deep blocks", "{% if 1 %}" * 5000 + "{% endif %}" * 5000), ("deep additions", "{{ 1" + "+1" * 50_000 + " }}"),
     ("a debugger", "{% debug %}"),
    ("a generator", "{% generation %}{% endgeneration %}"), ("a bomb of replacements",
     "{% set s = 'aa' %}{% for a in range(60) %}{% set s = s|replace('a', 'aa') %}{{ s }}{% endfor %}"),
    ("a namespace",
     "{% set n = namespace(s='a') %}{% for a in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}{{ n.s }}"),
):  # fmt: skip
    row(f"folder: chat_template.jinja of {words}", changed_folder, "chat_template.jinja",
        lambda value, template=template: template.encode("utf-8", "surrogatepass"))  # fmt: skip

# ---- pickled weights ---------------------------------------------------------------------------------------------


def pickled(folder: Path, content: Callable[[], bytes], index: Any = None) -> Path:
    copy = Path(shutil.copytree(made("bert"), folder / "source"))
    (copy / "model.safetensors").unlink()
    put(copy, "pytorch_model.bin", content())
    if index is not None:
        (copy / "pytorch_model.bin").rename(copy / "pytorch_model-00001-of-00001.bin")
        (copy / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    return copy


def zipped(entries: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    import io

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


REDUCE = b"\x80\x02cposix\nsystem\nX\x04\x00\x00\x00true\x85R."
STORAGE = (
    b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuJ\xff\xff\xff\x7ftQK\x00(J\xff\xff\xff\x7ft(K\x01t\x89"
    b"ccollections\nOrderedDict\n)RtR."
)
for words, content in (
    ("nothing", b""), ("text", b"hello"), ("zeros", bytes(1000)), ("a call", REDUCE), ("an empty dict", b"\x80\x02}."),
    ("a list", b"\x80\x02]."), ("a dict of numbers", b"\x80\x02}X\x01\x00\x00\x00aK\x07s."), ("deep lists",
     b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."),
    ("a huge text", b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b"."), ("a huge frame",
     b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"."),
    ("a memo of 2 to the 31", b"\x80\x02]r\xff\xff\xff\x7f."), ("a zip without a pickle",
     zipped({"archive/version": b"3"})),
    ("a zip with a call", zipped({"archive/data.pkl": REDUCE, "archive/version": b"3"})),
    ("a zip of a tensor of 2 to the 31", zipped({"archive/data.pkl": STORAGE, "archive/data/0": b"1234",
     "archive/version": b"3"})),
    ("a bomb", zipped({"archive/data.pkl": b"\x80\x02}.", "archive/version": b"3", "archive/data/0": bytes(1 << 28)},
     zipfile.ZIP_DEFLATED)),
    ("a script", zipped({"archive/data.pkl": b"\x80\x02}.", "archive/code/a.py": b"import os",
     "archive/constants.pkl": REDUCE})),
    ("a tar", b"storages\0".ljust(512, b"\0") * 20), ("the older form",
     b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."),
):  # fmt: skip
    row(f"checkpoint: pytorch_model.bin is {words}", pickled, lambda content=content: content)
for words, index in (
    ("a path above", {"weight_map": {"a": "../../../../etc/passwd"}}), ("numbers", {"weight_map": {"a": 7}}),
     ("nothing", {}),
    ("an absolute path", {"weight_map": {"a": "/etc/passwd"}}), ("a list", [1]),
):  # fmt: skip
    row(f"checkpoint: an index of pytorch_model.bin with {words}", pickled, lambda: REDUCE, index)

# ---- sentence embeddings ---------------------------------------------------------------------------------------


def sentences(folder: Path, modules: Any, pooling: Any) -> Path:
    copy = changed(folder, "bert", "config.json", setting(architectures=["BertModel"]))
    put(copy, "modules.json", modules if isinstance(modules, bytes) else json.dumps(modules).encode())
    put(copy, "1_Pooling/config.json", pooling if isinstance(pooling, bytes) else json.dumps(pooling).encode())
    return copy


POOL = {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
MEAN = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
for words, modules, pooling in (
    ("a path above", [POOL | {"path": "../../../../etc"}], MEAN), ("an absolute path", [POOL | {"path": "/etc"}], MEAN),
    ("a path that is a number", [POOL | {"path": 7}], MEAN), ("a type of os", [POOL | {"type": "os.system"}], MEAN),
    ("a type that is a number", [POOL | {"type": 7}], MEAN), ("rows of numbers", [1, 2], MEAN), ("100,000 rows",
     [POOL] * 100_000, MEAN),
    ("pooling of lists", [POOL], []), ("pooling of texts", [POOL], {"pooling_mode_mean_tokens": "x"}),
     ("pooling that is none", [POOL], b"[" * 100_000),
    ("every pooling", [POOL], {f"pooling_mode_{k}": True for k in ("cls_token", "mean_tokens", "max_tokens",
     "lasttoken")}),
    ("a width of -1", [POOL], MEAN | {"word_embedding_dimension": -1}), ("no UTF-8", [POOL], b"\xff\xfe"), ("a zero",
     [POOL | {"path": "a\0b"}], MEAN),
    ("a surrogate", [POOL | {"path": "\ud800"}], MEAN), ("a dense layer", [POOL, {"idx": 2, "name": "2",
     "path": "2_Dense", "type": "sentence_transformers.models.Dense"}], MEAN),
):  # fmt: skip
    row(f"checkpoint: modules.json with {words}", sentences, modules, pooling)

# ---- adapters ----------------------------------------------------------------------------------------------------


@cache
def adapted() -> Path:
    """base/ and adapter/, which belong together."""
    import peft
    import torch
    from transformers import AutoModelForCausalLM

    root = Path(tempfile.mkdtemp(prefix="fairlead-hostile-"))
    base = AutoModelForCausalLM.from_pretrained(checkpoints.llama(root / "base"))
    torch.manual_seed(0)
    found = peft.get_peft_model(base, peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False))
    found.save_pretrained(root / "adapter")
    return root


def adapter(folder: Path, change: Callable[[Any], Any], weights: bytes | None = None) -> Path:
    """The folder of the adapter; its model is beside it."""
    root = Path(shutil.copytree(adapted(), folder / "root"))
    path = root / "adapter" / "adapter_config.json"
    value = json.loads(path.read_text())
    result = change(value)
    path.write_bytes(result if isinstance(result, bytes) else json.dumps(value if result is None else result).encode())
    if weights is not None:
        (root / "adapter" / "adapter_model.safetensors").write_bytes(weights)
    return root / "adapter"


for values in (
    {"r": HUGE}, {"r": 0}, {"r": -1}, {"r": "x"}, {"r": 2.5}, {"r": None}, {"lora_alpha": "x"}, {"lora_alpha": 1e400},
     {"lora_alpha": 0},
    {"target_modules": None}, {"target_modules": 7}, {"target_modules": []}, {"target_modules": ["nothing"]},
    {"target_modules": [7]},
    {"target_modules": "((((a+)+)+)+)+$"}, {"target_modules": "(("}, {"target_modules": "all-linear"},
    {"target_modules": ["q_proj"] * 100_000},
    {"target_modules": "x" * 1_000_000}, {"exclude_modules": "((a+)+)+$"}, {"layers_pattern": "((a+)+)+$",
    "layers_to_transform": [0]},
    {"layers_to_transform": [HUGE]}, {"layers_to_transform": "x"}, {"rank_pattern": {"((a+)+)+$": 4}},
    {"rank_pattern": {"q_proj": HUGE}},
    {"rank_pattern": 7}, {"alpha_pattern": []}, {"bias": "nothing"}, {"bias": 7}, {"bias": "all"},
    {"fan_in_fan_out": "x"},
    {"modules_to_save": ["lm_head"]}, {"modules_to_save": 7}, {"modules_to_save": ["\x1b[2J"]},
    {"init_lora_weights": "pissa"},
    {"init_lora_weights": "loftq"}, {"init_lora_weights": "corda"}, {"init_lora_weights": "eva"},
    {"init_lora_weights": "nothing"},
    {"init_lora_weights": 7}, {"init_lora_weights": "lora_ga"}, {"corda_config": {"cache_file": "/etc/passwd"},
    "init_lora_weights": "corda"},
    {"loftq_config": {"loftq_bits": 99}, "init_lora_weights": "loftq"}, {"eva_config": 7}, {"use_dora": True},
    {"use_rslora": "x"},
    {"use_qalora": True}, {"lora_bias": True}, {"trainable_token_indices": [HUGE]}, {"trainable_token_indices": "x"},
    {"layer_replication": [[0, HUGE]]},
    {"layer_replication": 7}, {"layer_replication": [[0, 2]] * 10_000}, {"megatron_core": "os"},
    {"megatron_core": "os", "megatron_config": {"a": 1}},
    {"auto_mapping": {"base_model_class": "X", "parent_library": "os"}}, {"auto_mapping": 7}, {"task_type": "nothing"},
    {"task_type": 7},
    {"task_type": "SEQ_CLS"}, {"task_type": "SEQ_2_SEQ_LM"}, {"task_type": "FEATURE_EXTRACTION"},
    {"peft_type": "PREFIX_TUNING"}, {"peft_type": "LOHA"}, {"peft_type": "lora"},
    {"peft_type": ["LORA"]}, {"base_model_name_or_path": "/etc/passwd"}, {"base_model_name_or_path": 7},
    {"base_model_name_or_path": "../base"},
    {"revision": "x"}, {"revision": 7}, {"inference_mode": "x"}, {"runtime_config": 7},
    {"runtime_config": {"ephemeral_gpu_offload": True}},
    {"target_parameters": ["q_proj.weight"]}, {"target_parameters": 7}, {"alora_invocation_tokens": [1]},
    {"arrow_config": {"top_k": 3}}, {"arrow_config": 7},
    {"ensure_weight_tying": True}, {"peft_version": "99.0"}, {"peft_version": 7}, {"\x1b[2J": 7}, {"__class__": 7},
    {"unknown": [[]]}, {"lora_dropout": "x"}, {"lora_dropout": 7},
):  # fmt: skip
    words = ", ".join(f"{name!a} = {str(value)[:40]!a}" for name, value in values.items())
    row(f"adapter: {words}", adapter, setting(**values))
for words, content in (
    ("a list", b"[]"),
    ("deep", b"[" * 100_000),
    ("no UTF-8", b"\xff"),
    ("empty", b""),
    ("a number", b"7"),
    ("a BOM", b"\xef\xbb\xbf{}"),
):
    row(f"adapter: its configuration is {words}", adapter, lambda value, content=content: content)


def matrices(dtype: str, size: int, byte: bytes) -> bytes:
    """Tensors of the names and sizes that the adapter has, of this type and of these bytes."""
    names = [f"base_model.model.model.layers.{k}.self_attn.q_proj.lora_{c}.weight" for k in (0, 1) for c in "AB"]
    header = {
        name: {"dtype": dtype, "shape": [2, 32] if "lora_A" in name else [32, 2],
               "data_offsets": [64 * size * n, 64 * size * (n + 1)]}
        for n, name in enumerate(names)
    }  # fmt: skip
    return safetensors(header, byte * (256 * size))


def one_matrix(name: str, shape: list[int], size: int) -> bytes:
    return safetensors({name: {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}}, bytes(size))


FIRST = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
for words, content in (
    ("empty", b""),
    ("text", b"hello"),
    ("a pickle", REDUCE),
    ("a header without end", safetensors(b"{}", length=2**62)),
    ("no tensor", safetensors(b"{}")),
    ("other tensors", one_matrix("a", [1], 4)),
    ("names that move the cursor", one_matrix("\x1b[2J.lora_A", [1], 4)),
    ("a rank of 2 to the 40", one_matrix(FIRST, [2**40, 0], 0)),
    ("no axis", one_matrix(FIRST, [], 4)),
    ("whole numbers", matrices("I64", 8, b"\0")),
    ("numbers that are none", matrices("F32", 4, b"\xff")),
):
    row(f"adapter: its weights are {words}", adapter, lambda value: None, content)


def special_adapter(folder: Path, name: str, kind: str) -> Path:
    path = adapter(folder, lambda value: None)
    (path / name).unlink()
    if kind == "a pipe":
        os.mkfifo(path / name)
    else:
        (path / name).symlink_to("/dev/zero" if kind == "a device" else path / name)
    return path


for name in ("adapter_config.json", "adapter_model.safetensors"):
    for kind in ("a pipe", "a device", "a link to itself"):
        row(f"adapter: {name} is {kind}", special_adapter, name, kind)

# ---- files by which a runtime ends ----------------------------------------------------------------------------


def of_integers(operator: str, computed: bool = False, **attributes: Any) -> Callable:
    """Integers divided by zero: the processor's own fault, where nobody looks before."""

    def make(folder: Path) -> Any:
        zero = tensor("z", [1], data_type=TensorProto.INT64, raw_data=bytes(8))
        nodes = [
            helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT64),
            helper.make_node("Sub", ["i", "i"], ["none"]),
            helper.make_node(operator, ["i", "none" if computed else "z"], ["q"], **attributes),
            helper.make_node("Cast", ["q"], ["y"], to=TensorProto.FLOAT),
        ]
        return model(nodes, weights=[zero])

    return make


for words, computed in (("zero", False), ("a zero that it computes", True)):
    onnx_row(f"integers divided by {words}", of_integers("Div", computed))
    onnx_row(f"integers divided by {words}, the rest", of_integers("Mod", computed))
    onnx_row(f"integers divided by {words}, the rest as in C", of_integers("Mod", computed, fmod=1))


def least_by_minus_one(folder: Path) -> Any:
    least = tensor("l", [1], data_type=TensorProto.INT64, raw_data=struct.pack("<q", -(2**63)))
    minus = tensor("m", [1], data_type=TensorProto.INT64, raw_data=struct.pack("<q", -1))
    nodes = [
        helper.make_node("Div", ["l", "m"], ["q"]),
        helper.make_node("Cast", ["q"], ["f"], to=1),
        helper.make_node("Add", ["x", "f"], ["y"]),
    ]
    return model(nodes, weights=[least, minus])


onnx_row("the least integer divided by -1", least_by_minus_one)


def einsum_of_nothing(folder: Path) -> Any:
    nothing = tensor("e", [0, 2], data_type=1)
    nodes = [
        helper.make_node("Einsum", ["x", "e"], ["p"], equation="ij,kj->ik"),
        helper.make_node("ReduceSum", ["p"], ["s"], keepdims=0),
        helper.make_node("Add", ["x", "s"], ["y"]),
    ]
    return model(nodes, weights=[nothing])


onnx_row("an Einsum of nothing", einsum_of_nothing)


def divided_folder(folder: Path) -> Path:
    """A folder to generate from whose model divides by zero."""
    import onnx

    copy = Path(shutil.copytree(exported(), folder / "out"))
    found = onnx.load(copy / "model.onnx", load_external_data=False)
    name = found.graph.input[0].name
    found.graph.initializer.append(tensor("zero", [1], data_type=TensorProto.INT64, raw_data=bytes(8)))
    for node in found.graph.node:
        for k, each in enumerate(node.input):
            if each == name:
                node.input[k] = "divided"
    found.graph.node.insert(0, helper.make_node("Div", [name, "zero"], ["divided"]))
    (copy / "model.onnx").write_bytes(found.SerializeToString())
    return copy


row("folder: a model that divides tokens by zero", divided_folder)


# ---- templates that are rendered while inputs are made -----------------------------------------------------------

for words, template in (
    ("loops in loops", "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"),
    ("a text that doubles",
     "{% set n = namespace(s='a') %}{% for a in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}"),
    ("a long text in every step",
     "{% set s = 'a' * 50000000 %}{% for a in range(99999) %}{% set y = s.count('b') %}{% endfor %}"),
    ("an attribute of Python", "{{ messages.__class__.__mro__ }}"), ("no Jinja", "{% for"), ("nothing", ""),
    ("a wrong type", "{{ 'a' + 1 }}"), ("escapes", "\x1b[2J{{ messages[0]['content'] }}"),
    ("many tokens of images", "{{ '<image>' * 100000 }}"), ("no token of an image", "hello"),
):  # fmt: skip
    row(f"checkpoint: llava: a chat template of {words}", changed, "llava", "chat_template.jinja",
        lambda value, template=template: template.encode())  # fmt: skip

# ---- pipes among the files of a folder ---------------------------------------------------------------------------


def with_pipe(folder: Path, name: str) -> Path:
    copy = Path(shutil.copytree(exported(), folder / "out"))
    (copy / name).unlink(missing_ok=True)
    os.mkfifo(copy / name)
    return copy


for name in ("fairlead.json", "generation.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
             "config.json", "model.onnx.fairlead.json", "model.onnx", "report.html", "other.onnx"):  # fmt: skip
    row(f"folder: {name} is a pipe", with_pipe, name)


def list_at(folder: Path, kind: str) -> Path:
    path = folder / "list.txt"
    if kind == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    return path


for kind in ("a pipe", "a device"):
    row(f"list: {kind}", list_at, kind)
