"""BFS3: Bayesian forward-search sparse sampling (Asmuth & Littman, UAI 2011).

The belief MDP has far too many successors to look at all of them; sparse sampling (Kearns, Mansour & Ng 1999) looks
at C, drawn from the predictive, for every action of every node. Forward search (Walsh, Goschin & Littman 2010) does
not build that tree either, but runs *trajectories* through it, led by bounds U ≥ V ≥ L of every node:

    U(s, a) = 1/C Σ_i [ r_i + γ U(s_i) ],   U(s) = max_a U(s, a),   and L alike,   s_1..s_C ~ ν(· | belief at s, a),

where a node that no trajectory has come to has U = V_max = R_max/(1−γ) and L = V_min = R_min/(1−γ) (0 is taken into
the range where an episode can end). A trajectory takes the action with the largest U(s, a), then the successor with
the largest (number of draws) · (U − L), ties at random, updates the belief, and at the depth limit turns back,
backing up both bounds. For each action at the root C successors are drawn; each gets its own tree and
``n_trajectories``, and the action with the largest mean of r + γ U is taken.

Guarantee: L ≤ the exhaustive solution of the same sampled tree ≤ U at all times, U never rises and L never falls;
after finitely many trajectories they meet. With leaf="zero" they do so in the sparse-sampling estimate of the
Bayes-optimal value of that horizon, which tends to it as C grows.

**One tree a seed.** The draws of a node come from a stream of its own, made from its parent's and the edge between
them. So the sampled tree is a function of the seed alone, whatever the trajectories do, and more trajectories go on
where fewer had stopped (ties are broken by a stream of each tree's own). It also allows to draw the successors of a
pair when a trajectory first takes it, with the same result as drawing those of all actions at once (done where
U(s, a) can be had without them: the reward does not depend on the next state and no state is terminal).

**Leaves.** What lies below the depth limit is not known. leaf="upper" values it at V_max, in U and in L: the choice
stays optimistic, as in the program behind the published numbers, and the default. For *any* continuation the value then
lies in [L − γ^depth (V_max − V_min), U], which is what ``plan`` reports. leaf="zero" ends the problem there, as
finite-horizon planners do. (That program gives a leaf U = V_max and L = V_min. Its trajectories are drawn to the widest
bounds, so they come back to leaves, where nothing can be gained, while other successors are never looked at: U then
does not converge at all. With one value in both bounds every trajectory goes where something is still open.)

Departures from that program (acguez/bamcp): ``depth`` counts the root's action, so its D is depth − 1; it runs
max(1, sims / C) trajectories a successor for the "sims" of its command line, here that number is ``n_trajectories``
itself; its V_min is 0 whatever the rewards; and a trajectory stops where U = L instead of going on to the limit.

Successors of one draw are told apart by next state and reward, so rewards that are not known may be continuous; they
must be bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from bamdp._kernels.bundles import zeros
from bamdp._kernels.jit import kernel, primitive
from bamdp._kernels.random import below, next_word
from bamdp._kernels.streams import branch, open_stream
from bamdp._parameters import choice, whole_number
from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import push_step, undo_steps
from bamdp.planners.base import OUTCOME_STEPS, Cost, Plan, candidates, estimate, n_branches
from bamdp.planners.random_play import any_best
from bamdp.planners.shared.history_tree import (
    UNOPENED,
    HistoryTree,
    append_node,
    open_node,
    plant_root,
    py_add_node,
    py_add_outcome,
    py_add_step,
    record_histories,
    record_root,
)
from bamdp.planners.tree import (
    ACTION,
    CHOICE,
    COUNT,
    DEPTH,
    LOWER,
    NO_NODE,
    NODES,
    PARENT,
    ROOT,
    SPREAD,
    STATE,
    VALUE,
    TreePlanner,
    TreeRecord,
    new_record,
)

BFS3_LEAVES = ("upper", "zero")
NO_ACTION = -1
UPPER, LOW = range(2)  # columns of BFS3Bounds.node


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


class BFS3Bounds(NamedTuple):
    """What BFS3 keeps of the nodes of a :class:`HistoryTree`, where U(s, a) is ``value``. All are written to.

    The successors of a pair are nodes side by side: ``child`` is the first of them, ``tries`` their number, and COUNT
    of each says how many of the C draws it was.
    """

    stream: Annotated[np.ndarray, "uint64 [M]"]  # what the node's draws are seeded by
    node: Annotated[np.ndarray, "float64 [M, 2]"]  # U(s), L(s)
    lower: Annotated[np.ndarray, "float64 [M, A]"]  # L(s, a); -inf for actions that do not exist
    path: Annotated[np.ndarray, "int64 [D]"]  # the nodes that a trajectory has come to
    scratch: Annotated[np.ndarray, "uint64 [4]"]  # the generator of a node's draws
    ties: Annotated[np.ndarray, "uint64 [4]"]  # the generator that breaks ties in this tree


class RootSuccessors(NamedTuple):
    """The C successors of each action at the root, with what is found below them."""

    state: Annotated[np.ndarray, "int64 [A, C]"]
    reward: Annotated[np.ndarray, "float64 [A, C]"]
    stream: Annotated[np.ndarray, "uint64 [A, C]"]
    upper: Annotated[np.ndarray, "float64 [A, C]"]  # r + γ U
    lower: Annotated[np.ndarray, "float64 [A, C]"]


# --- one tree ------------------------------------------------------------------------------------------------


@kernel
def draw_roots(belief, roots, s, rng):
    """Draw the successors of the root: before all else, so that they do not depend on how the trees are searched."""
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
    """Search below successor ``c`` of action ``a`` in state ``root``, and bound r + γ V; return the trajectories."""
    row = root * belief.space.allowed.shape[1] + a
    s, r, stream = roots.state[a, c], roots.reward[a, c], roots.stream[a, c]
    upper, lower = _first_bounds(belief.space, params, s, 1)
    done = 0
    tree.used[NODES] = 0
    if params.depth > 1 and not belief.space.terminal[s]:
        push_step(belief, row, s, r)
        bounds.stream[plant_root(tree, s)] = stream
        open_stream(
            branch(stream, belief.space.allowed.shape[1]), bounds.ties
        )  # actions have the numbers below
        while done < params.n_trajectories and (done == 0 or upper > lower):
            done += 1
            d = _descend(belief, params, tree, bounds)
            for j in range(d - 1, -1, -1):  # back up both bounds on the way back
                undo_steps(belief, 1)
                child = bounds.path[j]
                _bound_node(tree, bounds, child)
                _back_up(tree, bounds, params, tree.node[child, PARENT], tree.node[child, ACTION])
            _bound_node(tree, bounds, ROOT)
            upper, lower = bounds.node[ROOT, UPPER], bounds.node[ROOT, LOW]
        undo_steps(belief, 1)
    roots.upper[a, c] = r + params.discount * upper
    roots.lower[a, c] = r + params.discount * lower
    return done


@primitive
def _descend(belief, params, tree, bounds):
    """Follow one trajectory, pushed on the belief; return its steps."""
    n_actions = belief.space.allowed.shape[1]
    node, d = np.int64(ROOT), 0
    while True:
        s = tree.node[node, STATE]
        if tree.child[node, 0] == UNOPENED:
            _open(belief, params, tree, bounds, node)
        # the action with the highest upper bound, once those of all actions are known
        if not params.by_action:
            for a in range(n_actions):
                if belief.space.allowed[s, a] and tree.child[node, a] == NO_NODE:
                    _draw_successors(belief, params, tree, bounds, node, a)
        a = any_best(tree.value[node], bounds.ties)
        row = s * n_actions + a
        if tree.child[node, a] == NO_NODE:
            if tree.node[node, DEPTH] + 2 == params.depth:
                return d  # whatever the successors are, their bounds are those of leaves
            _draw_successors(belief, params, tree, bounds, node, a)
        # the successor whose bounds are widest; stop where all have met
        node = _widest(tree, bounds, node, a)
        if node == NO_NODE:
            return d
        bounds.path[d] = node
        d += 1
        push_step(belief, row, tree.node[node, STATE], tree.reward[node])
        if d + 1 == params.depth:
            return d


@primitive
def _open(belief, params, tree, bounds, node):
    """Begin the actions of a node, the successors of which are not drawn."""
    s, n_actions = tree.node[node, STATE], belief.space.allowed.shape[1]
    open_node(tree, node, -np.inf)
    for a in range(n_actions):
        bounds.lower[node, a] = -np.inf
    if params.by_action:
        upper, lower = _first_bounds(belief.space, params, 0, tree.node[node, DEPTH] + 2)
        for a in range(n_actions):
            if belief.space.allowed[s, a]:  # the reward is the same for all next states
                r = verbs.draw_reward(belief.rewards, s * n_actions + a, 0, bounds.scratch)
                tree.value[node, a] = r + params.discount * upper
                bounds.lower[node, a] = r + params.discount * lower


@primitive
def _first_bounds(space, params, s, level):
    """Return (U, L) of a successor that nothing is known of yet, ``level`` steps from the root."""
    if space.terminal[s]:
        return 0.0, 0.0
    if level == params.depth:
        return params.leaf, params.leaf
    return params.high, params.low


@primitive
def _draw_successors(belief, params, tree, bounds, node, a):
    """Draw C next states of a pair, equal ones into one node."""
    T, R, rng = belief.transitions, belief.rewards, bounds.scratch
    row = tree.node[node, STATE] * belief.space.allowed.shape[1] + a
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
        while child < tree.used[NODES] and not (tree.node[child, STATE] == s2 and tree.reward[child] == r):
            child += 1
        if child == tree.used[NODES]:
            append_node(tree, node, a, s2, r)
            upper, lower = _first_bounds(belief.space, params, s2, tree.node[child, DEPTH] + 1)
            bounds.node[child, UPPER] = upper
            bounds.node[child, LOW] = lower
            bounds.stream[child] = branch(stream, params.C + child - first)
        tree.node[child, COUNT] += 1
    tree.child[node, a] = first
    tree.tries[node, a] = tree.used[NODES] - first
    _back_up(tree, bounds, params, node, a)


@primitive
def _widest(tree, bounds, node, a):
    """Return the successor with the largest count · (U − L), ties at random; NO_NODE where all bounds have met."""
    most, widest, ties = 0.0, np.int64(NO_NODE), 1
    for child in range(tree.child[node, a], tree.child[node, a] + tree.tries[node, a]):
        width = tree.node[child, COUNT] * (bounds.node[child, UPPER] - bounds.node[child, LOW])
        if width > most:
            most, widest, ties = width, child, 1
        elif width == most and most > 0.0:
            ties += 1
            if below(bounds.ties, ties) == 0:
                widest = child
    return widest


@primitive
def _back_up(tree, bounds, params, node, a):
    """U(s, a) and L(s, a) from the successors."""
    upper, lower = 0.0, 0.0
    for child in range(tree.child[node, a], tree.child[node, a] + tree.tries[node, a]):
        n, r = tree.node[child, COUNT], tree.reward[child]
        upper += n * (r + params.discount * bounds.node[child, UPPER])
        lower += n * (r + params.discount * bounds.node[child, LOW])
    tree.value[node, a] = upper / params.C
    bounds.lower[node, a] = lower / params.C


@primitive
def _bound_node(tree, bounds, node):
    """U(s) and L(s), where actions have been bounded."""
    if tree.child[node, 0] != UNOPENED:
        upper, lower = -np.inf, -np.inf
        for a in range(tree.value.shape[1]):
            upper = max(upper, tree.value[node, a])
            lower = max(lower, bounds.lower[node, a])
        bounds.node[node, UPPER] = upper
        bounds.node[node, LOW] = lower


# --- the planner ---------------------------------------------------------------------------------------------


@dataclass
class BFS3Memory:
    """Buffers for one tree at a time, and the successors of the root."""

    tree: HistoryTree
    bounds: BFS3Bounds
    roots: RootSuccessors
    discount: float
    reward_range: tuple[float, float]
    n_nodes: int = 0  # in all trees of the last decision
    n_trajectories: int = 0


@dataclass(frozen=True, kw_only=True)
class BFS3(TreePlanner):
    """Bayesian forward-search sparse sampling.

    Parameters
    ----------
    n_successors
        C, draws from the predictive for every action of every node.
    n_trajectories
        Trajectories through the tree of every successor of the root. (The "simulations" of the published
        experiments are C times that.)
    depth
        Steps that are looked ahead, the first action included.
    leaf
        What lies beyond is worth ``"upper"``, V_max, which is optimistic; or ``"zero"``.

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
        successors = float(self.n_successors) * n_actions  # of the root, each with a tree
        steps, nodes = self.n_trajectories * self.depth, 24.0 * n_actions + 48.0 * self.n_successors
        steps_of_all = OUTCOME_STEPS * successors * steps
        return estimate(n_states, n_actions, models=0.0, steps=steps_of_all, bytes=nodes * steps)

    def start(self, belief: Belief, discount: float) -> BFS3Memory:
        low, high = belief.rewards.reward_range
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(
                f"BFS3 bounds values by the range of the rewards, and {belief.reward_model} "
                "has none; give it bounds=(low, high), in text for instance normal:bounds=(0,1), or use a planner "
                "without bounds, such as BAMCP"
            )
        A, C = belief.n_actions, self.n_successors
        M, D = self._most_nodes(A), self.depth
        tree, bounds = zeros(HistoryTree, M=M, A=A), zeros(BFS3Bounds, M=M, A=A, D=D)
        return BFS3Memory(tree, bounds, zeros(RootSuccessors, A=A, C=C), discount, (float(low), float(high)))

    def _most_nodes(self, n_actions: int) -> int:
        """Return how many nodes a tree has at most: a trajectory draws C·A at each step, and the tree is finite."""
        fan = n_actions * self.n_successors
        return 1 + int(min(n_branches(fan, self.depth - 1), float(fan) * self.n_trajectories * self.depth))

    def act(self, memory: BFS3Memory, belief: Belief, state: int, rng: np.ndarray) -> int:
        return self._search(memory, belief, state, None, rng)

    def _search(
        self, memory: BFS3Memory, belief: Belief, state: int, record: TreeRecord | None, rng: np.ndarray
    ) -> int:
        """Bound all successors of the root and write their trees to ``record``; equal successors stay apart."""
        roots, params = memory.roots, self._params(memory, belief)
        belief.reserve(self.depth + 1)
        belief.call(draw_roots, belief.arrays, roots, state, rng)
        memory.n_nodes = memory.n_trajectories = 0
        actions = np.flatnonzero(belief.space.allowed[state]).tolist()
        if record is not None:
            record_root(record, state, np.nan, 1)
            for a in actions:
                py_add_node(record, CHOICE, ROOT, state, a, self.n_successors)
        for i, a in enumerate(actions):
            for c in range(self.n_successors):
                given = belief.arrays, params, memory.tree, memory.bounds, roots, state, a, c
                memory.n_trajectories += belief.call(bound_successor, *given)
                memory.n_nodes += int(memory.tree.used[NODES])
                if record is not None:
                    _record(record, 1 + i, memory, params, a, c)
        totals = np.add.accumulate(roots.upper, axis=1)[:, -1]  # added up one by one
        return int(any_best(np.where(belief.space.allowed[state], totals, np.nan), rng))

    def plan(
        self,
        memory: BFS3Memory,
        belief: Belief,
        state: int,
        rng: np.ndarray,
        record: TreeRecord | None = None,
    ) -> Plan:
        action = self._search(memory, belief, state, record, rng)
        roots, params = memory.roots, self._params(memory, belief)
        upper, lower = roots.upper.mean(axis=1), roots.lower.mean(axis=1)
        if self.leaf == "upper":  # what lies beyond may be as bad as V_min
            lower -= params.discount**self.depth * (params.high - params.low)
        spread = np.full(belief.n_actions, np.nan)
        if self.n_successors > 1:
            spread = roots.upper.std(axis=1, ddof=1)
        actions = np.flatnonzero(belief.space.allowed[state])
        if record is not None:  # the root and its choices come first; L there also covers what lies beyond
            record.real[ROOT, [VALUE, LOWER]] = upper[action], lower[action]
            at_root = np.column_stack([upper, spread, lower])[actions]
            record.real[1 : 1 + len(actions), [VALUE, SPREAD, LOWER]] = at_root
        return Plan(
            action,
            float(upper[action]),
            candidates(actions, upper[actions], spread[actions], self.n_successors),
            details={
                "lower": {a: float(lower[a]) for a in actions.tolist()},
                "nodes": memory.n_nodes,
                "trajectories": memory.n_trajectories,
                "depth": self.depth,
            },
        )

    def record(self, belief: Belief) -> TreeRecord:
        return new_record(math.inf, belief.n_actions)

    def _params(self, memory: BFS3Memory, belief: Belief) -> BFS3Params:
        ends = bool(belief.episodes.ends.any())
        low, high = (r / (1.0 - memory.discount) for r in memory.reward_range)
        if ends or self.leaf == "zero":  # rewards may stop, so the value may be nearer to 0 than for ever r
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


def _record(record: TreeRecord, choice: int, memory: BFS3Memory, params: BFS3Params, a: int, c: int) -> None:
    """Write a successor of the root, which stands below ``choice``, and its tree to a record."""
    roots, tree, bounds, C = memory.roots, memory.tree, memory.bounds, params.C
    r, n = roots.reward[a, c], int(tree.used[NODES])
    node = int(py_add_outcome(record, choice, 1.0 / C))
    py_add_step(record, node, roots.state[a, c], r, 1.0)
    if node != NO_NODE and params.discount > 0.0:
        record.real[node, VALUE] = (roots.upper[a, c] - r) / params.discount
        record.real[node, LOWER] = (roots.lower[a, c] - r) / params.discount
    draws, opened = tree.node[:n, COUNT], tree.child[:n, :1] != UNOPENED
    nodes = {"count": draws, "reward": tree.reward, "share": draws / C}
    nodes |= {"value": bounds.node[:, UPPER], "lower": bounds.node[:, LOW]}
    drawn = np.where(tree.child[:n] == NO_NODE, 0, C)
    choices = {"count": drawn, "value": tree.value, "lower": bounds.lower}
    record_histories(record, node, tree, opened & np.isfinite(tree.value[:n]), nodes, choices)
