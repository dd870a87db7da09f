"""Writes in place, and what views of the written storage read afterwards: ONNX Runtime against eager."""

import copy
import random

import onnxruntime
import pytest
import torch
from wrapped import Wrap

import fairlead


def agree(model, inputs, tmp_path, **options):
    if not isinstance(model, torch.nn.Module):
        model = Wrap(model)
    torch.manual_seed(0)
    return fairlead.export(model.eval(), inputs, tmp_path / "model.onnx", **options)


def free(shape):
    """Every dimension from its size upwards: below it, a cut with constant bounds would be shorter."""
    return {k: torch.export.Dim(f"size_{k}", min=size) for k, size in enumerate(shape)}


def x(*shape):
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape)


def written_slice(a):
    b = a.clone()
    b[:, 1:3] = 0
    return b


def written_steps(a):
    b = a.clone()
    b[::2] += 10
    b[1::3, 1::2] *= 2
    return b


def written_select(a):
    b = a.clone()
    b[1] = a[0]
    b[:, -1] = 5
    b[0, 0] = -1
    return b


def written_through_transpose(a):
    b = a.clone()
    b.t()[1] = 7
    return b


def written_through_permute(a):
    b = a.clone()
    b.permute(2, 0, 1)[1, :, 0] -= 3
    return b


def written_through_view(a):
    b = a.clone()
    b.view(-1)[3:5] = 0
    return b


def written_through_chain(a):
    b = a.clone()
    c = b.transpose(1, 2).unsqueeze(0)[:, 1:]
    c[..., 0].fill_(9)
    return b, c


def written_through_parts(a):
    b = a.clone()
    first, second = b.chunk(2, -1)
    first.mul_(2)
    second.copy_(first + 1)
    return b


def written_through_rows(a):
    b = a.clone()
    for k, row in enumerate(b.unbind(1)):
        row.add_(k)
    return b


def written_through_diagonal(a):
    b = a.clone()
    b.diagonal().fill_(1)
    b.diagonal(1)[1:] = 4
    return b


def written_by_mask(a):
    b = a.clone()
    b[b > 6] = 0
    b[b[:, 0] > 1] += 1
    return b


def written_by_mask_with_values(a):
    b = a.clone()
    b[a > 4] = a[a > 4] * 2
    return b


def written_by_index(a):
    b = a.clone()
    b[torch.tensor([0, 2])] = a[torch.tensor([1, 0])]
    b[:, torch.tensor([1, -1])] += 1
    b[torch.arange(b.shape[0]), 0] = 3
    return b


def masked_fill_of_part(a):
    b = a.clone()
    b[1:].masked_fill_(a[1:] > 7, -1)
    return b


def index_of_part(a):
    b = a.clone()
    b[:, 1:].index_copy_(0, torch.tensor([1, 0]), a[:2, 1:] + 100)
    b[1:].index_fill_(1, torch.tensor([0]), -5)
    b[:2].scatter_(1, torch.tensor([[0], [1]]), 50)
    return b


def alias_read_after_write(a):
    b = a.clone()
    c, d = b[:2], b.view(-1)
    b[0] = 0
    e = d * 2
    c += 1
    return b, c, d, e


def written_twice_through_different_views(a):
    b = a.clone()
    rows, columns = b[1:], b.t()
    rows[0] = 3
    columns[0] *= 2
    rows -= columns[:, 1:].t()
    return b, rows, columns


def read_before_and_after(a):
    b = a.clone()
    before = b[:, 0] + 0
    b[:, 0] = 9
    return before, b[:, 0]


def kept_copy(a):
    b = a.clone()
    c = b.clone()
    b.zero_()
    return b, c


def in_a_loop(a):
    out = torch.zeros_like(a)
    for k in range(3):
        out[:, k] = a[:, k] * k
    return out


def into_a_cache(a):
    cache = torch.zeros(a.shape[0], a.shape[1] + 12, a.shape[2])
    cache[:, : a.shape[1]] = a
    cache[:, a.shape[1] : a.shape[1] + 1].copy_(a[:, :1])
    return cache


def into_new_zeros(a):
    out = a.new_zeros(a.shape[0], a.shape[1] + 2)
    out[:, 1:-1] = a
    out[:, 0] = 1
    return out


def to_another_type(a):
    b = torch.zeros(a.shape, dtype=torch.int64)
    b[:, 1:] = a[:, 1:]
    m = torch.zeros(a.shape, dtype=torch.bool)
    m[0] = True
    m[:, 1:] |= a[:, 1:] > 3
    return b, m


def out_argument(a):
    out = torch.empty_like(a)
    torch.add(a, 1, out=out)
    torch.mul(a[0], 2, out=out[0])
    return out


