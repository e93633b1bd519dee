"""Ends, starts and truncation: what a belief learns of episodes under both objectives."""

import numpy as np
import pytest

from bamdp import (
    Belief,
    BetaBernoulli,
    Dirichlet,
    FiniteMDP,
    FiniteModels,
    Mixture,
    NormalGamma,
    SparseDirichlet,
)

S, A, END = 4, 2, 3
ALPHA = 0.5
PRIOR = Dirichlet(alpha=ALPHA)


def lifetime(prior=PRIOR, **options):
    return prior.belief(S, A, **{"end": END, "objective": "lifetime", **options})


def counted(belief, s, a):
    """How often each next state was counted in a row, from its predictive."""
    predictive = belief.predictive(s, a)
    total = ALPHA / predictive.min() if predictive.min() > 0.0 else np.nan
    return np.round(predictive * total - ALPHA, 9)


def test_an_end_is_terminal_for_the_episode_and_a_way_to_a_start_for_a_lifetime():
    episode = PRIOR.belief(S, A, end=END)
    assert not episode.space.terminal.any()  # until one is seen
    episode.observe(0, 1, 0.0, 2, terminated=True)
    assert episode.space.terminal.tolist() == [False, False, False, True]
    assert episode.mean().terminal[END]
    belief = lifetime()
    assert not belief.space.terminal.any()
    assert belief.space.allowed[END].tolist() == [True, False]
    belief.begin(0)
    belief.begin(2)
    belief.begin(2)
    assert np.array_equal(counted(belief, END, 0), [1, 0, 2, 0])
    model = belief.mean()
    assert np.allclose(model.dense()[END, 0], belief.predictive(END, 0))
    assert model.action_mask[END].tolist() == [True, False]
    assert model.expected_rewards[END, 0] == 0.0
    sampled = np.mean([belief.sample(seed).dense()[END, 0] for seed in range(400)], axis=0)
    assert np.allclose(sampled, belief.predictive(END, 0), atol=0.05)


@pytest.mark.parametrize("objective", ["episode", "lifetime"])
def test_a_transition_that_ends_is_learned_as_one_to_the_end_whatever_is_shown(objective):
    belief = PRIOR.belief(S, A, end=END, objective=objective)
    belief.observe(0, 1, 0.0, 0, terminated=True)  # Blackjack shows the same hand
    belief.observe(0, 1, 0.0, 2)
    belief.observe_many([0, 0], [1, 1], [0.0, 0.0], [1, 1], terminated=[True, False])
    assert np.array_equal(counted(belief, 0, 1), [0, 1, 1, 2])
    assert not belief.episodes.ends[0]
    belief.observe(0, 0, 0.0, 0)  # and 0 is as alive as ever


@pytest.mark.parametrize("objective", ["episode", "lifetime"])
def test_a_truncated_episode_leaves_nothing_but_its_steps_and_a_start(objective):
    """What is told after a truncation: the step itself, then where the next episode begins."""
    belief = PRIOR.belief(S, A, end=END, objective=objective)
    belief.begin(0)
    belief.observe(0, 1, 0.0, 2)
    ends, terminal = belief.episodes.ends.copy(), belief.space.terminal.copy()
    belief.begin(1)
    assert np.array_equal(counted(belief, 0, 1), [0, 0, 1, 0])
    assert np.array_equal(belief.predictive(2, 0), np.full(S, 0.25))  # no transition to the start
    assert np.array_equal(belief.predictive(2, 1), np.full(S, 0.25))
    assert np.array_equal(belief.episodes.ends, ends)
    assert np.array_equal(belief.space.terminal, terminal)
    assert belief.episodes.starts.tolist() == [1, 1, 0, 0]


def test_states_learned_to_be_ends_share_what_is_known_of_starts():
    belief = PRIOR.belief(S, A, objective="lifetime", rewards=NormalGamma(mu0=5.0))
    belief.begin(0)
    belief.observe(0, 0, 1.0, 1, terminated=True)
    belief.begin(0)
    belief.observe(0, 1, 1.0, 2, terminated=True)
    belief.begin(0)
    for end in (1, 2):
        assert np.array_equal(counted(belief, end, 0), [3, 0, 0, 0])
        assert belief.expected_reward(end, 0) == 0.0
        assert belief.space.allowed[end].tolist() == [True, False]
    alone = PRIOR.belief(S, A, objective="lifetime", rewards=NormalGamma(mu0=5.0), end=END)
    for a in (0, 1):
        alone.begin(0)
        alone.observe(0, a, 1.0, 3, terminated=True)
    alone.begin(0)
    assert belief.log_evidence == pytest.approx(alone.log_evidence, rel=1e-13)  # a start is counted once


def test_known_ends_and_known_rewards_go_together():
    """Rewards of a terminal state are never collected, so beginning again pays nothing."""
    for rewards in (np.ones(S), np.ones((S, A)), np.ones((S, A, S))):
        belief = PRIOR.belief(S, A, objective="lifetime", terminal=np.arange(S) == END, rewards=rewards)
        assert belief.expected_reward(END, 0) == 0.0
        assert belief.expected_reward(0, 0) == 1.0
        assert belief.mean().expected_rewards[END].tolist() == [0.0, 0.0]


def test_a_copied_and_a_saved_belief_keep_their_episodes(tmp_path):
    belief = lifetime(SparseDirichlet(), rewards=BetaBernoulli())
    belief.begin(0)
    belief.observe(0, 1, 1.0, 2, terminated=True)
    belief.save(tmp_path / "belief.npz")
    for twin in (belief.copy(), Belief.load(tmp_path / "belief.npz")):
        assert twin.episodes.objective == "lifetime"
        twin.begin(1)
        assert twin.episodes.starts.tolist() == [1, 1, 0, 0]
        assert not np.array_equal(twin.predictive(END, 0), belief.predictive(END, 0))
    assert belief.episodes.starts.tolist() == [1, 0, 0, 0]


