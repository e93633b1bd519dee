"""Thompson sampling: act optimally for one model drawn from the posterior.

The algorithm is Strens's Bayesian DP (2000), also known as PSRL (Osband, Russo & Van Roy 2013), after Thompson (1933).
The depth of exploration depends on how long a draw is kept: redrawing at every step dithers, whereas keeping a draw for
an episode, or for a geometric time with mean 1/(1−γ), commits to a policy. DSS with one policy (N = 1) is an instance
of the former.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bamdp._kernels.jit import kernel
from bamdp._kernels.random import uniform
from bamdp._parameters import positive_number, whole_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import sample_model
from bamdp.generators.builtin import PIParams, generate
from bamdp.planners.base import Candidate, KernelPlanner, Plan, Transition
from bamdp.planners.shared.workspace import Workspace, workspace_for

RESAMPLE = ("step", "episode", "discount")


@kernel
def sample_policy(belief, workspace, generator, discount, s, rng):
    """Draw a model and write its policy, to be executed from state ``s``, to ``workspace.solver.policy``."""
    sample_model(belief, workspace.rows, rng)
    generate(generator, workspace.rows, belief.space, discount, s, workspace.solver, rng)


class Redrawing(KernelPlanner):
    """A planner that redraws models based on the ``age`` in its memory, and whenever an episode ends or begins.

    ``age`` is the number of steps since the last draw, or -1 to force one.
    """

    resample: str | int

    def draw_is_due(self, memory: Any, rng: np.ndarray) -> bool:
        """Return whether a new draw is due."""
        if memory.age < 0 or self.resample == "step":
            return True
        if self.resample == "discount":
            return bool(uniform(rng) < 1.0 - memory.discount)
        return self.resample != "episode" and memory.age >= int(self.resample)

    def learn(self, memory: Any, belief: Belief, seen: Transition) -> None:
        if seen.terminated:
            memory.age = -1

    def begin(self, memory: Any, belief: Belief, state: int) -> None:
        memory.age = -1

    def on_space_changed(self, memory: Any, belief: Belief) -> None:
        memory.age = -1


@dataclass
class ThompsonMemory:
    """Memory of Thompson sampling; the solver holds the policy of the current draw."""

    workspace: Workspace
    discount: float
    age: int = -1  # steps since the last draw; -1 if a new one is due


@dataclass(frozen=True, kw_only=True)
class ThompsonSampling(Redrawing):
    """Thompson sampling (PSRL).

    Parameters
    ----------
    resample
        When to draw a new model: ``"step"`` (every step), a number n (every n steps), ``"episode"`` (when an episode
        has ended), or ``"discount"`` (with probability 1−γ at each step). A model is always redrawn after an episode
        and when a terminal state or missing action is discovered.
    tol
        Accuracy of the solution, as in :class:`~bamdp.generators.PI`.
    """

    result_version: ClassVar[int] = 3
    keeps: ClassVar[tuple[str, ...]] = ("workspace.solver.values", "workspace.solver.policy", "age")

    resample: str | int = whole_number("step", names=RESAMPLE)
    tol: float = positive_number(1e-4)

    def start(self, belief: Belief, discount: float) -> ThompsonMemory:
        return ThompsonMemory(workspace_for(belief), discount)

    def act(self, memory: ThompsonMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        if self.draw_is_due(memory, rng):
            generator = PIParams(float(self.tol))
            belief.run(sample_policy, memory.workspace, generator, memory.discount, state, rng)
            memory.age = 0
        memory.age += 1
        return int(memory.workspace.solver.policy[state])

    def plan(self, memory: ThompsonMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        value = float(memory.workspace.solver.values[state])
        return Plan(action, value, (Candidate(action, value, count=1),), details={"age_of_draw": memory.age})
