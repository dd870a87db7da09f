"""Python's collector of cycles, while calls of thousands of tensors are made and dropped again."""

from __future__ import annotations

import gc

from fairlead.base.alone import changed

RARELY = 100_000  # objects more than before, until the collector looks for cycles


def collect_rarely() -> None:
    """Until the export ends. The collector looks through everything that PyTorch holds each time the process has a
    quarter more objects, which such calls have at every run; none of them is in a cycle."""

    def raise_threshold() -> tuple[tuple[int, int, int]]:
        before = gc.get_threshold()
        if before[0]:  # 0 is never
            gc.set_threshold(max(before[0], RARELY), *before[1:])
        return (before,)

    changed(raise_threshold, lambda before: gc.set_threshold(*before))
