"""Nothing is silent: what a model does that cannot be exported is one line with the user's own source line."""

from __future__ import annotations

import re

import onnxruntime
import pytest
import torch
from torch.export import Dim
from untouched import Fn, line_of, refusal, untouched

import fairlead
from fairlead import _core

torch.manual_seed(0)
X = torch.rand(3, 4) + 0.1


@torch.library.custom_op("fairlead_test::wave", mutates_args=())
def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 2


@torch.library.custom_op("fairlead_test::fold", mutates_args=())
def fold(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class Inner(torch.nn.Module):
    def forward(self, x):
        y = wave(x)
        return y + fold(x)


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.layers = torch.nn.ModuleList([Inner(), Inner(), Inner()])

    def forward(self, x):
        x = self.linear(x)
        for layer in self.layers:
            x = layer(x)
        return fold(x)


def test_all_unsupported_operators_are_in_one_error_with_count_module_and_line(tmp_path):
    text = refusal(fairlead.Unsupported, Outer().eval(), (X,), tmp_path)
    assert text == (
        "[lower] Expected operators that can be written to ONNX, got 2 that cannot: "
        f"fairlead_test.fold.default (4x, first in layers.0 at {line_of(Inner.forward, 'fold(x)')}); "
        f"fairlead_test.wave.default (3x, first in layers.0 at {line_of(Inner.forward, 'wave(x)')}). "
        "Register a lowering for each, or replace them in the model."
    )


# ---- a branch on a size ------------------------------------------------------------------------------


def branch_on_size(x):
    if x.shape[0] > 4:
        return x * 2
    return x + 1


def test_a_branch_on_a_size_is_in_the_file_and_the_contract_quotes_both_lines(tmp_path):
    model = Fn(branch_on_size)
    with untouched(model):
        result = fairlead.export(model, (X,), tmp_path / "model.onnx")
    assert result.contract.inputs[0]["shape"] == ["batch", "x_dim_1"]
    (note,) = result.contract.notes
    assert note == (
        f"at batch = 5 and more the model executes another program (aten.mul.Tensor at "
        f"{line_of(branch_on_size, 'x * 2')} instead of aten.add.Tensor at {line_of(branch_on_size, 'x + 1')}): "
        "the file holds both"
    )
    assert note in str(result.contract)


def loop_over_a_size(x):
    unlike = (0, 1, 3, 6, 10, 15)  # no period: the steps cannot be rolled
    return torch.stack([row * 2 if k in unlike else row + 1 for k, row in enumerate(x)])


def test_a_loop_of_unlike_steps_fixes_the_dimension_and_the_contract_quotes_the_line(tmp_path):
    model = Fn(loop_over_a_size)
    with untouched(model):
        result = fairlead.export(model, (X,), tmp_path / "model.onnx")
    assert result.contract.inputs[0]["shape"] == ["3", "x_dim_1"]
    (fixed,) = result.contract.fixed
    line = line_of(loop_over_a_size, "enumerate(x)")
    assert fixed["reason"] == f"the model executes aten.unbind.int at {line} with other arguments"
    assert f"axis 0 of x = 3: {fixed['reason']}" in str(result.contract)


def untold_branch(x):
    if len("#" * x.shape[0]) > 4:  # a number that Python keeps no memory of
        return x * 2
    return x + 1


def test_a_branch_on_a_size_that_was_asked_to_vary_holds_both(tmp_path):
    shapes = {"x": {0: "n"}}
    result = fairlead.export(Fn(branch_on_size), (X,), tmp_path / "model.onnx", dynamic_shapes=shapes)
    assert "the model executes another program" in str(result.contract)


def test_a_branch_on_a_size_that_was_asked_to_vary_is_an_error_with_both_lines(tmp_path):
    text = refusal(fairlead.Diverged, Fn(untold_branch), (X,), tmp_path, dynamic_shapes={"x": {0: "n"}})
    assert text == (
        "[export] Expected axis 0 of x to be dynamic as dynamic_shapes asks, but at other sizes than 3 the "
        ""
        "model gives: "
        f"the model executes aten.mul.Tensor at {line_of(untold_branch, 'x * 2')} "
        f"where it executed aten.add.Tensor at {line_of(untold_branch, 'x + 1')}. "
        "Mark it static, or change the model there."
    )


def only_the_check_meets() -> str:
    return (
        f"executes aten.add.Tensor at {line_of(branch_on_size, 'x + 1')} where it executed aten.mul.Tensor at "
        f"{line_of(branch_on_size, 'x * 2')}: it branches on a size or a value there"
    )


def test_a_branch_that_only_the_check_meets_is_in_the_file_with_both_lines(tmp_path):
    # Probed at 7 and more, where it never branches; the check at 1 does.
    result = fairlead.export(Fn(branch_on_size), (torch.rand(7, 4),), tmp_path / "model.onnx")
    assert result.contract.symbols[0]["min"] == 1
    assert result.contract.notes == [
        f"at batch = 1 to 4 the model executes another program (aten.add.Tensor at {line_of(branch_on_size, 'x + 1')} "
        f"instead of aten.mul.Tensor at {line_of(branch_on_size, 'x * 2')}): the file holds both"
    ]


def test_a_branch_is_in_the_file_where_the_dimension_was_asked_for_and_not_where_bounds_exclude_it(tmp_path):
    shapes = {"x": {0: "n", 1: "m"}}
    result = fairlead.export(Fn(branch_on_size), (torch.rand(7, 4),), tmp_path / "model.onnx", dynamic_shapes=shapes)
    assert "at n = 1 to 4 the model executes another program" in str(result.contract)
    bounded = {"x": {0: Dim("n", min=5), 1: "m"}}
    result = fairlead.export(Fn(branch_on_size), (torch.rand(7, 4),), tmp_path / "model.onnx", dynamic_shapes=bounded)
    assert "allowed 5 to any" in str(result.contract)
    assert result.contract.notes == []


def test_a_branch_far_from_the_example_is_found_by_its_question(tmp_path):
    def far(x):
        if x.shape[0] > 40:
            return x * 2
        return x + 1

    result = fairlead.export(Fn(far), (X,), tmp_path / "model.onnx")
    assert max(result.contract.symbols[0]["tried"]) > 40
    assert "at batch = 41 and more the model executes another program" in str(result.contract)


def test_every_call_that_was_given_is_checked(tmp_path):
    result = fairlead.export(Fn(lambda x: x * 2), [(X,), (torch.rand(9, 4),)], tmp_path / "model.onnx")
    kinds = [row["kind"] for row in result.discrepancies]
    assert kinds[:7] == ["example", "call"] + ["values"] * 5
    assert len(kinds) > 20  # near, far, and of each symbol alone
    assert set(kinds[7:]) == {"unseen"}
    assert "Checked: in ONNX Runtime at the 2 examples, with 5 other values and at batch=1" in str(result.contract)

    def far(x):
        if x.shape[0] > 40:
            return x * 2
        return x + 1

    result = fairlead.export(Fn(far), [(X,), (torch.rand(50, 4),)], tmp_path / "model.onnx")
    assert "at batch = 41 and more the model executes another program" in result.contract.notes[0]
    text = refusal(fairlead.Diverged, Fn(far), [(X,), (torch.rand(50, 4),)], tmp_path, strict=True)
    assert "but at the sizes of example 1 it executes aten.mul.Tensor at " + line_of(far, "x * 2") in text


# ---- a branch on a value -----------------------------------------------------------------------------


def branch_on_value(x):
    if x.sum() > 0:
        return x * 2
    return x + 1


def refusal_by_value(x):
    if x.sum() > 0:
        return x * 2
    raise ValueError("nothing to scale")


def test_a_branch_on_a_value_stops_the_file_where_the_answer_is_another_one(tmp_path):
    result = fairlead.export(Fn(refusal_by_value), (X,), tmp_path / "model.onnx")
    source = line_of(refusal_by_value, "x.sum()")
    assert f"the file requires read_0 == 1, which the model asks at {source}" in result.contract.notes
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {"x": X.numpy()})
    assert torch.equal(torch.from_numpy(got), branch_on_value(X))
    with pytest.raises(Exception, match="read_0 == 1"):
        session.run(None, {"x": -X.numpy() - 1})


