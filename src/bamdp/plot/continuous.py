"""Plots for continuous states: phase portraits of a belief, sampled plans, returns over real steps, and film strips."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks
from bamdp.plot import style
from bamdp.plot.curves import draw_mean, runs_of
from bamdp.simulation import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
Scene = Callable[[Array], tuple[ArrayLike, float]]
PORTRAIT_SIZE = (5.2, 3.8)  # inches
ARROWS, CELLS = 17, 60  # per axis of a portrait
TRAIL, FADED = 3, 0.35  # earlier poses in a frame of a strip, and the opacity of the most recent one


def phase_portrait(
    agent: Any,
    *,
    coordinates: tuple[int, int] = (0, 1),
    action: Any = None,
    at: ArrayLike | None = None,
    bounds: Sequence[tuple[float, float]] | None = None,
    path: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Plot the expected change of two coordinates as arrows, and its uncertainty as a colour.

    The colour is the predictive standard deviation of the change relative to the width of the axis, for the
    coordinate where this is larger; dark means uncertain. Dots are visited states.

    Parameters
    ----------
    agent
        A `ContinuousAgent` or its belief.
    coordinates
        The two coordinates of the state. An angle observed as its cosine and sine is a single coordinate of the state,
        in radians.
    action
        The action, by default the middle of the action space, or the first action if actions are discrete.
    at
        The state [d] that fixes the other coordinates, by default the mean of the visited states.
    bounds
        The limits (low, high) of both axes; by default a full turn for an angle, otherwise the range of visited states.
    path
        States [T, d] to connect by a line, such as ``[agent.system.state(obs) for obs in run.states]``.
    names
        The names of the axes.
    title
        The title.
    ax
        Axes to plot on, by default those of a new figure.
    """
    belief = getattr(agent, "belief", agent)
    system = belief.system
    x, y = (_checks.index(j, "coordinate", system.n_states) for j in coordinates)
    seen = np.array(belief.data.obs).reshape(-1, system.n_states)
    if not len(seen) and (bounds is None or at is None):
        raise ValueError("nothing was observed yet: give bounds= and at=, or let the agent act first")
    ranges = bounds or [_range(seen[:, j], j in system.state_angles) for j in (x, y)]
    base = seen.mean(axis=0) if at is None else np.asarray(at, float)

    def changes(n: int) -> tuple[Array, Array, Array, Array]:
        """Return an n by n grid of points with the change and its standard deviation at each."""
        grid = np.meshgrid(*(np.linspace(*ends, n) for ends in ranges))
        states = np.tile(base, (n * n, 1))
        states[:, x], states[:, y] = grid[0].ravel(), grid[1].ravel()
        chosen = system.action(np.zeros(system.n_controls)) if action is None else action
        observations = system.observations(states)
        after, deviation = belief.predict(observations, np.array([chosen] * len(states)))
        change, turning = after - states, list(system.state_angles)
        change[:, turning] = (change[:, turning] + np.pi) % (2.0 * np.pi) - np.pi
        return grid[0], grid[1], change, deviation

    with style.drawing_axes(ax, PORTRAIT_SIZE, grid=False) as axes:
        across, up, _, deviation = changes(CELLS)
        widths = np.array([high - low for low, high in ranges])
        unsure = (deviation[:, [x, y]] / widths).max(axis=1).reshape(CELLS, CELLS)
        colours = axes.pcolormesh(across, up, unsure, cmap="Blues", shading="gouraud", rasterized=True)
        axes.figure.colorbar(colours, ax=axes, label="deviation of the change / axis width")
        across, up, change, _ = changes(ARROWS)
        arrows = change[:, [x, y]] / widths
        axes.quiver(across, up, *arrows.T, angles="uv", pivot="mid", color=style.TEXT_COLOUR, width=0.0025)
        axes.plot(seen[:, x], seen[:, y], ".", color=style.COLOURS[1], markersize=4, label="visited")
        if path is not None:
            line = np.array(path, float)[:, [x, y]]
            if x in system.state_angles:  # interrupted where an angle wraps around
                line[1:][np.abs(np.diff(line[:, 0])) > np.pi] = np.nan
            axes.plot(*line.T, color=style.COLOURS[1], linewidth=1.2, label="path")
        labels = names or [f"coordinate {j}" for j in (x, y)]
        axes.set(xlim=ranges[0], ylim=ranges[1], xlabel=labels[0], ylabel=labels[1])
        axes.legend(loc="upper right", frameon=True, framealpha=0.9)
        axes.set_title(title)
    return axes


