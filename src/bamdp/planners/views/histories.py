"""The tree of BAMCP and BAUCT, read out of what the search left behind."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.planners.shared.history_tree import NO_NODE, NODES, ROOT
from bamdp.planners.shared.tree_search import TreeSearchMemory
from bamdp.planners.views.tree import CHOICE, HYPER_STATE, Tree, make_tree


def view_histories(memory: TreeSearchMemory, belief: Belief, state: int, action: int) -> Tree:
    """Return histories as hyper-states and tried actions as choices; the value of a history is its mean return.

    The simulations of a choice that ended above its children (at the history that they made, at the depth limit)
    are in its count, so the shares of the children may sum to less than 1. A history that only the last of all
    simulations has met was made and not yet searched from: its count is 0.
    """
    tree, A = memory.tree, belief.n_actions
    n = int(tree.used[NODES])
    key, tries, q = tree.key[:n], tree.tries[:n], tree.value[:n]
    state_of = np.where(key >= 0, key % belief.n_states, state)
    pair = key // belief.n_states  # parent history · A + action
    node, chosen_action = np.nonzero(tries)  # the choices, by history
    # a history is followed by its choices, so that parents stand before their children
    n_choices = np.count_nonzero(tries, axis=1)
    at = np.arange(n) + np.concatenate([[0], np.cumsum(n_choices)[:-1]])
    rank = np.arange(len(node)) - np.concatenate([[0], np.cumsum(n_choices)[:-1]])[node]
    choice_at = at[node] + 1 + rank
    place = np.full(n * A, NO_NODE)  # of a choice, by history · A + action
    place[node * A + chosen_action] = choice_at
    size = n + len(node)
    columns = {
        name: np.full(size, NO_NODE) for name in ("kind", "parent", "depth", "state", "action", "count")
    }
    columns |= {name: np.full(size, np.nan) for name in ("reward", "share", "value", "spread")}
    inner = np.arange(n) != ROOT

    columns["kind"][at], columns["kind"][choice_at] = HYPER_STATE, CHOICE
    columns["parent"][at[inner]], columns["parent"][choice_at] = place[pair[inner]], at[node]
    columns["state"][at], columns["state"][choice_at] = state_of, state_of[node]
    columns["action"][at[inner]], columns["action"][choice_at] = pair[inner] % A, chosen_action
    columns["count"][at], columns["count"][choice_at] = tree.visits[:n], tries[node, chosen_action]
    depth = _depths(np.where(inner, pair // A, NO_NODE))
    columns["depth"][at], columns["depth"][choice_at] = depth, depth[node]
    with np.errstate(invalid="ignore"):
        mean = (tries * q).sum(axis=1) / tree.visits[:n]
    columns["value"][at], columns["value"][choice_at] = mean, q[node, chosen_action]
    columns["share"][at[inner]] = tree.visits[:n][inner] / tries.ravel()[pair[inner]]
    rewards = _rewards(memory, belief, state_of, pair, inner)
    columns["reward"][at] = rewards
    at_root = node == ROOT
    columns["spread"][choice_at[at_root]] = _spreads(tree.returns)[chosen_action[at_root]]

    begin = np.zeros(size + 1, np.int64)  # one step into every history but the root
    begin[1:] = np.cumsum(columns["kind"] == HYPER_STATE) - 1
    return make_tree(
        columns,
        int(place[action]),
        path_begin=begin,
        path=state_of[inner].astype(np.int32),
        path_reward=rewards[inner],
    )


def _depths(parent: NDArray[np.int64]) -> NDArray[np.int64]:
    depth = np.zeros(len(parent), np.int64)
    for i in range(1, len(parent)):
        depth[i] = depth[parent[i]] + 1
    return depth


def _rewards(
    memory: TreeSearchMemory,
    belief: Belief,
    state_of: NDArray[np.int64],
    pair: NDArray[np.int64],
    inner: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return the reward on the way into each history: kept in it, or known; NaN where neither."""
    n = len(pair)
    out = np.full(n, np.nan)
    if memory.params.by_reward:
        out[inner] = memory.tree.reward[:n][inner]
    elif belief.rewards.certain:
        A = belief.n_actions
        row = state_of[pair[inner] // A] * A + pair[inner] % A
        out[inner] = [verbs.outcome(belief.rewards, *step, 0)[0] for step in zip(row, state_of[inner])]
    return out


def _spreads(returns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the spreads of the root's returns, by action; as in the plan's candidates."""
    n, total, squares = returns.T
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.maximum(0.0, squares - total * total / n) / (n - 1.0)
    return np.where(n > 1, np.sqrt(variance), np.nan)
