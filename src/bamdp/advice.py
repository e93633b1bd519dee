"""Diagnostics from an agent's data: prior predictive fit, value of exploration, and run summaries.

**Does the prior fit?** Two statistics of the data are compared with those of replicates:

- *surprise*, the negative log probability of the data, predicted sequentially from the prior. This is a posterior
  predictive check (Gelman, Meng & Stern 1996): each replicate draws a model from the posterior, then new transitions
  and rewards from that model for the observed pairs (s, a), in their original order.
- *drift*, Σ over pairs and next states of (n₁ − n₂)²/(n₁ + n₂), where n₁ and n₂ are counts in the first and second half
  of the visits to a pair. This is a permutation test: if nothing changes, the outcomes of a pair are exchangeable.

If at most a fraction ``UNLIKELY`` of replicates is as extreme as the data, the prior does not fit.

**What is the value of exploration?** Let V_β(s) be the optimal value of the posterior mean model. Taking action a
and then acting on the updated belief is worth

    G(a) = E[ r + γ V_β'(s') ],        β' the belief after (s, a, r, s'),

where the expectation is over the predictive distribution. The value of exploration is max_a G(a) − G(a*), in units of
reward, where a* is optimal for the mean model; it is 0 if no action improves on a*. This is a one-step lookahead
(knowledge gradient), so it is too low where several observations are needed to change a decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import bamdp.beliefs.verbs as verbs
from bamdp._kernels.random import as_rng
from bamdp.beliefs.rewards.hierarchical import HierarchicalNormal
from bamdp.beliefs.transitions.hierarchical import HierarchicalDirichlet
from bamdp.mdp.solvers import total_reward, value_iteration

if TYPE_CHECKING:
    from bamdp.beliefs.belief import Belief

Experience = tuple[int, int, float, int, bool]  # s, a, r, s2, terminated
REPLICATES, PERMUTATIONS, UNLIKELY, FEWEST = 60, 199, 0.02, 20
REWARD_DRAWS, MOST_REWARDS = 1000, 10  # per next state
EARLY, FEW = 3, 0.2  # minimum number of visits to a pair, and a quantile of the numbers of visits
LEAST_CHANCE = 1e-4  # next states with a lower probability are ignored


@dataclass(frozen=True)
class Check:
    """Result of a check of prior fit, which prints as a sentence."""

    fits: bool
    sentence: str
    surprise: float  # fraction of replicates at least as surprising as the data
    drift: float  # fraction of reorderings of the outcomes whose halves differ at least as much

    def __str__(self) -> str:
        return self.sentence


def check_fit(belief: Belief, fresh: Belief, history: list[Experience]) -> Check:
    """Compare the observed data with replicates; ``fresh`` is the belief before any data."""
    if len(history) < FEWEST:
        return Check(True, f"{len(history)} transitions are too few to say whether the prior fits.", 1.0, 1.0)
    rng = np.random.default_rng(0)
    found = _surprise(fresh, history), _drift(history)
    surprises = np.array([_surprise(fresh, _replicate(belief, history, rng)) for _ in range(REPLICATES)])
    drifts = np.array([_drift(history, rng) for _ in range(PERMUTATIONS)])
    surprise = float(np.mean(surprises >= found[0] - 1e-9))
    drift = float((np.sum(drifts >= found[1] - 1e-9) + 1) / (PERMUTATIONS + 1))
    sentence = (
        f"The prior fits: {surprise:.0%} of {REPLICATES} systems drawn from the belief surprise it as much."
    )
    if surprise <= UNLIKELY:
        sentence = (
            f"The prior does not fit: the data surprise it by {found[0]:.4g}, systems drawn from the belief by "
            f"{surprises.mean():.4g} ± {surprises.std():.2g}; use a prior or reward model that allows for more."
        )
    elif drift <= UNLIKELY:
        sentence = (
            "The prior does not fit: what follows a state and action changes over time; forget old data "
            "(agent.forget) or add what has changed to the state."
        )
    return Check(min(surprise, drift) > UNLIKELY, sentence, surprise, drift)


def _surprise(fresh: Belief, history: list[Experience]) -> float:
    belief = fresh.copy()
    for step in history:
        belief.observe(*step)
    return -belief.log_evidence


def _drift(history: list[Experience], rng: Any = None) -> float:
    """Return the drift statistic; with ``rng``, that of a random order of each pair's outcomes."""
    visits: dict[tuple[int, int], list[int]] = {}
    for s, a, _, s2, ended in history:
        visits.setdefault((s, a), []).append(-1 if ended else s2)
    drift = 0.0
    for after in visits.values():
        outcomes, index = np.unique(after, return_inverse=True)
        half = len(after) // 2
        index = index if rng is None else rng.permutation(index)
        first, second = (
            np.bincount(part, minlength=len(outcomes)) for part in (index[:half], index[-half or None :])
        )
        drift += float(((first - second) ** 2 / np.maximum(first + second, 1)).sum()) if half else 0.0
    return drift


