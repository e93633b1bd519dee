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
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pandas import DataFrame

from bamdp import _checks
from bamdp.agent import Agent
from bamdp.beliefs.base import Prior, RewardModel
from bamdp.envs.registry import new_world
from bamdp.lab import tables
from bamdp.lab.comparisons import Group, groups
from bamdp.lab.report import draw_learning, draw_parameters
from bamdp.lab.results import Results, batch_results, collect_results, rewards
from bamdp.lab.runner import run_study
from bamdp.lab.space import planner_parameters, prior_spec, varied_keys
from bamdp.lab.store import EVALUATE, TUNE, Store
from bamdp.lab.study import Study, make_study
from bamdp.lab.tables import Table
from bamdp.planners.base import Planner
from bamdp.plot.style import drawing_axes
from bamdp.processes import growing_bar
from bamdp.registry import label, make_planner, make_rewards, text_of
from bamdp.runs import make_setting, new_agent, run_many

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Results


class Result:
    """Result of a comparison or of tuning, which prints as tables."""

    def tables(self, full: bool = False) -> list[Table]:
        """Return the printed tables; with ``full``, include all statistics."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self.tables()))

    def _repr_html_(self) -> str:
        return "".join(table.to_html() for table in self.tables())


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonResult(Result):
    """The result of :func:`compare`."""

    group: Group  # all runs, with their statistics and paired tests

    def tables(self, full: bool = False) -> list[Table]:
        """Return a table with one row per planner; with ``full``, include all statistics and pairwise comparisons."""
        group = self.group
        more = [tables.statistics(group), *([tables.pairs(group)] if len(group.values) > 1 else [])]
        return [tables.comparison(group), *(more if full else [])]

    @property
    def totals(self) -> dict[str, NDArray[np.float64]]:
        """The total rewards [R] of each planner, by label."""
        return {name: runs.total.to_numpy() for name, runs in self._finished.items()}

    @property
    def rewards(self) -> dict[str, NDArray[np.float64]]:
        """The rewards [R, T] of each planner, by label."""
        return {name: rewards(runs) for name, runs in self._finished.items()}

    @property
    def optimum(self) -> float | None:
        """The expected total of an optimal policy; None if the model is unknown."""
        return None if self.group.ceilings is None else self.group.ceilings.optimum

    @property
    def best(self) -> str:
        """The label of the planner with the highest mean total, or the highest mean return if all totals are equal."""
        return self.group.best

    def plot(self, *, ax: Axes | None = None, **options: Any) -> Axes:
        """Plot the learning curves, with the options of :func:`bamdp.plot.learning_curve`.

        If all totals are equal, plot episode returns with :func:`bamdp.plot.returns` instead. Use
        :func:`bamdp.plot.comparison` to plot totals.
        """
        return draw_learning(self.group, ax, **options)

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with one row per planner and run."""
        columns = {"label": "planner", "replicate": "run", "total": "total_reward"}
        names = [*columns, "episodes", "mean_return", "success", "ms_per_step", "prior", "discount"]
        runs = self.group.runs
        return runs[runs.failure == ""][names].rename(columns=columns).reset_index(drop=True)

    @property
    def _finished(self) -> dict[str, DataFrame]:
        runs = self.group.runs
        return {name: runs[(runs.label == name) & (runs.failure == "")] for name in self.group.values}


