"""What figures show is what the results say; what they look like was looked at."""

from __future__ import annotations

import doctest
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab_samples import CEILINGS, SKILL, learner, sample, study
from scipy import optimize

from bamdp.lab import figures
from bamdp.lab.comparisons import groups
from bamdp.lab.figures import curves, parameters, style
from bamdp.lab.results import Results


@pytest.fixture(scope="module")
def results():
    return study()


@pytest.fixture(scope="module")
def looks(results):
    return figures.looks(results.algorithms)


@pytest.mark.parametrize("module", [curves, style])
def test_examples(module):
    assert doctest.testmod(module).failed == 0


def lines(figure, panel=0):
    """The curves of a panel, by label."""
    found = figure.axes[panel].get_lines()
    return {line.get_label(): line.get_xydata() for line in found if not line.get_label().startswith("_")}


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30), st.integers(1, 40))
def test_the_trailing_mean_is_the_mean_of_the_last_rewards(rewards, window):
    expected = [np.mean(rewards[max(0, t - window) : t]) for t in range(1, len(rewards) + 1)]
    assert curves.trailing_mean(rewards, window) == pytest.approx(expected, abs=1e-12)
    assert curves.trailing_mean(rewards, window, [len(rewards)]) == pytest.approx(expected[-1:], abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=9))
def test_the_pareto_front_is_what_nobody_dominates(pairs):
    def dominated(c, g):
        return any(a <= c and b >= g and (a, b) != (c, g) for a, b in pairs)

    found = curves.pareto([c for c, _ in pairs], [g for _, g in pairs])
    assert found.tolist() == [not dominated(*pair) for pair in pairs]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9).map(sorted), st.floats(0.01, 0.12))
def test_labels_are_moved_apart_and_stay_inside(places, gap):
    moved = style.spread_labels(places, gap)
    assert np.diff(moved).min(initial=gap) >= gap - 1e-9
    assert moved[0] >= -1e-9
    assert moved[-1] <= 1.0 + 1e-9


@given(st.lists(st.floats(0.3, 0.7), min_size=2, max_size=4).map(sorted))
def test_no_other_places_take_a_smaller_move(places):
    """Against SciPy's solution of the same constrained least squares."""
    gap, n = 0.08, len(places)
    found = optimize.minimize(
        lambda y: np.sum((y - places) ** 2),
        np.linspace(0.2, 0.8, n),
        constraints={"type": "ineq", "fun": lambda y: np.diff(y) - gap},
    )
    assert style.spread_labels(places, gap) == pytest.approx(found.x, abs=1e-3)


def test_labels_without_room_run_over_both_ends():
    moved = style.spread_labels([0.5] * 11, gap=0.2)
    assert (moved[0], moved[-1]) == pytest.approx((-0.5, 1.5))


def test_labels_that_are_apart_stay():
    assert style.spread_labels([0.1, 0.5, 0.9], gap=0.2) == pytest.approx([0.1, 0.5, 0.9])


def test_of_many_configurations_each_algorithm_shows_its_best_and_says_so(looks):
    held = [
        learner("chain", name, runs=3, shift=0.01 * k, configuration={"k": k})
        for name in ("dss-pi", "bamcp")
        for k in range(5)
    ]
    group = groups(Results("t", tuple(held), CEILINGS))[0]
    best = {
        f"{name} (k={max(range(5), key=lambda k: held[i + k].totals.mean())})"
        for i, name in ((0, "dss-pi"), (5, "bamcp"))
    }
    figure = curves.learning_curves([group], looks)
    assert set(lines(figure)) == best
    assert "3 runs, 95% band, the best configuration of each algorithm" in texts(figure.axes[0])
    assert {"dss-pi", "bamcp"} <= set(texts(curves.reward_against_time(group, looks).axes[0]))
    assert len(lines(curves.learning_curves([replace(group, samples=group.samples[:8])], looks))) == 8


