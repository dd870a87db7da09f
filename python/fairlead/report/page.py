"""From what is known about an export to the page: words and places; the templates have the looks."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from fairlead import _core
from fairlead.base.errors import sentence_of
from fairlead.base.plain_text import escaped
from fairlead.base.units import seconds_text, size_text
from fairlead.contract import LARGEST, FixedDim, Tensor, grouped, grouped_fixed, times
from fairlead.report.advice import advice_for
from fairlead.report.pictures import differences, number, time_bar
from fairlead.report.sources import Sources, shown_place

# Kinds of an error's details that name an operator which has no form for its arguments.
FORMS = ("unsupported form", "must be constant")

FORMATS = {".onnx": "ONNX", ".pte": "ExecuTorch", ".pt2": "PyTorch 2 archive"}


def safe_json(value: Any) -> str:
    """JSON for a script element: nothing in it can end the element or start a comment."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c").replace("&", "\\u0026")


@cache
def environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(
            f"[report] Expected jinja2 for the report, but it cannot be imported ({error}). "
            'Install it with pip install "fairlead[report]".'
        ) from None
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=shown,
    )  # fmt: skip
    filters: dict[str, Callable[[Any], object]] = {
        "size": size_text, "seconds": seconds_text, "thousands": lambda n: f"{n:,}", "number": number,
        "place": shown_place,
    }  # fmt: skip
    found.filters.update(filters)
    return found


def shown(value: Any) -> Any:
    """Every text that a template shows; our own style and script are markup."""
    return escaped(value) if type(value) is str else value


