"""MCBRL: Monte Carlo utility bounds for Bayesian reinforcement learning (Dimitrakakis 2011, 2013).

K models μ₁..μ_K are drawn from the posterior β. They yield estimates of two bounds on the Bayes-optimal value V*_β,

    upper     1/K Σ_k max_π V^π_{μ_k}(s)          each model at its own optimum: knowing the model cannot hurt
    lower     1/K Σ_k V^{π₁}_{μ_k}(s)             one memoryless policy for all of them,

and a policy for each bound.

**upper.** Act greedily with respect to the mean of the optimal action values, Q(s, a) = 1/K Σ_k Q*_{μ_k}(s, a).

**lower.** Multi-sample backward induction: for stages t = T..1, starting from a lower bound V_{k,T+1},

    Q_{k,t}(s, a) = r_k(s, a) + γ Σ_{s'} P_k(s' | s, a) V_{k,t+1}(s')             in each model
    π_t(s)        = argmax_a 1/K Σ_k Q_{k,t}(s, a)                                 jointly
    V_{k,t}(s)    = Q_{k,t}(s, π_t(s)),

so that 1/K Σ_k V_{k,1} is the mean value of the policy (π_1, π_2, ..) over the K models. It is at most the upper bound
and, up to sampling error, a lower bound on V*_β. The optimal policy of the mean model would be an alternative, but this
policy is optimised for the K models themselves rather than for their average. Ties always go to the lowest action.

T is the smallest number of stages for which the remainder γ^T (r_max − r_min)/(1−γ) is at most ``tol`` times r_max −
r_min, the width of the range spanned by 0 and the rewards of the K models. V_{k,T+1} = min(0, r_min)/(1−γ) is below
the value of any policy in these models, so the lower bound holds for every T.

**Guarantee.** The two averages converge to bounds on V*_β at rate 1/√K as K grows. Neither policy is Bayes-optimal: the
upper one is optimistic about learning, the lower one plans as if the agent would never learn.

**Departures.** The action values of the models, and hence the policy of the first stage, are kept until the next draw,
by default at the next step (``resample``, as for Thompson sampling). As T grows, the stage policies need not converge
but may alternate indefinitely, so the bound applies to the whole sequence. With K = 1 the upper policy is Thompson
sampling. The gradient form of the 2013 paper, which performs gradient ascent in the space of value functions, is not
implemented.

References: Dimitrakakis, "Robust Bayesian reinforcement learning through tight lower bounds" (EWRL 2011);
Dimitrakakis, "Monte-Carlo utility estimates for Bayesian reinforcement learning" (CDC 2013).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bamdp._kernels.jit import inner, kernel
from bamdp._kernels.rows import Rows, average, row_value
from bamdp._kernels.solve import solve
from bamdp._parameters import choice, positive_number, whole_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import sample_model
from bamdp.planners.base import Plan, candidates
from bamdp.planners.shared.workspace import Workspace, workspace_for
from bamdp.planners.thompson import RESAMPLE, Redrawing

MCBRL_POLICIES = ("upper", "lower")


@kernel
def upper_values(rows, space, discount, tol, solver, q):
    """Write the optimal action values of a model to ``q`` [S, A]."""
    n_states, n_actions = space.allowed.shape
    solve(rows, space, discount, tol, solver, False)
    mean = average(solver.values)
    for s in range(n_states):
        for a in range(n_actions):
            row = s * n_actions + a
            q[s, a] = rows.reward[row] + discount * row_value(rows, row, solver.values, mean)


@kernel
def lower_values(rows, space, discount, n_stages, low, values, q):
    """Write Q_{k,1} to ``q`` [K, S, A] by multi-sample backward induction; ``values`` [K, S] is a buffer for V.

    ``rows`` holds the K models one after the other.
    """
    n_states, n_actions = space.allowed.shape
    n_models = q.shape[0]
    for k in range(n_models):
        for s in range(n_states):
            values[k, s] = 0.0 if space.terminal[s] else low
    for _ in range(n_stages):
        for k in range(n_models):
            mean = average(values[k])
            for s in range(n_states):
                for a in range(n_actions):
                    row = (k * n_states + s) * n_actions + a
                    q[k, s, a] = rows.reward[row] + discount * row_value(rows, row, values[k], mean)
        for s in range(n_states):
            if space.terminal[s]:
                continue
            action = best_on_average(q, space, s)
            for k in range(n_models):
                values[k, s] = q[k, s, action]


@inner
def best_on_average(q, space, s):
    """Return the lowest action with the highest mean value over models."""
    best, action = -np.inf, 0
    for a in range(space.allowed.shape[1]):
        if space.allowed[s, a]:
            total = 0.0
            for k in range(q.shape[0]):
                total += q[k, s, a]
            if total > best:
                best, action = total, a
    return action


@dataclass
class MCBRLMemory:
    """The sampled models and their action values."""

    workspace: Workspace
    models: list[Rows]  # empty in a loaded agent
    discount: float
    q: np.ndarray  # float64 [K, S, A]
    age: int = -1  # steps since the last draw; -1 if a new one is due


@dataclass(frozen=True, kw_only=True)
class MCBRL(Redrawing):
    """Monte Carlo Bayesian reinforcement learning.

    Parameters
    ----------
    n_models
        K, the number of models per draw.
    policy
        The policy to follow: that of the ``"upper"`` or of the ``"lower"`` bound.
    resample
        When to draw new models: ``"step"``, a number of steps, ``"episode"``, or ``"discount"`` (with probability 1−γ
        at each step). Models are always redrawn after an episode and when a terminal state or missing action
        is discovered.
    tol
        Accuracy of the bounds.

    Examples
    --------
    >>> MCBRL(n_models=4, policy="lower")
    MCBRL(n_models=4, policy='lower', resample='step', tol=0.0001)
    """

    result_version: ClassVar[int] = 3
    keeps: ClassVar[tuple[str, ...]] = ("q", "age", "workspace.solver.values")

    n_models: int = whole_number(8)
    policy: str = choice("upper", MCBRL_POLICIES)
    resample: str | int = whole_number("step", names=RESAMPLE)
    tol: float = positive_number(1e-4)

    def start(self, belief: Belief, discount: float) -> MCBRLMemory:
        q = np.zeros((self.n_models, belief.n_states, belief.n_actions))
        return MCBRLMemory(workspace_for(belief), [], discount, q)

    def act(self, memory: MCBRLMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        if self.draw_is_due(memory, rng):
            memory.models = [self._draw(memory, belief, rng) for _ in range(self.n_models)]
            self.bound(memory, belief, self.policy, memory.q)
            memory.age = 0
        memory.age += 1
        total = np.add.accumulate(memory.q[:, state], axis=0)[-1]  # sequential summation
        return int(np.where(belief.space.allowed[state], total, -np.inf).argmax())

    def plan(self, memory: MCBRLMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        warm, other = memory.workspace.solver.values.copy(), np.full_like(memory.q, np.nan)
        if memory.models:
            self.bound(memory, belief, "lower" if self.policy == "upper" else "upper", other)
        memory.workspace.solver.values[:] = warm
        upper, lower = (memory.q, other) if self.policy == "upper" else (other, memory.q)
        actions = np.flatnonzero(belief.space.allowed[state])
        details = {
            "upper": float(upper[:, state, actions].max(axis=1).mean()),
            "lower": float(lower[:, state, actions].mean(axis=0).max()),
            "age_of_draw": memory.age,
        }
        q = memory.q[:, state, actions]
        spreads = q.std(axis=0, ddof=1) if self.n_models > 1 else np.nan
        weighed = candidates(actions, q.mean(axis=0), spreads, self.n_models)
        return Plan(action, float(memory.q[:, state, action].mean()), weighed, details=details)

    def _draw(self, memory: MCBRLMemory, belief: Belief, rng: np.ndarray) -> Rows:
        """Draw a model."""
        rows = memory.workspace.rows
        n = belief.run(sample_model, rows, rng)
        return Rows(*(array.copy() for array in rows._replace(index=rows.index[:n], prob=rows.prob[:n])))

    def bound(self, memory: MCBRLMemory, belief: Belief, name: str, q: np.ndarray) -> None:
        """Write the action values of the sampled models for one of the two bounds to ``q`` [K, S, A]."""
        models, discount, space = memory.models, memory.discount, belief.space
        if name == "upper":
            for k, rows in enumerate(models):
                belief.call(upper_values, rows, space, discount, self.tol, memory.workspace.solver, q[k])
            return
        span, index, prob, background, reward = map(np.concatenate, zip(*models))
        lengths = [len(rows.index) for rows in models]
        span += np.repeat(np.cumsum(lengths) - lengths, len(models[0].span))[:, None]
        low = min(0.0, float(reward.min())) / (1.0 - discount)
        beyond = 1.0 / (1.0 - discount)  # relative to the range of the rewards
        n_stages = 1
        if discount > 0.0 and beyond > self.tol:
            n_stages = max(1, math.ceil(math.log(self.tol / beyond) / math.log(discount)))
        rows = Rows(span, index, prob, background, reward)
        lower_values(rows, space, discount, n_stages, low, np.empty(q.shape[:2]), q)
