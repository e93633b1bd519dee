"""Runs that were never run: records by decree, so that what is done with them can be checked exactly."""

from __future__ import annotations

import math

import numpy as np
from pandas import DataFrame, Series

from bamdp.envs.ceilings import Ceilings
from bamdp.lab.comparisons import Group
from bamdp.lab.runner import RunQueue
from bamdp.lab.store import FINISHED, RunRecord, encode_trace
from bamdp.simulation import Run


def record(unit, total=1.0, *, ms=1.0, status=FINISHED, error="", mean_return=None):
    """A record of this run with this outcome."""
    steps = unit.setting.steps
    rewards = np.array([total] + [0.0] * (steps - 1))
    trace = encode_trace(Run(rewards, rewards, rewards, np.zeros(steps, bool), rewards))
    cpu = ms * steps / 1e3
    fixed = {
        "machine": "{}",
        "version": "0",
        "finished": "2026",
        "trace": trace if status == FINISHED else None,
    }
    name = unit.id, unit.facts, unit.phase, unit.replicate
    episodes = int(mean_return is not None)
    return RunRecord(
        *name, status, unit.limit, steps, total, ms, cpu, episodes, mean_return, error=error, **fixed
    )


def queue_of(study, store):
    return RunQueue(study, store, lambda n: None, lambda n: None)


def live_through(study, store, result, most=math.inf):
    """Do all of a study, or the first runs of it, with ``result(unit)`` for a run; returns the units in order."""
    done = []
    queue = queue_of(study, store)
    while len(done) < most and (unit := queue.take()) is not None:
        queue.finish(unit, result(unit))
        done.append(unit)
    return done


def contents(store):
    """What must be the same whoever ran it: rewards by identity."""
    rows = store.connection.execute("SELECT id, status, steps, total, trace FROM runs").fetchall()
    return {row[0]: row[1:] for row in rows}


def number(unit):
    """The parameter that tells configurations of SBOSS apart."""
    return unit.setting.planner.n_models


def by_number(unit):
    """The larger, the better, with a little noise."""
    return record(unit, float(number(unit)) + 0.01 * unit.replicate)


def group(totals, optimum=1.0, **columns):
    """The evaluation of algorithms with these totals by replicate."""
    rows = []
    for name, values in totals.items():
        for replicate, total in Series(values).items():
            rows.append(
                {
                    "environment": "chain",
                    "algorithm": name,
                    "label": name,
                    "replicate": replicate,
                    "total": total,
                    "failure": "",
                    "excluded": "",
                    "asked": 1,
                    "horizon": 1000,
                    "prior": "flat",
                    "discount": "0.95",
                    "ms_per_step": 1.0,
                    "episodes": 0.0,
                    "mean_return": np.nan,
                    "success": np.nan,
                    **columns,
                }
            )
    known = None if optimum is None else Ceilings(1.0, None, optimum, optimum, 0.0, 0.95)
    return Group("chain", DataFrame(rows), known)
