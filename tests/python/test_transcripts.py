"""FAIRLEAD_TRANSCRIPT: an export leaves what it asked and was told, and it can be gone through again."""

import json
import re

import pytest
import torch

import fairlead
from fairlead import _core


class Above(torch.nn.Module):
    def forward(self, x):
        return x.relu() if x.shape[0] > 20 else x.tanh()


class Refuses(torch.nn.Module):
    def forward(self, x):
        raise ValueError("not today")


def transcript(model, folder, monkeypatch, **options):
    monkeypatch.setenv("FAIRLEAD_TRANSCRIPT", str(folder / "transcripts"))
    try:
        fairlead.export(model.eval(), (torch.rand(3, 4),), folder / "model.onnx", **options)
    except fairlead.FairleadError as error:
        print(error)
    (path,) = (folder / "transcripts").glob("*.json")
    return path.read_text()


@pytest.mark.parametrize("options", [{}, {"verify": False}, {"max_size": {"sequence": 4}}, {"strict": True}])
def test_an_export_is_gone_through_again(options, tmp_path, monkeypatch):
    text = transcript(Above(), tmp_path, monkeypatch, **options)
    assert _core.replay(text) == ""
    assert "tensor(" not in text


def test_what_was_learnt_is_in_it(tmp_path, monkeypatch):
    found = json.loads(transcript(Above(), tmp_path, monkeypatch))
    assert found["step"] == ["Done", {}]
    kinds = [fact.get("kind", "fixed") for fact in found["ledger"]]
    assert kinds == ["most", "opened"]
    assert found["ledger"][0]["evidence"]["why"] == "branches"


def test_a_refusal_has_one_too(tmp_path, monkeypatch):
    text = transcript(Refuses(), tmp_path, monkeypatch)
    assert _core.replay(text) == ""
    assert json.loads(text)["step"] == ["Failed", {}]


def test_another_answer_is_noticed(tmp_path, monkeypatch):
    text = transcript(Above(), tmp_path, monkeypatch)
    changed = re.sub(r'"Ran",{"run":1[^}]*}', '"Ran",{"error":"ValueError: no"}', text)
    assert changed != text
    assert _core.replay(changed).startswith("turn ")


def test_nothing_is_left_otherwise(tmp_path, monkeypatch):
    monkeypatch.delenv("FAIRLEAD_TRANSCRIPT", raising=False)
    monkeypatch.chdir(tmp_path)
    fairlead.export(Above().eval(), (torch.rand(3, 4),), "model.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
