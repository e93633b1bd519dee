"""What is run within each time per step: a function of what tuning tried."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
import time_study
from lab_samples import sample

from bamdp.lab.results import Results


def tuned(totals, ms, environment="chain", algorithm="bamcp#1", **parameters):
    configuration = {"prior": "sparse", "prior.alpha": 0.2, "prior.beta": 4, "discount": 0.95} | parameters
    times = np.full(len(totals), ms)
    return sample(
        totals, environment, algorithm, phase="tune", ms_per_step=times, configuration=configuration
    )


def cells_of(*samples):
    study = time_study.time_study([Results("t", samples, {})])
    return {cell.label: (dict(cell.configurations[0]), cell.runs) for cell in study.cells}


def test_each_time_has_the_best_that_keeps_to_it():
    quick = tuned([1.0] * 6, 0.05, n_simulations=10, depth=15)
    slow = tuned([5.0] * 6, 2.0, n_simulations=1000, depth="auto")
    worse = tuned([0.5] * 6, 8.0, n_simulations=3000, depth=15)
    cells = cells_of(quick, slow, worse)
    assert list(cells) == [f"bamcp-{word} in chain" for word in ("100us", "1ms", "10ms", "100ms", "limit")]
    chosen = {label.split()[0]: (one["n_simulations"], runs) for label, (one, runs) in cells.items()}
    assert chosen == {
        "bamcp-100us": (10, 20),
        "bamcp-1ms": (10, 20),
        "bamcp-10ms": (1000, 10),
        "bamcp-100ms": (20_000, 4),  # what takes 0.4 of that time
        "bamcp-limit": (50_000, 4),  # and 0.4 of 250 ms
    }
    assert cells["bamcp-10ms in chain"][0]["depth"] == "auto"
    assert cells["bamcp-10ms in chain"][0]["prior.beta"] == 4


def test_runs_of_one_configuration_are_put_together():
    first, second = tuned([1.0, 3.0], 0.2, n_simulations=10), tuned([5.0], 0.5, n_simulations=10)
    (one,) = time_study.merged([first, second, tuned([], 0.1, n_simulations=30)])
    assert one.totals.tolist() == [1.0, 3.0, 5.0]
    assert one.ms == pytest.approx(0.3)


def test_one_lucky_run_is_not_chosen_over_many_good_ones():
    noise = np.tile([-3.0, 3.0], 5)
    good, lucky = tuned(np.tile(10.0 + noise, 3), 0.5, n_simulations=10), tuned([12.0], 0.5, n_simulations=30)
    others = [tuned(8.0 + noise, 0.5, n_simulations=100 + n) for n in range(5)]
    assert cells_of(good, lucky, *others)["bamcp-1ms in chain"][0]["n_simulations"] == 10


def test_an_algorithm_without_a_budget_has_the_same_runs_in_all_longer_times():
    cells = cells_of(tuned([1.0, 2.0], 0.02, algorithm="beb", bonus=0.5))
    assert len({repr(one) for one in cells.values()}) == 1
    assert "beb-100ms in chain" in cells
    assert "beb-limit in chain" in cells


def test_examples():
    assert doctest.testmod(time_study).failed == 0
