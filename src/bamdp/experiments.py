"""Functions that compare and tune planners in one environment by running laboratory studies.

The commands ``bamdp compare`` and ``bamdp tune`` use the same code, so the command line and Python produce the same
numbers. Results can be printed as a table, plotted and converted to a pandas DataFrame.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks
from bamdp.agent import Agent
from bamdp.beliefs.base import Prior, RewardModel
from bamdp.envs.registry import new_world
from bamdp.lab import tables
from bamdp.lab.comparisons import Group, groups
from bamdp.lab.reading import make_study
from bamdp.lab.report import draw_learning, draw_parameters
from bamdp.lab.results import Results, collect_results, rewards
from bamdp.lab.runner import run_study
from bamdp.lab.store import Store
from bamdp.lab.study import Study, planner_parameters, prior_spec, varied_keys
from bamdp.lab.tables import Table
from bamdp.lab.units import EVALUATE, TUNE
from bamdp.planners.base import Planner
from bamdp.plot.curves import comparison
from bamdp.plot.style import drawing_axes
from bamdp.processes import growing_bar
from bamdp.registry import label, make_planner, make_rewards, text_of
from bamdp.runs import Batch, run_many

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

T = TypeVar("T")


# Results


@dataclass(frozen=True, eq=False)
class ExperimentResult:
    """Results of a study of one environment, printed as a table."""

    study: Study
    results: Results

    @property
    def environment(self) -> str:
        """The name of the environment."""
        return self.study.environments[0].label

    def tables(self, full: bool = False) -> list[Table]:
        """Return the printed table; with ``full``, include all statistics."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self.tables()))

    def _repr_html_(self) -> str:
        return "".join(table.to_html() for table in self.tables())


class ComparisonResult(ExperimentResult):
    """The result of :func:`compare`."""

    def tables(self, full: bool = False) -> list[Table]:
        """Return a table with one row per planner; with ``full``, include all statistics and pairwise comparisons."""
        group = self._group
        more = [tables.statistics(group), *([tables.pairs(group)] if len(group.values) > 1 else [])]
        return [tables.comparison(group), *(more if full else [])]

    @property
    def totals(self) -> dict[str, NDArray[np.float64]]:
        """The total rewards [R] of each planner, by label."""
        return {name: found.total.to_numpy() for name, found in self._finished.items()}

    @property
    def rewards(self) -> dict[str, NDArray[np.float64]]:
        """The rewards [R, T] of each planner, by label."""
        return {name: rewards(found) for name, found in self._finished.items()}

    @property
    def optimum(self) -> float | None:
        """The expected total of an optimal policy; None if the model is unknown."""
        known = self._group.ceilings
        return None if known is None else known.optimum

    @property
    def best(self) -> str:
        """The label of the planner with the highest mean total, or the highest mean return if all totals are equal."""
        return self._group.best

    def plot(self, *, ax: Axes | None = None, **options: Any) -> Axes:
        """Plot the learning curves, with the options of :func:`bamdp.plot.learning_curve`.

        If all totals are equal, plot episode returns with :func:`bamdp.plot.returns` instead. Use
        :func:`bamdp.plot.comparison` to plot totals.
        """
        return draw_learning(self._group, ax, **options)

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with one row per planner and run."""
        columns = {"label": "planner", "replicate": "run", "total": "total_reward"}
        names = [*columns, "episodes", "mean_return", "success", "ms_per_step", "prior", "discount"]
        runs = self._group.runs
        return runs[runs.failure == ""][names].rename(columns=columns).reset_index(drop=True)

    @property
    def _group(self) -> Group:
        return groups(self.results)[0]

    @property
    def _finished(self) -> dict[str, DataFrame]:
        runs = self._group.runs
        return {name: runs[(runs.label == name) & (runs.failure == "")] for name in self._group.values}


@dataclass(frozen=True, eq=False)
class ContinuousComparison:
    """The result of :func:`compare` for continuous observations: the runs of each planner, by label."""

    batches: dict[str, Batch]

    @property
    def totals(self) -> dict[str, NDArray[np.float64]]:
        """The total rewards [R] of each planner, by label."""
        return {name: batch.totals for name, batch in self.batches.items()}

    @property
    def best(self) -> str:
        """The label of the planner with the highest mean total."""
        return max(self.batches, key=lambda name: self.batches[name].mean)

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with one row per planner and run."""
        import pandas  # imported only when needed

        frames = [batch.to_frame().assign(planner=name) for name, batch in self.batches.items()]
        return pandas.concat(frames, ignore_index=True)

    def plot(self, *, ax: Axes | None = None, **options: Any) -> Axes:
        """Plot the totals, with the options of :func:`bamdp.plot.comparison`."""
        return comparison(self, ax=ax, **options)

    def __repr__(self) -> str:
        lines = [f"{'planner':<24}{'total reward':>14}{'s.e.':>10}{'ms per step':>14}"]
        for name, batch in sorted(self.batches.items(), key=lambda entry: -entry[1].mean):
            numbers = f"{batch.mean:>14.4g}{batch.standard_error:>10.2g}{batch.ms_per_step:>14.3g}"
            lines.append(f"{name:<24}{numbers}")
        return "\n".join(lines)


