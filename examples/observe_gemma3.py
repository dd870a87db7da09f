"""Observes a small random Gemma 3 with an image: pixel_values come with the first call only."""

import torch
from transformers import Gemma3Config, Gemma3ForConditionalGeneration

from fairlead import InputObserver
from fairlead.tree import register_flattening_functions, string_type

IMAGE_TOKEN, TOKENS_PER_IMAGE, SIDE = 90, 4, 28


def small_gemma3() -> Gemma3ForConditionalGeneration:
    torch.manual_seed(0)
    config = Gemma3Config(
        text_config={
            "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
            "num_key_value_heads": 1, "head_dim": 16, "vocab_size": 99, "sliding_window": 16,
            "layer_types": ["sliding_attention", "full_attention"],
        },
        vision_config={
            "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2,
            "image_size": SIDE, "patch_size": 7,
        },
        mm_tokens_per_image=TOKENS_PER_IMAGE, image_token_id=IMAGE_TOKEN, image_token_index=IMAGE_TOKEN,
        boi_token_index=91, eoi_token_index=92,
    )  # fmt: skip
    return Gemma3ForConditionalGeneration(config).eval()


def main() -> None:
    model = small_gemma3()
    text = torch.randint(3, 80, (1, 6))
    image = torch.tensor([[91, *[IMAGE_TOKEN] * TOKENS_PER_IMAGE, 92]])
    input_ids = torch.cat([image, text], dim=1)
    tokens = {
        "input_ids": input_ids,
        "attention_mask": torch.ones_like(input_ids),
        "token_type_ids": (input_ids == IMAGE_TOKEN).long(),
        "pixel_values": torch.rand(1, 3, SIDE, SIDE),
    }
    observer = InputObserver(value_if_missing={"pixel_values": torch.empty((0, 3, SIDE, SIDE))})
    with register_flattening_functions(patch_transformers=True), observer(model, store_n_calls=4):
        model.generate(**tokens, max_new_tokens=4, do_sample=False, pad_token_id=0)
    observer.remove_inputs(["last_cache_position"])  # a number that some releases count up in Python
    shapes = observer.infer_dynamic_shapes(set_batch_dimension_for=True)
    kwargs = observer.infer_arguments()
    print("calls     ", observer.num_obs())
    print("shapes    ", string_type(shapes))
    print("arguments ", string_type(kwargs, with_shape=True, ignore=True))
    print("prefill   ", string_type(observer.infer_arguments(0), with_shape=True, ignore=True))
    print(observer.relations())
    assert kwargs["pixel_values"].shape == (0, 3, SIDE, SIDE)
    assert 0 in shapes["pixel_values"]


if __name__ == "__main__":
    main()
