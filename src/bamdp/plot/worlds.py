"""Worlds and beliefs: a number or an action for every state, drawn where the state is, and one row of a belief."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks
from bamdp.agent import Agent
from bamdp.beliefs.belief import Belief
from bamdp.envs.drawing import shade
from bamdp.envs.environment import Environment
from bamdp.envs.picture import value_range
from bamdp.envs.registry import make_world
from bamdp.lab.figures import style
from bamdp.lab.figures.style import drawing_axes
from bamdp.mdp.model import FiniteMDP
from bamdp.mdp.solution import Solution
from bamdp.mdp.solvers import policy_iteration
from bamdp.simulation import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap

MAP_SIZE = (4.4, 3.8)  # inches
LOW_WIDTH, MARGINS = 5.6, 1.3  # inches, of tables that are low; the scale is then below
LOW_RATIO = 2  # times as wide as high
MOST_IN_ONE_ROW = 12  # states
MAX_LINE_STATES = 24  # states in a row, where nothing is known of where they are
MOST_NUMBERED = 150  # cells in which a number can still be read
ARROWS = {"FrozenLake": "←↓→↑", "CliffWalking": "↑→↓←"}  # of actions, in Gymnasium's grids
SAMPLES = 200  # models that intervals are made of
MOST_SHOWN = 12  # next states
LEAST_SHOWN = 0.02  # probability that a next state may have
LEAST_OTHERS = 0.002  # probability of the rest together


def value_map(
    env: Any,
    values: Any,
    *,
    policy: Any = None,
    shape: tuple[int, int] | None = None,
    label: str = "value",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a number for every state as a colour.

    An environment of this library is drawn as it is now, by its own layout; of states that share a place, such as the
    maze's with different flags, the present ones are seen. Other worlds are a table of states in the order of their
    numbers.

    Parameters
    ----------
    env
        The environment: one of this library or of Gymnasium, or its name.
    values
        An array [S], a `Solution`, or an `Agent`: what the states are worth to it, if the mean of its belief is taken
        for the truth.
    policy
        An action for every state, drawn as an arrow (or, in a table, as a number): an array [S], a `Solution` or an
        `Agent`.
    shape
        Rows and columns of the table. By default those of Gymnasium's grids where they have any; for observations of
        several parts, the last ones along a row.
    label
        What the numbers are.
    title
        Of the picture.
    ax
        Axes to draw on; by default those of a new figure.
    """
    world = make_world(env)
    numbers = _one_per_state(values, "values", float, world)
    actions = _one_per_state(policy, "policy", np.int64, world)
    return _draw_map(world, numbers, actions, shape, label, title, ax)


def policy(
    env: Any, policy: Any, *, shape: tuple[int, int] | None = None, title: str = "", ax: Axes | None = None
) -> Axes:
    """Draw an action for every state, and what the states are worth where that is known.

    Parameters
    ----------
    env
        The environment: one of this library or of Gymnasium, or its name.
    policy
        An array [S], a `Solution`, or an `Agent`: what is best if the mean of its belief is taken for the truth.
    shape, title, ax
        As in :func:`value_map`.
    """
    world = make_world(env)
    known = policy if isinstance(policy, (Agent, Solution)) else None
    numbers = _one_per_state(known, "values", float, world)
    actions = _one_per_state(policy, "policy", np.int64, world)
    return _draw_map(world, numbers, actions, shape, "value", title, ax)


def visits(
    run: Run, env: Any, *, shape: tuple[int, int] | None = None, title: str = "", ax: Axes | None = None
) -> Axes:
    """Draw how often each state was visited: a run's actions were taken there.

    Parameters
    ----------
    run
        The run.
    env
        The environment that it took place in.
    shape, title, ax
        As in :func:`value_map`.
    """
    world = make_world(env)
    counts = np.bincount(run.states, minlength=world.n_states).astype(float)
    return value_map(world, counts, shape=shape, label="visits", title=title, ax=ax)


# What is given


def _one_per_state(given: Any, name: str, dtype: Any, world: Any) -> Any:
    """Return what is given as an array [S]; of an agent or a solution, what it has under this name; None of None."""
    if given is None:
        return None
    if isinstance(given, Agent):  # by the mean of its belief
        given = policy_iteration(given.belief.mean(), given.discount)
    array = np.asarray(getattr(given, name) if isinstance(given, Solution) else given, dtype)
    if array.shape != (world.n_states,):
        raise ValueError(
            f"{name} must have a number for each of the {world.n_states} states of {world.name}, got shape "
            f"{array.shape}"
        )
    return array


# What is drawn


