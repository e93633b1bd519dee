"""Average reward per step: closed forms, the paper's worlds, stationary distributions, multichain errors."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamdp.mdp import FiniteMDP, gain, policy_iteration, uniform_policy
from bamdp.mdp.average import chain_bias, end_components
from mdp_models import chain, double_loop, grid, random_mdp, with_background


@pytest.mark.parametrize(
    "mdp, value",
    [
        (chain(), 0.4096),
        (chain(True), 0.36768),
        (double_loop(), 0.4),
        (grid(5), 0.092530),
        (grid(10), 0.043682),
    ],
    ids=["chain", "chain by effect", "double loop", "grid5", "grid10"],
)
def test_gains_of_the_papers_worlds(mdp, value):
    result = gain(mdp)
    assert result.gain == pytest.approx(value, abs=5.1e-7)
    assert result.error_bound <= 1e-9
    assert gain(mdp, policy=result.policy).gain == pytest.approx(result.gain, abs=1e-8)


def test_a_periodic_chain_converges():
    cycle = FiniteMDP(np.roll(np.eye(3), 1, axis=1)[:, None], [0.0, 0.0, 3.0])
    result = gain(cycle)
    assert result.gain == pytest.approx(1.0, abs=1e-9)
    assert result.bias == pytest.approx([0.0, 1.0, 2.0], abs=1e-8)


def stationary_gain(mdp, policy):
    """Σ x(s) r(s) with x the stationary distribution of a chain with one recurrent class."""
    n = mdp.n_states
    everyone = np.arange(n)
    p, r = mdp.dense()[everyone, policy], mdp.expected_rewards[everyone, policy]
    system = np.vstack([(p - np.eye(n)).T, np.ones(n)])
    x = np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0]
    return x @ r


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_bounds_hold_the_best_gain_of_all_policies(seed, background):
    rng = np.random.default_rng(seed)
    mdp = with_background(rng, 4, 2)[1] if background else random_mdp(rng, 4, 2)
    model = mdp
    if background:
        mixed = 0.9 * mdp.dense()
        mixed += 0.1 / 4
        model = FiniteMDP(mixed, mdp.expected_rewards)
    best = max(stationary_gain(model, np.array(p)) for p in itertools.product(range(2), repeat=4))
    result = gain(model)
    assert result.bounds[0] - 1e-12 <= best <= result.bounds[1] + 1e-12
    assert stationary_gain(model, result.policy) >= result.bounds[0] - 1e-12
    q = model.expected_rewards + model.dense() @ result.bias
    np.testing.assert_allclose(q.max(axis=1) - result.bias, result.gain, atol=1e-8)
    policy = rng.integers(0, 2, size=4)
    assert gain(model, policy=policy).gain == pytest.approx(stationary_gain(model, policy), abs=1e-8)


def test_gain_is_the_limit_of_discounted_values():
    mdp = chain()
    assert gain(mdp).gain == pytest.approx(1e-5 * policy_iteration(mdp, 1.0 - 1e-5).values[0], abs=1e-4)


def test_a_stochastic_policy_is_evaluated():
    mdp = FiniteMDP(np.full((2, 2, 2), 0.5), [[0.0, 1.0], [2.0, 3.0]])
    assert gain(mdp, policy=uniform_policy(mdp)).gain == pytest.approx(1.5)


def test_episodes_that_must_end_have_gain_zero():
    mdp = FiniteMDP([[[0.5, 0.5]], [[0, 1.0]]], rewards=[7.0, 7.0], terminal=[1])
    result = gain(mdp)
    assert result.gain == pytest.approx(0.0, abs=1e-9)
    assert result.bias == pytest.approx([14.0, 0.0])


def test_a_gain_that_depends_on_the_state_is_an_error_that_names_two():
    apart = FiniteMDP(np.eye(3)[:, None], [0.25, 0.5, 2.0])
    with pytest.raises(ValueError, match=r"about 0\.25 from state 0, about 2 from state 2; use total_reward"):
        gain(apart)
    stay_or_end = FiniteMDP([[[1.0, 0]], [[0, 1.0]]], [1.0, 0.0], terminal=[1])
    with pytest.raises(ValueError, match="about 0 from state 1, about 1 from state 0"):
        gain(stay_or_end)


def test_equal_gains_of_separate_classes_are_no_error():
    assert gain(FiniteMDP(np.eye(2)[:, None], [0.5, 0.5])).gain == pytest.approx(0.5)


def test_slow_mixing_is_an_error_with_its_bounds():
    p = [[[1 - 1e-5, 1e-5]], [[1e-5, 1 - 1e-5]]]
    with pytest.raises(RuntimeError, match=r"known to lie in \[.*raise max_sweeps"):
        gain(FiniteMDP(p, [0.0, 1.0]), max_sweeps=50)
    assert gain(FiniteMDP(p, [0.0, 1.0])).gain == pytest.approx(0.5, abs=1e-9)


def test_a_long_corridor_is_not_taken_for_two_worlds(monkeypatch):
    """Values cross about half a state per sweep: at first nothing is seen to change at the far end."""
    monkeypatch.setattr("bamdp.mdp.average._SWEEPS_PER_CHECK", 64)
    n = 300
    p = np.zeros((n, 2, n))
    p[np.arange(n), 0, np.minimum(np.arange(n) + 1, n - 1)] = 1.0
    p[np.arange(n), 1, np.maximum(np.arange(n) - 1, 0)] = 1.0
    rewards = np.zeros((n, 2))
    rewards[-1, 0] = 1.0
    assert gain(FiniteMDP(p, rewards)).gain == pytest.approx(1.0)


def test_slow_mixing_is_said_to_be_slow_not_to_be_two_worlds():
    p = [[[1 - 1e-10, 1e-10]], [[1e-10, 1 - 1e-10]]]
    with pytest.raises(RuntimeError, match="mixes slowly"):
        gain(FiniteMDP(p, [0.0, 1.0]), max_sweeps=20_000)


@pytest.mark.parametrize("n, p", [(100, 0.003), (60, 0.001), (400, 0.01)])
def test_a_ring_that_is_rarely_left_is_one_world(n, p):
    """Unlikely steps cross it slowly, so at first nothing seems to change: the gain is 1/2 from everywhere."""
    i = np.arange(n)
    ring = np.zeros((n, 1, n))
    ring[i, 0, i], ring[i, 0, (i + 1) % n] = 1 - p, p
    result = gain(FiniteMDP(ring, (i >= n // 2).astype(float)))
    assert result.gain == pytest.approx(0.5, abs=1e-9)
    assert result.error_bound <= 1e-9


def test_relative_values_need_one_closed_class():
    assert chain_bias(FiniteMDP(np.eye(3)[:, None], [0.0, 1.0, 2.0])) is None
    values = chain_bias(FiniteMDP([[[0.5, 0.5]], [[0.25, 0.75]]], [0.0, 1.0]))  # h + 2/3 = r + P h
    assert values == pytest.approx([0.0, 4 / 3])


def test_a_choice_between_rare_ways_is_found():
    """Two slow rings that share a state, one paying more: policy iteration's steps must improve, not only evaluate."""
    n, p = 50, 0.002
    i = np.arange(n)
    moves = np.zeros((n, 2, n))
    moves[i, :, i] = 1 - p
    moves[i, 0, np.where(i == 24, 0, np.where(i == 49, 0, i + 1)) % n] += p
    moves[i, 1, np.where(i == 0, 25, np.where(i == 24, 0, np.where(i == 49, 0, i + 1))) % n] += p
    rewards = np.where(i == 0, 0.0, np.where(i < 25, 1.0, 1.1))
    result = gain(FiniteMDP(moves, rewards))
    assert result.policy[0] == 1
    assert result.gain == pytest.approx(1.1 * 25 / 26, abs=1e-9)


