"""The paper's study as data: Appendix C, word for word."""

from __future__ import annotations

import tomllib
from collections import Counter
from functools import cache
from importlib.resources import files

import numpy as np
import pytest
from lab_fakes import live_through, outcome

from bamdp.lab import papers
from bamdp.lab.collect import results
from bamdp.lab.papers import STUDIES, TARGETS
from bamdp.lab.store import Store

ENVIRONMENTS = {"chain": (1000, 0.25), "double_loop": (1000, 0.25), "grid5": (1000, 1.0), "grid10": (2000, 1.0),
                "maze": (20000, 1.5)}  # fmt: skip
APPENDIX_C = {
    "dss-rtdp": [(8, 4, 10, 2), (4, 4, 18, 2), (4, 2, 50, 1), (4, 2, 200, 2), (4, 4, 500, 1)],
    "dss-pi": [(4, 4, 5, 2), (4, 4, 18, 2), (2, 2, 25, 1), (2, 2, 100, 2), (4, 2, 100, 1)],
    "bamcp": [("auto", 100), (15, 100), (50, 10000), (50, 10000), (50, 1000)],
    "bfs3": [(10, 100), (10, 10), (10, 10), (5, 10), (5, 10)],
    "sboss": [(8, 3), (2, 3), (2, 3), (2, 3), (2, 3)],
}
FAIR = [*APPENDIX_C, "thompson", "beb", "bayes-greedy", "rmax", "q-learning"]
NAMES = {
    "dss-rtdp": ("n_policies", "n_samples", "n_steps", "n_stages"),
    "dss-pi": ("n_policies", "n_samples", "n_steps", "n_stages"),
    "bamcp": ("depth", "n_simulations"),
    "bfs3": ("n_successors", "n_trajectories"),
    "sboss": ("n_models", "delta"),
}

TABLE1 = ("dss2020/published", "dss2020/fair")
RUNS = {"chain": 100, "double_loop": 100, "grid5": 100, "grid10": 30, "maze": 10}

paper_study = cache(papers.paper_study)


@pytest.mark.parametrize("name", [name for name in STUDIES if name != "dss2020/ablation"])
def test_environments_have_the_papers_horizons_and_limits(name):
    assert {p.label: (p.steps, p.limit) for p in paper_study(name).places} == ENVIRONMENTS


@pytest.mark.parametrize("name", TABLE1)
@pytest.mark.parametrize("algorithm", APPENDIX_C)
def test_appendix_c_is_run_or_always_among_what_is_tried(name, algorithm):
    cells = {c.place.label: c for c in paper_study(name).cells if c.algorithm == algorithm}
    for environment, values in zip(ENVIRONMENTS, APPENDIX_C[algorithm]):
        first = cells[environment].configurations[0]
        assert tuple(first[key] for key in NAMES[algorithm]) == values
        assert first["discount"] == 0.95
        flat = algorithm in ("bfs3", "sboss")
        assert first["prior"] == ("flat" if flat else "sparse")
        assert flat or (first["prior.alpha"], first["prior.beta"]) == (0.2, 2)
        large = environment in ("grid10", "maze")
        if algorithm == "dss-rtdp":
            assert first["generator.depth"] == (50 if large else 15)
        if algorithm == "dss-pi":
            assert first["generator.tol"] == 1e-4


@pytest.mark.parametrize("name", [*TABLE1, "dss2020/single"])
def test_large_environments_have_fewer_runs_and_nobody_has_fewer_than_others(name):
    assert {cell.label: cell.runs for cell in paper_study(name).cells} == {
        cell.label: RUNS[cell.place.label] for cell in paper_study(name).cells
    }


def test_as_published_nothing_is_tuned():
    study = paper_study("dss2020/published")
    assert study.tuning is None
    assert {len(cell.configurations) for cell in study.cells} == {1}
    thompson = [dict(cell.configurations[0]) for cell in study.cells if cell.algorithm == "thompson"]
    common = {"resample": "step", "prior": "sparse", "prior.alpha": 0.2, "prior.beta": 2, "discount": 0.95}
    assert thompson == 5 * [common]


