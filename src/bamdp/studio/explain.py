"""Export of one decision as a self-contained page (``why.html``) or a picture (``why.svg``).

The page embeds the studio's drawings and scripts, and the details of every clickable element. The picture has explicit
colours, which makes it suitable for talks and papers.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import bamdp
from bamdp.envs.drawing import (
    Point,
    action_css,
    colour_of,
    element,
    figure,
    group,
    markup,
    palette_css,
    placed,
    shape,
    text_element,
    view_box,
    with_colours,
)
from bamdp.envs.picture import draw_world
from bamdp.planners import DSS
from bamdp.registry import label
from bamdp.studio.playback import Playback
from bamdp.studio.view import Watcher, describe_world, short
from bamdp.studio.why import Decision

STATIC_FILES = Path(__file__).with_name("static")
TEMPLATES = Path(__file__).with_name("templates")
PAGE_SCRIPTS = ("dom.js", "tip.js", "world.js", "why.js", "file.js")
PAGE_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
FORMATS = (".html", ".svg")
PICTURE_WIDTH = 1360.0
WORLD_SIDE = 400.0  # size of the environment in the picture


def write_explanation(target: Path, run: Playback) -> None:
    """Write the decision at the current step of a run; the file extension selects the format."""
    make = as_html if target.suffix == ".html" else as_svg
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(make(run), encoding="utf-8")


def run_facts(run: Playback) -> str:
    """Describe the run in one line."""
    return (
        f"{run.setting.env}, {label(run.setting.planner)}, prior {label(run.setting.prior)}, "
        f"discount {run.setting.discount}, objective {run.setting.objective}, seed {run.setting.seed}, step {run.t}"
    )


# --- the page ------------------------------------------------------------------------------------------------------


def as_html(run: Playback) -> str:
    """Return the decision as a self-contained page."""
    import jinja2

    decision = Decision(run)
    world = describe_world(run.env, run.setting.first_discount, run.end)
    why = decision.data()
    nodes = why["tree"]["nodes"] if why["tree"] else {}
    data = {
        "world": {**world, "scene": draw_world(world).data()},
        "frame": Watcher(run, world).frame(),
        "why": why,
        "details": {node: decision.detail(int(node)) for node in nodes},
    }
    templates = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True)
    templates.policies["json.dumps_kwargs"] = {"allow_nan": False, "ensure_ascii": False}
    return templates.get_template("why.html").render(
        title=f"Why {decision.name(decision.plan.action)}? {run.env.name}, step {run.t}",
        facts=run_facts(run),
        policy=PAGE_POLICY,
        version=bamdp.__version__,
        style=palette_css() + _static("scene.css") + _static("studio.css"),
        script="\n".join(
            re.sub(r"^(export |import .*\n)", "", _static(name), flags=re.M) for name in PAGE_SCRIPTS
        ),
        data=data,
    )


def _static(name: str) -> str:
    return (STATIC_FILES / name).read_text(encoding="utf-8")


# --- the picture ---------------------------------------------------------------------------------------------------


def as_svg(run: Playback) -> str:
    """Return a picture with environment and tree side by side, and the candidates below the environment."""
    decision = Decision(run)
    world = describe_world(run.env, run.setting.first_discount, run.end)
    frame = Watcher(run, world).frame()
    values = [row["reward"] for row in frame["expects"]] if world["kind"] == "arms" else frame["value"]
    last, policy = frame["last_action"], None if world["kind"] == "arms" else frame["policy"]
    drawn = draw_world(world, run.state, values, policy, last_action=last)
    scene = drawn.figure
    scene.find("g[@class='rollouts']").extend(_rollouts(decision, [drawn.centres[i] for i in drawn.place]))  # type: ignore[union-attr]
    _, _, wide, high = view_box(scene)
    scale, top = WORLD_SIDE / max(wide, high), 96.0
    parts = [
        text_element(28, 38, f"Why {decision.name(decision.plan.action)}?", class_="headline"),
        text_element(28, 62, decision.sentence(), class_="said"),
        text_element(28, 82, run_facts(run), class_="facts"),
        placed(scene, 28, top, wide * scale, high * scale),
    ]
    under = top + high * scale
    under += 18
    bounds = " to ".join(map(short, drawn.range))
    parts.append(text_element(28, under, f"colours: believed value, from {bounds}", class_="facts"))
    table, bottom = _table(decision.candidates(), 28, under + 30)
    parts.append(table)
    if decision.tree is not None:
        tree, shown = decision.draw_tree()
        _, _, tree_wide, tree_high = view_box(tree)
        left = 28 + WORLD_SIDE + 36
        tall = tree_high * (PICTURE_WIDTH - left - 20) / tree_wide
        parts.append(placed(tree, left, top - 8, PICTURE_WIDTH - left - 20, tall))
        words = filter(None, (*decision.caption(len(shown)).split(". "), decision.reach()))
        for line in words:
            tall += 17
            parts.append(text_element(left, top + tall, f"{line.rstrip('.')}.", class_="facts"))
        bottom = max(bottom, top + tall)
    size = PICTURE_WIDTH, bottom + 24
    style = element("style", _static("scene.css") + _static("file.css") + action_css())
    back = element("rect", class_="back", width=size[0], height=size[1])
    shown_size: dict[str, Any] = {"width": size[0], "height": size[1]}
    picture = figure(size, style, back, *parts, label=decision.sentence(), class_="scene", **shown_size)
    return with_colours(markup(picture))


def _rollouts(decision: Decision, centre: list[Point]) -> list[Element]:
    """Draw the rollouts of the selected policy; ``centre`` contains the position of each state."""
    node = next((c["node"] for c in decision.candidates() if c["chosen"]), None)
    if node is None or not isinstance(decision.planner, DSS):
        return []
    brief = decision.brief(node)
    lines = []
    for i, way in enumerate(brief["ways"]):
        dx, dy = 6 * math.cos(2.4 * i), 6 * math.sin(2.4 * i)
        points = [(x + dx, y + dy) for x, y in (centre[s] for s in way)]
        for class_ in ("halo", f"stroke{colour_of(brief['action'])}"):
            lines.append(shape(points, closed=False, class_=class_))
    return lines


def _table(candidates: list[dict[str, Any]], left: float, top: float) -> tuple[Element, float]:
    """Draw the table of candidates; return it and the y coordinate of its lower end."""
    rows = [("choice", "value", "spread", "count", "head", None)]
    for c in candidates[:20]:
        spread = "exact" if c["exact"] else short(c["spread"])
        look = "row chosen" if c["chosen"] else "row"
        rows.append((c["label"], short(c["value"]), spread, str(c["count"] or "–"), look, c["action"]))
    parts = []
    for i, (name, *numbers, look, action) in enumerate(rows):
        y = top + 22 * i
        if action is not None:
            box = {"x": left, "y": y - 11, "width": 12, "height": 12, "rx": 3}
            parts.append(element("rect", class_=f"fill{colour_of(action)}", **box))
        parts.append(text_element(left + 20, y, name, class_=look, text_anchor="start"))
        for x, number in zip((190, 280, 360), numbers):
            parts.append(text_element(left + x, y, number, class_=look, text_anchor="end"))
    return group(*parts, class_="table"), top + 22 * len(rows)
