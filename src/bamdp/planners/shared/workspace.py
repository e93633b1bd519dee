"""Buffers to sample and solve models in, kept by an agent between steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.solve import Solver, new_solver
from bamdp._serial import saveable
from bamdp.beliefs.belief import GROWTH, Belief, model_entries
from bamdp.beliefs.kernels import empty_rows


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
    """Buffers for a model and its solution, which grow if a model does not fit."""

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
        """Make the buffer for the model longer; the warm starts stay."""
        capacity = GROWTH * len(self.rows.index)
        solver = with_scratch(self.solver, capacity)
        scratch = {"index": solver.index, "prob": solver.prob, "sums": solver.sums}  # of all solvers
        solvers = [old._replace(**scratch) for old in self.arrays[1:]]
        self.arrays = type(self.arrays)(empty_rows(len(self.rows.reward), capacity), *solvers)


def with_scratch(solver: Solver, capacity: int) -> Solver:
    """Return the same solver with scratch for policies of ``capacity`` entries."""
    fresh = new_solver(len(solver.values), capacity)
    return solver._replace(index=fresh.index, prob=fresh.prob, sums=fresh.sums)


def workspace_for(belief: Belief, n_models: int = 1) -> Workspace:
    """Return a workspace for models of the belief's size, or ``n_models`` of them side by side."""
    n_rows = belief.n_states * belief.n_actions * n_models
    capacity = model_entries(belief, n_rows)
    return Workspace(WorkspaceArrays(empty_rows(n_rows, capacity), new_solver(belief.n_states, capacity)))


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