@dataclass(frozen=True, eq=False, repr=False)
class TuningResult(Result):
    """The result of :func:`tune`: all tested configurations and the chosen one."""

    study: Study
    results: Results

    def tables(self, full: bool = False) -> list[Table]:
        """Return the configurations, best first, and the evaluation of the chosen one if available."""
        cell = self.study.cells[0]
        shown = tables.tried(self.results, cell.environment.label, cell.algorithm)
        return [shown, *map(tables.comparison, groups(self.results))]

    @property
    def chosen(self) -> dict[str, Any]:
        """The chosen planner parameters, prior and discount."""
        chosen = self.results.runs.loc[self.results.runs.chosen, "configuration"]
        if chosen.empty:
            raise ValueError("no configuration was chosen: each failed or exceeded the time limit")
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
        options = {name: getattr(here, name) for name in ("steps", "rewards", "objective")}
        options |= {"prior": self.prior, "discount": self.discount}
        setting = make_setting(here.env if env is None else env, self.planner, **options)
        return new_agent(setting, new_world(setting.env), seed)

    def plot(self, *parameters: str, ax: Axes | None = None) -> Axes:
        """Plot mean total reward in tuning against one or two parameters; by default the first two that vary."""
        runs = self.results.select(TUNE)
        varied = varied_keys(runs.configuration)
        for name in parameters:
            _checks.one_of(name, "parameter", varied)
        with drawing_axes(ax) as axes:
            draw_parameters(runs, parameters[:2] or varied[:2], ax=axes)
        return axes

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with one row per configuration."""
        found = tables.tried_frame(self.results.select(TUNE)).reset_index(drop=True)
        found.columns = found.columns.str.replace(r"[ /]", "_", regex=True)
        parameters = DataFrame(found.configuration.tolist(), dtype=object)
        columns = {"mean": "total_reward", "ms_step": "ms_per_step"}
        return parameters.join(found.drop(columns="configuration").rename(columns=columns))


# Studies of one environment


def named_planners(planners: Any) -> dict[str, Any]:
    """Return planners by label, as text if possible."""
    if isinstance(planners, Mapping):
        named = {str(name): _as_text(planner) for name, planner in planners.items()}
    else:
        specs = list(map(_as_text, [planners] if isinstance(planners, (str, Planner)) else planners))
        labels = [spec if isinstance(spec, str) else label(spec) for spec in specs]
        named = dict(zip(labels, specs))
        for name in named:
            if labels.count(name) > 1:
                raise ValueError(
                    f"{name} is given twice; drop one, or give it other parameters: {name}:key=value"
                )
    if not named:
        raise ValueError("there is nothing to compare; name planners, such as ['dss-pi', 'thompson']")
    return named


def comparison_study(env: Any, planners: Any, *, runs: int, **rest: Any) -> Study:
    """Create a study that compares planners in one environment; ``rest`` as in :func:`environment_study`."""
    algorithms = {name: {"planner": planner} for name, planner in named_planners(planners).items()}
    return environment_study(env, algorithms, runs=_checks.integer(runs, "runs"), **rest)


def tuning_study(
    env: Any,
    planner: Planner | str,
    grid: Mapping[str, Iterable[Any]],
    *,
    evaluate: int,
    tuning: Mapping[str, Any],
    **rest: Any,
) -> Study:
    """Create a study that tunes a planner in one environment; ``rest`` as in :func:`environment_study`."""
    if not isinstance(grid, Mapping):
        raise TypeError(f"grid must be a dictionary such as {{'n_steps': [25, 50]}}, got {grid!r}")
    ((name, spec),) = named_planners([planner]).items()
    algorithms = {name: {"planner": spec, **{key: _value_list(key, values) for key, values in grid.items()}}}
    study = environment_study(env, algorithms, runs=evaluate, tuning=_given(tuning), **rest)
    if len(study.cells[0].configurations) < 2:
        raise ValueError("there is nothing to choose; give several values, such as n_steps=25,50,100")
    return study


def environment_study(
    env: Any,
    algorithms: Mapping[str, Any],
    *,
    prior: Prior | str | None,
    discount: float | str | None,
    steps: int | None,
    rewards: RewardModel | ArrayLike | str | None,
    **more: Any,
) -> Study:
    """Create a study of one environment; ``more`` contains additional entries of the study file."""
    world = new_world(env)
    model = rewards if rewards is None or isinstance(rewards, str) else make_rewards(rewards)
    own = {"steps": steps, "rewards": model, "env": None if isinstance(env, str) else env}
    return make_study(
        {
            "title": f"{world.name}: {', '.join(algorithms)}",
            "environments": {env if isinstance(env, str) else world.name: _given(own)},
            "algorithms": algorithms,
            **_given({"prior": _as_text(prior), "discount": discount}),
            **more,
        }
    )


def comparison(results: Results) -> ComparisonResult:
    """Return the comparison of planners in the only environment of a study."""
    found = groups(results)
    if not found:
        raise RuntimeError(f"no run was completed: {results.runs.failure.iloc[0]}")
    return ComparisonResult(found[0])


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _as_text(thing: Any) -> Any:
    """Return a planner or prior as text, or unchanged if it has no text form, as for unregistered classes."""
    return text_of(thing) or thing if isinstance(thing, (Planner, Prior)) else thing


def _check_storable(study: Study) -> None:
    """Refuse to store runs that use the caller's own code, which may change between calls."""
    own = [] if isinstance(study.environments[0].env, str) else ["the environment"]
    for cell in study.cells:
        for thing in (cell.planner, *(one["prior"] for one in cell.configurations)):
            if not isinstance(thing, str) and not type(thing).__module__.startswith("bamdp."):
                own.append(type(thing).__name__)
    if own:
        raise ValueError(
            f"runs are stored by names, and {own[0]} has none; name an environment by gym:module:Name-v0 and a class "
            "by bamdp.register, or leave store out"
        )


