"""Planners: one algorithm a file, all on the same beliefs and the same protocol."""

from bamdp.planners.base import Candidate, Plan, Planner, Transition
from bamdp.planners.bayes_greedy import BayesGreedy
from bamdp.planners.bayesian_sparse_sampling import BayesianSparseSampling
from bamdp.planners.dss import DSS
from bamdp.planners.fhts import FHTS
from bamdp.planners.random_play import Random
from bamdp.planners.sparse_sampling import SparseSampling
from bamdp.planners.thompson import ThompsonSampling

__all__ = [
    "DSS",
    "FHTS",
    "BayesGreedy",
    "BayesianSparseSampling",
    "Candidate",
    "Plan",
    "Planner",
    "Random",
    "SparseSampling",
    "ThompsonSampling",
    "Transition",
]
