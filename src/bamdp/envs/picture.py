"""The picture of an environment: one drawing for web pages and files (SVG) and for Matplotlib.

A picture consists of places: cells of a grid or a strip, nodes of a graph, or the arms of a bandit. Each place shows a
name, a value as its colour, and the policy: as an arrow if actions have a direction, otherwise as text or as the colour
of the rim. States that share a place (such as a maze cell with different flags) share a shape;
:attr:`WorldDrawing.place` maps states to places. The web page's script finds the shapes by class and ``data-place`` and
updates them at every step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from bamdp.envs.drawing import (
    Point,
    action_css,
    colour_of,
    element,
    figure,
    group,
    is_dark,
    markup,
    placement,
    shade,
    shape,
    text_element,
)
from bamdp.envs.layout import shown_states, world_move

if TYPE_CHECKING:
    from bamdp.envs.environment import Environment

CELL_SIZE = 64.0  # pixels
NODE_RADIUS = 0.3 * CELL_SIZE  # of a graph
MAX_LABEL_LENGTH = 4  # characters that fit in a node; twice as many fit in a cell
SIDE = CELL_SIZE - 3  # of a cell
ARROW = [(-9.0, -4.2), (1.0, -4.2), (1.0, -9.5), (12.0, 0.0), (1.0, 9.5), (1.0, 4.2), (-9.0, 4.2)]
STAR = [
    (r * math.sin(math.pi * i / 5), -r * math.cos(math.pi * i / 5)) for i, r in enumerate([19.0, 8.5] * 5)
]
POLE, CLOTH = [(-9.0, -20.0), (-9.0, 20.0)], [(-8.0, -19.0), (14.0, -10.0), (-8.0, -1.0)]

PerState = Sequence[float | None] | NDArray[Any] | None


def world_css() -> str:
    """Return the style sheet of the picture, with the palette's colours as variables."""
    return resources.files("bamdp.envs").joinpath("world.css").read_text("utf-8") + action_css()


@dataclass(frozen=True)
class WorldDrawing:
    """A drawing with the centres of its places and the place of each state."""

    figure: Element
    centres: list[Point]
    place: list[int]

    def data(self) -> dict[str, Any]:
        """Return the drawing as plain data for JSON."""
        return {"svg": markup(self.figure), "centres": [list(c) for c in self.centres], "place": self.place}


def draw_world(
    world: Mapping[str, Any],
    state: int | None = None,
    values: PerState = None,
    policy: PerState = None,
    *,
    last_action: int | None = None,
    visited: NDArray[np.bool_] | None = None,
    agent: bool = True,
    rollouts: Sequence[Element] = (),
) -> WorldDrawing:
    """Draw an environment.

    Parameters
    ----------
    world
        The result of `Environment.layout`.
    state
        The agent's state, by default the start state; of states that share a place, the one with the same flags is
        shown.
    values, policy
        A number for each state (for a bandit, for each arm), shown as colours, and an action for each state.
    last_action
        For a bandit, the last arm pulled.
    visited
        Whether the agent has visited each state; the policy is faint in unvisited states.
    agent
        Whether to draw the agent.
    rollouts
        Elements drawn on top of the picture.
    """
    painter = _Painter(
        world, world["start"] if state is None else state, values, policy, last_action, visited
    )
    over = [
        group(class_="expected"),
        group(*rollouts, class_="rollouts"),
        *([painter.agent()] if agent else []),
    ]
    label, classes = f"The environment {world['name']}", f"scene world {world['kind']}"
    parts = painter.graph() if world["kind"] == "graph" else painter.grid()
    drawing = figure(painter.size, *parts, *over, corner=painter.corner, label=label, class_=classes)
    return WorldDrawing(drawing, painter.centres, painter.place)


def world_places(world: Mapping[str, Any]) -> tuple[list[Point], list[int]]:
    """Return the centres of a drawing's places and the place of each state; a bandit's places are its arms."""
    if world["kind"] == "arms":
        return [_centre(a, 0) for a in range(world["n_actions"])], [0]
    positions = [tuple(p) for p in world["positions"]]
    number = {p: i for i, p in enumerate(dict.fromkeys(positions))}
    return [_centre(x, y) for x, y in number], [number[p] for p in positions]


