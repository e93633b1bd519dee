"""Simulation estimates of the two constants of Theorem 1 and of a planner's loss, for a given belief.

**C.** The proof of Lemma 2 uses Assumption 2 only to bound by C the expected disagreement

    C̄ = E D(μ, μ'),    D(μ, μ') = max_{s,a} ‖P_μ(·|s,a) − P_μ'(·|s,a)‖₁,    μ, μ' independent draws from the belief,

which is estimated by the mean over sampled pairs. If rewards are learned as well, 2 |r_μ(s,a) − r_μ'(s,a)| is added
inside the maximum: the sum is an upper bound on the distance between the joint distributions of the next state and a
reward of 0 or 1.

**ε₀.** In stage h of a simulated episode, Thompson sampling draws a policy, which acts for K steps, and the belief
changes from β to β'. By Bayes' rule β'(μ) = w(μ) β(μ) with w(μ) = P_μ(data) / P_β(data), so

    ‖β' − β‖₁ = E_β |w − 1| = 2 E_β max(0, 1 − w),

where the second form holds because E_β w = 1. Its terms lie in [0, 2] for stages of any length, whereas those of the
first form are unbounded; the denominator of w is the belief's exact evidence. Since w is a martingale, the expected
change is largest at the end of the stage. ε₀ is the smallest number with ε_h ≤ ε₀ / max(h, 1) for the means ε_h over
episodes.

**Loss.** Let Q*_n(ω, a) be the exact Bayes-optimal values with n steps to go (:class:`bamdp.FHTS`) and V*_n their
maximum over a. For any policy over T steps, by telescoping (the performance difference lemma),

    v*_T − v_T = E Σ_{t<T} γ^t [ V*_{T−t}(ω_t) − Q*_{T−t}(ω_t, a_t) ],

where ω_t are the hyper-states that the policy visits. There is no need to sample models: the next state and the reward
are drawn from the belief's predictive distribution, which equals that of a model drawn from the prior. Each bracket is
exact and non-negative, so the mean over runs is unbiased and has a small variance: the randomness of rewards does not
contribute to it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp._kernels.random import as_rng, new_rng
from bamdp.agent import Agent
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import simulate_step, undo_steps
from bamdp.beliefs.rewards.conjugate import BetaBernoulli
from bamdp.beliefs.transitions.mixture import FiniteModels
from bamdp.mdp.build import entry_matrix
from bamdp.mdp.model import FiniteMDP
from bamdp.mdp.solvers import policy_iteration
from bamdp.planners.fhts import FHTS
from bamdp.seeding import seeds
from bamdp.statistics import standard_error

__all__ = [
    "Drift",
    "Loss",
    "SampleMean",
    "bayes_loss",
    "belief_distance",
    "estimate_c",
    "estimate_epsilon0",
    "model_distance",
]
Seen = tuple[int, int, float, int]  # s, a, r, s2


@dataclass(frozen=True)
class SampleMean:
    """A sample whose mean serves as an estimate.

    Attributes
    ----------
    samples
        Independent values: D for each pair of models, or Σ_t γ^t (V* − Q*) for each run.
    """

    samples: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """The estimate."""
        return float(self.samples.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of the mean; NaN for a single value."""
        return standard_error(self.samples)


@dataclass(frozen=True)
class Loss(SampleMean):
    """The loss of a planner relative to the Bayes-optimal policy, v*_T − v_T, estimated from runs.

    Attributes
    ----------
    value
        v*_T, the value of the Bayes-optimal policy.
    """

    value: float


@dataclass(frozen=True)
class Drift:
    """The changes of a belief along simulated episodes.

    Attributes
    ----------
    changes
        ‖β_{h+1} − β_h‖₁ in each stage of each episode, ``[episodes, H]``.
    """

    changes: NDArray[np.float64]

    @property
    def stages(self) -> NDArray[np.float64]:
        """ε_h, the mean over episodes, ``[H]``."""
        means: NDArray[np.float64] = self.changes.mean(axis=0)
        return means

    @property
    def epsilon0(self) -> float:
        """The smallest ε₀ with ε_h ≤ ε₀ / max(h, 1) for all h."""
        return float((self.stages * np.maximum(np.arange(len(self.stages)), 1)).max())


# The constant C


def model_distance(
    first: FiniteMDP, second: FiniteMDP, *, rewards: bool = False, reward_range: float = 1.0
) -> float:
    """Return the distance D(μ, μ') between two models, from 0 to 2.

    Parameters
    ----------
    first, second
        Models with the same numbers of states and actions.
    rewards
        Whether to add 2|r − r'|/ρ inside the maximum.
    reward_range
        ρ, the length of the interval of rewards.

    Examples
    --------
    >>> stay, swap = (FiniteMDP(p[:, None, :], [0.0, 1.0]) for p in (np.eye(2), np.eye(2)[::-1]))
    >>> model_distance(stay, swap)
    2.0
    """
    if first.space.allowed.shape != second.space.allowed.shape:
        raise ValueError(
            f"the models differ in size: {first.space.allowed.shape} and {second.space.allowed.shape} states, actions"
        )
    S = first.n_states
    difference = entry_matrix(first.rows, S) - entry_matrix(second.rows, S)
    level = (first.rows.background - second.rows.background) / S  # the difference if neither has an entry
    counts = np.diff(difference.indptr)
    row = np.repeat(np.arange(len(counts)), counts)
    sums = np.bincount(row, np.abs(difference.data + level[row]), len(counts)) + (S - counts) * np.abs(level)
    if rewards:
        scale = _checks.real(reward_range, "reward_range", low=0.0, open_low=True)
        sums = sums + 2.0 * np.abs(first.rows.reward - second.rows.reward) / scale
    return float(sums.max())


