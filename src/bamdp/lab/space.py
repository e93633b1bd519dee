"""Search spaces: the configurations of one planner.

A configuration is flat. It contains the planner's parameters (with a dot for those of a named component, as in
``generator.depth``), ``prior``, ``prior.beta`` and ``discount``. A search space lists one or more values for each
parameter. It represents their Cartesian product in the order written, with the last parameter varying fastest.

Some parameters apply only to certain values of another: ``prior.beta`` to a sparse prior, ``generator.depth`` to
RTDP. Otherwise they are dropped, and configurations that become equal are counted once. Planners that do not use the
prior (R-max, Q-learning) keep the first one. If the space contains more configurations than requested, a seeded
random sample is used.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._parameters import Spec, parse_spec, read_value
from bamdp.beliefs.base import Prior
from bamdp.generators import GENERATORS
from bamdp.planners.base import Planner
from bamdp.registry import OF_ENVIRONMENT, entry_of, is_mixture, make_planner, names, with_parameters

SearchSpace = Mapping[str, Sequence[Any]]
Configuration = Mapping[str, Any]

SHARED_KEYS = ("prior", "discount")  # parameters that do not belong to the planner
MAX_LISTED = 100_000  # configurations enumerated one by one
COMPONENTS = {"generator": GENERATORS}  # planner parameters that have parameters of their own


def list_configurations(
    planner: str | Planner,
    space: SearchSpace,
    include: Iterable[Mapping[str, Any]] = (),
    count: int | None = None,
    seed: Sequence[int] = (0,),
) -> tuple[Configuration, ...]:
    """Return the configurations in ``include``, then those of the space, up to ``count`` in total (None: all).

    Parameters missing from an included configuration take the first value in the space.

    Examples
    --------
    >>> space = {"resample": ("step", 5), "prior": ("flat", "sparse"), "prior.beta": (2, 4), "discount": (0.95,)}
    >>> for configuration in list_configurations("thompson", space):
    ...     print(dict(configuration))
    {'resample': 'step', 'prior': 'flat', 'discount': 0.95}
    {'resample': 'step', 'prior': 'sparse', 'prior.beta': 2, 'discount': 0.95}
    {'resample': 'step', 'prior': 'sparse', 'prior.beta': 4, 'discount': 0.95}
    {'resample': 5, 'prior': 'flat', 'discount': 0.95}
    {'resample': 5, 'prior': 'sparse', 'prior.beta': 2, 'discount': 0.95}
    {'resample': 5, 'prior': 'sparse', 'prior.beta': 4, 'discount': 0.95}
    """
    for one in (space, *({key: (value,) for key, value in one.items()} for one in include)):
        check_component_keys(planner, one)
    cls: Any = entry_of(planner).cls
    if not cls.uses_prior:  # choosing between priors would amount to choosing between seeds
        space = {key: values[:1] if _owner(key) == "prior" else values for key, values in space.items()}
        include = [{k: value for k, value in one.items() if _owner(k) != "prior"} for one in include]
    first = {key: values[0] for key, values in space.items()}
    distinct: dict[str, tuple[int, Configuration]] = {}  # keyed by value, with the position in the space
    for one in include:
        configuration = normalise_configuration(planner, merge_parameters(first, one))
        distinct.setdefault(repr(configuration), (-1, configuration))
    if count is not None and len(distinct) > count:
        raise ValueError(f"{len(distinct)} configurations are to be included, which is more than {count}")
    for position in _positions(math.prod(len(values) for values in space.values()), count, seed):
        if count is not None and len(distinct) == count:
            break
        indices = np.unravel_index(position, [len(values) for values in space.values()])
        raw = {key: values[int(index)] for (key, values), index in zip(space.items(), indices)}
        configuration = normalise_configuration(planner, raw)
        distinct.setdefault(repr(configuration), (position, configuration))
    return tuple(configuration for _, configuration in sorted(distinct.values(), key=lambda entry: entry[0]))


def normalise_configuration(planner: str | Planner, raw: Mapping[str, Any]) -> Configuration:
    """Return the canonical form of a configuration, with typed values and only applicable parameters."""
    own = {}
    for key, value in raw.items():
        head, dot, rest = key.partition(".")
        applies = not dot or rest in _fields_of(head, raw.get(head, _default(planner, head)))
        if head not in SHARED_KEYS and applies:
            own[key] = value
    made = make_planner(planner, own)
    typed = {key: _held_value(made, key, value) for key, value in own.items()}
    discount = _checks.planning_discount(read_value(raw["discount"]))
    return {**typed, **_normalise_prior(raw), "discount": discount}


def merge_parameters(*tables: Mapping[str, Any]) -> dict[str, Any]:
    """Merge parameters, with later tables taking precedence; a new prior discards the parameters of the old one."""
    merged: dict[str, Any] = {}
    for table in tables:
        if "prior" in table:
            merged = {key: value for key, value in merged.items() if not key.startswith("prior.")}
        merged |= table
    return merged


def prior_spec(configuration: Configuration) -> str | Spec | Prior:
    """Return a configuration's prior as accepted by :func:`bamdp.registry.make_prior`; mixtures are strings."""
    parameters = {key[6:]: value for key, value in configuration.items() if key.startswith("prior.")}
    prior = configuration["prior"]
    return Spec(prior, parameters) if parameters else prior


