"""The report as data: what the files carry, what the core counts, what errors know, names that want to escape."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import onnx
import pytest
import report_models
import torch
from fairlead.base.plain_json import finite
from fairlead.report.record import keep_times, read_record, times_path
from onnx import TensorProto, helper
from untouched import data_file

import fairlead
from fairlead import _core

NASTY = '</script><img src=x onerror="alert(1)">'
RTL = "שכבה_ראשונה"


def read(path) -> str:
    return Path(path).read_text(encoding="utf-8")


def data_of(page: str, number: int = 0) -> dict:
    return json.loads(
        re.search(rf'<script type="application/json" id="data{number}">(.*?)</script>', page, re.S).group(1)
    )


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    model, inputs = report_models.decoder()
    folder = tmp_path_factory.mktemp("decoder")
    return fairlead.export(model, inputs, folder / "model.onnx"), folder


def test_a_result_gives_a_page_with_everything_in_it(decoder, tmp_path):
    result, _ = decoder
    page = read(result.report(tmp_path / "page.html"))
    assert "<title>LlamaForCausalLM · Fairlead report</title>" in page
    assert "Verified" in page
    assert "past_key_values.{0..1}.key" in page
    assert not re.search(r'(?:src|href)="(?!#)', page)  # nothing is loaded
    data = data_of(page)
    assert len(data["operators"]["op"]) == result.nodes == data["modules"]["operators"][0]


def test_files_alone_give_the_same_page_but_for_times(decoder):
    result, folder = decoder
    page = read(fairlead.report.write_report(folder))
    assert fairlead.report.write_report(folder / "model.onnx") == str(folder / "report.html")
    assert "Times are not kept in the file" in page
    record = read_record(result.path)
    assert record == json.loads(json.dumps(finite(result.record)))
    assert record["differences"][1]["sizes"] == result.discrepancies[1]["sizes"]
    assert record["contract"]["symbols"][0]["tried"] == result.contract.symbols[0]["tried"]


def test_times_kept_beside_the_file_are_shown_until_it_is_replaced(tmp_path):
    result = fairlead.export(torch.nn.Linear(4, 4).eval(), (torch.randn(3, 4),), tmp_path / "model.onnx")
    keep_times(result)
    page = read(fairlead.report.write_report(tmp_path))
    assert "Time per stage: probe" in page
    fairlead.export(torch.nn.Linear(4, 5).eval(), (torch.randn(3, 4),), tmp_path / "model.onnx")
    page = read(fairlead.report.write_report(tmp_path))
    assert "Time per stage" not in page
    (tmp_path / "model.onnx.fairlead.json").write_text("[")
    fairlead.report.write_report(tmp_path)
    assert times_path("a.onnx") == "a.onnx.fairlead.json"


def test_every_operator_of_the_tree_is_in_one_module_with_its_line(decoder):
    result, _ = decoder
    found = _core.file_report(result.path)
    items = [k for row in found["modules"]["items"] for k in row]
    nodes = onnx.load(result.path).graph.node
    assert sorted(k for k in items if k >= 0) == list(range(len(nodes)))
    assert sorted(-k for k in items if k < 0) == list(range(1, len(found["modules"]["name"])))
    assert [found["strings"][k] for k in found["operators"]["op"]] == [n.op_type for n in nodes]
    sources = [{p.key: p.value for p in n.metadata_props}.get("fairlead.source", "") for n in nodes]
    assert [found["strings"][k] for k in found["operators"]["source"]] == sources


def test_counts_by_kind_and_by_module_add_up(decoder):
    result, _ = decoder
    found = _core.file_report(result.path)
    assert {name: count for name, count, _ in found["by_kind"]} == result.operators
    assert sum(operators for _, _, operators, _, _ in found["by_module"]) == result.nodes
    layers = next(row for row in found["by_module"] if row[0] == "model.layers.*.self_attn")
    assert layers[1] == 2
    assert sum(count for _, count in layers[4]) == layers[2]


def test_memory_grows_with_the_sizes(decoder):
    small, large = _core.file_report(
        decoder[0].path, [{"batch": 1, "sequence": 1, "past": 1}, {"batch": 8, "sequence": 16, "past": 64}]
    )["memory"]
    assert 0 < small["inputs"] < small["bytes"] < large["bytes"]


@pytest.mark.not_compared("the test removes the weights")
def test_a_folder_with_several_files_is_one_page_with_a_section_each(tmp_path):
    for name, (model, inputs) in report_models.encoder_decoder().items():
        fairlead.export(model, inputs, tmp_path / f"{name}.onnx", external_data="always")
    (tmp_path / "model.pte").write_bytes(b"12345")
    page = read(fairlead.report.write_report(tmp_path))
    assert page.count('<article id="part') == 2
    assert data_file(tmp_path / "decoder_model.onnx").name in page
    assert "ExecuTorch, ONNX" in page
    gone = data_file(tmp_path / "encoder_model.onnx")
    gone.unlink()
    page = read(fairlead.report.write_report(tmp_path))
    assert f"the model names {gone.name}, which is not beside it" in page


def test_files_in_a_folder_of_the_folder_are_found(tmp_path):
    (tmp_path / "onnx").mkdir()
    foreign(tmp_path / "onnx" / "m.onnx", 2)
    assert "onnx/m.onnx" in read(fairlead.report.write_report(tmp_path))


def test_a_folder_without_models_is_refused(tmp_path):
    with pytest.raises(fairlead.InvalidInput, match=r"\[report\] Expected a folder with \.onnx files, got none"):
        fairlead.report.write_report(tmp_path)


def test_a_page_that_cannot_be_written_is_one_sentence_and_leaves_nothing(decoder, tmp_path):
    with pytest.raises(fairlead.WriteError, match=r"\[report\] Could not write '.*': No such file or directory\."):
        decoder[0].report(tmp_path / "none" / "page.html")
    with pytest.raises(fairlead.WriteError, match="Is a directory"):
        decoder[0].report(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert not list(tmp_path.parent.glob(f"{tmp_path.name}.fairlead-*"))


def test_an_export_that_is_not_verified_says_so_first(tmp_path):
    result = fairlead.export(torch.nn.ReLU().eval(), (torch.randn(3, 4),), tmp_path / "m.onnx", verify=False)
    page = read(result.report(tmp_path / "page.html"))
    assert '<span class="badge warn">Not verified</span>' in page
    assert page.index("the file was not compared with PyTorch") < page.index("Contract</h3>")


def test_assumptions_and_dims_fixed_by_a_branch_are_warnings(tmp_path):
    result = fairlead.export(report_models.Rows().eval(), (torch.rand(3, 8),), tmp_path / "m.onnx")
    page = read(result.report(tmp_path / "page.html"))
    assert "Fixed: axis 0 of x = 3" in page
    result = fairlead.export(report_models.Router().eval(), (torch.rand(3, 8), torch.tensor(2.0)), tmp_path / "m.onnx")
    page = read(result.report(tmp_path / "page.html"))
    assert "at batch = 6 and more the model executes another program" in page
    result = fairlead.export(report_models.Reads().eval(), (torch.rand(3, 8),), tmp_path / "m.onnx", verify=False)
    page = read(result.report(tmp_path / "page.html"))
    assert "read True from a tensor in every run" in page


# ---- files that others wrote --------------------------------------------------------------------------------


def foreign(path, count: int, module=lambda k: f"layers.{k // 10}.attn", name="x") -> None:
    """A chain of that many operators, as onnx itself writes it."""
    nodes = []
    for k in range(count):
        node = helper.make_node(("Relu", "Neg", "Abs")[k % 3], [f"{name}{k}"], [f"{name}{k + 1}"])
        node.metadata_props.add(key="fairlead.module", value=module(k))
        node.metadata_props.add(key="fairlead.source", value=f"model.py:{k % 300}")
        nodes.append(node)
    value = [helper.make_tensor_value_info(f"{name}{k}", TensorProto.FLOAT, ["batch", 4]) for k in range(count + 1)]
    graph = helper.make_graph(nodes, "chain", [value[0]], [value[-1]], value_info=value[1:-1])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), path)


def test_a_file_that_fairlead_did_not_write_has_a_page(tmp_path):
    foreign(tmp_path / "m.onnx", 6)
    page = read(fairlead.report.write_report(tmp_path))
    assert "Not written by Fairlead" in page
    assert "Not verified" in page


def test_twenty_thousand_operators_are_a_small_page(tmp_path):
    foreign(tmp_path / "m.onnx", 20_000)
    page = fairlead.report.write_report(tmp_path)
    text = read(page)
    assert len(text) < 1_500_000
    assert len(data_of(text)["operators"]["op"]) == 20_000
    # The rows of the tree are made when it is unfolded, and lists end.
    assert text.count("<li") < 1000


def test_names_cannot_leave_the_data_or_the_text(tmp_path):
    foreign(tmp_path / "m.onnx", 6, module=lambda k: f"{NASTY}.{RTL}.{k}", name=NASTY)
    page = read(fairlead.report.write_report(tmp_path))
    assert "<img" not in page
    assert NASTY.split(".")[0] in data_of(page)["modules"]["name"]
    assert RTL in data_of(page)["modules"]["name"]


def test_metadata_that_is_no_json_is_one_sentence(tmp_path):
    foreign(tmp_path / "m.onnx", 2)
    model = onnx.load(tmp_path / "m.onnx")
    model.metadata_props.add(key="fairlead.report", value="{")
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(fairlead.ParseError, match=r"Expected JSON under fairlead\.report in the metadata"):
        fairlead.report.write_report(tmp_path)


def test_numbers_that_json_has_not_are_words():
    assert finite({"a": [math.inf, -math.inf, 1.5], "b": (math.nan,)}) == {"a": ["inf", "-inf", 1.5], "b": ["nan"]}


# ---- failures ------------------------------------------------------------------------------------------------


def page_of(kind, tmp_path) -> tuple[Exception, str]:
    error = report_models.failure(kind, tmp_path / "model.onnx")
    page = read(error.report(tmp_path / "why.html"))
    assert [p.name for p in tmp_path.iterdir()] == ["why.html"]
    return error, page


@pytest.mark.parametrize("kind", ["diverged"])
def test_a_model_that_branches_shows_both_sides(kind, tmp_path):
    error, page = page_of(kind, tmp_path)
    parting = error.facts["parting"]
    modules = {parting["first"][0]["module"], parting["second"][0]["module"]}
    assert modules == {"small", "large.0"}  # both are a linear: the lines tell them apart
    assert parting["sizes"][0]["first"] != parting["sizes"][0]["second"]
    assert parting["common"][-1]["op"] == "aten.layer_norm.default"
    assert "hidden = self.large(hidden)" in page
    assert "hidden = torch.tanh(self.small(hidden))" in page
    assert "float32[3, 8]" in page or "float32[9, 8]" in page
    assert "Dim(&#34;n&#34;, max=3)" in page or "Dim(&#34;n&#34;, min=9)" in page


def test_what_to_try_is_right(tmp_path):
    from torch.export import Dim

    model, scale = report_models.Router().eval(), torch.tensor(2.0)
    shapes = {"tokens": {0: Dim("n", max=3)}, "scale": None}
    fairlead.export(model, (torch.rand(3, 8), scale), tmp_path / "a.onnx", dynamic_shapes=shapes)
    shapes = {"tokens": {0: Dim("n", min=9)}, "scale": None}
    fairlead.export(model, (torch.rand(9, 8), scale), tmp_path / "b.onnx", dynamic_shapes=shapes)


def test_every_missing_operator_is_named_with_count_and_line(tmp_path):
    error, page = page_of("missing", tmp_path)
    assert {d["operator"]: d["count"] for d in error.details} == {
        "aten.special_airy_ai.default": "1", "aten.special_bessel_j0.default": "2",
    }  # fmt: skip
    assert "return torch.special.airy_ai(x)" in page


def test_every_number_that_nothing_explains_is_named_and_what_follows_is_not(tmp_path):
    error, page = page_of("unsolved", tmp_path)
    assert [d["operator"] for d in error.details] == ["aten.new_zeros.default", "aten.new_ones.default"]
    assert len(error.details[0]["values"]) == len(error.facts["runs"])
    assert "steps = x.new_zeros(count)" in page


def test_a_wrong_file_shows_its_differences(tmp_path):
    error, page = page_of("wrong", tmp_path)
    assert error.facts["differences"][-1]["ok"] is False
    assert "differs by 2 (scaled), more than 0.0001" in page


def test_strict_shows_what_was_read(tmp_path):
    _, page = page_of("strict", tmp_path)
    assert "if x.sum() &gt; 0:" in page


class Refuses(torch.nn.Module):
    def forward(self, x):
        return x.reshape(3, 4)


def test_a_model_that_refuses_other_sizes_is_not_said_to_branch(tmp_path):
    with pytest.raises(fairlead.Diverged) as caught:
        fairlead.export(Refuses().eval(), (torch.rand(3, 4),), tmp_path / "m.onnx", dynamic_shapes={"x": {0: "n"}})
    page = read(caught.value.report(tmp_path / "why.html"))
    assert "a dimension that was asked to vary does not" in page
    assert "shape &#39;[3, 4]&#39; is invalid" in page


def test_any_error_has_a_page(tmp_path):
    with pytest.raises(fairlead.InvalidInput) as caught:
        fairlead.export(torch.nn.ReLU().eval(), (), tmp_path / "m.onnx")
    fairlead.report.report_failure(caught.value, tmp_path / "why.html")
    assert "what was given cannot be used" in (tmp_path / "why.html").read_text(encoding="utf-8")


def test_facts_hold_no_tensors(tmp_path):
    error = report_models.failure("diverged", tmp_path / "model.onnx")
    json.dumps(finite(error.facts), allow_nan=False)
    assert not any(
        isinstance(v, torch.Tensor | list) and v and isinstance(v[0], torch.Tensor) for v in vars(error).values()
    )
