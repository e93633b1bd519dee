"""Planners, priors and reward models by name: the tables, and what is made from their specs.

A new prior or reward model is one line in its table here, a new planner one line in :data:`bamdp.planners.PLANNERS`.
Its parameters are the fields of its dataclass, read by their types (:mod:`bamdp._specs`):
``make_planner("dss-pi", {"n_steps": "100"})``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bamdp import _checks, beliefs
from bamdp._specs import (
    Entry,
    Info,
    InfoList,
    Spec,
    build,
    default_values,
    parse_spec,
    write_value,
    written_fields,
)
from bamdp.beliefs import FiniteModels, KnownRewards, Mixture, Prior, RewardModel
from bamdp.envs.environment import Environment, World
from bamdp.generators import GENERATORS
from bamdp.planners import PLANNERS, BootstrappedDQN, Planner

PRIORS: dict[str, Entry] = {
    "sparse": Entry(beliefs.SparseDirichlet),
    "shared": Entry(beliefs.SharedSupport),
    "dirichlet": Entry(beliefs.Dirichlet),
    "flat": Entry(
        beliefs.Dirichlet, {"alpha": "1/S"}, "By default the classic flat prior, 1/S for each entry."
    ),
    "local": Entry(
        beliefs.Dirichlet,
        {},
        "Knows which states are neighbours in the environment, and nothing of what actions do.",
    ),
    "models": Entry(FiniteModels, {}, "Made of the worlds that the environment may be (maze_door has two)."),
    "law": Entry(
        Prior, {}, "The law that a family draws its worlds from: the correct one (family_gdl has one)."
    ),
}
OF_ENVIRONMENT = {  # priors that the environment determines, which take no parameters, and what they are for
    "models": "environments that may be one of several worlds, such as maze_door",
    "law": "families, whose worlds are drawn from a law, such as family_gdl",
    "local": "environments that tell their own rules, such as grid",
}
LEARNED_REWARDS: dict[str, Entry] = {
    "beta": Entry(beliefs.BetaBernoulli),
    "normal": Entry(beliefs.NormalGamma),
    "finite": Entry(beliefs.FiniteRewards),
}
REWARDS = ("known", *LEARNED_REWARDS)
PARTS: dict[str, Mapping[str, type]] = {"generator": GENERATORS}  # planners' parameters that are named things

LARGEST_SINGLE = 1e12  # of numbers that are kept in 32 bits, with their squares
DEFAULT_PRIOR = Planner.default_prior
DEFAULT_PLANNER = "adaptive-dss"

# What stands between the priors of a mixture: a plus that is followed by a name, with or without a weight. (A number
# may have a plus in it, too.)
_MIXTURE_PLUS = re.compile(r"\s*\+\s*(?=(?:[\d.]+(?:e[+-]?\d+)?\s*\*\s*)?[a-z])", re.IGNORECASE)


# --- lists --------------------------------------------------------------------------------------------------------


def list_planners() -> InfoList:
    """List all planners that :func:`make_planner` knows: ``name``, ``help`` and ``parameters`` of each."""
    return InfoList(Info(name, entry.help, default_parameters(name)) for name, entry in PLANNERS.items())


def list_priors() -> InfoList:
    """List all priors that :func:`make_prior` knows. Joined by ``+`` they are a mixture."""
    return InfoList(
        Info(name, entry.help, {} if name in OF_ENVIRONMENT else default_values(entry))
        for name, entry in PRIORS.items()
    )


def list_rewards() -> InfoList:
    """List all reward models that :func:`make_rewards` knows."""
    known = Info("known", "The environment's own rewards, told to the agent.", {})
    learned = [Info(name, entry.help, default_values(entry)) for name, entry in LEARNED_REWARDS.items()]
    return InfoList([known, *learned])


def default_parameters(planner: str) -> dict[str, Any]:
    """Return the parameters of a planner, by its name, with their defaults; those of its generator with a dot."""
    return default_values(PLANNERS[planner], PARTS)


def uses_prior(planner: str) -> bool:
    """Return whether the prior over transitions makes a difference to a planner, by its name."""
    return bool(getattr(PLANNERS[planner].cls, "uses_prior", True))


# --- from specs ---------------------------------------------------------------------------------------------------


def make_planner(spec: str | Spec | Planner, parameters: Mapping[str, Any] | None = None) -> Planner:
    """Make a planner from its text, as on the command line; one that is made already is returned as it is.

    Parameters
    ----------
    spec
        ``name`` or ``name:key=value,...``, with the names of :func:`list_planners`.
    parameters
        More parameters, as values or as they are written.

    Examples
    --------
    >>> make_planner("thompson", {"resample": "episode"})
    ThompsonSampling(resample='episode', tol=0.0001)
    >>> make_planner("dss-rtdp:n_steps=100", {"generator.depth": "50"}).generator
    RTDP(depth=50, n_trials=100, bound='rmax', tol=0.0001)
    >>> make_planner("dss-pi", {"n_step": "100"})
    Traceback (most recent call last):
    ...
    ValueError: unknown parameter of dss-pi 'n_step'; did you mean 'n_steps'? (known: n_policies, ...)
    """
    if isinstance(spec, Planner):
        if parameters:
            raise ValueError(f"{spec!r} has its parameters already; give its name to choose others")
        return spec
    _check_text(spec, "planner", "a planner such as DSS(), or text such as 'dss-pi:n_steps=100'")
    spec = parse_spec(spec)
    name = _checks.one_of(planner_name(spec), "planner", PLANNERS)
    more = {key: write_value(value) for key, value in (parameters or {}).items()}
    written = spec.extended(more, "as a parameter").parameters
    planner = build(PLANNERS[name], Spec(name, written), PARTS)
    assert isinstance(planner, Planner)
    if isinstance(planner, BootstrappedDQN):
        for key in ("prior_scale", "noise_scale", "learning_rate"):
            _checks.real(getattr(planner, key), key, high=LARGEST_SINGLE)
    return planner


def planner_name(spec: str | Spec) -> str:
    """Return the name in a planner's spec as the table has it, in lower case and with hyphens."""
    return parse_spec(spec).name.lower().replace("_", "-")


