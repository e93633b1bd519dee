"""Bayesian linear regression on random Fourier features with unknown noise, and fitting of hyper-parameters.

One output y of inputs x [X] is φ(x)·w + noise, where φ has 2F random Fourier features of a squared-exponential kernel
(Rahimi & Recht, 2007; frequencies orthogonal in blocks, Yu et al., 2016), the inputs, a bias, and user-defined
features. Features are scaled by the ratio of their weights' prior standard deviations to the noise's, so that the prior
is

    w | σ² ~ N(0, σ² I),   σ² ~ InverseGamma(a₀, a₀),   y/s = φ(x)·w + N(0, σ²),

where s is the noise standard deviation, and the posterior after n data is given by
(A = I + ΦᵀΦ, m = A⁻¹Φᵀy, a = a₀ + n/2, b = a₀ + (y·y − mᵀAm)/2).

**Draws** are w = m + σ ẑ with ẑ ~ N(0, A⁻¹). A persistent draw is ẑ = A⁻¹(z + Φᵀe), identified by the standard normal z
and e (one entry of e per datum), so the same function is updated as data arrive. Other draws are ẑ = A⁻¹Lz with A = LLᵀ
and stratified z, whose averages vary less. **Conditioning** on simulated data (Ψ, η) needs no refactorisation. With
G = A⁻¹Ψᵀ and S = I + ΨG,

    m' = m + G S⁻¹(η − Ψm),   ẑ' = ẑ − G (S + S^½)⁻¹ Ψẑ,   b' = b + (η − Ψm)ᵀS⁻¹(η − Ψm)/2,

where ẑ' has the covariance of the conditioned posterior (the square-root update of Andrews, 1968).

**Hyper-parameters** (lengthscales, amplitudes of the waves and the linear term, noise) maximise the evidence of the
exact Gaussian process times log-normal priors, using L-BFGS with the analytic gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import gammaincinv, gammaln, ndtri

from bamdp.continuous.cholesky import factor, solve

Array = NDArray[np.float64]
MOST_POINTS = 150  # data points used by the exact Gaussian process
ITERATIONS = 12
NOISE_FLOOR = 3e-4  # relative to the scale of the targets
CENTRES = np.log(
    [1.5, 1.0, 1.0, 0.01]
)  # prior medians of lengthscales, wave and line amplitude, noise (log scale)
SPREADS = np.array([1.0, 1.0, 1.0, 1.5])
LIMITS = np.log([(0.05, 100.0), (0.01, 30.0), (0.001, 30.0), (NOISE_FLOOR, 2.0)])
JITTER = 1e-8


@dataclass(frozen=True, eq=False)
class Hyper:
    """Hyper-parameters of one output."""

    lengthscales: Array  # [X]
    waves: float  # prior standard deviation of the sum of all waves at a point
    line: Array  # prior standard deviations [X + 1 + K] of slopes, bias and weights of user-defined features
    noise: float


def frequencies(n: int, n_inputs: int, rng: np.random.Generator) -> Array:
    """Return frequencies [n, X] of the squared-exponential kernel with lengthscale 1, orthogonal in blocks of X."""
    blocks = []
    for _ in range(-(-n // n_inputs)):
        directions, _ = np.linalg.qr(rng.normal(size=(n_inputs, n_inputs)))
        blocks.append(directions * np.sqrt(rng.chisquare(n_inputs, n_inputs))[:, None])
    return np.concatenate(blocks)[:n] if blocks else np.zeros((0, n_inputs))


def features(base: Array, hyper: Hyper, x: Array, extra: Array) -> Array:
    """Return the scaled features [n, P] of inputs [n, X] and user-defined features [n, K]."""
    z = x @ (base / hyper.lengthscales).T
    line = np.concatenate([x, np.ones((len(x), 1)), extra], 1) * hyper.line
    wave = hyper.waves / np.sqrt(max(len(base), 1))
    return np.concatenate([wave * np.cos(z), wave * np.sin(z), line], 1) / hyper.noise


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of one output in scaled units; ``precision`` is A and ``moment`` is Φᵀy."""

    precision: Array  # [P, P]
    moment: Array  # [P]
    square: float  # y·y
    n: int
    shape: float  # a₀
    rows: list[Array] = field(default_factory=list)  # Φ

    def observe(self, row: Array, y: float) -> Posterior:
        """Return the posterior after one more datum; the original must not be reused."""
        self.rows.append(row)
        return replace(
            self,
            precision=self.precision + np.outer(row, row),
            moment=self.moment + y * row,
            square=self.square + y * y,
            n=self.n + 1,
        )

    def observe_all(self, rows: Array, targets: Array) -> Posterior:
        """Return the posterior after data ``rows`` [n, P] and ``targets`` [n]."""
        return replace(
            self,
            precision=self.precision + rows.T @ rows,
            moment=self.moment + targets @ rows,
            square=self.square + float(targets @ targets),
            n=self.n + len(rows),
            rows=self.rows + list(rows),
        )

    def copy(self) -> Posterior:
        """Return an independent copy."""
        return replace(self, rows=list(self.rows))

    @cached_property
    def factor(self) -> Array:
        """The Cholesky factor of A, with added diagonal jitter if needed."""
        found, jitter = factor(self.precision), 0.0
        while found is None:
            jitter = max(10.0 * jitter, JITTER * float(np.trace(self.precision)) / len(self.moment))
            found = factor(self.precision + jitter * np.eye(len(self.moment)))
        return found

    def solve(self, rows: Array) -> Array:
        """Return A⁻¹b for a vector b [P], or for each row of a matrix."""
        return solve(self.factor, rows)

    @cached_property
    def mean(self) -> Array:
        """The posterior mean m of the weights."""
        return self.solve(self.moment)

    @property
    def a(self) -> float:
        """The shape of the posterior of σ²."""
        return self.shape + 0.5 * self.n

    @cached_property
    def b(self) -> float:
        """The scale of the posterior of σ²."""
        return self.shape + 0.5 * max(self.square - float(self.mean @ self.moment), 0.0)

    def predict(self, rows: Array) -> tuple[Array, Array]:
        """Return location and scale of the predictive Student distributions, which have 2a degrees of freedom."""
        spread = 1.0 + np.einsum("np,np->n", rows, self.solve(rows))
        return rows @ self.mean, np.sqrt(self.b / self.a * spread)

    def log_evidence(self) -> float:
        """Return the log density of all data, in scaled units."""
        a, b, a0 = self.a, self.b, self.shape
        half_logdet = float(np.log(np.diag(self.factor)).sum())
        gammas = gammaln(a) - gammaln(a0) + a0 * np.log(a0) - a * np.log(b)
        return float(gammas - half_logdet - 0.5 * self.n * np.log(2.0 * np.pi))

    def direction(self, z: Array, e: Array) -> Array:
        """Return the direction ẑ of a draw, given z [P] and e [n]."""
        return self.solve(z + e @ np.array(self.rows) if self.n else z)

    def condition(self, rows: Array, targets: Array) -> tuple[Array, Array, Array, Array]:
        """Return the posteriors after B simulated branches, without refactorisation.

        These are m' [B, P], the factors V [B, K, P] and U [B, K, P] of ẑ' = ẑ − Uᵀ V ẑ, and b' [B].
        """
        B, K, P = rows.shape
        gain: Any = self.solve(rows.reshape(B * K, P)).reshape(B, K, P)
        middle = np.eye(K) + rows @ np.swapaxes(gain, 1, 2)
        residual = targets - rows @ self.mean
        values, vectors = np.linalg.eigh(0.5 * (middle + np.swapaxes(middle, 1, 2)))
        values, turned = np.maximum(values, 1.0), np.swapaxes(vectors, 1, 2)
        rotated, moves = turned @ rows, turned @ gain
        residual = np.einsum("bij,bj->bi", turned, residual)
        scaled = residual / values
        roots = np.sqrt(values)
        means = self.mean + np.einsum("bk,bkp->bp", scaled, moves)
        return (
            means,
            rotated,
            moves / (roots * (roots + 1.0))[..., None],
            self.b + 0.5 * (residual * scaled).sum(1),
        )


