"""Properties of pools: any window that eager accepts gives eager's values, with sizes fixed or free."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import fairlead

EXAMPLES = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)

MAX_POOLS = [F.max_pool1d, F.max_pool2d, F.max_pool3d]
AVG_POOLS = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d]
ADAPTIVE_AVG = [F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d]
ADAPTIVE_MAX = [F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d]


class Pool(torch.nn.Module):
    def __init__(self, fn, options):
        super().__init__()
        self.fn, self.options = fn, options

    def forward(self, x):
        return self.fn(x, **self.options)


def check(fn, options, x, path, free):
    """Exports the pool, which compares it with eager; windows that eager refuses are passed over."""
    model = Pool(fn, options).eval()
    try:
        model(x)
    except RuntimeError:
        assume(False)
    shapes = {} if free else {"dynamic_shapes": ({},)}
    try:
        result = fairlead.export(model, (x,), path / "model.onnx", tolerance=1e-4, **shapes)
    except fairlead.Unsolved:
        assume(not free)  # a size formula beyond the solver: the same window with fixed sizes still counts
        raise
    assert result.discrepancies
    assert max(row["scaled"] for row in result.discrepancies) <= 1e-4


@st.composite
def windows(draw, dilated):
    """A window per dimension, the options of the pool that uses it, and an input it fits on."""
    dims = draw(st.integers(1, 3))
    largest = 4 if dims < 3 else 3

    def per_dim(low, high):
        return draw(st.lists(st.integers(low, high), min_size=dims, max_size=dims))

    kernel = per_dim(1, largest)
    options = {
        "kernel_size": kernel,
        "stride": per_dim(1, 4),
        "padding": [draw(st.integers(0, k // 2)) for k in kernel],
        "ceil_mode": draw(st.booleans()),
    }
    if dilated:
        options["dilation"] = per_dim(1, 3)
    shape = [*([2] if draw(st.booleans()) else []), 3, *per_dim(3, 9)]
    return dims, options, torch.randn(shape, generator=torch.Generator().manual_seed(0))


@EXAMPLES
@given(window=windows(dilated=True), indices=st.booleans(), free=st.booleans())
def test_max_pool_matches_eager(window, indices, free, tmp_path):
    dims, options, x = window
    check(MAX_POOLS[dims - 1], {**options, "return_indices": indices}, x, tmp_path, free)


@EXAMPLES
@given(
    window=windows(dilated=False),
    counted=st.booleans(),
    divisor=st.none() | st.integers(1, 7),
    free=st.booleans(),
)
def test_average_pool_matches_eager(window, counted, divisor, free, tmp_path):
    dims, options, x = window
    options = {**options, "count_include_pad": counted}
    if dims > 1:
        options["divisor_override"] = divisor
    check(AVG_POOLS[dims - 1], options, x, tmp_path, free)


@EXAMPLES
@given(
    sizes=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 11)), min_size=1, max_size=3),
    maximum=st.booleans(),
    indices=st.booleans(),
    free=st.booleans(),
)
def test_adaptive_pool_matches_eager(sizes, maximum, indices, free, tmp_path):
    dims = len(sizes)
    x = torch.randn(2, 3, *[s for s, _ in sizes], generator=torch.Generator().manual_seed(0))
    options = {"output_size": [o for _, o in sizes]}
    if maximum:
        options["return_indices"] = indices
    check((ADAPTIVE_MAX if maximum else ADAPTIVE_AVG)[dims - 1], options, x, tmp_path, free)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_free_pool_runs_at_sizes_it_never_saw(size, tmp_path):
    import onnxruntime

    model = Pool(F.adaptive_avg_pool2d, {"output_size": (3, 4)}).eval()
    fairlead.export(model, (torch.randn(2, 3, 8, 9),), tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    x = torch.randn(1, 3, size, size + 6)
    (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    torch.testing.assert_close(torch.from_numpy(got), model(x))
