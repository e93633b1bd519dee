"""Room to sample and solve models in, kept by an agent between steps."""

from __future__ import annotations

from dataclasses import dataclass

from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.solve import Solver, new_solver
from bamdp._serial import known
from bamdp.beliefs.base import Belief
from bamdp.beliefs.models import empty_rows

ENTRIES_A_ROW = 8  # room to begin with; grows when a drawn model does not fit


@known
@dataclass
class Workspace:
    """Rows of the model at hand and the solver whose values warm-start the next one."""

    rows: Rows
    solver: Solver

    def grow(self) -> None:
        """Four times the room; the warm start stays."""
        n_rows = len(self.rows.reward)
        room = 4 * len(self.rows.index)
        self.rows = empty_rows(n_rows, room)
        fresh = new_solver(len(self.solver.values), room)
        self.solver = self.solver._replace(index=fresh.index, prob=fresh.prob, sums=fresh.sums)


def lacks(rows: Rows, space: Space, n_models: int = 1) -> bool:
    """Whether models that were drawn say nothing of an action which exists now: it did not when they were drawn.

    Rows are those of one model, or of several as :func:`bamdp.planners.merged.draw_models` sets them.
    """
    n_states, n_actions = space.allowed.shape
    empty = (rows.span[:, 0] == rows.span[:, 1]) & (rows.background == 0.0)
    first = empty.reshape(n_states, n_models, n_actions)[:, 0]
    return bool((first & space.allowed & ~space.terminal[:, None]).any())


def new_workspace(belief: Belief) -> Workspace:
    """Room for models of the belief's size."""
    n_rows = belief.n_states * belief.n_actions
    room = ENTRIES_A_ROW * n_rows + belief.n_states
    return Workspace(empty_rows(n_rows, room), new_solver(belief.n_states, room))
