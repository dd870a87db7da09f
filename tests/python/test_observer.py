"""The observer: the three documented scenarios, its whole surface, and every way to use it wrongly."""

import contextlib
import types

import numpy as np
import pytest
import torch
from observer_models import (
    DYN,
    Add,
    Llm,
    Multimodal,
    Positional,
    cache_of,
    export_with,
    observed_llm,
    observed_multimodal,
    run_add,
)

import fairlead
from fairlead import InputObserver
from fairlead.tree import register_flattening_functions, string_type


def specs(text):
    """{0, 2} written shortly: specs("02") == {0: DYN, 2: DYN}."""
    return {int(axis): DYN for axis in text}


# ---- the three scenarios


def test_scenario_add():
    model, observer = Add(), InputObserver()
    run_add(model, observer)
    assert observer.num_obs() == 3
    assert observer.infer_dynamic_shapes() == (specs("01"), specs("1"))
    assert string_type(observer.infer_arguments(), with_shape=True) == "(T1s2x6,T1s1x6)"
    program = export_with(observer, model, observer.infer_arguments(), observer.infer_dynamic_shapes())
    x, y = torch.randn(5, 9), torch.randn(1, 9)
    assert torch.equal(program.module()(x, y), x + y)


def test_scenario_language_model_with_a_cache():
    model, observer = observed_llm()
    shapes = observer.infer_dynamic_shapes(set_batch_dimension_for=True)
    cache = [specs("02")] * 4
    assert shapes == {"input_ids": specs("01"), "attention_mask": specs("01"), "past_key_values": cache}
    kwargs = observer.infer_arguments()
    kv = "#2[T1s1x4x10x32,T1s1x4x10x32]"
    assert string_type(kwargs, with_shape=True) == (
        f"dict(input_ids:T7s1x10,attention_mask:T7s1x10,past_key_values:DynamicCache(key_cache={kv}, value_cache={kv}))"
    )
    assert export_with(observer, model, kwargs, shapes) is not None


def test_scenario_multimodal():
    model, observer = observed_multimodal()
    shapes = observer.infer_dynamic_shapes(set_batch_dimension_for=True)
    assert shapes == {
        "input_ids": specs("01"),
        "pixel_values": specs("0"),
        "attention_mask": specs("01"),
        "past_key_values": [specs("02")] * 4,
    }
    kwargs = observer.infer_arguments()
    kv = "#2[T1s1x4x20x32,T1s1x4x20x32]"
    assert string_type(kwargs, with_shape=True) == (
        "dict(input_ids:T7s1x1,pixel_values:T1s0x3x224x224,attention_mask:T7s1x21,past_key_values:"
        f"DynamicCache(key_cache={kv}, value_cache={kv}))"
    )
    assert export_with(observer, model, kwargs, shapes) is not None
    relations = list(observer.relations())
    assert "attention_mask.1 == input_ids.1 + past_key_values.0.key.2" in relations


# ---- recording


def test_the_budget_adds_up_over_blocks():
    model, observer = Add(), InputObserver()
    x = torch.ones(2, 3)
    for budget, total in ((3, 3), (3, 6), (1, 7), (0, 7)):
        with observer(model, store_n_calls=budget):
            for _ in range(5):
                model(x, x)
        assert observer.num_obs() == total
    assert len(observer.info) == 7
    assert not observer.is_empty()


def test_before_any_call():
    observer = InputObserver()
    assert observer.num_obs() == 0
    assert observer.is_empty()
    assert observer.info is None
    for ask in (observer.infer_dynamic_shapes, observer.infer_arguments, observer.relations, observer.calls):
        with pytest.raises(RuntimeError, match="No inputs were captured"):
            ask()
    with observer(Add()):
        pass
    assert observer.info is not None
    with pytest.raises(RuntimeError, match="No inputs were captured"):
        observer.infer_arguments()


def test_several_observers_on_one_and_on_many_modules():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 5))
    whole, other, first, second = (InputObserver() for _ in range(4))
    with whole(model), other(model), first(model[0]), second(model[1]):
        model(torch.rand(2, 3))
        model(torch.rand(6, 3))
    assert [o.num_obs() for o in (whole, other, first, second)] == [2, 2, 2, 2]
    assert second.infer_arguments()[0].shape == (2, 4)
    assert all("forward" not in vars(m) for m in (model, *model))


