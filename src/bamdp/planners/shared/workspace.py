"""Buffers for sampling and solving models, kept by an agent between steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bamdp._kernels.rows import Rows
from bamdp._kernels.solve import Solver, new_solver
from bamdp.beliefs.belief import Belief
from bamdp.generators.lazy import LazyModels, fresh_models, new_lazy_models


class Workspace(NamedTuple):
    """Buffers for one model, or several stored side by side, and for its solution."""

    rows: Rows  # the current model
    solver: Solver  # its values warm-start the solution of the next model
    leaf_solver: Solver | None = None  # for models at the leaves of a search; shares scratch with ``solver``
    lazy: LazyModels | None = None  # lazily drawn models, which replace all the others

    def __deepcopy__(self, memo: Any) -> Workspace:
        return duplicate(self)


NO_MODELS = Workspace(None, None)  # type: ignore[arg-type]  # for a search without models


def workspace_for(belief: Belief, n_models: int = 1, *, leaves: bool = False) -> Workspace:
    """Return a workspace for models of the belief's size; ``leaves`` adds a second solver."""
    rows = belief.model_buffer(n_models)
    solver = new_solver(belief.n_states, len(rows.index))
    if not leaves:
        return Workspace(rows, solver)
    return Workspace(rows, solver, solver._replace(**_own_parts(solver)))


def lazy_workspace_for(belief: Belief, n_stages: int, discount: float) -> Workspace:
    """Return a workspace for lazily drawn models, one per stage of a search."""
    nothing = belief.model_buffer(0)
    return Workspace(nothing, new_solver(0, 0), lazy=new_lazy_models(belief, n_stages, discount))


def duplicate(part: Any) -> Any:
    """Return a deep copy of array bundles without touching unwritten buffer memory."""
    if isinstance(part, Rows):
        end = max(0, int(part.span.max(initial=0)))
        index, prob = np.empty_like(part.index), np.empty_like(part.prob)
        index[:end], prob[:end] = part.index[:end], part.prob[:end]
        return Rows(part.span.copy(), index, prob, part.background.copy(), part.reward.copy())
    if isinstance(part, Solver):
        fresh = new_solver(len(part.values), len(part.index))
        return fresh._replace(**_own_parts(part))
    if isinstance(part, LazyModels):
        return fresh_models(part)
    if isinstance(part, tuple):
        return type(part)(*map(duplicate, part))
    return part.copy() if isinstance(part, np.ndarray) else part


def _own_parts(solver: Solver) -> dict[str, np.ndarray]:
    """Return copies of the solver arrays that persist between models; the rest is scratch."""
    return {name: getattr(solver, name).copy() for name in ("values", "policy", "order", "solution_mean")}
