"""A scalar system with unknown gain, whose Bayes-optimal policy can be computed.

    xₜ₊₁ = xₜ + b·uₜ + εₜ,   b ~ N(0, 1),   εₜ ~ N(0, σ²),   minimise E Σₜ xₜ₊₁² over T steps.

Small actions provide little information about b, and a policy based on the mean model, b = 0, never acts; a good policy
must incur a cost to learn. The belief about b remains normal, N(m, p). With s = σ² + u²p, the next state is distributed
as N(x + m·u, s), and after the innovation e

    m' = m + (p·u / s)·e,   p' = p·σ² / s,

so the value V of a state x and a belief (m, p) with k steps left satisfies

    V₁(x, m, p) = x²·p / (m² + p) + σ²,   Vₖ(x, m, p) = minᵤ E[(x')² + Vₖ₋₁(x', m', p')].

:class:`GainSolution` tabulates V₂ … V_T on a grid (|x|, |m|, log p; the signs of x and m do not matter), using
Gauss–Hermite quadrature over e, and thus provides the Bayes-optimal value and policy.

References
----------
K. J. Åström and A. Helmersson, Dual control of an integrator with unknown gain, Computers & Mathematics with
Applications 12 (1986).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.ndimage import map_coordinates, spline_filter

from bamdp import _checks
from bamdp.continuous.tasks.systems import Array, Task

MOST_X, MOST_GAIN, LEAST_VARIANCE, MOST_ACTION = 40.0, 5.0, 1e-3, 5.0  # bounds of the grid
Value = Callable[[Array, Array, Array], Array]


class UnknownGain(Task):
    """The scalar system x' = x + b·u + ε with unknown gain b ~ N(0, 1), starting at x = 1, for T = 4 steps.

    ``reset`` draws a new gain if it receives a seed; otherwise, the gain is kept. ``options={"gain": b}`` sets it.

    Parameters
    ----------
    noise
        The standard deviation of ε.
    steps
        T, the number of steps after which an episode is truncated.
    """

    horizon = 4
    scale = (MOST_X,)
    force = (MOST_ACTION,)
    gain: float | None = None

    def __init__(self, noise: float = 1.0) -> None:
        super().__init__()
        self.noise = _checks.real(noise, "noise", low=0.0, open_low=True)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict]:
        """Begin an episode; draw a new gain the first time or if a seed is given."""
        result = super().reset(seed=seed, options=options)
        if seed is not None or self.gain is None:
            self.gain = float(self.np_random.standard_normal())
        self.gain = float((options or {}).get("gain", self.gain))
        return result

    def initial(self) -> Array:
        """Return the initial state x = 1."""
        return np.ones(1)

    def move(self, state: Array, action: Array) -> Array:
        """Return x + b·u + ε."""
        assert self.gain is not None
        return np.asarray(state + self.gain * action + self.noise * self.np_random.standard_normal())

    @staticmethod
    def reward(obs: Array, action: Array, next_obs: Array) -> Array:
        """Return the reward -x² of the state after the step."""
        return np.asarray(-(next_obs[..., 0] ** 2))


class GainSolution:
    """The Bayes-optimal cost and policy of :class:`UnknownGain` over at most ``steps`` steps.

    Parameters
    ----------
    steps
        T, the number of steps.
    noise
        The standard deviation σ of ε.

    Examples
    --------
    >>> solution = GainSolution(steps=2)
    >>> round(float(solution.cost(1.0)), 1)
    4.9
    """

    def __init__(self, steps: int = 4, noise: float = 1.0, *, size: int = 19, nodes: int = 16) -> None:
        _checks.integer(steps, "steps")
        self.variance = _checks.real(noise, "noise", low=0.0, open_low=True) ** 2
        points, weights = np.polynomial.hermite_e.hermegauss(nodes)
        self._nodes = list(zip(points, weights / weights.sum()))
        self.values: list[Value] = [self._last]  # with 1, 2, … steps left
        axes = (
            np.linspace(0.0, np.arcsinh(MOST_X), size),
            np.linspace(0.0, np.arcsinh(MOST_GAIN), size),
            np.linspace(np.log(LEAST_VARIANCE), 0.0, size),
        )
        x, m, log_p = np.meshgrid(*axes, indexing="ij")
        for left in range(2, steps + 1):
            costs = self._best(np.sinh(x), np.sinh(m), np.exp(log_p), left)[0]
            self.values.append(_Table(axes, costs))

    def cost(self, x: Any, mean: Any = 0.0, variance: Any = 1.0, steps: int | None = None) -> Array:
        """Return the minimum expected sum of x² over the next ``steps`` steps, by default all of them."""
        x, m, p = np.broadcast_arrays(*(np.asarray(value, float) for value in (x, mean, variance)))
        return self._best(x, m, p, len(self.values) if steps is None else steps)[0]

    def action(self, x: Any, mean: Any, variance: Any, steps: int) -> Array:
        """Return the optimal action with ``steps`` steps left, for a belief N(mean, variance) about the gain."""
        x, m, p = np.broadcast_arrays(*(np.asarray(value, float) for value in (x, mean, variance)))
        return self._best(x, m, p, steps)[1]

    def action_cost(self, x: float, action: float, mean: float, variance: float, steps: int) -> float:
        """Return the expected sum of x² over the next ``steps`` steps if the first action is ``action``."""
        if steps == 1:
            return (x + mean * action) ** 2 + action**2 * variance + self.variance
        return float(self._expected(np.array(x), np.array(mean), np.array(variance), action, steps))

    def learn(self, x: Any, action: Any, next_x: Any, mean: Any, variance: Any) -> tuple[Array, Array]:
        """Return the posterior mean and variance of the gain after a step."""
        spread = self.variance + action**2 * variance
        return (
            mean + variance * action / spread * (next_x - x - mean * action),
            variance * self.variance / spread,
        )

    def _best(self, x: Array, m: Array, p: Array, left: int) -> tuple[Array, Array]:
        """Return the minimum cost and its action, using a grid of actions and parabolic refinement."""
        if left == 1:
            return self._last(x, m, p), -x * m / (m**2 + p)
        actions = np.linspace(-MOST_ACTION, MOST_ACTION, 41)
        costs = np.stack([self._expected(x, m, p, u, left) for u in actions])
        best = np.clip(costs.argmin(axis=0), 1, len(actions) - 2)
        low, mid, high = (np.take_along_axis(costs, (best + i)[None], 0)[0] for i in (-1, 0, 1))
        curve = np.maximum(low - 2.0 * mid + high, 1e-12)
        shift = np.clip(0.5 * (low - high) / curve, -1.0, 1.0)
        return mid - 0.25 * (low - high) * shift, actions[best] + shift * (actions[1] - actions[0])

    def _expected(self, x: Array, m: Array, p: Array, u: float, left: int) -> Array:
        spread = self.variance + u * u * p
        total = np.zeros(np.shape(x))
        for node, weight in self._nodes:
            innovation = np.sqrt(spread) * node
            next_x = x + m * u + innovation
            later = self.values[left - 2](next_x, m + p * u / spread * innovation, p * self.variance / spread)
            total += weight * (next_x**2 + later)
        return total

    def _last(self, x: Array, m: Array, p: Array) -> Array:
        return np.asarray(x**2 * p / (m**2 + p) + self.variance)


class _Table:
    """A cubic spline of a cost in arsinh |x|, arsinh |m| and log p, extrapolated with the values at the edges."""

    def __init__(self, axes: tuple[Array, ...], costs: Array) -> None:
        self.axes, self.coefficients = axes, spline_filter(costs, mode="mirror")

    def __call__(self, x: Array, m: Array, p: Array) -> Array:
        points = (np.arcsinh(np.abs(x)), np.arcsinh(np.abs(m)), np.log(p))
        inside = [
            (np.clip(point, axis[0], axis[-1]) - axis[0]) / (axis[1] - axis[0])
            for point, axis in zip(points, self.axes)
        ]
        at = np.array(np.broadcast_arrays(*inside))
        values = map_coordinates(self.coefficients, at.reshape(3, -1), mode="mirror", prefilter=False)
        return np.asarray(values.reshape(at.shape[1:]))
