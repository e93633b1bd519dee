"""Planning with the cross-entropy method, batched over starting points and models.

A plan is a sequence of H controls, each held for ``repeat`` steps. The cross-entropy method (Rubinstein, 1999) draws P
plans from independent normal distributions, keeps the E best, fits the distributions to them, and repeats. Samples use
coloured AR(1) noise along the plan (Pinneri et al., 2020): a coefficient of 0.7 lets a plan push in one direction for
several blocks, whereas white noise would average out. Each iteration includes the best plan of the previous one; the
first includes plans given by the caller. All Q problems share random numbers.

A plan's value is the discounted sum of rewards until the horizon or termination, averaged over its problem's models.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp.continuous.models import Models
from bamdp.continuous.system import System

Array = NDArray[Any]


@dataclass(frozen=True)
class Search:
    """Settings of the plan search."""

    blocks: int  # H
    repeat: int = 1
    plans: int = 80
    iterations: int = 8
    elites: int = 8
    colour: float = 0.7
    discount: float = 0.99
    deadline: float | None = None  # on the clock of time.perf_counter: iterate until then, at least once


@dataclass(frozen=True)
class Outputs:
    """Sources of rewards and terminations: functions of the system or indices of extra model outputs.

    Predictions of learned rewards are at least ``least``.
    """

    system: System
    reward: int = -1
    end: int = -1
    least: float = -np.inf


@dataclass(frozen=True, eq=False)
class Objective:
    """Objective function of plans from Q starting points, each with its own models.

    ``which`` [Q, M] contains model indices; ``start`` has shape [Q, d].
    """

    models: Models
    which: Array
    start: Array
    search: Search
    outputs: Outputs

    def values(self, plans: Array) -> Array:
        """Return the values [Q, P] of plans [Q, P, H, k]."""
        Q, P, H, k = plans.shape
        M = self.which.shape[1]
        shape = (Q, P, M)
        which = np.broadcast_to(self.which[:, None], shape).ravel()
        start = np.broadcast_to(self.start[:, None, None], (*shape, self.start.shape[1])).reshape(
            Q * P * M, -1
        )
        controls = np.broadcast_to(plans[:, :, None], (*shape, H, k)).reshape(Q * P * M, H, k)
        states, extras = self.models.follow(which, start, controls, self.search.repeat)
        earned, _ = returns(self.outputs, states, controls, extras, self.search)
        return earned.reshape(shape).mean(2)


def returns(
    outputs: Outputs, states: Array, controls: Array, extras: Array, search: Search
) -> tuple[Array, Array]:
    """Return the discounted rewards [B] along states [B, T + 1, d], and the probabilities [B] of no termination.

    Rewards after termination are ignored.
    """
    system = outputs.system
    B, T = states.shape[0], states.shape[1] - 1
    discounts = search.discount ** np.arange(T)
    rewards = np.maximum(extras[..., outputs.reward], outputs.least) if outputs.reward >= 0 else None
    if rewards is None or system.terminated is not None:
        seen = system.observations(states)
        obs, after = (part.reshape(B * T, -1) for part in (seen[:, :-1], seen[:, 1:]))
        steps = controls.repeat(search.repeat, 1)
        actions = system.actions(steps).reshape(B * T, *(() if system.n_actions else (-1,)))
    if rewards is None:
        assert system.reward is not None
        rewards = checked(system.reward(obs, actions, after), B * T, "reward").reshape(B, T)
    if system.terminated is not None:
        ended = checked(system.terminated(obs, actions, after), B * T, "terminated").reshape(B, T)
    elif outputs.end >= 0:
        ended = np.clip(extras[..., outputs.end], 0.0, 1.0)
    else:
        return rewards @ discounts, np.ones(B)
    alive = np.cumprod(1.0 - ended, 1)
    return rewards[:, 0] + (rewards[:, 1:] * alive[:, :-1]) @ discounts[1:], alive[:, -1]


def checked(values: Any, n: int, name: str) -> Array:
    """Return the result of a user's function as floats [n]; NaN becomes -1e12, infinities ±1e12."""
    array = np.asarray(values, float)
    if array.shape != (n,):
        raise ValueError(
            f"{name}(obs, action, next_obs) must return one number for each of its {n} rows, got shape "
            f"{list(array.shape)}; it is called with arrays of many steps"
        )
    return np.nan_to_num(array, nan=-1e12, posinf=1e12, neginf=-1e12)


def optimise(
    objective: Objective, first: Array, rng: np.random.Generator, numbered: bool
) -> tuple[Array, Array]:
    """Return the best plans found [Q, H, k] and their values [Q].

    ``first`` [Q, G, H, k] contains initial plans; the search is centred on the first of them. If actions are
    ``numbered``, a control is a one-hot vector, and the action with the largest draw is taken.
    """
    search = objective.search
    Q, _, H, k = first.shape
    mean, deviation = first[:, 0].copy(), np.ones((Q, H, k))
    best, value = first[:, 0].copy(), np.full(Q, -np.inf)
    queries = np.arange(Q)
    kept = first
    for iteration in count():
        drawn = mean[:, None] + deviation[:, None] * coloured(search, k, rng)
        if numbered:  # ties are common, for example far from a goal, and the first plan wins: act at random
            plans = np.eye(k)[np.concatenate([drawn, kept], 1).argmax(-1)]
        else:
            plans = np.clip(np.concatenate([kept, drawn], 1), -1.0, 1.0)
        values = objective.values(plans)
        order = np.argsort(-values, 1, kind="stable")[:, : search.elites]
        elites = plans[queries[:, None], order]
        top = values[queries, order[:, 0]]
        best = np.where((top > value)[:, None, None], elites[:, 0], best)
        value = np.maximum(top, value)
        mean, deviation = elites.mean(1), elites.std(1) + 1e-3
        kept = np.stack([best, mean], 1)
        late = search.deadline is not None and time.perf_counter() >= search.deadline
        if late or (search.deadline is None and iteration + 1 == search.iterations):
            return best, value
    raise AssertionError


def coloured(search: Search, k: int, rng: np.random.Generator) -> Array:
    """Return AR(1) noise [P, H, k] with unit standard deviation."""
    white = rng.normal(size=(search.plans, search.blocks, k))
    noise, scale = white.copy(), np.sqrt(1.0 - search.colour**2)
    for t in range(1, search.blocks):
        noise[:, t] = search.colour * noise[:, t - 1] + scale * white[:, t]
    return noise
