"""Generative and multimodal models taken apart: the parts, their inputs, and that each can be exported and run."""

import pytest
import torch
from exporter_models import bert, ids, llama, llava, t5, transformers
from fairlead.exporters import OnnxConfig, OnnxExporter
from fairlead.exporters.utils import (
    decompose_for_generation,
    decompose_multimodal,
    decompose_prefill_decode,
    get_leaf_tensors,
    is_multimodal,
)
from untouched import model_state


def prompt() -> dict:
    return {"input_ids": ids(2, 5), "attention_mask": torch.ones(2, 5, dtype=torch.long)}


def shapes(kwargs) -> dict:
    return {name: tuple(tensor.shape) for name, tensor in get_leaf_tensors(kwargs).items()}


def test_a_decoder_becomes_prefill_and_decode_and_stays_as_it_was():
    model, inputs = llama().train(), prompt()
    values = {name: tensor.clone() for name, tensor in inputs.items()}
    state, config = model_state(model), model.generation_config.to_dict()
    parts = decompose_prefill_decode(model, inputs)
    assert list(parts) == ["prefill", "decode"]
    assert all(part is model for part, _ in parts.values())
    prefill, decode = shapes(parts["prefill"][1]), shapes(parts["decode"][1])
    assert prefill["input_ids"] == (2, 5)
    assert prefill["attention_mask"] == (2, 5)  # an input although it was all ones
    assert decode["input_ids"] == (2, 1)
    assert decode["attention_mask"] == (2, 6)
    assert decode["past_key_values.1.value"] == (2, 1, 5, 16)
    assert "logits_to_keep" not in parts["prefill"][1]
    assert model_state(model) == state
    assert "forward" not in vars(model)
    assert model.generation_config.to_dict() == config
    assert all(torch.equal(inputs[name], values[name]) for name in values)


def test_several_tokens_at_once_are_the_steps_beside_each_other():
    model = llama()
    _, kwargs = decompose_for_generation(model, prompt(), multi_token_decode=True)["decode"]
    found = shapes(kwargs)
    assert found["input_ids"] == found["position_ids"] == (2, 2)
    assert found["attention_mask"] == (2, 7)
    assert found["past_key_values.0.key"] == (2, 1, 5, 16)
    whole = torch.cat([prompt()["input_ids"], kwargs["input_ids"]], 1)
    with torch.no_grad():
        torch.testing.assert_close(model(**kwargs).logits, model(whole).logits[:, 5:], rtol=1e-4, atol=1e-5)


def test_a_static_cache_has_its_size():
    model = llama()
    config = transformers.GenerationConfig(cache_implementation="static", max_length=16)
    _, kwargs = decompose_prefill_decode(model, prompt(), generation_config=config)["decode"]
    assert type(kwargs["past_key_values"]).__name__ == "StaticCache"
    assert config.max_new_tokens is None


def test_an_encoder_decoder_has_its_encoder():
    model = t5()
    parts = decompose_for_generation(model, prompt(), multi_token_decode=True)
    assert list(parts) == ["encoder", "prefill", "decode"]
    assert parts["encoder"][0] is model.get_encoder()
    assert shapes(parts["encoder"][1])["input_ids"] == (2, 5)
    decode = shapes(parts["decode"][1])
    assert decode["decoder_input_ids"] == (2, 2)
    assert decode["encoder_outputs.last_hidden_state"] == (2, 5, 32)


@pytest.mark.not_compared("what the parts are given holds tensors that are no inputs")
def test_a_vision_language_model_has_every_part():
    model, inputs = llava()
    assert is_multimodal(model)
    parts = decompose_for_generation(model, inputs)
    head = ["lm_head"] if hasattr(model, "lm_head") else []  # before 4.52 it was inside the language model
    assert list(parts) == ["image_encoder", "multi_modal_projector", "language_model", *head, "decode"]
    assert shapes(parts["language_model"][1])["attention_mask"] == (2, 9)
    assert list(decompose_multimodal(model, inputs)) == list(parts)[:-1]
    for name, (module, kwargs) in parts.items():
        program = OnnxExporter().export(module, kwargs, config=OnnxConfig(dynamic=True))
        got = program(**kwargs)
        with torch.no_grad():
            expected = get_leaf_tensors(module(**kwargs))  # fills the cache
        assert len(got) == len(expected), name
        torch.testing.assert_close(got[0], next(iter(expected.values())), rtol=1e-4, atol=1e-5)


def test_what_cannot_be_taken_apart_is_refused():
    model, inputs = bert()
    assert not is_multimodal(model)
    assert not is_multimodal(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError) as caught:
        decompose_multimodal(model, inputs)
    assert str(caught.value) == (
        "[decompose_multimodal] Expected a model with an image or audio encoder and a language model, got BertModel. "
        "Use decompose_prefill_decode, or export it as a whole."
    )
    with pytest.raises(ValueError) as caught:
        decompose_for_generation(torch.nn.Linear(2, 2), {})
    assert str(caught.value) == (
        "[decompose_for_generation] Expected a model with generate, got Linear. "
        "Use export for a model that does not generate."
    )
    model = llama()
    with pytest.raises(ValueError, match=r"Expected LlamaForCausalLM.generate to take words, but it raised") as caught:
        decompose_for_generation(model, {"words": ids()})
    assert "\n" not in str(caught.value)
    assert "forward" not in vars(model)
