"""Observations that are not whole numbers, by bins."""

import doctest

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import bamdp
from bamdp.gym import Discretize, DiscretizeActions, GymWorld, discretize, player, world


class Drift(gymnasium.Env):
    """A point that is pushed to the left or to the right, and the time; what it shows is a Box of two numbers."""

    observation_space = spaces.Box(np.array([-1.0, -np.inf]), np.array([1.0, np.inf]), dtype=np.float64)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = 0.0, 0.0
        return np.array([self.x, self.t]), {}

    def step(self, action):
        self.x = float(np.clip(self.x + (0.1 if action else -0.1), -1, 1))
        self.t += 1.0
        return np.array([self.x, self.t]), float(self.x > 0.55), self.t >= 20.0, False, {}


def test_examples():
    for module in (discretize, player, world):
        assert doctest.testmod(module).failed == 0


def test_states_are_the_digits_of_the_bins():
    env = Discretize(Drift(), (4, [5.0, 10.0]))
    assert env.observation_space == spaces.Discrete(12)
    assert [edges.tolist() for edges in env.edges] == [[-0.5, 0.0, 0.5], [5.0, 10.0]]
    for x, t, digits in ((-1.0, 0.0, (0, 0)), (-0.5, 5.0, (1, 1)), (0.6, 99.0, (3, 2)), (-9.0, 10.0, (0, 2))):
        assert env.observation(np.array([x, t])) == np.ravel_multi_index(digits, (4, 3))


class Shop(gymnasium.Env):
    """Nothing happens; what it shows is a dictionary of the stock of two goods and the day."""

    observation_space = spaces.Dict({"stock": spaces.Box(0.0, 9.0, (2,)), "day": spaces.Discrete(7)})
    action_space = spaces.Discrete(2)


def test_a_dictionary_gets_bins_once_it_is_flat():
    with pytest.raises(ValueError, match="FlattenObservation"):
        Discretize(Shop(), 2)
    assert Discretize(gymnasium.wrappers.FlattenObservation(Shop()), [*[2] * 7, 4, 3]).sizes[7:] == (4, 3)


def test_bounds_come_from_the_space_from_the_caller_or_from_random_play():
    assert Discretize(Drift(), (2, 1), bounds=((0.0, 4.0), None)).edges[0].tolist() == [2.0]
    # the time runs from 0 to 20 in every episode
    assert Discretize(Drift(), (1, 4)).edges[1].tolist() == [5.0, 10.0, 15.0]


def test_quantiles_are_bins_that_random_play_visits_equally_often():
    env = Discretize(Drift(), (1, 3), edges="quantiles")
    counts, observation = np.zeros(3), env.reset(seed=2)[0]
    env.action_space.seed(3)
    for _ in range(4000):
        counts[observation] += 1
        observation, _, over, _, _ = env.step(env.action_space.sample())
        observation = env.reset()[0] if over else observation
    # times 0 to 19 in turn: no bin may have more than one of the 20 values too many or too few
    assert np.abs(counts / counts.sum() - 1 / 3).max() <= 1.5 / 20


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Discretize(gymnasium.make("FrozenLake-v1"), 3), "bins are for a Box"),
        (lambda: Discretize(Drift(), (3, 3, 3)), "one for each of the 2 coordinates"),
        (lambda: Discretize(Drift(), (3, 0)), "bins must be at least 1"),
        (lambda: Discretize(Drift(), ([1.0, 0.0], 2)), "ascending order"),
        (lambda: Discretize(Drift(), 3, edges="log"), "unknown edges 'log'"),
        (lambda: Discretize(Drift(), 3, bounds=((1.0, 0.0), None)), "not in ascending order"),
        (lambda: Discretize(Drift(), 3).observation([np.nan, 0.0]), "not a number"),
    ],
)
def test_what_is_wrong_with_bins_is_said(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_bins_as_text_and_as_argument_are_the_same_world():
    by_text = bamdp.make_world("gym:CartPole-v1:bins=(3,3,6,5)")
    by_argument = bamdp.make_world(gymnasium.make("CartPole-v1"), bins=(3, 3, 6, 5))
    assert isinstance(by_text, GymWorld)
    assert by_text.n_states == by_argument.n_states == 271
    assert all(np.array_equal(a, b) for a, b in zip(by_text.env.edges, by_argument.env.edges))


# Actions


class Arm(gymnasium.Env):
    """Nothing but an action of two numbers, which it remembers."""

    observation_space = spaces.Discrete(2)
    action_space = spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, 6.0]), dtype=np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        self.taken = action
        return 0, float(-((action - [0.0, 6.0]) ** 2).sum()), False, False, {}


def test_numbers_stand_for_levels_of_each_coordinate_the_last_one_running_fastest():
    env = DiscretizeActions(Arm(), (3, [0.0, 1.5, 6.0, 2.0]))
    assert env.action_space == spaces.Discrete(12)
    assert env.actions[[0, 1, 4, 11]].tolist() == [[-1.0, 0.0], [-1.0, 1.5], [0.0, 0.0], [1.0, 2.0]]
    assert all(Arm.action_space.contains(action) for action in env.actions)
    assert DiscretizeActions(Arm(), 1).actions.tolist() == [[0.0, 3.0]]
    env.reset(seed=0)
    env.step(6)
    assert env.unwrapped.taken.tolist() == [0.0, 6.0]
    env.unwrapped.taken += 1.0  # an environment may change what it was given
    assert env.action(6).tolist() == [0.0, 6.0]


@pytest.mark.parametrize(
    ("env", "levels", "words"),
    [
        (Drift(), 3, "actions in a Box"),
        (Arm(), (3, 3, 3), "one for each of the 2 coordinates"),
        (Arm(), 0, "levels must be at least 1"),
        (Arm(), (3, [7.0]), r"levels of coordinate 1 must be numbers in \[0, 6\]"),
        (Arm(), (3, []), "levels of coordinate 1"),
    ],
)
def test_what_is_wrong_with_levels_is_said(env, levels, words):
    with pytest.raises(ValueError, match=words):
        DiscretizeActions(env, levels)


def test_levels_of_unbounded_actions_must_be_given():
    env = Arm()
    env.action_space = spaces.Box(-np.inf, np.inf, (1,))
    with pytest.raises(ValueError, match="no bounds in coordinate 0: give its levels"):
        DiscretizeActions(env, 3)
    assert DiscretizeActions(env, ([-1.0, 1.0],)).action_space.n == 2
