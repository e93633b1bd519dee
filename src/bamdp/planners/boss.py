"""BOSS: best of sampled set (Asmuth, Li, Littman, Nouri & Wingate 2009). And SBOSS, which draws when it matters.

K models are drawn from the posterior and merged into one MDP with K·A actions a state, any model's row for any
action:

    V(s) = max_{a, k} Q(s, a, k),        Q(s, a, k) = r_k(s, a) + γ Σ_{s'} P_k(s' | s, a) V(s').

The agent acts by its optimal policy (a of the best pair (a, k)) and keeps it until some pair (s, a) has been tried
for the B-th time, that is has become *known*; then all K models are drawn anew.

**Why.** V is at least the optimal value of each of the K models, since the merged agent could believe one of them
throughout. If each pair's true row is among the optimistic ones with a fair chance, that of V being optimistic
grows quickly with K, and optimism explores what is unknown. At most S·A draws are ever made.

**Guarantee.** For K of the order S²A/δ · log(...) and B large enough for the posterior to have concentrated, the
behaviour is ε-optimal for the true model on all but polynomially many steps in S, A, B, 1/ε, 1/(1−γ), with
probability 1−δ over the prior. In practice K is 2 to 20 and B about 10 (the best of 2, 5, 10 and 20 with K = 5 on
chain, double_loop and grid5, on average).

**Departures.** None in the algorithm. The merged MDP is solved by modified policy iteration from the last solution,
until the changes of one sweep differ by at most ``tol``, so the policy loses at most γ/(1−γ)·tol in it. A state that
turns out to be terminal, or an action not to exist, also calls for a new draw. Visits are counted by the agent from its
start on. Any prior will do; models whose rows are not independent are drawn as wholes.

**Several models in one layout.** K models of S states and A actions are kept as one model with K·A actions a state:
action k·A + a is action a as model k knows it, so its row is (s·K + k)·A + a. Solved as it stands, that is the merged
MDP, in which an agent may believe a different model at every step. SBOSS and MCBRL draw their models into the same.

Reference: Asmuth, Li, Littman, Nouri & Wingate, "A Bayesian sampling approach to exploration in reinforcement
learning" (UAI 2009).

**SBOSS: BOSS with smarter sampling** (Castro & Precup 2010). The agent acts by the optimal policy of K merged models,
too. They are drawn anew when the posterior of the pair just tried has moved far from what it was at the last draw:

    Δ(s, a) = Σ_{s'} |p̄_now(s') − p̄_then(s')| / σ_then(s') ≥ δ,

p̄ the posterior mean and σ the posterior standard deviation of the probability of s'. A pair that was hardly known
then has to move far, one that was well known has to move little.

**What is taken for p̄ and σ.** Those of the posterior: σ² = p̄(1−p̄)/(n₀+n+1) for Dirichlet rows, that of the weights
for finite sets of models and mixtures. The sparse prior is the exception: Δ is computed as if its rows were Dirichlet
with α + n_i for every outcome, seen or not (the draws are exact of course). Its own σ would not do: once a row seems
to have one outcome, the chance that it has another makes σ as large as 1−p̄ itself, Δ stays below about 1.5 for any
number of visits, and with δ = 3 nothing would ever be drawn again (double_loop: 267 ± 23 in place of 388 ± 1, see
``benchmarks/rewards_myopic.py``). An outcome with σ = 0 is certain, so its p̄ cannot move and it adds nothing. With
learned rewards their own |r̄_now − r̄_then|/σ is added to the sum: in a bandit transitions tell nothing.

**How many samples.** K for every pair, as in the comparisons that this library reproduces; or, with ``epsilon``,
Castro & Precup's number for each pair, max_{s'} ⌈σ(s')²/ε⌉ (at least 1 and at most K): the rows of a pair that is
well known hardly differ, so that one of them will do.

With K = 1 and δ = 0 this is Thompson sampling with a draw at every step.

**Guarantee.** The values of the merged MDP are optimistic with a probability that grows with K (see BOSS); Castro &
Precup bound the difference between the value of a drawn model and of the mean model by the posterior variances.

**Departures.** "≥" instead of ">" so that δ = 0 means every step. A state that turns out to be terminal calls for a
new draw. What is said above of the sparse prior and of learned rewards (the original has neither).

Reference: Castro & Precup, "Smarter sampling in model-based Bayesian reinforcement learning" (ECML 2010).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from bamdp._kernels.bundles import zeros
from bamdp._kernels.jit import kernel, primitive
from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.solve import Solver, solve
from bamdp._kernels.sweeps import action_values
from bamdp._parameters import positive_number, real_number, whole_number
from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import sample_into, skip_row
from bamdp.beliefs.verbs import NO_ROOM
from bamdp.planners.base import Candidate, Cost, Plan, Planner, Transition, estimate, put_array
from bamdp.planners.shared.workspace import (
    Workspace,
    WorkspaceArrays,
    model_arrays,
    put_model,
    put_policy,
    workspace_for,
)

NOT_LISTED = -1
FIRST_REWARDS = 2  # of learned rewards without units, before which nothing says what is far
SNAPSHOT = ("span", "index", "mean", "spread", "rest", "reward")  # what a file holds of a snapshot


# --- several models in one layout -----------------------------------------------------------------------------


class MergedArrays(NamedTuple):
    """Several models and the solution of the MDP that they make together, as kernels see them."""

    rows: Rows  # of the merged MDP, S·K·A of them
    solver: Solver
    space: Space  # of the merged MDP: terminal [S], allowed [S, K·A]
    number: np.ndarray  # int64 [S*A]: how many of the K models know the pair


@primitive
def draw_models(belief, merged, rng):
    """Draw K models, one after the other, into ``merged.rows`` and their actions into ``merged.space``.

    Of pair (s, a) only the first ``number[s * A + a]`` models are drawn. Return the used entries, or NO_ROOM.
    """
    space, rows = belief.space, merged.rows
    n_states, n_actions = space.allowed.shape
    n_models = merged.space.allowed.shape[1] // n_actions
    at = 0
    for s in range(n_states):
        merged.space.terminal[s] = space.terminal[s]
    for k in range(n_models):
        choice = verbs.choose(belief.transitions, rng)  # what all rows of the k-th model share
        for s in range(n_states):
            for a in range(n_actions):
                row = s * n_actions + a
                place = (s * n_models + k) * n_actions + a
                exists = space.allowed[s, a] and k < merged.number[row]
                merged.space.allowed[s, k * n_actions + a] = exists
                if space.terminal[s] or not exists:
                    skip_row(rows, place, at)
                    continue
                end = sample_into(belief, choice, row, rows, place, at, rng)
                if end == NO_ROOM:
                    return end
                at = end
    return at


@kernel
def draw_and_solve(belief, merged, discount, tol, rng):
    """Draw K models and solve the merged MDP; returns NO_ROOM if they do not fit."""
    end = draw_models(belief, merged, rng)
    if end != NO_ROOM:
        solve(merged.rows, merged.space, discount, tol, merged.solver, True)
    return end


@dataclass
class MergedModels:
    """Room for K models and the solution of the MDP that they make together."""

    arrays: MergedArrays
    discount: float

    @property
    def n_actions(self) -> int:
        """The number of actions A of the world itself."""
        return len(self.arrays.number) // len(self.arrays.space.terminal)

    @property
    def n_models(self) -> int:
        """The number of models K."""
        return len(self.arrays.rows.reward) // len(self.arrays.number)

    def grow(self) -> None:
        """Make four times the room; the warm start stays."""
        workspace = Workspace(WorkspaceArrays(self.arrays.rows, self.arrays.solver))
        workspace.grow()
        self.arrays = self.arrays._replace(rows=workspace.rows, solver=workspace.solver)

    def plan(self, state: int, details: Mapping[str, Any]) -> Plan:
        """Return the decision in ``state`` with its evidence: each action at its best, and how the models differ."""
        n_actions, solver = self.n_actions, self.arrays.solver
        q = np.empty(self.n_models * n_actions)
        action_values(self.arrays.rows, self.arrays.space, self.discount, solver.values, state, q)
        weighed = []
        for a in range(n_actions):
            values = q[a::n_actions]
            values = values[~np.isnan(values)]
            if len(values):
                spread = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
                weighed.append(Candidate(a, float(values.max()), spread, len(values)))
        choice = int(solver.policy[state])
        details = {"model": choice // n_actions, **details}
        return Plan(choice % n_actions, float(solver.values[state]), tuple(weighed), details=details)


def new_merged(belief: Belief, n_models: int, discount: float) -> MergedModels:
    """Return room for ``n_models`` models of the belief's size."""
    S, A = belief.n_states, belief.n_actions
    workspace = workspace_for(belief, n_models)
    space = Space(terminal=np.zeros(S, bool), allowed=np.zeros((S, A * n_models), bool))
    number = np.full(S * A, n_models, np.int64)
    return MergedModels(MergedArrays(workspace.rows, workspace.solver, space, number), discount)


