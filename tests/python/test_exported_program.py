"""Programs of torch.export, in memory and from .pt2 files: the second way in."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch._higher_order_ops import map as torch_map
from torch._higher_order_ops import scan, while_loop

import fairlead
from fairlead import _core

ROOT = Path(__file__).parent.parent.parent
Dim = torch.export.Dim
BATCH = Dim("batch", min=2, max=64)


def run(path, *arrays):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return session.run(None, dict(zip(names, [np.asarray(a) for a in arrays], strict=True)))


def agrees(path, model, *calls, atol=1e-5):
    """The file against eager at each call. 1e-5: sums of a few products in float32."""
    for call in calls:
        with torch.no_grad():
            expected = model(*call)
        expected = expected if isinstance(expected, (tuple, list)) else (expected,)
        for got, want in zip(run(path, *call), expected, strict=True):
            np.testing.assert_allclose(got, want.numpy(), atol=atol)


def unseen(result) -> list[dict]:
    return [row for row in result.discrepancies if row["kind"] == "unseen"]


# ---- plain programs --------------------------------------------------------------------------------------


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))

    def forward(self, x):
        return self.layers(x)


@pytest.fixture(scope="module")
def mlp():
    torch.manual_seed(0)
    model = Mlp().eval()
    return model, torch.export.export(model, (torch.rand(3, 4),), dynamic_shapes=({0: BATCH},))


def test_a_program_in_memory_and_its_file_give_the_same_model(mlp, tmp_path):
    model, program = mlp
    result = fairlead.export(program, tmp_path / "memory.onnx")
    torch.export.save(program, tmp_path / "program.pt2")
    from_file = fairlead.export(tmp_path / "program.pt2", tmp_path / "file.onnx")
    assert result.operators == from_file.operators
    assert str(result.contract) == str(from_file.contract)
    for name in ("memory", "file"):
        agrees(tmp_path / f"{name}.onnx", model, (torch.rand(2, 4),), (torch.rand(7, 4),), (torch.rand(64, 4),))


def test_the_contract_has_the_range_constraints(mlp, tmp_path):
    result = fairlead.export(mlp[1], tmp_path / "m.onnx")
    assert "batch: from axis 0 of x; ran at 3, allowed 2 to 64" in str(result.contract)
    assert "Assumed" not in str(result.contract)  # torch.export has proved it
    assert len(unseen(result)) >= 3
    assert all(2 <= row["sizes"]["batch"] <= 64 and row["sizes"]["batch"] != 3 for row in unseen(result))


def test_weights_are_not_copied(mlp, tmp_path):
    """The core is given addresses: what is written afterwards is what the tensors hold then."""
    from fairlead.programs.export import imported

    program = torch.export.export(Mlp().eval(), (torch.rand(3, 4),))
    core = imported(program, [])
    with torch.no_grad():
        for tensor in program.state_dict.values():
            tensor.zero_()
    del program, tensor
    core.lower(20).write(str(tmp_path / "m.onnx"), "never").commit()
    np.testing.assert_array_equal(run(tmp_path / "m.onnx", torch.rand(3, 4))[0], np.zeros((3, 2), np.float32))
    result = fairlead.export(mlp[1])
    assert result.path == ""
    assert result.model.node_count == result.nodes


def test_a_model_traced_by_torch_export_varies_what_the_prober_found(tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Dropout(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 5),
    ).eval()  # fmt: skip
    path = tmp_path / "conv.onnx"
    result = fairlead.export(model, (torch.rand(2, 3, 8, 8),), path, tracer="torch.export")
    assert result.contract.symbols[0]["name"] == "batch"
    assert result.contract.inputs[0]["shape"][1] == "3"
    agrees(path, model, (torch.rand(5, 3, 9, 12),), (torch.rand(2, 3, 6, 7),))


def test_named_dims_are_kept_and_tie_inputs(tmp_path):
    class Sum(torch.nn.Module):
        def forward(self, x, y):
            return x.sum(1) * y.sum(1)

    path = tmp_path / "sum.onnx"
    result = fairlead.export(
        Sum().eval(), (torch.rand(3, 4), torch.rand(3, 6)), path, tracer="torch.export",
        dynamic_shapes={"x": {0: "rows", 1: "left"}, "y": {0: "rows", 1: Dim("right", min=2, max=9)}},
    )  # fmt: skip
    assert [i["shape"] for i in result.contract.inputs] == [["rows", "left"], ["rows", "right"]]
    assert {s["name"]: s["max"] for s in result.contract.symbols}["right"] == 9
    agrees(path, Sum(), (torch.rand(5, 2), torch.rand(5, 9)))


def test_writes_of_a_program_are_functional(tmp_path):
    class Writes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(4))

        def forward(self, x):
            self.count.add_(x.sum(0))
            padded = torch.zeros(x.shape[0] + 2, 4)
            padded[1:-1] = x
            padded[:, 0].mul_(3)
            return padded + self.count

    model = Writes()
    path = tmp_path / "writes.onnx"
    program = torch.export.export(model, (torch.rand(3, 4),), dynamic_shapes=({0: BATCH},))
    result = fairlead.export(program, path)
    assert result.contract.written == ["count"]
    x = torch.rand(6, 4)
    agrees(path, Writes(), (x,))
    # A program that torch has made functional says what is written in its signature.
    functional = fairlead.export(program.run_decompositions({}), tmp_path / "functional.onnx")
    assert functional.contract.written == ["count"]
    agrees(tmp_path / "functional.onnx", Writes(), (x,))


def test_a_tied_weight_is_stored_once(tmp_path):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(500, 16)
            self.head = torch.nn.Linear(16, 500, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids):
            return self.head(self.embed(ids))

    model = Tied().eval()
    program = torch.export.export(model, (torch.randint(0, 500, (2, 5)),), dynamic_shapes=({0: BATCH, 1: Dim.DYNAMIC},))
    torch.export.save(program, tmp_path / "tied.pt2")
    result = fairlead.export(tmp_path / "tied.pt2", tmp_path / "tied.onnx")
    assert result.model_bytes + result.external_bytes < 1.5 * 500 * 16 * 4
    agrees(tmp_path / "tied.onnx", model, (torch.randint(0, 500, (4, 9)),))


def test_sizes_that_data_decides(tmp_path):
    class Selected(torch.nn.Module):
        def forward(self, x):
            return x[x.sum(1) > 0] * 2

    path = tmp_path / "selected.onnx"
    program = torch.export.export(Selected(), (torch.randn(6, 3),), dynamic_shapes=({0: BATCH},))
    fairlead.export(program, path)
    agrees(path, Selected(), (torch.randn(9, 3),), (-torch.rand(4, 3),))


def test_a_value_that_is_read_is_a_size(tmp_path):
    class Cut(torch.nn.Module):
        def forward(self, x, n):
            k = n.item()
            torch._check(k >= 0)
            torch._check(k <= x.shape[0])
            return x[:k] + k

    path = tmp_path / "cut.onnx"
    program = torch.export.export(Cut(), (torch.rand(6, 3), torch.tensor(2)), dynamic_shapes=({0: BATCH}, None))
    fairlead.export(program, path)
    agrees(path, Cut(), (torch.rand(9, 3), torch.tensor(5)), (torch.rand(4, 3), torch.tensor(0)))


def test_operators_that_torch_takes_apart(tmp_path):
    """Composite operators stay whole in a program: some are rewritten by the core, the others by torch."""

    class Composite(torch.nn.Module):
        def forward(self, x):
            a, b = x.chunk(2, 1)
            c = torch.movedim(x.unflatten(1, (2, 2)), 1, 2).narrow(1, 0, 1).flatten(1)
            d = torch.nn.functional.one_hot(x.argmax(1), 4).to(x.dtype)
            e = torch.einsum("ij,kj->ik", x, x).sum(1, keepdim=True)
            return torch.hstack([a.expand_as(b), c.tile((1, 2)), d, e, x.mT.mT])

    path = tmp_path / "composite.onnx"
    program = torch.export.export(Composite(), (torch.rand(3, 4),), dynamic_shapes=({0: BATCH},))
    fairlead.export(program, path)
    agrees(path, Composite(), (torch.rand(7, 4),))


# ---- control flow ----------------------------------------------------------------------------------------


class Branch(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.linear(x), lambda x: x * 2 - 1, (x,))


class BranchOnSize(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.shape[0] > 4, lambda x: x + x.shape[0], lambda x: x * 2, (x,))


class Nested(torch.nn.Module):
    def forward(self, x):
        def inner(x):
            return torch.cond(x.sum() > 5, lambda x: x - 5, lambda x: x + 5, (x,))

        return torch.cond(x.sum() > 0, inner, lambda x: x.abs(), (x,))


class While(torch.nn.Module):
    def forward(self, x, n):
        return while_loop(lambda n, y: n > 0, lambda n, y: (n - 1, y * 2 + x.sum()), (n, x))


class Scan(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(4))

    def forward(self, x):
        return scan(lambda c, x: (c + x, c * x * self.weight), torch.zeros(4), x, dim=0)


class Map(torch.nn.Module):
    def forward(self, x, y):
        return torch_map(lambda x, y: torch.softmax(x, -1) * y.sum(), x, y)


def rows(n):
    torch.manual_seed(n)
    return torch.rand(n, 4)


CONTROL = [
    (Branch(), "If", [(rows(3),), (-rows(3),), (rows(7),), (-rows(2),)]),
    (BranchOnSize(), "If", [(rows(3),), (rows(4),), (rows(5),), (rows(9),)]),
    (Nested(), "If", [(rows(2),), (-rows(2),), (rows(30),), (-rows(9),)]),
    (While(), "Loop", [(rows(3), torch.tensor(3)), (rows(5), torch.tensor(0)), (rows(2), torch.tensor(7))]),
    (Scan(), "Scan", [(rows(3),), (rows(2),), (rows(11),)]),
    (Map(), "Scan", [(rows(3), rows(2)), (rows(8), rows(2)), (rows(2), rows(2))]),
]


def test_functions_have_parameters_where_dynamo_was_imported_before(tmp_path):
    """Exports then run what was compiled as it is, but for what torch.export takes apart itself."""
    import torch._dynamo  # noqa: F401

    model = Branch().eval()
    fairlead.export(model, (rows(3),), tmp_path / "model.onnx")
    agrees(tmp_path / "model.onnx", model, (rows(3),), (-rows(5),))


@pytest.mark.parametrize(("model", "operator", "calls"), CONTROL, ids=[type(row[0]).__name__ for row in CONTROL])
def test_control_flow(model, operator, calls, tmp_path):
    model.eval()
    shapes = ({0: BATCH},) + (None,) * (len(calls[0]) - 1)
    program = torch.export.export(model, calls[0], dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "program.pt2")
    result = fairlead.export(tmp_path / "program.pt2", tmp_path / "model.onnx")
    assert result.operators[operator] == (2 if isinstance(model, Nested) else 1)
    assert len(unseen(result)) >= 3
    agrees(tmp_path / "model.onnx", model, *calls)


# ---- Transformers ----------------------------------------------------------------------------------------

TINY = {
    "vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
}  # fmt: skip


def test_bert(tmp_path):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    model = transformers.BertModel(transformers.BertConfig(**TINY)).eval()
    ids = torch.randint(0, 50, (2, 7))
    dims = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
    program = torch.export.export(
        model, (), {"input_ids": ids, "attention_mask": torch.ones_like(ids)},
        dynamic_shapes={"input_ids": dims, "attention_mask": dims}, strict=False,
    )  # fmt: skip
    torch.export.save(program, tmp_path / "bert.pt2")
    result = fairlead.export(tmp_path / "bert.pt2", tmp_path / "bert.onnx")
    assert [i["name"] for i in result.contract.inputs] == ["input_ids", "attention_mask"]
    assert [o["name"] for o in result.contract.outputs] == ["last_hidden_state", "pooler_output"]
    assert not [a for a in result.contract.assumptions if a["kind"] == "random"]
    ids = torch.randint(0, 50, (3, 11))
    want = model(input_ids=ids, attention_mask=torch.ones_like(ids))
    got = run(tmp_path / "bert.onnx", ids, torch.ones_like(ids))
    np.testing.assert_allclose(got[0], want.last_hidden_state.detach().numpy(), atol=1e-5)


def test_llama_with_its_cache(tmp_path):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**TINY, num_key_value_heads=1)).eval()
    ids = torch.randint(0, 50, (2, 7))
    with torch.no_grad():
        cache = model(ids, use_cache=True).past_key_values
    inputs = {"input_ids": ids[:, :3].clone(), "attention_mask": torch.ones(2, 10, dtype=torch.int64),
              "past_key_values": cache}  # fmt: skip
    result = fairlead.export(model, inputs, tmp_path / "llama.onnx", tracer="torch.export")
    names = [i["name"] for i in result.contract.inputs]
    assert names == [
        "input_ids",
        "attention_mask",
        *(f"past_key_values.{k}.{w}" for k in (0, 1) for w in ("key", "value")),
    ]
    shapes = {i["name"]: i["shape"] for i in result.contract.inputs}
    assert shapes["past_key_values.0.key"][2] == shapes["past_key_values.1.value"][2] == "past"
    assert "present.1.value" in [o["name"] for o in result.contract.outputs]
    assert len(unseen(result)) >= 3


# ---- bad input -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def archive(mlp, tmp_path_factory):
    path = tmp_path_factory.mktemp("pt2") / "program.pt2"
    torch.export.save(mlp[1], path)
    return path.read_bytes()


def refused(tmp_path, data: bytes, kind) -> str:
    path = tmp_path / "bad.pt2"
    path.write_bytes(data)
    with pytest.raises(kind) as caught:
        fairlead.export(path, tmp_path / "bad.onnx", verify=False)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "bad.onnx").exists()
    return str(caught.value)


def test_a_value_that_is_made_twice_is_refused(tmp_path):
    data = (Path(__file__).parents[2] / "fuzz/corpus/read_pt2/names_made_twice.pt2").read_bytes()
    assert "Expected one origin of 'add_', got a second" in refused(tmp_path, data, fairlead.ParseError)


def test_files_that_are_no_programs(archive, tmp_path):
    assert "a file of 5 bytes" in refused(tmp_path, b"hello", fairlead.ParseError)
    assert "cut off" in refused(tmp_path, archive[:3000], fairlead.ParseError)
    newer = archive.replace(b'"major": 8', b'"major": 9')
    assert "schema version 8, got version 9" in refused(tmp_path, newer, fairlead.Unsupported)
    missing = archive.replace(b'"path_name": "weight_1"', b'"path_name": "weight_7"')
    assert "weight_7, got no such entry" in refused(tmp_path, missing, fairlead.InvalidInput)
    with pytest.raises(fairlead.WriteError, match=r"Could not read 'none\.pt2'"):
        fairlead.export("none.pt2", tmp_path / "x.onnx")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_cut_or_flipped_byte_is_one_error_or_a_program(archive, tmp_path, data):
    cut = data.draw(st.integers(0, len(archive)))
    at = data.draw(st.integers(0, len(archive) - 1))
    damaged = bytearray(archive[:cut] if data.draw(st.booleans()) else archive)
    if at < len(damaged):
        damaged[at] = data.draw(st.integers(0, 255))
    path = tmp_path / "any.pt2"
    path.write_bytes(damaged)
    message = ""
    try:
        _core.read_pt2(str(path))
    except fairlead.FairleadError as error:
        assert not isinstance(error, fairlead.InternalError), error  # noqa: PT017 - reading may also succeed
        message = str(error)
    assert "\n" not in message


def test_an_operator_without_a_lowering_is_named(tmp_path):
    with torch.library._scoped_library("pt2_test", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        library.impl("twice", lambda x: torch.empty_like(x), "Meta")

        class Custom(torch.nn.Module):
            def forward(self, x):
                return torch.ops.pt2_test.twice(x)

        program = torch.export.export(Custom(), (torch.rand(2),))
        text = r"pt2_test.twice.default \(1x, first in the model at test_"
        with pytest.raises(fairlead.Unsupported, match=text) as caught:
            fairlead.export(program, tmp_path / "custom.onnx")
    assert caught.value.details[0]["operator"] == "pt2_test.twice.default"
    assert caught.value.facts["stage"] == "lower"
    assert "pt2_test.twice.default" in Path(caught.value.report(tmp_path / "why.html")).read_text()


def test_wrong_requests(mlp, tmp_path):
    model, program = mlp
    with pytest.raises(fairlead.InvalidInput, match=r'Expected tracer "observe" or "torch\.export", got'):
        fairlead.export(model, (torch.rand(2, 4),), tmp_path / "x.onnx", tracer="jit")
    with pytest.raises(fairlead.InvalidInput, match="got inputs too"):
        fairlead.export(program, (torch.rand(2, 4),), tmp_path / "x.onnx")
    with pytest.raises(fairlead.InvalidInput, match="Expected 1 input_names, one per tensor"):
        fairlead.export(program, tmp_path / "x.onnx", input_names=["a", "b"])

    class Reads(torch.nn.Module):
        def forward(self, x):
            return x + 1 if bool(x.sum() > 0) else x

    with pytest.raises(fairlead.Unsupported, match=r"Expected a model that torch\.export can trace") as caught:
        fairlead.export(
            Reads().eval(), (torch.rand(2, 4),), tmp_path / "x.onnx", tracer="torch.export", dynamic_shapes=(None,)
        )
    assert "\n" not in str(caught.value)


def test_names_can_be_given(mlp, tmp_path):
    result = fairlead.export(mlp[1], tmp_path / "m.onnx", input_names=["features"], output_names=["scores"])
    assert result.contract.inputs[0]["name"] == "features"
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    assert [session.get_inputs()[0].name, session.get_outputs()[0].name] == ["features", "scores"]


# ---- the table of operators ---------------------------------------------------------------------------------------


def test_the_table_of_operators_is_what_torch_says():
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "operator_table.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


# ---- command line ----------------------------------------------------------------------------------------


def test_convert_on_the_command_line(archive, tmp_path):
    (tmp_path / "p.pt2").write_bytes(archive)
    command = [sys.executable, "-m", "fairlead", "convert", "p.pt2", "--quiet", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["path"] == "p.onnx"
    bad = subprocess.run([*command[:4], "none.pt2"], cwd=tmp_path, capture_output=True, text=True)
    assert bad.returncode == 1
    assert "Could not read 'none.pt2'" in bad.stderr.replace("\n", " ")
