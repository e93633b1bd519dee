"""Planners and priors by name, with parameters from text: what the command line and studies are written in.

A table names each planner; its parameters are the fields of the planner's dataclass and are read by their types
(:mod:`bamdp._parameters`): ``make_planner("dss-pi", {"n_steps": "100"})``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._parameters import PARTS, Named, build, defaults
from bamdp._specs import split_spec
from bamdp.beliefs import (
    BetaBernoulli,
    Dirichlet,
    FiniteModels,
    FiniteRewards,
    KnownRewards,
    Mixture,
    NormalGamma,
    Prior,
    RewardModel,
    SparseDirichlet,
)
from bamdp.envs import Environment, World
from bamdp.planners import (
    BAMCP,
    BAUCT,
    BEB,
    BFS3,
    BOLT,
    BOSS,
    DSS,
    FHTS,
    MCBRL,
    SBOSS,
    VBRB,
    BayesGreedy,
    BayesianQLearning,
    BayesianSparseSampling,
    BootstrappedDQN,
    EpsilonGreedy,
    Planner,
    QLearning,
    Random,
    RMax,
    SparseSampling,
    ThompsonSampling,
)

# what stands between the priors of a mixture; a number may have a plus in it, too
_JOIN = re.compile(r"\s*\+\s*(?=(?:[\d.]+(?:e[+-]?\d+)?\s*\*\s*)?[a-z])", re.IGNORECASE)

PLANNERS: dict[str, Named] = {
    "dss-pi": Named(DSS, {"generator": "pi"}, "Policies by policy iteration."),
    "dss-rtdp": Named(DSS, {"generator": "rtdp"}, "Policies by real-time dynamic programming."),
    "dss-vi": Named(DSS, {"generator": "vi"}, "Policies by value iteration."),
    "fhts": Named(FHTS),
    "sparse-sampling": Named(SparseSampling),
    "bayesian-sparse-sampling": Named(BayesianSparseSampling),
    "thompson": Named(ThompsonSampling),
    "bayes-greedy": Named(BayesGreedy),
    "bamcp": Named(BAMCP),
    "bauct": Named(BAUCT),
    "bfs3": Named(BFS3),
    "boss": Named(BOSS),
    "sboss": Named(SBOSS),
    "beb": Named(BEB),
    "bolt": Named(BOLT),
    "vbrb": Named(VBRB),
    "mcbrl": Named(MCBRL),
    "bayesian-q-learning": Named(BayesianQLearning),
    "rmax": Named(RMax),
    "epsilon-greedy": Named(EpsilonGreedy),
    "q-learning": Named(QLearning),
    "bootstrapped-dqn": Named(BootstrappedDQN),
    "random": Named(Random),
}

PRIORS: dict[str, Named] = {
    "sparse": Named(SparseDirichlet),
    "dirichlet": Named(Dirichlet),
    "flat": Named(Dirichlet, {"alpha": "1/S"}, "By default the classic flat prior, 1/S an entry."),
    "models": Named(FiniteModels, {}, "Made of the worlds that the environment may be (maze_door has two)."),
}

DEFAULT_PRIOR = "sparse:alpha=0.2,beta=2"
LEARNED: dict[str, Named] = {
    "beta": Named(BetaBernoulli),
    "normal": Named(NormalGamma),
    "finite": Named(FiniteRewards),
}
REWARDS = ("known", *LEARNED)


@dataclass(frozen=True)
class Info:
    """What a list tells of a planner or prior: its name, help, and parameters with their defaults."""

    name: str
    help: str
    parameters: dict[str, Any]


def list_planners() -> list[Info]:
    """All planners that :func:`make_planner` knows."""
    return [Info(name, _help(named), defaults(named)) for name, named in PLANNERS.items()]


def list_priors() -> list[Info]:
    """All priors that :func:`make_prior` knows. Joined by ``+`` they are a mixture."""
    return [
        Info(name, _help(named), {} if named.cls is FiniteModels else defaults(named))
        for name, named in PRIORS.items()
    ]


def list_rewards() -> list[Info]:
    """All reward models that :func:`make_rewards` knows."""
    known = Info("known", "The environment's own rewards, told to the agent.", {})
    return [known, *(Info(name, _help(named), defaults(named)) for name, named in LEARNED.items())]


def make_planner(name: str, settings: Mapping[str, str] | None = None) -> Planner:
    """A planner from its name and written parameters.

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
    head, written = split_spec(name)
    head = _checks.one_of(head.lower().replace("_", "-"), "planner", PLANNERS)
    for key, value in (settings or {}).items():
        if key in written:
            raise ValueError(f"{key} is given twice, in {name!r} and as a setting; drop one")
        written[key] = value
    planner = build(PLANNERS[head], head, written)
    assert isinstance(planner, Planner)
    return planner


