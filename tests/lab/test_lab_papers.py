"""The paper's study as data: Appendix C, word for word."""

from __future__ import annotations

import doctest
import math
import re
import tomllib
from collections import Counter
from functools import cache
from importlib.resources import files

import numpy as np
import pytest
from lab_fakes import live_through, outcome
from lab_samples import sample
from scipy import stats

from bamdp.lab import papers
from bamdp.lab.collect import collect_results
from bamdp.lab.comparisons import SIGNIFICANCE_LEVEL
from bamdp.lab.exports import export_runs, open_exports
from bamdp.lab.papers import TARGETS, paper_tables, study_parts
from bamdp.lab.papers.paper_tables import (
    beside_table2,
    paper_entry,
    paper_verdict,
    speedup,
)
from bamdp.lab.reading import make_study
from bamdp.lab.results import Results, comparable_results, complete_results, merge_results
from bamdp.lab.store import Store
from bamdp.lab.tables.evaluation import matrix, unfinished

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
RUNS = {"chain": 100, "double_loop": 100, "grid5": 100, "grid10": 30}

paper_study = cache(papers.paper_study)


def test_examples():
    assert doctest.testmod(paper_tables).failed == 0


@pytest.mark.parametrize("name", ["dss2020/published", "dss2020/fair", "dss2020/single"])
def test_environments_have_the_papers_horizons_and_limits(name):
    assert {p.label: (p.steps, p.limit) for p in paper_study(name).environments} == ENVIRONMENTS


@pytest.mark.parametrize("name", TABLE1)
@pytest.mark.parametrize("algorithm", APPENDIX_C)
def test_appendix_c_is_run_or_always_among_what_is_tried(name, algorithm):
    cells = {c.environment.label: c for c in paper_study(name).cells if c.algorithm == algorithm}
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
    runs = {**RUNS, "maze": 10 if name == "dss2020/published" else 12}
    for cell in paper_study(name).cells:
        assert cell.runs == cell.environment.runs == runs[cell.environment.label]


def test_everywhere_there_are_runs_enough_for_a_difference_to_pass_the_corrected_test():
    for names in TARGETS["table1"].studies.values():
        cells = [cell for name in names for cell in paper_study(name).cells]
        for label in ENVIRONMENTS:
            runs = [cell.runs for cell in cells if cell.environment.label == label]
            assert 2.0 ** (1 - min(runs)) * math.comb(len(runs), 2) <= SIGNIFICANCE_LEVEL, label
    ablation = paper_study("dss2020/ablation")
    for place in ablation.environments:  # each configuration against Appendix C's
        held = [c for cell in ablation.cells if cell.environment is place for c in cell.configurations]
        others = len({repr(sorted({"leaf": "zero", **c}.items())) for c in held}) - 1
        assert 2.0 ** (1 - place.runs) * others <= SIGNIFICANCE_LEVEL, place.label


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
    assert study.tuning.runs == 50  # so that budgets are used
    for cell in study.cells:
        priors = Counter((c["prior"], c.get("prior.beta")) for c in cell.configurations)
        assert len(priors) == (1 if cell.algorithm in ("rmax", "q-learning") else 5), cell.label
        assert {c["discount"] for c in cell.configurations} == {0.95, 0.98, 0.99}
    budgets = {cell.environment.label: (cell.tuning.budget, cell.tuning.screening) for cell in study.cells}
    assert budgets == {
        **dict.fromkeys(("chain", "double_loop", "grid5"), (600, None)),
        "grid10": (1800, None),
        "maze": (2700, 4000),
    }


def test_the_note_on_how_large_spaces_are_counts_them():
    """As many are asked for as there can be; only the spaces' sizes limit them."""
    data = tomllib.loads(files("bamdp.lab.papers").joinpath("dss2020/fair.toml").read_text())
    data["tuning"]["configurations"] = 10**6
    data["environments"] = {"grid5": data["environments"]["grid5"]}
    for table in data["algorithms"].values():
        if "at" in table:
            table["at"] = {"grid5": table["at"]["grid5"]}
    sizes = {cell.algorithm: len(cell.configurations) for cell in make_study(data).cells}
    (note,) = [note for note in paper_study("dss2020/fair").notes if "spaces of very different size" in note]
    told = dict(re.findall(r"(dss-rtdp|dss-pi|q-learning|sboss|bfs3|beb|thompson) (\d+)", note))
    assert {name: int(size) for name, size in told.items()} == {name: sizes[name] for name in told}
    assert (sizes["bamcp"], sizes["rmax"], sizes["bayes-greedy"]) == (sizes["sboss"], 48, 15)
    assert len(told) == 7


