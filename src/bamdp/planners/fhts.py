"""FHTS: exact finite-horizon tree search (Algorithm 1 of Grover, Basu & Dimitrakakis 2020, by its equation 5).

With h steps behind and the belief β as it then is, for the hyper-state ω = (s, β),

    V_H(ω)    = 0,        V_h(ω) = 0 in terminal states
    Q_h(ω, a) = E[r | ω, a] + γ Σ_{s'} ν(s' | ω, a) Σ_r τ(r | ω, a, s') V_{h+1}(ω')
    V_h(ω)    = max_a Q_h(ω, a)

where ω' = (s', β updated with s, a, r, s'). This is the Bayes-optimal value of H steps, exact up to rounding;
what lies beyond is worth at most γ^H max|r| / (1−γ). Algorithm 1 as printed leaves out E[r] and γ, and does not
speak of rewards that are learned: those are enumerated like next states, so a reward model must have finitely
many outcomes.

**Merging.** Beliefs do not depend on the order of the data. The multiset of (s, a, r, s') pushed since the root
therefore determines the hyper-state: its size is h, and s is the state that was entered once more than it was
left (or the root's). Its fingerprint is the sum modulo 2^64, twice, of SplitMix64 words of its members, and
values are kept in a hash table by these 128 bits. Two of n hyper-states share a fingerprint with probability
about n²/2^129: below 3e-26 for four million. On a bandit with A arms, H steps have O(H^2A) hyper-states in
place of (2A)^H histories.

The tree is walked depth first with an explicit stack; only one branch exists at a time, so the belief is pushed
along it and popped on the way back. When the table is full the walk stops, the table is moved to a larger one
outside the kernel, and the walk begins again with all finished hyper-states at hand.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import NamedTuple

import numpy as np

from bamdp._kernels.jit import kernel, primitive
from bamdp._kernels.streams import GOLDEN, finalise, plus, times
from bamdp._parameters import whole_number
from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import undo_steps
from bamdp.beliefs.verbs import DONE, NO_ROOM
from bamdp.planners.base import Cost, Plan, Planner, estimate, exact_candidates, greedy, n_branches
from bamdp.planners.shared.tree_search import MANY_OUTCOMES

FIRST_SLOTS = 1 << 12  # of the first table
SALTS = np.array([0x243F6A8885A308D3, 0x13198A2E03707344], np.uint64)
ACTION, CHILD, LAST, OUTCOME = range(4)  # columns of FHTSStack.at
BEGIN = -1  # in CHILD: the action's next states are not listed yet
ACTION_Q, NODE_BEST, CHILD_WEIGHT = range(3)  # columns of FHTSStack.sums
STORED, MERGED, MOST_STORED, FULL = range(4)  # entries of ValueTable.size


class FHTSStack(NamedTuple):
    """The branch at hand, one entry per level, and the root's result. All arrays are written to."""

    state: np.ndarray  # int64 [H]: s of the node
    word: np.ndarray  # uint64 [H, 2]: the fingerprint of what was pushed since the root
    at: np.ndarray  # int64 [H, 4]: action, next state in its list, end of that, reward outcome
    sums: np.ndarray  # float64 [H, 3]: Q of the action so far, best Q, γ·p of the child
    next: np.ndarray  # int32 [H, S]: next states of the action
    prob: np.ndarray  # float64 [H, S]: their predictive probabilities
    entry: np.ndarray  # int32 [E]: scratch for one row: next states
    share: np.ndarray  # float64 [E]: scratch for one row: probabilities
    value: np.ndarray  # float64 [A]: Q at the root, NaN where an action does not exist


class ValueTable(NamedTuple):
    """Values of finished hyper-states: open addressing, linear probing, at most half full."""

    word: np.ndarray  # uint64 [L, 2]: L, the number of slots, is a power of two
    value: np.ndarray  # float64 [L]
    used: np.ndarray  # bool [L]
    size: np.ndarray  # int64 [4]: STORED, MERGED (visits that found one), MOST_STORED, FULL


@primitive
def mix_code(code, salt):
    """Return 64 bits that look random, from the number of a transition."""
    return finalise(plus(times(np.uint64(code), np.uint64(GOLDEN)), salt))


@primitive
def find_slot(table, first, second):
    """Return the slot of a fingerprint, or the free one where it belongs."""
    last = table.value.shape[0] - 1
    slot = np.int64(first & np.uint64(last))
    while table.used[slot] and (table.word[slot, 0] != first or table.word[slot, 1] != second):
        slot = (slot + 1) & last
    return slot


@primitive
def put_value(table, first, second, value):
    """Keep a value; False if the table is full."""
    if table.size[STORED] == table.size[MOST_STORED]:
        table.size[FULL] = 1
        return False
    slot = find_slot(table, first, second)
    table.used[slot] = True
    table.word[slot, 0] = first
    table.word[slot, 1] = second
    table.value[slot] = value
    table.size[STORED] += 1
    return True


