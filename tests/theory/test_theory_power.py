"""Could the tests of the bounds fail? Cases in which what happens is within a factor of ten of what is allowed.

Where a loss is exactly 0, a bound of any size holds, and a test of it says nothing. Each test here has a case that
comes near its bound, and names a wrong constant that it would catch.
"""

from __future__ import annotations

import numpy as np
import pytest
from exact_stages import World, one_of_two_arms, thompson
from scipy import stats

import bamdp
from bamdp.theory import (
    bayes_loss,
    estimate_c,
    mended_anytime_error,
    mended_loss_bound,
    mended_model_error,
    mended_sampling_error,
    mended_thompson_error,
    value_range,
)

FACTOR = 10.0  # how near a case has to come to its bound


def assert_tight(loss, bound, caught):
    """What happens is allowed, by no more than the factor; and with the bound times ``caught`` it would not be."""
    assert loss <= bound <= FACTOR * loss
    assert loss > caught * bound


@pytest.mark.parametrize(("discount", "caught"), [(0.1, 0.4), (0.3, 0.3), (0.5, 0.2), (0.75, 0.1)])
def test_lemma_1_mended_would_notice_a_smaller_constant(discount, caught):
    # The first pull tells which arm pays, and a policy that is held for K steps cannot use it.
    world, K = one_of_two_arms(discount), 8
    assert world.changes(world.prior, 0, 1, 2).tolist() == [1.0, 0.0]
    loss = 0.5 * sum(discount**t for t in range(1, K))  # half of what the other K − 1 steps could pay
    assert loss == pytest.approx(
        world.bayes_optimal(world.prior, 0, K) - world.staged(world.prior, 0, K, 1, thompson(world))
    )
    assert_tight(loss, mended_anytime_error(K, discount, 1.0), caught)


@pytest.mark.parametrize(("K", "discount", "caught"), [(2, 0.5, 0.2), (8, 0.8, 0.6), (30, 0.9, 0.8)])
def test_the_error_of_a_model_would_notice_a_smaller_constant(K, discount, caught):
    # One state pays for ever; in the other model each step leads out of it with a small probability.
    chance = 1e-4
    values = []
    for p in (0.0, chance):
        P = np.array([[1.0 - p, p], [0.0, 1.0]])
        V = np.zeros(2)
        for _ in range(K):
            V = np.array([1.0, 0.0]) + discount * P @ V
        values.append(V[0])
    distance = 2.0 * chance
    assert_tight(values[0] - values[1], 0.5 * distance * mended_model_error(K, discount), caught)


def signposts(n_models, discount):
    """The first step leads to a post that tells which action will pay for ever, as only a policy that looks can use."""
    L = n_models
    models = []
    for truth in range(L):
        P, R = np.zeros((L + 1, L, L + 1)), np.zeros((L + 1, L))
        P[0, :, 1 + truth] = 1.0
        P[np.arange(1, L + 1), :, np.arange(1, L + 1)] = 1.0
        R[1:, truth] = 1.0
        models.append((P, R))
    return World(models, [1.0 / L] * L, discount)


@pytest.mark.parametrize(("L", "K", "discount"), [(3, 7, 0.5), (2, 8, 0.6)])
def test_lemma_2_mended_would_notice_a_constant_that_is_ten_times_smaller(L, K, discount):
    world = signposts(L, discount)
    C = world.disagreement()
    assert pytest.approx(2.0 * (1.0 - 1.0 / L)) == C
    best = world.bayes_optimal(world.prior, 0, K)
    loss = best - world.staged(world.prior, 0, K, 1, thompson(world))
    assert loss == pytest.approx((1.0 - 1.0 / L) * sum(discount**t for t in range(1, K)))
    assert_tight(loss, mended_thompson_error(K, discount, C), caught=0.1)
    assert loss > mended_thompson_error(K, discount, 0.1 * C)  # nor may C̄ be ten times too small


def test_the_whole_bound_would_notice_too_with_the_planner_itself():
    # One candidate that is held for K steps is Thompson sampling: the sampling term is 0, and the rest is what counts.
    L, K, discount = 4, 4, 0.5
    world = signposts(L, discount)
    models = [bamdp.FiniteMDP(P, R) for P, R in zip(world.P, world.R)]
    planner = bamdp.DSS(n_policies=1, n_samples=1, n_steps=K, replan_every=K)
    make = lambda seed: bamdp.Agent(
        planner,
        prior=bamdp.FiniteModels(models),
        n_states=L + 1,
        n_actions=L,
        discount=discount,
        seed=seed,
    )
    c = estimate_c(make(0).belief, pairs=400, rng=0)
    assert abs(c.mean - world.disagreement()) < 4 * c.standard_error  # D includes what models say of rewards
    loss = bayes_loss(make, 2 * K, runs=300)
    expected = (1.0 - 1.0 / L) * sum(discount**t for t in range(1, K))  # in the second stage it knows
    assert abs(loss.mean - expected) < 4 * loss.standard_error  # false alarm 6e-5
    bound = mended_loss_bound(1, 1, K, discount, c=world.disagreement()).total
    assert_tight(expected, bound, caught=0.12)
    assert loss.mean - 4 * loss.standard_error > 0.1 * bound


