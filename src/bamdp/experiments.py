"""Planners compared and tuned in one environment: the laboratory's studies, by a call.

``bamdp compare`` and ``bamdp tune`` make their studies here, too, so that the command line and Python give the same
numbers. What comes out prints as a table, plots, and turns into a pandas DataFrame.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks
from bamdp._progress import growing_bar
from bamdp.agent import Agent
from bamdp.beliefs.base import Prior, RewardModel
from bamdp.envs.registry import new_world
from bamdp.lab.collect import collect_results
from bamdp.lab.comparisons import Group, groups
from bamdp.lab.figures import looks
from bamdp.lab.figures.parameters import draw_ablation, draw_heat_map
from bamdp.lab.figures.style import drawing_axes
from bamdp.lab.reading import make_study
from bamdp.lab.results import EVALUATE, TUNE, Results, Sample, comparable_results, differing_parameters
from bamdp.lab.runner import run_study
from bamdp.lab.store import Store
from bamdp.lab.study import Study, planner_parameters, prior_spec
from bamdp.lab.tables import evaluation
from bamdp.lab.tables.table import ResultTable, to_html, to_text
from bamdp.lab.tables.tuning import tried_configurations
from bamdp.planners.base import Planner
from bamdp.plot.curves import learning_curve, returns
from bamdp.registry import label, make_planner, make_rewards, text_of
from bamdp.simulation import new_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

T = TypeVar("T")
MOST_ROWS = 20  # configurations in the table of a tuning


# What comes out


@dataclass(frozen=True, eq=False)
class ExperimentResult(ABC):
    """The results of a study of one environment, which print as tables."""

    study: Study
    results: Results

    @property
    def environment(self) -> str:
        """What the environment is called."""
        return self.study.environments[0].label

    @property
    @abstractmethod
    def tables(self) -> tuple[ResultTable, ...]:
        """The tables that are printed."""

    def __repr__(self) -> str:
        return to_text(self.tables)

    def _repr_html_(self) -> str:
        return "".join(to_html(table) for table in self.tables)


class ComparisonResult(ExperimentResult):
    """What :func:`compare` returns: it prints as a table, plots, and turns into a DataFrame.

    ``results`` is what the laboratory knows of it: tables, figures and tests of :mod:`bamdp.lab` take it.
    """

    @property
    def tables(self) -> tuple[ResultTable, ...]:
        """A summary of every planner, its episodes where there are any, and its difference to the best."""
        complete, label = comparable_results(self.results), self.environment
        pairs = evaluation.against_best(complete, label) if len(self.study.cells) > 1 else ()
        summaries, episodes = evaluation.summaries(complete, label), evaluation.episodes(complete, label)
        return (*summaries, *episodes, *evaluation.unfinished(self.results), *pairs)

    @property
    def totals(self) -> dict[str, NDArray[np.float64]]:
        """The total rewards [R] of each planner, by label."""
        return {name: sample.totals for name, sample in self._group.named.items()}

    @property
    def rewards(self) -> dict[str, NDArray[np.float64]]:
        """The rewards [R, T] of each planner, by label."""
        return {name: sample.traces() for name, sample in self._group.named.items()}

    @property
    def optimum(self) -> float | None:
        """The expected total of an optimal policy; None where the model is not known."""
        known = self._group.ceilings
        return None if known is None else known.optimum

    @property
    def best(self) -> str:
        """The label of the planner with the highest mean total; of returns, if all totals are the same."""
        return self._group.ranked[0]

    def plot(self, *, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the learning curves, as :func:`bamdp.plot.learning_curve` does; its options can be given.

        Where every step pays the same, the returns of episodes are drawn, by :func:`bamdp.plot.returns`.
        :func:`bamdp.plot.comparison` draws the totals.
        """
        group = self._group
        if group.returns is not None:
            runs = {name: found.runs for name, sample in group.named.items() if (found := sample.episodes())}
            return returns(runs, ax=ax, **({"title": self.environment} | options))
        known = None if group.ceilings is None else group.ceilings.best_per_step(group.horizon)
        return learning_curve(
            self.rewards, ax=ax, **({"optimum": known, "title": self.environment} | options)
        )

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each run of each planner; pandas must be installed."""
        named = self._group.named.items()
        return new_frame(
            {
                "planner": [name for name, sample in named for _ in range(sample.runs)],
                "run": np.concatenate([sample.replicates for _, sample in named]),
                "total_reward": np.concatenate([sample.totals for _, sample in named]),
                "ms_per_step": np.concatenate([sample.ms_per_step for _, sample in named]),
            }
        )

    @property
    def _group(self) -> Group:
        return groups(comparable_results(self.results))[0]


class TuningResult(ExperimentResult):
    """What :func:`tune` returns: the configurations that were tried, and the chosen one.

    ``results`` is what the laboratory knows of it: tables, figures and tests of :mod:`bamdp.lab` take it.
    """

    @property
    def tables(self) -> tuple[ResultTable, ...]:
        """The configurations, the best ones first, and the evaluation of the chosen one if there was any."""
        algorithm = self.study.cells[0].algorithm
        tried = tried_configurations(self.results, self.environment, algorithm).first_rows(MOST_ROWS)
        return (tried, *(evaluation.summaries(self.results, self.environment) if self.study.runs else ()))

    @property
    def chosen(self) -> dict[str, Any]:
        """The chosen configuration: the planner's parameters, prior, discount."""
        chosen = next((dict(sample.configuration) for sample in self.results.samples if sample.chosen), None)
        if chosen is None:
            raise ValueError("nothing was chosen: every configuration failed, or took too long")
        return chosen

    @property
    def planner(self) -> Planner:
        """The planner with the chosen parameters."""
        return make_planner(self.study.cells[0].planner, planner_parameters(self.chosen))

    @property
    def prior(self) -> Prior | str:
        """The chosen prior, as text if it has one."""
        spec = prior_spec(self.chosen)
        return spec if isinstance(spec, Prior) else str(spec)

    @property
    def discount(self) -> float | str:
        """The chosen discount."""
        return self.chosen["discount"]

    def agent(self, env: Any = None, *, seed: int | None = None) -> Agent:
        """Make an agent with the chosen parameters that has seen nothing yet, for the environment or another."""
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
        """Draw the mean total reward in tuning over one or two parameters; by default the first two that vary."""
        samples = self.results.select(TUNE)
        varied = differing_parameters(samples)
        for name in parameters:
            _checks.one_of(name, "parameter", varied)
        shown = parameters or varied[:2]
        if len(shown) > 2:
            raise ValueError(f"a picture has one or two parameters, got {len(shown)}")
        with drawing_axes(ax) as axes:
            if len(shown) == 2:
                draw_heat_map(axes, samples, (shown[0], shown[1]))
            else:
                draw_ablation(axes, samples, shown[0], looks([samples[0].algorithm]))
        return axes

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each configuration and number of steps; pandas must be installed."""
        samples: Sequence[Sample] = self.results.select(TUNE)
        keys = dict.fromkeys(key for sample in samples for key in sample.configuration)
        return new_frame(
            {
                **{key: [sample.configuration.get(key) for sample in samples] for key in keys},
                "steps": [sample.horizon for sample in samples],
                "runs": [sample.runs for sample in samples],
                "total_reward": [sample.totals.mean() if sample.runs else np.nan for sample in samples],
                "ms_per_step": [sample.ms_per_step.mean() if sample.runs else np.nan for sample in samples],
                "chosen": [sample.chosen for sample in samples],
            }
        )


# Studies of one environment


def comparison_study(env: Any, planners: Any, *, runs: int, prior: Prior | str | None, **rest: Any) -> Study:
    """Return the study that compares planners in one environment; ``rest`` as in :func:`environment_study`."""
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
    """Return the study that tunes a planner in one environment; ``rest`` as in :func:`environment_study`."""
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
    """Return the study of one environment; ``more`` are further tables of a study's file."""
    world = new_world(env)
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
    """Return the text of a planner or prior; what has none, such as one of a class of your own, as it is."""
    return text_of(thing) or thing if isinstance(thing, (Planner, Prior)) else thing


