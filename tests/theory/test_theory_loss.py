"""The measured loss: against the value of the policy, computed by another road."""

from __future__ import annotations

import numpy as np
import pytest

import bamdp
from bamdp.theory import bayes_loss, estimate_epsilon0

PRIOR = bamdp.Dirichlet(alpha=0.5)


def maker(planner, **world):
    world = {"n_states": 2, "n_actions": 2, "rewards": [0.0, 1.0], "discount": 0.8, **world}
    return lambda seed: bamdp.Agent(planner, prior=PRIOR, seed=seed, **world)


def random_value(belief, s, steps, discount):
    """What uniformly random play is worth, by enumeration."""
    if steps == 0:
        return 0.0
    total = 0.0
    for a in range(belief.n_actions):
        for s2, p in enumerate(belief.predictive(s, a)):
            after = belief.copy()
            r = belief.expected_reward(s, a)
            after.observe(s, a, r, s2)
            total += p * (r + discount * random_value(after, s2, steps - 1, discount)) / belief.n_actions
    return total


def test_the_loss_is_the_difference_of_values():
    # 4 s.e.: false alarm 6e-5
    make = maker(bamdp.Random())
    loss = bayes_loss(make, 4, runs=400, seed=1)
    exact = loss.value - random_value(make(0).belief, 0, 4, 0.8)
    assert abs(loss.mean - exact) < 4 * loss.standard_error
    assert loss.standard_error < 0.1 * exact
    assert loss.value == pytest.approx(maker(bamdp.FHTS(4))(0).plan(0).value)


def test_bayes_optimal_play_loses_nothing():
    # With one step to go greedy is optimal; with a certain belief the known optimum is.
    assert bayes_loss(maker(bamdp.BayesGreedy()), 1, runs=5).mean == 0.0
    env = bamdp.make_env("double_loop")
    certain = lambda seed: bamdp.Agent(
        bamdp.FHTS(9), prior=bamdp.FiniteModels([env.mdp]), n_states=9, n_actions=2, discount=0.9, seed=seed
    )
    assert bayes_loss(certain, 9, start=1, runs=2).mean == pytest.approx(0.0, abs=1e-12)


def test_losses_are_never_negative_and_the_same_seed_gives_the_same():
    make = maker(bamdp.ThompsonSampling())
    first, again = bayes_loss(make, 5, runs=20, seed=3), bayes_loss(make, 5, runs=20, seed=3)
    assert np.array_equal(first.samples, again.samples)
    assert (first.samples >= -1e-12).all()
    assert not np.array_equal(first.samples, bayes_loss(make, 5, runs=20, seed=4).samples)


def test_remembered_values_do_not_change_the_result():
    exact = {}
    make = maker(bamdp.ThompsonSampling())
    shared = [bayes_loss(make, 4, runs=10, exact=exact).samples for _ in range(2)]
    assert np.array_equal(*shared)
    assert np.array_equal(shared[0], bayes_loss(make, 4, runs=10).samples)
    assert len(exact) > 10


def test_terminal_states_end_a_run():
    make = maker(bamdp.Random(), terminal=[False, True], rewards=[1.0, 0.0])
    loss = bayes_loss(make, 6, runs=30)
    assert (loss.samples >= 0).all()


@pytest.mark.slow
def test_planners_are_ordered_as_they_should_be():
    bandit = {"n_states": 1, "n_actions": 2, "rewards": bamdp.BetaBernoulli(), "discount": 0.9}
    exact = {}
    mean = {
        type(planner).__name__: bayes_loss(maker(planner, **bandit), 6, runs=150, exact=exact).mean
        for planner in (
            bamdp.Random(),
            bamdp.ThompsonSampling(),
            bamdp.BAMCP(n_simulations=500, depth=6, exploration=1.0),
        )
    }
    assert mean["Random"] > 2 * mean["ThompsonSampling"] > 2 * mean["BAMCP"] > 0


@pytest.mark.parametrize("bad", [{"horizon": 0}, {"runs": 0}], ids=str)
def test_bad_input_is_refused(bad):
    with pytest.raises(ValueError, match="must be at least 1"):
        bayes_loss(maker(bamdp.Random()), **{"horizon": 2, "runs": 1, **bad})


def test_starts_that_lead_nowhere_are_refused():
    ends = maker(bamdp.Random(), terminal=[1])
    with pytest.raises(ValueError, match="state 1 is terminal"):
        bayes_loss(ends, 2, start=1, runs=1)
    with pytest.raises(ValueError, match=r"must be in 0\.\.1, got 5"):
        bayes_loss(ends, 2, start=5, runs=1)
    with pytest.raises(ValueError, match="objective='episode'"):
        bayes_loss(maker(bamdp.Random(), end=1, objective="lifetime"), 2, runs=1)
    with pytest.raises(ValueError, match="state 1 is terminal"):
        estimate_epsilon0(ends(0).belief, 1, 0.9, n_steps=2)
