"""A unit of work is one run of a study: its identity, its random streams, and the trace that is kept of it.

**Identity.** The identity of a run is a hash of the canonical JSON of everything that determines its result:
environment (with the content of its file, if it has one), planner with its parameters and result version, prior, reward
model, discount, steps, study seed, phase and replicate. The version of the package, the machine, the number of
processes and the labels of a study are not part of it, so a result stays valid until a result version is raised, and
studies share the runs that they have in common.

**Random streams.** The environment's stream comes from (environment, seed) under the spawn key (phase, replicate)
only: replicate r of every planner has common random numbers, and no stream of tuning is used in evaluation. The agent's
stream comes from the whole identity.

**Traces.** The rewards of a run are stored exactly and in few bytes. Most environments have a handful of distinct
rewards, so a trace is the list of these, to the bit, and the index of each step's reward in it, all of it compressed:
about a byte for every 10 to 50 steps. Where nearly all rewards differ, they are compressed as they are. The format is
zlib of: one byte (bytes per index; 0: rewards as they are), the number of distinct rewards as uint32, these as float64,
the indices; little-endian. Where episodes were completed, 128 is added to the first byte, and behind the number of
distinct rewards stand how many episodes there were as uint32, the last step of each as uint32, and for each a byte, 1
if it ended and 0 if it was cut off.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bamdp.beliefs.rewards.known import KnownRewards
from bamdp.beliefs.transitions.finite import FiniteModels
from bamdp.envs.environment import Environment
from bamdp.lab.results import PHASES
from bamdp.registry import describe_planner, part_versions
from bamdp.settings import Setting, cached_world
from bamdp.simulation import Run

IDENTITY_FORMAT = 1  # is raised when the meaning of these facts changes, or an environment's behaviour

FINISHED, FAILED, OVER_LIMIT = RUN_STATUSES = ("done", "failed", "over")

TRACE_RAW = 0
TRACE_EPISODES = 128  # is added where episodes follow
TRACE_HEAD = struct.Struct("<BI")
TRACE_COUNT = struct.Struct("<I")
INDEX_WIDTHS = (1, 2, 4)

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Unit:
    """One run of a study."""

    id: str
    setting: Setting
    facts: Facts  # of the setting
    setting_id: str  # their digest: the same for all replicates and phases
    phase: str
    replicate: int
    limit: float  # seconds per step


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run: finished, failed, or stopped for being over the time limit."""

    status: str
    steps: int = 0  # that were taken
    total: float = 0.0
    ms_per_step: float = 0.0
    cpu_seconds: float = 0.0
    trace: bytes = b""
    error: str = ""  # a line
    limit: float = 0.0  # under which it was run
    reproducible: bool = True
    machine: str = ""  # as JSON
    version: str = ""  # of bamdp


# Identity


def canonical_json(facts: Facts) -> str:
    """Return the one JSON text of these facts: keys sorted, no blanks, numbers that read back to the same bits."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(facts: Facts) -> str:
    """Return 32 hexadecimal digits of the SHA-256 hash of the canonical JSON."""
    return hashlib.sha256(canonical_json(facts).encode()).hexdigest()[:32]


def setting_facts(setting: Setting) -> dict[str, Any]:
    """Return everything that determines the runs of a setting except phase and replicate."""
    planner = setting.planner
    versions = part_versions(planner)
    return {
        "format": IDENTITY_FORMAT,
        "environment": environment_facts(setting.env),
        "planner": {
            "class": type(planner).__name__,
            "result_version": planner.result_version,
            **({"part_versions": versions} if versions else {}),
            "parameters": to_plain_json(describe_planner(planner)),
        },
        "prior": to_plain_json(setting.prior),
        "rewards": to_plain_json(setting.rewards),
        "discount": setting.discount,
        "steps": setting.steps,
        "seed": setting.seed,
        "objective": setting.objective,
    }


def run_identity(setting_id: str, phase: str, replicate: int) -> str:
    """Return the identity of a run, from the digest of its setting's facts."""
    return digest({"setting": setting_id, "phase": phase, "replicate": replicate})


def environment_seed(facts: Facts, phase: str, replicate: int) -> np.random.SeedSequence:
    """Return the environment's stream in the runs of ``results/``, which were made before :mod:`bamdp.seeding`."""
    source = {key: facts[key] for key in ("format", "environment", "seed")}
    return np.random.SeedSequence(int(digest(source), 16), spawn_key=(PHASES.index(phase), replicate))


