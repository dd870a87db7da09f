"""Caches as tree nodes: nothing lost in a round trip, all restored on exit, builders in every release."""

import copy
import json

import cache_corpus
import pytest
import torch
from cache_corpus import CACHES, cache_utils, fill, has, kv, make
from fairlead.tree.caches import (
    describe_support,
    make_dynamic_cache,
    make_encoder_decoder_cache,
    make_static_cache,
    put_together,
    register_flattening_functions,
    take_apart,
)
from torch.fx import _pytree as fx_pytree
from torch.utils import _pytree as pytree

LAYERED = has("DynamicLayer")


def state(obj):
    """Everything an object holds, comparable: tensors as (dtype, device, values)."""
    if isinstance(obj, torch.Tensor):
        return ("tensor", obj.dtype, str(obj.device), obj.shape, obj.to(torch.float64).tolist())
    if isinstance(obj, dict):
        return {key: state(value) for key, value in obj.items()}
    if isinstance(obj, (list, tuple)):
        return [type(obj).__name__, *(state(value) for value in obj)]
    if type(obj).__module__.startswith("transformers") and not isinstance(obj, type) and hasattr(obj, "__dict__"):
        if hasattr(obj, "to_dict"):
            return obj.to_dict()
        return (type(obj), {name: state(value) for name, value in vars(obj).items()})
    return obj


def registries():
    return {
        "nodes": dict(pytree.SUPPORTED_NODES),
        "serialized": dict(pytree.SUPPORTED_SERIALIZED_TYPES),
        "names": dict(pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE),
        "fx": dict(fx_pytree.SUPPORTED_NODES),
        "exact": dict(fx_pytree.SUPPORTED_NODES_EXACT_MATCH),
        "loadable": set(torch.serialization.get_safe_globals()),
    }


@pytest.mark.parametrize("name", list(CACHES))
def test_a_round_trip_loses_nothing(name):
    cache, _ = make(name)
    with register_flattening_functions(patch_transformers=True):
        leaves, spec = pytree.tree_flatten(cache)
        back = pytree.tree_unflatten(leaves, spec)
    assert back is not cache
    assert type(back) is type(cache)
    assert state(back) == state(cache)
    assert all(x is y for x, y in zip(leaves, pytree_leaves(back), strict=True))


def pytree_leaves(obj):
    with register_flattening_functions():
        return pytree.tree_leaves(obj)


@pytest.mark.parametrize("name", list(CACHES))
def test_the_context_survives_json(name):
    cache, _ = make(name)
    with register_flattening_functions():
        leaves, spec = pytree.tree_flatten(cache)
        text = pytree.treespec_dumps(spec)
        again = pytree.treespec_loads(text)
        assert again == spec or "opaque" in json.dumps(str(text))
        back = pytree.tree_unflatten(leaves, again)
    if name != "Jamba's cache":
        assert state(back) == state(cache)


@pytest.mark.parametrize("name", list(CACHES))
def test_keys_and_fx_give_the_same_leaves(name):
    cache, _ = make(name)
    with register_flattening_functions():
        leaves, spec = pytree.tree_flatten(cache)
        pairs, with_keys = pytree.tree_flatten_with_path(cache)
        assert with_keys == spec
        assert [id(x) for _, x in pairs] == [id(x) for x in leaves]
        assert len({pytree.keystr(path) for path, _ in pairs}) == len(pairs)
        assert [id(x) for x in fx_pytree.tree_flatten_spec(cache, spec)] == [id(x) for x in leaves]


@pytest.mark.parametrize("name", list(CACHES))
def test_a_copy_is_independent(name):
    cache, _ = make(name)
    _names, leaves, context = take_apart(cache)
    back = put_together([leaf.clone() for leaf in leaves], context)
    before = state(cache)
    for tensor in take_apart(back)[1]:
        tensor.zero_()
    assert state(cache) == before


