"""Planners, priors and reward models by name: the tables, and what is made from their specs.

A new prior or reward model is one line in its table here, a new planner one line in :data:`bamdp.planners.PLANNERS`.
Its parameters are the fields of its dataclass, read by their types (:mod:`bamdp._specs`):
``make_planner("dss-pi", {"n_steps": "100"})``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bamdp import _checks, beliefs
from bamdp._specs import Entry, Spec, build, default_values, parse_spec, write_value, written_fields
from bamdp.beliefs import FiniteModels, KnownRewards, Mixture, Prior, RewardModel
from bamdp.envs import Environment, World
from bamdp.generators import GENERATORS
from bamdp.planners import PLANNERS, BootstrappedDQN, Planner

PRIORS: dict[str, Entry] = {
    "sparse": Entry(beliefs.SparseDirichlet),
    "dirichlet": Entry(beliefs.Dirichlet),
    "flat": Entry(
        beliefs.Dirichlet, {"alpha": "1/S"}, "By default the classic flat prior, 1/S for each entry."
    ),
    "models": Entry(FiniteModels, {}, "Made of the worlds that the environment may be (maze_door has two)."),
}
LEARNED_REWARDS: dict[str, Entry] = {
    "beta": Entry(beliefs.BetaBernoulli),
    "normal": Entry(beliefs.NormalGamma),
    "finite": Entry(beliefs.FiniteRewards),
}
REWARDS = ("known", *LEARNED_REWARDS)
PARTS: dict[str, Mapping[str, type]] = {"generator": GENERATORS}  # planners' parameters that are named things

LARGEST_SINGLE = 1e12  # of numbers that are kept in 32 bits, with their squares
DEFAULT_PRIOR = "sparse:alpha=0.2,beta=2"

# What stands between the priors of a mixture: a plus that is followed by a name, with or without a weight. (A number
# may have a plus in it, too.)
_MIXTURE_PLUS = re.compile(r"\s*\+\s*(?=(?:[\d.]+(?:e[+-]?\d+)?\s*\*\s*)?[a-z])", re.IGNORECASE)


# --- lists --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Info:
    """What a list tells of a planner, prior or reward model: its name, help, and parameters with their defaults."""

    name: str
    help: str
    parameters: dict[str, Any]


def list_planners() -> list[Info]:
    """List all planners that :func:`make_planner` knows."""
    return [Info(name, entry.help, default_parameters(name)) for name, entry in PLANNERS.items()]


def list_priors() -> list[Info]:
    """List all priors that :func:`make_prior` knows. Joined by ``+`` they are a mixture."""
    return [
        Info(name, entry.help, {} if entry.cls is FiniteModels else default_values(entry))
        for name, entry in PRIORS.items()
    ]


def list_rewards() -> list[Info]:
    """List all reward models that :func:`make_rewards` knows."""
    known = Info("known", "The environment's own rewards, told to the agent.", {})
    learned = [Info(name, entry.help, default_values(entry)) for name, entry in LEARNED_REWARDS.items()]
    return [known, *learned]


def default_parameters(planner: str) -> dict[str, Any]:
    """Return the parameters of a planner, by its name, with their defaults; those of its generator with a dot."""
    return default_values(PLANNERS[planner], PARTS)


def uses_prior(planner: str) -> bool:
    """Return whether the prior over transitions makes a difference to a planner, by its name."""
    return bool(getattr(PLANNERS[planner].cls, "uses_prior", True))


# --- from specs ---------------------------------------------------------------------------------------------------


def make_planner(spec: str | Spec, parameters: Mapping[str, str] | None = None) -> Planner:
    """Make a planner from its spec and further written parameters.

    Examples
    --------
    >>> make_planner("thompson", {"resample": "episode"})
    ThompsonSampling(resample='episode', tol=0.0001)
    >>> make_planner("dss-rtdp:n_steps=100", {"generator.depth": "50"}).generator
    RTDP(depth=50, n_trials=10)
    >>> make_planner("dss-pi", {"n_step": "100"})
    Traceback (most recent call last):
    ...
    ValueError: unknown parameter of dss-pi 'n_step'; did you mean 'n_steps'? (known: n_policies, ...)
    """
    spec = parse_spec(spec)
    name = _checks.one_of(planner_name(spec), "planner", PLANNERS)
    written = spec.extended(parameters, "as a parameter").parameters
    planner = build(PLANNERS[name], Spec(name, written), PARTS)
    assert isinstance(planner, Planner)
    if isinstance(planner, BootstrappedDQN):
        for key in ("prior_scale", "noise_scale", "learning_rate"):
            _checks.real(getattr(planner, key), key, high=LARGEST_SINGLE)
    return planner


def planner_name(spec: str | Spec) -> str:
    """Return the name in a planner's spec as the table has it, in lower case and with hyphens."""
    return parse_spec(spec).name.lower().replace("_", "-")


