"""Python loops whose number of steps follows from a size become loops of the file, right at any number of steps."""

from __future__ import annotations

import functools

import onnx
import onnxruntime
import pytest
import torch
from fairlead.verify.runtime_check import OnnxSession

import fairlead


class Recurrent(torch.nn.Module):
    """Carries a state and collects what each step makes."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        state = torch.zeros(x.shape[0], 4)
        made = []
        for step in range(x.shape[1]):
            state = torch.tanh(self.inner(state) + x[:, step])
            made.append(state * 2)
        return torch.stack(made, dim=1), state


class Writes(torch.nn.Module):
    """Writes each step into a tensor made before the loop, by a slice that grows."""

    def forward(self, x):
        out = torch.zeros_like(x)
        for step in range(x.shape[1]):
            out[:, step] = x[:, : step + 1].sum(1)
        return out


class Accumulates(torch.nn.Module):
    """The tensor is written as a whole; a view of it is read behind the loop."""

    def forward(self, x):
        total = torch.zeros(x.shape[0], x.shape[2])
        first = total[:, 0]
        for step in range(x.shape[1]):
            total += x[:, step] * (step + 1)
        return total, first + 1


class Unbound(torch.nn.Module):
    """Goes over the parts of a tensor, then over what the first loop made, which is also joined."""

    def forward(self, x):
        first, second = [], []
        for part in x.unbind(1):
            first.append(part.cumsum(-1)[:, None])
        for part in first:
            second.append(part + 1)
        return torch.cat(first, dim=1), torch.cat([x, *second], dim=1)


class Backwards(torch.nn.Module):
    """Two loops, the second from the last step to the first; what the last step made is read."""

    def forward(self, x):
        left, right = x[:, 0] * 0, x[:, 0] * 0
        for step in range(x.shape[1]):
            left = left * 0.5 + x[:, step]
        for step in range(x.shape[1] - 1, -1, -1):
            gate = torch.sigmoid(x[:, step])
            right = right * gate + x[:, step]
        return left + right, gate


class Blocks(torch.nn.Module):
    """Blocks of three, the last one shorter."""

    def forward(self, x):
        made = []
        state = x[:, 0] * 0
        for block in range((x.shape[1] + 2) // 3):
            end = min(3 * block + 3, x.shape[1])
            part = x[:, 3 * block : end]
            made.append(part + state[:, None])
            state = state + part.sum(1)
        return torch.cat(made, dim=1), state


class Own(torch.nn.Module):
    """Makes a tensor from the number of the step, and goes by fixed steps inside."""

    def forward(self, x):
        made = []
        for step in range(x.shape[1]):
            part = x[:, step] + torch.tensor([step, 2 * step])
            for _ in range(2):
                part = part * 1.5
            made.append(part)
        return torch.stack(made)


class TakenApart(torch.nn.Module):
    """Taken apart and joined again without a loop: as many parts as there are rows."""

    def forward(self, x):
        rows = x.unbind(1)
        halves = torch.split(x, [1] * x.shape[1], dim=1)
        return torch.cat(rows, dim=-1), torch.stack(x.unbind(1), dim=0) + 1, torch.cat([*halves, x], dim=1)


class Ragged(torch.nn.Module):
    """Each step adds as many rows as the data says."""

    def forward(self, x):
        made = []
        for step in range(x.shape[1]):
            part = x[:, step]
            made.append(part[part[:, 0] > 0] * 2)
        return torch.cat(made, dim=0)


class PickedApart(torch.nn.Module):
    """Parts that are indices, beside a loop: they are no list to be joined."""

    def forward(self, x):
        state = x[:, 0]
        for step in range(x.shape[1]):
            state = state * 0.5 + x[:, step]
        positive = (x > 0).nonzero()
        return state, x[tuple(positive.unbind(1))]


class Chunks(torch.nn.Module):
    """Goes over chunks, the last of them shorter; the example has one."""

    def forward(self, x):
        size = x.shape[1]
        return torch.cat([x[:, at : min(size, at + 8)].softmax(1) for at in range(0, size, 8)], dim=1)


class ChunksBehindTheFirst(torch.nn.Module):
    """The first row attends to everything, the others in chunks to their own."""

    def forward(self, x):
        size = x.shape[1]
        rows = [(0, 1)] + [(at, min(size, at + 8)) for at in range(1, size, 8)]
        others = [(0, size)] + [(at, min(size, at + 8)) for at in range(0, size, 8)]
        made = [
            (x[:, a:b] @ x[:, c:d].mT).softmax(-1) @ x[:, c:d] for (a, b), (c, d) in zip(rows, others, strict=False)
        ]
        return torch.cat(made, dim=1)


class FromTheFirst(torch.nn.Module):
    """Begins with the first part, and goes over the others; and from the last on."""

    def forward(self, x):
        parts = x.unbind(1)
        found, last = parts[0], parts[-1]
        for part in parts[1:]:
            found = found * 0.5 + part
        for part in reversed(parts[:-1]):
            last = torch.maximum(last, part * 0.9)
        return found, last, sum(x.unbind(1)), functools.reduce(torch.minimum, parts)


class ThereAndBack(torch.nn.Module):
    """A loop goes backwards over what another one made."""

    def forward(self, x):
        state, made = x[:, 0] * 0, []
        for part in x.unbind(1):
            state = (state + part).tanh()
            made.append(state)
        for part in reversed(made):
            state = state * 0.5 + part
        return state


MODELS = [
    (Recurrent, (3, 5, 4)),
    (Writes, (3, 5, 4)),
    (Accumulates, (3, 5, 4)),
    (Unbound, (3, 5, 4)),
    (Backwards, (3, 5, 4)),
    (Blocks, (2, 8, 4)),
    (Own, (3, 5, 2)),
    (TakenApart, (3, 5, 4)),
    (Ragged, (3, 5, 4)),
    (PickedApart, (3, 5, 4)),
    (Chunks, (3, 7, 4)),
    (ChunksBehindTheFirst, (3, 7, 4)),
    (FromTheFirst, (3, 5, 4)),
    (ThereAndBack, (3, 5, 4)),
]


@pytest.mark.parametrize(("make", "shape"), MODELS, ids=[make.__name__ for make, _ in MODELS])
def test_the_file_takes_any_number_of_steps(make, shape, tmp_path):
    torch.manual_seed(0)
    model = make().eval()
    path = tmp_path / "m.onnx"
    result = fairlead.export(model, (torch.randn(shape),), path)
    assert "x_dim_1" in [symbol["name"] for symbol in result.contract.symbols], result.contract
    loops = [node for node in onnx.load(path).graph.node if node.op_type == "Loop"]
    assert loops or make is TakenApart
    assert not any("was not tried" in note for note in result.contract.notes)  # what one step asks, others ask alike
    session = OnnxSession(str(path))
    for steps in (1, 2, 3, 6, 17, 1081):
        x = torch.randn(shape[0] + 1, steps, *shape[2:])
        expected = model(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for want, got in zip(expected, session.run({"x": x}), strict=True):
            torch.testing.assert_close(torch.as_tensor(got), want, atol=1e-4, rtol=1e-4)


class Counts(torch.nn.Module):
    """Goes over numbers read from a tensor, each as many rows as it says."""

    def forward(self, x, counts):
        made = [x[:count].sum(0) for count in counts.tolist()]
        return torch.stack(made)


class Grids(torch.nn.Module):
    """Goes over the rows of a tensor of numbers, as vision models do over the grids of images."""

    def forward(self, x, grids):
        places = []
        for height, width in grids.tolist():
            rows = torch.arange(height)[:, None].expand(height, width)
            columns = torch.arange(width)[None].expand(height, width)
            places.append(torch.stack([rows.flatten(), columns.flatten()], dim=-1))
        return torch.cat(places), x * 2


def check_numbers(model, path, x, numbers):
    names = [i.name for i in onnx.load(path).graph.input]
    got = OnnxSession(str(path)).run(dict(zip(names, (x, numbers), strict=True)))
    want = model(x, numbers)
    for have, expected in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
        torch.testing.assert_close(torch.as_tensor(have), expected, atol=1e-4, rtol=1e-4)


def test_a_loop_over_numbers_that_were_read(tmp_path):
    path, model = tmp_path / "m.onnx", Counts().eval()
    fairlead.export(model, (torch.randn(9, 4), torch.tensor([3, 1, 2, 5, 4])), path)
    for numbers in ([2], [1, 6], [4, 4, 1, 2, 7, 3, 9]):
        check_numbers(model, path, torch.randn(11, 4), torch.tensor(numbers))


def test_a_loop_over_grids_that_were_read(tmp_path):
    path, model = tmp_path / "m.onnx", Grids().eval()
    fairlead.export(model, (torch.randn(3, 4), torch.tensor([[2, 3], [1, 4], [3, 2], [2, 5]])), path)
    for grids in ([[1, 1]], [[3, 2], [4, 7]], [[5, 2], [1, 3], [2, 2], [3, 3], [1, 8], [6, 1]]):
        check_numbers(model, path, torch.randn(2, 4), torch.tensor(grids))


class Parts(torch.nn.Module):
    """Splits by lengths that were read; a step takes a part, which begins where those before it end."""

    def forward(self, x, lengths):
        parts = torch.split(x, lengths.tolist(), dim=0)
        return torch.cat([part.softmax(0) for part in parts], dim=0)


def test_a_loop_over_parts_of_lengths_that_were_read(tmp_path):
    path, model = tmp_path / "m.onnx", Parts().eval()
    fairlead.export(model, (torch.randn(4, 3), torch.ones(4, dtype=torch.int64)), path)
    for count in (1, 3, 8):
        check_numbers(model, path, torch.randn(count, 3), torch.ones(count, dtype=torch.int64))


class Halves(torch.nn.Module):
    """A step executes the same operators twice, and looks like two."""

    def forward(self, x, sizes):
        halves = [(size[0] // 2, size[1] // 2) for size in sizes]
        made = [row[: h.item()].sum() + row[w.item() :].sum() for row, (h, w) in zip(x, halves, strict=True)]
        return torch.stack(made)


def test_a_step_that_looks_like_two(tmp_path):
    path, model = tmp_path / "m.onnx", Halves().eval()
    fairlead.export(model, (torch.randn(4, 9), torch.tensor([[2, 6], [4, 3], [8, 2], [5, 5]])), path)
    for count in (1, 3, 7):
        check_numbers(model, path, torch.randn(count, 9), torch.randint(1, 12, (count, 2)))


class RowsAsNumbers(torch.nn.Module):
    """Each step reads a row of numbers, as many as another size says, and goes by how many there are."""

    def forward(self, x):
        made = []
        for row in x:
            kept = [n for n in row.tolist() if n == n]
            made.append(torch.arange(len(kept)) + row.cumsum(0))
        return torch.stack(made)


def test_a_loop_whose_steps_read_rows_of_any_length(tmp_path):
    result = fairlead.export(RowsAsNumbers().eval(), (torch.rand(3, 5),), tmp_path / "rows.onnx")
    assert [s.name for s in result.contract.symbols] == ["batch", "x_dim_1"]
    assert "read a list of numbers from a tensor" in str(result.contract)
    x = torch.rand(7, 9)
    (got,) = OnnxSession(str(tmp_path / "rows.onnx")).run({"x": x})
    torch.testing.assert_close(torch.as_tensor(got), RowsAsNumbers()(x))


def test_a_loop_is_one_node_however_long_the_example(tmp_path):
    """The file does not grow with the number of steps that were recorded."""
    model = Recurrent().eval()
    short = fairlead.export(model, (torch.randn(2, 4, 4),), tmp_path / "short.onnx")
    long = fairlead.export(model, (torch.randn(2, 40, 4),), tmp_path / "long.onnx")
    assert short.nodes == long.nodes


class Warping(torch.nn.Module):
    """Dynamic time warping: every cell of a table from three of its neighbours."""

    def forward(self, x, y):
        n, m = x.shape[0], y.shape[0]
        cost, table = torch.cdist(x, y), torch.full((n + 1, m + 1), 1e6)
        table[0, 0] = 0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                best = torch.min(torch.min(table[i - 1, j], table[i, j - 1]), table[i - 1, j - 1])
                table[i, j] = cost[i - 1, j - 1] + best
        return table[n, m]


def test_loops_in_each_other_are_one_loop(tmp_path):
    path, model = tmp_path / "m.onnx", Warping().eval()
    result = fairlead.export(model, (torch.randn(4, 2), torch.randn(3, 2)), path)
    assert not result.contract.fixed
    session = OnnxSession(str(path))
    for n, m in ((1, 1), (1, 6), (7, 2), (23, 31)):
        x, y = torch.randn(n, 2), torch.randn(m, 2)
        (got,) = session.run({"x": x, "y": y})
        torch.testing.assert_close(torch.from_numpy(got.numpy()), model(x, y))


class TwoBack(torch.nn.Module):
    """Reads what the step before the last made: no loop of the file can."""

    def forward(self, x):
        made = [x[:, 0], x[:, 0]]
        for step in range(x.shape[1]):
            made.append(made[-2] + x[:, step])
        return made[-1]


class Varies(torch.nn.Module):
    """The steps are not alike."""

    def forward(self, x):
        steps = (torch.sin, torch.cos, torch.tanh, torch.exp, torch.abs, torch.sigmoid, torch.neg, torch.relu)
        for step in range(x.shape[1]):
            x = steps[step % len(steps)](x)
        return x


@pytest.mark.parametrize("make", [TwoBack, Varies])
def test_a_loop_that_cannot_be_rolled_fixes_its_size(make, tmp_path):
    model = make().eval()
    result = fairlead.export(model, (torch.randn(3, 6, 4),), tmp_path / "m.onnx")
    fixed = {(f["name"], f["axis"]): f["reason"] for f in result.contract.fixed}
    assert "the model executes" in fixed["x", 1]
    assert "test_loops.py" in fixed["x", 1]


def test_programs_of_torch_keep_the_size_fixed(tmp_path):
    """A .pt2 file has no such loop: the contract says that the size is fixed."""
    result = fairlead.export(Recurrent().eval(), (torch.randn(3, 5, 4),), tmp_path / "m.pt2")
    assert ("x", 1) in [(f["name"], f["axis"]) for f in result.contract.fixed]


def test_a_state_space_model_decodes_any_prompt(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.MambaConfig(
        vocab_size=64, hidden_size=16, state_size=4, num_hidden_layers=2, expand=2, conv_kernel=4, use_mambapy=False
    )
    model = transformers.MambaForCausalLM(config).eval()
    path = tmp_path / "mamba.onnx"
    fairlead.export(model, {"input_ids": torch.randint(0, 64, (2, 7)), "use_cache": False}, path)
    session = OnnxSession(str(path))
    ids = torch.randint(0, 64, (3, 23))
    (got,) = session.run({"input_ids": ids})
    with torch.no_grad():
        torch.testing.assert_close(torch.as_tensor(got), model(ids).logits, atol=1e-4, rtol=1e-4)


class ComplexState(torch.nn.Module):
    """A state space of complex numbers, step by step, real and complex results of which are kept."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.decay = torch.nn.Parameter(torch.randn(4, dtype=torch.complex64) * 0.3)

    def forward(self, x):
        state = torch.zeros(x.shape[0], 4, dtype=torch.complex64)
        real, whole = [], []
        for step in range(x.shape[1]):
            state = state * self.decay + x[:, step]
            real.append(state.real)
            whole.append(state * 2)
        return torch.stack(real, 1), torch.stack(whole, 1)[:, -1].abs(), state.imag


