"""Bad input: what a user can get wrong about model, inputs, options and path, each refused in one line."""

from __future__ import annotations

import os

import pytest
import torch
from torch.export import Dim
from untouched import Fn, refusal, untouched

import fairlead

torch.manual_seed(0)
X = torch.rand(3, 4)


def double(x, *more):
    return x * 2


def refused(inputs=(X,), model=None, folder=None, error=fairlead.InvalidInput, **options) -> str:
    return refusal(error, model if model is not None else Fn(double), inputs, folder, **options)


# ---- the model -----------------------------------------------------------------------------------------


def test_a_model_whose_parameters_have_no_sizes_yet(tmp_path):
    with pytest.raises(fairlead.InvalidInput) as refused:
        fairlead.export(torch.nn.Sequential(torch.nn.LazyLinear(4)).eval(), (X,), tmp_path / "model.onnx")
    assert str(refused.value) == (
        "[export] Expected a model whose parameters have sizes, got 0.weight, which has none yet. "
        "Call the model once: it finds them."
    )


def test_a_model_in_training_mode(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout()).eval()
    model[1].train()
    assert refused(model=model, folder=tmp_path) == (
        "[export] Expected a model in eval mode, got 1 in training mode. "
        "Call model.eval() first: dropout and batch norm behave differently in training."
    )
    assert "got Dropout in training mode" in refused(model=torch.nn.Dropout(), folder=tmp_path)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (double, "got function. Wrap functions in a module."),
        (torch.nn.Linear, "got the class Linear. Make an object of it first."),
        ("model.pt", "got str. Wrap functions in a module."),
    ],
)
def test_what_is_not_a_module(tmp_path, model, text):
    assert refused(model=model, folder=tmp_path) == f"[export] Expected a torch.nn.Module, {text}"


class Alike(torch.nn.Linear):
    def __eq__(self, other):
        return True


class Later(torch.nn.Linear):
    async def forward(self, x):
        return x


def of_half_a_letter():
    model = torch.nn.Sequential()
    model._modules["\ud800"] = torch.nn.Linear(4, 4)
    return model.eval()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Later(4, 4).eval(), "a forward that computes, got that of Later, which is a coroutine (async def)."),
        (of_half_a_letter, "names of modules and weights that are texts, got '\\ud800'. Rename it."),
        (lambda: Fn(lambda x: {"\ud800": x}), "names of outputs that are texts, got '\\ud800'. Rename it, or pass"),
        (lambda: Fn(lambda x: x.to("meta")), "outputs with values, got output on meta."),
    ],
    ids=["a coroutine", "names of modules", "names of outputs", "meta"],
)
def test_models_that_nobody_can_go_through_or_name(tmp_path, make, text):
    assert text in refused(model=make(), folder=tmp_path)


def test_hundreds_of_levels_and_odd_classes_are_one_error_or_none(tmp_path):
    deep = torch.nn.Linear(4, 4)
    for _ in range(400):
        deep = torch.nn.Sequential(deep)
    for module in deep.modules():
        module.training = False
    assert "RecursionError" in refused(model=deep, folder=tmp_path)
    with pytest.raises(fairlead.InvalidInput, match="modules that Python can put into a set"):
        fairlead.export(Alike(4, 4).eval(), (X,), tmp_path / "model.onnx")
    odd = type("Odd", (torch.nn.Linear,), {"__module__": 7})(4, 4).eval()
    assert fairlead.export(odd, (X,), tmp_path / "model.onnx").discrepancies


@pytest.mark.parametrize("value", [None, {"a": None}])
def test_a_model_that_returns_no_tensor(tmp_path, value):
    assert refused(model=Fn(lambda x: value), folder=tmp_path) == (
        "[export] Expected a model that returns tensors, got none. Return at least one tensor from forward."
    )


