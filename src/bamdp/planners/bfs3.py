"""BFS3: Bayesian forward-search sparse sampling (Asmuth & Littman, UAI 2011).

The belief MDP has too many successors to enumerate, so sparse sampling (Kearns, Mansour & Ng 1999) draws C of them from
the predictive for every action of every node. Forward-search sparse sampling (Walsh, Goschin & Littman 2010) avoids
building even this tree in full. It runs *trajectories* through it, guided by bounds U ≥ V ≥ L at every node:

    U(s, a) = 1/C Σ_i [ r_i + γ U(s_i) ],   U(s) = max_a U(s, a),   same for L,   s_1..s_C ~ ν(· | belief at s, a),

where unvisited nodes have U = V_max = R_max/(1−γ) and L = V_min = R_min/(1−γ) (the range is extended to include 0 if
episodes can end). A trajectory takes the action with the largest U(s, a), then the successor with the largest (number
of draws) · (U − L), with ties broken at random, and updates the belief. From the depth limit, both bounds are backed up
along the trajectory. C successors are drawn for each action at the root. Each has its own tree with ``n_trajectories``
trajectories, and the agent takes the action with the largest mean of r + γ U.

Guarantee: the exhaustive solution of the same sampled tree always lies between L and U. U never increases, L never
decreases, and they coincide after finitely many trajectories. With leaf="zero", their common value is the
sparse-sampling estimate of the Bayes-optimal value for that horizon, which converges to the true value as C grows.

**One tree per seed.** Each node has its own random stream, derived from its parent's stream and the edge between them.
The sampled tree therefore depends only on the seed and not on the trajectories, and a search with more trajectories
extends one with fewer (each tree has a separate stream for breaking ties). Moreover, the successors of a pair can be
drawn when a trajectory first takes it, with the same result as drawing those of all actions at once. This is done when
U(s, a) does not require them, that is, when the reward does not depend on the next state and no state is terminal.

**Leaves.** The value below the depth limit is unknown. With leaf="upper", the default, both U and L value it at V_max.
The choice then stays optimistic, as in the program behind the published results. For *any* continuation the value lies
in [L − γ^depth (V_max − V_min), U], which is the interval ``plan`` reports. With leaf="zero" the problem ends there, as
in finite-horizon planners. (That program initialises leaves to U = V_max and L = V_min. Its trajectories are attracted
to the widest bounds, so they keep returning to leaves, where nothing can be gained, and never visit other successors; U
then fails to converge. With equal bounds at the leaves, every trajectory leads to a node that is still unresolved.)

Departures from that program (acguez/bamcp): ``depth`` counts the root's action, so the program's D is depth − 1. The
program runs max(1, sims / C) trajectories per successor, where "sims" is a command-line argument; here
``n_trajectories`` is the number per successor. The program's V_min is 0 regardless of the rewards. Here a trajectory
stops once U = L instead of continuing to the limit.

Successors are distinguished by next state and reward, so unknown rewards may be continuous but must be bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Annotated, NamedTuple

import numpy as np

import bamdp.beliefs.verbs as verbs
import bamdp.planners.tree as trees
from bamdp._kernels.jit import kernel, primitive, zeros
from bamdp._kernels.random import below, branch, next_word, open_stream
from bamdp._parameters import choice, whole_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import push_step, undo_steps
from bamdp.planners.base import (
    OUTCOME_STEPS,
    Cost,
    Plan,
    any_best,
    candidates,
    estimate,
    known_range,
    n_branches,
)
from bamdp.planners.tree import NO_NODE, NODES, ROOT, HistoryTree, TreePlanner, TreeRecord

BFS3_LEAVES = ("upper", "zero")
UPPER, LOW = range(2)  # columns of BFS3Bounds.node


class BFS3Params(NamedTuple):
    """Parameters that stay fixed during a plan."""

    discount: float
    depth: int
    C: int
    n_trajectories: int  # per successor of the root
    high: float  # V_max
    low: float  # V_min
    leaf: float  # value at the depth limit
    by_action: bool  # successors of a pair may be drawn when it is first taken
    certain: bool  # rewards are known


class BFS3Bounds(NamedTuple):
    """BFS3's arrays for the nodes of a :class:`HistoryTree`, whose ``value`` is U(s, a). All are written to.

    The successors of a pair are consecutive nodes: ``child`` is the first of them, ``tries`` their number, and COUNT is
    the number of the C draws that a successor represents.
    """

    stream: Annotated[np.ndarray, "uint64 [M]"]  # seed of the node's draws
    node: Annotated[np.ndarray, "float64 [M, 2]"]  # U(s), L(s)
    lower: Annotated[np.ndarray, "float64 [M, A]"]  # L(s, a); -inf for actions that do not exist
    path: Annotated[np.ndarray, "int64 [D]"]  # the nodes on a trajectory
    scratch: Annotated[np.ndarray, "uint64 [4]"]  # the generator of a node's draws
    ties: Annotated[np.ndarray, "uint64 [4]"]  # the generator that breaks ties in this tree


class RootSuccessors(NamedTuple):
    """The C successors of each action at the root, with the bounds found below them."""

    state: Annotated[np.ndarray, "int64 [A, C]"]
    reward: Annotated[np.ndarray, "float64 [A, C]"]
    stream: Annotated[np.ndarray, "uint64 [A, C]"]
    upper: Annotated[np.ndarray, "float64 [A, C]"]  # r + γ U
    lower: Annotated[np.ndarray, "float64 [A, C]"]


# --- one tree ------------------------------------------------------------------------------------------------


@kernel
def draw_roots(belief, roots, s, rng):
    """Draw the root's successors, before any search so that they do not depend on how the trees are searched."""
    n_actions = belief.space.allowed.shape[1]
    for a in range(n_actions):
        if belief.space.allowed[s, a]:
            for c in range(roots.state.shape[1]):
                row = s * n_actions + a
                s2 = verbs.draw(belief.transitions, row, rng)
                verbs.push(belief.transitions, row, s2)
                roots.state[a, c] = s2
                roots.reward[a, c] = verbs.draw_reward(belief.rewards, row, s2, rng)
                verbs.pop(belief.transitions)
                roots.stream[a, c] = next_word(rng)