def test_the_single_choice_has_appendix_c_but_for_prior_discount_and_leaf():
    study = paper_study("dss2020/single")
    for cell, values in zip(study.cells, APPENDIX_C["dss-pi"], strict=True):
        assert study.choosing_together(cell) == study.cells
        found = {tuple(c[key] for key in NAMES["dss-pi"]) for c in cell.configurations}
        assert found == {values}
        chosen = {(c["prior"], c.get("prior.beta"), c["discount"], c["leaf"]) for c in cell.configurations}
        assert len(chosen) == len(cell.configurations) == 5 * 3 * 2


def test_each_sweep_of_the_ablation_changes_what_it_says_around_appendix_c():
    keys = {"N": "n_policies", "M": "n_samples", "K": "n_steps", "H": "n_stages", "leaf": "leaf",
            "beta": "prior.beta", "gamma": "discount", "N-one-stage": "n_policies", "M-one-stage": "n_samples",
            "prior": "prior", "trials": "generator.n_trials", "depth": "generator.depth",
            "bound": "generator.bound"}  # fmt: skip
    base = {(c.environment.label): dict(c.configurations[0]) for c in paper_study("dss2020/published").cells
            if c.algorithm == "dss-pi"}  # fmt: skip
    for cell in paper_study("dss2020/ablation").cells:
        plain = {"leaf": "zero", **base[cell.environment.label]}
        found = [{"leaf": "zero", **c} for c in cell.configurations]
        if cell.algorithm in ("trials", "depth", "bound"):
            assert any(
                one["generator.depth"] == (50 if cell.environment.label == "grid10" else 15) for one in found
            )
        elif cell.algorithm not in ("N-one-stage", "M-one-stage"):
            assert plain in found, cell.label
        if cell.algorithm in keys:
            varied = {key for key in found[0] if len({one.get(key) for one in found}) > 1}
            assert varied == {keys[cell.algorithm]}, cell.label
        everywhere = ("leaf", "prior", "beta", "gamma")
        few = {"chain": everywhere, "maze": (*everywhere, "M-one-stage")}
        assert cell.algorithm in few.get(cell.environment.label, (*keys, "trade"))


def test_the_papers_numbers_are_all_there():
    paper = tomllib.loads(files("bamdp.lab.papers").joinpath("dss2020/paper.toml").read_text())
    assert {a: set(row) for a, row in paper["table1"].items()} == {a: set(ENVIRONMENTS) for a in APPENDIX_C}
    assert paper["table1"]["dss-pi"]["maze"] == [944.99, 19.36]
    assert paper["table2"]["sboss"]["maze"] == 3695.5
    assert paper_entry("table2", "bfs3", "grid10") is None
    assert paper_entry("table2_above", "bfs3", "grid10") == 2000.0
    assert paper_entry("table2_above", "bfs3", "grid5") is None
    assert {e: steps for e, (steps, _) in ENVIRONMENTS.items()} == paper["steps"]


def test_table_1_stands_beside_the_papers(tmp_path):
    study = paper_study("dss2020/published").only(["chain", "grid5"], ["dss-pi", "sboss"])
    rng = np.random.default_rng(0)
    with Store(tmp_path / "s.sqlite") as store:
        live_through(study, store, lambda unit: outcome(370.06 + rng.normal(), steps=unit.setting.steps))
        tables = {table.name: table for table in TARGETS["table1"].tables(collect_results(study, store))}
    beside = tables["beside_the_paper"]
    assert [(row[0].text, row[1].text, row[5].text) for row in beside.rows] == [
        ("chain", "dss-pi", "370.06 ± 4.71"),
        ("chain", "sboss", "351.49 ± 4.28"),
        ("grid5", "dss-pi", "79.01 ± 0.47"),
        ("grid5", "sboss", "47.50 ± 0.36"),
    ]
    assert abs(beside.rows[0][6].value) < 1.0
    assert beside.rows[1][6].value == pytest.approx(370.06 - 351.49, abs=1.0)
    assert [row[8].text for row in beside.rows] == ["agrees", "better", "better", "better"]
    assert "unfinished" not in tables


def test_short_runs_do_not_stand_beside_the_papers(tmp_path):
    study = paper_study("dss2020/published", quick=True).only(["chain"], ["dss-pi"])
    with Store(tmp_path / "s.sqlite") as store:
        live_through(study, store, lambda unit: outcome(1.0, steps=unit.setting.steps))
        found = collect_results(study, store)
        tables = TARGETS["table1"].tables(found)
    assert found.quick
    assert [table.name for table in tables] == ["rewards"]
    assert "Quick" in tables[0].warning


