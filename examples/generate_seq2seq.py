"""A small random T5: its encoder, and one decoder file for the first token and every other."""

import tempfile

import torch
from fairlead.exporters import OnnxConfig, OnnxExporter
from transformers import T5Config, T5ForConditionalGeneration

from fairlead import Generator


def small_t5() -> T5ForConditionalGeneration:
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, pad_token_id=0, eos_token_id=1,
        decoder_start_token_id=0,
    )  # fmt: skip
    return T5ForConditionalGeneration(config).eval()


def main() -> None:
    model = small_t5()
    sample = {"input_ids": torch.tensor([[5, 17, 23, 42, 8]]), "attention_mask": torch.ones(1, 5, dtype=torch.int64)}
    with tempfile.TemporaryDirectory() as folder:
        parts = OnnxExporter().export_for_generation(model, sample, OnnxConfig(output_path=folder))
        print("components", ", ".join(parts))
        print(parts["encoder"].contract)
        generator = Generator(parts)
        texts = [[5, 17, 23, 42, 8], [9, 10]]  # of different lengths: padded on the right
        print(generator.generate(texts, max_new_tokens=12))

        expected = model.generate(**sample, max_new_tokens=12, do_sample=False)
        assert generator.generate(**sample, max_new_tokens=12).tolist() == expected.tolist()
        print("the same tokens as model.generate")


if __name__ == "__main__":
    main()
