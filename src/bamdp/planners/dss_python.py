"""DSS for a policy generator in plain Python: Algorithm 2 as an ordinary recursion.

The same tree as :mod:`bamdp.planners.dss`. Models are handed out as :class:`~bamdp.FiniteMDP`, one by one, and
the K steps of a sample are still compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bamdp._kernels.jit import kernel
from bamdp.beliefs import verbs
from bamdp.beliefs.base import Belief
from bamdp.mdp.model import FiniteMDP

if TYPE_CHECKING:
    from bamdp.planners.dss import DSS, Memory


@kernel
def roll_out(T, R, space, K, discount, policy, s, rng):
    """K pushed steps of ``policy`` from ``s``; returns (last state, discounted return, steps)."""
    n_actions = space.allowed.shape[1]
    total, weight = 0.0, 1.0
    k = 0
    while k < K and not space.terminal[s]:
        row = s * n_actions + policy[s]
        s = verbs.advance(T, row, rng)
        r = verbs.draw_reward(R, row, s, rng)
        verbs.push_reward(R, row, s, r)
        total += weight * r
        weight *= discount
        k += 1
    return s, total, k


@kernel
def take_back(T, R, steps):
    """Pop ``steps`` steps."""
    for _ in range(steps):
        verbs.pop_reward(R)
        verbs.pop(T)


def search_in_python(planner: DSS, memory: Memory, belief: Belief, state: int, rng: np.ndarray) -> None:
    """Fill the root arrays of ``memory.tree`` as the compiled search does."""
    tree = memory.tree
    best = -np.inf
    for i in range(planner.n_policies):
        policy = _policy(planner.generator, belief.sample(rng), memory.discount)
        returns = _returns(planner, memory, belief, policy, state, 0, rng)
        tree.action[i] = policy[state]
        tree.value[i] = np.mean(returns)
        tree.spread[i] = np.std(returns, ddof=1) if len(returns) > 1 else np.nan
        if tree.value[i] > best:
            best = tree.value[i]
            tree.best[:] = policy


def _value(planner: DSS, memory: Memory, belief: Belief, state: int, h: int, rng: np.ndarray) -> float:
    """V_h of the hyper-state that the belief is in now."""
    if belief.space.terminal[state]:
        return 0.0
    if h == planner.n_stages:
        return planner.leaf_value(memory, belief, state, rng)
    best = -np.inf
    for _ in range(planner.n_policies):
        policy = _policy(planner.generator, belief.sample(rng), memory.discount)
        best = max(best, float(np.mean(_returns(planner, memory, belief, policy, state, h, rng))))
    return best


def _returns(
    planner: DSS, memory: Memory, belief: Belief, policy: np.ndarray, state: int, h: int, rng: np.ndarray
) -> list[float]:
    """M samples of Q(ω, π)."""
    returns = []
    for _ in range(planner.n_samples):
        end, total, steps = roll_out(
            belief.T, belief.R, belief.space, planner.n_steps, memory.discount, policy, state, rng
        )
        value = _value(planner, memory, belief, int(end), h + 1, rng)
        take_back(belief.T, belief.R, steps)
        returns.append(total + memory.discount**planner.n_steps * value)
    return returns


def _policy(generator: Any, mdp: FiniteMDP, discount: float) -> np.ndarray:
    """The user's policy, checked."""
    policy = np.asarray(generator(mdp, discount))
    if policy.shape != (mdp.n_states,) or not np.issubdtype(policy.dtype, np.integer):
        raise ValueError(
            f"the generator must return one action for each of the {mdp.n_states} states (integers), got "
            f"shape {list(policy.shape)} of {policy.dtype}"
        )
    bad = np.flatnonzero((policy < 0) | (policy >= mdp.n_actions))
    if not len(bad):
        allowed = np.asarray(mdp.action_mask)[np.arange(mdp.n_states), policy]
        bad = np.flatnonzero(~allowed & ~np.asarray(mdp.terminal))
    if len(bad):
        raise ValueError(
            f"the generator chose action {policy[bad[0]]} in state {bad[0]}, which does not exist"
        )
    return policy.astype(np.int32)
