"""Room to sample and solve models in, kept by an agent between steps."""

from __future__ import annotations

from dataclasses import dataclass

from bamdp._kernels.rows import Rows
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


def new_workspace(belief: Belief) -> Workspace:
    """Room for models of the belief's size."""
    n_rows = belief.n_states * belief.n_actions
    room = ENTRIES_A_ROW * n_rows + belief.n_states
    return Workspace(empty_rows(n_rows, room), new_solver(belief.n_states, room))
