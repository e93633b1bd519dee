"""DSS as an ordinary recursion: Algorithm 2 for a policy generator in plain Python, and for a tree to look at.

The same search as the compiled one in :mod:`bamdp.planners.dss`: the same draws in the same order, sums added in the
same order, hence the same values to the bit (a test holds the two together). What costs time is still compiled:
sampling a model, solving it, the K steps of a sample. A generator in plain Python is handed models as
:class:`~bamdp.FiniteMDP`, one by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bamdp._kernels.jit import kernel
from bamdp.beliefs import verbs
from bamdp.beliefs.base import Belief
from bamdp.mdp.model import FiniteMDP
from bamdp.planners.thompson import sample_and_solve
from bamdp.planners.tree import NONE, Tree, TreeBuilder, take_back

if TYPE_CHECKING:
    from bamdp.planners.dss import DSS, Memory


@kernel
def roll_out(T, R, space, K, discount, policy, s, path, gain, rng):
    """K pushed steps of ``policy`` from ``s``; returns (discounted return, steps).

    The states entered go to ``path``, int64 [K], and the rewards to ``gain``, float64 [K].
    """
    n_actions = space.allowed.shape[1]
    total, weight = 0.0, 1.0
    k = 0
    while k < K and not space.terminal[s]:
        row = s * n_actions + policy[s]
        s = verbs.advance(T, row, rng)
        r = verbs.draw_reward(R, row, s, rng)
        verbs.push_reward(R, row, s, r)
        total += weight * r
        weight *= discount
        path[k] = s
        gain[k] = r
        k += 1
    return total, k


@kernel
def power(x, n):
    """x^n as the compiled search has it, which need not be Python's to the last bit."""
    return x**n


class NoRoom(Exception):
    """A model did not fit: the search must begin again with more room."""


def search_in_python(planner: DSS, memory: Memory, belief: Belief, state: int, rng: np.ndarray) -> None:
    """Fill the root arrays of ``memory.tree`` as the compiled search does."""
    _search(planner, memory, belief, state, rng, None)


def search_with_tree(planner: DSS, memory: Memory, belief: Belief, state: int, rng: np.ndarray) -> Tree:
    """The same, and the tree."""
    builder = _search(planner, memory, belief, state, rng, TreeBuilder())
    assert builder is not None
    best = int(np.argmax(memory.tree.value))  # choices at the root were added one after the other
    at_root = [i for i, parent in enumerate(builder.columns["parent"]) if parent == 0]
    return builder.finish(at_root[best])


def _search(
    planner: DSS,
    memory: Memory,
    belief: Belief,
    state: int,
    rng: np.ndarray,
    builder: TreeBuilder | None,
) -> TreeBuilder | None:
    before = rng.copy()
    while True:
        search = _Search(
            planner, memory, belief, rng, builder, float(power(memory.discount, planner.n_steps))
        )
        root = NONE if builder is None else builder.hyper_state(NONE, state, count=1)
        try:
            search.value(state, 0, root)
        except NoRoom:
            planner._grow(memory)
            rng[:] = before
            builder = None if builder is None else TreeBuilder()
        else:
            return builder


@dataclass
class _Search:
    """One search: what all of its nodes share."""

    planner: DSS
    memory: Memory
    belief: Belief
    rng: np.ndarray
    builder: TreeBuilder | None
    last_discount: float  # γ^K

    def value(self, state: int, h: int, node: int) -> float:
        """V_h of the hyper-state that the belief is in now; ``node`` is its place in the tree."""
        if self.belief.space.terminal[state]:
            best = 0.0
        elif h == self.planner.n_stages:
            best = self._leaf(state)
        else:
            best = -math.inf
            for i in range(self.planner.n_policies):
                policy = self._policy(state)
                q, spread = self._try(policy, state, h, node)
                if h == 0:
                    self._note_at_root(i, policy, int(policy[state]), q, spread, better=q > best)
                best = max(best, q)
        if self.builder is not None:
            self.builder.set(node, value=best)
        return best

    def _try(self, policy: np.ndarray, state: int, h: int, node: int) -> tuple[float, float]:
        """Q(ω, π) from M samples, and their standard deviation."""
        M = self.planner.n_samples
        choice = NONE
        if self.builder is not None:
            choice = self.builder.choice(node, int(policy[state]), policy=policy, count=M)
        total = squares = 0.0
        for _ in range(M):
            q = self._sample(policy, state, h, choice)
            total += q
            squares += q * q
        mean = total / M
        spread = math.sqrt(max(0.0, squares / M - mean * mean) * M / (M - 1)) if M > 1 else math.nan
        if self.builder is not None:
            self.builder.set(choice, value=mean, spread=spread)
        return mean, spread

    def _sample(self, policy: np.ndarray, state: int, h: int, choice: int) -> float:
        """K steps and what follows them."""
        K, belief = self.planner.n_steps, self.belief
        path, gain = np.empty(K, np.int64), np.empty(K)
        total, steps = roll_out(
            belief.T, belief.R, belief.space, K, self.memory.discount, policy, state, path, gain, self.rng
        )
        end = int(path[steps - 1])
        node = NONE
        if self.builder is not None:
            node = self.builder.hyper_state(
                choice,
                end,
                path=path[:steps],  # type: ignore[arg-type]
                gains=gain[:steps],  # type: ignore[arg-type]
                reward=total,
                share=1.0 / self.planner.n_samples,
                count=1,
            )
        try:
            value = self.value(end, h + 1, node)
        finally:
            take_back(belief.T, belief.R, steps)
        return float(total) + self.last_discount * value

    def _policy(self, state: int) -> np.ndarray:
        """A sampled model, made a policy."""
        belief, memory = self.belief, self.memory
        if memory.generator is None:
            return _checked(self.planner.generator, belief.sample(self.rng), memory.discount)
        rows, solver = memory.space.rows, memory.space.solver
        end = sample_and_solve(
            belief.T,
            belief.R,
            belief.space,
            memory.generator,
            memory.discount,
            rows,
            solver,
            state,
            self.rng,
        )
        if end == verbs.NO_ROOM:
            raise NoRoom
        return solver.policy.copy()

    def _leaf(self, state: int) -> float:
        status, value = self.planner._leaf_value(self.memory, self.belief, state, self.rng)
        if status == verbs.NO_ROOM:
            raise NoRoom
        return float(value)

    def _note_at_root(
        self, i: int, policy: np.ndarray, action: int, q: float, spread: float, *, better: bool
    ) -> None:
        tree = self.memory.tree
        tree.action[i], tree.value[i], tree.spread[i] = action, q, spread
        if better:
            tree.best[:] = policy


def _checked(generator: Any, mdp: FiniteMDP, discount: float) -> np.ndarray:
    """The user's policy, checked."""
    policy = np.asarray(generator(mdp, discount))
    if policy.shape != (mdp.n_states,) or not np.issubdtype(policy.dtype, np.integer):
        raise ValueError(
            f"the generator must return one action for each of the {mdp.n_states} states (integers), got "
            f"shape {list(policy.shape)} of {policy.dtype}"
        )
    bad = np.flatnonzero((policy < 0) | (policy >= mdp.n_actions))
    if not len(bad):
        allowed = np.asarray(mdp.action_mask)[np.arange(mdp.n_states), policy]
        bad = np.flatnonzero(~allowed & ~np.asarray(mdp.terminal))
    if len(bad):
        raise ValueError(
            f"the generator chose action {policy[bad[0]]} in state {bad[0]}, which does not exist"
        )
    return policy.astype(np.int32)