def test_a_loop_carries_and_collects_complex_numbers(tmp_path):
    model = ComplexState().eval()
    fairlead.export(model, (torch.randn(2, 7, 4),), tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for shape in ((1, 3, 4), (5, 20, 4)):
        x = torch.randn(shape)
        for got, expected in zip(session.run(None, {session.get_inputs()[0].name: x.numpy()}), model(x), strict=True):
            torch.testing.assert_close(torch.from_numpy(got), expected.detach(), rtol=1e-4, atol=1e-5)


class Cell(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inner, self.gru = torch.nn.Linear(4, 4), torch.nn.GRUCell(4, 4)

    def after(self, state, x):
        return (self.inner(state) + x).tanh()


class FirstStepApart(Cell):
    """The first step has no state yet, and its result stands in the list before those of the others."""

    def forward(self, x):
        state, made = None, []
        for step in range(x.shape[1]):
            state = x[:, step].tanh() if state is None else self.after(state, x[:, step])
            made.append(state)
        hidden, states = None, []
        for step in range(x.shape[1]):
            hidden = self.gru(x[:, step], hidden)
            states.append(hidden)
        return torch.stack(made, 1), torch.stack(states)


class Around(Cell):
    """A state before the loop and something else behind it, in one list."""

    def forward(self, x):
        made = [x[:, 0]]
        for step in range(x.shape[1]):
            made.append(self.after(made[-1], x[:, step]))
        return torch.stack([*made, x[:, -1]], -1)


class Backwards(Cell):
    """Both directions, joined step by step; the list of one is turned round."""

    def forward(self, x):
        ahead, back, last = [], [], x[:, 0] * 0
        for part in x.unbind(1):
            last = self.after(last, part)
            ahead.append(last)
        for part in reversed(x.unbind(1)):
            last = self.after(last, part)
            back.append(last)
        both = [torch.cat(pair, -1) for pair in zip(ahead, reversed(back), strict=True)]
        return torch.stack(both, 1), torch.stack(back[::-1], 1)


class SplitInto(Cell):
    """Parts of one size, the first of which is read by itself."""

    def forward(self, x):
        state, made = None, []
        for part in x.split(1, 1):
            state = part if state is None else self.after(state, part)
            made.append(state)
        return torch.cat(made, 1)


class SomeOfThem(Cell):
    """What all steps but the last or the first made, and what the first one made."""

    def forward(self, x):
        state, made = x[:, 0], []
        for step in range(x.shape[1]):
            state = self.after(state, x[:, step])
            made.append(state)
        return torch.stack(made[1:], 1), torch.stack(made[:-1], 1), made[0], sum(made)


@pytest.mark.parametrize("kind", [FirstStepApart, Around, Backwards, SplitInto, SomeOfThem])
def test_lists_of_what_steps_made_are_used_in_any_of_these_ways(kind, tmp_path):
    model = kind().eval()
    result = fairlead.export(model, (torch.randn(2, 9, 4),), tmp_path / "m.onnx")
    assert result.contract.inputs[0]["shape"] == ["batch", "x_dim_1", "4"]
    assert result.operators["Loop"] <= 4
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for shape in ((1, 2, 4), (3, 3, 4), (2, 9, 4), (1, 40, 4)):
        x = torch.randn(shape)
        expected = model(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for got, want in zip(session.run(None, {session.get_inputs()[0].name: x.numpy()}), expected, strict=True):
            torch.testing.assert_close(torch.from_numpy(got), want.detach(), rtol=1e-4, atol=1e-5)


class Repeated(torch.nn.Module):
    """One tensor as often as a size says, stacked or joined."""

    def forward(self, x):
        grid = torch.arange(x.shape[1]).float()
        return torch.stack([grid] * x.shape[0]) + x, torch.cat([x[:, :1]] * x.shape[1], 1)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_tensor_may_be_repeated_as_often_as_a_size_says(batch, tmp_path):
    model = Repeated().eval()
    result = fairlead.export(model, (torch.randn(batch, 5),), tmp_path / "m.onnx")
    assert result.contract.inputs[0]["shape"] == ["batch", "x_dim_1"]
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for shape in ((1, 1), (2, 5), (7, 4)):
        x = torch.randn(shape)
        for got, want in zip(session.run(None, {session.get_inputs()[0].name: x.numpy()}), model(x), strict=True):
            torch.testing.assert_close(torch.from_numpy(got), want)
