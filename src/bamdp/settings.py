"""Settings: everything that determines a run but its number, and the one place that makes a setting from text.

The command line, the studio's form and studies all come here. What is wrong with a text is a :class:`FieldError`,
which names the field it belongs to, so that a form can point at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from bamdp import _checks
from bamdp._specs import Spec
from bamdp.agent import Agent
from bamdp.beliefs import Prior, RewardModel
from bamdp.beliefs.episodes import OBJECTIVES
from bamdp.envs import Environment, World, make_world
from bamdp.planners import BootstrappedDQN, Planner
from bamdp.registry import DEFAULT_PRIOR, LARGEST_SINGLE, make_planner, make_prior, make_rewards

STEP_BYTES = 50  # about what a run keeps of a step
PAIR_BYTES = 400  # about what an agent keeps of a pair of state and action, before it has seen anything


class FieldError(ValueError):
    """Something is wrong with one field of a setting."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message)
        self.field = field

    def __str__(self) -> str:
        return str(self.args[1])


@contextmanager
def in_field(field: str) -> Iterator[None]:
    """Turn errors inside the block into those of a field; what is one already stays as it is."""
    try:
        yield
    except FieldError:
        raise
    except (ValueError, TypeError, OSError) as error:
        raise FieldError(field, _checks.error_line(error)) from error


@dataclass(frozen=True)
class Setting:
    """Everything that determines a replicate but its number."""

    env: str  # as make_world reads it
    planner: Planner
    prior: Prior
    rewards: RewardModel
    discount: float
    steps: int
    seed: int = 0
    objective: str = "episode"

    def __post_init__(self) -> None:
        with in_field("discount"):
            _checks.discount(self.discount)
        with in_field("steps"):
            steps = _checks.integer(self.steps, "steps")
            _checks.memory(STEP_BYTES * steps, f"the record of a run of {steps} steps")
        with in_field("seed"):
            _checks.integer(self.seed, "seed", low=0)
        with in_field("objective"):
            _checks.one_of(self.objective, "objective", OBJECTIVES)

    def agent(self, env: World, seed: np.random.SeedSequence | int = 0) -> Agent:
        """Make an agent that has seen nothing yet, for the setting's environment."""
        check_fits(self.planner, env)
        return Agent(
            self.planner,
            prior=self.prior,
            rewards=self.rewards,
            n_states=env.n_states,
            n_actions=env.n_actions,
            discount=self.discount,
            objective=self.objective,
            seed=seed,
            **env.knowledge,
        )


def make_setting(
    env: str,
    planner: str | Spec,
    *,
    parameters: Mapping[str, str] | None = None,
    prior: str | Spec = DEFAULT_PRIOR,
    rewards: str | Spec | None = None,
    discount: float = 0.95,
    objective: str = "episode",
    steps: int | None = None,
    seed: int = 0,
    world: World | None = None,
) -> Setting:
    """Make a setting from text.

    Parameters
    ----------
    env
        The environment, as :func:`bamdp.make_world` reads it.
    planner
        The planner, ``name`` or ``name:key=value,...``.
    parameters
        More parameters of the planner, as they are written.
    prior
        The prior over transitions, as :func:`bamdp.registry.make_prior` reads it.
    rewards
        The reward model, as :func:`bamdp.registry.make_rewards` reads it; None for the environment's usual one.
    discount
        The discount of planning.
    objective
        What follows the end of an episode for the planner: nothing (``episode``) or the next one (``lifetime``).
    steps
        The steps of a run; None for the environment's own number.
    seed
        The seed of all runs.
    world
        The environment that ``env`` names, if it has been made already.

    Raises
    ------
    FieldError
        If anything is wrong; its ``field`` is the name of the parameter here.

    Examples
    --------
    >>> make_setting("chain", "thompson:resample=episode", prior="flat").planner
    ThompsonSampling(resample='episode', tol=0.0001)
    >>> make_setting("chain", "thompson", prior="sparse:bata=2")
    Traceback (most recent call last):
    ...
    bamdp.settings.FieldError: unknown parameter of sparse 'bata'; did you mean 'beta'? (known: ...)
    """
    if world is None:
        with in_field("env"):
            world = make_world(env)
    with in_field("planner"):
        made_planner = make_planner(planner, parameters)
        check_fits(made_planner, world)
    with in_field("prior"):
        made_prior = make_prior(prior, world)
    with in_field("rewards"):
        made_rewards = make_rewards(rewards, world)
    steps = world.horizon if steps is None else steps
    return Setting(env, made_planner, made_prior, made_rewards, discount, steps, seed, objective)


def check_fits(planner: Planner, env: World) -> None:
    """Refuse an agent whose tables would not fit into memory, or whose numbers cannot hold the rewards."""
    S, A = env.n_states, env.n_actions
    what = f"an agent for {S} states and {A} actions"
    _checks.memory(PAIR_BYTES * S * A, what)
    units = {  # about the bytes that a planner takes for one more of each
        "n_policies": 16,
        "n_steps": 64,
        "n_stages": 4 * S + 80,
        "horizon": 64,
        "depth": 64,
        "n_trajectories": 64,
        "n_successors": 48,
        "n_models": 32 * S * A,
        "n_networks": 16 * (S + A) * getattr(planner, "n_hidden", 1),
        "n_hidden": 16 * (S + A) * getattr(planner, "n_networks", 1),
        "replay_size": 48,
    }
    sizes = {name: getattr(planner, name, 0) for name in units}
    for name, size in sizes.items():
        if isinstance(size, int):  # and not a word such as "auto"
            _checks.memory(units[name] * size, f"{what} with {name}={size}")
    if isinstance(planner, BootstrappedDQN) and isinstance(env, Environment):
        _check_single_precision(env)


def _check_single_precision(env: Environment) -> None:
    """Refuse rewards that networks, whose numbers have 32 bits, cannot hold with their squares."""
    largest = float(np.max(np.abs(env.rewards), initial=0.0))
    if largest > LARGEST_SINGLE:
        raise ValueError(
            f"bootstrapped-dqn counts in 32 bits, so rewards must be at most {LARGEST_SINGLE:g} in size, and "
            f"{env.name} has one of {largest:g}; scale them, or use another planner"
        )