def test_blocks_may_end_in_any_order():
    model = Add()
    blocks = [InputObserver()(model) for _ in range(3)]
    observers = [block.__enter__() for block in blocks]
    x = torch.ones(2, 2)
    model(x, x)
    for index in (0, 2, 1):
        blocks[index].__exit__(None, None, None)
        model(x, x)
    assert [o.num_obs() for o in observers] == [1, 3, 2]
    assert "forward" not in vars(model)


def test_any_method_of_any_object():
    class Plain:
        def predict(self, x, scale=2.0):
            return x * scale

    plain, observer = Plain(), InputObserver()
    with observer(plain, method_name="predict"):
        plain.predict(torch.rand(2))
        plain.predict(torch.rand(3))
    assert observer.infer_dynamic_shapes() == (specs("0"),)
    assert "predict" not in vars(plain)
    module = types.ModuleType("m")
    module.function = lambda x: x + 1
    original = module.function
    with observer_of(module, "function") as seen:
        module.function(torch.rand(2))
    assert seen.num_obs() == 1
    assert module.function is original


@contextlib.contextmanager
def observer_of(obj, name):
    observer = InputObserver()
    with observer(obj, method_name=name):
        yield observer


def test_an_own_attribute_comes_back():
    model = Add()
    own = lambda x, y: x * y  # noqa: E731
    model.forward = own
    observer = InputObserver()
    with observer(model):
        assert model(torch.full((1,), 3.0), torch.full((1,), 4.0)) == 12
    assert vars(model)["forward"] is own
    assert observer.num_obs() == 1


def test_observe_is_a_short_form():
    model = Add()
    with fairlead.observe(model, store_n_calls=1) as seen:
        model(torch.rand(2), torch.rand(2))
    assert seen.num_obs() == 1


def test_inputs_are_copies_made_before_the_call():
    class InPlace(torch.nn.Module):
        def forward(self, x):
            x.add_(1)
            return x

    model, observer = InPlace(), InputObserver()
    x = torch.zeros(2)
    with observer(model):
        model(x)
        x.zero_()
    assert observer.infer_arguments()[0].sum() == 0
    assert observer.info.flat_outputs[0][0].sum() == 2


def test_info_lists_outputs_and_latencies():
    _model, observer = observed_llm()
    assert observer.info.outputs_specs[0][0] == "0"
    assert len(observer.info.flat_outputs[0]) == 5
    assert all(latency > 0 for latency in observer.info.latencies)
    assert "DynamicCache" in observer.info.inputs[0].str_obs()


# ---- shapes


def test_one_call_has_no_dynamic_axis():
    model, observer = Add(), InputObserver()
    with observer(model):
        model(torch.rand(2, 3), torch.rand(2, 3))
    assert observer.infer_dynamic_shapes() == ({}, {})
    assert observer.infer_dynamic_shapes(set_batch_dimension_for=True) == (specs("0"), specs("0"))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, ("", "")), (False, ("", "")), (set(), ("", "")), (True, ("0", "0")), ({"x"}, ("0", "")),
        (["y"], ("", "0")), ({0}, ("0", "")), ((0, "y"), ("0", "0")), ("y", ("", "0")),
        ({"unknown", 9}, ("", "")),
    ],
)  # fmt: skip
def test_set_batch_dimension_for(wanted, expected):
    model, observer = Add(), InputObserver()
    with observer(model):
        model(torch.rand(2, 3), torch.rand(2, 3))
    assert observer.infer_dynamic_shapes(set_batch_dimension_for=wanted) == tuple(specs(e) for e in expected)


def test_labels_given_by_hand():
    _model, observer = observed_llm()
    labels = {"input_ids": {0: "b", 1: "s"}, "past_key_values": {2: "p"}}
    shapes = observer.infer_dynamic_shapes(set_batch_dimension_for=True, dim_names=labels)
    assert shapes["input_ids"] == {0: "b", 1: "s"}
    assert shapes["attention_mask"] == specs("01")
    assert shapes["past_key_values"] == [{0: DYN, 2: "p"}] * 4
    assert observer.infer_dynamic_shapes(dim_names={0: {1: "s"}})["input_ids"] == {1: "s"}


