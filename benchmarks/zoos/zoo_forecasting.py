"""neuralforecast: small models, as their library calls them."""

from __future__ import annotations

import logging

import torch

logging.disable(logging.WARNING)
from neuralforecast import models  # noqa: E402

PAST, AHEAD, SERIES = 24, 6, 3
SMALL = {"hidden_size": 8, "n_head": 2}
ALONE = {
    "MLP": {"hidden_size": 8}, "NHITS": {"mlp_units": [[8, 8]] * 3}, "NBEATS": {"mlp_units": [[8, 8]] * 3}, "DLinear": {}, "NLinear": {},
    "TCN": {"encoder_hidden_size": 8, "decoder_hidden_size": 8}, "LSTM": {"encoder_hidden_size": 8, "decoder_hidden_size": 8},
    "GRU": {"encoder_hidden_size": 8, "decoder_hidden_size": 8}, "RNN": {"encoder_hidden_size": 8, "decoder_hidden_size": 8},
    "DilatedRNN": {"encoder_hidden_size": 8, "decoder_hidden_size": 8}, "TFT": SMALL, "VanillaTransformer": SMALL, "Informer": SMALL,
    "Autoformer": SMALL, "FEDformer": {**SMALL, "modes": 4, "n_head": 8}, "PatchTST": {"hidden_size": 8, "n_heads": 2, "patch_len": 4, "stride": 2},
    "TimesNet": {"hidden_size": 8, "conv_hidden_size": 8, "top_k": 2}, "BiTCN": {"hidden_size": 8}, "TiDE": {"hidden_size": 8},
    "KAN": {"hidden_size": 8}, "DeepNPTS": {"hidden_size": 8},
    "NBEATSx": {"mlp_units": [[8, 8]] * 3}, "DeepAR": {"lstm_hidden_size": 8}, "XLinear": {},
}  # fmt: skip
TOGETHER = {
    "TSMixer": {}, "TSMixerx": {}, "SOFTSSharp": {"hidden_size": 8, "d_core": 8, "d_ff": 16}, "MLPMultivariate": {"hidden_size": 8}, "iTransformer": {"hidden_size": 8, "n_heads": 2, "d_ff": 16},
    "SOFTS": {"hidden_size": 8, "d_core": 8, "d_ff": 16}, "TimeMixer": {"d_model": 8, "d_ff": 16}, "StemGNN": {}, "RMoK": {},
    "TimeXer": {"hidden_size": 8, "n_heads": 2, "d_ff": 16, "patch_len": 4},
}  # fmt: skip


def builder(name: str, given: dict, series: int):
    def build():
        if series > 1:
            given["n_series"] = series
        model = getattr(models, name)(h=AHEAD, input_size=PAST, max_steps=1, **given)
        y = torch.randn(4, PAST, series)
        call = {
            "insample_y": y,
            "insample_mask": torch.ones_like(y),
            "futr_exog": None,
            "hist_exog": None,
            "stat_exog": None,
        }
        return model, (call,)

    return build


MODELS = {name: builder(name, given, 1) for name, given in ALONE.items()}
MODELS |= {name: builder(name, given, SERIES) for name, given in TOGETHER.items()}