class TuningResult(ExperimentResult):
    """The result of :func:`tune`: all tested configurations and the chosen one."""

    def tables(self, full: bool = False) -> list[Table]:
        """Return the configurations, best first, and the evaluation of the chosen one if available."""
        shown = tables.tried(self.results, self.environment, self.study.cells[0].algorithm)
        return [shown, *map(tables.comparison, groups(self.results))]

    @property
    def chosen(self) -> dict[str, Any]:
        """The chosen planner parameters, prior and discount."""
        chosen = self.results.runs.loc[self.results.runs.chosen, "configuration"]
        if chosen.empty:
            raise ValueError("nothing was chosen: every configuration failed, or took too long")
        return dict(chosen.iloc[0])

    @property
    def planner(self) -> Planner:
        """The planner with the chosen parameters."""
        return make_planner(self.study.cells[0].planner, planner_parameters(self.chosen))

    @property
    def prior(self) -> Prior | str:
        """The chosen prior, as text if possible."""
        spec = prior_spec(self.chosen)
        return spec if isinstance(spec, Prior) else str(spec)

    @property
    def discount(self) -> float | str:
        """The chosen discount."""
        return self.chosen["discount"]

    def agent(self, env: Any = None, *, seed: int | None = None) -> Agent:
        """Create a new agent with the chosen parameters for this or another environment."""
        here = self.study.environments[0]
        return Agent.for_env(
            new_world(here.env) if env is None else env,
            self.planner,
            prior=self.prior,
            rewards=here.rewards,
            objective=here.objective,
            seed=seed,
            discount=self.discount,
            horizon=here.steps if isinstance(self.discount, str) else None,
        )

    def plot(self, *parameters: str, ax: Axes | None = None) -> Axes:
        """Plot mean total reward in tuning against one or two parameters; by default the first two that vary."""
        runs = self.results.select(TUNE)
        varied = varied_keys(runs.configuration)
        for name in parameters:
            _checks.one_of(name, "parameter", varied)
        shown = list(parameters or varied[:2])
        if len(shown) > 2:
            raise ValueError(f"a figure has one or two parameters, got {len(shown)}")
        with drawing_axes(ax) as axes:
            draw_parameters(runs, shown, ax=axes)
        return axes

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with one row per configuration."""
        found = tables.tried_frame(self.results.select(TUNE)).reset_index(drop=True)
        names = {"mean": "total_reward", "ms/step": "ms_per_step"}
        frame = found.drop(columns="configuration").rename(columns=names)
        frame.columns = frame.columns.str.replace(" ", "_")
        keys = dict.fromkeys(key for one in found.configuration for key in one)
        for place, key in enumerate(keys):
            frame.insert(place, key, [one.get(key) for one in found.configuration])
        return frame


# Studies of one environment


def comparison_study(env: Any, planners: Any, *, runs: int, prior: Prior | str | None, **rest: Any) -> Study:
    """Create a study that compares planners in one environment; ``rest`` as in :func:`environment_study`."""
    if isinstance(planners, (str, Planner)):
        planners = [planners]
    named = planners.items() if isinstance(planners, Mapping) else [(None, planner) for planner in planners]
    specs = [_as_text(planner) for _, planner in named]
    labels = [_label_of(spec) if name is None else str(name) for (name, _), spec in zip(named, specs)]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} is given twice; drop one, or give it other parameters: {twice}:key=value")
    algorithms = {label: {"planner": spec} for label, spec in zip(labels, specs)}
    if not algorithms:
        raise ValueError("there is nothing to compare; name planners, such as ['dss-pi', 'thompson']")
    return environment_study(env, algorithms, runs=_checks.integer(runs, "runs"), prior=prior, **rest)


def tuning_study(
    env: Any,
    planner: Planner | str,
    grid: Mapping[str, Iterable[Any]],
    *,
    evaluate: int,
    prior: Prior | str | None,
    tuning: Mapping[str, Any],
    **rest: Any,
) -> Study:
    """Create a study that tunes a planner in one environment; ``rest`` as in :func:`environment_study`."""
    spec = _as_text(planner)
    if not isinstance(grid, Mapping):
        raise TypeError(f"grid must be a dictionary such as {{'n_steps': [25, 50]}}, got {grid!r}")
    space = {key: _value_list(key, values) for key, values in grid.items()}
    given = {name: value for name, value in tuning.items() if value is not None}
    algorithms = {_label_of(spec): {"planner": spec, **space}}
    study = environment_study(env, algorithms, runs=evaluate, prior=prior, tuning=given, **rest)
    if len(study.cells[0].configurations) < 2:
        raise ValueError("there is nothing to choose; give several values, such as n_steps=25,50,100")
    return study


def environment_study(
    env: Any,
    algorithms: Mapping[str, Any],
    *,
    runs: int,
    prior: Prior | str | None,
    discount: float | str | None,
    objective: str,
    seed: int,
    steps: int | None = None,
    rewards: RewardModel | ArrayLike | str | None = None,
    **more: Any,
) -> Study:
    """Create a study of one environment; ``more`` contains additional tables of the study file."""
    world = new_world(env)
    if world.system is not None:
        raise ValueError(
            f"{world.name} has continuous observations, which studies do not take; bamdp.compare in Python does, or "
            "make them discrete: --bins 8, bamdp.gym.Discretize(env, bins=8)"
        )
    name = env if isinstance(env, str) else world.name
    model = rewards if rewards is None or isinstance(rewards, str) else make_rewards(rewards)
    given = {"steps": steps, "rewards": model, "env": None if isinstance(env, str) else env}
    shared = {"prior": None if prior is None else _as_text(prior), "discount": discount}
    return make_study(
        {
            "title": f"{world.name}: {', '.join(algorithms)}",
            "runs": runs,
            "seed": seed,
            **{key: value for key, value in shared.items() if value is not None},
            "objective": objective,
            "environments": {name: {key: value for key, value in given.items() if value is not None}},
            "algorithms": algorithms,
            **more,
        }
    )


def _as_text(thing: T) -> T | str:
    """Return a planner or prior as text, or unchanged if it has no text form, as for unregistered classes."""
    return text_of(thing) or thing if isinstance(thing, (Planner, Prior)) else thing


def _label_of(planner: Planner | str) -> str:
    return planner if isinstance(planner, str) else label(planner)


def _check_storable(study: Study) -> None:
    """Refuse to store runs that use the caller's own code, which may change between calls."""
    if not isinstance(study.environments[0].env, str):
        raise ValueError(
            "runs are kept by the name of their environment; register yours with Gymnasium and give "
            "gym:module:Name-v0, or leave store out"
        )
    for cell in study.cells:
        for thing in (cell.planner, *(one["prior"] for one in cell.configurations)):
            if not isinstance(thing, str) and not type(thing).__module__.startswith("bamdp."):
                raise ValueError(
                    f"runs are kept by names, and {type(thing).__name__} has none; give it one with bamdp.register, "
                    "or leave store out"
                )


