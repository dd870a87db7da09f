"""The printed form of structures, one row per line of its grammar."""

import collections
import dataclasses

import numpy as np
import pytest
import torch
from cache_corpus import cache_utils, encoder_decoder, has, layered, linear_layer, make
from fairlead.tree.caches import make_dynamic_cache, make_static_cache

from fairlead.tree import string_type

I = torch.arange(6, dtype=torch.int64).reshape(2, 3)  # noqa: E741
F = torch.zeros(1, 2, 3, 4)
NAN = float("nan")
SHAPE, STATS, DEVICE = (
    {"with_shape": True},
    {"with_shape": True, "with_min_max": True},
    {"with_shape": True, "with_device": True},
)


@dataclasses.dataclass
class DC:
    a: int
    b: object = None


class Foo:
    pass


Named = collections.namedtuple("Named", "a b")
Dim = torch.export.Dim

# (object, options, text)
ROWS = [
    (I, {}, "T7r2"),
    (I, SHAPE, "T7s2x3"),
    (I, STATS, "T7s2x3[0.0,5.0:A2.5]"),
    (I, {"with_min_max": True}, "T7r2[0.0,5.0:A2.5]"),
    (I, DEVICE, "CT7s2x3"),
    (torch.tensor(3.5), {}, "T1r0"),
    (torch.tensor(3.5), SHAPE, "T1s"),
    (torch.tensor(3.5), STATS, "T1s=3.5"),
    (torch.empty(0, 3), STATS, "T1s0x3[empty]"),
    (np.array([1.0, NAN, 3.0]), STATS, "A11s3[1.0,3.0:A2.0N1nans]"),
    (torch.tensor([1.0, NAN, 3.0]), STATS, "T1s3[1.0,3.0:AnanN1nans]"),
    (np.array([NAN]), STATS, "A11s1[N1nans]"),
    (torch.tensor([NAN]), STATS, "T1s1[N1nans]"),
    (torch.tensor([complex(NAN, 1)]), STATS, "T14s1[N1nans]"),
    (torch.tensor([True, False]), STATS, "T9s2[0.0,1.0:A0.5]"),
    (torch.nn.Parameter(torch.zeros(2)), SHAPE, "T1s2"),
    (np.float32(2), SHAPE, "A1s"),
    (np.array(["a"]), SHAPE, "A8s1"),
    (None, {}, "None"),
    (3, {}, "int"),
    (3.5, {}, "float"),
    (True, {}, "bool"),
    ("s", STATS, "str"),
    (slice(1, 2), {}, "slice"),
    (3, STATS, "int=3"),
    (3.5, STATS, "float=3.5"),
    (True, STATS, "bool=True"),
    ((), {}, "()"),
    ((1,), {}, "(int,)"),
    ((1, 2.0), {}, "(int,float)"),
    (tuple(range(20)), {}, "#20(int,...)"),
    (tuple(range(25)), STATS, "#25(int=0,...)[0,24:A[12.0]]"),
    ([], {}, "#0[]"),
    ([I, None], SHAPE, "#2[T7s2x3,None]"),
    (list(range(20)), {}, "#20[int,...]"),
    (list(range(25)), STATS, "#25[int=0,...][0,24:12.0]"),
    ([1, 2, 3], {"limit": 3}, "#3[int,...]"),
    ({1}, {}, "{int}"),
    (frozenset([1]), {}, "{int}"),
    (set(range(10)), {}, "{...}"),
    (set(range(10)), SHAPE, "{...}#10"),
    (set(range(10)), STATS, "{...}#10[0,9:A4.5]"),
    ({}, {}, "{}"),
    ({"a": I, "b": 1}, SHAPE, "dict(a:T7s2x3,b:int)"),
    (collections.OrderedDict(a=I), SHAPE, "dict(a:T7s2x3)"),
    ({0: I, 1: 1}, SHAPE, "{0:T7s2x3,1:int}"),
    ({0: Dim.DYNAMIC, 1: Dim.AUTO, 2: "seq"}, {}, "{0:DYNAMIC,1:AUTO,2:DYN(seq)}"),
    ({0: Dim("batch")}, {}, "{0:Dim(batch)}"),
    (Dim.STATIC, {}, "DimHint(STATIC)"),
    (2 * Dim("batch"), {}, "DerivedDim"),
    (Named(1, I), SHAPE, "(int,T7s2x3)"),
    (torch.Size([1, 2]), {}, "(int,int)"),
    (DC(1, I), SHAPE, "DC(a:int,b:T7s2x3)"),
    (DC(1), SHAPE, "DC(a:int)"),
    (torch.nn.Linear(1, 1), {}, "Linear(...)"),
    (torch.float32, {}, "dtype(torch.float32)"),
    (torch.device("cpu"), {}, "device(cpu)"),
    (torch.utils._pytree.tree_structure([1, 2]), {}, "TreeSpec(2)"),
]


@pytest.mark.parametrize(("obj", "options", "text"), ROWS)
def test_rows(obj, options, text):
    assert string_type(obj, **options) == text


