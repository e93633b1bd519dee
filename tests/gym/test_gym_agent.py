"""GymAgent: any finite environment, wrapped or in a vector; what goes wrong does not cost what was learned."""

import gymnasium
import numpy as np
import pytest
from gym_worlds import FORMS, Corridor
from gymnasium.wrappers import TimeLimit

import bamdp
from bamdp.gym import GymWorld

PLANNER = bamdp.ThompsonSampling()
PRIOR = bamdp.SparseDirichlet(alpha=0.2, beta=4.0)


def player(env, **options):
    options = {"discount": 0.9, "objective": "lifetime", "seed": 0, **options}
    return bamdp.GymAgent.for_env(TimeLimit(env, 50), PLANNER, PRIOR, **options)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_observation_and_action_is_the_same_world(form):
    """The corridor shown in another way: same numbers, same seed, the same run (actions apart)."""
    plain = player(Corridor()).play(steps=200, seed=0)
    other = player(Corridor(**FORMS[form])).play(steps=200, seed=0)
    if form != "actions":
        assert np.array_equal(plain.states, other.states)
        assert np.array_equal(plain.actions, other.actions)
    assert other.success > 0.8
    assert len(other.episode_returns) > 20


def test_observations_may_be_anything_hashable_or_made_so():
    words = Corridor(show=lambda s: "abcd"[s], space=gymnasium.spaces.Text(1))
    run = player(words, max_states=4).play(steps=200, seed=0)
    real = Corridor(show=lambda s: np.array([s / 4]), space=gymnasium.spaces.Box(0.0, 1.0))
    binned = player(real, observation=lambda x: int(4 * x[0]), max_states=4).play(steps=200, seed=0)
    assert np.array_equal(run.actions, binned.actions)
    assert run.success > 0.8
    with pytest.raises(ValueError, match="make them discrete"):
        player(real)


def test_playing_step_by_step_is_playing():
    """The loop that everybody writes, against play()."""
    one, env = player(Corridor()), TimeLimit(Corridor(), 50)
    found, seen = [], 0
    observation, info = env.reset(seed=0)
    one.begin(observation, info)
    while seen < 150:
        action = one.act(observation)
        after, reward, terminated, truncated, info = env.step(action)
        one.observe(observation, action, reward, after, terminated, info)
        found.append((one.world.number(observation), action))
        seen += 1
        observation = after
        if terminated or truncated:
            observation, info = env.reset()
            one.begin(observation, info)
    two = player(Corridor())
    run = two.play(steps=150, seed=0)
    assert found == list(zip(run.states.tolist(), run.actions.tolist()))
    assert one.agent.belief.log_evidence == two.agent.belief.log_evidence


def test_a_truncation_is_not_an_end():
    """A world without ends under a time limit: nothing leads to the end state, nothing from the last to the first."""
    endless = TimeLimit(Corridor(n=10**6, show=lambda s: min(s, 3), space=gymnasium.spaces.Discrete(4)), 5)
    one = bamdp.GymAgent.for_env(endless, bamdp.Random(), bamdp.Dirichlet(alpha=0.1), discount=0.9, seed=0)
    run = one.play(steps=400, seed=0)
    belief, end = one.agent.belief, one.world.end
    assert run.truncated.sum() == 80
    assert not run.terminated.any()
    counts = np.array([[belief.predictive(s, a) for a in range(2)] for s in range(4)])
    visits = np.array([[((run.states == s) & (run.actions == a)).sum() for a in range(2)] for s in range(4)])
    assert np.allclose(counts[:, :, end], 0.1 / (0.5 + visits))  # the prior's share and nothing more
    assert np.allclose(counts[2, 1, 0], 0.1 / (0.5 + visits[2, 1]))  # 2 → 3, reset: not 2 → 0
    assert belief.episodes.starts.tolist() == [80, 0, 0, 0, 0]


def test_the_mask_of_taxi_is_used():
    env = gymnasium.make("Taxi-v4")
    one = bamdp.GymAgent.for_env(env, bamdp.Random(), seed=0)
    run = one.play(steps=600, seed=0)
    assert run.rewards.min() == -1.0  # an illegal pick-up or drop-off costs 10
    allowed = one.agent.belief.space.allowed
    seen = np.unique(run.states)
    assert not allowed[seen].all()
    assert allowed[np.arange(500), 0].sum() >= 500 - len(seen)


def test_an_observation_outside_of_the_space_is_refused_and_nothing_learned_is_lost():
    one = player(Corridor(show=lambda s: 99 if s == 3 else s))
    with pytest.raises(ValueError, match="99 is outside of the space") as caught:
        one.play(steps=100, seed=0)
    done = one.agent.belief.n_observed - one.agent.belief.episodes.starts.sum()
    assert f"after {done} steps" in caught.value.__notes__[0]


def test_a_saved_player_goes_on_bit_for_bit(tmp_path):
    one = player(Corridor(show=lambda s: ("at", s), space=gymnasium.spaces.Text(9)), max_states=9)
    one.play(steps=40, seed=0)
    one.save(tmp_path / "player.npz")
    env = TimeLimit(Corridor(show=lambda s: ("at", s), space=gymnasium.spaces.Text(9)), 50)
    two = bamdp.GymAgent.load(tmp_path / "player.npz", env)
    assert two.world.numbering.numbers == one.world.numbering.numbers
    assert np.array_equal(one.play(steps=60, seed=1).actions, two.play(steps=60, seed=1).actions)
    with pytest.raises(ValueError, match=r"knows \(10, 2\) states and actions, FrozenLake-v1 has \(10, 4\)"):
        bamdp.GymAgent.load(tmp_path / "player.npz", gymnasium.make("FrozenLake-v1"))


def test_a_vector_of_environments_is_refused():
    with pytest.raises(ValueError, match="one environment at a time"):
        bamdp.Agent.for_env(gymnasium.make_vec("FrozenLake-v1", num_envs=2), PLANNER)


def test_worlds_from_text():
    world = bamdp.make_world("gym:FrozenLake-v1:is_slippery=False,map_name=8x8")
    assert isinstance(world, GymWorld)
    assert (world.n_states, world.end) == (65, 64)
    assert bamdp.make_world("gym:Blackjack-v1:max_states=300").n_states == 301
    assert bamdp.make_world("gym:bamdp/Grid5-v0").n_states == 26
    assert bamdp.make_world("gym:gymnasium:CliffWalking-v1").name == "gymnasium:CliffWalking-v1"
    for text, words in (
        ("gym:no_such_module:Ring-v0", "No module named 'no_such_module'"),
        ("gym:FrozenLake-v9", "Gymnasium cannot make 'FrozenLake-v9'"),
        ("gym:FrozenLake-v1:slippery=False", "cannot make .*slippery"),
        ("gym:FrozenLake-v1:map_name=9x9", "cannot make .*9x9"),
        ("gym:FrozenLake-v1:is_slippery", "cannot make"),
    ):
        with pytest.raises(ValueError, match=words):
            bamdp.make_world(text)
    with pytest.raises(ValueError, match="is not known, and it is needed here"):
        bamdp.make_env("gym:FrozenLake-v1")


def test_a_reward_that_is_no_number_and_a_class_in_place_of_an_environment_are_refused():
    class Free(Corridor):
        def step(self, action):
            return 0, None, False, False, {}

    with pytest.raises(TypeError, match="reward must be a number, got None"):
        player(Free()).play(steps=3)
    with pytest.raises(TypeError, match="or a gymnasium"):
        bamdp.Agent.for_env(Corridor, "random")
