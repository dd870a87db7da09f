"""One table of caches and layers that the tests share; which rows exist depends on the installed
Transformers.
"""

import importlib

import torch

try:
    import transformers
    from transformers import cache_utils
except ImportError:  # the table is empty then
    transformers = cache_utils = None


def kv(length=3, batch=2, heads=2, dim=4):
    return torch.rand(batch, heads, length, dim)


def fill(cache, layers=2, length=3, batch=2):
    """Runs `update` as a model would, with what each layout wants to know."""
    for layer in range(layers):
        extra = {"cache_position": torch.arange(length), "sliding_window": 4}
        try:
            cache.update(kv(length, batch), kv(length, batch), layer, extra)
        except TypeError:
            cache.update(kv(length, batch), kv(length, batch), layer)
    return cache


def config(**changes):
    values = {
        "hidden_size": 8,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "num_hidden_layers": 2,
        "intermediate_size": 8,
        "vocab_size": 16,
    }
    return transformers.LlamaConfig(**{**values, **changes})


def layered(*layers):
    """A DynamicCache around given layers."""
    cache = cache_utils.DynamicCache()
    cache.layers = list(layers)
    return cache


def layer_of(name, **kwargs):
    return getattr(cache_utils, name)(**kwargs)


def static(name="StaticCache", **changes):
    cls = getattr(cache_utils, name)
    try:
        return fill(cls(config=config(**changes), max_cache_len=6))
    except TypeError:
        pass
    try:
        return fill(cls(config=config(**changes), max_batch_size=2, max_cache_len=6))
    except TypeError:
        return fill(cls(config=config(**changes), max_batch_size=2, max_cache_len=6, device="cpu", dtype=torch.float32))


def hybrid_config(name):
    cfg = config(sliding_window=4)
    cfg.layer_types = ["sliding_attention", "full_attention"]
    return cfg


def gemma_cache(name):
    """HybridCache and its relatives, which read the layer pattern from a Gemma-like config."""
    cfg = transformers.Gemma2Config(
        hidden_size=8,
        num_attention_heads=2,
        num_key_value_heads=2,
        num_hidden_layers=2,
        head_dim=4,
        sliding_window=4,
    )
    cls = getattr(cache_utils, name)
    try:
        return fill(cls(config=cfg, max_batch_size=2, max_cache_len=6))
    except TypeError:
        return fill(cls(config=cfg, max_cache_len=6))


def encoder_decoder():
    cross = fill(cache_utils.DynamicCache(), length=5)
    return cache_utils.EncoderDecoderCache(fill(cache_utils.DynamicCache()), cross)


def sliding_layer(length=3, name="DynamicSlidingWindowLayer", **kwargs):
    layer = layer_of(name, sliding_window=4, **kwargs)
    extra = {"cache_position": torch.arange(length)}
    layer.update(kv(length), kv(length), extra)
    return layer


def filled_layer(name, **kwargs):
    layer = layer_of(name, **kwargs)
    layer.update(kv(), kv(), {"cache_position": torch.arange(3)})
    return layer


def linear_layer(name="LinearAttentionLayer", attention=False, **kwargs):
    layer = layer_of(name, **kwargs)
    if attention:
        layer.update(kv(), kv())
    for state in range(getattr(layer, "number_of_states", 1)):
        layer.update_conv_state(torch.rand(2, 6, 4), state_idx=state)
        layer.update_recurrent_state(torch.rand(2, 2, 4, 4), state_idx=state)
    return layer


def indexed_layer(name, **kwargs):
    layer = filled_layer(name, **kwargs)
    layer.update_indexer(torch.rand(2, 3, 4))
    return layer


def mamba_lists():
    cfg = transformers.MambaConfig(hidden_size=8, num_hidden_layers=2, state_size=4)
    return transformers.MambaCache(cfg, max_batch_size=2, dtype=torch.float32, device="cpu")


def jamba():
    module = importlib.import_module("transformers.models.jamba.modeling_jamba")
    cfg = transformers.JambaConfig(
        hidden_size=8, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, attn_layer_period=2,
        attn_layer_offset=1, mamba_d_state=4, num_experts=2,
    )  # fmt: skip
    cache = module.HybridMambaAttentionDynamicCache(cfg, batch_size=2, dtype=torch.float32, device="cpu")
    cache.update(kv(), kv(), 1)
    return cache


PAIRS = ["0.key", "0.value", "1.key", "1.value"]
STATIC = PAIRS
COUNTED = False
if cache_utils is not None and hasattr(cache_utils, "StaticLayer"):
    # Newer static layers count the tokens in a tensor, which is state and so a leaf.
    counter = getattr(layer_of("StaticLayer", max_cache_len=2), "cumulative_length", None)
    COUNTED = isinstance(counter, torch.Tensor)
if COUNTED:
    STATIC = ["0.key", "0.value", "0.cumulative_length", "1.key", "1.value", "1.cumulative_length"]
EXTRA = ["0.cumulative_length"] if COUNTED else []
LINEAR = ["0.conv_states", "0.recurrent_states"]


def has(*names):
    return cache_utils is not None and all(hasattr(cache_utils, name) for name in names)


