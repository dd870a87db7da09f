"""How much memory there is."""

from __future__ import annotations


def free_memory() -> int:
    """Bytes that could be used now; what files have in memory can be given back."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file)
        return int(rows["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return 4 << 30
