"""The picture of an environment: one drawing, for pages and files (SVG) and for images.

States that share a place on paper (the flags of a maze) share a shape: :attr:`WorldDrawing.place` says which. A page's
script finds the shapes by class and ``data-place`` and writes into them what changes from step to step.
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
    LIGHT_COLOURS,
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
    with_colours,
)
from bamdp.envs.layout import shown_states, world_move

if TYPE_CHECKING:
    from bamdp.envs.environment import Environment
    from bamdp.envs.layout import Layout

CELL_SIZE = 64.0  # pixels
NODE_RADIUS = 0.3 * CELL_SIZE  # of a graph
ARM_HEIGHT, ARM_PITCH = 2.6 * CELL_SIZE, 1.25 * CELL_SIZE  # of a bandit
MAX_LABEL_LENGTH = 4  # characters that fit into a node
TILE = {"width": CELL_SIZE - 3, "height": CELL_SIZE - 3, "rx": 6.0}  # of a cell
ARROW = [(-9.0, -4.2), (1.0, -4.2), (1.0, -9.5), (12.0, 0.0), (1.0, 9.5), (1.0, 4.2), (-9.0, 4.2)]
STAR = [
    (r * math.sin(math.pi * i / 5), -r * math.cos(math.pi * i / 5)) for i, r in enumerate([19.0, 8.5] * 5)
]
FLAG = {"pole": [(-9, -20), (-9, 20)], "cloth": [(-8, -19), (14, -10), (-8, -1)]}

PerState = Sequence[float | None] | NDArray[Any] | None


def world_css() -> str:
    """Return the style sheet of the picture, with the colours of the palette as variables."""
    return resources.files("bamdp.envs").joinpath("world.css").read_text("utf-8") + action_css()


@dataclass(frozen=True)
class WorldDrawing:
    """A drawing, where the places in it are, and which place each state has."""

    figure: Element
    centres: list[Point]
    place: list[int]

    def data(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""
        return {"svg": markup(self.figure), "centres": [list(c) for c in self.centres], "place": self.place}


def draw_world(
    world: Mapping[str, Any],
    state: int | None = None,
    values: PerState = None,
    policy: PerState = None,
    *,
    last_action: int | None = None,
    rollouts: Sequence[Element] = (),
) -> WorldDrawing:
    """Draw an environment.

    Parameters
    ----------
    world
        What `Environment.layout` returns, with ``name``, ``n_actions``, ``terminal`` (a list of states) and ``arms``
        (the mean rewards of a bandit).
    state
        Where the agent is, by default at the start; of states that share a place, those with its flags are shown.
    values, policy
        A number for each state (of a bandit: for each arm), as colours, and an action for each, as arrows or rims.
    last_action
        The arm of a bandit that was pulled.
    rollouts
        What lies over the picture.
    """
    painter = _Painter(world, world["start"] if state is None else state, values, policy, last_action)
    corner, size, parts = {"grid": painter.grid, "graph": painter.graph, "arms": painter.arms}[
        world["kind"]
    ]()
    over = [group(class_="expected"), group(*rollouts, class_="rollouts"), painter.agent()]
    label, classes = f"The environment {world['name']}", f"scene world {world['kind']}"
    drawing = figure(size, *parts, *over, corner=corner, label=label, class_=classes)
    return WorldDrawing(drawing, painter.centres, painter.place)


def world_places(world: Mapping[str, Any]) -> tuple[list[Point], list[int]]:
    """Return the centres of the places of a drawing, and the place of each state.

    A bandit's first place is the middle, the others are those over its arms.
    """
    if world["kind"] == "arms":
        n = world["n_actions"]
        return [(x * ARM_PITCH, 0.32 * CELL_SIZE) for x in (n / 2, *(a + 0.5 for a in range(n)))], [0]
    positions = [tuple(p) for p in world["positions"]]
    number = {p: i for i, p in enumerate(dict.fromkeys(positions))}
    return [_centre(x, y) for x, y in number], [number[p] for p in positions]


def value_range(world: Mapping[str, Any], state: int, values: PerState) -> tuple[float, float]:
    """Return the lowest and the highest value of the states that are shown."""
    shown = np.asarray(values, float)[shown_states(world, state)]
    return float(np.nanmin(shown)), float(np.nanmax(shown))


def _centre(x: float, y: float) -> Point:
    return (x + 0.5) * CELL_SIZE, (y + 0.5) * CELL_SIZE


class _Painter:
    """Draws the parts of a picture."""

    def __init__(
        self,
        world: Mapping[str, Any],
        state: int,
        values: PerState,
        policy: PerState,
        last_action: int | None,
    ) -> None:
        self.world, self.state, self.last_action = world, state, last_action
        self.policy = None if policy is None else np.asarray(policy)
        self.values = None if values is None else np.asarray(values, float)
        self.centres, self.place = world_places(world)
        self.shown = {self.place[s]: s for s in shown_states(world, state)}
        self.fills: dict[int, str] = {}  # of places
        if self.values is not None and world["kind"] != "arms":
            low, high = value_range(world, state, values)
            level = np.nan_to_num((self.values - low) / (high - low or 1.0))
            self.fills = {i: shade("value", level[s]) for i, s in self.shown.items()}

    def style(self, i: int) -> str | None:
        """Return the style of a place with its own colour."""
        return f"fill:{self.fills[i]}" if i in self.fills else None

    def on_fill(self, class_: str, i: int) -> str:
        """Return the class of what is drawn on a place: its light variant where the fill is dark."""
        return f"{class_} light" if i in self.fills and is_dark(self.fills[i]) else class_

    def angle(self, state: int | None) -> float | None:
        """Return where the policy goes from a state, in degrees; None where that is not known."""
        move = (
            None
            if self.policy is None or state is None
            else world_move(self.world, state, int(self.policy[state]))
        )
        return None if move is None else math.degrees(math.atan2(move[1], move[0]))

    def agent(self) -> Element:
        """Draw the agent with the flags that it carries."""
        kind, held = self.world["kind"], int(self.world["layers"][self.state])
        radius = (0.27 if kind == "grid" else 0.2) * CELL_SIZE
        arm = 0 if self.last_action is None else self.last_action + 1
        heading = self.angle(self.state) if kind == "grid" else None
        words = node_label(self.world["state_labels"][self.state], self.state) if kind == "graph" else ""
        n = held.bit_count()
        return group(
            element("circle", class_="shadow", cy=0.14 * radius, r=1.18 * radius),
            element("circle", class_="rim", r=1.14 * radius),
            element("circle", class_="body", r=0.95 * radius),
            _arrow((0.0, 0.0), heading, class_="heading"),
            text_element(0.0, 0.0, words, class_="name light", dy="0.35em"),
            *(group(*_flag(0.5), transform=placement(radius * (i - (n - 1) / 2), -radius)) for i in range(n)),
            class_="agent",
            transform=placement(*self.centres[arm if kind == "arms" else self.place[self.state]]),
        )

    def name(self, x: float, y: float, i: int) -> Element:
        """Draw the label of a place's state."""
        state = self.place.index(i)
        words = node_label(self.world["state_labels"][state], state)
        return text_element(x, y, words, class_=self.on_fill("name", i), data_place=i, dy="0.35em")

    def grid(self) -> tuple[Point, Point, list[Element]]:
        """Draw cells, walls, marks, and an arrow in every cell."""
        world, edge = self.world, 6.0
        size = world["width"] * CELL_SIZE + 2 * edge, world["height"] * CELL_SIZE + 2 * edge
        frame = element("rect", class_="frame", x=-edge, y=-edge, width=size[0], height=size[1], rx=10.0)
        cells = [
            _tile(*at, class_="cell", data_place=i, style=self.style(i)) for i, at in enumerate(self.centres)
        ]
        walls = [_tile(*_centre(x, y), class_="wall") for x, y in world["walls"]]
        names = [self.name(x, y - 18, i) for i, (x, y) in enumerate(self.centres) if world.get("named")]
        marks = [self.mark(mark) for mark in world["marks"]]
        solid = {_centre(m["x"], m["y"]) for m in world["marks"] if m["kind"] in ("goal", "door_closed")}
        arrows = [
            _arrow(at, None if at in solid else self.angle(self.shown.get(i)), self.on_fill("arrow", i), i)
            for i, at in enumerate(self.centres)
        ]
        named = [] if world["moves"] or world["state_moves"] else self.action_names()
        parts = [frame, *cells, *walls, *names, *named, group(*marks, class_="marks"), *arrows]
        return (-edge, -edge), size, parts

    def action_names(self) -> list[Element]:
        """Draw the policy as words, where actions have no direction."""
        if self.policy is None:
            return []
        words = {i: self.world["action_labels"][int(self.policy[s])] for i, s in self.shown.items()}
        return [
            text_element(x, y + 26, words[i], class_=self.on_fill("name small", i))
            for i, (x, y) in enumerate(self.centres)
            if i in words and self.shown[i] not in self.world["terminal"]
        ]

    def mark(self, mark: Mapping[str, Any]) -> Element:
        """Draw what is special about a cell; a flag leaves space for the policy's arrow, and is faint if carried."""
        kind, bit = mark["kind"], mark.get("bit") or None
        inside = _flag(0.6, -15.0, -17.0) if kind == "flag" else MARKS[kind]
        faint = 0.2 if bit and self.world["layers"][self.state] & bit else None
        at = placement(*_centre(mark["x"], mark["y"]))
        return group(*inside, class_=f"mark {kind}", data_bit=bit, transform=at, opacity=faint)

    def graph(self) -> tuple[Point, Point, list[Element]]:
        """Draw nodes, with the policy as the colour of their rims, and edges in the colour of their action."""
        at = np.array(self.centres)
        curves = [(edge, self.curve(at, edge)) for edge in self.world["edges"]]
        curves.sort(key=lambda curve: max(curve[0]["probabilities"]))
        everything = np.vstack([at, *(points for _, points in curves)])
        low, high = everything.min(axis=0) - 0.55 * CELL_SIZE, everything.max(axis=0) + 0.55 * CELL_SIZE
        parts = [_edge(edge, points) for edge, points in curves if len(points) > 1]
        for i, (x, y) in enumerate(self.centres):
            rim = "" if self.policy is None else f" stroke{colour_of(int(self.policy[self.shown[i]]))}"
            circle = {"cx": x, "cy": y, "r": NODE_RADIUS, "style": self.style(i)}
            parts.append(element("circle", class_=f"cell node{rim}", data_place=i, **circle))
            if self.place.index(i) in self.world["terminal"]:
                parts.append(element("circle", class_="ends", cx=x, cy=y, r=0.72 * NODE_RADIUS))
            parts.append(self.name(x, y, i))
        return tuple(low.tolist()), tuple((high - low).tolist()), parts

    def curve(self, at: NDArray[np.float64], edge: Mapping[str, Any]) -> NDArray[np.float64]:
        """Return the points of an edge from rim to rim: a parabola, or a loop at one node."""
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

    def arms(self) -> tuple[Point, Point, list[Element]]:
        """Draw a column per arm, filled to what is believed of it; the tick is the truth."""
        world, parts = self.world, []
        for a, (x, _) in enumerate(self.centres[1:]):
            tick = CELL_SIZE + ARM_HEIGHT * (1 - world["arms"][a])
            believed = 0.0 if self.values is None else float(self.values[a])
            height = ARM_HEIGHT * min(max(believed, 0.0), 1.0)
            column = {"x": x - 22, "width": 44.0, "rx": 8.0}
            filled = {"y": CELL_SIZE + ARM_HEIGHT - height, "height": height, **column}
            number = "" if self.values is None else f"{believed:.2f}"
            parts += [
                element("rect", class_="slot", y=CELL_SIZE, height=ARM_HEIGHT, **column),
                element("rect", class_=f"fill{colour_of(a)}", data_arm=a, **filled),
                shape([(x - 30, tick), (x + 30, tick)], closed=False, class_="truth"),
                text_element(x, CELL_SIZE + ARM_HEIGHT + 26, world["action_labels"][a], class_="name"),
                text_element(x, CELL_SIZE - 10, number, class_="name believed", data_arm=a),
            ]
        if self.policy is not None:
            x, y = self.centres[int(self.policy[0]) + 1][0], CELL_SIZE + ARM_HEIGHT + 9
            parts.append(element("rect", class_="best", x=x - 32, y=y, width=64.0, height=25.0, rx=9.0))
        return (0.0, 0.0), (world["n_actions"] * ARM_PITCH, ARM_HEIGHT + 1.75 * CELL_SIZE), parts


