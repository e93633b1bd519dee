"""The public conformance checks accept what is right and name what is wrong."""

from __future__ import annotations

import doctest
from dataclasses import dataclass

import numpy as np
import pytest

import bamdp
from bamdp import testing
from bamdp.testing import check_planner, check_posterior


def test_examples():
    assert doctest.testmod(testing).failed == 0


@dataclass(frozen=True)
class Wanderer(bamdp.Planner):
    """Any action that exists."""

    def act(self, memory, belief, state, rng):
        return rng.choice(np.flatnonzero(belief.space.allowed[state]))


class Restless(Wanderer):
    """Draws from a stream of its own."""

    def act(self, memory, belief, state, rng):
        return super().act(memory, belief, state, np.random.default_rng())


class Reckless(Wanderer):
    """Takes actions that do not exist."""

    def act(self, memory, belief, state, rng):
        return int(rng.integers(belief.n_actions))


class Meddler(Wanderer):
    """Learns while it plans."""

    def act(self, memory, belief, state, rng):
        belief.observe(0, 0, 0.0, 1)
        return super().act(memory, belief, state, rng)


class Forgetful(Wanderer):
    """Alternates by a memory that no file keeps."""

    def start(self, belief, discount):
        return [0]

    def learn(self, memory, belief, seen):
        memory[0] += 1

    def act(self, memory, belief, state, rng):
        actions = np.flatnonzero(belief.space.allowed[state])
        return int(actions[memory[0] % len(actions)])


@pytest.mark.parametrize(
    ("planner", "message"),
    [
        (Restless(), "Restless: with the same seed it must act the same"),
        (Reckless(), "Reckless: action . is not allowed"),
        (Meddler(), "Meddler: "),
        (Forgetful(), "Forgetful: a loaded agent"),
    ],
)
def test_what_a_planner_breaks_is_named(planner, message):
    with pytest.raises(AssertionError, match=message):
        check_planner(planner)
    check_planner(Wanderer())


@pytest.mark.parametrize("prior", ["sparse", "flat", "shared", "flat+sparse"])
def test_posteriors_of_the_library_pass(prior):
    check_posterior(prior)
    check_posterior(prior, rewards=bamdp.BetaBernoulli())


def test_a_posterior_that_estimates_parameters_is_not_exact():
    check_posterior("hierarchical", exact=False)
    with pytest.raises(AssertionError, match="the order of observations must not matter"):
        check_posterior("hierarchical")


def test_what_a_posterior_breaks_is_named(monkeypatch):
    monkeypatch.setattr(bamdp.Belief, "mean", lambda self: self.sample(0))
    with pytest.raises(AssertionError, match="Dirichlet: the mean model must have predictive rows"):
        check_posterior(bamdp.Dirichlet(alpha=0.5))
