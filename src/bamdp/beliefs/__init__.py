"""Priors, the beliefs that they become, and reward models."""

from bamdp.beliefs.base import Belief, Prior, RewardModel
from bamdp.beliefs.dirichlet import Dirichlet
from bamdp.beliefs.finite import FiniteModels
from bamdp.beliefs.mixture import Mixture
from bamdp.beliefs.rewards import BetaBernoulli, KnownRewards
from bamdp.beliefs.sparse import SparseDirichlet

__all__ = [
    "Belief",
    "BetaBernoulli",
    "Dirichlet",
    "FiniteModels",
    "KnownRewards",
    "Mixture",
    "Prior",
    "RewardModel",
    "SparseDirichlet",
]
