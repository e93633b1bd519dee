"""The agent for continuous observations and actions."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks, _files
from bamdp._parameters import Entry, build, find
from bamdp.continuous.belief import (
    DynamicsBelief,
    DynamicsPrior,
    KnownDynamics,
    LinearGaussian,
    RandomFeatures,
)
from bamdp.continuous.dss import DSS
from bamdp.continuous.planners import (
    ContinuousPlan,
    ContinuousPlanner,
    Mean,
    Memory,
    OpenLoop,
    Question,
    Thompson,
)
from bamdp.continuous.system import Reward, System, system_of
from bamdp.seeding import AGENT, Seed, stream_seed

PLANNERS: dict[str, type[ContinuousPlanner]] = {cls.name: cls for cls in (Mean, Thompson, OpenLoop, DSS)}
PRIORS: dict[str, Any] = {cls.name: cls for cls in (RandomFeatures, LinearGaussian, KnownDynamics)}
DEFAULT_PLANNER, DEFAULT_PRIOR = "thompson", "random-features"
DISCOUNT = 0.99


def make_continuous(
    thing: Any, known: Mapping[str, type], kind: str, parameters: Mapping[str, Any] | None = None
) -> Any:
    """Create a planner or prior from text, ``name`` or ``name:key=value,...``; objects are returned unchanged."""
    if isinstance(thing, tuple(known.values())):
        return thing
    entries = {name: Entry(cls) for name, cls in known.items()}
    spec = find(thing, f"{kind} for continuous observations", entries).extended(parameters)
    return build(entries[spec.name], spec)


class ContinuousAgent:
    """A planner applied to one belief about continuous dynamics.

    Created by :meth:`for_env` or directly from its components. If ``horizon`` is given, it is the total number of
    steps, and the agent maximises the undiscounted total over the remaining ones.
    """

    def __init__(
        self,
        planner: ContinuousPlanner,
        belief: DynamicsBelief,
        *,
        discount: float = DISCOUNT,
        horizon: int | None = None,
        seed: Seed = None,
    ) -> None:
        self.planner, self.belief = planner, belief
        self.horizon = self.steps_left = None if horizon is None else _checks.integer(horizon, "horizon")
        self.discount = 1.0 if horizon is not None else _checks.discount(discount)
        self.rng = np.random.default_rng(stream_seed(seed, AGENT))
        self.memory = Memory()

    @classmethod
    def for_env(
        cls,
        env: Any,
        planner: ContinuousPlanner | str = DEFAULT_PLANNER,
        *,
        prior: DynamicsPrior | str | None = None,
        reward: Reward | None = None,
        terminated: Reward | None = None,
        angles: Iterable[int | tuple[int, int]] = (),
        discount: float | None = None,
        horizon: int | None = None,
        seed: Seed = None,
    ) -> ContinuousAgent:
        """Create a new agent for a Gymnasium environment; see :meth:`bamdp.Agent.for_env`."""
        system = system_of(env, reward=reward, terminated=terminated, angles=angles)
        made = make_continuous(DEFAULT_PRIOR if prior is None else prior, PRIORS, "prior")
        return cls(
            make_continuous(planner, PLANNERS, "planner"),
            made.belief(system),
            discount=DISCOUNT if discount is None else discount,
            horizon=horizon,
            seed=seed,
        )

    @property
    def system(self) -> System:
        """The system of the belief."""
        return self.belief.system

    def __repr__(self) -> str:
        return f"<ContinuousAgent {self.planner} on {self.belief!r}>"

    def begin(self, observation: Any) -> None:
        """Record the start of an episode, either the first or one after an end or truncation."""
        self.system.state(observation)
        self.planner.begin(self.memory)

    def allow(self, observation: Any, actions: Any) -> None:
        """Raise an error, since continuous planners do not support action masks."""
        raise ValueError("action masks are for finite models")

    def act(self, observation: Any) -> Any:
        """Choose an action; this advances the agent's random stream."""
        return self.planner.act(self._question(observation, self.rng), self.memory)

    def plan(self, observation: Any) -> ContinuousPlan:
        """Return the agent's current plan with supporting evidence, without changing the agent."""
        return self.planner.plan(
            self._question(observation, copy.deepcopy(self.rng)), copy.deepcopy(self.memory)
        )

    def observe(
        self, observation: Any, action: Any, reward: float, next_observation: Any, terminated: bool = False
    ) -> None:
        """Learn from a real step."""
        self.belief.observe(observation, action, reward, next_observation, terminated)
        if self.steps_left is not None and self.horizon is not None:
            self.steps_left = self.steps_left - 1 or self.horizon

    def greedy(self) -> ContinuousAgent:
        """Return an independent agent with the same belief that plans with the posterior mean."""
        shared = {field.name: getattr(self.planner, field.name) for field in fields(Mean)}
        made = self.copy()
        made.planner, made.memory = Mean(**shared), Memory()
        return made

    def copy(self) -> ContinuousAgent:
        """Return an independent copy of the agent, including its random stream."""
        made = copy.copy(self)
        made.belief, made.rng, made.memory = (
            self.belief.copy(),
            copy.deepcopy(self.rng),
            copy.deepcopy(self.memory),
        )
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the agent to an ``.npz`` file; its functions must be defined at the top level of a module."""
        _files.write(path, "an agent", self.content())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> ContinuousAgent:
        """Load an agent saved by :meth:`save`."""
        return _files.read(path, "an agent", ContinuousAgent.from_content)

    def content(self) -> dict[str, Any]:
        """Return the agent's saved form."""
        state: Any = self.rng.bit_generator.state["state"]
        return {
            "planner": self.planner,
            "prior": self.belief.prior,
            "system": self.system,
            "belief": self.belief.content(),
            "discount": self.discount,
            "horizon": self.horizon,
            "steps_left": self.steps_left,
            "rng": f"{state['state']} {state['inc']}",  # 128 bits each
            "memory": self.memory,
        }

    @staticmethod
    def from_content(content: Mapping[str, Any]) -> ContinuousAgent:
        """Restore an agent from the data returned by :meth:`content`."""
        belief = content["prior"].belief(content["system"])
        belief.restore(content["belief"])
        made = ContinuousAgent(content["planner"], belief, horizon=content["horizon"], seed=0)
        made.discount, made.steps_left, made.memory = (
            content["discount"],
            content["steps_left"],
            content["memory"],
        )
        state, increment = map(int, content["rng"].split())
        words = {"state": {"state": state, "inc": increment}, "has_uint32": 0, "uinteger": 0}
        made.rng.bit_generator.state = {"bit_generator": "PCG64", **words}
        return made

    def _question(self, observation: Any, rng: np.random.Generator) -> Question:
        return Question(self.belief, self.system.state(observation), self.discount, self.steps_left, rng)


def greedy_returns(
    agent: ContinuousAgent, envs: Iterable[Any], seeds: Iterable[int], *, above: float | None = None
) -> NDArray[np.float64]:
    """Return the returns of one episode per environment for an agent that plans with the posterior mean and stops
    learning.

    If ``above`` is given and rewards are never positive, stop and return the partial results as soon as the mean over
    all episodes can no longer exceed ``above``.
    """
    envs = list(envs)
    players = [agent.greedy() for _ in envs]
    seen = [env.reset(seed=seed)[0] for env, seed in zip(envs, seeds)]
    totals, going = np.zeros(len(envs)), np.ones(len(envs), bool)
    while going.any():
        for i in np.flatnonzero(going):
            action = players[i].act(seen[i])
            seen[i], reward, terminated, truncated, _ = envs[i].step(action)
            totals[i] += reward
            going[i] = not (terminated or truncated)
        if above is not None and totals.sum() < above * len(envs):
            break
    return totals
