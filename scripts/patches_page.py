#!/usr/bin/env python3
"""Writes the table of docs/patches.md from the table of patches; --check only says whether it is up to date."""

from __future__ import annotations

import sys
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "patches.md"
MARK = "<!-- the table: written by scripts/patches_page.py -->\n"


def page() -> str:
    from fairlead.patches import patch_rows

    text = ""
    for row in (row for row in patch_rows() if row.ours):
        exact = "the same bits" if row.tolerance == 0 else f"within {row.tolerance:g}"
        text += f"### {row.name}\n\n- for: `{row.backend}`, {row.versions}\n- where: {row.looked_for}\n"
        text += f"- problem: {row.problem}\n- remedy: {row.remedy}\n- numbers: {exact}\n\n"
    before = PAGE.read_text().partition(MARK)[0]
    return before + MARK + "\n" + text.rstrip() + "\n"


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        if PAGE.read_text() == text:
            return 0
        print("docs/patches.md is not up to date: run scripts/patches_page.py")
        return 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
