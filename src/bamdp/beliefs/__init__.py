"""Priors, the beliefs that they become, and reward models."""

from bamdp.beliefs.base import Belief, Prior, RewardModel
from bamdp.beliefs.bernoulli import BetaBernoulli
from bamdp.beliefs.dirichlet import Dirichlet
from bamdp.beliefs.finite import FiniteModels
from bamdp.beliefs.mixture import Mixture
from bamdp.beliefs.normal import NormalGamma
from bamdp.beliefs.rewards import KnownRewards
from bamdp.beliefs.sparse import SparseDirichlet
from bamdp.beliefs.values import FiniteRewards

__all__ = [
    "Belief",
    "BetaBernoulli",
    "Dirichlet",
    "FiniteModels",
    "FiniteRewards",
    "KnownRewards",
    "Mixture",
    "NormalGamma",
    "Prior",
    "RewardModel",
    "SparseDirichlet",
]
