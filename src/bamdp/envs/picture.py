"""The picture of a world: one drawing, for pages and files (SVG) and for images.

It is drawn once, with a place for everything that changes. States that share a place on paper (the flags of a maze)
share a shape: :attr:`WorldDrawing.place` says which. What changes from step to step is in a :class:`WorldPaint`, or is
written into the shapes by a page's script, which finds them by class and ``data-place``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bamdp.envs.drawing import (
    Element,
    Path,
    Placement,
    Point,
    action_class,
    element,
    figure,
    group,
    is_dark,
    shade,
    shape,
    text_element,
    with_colours,
)
from bamdp.envs.layout import Layout, shown_states, world_move

if TYPE_CHECKING:
    from bamdp.envs.environment import Environment

CELL_SIZE = 64.0  # pixels
NODE_RADIUS = 0.3 * CELL_SIZE  # of a graph
ARM_HEIGHT, ARM_PITCH = 2.6 * CELL_SIZE, 1.25 * CELL_SIZE  # of a bandit
MIN_STATES_TO_CUT = 16  # of a colour scale that may leave out the highest values
MIN_SCALE = 0.01  # of a value: a scale that spans less would show rounding
MAX_LABEL_LENGTH = 4  # characters that fit into a node
MAX_NODES_WITH_EDGES = 24  # the edges of a larger graph could not be told apart
TILE = {"width": CELL_SIZE - 3, "height": CELL_SIZE - 3, "rx": 6.0}  # of a cell
ARROW = [(-9.0, -4.2), (1.0, -4.2), (1.0, -9.5), (12.0, 0.0), (1.0, 9.5), (1.0, 4.2), (-9.0, 4.2)]
STAR = [
    (r * math.sin(math.pi * i / 5), -r * math.cos(math.pi * i / 5)) for i, r in enumerate([19.0, 8.5] * 5)
]


def world_css() -> str:
    """Return the style sheet of the picture, with the colours of the palette as variables."""
    return resources.files("bamdp.envs").joinpath("world.css").read_text("utf-8")


@dataclass(frozen=True)
class WorldDrawing:
    """A drawing, where the places in it are, and which place each state has."""

    figure: Element
    centres: list[Point]
    place: list[int]

    def data(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""
        return {"svg": str(self.figure), "centres": [list(c) for c in self.centres], "place": self.place}


@dataclass(frozen=True)
class WorldPaint:
    """What is seen of a world at one step; sequences have an entry for each place."""

    fills: Sequence[str] = ()  # colours
    angles: Sequence[float | None] = ()  # where the policy's arrow points, in degrees
    rims: Sequence[int] = ()  # the policy's action, on a graph
    pays: Sequence[bool] = ()  # whether a state's reward is the largest, on a graph
    agent: Point | None = None
    agent_label: str = ""
    heading: float | None = None  # where the agent's own arrow points, in degrees
    held: int = 0  # the flags that the agent carries, as bits
    arm_heights: Sequence[float] = ()  # of a bandit, 0..1
    best_arm: int | None = None
    rollouts: Sequence[Element] = ()


def draw_world(world: Mapping[str, Any], paint: WorldPaint | None = None) -> WorldDrawing:
    """Draw a world.

    Parameters
    ----------
    world
        What `Environment.layout` returns, with ``name``, ``n_actions``, ``terminal`` (a list of states) and ``arms``
        (the mean rewards of a bandit).
    paint
        What is seen at one step; by default only the agent at the start.
    """
    paint = paint or WorldPaint()
    centres, place = world_places(world)
    if paint.agent is None:
        paint = replace(paint, agent=centres[place[world["start"]]])
    draw = {"grid": _draw_grid, "graph": _draw_graph, "arms": _draw_arms}[world["kind"]]
    return WorldDrawing(draw(world, centres, place, paint), centres, place)


def world_places(world: Mapping[str, Any]) -> tuple[list[Point], list[int]]:
    """Return the centres of the places of a drawing, and the place of each state.

    A bandit's first place is the middle, the others are those over its arms.
    """
    if world["kind"] == "arms":
        n = world["n_actions"]
        return [(x * ARM_PITCH, 0.32 * CELL_SIZE) for x in (n / 2, *(a + 0.5 for a in range(n)))], [0]
    positions = [tuple(p) for p in world["positions"]]
    places = list(dict.fromkeys(positions))
    number = {p: i for i, p in enumerate(places)}
    return [_centre(x, y) for x, y in places], [number[p] for p in positions]


def _centre(x: float, y: float) -> Point:
    """Return the middle of a cell."""
    return (x + 0.5) * CELL_SIZE, (y + 0.5) * CELL_SIZE


def _at(values: Sequence[Any], i: int) -> Any:
    """Return the i-th of what is painted, or None where nothing is."""
    return values[i] if i < len(values) else None


def _moving_parts(paint: WorldPaint, radius: float) -> list[Element]:
    """Draw what lies over the world: what is expected next, rollouts, and the agent with the flags it carries."""
    x, y = paint.agent or (0.0, 0.0)
    heading = Placement(0.0, 0.0, paint.heading) if paint.heading is not None else None
    n_flags = paint.held.bit_count()
    flags = [
        group(*_flag(0.5), transform=Placement(radius * (i - (n_flags - 1) / 2), -radius))
        for i in range(n_flags)
    ]
    words = paint.agent_label
    label = [text_element(0.0, 0.0, words, class_="name light", dy="0.35em")] if words else []
    agent = group(
        element("circle", class_="shadow", cy=0.14 * radius, r=1.18 * radius),
        element("circle", class_="rim", r=1.14 * radius),
        element("circle", class_="body", r=0.95 * radius),
        shape(ARROW, class_="heading", transform=heading, visibility=None if heading else "hidden"),
        *label,
        *flags,
        class_="agent",
        transform=Placement(x, y),
    )
    return [group(class_="expected"), group(*paint.rollouts, class_="rollouts"), agent]


# --- grids ----------------------------------------------------------------------------------------------------


def _draw_grid(
    world: Mapping[str, Any], centres: Sequence[Point], place: Sequence[int], paint: WorldPaint
) -> Element:
    edge = 6.0
    size = world["width"] * CELL_SIZE + 2 * edge, world["height"] * CELL_SIZE + 2 * edge
    cells = [_tile(*at, class_="cell", data_place=i, style=_fill(paint, i)) for i, at in enumerate(centres)]
    walls = [_tile(*_centre(x, y), class_="wall") for x, y in world["walls"]]
    names, arrows = [], []
    for i, (x, y) in enumerate(centres):
        if world.get("named"):  # above the policy's arrow
            names.append(_name(world, x, y - 18, i, place.index(i), paint))
        if world["moves"] or world.get("state_moves"):
            arrows.append(_policy_arrow(x, y, i, paint))
    return figure(
        size,
        element("rect", class_="frame", x=-edge, y=-edge, width=size[0], height=size[1], rx=10.0),
        group(*cells, class_="cells"),
        *walls,
        *names,
        group(*(_mark(mark, paint) for mark in world["marks"]), class_="marks"),
        group(*arrows, class_="arrows"),
        *_moving_parts(paint, 0.27 * CELL_SIZE),
        corner=(-edge, -edge),
        label=f"The world {world['name']}",
        class_="scene world",
    )


def _name(world: Mapping[str, Any], x: float, y: float, place: int, state: int, paint: WorldPaint) -> Element:
    """Draw the label of a state at its place, light on a dark fill."""
    label = node_label(world["state_labels"][state], state)
    return text_element(x, y, label, class_=_on_fill("name", place, paint), data_place=place, dy="0.35em")


def _on_fill(class_: str, place: int, paint: WorldPaint) -> str:
    """Return the class of what is drawn on a place: its light variant where the fill is dark."""
    fill = _at(paint.fills, place)
    return f"{class_} light" if fill and is_dark(fill) else class_


def _fill(paint: WorldPaint, place: int) -> str | None:
    """Return the style of a place with its own colour; None where nothing is painted."""
    fill = _at(paint.fills, place)
    return fill and f"fill:{fill}"


def _tile(x: float, y: float, **attributes: Any) -> Element:
    corner = {"x": x - TILE["width"] / 2, "y": y - TILE["height"] / 2}
    return element("rect", **attributes, **corner, **TILE)


def _policy_arrow(x: float, y: float, place: int, paint: WorldPaint) -> Element:
    angle = _at(paint.angles, place)
    return shape(
        ARROW,
        class_=_on_fill("arrow", place, paint),
        data_place=place,
        transform=Placement(x, y, angle or 0.0),
        visibility="hidden" if angle is None else None,
    )


def _mark(mark: Mapping[str, Any], paint: WorldPaint) -> Element:
    """Draw what is special about a cell; a flag makes room for a policy's arrow, and is faint if it is carried."""
    kind, bit = mark["kind"], mark.get("bit") or None
    if kind == "flag":
        inside = _flag(0.6, -15.0, -17.0) if paint.angles else _flag(1.0)
    else:  # a later world may bring another kind: something is there
        inside = MARKS.get(kind, [element("circle", class_="start", r=10.0)])
    faint = 0.2 if bit and paint.held & bit else None
    at = Placement(*_centre(mark["x"], mark["y"]))
    return group(*inside, class_=f"mark {kind}", data_bit=bit, transform=at, opacity=faint)


