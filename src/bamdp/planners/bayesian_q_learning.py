"""BayesianQLearning: a posterior over each Q value, learned from real steps without a model.

**Belief.** Let R(s, a) be the discounted return of taking a in s and acting optimally thereafter. It is modelled as
Normal with unknown mean μ = Q(s, a) and precision τ, which have a conjugate Normal-Gamma prior NG(μ0, λ, α, β):

    τ ~ Gamma(α, rate β),    μ | τ ~ N(μ0, 1/(λτ)),
    E[μ] = μ0,   Var[μ] = β/(λ(α−1)),   μ ~ μ0 + √(β/(λα)) t_2α,   R ~ μ0 + √(β(λ+1)/(λα)) t_2α.

Observing a return x updates this to (:func:`observed`)

    NG((λμ0 + x)/(λ+1), λ+1, α + ½, β + λ(x − μ0)²/(2(λ+1))).

**Updating.** Only r and s' are observed, not returns. The return is r + γR', where R' is the return of the action in s'
with the highest mean, or 0 if s' is terminal. R' is distributed as above, and there are two ways to use it.

- *moment* (:func:`moment_update`): plug the first two moments of r + γR' into the formula as if they came from one
  sample: x becomes the mean, and β increases by an additional half of the variance.
- *mixture* (:func:`mixture_update`): average the posteriors over R', p(μ, τ) = E[NG(· | r + γR')], and project onto the
  Normal-Gamma that minimises KL(p ‖ NG), which matches E[τ], E[τμ], E[τμ²], E[log τ]:

      μ0 = E[τμ]/E[τ],   1/λ = E[τ(μ − μ0)²],   log α − ψ(α) = log E[τ] − E[log τ],   β = α/E[τ].

  Given R' these expectations have closed forms, leaving a single integral over R' (:func:`t_nodes`). Unlike the moment
  update, the mixture update with a vague R' can *increase* uncertainty.

**Action selection.** *sampling*: draw μ for each action and take the largest (Thompson sampling for Q). *vpi*: if a₁
and a₂ have the two highest means, perfect information μ(s, a) = q is worth

    q − μ0(s, a₁)   if a ≠ a₁ turns out better,      μ0(s, a₂) − q   if a₁ turns out worse,   otherwise 0.

VPI(s, a) is the expectation of this gain, a closed-form expected excess of a Student t (:func:`excess`). The action
maximises μ0(s, a) + VPI(s, a), with ties broken at random.

**Guarantee.** A moment update moves μ0 like a Q-learning step with rate 1/(λ+1). After n visits the rate is 1/(λ₀+n),
so the means converge to Q* if every pair is tried infinitely often (Watkins & Dayan 1992). Sampling ensures this; vpi
need not. The rate 1/n is slow to forget early bootstrapped targets (see :mod:`bamdp.planners.q_learning`), and the
posterior treats each R' as independent evidence although successive values are strongly dependent. With γ = 0 the
method is exact except for the normality assumption.

**What to expect.** The Q values of a state differ by only about a fraction 1−γ of their magnitude, whereas the prior
must span their full range. Sampling therefore acts almost uniformly for the first (magnitude/difference)² visits,
so use it with a ``spread`` near 0.01. vpi performs better within the thousand steps of our tables, and with it
mixture updates outperform moment updates (349 versus 271 on chain, 305 versus 260 on double_loop, 21 versus 15 on
grid5). Sampling with ``spread`` 0.01 and mixture updates earns 202, 331 and 21.

**Departures.** The paper sets its priors by hand. Here μ0 and β are derived from the range of rewards unless specified:
returns lie in [r_min, r_max]/(1−γ), an interval of width W; μ0 is 0.2 W above the lowest return, √Var[μ] = 0.3 W, λ = 1
and α = 2. More optimism helps on chain, less on grids, where most returns are low; these defaults were among the best
of 36 settings on average over chain, double_loop and grid5. The paper keeps α above 1 + ε after a projection, so that
variances exist; ε = 10⁻³ here. Ties between the highest means in s' go to the lowest action.

Reference: Dearden, Friedman & Russell, "Bayesian Q-learning" (AAAI 1998).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bamdp._kernels.jit import kernel
from bamdp._kernels.random import gamma, normal
from bamdp._parameters import choice, positive_number, real_number
from bamdp.beliefs.belief import Belief
from bamdp.planners.base import KernelPlanner, Plan, Transition, best_of, candidates, known_range

SELECTION = ("vpi", "sampling")
UPDATE = ("moment", "mixture")
PRIOR_LEVEL = 0.2  # default position of μ0 between the lowest and the highest return
LEAST_SHAPE = 1.001  # 1 + ε: the variance is infinite for α <= 1
GAUSS_X, GAUSS_W = np.polynomial.legendre.leggauss(10)
DOUBLINGS = 2.0 ** np.arange(24)  # scales of a t_2 distribution, whose tail beyond 2^23 is 1e-14


class ReturnPosterior(NamedTuple):
    """NG(μ0, λ, α, β), the posterior for the return of one pair."""

    mu0: float
    lam: float
    alpha: float
    beta: float

    @property
    def variance(self) -> float:
        """Return Var[μ]."""
        return self.beta / (self.lam * (self.alpha - 1.0))

    @property
    def return_variance(self) -> float:
        """Return Var[R], the variance from both noise and uncertainty about the mean."""
        return (self.lam + 1.0) * self.variance


# --- the posterior ----------------------------------------------------------------------------------------


def observed(prior: ReturnPosterior, x: float, variance: float = 0.0) -> ReturnPosterior:
    """Return the posterior after a return with mean ``x``; a nonzero variance gives the paper's moment update."""
    mu0, lam, alpha, beta = prior
    gain = 0.5 * variance + 0.5 * lam / (lam + 1.0) * (x - mu0) ** 2
    return ReturnPosterior((lam * mu0 + x) / (lam + 1.0), lam + 1.0, alpha + 0.5, beta + gain)


