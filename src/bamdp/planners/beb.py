"""BEB: the Bayesian exploration bonus (Kolter & Ng 2009).

The posterior mean model, with a bonus that falls with the number of observations of a pair:

    Q(s, a) = r̄(s, a) + b / (1 + n₀(s, a) + n(s, a)) + γ Σ_{s'} P̄(s' | s, a) max_{a'} Q(s', a').

n(s, a) counts what was observed, n₀(s, a) is the prior's count. How the model is kept and solved:
:mod:`bamdp.planners.shared.bonus`.

**Prior count.** For Dirichlet rows n₀ = Σ_{s'} α(s'), which is Sα for a symmetric prior. A row of the sparse prior
is a Dirichlet row with n₀ = kα given the size k of its support, so what is taken is the harmonic mean under the
posterior of k, 1/(n₀+n) = E[1/(kα+n)], which is also how far one transition moves the row's mean; likewise over the
components of a mixture. A finite set of models has no counts and is refused.

**Guarantee.** In the original (undiscounted, horizon H, rewards in [0, 1]) the bonus b = 2H² makes the planner act
ε-optimally in the Bayesian sense on all but O(S A H⁶/ε² · log(SA/δ)) steps, with probability 1−δ. The bonus falls
like 1/n where PAC algorithms need 1/√n: it follows the Bayes-optimal policy, which may stop exploring, and is
therefore *not* PAC for the true model. The b that work well are far smaller than 2H².

**Departures.** Discounted, and solved for a stationary policy instead of over a horizon. Learned rewards, which the
original excludes, enter by their mean. The public C++ program of Guez truncates b to a whole number; this does not.
The default b = 1 is a compromise over chain, double_loop and grid5 under two priors: chain likes 2 (with which and
the flat prior the C++ program's rewards are reproduced), grid5 likes 0.25.

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
    """The parameter of BEB's bonus: b."""

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