def sampled(totals, environment="chain", algorithm="dss-pi", horizon=1000, **other):
    return sample(totals, environment, algorithm, horizon=horizon, **other)


@pytest.mark.parametrize(
    ("totals", "word"),
    [
        ([360.0, 380.0, 372.0], "agrees"),
        ([300.0, 310.0, 305.0, 306.0], "worse"),
        ([430.0, 440.0, 435.0, 436.0], "better"),
        ([370.0], "–"),
    ],
)
def test_a_verdict_is_by_welchs_test(totals, word):
    found = paper_verdict(sampled(totals))
    assert found.word == word
    if len(totals) > 1:
        mean, error, n = np.mean(totals), np.std(totals, ddof=1), len(totals)
        want = stats.ttest_ind_from_stats(mean, error, n, 370.06, 4.71 * 10, 100, equal_var=False).pvalue
        assert found.p == pytest.approx(want)


def test_what_the_paper_does_not_have_has_no_verdict():
    assert paper_verdict(sampled([1.0, 2.0], algorithm="thompson")) is None
    assert paper_entry("table1", "dss-pi", "river_swim") is None


def test_times_stand_beside_table_2_with_their_ratio():
    times = {"ms_per_step": np.full(2, 0.136), "cpu_seconds": np.full(2, 0.136)}
    unpaid = sampled([1.0, 2.0], "grid10", "bfs3", 2000)  # Table 2 has "> 2000" there
    short = sampled([1.0, 2.0], "maze", "dss-pi", 200)
    found = Results("t", (sampled([1.0, 2.0], **times), unpaid, short), cells=())
    (table,) = beside_table2(found)
    first, second = table.rows
    assert [cell.text for cell in first] == [
        "chain",
        "dss-pi",
        "0.136 ± 0.000",
        "0.136",
        "2.72",
        "2.72",
        "20.0",
    ]
    assert second[-1].text == "–"
    assert speedup(found.samples[0]) == pytest.approx(20.0)
    assert np.isnan(speedup(short))


def test_unfinished_rows_never_stand_in_the_column_of_finished_ones():
    done, few = sampled([1.0, 2.0], asked=2), sampled([9.0], algorithm="bamcp", asked=2)
    cells = (("chain", "dss-pi"), ("chain", "bamcp"), ("chain", "bfs3"))
    tables = {t.name: t for t in TARGETS["table1"].tables(Results("t", (done, few), cells=cells))}
    assert [row[0].text for row in tables["rewards"].rows] == ["dss-pi"]
    assert [row[1].text for row in tables["beside_the_paper"].rows] == ["dss-pi"]
    shown = [[cell.text for cell in row] for row in tables["unfinished"].rows]
    assert shown == [
        ["chain", "bamcp", "1 of 2", "9.00", "1.00"],
        ["chain", "bfs3", "no runs", "–", "–"],
    ]
    assert [table.name for table in TARGETS["table2"].tables(Results("t", (done,), cells=cells[:1]))] == [
        "times",
        "times_beside_the_paper",
    ]


def test_a_running_study_shows_what_there_is_where_nothing_is_complete():
    done, few = sampled([1.0, 2.0], asked=2), sampled([9.0], algorithm="bamcp", asked=2)
    early = sampled([3.0], "grid5", asked=2)
    found = Results("t", (done, few, early))
    assert complete_results(found).samples == (done,)
    assert comparable_results(found).samples == (done, early)
    assert (
        "grid5: not all runs are there; means are of those that are."
        in matrix(comparable_results(found)).notes
    )
    assert not any("not all runs" in note for note in matrix(complete_results(found)).notes)


def test_what_is_not_complete_is_named_by_configuration_and_says_what_failed():
    ok = sampled([1.0, 2.0], configuration={"n_policies": 2}, asked=2)
    bad = sampled([1.0], configuration={"n_policies": 4}, asked=2, failures=("run 1: it broke",))
    out = sampled([], algorithm="sboss", phase="tune", excluded="too slow")
    cells = (("chain", "dss-pi"), ("chain", "sboss"))
    (table,) = unfinished(Results("t", (ok, bad, out), cells=cells))
    assert [[cell.text for cell in row[1:3]] for row in table.rows] == [
        ["dss-pi (n_policies=4)", "1 of 2 (1 failed)"],
        ["sboss", "all excluded"],
    ]
    assert "it broke" in table.notes[1]


