"""A belief restored from its statistics is the same belief, and statistics that do not fit are refused."""

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


def test_statistics_that_do_not_fit_are_refused():
    prior = Mixture([SharedSupport(), Dirichlet(alpha=np.ones((S, A, S)))])
    belief = prior.belief(S, A, rewards=NEW_VALUES)
    for step in STEPS:
        belief.observe(*step)
    statistics = belief.statistics()
    for name, array in statistics.items():
        others = {key: value for key, value in statistics.items() if key != name}
        edits = [array[None], array.astype(np.float32), array[:0] if array.ndim else array[None]]
        edits += [np.full_like(array, np.nan)] if array.dtype == float else []
        for edited in edits:
            with pytest.raises(ValueError, match=f"{name}' are missing, invalid"):
                prior.belief(S, A, rewards=NEW_VALUES).restore({**others, name: edited})
        with pytest.raises(ValueError, match=name):
            prior.belief(S, A, rewards=NEW_VALUES).restore(others)


def test_rewards_that_come_with_the_prior_are_named_by_their_model():
    prior = CASES["own rewards"].prior
    belief = prior.belief(S, A)
    assert_same(belief, prior.belief(S, A, rewards=belief.reward_model))
