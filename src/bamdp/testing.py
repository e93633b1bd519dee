"""Conformance checks for your own planners and posteriors: :func:`check_planner` and :func:`check_posterior`.

They check the requirements that the library's own planners and posteriors meet, and raise an AssertionError that
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
from bamdp.registry import make_prior
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
    world = small_world() if env is None else env
    options: dict[str, Any] = {
        "prior": prior,
        "rewards": rewards,
        "discount": discount,
        "objective": objective,
    }

    def new() -> Agent:
        return Agent.for_env(world, planner, seed=3, **options)

    def play(agent: Agent, seed: int = 5) -> Run:
        try:
            return simulate(agent, world, steps, seed=seed)
        except ValueError as error:  # the environment rejects an action
            raise AssertionError(f"{type(agent.planner).__name__}: {error}") from error

    agent = new()
    require = _requiring(agent.planner)
    run, allowed = play(agent), agent.belief.space.allowed
    require(run == play(new()), "with the same seed it must act the same: draw random numbers from rng only")
    require(allowed[run.states, run.actions].all(), "it must choose from belief.space.allowed[state]")
    require(pickle.loads(pickle.dumps(agent.planner)) == agent.planner, "it must be a frozen dataclass")
    state = world.reset(seed=5)
    before, plan = _facts(agent.belief), agent.plan(state)
    require(repr(plan) == repr(agent.plan(state)), "plan must change nothing but its memory and rng")
    actions = [candidate.action for candidate in plan.candidates]
    require(actions and allowed[state, actions].all(), "a plan must have candidates that exist")
    twin = _reloaded(agent)
    require(agent.act(state) == plan.action, "act must choose what plan shows, with the same random numbers")
    require(twin.act(state) == plan.action, "a loaded agent must choose what the saved one does")
    require(_equal(before, _facts(agent.belief)), "planning must leave the belief as it was")
    same = play(agent, 6) == play(twin, 6)
    require(same, "a loaded agent must go on as the saved one: keep what it has learned")


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
    made = make_prior(prior, n_states=n_states)
    require = _requiring(made)
    rng = np.random.default_rng(seed)

    def new(observations: Any) -> Belief:
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
    belief = new(data)
    before = _facts(belief)
    rows = before[0]
    valid = np.allclose(rows.sum(axis=1), 1.0, atol=TOLERANCE) and (rows >= 0.0).all()
    require(valid, "predictives must sum to 1")
    product = rewards is not None or np.isclose(belief.log_evidence, evidence)
    require(product, "log evidence must be the sum of log predictives")
    other = _facts(new(data[::-1]))
    require(not exact or _equal(other, before, TOLERANCE), "the order of observations must not matter")
    s, a, *_ = data[0]
    kept = belief.predictive(s, a)
    after = np.zeros((n_states, n_states))
    for s2 in np.flatnonzero(kept).tolist():
        later = belief.copy()
        later.observe(s, a, 0.0, s2)
        after[s2] = later.predictive(s, a)
    martingale = not exact or np.allclose(kept @ after, kept)
    require(martingale, "the expected predictive after a step must be that before it")
    require(_equal(_facts(belief), before), "a copy must be independent")
    mean = belief.mean().dense().reshape(rows.shape)
    require(np.allclose(mean, rows), "the mean model must have predictive rows")
    models = np.array([belief.sample(rng).dense().reshape(rows.shape) for _ in range(SAMPLES)])
    require(np.allclose(models.sum(axis=2), 1.0), "rows of sampled models must sum to 1")
    error = 5.0 * models.std(axis=0) / np.sqrt(SAMPLES) + 0.01
    near = (abs(models.mean(axis=0) - rows) < error).all()
    require(near, "sampled models must have the predictive as their mean")
    words = as_rng(seed)
    belief.reserve(20)
    for s, a, r, s2 in data[:10]:
        push_step(belief.arrays, s * n_actions + a, s2, r)
        simulate_step(belief.arrays, s * n_actions + a, words)
    undo_steps(belief.arrays, 20)
    require(_equal(_facts(belief), before), "undone steps must leave no trace, to the bit")
    require(_equal(_facts(_reloaded(belief)), before, TOLERANCE), "a file must keep everything")


def _requiring(thing: Any) -> Callable[[Any, str], None]:
    """Return a function that raises an AssertionError about ``thing`` if a condition is false."""

    def require(holds: Any, what: str) -> None:
        if not holds:
            raise AssertionError(f"{type(thing).__name__}: {what}")

    return require


def _reloaded(thing: Any) -> Any:
    """Save an agent or belief to a file, and load it again."""
    with TemporaryDirectory(prefix="bamdp-") as folder:
        path = Path(folder, "it.npz")
        thing.save(path)
        return type(thing).load(path)


def _facts(belief: Belief) -> list[NDArray[Any]]:
    """Return a belief's predictives, expected rewards, terminal states and evidence."""
    pairs = list(itertools.product(range(belief.n_states), range(belief.n_actions)))
    return [
        np.array([belief.predictive(s, a) for s, a in pairs]),
        np.array([belief.expected_reward(s, a) for s, a in pairs]),
        belief.space.terminal.copy(),
        np.array([belief.log_evidence]),
    ]


def _equal(some: list[NDArray[Any]], others: list[NDArray[Any]], tolerance: float = 0.0) -> bool:
    return all(
        np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
        for one, other in zip(some, others)
    )
