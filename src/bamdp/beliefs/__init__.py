"""Priors, beliefs and reward models."""

from bamdp.beliefs.base import Prior, RewardModel
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.rewards.conjugate import BetaBernoulli, FiniteRewards, NormalGamma
from bamdp.beliefs.rewards.hierarchical import HierarchicalNormal
from bamdp.beliefs.rewards.known import KnownRewards
from bamdp.beliefs.transitions.dirichlet import Dirichlet
from bamdp.beliefs.transitions.disturbance import DisturbancePrior
from bamdp.beliefs.transitions.hierarchical import HierarchicalDirichlet
from bamdp.beliefs.transitions.mixture import FiniteModels, Mixture
from bamdp.beliefs.transitions.sparse import SharedSupport, SparseDirichlet

__all__ = [
    "Belief",
    "BetaBernoulli",
    "Dirichlet",
    "DisturbancePrior",
    "FiniteModels",
    "FiniteRewards",
    "HierarchicalDirichlet",
    "HierarchicalNormal",
    "KnownRewards",
    "Mixture",
    "NormalGamma",
    "Prior",
    "RewardModel",
    "SharedSupport",
    "SparseDirichlet",
]