def uses_prior(planner: str) -> bool:
    """Whether the prior over transitions makes a difference to a planner, by its name."""
    return bool(getattr(PLANNERS[planner].cls, "uses_prior", True))


def make_prior(spec: str, env: World) -> Prior:
    """A prior for an environment, from text; several joined by ``+`` are a mixture.

    Weights are written before them, ``3*flat + sparse:beta=6``; one that is not written is 1.

    Examples
    --------
    >>> from bamdp import make_env
    >>> make_prior("sparse:alpha=0.2,beta=6", make_env("grid5"))
    SparseDirichlet(alpha=0.2, beta=6.0, p_k=None)
    >>> make_prior("flat", make_env("grid5")).alpha
    0.04
    """
    parts = [_weighted(part) for part in re.split(_JOIN, spec.strip())]
    priors = [_one_prior(text, env) for _, text in parts]
    return priors[0] if len(priors) == 1 else Mixture(priors, [weight for weight, _ in parts])


def is_mixture(spec: str) -> bool:
    """Whether the text of a prior has several, or a weight."""
    return "*" in spec or _JOIN.search(spec) is not None


def _weighted(spec: str) -> tuple[float, str]:
    """The weight that is written before a prior, and the prior."""
    head, times, rest = spec.partition("*")
    if not times:
        return 1.0, spec
    try:
        return float(head), rest.strip()
    except ValueError:
        raise ValueError(f"{head.strip()!r} in {spec!r} is not a weight; write for instance 3*flat") from None


def _one_prior(spec: str, env: World) -> Prior:
    head, written = split_spec(spec)
    head = _checks.one_of(head.lower(), "prior", PRIORS)
    named = PRIORS[head]
    if named.cls is FiniteModels:
        if written:
            raise ValueError(f"{head} takes no parameters, got {next(iter(written))!r}")
        if len(env.worlds) < 2:
            raise ValueError(
                f"the prior 'models' is for environments that may be one of several worlds, such as maze_door; "
                f"{env.name} is only one: use for instance {DEFAULT_PRIOR}"
            )
        weights, models = zip(*env.worlds)
        return FiniteModels(models, weights)
    fixed = {key: _by_states(str(value), env.n_states) for key, value in named.fixed.items()}
    given = {key: _by_states(value, env.n_states) for key, value in written.items()}
    prior = build(Named(named.cls), head, {**fixed, **given})
    assert isinstance(prior, Prior)
    return prior


def make_rewards(spec: str | None, env: World) -> RewardModel:
    """What the agent believes of rewards, from text; None for what the world calls for.

    Known rewards are told to the agent, others are learned: ``beta``, ``normal``, ``finite``, with parameters after a
    colon. By default ``known`` where they are certain, ``beta`` where they are drawn with means from
    0 to 1, ``normal`` elsewhere.

    Examples
    --------
    >>> from bamdp import make_env
    >>> make_rewards("normal:mu0=1,by=next", make_env("grid5"))
    NormalGamma(mu0=1.0, lam=0.001, alpha=2.0, beta=0.001, by='next', bounds=None)
    """
    spec = _usual_rewards(env) if spec is None and isinstance(env, Environment) else spec or "normal"
    head, written = split_spec(spec)
    head = _checks.one_of(head.lower(), "reward model", REWARDS)
    if head != "known":
        model = build(LEARNED[head], head, written)
        assert isinstance(model, RewardModel)
        _check_payable(model, env)
        return model
    if not isinstance(env, Environment):
        raise ValueError(
            f"nobody knows the rewards of {env.name} beforehand; use --rewards normal, finite or beta"
        )
    if written:
        raise ValueError(f"known takes no parameters, got {next(iter(written))!r}")
    return KnownRewards(env.rewards)


