"""The report in a browser: it renders, unfolds by mouse and keyboard, is light and dark, fits a phone, loads nothing.

Chromium is the system's (./test installs it), driven by playwright. Without it these tests fail, they are not skipped.
"""

from __future__ import annotations

import shutil

import pytest
import report_models
import torch
from test_report import NASTY, RTL, foreign

import fairlead

PHONE = {"width": 360, "height": 740}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.fail("no browser to look at the report with: apt-get install chromium")
    with sync_playwright() as play:
        # Containers have no user namespaces for the sandbox; the pages are ours.
        found = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def look(browser):
    """Opens a page. Errors on its console, scripts that were refused, dialogs and requests end the test."""
    wrong, contexts = [], []

    def opened(path, **how):
        context = browser.new_context(**how)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: wrong.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: wrong.append(request.url) if request.url != f"file://{path}" else None)
        page.goto(f"file://{path}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    model, inputs = report_models.decoder()
    folder = tmp_path_factory.mktemp("decoder")
    result = fairlead.export(model, inputs, folder / "model.onnx")
    return result, result.report(folder / "report.html")


def overflow(page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def unfold_everything(page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    for _ in range(8):
        page.evaluate("document.querySelectorAll('[aria-expanded=false] > .line-row').forEach(row => row.click())")


def focused(page) -> str:
    return page.evaluate("document.activeElement.firstChild.innerText")


def test_the_summary_is_there_at_a_glance(decoder, look):
    result, path = decoder
    page = look(path)
    assert page.title() == "LlamaForCausalLM · Fairlead report"
    assert page.locator("h1").inner_text() == "LlamaForCausalLM"
    assert page.locator(".badge").inner_text() == "Verified"
    worst = max(row["scaled"] for row in result.discrepancies)
    assert f"worst difference from PyTorch {worst:.1e} over {len(result.discrepancies)} calls" in page.inner_text(
        "main"
    )
    assert page.locator(".times .bar span").count() >= 5
    assert page.locator(".chart circle").count() == len(result.discrepancies)
    headings = page.locator("h3").all_inner_texts()
    assert headings == ["Contract", "Differences from PyTorch", "Structure", "Operators", "Files and memory"]
    # The picture is where the numbers are: every dot left of the tolerance.
    for row in page.locator(".chart li").all():
        assert row.locator("circle").bounding_box()["x"] < row.locator("rect").bounding_box()["x"]


def test_the_tree_unfolds_by_mouse_down_to_operators_with_their_lines(decoder, look):
    page = look(decoder[1])
    row = lambda text: page.locator(".line-row", has=page.get_by_text(text, exact=True)).first  # noqa: E731
    for name in ("model", "layers", "0", "self_attn"):
        row(name).click()
    reshape = page.locator("[role=treeitem]:not([aria-expanded]) .line-row", has_text="Reshape").first
    assert "modeling_llama.py:" in reshape.inner_text()
    assert "float32[batch" in reshape.inner_text()
    before = page.locator("[role=treeitem]:visible").count()
    row("layers").click()
    assert page.locator("[role=treeitem]:visible").count() < before


def test_the_tree_is_walked_by_keyboard_alone(decoder, look):
    page = look(decoder[1])
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('role')") == "treeitem":
            break
    assert focused(page).startswith("LlamaForCausalLM")
    page.keyboard.press("ArrowDown")
    assert focused(page).startswith("model")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-level')") == "3"
    page.keyboard.press("ArrowLeft")
    assert focused(page).startswith("model")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false"
    page.keyboard.press("Space")
    page.keyboard.press("End")
    assert focused(page).startswith("lm_head")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.getAttribute('aria-level')") == "3"
    page.keyboard.press("Home")
    assert focused(page).startswith("LlamaForCausalLM")
    page.keyboard.press("Tab")  # one stop for the whole tree
    assert page.evaluate("document.activeElement.getAttribute('role')") != "treeitem"


def test_fixed_dimensions_unfold_by_keyboard(decoder, look):
    page = look(decoder[1])
    summary = page.locator("summary", has_text="fixed dimensions, and why")
    summary.focus()
    page.keyboard.press("Enter")
    assert page.get_by_text("axis 1 of past_key_values.{0..1}.key = 2").is_visible()


def background(page) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_light_and_dark_follow_the_system_and_the_button(decoder, look):
    light, dark = look(decoder[1], color_scheme="light"), look(decoder[1], color_scheme="dark")
    white, black = background(light), background(dark)
    assert white != black
    light.get_by_role("button", name="Switch between light and dark").click()
    assert background(light) == black
    light.reload()
    assert background(light) == black  # it was remembered
    dark.locator("#theme").focus()
    dark.keyboard.press("Enter")
    assert background(dark) == white


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(decoder, look, scheme):
    """Text against its card: 4.5 to 1, as WCAG AA asks."""
    page = look(decoder[1], color_scheme=scheme)
    ratios = page.evaluate("""() => {
        const style = getComputedStyle(document.documentElement);
        const light = (name) => {
            const n = parseInt(style.getPropertyValue(name).trim().slice(1).replace(/^(.)(.)(.)$/, "$1$1$2$2$3$3"), 16);
            return [n >> 16, (n >> 8) & 255, n & 255].map(v => v / 255)
                .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
        };
        const against = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
        return ["--ink", "--muted", "--accent", "--good", "--warn", "--bad"].map(c => [c, against(c, "--card")]);
    }""")
    assert [(name, ratio) for name, ratio in ratios if ratio < 4.5] == []


def test_a_phone_needs_no_sideways_scrolling(decoder, look):
    page = look(decoder[1], viewport=PHONE, has_touch=True, is_mobile=True)
    assert overflow(page) == 0
    unfold_everything(page)
    assert page.locator("[role=treeitem]").count() > 100
    assert overflow(page) == 0


def test_a_folder_of_parts_has_a_section_each(tmp_path, look):
    for name, (model, inputs) in report_models.encoder_decoder().items():
        fairlead.export(model, inputs, tmp_path / f"{name}.onnx")
    page = look(fairlead.report.write_report(tmp_path))
    assert page.locator("article h2").all_inner_texts() == ["decoder_model.onnx", "encoder_model.onnx"]
    assert page.locator("[role=tree]").count() == 2
    page.locator("nav a").nth(1).click()
    assert page.url.endswith("#part1")
    phone = look(str(tmp_path / "report.html"), viewport=PHONE)
    unfold_everything(phone)
    assert overflow(phone) == 0


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("diverged", ["Where the runs part", "hidden = self.large(hidden)", "hidden = torch.tanh(self.small(hidden))"]),
        ("strict", ["Values that the model read", "if x.sum() > 0:"]),
        ("unsolved", ["Numbers that nothing explains", "steps = x.new_zeros(count)", "x.new_ones("]),
        ("missing", ["Missing operators", "aten.special_airy_ai.default", "aten.special_bessel_j0.default"]),
        ("forms", ["Operators in a form that cannot be written", "aten.view.dtype", "aten.convolution.default"]),
        ("wrong", ["Differences from PyTorch", "differs by 2 (scaled), more than 0.0001"]),
    ],
)
def test_a_failure_has_a_page_too(kind, texts, tmp_path, look):
    path = report_models.failure(kind, tmp_path / "model.onnx").report(tmp_path / "why.html")
    page = look(path)
    assert page.locator(".badge").inner_text() == "Not exported"
    main = page.locator("main").inner_text()
    for text in [*texts, "What to try"]:
        assert text in main
    phone = look(path, viewport=PHONE)
    unfold_everything(phone)
    assert overflow(phone) == 0


def test_twenty_thousand_operators_open_at_once(tmp_path, look):
    foreign(tmp_path / "m.onnx", 20_000, module=lambda k: "body")
    page = look(fairlead.report.write_report(tmp_path))
    rows = page.locator("[role=treeitem]")
    assert rows.count() == 1 + 1 + 200 + 1  # the model, the module, its first operators, "show more"
    more = page.get_by_text("show 200 more of 19800")
    more.click()
    assert rows.count() == 2 + 400 + 1
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    assert rows.count() == 2 + 600 + 1
    # Load and first layout on a busy machine; without lazy rows it would be half a minute.
    assert page.evaluate("performance.getEntriesByType('navigation')[0].duration") < 5000


def test_names_are_text_whatever_they_say(tmp_path, look):
    foreign(tmp_path / "m.onnx", 6, module=lambda k: f"{NASTY}.{RTL}.{k}", name=NASTY)
    page = look(fairlead.report.write_report(tmp_path))
    unfold_everything(page)
    assert page.locator("img").count() == 0
    assert page.get_by_text(NASTY.split(".")[0]).first.is_visible()
    # A name that runs right to left does not turn what stands beside it.
    row = page.locator(".line-row", has_text=RTL).first
    name, count = row.locator("b").bounding_box(), row.locator("span").first.bounding_box()
    assert name["x"] < count["x"]


def test_hostile_words_in_a_failure_are_text(tmp_path, look):
    error = fairlead.Diverged(f"[export] {NASTY} {RTL}")
    page = look(error.report(tmp_path / "why.html"))
    assert page.locator("img").count() == 0
    assert NASTY in page.locator("main").inner_text()


def test_a_model_without_sizes_or_weights_has_a_page(tmp_path, look):
    result = fairlead.export(torch.nn.ReLU().eval(), (torch.tensor(1.0),), tmp_path / "m.onnx")
    page = look(result.report(tmp_path / "page.html"))
    assert "No symbols: every dimension is fixed." in page.locator("main").inner_text()
