"""Every case of the corpus, exported and compared with eager in ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
import torch
from corpus import Case, all_cases
from fairlead.record import operators, session
from wrapped import Wrap

import fairlead

CASES = all_cases()


def keep(monkeypatch, case: Case) -> None:
    """Records a function whole, so that a row is reached that only programs made elsewhere have."""
    if not session._KEPT:
        session._KEPT.update(operators.kept_functions())
        session._KEPT.update(session._READS)
    space, base, overload = case.op.split(".")
    schema = getattr(getattr(getattr(torch.ops, space), base), overload)._schema
    kept = operators.Kept(case.op, "self")
    kept.params = [(a.name, a.has_default_value(), a.default_value) for a in schema.arguments]
    kept.names = [a.name for a in schema.arguments]
    monkeypatch.setitem(session._KEPT, case.keep, kept)


def assert_program_agrees(case: Case, model: torch.nn.Module, inputs: tuple, path) -> None:
    """The same for a program of torch.export, with every dim free that it lets vary."""
    free = () if case.fixed else tuple(dict.fromkeys(range(t.dim()), torch.export.Dim.AUTO) for t in inputs)
    program = torch.export.export(model, inputs, dynamic_shapes=(free,) if free else None)
    found = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert case.op.removeprefix("higher_order.") in found, f"{case.op} is not in the program: {sorted(found)}"
    if case.differs:
        with pytest.raises(fairlead.Discrepancy, match=case.differs):
            fairlead.export(program, path, tolerance=case.tolerance)
        return
    result = fairlead.export(program, path, tolerance=case.tolerance)
    assert case.fixed or result.contract.symbols, "no dim is free"
    assert max(row["scaled"] for row in result.discrepancies) <= case.tolerance


@pytest.mark.parametrize("case", CASES, ids=[c.id for c in CASES])
def test_operator_matches_eager(case: Case, tmp_path, monkeypatch):
    if case.keep:
        keep(monkeypatch, case)
    torch.manual_seed(0)
    inputs = case.make()
    model = Wrap(case.fn).eval()
    path = tmp_path / "model.onnx"
    if case.traced:
        assert_program_agrees(case, model, inputs, path)
        return
    options = {"dynamic_shapes": tuple({} for _ in inputs)} if case.fixed else {}
    if case.error:
        with pytest.raises(fairlead.Unsupported, match=case.error):
            fairlead.export(model, inputs, path, verify=False, **options)
        return
    if case.differs:
        with pytest.raises(fairlead.Discrepancy, match=case.differs):
            fairlead.export(model, inputs, path, tolerance=case.tolerance, **options)
        return
    result = fairlead.export(model, inputs, path, verify=not case.random, tolerance=case.tolerance, **options)
    assert case.op in result.recorded_operators, f"{case.op} was not executed: {sorted(result.recorded_operators)}"
    if case.random:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        flat = fairlead.tree.get_leaf_tensors(list(inputs))
        names = [i.name for i in session.get_inputs()]
        got = session.run(None, dict(zip(names, [t.numpy() for t in flat.values()], strict=True)))
        expected = list(fairlead.tree.get_leaf_tensors(model(*inputs)).values())
        assert [g.shape for g in got] == [tuple(e.shape) for e in expected]
        assert [g.dtype for g in got] == [e.numpy().dtype for e in expected]
    else:
        assert result.discrepancies, "nothing was compared"
        worst = max(row["scaled"] for row in result.discrepancies)
        assert np.isfinite(worst)
        assert worst <= case.tolerance
