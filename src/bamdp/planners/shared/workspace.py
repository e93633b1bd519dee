"""Buffers to sample and solve models in, kept by an agent between steps."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.solve import Solver, new_solver
from bamdp.beliefs.belief import GROWTH, Belief, model_entries
from bamdp.beliefs.kernels import empty_rows
from bamdp.generators.lazy import LazyModels, fresh_models, new_lazy_models, with_longer_buffer
from bamdp.planners.base import KernelPlanner

ROUNDING = 1e-9  # by which a probability may exceed 1


class WorkspaceArrays(NamedTuple):
    """A workspace as kernels see it."""

    rows: Rows | None  # the model at hand
    solver: Solver | None  # its values are the warm start of the next model
    leaf_solver: Solver | None = (
        None  # for models at the leaves of a search: shares the scratch of ``solver``
    )
    lazy: LazyModels | None = (
        None  # models that are drawn where they are looked at, in place of all the others
    )


@dataclass
class Workspace:
    """Buffers for a model and its solution, which grow if a model does not fit."""

    arrays: WorkspaceArrays

    @property
    def rows(self) -> Rows:
        """The model at hand."""
        return cast(Rows, self.arrays.rows)

    @property
    def solver(self) -> Solver:
        """The solver, with the values of the last model."""
        return cast(Solver, self.arrays.solver)

    def grow(self) -> None:
        """Make the buffer for models longer; the warm starts stay, and so does what was drawn lazily."""
        rows, solver, leaf_solver, lazy = self.rows, self.solver, self.arrays.leaf_solver, self.arrays.lazy
        if lazy is not None:
            lazy = with_longer_buffer(lazy, GROWTH * len(lazy.index))
        else:
            capacity = GROWTH * len(rows.index)
            rows, solver = empty_rows(len(rows.reward), capacity), with_scratch(solver, capacity)
            if leaf_solver is not None:
                leaf_solver = leaf_solver._replace(index=solver.index, prob=solver.prob, sums=solver.sums)
        self.arrays = WorkspaceArrays(rows, solver, leaf_solver, lazy)

    def __deepcopy__(self, memo: dict[int, Any]) -> Workspace:
        arrays = self.arrays
        if arrays.lazy is None:
            return Workspace(copy.deepcopy(arrays, memo))
        return Workspace(arrays._replace(lazy=fresh_models(arrays.lazy)))  # of which most was never written


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
    fresh = workspace_for(belief)
    rows, solver = fresh.rows, fresh.solver
    kept = ("values", "policy", "order", "solution_mean")  # the rest is scratch that both may use
    leaf_solver = solver._replace(**{name: getattr(solver, name).copy() for name in kept})
    return Workspace(WorkspaceArrays(rows, solver, leaf_solver))


def lazy_workspace_for(belief: Belief, n_stages: int, discount: float) -> Workspace:
    """Return a workspace for lazily drawn models, one for each stage of a search."""
    return Workspace(WorkspaceArrays(None, None, lazy=new_lazy_models(belief, n_stages, discount)))


def model_arrays(rows: Rows) -> dict[str, np.ndarray]:
    """Return a drawn model, or several in one layout, as the arrays that a file holds."""
    end = max(0, int(rows.span.max()))
    return {
        name: array[:end] if name in ("index", "prob") else array for name, array in rows._asdict().items()
    }


def put_model(room: Any, n_states: int, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a model that :func:`model_arrays` has returned into the rows of a workspace, after checking it."""
    target = room.arrays.rows
    saved = Rows(*(np.asarray(arrays[name], old.dtype) for name, old in target._asdict().items()))
    span, index, prob, background, reward = saved
    size, undrawn = len(index), (span < 0).all()
    sound = span.shape == target.span.shape and background.shape == reward.shape == target.reward.shape
    sound = sound and index.shape == prob.shape == (size,) and bool(np.isfinite(reward).all())
    sound = sound and bool(((index >= 0) & (index < n_states)).all() and (span[:, 0] <= span[:, 1]).all())
    sound = sound and (undrawn or (span.min() >= 0 and span.max() <= size and np.diff(span).sum() <= size))
    if not sound or any(((p < 0.0) | (p > 1.0 + ROUNDING) | np.isnan(p)).any() for p in (prob, background)):
        raise ValueError("the file's sampled model is damaged")
    while len(room.arrays.rows.index) < size:
        room.grow()
    target = room.arrays.rows
    target.index[:size], target.prob[:size] = index, prob
    target.span[...], target.background[...], target.reward[...] = span, background, reward


def put_policy(policy: np.ndarray, n_actions: int, saved: np.ndarray) -> None:
    """Write the policy of a file into an array of the same length, after checking it."""
    if (
        saved.shape != policy.shape
        or saved.dtype != policy.dtype
        or (saved < 0).any()
        or (saved >= n_actions).any()
    ):
        raise ValueError("the file's policy is damaged")
    policy[...] = saved


class ModelPlanner(KernelPlanner):
    """A planner that acts by models which stand in its memory's ``workspace``, and go into files with it."""

    policy_of: ClassVar[str] = "workspace.solver.policy"  # where a memory has the policy, int32 [S]

    def learned(self, memory: Any) -> dict[str, np.ndarray]:
        policy = attrgetter(self.policy_of)(memory)
        return super().learned(memory) | {"policy": policy} | model_arrays(memory.workspace.rows)

    def relearn(self, memory: Any, belief: Belief, arrays: Mapping[str, np.ndarray]) -> None:
        super().relearn(memory, belief, arrays)
        rows = memory.workspace.rows
        put_model(memory.workspace, belief.n_states, arrays)
        put_policy(attrgetter(self.policy_of)(memory), len(rows.reward) // belief.n_states, arrays["policy"])


def lacks_rows(rows: Rows, space: Space, n_models: int = 1) -> bool:
    """Return whether models say nothing of an action which exists now, but did not when they were drawn.

    ``rows`` are those of one model, or of several as :mod:`bamdp.planners.boss` lays them out.
    """
    n_states, n_actions = space.allowed.shape
    empty = (rows.span[:, 0] == rows.span[:, 1]) & (rows.background == 0.0)
    first = empty.reshape(n_states, n_models, n_actions)[:, 0]
    return bool((first & space.allowed & ~space.terminal[:, None]).any())
