"""One decision as a file: a page that needs nothing else (``why.html``), or a picture (``why.svg``).

The page has the drawings and the scripts of the studio inside, and all details that a click can ask for. The picture
has its colours written out, so that it can go into a talk or a paper.
"""

from __future__ import annotations

import json
import math
import re
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import bamdp
from bamdp.registry import describe_planner, describe_prior, make_planner
from bamdp.studio import palette, svg
from bamdp.studio.playback import Playback
from bamdp.studio.view import Watcher, world
from bamdp.studio.why import Decision
from bamdp.studio.world_svg import Paint, Scene, scene

STATIC = Path(__file__).with_name("static")
SCRIPTS = ("tip.js", "world.js", "why.js", "file.js")
FORMATS = (".html", ".svg")
WIDTH = 1360.0  # of the picture
SIDE = 400.0  # of the world in it
LEAP = 65.0  # pixels: a longer step leads to no neighbour
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


def write(path: str | Path, run: Playback, planner: str) -> None:
    """Write the decision that is due at the present step of a run; the ending decides the format."""
    target = check_format(path)
    make = as_html if target.suffix == ".html" else as_svg
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(make(run, planner), encoding="utf-8")


def check_format(path: str | Path) -> Path:
    """Refuse endings that we cannot write."""
    target = Path(path)
    if target.suffix not in FORMATS:
        raise ValueError(f"--out must end in {' or '.join(FORMATS)}, got {str(path)!r}")
    return target


def facts(run: Playback, planner: str) -> str:
    """What was run, in a line."""
    name = planner.partition(":")[0]
    given, usual = (describe_planner(p) for p in (run.setting.planner, make_planner(name)))
    changed = ", ".join(f"{key}={value}" for key, value in given.items() if value != usual[key])
    return (
        f"{run.setting.env}, {name}{f' ({changed})' if changed else ''}, prior {describe_prior(run.setting.prior)}, "
        f"discount {run.setting.discount:g}, objective {run.setting.objective}, seed {run.setting.seed}, step {run.t}"
    )


# --- the page ------------------------------------------------------------------------------------------------------


def as_html(run: Playback, planner: str) -> str:
    """A page with everything in it."""
    decision = Decision(run)
    about = world(run.env, run.setting.discount, run.end)
    why = decision.data()
    shown = why["tree"]["nodes"] if why["tree"] else {}
    data = {
        "world": {**about, "scene": scene(about).data()},
        "frame": Watcher(run).frame(),
        "why": why,
        "details": {node: decision.detail(int(node)) for node in shown},
    }
    styles = [
        palette.css(),
        *((STATIC / name).read_text(encoding="utf-8") for name in ("scene.css", "studio.css")),
    ]
    script = "\n".join(_without_exports((STATIC / name).read_text(encoding="utf-8")) for name in SCRIPTS)
    title = f"Why {run.env.action_label(decision.plan.action)}? {run.env.name}, step {run.t}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="generator" content="bamdp {bamdp.__version__}">
