"""Benchmark systems with continuous states, as Gymnasium environments.

Each is a subclass of :class:`Task`: a state moves by :meth:`~Task.move`, the agent sees :meth:`~Task.observe` of it,
and what is usually known beforehand can be handed to an agent: ``angles``, the coordinates of an observation that are
angles in radians; ``reward(obs, action, next_obs)`` and ``terminated(obs, action, next_obs)``, vectorised over all
leading axes. The reward of a step is exactly that function of what was observed. Importing :mod:`bamdp.continuous`
registers them.

References ---------- V. Mehta, I. Char, J. Abbate et al., Exploration via Planning for Information about the Optimal
Trajectory (TIP), 2022. M. P. Deisenroth, A. McHutchon, J. Hall and C. E. Rasmussen, PILCO software package V0.9,
2013. S. Curi, F. Berkenkamp and A. Krause, Efficient Model-Based Reinforcement Learning through Optimistic Policy
Search and Planning (H-UCRL), 2020. K. J. Åström and A. Helmersson, Dual control of an integrator with unknown gain,
1986.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

Array = NDArray[np.float64]


def wrapped(angle: ArrayLike) -> Array:
    """Return angles in [-π, π)."""
    return (np.asarray(angle, float) + np.pi) % (2.0 * np.pi) - np.pi


def tolerance(values: Array, low: float, high: float, margin: float) -> Array:
    """Return 1 within [low, high] and outside a Gaussian tail, which is 0.1 at a distance of ``margin``."""
    distance = np.maximum(np.maximum(low - values, values - high), 0.0)
    return np.asarray(0.1 ** ((distance / margin) ** 2))


class Task(gymnasium.Env[Array, Array]):
    """A system with a state in ℝⁿ and a task; subclasses say how it begins, moves, is observed and pays.

    ``reset(options={"state": s})`` begins in a state of choice. The spaces give the scale of observations and the
    limits of actions: an action beyond them is clipped, an observation may lie beyond them.

    Attributes
    ----------
    angles : tuple of int
        The coordinates of an observation that are angles.
    horizon : int
        After how many steps ``gymnasium.make`` truncates an episode.
    """

    metadata = {"render_modes": []}  # noqa: RUF012
    angles: tuple[int, ...] = ()
    horizon = 200
    scale: tuple[float, ...]  # of observations
    force: tuple[float, ...] = (1.0,)  # the largest, of each action

    def __init__(self) -> None:
        high = np.array(self.scale)
        self.observation_space = Box(-high, high, dtype=np.float64)
        limit = np.array(self.force)
        self.action_space = Box(-limit, limit, dtype=np.float64)
        self.state = np.zeros(len(high))
        self.observation = self.state
        self.episode_steps = self.horizon

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict]:
        """Begin an episode and return its first observation."""
        super().reset(seed=seed)
        given = (options or {}).get("state")
        self.state = self.initial() if given is None else np.array(given, float)
        if self.state.shape != self.observation_space.shape:
            raise ValueError(
                f"a state has {len(self.scale)} numbers, got an array of shape {self.state.shape}"
            )
        self.observation = self.observe()
        return self.observation, {}

    def step(self, action: ArrayLike) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Take an action and return what Gymnasium's ``step`` returns."""
        given = np.asarray(action, float).reshape(len(self.force))
        if not np.isfinite(given).all():
            raise ValueError(f"an action must be finite, got {action!r}")
        before, clipped = self.observation, np.clip(given, -np.array(self.force), self.force)
        self.state = self.move(self.state, clipped)
        self.observation = self.observe()
        reward = float(self.reward(before, clipped, self.observation))
        return self.observation, reward, bool(self.terminated(before, clipped, self.observation)), False, {}

    def initial(self) -> Array:
        """Draw the first state of an episode."""
        raise NotImplementedError

    def move(self, state: Array, action: Array) -> Array:
        """Return the next state."""
        raise NotImplementedError

    def observe(self) -> Array:
        """Return what is seen of the present state, angles in [-π, π)."""
        seen = self.state.copy()
        seen[list(self.angles)] = wrapped(seen[list(self.angles)])
        return seen

    @staticmethod
    def reward(obs: Array, action: Array, next_obs: Array) -> Array:
        """Return the rewards [...] of steps from ``obs`` [..., n] by ``action`` [..., m] to ``next_obs`` [..., n]."""
        raise NotImplementedError

    @staticmethod
    def terminated(obs: Array, action: Array, next_obs: Array) -> NDArray[np.bool_]:
        """Return whether an episode ends [...] by a step; here none does."""
        return np.zeros(np.shape(next_obs)[:-1], bool)