def test_a_branch_on_a_value_is_an_assumption_with_the_line(tmp_path):
    model = Fn(refusal_by_value)
    with untouched(model):
        result = fairlead.export(model, (X,), tmp_path / "model.onnx", verify=False)
    (assumption,) = result.contract.assumptions
    assert assumption == {
        "kind": "read", "what": "read True from a tensor in every run and may go by it", "module": "",
        "source": line_of(refusal_by_value, "x.sum()"), "count": 1,
    }  # fmt: skip
    line = f"read True from a tensor in every run and may go by it (in the model at {assumption['source']})"
    assert line in str(result.contract)


def test_strict_makes_the_assumption_an_error(tmp_path):
    text = refusal(fairlead.Diverged, Fn(branch_on_value), (X,), tmp_path, strict=True)
    assert text == (
        "[export] Expected no assumption about values because strict=True, got 1: read True from a tensor in "
        ""
        "every run and "
        f"may go by it (in the model at {line_of(branch_on_value, 'x.sum()')}). "
        "Write the model without reading values, or export with strict=False."
    )


def test_a_number_that_is_read_and_computed_with_is_no_assumption(tmp_path):
    def scaled(x):
        return x * x.flatten()[0].item()

    torch.manual_seed(1)
    result = fairlead.export(Fn(scaled), (torch.rand(3, 4) + 1,), tmp_path / "model.onnx")
    assert not result.contract.assumptions


