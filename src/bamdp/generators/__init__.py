"""Policy generators for DSS, μ ↦ π: the built-in ones and the interface for adding your own."""

from typing import Any

from bamdp import _checks
from bamdp._parameters import part
from bamdp.generators.builtin import PI, VI, Generator, generate, python_policy, register_generator
from bamdp.generators.rtdp import BOUNDS, RTDP

GENERATORS: dict[str, type[Generator]] = {"pi": PI, "rtdp": RTDP, "vi": VI}
GENERATOR_HELP = "a name, a Generator such as RTDP(depth=50), or a function (mdp, discount) -> policy"


def generator_parameter(default: str) -> Any:
    """Declare a planner parameter that takes a generator by name, as an object or as a function."""
    return part(default, GENERATORS, _check_generator, help=GENERATOR_HELP)


def _check_generator(generator: Any, name: str) -> None:
    if isinstance(generator, str):
        _checks.one_of(generator, name, GENERATORS)
    elif not isinstance(generator, Generator) and not callable(generator):
        raise TypeError(f"{name} must be {GENERATOR_HELP}; got {generator!r}")


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
