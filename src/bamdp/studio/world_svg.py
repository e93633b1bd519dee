"""The world as SVG: drawn once, with a place for everything that changes.

States that share a place on paper (the flags of a maze) share a shape: ``place`` says which. What changes from step to
step is written into the shapes by class and ``data-place``: by the page's script, or for a file at once, from a
:class:`Paint`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bamdp.studio import palette, svg
from bamdp.studio.svg import Point

UNIT = 64.0  # pixels a cell
RIM = 0.3 * UNIT  # a graph's node
LONGEST_NAME = 4  # characters that fit into a node
MOST_EDGE_NODES = 24  # graphs with more nodes are drawn without edges: nobody could follow them
TALL = 2.6 * UNIT  # a bandit's arm
ARROW = "M-9 -4.2H1V-9.5L12 0L1 9.5V4.2H-9Z"


@dataclass(frozen=True)
class Scene:
    """A drawing, where its places are, and which place every state has."""

    svg: str
    centres: list[Point]
    place: list[int]

    def data(self) -> dict[str, Any]:
        """For JSON."""
        return {"svg": self.svg, "centres": [list(c) for c in self.centres], "place": self.place}


@dataclass(frozen=True)
class Paint:
    """What is seen at one step, by place."""

    fills: Sequence[str] = ()  # colours
    angles: Sequence[float | None] = ()  # where the policy's arrow points, in degrees
    rims: Sequence[int] = ()  # the policy's action, on a graph
    agent: Point | None = None
    heights: Sequence[float] = ()  # what is believed of a bandit's arms, 0..1
    rollouts: Sequence[str] = ()  # markup


def scene(world: Mapping[str, Any], paint: Paint | None = None) -> Scene:
    """The drawing of a world as :func:`bamdp.studio.view.world` describes it."""
    paint = paint or Paint()
    if world["kind"] == "arms":
        return _arms(world, paint)
    positions = [tuple(p) for p in world["positions"]]
    places = list(dict.fromkeys(positions))
    number = {p: i for i, p in enumerate(places)}
    place = [number[p] for p in positions]
    centres = [((x + 0.5) * UNIT, (y + 0.5) * UNIT) for x, y in places]
    draw = _grid if world["kind"] == "grid" else _graph
    if paint.agent is None:
        paint = replace(paint, agent=centres[place[world["start"]]])
    return Scene(draw(world, centres, place, paint), centres, place)


def _grid(world: Mapping[str, Any], centres: Sequence[Point], place: Sequence[int], paint: Paint) -> str:
    width, height = world["width"] * UNIT, world["height"] * UNIT
    edge = 6.0
    back = svg.element(
        "rect", class_="frame", x=-edge, y=-edge, width=width + 2 * edge, height=height + 2 * edge, rx=10.0
    )
    cells = [_tile(x, y, "cell", i, _at(paint.fills, i)) for i, (x, y) in enumerate(centres)]
    walls = [_tile((x + 0.5) * UNIT, (y + 0.5) * UNIT, "wall") for x, y in world["walls"]]
    marks = [_mark(mark) for mark in world["marks"]]
    arrows = [_arrow(x, y, i, paint) for i, (x, y) in enumerate(centres)] if world["moves"] else []
    return svg.figure(
        (width + 2 * edge, height + 2 * edge),
        back,
        svg.group(*cells, class_="cells"),
        *walls,
        svg.group(*marks, class_="marks"),
        svg.group(*arrows, class_="arrows"),
        *_moving(paint, 0.27 * UNIT),
        corner=(-edge, -edge),
        label=f"The world {world['name']}",
        class_="scene world",
    )


def _at(values: Sequence[Any], i: int) -> Any:
    """The i-th of what is painted, or None where nothing is."""
    return values[i] if i < len(values) else None


def _tile(x: float, y: float, class_: str, place: int | None = None, fill: str | None = None) -> str:
    side = UNIT - 3
    corner = {"x": x - side / 2, "y": y - side / 2, "width": side, "height": side, "rx": 6.0}
    return svg.element("rect", class_=class_, data_place=place, style=fill and f"fill:{fill}", **corner)


def _arrow(x: float, y: float, place: int, paint: Paint) -> str:
    angle, fill = _at(paint.angles, place), _at(paint.fills, place)
    dark = " light" if fill and palette.is_dark(fill) else ""
    return svg.element(
        "path",
        class_=f"arrow{dark}",
        data_place=place,
        d=ARROW,
        transform=f"translate({x:g} {y:g}) rotate({angle or 0:g})",
        visibility="hidden" if angle is None else None,
    )


def _moving(paint: Paint, radius: float) -> list[str]:
    """What is laid over the world: what is expected next, rollouts, and the agent."""
    at = paint.agent or (0.0, 0.0)
    agent = svg.group(
        svg.element("circle", class_="shadow", cy=0.14 * radius, r=1.18 * radius),
        svg.element("circle", class_="rim", r=1.14 * radius),
        svg.element("circle", class_="body", r=0.95 * radius),
        svg.element("path", class_="heading", d=ARROW, visibility="hidden"),
        class_="agent",
        transform=f"translate({at[0]:g} {at[1]:g})",
    )
    return [svg.group(class_="expected"), svg.group(*paint.rollouts, class_="rollouts"), agent]


def _mark(mark: Mapping[str, Any]) -> str:
    x, y = (mark["x"] + 0.5) * UNIT, (mark["y"] + 0.5) * UNIT
    at = f"translate({x:g} {y:g}) scale({UNIT / 64:g})"
    kind = mark["kind"]
    if kind == "start":
        inside = [svg.element("circle", class_="start", r=19.0)]
    elif kind == "goal":
        star = [
            (r * math.sin(math.pi * i / 5), -r * math.cos(math.pi * i / 5))
            for i, r in enumerate([19.0, 8.5] * 5)
        ]
        inside = [
            svg.element("rect", class_="goal", x=-30.5, y=-30.5, width=61.0, height=61.0, rx=6.0),
            svg.polygon(star, class_="star"),
        ]
    elif kind == "flag":
        inside = [
            svg.element("path", class_="pole", d="M-9 -20V20"),
            svg.element("path", class_="cloth", d="M-8 -19L14 -10L-8 -1Z"),
        ]
    elif kind == "door_closed":
        inside = [
            svg.element("rect", class_="door", x=-30.5, y=-30.5, width=61.0, height=61.0, rx=6.0),
            svg.element("path", class_="panels", d="M-21 -22H-3V22H-21ZM3 -22H21V22H3Z"),
            svg.element("circle", class_="knob", r=3.2),
        ]
    elif kind == "door_open":
        inside = [svg.element("path", class_="door", d="M-29 -27L-14 -20V24L-29 28ZM25 -27H29V28H25Z")]
    else:  # a kind that a later world may bring: something is there
        inside = [svg.element("circle", class_="start", r=10.0)]
    return svg.group(*inside, class_=f"mark {kind}", data_bit=mark.get("bit") or None, transform=at)


# --- graphs ---------------------------------------------------------------------------------------------------


def _graph(world: Mapping[str, Any], centres: Sequence[Point], place: Sequence[int], paint: Paint) -> str:
    at = np.array(centres)
    middle = (at.min(axis=0) + at.max(axis=0)) / 2
    edges = world["edges"] if len(centres) <= MOST_EDGE_NODES else []
    curves = [(edge, _curve(at, place, edge, middle)) for edge in edges]
    drawn = [_edge(edge, points) for edge, points in sorted(curves, key=lambda c: max(c[0]["probabilities"]))]
    everything = np.vstack([at, *(points for _, points in curves)])
    low, high = everything.min(axis=0) - 0.55 * UNIT, everything.max(axis=0) + 0.55 * UNIT
    labels = world["state_labels"]
    nodes = []
    for i, (x, y) in enumerate(centres):
        ends = place.index(i) in world["terminal"]
        nodes += [
            _node(x, y, i, paint),
            svg.element("circle", class_="ends", cx=x, cy=y, r=0.72 * RIM) if ends else "",
            svg.text(
                x, y, _name(labels[place.index(i)], place.index(i)), class_="name", data_place=i, dy="0.35em"
            ),
        ]
    moving = _moving(paint, 0.2 * UNIT)
    return svg.figure(
        (float(high[0] - low[0]), float(high[1] - low[1])),
        svg.group(*drawn, class_="edges"),
        *moving[:2],
        svg.group(*nodes, class_="cells"),
        *moving[2:],
        corner=(float(low[0]), float(low[1])),
        label=f"The world {world['name']}",
        class_="scene world graph",
    )


def _node(x: float, y: float, place: int, paint: Paint) -> str:
    fill, action = _at(paint.fills, place), _at(paint.rims, place)
    rim = "" if action is None else f" rim{action % palette.N_ACTIONS}"
    style = fill and f"fill:{fill}"
    return svg.element("circle", class_=f"cell node{rim}", data_place=place, cx=x, cy=y, r=RIM, style=style)


def _curve(at: Any, place: Sequence[int], edge: Mapping[str, Any], middle: Any) -> Any:
    """Points of an edge from rim to rim: a parabola, or a loop at one node."""
    p, q = at[place[edge["source"]]], at[place[edge["target"]]]
    t = np.linspace(0.0, 1.0, 61)[:, None]
    if edge["source"] != edge["target"]:
        chord = q - p
        control = (p + q) / 2 + edge["bend"] * np.array([-chord[1], chord[0]])
        points = (1 - t) ** 2 * p + 2 * t * (1 - t) * control + t**2 * q
    else:
        away = p - middle
        away = np.array([0.0, -1.0]) if abs(away[1]) < 1e-9 else away / np.linalg.norm(away)
        side = np.array([-away[1], away[0]])
        one, two = p + UNIT * (0.95 * away + 0.62 * side), p + UNIT * (0.95 * away - 0.62 * side)
        points = (1 - t) ** 3 * p + 3 * t * (1 - t) ** 2 * one + 3 * t**2 * (1 - t) * two + t**3 * p
    first = np.hypot(*(points - p).T) > 1.08 * RIM
    last = np.hypot(*(points - q).T) > 1.34 * RIM
    half = np.arange(len(points)) < len(points) // 2
    return points[np.where(half, first, last)]


def _edge(edge: Mapping[str, Any], points: Any) -> str:
    if len(points) < 2:
        return ""
    chances = edge["probabilities"]
    alike = max(chances) - min(chances) < 1e-9
    colour = "" if alike else f" a{chances.index(max(chances)) % palette.N_ACTIONS}"
    (x0, y0), (x1, y1) = points[-2], points[-1]
    length = max(math.hypot(x1 - x0, y1 - y0), 1e-9)
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    tip = [(x1 + 7 * ux, y1 + 7 * uy), (x1 - 4.5 * uy, y1 + 4.5 * ux), (x1 + 4.5 * uy, y1 - 4.5 * ux)]
    few = points[np.linspace(0, len(points) - 1, 24).round().astype(int)]
    return svg.group(
        svg.element("path", class_="line", d=svg.lines([(float(x), float(y)) for x, y in few])),
        svg.polygon([(float(x), float(y)) for x, y in tip], class_="tip"),
        class_=f"edge{colour}",
        opacity=round(0.25 + 0.75 * max(chances), 2),
    )


# --- bandits --------------------------------------------------------------------------------------------------


def _arms(world: Mapping[str, Any], paint: Paint) -> Scene:
    """A column an arm; the page fills it to what is believed, and the tick is the truth."""
    n = world["n_actions"]
    parts = []
    for a in range(n):
        x = (a + 0.5) * 1.25 * UNIT
        tick = 1.0 * UNIT + TALL * (1 - world["arms"][a])
        believed = _at(paint.heights, a)
        tall = TALL * min(max(believed or 0.0, 0.0), 1.0)
        box = {"x": x - 22, "y": UNIT + TALL - tall, "width": 44.0, "height": tall, "rx": 8.0}
        parts += [
            svg.element("rect", class_="slot", x=x - 22, y=UNIT, width=44.0, height=TALL, rx=8.0),
            svg.element("rect", class_=f"fill a{a % palette.N_ACTIONS}", data_arm=a, **box),
            svg.element("path", class_="truth", d=f"M{x - 30:g} {tick:g}H{x + 30:g}"),
            svg.text(x, UNIT + TALL + 26, world["action_labels"][a], class_="name"),
            svg.text(
                x,
                UNIT - 10,
                "" if believed is None else f"{believed:.2f}",
                class_="name believed",
                data_arm=a,
            ),
        ]
    centres = [((a + 0.5) * 1.25 * UNIT, 0.32 * UNIT) for a in range(n)]
    middle = (n * 1.25 * UNIT / 2, 0.32 * UNIT)
    drawing = svg.figure(
        (n * 1.25 * UNIT, TALL + 1.75 * UNIT),
        *parts,
        *_moving(paint if paint.agent else replace(paint, agent=middle), 0.2 * UNIT),
        label=f"The world {world['name']}",
        class_="scene world arms",
    )
    return Scene(drawing, [middle, *centres], [0])


def _name(label: str, state: int) -> str:
    """What fits into a circle: the label if it is short, else the state's number."""
    return label if len(label) <= LONGEST_NAME else str(state)
