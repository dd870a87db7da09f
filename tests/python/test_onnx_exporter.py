"""OnnxExporter: code in the style of the documentation of transformers.exporters runs with only the import changed, and
leaves inputs and model as they were.
"""

import warnings

import onnx
import onnxruntime
import pytest
import torch
from exporter_models import bert, ids, llama, llama_step, transformers, vit
from fairlead.exporters import DynamoConfig, OnnxConfig, OnnxExporter, OnnxProgram
from fairlead.exporters.prepare import unregister_export_input_preparer
from fairlead.exporters.utils import (
    cast_leaf_tensors,
    duplicate_leaf_tensors,
    get_leaf_tensors,
    module_device,
    module_dtype,
    prepare_for_export,
    register_export_input_preparer,
)
from untouched import files, model_state, names

import fairlead

# float32 models of two layers of width 32: sums of at most 64 products, a few rounding steps of 6e-8 each.
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def same(outputs, expected) -> None:
    for got, want in zip(outputs, get_leaf_tensors(expected).values(), strict=True):
        torch.testing.assert_close(got, want, **CLOSE)


def refused(call, *args, **kwargs) -> str:
    with pytest.raises((fairlead.FairleadError, ValueError, TypeError)) as caught:
        call(*args, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---- as the documentation writes it -----------------------------------------------------------------


def test_the_quick_start():
    model, inputs = bert()

    exporter = OnnxExporter()
    config = OnnxConfig(dynamic=True)
    onnx_program = exporter.export(model, inputs, config=config)

    outputs = onnx_program(**inputs)  # run in-memory
    with torch.no_grad():
        same(outputs, model(**inputs))
        other = {"input_ids": ids(3, 4), "attention_mask": torch.ones(3, 4, dtype=torch.long)}
        same(onnx_program(**other), model(**other))
    assert onnx_program.contract.symbols[0]["name"] == "batch"
    assert all(row["ok"] for row in onnx_program.discrepancies)


def test_dynamic_shapes_as_torch_export_takes_them(tmp_path):
    model, inputs = bert()
    batch = torch.export.Dim("batch", min=1, max=32)
    seq = torch.export.Dim("seq", min=1, max=2048)
    config = OnnxConfig(
        dynamic_shapes={"input_ids": {0: batch, 1: seq}, "attention_mask": {0: batch, 1: seq}},
        prefer_deferred_runtime_asserts_over_guards=True,
        output_path=tmp_path / "model.onnx",
    )
    program = OnnxExporter().export(model, inputs, config=config)
    assert [row["shape"] for row in program.contract.inputs] == [["batch", "seq"], ["batch", "seq"]]
    only_batch = OnnxConfig(dynamic=True, dynamic_shapes={k: {0: batch} for k in inputs})
    program = OnnxExporter().export(model, inputs, config=only_batch)
    assert [row["shape"] for row in program.contract.inputs] == [["batch", "7"], ["batch", "7"]]


def test_without_dynamic_every_size_is_that_of_the_sample():
    model, inputs = vit()
    program = OnnxExporter().export(model, inputs, config=OnnxConfig())
    assert program.contract.symbols == []
    assert program.contract.inputs[0]["shape"] == ["2", "3", "16", "16"]
    with torch.no_grad():
        same(program(**inputs), model(**inputs))
    program = OnnxExporter().export(model, inputs, config={"dynamic": True, "verify": False})
    assert program.contract.inputs[0]["shape"][0] == "batch"
    assert program.contract.verified == "not verified"


def test_a_step_with_a_cache_changes_nothing_of_the_caller(tmp_path):
    model = llama()
    inputs = llama_step(model) | {"use_cache": True}
    cache = inputs["past_key_values"]
    leaves = get_leaf_tensors(inputs)
    values = {name: tensor.clone() for name, tensor in leaves.items()}
    before, state = dict(inputs), model_state(model)

    program = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True, output_path=tmp_path / "step.onnx"))
    outputs = program(**inputs)

    assert list(inputs) == list(before)
    assert all(inputs[key] is before[key] for key in before)
    after = get_leaf_tensors(inputs)
    assert list(after) == list(leaves)
    assert all(after[name] is leaves[name] and torch.equal(after[name], values[name]) for name in leaves)
    assert cache.get_seq_length() == 5
    assert model_state(model) == state
    assert program.input_names[:3] == ["input_ids", "attention_mask", "past_key_values.0.key"]
    assert program.output_names[:2] == ["logits", "present.0.key"]
    assert outputs["present.0.key"].shape == (2, 1, 8, 16)
    with torch.no_grad():
        same(outputs[:1], {"logits": model(**inputs).logits})
    other = llama_step(model, past=2, new=1, batch=3)
    with torch.no_grad():
        same(program(**other)[:1], {"logits": model(**other).logits})


