"""Reading a checkpoint asks nobody on the network and nobody at the terminal, whatever its files name."""

import builtins
import json
import os
import socket
import threading

import checkpoints
import pytest

import fairlead

pytest.importorskip("transformers", minversion="5.0")
from fairlead.checkpoint.unfetched import unfetched
from huggingface_hub import constants
from transformers import dynamic_module_utils as code


@pytest.fixture
def asked(monkeypatch):
    """What was looked for on the network, with the hub on."""
    names = []

    def refuse(host, *rest, **more):
        names.append(host)
        raise OSError("no network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    return names


NAMED = {
    "a backbone": {"model_type": "detr", "architectures": ["DetrForObjectDetection"], "backbone": "someone/model",
                   "use_timm_backbone": False, "backbone_config": None},
    "a backbone of timm": {"model_type": "timm_backbone", "architectures": ["TimmBackbone"],
                           "backbone": "hf-hub:someone/model", "use_pretrained_backbone": True},
    "nothing": {},
}  # fmt: skip


@pytest.mark.parametrize("kind", NAMED)
def test_a_configuration_fetches_nothing(asked, tmp_path, kind):
    source = tmp_path / "source"
    checkpoints.bert(source)
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps(config | NAMED[kind]))
    if kind == "nothing":
        fairlead.export_checkpoint(source, tmp_path / "out", verify=False)
    else:
        with pytest.raises(fairlead.InvalidInput):
            fairlead.export_checkpoint(source, tmp_path / "out", verify=False)
    assert asked == []
    assert constants.HF_HUB_OFFLINE is False
    assert "HF_HUB_OFFLINE" not in os.environ


def test_a_processor_fetches_nothing(asked, tmp_path):
    source = tmp_path / "source"
    checkpoints.vit(source)
    path = source / "preprocessor_config.json"
    values = {
        "image_processor_type": "OneFormerImageProcessor",
        "repo_path": "someone/model",
        "class_info_file": "x.json",
    }
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(fairlead.InvalidInput):
        fairlead.export_checkpoint(source, tmp_path / "out", verify=False)
    assert asked == []


def test_others_are_not_disturbed_and_nobody_is_asked(asked, monkeypatch):
    monkeypatch.setattr(builtins, "input", lambda *_: "y")
    found = []
    with unfetched():
        assert constants.is_offline_mode()
        with pytest.raises(ValueError, match="trust_remote_code"):
            code.resolve_trust_remote_code(None, "x", False, True)
        other = threading.Thread(
            target=lambda: found.append((bool(constants.is_offline_mode()), code.TIME_OUT_REMOTE_CODE > 0))
        )
        other.start()
        other.join()
    assert found == [(False, True)]
    assert (constants.HF_HUB_OFFLINE, type(code.TIME_OUT_REMOTE_CODE)) == (False, int)