def estimate_c(belief: Belief, *, pairs: int = 200, reward_range: float = 1.0, rng: Any = None) -> SampleMean:
    """Estimate C̄ from independent pairs of models drawn from a belief.

    Parameters
    ----------
    belief
        The belief.
    pairs
        The number of pairs.
    reward_range
        The length of the interval of rewards, as for the bound; only used if rewards are learned.
    rng
        A seed or a generator.

    Examples
    --------
    >>> from bamdp import Dirichlet
    >>> c = estimate_c(Dirichlet(alpha=1.0).belief(2, 1), pairs=500, rng=0)
    >>> bool(abs(c.mean - 14 / 15) < 4 * c.standard_error)  # E max of two |U − U'|, doubled
    True
    """
    pairs, state = _checks.integer(pairs, "pairs"), as_rng(rng)
    learned = not belief.rewards.certain
    models = ((belief.sample(state), belief.sample(state)) for _ in range(pairs))
    distances = [model_distance(*pair, rewards=learned, reward_range=reward_range) for pair in models]
    return SampleMean(np.array(distances))


# The constant ε₀


def estimate_epsilon0(
    belief: Belief,
    state: int,
    discount: float,
    *,
    n_steps: int,
    n_stages: int = 4,
    episodes: int = 20,
    models: int = 200,
    rng: Any = None,
) -> Drift:
    """Estimate ε₀ from simulated episodes of Thompson sampling.

    Parameters
    ----------
    belief
        The belief at the beginning of each episode.
    state
        The first state.
    discount
        γ in [0, 1).
    n_steps, n_stages
        K and H: each episode has ``n_stages`` stages of ``n_steps`` steps.
    episodes
        The number of episodes.
    models
        The number of sampled models for each distance between beliefs.
    rng
        A seed or a generator.
    """
    K, H = _checks.integer(n_steps, "n_steps"), _checks.integer(n_stages, "n_stages")
    start, discount = _check_first_state(belief, state), _checks.discount(discount)
    stream = as_rng(rng)
    episodes = _checks.integer(episodes, "episodes")
    _checks.memory(8 * episodes * H, f"the changes of {episodes} episodes of {H} stages")
    changes = np.zeros((episodes, H))
    for episode in changes:
        now, s = belief.copy(), start
        for h in range(H):
            if now.space.terminal[s]:  # the belief no longer changes
                break
            policy = policy_iteration(now.sample(stream), discount).policy
            seen = _simulate_policy(now, policy.astype(np.int32), s, K, stream)
            episode[h] = belief_distance(now, seen, models=models, rng=stream)
            for transition in seen:
                now.observe(*transition)
            s = seen[-1][3]
    return Drift(changes)


def belief_distance(belief: Belief, seen: Iterable[Seen], *, models: int = 200, rng: Any = None) -> float:
    """Return ‖β' − β‖₁ for the belief β' after some transitions, exactly for finite model sets, otherwise estimated.

    Parameters
    ----------
    belief
        β.
    seen
        The transitions (s, a, r, s2).
    models
        The number of sampled models for the estimate.
    rng
        A seed or a generator.

    Examples
    --------
    >>> from bamdp import Dirichlet
    >>> belief = Dirichlet(alpha=1.0).belief(2, 1)  # one uniform p: |2p − 1| is 1/2 on average
    >>> bool(abs(belief_distance(belief, [(0, 0, 0.0, 1)], models=2000, rng=0) - 0.5) < 0.06)
    True
    """
    seen = list(seen)
    after = belief.copy()
    for transition in seen:
        after.observe(*transition)
    if isinstance(belief.prior, FiniteModels) and (belief.rewards.certain or belief.rewards.shares_weights):
        return float(np.abs(after.weights - belief.weights).sum())
    evidence = after.log_evidence - belief.log_evidence
    state, counts = as_rng(rng), Counter(seen)
    _check_reward_model(belief)
    shortfalls = [
        max(0.0, 1.0 - math.exp(min(0.0, _log_likelihood(belief, belief.sample(state), counts) - evidence)))
        for _ in range(_checks.integer(models, "models"))
    ]
    return 2.0 * float(np.mean(shortfalls))


def _log_likelihood(belief: Belief, model: FiniteMDP, counts: Counter[Seen]) -> float:
    """Return the log probability of the counted transitions in a model."""
    total = 0.0
    for (s, a, r, s2), n in counts.items():
        states, probs = model.row(s, a)
        p = float(probs[states == s2].sum())
        if isinstance(belief.reward_model, BetaBernoulli):
            win = float(model.expected_rewards[s, a])
            p *= win if r == 1.0 else 1.0 - win
        if p <= 0.0:
            return -math.inf
        total += n * math.log(p)
    return total


