"""The written file: valid, readable, lean, with named dims and weights stored once."""

import re
from collections import Counter

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import zoo
from untouched import names

import fairlead


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """The Llama of the benchmark with four layers."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=256, num_attention_heads=8, num_key_value_heads=4, vocab_size=1000, num_hidden_layers=4,
        intermediate_size=512, tie_word_embeddings=True,
    )  # fmt: skip
    torch.manual_seed(0)
    model = LlamaForCausalLM(config).eval()
    _, call = zoo.with_cache(lambda: (model, None))()
    path = tmp_path_factory.mktemp("llama") / "model.onnx"
    result = fairlead.export(model, call, path)
    return model, result, onnx.load(path)


def test_it_passes_the_checker(llama):
    onnx.checker.check_model(llama[2], full_check=True)


def test_node_names_follow_the_modules(llama):
    names = [node.name for node in llama[2].graph.node]
    assert "/model/layers.0/self_attn/q_proj/MatMul" in names
    assert len(set(names)) == len(names)


def test_nodes_carry_module_and_source(llama):
    node = next(n for n in llama[2].graph.node if n.name == "/model/layers.0/self_attn/q_proj/MatMul")
    properties = {p.key: p.value for p in node.metadata_props}
    assert properties["fairlead.module"] == "model.layers.0.self_attn.q_proj"
    assert re.search(r"modeling_llama\.py:\d+$", properties["fairlead.source"])


def test_at_most_sixty_nodes_a_layer_and_no_shape_arithmetic_repeated(llama):
    layers = Counter(m.group(1) for n in llama[2].graph.node if (m := re.match(r"/model/layers\.(\d+)/", n.name)))
    # The first layer also names what all layers share.
    assert max(layers[k] for k in "123") <= 60
    assert layers["1"] == layers["2"] == layers["3"]
    arithmetic = [n.name for n in llama[2].graph.node if n.op_type in ("Shape", "Range") and "/layers.2/" in n.name]
    assert arithmetic == []


def dims(value):
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def test_inputs_outputs_and_intermediates_have_named_dims(llama):
    graph = llama[2].graph
    inputs = {i.name: dims(i) for i in graph.input}
    assert inputs["input_ids"] == ["batch", "sequence"]
    assert inputs["past_key_values.3.key"] == ["batch", 4, "past", 32]
    outputs = {o.name: dims(o) for o in graph.output}
    assert outputs["logits"] == ["batch", "sequence", 1000]
    assert sorted(outputs["present.0.value"][2].split(" + ")) == ["past", "sequence"]
    inner = [v for v in graph.value_info if "batch" in dims(v)]
    assert len(inner) > 50


def test_tied_weights_are_stored_once(llama):
    shapes = Counter(tuple(t.dims) for t in llama[2].graph.initializer)
    assert shapes[(1000, 256)] + shapes[(256, 1000)] == 1


def test_the_contract_travels_with_the_file(llama):
    metadata = {p.key: p.value for p in llama[2].metadata_props}
    assert "past: from axis 2 of past_key_values.0.key" in metadata["fairlead.contract"]


def test_empty_past_serves_prefill(llama, tmp_path):
    model, _, proto = llama
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    ids = torch.randint(0, 1000, (2, 5))
    feed = {"input_ids": ids.numpy(), "attention_mask": np.ones((2, 5), np.int64)}
    for k in range(4):
        for part in ("key", "value"):
            feed[f"past_key_values.{k}.{part}"] = np.zeros((2, 4, 0, 32), np.float32)
    got = session.run(["logits"], feed)[0]
    with torch.no_grad():
        expected = model(input_ids=ids).logits.numpy()
    np.testing.assert_allclose(got, expected, atol=1e-4)


@pytest.mark.parametrize("opset", [18, 19, 20, 21, 22, 23])
def test_every_opset_gives_a_valid_file(opset, tmp_path):
    for name in ("mlp", "unet", "tagger", "encoder_layer"):
        model, inputs = zoo.PLAIN[name]()
        path = tmp_path / f"{name}.onnx"
        result = fairlead.export(model, inputs, path, opset=opset)
        assert all(row["ok"] for row in result.discrepancies)
        onnx.checker.check_model(onnx.load(path), full_check=True)
        assert onnx.load(path).opset_import[0].version == opset


@pytest.mark.parametrize("external", ["auto", "always", "never"])
def test_external_data(external, tmp_path):
    model, inputs = torch.nn.Linear(300, 300).eval(), (torch.randn(2, 300),)
    path = tmp_path / "m.onnx"
    result = fairlead.export(model, inputs, path, external_data=external)
    beside = "m.onnx.*.data" in names(tmp_path)
    assert beside == (external == "always") == (result.external_bytes > 0)
    got = onnxruntime.InferenceSession(path).run(None, {"input": inputs[0].numpy()})[0]
    np.testing.assert_allclose(got, model(*inputs).detach().numpy(), atol=1e-5)


def test_names_that_the_user_gives(tmp_path):
    model, inputs = zoo.PLAIN["mlp"]()
    path = tmp_path / "m.onnx"
    fairlead.export(model, inputs, path, input_names=["features"], output_names=["scores"])
    session = onnxruntime.InferenceSession(path)
    assert [i.name for i in session.get_inputs()] == ["features"]
    assert [o.name for o in session.get_outputs()] == ["scores"]


def test_writing_again_gives_the_same_bytes(tmp_path):
    model, inputs = zoo.PLAIN["convnet"]()
    fairlead.export(model, inputs, tmp_path / "a.onnx")
    fairlead.export(model, inputs, tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_thousands_of_inputs(tmp_path):
    class Ends(torch.nn.Module):
        def forward(self, tensors):
            return tensors[0] + 2 * tensors[-1]

    result = fairlead.export(Ends().eval(), {"tensors": [torch.rand(3) for _ in range(1200)]}, tmp_path / "m.onnx")
    assert len(result.contract.inputs) == 1200
    assert all(row["ok"] for row in result.discrepancies)
