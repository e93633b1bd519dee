"""Figure 3 (Appendix D) of the paper, and more: bad episodes in bsuite's deep sea, of DSS and Bootstrapped DQN.

The study is ``dss2020/figure3``. An episode is *bad* if somewhere on the diagonal, the only way to the treasure, the
step to the left was taken: bsuite's own count. The laboratory keeps the reward of every step, which says which actions
were taken on the diagonal. Where the sea is stochastic, a step to the right may fail, and the rewards do not show
that; but the environment's random numbers are determined by study, environment and replicate, so they are drawn again.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bamdp.envs.deep_sea import DeepSea
from bamdp.envs.registry import make_env
from bamdp.lab.figures import Picture, style
from bamdp.lab.papers.paper_tables import paper_numbers
from bamdp.lab.reading import paper_study
from bamdp.lab.results import EVALUATE, Results, Sample
from bamdp.lab.statistics import band, standard_error, summarise
from bamdp.lab.study import StudyCell
from bamdp.lab.tables.table import (
    NO_VALUE,
    ResultTable,
    TableCell,
    mean_cell,
    number_cell,
    rules_between,
    text_cell,
    value_interval_cell,
)
from bamdp.lab.units import environment_seed, setting_facts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE3 = "dss2020/figure3"
AGENTS = {
    "dss-sparse": "DSS-PI, sparse prior",
    "dss-steps": "DSS-PI, sparse prior, a plan per step",
    "psrl-sparse": "Thompson (PSRL), sparse prior",
    "rmax": "R-max",
    "bdqn": "Bootstrapped DQN",
    "psrl-flat": "Thompson (PSRL), flat prior",
    "dss-flat": "DSS-PI, flat prior",
}
AGENT_COLOURS = dict(zip(AGENTS, (0, 0, 1, 2, 3, 1, 0)))  # agents of one planner share a colour of the style
LINE_STYLES = {"psrl-flat": (0, (4, 1.5)), "dss-flat": (0, (4, 1.5)), "dss-steps": (0, (1, 1))}
CURVE_POINTS = 240
FIGURE_CAPTION = (
    "Total bad episodes against time. Lines are means over runs, bands pointwise 95% bootstrap intervals of the mean; "
    "diamonds are the ends of the paper's curves."
)
COUNT_NOTE = "An episode is bad if the step to the left was taken somewhere on the way to the treasure."


def bad_episodes(
    env: DeepSea, rewards: NDArray[np.float64], seed: np.random.SeedSequence
) -> NDArray[np.bool_]:
    """Return which complete episodes of a run were bad, from the rewards of its steps.

    Parameters
    ----------
    env : DeepSea
    rewards : array [T]
    seed : SeedSequence
        The one that the environment was reset with.
    """
    size, count = env.size, len(rewards) // env.size
    by_row = rewards[: count * size].reshape(count, size)
    failed, noise = np.zeros((count, size), bool), np.zeros(count)
    if env.stochastic_rewards:
        from scipy.special import ndtri

        # Every step takes two uniform numbers: one for the transition, one for the noise of the reward.
        uniforms = np.random.default_rng(seed).random((count, size, 2))
        failed = uniforms[:, :, 0] < 1.0 / size
        noise = ndtri(np.maximum(uniforms[:, -1, 1], 2.0**-54))
    # On the diagonal, a step to the right has a cost and, in the last row, reaches the treasure.
    went_right = by_row < 0.0
    went_right[:, -1] = by_row[:, -1] - noise > 0.5
    on_diagonal = np.ones((count, size), bool)
    on_diagonal[:, 1:] = np.logical_and.accumulate((went_right & ~failed)[:, :-1], axis=1)
    return np.asarray((on_diagonal & ~went_right).any(axis=1), bool)


@lru_cache(maxsize=64)
def cumulative_bad_episodes(sample: Sample, study: str = FIGURE3) -> NDArray[np.int64]:
    """Return the total number of bad episodes after each episode, [runs, episodes], of runs of a shipped study."""
    cell = _study_cell(study, sample.environment, sample.algorithm)
    env = make_env(cell.environment.env)
    assert isinstance(env, DeepSea)
    facts = setting_facts(cell.setting(cell.configurations[0]))
    bad = [
        bad_episodes(env, rewards, environment_seed(facts, EVALUATE, int(replicate)))
        for replicate, rewards in zip(sample.replicates, sample.traces())
    ]
    return np.cumsum(bad, axis=1, dtype=np.int64)


@cache
def _study_cell(study: str, environment: str, algorithm: str) -> StudyCell:
    """Return a cell of a study; its environment and seed are the same in a quick run."""
    cells = paper_study(study).cells
    return next(
        cell for cell in cells if (cell.environment.label, cell.algorithm) == (environment, algorithm)
    )


def total_bad_episodes(sample: Sample, study: str = FIGURE3) -> NDArray[np.int64]:
    """Return the number of bad episodes of each run of a shipped study."""
    return cumulative_bad_episodes(sample, study)[:, -1]


def deep_sea_tables(results: Results) -> list[ResultTable]:
    """Return the total bad episodes as a matrix of agents and environments, and in detail."""
    samples = {(s.environment, s.algorithm): s for s in results.select(EVALUATE) if s.runs}
    return [_matrix(results, samples), _detail(results, samples)] if samples else []


def _matrix(results: Results, samples: dict[tuple[str, str], Sample]) -> ResultTable:
    environments = list(dict.fromkeys(environment for environment, _ in samples))
    rows = []
    for algorithm in (name for name in AGENTS if any(name == other for _, other in samples)):
        cells = [_mean_cell(samples.get((environment, algorithm))) for environment in environments]
        rows.append((text_cell(algorithm), text_cell(AGENTS[algorithm]), *cells))
    runs = [sample.runs for sample in samples.values()]
    return ResultTable(
        "bad_episodes",
        "Total bad episodes, mean ± standard error",
        ("algorithm", "agent", *environments),
        tuple(rows),
        "ll" + "r" * len(environments),
        (COUNT_NOTE, f"{style.runs_range(runs)} per cell."),
        (),
        results.warning,
    )


def _mean_cell(sample: Sample | None) -> TableCell:
    if sample is None:
        return text_cell(NO_VALUE)
    totals = total_bad_episodes(sample)
    return mean_cell(float(totals.mean()), standard_error(totals), 1)


def _detail(results: Results, samples: dict[tuple[str, str], Sample]) -> ResultTable:
    rows = []
    for (environment, algorithm), sample in samples.items():
        counts = cumulative_bad_episodes(sample)
        totals = counts[:, -1]
        paper = _paper_total(environment, algorithm, sample)
        rows.append(
            (
                text_cell(environment),
                text_cell(algorithm),
                number_cell(sample.runs, str(sample.runs)),
                number_cell(counts.shape[1], str(counts.shape[1])),
                value_interval_cell(summarise(totals).mean, 1),
                text_cell(f"{totals.min()} to {totals.max()}"),
                text_cell(NO_VALUE) if paper is None else number_cell(paper, str(paper)),
                number_cell(float(sample.ms_per_step.mean())),
            )
        )
    return ResultTable(
        "bad_episodes_detail",
        "Total bad episodes beside the paper's Figure 3, mean [95% interval]",
        ("environment", "algorithm", "runs", "episodes", "bad episodes", "range", "paper", "ms/step"),
        tuple(rows),
        "llrrrrrr",
        (COUNT_NOTE, "The paper's numbers are where its curves end, read off its plot."),
        rules_between([environment for environment, _ in samples]),
        results.warning,
    )


def _paper_total(environment: str, algorithm: str, sample: Sample) -> int | None:
    """Return where the paper's curve ends; None if it has none, or if the runs have another length."""
    total = paper_numbers()["figure3"].get(algorithm, {}).get(environment)
    whole = sample.horizon == _study_cell(FIGURE3, environment, algorithm).environment.steps
    return int(total) if total is not None and whole else None