def environment_facts(spec: Any) -> dict[str, Any]:
    """Return what determines the behaviour of an environment.

    Of one that is not text, but an object of Python, that is not known: its name decides about its random streams.
    """
    env = cached_world(spec)
    if not isinstance(spec, str):
        return {"name": "object", "id": env.name}
    if not isinstance(env, Environment):
        from bamdp.gym.world import read_gym

        # Gymnasium's rule: whatever changes gets another version in its name
        name, parameters = read_gym(spec.partition(":")[2])
        return {"name": "gym", "id": name, "parameters": to_plain_json(parameters)}
    if spec.strip().startswith("file:"):  # the content of the file counts, not its path
        content = Path(env.name.removeprefix("file:")).read_bytes()
        parameters = {key: value for key, value in env.parameters.items() if key != "horizon"}
        sha = hashlib.sha256(content).hexdigest()
        return {"name": "file", "content": sha, "parameters": to_plain_json(parameters)}
    return {"name": env.name, "parameters": to_plain_json(env.parameters)}


def to_plain_json(value: Any) -> Any:
    """Return parameters as plain JSON, in which different values stay different."""
    if isinstance(
        value, FiniteModels
    ):  # the models are determined by the environment, and so are known rewards
        return {"class": type(value).__name__, "result_version": value.result_version}
    if isinstance(value, KnownRewards):
        return {"class": type(value).__name__}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: to_plain_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {
            "class": type(value).__name__,
            "result_version": getattr(value, "result_version", 1),
            **fields,
        }
    if isinstance(value, Mapping):
        return {str(key): to_plain_json(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain_json(entry) for entry in value]
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


def units_of(setting: Setting, phase: str, replicates: range, limit: float) -> list[Unit]:
    """Return the units of these replicates of a setting."""
    facts = setting_facts(setting)
    setting_id = digest(facts)
    return [
        Unit(run_identity(setting_id, phase, r), setting, facts, setting_id, phase, r, limit)
        for r in replicates
    ]


# Traces


def encode_trace(rewards: ArrayLike, ends: ArrayLike = (), terminated: ArrayLike = ()) -> bytes:
    """Return the rewards [T] of a run as bytes, with the last steps of its episodes and which of these were ends.

    Examples
    --------
    >>> len(encode_trace(np.zeros(20_000))) < 100
    True
    >>> trace = encode_trace([0.0, 0.2, 1.0, 0.2], ends=[0, 2], terminated=[False, True])
    >>> run = decode_trace(trace)
    >>> run.rewards, run.ends, run.terminated[run.ends]
    (array([0. , 0.2, 1. , 0.2]), array([0, 2]), array([False,  True]))
    """
    array = np.ascontiguousarray(rewards, "<f8")
    distinct, indices = np.unique(array.view("<u8"), return_inverse=True)  # by their bits: -0.0 and NaN, too
    width = next(width for width in INDEX_WIDTHS if len(distinct) <= 256**width)
    if 8 * len(distinct) + width * len(array) >= 8 * len(array):
        width, distinct, coded = TRACE_RAW, distinct[:0], array.tobytes()
    else:
        coded = indices.astype(f"<u{width}").tobytes()
    last_steps = np.asarray(ends, "<u4")
    kind, episodes = width, b""
    if len(last_steps):
        kind += TRACE_EPISODES
        episodes = TRACE_COUNT.pack(len(last_steps)) + last_steps.tobytes()
        episodes += np.asarray(terminated, np.uint8).tobytes()
    head = TRACE_HEAD.pack(kind, len(distinct))
    return zlib.compress(head + episodes + distinct.astype("<u8").tobytes() + coded)


def decode_trace(data: bytes) -> Run:
    """Return a run as far as its trace tells: rewards and episodes, but not states, actions and times."""
    plain = zlib.decompress(data)
    (width, n_distinct), place = TRACE_HEAD.unpack_from(plain), TRACE_HEAD.size
    ends, terminated = np.empty(0, np.int64), np.empty(0, bool)
    if width >= TRACE_EPISODES:
        width -= TRACE_EPISODES
        (n_episodes,) = TRACE_COUNT.unpack_from(plain, place)
        place += TRACE_COUNT.size
        ends = np.frombuffer(plain, "<u4", n_episodes, place).astype(np.int64)
        terminated = np.frombuffer(plain, np.uint8, n_episodes, place + 4 * n_episodes).astype(bool)
        place += 5 * n_episodes
    if width == TRACE_RAW:
        rewards = np.frombuffer(plain, "<f8", offset=place).astype(float)
    else:
        distinct = np.frombuffer(plain, "<f8", count=n_distinct, offset=place)
        rewards = distinct[np.frombuffer(plain, f"<u{width}", offset=place + 8 * n_distinct)].astype(float)
    ended, cut = np.zeros(len(rewards), bool), np.zeros(len(rewards), bool)
    ended[ends], cut[ends] = terminated, ~terminated
    nothing = np.empty(0, np.int64)
    return Run(nothing, nothing, rewards, ended, np.empty(0), cut)
