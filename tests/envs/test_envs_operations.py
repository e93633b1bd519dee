"""The textbook problems: their models from simulated steps, and policies of the form that theorems give."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bamdp.envs import make_env
from bamdp.envs.operations import inventory, machine, pricing, queue
from bamdp.mdp import policy_iteration

NAMES = ("inventory", "machine", "queue", "pricing")


def poisson(mean, highest):
    p = [math.exp(-mean) * mean**k / math.factorial(k) for k in range(highest)]
    return [*p, 1.0 - sum(p)]


RULES = {  # state, action and disturbance -> next state and reward, written out again; and the law of the disturbance
    "inventory": (
        lambda s, a, w: (
            max(min(s + 2 * a, 14) - w, 0),
            4 * min(min(s + 2 * a, 14), w)
            - (min(s + 2 * a, 14) - s)
            - 4 * (a > 0 and s < 14)
            - 0.5 * max(min(s + 2 * a, 14) - w, 0),
        ),
        poisson(3, 60),
    ),
    "machine": (
        lambda s, a, w: [(min(s + w, 9), 1 - s / 9), (max(s - 2, 0), -0.4), (0, -2.0)][a],
        [0.4, 0.35, 0.2, 0.05],
    ),
    "queue": (
        lambda s, a, w: (
            min(max(s - [1, 2, 4][a], 0) + w, 11),
            min(s, [1, 2, 4][a]) - 0.3 * s - [0.0, 1.0, 4.0][a],
        ),
        poisson(1.5, 60),
    ),
    "pricing": (
        lambda s, a, w: (s - (w > a), (a + 1) * (w > a) - 0.2 * s) if s else (10, -5.0),
        [0.05, 0.2, 0.25, 0.2, 0.15, 0.15],
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_the_model_is_the_rule_averaged_over_disturbances(name):
    env, (rule, law) = make_env(name), RULES[name]
    dense, expected = env.mdp.dense(), env.mdp.expected_rewards
    for s, a in np.ndindex(env.n_states, env.n_actions):
        row, reward = np.zeros(env.n_states), 0.0
        for w, p in enumerate(law):
            after, paid = rule(s, a, w)
            row[after] += p
            reward += p * paid
        np.testing.assert_allclose(dense[s, a], row, atol=1e-12)
        assert expected[s, a] == pytest.approx(reward, abs=1e-9)


@pytest.mark.parametrize("fee", [1.0, 4.0, 8.0])
def test_the_best_orders_are_of_the_form_small_s_large_s(fee):
    """Scarf: nothing from some level on; below it, up to about one level (as far as lots of 1 allow, exactly)."""
    env = inventory(lot=1, n_orders=15, fee=fee)
    orders = policy_iteration(env.mdp, 0.95).policy
    low = int(np.flatnonzero(orders > 0).max())
    assert (orders[: low + 1] > 0).all()
    assert len(set((np.arange(low + 1) + orders[: low + 1]).tolist())) == 1


def test_the_machine_has_a_limit_and_faster_service_belongs_to_longer_queues():
    assert (np.diff(policy_iteration(machine().mdp, 0.95).policy) >= 0).all()
    for arrivals in (0.5, 1.5, 3.0):
        assert (np.diff(policy_iteration(queue(arrivals=arrivals).mdp, 0.95).policy) >= 0).all()


def test_the_price_falls_as_the_stock_grows():
    policy = policy_iteration(pricing().mdp, 0.95).policy[1:]
    assert (np.diff(policy) <= 0).all()
    assert policy[0] > policy[-1]


def test_a_strip_shows_the_states_in_a_row():
    env = make_env("machine")
    assert [env.state_label(s) for s in (0, 1, 9)] == ["new", "1", "broken"]
    height, width, _ = env.render().shape
    assert width > 5 * height


def test_bad_parameters_are_refused():
    for bad, words in (
        (lambda: machine(wear=(0.5, 0.4)), "sums to 0.9"),
        (lambda: queue(speeds=(1, 2)), "lists of one length"),
        (lambda: pricing(buyers=(0.1, 0.2, 0.3, 0.4, 0.5)), "prices must rise"),
    ):
        with pytest.raises(ValueError, match=words):
            bad()
