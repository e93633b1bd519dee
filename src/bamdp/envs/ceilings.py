"""Reference values of an environment: expected totals of policies computed from the known model.

Runs return to a start state whenever an episode ends, so totals over T steps include restarts: in backward induction, a
terminal state has the value of the start state with the same number of steps left. If each run draws its model at
random (for example, whether a door is open), values are means over the possible models, each with the policy for that
model, or over the models drawn in given runs. A family is represented by 64 models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.envs.environment import Environment
from bamdp.mdp.average import gain
from bamdp.mdp.model import FiniteMDP, check_start
from bamdp.mdp.solvers import chain_of, named_policy, policy_iteration, q_function, total_reward

GAIN_STATES = 5_000  # size limit for computing the average reward; a grid of 10 000 states took 17 s


@dataclass(frozen=True)
class Ceilings:
    """Reference values and expected totals of an environment with a known model."""

    value: float  # V* at the start, discounted
    gain: float | None  # optimal average reward per step; None if it depends on the state or is not computed
    optimum: float  # expected total of an optimal policy for the horizon
    discounted: float  # expected total of the policy optimal for the discount
    random: float  # expected total of the uniformly random policy
    discount: float  # discount used for `value` and `discounted`

    def best_per_step(self, steps: int) -> float:
        """Return the best average reward per step: the gain, or the optimal total per step if undefined."""
        return self.optimum / steps if self.gain is None else self.gain


def ceilings(
    env: Environment,
    discount: float,
    steps: int | None = None,
    seeds: Sequence[np.random.SeedSequence] = (),
) -> Ceilings:
    """Return the reference values of an environment over ``steps`` (by default its horizon).

    If run ``seeds`` are given, values are averaged over the models drawn by those runs.
    """
    discount, start = _checks.discount(discount), _start(env)
    T = env.horizon if steps is None else _checks.integer(steps, "steps")
    means = np.zeros(5)
    for weight, mdp in env.models(seeds):
        best, average = policy_iteration(mdp, discount), optimal_gain(mdp)
        average = np.nan if average is None else average
        totals = [expected_total(mdp, start, T, policy) for policy in (None, best.policy, "uniform")]
        means += weight * np.array([_at_start(best.values, start), average, *totals])
    value, average, optimum, discounted, random = means.tolist()
    return Ceilings(value, None if np.isnan(average) else average, optimum, discounted, random, discount)


def optimal_total(env: Environment, steps: int, seeds: Sequence[np.random.SeedSequence] = ()) -> float:
    """Return the expected total of an optimal policy over ``steps``; ``seeds`` as in :func:`ceilings`."""
    return sum(weight * expected_total(mdp, _start(env), steps) for weight, mdp in env.models(seeds))


def expected_total(mdp: FiniteMDP, start: Any, steps: int, policy: Any = None) -> float:
    """Return the expected total like :func:`bamdp.total_reward`, but restart after each terminal state."""
    if not mdp.terminal.any():
        return total_reward(mdp, start, steps, policy)
    start, steps = check_start(start, mdp.n_states), _checks.integer(steps, "steps", low=0)
    model = mdp if policy is None else chain_of(mdp, named_policy(mdp, policy))
    q, values = q_function(model, 1.0), np.zeros(mdp.n_states)
    for _ in range(steps):
        values = q(values).max(axis=1)
        values[mdp.terminal] = _at_start(values, start)
    return _at_start(values, start)


def optimal_gain(mdp: FiniteMDP) -> float | None:
    """Return the optimal average reward per step if it is the same from every state.

    Return None for models with terminal states, with a state-dependent gain, or with more than ``GAIN_STATES`` states.
    """
    if mdp.terminal.any() or mdp.n_states > GAIN_STATES:
        return None
    try:
        return gain(mdp).gain
    except (ValueError, RuntimeError):  # the gain depends on the state, or the solver did not converge
        return None


def _start(env: Environment) -> Any:
    return env.start if env.start_probabilities is None else env.start_probabilities


def _at_start(values: NDArray[np.float64], start: Any) -> float:
    """Return the value of a start state, or the mean over start probabilities ``[S]``."""
    return float(values[start] if np.ndim(start) == 0 else values @ start)