def plans(
    plan: Any, *, coordinate: int = 0, name: str | None = None, title: str = "", ax: Axes | None = None
) -> Axes:
    """Plot the predicted trajectory of each candidate of a decision in its own model; the chosen one is thick.

    Parameters
    ----------
    plan
        The `ContinuousPlan` from ``agent.plan(obs)``; the candidates of ``dss`` are plans for sampled models.
    coordinate
        The coordinate of the observation.
    name
        Name of the coordinate.
    title, ax
        As in :func:`phase_portrait`.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    candidates = [choice for choice in plan.candidates if len(choice.states)] or [plan]
    values = np.array([choice.value for choice in candidates])
    scale = ScalarMappable(Normalize(values.min(), max(values.max(), values.min() + 1e-9)), "viridis_r")
    _checks.index(coordinate, "coordinate", np.shape(plan.states)[1])
    with style.drawing_axes(ax) as axes:
        for rank, choice in enumerate(candidates):
            look = {"linewidth": 2.6, "zorder": 3, "label": "chosen"} if rank == 0 else {"linewidth": 1.0}
            axes.plot(np.asarray(choice.states)[:, coordinate], color=scale.to_rgba(choice.value), **look)
        if len(candidates) > 1:
            axes.figure.colorbar(scale, ax=axes, label="value")
        axes.set(xlabel="steps ahead", ylabel=name or f"coordinate {coordinate}")
        axes.legend()
        axes.set_title(title or f"plans of {len(candidates)} models")
    return axes


def real_steps(
    curves: Mapping[str, Any],
    *,
    anchors: Mapping[str, float] | None = None,
    solved: float | None = None,
    log: bool = True,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Plot returns against the number of real steps, with published step counts as vertical lines.

    Parameters
    ----------
    curves
        A dictionary from labels to a pair (steps [P], returns [P] or [R, P]), or to a `Run` or a list of runs, whose
        returns are plotted at the ends of episodes. Several runs are plotted as their mean with a 95% bootstrap band.
    anchors
        A dictionary from names of other methods to the number of real steps they need to solve the task.
    solved
        The return at which the task counts as solved, plotted as a horizontal line.
    log
        Whether the step axis is logarithmic.
    title, ax
        As in :func:`phase_portrait`.
    """
    with style.drawing_axes(ax) as axes:
        for index, (label, curve) in enumerate(curves.items()):
            draw_mean(axes, *_curve(curve, label), label, index)
        if log:
            style.log_axis(axes)
        if solved is not None:
            axes.axhline(solved, **style.REFERENCE_LINE)
            axes.text(1.0, solved, "solved", transform=axes.get_yaxis_transform(), ha="right", va="bottom")
        look: dict[str, Any] = {"color": style.GREY_COLOUR, "transform": axes.get_xaxis_transform()}
        for name, at in (anchors or {}).items():
            axes.axvline(at, color=style.GREY_COLOUR, linewidth=0.9, linestyle=(0, (1, 1.5)))
            axes.text(at, 0.02, f"{name} {at:g}", rotation=90, ha="right", va="bottom", fontsize=8, **look)
        axes.set(xlabel="real steps (log)" if log else "real steps", ylabel="return of an episode")
        axes.legend(loc="best")
        axes.set_title(title)
    return axes


