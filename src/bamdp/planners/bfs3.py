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
from dataclasses import dataclass, replace
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
from bamdp.beliefs.verbs import DONE, NO_ROOM
from bamdp.planners.base import OUTCOME_STEPS, Cost, Plan, Planner, candidates, estimate
from bamdp.planners.random_play import any_best
from bamdp.planners.shared.history_tree import NO_NODE, ROOT

BFS3_LEAVES = ("upper", "zero")
FIRST_NODES = 1024  # room to begin with
NO_ACTION, NO_SUCCESSOR = -1, -1
TREE_NODES, TREE_EDGES, ALL_NODES, TRAJECTORIES = range(4)  # in BFS3Tree.used: of this tree, of all trees


# --- trees ----------------------------------------------------------------------------------------------------


class BFS3Tree(NamedTuple):
    """The tree below one successor of the root, and what the root has found; all are written to."""

    stream: Annotated[np.ndarray, "uint64 [M]"]  # what the node's draws are seeded by
    begin: Annotated[np.ndarray, "int64 [M, A]"]  # first edge of a pair, or NO_SUCCESSOR
    size: Annotated[np.ndarray, "int64 [M, A]"]  # how many edges, distinct successors, it has
    upper: Annotated[np.ndarray, "float64 [M, A]"]  # U(s, a); -inf for actions that do not exist
    lower: Annotated[np.ndarray, "float64 [M, A]"]  # L(s, a)
    child: Annotated[np.ndarray, "int64 [E]"]  # node of the successor, or NO_NODE
    next: Annotated[np.ndarray, "int64 [E]"]  # its state
    reward: Annotated[np.ndarray, "float64 [E]"]  # the reward on the way
    draws: Annotated[np.ndarray, "float64 [E]"]  # how many of the C draws
    edge_upper: Annotated[np.ndarray, "float64 [E]"]  # U of the successor
    edge_lower: Annotated[np.ndarray, "float64 [E]"]  # L
    path: Annotated[np.ndarray, "int64 [D, 3]"]  # node, action, edge
    used: Annotated[np.ndarray, "int64 [4]"]  # TREE_NODES and TREE_EDGES, ALL_NODES and TRAJECTORIES
    scratch: Annotated[np.ndarray, "uint64 [4]"]  # the generator of a node's draws
    ties: Annotated[np.ndarray, "uint64 [4]"]  # the generator that breaks ties in this tree
    root_next: Annotated[np.ndarray, "int64 [A, C]"]  # successors of the root
    root_reward: Annotated[np.ndarray, "float64 [A, C]"]
    root_stream: Annotated[np.ndarray, "uint64 [A, C]"]
    root_upper: Annotated[np.ndarray, "float64 [A, C]"]  # r + γ U
    root_lower: Annotated[np.ndarray, "float64 [A, C]"]


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


@primitive
def first_undrawn(tree, space, node, s):
    """Return a pair of the node whose successors have not been drawn, or NO_ACTION."""
    for a in range(space.allowed.shape[1]):
        if space.allowed[s, a] and tree.begin[node, a] == NO_SUCCESSOR:
            return a
    return NO_ACTION


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


# --- trajectories ---------------------------------------------------------------------------------------------


@kernel
def bound_actions(belief, tree, params, s, rng):
    """r + γ U and r + γ L of every root successor into ``tree.root_upper`` and ``root_lower``.

    Returns DONE or NO_ROOM; the belief is as before in either case.
    """
    n_actions = belief.space.allowed.shape[1]
    tree.used[ALL_NODES] = 0
    tree.used[TRAJECTORIES] = 0
    for a in range(n_actions):  # first of all, so that they do not depend on how the trees are searched
        if belief.space.allowed[s, a]:
            for c in range(params.C):
                draw_root(belief, tree, a, c, s * n_actions + a, rng)
    for a in range(n_actions):
        if not belief.space.allowed[s, a]:
            continue
        for c in range(params.C):
            if bound_successor(belief, params, tree, s * n_actions + a, a, c) == NO_ROOM:
                return NO_ROOM
    return DONE


@primitive
def bound_successor(belief, params, tree, row, a, c):
    """Search below one successor of the root, and bound it; returns DONE or NO_ROOM."""
    s2, r = tree.root_next[a, c], tree.root_reward[a, c]
    upper, lower = first_bounds(belief.space, params, s2, 1)
    if params.depth > 1 and not belief.space.terminal[s2]:
        push_step(belief, row, s2, r)
        status = grow_below(belief, params, tree, s2, tree.root_stream[a, c])
        undo_steps(belief, 1)
        if status == NO_ROOM:
            return NO_ROOM
        upper, lower = highest_bound(tree.upper, ROOT), highest_bound(tree.lower, ROOT)
    tree.root_upper[a, c] = r + params.discount * upper
    tree.root_lower[a, c] = r + params.discount * lower
    return DONE


@primitive
def draw_root(belief, tree, a, c, row, rng):
    """Draw one successor of a root action, and the stream of its tree."""
    s2 = verbs.draw(belief.transitions, row, rng)
    verbs.push(belief.transitions, row, s2)
    tree.root_next[a, c] = s2
    tree.root_reward[a, c] = verbs.draw_reward(belief.rewards, row, s2, rng)
    verbs.pop(belief.transitions)
    tree.root_stream[a, c] = next_word(rng)