# ---- an integer that nothing explains ------------------------------------------------------------------


def unexplained(x):
    count = len(str(x.shape[0] ** 5)) * 7 + x.shape[0] % 3 * 11
    return x.new_zeros(count) + x.sum()


def test_an_integer_that_nothing_explains_is_unsolved_with_the_line_where_it_was_asked_for(tmp_path):
    text = refusal(fairlead.Unsolved, Fn(unexplained), (X,), tmp_path, dynamic_shapes={"x": {0: "n"}})
    assert text.startswith("[export] Expected every integer to follow from the input sizes, got size = 21, ")
    assert text.endswith(
        f"over the runs (aten.new_zeros.default at {line_of(unexplained, 'new_zeros')}). "
        "Fix the dimension it depends on with dynamic_shapes."
    )
    with pytest.raises(fairlead.Unsolved) as raised:
        fairlead.export(Fn(unexplained), (X,), tmp_path / "model.onnx", strict=True)
    cause = raised.value.cause
    assert str(raised.value) == f"[export] {cause}. Fix the dimension it depends on with dynamic_shapes."


def test_an_integer_that_nothing_explains_fixes_the_dimension_with_the_line(tmp_path):
    result = fairlead.export(Fn(unexplained), (X,), tmp_path / "model.onnx")
    assert result.contract.inputs[0]["shape"] == ["3", "x_dim_1"]
    (fixed,) = result.contract.fixed
    assert fixed["reason"].startswith("Expected every integer to follow from the input sizes, got size = 21, ")
    assert f"aten.new_zeros.default at {line_of(unexplained, 'new_zeros')}" in fixed["reason"]
    assert "strict" not in refusal(fairlead.Unsolved, Fn(unexplained), (X,), tmp_path, strict=True)


# ---- a result that differs -----------------------------------------------------------------------------


@pytest.fixture
def wrong_results(monkeypatch):
    """ONNX Runtime computes something else: as a wrong lowering would."""
    from fairlead.verify import runtime_check

    run = runtime_check.OnnxSession.run

    def shifted(self, feeds):
        name, value = next(iter(feeds.items()))
        return run(self, feeds | {name: value + (value.shape[0] == 8)})

    monkeypatch.setattr(runtime_check.OnnxSession, "run", shifted)


