"""Solving a model again after few of its rows have changed, against solving all of it."""

from __future__ import annotations

import numpy as np
import pytest
import solve_kernels

from bamdp._kernels.changes import NONE, new_links, new_queue
from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.solve import new_solver

STATES, ACTIONS, DISCOUNT = 60, 3, 0.95
TERMINAL = np.arange(STATES) % 20 == 7


def sparse_model(rng, supports=None):
    """Rows with two or three outcomes each, at the given supports or at random ones, and no background.

    Terminal states have none, and no rewards.
    """
    if supports is None:
        supports = [
            rng.choice(STATES, size=0 if TERMINAL[row // ACTIONS] else rng.integers(2, 4), replace=False)
            for row in range(STATES * ACTIONS)
        ]
    ends = np.cumsum([len(support) for support in supports])
    begins = np.concatenate([[0], ends[:-1]])
    return Rows(
        np.stack([begins, ends], axis=1).astype(np.int64),
        np.concatenate(supports).astype(np.int32),
        np.concatenate([rng.dirichlet(np.ones(len(support))) for support in supports if len(support) > 0]),
        np.zeros(STATES * ACTIONS),
        rng.normal(size=STATES * ACTIONS) * ~TERMINAL.repeat(ACTIONS),
    ), supports


def with_changed_rows(rng, rows, supports, changed):
    """The same model with other outcomes, probabilities and rewards in some rows."""
    supports = list(supports)
    for row in changed:
        if not TERMINAL[row // ACTIONS]:
            supports[row] = rng.choice(STATES, size=3, replace=False)
    other, _ = sparse_model(rng, supports)
    for row in range(STATES * ACTIONS):
        if row not in changed:
            other.prob[slice(*other.span[row])] = rows.prob[slice(*rows.span[row])]
            other.reward[row] = rows.reward[row]
    return other


def solved(rows, space):
    solver = new_solver(STATES, len(rows.prob) + STATES * ACTIONS)
    solve_kernels.solve_rows(rows, space, DISCOUNT, 1e-11, solver)
    return solver


@pytest.mark.parametrize("n_changed", [0, 1, 4, 40])
@pytest.mark.parametrize("seed", range(3))
def test_changes_are_solved_as_the_whole_model_would_be(n_changed, seed):
    rng = np.random.default_rng([seed, n_changed])
    allowed = rng.random((STATES, ACTIONS)) < 0.8
    allowed[:, 0] = True
    space = Space(TERMINAL, allowed)
    rows, supports = sparse_model(rng)
    changed = rng.choice(STATES * ACTIONS, size=n_changed, replace=False)
    other = with_changed_rows(rng, rows, supports, changed)
    solver, whole = solved(rows, space), solved(other, space)
    before = solver.values.copy()
    links, queue = new_links(STATES, 2 * len(rows.prob)), new_queue(STATES)
    solve_kernels.link_rows(rows, ACTIONS, links)
    assert solve_kernels.solve_again(other, space, DISCOUNT, 1e-12, links, queue, changed, 10**6, solver)
    assert solver.values == pytest.approx(whole.values, abs=1e-8)
    assert np.array_equal(solver.policy, whole.policy)
    assert not queue.waits.any()
    if n_changed == 40:  # otherwise the test would show nothing
        assert np.abs(before - whole.values).max() > 0.1


def test_too_many_changes_are_given_up_with_an_empty_queue():
    rng = np.random.default_rng(5)
    space = Space(TERMINAL, np.ones((STATES, ACTIONS), bool))
    rows, supports = sparse_model(rng)
    changed = np.arange(40)
    other = with_changed_rows(rng, rows, supports, changed)
    solver = solved(rows, space)
    links, queue = new_links(STATES, 2 * len(rows.prob)), new_queue(STATES)
    solve_kernels.link_rows(rows, ACTIONS, links)
    assert not solve_kernels.solve_again(other, space, DISCOUNT, 1e-12, links, queue, changed, 30, solver)
    assert not queue.waits.any()
    assert queue.ends[1] == 0


def test_links_lead_to_all_predecessors_and_are_dropped_newest_first():
    rng = np.random.default_rng(6)
    rows, _ = sparse_model(rng)
    links = new_links(STATES, 2 * len(rows.prob))
    solve_kernels.link_rows(rows, ACTIONS, links)
    assert_predecessors(links, rows)
    number, newest = int(links.number[0]), links.newest.copy()
    more, _ = sparse_model(rng)
    solve_kernels.link_rows(more, ACTIONS, links)
    assert links.number[0] > number
    solve_kernels.drop(links, number)
    assert np.array_equal(links.newest, newest)
    assert_predecessors(links, rows)
    solve_kernels.drop(links, 0)
    assert (links.newest == NONE).all()


def assert_predecessors(links, rows):
    for target in range(STATES):
        sources, link = set(), links.newest[target]
        while link != NONE:
            sources.add(int(links.source[link]))
            link = links.older[link]
        lead_there = [row for row in range(STATES * ACTIONS) if target in rows.index[slice(*rows.span[row])]]
        assert sources == {row // ACTIONS for row in lead_there}
