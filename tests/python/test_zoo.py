"""Architectures that between them execute nearly every operator of Transformers: each exports, is equal to eager at
sizes never probed, and its figures are those of tests/python/data/zoo_figures.json or better.

After a change that moves figures on purpose: python tests/python/test_zoo.py writes the file anew.
"""

import copy
import json
import math
import sys
import tempfile
from pathlib import Path

import pytest
import recipes
import torch
import zoo

import fairlead

DATA = Path(__file__).parent / "data"
FIGURES = json.loads((DATA / "zoo_figures.json").read_text()) if (DATA / "zoo_figures.json").exists() else {}
TOLERANCE = 1e-4  # of an output scaled by max(1, |eager|): what fairlead.export itself asks of float32
SLACK = 1.02  # two nodes in a hundred more than landed are an accident, more are a change to look at


def figures(name: str, path: str) -> dict:
    model, inputs = recipes.make(name)
    result = fairlead.export(model, inputs, path, allow_random=True)
    assert result.discrepancies
    compared = [row for row in result.discrepancies if math.isfinite(row["scaled"])]
    assert all(row["ok"] for row in result.discrepancies)
    draws = any(a["kind"] == "random" for a in result.contract.assumptions)
    return {
        "nodes": result.nodes,
        "symbols": sorted(s["name"] for s in result.contract.symbols),
        "random": draws,
        "worst": max((row["scaled"] for row in compared), default=0.0),
    }


@pytest.mark.parametrize("name", recipes.NAMES)
def test_exports_with_the_figures_of_before(name, tmp_path):
    now, before = figures(name, tmp_path / "model.onnx"), FIGURES[name]
    assert set(before["symbols"]) <= set(now["symbols"]), "a dim that was free is fixed now"
    assert now["nodes"] <= before["nodes"] * SLACK
    assert now["random"] == before["random"]
    assert now["worst"] <= TOLERANCE  # of the outputs that are not drawn


def test_every_figure_belongs_to_a_recipe():
    assert sorted(FIGURES) == recipes.NAMES


def test_at_least_forty_architectures_execute_240_of_the_operators():
    """Of the 250 that the model classes of Transformers execute between them, in one forward pass each."""
    wanted = set((DATA / "executed_operators.txt").read_text().split())
    found = set()
    for name in recipes.NAMES:
        model, inputs = recipes.make(name)
        found |= recipes.executed(model, inputs)
    for make in zoo.MODELS.values():
        model, inputs = make()
        found |= recipes.executed(model, copy.deepcopy(inputs))
    assert len(wanted) == 250
    assert len(wanted & found) >= 240, sorted(wanted - found)
    assert len({name.removesuffix("_decode") for name in recipes.NAMES}) >= 40


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        made = {name: figures(name, f"{folder}/model.onnx") for name in sys.argv[1:] or recipes.NAMES}
    merged = {name: (FIGURES | made)[name] for name in recipes.NAMES}
    lines = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in merged.items()]
    (DATA / "zoo_figures.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
