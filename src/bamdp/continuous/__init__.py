"""Bayes-adaptive planning with continuous observations and actions.

The concepts are the same as in the finite case. A prior (:class:`RandomFeatures`, :class:`LinearGaussian`) creates a
:class:`DynamicsBelief`; planners (:class:`Mean`, :class:`Thompson`, :class:`OpenLoop`, :class:`DSS`) are sets of
hyper-parameters; and a :class:`ContinuousAgent` applies a planner to one belief. :meth:`bamdp.Agent.for_env` creates
one for environments with ``Box`` observations, and :func:`bamdp.simulate` and :func:`bamdp.compare` support it.

    import gymnasium
    import bamdp

    env = gymnasium.make("Pendulum-v1")
    agent = bamdp.Agent.for_env(env, seed=0)                    # dynamics, rewards and ends are learned
    run = bamdp.simulate(agent, env, steps=400, seed=0)
    plan = agent.plan(env.reset(seed=1)[0])                     # .action .value .states .candidates

    def reward(obs, action, next_obs):                          # known rewards: arrays [n, d], [n, m], [n, d] -> [n]
        ...

    agent = bamdp.Agent.for_env(env, "dss", reward=reward, angles=[0], seed=0)

Components, in order of dependency:

- :class:`System`: spaces, angles, known rewards and terminations; :func:`system_of` derives it from an environment.
- :class:`RandomFeatures`, :class:`LinearGaussian`: priors; ``prior.belief(system)`` is a :class:`DynamicsBelief` with
  ``observe(obs, action, reward, next_obs, terminated)``, ``predict(obs [n, d], actions) -> (mean [n, d], sd [n, d])``
  of the next observation, ``mean()`` and ``sample(rng)`` -> :class:`LearnedModels`, ``log_evidence``, ``coverage()``.
- :class:`Models`: known or sampled dynamics; ``rollout(states [b, d], controls [b, h, k]) -> states [b, h + 1, d]``.
  :class:`KnownModel` wraps a user's function ``step(obs [n, d], actions) -> next_obs [n, d]``.
- :class:`Mean`, :class:`Thompson`, :class:`OpenLoop`, :class:`DSS`: planners, also available as text: ``"mean"``,
  ``"thompson"``, ``"open-loop"``, ``"dss"``.
- :class:`ContinuousAgent`: ``act(obs)``, ``begin(obs)``, ``observe(...)``, ``plan(obs) -> ContinuousPlan`` with
  ``action``, ``value``, ``actions`` [h, m], ``states`` [h + 1, d], ``candidates``; ``copy``, ``save``, ``load``.
- :func:`greedy_returns`: the returns of the greedy policy of the mean model in several parallel episodes.
"""

from bamdp.continuous.agent import ContinuousAgent, greedy_returns
from bamdp.continuous.belief import (
    DynamicsBelief,
    DynamicsPrior,
    KnownDynamics,
    LinearGaussian,
    RandomFeatures,
)
from bamdp.continuous.dss import DSS
from bamdp.continuous.models import KnownModel, LearnedModels, Models
from bamdp.continuous.planners import Choice, ContinuousPlan, ContinuousPlanner, Mean, OpenLoop, Thompson
from bamdp.continuous.system import System, is_continuous, system_of
from bamdp.continuous.tasks import known

__all__ = [
    "DSS",
    "Choice",
    "ContinuousAgent",
    "ContinuousPlan",
    "ContinuousPlanner",
    "DynamicsBelief",
    "DynamicsPrior",
    "KnownDynamics",
    "KnownModel",
    "LearnedModels",
    "LinearGaussian",
    "Mean",
    "Models",
    "OpenLoop",
    "RandomFeatures",
    "System",
    "Thompson",
    "greedy_returns",
    "is_continuous",
    "known",
    "system_of",
]
