"""Where the states of an environment lie on paper: the geometry from which its drawings are made, and the plainest of
these, with characters.

Coordinates are in cells (or node spacings), x to the right and y *down*, with the centres of a grid's cells
on the whole numbers 0..width-1 and 0..height-1. States that share a place (the flags of a maze) differ in
their *layer*: a picture shows the layer of the present state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bamdp.envs.drawing import Point
    from bamdp.envs.environment import Environment
    from bamdp.mdp.model import FiniteMDP

DIRECTIONS = ("up", "right", "down", "left")  # the actions of a grid, and where each aims
GRID_MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))
MAX_NODES_WITH_EDGES = 24  # the edges of a larger graph could not be told apart
BEND = 0.25  # of edges that lead past other nodes, or there and back
_SIGNS = {"start": "S", "goal": "G", "flag": "⚑", "door_open": "/", "door_closed": "▒"}
_ARROWS = {(0, -1): "↑", (1, 0): "→", (0, 1): "↓", (-1, 0): "←", (1, 1): "↘", (-1, 1): "↙"}
_AGENT, _FREE, _WALL = "@", "·", "█"
_MAX_LINES = 40  # longer tables are cut


@dataclass(frozen=True)
class Mark:
    """Something to see at a place: ``"start"``, ``"goal"``, ``"flag"``, ``"door_open"`` or ``"door_closed"``.

    A flag carries the ``bit`` that is set in the layer of the states that hold it.
    """

    kind: str
    x: float
    y: float
    bit: int = 0


@dataclass(frozen=True, eq=False)
class Layout:
    """The geometry of a world.

    Parameters
    ----------
    kind : {"grid", "graph", "arms"}
        Cells with walls, nodes with edges, or the arms of a bandit.
    width, height : float
        The extent in cells.
    positions : array [S, 2]
        The place (x, y) of every state.
    moves : sequence of (dx, dy), optional
        On a grid, where each action aims.
    state_moves : array [S, A, 2], optional
        The same where it depends on the state.
    named : bool, optional
        On a grid, whether every cell bears the label of its state.
    walls : sequence of (x, y), optional
        On a grid, the cells that nobody enters.
    marks : sequence of Mark, optional
    layers : array [S], optional
        Which of several states at one place this is.
    bends : mapping from (source, target) to float, optional
        On a graph, how much an edge bends to its right: its control point's distance from the chord, in chords.
    text : str, optional
        On a graph, the picture in characters, with ``(s)`` where state s is.
    """

    kind: Literal["grid", "graph", "arms"]
    width: float
    height: float
    positions: NDArray[np.float64]
    moves: Sequence[Point] = ()
    state_moves: NDArray[np.float64] | None = None
    named: bool = False
    walls: Sequence[tuple[int, int]] = ()
    marks: Sequence[Mark] = ()
    layers: NDArray[np.int64] | None = None
    bends: Mapping[tuple[int, int], float] = field(default_factory=dict)
    text: str = ""

    def data(self, mdp: FiniteMDP | None, start: int) -> dict[str, Any]:
        """Return everything as lists, numbers and strings, ready for JSON; a model that is not known has no edges."""
        return {
            "kind": self.kind,
            "width": float(self.width),
            "height": float(self.height),
            "start": start,
            "positions": self.positions.tolist(),
            "layers": [0] * len(self.positions) if self.layers is None else self.layers.tolist(),
            "moves": [list(map(float, move)) for move in self.moves],
            "state_moves": None if self.state_moves is None else self.state_moves.tolist(),
            "named": self.named,
            "walls": [list(wall) for wall in self.walls],
            "marks": [dict(vars(m)) for m in self.marks],
            "edges": [] if mdp is None else self.edges(mdp),
        }

    def edges(self, mdp: FiniteMDP) -> list[dict[str, Any]]:
        """Return the edges of a graph, with the ``probabilities`` of the actions; none where there are too many."""
        if self.kind != "graph" or mdp.n_states > MAX_NODES_WITH_EDGES:
            return []
        edges: dict[tuple[int, int], list[float]] = {}
        for s, a in np.ndindex(mdp.n_states, mdp.n_actions):
            for t, p in zip(*(part.tolist() for part in mdp.row(s, a))):
                if p > 0:
                    edges.setdefault((s, t), [0.0] * mdp.n_actions)[a] = p
        return [
            {"source": s, "target": t, "probabilities": ps, "bend": self._bend(s, t, (t, s) in edges)}
            for (s, t), ps in edges.items()
        ]

    def _bend(self, source: int, target: int, has_reverse: bool) -> float:
        far = math.dist(self.positions[source], self.positions[target]) > 1.9
        return self.bends.get((source, target), BEND * (has_reverse or far))


def grid_layout(width: int, height: int, cells: Sequence[tuple[int, int]], **parts: Any) -> Layout:
    """Return a grid on which the actions are up, right, down, left; ``cells`` gives the place of every state."""
    return Layout("grid", width, height, np.array(cells, float), moves=GRID_MOVES, **parts)


def graph_layout(positions: NDArray[np.float64], **parts: Any) -> Layout:
    """Return a layout of nodes at some positions, moved so that none is negative."""
    positions = positions - positions.min(axis=0)
    width, height = positions.max(axis=0) + 1
    return Layout("graph", width, height, positions, **parts)


def line_layout(n_states: int, **parts: Any) -> Layout:
    """Return a layout of nodes in a row."""
    return graph_layout(np.column_stack([np.arange(n_states), np.zeros(n_states)]), **parts)


def strip_layout(n_states: int) -> Layout:
    """Return a row of cells that bear the labels of their states, where actions have no direction."""
    cells = np.column_stack([np.arange(float(n_states)), np.zeros(n_states)])
    return Layout("grid", n_states, 1, cells, named=True)


def circle_layout(n_states: int) -> Layout:
    """Return a layout of nodes around a circle that grows with their number; beyond 24, on a sunflower's spiral."""
    i = np.arange(n_states, dtype=np.float64)
    if n_states <= 24:
        radius = max(1.2, 0.2 * n_states) if n_states > 1 else 0.0
        angle = 2 * math.pi * i / n_states - math.pi / 2
        reach = np.full(n_states, radius)
    else:
        angle = i * math.pi * (3 - math.sqrt(5))
        reach = 0.62 * np.sqrt(i + 0.5)
    return graph_layout(np.column_stack([reach * np.cos(angle), reach * np.sin(angle)]))


