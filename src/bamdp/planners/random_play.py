"""Random: every allowed action with the same probability. What any planner must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bamdp._serial import saveable
from bamdp.beliefs.belief import Belief
from bamdp.planners.base import Candidate, Plan, Planner
from bamdp.planners.shared.actions import random_action


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
        return int(random_action(belief.space.allowed, state, rng))

    def plan(self, memory: None, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        actions = np.flatnonzero(belief.space.allowed[state])
        return Plan(action, float("nan"), tuple(Candidate(int(a), float("nan")) for a in actions))