@kernel
def bound_successor(belief, params, tree, bounds, roots, root, a, c):
    """Bound r + γ V for successor ``c`` of action ``a`` in state ``root``; return the number of trajectories."""
    row = root * belief.space.allowed.shape[1] + a
    s, r, stream = roots.state[a, c], roots.reward[a, c], roots.stream[a, c]
    upper, lower = _first_bounds(belief.space, params, s, 1)
    done = 0
    bounds.stream[trees.plant_root(tree, s)] = stream
    tree.reward[ROOT] = r
    tree.node[ROOT, trees.COUNT] = 1
    if params.depth > 1 and not belief.space.terminal[s]:
        push_step(belief, row, s, r)
        first = belief.space.allowed.shape[1]  # smaller numbers are actions
        open_stream(branch(stream, first), bounds.ties)
        while done < params.n_trajectories and (done == 0 or upper > lower):
            done += 1
            d = _descend(belief, params, tree, bounds)
            for j in range(d - 1, -1, -1):  # back up both bounds
                undo_steps(belief, 1)
                child = bounds.path[j]
                _bound_node(tree, bounds, child)
                _back_up(tree, bounds, params, tree.node[child, trees.PARENT], tree.node[child, trees.ACTION])
            _bound_node(tree, bounds, ROOT)
            upper, lower = bounds.node[ROOT, UPPER], bounds.node[ROOT, LOW]
        undo_steps(belief, 1)
    bounds.node[ROOT, UPPER] = upper
    bounds.node[ROOT, LOW] = lower
    roots.upper[a, c] = r + params.discount * upper
    roots.lower[a, c] = r + params.discount * lower
    return done