def film_strip(
    observations: ArrayLike,
    scene: Any,
    *,
    frames: int = 8,
    seconds: float | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Plot an episode of a pendulum, a cart-pole or a similar system as a strip of frames with motion trails.

    Parameters
    ----------
    observations
        The observations [T, D] of an episode.
    scene
        The environment, one of ``TipCartPole``, ``PilcoCartPole``, ``SparsePendulum``, ``Pendulum-v1``, ``CartPole-v1``
        and ``Acrobot-v1``; or a function of an observation that returns points [k, 2], to be connected by lines, and
        the width of a cart at the first point (0 for none).
    frames
        The number of frames.
    seconds
        Duration of a step; without it, frames are labelled by step numbers.
    title, ax
        As in :func:`phase_portrait`.
    """
    from matplotlib.patches import Rectangle

    states = np.atleast_2d(np.asarray(observations, float))
    draw = scene if callable(scene) and not hasattr(scene, "step") else scene_of(scene)
    n = min(_checks.integer(frames, "frames"), len(states))
    ends = np.linspace(0, len(states) - 1, n).round().astype(int)
    figures = [draw(state) for state in states]
    points, cart = np.array([figure[0] for figure in figures], float), figures[0][1]  # [T, k, 2]
    reach = float(np.abs(points - points[:, :1]).max())
    half = 1.2 * max(reach, 0.6 * cart, 1e-9)
    with style.drawing_axes(ax, (max(n, 3), 1.5), grid=False) as axes:
        for frame, end in enumerate(ends):
            middle = 2.0 * half * frame
            window = Rectangle((middle - half, -half), 2 * half, 2 * half, fill=False, ec="#dddddd", lw=0.8)
            axes.add_patch(window)
            if cart:
                axes.hlines(-0.25 * cart, middle - half, middle + half, color="#999999", linewidth=0.8)
            shift = [middle - points[end, 0, 0], -points[end, 0, 1]]  # the frame follows the first point
            for t in range(max(end - TRAIL, 0 if frame == 0 else ends[frame - 1]), end + 1):
                opacity = 1.0 if t == end else FADED / (end - t)
                _draw_figure(axes, points[t] + shift, cart, opacity, window)
            label = f"step {end}" if seconds is None else f"{end * seconds:.3g} s"
            axes.annotate(label, (middle, -1.05 * half), ha="center", va="top", fontsize=8)
        axes.set(xlim=(-half, half * (2 * n - 1)), ylim=(-1.35 * half, 1.02 * half), aspect="equal")
        axes.set_axis_off()
        axes.set_title(title)
    return axes


def scene_of(env: Any) -> Scene:
    """Return the function that converts an environment's observations to points; see :func:`film_strip`."""
    name = type(env.unwrapped).__name__
    if name not in SCENES:
        known = ", ".join(sorted(SCENES))
        raise ValueError(f"there is no drawing of {name}, only of {known}; give a function, see film_strip")
    return SCENES[name]


def _pole(angle: float, length: float, base: ArrayLike = (0.0, 0.0)) -> Array:
    """Return both ends of a rod whose angle is measured anticlockwise from upright."""
    return np.array([base, np.add(base, [-length * np.sin(angle), length * np.cos(angle)])])


def _acrobot(obs: Array) -> tuple[Array, float]:
    first, both = np.arctan2(obs[1], obs[0]), np.arctan2(obs[1], obs[0]) + np.arctan2(obs[3], obs[2])
    elbow = np.array([np.sin(first), -np.cos(first)])
    return np.array([[0.0, 0.0], elbow, elbow + np.array([np.sin(both), -np.cos(both)])]), 0.0


SCENES: dict[str, Scene] = {
    "PendulumEnv": lambda obs: (_pole(np.arctan2(obs[1], obs[0]), 1.0), 0.0),
    "SparsePendulum": lambda obs: (_pole(obs[0], 0.5), 0.0),
    "TipCartPole": lambda obs: (_pole(obs[2], 0.6, (obs[0], 0.0)), 0.3),
    "PilcoCartPole": lambda obs: (_pole(obs[2], 0.5, (obs[0], 0.0)), 0.3),
    "CartPoleEnv": lambda obs: (_pole(-obs[2], 1.0, (obs[0], 0.0)), 0.5),
    "AcrobotEnv": _acrobot,
}
"""How systems are drawn, by the name of their class."""


def _draw_figure(axes: Axes, points: Array, cart: float, opacity: float, window: Any) -> None:
    from matplotlib.patches import Rectangle

    look: dict[str, Any] = {"alpha": opacity}
    if cart:
        corner = points[0] - [0.5 * cart, 0.25 * cart]
        box = Rectangle(tuple(corner), cart, 0.5 * cart, color=style.GREY_COLOUR, linewidth=0, **look)
        axes.add_patch(box).set_clip_path(window)
    rod = axes.plot(*points.T, color=style.COLOURS[0], linewidth=2.0, solid_capstyle="round", **look)
    tip = axes.plot(*points[-1], "o", color=style.COLOURS[1], markersize=4.5, markeredgewidth=0, **look)
    for line in (*rod, *tip):
        line.set_clip_path(window)


def _range(values: Array, turns: bool) -> tuple[float, float]:
    """Return the limits of an axis: a full turn for angles, or the visited range plus a tenth on either side."""
    if turns:
        return -np.pi, np.pi
    low, high = float(values.min()), float(values.max())
    margin = 0.1 * (high - low) or 1.0
    return low - margin, high + margin


def _curve(curve: Any, label: str) -> tuple[NDArray[np.int64], Array]:
    """Return steps [P] and returns [R, P] from a pair or from runs."""
    if isinstance(curve, tuple) and not isinstance(curve[0], Run):
        return np.asarray(curve[0]), np.atleast_2d(np.asarray(curve[1], float))
    runs = runs_of(curve, label)
    n = min(len(run.ends) for run in runs)
    if not n:
        raise ValueError(f"{label}: a run has no completed episode")
    steps = np.mean([run.ends[:n] + 1 for run in runs], axis=0).round().astype(int)
    return steps, np.array([run.episode_returns[:n] for run in runs])
