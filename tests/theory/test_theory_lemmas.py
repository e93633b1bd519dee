"""The theorem as printed: counterexamples to its steps, and what it says at the paper's own parameters.

That the corrected bounds hold, and would not with smaller constants, is tested in ``test_theory_power.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from exact_stages import near, one_of_two_arms

import bamdp
from bamdp.theory import (
    bayes_loss,
    corrected_anytime_error,
    corrected_loss_bound,
    dss_calls,
    k_rule,
    printed_anytime_error,
    printed_loss_bound,
    printed_sampling_error,
)


def decayed(changes):
    """The least ε₀ with ε_h ≤ ε₀ / max(h, 1)."""
    return max(change * max(h, 1) for h, change in enumerate(changes))


def test_lemma_1_as_printed_is_false():
    # The belief changes by 1 in the first stage (whatever is pulled tells all) and never again.
    for K in (5, 8):
        world = one_of_two_arms(0.5)
        H = 24 // K
        epsilon0 = decayed(world.changes(world.prior, 0, 1, 2))
        assert epsilon0 == 1.0
        best = 0.5 + sum(0.5**t for t in range(1, K * H))
        first = 0.5 * sum(0.5**t for t in range(K))  # nothing better can be done without adapting
        staged = first + sum(0.5**t for t in range(K, K * H))
        if K == 5:
            assert world.bayes_optimal(world.prior, 0, 10) == pytest.approx(
                0.5 + sum(0.5**t for t in range(1, 10))
            )
            assert world.best_markov(world.prior, 0, 5, 2) == pytest.approx(
                first + sum(0.5**t for t in range(5, 10))
            )
        loss = best - staged
        assert loss > printed_anytime_error(K, 0.5, epsilon0)
        assert loss <= corrected_anytime_error(K, 0.5, epsilon0)


def test_lemma_2_values_a_policy_in_its_own_model_and_so_proves_nothing_about_c():
    # Step (b) of the proof has V of π*_μ' in μ' where Thompson sampling gets V of π*_μ' in μ. The difference that
    # is left, E V*_μ − E V*_μ', is zero by symmetry; the one that is meant is not.
    world = near(0, n_models=3, spread=0.5, discount=0.5)
    w, policies, K = world.prior, world.optimal_policies(), 6
    value = np.array(
        [
            [world.run(tuple(np.eye(3)[m]), 0, [policy] * K, K, lambda w, s: 0.0) for policy in policies]
            for m in range(3)
        ]
    )  # [model, policy]
    own = np.diag(value)
    as_written = sum(w[i] * w[j] * (own[i] - own[j]) for i in range(3) for j in range(3))
    as_meant = sum(w[i] * w[j] * (value[i, i] - value[i, j]) for i in range(3) for j in range(3))
    assert abs(as_written) < 1e-12
    assert as_meant > 1e-3


def test_theorem_1_as_printed_is_false_for_assumption_2_as_printed():
    # One of L actions leads to the state that pays, in each of L models with equal weights. All D = 2, so
    # β(μ) β(μ') = 1/L² ≤ C/D holds with C = 2/L², while E D → 2. Policies of models are constant.
    L, K, discount = 2048, 20, 0.5
    C, expected = 2 / L**2, 2 * (1 - 1 / L)
    best = sum(discount**j / (1 - discount) / L for j in range(1, L + 1))  # try one after the other
    first = sum(discount**t for t in range(1, K)) / L  # a constant action, as long as it is held
    loss = best - (first + discount**K / (1 - discount))  # at least, whatever comes later
    bound = printed_loss_bound(10**12, 1, K, discount, epsilon0=2.0, c=C)
    assert loss > 3 * bound.total
    assert loss < corrected_loss_bound(10**12, 10**12, K, discount, c=expected).total


def lottery(n_policies, n_samples, rare):
    """Safe pay, or a gamble that is good only in a rare model: states start, rich, poor."""
    models = []
    for chance in (0.1, 1.0):
        P = np.zeros((3, 2, 3))
        P[0, 0, 0] = P[1, :, 1] = P[2, :, 2] = 1.0
        P[0, 1] = [0.0, chance, 1.0 - chance]
        models.append(bamdp.FiniteMDP(P, np.array([[0.4, 0.0], [1.0, 1.0], [0.0, 0.0]])))
    planner = bamdp.DSS(n_policies=n_policies, n_samples=n_samples, n_steps=10, replan_every=10)
    prior = bamdp.FiniteModels(models, [1 - rare, rare])
    return lambda seed: bamdp.Agent(planner, prior=prior, n_states=3, n_actions=2, discount=0.5, seed=seed)


def test_theorem_1_as_printed_is_false_when_each_policy_is_tried_once():
    # M = 1: of 50 000 candidates some 50 gamble, a few of those have a high return by chance, the highest is chosen.
    N, rare = 50_000, 1e-3
    expected = 2 * rare * (1 - rare) * 1.8  # E D
    bound = printed_loss_bound(N, 1, 10, 0.5, epsilon0=2.0, c=expected, delta=0.01)
    exact = {}
    losses = bayes_loss(lottery(N, 1, rare), 8, runs=10, exact=exact).samples
    assert (losses > 2 * bound.total).mean() > 0.9  # it promises 99 % below
    # Many samples of each, and all is well: the term that is missing is the one with M in it.
    few = bayes_loss(lottery(200, 300, rare), 8, runs=20, exact=exact)
    assert few.mean <= corrected_loss_bound(200, 300, 10, 0.5, c=expected).total < 0.6


def test_the_union_bound_is_over_nodes_not_samples():
    # ln(n/δ): for one stage there is one node and less to pay than printed; for two there are 1 + NM.
    one, two = dss_calls(4, 4, 18).nodes, dss_calls(4, 4, 18, 2).nodes
    assert (one, two) == (1, 17)
    as_printed = printed_sampling_error(4, 4, 0.95)
    assert printed_sampling_error(4, one, 0.95) < as_printed < printed_sampling_error(4, two, 0.95)


def test_the_paper_s_own_parameters_are_vacuous_even_for_a_belief_without_doubt():
    appendix = {"chain": (4, 4, 5, 2), "double_loop": (4, 4, 18, 2), "grid5": (2, 2, 25, 1)}
    appendix |= {"grid10": (2, 2, 100, 2), "maze": (4, 2, 100, 1)}
    for N, M, K, H in appendix.values():
        assert corrected_loss_bound(N, M, K, 0.95, n_stages=H).vacuous
        assert not k_rule(N, M, 0.95, epsilon0=0.05, c=0.05).satisfiable
    for name in ("chain", "double_loop", "grid5"):  # longer stages escape, if ε₀ = C = 0
        N, M, K, H = appendix[name]
        assert printed_loss_bound(N, M, K, 0.95, n_stages=H).vacuous