def cart_pole_derivative(
    state: Array, force: float, length: float, cart: float = 0.5, pole: float = 0.5
) -> Array:
    """Return the time derivative of (x, v, θ, ω): a uniform rod on a cart with friction 0.1, θ = 0 upright.

    The pole's tip is at x - length·sin θ.
    """
    _, v, angle, omega = state
    sine, cosine = np.sin(angle), np.cos(angle)
    gravity, push, total = 9.82, force - 0.1 * v, cart + pole
    swing = pole * length * omega**2 * sine
    room = 4.0 * total - 3.0 * pole * cosine**2
    return np.array(
        [
            v,
            (4.0 * push - 2.0 * swing + 3.0 * pole * gravity * sine * cosine) / room,
            omega,
            (6.0 * push * cosine - 3.0 * swing * cosine + 6.0 * total * gravity * sine) / (length * room),
        ]
    )


def tip_reward(obs: Array, length: float, lean: float) -> Array:
    """Return exp(-d²/(2·0.25²)) - 1 for the distance d of the tip, at x + lean·length·sin θ, from its target."""
    across = obs[..., 0] + lean * length * np.sin(obs[..., 2])
    below = length * (1.0 - np.cos(obs[..., 2]))
    return np.asarray(np.expm1(-0.5 * (across**2 + below**2) / 0.25**2))


class TipCartPole(Task):
    """TIP's and BARL's cart-pole swing-up: (x, v, θ, ω), θ = 0 upright; Euler steps of 0.1 s, no noise.

    An episode begins at hanging and has 25 steps; the action in [-1, 1] is a tenth of the force. An episode counts as
    solved with a return above -12. The published reward places the tip at x + 0.6·sin θ, though in the published
    dynamics the pole leans the other way; both are kept, since figures are about this task. Positions and speeds may
    leave the scale of the space.
    """

    angles = (2,)
    horizon = 25
    scale = (10.0, 10.0, np.pi, 25.0)

    def initial(self) -> Array:
        """Draw a state around hanging at rest, with standard deviations of 0.02."""
        return np.array([0.0, 0.0, np.pi, 0.0]) + 0.02 * self.np_random.standard_normal(4)

    def move(self, state: Array, action: Array) -> Array:
        """Take one explicit Euler step."""
        return np.asarray(state + 0.1 * cart_pole_derivative(state, 10.0 * action[0], 0.6))

    @staticmethod
    def reward(obs: Array, action: Array, next_obs: Array) -> Array:
        """Pay by the distance of the tip from its target after the step, in [-1, 0]."""
        return tip_reward(next_obs, 0.6, lean=1.0)


class PilcoCartPole(Task):
    """PILCO V0.9's cart-pole swing-up: (x, v, θ, ω), θ = 0 upright; a force of at most 10 N, held for 0.1 s.

    An episode begins around hanging and has 40 steps. The equations of motion are solved; every coordinate is
    observed with noise of standard deviation 0.01, and the state moves on without it. PILCO measures θ from hanging,
    here θ = 0 is upright; its cost is of the state, here it is of what was observed.
    """

    angles = (2,)
    horizon = 40
    scale = (10.0, 10.0, np.pi, 25.0)
    force = (10.0,)

    def initial(self) -> Array:
        """Draw a state around hanging at rest, with standard deviations of 0.1."""
        return np.array([0.0, 0.0, np.pi, 0.0]) + 0.1 * self.np_random.standard_normal(4)

    def move(self, state: Array, action: Array) -> Array:
        """Solve the equations of motion for 0.1 s."""
        return _solve(lambda s: cart_pole_derivative(s, action[0], 0.5), state, 0.1)

    def observe(self) -> Array:
        """Return the state with measurement noise."""
        seen = self.state + 0.01 * self.np_random.standard_normal(4)
        seen[2] = wrapped(seen[2])
        return seen

    @staticmethod
    def reward(obs: Array, action: Array, next_obs: Array) -> Array:
        """Pay by the distance of the tip from its target after the step, in [-1, 0]."""
        return tip_reward(next_obs, 0.5, lean=-1.0)


