"""Runs that were never run: outcomes by decree, so that what is done with them can be checked exactly."""

from __future__ import annotations

import math

from bamdp.lab.runner import RunQueue
from bamdp.lab.units import FINISHED, RunOutcome, encode_trace


def outcome(total=1.0, *, ms=1.0, cpu=1.0, status=FINISHED, error="", steps=4, limit=0.25):
    """As if a run had come to this."""
    trace = encode_trace([total] + [0.0] * (steps - 1)) if status == FINISHED else b""
    return RunOutcome(status, steps, total, ms, cpu, trace, error, limit, True, '{"machine":"none"}', "0")


def nothing(n):
    """Nobody watches."""


def queue_of(study, store):
    return RunQueue(study, store, nothing, nothing)


def live_through(study, store, result, most=math.inf):
    """Do all of a study, or the first runs of it, with ``result(unit)`` for a run; returns the units in order."""
    done = []
    with store.claims.driving():
        queue = queue_of(study, store)
        while len(done) < most and (unit := queue.take()) is not None:
            queue.finish(unit, result(unit))
            done.append(unit)
    return done


def contents(store):
    """What must be the same whoever ran it: rewards by identity."""
    store.connection.execute("BEGIN")  # one look at all tables: others may be writing
    traces = dict(store.connection.execute("SELECT run, rewards FROM traces"))
    records = store.all_records()
    store.connection.execute("COMMIT")
    return {r.id: (r.status, r.steps, r.total, traces.get(r.id)) for r in records}


def number(unit):
    """By which a configuration of SBOSS is told."""
    return unit.setting.planner.n_models


def by_number(unit):
    """The larger, the better, with a little noise."""
    return outcome(float(number(unit)) + 0.01 * unit.replicate)
