"""Tuning: what is run, what is chosen, what is excluded, and that a choice is a function of the store."""

from __future__ import annotations

from collections import Counter

import pytest
from lab_fakes import by_number, live_through, number, record

from bamdp.envs import make_env
from bamdp.envs.ceilings import optimal_total
from bamdp.lab.results import collect_results
from bamdp.lab.runner import CellSchedule
from bamdp.lab.store import FAILED, OVER_LIMIT, Store
from bamdp.lab.study import parse_study

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
ACROSS = """
runs = 3
steps = 10
[environments.chain]
[environments.double_loop]
runs = 2
[algorithms.sboss]
n_models = [1, 2, 3]
[algorithms.sboss.at.chain]
delta = 3
[tuning]
runs = 2
across = true
"""


def schedule(study, store, cell=0):
    found = CellSchedule(study, study.cells[cell], store)
    found.replay()
    return found


def test_a_grid_runs_everything_and_the_best_mean_is_evaluated(store):
    study = parse_study(GRID)
    done = live_through(study, store, by_number)
    counts = Counter((unit.phase, number(unit)) for unit in done)
    assert counts == {**{("tune", n): 4 for n in range(1, 7)}, ("evaluate", 6): 5}
    runs = collect_results(study, store).runs
    assert [one["n_models"] for one in runs[runs.chosen].configuration] == [6] * 9


def test_what_fails_or_is_too_slow_costs_one_run_and_cannot_be_chosen(store):
    fates = {6: {"status": FAILED, "error": "ValueError: no"}, 5: {"status": OVER_LIMIT}, 4: {"ms": 251.0}}
    study = parse_study(GRID)
    done = live_through(
        study, store, lambda unit: record(unit, float(number(unit)), **fates.get(number(unit), {}))
    )
    counts = Counter(number(unit) for unit in done if unit.phase == "tune")
    assert counts == {1: 4, 2: 4, 3: 4, 4: 1, 5: 1, 6: 1}
    found = schedule(study, store)
    assert found.chosen == 2
    assert found.excluded[5] == "1 of 1 runs failed (ValueError: no)"
    assert found.excluded[3] == "251 ms/step, over the limit of 250"


def test_halving_has_fixed_numbers_of_runs_and_keeps_what_later_runs_prove_right(store):
    """9 configurations, a third kept: 2 rounds, with ⌈4/3⌉ = 2 and 4 runs each."""
    study = parse_study(HALVING)
    lucky = lambda unit: number(unit) == 1 and unit.replicate < 2
    fortune = lambda unit: record(unit, 100.0 if lucky(unit) else number(unit) - 200.0 * (number(unit) == 1))
    done = live_through(study, store, fortune)
    runs = Counter(number(unit) for unit in done if unit.phase == "tune")
    assert runs == {**dict.fromkeys(range(2, 8), 2), 1: 4, 8: 4, 9: 4}
    assert schedule(study, store).chosen == 8


def test_where_all_totals_are_equal_returns_decide(store):
    study = parse_study(GRID)
    live_through(study, store, lambda unit: record(unit, 4.0, mean_return=-abs(number(unit) - 3.0)))
    assert schedule(study, store).chosen == 2


@pytest.mark.parametrize("text", [GRID, HALVING, ACROSS])
@pytest.mark.parametrize("stop", [1, 5, 9])
def test_a_study_that_is_broken_off_comes_to_the_same_end(tmp_path, text, stop):
    study = parse_study(text)
    with Store(tmp_path / "whole.sqlite") as whole:
        everything = [unit.id for unit in live_through(study, whole, by_number)]
    assert len(set(everything)) == len(everything)
    with Store(tmp_path / "broken.sqlite") as broken:
        done = live_through(study, broken, by_number, stop) + live_through(study, broken, by_number)
    assert sorted(unit.id for unit in done) == sorted(everything)


def test_across_environments_one_configuration_is_chosen_by_the_mean_share_of_the_optimum(store):
    """Chain is best with 1, double_loop with 3; shares count, not totals, and 2 has the best mean of them."""
    study = parse_study(ACROSS)
    best = {env.label: optimal_total(make_env(env.env), 10) for env in study.environments}
    shares = {"chain": {1: 0.9, 2: 0.8, 3: 0.1}, "double_loop": {1: 0.1, 2: 0.5, 3: 0.9}}
    done = live_through(
        study,
        store,
        lambda unit: record(unit, shares[unit.setting.env][number(unit)] * best[unit.setting.env]),
    )
    counts = Counter((unit.phase, unit.setting.env, number(unit)) for unit in done)
    assert counts == {
        **{("tune", env, n): 2 for env in best for n in (1, 2, 3)},
        ("evaluate", "chain", 2): 3,
        ("evaluate", "double_loop", 2): 2,
    }
    assert [schedule(study, store, cell).chosen for cell in (0, 1)] == [1, 1]


def test_across_environments_what_is_excluded_in_one_is_excluded_in_all(store):
    study = parse_study(ACROSS)
    slow = lambda unit: record(
        unit, number(unit), ms=251.0 if (number(unit), unit.setting.env) == (3, "chain") else 1.0
    )
    live_through(study, store, slow)
    assert schedule(study, store, 1).excluded == {2: "chain: 251 ms/step, over the limit of 250"}
    assert schedule(study, store, 1).chosen == 1
