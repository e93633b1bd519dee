"""Room to sample and solve models in, kept by an agent between steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.solve import Solver, new_solver
from bamdp._serial import saveable
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import empty_rows

ENTRIES_PER_ROW = 8  # room to begin with; it grows when a model does not fit


@saveable
class WorkspaceArrays(NamedTuple):
    """A workspace as kernels see it."""

    rows: Rows  # the model at hand
    solver: Solver  # its values are the warm start of the next model


@saveable
class LeafWorkspaceArrays(NamedTuple):
    """A workspace for searches that also solve models at their leaves."""

    rows: Rows
    solver: Solver
    leaf_solver: Solver  # has values, policy and order of its own, and shares the scratch of ``solver``


@saveable
@dataclass
class Workspace:
    """Room for a model and its solution, which grows if a model does not fit."""

    arrays: WorkspaceArrays | LeafWorkspaceArrays

    @property
    def rows(self) -> Rows:
        """The model at hand."""
        return self.arrays.rows

    @property
    def solver(self) -> Solver:
        """The solver, with the values of the last model."""
        return self.arrays.solver

    def grow(self) -> None:
        """Make four times the room; the warm starts stay."""
        room = 4 * len(self.rows.index)
        solver = with_scratch(self.solver, room)
        scratch = {"index": solver.index, "prob": solver.prob, "sums": solver.sums}  # of all solvers
        solvers = [old._replace(**scratch) for old in self.arrays[1:]]
        self.arrays = type(self.arrays)(empty_rows(len(self.rows.reward), room), *solvers)


def with_scratch(solver: Solver, room: int) -> Solver:
    """Return the same solver with scratch for policies of ``room`` entries."""
    fresh = new_solver(len(solver.values), room)
    return solver._replace(index=fresh.index, prob=fresh.prob, sums=fresh.sums)


def new_workspace(n_states: int, n_rows: int) -> Workspace:
    """Return room for models of ``n_rows`` pairs of states and actions."""
    room = ENTRIES_PER_ROW * n_rows + n_states
    return Workspace(WorkspaceArrays(empty_rows(n_rows, room), new_solver(n_states, room)))


def workspace_for(belief: Belief) -> Workspace:
    """Return room for models of the belief's size."""
    return new_workspace(belief.n_states, belief.n_states * belief.n_actions)


def leaf_workspace_for(belief: Belief) -> Workspace:
    """Return the same, with a second solver for models at the leaves of a search."""
    rows, solver = workspace_for(belief).arrays[:2]
    kept = ("values", "policy", "order", "solution_mean")  # the rest is scratch that both may use
    leaf_solver = solver._replace(**{name: getattr(solver, name).copy() for name in kept})
    return Workspace(LeafWorkspaceArrays(rows, solver, leaf_solver))


def lacks_rows(rows: Rows, space: Space, n_models: int = 1) -> bool:
    """Return whether models say nothing of an action which exists now, but did not when they were drawn.

    ``rows`` are those of one model, or of several as :mod:`bamdp.planners.boss` lays them out.
    """
    n_states, n_actions = space.allowed.shape
    empty = (rows.span[:, 0] == rows.span[:, 1]) & (rows.background == 0.0)
    first = empty.reshape(n_states, n_models, n_actions)[:, 0]
    return bool((first & space.allowed & ~space.terminal[:, None]).any())
