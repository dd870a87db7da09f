"""Files for ONNX Runtime alone: fused operators, what they compute at sizes of the tests' own, what is refused."""

import numpy as np
import onnxruntime
import pytest
import torch
import transformers
from checkpoints import llama as llama_checkpoint
from checkpoints import saved
from fairlead.targets.onnx import OnnxExport
from transformers import LlamaConfig, LlamaForCausalLM

import fairlead


def ids(rows, length):
    return torch.randint(1, 99, (rows, length))


def mask(rows, length):
    """The last row has padding on the left, as decoders have it, the first on the right, as encoders."""
    made = torch.ones(rows, length, dtype=torch.int64)
    made[-1, :2] = 0
    if rows > 1:
        made[0, -1] = 0
    return made


def bert():
    config = transformers.BertConfig(
        vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37
    )
    return transformers.BertModel(config), lambda b, s: {"input_ids": ids(b, s), "attention_mask": mask(b, s)}


def vit():
    config = transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, image_size=32, patch_size=8
    )
    return transformers.ViTModel(config), lambda b, s: {"pixel_values": torch.randn(b, 3, 32, 32)}


def gpt2():
    config = transformers.GPT2Config(
        vocab_size=99, n_embd=32, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2, use_cache=False
    )
    return transformers.GPT2LMHeadModel(config), lambda b, s: {"input_ids": ids(b, s), "attention_mask": mask(b, s)}


def t5():
    config = transformers.T5Config(
        vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4, use_cache=False
    )
    return transformers.T5Model(config), lambda b, s: {"input_ids": ids(b, s), "decoder_input_ids": ids(b, s + 2)}


def whisper():
    config = transformers.WhisperConfig(
        vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37, num_mel_bins=16, max_source_positions=30,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, begin_suppress_tokens=None,
        use_cache=False,
    )  # fmt: skip
    return transformers.WhisperModel(config), lambda b, s: {
        "input_features": torch.randn(2, 16, 60), "decoder_input_ids": ids(2, s),
    }  # fmt: skip


def llama():
    config = LlamaConfig(
        vocab_size=99, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, use_cache=False,
    )  # fmt: skip
    return LlamaForCausalLM(config), lambda b, s: {"input_ids": ids(b, s), "attention_mask": mask(b, s)}


def experts(kind, **options):
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4} | options
    config = getattr(transformers, f"{kind}Config")(vocab_size=99, num_key_value_heads=2, use_cache=False, **sizes)
    model = getattr(transformers, f"{kind}ForCausalLM")(config)
    return model, lambda b, s: {"input_ids": ids(b, s), "attention_mask": mask(b, s)}


def mixtral():
    return experts("Mixtral", num_local_experts=6, num_experts_per_tok=2)


def qwen_moe(normalized):
    return experts(
        "Qwen3Moe",
        num_experts=6,
        num_experts_per_tok=3,
        moe_intermediate_size=20,
        norm_topk_prob=normalized,
        head_dim=8,
    )


def glm_moe():
    """Weights of a sigmoid, chosen with a bias, scaled."""
    model, inputs = experts(
        "Glm4Moe", n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=20, first_k_dense_replace=1,
        routed_scaling_factor=1.8, head_dim=8,
    )  # fmt: skip
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            buffer.normal_(0, 0.1)
    return model, inputs


# Model, and how often each operator has to be in its file.
MODELS = {
    "bert": (bert, {"MultiHeadAttention": 2, "Sum": 4, "BiasGelu": 2}),
    "vit": (vit, {"MultiHeadAttention": 2, "Sum": 4, "BiasGelu": 2}),
    "gpt2": (gpt2, {"MultiHeadAttention": 2, "Sum": 4, "FastGelu": 2}),
    "t5": (t5, {"MultiHeadAttention": 6, "SkipSimplifiedLayerNormalization": 10}),
    "whisper": (whisper, {"MultiHeadAttention": 6, "Sum": 11, "BiasGelu": 4}),
    "llama": (
        llama,
        {"GroupQueryAttention": 2, "SkipSimplifiedLayerNormalization": 4, "QuickGelu": 2, "RotaryEmbedding": 0},
    ),
    "mixtral": (mixtral, {"GroupQueryAttention": 2, "MoE": 2, "Loop": 0}),
    "qwen_moe": (lambda: qwen_moe(True), {"GroupQueryAttention": 2, "MoE": 2, "Loop": 0}),
    "qwen_moe_unnormalized": (lambda: qwen_moe(False), {"GroupQueryAttention": 2, "MoE": 2, "Loop": 0}),
    "glm_moe": (glm_moe, {"GroupQueryAttention": 2, "MoE": 1, "Loop": 0}),
}