def _draw_map(
    world: Any,
    numbers: NDArray[np.float64] | None,
    actions: NDArray[np.int64] | None,
    shape: tuple[int, int] | None,
    label: str,
    title: str,
    ax: Axes | None,
) -> Axes:
    """Draw a number or an action for every state, or both: on the world's own drawing, else on a table."""
    own = isinstance(world, Environment) and (numbers is None or world.layout()["kind"] != "arms")
    cells = (1, 1) if own else _table_shape(world, shape)
    colours = _colours("visits" if label == "visits" and not own else "value")
    with drawing_axes(ax, _size(cells), grid=False) as axes:
        if own:
            axes.imshow(world.render("rgb", values=numbers, policy=actions))
            axes.set_axis_off()
            ends = None if numbers is None else value_range(world.layout(), world.state, numbers)
        else:
            shown: Any = actions if numbers is None else numbers
            ends = _table(axes, world, shown, actions, cells, colours)
        if ends is not None and numbers is not None:
            _colour_bar(axes, colours, *ends, label, lying=_is_low(cells))
        axes.set_title(title)
    return axes


def _is_low(cells: tuple[int, int]) -> bool:
    rows, columns = cells
    return columns >= LOW_RATIO * rows


def _size(cells: tuple[int, int]) -> tuple[float, float]:
    """Return the size of a figure with a table of so many rows and columns."""
    rows, columns = cells
    return (LOW_WIDTH, LOW_WIDTH * rows / columns + MARGINS) if _is_low(cells) else MAP_SIZE


def _colours(ramp: str) -> ListedColormap:
    from matplotlib.colors import ListedColormap

    return ListedColormap([shade(ramp, place) for place in np.linspace(0.0, 1.0, 128)])


def _colour_bar(
    axes: Axes, colours: ListedColormap, low: float, high: float, label: str, lying: bool
) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    figure = axes.get_figure(root=True)
    assert figure is not None
    scale = Normalize(low, high if high > low else low + 1.0)
    look: dict[str, Any] = {"location": "bottom", "aspect": 40, "pad": 0.05} if lying else {"pad": 0.02}
    bar = figure.colorbar(ScalarMappable(scale, colours), ax=axes, shrink=0.8, **look)
    bar.set_label(label)
    bar.outline.set_visible(False)


def _table(
    axes: Axes,
    world: Any,
    numbers: NDArray[Any],
    actions: NDArray[np.int64] | None,
    shape: tuple[int, int],
    colours: ListedColormap,
) -> tuple[float, float]:
    """Draw states row by row; return the range of the numbers. The end of an episode is left out."""
    shown, (rows, columns) = np.asarray(numbers[: _n_shown(world)], float), shape
    cells = np.full(rows * columns, np.nan)
    cells[: len(shown)] = shown
    low, high = float(shown.min()), float(shown.max())
    names = ARROWS.get(world.name.partition("-")[0], [str(a) for a in range(world.n_actions)])
    axes.imshow(cells.reshape(rows, columns), cmap=colours, vmin=low, vmax=high if high > low else low + 1.0)
    if len(shown) <= MOST_NUMBERED:
        for state, number in enumerate(shown.tolist()):
            words = str(state) if actions is None else names[int(actions[state])]
            dark = (number - low) / (high - low or 1.0) > 0.6
            axes.text(
                state % columns,
                state // columns,
                words,
                ha="center",
                va="center",
                fontsize=7 if actions is None else 11,
                color=style.PAPER_COLOUR if dark else style.GREY_COLOUR,
            )
    axes.set(xticks=range(columns) if rows == 1 and actions is not None else [], yticks=[])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if len(shown) > MOST_NUMBERED:
        what = "states, row by row"
    elif actions is None:
        what = "states by number"
    else:
        what = "state, and in it its best action" if rows == 1 else "best action of each state, row by row"
    axes.set_xlabel(what, fontsize=8)
    return low, high


def _n_shown(world: Any) -> int:
    """Return the number of states in a table, in which the end of an episode has no place."""
    return int(getattr(world, "end", world.n_states))


def _table_shape(world: Any, given: tuple[int, int] | None) -> tuple[int, int]:
    """Return the rows and columns of a table: as given, those of a grid of Gymnasium, or as square as can be."""
    n_states = _n_shown(world)
    if given is not None:
        if math.prod(given) < n_states:
            raise ValueError(f"shape {given} has no room for {n_states} states")
        return given
    plain = getattr(getattr(world, "env", None), "unwrapped", None)
    for name in ("desc", "shape"):  # FrozenLake, CliffWalking
        found: ArrayLike = getattr(getattr(plain, name, None), "shape", getattr(plain, name, None))  # type: ignore[assignment]
        if isinstance(found, tuple) and len(found) == 2 and math.prod(found) == n_states:
            return int(found[0]), int(found[1])
    sizes = getattr(world, "sizes", (n_states,))
    if n_states <= MOST_IN_ONE_ROW:
        columns = n_states
    elif len(sizes) > 1:  # the last parts of an observation along a row, and the first ones down the rows
        splits = [math.prod(sizes[k:]) for k in range(1, len(sizes))]
        columns = min(splits, key=lambda n: abs(math.log(n * n / n_states)))
    else:
        columns = min(MAX_LINE_STATES, math.ceil(math.sqrt(n_states)))
    return -(-n_states // columns), columns


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