def _flag(scale: float, x: float = 0.0, y: float = 0.0) -> list[Element]:
    pole, cloth = (
        [(x + scale * dx, y + scale * dy) for dx, dy in points]
        for points in (((-9, -20), (-9, 20)), ((-8, -19), (14, -10), (-8, -1)))
    )
    return [shape(pole, closed=False, class_="pole"), shape(cloth, class_="cloth")]


def _box(left: float, top: float, right: float, bottom: float) -> tuple[Point, ...]:
    return (left, top), (right, top), (right, bottom), (left, bottom)


_ON_MARK = {"x": -TILE["width"] / 2, "y": -TILE["height"] / 2, **TILE}
_OPEN_LEAF = ((-29.0, -27.0), (-14.0, -20.0), (-14.0, 24.0), (-29.0, 28.0))
MARKS = {
    "start": [element("circle", class_="start", r=19.0)],
    "goal": [element("rect", class_="goal", **_ON_MARK), shape(STAR, class_="star")],
    "door_closed": [
        element("rect", class_="door", **_ON_MARK),
        element("path", class_="panels", d=Path((_box(-21, -22, -3, 22), _box(3, -22, 21, 22)))),
        element("circle", class_="knob", r=3.2),
    ],
    "door_open": [element("path", class_="door", d=Path((_OPEN_LEAF, _box(25, -27, 29, 28))))],
}


