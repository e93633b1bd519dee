"""A tree of histories, which UCT, BFS3 and Bayesian sparse sampling grow where it pays.

A node is a history h of simulated steps, with the state that it ends in. The tree is a struct of arrays; the children
of a node by one action are a linked list, so a node takes about 150 bytes for 4 actions (a child array over all S
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
    LOWER,
    NO_NODE,
    NODES,
    PARENT,
    ROOT,
    SPREAD,
    STATE,
    VALUE,
    Tree,
    TreeRecord,
    add_node,
    add_outcome,
    add_step,
    new_record,
    recorded_tree,
)

UNOPENED = -2  # in ``child``: nothing is written of the node's actions
SIBLING = 5  # in HistoryTree.node, after the columns that it shares with a TreeRecord
DEEPEST = 1  # in HistoryTree.used, after NODES


class HistoryTree(NamedTuple):
    """Nodes in the order in which they are made, so that a parent stands before its children; all are written to."""

    node: Annotated[np.ndarray, "int64 [M, 6]"]  # STATE, PARENT, ACTION, DEPTH, COUNT, SIBLING
    reward: Annotated[np.ndarray, "float64 [M]"]  # on the way in
    child: Annotated[np.ndarray, "int64 [M, A]"]  # the latest child by each action, or NO_NODE
    tries: Annotated[np.ndarray, "int64 [M, A]"]  # how often an action was tried, or its next state drawn
    value: Annotated[np.ndarray, "float64 [M, A]"]  # Q(h, a)
    used: Annotated[np.ndarray, "int64 [2]"]  # number of NODES, DEPTH of the DEEPEST


@primitive
def plant_root(tree, s):
    """Make a tree of nothing but a root."""
    tree.used[NODES] = 0
    tree.used[DEEPEST] = 0
    return append_node(tree, NO_NODE, 0, s, 0.0)


@primitive
def append_node(tree, parent, a, s, r):
    """Add a node, the first child of its parent's action ``a``, and return it."""
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
    """Begin the actions of a node, each with this value."""
    for a in range(tree.child.shape[1]):
        tree.child[node, a] = NO_NODE
        tree.tries[node, a] = 0
        tree.value[node, a] = value


@primitive
def find_child(tree, node, a, s, r, by_reward):
    """Return the child (a, s, r), or (a, s) if rewards are no part of histories; NO_NODE if there is none."""
    child = tree.child[node, a]
    while child != NO_NODE and (tree.node[child, STATE] != s or (by_reward and tree.reward[child] != r)):
        child = tree.node[child, SIBLING]
    return child


def _plain(function: Any) -> Any:
    """Return a primitive as plain Python, which is quicker where it is called from Python."""
    return getattr(function, "py_func", function)


py_add_node, py_add_outcome, py_add_step = _plain(add_node), _plain(add_outcome), _plain(add_step)


def record_histories(
    record: TreeRecord, top: int, tree: HistoryTree, tried: NDArray[np.bool_], nodes: Any, choices: Any
) -> None:
    """Write what stands below the root of a tree to a record, in which the root is node ``top``.

    Parameters
    ----------
    tried
        Which actions of the nodes are choices, bool [n, A].
    nodes
        ``count``, ``reward``, ``share``, ``value`` and, if there is one, ``lower`` of the nodes, each an array [n].
    choices
        ``count``, ``value`` and, if known, ``spread`` and ``lower`` of the actions, each an array [n, A].
    """
    recorded: dict[tuple[int, int], int] = {}
    for node in range(len(tried)):
        parent, a, s = (int(tree.node[node, column]) for column in (PARENT, ACTION, STATE))
        here = top
        if node != ROOT:
            here = int(py_add_outcome(record, recorded[parent, a], nodes["share"][node]))
            py_add_step(record, here, s, nodes["reward"][node], 1.0)
            _put(record, here, nodes, node)
        for b in np.flatnonzero(tried[node]).tolist():
            recorded[node, b] = choice = int(py_add_node(record, CHOICE, here, s, b, 0))
            _put(record, choice, choices, (node, b))


def recorded_histories(
    tree: HistoryTree, plan: Plan, worth: NDArray[np.float64], *, rewards_known: bool = True
) -> Tree:
    """Return the tree behind a plan; ``worth`` are the values of its nodes, [M]."""
    n = int(tree.used[NODES])
    tries, (parent, a, visits) = tree.tries[:n], tree.node[:n, [PARENT, ACTION, COUNT]].T
    nodes = {"count": visits, "value": worth, "share": visits / np.maximum(1, tries[parent, a])}
    nodes["reward"] = tree.reward if rewards_known else np.full(n, np.nan)
    choices = {"count": tries, "value": tree.value, "spread": np.full(tries.shape, np.nan)}
    for candidate in plan.candidates:
        choices["spread"][ROOT, candidate.action] = candidate.spread
    record = new_record(n + tries.size, tries.shape[1])
    root = record_root(record, int(tree.node[ROOT, STATE]), worth[ROOT], int(visits[ROOT]) or 1)
    record_histories(record, root, tree, tries > 0, nodes, choices)
    return recorded_tree(record, int(np.count_nonzero(tries[ROOT, : plan.action])))


def record_root(record: TreeRecord, state: int, value: float, count: int) -> int:
    """Write the root of a decision to an empty record."""
    root = int(py_add_node(record, HYPER_STATE, NO_NODE, state, NO_NODE, count))
    record.real[root, VALUE] = value
    return root


def _put(record: TreeRecord, node: int, columns: Any, at: Any) -> None:
    """Write what is known of a node: the entries ``at`` of some arrays."""
    if node != NO_NODE:
        record.whole[node, COUNT] = columns["count"][at]
        for name, column in (("value", VALUE), ("spread", SPREAD), ("lower", LOWER)):
            if name in columns:
                record.real[node, column] = columns[name][at]