def test_an_example_that_eager_itself_refuses(tmp_path):
    text = refused(model=torch.nn.Linear(5, 4).eval(), folder=tmp_path)
    assert text == (
        "[export] Expected an example call that the model accepts, but the model raised RuntimeError: mat1 "
        ""
        "and mat2 shapes "
        "cannot be multiplied (3x4 and 5x4). Check the inputs against the model's forward."
    )
    text = refused(({"y": X},), model=torch.nn.Linear(5, 4).eval(), folder=tmp_path)
    assert "Expected an example call that the model accepts, but the model raised TypeError" in text


# ---- what works although it looks odd --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "names"),
    [
        (lambda x: x, ["output"]),
        (lambda x: {"a": x, "b": x}, ["a", "b"]),
        (lambda x: [y := x * 2, y], ["0", "1"]),
        (lambda x: {"x": x + 1, "one": torch.ones(3)}, ["present.x", "one"]),
    ],
    ids=["input unchanged", "input twice", "same tensor twice", "named as the input, and a constant"],
)
def test_outputs_that_are_inputs_or_the_same_tensor_work(tmp_path, fn, names):
    model = Fn(fn)
    with untouched(model):
        result = fairlead.export(model, (X,), tmp_path / "model.onnx")
    assert [o["name"] for o in result.contract.outputs] == names
    assert len(result.discrepancies) >= 4
    assert all(row["ok"] for row in result.discrepancies)


# ---- the inputs ----------------------------------------------------------------------------------------


def test_tensors_on_different_devices(tmp_path):
    meta = "Move model and inputs to the CPU with .cpu(); a tensor on meta has no values: load the weights first."
    linear = torch.nn.Linear(4, 4).eval()
    assert refused((X.to("meta"),), model=linear, folder=tmp_path) == (
        f"[export] Expected all tensors on one device, got input on meta and the model's weight on cpu. {meta}"
    )
    assert refused((X, X.to("meta")), folder=tmp_path) == (
        f"[export] Expected all tensors on one device, got more_1 on meta and x on cpu. {meta}"
    )
    split = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4, device="meta")).eval()
    assert "got 2 tensors on meta, 1.weight among them, which have no values" in refused(model=split, folder=tmp_path)
    both = refused((X.to("meta"),), model=torch.nn.Linear(4, 4, device="meta").eval(), folder=tmp_path)
    assert both.startswith("[export] Expected weights, got 2 tensors on meta, weight among them, which have no values.")


class Slots:
    __slots__ = ()


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ((X, Slots()), "got Slots at more_1. Register the class with torch.utils._pytree.register_pytree_node."),
        ((X, [{"it": Slots()}]), "got Slots at more_1.0.it."),
        (
            "abc",
            "Expected inputs as a tuple, a dict or a list of calls, got str. Pass (x,) for one positional argument.",
        ),
        (5, "Expected inputs as a tuple, a dict or a list of calls, got int."),
        ([], "Expected at least one example call, got an empty list. Give one tuple or dict per call."),
        ([X], "Expected a list of calls, each a tuple or a dict, got a Tensor in it."),
        ((), "Expected at least one tensor among the inputs, got none. Pass the model's tensors."),
        ((3,), "Expected at least one tensor among the inputs, got none."),
        ([(X,), (X[0],)], "got x of float32[3, 4] in call 0 and of float32[4] in call 1. Export them separately."),
        (
            [(X, 1), (X, 2)],
            "got more_1 = 1 in call 0 and 2 in call 1. Export them separately: a file has one value of it.",
        ),
        ([(X, {"a": None}), (X, {"b": None})], "got more_1.a = None in call 0 and nothing in call 1."),
        ([(X,), (X.double(),)], "got x of float32[3, 4] in call 0 and of float64[3, 4] in call 1."),
        ((X.to_sparse(),), "Expected dense tensors as inputs, got x, which is sparse_coo. Make it dense."),
        ((torch.nested.nested_tensor([X, X]),), "Expected dense tensors as inputs, got x, which is nested. Make it"),
        ((X, {"\ud800": X}), "Expected names of inputs that are texts, got 'more_1.\\ud800'. Rename it."),
        ([(X,), (X, X)], "Expected calls with the same tensors, but more_1 is in one of call 0 and call 1 only."),
    ],
)
def test_inputs_that_cannot_be_used(tmp_path, inputs, text):
    found = refused(inputs, folder=tmp_path)
    assert text in found
    assert found.startswith("[export] Expected ")


