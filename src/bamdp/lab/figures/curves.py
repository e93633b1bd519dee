"""Reward and regret over time, and reward against planning time.

The learning curve at step t is the mean of the last min(t, w) rewards, w the window: the paper's Figure 2 (w = 200, 500
in the maze), drawn from before t = w so that the beginning, where planners differ most, is not cut off. Regret is t·g
less the rewards so far, g the optimal average reward per step of the known model. Lines are means over runs, bands
pointwise 95% bootstrap intervals of them, whole runs resampled.

In the figure of reward against time, a point is an algorithm's mean total reward over its mean processor time per step
(log axis), with 95% bootstrap intervals of both. The Pareto front joins those that no other beats in both at once; they
are filled, the others hollow. Small dots are configurations that were tried in tuning over the same number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks
from bamdp.lab.comparisons import Group
from bamdp.lab.figures import style
from bamdp.lab.results import OPTIMUM_LABEL, Sample
from bamdp.statistics import Estimate, band, summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LineEnds = list[tuple[str, float, str]]  # label, height, colour

TRADEOFF_NOTE = "bars 95%, filled: Pareto front"


def trailing_mean(rewards: ArrayLike, window: int, at: ArrayLike | None = None) -> NDArray[np.float64]:
    """Return means of the last ``window`` rewards (or of all so far) after each step, or after the steps ``at``.

    Examples
    --------
    >>> trailing_mean([0.0, 1.0, 1.0, 0.0], window=2)
    array([0. , 0.5, 1. , 0.5])
    """
    array = np.asarray(rewards, float)
    window = _checks.integer(window, "window")
    end = np.arange(1, array.shape[-1] + 1) if at is None else np.asarray(at)
    begin = np.maximum(end - window, 0)
    sums = np.concatenate([np.zeros((*array.shape[:-1], 1)), np.cumsum(array, axis=-1)], axis=-1)
    return (sums[..., end] - sums[..., begin]) / (end - begin)


def default_window(horizon: int) -> int:
    """Return the paper's window: 200 steps, 500 in the maze's 20 000; at most a fifth of a run.

    Examples
    --------
    >>> default_window(1000), default_window(20_000), default_window(50)
    (200, 500, 10)
    """
    return min(500 if horizon >= 10_000 else 200, max(1, horizon // 5))


def learning_curves(
    groups: Sequence[Group], looks: Mapping[str, style.Look], *, window: int | None = None, warning: str = ""
) -> Figure:
    """Draw the moving-average reward on a log time axis, a panel for each group."""

    def panel(axes: Axes, group: Group) -> LineEnds:
        w = window or default_window(group.horizon)
        steps = style.log_spaced_steps(group.horizon, first=max(1, w // 20))
        curves = {name: trailing_mean(s.traces(), w, steps) for name, s in group.leading.items()}
        ends = mean_lines(axes, steps, curves, style.sample_looks(group.leading, looks))
        from_zero = all((curve >= 0.0).all() for curve in curves.values())
        _learning_axes(axes, steps, w, best_per_step(group), from_zero)
        return ends

    return _panels(groups, panel, warning)


def reward_figure(
    curves: Mapping[str, ArrayLike],
    *,
    window: int,
    optimum: float | None = None,
    title: str = "",
    note: str = "",
) -> Figure:
    """Draw the learning curves of rewards [R, T] by label, without a study.

    Parameters
    ----------
    curves
        Label to rewards ``[R, T]``.
    window
        Steps that are averaged.
    optimum
        The known-model optimum's average reward per step, drawn as a line.
    title, note
        A title, and smaller under it a note.
    """
    rewards = {label: np.atleast_2d(np.asarray(array, float)) for label, array in curves.items()}
    with style.new_figure() as (figure, (axes,)):
        ends = draw_rewards(axes, rewards, window, optimum)
        style.add_title(axes, title, note)
        style.label_ends(axes, ends, 2.8)
    return figure


def draw_rewards(
    axes: Axes, rewards: Mapping[str, NDArray[np.float64]], window: int, optimum: float | None
) -> LineEnds:
    """Draw the learning curves of rewards [R, T] by label, on a log axis; return where the lines end."""
    lengths = [array.shape[1] for array in rewards.values()]
    steps, looks = style.log_spaced_steps(max(lengths), first=max(1, window // 20)), style.looks(rewards)
    ends: LineEnds = []
    for (label, array), length in zip(rewards.items(), lengths):  # runs of one may be shorter
        until = np.append(steps[steps < length], length)
        ends += mean_lines(axes, until, {label: trailing_mean(array, window, until)}, looks)
    _learning_axes(axes, steps, window, optimum, all((array >= 0.0).all() for array in rewards.values()))
    return ends


def regret_curves(groups: Sequence[Group], looks: Mapping[str, style.Look], *, warning: str = "") -> Figure:
    """Draw the regret against the optimum of the known model, a panel for each group; all must have ceilings."""

    def panel(axes: Axes, group: Group) -> LineEnds:
        steps = np.unique(np.linspace(1, group.horizon, 240).round().astype(int))
        best = best_per_step(group)
        if best is None:
            raise ValueError(f"no optimum of {group.label} is known, so there is no regret to draw")
        curves = {
            name: best * steps - s.traces().cumsum(axis=-1)[:, steps - 1] for name, s in group.leading.items()
        }
        ends = mean_lines(axes, steps, curves, style.sample_looks(group.leading, looks))
        axes.axhline(0.0, color=style.GREY_COLOUR, linewidth=0.8)
        axes.set(xlim=(0, group.horizon), xlabel="step", ylabel="regret, total reward")
        return ends

    return _panels(groups, panel, warning)


def _learning_axes(
    axes: Axes, steps: NDArray[np.int64], window: int, optimum: float | None, from_zero: bool
) -> None:
    """Name the axes of learning curves, and draw the optimum."""
    log_step_axis(axes)
    axes.set(xlim=(steps[0], max(steps[-1], steps[0] + 1)), xlabel="step (log)")
    axes.set_ylabel(f"reward per step, last {window} steps")
    if optimum is not None:
        style.add_level_line(axes, optimum, OPTIMUM_LABEL)
    if from_zero:
        axes.set_ylim(bottom=0.0)


def log_step_axis(axes: Axes) -> None:
    """Show steps on a log axis with plain numbers."""
    from matplotlib.ticker import FuncFormatter

    def between(x: float, _: Any) -> str:
        low, high = axes.get_xlim()
        return f"{x:g}" if high < 100 * low and f"{x:e}"[0] in "25" else ""

    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(FuncFormatter(between))


def best_per_step(group: Group) -> float | None:
    """Return the optimal average reward per step: the gain, or where that is not one number optimum / horizon."""
    return None if group.ceilings is None else group.ceilings.best_per_step(group.horizon)


def mean_lines(
    axes: Axes,
    steps: NDArray[np.int64],
    curves: Mapping[str, NDArray[np.float64]],
    looks: Mapping[str, style.Look],
) -> LineEnds:
    """Draw the mean of curves [R, P] over ``steps`` [P] with its band; return where the lines end."""
    ends = []
    for name, curve in curves.items():
        look, mean = looks[name], curve.mean(axis=0)
        style.draw_line(axes, steps, mean, band(curve), look, label=name)
        ends.append((name, float(mean[-1]), look.colour))
    return ends


def _panels(groups: Sequence[Group], panel: Callable[[Axes, Group], LineEnds], warning: str) -> Figure:
    """Draw one panel with labels beside the lines, or several with a legend below."""
    size = (6.2, 3.5) if len(groups) == 1 else (3.6, 2.8)
    with style.new_figure(len(groups), size) as (figure, all_axes):
        for axes, group in zip(all_axes, groups):
            ends = panel(axes, group)
            style.add_title(axes, group.label, _runs_note(group))
            if len(groups) == 1:
                style.label_ends(axes, ends, 0.8 * size[1])
        if len(groups) > 1:
            style.add_legend_below(figure, all_axes, warning)
        else:
            style.add_warning(figure, warning)
        return figure


def _runs_note(group: Group) -> str:
    runs = style.runs_range(sample.runs for sample in group.leading.values())
    hidden = sum(bool(sample.runs) for sample in group.samples) > len(group.leading)
    return f"{runs}, 95% band" + (", the best configuration of each algorithm" if hidden else "")


# Reward against time


def pareto(costs: ArrayLike, gains: ArrayLike) -> NDArray[np.bool_]:
    """Return which points no other point beats: none is as cheap and as good, and better in one of both.

    Examples
    --------
    >>> pareto([1.0, 2.0, 3.0], [5.0, 4.0, 6.0]).tolist()
    [True, False, True]
    """
    c, g = np.asarray(costs, float), np.asarray(gains, float)
    no_worse = (c[:, None] <= c) & (g[:, None] >= g)
    better = (c[:, None] < c) | (g[:, None] > g)
    return np.asarray(~(no_worse & better).any(axis=0))


def reward_against_time(
    group: Group, looks: Mapping[str, style.Look], *, tried: Sequence[Sample] = (), warning: str = ""
) -> Figure:
    """Draw reward against time in one environment; ``tried`` are the tuning samples to show as dots."""
    shown = {name: sample for name, sample in group.named.items() if sample.runs}
    times = {name: summarise(sample.ms_per_step).mean for name, sample in shown.items()}
    rewards = {name: group.summaries[name].mean for name in shown}
    point_looks = style.sample_looks(shown, looks)
    with style.new_figure() as (figure, (axes,)):
        dots = _dots(axes, group, tried, looks)
        front = pareto([t.value for t in times.values()], [r.value for r in rewards.values()])
        for name, on_front in zip(shown, front):
            _point(axes, times[name], rewards[name], point_looks[name], on_front)
        points = {name: (times[name].value, rewards[name].value) for name in shown}
        steps = _front(axes, [points[name] for name, on_front in zip(shown, front) if on_front])
        if group.ceilings:
            style.add_level_line(axes, group.ceilings.optimum, OPTIMUM_LABEL)
        log_time_axis(axes)
        axes.set(xlabel="processor time per step, ms (log)", ylabel=f"total reward, {group.horizon} steps")
        axes.margins(x=0.12, y=0.12)
        runs = style.runs_range(sample.runs for sample in shown.values())
        style.add_title(axes, group.label, f"{runs}; {TRADEOFF_NOTE}{dots}")
        style.add_warning(figure, warning)
        named = [(words, *points[n], point_looks[n].colour) for n, words in _labels(group, shown).items()]
        bars = [bar for name in shown for bar in _bars(times[name], rewards[name])]
        style.label_points(figure, axes, named, bars + steps)
    return figure


def _labels(group: Group, shown: Mapping[str, Sample]) -> dict[str, str]:
    """Return the labels of points: all, or if they are too many each algorithm's name at its best one."""
    if len(shown) == len(group.leading):
        return {name: name for name in shown}
    return {name: sample.algorithm for name, sample in group.leading.items()}


