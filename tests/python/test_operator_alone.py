"""The sizes of results of operators that have no rule: the operator alone is asked, without data."""

import pytest
import torch
import torch.nn.functional as F
from fairlead.record.alone_sizes import alone_sizes

import fairlead


class Folded(torch.nn.Module):
    def forward(self, x):
        n = 2 * x.shape[2] + 1
        columns = x.repeat(1, 4, 1)[:, :, :1].expand(-1, -1, 2 * (n - 1))
        return F.fold(columns, (3, n), 2), torch.diag_embed(x, 1)


class Bags(torch.nn.Module):
    """Some of its results are of other sizes without data, and nothing reads them."""

    def __init__(self):
        super().__init__()
        self.bags = torch.nn.EmbeddingBag(10, 4)

    def forward(self, ids):
        return self.bags(ids)


class Normalised(torch.nn.Module):
    """Without data, batch norm has statistics in evaluation, too."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv1d(2, 4, 3, padding=1), torch.nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.conv(x)).relu()


@pytest.mark.parametrize(
    ("model", "args", "symbols"),
    [
        (Folded(), (torch.randn(2, 3, 5),), ["batch", "x_dim_1", "x_dim_2"]),
        (Bags(), (torch.randint(0, 10, (4, 6)),), ["batch", "ids_dim_1"]),
        (Normalised(), (torch.randn(2, 2, 9),), ["batch", "x_dim_2"]),
    ],
    ids=["fold", "bags", "batch norm"],
)
def test_operators_without_a_rule_are_exact(model, args, symbols):
    result = fairlead.export(model.eval(), args)
    assert [symbol["name"] for symbol in result.contract.symbols] == symbols
    assert "is taken to be" not in str(result.contract)
    assert sum(row["kind"] == "unseen" for row in result.discrepancies) >= 3


def test_an_operator_answers_with_sizes():
    tensor = ([3, 8, 10], "float32")
    asked = [[tensor, [4, n], [2, 2], [1, 1], [0, 0], [1, 1]] for n in (2, 3)]
    assert alone_sizes("aten.col2im.default", asked) == [None, None]  # 10 columns are not 3 times n - 1
    asked = [[([3, 8, 3 * (n - 1)], "float32"), [4, n], [2, 2], [1, 1], [0, 0], [1, 1]] for n in (2, 5)]
    assert alone_sizes("aten.col2im.default", asked) == [[[3, 2, 4, 2]], [[3, 2, 4, 5]]]
    assert alone_sizes("aten.nonzero.default", [[([3], "bool")]]) == [None]  # its data decide
    assert alone_sizes("nobody.knows.this", [[], None]) == [None, None]
    assert alone_sizes("aten.relu.default", [None, [([2, 0], "float64")]]) == [None, [[2, 0]]]
