"""Observes `generate` of a small random Llama: prefill and decode, one cache, one file for both."""

import tempfile
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import fairlead
from fairlead import InputObserver
from fairlead.tree import register_flattening_functions, string_type


def small_llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=99,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def main() -> None:
    model = small_llama()
    tokens = {
        "input_ids": torch.randint(3, 99, (2, 7)),
        "attention_mask": torch.ones(2, 7, dtype=torch.int64),
    }
    observer = InputObserver()
    with register_flattening_functions(patch_transformers=True), observer(model, store_n_calls=4):
        model.generate(**tokens, max_new_tokens=5, do_sample=False, pad_token_id=0)
    with register_flattening_functions(patch_transformers=True):
        shapes = observer.infer_dynamic_shapes(set_batch_dimension_for=True, dim_names=True)
        kwargs = observer.infer_arguments()
    print("calls     ", observer.num_obs())
    print("shapes    ", string_type(shapes))
    print("arguments ", string_type(kwargs, with_shape=True, ignore=True))
    print(observer.relations())
    if hasattr(fairlead, "export"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "llama.onnx"
            fairlead.export(model, observer, path)
            for row in observer.check_discrepancies(path):
                print(f"call {row['index']}: SUCCESS={row['SUCCESS']} abs={row.get('abs')} {row.get('error', '')}")
                assert row["SUCCESS"]


if __name__ == "__main__":
    main()
