"""Configurations, and the spaces that they are chosen from.

A configuration is flat: the planner's parameters (those of a named part with a dot, ``generator.depth``), ``prior``
and ``prior.beta``, ``discount``. A space gives each of these one or several values and stands for their product, in
the order in which it is written, the last one changing fastest.

Some parameters make sense only with some values of another: ``prior.beta`` with a sparse prior, ``generator.depth``
with RTDP. Where they do not, they are left out, and configurations that have become equal count once. A planner that
does not look at the prior (R-max, Q-learning) keeps the first one.

Of a space that is larger than wanted, as many are drawn at random, by a seed: the same ones every time.
"""

from __future__ import annotations

import ast
import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._specs import parse_spec
from bamdp.beliefs import FiniteModels
from bamdp.registry import PARTS, PLANNERS, PRIORS, is_mixture, make_planner, uses_prior

Scalar = str | int | float | bool
Space = Mapping[str, tuple[Scalar, ...]]
Configuration = Mapping[str, Scalar]

OUTER = ("prior", "discount")  # what is not the planner's
LARGEST = 100_000  # configurations that are listed one by one


def configurations(
    planner: str,
    space: Space,
    include: Iterable[Mapping[str, Scalar]] = (),
    count: int | None = None,
    seed: Sequence[int] = (0,),
) -> tuple[Configuration, ...]:
    """Those of ``include``, and all of the space, or so many of it that there are ``count`` in all.

    What an included one leaves out has the space's first value.

    Examples
    --------
    >>> space = {"resample": ("step", 5), "prior": ("flat", "sparse"), "prior.beta": (2, 4), "discount": (0.95,)}
    >>> for configuration in configurations("thompson", space):
    ...     print(dict(configuration))
    {'resample': 'step', 'prior': 'flat', 'discount': 0.95}
    {'resample': 'step', 'prior': 'sparse', 'prior.beta': 2, 'discount': 0.95}
    {'resample': 'step', 'prior': 'sparse', 'prior.beta': 4, 'discount': 0.95}
    {'resample': 5, 'prior': 'flat', 'discount': 0.95}
    {'resample': 5, 'prior': 'sparse', 'prior.beta': 2, 'discount': 0.95}
    {'resample': 5, 'prior': 'sparse', 'prior.beta': 4, 'discount': 0.95}
    """
    check_names(planner, space)
    include = tuple(include)
    for one in include:
        check_names(planner, {key: (value,) for key, value in one.items()})
    if not uses_prior(planner):  # the choice of one would be a choice of luck
        space = {key: values[:1] if _is_prior(key) else values for key, values in space.items()}
        include = tuple({key: value for key, value in one.items() if not _is_prior(key)} for one in include)
    first = {key: values[0] for key, values in space.items()}
    found: dict[str, tuple[int, Configuration]] = {}  # by value, with the place in the list
    for one in include:
        configuration = normal(planner, merged(first, one))
        found.setdefault(repr(configuration), (-1, configuration))
    if count is not None and len(found) > count:
        raise ValueError(f"{len(found)} configurations are to be included, which is more than {count}")
    for place in _places(math.prod(len(values) for values in space.values()), count, seed):
        if count is not None and len(found) == count:
            break
        configuration = normal(planner, _at(space, place))
        found.setdefault(repr(configuration), (place, configuration))
    return tuple(configuration for _, configuration in sorted(found.values(), key=lambda entry: entry[0]))


def normal(planner: str, raw: Mapping[str, Scalar]) -> Configuration:
    """A configuration in its one form: values of their true types, without parameters that have no meaning."""
    own = {key: value for key, value in raw.items() if key.partition(".")[0] not in OUTER}
    return {**_normal_planner(planner, own), **_normal_prior(raw), "discount": _discount(raw["discount"])}


def merged(*tables: Mapping[str, Any]) -> dict[str, Any]:
    """Later ones win; a prior that is given anew takes the parameters of the old one away."""
    result: dict[str, Any] = {}
    for table in tables:
        if "prior" in table:
            result = {key: value for key, value in result.items() if not key.startswith("prior.")}
        result |= table
    return result


def prior_spec(configuration: Configuration) -> str:
    """The text of a configuration's prior, for :func:`bamdp.registry.make_prior`."""
    own = [f"{key[6:]}={text(value)}" for key, value in configuration.items() if key.startswith("prior.")]
    return f"{configuration['prior']}:{','.join(own)}" if own else str(configuration["prior"])