def make_prior(spec: str | Spec, env: World) -> Prior:
    """Make a prior for an environment from its spec; several joined by ``+`` are a mixture.

    Weights are written before them, ``3*flat + sparse:beta=6``; one that is not written is 1.

    Examples
    --------
    >>> from bamdp import make_env
    >>> make_prior("sparse:alpha=0.2,beta=6", make_env("grid5"))
    SparseDirichlet(alpha=0.2, beta=6.0, p_k=None)
    >>> make_prior("flat", make_env("grid5")).alpha
    0.04
    """
    if isinstance(spec, Spec):
        return _make_single_prior(spec, env)
    members = [_split_weight(text) for text in _MIXTURE_PLUS.split(spec.strip())]
    priors = [_make_single_prior(parse_spec(text), env) for _, text in members]
    return priors[0] if len(priors) == 1 else Mixture(priors, [weight for weight, _ in members])


def is_mixture(spec: str) -> bool:
    """Return whether the text of a prior has several priors, or a weight."""
    return "*" in spec or _MIXTURE_PLUS.search(spec) is not None


def _split_weight(text: str) -> tuple[float, str]:
    """Split the text of a mixture's member into its weight, 1 if none is written, and the prior's spec."""
    head, times, rest = text.partition("*")
    if not times:
        return 1.0, text
    try:
        return float(head), rest.strip()
    except ValueError:
        raise ValueError(f"{head.strip()!r} in {text!r} is not a weight; write for instance 3*flat") from None


def _make_single_prior(spec: Spec, env: World) -> Prior:
    name = _checks.one_of(spec.name.lower(), "prior", PRIORS)
    entry = PRIORS[name]
    if entry.cls is FiniteModels:
        if spec.parameters:
            raise ValueError(f"{name} takes no parameters, got {next(iter(spec.parameters))!r}")
        if len(env.worlds) < 2:
            raise ValueError(
                f"the prior 'models' is for environments that may be one of several worlds, such as maze_door; "
                f"{env.name} is only one: use for instance {DEFAULT_PRIOR}"
            )
        weights, models = zip(*env.worlds)
        return FiniteModels(models, weights)
    # x/S in a parameter depends on the environment, so what the name fixes is text as well
    written = {key: _divide_by_states(text, env) for key, text in {**entry.fixed, **spec.parameters}.items()}
    prior = build(Entry(entry.cls), Spec(name, written))
    assert isinstance(prior, Prior)
    return prior


def _divide_by_states(text: str, env: World) -> str:
    """Replace ``x/S`` by x over the number of states; other texts stay as they are."""
    over = re.fullmatch(r"(.+?)\s*/\s*S", text)
    if over is None:
        return text
    try:
        return repr(float(over[1]) / env.n_states)
    except ValueError:
        raise ValueError(f"{text!r} is not a number over S; write for instance alpha=1/S") from None


