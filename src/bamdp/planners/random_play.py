"""Random: every allowed action with the same probability. What any planner must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bamdp._kernels.jit import kernel
from bamdp._kernels.random import below
from bamdp._serial import saveable
from bamdp.beliefs.belief import Belief
from bamdp.planners.base import Candidate, Plan, Planner


@kernel
def pick(allowed, s, rng):
    """A uniform action among those that exist in state ``s``; ``allowed`` is [S, A]."""
    n = 0
    for a in range(allowed.shape[1]):
        n += allowed[s, a]
    left = below(rng, n)
    for a in range(allowed.shape[1]):
        if allowed[s, a]:
            if left == 0:
                return a
            left -= 1
    return -1


@saveable
@dataclass(frozen=True)
class Random(Planner):
    """Uniformly random play. Its plans have no values (NaN).

    Examples
    --------
    >>> import bamdp
    >>> agent = bamdp.Agent(Random(), prior=bamdp.Dirichlet(), n_states=2, n_actions=3, discount=0.9, seed=0)
    >>> 0 <= agent.act(0) < 3
    True
    """

    uses_prior: ClassVar[bool] = False

    def start(self, belief: Belief, discount: float) -> None:
        return None

    def act(self, memory: None, belief: Belief, state: int, rng: np.ndarray) -> int:
        return int(pick(belief.space.allowed, state, rng))

    def plan(self, memory: None, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        actions = np.flatnonzero(belief.space.allowed[state])
        return Plan(action, float("nan"), tuple(Candidate(int(a), float("nan")) for a in actions))
