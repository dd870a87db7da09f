"""The form of what a file says about itself: record.py writes it, a stranger may have written it."""

from __future__ import annotations

from typing import Any

from fairlead.base.json_form import Map, problem, whole

SIZE = whole(-(2**63), 2**63 - 1)


def number(value: Any) -> str:
    """Infinities and NaN are texts: base/plain_json.py."""
    right = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300
    return "" if right or value in ("nan", "inf", "-inf") else "a number"


QUANTIZED = {"format?": str, "layers?": Map(number), "outputs?": Map(number), "agreement?": number}


def quantized(value: Any) -> str:
    return "" if value is None else problem(value, QUANTIZED)


VALUES = [{"name": str, "dtype": str, "shape": [str]}]
CONTRACT = {
    "symbols?": [{"name": str, "tried": [SIZE], "min": SIZE, "max": SIZE, "where": str}],
    "inputs?": VALUES, "outputs?": VALUES,
    "fixed?": [{"name": str, "axis": SIZE, "size": SIZE, "reason": str, "branches?": bool}],
    "assumptions?": [{"kind": str, "what": str, "module": str, "source": str, "count?": SIZE, "operator?": str}],
    "ignored?": [str], "written?": [str], "notes?": [str], "required?": [str], "computed_in?": [str],
    "drawn?": Map([SIZE]), "verified?": str, "proven?": bool, "quantized?": quantized,
}  # fmt: skip
RECORD = {
    "model?": str, "versions?": Map(str), "contract?": CONTRACT, "example?": Map(SIZE),
    "differences?": [{
        "kind": str, "sizes": Map(SIZE), "scaled": number, "output": str, "abs?": number, "scale?": number,
        "tolerance?": number, "ok?": bool, "problem?": str, "variation?": str,
    }],
}  # fmt: skip
TIMES = {"model_bytes": SIZE, "runs": SIZE, "timings": Map(number)}