def made(build):
    torch.manual_seed(0)
    model, inputs = build()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.15)
    return model.eval(), inputs


def leaves(output):
    return [v for v in output.to_tuple() if isinstance(v, torch.Tensor)]


@pytest.mark.parametrize("name", MODELS)
def test_fused_files_compute_what_the_model_computes(name, tmp_path):
    build, expected = MODELS[name]
    model, inputs = made(build)
    result = fairlead.export(model, inputs(2, 7), tmp_path / "model.onnx", target=fairlead.OnnxRuntime())
    for kind, count in expected.items():
        assert result.operators.get(kind, 0) == count, (kind, result.operators, str(result.contract))
    counted = {row.kind: row.count for row in result.contract.fused}
    assert all(counted[kind] == count for kind, count in expected.items() if kind in result.operators)
    assert f"MultiHeadAttention: {counted.get('MultiHeadAttention')} times" in str(result.contract) or (
        "GroupQueryAttention" in expected
    )
    session = onnxruntime.InferenceSession(result.path, providers=["CPUExecutionProvider"])
    names = {each.name for each in session.get_inputs()}
    for rows, length in [(1, 9), (4, 5), (3, 2)]:
        call = inputs(rows, length)
        with torch.no_grad():
            eager = leaves(model(**call))
        got = session.run(None, {k: v.numpy() for k, v in call.items() if k in names})
        for a, b in zip(eager, got, strict=False):
            assert np.abs(a.numpy() - b).max() <= 1e-4 * max(1.0, float(a.abs().max())), (name, rows, length)


