"""Pictures: what is drawn is what was given, on the axes that were given."""

from __future__ import annotations

import gymnasium
import matplotlib
import numpy as np
import pytest

import bamdp
from bamdp import plot

matplotlib.use("Agg")
from matplotlib import pyplot

ENV = bamdp.make_env("grid5")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def played():
    """An agent after 200 steps, and its run."""
    agent = bamdp.Agent.for_env(ENV, "thompson", prior="sparse:beta=6", seed=0)
    return agent, bamdp.simulate(agent, ENV, steps=200, seed=0)


def run_of(rewards, ends=()):
    """A run with these rewards, whose episodes end at these steps."""
    n = len(rewards)
    over = np.isin(np.arange(n), ends)
    return bamdp.Run(np.zeros(n, int), np.zeros(n, int), np.array(rewards, float), over, np.zeros(n))


def drawn(axes, label=None):
    """The x and y of a line."""
    lines = [line for line in axes.get_lines() if label is None or line.get_label() == label]
    return lines[0].get_xdata(), lines[0].get_ydata()


def legend(axes):
    return {text.get_text() for text in axes.get_legend().get_texts()}


def test_a_learning_curve_is_the_trailing_mean():
    rewards = [0.0, 1.0, 1.0, 0.0, 1.0, 1.0]
    x, y = drawn(plot.learning_curve(run_of(rewards), window=2))
    assert y[x == 6] == np.mean(rewards[-2:])
    assert y[x == 4] == np.mean(rewards[2:4])


def test_a_learning_curve_of_several_runs_is_their_mean_with_a_band_and_the_optimum():
    runs = [run_of([0.0] * 10), run_of([1.0] * 12)]
    axes = plot.learning_curve({"a": runs, "b": np.ones((3, 10))}, window=1, optimum=2.0)
    assert (drawn(axes, "a")[1] == 0.5).all()
    assert (drawn(axes, "b")[1] == 1.0).all()
    assert any(np.all(np.asarray(line.get_ydata()) == 2.0) for line in axes.get_lines())
    assert legend(axes) == {"a", "b", "optimum, model known"}


def test_the_optimum_of_an_environment_is_its_gain():
    axes = plot.learning_curve(np.zeros((1, 50)), optimum=ENV)
    assert any(np.allclose(line.get_ydata(), bamdp.gain(ENV.mdp).gain) for line in axes.get_lines())


def test_returns_are_means_of_the_last_episodes():
    run = run_of(
        [0.0, 1.0, 0.0, 3.0, 0.0, 8.0, 5.0], ends=[1, 3, 5]
    )  # the last step belongs to no completed episode
    x, y = drawn(plot.returns(run, episodes=2, log=False))
    assert x[0] == 2  # the first episode is over after two steps
    assert [float(y[x == t][0]) for t in (2, 3, 4, 6, 7)] == [1.0, 1.0, 2.0, 5.5, 5.5]


def test_pictures_are_drawn_on_the_axes_that_are_given(played):
    agent, run = played
    for draw in (
        lambda ax: run.plot(ax=ax),
        lambda ax: plot.learning_curve(run, ax=ax),
        lambda ax: plot.values(ENV, agent, ax=ax),
        lambda ax: plot.policy(ENV, agent, ax=ax),
        lambda ax: plot.visits(run, ENV, ax=ax),
        lambda ax: plot.posterior(agent, 0, 1, samples=20, ax=ax),
        lambda ax: plot.comparison({"a": [1.0, 2.0], "b": [3.0, 4.0]}, ax=ax),
    ):
        _, axes = pyplot.subplots()
        before = len(pyplot.get_fignums())
        assert draw(axes) is axes
        assert axes.has_data() or axes.images or axes.patches
        assert len(pyplot.get_fignums()) == before


def faces(axes):
    """The colours of the cells."""
    return [patch.get_facecolor() for patch in axes.patches]


def test_a_map_says_whose_policy_it_is_and_draws_faintly_what_was_never_visited(played):
    agent, run = played
    axes = plot.policy(ENV, agent, visited=np.bincount(run.states[:8], minlength=25) > 0)
    assert axes.get_title(loc="left").startswith(
        "thompson after 200 steps:\noptimal policy of its mean model"
    )
    known = plot.policy(ENV, bamdp.policy_iteration(ENV.mdp, 0.95), visited=np.ones(25, bool))
    assert known.get_title(loc="left") == "optimal policy of the known model"
    visits = np.bincount(run.states[:8], minlength=25)
    faint = [patch for patch in axes.patches if patch.get_alpha() == 0.22]
    goal = 24  # has a star in place of an arrow
    assert len(faint) == np.count_nonzero(visits[:goal] == 0)
    assert not [patch for patch in known.patches if patch.get_alpha() == 0.22]
    everywhere = plot.policy(ENV, agent)  # the agent's own steps
    assert np.bincount(run.states, minlength=25).all()
    assert not [patch for patch in everywhere.patches if patch.get_alpha() == 0.22]
    axes = plot.values(ENV, np.arange(25.0), visited=visits > 0)
    assert sum(patch.get_alpha() == 0.22 for patch in axes.patches) == np.count_nonzero(visits == 0)


