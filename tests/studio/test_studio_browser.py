"""The page in a real browser (Debian's Chromium): what a person does, and what must never happen meanwhile."""

from __future__ import annotations

import re
import shutil
from urllib.parse import quote, urlsplit

import pytest
from studio_runs import DSS, run_of

from bamdp.studio import explain

FLAGS = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking".split()
PATIENCE = 120_000  # milliseconds; compiling may be among them


@pytest.fixture(scope="module")
def chromium():
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def new_page(chromium, studio):
    """A function that makes pages of one visitor; nothing may go wrong in them, and no other host is asked."""
    wrong, hosts = [], set()
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)

    def visit(env="chain", planner=DSS, more="", address=None):
        page = context.new_page()
        page.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
        page.goto(address or f"{studio}/#env={quote(env)}&planner={quote(planner)}&prior=sparse&seed=1{more}")
        page.wait_for_selector("#stage:not(.opening) .sentence" if address in (None, studio) else ".sentence")
        return page

    yield visit
    context.close()
    # the browser reports refusals itself
    assert [text for text in wrong if "422" not in text and "409" not in text] == []
    assert hosts <= {urlsplit(studio).netloc, ""}


def until(page, true):
    """Wait until something is true of the page."""
    for _ in range(PATIENCE // 50):
        if true():
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"step {page.input_value('#now')}: {page.locator('.score').all_text_contents()}")


def at_step(page, t):
    """Wait until every agent has been drawn at a step."""
    page.wait_for_selector(".score")
    scores = page.locator(".score")
    until(page, lambda: all(f" in {t} steps" in score for score in scores.all_text_contents()))


def explained(page, t):
    """Wait until the decision of a step is on the page."""
    at_step(page, t)
    fresh = page.locator(".fresh")
    until(page, lambda: not any(fresh.all_text_contents()) and page.locator(".sentence").count())


def test_watch_play_step_rewind_and_open_a_node(new_page):
    page = new_page()
    assert page.locator(".world .node").count() == 5
    page.click("#step")
    explained(page, 1)
    page.click("#play")
    until(page, lambda: int(page.input_value("#now")) >= 3)
    page.click("#play")
    page.wait_for_selector("#play:not(.moving)")
    t = int(page.input_value("#now"))
    page.click("#back")
    explained(page, t - 1)
    assert page.locator(".candidates tbody tr").count() == 3
    page.locator(".tree-holder .node.hyper:not(.root)").first.click()
    page.wait_for_selector(".inspector:not([hidden]) .changes")
    assert "6 simulated steps" in page.locator(".inspector").text_content()


def test_the_first_screen_shows_an_agent_that_succeeds(new_page, studio):
    page = new_page(address=studio)
    explained(page, 600)
    share = re.search(r"(\d+) % of the optimum", page.locator(".score").text_content())
    assert int(share[1]) > 60
    fills = page.locator(".world .cell").evaluate_all("cells => cells.map((cell) => cell.style.fill)")
    assert len(set(fills)) > 5  # what it knows is told from what it does not


@pytest.mark.slow
def test_parameters_are_changed_mistakes_told_planners_compared_and_a_reload_goes_on(new_page):
    page = new_page(more="&t=12")
    at_step(page, 12)
    page.click("#setup-open")
    page.fill("#setup [name=n_steps]", "many")
    page.click("#setup [type=submit]")
    page.wait_for_selector("#notice.failed")
    assert "n_steps must be a whole number" in page.locator("#notice").text_content()
    page.click("#notice >> text=Change parameters")
    assert "n_steps" in page.locator("#setup-error").text_content()
    page.fill("#setup [name=n_steps]", "4")
    page.click("#setup [type=submit]")
    page.wait_for_selector(".sentence:has-text('4 steps')")
    page.fill("#now", "40")
    page.keyboard.press("Enter")
    explained(page, 40)
    page.select_option("[name=versus]", "random")
    page.wait_for_selector("h2:has-text('random')")
    at_step(page, 40)
    before = page.locator(".score").all_text_contents()
    page.reload()
    explained(page, 40)
    assert page.locator(".score").all_text_contents() == before


@pytest.mark.slow
def test_the_keyboard_does_everything_in_both_themes_on_any_screen(new_page):
    page = new_page("grid5", "dss-pi:n_steps=10")
    page.locator("#stage").focus()
    page.keyboard.press("ArrowRight")
    at_step(page, 1)
    page.keyboard.press("ArrowLeft")
    at_step(page, 0)
    for key, name in (("1", "visits"), ("2", "entropy"), ("3", "value"), ("4", "truth")):
        page.keyboard.press(key)
        assert page.get_attribute(f"button[data-overlay={name}]", "aria-pressed") == "true"
    page.keyboard.press("?")
    page.wait_for_selector("#help[open]")
    page.keyboard.press("Escape")
    fill = "cell => cell.style.fill"
    before = page.locator(".world .cell").first.evaluate(fill)
    page.keyboard.press("d")
    assert page.locator(".world .cell").first.evaluate(fill) != before
    for width in (390, 768, 1920):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_timeout(200)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_an_explained_decision_opens_without_a_server(new_page, tmp_path):
    path = tmp_path / "why.html"
    explain.write_explanation(path, run_of("grid5", "dss-pi:n_steps=10", t=30))
    page = new_page(address=path.as_uri())
    assert page.locator(".world .cell").count() == 25
    page.locator(".tree-holder .node.hyper:not(.root)").first.click()
    page.wait_for_selector(".inspector:not([hidden]) .changes")
    page.click("button[data-overlay=entropy]")
    assert "bits unknown" in page.locator("#legend").text_content()
