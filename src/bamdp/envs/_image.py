"""Worlds drawn as images.

One language of colours for all of them: the agent is coral, goals are green, flags amber, walls slate, and
values run from ivory (least) to deep teal (most). On graphs an edge has the colour of the action that it is
typical of, grey where all actions lead alike, and is the fainter the less likely.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bamdp.envs._canvas import Canvas, Colour, Point
from bamdp.envs._layout import Edge, Layout

if TYPE_CHECKING:
    from bamdp.envs.environment import Environment

PAPER: Colour = (248, 246, 241)
CELL: Colour = (255, 255, 255)
LINE: Colour = (226, 221, 211)
WALL: Colour = (62, 70, 86)
INK: Colour = (45, 52, 66)
GREY: Colour = (150, 152, 158)
AGENT: Colour = (232, 93, 76)
GOAL: Colour = (62, 157, 105)
FLAG: Colour = (240, 165, 36)
WOOD: Colour = (164, 113, 72)
ACTIONS: tuple[Colour, ...] = (
    (217, 130, 43), (46, 112, 168), (122, 88, 160), (63, 140, 120), (190, 85, 110), (120, 120, 60)
)  # fmt: skip
RAMP = np.array([(250, 246, 232), (206, 228, 210), (139, 199, 188), (66, 151, 160), (29, 98, 124)], float)
_SIZE = 720  # the longer side of a drawing in pixels, about


def draw(
    env: Environment, layout: Layout, policy: NDArray[np.int64] | None, values: NDArray[np.float64] | None
) -> NDArray[np.uint8]:
    """The world as an image, see `Environment.render`."""
    shades = None if values is None else _shades(values, layout.shown(env.state))
    if layout.kind == "grid":
        return _grid(env, layout, policy, shades)
    if layout.kind == "arms":
        return _arms(env, policy)
    return _graph(env, layout, policy, shades)


def _shades(values: NDArray[np.float64], shown: NDArray[np.int64]) -> NDArray[np.float64]:
    """A colour for every state, [S, 3], by its value's place among those shown."""
    low, high = values[shown].min(), values[shown].max()
    place = np.clip((values - low) / (high - low), 0, 1) if high > low else np.zeros(len(values))
    knots = np.linspace(0, 1, len(RAMP))
    return np.column_stack([np.interp(place, knots, RAMP[:, i]) for i in range(3)])


def _ink_on(colour: Colour) -> Colour:
    """White or ink, whichever can be read on a colour."""
    return (255, 255, 255) if float(np.dot(colour, (0.3, 0.59, 0.11))) < 140 else INK


def _as_colour(row: NDArray[np.float64]) -> Colour:
    return float(row[0]), float(row[1]), float(row[2])


# ---------------------------------------------------------------------------------------------- grids


