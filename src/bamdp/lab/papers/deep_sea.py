"""Figure 3 (Appendix D) of the paper, and more: bad episodes in bsuite's deep sea, of DSS and Bootstrapped DQN.

The study is ``dss2020/figure3``. An episode is *bad* if somewhere on the diagonal, the only way to the treasure, the
step to the left was taken: bsuite's own count. The laboratory keeps the reward of every step, which says which actions
were taken on the diagonal. Where the sea is stochastic, a step to the right may fail, and the rewards do not show
that; but the environment's random numbers are determined by study, environment and replicate, so they are drawn again.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bamdp.envs.deep_sea import DeepSea
from bamdp.envs.registry import make_env
from bamdp.lab.figures import Picture, style
from bamdp.lab.papers.paper_tables import paper_entry
from bamdp.lab.reading import paper_cells
from bamdp.lab.results import EVALUATE, Results, Sample
from bamdp.lab.tables.table import (
    Entry,
    ResultTable,
    make_table,
    mean_cell,
    rules_between,
    value_interval_cell,
)
from bamdp.lab.units import environment_seed, setting_facts
from bamdp.statistics import band, summarise

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
# agents of one planner share a colour of the style
AGENT_LOOKS = {
    name: style.Look(style.COLOURS[colour], line, "D")
    for name, colour, line in zip(
        AGENTS, (0, 0, 1, 2, 3, 1, 0), ("-", (0, (1, 1)), "-", "-", "-", (0, (4, 1.5)), (0, (4, 1.5)))
    )
}
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
    cell = paper_cells(study)[
        sample.environment, sample.algorithm
    ]  # the same in a quick run, but for its steps
    env = make_env(cell.environment.env)
    assert isinstance(env, DeepSea)
    facts = setting_facts(cell.setting(cell.configurations[0]))
    bad = [
        bad_episodes(env, rewards, environment_seed(facts, EVALUATE, int(replicate)))
        for replicate, rewards in zip(sample.replicates, sample.traces())
    ]
    return np.cumsum(bad, axis=1, dtype=np.int64)


def total_bad_episodes(sample: Sample, study: str = FIGURE3) -> NDArray[np.int64]:
    """Return the number of bad episodes of each run of a shipped study."""
    return cumulative_bad_episodes(sample, study)[:, -1]


def deep_sea_tables(results: Results) -> list[ResultTable]:
    """Return the total bad episodes as a matrix of agents and environments, and in detail."""
    samples = {(s.environment, s.algorithm): s for s in results.select(EVALUATE) if s.runs}
    if not samples:
        return []
    environments = list(dict.fromkeys(environment for environment, _ in samples))
    present = [name for name in AGENTS if any(name == other for _, other in samples)]
    matrix: list[list[Entry]] = [[name, AGENTS[name]] for name in present]
    for row, name in zip(matrix, present):
        found = [samples.get((environment, name)) for environment in environments]
        row += [None if sample is None else mean_cell(total_bad_episodes(sample), 1) for sample in found]
    return [
        make_table(
            "bad_episodes",
            "Total bad episodes, mean ± standard error",
            ("algorithm", "agent", *environments),
            matrix,
            (COUNT_NOTE, f"{style.runs_range(sample.runs for sample in samples.values())} per cell."),
            "ll" + "r" * len(environments),
            warning=results.warning,
        ),
        make_table(
            "bad_episodes_detail",
            "Total bad episodes beside the paper's Figure 3, mean [95% interval]",
            ("environment", "algorithm", "runs", "episodes", "bad episodes", "range", "paper", "ms/step"),
            [_detail_row(sample) for sample in samples.values()],
            (COUNT_NOTE, "The paper's numbers are where its curves end, read off its plot."),
            "llrrrrrr",
            rules_between([environment for environment, _ in samples]),
            results.warning,
        ),
    ]


def _detail_row(sample: Sample) -> tuple[Entry, ...]:
    counts, totals = cumulative_bad_episodes(sample), total_bad_episodes(sample)
    mean = value_interval_cell(summarise(totals).mean, 1)
    numbers = sample.runs, counts.shape[1], mean, f"{totals.min()} to {totals.max()}"
    return sample.environment, sample.algorithm, *numbers, _paper_total(sample), sample.mean_ms


def _paper_total(sample: Sample) -> int | None:
    """Return where the paper's curve ends; None if it has none, or if the runs have another length."""
    total = paper_entry("figure3", sample.algorithm, sample.environment)
    steps = paper_cells(FIGURE3)[sample.environment, sample.algorithm].environment.steps
    return int(total) if total is not None and sample.horizon == steps else None


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
    curves, look = counts[:, shown].astype(float), AGENT_LOOKS[sample.algorithm]
    label, mean = AGENTS[sample.algorithm], curves.mean(axis=0)
    style.draw_line(axes, steps, mean, band(curves), look, label=label, zorder=2)
    paper = _paper_total(sample)
    if paper is not None:
        face = look.colour if look.line == "-" else style.PAPER_COLOUR
        diamond: dict[str, Any] = {"markerfacecolor": face, "markersize": 5, "clip_on": False}
        axes.plot([sample.horizon], [paper], look.marker, color=look.colour, **diamond)
