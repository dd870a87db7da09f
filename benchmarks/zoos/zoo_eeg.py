"""braindecode: models of brain signals, with the sizes their library sets."""

from __future__ import annotations

import torch
from braindecode import models

GIVEN = {"n_chans": 8, "n_outputs": 3, "n_times": 500, "sfreq": 100}
NETWORKS = (
    "ShallowFBCSPNet", "Deep4Net", "EEGNet", "EEGNetv4", "EEGConformer", "EEGInceptionERP", "EEGInceptionMI", "EEGITNet", "EEGNeX",
    "EEGResNet", "EEGSimpleConv", "EEGTCNet", "ATCNet", "TIDNet", "BDTCN", "TCN", "HybridNet", "FBCNet", "FBMSNet", "IFNet", "FBLightConvNet",
    "MSVTNet", "SincShallowNet", "SPARCNet", "ContraWR", "CTNet", "TSception", "SCCNet", "AttentionBaseNet", "DeepSleepNet", "SleepStagerBlanco2020",
    "SleepStagerChambon2018", "SleepStagerEldele2021", "USleep", "Labram", "BIOT", "EEGMiner", "AttnSleep", "PBT", "MEDFormer", "EEGPT",
    "BENDR", "BrainModule", "CodeBrain", "SSTDPN", "SyncNet", "TCFormer", "LUNA", "NeuroPose", "EEGDINO",
    "SensingDynamics", "CBraMod", "DGCNN", "EEGSym", "DANCE", "MVPFormer", "REVE", "ZUNA", "SignalJEPA_PostLocal", "SignalJEPA_Contextual",
    "EMG2QwertyNet", "MetaNeuromotorHand", "VEMG2Pose", "STEEGFormer", "SignalJEPA", "SignalJEPA_PreLocal",
)  # fmt: skip


def builder(name: str):
    def build():
        return getattr(models, name)(**GIVEN), (torch.randn(2, 8, 500),)

    return build


MODELS = {name: builder(name) for name in NETWORKS if hasattr(models, name)}
