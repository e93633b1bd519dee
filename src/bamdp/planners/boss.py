"""BOSS: best of sampled set (Asmuth, Li, Littman, Nouri & Wingate 2009), and its variant SBOSS.

K models are drawn from the posterior and merged into one MDP with K·A actions per state, so that each action may use
the row of any model:

    V(s) = max_{a, k} Q(s, a, k),        Q(s, a, k) = r_k(s, a) + γ Σ_{s'} P_k(s' | s, a) V(s').

The agent follows the optimal policy of the merged MDP (taking a of the best pair (a, k)) until some pair (s, a) is
tried for the B-th time and thus becomes *known*. Then all K models are redrawn.

**Why.** V is at least the optimal value of each of the K models, since a policy of the merged MDP may always use the
rows of the same model. If a sampled row is optimistic with reasonable probability, the probability that V is optimistic
grows quickly with K, and optimism drives exploration. The models are redrawn at most S·A times.

**Guarantee.** For K of the order of S²A/δ · log(...) and B large enough for the posterior to have concentrated, the
behaviour is ε-optimal for the true model on all but a number of steps polynomial in S, A, B, 1/ε, 1/(1−γ), with
probability 1−δ over the prior. In practice K is 2 to 20 and B about 10 (with K = 5, the best of 2, 5, 10 and 20 on
average over chain, double_loop and grid5).

**Departures.** None in the algorithm. The merged MDP is solved by warm-started modified policy iteration until the span
of the updates in one sweep is at most ``tol``, so the policy loses at most γ/(1−γ)·tol in it. Models are also redrawn
when a terminal state or missing action is discovered. Visits are counted from the agent's creation. Any prior
can be used; models with dependent rows are drawn as a whole.

**Several models in one layout.** K models with S states and A actions are stored as one model with K·A actions per
state: action k·A + a is action a in model k, so its row is (s·K + k)·A + a. Solving this model directly solves the
merged MDP, in which every step may use a different model. SBOSS uses the same layout.

Reference: Asmuth, Li, Littman, Nouri & Wingate, "A Bayesian sampling approach to exploration in reinforcement
learning" (UAI 2009).

**SBOSS: BOSS with smarter sampling** (Castro & Precup 2010). Like BOSS, the agent follows the optimal policy of K
merged models. They are redrawn when the posterior of the pair just tried has moved far from its state at the last draw:

    Δ(s, a) = Σ_{s'} |p̄_now(s') − p̄_then(s')| / σ_then(s') ≥ δ,

where p̄ is the posterior mean and σ the posterior standard deviation of the probability of s'. A small change suffices
for a pair that was well known at the last draw; a poorly known pair must change by more.

**Choice of p̄ and σ.** They are the exact posterior moments: σ² = p̄(1−p̄)/(n₀+n+1) for Dirichlet rows, and the moments
under the posterior weights for finite sets of models and mixtures. The sparse prior is an exception: Δ is computed as
if its rows were Dirichlet with α + n_i for every outcome, observed or not (the draws remain exact). Its exact σ is
unsuitable: once a row appears to have a single outcome, the remaining chance of another one makes σ comparable to 1−p̄.
Δ then stays below about 1.5 for any number of visits, so with δ = 3 the models would never be redrawn (double_loop: 267
± 23 instead of 388 ± 1, see ``benchmarks/rewards_myopic.py``). An outcome with σ = 0 is certain, so its p̄ cannot
change and it contributes nothing. For learned rewards, |r̄_now − r̄_then|/σ is added to the sum, because in a bandit
transitions are uninformative.

With K = 1 and δ = 0 this is Thompson sampling with a draw at every step.

**Guarantee.** The values of the merged MDP are optimistic with a probability that grows with K (see BOSS); Castro &
Precup bound the difference between the value of a drawn model and that of the mean model by the posterior variances.

**Departures.** Every pair has K sampled rows, as in the comparisons that this library reproduces, whereas the original
draws max_{s'} ⌈σ(s')²/ε⌉ rows per pair. The threshold uses "≥" instead of ">", so δ = 0 redraws at every step. The
models are also redrawn when a state turns out to be terminal. The original covers neither the sparse prior nor learned
rewards, which are handled as described above.

Reference: Castro & Precup, "Smarter sampling in model-based Bayesian reinforcement learning" (ECML 2010).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

import bamdp.beliefs.verbs as verbs
from bamdp._kernels.jit import kernel, primitive
from bamdp._kernels.rows import Space, action_values
from bamdp._kernels.solve import solve
from bamdp._parameters import positive_number, real_number, whole_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import check_space, sample_into, skip_row
from bamdp.planners.base import KernelPlanner, Plan, Transition, candidates
from bamdp.planners.shared.workspace import Workspace, workspace_for

THEN = "then."  # in files, the prefix of the names of an earlier posterior's arrays
FIRST_REWARDS = 2  # pooled rewards have no scale until more than this many have been seen


# --- several models in one layout ----------------------------------------------------------------------------


@primitive
def draw_models(belief, rows, n_models, rng):
    """Draw K models into ``rows``."""
    space = belief.space
    n_states, n_actions = space.allowed.shape
    at = 0
    for k in range(n_models):
        choice = verbs.choose(belief.transitions, rng)  # shared by all rows of the k-th model
        for s in range(n_states):
            for a in range(n_actions):
                row = (s * n_models + k) * n_actions + a
                if space.terminal[s] or not space.allowed[s, a]:
                    skip_row(rows, row, at)
                    continue
                check_space(belief, rows, at, 1)
                at = sample_into(belief, choice, s * n_actions + a, rows, row, at, rng)


@kernel
def draw_and_solve(belief, workspace, n_models, merged, discount, tol, policy, q, rng):
    """Draw K models and solve their merged MDP, whose space is ``merged``; write Q to ``q`` [S, K·A]."""
    draw_models(belief, workspace.rows, n_models, rng)
    solve(workspace.rows, merged, discount, tol, workspace.solver, True)
    for s in range(policy.shape[0]):
        action_values(workspace.rows, merged, discount, workspace.solver.values, s, q[s])
        policy[s] = workspace.solver.policy[s] % belief.space.allowed.shape[1]


@dataclass
class MergedMemory:
    """The merged MDP, its solution and the data that determine when to redraw models."""

    workspace: Workspace  # S·K·A rows
    q: np.ndarray  # float64 [S, K·A]
    policy: np.ndarray  # int32 [S]: the action of the best pair of model and action
    discount: float
    visits: np.ndarray  # int64 [S, A]
    then: Any = None  # the posterior from which the models were drawn, for SBOSS
    movement: float = 0.0  # Δ of the last transition, for SBOSS
    due: bool = True
    n_draws: int = 0


class MergedPlanner(KernelPlanner):
    """A planner that follows the solution of merged models until a new draw is due."""

    keeps: ClassVar[tuple[str, ...]] = ("workspace.solver.values", "q", "policy", "due", "n_draws")

    n_models: int
    tol: float

    def start(self, belief: Belief, discount: float) -> MergedMemory:
        S, A, K = belief.n_states, belief.n_actions, self.n_models
        q, policy = np.full((S, K * A), np.nan), np.zeros(S, np.int32)
        visits = np.zeros((S, A), np.int64)
        return MergedMemory(workspace_for(belief, K), q, policy, discount, visits)

    def act(self, memory: MergedMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        if memory.due:
            space = Space(belief.space.terminal, np.tile(belief.space.allowed, self.n_models))
            given = self.n_models, space, memory.discount, self.tol, memory.policy, memory.q
            belief.run(draw_and_solve, memory.workspace, *given, rng)
            memory.due = False
            memory.n_draws += 1
        return int(memory.policy[state])

    def plan(self, memory: MergedMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        drawn = memory.due
        action = self.act(memory, belief, state, rng)
        q = memory.q[state].reshape(self.n_models, -1)
        actions = np.flatnonzero(~np.isnan(q[0]))
        spreads = q[:, actions].std(axis=0, ddof=1) if self.n_models > 1 else np.nan
        weighed = candidates(actions, q[:, actions].max(axis=0), spreads, self.n_models)
        model = int(q[:, action].argmax())
        details = {"model": model, "drawn_now": drawn, "n_draws": memory.n_draws}
        return Plan(action, float(q[model, action]), weighed, details=details)

    def on_space_changed(self, memory: MergedMemory, belief: Belief) -> None:
        memory.due = True


# --- BOSS ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class BOSS(MergedPlanner):
    """Best of sampled set.

    Parameters
    ----------
    n_models
        K, the number of models per draw.
    known_after
        B, the number of visits after which a pair counts as known, which triggers a new draw.
    tol
        Accuracy of the solution, as in :class:`~bamdp.generators.PI`.

    Examples
    --------
    >>> BOSS(n_models=3)
    BOSS(n_models=3, known_after=10, tol=0.0001)
    """

    keeps: ClassVar[tuple[str, ...]] = (*MergedPlanner.keeps, "visits")

    n_models: int = whole_number(5)
    known_after: int = whole_number(10)
    tol: float = positive_number(1e-4)

    def learn(self, memory: MergedMemory, belief: Belief, seen: Transition) -> None:
        memory.visits[seen.s, seen.a] += 1
        memory.due |= bool(memory.visits[seen.s, seen.a] == self.known_after)


# --- SBOSS ---------------------------------------------------------------------------------------------------


@kernel
def row_moments(belief, row, index, mean, variance):
    """Write the means and variances of a row's listed probabilities as verbs.moments_row does; return the rest.

    Returns (end, mean, variance, mean and variance of the expected reward), where mean and variance are those of the
    unlisted outcomes.
    """
    T, R = belief.transitions, belief.rewards
    end, background = verbs.mean_row(T, row, index, mean, 0)
    reward = verbs.expected_reward(R, row, index, mean, 0, end, background)
    reward_variance = verbs.reward_variance(R, row, index, mean, 0, end, background)
    end, rest, rest_variance = verbs.moments_row(T, row, index, mean, variance, 0)
    return end, rest, rest_variance, reward, reward_variance


def moments(belief: Belief, row: int) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances, each [S + 1], of the probabilities of all next states and of the reward."""
    most = int(verbs.most_entries(belief.transitions, belief.n_states))
    index, some = np.empty(most, np.int32), np.empty((2, most))
    arrays = belief.movement_arrays
    end, rest, rest_variance, *reward = belief.call(row_moments, arrays, row, index, some[0], some[1])
    both = np.repeat([[rest], [rest_variance]], belief.n_states + 1, axis=1)
    both[:, index[:end]] = some[:, :end]
    both[:, -1] = reward
    return both[0], both[1]