@pytest.mark.parametrize(
    ("dtype", "code"),
    [
        ("float32", 1), ("uint8", 2), ("int8", 3), ("uint16", 4), ("int16", 5), ("int32", 6), ("int64", 7),
        ("bool", 9),
        ("float16", 10), ("float64", 11), ("uint32", 12), ("uint64", 13), ("complex64", 14),
        ("complex128", 15), ("bfloat16", 16),
        ("float8_e4m3fn", 17), ("float8_e4m3fnuz", 18), ("float8_e5m2", 19),
        ("float8_e5m2fnuz", 20),
    ],
)  # fmt: skip
def test_dtype_codes(dtype, code):
    assert string_type(torch.empty(2, dtype=getattr(torch, dtype))) == f"T{code}r1"


def test_caches():
    kv = "T1s1x2x3x4"
    assert (
        string_type(make_dynamic_cache([(F, F)]), with_shape=True)
        == f"DynamicCache(key_cache=#1[{kv}], value_cache=#1[{kv}])"
    )
    assert (
        string_type(make_static_cache([(F, F)]), with_shape=True)
        == f"StaticCache(key_cache=#1[{kv}], value_cache=#1[{kv}])"
    )
    text = string_type(encoder_decoder())
    inner = "DynamicCache(key_cache=#2[T1r4,T1r4], value_cache=#2[T1r4,T1r4])"
    assert text == f"EncoderDecoderCache(self_attention_cache={inner}, cross_attention_cache={inner})"
    assert string_type(cache_utils.DynamicCache()) == "DynamicCache(key_cache=#0[], value_cache=#0[])"


@pytest.mark.skipif(not has("DynamicSlidingWindowLayer"), reason="this Transformers has no layers")
def test_layers():
    value = torch.zeros(1, 2, 3, 5)
    mixed = make_dynamic_cache([(F, value)] * 2, ["DynamicSlidingWindowLayer", "DynamicLayer"])
    pair = "T1s1x2x3x4, T1s1x2x3x5"
    assert (
        string_type(mixed, with_shape=True) == f"DynamicCache(DynamicSlidingWindowLayer({pair}), DynamicLayer({pair}))"
    )
    layer = "keys=T1s1x2x3x4, values=T1s1x2x3x5"
    assert string_type(mixed.layers[0], with_shape=True) == f"DynamicSlidingWindowLayer({layer})"
    assert string_type(mixed.layers[1], with_shape=True) == f"DynamicLayer({layer})"
    assert string_type(make_static_cache([(F, value)]).layers[0], with_shape=True) == f"StaticLayer({layer})"


@pytest.mark.skipif(not has("LinearAttentionLayer"), reason="this Transformers has no linear attention layers")
def test_linear_attention():
    text = string_type(layered(linear_layer()), with_shape=True)
    assert text == "DynamicCache(LinearAttentionLayer(conv_states=T1s2x6x4, recurrent_states=T1s2x2x4x4))"


def test_every_cache_has_a_text():
    from cache_corpus import CACHES

    for name in CACHES:
        assert "(" in string_type(make(name)[0], with_shape=True, with_min_max=True)


def test_model_outputs_and_batches():
    from transformers import BatchEncoding
    from transformers.modeling_outputs import BaseModelOutput

    assert (
        string_type(BaseModelOutput(last_hidden_state=I), with_shape=True)
        == "BaseModelOutput(last_hidden_state:T7s2x3)"
    )
    assert string_type(BatchEncoding({"a": I}), with_shape=True) == "BatchEncoding(data=dict(a:T7s2x3))"


def test_fake_tensors_and_symbols():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        assert string_type(torch.zeros(2, 3), with_shape=True, with_min_max=True) == "F1s2x3"


def test_onnx_and_onnxruntime():
    onnx, ort = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    assert string_type(onnx.helper.make_tensor_value_info("x", 1, [2])) == "OT1"
    value = ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 3), dtype=np.float32))
    assert string_type(value, with_shape=True) == "OV1s2x3"
    assert string_type(value, with_shape=True, with_min_max=True) == "OV(A1s2x3[0.0,0.0:A0.0])"


def test_graph_nodes():
    graph = torch.fx.symbolic_trace(torch.nn.Identity()).graph
    assert string_type(next(iter(graph.nodes))) == "%input"


def test_registered_classes():
    pytree = torch.utils._pytree
    pytree._private_register_pytree_node(Foo, lambda f: ([I], None), lambda v, c: Foo())
    try:
        assert string_type(Foo(), with_shape=True) == "Foo[serialized](#1[T7s2x3])"
    finally:
        pytree._deregister_pytree_node(Foo)


def test_unknown_types():
    with pytest.raises(TypeError, match=r"Expected a tensor, number or container, got <class '.*Foo'>"):
        string_type(Foo())
    assert string_type(Foo(), ignore=True) == "Foo(...)"
    assert string_type([Foo()], ignore=True) == "#1[Foo(...)]"
