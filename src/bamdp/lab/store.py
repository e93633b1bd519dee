"""Units of work and their store: the identity, record and trace of a single run, and one SQLite table of records.

**Identity.** The identity of a run is a hash of the canonical JSON of everything that determines its result:
environment (including the content of its file, if any), planner with parameters and result version, prior, reward
model, discount, steps, seed, phase and replicate. It does not depend on the package version, the machine, the number
of processes or a study's labels. A result therefore stays valid until a result version is raised, and studies can
share runs. :mod:`bamdp.seeding` documents the random numbers used by a run.

**Store.** One row and one commit per run, so that killing a process loses no committed run and no run is stored twice.
In WAL mode, readers do not wait for writers. Several processes can share the file; if two of them execute the same
run, the first result is kept. Failed and stopped runs are stored too. A stopped run is replaced when it is repeated
with a wider time limit. ``PRAGMA user_version`` holds the version of the table; files of another version are rejected,
as are damaged files.

**Traces.** The rewards of all steps and the ends of episodes are stored exactly, compressed by NumPy.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from bamdp.beliefs.rewards.known import KnownRewards
from bamdp.beliefs.transitions.mixture import FiniteModels
from bamdp.envs.environment import Environment
from bamdp.registry import describe_planner, part_versions
from bamdp.runs import Setting, cached_world
from bamdp.simulation import Run

IDENTITY_FORMAT = 2  # raised when the meaning of these facts or an environment's behaviour changes
TUNE, EVALUATE = ("tune", "evaluate")
FINISHED, FAILED, OVER_LIMIT = "done", "failed", "over"

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Unit:
    """One run to be executed for a study."""

    id: str
    setting: Setting
    facts: str  # canonical JSON of everything that determines the setting's runs
    phase: str
    replicate: int
    limit: float  # seconds per step


@dataclass(frozen=True)
class RunRecord:
    """Record of a completed run: one row of the store."""

    id: str
    facts: str
    phase: str
    replicate: int
    status: str  # done, failed, or over (stopped for exceeding the time limit)
    time_limit: float  # in effect during the run, seconds per step
    steps: int = 0  # taken
    total: float = 0.0
    ms_per_step: float = 0.0
    cpu_seconds: float = 0.0
    episodes: int = 0  # completed
    mean_return: float | None = None  # over completed episodes
    success: float | None = None  # fraction of completed episodes, see bamdp.Run.success
    error: str = ""  # one line
    reproducible: bool = True
    machine: str = ""  # JSON
    version: str = ""  # bamdp version
    finished: str = ""  # time, ISO 8601
    trace: bytes | None = None


# Identity


def canonical_json(facts: Facts) -> str:
    """Return the canonical JSON of these facts: sorted keys, no whitespace, numbers that round-trip exactly."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(facts: Facts) -> str:
    """Return the first 32 hexadecimal digits of the canonical JSON's SHA-256 hash."""
    return hashlib.sha256(canonical_json(facts).encode()).hexdigest()[:32]


def setting_facts(setting: Setting) -> dict[str, Any]:
    """Return everything that determines a setting's runs, except phase and replicate."""
    planner = setting.planner
    return {
        "format": IDENTITY_FORMAT,
        "environment": environment_facts(setting.env),
        "planner": {
            "class": type(planner).__name__,
            "result_version": planner.result_version,
            "part_versions": part_versions(planner),
            "parameters": to_plain_json(describe_planner(planner)),
        },
        "prior": to_plain_json(setting.prior),
        "rewards": to_plain_json(setting.rewards),
        "discount": setting.discount,
        "steps": setting.steps,
        "seed": setting.seed,
        "objective": setting.objective,
    }


