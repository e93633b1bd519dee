"""Beliefs about continuous dynamics and the corresponding priors.

Each output has a separate regression (:mod:`bamdp.continuous.regression`): the change of each state coordinate and, if
unknown, the reward and an indicator of termination (only its mean is used, and only after the first termination). Angle
changes are taken along the shortest arc. If the squares of two coordinates always add up to 1, they are treated as the
cosine and sine of an angle from then on.

**Walls and clipping.** Predictions are clipped to the observation box. If both a coordinate and its prediction reach
the bound, the coordinate is not used for learning, because clipping explains the observation. Other coordinates of that
step (such as a velocity stopped by a wall) are excluded as outliers if they deviate by more than OUTLIER predictive
standard deviations. **Process noise** is the Gaussian noise of the regression, with one standard deviation per output.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtr

from bamdp import _checks
from bamdp._parameters import Declared, Spec, declared, flag, real_number, whole_number
from bamdp.continuous.models import Encoding, KnownModel, LearnedModels
from bamdp.continuous.regression import (
    Hyper,
    Posterior,
    draw_scale,
    empty_posterior,
    features,
    fit,
    frequencies,
    stratified,
)
from bamdp.continuous.system import FULL_TURN, MAX_BOUND, System

Array = NDArray[np.float64]
Physics = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
FIRST_FIT = 5  # number of data before the first fit
OUTLIER = 6.0
TOO_WIDE = 100.0  # a declared box is ignored for scaling if its width exceeds the data's by this factor
LEAST_CHANGE = 0.05  # per step, relative to half the range: data at rest do not imply that nothing moves
ANGLE_MOVED, ANGLE_ERROR = (
    0.02,
    1e-5,
)  # smallest range of a cosine and sine, and the tolerance for the sum of their squares
KNOWN = 1e12  # degrees of freedom that represent known noise


def text_of(thing: Any) -> str:
    """Return a planner or prior as text: its name and non-default parameters."""
    values = {
        one.name: getattr(thing, one.name)
        for one in declared(type(thing))
        if getattr(thing, one.name) != one.default
    }
    plain = {key: getattr(value, "__name__", value) for key, value in values.items()}
    return str(Spec(thing.name, plain))


class DynamicsPrior(Declared):
    """Prior over dynamics; subclasses define the features and their scales."""

    name: ClassVar[str]
    mean: Physics | None
    features: Physics | None

    @property
    def text(self) -> str:
        """The label used in tables."""
        return text_of(self)

    def belief(self, system: System) -> DynamicsBelief:
        """Return the belief before any data."""
        return DynamicsBelief(self, system)

    @property
    @abstractmethod
    def n_frequencies(self) -> int:
        """The number of random frequencies per output."""

    @property
    @abstractmethod
    def fits(self) -> bool:
        """Whether scales and hyper-parameters follow the data."""

    @property
    @abstractmethod
    def shape(self) -> float:
        """The shape a₀ of the noise prior."""

    @abstractmethod
    def first(self, n_inputs: int, n_controls: int, n_extra: int) -> Hyper:
        """Return the hyper-parameters of an output before any data."""


@dataclass(frozen=True, kw_only=True)
class RandomFeatures(DynamicsPrior):
    """Prior for smooth dynamics: random Fourier features plus a linear term, with hyper-parameters fitted to data.

    ``mean(obs, action) -> next_obs`` is the prior mean, by default the current observation; ``features(obs, action)``
    [n, K] adds features, such as a known term with an unknown weight.
    """

    name: ClassVar[str] = "random-features"
    frequencies: int = whole_number(64, help="random frequencies of each output; each is two features")
    refit: bool = flag(True, help="whether hyper-parameters are fitted to the data")
    noise_df: float = real_number(
        8.0, low=0.1, help="degrees of freedom of the prior of the noise's deviation"
    )
    mean: Physics | None = None
    features: Physics | None = None

    n_frequencies = property(lambda self: self.frequencies)
    fits = property(lambda self: self.refit)
    shape = property(lambda self: 0.5 * self.noise_df)

    def first(self, n_inputs: int, n_controls: int, n_extra: int) -> Hyper:
        return Hyper(np.full(n_inputs, 1.5), 1.0, np.ones(n_inputs + 1 + n_extra), 0.01)


@dataclass(frozen=True, kw_only=True)
class LinearGaussian(DynamicsPrior):
    """Prior for linear dynamics: s' = s + A s + B a + c + noise, in the units of the environment.

    The entries of A, B and c are independent and normal with mean 0. Their standard deviations are the given values,
    scaled by the ratio of the noise's standard deviation to its prior value (the usual conjugate prior); 0 excludes a
    term.
    """

    name: ClassVar[str] = "linear"
    state: float = real_number(1.0, low=0.0, help="prior deviation of the entries of A")
    action: float = real_number(1.0, low=0.0, help="prior deviation of the entries of B")
    bias: float = real_number(1.0, low=0.0, help="prior deviation of the entries of c")
    noise: float = real_number(0.1, low=0.0, open_low=True, help="prior value of the noise's deviation")
    noise_df: float | None = real_number(
        None, low=0.1, help="degrees of freedom of the noise's prior; None if the noise is known"
    )
    mean: Physics | None = None
    features: Physics | None = None

    n_frequencies = 0
    fits = False

    @property
    def shape(self) -> float:
        return 0.5 * (KNOWN if self.noise_df is None else self.noise_df)

    def first(self, n_inputs: int, n_controls: int, n_extra: int) -> Hyper:
        line = np.ones(n_inputs + 1 + n_extra)
        line[: n_inputs - n_controls], line[n_inputs - n_controls : n_inputs] = self.state, self.action
        line[n_inputs] = self.bias
        return Hyper(np.ones(n_inputs), 1.0, line, self.noise)


@dataclass(frozen=True, kw_only=True)
class KnownDynamics:
    """Prior for known dynamics ``step(obs, action) -> next_obs``, vectorised over states."""

    name: ClassVar[str] = "known"
    fits: ClassVar[bool] = False
    n_frequencies: ClassVar[int] = 0
    step: Physics
    text = property(lambda self: self.name)

    def belief(self, system: System) -> KnownBelief:
        """Return the belief in the known model, supported only by planners that use a single model."""
        if system.reward is None or system.terminated is None:
            raise ValueError("known dynamics need known rewards and ends: give reward= and terminated=")
        return KnownBelief(self, system)


class KnownBelief:
    """Belief about known dynamics; it never changes."""

    reward_output = end_output = -1
    ends = n = 0

    def __init__(self, prior: KnownDynamics, system: System) -> None:
        self.prior, self.system, self.n_outputs = prior, system, system.n_states

    def observe(self, *step: Any) -> None:
        """Do nothing."""

    def mean(self) -> KnownModel:
        """Return the known model."""
        return KnownModel(self.system, self.prior.step)

    def sample(self, rng: Any, count: int = 1) -> KnownModel:
        """Return the known model for any ``count``."""
        return self.mean()

    def copy(self) -> KnownBelief:
        """Return the belief itself, which is immutable."""
        return self

    def content(self) -> dict[str, Any]:
        """Return an empty dictionary, since only the prior and system need to be saved."""
        return {}

    def restore(self, content: Mapping[str, Any]) -> None:
        """Do nothing, since there is no learned content."""


@dataclass(frozen=True, eq=False)
class Imagined:
    """Posteriors after B simulated branches; see :mod:`bamdp.continuous.regression`."""

    belief: DynamicsBelief
    means: Array  # [B, O, P]
    gains: Array  # [O, B, K, P]
    moves: Array  # [O, B, K, P]
    scales: Array  # [B, O], b'

    def drawn(self, directions: Array, quantiles: Array) -> LearnedModels:
        """Return draws ẑ [B, M, O, P] with quantiles [B, M, O], conditioned on the branches: B·M models."""
        n_outputs, B, K, P = self.gains.shape
        M = directions.shape[1]
        moved = np.empty((B, M, n_outputs, P))
        for o in range(n_outputs):
            off = directions[:, :, o] @ np.swapaxes(self.gains[o], 1, 2)  # [B, M, K]
            moved[:, :, o] = directions[:, :, o] - off @ self.moves[o]
        shapes = np.array([p.a + 0.5 * K for p in self.belief.posteriors])
        sigma = draw_scale(shapes, self.scales[:, None], quantiles)
        weights = self.belief._drawn(self.means[:, None], sigma, moved)
        return self.belief._models(weights.reshape(B * M, n_outputs, P), sigma.reshape(B * M, n_outputs))


@dataclass(frozen=True, eq=False)
class Data:
    """Observed data, one row per step."""

    obs: list[Array] = field(default_factory=list)
    controls: list[Array] = field(default_factory=list)
    outputs: list[Array] = field(default_factory=list)  # [O]
    used: list[NDArray[np.bool_]] = field(default_factory=list)  # [O]; False for outputs determined by a wall
    places: list[Array] = field(default_factory=list)  # [O] predictive quantiles in (0, 1); NaN at walls


class DynamicsBelief:
    """A posterior over the dynamics of a system, and over rewards and terminations if unknown.

    Created by ``prior.belief(system)``.
    """

    def __init__(self, prior: DynamicsPrior, system: System) -> None:
        self.prior, self.system, self.data = prior, system, Data()
        d = system.n_states
        self.reward_output = d if system.reward is None else -1
        self.end_output = d + (system.reward is None) if system.terminated is None else -1
        self.n_outputs = d + (system.reward is None) + (system.terminated is None)
        self.ends = 0  # number of observed terminations
        n_inputs = d + len(system.state_angles) + system.n_controls
        self.n_extra = self._extra(np.zeros((1, d)), np.zeros((1, system.n_controls))).shape[1]
        self.base = frequencies(prior.n_frequencies, n_inputs, np.random.default_rng(0))
        self.hypers = [prior.first(n_inputs, system.n_controls, self.n_extra)] * self.n_outputs
        self.next_fit = FIRST_FIT
        self._rebuild()

    def __repr__(self) -> str:
        return f"<DynamicsBelief of {self.prior}, {len(self.data.obs)} steps observed>"

    @property
    def n(self) -> int:
        """The number of observed steps."""
        return len(self.data.obs)

    def observe(
        self, obs: ArrayLike, action: Any, reward: float, next_obs: ArrayLike, terminated: bool = False
    ) -> None:
        """Learn from a real step."""
        s, after = self.system.state(obs), self.system.state(next_obs)
        control = self.system.control(action)
        outputs = self._outputs(s, control, _checks.real(reward, "reward"), after, bool(terminated))
        location, scale, freedom = self._predict(s[None], control[None])
        used = self._learnable(after, outputs, location[0], scale[0])
        places = stdtr(freedom, (outputs - location[0]) / scale[0])
        row = (s, control, outputs, used, np.where(used, places, np.nan))
        for name, value in zip(vars(self.data), row):
            getattr(self.data, name).append(value)
        self.ends += bool(terminated)
        if self.prior.fits and self.n >= self.next_fit:
            self._fit()
        else:
            self._learn(-1)

    def predict(self, obs: ArrayLike, actions: ArrayLike) -> tuple[Array, Array]:
        """Return mean and standard deviation [n, d] of the next states, including process noise, before clipping."""
        s = np.array([self.system.state(row) for row in np.atleast_2d(np.asarray(obs, float))])
        rows = (
            np.asarray(actions) if self.system.n_actions else np.asarray(actions, float).reshape(len(s), -1)
        )
        controls = np.array([self.system.control(action) for action in rows])
        location, scale, freedom = self._predict(s, controls)
        d = self.system.n_states
        base = s if self.prior.mean is None else self.prior.mean(s, self.system.actions(controls))
        return base + location[:, :d], (scale * np.sqrt(freedom / np.maximum(freedom - 2.0, 1e-9)))[:, :d]

    def mean(self) -> LearnedModels:
        """Return the posterior mean model."""
        return self._models(np.array([[p.mean for p in self.posteriors]]), self._deviations()[None])

    def sample(self, rng: np.random.Generator | int, count: int = 1) -> LearnedModels:
        """Return ``count`` models drawn from the posterior; an integer ``rng`` identifies a fixed draw."""
        directions, quantiles = self.directions(rng, count)
        return self.drawn(directions, quantiles)

    def directions(self, rng: np.random.Generator | int, count: int) -> tuple[Array, Array]:
        """Return ẑ [M, O, P] and the noise quantiles [M, O] of M draws.

        A generator gives stratified draws in antithetic pairs, m ± σ ẑ, so the mean of an even number of draws equals
        the posterior mean. Draws with the same integer ``rng`` represent the same functions, updated with any new data.
        """
        if isinstance(rng, np.random.Generator):
            directions, quantiles = self.groups(rng, 1, count)
            return directions[0], quantiles[0]
        used = self._used()
        directions, quantiles = np.empty((count, *self.scales.shape)), np.empty((count, self.n_outputs))
        for m in range(count):
            first, later = np.random.default_rng([rng, m]), np.random.default_rng([rng, m, 1])
            z, quantiles[m] = first.normal(size=self.scales.shape), first.random(self.n_outputs)
            e = later.normal(size=(self.n, self.n_outputs))
            directions[m] = [p.direction(z[o], e[used[o], o]) for o, p in enumerate(self.posteriors)]
        return directions, quantiles

    def groups(self, rng: np.random.Generator, n: int, count: int) -> tuple[Array, Array]:
        """Return ẑ [n, M, O, P] and the noise quantiles [n, M, O] of n groups of M draws, each group stratified."""
        P = self.scales.shape[1]
        z = np.swapaxes(stratified(rng, count, (n, self.n_outputs, P)), 0, 1)
        for o, posterior in enumerate(self.posteriors):
            z[:, :, o] = posterior.solve(z[:, :, o].reshape(-1, P) @ posterior.factor.T).reshape(n, count, P)
        return z, ndtr(np.swapaxes(stratified(rng, count, (n, self.n_outputs)), 0, 1))

    def drawn(self, directions: Array, quantiles: Array) -> LearnedModels:
        """Return the models that correspond to draws."""
        a, b, means = (np.array([getattr(p, name) for p in self.posteriors]) for name in ("a", "b", "mean"))
        sigma = draw_scale(a, b, quantiles)
        return self._models(self._drawn(means, sigma, directions), sigma)

    def imagine(self, states: Array, controls: Array, extras: Array) -> Imagined:
        """Return the posteriors after each of B simulated branches, without changing this belief.

        Branches are ``states`` [B, K + 1, d], ``controls`` [B, K, k], ``extras`` [B, K, E], as
        :meth:`LearnedModels.follow` returns them with process noise.
        """
        B, K, k = controls.shape
        d = states.shape[2]
        obs, after = (part.reshape(B * K, d).astype(float) for part in (states[:, :-1], states[:, 1:]))
        held = controls.reshape(B * K, k)
        targets = self._targets(self._changes(obs, held, after), extras.reshape(B * K, -1))
        rows = [self._rows(o, obs, held).reshape(B, K, -1) for o in range(self.n_outputs)]
        parts = [p.condition(rows[o], targets[:, o].reshape(B, K)) for o, p in enumerate(self.posteriors)]
        means, rotated, moves, scales = zip(*parts)
        return Imagined(self, np.stack(means, 1), np.array(rotated), np.array(moves), np.stack(scales, 1))

    def log_evidence(self) -> float:
        """Return the log density of the data used for learning, in the units of the environment."""
        scales = [hyper.noise * s for hyper, s in zip(self.hypers, self.encoding.target_scale)]
        return float(sum(p.log_evidence() - p.n * np.log(s) for p, s in zip(self.posteriors, scales)))

    def coverage(self, level: float = 0.9) -> Array:
        """Return the empirical coverage [O] of the central predictive intervals of the given level."""
        places = np.array(self.data.places).reshape(-1, self.n_outputs)
        inside = np.abs(2.0 * places - 1.0) <= level
        return np.where(np.isnan(places), np.nan, inside).sum(0, where=~np.isnan(places)) / np.maximum(
            (~np.isnan(places)).sum(0), 1
        )

    def copy(self) -> DynamicsBelief:
        """Return an independent belief."""
        made = DynamicsBelief.__new__(DynamicsBelief)
        made.__dict__.update(vars(self))
        made.data = Data(*(list(column) for column in vars(self.data).values()))
        made.posteriors = [p.copy() for p in self.posteriors]
        return made

    def content(self) -> dict[str, Any]:
        """Return the belief's saved form."""
        columns = {name: np.array(column) for name, column in vars(self.data).items()}
        hypers = [(h.lengthscales, h.waves, h.line, h.noise) for h in self.hypers]
        encoding = dict(vars(self.encoding))
        return {"data": columns, "hypers": hypers, "encoding": encoding, "next_fit": self.next_fit}

    def restore(self, content: Mapping[str, Any]) -> None:
        """Restore the data that :meth:`content` returned for a belief with the same prior and system."""
        self.data = Data(**{name: list(column) for name, column in content["data"].items()})
        self.hypers = [Hyper(*hyper) for hyper in content["hypers"]]
        self.next_fit = content["next_fit"]
        if self.end_output >= 0:
            self.ends = int(sum(row[self.end_output] for row in self.data.outputs))
        self._rebuild(Encoding(**content["encoding"]))

    # --- from observations to regressions -----------------------------------------------------------------------

    def _extra(self, obs: Array, controls: Array) -> Array:
        if self.prior.features is None:
            return np.zeros((len(obs), 0))
        return np.asarray(self.prior.features(obs, self.system.actions(controls)), float).reshape(
            len(obs), -1
        )

    def _changes(self, obs: Array, controls: Array, after: Array) -> Array:
        """Return the changes [n, d] of the coordinates relative to the prior mean."""
        base = obs if self.prior.mean is None else self.prior.mean(obs, self.system.actions(controls))
        change = after - base
        for j in self.system.state_angles:
            change[:, j] -= FULL_TURN * np.round(change[:, j] / FULL_TURN)
        return change

    def _outputs(self, s: Array, control: Array, reward: float, after: Array, terminated: bool) -> Array:
        change = self._changes(s[None], control[None], after[None])[0]
        learned = [reward] * (self.reward_output >= 0) + [float(terminated)] * (self.end_output >= 0)
        return np.concatenate([change, learned])

    def _learnable(self, after: Array, outputs: Array, location: Array, scale: Array) -> NDArray[np.bool_]:
        """Return which outputs [O] of a step to learn from; see the module docstring."""
        used, d = np.ones(self.n_outputs, bool), len(after)
        width = self.system.high - self.system.low
        margin = 1e-6 * np.where(np.isfinite(width), width, 1.0)
        below, above = after <= self.system.low + margin, after >= self.system.high - margin
        below, above = (bound & ~self.system.turns for bound in (below, above))
        if not (below | above).any():
            return used
        surprise = (outputs - location) / scale
        used &= np.abs(surprise) < OUTLIER
        used[:d] &= ~((below & (surprise[:d] > 0)) | (above & (surprise[:d] < 0)))
        used[d:] = True
        return used

    def _targets(self, changes: Array, extras: Array) -> Array:
        """Return the regression targets [n, O], in units of the noise standard deviation."""
        y = np.concatenate([changes, extras], 1) - self.encoding.target_offset
        return y / self.encoding.target_scale / np.array([hyper.noise for hyper in self.hypers])

    def _rows(self, output: int, obs: Array, controls: Array) -> Array:
        x = self.encoding.inputs(self.system, obs, controls)
        return features(self.base, self.hypers[output], x, self._extra(obs, controls))

    def _predict(self, obs: Array, controls: Array) -> tuple[Array, Array, Array]:
        """Return location, scale [n, O] and degrees of freedom [O] of the outputs, in the units of the environment."""
        found = [p.predict(self._rows(o, obs, controls)) for o, p in enumerate(self.posteriors)]
        units = self.encoding.target_scale * np.array([hyper.noise for hyper in self.hypers])
        location, scale = (np.array(part).T * units for part in zip(*found))
        return location + self.encoding.target_offset, scale, np.array([2.0 * p.a for p in self.posteriors])

    def _deviations(self) -> Array:
        """Return the expected noise standard deviations [O], in the regressions' units."""
        return np.array([np.sqrt(p.b / p.a) for p in self.posteriors])

    def _drawn(self, means: Array, sigma: Array, directions: Array) -> Array:
        """Return weights [..., O, P] of draws given means, deviations [..., O] and directions; ends use means."""
        weights = means + sigma[..., None] * directions
        if self.end_output >= 0:
            weights[..., self.end_output, :] = means[..., self.end_output, :]
        return weights

    def _models(self, weights: Array, sigma: Array) -> LearnedModels:
        units = self.encoding.target_scale * np.array([hyper.noise for hyper in self.hypers])
        omega = np.array([self.base / hyper.lengthscales for hyper in self.hypers])
        noise = sigma * units  # a new array
        noise[:, self.system.n_states :] = 0.0
        return LearnedModels(
            self.system,
            self.encoding,
            omega,
            self.scales,
            weights,
            noise,
            self.prior.mean,
            self.prior.features,
        )

    # --- learning -----------------------------------------------------------------------------------------------

    def _used(self) -> NDArray[np.bool_]:
        return np.array(self.data.used, bool).reshape(-1, self.n_outputs).T

    def _learn(self, i: int) -> None:
        """Add datum ``i`` to the regressions."""
        obs, control, outputs = (
            np.array(c[i])[None] for c in (self.data.obs, self.data.controls, self.data.outputs)
        )
        d = self.system.n_states
        targets = self._targets(outputs[:, :d], outputs[:, d:])[0]
        for o in np.flatnonzero(self.data.used[i]).tolist():
            self.posteriors[o] = self.posteriors[o].observe(self._rows(o, obs, control)[0], targets[o])

    def _rebuild(self, encoding: Encoding | None = None) -> None:
        """Recompute all posteriors with the current hyper-parameters and the scales of the current data."""
        self.encoding = self._encoding() if encoding is None else encoding
        F = len(self.base)
        self.scales = np.array(
            [np.concatenate([np.full(2 * F, h.waves / np.sqrt(max(F, 1))), h.line]) for h in self.hypers]
        )
        P, shape = self.scales.shape[1], self.prior.shape
        self.posteriors: list[Posterior] = [empty_posterior(P, shape) for _ in range(self.n_outputs)]
        if not self.n:
            return
        obs, controls, outputs = map(np.array, (self.data.obs, self.data.controls, self.data.outputs))
        d = self.system.n_states
        targets = self._targets(outputs[:, :d], outputs[:, d:])
        for o, used in enumerate(self._used()):
            self.posteriors[o] = self.posteriors[o].observe_all(
                self._rows(o, obs[used], controls[used]), targets[used, o]
            )

    def _encoding(self) -> Encoding:
        """Return input and target scales based on the current data."""
        system, d = self.system, self.system.n_states
        if not self.prior.fits and self.prior.n_frequencies == 0:  # use the units of the environment
            gain, offset = np.ones(system.n_controls), np.zeros(system.n_controls)
            if not system.n_actions:
                gain = 0.5 * (system.action_high - system.action_low)
                offset = system.action_low + gain
            return Encoding(
                np.zeros(d), np.ones(d), gain, offset, np.zeros(self.n_outputs), np.ones(self.n_outputs)
            )
        centre, half = self._ranges()
        offset, scale = np.zeros(self.n_outputs), np.ones(self.n_outputs)
        scale[:d] = 0.1 * half
        if self.n >= FIRST_FIT:
            outputs = np.array(self.data.outputs)
            scale[:d] = np.maximum(np.sqrt((outputs[:, :d] ** 2).mean(0)), LEAST_CHANGE * half)
            if self.reward_output >= 0:
                rewards = outputs[:, self.reward_output]
                offset[self.reward_output] = rewards.mean()
                scale[self.reward_output] = rewards.std() or max(abs(rewards.mean()), 1.0)
        ones = np.ones(system.n_controls)
        return Encoding(centre, half, ones, 0.0 * ones, offset, scale)

    def _ranges(self) -> tuple[Array, Array]:
        """Return the centre and half width [d] of each coordinate, from the declared box or the data."""
        low, high = self.system.low, self.system.high
        declared = np.isfinite(high - low) & (high - low < MAX_BOUND)
        low, high = np.where(declared, low, -1.0), np.where(declared, high, 1.0)
        centre, half = 0.5 * (low + high), np.maximum(0.5 * (high - low), 1e-9)
        if self.n:
            seen = np.array(self.data.obs)
            least, most = seen.min(0), seen.max(0)
            middle, width = 0.5 * (least + most), most - least  # the data cover half of the range
            by_data = ~declared | (half > TOO_WIDE * np.maximum(np.abs(seen - centre).max(0), 1e-9))
            by_data &= width > 1e-9
            centre, half = np.where(by_data, middle, centre), np.where(by_data, width, half)
        return centre, half

    def _replay_with_angles(self) -> bool:
        """Declare pairs of coordinates on the unit circle as angles and replay all data; return whether any exist."""
        if self.prior.mean is not None or self.prior.features is not None:
            return False  # these functions expect the coordinates as they are
        old, states = self.system, np.array(self.data.obs)
        obs, angles = old.observations(states), list(old.angles)
        for i, j in combinations([source for source in old.sources if isinstance(source, int)], 2):
            moved = np.ptp(obs[:, [i, j]], axis=0).max() > ANGLE_MOVED
            free = not {i, j} & {k for angle in angles for k in np.atleast_1d(angle).tolist()}
            if moved and free and np.abs(obs[:, i] ** 2 + obs[:, j] ** 2 - 1.0).max() < ANGLE_ERROR:
                angles.append((i, j))
        if len(angles) == len(old.angles):
            return False
        made = self.prior.belief(replace(old, angles=tuple(angles)))
        for s, before, control, outputs in zip(states, obs, self.data.controls, self.data.outputs):
            after = old.observations(s + outputs[: len(s)])
            reward, ended = (outputs[o] if o >= 0 else 0.0 for o in (self.reward_output, self.end_output))
            made.observe(before, old.action(control), reward, after, bool(ended))
        self.__dict__.update(vars(made))
        return True

    def _fit(self) -> None:
        """Fit the hyper-parameters of all outputs and recompute the posteriors."""
        if self._replay_with_angles():
            return
        self.next_fit = self.n + max(FIRST_FIT, self.n // 4)
        self.encoding = self._encoding()
        obs, controls, outputs = map(np.array, (self.data.obs, self.data.controls, self.data.outputs))
        x = self.encoding.inputs(self.system, obs, controls)
        y = (outputs - self.encoding.target_offset) / self.encoding.target_scale
        for o, used in enumerate(self._used()):
            if used.sum() >= FIRST_FIT and (o != self.end_output or self.ends):
                rng = np.random.default_rng(self.n)
                self.hypers[o] = fit(x[used], y[used, o], self.hypers[o], rng)
        self._rebuild(self.encoding)
