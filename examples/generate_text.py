"""A small random Llama as one file that serves the prompt and every token after it; generates without torch."""

import tempfile

import torch
from fairlead.exporters import OnnxConfig, OnnxExporter
from transformers import LlamaConfig, LlamaForCausalLM

from fairlead import Generator


def small_llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2, initializer_range=0.5,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def main() -> None:
    model = small_llama()
    sample = {"input_ids": torch.tensor([[5, 17, 23]]), "attention_mask": torch.ones(1, 3, dtype=torch.int64)}
    with tempfile.TemporaryDirectory() as folder:
        parts = OnnxExporter().export_for_generation(model, sample, OnnxConfig(output_path=folder))
        print(parts["decode"].contract)
        generator = Generator.from_folder(folder)  # needs numpy and ONNX Runtime

        prompts = [[5, 17, 23, 42], [8, 9]]  # of different lengths: padded on the left
        print(generator.generate(prompts, max_new_tokens=12))
        print("sampled:", end="")
        for step in generator.stream(prompts, max_new_tokens=12, do_sample=True, temperature=1.5, top_p=0.9, seed=0):
            print("", step[0], end="", flush=True)
        print()

        expected = model.generate(**sample, max_new_tokens=12, do_sample=False)
        assert generator.generate(**sample, max_new_tokens=12).tolist() == expected.tolist()
        print("the same tokens as model.generate")


if __name__ == "__main__":
    main()
