"""Learning curves, returns of episodes, and comparisons of planners.

With window w, the learning curve at step t is the mean of the last min(t, w) rewards. Lines are means over runs; bands
are pointwise 95% bootstrap intervals of the mean, obtained by resampling whole runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks
from bamdp.envs.ceilings import ceilings
from bamdp.envs.environment import Environment
from bamdp.plot import style
from bamdp.simulation import Run
from bamdp.statistics import band, summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAST_EPISODES = 10  # averaged in each plotted return
PLANNER_HEIGHT = 0.34  # inches per planner in a comparison
POINTS, MOST_MARKED = 240, 20  # points per line, and those that get markers


def learning_curve(
    runs: Any, *, window: int | None = None, optimum: Any = None, title: str = "", ax: Axes | None = None
) -> Axes:
    """Plot the reward per step over time: the mean of the last ``window`` steps, on a log axis.

    For several runs, plot their mean with a pointwise 95% bootstrap band.

    Parameters
    ----------
    runs
        A `Run`, a list of runs, a `Batch` from `run_many`, or an array of rewards [T] or [R, T]; or a dictionary from
        labels to these.
    window
        Number of steps to average; by default 200 (500 for runs of 10 000 steps or more), and at most a fifth of a run.
    optimum
        The optimal average reward per step, plotted as a line: a number, or an `Environment` whose model is then
        solved.
    title
        The title.
    ax
        Axes to plot on, by default those of a new figure.
    """
    rewards = {label: _rewards(part, label) for label, part in _labelled(runs).items()}
    horizon = max(array.shape[1] for array in rewards.values())
    window = default_window(horizon) if window is None else _checks.integer(window, "window")
    if isinstance(optimum, Environment):
        optimum = ceilings(optimum, 0.95, horizon).best_per_step(horizon)
    with style.drawing_axes(ax) as axes:
        for index, (label, array) in enumerate(rewards.items()):
            steps = log_spaced_steps(array.shape[1], first=max(1, window // 20))
            draw_mean(axes, steps, trailing_mean(array, window, steps), label, index)
        style.log_axis(axes)
        axes.set(xlabel="step (log)", ylabel=f"reward per step, last {window} steps")
        axes.margins(x=0)
        _finish(axes, rewards, title, optimum)
        if all((array >= 0.0).all() for array in rewards.values()):
            axes.set_ylim(bottom=0.0)
    return axes


def returns(
    runs: Any,
    *,
    episodes: int = LAST_EPISODES,
    optimum: float | None = None,
    log: bool = True,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Plot the return over time: at each step, the mean return of the last ``episodes`` completed episodes.

    Parameters
    ----------
    runs
        A `Run`, a list of runs, or a `Batch` from `run_many`; or a dictionary from labels to these. A line begins
        once all of its runs have completed an episode.
    episodes
        The number of returns to average.
    optimum
        The best expected return, plotted as a line.
    log
        Whether the time axis is logarithmic.
    title
        The title.
    ax
        Axes to plot on, by default those of a new figure.
    """
    _checks.integer(episodes, "episodes")
    groups = {label: runs_of(part, label) for label, part in _labelled(runs).items()}
    with style.drawing_axes(ax) as axes:
        for index, (label, group) in enumerate(groups.items()):
            length = min(len(run.rewards) for run in group)
            first = max((int(run.ends[0]) + 1 if len(run.ends) else length + 1) for run in group)
            if first > length:
                raise ValueError(f"a run of {label or 'these'} has no completed episode; draw learning_curve")
            steps = log_spaced_steps(length, first)
            done = [np.searchsorted(run.ends + 1, steps, side="right") for run in group]
            smooth = [trailing_mean(run.episode_returns, episodes, n) for run, n in zip(group, done)]
            draw_mean(axes, steps, np.array(smooth), label, index)
        if log:
            style.log_axis(axes)
        axes.set(xlabel="step (log)" if log else "step", ylabel=f"return, last {episodes} episodes")
        _finish(axes, groups, title, optimum)
    return axes


def comparison(results: Any, *, optimum: Any = None, title: str = "", ax: Axes | None = None) -> Axes:
    """Plot the mean total reward of planners, the best first, with 95% bootstrap intervals.

    Parameters
    ----------
    results
        The result of `bamdp.compare`; or a dictionary from labels to batches from `run_many` or total rewards [R].
    optimum
        The expected total reward of an optimal policy, plotted as a line; by default taken from the result of
        `bamdp.compare`.
    title
        The title.
    ax
        Axes to plot on, by default those of a new figure.
    """
    totals = _totals(getattr(results, "totals", results))
    optimum = getattr(results, "optimum", None) if optimum is None else float(optimum)
    means = {label: summarise(values).mean for label, values in totals.items()}
    order = sorted(means, key=lambda label: means[label].value)
    with style.drawing_axes(ax, (6.2, 1.0 + PLANNER_HEIGHT * len(order))) as axes:
        for row, label in enumerate(order):
            mean, look = means[label], style.look([*totals].index(label))
            axes.plot(mean.value, row, **look)
            axes.hlines(row, mean.low, mean.high, color=look["color"])
        axes.set_yticks(range(len(order)), order)
        axes.set(xlabel="total reward per run", ylim=(-0.6, len(order) - 0.4))
        axes.grid(False, axis="y")
        if optimum is not None:
            axes.axvline(optimum, label=style.OPTIMUM_LABEL, **style.REFERENCE_LINE)
            axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0))  # above the rows, beside the title
        axes.set_title(title or f"{runs_range(map(len, totals.values()))}, 95% intervals of the mean")
    return axes


