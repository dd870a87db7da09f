"""Operators whose result depends on a size or a value that no run of the export had: compared with eager in a session
of our own, or refused by the file."""

import functools
import math

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from wrapped import Wrap

import fairlead

NAN, INF = math.nan, math.inf


def exported(fn, inputs, path, **options):
    model = fn if isinstance(fn, torch.nn.Module) else Wrap(fn)
    fairlead.export(model.eval(), inputs, path, **options)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]

    def run(*tensors):
        return session.run(None, dict(zip(names, [t.numpy() for t in tensors], strict=True)))

    return model, run


def assert_same(got, expected):
    expected = list(fairlead.tree.get_leaf_tensors(expected).values())
    assert [g.shape for g in got] == [tuple(e.shape) for e in expected]
    for g, e in zip(got, expected, strict=True):
        assert g.dtype == e.numpy().dtype
        np.testing.assert_allclose(g, e.numpy(), rtol=1e-4, atol=1e-5)


SLICES = {
    "last twelve": lambda x: x[:, -12:].mean(1),
    "last twelve, flat": lambda x: x[:, -12:].flatten() * 2,
    "last but two": lambda x: x[:, -12:-2].flatten(),
    "from the fifth": lambda x: x[:, 5:].flatten(),
    "first eight": lambda x: x[:, :8].reshape(-1) + x[:, :8].shape[1],
    "every third": lambda x: x[:, 1:30:3].flatten(),
    "chunks": lambda x: torch.stack([part.sum(1) for part in x.chunk(2, 1)]),
}


@pytest.mark.parametrize("example", [6, 20])
@pytest.mark.parametrize("fn", SLICES.values(), ids=SLICES)
def test_slices_are_cut_as_pytorch_cuts_them(fn, example, tmp_path):
    model, run = exported(fn, (torch.randn(2, example),), tmp_path / "m.onnx")
    for size in (2, 3, 6, 11, 12, 13, 40):
        x = torch.randn(3, size)
        assert_same(run(x), model(x))


def test_a_slice_up_to_another_size_is_cut_by_its_own(tmp_path):
    model, run = exported(
        lambda x, y: x[:, : y.shape[1]].flatten(), (torch.randn(2, 9), torch.randn(2, 4)), tmp_path / "m.onnx"
    )
    for n, m in ((9, 4), (4, 9), (5, 5), (1, 30)):
        x, y = torch.randn(3, n), torch.randn(3, m)
        assert_same(run(x, y), model(x, y))


@pytest.mark.parametrize("start", [-3, -20])
def test_a_write_behind_the_beginning_is_cut(start, tmp_path):
    def fn(x):
        y = x.clone()
        y[:, start:] = 9.0
        return y

    model, run = exported(fn, (torch.randn(4, 6),), tmp_path / "m.onnx")
    for size in (1, 2, 3, 6, 31):
        x = torch.randn(2, size)
        assert_same(run(x), model(x))


def test_a_split_into_another_number_of_parts(tmp_path):
    model, run = exported(
        lambda x: torch.cat([p + k for k, p in enumerate(x.split(20, 1))], 1), (torch.randn(2, 6),), tmp_path / "m.onnx"
    )
    for size in (1, 19, 20, 21, 40, 50, 205):
        x = torch.randn(2, size)
        assert_same(run(x), model(x))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_recurrent_layer_refuses_nothing_instead_of_ending_the_process(kind, tmp_path):
    layer = getattr(torch.nn, kind)(3, 4, batch_first=True)
    model, run = exported(layer, (torch.randn(2, 5, 3),), tmp_path / "m.onnx")
    x = torch.randn(1, 1, 3)
    with torch.no_grad():
        assert_same(run(x), model(x))
    for shape in ((0, 5, 3), (2, 0, 3)):
        with pytest.raises(Exception, match="at least 1"):
            run(torch.randn(shape))


def test_the_mean_of_an_empty_selection_is_nan(tmp_path):
    model, run = exported(
        lambda x: (x[x > 0].mean(), x[x[:, 0] > 0].mean(0)), (torch.randn(4, 3),), tmp_path / "m.onnx"
    )
    for x in (torch.randn(5, 3), -torch.ones(2, 3)):
        assert_same(run(x), model(x))


def test_grouped_queries_with_free_heads(tmp_path):
    model, run = exported(
        lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
        (torch.randn(2, 8, 5, 4), torch.randn(2, 2, 5, 4)),
        tmp_path / "m.onnx",
    )
    for heads in (2, 4, 8):
        q, k = torch.randn(1, heads, 3, 4), torch.randn(1, 2, 3, 4)
        assert_same(run(q, k), model(q, k))


