"""Who gets what next: runs that take their process with them, and runs that cells with other limits share."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from lab_fakes import live_through, number, outcome, queue_of

from bamdp.lab.collect import replay_schedule
from bamdp.lab.reading import parse_study
from bamdp.lab.store import Store
from bamdp.lab.units import FAILED, OVER_LIMIT
from bamdp.processes import WorkerDied

STUDY = parse_study('environments = ["chain"]\nalgorithms = ["random", "q-learning"]\nruns = 3\nsteps = 4')


def test_a_run_whose_process_dies_again_and_again_is_recorded_as_failed(tmp_path):
    with Store(tmp_path / "s.sqlite") as store, store.claims.driving():
        queue = queue_of(STUDY, store)
        deaths = 0
        while (unit := queue.take()) is not None:
            bad = unit.replicate == 1 and unit.setting.planner.__class__.__name__ == "Random"
            deaths += bad
            queue.finish(unit, WorkerDied(begun=True) if bad else outcome())
        assert deaths == 3
        (failed,) = [record for record in store.all_records() if record.status == FAILED]
        assert "died 3 times" in failed.error


def test_a_death_is_not_held_against_those_that_were_there_by_chance(tmp_path):
    """Two at a time; whenever the bad one is among them, both are lost."""
    with Store(tmp_path / "s.sqlite") as store, store.claims.driving():
        queue = queue_of(STUDY, store)
        bad = lambda unit: unit.replicate == 1 and unit.setting.planner.__class__.__name__ == "Random"
        tried = Counter()
        while at_hand := [unit for unit in (queue.take(), queue.take()) if unit is not None]:
            tried.update(unit.id for unit in at_hand)
            died = any(bad(unit) for unit in at_hand)
            for unit in at_hand:
                queue.finish(unit, WorkerDied(begun=True) if died else outcome())
        (failed,) = [record for record in store.all_records() if record.status == FAILED]
        assert "died 3 times" in failed.error
        ((facts,),) = store.select("SELECT facts FROM settings WHERE id = ?", [failed.setting])
        assert {json.loads(facts)["planner"]["class"], failed.replicate} == {"Random", 1}
        assert sorted(tried.values())[-2:] == [2, 4]  # the neighbour once more, the bad one three times alone
        assert len(store.all_records()) == len(tried)


def test_a_run_that_was_only_waiting_when_a_process_died_has_lost_nothing(tmp_path):
    with Store(tmp_path / "s.sqlite") as store, store.claims.driving():
        queue = queue_of(STUDY, store)
        for _ in range(10):
            queue.finish(queue.take(), WorkerDied(begun=False))
        while (unit := queue.take()) is not None:
            queue.finish(unit, outcome())
        assert {record.status for record in store.all_records()} == {"done"}


SHARED = """
runs = 2
steps = 4
[environments.strict]
env = "chain"
limit = 0.01
[environments.loose]
env = "chain"
[algorithms.sboss]
n_models = [1, 2, 3]
[tuning]
runs = 2
"""


def slow_ones_stop(unit):
    """100 ms a step with three models."""
    slow = number(unit) == 3
    if slow and unit.limit < 0.1:
        return outcome(status=OVER_LIMIT, error="over", limit=unit.limit)
    return outcome(float(number(unit)), ms=100.0 if slow else 1.0, limit=unit.limit)


@pytest.mark.parametrize("first", ["strict", "loose", "both"])
def test_a_run_that_a_tight_limit_has_stopped_is_done_again_for_a_wide_one(store, first):
    """Two labels of one environment share their runs, but not the limit; the order of their work does not matter."""
    study = parse_study(SHARED)
    if first != "both":
        live_through(study.only([first], None), store, slow_ones_stop)
    live_through(study, store, slow_ones_stop)
    assert [replay_schedule(study, cell, store)[0].chosen for cell in study.cells] == [1, 2]


def test_a_run_at_hand_under_a_tight_limit_is_done_again_for_one_who_joins_later(store):
    study = parse_study(SHARED.replace("[algorithms.sboss]", "[algorithms.sboss]\ndelta = 5"))
    with store.claims.driving():
        queue = queue_of(study, store)
        queue.needed = {run: replace(unit, limit=0.01) for run, unit in queue.needed.items()}
        unit = next(unit for unit in iter(queue.take, None) if number(unit) == 3)
        queue.needed[unit.id] = replace(unit, limit=0.25)
        queue.finish(unit, slow_ones_stop(unit))
        assert unit.id not in store.records([unit.id])
        again = queue.take()
        assert (again.id, again.limit) == (unit.id, 0.25)
