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

import numpy as np

from bamdp import _checks
from bamdp._kernels.jit import kernel, primitive
from bamdp._kernels.random import below, next_word
from bamdp._kernels.streams import branch, open_stream
from bamdp._serial import known
from bamdp.beliefs import verbs
from bamdp.beliefs.base import Belief
from bamdp.beliefs.rewards import KnownState
from bamdp.planners.base import Candidate, Plan, Planner
from bamdp.planners.bfs3_tree import (
    ALL_NODES,
    EDGES,
    NO_ACTION,
    NO_NODE,
    NODES,
    NOT_DRAWN,
    ROOT,
    TRAJECTORIES,
    Setting,
    Tree,
    back_up,
    draw_successors,
    first_undrawn,
    highest,
    new_node,
    new_tree,
    optimistic,
    outset,
    widest,
)

LEAVES = ("upper", "zero")
FITS, NO_ROOM = 0, verbs.NO_ROOM
FIRST_NODES = 1024  # room to begin with


@kernel
def bound_actions(T, R, space, setting, tree, s, rng):
    """r + γ U and r + γ L of every root successor into ``tree.root_upper`` and ``root_lower``.

    Returns FITS or NO_ROOM; the belief is as before in either case.
    """
    n_actions = space.allowed.shape[1]
    tree.used[ALL_NODES] = 0
    tree.used[TRAJECTORIES] = 0
    for a in range(n_actions):  # first of all, so that they do not depend on how the trees are searched
        if space.allowed[s, a]:
            for c in range(setting.C):
                draw_root(T, R, tree, a, c, s * n_actions + a, rng)
    for a in range(n_actions):
        if not space.allowed[s, a]:
            continue
        for c in range(setting.C):
            if bound_successor(T, R, space, setting, tree, s * n_actions + a, a, c) == NO_ROOM:
                return NO_ROOM
    return FITS


@primitive
def bound_successor(T, R, space, setting, tree, row, a, c):
    """Search below one successor of the root, and bound it; returns FITS or NO_ROOM."""
    s2, r = tree.root_next[a, c], tree.root_reward[a, c]
    upper, lower = outset(space, setting, s2, 1)
    if setting.depth > 1 and not space.terminal[s2]:
        verbs.push(T, row, s2)
        verbs.push_reward(R, row, s2, r)
        status = grow(T, R, space, setting, tree, s2, tree.root_stream[a, c])
        verbs.pop_reward(R)
        verbs.pop(T)
        if status == NO_ROOM:
            return NO_ROOM
        upper, lower = highest(tree.upper, ROOT), highest(tree.lower, ROOT)
    tree.root_upper[a, c] = r + setting.discount * upper
    tree.root_lower[a, c] = r + setting.discount * lower
    return FITS


@primitive
def draw_root(T, R, tree, a, c, row, rng):
    """One successor of a root action, and the stream of its tree."""
    s2 = verbs.draw(T, row, rng)
    verbs.push(T, row, s2)
    tree.root_next[a, c] = s2
    tree.root_reward[a, c] = verbs.draw_reward(R, row, s2, rng)
    verbs.pop(T)
    tree.root_stream[a, c] = next_word(rng)


@primitive
def grow(T, R, space, setting, tree, s, stream):
    """Run the trajectories from ``s``, one step below the root; returns FITS or NO_ROOM."""
    tree.used[NODES] = 0
    tree.used[EDGES] = 0
    open_stream(branch(stream, space.allowed.shape[1]), tree.ties)  # the actions have the numbers below
    status = FITS
    for i in range(setting.n):
        if status == NO_ROOM or (i > 0 and highest(tree.upper, ROOT) <= highest(tree.lower, ROOT)):
            break
        tree.used[TRAJECTORIES] += 1
        d, status = descend(T, R, space, setting, tree, s, stream)
        for j in range(d - 1, -1, -1):
            verbs.pop_reward(R)
            verbs.pop(T)
            if status == FITS:
                node, a, edge = tree.path[j, 0], tree.path[j, 1], tree.path[j, 2]
                child = tree.child[edge]
                if child != NO_NODE:
                    tree.edge_upper[edge] = highest(tree.upper, child)
                    tree.edge_lower[edge] = highest(tree.lower, child)
                back_up(tree, setting, node, a)
    tree.used[ALL_NODES] += tree.used[NODES]
    return status


@primitive
def descend(T, R, space, setting, tree, s, stream):
    """One trajectory, pushed on the belief: (steps, FITS or NO_ROOM)."""
    n_actions = space.allowed.shape[1]
    node, d = ROOT, 0
    while True:
        level = d + 1  # steps from the root of the plan
        if node == tree.used[NODES]:  # the trajectory is the first to come here
            if node == tree.stream.shape[0]:
                return d, NO_ROOM
            new_node(R, space, setting, tree, s, level, stream)
        a = NO_ACTION if setting.by_action else first_undrawn(tree, space, node, s)
        all_drawn = a == NO_ACTION
        if all_drawn:
            a = optimistic(tree, node)
        row = s * n_actions + a
        if tree.begin[node, a] == NOT_DRAWN:
            if all_drawn and level + 1 == setting.depth:
                return d, FITS  # whatever the successors are, their bounds are those of leaves
            if tree.used[EDGES] + setting.C > tree.next.shape[0]:
                return d, NO_ROOM
            draw_successors(T, R, space, setting, tree, node, a, row, level)
            if not all_drawn:
                continue
        edge = widest(tree, node, a)
        if edge == NO_NODE:
            return d, FITS
        s = tree.next[edge]
        tree.path[d, 0] = node
        tree.path[d, 1] = a
        tree.path[d, 2] = edge
        d += 1
        verbs.push(T, row, s)
        verbs.push_reward(R, row, s, tree.reward[edge])
        if level + 1 == setting.depth:
            return d, FITS
        if tree.child[edge] == NO_NODE:
            stream = branch(branch(tree.stream[node], a), setting.C + edge - tree.begin[node, a])
            tree.child[edge] = tree.used[NODES]
        node = tree.child[edge]