def make_prior(spec: str | Spec | Prior, env: World | None = None, *, n_states: int | None = None) -> Prior:
    """Make a prior from its text, as on the command line; one that is made already is returned as it is.

    Parameters
    ----------
    spec
        ``name`` or ``name:key=value,...``, with the names of :func:`list_priors`. Several joined by ``+`` are a
        mixture, with weights before them, ``3*flat + sparse:beta=6``; one that is not written is 1.
    env
        The environment, which ``models`` needs, and its number of states what is written as x/S.
    n_states
        The number of states, where there is no environment.

    Examples
    --------
    >>> make_prior("sparse:alpha=0.2,beta=6")
    SparseDirichlet(alpha=0.2, beta=6.0, p_k=None)
    >>> make_prior("flat", n_states=25).alpha
    0.04
    """
    if isinstance(spec, Prior):
        return spec
    n_states = env.n_states if env is not None else n_states
    if isinstance(spec, Spec):
        return _make_single_prior(spec, env, n_states)
    _check_text(spec, "prior", "a prior such as SparseDirichlet(), or text such as 'sparse:beta=6'")
    members = [_split_weight(text) for text in _MIXTURE_PLUS.split(spec.strip())]
    priors = [_make_single_prior(parse_spec(text), env, n_states) for _, text in members]
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


def _make_single_prior(spec: Spec, env: World | None, n_states: int | None) -> Prior:
    name = _checks.one_of(spec.name.lower(), "prior", PRIORS)
    entry = PRIORS[name]
    if name in OF_ENVIRONMENT:
        if spec.parameters:
            raise ValueError(f"{name} takes no parameters, got {next(iter(spec.parameters))!r}")
        return _prior_of_environment(name, env)
    # x/S in a parameter depends on the environment, so what the name fixes is text as well
    written = {
        key: _divide_by_states(text, n_states) for key, text in {**entry.fixed, **spec.parameters}.items()
    }
    prior = build(Entry(entry.cls), Spec(name, written))
    assert isinstance(prior, Prior)
    return prior


