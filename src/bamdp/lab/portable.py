"""A study's runs as one small file, to commit beside the study and to go on from elsewhere.

The file is text, one JSON object a line, compressed (xz): a head that says what it is, then the settings, machines and
decisions that are needed, then the runs in order of their identities, traces included. The same runs give the same
bytes. On the way in, every identity is worked out again from its facts, every total from its rewards, and the last line
holds a digest of all others, so that a damaged or edited file is refused.

A *thin* file leaves out the rewards of tuning runs step by step, which nothing is drawn from: their totals, times and
what was decided by them are there, so a study goes on from it all the same.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from bamdp.lab.collect import wanted
from bamdp.lab.identity import canonical, digest, run_identity
from bamdp.lab.protocol import Course
from bamdp.lab.results import TUNE
from bamdp.lab.store import FIELDS, Store
from bamdp.lab.study import Study
from bamdp.lab.traces import decode
from bamdp.lab.units import DONE, STATUSES

KIND, VERSION = "bamdp runs", 2
SEAL = "digest"  # of all lines before the last


@dataclass(frozen=True)
class Imported:
    """What came in."""

    new: int
    known: int  # were there already, with the same rewards
    other: int  # were there already with other rewards; those that were there were kept
    settings: frozenset[str] = frozenset()  # digests of those that the runs are of


def export_runs(study: Study, store: Store, path: str | Path, *, thin: bool = False) -> int:
    """Write all runs of a study that the store has; returns how many. ``thin``: tuning runs without their traces."""
    runs = {unit.id for cell in study.cells for part in wanted(study, cell) for unit in part.units}
    keys = [Course(study, cell, store).key for cell in study.cells]
    head = {"kind": KIND, "version": VERSION, "title": study.title, "study": study.source}
    count, sums = 0, hashlib.sha256()
    with replaced(Path(path)) as temporary, lzma.open(temporary, "wt", encoding="utf-8") as file:
        for entry in chain([head], _dump(store, sorted(runs), keys, thin)):
            count += "run" in entry
            sums.update(_line(entry).encode())
            file.write(_line(entry))
        file.write(_line({SEAL: sums.hexdigest()}))
    return count


def import_runs(store: Store, path: str | Path) -> Imported:
    """Take the runs of a file in; all of them, or none if something is wrong with it."""
    entries = list(_read(Path(path)))
    named = [
        (entry.get("setting", entry.get("machine")), entry) for entry in entries if isinstance(entry, dict)
    ]
    facts = {name: entry.get("facts") for name, entry in named if name is not None}
    if not all(_sound(entry, facts) for entry in entries):
        raise ValueError(
            f"{path}: an entry does not agree with its name or its rewards; the file is damaged or edited"
        )
    return _load(store, entries)


def _dump(store: Store, runs: list[str], cells: list[str], thin: bool) -> Iterator[dict[str, Any]]:
    """Entries of the file, those first that later ones refer to."""
    ask = store.connection.execute
    records = store.records(runs)
    for setting in sorted({record.setting for record in records.values()}):
        yield {"setting": setting, "facts": store.setting(setting)}
    places = dict(store.chosen("SELECT id, machine FROM runs WHERE id IN", runs))
    machines = dict(ask("SELECT id, facts FROM machines"))
    names = {number: digest(json.loads(machines[number])) for number in set(places.values())}
    for number in sorted(names, key=names.__getitem__):
        yield {"machine": names[number], "facts": json.loads(machines[number])}
    for cell in sorted(set(cells)):
        for number, facts in sorted(store.decisions(cell).items()):
            yield {"decision": cell, "round": number, "facts": facts}
    for run in sorted(records):
        values = asdict(records[run])
        del values["id"]
        trace = ask("SELECT rewards FROM traces WHERE run = ?", (run,)).fetchone()
        left_out = trace is None or (thin and values["phase"] == TUNE)
        yield {
            "run": run,
            "of": values.pop("setting"),
            **values,
            "on": names[places[run]],
            "rewards": None if left_out else base64.b64encode(trace[0]).decode(),
        }


def _load(store: Store, entries: list[dict[str, Any]]) -> Imported:
    machines = {entry["machine"]: canonical(entry["facts"]) for entry in entries if "machine" in entry}
    runs = [entry for entry in entries if "run" in entry]
    there = store.records(entry["run"] for entry in runs)
    new = [entry for entry in runs if entry["run"] not in there]
    with store.transaction():
        insert = store.connection.execute
        for entry in entries:
            if "setting" in entry:
                insert(
                    "INSERT OR IGNORE INTO settings VALUES (?, ?)",
                    (entry["setting"], canonical(entry["facts"])),
                )
            elif "decision" in entry:
                row = entry["decision"], entry["round"], canonical(entry["facts"])
                insert("INSERT OR IGNORE INTO decisions VALUES (?, ?, ?)", row)
        for entry in new:
            values = {**entry, "id": entry["run"], "setting": entry["of"]}
            store.insert({name: values[name] for name in FIELDS}, machines[entry["on"]])
            if entry["rewards"]:
                trace = base64.b64decode(entry["rewards"])
                insert("INSERT OR IGNORE INTO traces VALUES (?, ?)", (entry["run"], trace))
    other = sum(entry["run"] in there and there[entry["run"]].total != entry["total"] for entry in runs)
    settings = frozenset(entry["of"] for entry in runs)
    return Imported(len(new), len(runs) - len(new) - other, other, settings)


def of_study(study: Study, settings: frozenset[str]) -> int:
    """How many of these settings the study has."""
    own = {part.units[0].setting_id for cell in study.cells for part in wanted(study, cell) if part.units}
    return len(own & settings)


def _read(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with lzma.open(path, "rt", encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
    except (lzma.LZMAError, EOFError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a file of runs, or is damaged ({error}); export it again") from None
    head = lines[0] if lines and isinstance(lines[0], dict) else {}
    if head.get("kind") != KIND:
        raise ValueError(f"{path} is not a file of runs; `bamdp lab export` writes one")
    if head.get("version") != VERSION:
        raise ValueError(
            f"{path} was written by another bamdp (version {head.get('version')} of the format, this one reads "
            f"{VERSION}); upgrade, or export it again"
        )
    if not isinstance(lines[-1], dict) or lines[-1].get(SEAL) != _seal(lines[:-1]):
        raise ValueError(
            f"{path}: its last line does not agree with the others; the file is damaged or edited"
        )
    yield from lines[1:-1]


def _seal(lines: list[Any]) -> str:
    """A digest of all lines."""
    return hashlib.sha256("".join(map(_line, lines)).encode()).hexdigest()


def _sound(entry: Any, facts: Mapping[str, Any]) -> bool:
    """Whether an entry is what its name says; ``facts`` of settings and machines by their names."""
    try:
        if "run" in entry:
            return _sound_run(entry, facts)
        name = entry.get("setting", entry.get("machine"))
        return "decision" in entry if name is None else digest(entry["facts"]) == name
    except (KeyError, TypeError, AttributeError, ValueError, zlib.error):
        return False


def _sound_run(entry: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    name = run_identity(entry["of"], entry["phase"], entry["replicate"])
    complete = {"run", "of", "on", "rewards", *FIELDS} - {"id", "setting"} <= set(entry)
    if (
        not complete
        or entry["run"] != name
        or entry["of"] not in facts
        or entry["on"] not in facts
        or entry["status"] not in STATUSES
    ):
        return False
    if entry["status"] != DONE or (entry["rewards"] is None and entry["phase"] == TUNE):  # stopped, or thin
        return True
    rewards = decode(base64.b64decode(entry["rewards"]))
    return len(rewards) == entry["steps"] and float(rewards.sum()) == entry["total"]


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A file to write to that takes its place only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _line(entry: Mapping[str, Any]) -> str:
    return canonical(entry) + "\n"
