"""What an export asks of an experiment, as the core takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead import _core
from fairlead.experiment.generation_step import CACHE, role_of
from fairlead.tree.dynamic_shapes import leaves_of

if TYPE_CHECKING:
    from fairlead.experiment.job import Job


def request_of(export: Job) -> _core.Request:
    call, options = export.call, export.options
    held = {t.data_ptr(): t.numel() * t.element_size() for t in [*export.model.parameters(), *export.model.buffers()]}
    return _core.Request(
        leaves=leaves_of(call, export.asked()), roles=[role_of(name) for name in call.names],
        calls=[[list(t.shape) for t in c.in_order_of(call)] for c in export.calls],
        max_size=list((options.max_size or {}).items()), weight_bytes=sum(held.values()),
        bounded=options.dynamic_shapes is not None, strict=options.strict, verify=options.verify,
        several=export.several, plain=export.plain, cache=call.named.get(CACHE) is not None,
        empty=[_core.EmptyDim(leaf=leaf, axis=axis, text=text) for leaf, axis, text in export.empty],
    )  # fmt: skip