def test_fused_files_are_smaller_than_portable_ones(tmp_path):
    model, inputs = made(llama)
    plain = fairlead.export(model, inputs(2, 7), tmp_path / "plain.onnx", verify=False)
    fused = fairlead.export(
        model, inputs(2, 7), tmp_path / "fused.onnx", verify=False, target=fairlead.OnnxRuntime("cpu", "1.31")
    )
    assert fused.nodes < plain.nodes / 2
    assert plain.contract.fused is None
    assert not {"GroupQueryAttention", "QuickGelu"} & set(plain.operators)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("decoder")
    config = LlamaConfig(
        vocab_size=128, hidden_size=64, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    llama_checkpoint(folder / "model")  # for its tokenizer
    saved(LlamaForCausalLM(config), folder / "model")
    return folder / "model", LlamaForCausalLM.from_pretrained(folder / "model").eval()


@pytest.fixture(scope="module")
def decoder(checkpoint):
    source, model = checkpoint
    return model, fairlead.export_checkpoint(source, source.parent / "out", target=fairlead.OnnxRuntime())


def test_a_decoder_is_one_operator_for_each_attention(decoder):
    _, result = decoder
    part = result.parts["model.onnx"]
    assert part.operators["GroupQueryAttention"] == 2
    assert part.operators["MatMul"] == 2 * 5 + 1  # queries, keys and values are one product; and the head
    assert not {"Softmax", "Neg", "Transpose", "RotaryEmbedding"} & set(part.operators)
    text = str(part.contract)
    assert "for batch = 1, or sequence = 1, or past = 0; the file stops elsewhere" in text
    assert "for all rows begin at the same position where past = 0; the file stops elsewhere" in text
    assert {row.kind for row in part.discrepancies} >= {"example", "unseen"}


def generated(model, folder, tokens, mask):
    generator = fairlead.Generator.from_folder(folder)
    with torch.no_grad():
        expected = model.generate(
            input_ids=tokens, attention_mask=mask, max_new_tokens=64, do_sample=False, pad_token_id=0
        ).numpy()
    return expected, generator.generate(input_ids=tokens.numpy(), attention_mask=mask.numpy(), max_new_tokens=64)


def test_a_fused_decoder_generates_what_the_model_does(decoder):
    model, result = decoder
    tokens = torch.randint(3, 128, (3, 6))
    mask = torch.ones_like(tokens)
    np.testing.assert_array_equal(*generated(model, result.folder, tokens, mask))
    mask[:, :2] = 0  # padding that all rows have
    np.testing.assert_array_equal(*generated(model, result.folder, tokens[:1], mask[:1]))


def test_rows_that_begin_at_different_positions_stop_the_file_or_are_asked_for(decoder, checkpoint):
    model, result = decoder
    tokens = torch.randint(3, 128, (3, 6))
    mask = torch.ones_like(tokens)
    mask[1, :3] = 0
    with pytest.raises(Exception, match="all rows begin at the same position where past = 0"):
        generated(model, result.folder, tokens, mask)
    folder = checkpoint[0].parent / "padded"
    padded = fairlead.export_checkpoint(checkpoint[0], folder, target=fairlead.OnnxRuntime(padding=True))
    assert padded.parts["model.onnx"].operators["RotaryEmbedding"] == 4
    np.testing.assert_array_equal(*generated(model, folder, tokens, mask))


def test_sizes_that_a_fused_operator_does_not_take_stop_the_file(decoder):
    _, result = decoder
    session = onnxruntime.InferenceSession(f"{result.folder}/model.onnx", providers=["CPUExecutionProvider"])

    def call(rows, new, past):
        cache = np.zeros((rows, 2, past, 16), np.float32)
        given = {
            "input_ids": np.ones((rows, new), np.int64), "position_ids": np.tile(np.arange(new) + past, (rows, 1)),
            "attention_mask": np.ones((rows, new + past), np.int64),
        }  # fmt: skip
        given |= {f"past_key_values.{k}.{what}": cache for k in range(2) for what in ("key", "value")}
        return session.run(None, given)

    for sizes in [(1, 3, 4), (2, 1, 4), (2, 3, 0)]:
        assert call(*sizes)[0].shape == (sizes[0], sizes[1], 128)
    with pytest.raises(Exception, match="batch_size must be 1 when sequence_length > 1 and past context is given"):
        call(2, 3, 4)


def test_a_fusion_that_an_example_contradicts_is_left_out(tmp_path):
    """The user's own call has two rows and three tokens after a cache: the file takes it."""
    model = made(llama)[0]
    cache = transformers.DynamicCache(config=model.config)
    call = {
        "input_ids": ids(2, 3), "attention_mask": torch.ones(2, 8, dtype=torch.int64),
        "position_ids": torch.arange(5, 8).expand(2, 3), "past_key_values": cache,
    }  # fmt: skip
    for layer in range(2):
        cache.update(torch.randn(2, 2, 5, 16), torch.randn(2, 2, 5, 16), layer)
    result = fairlead.export(model, call, tmp_path / "model.onnx", target=fairlead.OnnxRuntime())
    assert "GroupQueryAttention" not in result.operators
    assert "GroupQueryAttention refused: it is for batch = 1, or sequence = 1, or past = 0, and an example has" in str(
        result.contract
    )
    assert result.operators["SkipSimplifiedLayerNormalization"] == 4


def test_the_fusion_to_blame_is_found_and_left_out(tmp_path, monkeypatch):
    """A kernel that computes something else: here the session of every file that has it is made to."""

    opened = []

    def open_wrong(self, path):
        kinds = self.suspects()
        opened.append(kinds)
        session = real(self, path)
        if "QuickGelu" not in kinds:
            return session
        run = session.run
        session.run = lambda feeds: broken(run(feeds))
        return session

    def broken(outputs):
        raise RuntimeError("a kernel that is wrong")

    real = OnnxExport.open
    monkeypatch.setattr(OnnxExport, "open", open_wrong)
    model, inputs = made(llama)
    result = fairlead.export(model, inputs(2, 7), tmp_path / "model.onnx", target=fairlead.OnnxRuntime())
    rows = {row.kind: row for row in result.contract.fused}
    assert rows["QuickGelu"].count == 0
    why = next(iter(rows["QuickGelu"].refused))
    assert why.startswith("with it the file differs from eager at ")
    assert str(tmp_path) not in why
    assert rows["GroupQueryAttention"].count == 2
    assert "QuickGelu" not in result.operators
    assert len(opened) > 3


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: fairlead.OnnxRuntime("cuda"), "Expected the provider \"cpu\", got 'cuda'"),
        (lambda: fairlead.OnnxRuntime(version="1.16"), "Expected ONNX Runtime 1.22 or newer for fused operators"),
        (lambda: fairlead.OnnxRuntime(version="two"), "Expected a version such as \"1.24\", or None, got 'two'"),
        (lambda: fairlead.OnnxRuntime(version=1.30), r'Expected a version such as "1.24", or None, got 1.3'),
        (lambda: fairlead.OnnxRuntime(padding="left"), "Expected padding as True or False, got 'left'"),
        (lambda: exported(target="onnxruntime"), r"Expected target as fairlead.OnnxRuntime\(...\) or None"),
        (lambda: exported(target=fairlead.OnnxRuntime(), optimize=False), "got optimize=False as well"),
        (lambda: exported("m.pt2", target=fairlead.OnnxRuntime()), "Expected a path that ends in .onnx"),
    ],
)
def test_what_cannot_be_fused_for_is_said(wrong, words):
    with pytest.raises(fairlead.InvalidInput, match=words):
        wrong()