def _grid(
    env: Environment, layout: Layout, policy: NDArray[np.int64] | None, shades: NDArray[np.float64] | None
) -> NDArray[np.uint8]:
    width, height = int(layout.width), int(layout.height)
    unit = int(np.clip(_SIZE // max(width, height), 6, 96))
    margin = max(8, unit // 4)
    canvas = Canvas(width * unit + 2 * margin, height * unit + 2 * margin, PAPER)

    def centre(x: float, y: float) -> Point:
        return margin + (x + 0.5) * unit, margin + (y + 0.5) * unit

    canvas.box(margin - 3, margin - 3, width * unit + 6, height * unit + 6, LINE, radius=0.1 * unit)
    backs: dict[Point, Colour] = {}
    for s in layout.shown(env.state).tolist():
        x, y = map(float, layout.positions[s])
        backs[x, y] = CELL if shades is None else _as_colour(shades[s])
        _tile(canvas, *centre(x, y), unit, backs[x, y])
    for wall in layout.walls:
        _tile(canvas, *centre(*wall), unit, WALL)
    for mark in layout.marks:
        held = bool(layout.layer(env.state) & mark.bit)
        ink = _ink_on(backs[mark.x, mark.y])
        _mark(canvas, mark.kind, *centre(mark.x, mark.y), unit, held, ink, aside=policy is not None)
    if policy is not None:
        solid = {(m.x, m.y) for m in layout.marks if m.kind in ("goal", "door_closed")}
        for s in layout.shown(env.state).tolist():
            x, y = map(float, layout.positions[s])
            if (x, y) in solid:
                continue
            _policy_arrow(canvas, *centre(x, y), unit, layout.moves[policy[s]], _ink_on(backs[x, y]))
    x, y = centre(*layout.positions[env.state])
    _agent(canvas, x, y, 0.27 * unit, layout.layer(env.state).bit_count())
    if policy is not None:
        _policy_arrow(canvas, x, y, unit, layout.moves[policy[env.state]], (255, 255, 255))
    return canvas.image()


def _tile(canvas: Canvas, x: float, y: float, unit: float, colour: Colour) -> None:
    inset = max(0.5, 0.02 * unit)
    side = unit - 2 * inset
    canvas.box(x - unit / 2 + inset, y - unit / 2 + inset, side, side, colour, radius=0.08 * unit)


def _policy_arrow(canvas: Canvas, x: float, y: float, unit: float, move: Point, colour: Colour) -> None:
    dx, dy = move[0] * 0.17 * unit, move[1] * 0.17 * unit
    width = max(1.0, 0.045 * unit)
    canvas.arrow([(x - dx, y - dy), (x + dx, y + dy)], width, colour, head=3.4 * width, alpha=0.85)


def _agent(canvas: Canvas, x: float, y: float, radius: float, n_flags: int = 0) -> None:
    """A coral disk with a white rim, and a small flag for each one that it carries."""
    canvas.disk(x, y + 0.12 * radius, 1.2 * radius, INK, alpha=0.16)
    canvas.disk(x, y, 1.12 * radius, (255, 255, 255))
    canvas.disk(x, y, 0.95 * radius, AGENT)
    for i in range(n_flags):
        _flag(canvas, x + 0.95 * radius * (i - (n_flags - 1) / 2), y - 0.95 * radius, 1.9 * radius, 1.0, INK)


def _mark(
    canvas: Canvas, kind: str, x: float, y: float, unit: float, held: bool, ink: Colour, aside: bool
) -> None:
    """What is special about a cell; flags step ``aside`` for an arrow."""
    if kind == "start":
        canvas.ring(x, y, 0.3 * unit, max(1.0, 0.05 * unit), ink, alpha=0.35)
    elif kind == "goal":
        _tile(canvas, x, y, unit, GOAL)
        canvas.polygon(_star(x, y, 0.3 * unit), (255, 255, 255), rounding=0.02 * unit)
    elif kind == "flag":
        shift, scale = (0.26 * unit, 0.6) if aside else (0.0, 1.0)
        _flag(canvas, x + 0.03 * unit - shift, y - shift, scale * unit, 0.25 if held else 1.0, ink)
    elif kind == "door_closed":
        _tile(canvas, x, y, unit, WOOD)
        for side in (-1, 1):
            left, top = x + (0.22 * side - 0.16) * unit, y - 0.36 * unit
            canvas.box(left, top, 0.32 * unit, 0.72 * unit, INK, alpha=0.14, radius=0.04 * unit)
        canvas.disk(x + 0.02 * unit, y + 0.02 * unit, 0.05 * unit, FLAG)
    elif kind == "door_open":
        for side in (-1, 1):
            canvas.stroke(
                [(x + side * 0.42 * unit, y - 0.4 * unit), (x + side * 0.42 * unit, y + 0.4 * unit)],
                0.07 * unit,
                WOOD,
            )
        leaf = [(-0.42, -0.4), (-0.18, -0.3), (-0.18, 0.36), (-0.42, 0.4)]
        canvas.polygon([(x + u * unit, y + v * unit) for u, v in leaf], WOOD)
        canvas.disk(x - 0.23 * unit, y + 0.03 * unit, 0.03 * unit, FLAG)


def _flag(canvas: Canvas, x: float, y: float, unit: float, alpha: float, ink: Colour) -> None:
    pole = [(x - 0.16 * unit, y - 0.3 * unit), (x - 0.16 * unit, y + 0.3 * unit)]
    cloth = [(-0.15, -0.28), (0.2, -0.13), (-0.15, 0.03)]
    canvas.stroke(pole, max(1.0, 0.05 * unit), ink, alpha=alpha)
    canvas.polygon([(x + u * unit, y + v * unit) for u, v in cloth], FLAG, alpha=alpha, rounding=0.01 * unit)


def _star(x: float, y: float, radius: float) -> list[Point]:
    angles = [math.pi * (i / 5 - 0.5) for i in range(10)]
    reach = [radius if i % 2 == 0 else 0.45 * radius for i in range(10)]
    return [(x + r * math.cos(t), y + r * math.sin(t)) for r, t in zip(reach, angles)]


# --------------------------------------------------------------------------------------------- graphs


def _graph(
    env: Environment, layout: Layout, policy: NDArray[np.int64] | None, shades: NDArray[np.float64] | None
) -> NDArray[np.uint8]:
    edges = layout.edges(env.mdp)
    if not edges or len(edges) > 12 * max(20, env.n_states):
        edges = layout.edges(env.mdp, [env.state])
    elif len(layout.positions) > 24:
        edges = [e for e in edges if e.source == env.state]
    curves = [(edge, _curve(layout, edge)) for edge in edges]
    everything = np.vstack([layout.positions, *(curve for _, curve in curves)])
    low, high = everything.min(axis=0) - 0.5, everything.max(axis=0) + 0.5
    unit = float(np.clip(_SIZE / max(high - low), 14, 150))
    width, height = (math.ceil(extent * unit) for extent in high - low)
    canvas = Canvas(width, height, PAPER)
    radius = 0.27 * unit
    for edge, curve in sorted(curves, key=lambda pair: max(pair[0].probabilities)):
        _edge(canvas, edge, (curve - low) * unit, radius, policy)
    for s in range(env.n_states):
        x, y = (layout.positions[s] - low) * unit
        _node(canvas, env, s, x, y, radius, None if shades is None else _as_colour(shades[s]), policy)
    return canvas.image()


def _curve(layout: Layout, edge: Edge, n_points: int = 201) -> NDArray[np.float64]:
    """The line of an edge from centre to centre, in cells: a parabola, or a loop at one node."""
    p, q = layout.positions[edge.source], layout.positions[edge.target]
    t = np.linspace(0.0, 1.0, n_points)[:, None]
    if edge.source != edge.target:
        chord = q - p
        control = (p + q) / 2 + edge.bend * np.array([-chord[1], chord[0]])
        return (1 - t) ** 2 * p + 2 * t * (1 - t) * control + t**2 * q
    away = p - (layout.positions.min(axis=0) + layout.positions.max(axis=0)) / 2
    if layout.loop is not None:
        away = np.array(layout.loop, float)
    elif np.linalg.norm(away) < 1e-9:
        away = np.array([0.0, -1.0])
    away = away / np.linalg.norm(away)
    side = np.array([-away[1], away[0]])
    one, two = p + 0.95 * away + 0.62 * side, p + 0.95 * away - 0.62 * side
    return (1 - t) ** 3 * p + 3 * t * (1 - t) ** 2 * one + 3 * t**2 * (1 - t) * two + t**3 * p


def _edge(
    canvas: Canvas, edge: Edge, curve: NDArray[np.float64], radius: float, policy: NDArray[np.int64] | None
) -> None:
    """An edge that leaves one node's rim and ends at the other's."""
    from_start = np.hypot(*(curve - curve[0]).T)
    from_end = np.hypot(*(curve - curve[-1]).T)
    half = len(curve) // 2
    keep = np.where(np.arange(len(curve)) < half, from_start > 1.05 * radius, from_end > 1.22 * radius)
    visible = curve[keep]
    if len(visible) < 2:
        return
    few = 2 if edge.bend == 0 and edge.source != edge.target else 17
    points = [_as_point(p) for p in visible[np.linspace(0, len(visible) - 1, few).round().astype(int)]]
    likely = max(edge.probabilities)
    colour = GREY if edge.action is None else ACTIONS[edge.action % len(ACTIONS)]
    alpha = 0.25 + 0.75 * likely
    width = max(1.6, 0.13 * radius * (0.55 + 0.6 * likely))
    if policy is not None and edge.probabilities[policy[edge.source]] < 0.5 * likely:
        alpha *= 0.35
    canvas.arrow(points, width, colour, head=max(8.0, 0.42 * radius), alpha=alpha)


def _as_point(row: NDArray[np.float64]) -> Point:
    return float(row[0]), float(row[1])


def _node(
    canvas: Canvas,
    env: Environment,
    state: int,
    x: float,
    y: float,
    radius: float,
    shade: Colour | None,
    policy: NDArray[np.int64] | None,
) -> None:
    """A disk with the number of its state, rimmed by the policy's action, double where the world ends."""
    here = state == env.state
    fill = AGENT if here else CELL if shade is None else shade
    rim = WALL if policy is None else ACTIONS[policy[state] % len(ACTIONS)]
    pays = bool(env.mdp.expected_rewards[state].max() >= env.mdp.expected_rewards.max() - 1e-12)
    canvas.disk(x, y + 0.1 * radius, 1.08 * radius, INK, alpha=0.12)
    canvas.disk(x, y, radius, GOAL if pays and policy is None else rim)
    canvas.disk(x, y, 0.86 * radius, CELL)
    canvas.disk(x, y, (0.74 if here and shade is not None else 0.86) * radius, fill)
    if env.mdp.terminal[state]:
        canvas.ring(x, y, 0.7 * radius, 0.08 * radius, rim)
    if radius >= 10:
        digits = str(state)
        size = radius * (0.72 if len(digits) < 3 else 0.5)
        canvas.text(x, y, digits, size, (255, 255, 255) if here else _ink_on(fill))


# ---------------------------------------------------------------------------------------------- bandits


def _arms(env: Environment, policy: NDArray[np.int64] | None) -> NDArray[np.uint8]:
    """A column an arm, filled up to its mean reward; the agent stands over the one that it pulled last."""
    means = env.mdp.expected_rewards[0]
    unit = float(np.clip(_SIZE / max(len(means), 4), 24, 110))
    tall = 2.6 * unit
    canvas = Canvas(int(unit * (max(len(means), 2) + 0.6)), int(tall + 1.9 * unit), PAPER)
    left = (canvas.width - unit * len(means)) / 2
    top = 1.05 * unit
    for a, mean in enumerate(means.tolist()):
        x = left + (a + 0.5) * unit
        chosen = policy is not None and policy[0] == a
        canvas.box(x - 0.3 * unit, top, 0.6 * unit, tall, LINE, radius=0.14 * unit)
        filled = max(mean * tall, 0.01)
        colour = ACTIONS[a % len(ACTIONS)]
        canvas.box(
            x - 0.3 * unit,
            top + tall - filled,
            0.6 * unit,
            filled,
            colour,
            radius=min(0.14 * unit, filled / 2),
        )
        inside = filled > 0.5 * unit
        spot = top + tall - filled + (0.26 if inside else -0.26) * unit
        canvas.text(x, spot, f"{mean:.2f}", 0.155 * unit, (255, 255, 255) if inside else INK)
        if chosen:
            canvas.ring(x, top + tall + 0.42 * unit, 0.28 * unit, 0.05 * unit, INK)
        canvas.text(x, top + tall + 0.42 * unit, str(a), 0.26 * unit, INK)
    x = canvas.width / 2 if env.last_action is None else left + (env.last_action + 0.5) * unit
    _agent(canvas, x, 0.52 * unit, 0.24 * unit)
    return canvas.image()
