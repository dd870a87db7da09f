"""A small random Qwen2.5-VL in parts: images of different sizes, 3-D positions, one language model for all steps."""

import tempfile

import torch
from fairlead.exporters import OnnxConfig, OnnxExporter
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

from fairlead import Generator

IMAGE = 98  # the token that stands for a piece of an image


def small_qwen() -> Qwen2_5_VLForConditionalGeneration:
    torch.manual_seed(0)
    text = {
        "vocab_size": 99, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "initializer_range": 0.5, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2]},
    }  # fmt: skip
    vision = {
        "depth": 2, "hidden_size": 16, "intermediate_size": 24, "num_heads": 2, "out_hidden_size": 32, "patch_size": 2,
        "window_size": 8, "fullatt_block_indexes": [1],
    }  # fmt: skip
    config = Qwen2_5_VLConfig(
        text_config=text, vision_config=vision, image_token_id=IMAGE, video_token_id=97, vision_start_token_id=96,
        vision_end_token_id=95,
    )  # fmt: skip
    return Qwen2_5_VLForConditionalGeneration(config).eval()


def prompt(height: int, width: int) -> dict[str, torch.Tensor]:
    """What a processor makes of a question about one image of height x width patches."""
    ids = torch.tensor([[5, 17, *[IMAGE] * (height * width // 4), 23, 42]])
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "mm_token_type_ids": (ids == IMAGE).int(),
        "pixel_values": torch.randn(height * width, 24),
        "image_grid_thw": torch.tensor([[1, height, width]]),
    }


def main() -> None:
    model = small_qwen()
    with tempfile.TemporaryDirectory() as folder:
        parts = OnnxExporter().export_for_generation(model, prompt(4, 4), OnnxConfig(output_path=folder))
        for name, program in parts.items():
            print(f"{name:15}", ", ".join(program.input_names[:4]), "->", ", ".join(program.output_names[:2]))
        generator = Generator.from_folder(folder)
        for inputs in (prompt(4, 4), prompt(8, 12)):
            expected = model.generate(**inputs, max_new_tokens=12, do_sample=False)
            tokens = generator.generate(**inputs, max_new_tokens=12)
            print(tokens[:, inputs["input_ids"].shape[1] :])
            assert tokens.tolist() == expected.tolist()
        print("the same tokens as model.generate")


if __name__ == "__main__":
    main()
