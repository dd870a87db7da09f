"""Observes the encoder and the decoder of a small random Whisper at once, with an observer each."""

import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

from fairlead import InputObserver
from fairlead.tree import register_flattening_functions, string_type


def small_whisper() -> WhisperForConditionalGeneration:
    torch.manual_seed(0)
    config = WhisperConfig(
        vocab_size=99, num_mel_bins=8, d_model=16, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, max_source_positions=20,
        max_target_positions=32,
        decoder_start_token_id=3, bos_token_id=1, eos_token_id=2, pad_token_id=0, suppress_tokens=[],
        begin_suppress_tokens=[],
    )  # fmt: skip
    return WhisperForConditionalGeneration(config).eval()


def main() -> None:
    model = small_whisper()
    encoder, decoder = InputObserver(), InputObserver()
    with register_flattening_functions(patch_transformers=True):
        for _ in range(2):
            features = torch.rand(1, 8, 40)
            with (
                encoder(model.model.encoder, store_n_calls=4),
                decoder(model.model.decoder, store_n_calls=4),
            ):
                model.generate(features, max_new_tokens=5, min_new_tokens=5, do_sample=False)
    for name, observer in (("encoder", encoder), ("decoder", decoder)):
        print(name, observer.num_obs(), "calls")
        print(
            "  shapes    ",
            string_type(observer.infer_dynamic_shapes(set_batch_dimension_for=True), ignore=True),
        )
        print("  arguments ", string_type(observer.infer_arguments(), with_shape=True, ignore=True))
    print(decoder.relations())
    assert encoder.num_obs() == 2
    assert decoder.num_obs() == 8


if __name__ == "__main__":
    main()
