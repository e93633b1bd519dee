"""What a belief says of one row: where an action may lead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.agent import Agent
from bamdp.beliefs.belief import Belief
from bamdp.envs.environment import Environment
from bamdp.lab.figures import style
from bamdp.mdp.model import FiniteMDP
from bamdp.plot.axes import drawing_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SAMPLES = 200  # models that intervals are made of
MOST_SHOWN = 12  # next states
LEAST_SHOWN = 0.02  # probability that a next state may have
LEAST_OTHERS = 0.002  # probability of the rest together


def posterior(
    belief: Any,
    state: int,
    action: int,
    *,
    truth: Any = None,
    samples: int = SAMPLES,
    seed: int = 0,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw where an action leads by a belief: the probability of each next state, with its 90% interval.

    States that may well follow are shown, and the rest together.

    Parameters
    ----------
    belief
        A `Belief`, or an `Agent` that has one.
    state, action
        The row.
    truth
        The true probabilities, drawn as crosses: an array [S], a `FiniteMDP`, or an `Environment`.
    samples
        The number of models that are drawn from the belief for the intervals.
    seed
        Of these draws.
    title
        Of the picture; by default the row.
    ax
        Axes to draw on; by default those of a new figure.
    """
    known = belief.belief if isinstance(belief, Agent) else belief
    if not isinstance(known, Belief):
        raise TypeError(f"belief must be a Belief or an Agent, got {belief!r}")
    s = _checks.index(state, "state", known.n_states)
    a = _checks.index(action, "action", known.n_actions)
    mean, rng = known.predictive(s, a), np.random.default_rng(seed)
    rows = np.array([_row(known.sample(rng), s, a) for _ in range(_checks.integer(samples, "samples"))])
    right = None if truth is None else _true_row(truth, s, a, known.n_states)
    weight = np.maximum(np.quantile(rows, 0.95, axis=0), mean if right is None else np.maximum(mean, right))
    likely = np.argsort(-weight, kind="stable")[:MOST_SHOWN]
    shown = np.sort(likely[weight[likely] >= min(LEAST_SHOWN, weight.max())])
    low, high = np.quantile(rows[:, shown], [0.05, 0.95], axis=0)
    names = [str(t) for t in shown.tolist()]
    others = 1.0 - float(mean[shown].sum())
    with drawing_axes(ax, (5.2, 3.2)) as axes:
        places = np.arange(len(shown))
        axes.bar(places, mean[shown], width=0.62, color=style.COLOURS[5], zorder=2, label="posterior mean")
        axes.vlines(places, low, high, color=style.TEXT_COLOUR, linewidth=1.3, zorder=3, label="90% interval")
        if len(shown) < known.n_states and others >= LEAST_OTHERS:
            axes.bar(len(shown), others, width=0.62, color=style.GRID_COLOUR, zorder=2)
            names.append(f"{known.n_states - len(shown)}\nothers")
        if right is not None:
            axes.plot(
                places, right[shown], "x", color=style.COLOURS[1], markersize=7, zorder=4, label="truth"
            )
        axes.set_xticks(range(len(names)), names)
        axes.set(xlabel="next state", ylabel="probability", ylim=(0.0, 1.02))
        axes.grid(False, axis="x")
        axes.legend(loc="best")
        axes.set_title(f"state {s}, action {a}" if title is None else title)
    return axes


def _row(mdp: FiniteMDP, s: int, a: int) -> NDArray[np.float64]:
    """Return the probabilities [S] of the next states."""
    states, chances = mdp.row(s, a)
    row = np.zeros(mdp.n_states)
    row[states] = chances
    return row


def _true_row(truth: Any, s: int, a: int, n_states: int) -> NDArray[np.float64]:
    mdp = truth.mdp if isinstance(truth, Environment) else truth
    row = _row(mdp, s, a) if isinstance(mdp, FiniteMDP) else np.asarray(mdp, float)
    if row.shape != (n_states,):
        raise ValueError(f"truth must be the probabilities of {n_states} next states, got shape {row.shape}")
    return row
