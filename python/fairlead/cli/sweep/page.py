"""index.html of a sweep: one row per model, failures first, each linked to its report. One file, no network."""

from __future__ import annotations

import html
import os
from typing import Any

from fairlead._core import write_file
from fairlead.base.plain_text import escaped
from fairlead.base.units import size_text

REPORT = "report.html"
STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --good: #3fb950; --bad: #ff7b72; } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }
div { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .7rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.ok { color: var(--good); } .bad { color: var(--bad); } small { opacity: .8; }
"""
HEADS = [("model", ""), ("status", ""), ("task", ""), ("difference", "number"), ("size", "number"), ("nodes", "number"),
         ("export", "number"), ("in all", "number")]  # fmt: skip


def write_page(path: str, rows: list[dict[str, Any]], count: int) -> None:
    done = sum(row["status"] == "ok" for row in rows)
    heads = "".join(f'<th class="{kind}" scope="col">{name}</th>' for name, kind in HEADS)
    body = "\n".join(one_row(row, os.path.dirname(path)) for row in sorted(rows, key=lambda row: row["status"] == "ok"))
    left = f", {count - len(rows)} not run yet" if count > len(rows) else ""
    text = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Fairlead sweep</title><style>{STYLE}</style></head><body>
<h1>Sweep</h1>
<p>{done} of {count} models exported and checked{left}.</p>
<div><table><thead><tr>{heads}</tr></thead>
<tbody>
{body}
</tbody></table></div>
</body></html>
"""
    write_file(os.fspath(path), text.encode("utf-8", errors="replace"), "sweep")


def shown(text: Any) -> str:
    return html.escape(escaped(str(text)))


def one_row(row: dict[str, Any], folder: str) -> str:
    name = shown(row["name"])
    linked = os.path.isfile(os.path.join(folder, row["name"], REPORT))
    model = f'<a href="{name}/{REPORT}">{name}</a>' if linked else name
    good = row["status"] == "ok"
    error = f"<br><small>{shown(row['error'])}</small>" if row.get("error") else ""
    worst, size = row.get("worst_difference"), row.get("bytes")
    cells = [
        f"<td>{model}<br><small>{shown(row['source'])}</small></td>",
        f'<td><span class="{"ok" if good else "bad"}">{shown(row["status"])}</span>{error}</td>',
        f"<td>{shown(row.get('task') or row.get('task_asked') or '')}</td>",
        number("" if worst is None else f"{worst:.1e}"),
        number("" if size is None else size_text(size)),
        number(row.get("nodes", "")),
        number(f"{row['export_seconds']:.1f} s" if "export_seconds" in row else ""),
        number(f"{row.get('seconds', 0):.1f} s"),
    ]
    return f"<tr>{''.join(cells)}</tr>"


def number(text: Any) -> str:
    return f'<td class="number">{shown(text)}</td>'
