"""Registry of planners, priors and reward models, and conversion between objects and text.

To add a planner, add a line to :data:`bamdp.planners.PLANNERS`; for a prior or reward model, add a line to its table
here. Classes outside the library are registered with :func:`register` or with an entry point in the group ``bamdp``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from bamdp import _checks, beliefs
from bamdp._parameters import Entry, InfoList, Spec, as_entry, build, declared, find, write_value
from bamdp.beliefs import FiniteModels, KnownRewards, Mixture, Prior, RewardModel
from bamdp.envs.environment import Environment, World
from bamdp.planners import PLANNERS, Planner

C = TypeVar("C", bound=type)
P = TypeVar("P", Planner, Prior)
PRIORS: dict[str, Entry] = {
    "sparse": Entry(beliefs.SparseDirichlet),
    "shared": Entry(beliefs.SharedSupport),
    "dirichlet": Entry(beliefs.Dirichlet),
    "hierarchical": Entry(beliefs.HierarchicalDirichlet),
    "flat": Entry(
        beliefs.Dirichlet, {"alpha": "1/S"}, "By default the classic flat prior, 1/S for each entry."
    ),
    "local": Entry(Prior, note="Knows which states are neighbours, but not what actions do (grid)."),
    "models": Entry(Prior, note="Knows that the environment is one of several models (maze_door)."),
    "disturbance": Entry(
        Prior, note="Knows the effect of each disturbance, but not its probability (inventory)."
    ),
    "law": Entry(
        Prior, note="The distribution from which a family draws its models: the correct prior (family_gdl)."
    ),
}
OF_ENVIRONMENT: dict[str, Callable[[Environment], Prior | None]] = {  # priors that an environment provides
    "models": lambda env: _models(env) if env.draws_model and env.law is None else None,
    "disturbance": lambda env: env.disturbance,
    "law": lambda env: env.law,
    "local": lambda env: beliefs.Dirichlet.local(env.mdp),
}
LEARNED_REWARDS: dict[str, Entry] = {
    "hierarchical": Entry(beliefs.HierarchicalNormal),
    "beta": Entry(beliefs.BetaBernoulli),
    "normal": Entry(beliefs.NormalGamma),
    "finite": Entry(beliefs.FiniteRewards),
}
REWARDS = ("known", *LEARNED_REWARDS)
TABLES: dict[type, dict[str, Entry]] = {Planner: PLANNERS, Prior: PRIORS, RewardModel: LEARNED_REWARDS}

DEFAULT_PRIOR = Planner.default_prior
DEFAULT_PLANNER = "optimism"

# Priors of a mixture are separated by a plus before a name or weight; numbers may also contain a plus.
_MIXTURE_PLUS = re.compile(r"\s*\+\s*(?=(?:[\d.]+(?:e[+-]?\d+)?\s*\*\s*)?[a-z])", re.IGNORECASE)
PLAIN = (bool, int, float, str, tuple, type(None))  # values that have a text form


# --- names ------------------------------------------------------------------------------------------------------------


def register(name: str) -> Callable[[C], C]:
    """Register your own planner, prior or reward model under a name for use in text and on the command line.

    Parameters
    ----------
    name
        Letters, digits and hyphens.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import bamdp
    >>> @bamdp.register("stubborn")
    ... @dataclass(frozen=True)
    ... class Stubborn(bamdp.Random):
    ...     pass
    >>> bamdp.make_planner("stubborn")
    Stubborn()
    """
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ValueError(f"a name consists of lower-case letters, digits and hyphens, got {name!r}")

    def enter(cls: C) -> C:
        table = next((table for base, table in TABLES.items() if issubclass(cls, base)), None)
        if table is None:
            raise TypeError(
                f"{cls.__name__} is not a subclass of bamdp.Planner, bamdp.Prior or bamdp.RewardModel"
            )
        if name in table and table[name].cls.__qualname__ != cls.__qualname__:
            raise ValueError(
                f"the name {name!r} is already used by {table[name].cls.__name__}; choose another one"
            )
        table[name] = Entry(cls)
        return cls

    return enter


def names(base: type) -> dict[str, Entry]:
    """Return all planners, priors or reward models by name, including those from other packages."""
    _load_entry_points()
    return TABLES[base]


@cache
def _load_entry_points() -> None:
    """Register the components named by entry points of installed packages."""
    for point in entry_points(group="bamdp"):
        register(point.name)(point.load())


def list_planners() -> InfoList:
    """List the ``name``, ``help`` and ``parameters`` of all planners available to :func:`make_planner`."""
    return InfoList.of(names(Planner))


def list_priors() -> InfoList:
    """List all priors available to :func:`make_prior`; join priors with ``+`` to form a mixture."""
    return InfoList.of(names(Prior))


def list_rewards() -> InfoList:
    """List all reward models available to :func:`make_rewards`."""
    known = Entry(RewardModel, note="The environment's own rewards, told to the agent.")
    return InfoList.of({"known": known, **names(RewardModel)})


# --- from text --------------------------------------------------------------------------------------------------------


def make_planner(spec: str | Spec | Planner, parameters: Mapping[str, Any] | None = None) -> Planner:
    """Create a planner from text in command-line syntax; planner objects are returned unchanged.

    Parameters
    ----------
    spec
        ``name`` or ``name:key=value,...``, with a name from :func:`list_planners`; or a planner object.
    parameters
        Additional parameters, as values or text; for a planner object, the parameters to change.

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
        return with_parameters(spec, parameters) if parameters else spec
    spec = find(spec, "planner", names(Planner)).extended(parameters)
    planner: Planner = build(names(Planner)[spec.name], spec)
    return planner


