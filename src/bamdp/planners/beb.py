"""BEB: the Bayesian exploration bonus (Kolter & Ng 2009).

Act optimally in the posterior mean model with a bonus that decreases with the number of observations of a pair:

    Q(s, a) = r̄(s, a) + b / (1 + n₀(s, a) + n(s, a)) + γ Σ_{s'} P̄(s' | s, a) max_{a'} Q(s', a').

n(s, a) is the number of observations and n₀(s, a) the prior count. See :mod:`bamdp.planners.shared.bonus` for how the
model is maintained and solved.

**Prior count.** For Dirichlet rows n₀ = Σ_{s'} α(s'), which is Sα for a symmetric prior. A row of the sparse prior is a
Dirichlet row with n₀ = kα given the size k of its support, so the harmonic mean under the posterior of k is used,
1/(n₀+n) = E[1/(kα+n)], which is also the step size by which one transition moves the row's mean. Mixtures use the
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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bamdp._parameters import positive_number, real_number
from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.planners.shared.bonus import TOL_HELP, BonusMemory, BonusPlanner, bonus, require_counts


class BEBRule(NamedTuple):
    """The parameter b of BEB's bonus."""

    weight: float


@bonus.register(BEBRule)
def _bonus(rule, belief, row, rows, variance, begin, end, background):
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

    bonus: float = real_number(1.0, low=0.0, help="b, in units of reward.")
    tol: float = positive_number(1e-4, help=TOL_HELP)

    def rule(self) -> BEBRule:
        return BEBRule(float(self.bonus))

    def start(self, belief: Belief, discount: float) -> BonusMemory:
        require_counts(belief, "BEB")
        return super().start(belief, discount)