@pytest.mark.parametrize("name", [n for n in CACHES if n.endswith("Layer")])
def test_a_layer_is_a_node_of_its_own(name):
    layer = make(name)[0].layers[0]
    with register_flattening_functions():
        leaves, spec = pytree.tree_flatten({"layer": layer})
        back = pytree.tree_unflatten(leaves, spec)["layer"]
    assert type(back) is type(layer)
    assert state(back) == state(layer)
    assert len(leaves) == len(take_apart(layer)[0])


def test_order_is_key_value_by_layer():
    pairs = [(kv(), kv()) for _ in range(3)]
    with register_flattening_functions():
        leaves = pytree.tree_leaves(make_dynamic_cache(pairs))
        keys = [pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(make_dynamic_cache(pairs))[0]]
    assert [id(x) for x in leaves] == [id(x) for pair in pairs for x in pair]
    assert keys == ["['key_0']", "['value_0']", "['key_1']", "['value_1']", "['key_2']", "['value_2']"]


def test_sizes_do_not_change_the_spec():
    with register_flattening_functions():
        specs = [
            pytree.tree_structure(make_dynamic_cache([(kv(length, batch), kv(length, batch))]))
            for length, batch in ((3, 1), (7, 2), (0, 2))
        ]
    assert specs[0] == specs[1] == specs[2]
    assert len({hash(spec.context) if hasattr(spec, "context") else 0 for spec in specs}) == 1


@pytest.mark.skipif(not has("DynamicSlidingWindowLayer"), reason="this Transformers has no sliding dynamic layers")
def test_window_and_length_survive():
    cache = cache_corpus.layered(cache_corpus.sliding_layer(length=9))
    layer = cache.layers[0]
    assert layer.keys.shape[2] == 3
    assert layer.cumulative_length == 9
    back = put_together(*take_apart(cache)[1:])
    assert back.layers[0].sliding_window == 4
    assert back.layers[0].cumulative_length == 9
    layer.update(kv(1), kv(1), {"cache_position": torch.arange(9, 10)})
    back.layers[0].update(kv(1), kv(1), {"cache_position": torch.arange(9, 10)})
    assert back.layers[0].get_seq_length() == layer.get_seq_length() == 10
    assert back.layers[0].keys.shape == layer.keys.shape


def test_exit_restores_what_was_registered():
    cls = cache_utils.DynamicCache
    before = registries()
    with register_flattening_functions():
        assert cls in pytree.SUPPORTED_NODES
        assert registries() != before
    assert registries() == before


def test_exit_restores_what_someone_else_registered():
    cls = cache_utils.StaticCache
    had = dict(pytree.SUPPORTED_NODES), dict(pytree.SUPPORTED_SERIALIZED_TYPES)
    assert cls not in pytree.SUPPORTED_NODES
    pytree._private_register_pytree_node(cls, lambda c: ([], None), lambda v, c: None, serialized_type_name="mine")
    try:
        before = registries()
        with register_flattening_functions():
            assert pytree.SUPPORTED_NODES[cls] is not before["nodes"][cls]
        assert registries() == before
        with pytest.raises(KeyError), register_flattening_functions():
            raise KeyError("x")
        assert registries() == before
    finally:
        pytree._deregister_pytree_node(cls)
    assert (dict(pytree.SUPPORTED_NODES), dict(pytree.SUPPORTED_SERIALIZED_TYPES)) == had


def test_nested_and_overlapping_blocks():
    before = registries()
    first, second = register_flattening_functions(), register_flattening_functions()
    first.__enter__()
    inside = registries()
    with register_flattening_functions():
        pass
    assert registries() == inside
    second.__enter__()
    first.__exit__(None, None, None)
    assert cache_utils.DynamicCache in pytree.SUPPORTED_NODES
    assert pytree.tree_leaves(make_dynamic_cache([(kv(), kv())])) != []
    second.__exit__(None, None, None)
    assert registries() == before