def _label_of(planner: Planner | str) -> str:
    return planner if isinstance(planner, str) else label(planner)


def _check_storable(study: Study) -> None:
    """Refuse to keep runs of what is code of the caller's, which may be other code the next time."""
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


# By a call


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

    The same as ``bamdp compare`` on the command line, which has the same results.

    Parameters
    ----------
    env
        The environment: a name, an environment of this library or of Gymnasium (each run has a copy of it), or a
        function that makes one.
    planners
        Planners as objects or as text; in a dictionary by labels of your own.
    runs
        Replicates of each.
    steps
        Steps of a run; by default the environment's.
    prior, rewards, discount, objective
        Of all agents, as :meth:`bamdp.Agent.for_env` takes them. Where none is named, each planner has its own.
    seed
        The seed of all runs.
    jobs
        The number of processes, on which results do not depend.
    store
        A file in which runs are kept, so that the next comparison does only what is missing. By default none are
        kept. It is for environments that have a name.
    progress
        Whether to show a progress bar on standard error.

    Examples
    --------
    >>> found = compare("chain", ["thompson", "bayes-greedy"], runs=4, steps=100)
    >>> sorted(found.totals), found.best in found.totals
    (['bayes-greedy', 'thompson'], True)
    """
    rest = {"steps": steps, "rewards": rewards, "discount": discount, "objective": objective, "seed": seed}
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

    The same as ``bamdp tune`` on the command line, which has the same results.

    Parameters
    ----------
    env
        The environment, as in :func:`compare`.
    planner
        The planner, with the parameters that are not to be chosen.
    grid
        Values to choose from: of the planner's parameters, ``generator.depth``, ``prior``, ``prior.beta``,
        ``discount``.
    runs
        Runs of a configuration in tuning, at most.
    evaluate
        Runs of the chosen configuration, with other seeds.
    method
        ``"grid"``, all of it; or ``"halving"``, successive halving.
    configurations
        Draw so many of the grid; by default all.
    budget, screening
        Of halving: processor seconds, and the steps of a run before the last round.
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
    """Run what is missing of a study and return its results; without a store, in a folder that goes with them."""
    if store is not None:
        _check_storable(study)
    with ExitStack() as folder:
        if store is None:
            made = TemporaryDirectory(prefix="bamdp-", ignore_cleanup_errors=True)
            store = Path(folder.enter_context(made), "runs.sqlite")
        with Store(Path(store)) as runs, growing_bar(study.title, progress) as (done, more):
            run_study(study, runs, jobs=_checks.integer(jobs, "jobs"), steps=done, more=more)
            found = kind(study, collect_results(study, runs))
        weakref.finalize(found, folder.pop_all().close)
    for sample in found.results.select(EVALUATE):  # a table of nothing but failures would be empty
        if sample.failures and not sample.runs:
            raise RuntimeError(f"{sample.algorithm}: {sample.failures[0]}")
    return found
