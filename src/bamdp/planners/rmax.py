"""RMax: unknown pairs have the highest possible value.

A pair (s, a) is *known* once it has been tried m times. Its model is then given by the empirical frequencies of these m
tries: P̂(s' | s, a) = n(s, a, s') / m, and r̂(s, a) is the mean of the m rewards. All other pairs have value V_max. At
every step the action is greedy with respect to

    Q(s, a) = r̂(s, a) + γ Σ_{s'} P̂(s' | s, a) V(s')      known
    Q(s, a) = V_max                                          unknown
    V(s)    = max_a Q(s, a), 0 in terminal states

with ties going to the lowest action. Since V_max = r_max/(1−γ) bounds every return, a greedy policy either soon reaches
an unknown pair and learns, or is already near-optimal (implicit "explore or exploit").

**When the model is solved.** As in the original, the model of a pair is frozen once the pair becomes known. The full
model therefore changes at most S·A times; it is solved only then, warm-started from the last values. With ``refine``,
the frequencies of known pairs continue to be updated, and every visit to a known pair requires a new solution.

**Guarantee.** PAC: for m of the order of S/(ε²(1−γ)⁴) up to logarithms, with high probability the policy is ε-optimal
on all but polynomially many steps (Brafman & Tennenholtz 2002 for average reward and games; Kakade 2003 and Strehl,
Li & Littman 2009 for discounted MDPs). Such values of m are impractically large. A small m can freeze a wrong model
permanently, which ``refine`` prevents; a large m spends all steps on exploration. The default m = 2 was the best of {1,
2, 3, 5, 10, 20} by share of the optimal return, averaged over chain, double_loop, grid5 and grid10 (γ = .95; it earns
300, 388, 64 and 40, or 368, 388, 72 and 45 with ``refine``).

**Departures.** r_max is the largest reward possible under the belief. If it is negative, V_max = r_max, because an
episode may end after one step. Known rewards are not used for unknown pairs, and the prior over transitions is never
used: this baseline shows the benefit of a prior.

References: Brafman & Tennenholtz, "R-MAX: a general polynomial time algorithm for near-optimal reinforcement
learning" (JMLR 2002); Strehl, Li & Littman, "Reinforcement learning in finite MDPs: PAC analysis" (JMLR 2009).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bamdp._kernels.jit import kernel
from bamdp._kernels.rows import Rows, action_values
from bamdp._kernels.solve import new_solver, solve
from bamdp._parameters import flag, positive_number, whole_number
from bamdp.beliefs.belief import Belief
from bamdp.planners.base import KernelPlanner, Plan, Transition, candidates, greedy, known_range


@kernel
def solve_optimistic(rows, space, discount, tol, solver):
    """Solve the optimistic model, warm-started from the last values."""
    solve(rows, space, discount, tol, solver, False)


@kernel
def optimistic_values(rows, space, discount, values, s, q):
    """Write Q(s, ·) to ``q`` [A], with NaN for actions that do not exist."""
    action_values(rows, space, discount, values, s, q)


@dataclass
class RMaxMemory:
    """Empirical counts of the R = S·A pairs and the optimistic model."""

    tries: np.ndarray  # int64 [R]
    total: np.ndarray  # float64 [R]: sum of the rewards
    values: np.ndarray  # float64 [S]: of the optimistic model
    value: float  # V_max
    discount: float
    counts: dict[int, int] = field(default_factory=dict)  # of each outcome, numbered row · S + s2
    rows: Rows | None = None  # the optimistic model; None if it has changed since the last solution
    solved: int = 0  # number of times the model was solved


@dataclass(frozen=True, kw_only=True)
class RMax(KernelPlanner):
    """R-max: unknown pairs have the maximal value, known pairs their empirical model.

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
    result_version: ClassVar[int] = 3
    keeps: ClassVar[tuple[str, ...]] = ("tries", "total", "values", "solved")

    known_after: int = whole_number(2, help="m, tries after which a pair is known.")
    refine: bool = flag(False, help="Go on learning the model of known pairs.")
    tol: float = positive_number(1e-4, help="Accuracy of the solution, as in :class:`~bamdp.generators.PI`.")

    def start(self, belief: Belief, discount: float) -> RMaxMemory:
        S, R = belief.n_states, belief.n_states * belief.n_actions
        value = self._highest_value(belief, discount)
        return RMaxMemory(np.zeros(R, np.int64), np.zeros(R), np.full(S, value), value, discount)

    def _highest_value(self, belief: Belief, discount: float) -> float:
        """Return V_max."""
        _, r_max = known_range(belief, "RMax", "use a planner that needs no bound, such as EpsilonGreedy")
        if belief.episodes.restarts:  # restarting pays 0
            r_max = max(r_max, 0.0)
        return float(max(r_max, r_max / (1.0 - discount)))

    def act(self, memory: RMaxMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        return greedy(self._values(memory, belief, state))

    def plan(self, memory: RMaxMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        q = self._values(memory, belief, state)
        tries = memory.tries.reshape(belief.n_states, -1)
        actions = np.flatnonzero(~np.isnan(q))
        weighed = candidates(actions, q[actions], counts=tries[state, actions])
        best = greedy(q)
        details = {
            "known": tuple(c.action for c in weighed if c.count >= self.known_after),
            "known_pairs": int((tries >= self.known_after).sum()),
            "optimistic_value": memory.value,
            "solved": memory.solved,
        }
        return Plan(best, float(q[best]), weighed, details=details)

    def learn(self, memory: RMaxMemory, belief: Belief, seen: Transition) -> None:
        row = seen.s * belief.n_actions + seen.a
        if memory.tries[row] >= self.known_after and not self.refine:
            return
        outcome = row * belief.n_states + seen.s2
        memory.counts[outcome] = memory.counts.get(outcome, 0) + 1
        memory.tries[row] += 1
        memory.total[row] += seen.r
        if memory.tries[row] >= self.known_after:
            memory.rows = None

    def on_space_changed(self, memory: RMaxMemory, belief: Belief) -> None:
        memory.rows = None

    def learned(self, memory: RMaxMemory) -> dict[str, np.ndarray]:
        counts = np.array([*memory.counts.items()], np.int64).reshape(-1, 2)
        return super().learned(memory) | {"counts": counts}

    def relearn(self, memory: RMaxMemory, belief: Belief, arrays: Mapping[str, np.ndarray]) -> None:
        super().relearn(memory, belief, arrays)
        memory.counts = dict(arrays["counts"].tolist())

    def _values(self, memory: RMaxMemory, belief: Belief, state: int) -> np.ndarray:
        """Return Q(state, ·), float64 [A], solving the model first if it has changed."""
        space, A = belief.space, belief.n_actions
        if memory.rows is None:
            memory.rows = self._optimistic_model(memory, np.repeat(space.terminal, A))
            solver = new_solver(belief.n_states, len(memory.rows.index))
            solver.values[:] = memory.values
            belief.call(solve_optimistic, memory.rows, space, memory.discount, self.tol, solver)
            memory.values = solver.values
            memory.solved += 1
        q = np.empty(A)
        belief.call(optimistic_values, memory.rows, space, memory.discount, memory.values, state, q)
        known = memory.tries[state * A : (state + 1) * A] >= self.known_after
        return np.where(known | np.isnan(q), q, memory.value)

    def _optimistic_model(self, memory: RMaxMemory, ended: np.ndarray) -> Rows:
        """Return the model defined in the module docstring; rows in ``ended`` have no successors.

        An unknown pair is a self-loop that pays (1−γ) V_max per step, so that the pair and its state have value V_max.
        (A row without successors would also work, but the solver's bounds assume rows that sum to one.)
        """
        S, R, size = len(memory.values), len(ended), len(memory.counts)
        known, n = memory.tries >= self.known_after, np.maximum(memory.tries, 1)
        row, s2 = np.divmod(np.fromiter(memory.counts, np.int64, size), S)
        used, loops = known[row] & ~ended[row], np.flatnonzero(~known & ~ended)
        prob = np.fromiter(memory.counts.values(), float, size) / n[row]
        row = np.concatenate([row[used], loops])
        index = np.concatenate([s2[used], loops // (R // S)]).astype(np.int32)
        order = np.argsort(row, kind="stable")
        ends = np.cumsum(np.bincount(row, minlength=R))
        reward = np.where(known, memory.total / n, (1.0 - memory.discount) * memory.value)
        prob = np.concatenate([prob[used], np.ones(len(loops))])[order]
        span = np.stack([np.append(0, ends[:-1]), ends], axis=1)
        return Rows(span, index[order], prob, np.zeros(R), np.where(ended, 0.0, reward))