def test_labels_that_everyone_uses():
    _, observer = observed_multimodal()
    shapes = observer.infer_dynamic_shapes(set_batch_dimension_for=True, dim_names=True)
    assert shapes["input_ids"] == {0: "batch_size", 1: "sequence_length"}
    assert shapes["attention_mask"] == {0: "batch_size", 1: "total_sequence_length"}
    assert shapes["past_key_values"] == [{0: "batch_size", 2: "past_sequence_length"}] * 4
    # The batch of images was 1 and 0 while the others stayed: not the same dim.
    assert shapes["pixel_values"] == {0: "pixel_values_batch_size"}


def test_star_args_and_kwargs():
    class Star(torch.nn.Module):
        def forward(self, x, *rest, flag=False, **more):
            return x + sum(rest) + sum(more.values())

    model, observer = Star(), InputObserver()
    with observer(model):
        for n in (2, 3):
            model(torch.rand(n), torch.rand(n), torch.rand(1), flag=True, extra=torch.rand(n))
    assert observer.infer_dynamic_shapes() == {
        "x": specs("0"),
        "rest": (specs("0"), {}),
        "flag": None,
        "more": {"extra": specs("0")},
    }
    with pytest.raises(RuntimeError, match=r"got \*rest. Use as_args_kwargs=True"):
        observer.infer_arguments()
    args, kwargs = observer.infer_arguments(as_args_kwargs=True)
    assert len(args) == 3
    assert list(kwargs) == ["flag", "extra"]
    assert kwargs["flag"] is True
    assert observer.infer_dynamic_shapes(set_batch_dimension_for={2})["rest"] == (specs("0"), specs("0"))


def test_star_args_go_through_torch_export():
    class Star(torch.nn.Module):
        def forward(self, x, *rest, flag=False):
            return x + sum(rest)

    model, observer = Star(), InputObserver()
    with observer(model):
        for n in (2, 3):
            model(torch.rand(n), torch.rand(n), torch.rand(1), flag=True)
    args, kwargs = observer.infer_arguments(as_args_kwargs=True)
    program = torch.export.export(model, args, kwargs, dynamic_shapes=observer.infer_dynamic_shapes())
    assert program.module()(torch.ones(4), torch.ones(4), torch.ones(1), flag=True).sum() == 12


def test_star_args_that_no_call_has_are_left_out():
    class Star(torch.nn.Module):
        def forward(self, x, *rest, **more):
            return x

    model, observer = Star(), InputObserver()
    with observer(model):
        for n in (2, 3):
            model(x=torch.rand(n))
    assert observer.infer_dynamic_shapes() == {"x": specs("0")}
    args, kwargs = observer.infer_arguments(as_args_kwargs=True)
    program = torch.export.export(model, args, kwargs, dynamic_shapes=observer.infer_dynamic_shapes())
    assert program.module()(x=torch.ones(4)).shape == (4,)
    with observer(model):
        model(torch.rand(2), more=torch.rand(2))
    with pytest.raises(ValueError, match="Expected no argument named more"):
        observer.infer_dynamic_shapes()


def test_nested_containers_keep_their_types():
    class Nested(torch.nn.Module):
        def forward(self, x, pair=None, table=None):
            return x

    model, observer = Nested(), InputObserver()
    with observer(model):
        for n in (2, 3):
            pair = (torch.rand(n), [torch.rand(1, n)])
            model(torch.rand(n), pair=pair, table={"a": torch.rand(n), "b": (torch.rand(2),)})
    assert observer.infer_dynamic_shapes() == {
        "x": specs("0"),
        "pair": (specs("0"), [specs("1")]),
        "table": {"a": specs("0"), "b": ({},)},
    }


# ---- arguments


def test_a_call_by_number():
    _, observer = observed_multimodal()
    assert observer.infer_arguments(2)["attention_mask"].shape == (1, 22)
    assert observer.infer_arguments(-1)["attention_mask"].shape == (1, 22)
    prefill = observer.infer_arguments(0)
    assert prefill["pixel_values"].shape == (1, 3, 224, 224)
    assert prefill["past_key_values"].get_seq_length() == 0
    assert string_type(prefill["past_key_values"], with_shape=True).count("T1s1x4x0x32") == 4
    with pytest.raises(RuntimeError, match="Expected a call below 3, got 3"):
        observer.infer_arguments(3)