@kernel
def move_values(old, new):
    """Everything in ``old`` into the empty table ``new``."""
    for slot in range(old.value.shape[0]):
        if old.used[slot]:
            put_value(new, old.word[slot, 0], old.word[slot, 1], old.value[slot])
    new.size[MERGED] = old.size[MERGED]


class FHTSArrays(NamedTuple):
    """The branch at hand and the values of finished hyper-states."""

    stack: FHTSStack
    table: ValueTable


@kernel
def search_exactly(belief, arrays, discount, n_rewards, s):
    """Fills ``stack.value`` for state ``s``; returns DONE, or NO_ROOM for a row or in the table.

    The belief is as before when it returns, in any case. ``n_rewards`` are the outcomes of a reward.
    """
    T, R, space = belief.transitions, belief.rewards, belief.space
    stack, table = arrays.stack, arrays.table
    n_states, n_actions = space.allowed.shape
    H = stack.state.shape[0]
    h = 0
    _enter(stack, 0, s)
    while True:
        a = stack.at[h, ACTION]
        up = a == n_actions  # the node is complete
        fits = True
        if up:
            if h == 0:
                return DONE
            fits = put_value(table, stack.word[h, 0], stack.word[h, 1], stack.sums[h, NODE_BEST])
        elif stack.at[h, CHILD] == BEGIN:
            if not space.allowed[stack.state[h], a]:
                stack.at[h, ACTION] += 1
                continue
            row = stack.state[h] * n_actions + a
            end, background = verbs.mean_row(T, row, stack.entry, stack.share, 0)
            if end == NO_ROOM:
                fits = False
            else:
                stack.sums[h, ACTION_Q] = verbs.expected_reward(
                    R, row, stack.entry, stack.share, 0, end, background
                )
                stack.at[h, LAST] = 0 if h + 1 == H else _list_children(stack, space, h, end, background)
                stack.at[h, CHILD] = 0
                stack.at[h, OUTCOME] = 0
        if not fits:
            undo_steps(belief, h)
            return NO_ROOM
        if up:
            value = stack.sums[h, NODE_BEST]
            h -= 1
            stack.sums[h, ACTION_Q] += stack.sums[h, CHILD_WEIGHT] * value
            stack.at[h, OUTCOME] += 1
            undo_steps(belief, 1)
            continue
        if stack.at[h, CHILD] == stack.at[h, LAST]:  # the action is complete
            if h == 0:
                stack.value[a] = stack.sums[0, ACTION_Q]
            stack.sums[h, NODE_BEST] = max(stack.sums[h, NODE_BEST], stack.sums[h, ACTION_Q])
            stack.at[h, ACTION] += 1
            stack.at[h, CHILD] = BEGIN
            continue
        if stack.at[h, OUTCOME] == n_rewards:  # the next state is complete
            stack.at[h, CHILD] += 1
            stack.at[h, OUTCOME] = 0
            continue
        # the next outcome of the action: looked up if its hyper-state was met before, else entered
        row = stack.state[h] * n_actions + a
        s2 = np.int64(stack.next[h, stack.at[h, CHILD]])
        i = stack.at[h, OUTCOME]
        verbs.push(T, row, s2)
        r, p = verbs.outcome(R, row, s2, i)
        if p > 0.0:
            code = (row * n_states + s2) * n_rewards + i
            first = plus(stack.word[h, 0], mix_code(code, SALTS[0]))
            second = plus(stack.word[h, 1], mix_code(code, SALTS[1]))
            weight = discount * p * stack.prob[h, stack.at[h, CHILD]]
            slot = find_slot(table, first, second)
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
    """Begin a node at level ``h``."""
    stack.state[h] = s
    stack.at[h, ACTION] = 0
    stack.at[h, CHILD] = BEGIN
    stack.sums[h, NODE_BEST] = -np.inf


@primitive
def _list_children(stack, space, h, end, background):
    """List the possible next states that are not terminal (those are worth 0); returns how many."""
    n_states = space.terminal.shape[0]
    n = 0
    if background > 0.0:
        for s2 in range(n_states):
            stack.prob[h, s2] = background / n_states
        for i in range(end):
            stack.prob[h, stack.entry[i]] += stack.share[i]
        for s2 in range(n_states):
            if stack.prob[h, s2] > 0.0 and not space.terminal[s2]:
                stack.next[h, n] = s2
                stack.prob[h, n] = stack.prob[h, s2]
                n += 1
        return n
    for i in range(end):
        if stack.share[i] > 0.0 and not space.terminal[stack.entry[i]]:
            stack.next[h, n] = stack.entry[i]
            stack.prob[h, n] = stack.share[i]
            n += 1
    return n


