"""An observer straight into fairlead.export: every stored call is evidence and is checked."""

import numpy as np
import onnxruntime
import pytest
import torch
from observer_models import Add, observed_llm, observed_multimodal, run_add

import fairlead
from fairlead import InputObserver


def check(observer, path):
    rows = observer.check_discrepancies(path)
    assert [row.get("error") for row in rows] == [None] * len(rows)
    assert all(row["SUCCESS"] for row in rows)
    return onnxruntime.InferenceSession(str(path))


def test_add(tmp_path):
    model, observer = Add().eval(), InputObserver()
    run_add(model, observer)
    fairlead.export(model, observer, tmp_path / "add.onnx")
    session = check(observer, tmp_path / "add.onnx")
    x, y = np.ones((9, 11), np.float32), np.ones((1, 11), np.float32)
    assert session.run(None, {"x": x, "y": y})[0].shape == (9, 11)


@pytest.mark.parametrize("observed", [observed_llm, observed_multimodal])
def test_stand_ins_for_models_with_caches(observed, tmp_path):
    model, observer = observed()
    fairlead.export(model.eval(), observer, tmp_path / "model.onnx")
    session = check(observer, tmp_path / "model.onnx")
    names = [value.name for value in session.get_inputs()]
    assert names[-4:] == [f"past_key_values.{i}.{part}" for i in (0, 1) for part in ("key", "value")]


def test_one_file_for_prefill_and_decode(tmp_path):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        vocab_size=50,
    )
    model, observer = LlamaForCausalLM(config).eval(), InputObserver()
    tokens = {
        "input_ids": torch.randint(3, 50, (2, 7)),
        "attention_mask": torch.ones(2, 7, dtype=torch.int64),
    }
    with observer(model, store_n_calls=4):
        model.generate(**tokens, max_new_tokens=5, do_sample=False, pad_token_id=0)
    fairlead.export(model, observer, tmp_path / "llama.onnx")
    session = check(observer, tmp_path / "llama.onnx")
    outputs = [value.name for value in session.get_outputs()]
    assert outputs[0] == "logits"
    assert "present.0.key" in outputs
    prefill = observer.infer_arguments(0)
    assert prefill["past_key_values"].get_seq_length() == 0