def exported(path="m.onnx", **options):
    return fairlead.export(torch.nn.Linear(2, 2).eval(), (torch.ones(1, 2),), path, **options)


@pytest.mark.not_compared("4 bits of random weights choose other experts")
def test_few_large_experts_are_a_product_each(tmp_path):
    """MoE takes longer than those: it packs no weights."""
    model, inputs = made(lambda: experts("Mixtral", num_local_experts=3, hidden_size=256, intermediate_size=256))
    result = fairlead.export(model, inputs(2, 7), tmp_path / "m.onnx", target=fairlead.OnnxRuntime())
    assert "MoE refused 2 times: it takes longer than a product for each of few experts" in str(result.contract)
    assert not {"MoE", "Loop"} & set(result.operators)
    assert result.operators["MatMul"] >= 2 * 2 * 3
    quantized = fairlead.export(
        model, inputs(2, 7), tmp_path / "q.onnx", target=fairlead.OnnxRuntime(), quantize=fairlead.Int4()
    )
    assert quantized.operators["MatMulNBits"] >= 2 * 2 * 3


@pytest.mark.parametrize(("count", "loops"), [(16, 0), (17, 4)])
def test_many_experts_are_a_loop_in_portable_files(count, loops, tmp_path):
    model, inputs = made(lambda: experts("Mixtral", num_local_experts=count))
    result = fairlead.export(model, inputs(2, 7), tmp_path / "m.onnx")
    assert result.operators.get("Loop", 0) == loops


def test_experts_of_another_form_are_said(tmp_path):
    """With biases, and a gate that is clamped."""
    model, inputs = made(lambda: experts("GptOss", num_local_experts=4, num_experts_per_tok=2, head_dim=8))
    result = fairlead.export(model, inputs(2, 7), tmp_path / "m.onnx", target=fairlead.OnnxRuntime())
    assert "MoE" not in result.operators
    assert "MoE refused: its rows and experts are put together in another way" in str(result.contract)


def test_a_token_that_is_alone_and_masked_stops_the_file(tmp_path):
    """GroupQueryAttention gives NaN for it, and zeros for others that see nothing."""
    model, inputs = made(llama)
    result = fairlead.export(model, inputs(2, 7), tmp_path / "m.onnx", target=fairlead.OnnxRuntime())
    assert result.operators["GroupQueryAttention"] == 2
    session = onnxruntime.InferenceSession(result.path)

    def call(rows, length, value):
        given = {"input_ids": ids(rows, length), "attention_mask": torch.full((rows, length), value)}
        got = session.run(None, {name: each.numpy() for name, each in given.items()})[0]
        torch.testing.assert_close(torch.from_numpy(got), model(**given).logits, atol=1e-4, rtol=1e-4)

    call(2, 1, 1)
    call(2, 2, 0)
    with pytest.raises(Exception, match="a token that is alone is not masked"):
        call(2, 1, 0)


def test_zero_fused_is_said(tmp_path):
    result = fairlead.export(
        torch.nn.Linear(4, 2).eval(), (torch.ones(3, 4),), tmp_path / "m.onnx", target=fairlead.OnnxRuntime()
    )
    assert "nothing: the file has standard operators alone" in str(result.contract)
