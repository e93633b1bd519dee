"""What the ablation's runs are made to say: differences from Appendix C, trends, tables and figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lab_fakes import live_through, outcome
from matplotlib.text import Text

from bamdp.lab.collect import collect_results
from bamdp.lab.papers import TARGETS, paper_study
from bamdp.lab.papers.ablation import Trend, sweep_points, sweep_trends
from bamdp.lab.store import Store
from bamdp.statistics import Estimate


def ablated(tmp_path, result):
    """Grid5's ablation with decreed totals."""
    study = paper_study("dss2020/ablation").only(["grid5"], ["N", "M", "gamma", "trade"])
    with Store(tmp_path / "s.sqlite") as store:
        live_through(study, store, result)
        return collect_results(study, store)


def test_configurations_of_an_ablation_are_compared_to_appendix_c_on_common_luck(tmp_path):
    def result(unit):
        planner = unit.setting.planner
        gain = 5.0 * (planner.n_policies == 8) - 3.0 * (unit.setting.discount == 0.9)
        luck = np.random.default_rng(unit.replicate).normal()
        own = 0.1 * np.random.default_rng([unit.replicate, planner.n_samples]).normal()
        return outcome(50.0 + 10.0 * luck + gain + own, ms=float(planner.n_policies), steps=1000)

    held = sweep_points(ablated(tmp_path, result), "grid5")
    assert {p.label for p in held if p.sweep == "N"} == {"1", "2", "4", "8", "16", "32"}
    assert {p.sweep for p in held if p.is_base} == {"N", "M", "gamma", "trade"}
    assert {(p.sweep, p.label): p.minus_base.value > 0 for p in held if p.different} == {
        ("N", "8"): True,
        ("gamma", "0.9"): False,
    }
    found = next(p for p in held if (p.sweep, p.label) == ("N", "8"))
    assert (found.minus_base.value, found.sample.mean_ms) == (pytest.approx(5.0), 8.0)


def test_trends_compare_what_the_study_names_and_wait_for_it(tmp_path):
    found = ablated(tmp_path, lambda u: outcome(50.0 + u.replicate, steps=1000))

    def without(sweep, value):
        key = {"N": "n_policies", "M": "n_samples"}[sweep]
        kept = (s for s in found.samples if s.algorithm != sweep or s.configuration[key] not in value)
        return [(t.sweep, t.low, t.high) for t in sweep_trends(replace(found, samples=tuple(kept)))]

    whole = [("N", "1", "2"), ("N", "2", "32"), ("M", "1", "2"), ("M", "2", "32")]
    assert without("N", ()) == whole
    assert without("N", (8,)) == whole  # it is not compared
    assert without("N", (1,)) == whole[1:]
    assert without("N", (32,)) == [whole[0], *whole[2:]]  # 16 is not the largest
    assert without("M", (2,)) == whole[:2]  # nothing else takes the place of Appendix C's


def test_a_plateau_is_a_rise_up_to_appendix_c_and_none_beyond(tmp_path):
    def result(unit):
        planner = unit.setting.planner
        gain = 9.0 * min(planner.n_policies, 2) - planner.n_samples
        return outcome(50.0 + gain + unit.replicate, steps=1000)

    found = ablated(tmp_path, result)
    assert [(t.sweep, t.half, t.word) for t in sweep_trends(found)] == [
        ("N", "up to", "rises"),
        ("N", "beyond", "no difference seen"),
        ("M", "up to", "falls"),
        ("M", "beyond", "falls"),
    ]


def test_an_interval_that_a_correction_takes_back_is_a_perhaps():
    def trend(low, high, different):
        return Trend("grid5", "N", "up to", "1", "2", Estimate((low + high) / 2, low, high), different)

    assert trend(0.1, 2.0, False).word == "perhaps rises"
    assert trend(-2.0, -0.1, False).word == "perhaps falls"
    assert trend(-0.1, 2.0, False).word == "no difference seen"
    assert trend(0.1, 2.0, True).word == "rises"
    assert trend(-2.0, -0.1, True).word == "falls"


def test_the_ablation_has_a_table_for_each_environment_and_two_figures(tmp_path):
    found = ablated(tmp_path, lambda u: outcome(50.0 + u.replicate, steps=1000))
    table, halves = TARGETS["ablation"].tables(found)
    assert (table.name, halves.name) == ("ablation_grid5", "trends")
    assert len(table.rules) == 3
    assert [[cell.text for cell in row] for row in halves.rows] == [
        ["grid5", sweep, half, f"{high} less {low}", "0.00 [0.00 to 0.00]", "no difference seen"]
        for sweep in ("N", "M")
        for half, low, high in (("up to", 1, 2), ("beyond", 2, 32))
    ]
    pictures = TARGETS["ablation"].pictures(found)
    assert [picture.stem for picture in pictures] == ["ablation", "ablation_beliefs"]
    words = {text.get_text() for text in pictures[0].draw().findobj(Text)}
    assert {"grid5", "16", "width against depth", "Appendix C"} <= words
    assert "discount γ" in {text.get_text() for text in pictures[1].draw().findobj(Text)}


def test_many_samples_are_drawn_over_their_logarithm_beside_prior_and_discount(tmp_path):
    study = paper_study("dss2020/ablation").only(["double_loop"], ["gamma", "M-one-stage"])
    with Store(tmp_path / "s.sqlite") as store:
        live_through(study, store, lambda u: outcome(50.0 - u.setting.planner.n_samples, steps=1000))
        found = collect_results(study, store)
    panels = TARGETS["ablation"].pictures(found)[-1].draw().axes
    shown = {axes.get_xlabel(): axes.get_xscale() for axes in panels if axes.get_xlabel()}
    assert shown == {"discount γ": "linear", "samples M with one stage (M-one-stage)": "log"}
    assert [t.word for t in sweep_trends(found)] == ["falls", "falls"]