def test_subclasses_are_covered_and_stay_what_they_are():
    class Mine(cache_utils.DynamicCache):
        pass

    cache = Mine()
    fill(cache)
    cache.note = "kept"
    with register_flattening_functions():
        leaves, spec = pytree.tree_flatten(cache)
        back = pytree.tree_unflatten(leaves, spec)
    assert type(back) is Mine
    assert back.note == "kept"
    assert len(leaves) == 4
    assert Mine not in pytree.SUPPORTED_NODES


def test_false_registers_nothing_and_a_wrong_choice_is_said():
    before = registries()
    for choice in (False, "none", ""):
        with register_flattening_functions(patch_transformers=choice) as same:
            assert registries() == before
            assert same(3) == 3
    with (
        pytest.raises(ValueError, match=r"Expected True, False or one of .*, got 'both'"),
        register_flattening_functions(patch_transformers="both"),
    ):
        pass


@pytest.mark.parametrize("name", ["DynamicCache", "StaticCache", "EncoderDecoderCache"])
def test_export_save_and_load(name, tmp_path):
    class Model(torch.nn.Module):
        def forward(self, x, cache):
            inner = cache.self_attention_cache if hasattr(cache, "self_attention_cache") else cache
            key = inner.layers[0].keys if hasattr(inner, "layers") else inner.key_cache[0]
            return x + key.sum(), cache

    cache, _ = make(name)
    x = torch.rand(2)
    with register_flattening_functions():
        program = torch.export.export(Model(), (), kwargs={"x": x, "cache": cache}, strict=False)
        torch.export.save(program, tmp_path / "p.pt2")
        loaded = torch.export.load(tmp_path / "p.pt2")
        total, other = loaded.module()(x=x, cache=cache)
    expected, _ = Model()(x, cache)
    assert torch.allclose(total, expected)
    assert type(other) is type(cache)
    assert state(other) == state(cache)


def test_export_with_dynamic_lengths():
    class Model(torch.nn.Module):
        def forward(self, cache):
            for layer in range(2):
                cache.update(torch.ones(2, 2, 1, 4), torch.ones(2, 2, 1, 4), layer)
            return cache

    cache = make_dynamic_cache([(kv(5), kv(5)) for _ in range(2)])
    dyn = {2: torch.export.Dim.DYNAMIC}
    with register_flattening_functions():
        program = torch.export.export(Model(), (cache,), dynamic_shapes=([dyn] * 4,), strict=False)
        out = program.module()(make_dynamic_cache([(kv(8), kv(8)) for _ in range(2)]))
    assert out.get_seq_length() == 9


def test_make_dynamic_cache_accepts_pairs_lists_and_flat():
    pairs = [(kv(), kv()) for _ in range(2)]
    flat = [x for pair in pairs for x in pair]
    for given in (pairs, [list(pair) for pair in pairs], flat, tuple(flat)):
        cache = make_dynamic_cache(given)
        assert [id(x) for x in take_apart(cache)[1]] == [id(x) for x in flat]
        assert cache.get_seq_length() == 3
        cache.update(kv(1), kv(1), 1)
    assert len(take_apart(make_dynamic_cache([]))[1]) == 0


@pytest.mark.skipif(not LAYERED, reason="this Transformers keeps caches as lists of tensors")
def test_make_dynamic_cache_with_layer_classes():
    pairs = [(kv(), kv()) for _ in range(2)]
    cache = make_dynamic_cache(pairs, ["DynamicLayer", "DynamicSlidingWindowLayer"], [{}, {"sliding_window": 5}])
    assert [type(layer).__name__ for layer in cache.layers] == ["DynamicLayer", "DynamicSlidingWindowLayer"]
    assert cache.layers[1].sliding_window == 5
    assert cache.layers[1].cumulative_length == 3
    reference = cache_utils.DynamicSlidingWindowLayer(sliding_window=5)
    reference.update(*pairs[1])
    assert state(vars(cache.layers[1])) == state(vars(reference)) or set(vars(cache.layers[1])) == set(vars(reference))
    with pytest.raises(ValueError, match="Expected a layer class of the installed Transformers, got 'NoLayer'"):
        make_dynamic_cache(pairs, "NoLayer")