def test_actions_that_turn_out_not_to_exist_are_taken_out():
    belief = PRIOR.belief(S, A, end=END)
    belief.allow(1, [1, 0])
    assert belief.space.allowed.tolist() == [[True, True], [True, False], [True, True], [True, True]]
    belief.allow(END, [0, 0])  # nothing is chosen there
    for mask, words in (([0, 0], "allows nothing"), ([1, 1, 1], "2 entries")):
        with pytest.raises(ValueError, match=words):
            belief.allow(0, mask)
    with pytest.raises(ValueError, match="does not exist"):
        belief.observe(1, 1, 0.0, 0)


def test_what_contradicts_itself_is_refused_and_changes_nothing():
    belief = PRIOR.belief(S, A, objective="lifetime")
    belief.begin(0)
    belief.observe(0, 0, 0.0, 1)
    belief.observe(1, 0, 0.0, 0)
    before = belief.n_observed
    for refused in (
        lambda: belief.observe(0, 0, 0.0, 1, terminated=True),
        lambda: belief.observe(2, 0, 0.0, 2, terminated=True),
        lambda: belief.observe_many([0], [0], [0.0], [1], [True]),
        lambda: belief.observe_many([2, 0], [0, 0], [0.0, 0.0], [0, 2], [False, True]),
    ):
        with pytest.raises(ValueError, match=r"where others went on.*end=\.\.\."):
            refused()
    assert belief.n_observed == before
    assert not belief.episodes.ends.any()
    belief.observe(0, 0, 0.0, 3, terminated=True)
    with pytest.raises(ValueError, match="none can begin there"):
        belief.begin(3)
    with pytest.raises(ValueError, match="nothing follows"):
        belief.observe(3, 0, 0.0, 0)


def test_models_that_say_nothing_of_a_new_beginning_are_refused():
    stay = np.repeat(np.eye(S)[:, None], A, axis=1)
    ends = FiniteModels([FiniteMDP(stay, np.zeros(S), terminal=[END])])
    with pytest.raises(ValueError, match="knows nothing that follows state 3"):
        ends.belief(S, A, objective="lifetime")
    again = FiniteModels([FiniteMDP(stay, np.zeros(S)), FiniteMDP(stay[::-1], np.zeros(S))])
    belief = again.belief(S, A, objective="lifetime", end=END)
    assert np.array_equal(belief.predictive(END, 0), [0.5, 0.0, 0.0, 0.5])
    paid = FiniteModels([FiniteMDP(stay, np.zeros(S)), FiniteMDP(stay, np.ones(S))])
    with pytest.raises(ValueError, match="give a reward model or known rewards"):
        paid.belief(S, A, objective="lifetime", end=END)


def test_wrong_names_are_refused():
    with pytest.raises(ValueError, match="did you mean 'lifetime'"):
        PRIOR.belief(S, A, objective="lifetimes")
    with pytest.raises(ValueError, match=r"end must be in 0\.\.3"):
        PRIOR.belief(S, A, end=S)


@pytest.mark.parametrize("n_ends", [1, 2, 3])
def test_one_start_is_one_piece_of_evidence_for_alternatives_however_many_ends_there_are(n_ends):
    terminal = np.arange(6) >= 6 - n_ends
    mixture = Mixture([Dirichlet(alpha=1.0), SparseDirichlet(alpha=0.2, beta=2.0)])
    belief = mixture.belief(6, 1, terminal=terminal, objective="lifetime")
    one_row = mixture.belief(6, 1)
    for start in (0, 0, 1):
        belief.begin(start)
        one_row.observe(5, 0, 0.0, start)
    assert np.allclose(belief.weights, one_row.weights)
    assert belief.log_evidence == pytest.approx(one_row.log_evidence)
    assert np.allclose(belief.predictive(6 - n_ends, 0), one_row.predictive(5, 0))


def test_an_end_that_is_found_later_takes_over_the_starts_without_their_evidence():
    mixture = Mixture([Dirichlet(alpha=1.0), SparseDirichlet(alpha=0.2, beta=2.0)])
    early, late = (mixture.belief(6, 1, objective="lifetime", terminal=np.arange(6) == 5) for _ in range(2))
    early.observe(0, 0, 0.0, 4, True)
    for belief in (early, late):
        belief.begin(0)
        belief.begin(0)
    late.observe(0, 0, 0.0, 4, True)
    assert np.allclose(early.weights, late.weights)
    assert early.log_evidence == pytest.approx(late.log_evidence)
    assert np.allclose(early.predictive(4, 0), late.predictive(4, 0))


@pytest.mark.parametrize("many", [False, True])
def test_an_end_after_which_no_start_can_follow_is_refused_and_nothing_has_changed(many):
    P = np.array([[[0.0, 0.5, 0.5]], [[0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0]]])
    belief = FiniteModels([FiniteMDP(P, np.zeros((3, 1)))]).belief(3, 1, objective="lifetime")
    belief.begin(0)
    for _ in range(2):  # refused again, not taken for known
        with pytest.raises(ValueError, match="probability 0 to going from state 1, which ends episodes"):
            belief.observe_many([0], [0], [0.0], [1], [True]) if many else belief.observe(0, 0, 0.0, 1, True)
        assert (belief.n_observed, belief.n_changes, belief.log_evidence) == (0, 0, 0.0)
        assert not belief.episodes.ends.any()
        assert not belief.episodes.acted.any()
    belief.observe(0, 0, 0.0, 1)
    assert belief.n_observed == 1