# Lines


def trailing_mean(rewards: ArrayLike, window: int, at: ArrayLike | None = None) -> NDArray[np.float64]:
    """Return means of the last ``window`` rewards (or of all so far, if fewer) after each step or the steps ``at``.

    Examples
    --------
    >>> trailing_mean([0.0, 1.0, 1.0, 0.0], window=2)
    array([0. , 0.5, 1. , 0.5])
    """
    array = np.asarray(rewards, float)
    end = np.arange(1, array.shape[-1] + 1) if at is None else np.asarray(at)
    begin = np.maximum(end - window, 0)
    sums = np.concatenate([np.zeros((*array.shape[:-1], 1)), np.cumsum(array, axis=-1)], axis=-1)
    return (sums[..., end] - sums[..., begin]) / (end - begin)


def default_window(horizon: int) -> int:
    """Return the window used in the DSS paper: 200 steps, 500 for the maze's 20 000; at most a fifth of a run.

    Examples
    --------
    >>> default_window(1000), default_window(20_000), default_window(50)
    (200, 500, 10)
    """
    return min(500 if horizon >= 10_000 else 200, max(1, horizon // 5))


def log_spaced_steps(horizon: int, first: int = 1) -> NDArray[np.int64]:
    """Return the steps at which to plot a curve, evenly spaced on a log axis and including the last."""
    return np.unique(np.geomspace(max(first, 1), horizon, POINTS).round().astype(int))


def draw_mean(
    axes: Axes, steps: NDArray[np.int64], curves: NDArray[np.float64], label: str, index: int
) -> None:
    """Plot the mean of curves [R, P] over ``steps`` [P] with its band."""
    look = {**style.look(index), "marker": "" if len(steps) > MOST_MARKED else style.look(index)["marker"]}
    axes.plot(steps, curves.mean(axis=0), label=label, zorder=3, **look)
    axes.fill_between(steps, *band(curves), color=look["color"], alpha=0.18, linewidth=0)


def runs_range(counts: Iterable[int]) -> str:
    """Return the number of runs as text, as a range if it varies."""
    low, *_, high = sorted([*counts] * 2)
    return f"{low} run{'s' * (low > 1)}" if low == high else f"{low} to {high} runs"


def _finish(axes: Axes, runs: Mapping[str, Any], title: str, optimum: float | None) -> None:
    if optimum is not None:
        axes.axhline(float(optimum), label=style.OPTIMUM_LABEL, **style.REFERENCE_LINE)
    if [label for label in axes.get_legend_handles_labels()[1] if label]:
        axes.legend()
    axes.set_title(title or runs_range(map(len, runs.values())))


# Arguments


def _labelled(runs: Any) -> dict[str, Any]:
    """Return runs by label; runs not given as a dictionary get an empty label."""
    runs = getattr(runs, "batches", runs)
    if not isinstance(runs, Mapping):
        return {"": runs}
    if not runs:
        raise ValueError("there are no runs to draw")
    return dict(zip(_short_labels(runs), runs.values()))


def _short_labels(labels: Iterable[Any]) -> list[str]:
    """Return the names of planners without their parameters, if these are unique."""
    written = [str(label) for label in labels]
    names = [label.partition(":")[0] for label in written]
    return names if len(set(names)) == len(names) else written


def _rewards(part: Any, label: str) -> NDArray[np.float64]:
    """Return the rewards [R, T] of runs, truncated to the length of the shortest."""
    try:
        return np.atleast_2d(np.asarray(getattr(part, "rewards", part), float))
    except (ValueError, TypeError):
        runs = runs_of(part, label, " or rewards [R, T]")
        shortest = min(len(run.rewards) for run in runs)
        return np.array([run.rewards[:shortest] for run in runs])


def runs_of(part: Any, label: str, more: str = "") -> list[Run]:
    """Return a run, a list of runs or the runs of a batch as a list."""
    runs = [part] if isinstance(part, Run) else list(getattr(part, "runs", part))
    if not runs or not all(isinstance(run, Run) for run in runs):
        where = f" of {label!r}" if label else ""
        raise TypeError(f"the runs{where} must be a Run, a list of runs or a Batch{more}; got {part!r}")
    return runs


def _totals(results: Any) -> dict[str, NDArray[np.float64]]:
    if not isinstance(results, Mapping) or not results:
        raise TypeError(f"results must be a result of compare, or a dictionary by label; got {results!r}")
    totals = [np.asarray(getattr(one, "totals", one), float) for one in results.values()]
    return dict(zip(_short_labels(results), totals))
