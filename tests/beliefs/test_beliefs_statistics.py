"""A belief restored from its statistics is the same belief, and invalid statistics are refused."""

import numpy as np
import pytest
from beliefs_exact import CASES, A, S

from bamdp import Dirichlet, FiniteRewards, KnownRewards, Mixture, NormalGamma, SharedSupport, SparseDirichlet

STEPS = [
    (0, 0, 1.0, 1),
    (0, 0, 0.0, 0),
    (1, 1, 1.0, 2),
    (0, 0, 1.0, 2),
    (2, 0, 0.0, 3),
    (0, 0, 0.0, 3),
    (0, 1, 1.0, 0),
]
NEW_VALUES = FiniteRewards(max_values=3, unseen=2.0, by="next")
REWARDS = {
    "normal": NormalGamma(),
    "new values": NEW_VALUES,
    "known": KnownRewards(np.arange(S * A).reshape(S, A)),
}


def steps_of(case):
    data = []
    for step in STEPS:
        if case.evidence([*data, step]) > 0:
            data.append(step)
    return data


def assert_same(one, two):
    assert one.log_evidence == two.log_evidence
    assert one.n_observed == two.n_observed
    for s in range(S):
        for a in range(A):
            assert one.predictive(s, a).tolist() == two.predictive(s, a).tolist()
            assert one.expected_reward(s, a) == two.expected_reward(s, a)
    for seed in range(3):
        drawn, again = one.sample(seed), two.sample(seed)
        assert drawn.dense().tolist() == again.dense().tolist()
        assert drawn.expected_rewards.tolist() == again.expected_rewards.tolist()


@pytest.mark.parametrize("name", CASES)
def test_a_restored_belief_is_the_same_and_learns_the_same(name):
    belief, twin = CASES[name].belief(data := steps_of(CASES[name])), CASES[name].belief()
    twin.restore(belief.statistics())
    assert_same(belief, twin)
    for b in (belief, twin):
        b.observe_many(*zip(*data[:2]))
    assert_same(belief, twin)


@pytest.mark.parametrize("rewards", REWARDS)
@pytest.mark.parametrize("objective", ["episode", "lifetime"])
def test_rewards_and_episodes_are_restored(rewards, objective):
    def new():
        return SparseDirichlet().belief(S, A, rewards=REWARDS[rewards], objective=objective)

    belief, twin = new(), new()
    belief.begin(0)
    belief.observe(0, 1, 2.5, 1)
    belief.allow(1, [True, False])
    belief.observe(1, 0, -0.5, 3, terminated=True)
    belief.begin(2)
    twin.restore(belief.statistics())
    assert_same(belief, twin)
    assert twin.space.allowed.tolist() == belief.space.allowed.tolist()
    assert twin.space.terminal.tolist() == belief.space.terminal.tolist()
    for b in (belief, twin):
        b.begin(0)
        b.observe(2, 0, 2.5, 3, terminated=True)
    assert_same(belief, twin)


def edits(array, rng):
    """Edited copies of an array: one entry changed, rows lost or doubled, another dtype."""
    for value in (-1, 3, 10**9, 2**62):
        edited = array.copy()
        if edited.size:
            edited.flat[rng.integers(edited.size)] = bool(value) if array.dtype == bool else value
        yield edited
    if array.dtype == float:
        edited = array.copy()
        edited.flat[: edited.size // 2 + 1] = np.nan
        yield edited
    yield array[:-1] if array.ndim else array[None]
    yield array.astype(np.float32)


@pytest.mark.parametrize(
    ("prior", "rewards"),
    [
        (Mixture([SharedSupport(), SparseDirichlet()]), NormalGamma()),
        (Dirichlet(alpha=np.ones((S, A, S))), NEW_VALUES),
    ],
)
def test_edited_statistics_are_refused_or_harmless(prior, rewards):
    belief = prior.belief(S, A, rewards=rewards)
    for step in STEPS:
        belief.observe(*step)
    statistics, rng, refused = belief.statistics(), np.random.default_rng(1), 0
    for name, array in statistics.items():
        for edited in edits(array, rng):
            twin = prior.belief(S, A, rewards=rewards)
            try:
                twin.restore({**statistics, name: edited})
            except ValueError:
                refused += 1
                continue
            twin.sample(1)
            twin.mean()
            if not twin.episodes.ends[3] and twin.space.allowed[3, 1]:
                twin.observe(3, 1, 1.0, 0)
        twin = prior.belief(S, A, rewards=rewards)
        with pytest.raises(ValueError, match=name):
            twin.restore({key: value for key, value in statistics.items() if key != name})
    assert refused > 2 * len(statistics)


def test_rewards_that_come_with_the_prior_are_named_by_their_model():
    prior = CASES["own rewards"].prior
    belief = prior.belief(S, A)
    assert_same(belief, prior.belief(S, A, rewards=belief.reward_model))
