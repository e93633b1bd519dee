"""Parts of the planners' solver that its results do not show one by one."""

from __future__ import annotations

import numpy as np
import pytest
import solve_kernels

from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.solve import new_solver


def random_rows(rng, n_states, n_actions):
    """Rows with random numbers of entries, in random order, and a background."""
    sizes = rng.integers(1, n_states + 1, size=n_states * n_actions)
    ends = np.cumsum(sizes)
    index = np.concatenate([rng.permutation(n_states)[:k] for k in sizes]).astype(np.int32)
    background = rng.uniform(0.0, 0.5, size=len(sizes)) * (rng.random(len(sizes)) < 0.5)
    prob = np.concatenate([(1.0 - b) * rng.dirichlet(np.ones(k)) for b, k in zip(background, sizes)])
    span = np.stack([ends - sizes, ends], axis=1).astype(np.int64)
    return Rows(span, index, prob, background, rng.normal(size=len(sizes)))


def dense(rows, row, n_states):
    p = np.full(n_states, rows.background[row] / n_states)
    begin, end = rows.span[row]
    np.add.at(p, rows.index[begin:end], rows.prob[begin:end])
    return p


@pytest.mark.parametrize("n_states", [1, 2, 3, 4, 5, 8, 13, 24, 25])
def test_elimination_evaluates_a_policy_exactly(n_states):
    rng = np.random.default_rng(n_states)
    n_actions, discount = 3, 0.97
    rows = random_rows(rng, n_states, n_actions)
    space = Space(np.zeros(n_states, bool), np.ones((n_states, n_actions), bool))
    solver = new_solver(n_states, len(rows.prob))
    solver.policy[:] = rng.integers(n_actions, size=n_states)
    solver.matrix[:] = np.nan
    solve_kernels.evaluate_directly(rows, space, discount, solver)
    chosen = np.arange(n_states) * n_actions + solver.policy
    P = np.array([dense(rows, row, n_states) for row in chosen])
    exact = np.linalg.solve(np.eye(n_states) - discount * P, rows.reward[chosen])
    assert solver.values == pytest.approx(exact, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("shift", [0.0, 1e6, 1e12])
def test_rounding_of_large_values_does_not_keep_the_solver_busy(shift):
    """A tolerance of 1e-4 cannot be reached with values of 2e13; a constant changes no policy where nothing ends."""
    rng = np.random.default_rng(3)
    n_states, n_actions = 60, 3
    rows = random_rows(rng, n_states, n_actions)
    space = Space(np.zeros(n_states, bool), np.ones((n_states, n_actions), bool))
    solvers = [new_solver(n_states, len(rows.prob)) for _ in range(2)]
    solve_kernels.solve_rows(rows, space, 0.95, 1e-4, solvers[0])
    shifted = rows._replace(reward=shift + rows.reward)
    rounds, spread = solve_kernels.solve_rows(shifted, space, 0.95, 1e-4, solvers[1])
    assert rounds < 100
    assert spread <= max(1e-4 * np.ptp(rows.reward), 1e-11 * shift)
    if shift < 1e12:
        assert np.array_equal(solvers[0].policy, solvers[1].policy)


def test_the_tolerance_is_in_units_of_the_range_of_rewards():
    rng = np.random.default_rng(4)
    rows = random_rows(rng, 60, 3)
    space = Space(np.zeros(60, bool), np.ones((60, 3), bool))
    found = []
    for scale in (1.0, 2.0**40):
        solver = new_solver(60, len(rows.prob))
        scaled = rows._replace(reward=scale * rows.reward)
        rounds, spread = solve_kernels.solve_rows(scaled, space, 0.95, 1e-4, solver)
        assert spread <= 1e-4 * scale * np.ptp(rows.reward)
        found.append((rounds, solver.policy.tolist()))
    assert found[0] == found[1]
