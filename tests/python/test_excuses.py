"""Differences that prove nothing: each is excused for one reason, which the contract says, and not beyond it."""

import importlib
import sys

import pytest
import torch
from wrapped import Wrap

import fairlead

IDS = torch.tensor([[3, 5, 7], [2, 9, 4]])


def contract_of(function, *inputs, **options):
    torch.manual_seed(0)
    return fairlead.export(Wrap(function).eval(), inputs, None, **options).contract


def floats(*sizes):
    return torch.rand(*sizes, generator=torch.Generator().manual_seed(0))


def test_integers_that_were_made_up_may_go_beyond_double():
    contract = contract_of(lambda x: (x * x).sum(1), IDS * 3000001)
    assert contract.notes == ["output is exact up to 2^53"]


def test_integers_of_the_example_may_not():
    with pytest.raises(fairlead.Discrepancy, match="2 of 2 int64 values differ at the example's sizes"):
        contract_of(lambda x: (x * x).sum(1), IDS * 100000007)


def test_at_a_tie_eager_itself_jumps():
    contract = contract_of(lambda x: x.kthvalue(3, 1).indices, floats(3, 8))
    (note,) = [note for note in contract.notes if "moved by a step of rounding" in note]
    assert note.startswith("output differs by 4 at the example's sizes with other values (zeros); eager itself by ")


class Sorted(torch.nn.Module):
    """Two of 7710 drawn numbers are equal at 257 rows, and PyTorch's partial sort has them in an order of its own."""

    def forward(self, x):
        return torch.topk(x, 30)


def test_drawn_numbers_may_tie_at_other_sizes():
    torch.manual_seed(17)
    example = torch.stack([torch.randperm(84) for _ in range(3)]).float()
    shapes = {"x": {0: torch.export.Dim("rows")}}
    contract = fairlead.export(Sorted().eval(), (example,), None, dynamic_shapes=shapes).contract
    assert [note for note in contract.notes if "at rows = 257" in note and "moved by a step of rounding" in note]


def test_nothing_may_be_left_to_compute_with():
    contract = contract_of(lambda x, m: x[m].median(), floats(3, 8), torch.ones(3, 8, dtype=torch.bool))
    said = [note for note in contract.notes if note.startswith("output 'output' cannot be computed: ")]
    assert any(note.endswith("with other values (zeros, nothing selected)") for note in said)


def without_mask(x, mask):
    if not torch.compiler.is_compiling() and not bool(mask.numpy().any()):
        return x * 2
    return x * mask + 1


def test_the_file_has_what_the_model_computes_while_it_is_traced():
    contract = contract_of(without_mask, IDS, torch.ones(2, 3, dtype=torch.bool))
    assert (
        "at the example's sizes with other values (zeros, nothing selected) the model computes something else when "
        "torch.compiler.is_compiling(); the file has what it computes then"
    ) in contract.notes


BRANCH = """
def mix(x, ids):
    if str(ids.sum().numpy()).endswith("5"):
        return x.tanh()
    return x.relu()
"""


@pytest.fixture
def package(tmp_path, monkeypatch, request):
    """A module of one's own; with a version it is one that was published."""
    name = f"mixing_{request.param.replace('.', '_')}" if request.param else "mixing"
    version = f"__version__ = {request.param!r}\n" if request.param else ""
    (tmp_path / f"{name}.py").write_text(version + BRANCH)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(name)
    del sys.modules[name]


NUMBERS = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]])


@pytest.mark.parametrize("package", ["1.0"], indirect=True)
@pytest.mark.not_compared("at other values it computes something else: that is the assumption")
def test_a_branch_on_values_in_a_package_is_an_assumption(package):
    contract = contract_of(lambda x, i: package.mix(x - 0.5, i), floats(3, 8), NUMBERS)
    (row,) = [row for row in contract.assumptions if row["kind"] == "values"]
    assert row["what"].startswith("executes aten.relu.default at ")
    assert row["what"].endswith("): the file is for values like the example's there")
    assert row["source"] == f"{package.__file__}:5"
    with pytest.raises(fairlead.Diverged, match="Expected no assumption about values because strict=True"):
        contract_of(lambda x, i: package.mix(x - 0.5, i), floats(3, 8), NUMBERS, strict=True)


@pytest.mark.parametrize("package", [""], indirect=True)
def test_a_branch_on_values_in_code_of_ones_own_is_an_error(package):
    with pytest.raises(fairlead.Diverged, match="it branches on a value there"):
        contract_of(lambda x, i: package.mix(x - 0.5, i), floats(3, 8), NUMBERS)


def test_what_was_excused_is_a_fact_with_its_figures(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRLEAD_TRANSCRIPT", str(tmp_path))
    contract_of(lambda x: x.kthvalue(3, 1).indices, floats(3, 8))
    (path,) = tmp_path.glob("*.json")
    text = path.read_text()
    assert fairlead._core.replay(text) == ""
    (line,) = [line for line in text.splitlines() if '"why":"jumps"' in line]
    assert '"kind":"unproven"' in line
    assert '"differs":4' in line
