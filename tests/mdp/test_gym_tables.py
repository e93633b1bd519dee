"""Gym tables P[s][a] = [(probability, next state, reward, done)]."""

import numpy as np
import pytest

from bamdp.mdp import FiniteMDP, build, policy_iteration


def lake():
    """Two states, a hole (2) and a goal (3); both loop on themselves with done, as Gym writes them."""
    loop = {s: {a: [(1.0, s, 0.0, True)] for a in range(2)} for s in (2, 3)}
    return {
        0: {0: [(1.0, 0, 0.0, False)], 1: [(0.8, 1, 0.0, False), (0.2, 2, 0.0, True)]},
        1: {
            0: [(1.0, 0, 0.0, False)],
            1: [(0.5, 3, 1.0, True), (0.25, 1, 0.0, False), (0.25, 1, 0.0, False)],
        },
        **loop,
    }


def test_states_entered_only_with_done_are_terminal():
    mdp = FiniteMDP(lake())
    np.testing.assert_array_equal(mdp.terminal, [False, False, True, True])
    assert mdp.n_states == 4
    assert mdp.state_labels is None
    assert mdp.row(2, 0)[0].size == 0


def test_outcomes_with_one_next_state_are_merged():
    states, probs = FiniteMDP(lake()).row(1, 1)
    np.testing.assert_array_equal(states, [1, 3])
    np.testing.assert_array_equal(probs, [0.5, 0.5])


def test_rewards_that_depend_on_the_next_state_are_kept_by_next_state():
    mdp = FiniteMDP(lake())
    assert mdp.rewards.shape == (4, 2, 4)
    assert mdp.rewards[1, 1, 3] == 1.0
    assert mdp.expected_rewards[1, 1] == 0.5


def test_rewards_are_expected_when_they_do_not_or_when_that_would_be_large(monkeypatch):
    plain = {0: {0: [(0.3, 0, 0.1, False), (0.7, 1, 0.1, False)]}, 1: {0: [(1.0, 0, 5.0, False)]}}
    np.testing.assert_array_equal(FiniteMDP(plain).rewards, [[0.1], [5.0]])
    monkeypatch.setattr(build, "DENSE_REWARDS", 10)
    assert FiniteMDP(lake()).rewards.shape == (4, 2)
    assert FiniteMDP(lake()).rewards[1, 1] == 0.5


def test_a_reward_that_varies_for_one_next_state_is_averaged():
    mixed = [[[(0.25, 0, 4.0, False), (0.25, 0, 0.0, False), (0.5, 1, 1.0, False)]], [[(1.0, 0, 0.0, False)]]]
    mdp = FiniteMDP(mixed)
    np.testing.assert_array_equal(mdp.rewards[0, 0], [2.0, 1.0])


def test_mixed_done_adds_one_labelled_end_and_keeps_rewards():
    table = {
        0: {0: [(0.5, 1, 0.0, False), (0.5, 1, 3.0, True)], 1: [(1.0, 0, 7.0, True)]},
        1: {0: [(1.0, 0, 1.0, False)], 1: [(1.0, 1, 2.0, True)]},
    }
    mdp = FiniteMDP(table)
    assert mdp.n_states == 3
    assert mdp.state_labels == ("0", "1", "end")
    np.testing.assert_array_equal(mdp.terminal, [False, False, True])
    np.testing.assert_array_equal(mdp.dense()[0, 0], [0, 0.5, 0.5])
    np.testing.assert_array_equal(mdp.expected_rewards, [[1.5, 7.0], [1.0, 2.0], [0, 0]])
    assert FiniteMDP(table, state_labels=["a", "b"]).state_labels == ("a", "b", "end")
    # going round (0 -> 1 -> 0 ...) against cashing in 7 at once
    assert policy_iteration(mdp, 0.5).values == pytest.approx([7.0, 1.0 + 0.5 * 7.0, 0.0])


