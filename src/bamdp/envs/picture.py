"""The layout of an environment, and its picture for web pages and files (SVG) and for Matplotlib.

Coordinates of a layout are in cells (or node spacings), x to the right and y *down*, with the centres of grid cells at
the integers 0..width-1 and 0..height-1. States that share a position (such as a maze cell with different flags) differ
in their *layer*; a picture shows the layer of the current state.

A picture consists of places: cells of a grid or a strip, nodes of a graph, or the arms of a bandit. Each place shows a
name, a value as its colour, and the policy: as an arrow if actions have a direction, otherwise as text or as the colour
of the rim. :attr:`WorldDrawing.place` maps states to places. The web page's script finds the shapes by class and
``data-place`` and updates them at every step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp.envs import drawing
from bamdp.envs.drawing import Point, element, figure, group, placement, shape

if TYPE_CHECKING:
    from bamdp.mdp.model import FiniteMDP

DIRECTIONS = ("up", "right", "down", "left")  # the actions of a grid, in the order of GRID_MOVES
GRID_MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))
MAX_NODES_WITH_EDGES = 24  # the edges of a larger graph would be indistinguishable
MAX_NAMED = 150  # states whose names are legible in their cells
BEND, ROW_BEND = 0.25, 0.42  # of edges that have a reverse edge or pass other nodes, in a row further away

CELL_SIZE = 64.0  # pixels
MARGIN = 8.0  # around a grid
NODE_RADIUS = 0.3 * CELL_SIZE  # of a graph
MAX_LABEL_LENGTH = 4  # characters that fit in a node; twice as many fit in a cell
SIDE = CELL_SIZE - 3  # of a cell
ARROW = [(-9.0, -4.2), (1.0, -4.2), (1.0, -9.5), (12.0, 0.0), (1.0, 9.5), (1.0, 4.2), (-9.0, 4.2)]
STAR = [
    (r * math.sin(math.pi * i / 5), -r * math.cos(math.pi * i / 5)) for i, r in enumerate([20.0, 9.0] * 5)
]
GUESS = 0.22  # opacity of what is shown for unvisited states

PerState = Sequence[float | None] | NDArray[Any] | None


# --- layouts ---------------------------------------------------------------------------------------------------


class Mark(NamedTuple):
    """A mark on a cell: ``"start"``, ``"goal"``, ``"flag"``, ``"door_open"`` or ``"door_closed"``.

    For a flag, ``bit`` is the bit that is set in the layers of states in which the agent carries it.
    """

    kind: str
    x: int
    y: int
    bit: int = 0


@dataclass(frozen=True, eq=False)
class Layout:
    """The positions of an environment's states.

    Parameters
    ----------
    kind : {"grid", "graph", "arms"}
        Cells with walls, nodes with edges, or a row of cells for the arms of a bandit.
    width, height : float
        Extent in cells.
    positions : array [S, 2]
        The position (x, y) of every state.
    moves : array [A, 2] or [S, A, 2], optional
        On a grid, the direction of each action.
    named : bool, optional
        On a grid, whether every cell shows the label of its state.
    axis : str, optional
        The quantity that the states represent, if a chart over states reads best.
    walls : sequence of (x, y), optional
        On a grid, the wall cells.
    marks : sequence of Mark, optional
    layers : array [S], optional
        Distinguishes states that share a position.
    """

    kind: Literal["grid", "graph", "arms"]
    width: float
    height: float
    positions: NDArray[np.float64]
    moves: ArrayLike | None = None
    named: bool = False
    axis: str = ""
    walls: Sequence[tuple[int, ...]] = ()
    marks: Sequence[Mark] = ()
    layers: NDArray[np.int64] | None = None

    def data(self) -> dict[str, Any]:
        """Return the layout as lists, numbers and strings, ready for JSON, with directions as [S, A, 2]."""
        n, moves = len(self.positions), self.moves
        if moves is not None:
            moves = np.broadcast_to(moves, (n, *np.shape(moves)[-2:])).tolist()
        return vars(self) | {
            "positions": self.positions.tolist(),
            "moves": moves,
            "walls": [list(wall) for wall in self.walls],
            "marks": [mark._asdict() for mark in self.marks],
            "layers": [0] * n if self.layers is None else self.layers.tolist(),
        }

    def edges(self, mdp: FiniteMDP | None) -> list[dict[str, Any]]:
        """Return a graph's edges with the ``probabilities`` of the actions; none if unknown or too many."""
        if mdp is None or self.kind != "graph" or mdp.n_states > MAX_NODES_WITH_EDGES:
            return []
        table = mdp.dense()
        joined = (table > 0.0).max(axis=1)
        edges = []
        for s, t in np.argwhere(joined).tolist():
            far = math.dist(self.positions[s], self.positions[t]) > 1.9
            bend = ROW_BEND if far and self.height == 1 else BEND * bool(joined[t, s] or far)
            edges.append({"source": s, "target": t, "probabilities": table[s, :, t].tolist(), "bend": bend})
        return edges


