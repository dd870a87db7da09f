"""Every case of the corpus, exported and compared with eager in ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
import torch
from corpus import Case, all_cases

import fairlead


class Wrap(torch.nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args)


CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=[c.id for c in CASES])
def test_operator_matches_eager(case: Case, tmp_path):
    torch.manual_seed(0)
    inputs = case.make()
    model = Wrap(case.fn).eval()
    path = tmp_path / "model.onnx"
    options = {"dynamic_shapes": tuple({} for _ in inputs)} if case.fixed else {}
    if case.error:
        with pytest.raises(fairlead.Unsupported, match=case.error):
            fairlead.export(model, inputs, path, verify=False, **options)
        return
    result = fairlead.export(model, inputs, path, verify=not case.random, tolerance=case.tolerance, **options)
    assert case.op in result.recorded_operators, f"{case.op} was not executed: {sorted(result.recorded_operators)}"
    if case.random:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        flat = fairlead.get_leaf_tensors(list(inputs))
        names = [i.name for i in session.get_inputs()]
        got = session.run(None, dict(zip(names, [t.numpy() for t in flat.values()], strict=True)))
        expected = list(fairlead.get_leaf_tensors(model(*inputs)).values())
        assert [g.shape for g in got] == [tuple(e.shape) for e in expected]
        assert [g.dtype for g in got] == [e.numpy().dtype for e in expected]
    else:
        assert result.discrepancies, "nothing was compared"
        worst = max(row["scaled"] for row in result.discrepancies)
        assert np.isfinite(worst)
        assert worst <= case.tolerance
