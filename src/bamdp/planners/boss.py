"""BOSS: best of sampled set (Asmuth, Li, Littman, Nouri & Wingate 2009).

K models are drawn from the posterior and merged into one MDP with K·A actions a state, any model's row for any
action:

    V(s) = max_{a, k} Q(s, a, k),        Q(s, a, k) = r_k(s, a) + γ Σ_{s'} P_k(s' | s, a) V(s').

The agent acts by its optimal policy (a of the best pair (a, k)) and keeps it until some pair (s, a) has been tried
for the B-th time, that is has become *known*; then all K models are drawn anew.

**Why.** V is at least the optimal value of each of the K models, since the merged agent could believe one of them
throughout. If each pair's true row is among the optimistic ones with a fair chance, that of V being optimistic
grows quickly with K, and optimism explores what is unknown. At most S·A draws are ever made.

**Guarantee.** For K of the order S²A/δ · log(...) and B large enough for the posterior to have concentrated, the
behaviour is ε-optimal for the true model on all but polynomially many steps in S, A, B, 1/ε, 1/(1−γ), with
probability 1−δ over the prior. In practice K is 2 to 20 and B about 10 (the best of 2, 5, 10 and 20 with K = 5 on
chain, double_loop and grid5, on average).

**Departures.** None in the algorithm. The merged MDP is solved by modified policy iteration from the last solution,
until the changes of one sweep differ by at most ``tol``, so the policy loses at most γ/(1−γ)·tol in it. A state that
turns out to be terminal, or an action not to exist, also calls for a new draw. Visits are counted by the agent from its
start on. Any prior will do; models whose rows are not independent are drawn as wholes.

Reference: Asmuth, Li, Littman, Nouri & Wingate, "A Bayesian sampling approach to exploration in reinforcement
learning" (UAI 2009).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bamdp import _checks
from bamdp._serial import saveable
from bamdp.beliefs.belief import Belief
from bamdp.planners.base import Plan, Planner, Transition
from bamdp.planners.shared.merged import MergedModels, new_merged


@saveable
@dataclass
class BOSSMemory:
    """The merged MDP at hand and how often each pair was tried."""

    models: MergedModels
    visits: np.ndarray  # int64 [S*A]
    due: bool = True
    n_draws: int = 0


@saveable
@dataclass(frozen=True, kw_only=True)
class BOSS(Planner):
    """Best of sampled set.

    Parameters
    ----------
    n_models
        K, models drawn at a time.
    known_after
        B, visits after which a pair counts as known, which calls for a new draw.
    tol
        Accuracy of the solution, as in :class:`~bamdp.generators.PI`.

    Examples
    --------
    >>> BOSS(n_models=3)
    BOSS(n_models=3, known_after=10, tol=0.0001)
    """

    n_models: int = 5
    known_after: int = 10
    tol: float = 1e-4

    def __post_init__(self) -> None:
        _checks.integer(self.n_models, "n_models")
        _checks.integer(self.known_after, "known_after")
        _checks.real(self.tol, "tol", low=0.0, open_low=True)

    def start(self, belief: Belief, discount: float) -> BOSSMemory:
        return BOSSMemory(
            models=new_merged(belief, self.n_models, discount),
            visits=np.zeros(belief.n_states * belief.n_actions, np.int64),
        )

    def act(self, memory: BOSSMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        if memory.due:
            memory.models.resample(belief, self.tol, rng)
            memory.due = False
            memory.n_draws += 1
        return memory.models.action(state)

    def plan(self, memory: BOSSMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        drawn = memory.due
        self.act(memory, belief, state, rng)
        return memory.models.plan(state, {"drawn_now": drawn, "n_draws": memory.n_draws})

    def learn(self, memory: BOSSMemory, belief: Belief, seen: Transition) -> None:
        row = seen.s * belief.n_actions + seen.a
        memory.visits[row] += 1
        if memory.visits[row] == self.known_after:
            memory.due = True
        if belief.space.terminal[seen.s2] and not memory.models.arrays.space.terminal[seen.s2]:
            memory.due = True

    def respace(self, memory: BOSSMemory, belief: Belief) -> None:
        memory.due = True
