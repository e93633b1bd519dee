"""What is there to be had: expected totals in an environment for one who knows its model.

A run begins again at a start state whenever an episode ends, so totals over T steps are those of the world with
restarts: in a backward sweep a terminal state is worth what the start is worth with as many steps left. Where
the truth of a run is drawn (a door that is open or closed), figures are means over the possible worlds, for one
who knows which it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bamdp import _checks
from bamdp.envs import Environment
from bamdp.mdp import FiniteMDP, gain, policy_iteration, total_reward
from bamdp.mdp.evaluation import named_policy
from bamdp.mdp.model import check_start
from bamdp.mdp.solution import chain_of, q_table


@dataclass(frozen=True)
class Ceilings:
    """The known-model figures of an environment."""

    value: float  # V* at the start, discounted
    gain: float | None  # optimal average reward a step; None where it is not one number
    optimum: float  # expected total of the best play over the horizon
    discounted: float  # the same, of the policy that is optimal for the discount
    random: float  # the same, of uniformly random play
    discount: float  # of `value` and `discounted`


def ceilings(env: Environment, discount: float, steps: int | None = None) -> Ceilings:
    """Solve an environment whose model is known, for ``steps`` (by default its horizon)."""
    discount = _checks.discount(discount)
    T = env.horizon if steps is None else _checks.integer(steps, "steps")
    parts = [(weight, _of_world(mdp, _start(env), discount, T)) for weight, mdp in env.worlds]
    gains = [(weight, part.gain) for weight, part in parts]
    return Ceilings(
        value=sum(weight * part.value for weight, part in parts),
        gain=None if any(g is None for _, g in gains) else sum(w * g for w, g in gains if g is not None),
        optimum=sum(weight * part.optimum for weight, part in parts),
        discounted=sum(weight * part.discounted for weight, part in parts),
        random=sum(weight * part.random for weight, part in parts),
        discount=discount,
    )


def optimal_total(env: Environment, steps: int) -> float:
    """The expected total of the best play over ``steps``."""
    return sum(weight * expected_total(mdp, _start(env), steps) for weight, mdp in env.worlds)


def expected_total(mdp: FiniteMDP, start: Any, steps: int, policy: Any = None) -> float:
    """As :func:`bamdp.total_reward`, but a terminal state is followed by the start."""
    if not mdp.terminal.any():
        return total_reward(mdp, start, steps, policy)
    start, steps = check_start(start, mdp.n_states), _checks.integer(steps, "steps", low=0)
    model = mdp if policy is None else chain_of(mdp, named_policy(mdp, policy))
    values = np.zeros(mdp.n_states)
    for _ in range(steps):
        values = q_table(model, 1.0, values).max(axis=1)
        values[mdp.terminal] = values[start] if np.ndim(start) == 0 else values @ start
    return float(values[start] if np.ndim(start) == 0 else values @ start)


def _of_world(mdp: FiniteMDP, start: Any, discount: float, steps: int) -> Ceilings:
    best = policy_iteration(mdp, discount)
    return Ceilings(
        value=float(best.values[start] if np.ndim(start) == 0 else best.values @ start),
        gain=_gain(mdp),
        optimum=expected_total(mdp, start, steps),
        discounted=expected_total(mdp, start, steps, best.policy),
        random=expected_total(mdp, start, steps, "uniform"),
        discount=discount,
    )


def _gain(mdp: FiniteMDP) -> float | None:
    if mdp.terminal.any():
        return None
    try:
        return gain(mdp).gain
    except (ValueError, RuntimeError):  # it depends on where one is, or was not found in time
        return None


def _start(env: Environment) -> Any:
    return env.start if env.start_probabilities is None else env.start_probabilities