def test_end_components_are_where_one_can_stay():
    # 0 must leave; 1 and 2 are a ring, which an action of 2 leaves; 3 may stay or end in 4, which is terminal.
    p = np.zeros((5, 2, 5))
    p[0, :, [1, 3]] = 0.5
    p[1, :, 2] = p[2, 0, 1] = p[2, 1, 3] = p[3, 0, 3] = p[3, 1, 4] = 1.0
    mdp = FiniteMDP(p, np.zeros(5), terminal=[4])
    assert end_components(mdp).tolist() == [-1, 0, 0, 1, 2]
    mixed, _ = with_background(np.random.default_rng(0), 4, 2)
    assert end_components(mixed).tolist() == [0, 0, 0, 0]


def brute_end_components(p, terminal):
    """By definition: unions of all end components that intersect, found among all sets of states."""
    n, found = len(p), [{s} for s in np.flatnonzero(terminal)]
    for size in range(1, n + 1):
        for states in itertools.combinations(np.flatnonzero(~terminal).tolist(), size):
            inside = np.isin(np.arange(n), states)
            stay = p[..., ~inside].sum(axis=2) == 0.0  # [S, A]
            reach = np.zeros((n, n), bool)
            for s in states:
                reach[s] = (p[s][stay[s]] > 0).any(axis=0)
            power = np.linalg.matrix_power(np.eye(n) + reach, n) > 0
            if stay[list(states)].any(axis=1).all() and power[np.ix_(states, states)].all():
                found = [other for other in found if not other <= set(states)] + [set(states)]
    return sorted(map(sorted, found))


@pytest.mark.parametrize("seed", range(25))
def test_end_components_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    n = 5
    p = rng.dirichlet(np.full(n, 0.15), size=(n, 2)) * (rng.random((n, 2, n)) < 0.5)
    p[np.arange(n), 0, rng.integers(n, size=n)] += 0.1
    p[np.arange(n), 1, rng.integers(n, size=n)] += 0.1
    p /= p.sum(axis=2, keepdims=True)
    terminal = rng.random(n) < 0.2
    labels = end_components(FiniteMDP(p, np.zeros(n), terminal=terminal))
    ours = sorted(np.flatnonzero(labels == k).tolist() for k in range(labels.max() + 1))
    assert ours == brute_end_components(p, terminal)