def with_parameters(thing: P, parameters: Mapping[str, Any]) -> P:
    """Return a planner or prior with some parameters replaced, given as values or text.

    Examples
    --------
    >>> with_parameters(beliefs.SparseDirichlet(alpha=0.5), {"beta": "6"})
    SparseDirichlet(alpha=0.5, beta=6.0, p_k=None)
    """
    made: P = build(as_entry(thing), Spec(label(thing), dict(parameters)))
    return made


def entry_of(planner: str | Planner) -> Entry:
    """Return the entry of a planner's name, or an entry that describes a planner with its parameters."""
    return names(Planner)[planner] if isinstance(planner, str) else as_entry(planner)


def make_prior(spec: str | Spec | Prior, env: World | None = None, *, n_states: int | None = None) -> Prior:
    """Create a prior from text in command-line syntax; prior objects are returned unchanged.

    Parameters
    ----------
    spec
        ``name`` or ``name:key=value,...``, with a name from :func:`list_priors`. Several priors joined by ``+`` form a
        mixture with optional weights: ``3*flat + sparse:beta=6``. The default weight is 1.
    env
        The environment, required for priors that it provides; its number of states is needed for parameters of the
        form x/S.
    n_states
        The number of states, if there is no environment.

    Examples
    --------
    >>> make_prior("sparse:alpha=0.2,beta=6")
    SparseDirichlet(alpha=0.2, beta=6.0, p_k=None)
    >>> make_prior("flat", n_states=25).alpha
    0.04
    """
    if isinstance(spec, Prior):
        return spec
    members = (
        [_split_weight(text) for text in _MIXTURE_PLUS.split(spec)] if type(spec) is str else [(1.0, spec)]
    )
    priors = [_make_single_prior(text, env, n_states) for _, text in members]
    return priors[0] if len(priors) == 1 else Mixture(priors, [weight for weight, _ in members])


def is_mixture(spec: str) -> bool:
    """Return whether a text specifies a mixture: several priors, or a prior with a weight."""
    return "*" in spec or _MIXTURE_PLUS.search(spec) is not None


