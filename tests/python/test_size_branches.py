"""Models that execute another program at some sizes: the file holds the programs, and the sizes choose."""

import dataclasses
import math

import onnx
import onnxruntime
import pytest
import torch

import fairlead


class Pair(torch.nn.Module):
    """Two layers, of which the paths use one or both."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)


class OneStep(Pair):
    def forward(self, x):
        if x.shape[1] == 1:
            return self.first(x.squeeze(1))[:, None].relu()
        return self.first(x) + self.second(x).cumsum(1)


class Long(Pair):
    def forward(self, x):
        if x.shape[1] > 8:
            return self.second(x).flip(1), x.sum(1)
        return self.first(x), x.mean(1)


class OtherLength(Pair):
    """What comes out is as long as the path makes it."""

    def forward(self, x):
        if x.shape[1] < 4:
            return torch.cat([x, self.first(x)], 1)
        return self.first(x)[:, 1:]


class Both(Pair):
    """Branches on two sizes."""

    def forward(self, x):
        y = self.first(x) if x.shape[1] == 1 else self.second(x).cumsum(1)
        return y.squeeze(0)[None] if x.shape[0] == 1 else y * 2


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def agrees(model, path, *shapes):
    opened = session(path)
    for shape in shapes:
        x = torch.randn(*shape)
        got = opened.run(None, {"x": x.numpy()})
        with torch.no_grad():
            expected = fairlead.tree.get_leaf_tensors(model(x)).values()
        for g, e in zip(got, expected, strict=True):
            torch.testing.assert_close(torch.from_numpy(g), e)


def holds(result, where):
    return [n for n in result.contract.notes if n.startswith(f"at {where} the model executes another program (")]


@pytest.mark.parametrize("length", [7, 1])
def test_one_step_and_several(tmp_path, length):
    model, path = OneStep().eval(), tmp_path / "m.onnx"
    result = fairlead.export(model, (torch.randn(3, length, 64),), path)
    agrees(model, path, (2, 1, 64), (1, 1, 64), (1, 2, 64), (5, 19, 64))
    (note,) = holds(result, "x_dim_1 = 1")
    assert "aten.squeeze.dim at " in note
    assert note.endswith("): the file holds both")
    assert result.contract.inputs[0]["shape"] == ["batch", "x_dim_1", "64"]
    assert result.contract.outputs[0]["shape"] == ["batch", "x_dim_1", "64"]
    with pytest.raises(Exception, match="x_dim_1 is 1, or x_dim_1 is at least 2"):
        agrees(model, path, (2, 0, 64))


def test_weights_are_stored_once(tmp_path):
    model = OneStep().eval()
    result = fairlead.export(model, (torch.randn(3, 7, 64),), tmp_path / "m.onnx", external_data="never")
    weights = [i for i in onnx.load(tmp_path / "m.onnx").graph.initializer if i.dims and i.dims[0] == 64]
    assert len(weights) == 4
    assert result.model_bytes < sum(p.numel() for p in model.parameters()) * 4 + 20_000
    onnx.checker.check_model(onnx.load(tmp_path / "m.onnx"), full_check=True)
    assert result.operators["If"] == 1
    assert result.nodes == sum(result.operators.values())


@pytest.mark.parametrize("length", [6, 7, 8, 20])
def test_from_a_size_on(tmp_path, length):
    model, path = Long().eval(), tmp_path / "m.onnx"
    result = fairlead.export(model, (torch.randn(3, length, 64),), path)
    agrees(model, path, *((2, n, 64) for n in (1, 7, 8, 9, 10, 40)))
    assert holds(result, "x_dim_1 = 1 to 8" if length > 8 else "x_dim_1 = 9 and more")
    assert not result.contract.fixed[1:]


def test_every_program_is_checked_at_two_settings_or_more(tmp_path):
    result = fairlead.export(OneStep().eval(), (torch.randn(3, 7, 64),), tmp_path / "m.onnx")
    lengths = [row["sizes"]["x_dim_1"] for row in result.discrepancies]
    assert sum(n == 1 for n in lengths) >= 2
    assert sum(n > 1 for n in lengths) >= 2
    assert "x_dim_1=1" in result.contract.verified


def test_an_output_whose_size_has_no_common_expression(tmp_path):
    model, path = OtherLength().eval(), tmp_path / "m.onnx"
    result = fairlead.export(model, (torch.randn(3, 7, 64),), path)
    agrees(model, path, *((2, n, 64) for n in (1, 2, 3, 4, 9)))
    assert result.contract.outputs[0]["shape"] == ["batch", "output_dim_1", "64"]


def test_branches_on_two_sizes(tmp_path):
    model, path = Both().eval(), tmp_path / "m.onnx"
    fairlead.export(model, (torch.randn(3, 7, 64),), path)
    agrees(model, path, (3, 7, 64), (1, 7, 64), (3, 1, 64), (1, 1, 64))


class Refused(Pair):
    """One path has no form in ONNX."""

    def forward(self, x):
        if x.shape[1] == 1:
            return torch.linalg.eigvals(x[0, 0, :4].diag()).real + self.first(x).sum()
        return self.first(x)


def test_a_program_that_cannot_be_written_is_left_out_with_its_reason(tmp_path):
    model, path = Refused().eval(), tmp_path / "m.onnx"
    result = fairlead.export(model, (torch.randn(3, 7, 64),), path)
    agrees(model, path, (2, 2, 64))
    (note,) = [n for n in result.contract.notes if n.startswith("the file refuses x_dim_1 below 2")]
    assert "the program at x_dim_1 = 1 is not in the file: " in note
    with pytest.raises(Exception, match="x_dim_1 is at least 2"):
        agrees(model, path, (2, 1, 64))


class RefusedMany(Pair):
    def forward(self, x):
        if x.shape[1] > 1:
            return torch.linalg.eigvals(x[0, :, :4].mT @ x[0, :, :4]).real + self.first(x).sum()
        return self.first(x).sum((1, 2))[:, None]


def test_an_example_of_one_step_keeps_its_program_where_the_other_cannot_be_written(tmp_path):
    model, path = RefusedMany().eval(), tmp_path / "m.onnx"
    result = fairlead.export(model, (torch.randn(3, 1, 64),), path)
    agrees(model, path, (2, 1, 64))
    assert result.contract.inputs[0]["shape"][1] == "1"
    with pytest.raises(Exception, match="Got invalid dimensions"):
        agrees(model, path, (2, 2, 64))


class Steps(torch.nn.Module):
    """A cache that is written in place: one token goes to its place, several fill it from the start."""

    def forward(self, x, state):
        if x.shape[1] == 1:
            state[:, -1:] += x
        else:
            state[:, : x.shape[1]] = x
        return state.sum(1), state


def test_a_state_that_is_written_in_place(tmp_path):
    model, path = Steps().eval(), tmp_path / "m.onnx"
    fairlead.export(model, (torch.randn(3, 5, 4), torch.randn(3, 16, 4)), path)
    opened = session(path)
    for length in (1, 2, 6):
        x, state = torch.randn(2, length, 4), torch.randn(2, 16, 4)
        got = opened.run(None, {"x": x.numpy(), "state": state.numpy()})
        for g, e in zip(got, model(x, state), strict=True):
            torch.testing.assert_close(torch.from_numpy(g), e, rtol=1e-5, atol=1e-5)


def test_what_the_user_says_about_sizes_stays_as_it_was(tmp_path):
    model, x = OneStep().eval(), torch.randn(3, 7, 64)
    shapes = {"x": {0: "batch", 1: torch.export.Dim("rows", min=2)}}
    result = fairlead.export(model, (x,), tmp_path / "m.onnx", dynamic_shapes=shapes)
    assert "If" not in result.operators
    result = fairlead.export(model, (x,), tmp_path / "n.onnx", strict=True)
    assert "If" not in result.operators
    assert result.contract.symbols[1]["min"] == 2
    result = fairlead.export(model, (x,), tmp_path / "o.onnx", max_size={"x_dim_1": 32})
    assert result.contract.symbols[1]["max"] == 32
    assert "If" in result.operators


def test_a_model_that_does_not_branch_is_one_program(tmp_path):
    result = fairlead.export(torch.nn.Linear(4, 4).eval(), (torch.randn(3, 4),), tmp_path / "m.onnx")
    assert "If" not in result.operators
    assert not result.contract.notes


# ---- Transformers: a cache, and the call that comes next in generation -----------------------------------------------


def jamba():
    transformers = pytest.importorskip("transformers")
    config = transformers.JambaConfig(
        vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, attn_layer_period=2, attn_layer_offset=1, num_experts=1, num_experts_per_tok=1,
        mamba_d_state=4, mamba_d_conv=4, mamba_dt_rank=4, use_mamba_kernels=False, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    return transformers.JambaForCausalLM(config).eval()


def decoding(model, ids, past):
    """The call that decodes the tokens after the first `past` ones."""
    with torch.no_grad():
        cache = model(input_ids=ids[:, :past], use_cache=True).past_key_values
    return {"input_ids": ids[:, past:], "attention_mask": torch.ones_like(ids), "past_key_values": cache}


def check(model, opened, call):
    got = opened.run(None, {n: t.numpy() for n, t in fairlead.tree.get_leaf_tensors(call).items()})
    with torch.no_grad():
        expected = fairlead.tree.get_leaf_tensors(model(**call)).values()
    for g, e in zip(got, expected, strict=True):
        torch.testing.assert_close(torch.from_numpy(g), e, rtol=1e-4, atol=1e-5)


def test_several_tokens_and_one(tmp_path):
    model, path = jamba(), tmp_path / "m.onnx"
    ids = torch.randint(1, 50, (3, 12), generator=torch.Generator().manual_seed(0))
    result = fairlead.export(model, decoding(model, ids[:, :6], 4), path)
    assert holds(result, "sequence = 1")
    assert set(result.contract.inputs[1]["shape"][1].split(" + ")) == {"past", "sequence"}
    opened = session(path)
    for rows, past, new in ((3, 4, 2), (2, 7, 2), (3, 6, 1), (1, 9, 1), (2, 5, 3)):
        check(model, opened, decoding(model, ids[:rows, : past + new], past))


@dataclasses.dataclass
class Decoded:
    logits: torch.Tensor
    past_key_values: tuple


class Filling(torch.nn.Module):
    """A cache that is used in another way each time it is longer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed = torch.nn.Embedding(50, 8)

    def forward(self, input_ids, attention_mask, past_key_values):
        new, (past,) = self.embed(input_ids), past_key_values
        used = {4: torch.tanh, 6: torch.relu, 7: torch.sigmoid, 8: torch.neg}.get(past.shape[1], torch.cos)
        both = torch.cat([past, new], 1)
        mask = attention_mask[:, :, None].to(both.dtype)
        return Decoded(used(both * mask).sum(1), (both,))