ORDERED = {
    "max": lambda x: x.max(),
    "max along": lambda x: tuple(x.max(1)),
    "min along": lambda x: tuple(x.min(1)),
    "amin": lambda x: x.amin((0, 1)),
    "aminmax": lambda x: tuple(torch.aminmax(x, dim=1)),
    "argmax": lambda x: x.argmax(1),
    "argmin of all": lambda x: x.argmin(),
    "sort": lambda x: x.sort(1)[0],
    "topk": lambda x: x.topk(2, 1)[0],
    "kthvalue": lambda x: x.kthvalue(2, 1)[0],
    "median along": lambda x: x.median(1)[0],
    "cummax": lambda x: tuple(x.cummax(1)),
    "cummin": lambda x: tuple(x.cummin(1)),
    "norm": lambda x: x.norm(INF, dim=1),
    "clamp to nan": lambda x: x.clamp(x.flatten()[1], torch.tensor(1.0)),
    "hypot": lambda x: torch.hypot(x, x.flip(0)),
}


@pytest.mark.parametrize("fn", ORDERED.values(), ids=ORDERED)
def test_nan_counts_as_in_pytorch(fn, tmp_path):
    model, run = exported(fn, (torch.randn(3, 5),), tmp_path / "m.onnx")
    x = torch.tensor([[1, NAN, 2, -1, 0], [INF, -INF, 0, 1, NAN], [NAN] * 5, [3, 1, 2, 5, 4], [-INF] * 5])
    assert_same(run(x), model(x))


INTEGERS = {
    "floor division": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "fmod": lambda x, y: torch.fmod(x, y),
    "truncated": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "power": lambda x, y: x ** y.abs(),
    "by a number": lambda x, y: x // 3 + y,
    "beyond the type": lambda x, y: (x < 300) & (y > -200),
}


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("fn", INTEGERS.values(), ids=INTEGERS)
def test_integers_at_the_end_of_their_range(fn, dtype, tmp_path):
    model, run = exported(
        fn, (torch.tensor([5, 7, 3], dtype=dtype), torch.tensor([2, 3, 4], dtype=dtype)), tmp_path / "m.onnx"
    )
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    x = torch.tensor([low, low + 1, high - 1, high, 7, 0], dtype=dtype)
    for divisor in (3, 7, *((-3,) if low < 0 else ())):
        y = torch.full_like(x, divisor)
        assert_same(run(x, y), model(x, y))


def test_a_number_that_must_be_constant_names_the_sizes_behind_it(tmp_path):
    model = Wrap(lambda x: F.conv2d(x, torch.ones(x.shape[1], 1, 9, 9), groups=x.shape[1])).eval()
    asked = ({1: torch.export.Dim.DYNAMIC},)  # otherwise it would be fixed
    with pytest.raises(fairlead.Unsupported, match="must be constant, it is") as caught:
        fairlead.export(model, (torch.randn(2, 3, 9, 9),), tmp_path / "m.onnx", dynamic_shapes=asked)
    (detail,) = [d for d in caught.value.details if d["kind"] == "must be constant"]
    assert len(detail["values"]) == 1
    assert detail["values"][0] in detail["why"]


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)

    def forward(self, x):
        return self.linear(x).relu()


class Around(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x) + 1


@pytest.mark.parametrize(
    "wrap",
    [torch.jit.script, lambda m: torch.jit.trace(m, torch.randn(2, 3)), lambda m: Around(torch.jit.script(m))],
    ids=["scripted", "traced", "inside"],
)
@pytest.mark.filterwarnings("ignore:.*torch.jit.*")
def test_scripted_and_traced_modules_are_recorded_by_running_them(wrap, tmp_path):
    model, run = exported(wrap(Small().eval()), (torch.randn(2, 3),), tmp_path / "m.onnx")
    x = torch.randn(7, 3)
    with torch.no_grad():
        assert_same(run(x), model(x))


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_wide_unsigned_integers(dtype, tmp_path):
    model, run = exported(lambda x: (x.float() * 2, x), (torch.arange(6).reshape(2, 3).to(dtype),), tmp_path / "m.onnx")
    x = torch.arange(8).reshape(2, 4).to(dtype)
    assert_same(run(x), model(x))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
@pytest.mark.parametrize("fn", ["in", "out"])
def test_floats_of_eight_bits(dtype, fn, tmp_path):
    model = Wrap((lambda x: x.float() * 2) if fn == "in" else (lambda x: x.to(dtype))).eval()
    x = torch.randn(2, 3)
    result = fairlead.export(model, (x.to(dtype) if fn == "in" else x,), tmp_path / "m.onnx")
    assert result.discrepancies


