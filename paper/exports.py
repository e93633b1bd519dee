"""Exported study runs (results/PAPER/STUDY.runs.xz), as recorded by the version of bamdp that ran them.

Each file is compressed text with one JSON object per line: settings, machines and tuning decisions, then the runs. The
accompanying index file lists the environment, algorithm and configuration of each setting, the tuned choices, the
reference values and the seeds.

A trace is zlib-compressed, little-endian data. It begins with one byte, the number of bytes per index (0 means that
rewards are stored directly; 128 is added if episodes were completed), and the number of distinct rewards as uint32. If
there are episodes, their number follows as uint32, then the last step of each as uint32, then one byte for each (1:
terminated, 0: truncated). The distinct rewards as float64 and the index of each step's reward come last.
"""

from __future__ import annotations

import base64
import json
import lzma
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame

from bamdp.envs.ceilings import Ceilings
from bamdp.lab.results import Results, new_runs_frame
from bamdp.lab.space import prior_spec
from bamdp.lab.store import FINISHED, canonical_json

FILE_ENDING, INDEX_ENDING = ".runs.xz", ".index.xz"
TRACE_RAW, TRACE_EPISODES = 0, 128
TRACE_HEAD, TRACE_COUNT = struct.Struct("<BI"), struct.Struct("<I")


@dataclass(frozen=True, eq=False)
class Export(Results):
    """Results of an exported study; ``head`` is the first line of its index."""

    head: Mapping[str, Any] = field(default_factory=dict)

    def stream(self, environment: str, replicate: int) -> np.random.SeedSequence:
        """Return the random stream of an environment in one evaluation run."""
        key = int(self.head["environment_streams"][environment], 16)
        return np.random.SeedSequence(key, spawn_key=(1, replicate))


def read_export(path: str | Path, study: str | None = None) -> Export:
    """Return the runs in a file, labelled using the index file next to it.

    A file can contain runs of several studies. ``study`` selects one of them; by default, it is taken from the file
    name.
    """
    path = Path(path)
    name = study or path.name.removesuffix(FILE_ENDING)
    head, *samples = _json_lines(path.with_name(name.rpartition("/")[2] + INDEX_ENDING))
    lines = _json_lines(path)
    machines = {line["machine"]: canonical_json(line["facts"]) for line in lines if "machine" in line}
    runs = {(line["of"], line["phase"], line["replicate"]): line for line in lines if "run" in line}
    frame = new_runs_frame(
        [
            {**sample, **_exported(runs[key], sample), "machine": machines[runs[key]["on"]]}
            for sample in samples
            for replicate in range(*sample["replicates"])
            if (key := (sample["setting"], sample["phase"], replicate)) in runs
        ]
    )
    known = {label: Ceilings(**values) for label, values in head["ceilings"].items()}
    return Export(head["title"], frame, known, notes=tuple(head["notes"]), head=head)


def _exported(line: Mapping[str, Any], sample: Mapping[str, Any]) -> dict[str, Any]:
    configuration = sample["configuration"]
    trace = None if line["rewards"] is None else base64.b64decode(line["rewards"])
    return {
        **line,
        "total": line["total"] if line["status"] == FINISHED else np.nan,
        "failure": line["error"],
        "prior": str(prior_spec(configuration)) if "prior" in configuration else "–",
        "discount": str(configuration.get("discount", "–")),
        "trace": trace,
    }


def _json_lines(path: Path) -> list[dict[str, Any]]:
    try:
        with lzma.open(path, "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except (lzma.LZMAError, EOFError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a file of runs, or is damaged ({error})") from None


def rewards(runs: DataFrame) -> NDArray[np.float64]:
    """Return the rewards [R, T] of these runs, whose traces must have equal lengths."""
    return np.array([decode_trace(trace) for trace in runs.trace])


def decode_trace(data: bytes) -> NDArray[np.float64]:
    """Return the rewards [T] of a trace."""
    plain = zlib.decompress(data)
    (width, n_distinct), place = TRACE_HEAD.unpack_from(plain), TRACE_HEAD.size
    if width >= TRACE_EPISODES:
        width -= TRACE_EPISODES
        (n_episodes,) = TRACE_COUNT.unpack_from(plain, place)
        place += TRACE_COUNT.size + 5 * n_episodes
    if width == TRACE_RAW:
        return np.frombuffer(plain, "<f8", offset=place).astype(float)
    distinct = np.frombuffer(plain, "<f8", count=n_distinct, offset=place)
    return distinct[np.frombuffer(plain, f"<u{width}", offset=place + 8 * n_distinct)].astype(float)
