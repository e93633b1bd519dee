"""Value iteration and policy iteration against quantecon and exact linear algebra; bounds that hold."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from bamdp._kernels.rows import Rows, Space
from bamdp.mdp import FiniteMDP, evaluate_policy, policy_iteration, value_iteration
from mdp_models import chain, double_loop, exact_values, grid, oracle, random_mdp, with_background

SOLVERS = {"vi": value_iteration, "pi": policy_iteration}
every_solver = pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)


def deterministic(rng, n):
    p = np.zeros((n, 3, n))
    p[np.arange(n)[:, None], np.arange(3), rng.integers(0, n, size=(n, 3))] = 1.0
    return FiniteMDP(p, rng.normal(size=(n, 3)))


def absorbing(rng, n):
    p = rng.dirichlet(np.ones(n), size=(n, 2))
    p[n - 1] = np.eye(n)[n - 1]
    return FiniteMDP(p, rng.normal(size=n))


CASES = {
    "dense": lambda rng: random_mdp(rng, 12, 3),
    "sparse": lambda rng: random_mdp(rng, 40, 4, 0.1),
    "deterministic": lambda rng: deterministic(rng, 15),
    "absorbing": lambda rng: absorbing(rng, 8),
    "terminal": lambda rng: random_mdp(rng, 20, 3, 0.2, terminal=[0, 7]),
    "masked": lambda rng: random_mdp(
        rng, 10, 3, action_mask=[[True, s % 2 == 0, s % 3 == 0] for s in range(10)]
    ),
    "one state": lambda rng: random_mdp(rng, 1, 4),
    "one action": lambda rng: random_mdp(rng, 9, 1),
    "chain": lambda rng: chain(),
    "chain by effect": lambda rng: chain(by_effect=True),
    "double loop": lambda rng: double_loop(),
    "grid": lambda rng: grid(5),
    "no reward": lambda rng: FiniteMDP(rng.dirichlet(np.ones(6), size=(6, 2)), np.zeros(6)),
    "background": lambda rng: with_background(rng, 30, 2)[0],
}


@every_solver
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.95, 0.9999])
@pytest.mark.parametrize("case", CASES)
def test_solvers_agree_with_quantecon_and_prove_their_error(case, discount, solve):
    mdp = CASES[case](np.random.default_rng(len(case)))
    solution = solve(mdp, discount)
    _, values = oracle(mdp, discount)
    slack = 1e-11 * (1.0 + np.abs(values).max()) / (1.0 - discount)  # the oracle's own rounding
    assert np.abs(solution.values - values).max() <= solution.error_bound + 1e-3 * slack
    assert solution.error_bound <= 1e-8 + slack
    assert np.all(mdp.action_mask[np.arange(mdp.n_states), solution.policy] | mdp.terminal)
    achieved = exact_values(mdp, solution.policy, discount)
    assert (values - achieved).max() <= solution.loss_bound + 1e-3 * slack
    assert solution.residual <= 1e-8
    assert not solution.values[mdp.terminal].any()
    assert not solution.policy[mdp.terminal].any()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(1, 4), st.sampled_from([0.3, 0.9, 0.99]))
def test_background_rows_are_solved_as_their_dense_equivalent(seed, n_states, n_actions, discount):
    rng = np.random.default_rng(seed)
    terminal = rng.random(n_states) < 0.2
    mask = rng.random((n_states, n_actions)) < 0.7
    mask[:, 0] |= ~mask.any(axis=1)
    model, written = with_background(rng, n_states, n_actions, terminal=terminal, mask=mask)
    best = policy_iteration(written, discount)
    for solve in SOLVERS.values():
        np.testing.assert_allclose(solve(model, discount).values, best.values, atol=2e-8)
    np.testing.assert_array_equal(policy_iteration(model, discount).policy, best.policy)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 0.99), st.sampled_from([1e-1, 1e-4, 1e-8]), st.booleans())
def test_bounds_hold_at_every_tolerance(seed, discount, tol, ends):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6, 2, 0.5, terminal=[5] if ends else None)
    initial = rng.normal(scale=10.0, size=6)
    truth = policy_iteration(mdp, discount).values
    solution = value_iteration(mdp, discount, tol=tol, initial=initial)
    assert np.abs(solution.values - truth).max() <= solution.error_bound <= tol + 1e-10
    loss = truth - exact_values(mdp, solution.policy, discount)
    assert loss.max() <= solution.loss_bound
    assert solution.loss_bound <= 2.0 * tol + 1e-9


@every_solver
def test_ties_go_to_the_lowest_action(solve):
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(5), size=5)
    copies = FiniteMDP(np.repeat(p[:, None], 4, axis=1), rng.normal(size=5))
    assert not solve(copies, 0.95).policy.any()
    noise = FiniteMDP(copies.dense(), copies.expected_rewards + np.array([0.0, 1e-15, 0.0, 1e-15]))
    assert not solve(noise, 0.95).policy.any()
    better = FiniteMDP(copies.dense(), copies.expected_rewards + np.array([0.0, 0.0, 1e-6, 1e-6]))
    assert (solve(better, 0.95).policy == 2).all()


@every_solver
def test_a_masked_action_is_never_chosen_however_good(solve):
    p = np.ones((2, 2, 2)) / 2.0
    mdp = FiniteMDP(p, [[0.0, 100.0], [1.0, 0.0]], action_mask=[[True, False], [True, True]])
    assert solve(mdp, 0.9).policy[0] == 0
    assert solve(mdp, 0.9).q_values[0, 1] == -np.inf


@every_solver
def test_no_reward_is_collected_in_a_terminal_state(solve):
    mdp = FiniteMDP([[[0, 1.0]], [[0, 1.0]]], rewards=[2.0, 1000.0], terminal=[1])
    assert solve(mdp, 0.9).values == pytest.approx([2.0, 0.0], abs=1e-8)
    everything = FiniteMDP([[[0, 1.0]], [[0, 1.0]]], rewards=[2.0, 1000.0], terminal=[0, 1])
    assert not solve(everything, 0.9).values.any()


def test_values_of_the_papers_worlds_at_the_start():
    for mdp, value in ((chain(), 6.6724), (chain(True), 6.1379), (double_loop(), 7.2010), (grid(5), 1.4386)):
        assert policy_iteration(mdp, 0.95).values[0] == pytest.approx(value, abs=5e-5)
    assert value_iteration(grid(10), 0.95).values[0] == pytest.approx(0.4788, abs=5e-5)


@pytest.mark.parametrize("n_states", [250, 600, 2500])
def test_dense_direct_and_iterative_evaluation_agree(n_states):
    rng = np.random.default_rng(n_states)
    if n_states < 1000:
        model, _ = with_background(rng, n_states, 2, entries=4)
    else:
        pick = rng.integers(0, n_states, size=6 * n_states)
        entries = (np.full(6 * n_states, 1 / 3), (np.repeat(np.arange(2 * n_states), 3), pick))
        model = FiniteMDP(
            sp.coo_array(entries, shape=(2 * n_states, n_states)), rng.normal(size=(n_states, 2))
        )
    for discount in (0.9, 0.999):
        exact = policy_iteration(model, discount)
        swept = value_iteration(model, discount, tol=1e-9)
        assert np.abs(exact.values - swept.values).max() <= exact.error_bound + swept.error_bound
        assert exact.error_bound < 1e-7
        assert evaluate_policy(model, exact.policy, discount).values == pytest.approx(exact.values, abs=1e-7)


def large_mean_model(rng, n_states, n_actions):
    n = n_states * n_actions
    seen = (rng.random(n) < 0.1).astype(np.int64)
    ends = np.cumsum(seen)
    rows = Rows(
        np.stack([ends - seen, ends], axis=1),
        rng.integers(0, n_states, size=ends[-1]).astype(np.int32),
        np.full(ends[-1], 0.75),
        1.0 - 0.75 * seen,
        rng.random(n),
    )
    return FiniteMDP.from_rows(rows, Space(np.zeros(n_states, bool), np.ones((n_states, n_actions), bool)))


def test_a_quarter_of_a_million_states_with_background_are_solved():
    rng = np.random.default_rng(0)
    model = large_mean_model(rng, 250_000, 4)
    one, two = value_iteration(model, 0.95, tol=1e-6), policy_iteration(model, 0.95)
    assert one.error_bound <= 1e-6
    assert two.error_bound <= 1e-9
    assert np.abs(one.values - two.values).max() <= 2e-6


def test_rows_that_almost_sum_to_one_widen_the_bound():
    mdp = FiniteMDP([[[1.0 - 9e-9]]], [1.0])
    solution = value_iteration(mdp, 0.9999)
    assert abs(solution.values[0] - 1.0 / (1.0 - 0.9999)) <= 1e-3 * solution.values[0]
    assert abs(solution.values[0] - 1.0 / (1.0 - 0.9999 * (1.0 - 9e-9))) <= solution.error_bound


def test_warm_start_at_the_answer_needs_one_iteration():
    mdp = grid(5)
    best = policy_iteration(mdp, 0.95)
    assert value_iteration(mdp, 0.95, initial=best.values).iterations == 1


def test_q_values_are_one_backup_of_the_values():
    mdp = chain()
    solution = policy_iteration(mdp, 0.9)
    q = mdp.expected_rewards + 0.9 * mdp.dense() @ solution.values
    np.testing.assert_allclose(solution.q_values, q)
    np.testing.assert_allclose(q.max(axis=1), solution.values)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"discount": 1.0}, r"discount must be in \[0, 1\)"),
        ({"discount": -0.1}, "discount"),
        ({"tol": 0.0}, "tol must be"),
        ({"initial": [1.0]}, "initial must be finite values"),
        ({"initial": [np.nan] * 5}, "initial must be finite values"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        value_iteration(chain(), **{"discount": 0.9, **options})


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match="expected a FiniteMDP, got ndarray"):
        value_iteration(np.zeros((2, 2)), 0.9)
