"""The page in a real browser (Debian's Chromium): what a person does, and what must never happen meanwhile."""

from __future__ import annotations

import re
import shutil
from urllib.parse import quote, urlsplit

import pytest
from studio_runs import DSS, run_of
from studio_server import running

from bamdp.studio import explain
from bamdp.studio.settings import Choice

FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
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


class Watched:
    """Pages of one visitor, and what went wrong in them."""

    def __init__(self, browser, address, **options):
        self.address = address
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        self.context.set_default_timeout(PATIENCE)
        self.wrong, self.hosts = [], set()

    def page(self):
        page = self.context.new_page()
        page.on("console", lambda m: self.wrong.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        return page

    def visit(self, env="chain", planner=DSS, prior="sparse:alpha=0.2,beta=2", *, more=""):
        page = self.page()
        page.goto(
            f"{self.address}/#env={quote(env)}&planner={quote(planner)}&prior={quote(prior)}&seed=1{more}"
        )
        opened(page)
        return page

    def close(self):
        self.context.close()


@pytest.fixture
def visitor(chromium, studio):
    made = Watched(chromium, studio)
    yield made
    made.close()
    assert made.wrong == []
    assert made.hosts <= {urlsplit(studio).netloc}


def opened(page):
    """Wait until what was chosen is on the stage and explained."""
    page.wait_for_selector("#stage:not(.opening) .sentence")


def until(page, true, otherwise):
    """Wait until something is true of the page; ``otherwise()`` says what is there instead."""
    for _ in range(PATIENCE // 50):
        if true():
            return
        page.wait_for_timeout(50)
    raise AssertionError(otherwise())


def at_step(page, t):
    """Wait until every agent has been drawn at a step: the box of the step alone shows what was typed, too."""
    page.wait_for_selector(".score")
    scores = page.locator(".score")
    until(
        page,
        lambda: (
            page.input_value("#now") == str(t)
            and all(f" in {t} steps" in score for score in scores.all_text_contents())
        ),
        lambda: f"step {page.input_value('#now')} and {scores.all_text_contents()}, not {t}",
    )


def explained(page, t):
    """Wait until the decision of a step is on the page."""
    at_step(page, t)
    fresh = page.locator(".fresh")
    until(
        page,
        lambda: not any(fresh.all_text_contents()) and page.locator(".sentence").count(),
        lambda: f"not explained: {fresh.all_text_contents()}",
    )


def test_watch_play_step_rewind_and_open_a_node(visitor):
    page = visitor.visit()
    assert page.locator(".world .node").count() == 5
    at_step(page, 0)
    page.click("#step")
    explained(page, 1)
    page.click("#play")
    page.wait_for_selector("#play.moving")
    until(page, lambda: int(page.input_value("#now")) >= 3, lambda: "it does not play")
    page.click("#play")
    page.wait_for_selector("#play:not(.moving)")
    t = int(page.input_value("#now"))
    assert t >= 3
    page.click("#back")
    explained(page, t - 1)
    page.click("#first")
    explained(page, 0)
    assert page.locator(".candidates tbody tr").count() == 3
    assert page.locator(".candidates tr.chosen").count() == 1
    page.locator(".tree-holder .node.hyper:not(.root)").first.click()
    page.wait_for_selector(".inspector:not([hidden]) .changes")
    assert "6 simulated steps" in page.locator(".inspector").text_content()
    page.keyboard.press("Escape")
    assert page.locator(".inspector").is_hidden()


def test_the_first_screen_has_something_to_see(visitor):
    page = visitor.page()
    page.goto(visitor.address)
    opened(page)
    explained(page, 600)
    share = re.search(r"(\d+) % of optimal", page.locator(".score").text_content())
    assert int(share[1]) > 60  # an agent that succeeds
    fills = page.locator(".world .cell").evaluate_all("cells => cells.map((cell) => cell.style.fill)")
    assert len(set(fills)) > 5  # what it knows is told from what it does not
    assert page.locator(".candidates tbody tr").count() > 1
    curve, transport = (page.locator(name).bounding_box() for name in (".curve-card", ".transport"))
    assert curve["y"] + curve["height"] <= transport["y"]  # above the fold


def test_a_link_wins_over_what_the_tab_showed_and_comparing_keeps_the_step(visitor):
    page = visitor.visit(planner="thompson", more="&t=12")
    at_step(page, 12)
    address = page.url
    page.goto("about:blank")
    page.goto(address.replace("env=chain", "env=double_loop").replace("t=12", "t=7"))
    opened(page)
    at_step(page, 7)
    assert page.locator(".world .node").count() == 9
    page.keyboard.press("c")
    page.wait_for_selector(".lanes.n2")
    at_step(page, 7)
    page.keyboard.press("3")
    legends = page.locator(".legend").all_text_contents()
    assert legends[0] == legends[1]  # equal colours mean equal values
    page.select_option("[name=versus]", "random")
    page.wait_for_selector("h2:has-text('random')")
    at_step(page, 7)


def test_on_a_phone_the_tree_is_drawn_whole_and_the_curve_is_on_the_first_screen(chromium, studio):
    visitor = Watched(chromium, studio)
    visitor.context.close()
    visitor.context = chromium.new_context(viewport={"width": 390, "height": 844})
    visitor.context.set_default_timeout(PATIENCE)
    page = visitor.visit("grid10")
    curve, controls = (page.locator(name).bounding_box() for name in (".curve-card", ".transport"))
    assert curve["y"] + curve["height"] <= controls["y"]
    holder = page.locator(".tree-holder")
    assert holder.evaluate("e => e.scrollWidth <= e.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    visitor.close()
    assert visitor.wrong == []


@pytest.mark.slow
def test_bad_parameters_are_told_where_they_are_and_can_be_mended(visitor):
    page = visitor.visit()
    page.click("#setup-open")
    page.fill("#setup [name=n_steps]", "many")
    page.click("#setup [type=submit]")
    notice = page.locator("#notice.failed")
    notice.wait_for()
    assert "n_steps must be a whole number" in notice.text_content()
    page.click("#notice >> text=Change parameters")
    assert page.locator("#setup fieldset.bad legend").text_content() == "Planner"
    assert "n_steps" in page.locator("#setup-error").text_content()
    page.fill("#setup [name=n_steps]", "4")
    page.click("#setup [type=submit]")
    page.wait_for_selector(".sentence:has-text('4 steps')")
    page.fill("#now", "-3")
    page.keyboard.press("Enter")
    page.wait_for_selector("#notice:has-text('whole number')")
    page.fill("[name=seed]", "x")
    page.keyboard.press("Enter")
    page.wait_for_selector("#notice.failed")
    visitor.wrong[:] = [w for w in visitor.wrong if "422" not in w]  # the browser reports refusals itself


@pytest.mark.slow
def test_a_reload_goes_on_where_it_was(visitor):
    page = visitor.visit()
    page.fill("#now", "40")
    page.keyboard.press("Enter")
    explained(page, 40)
    before = page.locator(".score").text_content()
    kept = "JSON.parse(sessionStorage.getItem('bamdp-studio-session')).id"
    session = page.evaluate(kept)
    page.reload()
    explained(page, 40)
    assert page.locator(".score").text_content() == before
    assert page.evaluate(kept) == session
    visitor.wrong[:] = [w for w in visitor.wrong if "409" not in w]


@pytest.mark.slow
def test_the_keyboard_does_everything(visitor):
    page = visitor.visit()
    page.locator("#stage").focus()
    page.keyboard.press("ArrowRight")
    at_step(page, 1)
    page.keyboard.press("ArrowLeft")
    at_step(page, 0)
    for key, name in (("1", "visits"), ("2", "entropy"), ("3", "value"), ("4", "truth")):
        page.keyboard.press(key)
        assert page.get_attribute(f"button[data-overlay={name}]", "aria-pressed") == "true"
    page.keyboard.press("a")
    assert not page.is_checked("#arrows")
    page.keyboard.press("]")
    until(page, lambda: page.input_value("#speed") == "10", lambda: page.input_value("#speed"))
    page.keyboard.press(" ")
    page.wait_for_selector("#play.moving")
    page.keyboard.press(" ")
    page.wait_for_selector("#play:not(.moving)")
    page.keyboard.press("Home")
    explained(page, 0)
    page.locator(".tree-holder .node").nth(1).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".inspector:not([hidden])")
    page.keyboard.press("?")
    page.wait_for_selector("#help[open]")
    page.keyboard.press("Escape")
    assert page.locator("#help").is_hidden()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_on_any_screen(chromium, studio, scheme):
    visitor = Watched(chromium, studio, color_scheme=scheme)
    page = visitor.visit("grid5", "dss-pi:n_steps=10")
    for width in (390, 768, 1440, 1920):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_timeout(200)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".transport").bounding_box()["height"] < 120
    paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (max(int(x) for x in re.findall(r"\d+", paper)[:3]) < 80) == (scheme == "dark")
    before = page.locator(".world .cell").first.evaluate("e => e.style.fill")
    page.keyboard.press("d")
    assert page.locator(".world .cell").first.evaluate("e => e.style.fill") != before
    visitor.close()
    assert visitor.wrong == []


@pytest.mark.slow
def test_a_world_of_gymnasium_plays_without_truth_and_optimum(chromium):
    name = "gym:FrozenLake-v1:is_slippery=False"
    first = Choice(env=name, planners=("thompson",))
    with running(first=first) as address:
        visitor = Watched(chromium, address)
        page = visitor.page()
        page.goto(address)
        opened(page)
        explained(page, 600)
        assert page.locator("button[data-overlay=truth]").count() == 0
        assert page.locator(".curve .optimum").count() == 0
        assert page.locator(".world .cell").count() == 17
        assert page.locator(".own-picture mark").count() == 1  # where it is
        page.keyboard.press("4")  # there is no truth to show
        page.click("#first")
        at_step(page, 0)
        visitor.close()
    assert visitor.wrong == []


@pytest.mark.slow
def test_a_slow_planner_never_freezes_the_page(visitor):
    page = visitor.visit(planner="bamcp:n_simulations=100")
    page.click("#setup-open")
    page.fill("#setup [name=time_limit]", "4")
    page.click("#setup [type=submit]")
    page.wait_for_selector(".sentence:has-text('time budget')")
    page.click("#step")
    page.wait_for_selector("#notice:has-text('thinking')")
    begin = page.evaluate("performance.now()")
    page.keyboard.press("1")  # it answers at once
    assert page.get_attribute("button[data-overlay=visits]", "aria-pressed") == "true"
    assert page.evaluate("performance.now()") - begin < 2000
    page.click("#notice >> text=Stop it")
    page.wait_for_selector("#notice:has-text('Stopped')")
    page.click("#notice >> text=Start again")
    page.wait_for_selector(".sentence")


@pytest.mark.slow
def test_an_explained_decision_opens_without_a_server(chromium, tmp_path):
    path = tmp_path / "why.html"
    explain.write_explanation(path, run_of("grid5", "dss-pi:n_steps=10", t=30), "dss-pi")
    visitor = Watched(chromium, "")
    page = visitor.page()
    page.goto(path.as_uri())
    page.wait_for_selector(".sentence")
    assert page.locator(".world .cell").count() == 25
    page.locator(".tree-holder .node.hyper:not(.root)").first.click()
    page.wait_for_selector(".inspector:not([hidden]) .changes")
    page.click("button[data-overlay=entropy]")
    assert "bits unknown" in page.locator("#legend").text_content()
    visitor.close()
    assert visitor.wrong == []
    assert visitor.hosts == {""}
