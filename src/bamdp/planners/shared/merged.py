"""Several models drawn from the posterior, side by side in one layout: what BOSS, SBOSS and MCBRL share.

K models of S states and A actions are kept as one model with K·A actions a state: action k·A + a is action a as
model k knows it, so its row is (s·K + k)·A + a. Solved as it stands, that is BOSS's merged MDP, in which an agent
may believe a different model at every step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bamdp._kernels.jit import kernel, primitive
from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.solve import Solver, solve
from bamdp._kernels.sweeps import action_values
from bamdp._serial import saveable
from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import sample_into, skip_row
from bamdp.beliefs.verbs import NO_ROOM
from bamdp.planners.base import Candidate, Plan
from bamdp.planners.shared.workspace import Workspace, WorkspaceArrays, new_workspace


@saveable
class MergedArrays(NamedTuple):
    """Several models and the solution of the MDP that they make together, as kernels see them."""

    rows: Rows  # of the merged MDP, S·K·A of them
    solver: Solver
    space: Space  # of the merged MDP: terminal [S], allowed [S, K·A]
    number: np.ndarray  # int64 [S*A]: how many of the K models know the pair


@primitive
def draw_models(belief, merged, rng):
    """Draw K models, one after the other, into ``merged.rows`` and their actions into ``merged.space``.

    Of pair (s, a) only the first ``number[s * A + a]`` models are drawn. Return the used entries, or NO_ROOM.
    """
    space, rows = belief.space, merged.rows
    n_states, n_actions = space.allowed.shape
    n_models = merged.space.allowed.shape[1] // n_actions
    at = 0
    for s in range(n_states):
        merged.space.terminal[s] = space.terminal[s]
    for k in range(n_models):
        choice = verbs.choose(belief.transitions, rng)  # what all rows of the k-th model share
        for s in range(n_states):
            for a in range(n_actions):
                row = s * n_actions + a
                place = (s * n_models + k) * n_actions + a
                exists = space.allowed[s, a] and k < merged.number[row]
                merged.space.allowed[s, k * n_actions + a] = exists
                if space.terminal[s] or not exists:
                    skip_row(rows, place, at)
                    continue
                end = sample_into(belief, choice, row, rows, place, at, rng)
                if end == NO_ROOM:
                    return end
                at = end
    return at


@kernel
def draw_and_solve(belief, merged, discount, tol, rng):
    """Draw K models and solve the merged MDP; returns NO_ROOM if they do not fit."""
    end = draw_models(belief, merged, rng)
    if end != NO_ROOM:
        solve(merged.rows, merged.space, discount, tol, merged.solver, True)
    return end


@saveable
@dataclass
class MergedModels:
    """Room for K models and the solution of the MDP that they make together."""

    arrays: MergedArrays
    discount: float

    @property
    def n_actions(self) -> int:
        """The number of actions A of the world itself."""
        return len(self.arrays.number) // len(self.arrays.space.terminal)

    @property
    def n_models(self) -> int:
        """The number of models K."""
        return len(self.arrays.rows.reward) // len(self.arrays.number)

    def grow(self) -> None:
        """Make four times the room; the warm start stays."""
        workspace = Workspace(WorkspaceArrays(self.arrays.rows, self.arrays.solver))
        workspace.grow()
        self.arrays = self.arrays._replace(rows=workspace.rows, solver=workspace.solver)

    def resample(self, belief: Belief, tol: float, rng: np.ndarray) -> None:
        """Draw K new models, solved together."""
        belief.run(draw_and_solve, self, self.discount, tol, rng=rng)

    def action(self, state: int) -> int:
        """Return the action of the solution in ``state``, whichever model knows it best."""
        return int(self.arrays.solver.policy[state]) % self.n_actions

    def plan(self, state: int, details: Mapping[str, Any]) -> Plan:
        """Return the decision in ``state`` with its evidence: each action at its best, and how the models differ."""
        n_actions, solver = self.n_actions, self.arrays.solver
        q = np.empty(self.n_models * n_actions)
        action_values(self.arrays.rows, self.arrays.space, self.discount, solver.values, state, q)
        candidates = []
        for a in range(n_actions):
            values = q[a::n_actions]
            values = values[~np.isnan(values)]
            if len(values):
                spread = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
                candidates.append(Candidate(a, float(values.max()), spread, len(values)))
        choice = int(solver.policy[state])
        details = {"model": choice // n_actions, **details}
        return Plan(choice % n_actions, float(solver.values[state]), tuple(candidates), details=details)


def new_merged(belief: Belief, n_models: int, discount: float) -> MergedModels:
    """Return room for ``n_models`` models of the belief's size."""
    S, A = belief.n_states, belief.n_actions
    workspace = new_workspace(S, S * A * n_models)
    space = Space(terminal=np.zeros(S, bool), allowed=np.zeros((S, A * n_models), bool))
    number = np.full(S * A, n_models, np.int64)
    return MergedModels(MergedArrays(workspace.rows, workspace.solver, space, number), discount)
