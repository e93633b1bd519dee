"""Where the states of a world lie on paper: the plain geometry from which all its drawings are made.

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

from bamdp.envs.drawing import Point

if TYPE_CHECKING:
    from scipy import sparse

    from bamdp.mdp.model import FiniteMDP

DIRECTIONS = ("up", "right", "down", "left")  # the actions of a grid, and where each aims
GRID_MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))
MAX_EDGES = 20_000  # more edges than this are not listed: no drawing of them can be read


@dataclass(frozen=True)
class Mark:
    """Something to see at a place: ``"start"``, ``"goal"``, ``"flag"``, ``"door_open"`` or ``"door_closed"``.

    A flag carries the ``bit`` that is set in the layer of the states that hold it.
    """

    kind: str
    x: float
    y: float
    bit: int = 0


@dataclass(frozen=True)
class Edge:
    """What leads from one state to another: a probability for each action, and how far the line bends."""

    source: int
    target: int
    probabilities: tuple[float, ...]
    bend: float  # the control point's distance to the right of the chord, in chords

    @property
    def action(self) -> int | None:
        """The action that this edge is typical of; None where all actions are alike."""
        high = max(self.probabilities)
        if high - min(self.probabilities) < 1e-9:
            return None
        return self.probabilities.index(high)


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
        On a graph, edges that do not follow the usual rule; see `edges`.
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

    def move(self, state: int, action: int) -> Point | None:
        """Return where an action aims in a state; None where nothing is known of it."""
        if self.state_moves is not None:
            dx, dy = self.state_moves[state, action].tolist()
            return dx, dy
        return self.moves[action] if self.moves else None

    def layer(self, state: int) -> int:
        """Return the layer of a state."""
        return 0 if self.layers is None else int(self.layers[state])

    def shown(self, state: int) -> NDArray[np.int64]:
        """Return the states that a picture shows while the agent is in ``state``: those of its layer."""
        if self.layers is None:
            return np.arange(len(self.positions))
        return np.flatnonzero(self.layers == self.layers[state])

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
            "marks": [{"kind": m.kind, "x": m.x, "y": m.y, "bit": m.bit} for m in self.marks],
            "edges": [
                {
                    "source": e.source,
                    "target": e.target,
                    "probabilities": list(e.probabilities),
                    "bend": e.bend,
                }
                for e in (self.edges(mdp) if mdp is not None and self.kind == "graph" else [])
            ],
        }

    def edges(self, mdp: FiniteMDP, sources: Sequence[int] | None = None) -> list[Edge]:
        """Return the edges out of ``sources`` (all states, unless there are too many edges to be read: then none).

        An edge is straight unless another one runs the other way or a node lies between its ends; then it
        bends to its right by a quarter of its length, so that there and back do not cover each other.
        """
        if sources is None:
            if mdp.n_states * mdp.n_actions > MAX_EDGES:
                return []
            sources = range(mdp.n_states)
        edges: dict[tuple[int, int], list[float]] = {}
        for s in sources:
            for a in range(mdp.n_actions):
                for t, p in zip(*(part.tolist() for part in mdp.row(s, a))):
                    if p > 0:
                        edges.setdefault((s, t), [0.0] * mdp.n_actions)[a] = p
        if len(edges) > MAX_EDGES:
            return []
        crowded = len(self.positions) > 64  # too many nodes to look for one between the ends of every edge
        return [
            Edge(s, t, tuple(ps), self._bend(s, t, (t, s) in edges, crowded)) for (s, t), ps in edges.items()
        ]

    def _bend(self, source: int, target: int, has_reverse: bool, crowded: bool) -> float:
        if (source, target) in self.bends:
            return self.bends[source, target]
        if source == target:
            return 0.0
        return 0.25 if has_reverse or (not crowded and self._blocked(source, target)) else 0.0

    def _blocked(self, source: int, target: int) -> bool:
        """Return whether some node lies on the straight line between two others."""
        p, q = self.positions[source], self.positions[target]
        chord = q - p
        along = (self.positions - p) @ chord / (chord @ chord)
        beside = np.linalg.norm(self.positions - p - along[:, None] * chord, axis=1)
        between = (along > 0) & (along < 1) & (beside < 0.3)
        between[[source, target]] = False
        return bool(between.any())


def grid_layout(
    width: int,
    height: int,
    cells: Sequence[tuple[int, int]],
    *,
    walls: Sequence[tuple[int, int]] = (),
    marks: Sequence[Mark] = (),
    layers: NDArray[np.int64] | None = None,
) -> Layout:
    """Return a grid on which the actions are up, right, down, left; ``cells`` gives the place of every state."""
    return Layout(
        "grid",
        width,
        height,
        np.asarray(cells, float).reshape(-1, 2),
        moves=GRID_MOVES,
        walls=tuple(walls),
        marks=tuple(marks),
        layers=layers,
    )


def slippery_moves(neighbours: NDArray[np.int64], slip: float) -> list[sparse.csr_matrix]:
    """Return the transition matrices of the actions up, right, down and left, whose moves may slip to either side.

    Parameters
    ----------
    neighbours : array [S, 4]
        The state that lies up, right, down and left of each state (itself, where the way is blocked).
    slip : float
        The probability of going to a side instead: half of it to each of the two neighbouring directions.

    Returns
    -------
    list of 4 sparse matrices [S, S]

    Examples
    --------
    >>> two = np.array([[0, 1, 0, 0], [1, 1, 1, 0]])  # two cells, side by side
    >>> slippery_moves(two, 0.2)[1].toarray()
    array([[0.2, 0.8],
           [0. , 1. ]])
    """
    from scipy import sparse  # slow to import

    n_states = len(neighbours)
    source = np.tile(np.arange(n_states), 3)
    chance = np.repeat([1.0 - slip, slip / 2, slip / 2], n_states)
    matrices = []
    for a in range(4):
        target = neighbours[:, [a, (a + 1) % 4, (a - 1) % 4]].T.ravel()
        matrix = sparse.csr_matrix((chance, (source, target)), shape=(n_states, n_states))
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        matrices.append(matrix)
    return matrices


def line_layout(n_states: int, *, bends: Mapping[tuple[int, int], float], text: str) -> Layout:
    """Return a layout of nodes in a row."""
    positions = np.column_stack([np.arange(n_states), np.zeros(n_states)]).astype(float)
    return Layout("graph", n_states, 1, positions, bends=bends, text=text)


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
    positions = np.column_stack([reach * np.cos(angle), reach * np.sin(angle)])
    positions -= positions.min(axis=0)
    width, height = positions.max(axis=0) + 1
    return Layout("graph", float(width), float(height), positions)
