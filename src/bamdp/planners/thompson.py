"""Thompson sampling: act optimally for one model drawn from the posterior.

Strens's Bayesian DP (2000), also known as PSRL (Osband, Russo & Van Roy 2013), after Thompson (1933). How long
one draw is kept decides how deep it explores: a fresh draw at every step dithers, one kept for an episode, or
for a geometric time of mean 1/(1−γ), commits. DSS with one policy (N = 1) is the first of these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bamdp import _checks
from bamdp._kernels.jit import kernel
from bamdp._kernels.random import uniform
from bamdp._serial import known
from bamdp.beliefs import verbs
from bamdp.beliefs.base import Belief
from bamdp.beliefs.models import sample_model
from bamdp.generators import PI, generate
from bamdp.planners.base import Candidate, Plan, Planner, Transition
from bamdp.planners.workspace import Workspace, lacks, new_workspace

RESAMPLE = ("step", "episode", "discount")


@kernel
def sample_and_solve(T, R, space, G, discount, rows, solver, s, rng):
    """Draw a model and make it a policy; returns NO_ROOM if it does not fit."""
    size = sample_model(T, R, space, rows, rng)
    if size != verbs.NO_ROOM:
        generate(G, rows, space, discount, s, solver, rng)
    return size


@kernel
def solve_again(space, G, discount, rows, solver, s, rng):
    """Make the model at hand a policy once more."""
    generate(G, rows, space, discount, s, solver, rng)


@kernel
def _flip(rng):
    return uniform(rng)


@known
@dataclass
class Memory:
    """The policy of the current draw stands in the workspace's solver."""

    space: Workspace
    discount: float
    age: int = -1  # steps since the draw; -1: a new one is due
    stale: bool = False  # the draw was solved for another set of actions or ends


@known
@dataclass(frozen=True, kw_only=True)
class ThompsonSampling(Planner):
    """Thompson sampling (PSRL).

    Parameters
    ----------
    resample
        When to draw a new model: ``"step"`` (every step), a number n (every n steps), ``"episode"`` (when an
        episode has ended), or ``"discount"`` (with probability 1−γ at each step). Always after an episode.
    tol
        Accuracy of the solution, as in :class:`~bamdp.generators.PI`.
    """

    resample: str | int = "step"
    tol: float = 1e-4

    def __post_init__(self) -> None:
        if isinstance(self.resample, str):
            _checks.one_of(self.resample, "resample", RESAMPLE)
        else:
            _checks.integer(self.resample, "resample")
        PI(tol=self.tol)

    def start(self, belief: Belief, discount: float) -> Memory:
        return Memory(new_workspace(belief), discount)

    def act(self, memory: Memory, belief: Belief, state: int, rng: np.ndarray) -> int:
        if self._due(memory, rng):
            before = rng.copy()
            while True:
                space = memory.space
                end = belief.call(
                    sample_and_solve,
                    belief.T,
                    belief.R,
                    belief.space,
                    PI(tol=self.tol).state(),
                    memory.discount,
                    space.rows,
                    space.solver,
                    state,
                    rng,
                )
                if end != verbs.NO_ROOM:
                    break
                space.grow()
                rng[:] = before
            memory.age = 0
        elif memory.stale:
            space, G = memory.space, PI(tol=self.tol).state()
            solve_again(belief.space, G, memory.discount, space.rows, space.solver, state, rng)
        memory.stale = False
        memory.age += 1
        return int(memory.space.solver.policy[state])

    def _due(self, memory: Memory, rng: np.ndarray) -> bool:
        if memory.age < 0 or self.resample == "step":
            return True
        if self.resample == "discount":
            return bool(_flip(rng) < 1.0 - memory.discount)
        return self.resample != "episode" and memory.age >= int(self.resample)

    def plan(self, memory: Memory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        value = float(memory.space.solver.values[state])
        return Plan(action, value, (Candidate(action, value, count=1),), details={"age_of_draw": memory.age})

    def learn(self, memory: Memory, belief: Belief, seen: Transition) -> None:
        if seen.terminated:
            memory.age = -1

    def begin(self, memory: Memory, belief: Belief, state: int) -> None:
        memory.age = -1

    def respace(self, memory: Memory, belief: Belief) -> None:
        memory.stale = True
        if lacks(memory.space.rows, belief.space):
            memory.age = -1
