"""Makes the pictures of docs/report.md: a decoder, an encoder-decoder, a failed export, a phone.

python scripts/report_pictures.py          # needs chromium, and playwright from the `test` extra
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
LARGEST = 300_000  # bytes of a picture: they are part of the repository


def make_pages() -> None:
    """In the working folder, so that the pages show names and not the paths of one machine."""
    shutil.copy(ROOT / "tests" / "python" / "report_models.py", "models.py")
    sys.path.insert(0, os.getcwd())
    import models
    from fairlead.report.record import keep_times

    import fairlead

    model, inputs = models.decoder()
    fairlead.export(model, inputs, "model.onnx").report("decoder.html")
    os.mkdir("t5")
    for name, (part, call) in models.encoder_decoder().items():
        keep_times(fairlead.export(part, call, f"t5/{name}.onnx", external_data="always"))
    fairlead.report.write_report("t5", "encoder_decoder.html")
    models.failure("diverged", "model.onnx").report("failure.html")


def unfold(page, *names: str) -> None:
    tree = page.locator("[role=tree]").first
    for name in names:
        tree.locator(".line-row", has=page.get_by_text(name, exact=True)).first.click()
    top = tree.locator(".line-row", has=page.get_by_text(names[1], exact=True)).first
    top.evaluate("""row => {
        const host = row.closest(".tree");
        host.scrollTop += row.getBoundingClientRect().top - host.getBoundingClientRect().top - 8;
        document.activeElement.blur();
        scrollTo(0, 0);
    }""")
    page.mouse.move(0, 0)


def take(browser, name: str, picture: str, bottom: str | None, unfolded: tuple = (), **how) -> None:
    """The page from its top to the end of the element `bottom`."""
    page = browser.new_page(**how, reduced_motion="reduce")
    page.goto(f"file://{os.getcwd()}/{name}.html")
    if unfolded:
        unfold(page, *unfolded)
    width = page.viewport_size["width"]
    height = page.evaluate("document.documentElement.scrollHeight")
    if bottom:
        box = page.locator(bottom).first.bounding_box()
        height = box["y"] + box["height"] + 16
    path = IMAGES / f"{picture}.png"
    page.screenshot(path=path, full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
    page.close()
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}: {size:,} bytes")
    if size > LARGEST:
        raise SystemExit(f"{path} is larger than {LARGEST:,} bytes: show less of the page")


def main() -> None:
    from playwright.sync_api import sync_playwright

    IMAGES.mkdir(exist_ok=True)
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_pages()
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
            desk = {"viewport": {"width": 1000, "height": 900}}
            tree = ("model", "layers", "0", "self_attn", "q_proj")
            take(browser, "decoder", "report_decoder", "[role=tree]", tree, **desk, color_scheme="light")
            take(browser, "decoder", "report", ".scroll", **desk, color_scheme="light")
            take(browser, "encoder_decoder", "report_encoder_decoder", ".chart", **desk, color_scheme="dark")
            take(browser, "failure", "report_failure", None, **desk, color_scheme="light")
            phone = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2}
            take(browser, "decoder", "report_phone", ".scroll", **phone, color_scheme="dark")
            browser.close()
        os.chdir(ROOT)


if __name__ == "__main__":
    main()