def squeezed_in_place(a):
    b = a.clone()
    b.unsqueeze_(0)
    b[:, 1:] = 2
    return b.squeeze_(0), b


def transposed_in_place(a):
    b = a.clone()
    b.t_()
    b[0] = 3
    return b


def rolled_halves(a):
    b = a.clone()
    half = a.shape[-1] // 2
    b[..., :half], b[..., half:] = -a[..., half:], a[..., :half]
    return b


def through_as_strided(a):
    b = a.clone()
    b.as_strided((2, 2), (4, 1)).fill_(0)
    return b


def through_flatten_and_reshape(a):
    b = a.clone()
    b.flatten()[::5] = 0
    b.reshape(2, -1)[1] += 1
    return b


def swapped_rows(a):
    b = a.clone()
    b[[0, 1]] = b[[1, 0]]
    return b


def filled_with_tensor(a):
    b = a.clone()
    b[:, 0].fill_(a[0, 1])
    b[0].copy_(a[0, 0])
    return b


def deep_copies(a):
    b, again, c = copy.deepcopy([a, a, a * 2])
    b[0] = 3
    return b, again, c, a


PROGRAMS = {
    (4, 6): [
        deep_copies,
        written_slice,
        written_steps,
        written_select,
        written_through_transpose,
        written_through_view,
        written_through_parts,
        written_by_mask,
        written_by_mask_with_values,
        written_by_index,
        masked_fill_of_part,
        index_of_part,
        alias_read_after_write,
        written_twice_through_different_views,
        read_before_and_after,
        kept_copy,
        into_new_zeros,
        to_another_type,
        out_argument,
        squeezed_in_place,
        transposed_in_place,
        rolled_halves,
        swapped_rows,
        filled_with_tensor,
    ],
    (4, 4): [written_through_diagonal],
    (3, 4, 6): [written_through_permute, written_through_chain, into_a_cache],
}
FIXED = {
    (3, 4): [through_as_strided],
    (4, 5): [through_flatten_and_reshape],
    (4, 3): [in_a_loop, written_through_rows],
}


