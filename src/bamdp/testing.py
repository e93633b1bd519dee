"""Conformance checks for your own planners and posteriors: :func:`check_planner` and :func:`check_posterior`.

They apply the same requirements as for the library's own planners and posteriors, and raise an AssertionError that
describes the violation in one line. Call them from a test::

    bamdp.testing.check_planner(MyPlanner())
    bamdp.testing.check_posterior(MyPrior())
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp._kernels.random import as_rng
from bamdp.agent import Agent
from bamdp.beliefs.base import Prior, RewardModel
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import push_step, simulate_step, undo_steps
from bamdp.envs.environment import Environment, World
from bamdp.envs.registry import from_mdp
from bamdp.mdp.model import FiniteMDP
from bamdp.planners.base import Planner
from bamdp.simulation import Run, simulate

__all__ = ["check_planner", "check_posterior", "small_world"]

SAMPLES = 400  # number of sampled models whose mean is compared with the predictive
TOLERANCE = 1e-9


def small_world(n_states: int = 4, n_actions: int = 3, seed: int = 0) -> Environment:
    """Return a random environment with short episodes and some nonexistent actions.

    Examples
    --------
    >>> small_world().mdp.terminal.tolist()
    [False, False, False, True]
    """
    rng = np.random.default_rng(seed)
    transitions = 0.7 * rng.dirichlet(np.ones(n_states), size=(n_states, n_actions))
    transitions[:, :, -1] += 0.3
    allowed = np.ones((n_states, n_actions), bool)
    allowed[np.arange(n_states), np.arange(n_states) % n_actions] = n_actions == 1
    mdp = FiniteMDP(
        transitions, rng.random((n_states, n_actions)), terminal=[n_states - 1], action_mask=allowed
    )
    return from_mdp(mdp, name="small world")


def check_planner(
    planner: Planner | str,
    env: World | None = None,
    *,
    prior: Prior | str | None = None,
    rewards: RewardModel | ArrayLike | str | None = None,
    discount: float = 0.9,
    objective: str = "episode",
    steps: int = 25,
) -> None:
    """Check the properties of a planner that agents, comparisons and files rely on.

    Equal seeds give equal actions; only existing actions are chosen; ``plan`` has no side effects and agrees with
    ``act``; planning leaves the belief unchanged; a saved and reloaded agent behaves like the original.

    Parameters
    ----------
    planner
        The planner.
    env
        The environment; :func:`small_world` by default.
    prior, rewards, discount, objective
        Settings of the agent, as in :meth:`bamdp.Agent.for_env`.
    steps
        Number of steps per run.

    Examples
    --------
    >>> check_planner("thompson")
    """
    env = small_world() if env is None else env
    of_agent: dict[str, Any] = {
        "prior": prior,
        "rewards": rewards,
        "discount": discount,
        "objective": objective,
    }

    def new(seed: int = 3) -> Agent:
        return Agent.for_env(env, planner, seed=seed, **of_agent)

    def play(agent: Agent, seed: int = 5) -> Run:
        try:
            return simulate(agent, env, steps, seed=seed)
        except ValueError as error:  # the environment rejects an action
            raise AssertionError(f"{type(agent.planner).__name__}: {error}") from error

    agent = new()
    require = _requiring(type(agent.planner).__name__)
    run, again = play(agent), play(new())
    require(run == again, "with the same seed it must act the same: draw random numbers from rng only")
    allowed = agent.belief.space.allowed
    require(
        allowed[run.states, run.actions].all(),
        "it must choose actions that exist, belief.space.allowed[state]",
    )
    require(pickle.loads(pickle.dumps(agent.planner)) == agent.planner, "it must be a frozen dataclass")
    state = env.reset(seed=5)
    before, plan = _facts(agent.belief), agent.plan(state)
    require(repr(plan) == repr(agent.plan(state)), "plan must change nothing but its memory and rng")
    require(bool(plan.candidates), "a plan must have candidates")
    require(all(allowed[state, c.action] for c in plan.candidates), "candidates must be actions that exist")
    with TemporaryDirectory(prefix="bamdp-") as folder:
        path = Path(folder, "agent.npz")
        agent.save(path)
        twin = Agent.load(path)
    require(agent.act(state) == plan.action, "act must choose what plan shows, with the same random numbers")
    require(twin.act(state) == plan.action, "a loaded agent must choose what the saved one does")
    after = _facts(agent.belief)
    require(all(map(np.array_equal, before, after)), "planning must leave the belief as it was")
    require(
        play(agent, 6) == play(twin, 6),
        "a loaded agent must go on as the saved one: keep what it has learned",
    )


def check_posterior(
    prior: Prior | str,
    n_states: int = 4,
    n_actions: int = 2,
    *,
    rewards: RewardModel | ArrayLike | None = None,
    exact: bool = True,
    seed: int = 0,
) -> None:
    """Check that a prior and its posterior are consistent and support the operations of planners.

    Predictives are probability distributions and martingales under further transitions; the evidence is the product of
    predictives and does not depend on the order of the data; the mean model and the average of sampled models match the
    predictives; undoing simulated transitions restores the posterior exactly; copies are independent; saving and
    loading preserve everything.

    Parameters
    ----------
    prior
        The prior, with parameters that suit the number of states.
    n_states, n_actions
        The numbers of states and actions.
    rewards
        A reward model to check together with the prior; by default, rewards are known.
    exact
        Whether the posterior is exact. A posterior that estimates hyper-parameters from all transitions is not: it may
        depend on the order of observations, and its predictives need not be martingales.
    seed
        Seed of the transitions and samples.

    Examples
    --------
    >>> check_posterior("sparse")
    """
    from bamdp.registry import make_prior

    made = make_prior(prior, n_states=n_states)
    require = _requiring(type(made).__name__)
    rng = np.random.default_rng(seed)

    def new(observations: Any = ()) -> Belief:
        belief = made.belief(n_states, n_actions, rewards=rewards)
        for observed in observations:
            belief.observe(*observed)
        return belief

    data: list[tuple[int, int, float, int]] = []
    evidence = 0.0
    for s, a in rng.integers([n_states, n_actions], size=(12, 2)).tolist():
        predicted = new(data).predictive(s, a)
        s2 = int(rng.choice(n_states, p=predicted / predicted.sum()))
        evidence += float(np.log(predicted[s2]))
        data.append((s, a, 0.0, s2))
    belief, pairs = new(data), list(itertools.product(range(n_states), range(n_actions)))
    rows = np.array([belief.predictive(s, a) for s, a in pairs])
    require(
        np.allclose(rows.sum(axis=1), 1.0, atol=TOLERANCE) and (rows >= 0.0).all(),
        "predictives must sum to 1",
    )
    if rewards is None:
        require(np.isclose(belief.log_evidence, evidence), "log evidence must be the sum of log predictives")
    other = new(data[::-1])
    require(not exact or _close(_facts(other), _facts(belief)), "the order of observations must not matter")
    s, a, *_ = data[0]
    kept = belief.predictive(s, a)
    after = [
        _observed(belief, (s, a, 0.0, s2)).predictive(s, a) if p > 0.0 else 0.0 * kept
        for s2, p in enumerate(kept)
    ]
    same = np.allclose(kept @ np.array(after), kept)
    require(same or not exact, "the expected predictive after a step must be that before it")
    require(np.array_equal(belief.predictive(s, a), kept), "a copy must be independent")
    require(
        np.allclose(belief.mean().dense().reshape(rows.shape), rows),
        "the mean model must have predictive rows",
    )
    models = np.array([belief.sample(rng).dense().reshape(rows.shape) for _ in range(SAMPLES)])
    require(np.allclose(models.sum(axis=2), 1.0), "rows of sampled models must sum to 1")
    error = 5.0 * models.std(axis=0) / np.sqrt(SAMPLES) + 0.01
    require(
        (abs(models.mean(axis=0) - rows) < error).all(),
        "sampled models must have the predictive as their mean",
    )
    before, words = _facts(belief), as_rng(seed)
    belief.reserve(20)
    for s, a, r, s2 in data[:10]:
        push_step(belief.arrays, s * n_actions + a, s2, r)
        simulate_step(belief.arrays, s * n_actions + a, words)
    undo_steps(belief.arrays, 20)
    require(all(map(np.array_equal, _facts(belief), before)), "undone steps must leave no trace, to the bit")
    with TemporaryDirectory(prefix="bamdp-") as folder:
        path = Path(folder, "belief.npz")
        belief.save(path)
        require(_close(_facts(Belief.load(path)), before), "a file must keep everything")


def _requiring(name: str) -> Callable[[Any, str], None]:
    """Return a function that raises an AssertionError about ``name`` if a condition is false."""

    def require(holds: Any, what: str) -> None:
        if not holds:
            raise AssertionError(f"{name}: {what}")

    return require


def _observed(belief: Belief, step: tuple[int, int, float, int]) -> Belief:
    """Return a copy of a belief updated with one more transition."""
    twin = belief.copy()
    twin.observe(*step)
    return twin


def _facts(belief: Belief) -> list[NDArray[Any]]:
    """Return a belief's predictives, expected rewards, terminal states and evidence."""
    pairs = list(itertools.product(range(belief.n_states), range(belief.n_actions)))
    return [
        np.array([belief.predictive(s, a) for s, a in pairs]),
        np.array([belief.expected_reward(s, a) for s, a in pairs]),
        belief.space.terminal.copy(),
        np.array([belief.log_evidence]),
    ]


def _close(some: list[NDArray[Any]], others: list[NDArray[Any]]) -> bool:
    return all(np.allclose(one, other, atol=TOLERANCE) for one, other in zip(some, others))