@primitive
def _descend(belief, params, tree, bounds):
    """Follow one trajectory, pushing it onto the belief, and return its number of steps."""
    n_actions = belief.space.allowed.shape[1]
    node, d = np.int64(ROOT), 0
    while True:
        s = tree.node[node, trees.STATE]
        if tree.child[node, 0] == trees.UNOPENED:
            _open(belief, params, tree, bounds, node)
        # the action with the highest upper bound, after bounding all actions
        if not params.by_action:
            for a in range(n_actions):
                if belief.space.allowed[s, a] and tree.child[node, a] == NO_NODE:
                    _draw_successors(belief, params, tree, bounds, node, a)
        a = any_best(tree.value[node], bounds.ties)
        row = s * n_actions + a
        if tree.child[node, a] == NO_NODE:
            if tree.node[node, trees.DEPTH] + 2 == params.depth:
                return d  # all successors are leaves, so their bounds are known without drawing
            _draw_successors(belief, params, tree, bounds, node, a)
        # the successor with the widest bounds; stop if all bounds have met
        node = _widest(tree, bounds, node, a)
        if node == NO_NODE:
            return d
        bounds.path[d] = node
        d += 1
        push_step(belief, row, tree.node[node, trees.STATE], tree.reward[node])
        if d + 1 == params.depth:
            return d


@primitive
def _open(belief, params, tree, bounds, node):
    """Initialise the actions of a node without drawing their successors."""
    s, n_actions = tree.node[node, trees.STATE], belief.space.allowed.shape[1]
    trees.open_node(tree, node, -np.inf)
    for a in range(n_actions):
        bounds.lower[node, a] = -np.inf
    if params.by_action:
        upper, lower = _first_bounds(belief.space, params, 0, tree.node[node, trees.DEPTH] + 2)
        for a in range(n_actions):
            if belief.space.allowed[s, a]:  # the reward is the same for all next states
                r = verbs.draw_reward(belief.rewards, s * n_actions + a, 0, bounds.scratch)
                tree.value[node, a] = r + params.discount * upper
                bounds.lower[node, a] = r + params.discount * lower


@primitive
def _first_bounds(space, params, s, level):
    """Return (U, L) of an unvisited successor, ``level`` steps from the root."""
    if space.terminal[s]:
        return 0.0, 0.0
    if level == params.depth:
        return params.leaf, params.leaf
    return params.high, params.low


@primitive
def _draw_successors(belief, params, tree, bounds, node, a):
    """Draw C next states of a pair, merging equal ones into one node."""
    T, R, rng = belief.transitions, belief.rewards, bounds.scratch
    row = tree.node[node, trees.STATE] * belief.space.allowed.shape[1] + a
    stream = branch(bounds.stream[node], a)
    open_stream(stream, rng)
    first = tree.used[NODES]
    for _ in range(params.C):
        s2 = verbs.draw(T, row, rng)
        if not params.certain:
            verbs.push(T, row, s2)
        r = verbs.draw_reward(R, row, s2, rng)
        if not params.certain:
            verbs.pop(T)
        child = first
        while child < tree.used[NODES] and not (
            tree.node[child, trees.STATE] == s2 and tree.reward[child] == r
        ):
            child += 1
        if child == tree.used[NODES]:
            trees.append_node(tree, node, a, s2, r)
            upper, lower = _first_bounds(belief.space, params, s2, tree.node[child, trees.DEPTH] + 1)
            bounds.node[child, UPPER] = upper
            bounds.node[child, LOW] = lower
            bounds.stream[child] = branch(stream, params.C + child - first)
        tree.node[child, trees.COUNT] += 1
    tree.child[node, a] = first
    tree.tries[node, a] = tree.used[NODES] - first
    _back_up(tree, bounds, params, node, a)


