"""torchaudio and speechbrain: speech models, features, filters."""

from __future__ import annotations

import importlib

import torch
import torchaudio
from torchaudio import transforms


class Called(torch.nn.Module):
    """A function as a model."""

    def __init__(self, of):
        super().__init__()
        self.of = of

    def forward(self, *inputs):
        return self.of(*inputs)


WAVE = (2, 4000)
TRANSFORMS = {
    "Spectrogram": lambda: transforms.Spectrogram(n_fft=256),
    "complex Spectrogram": lambda: transforms.Spectrogram(n_fft=256, power=None),
    "MelSpectrogram": lambda: transforms.MelSpectrogram(16000, n_fft=256, n_mels=16),
    "MFCC": lambda: transforms.MFCC(16000, n_mfcc=8, melkwargs={"n_fft": 256, "n_mels": 16, "hop_length": 100}),
    "LFCC": lambda: transforms.LFCC(16000, n_filter=16, n_lfcc=8, speckwargs={"n_fft": 256}),
    "AmplitudeToDB": lambda: torch.nn.Sequential(transforms.MelSpectrogram(16000, n_fft=256, n_mels=16), transforms.AmplitudeToDB()),
    "ComputeDeltas": lambda: torch.nn.Sequential(transforms.MelSpectrogram(16000, n_fft=256, n_mels=16), transforms.ComputeDeltas()),
    "Resample": lambda: transforms.Resample(16000, 8000),
    "Resample 3:2": lambda: transforms.Resample(12000, 8000),
    "MuLaw": lambda: torch.nn.Sequential(transforms.MuLawEncoding(), transforms.MuLawDecoding()),
    "Vol": lambda: transforms.Vol(0.5),
    "Preemphasis": lambda: transforms.Preemphasis(),
    "Fade": lambda: transforms.Fade(100, 100),
    "SlidingWindowCmn": lambda: transforms.SlidingWindowCmn(cmn_window=50),
    "SpectralCentroid": lambda: transforms.SpectralCentroid(16000, n_fft=256),
    "fbank": lambda: Called(lambda x: torchaudio.compliance.kaldi.fbank(x[:1], num_mel_bins=16, dither=0.0)),
    "PitchShift": lambda: transforms.PitchShift(16000, 4, n_fft=256),
    "InverseSpectrogram": lambda: torch.nn.Sequential(transforms.Spectrogram(256, power=None), transforms.InverseSpectrogram(256)),
    "GriffinLim": lambda: torch.nn.Sequential(transforms.Spectrogram(256), transforms.GriffinLim(256, n_iter=2, rand_init=False)),
}  # fmt: skip

F = torchaudio.functional
ON_WAVES = {
    "highpass": lambda x: F.highpass_biquad(x, 16000, 300.0), "bandpass": lambda x: F.bandpass_biquad(x, 16000, 300.0),
    "bass": lambda x: F.bass_biquad(x, 16000, 3.0), "equalizer": lambda x: F.equalizer_biquad(x, 16000, 300.0, 3.0),
    "riaa": lambda x: F.riaa_biquad(x, 44100), "lfilter": lambda x: F.lfilter(x, torch.tensor([1.0, -0.5]), torch.tensor([0.3, 0.2])),
    "filtfilt": lambda x: F.filtfilt(x, torch.tensor([1.0, -0.5]), torch.tensor([0.3, 0.2])),
    "contrast": lambda x: F.contrast(x), "dcshift": lambda x: F.dcshift(x, 0.1, 0.05), "gain": lambda x: F.gain(x, 3.0),
    "overdrive": lambda x: F.overdrive(x[:, :200]), "phaser": lambda x: F.phaser(x[:, :200], 16000),
    "flanger": lambda x: F.flanger(x[None, :, :200], 16000), "loudness": lambda x: F.loudness(x.repeat(1, 2), 16000),
    "detect_pitch": lambda x: F.detect_pitch_frequency(x, 16000), "deemphasis": lambda x: F.deemphasis(x),
    "convolve": lambda x: F.convolve(x, x[:, :50]), "fftconvolve": lambda x: F.fftconvolve(x, x[:, :50]),
    "add_noise": lambda x: F.add_noise(x, x.flip(-1), torch.full(x.shape[:1], 10.0)),
    "resample 44 to 16": lambda x: F.resample(x, 44100, 16000), "mu_law": lambda x: F.mu_law_encoding(x, 64),
    "phase_vocoder": lambda x: F.phase_vocoder(torch.stft(x, 256, window=torch.hann_window(256), return_complex=True), 1.3,
                                               torch.linspace(0, 3.14 * 64, 129)[:, None]),
    "kaldi mfcc": lambda x: torchaudio.compliance.kaldi.mfcc(x[:1] * 100, dither=0.0),
    "kaldi spectrogram": lambda x: torchaudio.compliance.kaldi.spectrogram(x[:1], dither=0.0),
}  # fmt: skip
TRANSFORMS |= {
    "Deemphasis": lambda: transforms.Deemphasis(),
    "MelScale": lambda: torch.nn.Sequential(transforms.Spectrogram(256), transforms.MelScale(16, 16000, n_stft=129)),
    "InverseMelScale": lambda: torch.nn.Sequential(transforms.MelSpectrogram(16000, n_fft=256, n_mels=16), transforms.InverseMelScale(129, 16)),
    "Speed": lambda: transforms.Speed(16000, 1.2), "Loudness": lambda: transforms.Loudness(16000),
    "TimeStretch": lambda: torch.nn.Sequential(transforms.Spectrogram(256, power=None), transforms.TimeStretch(128, 129, 1.2)),
    "PSD": lambda: torch.nn.Sequential(transforms.Spectrogram(256, power=None), transforms.PSD()),
}  # fmt: skip