def test_two_dozen_algorithms_have_looks_of_their_own_and_variants_keep_the_colour():
    found = figures.looks(f"a{i}" for i in range(24))
    assert len({(look.colour, look.line) for look in found.values()}) == 24
    first = found["a0"]
    assert first.variant(1).colour == first.colour
    assert first.variant(1).line != first.line


def test_learning_curves_end_at_the_mean_of_the_last_window(results, looks):
    group = groups(results)[0]
    drawn = lines(curves.learning_curves([group], looks))
    for name, held in group.named.items():
        assert drawn[name][-1] == pytest.approx([1000, held.traces()[:, -200:].mean()])


def test_regret_ends_at_the_optimum_less_the_mean_total(results, looks):
    chosen = groups(results)[1:]  # with a gain, and without one
    figure = curves.regret_curves(chosen, looks)
    for panel, best in enumerate((1000 * CEILINGS["grid5"].gain, CEILINGS["maze_door"].optimum)):
        for name, held in chosen[panel].named.items():
            if held.runs:
                assert lines(figure, panel)[name][-1, 1] == pytest.approx(best - held.totals.mean())


def test_there_is_no_regret_without_an_optimum(looks):
    group = groups(Results("t", (learner("chain", "dss-pi"),), {}))[0]
    with pytest.raises(ValueError, match="no optimum of chain is known"):
        curves.regret_curves([group], looks)


def test_algorithms_without_a_finished_run_are_left_out_of_curves(results, looks):
    assert set(lines(curves.learning_curves(groups(results)[2:], looks))) == set(SKILL) - {"sboss"}


def test_one_run_has_a_line_and_no_band(looks):
    group = groups(Results("t", (learner("chain", "dss-pi", runs=1),), CEILINGS))[0]
    assert set(lines(curves.learning_curves([group], looks))) == {"dss-pi"}


def test_an_algorithm_has_its_colour_in_every_figure(results, looks):
    group = groups(results)[0]
    learning = curves.learning_curves([group], looks).axes[0]
    trade = curves.reward_against_time(group, looks).axes[0]
    for name in group.named:
        line = next(line for line in learning.get_lines() if line.get_label() == name)
        label = next(words for words in trade.texts if words.get_text() == name)
        assert line.get_color() == label.get_color() == looks[name].colour


def texts(axes):
    return [words.get_text() for words in axes.texts]


def test_a_heat_map_shows_means_over_the_others_and_says_so(results):
    tuned = results.select("tune", "grid5", "dss-pi")
    axes = parameters.heat_maps(tuned, parameters=("n_policies", "n_steps")).axes[0]
    held = [s for s in tuned if (s.configuration["n_policies"], s.configuration["n_steps"]) == (8, 50)]
    assert axes.images[0].get_array()[2, 1] == pytest.approx(np.mean([s.totals.mean() for s in held]))
    assert [i for i, words in enumerate(texts(axes)) if "★" in words] == [7]
    assert axes.get_title(loc="left") == "mean over prior.beta"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("n_steps", "n_policies")


def test_a_place_where_all_is_excluded_is_crossed(results):
    slow = results.select("tune", "grid5", "dss-pi")
    marked = [replace(s, excluded="slow") if s.configuration["n_steps"] == 100 else s for s in slow]
    axes = parameters.heat_maps(marked, parameters=("n_policies", "n_steps")).axes[0]
    assert sum("×" in words for words in texts(axes)) == 3


def test_without_a_choice_of_parameters_every_pair_has_a_map(results):
    panels = parameters.heat_maps(results.select("tune", "grid5", "dss-pi")).axes
    assert len([axes for axes in panels if axes.images]) == 3


def test_one_parameter_is_not_a_map():
    few = [sample([k], phase="tune", configuration={"n_steps": k}) for k in (1, 2)]
    with pytest.raises(ValueError, match="two parameters that vary"):
        parameters.heat_maps(few)