# ---- the options ---------------------------------------------------------------------------------------

ACCEPTED = "Expected a name, a Dim, Dim.DYNAMIC, Dim.AUTO, Dim.STATIC, its own size or None for axis 0 of x"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"opset": 17}, "Expected an opset from 18 to 26, got 17. Leave it out for 20; newer ones need a newer ONNX"),
        ({"opset": 99}, "Expected an opset from 18 to 26, got 99."),
        ({"opset": "18"}, "Expected an opset from 18 to 26, got '18'."),
        ({"external_data": "yes"}, 'Expected external_data "auto", "always" or "never", got \'yes\'.'),
        ({"tolerance": -1}, "Expected a tolerance of 0 or more, or None, got -1."),
        ({"input_names": ["a", "b"]}, "Expected 1 input_names, one per tensor (x), got 2."),
        ({"input_names": []}, "Expected 1 input_names, one per tensor (x), got 0."),
        ({"input_names": "x"}, "Expected input_names as a list of names, got 'x'. Write ['x'] for one."),
        ({"input_names": [5]}, "Expected input_names made of names, got 5 in it."),
        ({"input_names": ["\ud800"]}, "Expected input_names made of names, got '\\ud800' in it."),
        ({"notes": ["\ud800"]}, "Expected notes as a list of texts, got ['\\ud800']."),
        ({"notes": "one"}, "Expected notes as a list of texts, got 'one'."),
        ({"max_size": 7}, "Expected max_size as sizes by name of a symbol, got 7."),
        ({"max_size": {7: 7}}, "Expected max_size as sizes by name of a symbol, got {7: 7}."),
        ({"max_size": {"batch": 1 << 70}}, "Expected max_size with a number of 1 or more for batch, got 11805916207"),
        ({"output_names": ["a", "b"]}, "Expected 1 output_names, one per tensor (output), got 2."),
        ({"output_names": ["a", "a"]}, "Expected different output_names, got 'a' twice. Rename one."),
        ({"output_names": ["x"]}, "Expected different names for inputs and outputs, got 'x' in both. Rename one."),
        ({"input_names": ["a"], "output_names": ["a"]}, "Expected different names for inputs and outputs, got 'a' in"),
    ],
)
def test_options_that_cannot_be_used(tmp_path, options, text):
    assert f"[export] {text}" in refused(folder=tmp_path, **options)


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ("batch", 'Expected dynamic_shapes as a tuple or a dict, got str. Write {"x": {0: "batch"}} for a dynamic'),
        (({0: "a"}, {0: "b"}), "Expected dynamic_shapes with one entry per argument (1: x), got 2. Use None for"),
        ({"y": {0: "a"}}, "Expected dynamic_shapes for the arguments x, got y. Use the names of the call."),
        (({5: "a"},), "Expected axes 0 to 1 for x in dynamic_shapes, got 5 (its shape is [3, 4])."),
        (({-3: "a"},), "Expected axes 0 to 1 for x in dynamic_shapes, got -3"),
        ((("a",),), "Expected 2 entries for x in dynamic_shapes, one per axis of [3, 4], got 1."),
        (({0: 1.5},), f"{ACCEPTED} in dynamic_shapes, got 1.5."),
        (({0: object},), f"{ACCEPTED} in dynamic_shapes, got <class 'object'>."),
        (({"0": "a"},), "Expected {axis: dim} or one dim per axis for x in dynamic_shapes, got a dict with keys '0'."),
        (
            ({"a": {0: "n"}},),
            "Expected {axis: dim} or one dim per axis for x in dynamic_shapes, got a dict with keys 'a'.",
        ),
        (({"a", "b"},), "Expected {axis: dim} or one dim per axis for x in dynamic_shapes, got a set."),
        (({0: 7},), "Expected axis 0 of x in dynamic_shapes to be 3 as in the example, got 7. Use a name or None."),
        (({0: ""},), "Expected a name of letters, digits and _ for axis 0 of x in dynamic_shapes, got ''."),
        (({0: "a + 1"},), "got 'a + 1'. Sums and products are found by themselves: use Dim.DYNAMIC for them."),
        (({0: "n", 1: "n"},), "Expected every dimension named 'n' to have one size, got 3 and 4 (axis 1 of x)."),
        (
            ({0: Dim("n", min=5, max=9)},),
            "Expected the example within the bounds of axis 0 of x in dynamic_shapes, 5 to 9",
        ),
        (
            ({0: Dim.DYNAMIC(min=5)},),
            "Expected the example within the bounds of axis 0 of x in dynamic_shapes, 5 or more",
        ),
    ],
)
def test_dynamic_shapes_that_are_malformed(tmp_path, shapes, text):
    found = refused(folder=tmp_path, dynamic_shapes=shapes)
    assert found.startswith("[export] Expected ")
    assert text in found


