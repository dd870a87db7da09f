"""Every snippet of the documentation runs: Python blocks, and the `fairlead` commands of shell blocks, page by page.

The blocks of a page run in order, in one namespace and one empty folder, so that a later one may use what an earlier
one made. Directly above a block a comment may say

    <!-- not run: the reason -->        it is checked for its syntax only, and listed by test_what_is_not_run
    <!-- needs: executorch -->          the rest of the page is skipped where that package is missing
"""

import functools
import inspect
import linecache
import re
import shlex
import shutil
import sys
import types
from pathlib import Path
from typing import NamedTuple

import pytest

from fairlead import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = {str(p.relative_to(ROOT)): p for p in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]}
ELSEWHERE = {"docs/command_line.md": "test_cli_docs.py"}  # with a checkpoint of its own
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>.*?) -->\n)?^```(?P<kind>python|sh)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)

# What the commands of the pages are run on, in the place of the reader's own.
FILES = {
    "model.py": """
        import torch

        def make():
            return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU()).eval(), (torch.rand(3, 4),)
    """
}


class Block(NamedTuple):
    kind: str  # python or sh
    text: str
    line: int  # of its first line in the page
    not_run: str  # the reason
    needs: str  # a package


@functools.cache
def blocks(page: str) -> list[Block]:
    text = PAGES[page].read_text()
    found = []
    for match in BLOCK.finditer(text):
        mark = match["mark"] or ""
        reason, needs = (mark.partition(word)[2] if mark.startswith(word) else "" for word in ("not run: ", "needs: "))
        found.append(Block(match["kind"], match["text"], text.count("\n", 0, match.start("text")), reason, needs))
    return found


def commands(block: Block) -> list[list[str]]:
    words = [shlex.split(line.partition(" > ")[0], comments=True) for line in block.text.splitlines()]
    return [line for line in words if line and line[0] in ("fairlead", "mkdir")]


def compiled(page: str, block: Block):
    """Errors and recorded source lines name the page and its line."""
    source = "\n" * block.line + block.text
    linecache.cache[page] = (len(source), None, source.splitlines(keepends=True), page)
    return compile(source, page, "exec")


def runs(page: str) -> bool:
    return any(not b.not_run and (b.kind == "python" or commands(b)) for b in blocks(page))


@pytest.mark.parametrize("page", [page for page in PAGES if runs(page) and page not in ELSEWHERE])
def test_the_page_runs(page, tmp_path, monkeypatch, capsys):
    pytest.importorskip("transformers", minversion="5.0")
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(inspect.cleandoc(text))
    shutil.copy(ROOT / "tests" / "golden" / "mlp.pt2", "program.pt2")
    if "./SmolLM2-135M" in PAGES[page].read_text():
        import checkpoints

        checkpoints.llama(tmp_path / "SmolLM2-135M", checkpoints.TEMPLATE)
        (tmp_path / "models.txt").write_text("./SmolLM2-135M\n")
    page_module = types.ModuleType("__main__")  # where the page's own classes are found by name
    monkeypatch.setitem(sys.modules, "__main__", page_module)
    for block in blocks(page):
        if block.needs:
            pytest.importorskip(block.needs)
        if block.not_run:
            continue
        if block.kind == "python":
            exec(compiled(page, block), vars(page_module))
        for words in commands(block) if block.kind == "sh" else ():
            if words[0] == "mkdir":
                Path(words[1]).mkdir()
                continue
            monkeypatch.setattr(sys, "argv", words)
            with pytest.raises(SystemExit) as ended:
                cli.main()
            assert ended.value.code == 0, f"{page}: {shlex.join(words)}: {capsys.readouterr().err}"


def test_what_is_not_run():
    """Few, each with a reason, and still Python."""
    listed = [(page, block) for page in PAGES for block in blocks(page) if block.not_run]
    for page, block in listed:
        print(f"{page}:{block.line}: {block.not_run}")
        if block.kind == "python":
            compiled(page, block)
    assert len(listed) <= 6


def test_pages_that_are_run_elsewhere_are():
    for page, test in ELSEWHERE.items():
        if page in PAGES:
            assert Path(page).name in (ROOT / "tests" / "python" / test).read_text()


def test_every_example_is_named_on_a_page():
    text = "".join(path.read_text() for path in PAGES.values())
    for path in (ROOT / "examples").glob("*.py"):
        family = path.name.partition("_")[0] + "_*.py"
        assert path.name in text or family in text, path.name