@dataclass(frozen=True, kw_only=True)
class SBOSS(MergedPlanner):
    """BOSS with smarter sampling.

    Parameters
    ----------
    n_models
        K, the number of models per draw. The DSS paper uses 8 for Chain and 2 elsewhere.
    delta
        δ, the change in a pair's posterior mean that triggers a new draw, in standard deviations summed over outcomes.
    tol
        Accuracy of the solution, as in :class:`~bamdp.generators.PI`.

    Examples
    --------
    >>> SBOSS(n_models=8)
    SBOSS(n_models=8, delta=3.0, tol=0.0001)
    """

    keeps: ClassVar[tuple[str, ...]] = (*MergedPlanner.keeps, "movement")

    n_models: int = whole_number(2)
    delta: float = real_number(3.0, low=0.0)
    tol: float = positive_number(1e-4)

    def start(self, belief: Belief, discount: float) -> MergedMemory:
        return replace(super().start(belief, discount), then=belief.copy())

    def act(self, memory: MergedMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        if memory.due:
            call = memory.then.call
            memory.then = belief.copy()
            memory.then.call = call  # it already knows the types of the arrays
        return super().act(memory, belief, state, rng)

    def plan(self, memory: MergedMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        plan = super().plan(memory, belief, state, rng)
        return replace(plan, details={**plan.details, "movement": memory.movement})

    def learn(self, memory: MergedMemory, belief: Belief, seen: Transition) -> None:
        if memory.due:
            return
        row = seen.s * belief.n_actions + seen.a
        (now, _), (then, variance) = moments(belief, row), moments(memory.then, row)
        if belief.rewards.certain:
            variance[-1] = 0.0
        open_ = variance > 0.0  # certain outcomes cannot change
        memory.movement = float((np.abs(now - then)[open_] / np.sqrt(variance[open_])).sum())
        unscaled = belief.rewards.pools and belief.n_observed <= FIRST_REWARDS
        memory.due = memory.movement >= self.delta or unscaled

    def learned(self, memory: MergedMemory) -> dict[str, np.ndarray]:
        then = memory.then.statistics()
        return super().learned(memory) | {THEN + name: array for name, array in then.items()}

    def relearn(self, memory: MergedMemory, belief: Belief, arrays: Mapping[str, np.ndarray]) -> None:
        super().relearn(memory, belief, arrays)
        then = {name.removeprefix(THEN): array for name, array in arrays.items() if name.startswith(THEN)}
        memory.then = Belief.from_content({**belief.content(), "statistics": then})