def _replicate(belief: Belief, history: list[Experience], rng: Any) -> list[Any]:
    """Return new outcomes of the same pairs in one sampled model, with the observed reward residuals."""
    model, end = belief.sample(rng), belief.episodes.end
    known = belief.mean().expected_rewards
    paid = model.expected_rewards
    certain = belief.rewards.certain
    steps = []
    for s, a, *_ in history:
        index, chances = model.row(s, a)
        s2 = int(rng.choice(index, p=chances / chances.sum()))
        if certain:
            reward = _known_reward(belief, s, a, s2)
        else:
            pick = history[rng.integers(len(history))]
            reward = paid[s, a] + pick[2] - known[pick[0], pick[1]]
        steps.append((s, a, float(reward), s2, s2 == end or bool(belief.space.terminal[s2])))
    return steps


def _known_reward(belief: Belief, s: int, a: int, s2: int) -> float:
    """Return the known reward of a transition; 0 if the reward model does not provide one."""
    rewards = np.asarray(getattr(belief.reward_model, "rewards", np.zeros(belief.n_states)))
    return float(rewards[(s, a, s2)[: rewards.ndim]])


def exploring_value(belief: Belief, discount: float, state: int) -> float:
    """Return max_a G(a) − G(a*)."""
    mdp = belief.mean()
    solution = value_iteration(mdp, discount, tol=1e-6)
    rng = as_rng(0)
    allowed = np.flatnonzero(belief.space.allowed[state])
    worth = {int(a): _worth(belief, discount, solution.values, state, int(a), rng) for a in allowed}
    return max(0.0, max(worth.values()) - worth[int(solution.policy[state])])


def _worth(belief: Belief, discount: float, values: NDArray[np.float64], s: int, a: int, rng: Any) -> float:
    """Return G(a)."""
    chances, total, weight = belief.predictive(s, a), 0.0, 0.0
    for s2 in np.flatnonzero(chances > LEAST_CHANCE).tolist():
        after = 0.0
        for reward, share in _next_rewards(belief, s, a, s2, rng):
            later = belief.copy()
            later.observe(s, a, reward, s2, bool(belief.space.terminal[s2]))
            after += share * value_iteration(later.mean(), discount, tol=1e-6, initial=values).values[s2]
        total, weight = total + chances[s2] * after, weight + chances[s2]
    return float(belief.expected_reward(s, a) + discount * total / weight)


def _next_rewards(
    belief: Belief, s: int, a: int, s2: int, rng: NDArray[np.uint64]
) -> list[tuple[float, float]]:
    """Return predicted rewards with their probabilities: all if there are few, otherwise some quantiles."""
    if belief.rewards.certain:
        return [(_known_reward(belief, s, a, s2), 1.0)]
    row = s * belief.n_actions + a
    drawn = np.sort([verbs.draw_reward(belief.rewards, row, s2, rng) for _ in range(REWARD_DRAWS)])
    values, counts = np.unique(drawn, return_counts=True)
    if len(values) > MOST_REWARDS:
        values = drawn.reshape(MOST_REWARDS, -1).mean(axis=1)
        counts = np.full(MOST_REWARDS, REWARD_DRAWS // MOST_REWARDS)
    return list(zip(values.tolist(), (counts / REWARD_DRAWS).tolist()))


# --- runs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """Coverage of a run and its comparison with a random policy."""

    steps: int
    total: float
    untried: int  # untried actions in visited states
    pairs: int
    random_total: float  # estimated total of a random policy over the actions that were tried

    @property
    def below_random(self) -> bool:
        """Whether the run earned less than a random policy would have."""
        return self.total < self.random_total

    def __str__(self) -> str:
        lines = [
            f"{self.steps} steps, total {self.total:.6g}; random play would have earned about {self.random_total:.4g}",
            f"{self.untried} of {self.pairs} pairs of a visited state and an action were never tried",
        ]
        if self.below_random:
            lines.append(
                "warning: this is less than random play; give more steps, or a prior that knows more of the system"
            )
        return "\n".join(lines)


def summarize(
    states: NDArray[np.int64], actions: NDArray[np.int64], rewards: NDArray[np.float64], n_actions: int | None
) -> Summary:
    """Summarize a run; the model includes restarts as transitions from the end of an episode to the next start.

    The model learns only from the first visits to each pair: three, or as many as most pairs have. Agents drop pairs
    after bad luck, so a model learned from all visits would underestimate random play.
    """
    if states.ndim > 1:
        raise TypeError(
            "a summary counts visited states, and a continuous system has none to count; use print(run) or run.plot()"
        )
    numbers, at = np.unique(states, return_inverse=True)
    A = int(actions.max()) + 1 if n_actions is None else n_actions
    belief = HierarchicalDirichlet().belief(len(numbers), A, rewards=HierarchicalNormal())
    pair = at[:-1] * A + actions[:-1]
    order, visit = np.argsort(pair, kind="stable"), np.zeros(len(pair), int)
    _, first, counts = np.unique(pair[order], return_index=True, return_counts=True)
    visit[order] = np.arange(len(pair)) - np.repeat(first, counts)
    early = visit < max(EARLY, np.quantile(counts, FEW) if len(counts) else EARLY)
    belief.observe_many(at[:-1][early], actions[:-1][early], rewards[:-1][early], at[1:][early])
    mean = belief.mean()
    tried = np.zeros((len(numbers), A))
    tried[at, actions] = 1.0
    policy = tried / tried.sum(axis=1, keepdims=True)  # use only the actions that were tried
    random_total = total_reward(mean, int(at[0]), len(states), policy)
    untried = int(tried.size - tried.sum())
    return Summary(len(states), float(rewards.sum()), untried, tried.size, random_total)