@pytest.mark.parametrize("external", ["never", "always"])
def test_a_wrong_result_names_output_sizes_and_difference_and_an_older_file_stays(tmp_path, wrong_results, external):
    class TwoOutputs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(32, 32)

        def forward(self, x):
            return {"same": self.linear.weight * 2, "moved": x * 0.5 + self.linear.bias}

    (tmp_path / "model.onnx").write_bytes(b"older")
    (tmp_path / "model.onnx.data").write_bytes(b"older data")
    model = TwoOutputs().eval()
    text = refusal(fairlead.Discrepancy, model, (torch.rand(3, 32),), tmp_path, external_data=external)
    text = re.sub(r"differs by \S+", "differs by 0.5", text)  # of its largest value, which is drawn
    assert text == (
        "[verify] Expected ONNX Runtime to agree with eager, but output 'moved' differs by 0.5 (scaled), more "
        ""
        "than 0.0001 "
        f"at batch = 8. No file was written under {tmp_path / 'model.onnx'}. The first operator that differs is "
        f"aten.add.Tensor at {line_of(TwoOutputs.forward, 'x * 0.5')}: differs by 0.5 (scaled), more than 0.0001."
    )


def test_a_wrong_result_is_written_where_nobody_asked_for_the_check(tmp_path, wrong_results):
    result = fairlead.export(Fn(lambda x: x * 2), (X,), tmp_path / "model.onnx", verify=False)
    assert result.discrepancies == []
    assert str(result.contract).endswith("Checked: not verified")


def test_a_result_of_another_shape_is_named(tmp_path, monkeypatch):
    from fairlead.verify import runtime_check

    run = runtime_check.OnnxSession.run
    monkeypatch.setattr(
        runtime_check.OnnxSession, "run", lambda self, feeds: run(self, {k: v[:1] for k, v in feeds.items()})
    )
    text = refusal(fairlead.Discrepancy, Fn(lambda x: x * 2), (X,), tmp_path)
    assert "but output 'output' float32[1, 4], eager has float32[3, 4] at the example's sizes." in text


def test_a_file_that_onnx_runtime_cannot_load_is_not_written(tmp_path, monkeypatch):
    from fairlead.targets import onnx

    def broken(path, **how):
        raise RuntimeError("node Foo: no kernel\nand more")

    monkeypatch.setattr(onnx, "OnnxSession", broken)
    text = refusal(fairlead.Discrepancy, Fn(lambda x: x * 2), (X,), tmp_path)
    assert text == (
        "[verify] Expected a file that ONNX Runtime loads, got: node Foo: no kernel. "
        f"No file was written under {tmp_path / 'model.onnx'}."
    )


# ---- what a model leaves behind ------------------------------------------------------------------------


class Remembers(torch.nn.Module):
    """Writes a buffer, replaces another, counts, and keeps what it saw; then it fails."""

    def __init__(self, fails: bool):
        super().__init__()
        self.register_buffer("total", torch.zeros(()))
        self.register_buffer("last", torch.zeros(3))
        self.seen, self.calls, self.fails = [], 0, fails

    def forward(self, x):
        self.total += 1
        self.last = x.sum(1)
        self.seen.append(x)
        self.calls += 1
        return wave(x) if self.fails else x * 2


@pytest.mark.parametrize("fails", [True, False])
def test_what_a_forward_pass_leaves_on_the_model_is_put_back(tmp_path, fails):
    model = Remembers(fails).eval()
    with untouched(model):
        if fails:
            with pytest.raises(fairlead.Unsupported):
                fairlead.export(model, (X,), tmp_path / "model.onnx")
        else:
            fairlead.export(model, (X,), tmp_path / "model.onnx")
    assert model.total.item() == 0


def test_the_inputs_are_not_written(tmp_path):
    x = torch.rand(3, 4)
    before = x.clone()
    fairlead.export(Fn(lambda x: x.mul_(2) + 1), (x,), tmp_path / "model.onnx")
    assert torch.equal(x, before)


def test_a_fault_of_ours_is_not_taken_for_the_model_refusing(tmp_path, monkeypatch):
    from fairlead.record import session

    def broken(*args):
        raise AttributeError("ours")

    monkeypatch.setattr(session, "leaf_tensors", broken)
    with pytest.raises(AttributeError, match="ours"):
        fairlead.export(Fn(lambda x: x * 2), (X,), tmp_path / "model.onnx")


def test_every_error_is_a_fairlead_error_and_has_its_words():
    for name in ("InvalidInput", "Unsupported", "Diverged", "Unsolved", "Discrepancy", "WriteError", "ParseError"):
        assert issubclass(getattr(fairlead, name), fairlead.FairleadError)
        assert getattr(_core, name).__doc__
