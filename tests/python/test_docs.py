"""Every snippet of the documentation runs: Python blocks, and the `fairlead` commands of shell blocks, page by page.

The blocks of a page run in order, in one process and one folder, so that a later one may use what an earlier one made.
Directly above a block a comment may say

    <!-- not run: the reason -->        it is checked for its syntax only, and listed by test_what_is_not_run
    <!-- needs: executorch -->          the page is skipped where that package is missing
"""

import multiprocessing
from pathlib import Path

import docs_pages
import pytest
from docs_pages import PAGES, ROOT

# Which also look at what the pages say, and make the checkpoints that they speak of.
ELSEWHERE = {"docs/command_line.md": "test_cli_docs.py", "docs/clients.md": "test_clients_docs.py"}
SECONDS = 240  # for one page


@pytest.fixture(scope="module")
def processes():
    """Processes that begin with what every page imports: one import for all pages, and no page sees another's."""
    pytest.importorskip("transformers", minversion="5.0")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "transformers.models.llama.modeling_llama", "onnxruntime", "fairlead.api"])
    return context


@pytest.mark.parametrize("page", [page for page in PAGES if docs_pages.runs(page) and page not in ELSEWHERE])
def test_the_page_runs(page, processes, tmp_path):
    for package in {block.needs for block in docs_pages.blocks(page)} - {""}:
        pytest.importorskip(package)
    folder, log = tmp_path / "folder", tmp_path / "log"
    folder.mkdir()
    process = processes.Process(target=docs_pages.run_page, args=(page, folder, log))
    process.start()
    process.join(SECONDS)
    if process.exitcode is None:
        process.kill()
    assert process.exitcode == 0, log.read_text()[-4000:]


def test_what_is_not_run():
    """Few, each with a reason, and still Python."""
    listed = [(page, block) for page in PAGES for block in docs_pages.blocks(page) if block.not_run]
    for page, block in listed:
        print(f"{page}:{block.line}: {block.not_run}")
        if block.kind == "python":
            docs_pages.compiled(page, block)
    assert len(listed) <= 6


def test_pages_that_are_run_elsewhere_are():
    for page, test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / "tests" / "python" / test).read_text()


def test_every_example_is_named_on_a_page():
    text = "".join(path.read_text() for path in PAGES.values())
    for path in (ROOT / "examples").glob("*.py"):
        family = path.name.partition("_")[0] + "_*.py"
        assert path.name in text or family in text, path.name
