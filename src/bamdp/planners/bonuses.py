"""BEB and VBRB: the mean model with bonuses for what is uncertain; see :mod:`bamdp.planners.bayes_greedy`.

**BEB: the Bayesian exploration bonus** (Kolter & Ng 2009). Act optimally in the posterior mean
model with a bonus that decreases with the number of observations of a pair:

    Q(s, a) = r̄(s, a) + b / (1 + n₀(s, a) + n(s, a)) + γ Σ_{s'} P̄(s' | s, a) max_{a'} Q(s', a').

n(s, a) is the number of observations and n₀(s, a) the prior count.

**Prior count.** For Dirichlet rows n₀ = Σ_{s'} α(s'), which is Sα for a symmetric prior. A row of the sparse prior is a
Dirichlet row with n₀ = kα given the size k of its support, so the harmonic mean under the posterior over k is used,
1/(n₀+n) = E[1/(kα+n)]; this is also the step size by which one transition moves the row's mean. Mixtures use the
harmonic mean over their components. Finite sets of models have no counts and are rejected.

**Guarantee.** In the original (undiscounted, horizon H, rewards in [0, 1]) the bonus b = 2H² makes the planner act
ε-optimally in the Bayesian sense on all but O(S A H⁶/ε² · log(SA/δ)) steps, with probability 1−δ. The bonus decreases
like 1/n, whereas PAC algorithms need 1/√n: BEB approximates the Bayes-optimal policy, which may stop exploring, so it
is *not* PAC for the true model. Values of b that work well are far below 2H².

**Departures.** The objective is discounted and solved for a stationary policy instead of over a finite horizon. Learned
rewards, which the original excludes, enter through their mean. Guez's public C++ program truncates b to an integer;
this implementation does not. The default b = 1 is a compromise over chain, double_loop and grid5 under two priors: 2 is
best on chain (and, with the flat prior, reproduces the rewards of the C++ program), 0.25 on grid5.

Reference: Kolter & Ng, "Near-Bayesian exploration in polynomial time" (ICML 2009).

**VBRB: variance-based reward bonuses** (Sorg, Singh & Lewis 2010). Act optimally in the
posterior mean model with a bonus proportional to the posterior standard deviation:

    Q(s, a) = r̄(s, a) + β_R σ_R(s, a) + β_P √(Σ_{s'} σ_P(s'|s, a)²) + γ Σ_{s'} P̄(s' | s, a) max_{a'} Q(s', a'),

where σ_R and σ_P are the posterior standard deviations of the expected reward and of each transition probability.

**Supported priors.** VBRB works with all priors, since variances do not require counts. A Dirichlet row with n₀ + n
counts has Σ σ_P² = (1 − Σ P̄²)/(n₀+n+1), so the bonus decreases like 1/√n. Variances are also exact for the sparse
prior, mixtures and finite sets of models. A pair about which the posterior is certain gets no bonus, however rarely it
was tried. A structured prior thus saves exploration that a count-based bonus (BEB) would waste. σ_R comes from a
learned reward model and is 0 for known rewards (for rewards R(s, a, s'), σ_P covers the uncertainty).

**Guarantee.** With β_R and β_P of the order of 1/(1−γ) and γ√S/(1−γ)² (for rewards in [0, 1], up to logarithms) the
values are optimistic, and with high probability under the prior the planner is near-optimal for the true model on all
but polynomially many steps. Much smaller β are used in practice. The default β_P = 0.5 is a compromise over chain,
double_loop and grid5 under two priors (1 or 2 is best on chain, 0.1 on grid5), where rewards are of order 1.

**Departures.** None in the bonus; the objective is discounted and solutions are accurate to ``tol``.

Reference: Sorg, Singh & Lewis, "Variance-based rewards for approximate Bayesian reinforcement learning" (UAI 2010).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import bamdp.beliefs.verbs as verbs
from bamdp._parameters import positive_number, real_number
from bamdp.beliefs.belief import Belief
from bamdp.planners.bayes_greedy import TOL_HELP, BonusMemory, BonusPlanner, bonus


def require_counts(belief: Belief, name: str) -> None:
    """Raise an error if the belief does not count transitions row by row."""
    if not belief.transitions.counts_transitions:
        text = f"{belief.prior} has no counts: use VBRB, SBOSS or ThompsonSampling with it"
        raise ValueError(f"{name} needs a prior that counts transitions, such as SparseDirichlet; {text}")


class BEBRule(NamedTuple):
    """The parameter b of BEB's bonus."""

    weight: float


@bonus.register(BEBRule)
def _inverse_count(rule, belief, row, rows, variance, at):
    return rule.weight / (1.0 + verbs.concentration(belief.transitions, row))


@dataclass(frozen=True, kw_only=True)
class BEB(BonusPlanner):
    """Bayesian exploration bonus.

    Examples
    --------
    >>> import bamdp
    >>> agent = bamdp.Agent(BEB(bonus=2.0), prior=bamdp.Dirichlet(alpha=1.0), rewards=[[0.0, 0.1]], n_states=1,
    ...                     n_actions=2, discount=0.5, seed=0)
    >>> agent.observe(0, 1, 0.1, 0)
    >>> agent.plan(0).details["bonus"]
    {0: 1.0, 1: 0.6666666666666666}
    """

    result_version: ClassVar[int] = 3

    bonus: float = real_number(1.0, low=0.0, help="b, in units of reward.")
    tol: float = positive_number(1e-4, help=TOL_HELP)

    def rule(self) -> BEBRule:
        return BEBRule(float(self.bonus))

    def start(self, belief: Belief, discount: float) -> BonusMemory:
        require_counts(belief, "BEB")
        return super().start(belief, discount)


class VBRBRule(NamedTuple):
    """The parameters β_R and β_P of VBRB's bonus."""

    beta_r: float
    beta_p: float


@bonus.register(VBRBRule)
def _deviation(rule, belief, row, rows, variance, at):
    begin, end, background = rows.span[row, 0], rows.span[row, 1], rows.background[row]
    of_reward = verbs.reward_variance(belief.rewards, row, rows.index, rows.prob, begin, end, background)
    stop, _, rest = verbs.moments_row(belief.transitions, row, rows.index, rows.prob, variance, at)
    total = (belief.space.terminal.shape[0] - (stop - at)) * rest
    for i in range(at, stop):
        total += variance[i]
    return rule.beta_r * math.sqrt(of_reward) + rule.beta_p * math.sqrt(total)


@dataclass(frozen=True, kw_only=True)
class VBRB(BonusPlanner):
    """Variance-based reward bonuses.

    Examples
    --------
    >>> VBRB(beta_p=2.0)
    VBRB(beta_r=1.0, beta_p=2.0, tol=0.0001)
    """

    beta_r: float = real_number(1.0, low=0.0, help="β_R, weight of the expected reward's standard deviation.")
    beta_p: float = real_number(0.5, low=0.0, help="β_P, weight of that of the transitions, in reward units.")
    tol: float = positive_number(1e-4, help=TOL_HELP)

    def rule(self) -> VBRBRule:
        return VBRBRule(float(self.beta_r), float(self.beta_p))
