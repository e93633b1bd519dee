"""Pictures of continuous systems: arrows, colours, plans, anchors and frames are those of what was given."""

from types import SimpleNamespace

import gymnasium
import matplotlib
import numpy as np
import pytest

import bamdp
from bamdp import plot
from bamdp.continuous import ContinuousAgent
from bamdp.plot.continuous import scene_of

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.collections import QuadMesh
from matplotlib.patches import Rectangle
from matplotlib.quiver import Quiver


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def agent():
    """An agent with a linear prior that has seen 60 steps of a spring, near the origin only."""
    env = gymnasium.Env()
    env.observation_space = gymnasium.spaces.Box(-5.0, 5.0, (2,), np.float64)
    env.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
    agent = ContinuousAgent.for_env(env, "mean", prior="linear:noise=0.01", seed=0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        obs, action = rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 1)
        agent.observe(obs, action, 0.0, obs + np.array([0.1 * obs[1], -0.2 * obs[0] + 0.5 * action[0]]))
    return agent


def parts(axes, kind):
    return [part for part in axes.get_children() if isinstance(part, kind)]


def test_arrows_are_the_expected_change_and_the_colour_is_its_deviation(agent):
    axes = plot.phase_portrait(agent, action=[1.0], bounds=[(-4, 4), (-2, 2)], names=["x", "v"])
    (arrows,) = parts(axes, Quiver)
    assert np.allclose(arrows.U * 8, 0.1 * arrows.Y, atol=0.03)
    assert np.allclose(arrows.V * 4, -0.2 * arrows.X + 0.5, atol=0.03)
    (colours,) = parts(axes, QuadMesh)
    unsure = colours.get_array().reshape(60, 60)
    assert unsure[30, 30] < unsure[0, 0]
    assert unsure[30, 30] < unsure[30, -1]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "v")
    assert len(axes.get_lines()[0].get_xdata()) == 60


def test_a_portrait_without_bounds_shows_what_was_visited_and_a_full_turn_of_an_angle(agent):
    axes = plot.phase_portrait(agent, path=[[0.0, 0.0], [0.5, 0.5]])
    seen = np.array(agent.belief.data.obs)
    assert axes.get_xlim()[0] < seen[:, 0].min() < seen[:, 0].max() < axes.get_xlim()[1]
    env = gymnasium.make("Pendulum-v1")
    turning = ContinuousAgent.for_env(env, "mean", angles=[(0, 1)], seed=0)
    with pytest.raises(ValueError, match="nothing was observed yet"):
        plot.phase_portrait(turning)
    obs, _ = env.reset(seed=0)
    for _ in range(8):
        after, reward, *_ = env.step([1.0])
        turning.observe(obs, [1.0], reward, after)
        obs = after
    axes = plot.phase_portrait(turning, path=[[3.0, 0.0], [-3.0, 0.0]])
    assert axes.get_xlim() == pytest.approx((-np.pi, np.pi))
    assert np.isnan(axes.get_lines()[1].get_xdata()).any()  # no line across the whole picture
    (arrows,) = parts(axes, Quiver)
    assert np.abs(arrows.U).max() < 0.5


def test_candidates_are_drawn_in_the_coordinate_and_the_chosen_one_is_thick():
    def choice(value):
        return SimpleNamespace(value=value, states=np.outer(np.arange(4), [1.0, value]))

    plan = SimpleNamespace(
        candidates=(choice(3.0), choice(1.0), choice(2.0)), states=np.zeros((4, 2)), value=3.0
    )
    axes = plot.plans(plan, coordinate=1, name="speed")
    assert [line.get_ydata()[-1] for line in axes.get_lines()] == [9.0, 3.0, 6.0]
    widths = [line.get_linewidth() for line in axes.get_lines()]
    assert widths[0] > max(widths[1:])
    assert axes.get_ylabel() == "speed"
    alone = SimpleNamespace(candidates=(), states=np.ones((3, 2)), value=0.0)
    assert len(plot.plans(alone).get_lines()) == 1
    with pytest.raises(ValueError, match="coordinate"):
        plot.plans(plan, coordinate=2)


