"""Worlds and beliefs: a number or an action for every state, drawn where the state is, and one row of a belief."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.agent import Agent
from bamdp.beliefs.belief import Belief
from bamdp.envs.drawing import shade
from bamdp.envs.environment import Environment
from bamdp.envs.picture import value_range
from bamdp.envs.registry import make_world
from bamdp.mdp.model import FiniteMDP
from bamdp.mdp.solution import Solution
from bamdp.mdp.solvers import policy_iteration
from bamdp.plot import style
from bamdp.simulation import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAP_SIZE = (4.4, 3.8)  # inches
MOST_NUMBERED = 150  # cells in which a number can still be read
ARROWS = {"FrozenLake": "←↓→↑", "CliffWalking": "↑→↓←"}  # of actions, in Gymnasium's grids
SAMPLES = 200  # models behind the intervals
MOST_SHOWN = 12  # next states
LEAST_SHOWN = 0.02  # probability of a next state that is shown


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

    An environment of this library is drawn by its own layout, in its present state; of states that share a place, such
    as the maze's with different flags, the present ones are shown. Other worlds are a table of states in the order of
    their numbers.

    Parameters
    ----------
    env
        The environment: one of this library or of Gymnasium, or its name.
    values
        An array [S], a `Solution`, or an `Agent`: the optimal values of the mean model of its belief; None for no
        values.
    policy
        An action for every state, drawn as an arrow (or, in a table, as a number): an array [S], a `Solution` or an
        `Agent`.
    shape
        Rows and columns of the table. By default those of Gymnasium's grids, else as square as possible.
    label
        The name of the quantity.
    title
        The title.
    ax
        Axes to draw on; by default those of a new figure.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    world: Any = make_world(env)
    numbers = _per_state(values, "values", float, world)
    actions = _per_state(policy, "policy", np.int64, world)
    own = isinstance(world, Environment) and (numbers is None or world.layout()["kind"] != "arms")
    ramp = "visits" if label == "visits" and not own else "value"
    colours = ListedColormap([shade(ramp, share) for share in np.linspace(0.0, 1.0, 128)])
    with style.drawing_axes(ax, MAP_SIZE, grid=False) as axes:
        if own:
            axes.imshow(world.render("rgb", values=numbers, policy=actions))
            axes.set_axis_off()
            ends = value_range(world.layout(), world.state, numbers) if numbers is not None else None
        else:
            ends = _draw_table(axes, world, actions if numbers is None else numbers, actions, shape, colours)
        if numbers is not None and ends is not None:
            scale = ScalarMappable(Normalize(ends[0], max(ends[1], ends[0] + 1e-9)), colours)
            axes.figure.colorbar(scale, ax=axes, shrink=0.8, label=label)
        axes.set_title(title)
    return axes


def policy(
    env: Any, policy: Any, *, shape: tuple[int, int] | None = None, title: str = "", ax: Axes | None = None
) -> Axes:
    """Draw an action for every state, and the values of states where they are known.

    Parameters
    ----------
    env
        The environment: one of this library or of Gymnasium, or its name.
    policy
        An array [S], a `Solution`, or an `Agent`: the optimal policy of the mean model of its belief.
    shape, title, ax
        As in :func:`value_map`.
    """
    known = policy if isinstance(policy, (Agent, Solution)) else None
    return value_map(env, known, policy=policy, shape=shape, title=title, ax=ax)


def visits(
    run: Run, env: Any, *, shape: tuple[int, int] | None = None, title: str = "", ax: Axes | None = None
) -> Axes:
    """Draw how often each state was visited.

    Parameters
    ----------
    run
        The run.
    env
        The environment of the run.
    shape, title, ax
        As in :func:`value_map`.
    """
    world = make_world(env)
    counts = np.bincount(run.states, minlength=world.n_states).astype(float)
    return value_map(world, counts, shape=shape, label="visits", title=title, ax=ax)


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
    """Draw the distribution of the next state: posterior mean and 90% interval of each probability.

    Only next states that may have a probability of at least 2% are shown.

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
        The seed of these draws.
    title
        The title; by default state and action.
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
    right = None if truth is None else _row(truth, s, a)
    weight = np.max([np.quantile(rows, 0.95, axis=0), mean, mean if right is None else right], axis=0)
    likely = np.argsort(-weight, kind="stable")[:MOST_SHOWN]
    shown = np.sort(likely[weight[likely] >= min(LEAST_SHOWN, weight.max())])
    low, high = np.quantile(rows[:, shown], [0.05, 0.95], axis=0)
    with style.drawing_axes(ax, (5.2, 3.2)) as axes:
        x = np.arange(len(shown))
        axes.bar(x, mean[shown], width=0.62, color=style.COLOURS[5], zorder=2, label="posterior mean")
        axes.vlines(x, low, high, color=style.TEXT_COLOUR, linewidth=1.3, zorder=3, label="90% interval")
        if right is not None:
            axes.plot(x, right[shown], "x", color=style.COLOURS[1], markersize=7, zorder=4, label="truth")
        axes.set_xticks(x, [str(t) for t in shown.tolist()])
        axes.set(xlabel="next state", ylabel="probability", ylim=(0.0, 1.02))
        axes.grid(False, axis="x")
        axes.legend(loc="best")
        axes.set_title(f"state {s}, action {a}" if title is None else title)
    return axes


