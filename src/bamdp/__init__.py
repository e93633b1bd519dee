"""bamdp: Bayes-adaptive planning in finite Markov decision processes.

Four nouns carry the library: a known model (:class:`FiniteMDP`), a belief over models (made by a prior such as
:class:`SparseDirichlet`), a planner (hyper-parameters, such as :class:`DSS`) and an :class:`Agent`, which is a
planner at work on one belief. :func:`make_env` gives it a world and :func:`simulate` lets it live there.
"""

from typing import TYPE_CHECKING, Any

from bamdp._serial import saveable
from bamdp.agent import Agent, Run, Step, simulate
from bamdp.beliefs import (
    Belief,
    BetaBernoulli,
    Dirichlet,
    FiniteModels,
    FiniteRewards,
    KnownRewards,
    Mixture,
    NormalGamma,
    Prior,
    RewardModel,
    SparseDirichlet,
)
from bamdp.envs import (
    Environment,
    from_function,
    from_mdp,
    list_envs,
    make_env,
    make_world,
    maze_door_models,
)
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
from bamdp.planners import *  # noqa: F403
from bamdp.planners import __all__ as _planners

if TYPE_CHECKING:
    from bamdp.gym import GymAgent

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """What is imported when it is first asked for: ``GymAgent``, which needs Gymnasium, and ``theory``."""
    if name == "GymAgent":
        from bamdp.gym import GymAgent

        return GymAgent
    if name == "theory":
        from importlib import import_module

        return import_module("bamdp.theory")
    raise AttributeError(f"module 'bamdp' has no attribute {name!r}")


__all__ = [
    "PI",
    "RTDP",
    "VI",
    "Agent",
    "Belief",
    "BetaBernoulli",
    "Dirichlet",
    "Environment",
    "FiniteMDP",
    "FiniteModels",
    "FiniteRewards",
    "Gain",
    "Generator",
    "GymAgent",
    "KnownRewards",
    "Mixture",
    "NormalGamma",
    "Prior",
    "RewardModel",
    "Run",
    "Solution",
    "SparseDirichlet",
    "Step",
    "__version__",
    "evaluate_policy",
    "from_function",
    "from_mdp",
    "gain",
    "list_envs",
    "make_env",
    "make_world",
    "maze_door_models",
    "policy_iteration",
    "register_generator",
    "rtdp",
    "saveable",
    "simulate",
    "theory",  # noqa: F405
    "total_reward",
    "value_iteration",
]
__all__ += _planners