def test_studies_are_merged_only_if_they_have_the_same_steps():
    a = Results("a", (sampled([1.0]),), horizons={"chain": 1000}, notes=("x",))
    b = Results(
        "b", (sampled([2.0], algorithm="other"),), horizons={"chain": 1000}, notes=("x", "y"), quick=True
    )
    both = merge_results([a, b])
    assert (both.algorithms, both.notes, both.quick) == (("dss-pi", "other"), ("x", "y"), True)
    with pytest.raises(ValueError, match="different steps in chain"):
        merge_results([a, Results("c", (), horizons={"chain": 10})])


def test_parts_of_several_studies_are_asked_for_together():
    both = TARGETS["table1"].studies["fair"]
    assert list(study_parts(both, True, None, None).studies) == list(both)
    assert list(study_parts(both, True, list(ENVIRONMENTS), None).studies) == list(both)
    assert list(study_parts(both, True, None, ["dss-pi-single"]).studies) == ["dss2020/single"]
    part = study_parts(both, True, ["chain"], None)
    assert list(part.studies) == ["dss2020/fair"]
    assert part.left_out == ("dss2020/single",)  # it chooses for all together
    assert study_parts(both, True, ["chain"], ["dss-pi"]).left_out == ()
    with pytest.raises(ValueError, match="did you mean 'thompson'"):
        study_parts(both, True, None, ["tompson"])
    with pytest.raises(ValueError, match="drop --environments"):
        study_parts(both, True, ["chain"], ["dss-pi-single"])


def test_figure_2_has_the_papers_panels_in_its_order():
    runs = [sampled([1.0, 2.0], env, asked=2) for env in ("chain", "maze", "grid5", "double_loop")]
    slow = sampled([1.0], "grid10", asked=2)
    (picture,) = TARGETS["figure2"].pictures(Results("t", (*runs, slow)))
    titles = [axes.get_title("left") for axes in picture.draw().axes if axes.get_title("left")]
    assert titles == ["grid5", "double_loop", "maze", "chain"]
    assert TARGETS["figure2"].pictures(Results("t", (slow,))) == []


def test_notes_name_the_limits_that_budgets_come_to():
    numbers = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")
    for name in ("fair", "single"):
        study = paper_study(f"dss2020/{name}")
        (note,) = [note for note in study.notes if "could not be chosen" in note]
        limits = {int(10e3 * cell.tuning_limit) / 10 for cell in study.cells}
        limits |= {1e3 * place.limit for place in study.environments} if name == "fair" else set()
        assert {float(n) for n in numbers.findall(note)} == {round(x) if 28 < x < 29 else x for x in limits}


def test_the_single_choice_is_the_same_everywhere(tmp_path):
    study = paper_study("dss2020/single")
    with Store(tmp_path / "s.sqlite") as store:
        live_through(study, store, lambda unit: outcome(79.5, cpu=100.0, steps=unit.setting.steps))
        chosen = [s for s in collect_results(study, store).select("evaluate") if s.chosen]
    assert len(chosen) == 5
    keys = ("prior", "prior.alpha", "prior.beta", "discount", "leaf")
    assert len({tuple(s.configuration.get(key) for key in keys) for s in chosen}) == 1


def exported(folder, name, part, total=1.0, ms=1.0):
    """Write a part of a study as if it had been run with these totals and times."""
    study = paper_study(f"dss2020/{name}").only(*part)
    with Store(folder / f"{name}.sqlite") as store:
        live_through(study, store, lambda unit: outcome(total, ms=ms, steps=unit.setting.steps))
        export_runs(study, store, folder / f"{name}.runs.xz")
    return study


def test_files_that_contradict_each_other_are_refused(tmp_path):
    exported(tmp_path, "published", (["grid5"], ["dss-pi"]))
    exported(tmp_path, "ablation", (["grid5"], ["H"]), total=2.0)
    with pytest.raises(ValueError, match="30 runs that another file has"), open_exports([tmp_path]):
        pass


def test_a_run_that_studies_share_has_the_time_that_it_took_in_each(tmp_path):
    took = {"published": 1.0, "ablation": 2.0}
    parts = {"published": (["grid5"], ["dss-pi"]), "ablation": (["grid5"], ["H"])}
    studies = {name: exported(tmp_path, name, part, ms=took[name]) for name, part in parts.items()}
    with open_exports([tmp_path]) as exports:
        times = {
            name: {
                float(t)
                for sample in collect_results(study, exports.store_of(f"dss2020/{name}")).samples
                for t in sample.ms_per_step
            }
            for name, study in studies.items()
        }
    assert times == {name: {ms} for name, ms in took.items()}