def test_returns_stand_at_real_steps_and_anchors_at_theirs():
    curves = {
        "ours": ([10, 20, 40], np.array([[-3.0, -2.0, -1.0], [-5.0, -2.0, -1.0]])),
        "one": ([5], [-4.0]),
    }
    axes = plot.real_steps(curves, anchors={"TIP": 31}, solved=-2.0)
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert lines["ours"].get_ydata().tolist() == [-4.0, -2.0, -1.0]
    assert lines["one"].get_xdata().tolist() == [5]
    uprights = [line for line in axes.get_lines() if list(line.get_xdata()) == [31, 31]]
    assert len(uprights) == 1
    assert {text.get_text() for text in axes.texts} == {"TIP 31", "solved"}
    with pytest.raises(ValueError, match="same first dimension"):
        plot.real_steps({"bad": ([1, 2, 3], [0.0, 1.0])})


def test_returns_of_runs_stand_at_the_ends_of_their_episodes():
    ends = np.isin(np.arange(6), [2, 5])
    run = bamdp.Run(np.zeros(6, int), np.zeros(6, int), np.arange(6.0), ends, np.zeros(6))
    (line,) = plot.real_steps({"run": run}).get_lines()
    assert line.get_xdata().tolist() == [3, 6]
    assert line.get_ydata().tolist() == [3.0, 12.0]
    with pytest.raises(ValueError, match="no completed episode"):
        plot.real_steps(
            {"run": bamdp.Run(*(np.zeros(2, int),) * 2, np.zeros(2), np.zeros(2, bool), np.zeros(2))}
        )


@pytest.mark.parametrize(
    ("env", "obs", "tip"),
    [
        ("Pendulum-v1", [0.0, 1.0, 0.0], [-1.0, 0.0]),  # Gymnasium's angle is anticlockwise from upright
        ("Acrobot-v1", [1.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, -2.0]),
        ("CartPole-v1", [1.0, 0.0, np.pi / 2, 0.0], [2.0, 0.0]),
        ("bamdp/TipCartPole-v0", [1.0, 0.0, np.pi, 0.0], [1.0, -0.6]),
        ("bamdp/SparsePendulum-v0", [np.pi / 2, 0.0], [-0.5, 0.0]),
    ],
)
def test_systems_are_drawn_as_they_stand(env, obs, tip):
    points, _ = scene_of(gymnasium.make(env))(np.array(obs))
    assert points[-1] == pytest.approx(tip, abs=1e-12)


def test_a_film_strip_has_the_frames_that_were_asked_for_from_the_first_to_the_last():
    obs = np.column_stack([np.linspace(0, 3, 21), np.zeros(21), np.linspace(np.pi, 0, 21), np.zeros(21)])
    axes = plot.film_strip(obs, gymnasium.make("bamdp/TipCartPole-v0"), frames=5, seconds=0.1)
    assert [text.get_text() for text in axes.texts] == ["0 s", "0.5 s", "1 s", "1.5 s", "2 s"]
    windows = [part for part in parts(axes, Rectangle) if not part.get_fill()]
    assert len(windows) == 5
    tips = [line for line in axes.get_lines() if line.get_marker() == "o" and line.get_alpha() == 1.0]
    assert [float(tip.get_ydata()[0]) for tip in tips] == pytest.approx(
        [-0.6, -0.6 * 0.5**0.5, 0, 0.6 * 0.5**0.5, 0.6]
    )
    middles = [window.get_x() + window.get_width() / 2 for window in windows]
    assert tips[0].get_xdata()[0] == pytest.approx(middles[0])


def test_a_scene_of_ones_own_is_drawn_and_unknown_ones_are_refused():
    axes = plot.film_strip([[0.0], [1.0]], lambda obs: ([[0.0, 0.0], [0.0, 1.0 + obs[0]]], 0.0), frames=9)
    assert [text.get_text() for text in axes.texts] == ["step 0", "step 1"]
    with pytest.raises(ValueError, match="no drawing of FrozenLakeEnv"):
        plot.film_strip([[0.0]], gymnasium.make("FrozenLake-v1"))
