"""Pushes and pops in last-in-first-out order leave no trace, and copies are independent."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from beliefs_arrays import content, same
from beliefs_exact import CASES, A, S
from beliefs_kernels import POP, play, unwind
from hypothesis import given, settings
from hypothesis import strategies as st

from bamdp import Belief, Dirichlet, SparseDirichlet
from bamdp.beliefs.base import reserve
from bamdp.beliefs.transitions.counts import NEXT

fast = settings(max_examples=25, deadline=None, derandomize=True)
every = pytest.mark.parametrize("name", CASES)
pushes = st.tuples(st.integers(0, 2), st.integers(0, S - 1), st.integers(0, 1))
scripts = st.lists(st.one_of(pushes, pushes, st.just((POP, 0, 0))), max_size=40)


def started(name, data=((0, 0, 1.0, 1), (0, 1, 0.0, 0), (1, 0, 1.0, 1))):
    case, kept = CASES[name], []
    for step in data:
        if case.evidence([*kept, step]) > 0:
            kept.append(step)
    return case.belief(kept)


def run(belief, script):
    array = np.array(script, np.int64).reshape(-1, 3)
    probs = np.zeros(len(array))
    return play(belief.transitions, belief.rewards, array, probs), probs


@every
@given(script=scripts, fresh=st.booleans())
@fast
def test_undoing_everything_restores_every_array_bit_for_bit(name, script, fresh):
    belief = CASES[name].belief() if fresh else started(name)
    belief.reserve(len(script))
    before = content((belief.transitions, belief.rewards))
    depth, _ = run(belief, script)
    unwind(belief.transitions, belief.rewards, depth)
    same(before, content((belief.transitions, belief.rewards)))


@every
@given(script=scripts)
@fast
def test_what_is_left_after_pops_is_what_was_never_pushed(name, script):
    """A script with pops leaves the belief that observing only the surviving pushes gives."""
    belief = started(name)
    twin = belief.copy()
    belief.reserve(len(script))
    _, probs = run(belief, script)
    stack = []
    for (row, s2, r), p in zip(script, probs):
        if row == POP:
            stack[-1:] = []
        elif p > 0.0:
            stack.append((row // A, row % A, float(r), s2))
    for step in stack:
        twin.observe(*step)
    for s, a in itertools.product(range(S), range(A)):
        assert np.allclose(belief.predictive(s, a), twin.predictive(s, a), rtol=1e-13, atol=0)
        assert belief.expected_reward(s, a) == pytest.approx(twin.expected_reward(s, a), rel=1e-13)


@pytest.mark.parametrize("prior", [Dirichlet(alpha=0.5), SparseDirichlet()], ids=["dirichlet", "sparse"])
@given(
    script=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 39)), max_size=100), keep=st.integers(0, 50)
)
@fast
def test_rows_that_move_in_the_pool_move_back(prior, script, keep):
    """Many outcomes in few rows: rows are moved to the end of the pool again and again, then back."""
    belief = prior.belief(40, 1)
    for s, s2 in script[:keep]:
        belief.observe(s, 0, 0.0, s2)
    belief.reserve(len(script))
    assert_valid(belief.transitions.counts)
    before = content((belief.transitions, belief.rewards))
    depth, _ = run(belief, [(s, s2, 0) for s, s2 in script])
    assert depth == len(script)
    assert_valid(belief.transitions.counts)
    unwind(belief.transitions, belief.rewards, depth)
    same(before, content((belief.transitions, belief.rewards)))


def assert_valid(counts):
    """Rows do not overlap, lie within the used pool, and hold distinct outcomes."""
    taken = np.zeros(len(counts.pool), int)
    for start, size, capacity, total in counts.rows:
        assert size <= capacity
        taken[start : start + capacity] += 1
        assert counts.pool[start : start + size, 1].sum() == total
        assert len(set(counts.pool[start : start + size, NEXT].tolist())) == size
    assert taken.max() <= 1
    assert np.flatnonzero(taken).max(initial=-1) < counts.top[0] <= len(counts.pool)


@pytest.mark.parametrize("rows", [1, 3, 1000])
@pytest.mark.parametrize("depth", [1, 7, 300])
def test_reserved_room_is_enough_for_the_worst_pushes(rows, depth):
    """All new outcomes, in one row or in many that are just full, from any starting size."""
    for size in (0, 1, 4, 5, 8, 16, 17):
        belief = Dirichlet(alpha=1.0).belief(1000, 1)
        some = np.repeat(np.arange(rows), size)
        belief.observe_many(some, 0 * some, 0.0 * some, np.tile(np.arange(size), rows))
        belief.reserve(depth)
        script = [(i % rows, size + i // rows, 0) for i in range(depth)]
        pool = belief.transitions.counts.pool
        used, _ = run(belief, script)
        assert used == depth
        assert belief.transitions.counts.top[0] <= len(pool)
        assert_valid(belief.transitions.counts)


@pytest.mark.parametrize("depth", [1, 40])
def test_reserved_room_lasts_between_real_observations(depth):
    """Real observations use up the undo logs that were made for plans: they are made longer in time."""
    rng = np.random.default_rng(0)
    belief = Dirichlet(alpha=1.0).belief(300, 1)
    for i in range(400):
        belief.reserve(depth)
        assert belief.transitions.counts.top[0] + 4 <= len(belief.transitions.counts.pool)
        used, _ = run(belief, [(int(s), int(s2), 0) for s, s2 in rng.integers(0, (2, 300), (depth, 2))])
        assert belief.transitions.counts.top[0] <= len(belief.transitions.counts.pool)
        assert belief.transitions.counts.top[1] <= len(belief.transitions.counts.log)
        unwind(belief.transitions, belief.rewards, used)
        belief.observe(i % 2, 0, 0.0, int(rng.integers(300)))
    belief.observe_many(rng.integers(0, 2, 3000), [0] * 3000, [0.0] * 3000, rng.integers(0, 300, 3000))
    belief.reserve(depth)
    assert_valid(belief.transitions.counts)
    assert belief.n_observed == 3400


def test_room_for_deep_plans_does_not_multiply_with_wide_rows():
    belief = Dirichlet(alpha=1.0).belief(5000, 1)
    belief.observe_many([0] * 5000, [0] * 5000, [0.0] * 5000, range(5000))
    belief.reserve(10_000)
    assert belief.transitions.counts.pool.nbytes < 10_000_000


@every
def test_a_copy_is_independent_in_both_directions(name):
    belief = started(name)
    twin = belief.copy()
    before = content((belief.transitions, belief.rewards, belief.space))
    for s, a, r, s2 in itertools.product(range(S), range(A), (0.0, 1.0), range(S)):
        try:
            twin.observe(s, a, r, s2)
        except ValueError:
            continue
    twin.observe(*next(possible_steps(twin)), True)
    same(before, content((belief.transitions, belief.rewards, belief.space)))
    assert belief.n_observed < twin.n_observed
    after = content((twin.transitions, twin.rewards, twin.space))
    belief.observe(*next(possible_steps(belief)))
    same(after, content((twin.transitions, twin.rewards, twin.space)))


def possible_steps(belief):
    for s, a, r, s2 in itertools.product(range(S), range(A), (0.0, 1.0), range(S)):
        twin = belief.copy()
        try:
            twin.observe(s, a, r, s2)
        except ValueError:
            continue
        yield s, a, r, s2


@every
def test_asking_changes_nothing(name):
    belief = started(name)
    before = content((belief.transitions, belief.rewards, belief.space))
    belief.predictive(0, 0)
    belief.expected_reward(0, 0)
    belief.mean()
    belief.sample(0)
    repr(belief)
    same(before, content((belief.transitions, belief.rewards, belief.space)))


def test_weights_shared_by_transitions_and_rewards_stay_shared_in_a_copy():
    twin = started("own rewards").copy()
    twin.reserve(1000)
    assert twin.transitions.weights.log_p is twin.rewards.weights.log_p
    assert twin.transitions.weights.p is twin.rewards.weights.p
    assert twin.transitions.weights.top is not twin.rewards.weights.top


@every
def test_reserving_makes_every_part_longer_and_keeps_its_content(name):
    belief = started(name)
    before = belief.mean()
    belief.reserve(500)
    assert belief.mean() == before
    arrays = belief.arrays
    belief.reserve(10)
    assert belief.arrays is arrays  # they were long enough, so nothing is a new object for Numba to look at


def test_a_posterior_that_does_not_say_how_it_grows_is_refused():
    class Alone(NamedTuple):
        past: np.ndarray

    for posterior in (Alone(np.zeros(3)), 5):
        with pytest.raises(TypeError, match="has no parts and no undo log; register reserve for it"):
            reserve(posterior, 10)


def test_an_interrupted_batch_of_observations_leaves_no_trace(monkeypatch):
    belief = Dirichlet().belief(3, 1)
    belief.observe(0, 0, 0.0, 1)
    before = content((belief.transitions, belief.rewards))

    learn = Belief._learn

    def interrupted(self, *step):
        if self.n_observed == 2:
            raise KeyboardInterrupt
        learn(self, *step)

    monkeypatch.setattr(Belief, "_learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        belief.observe_many([0, 1], [0, 0], [0.0, 0.0], [1, 2])
    same(before, content((belief.transitions, belief.rewards)))
    assert belief.n_observed == 1