@pytest.mark.parametrize("names", ["clients", "transformers"])
def test_tensors_of_a_cache_may_have_the_names_of_transformers(names):
    theirs = pytest.importorskip("transformers.exporters.utils")
    model = llama()
    inputs = llama_step(model)
    program = OnnxExporter().export(model, inputs, OnnxConfig(dynamic=True, names=names))
    keys = {"clients": "past_key_values.0.key", "transformers": "input.past_key_values.layers.0.keys"}[names]
    assert program.input_names[:3] == ["input_ids", "attention_mask", keys]
    present = {"clients": "present.0.key", "transformers": "output.past_key_values.layers.0.keys"}[names]
    assert program.output_names[:2] == ["logits", present]
    other = llama_step(model, past=4, new=2, batch=3)
    leaves = theirs.get_leaf_tensors(other)
    assert "past_key_values.layers.1.values" in leaves
    with_prefix = {f"input.{n}" if n.startswith("past") else n: tensor for n, tensor in leaves.items()}
    got = [program(**other), program(**leaves), program(**with_prefix), program(**get_leaf_tensors(other))]
    with torch.no_grad():
        expected = model(**other)
    for outputs in got:
        same(outputs, expected)


@pytest.mark.not_compared("a tensor of the call is no input")
def test_tensors_that_only_transformers_lists_are_no_inputs():
    theirs = pytest.importorskip("transformers.exporters.utils")
    torch.manual_seed(0)
    config = transformers.Gemma2Config(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, intermediate_size=64,
        head_dim=16, vocab_size=100, sliding_window=4,
    )  # fmt: skip
    model = transformers.Gemma2ForCausalLM(config).eval()
    tokens = ids(2, 3)
    with torch.no_grad():
        cache = model(tokens[:, :2], use_cache=True).past_key_values
        # As a call leaves it: the window of each layer is a tensor beside its keys.
        model(tokens[:, 2:], past_key_values=cache)
    inputs = {"input_ids": tokens[:, 2:], "past_key_values": cache}
    program = OnnxExporter().export(model, inputs)
    leaves = theirs.get_leaf_tensors(inputs)
    assert len(leaves) > len(program.input_names)
    with torch.no_grad():
        same(program(**leaves), model(**inputs))


def test_names_of_transformers_go_with_what_can_have_them():
    assert refused(OnnxConfig, names="short") == (
        "[OnnxConfig] Expected names among 'clients', 'transformers', got 'short'."
    )
    text = refused(OnnxConfig, names="transformers", tracer="torch.export")
    assert 'Expected tracer="observe" with names="transformers", got \'torch.export\'' in text
    model = llama()
    sample = {"input_ids": ids(), "attention_mask": torch.ones(2, 7, dtype=torch.long)}
    config = OnnxConfig(dynamic=True, names="transformers")
    text = refused(OnnxExporter().export_for_generation, model, sample, config)
    assert "Expected names=\"clients\", by which a Generator connects the parts, got 'transformers'." in text


def test_a_tokenizers_batch_is_a_sample():
    model, inputs = bert()
    batch = transformers.BatchEncoding(inputs)
    program = OnnxExporter().export(model, batch, config=DynamoConfig(dynamic=True))
    assert program.input_names == list(inputs)
    same(program(*inputs.values()), model(**inputs))


# ---- the fields of the config -----------------------------------------------------------------------


def test_the_file_is_as_the_config_says(tmp_path):
    model, inputs = bert()
    path = tmp_path / "model.onnx"

    def written(**fields):
        for old in tmp_path.iterdir():
            old.unlink()
        OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True, output_path=path, **fields))
        return onnx.load(path, load_external_data=False)

    whole = written(opset_version=18, external_data=False)
    assert list(files(tmp_path)) == ["model.onnx"]
    assert whole.opset_import[0].version == 18
    assert not any(t.external_data for t in whole.graph.initializer)
    beside = written()
    assert names(tmp_path) == ["model.onnx", "model.onnx.*.data"]
    assert any(t.external_data for t in beside.graph.initializer)
    written(external_data="auto")
    assert list(files(tmp_path)) == ["model.onnx"]


def test_optimize_fuses(tmp_path):
    model = llama()
    inputs = {"input_ids": ids()}
    nodes = {}
    for optimize in (True, False):
        program = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True, optimize=optimize))
        nodes[optimize] = program.result.nodes
        same(program(**inputs)[:1], {"logits": model(**inputs).logits})
    assert nodes[True] < nodes[False]