def test_arguments_of_the_user_are_completed():
    _, observer = observed_multimodal()
    own = {
        "input_ids": torch.ones(2, 5, dtype=torch.int64),
        "attention_mask": torch.ones(2, 5, dtype=torch.int64),
    }
    full = observer.infer_arguments({**own, "unknown": 3})
    assert list(full) == ["input_ids", "pixel_values", "attention_mask", "past_key_values"]
    assert full["input_ids"] is own["input_ids"]
    assert string_type(full["past_key_values"], with_shape=True).count("T1s2x4x0x32") == 4
    assert full["pixel_values"].shape == (0, 3, 224, 224)
    with pytest.raises(ValueError, match="Expected the number of a call, a tuple or a dict, got str"):
        observer.infer_arguments("x")
    with pytest.raises(RuntimeError, match="Expected 2 dimensions for input_ids, got 1"):
        observer.infer_arguments({"input_ids": torch.ones(2, dtype=torch.int64)})


def test_arguments_of_the_user_by_position():
    model, observer = Add(), InputObserver()
    run_add(model, observer)
    x, y = torch.rand(7, 9), torch.rand(1, 9)
    assert all(a is b for a, b in zip(observer.infer_arguments((x, y)), (x, y), strict=True))


def test_flat_and_args_kwargs():
    _, observer = observed_llm()
    flat = observer.infer_arguments(flat=True)
    assert [tuple(t.shape) for t in flat] == [(1, 10), (1, 10)] + [(1, 4, 10, 32)] * 4
    args, kwargs = observer.infer_arguments(as_args_kwargs=True)
    assert args == ()
    assert list(kwargs) == ["input_ids", "attention_mask", "past_key_values"]


def test_what_is_returned_can_be_written_into():
    _, observer = observed_llm()
    first = observer.infer_arguments()["past_key_values"]
    first.update(torch.rand(1, 4, 1, 32), torch.rand(1, 4, 1, 32), 0)
    assert observer.infer_arguments()["past_key_values"].get_seq_length() == 10


def test_calls_are_given_back_as_they_were_made():
    model, observer = Positional(), InputObserver()
    with observer(model):
        model(torch.rand(2), None, scale=3)
        model(torch.rand(3), torch.rand(3), scale=3)
    (args, kwargs), (args1, kwargs1) = observer.calls()
    assert len(args) == 2
    assert args[1] is None
    assert kwargs == {"scale": 3}
    assert len(args1) == 2
    assert kwargs1 == {"scale": 3}
    filled = observer.calls(filled=True)
    assert filled[0][0][1].shape in ((0,), (2,))


# ---- value_if_missing, remove_inputs


def test_value_if_missing_by_position():
    model = Positional()
    observer = InputObserver(value_if_missing={1: torch.empty(0)})
    with observer(model):
        model(torch.rand(2), None, scale=3)
        model(torch.rand(3), torch.rand(3), scale=3)
    assert observer.infer_arguments(0)["y"].shape == (0,)
    assert observer.infer_arguments(1)["y"].shape == (3,)


@pytest.mark.parametrize(
    ("missing", "error", "message"),
    [
        (
            {"nothing": 1},
            ValueError,
            r"Expected names of arguments \(x, y\) in value_if_missing, got nothing",
        ),
        ({5: 1}, ValueError, "Expected positions below 2 in value_if_missing, got 5"),
        ({1.5: 1}, TypeError, r"Expected names or positions in value_if_missing, got 1.5 \(float\)"),
    ],
)
def test_wrong_keys_of_value_if_missing_are_said_before_the_call(missing, error, message):
    model = Add()
    with pytest.raises(error, match=message), InputObserver(value_if_missing=missing)(model):
        raise AssertionError("the block was entered")
    assert "forward" not in vars(model)


def test_remove_inputs():
    _, observer = observed_multimodal()
    assert observer.remove_inputs(["pixel_values", "unknown"]) == 3
    assert list(observer.infer_dynamic_shapes()) == ["input_ids", "attention_mask", "past_key_values"]
    assert list(observer.infer_arguments()) == ["input_ids", "attention_mask", "past_key_values"]
    assert observer.remove_inputs("attention_mask") == 3
    assert list(observer.infer_arguments()) == ["input_ids", "past_key_values"]
    with pytest.raises(RuntimeError, match="No inputs were captured"):
        InputObserver().remove_inputs(["x"])


# ---- bad input