def test_states_on_a_line_are_a_chart_with_names():
    env = bamdp.make_env("machine")
    best = bamdp.policy_iteration(env.mdp, 0.95)
    visited = np.arange(10) < 6
    axes = plot.policy(env, best, visited=visited)
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["run", "service", "replace"]
    assert [tick.get_text() for tick in axes.get_xticklabels()][::9] == ["new", "broken"]
    assert axes.get_xlabel() == "wear"
    assert np.array_equal(drawn(axes, "never visited")[1], best.policy)
    assert np.array_equal(drawn(axes, "visited")[1], best.policy[:6])
    axes = plot.values(env, best)
    assert axes.get_ylabel() == "value"
    assert np.array_equal(drawn(axes, "visited")[1], best.values)


def test_terminal_states_are_blank():
    walk = np.eye(3, k=1)
    walk[2, 2] = 1.0
    mdp = bamdp.FiniteMDP(walk[:, None].repeat(2, 1), [0.0, 1.0, 0.0], terminal=[2])
    assert list(drawn(plot.policy(bamdp.from_mdp(mdp), [1, 0, 0]), "visited")[0]) == [0, 1]


def test_a_gymnasium_grid_has_its_shape_and_arrows():
    env = gymnasium.make("FrozenLake-v1")
    axes = plot.values(env, np.arange(17.0), policy=np.full(17, 2))  # 16 and the end, which is not drawn
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    assert right - left == pytest.approx(bottom - top)
    assert len(set(faces(axes))) >= 16  # a colour for each of the 16 cells


def test_visits_are_counts_of_states_or_pulls_of_arms(played):
    _, run = played
    world = bamdp.from_function(lambda s, a, rng: (s, 0.0, False), n_states=25, n_actions=4)
    assert np.array_equal(drawn(plot.visits(run, world), "visited")[1], np.bincount(run.states, minlength=25))
    bandit = bamdp.make_env("bandit:means=(0.1,0.2,0.3,0.4)")
    pulls = np.bincount(run.actions, minlength=4)
    assert np.array_equal(drawn(plot.visits(run, bandit), "visited")[1], pulls)


def test_the_posterior_of_a_row_is_the_predictive_distribution():
    belief = bamdp.Dirichlet(alpha=0.5).belief(3, 1, rewards=[0.0, 0.0, 0.0])
    for after in (1, 1, 2):
        belief.observe(0, 0, 0.0, after)
    axes = plot.posterior(belief, 0, 0, truth=[0.0, 0.5, 0.5], samples=400)
    heights = [patch.get_height() for patch in axes.patches]
    assert heights == pytest.approx([0.5 / 4.5, 2.5 / 4.5, 1.5 / 4.5])
    x, y = drawn(axes, "truth")
    assert (list(x), list(y)) == ([0, 1, 2], [0.0, 0.5, 0.5])
    from scipy import stats

    segments = axes.collections[0].get_segments()
    exact = [stats.beta(a, 4.5 - a).ppf([0.05, 0.95]) for a in (0.5, 2.5, 1.5)]
    # 400 draws: quantiles of a Beta row within 0.06 of the exact ones (checked over 50 seeds: at most 0.05)
    assert np.allclose([segment[:, 1] for segment in segments], exact, atol=0.06)


def test_a_comparison_has_the_best_at_the_top_with_its_interval():
    axes = plot.comparison({"low": [1.0, 2.0, 3.0], "high": [5.0, 5.0, 5.0]}, optimum=6.0)
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["low", "high"]


def test_labels_are_short_where_that_tells_them_apart():
    axes = plot.learning_curve({"dss-pi:n_steps=9": np.zeros(9), "thompson": np.ones(9)}, window=1)
    assert legend(axes) == {"dss-pi", "thompson"}
    axes = plot.learning_curve({"dss-pi:n_steps=9": np.zeros(9), "dss-pi:n_steps=8": np.ones(9)}, window=1)
    assert "dss-pi:n_steps=9" in legend(axes)


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda: plot.learning_curve({}), "no runs to draw"),
        (lambda: plot.learning_curve("runs"), "must be a Run, a list of runs"),
        (lambda: plot.returns(run_of([1.0, 1.0])), "no completed episode; draw learning_curve"),
        (lambda: plot.returns(np.ones(3)), "must be a Run"),
        (lambda: plot.values(ENV, [1.0, 2.0]), "for each of the 25 states of grid5"),
        (lambda: plot.values(ENV, np.zeros(25), visited=[True]), "visited must be a Run or a mask"),
        (lambda: plot.policy("gym:Pendulum-v1", [0]), "not numbered; draw phase_portrait"),
        (lambda: plot.posterior(ENV, 0, 0), "must be a Belief or an Agent"),
        (lambda: plot.comparison([1.0]), "a result of compare"),
    ],
)
def test_what_cannot_be_drawn_is_said(draw, words):
    with pytest.raises((ValueError, TypeError), match=words):
        draw()
