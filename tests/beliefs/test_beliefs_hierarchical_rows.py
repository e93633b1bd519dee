"""HierarchicalDirichlet against a second implementation with dense arrays, and Dirichlet laws given its base."""

import doctest
import math

import numpy as np
import pytest
from beliefs_arrays import content, same
from beliefs_kernels import play_rewards, unwind
from scipy import stats

from bamdp import HierarchicalDirichlet
from bamdp._kernels.random import new_rng
from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.transitions import hierarchical
from bamdp.beliefs.transitions.hierarchical import CONCENTRATIONS, LEAST, LISTED

S, A = 7, 2


def transitions(n=60, seed=0):
    """A level that falls by a random amount under action 0, and is refilled by action 1."""
    rng, steps = np.random.default_rng(seed), []
    for _ in range(n):
        s, a = int(rng.integers(S)), int(rng.integers(A))
        steps.append((s, a, max(0, s - int(rng.poisson(1.5))) if a == 0 else S - 1))
    return steps


def belief_of(steps, n_states=S):
    belief = HierarchicalDirichlet().belief(n_states, A)
    for s, a, s2 in steps:
        belief.observe(s, a, 0.0, s2)
    return belief


class Dense:
    """The same model with dictionaries and dense arrays, written from the module's formulas."""

    def __init__(self, n_states):
        self.S = n_states
        self.counts = np.zeros((n_states, A, n_states))
        self.w, self.log_c = np.ones(3), np.zeros(len(CONCENTRATIONS))
        self.moves = [{} for _ in range(A)]
        self.targets = [{} for _ in range(A)]

    def c(self):
        p = np.exp(self.log_c - self.log_c.max())
        return math.exp(p @ np.log(CONCENTRATIONS) / p.sum())

    def parts(self, s, a):
        share = self.w / self.w.sum()
        share[1:] *= share[1:] >= LEAST
        share[0] = 1.0 - share[1:].sum()
        parts = np.full((3, self.S), 1.0 / self.S)
        lists = self.moves[a], self.targets[a]
        for part, (masses, reached) in enumerate(zip(lists, (self.clip(s), lambda t: t)), 1):
            if masses:
                ranked = sorted(masses.values(), reverse=True)
                n = 1 + int(np.searchsorted(np.cumsum(ranked), LISTED * sum(ranked)))
                parts[part] = 0.0
                for place in sorted(masses, key=masses.get, reverse=True)[:n]:
                    parts[part, reached(place)] += masses[place] / sum(ranked[:n])
        return share[:, None] * parts

    def clip(self, s):
        return lambda d: min(self.S - 1, max(0, s + d))

    def predictive(self, s, a):
        n = self.counts[s, a]
        return (self.c() * self.parts(s, a).sum(0) + n) / (self.c() + n.sum())

    def observe(self, s, a, s2):
        parts, n = self.parts(s, a)[:, s2], self.counts[s, a]
        g, c = parts.sum(), self.c()
        p = c * g / (c * g + n[s2])
        for j, one in enumerate(CONCENTRATIONS):
            self.log_c[j] += math.log((one * g + n[s2]) / (one + n.sum()))
        self.w += p * parts / g
        for masses, reached, new in (
            (self.moves[a], self.clip(s), s2 - s),
            (self.targets[a], lambda t: t, s2),
        ):
            there = [place for place in masses if reached(place) == s2]
            total = sum(masses[place] for place in there)
            if not there:
                masses[new] = p
            for place in there:
                masses[place] += p * masses[place] / total
        self.counts[s, a, s2] += 1


@pytest.mark.parametrize("n", [0, 1, 2, 5, 60])
def test_the_predictive_is_that_of_the_dense_implementation(n):
    steps, dense = transitions(n), Dense(S)
    belief = belief_of(steps)
    for step in steps:
        dense.observe(*step)
    assert math.isclose(belief.transitions.share[0], dense.c(), rel_tol=1e-9)
    for s in range(S):
        for a in range(A):
            want = dense.predictive(s, a)
            assert np.allclose(belief.predictive(s, a), want, rtol=1e-8, atol=1e-12)
            found = [verbs.probability(belief.transitions, s * A + a, t) for t in range(S)]
            assert np.allclose(found, want, rtol=1e-8)
            assert math.isclose(sum(found), 1.0, rel_tol=1e-12)


