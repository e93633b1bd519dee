"""One choice for all environments together."""

from __future__ import annotations

from collections import Counter

import pytest
from lab_fakes import by_number, live_through, number, outcome

from bamdp.ceilings import optimal_total
from bamdp.envs import make_env
from bamdp.lab.collect import replay_schedule, study_status
from bamdp.lab.reading import parse_study
from bamdp.lab.store import Store

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


def test_across_environments_one_configuration_is_chosen_by_the_mean_share_of_the_optimum(store):
    """Chain is best with 1, double_loop with 3; shares count, not totals, and 2 has the best mean of them."""
    study = parse_study(ACROSS)
    best = {place.label: optimal_total(make_env(place.env), 10) for place in study.environments}
    shares = {"chain": {1: 0.9, 2: 0.8, 3: 0.1}, "double_loop": {1: 0.1, 2: 0.5, 3: 0.9}}
    done = live_through(
        study, store, lambda u: outcome(shares[u.setting.env][number(u)] * best[u.setting.env])
    )
    counts = Counter((u.phase, u.setting.env, number(u)) for u in done)
    assert counts == {
        **{("tune", env, n): 2 for env in best for n in (1, 2, 3)},
        ("evaluate", "chain", 2): 3,
        ("evaluate", "double_loop", 2): 2,
    }
    assert [replay_schedule(study, cell, store)[0].chosen for cell in study.cells] == [1, 1]
    assert len(store.connection.execute("SELECT * FROM decisions").fetchall()) == 1


def test_across_environments_whoever_is_excluded_in_one_is_excluded_in_all(store):
    study = parse_study(ACROSS)
    slow = lambda u: outcome(number(u), ms=251.0 if (number(u), u.setting.env) == (3, "chain") else 1.0)
    live_through(study, store, slow)
    schedules = [replay_schedule(study, cell, store)[0] for cell in study.cells]
    assert [schedule.chosen for schedule in schedules] == [1, 1]
    assert [schedule.excluded for schedule in schedules] == 2 * [
        {2: "chain: 251 ms/step, over the limit of 250"}
    ]


@pytest.mark.parametrize("stop", [1, 4, 9, 12])
@pytest.mark.parametrize("more", ["", 'method = "halving"\nbudget = 40\nscreening = 8\n'])
def test_a_choice_across_environments_that_is_broken_off_comes_to_the_same_end(tmp_path, stop, more):
    study = parse_study(ACROSS + more)
    with Store(tmp_path / "whole.sqlite") as whole:
        everything = [unit.id for unit in live_through(study, whole, by_number)]
    assert len(set(everything)) == len(everything)
    with Store(tmp_path / "broken.sqlite") as broken:
        done = live_through(study, broken, by_number, stop) + live_through(study, broken, by_number)
    assert sorted(unit.id for unit in done) == sorted(everything)


def test_a_status_counts_runs_of_its_own_cell_where_cells_choose_together(store):
    study = parse_study(ACROSS)
    assert [cell.missing for cell in study_status(study, store)] == [3 + 3, 3 + 2]


def test_a_run_that_is_whole_where_nothing_is_screened_is_paid_for_once(store):
    """A run costs a second, a whole one in double_loop ten; chain's whole runs are those of the rounds before."""
    study = parse_study(
        ACROSS.replace("runs = 2\n[algorithms", "screening = 8\n[algorithms").replace(
            "runs = 2\nacross", "across"
        )
        + 'method = "halving"\nkeep = 0.5\nruns = 50\nbudget = 60\n'
    )
    price = lambda unit: 10.0 if unit.setting.env == "double_loop" and unit.setting.steps == 10 else 1.0
    done = live_through(study, store, lambda u: outcome(float(number(u)), cpu=price(u)))
    tuned = sum(price(unit) for unit in done if unit.phase == "tune")
    schedule = replay_schedule(study, study.cells[0], store)[0]
    rounds = {k: facts for k, facts in store.decisions(schedule.key).items() if k >= 0}
    assert sum(facts["cost"] for facts in rounds.values()) == tuned
    assert 100.0 < tuned <= 120.0
    assert rounds[1]["replicates"].keys() == {"1", "2"}


def test_where_nothing_can_be_had_in_a_short_run_it_is_said_before_work_starts():
    with pytest.raises(ValueError, match="double_loop: its best total in 4 steps is 0, of which no share"):
        parse_study(ACROSS + 'method = "halving"\nscreening = 4\n')