@pytest.mark.parametrize("keep", [False, True])
def test_weights_may_be_given_at_runtime(tmp_path, keep):
    model, inputs = bert()
    path = tmp_path / "model.onnx"
    config = OnnxConfig(dynamic=True, output_path=path, export_params=keep, keep_initializers_as_inputs=keep)
    program = OnnxExporter().export(model, inputs, config=config)
    same(program(**inputs), model(**inputs))  # the program itself has its weights
    proto = onnx.load(path)
    onnx.checker.check_model(proto)
    weights = model.state_dict()
    named = {value.name for value in proto.graph.input} & set(weights)
    assert len(named) > 20
    assert keep == bool(named & {t.name for t in proto.graph.initializer})
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    needed = [value.name for value in session.get_inputs()]
    assert keep == (needed == list(inputs))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.25)
        expected = model(**inputs)
    feeds = {name: value.numpy() for name, value in inputs.items()}
    feeds |= {name: weights[name].numpy() for name in named}  # as the state dict has them, not as the file does
    same([torch.from_numpy(x) for x in session.run(None, feeds)], expected)


def test_a_program_can_be_saved_later_and_looked_at(tmp_path):
    model, inputs = bert()
    program = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True))
    assert isinstance(program, OnnxProgram)
    program.save(tmp_path / "later.onnx", external_data=True)
    assert names(tmp_path) == ["later.onnx", "later.onnx.*.data"]
    onnx.checker.check_model(program.model_proto)
    assert [value.name for value in program.model_proto.graph.input] == program.input_names
    metadata = {p.key: p.value for p in program.model_proto.metadata_props}
    assert "fairlead.contract" in metadata
    assert metadata["fairlead.checked"] == program.contract.verified
    first = program(**inputs)
    program.release()
    assert torch.equal(program(**inputs)[0], first[0])
    text = "[export] Could not write ''"
    assert refused(program.save, "").startswith(text)


def test_bfloat16_goes_in_and_comes_out():
    model, inputs = vit()
    model = model.to(torch.bfloat16)
    program = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True))  # cast as the model is
    assert program.contract.inputs[0]["dtype"] == "bfloat16"
    given = {"pixel_values": inputs["pixel_values"].to(torch.bfloat16)}
    outputs = program(**given)
    assert outputs[0].dtype is torch.bfloat16
    # bfloat16 has 8 bits: 2^-8 per rounding, over two layers of normalised values of size 1 to 4
    torch.testing.assert_close(outputs[0], model(**given)[0], rtol=0.1, atol=0.1)


# ---- the model as it was ----------------------------------------------------------------------------


def test_training_mode_is_left_and_entered_again():
    model, inputs = bert()
    model.train()
    model.encoder.layer[0].eval()
    modes = [module.training for module in model.modules()]
    program = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True))
    assert [module.training for module in model.modules()] == modes
    assert not any(a["kind"] == "random" for a in program.contract.assumptions)
    refused(OnnxExporter().export, model, {"input_ids": ids().float()}, config=OnnxConfig())
    assert [module.training for module in model.modules()] == modes


@pytest.mark.parametrize("name", ["flash_attention_2", "flex_attention"])
def test_attention_that_cannot_be_exported_is_switched_said_and_restored(name):
    model = llama()
    inputs = {"input_ids": ids()}
    with torch.no_grad():
        expected = model(**inputs).logits
    model.config._attn_implementation = name
    said = f"attention {name} of LlamaConfig cannot be exported: sdpa was used instead"
    with pytest.warns(UserWarning, match=said) as caught:
        program = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True))
    assert caught[0].filename == __file__
    assert said in program.contract.notes
    assert said in str(program.contract)
    assert model.config._attn_implementation == name
    torch.testing.assert_close(program(**inputs)[0], expected, **CLOSE)
    with pytest.warns(UserWarning, match=said), pytest.raises(fairlead.FairleadError):
        OnnxExporter().export(model, {"input_ids": ids() + 10_000}, config=OnnxConfig(dynamic=True))
    assert model.config._attn_implementation == name


def test_a_model_without_sdpa_gets_eager_attention(monkeypatch):
    model = llama()
    for cls in {type(module) for module in model.modules() if hasattr(module, "_supports_sdpa")}:
        monkeypatch.setattr(cls, "_supports_sdpa", False)
    model.config._attn_implementation = "flash_attention_2"
    with pytest.warns(UserWarning, match="eager was used instead"):
        program = OnnxExporter().export(model, {"input_ids": ids()}, config=OnnxConfig(dynamic=True))
    assert "Softmax" in program.result.operators
    assert model.config._attn_implementation == "flash_attention_2"


