"""What every belief promises, of the prior in examples/deterministic.py. Run by test_examples_pictures.py."""

import sys

import numpy as np
from deterministic import Deterministic

import bamdp

WORLD = {
    "prior": Deterministic(),
    "rewards": np.arange(4.0),
    "n_states": 4,
    "n_actions": 2,
    "discount": 0.9,
    "seed": 0,
}


def refused(belief):
    try:
        belief.observe(0, 0, 0.0, 2)
    except ValueError as error:
        return "probability 0" in str(error)
    return False


belief = Deterministic().belief(4, 2)
assert np.array_equal(belief.predictive(0, 0), np.full(4, 0.25))
belief.observe(0, 0, 0.0, 3)
assert np.array_equal(belief.predictive(0, 0), [0, 0, 0, 1])
assert np.isclose(belief.log_evidence, np.log(0.25))
assert refused(belief)
assert np.array_equal(belief.predictive(0, 0), [0, 0, 0, 1])
assert belief.sample(0).dense().max(axis=-1).min() == 1.0

agent = bamdp.Agent(bamdp.DSS(n_policies=2, n_samples=2, n_steps=5, n_stages=2), **WORLD)
before = agent.belief.transitions.outcome.copy()
plan = agent.plan(0)
assert np.array_equal(agent.belief.transitions.outcome, before)
agent.save(sys.argv[1])
assert repr(bamdp.Agent.load(sys.argv[1]).plan(0)) == repr(plan)

# Two steps from state 3, exactly: 3 now, then the mean of 0..3 (or 3 again, if the row led back).
exact = bamdp.Agent(bamdp.FHTS(2), **WORLD).plan(3)
assert np.isclose(exact.value, 3.0 + 0.9 * 1.5)
