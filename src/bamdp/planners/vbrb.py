"""VBRB: variance-based reward bonuses (Sorg, Singh & Lewis 2010).

The posterior mean model, with a bonus that is as large as the posterior is wide:

    Q(s, a) = r̄(s, a) + β_R σ_R(s, a) + β_P √(Σ_{s'} σ_P(s'|s, a)²) + γ Σ_{s'} P̄(s' | s, a) max_{a'} Q(s', a'),

σ_R and σ_P the posterior standard deviations of the expected reward and of each transition probability. How the
model is kept and solved: :mod:`bamdp.planners.shared.bonus`.

**Which priors.** All: a variance exists without counts. A Dirichlet row with n₀ + n counts has Σ σ_P² =
(1 − Σ P̄²)/(n₀+n+1), so the bonus falls like 1/√n; the variances of the sparse prior, of mixtures and of finite
sets of models are exact, too. A pair about which the posterior is certain gets nothing, however often it was
tried: that is how a structured prior saves exploration, where counts (BEB) would explore in vain. σ_R is that of a
learned reward model, 0 for known rewards (rewards R(s, a, s') are paid for by σ_P).

**Guarantee.** With β_R and β_P of the order of 1/(1−γ) and γ√S/(1−γ)² (for rewards in [0, 1], up to logarithms) the
values are optimistic, and the planner is near-optimal for the true model on all but polynomially many steps, with
high probability under the prior. Far smaller β are used in practice. The default β_P = 0.5 is a compromise over chain,
double_loop and grid5 under two priors (chain likes 1 or 2, grid5 likes 0.1); rewards there are about 1.

**Departures.** None in the bonus; the horizon is discounted and the solution exact to ``tol``.

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
    """The parameters of VBRB's bonus: β_R and β_P."""

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
