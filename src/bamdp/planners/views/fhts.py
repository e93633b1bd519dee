"""The tree of FHTS, walked again with the table of values at hand.

The tree of histories is far larger than the set of hyper-states that the search has kept (histories that differ in
the order of the data alone share one), and far larger than anyone can look at. It is opened from the root, the most
probable hyper-state first, until it is complete or has MOST_OPENED nodes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bamdp._kernels.jit import kernel
from bamdp._kernels.streams import plus
from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import push_step, undo_steps
from bamdp.planners.fhts import FHTS, SALTS, ValueTable, find_slot, mix_code
from bamdp.planners.views.tree import NO_NODE, ROOT, Tree, TreeBuilder

MOST_OPENED = 4_000  # nodes

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
