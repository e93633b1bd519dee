"""Policy generators for DSS, μ ↦ π: those that ship, and the door for your own."""

from bamdp.generators.builtin import BOUNDS, PI, RTDP, VI, Generator, generate, register_generator

GENERATORS: dict[str, type[Generator]] = {"pi": PI, "rtdp": RTDP, "vi": VI}

__all__ = ["BOUNDS", "GENERATORS", "PI", "RTDP", "VI", "Generator", "generate", "register_generator"]
