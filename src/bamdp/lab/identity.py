"""What determines a run, its name, and its two random streams.

A run's identity is a hash of the canonical JSON of everything that determines its result: environment (with the
content of its file, if it has one), planner with its parameters and result version, prior, reward model, discount,
steps, study seed, phase and replicate. The package's version, the machine, the number of processes and the labels
of a study are not in it, so a result stays valid until a result version is raised, and studies share what they have
in common.

- The environment's stream comes from (environment, seed) under the spawn key (phase, replicate) only: every planner
  meets the same luck in replicate r, and luck in tuning is never met again in evaluation.
- The agent's stream comes from the full identity.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bamdp.beliefs import FiniteModels, KnownRewards
from bamdp.envs import Environment, World, make_world
from bamdp.lab.results import PHASES
from bamdp.registry import describe_planner
from bamdp.settings import Setting

FORMAT = 1  # is raised when the meaning of these facts changes, or an environment's behaviour

Facts = Mapping[str, Any]


def canonical(facts: Facts) -> str:
    """JSON in one form: keys sorted, no blanks, numbers that read back to the same bits."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(facts: Facts) -> str:
    """32 hexadecimal digits."""
    return hashlib.sha256(canonical(facts).encode()).hexdigest()[:32]


def setting_facts(setting: Setting) -> dict[str, Any]:
    """Everything that determines the runs of a setting but phase and replicate."""
    planner = setting.planner
    return {
        "format": FORMAT,
        "environment": environment_facts(setting.env),
        "planner": {
            "class": type(planner).__name__,
            "result_version": planner.result_version,
            "parameters": plain(describe_planner(planner)),
        },
        "prior": plain(setting.prior),
        "rewards": plain(setting.rewards),
        "discount": setting.discount,
        "steps": setting.steps,
        "seed": setting.seed,
        "objective": setting.objective,
    }


def run_identity(setting: str, phase: str, replicate: int) -> str:
    """The name of a run, from the digest of its setting's facts."""
    return digest({"setting": setting, "phase": phase, "replicate": replicate})


def environment_stream(setting: Facts, phase: str, replicate: int) -> np.random.SeedSequence:
    """The same for all planners, priors, discounts and horizons."""
    source = {key: setting[key] for key in ("format", "environment", "seed")}
    return np.random.SeedSequence(int(digest(source), 16), spawn_key=(PHASES.index(phase), replicate))


def agent_stream(identity: str) -> np.random.SeedSequence:
    """Of a run's own."""
    return np.random.SeedSequence(int(identity, 16))


def environment_facts(spec: str) -> dict[str, Any]:
    """What an environment's behaviour is determined by."""
    env = environment(spec)
    if not isinstance(env, Environment):  # Gymnasium's rule: what changes has another version in its name
        from bamdp.gym.world import read_gym

        name, parameters = read_gym(spec.partition(":")[2])
        return {"name": "gym", "id": name, "parameters": plain(parameters)}
    if spec.strip().startswith("file:"):  # where the file lies does not matter, what is in it does
        content = Path(env.name.removeprefix("file:")).read_bytes()
        own = {key: value for key, value in env.parameters.items() if key != "horizon"}
        return {"name": "file", "content": hashlib.sha256(content).hexdigest(), "parameters": plain(own)}
    return {"name": env.name, "parameters": plain(env.parameters)}


@lru_cache(maxsize=256)
def environment(spec: str) -> World:
    """An environment, or another world, to read facts from; nobody steps in it."""
    return make_world(spec)


def plain(value: Any) -> Any:
    """Parameters as plain JSON that tells all that are different apart."""
    if isinstance(value, (FiniteModels, KnownRewards)):  # they are the environment's own
        return {"class": type(value).__name__}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        own = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"class": type(value).__name__, "result_version": getattr(value, "result_version", 1), **own}
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray) and value.ndim:
        data = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")).tobytes()
        return {
            "array": list(value.shape),
            "type": value.dtype.name,
            "content": hashlib.sha256(data).hexdigest(),
        }
    if isinstance(value, (np.generic, np.ndarray)):
        return value.item()
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise TypeError(f"{value!r} cannot be part of a run's identity; give it as a parameter with a name")
