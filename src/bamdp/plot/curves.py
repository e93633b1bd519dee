"""Rewards over time, returns of episodes, and planners side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.ceilings import ceilings
from bamdp.envs.environment import Environment
from bamdp.lab.figures import curves, style
from bamdp.lab.figures.style import drawing_axes
from bamdp.lab.results import OPTIMUM_LABEL
from bamdp.lab.statistics import Estimate, summarise
from bamdp.runs import Batch
from bamdp.simulation import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAST_EPISODES = 10  # that a return is the mean of
SHORT = 0.7  # share of the axis at which a line may end and still be labelled at the edge
PLANNER_HEIGHT = 0.34  # inches of a planner in a comparison


def learning_curve(
    runs: Any, *, window: int | None = None, optimum: Any = None, title: str = "", ax: Axes | None = None
) -> Axes:
    """Draw the reward per step over time: the mean of the last ``window`` steps, on a log axis.

    Of several runs it is their mean, with a pointwise 95% bootstrap band.

    Parameters
    ----------
    runs
        A `Run`, a list of runs, a `Batch` of `run_many`, or an array of rewards [T] or [R, T]; or a dictionary of such,
        by label.
    window
        Steps that are averaged; by default 200, and at most a fifth of a run.
    optimum
        The average reward per step that is possible, drawn as a line: a number, or an `Environment`, whose model is
        then solved.
    title
        Of the picture.
    ax
        Axes to draw on; by default those of a new figure.
    """
    rewards = {label: _rewards(part, label) for label, part in _labelled(runs).items()}
    horizon = max(array.shape[1] for array in rewards.values())
    window = curves.default_window(horizon) if window is None else _checks.integer(window, "window")
    best = _best_per_step(optimum, horizon)
    with drawing_axes(ax) as axes:
        curves.draw_rewards(axes, rewards, window, best)
        _name_lines(axes, rewards)
        style.add_title(axes, title, _runs_note(rewards))
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
    """Draw the return of episodes over time: at each step the mean of the last ``episodes`` that were completed.

    Parameters
    ----------
    runs
        A `Run`, a list of runs, or a `Batch` of `run_many`; or a dictionary of such, by label. A line begins where all
        of its runs have completed an episode.
    episodes
        How many of the last returns are averaged.
    optimum
        The best return that can be expected, drawn as a line.
    log
        Whether the axis of time is logarithmic.
    title
        Of the picture.
    ax
        Axes to draw on; by default those of a new figure.
    """
    _checks.integer(episodes, "episodes")
    groups = {label: _runs(part, label) for label, part in _labelled(runs).items()}
    horizon = max(len(run.rewards) for group in groups.values() for run in group)
    looks = style.looks(groups)
    with drawing_axes(ax) as axes:
        for label, group in groups.items():
            length = min(len(run.rewards) for run in group)
            first = max((int(run.ends[0]) + 1 if len(run.ends) else length + 1) for run in group)
            if first > length:
                raise ValueError(
                    f"a run{f' of {label}' if label else ''} has no completed episode; draw learning_curve"
                )
            steps = np.unique(np.geomspace(first, length, 240).round().astype(int))
            smooth = np.array([_recent_returns(run, steps, episodes) for run in group])
            curves.mean_lines(axes, steps, {label: smooth}, looks)
        if log:
            curves.log_step_axis(axes)
        axes.set(xlim=(None, horizon), xlabel="step (log)" if log else "step")
        axes.set_ylabel(f"return, last {episodes} episodes")
        if optimum is not None:
            style.add_level_line(axes, optimum, OPTIMUM_LABEL)
        _name_lines(axes, groups)
        style.add_title(axes, title, _runs_note(groups))
    return axes


def comparison(results: Any, *, optimum: Any = None, title: str = "", ax: Axes | None = None) -> Axes:
    """Draw the mean total reward of planners, the best one first, with 95% bootstrap intervals.

    Parameters
    ----------
    results
        What `bamdp.compare` has returned; or a dictionary, by label, of batches of `run_many` or of total rewards [R].
    optimum
        The expected total of an optimal policy, drawn as a line: a number. What `bamdp.compare` has returned brings its
        own, where the model is known.
    title
        Of the picture.
    ax
        Axes to draw on; by default those of a new figure.
    """
    totals = _totals(getattr(results, "totals", results))
    optimum = getattr(results, "optimum", None) if optimum is None else float(optimum)
    estimates = {label: summarise(values).mean for label, values in totals.items()}
    looks = style.looks(totals)
    order = sorted(estimates, key=lambda label: estimates[label].value)
    with drawing_axes(ax, (6.2, 1.0 + PLANNER_HEIGHT * len(order))) as axes:
        for row, label in enumerate(order):
            _interval(axes, estimates[label], row, looks[label])
        axes.set_yticks(range(len(order)), order)
        axes.set(xlabel="total reward per run", ylim=(-0.6, len(order) - 0.4))
        axes.grid(False, axis="y")
        if optimum is not None:
            axes.axvline(optimum, color=style.TEXT_COLOUR, linewidth=0.9, linestyle=(0, (4, 3)))
            look: dict[str, Any] = {"xytext": (-3, 0), "textcoords": "offset points", "ha": "right"}
            at = ("data", "axes fraction")
            axes.annotate(OPTIMUM_LABEL, (optimum, 0.02), xycoords=at, fontsize=7.5, **look)
        runs = style.runs_range(len(values) for values in totals.values())
        style.add_title(axes, title, f"{runs}, 95% intervals of the mean")
    return axes


# What is given


def _labelled(runs: Any) -> dict[str, Any]:
    """Return runs by label; what is no dictionary has an empty label."""
    runs = getattr(runs, "batches", runs)
    if isinstance(runs, Mapping):
        if not runs:
            raise ValueError("there are no runs to draw")
        return dict(zip(_short_labels([str(label) for label in runs]), runs.values()))
    return {"": runs}


def _short_labels(labels: list[str]) -> list[str]:
    """Return the names of planners without their parameters, where that tells them apart."""
    names = [label.partition(":")[0] for label in labels]
    return names if len(set(names)) == len(names) else labels


def _rewards(part: Any, label: str) -> NDArray[np.float64]:
    """Return the rewards [R, T] of runs, all of the shortest run's length."""
    if isinstance(part, (list, tuple)) and part and all(isinstance(run, Run) for run in part):
        shortest = min(len(run.rewards) for run in part)
        part = [run.rewards[:shortest] for run in part]
    try:
        array = np.atleast_2d(np.asarray(getattr(part, "rewards", part), float))
    except (ValueError, TypeError):
        array = np.zeros(0)
    if array.ndim != 2 or not array.size:
        raise _not_runs(part, label, "a list of runs, a Batch or rewards [R, T]")
    return array