def _prior_of_environment(name: str, env: World | None) -> Prior:
    """Return the prior that the environment determines, or say which environments have one."""
    if name == "models" and env is not None and len(env.worlds) > 1:
        weights, models = zip(*env.worlds)
        return FiniteModels(models, weights)
    if name == "local" and isinstance(env, Environment):
        return beliefs.Dirichlet.local(env.mdp)
    if name == "law" and isinstance(env, Environment) and env.law is not None:
        return env.law
    which = "give the environment with it" if env is None else f"{env.name} is none"
    raise ValueError(
        f"the prior {name!r} is for {OF_ENVIRONMENT[name]}; {which}, or use for instance {DEFAULT_PRIOR}"
    )


def _divide_by_states(text: str, n_states: int | None) -> str:
    """Replace ``x/S`` by x over the number of states; other texts stay as they are."""
    over = re.fullmatch(r"(.+?)\s*/\s*S", text)
    if over is None:
        return text
    if n_states is None:
        raise ValueError(f"{text!r} depends on the number of states S; give the environment, or n_states=...")
    try:
        return repr(float(over[1]) / n_states)
    except ValueError:
        raise ValueError(f"{text!r} is not a number over S; write for instance alpha=1/S") from None


def make_rewards(spec: str | Spec | RewardModel | ArrayLike | None, env: World | None = None) -> RewardModel:
    """Make a model of the rewards from its text, as on the command line; an array is of rewards that are known.

    Parameters
    ----------
    spec
        ``known``, what the environment pays, or learned: ``beta``, ``normal`` or ``finite``, with parameters after a
        colon. By default (None) ``known`` where they are certain, ``beta`` where 0 or 1 is drawn, ``normal``
        elsewhere.
    env
        The environment, which all but the learned ones need.

    Examples
    --------
    >>> make_rewards("normal:mu0=1,by=next")
    NormalGamma(mu0=1.0, lam=0.001, alpha=2.0, beta=0.001, by='next', bounds=None)
    """
    if spec is not None and not isinstance(spec, (str, Spec)):
        return spec if isinstance(spec, RewardModel) else KnownRewards(spec)
    spec = parse_spec(spec or _default_rewards(env))
    name = _checks.one_of(spec.name.lower(), "reward model", REWARDS)
    if name != "known":
        model = build(LEARNED_REWARDS[name], Spec(name, spec.parameters))
        assert isinstance(model, RewardModel)
        _check_rewards_possible(model, env)
        return model
    if not isinstance(env, Environment):
        learned = ", ".join(LEARNED_REWARDS)
        whose = "" if env is None else f" of {env.name}"
        raise ValueError(f"the rewards{whose} are not known beforehand; choose for rewards one of {learned}")
    if spec.parameters:
        raise ValueError(f"known takes no parameters, got {next(iter(spec.parameters))!r}")
    return KnownRewards(env.rewards)


def _default_rewards(env: World | None) -> str:
    if not isinstance(env, Environment):
        return "normal"
    if not env.stochastic_rewards:
        return "known"
    return "beta" if env.binary_rewards else "normal"


def _check_text(spec: Any, name: str, ways: str) -> None:
    """Refuse what is neither text nor a thing of the right kind."""
    if not isinstance(spec, (str, Spec)):
        raise TypeError(f"{name} must be {ways}; got {spec!r}")


def _check_rewards_possible(model: RewardModel, env: World | None) -> None:
    """Refuse a model that rules out a reward of the environment, where its rewards are known."""
    if not isinstance(env, Environment) or env.stochastic_rewards:
        return
    for reward in np.unique(env.rewards).tolist():
        try:
            model.check(reward)
        except ValueError as error:
            raise ValueError(f"{env.name} pays {reward:g} somewhere: {error}") from None


# --- sizes -------------------------------------------------------------------------------------------------------


