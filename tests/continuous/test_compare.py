"""Planners compared in a system with continuous observations."""

import matplotlib
import numpy as np
import pytest

import bamdp

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def found():
    planners = {"few": "mean:plans=4", "drawn": "thompson:plans=4"}
    return bamdp.compare("gym:Pendulum-v1", planners, runs=2, steps=6, rewards="known", seed=3)


def test_each_planner_meets_the_same_runs_as_run_many(found):
    alone = bamdp.run_many("gym:Pendulum-v1", "mean:plans=4", runs=2, steps=6, rewards="known", seed=3)
    assert np.array_equal(found.totals["few"], alone.totals)
    starts = [[run.states[0] for run in batch.runs] for batch in found.batches.values()]
    assert np.array_equal(*starts)


def test_the_result_prints_plots_and_becomes_a_frame(found):
    means = {name: totals.mean() for name, totals in found.totals.items()}
    assert found.best == max(means, key=means.get)
    assert repr(found).splitlines()[1].startswith(found.best)
    assert found.to_frame().groupby("planner").total_reward.mean().to_dict() == pytest.approx(means)
    labels = [label.get_text() for label in found.plot().get_yticklabels()]
    assert sorted(labels) == ["drawn", "few"]


def test_stores_and_tuning_are_for_finite_worlds(tmp_path):
    with pytest.raises(ValueError, match="not kept in a store"):
        bamdp.compare("gym:Pendulum-v1", ["mean"], runs=1, store=tmp_path / "runs.sqlite")
    with pytest.raises(ValueError, match="continuous observations, which studies do not take"):
        bamdp.tune("gym:Pendulum-v1", "mean", {"plans": [4, 8]}, runs=2, steps=5)
