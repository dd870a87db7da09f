"""Models that were exported wrong in silence once: values that are read, tensors from outside, state, threads, classes.

Each is right now, or refused with its line, or the contract says what it assumes.
"""

import functools
import inspect
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime
import pytest
import torch
from wrapped import Wrap

import fairlead


def line_of(function, text: str) -> str:
    lines, start = inspect.getsourcelines(function)
    return f"{__file__}:{start + next(k for k, line in enumerate(lines) if text in line)}"


def run(path, *tensors) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return session.run(None, {n: t.numpy() for n, t in zip(names, tensors, strict=True)})


def refusal(kind, model, inputs, tmp_path, **options) -> str:
    with pytest.raises(kind) as caught:
        fairlead.export(model.eval(), inputs, tmp_path / "model.onnx", **options)
    assert not (tmp_path / "model.onnx").exists()
    return str(caught.value)


# ---- values that are read ------------------------------------------------------------------------------


def largest_and_smallest(x):
    return x * torch.tensor([x.max(), x.min()])


def through_numpy(x):
    return torch.from_numpy(np.tanh(x.numpy()))


@pytest.mark.parametrize("model", [largest_and_smallest, through_numpy], ids=lambda f: f.__name__)
@pytest.mark.parametrize("verify", [True, False], ids=["verified", "unverified"])
def test_a_tensor_from_outside_that_follows_the_inputs_is_refused_with_its_line(model, verify, tmp_path):
    text = refusal(fairlead.Unsupported, Wrap(model), (torch.randn(3, 2),), tmp_path, verify=verify)
    assert text.startswith(
        "[export] Expected everything that follows the inputs to come from PyTorch's operators, but "
    )
    assert f" at {line_of(model, 'torch.')} takes a tensor float32[" in text


def test_a_tensor_of_numbers_that_were_read_is_made_of_them(tmp_path):
    def through_a_list(x):
        return torch.tensor(x.tolist()) * 2

    fairlead.export(Wrap(through_a_list), (torch.randn(3, 2),), tmp_path / "model.onnx")
    other = torch.randn(3, 2)
    np.testing.assert_allclose(run(tmp_path / "model.onnx", other)[0], other * 2, rtol=1e-5)


def test_a_tensor_from_outside_that_is_the_same_for_all_values_is_a_constant(tmp_path):
    def shifted(x):
        return x + torch.from_numpy(np.arange(4, dtype=np.float32)) + torch.tensor([x.shape[0]])

    x = torch.randn(3, 4)
    fairlead.export(Wrap(shifted), (x,), tmp_path / "model.onnx")
    other = torch.randn(7, 4)
    np.testing.assert_allclose(run(tmp_path / "model.onnx", other)[0], shifted(other), rtol=1e-5)


def by_largest(x):
    if x.max() > 1:
        return x.tanh()
    return x.relu()


@pytest.mark.parametrize("shapes", [None, {}], ids=["free", "fixed"])
def test_a_branch_on_a_value_is_found_where_the_example_took_one_side(shapes, tmp_path):
    path = tmp_path / "model.onnx"
    result = fairlead.export(Wrap(by_largest), (torch.ones(2, 3) * 2,), path, dynamic_shapes=shapes)
    assert "at other values the model executes another program" in str(result.contract)
    for x in (torch.ones(2, 3) * 3, torch.zeros(2, 3), -torch.ones(2, 3)):
        np.testing.assert_allclose(run(path, x)[0], by_largest(x), rtol=1e-5)


def test_a_choice_by_a_flag_that_executes_the_same_operators_is_found(tmp_path):
    def chosen(x, flag):
        return x * (2 if flag else 3)

    path, x = tmp_path / "model.onnx", torch.randn(2, 3)
    fairlead.export(Wrap(chosen), (x, torch.tensor(True)), path)
    np.testing.assert_allclose(run(path, x, torch.tensor(True))[0], x * 2, rtol=1e-5)
    np.testing.assert_allclose(run(path, x, torch.tensor(False))[0], x * 3, rtol=1e-5)


