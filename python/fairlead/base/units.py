"""Sizes and times as people read them."""

from __future__ import annotations


def size_text(size: float) -> str:
    """12 -> "12 B", 1536 -> "1.5 kB" (of 1,000 bytes, as disks are sold)."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


def seconds_text(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 10 else f"{seconds:.2f} s" if seconds >= 0.1 else f"{1000 * seconds:.1f} ms"
