"""The tree of histories grown selectively by UCT, BFS3 and Bayesian sparse sampling.

A node represents a history h of simulated steps and stores its last state. The tree is a struct of arrays. The children
of a node for each action form a linked list, so a node takes about 150 bytes for 4 actions (a child array over all S
states, as in the original BAMCP, takes 8·S·A).
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bamdp._kernels.jit import primitive
from bamdp.planners.base import Plan
from bamdp.planners.tree import (
    ACTION,
    CHOICE,
    COUNT,
    DEPTH,
    HYPER_STATE,
    NO_NODE,
    NODES,
    PARENT,
    ROOT,
    STATE,
    Tree,
    chosen_nodes,
)

UNOPENED = -2  # in ``child``: the node's actions are not initialised
SIBLING = 5  # in HistoryTree.node, after the columns shared with TreeRecord
DEEPEST = 1  # in HistoryTree.used, after NODES


class HistoryTree(NamedTuple):
    """Nodes in order of creation, so parents precede their children; all arrays are written to."""

    node: Annotated[np.ndarray, "int64 [M, 6]"]  # STATE, PARENT, ACTION, DEPTH, COUNT, SIBLING
    reward: Annotated[np.ndarray, "float64 [M]"]  # of the step into the node
    child: Annotated[np.ndarray, "int64 [M, A]"]  # most recent child for each action, or NO_NODE
    tries: Annotated[
        np.ndarray, "int64 [M, A]"
    ]  # number of times an action was tried or its next state drawn
    value: Annotated[np.ndarray, "float64 [M, A]"]  # Q(h, a)
    used: Annotated[np.ndarray, "int64 [2]"]  # number of NODES, DEPTH of the DEEPEST


@primitive
def plant_root(tree, s):
    """Reset the tree to a single root node."""
    tree.used[NODES] = 0
    tree.used[DEEPEST] = 0
    return append_node(tree, NO_NODE, 0, s, 0.0)


@primitive
def append_node(tree, parent, a, s, r):
    """Prepend a node to the children of its parent's action ``a`` and return it."""
    node = tree.used[NODES]
    tree.used[NODES] = node + 1
    tree.reward[node] = r
    tree.child[node, 0] = UNOPENED
    info = tree.node[node]
    info[STATE] = s
    info[PARENT] = parent
    info[ACTION] = a
    info[COUNT] = 0
    info[SIBLING] = NO_NODE
    info[DEPTH] = 0
    if parent != NO_NODE:
        info[SIBLING] = tree.child[parent, a]
        info[DEPTH] = tree.node[parent, DEPTH] + 1
        tree.child[parent, a] = node
        tree.used[DEEPEST] = max(tree.used[DEEPEST], info[DEPTH])
    return node


@primitive
def open_node(tree, node, value):
    """Initialise the actions of a node with the given value."""
    for a in range(tree.child.shape[1]):
        tree.child[node, a] = NO_NODE
        tree.tries[node, a] = 0
        tree.value[node, a] = value


@primitive
def find_child(tree, node, a, s, r, by_reward):
    """Return the child (a, s, r), or (a, s) if histories exclude rewards; NO_NODE if there is none."""
    child = tree.child[node, a]
    while child != NO_NODE and (tree.node[child, STATE] != s or (by_reward and tree.reward[child] != r)):
        child = tree.node[child, SIBLING]
    return child


class Shown(NamedTuple):
    """Displayed data of n nodes, parents first, and of the actions tried there."""

    node: np.ndarray  # int64 [n, 5]: STATE, PARENT, ACTION, DEPTH, COUNT
    reward: np.ndarray  # float64 [n]
    share: np.ndarray  # float64 [n]
    value: np.ndarray  # float64 [n, 2]: value, lower bound
    tried: np.ndarray  # bool [n, A]
    tries: np.ndarray  # int64 [n, A]
    q: np.ndarray  # float64 [n, A, 3]: value, spread, lower bound


def shown_histories(tree: HistoryTree, plan: Plan, worth: NDArray[np.float64], known: bool = True) -> Tree:
    """Return the tree behind a plan; ``worth`` holds its node values, [M], ``known`` tells whether rewards are
    known."""
    n = int(tree.used[NODES])
    node, tries = tree.node[:n], tree.tries[:n]
    value, q = np.full((n, 2), np.nan), np.full((*tries.shape, 3), np.nan)
    value[:, 0], q[..., 0] = worth[:n], tree.value[:n]
    for candidate in plan.candidates:
        q[ROOT, candidate.action, 1] = candidate.spread
    share = node[:, COUNT] / np.maximum(1, tries[node[:, PARENT], node[:, ACTION]])
    reward = tree.reward[:n] if known else np.full(n, np.nan)
    shown = Shown(node[:, : COUNT + 1], reward, share, value, tries > 0, tries, q)
    return shown_tree(shown, plan.action)


def shown_tree(shown: Shown, action: int) -> Tree:
    """Return a tree of histories, each node followed by its choices; ``action`` was chosen at the root."""
    n, A = shown.tried.shape
    at, b = np.nonzero(shown.tried)
    order = np.argsort(np.concatenate([np.arange(n) * (A + 1), at * (A + 1) + 1 + b]))
    place = np.argsort(order)
    choice = np.full((n, A), NO_NODE)
    choice[at, b] = place[n:]
    state, parent, taken, depth, count = shown.node.T

    def column(of_nodes: Any, of_choices: Any, at_root: Any = None) -> NDArray[Any]:
        """Return one array that interleaves nodes and choices."""
        both = np.concatenate([of_nodes, np.broadcast_to(of_choices, at.shape)])
        if at_root is not None:
            both[ROOT] = at_root
        return both[order]

    kind = column(np.full(n, HYPER_STATE), CHOICE)
    above = column(choice[parent, taken], place[at], NO_NODE)
    value, nothing = column(shown.value[:, 0], shown.q[at, b, 0]), np.full(n, np.nan)
    reached = (kind == HYPER_STATE) & (above != NO_NODE)
    states, rewards = column(state, state[at]), column(shown.reward, np.nan, np.nan)
    return Tree(
        kind=kind,
        parent=above,
        depth=column(depth, depth[at]),
        state=states,
        action=column(taken, b, NO_NODE),
        policy=np.full(len(kind), NO_NODE),
        reward=rewards,
        share=column(shown.share, np.nan, np.nan),
        count=column(count, shown.tries[at, b], max(1, count[ROOT])),
        value=value,
        spread=column(nothing, shown.q[at, b, 1]),
        lower=column(shown.value[:, 1], shown.q[at, b, 2]),
        chosen=chosen_nodes(above, kind, value, int(choice[ROOT, action])),
        path_begin=np.append(0, np.cumsum(reached)),
        path=states[reached].astype(np.int32),
        path_reward=rewards[reached],
        policies=np.zeros((0, 0), np.int32),
        total=len(kind),
    )