def _usual_rewards(env: Environment) -> str:
    if not env.stochastic_rewards:
        return "known"
    means = np.unique(env.rewards)
    return "beta" if means[0] >= 0.0 and means[-1] <= 1.0 else "normal"


def _check_payable(model: RewardModel, env: World) -> None:
    """Refuse a model that rules out what the world is going to pay, where that is known."""
    if not isinstance(env, Environment) or env.stochastic_rewards:
        return
    for reward in np.unique(env.rewards).tolist():
        try:
            model.check(reward)
        except ValueError as error:
            raise ValueError(f"{env.name} pays {reward:g} somewhere: {error}") from None


def describe_rewards(model: RewardModel) -> str:
    """The text that :func:`make_rewards` makes this model of."""
    name = next((name for name, named in LEARNED.items() if type(model) is named.cls), None)
    if name is None:
        return "known" if isinstance(model, KnownRewards) else type(model).__name__
    return f"{name}:{_written(model)}"


def describe_planner(planner: Planner) -> dict[str, Any]:
    """All parameters, nested ones as dictionaries with their name: plain JSON."""
    return {name: _described(name, value) for name, value in planner.parameters().items()}


def describe_prior(prior: Prior) -> str:
    """The text that :func:`make_prior` makes this prior of (models and arrays in short)."""
    if isinstance(prior, Mixture):
        members = _members(prior, 1.0)
        equal = len({weight for weight, _ in members}) == 1
        return "+".join(
            ("" if equal else f"{_text(weight)}*") + describe_prior(part) for weight, part in members
        )
    name = next((name for name, named in PRIORS.items() if type(prior) is named.cls), type(prior).__name__)
    if isinstance(prior, FiniteModels):
        return name
    return f"{name}:{_written(prior)}"


def _members(prior: Prior, weight: float) -> list[tuple[float, Prior]]:
    """The priors of a mixture with their weights, those of mixtures in it among them."""
    if not isinstance(prior, Mixture):
        return [(weight, prior)]
    parts = zip(prior.weights or (), prior.priors)
    return [member for share, part in parts for member in _members(part, weight * share)]


def _written(model: Any) -> str:
    """The fields of a dataclass as they are written in a spec."""
    values = {f.name: getattr(model, f.name) for f in dataclasses.fields(model)}
    return ",".join(f"{key}={_text(value)}" for key, value in values.items() if value is not None)


def _by_states(text: str, n_states: int) -> str:
    """A written number; ``x/S`` is divided by the number of states."""
    over = re.fullmatch(r"(.+?)\s*/\s*S", text)
    if over is None:
        return text
    try:
        return repr(float(over[1]) / n_states)
    except ValueError:
        raise ValueError(f"{text!r} is not a number over S; write for instance alpha=1/S") from None


def _help(named: Named) -> str:
    first = (named.cls.__doc__ or "").partition("\n")[0].strip()
    return f"{first} {named.note}".strip()


def _described(name: str, value: Any) -> Any:
    if name in PARTS:
        table = PARTS[name]
        made = table[value]() if isinstance(value, str) else value
        word = next((key for key, cls in table.items() if type(made) is cls), repr(made))
        own = dataclasses.asdict(made) if dataclasses.is_dataclass(made) else {}  # type: ignore[arg-type]
        return {"name": word, **own}
    return value


def _text(value: Any) -> str:
    if isinstance(value, float):
        short = f"{value:.10g}"
        return short if float(short) == value else repr(value)
    if isinstance(value, tuple):
        return f"({','.join(_text(item) for item in value)})"
    return str(value) if getattr(value, "ndim", 0) == 0 else f"array{list(value.shape)}"
