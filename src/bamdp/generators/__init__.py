"""Policy generators for DSS, μ ↦ π: the built-in ones and the interface for adding your own."""

from functools import partial
from typing import Any

from bamdp import _checks
from bamdp._parameters import part
from bamdp.generators.builtin import PI, VI, Generator, generate, python_policy, register_generator
from bamdp.generators.rtdp import BOUNDS, RTDP

GENERATORS: dict[str, type[Generator]] = {"pi": PI, "rtdp": RTDP, "vi": VI}


def generator_parameter(default: str, *, or_function: bool = False, help: str = "") -> Any:
    """Declare a planner parameter that takes a generator by name, as an object or (optionally) as a function."""
    return part(default, GENERATORS, partial(_check_generator, or_function=or_function), help=help)


def _check_generator(generator: Any, name: str, or_function: bool) -> None:
    if isinstance(generator, str):
        _checks.one_of(generator, name, GENERATORS)
    elif not isinstance(generator, Generator) and not (or_function and callable(generator)):
        kinds = [*GENERATORS, "or a Generator such as RTDP(depth=50)"]
        if or_function:
            kinds[-1:] = ["a Generator such as RTDP(depth=50)", "or a function (mdp, discount) -> policy"]
        raise TypeError(f"{name} must be one of {', '.join(kinds)}; got {generator!r}")


def make_generator(generator: Any) -> Any:
    """Return the generator with the given name; return objects and functions unchanged."""
    return GENERATORS[generator]() if isinstance(generator, str) else generator


__all__ = [
    "BOUNDS",
    "GENERATORS",
    "PI",
    "RTDP",
    "VI",
    "Generator",
    "generate",
    "python_policy",
    "register_generator",
]
