"""Trees of histories: of BAMCP and BAUCT, and of BFS3.

That of BAMCP and BAUCT is read out of what the search left behind.

BFS3 has a tree below each successor of the root, and a search keeps only the last of them. The draws and ties of each
come from a stream of its own, so growing it again gives the very same tree.
"""

from __future__ import annotations

import math

import numpy as np

from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.planners.base import Plan
from bamdp.planners.bfs3 import NO_SUCCESSOR, TREE_NODES, BFS3Params, BFS3Tree, bound_successor
from bamdp.planners.shared.history_tree import NODES
from bamdp.planners.shared.tree_search import TreeSearchMemory
from bamdp.planners.tree import NO_NODE, ROOT, Tree, TreeBuilder


def view_histories(memory: TreeSearchMemory, belief: Belief, state: int, plan: Plan) -> Tree:
    """Return histories as hyper-states and tried actions as choices; the value of a history is its mean return.

    The simulations of a choice that ended above its children (at the history that they made, at the depth limit)
    are in its count, so the shares of the children may sum to less than 1. A history that only the last of all
    simulations has met was made and not yet searched from: its count is 0.
    """
    tree, S, A = memory.tree, belief.n_states, belief.n_actions
    n = int(tree.used[NODES])
    tries, visits = tree.tries[:n], tree.visits[:n]
    with np.errstate(invalid="ignore"):
        means = (tries * tree.value[:n]).sum(axis=1) / visits
    spreads = {c.action: c.spread for c in plan.candidates}
    builder = TreeBuilder(nodes=n * (A + 1))
    choices: dict[tuple[int, int], int] = {}  # by history and action
    states = [state]
    for node in range(n):
        known = {"value": float(means[node]), "count": int(visits[node])}
        if node == ROOT:
            at = builder.hyper_state(NO_NODE, state, **known)
        else:
            pair, s2 = divmod(int(tree.key[node]), S)
            parent, a = divmod(pair, A)
            states.append(s2)
            r = _reward(memory, belief, node, states[parent] * A + a, s2)
            share = float(visits[node] / tries[parent, a])
            at = builder.step(choices[parent, a], s2, r, share=share, **known)
        for a in np.flatnonzero(tries[node]).tolist():
            spread = spreads[a] if node == ROOT else math.nan
            value, count = float(tree.value[node, a]), int(tries[node, a])
            choices[node, a] = builder.choice(at, a, value=value, spread=spread, count=count)
    return builder.finish(choices[ROOT, plan.action])


def _reward(memory: TreeSearchMemory, belief: Belief, node: int, row: int, s2: int) -> float:
    """Return the reward on the way into a history: kept in it, or known; NaN where neither."""
    if memory.params.by_reward:
        return float(memory.tree.reward[node])
    return float(verbs.outcome(belief.rewards, row, s2, 0)[0]) if belief.rewards.certain else math.nan


def view_bounds(tree: BFS3Tree, params: BFS3Params, belief: Belief, state: int, plan: Plan) -> Tree:
    """Return a tree of upper bounds, with the lower ones beside them. Equal successors of the root stay apart.

    The lower bounds of root actions are the plan's, which also covers what lies beyond the last step.
    """
    builder, lower = TreeBuilder(), plan.details["lower"]
    root = builder.hyper_state(NO_NODE, state, count=1, value=plan.value, lower=lower[plan.action])
    for candidate in plan.candidates:
        a = candidate.action
        known = {"value": candidate.value, "spread": candidate.spread, "lower": lower[a]}
        choice = builder.choice(root, a, count=candidate.count, **known)
        for c in range(params.C):
            bound_successor(
                belief.arrays, params, tree, state * belief.n_actions + a, a, c
            )  # it fitted before
            s2, r = int(tree.root_next[a, c]), float(tree.root_reward[a, c])
            bounds = {"value": tree.root_upper[a, c], "lower": tree.root_lower[a, c]}
            known = {name: _without(r, float(total), params.discount) for name, total in bounds.items()}
            node = builder.step(choice, s2, r, share=1.0 / params.C, count=1, **known)
            if params.depth > 1 and not belief.space.terminal[s2] and tree.used[TREE_NODES] > 0:
                _read(builder, node, tree, params)
    return builder.finish(builder.at_root(plan.action))


def _without(r: float, total: float, discount: float) -> float:
    """Return the bound of a successor itself, out of r + γ times it."""
    return (total - r) / discount if discount > 0.0 else math.nan


def _read(builder: TreeBuilder, at: int, tree: BFS3Tree, params: BFS3Params) -> None:
    """Add what stands below the root of the tree of one successor."""
    waiting = [(at, int(ROOT))]
    while waiting:
        at, node = waiting.pop()
        for a in np.flatnonzero(np.isfinite(tree.upper[node])).tolist():
            drawn = tree.begin[node, a] != NO_SUCCESSOR
            upper, lower = float(tree.upper[node, a]), float(tree.lower[node, a])
            choice = builder.choice(at, a, value=upper, lower=lower, count=params.C if drawn else 0)
            begin = int(tree.begin[node, a])
            for edge in range(begin, begin + int(tree.size[node, a])) if drawn else ():
                child = builder.step(
                    choice,
                    int(tree.next[edge]),
                    float(tree.reward[edge]),
                    share=float(tree.draws[edge]) / params.C,
                    count=int(tree.draws[edge]),
                    value=float(tree.edge_upper[edge]),
                    lower=float(tree.edge_lower[edge]),
                )
                if tree.child[edge] != NO_NODE:
                    waiting.append((child, int(tree.child[edge])))
