"""bamdp: Bayes-adaptive planning in Markov decision processes.

The library is built on four concepts: a known model (:class:`FiniteMDP`), a belief over models (created by a prior such
as :class:`SparseDirichlet`), a planner (a set of hyper-parameters, such as :class:`DSS`) and an :class:`Agent`, which
applies a planner to one belief. :func:`make_env` creates an environment, and :func:`simulate` runs the agent in it.
"""

from typing import TYPE_CHECKING

from bamdp.agent import Agent
from bamdp.beliefs import *  # noqa: F403
from bamdp.beliefs import __all__ as _beliefs
from bamdp.envs import *  # noqa: F403
from bamdp.envs import __all__ as _envs
from bamdp.generators import PI, RTDP, VI, Generator, register_generator
from bamdp.generators.known import rtdp
from bamdp.mdp import *  # noqa: F403
from bamdp.mdp import __all__ as _mdp
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
    from bamdp import bsuite, continuous, extend, gym, plot, testing, theory
    from bamdp.experiments import ComparisonResult, TuningResult, compare, tune
    from bamdp.gym import GymAgent

__version__ = "0.1.0"

_MODULES = ("bsuite", "continuous", "extend", "gym", "plot", "testing", "theory")
_LATER = {  # imported on first use: these need Gymnasium or are rarely used
    **{name: f"bamdp.{name}" for name in _MODULES},
    **dict.fromkeys(("ComparisonResult", "TuningResult", "compare", "tune"), "bamdp.experiments"),
    "GymAgent": "bamdp.gym",
}


def __getattr__(name: str) -> object:
    """Import a lazily loaded public name on first access."""
    from importlib import import_module

    if name not in _LATER:
        raise AttributeError(f"module 'bamdp' has no attribute {name!r}")
    module = import_module(_LATER[name])
    return module if name in _MODULES else getattr(module, name)


def __dir__() -> list[str]:
    """Return the public names and modules."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


__all__ = ["PI", "RTDP", "VI", "Agent", "Batch", "ComparisonResult", "Generator", "GymAgent", "Run", "Step"]
__all__ += ["TuningResult", "__version__", "compare", "list_planners", "list_priors", "list_rewards"]
__all__ += ["make_planner", "make_prior", "make_rewards", "register", "register_generator", "rtdp"]
__all__ += ["run_many", "simulate", "tune"]
__all__ += ["bsuite", "continuous", "extend", "gym", "plot", "testing", "theory"]
__all__ += _beliefs
__all__ += _envs
__all__ += _mdp
__all__ += _planners