def moment_update(
    prior: ReturnPosterior, r: float, discount: float, after: ReturnPosterior
) -> ReturnPosterior:
    """Apply the moment update for reward ``r`` and a next return with posterior ``after``."""
    return observed(prior, r + discount * after.mu0, discount**2 * after.return_variance)


def mixture_update(
    prior: ReturnPosterior, r: float, discount: float, after: ReturnPosterior
) -> ReturnPosterior:
    """Apply the mixture update: average posteriors over the unseen return, project onto a Normal-Gamma."""
    if discount == 0.0:
        return observed(prior, r)
    mu0, lam, alpha, beta = prior
    scale = math.sqrt(after.beta * (after.lam + 1.0) / (after.lam * after.alpha))
    centre, width = r + discount * after.mu0, discount * scale
    # Given the return x the posterior is NG(m, λ+1, α+½, b), with b = β(1 + z²) at z = (x − μ0)/fine.
    fine = math.sqrt(2.0 * beta * (lam + 1.0) / lam)
    x, weight = t_nodes(2.0 * after.alpha, centre, width, mu0, fine)
    z = (x - mu0) / fine
    m = (lam * mu0 + x) / (lam + 1.0)
    shape = alpha + 0.5
    precision = weight / (1.0 + z * z)  # each node's contribution to E[τ], times β/(α+½)
    total = float(precision.sum())
    new_mu0 = float(precision @ m) / total
    spread = shape / beta * float(precision @ (m - new_mu0) ** 2)
    new_lam = 1.0 / (1.0 / (lam + 1.0) + spread)
    jensen = math.log(total) + float(weight @ np.log1p(z * z))  # log E[1/b] + E[log b] >= 0
    new_alpha = max(LEAST_SHAPE, shape_from_logs(log_minus_psi(shape) + max(0.0, jensen)))
    return ReturnPosterior(new_mu0, new_lam, new_alpha, new_alpha * beta / (shape * total))


