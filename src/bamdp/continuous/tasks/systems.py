"""Benchmark systems with continuous states, as Gymnasium environments.

Each system is a subclass of :class:`Task`: :meth:`~Task.move` defines the dynamics and :meth:`~Task.observe` the
observation. Prior knowledge that is usually available can be passed to an agent: ``angles``, the observation
coordinates that are angles in radians; and ``reward(obs, action, next_obs)`` and ``terminated(obs, action, next_obs)``,
vectorised over all leading axes. Rewards are exactly this function of the observations. Importing
:mod:`bamdp.continuous` registers the environments.

References
----------
V. Mehta, I. Char, J. Abbate et al., Exploration via Planning for Information about the Optimal
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
    """Return 1 within [low, high] and a Gaussian tail outside, which equals 0.1 at a distance of ``margin``."""
    distance = np.maximum(np.maximum(low - values, values - high), 0.0)
    return np.asarray(0.1 ** ((distance / margin) ** 2))


class Task(gymnasium.Env[Array, Array]):
    """A control task with a state in ℝⁿ; subclasses define the initial state, dynamics, observations and rewards.

    ``reset(options={"state": s})`` sets the initial state. The spaces define the scale of observations and the limits
    of actions. Actions outside the limits are clipped; observations may exceed their scale.

    Attributes
    ----------
    angles : tuple of int
        The observation coordinates that are angles.
    horizon : int
        The number of steps after which ``gymnasium.make`` truncates an episode.
    """

    metadata = {"render_modes": []}  # noqa: RUF012
    angles: tuple[int, ...] = ()
    horizon = 200
    scale: tuple[float, ...]  # scale of each observation coordinate
    force: tuple[float, ...] = (1.0,)  # maximum of each action

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
        """Take an action and return the tuple of Gymnasium's ``step``."""
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
        """Return the observation of the current state, with angles in [-π, π)."""
        seen = self.state.copy()
        seen[list(self.angles)] = wrapped(seen[list(self.angles)])
        return seen

    @staticmethod
    def reward(obs: Array, action: Array, next_obs: Array) -> Array:
        """Return the rewards [...] of steps ``obs`` [..., n], ``action`` [..., m], ``next_obs`` [..., n]."""
        raise NotImplementedError

    @staticmethod
    def terminated(obs: Array, action: Array, next_obs: Array) -> NDArray[np.bool_]:
        """Return whether each step [...] ends the episode; False by default."""
        return np.zeros(np.shape(next_obs)[:-1], bool)


def cart_pole_derivative(
    state: Array, force: float, length: float, cart: float = 0.5, pole: float = 0.5
) -> Array:
    """Return the time derivative of (x, v, θ, ω) for a uniform rod on a cart with friction 0.1; θ = 0 is upright.

    The tip of the pole is at x - length·sin θ.
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

    The pole starts near the hanging position, and an episode lasts 25 steps. The action in [-1, 1] is a tenth of the
    force. An episode is solved if its return exceeds -12. The published reward places the tip at x + 0.6·sin θ,
    although the pole leans the other way in the published dynamics; both are reproduced for comparability with
    published results. Positions and speeds may exceed the scale of the space.
    """

    angles = (2,)
    horizon = 25
    scale = (10.0, 10.0, np.pi, 25.0)

    def initial(self) -> Array:
        """Draw a state near the hanging rest position, with standard deviations of 0.02."""
        return np.array([0.0, 0.0, np.pi, 0.0]) + 0.02 * self.np_random.standard_normal(4)

    def move(self, state: Array, action: Array) -> Array:
        """Take one explicit Euler step."""
        return np.asarray(state + 0.1 * cart_pole_derivative(state, 10.0 * action[0], 0.6))

    @staticmethod
    def reward(obs: Array, action: Array, next_obs: Array) -> Array:
        """Return a reward in [-1, 0] based on the distance of the tip from its target after the step."""
        return tip_reward(next_obs, 0.6, lean=1.0)


