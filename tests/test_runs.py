"""Many replicates: of names, of objects, of functions that make environments."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import bamdp
from bamdp._parameters import Spec
from bamdp.envs.registry import new_world
from bamdp.runs import Setting, make_setting


class Ring(gymnasium.Env):
    """Eight states in a ring; opposite the start an episode ends with a reward."""

    observation_space = gymnasium.spaces.Discrete(8)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = 0
        return 0, {}

    def step(self, action):
        self.state = (self.state + (1 if action else -1)) % 8
        return self.state, float(self.state == 4), self.state == 4, False, {}


def test_objects_functions_and_names_give_the_same_runs():
    by_name = bamdp.run_many("grid5", "thompson", runs=2, steps=40, seed=5)
    by_object = bamdp.run_many(bamdp.make_env("grid5"), bamdp.ThompsonSampling(), runs=2, steps=40, seed=5)
    by_function = bamdp.run_many(lambda: bamdp.make_env("grid5"), "thompson", runs=2, steps=40, seed=5)
    assert by_name.runs == by_object.runs == by_function.runs
    assert (
        bamdp.run_many(Ring, "thompson", runs=2, steps=40).runs
        == bamdp.run_many(Ring(), "thompson", runs=2, steps=40).runs
    )


def test_results_do_not_depend_on_jobs():
    one, two = (bamdp.run_many(Ring, "thompson", runs=3, steps=60, jobs=jobs) for jobs in (1, 2))
    assert one.runs == two.runs


def test_runs_leave_the_environment_that_was_given_alone():
    env = Ring()
    env.reset(seed=0)
    env.state = 3
    bamdp.run_many(env, "thompson", runs=2, steps=20)
    assert env.state == 3


def test_a_copy_for_a_run_numbers_observations_anew():
    env = gymnasium.make("FrozenLake-v1")
    world = bamdp.make_world(env, max_states=20)
    before = bamdp.run_many(world, "thompson", runs=1, steps=30)
    agent = bamdp.Agent.for_env(world, "random", seed=1)
    bamdp.simulate(agent, world, 200, seed=9)  # other observations come first
    assert len(new_world(world).numbering.numbers) == 0 < len(world.numbering.numbers)
    assert bamdp.run_many(world, "thompson", runs=1, steps=30).runs == before.runs


class Uncopied(Ring):
    def __deepcopy__(self, memo):
        raise TypeError("cannot be copied")


def test_what_cannot_be_copied_is_made_by_a_function():
    with pytest.raises(TypeError, match="give a function that makes it"):
        bamdp.run_many(Uncopied(), "thompson", runs=1, steps=5)
    assert len(bamdp.run_many(Uncopied, "thompson", runs=1, steps=5).runs) == 1


def test_a_batch_prints_in_a_line_and_is_a_frame():
    batch = bamdp.run_many("chain", "thompson:resample=5", runs=3, steps=50)
    assert repr(batch).startswith("Batch: thompson:resample=5 in chain, 3 runs of 50 steps, total ")
    assert batch.to_frame().total_reward.tolist() == batch.totals.tolist()
    assert batch.rewards.shape == (3, 50)
    assert np.array_equal(batch.rewards.sum(axis=1), batch.totals)
    ring = bamdp.run_many(Ring, "thompson", runs=1, steps=50)
    assert "episodes with mean return 1" in repr(ring)


def run_of(rewards, ends):
    n = len(rewards)
    return bamdp.Run(np.zeros(n, int), np.zeros(n, int), np.array(rewards), np.array(ends, bool), np.zeros(n))


@pytest.mark.parametrize(
    ("rewards", "success"),
    [
        ([0.0, 1.0, 0.0, 0.0], 0.5),  # a goal, and a hole
        ([0.0, 0.0, 0.0, 0.0], 0.0),  # a goal never reached
        ([-1.0, 20.0, -1.0, -10.0], 0.5),  # the same, with costs on the way
        ([-1.0, -1.0, -1.0, 0.0], None),  # nothing but costs
        ([1.0, 1.0, 1.0, 1.0], None),  # to go on is what pays
    ],
)
def test_success_is_a_share_only_where_a_positive_reward_means_a_goal(rewards, success):
    assert run_of(rewards, [0, 1, 0, 1]).success == success
    assert run_of(rewards, [0, 0, 0, 0]).success is None


def test_the_success_of_a_batch_counts_runs_that_never_reached_the_goal():
    lost, won = run_of([-1.0, -10.0], [0, 1]), run_of([-1.0, 20.0], [0, 1])
    assert lost.success is None
    assert bamdp.Batch(None, (lost, won), True, 0.0).success == 0.5


def test_a_setting_is_made_from_text():
    setting = make_setting("grid5", "dss-pi:n_steps=7", parameters={"leaf": "mean"}, prior="flat", seed=3)
    assert setting == Setting(
        "grid5",
        bamdp.DSS(n_steps=7, leaf="mean", generator="pi"),
        bamdp.Dirichlet(alpha=1 / 25),
        setting.rewards,
        0.95,
        bamdp.make_env("grid5").horizon,
        3,
    )
    assert make_setting("chain", Spec("thompson", {}), prior=Spec("sparse", {"beta": "6"})).prior.beta == 6.0
    assert make_setting("gym:FrozenLake-v1", "thompson", steps=9).steps == 9


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rewards": "beta"}, "pays 0.2"),
        ({"discount": 1.0}, "discount must be in"),
        ({"discount": "horizn"}, "'horizon' or 'auto'"),
        ({"objective": "life"}, "lifetime"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"seed": "a"}, "seed must be a whole number, got 'a'"),
    ],
)
def test_what_is_wrong_is_named(changed, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make_setting(**{"env": "chain", "planner": "thompson", **changed})