def test_a_temperature_that_is_built_in_shows_in_probabilities_of_many_classes(tmp_path):
    """Each is 5e-5: waved through by a tolerance that is scaled by 1."""

    def tempered(x):
        return torch.softmax(x / float(x.std()), -1)

    fairlead.export(Wrap(tempered), (torch.randn(2, 20000),), tmp_path / "model.onnx", dynamic_shapes={})
    other = torch.randn(2, 20000) * 3
    np.testing.assert_allclose(run(tmp_path / "model.onnx", other)[0], tempered(other), rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_an_output_is_judged_by_its_own_largest_value(scale, tmp_path):
    def model(x):
        return torch.sigmoid(x @ x.T) * scale

    result = fairlead.export(Wrap(model), (torch.randn(3, 5),), tmp_path / "model.onnx")
    assert max(row["scaled"] for row in result.discrepancies) < 1e-4

    def wrong(x):
        return torch.sigmoid(x @ x.T) * torch.tensor(scale * np.abs(x.numpy()).mean().item())

    text = refusal(fairlead.FairleadError, Wrap(wrong), (torch.randn(3, 5),), tmp_path / "w")
    assert f"{line_of(wrong, 'sigmoid')}" in text


@pytest.fixture(autouse=True)
def folder(tmp_path):
    (tmp_path / "w").mkdir()


def test_the_longest_row_is_read_and_followed(tmp_path):
    def cut(ids):
        return ids[:, : int((ids != 0).sum(1).max())].float().cumsum(1)

    fairlead.export(Wrap(cut), (torch.randint(1, 9, (2, 6)),), tmp_path / "model.onnx")
    ids = torch.tensor([[3, 4, 0, 0, 0, 0, 0], [5, 1, 2, 0, 0, 0, 0]])
    np.testing.assert_allclose(run(tmp_path / "model.onnx", ids)[0], cut(ids))


def test_a_count_that_equals_a_size_in_the_example_is_told_from_it(tmp_path):
    def by_count(ids):
        return ids.float() / torch.unique(ids).shape[0]

    fairlead.export(Wrap(by_count), (torch.arange(6).reshape(1, 6),), tmp_path / "model.onnx")
    ids = torch.tensor([[3, 4, 3, 4], [3, 3, 3, 3]])
    np.testing.assert_allclose(run(tmp_path / "model.onnx", ids)[0], by_count(ids))


def test_an_empty_selection_is_right_or_refused_with_its_line(tmp_path):
    def selected(x):
        return x[x > 0.99].mean()

    x = torch.rand(40, 30)
    try:
        fairlead.export(Wrap(selected), (x,), tmp_path / "model.onnx")
    except fairlead.Discrepancy as error:
        text = str(error)
    else:
        text = str(run(tmp_path / "model.onnx", x * 0)[0])
    assert text == "nan" or f"aten.mean.default at {line_of(selected, 'mean')}" in text


# ---- threads and classes -------------------------------------------------------------------------------


class Mapped(torch.nn.Module):
    """Layers mapped over a pool, of its own or a lasting one, or each in a thread."""

    pool = ThreadPoolExecutor(2)

    def __init__(self, way):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(5, 5) for _ in range(4))
        self.way = way

    def forward(self, x):
        if self.way == "thread":
            found = []
            for layer in self.layers:
                thread = threading.Thread(target=lambda layer=layer: found.append(layer(x)))
                thread.start()
                thread.join()
            return sum(found)
        if self.way == "lasting pool":
            return sum(self.pool.map(lambda layer: layer(x), self.layers))
        with ThreadPoolExecutor(2) as pool:
            return sum(pool.map(lambda layer: layer(x), self.layers))


@pytest.mark.parametrize("way", ["pool", "lasting pool", "thread"])
def test_what_runs_in_other_threads_is_recorded(way, tmp_path):
    model = Mapped(way).eval()
    fairlead.export(model, (torch.randn(3, 5),), tmp_path / "model.onnx")
    x = torch.randn(6, 5)
    with torch.no_grad():
        np.testing.assert_allclose(run(tmp_path / "model.onnx", x)[0], model(x), atol=1e-5)


def test_threads_are_as_before_after_an_export(tmp_path):
    before = ThreadPoolExecutor.submit, threading.Thread.start
    fairlead.export(Mapped("pool").eval(), (torch.randn(3, 5),), tmp_path / "model.onnx")
    assert (ThreadPoolExecutor.submit, threading.Thread.start) == before


class Marked(torch.Tensor):
    """A class that adds nothing to what is computed."""


