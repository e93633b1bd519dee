"""Settings of runs, and replicates whose results do not depend on the number of processes.

A :class:`Setting` determines a run except for its replicate number. The command line, the studio and studies all create
settings with :func:`make_setting`. :mod:`bamdp.seeding` defines the random numbers of each replicate.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks
from bamdp.agent import Agent
from bamdp.beliefs.base import Prior, RewardModel
from bamdp.beliefs.belief import OBJECTIVES
from bamdp.envs.environment import Environment, World
from bamdp.envs.registry import new_world
from bamdp.planners.base import Planner, auto_reach, horizon_discount
from bamdp.processes import Pool, Progress, step_bar, stream
from bamdp.registry import Spec, label, make_planner, make_prior, make_rewards
from bamdp.seeding import Seed, seeds
from bamdp.simulation import Callback, Run, simulate, success_share
from bamdp.statistics import standard_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


@dataclass(frozen=True)
class Setting:
    """All properties of a replicate except its number."""

    env: Any  # text, a function, or an object that is copied for each run
    planner: Planner
    prior: Prior
    rewards: RewardModel
    discount: float | str  # a number, "horizon" or "auto"; see Agent
    steps: int
    seed: int = 0
    objective: str = "episode"

    def __post_init__(self) -> None:
        object.__setattr__(self, "discount", _checks.planning_discount(self.discount))
        _checks.integer(self.steps, "steps")
        _checks.integer(self.seed, "seed", low=0)
        _checks.one_of(self.objective, "objective", OBJECTIVES)

    @property
    def first_discount(self) -> float:
        """The discount of the first decision."""
        if not isinstance(self.discount, str):
            return self.discount
        reach = None
        if self.discount == _checks.AUTO:
            world = new_world(self.env)
            reach = auto_reach(self.steps, world.n_states, world.n_actions)
        return horizon_discount(self.steps, reach)


def make_setting(
    env: Any,
    planner: str | Spec | Planner,
    *,
    parameters: Mapping[str, Any] | None = None,
    prior: str | Spec | Prior | None = None,
    rewards: str | Spec | RewardModel | ArrayLike | None = None,
    discount: float | str | None = None,
    objective: str = "episode",
    steps: int | None = None,
    seed: int = 0,
    world: World | None = None,
) -> Setting:
    """Create a setting from text; objects are used unchanged.

    Parameters
    ----------
    env
        The environment, as accepted by :func:`bamdp.envs.registry.new_world`.
    planner
        The planner, ``name`` or ``name:key=value,...``.
    parameters
        Additional planner parameters, as values or text.
    prior
        The prior over transitions, as accepted by :func:`bamdp.registry.make_prior`; None for the planner's default.
    rewards
        The reward model, as accepted by :func:`bamdp.registry.make_rewards`; None for the environment's default.
    discount
        The planning discount; ``"horizon"`` to maximise the total over the remaining steps; ``"auto"`` to also limit
        the planning horizon by the amount of data (see :class:`~bamdp.Agent`); or None for the planner's default.
    objective
        Whether planning stops at the end of an episode (``episode``) or includes later episodes (``lifetime``).
    steps
        Steps per run; None for the environment's horizon.
    seed
        Seed of all runs.
    world
        The environment specified by ``env``, if already created.

    Examples
    --------
    >>> make_setting("chain", "thompson:resample=episode", prior="flat").planner
    ThompsonSampling(resample='episode', tol=0.0001)
    >>> make_setting("chain", "thompson", prior="sparse:bata=2")
    Traceback (most recent call last):
    ...
    ValueError: unknown parameter of sparse 'bata'; did you mean 'beta'? (known: ...)
    """
    world = new_world(env) if world is None else world
    made: Any
    model: Any = rewards
    if world.system is None:
        made = make_planner(planner, parameters)
        made_prior = make_prior(made.default_prior if prior is None else prior, world)
        model, usual = make_rewards(rewards, world), made.default_discount
    else:
        from bamdp.continuous.agent import DEFAULT_PRIOR, DISCOUNT, PLANNERS, PRIORS, make_continuous

        _checks.one_of(objective, "objective of a world with continuous observations", ("episode",))
        made = make_continuous(planner, PLANNERS, "planner", parameters)
        made_prior = make_continuous(DEFAULT_PRIOR if prior is None else prior, PRIORS, "prior")
        usual = DISCOUNT
    discount = usual if discount is None else discount
    steps = world.horizon if steps is None else steps
    return Setting(env, made, made_prior, model, discount, steps, seed, objective)


@lru_cache(maxsize=256)
def cached_world(spec: Any) -> World:
    """Return a shared environment for reading metadata; it must not be stepped."""
    return new_world(spec)


@dataclass(frozen=True)
class Batch:
    """The replicates of a setting, in order."""

    setting: Setting
    runs: tuple[Run, ...]
    reproducible: bool  # False if a time budget limited the computation
    seconds: float = field(compare=False)  # elapsed time of the whole batch

    def __repr__(self) -> str:
        error = f" ± {self.standard_error:.3g}" if len(self.runs) > 1 else ""
        returns = self.episode_returns
        episodes = f", {len(returns)} episodes with mean return {returns.mean():.4g}" if len(returns) else ""
        env = self.setting.env if isinstance(self.setting.env, str) else new_world(self.setting.env).name
        runs = f"{len(self.runs)} run{'s' * (len(self.runs) != 1)} of {self.setting.steps} steps"
        return (
            f"Batch: {label(self.setting.planner)} in {env}, {runs}, total {self.mean:.4g}"
            f"{error} per run{episodes}, {self.ms_per_step:.2g} ms per step"
        )

    @property
    def rewards(self) -> NDArray[np.float64]:
        """Rewards of all replicates, [R, T]."""
        return np.array([run.rewards for run in self.runs])

    def plot(self, *, ax: Axes | None = None, **options: Any) -> Axes:
        """Plot episode returns over time, or if these are all equal, the reward per step and the optimum.

        Accepts the options of :func:`bamdp.plot.returns` and :func:`bamdp.plot.learning_curve`.
        """
        from bamdp import plot  # imports Matplotlib only when needed

        if all(len(run.ends) for run in self.runs) and len(set(self.episode_returns.tolist())) > 1:
            return plot.returns(self, ax=ax, **options)
        world = new_world(self.setting.env)
        known = {"optimum": world} if isinstance(world, Environment) else {}
        return plot.learning_curve(self, ax=ax, **(known | options))

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with one row per run."""
        from pandas import DataFrame  # slow to import

        return DataFrame(
            {
                "run": np.arange(len(self.runs)),
                "total_reward": self.totals,
                "episodes": [len(run.ends) for run in self.runs],
                "mean_return": [run.episode_returns.mean() if len(run.ends) else np.nan for run in self.runs],
                "ms_per_step": [run.ms_per_step for run in self.runs],
            }
        )

    @property
    def totals(self) -> NDArray[np.float64]:
        """Total reward of each replicate."""
        return np.array([run.total_reward for run in self.runs])

    @property
    def mean(self) -> float:
        """Mean total reward."""
        return float(self.totals.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean total reward; NaN for a single run."""
        return standard_error(self.totals)

    @property
    def episode_returns(self) -> NDArray[np.float64]:
        """Returns of all completed episodes, ordered by run."""
        return np.concatenate([run.episode_returns for run in self.runs])

    @property
    def success(self) -> float | None:
        """Fraction of completed episodes that reached their goal; see :func:`bamdp.simulation.success_share`."""
        return success_share(self.runs)

    @property
    def ms_per_step(self) -> float:
        """Processor milliseconds per step for planning and learning, excluding compilation."""
        return float(np.mean([run.ms_per_step for run in self.runs]))


def new_agent(setting: Setting, env: World, seed: Seed = 0) -> Agent:
    """Create a new agent for the setting's environment."""
    return Agent.for_env(
        env,
        setting.planner,
        prior=setting.prior,
        rewards=setting.rewards,
        objective=setting.objective,
        seed=seed,
        discount=setting.discount,
        horizon=setting.steps if isinstance(setting.discount, str) else None,
    )


def run_one(
    setting: Setting,
    replicate: int,
    progress: Progress | None = None,
    *,
    tuning: bool = False,
    callbacks: Iterable[Callback] = (),
) -> Run:
    """Run the replicate with the given number, after compiling all required code."""
    warm_up(setting)
    of_env, of_agent = seeds(setting.seed, replicate, tuning=tuning)
    env = new_world(setting.env)
    agent = new_agent(setting, env, of_agent)
    return simulate(agent, env, setting.steps, seed=of_env, progress=progress or False, callbacks=callbacks)


def run_many(
    env: Any,
    planner: Planner | str,
    *,
    runs: int = 10,
    steps: int | None = None,
    prior: Prior | str | None = None,
    rewards: RewardModel | ArrayLike | str | None = None,
    discount: float | str | None = None,
    objective: str = "episode",
    seed: int = 0,
    jobs: int = 1,
    progress: bool = False,
) -> Batch:
    """Run independent replicates of an agent that learns an environment from scratch.

    Parameters
    ----------
    env
        A name, an environment from this library or Gymnasium (copied for each run), or a function that creates one.
    planner, prior, rewards, discount, objective
        Settings of the agent, as in :meth:`bamdp.Agent.for_env`.
    runs
        Number of replicates. Each replicate is the same however many are requested.
    steps
        Steps per run; by default the environment's horizon.
    seed
        Seed of all runs; planners with the same seed share common random numbers.
    jobs
        Number of processes; it does not affect the results.
    progress
        Whether to show a progress bar on standard error.

    Examples
    --------
    >>> run_many("chain", "thompson", runs=3, steps=50)
    Batch: thompson in chain, 3 runs of 50 steps, total ... per run, ... ms per step
    """
    setting = make_setting(
        env,
        planner,
        prior=prior,
        rewards=rewards,
        discount=discount,
        objective=objective,
        steps=steps,
        seed=seed,
    )
    return run_setting(setting, runs, jobs, progress)


def run_setting(setting: Setting, runs: int, jobs: int = 1, progress: bool | Progress | None = None) -> Batch:
    """Run the replicates 0 .. runs-1 of a setting on ``jobs`` processes."""
    jobs = min(_checks.integer(jobs, "jobs"), _checks.integer(runs, "runs"))
    reproducible = warm_up(setting)  # compile here first, so that workers load the code from disk
    by_replicate: dict[int, Run] = {}
    numbers = iter(range(runs))
    with (
        step_bar(progress, runs * setting.steps) as tick,
        Pool(jobs, tick) as pool,
        closing(stream(pool, partial(run_one, setting), lambda: next(numbers, None))) as results,
    ):
        begin = time.perf_counter()
        for replicate, run in results:
            if isinstance(run, Exception):
                raise run
            by_replicate[replicate] = run
    ordered = tuple(by_replicate[replicate] for replicate in range(runs))
    return Batch(setting, ordered, reproducible, time.perf_counter() - begin)


_warm: dict[str, bool] = {}


def warm_up(setting: Setting) -> bool:
    """Compile or load a setting's code once per process; return whether its plans are reproducible."""
    world = setting.env if isinstance(setting.env, str) else id(setting.env)
    agent_key = setting.planner, setting.prior, type(setting.rewards), setting.discount, setting.objective
    key = repr((world, *agent_key))
    if key not in _warm:
        env = new_world(setting.env)
        agent = new_agent(setting, env)
        plan = agent.plan(env.reset(seed=0))
        simulate(agent, env, steps=2, seed=0)
        agent.planner.warm_up(agent.memory, agent.belief, env.reset(seed=0), agent.planner.random(agent.rng))
        _warm[key] = plan.reproducible
    return _warm[key]