# --- graphs ---------------------------------------------------------------------------------------------------


def _draw_graph(
    world: Mapping[str, Any], centres: Sequence[Point], place: Sequence[int], paint: WorldPaint
) -> Element:
    at = np.array(centres)
    middle = (at.min(axis=0) + at.max(axis=0)) / 2
    curves = [(edge, _edge_curve(at, place, edge, middle)) for edge in edges_to_draw(world)]
    curves.sort(key=lambda c: max(c[0]["probabilities"]))
    everything = np.vstack([at, *(points for _, points in curves)])
    low, high = everything.min(axis=0) - 0.55 * CELL_SIZE, everything.max(axis=0) + 0.55 * CELL_SIZE
    nodes: list[Element] = []
    for i, (x, y) in enumerate(centres):
        state = place.index(i)
        action = _at(paint.rims, i)
        rim = f" {action_class(action)}" if action is not None else " pays" if _at(paint.pays, i) else ""
        circle = {"cx": x, "cy": y, "r": NODE_RADIUS, "style": _fill(paint, i)}
        nodes.append(element("circle", class_=f"cell node{rim}", data_place=i, **circle))
        if state in world["terminal"]:
            nodes.append(element("circle", class_="ends", cx=x, cy=y, r=0.72 * NODE_RADIUS))
        nodes.append(_name(world, x, y, i, state, paint))
    if not paint.agent_label:
        start = int(world["start"])
        paint = replace(paint, agent_label=node_label(world["state_labels"][start], start))
    *under, agent = _moving_parts(paint, 0.2 * CELL_SIZE)
    return figure(
        (float(high[0] - low[0]), float(high[1] - low[1])),
        group(*(_edge(edge, points) for edge, points in curves if len(points) > 1), class_="edges"),
        *under,
        group(*nodes, class_="cells"),
        agent,
        corner=(float(low[0]), float(low[1])),
        label=f"The world {world['name']}",
        class_="scene world graph",
    )