def _split_weight(text: str) -> tuple[float, str]:
    """Split a mixture component into its weight (1 by default) and the prior's spec."""
    weight, times, rest = text.rpartition("*")
    try:
        return float(weight) if times else 1.0, rest.strip()
    except ValueError:
        raise ValueError(
            f"{weight.strip()!r} in {text!r} is not a weight; write for instance 3*flat"
        ) from None


def _make_single_prior(spec: str | Spec, env: World | None, n_states: int | None) -> Prior:
    entries = names(Prior)
    spec = find(spec, "prior", entries)
    if spec.name in OF_ENVIRONMENT:
        return _prior_of_environment(spec, env, entries[spec.name].note)
    # x/S depends on the environment
    S = n_states if env is None else env.n_states
    written = {**entries[spec.name].fixed, **spec.parameters}
    values = {key: _divide_by_states(value, S) for key, value in written.items()}
    prior: Prior = build(Entry(entries[spec.name].cls), Spec(spec.name, values))
    return prior


def _prior_of_environment(spec: Spec, env: World | None, note: str) -> Prior:
    for key in spec.parameters:
        _checks.parameter(key, spec.name, ())
    prior = OF_ENVIRONMENT[spec.name](env) if isinstance(env, Environment) else None
    if prior is None:
        where = "give the environment with it" if env is None else f"{env.name} has none"
        raise ValueError(
            f"the prior {spec.name!r} is part of an environment: {note.rstrip('.')}; {where}, or use for instance "
            f"{DEFAULT_PRIOR}"
        )
    return prior


def _models(env: Environment) -> Prior:
    weights, models = zip(*env.models())
    return FiniteModels(models, weights)


def _divide_by_states(value: Any, n_states: int | None) -> Any:
    """Replace text of the form ``x/S`` by x divided by the number of states; keep other values."""
    over = re.fullmatch(r"(.+?)\s*/\s*S", value) if isinstance(value, str) else None
    if over is None:
        return value
    if n_states is None:
        raise ValueError(
            f"{value!r} depends on the number of states S; give the environment, or n_states=..."
        )
    try:
        return float(over[1]) / n_states
    except ValueError:
        raise ValueError(f"{value!r} is not a number over S; write for instance alpha=1/S") from None


def make_rewards(spec: str | Spec | RewardModel | ArrayLike | None, env: World | None = None) -> RewardModel:
    """Create a reward model from text in command-line syntax; an array specifies known rewards.

    Parameters
    ----------
    spec
        ``known`` for the environment's own rewards, or a learned model: ``hierarchical``, ``beta``, ``normal`` or
        ``finite``, with parameters after a colon. The default (None) is ``known`` for deterministic rewards, ``beta``
        for random rewards of 0 or 1, and ``hierarchical`` otherwise.
    env
        The environment, required except for learned models.

    Examples
    --------
    >>> make_rewards("normal:mu0=1,by=next")
    NormalGamma(mu0=1.0, lam=0.001, alpha=2.0, beta=0.001, by='next', bounds=None)
    """
    if spec is not None and not isinstance(spec, (str, Spec)):
        return spec if isinstance(spec, RewardModel) else KnownRewards(spec)
    if spec is None:
        spec = "hierarchical"
        if isinstance(env, Environment) and not env.stochastic_rewards:
            spec = "known"
        elif isinstance(env, Environment) and env.binary_rewards:
            spec = "beta"
    entries = {"known": Entry(KnownRewards), **names(RewardModel)}
    spec = find(spec, "reward model", entries)
    if spec.name == "known":
        for key in spec.parameters:
            _checks.parameter(key, "known", ())
        if not isinstance(env, Environment):
            whose = "" if env is None else f" of {env.name}"
            raise ValueError(
                f"the rewards{whose} are not known in advance; choose a learned model: {', '.join(names(RewardModel))}"
            )
        return KnownRewards(env.rewards)
    model: RewardModel = build(entries[spec.name], spec)
    if isinstance(env, Environment) and not env.stochastic_rewards:
        for reward in np.unique(env.rewards).tolist():
            try:
                model.check(reward)
            except ValueError as error:
                raise ValueError(f"{env.name} pays {reward:g} somewhere: {error}") from None
    return model


