"""Files for ExecuTorch, run in its runtime: XNNPACK and portable kernels, static and dynamic."""

import importlib.util
import os
import sys

import pytest
import torch
import zoo
from fairlead.exporters import ExecutorchConfig, ExecutorchExporter

import fairlead

installed = importlib.util.find_spec("executorch") is not None
needs_executorch = pytest.mark.skipif(not installed, reason="the package executorch is not installed")

ONE_LAYER = {"num_hidden_layers": 1}


def bert():
    import transformers

    return transformers.BertModel(transformers.BertConfig(**zoo.small(**ONE_LAYER))).eval(), zoo.text()


def llama():
    return zoo.with_cache(zoo.decoder("LlamaForCausalLM", "LlamaConfig", **zoo.LLAMA_LIKE | ONE_LAYER))()


def t5():
    import transformers

    config = transformers.T5Config(
        vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4, decoder_start_token_id=0, use_cache=False
    )
    inputs = zoo.text() | {"decoder_input_ids": torch.randint(3, 99, (2, 5))}
    return transformers.T5ForConditionalGeneration(config).eval(), inputs


def whisper_encoder():
    model, inputs = zoo.MODELS["whisper"]()
    return model.model.encoder, {"input_features": inputs["input_features"]}


def vit():
    import transformers

    config = transformers.ViTConfig(
        hidden_size=32, intermediate_size=48, num_attention_heads=4, image_size=16, patch_size=8, **ONE_LAYER
    )
    return transformers.ViTModel(config).eval(), {"pixel_values": torch.randn(2, 3, 16, 16)}


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x):
        return torch.softmax(self.linear(x), -1), x.reshape(-1)


# Every model dynamic and static, every backend with both.
CASES = [
    (llama, "xnnpack", True), (llama, None, False), (bert, "xnnpack", True), (bert, None, False),
    (t5, None, True), (t5, "xnnpack", False), (whisper_encoder, "xnnpack", True), (whisper_encoder, None, False),
    (vit, None, True), (vit, "xnnpack", False),
]  # fmt: skip


@needs_executorch
@pytest.mark.parametrize(
    ("make", "backend", "dynamic"),
    CASES,
    ids=[f"{m.__name__}-{b or 'portable'}-{'dynamic' if d else 'static'}" for m, b, d in CASES],
)
def test_a_model_runs_in_the_runtime(make, backend, dynamic, tmp_path):
    torch.manual_seed(0)
    model, inputs = make()
    path = tmp_path / "model.pte"
    config = ExecutorchConfig(backend=backend, dynamic=dynamic, max_size=32, output_path=path)
    result = ExecutorchExporter().result(model, inputs, config)
    # The file was run at the example and, where sizes are dynamic, at three settings that were never probed.
    assert sum(row["kind"] == "unseen" for row in result.discrepancies) >= (3 if dynamic else 0)
    assert max(row["scaled"] for row in result.discrepancies) < 1e-4
    assert os.listdir(tmp_path) == ["model.pte"]
    assert bool(result.contract.symbols) == dynamic
    # Asked for 32 rows, ExecuTorch plans memory for 15 of Whisper's ("Attempted to resize a bounded tensor with a
    # maximum capacity of 14400 elements"). The check at 32 finds it, and the contract ends at the sizes that ran.
    most = 5 if dynamic and make is whisper_encoder else 32
    for symbol in result.contract.symbols:
        assert symbol["max"] == most
    note = next(n for n in result.contract.notes if n.startswith("ExecuTorch plans"))
    assert ("no delegates" in note) == (backend is None)
    outputs = result.model(**inputs)
    want = fairlead.tree.get_leaf_tensors(
        model(**fairlead.tree.replace_leaf_tensors(inputs, fairlead.tree.get_leaf_tensors(inputs)))
    )
    for got, tensor in zip(outputs.values(), want.values(), strict=True):
        torch.testing.assert_close(got, tensor, rtol=1e-4, atol=1e-4)


