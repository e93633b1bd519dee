"""Planners: one algorithm per file (variants next to the original), all using the same beliefs and protocol.

To add a planner, import it here, add an entry to :data:`PLANNERS` and its name to ``__all__``. The command line, the
studies and the conformance tests then find it, and ``bamdp`` exports it.
"""

from bamdp._parameters import Entry
from bamdp.planners.adaptive_dss import AdaptiveDSS
from bamdp.planners.bamcp import BAMCP, BAUCT
from bamdp.planners.base import Candidate, Plan, Planner, Transition
from bamdp.planners.bayes_greedy import BayesGreedy, EpsilonGreedy
from bamdp.planners.bayesian_q_learning import BayesianQLearning
from bamdp.planners.bayesian_sparse_sampling import BayesianSparseSampling
from bamdp.planners.bfs3 import BFS3
from bamdp.planners.bolt import BOLT
from bamdp.planners.bonuses import BEB, VBRB
from bamdp.planners.bootstrapped_dqn import BootstrappedDQN
from bamdp.planners.boss import BOSS, SBOSS
from bamdp.planners.dss import DSS
from bamdp.planners.fhts import FHTS
from bamdp.planners.mcbrl import MCBRL
from bamdp.planners.optimism import Optimism
from bamdp.planners.q_learning import QLearning, Random
from bamdp.planners.rmax import RMax
from bamdp.planners.sparse_sampling import SparseSampling
from bamdp.planners.thompson import ThompsonSampling
from bamdp.planners.tree import Tree

PLANNERS: dict[str, Entry] = {
    "optimism": Entry(Optimism),
    "adaptive-dss": Entry(AdaptiveDSS),
    "dss-pi": Entry(DSS, {"generator": "pi"}, "Policies by policy iteration."),
    "dss-rtdp": Entry(DSS, {"generator": "rtdp"}, "Policies by real-time dynamic programming."),
    "dss-vi": Entry(DSS, {"generator": "vi"}, "Policies by value iteration."),
    "fhts": Entry(FHTS),
    "sparse-sampling": Entry(SparseSampling),
    "bayesian-sparse-sampling": Entry(BayesianSparseSampling),
    "thompson": Entry(ThompsonSampling),
    "bayes-greedy": Entry(BayesGreedy),
    "bamcp": Entry(BAMCP),
    "bauct": Entry(BAUCT),
    "bfs3": Entry(BFS3),
    "boss": Entry(BOSS),
    "sboss": Entry(SBOSS),
    "beb": Entry(BEB),
    "bolt": Entry(BOLT),
    "vbrb": Entry(VBRB),
    "mcbrl": Entry(MCBRL),
    "bayesian-q-learning": Entry(BayesianQLearning),
    "rmax": Entry(RMax),
    "epsilon-greedy": Entry(EpsilonGreedy),
    "q-learning": Entry(QLearning),
    "bootstrapped-dqn": Entry(BootstrappedDQN),
    "random": Entry(Random),
}

__all__ = [
    "BAMCP",
    "BAUCT",
    "BEB",
    "BFS3",
    "BOLT",
    "BOSS",
    "DSS",
    "FHTS",
    "MCBRL",
    "SBOSS",
    "VBRB",
    "AdaptiveDSS",
    "BayesGreedy",
    "BayesianQLearning",
    "BayesianSparseSampling",
    "BootstrappedDQN",
    "Candidate",
    "EpsilonGreedy",
    "Optimism",
    "Plan",
    "Planner",
    "QLearning",
    "RMax",
    "Random",
    "SparseSampling",
    "ThompsonSampling",
    "Transition",
    "Tree",
]
