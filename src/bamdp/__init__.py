"""bamdp: Bayes-adaptive planning in finite Markov decision processes.

Four nouns carry the library: a known model (:class:`FiniteMDP`), a belief over models (made by a prior such as
:class:`SparseDirichlet`), a planner (hyper-parameters, such as :class:`DSS`) and an :class:`Agent`, which is a
planner at work on one belief. :func:`make_env` gives it a world and :func:`simulate` lets it live there.
"""

from bamdp._serial import known as saveable
from bamdp.agent import Agent, Run, Step, simulate
from bamdp.beliefs import (
    Belief,
    BetaBernoulli,
    Dirichlet,
    FiniteModels,
    KnownRewards,
    Mixture,
    Prior,
    RewardModel,
    SparseDirichlet,
)
from bamdp.envs import Environment, from_mdp, list_envs, make_env, maze_door_models
from bamdp.generators import PI, RTDP, VI, Generator, register_generator
from bamdp.mdp import (
    FiniteMDP,
    Gain,
    Solution,
    evaluate_policy,
    gain,
    policy_iteration,
    rtdp,
    total_reward,
    value_iteration,
)
from bamdp.planners import (
    DSS,
    FHTS,
    BayesGreedy,
    BayesianSparseSampling,
    Candidate,
    Plan,
    Planner,
    Random,
    SparseSampling,
    ThompsonSampling,
)

__version__ = "0.1.0"

__all__ = [
    "DSS",
    "FHTS",
    "PI",
    "RTDP",
    "VI",
    "Agent",
    "BayesGreedy",
    "BayesianSparseSampling",
    "Belief",
    "BetaBernoulli",
    "Candidate",
    "Dirichlet",
    "Environment",
    "FiniteMDP",
    "FiniteModels",
    "Gain",
    "Generator",
    "KnownRewards",
    "Mixture",
    "Plan",
    "Planner",
    "Prior",
    "Random",
    "RewardModel",
    "Run",
    "Solution",
    "SparseDirichlet",
    "SparseSampling",
    "Step",
    "ThompsonSampling",
    "Transition",
    "__version__",
    "evaluate_policy",
    "from_mdp",
    "gain",
    "list_envs",
    "make_env",
    "maze_door_models",
    "policy_iteration",
    "register_generator",
    "rtdp",
    "saveable",
    "simulate",
    "total_reward",
    "value_iteration",
]