# name -> (what it needs, builder, leaf names)
ROWS = {
    "DynamicCache": (has("DynamicCache"), lambda: fill(cache_utils.DynamicCache()), PAIRS),
    "empty DynamicCache": (has("DynamicCache"), lambda: cache_utils.DynamicCache(), []),
    "StaticCache": (has("StaticCache"), static, STATIC),
    "EncoderDecoderCache": (
        has("EncoderDecoderCache"),
        encoder_decoder,
        [f"{i}.{side}.{what}" for i in (0, 1) for side in ("decoder", "encoder") for what in ("key", "value")],
    ),
    "DynamicLayer": (has("DynamicLayer"), lambda: layered(filled_layer("DynamicLayer")), PAIRS[:2]),
    "DynamicSlidingWindowLayer": (
        has("DynamicSlidingWindowLayer"),
        lambda: layered(sliding_layer(), layer_of("DynamicLayer")),
        PAIRS[:2],
    ),
    "full DynamicSlidingWindowLayer": (
        has("DynamicSlidingWindowLayer"),
        lambda: layered(sliding_layer(length=9)),
        PAIRS[:2],
    ),
    "uninitialised layers": (
        has("DynamicLayer"),
        lambda: layered(layer_of("DynamicLayer"), filled_layer("DynamicLayer")),
        PAIRS[2:],
    ),
    "StaticSlidingWindowLayer": (
        has("StaticSlidingWindowLayer"),
        lambda: layered(sliding_layer(name="StaticSlidingWindowLayer", max_cache_len=6)),
        PAIRS[:2] + EXTRA,
    ),
    "uninitialised StaticLayer": (
        has("StaticLayer"),
        lambda: layered(layer_of("StaticLayer", max_cache_len=6)),
        EXTRA,
    ),
    "DynamicIndexedLayer": (
        has("DynamicIndexedLayer"),
        lambda: layered(indexed_layer("DynamicIndexedLayer")),
        [*PAIRS[:2], "0.indexer_keys"],
    ),
    "StaticIndexedLayer": (
        has("StaticIndexedLayer"),
        lambda: layered(indexed_layer("StaticIndexedLayer", max_cache_len=6)),
        [*PAIRS[:2], *EXTRA, "0.indexer_keys", "0.indexer_cumulative_length"],
    ),
    "LinearAttentionLayer": (has("LinearAttentionLayer"), lambda: layered(linear_layer()), LINEAR),
    "two linear states": (
        has("LinearAttentionLayer"),
        lambda: layered(linear_layer(number_of_states=2)),
        ["0.conv_states.0", "0.conv_states.1", "0.recurrent_states.0", "0.recurrent_states.1"],
    ),
    "LinearAttentionAndFullAttentionLayer": (
        has("LinearAttentionAndFullAttentionLayer"),
        lambda: layered(linear_layer("LinearAttentionAndFullAttentionLayer", True)),
        PAIRS[:2] + LINEAR,
    ),
    "LinearAttentionAndSlidingWindowAttentionLayer": (
        has("LinearAttentionAndSlidingWindowAttentionLayer"),
        lambda: layered(linear_layer("LinearAttentionAndSlidingWindowAttentionLayer", True, sliding_window=4)),
        PAIRS[:2] + LINEAR,
    ),
    "LinearAttentionAndStaticFullAttentionLayer": (
        has("LinearAttentionAndStaticFullAttentionLayer"),
        lambda: layered(linear_layer("LinearAttentionAndStaticFullAttentionLayer", True, max_cache_len=6)),
        PAIRS[:2] + EXTRA + LINEAR,
    ),
    "LinearAttentionAndStaticSlidingWindowAttentionLayer": (
        has("LinearAttentionAndStaticSlidingWindowAttentionLayer"),
        lambda: layered(
            linear_layer("LinearAttentionAndStaticSlidingWindowAttentionLayer", True, max_cache_len=6, sliding_window=4)
        ),
        PAIRS[:2] + EXTRA + LINEAR,
    ),
    "Fp8QuantizedLayer": (
        has("Fp8QuantizedLayer"),
        lambda: layered(filled_layer("Fp8QuantizedLayer")),
        [
            *PAIRS[:2],
            "0.quantized_keys.0",
            "0.quantized_keys.1",
            "0.quantized_values.0",
            "0.quantized_values.1",
        ],
    ),
    "HybridCache": (
        has("HybridCache") and not has("DynamicLayer"),
        lambda: gemma_cache("HybridCache"),
        PAIRS,
    ),
    "layer-based HybridCache": (
        has("HybridCache", "DynamicLayer"),
        lambda: gemma_cache("HybridCache"),
        PAIRS,
    ),
    "SlidingWindowCache": (
        has("SlidingWindowCache"),
        lambda: static("SlidingWindowCache", sliding_window=4),
        STATIC,
    ),
    "MambaCache": (
        has("MambaCache"),
        mamba_lists,
        ["0.conv_states", "0.ssm_states", "1.conv_states", "1.ssm_states"],
    ),
    "Jamba's cache": (
        has("MambaCache"),
        jamba,
        [f"{i}.{what}" for i in (0, 1) for what in ("key", "value", "conv_states", "ssm_states")],
    ),
}
CACHES = {name: row for name, row in ROWS.items() if row[0]}
LACKING = [name for name, row in ROWS.items() if not row[0]]


def make(name):
    """(cache, its leaf names) of a row."""
    _, build, names = CACHES[name]
    return build(), list(names)