@primitive
def _widest(tree, bounds, node, a):
    """Return the successor with the largest count · (U − L), breaking ties at random; NO_NODE if all have met."""
    most, widest, ties = 0.0, np.int64(NO_NODE), 1
    for child in range(tree.child[node, a], tree.child[node, a] + tree.tries[node, a]):
        width = tree.node[child, trees.COUNT] * (bounds.node[child, UPPER] - bounds.node[child, LOW])
        if width > most:
            most, widest, ties = width, child, 1
        elif width == most and most > 0.0:
            ties += 1
            if below(bounds.ties, ties) == 0:
                widest = child
    return widest


@primitive
def _back_up(tree, bounds, params, node, a):
    """Compute U(s, a) and L(s, a) from the successors."""
    upper, lower = 0.0, 0.0
    for child in range(tree.child[node, a], tree.child[node, a] + tree.tries[node, a]):
        n, r = tree.node[child, trees.COUNT], tree.reward[child]
        upper += n * (r + params.discount * bounds.node[child, UPPER])
        lower += n * (r + params.discount * bounds.node[child, LOW])
    tree.value[node, a] = upper / params.C
    bounds.lower[node, a] = lower / params.C


@primitive
def _bound_node(tree, bounds, node):
    """Compute U(s) and L(s) of a node whose actions have been bounded."""
    if tree.child[node, 0] != trees.UNOPENED:
        upper, lower = -np.inf, -np.inf
        for a in range(tree.value.shape[1]):
            upper = max(upper, tree.value[node, a])
            lower = max(lower, bounds.lower[node, a])
        bounds.node[node, UPPER] = upper
        bounds.node[node, LOW] = lower


# --- the planner ---------------------------------------------------------------------------------------------


@dataclass
class BFS3Memory:
    """Buffers for one tree at a time and for the successors of the root."""

    tree: HistoryTree
    bounds: BFS3Bounds
    roots: RootSuccessors
    discount: float
    reward_range: tuple[float, float]
    record: TreeRecord | None = None