@pytest.mark.parametrize("K", [1, 3, 10])
def test_what_lies_beyond_the_stage_would_be_missed(K):
    # A way of K steps to a state that pays for ever: the optimal policy earns nothing in K steps, and if nothing
    # follows them it has lost all. The term has a factor of 2; with less than 1 it would be wrong.
    discount = 0.8
    best, held = discount**K / (1.0 - discount), 0.0
    assert_tight(best - held, mended_loss_bound(1, 1, K, discount, c=0.0).total, caught=0.49)


# --- choosing between candidates by samples

N, M, STAGE, DISCOUNT = 32, 200, 60, 0.95
RARE, BASE = 0.06, 0.5  # the weight of the model with the better policy; the chance that the others promise
CHANCES = {"rare": (1.0, 0.0), "common": (BASE - 0.01, BASE)}  # of becoming rich, by action
BETTER, WORSE = (
    RARE * CHANCES["rare"][action] + (1.0 - RARE) * CHANCES["common"][action] for action in (0, 1)
)
RICHES = DISCOUNT * value_range(DISCOUNT, STAGE - 1)  # paid from the second step to the end of the stage


def test_the_sampling_term_would_notice_a_factor_of_a_tenth():
    # N candidates, of which only a few are better, each estimated by M returns that are all or nothing.
    loss = RICHES * (BETTER - WORSE) * mistaken(N, M, RARE, BETTER, WORSE)
    bound = mended_sampling_error(N, M, DISCOUNT, STAGE)
    assert_tight(loss, bound, caught=0.1)  # the factor 2 in X replaced by 0.2


def mistaken(N, M, rare, better, worse):
    """The chance that one of the better candidates is there, and one of the others looks better; exact.

    Both maxima are of independent binomial numbers. Of equal ones the first counts, which is as likely to be either.
    """
    k = np.arange(M + 1)
    below = {p: stats.binom.cdf(k, M, p) for p in (better, worse)}
    total = 0.0
    for n in range(1, N):
        high, low = (np.diff(below[p] ** m, prepend=0.0) for p, m in ((better, n), (worse, N - n)))
        first = (N - n) / N  # a tie: which kind comes first
        lost = (low * np.r_[0.0, np.cumsum(high)[:-1]]).sum() + first * (low * high).sum()
        total += stats.binom.pmf(n, N, rare) * lost
    return total


def test_the_planner_loses_by_sampling_what_is_computed():
    # 200 plans; false alarm 6e-5 (4 standard errors)
    models = []
    for chances in (CHANCES["common"], CHANCES["rare"]):
        P = np.zeros((3, 2, 3))
        P[1, :, 1] = P[2, :, 2] = 1.0
        for action, chance in enumerate(chances):
            P[0, action, 1], P[0, action, 2] = chance, 1.0 - chance
        models.append(bamdp.FiniteMDP(P, np.array([0.0, 1.0, 0.0])))
    agent = bamdp.Agent(
        bamdp.DSS(n_policies=N, n_samples=M, n_steps=STAGE),
        prior=bamdp.FiniteModels(models, [1.0 - RARE, RARE]),
        n_states=3,
        n_actions=2,
        discount=DISCOUNT,
        seed=5,
    )
    value = np.array([BETTER, WORSE]) * RICHES
    losses = []
    for _ in range(200):
        plan = agent.plan(0)
        known = max(value[candidate.action] for candidate in plan.candidates)
        losses.append(known - value[plan.action])
        agent.act(0)  # goes on in the agent's stream
    expected = RICHES * (BETTER - WORSE) * mistaken(N, M, RARE, BETTER, WORSE)
    error = np.std(losses) / len(losses) ** 0.5
    assert abs(np.mean(losses) - expected) < 4 * error
    bound = mended_sampling_error(N, M, DISCOUNT, STAGE)
    assert 0.05 * bound < np.mean(losses) - 4 * error  # a factor of 2 replaced by 0.1 would be found out
    assert np.mean(losses) + 4 * error < bound
