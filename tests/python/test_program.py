"""ExportedPrograms: from the recorded operators and through torch.export, saved, loaded, run at sizes never seen."""

import os
import shutil

import pytest
import torch
import zoo
from fairlead.exporters import DynamoConfig, DynamoExporter
from fairlead.tree.caches.register import forget_kept

import fairlead


@pytest.fixture(autouse=True)
def _caches_as_before():
    yield
    forget_kept()


class Branches(torch.nn.Module):
    """Reads a value that is the same in every run."""

    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x - 1


class TakesCount(torch.nn.Module):
    """A read value is a size."""

    def forward(self, x, n):
        return torch.arange(int(n.max()) + x.shape[0]) + 1


class Finds(torch.nn.Module):
    """Sizes that the data decides."""

    def forward(self, x):
        return torch.nonzero(x > 0), x[x > 0] * 2


class Writes(torch.nn.Module):
    """Writes an input and a buffer, and returns nested containers."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x, scale=2.0):
        self.seen.add_(x.mean(0))
        x.mul_(scale)
        return {"out": self.linear(x) + self.seen, "more": [x.sum(), None]}


class Even(torch.nn.Module):
    """Sizes in multiples, rounded, and made into a tensor; linspace by a size."""

    def forward(self, x):
        h = x.shape[1]
        pairs = x[:, ::2].reshape(-1, 3)
        return pairs, x * torch.tensor([h, 2.0 * h]).prod() + torch.linspace(0, 1, h).sum()


def loaded(path):
    with fairlead.tree.register_flattening_functions():
        return torch.export.load(path)


def same(got, want):
    got, want = fairlead.tree.get_leaf_tensors(got), fairlead.tree.get_leaf_tensors(want)
    assert list(got) == list(want)
    for name, tensor in want.items():
        torch.testing.assert_close(got[name], tensor, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "inputs", "others"),
    [
        (Finds(), (torch.randn(5, 6),), [(torch.randn(2, 3),), (torch.randn(9, 1),)]),
        (Even(), (torch.randn(4, 8, 3),), [(torch.randn(2, 5, 3),), (torch.randn(1, 1, 3),)]),
    ],
    ids=["data sizes", "derived sizes"],
)
def test_a_program_from_the_recording_runs_at_other_sizes(model, inputs, others, tmp_path):
    path = tmp_path / "model.pt2"
    result = fairlead.export(model.eval(), inputs, path)
    assert "rebuilt from the recorded operators (method 'recorded')" in str(result.contract)
    assert os.listdir(tmp_path) == ["model.pt2"]
    program = loaded(path).module()
    for other in [inputs, *others]:
        same(program(*other), model(*other))


def test_a_value_read_is_a_size_of_the_program():
    model = TakesCount().eval()
    # Runs at other sizes cut the counts: their largest is another one then.
    inputs = {"x": torch.randn(4), "n": torch.tensor([3, 9, 5, 12, 7])}
    program = DynamoExporter().export(model, inputs, DynamoConfig(dynamic=True)).module()
    for count in (1, 30):
        other = {"x": torch.randn(6), "n": torch.tensor([0, count])}
        same(program(**other), model(**other))


def test_a_program_cannot_stop_at_another_answer_so_a_branch_on_a_value_is_an_error(tmp_path):
    with pytest.raises(fairlead.Diverged, match="it branches on a value there"):
        fairlead.export(Branches().eval(), (torch.rand(3, 4),), tmp_path / "model.pt2")


def test_what_torch_export_refuses_is_one_line_and_the_recording_is_used(tmp_path):
    model, inputs = Branches().eval(), {"x": torch.rand(3, 4)}
    config = DynamoConfig(dynamic=True, method="torch.export", output_path=tmp_path / "model.pt2")
    with pytest.raises(fairlead.Unsupported, match=r"Expected torch\.export to take the model, but it raised") as error:
        DynamoExporter().export(model, inputs, config)
    assert "\n" not in str(error.value)
    assert os.listdir(tmp_path) == []
    program = DynamoExporter().export(model, inputs, DynamoConfig(dynamic=True, verify=False))
    assert isinstance(program, torch.export.ExportedProgram)
    assert "read True from a tensor" in str(program.contract)
    same(program.module()(**inputs), model(**inputs))


@pytest.mark.parametrize("name", ["bert_masked_lm", "vit", "llama_decode"])
def test_a_model_keeps_its_arguments_and_its_results(name, tmp_path):
    torch.manual_seed(0)
    model, inputs = {**zoo.MODELS, **zoo.PLAIN}[name]()
    path = tmp_path / "model.pt2"
    result = fairlead.export(model, inputs, path)
    assert max(row["scaled"] for row in result.discrepancies) < 1e-5
    assert sum(row["kind"] == "unseen" for row in result.discrepancies) >= 3
    program = loaded(path).module()
    names = list(fairlead.tree.get_leaf_tensors(inputs))
    for batch in (1, 5):
        tensors = fairlead.tree.get_leaf_tensors(inputs)
        other = fairlead.tree.replace_leaf_tensors(
            inputs, [tensors[n][:1].repeat(batch, *[1] * (tensors[n].dim() - 1)) for n in names]
        )
        with torch.no_grad():
            want = model(
                **fairlead.tree.replace_leaf_tensors(other, list(fairlead.tree.get_leaf_tensors(other).values()))
            )
            got = program(**other)
        assert type(got) is type(want)
        same(got, want)


def test_weights_are_the_models_own_under_their_names():
    model, inputs = zoo.MODELS["bert_masked_lm"]()
    program = fairlead.export(model, inputs, None, verify=False) and DynamoExporter().export(model, inputs)
    mine = dict(model.named_parameters())
    held = dict(program.named_parameters())
    assert held
    for name, tensor in held.items():
        assert tensor.data_ptr() == mine[name].data_ptr()
    assert set(program.state_dict) <= set(model.state_dict())


def test_inputs_and_buffers_are_written_as_the_model_writes_them(tmp_path):
    model = Writes().eval()
    path = tmp_path / "model.pt2"
    result = fairlead.export(model, {"x": torch.randn(5, 3)}, path)
    assert set(result.contract.written) == {"x", "seen"}
    program = loaded(path).module()
    x = torch.randn(2, 3)
    for _ in range(2):
        ours, theirs = x.clone(), x.clone()
        same(program(x=ours), model(x=theirs))
        torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(program.seen, model.seen)


def test_torch_export_is_taken_where_it_is_asked_for():
    model, inputs = zoo.MODELS["bert_masked_lm"]()
    shapes = {"input_ids": {0: "batch"}, "attention_mask": {0: "batch"}}
    program = DynamoExporter().export(model, inputs, DynamoConfig(dynamic_shapes=shapes, method="torch.export"))
    assert "made by torch.export from the model (method 'torch.export', as asked)" in str(program.contract)
    other = {name: tensor[:1].repeat(4, 1) for name, tensor in inputs.items()}
    same(program.module()(**other), model(**other))


def test_what_torch_export_cannot_serve_is_in_the_contract():
    model, inputs = zoo.decoder("LlamaForCausalLM", "LlamaConfig", **zoo.LLAMA_LIKE | {"num_hidden_layers": 1})()
    program = DynamoExporter().export(model, inputs, DynamoConfig(dynamic=True, method="torch.export"))
    assert "sequence: at least 2, because torch.export makes 1 another program" in str(program.contract)
    assert "batch=1, sequence=2" in program.contract.verified


def test_a_size_that_torch_cannot_vary_is_fixed():
    result = fairlead.export(torch.nn.GRU(3, 5, batch_first=True).eval(), (torch.randn(2, 7, 3),), None, verify=False)
    assert [s["name"] for s in result.contract.symbols] == ["batch", "input_dim_1"]  # in ONNX both vary
    program = DynamoExporter().export(
        torch.nn.GRU(3, 5, batch_first=True).eval(), {"input": torch.randn(2, 7, 3)}, DynamoConfig(dynamic=True)
    )
    assert [s["name"] for s in program.contract.symbols] == ["batch"]
    assert "axis 1 of input = 7: it raised" in str(program.contract)


def test_static_sizes_are_those_of_the_sample():
    model, inputs = zoo.PLAIN["mlp"]()
    program = DynamoExporter().export(model, {"input": inputs[0]})
    assert not program.range_constraints
    with pytest.raises(AssertionError, match=r"Guard failed: input\.size"):
        program.module()(input=torch.randn(9, 8))


def test_sizes_that_belong_together_are_checked_when_the_program_runs():
    model, inputs = zoo.MODELS["llama_decode"]()
    program = DynamoExporter().export(model, inputs, DynamoConfig(dynamic=True)).module()
    wrong = inputs | {"attention_mask": torch.ones(2, 4, dtype=torch.int64)}
    with pytest.raises(Exception, match="attention_mask"):
        program(**wrong)


@pytest.mark.skipif(shutil.which("g++") is None, reason="AOTInductor needs a C++ compiler")
def test_a_program_compiles_ahead_of_time(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)).eval()
    result = fairlead.export(model, (torch.randn(3, 8),), tmp_path / "model.pt2")
    quick = {"cpp.simdlen": 1, "aot_inductor.compile_wrapper_opt_level": "O0", "cpp_cache_precompile_headers": False}
    package = torch._inductor.aoti_compile_and_package(
        result.model, package_path=str(tmp_path / "compiled.pt2"), inductor_configs=quick
    )
    compiled = torch._inductor.aoti_load_package(package)
    for batch in (1, 7):
        x = torch.randn(batch, 8)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"opset": 21}, r"Expected opset for \.onnx files only, got it for a \.pt2 file"),
        ({"output_names": ["y"]}, r"Expected output_names for \.onnx files only"),
        ({"tolerance": -1}, "Expected a tolerance of 0 or more"),
    ],
)
def test_options_that_mean_nothing_here_are_refused(options, text, tmp_path):
    model, inputs = zoo.PLAIN["mlp"]()
    with pytest.raises(fairlead.InvalidInput, match=text):
        fairlead.export(model, inputs, tmp_path / "model.pt2", **options)
    assert os.listdir(tmp_path) == []


def test_a_program_that_differs_leaves_no_file(tmp_path):
    class Sums(torch.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x  # never seen negative, but checked with the second call

    calls = [(torch.rand(3, 4),), (-torch.rand(3, 4),)]
    with pytest.raises(fairlead.FairleadError):
        fairlead.export(Sums().eval(), calls, tmp_path / "model.pt2", dynamic_shapes=({},))
    assert os.listdir(tmp_path) == []
