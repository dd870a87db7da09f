"""Tiny checkpoints for the command line: made with save_pretrained in the test, tokenizers included."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

WORDS = (
    "the a of is rain bread ship ships keeper counted seven lighthouse because yeast makes gas rises two rivers meet"
)
TEMPLATE = "{% for m in messages %}<{{ m['role'] }}> {{ m['content'] }} </s> {% endfor %}<assistant> "


def tokenizer(folder: Path, template: str | None = None) -> Any:
    """Words and letters, so that every text has tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<s>", "</s>", "<unk>", "<mask>", "<image>"]
    letters = [chr(c) for c in range(33, 127)]
    words = list(dict.fromkeys([*special, *WORDS.split(), *letters]))
    inner = Tokenizer(
        models.WordPiece({w: k for k, w in enumerate(words)}, unk_token="<unk>", max_input_chars_per_word=50)
    )
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.decoder = decoders.WordPiece()
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
    )
    made.add_special_tokens({"additional_special_tokens": ["<image>"]})
    made.chat_template = template
    made.save_pretrained(folder)
    return made


def byte_tokenizer(folder: Path) -> Any:
    """Bytes and a few pairs of them, as GPT-2 has it; for clients that know few kinds of tokenizers."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pairs = [("t", "h"), ("i", "n"), ("e", "r"), ("a", "n"), ("Ġ", "th"), ("Ġth", "e")]
    words = ["<pad>", "<s>", "</s>", "<unk>", *sorted(pre_tokenizers.ByteLevel.alphabet()), *(a + b for a, b in pairs)]
    inner = Tokenizer(models.BPE({word: k for k, word in enumerate(words)}, pairs))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    made.save_pretrained(folder)
    return made


def saved(model: Any, folder: Path, **options: Any) -> Path:
    """With weights that are told apart: those of a fresh model are so small that every answer is the same."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.2)
    model.eval().save_pretrained(folder, **options)
    return folder


def llama(folder: Path, template: str | None = None, **options: Any) -> Path:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=128, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    saved(LlamaForCausalLM(config), folder, **options)
    tokenizer(folder, template)
    return folder


def decoder(folder: Path, name: str, **more: Any) -> Path:
    """Any decoder with the words of Llama's configuration, and a tokenizer of bytes."""
    import transformers

    settings = {
        "vocab_size": 300, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256, "bos_token_id": 1,
        "eos_token_id": 2, "pad_token_id": 0, "tie_word_embeddings": False, **more,
    }  # fmt: skip
    model = getattr(transformers, name)
    saved(model(model.config_class(**settings)), folder)
    byte_tokenizer(folder)
    return folder


def bert_config(**more: Any) -> Any:
    from transformers import BertConfig

    return BertConfig(
        vocab_size=128, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=64, **more,
    )  # fmt: skip


def bert(folder: Path, head: str = "BertForSequenceClassification", **more: Any) -> Path:
    import transformers

    saved(getattr(transformers, head)(bert_config(**more)), folder)
    tokenizer(folder)
    return folder


def vit(folder: Path) -> Path:
    from transformers import ViTConfig, ViTForImageClassification
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    config = ViTConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8,
        num_labels=5,
    )  # fmt: skip
    saved(ViTForImageClassification(config), folder)
    ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


def wav2vec2(folder: Path) -> Path:
    from transformers import Wav2Vec2Config, Wav2Vec2FeatureExtractor, Wav2Vec2ForCTC

    config = Wav2Vec2Config(
        vocab_size=32, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        conv_dim=(16, 16), conv_kernel=(10, 8), conv_stride=(5, 4), num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2, feat_extract_norm="layer", do_stable_layer_norm=True,
    )  # fmt: skip
    saved(Wav2Vec2ForCTC(config), folder)
    Wav2Vec2FeatureExtractor(return_attention_mask=True).save_pretrained(folder)
    return folder


def t5(folder: Path) -> Path:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=128, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0,
        pad_token_id=0, eos_token_id=2,
    )  # fmt: skip
    saved(T5ForConditionalGeneration(config), folder)
    tokenizer(folder)
    return folder


def bart(folder: Path) -> Path:
    from transformers import BartConfig, BartForConditionalGeneration

    config = BartConfig(
        vocab_size=128, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64,
        decoder_start_token_id=2, bos_token_id=1, eos_token_id=2, pad_token_id=0, forced_eos_token_id=2,
    )  # fmt: skip
    saved(BartForConditionalGeneration(config), folder)
    tokenizer(folder)
    return folder


def whisper(folder: Path) -> Path:
    from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=128, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, num_mel_bins=16, max_source_positions=50,
        max_target_positions=64, decoder_start_token_id=1, bos_token_id=1, eos_token_id=2, pad_token_id=0,
        suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    saved(WhisperForConditionalGeneration(config), folder)
    # One second: the encoder of this one has 50 places, two frames each.
    WhisperFeatureExtractor(feature_size=16, chunk_length=1).save_pretrained(folder)
    tokenizer(folder)
    return folder


def clip(folder: Path) -> Path:
    from transformers import CLIPConfig, CLIPModel

    small = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = CLIPConfig(
        text_config=small | {"vocab_size": 128, "max_position_embeddings": 32, "eos_token_id": 2, "bos_token_id": 1},
        vision_config=small | {"image_size": 32, "patch_size": 8}, projection_dim=16,
    )  # fmt: skip
    saved(CLIPModel(config), folder)
    tokenizer(folder)
    return folder


