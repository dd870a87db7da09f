"""Flat names of tensors and structures rebuilt around other tensors."""

import collections
import dataclasses
import enum
import subprocess
import sys
import time

import pytest
import torch
from cache_corpus import CACHES, make
from fairlead.tree.leaves import get_leaf_tensors, leaf_tensors, output_names, replace_leaf_tensors
from torch.utils import _pytree as pytree


def t(*shape):
    return torch.rand(*shape)


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Pair:
    first: torch.Tensor
    second: object = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: torch.Tensor
    label: str = "x"


Point = collections.namedtuple("Point", "x y")


class Registered:
    def __init__(self, a, b, size):
        self.a, self.b, self.size = a, b, size


class Plain:
    def __init__(self, a):
        self.a, self.number, self.kind = a, 3, int


@pytest.fixture
def registered():
    pytree._private_register_pytree_node(
        Registered,
        lambda r: ([r.a, r.b], r.size),
        lambda values, size: Registered(*values, size),
        flatten_with_keys_fn=lambda r: (
            [(pytree.GetAttrKey("a"), r.a), (pytree.GetAttrKey("b"), r.b)],
            r.size,
        ),
    )
    yield
    pytree.SUPPORTED_NODES.pop(Registered)


# (structure, names): one row per kind of container.
NAMED = [
    (lambda: t(2), ["output"]),
    (lambda: {"x": t(2), "n": 3, "s": "a", "none": None, "e": Color.RED, "ty": int}, ["x"]),
    (lambda: {"x": [t(1)], "y": (t(1), None, t(2))}, ["x.0", "y.0", "y.2"]),
    (lambda: (t(1), {"a": t(1)}), ["0", "1.a"]),
    (lambda: Pair(t(1), [t(2)]), ["first", "second.0"]),
    (lambda: Pair(t(1)), ["first"]),
    (lambda: {"f": Frozen(t(1))}, ["f.value"]),
    (lambda: Point(t(1), t(2)), ["x", "y"]),
    (lambda: collections.OrderedDict(b=t(1), a=t(2)), ["b", "a"]),
    (lambda: collections.UserDict(b=t(1), a=t(2)), ["b", "a"]),
    (lambda: {"o": Plain(t(1))}, ["o.a"]),
    (lambda: {"a.b": t(1), "a": {"b": t(2)}}, ["a.b", "a.b_2"]),
    (list, []),
    (lambda: None, []),
]


@pytest.mark.parametrize(("build", "names"), NAMED)
def test_names(build, names):
    assert list(get_leaf_tensors(build())) == names


@pytest.mark.parametrize(("build", "names"), NAMED)
def test_the_same_tensors_without_names(build, names):
    obj = build()
    assert list(map(id, leaf_tensors(obj))) == [id(tensor) for tensor in get_leaf_tensors(obj).values()]


@pytest.mark.parametrize("name", sorted(CACHES))
def test_the_same_tensors_of_a_cache_without_names(name):
    cache, _ = make(name)
    assert list(map(id, leaf_tensors(cache))) == [id(tensor) for tensor in get_leaf_tensors(cache).values()]


@pytest.mark.parametrize(("build", "names"), NAMED)
def test_replacing_gives_the_same_structure_around_other_tensors(build, names):
    obj = build()
    before = get_leaf_tensors(obj)
    fresh = [torch.full((7,), i) for i in range(len(names))]
    other = replace_leaf_tensors(obj, fresh)
    assert type(other) is type(obj)
    after = get_leaf_tensors(other)
    assert list(after) == names
    assert all(x is y for x, y in zip(after.values(), fresh, strict=True))
    assert all(get_leaf_tensors(obj)[name] is tensor for name, tensor in before.items())


def test_replacing_keeps_what_is_no_tensor():
    other = replace_leaf_tensors({"x": t(2), "n": 3, "p": Frozen(t(1), "label")}, {"x": t(4)})
    assert other["n"] == 3
    assert other["p"].label == "label"
    assert other["x"].shape == (4,)


def test_a_registered_class_uses_its_keys(registered):
    obj = {"r": Registered(t(1), t(2), 5)}
    assert list(get_leaf_tensors(obj)) == ["r.a", "r.b"]
    other = replace_leaf_tensors(obj, [t(3), t(4)])["r"]
    assert isinstance(other, Registered)
    assert other.size == 5
    assert other.b.shape == (4,)


def test_an_object_that_holds_itself_ends():
    loop = {"x": t(1)}
    loop["self"] = loop
    assert list(get_leaf_tensors(loop)) == ["x"]


