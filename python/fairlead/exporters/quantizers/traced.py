"""What quantizers of graphs of torch.export share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.capture import Capture
from fairlead.exporters.refusals import InvalidValue


def traced_call(names: Sequence[str], call: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the arguments that the graph takes: caches are written into by the runs."""
    missing = [name for name in names if name not in call]
    if missing:
        raise InvalidValue(
            f"[quantize] Expected calibration calls with {', '.join(names)}, got one without {', '.join(missing)}."
        )
    return Capture().arguments({name: call[name] for name in names})
