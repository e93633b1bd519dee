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
NAMES = {
    "dss-rtdp": ("n_policies", "n_samples", "n_steps", "n_stages"),
    "dss-pi": ("n_policies", "n_samples", "n_steps", "n_stages"),
    "bamcp": ("depth", "n_simulations"),
    "bfs3": ("n_successors", "n_trajectories"),
    "sboss": ("n_models", "delta"),
}

paper_study = cache(papers.paper_study)


@pytest.mark.parametrize("name", STUDIES)
def test_environments_have_the_papers_horizons_and_limits(name):
    assert {p.label: (p.steps, p.limit) for p in paper_study(name).places} == ENVIRONMENTS


@pytest.mark.parametrize("name", STUDIES)
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


def test_as_published_nothing_is_tuned():
    study = paper_study("dss2020/published")
    assert study.tuning is None
    assert study.runs == 100
    assert {len(cell.configurations) for cell in study.cells} == {1}


def test_in_the_fair_one_everybody_has_the_same_chances():
    study = paper_study("dss2020/fair")
    assert {len(cell.configurations) for cell in study.cells} == {study.tuning.configurations}
    assert (study.tuning.runs, study.runs) == (10, 100)
    for cell in study.cells:
        priors = Counter((c["prior"], c.get("prior.beta")) for c in cell.configurations)
        assert len(priors) == 5, cell.label
        assert {c["discount"] for c in cell.configurations} == {0.95, 0.98, 0.99}


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