def _value_list(key: str, values: Any) -> list[Any]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{key} must have several values to choose from, such as [25, 50], got {values!r}")
    values = [_as_text(value) if isinstance(value, Prior) else value for value in values]
    return [value.item() if isinstance(value, np.generic) else value for value in values]


# Public functions


def compare(
    env: Any,
    planners: Iterable[Planner | str] | Mapping[str, Planner | str],
    *,
    runs: int = 10,
    steps: int | None = None,
    prior: Prior | str | None = None,
    rewards: RewardModel | ArrayLike | str | None = None,
    discount: float | str | None = None,
    objective: str = "episode",
    seed: int = 0,
    jobs: int = 1,
    store: str | Path | None = None,
    progress: bool = False,
) -> ComparisonResult | ContinuousComparison:
    """Compare planners in one environment on common random numbers, with intervals and paired tests.

    Equivalent to the command ``bamdp compare``, with the same results. Studies do not support continuous observations;
    for these, the result is a :class:`ContinuousComparison` without tests.

    Parameters
    ----------
    env
        A name, an environment of this library or Gymnasium (copied for each run), or a function that creates one.
    planners
        Planners as objects or text; use a dictionary to set custom labels.
    runs
        Number of replicates per planner.
    steps
        Steps per run; by default the environment's horizon.
    prior, rewards, discount, objective
        Settings of all agents, as in :meth:`bamdp.Agent.for_env`. Each planner uses its own defaults if omitted.
    seed
        Seed of all runs.
    jobs
        Number of processes; it does not affect the results.
    store
        File in which to store completed runs, so that later comparisons compute only the missing ones. By default, runs
        are not stored. Only named environments are supported.
    progress
        Whether to show a progress bar on standard error.

    Examples
    --------
    >>> found = compare("chain", ["thompson", "bayes-greedy"], runs=4, steps=100)
    >>> sorted(found.totals), found.best in found.totals
    (['bayes-greedy', 'thompson'], True)
    """
    rest = {"steps": steps, "rewards": rewards, "discount": discount, "objective": objective, "seed": seed}
    if new_world(env).system is not None:
        if store is not None:
            raise ValueError("runs with continuous observations are not kept in a store; leave store= out")
        options: dict[str, Any] = {"runs": runs, "prior": prior, "jobs": jobs, "progress": progress, **rest}
        named = planners if isinstance(planners, Mapping) else {_label_of(one): one for one in planners}
        if not named:
            raise ValueError("there is nothing to compare; name a planner")
        return ContinuousComparison({name: run_many(env, one, **options) for name, one in named.items()})
    study = comparison_study(env, planners, runs=runs, prior=prior, **rest)
    return _run(ComparisonResult, study, store, jobs, progress)