@pytest.mark.not_compared("the file stops at most sizes, and the test says at which")
def test_the_call_that_comes_next_in_generation(tmp_path):
    model, path = Filling().eval(), tmp_path / "m.onnx"

    def call(rows, past, new):
        ids = torch.randint(0, 50, (rows, new))
        mask = torch.ones(rows, past + new, dtype=torch.int64)
        return {"input_ids": ids, "attention_mask": mask, "past_key_values": (torch.randn(rows, past, 8),)}

    result = fairlead.export(model, call(3, 4, 2), path)
    assert len(holds(result, "past_key_values_0_dim_1 = 6")) == 1
    opened = session(path)
    for rows, past, new in ((3, 4, 2), (2, 4, 2), (3, 6, 1), (1, 6, 1), (2, 7, 1), (2, 8, 1)):
        check(model, opened, call(rows, past, new))
    with pytest.raises(Exception, match="past_key_values_0_dim_1 is 4"):
        opened.run(None, {n: t.numpy() for n, t in fairlead.tree.get_leaf_tensors(call(3, 5, 1)).items()})


class EmptyState(torch.nn.Module):
    """One step goes on from the state; several do not read it. Where it is zero both give the same."""

    def forward(self, x, state):
        return x[:, 0] + state if x.shape[1] == 1 else x.sum(1)