def render(**what: Any) -> str:
    """The page with its style and script inside; the policy lets nothing else run or load."""
    folder = Path(__file__).parent / "templates"
    script = (folder / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    template = environment().get_template("page.html")
    style = (folder / "page.css").read_text(encoding="utf-8")
    return str(template.render(script=script, style=style, policy=policy, version=_core.__version__, **what))


# ---- a model that was exported ---------------------------------------------------------------------------


def render_parts(parts: list[tuple[str, dict[str, Any], dict[str, Any]]], folder: Path | None) -> str:
    """parts: (path of the ONNX file, its record, its times)."""
    pages = [part(k, folder, *p) for k, p in enumerate(parts)]
    names = list(dict.fromkeys(p["model"] for p in pages if p["model"]))
    files = [f for p in pages for f in p["files"]] + other_files(folder)
    timings: dict[str, float] = {}
    for p in pages:
        for name, seconds in p["timings"].items():
            timings[name] = timings.get(name, 0.0) + seconds
    return render(
        failed=None, parts=pages, title=", ".join(names) or pages[0]["file"], status=overall(pages), files=files,
        formats=sorted({f["format"] for f in files if f["format"]}), total_bytes=sum(f["bytes"] for f in files),
        operators=sum(p["operators"] for p in pages), bar=time_bar(timings), seconds=sum_of(timings),
        warnings=[dict(w, part=p["file"] if len(pages) > 1 else "") for p in pages for w in p["warnings"]],
        versions=pages[0]["versions"],
    )  # fmt: skip


def sum_of(timings: dict[str, float]) -> float:
    return timings.get("total") or sum(timings.values())


def other_files(folder: Path | None) -> list[dict[str, Any]]:
    """Models in other formats that lie in the folder."""
    found = sorted(folder.iterdir()) if folder is not None else []
    return [
        {"name": f.name, "bytes": f.stat().st_size, "format": FORMATS[f.suffix], "missing": False}
        for f in found
        if f.suffix in FORMATS and f.suffix != ".onnx" and f.is_file()
    ]


def overall(pages: list[dict[str, Any]]) -> dict[str, Any]:
    checked = [p for p in pages if p["worst"] is not None]
    if len(checked) < len(pages):
        missing = "" if len(pages) == 1 else f": {', '.join(p['file'] for p in pages if p['worst'] is None)}"
        return {"kind": "warn", "word": "Not verified", "text": f"not compared with PyTorch{missing}"}
    worst = max(checked, key=lambda p: p["worst"])
    agrees = f"worst difference from PyTorch {worst['worst']:.1e}" if worst["worst"] else "equal to PyTorch"
    calls = sum(len(p["chart"]["marks"]) for p in checked)
    allowed = f", {worst['tolerance']:.0e} allowed" if worst["tolerance"] else ""
    drawn = [name for p in pages for name in p["drawn"]]
    only = f"; {', '.join(drawn)}: shapes and types only, drawn anew at each run" if drawn else ""
    return {"kind": "good", "word": "Verified", "text": f"{agrees} over {calls} calls{allowed}{only}"}


def part(
    index: int, folder: Path | None, path: str, record: dict[str, Any], times_kept: dict[str, Any]
) -> dict[str, Any]:
    """Everything that the page shows of one ONNX file."""
    summary = _core.read_summary(path)
    contract = record.get("contract", {})
    rows = record.get("differences", [])
    settings = [record["example"]] if record.get("example") else []
    settings += [row["sizes"] for row in rows if row.get("kind") == "unseen"]
    found = _core.file_report(path, settings)
    name = os.path.basename(path) if folder is None else os.path.relpath(path, folder)
    worst = max(rows, key=lambda row: number(row["scaled"]), default=None)
    files = [
        dict(
            f, name=f["name"] or name, format="" if f["name"] else "ONNX", graph=max(0, f["bytes"] - f["tensor_bytes"])
        )
        for f in found["files"]
    ]
    chart = differences(rows)
    colors = {s["name"]: k % 6 for k, s in enumerate(contract.get("symbols", []))}
    return {
        "id": index, "file": name, "model": record.get("model", ""), "versions": record.get("versions", {}),
        "opsets": {domain or "ai.onnx": version for domain, version in summary["opsets"].items()},
        "producer": f"{summary['producer']} {summary['producer_version']}".strip(),
        "operators": summary["nodes"], "weights": summary["weights"], "weight_bytes": summary["weight_bytes"],
        "files": files, "timings": times_kept.get("timings", {}), "runs": times_kept.get("runs"),
        "worst": None if worst is None else number(worst["scaled"]),
        "tolerance": None if worst is None else number(worst.get("tolerance", 0.0)),
        "drawn": list(contract.get("drawn", {})),
        "chart": chart, "losses": losses(contract), "known": bool(contract),
        "symbols": [symbol_row(s, colors) for s in contract.get("symbols", [])],
        "values": value_rows(contract, summary, colors),
        "fixed": [
            {"where": where, "size": size, "reason": reason}
            for where, size, reason in grouped_fixed(fixed_dims(contract))
        ],
        "warnings": warnings(contract, rows, found["files"], bool(record)),
        "by_kind": bars(found["by_kind"], 1), "by_module": bars(found["by_module"], 2),
        "tensors": bars([(t, t["bytes"]) for t in found["tensors"]], 1), "dtypes": found["bytes_by_dtype"],
        "memory": [
            {"at": ", ".join(f"{k} = {v}" for k, v in s.items()), **m}
            for s, m in zip(settings, found["memory"], strict=True)
        ],
        "data": safe_json(tree_data(found, path)),
    }  # fmt: skip


def losses(contract: dict[str, Any]) -> dict[str, Any] | None:
    """What quantising cost: weights and outputs, those that lost most first."""
    found = contract.get("quantized") or {}
    rows = {}
    for kind in ("layers", "outputs"):
        values = [(name, number(value)) for name, value in found.get(kind, {}).items()]
        rows[kind] = bars(sorted((row for row in values if math.isfinite(row[1])), key=lambda row: -row[1]), 1)
    if not rows["layers"] and not rows["outputs"]:
        return None
    agreement = number(found.get("agreement"))
    return {**rows, "format": found.get("format", ""), "agreement": agreement if math.isfinite(agreement) else None}


def symbol_row(symbol: dict[str, Any], colors: dict[str, int]) -> dict[str, Any]:
    least, most = symbol["min"], symbol["max"]
    bounds = "any" if least <= 1 and most >= LARGEST else f"{least} to {'any' if most >= LARGEST else most}"
    return {"name": symbol["name"], "color": colors[symbol["name"]], "where": symbol["where"],
            "tried": symbol["tried"], "bounds": bounds}  # fmt: skip


def fixed_dims(contract: dict[str, Any]) -> list[FixedDim]:
    """Of a contract that was read from a file."""
    rows = contract.get("fixed", [])
    return [FixedDim(row["name"], row["axis"], row["size"], row["reason"], row.get("branches")) for row in rows]


def value_rows(contract: dict[str, Any], summary: dict[str, Any], colors: dict[str, int]) -> list[dict[str, Any]]:
    """Inputs and outputs; each dim says whether it is a symbol, an expression of symbols, fixed, or just a number."""
    fixed = {where for where, _, _ in grouped_fixed(fixed_dims(contract))}
    rows = []
    for title in ("inputs", "outputs"):
        given = contract.get(title)
        if given is None:
            given = summary[title]
        tensors = [
            Tensor(v["name"], v["dtype"], ["?" if d is None else str(d) for d in v["shape"] or ()]) for v in given
        ]
        for names, dtype, shape in grouped(tensors):
            dims = [dim_cell(str(d), f"axis {axis} of {names}" in fixed, colors) for axis, d in enumerate(shape)]
            rows.append({"kind": title[:-1], "name": names, "dtype": dtype, "dims": dims})
    return rows


def dim_cell(text: str, fixed: bool, colors: dict[str, int]) -> dict[str, Any]:
    if text in colors:
        return {"text": text, "kind": "symbol", "color": colors[text]}
    if text.lstrip("-").isdigit():
        return {"text": text, "kind": "fixed" if fixed else "number", "color": 0}
    return {"text": text, "kind": "expression", "color": 0}


def warning(kind: str, title: str, text: str, where: str = "") -> dict[str, Any]:
    return {"kind": kind, "title": title, "text": shown_place(text), "where": where}


def warnings(
    contract: dict[str, Any], rows: list[dict[str, Any]], files: list[dict[str, Any]], known: bool
) -> list[dict[str, Any]]:
    missing = [f["name"] for f in files if f["missing"]]
    found = [warning("bad", "A file is missing", f"the model names {f}, which is not beside it") for f in missing]
    if not known:
        return [*found, warning("info", "Not written by Fairlead", "the file carries no contract and no differences")]
    if not rows:
        text = "the file was not compared with PyTorch; export with verify=True"
        found.append(warning("warn", "Not verified", text))
    for row in rows:
        scaled, tolerance = number(row["scaled"]), number(row.get("tolerance", 0.0))
        if not math.isfinite(scaled) or (tolerance > 0 and scaled > tolerance / 3):
            text = f"output {row['output']!r} differs by {scaled:.1e}, {tolerance:.0e} is allowed"
            found.append(warning("warn", "Close to the tolerance", text))
    for a in contract.get("assumptions", []):
        title = "Draws random numbers" if a["kind"] == "random" else "Assumed"
        found.append(warning("warn", title, a["what"], f"{a['module'] or 'the model'}, {a['source']}{times(a)}"))
    for where, size, reason in grouped_fixed([dim for dim in fixed_dims(contract) if dim.branches]):
        found.append(warning("warn", f"Fixed: {where} = {size}", reason))
    found += [warning("info", "Note", note) for note in contract.get("notes", [])]
    for name in contract.get("ignored", []):
        found.append(warning("info", "Ignored input", f"{name} does not change any output"))
    for name in contract.get("written", []):
        found.append(warning("info", "Written by the model", f"{name} has an output with its new value"))
    return found


def bars(rows: list[tuple[Any, ...]], column: int) -> list[dict[str, Any]]:
    """Rows with their share of the largest in percent."""
    largest = max((row[column] for row in rows), default=0) or 1
    return [{"row": row, "percent": 100 * row[column] / largest} for row in rows]


def tree_data(found: dict[str, Any], path: str) -> dict[str, Any]:
    sources = Sources(newest=os.path.getmtime(path))
    places = set(found["operators"]["source"])
    lines = {k: text for k in places if k and (text := sources.line(found["strings"][k]))}
    strings = [escaped(shown_place(text) if k in places else text) for k, text in enumerate(found["strings"])]
    modules = found["modules"] | {"name": [escaped(name) for name in found["modules"]["name"]]}
    lines = {k: escaped(text) for k, text in lines.items()}
    return {"strings": strings, "operators": found["operators"], "modules": modules, "lines": lines}


# ---- a model that was not --------------------------------------------------------------------------------


def render_failure(error: Exception) -> str:
    facts = {"stage": "", "path": "", "inputs": []} | (getattr(error, "facts", None) or {})
    details = list(getattr(error, "details", ()))
    sources = Sources()
    sentence = shown_place(sentence_of(error))
    parting = facts.get("parting")
    failed = {
        "error": type(error).__name__, "sentence": sentence, "facts": facts, "advice": advice_for(error, facts),
        "parting": parting and parting_page(parting, sources),
        "missing": [dict(d, line=sources.line(d["source"])) for d in details if d["kind"] == "missing operator"],
        "forms": [dict(d, excerpt=sources.excerpt(d["source"])) for d in details if d["kind"] in FORMS],
        "unsolved": [unsolved_row(d, facts, sources) for d in details if d["kind"] == "unsolved number"],
        "assumed": [dict(d, excerpt=sources.excerpt(d["source"])) for d in details if d["kind"] == "assumption"],
        "symbols": facts.get("symbols", []),
        "chart": differences(facts.get("differences", [])),
    }  # fmt: skip
    timings = facts.get("timings", {})
    return render(
        failed=failed, parts=[], title=facts.get("model") or "Export failed", warnings=[], files=[], formats=[],
        status={"kind": "bad", "word": "Not exported", "text": in_short(error, failed)},
        total_bytes=0, operators=0, bar=time_bar(timings), seconds=sum_of(timings), versions=facts.get("versions", {}),
    )  # fmt: skip


def in_short(error: Exception, failed: dict[str, Any]) -> str:
    if isinstance(error, _core.Diverged) and failed["assumed"]:
        return "the model reads values, and strict=True asks for none to be assumed"
    if isinstance(error, _core.Diverged) and not failed["parting"]:
        return "a dimension that was asked to vary does not"
    return WORDS.get(type(error).__name__, "")


WORDS = {
    "Diverged": "the model executes other operators at other sizes or values",
    "Unsolved": "a number that no expression of the input sizes explains",
    "Unsupported": "operators that cannot be written to ONNX",
    "Discrepancy": "the file does not compute what PyTorch computes",
    "InvalidInput": "what was given cannot be used",
    "WriteError": "a file could not be read or written",
    "ParseError": "a file is not in the format it claims",
    "InternalError": "a fault in Fairlead",
}


def parting_page(parting: dict[str, Any], sources: Sources) -> dict[str, Any]:
    sides = []
    for name, count in (("first", "first_count"), ("second", "second_count")):
        operators = parting[name]
        place = operators[0]["source"] if operators else ""
        sides.append({
            "operators": operators, "count": parting[count], "place": place, "excerpt": sources.excerpt(place, 5),
            "sizes": [
                {"name": s["name"], "dims": [(d, d != o) for d, o in zip(s[name], s[other(name)], strict=False)]}
                for s in parting["sizes"]
            ],
        })  # fmt: skip
    return {"number": parting["op"], "common": parting["common"], "sides": sides}


def other(name: str) -> str:
    return "second" if name == "first" else "first"


def unsolved_row(detail: dict[str, Any], facts: dict[str, Any], sources: Sources) -> dict[str, Any]:
    """The values of a number beside the sizes of the runs that gave them, where both are known."""
    runs = facts.get("runs", [])
    known = runs[: len(detail["values"])] if len(runs) >= len(detail["values"]) else []
    rows = [{"sizes": known[k] if known else [], "value": value} for k, value in enumerate(detail["values"])]
    return dict(detail, excerpt=sources.excerpt(detail["source"]), rows=rows, with_sizes=bool(known))