def check_fits(planner: Planner, env: World) -> None:
    """Refuse an agent whose tables would not fit into memory, or whose numbers cannot hold the rewards."""
    check_fits_memory(planner, env.n_states, env.n_actions)
    if not isinstance(planner, BootstrappedDQN) or not isinstance(env, Environment):
        return
    largest = float(np.max(np.abs(env.rewards), initial=0.0))
    if largest > LARGEST_SINGLE:
        raise ValueError(
            f"bootstrapped-dqn counts in 32 bits, so rewards must be at most {LARGEST_SINGLE:g} in size, and "
            f"{env.name} has one of {largest:g}; scale them, or use another planner"
        )


def check_fits_memory(planner: Planner, n_states: int, n_actions: int) -> None:
    """Refuse an agent whose tables would not fit into memory, with the size that they would need."""
    S, A = _checks.integer(n_states, "n_states"), _checks.integer(n_actions, "n_actions")
    name = type(planner).__name__
    _checks.memory(planner.cost(S, A, 0.0).bytes, f"an agent for {S} states and {A} actions with {name}")


# --- descriptions -------------------------------------------------------------------------------------------------


def describe_planner(planner: Planner) -> dict[str, Any]:
    """Return all parameters of a planner as plain JSON; a part is a dictionary with its name and parameters."""
    described = dict(planner.parameters())
    for key, part in _parts(planner).items():
        name = next((name for name, cls in PARTS[key].items() if type(part) is cls), repr(part))
        fields = dataclasses.asdict(part) if dataclasses.is_dataclass(part) else {}  # type: ignore[arg-type]
        described[key] = {"name": name, **fields}
    return described


def _parts(planner: Planner) -> dict[str, Any]:
    """Return the parameters of a planner that are named things, made if they are only named."""
    values = {key: value for key, value in planner.parameters().items() if key in PARTS}
    return {key: PARTS[key][value]() if isinstance(value, str) else value for key, value in values.items()}


def planner_spec(planner: Planner) -> Spec:
    """Return the spec that :func:`make_planner` makes this planner of.

    Examples
    --------
    >>> from bamdp import DSS, RTDP
    >>> str(planner_spec(DSS(n_steps=50, generator=RTDP(depth=9))))
    'dss-rtdp:n_steps=50,generator.depth=9'
    """
    for name, entry in PLANNERS.items():
        if type(planner) is not entry.cls:
            continue
        described = _flat_description(planner)
        if any(described.get(key) != value for key, value in entry.fixed.items()):
            continue
        usual = _flat_description(make_planner(name))
        written = {key: write_value(v) for key, v in described.items() if key in usual and v != usual[key]}
        with suppress(ValueError, TypeError):
            if _flat_description(make_planner(spec := Spec(name, written))) == described:
                return spec
    raise ValueError(
        f"{planner!r} cannot be written as text, which is needed here; see bamdp.list_planners()"
    )


def planner_label(planner: Planner) -> str:
    """Return the text of a planner, or what it prints if it has none."""
    try:
        return str(planner_spec(planner))
    except ValueError:
        return repr(planner)


def _flat_description(planner: Planner) -> dict[str, Any]:
    """Return the description of a planner with its parts' parameters as keys with dots; the part is its name."""
    flat: dict[str, Any] = {}
    for key, value in describe_planner(planner).items():
        inner = dict(value) if isinstance(value, dict) else {}
        flat[key] = inner.pop("name", value)
        flat |= {f"{key}.{name}": parameter for name, parameter in inner.items()}
    return flat


def part_versions(planner: Planner) -> dict[str, int]:
    """Return the ``result_version`` of a planner's parts, such as its generator, where it is not the first.

    Examples
    --------
    >>> part_versions(make_planner("dss-rtdp")), part_versions(make_planner("dss-pi"))
    ({'generator': 2}, {})
    """
    versions = {key: getattr(part, "result_version", 1) for key, part in _parts(planner).items()}
    return {key: version for key, version in versions.items() if version > 1}


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