def grid_layout(width: int, height: int, cells: ArrayLike, **parts: Any) -> Layout:
    """Return a grid with the actions up, right, down, left; ``cells`` contains the position of every state."""
    return Layout("grid", width, height, np.asarray(cells, float), **{"moves": GRID_MOVES, **parts})


def graph_layout(positions: NDArray[np.float64], **parts: Any) -> Layout:
    """Return a graph with nodes at the given positions, shifted so that no coordinate is negative."""
    positions = positions - positions.min(axis=0)
    width, height = (positions.max(axis=0) + 1).tolist()
    return Layout("graph", width, height, positions, **parts)


def row_layout(n_states: int, kind: Any = "graph", **parts: Any) -> Layout:
    """Return nodes or cells in a row."""
    positions = np.column_stack([np.arange(float(n_states)), np.zeros(n_states)])
    return Layout(kind, n_states, 1, positions, **{"axis": "state", **parts})


def table_layout(n_states: int, shape: tuple[int, int] | None = None, **parts: Any) -> Layout:
    """Return a grid filled row by row, with ``shape`` rows and columns, by default a square.

    A state beyond the shape's capacity, the terminal state, lies below the grid and is not drawn.
    """
    columns = shape[1] if shape else math.ceil(math.sqrt(n_states))
    rows = shape[0] if shape else math.ceil(n_states / columns)
    row, column = np.divmod(np.arange(n_states), columns)
    cells = np.column_stack([column, row + (row >= rows)]).astype(float)
    axis = "" if shape else "state"
    return Layout("grid", columns, rows, cells, named=n_states <= MAX_NAMED, axis=axis, **parts)


def default_layout(n_states: int) -> Layout:
    """Return nodes on a circle that grows with their number, or a table of more than 24 states."""
    if n_states > MAX_NODES_WITH_EDGES:
        return table_layout(n_states)
    angle = 2 * math.pi * np.arange(n_states) / n_states - math.pi / 2
    positions = max(1.2, 0.2 * n_states) * np.column_stack([np.cos(angle), np.sin(angle)])
    return graph_layout(positions, axis="state")


# --- the picture -----------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """What a place shows."""

    number: int
    at: Point
    state: int | None  # with the agent's flags (for a bandit, the arm); None if there is none
    label: str
    fill: str | None  # the colour of its value, if any
    action: int | None  # of the policy, if any
    angle: float | None  # of this action, in degrees, if it has a direction
    opacity: float | None  # if the state was never visited

    def ink(self) -> str:
        """Return the colour of text and arrows."""
        return "#ffffff" if self.fill and drawing.is_dark(self.fill) else "ink"