def edges_to_draw(world: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the edges of a graph that are drawn: all of a small one, of a large one only those of one state."""
    edges: Sequence[Mapping[str, Any]] = world["edges"]
    few = len(world["positions"]) <= MAX_NODES_WITH_EDGES or len({edge["source"] for edge in edges}) == 1
    return edges if few else []


def node_label(label: str, state: int) -> str:
    """Return what fits into a node: the state's label if it is short, else its number."""
    return label if len(label) <= MAX_LABEL_LENGTH else str(state)


def _edge_curve(
    at: NDArray[np.float64], place: Sequence[int], edge: Mapping[str, Any], middle: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the points of an edge from rim to rim: a parabola, or a loop at one node."""
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
        one, two = (p + CELL_SIZE * (0.95 * away + sign * 0.62 * side) for sign in (1, -1))
        points = (1 - t) ** 3 * p + 3 * t * (1 - t) ** 2 * one + 3 * t**2 * (1 - t) * two + t**3 * p
    first = np.hypot(*(points - p).T) > 1.08 * NODE_RADIUS
    last = np.hypot(*(points - q).T) > 1.34 * NODE_RADIUS
    half = np.arange(len(points)) < len(points) // 2
    return points[np.where(half, first, last)]


def _edge(edge: Mapping[str, Any], points: NDArray[np.float64]) -> Element:
    """Draw an edge in the colour of the action it is typical of, the fainter the less likely it is."""
    chances = edge["probabilities"]
    same = max(chances) - min(chances) < 1e-9
    colour = "" if same else f" {action_class(chances.index(max(chances)))}"
    (x0, y0), (x1, y1) = points[-2], points[-1]
    length = max(math.hypot(x1 - x0, y1 - y0), 1e-9)
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    tip = [(x1 + 7 * ux, y1 + 7 * uy), (x1 - 4.5 * uy, y1 + 4.5 * ux), (x1 + 4.5 * uy, y1 - 4.5 * ux)]
    some = points[np.linspace(0, len(points) - 1, 24).round().astype(int)]
    return group(
        shape(some, closed=False, class_="line"),
        shape(tip, class_="tip"),
        class_=f"edge{colour}",
        opacity=round((0.25 + 0.75 * max(chances)) * edge.get("emphasis", 1.0), 2),
    )


# --- bandits --------------------------------------------------------------------------------------------------


def _draw_arms(
    world: Mapping[str, Any], centres: Sequence[Point], place: Sequence[int], paint: WorldPaint
) -> Element:
    """Draw a column per arm, filled to what is believed of it; the tick is the truth."""
    parts = []
    for a, (x, _) in enumerate(centres[1:]):
        tick = CELL_SIZE + ARM_HEIGHT * (1 - world["arms"][a])
        believed = _at(paint.arm_heights, a)
        height = ARM_HEIGHT * min(max(believed or 0.0, 0.0), 1.0)
        column = {"x": x - 22, "width": 44.0, "rx": 8.0}
        slot = {"y": CELL_SIZE, "height": ARM_HEIGHT, **column}
        filled = {"y": CELL_SIZE + ARM_HEIGHT - height, "height": height, **column}
        number = "" if believed is None else f"{believed:.2f}"
        parts += [
            element("rect", class_="slot", **slot),
            element("rect", class_=f"fill {action_class(a)}", data_arm=a, **filled),
            shape([(x - 30, tick), (x + 30, tick)], closed=False, class_="truth"),
            text_element(x, CELL_SIZE + ARM_HEIGHT + 26, world["action_labels"][a], class_="name"),
            text_element(x, CELL_SIZE - 10, number, class_="name believed", data_arm=a),
        ]
    if paint.best_arm is not None:
        x, y = centres[paint.best_arm + 1][0], CELL_SIZE + ARM_HEIGHT + 9
        parts.append(element("rect", class_="best", x=x - 32, y=y, width=64.0, height=25.0, rx=9.0))
    return figure(
        (world["n_actions"] * ARM_PITCH, ARM_HEIGHT + 1.75 * CELL_SIZE),
        *parts,
        *_moving_parts(paint, 0.2 * CELL_SIZE),
        label=f"The world {world['name']}",
        class_="scene world arms",
    )


# --- what is seen ---------------------------------------------------------------------------------------------


def paint_states(
    world: Mapping[str, Any],
    state: int,
    values: Sequence[float | None] | NDArray[np.float64] | None = None,
    policy: Sequence[int] | NDArray[np.int64] | None = None,
) -> WorldPaint:
    """Return what is seen of a grid or a graph: the agent, values as colours, a policy as arrows or rims.

    Parameters
    ----------
    world
        As in `draw_world`.
    state
        Where the agent is; of states that share a place, those with its flags are shown.
    values, policy
        A number and an action for each state.
    """
    centres, place = world_places(world)
    state_at = {place[s]: s for s in shown_states(world, state)}
    states = [state_at.get(i) for i in range(len(centres))]
    fills: list[str] = []
    angles: list[float | None] = []
    rims: list[int] = []
    if values is not None:
        low, high = shown_value_range(world, state, values)
        span = high - low or 1.0
        shown = [low if s is None else values[s] for s in states]
        fills = [shade("value", 0.0 if value is None else (value - low) / span) for value in shown]
    if policy is not None and (world["moves"] or world.get("state_moves")):
        solid = {_centre(m["x"], m["y"]) for m in world["marks"] if m["kind"] in ("goal", "door_closed")}
        angles = [
            None if s is None or centre in solid else move_angle(world_move(world, s, int(policy[s])))
            for s, centre in zip(states, centres)
        ]
    elif policy is not None:
        rims = [0 if s is None else int(policy[s]) for s in states]
    return WorldPaint(fills, angles, rims, agent=centres[place[state]], held=world["layers"][state])


def shown_value_range(
    world: Mapping[str, Any], state: int, values: Sequence[float | None] | NDArray[np.float64]
) -> tuple[float, float]:
    """Return the values at the ends of the colours for the states that are drawn.

    These are the lowest and the highest; but where a few states are worth so much more than all others that these could
    not be told apart, as beside a goal, what all but one in twenty stay below. What is worth more has the last colour.
    """
    shown = sorted(value for s in shown_states(world, state) if (value := values[s]) is not None)
    if not shown:
        return 0.0, 0.0
    low, high, usual = shown[0], shown[-1], shown[int(0.95 * (len(shown) - 1))]
    crowded = len(shown) >= MIN_STATES_TO_CUT and usual - low < 0.5 * (high - low)
    return low, usual if crowded and usual - low > MIN_SCALE * (abs(usual) + abs(low)) else high


def move_angle(move: Sequence[float] | None) -> float | None:
    """Return the direction of a move (dx, dy) in degrees."""
    return None if move is None else math.degrees(math.atan2(move[1], move[0]))


def world_image(
    env: Environment, layout: Layout, policy: NDArray[np.int64] | None, values: NDArray[np.float64] | None
) -> NDArray[np.uint8]:
    """Return the picture of an environment as it is now as an image; see `Environment.render`."""
    from bamdp.envs.image import rasterize, read_styles  # Matplotlib is needed for images only

    rewards = env.mdp.expected_rewards
    world = {
        **env.layout(),
        "name": env.name,
        "n_actions": env.n_actions,
        "terminal": np.flatnonzero(env.mdp.terminal).tolist(),
        "arms": rewards[0].tolist(),
    }
    if layout.kind == "arms":
        pulled = 0 if env.last_action is None else env.last_action + 1
        best_arm = None if policy is None else int(policy[0])
        centres, _ = world_places(world)
        paint = WorldPaint(agent=centres[pulled], arm_heights=world["arms"], best_arm=best_arm)
    else:
        paint = paint_states(world, env.state, values, policy)
        if layout.kind == "graph":
            world["edges"] = _image_edges(env, layout, policy, world["edges"])
            label = node_label(env.state_label(env.state), env.state)
            pays = (rewards.max(axis=1) >= rewards.max() - 1e-12).tolist()
            paint = replace(paint, agent_label=label, pays=pays)
        elif policy is not None:
            heading = move_angle(world_move(world, env.state, int(policy[env.state])))
            paint = replace(paint, heading=heading)
    return rasterize(draw_world(world, paint).figure, read_styles(with_colours(world_css())))


def _image_edges(
    env: Environment, layout: Layout, policy: NDArray[np.int64] | None, edges: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the edges that are drawn: of a large graph those of the present state; what a policy avoids, faint."""
    if len(layout.positions) > MAX_NODES_WITH_EDGES:
        edges = layout.edges(env.mdp, [env.state])
    if policy is None:
        return edges
    return [
        {**edge, "emphasis": 0.35}
        if edge["probabilities"][policy[edge["source"]]] < 0.5 * max(edge["probabilities"])
        else edge
        for edge in edges
    ]