def test_ablation_curves_are_means_over_runs_and_the_other_parameters(results, looks):
    tuned = results.select("tune", "grid5")
    axes = parameters.ablation_curves(tuned, "n_steps", looks, optimum=92.1).axes[0]
    held = [s.totals.mean() for s in tuned if s.algorithm == "dss-pi" and s.configuration["n_steps"] == 100]
    assert axes.get_lines()[0].get_xydata()[-1] == pytest.approx([100, np.mean(held)])
    assert "mean over n_policies, prior.beta" in texts(axes)


def test_ablation_of_words_and_of_algorithms_without_the_parameter(looks):
    flat, sparse = (learner("chain", "dss-pi", configuration={"prior": p}) for p in ("flat", "sparse"))
    axes = parameters.ablation_curves([flat, sparse, learner("chain", "bamcp")], "prior", looks).axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["flat", "sparse"]
    assert "bamcp" not in texts(axes)


def test_of_many_other_parameters_a_few_are_named_so_that_the_figure_keeps_its_room():
    keys = [f"a_parameter_with_a_long_name_{i}" for i in range(12)]
    two = [sample([1.0, 2.0 + v], configuration={"x": v, **dict.fromkeys(keys, v)}) for v in (0, 1)]
    figure = parameters.ablation_curves(two, "x", style.looks(["a"]))
    (note,) = [t.get_text() for t in figure.axes[0].texts if t.get_text().startswith("mean over")]
    assert note.endswith("long_name_4 and 7 more")


def test_parameters_are_shown_for_one_horizon_only():
    short = [sample([k], horizon=100, configuration={"k": k}) for k in (1, 2, 3)]
    long = [sample([k], horizon=1000, configuration={"k": k}) for k in (1, 2)]
    assert parameters.same_horizon([*short, *long]) == tuple(short)
    assert parameters.same_horizon([*short[:2], *long]) == tuple(long)


def test_the_warning_is_in_the_picture(results, looks):
    several = curves.learning_curves(groups(results), looks, warning="Quick run")
    assert several.legends[0].get_title().get_text() == "Quick run"
    one = curves.reward_against_time(groups(results)[0], looks, warning="Quick run")
    assert one.get_supxlabel() == "Quick run"


def test_files_are_what_their_names_say_and_the_same_each_time(results, looks, tmp_path):
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    made = [
        figures.save_figure(curves.reward_against_time(groups(results)[0], looks), tmp_path / f"{i}" / "a.b")
        for i in range(2)
    ]
    for first, second in zip(*made):
        assert first.name == f"a.b.{first.suffix[1:]}"
        assert first.read_bytes().startswith(starts[first.suffix[1:]])
        assert first.read_bytes() == second.read_bytes()


def test_a_part_and_its_parameters_are_one_where_not_all_have_them(looks):
    """A flat prior has no β: its configurations have their places all the same, and so has the star."""
    priors = [{"prior": "flat"}, {"prior": "sparse", "prior.beta": 2}, {"prior": "sparse", "prior.beta": 6}]
    tuned = [
        sample(
            [k + m],
            algorithm="dss-pi",
            phase="tune",
            configuration={"n_steps": k, **p},
            chosen=(k, m) == (1, 0),
        )
        for k in (1, 2)
        for m, p in enumerate(priors)
    ]
    axes = parameters.heat_maps(tuned).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("prior", "n_steps")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["flat", "sparse beta=2", "sparse beta=6"]
    assert not np.isnan(axes.images[0].get_array()).any()
    assert sum("★" in words for words in texts(axes)) == 1
    line = parameters.ablation_curves(tuned, "prior", looks).axes[0]
    assert [tick.get_text() for tick in line.get_xticklabels()] == ["flat", "sparse beta=2", "sparse beta=6"]


def test_a_title_stays_inside_its_figure():
    tuned = [
        sample(
            [k + m],
            environment="deep_sea_stochastic",
            phase="tune",
            configuration={"n_steps": k, "n_samples": m},
        )
        for k in (1, 2)
        for m in (3, 4)
    ]
    figure = parameters.heat_maps(tuned)
    figure.canvas.draw()
    box = figure._suptitle.get_window_extent()
    assert box.x1 <= figure.bbox.x1
