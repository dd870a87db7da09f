"""Runs the snippets of a page of the documentation; test_docs.py does so for all, each page in its own process."""

import inspect
import linecache
import os
import re
import shlex
import shutil
import sys
import traceback
import types
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = {str(p.relative_to(ROOT)): p for p in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]}
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>.*?) -->\n)?^```(?P<kind>python|sh)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)

# What the commands of the pages are run on, in the place of the reader's own.
FILES = {
    "model.py": """
        import torch

        def make():
            return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU()).eval(), (torch.rand(3, 4),)
    """,
    "models.txt": "./SmolLM2-135M",
}


class Block(NamedTuple):
    kind: str  # python or sh
    text: str
    line: int  # lines of the page before its first
    not_run: str  # the reason
    needs: str  # a package


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


def runs(page: str) -> bool:
    return any(not b.not_run and (b.kind == "python" or commands(b)) for b in blocks(page))


def compiled(page: str, block: Block):
    """Errors and recorded source lines name the page and its line."""
    source = "\n" * block.line + block.text
    linecache.cache[page] = (len(source), None, source.splitlines(keepends=True), page)
    return compile(source, page, "exec")


def run_command(words: list[str]) -> None:
    from fairlead import cli

    if words[0] == "mkdir":
        Path(words[1]).mkdir()
        return
    sys.argv = words
    try:
        cli.main()
    except SystemExit as ended:
        if ended.code != 0:
            raise RuntimeError(f"{shlex.join(words)} ended with {ended.code}") from None


def run_page(page: str, folder: Path, log: Path) -> None:
    """In a process of its own, whose output goes to the log: it exits with 1 where a block fails."""
    with open(log, "w", buffering=1) as out:
        for stream in (1, 2):
            os.dup2(out.fileno(), stream)
        sys.stdout = sys.stderr = out
        os.chdir(folder)
        for name, text in FILES.items():
            Path(name).write_text(inspect.cleandoc(text) + "\n")
        shutil.copy(ROOT / "tests" / "golden" / "mlp.pt2", "program.pt2")
        if "./SmolLM2-135M" in PAGES[page].read_text():
            import checkpoints

            checkpoints.llama(folder / "SmolLM2-135M", checkpoints.TEMPLATE)
        if "SmolLM2.Q4_1.gguf " in PAGES[page].read_text():
            import checkpoints

            checkpoints.gguf(folder / "SmolLM2.Q4_1.gguf", ("Q4_1",))
        sys.modules["__main__"] = module = types.ModuleType("__main__")  # where the page's classes are found by name
        try:
            for block in blocks(page):
                if block.not_run:
                    continue
                if block.kind == "python":
                    exec(compiled(page, block), vars(module))
                else:
                    for words in commands(block):
                        run_command(words)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        out.flush()
        os._exit(0)  # whatever the runtimes would still do at exit is not what is tested
