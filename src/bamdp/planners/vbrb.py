"""VBRB: variance-based reward bonuses (Sorg, Singh & Lewis 2010).

Act optimally in the posterior mean model with a bonus proportional to the posterior standard deviation:

    Q(s, a) = r̄(s, a) + β_R σ_R(s, a) + β_P √(Σ_{s'} σ_P(s'|s, a)²) + γ Σ_{s'} P̄(s' | s, a) max_{a'} Q(s', a'),

where σ_R and σ_P are the posterior standard deviations of the expected reward and of each transition probability. See
:mod:`bamdp.planners.shared.bonus` for how the model is maintained and solved.

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
from typing import NamedTuple

from bamdp._parameters import positive_number, real_number
from bamdp.beliefs import verbs
from bamdp.planners.shared.bonus import TOL_HELP, BonusPlanner, bonus


class VBRBRule(NamedTuple):
    """The parameters β_R and β_P of VBRB's bonus."""

    beta_r: float
    beta_p: float


@bonus.register(VBRBRule)
def _bonus(rule, belief, row, rows, variance, begin, end, background):
    stop, _, rest = verbs.moments_row(belief.transitions, row, rows.index, rows.prob, variance, end)
    total = (belief.space.terminal.shape[0] - (stop - end)) * rest
    for i in range(end, stop):
        total += variance[i]
    of_reward = verbs.reward_variance(belief.rewards, row, rows.index, rows.prob, begin, end, background)
    return rule.beta_r * math.sqrt(of_reward) + rule.beta_p * math.sqrt(total)


@dataclass(frozen=True, kw_only=True)
class VBRB(BonusPlanner):
    """Variance-based reward bonuses.

    Examples
    --------
    >>> VBRB(beta_p=2.0)
    VBRB(beta_r=1.0, beta_p=2.0, tol=0.0001)
    """

    beta_r: float = real_number(
        1.0, low=0.0, help="β_R, weight of the standard deviation of the expected reward."
    )
    beta_p: float = real_number(
        0.5, low=0.0, help="β_P, weight of that of the transition probabilities, in units of reward."
    )
    tol: float = positive_number(1e-4, help=TOL_HELP)

    def rule(self) -> VBRBRule:
        return VBRBRule(float(self.beta_r), float(self.beta_p))