def test_wrong_names_and_counts_are_said():
    with pytest.raises(ValueError, match=r"Expected names of the structure, got z \(known: x\)"):
        replace_leaf_tensors({"x": t(1)}, {"z": t(1)})
    with pytest.raises(ValueError, match=r"Expected 1 tensors, got 2 \(names: x\)"):
        replace_leaf_tensors({"x": t(1)}, [t(1), t(1)])


def test_output_names():
    assert output_names(["logits", "past_key_values.0.key"]) == ["logits", "present.0.key"]
    assert output_names(["cache_params.0.conv_states"], ["cache_params.0.conv_states"]) == ["present.0.conv_states"]
    assert output_names(["x"], ["x"]) == ["present.x"]
    assert output_names(["a.b", "c.b"], ["a.b", "present.b"]) == ["output.present.b", "c.b"]


@pytest.mark.parametrize("name", list(CACHES))
def test_a_cache_is_named_by_layer(name):
    cache, expected = make(name)
    leaves = get_leaf_tensors({"past_key_values": cache})
    assert list(leaves) == [f"past_key_values.{leaf}" for leaf in expected]
    assert list(get_leaf_tensors(cache)) == list(leaves)
    assert list(get_leaf_tensors([cache])) == [f"0.{leaf}" for leaf in expected]


@pytest.mark.parametrize("name", list(CACHES))
def test_a_cache_is_rebuilt_with_another_batch(name):
    cache, _expected = make(name)
    before = get_leaf_tensors(cache)
    doubled = [x.repeat(2, *[1] * (x.dim() - 1)) if x.dim() else x + 1 for x in before.values()]
    other = replace_leaf_tensors(cache, doubled)
    assert type(other) is type(cache)
    assert other is not cache
    after = get_leaf_tensors(other)
    assert list(after) == list(before)
    assert all(x is y for x, y in zip(after.values(), doubled, strict=True))
    assert all(x is y for x, y in zip(get_leaf_tensors(cache).values(), before.values(), strict=True))
    for old, new in zip(getattr(cache, "layers", []), getattr(other, "layers", []), strict=True):
        assert old is not new
        assert type(old) is type(new)
        assert list(vars(old)) == list(vars(new))
        for attribute in ("sliding_window", "max_cache_len", "is_initialized", "cumulative_length_int"):
            assert getattr(old, attribute, None) == getattr(new, attribute, None)
        if hasattr(old, "batch_size") and old.is_initialized:
            assert new.batch_size == 2 * old.batch_size


def test_counters_follow_the_tensors():
    from transformers import DynamicCache

    cache = DynamicCache()
    for layer in range(2):
        cache.update(t(1, 2, 3, 4), t(1, 2, 3, 4), layer)
    longer = replace_leaf_tensors(cache, [t(1, 2, 9, 4) for _ in range(4)])
    assert longer.get_seq_length() == 9
    assert cache.get_seq_length() == 3
    longer.update(t(1, 2, 1, 4), t(1, 2, 1, 4), 0)
    assert longer.get_seq_length() == 10
    assert cache.get_seq_length() == 3


def test_model_outputs_leave_out_none():
    from transformers.modeling_outputs import CausalLMOutputWithPast

    output = CausalLMOutputWithPast(logits=t(1, 2), past_key_values=make("DynamicCache")[0])
    names = list(get_leaf_tensors(output))
    assert names == ["logits", *(f"past_key_values.{leaf}" for leaf in make("DynamicCache")[1])]
    other = replace_leaf_tensors(output, [x + 1 for x in get_leaf_tensors(output).values()])
    assert type(other) is CausalLMOutputWithPast
    assert other.loss is None
    assert torch.equal(other.logits, output.logits + 1)
    assert torch.equal(other["logits"], other.logits)


def test_64_cache_tensors_take_less_than_a_millisecond():
    from transformers import DynamicCache

    cache = DynamicCache()
    for layer in range(32):
        cache.update(t(1, 2, 3, 4), t(1, 2, 3, 4), layer)
    best = 1.0
    for _ in range(20):
        start = time.perf_counter()
        found = get_leaf_tensors({"past_key_values": cache})
        best = min(best, time.perf_counter() - start)
    assert len(found) == 64
    assert best < 1e-3


def test_transformers_is_not_imported():
    code = (
        "import sys; sys.modules['transformers'] = None\n"
        "import torch; from fairlead.tree.leaves import get_leaf_tensors, replace_leaf_tensors\n"
        "print(list(get_leaf_tensors(replace_leaf_tensors({'x': [torch.zeros(1)]}, [torch.ones(2)]))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['x.0']"
