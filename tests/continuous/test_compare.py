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


def test_the_result_prints_plots_and_becomes_a_frame(found):
    means = {name: totals.mean() for name, totals in found.totals.items()}
    assert found.best == max(means, key=means.get)
    assert "Too few common runs" in repr(found)
    assert found.to_frame().groupby("planner").total_reward.mean().to_dict() == pytest.approx(means)
    assert {"few", "drawn"} <= set(found.plot().get_legend_handles_labels()[1])
    assert list(found.rewards["few"].shape) == [2, 6]


def test_stores_and_tuning_are_for_finite_worlds(tmp_path):
    with pytest.raises(ValueError, match="not stored"):
        bamdp.compare("gym:Pendulum-v1", ["mean"], runs=1, store=tmp_path / "runs.sqlite")
    with pytest.raises(ValueError, match="continuous observations, which studies do not support"):
        bamdp.tune("gym:Pendulum-v1", "mean", {"plans": [4, 8]}, runs=2, steps=5)