def new_stack(belief: Belief, horizon: int, room: int) -> FHTSStack:
    """Return a stack for so many steps, with ``room`` for the entries of one row."""
    S, A, H = belief.n_states, belief.n_actions, horizon
    return FHTSStack(  # written out, since every decision makes one
        state=np.zeros(H, np.int64),
        word=np.zeros((H, 2), np.uint64),
        at=np.zeros((H, 4), np.int64),
        sums=np.zeros((H, 3)),
        next=np.zeros((H, S), np.int32),
        prob=np.zeros((H, S)),
        entry=np.zeros(room, np.int32),
        share=np.zeros(room),
        value=np.full(A, np.nan),
    )


def new_table(slots: int, limit: int) -> ValueTable:
    """Return an empty table for up to ``limit`` values; ``slots`` must be a power of two."""
    return ValueTable(
        word=np.zeros((slots, 2), np.uint64),
        value=np.zeros(slots),
        used=np.zeros(slots, bool),
        size=np.array([0, 0, min(slots // 2, limit), 0], np.int64),
    )


@dataclass
class FHTSMemory:
    """Nothing but the discount and how much room the last search took (results do not depend on it)."""

    discount: float
    slots: int
    row_room: int


class FHTSRoom:
    """Room for one search: a row that does not fit needs a longer stack, a full table a larger one."""

    def __init__(self, planner: FHTS, memory: FHTSMemory, belief: Belief) -> None:
        self.planner, self.memory, self.belief = planner, memory, belief
        self.limit = planner.max_hyper_states - 1  # the root is not kept
        stack = new_stack(belief, planner.horizon, memory.row_room)
        self.arrays = FHTSArrays(stack, new_table(memory.slots, self.limit))

    def grow(self) -> None:
        """Make room where it was lacking; finished hyper-states stay in the table."""
        memory, table = self.memory, self.arrays.table
        if table.size[FULL] and table.size[STORED] == self.limit:
            raise RuntimeError(
                f"FHTS(horizon={self.planner.horizon}) needs more than {self.planner.max_hyper_states} hyper-states "
                "here; lower the horizon, raise max_hyper_states, or use a planner that samples, such as "
                "SparseSampling or DSS"
            )
        if table.size[FULL]:
            memory.slots *= 4
            larger = new_table(memory.slots, self.limit)
            move_values(table, larger)
            table = larger
        else:
            memory.row_room *= 4
        self.arrays = FHTSArrays(new_stack(self.belief, self.planner.horizon, memory.row_room), table)


@dataclass(frozen=True)
class FHTS(Planner):
    """Exact Bayes-optimal planning over a finite horizon.

    Parameters
    ----------
    horizon
        H, steps to look ahead. The cost grows like (A·S)^H before merging.
    max_hyper_states
        Refuse to go on beyond so many distinct hyper-states (while they grow, they take up to 330 bytes each).

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
        return estimate(
            n_states, n_actions, models=0.0, steps=histories, bytes=16.0 * self.horizon * n_states
        )

    def start(self, belief: Belief, discount: float) -> FHTSMemory:
        if not 1 <= (belief.rewards.n_outcomes or 0) <= MANY_OUTCOMES:
            raise ValueError(
                f"FHTS enumerates rewards, and {belief.reward_model} has too many to "
                "enumerate; use KnownRewards, BetaBernoulli or FiniteRewards, or a planner that samples, such as "
                "SparseSampling"
            )
        return FHTSMemory(discount, FIRST_SLOTS, 4 * belief.n_states + 64)

    def act(self, memory: FHTSMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        return greedy(self._search(memory, belief, state)[0])

    def plan(self, memory: FHTSMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        return self._plan(*self._search(memory, belief, state))

    def explain(self, memory: FHTSMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        from bamdp.planners.views.histories import view_exact_tree

        values, table = self._search(memory, belief, state)
        plan = self._plan(values, table)
        return replace(plan, tree=view_exact_tree(self, memory.discount, belief, state, table, plan.action))

    def _plan(self, values: np.ndarray, table: ValueTable) -> Plan:
        best = greedy(values)
        details = {"hyper_states": int(table.size[STORED]) + 1, "merged": int(table.size[MERGED])}
        return Plan(best, float(values[best]), exact_candidates(values), details=details)

    def _search(self, memory: FHTSMemory, belief: Belief, state: int) -> tuple[np.ndarray, ValueTable]:
        """Return the root's Q [A], and the values of all hyper-states below."""
        room = FHTSRoom(self, memory, belief)
        n_rewards = belief.rewards.n_outcomes
        belief.run(search_exactly, room, memory.discount, n_rewards, state, depth=self.horizon)
        return room.arrays.stack.value, room.arrays.table