def test_in_the_fair_one_everybody_has_the_same_chances():
    study = paper_study("dss2020/fair")
    counts = {cell.algorithm: len(cell.configurations) for cell in study.cells}
    assert counts == {name: 15 if name == "bayes-greedy" else 48 for name in FAIR}
    assert study.tuning.runs == 10
    for cell in study.cells:
        priors = Counter((c["prior"], c.get("prior.beta")) for c in cell.configurations)
        assert len(priors) == (1 if cell.algorithm in ("rmax", "q-learning") else 5), cell.label
        assert {c["discount"] for c in cell.configurations} == {0.95, 0.98, 0.99}
    budgets = {cell.place.label: (cell.tuning.budget, cell.tuning.screening) for cell in study.cells}
    assert budgets == {
        **dict.fromkeys(("chain", "double_loop", "grid5"), (600, None)),
        "grid10": (1800, None),
        "maze": (2700, 4000),
    }


def test_the_single_choice_has_appendix_c_but_for_prior_discount_and_leaf():
    study = paper_study("dss2020/single")
    for cell, values in zip(study.cells, APPENDIX_C["dss-pi"], strict=True):
        assert study.together(cell) == study.cells
        found = {tuple(c[key] for key in NAMES["dss-pi"]) for c in cell.configurations}
        assert found == {values}
        chosen = {(c["prior"], c.get("prior.beta"), c["discount"], c["leaf"]) for c in cell.configurations}
        assert len(chosen) == len(cell.configurations) == 5 * 3 * 2


def test_each_sweep_of_the_ablation_changes_what_it_says_around_appendix_c():
    keys = {"N": "n_policies", "M": "n_samples", "K": "n_steps", "H": "n_stages", "leaf": "leaf",
            "beta": "prior.beta", "gamma": "discount", "N-flat": "n_policies"}  # fmt: skip
    base = {(c.place.label): dict(c.configurations[0]) for c in paper_study("dss2020/published").cells
            if c.algorithm == "dss-pi"}  # fmt: skip
    for cell in paper_study("dss2020/ablation").cells:
        plain = {"leaf": "zero", **base[cell.place.label]}
        found = [{"leaf": "zero", **c} for c in cell.configurations]
        if cell.algorithm != "N-flat":
            assert plain in found, cell.label
        if cell.algorithm in keys:
            varied = {key for key in found[0] if len({one[key] for one in found}) > 1}
            assert varied == {keys[cell.algorithm]}, cell.label
        if cell.place.label in ("chain", "maze"):
            assert cell.algorithm in ("leaf", "beta", "gamma")


def test_the_papers_numbers_are_all_there():
    paper = tomllib.loads(files("bamdp.lab.papers").joinpath("dss2020/paper.toml").read_text())
    assert {a: set(row) for a, row in paper["table1"].items()} == {a: set(ENVIRONMENTS) for a in APPENDIX_C}
    assert paper["table1"]["dss-pi"]["maze"] == [944.99, 19.36]
    assert paper["table2"]["sboss"]["maze"] == 3695.5
    assert {e: steps for e, (steps, _) in ENVIRONMENTS.items()} == paper["steps"]


def test_table_1_stands_beside_the_papers(tmp_path):
    study = paper_study("dss2020/published").only(["chain", "grid5"], ["dss-pi", "sboss"])
    rng = np.random.default_rng(0)
    with Store(tmp_path / "s.sqlite") as store:
        live_through(study, store, lambda unit: outcome(370.06 + rng.normal(), steps=unit.setting.steps))
        tables = {table.name: table for table in TARGETS["table1"].tables(results(study, store))}
    beside = tables["beside_the_paper"]
    assert [(row[0].text, row[1].text, row[3].text) for row in beside.rows] == [
        ("chain", "dss-pi", "370.06 ± 4.71"),
        ("chain", "sboss", "351.49 ± 4.28"),
        ("grid5", "dss-pi", "79.01 ± 0.47"),
        ("grid5", "sboss", "47.50 ± 0.36"),
    ]
    assert abs(beside.rows[0][4].value) < 1.0
    assert beside.rows[1][4].value == pytest.approx(370.06 - 351.49, abs=1.0)


def test_short_runs_do_not_stand_beside_the_papers(tmp_path):
    study = paper_study("dss2020/published", quick=True).only(["chain"], ["dss-pi"])
    with Store(tmp_path / "s.sqlite") as store:
        live_through(study, store, lambda unit: outcome(1.0, steps=unit.setting.steps))
        found = results(study, store)
        tables = TARGETS["table1"].tables(found)
    assert found.quick
    assert [table.name for table in tables] == ["rewards"]
    assert "Quick" in tables[0].warning