<title>{escape(title)}</title>
<style>{"".join(styles)}
body {{ padding-bottom: 0; }}</style>
</head>
<body>
<header class="bar"><h1>{escape(title)}</h1><p class="muted">{escape(facts(run, planner))}</p></header>
<main class="stage"><div id="overlays" class="overlays"></div><div class="lanes n1"><article class="lane">
<section class="card world-card"><div class="world-holder" id="world"></div>
<div class="legend" id="legend"></div></section>
<section class="card why-card"><header><h2>Why this action?</h2></header><div class="why" id="why"></div></section>
</article></div></main>
<div id="tip" class="tip" role="tooltip" hidden></div>
<script type="application/json" id="data">{_embedded(data)}</script>
<script type="module">
{script}
</script>
</body>
</html>
"""


def _embedded(data: Any) -> str:
    """JSON that cannot end the element that it stands in."""
    return json.dumps(data, allow_nan=False, ensure_ascii=False).replace("<", "\\u003c")


def _without_exports(script: str) -> str:
    return re.sub(r"^export ", "", script, flags=re.M)


# --- the picture ---------------------------------------------------------------------------------------------------


def as_svg(run: Playback, planner: str) -> str:
    """World and tree side by side, the candidates below the world."""
    decision = Decision(run)
    why = decision.data()
    about = world(run.env, run.setting.discount, run.end)
    plain = scene(about)
    frame = Watcher(run).frame()
    drawing = scene(about, _paint(run, frame, about, plain, decision)).svg
    wide, high = _size(drawing)
    scale = min(SIDE / wide, SIDE / high)
    top = 96.0
    parts = [
        svg.element("rect", class_="back", x=0, y=0, width=WIDTH, height="100%"),
        svg.text(28, 38, f"Why {run.env.action_label(decision.plan.action)}?", class_="headline"),
        svg.text(28, 62, why["sentence"], class_="said"),
        svg.text(28, 82, facts(run, planner), class_="facts"),
        _placed(drawing, 28, top, wide * scale, high * scale),
    ]
    under = top + high * scale
    if about["kind"] != "arms":
        parts.append(_legend(_values(run, frame, about), 28, under + 14))
        under += 28
    table, bottom = _table(why["candidates"], 28, under + 30)
    parts.append(table)
    if why["tree"]:
        tree = why["tree"]["svg"]
        tree_wide, tree_high = _size(tree)
        left = 28 + SIDE + 36
        tall = tree_high * (WIDTH - left - 20) / tree_wide
        parts.append(_placed(tree, left, top - 8, WIDTH - left - 20, tall))
        shown, every = why["tree"]["shown"], max(why["tree"]["kept"], why["tree"]["total"])
        if shown < every:
            tall += 14
            words = f"{shown:,} of {every:,} nodes are drawn, the weightiest first."
            parts.append(svg.text(left, top + tall, words, class_="facts"))
        if why["contrast"]:
            parts.append(
                _placed(why["contrast"]["svg"], left, top + tall + 16, *_size(why["contrast"]["svg"]))
            )
            tall += 16 + _size(why["contrast"]["svg"])[1]
        bottom = max(bottom, top + tall)
    style = (STATIC / "scene.css").read_text(encoding="utf-8") + (STATIC / "file.css").read_text(
        encoding="utf-8"
    )
    return svg.figure(
        (WIDTH, bottom + 24),
        svg.element("style", palette.written_out(style)),
        *parts,
        label=why["sentence"],
        width=WIDTH,
        height=bottom + 24,
        class_="scene",
    )


def _paint(
    run: Playback, frame: dict[str, Any], about: dict[str, Any], plain: Scene, decision: Decision
) -> Paint:
    """The world at this step: believed values and policy, the agent, and the rollouts of what was chosen."""
    if about["kind"] == "arms":
        last = 0 if frame["last"] is None else frame["last"]["action"] + 1
        return Paint(agent=plain.centres[last], heights=[row["reward"] for row in frame["expects"]])
    layer = about["layers"][run.state]
    shown = {plain.place[s]: s for s, other in enumerate(about["layers"]) if other == layer}
    states = [shown.get(i) for i in range(len(plain.centres))]
    low, high = _values(run, frame, about)
    span = high - low or 1.0
    fills = [palette.shade("value", 0.0 if s is None else (frame["value"][s] - low) / span) for s in states]
    moves = about["moves"]
    angles = [
        None if s is None or not moves else math.degrees(math.atan2(*reversed(moves[frame["policy"][s]])))
        for s in states
    ]
    rims = [0 if s is None else frame["policy"][s] for s in states]
    agent = plain.centres[plain.place[run.state]]
    return Paint(fills, angles, rims, agent, rollouts=_rollouts(decision, plain, about["kind"]))


def _values(run: Playback, frame: dict[str, Any], about: dict[str, Any]) -> tuple[float, float]:
    """The lowest and the highest believed value among the states that are drawn."""
    layer = about["layers"][run.state]
    drawn = [v for v, other in zip(frame["value"], about["layers"]) if other == layer and v is not None]
    return min(drawn), max(drawn)


def _legend(ends: tuple[float, float], left: float, top: float) -> str:
    """What the colours of the world mean."""
    first, last = f"believed value {_short(ends[0])}", _short(ends[1])
    start, steps, wide = left + 7.0 * len(first), 24, 5.0
    parts = [
        svg.element("rect", x=start + i * wide, y=top - 9, width=wide + 0.5, height=10,
                    fill=palette.shade("value", i / (steps - 1)))
        for i in range(steps)
    ]  # fmt: skip
    parts.append(svg.text(left, top, first, class_="facts"))
    parts.append(svg.text(start + steps * wide + 8, top, last, class_="facts"))
    return svg.group(*parts, class_="legend")


def _rollouts(decision: Decision, plain: Scene, kind: str) -> list[str]:
    node = next((c["node"] for c in decision.candidates() if c["chosen"]), None)
    if node is None or not decision.data()["policies"]:
        return []
    brief = decision.brief(node)
    colour = f"a{brief['action'] % palette.N_ACTIONS}"
    parts = []
    for i, way in enumerate(brief["ways"]):
        dx, dy = 6 * math.cos(2.4 * i), 6 * math.sin(2.4 * i)
        points = [(x + dx, y + dy) for x, y in (plain.centres[plain.place[s]] for s in way)]
        steps = list(pairwise(points))
        leaps = [kind == "grid" and math.dist(*step) > LEAP for step in steps]
        far, near = (
            "".join(svg.lines(s) for s, leap in zip(steps, leaps) if leap is want) for want in (True, False)
        )
        parts += [svg.element("path", class_=f"far {colour}", d=far)] if far else []
        parts += [svg.element("path", class_=name, d=near) for name in ("halo", colour)] if near else []
    return parts


def _table(candidates: list[dict[str, Any]], left: float, top: float) -> tuple[str, float]:
    """The candidates as text; returns it and where it ends."""
    heads = (("choice", 0, "start"), ("value", 190, "end"), ("spread", 280, "end"), ("count", 360, "end"))
    parts = [svg.text(left + x, top, name, class_="head", text_anchor=anchor) for name, x, anchor in heads]
    y = top
    for row in candidates[:20]:
        y += 22
        strong = "row chosen" if row["chosen"] else "row"
        box = {"x": left, "y": y - 11, "width": 12, "height": 12, "rx": 3}
        parts.append(svg.element("rect", class_=f"fill a{row['action'] % palette.N_ACTIONS}", **box))
        parts.append(svg.text(left + 20, y, row["label"], class_=strong, text_anchor="start"))
        cells = (_short(row["value"]), _short(row["spread"]), str(row["count"] or "–"))
        parts += [
            svg.text(left + x, y, text, class_=strong, text_anchor="end")
            for text, (_, x, _) in zip(cells, heads[1:])
        ]
    return svg.group(*parts, class_="table"), y + 10


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _size(drawing: str) -> tuple[float, float]:
    box = re.search(r'viewBox="([^"]+)"', drawing)
    assert box is not None
    _, _, wide, high = map(float, box[1].split())
    return wide, high


def _placed(drawing: str, x: float, y: float, width: float, height: float) -> str:
    """One drawing inside another."""
    at = f'<svg x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
    return drawing.replace("<svg ", at, 1)