def _value_list(key: str, values: Any) -> list[Any]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{key} must have several values to choose from, such as [25, 50], got {values!r}")
    return [value.item() if isinstance(value, np.generic) else _as_text(value) for value in values]


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
) -> ComparisonResult:
    """Compare planners in one environment on common random numbers, with intervals and paired tests.

    Equivalent to the command ``bamdp compare``, with the same results.

    Parameters
    ----------
    env
        A name, an environment from this library or Gymnasium (copied for each run), or a function that creates one.
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
    options: dict[str, Any] = {"runs": runs, "prior": prior, "rewards": rewards, "discount": discount}
    options |= {"steps": steps, "objective": objective, "seed": seed}
    if new_world(env).system is None:
        study = comparison_study(env, planners, **options)
        return comparison(_run(study, store, jobs, progress))
    if store is not None:
        raise ValueError("runs with continuous observations are not stored; leave store out")
    options |= {"jobs": jobs, "progress": progress}
    batches = {name: run_many(env, one, **options) for name, one in named_planners(planners).items()}
    return comparison(batch_results(batches))


def tune(
    env: Any,
    planner: Planner | str,
    grid: Mapping[str, Iterable[Any]],
    *,
    runs: int = 10,
    evaluate: int = 0,
    method: str = "grid",
    configurations: int | None = None,
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
    steps, prior, rewards, discount, objective, seed, jobs, store, progress
        As in :func:`compare`.

    Examples
    --------
    >>> found = tune("chain", "thompson", {"prior.beta": [2, 6], "resample": ["step", 5]}, runs=2, steps=50)
    >>> len(found.to_frame()), sorted(found.chosen)
    (4, ['discount', 'prior', 'prior.alpha', 'prior.beta', 'resample'])
    """
    tuning = {"method": method, "runs": runs, "configurations": configurations}
    options: dict[str, Any] = {"prior": prior, "rewards": rewards, "discount": discount, "steps": steps}
    options |= {"objective": objective, "seed": seed, "evaluate": evaluate, "tuning": tuning}
    study = tuning_study(env, planner, grid, **options)
    return TuningResult(study, _run(study, store, jobs, progress))


def _run(study: Study, store: str | Path | None, jobs: int, progress: bool) -> Results:
    """Run the missing part of a study and return the results; use a temporary folder if there is no store."""
    if store is not None:
        _check_storable(study)
    with ExitStack() as stack:
        if store is None:
            store = Path(stack.enter_context(TemporaryDirectory(prefix="bamdp-")), "runs.sqlite")
        runs = stack.enter_context(Store(store))
        done, more = stack.enter_context(growing_bar(study.title, progress))
        run_study(study, runs, jobs=_checks.integer(jobs, "jobs"), steps=done, more=more)
        results = collect_results(study, runs)
    for name, rows in results.select(EVALUATE).groupby("label", sort=False):
        if (rows.failure != "").all():  # all runs failed, so the table would be empty
            raise RuntimeError(f"{name}: {rows.failure.iloc[0]}")
    return results