def test_a_built_cache_equals_a_used_one():
    key, value = kv(), kv()
    used = cache_utils.DynamicCache()
    used.update(key, value, 0)
    assert state(make_dynamic_cache([(key, value)])) == state(used)


def test_make_static_cache_pads():
    pairs = [(kv(), kv()) for _ in range(2)]
    cache = make_static_cache(pairs, max_cache_len=6)
    leaves = [x for x in take_apart(cache)[1] if x.dim()]
    assert [tuple(x.shape) for x in leaves] == [(2, 2, 6, 4)] * 4
    assert torch.equal(leaves[0][:, :, :3], pairs[0][0])
    assert leaves[0][:, :, 3:].abs().sum() == 0
    assert int(cache.get_seq_length()) == 3
    cache.update(kv(1), kv(1), 0, *([{"cache_position": torch.arange(3, 4)}] if not cache_corpus.COUNTED else []))
    assert int(cache.get_seq_length()) == 4
    with pytest.raises(ValueError, match="Expected at most max_cache_len=2 tokens, got 3 in layer 0"):
        make_static_cache(pairs, max_cache_len=2)
    assert make_static_cache(pairs).get_seq_length() == 3


@pytest.mark.skipif(not LAYERED, reason="this Transformers keeps caches as lists of tensors")
def test_a_built_static_layer_has_the_attributes_of_a_used_one():
    used = cache_utils.StaticLayer(max_cache_len=6)
    used.update(kv(), kv(), {"cache_position": torch.arange(3)})
    built = make_static_cache([(kv(), kv())], max_cache_len=6).layers[0]
    assert set(vars(built)) == set(vars(used))
    same = {n: v for n, v in vars(used).items() if not isinstance(v, torch.Tensor)}
    assert {n: vars(built)[n] for n in same} == same


def test_make_encoder_decoder_cache():
    one, two = make_dynamic_cache([(kv(), kv())]), make_dynamic_cache([(kv(5), kv(5))])
    cache = make_encoder_decoder_cache(one, two)
    assert cache.self_attention_cache is one
    assert cache.is_updated == {0: True}
    with pytest.raises(ValueError, match="Expected two caches, got list"):
        make_encoder_decoder_cache(one, [])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([kv()], "Expected key, value, key, value ..., got 1 tensors"),
        ([(kv(),)], r"Expected \(key, value\) tensors for layer 0, got tuple"),
        ([3], r"Expected \(key, value\) tensors for layer 0, got int"),
        (
            [(torch.rand(2), torch.rand(2))],
            r"Expected tensors \[batch, heads, length, head_dim\] for layer 0",
        ),
    ],
)
def test_wrong_pairs_are_said(given, message):
    with pytest.raises(ValueError, match=message):
        make_dynamic_cache(given)


def test_builders_work_on_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        cache = make_dynamic_cache([(torch.rand(1, 2, 3, 4), torch.rand(1, 2, 3, 4))])
        assert cache.get_seq_length() == 3


def test_deep_copies_of_rebuilt_caches_work():
    cache = put_together(*take_apart(make_dynamic_cache([(kv(), kv())]))[1:])
    assert state(copy.deepcopy(cache)) == state(cache)


def test_what_this_release_lacks_is_listed():
    text = describe_support()
    assert f"transformers {cache_corpus.transformers.__version__}" in text
    has_line, lacks_line = text.splitlines()[1:]
    for name in ("DynamicCache", "StaticCache", "EncoderDecoderCache"):
        assert name in has_line
        assert f" {name}," not in lacks_line
    assert ("DynamicLayer" in has_line) == LAYERED
