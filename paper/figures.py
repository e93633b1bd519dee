"""Figures for the research pages, all in one style and sized to the page width."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from exports import Export, rewards
from pandas import DataFrame
from seas import sea_curves

from bamdp.cli.studies import paper_numbers
from bamdp.lab.store import EVALUATE
from bamdp.plot import style
from bamdp.plot.curves import draw_mean, log_spaced_steps, trailing_mean
from bamdp.statistics import rescaled, standard_error

PANEL = (3.6, 2.5)  # inches; two panels fill the page width
TIMES = {"10us": 0.01, "100us": 0.1, "1ms": 1.0, "10ms": 10.0, "100ms": 100.0}
TIMED_RUNS = {"10ms": 10, "100ms": 4}  # minimum number of runs; 20 for the other time limits
TIMED = ("beb", "adaptive-dss", "dss-pi", "dss-rtdp", "bamcp", "thompson")
SEA_AGENTS = {
    "dss-sparse": "DSS-PI, sparse prior",
    "dss-steps": "DSS-PI, sparse prior, a plan per step",
    "psrl-sparse": "Thompson, sparse prior",
    "rmax": "R-max",
    "bdqn": "Bootstrapped DQN",
    "dss-flat": "DSS-PI, flat prior",
    "psrl-flat": "Thompson, flat prior",
}
SEAS = {
    "episode-10": "10 × 10, deterministic",
    "stochastic-10": "10 × 10, stochastic",
    "episode-20": "20 × 20, deterministic",
    "stochastic-20": "20 × 20, stochastic",
}
SWEEPS = {"N": "N policies", "M": "M samples", "K": "K steps", "H": "H stages"}
SWEPT = {"N": "n_policies", "M": "n_samples", "K": "n_steps", "H": "n_stages"}
BELIEFS = {"beta": ("prior.beta", "prior's sparsity β"), "gamma": ("discount", "discount γ")}

TimeScores = dict[tuple[str, str, str], tuple[float, float]]


def draw_learning(results: Export, path: Path) -> None:
    """Plot the moving average of the reward in every environment, as in Figure 2 of the DSS paper."""
    runs = results.select(EVALUATE)
    names = list(runs.algorithm.unique())
    with style.new_figure(3, 2, PANEL) as (figure, panels):
        for axes, environment in zip(panels, results.environments):
            found = runs[runs.environment == environment]
            window = 500 if found.horizon.iloc[0] >= 10_000 else 200
            steps = log_spaced_steps(int(found.horizon.iloc[0]), window // 20)
            for index, name in enumerate(names):
                curves = trailing_mean(rewards(found[found.algorithm == name]), window, steps)
                draw_mean(axes, steps, curves, name, index)
            style.log_axis(axes)
            axes.set(title=environment, xlabel="step (log)", ylabel=f"reward, last {window} steps")
            axes.set_ylim(bottom=0.0)
        panels[-1].set_axis_off()
        panels[-1].legend(*panels[0].get_legend_handles_labels(), loc="center", fontsize=9)
    style.save_figure(figure, path)


def draw_ablation(results: Export, path: Path, base_of: Callable[[str], Mapping[str, Any]]) -> None:
    """Plot total reward against planning time for N, M, K and H, and the fraction of the optimum against β and γ."""
    with style.new_figure(2, 2, (3.6, 2.7)) as (figure, panels):
        for axes, environment in zip(panels, ("grid5", "grid10")):
            for index, (sweep, words) in enumerate(SWEEPS.items()):
                points = _points(results, environment, sweep, SWEPT[sweep])
                look = {**style.look(index), "linewidth": 1.2, "markersize": 4}
                axes.plot(points.ms, points["mean"], label=words, **look)
                for one in points.itertuples():
                    if one.value != base_of(environment)[SWEPT[sweep]]:
                        axes.annotate(
                            f"{one.value:g}",
                            (one.ms, one.mean),
                            (3, 3),
                            textcoords="offset points",
                            fontsize=7,
                            color=look["color"],
                        )
            base = points[points.value == base_of(environment)[SWEPT[sweep]]]
            axes.plot(
                base.ms, base["mean"], "o", markersize=11, markerfacecolor="none", color=style.TEXT_COLOUR
            )
            style.log_axis(axes)
            axes.set(title=environment, xlabel="time per step, ms (log)", ylabel="total reward")
        panels[1].legend(loc="best")
        for axes, (sweep, (parameter, words)) in zip(panels[2:], BELIEFS.items()):
            for index, environment in enumerate(results.environments):
                points = _points(results, environment, sweep, parameter)
                share = points["mean"] / results.ceilings[environment].optimum
                axes.plot(points.value, share, label=environment, **{**style.look(index), "markersize": 4})
            axes.set(xlabel=words, ylabel="share of the optimum", ylim=(0.0, 1.0), title=words)
        panels[3].legend(loc="center", bbox_to_anchor=(0.5, 0.53), ncols=3, columnspacing=1.0)
    style.save_figure(figure, path)


def _points(results: Export, environment: str, sweep: str, parameter: str) -> DataFrame:
    """Return the value, mean total reward and mean time per step of each configuration in a sweep."""
    runs = results.select(EVALUATE, environment, sweep)
    values = [one.get(parameter) for one in runs.configuration]
    found = runs.groupby(values)
    return DataFrame({"mean": found.total.mean(), "ms": found.ms_per_step.mean()}).reset_index(names="value")


def time_scores(results: Export) -> TimeScores:
    """Return the normalised score, with standard error, of the configuration tuned for each time limit."""
    scores = {}
    for (environment, label), runs in results.select(EVALUATE).groupby(
        ["environment", "algorithm"], sort=False
    ):
        algorithm, _, time = label.rpartition("-")
        done, known = runs[runs.failure == ""], results.ceilings[environment]
        if len(done) >= TIMED_RUNS.get(time, 20) and time in TIMES:
            values = rescaled(done.total, known.random, known.optimum)
            scores[environment, algorithm, time] = float(values.mean()), standard_error(values)
    return scores


def draw_times(results: Export, path: Path) -> None:
    """Plot the score with standard errors against the time per step, one panel per environment."""
    scores = time_scores(results)
    with style.new_figure(2, 2, PANEL) as (figure, panels):
        for axes, environment in zip(panels, results.environments):
            for index, name in enumerate(TIMED):
                found = {
                    TIMES[time]: one for (e, a, time), one in scores.items() if (e, a) == (environment, name)
                }
                means, errors = zip(*found.values())
                axes.errorbar([*found], means, errors, label=name, markersize=4, **style.look(index))
            style.log_axis(axes)
            axes.set(title=environment, xlabel="time limit per step, ms (log)", ylabel="normalised score")
            axes.set(xlim=(0.007, 150), ylim=(0.0, 1.02))
        style.legend_below(figure, panels)
    style.save_figure(figure, path)


def draw_seas(results: Export, path: Path) -> None:
    """Plot the cumulative number of bad episodes, and mark the final values of the paper's curves."""
    agents = [name for name in SEA_AGENTS if name != "dss-steps"]
    with style.new_figure(2, 2, PANEL) as (figure, panels):
        for axes, (environment, words) in zip(panels, SEAS.items()):
            for index, name in enumerate(agents):
                curves = sea_curves(results, environment, name)
                if curves is not None:
                    episodes = log_spaced_steps(curves.shape[1], 10)
                    draw_mean(axes, episodes, curves[:, episodes - 1].astype(float), SEA_AGENTS[name], index)
                paper = paper_numbers()["figure3"].get(name, {}).get(environment)
                if paper is not None:
                    mark = {"color": style.look(index)["color"], "marker": "D", "markersize": 6}
                    axes.plot(
                        curves.shape[1], paper, linestyle="", clip_on=False, markerfacecolor="none", **mark
                    )
            style.log_axis(axes)
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.margins(x=0)
            axes.set(title=words, xlabel="episode (log)", ylabel="bad episodes so far (log)")
        style.legend_below(figure, panels, 3)
    style.save_figure(figure, path)