def llava(folder: Path) -> Path:
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    small = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    words = tokenizer(folder)
    text = LlamaConfig(**small, num_key_value_heads=2, vocab_size=128, max_position_embeddings=256, eos_token_id=2)
    config = LlavaConfig(
        text_config=text, vision_config=CLIPVisionConfig(**small, image_size=32, patch_size=8, projection_dim=16),
        image_token_id=words.convert_tokens_to_ids("<image>"), vision_feature_layer=-1, pad_token_id=0, eos_token_id=2,
    )  # fmt: skip
    saved(LlavaForConditionalGeneration(config), folder)
    size = {"height": 32, "width": 32}
    pictures = CLIPImageProcessorPil(size=size, crop_size=size, do_center_crop=False)
    LlavaProcessor(
        image_processor=pictures, tokenizer=words, patch_size=8, vision_feature_select_strategy="default",
        image_token="<image>", num_additional_image_tokens=1,
    ).save_pretrained(folder)  # fmt: skip
    return folder


# Type of GGUF -> bytes of a group, columns of a group, where it has halves: scales, then minima.
GGUF_TYPES = {
    "Q4_0": (18, 32, [(0, 0.01)]), "Q4_1": (20, 32, [(0, 0.01), (2, -0.08)]), "Q5_0": (22, 32, [(0, 0.005)]),
    "Q5_1": (24, 32, [(0, 0.005), (2, -0.08)]), "Q8_0": (34, 32, [(0, 0.0008)]),
    "Q2_K": (84, 256, [(80, 0.004), (82, 0.005)]), "Q3_K": (110, 256, [(108, 0.001)]),
    "Q4_K": (144, 256, [(0, 0.0003), (2, 0.002)]), "Q5_K": (176, 256, [(0, 0.0002), (2, 0.002)]),
    "Q6_K": (210, 256, [(208, 0.00004)]), "IQ4_NL": (18, 32, [(0, 0.001)]),
}  # fmt: skip


def gguf_blocks(kind: str, rows: int, columns: int, draw: Any) -> Any:
    """Random integers, and scales such that weights are of a usual size: [rows, bytes]."""
    import numpy as np

    size, group, halves = GGUF_TYPES[kind]
    made = draw.integers(0, 256, (rows * columns // group, size), np.uint8)
    for at, scale in halves:
        values = (scale * draw.uniform(0.5, 1.5, len(made))).astype(np.float16)
        made[:, at : at + 2] = values.view(np.uint8).reshape(-1, 2)
    return made.reshape(rows, -1)


def gguf(path: Path, kinds: tuple[str, ...] = (), tied: bool = False) -> Path:
    """A tiny Llama with a tokenizer of bytes: float32, or its matrices in these types by turns."""
    import gguf as library
    import numpy as np

    width, inner, layers, heads, key_heads, vocabulary = 32, 64, 2, 4, 2, 300
    if kinds:
        width, inner = 256, 256
    turns = itertools.cycle(kinds)
    writer = library.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(256)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(key_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // heads)
    writer.add_vocab_size(vocabulary)
    writer.add_tokenizer_model("gpt2")
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    letters = list(bytes_to_unicode().values())
    pairs = [("t", "h"), ("i", "n"), ("e", "r"), ("a", "n")]
    tokens = ["<unk>", "<s>", "</s>", *letters, *(a + b for a, b in pairs)]
    tokens += [f"<extra{k}>" for k in range(vocabulary - len(tokens))]
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, 3] + [1] * (vocabulary - 3))
    writer.add_token_merges([f"{a} {b}" for a, b in pairs])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    draw = np.random.default_rng(0)

    def tensor(name: str, *shape: int) -> None:
        if kinds:
            kind = next(turns)
            writer.add_tensor(name, gguf_blocks(kind, *shape, draw), raw_dtype=library.GGMLQuantizationType[kind])
            return
        writer.add_tensor(name, (draw.standard_normal(shape) * 0.2).astype(np.float32))

    tensor("token_embd.weight", vocabulary, width)
    if not tied:
        tensor("output.weight", vocabulary, width)
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    for k in range(layers):
        writer.add_tensor(f"blk.{k}.attn_norm.weight", np.ones(width, np.float32))
        writer.add_tensor(f"blk.{k}.ffn_norm.weight", np.ones(width, np.float32))
        tensor(f"blk.{k}.attn_q.weight", width, width)
        tensor(f"blk.{k}.attn_k.weight", width * key_heads // heads, width)
        tensor(f"blk.{k}.attn_v.weight", width * key_heads // heads, width)
        tensor(f"blk.{k}.attn_output.weight", width, width)
        tensor(f"blk.{k}.ffn_gate.weight", inner, width)
        tensor(f"blk.{k}.ffn_up.weight", inner, width)
        tensor(f"blk.{k}.ffn_down.weight", width, inner)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def memory_in_place(folder) -> int:
    """Megabytes above interpreter, torch and the class of a Llama that an export in place takes."""
    script = (
        "import fairlead, re, sys, torch, transformers, fairlead.checkpoint.export\n"
        "from transformers import LlamaForCausalLM\n"
        "peak = lambda: int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1]) >> 10\n"
        "before = peak()\n"
        "fairlead.export_checkpoint(sys.argv[1], in_place=True, verify=False)\n"
        "print(peak() - before)\n"
    )
    run = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, check=True)
    return int(run.stdout.split()[-1])