def value_range(world: Mapping[str, Any], state: int, values: PerState) -> tuple[float, float]:
    """Return the lowest and the highest value shown: over non-terminal states, or over a bandit's arms."""
    numbers = np.asarray(values, float)
    if world["kind"] != "arms":
        shown = shown_states(world, state)
        numbers = numbers[[s for s in shown if s not in set(world["terminal"])] or shown]
    return float(np.nanmin(numbers)), float(np.nanmax(numbers))


def _centre(x: float, y: float) -> Point:
    return (x + 0.5) * CELL_SIZE, (y + 0.5) * CELL_SIZE


class _Painter:
    """Painter of the parts of a picture."""

    def __init__(
        self,
        world: Mapping[str, Any],
        state: int,
        values: PerState,
        policy: PerState,
        last_action: int | None,
        visited: NDArray[np.bool_] | None,
    ) -> None:
        self.world, self.state = world, state
        self.arms = world["kind"] == "arms"
        self.visited = None if self.arms else visited
        self.labels = world["action_labels" if self.arms else "state_labels"]
        self.policy = None if policy is None else np.asarray(policy)
        self.centres, self.place = world_places(world)
        shown = range(len(self.centres)) if self.arms else shown_states(world, state)
        self.shown = {s if self.arms else self.place[s]: s for s in shown}  # the state (or arm) at each place
        self.here = last_action if self.arms else self.place[state]  # the place of the agent
        self.fills: dict[int, str] = {}  # of places
        if values is not None:
            low, high = value_range(world, state, values)
            level = np.nan_to_num((np.asarray(values, float) - low) / (high - low or 1.0))
            ends = set() if self.arms else set(world["terminal"])
            self.fills = {i: shade("value", level[s]) for i, s in self.shown.items() if s not in ends}
        width, height = world["width"] * CELL_SIZE, world["height"] * CELL_SIZE
        self.corner, self.size = (-6.0, -6.0), (width + 12.0, height + 12.0)

    def style(self, i: int) -> str | None:
        """Return the fill style of a place, or None if it has no value."""
        return f"fill:{self.fills[i]}" if i in self.fills else None

    def on_fill(self, class_: str, i: int) -> str:
        """Return the class of an element on a place: light on a dark fill, faint for unvisited states."""
        light = " light" if i in self.fills and is_dark(self.fills[i]) else ""
        guess = self.visited is not None and i in self.shown and not self.visited[self.shown[i]]
        return f"{class_}{light}{' guess' if guess and class_ != 'name' else ''}"

    def choice(self, i: int) -> int | None:
        """Return the policy's action at a place, or None if there is none, as in terminal states."""
        s = self.shown.get(i)
        if self.policy is None or s is None or self.arms or s in self.world["terminal"]:
            return None
        return int(self.policy[s]) if self.policy[s] >= 0 else None

    def angle(self, i: int) -> float | None:
        """Return the direction of the policy's action at a place, in degrees, or None if it is unknown."""
        action = self.choice(i)
        move = None if action is None else world_move(self.world, self.shown[i], action)
        return None if move is None else math.degrees(math.atan2(move[1], move[0]))

    def agent(self) -> Element:
        """Draw the agent with the flags it carries; it is hidden before a bandit's first action."""
        graph, held = self.world["kind"] == "graph", int(self.world["layers"][self.state])
        named = self.world["named"] or self.arms
        radius = (0.2 if graph else 0.16 if named else 0.27) * CELL_SIZE
        n, here = held.bit_count(), self.here
        heading = self.angle(here) if here is not None and not graph else None
        flags = [
            group(*_flag(0.5), transform=placement(radius * (i - (n - 1) / 2), -radius)) for i in range(n)
        ]
        return group(
            element("circle", class_="shadow", cy=0.14 * radius, r=1.18 * radius),
            element("circle", class_="rim", r=1.14 * radius),
            element("circle", class_="body", r=0.95 * radius),
            _arrow((0.0, 0.0), heading, class_="heading"),
            text_element(0.0, 0.0, self.label(self.state) if graph else "", class_="name light", dy="0.35em"),
            *flags,
            class_="agent",
            transform=placement(*self.centres[here or 0]),
            visibility="hidden" if here is None else None,
        )

    def label(self, state: int) -> str:
        """Return the label of a state if it fits in a place, otherwise its number."""
        most = MAX_LABEL_LENGTH * (1 if self.world["kind"] == "graph" else 2)
        return self.labels[state] if len(self.labels[state]) <= most else str(state)

    def name(self, i: int, dy: float) -> Element:
        """Draw the name of a place."""
        x, y = self.centres[i]
        words = self.label(i if self.arms else self.place.index(i))
        return text_element(x, y + dy, words, class_=self.on_fill("name", i), data_place=i, dy="0.35em")

    def grid(self) -> list[Element]:
        """Draw the cells, walls, marks, and the policy in every cell."""
        world, at = self.world, self.centres
        frame = element(
            "rect", class_="frame", x=-6.0, y=-6.0, width=self.size[0], height=self.size[1], rx=10.0
        )
        look = "cell" if self.policy is not None else None  # with a policy, only the arrows are faint
        cells = [
            _tile(*c, class_=look or self.on_fill("cell", i), data_place=i, style=self.style(i))
            for i, c in enumerate(at)
        ]
        walls = [_tile(*_centre(x, y), class_="wall") for x, y in world["walls"]]
        names = [self.name(i, -21.0) for i in range(len(at)) if world["named"] or self.arms]
        marks = [self.mark(mark) for mark in world["marks"]]
        solid = {_centre(m["x"], m["y"]) for m in world["marks"] if m["kind"] in ("goal", "door_closed")}
        arrows = [
            _arrow(c, None if c in solid else self.angle(i), self.on_fill("arrow", i), i)
            for i, c in enumerate(at)
        ]
        words = [] if world["moves"] or world["state_moves"] else self.words()
        return [frame, *cells, *walls, *names, *words, group(*marks, class_="marks"), *arrows]

    def words(self) -> list[Element]:
        """Write the policy below the names if actions have no direction; tick the best arm of a bandit."""
        if self.arms and self.policy is not None:
            words = {int(self.policy[0]): "✓"}
        else:
            chosen = {i: self.choice(i) for i in self.shown}
            words = {i: self.world["action_labels"][a] for i, a in chosen.items() if a is not None}
        return [
            text_element(
                self.centres[i][0], self.centres[i][1] + 26, word, class_=self.on_fill("name small", i)
            )
            for i, word in words.items()
        ]

    def mark(self, mark: Mapping[str, Any]) -> Element:
        """Draw the mark of a cell; a flag leaves space for the policy's arrow and is faint while carried."""
        kind, bit = mark["kind"], mark.get("bit") or None
        inside = _flag(0.6, -15.0, -17.0) if kind == "flag" else MARKS[kind]
        faint = 0.2 if bit and self.world["layers"][self.state] & bit else None
        at = placement(*_centre(mark["x"], mark["y"]))
        return group(*inside, class_=f"mark {kind}", data_bit=bit, transform=at, opacity=faint)

    def graph(self) -> list[Element]:
        """Draw nodes, with the policy as the colour of their rims, and edges in the colours of their actions."""
        at = np.array(self.centres)
        curves = [(edge, self.curve(at, edge)) for edge in self.world["edges"]]
        curves.sort(key=lambda curve: max(curve[0]["probabilities"]))
        everything = np.vstack([at, *(points for _, points in curves)])
        low, high = everything.min(axis=0) - 0.55 * CELL_SIZE, everything.max(axis=0) + 0.55 * CELL_SIZE
        self.corner, self.size = tuple(low.tolist()), tuple((high - low).tolist())
        parts = [_edge(edge, points) for edge, points in curves if len(points) > 1]
        for i, (x, y) in enumerate(self.centres):
            action = self.choice(i)
            rim = self.on_fill("" if action is None else f" stroke{colour_of(action)}", i)
            circle = {"cx": x, "cy": y, "r": NODE_RADIUS, "style": self.style(i)}
            parts.append(element("circle", class_=f"cell node{rim}", data_place=i, **circle))
            if self.place.index(i) in self.world["terminal"]:
                parts.append(element("circle", class_="ends", cx=x, cy=y, r=0.72 * NODE_RADIUS))
            parts.append(self.name(i, 0.0))
        return parts

    def curve(self, at: NDArray[np.float64], edge: Mapping[str, Any]) -> NDArray[np.float64]:
        """Return the points of an edge from rim to rim: a parabola, or a loop for a self-transition."""
        p, q = at[self.place[edge["source"]]], at[self.place[edge["target"]]]
        t = np.linspace(0.0, 1.0, 41)[:, None]
        if edge["source"] != edge["target"]:
            chord = q - p
            control = (p + q) / 2 + edge["bend"] * np.array([-chord[1], chord[0]])
            points = (1 - t) ** 2 * p + 2 * t * (1 - t) * control + t**2 * q
        else:
            away = p - (at.min(axis=0) + at.max(axis=0)) / 2
            away = np.array([0.0, -1.0]) if abs(away[1]) < 1e-9 else away / np.linalg.norm(away)
            side = np.array([-away[1], away[0]])
            one, two = (p + CELL_SIZE * (0.95 * away + sign * 0.62 * side) for sign in (1, -1))
            points = (1 - t) ** 3 * p + 3 * t * (1 - t) ** 2 * one + 3 * t**2 * (1 - t) * two + t**3 * p
        half = np.arange(len(points)) < len(points) // 2
        outside = np.where(half, 1.08, 1.34) * NODE_RADIUS
        return points[np.hypot(*np.where(half[:, None], points - p, points - q).T) > outside]