def environment_facts(spec: Any) -> dict[str, Any]:
    """Return everything that determines an environment's behaviour; Python objects are identified by name only."""
    env = cached_world(spec)
    if not isinstance(spec, str):
        return {"name": "object", "id": env.name}
    if not isinstance(env, Environment):
        from bamdp.gym.world import read_gym

        # Gymnasium's convention: changed behaviour gets a new version in the name
        name, parameters = read_gym(spec.partition(":")[2])
        return {"name": "gym", "id": name, "parameters": to_plain_json(parameters)}
    if spec.strip().startswith("file:"):  # identified by content, not path
        content = hashlib.sha256(Path(env.name.removeprefix("file:")).read_bytes()).hexdigest()
        parameters = {key: value for key, value in env.parameters.items() if key != "horizon"}
        return {"name": "file", "content": content, "parameters": to_plain_json(parameters)}
    return {"name": env.name, "parameters": to_plain_json(env.parameters)}


def to_plain_json(value: Any) -> Any:
    """Return parameters as plain JSON that preserves all differences between values."""
    version = getattr(value, "result_version", 1)
    if isinstance(value, (FiniteModels, KnownRewards)):  # determined by the environment
        return {"class": type(value).__name__, "result_version": version}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: to_plain_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"class": type(value).__name__, "result_version": version, **fields}
    if isinstance(value, Mapping):
        return {str(key): to_plain_json(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain_json(entry) for entry in value]
    if isinstance(value, np.ndarray) and value.ndim:
        data = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")).tobytes()
        content = hashlib.sha256(data).hexdigest()
        return {"array": list(value.shape), "type": value.dtype.name, "content": content}
    if isinstance(value, (np.generic, np.ndarray)):
        return value.item()
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise TypeError(f"{value!r} cannot be part of a run's identity; give it as a parameter with a name")


def units_of(setting: Setting, phase: str, replicates: range, limit: float) -> list[Unit]:
    """Return the units for these replicates of a setting."""
    facts = canonical_json(setting_facts(setting))
    ids = [digest({"setting": facts, "phase": phase, "replicate": r}) for r in replicates]
    return [Unit(id, setting, facts, phase, r, limit) for id, r in zip(ids, replicates)]


# What a run leaves


def measurements(run: Run) -> dict[str, Any]:
    """Return a run's numbers and trace, as recorded."""
    returns = run.episode_returns
    return {
        "steps": len(run.rewards),
        "total": run.total_reward,
        "ms_per_step": run.ms_per_step,
        "cpu_seconds": run.seconds,
        "episodes": len(returns),
        "mean_return": float(returns.mean()) if len(returns) else None,
        "success": run.success,
        "trace": encode_trace(run),
    }


def encode_trace(run: Run) -> bytes:
    """Return the rewards and episodes of a run as bytes.

    Examples
    --------
    >>> ended = np.array([False, True, False])
    >>> run = Run(np.arange(3), np.arange(3), np.array([0.0, 1.0, -0.0]), ended, np.zeros(3))
    >>> again = decode_trace(encode_trace(run))
    >>> again.rewards, again.ends, len(encode_trace(run)) < 1000
    (array([ 0.,  1., -0.]), array([1]), True)
    """
    data = io.BytesIO()
    cut = np.zeros(0, bool) if run.truncated is None else run.truncated
    np.savez_compressed(data, rewards=run.rewards, terminated=run.terminated, truncated=cut)
    return data.getvalue()


def decode_trace(data: bytes) -> Run:
    """Decode the rewards and episodes of a trace into a run without states, actions or times."""
    with np.load(io.BytesIO(data)) as arrays:
        rewards, terminated, cut = arrays["rewards"], arrays["terminated"], arrays["truncated"]
    nothing = np.empty(0, np.int64)
    return Run(nothing, nothing, rewards, terminated, np.empty(0), cut if len(cut) else None)


# The store

WRITER_TIMEOUT = 60.0  # seconds to wait for another writer
APPLICATION_ID = 0x62616D64  # "bamd"
SCHEMA_VERSION = 5
TYPES = {"str": "TEXT", "int": "INTEGER", "bool": "INTEGER", "float": "REAL", "bytes": "BLOB"}
COLUMNS = [f.name for f in fields(RunRecord)]
SCHEMA = f"""CREATE TABLE runs ({", ".join(f"{f.name} {TYPES[str(f.type).split()[0]]}" for f in fields(RunRecord))},
    PRIMARY KEY (id))"""
INSERT = f"""INSERT INTO runs ({", ".join(COLUMNS)}) VALUES ({", ".join("?" * len(COLUMNS))})
    ON CONFLICT (id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in COLUMNS)}
    WHERE runs.status = '{OVER_LIMIT}' AND runs.time_limit < excluded.time_limit"""


class Store:
    """Open store, usable as a context manager; a missing file is created unless ``create`` is False."""

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path)
        if not create and not self.path.exists():
            raise FileNotFoundError(2, "there is no store yet; run the study first", str(self.path))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._explained():
            self.connection = sqlite3.connect(self.path, timeout=WRITER_TIMEOUT, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self.connection.close()
                raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.connection.close()

    def records(self, ids: Iterable[str], *, traces: bool = False) -> dict[str, RunRecord]:
        """Return the stored runs among ``ids``, by identity, with traces only if requested."""
        names = COLUMNS if traces else [name for name in COLUMNS if name != "trace"]
        query = f"SELECT {', '.join(names)} FROM runs WHERE id IN (SELECT value FROM json_each(?))"
        with self._explained():
            rows = self.connection.execute(query, (json.dumps(list(ids)),)).fetchall()
        return {row[0]: RunRecord(**dict(zip(names, row))) for row in rows}

    def missing(self, units: Sequence[Unit]) -> list[Unit]:
        """Return the units that are not stored or were stopped under a tighter limit."""
        stored = self.records(unit.id for unit in units)
        return [
            unit
            for unit in units
            if (one := stored.get(unit.id)) is None
            or (one.status == OVER_LIMIT and one.time_limit < unit.limit)
        ]

    def commit(self, record: RunRecord) -> None:
        """Store a run unless it is already present."""
        with self._explained():
            self.connection.execute(INSERT, astuple(record))

    def forget_failed(self, ids: Iterable[str]) -> None:
        """Delete failed and stopped runs so that they will be repeated."""
        with self._explained():
            self.connection.executemany(
                f"DELETE FROM runs WHERE id = ? AND status != '{FINISHED}'", [(one,) for one in ids]
            )

    def __len__(self) -> int:
        return int(self.connection.execute("SELECT count(*) FROM runs").fetchone()[0])

    def _prepare(self) -> None:
        """Create the table in a new file; reject damaged files and those of another kind or version."""
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")  # two processes may create the file simultaneously
        with self.connection:
            version = execute("PRAGMA user_version").fetchone()[0]
            kind = execute("PRAGMA application_id").fetchone()[0]
            if kind == version == execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                execute(SCHEMA)
                execute(f"PRAGMA application_id = {APPLICATION_ID}")
                execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            elif kind != APPLICATION_ID:
                raise ValueError(f"{self.path} is a database of something else; choose another file")
            elif version != SCHEMA_VERSION:
                raise ValueError(
                    f"{self.path} was written by another version of bamdp (format {version}, this one has "
                    f"{SCHEMA_VERSION}); choose another file, or use that version"
                )
        self._use_write_ahead_log()
        execute("PRAGMA synchronous = NORMAL")
        wrong = [line for (line,) in execute("PRAGMA quick_check") if line != "ok"]
        if wrong:
            raise sqlite3.DatabaseError(" ".join(wrong[0].split()))

    def _use_write_ahead_log(self) -> None:
        """Switch to a write-ahead log. While another connection switches, SQLite refuses this without waiting."""
        until = time.monotonic() + WRITER_TIMEOUT
        while True:
            try:
                self.connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Convert SQLite errors into one-line messages that suggest a remedy."""
        try:
            yield
        except sqlite3.OperationalError as error:
            kept = "free some space or make it writable, and repeat the command: completed runs are kept"
            raise OSError(None, f"cannot use the store: {error}; {kept}", str(self.path)) from None
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error):
                raise ValueError(f"{self.path} is not a store of bamdp; choose another file") from None
            remedy = "move the file away and run the study again"
            raise OSError(None, f"the store is damaged ({error}); {remedy}", str(self.path)) from None