def test_conjugated_tensors(tmp_path):
    pair = torch.complex(torch.randn(2, 3), torch.randn(2, 3))
    for fn, x in ((lambda z: z.conj(), pair), (lambda z: z * 2, pair.conj()), (lambda z: z.conj().imag, pair)):
        assert fairlead.export(Wrap(fn).eval(), (x,), tmp_path / "m.onnx").discrepancies


class TensorFlowPadding(torch.nn.Module):
    """Pads to as many windows as fit, by a remainder: MobileNet as it came from TensorFlow."""

    def __init__(self, layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Conv2d(2, 2, 3, 2) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            pads = []
            for size in (x.shape[-1], x.shape[-2]):
                pad = max(3 - 2, 0) if size % 2 == 0 else max(3 - size % 2, 0)
                pads += [pad // 2, pad - pad // 2]
            x = layer(torch.nn.functional.pad(x, pads))
        return x


def test_padding_by_a_remainder_in_every_layer_is_exact(tmp_path):
    result = fairlead.export(TensorFlowPadding(5).eval(), (torch.randn(2, 2, 64, 64),), f"{tmp_path}/model.onnx")
    assert result.contract.outputs[0]["shape"][2:] == ["ceildiv(x_dim_2, 32)", "ceildiv(x_dim_3, 32)"]
    assert not any("was not tried" in note for note in result.contract.notes)
    model, run = exported(TensorFlowPadding(5), (torch.randn(2, 2, 64, 64),), f"{tmp_path}/model.onnx")
    for sizes in [(1, 1), (33, 7), (40, 130), (97, 64), (10, 12)]:
        x = torch.randn(1, 2, *sizes)
        with torch.no_grad():
            assert_same(run(x), model(x))


def test_a_pooled_size_that_no_run_varied_is_no_constant(tmp_path):
    """As large as the stride, and the same from 64 to 79 pixels."""
    pools = torch.nn.Sequential(
        torch.nn.AvgPool2d(4), *(torch.nn.MaxPool2d(3, 2, ceil_mode=True) for _ in range(3)), torch.nn.Conv2d(2, 2, 1)
    )
    model, run = exported(pools, (torch.randn(2, 2, 64, 64),), f"{tmp_path}/model.onnx")
    for sizes in [(48, 64), (40, 64), (100, 33)]:
        x = torch.randn(1, 2, *sizes)
        with torch.no_grad():
            assert_same(run(x), model(x))


@functools.lru_cache(1024)
def windows_of(shape, window):
    """Counts that are kept by the sizes they are for, as einops keeps its recipes."""
    return shape[1] // window, -(-shape[0] * shape[1] // window)


def test_a_function_that_keeps_its_results_forgets_no_size(tmp_path):
    def fn(x):
        whole, rounded = windows_of(tuple(x.shape), 8)
        return x[:, : whole * 8].reshape(-1, 8).sum(1), torch.full((1,), float(rounded))

    fn(torch.randn(3, 64))
    model, run = exported(fn, (torch.randn(3, 64),), f"{tmp_path}/model.onnx")
    for shape in [(1, 9), (3, 64), (7, 130), (5, 71)]:
        x = torch.randn(shape)
        assert_same(run(x), model(x))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize(("size", "hop"), [(48, 12), (400, 160)])
def test_frames_of_a_fourier_transform_are_counted_at_every_length(size, hop, center, tmp_path):
    def fn(x):
        return torch.stft(x, size, hop, window=torch.hann_window(size), center=center, return_complex=True).abs()

    model, run = exported(fn, (torch.randn(1, 4 * size),), f"{tmp_path}/model.onnx")
    for batch, length in [
        (1, size),
        (2, 2 * size + hop - 1),
        (2, 2 * size + hop),
        (1, 9 * size + 7),
        (3, 4 * size - 1),
    ]:
        x = torch.randn(batch, length)
        assert_same(run(x), model(x))


EQUATIONS = {
    "attention": ("bqd,bkd->bqk", lambda n, m: ((n, m, 4), (n, 5, 4))),
    "implicit": ("ij,jk", lambda n, m: ((n, m), (m, 5))),
    "dots": ("...ij, ...jk -> ...ik", lambda n, m: ((2, n, m), (2, m, 5))),
    "a diagonal": ("bii,bj->bij", lambda n, m: ((n, 3, 3), (n, m))),
    "everything": ("bn,bm->", lambda n, m: ((n, m), (n, 4))),
}


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS.values(), ids=EQUATIONS)
def test_einsum_is_one_operator_at_every_size(equation, shapes, tmp_path):
    """PyTorch takes it apart in another way where a size is 1."""

    def tensors(n, m):
        return [torch.randn(shape) for shape in shapes(n, m)]

    model, run = exported(lambda x, y: torch.einsum(equation, x, y), tuple(tensors(3, 2)), tmp_path / "m.onnx")
    for n, m in ((1, 1), (1, 7), (6, 1), (5, 9)):
        given = tensors(n, m)
        assert_same(run(*given), model(*given))


def test_one_window_larger_than_the_input(tmp_path):
    """ceil_mode: a mean over everything, without padding everything to the window first."""
    model, run = exported(torch.nn.AvgPool2d(600, ceil_mode=True), (torch.randn(2, 64, 9, 7),), tmp_path / "m.onnx")
    for height, width in ((9, 7), (1, 1), (4, 30), (601, 2)):
        x = torch.randn(1, 64, height, width)
        assert_same(run(x), model(x))


def test_one_selected_element_is_written_like_several(tmp_path):
    def fn(x, mask):
        y = x.clone()
        y[mask] = x[mask] * 2
        return y

    model, run = exported(fn, (torch.randn(5, 3), torch.tensor([True, False, True, False, True])), tmp_path / "m.onnx")
    for mask in ([False] * 5, [False, True, False, False, False], [True] * 5):
        x = torch.randn(5, 3)
        assert_same(run(x, torch.tensor(mask)), model(x, torch.tensor(mask)))


class CountedBehindAProduct(torch.nn.Module):
    """How often the loop goes round follows from one size, on a side of a question that small ones of it only reach
    with large ones of another."""

    def forward(self, x, y):
        n, m = x.shape[1], y.shape[1]
        k = n if n * m > 60 else -m // 16
        for _ in range(max(0, min(k, 4))):
            x = x * 0.5 + 1
        return x + y.sum()


def test_numbers_that_another_size_lets_through_are_tried(tmp_path):
    model = CountedBehindAProduct().eval()
    fairlead.export(model, (torch.randn(3, 12), torch.randn(2, 6)), tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    names = [each.name for each in session.get_inputs()]
    for n, m in ((1, 61), (2, 65), (3, 40), (4, 16), (40, 3), (2, 6)):
        inputs = torch.randn(3, n), torch.randn(2, m)
        (got,) = session.run(None, {name: t.numpy() for name, t in zip(names, inputs, strict=True)})
        torch.testing.assert_close(torch.from_numpy(got), model(*inputs), rtol=1e-4, atol=1e-4)


def padded_to(x, multiple):
    rest = (multiple - x.shape[1] % multiple) % multiple
    return F.pad(x, (0, 0, 0, rest)) if rest > 0 else x


def blocks(x):
    """As many as torch.div counts: a tensor, which PyTorch reads below Python."""
    x = padded_to(x, 4)
    return x.view(x.shape[0], torch.div(x.shape[1], 4, rounding_mode="trunc"), 4, -1).sum(2)


def overlapping_blocks(x):
    x = padded_to(x, 4)
    x = x.view(x.shape[0], torch.div(x.shape[1], 4, rounding_mode="floor"), 4, 1)
    return x.as_strided((x.shape[0], 2 * x.shape[1] - 1, 4, 1), (x.stride(0), x.stride(1) // 2, x.stride(2), 1))


def windows_of_a_padded_part(x):
    x = padded_to(x, 4)
    x = x.view(x.shape[0], -1, 4, 3).transpose(1, 2).reshape(-1, x.shape[1] // 4, 3)
    x = F.pad(x, (0, 0, 2, 2), value=-1)
    return x.as_strided((x.shape[0], x.shape[1] - 3, 4, 3), (x.stride(0), x.stride(1), x.stride(1), x.stride(2)))


COUNTED = {
    "a slice": (lambda x: x[:, : torch.div(x.shape[1], 4, rounding_mode="trunc")] * 2, 3),
    "minus one": (lambda x: x[:, : (torch.div(x.shape[1], 3, rounding_mode="floor") - 1) * 2 + 1] * 2, 3),
    "a remainder": (lambda x: x[:, : torch.remainder(torch.tensor(x.shape[1]), 5) + 1] * 2, 3),
    "blocks": (blocks, 3),
    "overlapping blocks": (overlapping_blocks, 1),
    "windows of a padded part": (windows_of_a_padded_part, 3),
}


@pytest.mark.parametrize(("fn", "width"), COUNTED.values(), ids=COUNTED)
@pytest.mark.parametrize("length", [7, 8])
def test_numbers_in_tensors_that_are_made_of_sizes_are_known(fn, width, length, tmp_path):
    model = Wrap(fn)
    found = fairlead.export(model, (torch.randn(3, length, width),), tmp_path / "m.onnx").contract
    assert "fits every run" not in found.text()
    assert "read_" not in found.text()
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    for size in (4, 5, 6, 7, 8, 12, 13, 33, 64):
        x = torch.randn(5, size, width)
        assert_same(session.run(None, {session.get_inputs()[0].name: x.numpy()}), model(x))