def _row(model: Any, s: int, a: int) -> NDArray[np.float64]:
    """Return the probabilities [S] of the next states, of a model or given as such."""
    mdp = model.mdp if isinstance(model, Environment) else model
    if not isinstance(mdp, FiniteMDP):
        return np.asarray(mdp, float)
    states, chances = mdp.row(s, a)
    row = np.zeros(mdp.n_states)
    row[states] = chances
    return row


def _per_state(given: Any, name: str, dtype: Any, world: Any) -> Any:
    """Return an array [S] of what is given; of an agent or a solution, its values or its policy; of None None."""
    if given is None:
        return None
    if isinstance(given, Agent):
        given = policy_iteration(given.belief.mean(), given.discount)
    array = np.asarray(getattr(given, name) if isinstance(given, Solution) else given, dtype)
    if array.shape != (world.n_states,):
        expected = f"a number for each of the {world.n_states} states of {world.name}"
        raise ValueError(f"{name} must have {expected}, got shape {array.shape}")
    return array


def _draw_table(axes: Axes, world: Any, numbers: Any, actions: Any, shape: Any, colours: Any) -> Any:
    """Draw states row by row, without the end of an episode; return the range of the numbers."""
    shown = np.asarray(numbers[: int(getattr(world, "end", world.n_states))], float)
    rows, columns = _table_shape(world, shape, len(shown))
    cells = np.full(rows * columns, np.nan)
    cells[: len(shown)] = shown
    axes.imshow(cells.reshape(rows, columns), cmap=colours)
    names = ARROWS.get(world.name.partition("-")[0], [str(a) for a in range(world.n_actions)])
    for state, number in enumerate(shown if len(shown) <= MOST_NUMBERED else ()):
        words = str(state) if actions is None else names[int(actions[state])]
        colour = "white" if number > (shown.min() + shown.max()) / 2 else style.GREY_COLOUR
        axes.text(state % columns, state // columns, words, ha="center", va="center", color=colour)
    axes.set(xticks=[], yticks=[], xlabel="states, row by row" if actions is None else "best actions")
    return shown.min(), shown.max()


def _table_shape(world: Any, given: Any, n_states: int) -> Any:
    """Return the rows and columns of a table: as given, those of a grid of Gymnasium, or as square as possible."""
    if given is not None and math.prod(given) < n_states:
        raise ValueError(f"shape {given} has no room for {n_states} states")
    plain = getattr(getattr(world, "env", None), "unwrapped", None)
    grid = getattr(getattr(plain, "desc", plain), "shape", ())  # of FrozenLake, CliffWalking
    columns = math.ceil(math.sqrt(n_states))
    fits = len(grid) == 2 and math.prod(grid) == n_states
    return given or (grid if fits else (-(-n_states // columns), columns))
