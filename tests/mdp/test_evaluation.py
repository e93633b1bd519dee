"""evaluate_policy and total_reward."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamdp.mdp import FiniteMDP, evaluate_policy, policy_iteration, total_reward, uniform_policy
from mdp_models import chain, double_loop, exact_values, grid, random_mdp, with_background


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(1, 3), st.floats(0.0, 0.99), st.booleans())
def test_values_of_a_policy_solve_its_linear_system(seed, n_states, n_actions, discount, exact):
    rng = np.random.default_rng(seed)
    model, _ = with_background(rng, n_states, n_actions, terminal=rng.random(n_states) < 0.2)
    tol = None if exact else 1e-6
    actions = rng.integers(0, n_actions, size=n_states)
    solution = evaluate_policy(model, actions, discount, tol=tol)
    truth = exact_values(model, actions, discount)
    assert np.abs(solution.values - truth).max() <= solution.error_bound + 1e-13 * np.abs(truth).max()
    assert solution.error_bound <= (1e-9 if exact else 1e-6)
    assert (policy_iteration(model, discount).values - truth).max() <= solution.loss_bound + 1e-12

    mixed = rng.dirichlet(np.ones(n_actions), size=n_states)
    p = np.einsum("sa,sat->st", mixed, model.dense())
    r = (mixed * model.expected_rewards).sum(axis=1)
    truth = np.linalg.solve(np.eye(n_states) - discount * p, r)
    solution = evaluate_policy(model, mixed, discount, tol=tol)
    assert np.abs(solution.values - truth).max() <= solution.error_bound + 1e-13 * np.abs(truth).max()


def test_the_optimal_policy_evaluates_to_the_optimum_with_no_loss():
    best = policy_iteration(grid(5), 0.95)
    again = evaluate_policy(grid(5), best.policy, 0.95)
    assert again.values == pytest.approx(best.values, abs=1e-12)
    assert again.loss_bound < 1e-9


def test_a_deterministic_policy_may_be_given_as_probabilities():
    rng = np.random.default_rng(0)
    mdp = random_mdp(rng, 7, 3)
    actions = rng.integers(0, 3, size=7)
    one = evaluate_policy(mdp, actions, 0.9).values
    assert evaluate_policy(mdp, np.eye(3)[actions], 0.9).values == pytest.approx(one, abs=1e-12)


@pytest.mark.parametrize(
    "policy, message",
    [
        ([0, 1], "policy must be whole numbers"),
        ([0, 0, 0, 0, 2], r"policy in state 4 must be an action 0\.\.1, got 2"),
        ([0, 0, 0, -1, 0], "policy in state 3 must be an action"),
        ([0.0] * 5, "policy must be whole numbers"),
        (np.full((5, 2), 0.6), "policy in state 0 must be probabilities that sum to 1"),
        (np.array([[0.5, 0.5]] * 4 + [[-0.5, 1.5]]), "policy in state 4"),
    ],
)
def test_bad_policies_are_refused(policy, message):
    with pytest.raises(ValueError, match=message):
        evaluate_policy(chain(), policy, 0.9)


def test_policies_may_not_use_masked_actions():
    mdp = FiniteMDP(chain().dense(), np.zeros(5), action_mask=[True, False])
    for policy in ([0, 0, 1, 0, 0], np.full((5, 2), 0.5)):
        with pytest.raises(ValueError, match="masked"):
            evaluate_policy(mdp, policy, 0.9)
    assert not evaluate_policy(mdp, uniform_policy(mdp), 0.9).values.any()


def brute_force(mdp, s, horizon):
    """The best expected total, by trying every action at every step of every history."""
    if horizon == 0 or mdp.terminal[s]:
        return 0.0
    p = mdp.dense()
    return max(
        mdp.expected_rewards[s, a]
        + sum(p[s, a, t] * brute_force(mdp, t, horizon - 1) for t in range(mdp.n_states))
        for a in range(mdp.n_actions)
        if mdp.action_mask[s, a]
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_optimal_total_is_that_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    mask = [[True, True], [True, False], [True, True]]
    mdp = random_mdp(rng, 3, 2, action_mask=mask, terminal=[2] if seed % 2 else None)
    for horizon, s in itertools.product(range(5), range(3)):
        assert total_reward(mdp, s, horizon) == pytest.approx(brute_force(mdp, s, horizon), abs=1e-12)


def test_totals_of_policies_follow_powers_of_their_chain():
    rng = np.random.default_rng(1)
    mdp = random_mdp(rng, 5, 2)
    start = rng.dirichlet(np.ones(5))
    mixed = rng.dirichlet(np.ones(2), size=5)
    p, r = np.einsum("sa,sat->st", mixed, mdp.dense()), (mixed * mdp.expected_rewards).sum(axis=1)
    expected = sum(start @ np.linalg.matrix_power(p, t) @ r for t in range(20))
    assert total_reward(mdp, start, 20, mixed) == pytest.approx(expected)


@pytest.mark.parametrize(
    "mdp, steps, optimum, played, uniform",
    [
        (chain(), 1000, 408.35, 407.96, 131.1),
        (chain(True), 1000, 366.58, 366.37, 131.1),
        (double_loop(), 1000, 400.0, 400.0, 158.4),
        (grid(5), 1000, 92.1, 92.1, 9.1),
        (grid(10), 2000, 86.9, 86.9, 3.2),
    ],
    ids=["chain", "chain by effect", "double loop", "grid5", "grid10"],
)
def test_totals_of_the_papers_worlds(mdp, steps, optimum, played, uniform):
    digits = 0.051 if optimum > 80 and optimum < 100 else 0.0051
    assert total_reward(mdp, 0, steps) == pytest.approx(optimum, abs=digits)
    policy = policy_iteration(mdp, 0.95).policy
    assert total_reward(mdp, 0, steps, policy) == pytest.approx(played, abs=digits)
    assert total_reward(mdp, 0, steps, "uniform") == pytest.approx(uniform, abs=0.051)


def test_bad_totals_are_refused():
    with pytest.raises(ValueError, match="horizon"):
        total_reward(chain(), 0, -1)
    with pytest.raises(ValueError, match="start must be in"):
        total_reward(chain(), 5, 3)
    with pytest.raises(ValueError, match="did you mean 'uniform'"):
        total_reward(chain(), 0, 3, "unifrom")