def test_an_input_of_a_class_of_its_own_is_recorded_as_the_tensor_it_is(tmp_path):
    def model(x):
        return (x * 2).tanh() @ x.T

    fairlead.export(Wrap(model), (torch.randn(3, 5).as_subclass(Marked),), tmp_path / "model.onnx")
    x = torch.randn(2, 7)
    np.testing.assert_allclose(run(tmp_path / "model.onnx", x)[0], model(x), atol=1e-5)


def test_a_tensor_becomes_one_of_a_class_and_back(tmp_path):
    def model(x):
        marked = (x * 2).as_subclass(Marked)
        marked[0] += 1
        return marked.tanh().as_subclass(torch.Tensor) @ x.T

    fairlead.export(Wrap(model), (torch.randn(3, 5),), tmp_path / "model.onnx")
    x = torch.randn(2, 7)
    np.testing.assert_allclose(run(tmp_path / "model.onnx", x)[0], model(x), atol=1e-5)


class Doubled(torch.Tensor):
    """A class that computes something else."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.Tensor.tanh:
            return torch.Tensor.as_subclass(args[0], torch.Tensor) * 2
        return super().__torch_function__(func, types, args, kwargs)


def test_a_class_that_computes_something_else_is_found(tmp_path):
    text = refusal(fairlead.Discrepancy, Wrap(lambda x: x.tanh()), (torch.randn(3, 5).as_subclass(Doubled),), tmp_path)
    assert "at the example's sizes" in text


class Own(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*(a.inner if isinstance(a, Own) else a for a in args), **(kwargs or {}))


def test_a_class_with_operators_of_its_own_is_refused(tmp_path):
    text = refusal(fairlead.InvalidInput, Wrap(lambda x: x * 2), (Own(torch.randn(3)),), tmp_path)
    assert "got args_0 of class test_unseen_values.Own, which has operators of its own" in text


# ---- state ---------------------------------------------------------------------------------------------


class Seen(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x):
        self.seen.append(x)
        return torch.stack(self.seen).sum(0)


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0

    def forward(self, x):
        self.n += 1
        return x * self.n


class Held(torch.nn.Module):
    """State that is kept in an object."""

    def __init__(self):
        super().__init__()
        self.held = type("State", (), {})()
        self.held.calls = {"n": 0}

    def forward(self, x):
        self.held.calls["n"] += 1
        return x * self.held.calls["n"]


@pytest.mark.parametrize(
    ("make", "path"),
    [(Seen, "self.seen"), (Counter, "self.n"), (Held, "self.held.calls")],
    ids=["list", "count", "object"],
)
def test_state_that_a_call_changes_is_said_and_put_back(make, path, tmp_path):
    model, x = make().eval(), torch.randn(3, 4)
    result = fairlead.export(model, (x,), tmp_path / "model.onnx")
    (row,) = result.contract.assumptions
    assert row["kind"] == "state"
    assert row["what"] == (
        f"forward changes {path}, and output 'output' of the next call differs: the file computes the first call"
    )
    assert row["source"] == line_of(make.forward, "def forward")
    np.testing.assert_allclose(run(tmp_path / "model.onnx", x)[0], make()(x))
    np.testing.assert_allclose(model(x), make()(x))  # as if it had never been called
    text = refusal(fairlead.Diverged, make(), (x,), tmp_path / "w", strict=True)
    assert "Expected no assumption" in text
    assert path in text


class Cached(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.masks = {}

    def forward(self, x):
        n = x.shape[1]
        if n not in self.masks:
            self.masks[n] = torch.ones(n, n).tril()
        return x @ self.masks[n]


def test_a_cache_that_changes_nothing_is_not_state(tmp_path):
    model = Cached().eval()
    result = fairlead.export(model, (torch.randn(3, 4),), tmp_path / "model.onnx")
    assert result.contract.assumptions == []
    assert model.masks == {}


def test_weights_that_a_look_up_scales_are_put_back(tmp_path):
    model = torch.nn.Sequential(torch.nn.Embedding(10, 4, max_norm=0.5)).eval()
    before = model[0].weight.detach().clone()
    fairlead.export(model, (torch.randint(0, 10, (2, 3)),), tmp_path / "model.onnx")
    assert torch.equal(model[0].weight, before)


def test_a_model_that_does_not_repeat_for_another_reason_says_so(tmp_path):
    calls = itertools.count()

    def counted(x):
        return x * torch.tensor(float(next(calls)))

    text = refusal(fairlead.Discrepancy, Wrap(counted), (torch.randn(2, 3),), tmp_path)
    assert "eager differs from itself: output 'output' differs by " in text
    assert "Something outside of the model decides" in text


# ---- numbers -------------------------------------------------------------------------------------------


def test_every_argument_that_is_built_in_and_every_number_that_is_returned_is_an_output(tmp_path):
    def model(x, count, factor, keep, mode):
        return x[:, :count] * factor, x.shape[0], 1.5

    result = fairlead.export(Wrap(model), (torch.randn(3, 5), 3, 2.5, True, "sum"), tmp_path / "model.onnx")
    notes = "\n".join(result.contract.notes)
    for text in ("args_1 = 3", "args_2 = 2.5", "args_3 = True", "args_4 = 'sum'"):
        assert f"{text} is built into the file" in notes
    outputs = [(o["dtype"], o["shape"]) for o in result.contract.outputs]
    assert outputs == [("float32", ["batch", "min(args_0_dim_1, 3)"]), ("int64", []), ("float32", [])]


# ---- what eager is compared as -------------------------------------------------------------------------


class Padded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 1)

    def forward(self, x, mask):
        return self.encoder(x, src_key_padding_mask=mask)


def test_an_encoder_with_padding_is_compared_without_its_fused_path(tmp_path):
    mask = torch.zeros(2, 6, dtype=torch.bool)
    mask[0, 4:] = True
    result = fairlead.export(Padded().eval(), (torch.randn(2, 6, 8), mask), tmp_path / "model.onnx")
    assert max(row["scaled"] for row in result.discrepancies) < 1e-4
    assert torch.backends.mha.get_fastpath_enabled()


class Autocast(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            halves = self.linear(x).float()
        return halves, x * 2


def test_autocast_within_forward_is_judged_by_its_dtype(tmp_path):
    result = fairlead.export(Autocast().eval(), (torch.randn(3, 64),), tmp_path / "model.onnx")
    assert result.contract.computed_in == ["bfloat16", "float32"]
    assert result.contract.outputs[0]["dtype"] == "float32"


# ---- control flow -------------------------------------------------------------------


def test_a_choice_between_functions_is_traced_and_both_sides_are_checked(tmp_path):
    class Chosen(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x.tanh(), lambda x: x * 3, (x,))

    fairlead.export(Chosen().eval(), (torch.rand(3, 4),), tmp_path / "model.onnx")
    for x in (torch.rand(2, 5), -torch.rand(2, 5)):
        expected = x.tanh() if x.sum() > 0 else x * 3
        np.testing.assert_allclose(run(tmp_path / "model.onnx", x)[0], expected, atol=1e-6)


# ---- numbers that forgot the values they come from ----------------------------------------------------


def is_taken(path, *tensors) -> bool:
    try:
        run(path, *tensors)
    except Exception:
        return False
    return True


def counted(x, lengths):
    k = 0
    for i in range(int(lengths[0]) // 5):
        k += i
    return x.index_select(1, torch.tensor([k % x.shape[1], 0]))


def test_a_number_that_a_count_by_values_made_is_chosen_by_that_count(tmp_path):
    path = tmp_path / "m.onnx"
    fairlead.export(Wrap(counted), (torch.randn(3, 23), torch.tensor([2, 19, 10])), path)
    seen = [count for count in range(12) if is_taken(path, torch.randn(3, 23), torch.tensor([5 * count, 1, 2]))]
    assert {0, 2, 3} <= set(seen)
    for count, width in itertools.product(range(12), (1, 2, 17, 23)):
        x, lengths = torch.randn(3, width), torch.tensor([5 * count + 1, 1, 2])
        if count not in seen:
            with pytest.raises(Exception, match="is one of"):
                run(path, x, lengths)
            continue
        torch.testing.assert_close(torch.from_numpy(run(path, x, lengths)[0]), counted(x, lengths))


@functools.lru_cache(None)
def cached(n):
    return n * 3 // 2 + 1


def test_a_number_from_a_cache_is_what_it_was_when_it_was_made(tmp_path):
    path = tmp_path / "m.onnx"
    model = Wrap(lambda x, lengths: x[:, cached(int(lengths[0])) % x.shape[1]])
    fairlead.export(model, (torch.randn(1, 12), torch.tensor([1])), path)
    for length, width in itertools.product(range(40), (1, 2, 12, 257)):
        x = torch.randn(3, width)
        (got,) = run(path, x, torch.tensor([length]))
        torch.testing.assert_close(torch.from_numpy(got), model(x, torch.tensor([length])))


def test_what_is_asked_of_values_that_change_nothing_is_checked_by_the_file(tmp_path):
    """The length changes no result, so nothing needs it but the question."""

    def model(x, y, lengths):
        k = y.shape[1] if int(lengths.min()) > 2 else 7
        return (x * 2 if k > 8 else x).cumsum(1) + y.sum()

    path = tmp_path / "m.onnx"
    fairlead.export(Wrap(model), (torch.randn(2, 8), torch.randn(2, 5), torch.tensor([1, 8])), path)
    x, y = torch.randn(2, 8), torch.randn(2, 16)
    (got,) = run(path, x, y, torch.tensor([1, 8]))
    torch.testing.assert_close(torch.from_numpy(got), model(x, y, torch.tensor([1, 8])))
    with pytest.raises(Exception, match=r"not \(read_0 > 2 and args_1_dim_1 > 8\)"):
        run(path, x, y, torch.tensor([3, 8]))


def test_a_question_that_several_ways_lead_to_is_asked_behind_each(tmp_path):
    def model(x, lengths):
        k = int((max(lengths.tolist()) % 7) ** 0.5)
        return x.cos() if k % 2 else x.sin()

    path = tmp_path / "m.onnx"
    fairlead.export(Wrap(model), (torch.randn(4, 8), torch.tensor([1, 8, 6, 1])), path)
    right = 0
    for values in itertools.product(range(0, 10, 4), repeat=4):
        x, lengths = torch.randn(4, 8), torch.tensor(values)
        if not is_taken(path, x, lengths):  # at least one of the ways that were not seen
            continue
        torch.testing.assert_close(torch.from_numpy(run(path, x, lengths)[0]), model(x, lengths))
        right += 1
    assert right
    assert is_taken(path, torch.randn(4, 8), torch.tensor([1, 8, 6, 1]))


def test_a_count_that_is_told_in_a_message_refuses_nothing(tmp_path):
    """Checks of counts are written with a sentence, which is made whether they hold or not."""

    def checked(x):
        chosen = x[x > 0]
        assert chosen.numel() <= x.numel(), f"{chosen.shape[0]} chosen of {x.numel()}"
        return chosen.sum() * x.amax(1)

    fairlead.export(Wrap(checked), (torch.randn(4, 6),), tmp_path / "model.onnx")
    for seed in range(8):
        x = torch.randn(3 + 5 * seed, 29, generator=torch.Generator().manual_seed(seed))
        np.testing.assert_allclose(run(tmp_path / "model.onnx", x)[0], checked(x).numpy(), rtol=1e-4, atol=1e-4)


def test_a_table_by_the_name_of_a_count_is_no_message(tmp_path):
    def looked_up(x):
        table = {str(n): float(n % 3) for n in range(200)}
        return x * table[str(x[x > 0].shape[0])]

    fairlead.export(Wrap(looked_up), (torch.linspace(-1, 1, 12).reshape(3, 4),), tmp_path / "model.onnx")
    for count in range(1, 12):
        x = torch.cat([torch.rand(count) + 0.1, -torch.rand(12 - count) - 0.1]).reshape(3, 4)
        try:
            got = run(tmp_path / "model.onnx", x)[0]
        except onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument:
            continue  # a count that nobody saw stops the file
        np.testing.assert_allclose(got, looked_up(x).numpy(), rtol=1e-5)


def padded_behind_a_question(x, ids):
    longest = int((ids != 0).sum(1).max())
    return torch.nn.functional.pad(x, (0, 0 if longest % 3 else sum(range(x.shape[1] % 6))))


def test_a_number_that_forgot_its_size_behind_a_question_about_values(tmp_path):
    """Of the example's 13 columns nothing is left to add up, whatever the values are."""
    ids = torch.randint(0, 6, (2, 13), generator=torch.Generator().manual_seed(0))
    model, path = Wrap(padded_behind_a_question).eval(), tmp_path / "model.onnx"
    fairlead.export(model, (torch.randn(2, 13), ids), path)
    taken = 0
    for size in (*range(1, 20), 100):
        for empty in range(4):
            x, ids = torch.randn(2, size), torch.ones(2, 13, dtype=torch.int64)
            ids[:, :empty] = 0
            if is_taken(path, x, ids):
                taken += 1
                np.testing.assert_array_equal(run(path, x, ids)[0], model(x, ids))
    assert taken
