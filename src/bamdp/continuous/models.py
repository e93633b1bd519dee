"""Dynamics models for planning, either drawn from a belief or known.

A :class:`Models` object contains M models of one system. Rollouts of M·B plans take a single call, which is compiled
for dynamics made of random features and linear terms, and runs step by step in NumPy if user-defined Python functions
are involved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bamdp._kernels.jit import JIT
from bamdp.continuous.rollouts import ANGLE, LINE, rollout
from bamdp.continuous.system import FULL_TURN, System

Array = NDArray[Any]
Function = Callable[[Array, Array], Array]
SINGLE = np.float32
NO_NOISE = np.zeros((0, 0, 0), SINGLE)


class Arrays(NamedTuple):
    """Arrays read by compiled rollouts; see :func:`bamdp.continuous.rollouts.rollout`."""

    kinds: Array
    centre: Array
    half: Array
    low: Array
    high: Array
    turns: Array
    omega: Array
    phase: Array
    amplitude: Array
    linear: Array


@dataclass(frozen=True, eq=False)
class Encoding:
    """Encoding of observations and controls as inputs, and of changes as targets.

    ``centre`` and ``half`` [d] shift and scale observations, ``gain`` and ``offset`` [k] controls; an output is
    ``target_offset + target_scale · y`` [O].
    """

    centre: Array
    half: Array
    gain: Array
    offset: Array
    target_offset: Array
    target_scale: Array

    def controls(self, controls: Array) -> Array:
        """Return the controls encoded as inputs."""
        return self.offset + self.gain * controls

    def inputs(self, system: System, obs: Array, controls: Array) -> Array:
        """Return the inputs [n, X] of observations [n, d] and controls [n, k]."""
        columns = []
        for j in range(system.n_states):
            if j in system.state_angles:
                columns += [np.sin(obs[:, j]), np.cos(obs[:, j])]
            else:
                columns.append((obs[:, j] - self.centre[j]) / self.half[j])
        return np.concatenate([np.array(columns).T, self.controls(controls)], 1)


class Models(ABC):
    """M models of a system that can simulate plans."""

    system: System
    count: int  # M

    @abstractmethod
    def follow(
        self, which: Array, start: Array, controls: Array, repeat: int = 1, noise: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the states [B, H·repeat + 1, d] under plans [B, H, k] and the other outputs [B, H·repeat, E].

        Plan b is simulated in model ``which[b]`` from ``start[b]``, with each control held for ``repeat`` steps. Pass
        standard normal ``noise`` [B, H·repeat, O] to include process noise.
        """

    def rollout(self, obs: Array, controls: Array) -> Array:
        """Return the states [B, H + 1, d] under plans [B, H, k] from observations [B, d] in the first model."""
        start, plans = np.atleast_2d(np.asarray(obs, float)), np.asarray(controls, float)
        return self.follow(np.zeros(len(start), np.int64), start, plans)[0]


def bounded(system: System, states: Array) -> Array:
    """Return states clipped to the box, with full-turn angles wrapped into it."""
    turns = system.turns
    turned = states - FULL_TURN * np.floor((states - system.low) / FULL_TURN) if turns.any() else states
    return np.clip(np.where(turns, turned, states), system.low, system.high)


