"""A world from a function: a simulator of your own, of which only what it does is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks

Outcome = tuple[int, float, bool]


class FunctionWorld:
    """A world whose steps are made by a function; made by :func:`from_function`."""

    worlds: tuple[Any, ...] = ()  # nothing is known of the model
    stochastic_rewards = True
    truncated = False

    def __init__(
        self,
        step: Callable[[int, int, np.random.Generator], Outcome],
        n_states: int,
        n_actions: int,
        start: int | Callable[[np.random.Generator], int] = 0,
        horizon: int = 1000,
        name: str = "function",
    ) -> None:
        self._step, self._start = step, start
        self.n_states = _checks.integer(n_states, "n_states")
        self.n_actions = _checks.integer(n_actions, "n_actions")
        self.horizon = _checks.integer(horizon, "horizon")
        self.name = str(name)
        self.state = 0 if callable(start) else _checks.index(start, "start", self.n_states)
        self.terminated = True  # until the first reset
        self._rng: np.random.Generator | None = None

    def __repr__(self) -> str:
        return f"FunctionWorld({self.name!r}, {self.n_states} states, {self.n_actions} actions)"

    @property
    def knowledge(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    @property
    def allowed(self) -> NDArray[np.bool_] | None:
        """None: all actions exist everywhere."""
        return None

    def reset(self, *, seed: int | np.random.SeedSequence | None = None) -> int:
        """Begin an episode; with a seed, begin the stream of random numbers anew."""
        if seed is not None or self._rng is None:
            self._rng = np.random.default_rng(seed)
        first = self._start(self._rng) if callable(self._start) else self._start
        self.state = _checks.index(first, "start state", self.n_states)
        self.terminated = False
        return self.state

    def step(self, action: int) -> Outcome:
        """(next state, reward, whether the episode has ended)."""
        if self.terminated or self._rng is None:
            raise RuntimeError(f"{self.name} has terminated or not begun; call reset() first")
        after, reward, terminated = self._step(self.state, action, self._rng)
        self.state = _checks.index(after, "next state", self.n_states)
        self.terminated = bool(terminated)
        return self.state, _checks.real(reward, "reward"), self.terminated


def from_function(
    step: Callable[[int, int, np.random.Generator], Outcome],
    n_states: int,
    n_actions: int,
    start: int | Callable[[np.random.Generator], int] = 0,
    horizon: int = 1000,
    name: str = "function",
) -> FunctionWorld:
    """A world whose steps are made by a function of yours.

    Parameters
    ----------
    step
        ``step(state, action, rng)`` returns (next state, reward, terminated); all chance comes from ``rng``, a NumPy
        generator.
    n_states, n_actions
        Size of the world.
    start
        The state in which episodes begin, or a function ``start(rng)`` that draws it.
    horizon
        How many steps a run usually lasts.
    name
        What to call it.

    Examples
    --------
    >>> world = from_function(lambda s, a, rng: ((s + a) % 3, float(s == 2), False), n_states=3, n_actions=2)
    >>> world.reset(seed=0), world.step(1), world.step(1), world.step(0)
    (0, (1, 0.0, False), (2, 0.0, False), (2, 1.0, False))
    """
    return FunctionWorld(step, n_states, n_actions, start, horizon, name)