def planner_settings(configuration: Configuration) -> dict[str, str]:
    """What of a configuration is the planner's, as text."""
    return {k: text(v) for k, v in configuration.items() if k.partition(".")[0] not in OUTER}


def text(value: Scalar) -> str:
    """A value as it is written in specs."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_names(planner: str, space: Space) -> None:
    """That every key is a parameter of something in the space."""
    parts = {"prior": space.get("prior", ()), **{part: _choices(planner, part, space) for part in PARTS}}
    for key in space:
        head, dot, rest = key.partition(".")
        if dot and head in parts:
            owners = [_parameters_of(head, choice) for choice in parts[head]]
            known = list(dict.fromkeys(name for owner in owners for name in owner))
            choices = ", ".join(str(choice).partition(":")[0] for choice in parts[head])
            if known or not any("+" in str(choice) for choice in parts[head]):
                _checks.one_of(rest, f"parameter of the {head} {choices}", known)


def _choices(planner: str, part: str, space: Space) -> tuple[Scalar, ...]:
    named = PLANNERS[planner]
    default = named.fixed.get(part, getattr(named.cls, part, None))
    return space.get(part, () if default is None else (default,))


def _parameters_of(head: str, choice: Scalar) -> tuple[str, ...]:
    """The parameters of a prior or of a part, by its name; none for a mixture."""
    name = str(choice).partition(":")[0].strip().lower()
    if head == "prior":
        if is_mixture(str(choice)):
            return ()
        cls = PRIORS[_checks.one_of(name, "prior", PRIORS)].cls
        return () if cls is FiniteModels else tuple(f.name for f in dataclasses.fields(cls))
    return tuple(f.name for f in dataclasses.fields(PARTS[head][_checks.one_of(name, head, PARTS[head])]))


def _normal_planner(planner: str, own: Mapping[str, Scalar]) -> dict[str, Scalar]:
    kept = {}
    for key, value in own.items():
        head, dot, rest = key.partition(".")
        if dot and head in PARTS:
            choice = _choices(planner, head, {k: (v,) for k, v in own.items()})
            if choice and rest not in _parameters_of(head, choice[0]):
                continue
        kept[key] = text(value)
    made = make_planner(planner, kept)
    return {key: _typed(made, key, value) for key, value in kept.items()}


def _typed(made: Any, key: str, written: str) -> Scalar:
    """The value as the planner holds it."""
    for name in key.split("."):
        made = getattr(made, name)
    return made if isinstance(made, (str, int, float)) else written  # none, and named parts


def _normal_prior(raw: Mapping[str, Scalar]) -> dict[str, Scalar]:
    written = str(raw["prior"]).strip()
    if is_mixture(written):
        return {"prior": written}
    head, parameters = parse_spec(written)
    head = _checks.one_of(head.lower(), "prior", PRIORS)
    for key, value in raw.items():
        name = key.removeprefix("prior.")
        if name == key or name not in _parameters_of("prior", head):
            continue
        if name in parameters:
            raise ValueError(f"{key} is given twice, in {written!r} and by itself; drop one")
        parameters[name] = text(value)
    return {"prior": head, **{f"prior.{name}": literal(value) for name, value in parameters.items()}}


def _is_prior(key: str) -> bool:
    return key.partition(".")[0] == "prior"


def literal(written: str) -> Scalar:
    """A written number as a number, anything else as it is."""
    try:
        value = ast.literal_eval(written)
    except (ValueError, SyntaxError):
        return written
    return value if isinstance(value, (int, float)) else written


def _discount(value: Scalar) -> float:
    return _checks.discount(literal(value) if isinstance(value, str) else value)


def _at(space: Space, place: int) -> dict[str, Scalar]:
    """The member at a place of the product."""
    chosen = {}
    for key, values in reversed(list(space.items())):
        place, index = divmod(place, len(values))
        chosen[key] = values[index]
    return {key: chosen[key] for key in space}


def _places(total: int, count: int | None, seed: Sequence[int]) -> Iterator[int]:
    """All places in order; or, if not all are wanted, in a random order."""
    if count is None:
        if total > LARGEST:
            raise ValueError(
                f"the space has {total} configurations; say configurations = N to draw N of them"
            )
        return iter(range(total))
    if total <= count:
        return iter(range(total))
    rng = np.random.default_rng(np.random.SeedSequence(list(seed)))
    if total <= LARGEST:
        return (int(place) for place in rng.permutation(total))
    return (int(rng.integers(total)) for _ in range(100 * count))