def shown_states(world: Mapping[str, Any], state: int) -> list[int]:
    """Return the states that a picture shows while the agent is in ``state``: those with the same flags."""
    return [s for s, layer in enumerate(world["layers"]) if layer == world["layers"][state]]


def world_move(world: Mapping[str, Any], state: int, action: int) -> Sequence[float] | None:
    """Return where an action aims in a state; None where nothing is known of it."""
    moves = world["state_moves"][state] if world.get("state_moves") else world["moves"]
    return moves[action] if moves else None


def world_text(
    env: Environment, layout: Layout, policy: NDArray[np.int64] | None, values: NDArray[np.float64] | None
) -> str:
    """Return an environment as text, whose first line names the present state; see `Environment.render`."""
    label = env.state_label(env.state)
    title = f"{env.name} · state {env.state}" + ("" if label == str(env.state) else f": {label}")
    draw = {"grid": _grid_text, "graph": _graph_text, "arms": _arms_text}[layout.kind]
    return f"{title}{' (terminated)' if env.terminated else ''}\n\n{draw(env, layout, policy, values)}"


def _grid_text(env: Environment, layout: Layout, policy: Any, values: Any) -> str:
    """Draw cells in a frame: the agent, else what is special there, else the policy's arrow; values beside."""
    world = layout.data(None, env.start)
    width, height = int(layout.width), int(layout.height)
    signs = np.full((height, width), _WALL, object)
    numbers = np.full((height, width), "", object)
    # an end may lie below, where nothing is drawn
    place = {s: (int(y), int(x)) for s, (x, y) in enumerate(world["positions"]) if y < height}
    for s in shown_states(world, env.state):
        if s in place:
            signs[place[s]] = _FREE if policy is None else _sign(world, s, int(policy[s]))
            numbers[place[s]] = "" if values is None else f"{values[s]:.2f}"
    for mark in layout.marks:
        taken = mark.kind == "flag" and world["layers"][env.state] & mark.bit
        if not taken and not (mark.kind == "start" and policy is not None):
            signs[int(mark.y), int(mark.x)] = _SIGNS[mark.kind]
    if env.state in place:
        signs[place[env.state]] = _AGENT
    gap = max(map(len, numbers.ravel()))
    side = gap + 1 if gap else 0

    def cell(sign: str, number: str) -> str:
        return _WALL * (3 + side) if sign == _WALL else f" {sign} {f'{number:>{gap}} ' if side else ''}"

    rows = [f"│{''.join(map(cell, *row))}│" for row in zip(signs, numbers)]
    bar = "─" * (width * (3 + side))
    return "\n".join([f"┌{bar}┐", *rows, f"└{bar}┘"])


def _sign(world: Mapping[str, Any], state: int, action: int) -> str:
    """Return the arrow of an action, or its number where actions have no direction."""
    move = world_move(world, state, action)
    return str(action % 10) if move is None else _ARROWS[int(move[0]), int(move[1])]


def _graph_text(env: Environment, layout: Layout, policy: Any, values: Any) -> str:
    """Draw the layout's text, or list where each action leads; then a table of values and policy."""
    if layout.text:
        lines = [layout.text.replace(f"({env.state})", f"[{env.state}]")]
    else:
        lines = [f"{env.action_label(a)} → {_outcomes(env, a)}" for a in range(env.n_actions)]
    if policy is not None or values is not None:
        lines.append("")
        for s in range(min(env.n_states, _MAX_LINES)):
            value = "" if values is None else f"{values[s]:>12.4f}"
            action = "" if policy is None else f"   {env.action_label(int(policy[s]))}"
            lines.append(f"{s:>5}{value}{action}{'  ' + _AGENT if s == env.state else ''}")
        if env.n_states > _MAX_LINES:
            lines.append(f"  ... {env.n_states - _MAX_LINES} more states")
    return "\n".join(lines)


def _outcomes(env: Environment, action: int) -> str:
    """Return the likeliest next states of an action in the present state."""
    states, chances = env.mdp.row(env.state, action)
    order = np.argsort(-chances, kind="stable")[:6]
    more = f", {len(states) - 6} more" if len(states) > 6 else ""
    return (", ".join(f"{states[i]} ({chances[i]:.2f})" for i in order if chances[i] > 0) or "nothing") + more


def _arms_text(env: Environment, layout: Layout, policy: Any, values: Any) -> str:
    """Draw a bar per arm, as long as its mean reward."""
    lines = []
    for a, mean in enumerate(env.mdp.expected_rewards[0].tolist()):
        last = _AGENT if a == env.last_action else " "
        chosen = "  ←" if policy is not None and policy[0] == a else ""
        lines.append(f"{last} {env.action_label(a)} {'█' * round(20 * mean):░<20} {mean:.2f}{chosen}")
    return "\n".join(lines)
