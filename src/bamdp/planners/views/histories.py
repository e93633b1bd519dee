"""Trees of histories: of BAMCP and BAUCT, of BFS3, and of FHTS.

That of BAMCP and BAUCT is read out of what the search left behind.

BFS3 has a tree below each successor of the root, and a search keeps only the last of them. The draws and ties of each
come from a stream of its own, so growing it again gives the very same tree.

FHTS is walked again with the table of values at hand. The tree of histories is far larger than the set of hyper-states
that the search has kept (histories that differ in the order of the data alone share one), and far larger than anyone
can look at. It is opened from the root, the most probable hyper-state first, until it is complete or has MOST_OPENED
nodes.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp._kernels.jit import kernel
from bamdp._kernels.streams import plus
from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import push_step, undo_steps
from bamdp.planners.base import Plan
from bamdp.planners.bfs3 import NO_SUCCESSOR, TREE_NODES, BFS3Params, BFS3Tree, bound_successor
from bamdp.planners.fhts import FHTS, SALTS, ValueTable, find_slot, mix_code
from bamdp.planners.shared.history_tree import NODES
from bamdp.planners.shared.tree_search import TreeSearchMemory
from bamdp.planners.views.tree import CHOICE, HYPER_STATE, NO_NODE, ROOT, Tree, TreeBuilder, make_tree

MOST_OPENED = 4_000  # nodes


def view_histories(memory: TreeSearchMemory, belief: Belief, state: int, action: int) -> Tree:
    """Return histories as hyper-states and tried actions as choices; the value of a history is its mean return.

    The simulations of a choice that ended above its children (at the history that they made, at the depth limit)
    are in its count, so the shares of the children may sum to less than 1. A history that only the last of all
    simulations has met was made and not yet searched from: its count is 0.
    """
    tree, A = memory.tree, belief.n_actions
    n = int(tree.used[NODES])
    key, tries, q = tree.key[:n], tree.tries[:n], tree.value[:n]
    state_of = np.where(key >= 0, key % belief.n_states, state)
    pair = key // belief.n_states  # parent history · A + action
    node, chosen_action = np.nonzero(tries)  # the choices, by history
    # a history is followed by its choices, so that parents stand before their children
    n_choices = np.count_nonzero(tries, axis=1)
    at = np.arange(n) + np.concatenate([[0], np.cumsum(n_choices)[:-1]])
    rank = np.arange(len(node)) - np.concatenate([[0], np.cumsum(n_choices)[:-1]])[node]
    choice_at = at[node] + 1 + rank
    place = np.full(n * A, NO_NODE)  # of a choice, by history · A + action
    place[node * A + chosen_action] = choice_at
    size = n + len(node)
    columns = {
        name: np.full(size, NO_NODE) for name in ("kind", "parent", "depth", "state", "action", "count")
    }
    columns |= {name: np.full(size, np.nan) for name in ("reward", "share", "value", "spread")}
    inner = np.arange(n) != ROOT

    columns["kind"][at], columns["kind"][choice_at] = HYPER_STATE, CHOICE
    columns["parent"][at[inner]], columns["parent"][choice_at] = place[pair[inner]], at[node]
    columns["state"][at], columns["state"][choice_at] = state_of, state_of[node]
    columns["action"][at[inner]], columns["action"][choice_at] = pair[inner] % A, chosen_action
    columns["count"][at], columns["count"][choice_at] = tree.visits[:n], tries[node, chosen_action]
    depth = _depths(np.where(inner, pair // A, NO_NODE))
    columns["depth"][at], columns["depth"][choice_at] = depth, depth[node]
    with np.errstate(invalid="ignore"):
        mean = (tries * q).sum(axis=1) / tree.visits[:n]
    columns["value"][at], columns["value"][choice_at] = mean, q[node, chosen_action]
    columns["share"][at[inner]] = tree.visits[:n][inner] / tries.ravel()[pair[inner]]
    rewards = _rewards(memory, belief, state_of, pair, inner)
    columns["reward"][at] = rewards
    at_root = node == ROOT
    columns["spread"][choice_at[at_root]] = _spreads(tree.returns)[chosen_action[at_root]]

    begin = np.zeros(size + 1, np.int64)  # one step into every history but the root
    begin[1:] = np.cumsum(columns["kind"] == HYPER_STATE) - 1
    return make_tree(
        columns,
        int(place[action]),
        path_begin=begin,
        path=state_of[inner].astype(np.int32),
        path_reward=rewards[inner],
    )


def _depths(parent: NDArray[np.int64]) -> NDArray[np.int64]:
    depth = np.zeros(len(parent), np.int64)
    for i in range(1, len(parent)):
        depth[i] = depth[parent[i]] + 1
    return depth


def _rewards(
    memory: TreeSearchMemory,
    belief: Belief,
    state_of: NDArray[np.int64],
    pair: NDArray[np.int64],
    inner: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return the reward on the way into each history: kept in it, or known; NaN where neither."""
    n = len(pair)
    out = np.full(n, np.nan)
    if memory.params.by_reward:
        out[inner] = memory.tree.reward[:n][inner]
    elif belief.rewards.certain:
        A = belief.n_actions
        row = state_of[pair[inner] // A] * A + pair[inner] % A
        out[inner] = [verbs.outcome(belief.rewards, *step, 0)[0] for step in zip(row, state_of[inner])]
    return out


def _spreads(returns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the spreads of the root's returns, by action; as in the plan's candidates."""
    n, total, squares = returns.T
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.maximum(0.0, squares - total * total / n) / (n - 1.0)
    return np.where(n > 1, np.sqrt(variance), np.nan)


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


SimulatedStep = tuple[int, int, float]  # row, next state, reward
OpenNode = tuple[
    float, int, int, tuple[SimulatedStep, ...], Any
]  # -probability, node, state, way from the root, fingerprint


@kernel
def stored_value(table, first, second):
    """Return what was found for a hyper-state."""
    return table.value[find_slot(table, first, second)]


@kernel
def fingerprint(words, code):
    """Add one more transition to ``words``, uint64 [2]."""
    words[0] = plus(words[0], mix_code(code, SALTS[0]))
    words[1] = plus(words[1], mix_code(code, SALTS[1]))


@kernel
def reward_after(belief, row, s2, i):
    """Return (reward, probability) of the i-th outcome of a transition."""
    verbs.push(belief.transitions, row, s2)
    r, p = verbs.outcome(belief.rewards, row, s2, i)
    verbs.pop(belief.transitions)
    return r, p


def view_exact_tree(
    planner: FHTS,
    discount: float,
    belief: Belief,
    state: int,
    table: ValueTable,
    action: int,
    most: int = MOST_OPENED,
) -> Tree:
    """Return the tree of histories, as far as ``most`` nodes go."""
    walk = _Walk(planner, discount, belief, table, TreeBuilder(limit=most))
    walk.run(state)
    builder = walk.builder
    at_root = [i for i, parent in enumerate(builder.columns["parent"]) if parent == ROOT]
    best = next(i for i in at_root if builder.columns["action"][i] == action)
    return builder.finish(best, total=builder.total + walk.unopened)


@dataclass
class _Walk:
    planner: FHTS
    discount: float
    belief: Belief
    table: ValueTable
    builder: TreeBuilder
    unopened: int = 0  # hyper-states below which there is more
    waiting: list[OpenNode] = field(default_factory=list)

    def run(self, state: int) -> None:
        root = self.builder.hyper_state(NO_NODE, state, count=1, share=1.0)
        self.waiting.append((-1.0, root, state, (), np.zeros(2, np.uint64)))
        while self.waiting and len(self.builder.paths) < self.builder.limit:
            self._open(*heapq.heappop(self.waiting))
        self.unopened = len(self.waiting)

    def _open(self, weight: float, node: int, state: int, way: tuple[SimulatedStep, ...], words: Any) -> None:
        """Add the choices of a hyper-state and what they may lead to."""
        arrays, A = self.belief.arrays, self.belief.n_actions
        for row, s2, r in way:
            push_step(arrays, row, s2, r)
        values = [
            self._choice(weight, node, state, state * A + int(a), way, words)
            for a in np.flatnonzero(self.belief.space.allowed[state])
        ]
        undo_steps(arrays, len(way))
        self.builder.set(node, value=max(values))

    def _choice(
        self, weight: float, node: int, state: int, row: int, way: tuple[SimulatedStep, ...], words: Any
    ) -> float:
        """Q of an action at the hyper-state that the belief is in now, added up as the search does."""
        a = row - state * self.belief.n_actions
        choice = self.builder.choice(node, a)
        q = self.belief.expected_reward(state, a)
        if len(way) + 1 < self.planner.horizon:
            chance = self.belief.predictive(state, a)
            for s2 in np.flatnonzero((chance > 0.0) & ~self.belief.space.terminal).tolist():
                for worth in self._children(weight, choice, row, s2, float(chance[s2]), way, words):
                    q += worth  # one by one, as the search does: sums depend on the order in the last bit
        self.builder.set(choice, value=q, spread=0.0)
        return q

    def _children(
        self,
        weight: float,
        choice: int,
        row: int,
        s2: int,
        chance: float,
        way: tuple[SimulatedStep, ...],
        words: Any,
    ) -> Iterator[float]:
        """Add what a next state adds to Q with each of the rewards that may come with it."""
        S, n_rewards = self.belief.n_states, self.belief.rewards.n_outcomes
        for i in range(n_rewards):
            r, p = reward_after(self.belief.arrays, row, s2, i)
            if p <= 0.0:
                continue
            after = words.copy()
            fingerprint(after, (row * S + s2) * n_rewards + i)
            value = float(stored_value(self.table, after[0], after[1]))
            child = self.builder.hyper_state(
                choice, s2, path=(s2,), gains=(r,), reward=r, share=chance * p, value=value, count=1
            )
            if child != NO_NODE:
                further = (*way, (row, s2, float(r)))
                heapq.heappush(self.waiting, (weight * chance * p, child, s2, further, after))
            yield self.discount * p * chance * value
