"""Settings: everything that determines a run but its number, and the one place that makes a setting from text.

The command line, the studio's form and studies all come here.
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

STEP_BYTES = 50  # about what a run keeps of a step


@dataclass(frozen=True)
class Setting:
    """Everything that determines a replicate but its number."""

    env: Any  # text, a function, or an object, which is copied for each run
    planner: Planner
    prior: Prior
    rewards: RewardModel
    discount: float | str  # a number, "horizon" or "auto", see Agent
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
        """What the environment is called."""
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
    """Make a setting from text; whatever is an object already stays as it is.

    Parameters
    ----------
    env
        The environment, as :func:`bamdp.envs.registry.new_world` takes it.
    planner
        The planner, ``name`` or ``name:key=value,...``.
    parameters
        More parameters of the planner, as values or as they are written.
    prior
        The prior over transitions, as :func:`bamdp.registry.make_prior` reads it; None for that of the planner.
    rewards
        The reward model, as :func:`bamdp.registry.make_rewards` reads it; None for the environment's usual one.
    discount
        The discount of planning, or ``"horizon"`` to plan for the total of the steps that are left, or ``"auto"`` to
        plan no further ahead than there are data to learn from, see :class:`~bamdp.Agent`; None for that of the
        planner.
    objective
        What follows the end of an episode for the planner: nothing (``episode``) or the next one (``lifetime``).
    steps
        The steps of a run; None for the environment's own number.
    seed
        The seed of all runs.
    world
        The environment that ``env`` names, if it has been made already.

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
    """Return the planner, prior and usual discount in a world with continuous observations, which have own names."""
    from bamdp.continuous.agent import DEFAULT_PRIOR, DISCOUNT, PLANNERS, PRIORS, make_continuous

    made = make_continuous(planner, PLANNERS, "planner", parameters)
    return made, make_continuous(DEFAULT_PRIOR if prior is None else prior, PRIORS, "prior"), DISCOUNT


@lru_cache(maxsize=256)
def cached_world(spec: Any) -> World:
    """Return an environment to read facts from; it is shared, so nobody may step in it."""
    return new_world(spec)