def stratified(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
    """Return standard normal numbers [count, *shape] in antithetic pairs, with each entry stratified over the pairs."""
    pairs = -(-count // 2)
    whole = (pairs, *shape)
    strata = rng.permuted(np.broadcast_to(np.arange(pairs).reshape(-1, *[1] * len(shape)), whole), axis=0)
    half = ndtri(0.5 * (strata + 1.0 - rng.random(whole)) / pairs) * rng.choice([-1.0, 1.0], whole)
    return np.stack([half, -half], 1).reshape(2 * pairs, *shape)[:count]


def draw_scale(a: Array, b: Array, u: Array) -> Array:
    """Return σ where u in (0, 1) is the quantile of 1/σ² under InverseGamma(a, b)."""
    return np.sqrt(b / np.where(a < 1e6, np.maximum(gammaincinv(a, u), 1e-300), a))


def empty_posterior(n_features: int, shape: float) -> Posterior:
    """Return the prior, represented as a posterior without data."""
    return Posterior(np.eye(n_features), np.zeros(n_features), 0.0, 0, shape)


def fit(x: Array, y: Array, start: Hyper, rng: np.random.Generator) -> Hyper:
    """Return MAP hyper-parameters, optimised from ``start``; x [n, X] and y [n] are in scaled units."""
    if len(y) > MOST_POINTS:
        chosen = rng.permutation(len(y))[:MOST_POINTS]
        x, y = x[chosen], y[chosen]
    n_inputs = x.shape[1]
    distances = (x.T[:, :, None] - x.T[:, None, :]) ** 2  # [X, n, n]
    products = x @ x.T + 1.0
    kinds = np.concatenate([np.zeros(n_inputs, int), [1, 2, 3]])
    first = np.concatenate([start.lengthscales, [start.waves, start.line[0], start.noise]])
    first = np.clip(np.log(first), LIMITS[kinds, 0], LIMITS[kinds, 1])

    def loss(theta: Array) -> tuple[float, Array]:
        scales, (waves, line, noise) = np.exp(-2.0 * theta[:n_inputs]), np.exp(2.0 * theta[n_inputs:])
        kernel = waves * np.exp(-0.5 * np.tensordot(scales, distances, 1))
        whole = kernel + line * products
        whole[np.diag_indices_from(whole)] += noise + JITTER
        lower = factor(whole)
        if lower is None:
            return 1e25, np.zeros(len(theta))
        inverse = solve(lower, np.eye(len(y)))
        alpha = inverse @ y
        weights = inverse - np.outer(alpha, alpha)
        change = weights * kernel
        gradient = np.concatenate(
            [
                0.5 * scales * np.tensordot(distances, change, 2),
                [change.sum(), line * (weights * products).sum(), noise * np.trace(weights)],
            ]
        )
        off = (theta - CENTRES[kinds]) / SPREADS[kinds]
        value = 0.5 * float(y @ alpha) + float(np.log(np.diag(lower)).sum()) + 0.5 * float(off @ off)
        return value, gradient + off / SPREADS[kinds]

    bounds = [tuple(LIMITS[kind]) for kind in kinds]
    found = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": ITERATIONS})
    values = np.exp(found.x if np.isfinite(found.x).all() else first)
    line = np.full(n_inputs + 1, values[-2])
    return Hyper(
        values[:n_inputs],
        float(values[-3]),
        np.concatenate([line, start.line[n_inputs + 1 :]]),
        float(values[-1]),
    )