def planner_parameters(configuration: Configuration) -> dict[str, Any]:
    """Return the planner's parameters in a configuration."""
    return {key: value for key, value in configuration.items() if _owner(key) not in SHARED_KEYS}


def parameters_text(configuration: Mapping[str, Any]) -> str:
    """Return parameters in command-line syntax.

    Examples
    --------
    >>> parameters_text({"n_steps": 25, "prior.beta": 6.0})
    'n_steps=25, prior.beta=6'
    """
    return ", ".join(f"{key}={parameter_text(value)}" for key, value in configuration.items())


def parameter_text(value: Any) -> str:
    """Return the value of a parameter as displayed."""
    return f"{value:g}" if isinstance(value, float) else "–" if value is None else str(value)


def varied_keys(configurations: Iterable[Configuration]) -> list[str]:
    """Return the parameters whose values differ between configurations, in order of appearance."""
    listed = list(configurations)
    keys = dict.fromkeys(key for one in listed for key in one)
    return [key for key in keys if len({repr(one.get(key)) for one in listed}) > 1]


def check_component_keys(planner: str | Planner, space: SearchSpace) -> None:
    """Check that every dotted key is a parameter of a prior or component in the space."""
    for key in space:
        head, dot, rest = key.partition(".")
        if dot and head in ("prior", *COMPONENTS):
            options = space.get(head, (_default(planner, head),))
            names = ", ".join(str(option).partition(":")[0] for option in options)
            known = dict.fromkeys(name for one in options for name in _fields_of(head, one))
            _checks.one_of(rest, f"parameter of the {head} {names}", known)


def _owner(key: str) -> str:
    """Return the owner of a parameter: ``prior`` for ``prior.beta``, otherwise the key itself."""
    return key.partition(".")[0]


def _default(planner: str | Planner, head: str) -> Any:
    return entry_of(planner).parameters.get(head, "")


def _fields_of(head: str, option: Any) -> tuple[str, ...]:
    """Return the parameter names of a prior or component; mixtures have none."""
    cls: Any = type(option)
    if isinstance(option, str):
        name = parse_spec(option).name.lower() if not is_mixture(option) else ""
        if head == "prior" and (not name or _checks.one_of(name, "prior", names(Prior)) in OF_ENVIRONMENT):
            return ()
        table = COMPONENTS.get(head, {})
        cls = names(Prior)[name].cls if head == "prior" else table[_checks.one_of(name, head, table)]
    return tuple(f.name for f in dataclasses.fields(cls)) if dataclasses.is_dataclass(cls) else ()


def _held_value(instance: Any, key: str, given: Any) -> Any:
    """Return a value as stored in the planner; for a component, its name."""
    for name in key.split("."):
        instance = getattr(instance, name)
    return given if dataclasses.is_dataclass(instance) or instance is None else instance


def _normalise_prior(raw: Mapping[str, Any]) -> dict[str, Any]:
    own = {key[6:]: read_value(value) for key, value in raw.items() if key.startswith("prior.")}
    if isinstance(raw["prior"], Prior):
        return {"prior": with_parameters(raw["prior"], own) if own else raw["prior"]}
    if is_mixture(raw["prior"]):
        return {"prior": raw["prior"].strip()}
    head, written = parse_spec(raw["prior"])
    head = _checks.one_of(head.lower(), "prior", names(Prior))
    twice = next((name for name in own if name in written), None)
    if twice is not None:
        raise ValueError(f"prior.{twice} is given twice, in {raw['prior']!r} and by itself; drop one")
    applying = {name: value for name, value in own.items() if name in _fields_of("prior", head)}
    return {"prior": head, **{f"prior.{name}": value for name, value in {**written, **applying}.items()}}


def _positions(total: int, count: int | None, seed: Sequence[int]) -> Iterable[int]:
    """Return all positions in order, or in random order if only some are requested."""
    if count is None and total > MAX_LISTED:
        raise ValueError(f"the space has {total} configurations; say configurations = N to draw N of them")
    if count is None or total <= count:
        return range(total)
    rng = np.random.default_rng(np.random.SeedSequence(list(seed)))
    drawn = rng.permutation(total) if total <= MAX_LISTED else rng.integers(total, size=100 * count)
    return map(int, drawn)
