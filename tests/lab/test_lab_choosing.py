"""Tuning: what is run, what is chosen, what is excluded, and that nothing is decided twice."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from lab_fakes import by_number, live_through, number, outcome, queue_of

from bamdp.lab.choosing import n_rounds, shrunk_means, study_units
from bamdp.lab.collect import collect_results, replay_schedule, study_status
from bamdp.lab.reading import parse_study
from bamdp.lab.runner import forget_failed
from bamdp.lab.store import RUN_VALUES, Store
from bamdp.lab.units import FAILED, OVER_LIMIT

GRID = """
environments = ["chain"]
steps = 4
runs = 5
[algorithms.sboss]
n_models = [1, 2, 3, 4, 5, 6]
[tuning]
runs = 4
"""
HALVING = GRID.replace("[1, 2, 3, 4, 5, 6]", str(list(range(1, 10)))).replace(
    "[tuning]", '[tuning]\nmethod = "halving"'
)


def test_a_grid_runs_everything_and_the_best_mean_is_evaluated(store):
    study = parse_study(GRID)
    done = live_through(study, store, by_number)
    counts = Counter((unit.phase, number(unit)) for unit in done)
    assert counts == {**{("tune", n): 4 for n in range(1, 7)}, ("evaluate", 6): 5}
    chosen = [s for s in collect_results(study, store).samples if s.chosen]
    assert [(s.phase, s.configuration["n_models"]) for s in chosen] == [("tune", 6), ("evaluate", 6)]


def test_the_choice_is_by_the_mean_and_ties_go_to_the_first(store):
    study = parse_study(GRID)
    totals = {1: 2.0, 2: 3.0, 3: 3.0, 4: 1.0, 5: 0.0, 6: 2.9}
    live_through(study, store, lambda unit: outcome(totals[number(unit)] + (-1) ** unit.replicate))
    assert replay_schedule(study, study.cells[0], store)[0].chosen == 1


def test_a_configuration_over_the_limit_costs_one_run_and_is_not_chosen(store):
    study = parse_study(GRID)
    done = live_through(study, store, lambda u: outcome(number(u), ms=251.0 if number(u) > 4 else 249.0))
    assert Counter(number(u) for u in done if u.phase == "tune") == {1: 4, 2: 4, 3: 4, 4: 4, 5: 1, 6: 1}
    samples = collect_results(study, store).samples
    assert {s.configuration["n_models"]: s.excluded for s in samples if s.excluded} == dict.fromkeys(
        (5, 6), "251 ms/step, over the limit of 250"
    )
    assert [s.configuration["n_models"] for s in samples if s.phase == "evaluate"] == [4]


def test_the_limit_is_about_the_mean_over_all_runs(store):
    study = parse_study(GRID)
    slow_later = lambda u: outcome(number(u), ms=600.0 if number(u) == 6 and u.replicate == 3 else 200.0)
    live_through(study, store, slow_later)
    schedule, _ = replay_schedule(study, study.cells[0], store)
    assert schedule.chosen == 4
    assert schedule.excluded == {5: "300 ms/step, over the limit of 250"}


def test_what_was_chosen_is_evaluated_on_slower_runs_as_well(store):
    study = parse_study("limit = 0.1\n" + GRID)
    done = live_through(study, store, by_number)
    assert {(unit.phase, unit.limit) for unit in done} == {("tune", 0.1), ("evaluate", 0.2)}
    assert {(u.phase, u.limit) for _, u in study_units(study)} == {("tune", 0.1), ("evaluate", 0.2)}
    untuned = parse_study("limit = 0.1\n" + GRID.partition("[tuning]")[0])
    assert {unit.limit for _, unit in study_units(untuned)} == {0.1}


def test_configurations_that_fail_or_are_stopped_are_not_chosen(store):
    study = parse_study(GRID)

    def result(unit):
        if number(unit) == 6:
            return outcome(99.0, status=OVER_LIMIT, error="over the limit of 0.25 s/step")
        return (
            outcome(9.0, status=FAILED, error="E: x")
            if (number(unit), unit.replicate) == (5, 2)
            else by_number(unit)
        )

    live_through(study, store, result)
    schedule, _ = replay_schedule(study, study.cells[0], store)
    assert schedule.chosen == 3
    assert schedule.excluded == {
        4: "1 of 4 runs failed (E: x)",
        5: "1 of 1 runs went over the limit (over the limit of 0.25 s/step)",
    }


def test_if_all_are_excluded_nothing_is_evaluated_and_it_is_said(store):
    study = parse_study(GRID)
    done = live_through(study, store, lambda unit: outcome(1.0, ms=1e6))
    assert {unit.phase for unit in done} == {"tune"}
    assert "every configuration is excluded" in collect_results(study, store).notes[-1]
    assert study_status(study, store)[0].chosen == "none: all excluded"


def test_if_only_those_that_came_to_the_end_are_excluded_it_is_said(store):
    study = parse_study(HALVING + "screening = 2\n")
    whole = lambda u: u.setting.steps == 4
    live_through(
        study, store, lambda u: outcome(status=FAILED, error="E") if whole(u) else outcome(1.0, steps=2)
    )
    assert "all that came to the last round are excluded" in collect_results(study, store).notes[-1]
    (cell,) = study_status(study, store)
    assert (cell.complete, cell.chosen) == (True, "none: all left excluded")


def test_a_single_configuration_is_not_tuned(store):
    study = parse_study(GRID.replace("[1, 2, 3, 4, 5, 6]", "3"))
    assert Counter(u.phase for u in live_through(study, store, by_number)) == {"evaluate": 5}
    assert collect_results(study, store).samples[0].chosen


def test_without_tuning_every_configuration_is_evaluated(store):
    study = parse_study(GRID.partition("[tuning]")[0])
    done = live_through(study, store, by_number)
    assert Counter((u.phase, number(u)) for u in done) == {("evaluate", n): 5 for n in range(1, 7)}
    assert len(collect_results(study, store).samples) == 6


def test_halving_without_a_budget_has_fixed_numbers_of_runs(store):
    """9 configurations, a third kept: 2 rounds, with ⌈4/3⌉ = 2 and 4 runs each."""
    study = parse_study(HALVING)
    done = live_through(study, store, by_number)
    runs = Counter(number(u) for u in done if u.phase == "tune")
    assert runs == {**dict.fromkeys(range(1, 7), 2), 7: 4, 8: 4, 9: 4}
    assert replay_schedule(study, study.cells[0], store)[0].chosen == 8


def test_halving_keeps_what_later_runs_prove_right(store):
    """The best of the first round is found out in the second."""
    study = parse_study(HALVING)
    fortune = lambda u: outcome(
        100.0 if number(u) == 1 and u.replicate < 2 else number(u) - 200.0 * (number(u) == 1)
    )
    live_through(study, store, fortune)
    assert replay_schedule(study, study.cells[0], store)[0].chosen == 8


def test_rounds_before_the_last_can_be_short(store):
    study = parse_study(HALVING + "screening = 2\n")
    done = live_through(study, store, by_number)
    assert Counter((u.setting.steps, number(u)) for u in done if u.phase == "tune") == {
        **{(2, n): 2 for n in range(1, 10)},
        **{(4, n): 4 for n in (7, 8, 9)},
    }
    horizons = {s.horizon for s in collect_results(study, store).select("tune")}
    assert horizons == {2, 4}


def test_a_budget_ends_rounds_before_the_next_wave_would_overdraw_its_share(store):
    """A wave of 9 runs takes 9 s; of 40 s the first round has 20: two waves. Then 22 s are left for waves of 3 s."""
    study = parse_study(HALVING.replace("runs = 4", "runs = 20") + "budget = 40\n")
    done = live_through(study, store, by_number)
    runs = Counter(number(u) for u in done if u.phase == "tune")
    assert {runs[n] for n in range(1, 7)} == {2}
    assert {runs[n] for n in (7, 8, 9)} == {2 + 22 // 3}
    assert sum(runs.values()) <= 40


def test_a_slow_configuration_cannot_eat_the_budget_of_the_others(store):
    """40 s for 9 configurations of 4 steps: twice an even share is 2.2 s a step, far below the limit of 100 s."""
    study = parse_study("limit = 100\n" + HALVING + "budget = 40\n")
    (cell,) = study.cells
    assert cell.tuning_limit == pytest.approx(2 * 40 / (9 * 4))

    def result(unit):
        assert unit.limit == (cell.tuning_limit if unit.phase == "tune" else cell.evaluation_limit)
        if number(unit) == 9:  # the best, if it were not so slow: it is stopped
            return outcome(99.0, status=OVER_LIMIT, ms=9e3, cpu=unit.limit * 4, error="stopped")
        return by_number(unit)

    done = live_through(study, store, result)
    assert Counter(number(u) for u in done)[9] == 1
    schedule, _ = replay_schedule(study, cell, store)
    assert schedule.chosen == 7
    assert schedule.excluded == {8: "1 of 1 runs went over the limit (stopped)"}


def test_quick_configurations_are_run_more_often_than_slow_ones(store):
    """36 s are 18 for the first round, 2 for each of 9: one run of a slow one (2 s), and 20 of a quick one."""
    study = parse_study(HALVING.replace("runs = 4", "runs = 20") + "budget = 36\n")

    def result(unit):
        slow = number(unit) % 2 == 0
        return outcome(float(number(unit)) + 0.01 * unit.replicate, cpu=2.0 if slow else 0.0625)

    runs = Counter(number(u) for u in live_through(study, store, result) if u.phase == "tune")
    assert {runs[n] for n in (2, 4, 6)} == {1}
    assert {runs[n] for n in (1, 3, 5, 7, 9)} == {20}
    assert runs[8] > 1  # it went on to the second round


def test_one_high_run_is_not_believed_like_many():
    rng = np.random.default_rng(0)
    steady = {n: rng.normal(n, 2.0, size=30) for n in range(4)}
    found = shrunk_means({**steady, 9: np.array([steady[3].mean() + 0.1])})
    assert max(found, key=found.get) == 3
    clear = shrunk_means({**steady, 9: np.array([30.0])})
    assert max(clear, key=clear.get) == 9
    assert shrunk_means({0: np.array([1.0]), 1: np.array([2.0])}) == {0: 1.0, 1: 2.0}


def test_with_equal_numbers_of_runs_the_order_is_that_of_the_means():
    rng = np.random.default_rng(1)
    scores = {n: rng.normal(0.1 * n, 1.0, size=5) for n in range(20)}
    found = shrunk_means(scores)
    assert sorted(found, key=found.get) == sorted(scores, key=lambda n: scores[n].mean())


def test_the_share_of_the_budget_is_of_short_runs_where_there_is_screening():
    (cell,) = parse_study(HALVING + "budget = 0.36\nscreening = 2\n").cells
    assert cell.tuning_limit == pytest.approx(2 * 0.36 / (9 * 2))
    assert (cell.horizon(short=True), cell.horizon(short=False)) == (2, 4)


def test_with_a_budget_that_is_too_small_for_anybody_nothing_is_chosen_and_it_is_said(store):
    study = parse_study(HALVING + "budget = 0.001\n")
    done = live_through(study, store, by_number)
    assert Counter(number(u) for u in done) == dict.fromkeys(range(1, 10), 1)
    assert "every configuration is excluded" in collect_results(study, store).notes[-1]


def test_halving_drops_those_over_the_limit_at_once(store):
    study = parse_study(HALVING)
    done = live_through(study, store, lambda u: outcome(number(u), ms=1e3 * (number(u) > 7)))
    assert {n: c for n, c in Counter(number(u) for u in done if u.phase == "tune").items() if n > 7} == {
        8: 1,
        9: 1,
    }
    schedule, _ = replay_schedule(study, study.cells[0], store)
    assert schedule.chosen == 6
    assert set(schedule.excluded) == {7, 8}


@pytest.mark.parametrize("stop", [1, 5, 9, 14, 20, 26, 30])
@pytest.mark.parametrize("text", [GRID, HALVING, HALVING + "budget = 30\nscreening = 3\n"])
def test_a_schedule_that_is_broken_off_anywhere_goes_on_to_the_same_end(tmp_path, text, stop):
    study = parse_study(text)
    with Store(tmp_path / "whole.sqlite") as whole:
        everything = [unit.id for unit in live_through(study, whole, by_number)]
    with Store(tmp_path / "broken.sqlite") as broken:
        done = live_through(study, broken, by_number, stop) + live_through(study, broken, by_number)
    assert sorted(unit.id for unit in done) == sorted(everything)


def test_a_cell_has_as_many_runs_as_its_place_says_or_fewer_where_it_is_slow(store):
    study = parse_study(
        "runs = 4\nsteps = 4\n[environments.chain]\n[environments.grid5]\nruns = 3\n"
        "[algorithms.random]\n[algorithms.q-learning.at.grid5]\nruns = 1\n"
    )
    live_through(study, store, lambda u: outcome())
    found = {
        (s.environment, s.algorithm): (s.runs, s.asked, s.complete)
        for s in collect_results(study, store).samples
    }
    assert found == {
        ("chain", "random"): (4, 4, True),
        ("chain", "q-learning"): (4, 4, True),
        ("grid5", "random"): (3, 3, True),
        ("grid5", "q-learning"): (1, 3, False),
    }


def test_what_was_decided_stays_decided_whatever_is_faster_now(store):
    """Decisions under a budget depend on speed: they are read, not made again."""
    study = parse_study(HALVING.replace("runs = 4", "runs = 20") + "budget = 40\n")
    live_through(study, store, by_number)
    before = [(s.configuration, s.phase, s.runs, s.chosen) for s in collect_results(study, store).samples]
    with store.transaction():
        store.connection.execute("UPDATE runs SET cpu_seconds = 0.001, total = -total WHERE phase = 'tune'")
        store.connection.execute(f"UPDATE runs SET checksum = row_checksum({RUN_VALUES})")
    assert live_through(study, store, by_number) == []
    assert [
        (s.configuration, s.phase, s.runs, s.chosen) for s in collect_results(study, store).samples
    ] == before


def test_another_question_is_decided_anew(store):
    live_through(parse_study(GRID), store, by_number)
    wider = parse_study(GRID.replace("5, 6]", "5, 6, 7]"))
    done = live_through(wider, store, by_number)
    assert {number(u) for u in done} == {7}  # the others are there
    assert replay_schedule(wider, wider.cells[0], store)[0].chosen == 6


def test_looking_at_a_study_decides_nothing(store):
    study = parse_study(GRID)
    with store.claims.driving():
        queue = queue_of(study, store)
        while (unit := queue.take()) is not None and unit.phase == "tune":
            queue.finish(unit, by_number(unit))
        store.connection.execute("DELETE FROM decisions")
    study_status(study, store)
    collect_results(study, store)
    assert store.connection.execute("SELECT count(*) FROM decisions").fetchone() == (0,)


def test_retrying_failed_runs_decides_again(store):
    study = parse_study(GRID)
    live_through(
        study, store, lambda u: outcome(status=FAILED, error="x") if number(u) == 6 else by_number(u)
    )
    assert replay_schedule(study, study.cells[0], store)[0].chosen == 4
    forget_failed(study, store)
    done = live_through(study, store, by_number)
    assert Counter((u.phase, number(u)) for u in done) == {("tune", 6): 4, ("evaluate", 6): 5}


def test_runs_that_were_stopped_are_done_again_under_a_wider_limit(store):
    tight = parse_study("limit = 0.1\n" + GRID)
    stop = lambda u: (
        outcome(status=OVER_LIMIT, error="over", limit=u.limit) if number(u) == 6 else by_number(u)
    )
    live_through(tight, store, stop)
    assert live_through(tight, store, stop) == []
    wide = parse_study("limit = 0.2\n" + GRID)
    done = live_through(wide, store, by_number)
    assert Counter((u.phase, number(u)) for u in done) == {("tune", 6): 4, ("evaluate", 6): 5}


def test_status_counts_and_tells_what_is_left(store):
    study = parse_study(GRID)
    with store.claims.driving():
        queue = queue_of(study, store)
        units = [queue.take() for _ in range(6)]
        for unit in units[:4]:
            queue.finish(unit, outcome(1.0, ms=1000.0 if unit is units[0] else 2.0))
        (cell,) = study_status(study, store)
        assert (cell.done, cell.running, cell.missing, cell.failed) == (4, 2, 5, 0)  # 5: the evaluation
        pace = (1.0 + 3 * 0.002) / 4
        assert cell.seconds == pytest.approx(pace * (2 * 4 + 5 * 4))
        assert not cell.complete
        assert "tuning 6" in cell.chosen
    live_through(study, store, by_number)
    (cell,) = study_status(study, store)
    assert cell.complete
    assert cell.chosen == "n_models=6"


def test_results_tell_what_is_missing(store):
    study = parse_study(GRID)
    with store.claims.driving():
        queue = queue_of(study, store)
        queue.finish(queue.take(), outcome())
    assert (
        "not complete, 5 or more runs are missing" in list(collect_results(study, store).waiting.values())[-1]
    )


def test_two_labels_of_the_same_thing_share_their_runs(store):
    study = parse_study(
        'environments = ["chain"]\nruns = 3\nsteps = 4\n'
        '[algorithms.a]\nplanner = "random"\n[algorithms.b]\nplanner = "random"'
    )
    assert len(live_through(study, store, lambda u: outcome())) == 3
    assert [(s.algorithm, s.runs) for s in collect_results(study, store).samples] == [("a", 3), ("b", 3)]


@pytest.mark.parametrize(("n", "keep"), [(2, 0.5), (9, 1 / 3), (48, 1 / 3), (100, 0.25), (1000, 0.1)])
def test_so_many_rounds_leave_one(n, keep):
    left = n
    for _ in range(n_rounds(n, keep)):
        left = math.ceil(left * keep)
    assert left <= 2  # rounding up may leave a second one, of which the last round chooses
