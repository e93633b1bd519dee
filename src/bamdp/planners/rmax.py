"""RMax: what is not known is as good as it could possibly be.

A pair (s, a) is *known* once it has been tried m times, and then has the frequencies of those m tries as its
model: P̂(s' | s, a) = n(s, a, s') / m, r̂(s, a) the mean of the m rewards. Any other pair is worth V_max for
ever. At every step the action is greedy for

    Q(s, a) = r̂(s, a) + γ Σ_{s'} P̂(s' | s, a) V(s')      known
    Q(s, a) = V_max                                          unknown
    V(s)    = max_a Q(s, a), 0 in terminal states

(the lowest of equal actions). Since V_max = r_max/(1−γ) bounds every return, a greedy policy either reaches
something unknown soon, and learns, or is near-optimal already ("explore or exploit", without being told when).

**When it is solved.** The model of a known pair stays what it was when the pair became known, as in the
original, so that the model changes at most S·A times, and is solved only then, from the last values. With
``refine`` the frequencies of a known pair go on to follow what is seen, and every visit of one calls for a solution.

**Guarantee.** PAC: for m of the order S/(ε²(1−γ)⁴) up to logarithms, on all but polynomially many steps the
policy is ε-optimal, with high probability (Brafman & Tennenholtz 2002 for average reward and games; Kakade 2003
and Strehl, Li & Littman 2009 for discounted MDPs). Such m are far from practice. A small one can freeze a wrong
model for ever, which ``refine`` cures; a large one tries everything so often that nothing is earned. The default
m = 2 was the best of {1, 2, 3, 5, 10, 20} for the share of the optimum, averaged over chain, double_loop, grid5 and
grid10 (γ = .95; 300, 388, 64 and 40 there, and with ``refine`` 368, 388, 72 and 45).

**Departures.** r_max is the largest reward that the belief deems possible. If it is negative then V_max = r_max,
because an episode may end at once. Known rewards are not used for unknown pairs, and the prior over transitions
not at all: this is the baseline that shows what a prior buys.

References: Brafman & Tennenholtz, "R-MAX: a general polynomial time algorithm for near-optimal reinforcement
learning" (JMLR 2002); Strehl, Li & Littman, "Reinforcement learning in finite MDPs: PAC analysis" (JMLR 2009).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bamdp._kernels.jit import inner, kernel
from bamdp._kernels.solve import solve
from bamdp._kernels.sweeps import average, row_value
from bamdp._parameters import flag, positive_number, whole_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import skip_row
from bamdp.beliefs.transitions.counts import (
    COUNT,
    NEXT,
    SIZE,
    START,
    TOTAL,
    Counts,
    commit_count,
    empty_counts,
    push_count,
    with_count_room,
)
from bamdp.beliefs.verbs import NO_ROOM
from bamdp.planners.base import Plan, Planner, Transition, candidates, greedy
from bamdp.planners.shared.workspace import Workspace, workspace_for

LARGEST_COUNT = 2**31


@kernel
def count_try(counts, row, s2):
    """Count a real transition; return how often the pair has been counted by now."""
    push_count(counts, row, s2)
    commit_count(counts, row)
    return counts.rows[row, TOTAL]


class RMaxModel(NamedTuple):
    """What the optimistic model is made of."""

    counts: Counts  # up to m tries of each pair (all with refine); written to
    sums: np.ndarray  # float64 [S*A]: sum of their rewards; written to
    known_after: int  # m
    value: float  # V_max
    discount: float
    tol: float


@inner
def optimistic_model(space, rows, model):
    """Write the model of this file's head into ``rows``; return the used entries, or NO_ROOM.

    An unknown pair is written as a loop that pays (1−γ) V_max per step: its state is then worth V_max, and so is
    the pair. (A row without successors would do, but the solver's bounds want rows that sum to one.)
    """
    counts = model.counts
    n_states, n_actions = space.allowed.shape
    at = 0
    for s in range(n_states):
        for a in range(n_actions):
            row = s * n_actions + a
            skip_row(rows, row, at)
            if space.terminal[s] or not space.allowed[s, a]:
                continue
            total = counts.rows[row, TOTAL]
            known = total >= model.known_after
            size = counts.rows[row, SIZE] if known else 1
            if at + size > rows.index.shape[0]:
                return NO_ROOM
            if known:
                start = counts.rows[row, START]
                for i in range(size):
                    rows.index[at + i] = counts.pool[start + i, NEXT]
                    rows.prob[at + i] = counts.pool[start + i, COUNT] / total
                rows.reward[row] = model.sums[row] / total
            else:
                rows.index[at] = s
                rows.prob[at] = 1.0
                rows.reward[row] = (1.0 - model.discount) * model.value
            at += size
            rows.span[row, 1] = at
    return at


@kernel
def solve_optimistic(belief, workspace, model):
    """Solve the optimistic model from the last values; returns NO_ROOM if it does not fit."""
    end = optimistic_model(belief.space, workspace.rows, model)
    if end != NO_ROOM:
        solve(workspace.rows, belief.space, model.discount, model.tol, workspace.solver, False)
    return end


@kernel
def optimistic_values(space, workspace, model, s, q):
    """Q(s, ·) into ``q`` [A], NaN where an action does not exist."""
    rows, values = workspace.rows, workspace.solver.values
    n_actions = space.allowed.shape[1]
    mean = average(values)
    for a in range(n_actions):
        row = s * n_actions + a
        if not space.allowed[s, a]:
            q[a] = np.nan
        elif model.counts.rows[row, TOTAL] < model.known_after:
            q[a] = model.value
        else:
            q[a] = rows.reward[row] + model.discount * row_value(rows, row, values, mean)


@dataclass
class RMaxMemory:
    """Counts of the tries that count, and the optimistic model's solution."""

    workspace: Workspace
    model: RMaxModel
    due: bool = True  # the model has changed since the last solution
    solved: int = 0  # how often the model was solved


@dataclass(frozen=True, kw_only=True)
class RMax(Planner):
    """R-max: unknown pairs are optimal, known ones as they were seen.

    Parameters
    ----------
    known_after
        m, tries after which a pair is known.
    refine
        Go on learning the model of known pairs.
    tol
        Accuracy of the solution, as in :class:`~bamdp.generators.PI`.

    Examples
    --------
    >>> import bamdp
    >>> agent = bamdp.Agent(RMax(known_after=1), prior=bamdp.Dirichlet(), rewards=[[0.0, 1.0]], n_states=1,
    ...                     n_actions=2, discount=0.9, seed=0)
    >>> agent.act(0)
    0
    >>> agent.observe(0, 0, 0.0, 0)
    >>> agent.act(0)
    1
    """

    uses_prior: ClassVar[bool] = False

    keeps: ClassVar[tuple[str, ...]] = ("model.sums", "solved")

    known_after: int = whole_number(2)
    refine: bool = flag(False)
    tol: float = positive_number(1e-4)

    def start(self, belief: Belief, discount: float) -> RMaxMemory:
        r_max = belief.rewards.reward_range[1]
        if not math.isfinite(r_max):
            raise ValueError(
                f"RMax needs a largest reward, and {belief.reward_model} has none; give it bounds=(low, high), in text "
                "for instance normal:bounds=(0,1), or use a planner that needs no bound, such as EpsilonGreedy"
            )
        if belief.episodes.again:  # beginning again pays 0
            r_max = max(r_max, 0.0)
        value = max(r_max, r_max / (1.0 - discount))
        n_rows = belief.n_states * belief.n_actions
        counts, sums = empty_counts(n_rows), np.zeros(n_rows)
        model = RMaxModel(counts, sums, self.known_after, value, discount, float(self.tol))
        memory = RMaxMemory(workspace_for(belief), model)
        memory.workspace.solver.values[:] = value
        return memory

    def act(self, memory: RMaxMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        return greedy(self._values(memory, belief, state))

    def plan(self, memory: RMaxMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        q = self._values(memory, belief, state)
        tries = memory.model.counts.rows[:, TOTAL].reshape(belief.n_states, -1)
        actions = np.flatnonzero(~np.isnan(q))
        weighed = candidates(actions, q[actions], counts=tries[state, actions])
        best = greedy(q)
        details = {
            "known": tuple(c.action for c in weighed if c.count >= self.known_after),
            "known_pairs": int((tries >= self.known_after).sum()),
            "optimistic_value": memory.model.value,
            "solved": memory.solved,
        }
        return Plan(best, float(q[best]), weighed, details=details)

    def learn(self, memory: RMaxMemory, belief: Belief, seen: Transition) -> None:
        row = seen.s * belief.n_actions + seen.a
        if memory.model.counts.rows[row, TOTAL] >= self.known_after and not self.refine:
            return
        counts = with_count_room(memory.model.counts, 1)
        if counts is not memory.model.counts:
            memory.model = memory.model._replace(counts=counts)
        memory.model.sums[row] += seen.r
        memory.due |= bool(belief.call(count_try, counts, row, seen.s2) >= self.known_after)

    def learned(self, memory: RMaxMemory) -> dict[str, np.ndarray]:
        counts = memory.model.counts
        size = counts.rows[:, SIZE]
        entries = [counts.pool[begin : begin + n] for begin, n in zip(counts.rows[:, START], size)]
        tries = np.concatenate(entries)
        row = np.repeat(np.arange(len(size)), size)
        return super().learned(memory) | {"row": row, "next": tries[:, NEXT], "tries": tries[:, COUNT]}

    def relearn(self, memory: RMaxMemory, belief: Belief, arrays: Mapping[str, np.ndarray]) -> None:
        super().relearn(memory, belief, arrays)
        n_rows = belief.n_states * belief.n_actions
        for name, below in (("row", n_rows), ("next", belief.n_states), ("tries", LARGEST_COUNT)):
            if ((arrays[name] < 0) | (arrays[name] >= below)).any():
                raise ValueError("the file's counts of transitions are damaged")
        for row, s2, n in zip(*(arrays[name].tolist() for name in ("row", "next", "tries"))):
            for _ in range(n):
                memory.model = memory.model._replace(counts=with_count_room(memory.model.counts, 1))
                belief.call(count_try, memory.model.counts, row, s2)

    def set_discount(self, memory: RMaxMemory, discount: float) -> None:
        memory.model = memory.model._replace(discount=discount)

    def on_space_changed(self, memory: RMaxMemory, belief: Belief) -> None:
        memory.due = True

    def _values(self, memory: RMaxMemory, belief: Belief, state: int) -> np.ndarray:
        """Q(state, ·), float64 [A], after solving the model if it has changed."""
        workspace = memory.workspace
        if memory.due:
            belief.run(solve_optimistic, workspace, memory.model)
            memory.due = False
            memory.solved += 1
        q = np.empty(belief.n_actions)
        belief.call(optimistic_values, belief.space, workspace.arrays, memory.model, state, q)
        return q