def t_nodes(
    nu: float, centre: float, width: float, other: float, fine: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return quadrature nodes and weights for E[f(X)], X = centre + width·t_ν, ν >= 2.

    ``f`` may vary near ``other`` on the scale ``fine``, which can differ from ``width`` by orders of magnitude: the
    Gauss–Legendre panels double in length away from both centres. Weights are normalised to sum to one.
    """
    reach = width * DOUBLINGS[-1]
    steps = math.ceil(math.log2(max(2.0, (reach + abs(other - centre)) / fine)))
    near, far = width * DOUBLINGS, fine * 2.0 ** np.arange(0, steps + 1)
    edges = np.concatenate([centre - near, [centre], centre + near, other - far, [other], other + far])
    edges = np.unique(np.clip(edges, centre - reach, centre + reach))
    half = 0.5 * np.diff(edges)[:, None]
    x = (edges[:-1, None] + half * (1.0 + GAUSS_X)).ravel()
    t = (x - centre) / width
    weight = (half * GAUSS_W).ravel() * np.exp(-0.5 * (nu + 1.0) * np.log1p(t * t / nu))
    return x, weight / weight.sum()


def log_minus_psi(y: float) -> float:
    """Return log y − ψ(y) > 0, avoiding cancellation for large y."""
    from scipy.special import psi  # slow to import, and only this planner needs it

    if y < 30.0:
        return float(math.log(y) - psi(y))
    v = 1.0 / (y * y)
    return 0.5 / y + v * (1.0 / 12.0 - v * (1.0 / 120.0 - v * (1.0 / 252.0 - v / 240.0)))


def shape_from_logs(c: float) -> float:
    """Solve log y − ψ(y) = c > 0 for y, which lies between 1/(2c) and 1/c."""
    from scipy.optimize import brentq

    return float(brentq(lambda y: log_minus_psi(y) - c, 0.5 / c, 1.0 / c, xtol=1e-300, rtol=1e-15))


# --- choosing ---------------------------------------------------------------------------------------------


def excess(nu: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return E[(t_ν − z)⁺] = f(z)(ν + z²)/(ν − 1) − z·P(t_ν > z) for ν > 1."""
    from scipy.special import betainc, betaln  # slow to import, and only this planner needs it

    tail = 0.5 * betainc(0.5 * nu, 0.5, nu / (nu + z * z))  # beyond |z|
    log_f = -0.5 * (nu + 1.0) * np.log1p(z * z / nu) - 0.5 * np.log(nu) - betaln(0.5 * nu, 0.5)
    above = np.exp(log_f) * (nu + z * z) / (nu - 1.0) - np.abs(z) * tail  # E[(t − |z|)⁺]
    return np.maximum(0.0, above) + np.maximum(0.0, -z)


def perfect_information(mu0: np.ndarray, lam: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Return the VPI of each action in a state; arguments are arrays [A] over existing actions."""
    if len(mu0) == 1:
        return np.zeros(1)
    first = int(np.argmax(mu0))
    second = np.max(np.delete(mu0, first))
    scale = np.sqrt(beta / (lam * alpha))
    z = (mu0[first] - mu0) / scale
    z[first] = (mu0[first] - second) / scale[first]  # by symmetry, the case of falling below the second
    return np.asarray(scale * excess(2.0 * alpha, z))


@kernel
def sample_means(mu0, lam, alpha, beta, rng, out):
    """Draw every μ; all arrays are [A]."""
    for a in range(mu0.shape[0]):
        tau = gamma(rng, alpha[a]) / beta[a]
        out[a] = mu0[a] + normal(rng) / np.sqrt(lam[a] * tau)


@dataclass
class BayesianQMemory:
    """The posterior of every pair."""

    posterior: np.ndarray  # float64 [4, S, A]: μ0, λ, α, β
    visits: np.ndarray  # int64 [S, A]
    discount: float

    def pair(self, s: int, a: int) -> ReturnPosterior:
        """Return the posterior of one pair."""
        return ReturnPosterior(*self.posterior[:, s, a].tolist())


@dataclass(frozen=True, kw_only=True)
class BayesianQLearning(KernelPlanner):
    """Bayesian Q-learning: Normal-Gamma beliefs about returns.

    Parameters
    ----------
    selection
        ``"vpi"``, the highest mean plus myopic value of perfect information, or ``"sampling"``, the highest sampled
        mean.
    update
        ``"moment"`` or ``"mixture"``; see the module docstring.
    mu0
        Prior mean of every Q. The default is a fifth of the way from the lowest to the highest possible return.
    lam
        λ, the equivalent number of returns behind the prior mean.
    alpha
        α > 1, half the equivalent number of returns behind the prior precision.
    spread
        Prior standard deviation of every Q, as a fraction of the width of the range of returns.
    beta
        β, as an alternative to ``spread``; the standard deviation is then √(β/(λ(α−1))).

    Examples
    --------
    >>> import bamdp
    >>> agent = bamdp.Agent(BayesianQLearning(mu0=0.0, lam=1.0, alpha=2.0, beta=1.0), prior=bamdp.Dirichlet(),
    ...                     n_states=2, n_actions=2, discount=0.0, seed=0)
    >>> agent.observe(0, 1, 1.0, 1)
    >>> agent.plan(0).candidates[1].value
    0.5
    """

    uses_prior: ClassVar[bool] = False
    one_discount: ClassVar[str] = "its values are learned under one discount"

    keeps: ClassVar[tuple[str, ...]] = ("posterior", "visits")

    selection: str = choice("vpi", SELECTION)
    update: str = choice("mixture", UPDATE)
    mu0: float | None = real_number(None)
    lam: float = positive_number(1.0)
    alpha: float = real_number(2.0, low=1.0, open_low=True)
    spread: float = positive_number(0.3)
    beta: float | None = positive_number(None)

    def prior(self, belief: Belief, discount: float) -> ReturnPosterior:
        """Return the prior for every pair."""
        mu0, beta = self.mu0, self.beta
        if mu0 is None or beta is None:
            bounds = known_range(belief, "BayesianQLearning", "give mu0 and beta")
            low, high = (r / (1.0 - discount) for r in bounds)
            width = high - low if high > low else 1.0 / (1.0 - discount)
            mu0 = low + PRIOR_LEVEL * (high - low) if mu0 is None else mu0
            beta = (self.spread * width) ** 2 * self.lam * (self.alpha - 1.0) if beta is None else beta
        return ReturnPosterior(float(mu0), float(self.lam), float(self.alpha), float(beta))

    def start(self, belief: Belief, discount: float) -> BayesianQMemory:
        shape = (belief.n_states, belief.n_actions)
        posterior = np.stack([np.full(shape, value) for value in self.prior(belief, discount)])
        return BayesianQMemory(posterior, np.zeros(shape, np.int64), discount)

    def act(self, memory: BayesianQMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        return self._decide(memory, belief, state, rng)[0]

    def plan(self, memory: BayesianQMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action, actions, scores = self._decide(memory, belief, state, rng)
        posterior = [memory.pair(state, int(a)) for a in actions]
        spreads = [math.sqrt(p.variance) for p in posterior]
        means, visits = memory.posterior[0, state, actions], memory.visits[state, actions]
        shown = {"sampled": scores} if self.selection == "sampling" else {"vpi": scores - means}
        details = {name: tuple(x.tolist()) for name, x in shown.items()}
        details["normal_gamma"] = tuple(tuple(p) for p in posterior)
        weighed = candidates(actions, means, spreads, visits)
        return Plan(action, float(memory.posterior[0, state, action]), weighed, details=details)

    def learn(self, memory: BayesianQMemory, belief: Belief, seen: Transition) -> None:
        s, a, r, s2, _ = seen
        prior, update = memory.pair(s, a), moment_update if self.update == "moment" else mixture_update
        if belief.space.terminal[s2]:
            memory.posterior[:, s, a] = observed(prior, float(r))
        else:
            means = np.where(belief.space.allowed[s2], memory.posterior[0, s2], -np.inf)
            after = memory.pair(s2, int(np.argmax(means)))
            memory.posterior[:, s, a] = update(prior, float(r), memory.discount, after)
        memory.visits[s, a] += 1

    def _decide(
        self, memory: BayesianQMemory, belief: Belief, state: int, rng: np.ndarray
    ) -> tuple[int, np.ndarray, np.ndarray]:
        """Return the action, the existing actions and their scores, the highest of which wins."""
        actions = np.flatnonzero(belief.space.allowed[state])
        mu0, lam, alpha, beta = memory.posterior[:, state, actions]
        if self.selection == "sampling":
            scores = np.empty(len(actions))
            sample_means(mu0, lam, alpha, beta, rng, scores)
        else:
            scores = mu0 + perfect_information(mu0, lam, alpha, beta)
        return best_of(actions, scores, rng), actions, scores
