"""Every transition table against published facts: totals by dynamic programming, gains, discounted values.

The numbers were measured apart from this code, from the definitions and the public programs, and are compared
to the precision in which they were written down.
"""

from __future__ import annotations

import pytest

from bamdp.envs import make_env
from bamdp.mdp import gain, total_reward, uniform_policy, value_iteration

# name, optimum over T, total of the policy for discount 0.95, of random play, gain, V*(start) at 0.95
FACTS = [
    ("chain", "408.35", "407.96", "131.1", ".4096", "6.6724"),
    ("chain:rewards=effect", "366.58", "366.37", "131.1", ".36768", "6.1379"),
    ("double_loop", "400.0", "400.0", "158.4", ".4", "7.2010"),
    ("grid5", "92.1", "92.1", "9.1", ".092530", "1.4386"),
    ("grid10", "86.9", "86.9", "3.2", ".043682", ".4788"),
    ("maze", "1826", "1269.6", "96.9", ".091339", ".7811"),
]
SIZES = {
    "chain": (5, 2, 1000, 0.25),
    "double_loop": (9, 2, 1000, 0.25),
    "grid5": (25, 4, 1000, 1.0),
    "grid10": (100, 4, 2000, 1.0),
    "maze": (264, 4, 20_000, 1.5),
}


def printed(text: str) -> object:
    """A number to the precision in which it was printed."""
    return pytest.approx(float(text), rel=0, abs=0.501 * 10.0 ** -len(text.partition(".")[2]))


@pytest.mark.parametrize("name", SIZES)
def test_the_paper_s_sizes_horizons_and_time_limits(name):
    env = make_env(name)
    assert (env.n_states, env.n_actions, env.horizon, env.time_limit) == SIZES[name]
    assert env.start == 0
    assert not env.mdp.terminal.any()


@pytest.mark.parametrize(("name", "optimum", "patient", "random", "average", "value"), FACTS)
def test_totals_gain_and_value_are_the_published_ones(name, optimum, patient, random, average, value):
    env = make_env(name)
    best = value_iteration(env.mdp, 0.95)
    assert total_reward(env.mdp, env.start, env.horizon) == printed(optimum)
    assert total_reward(env.mdp, env.start, env.horizon, best.policy) == printed(patient)
    assert total_reward(env.mdp, env.start, env.horizon, uniform_policy(env.mdp)) == printed(random)
    assert gain(env.mdp).gain == printed(average)
    assert best.values[env.start] == printed(value)


def test_ten_times_the_chain_by_effect_is_the_classic_optimum():
    assert 10_000 * gain(make_env("chain", rewards="effect").mdp).gain == printed("3677")


@pytest.mark.parametrize(("discount", "total"), [(0.96, "1796"), (0.98, "1825")])
def test_a_patient_discount_fetches_all_flags_of_the_maze(discount, total):
    env = make_env("maze")
    policy = value_iteration(env.mdp, discount).policy
    assert total_reward(env.mdp, 0, env.horizon, policy) == printed(total)


@pytest.mark.parametrize(("steps", "total"), [(1000, "423.3"), (20_000, "8567")])
def test_the_river_pays_what_the_published_one_pays(steps, total):
    assert total_reward(make_env("river_swim").mdp, 0, steps) == printed(total)
