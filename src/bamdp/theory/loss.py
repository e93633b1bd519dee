"""What a planner really loses against the Bayes-optimal policy, where that can be computed.

Over T steps let Q*_n(ω, a) be the exact Bayes-optimal values with n steps to go (:class:`bamdp.FHTS`) and V*_n their
maximum over a. For any policy, by telescoping (the performance difference lemma),

    v*_T − v_T = E Σ_{t<T} γ^t [ V*_{T−t}(ω_t) − Q*_{T−t}(ω_t, a_t) ],

where the hyper-states ω_t are those that the policy comes to. Worlds need not be drawn: the next state and reward come
from the belief's own predictive, which has the same law as a world drawn from the prior. Each bracket is exact and
not negative, so the mean over runs has no bias and little noise: no luck with rewards is in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp._kernels.random import new_state
from bamdp.agent import Agent
from bamdp.beliefs.kernels import undo_steps
from bamdp.planners.fhts import FHTS
from bamdp.runs import seeds
from bamdp.theory.step import check_start, push_step


@dataclass(frozen=True)
class Loss:
    """The loss of a planner, run by run."""

    losses: NDArray[np.float64]  # [runs]: Σ_t γ^t (V* − Q*)
    value: float  # v*_T, what the Bayes-optimal policy gets

    @property
    def mean(self) -> float:
        """The estimate of v*_T − v_T."""
        return float(self.losses.mean())

    @property
    def standard_error(self) -> float:
        """Of the mean; NaN for a single run."""
        n = len(self.losses)
        return float(self.losses.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan


def bayes_loss(
    make_agent: Callable[[np.random.SeedSequence], Agent],
    horizon: int,
    *,
    start: int = 0,
    runs: int = 100,
    seed: int = 0,
    exact: dict[Any, NDArray[np.float64]] | None = None,
) -> Loss:
    """Measure a planner's loss over ``horizon`` steps, from worlds that its own belief thinks likely.

    Parameters
    ----------
    make_agent
        Makes a newborn agent from a seed; always with the same belief and discount.
    horizon
        T. Exact values cost about (A·S)^T: fine for bandits and two or three states up to T = 8.
    start
        The first state.
    runs, seed
        Replicates; run i has the luck of replicate i of :func:`bamdp.runs.run_many`.
    exact
        A dictionary in which exact values are remembered for the next call with the same belief and discount.

    Examples
    --------
    >>> import bamdp
    >>> def greedy(seed):
    ...     return bamdp.Agent(bamdp.BayesGreedy(), prior=bamdp.Dirichlet(), rewards=bamdp.BetaBernoulli(),
    ...                        n_states=1, n_actions=2, discount=0.9, seed=seed)
    >>> loss = bayes_loss(greedy, horizon=5, runs=50)
    >>> bool(0.0 <= loss.mean < 0.1 < loss.value)
    True
    """
    T, runs = _checks.integer(horizon, "horizon"), _checks.integer(runs, "runs")
    exact = {} if exact is None else exact
    losses = np.zeros(runs)
    for i in range(runs):
        world_seed, agent_seed = seeds(seed, i)
        agent = make_agent(agent_seed)
        check_start(agent.belief, start)
        losses[i] = _one_run(agent, new_state(world_seed), T, start, exact)
    return Loss(losses, float(np.nanmax(exact[T, start, ()])))


def _one_run(agent: Agent, luck: np.ndarray, horizon: int, s: int, exact: dict[Any, Any]) -> float:
    belief, total, weight = agent.belief, 0.0, 1.0
    history: list[tuple[int, int, float, int]] = []
    for left in range(horizon, 0, -1):
        if belief.space.terminal[s]:
            break
        key = (left, s, tuple(sorted(history)))  # the order of the data does not matter
        if key not in exact:
            exact[key] = _values(agent, left, s)
        a = agent.act(s)
        total += weight * float(np.nanmax(exact[key]) - exact[key][a])
        weight *= agent.discount
        belief.reserve(1)
        policy = np.full(belief.n_states, a, np.int32)
        s2, r = push_step(belief, policy, s, luck)
        undo_steps(belief.arrays, 1)
        history.append((s, a, r, s2))
        agent.observe(*history[-1])
        s = s2
    return total


def _values(agent: Agent, steps: int, state: int) -> NDArray[np.float64]:
    """Q* [A] with ``steps`` to go, NaN for actions that do not exist."""
    planner = FHTS(steps)
    plan = planner.plan(planner.start(agent.belief, agent.discount), agent.belief, state, agent.rng)
    values = np.full(agent.belief.n_actions, np.nan)
    for candidate in plan.candidates:
        values[candidate.action] = candidate.value
    return values