def make_rewards(spec: str | Spec | None, env: World) -> RewardModel:
    """Make a model of the rewards from its spec.

    Known rewards are told to the agent, others are learned: ``beta``, ``normal``, ``finite``, with parameters after a
    colon. By default (None) ``known`` where they are certain, ``beta`` where they are drawn with means from
    0 to 1, ``normal`` elsewhere.

    Examples
    --------
    >>> from bamdp import make_env
    >>> make_rewards("normal:mu0=1,by=next", make_env("grid5"))
    NormalGamma(mu0=1.0, lam=0.001, alpha=2.0, beta=0.001, by='next', bounds=None)
    """
    spec = parse_spec(spec or _default_rewards(env))
    name = _checks.one_of(spec.name.lower(), "reward model", REWARDS)
    if name != "known":
        model = build(LEARNED_REWARDS[name], Spec(name, spec.parameters))
        assert isinstance(model, RewardModel)
        _check_rewards_possible(model, env)
        return model
    if not isinstance(env, Environment):
        learned = ", ".join(LEARNED_REWARDS)
        raise ValueError(
            f"the rewards of {env.name} are not known beforehand; choose for --rewards one of {learned}"
        )
    if spec.parameters:
        raise ValueError(f"known takes no parameters, got {next(iter(spec.parameters))!r}")
    return KnownRewards(env.rewards)


def _default_rewards(env: World) -> str:
    if not isinstance(env, Environment):
        return "normal"
    if not env.stochastic_rewards:
        return "known"
    return "beta" if env.rewards.min() >= 0.0 and env.rewards.max() <= 1.0 else "normal"


def _check_rewards_possible(model: RewardModel, env: World) -> None:
    """Refuse a model that rules out a reward of the environment, where its rewards are known."""
    if not isinstance(env, Environment) or env.stochastic_rewards:
        return
    for reward in np.unique(env.rewards).tolist():
        try:
            model.check(reward)
        except ValueError as error:
            raise ValueError(f"{env.name} pays {reward:g} somewhere: {error}") from None


# --- descriptions -------------------------------------------------------------------------------------------------


def describe_planner(planner: Planner) -> dict[str, Any]:
    """Return all parameters of a planner as plain JSON; a part is a dictionary with its name and parameters."""
    return {
        key: _describe_part(PARTS[key], value) if key in PARTS else value
        for key, value in planner.parameters().items()
    }


def _describe_part(classes: Mapping[str, type], value: Any) -> dict[str, Any]:
    part = classes[value]() if isinstance(value, str) else value
    name = next((name for name, cls in classes.items() if type(part) is cls), repr(part))
    fields = dataclasses.asdict(part) if dataclasses.is_dataclass(part) else {}  # type: ignore[arg-type]
    return {"name": name, **fields}


def describe_prior(prior: Prior) -> str:
    """Return the text that :func:`make_prior` makes this prior of (models and arrays in short)."""
    if isinstance(prior, Mixture):
        members = _mixture_members(prior, 1.0)
        equal = len({weight for weight, _ in members}) == 1
        return "+".join(
            ("" if equal else f"{write_value(weight)}*") + describe_prior(part) for weight, part in members
        )
    name = next((name for name, entry in PRIORS.items() if type(prior) is entry.cls), type(prior).__name__)
    return name if isinstance(prior, FiniteModels) else str(Spec(name, written_fields(prior)))


def _mixture_members(prior: Prior, weight: float) -> list[tuple[float, Prior]]:
    """Return the priors of a mixture with their weights, those of mixtures in it among them."""
    if not isinstance(prior, Mixture):
        return [(weight, prior)]
    parts = zip(prior.weights or (), prior.priors)
    return [member for share, part in parts for member in _mixture_members(part, weight * share)]


def describe_rewards(model: RewardModel) -> str:
    """Return the text that :func:`make_rewards` makes this model of."""
    if isinstance(model, KnownRewards):
        return "known"
    name = next((name for name, entry in LEARNED_REWARDS.items() if type(model) is entry.cls), None)
    return type(model).__name__ if name is None else str(Spec(name, written_fields(model)))