def wave(make):
    return lambda: (make(), (torch.rand(WAVE) * 1.8 - 0.9,))


def conformer():
    return torchaudio.models.Conformer(16, 2, 32, 2, 3), (torch.randn(2, 12, 16), torch.tensor([12, 9]))


def emformer():
    return torchaudio.models.Emformer(16, 2, 32, 2, 4, right_context_length=1), (
        torch.randn(2, 13, 16),
        torch.tensor([12, 9]),
    )


def tacotron():
    model = torchaudio.models.Tacotron2(
        n_symbol=20, n_mels=8, symbol_embedding_dim=16, encoder_embedding_dim=16, attention_rnn_dim=16, attention_hidden_dim=8,
        decoder_rnn_dim=16, prenet_dim=8, postnet_embedding_dim=16, decoder_dropout=0.0, attention_dropout=0.0,
    )  # fmt: skip
    return model, (torch.randint(0, 20, (2, 9)), torch.tensor([9, 7]), torch.randn(2, 8, 6), torch.tensor([6, 5]))


def wav2vec():
    return torchaudio.models.wav2vec2_model(
        "group_norm", [[16, 10, 5], [16, 3, 2]], False, 16, 0.0, 8, 4, 2, 2, 0.0, 32, 0.0, 0.0, False, 0.0, 10
    ), (torch.randn(2, 400),)


def wavlm():
    return torchaudio.models.wavlm_model(
        "group_norm", [[16, 10, 5], [16, 3, 2]], False, 16, 0.0, 8, 4, 2, 2, 8, 16, 0.0, 32, 0.0, 0.0, False, 0.0, 10
    ), (torch.randn(2, 400),)


def squim():
    model = torchaudio.models.squim_objective_model(
        feat_dim=16, win_len=16, d_model=8, nhead=2, hidden_dim=8, num_blocks=1, rnn_type="LSTM", chunk_size=7
    )
    return model, (torch.randn(2, 400),)


def demucs():
    return torchaudio.models.HDemucs(["a", "b"], audio_channels=1, channels=8, nfft=1024, depth=4), (
        torch.randn(1, 1, 8192),
    )


def rnnt():
    model = torchaudio.models.emformer_rnnt_model(
        input_dim=16, encoding_dim=16, num_symbols=12, segment_length=8, right_context_length=4, time_reduction_input_dim=8,
        time_reduction_stride=2, transformer_num_heads=2, transformer_ffn_dim=16, transformer_num_layers=1, transformer_dropout=0.0,
        transformer_activation="gelu", transformer_left_context_length=8, transformer_max_memory_size=0,
        transformer_weight_init_scale_strategy="depthwise", transformer_tanh_on_mem=True, symbol_embedding_dim=8,
        num_lstm_layers=1, lstm_layer_norm=True, lstm_layer_norm_epsilon=1e-3, lstm_dropout=0.0,
    )  # fmt: skip
    return model, (torch.randn(2, 20, 16), torch.tensor([20, 16]), torch.randint(0, 12, (2, 5)), torch.tensor([5, 4]))


