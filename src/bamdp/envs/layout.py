"""The positions of an environment's states: the geometry used for drawing it.

Coordinates are in cells (or node spacings), x to the right and y *down*, with the centres of grid cells at the integers
0..width-1 and 0..height-1. States that share a position (such as a maze cell with different flags) differ in their
*layer*; a picture shows the layer of the current state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from bamdp.mdp.model import FiniteMDP

DIRECTIONS = ("up", "right", "down", "left")  # the actions of a grid, in the order of GRID_MOVES
GRID_MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))
MAX_NODES_WITH_EDGES = 24  # the edges of a larger graph would be indistinguishable
MAX_NUMBERED = 150  # states whose numbers are legible in their cells
BEND = 0.25  # of edges that pass other nodes or have a reverse edge


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
    """The geometry of an environment.

    Parameters
    ----------
    kind : {"grid", "graph", "arms"}
        Cells with walls, nodes with edges, or a row of cells for the arms of a bandit.
    width, height : float
        Extent in cells.
    positions : array [S, 2]
        The position (x, y) of every state.
    moves : sequence of (dx, dy), optional
        On a grid, the direction of each action.
    state_moves : array [S, A, 2], optional
        The directions of actions, if they depend on the state.
    named : bool, optional
        On a grid, whether every cell shows the label of its state.
    axis : str, optional
        The quantity that the states represent, if they lie on a line.
    walls : sequence of (x, y), optional
        On a grid, the wall cells.
    marks : sequence of Mark, optional
    layers : array [S], optional
        Distinguishes states that share a position.
    bends : mapping from (source, target) to float, optional
        On a graph, how far an edge bends to its right: the distance of its control point from the chord, relative to
        the chord's length.
    text : str, optional
        On a graph, the picture as text, with ``(s)`` for state s.
    """

    kind: Literal["grid", "graph", "arms"]
    width: float
    height: float
    positions: NDArray[np.float64]
    moves: Sequence[tuple[float, float]] = ()
    state_moves: NDArray[np.float64] | None = None
    named: bool = False
    axis: str = ""
    walls: Sequence[tuple[int, ...]] = ()
    marks: Sequence[Mark] = ()
    layers: NDArray[np.int64] | None = None
    bends: Mapping[tuple[int, int], float] = field(default_factory=dict)
    text: str = ""

    @property
    def is_line(self) -> bool:
        """Whether a chart over states reads best, because they lie on a line or their positions have no meaning."""
        return self.kind != "arms" and (self.height == 1 or bool(self.axis))

    def data(self, mdp: FiniteMDP | None, start: int) -> dict[str, Any]:
        """Return the layout as lists, numbers and strings, ready for JSON, without edges if the model is unknown."""
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
            "marks": [mark._asdict() for mark in self.marks],
            "edges": [] if mdp is None else self.edges(mdp),
        }

    def edges(self, mdp: FiniteMDP) -> list[dict[str, Any]]:
        """Return the edges of a graph with the ``probabilities`` of the actions, or none if there are too many."""
        if self.kind != "graph" or mdp.n_states > MAX_NODES_WITH_EDGES:
            return []
        table = mdp.dense()
        joined = (table > 0.0).max(axis=1)
        edges = []
        for s, t in np.argwhere(joined).tolist():
            far = math.dist(self.positions[s], self.positions[t]) > 1.9
            bend = self.bends.get((s, t), BEND * bool(joined[t, s] or far))
            edges.append({"source": s, "target": t, "probabilities": table[s, :, t].tolist(), "bend": bend})
        return edges


def grid_layout(width: int, height: int, cells: ArrayLike, **parts: Any) -> Layout:
    """Return a grid with the actions up, right, down, left; ``cells`` contains the position of every state."""
    return Layout("grid", width, height, np.asarray(cells, float), moves=GRID_MOVES, **parts)


def graph_layout(positions: NDArray[np.float64], **parts: Any) -> Layout:
    """Return a graph with nodes at the given positions, shifted so that no coordinate is negative."""
    positions = positions - positions.min(axis=0)
    width, height = (positions.max(axis=0) + 1).tolist()
    return Layout("graph", width, height, positions, **parts)


def line_layout(n_states: int, **parts: Any) -> Layout:
    """Return a graph with its nodes in a row."""
    return graph_layout(np.column_stack([np.arange(n_states), np.zeros(n_states)]), **parts)


def strip_layout(n_states: int, axis: str) -> Layout:
    """Return a row of labelled cells, for actions without a direction."""
    cells = np.column_stack([np.arange(float(n_states)), np.zeros(n_states)])
    return Layout("grid", n_states, 1, cells, named=True, axis=axis)


def table_layout(n_states: int, shape: tuple[int, int] | None = None, **parts: Any) -> Layout:
    """Return a grid filled row by row, with ``shape`` rows and columns, by default a square.

    A state beyond the shape's capacity, the terminal state, lies below the grid and is not drawn.
    """
    rows, columns = shape or (0, math.ceil(math.sqrt(n_states)))
    row, column = np.divmod(np.arange(n_states), columns)
    cells = np.column_stack([column, row]).astype(float)
    if shape and n_states > rows * columns:
        cells[-1] = (columns - 1) / 2, rows + 1
    named, axis = n_states <= MAX_NUMBERED, "" if shape else "state"
    return Layout("grid", columns, rows or int(row[-1]) + 1, cells, named=named, axis=axis, **parts)


def circle_layout(n_states: int) -> Layout:
    """Return nodes on a circle that grows with their number, or on a sunflower spiral for more than 24."""
    i = np.arange(n_states, dtype=np.float64)
    if n_states <= MAX_NODES_WITH_EDGES:
        angle = 2 * math.pi * i / n_states - math.pi / 2
        reach = np.full(n_states, max(1.2, 0.2 * n_states))
    else:
        angle, reach = i * math.pi * (3 - math.sqrt(5)), 0.62 * np.sqrt(i + 0.5)
    return graph_layout(np.column_stack([reach * np.cos(angle), reach * np.sin(angle)]), axis="state")


def shown_states(world: Mapping[str, Any], state: int) -> list[int]:
    """Return the states shown while the agent is in ``state``: those in the same layer."""
    return [s for s, layer in enumerate(world["layers"]) if layer == world["layers"][state]]


def world_move(world: Mapping[str, Any], state: int, action: int) -> Sequence[float] | None:
    """Return the direction of an action in a state, or None if it is unknown."""
    moves = world["state_moves"][state] if world.get("state_moves") else world["moves"]
    return moves[action] if moves else None