class MergedPlanner(Planner):
    """A planner that acts by the solution of merged models until a new draw is due."""

    keeps: ClassVar[tuple[str, ...]] = (
        "models.arrays.space.terminal",
        "models.arrays.space.allowed",
        "models.arrays.solver.values",
        "due",
        "n_draws",
    )

    n_models: int
    tol: float

    def cost(self, n_states: int, n_actions: int, discount: float) -> Cost:
        models = float(self.n_models)
        return estimate(n_states, n_actions, models=models, bytes=48.0 * models * n_states * n_actions)

    def learned(self, memory: Any) -> dict[str, np.ndarray]:
        models = memory.models.arrays
        return super().learned(memory) | {"policy": models.solver.policy} | model_arrays(models.rows)

    def relearn(self, memory: Any, belief: Belief, arrays: Mapping[str, np.ndarray]) -> None:
        super().relearn(memory, belief, arrays)
        put_model(memory.models, belief.n_states, arrays)
        models = memory.models.arrays
        put_policy(models.solver.policy, models.space.allowed.shape[1], arrays["policy"])

    def act(self, memory: Any, belief: Belief, state: int, rng: np.ndarray) -> int:
        models = memory.models
        if memory.due:
            self._before_draw(memory, belief)
            belief.run(draw_and_solve, models, models.discount, self.tol, rng=rng)
            memory.due = False
            memory.n_draws += 1
        return int(models.arrays.solver.policy[state]) % models.n_actions

    def plan(self, memory: Any, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        drawn = memory.due
        self.act(memory, belief, state, rng)
        details = {"drawn_now": drawn, "n_draws": memory.n_draws, **self._details(memory)}
        return memory.models.plan(state, details)

    def set_discount(self, memory: Any, discount: float) -> None:
        memory.models.discount = discount

    def on_space_changed(self, memory: Any, belief: Belief) -> None:
        memory.due = True

    def _before_draw(self, memory: Any, belief: Belief) -> None:
        """Take note of what models are about to be drawn from."""

    def _details(self, memory: Any) -> dict[str, Any]:
        """Return what else a plan tells."""
        return {}

    @staticmethod
    def _is_new_end(memory: Any, belief: Belief, seen: Transition) -> bool:
        """Return whether a state has turned out to be terminal since the last draw."""
        return bool(belief.space.terminal[seen.s2] and not memory.models.arrays.space.terminal[seen.s2])


# --- BOSS -----------------------------------------------------------------------------------------------------


@dataclass
class BOSSMemory:
    """The merged MDP at hand and how often each pair was tried."""

    models: MergedModels
    visits: np.ndarray  # int64 [S*A]
    due: bool = True
    n_draws: int = 0


@dataclass(frozen=True, kw_only=True)
class BOSS(MergedPlanner):
    """Best of sampled set.

    Parameters
    ----------
    n_models
        K, models drawn at a time.
    known_after
        B, visits after which a pair counts as known, which calls for a new draw.
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

    def start(self, belief: Belief, discount: float) -> BOSSMemory:
        return BOSSMemory(
            models=new_merged(belief, self.n_models, discount),
            visits=np.zeros(belief.n_states * belief.n_actions, np.int64),
        )

    def learn(self, memory: BOSSMemory, belief: Belief, seen: Transition) -> None:
        row = seen.s * belief.n_actions + seen.a
        memory.visits[row] += 1
        memory.due |= bool(memory.visits[row] == self.known_after) or self._is_new_end(memory, belief, seen)


# --- SBOSS ----------------------------------------------------------------------------------------------------


class Snapshot(NamedTuple):
    """Means and standard deviations of all rows at the last draw, and room to write a row of now."""

    span: Annotated[np.ndarray, "int64 [R, 2]"]  # of each of the R = S·A rows
    index: Annotated[np.ndarray, "int32 [E]"]  # type: ignore[assignment]  # outcomes listed one by one
    mean: Annotated[np.ndarray, "float64 [E]"]
    spread: Annotated[np.ndarray, "float64 [E]"]
    rest: Annotated[np.ndarray, "float64 [R, 2]"]  # mean and standard deviation of each other outcome
    reward: Annotated[np.ndarray, "float64 [R, 2]"]  # mean and standard deviation of the expected reward
    now_index: Annotated[np.ndarray, "int32 [E]"]
    now: Annotated[np.ndarray, "float64 [E]"]


def new_snapshot(n_rows: int, room: int) -> Snapshot:
    """Return a snapshot in which nothing is noted yet."""
    return zeros(Snapshot, R=n_rows, E=room)


@dataclass
class SnapshotRoom:
    """A snapshot that grows if the posterior has more outcomes than fit."""

    arrays: Snapshot

    def grow(self) -> None:
        """Make four times the room."""
        self.arrays = new_snapshot(len(self.arrays.span), 4 * len(self.arrays.index))


@kernel
def take_snapshot(belief, then, epsilon, most, number):
    """Note all rows in ``then``, and for ``epsilon`` > 0 the pairs' numbers of samples. Returns NO_ROOM if short."""
    T, R, space = belief.transitions, belief.rewards, belief.space
    n_states, n_actions = space.allowed.shape
    at = 0
    for row in range(n_states * n_actions):
        s, a = row // n_actions, row % n_actions
        then.span[row, 0] = at
        then.span[row, 1] = at
        if space.terminal[s] or not space.allowed[s, a]:
            continue
        # the expected reward and its variance under the mean row, which is then forgotten
        end, background = verbs.mean_row(T, row, then.now_index, then.now, 0)
        if end == NO_ROOM:
            return end
        reward = verbs.expected_reward(R, row, then.now_index, then.now, 0, end, background)
        reward_variance = verbs.reward_variance(R, row, then.now_index, then.now, 0, end, background)
        # means and standard deviations of the transition probabilities
        end, rest, variance = verbs.moments_row(T, row, then.index, then.mean, then.spread, at)
        if end == NO_ROOM:
            return end
        largest = variance if end - at < n_states else 0.0
        for i in range(at, end):
            largest = max(largest, then.spread[i])
            then.spread[i] = math.sqrt(then.spread[i])
        then.rest[row, 0] = rest
        then.rest[row, 1] = math.sqrt(variance)
        then.reward[row, 0] = reward
        then.reward[row, 1] = math.sqrt(reward_variance)
        if epsilon > 0.0:
            number[row] = np.int64(min(np.float64(most), max(1.0, math.ceil(largest / epsilon))))
        then.span[row, 1] = end
        at = end
    return np.int64(at)


@primitive
def _place(index, begin, end, s2, guess):
    """Where ``s2`` stands in ``index[begin:end]``, or NOT_LISTED; lists of one row mostly keep their order."""
    if begin <= guess < end and index[guess] == s2:
        return guess
    for i in range(begin, end):
        if index[i] == s2:
            return i
    return NOT_LISTED


@primitive
def _in_spreads(difference, spread):
    """Return a difference in standard deviations; 0 where there can be none."""
    return abs(difference) / spread if spread > 0.0 else 0.0


@primitive
def _movement(T, then, row, n_states):
    """Return (Δ of the transition row, where its mean now ends in ``then.now``, its background)."""
    stop, background = verbs.mean_row(T, row, then.now_index, then.now, 0)
    if stop == NO_ROOM:
        return np.inf, stop, 0.0
    begin, end = then.span[row, 0], then.span[row, 1]
    share = background / n_states
    rest, rest_spread = then.rest[row, 0], then.rest[row, 1]
    total = 0.0
    common = 0
    for i in range(stop):
        place = _place(then.index, begin, end, then.now_index[i], begin + i)
        if place == NOT_LISTED:
            total += _in_spreads(then.now[i] + share - rest, rest_spread)
        else:
            total += _in_spreads(then.now[i] + share - then.mean[place], then.spread[place])
            common += 1
    if common < end - begin:  # some outcomes of then are among the unlisted now
        for i in range(begin, end):
            if _place(then.now_index, 0, stop, then.index[i], i - begin) == NOT_LISTED:
                total += _in_spreads(share - then.mean[i], then.spread[i])
    others = n_states - (stop + end - begin - common)
    return total + others * _in_spreads(share - rest, rest_spread), stop, background


@kernel
def movement(belief, then, row, learned_rewards):
    """Δ of a row, with that of its reward if rewards are learned; infinite if it does not fit."""
    total, stop, background = _movement(belief.transitions, then, row, belief.space.terminal.shape[0])
    if not learned_rewards or stop == NO_ROOM:
        return total
    reward = verbs.expected_reward(belief.rewards, row, then.now_index, then.now, 0, stop, background)
    return total + _in_spreads(reward - then.reward[row, 0], then.reward[row, 1])


@dataclass
class SBOSSMemory:
    """The merged MDP at hand and the posterior that it was drawn from."""

    models: MergedModels
    then: SnapshotRoom
    due: bool = True
    n_draws: int = 0
    movement: float = 0.0  # Δ of the last transition


@dataclass(frozen=True, kw_only=True)
class SBOSS(MergedPlanner):
    """BOSS with smarter sampling.

    Parameters
    ----------
    n_models
        K, models drawn at a time: 8 for Chain and 2 elsewhere in the paper on DSS.
    delta
        δ, how far a pair's posterior mean may move, in standard deviations summed over outcomes.
    epsilon
        If given, pair (s, a) gets max ⌈σ²/ε⌉ samples, between 1 and ``n_models``, instead of ``n_models``.
    tol
        Accuracy of the solution, as in :class:`~bamdp.generators.PI`.

    Examples
    --------
    >>> SBOSS(n_models=8)
    SBOSS(n_models=8, delta=3.0, epsilon=None, tol=0.0001)
    """

    keeps: ClassVar[tuple[str, ...]] = (*MergedPlanner.keeps, "movement", "models.arrays.number")

    n_models: int = whole_number(2)
    delta: float = real_number(3.0, low=0.0)
    epsilon: float | None = positive_number(None)
    tol: float = positive_number(1e-4)

    def start(self, belief: Belief, discount: float) -> SBOSSMemory:
        n_rows = belief.n_states * belief.n_actions
        return SBOSSMemory(
            models=new_merged(belief, self.n_models, discount),
            then=SnapshotRoom(new_snapshot(n_rows, 4 * n_rows + belief.n_states)),
        )

    def learn(self, memory: SBOSSMemory, belief: Belief, seen: Transition) -> None:
        if memory.due:
            return
        row = seen.s * belief.n_actions + seen.a
        learned_rewards = not belief.rewards.certain
        memory.movement = belief.call(
            movement, belief.movement_arrays, memory.then.arrays, row, learned_rewards
        )
        unscaled = belief.rewards.pools and belief.n_observed <= FIRST_REWARDS
        memory.due = self._is_new_end(memory, belief, seen) or memory.movement >= self.delta or unscaled

    def learned(self, memory: SBOSSMemory) -> dict[str, np.ndarray]:
        then = memory.then.arrays._asdict()
        return super().learned(memory) | {f"then.{name}": then[name] for name in SNAPSHOT}

    def relearn(self, memory: SBOSSMemory, belief: Belief, arrays: Mapping[str, np.ndarray]) -> None:
        super().relearn(memory, belief, arrays)
        span, room = arrays["then.span"], len(arrays["then.index"])
        if (memory.models.arrays.number > self.n_models).any() or (span < 0).any() or (span > room).any():
            raise ValueError("the file's snapshot of the posterior is damaged")
        memory.then.arrays = new_snapshot(belief.n_states * belief.n_actions, room)
        for name in SNAPSHOT:
            put_array(memory.then.arrays, name, arrays[f"then.{name}"])

    def _details(self, memory: SBOSSMemory) -> dict[str, Any]:
        return {"movement": memory.movement}

    def _before_draw(self, memory: SBOSSMemory, belief: Belief) -> None:
        epsilon = 0.0 if self.epsilon is None else float(self.epsilon)
        number, measured = memory.models.arrays.number, belief.movement_arrays
        belief.run(take_snapshot, memory.then, epsilon, self.n_models, number, arrays=measured)