def node_label(label: str, state: int) -> str:
    """Return what fits into a node: the state's label if it is short, else its number."""
    return label if len(label) <= MAX_LABEL_LENGTH else str(state)


def _tile(x: float, y: float, **attributes: Any) -> Element:
    return element("rect", **attributes, x=x - TILE["width"] / 2, y=y - TILE["height"] / 2, **TILE)


def _arrow(at: Point, angle: float | None, class_: str, data_place: int | None = None) -> Element:
    hidden = "hidden" if angle is None else None
    where = {"transform": placement(*at, angle or 0.0), "visibility": hidden, "data_place": data_place}
    return shape(ARROW, class_=class_, closed=True, **where)


def _flag(scale: float, x: float = 0.0, y: float = 0.0) -> list[Element]:
    parts = {name: [(x + scale * dx, y + scale * dy) for dx, dy in points] for name, points in FLAG.items()}
    return [shape(points, closed=name == "cloth", class_=name) for name, points in parts.items()]


def _edge(edge: Mapping[str, Any], points: NDArray[np.float64]) -> Element:
    """Draw an edge in the colour of the action it is typical of, the fainter the less likely it is."""
    chances = edge["probabilities"]
    action = None if max(chances) - min(chances) < 1e-9 else colour_of(chances.index(max(chances)))
    line, tip = ("line", "tip") if action is None else (f"line stroke{action}", f"tip fill{action}")
    (x0, y0), (x1, y1) = points[-2], points[-1]
    length = max(math.hypot(x1 - x0, y1 - y0), 1e-9)
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    head = [(x1 + 7 * ux, y1 + 7 * uy), (x1 - 4.5 * uy, y1 + 4.5 * ux), (x1 + 4.5 * uy, y1 - 4.5 * ux)]
    parts = shape(points[::2], closed=False, class_=line), shape(head, class_=tip)
    return group(*parts, class_="edge", opacity=0.25 + 0.75 * max(chances))