def test_dynamic_shapes_of_a_container_need_one_entry_per_tensor(tmp_path):
    model = Fn(lambda x, pair: x + pair[0] + pair[1])
    text = refused((X, [X, X]), model=model, folder=tmp_path, dynamic_shapes=({0: "n"}, [{0: "n"}]))
    assert text == (
        "[export] Expected 2 entries for more_1 in dynamic_shapes (one per tensor: more_1.0, more_1.1), got 1."
    )


@pytest.mark.parametrize(
    ("shapes", "shape"),
    [
        (({-2: "n"},), ["n", "4"]),
        ((("n", 4),), ["n", "4"]),
        (({0: Dim.AUTO, 1: Dim.STATIC},), ["batch", "4"]),
        (({0: 2 * Dim("half")},), ["batch", "4"]),
        ((None,), ["3", "4"]),
        ({}, ["3", "4"]),
    ],
)
def test_dynamic_shapes_that_are_well_formed(tmp_path, shapes, shape):
    result = fairlead.export(Fn(double), (X,), tmp_path / "model.onnx", dynamic_shapes=shapes)
    assert result.contract.inputs[0]["shape"] == shape


# ---- the path ------------------------------------------------------------------------------------------


def test_a_path_that_cannot_be_written(tmp_path):
    def write(path, error=fairlead.WriteError):
        return refused(folder=tmp_path, path=path, error=error)

    (tmp_path / "file").write_text("a file")
    missing = tmp_path / "no" / "such"
    assert write(missing / "m.onnx") == (
        f"[export] Could not write '{missing / 'm.onnx'}': the folder {missing} does not exist. Create it first."
    )
    inside = tmp_path / "file" / "m.onnx"
    assert write(inside) == (
        f"[export] Could not write '{inside}': the folder {tmp_path / 'file'} is a file. Create it first."
    )
    assert write(tmp_path) == (
        f"[export] Could not write '{tmp_path}': it is a folder. Give the name of a file in it, such as 'model.onnx'."
    )
    assert write("") == "[export] Could not write '': the path is empty. Give the name of a file, such as 'model.onnx'."
    assert write("/dev/null") == (
        "[export] Could not write '/dev/null': it is a device, a pipe or a socket. Give the name of a file."
    )
    assert write(5, fairlead.InvalidInput) == "[export] Expected path as a string or os.PathLike, got int."
    # Root may write where permissions forbid it; /proc refuses even root.
    assert write("/proc/model.onnx") == (
        "[export] Could not write '/proc/model.onnx': Permission denied. "
        "Check the permissions of the folder, or choose another one."
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere; /proc is the test for it")
def test_a_folder_without_permission(tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    text = refused(folder=tmp_path, path=locked / "m.onnx", error=fairlead.WriteError)
    assert text.startswith(f"[export] Could not write '{locked / 'm.onnx'}': Permission denied. Check")