def _tile(x: float, y: float, **attributes: Any) -> Element:
    return element("rect", **attributes, x=x - SIDE / 2, y=y - SIDE / 2, width=SIDE, height=SIDE, rx=6.0)


def _arrow(at: Point, angle: float | None, class_: str, data_place: int | None = None) -> Element:
    hidden = "hidden" if angle is None else None
    where = {"transform": placement(*at, angle or 0.0), "visibility": hidden, "data_place": data_place}
    return shape(ARROW, class_=class_, closed=True, **where)


def _flag(scale: float, x: float = 0.0, y: float = 0.0) -> list[Element]:
    pole, cloth = ([(x + scale * dx, y + scale * dy) for dx, dy in points] for points in (POLE, CLOTH))
    return [shape(pole, closed=False, class_="pole"), shape(cloth, class_="cloth")]


def _edge(edge: Mapping[str, Any], points: NDArray[np.float64]) -> Element:
    """Draw an edge in the colour of the action most likely to take it, fainter for less likely edges."""
    chances = edge["probabilities"]
    action = None if max(chances) - min(chances) < 1e-9 else colour_of(chances.index(max(chances)))
    line, tip = ("line", "tip") if action is None else (f"line stroke{action}", f"tip fill{action}")
    (x0, y0), (x1, y1) = points[-2], points[-1]
    length = max(math.hypot(x1 - x0, y1 - y0), 1e-9)
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    head = [(x1 + 7 * ux, y1 + 7 * uy), (x1 - 4.5 * uy, y1 + 4.5 * ux), (x1 + 4.5 * uy, y1 - 4.5 * ux)]
    parts = shape(points[::2], closed=False, class_=line), shape(head, class_=tip)
    return group(*parts, class_="edge", opacity=0.25 + 0.75 * max(chances))


MARKS = {
    "start": [element("circle", class_="start", r=19.0)],
    "goal": [_tile(0.0, 0.0, class_="goal"), shape(STAR, class_="star")],
    "door_closed": [_tile(0.0, 0.0, class_="door"), element("circle", class_="knob", r=3.2)],
    "door_open": [shape([(-29.0, -27.0), (-14.0, -20.0), (-14.0, 24.0), (-29.0, 28.0)], class_="door")],
}


def world_image(env: Environment) -> NDArray[np.uint8]:
    """Return the current picture of an environment as an image; see `Environment.render`."""
    from bamdp.envs.image import as_image  # imported late: only images need Matplotlib

    world = env.layout()
    return as_image(draw_world(world, env.state, world["arms"], last_action=env.last_action).figure)