class SparsePendulum(Task):
    """H-UCRL's pendulum: (θ, ω), θ = 0 upright; it pays near upright only, and torque costs 0.1.

    It begins hanging at rest. Mass 0.3, length 0.5, friction 0.005, torque at most 1: too little to lift the pendulum
    without swinging. An episode takes 5 s, as published, in 50 steps of 0.1 s; H-UCRL acts eight times as often. At
    rest every small action only costs: who plans with the mean of a vague model stays there.
    """

    angles = (0,)
    horizon = 50
    scale = (np.pi, 25.0)

    def initial(self) -> Array:
        """Return hanging at rest."""
        return np.array([np.pi, 0.0])

    def move(self, state: Array, action: Array) -> Array:
        """Solve the equation of motion; the speed is limited to the scale of the space."""
        angle, omega = _solve(lambda s: self.derivative(s, action[0]), state, 0.1)
        return np.array([angle, np.clip(omega, -25.0, 25.0)])

    @staticmethod
    def derivative(state: Array, torque: float) -> Array:
        """Return the time derivative of (θ, ω)."""
        inertia = 0.3 * 0.5**2
        return np.array([state[1], 9.81 / 0.5 * np.sin(state[0]) + (torque - 0.005 * state[1]) / inertia])

    @staticmethod
    def reward(obs: Array, action: Array, next_obs: Array) -> Array:
        """Pay up to 1 near upright and slow, before the step, less 0.1 for torques beyond ±0.1."""
        upright = tolerance(np.cos(obs[..., 0]), 0.95, 1.0, 0.1)
        slow = tolerance(obs[..., 1], -0.5, 0.5, 0.5)
        return np.asarray(upright * slow + 0.1 * (tolerance(action[..., 0], -0.1, 0.1, 0.1) - 1.0))


class LavaPath(Task):
    """TIP's lava path: (x, y, vx, vy), pushed by (fx, fy) along a path one metre wide between two fields of lava.

    The goal is (0, 10), the start near (0, -10); a step in the lava pays -500 more. Time steps of 0.1 s, 200 of them;
    the published dynamics have ½·a·Δt² in the position. At the edges of the playable area, ±20, the point stops.
    """

    scale = (20.0, 20.0, 10.0, 10.0)
    force = (1.0, 1.0)

    def initial(self) -> Array:
        """Draw a position at most half a metre beside (0, -10), at rest."""
        return np.array([0.0, -10.0, 0.0, 0.0]) + self.np_random.uniform(-0.5, 0.5, 4) * [1, 1, 0, 0]

    def move(self, state: Array, action: Array) -> Array:
        """Move a point of mass 1 under a constant force."""
        position = state[:2] + 0.1 * state[2:] + 0.005 * action
        velocity = state[2:] + 0.1 * action
        inside = np.abs(position) <= 20.0
        return np.concatenate([np.clip(position, -20.0, 20.0), np.where(inside, velocity, 0.0)])

    @staticmethod
    def reward(obs: Array, action: Array, next_obs: Array) -> Array:
        """Pay minus the squared distance to the goal over 800, and -500 in the lava."""
        x, y = next_obs[..., 0], next_obs[..., 1]
        lava = (np.abs(x) >= 0.5) & (np.abs(x) <= 10.0) & (np.abs(y) <= 8.0)
        return np.asarray(-(x**2 + (y - 10.0) ** 2) / 800.0 - 500.0 * lava)


def _solve(derivative: Any, state: Array, seconds: float) -> Array:
    solution = solve_ivp(lambda _, s: derivative(s), (0.0, seconds), state, rtol=1e-8, atol=1e-10)
    return np.asarray(solution.y[:, -1])
