"""A million observations and a million steps: numbers stay exact, memory stays flat."""

from __future__ import annotations

import math

import numpy as np
import psutil
import pytest

import bamdp
from bamdp.registry import make_planner

MILLION = 1_000_000
CHEAP = ("random", "q-learning", "rmax", "sboss", "thompson", "bayes-greedy", "beb", "epsilon-greedy")


def log_rising(x: float, n: int) -> np.longdouble:
    """log x (x+1) .. (x+n−1), added up in extended precision."""
    return np.log(np.longdouble(x) + np.arange(n, dtype=np.longdouble)).sum()


def dirichlet_evidence(alpha: float, counts: np.ndarray, n_states: int) -> float:
    """The log evidence of a row in closed form."""
    total = sum(log_rising(alpha, int(n)) for n in counts)
    return float(total - log_rising(n_states * alpha, int(counts.sum())))


def sparse_evidence(alpha: float, beta: float, counts: np.ndarray, n_states: int) -> float:
    """The same under the sparse prior: a sum over the sizes of the support, in extended precision."""
    k0, n = len(counts), int(counts.sum())
    sizes = np.arange(1, n_states + 1)
    prior = sizes.astype(np.longdouble) ** -np.longdouble(beta)
    prior /= prior.sum()
    seen = sum(log_rising(alpha, int(c)) for c in counts)
    terms = [
        np.log(prior[k - 1]) + np.longdouble(math.log(math.comb(n_states - k0, k - k0) / math.comb(n_states, k)))
        + seen - log_rising(k * alpha, n)
        for k in sizes.tolist() if k >= k0
    ]  # fmt: skip
    top = max(terms)
    return float(top + np.log(sum(np.exp(term - top) for term in terms)))


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["dirichlet", "sparse"])
def test_a_million_observations_of_one_row_have_the_evidence_and_predictive_of_the_closed_form(prior):
    n_states, alpha, beta = 6, 0.3, 2.0
    rng = np.random.default_rng(0)
    outcomes = rng.choice(3, size=MILLION, p=[0.7, 0.2, 0.1])
    made = {
        "dirichlet": bamdp.Dirichlet(alpha=alpha),
        "sparse": bamdp.SparseDirichlet(alpha=alpha, beta=beta),
    }
    belief = made[prior].belief(n_states, 2)
    zeros = np.zeros(MILLION, np.int64)
    belief.observe_many(zeros, zeros, np.zeros(MILLION), outcomes)
    counts = np.bincount(outcomes, minlength=3)
    if prior == "dirichlet":
        exact = dirichlet_evidence(alpha, counts, n_states)
        predictive = (alpha + np.append(counts, np.zeros(3))) / (n_states * alpha + MILLION)
    else:
        exact = sparse_evidence(alpha, beta, counts, n_states)
        after = [sparse_evidence(alpha, beta, counts + (np.arange(3) == i), n_states) for i in range(3)]
        predictive = np.exp(np.array(after) - exact)
    assert belief.log_evidence == pytest.approx(exact, rel=1e-10)
    np.testing.assert_allclose(belief.predictive(0, 0)[:3], predictive[:3], rtol=1e-4)
    assert belief.predictive(0, 0).sum() == pytest.approx(1.0, abs=1e-12)
    assert belief.n_observed == MILLION


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEAP)
def test_memory_is_flat_over_a_long_life(name):
    env = bamdp.make_env("chain")
    world = {"rewards": env.rewards, "n_states": env.n_states, "n_actions": env.n_actions}
    agent = bamdp.Agent(make_planner(name), prior=bamdp.SparseDirichlet(), discount=0.95, seed=0, **world)
    state, process, sizes = env.reset(seed=0), psutil.Process(), []
    for t in range(MILLION):
        action = agent.act(state)
        following, reward, _ = env.step(action)
        agent.observe(state, action, reward, following)
        state = following
        if t in (MILLION // 10, MILLION - 1):
            sizes.append(process.memory_info().rss)
    assert agent.belief.n_observed == MILLION
    assert sizes[1] - sizes[0] < 8_000_000, "bytes that nine tenths of a life have added"