@dataclass(frozen=True, eq=False)
class LearnedModels(Models):
    """Learned models, either M draws or the mean: weights [M, O, P] of random features and linear terms.

    ``noise`` [M, O] is the standard deviation of the process noise. ``mean`` and ``features`` come from the prior.
    """

    system: System
    encoding: Encoding
    omega: Array  # [O, F, X] frequencies of each output
    scales: Array  # [O, P] factors of the features
    weights: Array
    noise: Array
    mean: Function | None = None
    features: Function | None = None

    @property
    def count(self) -> int:  # type: ignore[override]
        """The number M of models."""
        return len(self.weights)

    @staticmethod
    def stack(parts: Sequence[LearnedModels]) -> LearnedModels:
        """Concatenate several sets of models."""
        weights, noise = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("weights", "noise")
        )
        return replace(parts[0], weights=weights, noise=noise)

    def follow(
        self, which: Array, start: Array, controls: Array, repeat: int = 1, noise: Array | None = None
    ) -> tuple[Array, Array]:
        B, T = len(start), controls.shape[1] * repeat
        d, O = self.system.n_states, len(self.omega)
        noise = NO_NOISE if noise is None else noise * self.noise[which][:, None]
        if not JIT or self.mean is not None or self.features is not None:
            return self._follow_in_numpy(which, start, controls, repeat, noise)
        states = np.empty((B, T + 1, d), SINGLE)
        extras = np.empty((B, T, O - d), SINGLE)
        inputs = self.encoding.controls(controls).astype(SINGLE)
        model = self._arrays()
        rollout(model, which, start.astype(SINGLE), inputs, repeat, noise.astype(SINGLE), states, extras)
        return states, extras

    def _arrays(self) -> Arrays:
        """Return the models as kernel arrays, built once."""
        made = self.__dict__.get("_made")
        if made is None:
            system, encoding = self.system, self.encoding
            _, F, X = self.omega.shape
            weights = self.weights * self.scales * encoding.target_scale[:, None]
            cosines, sines, linear = weights[..., :F], weights[..., F : 2 * F], weights[..., 2 * F :].copy()
            linear[..., X] += encoding.target_offset
            kinds = np.array([ANGLE if j in system.state_angles else LINE for j in range(system.n_states)])
            made = Arrays(
                kinds,
                encoding.centre.astype(SINGLE),
                encoding.half.astype(SINGLE),
                system.low.astype(SINGLE),
                system.high.astype(SINGLE),
                system.turns,
                np.ascontiguousarray(self.omega.transpose(0, 2, 1) / FULL_TURN, SINGLE),
                (-np.arctan2(sines, cosines) / FULL_TURN).astype(SINGLE),
                np.hypot(cosines, sines).astype(SINGLE),
                linear.astype(SINGLE),
            )
            self.__dict__["_made"] = made
        return made

    def _follow_in_numpy(
        self, which: Array, start: Array, controls: Array, repeat: int, noise: Array
    ) -> tuple[Array, Array]:
        d = self.system.n_states
        states, extras, s = [start], [], start
        for t in range(controls.shape[1] * repeat):
            control = controls[:, t // repeat]
            change = self.outputs(which, s, control) + (noise[:, t] if len(noise) else 0.0)
            base = s if self.mean is None else self.mean(s, self.system.actions(control))
            s = bounded(self.system, base + change[:, :d])
            states.append(s)
            extras.append(change[:, d:])
        return np.stack(states, 1), np.stack(extras, 1)

    def outputs(self, which: Array, obs: Array, controls: Array) -> Array:
        """Return the outputs [n, O] at observations [n, d] and controls [n, k], each in the given model."""
        x = self.encoding.inputs(self.system, obs, controls)
        extra = np.zeros((len(x), 0))
        if self.features is not None:
            extra = np.asarray(self.features(obs, self.system.actions(controls)), float).reshape(len(x), -1)
        z = np.einsum("nx,ofx->nof", x, self.omega)
        line = np.concatenate([x, np.ones((len(x), 1)), extra], 1)[:, None].repeat(len(self.omega), 1)
        rows = np.concatenate([np.cos(z), np.sin(z), line], 2) * self.scales
        y = np.einsum("nop,nop->no", rows, self.weights[which])
        return self.encoding.target_offset + self.encoding.target_scale * y


@dataclass(frozen=True, eq=False)
class KnownModel(Models):
    """A known model: ``step(obs [n, d], actions) -> next_obs [n, d]``."""

    system: System
    step: Function
    count = 1

    def follow(
        self, which: Array, start: Array, controls: Array, repeat: int = 1, noise: Array | None = None
    ) -> tuple[Array, Array]:
        states, actions = [start], self.system.actions(controls)
        for t in range(controls.shape[1] * repeat):
            states.append(np.asarray(self.step(states[-1], actions[:, t // repeat]), float))
        return np.stack(states, 1), np.zeros((len(start), controls.shape[1] * repeat, 0))
