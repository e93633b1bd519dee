"""Displayed data of a run, in plain JSON: the environment once, then one frame per step.

An :class:`~bamdp.envs.Environment` provides a layout, labels and a true model for comparison. For Gymnasium
environments and functions, only numbers are known. Their states are shown as cells in a square, or on a grid if the
environment declares one, next to the environment's own picture (``rgb_array``).

For every planner, beliefs are displayed through the posterior mean model. Each state shows the entropy of the
predicted next state (mean over actions, in bits), as well as its value and best action under the mean model.
"""

from __future__ import annotations

import base64
import io
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from bamdp.beliefs.base import shared_weights
from bamdp.beliefs.belief import Belief
from bamdp.envs.ceilings import optimal_gain, optimal_total
from bamdp.envs.environment import Environment, World
from bamdp.envs.registry import make_world
from bamdp.mdp.build import entry_positions
from bamdp.mdp.model import FiniteMDP
from bamdp.mdp.solvers import policy_iteration, value_iteration

if TYPE_CHECKING:
    from bamdp.studio.playback import Playback

MAX_PICTURE_SIDE = 640  # pixels
VALUE_TOLERANCE = 2e-4  # for display only
MAX_CURVE_POINTS = 400  # in a learning curve
MAX_NEXT_STATES = 8  # listed per action
OPTIMUM_STEPS = 1000  # horizon for averaging the optimum of an episodic or large environment


def watched_world(spec: str) -> World:
    """Create an environment to watch; Gymnasium environments render their own picture if possible."""
    world = make_world(spec)
    modes = (getattr(getattr(world, "env", None), "metadata", None) or {}).get("render_modes", ())
    if "render_mode" in spec or "rgb_array" not in modes:
        return world
    try:
        painted = make_world(f"{spec}{',' if '=' in spec.rpartition(':')[2] else ':'}render_mode=rgb_array")
        painted.reset(seed=0)
    except Exception:  # rendering may need missing packages and is optional
        return world
    return painted if own_picture(painted) else world


def own_picture(world: World) -> str | None:
    """Return the environment's picture of its current state as a data URL, if it provides one."""
    gym_env = getattr(world, "env", None)
    if getattr(gym_env, "render_mode", None) != "rgb_array":
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Gymnasium's warnings about metadata
            pixels = np.asarray(gym_env.render())  # type: ignore[union-attr]
    except Exception:  # environments may raise anything, and the picture is optional
        return None
    return _data_address(pixels[:, :, :3].astype(np.uint8)) if pixels.ndim == 3 and pixels.size else None


def _data_address(pixels: np.ndarray) -> str:
    from PIL import Image

    image = Image.fromarray(pixels)
    image.thumbnail((MAX_PICTURE_SIDE, MAX_PICTURE_SIDE))
    target = io.BytesIO()
    image.save(target, "PNG")
    return f"data:image/png;base64,{base64.b64encode(target.getvalue()).decode()}"


def describe_world(env: World, discount: float, end: int) -> dict[str, Any]:
    """Return the data that stay constant during a run: layout, names and, if known, the true model's solution."""
    description = {
        **env.layout(),
        "n_states": env.n_states,
        "end": end,
    }
    if not isinstance(env, Environment):
        return {**description, "optimum": None, "truth": None}
    best = policy_iteration(env.mdp, discount)
    return {
        **description,
        "optimum": optimum_rate(env),
        "truth": {"value": rounded(best.values), "policy": best.policy.tolist()},
    }


def optimum_rate(env: Environment) -> float:
    """Return the long-run reward per step of an agent that knows the model."""
    endless = optimal_gain(env.mdp)
    if endless is not None:
        return endless
    steps = min(env.horizon, OPTIMUM_STEPS)
    return optimal_total(env, steps) / steps