def test_a_branch_that_a_state_of_zeros_hides(tmp_path):
    path = tmp_path / "m.onnx"
    model = EmptyState().eval()
    fairlead.export(model, (torch.randn(2, 5, 4), torch.zeros(2, 4)), path)
    for length in (1, 2, 9):
        x, state = torch.randn(3, length, 4), torch.randn(3, 4)
        (got,) = session(path).run(None, {"x": x.numpy(), "state": state.numpy()})
        torch.testing.assert_close(torch.from_numpy(got), model(x, state))


def test_a_hybrid_of_attention_and_state_space_decodes_by_any_number_of_tokens(tmp_path):
    """Jamba loops over the tokens, and takes another path for one: a rolled loop in one of two programs."""
    transformers = pytest.importorskip("transformers", minversion="5.22")
    config = transformers.JambaConfig(
        vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, attn_layer_offset=1, attn_layer_period=2, expert_layer_offset=1, expert_layer_period=2,
        num_experts=2, num_experts_per_tok=1, mamba_d_state=4, mamba_d_conv=4, mamba_dt_rank=4, use_mamba_kernels=False,
        max_position_embeddings=64, tie_word_embeddings=False,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.JambaForCausalLM(config).eval()
    ids = torch.randint(1, 64, (2, 20))

    def call(past, new):
        with torch.no_grad():
            cache = model(ids[:, :past], use_cache=True).past_key_values
        mask = torch.ones(2, past + new, dtype=torch.int64)
        return {"input_ids": ids[:, past : past + new], "attention_mask": mask, "past_key_values": cache}

    path = tmp_path / "jamba.onnx"
    fairlead.export(model, call(4, 2), path)
    opened = session(path)
    for past, new in ((6, 1), (5, 3), (9, 1), (4, 6)):
        feeds = fairlead.tree.get_leaf_tensors(call(past, new))
        got = opened.run(None, {name: tensor.numpy() for name, tensor in feeds.items()})
        with torch.no_grad():
            expected = fairlead.tree.get_leaf_tensors(model(**call(past, new), use_cache=True))
        for want, have in zip(expected.values(), got, strict=True):
            torch.testing.assert_close(torch.from_numpy(have), want, atol=1e-4, rtol=1e-4)


class FarAway(torch.nn.Module):
    """Asks about two sizes at once, of which one has to be large for the other answer."""

    def forward(self, x, y):
        k = math.isqrt(x.shape[1]) // 8 + y.shape[1] // 8
        return torch.nn.functional.pad(x, (0, k if k < 40 else 20)) + y.sum()


def test_a_question_about_two_sizes_whose_other_answer_is_far_away(tmp_path):
    model = FarAway().eval()
    fairlead.export(model, (torch.rand(7, 7), torch.rand(7, 3)), tmp_path / "far.onnx")
    opened = session(tmp_path / "far.onnx")
    for width, length in ((7, 3), (7, 319), (7, 320), (9, 689), (70, 311), (70, 312)):
        x, y = torch.rand(2, width), torch.rand(2, length)
        (got,) = opened.run(None, {"x": x.numpy(), "y": y.numpy()})
        torch.testing.assert_close(torch.from_numpy(got), model(x, y), atol=1e-4, rtol=1e-4)


class ByRemainder(torch.nn.Module):
    """What is asked about the size has the same answers again and again."""

    def __init__(self, of):
        super().__init__()
        self.of = of

    def forward(self, x):
        return [torch.cos, torch.sin, torch.tanh][self.of(*x.shape)](x)


EVERY = [*range(1, 40), 100, 101, 255, 256, 1024, 1025]


@pytest.mark.parametrize("length", [6, 7, 8, 12])
@pytest.mark.parametrize(
    "of",
    [
        lambda n, m: n % 2,
        lambda n, m: (n + 6) // 7 % 2,
        lambda n, m: int(n // 4 * 4 == n),
        lambda n, m: n % 3,
        lambda n, m: int(n % 2 == 0 and m % 2 == 1),
    ],
    ids=["odd", "sevens", "fours", "thirds", "both"],
)
def test_sides_that_come_again_stand_both_in_the_file(tmp_path, of, length):
    model, path = ByRemainder(of).eval(), tmp_path / "m.onnx"
    result = fairlead.export(model, (torch.randn(length, 3),), path)
    assert not result.contract.fixed
    agrees(model, path, *((n, m) for n in EVERY for m in (3, 4, 21)))


class Windows(torch.nn.Module):
    """Shifted windows of 7, at two resolutions: none is shifted along a side that is one window."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(5, 5) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = self.shifted(layer(x))[:, ::2, ::2]
        return x.mean((1, 2))

    def shifted(self, x):
        shifts = [0 if size <= 7 else 3 for size in x.shape[1:3]]
        if sum(shifts) > 0:
            x = torch.roll(x, (-shifts[0], -shifts[1]), (1, 2))
            mask = x.new_zeros(x.shape[1:3])
            count = 0
            for rows in ((0, -7), (-7, -shifts[0]), (-shifts[0], None)):
                for columns in ((0, -7), (-7, -shifts[1]), (-shifts[1], None)):
                    mask[rows[0] : rows[1], columns[0] : columns[1]] = count
                    count += 1
            x = x + mask[..., None]
        return x


def test_the_larger_of_two_sides_chooses_and_each_program_is_there_once(tmp_path):
    """Sides of 7 and of 14 are thresholds: three programs, whichever side is the larger one, and a place in a slice
    that counts from the end or not."""
    model = Windows().eval()
    result = fairlead.export(model, (torch.randn(2, 24, 20, 5),), tmp_path / "model.onnx")
    held = [note for note in str(result.contract).splitlines() if "the file holds both" in note]
    assert len(held) == 2, result.contract
    for height, width in [(20, 24), (7, 7), (7, 8), (8, 7), (3, 14), (14, 3), (14, 15), (15, 4), (5, 40), (31, 29)]:
        agrees(model, tmp_path / "model.onnx", (1, height, width, 5))


def test_numbers_assigned_in_a_run_without_weights_are_no_other_program(tmp_path):
    """PyTorch fills a tensor with data from a number, and copies it into one without."""

    class Assigns(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(64, 64)

        def forward(self, x):
            mask = self.layer(x).new_zeros(x.shape[:2])
            mask[:, 1:4] = 2
            mask[0] = 0.5
            return self.layer(x) * mask[..., None] if x.shape[1] < 5000 else self.layer(x).relu()

    model = Assigns().eval()
    result = fairlead.export(model, (torch.randn(2, 4096, 64),), tmp_path / "model.onnx")
    assert "scalar_tensor" not in str(result.contract)
    agrees(model, tmp_path / "model.onnx", (3, 4, 64), (1, 4999, 64), (2, 5000, 64))


class KeptTable(torch.nn.Module):
    """Positions that are kept for one size, and made for others."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.side = 8
        self.register_buffer("table", self.made(8, 8))
        self.project = torch.nn.Conv2d(3, 4, 2, 2)

    def made(self, height, width):
        rows, columns = torch.arange(height // 2).float(), torch.arange(width // 2).float()
        return (rows[:, None] + 0.1 * columns).sin()[None, None]

    def forward(self, x):
        height, width = x.shape[-2:]
        table = self.table if height == self.side and width == self.side else self.made(height, width)
        return self.project(x) + table


def test_sizes_other_than_the_one_that_is_kept_are_a_program_of_the_file(tmp_path):
    model = KeptTable().eval()
    result = fairlead.export(model, (torch.randn(2, 3, 8, 8),), tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    name = session.get_inputs()[0].name
    for shape in [(2, 3, 8, 8), (1, 3, 8, 8), (3, 3, 12, 8), (3, 3, 8, 14), (2, 3, 20, 10), (1, 3, 6, 4)]:
        x = torch.randn(shape)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {name: x.numpy()})[0]), model(x).detach())
    assert not [row for row in result.contract.fixed if row.axis in (2, 3)]


class InMultiples(torch.nn.Module):
    """Takes multiples of 32, and shifts windows only where there are several."""

    def forward(self, x):
        if x.shape[1] % 32 != 0:
            raise ValueError("must be divisible by 32")
        if x.shape[1] > 96:
            return x.roll(3, 1).cumsum(1)
        return x * 2


def test_multiples_may_be_of_two_programs(tmp_path):
    model = InMultiples().eval()
    fairlead.export(model, (torch.randn(2, 64, 5),), tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    name = session.get_inputs()[0].name
    for size in (32, 64, 96, 128, 320):
        x = torch.randn(3, size, 5)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {name: x.numpy()})[0]), model(x))


