"""What the installed Transformers has of all cache and layer classes that Fairlead knows, in words."""

from __future__ import annotations

from fairlead.tree.caches.register import cache_classes

# Every name that some release has or had in transformers.cache_utils. A class that is not listed is
# supported all the same.
KNOWN = (
    "DynamicCache", "StaticCache", "EncoderDecoderCache", "QuantizedCache", "OffloadedCache",
    "OffloadedStaticCache",
    "SlidingWindowCache", "HybridCache", "HybridChunkedCache", "SinkCache", "MambaCache", "DynamicLayer",
    "StaticLayer",
    "DynamicSlidingWindowLayer", "StaticSlidingWindowLayer", "ChunkedSlidingLayer", "DynamicIndexedLayer",
    "StaticIndexedLayer", "QuantizedLayer", "Fp8QuantizedLayer", "LinearAttentionLayer",
    "LinearAttentionAndFullAttentionLayer", "LinearAttentionAndSlidingWindowAttentionLayer",
    "LinearAttentionAndStaticFullAttentionLayer", "LinearAttentionAndStaticSlidingWindowAttentionLayer",
)  # fmt: skip


def describe_support() -> str:
    """Three lines: the release and its layout, the classes it has, the known classes it lacks."""
    try:
        import transformers
    except ImportError:
        return "transformers: not installed; caches are not needed then"
    names = [cls.__name__ for cls in cache_classes()]
    layout = "layer-based" if "DynamicLayer" in names else "list-based"
    lacking = [name for name in KNOWN if name not in names]
    return (
        f"transformers {transformers.__version__}: {layout} caches, {len(names)} classes\n"
        f"  has: {', '.join(sorted(names))}\n"
        f"  lacks: {', '.join(lacking) or 'nothing that is known'}"
    )