_ON_MARK = {"x": -TILE["width"] / 2, "y": -TILE["height"] / 2, **TILE}
MARKS = {
    "start": [element("circle", class_="start", r=19.0)],
    "goal": [element("rect", class_="goal", **_ON_MARK), shape(STAR, class_="star")],
    "door_closed": [element("rect", class_="door", **_ON_MARK), element("circle", class_="knob", r=3.2)],
    "door_open": [shape([(-29.0, -27.0), (-14.0, -20.0), (-14.0, 24.0), (-29.0, 28.0)], class_="door")],
}


def world_image(
    env: Environment, layout: Layout, policy: NDArray[np.int64] | None, values: NDArray[np.float64] | None
) -> NDArray[np.uint8]:
    """Return the picture of an environment as it is now as an image; see `Environment.render`."""
    from bamdp.envs.image import rasterize  # Matplotlib is needed for images only

    terminal, arms = np.flatnonzero(env.mdp.terminal).tolist(), env.mdp.expected_rewards[0].tolist()
    world = {**env.layout(), "name": env.name, "n_actions": env.n_actions, "terminal": terminal, "arms": arms}
    numbers = arms if layout.kind == "arms" else values
    drawing = draw_world(world, env.state, numbers, policy, last_action=env.last_action)
    return rasterize(drawing.figure, with_colours(world_css()), LIGHT_COLOURS["paper"])