class PilcoCartPole(Task):
    """PILCO V0.9's cart-pole swing-up: (x, v, θ, ω), θ = 0 upright; a force of at most 10 N, held for 0.1 s.

    The pole starts near the hanging position, and an episode lasts 40 steps. The equations of motion are integrated
    numerically; observations have independent noise with standard deviation 0.01, which does not affect the dynamics.
    Unlike in PILCO, θ = 0 is upright instead of hanging, and the cost depends on the observation instead of the state.
    """

    angles = (2,)
    horizon = 40
    scale = (10.0, 10.0, np.pi, 25.0)
    force = (10.0,)

    def initial(self) -> Array:
        """Draw a state near the hanging rest position, with standard deviations of 0.1."""
        return np.array([0.0, 0.0, np.pi, 0.0]) + 0.1 * self.np_random.standard_normal(4)

    def move(self, state: Array, action: Array) -> Array:
        """Integrate the equations of motion over 0.1 s."""
        return _solve(lambda s: cart_pole_derivative(s, action[0], 0.5), state, 0.1)

    def observe(self) -> Array:
        """Return the state with measurement noise."""
        seen = self.state + 0.01 * self.np_random.standard_normal(4)
        seen[2] = wrapped(seen[2])
        return seen

    @staticmethod
    def reward(obs: Array, action: Array, next_obs: Array) -> Array:
        """Return a reward in [-1, 0] based on the distance of the tip from its target after the step."""
        return tip_reward(next_obs, 0.5, lean=-1.0)


class SparsePendulum(Task):
    """H-UCRL's pendulum: (θ, ω), θ = 0 upright; rewarded only near upright, with a torque cost of up to 0.1.

    The pendulum starts hanging at rest. Its mass is 0.3, its length 0.5 and its friction 0.005; the maximum torque of 1
    is too small to lift it without swinging. As in the paper, an episode lasts 5 s; it consists of 50 steps of 0.1 s,
    while H-UCRL acts eight times as often. At rest, every small action only incurs a cost, so a planner that uses the
    mean of a vague model stays there.
    """

    angles = (0,)
    horizon = 50
    scale = (np.pi, 25.0)

    def initial(self) -> Array:
        """Return the hanging rest state."""
        return np.array([np.pi, 0.0])

    def move(self, state: Array, action: Array) -> Array:
        """Integrate the equation of motion, limiting the speed to the scale of the space."""
        angle, omega = _solve(lambda s: self.derivative(s, action[0]), state, 0.1)
        return np.array([angle, np.clip(omega, -25.0, 25.0)])

    @staticmethod
    def derivative(state: Array, torque: float) -> Array:
        """Return the time derivative of (θ, ω)."""
        inertia = 0.3 * 0.5**2
        return np.array([state[1], 9.81 / 0.5 * np.sin(state[0]) + (torque - 0.005 * state[1]) / inertia])

    @staticmethod
    def reward(obs: Array, action: Array, next_obs: Array) -> Array:
        """Return up to 1 if nearly upright and slow before the step, minus up to 0.1 for torques beyond ±0.1."""
        upright = tolerance(np.cos(obs[..., 0]), 0.95, 1.0, 0.1)
        slow = tolerance(obs[..., 1], -0.5, 0.5, 0.5)
        return np.asarray(upright * slow + 0.1 * (tolerance(action[..., 0], -0.1, 0.1, 0.1) - 1.0))


class LavaPath(Task):
    """TIP's lava path: a point (x, y, vx, vy), pushed by (fx, fy) along a 1 m wide path between two lava fields.

    The goal is (0, 10) and the start is near (0, -10). Each step in the lava adds a reward of -500. An episode lasts
    200 time steps of 0.1 s. As in the published dynamics, the position update includes ½·a·Δt². The point stops at the
    edges of the area, ±20.
    """

    scale = (20.0, 20.0, 10.0, 10.0)
    force = (1.0, 1.0)

    def initial(self) -> Array:
        """Draw a position at rest within half a metre of (0, -10)."""
        return np.array([0.0, -10.0, 0.0, 0.0]) + self.np_random.uniform(-0.5, 0.5, 4) * [1, 1, 0, 0]

    def move(self, state: Array, action: Array) -> Array:
        """Move a point of mass 1 under a constant force."""
        position = state[:2] + 0.1 * state[2:] + 0.005 * action
        velocity = state[2:] + 0.1 * action
        inside = np.abs(position) <= 20.0
        return np.concatenate([np.clip(position, -20.0, 20.0), np.where(inside, velocity, 0.0)])

    @staticmethod
    def reward(obs: Array, action: Array, next_obs: Array) -> Array:
        """Return minus the squared distance to the goal divided by 800, with an additional -500 in the lava."""
        x, y = next_obs[..., 0], next_obs[..., 1]
        lava = (np.abs(x) >= 0.5) & (np.abs(x) <= 10.0) & (np.abs(y) <= 8.0)
        return np.asarray(-(x**2 + (y - 10.0) ** 2) / 800.0 - 500.0 * lava)


def _solve(derivative: Any, state: Array, seconds: float) -> Array:
    solution = solve_ivp(lambda _, s: derivative(s), (0.0, seconds), state, rtol=1e-8, atol=1e-10)
    return np.asarray(solution.y[:, -1])