class FarTable(torch.nn.Module):
    """Positions from a table of 5,000 both ways, as a conformer has them."""

    def __init__(self, attends):
        super().__init__()
        self.attends = attends
        self.linear = torch.nn.Linear(4, 4)
        self.table = torch.nn.Buffer(torch.randn(9999, 4))

    def forward(self, x, mask):
        n, middle = x.shape[1], self.table.shape[0] // 2
        if self.table.shape[0] >= 2 * n - 1:
            positions = self.table[middle - n + 1 : middle + n]
        elif self.attends:
            positions = torch.zeros(2 * n - 1, 4)
        else:
            raise ValueError("too long")
        y = self.linear(x) * mask[:, :, None] + positions[:n]
        return (y @ y.mT).softmax(-1) @ y if self.attends else y


@pytest.mark.parametrize("attends", [False, True])
def test_a_program_ends_at_the_very_size_far_away_and_is_not_followed_where_that_costs_too_much(tmp_path, attends):
    inputs = (torch.randn(13, 60, 4), torch.ones(13, 60))
    result = fairlead.export(FarTable(attends).eval(), inputs, tmp_path / "model.onnx")
    length = next(s for s in result.contract.symbols if 60 in s["tried"])
    assert length["max"] == 5000
    assert not any("holds both" in note for note in result.contract.notes)


