"""Sizes and integers that data decides: right at other data than was recorded."""

import onnxruntime
import pytest
import torch
from wrapped import Wrap

import fairlead


def agree_at(fn, calls, others, tmp_path, **options):
    """Exports from `calls` and compares at them and at `others`, which the export never saw."""
    model = Wrap(fn).eval()
    path = tmp_path / "model.onnx"
    fairlead.export(model, calls, path, **options)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    for inputs in others:
        got = session.run(None, dict(zip(names, [t.numpy() for t in inputs], strict=True)))
        expected = list(fairlead.tree.get_leaf_tensors(model(*inputs)).values())
        for g, e in zip(got, expected, strict=True):
            torch.testing.assert_close(torch.from_numpy(g), e)


def mask(*ones, size=7):
    m = torch.zeros(size, dtype=torch.bool)
    m[list(ones)] = True
    return m


X = torch.arange(21.0).reshape(7, 3)


def count_as_size(x, m):
    y = x[m]
    return y.reshape(y.shape[0] * 3), y.new_ones(y.shape[0], 2), torch.arange(y.shape[0])


def same_mask_twice(x, m):
    return x[m] + (x * 2)[m], x[~m]


def places(x, m):
    (where,) = torch.nonzero(m, as_tuple=True)
    return x[where], where * 2, torch.nonzero(m).squeeze(-1)


def written_back(x, m):
    y = torch.zeros_like(x)
    y[m] = x[m] * 2
    return y.masked_scatter(m[:, None], x[m] + 1)


def sorted_rows(x, m):
    y = x[m]
    return y.sort(0, descending=True).values, y.cumsum(0), y.flip(0)


MASKS = [mask(0, 2, 5), mask(1), mask(0, 1, 2, 3, 4, 5, 6), mask()]


@pytest.mark.parametrize(
    "fn", [count_as_size, same_mask_twice, places, written_back, sorted_rows], ids=lambda f: f.__name__
)
def test_masks(fn, tmp_path):
    agree_at(fn, [(X, mask(0, 2, 5)), (X, mask(1, 3))], [(X, m) for m in MASKS], tmp_path)


def repeated(x, n):
    y = torch.repeat_interleave(x, n, dim=0)
    return y, y.shape[0] * torch.ones(1), y.view(-1, 3).sum(0)


def distinct(x, n):
    values, inverse, counts = torch.unique(n, return_inverse=True, return_counts=True)
    return values, inverse, counts, counts.cumsum(0), inverse.view(-1, 1)


def offsets(x, n):
    ends = n.cumsum(0)
    ids = torch.repeat_interleave(torch.arange(n.shape[0]), n)
    return torch.arange(ids.shape[0]) - (ends - n)[ids]


COUNTS = [torch.tensor(n) for n in ([1, 2, 0, 3, 1, 1, 2], [0, 0, 0, 0, 0, 0, 1], [3, 3, 3, 3, 3, 3, 3])]


@pytest.mark.parametrize("fn", [repeated, distinct, offsets], ids=lambda f: f.__name__)
def test_counts(fn, tmp_path):
    calls = [(X, COUNTS[0]), (X, torch.tensor([2, 2, 1, 0, 4, 1, 1]))]
    agree_at(fn, calls, [(X, n) for n in COUNTS], tmp_path)


def longest(x, n):
    size = int(n.max())
    return torch.arange(size)[None] < n[:, None]


def cut_at(x, n):
    k = n[0].item()
    return x[:k], x[k:]


@pytest.mark.parametrize("fn", [longest, cut_at], ids=lambda f: f.__name__)
def test_read_integers(fn, tmp_path):
    calls = [(X, torch.tensor([3, 2])), (X, torch.tensor([5, 4])), (X, torch.tensor([2, 1]))]
    agree_at(fn, calls, [(X, torch.tensor([4, 1])), (X, torch.tensor([6, 6]))], tmp_path)


@pytest.mark.parametrize("fn", [longest, cut_at], ids=lambda f: f.__name__)
def test_read_integers_of_one_example(fn, tmp_path):
    """Other integers than the example's are tried by the export itself."""
    agree_at(fn, (X, torch.tensor([6, 4])), [(X, torch.tensor([4, 1])), (X, torch.tensor([3, 6]))], tmp_path)


def patches(x, grid):
    """Images of rows * columns patches, one after the other, each summed by row."""
    sums = []
    for image, (rows, columns) in zip(x.split(grid.prod(-1).tolist()), grid.tolist(), strict=True):
        sums.append(image.view(rows, columns, -1).sum(1))
    return torch.cat(sums)


def test_image_grids(tmp_path):
    grids = [torch.tensor(g) for g in ([[2, 3], [4, 2]], [[3, 2], [2, 4]], [[1, 6], [8, 1]], [[2, 4], [3, 2]])]
    x = torch.randn(14, 5)
    agree_at(patches, (x, grids[0]), [(x, g) for g in grids], tmp_path)


