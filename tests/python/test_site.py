"""The site that mkdocs makes of docs/: it builds without a warning, is complete, and loads nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_and_picture_is_there(site):
    for source in (ROOT / "docs").rglob("*"):
        if source.is_file():
            path = site / source.relative_to(ROOT / "docs")
            assert (path.with_suffix(".html") if path.suffix == ".md" else path).exists()


def test_nothing_is_loaded_from_elsewhere(site):
    loads = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^\s>]*", re.IGNORECASE)
    for page in site.rglob("*.html"):
        assert loads.findall(page.read_text()) == [], page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//|@import", sheet.read_text()), sheet.name


def test_the_reference_has_the_docstrings(site):
    text = (site / "reference.html").read_text()
    for words in ("Exports a PyTorch module", "dynamic_shapes", "InputObserver", "register_lowering", "Generator"):
        assert words in text
