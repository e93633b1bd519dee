"""The trees of BFS3, one below each successor of the root, grown once more and read out.

A search keeps only the last of them. The draws and ties of each come from a stream of its own, so growing it again
gives the very same tree.
"""

from __future__ import annotations

import math

import numpy as np

from bamdp.beliefs.belief import Belief
from bamdp.planners.base import Plan
from bamdp.planners.bfs3 import bound_successor
from bamdp.planners.shared.bfs3_tree import NO_SUCCESSOR, TREE_NODES, BFS3Params, BFS3Tree
from bamdp.planners.shared.history_tree import NO_NODE, ROOT
from bamdp.planners.views.tree import Tree, TreeBuilder


def view_bounds(tree: BFS3Tree, params: BFS3Params, belief: Belief, state: int, plan: Plan) -> Tree:
    """Return a tree of upper bounds, with the lower ones beside them. Equal successors of the root stay apart.

    The lower bounds of root actions are the plan's, which also covers what lies beyond the last step.
    """
    builder = TreeBuilder()
    best = plan.candidates[[c.action for c in plan.candidates].index(plan.action)]
    root = builder.hyper_state(
        NO_NODE, state, count=1, value=best.value, lower=plan.details["lower"][best.action]
    )
    chosen = NO_NODE
    for candidate in plan.candidates:
        a = candidate.action
        choice = builder.choice(
            root,
            a,
            value=candidate.value,
            spread=candidate.spread,
            lower=plan.details["lower"][a],
            count=candidate.count,
        )
        chosen = choice if a == plan.action else chosen
        for c in range(params.C):
            _successor(builder, choice, tree, params, belief, state * belief.n_actions + a, a, c)
    return builder.finish(chosen)


def _successor(
    builder: TreeBuilder,
    choice: int,
    tree: BFS3Tree,
    params: BFS3Params,
    belief: Belief,
    row: int,
    a: int,
    c: int,
) -> None:
    s2, r = int(tree.root_next[a, c]), float(tree.root_reward[a, c])
    bound_successor(belief.arrays, params, tree, row, a, c)  # it fitted before
    node = builder.hyper_state(
        choice,
        s2,
        path=(s2,),
        gains=(r,),
        reward=r,
        share=1.0 / params.C,
        count=1,
        value=_bound(tree.root_upper[a, c], r, params),
        lower=_bound(tree.root_lower[a, c], r, params),
    )
    if params.depth > 1 and not belief.space.terminal[s2] and tree.used[TREE_NODES] > 0:
        _read(builder, node, tree, params, int(ROOT))


def _bound(total: float, r: float, params: BFS3Params) -> float:
    """Return the bound of the successor itself, out of r + γ times it."""
    return (float(total) - r) / params.discount if params.discount > 0.0 else math.nan


def _read(builder: TreeBuilder, at: int, tree: BFS3Tree, params: BFS3Params, node: int) -> None:
    """Add what stands below a node; trajectories are short, so the stack need not be deep."""
    waiting = [(at, node)]
    while waiting:
        at, node = waiting.pop()
        for a in np.flatnonzero(np.isfinite(tree.upper[node])).tolist():
            drawn = tree.begin[node, a] != NO_SUCCESSOR
            choice = builder.choice(
                at,
                a,
                value=float(tree.upper[node, a]),
                lower=float(tree.lower[node, a]),
                count=params.C if drawn else 0,
            )
            if not drawn:
                continue
            begin = int(tree.begin[node, a])
            for edge in range(begin, begin + int(tree.size[node, a])):
                s2, r = int(tree.next[edge]), float(tree.reward[edge])
                child = builder.hyper_state(
                    choice,
                    s2,
                    path=(s2,),
                    gains=(r,),
                    reward=r,
                    share=float(tree.draws[edge]) / params.C,
                    count=int(tree.draws[edge]),
                    value=float(tree.edge_upper[edge]),
                    lower=float(tree.edge_lower[edge]),
                )
                if tree.child[edge] != NO_NODE:
                    waiting.append((child, int(tree.child[edge])))