def test_attention_that_can_be_exported_is_left_alone():
    model, inputs = bert()
    model.config._attn_implementation = "eager"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True))
    # Before 5.0 its position table ends at 512, which the checks meet.
    assert [note for note in program.contract.notes if not note.startswith("eager itself refuses")] == []


# ---- preparing --------------------------------------------------------------------------------------


def test_prepare_for_export_gives_new_inputs():
    model, inputs = bert()
    inputs |= {"use_cache": False, "output_hidden_states": True, "labels": None}
    before = dict(inputs)
    same_model, prepared, flags = prepare_for_export(model, inputs)
    assert same_model is model
    assert flags == {"use_cache": False, "output_hidden_states": True}
    assert list(prepared) == ["input_ids", "attention_mask"]
    assert inputs == before
    _, prepared, _ = prepare_for_export(model.half(), {"inputs_embeds": torch.zeros(1, 2, 32), "n": 3})
    assert prepared["inputs_embeds"].dtype is torch.float16
    assert prepared["n"] == 3


def test_flags_of_the_sample_are_honoured():
    model, inputs = bert()
    program = OnnxExporter().export(model, inputs | {"output_hidden_states": True}, config=OnnxConfig(dynamic=True))
    assert "hidden_states.0" in program.output_names
    same(program(**inputs), model(**inputs, output_hidden_states=True))
    assert model.config.output_hidden_states is False


def test_a_loss_is_refused():
    model, inputs = bert()
    tail = "Remove it before the export."
    for label in ("labels", "future_values"):
        text = refused(OnnxExporter().export, model, inputs | {label: ids()}, config=OnnxConfig())
        assert text == f"[prepare_for_export] Expected inputs without a loss, got {label!r}. {tail}"
    text = refused(prepare_for_export, model, inputs | {"return_loss": True})
    assert text == (
        "[prepare_for_export] Expected inputs without a loss, got return_loss=True in the inputs. Set it to False."
    )
    model.config.return_loss = True
    assert "got return_loss=True in model.config" in refused(prepare_for_export, model, inputs)


def test_inputs_that_are_no_arguments_are_refused():
    model, inputs = bert()
    text = "[prepare_for_export] Expected inputs as a dict of forward's arguments, got"
    for wrong in (ids(), (ids(),), None):
        assert refused(OnnxExporter().export, model, wrong).startswith(f"{text} {type(wrong).__name__}.")
    program = OnnxExporter().export(model, inputs)
    assert refused(program, input_ids=ids()) == (
        "[OnnxProgram] Expected the inputs input_ids, attention_mask, got no attention_mask. "
        "Pass what the model was exported with."
    )
    assert "got token_type_ids besides" in refused(program, **inputs, token_type_ids=ids())
    assert "Expected at most 2 positional arguments (input_ids, attention_mask), got 3" in refused(program, 1, 2, 3)
    with pytest.raises(KeyError, match="Expected an output among last_hidden_state"):
        program(**inputs)["logits"]


def test_a_preparer_of_ones_own_adds_to_the_exports_inputs():
    model, inputs = bert()

    @register_export_input_preparer("input_ids", "attention_mask")
    def add_types(given_model, given):
        assert given_model is model
        given["token_type_ids"] = torch.zeros_like(given["input_ids"])

    try:
        program = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True))
        assert program.input_names == ["input_ids", "attention_mask", "token_type_ids"]
        assert list(inputs) == ["input_ids", "attention_mask"]
    finally:
        unregister_export_input_preparer("input_ids", "attention_mask")
    assert "Expected the names of arguments, got none" in refused(register_export_input_preparer)


def test_helpers_for_leaves():
    one = torch.zeros(2)
    given = {"a": one, "b": [one, torch.arange(3)], "c": "text"}
    apart = duplicate_leaf_tensors(given)
    assert apart["a"] is one
    assert apart["b"][0] is not one
    assert torch.equal(apart["b"][0], one)
    assert given["b"][0] is one
    assert duplicate_leaf_tensors({"a": one}) == {"a": one}
    cast = cast_leaf_tensors(given, torch.float16, torch.device("cpu"))
    assert [t.dtype for t in get_leaf_tensors(cast).values()] == [torch.float16, torch.float16, torch.int64]
    assert given["a"].dtype is torch.float32
    assert cast["c"] == "text"
    model, _ = bert()
    assert (module_dtype(model), module_device(model)) == (torch.float32, torch.device("cpu"))
    assert (module_dtype(torch.nn.Identity()), module_device(torch.nn.Identity())) == (None, None)