def test_evidence_is_the_product_of_predictive_probabilities():
    steps, dense, total = transitions(40), Dense(S), 0.0
    for s, a, s2 in steps:
        total += math.log(dense.predictive(s, a)[s2])
        dense.observe(s, a, s2)
    assert belief_of(steps).log_evidence == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("n_states", [S, 200])
def test_sampled_rows_are_dirichlet(n_states):
    """Means and variances of sampled probabilities; with many states unseen ones are drawn stick by stick."""
    belief = belief_of(transitions(25), n_states)
    rng, row = new_rng(1), (3, 0)
    index, prob, drawn = np.zeros(n_states + 1, np.int32), np.zeros(n_states + 1), np.zeros((1000, n_states))
    for one in drawn:
        end, background = verbs.sample_row(belief.transitions, 0, row[0] * A + row[1], index, prob, 0, rng)
        one += background / n_states
        np.add.at(one, index[:end], prob[:end])
    p, c = belief.predictive(*row), verbs.concentration(belief.transitions, row[0] * A + row[1])
    assert np.allclose(drawn.sum(1), 1.0)
    of = np.argsort(p)[-4:]
    for t in of:
        law = stats.beta(p[t] * c, (1.0 - p[t]) * c)
        assert stats.kstest(drawn[:, t], law.cdf).pvalue > 1e-3


def test_moments_are_those_of_the_dirichlet_law():
    belief, row = belief_of(transitions(25)), 3 * A
    index, mean, variance = np.zeros(32, np.int32), np.zeros(32), np.zeros(32)
    end, p, v = verbs.moments_row(belief.transitions, row, index, mean, variance, 0)
    want, c = belief.predictive(3, 0), verbs.concentration(belief.transitions, row)
    found = np.full((2, S), [[p], [v]])
    found[:, index[:end]] = mean[:end], variance[:end]
    assert np.allclose(found[0], want)
    assert np.allclose(found[1], want * (1 - want) / (c + 1))


def test_next_states_are_drawn_from_the_predictive():
    belief, rng = belief_of(transitions(25)), new_rng(3)
    drawn = np.bincount([verbs.draw(belief.transitions, 3 * A, rng) for _ in range(4000)], minlength=S)
    p = belief.predictive(3, 0)
    assert stats.chisquare(drawn, 4000 * p / p.sum()).pvalue > 1e-3


def test_pushed_transitions_change_their_own_row_and_are_taken_back():
    belief = belief_of(transitions(25))
    belief.reserve(8)
    before, other, own = content(belief.arrays), belief.predictive(2, 0), belief.predictive(3, 0)
    rows = np.array([[6, 1], [6, 6], [1, 0], [6, 1]])
    play_rewards(belief.transitions, belief.rewards, rows, np.zeros(4))
    assert np.array_equal(belief.predictive(2, 0), other)
    assert belief.predictive(3, 0)[6] > own[6]
    unwind(belief.transitions, belief.rewards, len(rows))
    same(content(belief.arrays), before)


def test_what_an_action_does_elsewhere_is_expected_where_it_was_never_tried():
    belief = belief_of([(s, 0, s - 2) for s in (3, 4, 6)] + [(s, 1, 0) for s in (1, 2, 5)])
    assert belief.predictive(5, 0).argmax() == 3
    assert belief.predictive(5, 0)[3] > 0.3
    assert belief.predictive(1, 0).argmax() == 0  # beyond the first state is the first
    assert belief.predictive(6, 1).argmax() == 0


def test_rows_without_anything_in_common_are_left_alone():
    rng = np.random.default_rng(2)
    table = rng.integers(40, size=(40, A))
    steps = [(int(s), int(a), int(table[s, a])) for s, a in rng.integers([40, A], size=(1500, 2))]
    belief = belief_of(steps, 40)
    assert belief.transitions.share[0] < 0.05  # each row has one outcome
    assert all(belief.predictive(s, a)[table[s, a]] > 0.98 for s, a, _ in steps)


def test_a_restored_belief_goes_on_as_the_one_that_was_saved():
    one = belief_of(transitions(30))
    two = Belief.from_content(one.content())
    for belief in (one, two):
        belief.observe(4, 0, 0.0, 1)
    assert np.array_equal(one.predictive(5, 0), two.predictive(5, 0))
    assert np.array_equal(one.transitions.mass, two.transitions.mass)


def test_examples():
    assert doctest.testmod(hierarchical).failed == 0
