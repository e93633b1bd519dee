"""Custom environments: from a model, from a model file, or from a function that simulates steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bamdp import _checks
from bamdp.envs.environment import Environment, Seed, StepResult, World, bernoulli
from bamdp.mdp.model import FiniteMDP, load_model

LEAST_U = 2.0**-54  # half the smallest positive uniform number; the normal quantile at 0 is infinite


def from_mdp(
    mdp: FiniteMDP,
    start: int | ArrayLike = 0,
    horizon: int = 1000,
    name: str = "custom",
    *,
    noise: float | str | Callable[[float, float], float] = 0.0,
    time_limit: float = 1.0,
) -> Environment:
    """Create an environment from your own model.

    Parameters
    ----------
    mdp : FiniteMDP
        The true model.
    start : int or array [S], default 0
        The state after a reset, or the probabilities of the start states.
    horizon : int, default 1000
        Usual number of steps in a run.
    name : str, default "custom"
        The name.
    noise : float, "bernoulli" or callable, default 0
        Makes rewards random, with the model's rewards as their means: the standard deviation of normal noise;
        "bernoulli" for rewards of 0 or 1; or your own function (mean, u), which returns the quantile of the reward at u
        in [0, 1).
    time_limit : float, default 1.0
        Planning time per step, in seconds.

    Examples
    --------
    >>> import numpy as np
    >>> from bamdp.mdp import FiniteMDP
    >>> swap = FiniteMDP(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), np.array([[0.0], [1.0]]))
    >>> env = from_mdp(swap, name="swap")
    >>> env.reset(seed=0), env.step(0), env.step(0)
    (0, (1, 0.0, False), (0, 1.0, False))
    >>> noisy = from_mdp(swap, noise=0.1)
    >>> noisy.stochastic_rewards, noisy.reset(seed=0), round(noisy.step(0)[1], 3)
    (True, 0, -0.061)
    """
    return Environment(
        name,
        mdp,
        start=start,
        horizon=horizon,
        time_limit=time_limit,
        parameters={"start": start, "horizon": horizon} | ({} if noise == 0.0 else {"noise": noise}),
        draw_reward=_noisy_reward(noise, mdp),
    )


def _noisy_reward(noise: Any, mdp: FiniteMDP) -> Callable[[float, float], float] | None:
    """Return the quantile function of noisy rewards, or None if rewards are deterministic."""
    if noise == "bernoulli":
        if mdp.rewards.size and not (mdp.rewards.min() >= 0.0 and mdp.rewards.max() <= 1.0):
            raise ValueError("Bernoulli rewards have means from 0 to 1; the model has others")
        return bernoulli
    if callable(noise):
        return noise
    if isinstance(noise, str):
        raise ValueError(f"noise must be a standard deviation, 'bernoulli' or a function, got {noise!r}")
    deviation = _checks.real(noise, "noise", low=0.0)
    return partial(_normal, deviation) if deviation > 0.0 else None


def _normal(deviation: float, mean: float, u: float) -> float:
    """Return the quantile at ``u`` of a normally distributed reward."""
    return NormalDist(mean, deviation).inv_cdf(max(u, LEAST_U))


def from_file(path: str | Path, start: Any = None, horizon: int = 1000) -> Environment:
    """Create an environment from a model in an npz file.

    The file was written by `FiniteMDP.save` or contains the arrays ``transitions`` and ``rewards``.

    Parameters
    ----------
    path : str or Path
        The file.
    start : int or array [S], optional
        The state after a reset, or the probabilities of the start states; by default ``start`` from the file, or 0 if
        the file has none.
    horizon : int, default 1000
        Usual number of steps in a run.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "swap.npz")
    >>> np.savez(path, transitions=[[[0.0, 1.0]], [[1.0, 0.0]]], rewards=[0.0, 1.0], start=1)
    >>> from_file(path).reset(seed=0)
    1
    """
    if not str(path):
        raise ValueError("a file is missing; write file:PATH, for instance file:model.npz")
    mdp, start_in_file = load_model(path)
    parameters = {"horizon": horizon} | ({} if start is None else {"start": start})
    first = start_in_file if start is None else start
    return Environment(
        f"file:{path}", mdp, start=0 if first is None else first, horizon=horizon, parameters=parameters
    )


class FunctionWorld(World):
    """An environment whose steps are computed by a function; create one with :func:`from_function`."""

    def __init__(
        self, function: Callable[[int, int, np.random.Generator], StepResult], start: Any, **sizes: Any
    ) -> None:
        vars(self).update(sizes)
        self.function, self.start = function, start
        self.state, self.terminated = 0, True  # until the first reset
        self._rng: np.random.Generator | None = None

    def __repr__(self) -> str:
        return f"FunctionWorld({self.name!r}, {self.n_states} states, {self.n_actions} actions)"

    def reset(self, *, seed: Seed = None) -> int:
        """Begin an episode and return its first state; with a seed, reseed the random stream."""
        if seed is not None or self._rng is None:
            self._rng = np.random.default_rng(seed)
        first = self.start(self._rng) if callable(self.start) else self.start
        self.state, self.terminated = _checks.index(first, "start", self.n_states), False
        return self.state

    def step(self, action: int) -> StepResult:
        """Take an action and return (next state, reward, whether the episode has ended)."""
        if self.terminated or self._rng is None:
            raise RuntimeError(f"{self.name} has terminated or not begun; call reset() first")
        after, reward, terminated = self.function(self.state, action, self._rng)
        self.state, self.terminated = _checks.index(after, "next state", self.n_states), bool(terminated)
        return self.state, _checks.real(reward, "reward"), self.terminated


def from_function(
    step: Callable[[int, int, np.random.Generator], StepResult],
    n_states: int,
    n_actions: int,
    start: int | Callable[[np.random.Generator], int] = 0,
    horizon: int = 1000,
    name: str = "function",
) -> FunctionWorld:
    """Create an environment whose steps are computed by your own function.

    Parameters
    ----------
    step
        ``step(state, action, rng)`` returns (next state, reward, terminated); it must take all random numbers from
        ``rng``, a NumPy generator.
    n_states, n_actions
        Size of the environment.
    start
        The initial state of every episode, or a function ``start(rng)`` that draws it.
    horizon
        Usual number of steps in a run.
    name
        The name.

    Examples
    --------
    >>> world = from_function(lambda s, a, rng: ((s + a) % 3, float(s == 2), False), n_states=3, n_actions=2)
    >>> world.reset(seed=0), world.step(1), world.step(1), world.step(0)
    (0, (1, 0.0, False), (2, 0.0, False), (2, 1.0, False))
    """
    sizes = {"n_states": n_states, "n_actions": n_actions, "horizon": horizon}
    checked = {key: _checks.integer(size, key) for key, size in sizes.items()}
    if not callable(start):
        _checks.index(start, "start", n_states)
    return FunctionWorld(step, start, name=str(name), **checked)
