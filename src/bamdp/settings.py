"""Settings, which determine a run except for its replicate number, and their creation from text.

The command line, the studio and studies all create settings through this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from numpy.typing import ArrayLike

from bamdp import _checks
from bamdp._specs import Spec
from bamdp.beliefs.base import Prior, RewardModel
from bamdp.beliefs.episodes import OBJECTIVES
from bamdp.envs.environment import World
from bamdp.envs.registry import new_world
from bamdp.planners.base import Planner, auto_reach, horizon_discount
from bamdp.registry import check_fits, make_planner, make_prior, make_rewards

STEP_BYTES = 50  # approximate memory per step of a run


@dataclass(frozen=True)
class Setting:
    """All properties of a replicate except its number."""

    env: Any  # text, a function, or an object that is copied for each run
    planner: Planner
    prior: Prior
    rewards: RewardModel
    discount: float | str  # a number, "horizon" or "auto"; see Agent
    steps: int
    seed: int = 0
    objective: str = "episode"

    def __post_init__(self) -> None:
        object.__setattr__(self, "discount", _checks.planning_discount(self.discount))
        steps = _checks.integer(self.steps, "steps")
        _checks.memory(STEP_BYTES * steps, f"the record of a run of {steps} steps")
        _checks.integer(self.seed, "seed", low=0)
        _checks.one_of(self.objective, "objective", OBJECTIVES)

    @property
    def env_name(self) -> str:
        """The name of the environment."""
        return self.env if isinstance(self.env, str) else new_world(self.env).name

    @property
    def first_discount(self) -> float:
        """The discount of the first decision."""
        if not isinstance(self.discount, str):
            return self.discount
        reach = None
        if self.discount == _checks.AUTO:
            world = new_world(self.env)
            reach = auto_reach(self.steps, world.n_states, world.n_actions)
        return horizon_discount(self.steps, reach)


def make_setting(
    env: Any,
    planner: str | Spec | Planner,
    *,
    parameters: Mapping[str, Any] | None = None,
    prior: str | Spec | Prior | None = None,
    rewards: str | Spec | RewardModel | ArrayLike | None = None,
    discount: float | str | None = None,
    objective: str = "episode",
    steps: int | None = None,
    seed: int = 0,
    world: World | None = None,
) -> Setting:
    """Create a setting from text; objects are used unchanged.

    Parameters
    ----------
    env
        The environment, as accepted by :func:`bamdp.envs.registry.new_world`.
    planner
        The planner, ``name`` or ``name:key=value,...``.
    parameters
        Additional planner parameters, as values or text.
    prior
        The prior over transitions, as accepted by :func:`bamdp.registry.make_prior`; None for the planner's default.
    rewards
        The reward model, as accepted by :func:`bamdp.registry.make_rewards`; None for the environment's default.
    discount
        The planning discount; ``"horizon"`` to maximise the total over the remaining steps; ``"auto"`` to also limit
        the planning horizon by the amount of data (see :class:`~bamdp.Agent`); or None for the planner's default.
    objective
        Whether planning stops at the end of an episode (``episode``) or includes later episodes (``lifetime``).
    steps
        Steps per run; None for the environment's horizon.
    seed
        Seed of all runs.
    world
        The environment specified by ``env``, if already created.

    Examples
    --------
    >>> make_setting("chain", "thompson:resample=episode", prior="flat").planner
    ThompsonSampling(resample='episode', tol=0.0001)
    >>> make_setting("chain", "thompson", prior="sparse:bata=2")
    Traceback (most recent call last):
    ...
    ValueError: unknown parameter of sparse 'bata'; did you mean 'beta'? (known: ...)
    """
    world = new_world(env) if world is None else world
    made: Any
    model: Any = rewards
    if world.system is not None:
        _checks.one_of(objective, "objective of a world with continuous observations", ("episode",))
        made, made_prior, usual = _continuous_parts(planner, parameters, prior)
    else:
        made = make_planner(planner, parameters)
        check_fits(made, world)
        made_prior = make_prior(made.default_prior if prior is None else prior, world)
        model, usual = make_rewards(rewards, world), made.default_discount
    discount = usual if discount is None else discount
    steps = world.horizon if steps is None else steps
    return Setting(env, made, made_prior, model, discount, steps, seed, objective)


def _continuous_parts(
    planner: Any, parameters: Mapping[str, Any] | None, prior: Any
) -> tuple[Any, Any, float]:
    """Return the planner, prior and default discount for continuous observations, which use separate names."""
    from bamdp.continuous.agent import DEFAULT_PRIOR, DISCOUNT, PLANNERS, PRIORS, make_continuous

    made = make_continuous(planner, PLANNERS, "planner", parameters)
    return made, make_continuous(DEFAULT_PRIOR if prior is None else prior, PRIORS, "prior"), DISCOUNT


@lru_cache(maxsize=256)
def cached_world(spec: Any) -> World:
    """Return a shared environment for reading metadata; it must not be stepped."""
    return new_world(spec)
