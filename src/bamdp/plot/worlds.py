"""Plots of a value or an action for every state of an environment, and of one row of a belief.

Bandits, and environments whose states lie on a line or have no natural positions, are plotted as charts over the names
of the states (or arms), and others as maps. Terminal states are blank; unvisited states are hollow or faint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.agent import Agent
from bamdp.beliefs.belief import Belief
from bamdp.envs.drawing import paint, shade
from bamdp.envs.environment import Environment, World
from bamdp.envs.picture import draw_world
from bamdp.envs.registry import make_world
from bamdp.mdp.model import FiniteMDP
from bamdp.mdp.solvers import Solution, policy_iteration
from bamdp.plot import style
from bamdp.registry import label as label_of
from bamdp.simulation import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAP_SIZE, CHART_SIZE = (4.4, 3.8), (5.2, 3.2)  # inches
MOST_CHARTED = 60  # states on a line
MOST_TICKS = 20  # tick labels on a line
SAMPLES = 200  # models sampled for the intervals
MOST_SHOWN = 12  # next states
LEAST_SHOWN = 0.02  # smallest probability of a next state to show


def values(
    env: Any,
    values: Any,
    *,
    policy: Any = None,
    visited: Any = None,
    label: str = "value",
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot a value for every state: as a line chart if the states lie on a line, otherwise as colours on a map.

    If several states share a place, such as a maze cell with different flags, the map shows those that match the
    environment's current state.

    Parameters
    ----------
    env
        An environment from this library or Gymnasium, or its name.
    values
        An array [S], a `Solution`, or an `Agent`, for the optimal values of its belief's mean model; None for no
        values. For a bandit, a number for each arm.
    policy
        An action for every state, plotted as an arrow or a word: an array [S], a `Solution` or an `Agent`.
    visited
        The visited states, to distinguish them from the others: a `Run` or a mask [S]; by default those visited by the
        agent.
    label
        The name of the quantity.
    title
        The title; by default it names the source of the values.
    ax
        Axes to plot on, by default those of a new figure.
    """
    world = _numbered(env)
    numbers, actions = _per_state(values, "values", world), _per_state(policy, "policy", world)
    if visited is None:
        visited = next((one for one in (values, policy) if isinstance(one, Agent)), None)
    title = _whose(values, "values") if title is None else title
    return _draw(world, numbers, actions, visited, label, title, ax)


def policy(
    env: Any, policy: Any, *, visited: Any = None, title: str | None = None, ax: Axes | None = None
) -> Axes:
    """Plot an action for every state; maps also show the values, if they are known.

    Parameters
    ----------
    env
        An environment from this library or Gymnasium, or its name.
    policy
        An array [S] (-1 for no action), a `Solution`, or an `Agent`, for ``agent.policy()``, the optimal policy of its
        mean model. (The agent may act differently in order to learn; see ``agent.plan(state)``.)
    visited, ax
        As in :func:`values`.
    title
        The title; by default it names the source of the policy.
    """
    world = _numbered(env)
    chart = _is_chart(world.layout())  # charts show only one quantity
    known = policy if isinstance(policy, (Agent, Solution)) and not chart else None
    title = _whose(policy, "policy") if title is None else title
    if visited is None and isinstance(policy, Agent):
        visited = policy
    return values(world, known, policy=policy, visited=visited, title=title, ax=ax)


def visits(run: Run, env: Any, *, title: str = "", ax: Axes | None = None) -> Axes:
    """Plot the number of visits to each state.

    Parameters
    ----------
    run
        The run.
    env
        The environment of the run.
    title, ax
        As in :func:`values`.
    """
    world = _numbered(env)
    arms = world.geometry.kind == "arms"
    size = world.n_actions if arms else world.n_states
    counts = np.bincount(run.actions if arms else run.states, minlength=size).astype(float)
    return _draw(world, counts, None, None, "visits", title, ax)


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
    """Plot the posterior of the next-state distribution: mean and 90% interval of each probability.

    Only next states whose probability may be at least 2% are shown.

    Parameters
    ----------
    belief
        A `Belief`, or an `Agent` with one.
    state, action
        The state-action pair.
    truth
        The true probabilities, plotted as crosses: an array [S], a `FiniteMDP`, or an `Environment`.
    samples
        The number of models sampled from the belief for the intervals.
    seed
        Seed of these samples.
    title
        The title; by default the state and the action.
    ax
        Axes to plot on, by default those of a new figure.
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
    """Return the next-state probabilities [S] from a model or an array."""
    mdp = model.mdp if isinstance(model, Environment) else model
    if not isinstance(mdp, FiniteMDP):
        return np.asarray(mdp, float)
    states, chances = mdp.row(s, a)
    row = np.zeros(mdp.n_states)
    row[states] = chances
    return row


def _is_chart(data: dict[str, Any]) -> bool:
    return data["kind"] == "arms" or (bool(data["axis"]) and len(data["positions"]) <= MOST_CHARTED)


def _draw(
    world: World, numbers: Any, actions: Any, visited: Any, label: str, title: str, ax: Axes | None
) -> Axes:
    """Plot values [S] and actions [S] as a chart or on a map."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    data, seen = world.layout(), _visited(visited, world)
    if _is_chart(data):
        with style.drawing_axes(ax, CHART_SIZE) as axes:
            chosen = actions if numbers is None else numbers
            _draw_chart(axes, data, chosen, seen, None if numbers is None else label)
            axes.set_title(title)
        return axes
    with style.drawing_axes(ax, MAP_SIZE, grid=False) as axes:
        state = getattr(world, "state", 0)
        state, ramp = 0 if state == world.end else state, "visits" if label == "visits" else "value"
        drawn = draw_world(data, state, numbers, actions, visited=seen, agent=False, ramp=ramp)
        paint(axes, drawn.figure)
        if drawn.range[0] < drawn.range[1]:
            colours = ListedColormap([shade(ramp, level) for level in np.linspace(0.0, 1.0, 128)])
            scale = ScalarMappable(Normalize(*drawn.range), colours)
            axes.figure.colorbar(scale, ax=axes, shrink=0.8, label=label)
        faint = "" if seen is None or seen.all() else "\nfaint: never visited"
        axes.set_title(title + faint)
    return axes


