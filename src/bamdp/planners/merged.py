"""Several models drawn from the posterior, side by side in one layout: what BOSS, SBOSS and MCBRL share.

K models of S states and A actions are kept as one model with K·A actions a state: action k·A + a is action a as
model k knows it, so its row is (s·K + k)·A + a. Solved as it stands, that is BOSS's merged MDP, in which an agent
may believe a different model at every step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bamdp._kernels.jit import kernel
from bamdp._kernels.rows import Space
from bamdp._kernels.solve import new_solver, solve
from bamdp._kernels.sweeps import action_values
from bamdp._serial import known
from bamdp.beliefs import verbs
from bamdp.beliefs.base import Belief
from bamdp.beliefs.models import empty_rows, skip_row
from bamdp.planners.base import Candidate, Plan
from bamdp.planners.workspace import ENTRIES_A_ROW, Workspace

MAX_ROUNDS = 10_000


@kernel
def draw_models(T, R, space, number, rows, merged, rng):
    """Draw K models, one after the other, into ``rows`` and their actions into ``merged``.

    Of pair (s, a) only the first ``number[s * A + a]`` models are drawn. Returns the used entries, or NO_ROOM.
    """
    n_states, n_actions = space.allowed.shape
    n_models = merged.allowed.shape[1] // n_actions
    at = 0
    for s in range(n_states):
        merged.terminal[s] = space.terminal[s]
    for k in range(n_models):
        choice = verbs.choose(T, rng)
        for s in range(n_states):
            for a in range(n_actions):
                row = s * n_actions + a
                place = (s * n_models + k) * n_actions + a
                exists = space.allowed[s, a] and k < number[row]
                merged.allowed[s, k * n_actions + a] = exists
                if space.terminal[s] or not exists:
                    skip_row(rows, place, at)
                    continue
                end, background = verbs.sample_row(T, choice, row, rows.index, rows.prob, at, rng)
                if end == verbs.NO_ROOM:
                    return end
                rows.span[place, 0] = at
                rows.span[place, 1] = end
                rows.background[place] = background
                rows.reward[place] = verbs.sample_reward(
                    R, choice, row, rows.index, rows.prob, at, end, background, rng
                )
                at = end
    return at


@kernel
def draw_and_solve(T, R, space, number, discount, tol, rows, merged, solver, rng):
    """Draw K models and solve the merged MDP; returns NO_ROOM if they do not fit."""
    end = draw_models(T, R, space, number, rows, merged, rng)
    if end != verbs.NO_ROOM:
        solve(rows, merged, discount, tol, MAX_ROUNDS, solver, True)
    return end


@kernel
def merged_values(rows, merged, discount, values, s, q):
    """Q(s, ·) of the merged MDP into ``q`` [K*A], NaN where there is no such action."""
    action_values(rows, merged, discount, values, s, q)


@known
@dataclass
class Merged:
    """Room for K models and the solution of the MDP that they make together."""

    space: Workspace
    merged: Space
    number: np.ndarray  # int64 [S*A]: how many of the K models know the pair
    discount: float

    @property
    def n_models(self) -> int:
        """K."""
        return len(self.space.rows.reward) // len(self.number)

    def resample(self, belief: Belief, tol: float, rng: np.ndarray) -> None:
        """K new models, solved together."""
        before = rng.copy()
        while True:
            space = self.space
            end = belief.call(
                draw_and_solve,
                belief.T,
                belief.R,
                belief.space,
                self.number,
                self.discount,
                tol,
                space.rows,
                self.merged,
                space.solver,
                rng,
            )
            if end != verbs.NO_ROOM:
                return
            space.grow()
            rng[:] = before

    def action(self, state: int) -> int:
        """What the solution does in ``state``: the action, whoever knows it best."""
        n_actions = len(self.number) // len(self.merged.terminal)
        return int(self.space.solver.policy[state]) % n_actions

    def plan(self, state: int, details: Mapping[str, Any]) -> Plan:
        """The decision in ``state`` with its evidence: each action at its best, and how the models differ."""
        n_actions = len(self.number) // len(self.merged.terminal)
        q = np.empty(self.n_models * n_actions)
        rows, solver = self.space.rows, self.space.solver
        merged_values(rows, self.merged, self.discount, solver.values, state, q)
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


def new_merged(belief: Belief, n_models: int, discount: float) -> Merged:
    """Room for ``n_models`` models of the belief's size."""
    S, A = belief.n_states, belief.n_actions
    room = ENTRIES_A_ROW * S * A * n_models + S
    return Merged(
        space=Workspace(empty_rows(S * A * n_models, room), new_solver(S, room)),
        merged=Space(terminal=np.zeros(S, bool), allowed=np.zeros((S, A * n_models), bool)),
        number=np.full(S * A, n_models, np.int64),
        discount=discount,
    )
