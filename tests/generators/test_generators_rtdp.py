"""RTDP: converges from above on what it visits, touches nothing else, repeats under a seed."""

import numpy as np
import pytest

from bamdp.generators.known import rtdp, upper_bound
from bamdp.mdp import FiniteMDP, evaluate_policy, policy_iteration
from mdp_models import chain, double_loop, grid, random_mdp, with_background


@pytest.mark.parametrize("mdp", [chain(), double_loop(), grid(4)], ids=["chain", "double loop", "grid"])
def test_many_trials_reach_the_optimum_at_the_start(mdp):
    best = policy_iteration(mdp, 0.9)
    solution = rtdp(mdp, 0.9, start=0, depth=50, n_trials=2000, seed=0)
    assert solution.values[0] == pytest.approx(best.values[0], abs=1e-6)
    assert evaluate_policy(mdp, solution.policy, 0.9).values[0] == pytest.approx(best.values[0], abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_values_stay_above_the_optimum_and_fall_with_trials(seed):
    rng = np.random.default_rng(seed)
    terminal = np.arange(8) == 7 if seed % 2 else None
    model, _ = with_background(rng, 8, 2, terminal=terminal)
    best = policy_iteration(model, 0.9)
    few = rtdp(model, 0.9, start=0, depth=10, n_trials=3, seed=seed)
    many = rtdp(model, 0.9, start=0, depth=10, n_trials=300, seed=seed)
    assert (few.values >= many.values - 1e-9).all()
    assert (many.values >= best.values - 1e-9).all()
    for solution in (few, many):
        assert np.abs(solution.values - best.values).max() <= solution.error_bound
        loss = best.values - evaluate_policy(model, solution.policy, 0.9).values
        assert loss.max() <= solution.loss_bound


@pytest.mark.parametrize("seed", range(5))
def test_the_default_start_is_an_upper_bound(seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6, 2, terminal=[0] if seed % 2 else None)
    costs = FiniteMDP(mdp.dense(), mdp.expected_rewards - 10.0, terminal=mdp.terminal)
    for model in (mdp, costs):
        live = ~model.terminal
        assert (policy_iteration(model, 0.9).values[live] <= upper_bound(model, 0.9) + 1e-12).all()


def test_states_out_of_reach_are_not_touched():
    mdp = double_loop()
    solution = rtdp(mdp, 0.9, start=0, depth=3, n_trials=20, initial=50.0)
    assert (solution.values[[4, 8]] == 50.0).all()
    assert solution.values[0] < 50.0


def test_a_terminal_state_ends_the_trial():
    mdp = FiniteMDP([[[0, 1.0]], [[1.0, 0]]], rewards=[1.0, 5.0], terminal=[1])
    assert rtdp(mdp, 0.9, start=0, depth=10, n_trials=1).values == pytest.approx([1.0, 0.0])
    assert not rtdp(mdp, 0.9, start=1, depth=10, n_trials=1).values[1]


def test_same_seed_same_values_bit_for_bit():
    model, _ = with_background(np.random.default_rng(0), 20, 3)
    runs = [rtdp(model, 0.95, start=3, depth=12, n_trials=10, seed=s).values for s in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).any()


def test_tolerance_stops_the_trials_early():
    mdp = double_loop()
    solution = rtdp(mdp, 0.9, start=0, depth=30, n_trials=10_000, tol=1e-9)
    assert solution.iterations < 10_000
    assert solution.values[0] == pytest.approx(policy_iteration(mdp, 0.9).values[0], abs=1e-6)


@pytest.mark.parametrize("option", ["start", "depth", "n_trials"])
def test_bad_options_are_refused(option):
    options = {"start": 0, "depth": 5, "n_trials": 5, option: -1}
    with pytest.raises(ValueError, match=option):
        rtdp(chain(), 0.9, **options)