@needs_executorch
def test_the_suffix_decides_and_a_maximum_of_the_user_counts(tmp_path):
    path = tmp_path / "model.pte"
    shapes = {"x": {0: torch.export.Dim("rows", max=16)}}
    result = fairlead.export(Small().eval(), {"x": torch.randn(3, 8)}, path, dynamic_shapes=shapes)
    assert "rows: from axis 0 of x; ran at" in str(result.contract)
    assert "allowed 1 to 16" in str(result.contract)
    assert "ExecuTorch at the example, with 5 other values and at rows=1" in result.contract.verified
    from fairlead.targets.executorch.session import ExecutorchSession

    for rows in (1, 16):
        x = torch.randn(rows, 8)
        for got, want in zip(ExecutorchSession(str(path)).tensors([x]), result_model(result)(x), strict=True):
            torch.testing.assert_close(got, want)


@needs_executorch
def test_a_view_of_no_elements_is_an_input(tmp_path):
    """An empty past has the strides of what it was cut from: the runtime ended the process."""
    from fairlead.targets.executorch.session import ExecutorchSession

    class Longer(torch.nn.Module):
        def forward(self, past, new):
            return torch.cat([past, new], 2)

    path, past, new = tmp_path / "model.pte", torch.randn(2, 2, 7, 8), torch.randn(2, 2, 3, 8)
    fairlead.export(Longer().eval(), (past, new), path)
    (got,) = ExecutorchSession(str(path)).tensors([past[:, :, :0], new])
    torch.testing.assert_close(got, new)


def result_model(result):
    """The model with the weights that the program holds."""
    model = Small()
    model.load_state_dict(result.model.exported_program().state_dict)
    return model


@needs_executorch
@pytest.mark.parametrize("field", ["alloc_graph_input", "alloc_graph_output", "alloc_mutable_buffers"])
def test_memory_can_be_left_to_the_caller(field):
    inputs = {"x": torch.randn(3, 8)}
    planned = {}
    for value in (True, False):
        config = ExecutorchConfig(backend=None, verify=value, **{field: value})
        program = ExecutorchExporter().export(Small().eval(), inputs, config)
        note = next(n for n in program.contract.notes if n.startswith("ExecuTorch plans"))
        planned[value] = int(note.split()[2])
    if field == "alloc_mutable_buffers":
        assert planned[False] == planned[True]  # there are none in this model
    else:
        assert planned[False] < planned[True]


@pytest.mark.parametrize(("backend", "words"), [("cuda", "an NVIDIA GPU"), ("mlx", "a Mac with Apple silicon")])
def test_a_backend_says_what_it_needs(backend, words):
    from fairlead.targets.executorch.write import check_backend

    with pytest.raises(fairlead.InvalidInput, match=f"got '{backend}', which needs {words}") as error:
        check_backend(backend)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("size", [0, True, "many", {"batch": 0}])
def test_a_maximum_that_is_none_is_refused(size):
    with pytest.raises(fairlead.InvalidInput, match="Expected max_size as a number of 1 or more"):
        ExecutorchConfig(max_size=size)


def test_a_missing_package_is_one_line(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "executorch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "executorch", None)
    with pytest.raises(fairlead.InvalidInput, match="Install it with pip install executorch"):
        fairlead.export(Small().eval(), {"x": torch.randn(3, 8)}, tmp_path / "model.pte")


@needs_executorch
def test_what_executorch_cannot_take_is_one_line(tmp_path):
    class Fft(torch.nn.Module):
        def forward(self, x):
            return torch.fft.fft2(x).abs()

    with pytest.raises(fairlead.FairleadError) as error:
        fairlead.export(Fft().eval(), {"x": torch.randn(3, 8)}, tmp_path / "model.pte", dynamic_shapes={})
    assert "\n" not in str(error.value)
    assert os.listdir(tmp_path) == []
