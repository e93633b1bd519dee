"""DSS as an ordinary recursion: Algorithm 2 for a policy generator in plain Python, and for a tree to look at.

The same search as the compiled one in :mod:`bamdp.planners.dss`: the same draws in the same order, sums added in the
same order, hence the same values to the bit (a test holds the two together). What costs time is still compiled:
sampling a model, solving it, the K steps of a sample. A generator in plain Python is handed models as
:class:`~bamdp.FiniteMDP`, one by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bamdp._kernels.jit import kernel, primitive
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import simulate_step, undo_steps
from bamdp.beliefs.verbs import DONE, NO_ROOM
from bamdp.generators.lazy import UNKNOWN, LazyModels
from bamdp.mdp.model import FiniteMDP
from bamdp.planners.dss import (
    DSS,
    DSSMemory,
    DSSParams,
    DSSTree,
    call_draw_policy,
    call_keep_policy,
    call_policy_action,
    policy_action,
)
from bamdp.planners.shared.leaves import value_leaf
from bamdp.planners.views.tree import MAX_NODES, NO_NODE, ROOT, Tree, TreeBuilder, mean_and_spread


@kernel
def roll_out(belief, workspace, params, tree, h, s, path, gain, rng):
    """Push K steps of the policy of stage ``h`` from ``s``; returns (discounted return, steps).

    The states entered go to ``path``, int64 [K], and the rewards to ``gain``, float64 [K]. Where something did not fit,
    what was pushed is taken back, and the steps are NO_ROOM.
    """
    n_actions = belief.space.allowed.shape[1]
    total, weight = 0.0, 1.0
    k = 0
    while k < params.n_steps and not belief.space.terminal[s]:
        action = policy_action(workspace, belief, params, tree, h, s, rng)
        if action == NO_ROOM:
            undo_steps(belief, k)
            return 0.0, NO_ROOM
        s, r = simulate_step(belief, s * n_actions + action, rng)
        total += weight * r
        weight *= params.discount
        path[k] = s
        gain[k] = r
        k += 1
    return total, k


@primitive
def power(x, n):
    """x^n as the compiled search has it, which need not be Python's to the last bit."""
    return x**n


class NoRoom(Exception):
    """A model did not fit: the search must begin again with more room."""


def _fits(status: int) -> int:
    """Return what a kernel has returned, if it had room."""
    if status == NO_ROOM:
        raise NoRoom
    return int(status)


def search_in_python(
    planner: DSS, memory: DSSMemory, belief: Belief, state: int, rng: np.ndarray, most: int = 0
) -> TreeBuilder:
    """Fill the root arrays of ``memory.tree`` as the compiled search does; return its nodes, ``most`` of them kept."""
    builder = TreeBuilder(limit=most)

    def attempt(arrays: Any, workspace: Any, rng: np.ndarray) -> int:
        """Do one search, as :meth:`Belief.run` calls a kernel."""
        nonlocal builder
        builder = TreeBuilder(limit=most)
        last_discount = float(power(memory.params.discount, planner.n_steps))
        search = _Search(planner, memory, belief, rng, builder, last_discount)
        try:
            search.value(state, 0, builder.hyper_state(NO_NODE, state, count=1))
        except NoRoom:
            return NO_ROOM
        return DONE

    belief.run(attempt, memory.workspace, depth=planner.n_steps * planner.n_stages, rng=rng)
    return builder


def search_with_tree(planner: DSS, memory: DSSMemory, belief: Belief, state: int, rng: np.ndarray) -> Tree:
    """Search in the same way, and return the tree as well."""
    builder = search_in_python(planner, memory, belief, state, rng, MAX_NODES)
    best = int(np.argmax(memory.tree.value))  # choices at the root were added one after the other
    at_root = [i for i, parent in enumerate(builder.columns["parent"]) if parent == ROOT]
    return builder.finish(at_root[best])


@dataclass
class _Search:
    """One search: what all of its nodes share."""

    planner: DSS
    memory: DSSMemory
    belief: Belief
    rng: np.ndarray
    builder: TreeBuilder
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
                self._draw_policy(state, h)
                q, spread = self._try(state, h, node)
                if h == 0:
                    self._note_at_root(i, state, q, spread, better=q > best)
                best = max(best, q)
        self.builder.set(node, value=best)
        return best

    def _try(self, state: int, h: int, node: int) -> tuple[float, float]:
        """Q(ω, π) from M samples, and their standard deviation."""
        M, policy = self.planner.n_samples, self._whole(h)
        choice = self.builder.choice(node, self._action(state, h), policy=policy, count=M)
        mean, spread = mean_and_spread([self._sample(state, h, choice) for _ in range(M)])
        self.builder.set(choice, value=mean, spread=spread)
        policy[:] = self._whole(h)  # with the states that the samples came to
        return mean, spread

    def _sample(self, state: int, h: int, choice: int) -> float:
        """Return the return of K steps and of what follows them."""
        K, belief = self.planner.n_steps, self.belief
        path, gain = np.empty(K, np.int64), np.empty(K)
        total, steps = roll_out(belief.arrays, *self._bundles, h, state, path, gain, self.rng)
        end, share = int(path[_fits(steps) - 1]), 1.0 / self.planner.n_samples
        path, gain = path[:steps], gain[:steps]
        known = {"reward": total, "share": share, "count": 1}
        node = self.builder.hyper_state(choice, end, path=path, gains=gain, **known)
        try:
            value = self.value(end, h + 1, node)
        finally:
            undo_steps(belief.arrays, steps)
        return float(total) + self.last_discount * value

    @property
    def _bundles(self) -> tuple[Any, DSSParams, DSSTree]:
        """What the verbs of policies are given after the belief."""
        return self.memory.workspace.arrays, self.memory.params, self.memory.tree

    def _draw_policy(self, state: int, h: int) -> None:
        """Draw a model, and make it the policy of stage ``h``."""
        workspace, params, tree = self._bundles
        tree.state[h] = state
        if params.generator is None:
            mdp = self.belief.sample(self.rng)
            tree.policy[h] = _checked(self.planner.generator, mdp, params.discount)
        else:
            _fits(call_draw_policy(workspace, self.belief.arrays, params, tree, h, self.rng))

    def _action(self, state: int, h: int) -> int:
        """Return the action of stage ``h``'s policy."""
        workspace, params, tree = self._bundles
        return _fits(call_policy_action(workspace, self.belief.arrays, params, tree, h, state, self.rng))

    def _whole(self, h: int) -> np.ndarray:
        """Return the policy of stage ``h`` in all states, as far as it is known."""
        tree, models = self.memory.tree, self.memory.workspace.arrays
        if not isinstance(models, LazyModels):
            return tree.policy[h].copy()
        policy = np.full(self.belief.n_states, UNKNOWN, np.int32)
        places = slice(int(models.begin[h]), int(models.end[h]))
        policy[models.state[places]] = models.action[places]
        return policy

    def _leaf(self, state: int) -> float:
        params, workspace = self.memory.params, self.memory.workspace.arrays
        bundles = params.leaf, self.belief.arrays, workspace
        status, value = value_leaf(*bundles, params.discount, state, self.rng)
        _fits(status)
        return float(value)

    def _note_at_root(self, i: int, state: int, q: float, spread: float, *, better: bool) -> None:
        workspace, params, tree = self._bundles
        tree.action[i], tree.value[i], tree.spread[i] = self._action(state, 0), q, spread
        if better:
            call_keep_policy(workspace, self.belief.arrays, params, tree, self.rng)


def _checked(generator: Any, mdp: FiniteMDP, discount: float) -> np.ndarray:
    """Return the user's policy, checked."""
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
