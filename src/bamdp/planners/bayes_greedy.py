"""The mean model with reward bonuses, and the planners without one: BayesGreedy and EpsilonGreedy.

Let P̄ = E_β[P], r̄ = E_β[r], and let B_β(s, a) be the planner's bonus (BEB and VBRB: :mod:`bamdp.planners.bonuses`). At
every step

    V(s) = max_a Q(s, a),        Q(s, a) = r̄(s, a) + B_β(s, a) + γ Σ_{s'} P̄(s' | s, a) V(s'),

and the action is argmax_a Q(s, a), with ties going to the lowest action. The belief is not updated during planning: the
bonus stands in for the value of information.

If rows are independent, a transition changes a single row. Only that row is rewritten, and the model is solved starting
from the values of the previous step (:func:`bamdp._kernels.solve.solve`), until the span of the updates in one sweep is
at most ``tol``. The action then loses at most γ/(1−γ)·tol in the model with the bonus.

**BayesGreedy** has no bonus (certainty equivalence). It ignores the value of information, so it may settle on a
suboptimal action; it explores only if the prior is optimistic. In a bandit it is the myopic rule.

**EpsilonGreedy** does the same but sometimes acts at random. After n(s) decisions in state s, let

    ε(s) = ε / (1 + decay · n(s)).

With probability ε(s), the action is drawn uniformly from the available actions (including the greedy one); otherwise
it is that of BayesGreedy.

**Guarantee.** With ``decay`` > 0, Σ_n ε/(1 + decay·n) diverges while ε(s) goes to 0: greedy in the limit with infinite
exploration (GLIE; Singh, Jaakkola, Littman & Szepesvári 2000). In a communicating MDP every pair is then tried
infinitely often, the posterior mean converges to the true model and behaviour becomes optimal. Convergence can be slow:
undirected exploration can take time exponential in the number of states, whereas planning for information takes
polynomial time. This baseline serves to show that gap. With ``decay`` = 0, about a fraction ε of the steps remains
random.

**Departures.** ε-greedy exploration has no single source (Watkins 1989 uses it for Q-learning); here the greedy action
is that of the posterior mean model. The defaults, ε = 0.1 and decay = 0.05, halve ε in a state after 20 decisions
there.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bamdp._kernels.jit import generic, inner, kernel
from bamdp._kernels.rows import action_values
from bamdp._kernels.solve import solve
from bamdp._parameters import positive_number, real_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import check_space, mean_into, mean_model
from bamdp.planners.base import (
    KernelPlanner,
    Plan,
    Transition,
    candidates,
    exact_candidates,
    exploring_action,
)
from bamdp.planners.shared.workspace import Workspace, workspace_for

EVERY_ROW, NO_ROW = -1, -2  # used instead of the index of the changed row
TOL_HELP = "Accuracy of the solution, as in :class:`~bamdp.generators.PI`."


class BonusParams(NamedTuple):
    """Parameters of the bonus and of the solution."""

    rule: Any  # the bonus's parameters, for which :func:`bonus` is registered
    discount: float
    tol: float


@generic
def bonus(rule, belief, row, rows, variance, at):
    """Return the bonus of ``row``, which is added to its expected reward.

    ``rows`` holds its mean row. From ``at`` on, ``rows`` and ``variance`` have scratch space for one row.
    """


@inner
def write_bonuses(rule, belief, rows, variance, at, extra):
    """Write the bonus of every pair to ``extra``, given the mean model in ``rows``, which ends at ``at``."""
    space = belief.space
    n_actions = space.allowed.shape[1]
    check_space(belief, rows, at, 1)
    for row in range(extra.shape[0]):
        extra[row] = 0.0
        if space.allowed[row // n_actions, row % n_actions] and not space.terminal[row // n_actions]:
            extra[row] = bonus(rule, belief, row, rows, variance, at)


@inner
def write_mean_row(rule, belief, rows, variance, extra, row, at):
    """Write a pair's mean row and expected reward at ``at`` and its bonus to ``extra``; return the row's end."""
    end = mean_into(belief, rows, row, at)
    extra[row] = bonus(rule, belief, row, rows, variance, end)
    return end


@inner
def rewrite_mean_row(rule, belief, rows, variance, extra, row):
    """Rewrite one row of a model in place; return False if it does not fit."""
    used = rows.span[rows.span.shape[0] - 1, 1]
    begin, end = rows.span[row, 0], rows.span[row, 1]
    check_space(belief, rows, used, 2)
    size = write_mean_row(rule, belief, rows, variance, extra, row, used) - used
    rows.span[row, 0] = begin
    rows.span[row, 1] = end
    for i in range(min(size, end - begin)):
        rows.index[begin + i] = rows.index[used + i]
        rows.prob[begin + i] = rows.prob[used + i]
    return size == end - begin


@kernel
def solve_with_bonus(belief, workspace, params, extra, changed, s, q):
    """Update and solve the model in ``workspace``; write Q(s, ·) to ``q`` (NaN: no such action).

    ``changed`` is the changed row, EVERY_ROW or NO_ROW; ``extra``, float64 [S*A], holds the bonuses included in the
    rewards. Returns the greedy action.
    """
    rows, solver, rule = workspace.rows, workspace.solver, params.rule
    every = changed == EVERY_ROW
    if changed >= 0 and not every:
        every = not rewrite_mean_row(rule, belief, rows, solver.sums, extra, changed)
        rows.reward[changed] += extra[changed]
    if every:
        write_bonuses(rule, belief, rows, solver.sums, mean_model(belief, rows), extra)
        for row in range(extra.shape[0]):
            rows.reward[row] += extra[row]
    solve(rows, belief.space, params.discount, params.tol, solver, False)
    return np.int64(action_values(rows, belief.space, params.discount, solver.values, s, q))


@dataclass
class BonusMemory:
    """The mean model of the last step, its values, and a record of changes since then."""

    workspace: Workspace
    params: BonusParams
    extra: np.ndarray  # float64 [S*A]: bonuses
    q: np.ndarray  # float64 [A]: action values of the last step
    visits: np.ndarray  # int64 [S, A]: real steps
    changed: int = EVERY_ROW  # the row changed since the last step, EVERY_ROW or NO_ROW
    n_observed: int = 0  # number of transitions in the belief when `changed` was set


class BonusPlanner(KernelPlanner):
    """A planner that acts optimally in the mean model with a bonus; ``tol`` is the accuracy of the solution."""

    keeps: ClassVar[tuple[str, ...]] = ("workspace.solver.values", "visits")
    tol: float

    @abstractmethod
    def rule(self) -> Any:
        """Return the parameters as a NamedTuple for which :func:`bonus` is registered."""

    def start(self, belief: Belief, discount: float) -> BonusMemory:
        S, A = belief.n_states, belief.n_actions
        params = BonusParams(self.rule(), discount, float(self.tol))
        visits = np.zeros((S, A), np.int64)
        return BonusMemory(workspace_for(belief), params, np.zeros(S * A), np.zeros(A), visits)

    def act(self, memory: BonusMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        if belief.n_observed != memory.n_observed:  # the belief was also updated elsewhere
            memory.changed = EVERY_ROW
        given = memory.params, memory.extra, memory.changed, state, memory.q
        action = belief.run(solve_with_bonus, memory.workspace, *given)
        memory.changed, memory.n_observed = NO_ROW, belief.n_observed
        return int(action)

    def plan(self, memory: BonusMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        candidates = exact_candidates(memory.q)
        extra = memory.extra.reshape(belief.n_states, -1)[state]
        details = {"bonus": {c.action: float(extra[c.action]) for c in candidates}}
        return Plan(action, float(memory.q[action]), candidates, details=details)

    def on_space_changed(self, memory: BonusMemory, belief: Belief) -> None:
        memory.changed = EVERY_ROW

    def learn(self, memory: BonusMemory, belief: Belief, seen: Transition) -> None:
        memory.visits[seen.s, seen.a] += 1
        one_row = (
            memory.changed == NO_ROW
            and not seen.terminated
            and belief.n_observed == memory.n_observed + 1
            and belief.independent_rows
        )
        memory.changed = seen.s * belief.n_actions + seen.a if one_row else EVERY_ROW
        memory.n_observed = belief.n_observed


# --- the planners --------------------------------------------------------------------------------------------


class NoBonus(NamedTuple):
    """A bonus of 0."""

    unused: int = 0


@bonus.register(NoBonus)
def _bonus(rule, belief, row, rows, variance, at):
    return 0.0


@dataclass(frozen=True, kw_only=True)
class BayesGreedy(BonusPlanner):
    """Certainty-equivalent planning with the posterior mean model, solved at every step.

    Examples
    --------
    >>> import bamdp
    >>> agent = bamdp.Agent(BayesGreedy(), prior=bamdp.Dirichlet(), rewards=[[0.0, 1.0]], n_states=1,
    ...                     n_actions=2, discount=0.9, seed=0)
    >>> plan = agent.plan(0)
    >>> plan.action, round(plan.value, 2)
    (1, 10.0)
    """

    tol: float = positive_number(1e-4, help=TOL_HELP)

    def rule(self) -> NoBonus:
        return NoBonus()


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(BayesGreedy):
    """Certainty-equivalent planning with ε-greedy exploration.

    Examples
    --------
    >>> import bamdp
    >>> agent = bamdp.Agent(EpsilonGreedy(epsilon=0.0), prior=bamdp.Dirichlet(), rewards=[[0.0, 1.0]],
    ...                     n_states=1, n_actions=2, discount=0.9, seed=0)
    >>> agent.act(0)
    1
    """

    epsilon: float = real_number(0.1, low=0.0, high=1.0, help="Probability of a uniformly random action.")
    decay: float = real_number(0.05, low=0.0, help="After n decisions in a state it is ε / (1 + decay · n).")

    def act(self, memory: BonusMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        explored = exploring_action(belief.space.allowed[state], self._epsilon(memory, state), rng)
        usual = super().act(memory, belief, state, rng)
        return usual if explored is None else explored

    def plan(self, memory: BonusMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        epsilon, before = self._epsilon(memory, state), rng.copy()
        action = self.act(memory, belief, state, rng)
        explored = exploring_action(belief.space.allowed[state], epsilon, before) is not None
        actions = np.flatnonzero(~np.isnan(memory.q))
        weighed = candidates(actions, memory.q[actions], counts=memory.visits[state, actions])
        details = {"epsilon": epsilon, "explored": explored, "greedy_action": int(np.nanargmax(memory.q))}
        return Plan(action, float(memory.q[action]), weighed, details=details)

    def _epsilon(self, memory: BonusMemory, state: int) -> float:
        return float(self.epsilon / (1.0 + self.decay * memory.visits[state].sum()))