@pytest.mark.parametrize(
    ("fn", "shape"),
    [(fn, shape) for shape, fns in PROGRAMS.items() for fn in fns],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_writes_agree_with_eager(fn, shape, tmp_path):
    assert agree(fn, (x(*shape),), tmp_path, dynamic_shapes=(free(shape),)).discrepancies


@pytest.mark.parametrize(
    ("fn", "shape"),
    [(fn, shape) for shape, fns in FIXED.items() for fn in fns],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_writes_of_fixed_sizes_agree_with_eager(fn, shape, tmp_path):
    assert agree(fn, (x(*shape),), tmp_path, dynamic_shapes=({},)).discrepancies


def test_a_cache_of_one_size_that_is_full_agrees_with_eager(tmp_path):
    def into_a_full_cache(a):
        cache = torch.zeros(a.shape[0], 16)
        cache[:, : a.shape[1]] = a
        cache[:, a.shape[1] : a.shape[1] + 1].copy_(a[:, :1])
        return cache

    agree(into_a_full_cache, (x(3, 4),), tmp_path, dynamic_shapes=(free((3, 4)),))


def test_a_written_input_is_named(tmp_path):
    def fn(a, b):
        a[:, 0] = b
        return a * 2

    result = agree(fn, (x(3, 4), x(3)), tmp_path)
    assert result.contract.written


def test_a_written_buffer_is_read_back(tmp_path):
    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.zeros(4, 3))

        def forward(self, a):
            self.table[1:3] = a[:2]
            self.table.mul_(2)
            return self.table + 1, self.table[1]

    result = agree(Counts(), (x(5, 3),), tmp_path, dynamic_shapes=({0: torch.export.Dim("rows", min=2)},))
    assert result.contract.written == ["table"]


def test_a_write_through_expand_is_refused(tmp_path):
    def fn(a):
        b = a[:, :1].clone().expand(-1, 3)
        b.add_(1)
        return b

    with pytest.raises(Exception, match=r"expand|more than one element"):
        agree(fn, (x(3, 4),), tmp_path)


# ---- random programs ------------------------------------------------------------------------------------


def program(seed: int):
    """A function of one [4, 6] tensor that takes views, writes through some and returns all of them."""
    rng = random.Random(seed)
    steps = []  # (kind, source, choice)
    kinds = [
        "slice",
        "step",
        "select",
        "transpose",
        "view",
        "unsqueeze",
        "part",
        "row",
        "diagonal",
        "permute",
    ]
    ranks = [2]
    for _ in range(rng.randint(3, 9)):
        if rng.random() < 0.5:
            source = rng.randrange(len(ranks))
            kind = rng.choice(kinds)
            if ranks[source] == 0 or (kind in ("transpose", "diagonal") and ranks[source] < 2):
                kind = "unsqueeze"
            steps.append((kind, source, rng.randint(0, 3)))
            ranks.append(
                ranks[source] + (kind == "unsqueeze") - (kind in ("select", "row", "diagonal")) if kind != "view" else 1
            )
        else:
            kind = rng.choice(["add", "fill", "copy", "mask", "index", "mul", "scatter", "where", "cumsum"])
            steps.append((kind, rng.randrange(len(ranks)), rng.randint(0, 3)))

    def fn(a):
        values = [a.clone()]
        for kind, source, choice in steps:
            v = values[source]
            dim = choice % max(v.dim(), 1)
            if kind == "slice":
                values.append(v.narrow(dim, 0, v.shape[dim] - 1) if v.shape[dim] > 1 else v[:])
            elif kind == "step":
                values.append(v[(slice(None),) * dim + (slice(choice % 2, None, 2),)])
            elif kind in ("select", "row"):
                values.append(v.select(dim, 0 if choice % 2 else -1))
            elif kind == "transpose":
                values.append(v.transpose(dim, 0))
            elif kind == "view":
                values.append(v.view(-1) if v.is_contiguous() else v.flatten())
            elif kind == "unsqueeze":
                values.append(v.unsqueeze(dim))
            elif kind == "part":
                half = v.shape[dim] // 2
                values.append(v.split([half, v.shape[dim] - half], dim)[choice % 2])
            elif kind == "add":
                v.add_(choice + 1)
            elif kind == "mul":
                v.mul_(values[-1].sum() * 0.01)
            elif kind == "fill":
                v.fill_(choice)
            elif kind == "copy":
                v.copy_(v.flip(dim) if v.dim() else v * 2)
            elif kind == "mask" and v.dim():  # with a mask of no dimension PyTorch itself goes by the value
                v[v > 5] = -choice
            elif kind == "diagonal":
                values.append(v.diagonal(choice - 1, 0, -1) if min(v.shape[0], v.shape[-1]) > 2 else v.select(0, 0))
            elif kind == "permute":
                values.append(v.permute(*range(1, v.dim()), 0))
            elif kind == "where":
                v.masked_fill_(v < 3, choice)
            elif kind == "cumsum":
                v.cumsum_(dim)
            elif kind == "scatter":
                if v.dim():
                    v.scatter_(dim, torch.zeros([1] * v.dim(), dtype=torch.int64), choice + 0.5)
            elif kind == "index" and v.dim():
                v[torch.tensor([0, 0])] = v[-1].clone() * 2
        return tuple(values)

    return fn


@pytest.mark.parametrize("seed", range(120))
def test_random_programs_agree_with_eager(seed, tmp_path):
    fn = program(seed)
    agree(fn, (x(4, 6),), tmp_path, dynamic_shapes=({},))


@pytest.mark.parametrize("seed", range(1000, 1030))
def test_random_programs_of_free_sizes_agree_with_eager(seed, tmp_path):
    fn = program(seed)
    agree(fn, (x(6, 8),), tmp_path, dynamic_shapes=(free((6, 8)),))


# ---- several results written at once ----------------------------------------------------------------------


def test_every_tensor_of_out_is_written(tmp_path):
    def largest(a):
        values, places = torch.zeros(a.shape[0]), torch.zeros(a.shape[0], dtype=torch.int64)
        torch.max(a, 1, out=(values, places))
        return values * 2, places + 1

    def sorted_rows(a):
        values, places = torch.empty_like(a), torch.empty_like(a, dtype=torch.int64)
        torch.sort(a, out=(values, places))
        return values, places

    def into_views(a):
        values, places = torch.zeros(2, a.shape[0]), torch.zeros(2, a.shape[0], dtype=torch.int64)
        torch.max(a, 1, out=(values[1], places[0]))
        return values, places

    for model in (largest, sorted_rows, into_views):
        agree(model, (torch.randn(3, 4),), tmp_path)
    # At fixed sizes the check has the example's values alone: others must not find them built in.
    agree(largest, (x(3, 4),), tmp_path, dynamic_shapes=({},))
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    other = torch.tensor([[4.0, 3, 2, 1], [1, 4, 3, 2], [1, 2, 4, 3]])
    _, places = session.run(None, {session.get_inputs()[0].name: other.numpy()})
    assert places.tolist() == [1, 2, 3]


def observed(a):
    """A fake quantisation that moves its own averages."""
    on, moving = torch.ones(1, dtype=torch.int64), [torch.zeros(1), torch.ones(1), torch.ones(1)]
    zero = torch.zeros(1, dtype=torch.int32)
    return torch.ops.aten._fused_moving_avg_obs_fq_helper(a, on, on, *moving, zero, 0.1, 0, 255, -1)


@pytest.mark.parametrize(
    ("model", "operator"),
    [
        (lambda a: torch._foreach_add_([a * 1, a * 2], 1), "aten._foreach_add_.Scalar"),
        (observed, "aten._fused_moving_avg_obs_fq_helper.default"),
    ],
)
def test_operators_whose_writes_are_not_their_results_are_refused(model, operator, tmp_path):
    with pytest.raises(fairlead.Unsupported) as caught:
        agree(lambda a: (model(a), a)[1] + 1, (x(3, 4),), tmp_path)
    text = f"[export] Expected operators that write to one tensor and return it, got {operator} (in the model at "
    assert str(caught.value).startswith(text)


class Merged(torch.nn.Module):
    """Gives a parameter other numbers in every call: branches that are merged for inference."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.parts = torch.nn.ParameterList(torch.randn(4, 4) for _ in range(3))
        self.merged = torch.nn.Linear(4, 4)

    def forward(self, x):
        self.merged.weight.data = (self.parts[0] + self.parts[1] @ self.parts[2]).contiguous()
        first = self.merged(x)
        self.merged.weight.data = self.parts[1] * x.mean()
        return first, self.merged(x)


def test_a_parameter_that_is_given_other_numbers_while_the_model_runs(tmp_path):
    model = Merged().eval()
    fairlead.export(model, (torch.randn(2, 4),), tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for rows in (1, 5):
        x = torch.randn(rows, 4)
        for got, expected in zip(session.run(None, {session.get_inputs()[0].name: x.numpy()}), model(x), strict=True):
            torch.testing.assert_close(torch.from_numpy(got), expected.detach(), rtol=1e-4, atol=1e-5)


class Clamped(torch.nn.Module):
    """Keeps a parameter within bounds by giving it what it is clamped to."""

    def __init__(self):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.tensor([-2.0, 0.1, 0.2, 3.0]))

    def forward(self, x):
        clamped = torch.clamp(self.shift, min=-0.5, max=0.5)
        self.shift.data = clamped
        return x * clamped + self.shift


def test_a_parameter_that_is_clamped_in_every_call_is_put_back(tmp_path):
    model = Clamped().eval()
    result = fairlead.export(model, (x(2, 4),), tmp_path / "m.onnx")
    assert [row.name for row in result.contract.symbols] == ["batch"]
    torch.testing.assert_close(model.shift.detach(), torch.tensor([-2.0, 0.1, 0.2, 3.0]))


class Grown(torch.nn.Embedding):
    """Its table of positions becomes another parameter where the text is longer than the table."""

    def __init__(self):
        super().__init__(12, 4)
        self.weight = torch.nn.Parameter(self.table(12))

    def table(self, rows):
        return (torch.arange(rows).float()[:, None] * 0.3 ** torch.arange(4).float()).sin()

    def forward(self, ids):
        if ids.shape[1] + 2 > self.weight.size(0):
            self.weight = torch.nn.Parameter(self.table(ids.shape[1] + 2), requires_grad=False)
        return super().forward((ids > 1).int().cumsum(1).long() + 1)


def test_a_parameter_that_is_made_anew_for_longer_texts(tmp_path):
    model = Grown().eval()
    fairlead.export(model, (torch.randint(0, 9, (3, 5)),), tmp_path / "m.onnx")
    assert model.weight.shape == (12, 4)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for length in (1, 10, 11, 40):
        ids = torch.randint(0, 9, (2, length))
        (got,) = session.run(None, {session.get_inputs()[0].name: ids.numpy()})
        torch.testing.assert_close(torch.from_numpy(got), Grown()(ids).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("made", [lambda w: w, lambda w: torch.nn.Parameter(w)])
def test_a_parameter_of_what_was_computed_shares_its_memory(made, tmp_path):
    def forward(a):
        w = a * 2
        p = made(torch.nn.Parameter(w))
        w.mul_(3)
        first = p + 1
        p.add_(a)
        return first, w, p.detach()

    agree(forward, (x(3, 4),), tmp_path)


def test_operators_that_write_by_their_sign(tmp_path):
    def forward(a):
        b = (a * 4).int()
        b <<= 1
        b >>= 2
        b &= 13
        b |= 8
        b ^= 3
        c = a > 3
        c &= a < 9
        c |= a > 11
        return b, c

    agree(forward, (x(3, 4),), tmp_path)
