"""BAUCT: UCT in the belief MDP, the posterior updated along every branch.

The belief is part of the state: from (s, β) action ``a`` leads to s' ~ ν_β(· | s, a) with reward r ~ τ_β, and the
belief becomes β given (s, a, r, s'). That is an MDP, and this is UCT on it (Kocsis & Szepesvári 2006; called BA-UCT by
Guez, Silver & Dayan 2012): :mod:`bamdp.planners.shared.tree_search` with next states from the predictive of the
branch's own counts, in the tree and in the rollout below it. A history determines its belief, so a node is a history.

Guarantee: as simulations grow, Q at the root converges to the Bayes-optimal value of the horizon ``depth``, for
rewards that are known or have finitely many outcomes (the consistency of UCT, applied to the belief MDP).

Departures: rollouts, their Q-learner and the first action of a new node are those of BAMCP, so that the two differ in
nothing but how a next state is drawn. Their simulations have the same law (:mod:`bamdp.planners.bamcp` says why); what
differs is the cost where an update of the belief is dear, since BAUCT pays one at every simulated step. With
independent rows it is not, BAMCP draws in this very way too, and both give the same numbers from the same seed.
"""

from __future__ import annotations

from dataclasses import dataclass

from bamdp._serial import saveable
from bamdp.beliefs.belief import Belief
from bamdp.planners.shared.tree_search import Predictive, TreeSearch


@saveable
@dataclass(frozen=True, kw_only=True)
class BAUCT(TreeSearch):
    """UCT in the belief MDP.

    Parameters as for :class:`~bamdp.planners.bamcp.BAMCP`, without root sampling.

    Examples
    --------
    >>> BAUCT(n_simulations=500, depth=15).exploration
    3.0
    """

    def _world(self, belief: Belief, depth: int) -> Predictive:
        return Predictive()