@dataclass(frozen=True, kw_only=True)
class BFS3(TreePlanner):
    """Bayesian forward-search sparse sampling.

    Parameters
    ----------
    n_successors
        C, the number of draws from the predictive per action and node.
    n_trajectories
        Number of trajectories through the tree of each successor of the root. (The "simulations" of the published
        experiments are C times that.)
    depth
        Lookahead in steps, including the first action.
    leaf
        Value beyond the depth limit: ``"upper"``, V_max, which is optimistic, or ``"zero"``.

    Examples
    --------
    >>> BFS3(n_successors=5, depth=51).n_trajectories
    10
    """

    n_successors: int = whole_number(10)
    n_trajectories: int = whole_number(10)
    depth: int = whole_number(16)
    leaf: str = choice("upper", BFS3_LEAVES)

    def cost(self, n_states: int, n_actions: int, discount: float) -> Cost:
        successors = float(self.n_successors) * n_actions  # of the root, each with its own tree
        steps, nodes = self.n_trajectories * self.depth, 24.0 * n_actions + 48.0 * self.n_successors
        steps_of_all = OUTCOME_STEPS * successors * steps
        return estimate(n_states, n_actions, models=0.0, steps=steps_of_all, bytes=nodes * steps)

    def start(self, belief: Belief, discount: float) -> BFS3Memory:
        bounds = known_range(belief, "BFS3", "use a planner without bounds, such as BAMCP")
        A, C, D = belief.n_actions, self.n_successors, self.depth
        # a trajectory draws C·A successors per step; the tree's size is also bounded
        M = 1 + int(min(n_branches(A * C, D - 1), float(A * C) * self.n_trajectories * D))
        tree, arrays = zeros(HistoryTree, M=M, A=A), zeros(BFS3Bounds, M=M, A=A, D=D)
        return BFS3Memory(tree, arrays, zeros(RootSuccessors, A=A, C=C), discount, bounds)

    def plan(self, memory: BFS3Memory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        tree, roots, params = memory.tree, memory.roots, self._params(memory, belief)
        belief.reserve(self.depth + 1)
        belief.call(draw_roots, belief.arrays, roots, state, rng)
        if memory.record is not None:
            _record_root(memory.record, belief.space.allowed[state], state, self.n_successors)
        n_nodes = n_trajectories = 0
        actions = np.flatnonzero(belief.space.allowed[state])
        for (i, a), c in product(enumerate(actions.tolist(), start=1), range(self.n_successors)):
            given = belief.arrays, params, tree, memory.bounds, roots, state, a, c
            n_trajectories += belief.call(bound_successor, *given)
            n_nodes += int(tree.used[NODES])
            if memory.record is not None:
                _record_successor(memory.record, tree, memory.bounds, i, self.n_successors)
        totals = np.add.accumulate(roots.upper, axis=1)[:, -1]  # sequential summation
        action = int(any_best(np.where(belief.space.allowed[state], totals, np.nan), rng))
        upper, lower, C = roots.upper.mean(axis=1), roots.lower.mean(axis=1), self.n_successors
        if self.leaf == "upper":  # the continuation may be as bad as V_min
            lower -= params.discount**self.depth * (params.high - params.low)
        spread = roots.upper.std(axis=1, ddof=1) if C > 1 else np.full(len(upper), np.nan)
        details = {
            "lower": {a: float(lower[a]) for a in actions.tolist()},
            "nodes": n_nodes,
            "trajectories": n_trajectories,
            "depth": self.depth,
        }
        weighed = candidates(actions, upper[actions], spread[actions], C)
        if memory.record is not None:
            columns = np.column_stack([upper, spread, lower])[[action, *actions]]
            memory.record.real[: len(columns), trees.VALUE :] = columns
            memory.record.real[ROOT, trees.SPREAD] = np.nan
        return Plan(action, float(upper[action]), weighed, details=details)

    def record(self, belief: Belief) -> TreeRecord:
        return trees.new_record(math.inf, belief.n_actions)

    def _params(self, memory: BFS3Memory, belief: Belief) -> BFS3Params:
        ends = bool(belief.episodes.ends.any())
        low, high = (r / (1.0 - memory.discount) for r in memory.reward_range)
        if ends or self.leaf == "zero":  # rewards may stop, so values may be closer to 0 than r/(1-γ)
            low, high = min(low, 0.0), max(high, 0.0)
        certain = belief.rewards.certain
        return BFS3Params(
            discount=memory.discount,
            depth=self.depth,
            C=self.n_successors,
            n_trajectories=self.n_trajectories,
            high=high,
            low=low,
            leaf=high if self.leaf == "upper" else 0.0,
            by_action=certain and not belief.rewards.by_next_state and not ends,
            certain=certain,
        )


def _record_root(record: TreeRecord, allowed: np.ndarray, state: int, C: int) -> None:
    """Add the root and its actions to a record."""
    root = zeros(HistoryTree, M=1, A=len(allowed))
    trees.plant_root(root, state)
    q = np.where(allowed, 0.0, np.nan)[None, :, None].repeat(2, axis=2)
    counts = np.full((1, len(allowed)), C)
    trees.record_histories(record, root, np.zeros((1, 2)), q, counts, counts.copy(), NO_NODE, np.nan)


def _record_successor(record: TreeRecord, tree: HistoryTree, bounds: BFS3Bounds, choice: int, C: int) -> None:
    """Add the tree of a successor of the root to a record, below the root's ``choice``."""
    n = int(tree.used[NODES])
    child, q = tree.child[:n], np.stack([tree.value[:n], bounds.lower[:n]], axis=-1)
    q[(child[:, :1] == trees.UNOPENED) | ~np.isfinite(q[..., 0])] = np.nan
    counts = np.where(child == NO_NODE, 0, C)
    trees.record_histories(record, tree, bounds.node, q, counts, counts.copy(), choice, 1.0 / C)