def deep_sea_pictures(results: Results) -> list[Picture]:
    """Return the regret plot, if there are runs."""
    environments = list(dict.fromkeys(s.environment for s in results.select(EVALUATE) if s.runs))
    if not environments:
        return []
    return [Picture("figure3", FIGURE_CAPTION, lambda: _regret_figure(results, environments))]


def _regret_figure(results: Results, environments: list[str]) -> Figure:
    """Draw total bad episodes against time, a panel for each environment."""
    with style.new_figure(len(environments), (3.3, 3.1), columns=4) as (figure, panels):
        for axes, environment in zip(panels, environments):
            samples = [s for s in results.select(EVALUATE, environment) if s.runs]
            for sample in samples:
                _draw_curve(axes, sample)
            axes.set_xlim(0, results.horizon(environment))
            axes.set_ylim(bottom=0)
            axes.set(xlabel="steps", ylabel="total bad episodes")
            style.add_title(axes, environment, f"{style.runs_range(s.runs for s in samples)}, 95% band")
        style.add_legend_below(figure, panels, results.warning)
    return figure


def _draw_curve(axes: Axes, sample: Sample) -> None:
    counts = cumulative_bad_episodes(sample)
    shown = np.unique(np.linspace(0, counts.shape[1] - 1, CURVE_POINTS).astype(int))
    steps = (shown + 1) * (sample.horizon // counts.shape[1])
    colour = style.COLOURS[AGENT_COLOURS[sample.algorithm]]
    line = LINE_STYLES.get(sample.algorithm, "-")
    curves = counts[:, shown].astype(float)
    axes.plot(
        steps,
        curves.mean(axis=0),
        color=colour,
        linestyle=line,
        linewidth=1.4,
        label=AGENTS[sample.algorithm],
    )
    axes.fill_between(steps, *band(curves), color=colour, alpha=0.18, linewidth=0)
    paper = _paper_total(sample.environment, sample.algorithm, sample)
    if paper is not None:
        face = style.PAPER_COLOUR if sample.algorithm in LINE_STYLES else colour
        axes.plot(
            [sample.horizon], [paper], "D", color=colour, markerfacecolor=face, markersize=5, clip_on=False
        )