@primitive
def grow_below(belief, params, tree, s, stream):
    """Run the trajectories from ``s``, one step below the root; returns DONE or NO_ROOM."""
    tree.used[TREE_NODES] = 0
    tree.used[TREE_EDGES] = 0
    open_stream(branch(stream, belief.space.allowed.shape[1]), tree.ties)  # actions have the numbers below
    status = DONE
    for i in range(params.n_trajectories):
        met = i > 0 and highest_bound(tree.upper, ROOT) <= highest_bound(tree.lower, ROOT)
        if status == NO_ROOM or met:
            break
        tree.used[TRAJECTORIES] += 1
        d, status = descend(belief, params, tree, s, stream)
        for j in range(d - 1, -1, -1):  # back up both bounds on the way back
            undo_steps(belief, 1)
            if status == DONE:
                node, a, edge = tree.path[j, 0], tree.path[j, 1], tree.path[j, 2]
                child = tree.child[edge]
                if child != NO_NODE:
                    tree.edge_upper[edge] = highest_bound(tree.upper, child)
                    tree.edge_lower[edge] = highest_bound(tree.lower, child)
                back_up_bounds(tree, params, node, a)
    tree.used[ALL_NODES] += tree.used[TREE_NODES]
    return status


@primitive
def descend(belief, params, tree, s, stream):
    """Follow one trajectory, pushed on the belief; return (steps, DONE or NO_ROOM)."""
    n_actions = belief.space.allowed.shape[1]
    node, d = ROOT, 0
    while True:
        level = d + 1  # steps from the root of the plan
        if node == tree.used[TREE_NODES]:  # the trajectory is the first to come here
            if node == tree.stream.shape[0]:
                return d, NO_ROOM
            new_node(belief, params, tree, s, level, stream)
        # the action with the highest upper bound, once those of all actions are known
        a = NO_ACTION if params.by_action else first_undrawn(tree, belief.space, node, s)
        all_drawn = a == NO_ACTION
        if all_drawn:
            a = any_best(tree.upper[node], tree.ties)
        row = s * n_actions + a
        if tree.begin[node, a] == NO_SUCCESSOR:
            if all_drawn and level + 1 == params.depth:
                return d, DONE  # whatever the successors are, their bounds are those of leaves
            if tree.used[TREE_EDGES] + params.C > tree.next.shape[0]:
                return d, NO_ROOM
            draw_successors(belief, params, tree, node, a, row, level)
            if not all_drawn:
                continue
        # the successor whose bounds are widest; stop where all have met
        edge = widest_edge(tree, node, a)
        if edge == NO_NODE:
            return d, DONE
        s = tree.next[edge]
        tree.path[d, 0] = node
        tree.path[d, 1] = a
        tree.path[d, 2] = edge
        d += 1
        push_step(belief, row, s, tree.reward[edge])
        if level + 1 == params.depth:
            return d, DONE
        if tree.child[edge] == NO_NODE:
            stream = branch(branch(tree.stream[node], a), params.C + edge - tree.begin[node, a])
            tree.child[edge] = tree.used[TREE_NODES]
        node = tree.child[edge]


@dataclass
class BFS3Memory:
    """Room for the trees, which are grown anew at every step."""

    arrays: BFS3Tree
    discount: float
    reward_range: tuple[float, float]

    def grow(self) -> None:
        """Make room for twice as many nodes and edges."""
        tree = self.arrays
        n_actions, C = tree.root_upper.shape
        nodes, edges = 2 * len(tree.stream), 2 * len(tree.next)
        self.arrays = zeros(BFS3Tree, A=n_actions, C=C, D=len(tree.path), M=nodes, E=edges)


@dataclass(frozen=True, kw_only=True)
class BFS3(Planner):
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
        nodes = min(self.n_trajectories * self.depth, FIRST_NODES)
        C = self.n_successors
        tree = zeros(BFS3Tree, A=belief.n_actions, C=C, D=self.depth, M=nodes, E=nodes * C)
        return BFS3Memory(tree, discount, (float(low), float(high)))

    def act(self, memory: BFS3Memory, belief: Belief, state: int, rng: np.ndarray) -> int:
        params = self._params(memory, belief)
        belief.run(bound_actions, memory, params, state, depth=self.depth + 1, rng=rng)
        totals = np.add.accumulate(memory.arrays.root_upper, axis=1)[:, -1]  # added up one by one
        return int(any_best(np.where(belief.space.allowed[state], totals, np.nan), rng))

    def plan(self, memory: BFS3Memory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        tree, params = memory.arrays, self._params(memory, belief)
        upper, lower = tree.root_upper.mean(axis=1), tree.root_lower.mean(axis=1)
        if self.leaf == "upper":  # what lies beyond may be as bad as V_min
            lower -= params.discount**self.depth * (params.high - params.low)
        spread = np.full(belief.n_actions, np.nan)
        if self.n_successors > 1:
            spread = tree.root_upper.std(axis=1, ddof=1)
        actions = np.flatnonzero(belief.space.allowed[state])
        return Plan(
            action,
            float(upper[action]),
            candidates(actions, upper[actions], spread[actions], self.n_successors),
            details={
                "lower": {a: float(lower[a]) for a in actions.tolist()},
                "nodes": int(tree.used[ALL_NODES]),
                "trajectories": int(tree.used[TRAJECTORIES]),
                "depth": self.depth,
            },
        )

    def explain(self, memory: BFS3Memory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        from bamdp.planners.views.histories import view_bounds

        plan = self.plan(memory, belief, state, rng)
        tree = view_bounds(memory.arrays, self._params(memory, belief), belief, state, plan)
        return replace(plan, tree=tree)

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