class Modes(torch.nn.Module):
    def forward(self, x, mode="plain"):
        return x * 2 if mode == "double" else x


def test_strings_are_built_in_and_the_contract_says_so(tmp_path):
    result = fairlead.export(Modes().eval(), {"x": X, "mode": "double"}, tmp_path / "model.onnx")
    assert "mode = 'double' is built into the file" in result.contract.notes
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": X.numpy()})[0]), X * 2)
    with pytest.raises(fairlead.InvalidInput, match="mode = double in call 0 and plain in call 1"):
        fairlead.export(Modes().eval(), [{"x": X, "mode": "double"}, {"x": X, "mode": "plain"}], tmp_path / "m.onnx")


def test_parts_of_a_tensor_that_are_only_read(tmp_path):
    """x[tuple(place)] with a place that values decide."""
    torch.manual_seed(0)
    others = [(torch.randn(rows, 7),) for rows in (1, 3, 9)]
    agree_at(lambda x: x[tuple((x == x.max()).nonzero()[0])] * 2, (torch.randn(5, 7),), others, tmp_path)


def test_a_count_that_equalled_a_size_in_every_run(tmp_path):
    """Every row is picked in the example: how many are is still what the mask decides."""

    def picked(x, mask):
        rows = mask.nonzero()[:, 0]
        return x[rows].reshape(-1, 2), torch.gather(x, 0, rows[:, None].expand(-1, 4)), x[None][:, rows] + 1

    x, mask = torch.randn(5, 4), torch.ones(5, dtype=torch.int64)
    others = [(torch.randn(6, 4), torch.tensor([1, 0, 1, 1, 0, 0])), (torch.randn(3, 4), torch.tensor([0, 1, 1]))]
    agree_at(picked, (x, mask), others, tmp_path)


def test_tensors_of_equal_rows_made_in_python(tmp_path):
    """torch.tensor([value] * n): as many rows as a size says."""

    def filled(x):
        rows = x.shape[0]
        pairs = torch.tensor([[1, 2]] * rows)
        return x + torch.tensor([5] * rows)[:, None], x * torch.tensor([2.5] * rows)[:, None], pairs.sum(1)

    agree_at(filled, (torch.randn(3, 4),), [(torch.randn(rows, 4),) for rows in (1, 2, 7)], tmp_path)


def moved_product(x, y):
    return torch.bmm(x[x[:, 0, 0] > 0].transpose(0, 1), y.transpose(0, 1).mT).sum(1)


def moved_linear(x, y):
    return torch.nn.functional.linear(x[x[:, 0, 0] > 0].transpose(0, 1), WEIGHT).sum(1) + y.sum()


WEIGHT = torch.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("fn", [moved_product, moved_linear])
def test_a_product_of_nothing_that_was_moved(fn, tmp_path):
    """ONNX Runtime takes the transposition into the product, which ended its process."""
    calls = torch.randn(6, 3, 4), torch.randn(7, 3, 4)
    agree_at(fn, calls, [(-torch.ones(6, 3, 4), torch.randn(7, 3, 4)), calls], tmp_path)


def cropped_to_patches(image):
    """Nothing is left of an image that is smaller than a patch."""
    batch, channels, height, width = image.shape
    x = image[:, :, : height // 4 * 4, : width // 4 * 4]
    x = x.reshape(batch, channels, height // 4, 4, width // 4, 4).permute(0, 2, 4, 1, 3, 5)
    return x.flatten(1, 2).flatten(2)


def test_a_crop_may_leave_nothing(tmp_path):
    others = [
        (torch.randn(size),) for size in ((2, 3, 8, 12), (1, 3, 3, 12), (3, 3, 9, 2), (1, 3, 1, 1), (2, 3, 17, 30))
    ]
    agree_at(cropped_to_patches, (torch.randn(2, 3, 8, 12),), others, tmp_path)


def test_halves_of_nothing(tmp_path):
    def halves(x):
        return torch.nn.functional.glu(x[:, : x.shape[1] // 4 * 2], 1)

    agree_at(halves, (torch.randn(3, 12),), [(torch.randn(3, n),) for n in (1, 3, 4, 30)], tmp_path)


def parts_in_rows(x, lengths):
    """Tensors as bounds of slices, of which one may be cut short."""
    rows = torch.zeros(lengths.shape[0], 12)
    start = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    for k in range(lengths.shape[0]):
        rows[k, : lengths[k]] = x[start[k] : start[k + 1]]
    return rows


def test_tensors_as_bounds_of_slices_are_read(tmp_path):
    calls = torch.randn(9), torch.tensor([2, 4, 3])
    # Of the last, one element is left of three, which PyTorch repeats.
    others = [calls, (torch.randn(9), torch.tensor([5, 1, 3])), (torch.randn(7), torch.tensor([2, 4, 3]))]
    agree_at(parts_in_rows, calls, others, tmp_path)