def _check_reward_model(belief: Belief) -> None:
    """Raise ValueError for reward models not supported by :func:`_log_likelihood`."""
    model = belief.reward_model
    by_pair = isinstance(model, BetaBernoulli) and model.by == "pair"
    if not belief.rewards.certain and not by_pair:
        raise ValueError(
            f"the distance of beliefs is computed for rewards that are known or BetaBernoulli by pair, not for "
            f"{model}"
        )


# The loss of a planner


def bayes_loss(
    make_agent: Callable[[np.random.SeedSequence], Agent],
    horizon: int,
    *,
    start: int = 0,
    runs: int = 100,
    seed: int = 0,
    exact: dict[Any, NDArray[np.float64]] | None = None,
) -> Loss:
    """Estimate a planner's loss over ``horizon`` steps, in environments drawn from its own belief.

    Parameters
    ----------
    make_agent
        Creates an agent from a seed, always with the same belief and discount factor.
    horizon
        T. The cost of exact values is about (A·S)^T: feasible for bandits, and for two or three states up to T = 8.
    start
        The first state.
    runs
        The number of runs.
    seed
        Seed of all runs; run i uses the same seeds as replicate i of :func:`bamdp.runs.run_setting`.
    exact
        A cache of exact values, to be reused in further calls with the same belief and discount factor.

    Examples
    --------
    >>> import bamdp
    >>> def greedy(seed):
    ...     return bamdp.Agent(bamdp.BayesGreedy(), prior=bamdp.Dirichlet(), rewards=bamdp.BetaBernoulli(),
    ...                        n_states=1, n_actions=2, discount=0.9, seed=seed)
    >>> loss = bayes_loss(greedy, horizon=5, runs=50)
    >>> bool(0.0 <= loss.mean < 0.1 < loss.value)
    True
    """
    T, runs = _checks.integer(horizon, "horizon"), _checks.integer(runs, "runs")
    exact = {} if exact is None else exact
    _checks.memory(8 * runs, f"the losses of {runs} runs")
    losses = np.zeros(runs)
    for i in range(runs):
        world_seed, agent_seed = seeds(seed, i)
        agent = make_agent(agent_seed)
        _check_first_state(agent.belief, start)
        losses[i] = _loss_of_run(agent, new_rng(world_seed), T, start, exact)
    return Loss(losses, float(np.nanmax(exact[T, start, ()])))


def _loss_of_run(agent: Agent, rng: np.ndarray, horizon: int, s: int, exact: dict[Any, Any]) -> float:
    """Return Σ_t γ^t (V* − Q*) for one run, with next states and rewards drawn using ``rng``."""
    belief, total, weight = agent.belief, 0.0, 1.0
    history: list[Seen] = []
    for left in range(horizon, 0, -1):
        if belief.space.terminal[s]:
            break
        key = (left, s, tuple(sorted(history)))  # the order of the data does not matter
        if key not in exact:
            exact[key] = _optimal_action_values(agent, left, s)
        a = agent.act(s)
        total += weight * float(np.nanmax(exact[key]) - exact[key][a])
        weight *= agent.discount
        (transition,) = _simulate_policy(belief, np.full(belief.n_states, a, np.int32), s, 1, rng)
        history.append(transition)
        agent.observe(*transition)
        s = transition[3]
    return total


def _optimal_action_values(agent: Agent, steps: int, state: int) -> NDArray[np.float64]:
    """Return Q* ``[A]`` with ``steps`` steps to go, NaN for actions that do not exist."""
    planner = FHTS(steps)
    plan = planner.plan(planner.start(agent.belief, agent.discount), agent.belief, state, agent.rng)
    values = np.full(agent.belief.n_actions, np.nan)
    for candidate in plan.candidates:
        values[candidate.action] = candidate.value
    return values


# Simulation in a belief


def _check_first_state(belief: Belief, state: int) -> int:
    """Return the first state of simulated episodes after validating it and the belief's objective."""
    if belief.episodes.restarts:
        raise ValueError("episodes are followed to their end only: make the belief with objective='episode'")
    if belief.space.terminal[_checks.index(state, "the first state", belief.n_states)]:
        raise ValueError(f"state {state} is terminal: nothing follows it; begin in another state")
    return int(state)


def _simulate_policy(
    belief: Belief, policy: NDArray[np.int32], s: int, steps: int, rng: np.ndarray
) -> list[Seen]:
    """Return up to ``steps`` transitions of a policy, drawn from the belief, which remains unchanged."""
    belief.reserve(steps)
    seen: list[Seen] = []
    while len(seen) < steps and not belief.space.terminal[s]:
        s2, r = simulate_step(belief.arrays, s * belief.n_actions + int(policy[s]), rng)
        seen.append((s, int(policy[s]), float(r), int(s2)))
        s = seen[-1][3]
    undo_steps(belief.arrays, len(seen))
    return seen
