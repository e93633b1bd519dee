"""FHTS: exact finite-horizon tree search (Algorithm 1 and equation 5 of Grover, Basu & Dimitrakakis 2020).

For a hyper-state ω = (s, β) after h steps, where β is the belief at that point,

    V_H(ω)    = 0,        V_h(ω) = 0 in terminal states
    Q_h(ω, a) = E[r | ω, a] + γ Σ_{s'} ν(s' | ω, a) Σ_r τ(r | ω, a, s') V_{h+1}(ω')
    V_h(ω)    = max_a Q_h(ω, a)

where ω' = (s', β updated with s, a, r, s'). This is the Bayes-optimal value for H steps, exact up to rounding; later
steps contribute at most γ^H max|r| / (1−γ). Algorithm 1 as printed omits E[r] and γ and does not cover learned rewards.
Here learned rewards are enumerated like next states, so a reward model must have finitely many outcomes.

**Merging.** Beliefs do not depend on the order of the data. The multiset of (s, a, r, s') pushed since the root
therefore determines the hyper-state: its size is h, and s is the state entered one more time than it was left (or
the root's state). The multiset's 128-bit fingerprint consists of two sums, modulo 2^64, of SplitMix64 words of its
members and serves as the key of a hash table of values. Two of n hyper-states share a fingerprint with probability
about n²/2^129: below 3e-26 for four million. On a bandit with A arms, there are O(H^2A) hyper-states over H steps
instead of (2A)^H histories.

The tree is traversed depth first using an explicit stack. Only one branch exists at a time, so steps are pushed onto
the belief along the branch and popped when backtracking. The table is sized for the maximum number of hyper-states:
with n possible transitions, h steps lead to at most n^h hyper-states and to no more than the number of multisets
of size h over n elements.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, NamedTuple

import numpy as np

import bamdp.beliefs.verbs as verbs
import bamdp.planners.tree as trees
from bamdp._kernels.jit import kernel, primitive, zeros
from bamdp._kernels.random import GOLDEN, finalise, plus, times
from bamdp._parameters import whole_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import undo_steps
from bamdp.planners.base import Cost, Plan, enumerable_rewards, estimate, exact_candidates, greedy, n_branches
from bamdp.planners.tree import CHOICE_HERE, NO_NODE, NODE_HERE, TreePlanner, TreeRecord

SALTS = np.array([0x243F6A8885A308D3, 0x13198A2E03707344], np.uint64)
ACTION, OUTCOME, LAST = range(3)  # columns of FHTSStack.at
BEGIN = -1  # in OUTCOME: the action's next states are not listed yet
ACTION_Q, NODE_BEST, CHILD_WEIGHT = range(3)  # columns of FHTSStack.sums
STORED, MERGED, MOST_STORED = range(3)  # entries of ValueTable.size


class FHTSStack(NamedTuple):
    """The current branch, with one entry per level, and the result at the root. All arrays are written to."""

    state: Annotated[np.ndarray, "int64 [H]"]  # s of the node
    word: Annotated[np.ndarray, "uint64 [H, 2]"]  # the fingerprint of the steps since the root
    at: Annotated[
        np.ndarray, "int64 [H, 3]"
    ]  # ACTION, its OUTCOME (next state and reward), number of outcomes
    sums: Annotated[np.ndarray, "float64 [H, 3]"]  # Q of the action so far, best Q, γ·p of the child
    next: Annotated[np.ndarray, "int32 [H, S]"]  # next states of the action
    prob: Annotated[np.ndarray, "float64 [H, S]"]  # their predictive probabilities
    entry: Annotated[np.ndarray, "int32 [E]"]  # scratch for one row: next states
    share: Annotated[np.ndarray, "float64 [E]"]  # scratch for one row: probabilities
    value: Annotated[np.ndarray, "float64 [A]"]  # Q at the root, NaN where an action does not exist


class ValueTable(NamedTuple):
    """Values of finished hyper-states: open addressing, linear probing, at most half full."""

    word: np.ndarray  # uint64 [L, 2]: L, the number of slots, is a power of two
    value: np.ndarray  # float64 [L]
    used: np.ndarray  # bool [L]
    size: np.ndarray  # int64 [3]: STORED, MERGED (visits that found a stored value), MOST_STORED


@primitive
def mix_code(code, salt):
    """Hash the number of a transition to 64 pseudorandom bits."""
    return finalise(plus(times(np.uint64(code), np.uint64(GOLDEN)), salt))


@primitive
def find_slot(table, first, second):
    """Return the slot of a fingerprint, or the free slot for inserting it."""
    last = table.value.shape[0] - 1
    slot = np.int64(first & np.uint64(last))
    while table.used[slot] and (table.word[slot, 0] != first or table.word[slot, 1] != second):
        slot = (slot + 1) & last
    return slot


@primitive
def put_value(table, first, second, value):
    """Store a value; return False if the table is full."""
    if table.size[STORED] == table.size[MOST_STORED]:
        return False
    slot = find_slot(table, first, second)
    table.used[slot] = True
    table.word[slot, 0] = first
    table.word[slot, 1] = second
    table.value[slot] = value
    table.size[STORED] += 1
    return True


@kernel
def search_exactly(belief, stack, table, record, discount, n_rewards, s):
    """Fill ``stack.value`` for state ``s``; return whether all hyper-states fit in the table.

    The belief is always restored before returning. ``n_rewards`` is the number of reward outcomes. The tree is written
    to ``record``, a TreeRecord or None; repeated hyper-states are recorded without descendants.
    """
    T, R, space = belief.transitions, belief.rewards, belief.space
    n_states, n_actions = space.allowed.shape
    H = stack.state.shape[0]
    h = 0
    if record is not None:
        trees.add_node(record, trees.HYPER_STATE, NO_NODE, s, NO_NODE, 1)
        record.real[0, trees.SHARE] = 1.0
    _enter(stack, 0, s)
    while True:
        a = stack.at[h, ACTION]
        if a == n_actions:  # the node is complete
            value = stack.sums[h, NODE_BEST]
            if record is not None:
                trees.set_value(record, record.branch[h, NODE_HERE], value, np.nan)
            if h == 0:
                return True
            undo_steps(belief, 1)
            if not put_value(table, stack.word[h, 0], stack.word[h, 1], value):
                undo_steps(belief, h - 1)
                return False
            h -= 1
            stack.sums[h, ACTION_Q] += stack.sums[h, CHILD_WEIGHT] * value
            stack.at[h, OUTCOME] += 1
            continue
        row = stack.state[h] * n_actions + a
        if stack.at[h, OUTCOME] == BEGIN:
            if not space.allowed[stack.state[h], a]:
                stack.at[h, ACTION] += 1
                continue
            end, background = verbs.mean_row(T, row, stack.entry, stack.share, 0)
            reward = verbs.expected_reward(R, row, stack.entry, stack.share, 0, end, background)
            stack.sums[h, ACTION_Q] = reward
            n_children = 0 if h + 1 == H else _list_children(stack, space, h, end, background)
            stack.at[h, LAST] = n_children * n_rewards
            stack.at[h, OUTCOME] = 0
            if record is not None:
                here = record.branch[h, NODE_HERE]
                choice = trees.add_node(record, trees.CHOICE, here, stack.state[h], a, 0)
                record.branch[h, CHOICE_HERE] = choice
        if stack.at[h, OUTCOME] == stack.at[h, LAST]:  # the action is complete
            if record is not None:
                trees.set_value(record, record.branch[h, CHOICE_HERE], stack.sums[h, ACTION_Q], 0.0)
            if h == 0:
                stack.value[a] = stack.sums[0, ACTION_Q]
            stack.sums[h, NODE_BEST] = max(stack.sums[h, NODE_BEST], stack.sums[h, ACTION_Q])
            stack.at[h, ACTION] += 1
            stack.at[h, OUTCOME] = BEGIN
            continue
        # the action's next outcome: looked up if its hyper-state was seen before, else entered
        child, i = stack.at[h, OUTCOME] // n_rewards, stack.at[h, OUTCOME] % n_rewards
        s2, share = np.int64(stack.next[h, child]), stack.prob[h, child]
        verbs.push(T, row, s2)
        r, p = verbs.outcome(R, row, s2, i)
        if p > 0.0:
            code = (row * n_states + s2) * n_rewards + i
            first = plus(stack.word[h, 0], mix_code(code, SALTS[0]))
            second = plus(stack.word[h, 1], mix_code(code, SALTS[1]))
            weight = discount * p * share
            slot = find_slot(table, first, second)
            if record is not None:
                node = trees.add_outcome(record, record.branch[h, CHOICE_HERE], p * share)
                trees.add_step(record, node, s2, r, 1.0)
                trees.set_value(record, node, table.value[slot], np.nan)
                record.branch[h + 1, NODE_HERE] = node
            if not table.used[slot]:
                verbs.push_reward(R, row, s2, r)
                stack.sums[h, CHILD_WEIGHT] = weight
                h += 1
                _enter(stack, h, s2)
                stack.word[h, 0] = first
                stack.word[h, 1] = second
                continue
            stack.sums[h, ACTION_Q] += weight * table.value[slot]
            table.size[MERGED] += 1
        verbs.pop(T)
        stack.at[h, OUTCOME] += 1


@primitive
def _enter(stack, h, s):
    """Start a node at level ``h``."""
    stack.state[h] = s
    stack.at[h, ACTION] = 0
    stack.at[h, OUTCOME] = BEGIN
    stack.sums[h, NODE_BEST] = -np.inf


@primitive
def _list_children(stack, space, h, end, background):
    """List the possible nonterminal next states (terminal ones have value 0) and return their number."""
    n_states, n = space.terminal.shape[0], 0
    everywhere = background > 0.0
    if everywhere:
        for s2 in range(n_states):
            stack.prob[h, s2] = background / n_states
        for i in range(end):
            stack.prob[h, stack.entry[i]] += stack.share[i]
    for i in range(n_states if everywhere else end):
        s2 = np.int64(i if everywhere else stack.entry[i])
        p = stack.prob[h, s2] if everywhere else stack.share[i]
        if p > 0.0 and not space.terminal[s2]:
            stack.next[h, n] = s2
            stack.prob[h, n] = p
            n += 1
    return n


def new_table(limit: int) -> ValueTable:
    """Return an empty table for up to ``limit`` values."""
    slots = 1 << max(4, (2 * limit - 1).bit_length())
    size = np.array([0, 0, limit], np.int64)
    return ValueTable(np.zeros((slots, 2), np.uint64), np.zeros(slots), np.zeros(slots, bool), size)


def most_hyper_states(n_states: int, n_actions: int, n_rewards: int, horizon: int) -> int:
    """Return an upper bound on the number of hyper-states after fewer than ``horizon`` steps."""
    outcomes = n_states * n_actions * n_rewards
    kinds = n_states * outcomes
    return sum(min(outcomes**h, math.comb(kinds + h - 1, h)) for h in range(1, horizon))


@dataclass
class FHTSMemory:
    """The search stack."""

    stack: FHTSStack
    discount: float
    record: TreeRecord | None = None


@dataclass(frozen=True)
class FHTS(TreePlanner):
    """Exact Bayes-optimal planning over a finite horizon.

    Parameters
    ----------
    horizon
        H, the lookahead in steps. Without merging, the cost grows like (A·S)^H.
    max_hyper_states
        Maximum number of distinct hyper-states; a decision that needs more raises an error.

    Examples
    --------
    >>> import bamdp
    >>> agent = bamdp.Agent(FHTS(horizon=3), prior=bamdp.Dirichlet(), rewards=bamdp.BetaBernoulli(),
    ...                     n_states=1, n_actions=2, discount=0.9, seed=0)
    >>> plan = agent.plan(0)
    >>> round(plan.value, 4), plan.details["hyper_states"]
    (1.4975, 15)
    """

    horizon: int = whole_number(3)
    _: KW_ONLY
    max_hyper_states: int = whole_number(4_000_000)

    def cost(self, n_states: int, n_actions: int, discount: float) -> Cost:
        histories = min(n_branches(float(n_states) * n_actions, self.horizon), self.max_hyper_states)
        stack = 16.0 * self.horizon * n_states
        return estimate(n_states, n_actions, models=0.0, steps=histories, bytes=stack)

    def start(self, belief: Belief, discount: float) -> FHTSMemory:
        if not enumerable_rewards(belief):
            text = (
                "use KnownRewards, BetaBernoulli or FiniteRewards, or a planner that samples: SparseSampling"
            )
            raise ValueError(f"FHTS enumerates rewards, and {belief.reward_model} has too many; {text}")
        S, A = belief.n_states, belief.n_actions
        entries = int(verbs.most_entries(belief.transitions, S))
        return FHTSMemory(zeros(FHTSStack, H=self.horizon, S=S, A=A, E=entries), discount)

    def plan(self, memory: FHTSMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        n_rewards = belief.rewards.n_outcomes
        below = most_hyper_states(belief.n_states, belief.n_actions, n_rewards, self.horizon)
        stack, table = memory.stack, new_table(min(below, self.max_hyper_states - 1))
        stack.word[0], stack.value[:] = 0, np.nan
        belief.reserve(self.horizon)
        given = stack, table, memory.record, memory.discount, n_rewards, state
        if not belief.call(search_exactly, belief.arrays, *given):
            text = "lower the horizon, raise max_hyper_states, or use a planner that samples, such as DSS"
            raise RuntimeError(f"{self} needs more than {self.max_hyper_states} hyper-states here; {text}")
        best = greedy(stack.value)
        details = {"hyper_states": int(table.size[STORED]) + 1, "merged": int(table.size[MERGED])}
        return Plan(best, float(stack.value[best]), exact_candidates(stack.value), details=details)

    def record(self, belief: Belief) -> TreeRecord:
        return trees.new_record(math.inf, belief.n_actions, self.horizon + 1)