def _draw_chart(axes: Axes, data: dict[str, Any], given: Any, seen: Any, label: str | None) -> None:
    """Plot a value for every state (or arm), or an action if there is no label."""
    arms = data["kind"] == "arms" and label is not None
    names = data["action_labels" if arms else "state_labels"]
    x = np.setdiff1d(np.arange(len(names)), data["terminal"])
    x = x if label else x[given[x] >= 0]
    known = x if seen is None or arms else x[seen[x]]
    dots: Any = {"color": style.COLOURS[0], "marker": "o", "linewidth": 0.0}
    drawn = "default" if label else "steps-mid"
    if not arms:  # arms have no order
        axes.plot(x, given[x], color=style.COLOURS[0], linewidth=0.8, alpha=0.5, drawstyle=drawn)
    axes.plot(x, given[x], markerfacecolor="white", label="never visited", **dots)
    axes.plot(known, given[known], label="visited", **dots)
    if len(known) < len(x):
        axes.legend()
    shown = x[:: -(-len(names) // MOST_TICKS)].tolist()
    axes.set_xticks(shown, [names[s] for s in shown])
    axes.set(xlabel="" if arms else data["axis"] or "state", ylabel=label or "action")
    if label is None:
        axes.set_yticks(range(data["n_actions"]), data["action_labels"])
        axes.set_ylim(-0.5, data["n_actions"] - 0.5)


def _numbered(env: Any) -> World:
    """Return an environment with numbered states."""
    world = make_world(env)
    if not world.n_states:
        raise ValueError(
            f"the states of {world.name} are not numbered; draw phase_portrait, or give bins to its environment"
        )
    return world


def _per_state(given: Any, name: str, world: World) -> Any:
    """Return the values or the policy of an agent, a solution or an array as an array [S]; pass None through."""
    if given is None:
        return None
    arms = name == "values" and world.geometry.kind == "arms"
    if isinstance(given, Agent) and name == "policy":
        given = given.policy()
    elif arms and isinstance(
        given, (Agent, Solution)
    ):  # the value of the only state says nothing about the arms
        mdp: Any = given.mean_model() if isinstance(given, Agent) else world.mdp
        given = mdp.expected_rewards[0]
    elif isinstance(given, Agent):
        given = policy_iteration(given.mean_model(), given.discount)
    array = np.asarray(getattr(given, name) if isinstance(given, Solution) else given)
    size, things = (world.n_actions, "arms") if arms else (world.n_states, "states")
    if array.shape != (size,):
        raise ValueError(
            f"{name} must have a number for each of the {size} {things} of {world.name}, got shape {array.shape}"
        )
    return array.astype(np.int64 if name == "policy" else float)


def _visited(given: Any, world: World) -> NDArray[np.bool_] | None:
    """Return a mask [S] of visited states, from an agent, a run or a mask."""
    if given is None:
        return None
    if isinstance(given, Agent):
        if len(given.history) + given.belief.episodes.starts.sum() < given.belief.n_observed:
            return None  # the agent was loaded or created with a belief: its history is incomplete
        return np.isin(np.arange(world.n_states), [step[0] for step in given.history])
    if isinstance(given, Run):
        return np.bincount(given.states, minlength=world.n_states) > 0
    mask = np.asarray(given, bool)
    if mask.shape != (world.n_states,):
        raise ValueError(f"visited must be a Run or a mask [{world.n_states}], got shape {mask.shape}")
    return mask


def _whose(given: Any, name: str) -> str:
    """Return a title that names the source of the values or the policy."""
    if isinstance(given, Agent):
        n = given.belief.n_observed
        return f"{label_of(given.planner)} after {n:,} steps:\noptimal {name} of its mean model"
    return f"optimal {name} of the known model" if isinstance(given, Solution) else ""
