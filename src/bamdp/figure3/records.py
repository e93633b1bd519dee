"""Runs and their records: one JSON object a line, added when a run is done, so that a stopped study goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bamdp.envs import DeepSea, make_env
from bamdp.figure3.contests import CONTESTANTS, CONTESTS, Contest
from bamdp.processes import Progress, new_pool, stream
from bamdp.runs import run_one

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Record:
    """A run: whose, where, which, and the numbers of its bad episodes."""

    contest: str
    contestant: str
    replicate: int
    setting: str  # all parameters as text: a run under other parameters is another run
    bad: tuple[int, ...]
    seconds: float  # processor time of planning and learning

    @property
    def key(self) -> tuple[str, str, int, str]:
        """What makes it the same run."""
        return self.contest, self.contestant, self.replicate, self.setting


Job = tuple[str, str, int]  # contest, contestant, replicate


def setting_text(contest: str, contestant: str) -> str:
    """All parameters of a contestant in a contest."""
    s = CONTESTANTS[contestant].setting(CONTESTS[contest])
    return f"{s.env}, {s.steps} steps, {s.objective}, discount {s.discount}: {s.planner} on {s.prior}, {s.rewards}"


def run_record(job: Job) -> Record:
    """Do a run."""
    name, who, replicate = job
    contest = CONTESTS[name]
    setting = CONTESTANTS[who].setting(contest)
    env = make_env(setting.env)
    assert isinstance(env, DeepSea)
    run = run_one(setting, replicate)
    bad = np.flatnonzero(env.bad_episodes(run.states, run.actions))
    return Record(name, who, replicate, setting_text(name, who), tuple(bad.tolist()), round(run.seconds, 2))


def read_records(path: Path) -> list[Record]:
    """All records of a file, none if there is no file. A line cut off by a crash is left out."""
    records = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines() if path.exists() else (), 1):
        try:
            fields = json.loads(line)
        except json.JSONDecodeError:
            continue
        try:
            records.append(Record(**{**fields, "bad": tuple(fields["bad"])}))
        except (TypeError, KeyError):
            raise ValueError(f"line {number} of {path} is no record of a run; choose another file") from None
    return records


def collect(
    path: Path,
    contests: Sequence[str],
    contestants: Sequence[str],
    runs: int,
    jobs: int = 1,
    tell: Callable[[Record], None] = lambda record: None,
) -> list[Record]:
    """Do the runs that the file does not have, quick contestants first, and return all that were asked for."""
    wanted: list[Job] = [
        (contest, who, replicate)
        for who in CONTESTANTS
        for contest in contests
        for replicate in range(runs)
        if who in contestants and who in CONTESTS[contest].contestants
    ]
    keys = {(*job, setting_text(*job[:2])): job for job in wanted}
    done = {record.key: record for record in read_records(path) if record.key in keys}
    for record in _run_all([job for key, job in keys.items() if key not in done], jobs):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(record), separators=(",", ":")) + "\n")
        done[record.key] = record
        tell(record)
    return [done[key] for key in keys]


def _run_all(jobs: Sequence[Job], processes: int) -> Iterator[Record]:
    waiting = iter(jobs)
    with new_pool(processes) as pool, closing(stream(pool, _work, lambda: next(waiting, None))) as results:
        for _, record in results:
            if isinstance(record, Exception):
                raise record
            yield record


def _work(job: Job, tick: Progress) -> Record:
    return run_record(job)


def records_of(records: Iterable[Record], contest: str, contestant: str) -> list[Record]:
    """Those of a contestant in a contest, with its present parameters, in order."""
    setting = setting_text(contest, contestant)
    found = [r for r in records if (r.contest, r.contestant, r.setting) == (contest, contestant, setting)]
    return sorted(found, key=lambda record: record.replicate)


def counts(records: Sequence[Record], contest: Contest) -> NDArray[np.int64]:
    """Total bad episodes after each episode, [runs, episodes]."""
    bad = np.zeros((len(records), contest.episodes), np.int64)
    for row, record in zip(bad, records):
        row[list(record.bad)] = 1
    return np.cumsum(bad, axis=1)


def interval(values: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean over runs (the first axis) and the half-width of its 95% Student interval, NaN for one run.

    Examples
    --------
    >>> mean, half = interval(np.array([[1, 2], [3, 2]]))
    >>> mean, half.round(2)
    (array([2., 2.]), array([12.71,  0.  ]))
    """
    from scipy import stats

    n = len(values)
    if n < 2:
        return values.mean(axis=0), np.full(values.shape[1:], np.nan)
    quantile = stats.t.ppf(0.5 + CONFIDENCE / 2, n - 1)
    return values.mean(axis=0), quantile * values.std(axis=0, ddof=1) / np.sqrt(n)


@dataclass(frozen=True)
class Line:
    """A contestant's result in a contest."""

    contest: str
    contestant: str
    runs: int
    mean: float  # of total bad episodes
    half_width: float  # of its interval
    low: int
    high: int
    seconds: float  # processor time of a run, mean


def summary(records: Sequence[Record]) -> list[Line]:
    """The results that there are, contest by contest."""
    lines = []
    for name, contest in CONTESTS.items():
        for who in contest.contestants:
            found = records_of(records, name, who)
            if found:
                totals = np.array([len(record.bad) for record in found])
                mean, half = interval(totals)
                seconds = float(np.mean([record.seconds for record in found]))
                ends = int(totals.min()), int(totals.max())
                lines.append(Line(name, who, len(found), float(mean), float(half), *ends, seconds))
    return lines