class Watcher:
    """Source of a run's frames; the values of each frame are warm-started from the previous one."""

    def __init__(self, run: Playback, world: dict[str, Any] | None = None) -> None:
        self.run = run
        self.world = world or describe_world(run.env, run.setting.first_discount, run.end)
        self._values: NDArray[np.float64] | None = None

    def frame(self) -> dict[str, Any]:
        """Return the data displayed for the current step."""
        run, belief = self.run, self.run.agent.belief
        mean = belief.mean()
        entropy = row_entropy(mean)
        solution = value_iteration(mean, run.agent.discount, tol=VALUE_TOLERANCE, initial=self._values)
        self._values = solution.values
        return {
            "t": run.t,
            "known": len(run.steps),  # recorded steps available for playback
            "state": run.state,
            "total": run.total_reward,
            "last_action": run.steps[run.t - 1].action if run.t else None,
            "picture": own_picture(run.env),
            "visits": run.visits.sum(axis=1).tolist(),
            "entropy": rounded(_over_actions(entropy, belief)),
            "value": rounded(solution.values),
            "policy": solution.policy.tolist(),
            "expects": expectations(run, run.state),
            "weights": model_weights(belief, run.env),
            "curve": reward_curve(run),
        }


def row_entropy(mdp: FiniteMDP) -> NDArray[np.float64]:
    """Return the entropy of the next state in bits [S, A]; missing rows have entropy 0."""
    rows, S = mdp.rows, mdp.n_states
    flat = np.maximum(rows.background, 0.0) / S
    lengths = rows.span[:, 1] - rows.span[:, 0]
    row_of, at = entry_positions(rows.span)
    listed = np.bincount(row_of, weights=_surprise(rows.prob[at] + flat[row_of]), minlength=len(lengths))
    return (listed + (S - lengths) * _surprise(flat)).reshape(S, mdp.n_actions)


def _surprise(p: NDArray[np.float64]) -> NDArray[np.float64]:
    return entr(p) / math.log(2.0)


def _over_actions(table: NDArray[np.float64], belief: Belief) -> NDArray[np.float64]:
    allowed = belief.space.allowed & ~belief.space.terminal[:, None]
    return (table * allowed).sum(axis=1) / np.maximum(allowed.sum(axis=1), 1)


def expectations(run: Playback, state: int) -> list[dict[str, Any]]:
    """Return the agent's expectations for each action in a state: most likely next states and reward."""
    belief, visits, rows = run.agent.belief, run.visits, []
    for a in np.flatnonzero(belief.space.allowed[state] & ~belief.space.terminal[state]).tolist():
        chances = belief.predictive(state, a)
        order = np.argsort(-chances, kind="stable")[:MAX_NEXT_STATES]
        rows.append(
            {
                "action": a,
                "label": run.env.action_label(a, state),
                "visits": int(visits[state, a]),
                "reward": round(belief.expected_reward(state, a), 4),
                "entropy": round(float(_surprise(chances).sum()), 4),
                "next": [[int(s), round(float(chances[s]), 4)] for s in order if chances[s] > 0.0],
                "rest": round(float(1.0 - chances[order].sum()), 4),
            }
        )
    return rows


def model_weights(belief: Belief, env: World) -> list[dict[str, Any]] | None:
    """Return the posterior weights if the belief is a distribution over alternatives, otherwise None."""
    if not shared_weights(belief.transitions):
        return None
    posterior = belief.weights
    names = [f"model {i}" for i in range(len(posterior))]
    if env.name == "maze_door" and len(posterior) == 2:
        names = ["door open", "door closed"]
    elif hasattr(belief.prior, "priors"):
        names = [type(part).__name__ for part in belief.prior.priors]
    return [{"name": name, "weight": round(float(w), 4)} for name, w in zip(names, posterior)]


def reward_curve(run: Playback) -> list[list[float]]:
    """Return the cumulative reward over time at a limited number of points."""
    totals = np.concatenate([[0.0], np.cumsum([step.reward for step in run.steps[: run.t]])])
    shown = np.unique(np.linspace(0, run.t, min(run.t + 1, MAX_CURVE_POINTS)).round().astype(int))
    return [[int(t), round(float(totals[t]), 4)] for t in shown]


def rounded(values: Any) -> list[float | None]:
    """Return numbers rounded for display, replacing non-finite values by None."""
    return [round(float(x), 5) if math.isfinite(x) else None for x in np.asarray(values, float)]


def finite(value: float) -> float | None:
    """Return a number, or None if it is not finite."""
    return float(value) if math.isfinite(value) else None


def short(value: float | None) -> str:
    """Format a number for display: an integer, or three significant digits."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.0f}" if value == int(value) else f"{value:#.3g}".rstrip(".")
