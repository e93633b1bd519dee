"""One decision as a file: a page that needs nothing else (``why.html``), or a picture (``why.svg``).

The page has the drawings and the scripts of the studio inside, and all details that a click can ask for. The picture
has its colours written out, so that it can go into a talk or a paper.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import bamdp
from bamdp.envs import drawing
from bamdp.envs.drawing import (
    Element,
    Markup,
    Point,
    action_class,
    element,
    figure,
    group,
    shade,
    text_element,
)
from bamdp.envs.picture import (
    WorldPaint,
    draw_world,
    paint_states,
    world_css,
    world_places,
)
from bamdp.planners import DSS
from bamdp.registry import label
from bamdp.studio.playback import Playback
from bamdp.studio.view import Watcher, describe_world
from bamdp.studio.why import Decision, draw_contrast

STATIC_FILES = Path(__file__).with_name("static")
TEMPLATES = Path(__file__).with_name("templates")
PAGE_SCRIPTS = ("dom.js", "tip.js", "world.js", "why.js", "file.js")
PAGE_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
EXPLANATION_FORMATS = (".html", ".svg")
PICTURE_WIDTH = 1360.0
WORLD_SIDE = 400.0  # of the world in the picture
LEAP = 65.0  # pixels: a longer step leads to no neighbour


def write_explanation(target: Path, run: Playback, planner: str) -> None:
    """Write the decision that is due at the present step of a run; the ending decides the format."""
    make = as_html if target.suffix == ".html" else as_svg
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(make(run, planner), encoding="utf-8")


def check_format(path: str | Path) -> Path:
    """Return the path, or raise ValueError if its ending is none of the formats."""
    target = Path(path)
    if target.suffix not in EXPLANATION_FORMATS:
        raise ValueError(f"--out must end in {' or '.join(EXPLANATION_FORMATS)}, got {str(path)!r}")
    return target


def run_facts(run: Playback, planner: str) -> str:
    """Return in one line what was run."""
    return (
        f"{run.setting.env}, {label(run.setting.planner)}, prior {label(run.setting.prior)}, "
        f"discount {run.setting.discount}, objective {run.setting.objective}, seed {run.setting.seed}, step {run.t}"
    )


# --- the page ------------------------------------------------------------------------------------------------------


def as_html(run: Playback, planner: str) -> str:
    """Return a page with everything in it."""
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
        facts=run_facts(run, planner),
        policy=PAGE_POLICY,
        version=bamdp.__version__,
        style=drawing.palette_css() + world_css() + _static("scene.css") + _static("studio.css"),
        script="\n".join(
            re.sub(r"^(export |import .*\n)", "", _static(name), flags=re.M) for name in PAGE_SCRIPTS
        ),
        data=data,
    )


def _static(name: str) -> str:
    return (STATIC_FILES / name).read_text(encoding="utf-8")


# --- the picture ---------------------------------------------------------------------------------------------------


def as_svg(run: Playback, planner: str) -> str:
    """Return a picture with world and tree side by side, and the candidates below the world."""
    decision = Decision(run)
    sentence = decision.sentence()
    world = describe_world(run.env, run.setting.first_discount, run.end)
    frame = Watcher(run, world).frame()
    scene = draw_world(world, _paint(run, frame, world, decision)).figure
    wide, high = scene.size
    scale = min(WORLD_SIDE / wide, WORLD_SIDE / high)
    top = 96.0
    parts = [
        element("rect", class_="back", x=0, y=0, width=PICTURE_WIDTH, height="100%"),
        text_element(28, 38, f"Why {decision.name(decision.plan.action)}?", class_="headline"),
        text_element(28, 62, sentence, class_="said"),
        text_element(28, 82, run_facts(run, planner), class_="facts"),
        scene.placed(28, top, wide * scale, high * scale),
    ]
    under = top + high * scale
    if world["kind"] != "arms":
        parts.append(_legend(frame["scale"]["value"], 28, under + 14))
        under += 28
    table, bottom = _table(decision.candidates(), 28, under + 30)
    parts.append(table)
    if decision.tree is not None:
        tree, shown = decision.draw_tree()
        tree_wide, tree_high = tree.size
        left = 28 + WORLD_SIDE + 36
        tall = tree_high * (PICTURE_WIDTH - left - 20) / tree_wide
        parts.append(tree.placed(left, top - 8, PICTURE_WIDTH - left - 20, tall))
        every = max(len(decision.tree), decision.tree.total)
        if len(shown) < every:
            tall += 14
            words = f"{len(shown):,} of {every:,} nodes are drawn, the weightiest first."
            parts.append(text_element(left, top + tall, words, class_="facts"))
        if (counts := decision.contrast()) is not None:
            panel = draw_contrast(counts, decision.tree)
            parts.append(panel.placed(left, top + tall + 16, *panel.size))
            tall += 16 + panel.size[1]
        bottom = max(bottom, top + tall)
    style = drawing.with_colours(world_css() + _static("scene.css") + _static("file.css"))
    picture = figure(
        (PICTURE_WIDTH, bottom + 24),
        element("style", Markup(style)),
        *parts,
        label=sentence,
        width=PICTURE_WIDTH,
        height=bottom + 24,
        class_="scene",
    )
    return str(picture)


def _paint(run: Playback, frame: dict[str, Any], world: dict[str, Any], decision: Decision) -> WorldPaint:
    """Return the world at this step: believed values and policy, the agent, and the rollouts of what was chosen."""
    centres, place = world_places(world)
    if world["kind"] == "arms":
        arm = 0 if frame["last_action"] is None else frame["last_action"] + 1
        return WorldPaint(agent=centres[arm], arm_heights=[row["reward"] for row in frame["expects"]])
    rollouts = _rollouts(decision, [centres[i] for i in place], world["kind"])
    return replace(paint_states(world, run.state, frame["value"], frame["policy"]), rollouts=rollouts)


def _legend(ends: tuple[float, float], left: float, top: float) -> Element:
    """Draw what the colours of the world mean."""
    first, last = f"believed value {_short(ends[0])}", _short(ends[1])
    start, steps, wide = left + 7.0 * len(first), 24, 5.0
    parts = []
    for i in range(steps):
        box = {"x": start + i * wide, "y": top - 9, "width": wide + 0.5, "height": 10}
        parts.append(element("rect", **box, fill=shade("value", i / (steps - 1))))
    parts.append(text_element(left, top, first, class_="facts"))
    parts.append(text_element(start + steps * wide + 8, top, last, class_="facts"))
    return group(*parts, class_="legend")


def _rollouts(decision: Decision, centre: list[Point], kind: str) -> list[Element]:
    """Draw the rollouts of what was chosen; ``centre`` has the place of each state."""
    node = next((c["node"] for c in decision.candidates() if c["chosen"]), None)
    if node is None or not isinstance(decision.planner, DSS):
        return []
    brief = decision.brief(node)
    colour = action_class(brief["action"])
    parts: list[Element] = []
    for i, way in enumerate(brief["ways"]):
        dx, dy = 6 * math.cos(2.4 * i), 6 * math.sin(2.4 * i)
        points = [(x + dx, y + dy) for x, y in (centre[s] for s in way)]
        steps = list(pairwise(points))
        leaps = [kind == "grid" and math.dist(*step) > LEAP for step in steps]
        far, near = (
            "".join(drawing.path_data(s) for s, leap in zip(steps, leaps) if leap is want)
            for want in (True, False)
        )
        parts += [element("path", class_=f"far {colour}", d=far)] if far else []
        parts += [element("path", class_=name, d=near) for name in ("halo", colour)] if near else []
    return parts


def _table(candidates: list[dict[str, Any]], left: float, top: float) -> tuple[Element, float]:
    """Draw the table of the candidates; return it and the y where it ends."""
    parts: list[Element] = []

    def line(y: float, words: tuple[str, ...], indent: float, classes: str) -> None:
        parts.append(text_element(left + indent, y, words[0], class_=classes, text_anchor="start"))
        for x, cell in zip((190, 280, 360), words[1:]):
            parts.append(text_element(left + x, y, cell, class_=classes, text_anchor="end"))

    line(top, ("choice", "value", "spread", "count"), 0, "head")
    y = top
    for row in candidates[:20]:
        y += 22
        box = {"x": left, "y": y - 11, "width": 12, "height": 12, "rx": 3}
        parts.append(element("rect", class_=f"fill {action_class(row['action'])}", **box))
        spread = "exact" if row["exact"] else _short(row["spread"])
        words = (row["label"], _short(row["value"]), spread, str(row["count"] or "–"))
        line(y, words, 20, "row chosen" if row["chosen"] else "row")
    return group(*parts, class_="table"), y + 10


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
