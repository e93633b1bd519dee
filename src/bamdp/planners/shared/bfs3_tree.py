"""The trees of BFS3: their nodes and edges, drawn from streams of their own, and the bounds on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bamdp._kernels.jit import primitive
from bamdp._kernels.random import below
from bamdp._kernels.streams import branch, open_stream
from bamdp._serial import saveable
from bamdp.beliefs import verbs
from bamdp.planners.shared.history_tree import NO_NODE

NO_ACTION, NO_SUCCESSOR = -1, -1
TREE_NODES, TREE_EDGES, ALL_NODES, TRAJECTORIES = 0, 1, 2, 3  # entries of BFS3Tree.used


@saveable
class BFS3Tree(NamedTuple):
    """The tree below one successor of the root, and what the root has found; all are written to."""

    stream: np.ndarray  # uint64 [M]: what the node's draws are seeded by
    begin: np.ndarray  # int64 [M, A]: first edge of a pair, or NO_SUCCESSOR
    size: np.ndarray  # int64 [M, A]: how many edges, distinct successors, it has
    upper: np.ndarray  # float64 [M, A]: U(s, a); -inf for actions that do not exist
    lower: np.ndarray  # float64 [M, A]: L(s, a)
    child: np.ndarray  # int64 [E]: node of the successor, or NO_NODE
    next: np.ndarray  # int64 [E]: its state
    reward: np.ndarray  # float64 [E]: the reward on the way
    draws: np.ndarray  # float64 [E]: how many of the C draws
    edge_upper: np.ndarray  # float64 [E]: U of the successor
    edge_lower: np.ndarray  # float64 [E]: L
    path: np.ndarray  # int64 [D, 3]: node, action, edge
    used: np.ndarray  # int64 [4]: nodes and edges of this tree, nodes of all trees, trajectories of all trees
    scratch: np.ndarray  # uint64 [4]: the generator of a node's draws
    ties: np.ndarray  # uint64 [4]: the generator that breaks ties in this tree
    root_next: np.ndarray  # int64 [A, C]: successors of the root
    root_reward: np.ndarray  # float64 [A, C]
    root_stream: np.ndarray  # uint64 [A, C]
    root_upper: np.ndarray  # float64 [A, C]: r + γ U
    root_lower: np.ndarray  # float64 [A, C]


@saveable
class BFS3Params(NamedTuple):
    """What does not change during a plan."""

    discount: float
    depth: int
    C: int
    n_trajectories: int  # per successor of the root
    high: float  # V_max
    low: float  # V_min
    leaf: float  # value at the depth limit
    by_action: bool  # successors of a pair can wait until it is taken
    certain: bool  # rewards are known


def new_bfs3_tree(n_actions: int, C: int, depth: int, n_nodes: int, n_edges: int) -> BFS3Tree:
    """Return room for a tree of so many nodes and edges."""
    pairs, edges, root = (n_nodes, n_actions), max(n_edges, C), (n_actions, C)
    return BFS3Tree(
        stream=np.zeros(n_nodes, np.uint64),
        begin=np.zeros(pairs, np.int64),
        size=np.zeros(pairs, np.int64),
        upper=np.zeros(pairs),
        lower=np.zeros(pairs),
        child=np.zeros(edges, np.int64),
        next=np.zeros(edges, np.int64),
        reward=np.zeros(edges),
        draws=np.zeros(edges),
        edge_upper=np.zeros(edges),
        edge_lower=np.zeros(edges),
        path=np.zeros((depth, 3), np.int64),
        used=np.zeros(4, np.int64),
        scratch=np.zeros(4, np.uint64),
        ties=np.zeros(4, np.uint64),
        root_next=np.zeros(root, np.int64),
        root_reward=np.zeros(root),
        root_stream=np.zeros(root, np.uint64),
        root_upper=np.zeros(root),
        root_lower=np.zeros(root),
    )


@primitive
def first_undrawn(tree, space, node, s):
    """Return a pair of the node whose successors have not been drawn, or NO_ACTION."""
    for a in range(space.allowed.shape[1]):
        if space.allowed[s, a] and tree.begin[node, a] == NO_SUCCESSOR:
            return a
    return NO_ACTION


@primitive
def optimistic_action(tree, node):
    """Return argmax_a U(s, a), ties at random."""
    most, action, ties = -np.inf, 0, 1
    for a in range(tree.upper.shape[1]):
        if tree.upper[node, a] > most:
            most, action, ties = tree.upper[node, a], a, 1
        elif tree.upper[node, a] == most and most > -np.inf:
            ties += 1
            if below(tree.ties, ties) == 0:
                action = a
    return action


@primitive
def widest_edge(tree, node, a):
    """Return the edge with the largest count · (U − L), ties at random; NO_NODE where all bounds have met."""
    most, edge, ties = 0.0, NO_NODE, 1
    begin = tree.begin[node, a]
    for e in range(begin, begin + tree.size[node, a]):
        width = tree.draws[e] * (tree.edge_upper[e] - tree.edge_lower[e])
        if width > most:
            most, edge, ties = width, e, 1
        elif width == most and most > 0.0:
            ties += 1
            if below(tree.ties, ties) == 0:
                edge = e
    return edge


@primitive
def highest_bound(bounds, node):
    """Return max_a of a row of bounds."""
    most = -np.inf
    for a in range(bounds.shape[1]):
        most = max(most, bounds[node, a])
    return most


@primitive
def first_bounds(space, params, s, level):
    """Return (U, L) of a successor that nothing is known of yet, ``level`` steps from the root."""
    if space.terminal[s]:
        return 0.0, 0.0
    if level == params.depth:
        return params.leaf, params.leaf
    return params.high, params.low


@primitive
def new_node(belief, params, tree, s, level, stream):
    """Append a node of which no successor is drawn."""
    space = belief.space
    n_actions = space.allowed.shape[1]
    node = tree.used[TREE_NODES]
    tree.used[TREE_NODES] = node + 1
    tree.stream[node] = stream
    for a in range(n_actions):
        tree.begin[node, a] = NO_SUCCESSOR
        tree.upper[node, a] = -np.inf
        tree.lower[node, a] = -np.inf
        if params.by_action and space.allowed[s, a]:
            r = verbs.draw_reward(
                belief.rewards, s * n_actions + a, 0, tree.scratch
            )  # the same for all next states
            upper, lower = first_bounds(space, params, 0, level + 1)
            tree.upper[node, a] = r + params.discount * upper
            tree.lower[node, a] = r + params.discount * lower


@primitive
def draw_successors(belief, params, tree, node, a, row, level):
    """Draw C next states of a pair into edges, equal ones into one."""
    T, R, space = belief.transitions, belief.rewards, belief.space
    begin = tree.used[TREE_EDGES]
    open_stream(branch(tree.stream[node], a), tree.scratch)
    end = begin
    for _ in range(params.C):
        s2 = verbs.draw(T, row, tree.scratch)
        if not params.certain:
            verbs.push(T, row, s2)
        r = verbs.draw_reward(R, row, s2, tree.scratch)
        if not params.certain:
            verbs.pop(T)
        edge = begin
        while edge < end and not (tree.next[edge] == s2 and tree.reward[edge] == r):
            edge += 1
        if edge == end:
            end += 1
            tree.child[edge] = NO_NODE
            tree.next[edge] = s2
            tree.reward[edge] = r
            tree.draws[edge] = 0.0
            tree.edge_upper[edge], tree.edge_lower[edge] = first_bounds(space, params, s2, level + 1)
        tree.draws[edge] += 1.0
    tree.begin[node, a] = begin
    tree.size[node, a] = end - begin
    tree.used[TREE_EDGES] = end
    back_up_bounds(tree, params, node, a)


@primitive
def back_up_bounds(tree, params, node, a):
    """U(s, a) and L(s, a) from the successors."""
    begin = tree.begin[node, a]
    upper, lower = 0.0, 0.0
    for e in range(begin, begin + tree.size[node, a]):
        upper += tree.draws[e] * (tree.reward[e] + params.discount * tree.edge_upper[e])
        lower += tree.draws[e] * (tree.reward[e] + params.discount * tree.edge_lower[e])
    tree.upper[node, a] = upper / params.C
    tree.lower[node, a] = lower / params.C