def _point(axes: Axes, time: Estimate, reward: Estimate, look: style.Look, on_front: bool) -> None:
    arms: dict[str, Any] = {
        "xerr": _error_arms(time),
        "yerr": _error_arms(reward),
        "elinewidth": 1.1,
        "capsize": 2,
    }
    face = look.colour if on_front else style.PAPER_COLOUR
    marker: dict[str, Any] = {
        "fmt": look.marker,
        "markerfacecolor": face,
        "markersize": 6,
        "markeredgewidth": 1.3,
    }
    axes.errorbar(time.value, reward.value, color=look.colour, zorder=4, **arms, **marker)


def _bars(time: Estimate, reward: Estimate) -> list[style.DataBox]:
    """Return where a point's error bars are; without an interval, the point itself."""
    x, y = time.value, reward.value
    upright = (x, x, y, y) if np.isnan(reward.low) else (x, x, reward.low, reward.high)
    flat = (x, x, y, y) if np.isnan(time.low) else (time.low, time.high, y, y)
    return [upright, flat]


def _error_arms(estimate: Estimate) -> list[list[float]] | None:
    if np.isnan(estimate.low):
        return None
    return [[max(estimate.value - estimate.low, 0.0)], [max(estimate.high - estimate.value, 0.0)]]


def _front(axes: Axes, points: list[tuple[float, float]]) -> list[style.DataBox]:
    """Draw the front; return where its steps are."""
    x, y = zip(*sorted(points))
    dotted: dict[str, Any] = {"linewidth": 1.0, "linestyle": (0, (2, 2)), "drawstyle": "steps-post"}
    axes.plot(x, y, color=style.GREY_COLOUR, zorder=2, **dotted)
    return [(left, right, height, height) for left, right, height in zip(x, x[1:], y)]


def _dots(axes: Axes, group: Group, tried: Sequence[Sample], looks: Mapping[str, style.Look]) -> str:
    """Draw the configurations tried over the group's horizon; return what the note says of them."""
    where = (group.environment, group.horizon)
    shown = [sample for sample in tried if (sample.environment, sample.horizon) == where and sample.runs]
    for sample in shown:
        dot: dict[str, Any] = {
            "color": looks[sample.algorithm].colour,
            "alpha": 0.35,
            "markersize": 4,
            "zorder": 1,
        }
        axes.plot(sample.mean_ms, sample.mean_total, ".", **dot)
    return ", dots: tried in tuning" if shown else ""


def log_time_axis(axes: Axes) -> None:
    """Show times on a log axis with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