@dataclass(frozen=True)
class WorldDrawing:
    """A drawing with the centres of its places, the place of each state, and the lowest and highest value shown."""

    figure: Element
    centres: list[Point]
    place: list[int]
    range: tuple[float, float]

    def data(self) -> dict[str, Any]:
        """Return the drawing as plain data for JSON."""
        return {
            "svg": drawing.markup(self.figure),
            "centres": [list(c) for c in self.centres],
            "place": self.place,
        }


def draw_world(
    world: Mapping[str, Any],
    state: int | None = None,
    values: PerState = None,
    policy: PerState = None,
    *,
    last_action: int | None = None,
    visited: NDArray[np.bool_] | None = None,
    agent: bool = True,
    ramp: str = "value",
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
        Whether the agent has visited each state; unvisited states are faint.
    agent
        Whether to draw the agent.
    ramp
        The ramp of the values' colours.
    """
    state = world["start"] if state is None else state
    arms, layers, at = world["kind"] == "arms", world["layers"], list(map(tuple, world["positions"]))
    number = {position: i for i, position in enumerate(dict.fromkeys(at))}
    place, centres = [number[position] for position in at], [_centre(*position) for position in number]
    shown = {place[s]: s for s in range(len(at)) if layers[s] == layers[state]}
    if arms:
        centres = [_centre(a, 0) for a in range(world["n_actions"])]
        shown = {a: a for a in range(world["n_actions"])}
    chosen = np.full(len(at) + len(centres), -1) if policy is None or arms else np.asarray(policy)
    ends, limits = set(world["terminal"]), (math.nan, math.nan)
    colours: dict[int | None, str] = {}
    if values is not None:
        numbers = np.asarray(values, float)
        living = [s for s in shown.values() if s not in ends] or list(shown.values())
        low, high = limits = float(np.nanmin(numbers[living])), float(np.nanmax(numbers[living]))
        levels = np.nan_to_num((numbers - low) / (high - low or 1.0))
        colours = {s: drawing.shade(ramp, levels[s]) for s in living}

    places = []
    for i, centre in enumerate(centres):
        s, action, angle = shown.get(i), None, None
        if s is not None and s not in ends and chosen[s] >= 0:
            action = int(chosen[s])
            if world["moves"]:
                x, y = world["moves"][s][action]
                angle = math.degrees(math.atan2(y, x))
        faint = None if visited is None or s is None or arms or visited[s] else GUESS
        label = _label(world, i if arms else place.index(i))
        places.append(Place(i, centre, s, label, colours.get(s), action, angle, faint))
    if world["kind"] == "graph":
        parts, corner, size = _graph(world, places, place)
    else:
        parts = _grid(world, places, policy is not None, world["layers"][state])
        corner = (-MARGIN, -MARGIN)
        size = tuple(world[side] * CELL_SIZE + 2 * MARGIN for side in ("width", "height"))
    over = [group(class_="expected"), group(class_="rollouts")]
    if agent:
        here = last_action if arms else place[state]
        over.append(_agent(world, state, None if here is None else places[here]))
    looks: dict[str, Any] = {
        "class_": f"scene world {world['kind']}",
        "text_anchor": "middle",
        "font_family": "sans-serif",
    }
    looks |= {"width": size[0], "height": size[1], "label": f"The environment {world['name']}"}
    return WorldDrawing(figure(size, *parts, *over, corner=corner, **looks), centres, place, limits)


def _centre(x: float, y: float) -> Point:
    return (x + 0.5) * CELL_SIZE, (y + 0.5) * CELL_SIZE


def _label(world: Mapping[str, Any], i: int) -> str:
    """Return the label of a state or an arm if it fits in a place, otherwise its number."""
    label = world["action_labels" if world["kind"] == "arms" else "state_labels"][i]
    return label if len(label) <= MAX_LABEL_LENGTH * (1 if world["kind"] == "graph" else 2) else str(i)


def _grid(world: Mapping[str, Any], places: list[Place], has_policy: bool, held: int) -> list[Element]:
    """Draw the cells, walls and marks, and the policy in every cell."""
    width, height = (world[side] * CELL_SIZE + 12.0 for side in ("width", "height"))
    parts = [element("rect", fill="line", x=-6.0, y=-6.0, width=width, height=height, rx=10.0)]
    for one in places:  # with a policy, only its arrows are faint
        faint = None if has_policy else one.opacity
        fill = one.fill or "cell"
        parts.append(_tile(*one.at, class_="cell", fill=fill, data_place=one.number, opacity=faint))
        if world["named"] or world["kind"] == "arms":
            parts.append(_name(one, -21.0))
        if world["named"] and not world["moves"] and one.action is not None:
            word = world["action_labels"][one.action]
            parts.append(_text(*one.at, 21.0, word, 12.0, one.ink(), opacity=one.opacity))
    parts += [_tile(*_centre(x, y), fill="wall") for x, y in world["walls"]]
    parts.append(group(*(_mark(one, held) for one in world["marks"]), class_="marks"))
    solid = {_centre(m["x"], m["y"]) for m in world["marks"] if m["kind"] in ("goal", "door_closed")}
    for one in places:
        looks = {
            "class_": "arrow",
            "fill": one.ink(),
            "opacity": one.opacity or 0.7,
            "data_place": one.number,
        }
        parts.append(_arrow(one.at, None if one.at in solid else one.angle, **looks))
    return parts


def _graph(world: Mapping[str, Any], places: list[Place], place: list[int]) -> tuple[Any, Point, Point]:
    """Draw nodes, with the policy as the colour of their rims, and edges; also return the corner and the size."""
    at = np.array([one.at for one in places])
    edges = sorted(world["edges"], key=lambda edge: max(edge["probabilities"]))
    curves = [_curve(at, place[edge["source"]], place[edge["target"]], edge["bend"]) for edge in edges]
    parts = [_edge(edge["probabilities"], points) for edge, points in zip(edges, curves) if len(points) > 1]
    for one in places:
        rim = "wall" if one.action is None else f"a{drawing.colour_of(one.action)}"
        circle = {"cx": one.at[0], "cy": one.at[1], "r": NODE_RADIUS, "stroke": rim, "stroke_width": 3}
        looks = {"fill": one.fill or "cell", "opacity": one.opacity}
        parts.append(element("circle", class_="cell node", data_place=one.number, **circle, **looks))
        if one.state in world["terminal"]:
            circle |= {"r": 0.72 * NODE_RADIUS, "stroke": "wall", "stroke_width": 2}
            parts.append(element("circle", fill="none", **circle))
        parts.append(_name(one, 0.0))
    everything = np.vstack([at, *curves])
    low, high = everything.min(axis=0) - 0.55 * CELL_SIZE, everything.max(axis=0) + 0.55 * CELL_SIZE
    return parts, tuple(low.tolist()), tuple((high - low).tolist())


def _curve(at: NDArray[np.float64], i: int, j: int, bend: float) -> NDArray[np.float64]:
    """Return the points of an edge from rim to rim: a parabola, or a loop for a self-transition."""
    p, q = at[i], at[j]
    t = np.linspace(0.0, 1.0, 41)[:, None]
    if i != j:
        chord = q - p
        control = (p + q) / 2 + bend * np.array([-chord[1], chord[0]])
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


def _edge(chances: list[float], points: NDArray[np.float64]) -> Element:
    """Draw an edge in the colour of the action most likely to take it, fainter for less likely edges."""
    equal = max(chances) - min(chances) < 1e-9
    colour = "muted" if equal else f"a{drawing.colour_of(chances.index(max(chances)))}"
    end = points[-1]
    along = (end - points[-2]) / max(np.linalg.norm(end - points[-2]), 1e-9)
    aside = np.array([-along[1], along[0]])
    line = shape(points[::2], closed=False, fill="none", stroke=colour, stroke_width=2.4)
    tip = shape([end + 7 * along, end + 4.5 * aside, end - 4.5 * aside], fill=colour)
    return group(line, tip, class_="edge", opacity=0.25 + 0.75 * max(chances))


def _agent(world: Mapping[str, Any], state: int, place: Place | None) -> Element:
    """Draw the agent with the flags it carries; it is hidden before a bandit's first action."""
    graph, named = world["kind"] == "graph", world["named"] or world["kind"] == "arms"
    radius = (0.2 if graph else 0.16 if named else 0.27) * CELL_SIZE
    n = int(world["layers"][state]).bit_count()
    at, angle = (place.at, place.angle) if place else ((0.0, 0.0), None)
    flags = [group(*_flag(0.5), transform=placement(radius * (i - (n - 1) / 2), -radius)) for i in range(n)]
    return group(
        element("circle", fill="#000000", opacity=0.18, cy=0.14 * radius, r=1.18 * radius),
        element("circle", fill="#ffffff", r=1.14 * radius),
        element("circle", class_="body", fill="agent", r=0.95 * radius),
        _arrow((0.0, 0.0), angle, class_="heading", fill="#ffffff"),
        _text(0.0, 0.0, 0.0, _label(world, state) if graph else "", 14.0, "#ffffff", class_="name"),
        *flags,
        class_="agent",
        transform=placement(*at),
        visibility="hidden" if place is None else None,
    )


def _mark(mark: Mapping[str, Any], held: int) -> Element:
    """Draw the mark of a cell; a flag leaves space for the policy's arrow and is faint while carried."""
    kind, bit, at = mark["kind"], mark["bit"] or None, placement(*_centre(mark["x"], mark["y"]))
    faint = 0.2 if bit and held & bit else None
    return group(*MARKS[kind], class_=f"mark {kind}", data_bit=bit, transform=at, opacity=faint)


def _flag(scale: float, x: float = 0.0, y: float = 0.0) -> list[Element]:
    pole, cloth = (
        [(x + scale * dx, y + scale * dy) for dx, dy in points]
        for points in ([(-9.0, -20.0), (-9.0, 20.0)], [(-8.0, -19.0), (14.0, -10.0), (-8.0, -1.0)])
    )
    return [shape(pole, closed=False, fill="none", stroke="ink", stroke_width=3), shape(cloth, fill="flag")]


def _tile(x: float, y: float, **attributes: Any) -> Element:
    return element("rect", **attributes, x=x - SIDE / 2, y=y - SIDE / 2, width=SIDE, height=SIDE, rx=6.0)


def _arrow(at: Point, angle: float | None, **attributes: Any) -> Element:
    hidden = "hidden" if angle is None else None
    return shape(ARROW, transform=placement(*at, angle or 0.0), visibility=hidden, **attributes)


def _name(place: Place, dy: float) -> Element:
    return _text(*place.at, dy, place.label, 14.0, place.ink(), class_="name", data_place=place.number)


def _text(x: float, y: float, dy: float, words: str, size: float, fill: str, **more: Any) -> Element:
    """Write words below a position, in a smaller font if they do not fit in a cell."""
    size = min(size, 1.5 * SIDE / max(1, len(words)))
    looks = {"fill": fill, "font_size": size, "font_weight": 600, "dy": "0.35em"}
    return element("text", words, x=x, y=y + dy, **looks, **more)


MARKS = {
    "start": [element("circle", r=19.0, fill="none", stroke="muted", stroke_width=3, opacity=0.55)],
    "goal": [_tile(0.0, 0.0, fill="goal"), shape(STAR, fill="#ffffff")],
    "flag": _flag(0.6, -15.0, -17.0),
    "door_closed": [_tile(0.0, 0.0, fill="wood"), element("circle", r=3.2, fill="flag")],
    "door_open": [shape([(-29.0, -27.0), (-14.0, -20.0), (-14.0, 24.0), (-29.0, 28.0)], fill="wood")],
}