def test_objects_and_methods_that_cannot_be_observed():
    with (
        pytest.raises(ValueError, match="Expected an object with a method forward, got int"),
        InputObserver()(3),
    ):
        pass
    with (
        pytest.raises(ValueError, match="Expected an object with a method nothing, got Add"),
        InputObserver()(Add(), method_name="nothing"),
    ):
        pass
    with (
        pytest.raises(ValueError, match="Expected a number of calls to store, got -1"),
        InputObserver()(Add(), store_n_calls=-1),
    ):
        pass

    class Slots:
        __slots__ = ()

        def forward(self, x):
            return x

    with (
        pytest.raises(ValueError, match="Expected an object whose method forward can be replaced"),
        InputObserver()(Slots()),
    ):
        pass

    class NoSignature:
        forward = staticmethod(np.add)

    class Unreadable:
        forward = type("F", (), {"__call__": lambda self, x: x, "__signature__": "nonsense"})()

    with (
        pytest.raises(ValueError, match=r"Expected a method with a readable signature, got Unreadable\.forward"),
        InputObserver()(Unreadable()),
    ):
        pass


def test_outputs_that_are_not_tensors_do_not_disturb_the_call(tmp_path):
    class Text(torch.nn.Module):
        def forward(self, x):
            return {"text": "hello", "n": 3, "x": x + 1}

    class Nothing(torch.nn.Module):
        def forward(self, x):
            return "hello"

    model, observer = Text(), InputObserver()
    with observer(model):
        assert model(torch.zeros(1))["text"] == "hello"
    assert [len(o) for o in observer.info.flat_outputs] == [1]
    nothing, observer = Nothing(), InputObserver()
    with observer(nothing):
        assert nothing(torch.zeros(1)) == "hello"
    assert observer.info.flat_outputs == [[]]


def test_calls_whose_structures_differ():
    class Any(torch.nn.Module):
        def forward(self, x):
            return torch.zeros(1)

    model, observer = Any(), InputObserver()
    with observer(model):
        model([torch.rand(2)])
        model([torch.rand(2), torch.rand(2)])
    with pytest.raises(
        RuntimeError,
        match="Expected calls of one structure, got for x: list of 2 in call 1, list of 1 in call 0",
    ):
        observer.infer_dynamic_shapes()
    observer = InputObserver()
    with observer(model):
        model(torch.rand(2))
        model(torch.rand(2, 3))
    with pytest.raises(RuntimeError, match=r"got \(2\) in call 0 and \(2, 3\) in call 1"):
        observer.infer_dynamic_shapes()


def test_another_signature_needs_another_observer():
    observer = InputObserver()
    with observer(Add()) as seen:
        assert seen is observer
    add = Add()
    with observer(add):
        add(torch.rand(1), torch.rand(1))
    with (
        pytest.raises(ValueError, match=r"Expected a method with the arguments \(x, y\) observed before"),
        observer(Llm()),
    ):
        pass


def test_everything_works_inside_and_outside_of_registration():
    model = Llm()
    observer = InputObserver()
    with register_flattening_functions(patch_transformers=True), observer(model):
        model(input_ids=torch.ones(1, 2), past_key_values=cache_of(3))
        model(input_ids=torch.ones(1, 3), past_key_values=cache_of(4))
    outside = observer.infer_dynamic_shapes()
    with register_flattening_functions(patch_transformers=True):
        assert observer.infer_dynamic_shapes() == outside


def test_multimodal_without_a_value_still_infers():
    model, observer = Multimodal(), InputObserver()
    with observer(model):
        model(input_ids=torch.ones(2, 5), pixel_values=torch.rand(2, 3, 8, 8))
        model(input_ids=torch.ones(3, 1), past_key_values=cache_of(5, batch=3))
    full = observer.infer_arguments(1)
    assert full["pixel_values"].shape == (3, 3, 8, 8)
    assert full["pixel_values"].abs().sum() == 0


class SometimesNone(torch.nn.Module):
    def forward(self, x):
        return x + 1, None


def test_outputs_that_are_none_are_left_out_or_refused(tmp_path):
    model = SometimesNone().eval()
    observer = InputObserver()
    with observer(model):
        for rows in (2, 3):
            model(torch.randn(rows, 4))
    fairlead.export(model, (torch.randn(2, 4),), tmp_path / "m.onnx")
    rows = observer.check_discrepancies(tmp_path / "m.onnx")
    assert [row["SUCCESS"] for row in rows] == [True, True]
    with pytest.raises(
        RuntimeError, match="Expected outputs without None because skip_none=False, got None at 1 in call 0"
    ):
        observer.check_discrepancies(tmp_path / "m.onnx", skip_none=False)