# --- to text ----------------------------------------------------------------------------------------------------------


def text_of(thing: Planner | Prior | RewardModel) -> str | None:
    """Return text that recreates a planner, prior or reward model; None if there is none.

    Examples
    --------
    >>> from bamdp import DSS, RTDP, SparseDirichlet
    >>> text_of(DSS(n_steps=50, generator=RTDP(depth=9))), text_of(SparseDirichlet(beta=6))
    ('dss-rtdp:n_steps=50,generator.depth=9', 'sparse:beta=6')
    """
    if isinstance(thing, Mixture):
        members = [(weight, text_of(part)) for weight, part in zip(thing.weights or (), thing.priors)]
        if any(text is None or is_mixture(text) for _, text in members):
            return None
        equal = len({weight for weight, _ in members}) == 1
        return "+".join(str(text) if equal else f"{write_value(weight)}*{text}" for weight, text in members)
    values = _flat(thing)
    for table in TABLES.values():
        for name, entry in table.items():
            if type(thing) is entry.cls and all(_same(values.get(key), v) for key, v in entry.fixed.items()):
                usual = entry.parameters
                other = {key: value for key, value in values.items() if not _same(value, usual.get(key, ...))}
                return str(Spec(name, other)) if all(isinstance(v, PLAIN) for v in other.values()) else None
    return None


def _same(one: Any, other: Any) -> bool:
    """Return whether two parameters are equal; arrays always count as different."""
    return not isinstance(one, np.ndarray) and not isinstance(other, np.ndarray) and bool(one == other)


def label(thing: Planner | Prior | RewardModel) -> str:
    """Return the label of a planner, prior or reward model in tables and figures: its text, or its repr."""
    if isinstance(thing, KnownRewards):
        return "known"
    if thing is None:  # for continuous observations
        return "learned"
    if hasattr(thing, "text") or isinstance(thing, str):
        return str(getattr(thing, "text", thing))
    if callable(thing):
        return str(getattr(thing, "__name__", thing))
    return text_of(thing) or re.sub(r"\S*<locals>\.", "", " ".join(repr(thing).split()))


def _flat(thing: Any) -> dict[str, Any]:
    """Return the parameters of a dataclass; a part is given by its name, and its parameters have dotted names."""
    values: dict[str, Any] = {}
    for one in declared(type(thing)):
        value = getattr(thing, one.name)
        made = one.parts[value]() if one.parts and isinstance(value, str) else value
        name = next((name for name, cls in one.parts.items() if type(made) is cls), None)
        values[one.name] = value if name is None else name
        if name is not None:
            values.update({f"{one.name}.{key}": inner for key, inner in _flat(made).items()})
    return values


def describe_planner(planner: Planner) -> dict[str, Any]:
    """Return all parameters of a planner as plain JSON; parameters of a part have dotted names."""
    plain = (bool, int, float, str, type(None))
    return {key: value if isinstance(value, plain) else repr(value) for key, value in _flat(planner).items()}


def part_versions(planner: Planner) -> dict[str, int]:
    """Return the ``result_version`` of a planner's parts, such as its generator, unless it is the first version.

    Examples
    --------
    >>> part_versions(make_planner("dss-rtdp")), part_versions(make_planner("dss-pi"))
    ({'generator': 2}, {})
    """
    parts = {
        one.name: (one.parts, getattr(planner, one.name)) for one in declared(type(planner)) if one.parts
    }
    versions = {
        key: getattr(classes.get(part) if isinstance(part, str) else part, "result_version", 1)
        for key, (classes, part) in parts.items()
    }
    return {key: version for key, version in versions.items() if version > 1}
