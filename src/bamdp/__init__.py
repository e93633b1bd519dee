"""bamdp: Bayes-adaptive planning in Markov decision processes.

The library is built on four concepts: a known model (:class:`FiniteMDP`), a belief over models (created by a prior such
as :class:`SparseDirichlet`), a planner (a set of hyper-parameters, such as :class:`DSS`) and an :class:`Agent`, which
applies a planner to one belief. :func:`make_env` creates an environment, and :func:`simulate` runs the agent in it.
"""

from typing import TYPE_CHECKING

from bamdp.agent import Agent
from bamdp.beliefs import *  # noqa: F403
from bamdp.beliefs import __all__ as _beliefs
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
from bamdp.generators.rtdp import rtdp
from bamdp.mdp import (
    FiniteMDP,
    Gain,
    Solution,
    evaluate_policy,
    gain,
    policy_iteration,
    total_reward,
    value_iteration,
)
from bamdp.planners import *  # noqa: F403
from bamdp.planners import __all__ as _planners
from bamdp.registry import (
    list_planners,
    list_priors,
    list_rewards,
    make_planner,
    make_prior,
    make_rewards,
    register,
)
from bamdp.runs import Batch, run_many
from bamdp.simulation import Run, Step, simulate

if TYPE_CHECKING:
    from bamdp import bsuite as bsuite
    from bamdp import extend as extend
    from bamdp import gym as gym
    from bamdp import plot, theory
    from bamdp import testing as testing
    from bamdp.experiments import ComparisonResult, TuningResult, compare, tune
    from bamdp.gym import GymAgent

__version__ = "0.1.0"

_LATER = {  # imported on first use: these need Gymnasium or are rarely used
    "GymAgent": "bamdp.gym",
    "compare": "bamdp.experiments",
    "tune": "bamdp.experiments",
    "ComparisonResult": "bamdp.experiments",
    "TuningResult": "bamdp.experiments",
    "plot": "bamdp.plot",
    "theory": "bamdp.theory",
    **{name: f"bamdp.{name}" for name in ("bsuite", "continuous", "extend", "gym", "testing")},
}


def __getattr__(name: str) -> object:
    """Import a lazily loaded public name on first access."""
    from importlib import import_module

    if name not in _LATER:
        raise AttributeError(f"module 'bamdp' has no attribute {name!r}")
    module = import_module(_LATER[name])
    return module if _LATER[name] == f"bamdp.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    """Return the public names and modules."""
    return sorted({*__all__, *_LATER, *(name for name in globals() if name.startswith("__"))})


__all__ = [
    "PI",
    "RTDP",
    "VI",
    "Agent",
    "Batch",
    "ComparisonResult",
    "Environment",
    "FiniteMDP",
    "Gain",
    "Generator",
    "GymAgent",
    "Run",
    "Solution",
    "Step",
    "TuningResult",
    "__version__",
    "compare",
    "evaluate_policy",
    "from_function",
    "from_mdp",
    "gain",
    "list_envs",
    "list_planners",
    "list_priors",
    "list_rewards",
    "make_env",
    "make_planner",
    "make_prior",
    "make_rewards",
    "make_world",
    "maze_door_models",
    "plot",
    "policy_iteration",
    "register",
    "register_generator",
    "rtdp",
    "run_many",
    "simulate",
    "theory",
    "total_reward",
    "tune",
    "value_iteration",
]
__all__ += _beliefs
__all__ += _planners