class ByArea(torch.nn.Module):
    """Sizes in multiples of 4, whose product decides, by a comparison that is seen or by a text that forgets it."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def forward(self, x):
        batch, height, width = x.shape
        y = x.view(batch, height // 4, 4, width // 4, 4).sum((2, 4))
        area = height * width
        return y.sin() if (area if self.seen else int(str(area))) > 150 else y.cos()


def test_sizes_that_part_only_together_are_free_where_the_model_says_what_decides(tmp_path):
    model, path = ByArea(seen=True).eval(), tmp_path / "m.onnx"
    result = fairlead.export(model, (torch.randn(2, 8, 8),), path)
    agrees(model, path, (3, 8, 12), (3, 12, 12), (3, 12, 16), (3, 40, 4), (3, 64, 64))
    assert any("holds both" in note for note in result.contract.notes)


def test_a_bound_behind_which_another_program_is_not_followed_is_said(tmp_path):
    model, path = ByArea(seen=False).eval(), tmp_path / "m.onnx"
    result = fairlead.export(model, (torch.randn(2, 8, 8),), path)
    most = [s["max"] for s in result.contract.symbols[1:]]
    for symbol, bound in zip(result.contract.symbols[1:], most, strict=True):
        words = f"the file refuses {symbol['name']} above {bound}: there the model executes another program"
        assert words in result.contract.notes
    agrees(model, path, (1, 4 * most[0], 4 * most[1]))


class Blocks(Pair):
    """Blocks of 8, of which a single one goes another way."""

    def forward(self, x):
        y = x.unflatten(1, (-1, 8))
        return self.first(y) if y.shape[1] == 1 else self.second(y).cumsum(1)


def test_what_several_programs_read_has_no_size_of_one_of_them(tmp_path):
    model, path = Blocks().eval(), tmp_path / "m.onnx"
    fairlead.export(model, (torch.randn(2, 32, 64),), path)
    agrees(model, path, (2, 8, 64), (3, 40, 64))
    outer = onnx.load(path).graph
    assert sum(node.op_type == "If" for node in outer.node) == 1
    sizes = [d.dim_param or d.dim_value for v in outer.value_info for d in v.type.tensor_type.shape.dim]
    assert 8 not in sizes  # ONNX Runtime plans its memory by them


class FewColumns(torch.nn.Module):
    def forward(self, x):
        return x.amax(1) if x.shape[1] > 5 else x.sum(1)


def test_what_bounds_one_of_two_sizes_that_are_alike_does_not_bound_the_other(tmp_path):
    """The other program is tried where there are as many columns as rows."""
    model, path = FewColumns().eval(), tmp_path / "m.onnx"
    fairlead.export(model, (torch.randn(3, 9),), path)
    agrees(model, path, (50, 2), (50, 5), (50, 6), (3, 3))


class EitherIsSmall(torch.nn.Module):
    def forward(self, x):
        height, width = x.shape[1:]
        if height < 16 or width < 16:
            x = torch.nn.functional.pad(x, (0, max(0, 16 - width), 0, max(0, 16 - height)))
        return x[:, :16, :16]


@pytest.mark.parametrize("example", [(24, 30), (12, 30), (30, 12), (12, 13)])
def test_a_program_of_either_of_two_bounds_takes_both_sides(example, tmp_path):
    """What lies behind the second bound is the program that was opened for the first."""
    model, path = EitherIsSmall().eval(), tmp_path / "m.onnx"
    fairlead.export(model, (torch.randn(2, *example),), path)
    sizes = (3, 15, 16, 40)
    agrees(model, path, *((2, height, width) for height in sizes for width in sizes))