def _runs(part: Any, label: str) -> list[Run]:
    runs = [part] if isinstance(part, Run) else list(getattr(part, "runs", part))
    if not runs or not all(isinstance(run, Run) for run in runs):
        raise _not_runs(part, label, "a list of runs or a Batch")
    return runs


def _not_runs(part: Any, label: str, ways: str) -> TypeError:
    return TypeError(f"the runs{f' of {label!r}' if label else ''} must be a Run, {ways}; got {part!r}")


def _totals(results: Any) -> dict[str, NDArray[np.float64]]:
    if not isinstance(results, Mapping) or not results:
        raise TypeError(
            f"results must be what compare has returned, or a dictionary by label; got {results!r}"
        )
    totals = [
        part.totals if isinstance(part, Batch) else np.asarray(part, float) for part in results.values()
    ]
    return dict(zip(_short_labels([str(label) for label in results]), totals))


def _best_per_step(optimum: Any, horizon: int) -> float | None:
    if isinstance(optimum, Environment):
        return ceilings(optimum, 0.95, horizon).best_per_step(horizon)
    return None if optimum is None else float(optimum)


def _recent_returns(run: Run, steps: NDArray[np.int64], episodes: int) -> NDArray[np.float64]:
    """Return the mean of the last returns at each of some steps, by which at least one episode was completed."""
    done = np.searchsorted(run.ends + 1, steps, side="right")
    return np.asarray(curves.trailing_mean(run.episode_returns, episodes, done))


# What is drawn


def _name_lines(axes: Axes, labels: Mapping[str, Any]) -> None:
    """Write the labels beside their lines, if there are any: at the right edge, or where a shorter line ends."""
    if [*labels] == [""]:
        return
    lines = {str(line.get_label()): line for line in axes.get_lines()}
    ends = []
    for label in labels:
        x, y = (float(np.asarray(data, float)[-1]) for data in lines[label].get_data())
        colour = str(lines[label].get_color())
        if x < SHORT * axes.get_xlim()[1]:
            look: dict[str, Any] = {"xytext": (5, -2), "textcoords": "offset points", "va": "top"}
            axes.annotate(label, (x, y), color=colour, fontsize=style.LABEL_SIZE, **look)
        else:
            ends.append((label, y, colour))
    figure = axes.get_figure(root=True)
    assert figure is not None
    style.label_ends(axes, ends, axes.get_position().height * figure.get_figheight())


def _runs_note(groups: Mapping[str, Sequence[Any] | NDArray[np.float64]]) -> str:
    counts = [len(group) for group in groups.values()]
    return style.runs_range(counts) + (", 95% band" if max(counts) > 1 else "")


def _interval(axes: Axes, mean: Estimate, row: int, look: style.Look) -> None:
    arms = None if np.isnan(mean.low) else [[mean.value - mean.low], [mean.high - mean.value]]
    size: dict[str, Any] = {"markersize": 6, "elinewidth": 1.4, "capsize": 3}
    axes.errorbar(mean.value, row, xerr=arms, fmt=look.marker, color=look.colour, **size)