def test_a_one_state_episode_ends_in_the_extra_state():
    mdp = FiniteMDP([[[(1.0, 0, 2.0, True)], [(1.0, 0, 3.0, True)]]])
    assert mdp.n_states == 2
    assert policy_iteration(mdp, 0.9).values == pytest.approx([3.0, 0.0])


def test_an_undone_loop_of_a_terminal_state_does_not_count():
    table = {0: {0: [(1.0, 1, 1.0, True)]}, 1: {0: [(1.0, 1, 0.0, False)]}}
    mdp = FiniteMDP(table)
    assert mdp.n_states == 2
    assert mdp.terminal[1]


def test_given_terminal_states_are_final():
    table = {0: {0: [(1.0, 1, 1.0, False)]}, 1: {0: [(1.0, 0, 1.0, True)]}}
    assert FiniteMDP(table).terminal.tolist() == [True, False]
    mdp = FiniteMDP(table, terminal=[])
    assert mdp.terminal.tolist() == [False, False, True]
    assert policy_iteration(mdp, 0.5).values == pytest.approx([1.5, 1.0, 0.0])


def test_missing_actions_are_masked_and_states_without_any_are_terminal():
    table = {0: {1: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 2, 1.0, False)], 1: []}, 2: {}}
    mdp = FiniteMDP(table)
    np.testing.assert_array_equal(mdp.action_mask[:2], [[False, True], [True, False]])
    np.testing.assert_array_equal(mdp.terminal, [False, False, True])


@pytest.mark.parametrize(
    "change, message",
    [
        ([(0.5, 1, 0.0, False)], r"row \(state 0, action 0\) sums to 0\.5, not 1"),
        ([(1.0, 9, 0.0, False)], r"row \(state 0, action 0\) leads to state 9, not in 0\.\.3"),
        ([(1.0, -1, 0.0, True)], r"leads to state -1"),
        ([(1.5, 1, 0.0, False), (-0.5, 0, 0.0, False)], r"probability -0\.5"),
        ([(float("nan"), 1, 0.0, False)], "probability nan"),
        ([(1.0, 1, float("nan"), False)], r"row \(state 0, action 0\) has a reward that is not finite"),
        ([(1.0, 1, 0.0)], r"each must be \(probability, next state, reward, done\)"),
        ([(1.0, 0.5, 0.0, False)], "each must be"),
    ],
)
def test_bad_outcomes_are_refused_with_their_row(change, message):
    table = lake()
    table[0][0] = change
    with pytest.raises(ValueError, match=message):
        FiniteMDP(table)


def test_bad_tables_are_refused():
    with pytest.raises(ValueError, match="holds its own rewards"):
        FiniteMDP(lake(), np.zeros(4))
    with pytest.raises(ValueError, match="without gaps"):
        FiniteMDP({0: {0: [(1.0, 0, 0.0, False)]}, 2: {0: [(1.0, 0, 0.0, False)]}})
    with pytest.raises(TypeError, match="whole numbers"):
        FiniteMDP({"a": {0: [(1.0, 0, 0.0, False)]}})
    with pytest.raises(ValueError, match="no states"):
        FiniteMDP({})


def test_lists_may_begin_with_what_is_missing():
    assert FiniteMDP([[], [[(1.0, 0, 1.0, True)]]]) == FiniteMDP({0: {}, 1: {0: [(1.0, 0, 1.0, True)]}})
    assert FiniteMDP([[[], [(1.0, 0, 1.0, False)]]]).action_mask.tolist() == [[False, True]]


def test_masked_actions_say_nothing_of_what_is_terminal():
    table = {0: {0: [(1.0, 1, 1.0, True)]}, 1: {0: [(1.0, 0, 0.0, False)]}}
    more = {0: {**table[0], 1: [(1.0, 1, 0.0, False)]}, 1: table[1]}
    mdp = FiniteMDP(more, action_mask=[[1, 0], [1, 0]])
    assert mdp.n_states == FiniteMDP(table).n_states == 2
    assert mdp.terminal.tolist() == [False, True]