def tune(
    env: Any,
    planner: Planner | str,
    grid: Mapping[str, Iterable[Any]],
    *,
    runs: int = 10,
    evaluate: int = 0,
    method: str = "grid",
    configurations: int | None = None,
    budget: float | None = None,
    screening: int | None = None,
    steps: int | None = None,
    prior: Prior | str | None = None,
    rewards: RewardModel | ArrayLike | str | None = None,
    discount: float | str | None = None,
    objective: str = "episode",
    seed: int = 0,
    jobs: int = 1,
    store: str | Path | None = None,
    progress: bool = False,
) -> TuningResult:
    """Choose the parameters of a planner in one environment.

    Equivalent to the command ``bamdp tune``, with the same results.

    Parameters
    ----------
    env
        The environment, as in :func:`compare`.
    planner
        The planner, including any parameters that are not tuned.
    grid
        Candidate values for the planner's parameters, ``generator.depth``, ``prior``, ``prior.beta`` or ``discount``.
    runs
        Maximum number of tuning runs per configuration.
    evaluate
        Number of evaluation runs of the chosen configuration, with separate seeds.
    method
        ``"grid"`` for a full grid search, or ``"halving"`` for successive halving.
    configurations
        Number of configurations to draw from the grid; by default all.
    budget, screening
        For halving: the budget in processor seconds, and the steps per run before the final round.
    steps, prior, rewards, discount, objective, seed, jobs, store, progress
        As in :func:`compare`.

    Examples
    --------
    >>> found = tune("chain", "thompson", {"prior.beta": [2, 6], "resample": ["step", 5]}, runs=2, steps=50)
    >>> len(found.to_frame()), sorted(found.chosen)
    (4, ['discount', 'prior', 'prior.alpha', 'prior.beta', 'resample'])
    """
    halving = {"budget": budget, "screening": screening}
    tuning = {"method": method, "runs": runs, "configurations": configurations, **halving}
    rest = {"steps": steps, "rewards": rewards, "discount": discount, "objective": objective, "seed": seed}
    study = tuning_study(env, planner, grid, evaluate=evaluate, prior=prior, tuning=tuning, **rest)
    return _run(TuningResult, study, store, jobs, progress)


def _run(kind: Any, study: Study, store: str | Path | None, jobs: int, progress: bool) -> Any:
    """Run the missing part of a study and return the results; use a temporary folder if there is no store."""
    if store is not None:
        _check_storable(study)
    with ExitStack() as stack:
        if store is None:
            store = Path(stack.enter_context(TemporaryDirectory(prefix="bamdp-")), "runs.sqlite")
        runs = stack.enter_context(Store(store))
        done, more = stack.enter_context(growing_bar(study.title, progress))
        run_study(study, runs, jobs=_checks.integer(jobs, "jobs"), steps=done, more=more)
        found = kind(study, collect_results(study, runs))
    for name, rows in found.results.select(EVALUATE).groupby("label", sort=False):
        if (rows.failure != "").all():  # all runs failed, so the table would be empty
            raise RuntimeError(f"{name}: {rows.failure.iloc[0]}")
    return found