@kernel
def reward_bounds(R):
    """(lowest, highest) reward."""
    return verbs.reward_range(R)


@kernel
def best_action(tree, space, s, rng):
    """The root action with the largest mean of r + γ U, ties at random."""
    C = tree.root_upper.shape[1]
    most, action, ties = -np.inf, 0, 1
    for a in range(space.allowed.shape[1]):
        if space.allowed[s, a]:
            value = 0.0
            for c in range(C):
                value += tree.root_upper[a, c]
            if value > most:
                most, action, ties = value, a, 1
            elif value == most:
                ties += 1
                if below(rng, ties) == 0:
                    action = a
    return action


@known
@dataclass
class Memory:
    """Room for the trees, which are grown anew at every step."""

    tree: Tree
    discount: float
    reward_range: tuple[float, float]


@known
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

    n_successors: int = 10
    n_trajectories: int = 10
    depth: int = 16
    leaf: str = "upper"

    def __post_init__(self) -> None:
        for name in ("n_successors", "n_trajectories", "depth"):
            _checks.integer(getattr(self, name), name)
        _checks.one_of(self.leaf, "leaf", LEAVES)

    def start(self, belief: Belief, discount: float) -> Memory:
        ranged = type(belief.R) in verbs.reward_range.table
        low, high = reward_bounds(belief.R) if ranged else (-math.inf, math.inf)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(
                f"BFS3 bounds values by the range of the rewards, and {belief.reward_model or type(belief.R).__name__} "
                "has none; give it bounds=(low, high), in text for instance normal:bounds=(0,1), or use a planner "
                "without bounds, such as BAMCP"
            )
        nodes = min(self.n_trajectories * self.depth, FIRST_NODES)
        tree = new_tree(belief.n_actions, self.n_successors, self.depth, nodes, nodes * self.n_successors)
        return Memory(tree, discount, (float(low), float(high)))

    def act(self, memory: Memory, belief: Belief, state: int, rng: np.ndarray) -> int:
        belief.reserve(self.depth + 1)
        setting = self._setting(memory, belief)
        before = rng.copy()
        while True:
            status = belief.call(
                bound_actions, belief.T, belief.R, belief.space, setting, memory.tree, state, rng
            )
            if status == FITS:
                return int(best_action(memory.tree, belief.space, state, rng))
            sizes = 2 * len(memory.tree.stream), 2 * len(memory.tree.next)
            memory.tree = new_tree(belief.n_actions, self.n_successors, self.depth, *sizes)
            rng[:] = before  # and search the very same trees again, now that they fit

    def plan(self, memory: Memory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        tree, setting = memory.tree, self._setting(memory, belief)
        upper, lower = tree.root_upper.mean(axis=1), tree.root_lower.mean(axis=1)
        if self.leaf == "upper":  # what lies beyond may be as bad as V_min
            lower -= setting.discount**self.depth * (setting.high - setting.low)
        spread = np.full(belief.n_actions, np.nan)
        if self.n_successors > 1:
            spread = tree.root_upper.std(axis=1, ddof=1)
        actions = np.flatnonzero(belief.space.allowed[state]).tolist()
        return Plan(
            action,
            float(upper[action]),
            tuple(Candidate(a, float(upper[a]), float(spread[a]), self.n_successors) for a in actions),
            details={
                "lower": {a: float(lower[a]) for a in actions},
                "nodes": int(tree.used[ALL_NODES]),
                "trajectories": int(tree.used[TRAJECTORIES]),
                "depth": self.depth,
            },
        )

    def explain(self, memory: Memory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        from bamdp.planners.bfs3_view import view

        plan = self.plan(memory, belief, state, rng)
        tree = view(memory.tree, self._setting(memory, belief), belief, state, plan)
        return replace(plan, tree=tree)

    def _setting(self, memory: Memory, belief: Belief) -> Setting:
        ends = bool(belief.episodes.ends.any())
        low, high = (r / (1.0 - memory.discount) for r in memory.reward_range)
        if ends or self.leaf == "zero":  # rewards may stop, so the value may be nearer to 0 than for ever r
            low, high = min(low, 0.0), max(high, 0.0)
        certain = isinstance(belief.R, KnownState)
        return Setting(
            discount=memory.discount,
            depth=self.depth,
            C=self.n_successors,
            n=self.n_trajectories,
            high=high,
            low=low,
            leaf=high if self.leaf == "upper" else 0.0,
            by_action=certain and belief.R.next_step == 0 and not ends,
            certain=certain,
        )
