"""The tree of histories in which BAMCP and BAUCT search by UCT: its nodes and what is done to them.

A node is a history h, with the state that it ends in; N(h) counts its simulations, N(h, a) and Q(h, a) those that
chose ``a`` and their mean return. The tree is a struct of arrays, children found through a hash table: a node takes
some 100 bytes for 4 actions (a child array over all S states, as in the original program, takes 8·S·A). At TREE_BYTES
bytes it stops growing, and simulations go on below it by rollouts.

**Reuse.** After a real transition the child (a, s', r) is the root of the next search, with its statistics: they are
samples from the very belief that has now come true. They were cut off one step earlier than new ones will be.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from bamdp._kernels.bundles import zeros
from bamdp._kernels.jit import kernel, primitive
from bamdp._kernels.random import below

ROOT, NO_NODE = 0, -1
NODES, SIMULATIONS_LEFT = 0, 1  # entries of HistoryTree.used
NO_KEY = -1  # the root's
TREE_BYTES = 64_000_000  # that a tree may take


class HistoryTree(NamedTuple):
    """Nodes in the order of their making, so that a parent stands before its children; all are written to."""

    key: Annotated[np.ndarray, "int64 [M]"]  # (parent·A + action)·S + state, NO_KEY for the root
    reward: Annotated[np.ndarray, "float64 [M]"]  # the reward on the way in, where it is part of the history
    visits: Annotated[np.ndarray, "int64 [M]"]  # N(h)
    tries: Annotated[np.ndarray, "int64 [M, A]"]  # N(h, a)
    value: Annotated[np.ndarray, "float64 [M, A]"]  # Q(h, a)
    table: Annotated[np.ndarray, "int32 [T]"]  # nodes by the hash of their key, or NO_NODE; T is a power of 2
    used: Annotated[np.ndarray, "int64 [2]"]  # NODES that there are, SIMULATIONS_LEFT to be done
    path: Annotated[np.ndarray, "int64 [D, 2]"]  # node and action of each step in the tree
    gain: Annotated[np.ndarray, "float64 [D]"]  # the rewards of these steps
    returns: Annotated[np.ndarray, "float64 [A, 3]"]  # of this search's at the root: number, sum, of squares


# --- choosing and backing up ---------------------------------------------------------------------------------

_COUNTS = np.arange(1.0, 4097.0)
_ROOT_LOG = np.concatenate([[0.0], np.sqrt(np.log(_COUNTS))])
_INVERSE_ROOT = np.concatenate([[0.0], 1.0 / np.sqrt(_COUNTS)])


@primitive
def root_log(n):
    """Return √log n, from a table where it is small: most nodes are."""
    return _ROOT_LOG[n] if n < _ROOT_LOG.shape[0] else math.sqrt(math.log(n))


@primitive
def inverse_root(n):
    """Return 1/√n."""
    return _INVERSE_ROOT[n] if n < _INVERSE_ROOT.shape[0] else 1.0 / math.sqrt(n)


@primitive
def ucb_action(tree, space, node, s, exploration, rng):
    """argmax of Q + c √(log N / N_a); untried actions first, ties at random."""
    scale = exploration * root_log(tree.visits[node])
    best, action, ties = -np.inf, 0, 1
    for a in range(tree.tries.shape[1]):
        if not space.allowed[s, a]:
            continue
        n = tree.tries[node, a]
        score = tree.value[node, a] + scale * inverse_root(n) if n > 0 else np.inf
        if score > best:
            best, action, ties = score, a, 1
        elif score == best:
            ties += 1
            if below(rng, ties) == 0:
                action = a
    return action


@primitive
def back_up_return(tree, inside, value, discount):
    """Give the return to the nodes on the way, from the last to the root."""
    for i in range(inside - 1, -1, -1):
        node, a = tree.path[i, 0], tree.path[i, 1]
        value = tree.gain[i] + discount * value
        n = tree.tries[node, a] + 1
        tree.tries[node, a] = n
        tree.visits[node] += 1
        tree.value[node, a] += (value - tree.value[node, a]) / n
        if i == 0:
            tree.returns[a, 0] += 1.0
            tree.returns[a, 1] += value
            tree.returns[a, 2] += value * value


# --- nodes --------------------------------------------------------------------------------------------------


@primitive
def find_node(tree, key, r, by_reward):
    """Return (node with this key and reward, or NO_NODE; the table's entry for it)."""
    last = tree.table.shape[0] - 1
    slot = ((((key ^ (key >> 31)) & 0x7FFFFFFF) * 1640531527) >> 24) & last  # the product stays below 2^62
    node = np.int64(tree.table[slot])
    while node != NO_NODE and not (tree.key[node] == key and (not by_reward or tree.reward[node] == r)):
        slot = (slot + 1) & last
        node = np.int64(tree.table[slot])
    return node, slot


@primitive
def child_node(tree, space, parent, a, s, r, by_reward):
    """Return the child (a, s, r) of a node, made if it is not there; NO_NODE when the tree is full."""
    n_states, n_actions = space.allowed.shape
    key = (parent * n_actions + a) * n_states + s
    node, slot = find_node(tree, key, r, by_reward)
    if node == NO_NODE and tree.used[NODES] < tree.key.shape[0]:
        node = tree.used[NODES]
        tree.used[NODES] = node + 1
        tree.table[slot] = node
        tree.key[node] = key
        tree.reward[node] = r
        clear_node(tree, node)
    return node


@primitive
def clear_node(tree, node):
    """Clear a node: it has no simulation yet."""
    tree.visits[node] = 0
    for a in range(tree.tries.shape[1]):
        tree.tries[node, a] = 0
        tree.value[node, a] = 0.0


@kernel
def plant_root(tree):
    """Make a tree of nothing but a root."""
    for i in range(tree.table.shape[0]):
        tree.table[i] = NO_NODE
    tree.used[NODES] = 1
    tree.key[ROOT] = NO_KEY
    clear_node(tree, ROOT)


@kernel
def rehash(tree, by_reward):
    """Fill the table from the nodes."""
    for i in range(tree.table.shape[0]):
        tree.table[i] = NO_NODE
    for node in range(1, tree.used[NODES]):
        tree.table[find_node(tree, tree.key[node], tree.reward[node], by_reward)[1]] = node


@kernel
def reroot(tree, space, a, s, r, by_reward, moved):
    """Make the root's child (a, s, r) the root and drop everything else; returns False if there is none.

    ``moved``, int64 [nodes], is scratch: the new number of each node. Nodes stand after their parents, so one
    pass in order is enough, and nothing is overwritten before it is read.
    """
    n_states, n_actions = space.allowed.shape
    width = n_actions * n_states
    root = find_node(tree, (ROOT * n_actions + a) * n_states + s, r, by_reward)[0]
    if root == NO_NODE or tree.visits[root] == 0:
        return False
    for node in range(root):
        moved[node] = NO_NODE
    kept = 0
    for node in range(root, tree.used[NODES]):
        parent, edge = tree.key[node] // width, tree.key[node] % width
        if node != root and moved[parent] == NO_NODE:
            moved[node] = NO_NODE
            continue
        moved[node] = kept
        tree.key[kept] = NO_KEY if node == root else moved[parent] * width + edge
        tree.reward[kept] = tree.reward[node]
        tree.visits[kept] = tree.visits[node]
        for b in range(n_actions):
            tree.tries[kept, b] = tree.tries[node, b]
            tree.value[kept, b] = tree.value[node, b]
        kept += 1
    tree.used[NODES] = kept
    return True


def new_history_tree(n_actions: int, n_nodes: int, depth: int) -> HistoryTree:
    """Return room for so many nodes; there is a root."""
    slots = 1 << max(2, (2 * n_nodes - 1).bit_length())
    tree = zeros(HistoryTree, M=n_nodes, A=n_actions, D=depth, T=slots)
    plant_root(tree)
    return tree


def most_nodes(n_actions: int) -> int:
    """Return how many nodes TREE_BYTES holds: of each its row, and up to four entries of the table."""
    return TREE_BYTES // (8 * (3 + 2 * n_actions) + 16)


def with_node_room(tree: HistoryTree, n: int, by_reward: bool) -> HistoryTree:
    """Return the same tree with room for ``n`` more nodes, as far as TREE_BYTES allows."""
    n_actions = tree.tries.shape[1]
    used, most = int(tree.used[NODES]), most_nodes(tree.tries.shape[1])
    need = min(used + n, most)
    if need <= len(tree.key):
        return tree
    grown = new_history_tree(n_actions, min(max(need, 2 * len(tree.key)), most), len(tree.gain))
    for name in ("key", "reward", "visits", "tries", "value"):
        getattr(grown, name)[:used] = getattr(tree, name)[:used]
    grown.used[NODES] = used
    grown.returns[:] = tree.returns
    rehash(grown, by_reward)
    return grown