MODELS = {name: wave(make) for name, make in TRANSFORMS.items()}
MODELS |= {name: wave(lambda of=of: Called(of)) for name, of in ON_WAVES.items()}
MODELS["rnnt"] = rnnt
MODELS["mvdr"] = lambda: (
    Called(lambda x, s: F.apply_beamforming(F.mvdr_weights_souden(F.psd(x), F.psd(x * s), 0), x)),
    (torch.randn(2, 3, 9, 12, dtype=torch.complex64), torch.rand(2, 1, 9, 12)),
)
MODELS |= {
    "Conformer": conformer, "Emformer": emformer, "Tacotron2": tacotron, "wav2vec2": wav2vec, "wavlm": wavlm, "squim": squim,
    "HDemucs": demucs,
    "ConvTasNet": lambda: (torchaudio.models.ConvTasNet(enc_num_feats=16, msk_num_feats=8, msk_num_hidden_feats=16, msk_num_layers=2,
                                                        msk_num_stacks=1), (torch.randn(2, 1, 400),)),
    "DeepSpeech": lambda: (torchaudio.models.DeepSpeech(16, 32, 10), (torch.randn(2, 1, 12, 16),)),
    "Wav2Letter": lambda: (torchaudio.models.Wav2Letter(num_classes=10, input_type="mfcc", num_features=13), (torch.randn(2, 13, 60),)),
    "WaveRNN": lambda: (torchaudio.models.WaveRNN([2, 2], 8, 4, n_res_block=1, n_rnn=16, n_fc=16, kernel_size=3, n_freq=8, n_hidden=8,
                                                  n_output=8), (torch.randn(2, 1, 24), torch.randn(2, 1, 8, 8))),
    "lowpass": wave(lambda: Called(lambda x: torchaudio.functional.lowpass_biquad(x[:, :200], 16000, 300.0))),
}  # fmt: skip


def brain(module: str, of: str, given: dict, *inputs):
    def build():
        made = getattr(importlib.import_module(f"speechbrain.{module}"), of)(**given)
        return made, tuple(make() for make in inputs)

    return build


FEATURES = lambda: torch.randn(2, 40, 16)  # noqa: E731
MODELS |= {
    "speechbrain Fbank": brain("lobes.features", "Fbank", {"n_mels": 16}, lambda: torch.randn(2, 4000)),
    "speechbrain MFCC": brain("lobes.features", "MFCC", {"n_mels": 16, "n_mfcc": 8}, lambda: torch.randn(2, 4000)),
    "speechbrain ECAPA": brain("lobes.models.ECAPA_TDNN", "ECAPA_TDNN", {"input_size": 16, "channels": [16, 16, 16, 16, 48],
                               "lin_neurons": 8, "attention_channels": 8, "se_channels": 8, "res2net_scale": 4}, FEATURES),
    "speechbrain Xvector": brain("lobes.models.Xvector", "Xvector", {"in_channels": 16, "tdnn_blocks": 3, "tdnn_channels": [16, 16, 32],
                                 "tdnn_kernel_sizes": [5, 3, 1], "tdnn_dilations": [1, 2, 1], "lin_neurons": 8, "device": "cpu"}, FEATURES),
    "speechbrain CRDNN": brain("lobes.models.CRDNN", "CRDNN", {"input_shape": [None, None, 16], "cnn_blocks": 1, "cnn_channels": [8],
                               "cnn_kernelsize": (3, 3), "rnn_layers": 1, "rnn_neurons": 16, "dnn_blocks": 1, "dnn_neurons": 16,
                               "time_pooling": True, "using_2d_pooling": True}, FEATURES),
    "speechbrain HifiGAN": brain("lobes.models.HifiGAN", "HifiganGenerator", {"in_channels": 16, "out_channels": 1,
                                 "resblock_type": "1", "resblock_dilation_sizes": [[1, 3, 5]], "resblock_kernel_sizes": [3],
                                 "upsample_kernel_sizes": [4, 4], "upsample_initial_channel": 16, "upsample_factors": [2, 2]},
                                 lambda: torch.randn(2, 16, 20)),
    "speechbrain ResNet": brain("lobes.models.ResNet", "ResNet", {"input_size": 16, "channels": [8, 8, 16, 16],
                                "lin_neurons": 8}, FEATURES),
    "speechbrain ContextNet": brain("lobes.models.ContextNet", "ContextNet", {"input_shape": (2, 40, 16), "out_channels": 16,
                                    "conv_channels": [8] * 3, "kernel_size": 3, "strides": [1, 2, 1], "num_blocks": 3, "num_layers": 1,
                                    "inner_dim": 4}, FEATURES),
}  # fmt: skip
