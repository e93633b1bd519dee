"""Policy generators for DSS, μ ↦ π: those that ship, and the door for your own."""

from bamdp.generators.base import Generator, generate, register_generator
from bamdp.generators.builtin import PI, RTDP, VI

GENERATORS: dict[str, type[Generator]] = {"pi": PI, "rtdp": RTDP, "vi": VI}

__all__ = ["GENERATORS", "PI", "RTDP", "VI", "Generator", "generate", "register_generator"]
